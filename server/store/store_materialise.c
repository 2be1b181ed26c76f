/*
 * Stale tiles: the lazy write-back of logged edits.
 *
 * Problem: an edit must be durable at the cost of its own samples, not of the tiles that it
 * touches (264 KB each). Approach: the log's row is the edit. From time to time the touched tiles
 * are written once, whatever the number of edits, and in the same transaction the samples are
 * removed from the log. So at each commit tiles and logged samples together are the field, and a
 * load applies the logged samples; to apply samples that a tile has already changes nothing.
 *
 * Rows stay in the log without their samples, for diffs and repeats, up to log_rows_max a locale.
 *
 * A fork's tiles are worth a row only when much of them has changed: of a thousand forks with one
 * edit each, the tiles would be a thousand times 264 KB beside some hundred bytes of samples. So
 * the samples of a fork's layer stay in the log until they have a quarter of the bytes of the tiles
 * that they touch. All of a layer's stale tiles are written, or none.
 */
#include "store/store_data.h"

#include "base/check.h"

#include <string.h>

enum {
    LEFT_SHARE = 4,       /* of the tiles' bytes, at most, are left in the log */
    LEFT_ROW_BYTES = 1024 /* that a row costs beside its samples, in memory and in a load */
};

static bool is_behind(const struct row_cache_layer *layer, size_t tile)
{
    return layer->behind[tile / 64] >> tile % 64 & 1;
}

enum err_code tiles_write_behind(struct store *store, struct row_cache_layer *layer,
                                 const struct heightfield *field, uint64_t revision, bool is_of_log,
                                 struct err *err)
{
    struct heightfield_tile_layout layout = heightfield_tile_layout(&layer->spec);
    const struct heightfield_spec *spec = heightfield_spec(field);

    CHECK(spec->cols == layer->spec.cols && spec->rows == layer->spec.rows);
    for (uint32_t ty = 0; ty < layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < layout.tile_cols; tx++) {
            uint64_t as_of = revision;

            if (is_behind(layer, (size_t)ty * layout.tile_cols + tx) &&
                (pins_keep_tile(store, layer, tx, ty, is_of_log ? &as_of : NULL, err) ||
                 store_write_tile(store, layer, field, as_of, tx, ty, err)))
                return err->code;
        }
    row_cache_clear_behind(&store->cache, layer);
    return ERR_OK;
}

static bool is_whole(const void *context, const struct row_cache_pending *row)
{
    struct store *store = (struct store *)(uintptr_t)context; /* only to look up */
    const struct row_cache_locale *locale = row_cache_locale(&store->cache, row->locale);
    const struct row_cache_layer *layer;

    if (row->is_of_polygons || (locale && locale->is_damaged))
        return false;
    if (!locale || locale->left_edits == 0)
        return true;
    layer = row_cache_layer(&store->cache, row->locale, row->layer);
    return !layer || !layer->is_left;
}

/* Are a fork's logged samples little beside its stale tiles? */
static bool has_little(const struct store *store, const struct row_cache_locale *locale,
                       const struct row_cache_layer *layer)
{
    const struct row_cache *cache = &store->cache;
    const uint64_t tile_bytes = 257 * 257 * sizeof(float);
    uint64_t bytes = 0;

    if (!layer->base[0] || locale->log_last - locale->log_first >= store->log_rows_max)
        return false; /* a log is not shortened before samples that are only there */
    for (size_t i = 0; i < cache->pending_count; i++)
        if (row_cache_is_of(&cache->pending[i], layer))
            bytes += cache->pending[i].bytes + LEFT_ROW_BYTES;
    return bytes * LEFT_SHARE < layer->behind_count * tile_bytes;
}

static void leave_in_log(struct row_cache *cache, struct row_cache_layer *layer)
{
    struct row_cache_locale *locale = row_cache_locale(cache, layer->locale);

    layer->is_left = true;
    for (size_t i = 0; i < cache->pending_count; i++) {
        struct row_cache_pending *row = &cache->pending[i];

        if (row->is_left || !row_cache_is_of(row, layer))
            continue;
        row->is_left = true;
        locale->left_edits++;
        cache->left_edits++;
        cache->left_bytes += row->bytes;
    }
}

/* The first revision of a locale whose samples or polygons are only in the log, or `otherwise`. */
static uint64_t first_needed(const struct store *store, const char *locale, uint64_t otherwise)
{
    for (size_t i = 0; i < store->cache.pending_count; i++) {
        const struct row_cache_pending *row = &store->cache.pending[i];

        if (strcmp(row->locale, locale) == 0)
            return row->revision < otherwise ? row->revision : otherwise;
    }
    return otherwise;
}

enum err_code store_trim_log(struct store *store, struct row_cache_locale *locale, struct err *err)
{
    uint64_t first;

    if (locale->log_first > locale->log_last ||
        locale->log_last - locale->log_first < store->log_rows_max)
        return ERR_OK;
    first = first_needed(store, locale->row.id, locale->log_last - store->log_rows_max + 1);
    if (first <= locale->log_first)
        return ERR_OK;
    locale->log_first = first;
    if (store_exec(store, "DELETE FROM edit WHERE locale = ?1 AND rev < ?2",
                   SQL_VALUES(sql_text(locale->row.id), sql_integer(locale->log_first)),
                   "cannot shorten the log", err))
        return err->code;
    return row_cache_write_locale(store, locale, err);
}

static enum err_code write_all(struct store *store, store_field_of field_of, void *context,
                               struct err *err)
{
    struct row_cache *cache = &store->cache;

    for (size_t i = 0; i < cache->locale_count; i++) {
        const struct row_cache_locale *locale = cache->locales[i];

        for (struct row_cache_layer *layer = locale->first; layer; layer = layer->next) {
            const struct heightfield *field;

            if (!layer->behind || layer->is_left || locale->is_damaged)
                continue;
            if (has_little(store, locale, layer)) {
                leave_in_log(cache, layer);
                continue;
            }
            field = field_of(context, layer->locale, layer->id);
            if (!field)
                row_cache_clear_behind(cache, layer);
            else if (tiles_write_behind(store, layer, field, locale->row.revision, true, err))
                return err->code;
        }
    }
    if (store_drop_logged(store, is_whole, store, err))
        return err->code;
    for (size_t i = 0; i < cache->locale_count; i++) {
        struct row_cache_locale *locale = cache->locales[i];

        if (locale->is_damaged || locale->left_edits > 0)
            continue;
        if (locale->applied_rev != locale->row.revision) {
            locale->applied_rev = locale->row.revision;
            if (row_cache_write_locale(store, locale, err))
                return err->code;
        }
        if (store_trim_log(store, locale, err))
            return err->code;
    }
    return ERR_OK;
}

enum err_code store_materialise(struct store *store, store_field_of field_of, void *context,
                                struct err *err)
{
    if (store_begin(store, err))
        return err->code;
    if (write_all(store, field_of, context, err)) {
        store_rollback(store);
        return err->code;
    }
    return store_commit(store, err);
}
