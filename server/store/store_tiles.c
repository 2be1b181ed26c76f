/*
 * A layer's heightfield from its tiles, fast.
 *
 * Problem: a world of gigabytes is to be served soon after a start, so tiles should come in at a
 * good part of the speed of memory, yet each byte is to be verified. Approach: the rows' ids are
 * listed first (without their data, which is on overflow pages); then threads, each with a
 * connection of its own, read a tile's blob straight into the samples of the new tile, checksum it
 * there, apply the log's samples, and build its pyramid while all is in the cache.
 *
 * mmap_size was tried and dropped: the faults of the mapping cost more than the copies that it
 * saves (8192×8192 samples, two cores: 125 ms with it, 77 ms without), and an unreadable sector
 * would end the process with SIGBUS instead of an error that names a tile. A read-only store is
 * read on its one connection, in one transaction, because another process may write meanwhile.
 *
 * Samples of the log are verified before they are applied to a tile; the tile's own checksum is of
 * the stored bytes. Aprons are compared when all tiles are loaded (the builder's finish).
 */
#include "store/store_data.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { TILE_SIDE = 257 };

struct reader {
    sqlite3 *db;
    sqlite3_blob *blob[2]; /* in tile, in kept_tile */
    float *packed;         /* a tile at the field's edge */
};

struct tile_readers {
    unsigned count;
    bool is_borrowed; /* the store's own connection */
    struct reader readers[];
};

/* A load under way. The members after the atomic are constant while threads run. */
struct tiles {
    struct store *store;
    const struct row_cache_layer *layer;
    const struct row_cache_pin_layer *pin; /* NULL: the layer as it is */
    const struct tiles_loaded *other;      /* shared where it is the same; NULL: none */
    const struct tiles_loaded *base;       /* of tiles without a row; NULL: each has one */
    uint64_t revision_max;                 /* of rows and of the log */
    struct heightfield_spec spec;
    struct heightfield_tile_layout layout;
    struct heightfield_builder *builder;
    struct tile_row *rows;
    struct overlay *overlays;
    size_t overlay_count;
    bool *shared; /* of each tile: it is in the builder; NULL: none is */
    bool is_base; /* nothing differs from the base */
    atomic_size_t next;
    atomic_bool has_failed;
};

struct worker {
    struct tiles *tiles;
    struct reader *reader;
    pthread_t thread;
    struct err err;
};

/* ---- connections ---------------------------------------------------------------------------- */

void tile_readers_close(struct tile_readers *readers)
{
    if (!readers)
        return;
    for (unsigned i = 0; i < readers->count; i++) {
        sqlite3_blob_close(readers->readers[i].blob[0]);
        sqlite3_blob_close(readers->readers[i].blob[1]);
        free(readers->readers[i].packed);
        if (!readers->is_borrowed)
            sqlite3_close(readers->readers[i].db);
    }
    free(readers);
}

static bool reader_open(struct store *store, struct reader *reader, bool is_borrowed,
                        struct err *err)
{
    int rc;

    reader->packed = malloc(TILE_SIDE * TILE_SIDE * sizeof *reader->packed);
    if (!reader->packed) {
        err_set(err, ERR_NO_MEMORY, "no memory to read tiles");
        return false;
    }
    if (is_borrowed) {
        reader->db = store->db;
        return true;
    }
    rc = store_connect(store, store->path, false, &reader->db);
    if (rc != SQLITE_OK)
        store_sqlite_error(store, reader->db, rc, false, "cannot be opened", err);
    return rc == SQLITE_OK;
}

struct tile_readers *tile_readers_open(struct store *store, struct err *err)
{
    bool is_borrowed = store->is_read_only && !store->is_immutable;
    unsigned count = is_borrowed ? 1 : store->threads;
    struct tile_readers *readers = calloc(1, sizeof *readers + count * sizeof *readers->readers);

    if (!readers) {
        err_set(err, ERR_NO_MEMORY, "no memory to read tiles");
        return NULL;
    }
    readers->is_borrowed = is_borrowed;
    for (; readers->count < count; readers->count++)
        if (!reader_open(store, &readers->readers[readers->count], is_borrowed, err)) {
            readers->count++;
            tile_readers_close(readers);
            return NULL;
        }
    return readers;
}

/* ---- the list of tiles ---------------------------------------------------------------------- */

static enum err_code damaged_tile(const struct tiles *t, uint32_t tx, uint32_t ty, const char *what,
                                  struct err *err)
{
    return err_set(err, ERR_DAMAGED, "locale %s, layer %s, tile (%u, %u): %.120s", t->layer->locale,
                   t->layer->id, tx, ty, what);
}

static enum err_code take_row(struct tiles *t, sqlite3_stmt *row, struct err *err)
{
    int64_t ty = sqlite3_column_int64(row, 1), tx = sqlite3_column_int64(row, 2);
    struct tile_row *to;

    if (tx < 0 || ty < 0 || tx >= t->layout.tile_cols || ty >= t->layout.tile_rows)
        return damaged_tile(t, (uint32_t)tx, (uint32_t)ty, "the layer has no such tile", err);
    to = &t->rows[(size_t)ty * t->layout.tile_cols + (size_t)tx];
    if (to->is_there && !t->pin)
        return damaged_tile(t, (uint32_t)tx, (uint32_t)ty, "it is there twice", err);
    *to = (struct tile_row){.number = sqlite3_column_int64(row, 0),
                            .revision = sqlite3_column_int64(row, 3),
                            .codec = sqlite3_column_int(row, 4),
                            .crc = (uint32_t)sqlite3_column_int64(row, 5),
                            .bytes = sqlite3_column_int(row, 6),
                            .is_there = true,
                            .is_kept = sqlite3_column_int(row, 7) != 0};
    return ERR_OK;
}

static enum err_code list_rows(struct tiles *t, struct err *err)
{
    static const char now[] = "SELECT number, ty, tx, rev, codec, crc, length(data), 0 FROM tile "
                              "WHERE locale = ?1 AND layer = ?2";
    /* later ones replace earlier ones; rows outside the pin's field are of another one */
    static const char then[] =
        "SELECT number, ty, tx, rev, codec, crc, length(data), 0 FROM tile "
        "WHERE locale = ?1 AND layer = ?2 AND rev <= ?3 AND rev >= ?6 AND ty < ?4 "
        "AND tx < ?5 UNION ALL "
        "SELECT number, ty, tx, rev, codec, crc, length(data), 1 FROM kept_tile "
        "WHERE locale = ?1 AND layer = ?2 AND rev <= ?3 AND rev >= ?6 AND ty < ?4 "
        "AND tx < ?5 ORDER BY 4";
    const struct sql_value end = {.of = SQL_END};
    struct rows rows = rows_open(
        t->store->db, t->pin ? then : now,
        SQL_VALUES(sql_text(t->layer->locale), sql_text(t->layer->id),
                   t->pin ? sql_integer(t->revision_max) : end, sql_integer(t->layout.tile_rows),
                   sql_integer(t->layout.tile_cols), sql_integer(t->layer->since)));

    *err = (struct err){0};
    while (rows_next(&rows) && take_row(t, rows.row, err) == ERR_OK)
        continue;
    if (!err->code && rows.rc != SQLITE_DONE)
        store_sqlite_error(t->store, t->store->db, rows.rc, false, "tiles cannot be listed", err);
    rows_close(&rows);
    if (err->code)
        return err->code;
    for (uint32_t ty = 0; ty < t->layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < t->layout.tile_cols && !t->base; tx++)
            if (!t->rows[(size_t)ty * t->layout.tile_cols + tx].is_there)
                return damaged_tile(t, tx, ty, "it is missing", err);
    return ERR_OK;
}

enum err_code overlay_read(struct store *store, const struct row_cache_pending *pending,
                           struct overlay *out, struct err *err)
{
    sqlite3_stmt *row = store_ask(store,
                                  "SELECT codec = 0 AND data_crc = "
                                  "row_crc(sequence, codec, data), data FROM edit "
                                  "WHERE sequence = ?1",
                                  SQL_VALUES(sql_integer(pending->sequence)), err);
    size_t bytes = (size_t)pending->rect.cols * pending->rect.rows * sizeof(float);
    int rc;

    if (!row)
        return err->code;
    rc = sqlite3_step(row);
    out->rect = pending->rect;
    out->revision = pending->revision;
    out->heights_m = malloc(bytes);
    err->code = ERR_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        store_sqlite_error(store, store->db, rc, false, "the log cannot be read", err);
    else if (!out->heights_m)
        err_set(err, ERR_NO_MEMORY, "no memory for the log's samples");
    else if (rc != SQLITE_ROW || sqlite3_column_int(row, 0) != 1 ||
             !column_bytes(row, 1, out->heights_m, bytes))
        err_set(err, ERR_DAMAGED,
                "locale %s, layer %s: the log's samples of revision %llu are damaged (checksum)",
                pending->locale, pending->layer, (unsigned long long)pending->revision);
    sqlite3_reset(row);
    return err->code;
}

static enum err_code read_overlays(struct tiles *t, struct err *err)
{
    const struct row_cache *cache = &t->store->cache;

    err->code = ERR_OK;
    if (cache->pending_count == 0 || (!t->layer->behind && !t->pin))
        return ERR_OK;
    t->overlays = calloc(cache->pending_count, sizeof *t->overlays);
    if (!t->overlays)
        return err_set(err, ERR_NO_MEMORY, "no memory for the log's samples");
    for (size_t i = 0; i < cache->pending_count && !err->code; i++) {
        const struct row_cache_pending *pending = &cache->pending[i];

        if (!pending->is_of_polygons && row_cache_is_of(pending, t->layer) &&
            pending->revision <= t->revision_max)
            overlay_read(t->store, pending, &t->overlays[t->overlay_count++], err);
    }
    return err->code;
}

/* ---- shared with another state --------------------------------------------------------------- */

static bool is_of_size(const struct tiles *t)
{
    const struct heightfield_spec *other = heightfield_spec(t->other->field);

    return other->cols == t->spec.cols && other->rows == t->spec.rows &&
           other->leaf_cells == t->spec.leaf_cells;
}

/* The same row, or none and the same base. */
static bool is_same_row(const struct tiles *t, size_t i)
{
    const struct tile_row *a = &t->rows[i], *b = &t->other->rows[i];

    if (!a->is_there || !b->is_there)
        return a->is_there == b->is_there && t->base && t->base->field == t->other->base;
    return a->number == b->number && a->is_kept == b->is_kept;
}

/* Marks in `shared` the tiles that the other state has, too. */
static void find_shared(struct tiles *t, bool *shared)
{
    const struct row_cache *cache = &t->store->cache;
    size_t tiles = (size_t)t->layout.tile_cols * t->layout.tile_rows;
    uint64_t of_other = t->other->revision, of_this = t->revision_max;
    uint64_t older = of_this < of_other ? of_this : of_other;
    uint64_t newer = of_this < of_other ? of_other : of_this;

    for (size_t i = 0; i < tiles; i++)
        shared[i] = is_same_row(t, i);
    for (size_t k = 0; k < cache->pending_count; k++) {
        const struct row_cache_pending *pending = &cache->pending[k];

        if (pending->is_of_polygons || !row_cache_is_of(pending, t->layer) ||
            pending->revision <= older || pending->revision > newer)
            continue;
        for (size_t i = 0; i < tiles; i++)
            shared[i] = shared[i] &&
                        !row_cache_touches(&t->spec, pending, (uint32_t)(i % t->layout.tile_cols),
                                           (uint32_t)(i / t->layout.tile_cols));
    }
}

/* Has the base the tile as it is? */
static bool is_of_base(const struct tiles *t, size_t i)
{
    uint32_t tx = (uint32_t)(i % t->layout.tile_cols), ty = (uint32_t)(i / t->layout.tile_cols);

    if (!t->base || t->rows[i].is_there)
        return false;
    for (size_t k = 0; k < t->overlay_count; k++)
        if (row_cache_touches(&t->spec, &(struct row_cache_pending){.rect = t->overlays[k].rect},
                              tx, ty))
            return false;
    return true;
}

static enum err_code share_tiles(struct tiles *t, struct err *err)
{
    size_t tiles = (size_t)t->layout.tile_cols * t->layout.tile_rows, of_base = 0;
    bool has_other = t->other && t->other->field && is_of_size(t);

    if (!has_other && !t->base)
        return ERR_OK;
    t->shared = calloc(tiles, sizeof *t->shared);
    if (!t->shared)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of tiles");
    if (has_other)
        find_shared(t, t->shared);
    for (size_t i = 0; i < tiles; i++) {
        bool is_base = is_of_base(t, i);

        of_base += is_base;
        if (is_base || t->shared[i])
            heightfield_builder_share(t->builder, (uint32_t)(i % t->layout.tile_cols),
                                      (uint32_t)(i / t->layout.tile_cols),
                                      is_base ? t->base->field : t->other->field);
        t->shared[i] |= is_base;
    }
    t->is_base =
        of_base == tiles && memcmp(heightfield_spec(t->base->field), &t->spec, sizeof t->spec) == 0;
    return ERR_OK;
}

void tiles_loaded_free(struct tiles_loaded *loaded)
{
    heightfield_unref(loaded->field);
    free(loaded->rows);
    *loaded = (struct tiles_loaded){.field = NULL};
}

bool tiles_loaded_copy(const struct tiles_loaded *from, struct tiles_loaded *out)
{
    struct heightfield_tile_layout layout = heightfield_tile_layout(heightfield_spec(from->field));
    size_t bytes = (size_t)layout.tile_cols * layout.tile_rows * sizeof *from->rows;

    *out = *from;
    out->rows = malloc(bytes);
    if (!out->rows) {
        *out = (struct tiles_loaded){.field = NULL};
        return false;
    }
    memcpy(out->rows, from->rows, bytes);
    heightfield_ref(out->field);
    return true;
}

/* ---- one tile ------------------------------------------------------------------------------- */

void overlay_apply(const struct overlay *o, uint32_t tx, uint32_t ty, uint32_t cols, uint32_t rows,
                   size_t stride, float *samples_m)
{
    uint32_t left = tx * 256, bottom = ty * 256;
    uint32_t c0 = o->rect.column > left ? o->rect.column : left;
    uint32_t r0 = o->rect.row > bottom ? o->rect.row : bottom;
    uint32_t c1 = o->rect.column + o->rect.cols, r1 = o->rect.row + o->rect.rows;

    if (c1 > left + cols)
        c1 = left + cols;
    if (r1 > bottom + rows)
        r1 = bottom + rows;
    for (uint32_t row = r0; row < r1 && c0 < c1; row++)
        memcpy(samples_m + (size_t)(row - bottom) * stride + (c0 - left),
               o->heights_m + (size_t)(row - o->rect.row) * o->rect.cols + (c0 - o->rect.column),
               (c1 - c0) * sizeof *samples_m);
}

static int blob_at(struct reader *reader, const struct tile_row *row)
{
    sqlite3_blob **blob = &reader->blob[row->is_kept];

    return *blob ? sqlite3_blob_reopen(*blob, row->number)
                 : sqlite3_blob_open(reader->db, "main", row->is_kept ? "kept_tile" : "tile",
                                     "data", row->number, 0, blob);
}

/* The samples of the log that a tile as of a revision has not. */
static void apply_log(const struct tiles *t, uint32_t tx, uint32_t ty, uint32_t cols, uint32_t rows,
                      uint64_t as_of, float *samples_m)
{
    for (size_t i = 0; i < t->overlay_count; i++)
        if (t->overlays[i].revision > as_of)
            overlay_apply(&t->overlays[i], tx, ty, cols, rows,
                          heightfield_builder_stride(t->builder), samples_m);
}

static enum err_code read_tile(struct worker *w, uint32_t tx, uint32_t ty, float *samples_m)
{
    const struct tiles *t = w->tiles;
    const struct tile_row *row = &t->rows[(size_t)ty * t->layout.tile_cols + tx];
    size_t bytes, stride = heightfield_builder_stride(t->builder);
    uint32_t cols, rows, crc = 0;
    float *to;
    int rc;

    heightfield_tile_size(&t->spec, tx, ty, &cols, &rows);
    if (!row->is_there) {
        for (uint32_t r = 0; r < rows; r++)
            memcpy(samples_m + r * stride, heightfield_tile_row(t->base->field, tx, ty, r),
                   cols * sizeof *samples_m);
        apply_log(t, tx, ty, cols, rows, 0, samples_m);
        return ERR_OK;
    }
    bytes = (size_t)cols * rows * sizeof *samples_m;
    if (row->codec != 0 || row->bytes < 0 || (size_t)row->bytes != bytes)
        return damaged_tile(t, tx, ty, "its codec or length is not the one that was written",
                            &w->err);
    to = cols == stride ? samples_m : w->reader->packed;
    rc = blob_at(w->reader, row);
    if (rc == SQLITE_OK && (size_t)sqlite3_blob_bytes(w->reader->blob[row->is_kept]) != bytes)
        rc = SQLITE_CORRUPT;
    if (rc == SQLITE_OK)
        rc = sqlite3_blob_read(w->reader->blob[row->is_kept], to, (int)bytes, 0);
    if (rc == SQLITE_NOMEM)
        return err_set(&w->err, ERR_NO_MEMORY, "no memory to read a tile");
    if (rc != SQLITE_OK)
        return damaged_tile(t, tx, ty, sqlite3_errstr(rc), &w->err);
    crc = row_crc_text(row_crc_text(crc, t->layer->locale), t->layer->id);
    crc = row_crc_integer(row_crc_integer(crc, ty), tx);
    crc = row_crc_integer(row_crc_integer(crc, row->revision), row->codec);
    crc = (uint32_t)crc32_z(row_crc_blob_head(crc, bytes), (const Bytef *)to, bytes);
    if (crc != row->crc)
        return damaged_tile(t, tx, ty, "its checksum is wrong", &w->err);
    for (uint32_t r = 0; to != samples_m && r < rows; r++)
        memcpy(samples_m + r * stride, to + (size_t)r * cols, cols * sizeof *to);
    apply_log(t, tx, ty, cols, rows, (uint64_t)row->revision, samples_m);
    return ERR_OK;
}

static enum err_code build_tile(struct worker *w, size_t index)
{
    struct tiles *t = w->tiles;
    uint32_t tx = (uint32_t)(index % t->layout.tile_cols);
    uint32_t ty = (uint32_t)(index / t->layout.tile_cols);
    float *samples_m = heightfield_builder_begin(t->builder, tx, ty, &w->err);

    if (!samples_m || read_tile(w, tx, ty, samples_m) ||
        heightfield_builder_seal(t->builder, tx, ty, &w->err)) {
        char reason[sizeof w->err.msg];

        snprintf(reason, sizeof reason, "%s", w->err.msg);
        if (w->err.code == ERR_BAD_INPUT)
            damaged_tile(t, tx, ty, reason, &w->err);
        return w->err.code;
    }
    if (t->base && !t->rows[index].is_there)
        heightfield_builder_over(t->builder, tx, ty, t->base->field);
    return ERR_OK;
}

static void *work(void *context)
{
    struct worker *w = context;
    struct tiles *t = w->tiles;
    size_t tiles = (size_t)t->layout.tile_cols * t->layout.tile_rows, index;

    while (!atomic_load(&t->has_failed) && (index = atomic_fetch_add(&t->next, 1)) < tiles)
        if (!(t->shared && t->shared[index]) && build_tile(w, index))
            atomic_store(&t->has_failed, true);
        else if (!t->pin)
            atomic_fetch_add_explicit(&t->store->loaded_tiles, 1, memory_order_relaxed);
    return NULL;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static enum err_code read_tiles(struct tiles *t, struct tile_readers *readers, struct err *err)
{
    size_t tiles = (size_t)t->layout.tile_cols * t->layout.tile_rows;
    size_t count = tiles < readers->count ? tiles : readers->count, started = 0;
    struct worker *workers = calloc(count, sizeof *workers);

    if (!workers)
        return err_set(err, ERR_NO_MEMORY, "no memory to read tiles");
    for (size_t i = 0; i < count; i++) {
        workers[i].tiles = t;
        workers[i].reader = &readers->readers[i];
    }
    while (started + 1 < count &&
           pthread_create(&workers[started + 1].thread, NULL, work, &workers[started + 1]) == 0)
        started++;
    work(&workers[0]);
    for (size_t i = 1; i <= started; i++)
        pthread_join(workers[i].thread, NULL);
    *err = (struct err){0};
    for (size_t i = 0; i < count && !err->code; i++)
        *err = workers[i].err;
    free(workers);
    return err->code;
}

static struct heightfield *finish(struct tiles *t, struct err *err)
{
    struct heightfield *field;
    char reason[sizeof err->msg];

    if (t->is_base)
        return heightfield_ref(t->base->field);
    field = heightfield_builder_finish(t->builder, err);
    t->builder = NULL;
    snprintf(reason, sizeof reason, "%s", err->msg);
    if (!field && err->code == ERR_BAD_INPUT)
        err_set(err, ERR_DAMAGED, "locale %s, layer %s: %.160s", t->layer->locale, t->layer->id,
                reason);
    return field;
}

/* The state that was loaded, for the next one. */
static void pass_on(struct tiles *t, struct heightfield *field, struct tiles_loaded *loaded)
{
    tiles_loaded_free(loaded);
    loaded->field = heightfield_ref(field);
    loaded->rows = t->rows;
    loaded->revision = t->revision_max;
    loaded->base = t->base ? t->base->field : NULL;
    t->rows = NULL;
}

struct heightfield *tiles_load(struct store *store, struct tile_readers *readers,
                               const struct row_cache_layer *layer,
                               const struct row_cache_pin_layer *pin,
                               enum triangulation triangulation, struct tiles_loaded *loaded,
                               const struct tiles_loaded *base, struct err *err)
{
    struct tiles t = {.store = store,
                      .layer = layer,
                      .pin = pin,
                      .other = loaded,
                      .base = base,
                      .revision_max = pin ? pin->revision : UINT64_MAX,
                      .spec = layer->spec};
    struct heightfield *field = NULL;
    char reason[sizeof err->msg];

    t.spec.triangulation = triangulation;
    t.builder = heightfield_builder_create(&t.spec, err);
    if (!t.builder) {
        snprintf(reason, sizeof reason, "%s", err->msg);
        if (err->code == ERR_BAD_INPUT)
            err_set(err, ERR_DAMAGED, "locale %s, layer %s: %.160s", layer->locale, layer->id,
                    reason);
        return NULL;
    }
    t.layout = heightfield_tile_layout(&t.spec);
    t.rows = calloc((size_t)t.layout.tile_cols * t.layout.tile_rows, sizeof *t.rows);
    if (!t.rows)
        err_set(err, ERR_NO_MEMORY, "no memory for a list of tiles");
    else if (!list_rows(&t, err) && !read_overlays(&t, err) && !share_tiles(&t, err) &&
             !read_tiles(&t, readers, err))
        field = finish(&t, err);
    if (field && loaded)
        pass_on(&t, field, loaded);
    heightfield_builder_free(t.builder);
    for (size_t i = 0; i < t.overlay_count; i++)
        free(t.overlays[i].heights_m);
    free(t.overlays);
    free(t.shared);
    free(t.rows);
    return field;
}
