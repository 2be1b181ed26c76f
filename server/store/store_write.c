/*
 * Writes: locales, layers, the log, models.
 *
 * Each call writes its rows into the open transaction and updates the cache. The order within a
 * transaction is the caller's: to replace a layer removes samples that were logged for it before;
 * samples that are logged after it make its tiles stale.
 */
#include "store/store_data.h"

#include "base/check.h"
#include "base/content_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_transaction(const struct store *store)
{
    CHECK(store->is_in_transaction && !store->has_failed);
}

/* ---- tiles and layers ----------------------------------------------------------------------- */

enum err_code store_write_tile(struct store *store, const struct row_cache_layer *layer,
                               const struct heightfield *field, uint64_t revision, uint32_t tx,
                               uint32_t ty, struct err *err)
{
    static const char sql[] =
        "INSERT INTO tile VALUES (NULL, ?1, ?2, ?3, ?4, ?5, 0, "
        "row_crc(?1, ?2, ?3, ?4, ?5, 0, ?6), ?6) ON CONFLICT (locale, layer, ty, tx) "
        "DO UPDATE SET rev = excluded.rev, crc = excluded.crc, data = excluded.data";
    float *packed;
    size_t bytes;
    const float *samples = heightfield_tile_pack(field, tx, ty, &bytes, &packed);
    enum err_code code;

    if (!samples)
        return store_no_memory(store, "a tile", err);
    code = store_exec(store, sql,
                      SQL_VALUES(sql_text(layer->locale), sql_text(layer->id), sql_integer(ty),
                                 sql_integer(tx), sql_integer(revision), sql_blob(samples, bytes)),
                      "cannot write a tile", err);
    free(packed);
    return code;
}

static enum err_code run_on_layer(struct store *store, const char *sql, const char *locale,
                                  const char *layer, const char *what, struct err *err)
{
    return store_exec(store, sql, SQL_VALUES(sql_text(locale), sql_text(layer)), what, err);
}

#define DELETE_TILES "DELETE FROM tile WHERE locale = ?1 AND layer = ?2"
#define DELETE_LAYER "DELETE FROM layer WHERE locale = ?1 AND id = ?2"

static bool is_of_layer(const void *context, const struct row_cache_pending *row)
{
    return row_cache_is_of(row, context);
}

enum err_code store_drop_logged(struct store *store,
                                bool (*is_gone)(const void *context,
                                                const struct row_cache_pending *row),
                                const void *context, struct err *err)
{
    /* to set the key makes SQLite delete and insert the row, so that pages are joined and freed */
    static const char sql[] = "UPDATE edit SET sequence = ?1, codec = NULL, data = NULL, "
                              "data_crc = row_crc(?1, NULL, NULL) WHERE sequence = ?1";
    struct row_cache *cache = &store->cache;
    size_t kept = 0;

    for (size_t i = 0; i < cache->pending_count; i++) {
        const struct row_cache_pending row = cache->pending[i];

        if (!is_gone(context, &row)) {
            cache->pending[kept++] = row;
            continue;
        }
        if (store_exec(store, sql, SQL_VALUES(sql_integer(row.sequence)),
                       "cannot let go of logged samples", err))
            return err->code;
        cache->pending_bytes -= row.bytes;
        if (row.is_left) {
            row_cache_locale(cache, row.locale)->left_edits--;
            cache->left_edits--;
            cache->left_bytes -= row.bytes;
        }
        cache->polygon_edits -= row.is_of_polygons;
        cache->polygon_bytes -= row.is_of_polygons ? row.bytes : 0;
    }
    cache->pending_count = kept;
    return ERR_OK;
}

static enum err_code drop_contents(struct store *store, struct row_cache_layer *layer,
                                   struct err *err)
{
    if (pins_keep_layer(store, layer, err) || store_drop_logged(store, is_of_layer, layer, err))
        return err->code;
    row_cache_clear_behind(&store->cache, layer);
    base_count(&store->cache, layer, -1);
    layer->base[0] = '\0';
    layer->base_revision = layer->since = 0;
    return layer->kind == STORE_HEIGHTFIELD ? run_on_layer(store, DELETE_TILES, layer->locale,
                                                           layer->id, "cannot remove tiles", err)
                                            : ERR_OK;
}

void bind_layer(sqlite3_stmt *write, const struct row_cache_layer *layer)
{
    const struct heightfield_spec *spec = &layer->spec;
    const double grid[4] = {spec->origin_x_m, spec->origin_y_m, spec->spacing_x_m,
                            spec->spacing_y_m};

    sqlite3_bind_text(write, 1, layer->locale, -1, SQLITE_STATIC);
    sqlite3_bind_text(write, 2, layer->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(write, 3, layer->position);
    sqlite3_bind_int(write, 4, (int)layer->kind);
    sqlite3_bind_int(write, 5, layer->role);
    if (layer->kind == STORE_HEIGHTFIELD) {
        sqlite3_bind_int64(write, 6, spec->cols);
        sqlite3_bind_int64(write, 7, spec->rows);
        sqlite3_bind_int64(write, 8, spec->leaf_cells);
        sqlite3_bind_blob(write, 9, grid, sizeof grid, SQLITE_TRANSIENT);
    } else {
        sqlite3_bind_blob(write, 10, layer->gravity, sizeof layer->gravity, SQLITE_STATIC);
        sqlite3_bind_blob(write, 11, layer->mesh, sizeof layer->mesh, SQLITE_STATIC);
        sqlite3_bind_blob(write, 12, layer->polygons, sizeof layer->polygons, SQLITE_STATIC);
    }
}

void bind_base(sqlite3_stmt *write, int at, const struct row_cache_layer *layer)
{
    if (!layer->base[0])
        return;
    sqlite3_bind_text(write, at, layer->base, -1, SQLITE_STATIC);
    sqlite3_bind_int64(write, at + 1, (int64_t)layer->base_revision);
    sqlite3_bind_int64(write, at + 2, (int64_t)layer->since);
}

enum err_code store_write_layer_row(struct store *store, const struct row_cache_layer *layer,
                                    struct err *err)
{
    sqlite3_stmt *write = store_statement(
        store,
        "INSERT INTO layer VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
        "row_crc(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15), "
        "?13, ?14, ?15) "
        "ON CONFLICT (locale, id) DO UPDATE SET position = excluded.position, "
        "kind = excluded.kind, role = excluded.role, cols = excluded.cols, "
        "rows = excluded.rows, leaf_cells = excluded.leaf_cells, grid = excluded.grid, "
        "gravity = excluded.gravity, mesh = excluded.mesh, polygons = excluded.polygons, "
        "crc = excluded.crc, base = excluded.base, base_rev = excluded.base_rev, "
        "since = excluded.since",
        err);

    if (!write)
        return err->code;
    bind_layer(write, layer);
    bind_base(write, 13, layer);
    return store_run(store, write, "cannot write a layer", err);
}

static enum err_code put_tiles(struct store *store, const struct row_cache_layer *layer,
                               const struct heightfield *field, uint64_t revision, struct err *err)
{
    struct heightfield_tile_layout layout = heightfield_tile_layout(&layer->spec);

    for (uint32_t ty = 0; ty < layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < layout.tile_cols; tx++)
            if (store_write_tile(store, layer, field, revision, tx, ty, err))
                return err->code;
    return ERR_OK;
}

/* The layer's entry in the cache, emptied. */
static struct row_cache_layer *layer_slot(struct store *store, struct row_cache_locale *locale,
                                          const char *id, struct err *err)
{
    struct row_cache_layer *layer = row_cache_layer(&store->cache, locale->row.id, id);

    if (layer)
        return drop_contents(store, layer, err) ? NULL : layer;
    layer = row_cache_add_layer(&store->cache, locale->row.id, id);
    if (!layer) {
        store_no_memory(store, "a layer", err);
        return NULL;
    }
    locale->layers++;
    return row_cache_write_locale(store, locale, err) ? NULL : layer;
}

enum err_code store_put_layer(struct store *store, const struct store_layer *put, struct err *err)
{
    struct row_cache_locale *locale = row_cache_locale(&store->cache, put->locale);
    struct row_cache_layer *layer;

    expect_transaction(store);
    CHECK(locale && !locale->row.is_deleted);
    layer = layer_slot(store, locale, put->id, err);
    if (!layer)
        return err->code;
    layer->position = put->position;
    layer->kind = put->kind;
    layer->role = put->role;
    if (put->kind == STORE_HEIGHTFIELD) {
        layer->spec = *heightfield_spec(put->field);
    } else {
        memcpy(layer->gravity, put->gravity, sizeof layer->gravity);
        if (files_save_mesh(store, put->mesh, put->polygons, layer->mesh, layer->polygons, err)) {
            store->has_failed = true;
            if (err->code != ERR_NO_MEMORY)
                store_poison(store, err);
            return err->code;
        }
    }
    if (store_write_layer_row(store, layer, err) || bases_sweep(store, err))
        return err->code;
    return put->kind == STORE_HEIGHTFIELD
               ? put_tiles(store, layer, put->field,
                           put->revision ? put->revision : locale->row.revision, err)
               : ERR_OK;
}

enum err_code store_put_field(struct store *store, const char *locale, const char *id,
                              const struct heightfield *was, const struct heightfield *field,
                              uint64_t revision, struct err *err)
{
    struct row_cache_layer *layer = row_cache_layer(&store->cache, locale, id);
    struct heightfield_tile_layout layout;

    expect_transaction(store);
    CHECK(layer && layer->kind == STORE_HEIGHTFIELD);
    layout = heightfield_tile_layout(&layer->spec);
    for (uint32_t ty = 0; ty < layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < layout.tile_cols; tx++) {
            const struct sample_rect inner = {tx * 256 + 1, ty * 256 + 1, 1, 1};

            if (heightfield_tile_serial(was, tx, ty) != heightfield_tile_serial(field, tx, ty) &&
                row_cache_mark_behind(&store->cache, layer, &inner, err))
                return store_no_memory(store, "a list of tiles", err);
        }
    if (layer->behind && tiles_write_behind(store, layer, field, revision, false, err))
        return err->code;
    return store_drop_logged(store, is_of_layer, layer, err);
}

static enum err_code remove_layer(struct store *store, struct row_cache_layer *layer,
                                  struct err *err)
{
    if (drop_contents(store, layer, err) || store_drop_pose(store, layer->locale, layer->id, err) ||
        run_on_layer(store, DELETE_LAYER, layer->locale, layer->id, "cannot remove a layer", err))
        return err->code;
    row_cache_remove_layer(&store->cache, layer);
    return ERR_OK;
}

enum err_code store_drop_layer(struct store *store, const char *locale_id, const char *id,
                               struct err *err)
{
    struct row_cache *cache = &store->cache;
    struct row_cache_locale *locale = row_cache_locale(cache, locale_id);
    struct row_cache_layer *layer = row_cache_layer(cache, locale_id, id);
    uint32_t position;

    expect_transaction(store);
    CHECK(locale && layer);
    position = layer->position;
    if (remove_layer(store, layer, err))
        return err->code;
    /* later ones move up, so that the next one's position is the last */
    for (layer = locale->first; layer; layer = layer->next) {
        if (layer->position <= position)
            continue;
        layer->position--;
        if (store_write_layer_row(store, layer, err))
            return err->code;
    }
    locale->layers--;
    return bases_sweep(store, err) ? err->code : row_cache_write_locale(store, locale, err);
}

/* ---- locales -------------------------------------------------------------------------------- */

static enum err_code remove_layers(struct store *store, const char *locale, struct err *err)
{
    struct row_cache_layer *layer;

    while ((layer = row_cache_first(&store->cache, locale)) != NULL)
        if (remove_layer(store, layer, err))
            return err->code;
    return ERR_OK;
}

enum err_code store_put_locale(struct store *store, const struct store_locale *put, struct err *err)
{
    struct row_cache_locale *locale = row_cache_locale(&store->cache, put->id);

    expect_transaction(store);
    if (!locale) {
        locale = row_cache_add_locale(&store->cache, put->id);
        if (!locale)
            return store_no_memory(store, "a locale", err);
        if (row_cache_write_store(store, err))
            return err->code;
    }
    CHECK(put->revision >= locale->row.revision);
    locale->row = *put;
    if (put->is_deleted) {
        if (pins_drop_locale(store, put->id, err) || remove_layers(store, put->id, err) ||
            poses_drop_locale(store, put->id, err) || history_drop_locale(store, put->id, err) ||
            bases_sweep(store, err))
            return err->code;
        locale->layers = 0;
    }
    return row_cache_write_locale(store, locale, err);
}

/* ---- the log -------------------------------------------------------------------------------- */

static void bind_edit(sqlite3_stmt *write, const struct store_edit *edit)
{
    sqlite3_bind_int64(write, 1, (int64_t)edit->sequence);
    sqlite3_bind_text(write, 2, edit->locale, -1, SQLITE_STATIC);
    sqlite3_bind_int64(write, 3, (int64_t)edit->revision);
    sqlite3_bind_int(write, 4, edit->kind);
    sqlite3_bind_text(write, 5, edit->layer, -1, SQLITE_STATIC);
    sqlite3_bind_text(write, 6, edit->source, -1, SQLITE_STATIC);
    if (edit->op_id[0]) {
        sqlite3_bind_text(write, 7, edit->op_id, -1, SQLITE_STATIC);
        sqlite3_bind_blob(write, 8, edit->request, sizeof edit->request, SQLITE_STATIC);
        if (edit->answer)
            sqlite3_bind_blob64(write, 11, edit->answer, edit->answer_bytes, SQLITE_STATIC);
    }
    if (edit->has_rect)
        sqlite3_bind_blob(write, 9, &edit->rect, sizeof edit->rect, SQLITE_STATIC);
    if (edit->has_bounds)
        sqlite3_bind_blob(write, 10, &edit->bounds, sizeof edit->bounds, SQLITE_STATIC);
    sqlite3_bind_int(write, 12, edit->heights_m || edit->polygons);
    if (edit->polygons) {
        sqlite3_bind_int(write, 13, LOG_POLYGONS);
        sqlite3_bind_blob64(write, 14, edit->polygons, edit->polygons_bytes, SQLITE_STATIC);
    }
    if (edit->heights_m) {
        sqlite3_bind_int(write, 13, LOG_SAMPLES);
        sqlite3_bind_blob64(write, 14, edit->heights_m,
                            (uint64_t)edit->rect.cols * edit->rect.rows * sizeof(float),
                            SQLITE_STATIC);
    }
}

static enum err_code remember_data(struct store *store, const struct store_edit *edit,
                                   struct err *err)
{
    struct row_cache_pending pending = {
        .sequence = edit->sequence, .revision = edit->revision, .rect = edit->rect};

    pending.is_of_polygons = edit->polygons != NULL;
    pending.bytes = pending.is_of_polygons
                        ? edit->polygons_bytes
                        : (uint64_t)edit->rect.cols * edit->rect.rows * sizeof(float);

    memcpy(pending.locale, edit->locale, sizeof pending.locale);
    memcpy(pending.layer, edit->layer, sizeof pending.layer);
    if (row_cache_add_pending(&store->cache, &pending, err) == ERR_OK)
        return ERR_OK;
    CHECK(err->code == ERR_NO_MEMORY); /* a caller's rect is inside a layer that is there */
    store->has_failed = true;
    return err->code;
}

enum err_code store_log(struct store *store, const struct store_edit *edit, struct err *err)
{
    struct row_cache_locale *locale = row_cache_locale(&store->cache, edit->locale);
    sqlite3_stmt *write;

    expect_transaction(store);
    CHECK(locale && (!edit->heights_m || (edit->has_rect && !edit->polygons)));
    CHECK(edit->revision > locale->log_last && edit->revision >= locale->row.revision);
    if (locale->log_first > locale->log_last) /* the log begins here */
        locale->log_first = edit->revision;
    else
        CHECK(edit->revision == locale->log_last + 1);
    write = store_statement(
        store,
        "INSERT INTO edit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
        "row_crc(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12), row_crc(?1, ?13, ?14), "
        "?13, ?14)",
        err);
    if (!write)
        return err->code;
    bind_edit(write, edit);
    if (store_run(store, write, "cannot write the log", err))
        return err->code;
    sqlite3_clear_bindings(write);
    locale->log_last = edit->revision;
    locale->row.revision = edit->revision;
    if (((edit->heights_m || edit->polygons) && remember_data(store, edit, err)) ||
        history_append(store, locale, edit, err))
        return err->code;
    return row_cache_write_locale(store, locale, err);
}

bool edit_row_read(sqlite3_stmt *row, struct store_edit *out)
{
    bool is_good;

    memset(out, 0, sizeof *out);
    out->sequence = (uint64_t)sqlite3_column_int64(row, 0);
    is_good = column_text(row, 1, out->locale, sizeof out->locale);
    out->revision = (uint64_t)sqlite3_column_int64(row, 2);
    out->kind = sqlite3_column_int(row, 3);
    is_good &= column_text(row, 4, out->layer, sizeof out->layer);
    is_good &= column_text(row, 5, out->source, sizeof out->source);
    if (sqlite3_column_type(row, 6) != SQLITE_NULL)
        is_good &= column_text(row, 6, out->op_id, sizeof out->op_id) &&
                   column_bytes(row, 7, out->request, sizeof out->request);
    out->has_rect = column_bytes(row, 8, &out->rect, sizeof out->rect);
    out->has_bounds = column_bytes(row, 9, &out->bounds, sizeof out->bounds);
    out->answer = sqlite3_column_blob(row, EDIT_COLUMN_ANSWER);
    out->answer_bytes = (size_t)sqlite3_column_bytes(row, EDIT_COLUMN_ANSWER);
    return is_good && sqlite3_column_int(row, 12) == 1;
}

enum err_code store_find_op(struct store *store, const char *op_id, bool *found,
                            struct store_edit *out, struct err *err)
{
    sqlite3_stmt *row =
        store_ask(store, "SELECT " EDIT_COLUMNS " FROM edit WHERE op_id = ?1 AND op_id IS NOT NULL",
                  SQL_VALUES(sql_text(op_id)), err);
    char *answer = NULL;
    int rc;

    *found = false;
    if (!row)
        return err->code;
    rc = sqlite3_step(row);
    if (rc == SQLITE_ROW && !edit_row_read(row, out)) {
        err_set(err, ERR_DAMAGED, "the log's row of op_id %s is damaged (checksum)", op_id);
        sqlite3_reset(row);
        return err->code;
    }
    if (rc == SQLITE_ROW && out->answer) {
        answer = malloc(out->answer_bytes ? out->answer_bytes : 1);
        if (answer)
            memcpy(answer, out->answer, out->answer_bytes);
        else
            rc = SQLITE_NOMEM;
    }
    free(store->op_row);
    store->op_row = answer;
    sqlite3_reset(row);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return store_sqlite_error(store, store->db, rc, false, "the log cannot be read", err);
    *found = rc == SQLITE_ROW;
    if (*found)
        out->answer = answer;
    return ERR_OK;
}

enum err_code store_find_deleted(struct store *store, const char *locale, uint64_t *revision,
                                 struct err *err)
{
    sqlite3_stmt *row = store_ask(store, "SELECT revision FROM locale WHERE id = ?1 AND is_deleted",
                                  SQL_VALUES(sql_text(locale)), err);
    int rc;

    *revision = 0;
    if (!row)
        return err->code;
    rc = sqlite3_step(row);
    if (rc == SQLITE_ROW)
        *revision = (uint64_t)sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return store_sqlite_error(store, store->db, rc, false, "a locale cannot be read", err);
    return ERR_OK;
}

/* ---- models --------------------------------------------------------------------------------- */

enum err_code store_put_model(struct store *store, const struct store_model *model, struct err *err)
{
    sqlite3_stmt *is_there =
        store_ask(store, "SELECT 1 FROM model WHERE id = ?1", SQL_VALUES(sql_text(model->id)), err);
    uint8_t hash[STORE_HASH_BYTES];
    int rc;

    expect_transaction(store);
    if (!is_there)
        return err->code;
    rc = sqlite3_step(is_there);
    sqlite3_reset(is_there);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return store_write_error(store, rc, "cannot look for a model", err);
    if (rc == SQLITE_DONE) {
        store->cache.models++;
        if (row_cache_write_store(store, err))
            return err->code;
    }
    content_hash(model->bytes, model->length, hash);
    if (store_exec(store,
                   "INSERT OR REPLACE INTO model VALUES (?1, ?2, ?3, "
                   "row_crc(?1, ?2, ?3, ?4), ?4)",
                   SQL_VALUES(sql_text(model->id), sql_blob(hash, sizeof hash),
                              sql_text(model->media_type),
                              sql_blob(model->length ? model->bytes : "", model->length)),
                   "cannot write a model", err))
        return err->code;
    return shells_sweep(store, err);
}

enum err_code store_drop_model(struct store *store, const char *id, struct err *err)
{
    expect_transaction(store);
    if (store_exec(store, "DELETE FROM model WHERE id = ?1", SQL_VALUES(sql_text(id)),
                   "cannot delete a model", err))
        return err->code;
    CHECK(store->cache.models > 0);
    store->cache.models--;
    if (shells_sweep(store, err))
        return err->code;
    return row_cache_write_store(store, err);
}
