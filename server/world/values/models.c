/*
 * Models and the list of them.
 *
 * There are few and they change rarely, so a list is a sorted array of references that is copied
 * for each change; a snapshot holds one, as it holds its locales. A model has its original file and
 * its measurements (model_file.c).
 */
#include "world/values/models.h"

#include <stdlib.h>
#include <string.h>

struct model *model_ref(struct model *model)
{
    __atomic_fetch_add(&model->refs, 1, __ATOMIC_RELAXED);
    return model;
}

void model_unref(struct model *model)
{
    if (!model || __atomic_fetch_sub(&model->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    free(model->bytes);
    free(model);
}

static int by_id(const void *id, const void *model)
{
    return strcmp(id, (*(struct model *const *)model)->id);
}

const struct model *model_list_find(const struct model_list *list, const char *id)
{
    struct model *const *found =
        list ? bsearch(id, list->at, list->count, sizeof *list->at, by_id) : NULL;

    return found ? *found : NULL;
}

static void add(struct model_list *list, struct model *model)
{
    list->at[list->count++] = model_ref(model);
    list->bytes += sizeof *model + model->length;
}

struct model_list *model_list_next(const struct model_list *list, struct model *put,
                                   const char *dropped, struct err *err)
{
    size_t count = list ? list->count : 0;
    struct model_list *next = calloc(1, sizeof *next + (count + 1) * sizeof *next->at);
    const char *id = put ? put->id : dropped;

    if (!next) {
        err_set(err, ERR_NO_MEMORY, "no memory for a list of %zu models", count);
        return NULL;
    }
    next->refs = 1;
    for (size_t i = 0; i < count; i++) {
        int order = strcmp(list->at[i]->id, id);

        if (put && order > 0) {
            add(next, put);
            put = NULL;
        }
        if (order != 0)
            add(next, list->at[i]);
    }
    if (put)
        add(next, put);
    return next;
}

struct model_list *model_list_ref(struct model_list *list)
{
    if (list)
        __atomic_fetch_add(&list->refs, 1, __ATOMIC_RELAXED);
    return list;
}

void model_list_unref(struct model_list *list)
{
    if (!list || __atomic_fetch_sub(&list->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    for (size_t i = 0; i < list->count; i++)
        model_unref(list->at[i]);
    free(list);
}
