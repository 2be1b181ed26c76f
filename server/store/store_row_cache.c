/*
 * A cache of the small tables: locales, layers, and the rows of the log whose samples are not in
 * tiles yet.
 *
 * Problem: an edit's commit must not cost queries, yet each row it writes is checksummed as a whole
 * and counted elsewhere. Approach: the writer has the rows in memory, changes them there and
 * writes them whole. Within a transaction the cache is ahead of the database; after a rollback it
 * is dropped and read again (store_begin).
 *
 * Invariants: behind_tiles is the sum of the layers' behind_count, which is the number of bits in
 * behind; a tile's bit is set exactly when a pending row touches it (or touched it, and was removed
 * when its layer's tiles were written); pending rows are in the order of their sequence.
 */
#include "store/store_data.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "base/content_hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns -------------------------------------------------------------------------------- */

bool column_text(sqlite3_stmt *row, int column, char *text, size_t size)
{
    const unsigned char *from = sqlite3_column_text(row, column);
    size_t length = from ? (size_t)sqlite3_column_bytes(row, column) : 0;

    if (!from || length >= size || strlen((const char *)from) != length) {
        text[0] = '\0';
        return false;
    }
    memcpy(text, from, length + 1);
    return true;
}

bool column_bytes(sqlite3_stmt *row, int column, void *bytes, size_t length)
{
    const void *from = sqlite3_column_blob(row, column);

    if (!from || (size_t)sqlite3_column_bytes(row, column) != length)
        return false;
    memcpy(bytes, from, length);
    return true;
}

/* ---- arrays --------------------------------------------------------------------------------- */

void row_cache_free(struct row_cache *cache)
{
    for (size_t i = 0; i < cache->locale_count; i++) {
        struct row_cache_locale *locale = cache->locales[i];

        for (struct row_cache_layer *layer = locale->first, *next; layer; layer = next) {
            next = layer->next;
            free(layer->behind);
            free(layer);
        }
        free(locale);
    }
    free(cache->locales);
    free(cache->chains);
    free(cache->pins);
    free(cache->pin_layers);
    free(cache->pending);
    memset(cache, 0, sizeof *cache);
}

/* The chain of an id. */
static struct row_cache_locale **chain_of(const struct row_cache *cache, const char *id)
{
    uint64_t hash = fnv1a(FNV1A_EMPTY, id, strlen(id));

    return &cache->chains[(hash ^ hash >> 32) & (cache->chain_count - 1)];
}

struct row_cache_locale *row_cache_locale(const struct row_cache *cache, const char *id)
{
    struct row_cache_locale *locale = cache->chain_count ? *chain_of(cache, id) : NULL;

    while (locale && strcmp(locale->row.id, id) != 0)
        locale = locale->chain;
    return locale;
}

struct row_cache_layer *row_cache_layer(const struct row_cache *cache, const char *locale,
                                        const char *id)
{
    struct row_cache_layer *layer = row_cache_first(cache, locale);

    while (layer && strcmp(layer->id, id) != 0)
        layer = layer->next;
    return layer;
}

struct row_cache_layer *row_cache_first(const struct row_cache *cache, const char *locale)
{
    const struct row_cache_locale *of = row_cache_locale(cache, locale);

    return of ? of->first : NULL;
}

static void put_into_chain(struct row_cache *cache, struct row_cache_locale *locale)
{
    struct row_cache_locale **chain = chain_of(cache, locale->row.id);

    locale->chain = *chain;
    *chain = locale;
}

/* At least as many chains as locales. */
static bool reserve_chains(struct row_cache *cache)
{
    size_t count = cache->chain_count ? 2 * cache->chain_count : 64;
    struct row_cache_locale **chains;

    if (cache->locale_count < cache->chain_count)
        return true;
    chains = calloc(count, sizeof *chains);
    if (!chains)
        return false;
    free(cache->chains);
    cache->chains = chains;
    cache->chain_count = count;
    for (size_t i = 0; i < cache->locale_count; i++)
        put_into_chain(cache, cache->locales[i]);
    return true;
}

struct row_cache_locale *row_cache_add_locale(struct row_cache *cache, const char *id)
{
    struct row_cache_locale *locale = NULL;

    if (!array_reserve((void **)&cache->locales, &cache->locale_room, cache->locale_count + 1,
                       sizeof locale))
        return NULL;
    if (reserve_chains(cache))
        locale = calloc(1, sizeof *locale);
    if (!locale)
        return NULL;
    snprintf(locale->row.id, sizeof locale->row.id, "%s", id);
    locale->log_first = 1;
    locale->at = cache->locale_count;
    cache->locales[cache->locale_count++] = locale;
    put_into_chain(cache, locale);
    return locale;
}

struct row_cache_layer *row_cache_add_layer(struct row_cache *cache, const char *locale,
                                            const char *id)
{
    struct row_cache_locale *of = row_cache_locale(cache, locale);
    struct row_cache_layer *layer = calloc(1, sizeof *layer), **last;

    CHECK(of);
    if (!layer)
        return NULL;
    for (last = &of->first; *last; last = &(*last)->next)
        continue;
    *last = layer;
    memcpy(layer->locale, of->row.id, sizeof layer->locale);
    snprintf(layer->id, sizeof layer->id, "%s", id);
    return layer;
}

struct row_cache_pin *row_cache_add_pin(struct row_cache *cache)
{

    if (!array_reserve((void **)&cache->pins, &cache->pin_room, cache->pin_count + 1,
                       sizeof *cache->pins))
        return NULL;
    memset(&cache->pins[cache->pin_count], 0, sizeof *cache->pins);
    return &cache->pins[cache->pin_count++];
}

struct row_cache_pin_layer *row_cache_add_pin_layer(struct row_cache *cache)
{

    if (!array_reserve((void **)&cache->pin_layers, &cache->pin_layer_room,
                       cache->pin_layer_count + 1, sizeof *cache->pin_layers))
        return NULL;
    memset(&cache->pin_layers[cache->pin_layer_count], 0, sizeof *cache->pin_layers);
    return &cache->pin_layers[cache->pin_layer_count++];
}

void row_cache_clear_behind(struct row_cache *cache, struct row_cache_layer *layer)
{
    cache->behind_tiles -= layer->behind_count;
    layer->is_left = false;
    layer->behind_count = 0;
    free(layer->behind);
    layer->behind = NULL;
}

void row_cache_remove_layer(struct row_cache *cache, struct row_cache_layer *layer)
{
    struct row_cache_layer **at = &row_cache_locale(cache, layer->locale)->first;

    while (*at != layer)
        at = &(*at)->next;
    *at = layer->next;
    row_cache_clear_behind(cache, layer);
    free(layer);
}

void row_cache_remove_locale(struct row_cache *cache, struct row_cache_locale *locale)
{
    struct row_cache_locale **chain = chain_of(cache, locale->row.id);
    struct row_cache_locale *last = cache->locales[--cache->locale_count];

    CHECK(!locale->first);
    while (*chain != locale)
        chain = &(*chain)->chain;
    *chain = locale->chain;
    cache->locales[locale->at] = last;
    last->at = locale->at;
    free(locale);
}

/* ---- stale tiles and files ----------------------------------------------------------------- */

/* The tiles that hold a sample of the rectangle: columns x0..x1, rows y0..y1. */
struct tile_span {
    uint32_t x0, y0, x1, y1;
};

static struct tile_span tile_span(const struct heightfield_spec *spec,
                                  const struct sample_rect *rect)
{
    struct heightfield_tile_layout layout = heightfield_tile_layout(spec);
    uint32_t right = rect->column + rect->cols - 1, top = rect->row + rect->rows - 1;
    /* a sample on a seam belongs to the tile before, too */
    struct tile_span span = {rect->column ? (rect->column - 1) / 256 : 0,
                             rect->row ? (rect->row - 1) / 256 : 0, right / 256, top / 256};

    if (span.x1 >= layout.tile_cols)
        span.x1 = layout.tile_cols - 1;
    if (span.y1 >= layout.tile_rows)
        span.y1 = layout.tile_rows - 1;
    return span;
}

static bool is_inside(const struct heightfield_spec *spec, const struct sample_rect *rect)
{
    return rect->cols > 0 && rect->rows > 0 && rect->cols <= spec->cols &&
           rect->rows <= spec->rows && rect->column <= spec->cols - rect->cols &&
           rect->row <= spec->rows - rect->rows;
}

bool row_cache_is_of(const struct row_cache_pending *row, const struct row_cache_layer *layer)
{
    return strcmp(row->layer, layer->id) == 0 && strcmp(row->locale, layer->locale) == 0;
}

bool row_cache_touches(const struct heightfield_spec *spec, const struct row_cache_pending *row,
                       uint32_t tx, uint32_t ty)
{
    struct tile_span span = tile_span(spec, &row->rect);

    return tx >= span.x0 && tx <= span.x1 && ty >= span.y0 && ty <= span.y1;
}

enum err_code row_cache_mark_behind(struct row_cache *cache, struct row_cache_layer *layer,
                                    const struct sample_rect *rect, struct err *err)
{
    struct heightfield_tile_layout layout = heightfield_tile_layout(&layer->spec);
    struct tile_span span = tile_span(&layer->spec, rect);

    if (!layer->behind) {
        size_t tiles = (size_t)layout.tile_cols * layout.tile_rows;

        layer->behind = calloc((tiles + 63) / 64, sizeof *layer->behind);
        if (!layer->behind)
            return err_set(err, ERR_NO_MEMORY, "no memory for the list of tiles behind");
    }
    for (uint32_t ty = span.y0; ty <= span.y1; ty++)
        for (uint32_t tx = span.x0; tx <= span.x1; tx++) {
            size_t bit = (size_t)ty * layout.tile_cols + tx;
            uint64_t mask = UINT64_C(1) << bit % 64;

            if (layer->behind[bit / 64] & mask)
                continue;
            layer->behind[bit / 64] |= mask;
            layer->behind_count++;
            cache->behind_tiles++;
        }
    return ERR_OK;
}

enum err_code row_cache_add_pending(struct row_cache *cache,
                                    const struct row_cache_pending *pending, struct err *err)
{
    struct row_cache_layer *layer = row_cache_layer(cache, pending->locale, pending->layer);

    if (!layer || (pending->is_of_polygons ? layer->kind != STORE_MESH
                                           : layer->kind != STORE_HEIGHTFIELD ||
                                                 !is_inside(&layer->spec, &pending->rect)))
        return err_set(err, ERR_DAMAGED,
                       "locale %s, revision %llu: the log has %s that its layer %s has not",
                       pending->locale, (unsigned long long)pending->revision,
                       pending->is_of_polygons ? "polygons" : "samples", pending->layer);
    if (!array_reserve((void **)&cache->pending, &cache->pending_room, cache->pending_count + 1,
                       sizeof *pending))
        return err_set(err, ERR_NO_MEMORY, "no memory for the log");
    if (!pending->is_of_polygons && row_cache_mark_behind(cache, layer, &pending->rect, err))
        return err->code;
    layer->is_left = false;
    cache->pending[cache->pending_count++] = *pending;
    cache->pending_bytes += pending->bytes;
    cache->polygon_edits += pending->is_of_polygons;
    cache->polygon_bytes += pending->is_of_polygons ? pending->bytes : 0;
    return ERR_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    struct store *store;
    store_report damage; /* NULL: damage is an error */
    void *context;
    struct err *err;
    bool has_store; /* the row of the table store is there */
};

/*
 * Reports damage of a locale, or sets the error. "": an unknown locale; a missing one is named only
 * by an intact row. False ends the reading.
 */
static bool report(struct reading *r, const char *locale, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool report(struct reading *r, const char *locale, const char *format, ...)
{
    struct row_cache_locale *of = row_cache_locale(&r->store->cache, locale);
    char what[256];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);

    if (of)
        of->is_damaged = true;
    if (!r->damage) {
        err_set(r->err, ERR_DAMAGED, "%.160s: %s", r->store->path, what);
        return false;
    }
    r->damage(r->context, locale, what);
    return true;
}

/* What bind_manifest binds, from column `at` on. */
static bool read_manifest(sqlite3_stmt *row, int at, struct store_locale *v)
{
    double geo[2] = {0};
    bool is_good = column_text(row, at, v->title, sizeof v->title) &&
                   column_bytes(row, at + 1, v->gravity, sizeof v->gravity) &&
                   column_bytes(row, at + 2, v->translation, sizeof v->translation) &&
                   column_bytes(row, at + 3, v->rotation, sizeof v->rotation);

    v->open_sky = sqlite3_column_int(row, at + 4) != 0;
    v->triangulation = (enum triangulation)sqlite3_column_int(row, at + 5);
    v->has_geo = column_bytes(row, at + 6, geo, sizeof geo);
    v->geo_lat_deg = geo[0];
    v->geo_lng_deg = geo[1];
    if (!v->has_geo)
        column_bytes(row, at + 6, &v->crs, sizeof v->crs);
    return is_good;
}

static bool read_locale(struct reading *r, sqlite3_stmt *row)
{
    char id[STORE_ID_MAX + 1];
    struct row_cache_locale *locale;
    struct store_locale *v;
    bool is_good = column_text(row, 0, id, sizeof id);

    locale = row_cache_add_locale(&r->store->cache, id);
    if (!locale) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for a locale");
        return false;
    }
    v = &locale->row;
    v->revision = (uint64_t)sqlite3_column_int64(row, 1);
    locale->applied_rev = (uint64_t)sqlite3_column_int64(row, 2);
    locale->log_first = (uint64_t)sqlite3_column_int64(row, 3);
    locale->log_last = (uint64_t)sqlite3_column_int64(row, 4);
    locale->layers = (uint32_t)sqlite3_column_int(row, 5);
    v->is_deleted = sqlite3_column_int(row, 6) != 0;
    is_good &= read_manifest(row, 7, v);
    if (sqlite3_column_type(row, 14) != SQLITE_NULL)
        is_good &= column_text(row, 14, v->origin, sizeof v->origin);
    v->origin_revision = (uint64_t)sqlite3_column_int64(row, 15);
    if (is_good && sqlite3_column_int(row, 16) == 1)
        return true;
    return report(r, id, "locale %s: its row is damaged (checksum)", id);
}

#define LOCALE_VALUES                                                                              \
    "id, revision, applied_rev, log_first, log_last, layers, is_deleted, title, gravity, "         \
    "translation, rotation, open_sky, triangulation, geo, origin, origin_rev"

static bool is_side(sqlite3_int64 samples)
{
    return samples >= 2 && samples <= HEIGHTFIELD_SIDE_MAX;
}

/* What bind_base binds, from column `at` on. */
static bool read_base(sqlite3_stmt *row, int at, struct row_cache_layer *layer)
{
    layer->base_revision = (uint64_t)sqlite3_column_int64(row, at + 1);
    layer->since = (uint64_t)sqlite3_column_int64(row, at + 2);
    return sqlite3_column_type(row, at) == SQLITE_NULL ||
           column_text(row, at, layer->base, sizeof layer->base);
}

/* False also for an impossible field: its tiles could not be counted. */
static bool read_layer_values(sqlite3_stmt *row, struct row_cache_layer *layer)
{
    double grid[4] = {0};

    layer->position = (uint32_t)sqlite3_column_int64(row, 2);
    layer->kind = (enum store_layer_kind)sqlite3_column_int(row, 3);
    layer->role = sqlite3_column_int(row, 4);
    if (layer->kind == STORE_MESH)
        return column_bytes(row, 9, layer->gravity, sizeof layer->gravity) &&
               column_bytes(row, 10, layer->mesh, sizeof layer->mesh) &&
               column_bytes(row, 11, layer->polygons, sizeof layer->polygons);
    layer->spec.cols = (uint32_t)sqlite3_column_int64(row, 5);
    layer->spec.rows = (uint32_t)sqlite3_column_int64(row, 6);
    layer->spec.leaf_cells = (uint32_t)sqlite3_column_int64(row, 7);
    if (!column_bytes(row, 8, grid, sizeof grid))
        return false;
    layer->spec.origin_x_m = grid[0];
    layer->spec.origin_y_m = grid[1];
    layer->spec.spacing_x_m = grid[2];
    layer->spec.spacing_y_m = grid[3];
    return layer->kind == STORE_HEIGHTFIELD && is_side(sqlite3_column_int64(row, 5)) &&
           is_side(sqlite3_column_int64(row, 6));
}

static bool read_layer(struct reading *r, sqlite3_stmt *row)
{
    struct row_cache *cache = &r->store->cache;
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    bool is_good = column_text(row, 0, locale, sizeof locale) && column_text(row, 1, id, sizeof id);
    struct row_cache_layer read = {.position = 0}, *layer;

    if (!is_good || !read_layer_values(row, &read) || !read_base(row, 12, &read) ||
        sqlite3_column_int(row, 15) != 1) {
        return report(r, row_cache_locale(cache, locale) ? locale : "",
                      "locale %s, layer %s: its row is damaged (checksum)", locale,
                      is_good ? id : "?");
    }
    if (!row_cache_locale(cache, locale)) {
        return report(r, locale, "locale %s is not there, but its layer %s is", locale, id);
    }
    layer = row_cache_add_layer(cache, locale, id);
    if (!layer) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for a layer");
        return false;
    }
    memcpy(read.locale, locale, sizeof read.locale);
    memcpy(read.id, id, sizeof read.id);
    *layer = read; /* the last one of its locale */
    return true;
}

#define PIN_VALUES                                                                                 \
    "locale, name, rev, layers, seq, title, gravity, translation, rotation, open_sky, "            \
    "triangulation, geo"

static bool read_pin(struct reading *r, sqlite3_stmt *row)
{
    struct row_cache *cache = &r->store->cache;
    struct row_cache_pin *pin = row_cache_add_pin(cache);
    const struct row_cache_locale *locale;
    bool is_good;

    if (!pin) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for a pin");
        return false;
    }
    is_good = column_text(row, 0, pin->value.id, sizeof pin->value.id) &&
              column_text(row, 1, pin->name, sizeof pin->name) &&
              read_manifest(row, 5, &pin->value) && sqlite3_column_int(row, 12) == 1;
    pin->value.revision = (uint64_t)sqlite3_column_int64(row, 2);
    pin->layers = (uint32_t)sqlite3_column_int(row, 3);
    pin->value.transform_seq = (uint64_t)sqlite3_column_int64(row, 4);
    locale = row_cache_locale(cache, pin->value.id);
    if (is_good && locale && (!locale->row.is_deleted || base_is(pin)) &&
        pin->value.revision <= locale->row.revision)
        return true;
    return report(r, locale ? pin->value.id : "", "locale %s: its pin %s is damaged", pin->value.id,
                  pin->name);
}

static bool read_pin_layer(struct reading *r, sqlite3_stmt *row)
{
    struct row_cache *cache = &r->store->cache;
    struct row_cache_pin_layer *pinned = row_cache_add_pin_layer(cache);
    const struct row_cache_pin *pin = NULL;
    bool is_good;

    if (!pinned) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for a pin");
        return false;
    }
    is_good = column_text(row, 0, pinned->layer.locale, sizeof pinned->layer.locale) &&
              column_text(row, 1, pinned->layer.id, sizeof pinned->layer.id) &&
              read_layer_values(row, &pinned->layer) &&
              column_text(row, 12, pinned->pin, sizeof pinned->pin) &&
              read_base(row, 15, &pinned->layer) && sqlite3_column_int(row, 18) == 1;
    pinned->has_pose = sqlite3_column_type(row, 13) != SQLITE_NULL;
    is_good &= !pinned->has_pose || pose_column(row, 13, &pinned->pose);
    pinned->pose.transform_seq = (uint64_t)sqlite3_column_int64(row, 14);
    if (is_good)
        pin = pins_find(cache, pinned->layer.locale, pinned->pin);
    if (pin) {
        pinned->revision = pin->value.revision;
        return true;
    }
    cache->pin_layer_count--; /* its values are still there */
    return report(r, row_cache_locale(cache, pinned->layer.locale) ? pinned->layer.locale : "",
                  "locale %s: layer %s of its pin %s is damaged", pinned->layer.locale,
                  pinned->layer.id, pinned->pin);
}

static bool read_pinned(struct reading *r, sqlite3_stmt *row)
{
    const struct row_cache *cache = &r->store->cache;

    if (sqlite3_column_int(row, 1) != 1 ||
        (uint64_t)sqlite3_column_int64(row, 0) != cache->pin_count)
        return report(r, "", "the number of pins is not the one that was written");
    for (size_t i = 0; i < cache->pin_count; i++) {
        const struct row_cache_pin *pin = &cache->pins[i];
        uint32_t count = 0;

        for (size_t k = 0; k < cache->pin_layer_count; k++)
            count += strcmp(cache->pin_layers[k].pin, pin->name) == 0 &&
                     strcmp(cache->pin_layers[k].layer.locale, pin->value.id) == 0;
        if (count == pin->layers)
            continue;
        if (!report(r, pin->value.id, "locale %s, pin %s: %u layers are there of %u", pin->value.id,
                    pin->name, count, pin->layers))
            return false;
    }
    return true;
}

static bool read_pending(struct reading *r, sqlite3_stmt *row)
{
    struct row_cache_pending pending = {.sequence = (uint64_t)sqlite3_column_int64(row, 0),
                                        .revision = (uint64_t)sqlite3_column_int64(row, 2),
                                        .is_of_polygons =
                                            sqlite3_column_int(row, 5) == LOG_POLYGONS,
                                        .bytes = (uint64_t)sqlite3_column_int64(row, 6)};
    const struct row_cache_locale *locale;
    struct err err;

    if (column_text(row, 1, pending.locale, sizeof pending.locale) &&
        column_text(row, 3, pending.layer, sizeof pending.layer) &&
        (pending.is_of_polygons || column_bytes(row, 4, &pending.rect, sizeof pending.rect)) &&
        (locale = row_cache_locale(&r->store->cache, pending.locale)) != NULL &&
        (pending.is_of_polygons || pending.revision > locale->applied_rev) &&
        row_cache_add_pending(&r->store->cache, &pending, &err) == ERR_OK)
        return true;
    return report(r, row_cache_locale(&r->store->cache, pending.locale) ? pending.locale : "",
                  "the log has samples or polygons that no layer is to have");
}

static bool read_store(struct reading *r, sqlite3_stmt *row)
{
    r->has_store = true;
    r->store->cache.models = (uint64_t)sqlite3_column_int64(row, 1);
    if (sqlite3_column_int(row, 2) != 1)
        return report(r, "", "the row of the table store is damaged (checksum)");
    if ((uint64_t)sqlite3_column_int64(row, 0) != r->store->cache.locale_count)
        return report(r, "", "the number of locales is not the one that was written");
    return true;
}

/* Calls `read` with each row. False with err; a table that cannot be read to its end is damage. */
static bool read_table(struct reading *r, const char *table, const char *sql,
                       bool (*read)(struct reading *r, sqlite3_stmt *row))
{
    struct rows rows = rows_open(r->store->db, sql, NULL);
    bool goes_on = true;
    int rc;

    while (goes_on && rows_next(&rows))
        goes_on = read(r, rows.row);
    rc = rows_close(&rows);
    if (!goes_on || rc == SQLITE_DONE)
        return goes_on;
    if ((rc & 0xff) == SQLITE_NOMEM) {
        err_set(r->err, ERR_NO_MEMORY, "no memory to read table %s", table);
        return false;
    }
    return report(r, "", "table %s cannot be read: %.80s", table, sqlite3_errstr(rc));
}

static bool read_pins(struct reading *r)
{
    return read_table(r, "pin",
                      "SELECT " PIN_VALUES ", crc = row_crc(" PIN_VALUES ") FROM pin "
                      "ORDER BY rowid", /* a base before those that name it */
                      read_pin) &&
           read_table(r, "pin_layer",
                      "SELECT " LAYER_VALUES
                      ", pin, pose, seq, base, base_rev, since, crc = row_crc("
                      "locale, pin, id, position, kind, role, cols, rows, leaf_cells, grid, "
                      "gravity, mesh, polygons, pose, seq, base, base_rev, since) FROM pin_layer "
                      "ORDER BY locale, pin, position",
                      read_pin_layer) &&
           read_table(r, "pinned", "SELECT pins, crc = row_crc(id, pins) FROM pinned WHERE id = 1",
                      read_pinned);
}

/* Counts the layers that name each base. */
static void count_names(struct row_cache *cache)
{
    for (size_t i = 0; i < cache->locale_count; i++)
        for (const struct row_cache_layer *layer = cache->locales[i]->first; layer;
             layer = layer->next)
            base_count(cache, layer, 1);
    for (size_t i = 0; i < cache->pin_layer_count; i++)
        base_count(cache, &cache->pin_layers[i].layer, 1);
}

/* Reports locales with missing layers. */
static bool count_layers(struct reading *r)
{
    struct row_cache *cache = &r->store->cache;

    for (size_t i = 0; i < cache->locale_count; i++) {
        struct row_cache_locale *locale = cache->locales[i];
        uint32_t count = 0;

        for (const struct row_cache_layer *layer = locale->first; layer; layer = layer->next)
            count++;
        if (count == locale->layers || locale->is_damaged)
            continue;
        if (!report(r, locale->row.id, "locale %s: %u layers are there of %u", locale->row.id,
                    count, locale->layers))
            return false;
    }
    return true;
}

enum err_code row_cache_load(struct store *store, store_report damage, void *context,
                             struct err *err)
{
    struct reading r = {store, damage, context, err, false};
    struct row_cache before = store->cache;

    memset(&store->cache, 0, sizeof store->cache);
    store->is_cached = false;
    if (!read_table(&r, "locale",
                    "SELECT " LOCALE_VALUES ", crc = row_crc(" LOCALE_VALUES ") FROM locale "
                    "ORDER BY id",
                    read_locale) ||
        !read_table(&r, "store",
                    "SELECT locales, models, crc = row_crc(id, locales, models) "
                    "FROM store WHERE id = 1",
                    read_store) ||
        (!r.has_store && !report(&r, "", "the row of the table store is missing")) ||
        !read_table(&r, "layer",
                    "SELECT " LAYER_VALUES ", base, base_rev, since, crc = row_crc(" LAYER_VALUES
                    ", base, base_rev, since) FROM layer "
                    "ORDER BY locale, position, rowid",
                    read_layer) ||
        !count_layers(&r) || !read_pins(&r) ||
        !read_table(&r, "edit",
                    "SELECT sequence, locale, rev, layer, rect, codec, length(data) FROM edit "
                    "WHERE codec IS NOT NULL ORDER BY sequence",
                    read_pending)) {
        row_cache_free(&store->cache);
        store->cache = before; /* its marks are still needed */
        return err->code;
    }
    for (size_t i = 0; i < before.locale_count; i++) {
        struct row_cache_locale *locale =
            row_cache_locale(&store->cache, before.locales[i]->row.id);

        if (locale)
            locale->is_damaged |= before.locales[i]->is_damaged;
    }
    row_cache_free(&before);
    count_names(&store->cache);
    store->is_cached = true;
    return ERR_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

enum err_code row_cache_write_store(struct store *store, struct err *err)
{
    return store_exec(
        store, "UPDATE store SET locales = ?1, models = ?2, crc = row_crc(1, ?1, ?2) WHERE id = 1",
        SQL_VALUES(sql_integer(store->cache.locale_count), sql_integer(store->cache.models)),
        "cannot write the table store", err);
}

void bind_manifest(sqlite3_stmt *write, int at, const struct store_locale *v)
{
    const double geo[2] = {v->geo_lat_deg, v->geo_lng_deg};

    sqlite3_bind_text(write, at, v->title, -1, SQLITE_STATIC);
    sqlite3_bind_blob(write, at + 1, v->gravity, sizeof v->gravity, SQLITE_STATIC);
    sqlite3_bind_blob(write, at + 2, v->translation, sizeof v->translation, SQLITE_STATIC);
    sqlite3_bind_blob(write, at + 3, v->rotation, sizeof v->rotation, SQLITE_STATIC);
    sqlite3_bind_int(write, at + 4, v->open_sky);
    sqlite3_bind_int(write, at + 5, (int)v->triangulation);
    if (v->has_geo)
        sqlite3_bind_blob(write, at + 6, geo, sizeof geo, SQLITE_TRANSIENT);
    else if (v->crs != 0)
        sqlite3_bind_blob(write, at + 6, &v->crs, sizeof v->crs, SQLITE_STATIC);
}

enum err_code row_cache_write_locale(struct store *store, const struct row_cache_locale *locale,
                                     struct err *err)
{
    const struct store_locale *v = &locale->row;
    sqlite3_stmt *write = store_statement(
        store,
        "INSERT INTO locale VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
        "row_crc(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16), "
        "?15, ?16) "
        "ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, "
        "applied_rev = excluded.applied_rev, log_first = excluded.log_first, "
        "log_last = excluded.log_last, layers = excluded.layers, "
        "is_deleted = excluded.is_deleted, title = excluded.title, gravity = excluded.gravity, "
        "translation = excluded.translation, rotation = excluded.rotation, "
        "open_sky = excluded.open_sky, triangulation = excluded.triangulation, "
        "geo = excluded.geo, crc = excluded.crc, origin = excluded.origin, "
        "origin_rev = excluded.origin_rev",
        err);

    if (!write)
        return err->code;
    sqlite3_bind_text(write, 1, v->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(write, 2, (int64_t)v->revision);
    sqlite3_bind_int64(write, 3, (int64_t)locale->applied_rev);
    sqlite3_bind_int64(write, 4, (int64_t)locale->log_first);
    sqlite3_bind_int64(write, 5, (int64_t)locale->log_last);
    sqlite3_bind_int64(write, 6, locale->layers);
    sqlite3_bind_int(write, 7, v->is_deleted);
    bind_manifest(write, 8, v);
    if (v->origin[0]) {
        sqlite3_bind_text(write, 15, v->origin, -1, SQLITE_STATIC);
        sqlite3_bind_int64(write, 16, (int64_t)v->origin_revision);
    }
    return store_run(store, write, "cannot write a locale", err);
}
