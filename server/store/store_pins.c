/*
 * Pins: values of a locale that are kept under names (docs/internals/pins.md).
 *
 * Problem: a pin must cost as little as an edit, whatever the size of the locale, and the value
 * must stay while tiles and files are overwritten. Approach: a pin copies the small rows (manifest,
 * layers, poses), and before a tile or a mesh's files are replaced, what pins need of them is kept.
 * So a value costs the tiles that have changed since, once, when they change on the disk.
 *
 * A pin at revision R has of each tile the row with the greatest rev up to R, in kept_tile or in
 * tile, and over it the samples that the log has up to R. When the log is about to lose samples,
 * the tiles that they make at each pin are computed from the same bytes as in a load: the row, and
 * the samples in their order. A tile that has not changed between a pin and now is written once, as
 * of the pin's revision.
 *
 * Invariant: each row of kept_tile is needed by a pin (NEEDED below), so a pin that goes removes
 * what only it needed, in the same transaction.
 */
#include "store/store_data.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_of(const struct row_cache_pin_layer *pinned, const struct row_cache_layer *layer)
{
    return strcmp(pinned->layer.id, layer->id) == 0 &&
           strcmp(pinned->layer.locale, layer->locale) == 0;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* The revisions of the pins that have a layer of that id, rising. malloc; NULL: none (*count 0), or
 * without memory. */
static uint64_t *revisions_of(const struct row_cache *cache, const struct row_cache_layer *layer,
                              size_t *count)
{
    uint64_t *out = NULL;

    *count = 0;
    for (size_t i = 0; i < cache->pin_layer_count; i++)
        *count += is_of(&cache->pin_layers[i], layer);
    if (*count == 0 || !(out = malloc(*count * sizeof *out)))
        return NULL;
    *count = 0;
    for (size_t i = 0; i < cache->pin_layer_count; i++) {
        size_t at = *count;

        if (!is_of(&cache->pin_layers[i], layer))
            continue;
        for (; at > 0 && out[at - 1] > cache->pin_layers[i].revision; at--)
            out[at] = out[at - 1];
        out[at] = cache->pin_layers[i].revision;
        ++*count;
    }
    return out;
}

/* A tile that is about to be replaced. */
struct keeping {
    struct store *store;
    const struct row_cache_layer *layer;
    uint32_t tx, ty, cols, rows;
    int64_t number;
    bool is_of_base;   /* it has no row */
    uint64_t revision; /* of its row */
    float *samples_m;  /* [rows][cols], with the samples of the log up to `cursor` */
    size_t cursor;     /* in the list of pending rows */
};

/* The next pending row from *at on that touches the tile, up to a revision; false: none. */
static bool next_touching(const struct keeping *k, uint64_t revision_max, size_t *at)
{
    const struct row_cache *cache = &k->store->cache;

    for (; *at < cache->pending_count; ++*at) {
        const struct row_cache_pending *row = &cache->pending[*at];

        if (!row->is_of_polygons && row_cache_is_of(row, k->layer) &&
            row_cache_touches(&k->layer->spec, row, k->tx, k->ty))
            return row->revision <= revision_max;
    }
    return false;
}

/* The samples of the row, or of the base where there is none, verified. */
static enum err_code read_tile(struct keeping *k, struct err *err)
{
    size_t bytes;
    sqlite3_stmt *read = store_ask(
        k->store,
        "SELECT number, rev, codec = 0 AND crc = row_crc(locale, layer, ty, tx, rev, codec, data), "
        "data FROM tile WHERE locale = ?1 AND layer = ?2 AND ty = ?3 AND tx = ?4",
        SQL_VALUES(sql_text(k->layer->locale), sql_text(k->layer->id), sql_integer(k->ty),
                   sql_integer(k->tx)),
        err);
    int rc;

    if (!read)
        return err->code;
    heightfield_tile_size(&k->layer->spec, k->tx, k->ty, &k->cols, &k->rows);
    bytes = (size_t)k->cols * k->rows * sizeof *k->samples_m;
    k->samples_m = malloc(bytes);
    if (!k->samples_m)
        return store_no_memory(k->store, "a pin", err);
    rc = sqlite3_step(read);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return store_write_error(k->store, rc, "a tile cannot be read", err);
    if (rc == SQLITE_DONE && k->layer->base[0]) {
        sqlite3_reset(read);
        k->is_of_base = true;
        if (!next_touching(k, UINT64_MAX, &(size_t){0})) { /* its base is all that pins need */
            k->revision = UINT64_MAX;
            return ERR_OK;
        }
        if (base_read_tile(k->store, k->layer, k->tx, k->ty, k->samples_m, err))
            k->store->has_failed = true;
        return err->code;
    }
    if (rc == SQLITE_DONE || sqlite3_column_int(read, 2) != 1 ||
        !column_bytes(read, 3, k->samples_m, bytes)) {
        sqlite3_reset(read);
        k->store->has_failed = true;
        return err_set(err, ERR_DAMAGED, "locale %s, layer %s, tile (%u, %u): its row is damaged",
                       k->layer->locale, k->layer->id, k->tx, k->ty);
    }
    k->number = sqlite3_column_int64(read, 0);
    k->revision = (uint64_t)sqlite3_column_int64(read, 1);
    sqlite3_reset(read);
    return ERR_OK;
}

static enum err_code keep_row(const struct keeping *k, struct err *err)
{
    return store_exec(k->store,
                      "INSERT INTO kept_tile SELECT NULL, locale, layer, ty, tx, rev, codec, crc, "
                      "data FROM tile WHERE number = ?1",
                      SQL_VALUES(sql_integer((uint64_t)k->number)), "cannot keep a tile", err);
}

static enum err_code keep_samples(const struct keeping *k, uint64_t revision, struct err *err)
{
    return store_exec(
        k->store,
        "INSERT INTO kept_tile VALUES (NULL, ?1, ?2, ?3, ?4, ?5, 0, "
        "row_crc(?1, ?2, ?3, ?4, ?5, 0, ?6), ?6)",
        SQL_VALUES(sql_text(k->layer->locale), sql_text(k->layer->id), sql_integer(k->ty),
                   sql_integer(k->tx), sql_integer(revision),
                   sql_blob(k->samples_m, (uint64_t)k->cols * k->rows * sizeof *k->samples_m)),
        "cannot keep a tile", err);
}

/* Applies the logged samples up to a revision; *any: there were some. */
static enum err_code go_on_to(struct keeping *k, uint64_t revision, bool *any, struct err *err)
{
    *any = false;
    for (; next_touching(k, revision, &k->cursor); k->cursor++) {
        struct overlay overlay = {.heights_m = NULL};

        if (overlay_read(k->store, &k->store->cache.pending[k->cursor], &overlay, err) == ERR_OK)
            overlay_apply(&overlay, k->tx, k->ty, k->cols, k->rows, k->cols, k->samples_m);
        free(overlay.heights_m);
        if (err->code) {
            k->store->has_failed = true;
            return err->code;
        }
        *any = true;
    }
    return ERR_OK;
}

static enum err_code keep(struct keeping *k, const uint64_t *pins, size_t count, uint64_t *next,
                          struct err *err)
{
    size_t first = 0, later;
    bool any;

    if (read_tile(k, err))
        return err->code;
    while (first < count && pins[first] < k->revision)
        first++;
    if (first == count)
        return ERR_OK;
    later = 0;
    if (!k->is_of_base && !next_touching(k, pins[first], &later) && keep_row(k, err))
        return err->code;
    for (size_t i = first; i < count; i++) {
        if (go_on_to(k, pins[i], &any, err))
            return err->code;
        later = k->cursor;
        if (any && next && !next_touching(k, UINT64_MAX, &later)) {
            *next = pins[i];
            return ERR_OK;
        }
        if (any && keep_samples(k, pins[i], err))
            return err->code;
    }
    return ERR_OK;
}

enum err_code pins_keep_tile(struct store *store, const struct row_cache_layer *layer, uint32_t tx,
                             uint32_t ty, uint64_t *next, struct err *err)
{
    struct keeping k = {.store = store, .layer = layer, .tx = tx, .ty = ty};
    size_t count;
    uint64_t *pins = revisions_of(&store->cache, layer, &count);

    err->code = ERR_OK;
    if (count == 0)
        return ERR_OK;
    if (!pins)
        return store_no_memory(store, "a pin", err);
    keep(&k, pins, count, next, err);
    free(k.samples_m);
    free(pins);
    return err->code;
}

/* ---- rows ----------------------------------------------------------------------------------- */

enum err_code pins_write(struct store *store, const struct row_cache_pin *pin, struct err *err)
{
    sqlite3_stmt *write = store_statement(
        store,
        "INSERT INTO pin VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
        "row_crc(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12))",
        err);

    if (!write)
        return err->code;
    sqlite3_bind_text(write, 1, pin->value.id, -1, SQLITE_STATIC);
    sqlite3_bind_text(write, 2, pin->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(write, 3, (int64_t)pin->value.revision);
    sqlite3_bind_int64(write, 4, pin->layers);
    sqlite3_bind_int64(write, 5, (int64_t)pin->value.transform_seq);
    bind_manifest(write, 6, &pin->value);
    return store_run(store, write, "cannot write a pin", err);
}

enum err_code pins_write_layer(struct store *store, const struct row_cache_pin_layer *pinned,
                               struct err *err)
{
    double pose[POSE_NUMBERS_MAX];
    size_t numbers = pose_numbers(&pinned->pose, pose);
    sqlite3_stmt *write = store_statement(
        store,
        "INSERT OR REPLACE INTO pin_layer VALUES (?1, ?13, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "?11, ?12, ?14, ?15, row_crc(?1, ?13, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
        "?14, ?15, ?16, ?17, ?18), ?16, ?17, ?18)",
        err);

    if (!write)
        return err->code;
    bind_layer(write, &pinned->layer);
    sqlite3_bind_text(write, 13, pinned->pin, -1, SQLITE_STATIC);
    if (pinned->has_pose) {
        sqlite3_bind_blob(write, 14, pose, (int)(numbers * sizeof *pose), SQLITE_STATIC);
        sqlite3_bind_int64(write, 15, (int64_t)pinned->pose.transform_seq);
    }
    bind_base(write, 16, &pinned->layer);
    return store_run(store, write, "cannot write a pin", err);
}

enum err_code pins_write_count(struct store *store, struct err *err)
{
    return store_exec(store, "UPDATE pinned SET pins = ?1, crc = row_crc(1, ?1) WHERE id = 1",
                      SQL_VALUES(sql_integer(store->cache.pin_count)),
                      "cannot write the table pinned", err);
}

struct row_cache_pin *pins_find(struct row_cache *cache, const char *locale, const char *name)
{
    for (size_t i = 0; i < cache->pin_count; i++)
        if (strcmp(cache->pins[i].name, name) == 0 && strcmp(cache->pins[i].value.id, locale) == 0)
            return &cache->pins[i];
    return NULL;
}

const struct row_cache_pin_layer *pins_find_layer(const struct row_cache *cache, const char *locale,
                                                  const char *pin, const char *id)
{
    for (size_t i = 0; i < cache->pin_layer_count; i++) {
        const struct row_cache_pin_layer *pinned = &cache->pin_layers[i];

        if (strcmp(pinned->layer.locale, locale) == 0 && strcmp(pinned->pin, pin) == 0 &&
            strcmp(pinned->layer.id, id) == 0)
            return pinned;
    }
    return NULL;
}

/* Removes a pin from the cache. */
static void forget(struct store *store, const char *locale, const char *name)
{
    struct row_cache *cache = &store->cache;
    struct row_cache_pin *pin;
    size_t kept = 0;

    for (size_t i = 0; i < cache->pin_layer_count; i++) {
        const struct row_cache_pin_layer *pinned = &cache->pin_layers[i];

        if (strcmp(pinned->layer.locale, locale) != 0 || strcmp(pinned->pin, name) != 0) {
            cache->pin_layers[kept++] = *pinned;
            continue;
        }
        base_count(cache, &pinned->layer, -1);
        if (pinned->layer.kind == STORE_MESH)
            files_note_old(store, &pinned->layer);
    }
    cache->pin_layer_count = kept;
    pin = pins_find(cache, locale, name);
    CHECK(pin);
    cache->pin_count--;
    memmove(pin, pin + 1, (size_t)(cache->pins + cache->pin_count - pin) * sizeof *pin);
}

/* Is k the tile of some pin: the last one up to its revision? */
#define SAME_TILE(o)                                                                               \
    o ".locale = k.locale AND " o ".layer = k.layer AND " o ".ty = k.ty AND " o                    \
      ".tx = k.tx AND " o ".rev > k.rev AND " o ".rev <= pin.rev"
#define NEEDED                                                                                     \
    "EXISTS (SELECT 1 FROM pin_layer p JOIN pin ON pin.locale = p.locale AND pin.name = p.pin "    \
    "WHERE p.locale = k.locale AND p.id = k.layer AND pin.rev >= k.rev AND "                       \
    "k.rev >= coalesce(p.since, 0) AND NOT EXISTS "                                                \
    "(SELECT 1 FROM kept_tile o WHERE " SAME_TILE("o") ") AND NOT EXISTS "                         \
                                                       "(SELECT 1 FROM tile t WHERE " SAME_TILE(   \
                                                           "t") "))"

enum err_code pins_drop(struct store *store, const char *locale, const char *name, struct err *err)
{
    const struct sql_value *pin = SQL_VALUES(sql_text(locale), sql_text(name));

    forget(store, locale, name);
    if (store_exec(store, "DELETE FROM pin WHERE locale = ?1 AND name = ?2", pin,
                   "cannot remove a pin", err) ||
        store_exec(store, "DELETE FROM pin_layer WHERE locale = ?1 AND pin = ?2", pin,
                   "cannot remove a pin", err) ||
        store_exec(store, "DELETE FROM kept_tile AS k WHERE k.locale = ?1 AND NOT " NEEDED,
                   SQL_VALUES(sql_text(locale)), "cannot remove a pin", err))
        return err->code;
    return pins_write_count(store, err);
}

enum err_code store_drop_pin(struct store *store, const char *locale, const char *name,
                             struct err *err)
{
    CHECK(store->is_in_transaction && !store->has_failed);
    return pins_drop(store, locale, name, err) ? err->code : bases_sweep(store, err);
}

enum err_code pins_drop_locale(struct store *store, const char *locale, struct err *err)
{
    const struct row_cache *cache = &store->cache;

    err->code = ERR_OK;
    for (size_t i = cache->pin_count; i-- > 0;) {
        const struct row_cache_pin pin = cache->pins[i];

        if (strcmp(pin.value.id, locale) == 0 && !base_is(&pin) &&
            pins_drop(store, locale, pin.name, err))
            return err->code;
    }
    return ERR_OK;
}

/* A layer as it is, under a pin. */
static enum err_code put_layer(struct store *store, const char *name, uint64_t revision,
                               const struct row_cache_layer *layer,
                               const struct store_pin_pose *poses, size_t count, struct err *err)
{
    struct row_cache_pin_layer *pinned = row_cache_add_pin_layer(&store->cache);

    if (!pinned)
        return store_no_memory(store, "a pin", err);
    snprintf(pinned->pin, sizeof pinned->pin, "%s", name);
    pinned->revision = revision;
    pinned->layer = *layer;
    pinned->layer.behind = NULL;
    pinned->layer.behind_count = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(poses[i].layer, layer->id) == 0) {
            pinned->has_pose = true;
            pinned->pose = poses[i].pose;
        }
    base_count(&store->cache, &pinned->layer, 1);
    return pins_write_layer(store, pinned, err);
}

enum err_code store_put_pin(struct store *store, const char *locale_id, const char *name,
                            uint64_t transform_seq, const struct store_pin_pose *poses,
                            size_t count, struct err *err)
{
    struct row_cache *cache = &store->cache;
    const struct row_cache_locale *locale = row_cache_locale(cache, locale_id);
    struct row_cache_pin *pin;

    CHECK(store->is_in_transaction && !store->has_failed);
    CHECK(locale && !locale->row.is_deleted);
    if (pins_find(cache, locale_id, name) && store_drop_pin(store, locale_id, name, err))
        return err->code;
    pin = row_cache_add_pin(cache);
    if (!pin)
        return store_no_memory(store, "a pin", err);
    snprintf(pin->name, sizeof pin->name, "%s", name);
    pin->value = locale->row;
    pin->value.transform_seq = transform_seq;
    pin->layers = locale->layers;
    if (pins_write(store, pin, err))
        return err->code;
    for (const struct row_cache_layer *layer = locale->first; layer; layer = layer->next)
        if (put_layer(store, name, locale->row.revision, layer, poses, count, err))
            return err->code;
    return pins_write_count(store, err);
}

/* ---- meshes --------------------------------------------------------------------------------- */

static bool has_same_files(const struct row_cache_layer *a, const struct row_cache_layer *b)
{
    return memcmp(a->mesh, b->mesh, sizeof a->mesh) == 0 &&
           memcmp(a->polygons, b->polygons, sizeof a->polygons) == 0;
}

/* Writes the mesh of a pin, made of its files and the logged edits, to files of its own. */
static enum err_code save_mesh(struct store *store, struct row_cache_pin_layer *pinned,
                               struct err *err)
{
    struct row_cache_layer *layer = &pinned->layer;
    struct store_loaded_layer made = {.mesh = NULL};

    if (files_load_mesh(store, layer->mesh, &made.mesh, err) == ERR_OK &&
        files_load_polygons(store, layer->polygons, &made.polygons, err) == ERR_OK &&
        meshes_apply_log(store, layer, pinned->revision, &made, err) == ERR_OK)
        files_save_mesh(store, made.mesh, &made.polygons, layer->mesh, layer->polygons, err);
    if (made.mesh)
        mesh_unref(made.mesh);
    polygon_set_free(&made.polygons);
    if (err->code != ERR_OK) {
        store->has_failed = true;
        if (err->code != ERR_NO_MEMORY && err->code != ERR_DAMAGED)
            store_poison(store, err);
    }
    return err->code;
}

enum err_code pins_keep_mesh(struct store *store, const struct row_cache_layer *before,
                             const struct row_cache_layer *now, uint64_t revision, struct err *err)
{
    struct row_cache *cache = &store->cache;

    err->code = ERR_OK;
    for (size_t i = 0; i < cache->pin_layer_count; i++) {
        struct row_cache_pin_layer *pinned = &cache->pin_layers[i];

        if (!is_of(pinned, before) || pinned->layer.kind != STORE_MESH ||
            !has_same_files(&pinned->layer, before))
            continue;
        if (revision != 0 && pinned->revision >= revision) {
            memcpy(pinned->layer.mesh, now->mesh, sizeof now->mesh);
            memcpy(pinned->layer.polygons, now->polygons, sizeof now->polygons);
        } else if (!meshes_are_logged(cache, &pinned->layer, 0, pinned->revision)) {
            continue;
        } else if (save_mesh(store, pinned, err)) {
            return err->code;
        }
        if (pins_write_layer(store, pinned, err))
            return err->code;
    }
    return ERR_OK;
}

enum err_code pins_keep_layer(struct store *store, const struct row_cache_layer *layer,
                              struct err *err)
{
    const struct row_cache *cache = &store->cache;
    bool any = false;

    err->code = ERR_OK;
    for (size_t i = 0; i < cache->pin_layer_count && !any; i++)
        any = is_of(&cache->pin_layers[i], layer);
    if (!any)
        return ERR_OK;
    if (layer->kind == STORE_MESH)
        return pins_keep_mesh(store, layer, NULL, 0, err);
    struct heightfield_tile_layout layout = heightfield_tile_layout(&layer->spec);

    for (uint32_t ty = 0; ty < layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < layout.tile_cols; tx++)
            if (pins_keep_tile(store, layer, tx, ty, NULL, err))
                return err->code;
    return ERR_OK;
}

/* ---- check ---------------------------------------------------------------------------------- */

enum err_code pins_check(struct store *store, store_report report, void *context, struct err *err)
{
    static const char sql[] = "SELECT count(*) FROM kept_tile AS k WHERE NOT " NEEDED;
    struct rows rows = rows_open(store->db, sql, NULL);
    long long unneeded = rows_next(&rows) ? sqlite3_column_int64(rows.row, 0) : 0;
    int rc = rows_close(&rows);
    char message[160] = "";

    err->code = ERR_OK;
    if (unneeded > 0)
        snprintf(message, sizeof message, "table kept_tile: no pin needs %lld of its tiles",
                 unneeded);
    else if ((rc & 0xff) == SQLITE_NOMEM)
        err_set(err, ERR_NO_MEMORY, "no memory to check the tiles of pins");
    else if (rc != SQLITE_ROW)
        snprintf(message, sizeof message, "table kept_tile cannot be read: %.80s",
                 sqlite3_errstr(rc));
    if (message[0])
        report(context, "", message);
    return err->code;
}
