/*
 * Models: solids under names, as bodies are made of. Immutable and counted, and so is the list of
 * them that a snapshot holds; the writer makes the next list.
 */
#ifndef KOTA_WORLD_MODELS_H
#define KOTA_WORLD_MODELS_H

#include "formats/polygon/polygon_file.h"
#include "terrain/mesh/solid.h"
#include "world/values/layer.h"

enum { MODEL_HASH_BYTES = 32 };

struct model {
    char id[WORLD_ID_MAX + 1];
    struct solid solid;
    uint8_t hash[MODEL_HASH_BYTES]; /* BLAKE2b-256 of the bytes */
    void *bytes;                    /* the original OBJ file */
    size_t length;
    uint32_t refs; /* atomic */
};

/* Sorted by id. An empty list may be NULL. */
struct model_list {
    uint32_t refs; /* atomic */
    size_t count;
    uint64_t bytes; /* of the models and their files */
    struct model *at[];
};

/*
 * A model of an OBJ file, whose bytes it copies. NULL and the errors of polygon_decode and
 * solid_measure. Takes long: never on a loop's thread.
 */
struct model *model_create(const char *id, const void *bytes, size_t length,
                           const struct polygon_limits *limits, struct err *err);
struct model *model_ref(struct model *model);
void model_unref(struct model *model); /* NULL is fine */

/* NULL when there is none. O(log n). */
const struct model *model_list_find(const struct model_list *list, const char *id);

/*
 * The list with `put` added or in the place of the model of its id, or without the model `dropped`;
 * one of the two is NULL. Takes nothing. NULL and ERR_NO_MEMORY. O(n).
 */
struct model_list *model_list_next(const struct model_list *list, struct model *put,
                                   const char *dropped, struct err *err);
struct model_list *model_list_ref(struct model_list *list); /* NULL is fine, as below */
void model_list_unref(struct model_list *list);

#endif
