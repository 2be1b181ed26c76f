/*
 * Batches from the tape.
 *
 * Problem: the items of a batch are all alike and many; by cJSON a point costs 300 ns, while its
 * height costs 20. Approach: an item whose tokens are just those of its shape is copied. Any other
 * item becomes a node of cJSON for the getters, which read it or report its error, so errors are
 * the same for all forms of a call.
 */
#include "json/json_batch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const ray_members[] = {"origin", "direction", "t_max", "trace", NULL};
static const char *const segment_members[] = {"from", "to", NULL};

const struct json_shape json_shape_points2 = {"points", "a point", 2, 0, {{0}}, NULL};
const struct json_shape json_shape_pixels = {"pixels", "a pixel", 2, 0, {{0}}, NULL};
const struct json_shape json_shape_points3 = {"points", "a point", 3, 0, {{0}}, NULL};
const struct json_shape json_shape_path = {"path", "a point", 2, 0, {{0}}, NULL};
const struct json_shape json_shape_rays = {
    "rays",     "a ray", 7, 3, {{"origin", 3, 0}, {"direction", 3, 0}, {"t_max", 1, INFINITY}},
    ray_members};
const struct json_shape json_shape_segments = {
    "segments", "a segment", 6, 2, {{"from", 3, 0}, {"to", 3, 0}}, segment_members};

/* ---- from the tape --------------------------------------------------------------------------- */

/* The part that the token names, part_count when there is none. */
static size_t part_at(const struct json_tape *tape, const struct json_token *name,
                      const struct json_shape *shape)
{
    size_t i = 0;

    for (; i < shape->part_count; i++) {
        size_t length = strlen(shape->parts[i].name);

        if (name->end - name->begin == length + 2 &&
            memcmp(tape->text + name->begin + 1, shape->parts[i].name, length) == 0)
            break;
    }
    return i;
}

static bool copy_part(const struct json_token *value, const struct json_shape *shape, size_t part,
                      double *out)
{
    for (size_t k = 0; k < part; k++)
        out += shape->parts[k].numbers;
    if (shape->parts[part].numbers > 1)
        return json_token_numbers(value, shape->parts[part].numbers, out);
    if (value->kind == JSON_NUMBER)
        *out = value->number;
    return value->kind == JSON_NUMBER;
}

static bool copy_object(const struct json_tape *tape, uint32_t item, const struct json_shape *shape,
                        double *out)
{
    unsigned seen = 0;

    if (tape->tokens[item].kind != JSON_OBJECT)
        return false;
    for (uint32_t at = item + 1; at < tape->tokens[item].next; at = tape->tokens[at + 1].next) {
        size_t part = part_at(tape, &tape->tokens[at], shape);

        if (part == shape->part_count || (seen >> part & 1) != 0 ||
            !copy_part(&tape->tokens[at + 1], shape, part, out))
            return false;
        seen |= 1u << part;
    }
    for (size_t i = 0; i < shape->part_count; out += shape->parts[i++].numbers) {
        if ((seen >> i & 1) != 0)
            continue;
        if (shape->parts[i].numbers != 1)
            return false;
        *out = shape->parts[i].missing;
    }
    return true;
}

/* ---- unusual items --------------------------------------------------------------------------- */

static enum err_code parts_of(const cJSON *item, size_t i, const struct json_shape *shape,
                              double *out, struct err *err)
{
    char place[64];

    snprintf(place, sizeof place, "/%s/%zu", shape->member, i);
    if (!cJSON_IsObject(item))
        return err_set_at(err, ERR_BAD_INPUT, place, "%s is an object, not %s", shape->item,
                          json_kind(item));
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

enum err_code json_batch_item(const cJSON *item, size_t i, const struct json_shape *shape,
                              double *numbers, struct err *err)
{
    if (shape->part_count != 0)
        return parts_of(item, i, shape, numbers, err);
    if (json_get_numbers(item, shape->stride, numbers, err))
        return err_at(err, "/%s/%zu", shape->member, i);
    return ERR_OK;
}

static enum err_code read_unusual(const struct json_tape *tape, uint32_t item, size_t i,
                                  const struct json_shape *shape, double *numbers, struct err *err)
{
    cJSON *tree = json_tape_tree(tape, item);
    enum err_code code = tree ? json_batch_item(tree, i, shape, numbers, err)
                              : err_set(err, ERR_NO_MEMORY, "no memory to parse %s", shape->item);

    cJSON_Delete(tree);
    return code;
}

enum err_code json_batch_read(const struct json_tape *tape, uint32_t array,
                              const struct json_shape *shape, struct json_batch *out,
                              struct err *err)
{
    const struct json_token *tokens = tape->tokens;
    double *numbers = out->numbers;

    out->count = 0;
    out->is_plain = true;
    for (uint32_t item = array + 1; item < tokens[array].next; item = tokens[item].next) {
        bool is_plain = shape->part_count != 0
                            ? copy_object(tape, item, shape, numbers)
                            : json_token_numbers(&tokens[item], shape->stride, numbers);

        if (!is_plain && read_unusual(tape, item, out->count, shape, numbers, err))
            return err->code;
        out->is_plain &= is_plain;
        out->count++;
        numbers += shape->stride;
    }
    return ERR_OK;
}
