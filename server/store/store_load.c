/*
 * Everything in the store, verified, to a sink.
 *
 * Problem: damage must be found at the start, named, and never be served, yet one bad tile must not
 * prevent the rest of the world from being served. Approach, in this order:
 *
 * 1. SQLite's integrity_check of the small tables: their pages and indexes. That of tiles would
 *    take longer than the load; missing and wrong rows of it are found below.
 * 2. The small tables into the cache, each row by its checksum, rows counted (store_row_cache.c).
 * 3. The log, row by row: checksums, no gap within a locale, from log_first to log_last.
 * 4. Each locale: all its layers are loaded before the sink sees any of it. One with damage is
 *    reported only as damage.
 * 5. The log's rows of sound locales.
 *
 * Damage that belongs to no locale, of a page or a count, makes the store read-only: a write into a
 * damaged table may damage more. A damaged locale stays marked in the cache: its samples stay in
 * the log (store_materialise). No file is removed while there is damage, since the row that names
 * it may be the damaged one.
 */
#include "store/store_data.h"

#include "base/array_reserve.h"
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISSING_MAX = 64 };

struct load {
    struct store *store;
    const struct store_sink *sink;
    struct tile_readers *readers;
    struct bases *bases;
    const struct row_cache_layer **meshes; /* of locales that the sink has, without logged edits */
    size_t mesh_count, mesh_room;
    struct err *err;
    uint64_t damages;
    struct err lost; /* damage of no known locale */
    /* missing locales that rows name, reported once each; more are not reported */
    char missing[MISSING_MAX][STORE_ID_MAX + 1];
    size_t missing_count;
};

static void take_report(void *context, const char *locale, const char *message)
{
    struct load *load = context;
    struct row_cache_locale *of = row_cache_locale(&load->store->cache, locale);
    char line[256];

    store_clean(message, line, sizeof line);
    if (of)
        of->is_damaged = true;
    load->damages++;
    if (!locale[0] && !load->lost.code)
        err_set(&load->lost, ERR_READ_ONLY, "damaged: %s", line);
    load->sink->damage(load->sink->context, locale, line);
}

static void report(struct load *load, const char *locale, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void report(struct load *load, const char *locale, const char *format, ...)
{
    char message[256];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    take_report(load, locale, message);
}

/* A row that can be trusted names a locale that is not there. */
static void report_missing(struct load *load, const char *locale, const char *what)
{

    for (size_t i = 0; i < load->missing_count; i++)
        if (strcmp(load->missing[i], locale) == 0)
            return;
    if (load->missing_count == MISSING_MAX)
        return;
    snprintf(load->missing[load->missing_count++], sizeof load->missing[0], "%s", locale);
    report(load, locale, "locale %s is not there, but %s", locale, what);
}

/* ---- the small tables ----------------------------------------------------------------------- */

static enum err_code check_table(struct load *load, const char *table)
{
    char sql[64], finding[192];
    struct rows rows;
    int rc;

    snprintf(sql, sizeof sql, "PRAGMA integrity_check(%s)", table);
    rows = rows_open(load->store->db, sql, NULL);
    while (rows_next(&rows)) {
        const char *found = (const char *)sqlite3_column_text(rows.row, 0);

        if (!found || strcmp(found, "ok") == 0)
            continue;
        store_clean(found, finding, sizeof finding);
        report(load, "", "table %s: %s", table, finding);
    }
    rc = rows_close(&rows);
    if (rc == SQLITE_DONE)
        return ERR_OK;
    store_sqlite_error(load->store, load->store->db, rc, false, "a table cannot be checked",
                       load->err);
    if (load->err->code == ERR_NO_MEMORY)
        return ERR_NO_MEMORY;
    report(load, "", "%s", load->err->msg); /* readable rows are reported nevertheless */
    *load->err = (struct err){0};
    return ERR_OK;
}

/* ---- the log -------------------------------------------------------------------------------- */

/*
 * One row; false: it cannot be trusted. The samples of a row are checked when they are applied;
 * that they are there if they must be is checked here.
 */
static void check_row(struct load *load, sqlite3_stmt *row)
{
    struct row_cache *cache = &load->store->cache;
    struct store_edit edit;
    bool is_good = edit_row_read(row, &edit);
    struct row_cache_locale *locale = row_cache_locale(cache, edit.locale);
    bool has_codec = sqlite3_column_type(row, EDIT_COLUMN_COUNT) != SQLITE_NULL;
    uint64_t *next = locale ? &locale->log_next : NULL;
    const char *what;

    if (is_good && next && edit.revision == *next &&
        (sqlite3_column_int(row, EDIT_COLUMN_HAS_SAMPLES) || !has_codec) &&
        (has_codec || sqlite3_column_int(row, EDIT_COLUMN_COUNT + 1) == 1)) {
        ++*next;
        return;
    }
    if (is_good && !next) {
        report_missing(load, edit.locale, "its log is");
        return;
    }
    what = !is_good                 ? "damaged (checksum)"
           : edit.revision != *next ? "not the next revision"
                                    : "damaged (samples)";
    if (next && edit.revision >= *next)
        *next = edit.revision + 1; /* reported once, not for each later row */
    report(load, locale ? edit.locale : "", "locale %s, revision %llu: the log's row %llu is %s",
           edit.locale, (unsigned long long)edit.revision, (unsigned long long)edit.sequence, what);
}

static enum err_code check_log(struct load *load)
{
    static const char sql[] = "SELECT " EDIT_COLUMNS ", codec, "
                              "iif(codec IS NULL, data_crc = row_crc(sequence, codec, data), 0) "
                              "FROM edit ORDER BY sequence";
    struct row_cache *cache = &load->store->cache;
    struct rows rows = rows_open(load->store->db, sql, NULL);
    int rc;

    for (size_t i = 0; i < cache->locale_count; i++)
        cache->locales[i]->log_next = cache->locales[i]->log_first;
    while (rows_next(&rows))
        check_row(load, rows.row);
    rc = rows_close(&rows);
    if (rc != SQLITE_DONE) {
        report(load, "", "table edit cannot be read to its end: %.120s", sqlite3_errstr(rc));
    }
    for (size_t i = 0; i < cache->locale_count; i++) {
        const struct row_cache_locale *locale = cache->locales[i];

        if (locale->is_damaged ||
            (locale->log_next == locale->log_last + 1 &&
             (locale->log_last == 0 || locale->log_last == locale->row.revision)))
            continue;
        report(load, locale->row.id, "locale %s: it is at revision %llu, its log ends at %llu",
               locale->row.id, (unsigned long long)locale->row.revision,
               (unsigned long long)locale->log_next - 1);
    }
    return (rc & 0xff) == SQLITE_NOMEM
               ? err_set(load->err, ERR_NO_MEMORY, "no memory to read the log")
               : ERR_OK;
}

/* Tiles that belong to no layer. */
static enum err_code check_tile_owners(struct load *load)
{
    static const char sql[] =
        "WITH RECURSIVE owner(locale, layer) AS ("
        " SELECT * FROM (SELECT locale, layer FROM tile ORDER BY locale, layer LIMIT 1)"
        " UNION ALL SELECT"
        "  (SELECT t.locale FROM tile t WHERE (t.locale, t.layer) > (owner.locale, owner.layer)"
        "   ORDER BY t.locale, t.layer LIMIT 1),"
        "  (SELECT t.layer FROM tile t WHERE (t.locale, t.layer) > (owner.locale, owner.layer)"
        "   ORDER BY t.locale, t.layer LIMIT 1)"
        " FROM owner WHERE owner.locale IS NOT NULL)"
        "SELECT locale, layer FROM owner WHERE locale IS NOT NULL";
    struct row_cache *cache = &load->store->cache;
    struct rows rows = rows_open(load->store->db, sql, NULL);
    int rc;

    while (rows_next(&rows)) {
        const char *locale = (const char *)sqlite3_column_text(rows.row, 0);
        const char *id = (const char *)sqlite3_column_text(rows.row, 1);
        const struct row_cache_layer *layer =
            row_cache_layer(cache, locale ? locale : "", id ? id : "");

        if (layer && layer->kind == STORE_HEIGHTFIELD)
            continue;
        report(load, row_cache_locale(cache, locale ? locale : "") ? locale : "",
               "locale %.64s: there are tiles of layer %.64s, which is "
               "not there",
               locale ? locale : "?", id ? id : "?");
    }
    rc = rows_close(&rows);
    if (rc != SQLITE_DONE && (rc & 0xff) != SQLITE_NOMEM) {
        report(load, "", "table tile cannot be listed: %.120s", sqlite3_errstr(rc));
    }
    return (rc & 0xff) == SQLITE_NOMEM
               ? err_set(load->err, ERR_NO_MEMORY, "no memory to list tiles")
               : ERR_OK;
}

/* ---- locales -------------------------------------------------------------------------------- */

static void free_layer(struct store_loaded_layer *layer)
{
    heightfield_unref(layer->field);
    if (layer->mesh)
        mesh_unref(layer->mesh);
    polygon_set_free(&layer->polygons);
}

/* The states of a locale's heightfields that were loaded last. */
struct states {
    struct {
        char id[STORE_ID_MAX + 1];
        struct tiles_loaded loaded;
    } * at;
    size_t count, room;
};

static struct tiles_loaded *state_of(const struct load *load, struct states *states,
                                     const struct row_cache_layer *layer)
{
    const struct tiles_loaded *base;
    const char *id = layer->id;

    for (size_t i = 0; i < states->count; i++)
        if (strcmp(states->at[i].id, id) == 0)
            return &states->at[i].loaded;
    if (!array_reserve((void **)&states->at, &states->room, states->count + 1, sizeof *states->at))
        return NULL; /* then tiles are not shared */
    memset(&states->at[states->count], 0, sizeof *states->at);
    snprintf(states->at[states->count].id, sizeof states->at->id, "%s", id);
    base = bases_last(load->bases, layer);
    if (base)
        tiles_loaded_copy(base, &states->at[states->count].loaded);
    return &states->at[states->count++].loaded;
}

/* Is the mesh of a pin that of the locale's layer as it is? */
static bool is_current(const struct row_cache *cache, const struct row_cache_pin_layer *pin)
{
    const struct row_cache_layer *layer = &pin->layer;
    const struct row_cache_layer *now = row_cache_layer(cache, layer->locale, layer->id);

    if (!now || now->kind != STORE_MESH || now->role != layer->role ||
        memcmp(now->gravity, layer->gravity, sizeof now->gravity) != 0 ||
        memcmp(now->mesh, layer->mesh, sizeof now->mesh) != 0 ||
        memcmp(now->polygons, layer->polygons, sizeof now->polygons) != 0)
        return false;
    return !meshes_are_logged(cache, layer, pin->revision, UINT64_MAX);
}

/* Of a fork: a locale that the sink has, whose layer of the same id has the same files. */
static const char *locale_with_mesh(const struct load *load, const struct row_cache_layer *layer)
{
    const struct row_cache *cache = &load->store->cache;

    if (!row_cache_locale(cache, layer->locale)->row.origin[0] ||
        meshes_are_logged(cache, layer, 0, UINT64_MAX))
        return NULL;
    for (size_t i = 0; i < load->mesh_count; i++) {
        const struct row_cache_layer *other = load->meshes[i];

        if (memcmp(other->mesh, layer->mesh, sizeof layer->mesh) == 0 &&
            memcmp(other->polygons, layer->polygons, sizeof layer->polygons) == 0 &&
            memcmp(other->gravity, layer->gravity, sizeof layer->gravity) == 0 &&
            other->role == layer->role && strcmp(other->id, layer->id) == 0)
            return other->locale;
    }
    return NULL;
}

/* Notes the meshes of a locale that the sink has got; without memory they are not shared. */
static void note_meshes(struct load *load, const struct row_cache_locale *locale)
{
    for (const struct row_cache_layer *layer = locale->first; layer; layer = layer->next) {
        if (layer->kind != STORE_MESH ||
            meshes_are_logged(&load->store->cache, layer, 0, UINT64_MAX) ||
            locale_with_mesh(load, layer) ||
            !array_reserve((void **)&load->meshes, &load->mesh_room, load->mesh_count + 1,
                           sizeof *load->meshes))
            continue;
        load->meshes[load->mesh_count++] = layer;
    }
}

/* pin NULL: the layer as it is. */
static enum err_code load_layer(struct load *load, enum triangulation triangulation,
                                const struct row_cache_layer *from,
                                const struct row_cache_pin_layer *pin, struct states *states,
                                struct store_loaded_layer *out, struct err *err)
{
    const struct tiles_loaded *base;
    struct err reason;

    memset(out, 0, sizeof *out);
    memcpy(out->locale, from->locale, sizeof out->locale);
    memcpy(out->id, from->id, sizeof out->id);
    out->kind = from->kind;
    out->role = from->role;
    memcpy(out->gravity, from->gravity, sizeof out->gravity);
    if (from->kind == STORE_HEIGHTFIELD) {
        if (bases_find(load->bases, from, &base, err))
            return err->code;
        out->field = tiles_load(load->store, load->readers, from, pin, triangulation,
                                state_of(load, states, from), base, err);
        return out->field ? ERR_OK : err->code;
    }
    out->is_current = pin && is_current(&load->store->cache, pin);
    out->shares = pin ? NULL : locale_with_mesh(load, from);
    if (out->is_current || out->shares)
        return ERR_OK;
    if (files_load_mesh(load->store, from->mesh, &out->mesh, &reason) ||
        files_load_polygons(load->store, from->polygons, &out->polygons, &reason) ||
        meshes_apply_log(load->store, from, pin ? pin->revision : UINT64_MAX, out, &reason))
        return err_set(err, reason.code, "locale %s, layer %s: %.180s", from->locale, from->id,
                       reason.msg);
    return ERR_OK;
}

/* All layers of a locale; *count of them are made, also on an error. */
static enum err_code load_layers(struct load *load, const struct row_cache_locale *locale,
                                 struct states *states, struct store_loaded_layer *layers,
                                 size_t *count, struct err *err)
{
    for (const struct row_cache_layer *layer = locale->first; layer; layer = layer->next)
        if (load_layer(load, locale->row.triangulation, layer, NULL, states, &layers[(*count)++],
                       err))
            return err->code;
    return ERR_OK;
}

/* A pin with its layers; *count of them are made, also on an error. */
struct loaded_pin {
    const struct row_cache_pin *pin;
    struct store_loaded_layer *layers;
    size_t count;
};

static int newest_first(const void *a, const void *b)
{
    const struct loaded_pin *x = a, *y = b;

    return x->pin->value.revision < y->pin->value.revision ? 1 : -1;
}

static enum err_code load_pin(struct load *load, struct states *states, struct loaded_pin *out,
                              struct err *err)
{
    const struct row_cache *cache = &load->store->cache;

    out->layers = calloc(out->pin->layers ? out->pin->layers : 1, sizeof *out->layers);
    if (!out->layers)
        return err_set(err, ERR_NO_MEMORY, "no memory to load a pin");
    for (size_t i = 0; i < cache->pin_layer_count; i++) {
        const struct row_cache_pin_layer *from = &cache->pin_layers[i];
        struct store_loaded_layer *layer = &out->layers[out->count];

        if (strcmp(from->pin, out->pin->name) != 0 ||
            strcmp(from->layer.locale, out->pin->value.id) != 0)
            continue;
        out->count++;
        if (load_layer(load, out->pin->value.triangulation, &from->layer, from, states, layer, err))
            return err->code;
        layer->has_pose = from->has_pose;
        layer->pose = from->pose;
    }
    return ERR_OK;
}

/* The pins of a locale, newest first; *pins is malloc, and *count of them are made, also on an
 * error. */
static enum err_code load_pins(struct load *load, const char *locale, struct states *states,
                               struct loaded_pin **pins, size_t *count, struct err *err)
{
    const struct row_cache *cache = &load->store->cache;
    size_t made = 0;

    for (size_t i = 0; i < cache->pin_count; i++)
        made += strcmp(cache->pins[i].value.id, locale) == 0 && !base_is(&cache->pins[i]);
    err->code = ERR_OK;
    if (made == 0)
        return ERR_OK;
    *pins = calloc(made, sizeof **pins);
    if (!*pins)
        return err_set(err, ERR_NO_MEMORY, "no memory to load pins");
    for (size_t i = 0; i < cache->pin_count; i++)
        if (strcmp(cache->pins[i].value.id, locale) == 0 && !base_is(&cache->pins[i]))
            (*pins)[(*count)++].pin = &cache->pins[i];
    qsort(*pins, *count, sizeof **pins, newest_first);
    for (size_t i = 0; i < *count; i++)
        if (load_pin(load, states, &(*pins)[i], err))
            return err->code;
    return ERR_OK;
}

static bool give_layers(struct load *load, struct store_loaded_layer *layers, size_t count)
{
    const struct store_sink *sink = load->sink;

    for (size_t i = 0; i < count; i++) {
        bool goes_on = sink->layer(sink->context, &layers[i], load->err);

        memset(&layers[i], 0, sizeof layers[i]); /* it was taken */
        if (!goes_on)
            return false;
    }
    return true;
}

static bool give_locale(struct load *load, const struct row_cache_locale *locale,
                        struct store_loaded_layer *layers, size_t count, struct loaded_pin *pins,
                        size_t pin_count)
{
    const struct store_sink *sink = load->sink;

    if (!sink->locale(sink->context, &locale->row, load->err) || !give_layers(load, layers, count))
        return false;
    for (size_t i = 0; sink->pin && i < pin_count; i++)
        if (!sink->pin(sink->context, pins[i].pin->name, &pins[i].pin->value, load->err) ||
            !give_layers(load, pins[i].layers, pins[i].count))
            return false;
    return true;
}

static enum err_code load_locale(struct load *load, struct row_cache_locale *locale)
{
    struct store_loaded_layer *layers = NULL;
    struct loaded_pin *pins = NULL;
    struct states states = {.count = 0};
    size_t count = 0, pin_count = 0;
    struct err err;

    if (locale->is_damaged)
        return ERR_OK;
    layers = calloc(locale->layers ? locale->layers : 1, sizeof *layers);
    if (!layers)
        return err_set(load->err, ERR_NO_MEMORY, "no memory to load a locale");
    if (load_layers(load, locale, &states, layers, &count, &err) ||
        poses_load(load->store, locale->row.id, &locale->row.transform_seq, layers, count, &err) ||
        load_pins(load, locale->row.id, &states, &pins, &pin_count, &err)) {
        if (err.code == ERR_NO_MEMORY)
            *load->err = err;
        else
            report(load, locale->row.id, "%s", err.msg);
    } else if (give_locale(load, locale, layers, count, pins, pin_count)) {
        note_meshes(load, locale);
    } else if (!load->err->code) {
        err_set(load->err, ERR_INTERNAL, "the load was ended");
    }
    for (size_t i = 0; i < count; i++)
        free_layer(&layers[i]);
    free(layers);
    for (size_t i = 0; i < pin_count; i++) {
        for (size_t k = 0; k < pins[i].count; k++)
            free_layer(&pins[i].layers[k]);
        free(pins[i].layers);
    }
    free(pins);
    for (size_t i = 0; i < states.count; i++)
        tiles_loaded_free(&states.at[i].loaded);
    free(states.at);
    return load->err->code;
}

static enum err_code give_log(struct load *load)
{
    struct row_cache *cache = &load->store->cache;
    const struct store_sink *sink = load->sink;
    struct rows rows =
        rows_open(load->store->db, "SELECT " EDIT_COLUMNS " FROM edit ORDER BY sequence", NULL);

    while (!load->err->code && rows_next(&rows)) {
        struct store_edit edit;
        const struct row_cache_locale *locale;

        if (!edit_row_read(rows.row, &edit))
            continue; /* reported by check_log */
        locale = row_cache_locale(cache, edit.locale);
        if (!locale || locale->is_damaged)
            continue;
        if (!sink->edit(sink->context, &edit, load->err) && !load->err->code)
            err_set(load->err, ERR_INTERNAL, "the load was ended");
    }
    if (rows.rc == SQLITE_NOMEM && !load->err->code)
        err_set(load->err, ERR_NO_MEMORY, "no memory to read the log");
    rows_close(&rows);
    return load->err->code;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static uint64_t tiles_of(const struct row_cache *cache)
{
    uint64_t tiles = 0;

    for (size_t i = 0; i < cache->locale_count; i++)
        for (const struct row_cache_layer *layer = cache->locales[i]->first; layer;
             layer = layer->next) {
            struct heightfield_tile_layout layout;

            if (layer->kind != STORE_HEIGHTFIELD)
                continue;
            layout = heightfield_tile_layout(&layer->spec);
            tiles += (uint64_t)layout.tile_cols * layout.tile_rows;
        }
    return tiles;
}

void store_load_progress(struct store *store, uint64_t *done, uint64_t *total)
{
    *done = atomic_load_explicit(&store->loaded_tiles, memory_order_relaxed);
    *total = atomic_load_explicit(&store->tiles_to_load, memory_order_relaxed);
}

static enum err_code load_all(struct load *load)
{
    static const char *const small[] = {"store",   "locale", "layer", "edit",
                                        "model",   "shell",  "pose",  "shared_log",
                                        "applied", "pinned", "pin",   "pin_layer"};
    struct row_cache *cache = &load->store->cache;

    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (check_table(load, small[i]))
            return load->err->code;
    if (row_cache_load(load->store, take_report, load, load->err))
        return load->err->code;
    atomic_store(&load->store->tiles_to_load, tiles_of(cache));
    if (check_log(load) || check_tile_owners(load) ||
        applied_check(load->store, take_report, load, load->err) ||
        pins_check(load->store, take_report, load, load->err))
        return load->err->code;
    bases_check(load->store, take_report, load);
    if (poses_without_locale(load->store) != 0)
        report(load, "", "table pose: it cannot be read, or a pose belongs to no locale");
    load->readers = tile_readers_open(load->store, load->err);
    load->bases = load->readers ? bases_load(load->store, load->readers, load->err) : NULL;
    if (!load->bases)
        return load->err->code;
    for (size_t i = 0; i < cache->locale_count; i++)
        if (load_locale(load, cache->locales[i]))
            return load->err->code;
    return give_log(load);
}

/* Bases that were left while a locale was damaged; what fails is tried again at the next start. */
static void sweep_bases(struct store *store)
{
    struct err err;

    if (bases_are_named(store) || store_begin(store, &err))
        return;
    if (bases_sweep(store, &err))
        store_rollback(store);
    else
        store_commit(store, &err);
}

enum err_code store_load(struct store *store, const struct store_sink *sink, struct err *err)
{
    struct load load = {.store = store, .sink = sink, .err = err};

    CHECK(!store->is_in_transaction);
    *err = (struct err){0};
    if (store->is_read_only) /* another process may write: one state for all reads */
        sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
    load_all(&load);
    bases_free(load.bases);
    free(load.meshes);
    tile_readers_close(load.readers);
    if (store->is_read_only)
        sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL);
    store->is_loaded = true;
    if (load.lost.code)
        store_poison(store, &load.lost);
    if (!err->code && load.damages == 0 && !store->is_read_only) {
        sweep_bases(store);
        files_sweep(store);
    }
    pthread_mutex_lock(&store->stats_mutex);
    store->stats.behind_tiles = store->cache.behind_tiles;
    store->stats.behind_bytes = store->cache.pending_bytes;
    pthread_mutex_unlock(&store->stats_mutex);
    return err->code;
}

enum err_code store_last_sequence(struct store *store, uint64_t *out, struct err *err)
{
    sqlite3_stmt *read = store_statement(store, "SELECT max(sequence) FROM edit", err);
    int rc;

    if (!read)
        return err->code;
    rc = sqlite3_step(read);
    if (rc == SQLITE_ROW)
        *out = (uint64_t)sqlite3_column_int64(read, 0);
    sqlite3_reset(read);
    return rc == SQLITE_ROW ? ERR_OK
                            : store_sqlite_error(store, store->db, rc, false, "log of edits", err);
}
