/*
 * Stale meshes: the lazy write-back of logged edits of polygons.
 *
 * Problem: an edit of one polygon must be durable at the cost of that polygon, not of the mesh's
 * image, which may have hundreds of megabytes. Approach: as for samples, the log's row has the
 * added and removed polygons (polygon_edit_encode), and the layer's files are those of an older
 * revision. When the log has much of a mesh, and at the end, its files are written as a whole
 * (store_put_mesh), before a transaction that names them and removes the rows. So at each commit
 * the files and the logged edits together are the layer.
 *
 * A load applies the logged edits to the polygons and builds the mesh of the result: the numbers of
 * polygons follow from the edits, and a rebuilt mesh has the answers of an edited one, to the bit,
 * if its frame is the same. An edit farther out than the mesh was exact gave it another frame
 * (mesh_edit_fits), which follows from the polygons at that time; so it is built there, too.
 *
 * Unlike samples, an edit of polygons must not be applied twice. So the rows that the files include
 * are removed in the same transaction that names the files.
 */
#include "store/store_data.h"

#include "base/check.h"
#include "terrain/mesh/mesh_edit.h"

#include <stdlib.h>
#include <string.h>

static bool is_row_of(const struct row_cache_pending *row, const char *locale, const char *layer)
{
    return row->is_of_polygons && strcmp(row->layer, layer) == 0 &&
           strcmp(row->locale, locale) == 0;
}

void store_mesh_behind(const struct store *store, const char *locale, const char *layer,
                       struct store_mesh_behind *out)
{
    const struct row_cache *cache = &store->cache;

    *out = (struct store_mesh_behind){0, 0};
    for (size_t i = 0; cache->polygon_edits > 0 && i < cache->pending_count; i++) {
        if (!is_row_of(&cache->pending[i], locale, layer))
            continue;
        out->edits++;
        out->bytes += cache->pending[i].bytes;
    }
}

bool meshes_are_logged(const struct row_cache *cache, const struct row_cache_layer *layer,
                       uint64_t after, uint64_t upto)
{
    for (size_t i = 0; cache->polygon_edits > 0 && i < cache->pending_count; i++) {
        const struct row_cache_pending *row = &cache->pending[i];

        if (row->is_of_polygons && row->revision > after && row->revision <= upto &&
            row_cache_is_of(row, layer))
            return true;
    }
    return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A layer's rows up to a revision. */
struct held {
    const char *locale, *layer;
    uint64_t revision;
};

static bool is_held(const void *context, const struct row_cache_pending *row)
{
    const struct held *held = context;

    return is_row_of(row, held->locale, held->layer) && row->revision <= held->revision;
}

static enum err_code put_mesh(struct store *store, struct row_cache_layer *layer,
                              const struct row_cache_layer *before, const struct mesh *mesh,
                              const struct polygon_set *polygons, const struct held *held,
                              struct err *err)
{
    if (files_save_mesh(store, mesh, polygons, layer->mesh, layer->polygons, err)) {
        store->has_failed = true;
        if (err->code != ERR_NO_MEMORY)
            store_poison(store, err);
        return err->code;
    }
    if (pins_keep_mesh(store, before, layer, held->revision, err) ||
        store_write_layer_row(store, layer, err))
        return err->code;
    if (store_drop_logged(store, is_held, held, err))
        return err->code;
    return store_trim_log(store, row_cache_locale(&store->cache, layer->locale), err);
}

enum err_code store_put_mesh(struct store *store, const char *locale, const char *layer_id,
                             const struct mesh *mesh, const struct polygon_set *polygons,
                             uint64_t revision, struct err *err)
{
    const struct held held = {locale, layer_id, revision};
    struct row_cache_layer *layer, before;

    if (store_begin(store, err))
        return err->code;
    layer = row_cache_layer(&store->cache, locale, layer_id);
    CHECK(layer && layer->kind == STORE_MESH);
    before = *layer;
    if (put_mesh(store, layer, &before, mesh, polygons, &held, err)) {
        store_rollback(store);
        return err->code;
    }
    if (store_commit(store, err))
        return err->code;
    files_note_old(store, &before);
    files_sweep_old(store);
    return ERR_OK;
}

/* ---- load ------------------------------------------------------------------------------------ */

static enum err_code read_row(struct store *store, sqlite3_stmt *read,
                              const struct row_cache_pending *row, struct polygon_edit *out,
                              struct err *err)
{
    int rc;

    sqlite3_reset(read);
    sqlite3_bind_int64(read, 1, (int64_t)row->sequence);
    rc = sqlite3_step(read);
    if (rc == SQLITE_ROW && sqlite3_column_int(read, 0) == 1)
        return polygon_edit_decode(sqlite3_column_blob(read, 1),
                                   (size_t)sqlite3_column_bytes(read, 1), out, err);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return store_sqlite_error(store, store->db, rc, false, "the log cannot be read", err);
    return err_set(err, ERR_DAMAGED, "the logged polygons of revision %llu are damaged (checksum)",
                   (unsigned long long)row->revision);
}

/* The logged edits of a layer up to a revision, oldest first; *count of them are made, also on an
 * error. */
static enum err_code read_rows(struct store *store, const struct row_cache_layer *layer,
                               uint64_t revision_max, struct polygon_edit *edits, size_t *count,
                               struct err *err)
{
    static const char sql[] = "SELECT codec = 1 AND data_crc = row_crc(sequence, codec, data), "
                              "data FROM edit WHERE sequence = ?1";
    const struct row_cache *cache = &store->cache;
    sqlite3_stmt *read = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &read, NULL);

    err->code = ERR_OK;
    if (rc != SQLITE_OK)
        store_sqlite_error(store, store->db, rc, false, "the log cannot be read", err);
    for (size_t i = 0; !err->code && i < cache->pending_count; i++)
        if (is_row_of(&cache->pending[i], layer->locale, layer->id) &&
            cache->pending[i].revision <= revision_max &&
            read_row(store, read, &cache->pending[i], &edits[*count], err) == ERR_OK)
            ++*count;
    sqlite3_finalize(read);
    return err->code;
}

static struct polygon_soup soup_of(const struct polygon_set *set)
{
    return (struct polygon_soup){set->vertices, set->vertex_count, set->corners, set->starts,
                                 set->polygon_count};
}

/* The layer's mesh of its polygons as they are now, in the frame that edits in place have kept. */
static enum err_code build(const struct row_cache_layer *layer, struct store_loaded_layer *out,
                           struct err *err)
{
    const struct polygon_soup soup = soup_of(&out->polygons);
    const struct mesh_options options = {
        .gravity = {layer->gravity[0], layer->gravity[1], layer->gravity[2]},
        .space = mesh_space(out->mesh),
        .slack_times = MESH_EDIT_SLACK,
        .like = out->mesh};
    struct mesh *mesh = mesh_create(&soup, &options, NULL, err);

    if (!mesh && err->code != ERR_NO_MEMORY) {
        struct err reason = *err;

        err_set(err, ERR_DAMAGED, "its logged polygons: %.200s", reason.msg);
    }
    if (!mesh)
        return err->code;
    mesh_unref(out->mesh);
    out->mesh = mesh;
    return ERR_OK;
}

/* How many of the edits the mesh takes in its frame, and the next one, which gives it another. */
static size_t edits_of_frame(const struct mesh *mesh, const struct polygon_edit *edits,
                             size_t count)
{
    for (size_t i = 0; mesh_space(mesh).frame == MESH_CARTESIAN && i < count; i++) {
        const struct polygon_soup added = soup_of(&edits[i].add);

        if (!mesh_edit_fits(mesh, &added))
            return i + 1;
    }
    return count;
}

static enum err_code apply(const struct row_cache_layer *layer, const struct polygon_edit *edits,
                           size_t count, struct store_loaded_layer *out, struct err *err)
{
    struct polygon_set after;

    err->code = ERR_OK;
    for (size_t i = 0, some; i < count && err->code == ERR_OK; i += some) {
        some = edits_of_frame(out->mesh, edits + i, count - i);
        if (polygon_set_edited_all(&out->polygons, edits + i, some, &after, err))
            break;
        polygon_set_free(&out->polygons);
        out->polygons = after;
        out->is_behind = true;
        build(layer, out, err);
    }
    return err->code;
}

enum err_code meshes_apply_log(struct store *store, const struct row_cache_layer *layer,
                               uint64_t revision_max, struct store_loaded_layer *out,
                               struct err *err)
{
    struct store_mesh_behind behind;
    struct polygon_edit *edits;
    size_t count = 0;

    store_mesh_behind(store, layer->locale, layer->id, &behind);
    if (behind.edits == 0)
        return ERR_OK;
    edits = calloc(behind.edits, sizeof *edits);
    if (!edits)
        return err_set(err, ERR_NO_MEMORY, "no memory for the log");
    if (read_rows(store, layer, revision_max, edits, &count, err) == ERR_OK)
        apply(layer, edits, count, out, err);
    for (size_t i = 0; i < count; i++)
        polygon_edit_free(&edits[i]);
    free(edits);
    return err->code;
}
