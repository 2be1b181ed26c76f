/*
 * A body with a batch, read from its tape and read the long way (all of it as a tree of cJSON,
 * getters): the same verdict, error, numbers and options. For a unit test and a fuzzer; a
 * difference is reported and aborts.
 */
#ifndef KOTA_TESTS_JSON_BATCH_CHECK_H
#define KOTA_TESTS_JSON_BATCH_CHECK_H

#include "api/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BATCH_SHAPES = 5 };

static const struct json_shape *const json_batch_shapes[JSON_BATCH_SHAPES] = {
    &json_shape_points2, &json_shape_points3, &json_shape_path, &json_shape_rays,
    &json_shape_segments};

static const char *const json_batch_options[] = {"layer", "interp", "mode", "samples", NULL};

static inline void json_batch_must(bool condition, const char *what, struct span body)
{
    if (condition)
        return;
    fprintf(stderr, "json_batch_check.h: %s: %.*s\n", what, (int)body.length, body.at);
    abort();
}

/* 1..limit items of the array, from cJSON. */
static inline enum err_code json_batch_first(const struct call *call, const char *name,
                                             const cJSON **first, size_t *count, struct err *err)
{
    size_t limit = call_limits(call)->items_max;
    const cJSON *array = json_member(call->json, name);

    *count = 0;
    *first = array ? array->child : NULL;
    for (const cJSON *item = *first; item; item = item->next)
        ++*count;
    if (!array)
        err_set(err, ERR_MISSING, "is missing: an array of 1 to %zu items", limit);
    else if (!cJSON_IsArray(array))
        err_set(err, ERR_BAD_INPUT, "an array of 1 to %zu items was expected, not %s", limit,
                json_kind(array));
    else if (*count == 0)
        err_limit(err, ERR_BAD_INPUT, 1, 0, "%s is empty; it takes 1 to %zu items", name, limit);
    else if (*count > limit)
        err_limit(err, ERR_TOO_MANY_ITEMS, (double)limit, (double)*count,
                  "%s has %zu items, the most is %zu", name, *count, limit);
    else
        return ERR_OK;
    return err_at(err, "/%s", name);
}

/* The long way, as if there were no other. */
static inline enum err_code json_batch_long_way(struct call *call, const struct json_shape *shape,
                                                struct json_batch *out, struct err *err)
{
    const char *const items[] = {shape->member, NULL};
    const cJSON *item;
    size_t count;

    *out = (struct json_batch){.count = 0};
    if (options_open_json(call, items, json_batch_options, err) ||
        json_batch_first(call, shape->member, &item, &count, err))
        return err->code;
    out->numbers = call_alloc(call, count * shape->stride * sizeof(double));
    for (; item; item = item->next, out->count++)
        if (json_batch_item(item, out->count, shape, out->numbers + out->count * shape->stride,
                            err))
            return err->code;
    return ERR_OK;
}

static inline bool json_batch_same_error(const struct err *a, const struct err *b)
{
    return a->code == b->code &&
           (a->code == ERR_OK ||
            (strcmp(a->msg, b->msg) == 0 && strcmp(a->pointer, b->pointer) == 0 &&
             a->has_limit == b->has_limit &&
             (!a->has_limit || (a->limit == b->limit && a->got == b->got))));
}

/* True when the body was taken; *is_plain: all its items were read from the tape. */
static inline bool json_batch_check(struct api *api, const struct json_shape *shape,
                                    struct span body, bool *is_plain)
{
    const char *const items[] = {shape->member, NULL};
    struct call a = {.api = api, .body = body}, b = {.api = api, .body = body};
    struct err err_a = {.code = ERR_OK}, err_b = {.code = ERR_OK};
    struct json_batch batch_a = {.count = 0}, batch_b;
    bool is_taken;

    *is_plain = options_open_batch(&a, items, json_batch_options, &err_a) == ERR_OK &&
                option_batch(&a, shape, &batch_a, &err_a) == ERR_OK && batch_a.is_plain;
    json_batch_long_way(&b, shape, &batch_b, &err_b);
    is_taken = err_b.code == ERR_OK;
    json_batch_must(json_batch_same_error(&err_a, &err_b), "the errors differ", body);
    if (is_taken) {
        json_batch_must(batch_a.count == batch_b.count, "the counts differ", body);
        json_batch_must(memcmp(batch_a.numbers, batch_b.numbers,
                               batch_a.count * shape->stride * sizeof(double)) == 0,
                        "the numbers differ", body);
        for (const char *const *name = json_batch_options; *name; name++) {
            char *x = cJSON_PrintUnformatted(json_member(a.json, *name));
            char *y = cJSON_PrintUnformatted(json_member(b.json, *name));

            json_batch_must(x && y ? strcmp(x, y) == 0 : x == y, "the options differ", body);
            cJSON_free(x);
            cJSON_free(y);
        }
    }
    call_close(&a);
    call_close(&b);
    return is_taken;
}

#endif
