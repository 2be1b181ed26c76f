/*
 * GET  …/height?x=&y=&interp=&fields=&layer=  ->  {"locale","revision","status","height",…}
 * POST …/height  {"points":[[x,y]…],"interp","fields","layer"}  ->  results
 * POST …/height  binary: x y  ->  height (NaN: none)
 *
 * One point is asked by one function in all three forms, so a batch gives what its items would
 * give. A locale of meshes alone answers with its topmost ground; cell is null there.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "api/options.h"
#include "api/shape.h"

/* the height is told in any case; its name in `fields` adds nothing */
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
    if (is_mesh(out) && out->interpolation != INTERPOLATION_TRIANGLE) {
        err_set(err, ERR_UNPROCESSABLE, "polygons have no samples: interp=triangle alone");
        return err_at(err, "interp");
    }
    return ERR_OK;
}

static void ask(const struct height_options *options, struct vec2 at, struct ground_point *out)
{
    locale_height(&options->ground, at, options->interpolation, out);
}

static void encode(struct json_writer *w, const struct height_options *options,
                   const struct ground_point *ground)
{
    unsigned fields = options->fields;

    json_key(w, "status");
    json_string(w, shape_ground_status(ground->status));
    json_key(w, "height");
    json_number(w, ground->status == GROUND_OK ? ground->height_m : NAN);
    if (fields & FIELD_NORMAL) {
        json_key(w, "normal");
        if (ground->triangle >= 0)
            json_vec3(w, ground->normal);
        else
            json_null(w);
    }
    if (fields & FIELD_CELL) {
        json_key(w, "cell");
        if (ground->status != GROUND_OUTSIDE && !is_mesh(options))
            shape_cell(w, ground->cell);
        else
            json_null(w);
    }
}

enum err_code height_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"x", "y", "interp", "fields", "layer", NULL};
    struct height_options options;
    struct ground_point ground;
    struct vec2 at;
    bool has_x, has_y;

    if (options_open_query(call, names, err) || option_number(call, "x", &at.x, &has_x, err) ||
        option_number(call, "y", &at.y, &has_y, err))
        return err->code;
    if (!has_x || !has_y) {
        err_set(err, ERR_BAD_INPUT, "the query parameter %s is missing", has_x ? "y" : "x");
        return err_at(err, "%s", has_x ? "y" : "x");
    }
    if (decode_options(call, &options, err))
        return err->code;
    ask(&options, at, &ground);
    call_begin_answer(call);
    encode(&call->out, &options, &ground);
    json_end_object(&call->out);
    return ERR_OK;
}
API_HANDLER(height_get, 1, CALL_NEEDS_LOCALE)

static enum err_code height_binary(struct call *call, struct err *err)
{
    static const char *const names[] = {"interp", "layer", "base", NULL};
    struct height_options options;
    struct batch batch;

    if (batch_open(call, 2, 1, names, &batch, err) || decode_options(call, &options, err))
        return err->code;
    for (size_t i = 0; i < batch.count; i++) {
        struct ground_point ground;
        double in[2], height;

        if (batch_read(&batch, i, 2, false, in, err))
            return err->code;
        ask(&options, (struct vec2){in[0] + batch.base[0], in[1] + batch.base[1]}, &ground);
        height = ground.status == GROUND_OK ? ground.height_m - batch.base[2] : NAN;
        batch_write(&batch, i, 1, &height);
    }
    batch_close(call, &batch, 1);
    return ERR_OK;
}

enum err_code height_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", NULL};
    static const char *const names[] = {"interp", "fields", "layer", NULL};
    struct height_options options;
    const cJSON *point;
    size_t count;

    if (batch_is_binary(call))
        return height_binary(call, err);
    if (options_open_json(call, items, names, err) || decode_options(call, &options, err) ||
        json_get_batch(call->json, "points", call->api->limits.items_max, &point, &count, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; point; point = point->next, i++) {
        struct ground_point ground;
        struct vec2 at;

        if (json_get_vec2(point, &at, err))
            return err_at(err, "/points/%zu", i);
        ask(&options, at, &ground);
        json_begin_object(&call->out);
        encode(&call->out, &options, &ground);
        json_end_object(&call->out);
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(height_post, 1, CALL_NEEDS_LOCALE)
