/*
 * GET  …/height?x=&y=&interp=&fields=&layer=  ->  {"locale","revision","status","height",…}
 * POST …/height  {"points":[[x,y]…],"interp","fields","layer"}  ->  results
 * POST …/height  binary: x y  ->  height (NaN: none); with status=true also the status, as a number
 *
 * All three forms evaluate a point by one function, so a batch equals its items. A locale of meshes
 * only answers with its topmost ground; cell is null there. Where there is no height there is no
 * normal either: between samples, one of them a hole, there may be a triangle.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "json/json_raw.h"
#include "api/options.h"
#include "api/encode.h"

/* the height is always in the answer; its name in `fields` adds nothing */
enum { FIELD_HEIGHT = 1, FIELD_NORMAL = 2, FIELD_CELL = 4 };

struct height_options {
    struct layer_choice ground;
    enum interpolation interpolation;
    unsigned fields;
};

static bool is_mesh(const struct height_options *options)
{
    return options->ground.layers[0]->kind == LAYER_MESH;
}

static enum err_code decode_options(struct call *call, struct height_options *out, struct err *err)
{
    static const char *const fields[] = {"height", "normal", "cell", NULL};

    out->fields = FIELD_HEIGHT;
    if (option_interpolation(call, &out->interpolation, err) ||
        option_words(call, "fields", fields, &out->fields, err) ||
        option_choose_ground(call, &out->ground, err))
        return err->code;
    if (is_mesh(out) && out->interpolation != INTERPOLATION_TRIANGLE)
        return err_set_at(err, ERR_UNPROCESSABLE, "interp",
                          "polygons have no samples: only interp=triangle");
    return ERR_OK;
}

/* The longest item: words, a number, a vector, two indices, and the slack of fixed-size copies. */
enum { POINT_BYTES = 256, TOGETHER = 64, BINARY_TOGETHER = 256 };

/* An item without its braces. */
static char *encode_height(char *at, struct ground_height ground)
{
    switch (ground.status) {
    case GROUND_OK:
        at = JSON_RAW(at, "\"status\":\"ok\",\"height\":");
        return json_raw_number(at, ground.height_m);
    case GROUND_HOLE:
        return JSON_RAW(at, "\"status\":\"hole\",\"height\":null");
    case GROUND_OUTSIDE:
        break;
    }
    return JSON_RAW(at, "\"status\":\"outside\",\"height\":null");
}

static char *encode(char *at, const struct height_options *options,
                    const struct ground_point *ground)
{
    at = encode_height(at, (struct ground_height){ground->height_m, ground->status});
    if (options->fields & FIELD_NORMAL) {
        at = JSON_RAW(at, ",\"normal\":");
        at = ground->status == GROUND_OK && ground->triangle >= 0
                 ? json_raw_vec3(at, ground->normal)
                 : JSON_RAW(at, "null");
    }
    if (options->fields & FIELD_CELL) {
        at = JSON_RAW(at, ",\"cell\":");
        at = ground->status != GROUND_OUTSIDE && !is_mesh(options) ? json_raw_cell(at, ground->cell)
                                                                   : JSON_RAW(at, "null");
    }
    return at;
}

static char *answer_point(char *text, const struct height_options *options, struct vec2 at)
{
    struct ground_height height;
    struct ground_point ground;

    if (options->fields & (FIELD_NORMAL | FIELD_CELL)) {
        locale_height(&options->ground, at, options->interpolation, &ground);
        return encode(text, options, &ground);
    }
    locale_heights_only(&options->ground, &at, 1, options->interpolation, &height);
    return encode_height(text, height);
}

enum err_code height_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"x", "y", "interp", "fields", "layer", NULL};
    struct height_options options;
    struct vec2 at;
    bool has_x, has_y;
    char *text;

    if (options_open_query(call, names, err) || option_number(call, "x", &at.x, &has_x, err) ||
        option_number(call, "y", &at.y, &has_y, err))
        return err->code;
    if (!has_x || !has_y)
        return err_set_at(err, ERR_MISSING, has_x ? "y" : "x", "the query parameter %s is missing",
                          has_x ? "y" : "x");
    if (decode_options(call, &options, err))
        return err->code;
    locale_height_prefetch(&options.ground, at); /* the prefetch overlaps the start of the answer */
    text = call_open_answer(call, POINT_BYTES);
    if (!text)
        return ERR_OK; /* json_finish returns the error */
    *text++ = ',';
    text = answer_point(text, &options, at);
    *text++ = '}';
    json_close_room(&call->out, text);
    return ERR_OK;
}
API_HANDLER(height_get, 1, CALL_NEEDS_GROUND)

/* Up to BINARY_TOGETHER items from the first one on. */
static enum err_code answer_binary(const struct batch *batch, const struct height_options *options,
                                   size_t first, size_t count, struct err *err)
{
    double points[2 * BINARY_TOGETHER], heights_m[BINARY_TOGETHER];

    if (batch_read_many(batch, first, count, 2, points, err))
        return err->code;
    for (size_t i = 0; i < 2 * count; i++)
        points[i] += batch->base[i & 1];
    locale_heights_plain(&options->ground, (const struct vec2 *)points, count,
                         options->interpolation, heights_m);
    batch_write_many(batch, first, count, heights_m, batch->base[2]);
    return ERR_OK;
}

/*
 * All float32 items in one pass, straight from the body into the answer. False: not over meshes,
 * or a number is not finite, which the other way finds and names.
 */
static bool answer_f32(const struct batch *batch, const struct height_options *options)
{
    return batch->number_bytes == sizeof(float) && !is_mesh(options) &&
           heightfield_heights_f32(options->ground.layers[0]->field, batch->in, batch->count,
                                   options->interpolation, batch->base, batch->out);
}

/* The status as a contact's number. */
static enum contact_status status_number(enum ground_status status)
{
    return status == GROUND_OK     ? CONTACT_OK
           : status == GROUND_HOLE ? CONTACT_HOLE
                                   : CONTACT_OUTSIDE;
}

/* The same, each height with its status. */
static enum err_code answer_binary_status(const struct batch *batch,
                                          const struct height_options *options, size_t first,
                                          size_t count, struct err *err)
{
    double points[2 * BINARY_TOGETHER];
    struct ground_height heights[BINARY_TOGETHER];

    if (batch_read_many(batch, first, count, 2, points, err))
        return err->code;
    for (size_t i = 0; i < 2 * count; i++)
        points[i] += batch->base[i & 1];
    locale_heights_only(&options->ground, (const struct vec2 *)points, count,
                        options->interpolation, heights);
    for (size_t i = 0; i < count; i++) {
        const double out[2] = {heights[i].height_m - batch->base[2],
                               status_number(heights[i].status)};

        batch_write(batch, first + i, 2, out);
    }
    return ERR_OK;
}

static enum err_code height_binary(struct call *call, struct err *err)
{
    static const char *const names[] = {"interp", "layer", "base", "status", NULL};
    struct height_options options;
    struct batch batch;
    bool with_status = false;
    size_t numbers;

    if (options_open_query(call, names, err) || option_boolean(call, "status", &with_status, err))
        return err->code;
    numbers = with_status ? 2 : 1;
    if (batch_open(call, 2, numbers, names, &batch, err) || decode_options(call, &options, err))
        return err->code;
    for (size_t i = !with_status && answer_f32(&batch, &options) ? batch.count : 0; i < batch.count;
         i += BINARY_TOGETHER) {
        size_t count = batch.count - i < BINARY_TOGETHER ? batch.count - i : BINARY_TOGETHER;

        if (with_status ? answer_binary_status(&batch, &options, i, count, err)
                        : answer_binary(&batch, &options, i, count, err))
            return err->code;
    }
    batch_close(call, &batch, numbers);
    return ERR_OK;
}

static char *answer_heights(char *at, const struct height_options *options,
                            const struct vec2 *points, size_t count)
{
    struct ground_height grounds[TOGETHER];

    locale_heights_only(&options->ground, points, count, options->interpolation, grounds);
    for (size_t i = 0; i < count; i++) {
        *at++ = '{';
        at = encode_height(at, grounds[i]);
        *at++ = '}';
        *at++ = ',';
    }
    return at;
}

/* Asks and encodes up to TOGETHER points; the room holds that many items. */
static char *answer_points(char *at, const struct height_options *options,
                           const struct vec2 *points, size_t count)
{
    struct ground_point grounds[TOGETHER];

    if (!(options->fields & (FIELD_NORMAL | FIELD_CELL)))
        return answer_heights(at, options, points, count);

    locale_heights(&options->ground, points, count, options->interpolation, grounds);
    for (size_t i = 0; i < count; i++) {
        *at++ = '{';
        at = encode(at, options, &grounds[i]);
        *at++ = '}';
        *at++ = ',';
    }
    return at;
}

enum err_code height_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", NULL};
    static const char *const names[] = {"interp", "fields", "layer", NULL};
    struct height_options options;
    struct json_batch batch;

    if (batch_is_binary(call))
        return height_binary(call, err);
    if (options_open_batch(call, items, names, err) || decode_options(call, &options, err) ||
        option_batch(call, &json_shape_points2, &batch, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; i < batch.count; i += TOGETHER) {
        size_t count = batch.count - i < TOGETHER ? batch.count - i : TOGETHER;
        char *at = json_open_room(&call->out, count * POINT_BYTES);

        if (!at)
            break;
        at = answer_points(at, &options, (const struct vec2 *)batch.numbers + i, count);
        json_close_room(&call->out, i + count == batch.count ? at - 1 : at);
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(height_post, 1, CALL_NEEDS_GROUND)
