/*
 * Edits of polygon sets.
 *
 * Problem: the number 7 in an answer must mean the same polygon for ever, after any edits.
 * Approach: the set keeps a place for every number that was ever given. A removed polygon keeps its
 * entry in `starts`, of no length; so a number is found without a table, and two states of a set
 * can be compared by their starts only (polygon_edit_between), to update a mesh that was built of
 * an older state. A gap costs 4 bytes; their number is bounded (POLYGON_NUMBERS_TIMES).
 *
 * Invariant: starts never fall, starts[0] is 0, every corner is a vertex.
 */
#include "formats/polygon/polygon_edit.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { COUNTS = 4 };

void polygon_edit_free(struct polygon_edit *edit)
{
    polygon_set_free(&edit->add);
    free(edit->removed);
    *edit = (struct polygon_edit){.removed = NULL};
}

static size_t corners_of(const struct polygon_set *set)
{
    return set->starts ? set->starts[set->polygon_count] : 0;
}

static bool is_gap(const struct polygon_set *set, size_t number)
{
    return set->starts[number] == set->starts[number + 1];
}

uint64_t polygon_edit_bytes(const struct polygon_edit *edit)
{
    return edit->add.vertex_count * sizeof *edit->add.vertices +
           (edit->add.polygon_count + 1) * sizeof *edit->add.starts +
           corners_of(&edit->add) * sizeof *edit->add.corners +
           edit->removed_count * sizeof *edit->removed;
}

size_t polygon_set_count(const struct polygon_set *set)
{
    size_t count = 0;

    if (set->instances.count > 0)
        return polygon_set_numbers(set);
    for (size_t i = 0; i < set->polygon_count; i++)
        count += !is_gap(set, i);
    return count;
}

/* ---- may it be? ------------------------------------------------------------------------------ */

static enum err_code removed_check(const struct polygon_set *set, const struct polygon_edit *edit,
                                   struct err *err)
{
    size_t numbers = polygon_set_numbers(set);

    for (size_t i = 0; i < edit->removed_count; i++) {
        uint32_t number = edit->removed[i];

        if (number >= numbers)
            return err_set(err, ERR_UNPROCESSABLE, "there is no polygon %u, numbers end at %zu",
                           number, numbers - 1);
        if (set->instances.count == 0 && is_gap(set, number))
            return err_set(err, ERR_UNPROCESSABLE, "there is no polygon %u any more", number);
    }
    return ERR_OK;
}

enum err_code polygon_edit_check(const struct polygon_set *set, const struct polygon_edit *edit,
                                 const struct polygon_limits *limits, struct err *err)
{
    size_t numbers = polygon_set_numbers(set) + edit->add.polygon_count;
    uint64_t numbers_max = limits->polygons_max * POLYGON_NUMBERS_TIMES;
    size_t corners = polygon_set_corners(set) + corners_of(&edit->add);

    if (removed_check(set, edit, err))
        return err->code;
    for (size_t i = 0; set->instances.count == 0 && i < edit->removed_count; i++)
        corners -= set->starts[edit->removed[i] + 1] - set->starts[edit->removed[i]];
    if (numbers_max > UINT32_MAX - 1)
        numbers_max = UINT32_MAX - 1;
    if (numbers > numbers_max)
        return err_limit(err, ERR_TOO_LARGE, (double)numbers_max, (double)numbers,
                         "the layer would have given %zu numbers to polygons, at most %llu; put it "
                         "again to begin from 0",
                         numbers, (unsigned long long)numbers_max);
    return polygon_check_counts("the layer", set->vertex_count + edit->add.vertex_count,
                                polygon_set_count(set) + edit->add.polygon_count -
                                    edit->removed_count,
                                corners, limits, err);
}

/* ---- made ------------------------------------------------------------------------------------ */

/* Appends the polygons of `from` to those of *out, without removed ones, and its vertices. */
static void append(const struct polygon_set *from, const uint8_t *is_gone, struct polygon_set *out)
{
    uint32_t at = out->starts[out->polygon_count], base = (uint32_t)out->vertex_count;

    if (from->vertex_count > 0)
        memcpy(out->vertices + base, from->vertices, from->vertex_count * sizeof *out->vertices);
    out->vertex_count += from->vertex_count;
    for (size_t i = 0; i < from->polygon_count; i++) {
        bool is_left_out = is_gone[out->polygon_count] != 0;

        for (uint32_t k = from->starts[i]; k < from->starts[i + 1] && !is_left_out; k++)
            out->corners[at++] = from->corners[k] + base;
        out->starts[++out->polygon_count] = at;
    }
}

/* Leaves out vertices without a corner. False without memory. */
static bool compact(struct polygon_set *set)
{
    uint32_t *map = calloc(set->vertex_count + 1, sizeof *map);
    size_t kept = 0, corners = corners_of(set);

    if (!map)
        return false;
    for (size_t k = 0; k < corners; k++)
        map[set->corners[k]] = 1;
    for (size_t i = 0; i < set->vertex_count; i++) {
        if (!map[i])
            continue;
        set->vertices[kept] = set->vertices[i];
        map[i] = (uint32_t)kept++;
    }
    for (size_t k = 0; k < corners; k++)
        set->corners[k] = map[set->corners[k]];
    set->vertex_count = kept;
    free(map);
    return true;
}

/* Which numbers are gone after the edits. */
static enum err_code mark_gone(const struct polygon_set *set, const struct polygon_edit *edits,
                               size_t count, uint8_t *is_gone, struct err *err)
{
    size_t numbers = set->polygon_count;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < edits[i].removed_count; k++) {
            if (edits[i].removed[k] >= numbers)
                return err_set(err, ERR_DAMAGED, "an edit removes polygon %u, there were %zu",
                               edits[i].removed[k], numbers);
            is_gone[edits[i].removed[k]] = 1;
        }
        numbers += edits[i].add.polygon_count;
    }
    return ERR_OK;
}

/* Of a set without instances. */
static enum err_code flat_edited_all(const struct polygon_set *set,
                                     const struct polygon_edit *edits, size_t count,
                                     struct polygon_set *out, struct err *err)
{
    size_t vertices = set->vertex_count, polygons = set->polygon_count, corners = corners_of(set);
    uint8_t *is_gone;
    bool is_whole = false;

    *out = (struct polygon_set){.vertices = NULL};
    for (size_t i = 0; i < count; i++) {
        vertices += edits[i].add.vertex_count;
        polygons += edits[i].add.polygon_count;
        corners += corners_of(&edits[i].add);
    }
    if (vertices > UINT32_MAX - 1 || polygons > UINT32_MAX - 1 || corners > UINT32_MAX - 1)
        return err_set(err, ERR_TOO_LARGE, "the layer would have more than 2^32 corners");
    is_gone = calloc(polygons + 1, 1);
    if (!is_gone)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu polygons", polygons);
    if (mark_gone(set, edits, count, is_gone, err) == ERR_OK &&
        polygon_set_allocate(vertices, polygons, corners, out, err) == ERR_OK) {
        out->vertex_count = out->polygon_count = 0; /* they are appended */
        append(set, is_gone, out);
        for (size_t i = 0; i < count; i++)
            append(&edits[i].add, is_gone, out);
        is_whole = memchr(is_gone, 1, polygons + 1) == NULL;
        if (!is_whole && !compact(out)) {
            polygon_set_free(out);
            err_set(err, ERR_NO_MEMORY, "no memory for %zu vertices", vertices);
        }
    }
    free(is_gone);
    return out->starts ? ERR_OK : err->code;
}

enum err_code polygon_set_edited_all(const struct polygon_set *set,
                                     const struct polygon_edit *edits, size_t count,
                                     struct polygon_set *out, struct err *err)
{
    struct polygon_set made;
    const struct polygon_set *flat = polygon_set_flat(set, &made, err);

    *out = (struct polygon_set){.vertices = NULL};
    if (flat)
        flat_edited_all(flat, edits, count, out, err);
    polygon_set_free(&made);
    return out->starts ? ERR_OK : err->code;
}

enum err_code polygon_set_edited(const struct polygon_set *set, const struct polygon_edit *edit,
                                 struct polygon_set *out, struct err *err)
{
    return polygon_set_edited_all(set, edit, 1, out, err);
}

/* ---- between two states ---------------------------------------------------------------------- */

/* Polygons of `after` from number `first` on, with the vertices that they have. */
static enum err_code tail(const struct polygon_set *after, size_t first, struct polygon_set *out,
                          struct err *err)
{
    size_t polygons = after->polygon_count - first;
    size_t corners = after->starts[after->polygon_count] - after->starts[first];

    if (polygon_set_allocate(after->vertex_count, polygons, corners, out, err))
        return err->code;
    memcpy(out->vertices, after->vertices, after->vertex_count * sizeof *out->vertices);
    if (corners > 0)
        memcpy(out->corners, after->corners + after->starts[first], corners * sizeof *out->corners);
    for (size_t i = 0; i <= polygons; i++)
        out->starts[i] = after->starts[first + i] - after->starts[first];
    if (compact(out))
        return ERR_OK;
    polygon_set_free(out);
    return err_set(err, ERR_NO_MEMORY, "no memory for %zu polygons", polygons);
}

/* Of a set that may be of instances, which has no gaps. */
static bool is_there(const struct polygon_set *set, size_t number)
{
    return set->instances.count > 0 || !is_gap(set, number);
}

enum err_code polygon_edit_between(const struct polygon_set *before,
                                   const struct polygon_set *after, struct polygon_edit *out,
                                   struct err *err)
{
    size_t count = 0, numbers = polygon_set_numbers(before);

    *out = (struct polygon_edit){.removed = NULL};
    CHECK(after->instances.count == 0);
    for (size_t i = 0; i < numbers; i++)
        count += is_there(before, i) && is_gap(after, i);
    out->removed = malloc((count + 1) * sizeof *out->removed);
    if (!out->removed)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu polygons", count);
    for (size_t i = 0; i < numbers; i++)
        if (is_there(before, i) && is_gap(after, i))
            out->removed[out->removed_count++] = (uint32_t)i;
    if (tail(after, numbers, &out->add, err) == ERR_OK)
        return ERR_OK;
    polygon_edit_free(out);
    return err->code;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void *put(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return (char *)to + bytes;
}

void *polygon_edit_encode(const struct polygon_edit *edit, size_t *length)
{
    static const uint32_t none = 0;
    const struct polygon_set *add = &edit->add;
    const uint64_t counts[COUNTS] = {add->vertex_count, add->polygon_count, corners_of(add),
                                     edit->removed_count};
    char *bytes, *to;

    *length = sizeof counts + counts[0] * sizeof *add->vertices +
              (counts[1] + 1 + counts[2] + counts[3]) * sizeof(uint32_t) +
              polygon_instances_bytes(add);
    bytes = to = malloc(*length);
    if (!bytes)
        return NULL;
    to = put(to, counts, sizeof counts);
    to = put(to, add->vertices, counts[0] * sizeof *add->vertices);
    to = put(to, add->starts ? add->starts : &none, (counts[1] + 1) * sizeof *add->starts);
    to = put(to, add->corners, counts[2] * sizeof *add->corners);
    to = put(to, edit->removed, counts[3] * sizeof *edit->removed);
    polygon_instances_put(add, to);
    return bytes;
}

/* Are the indices and numbers valid? */
static bool is_sound(const struct polygon_edit *edit)
{
    const struct polygon_set *add = &edit->add;
    bool is_good = add->starts[0] == 0;

    for (size_t i = 0; i < add->polygon_count; i++)
        is_good &= add->starts[i] <= add->starts[i + 1];
    for (size_t k = 0; is_good && k < corners_of(add); k++)
        is_good = add->corners[k] < add->vertex_count;
    for (size_t i = 0; i < add->vertex_count; i++)
        is_good &= vec3_is_finite(add->vertices[i]);
    for (size_t i = 1; i < edit->removed_count; i++)
        is_good &= edit->removed[i - 1] < edit->removed[i];
    return is_good;
}

static const char *take(void *to, const char *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return from + bytes;
}

enum err_code polygon_edit_decode(const void *bytes, size_t length, struct polygon_edit *out,
                                  struct err *err)
{
    const char *from = bytes;
    uint64_t counts[COUNTS];
    bool is_good = length >= sizeof counts;

    *out = (struct polygon_edit){.removed = NULL};
    if (is_good)
        from = take(counts, from, sizeof counts);
    for (int i = 0; is_good && i < COUNTS; i++)
        is_good = counts[i] < UINT32_MAX;
    size_t plain = is_good ? sizeof counts + counts[0] * sizeof(struct vec3) +
                                 (counts[1] + 1 + counts[2] + counts[3]) * sizeof(uint32_t)
                           : SIZE_MAX;

    if (length < plain)
        return err_set(err, ERR_DAMAGED, "%zu bytes are no edit of polygons", length);
    if (polygon_set_allocate(counts[0], counts[1], counts[2], &out->add, err))
        return err->code;
    out->removed = malloc((counts[3] + 1) * sizeof *out->removed);
    if (!out->removed) {
        polygon_edit_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for an edit of polygons");
    }
    out->removed_count = counts[3];
    from = take(out->add.vertices, from, counts[0] * sizeof *out->add.vertices);
    from = take(out->add.starts, from, (counts[1] + 1) * sizeof *out->add.starts);
    from = take(out->add.corners, from, counts[2] * sizeof *out->add.corners);
    from = take(out->removed, from, counts[3] * sizeof *out->removed);
    err->code = ERR_OK;
    if (out->add.starts[counts[1]] == counts[2] && is_sound(out) &&
        polygon_instances_take(from, length - plain, &out->add, err))
        return ERR_OK;
    polygon_edit_free(out);
    return err_set(err, ERR_DAMAGED, "an edit of polygons has an index that cannot be");
}
