/*
 * Lists of earlier values of a locale.
 *
 * Problem: a request may ask a value that was, and must find it without a lock and without a copy.
 * Approach: values are immutable and share what did not change, so an earlier one is a reference. A
 * change makes new lists, of 64 references at most. A value in a list has no lists itself, or each
 * would hold all before it for ever.
 *
 * Bytes: of two fields of one size the tiles are compared by address, which costs a nanosecond a
 * tile; a mesh counts whole. A tile that a pin and the past both hold is counted twice.
 */
#include "world/values/pins.h"

#include "base/check.h"
#include "world/values/locale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct earlier_list *earlier_list_ref(struct earlier_list *list)
{
    if (list)
        __atomic_fetch_add(&list->refs, 1, __ATOMIC_RELAXED);
    return list;
}

void earlier_list_unref(struct earlier_list *list)
{
    if (!list || __atomic_fetch_sub(&list->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    for (size_t i = 0; i < list->count; i++)
        locale_unref(list->at[i].value);
    free(list);
}

/* An empty list with room. */
static struct earlier_list *list_create(size_t room, struct err *err)
{
    struct earlier_list *list = calloc(1, sizeof *list + room * sizeof *list->at);

    if (!list)
        err_set(err, ERR_NO_MEMORY, "no memory for earlier values of a locale");
    else
        list->refs = 1;
    return list;
}

static void append(struct earlier_list *list, const struct earlier *earlier)
{
    struct earlier *at = &list->at[list->count++];

    *at = *earlier;
    locale_ref(at->value);
    list->bytes += at->bytes;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint64_t layer_difference(const struct layer *a, const struct layer *b)
{
    const struct heightfield_spec *of_a, *of_b;
    struct heightfield_tile_layout tiles;
    uint64_t differing = 0, count;

    if (b && a->mesh == b->mesh && a->kind == LAYER_MESH)
        return 0;
    if (!b || a->kind != LAYER_HEIGHTFIELD || b->kind != LAYER_HEIGHTFIELD)
        return a->memory_bytes;
    of_a = heightfield_spec(a->field);
    of_b = heightfield_spec(b->field);
    if (of_a->cols != of_b->cols || of_a->rows != of_b->rows)
        return a->memory_bytes;
    tiles = heightfield_tile_layout(of_a);
    count = (uint64_t)tiles.tile_cols * tiles.tile_rows;
    for (uint32_t row = 0; row < tiles.tile_rows; row++)
        for (uint32_t column = 0; column < tiles.tile_cols; column++)
            differing += heightfield_tile_serial(a->field, column, row) !=
                         heightfield_tile_serial(b->field, column, row);
    return sizeof *a + a->memory_bytes / count * differing;
}

/* Of `a`, what it does not share with `b`. */
static uint64_t difference(const struct locale *a, const struct locale *b)
{
    uint64_t bytes = sizeof *a + a->layer_count * sizeof *a->layers;

    for (size_t i = 0; i < a->layer_count; i++) {
        const struct layer *other = locale_layer(b, a->layers[i]->id);

        bytes += a->layers[i] == other ? 0 : layer_difference(a->layers[i], other);
    }
    return bytes;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The value without lists, its layers at rest. */
static struct locale *value_of(const struct locale *locale, struct err *err)
{
    struct layer *layers[LOCALE_LAYERS_MAX];
    struct locale *value;
    size_t count = 0;

    for (; count < locale->layer_count; count++) {
        struct layer *layer = locale->layers[count];

        layers[count] = layer->is_moved ? layer_rested(layer, err) : layer_ref(layer);
        if (layers[count])
            continue;
        while (count > 0)
            layer_unref(layers[--count]);
        return NULL;
    }
    value = locale_assemble(locale->id, locale->revision, &locale->manifest, layers, count, err);
    if (value)
        value->transform_seq = locale->transform_seq;
    return value;
}

struct locale *locale_pin(const struct locale *locale, const char *name)
{
    const struct earlier_list *pins = locale->pins;

    for (size_t i = 0; pins && i < pins->count; i++)
        if (strcmp(pins->at[i].name, name) == 0)
            return pins->at[i].value;
    return NULL;
}

const struct locale *locale_at_revision(const struct locale *locale, uint64_t revision)
{
    const struct earlier_list *lists[] = {locale->past, locale->pins};

    if (locale->revision == revision)
        return locale;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t k = 0; lists[i] && k < lists[i]->count; k++)
            if (lists[i]->at[k].value->revision == revision)
                return lists[i]->at[k].value;
    return NULL;
}

/* ---- the past -------------------------------------------------------------------------------- */

/* The past of the state after `before`. */
static struct earlier_list *past_after(const struct locale *before, const struct locale *next,
                                       uint64_t bytes_max, struct err *err)
{
    const struct earlier_list *past = before->past;
    struct earlier last = {.value = value_of(before, err)};
    size_t count = past ? past->count : 0, first = 0;
    uint64_t bytes = past ? past->bytes : 0;
    struct earlier_list *list;

    if (!last.value)
        return NULL;
    last.bytes = difference(before, next);
    bytes += last.bytes;
    while (first < count && (count - first >= LOCALE_PAST_MAX || bytes > bytes_max))
        bytes -= past->at[first++].bytes;
    list = list_create(count - first + 1, err);
    for (size_t i = first; list && i < count; i++)
        append(list, &past->at[i]);
    if (list && bytes <= bytes_max)
        append(list, &last);
    locale_unref(last.value);
    return list;
}

/* The pins with what the newest of them no longer shares with the locale. */
static struct earlier_list *pins_after(struct earlier_list *pins, const struct locale *next,
                                       struct err *err)
{
    struct earlier_list *list;
    size_t newest = 0;

    if (!pins)
        return NULL;
    list = list_create(pins->count, err);
    for (size_t i = 0; list && i < pins->count; i++) {
        append(list, &pins->at[i]);
        newest = pins->at[i].value->revision > pins->at[newest].value->revision ? i : newest;
    }
    if (list) {
        list->bytes -= list->at[newest].bytes;
        list->at[newest].bytes = difference(list->at[newest].value, next);
        list->bytes += list->at[newest].bytes;
    }
    return list;
}

enum err_code locale_succeed(struct locale *next, const struct locale *before, uint64_t bytes_max,
                             struct err *err)
{
    CHECK(!next->pins && !next->past);
    if (next->revision == before->revision) {
        next->pins = earlier_list_ref(before->pins);
        next->past = earlier_list_ref(before->past);
        return ERR_OK;
    }
    next->pins = pins_after(before->pins, next, err);
    if (before->pins && !next->pins)
        return err->code;
    next->past = past_after(before, next, bytes_max, err);
    return next->past ? ERR_OK : err->code;
}

/* ---- pins ------------------------------------------------------------------------------------ */

/* The pins without one of that name, with `value` (may be NULL) under it. */
static struct earlier_list *pins_with(const struct earlier_list *pins, const char *name,
                                      struct locale *value, struct err *err)
{
    struct earlier_list *list = list_create((pins ? pins->count : 0) + 1, err);
    struct earlier put = {.value = value};
    size_t i = 0;

    if (!list)
        return NULL;
    snprintf(put.name, sizeof put.name, "%s", name);
    for (; pins && i < pins->count && strcmp(pins->at[i].name, name) < 0; i++)
        append(list, &pins->at[i]);
    if (value)
        append(list, &put);
    for (; pins && i < pins->count; i++)
        if (strcmp(pins->at[i].name, name) != 0)
            append(list, &pins->at[i]);
    return list;
}

/* The same state with other pins, which it takes. */
static struct locale *with_pins(const struct locale *locale, struct earlier_list *pins,
                                struct err *err)
{
    struct locale *next = pins ? locale_copy(locale, err) : NULL;

    if (!next) {
        earlier_list_unref(pins);
        return NULL;
    }
    earlier_list_unref(next->pins);
    if (pins->count == 0) {
        earlier_list_unref(pins);
        pins = NULL;
    }
    next->pins = pins;
    return next;
}

struct locale *locale_with_pin(const struct locale *locale, const char *name, struct locale *value,
                               struct err *err)
{
    struct locale *kept = value ? locale_ref(value) : value_of(locale, err);
    struct locale *next =
        kept ? with_pins(locale, pins_with(locale->pins, name, kept, err), err) : NULL;

    locale_unref(kept);
    return next;
}

struct locale *locale_without_pin(const struct locale *locale, const char *name, struct err *err)
{
    return with_pins(locale, pins_with(locale->pins, name, NULL, err), err);
}

enum err_code locale_add_pin(struct locale *locale, const char *name, struct locale *value,
                             struct err *err)
{
    struct earlier_list *pins = pins_with(locale->pins, name, value, err);

    if (!pins)
        return err->code;
    earlier_list_unref(locale->pins);
    locale->pins = pins;
    for (size_t i = 0; i < pins->count; i++)
        if (pins->at[i].value == value) {
            pins->at[i].bytes = difference(value, locale);
            pins->bytes += pins->at[i].bytes;
        }
    return ERR_OK;
}
