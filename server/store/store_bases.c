/*
 * Bases: values of locales whose tiles forks share (docs/internals/forks.md).
 *
 * Problem: a fork must cost as little as an edit, on the disk, too, whatever the size of the locale
 * that it is made of; and both then live independently, also when that one is edited, deleted or
 * made again. Approach: a fork's layer has rows only of the tiles that are its own, and names its
 * base: a pin without a name of the other locale ("/17", of revision 17), which keeps tiles as any
 * pin does (store_pins.c). It stays when the locale is deleted, and goes when no layer of a locale
 * or of a pin names it. All forks of one revision share one base.
 *
 * A tile of a fork is the row of its own with the greatest rev, or else that of its base, which may
 * be a fork, too; over it the samples that the fork's log has. Meshes need no base: they are files
 * named by their content.
 *
 * Invariant: a base is written before any layer that names it, so in the order of the rows of `pin`
 * each base comes after the one that it shares tiles with.
 */
#include "store/store_data.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool base_is(const struct row_cache_pin *pin)
{
    return pin->name[0] == '/'; /* no id has one */
}

static void base_name(uint64_t revision, char name[STORE_ID_MAX + 1])
{
    snprintf(name, STORE_ID_MAX + 1, "/%llu", (unsigned long long)revision);
}

const struct row_cache_pin_layer *base_of(const struct row_cache *cache,
                                          const struct row_cache_layer *layer)
{
    char name[STORE_ID_MAX + 1];

    if (!layer->base[0])
        return NULL;
    base_name(layer->base_revision, name);
    return pins_find_layer(cache, layer->base, name, layer->id);
}

void base_count(struct row_cache *cache, const struct row_cache_layer *layer, int change)
{
    char name[STORE_ID_MAX + 1];
    struct row_cache_pin *pin;

    if (!layer->base[0])
        return;
    base_name(layer->base_revision, name);
    pin = pins_find(cache, layer->base, name);
    if (pin) /* else a load reports it (bases_check) */
        pin->named += (uint32_t)change;
}

static bool has_damaged_locale(const struct row_cache *cache)
{
    for (size_t i = 0; i < cache->locale_count; i++)
        if (cache->locales[i]->is_damaged)
            return true;
    return false;
}

enum err_code bases_sweep(struct store *store, struct err *err)
{
    const struct row_cache *cache = &store->cache;

    err->code = ERR_OK;
    for (size_t i = cache->pin_count; i-- > 0;) { /* what a base names was made before it */
        const struct row_cache_pin pin = cache->pins[i];

        if (!base_is(&pin) || pin.named > 0)
            continue;
        if (has_damaged_locale(cache)) /* the row that names it may be the damaged one */
            return ERR_OK;
        if (pins_drop(store, pin.value.id, pin.name, err))
            return err->code;
    }
    return ERR_OK;
}

bool bases_are_named(const struct store *store)
{
    const struct row_cache *cache = &store->cache;

    for (size_t i = 0; i < cache->pin_count; i++)
        if (base_is(&cache->pins[i]) && cache->pins[i].named == 0)
            return false;
    return true;
}

bool store_has_forks(const struct store *store)
{
    for (size_t i = 0; i < store->cache.pin_count; i++)
        if (base_is(&store->cache.pins[i]))
            return true;
    return false;
}

bool store_shares(const struct store *store, const char *locale, const char *other)
{
    const struct row_cache *cache = &store->cache;
    const struct row_cache_layer *layer = row_cache_first(cache, locale);

    while (layer && strcmp(layer->base, other) != 0)
        layer = layer->next;
    for (size_t i = 0; !layer && i < cache->pin_layer_count; i++)
        if (strcmp(cache->pin_layers[i].layer.base, other) == 0 &&
            strcmp(cache->pin_layers[i].layer.locale, locale) == 0)
            layer = &cache->pin_layers[i].layer;
    return layer != NULL;
}

unsigned store_base_depth(const struct store *store, const char *locale, const char *id)
{
    const struct row_cache *cache = &store->cache;
    const struct row_cache_layer *layer = row_cache_layer(cache, locale, id);
    const struct row_cache_pin_layer *base = layer ? base_of(cache, layer) : NULL;
    unsigned depth = 0;

    for (; base && depth < UINT32_MAX; base = base_of(cache, &base->layer))
        depth++;
    return depth;
}

/* ---- a fork is made ------------------------------------------------------------------------- */

/* The layers of a locale as they are (pin NULL), or as a pin has them. */
struct source {
    const struct row_cache *cache;
    const char *locale, *pin;
};

/* The i-th, from 0 on; NULL: there are no more. One of a pin moves when another is added. */
static const struct row_cache_layer *source_layer(const struct source *from, size_t index)
{
    const struct row_cache *cache = from->cache;

    const struct row_cache_layer *layer = from->pin ? NULL : row_cache_first(cache, from->locale);

    for (; layer; layer = layer->next)
        if (index-- == 0)
            return layer;
    for (size_t i = 0; from->pin && i < cache->pin_layer_count; i++)
        if (strcmp(cache->pin_layers[i].layer.locale, from->locale) == 0 &&
            strcmp(cache->pin_layers[i].pin, from->pin) == 0 && index-- == 0)
            return &cache->pin_layers[i].layer;
    return NULL;
}

/* Writes the base of a value unless it is there: a pin of the heightfields. */
static enum err_code put_base(struct store *store, const struct source *from,
                              const struct store_locale *value, struct err *err)
{
    struct row_cache *cache = &store->cache;
    struct row_cache_pin_layer *put;
    const struct row_cache_layer *layer;
    struct row_cache_pin *pin;
    char name[STORE_ID_MAX + 1];

    base_name(value->revision, name);
    if (pins_find(cache, value->id, name))
        return ERR_OK;
    pin = row_cache_add_pin(cache);
    if (!pin)
        return store_no_memory(store, "a fork", err);
    memcpy(pin->name, name, sizeof pin->name);
    pin->value = *value;
    for (size_t i = 0; (layer = source_layer(from, i)) != NULL; i++)
        pin->layers += layer->kind == STORE_HEIGHTFIELD;
    if (pins_write(store, pin, err))
        return err->code;
    for (size_t i = 0; (layer = source_layer(from, i)) != NULL; i++) {
        struct row_cache_layer copy = *layer;

        if (copy.kind != STORE_HEIGHTFIELD)
            continue;
        put = row_cache_add_pin_layer(cache);
        if (!put)
            return store_no_memory(store, "a fork", err);
        copy.behind = NULL;
        copy.behind_count = 0;
        copy.next = NULL;
        memcpy(put->pin, name, sizeof put->pin);
        put->revision = value->revision;
        put->layer = copy;
        base_count(cache, &copy, 1);
        if (pins_write_layer(store, put, err))
            return err->code;
    }
    return pins_write_count(store, err);
}

static enum err_code put_layer(struct store *store, const char *locale,
                               const struct row_cache_layer *from, uint64_t revision,
                               uint64_t since, struct err *err)
{
    struct row_cache_layer *layer = row_cache_add_layer(&store->cache, locale, from->id);

    if (!layer)
        return store_no_memory(store, "a fork", err);
    layer->position = from->position;
    layer->kind = from->kind;
    layer->role = from->role;
    layer->spec = from->spec;
    memcpy(layer->gravity, from->gravity, sizeof layer->gravity);
    memcpy(layer->mesh, from->mesh, sizeof layer->mesh);
    memcpy(layer->polygons, from->polygons, sizeof layer->polygons);
    if (from->kind == STORE_HEIGHTFIELD) {
        memcpy(layer->base, from->locale, sizeof layer->base);
        layer->base_revision = revision;
        layer->since = since;
        base_count(&store->cache, layer, 1);
    }
    return store_write_layer_row(store, layer, err);
}

enum err_code store_put_fork(struct store *store, const char *locale_id, const char *from_id,
                             const char *pin, struct err *err)
{
    struct row_cache *cache = &store->cache;
    const struct row_cache_locale *from = row_cache_locale(cache, from_id);
    const struct row_cache_pin *pinned = pin ? pins_find(cache, from_id, pin) : NULL;
    struct row_cache_locale *locale = row_cache_locale(cache, locale_id);
    const struct source source = {cache, from_id, pin};
    struct store_locale value;
    const struct row_cache_layer *layer;
    bool has_field = false;
    uint32_t count = 0;

    CHECK(store->is_in_transaction && !store->has_failed);
    CHECK(locale && locale->layers == 0 && from && !from->row.is_deleted && (!pin || pinned));
    value = pinned ? pinned->value : from->row;
    for (; (layer = source_layer(&source, count)) != NULL; count++)
        has_field |= layer->kind == STORE_HEIGHTFIELD;
    if (has_field && put_base(store, &source, &value, err))
        return err->code;
    for (uint32_t i = 0; i < count; i++)
        if (put_layer(store, locale_id, source_layer(&source, i), value.revision,
                      locale->row.revision, err))
            return err->code;
    locale->layers = count;
    return row_cache_write_locale(store, locale, err);
}

/* ---- one tile of a base ---------------------------------------------------------------------- */

/* The last row up to a revision, verified; *found: there is one, as of *as_of. */
static enum err_code read_row(struct store *store, const struct row_cache_layer *layer,
                              uint64_t revision, uint32_t tx, uint32_t ty, size_t bytes,
                              float *samples_m, bool *found, uint64_t *as_of, struct err *err)
{
#define ROWS_OF(table)                                                                             \
    "SELECT rev, codec = 0 AND crc = row_crc(locale, layer, ty, tx, rev, codec, data) AS "         \
    "is_good, "                                                                                    \
    "data FROM " table " WHERE locale = ?1 AND layer = ?2 AND ty = ?3 AND tx = ?4 AND rev <= ?5 "  \
    "AND rev >= ?6"
    sqlite3_stmt *read = store_ask(
        store, ROWS_OF("tile") " UNION ALL " ROWS_OF("kept_tile") " ORDER BY rev DESC LIMIT 1",
        SQL_VALUES(sql_text(layer->locale), sql_text(layer->id), sql_integer(ty), sql_integer(tx),
                   sql_integer(revision), sql_integer(layer->since)),
        err);
    int rc;

    if (!read)
        return err->code;
    rc = sqlite3_step(read);
    err->code = ERR_OK;
    *found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        store_write_error(store, rc, "a tile cannot be read", err);
    else if (*found &&
             (sqlite3_column_int(read, 1) != 1 || !column_bytes(read, 2, samples_m, bytes)))
        err_set(err, ERR_DAMAGED, "locale %s, layer %s, tile (%u, %u): its row is damaged",
                layer->locale, layer->id, tx, ty);
    *as_of = *found ? (uint64_t)sqlite3_column_int64(read, 0) : 0;
    sqlite3_reset(read);
    return err->code;
}

enum err_code base_read_tile(struct store *store, const struct row_cache_layer *layer, uint32_t tx,
                             uint32_t ty, float *samples_m, struct err *err)
{
    const struct row_cache *cache = &store->cache;
    const struct row_cache_pin_layer *base = base_of(cache, layer);
    uint64_t as_of = 0;
    uint32_t cols, rows;
    bool found = false;

    if (!base)
        return err_set(err, ERR_DAMAGED, "locale %s, layer %s: its base is not there",
                       layer->locale, layer->id);
    heightfield_tile_size(&base->layer.spec, tx, ty, &cols, &rows);
    if (read_row(store, &base->layer, base->revision, tx, ty,
                 (size_t)cols * rows * sizeof *samples_m, samples_m, &found, &as_of, err) ||
        (!found && base_read_tile(store, &base->layer, tx, ty, samples_m, err)))
        return err->code;
    for (size_t i = 0; i < cache->pending_count && !err->code; i++) {
        const struct row_cache_pending *row = &cache->pending[i];
        struct overlay overlay = {.heights_m = NULL};

        if (row->revision <= as_of || row->revision > base->revision || row->is_of_polygons ||
            !row_cache_is_of(row, &base->layer) ||
            !row_cache_touches(&base->layer.spec, row, tx, ty))
            continue;
        if (overlay_read(store, row, &overlay, err) == ERR_OK)
            overlay_apply(&overlay, tx, ty, cols, rows, cols, samples_m);
        free(overlay.heights_m);
    }
    return err->code;
}

/* ---- check ---------------------------------------------------------------------------------- */

static bool fits(const struct row_cache_layer *layer, const struct row_cache_pin_layer *base)
{
    return base && base->layer.kind == STORE_HEIGHTFIELD &&
           base->layer.spec.cols == layer->spec.cols && base->layer.spec.rows == layer->spec.rows &&
           base->layer.spec.leaf_cells == layer->spec.leaf_cells;
}

static void check_layer(const struct row_cache *cache, const struct row_cache_layer *layer,
                        store_report report, void *context)
{
    char message[288];

    if (!layer->base[0] || fits(layer, base_of(cache, layer)))
        return;
    snprintf(message, sizeof message,
             "locale %s, layer %s: revision %llu of locale %s, whose tiles it shares, is not there",
             layer->locale, layer->id, (unsigned long long)layer->base_revision, layer->base);
    report(context, layer->locale, message);
}

void bases_check(struct store *store, store_report report, void *context)
{
    const struct row_cache *cache = &store->cache;
    char message[288];

    for (size_t i = 0; i < cache->locale_count; i++)
        for (const struct row_cache_layer *layer = cache->locales[i]->first; layer;
             layer = layer->next)
            check_layer(cache, layer, report, context);
    for (size_t i = 0; i < cache->pin_layer_count; i++)
        check_layer(cache, &cache->pin_layers[i].layer, report, context);
    if (!store->is_read_only || has_damaged_locale(cache)) /* store_load removes them, or none */
        return;
    for (size_t i = 0; i < cache->pin_count; i++) {
        const struct row_cache_pin *pin = &cache->pins[i];

        if (!base_is(pin) || pin->named > 0)
            continue;
        snprintf(message, sizeof message, "locale %s: no fork needs what is kept of revision %llu",
                 pin->value.id, (unsigned long long)pin->value.revision);
        report(context, pin->value.id, message);
    }
}

/* ---- load ----------------------------------------------------------------------------------- */

struct base {
    const struct row_cache_pin_layer *pinned;
    struct tiles_loaded loaded; /* field NULL: err */
    struct err err;
};

struct bases {
    size_t count;
    struct base at[];
};

const struct tiles_loaded *bases_last(const struct bases *bases,
                                      const struct row_cache_layer *layer)
{
    for (size_t i = bases->count; i-- > 0;) {
        const struct base *base = &bases->at[i];

        if (base->loaded.field && strcmp(base->pinned->layer.locale, layer->locale) == 0 &&
            strcmp(base->pinned->layer.id, layer->id) == 0)
            return &base->loaded;
    }
    return NULL;
}

enum err_code bases_find(const struct bases *bases, const struct row_cache_layer *layer,
                         const struct tiles_loaded **out, struct err *err)
{
    *out = NULL;
    if (!layer->base[0])
        return ERR_OK;
    for (size_t i = 0; i < bases->count; i++) {
        const struct base *base = &bases->at[i];

        if (base->pinned->revision != layer->base_revision ||
            strcmp(base->pinned->layer.id, layer->id) != 0 ||
            strcmp(base->pinned->layer.locale, layer->base) != 0)
            continue;
        if (!base->loaded.field)
            return err_set(err, base->err.code, "locale %s, layer %s shares tiles with %.160s",
                           layer->locale, layer->id, base->err.msg);
        *out = &base->loaded;
        return ERR_OK;
    }
    return err_set(err, ERR_DAMAGED, "locale %s, layer %s: its base is not there", layer->locale,
                   layer->id);
}

/* The next base of the list, sharing tiles with those before it. */
static enum err_code load_base(struct store *store, struct tile_readers *readers,
                               const struct row_cache_pin *pin,
                               const struct row_cache_pin_layer *pinned, struct bases *bases,
                               struct err *err)
{
    const struct row_cache_layer *layer = &pinned->layer;
    const struct tiles_loaded *last = bases_last(bases, layer), *under;
    struct base *base = &bases->at[bases->count];

    *base = (struct base){.pinned = pinned};
    if (last && !tiles_loaded_copy(last, &base->loaded))
        return err_set(err, ERR_NO_MEMORY, "no memory to load a base");
    bases->count++;
    if (bases_find(bases, layer, &under, &base->err) == ERR_OK) {
        struct heightfield *field =
            tiles_load(store, readers, layer, pinned, pin->value.triangulation, &base->loaded,
                       under, &base->err);

        heightfield_unref(field); /* the state has its own reference */
        if (field)
            return ERR_OK;
    }
    tiles_loaded_free(&base->loaded);
    if (base->err.code == ERR_NO_MEMORY)
        *err = base->err;
    return err->code;
}

struct bases *bases_load(struct store *store, struct tile_readers *readers, struct err *err)
{
    const struct row_cache *cache = &store->cache;
    struct bases *bases = calloc(1, sizeof *bases + cache->pin_layer_count * sizeof *bases->at);

    if (!bases) {
        err_set(err, ERR_NO_MEMORY, "no memory to load forks");
        return NULL;
    }
    for (size_t i = 0; i < cache->pin_count; i++) {
        const struct row_cache_pin *pin = &cache->pins[i];

        for (size_t k = 0; base_is(pin) && k < cache->pin_layer_count; k++) {
            const struct row_cache_pin_layer *pinned = &cache->pin_layers[k];

            if (pinned->revision != pin->value.revision || strcmp(pinned->pin, pin->name) != 0 ||
                strcmp(pinned->layer.locale, pin->value.id) != 0 ||
                pinned->layer.kind != STORE_HEIGHTFIELD)
                continue;
            if (load_base(store, readers, pin, pinned, bases, err)) {
                bases_free(bases);
                return NULL;
            }
        }
    }
    return bases;
}

void bases_free(struct bases *bases)
{
    for (size_t i = 0; bases && i < bases->count; i++)
        tiles_loaded_free(&bases->at[i].loaded);
    free(bases);
}
