/*
 * Layers: a name, a role and a counted surface. Readers reach a layer only through a published
 * snapshot, which holds a reference; so the count is touched by the writer and by whoever frees.
 */
#include "world/layer.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

bool world_id_is_valid(const char *id, size_t length)
{
    if (!id || length == 0 || length > WORLD_ID_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = id[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return true;
}

struct layer *layer_create_heightfield(const char *id, struct heightfield *field, struct err *err)
{
    struct layer *layer = calloc(1, sizeof *layer);
    struct heightfield_stats stats;

    CHECK(world_id_is_valid(id, strlen(id)));
    if (!layer) {
        heightfield_unref(field);
        err_set(err, ERR_NO_MEMORY, "no memory for layer %s", id);
        return NULL;
    }
    memcpy(layer->id, id, strlen(id) + 1);
    layer->kind = LAYER_HEIGHTFIELD;
    layer->role = LAYER_GROUND;
    layer->field = field;
    heightfield_stats(field, &stats);
    layer->memory_bytes = stats.bytes + sizeof *layer;
    layer->refs = 1;
    return layer;
}

struct layer *layer_ref(struct layer *layer)
{
    __atomic_fetch_add(&layer->refs, 1, __ATOMIC_RELAXED);
    return layer;
}

void layer_unref(struct layer *layer)
{
    if (!layer || __atomic_fetch_sub(&layer->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    heightfield_unref(layer->field);
    free(layer);
}
