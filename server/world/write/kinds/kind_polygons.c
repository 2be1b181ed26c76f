/*
 * WORLD_EDIT_POLYGONS: polygons of a mesh layer, some added, some removed (mesh_edit.h).
 *
 * A worker makes the next mesh ahead; the writer takes it if the layer is still the one that it was
 * made of, and else makes it again. The store's log and the shared log have the difference of the
 * two sets of polygons, so nothing is checked again when it is read back.
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* The mesh that was made ahead of this very layer, or one that is made now. */
static struct layer *polygons_edited(const struct layer *old, const struct world_change *change,
                                     struct mesh_import *import, struct err *err)
{
    if (change->layer == NULL || change->base->mesh != old->mesh ||
        change->base->polygons != old->polygons)
        return layer_edited(old, &change->polygons, NULL, import, err);
    *import = change->import;
    return layer_moving_as(change->layer, old, err);
}

/* The added and removed polygons as bytes: malloc; NULL and ERR_NO_MEMORY. */
static void *encode_difference(const struct change_result *result, size_t *length, struct err *err)
{
    const struct layer *before = locale_layer(result->before, result->layer->id);
    const struct feed_content *made = result->event.content; /* the same bytes */
    struct polygon_edit edit;
    void *bytes;

    if (made) {
        *length = made->length;
        bytes = malloc(made->length);
        return bytes ? memcpy(bytes, made->bytes, made->length)
                     : (err_set(err, ERR_NO_MEMORY, "no memory for an edit of polygons"), NULL);
    }
    if (polygon_edit_between(layer_polygon_set(before), layer_polygon_set(result->layer), &edit,
                             err))
        return NULL;
    bytes = polygon_edit_encode(&edit, length);
    polygon_edit_free(&edit);
    if (!bytes)
        err_set(err, ERR_NO_MEMORY, "no memory for an edit of polygons");
    return bytes;
}

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    static const struct polygon_limits none = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    const struct world_change *change = result->change;
    const struct layer *old = locale_layer(result->before, change->layer_id);
    struct layer *layer;
    size_t length;
    void *bytes;

    CHECK((change->layer == NULL) == (change->base == NULL));
    if (!old)
        return locale_no_layer(result->before, change->layer_id, ERR_LAYER_UNKNOWN, err);
    if (old->kind != LAYER_MESH)
        return err_set(err, ERR_LAYER_KIND,
                       "layer %s of locale %s is a heightfield: polygons belong to meshes", old->id,
                       change->locale_id);
    if (polygon_edit_check(layer_polygon_set(old), &change->polygons,
                           draft->is_followed ? &none : &draft->world->limits.polygon, err))
        return err->code;
    layer = polygons_edited(old, change, &result->import, err);
    if (!layer)
        return err->code;
    result->after = locale_next(result->before, NULL, layer, NULL, NULL, err);
    layer_unref(layer);
    if (!result->after)
        return err->code;
    result->layer = locale_layer(result->after, old->id);
    result->first_polygon = (uint32_t)polygon_set_numbers(layer_polygon_set(old));
    if (result->import.kept == 0 && change->polygons.removed_count == 0)
        return mesh_none_left(&result->import, change->polygons.add.polygon_count, err);
    memcpy(result->event.layer, old->id, sizeof result->event.layer);
    result->event.has_bounds = layer_changed_box(old, result->layer, &result->event.bounds);
    if (kind_check_box(change, result->event.has_bounds ? &result->event.bounds : NULL, err))
        return err->code;
    if (change->polygons.add.vertex_count > FEED_CONTENT_BYTES_MAX / sizeof(struct vec3))
        return ERR_OK;
    bytes = encode_difference(result, &length, err);
    if (!bytes)
        return err->code;
    result->event.content = feed_content_create(bytes, length, true);
    free(bytes);
    return ERR_OK;
}

static enum err_code persist(struct store *store, const struct change_result *result,
                             struct store_edit *row, struct err *err)
{
    (void)store;
    row->polygons = encode_difference(result, &row->polygons_bytes, err);
    return row->polygons ? ERR_OK : err->code;
}

static void encode(struct record_sink *sink, const struct change_result *result)
{
    struct err err = {.code = ERR_OK};
    size_t length;
    void *bytes = encode_difference(result, &length, &err);

    if (bytes)
        record_put(sink, bytes, length);
    else
        sink->has_no_memory = true;
    free(bytes);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    struct err reason = {.code = ERR_OK};

    (void)entry;
    if (record_is_bad(reader))
        return;
    if (polygon_edit_decode(reader->at, reader->left, &out->polygons, &reason))
        record_refused(reader, &reason);
    reader->left = 0;
}

static void announce(struct world *world, const struct change_result *result)
{
    builder_note(world->builder, result);
}

static void count(struct world_stats *counted, const struct change_result *result)
{
    (void)result;
    counted->polygon_edits++;
}

const struct change_kind edit_polygons_kind = {
    .source = "polygons",
    .scope = CHANGE_OF_LOCALE,
    .is_of_layer = true,
    .logs_layer = true,
    .make = make,
    .persist = persist,
    .encode = encode,
    .decode = decode,
    .announce = announce,
    .count = count,
};
