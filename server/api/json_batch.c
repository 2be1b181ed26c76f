/*
 * Batches without a tree.
 *
 * Problem: of 1,000 points cJSON makes 3,000 nodes and calls strtod 2,000 times: 300 ns a point,
 * where asking for the height costs 20. Approach: the array of a batch is found by its name in the
 * object, and read in one pass into numbers. This reader knows the shapes of our calls and nothing
 * else, and gives no reasons: what it does not take is read the long way (json_check.h, cJSON and
 * the getters), which takes it or says what is wrong, so errors are the same whoever finds them.
 * The text around the array is small: it goes the long way with `[]` in the array's place.
 *
 * Why that is sound: the finder trusts the grammar of what stands before the array. When the text
 * with `[]` in the array's place passes the strict checker, what stands before is the beginning of
 * a JSON text, so the finder saw its strings and brackets as they are; and a value may replace a
 * value. Invariant: nothing is read at or behind `end`.
 * Tried and dropped: reading item by item while answering (an option may stand behind the array).
 */
#include "api/json_batch.h"

#include "api/json_check.h"
#include "api/json_heights.h"
#include "base/number_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const ray_members[] = {"origin", "direction", "t_max", "trace", NULL};
static const char *const segment_members[] = {"from", "to", NULL};

const struct json_shape json_shape_points2 = {"points", "a point", 2, 0, {{0}}, NULL};
const struct json_shape json_shape_points3 = {"points", "a point", 3, 0, {{0}}, NULL};
const struct json_shape json_shape_path = {"path", "a point", 2, 0, {{0}}, NULL};
const struct json_shape json_shape_rays = {
    "rays",     "a ray", 7, 3, {{"origin", 3, 0}, {"direction", 3, 0}, {"t_max", 1, INFINITY}},
    ray_members};
const struct json_shape json_shape_segments = {
    "segments", "a segment", 6, 2, {{"from", 3, 0}, {"to", 3, 0}}, segment_members};

const char *json_batch_find(struct span text, const struct json_shape *shape)
{
    const char *value = json_find_value(text, shape->member);

    return value && *value == '[' ? value : NULL;
}

size_t json_batch_items_max(struct span text, const char *array, const struct json_shape *shape)
{
    size_t left = text.length - (size_t)(array - text.at);

    return left / (2 * shape->stride + 2) + 1; /* `[0,0],` */
}

static inline const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Behind `c` and the space around it; NULL when something else is there. */
static inline const char *expect(const char *at, const char *end, char c)
{
    at = skip_space(at, end);
    return at < end && *at == c ? skip_space(at + 1, end) : NULL;
}

static inline const char *read_number(const char *at, const char *end, double *out)
{
    return json_number_read(at, end, JSON_NUMBER_BYTES_MAX, out);
}

/* An array of exactly `count` numbers. */
static inline const char *read_numbers(const char *at, const char *end, size_t count, double *out)
{
    at = expect(at, end, '[');
    for (size_t i = 0; at && i < count; i++) {
        at = read_number(at, end, &out[i]);
        if (at)
            at = expect(at, end, i + 1 < count ? ',' : ']');
    }
    return at;
}

/* The part whose quoted name stands at `at`, part_count when there is none. */
static size_t part_at(const char *at, const char *end, const struct json_shape *shape)
{
    for (size_t i = 0; i < shape->part_count; i++) {
        const char *name = shape->parts[i].name;
        size_t length = strlen(name);

        if ((size_t)(end - at) > length + 2 && at[0] == '"' && at[length + 1] == '"' &&
            memcmp(at + 1, name, length) == 0)
            return i;
    }
    return shape->part_count;
}

static const char *read_member(const char *at, const char *end, const struct json_shape *shape,
                               unsigned *seen, double *out)
{
    size_t i = part_at(at, end, shape);

    if (i == shape->part_count || (*seen >> i & 1) != 0)
        return NULL;
    *seen |= 1u << i;
    at = expect(at + strlen(shape->parts[i].name) + 2, end, ':');
    for (size_t k = 0; k < i; k++)
        out += shape->parts[k].numbers;
    if (!at)
        return NULL;
    return shape->parts[i].numbers == 1 ? read_number(at, end, out)
                                        : read_numbers(at, end, shape->parts[i].numbers, out);
}

static const char *read_object(const char *at, const char *end, const struct json_shape *shape,
                               double *out)
{
    unsigned seen = 0;

    at = expect(at, end, '{');
    while (at) {
        at = read_member(at, end, shape, &seen, out);
        at = at ? skip_space(at, end) : NULL;
        if (!at || at >= end)
            return NULL;
        if (*at == '}')
            break;
        at = expect(at, end, ',');
    }
    if (!at)
        return NULL;
    for (size_t i = 0; i < shape->part_count; out += shape->parts[i++].numbers) {
        if ((seen >> i & 1) != 0)
            continue;
        if (shape->parts[i].numbers != 1)
            return NULL;
        *out = shape->parts[i].missing;
    }
    return skip_space(at + 1, end);
}

bool json_batch_read(struct span text, const char *array, const struct json_shape *shape,
                     size_t capacity, double *numbers, struct json_batch *out)
{
    const char *end = text.at + text.length, *at = expect(array, end, '[');
    size_t count = 0, stride = shape->stride;

    while (at && count < capacity) {
        double *item = numbers + count++ * stride;

        at = shape->part_count != 0 ? read_object(at, end, shape, item)
                                    : read_numbers(at, end, stride, item);
        if (!at || at >= end)
            return false;
        if (*at == ']') {
            *out = (struct json_batch){{array, (size_t)(at + 1 - array)}, numbers, count};
            return true;
        }
        at = expect(at, end, ',');
    }
    return false;
}

/* ---- the long way -----------------------------------------------------------------------------
 */

static enum err_code read_parts(const cJSON *item, size_t i, const struct json_shape *shape,
                                double *out, struct err *err)
{
    char place[64];

    snprintf(place, sizeof place, "/%s/%zu", shape->member, i);
    if (!cJSON_IsObject(item)) {
        err_set(err, ERR_BAD_INPUT, "%s is an object, not %s", shape->item, json_kind(item));
        return err_at(err, "%s", place);
    }
    if (json_only_members(item, shape->members, place, err))
        return err->code;
    for (size_t k = 0; k < shape->part_count; out += shape->parts[k++].numbers) {
        const struct json_part *part = &shape->parts[k];
        const cJSON *value =
            part->numbers == 1 ? json_given(item, part->name) : json_member(item, part->name);

        if (part->numbers == 1)
            *out = part->missing;
        if (part->numbers == 1 ? value && json_get_number(value, out, err)
                               : json_get_numbers(value, part->numbers, out, err))
            return err_at(err, "%s/%s", place, part->name);
    }
    return ERR_OK;
}

enum err_code json_read_batch(const cJSON *first, const struct json_shape *shape, double *numbers,
                              struct err *err)
{
    size_t i = 0;

    for (const cJSON *item = first; item; item = item->next, i++, numbers += shape->stride) {
        if (shape->part_count != 0) {
            if (read_parts(item, i, shape, numbers, err))
                return err->code;
        } else if (json_get_numbers(item, shape->stride, numbers, err)) {
            return err_at(err, "/%s/%zu", shape->member, i);
        }
    }
    return ERR_OK;
}
