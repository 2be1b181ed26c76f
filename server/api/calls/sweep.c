/*
 * POST …/sweep  {"items":[{"shape":{"sphere":r}|{"capsule":[r,h]}|{"box":[hx,hy,hz,yaw_deg]},
 *                          "from","to"}…],"layer"}
 *   ->  results: {"fraction","starts_inside","point","normal","layer","cell","triangle","polygon"}
 * POST …/sweep  binary, the shape in the query (sphere=, capsule=, box=): from and to  ->
 *               fraction nx ny nz (NaN: it touches nothing)
 *
 * A shape's place is its middle. fraction runs from 0 at `from` to 1 at `to`; without a touch it
 * and the rest are null. The normal points from the surface to the shape. A shape in the query or
 * beside the items is that of items without one.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "api/encode.h"
#include "api/options.h"
#include "api/shape_decode.h"
#include "json/json_raw.h"

#include <stdio.h>

enum { ITEM_BYTES = ENCODED_HIT_BYTES + 128 };

struct sweep_options {
    struct layer_choice choice;
    struct shape shape;
    bool has_shape;
    double cost; /* of the items so far */
};

struct sweep_item {
    struct shape shape;
    struct vec3 from, to;
};

static enum err_code decode_options(struct call *call, struct sweep_options *out, struct err *err)
{
    *out = (struct sweep_options){.has_shape = false};
    if (shape_of_query(call, &out->shape, &out->has_shape, err) ||
        option_choose(call, &out->choice, err))
        return err->code;
    return ERR_OK;
}

static enum err_code decode_item(const cJSON *json, size_t i, const struct sweep_options *options,
                                 struct sweep_item *out, struct err *err)
{
    static const char *const members[] = {"shape", "from", "to", NULL};
    const cJSON *shape = json_given(json, "shape");
    char place[32], of_shape[48];

    snprintf(place, sizeof place, "/items/%zu", i);
    snprintf(of_shape, sizeof of_shape, "%s/shape", place);
    out->shape = options->shape;
    if (json_only_members(json, members, place, err) ||
        ((shape || !options->has_shape) && shape_of_json(shape, of_shape, &out->shape, err)))
        return err->code;
    if (json_get_vec3(json_member(json, "from"), &out->from, err) ||
        sweep_check_place(out->from, err))
        return err_at(err, "%s/from", place);
    if (json_get_vec3(json_member(json, "to"), &out->to, err) || sweep_check_place(out->to, err))
        return err_at(err, "%s/to", place);
    return ERR_OK;
}

/* Sweeps an item; or the call leaves the loop first. */
static enum err_code ask(struct call *call, struct sweep_options *options,
                         const struct sweep_item *item, struct sweep_touch *out, struct err *err)
{
    double length = vec3_length(vec3_sub(item->to, item->from));
    struct sweep s;

    if (sweep_check_cost(call,
                         locale_sweep_cost(&options->choice, shape_reach_m(&item->shape), length),
                         &options->cost, err))
        return err->code;
    sweep_begin(&s, &item->shape, locale_up(options->choice.locale, item->from), item->from,
                item->to);
    locale_sweep(&options->choice, &s);
    *out = s.best;
    return ERR_OK;
}

static char *encode(char *at, const struct sweep_touch *touch)
{
    bool has = touch->fraction < INFINITY;
    struct locale_hit hit;

    if (has)
        hit = locale_hit_of_touch(touch);
    at = JSON_RAW(at, "{\"fraction\":");
    at = json_raw_number(at, touch->fraction); /* null of INFINITY */
    at = JSON_RAW(at, ",\"starts_inside\":");
    at = json_raw_boolean(at, has && touch->starts_inside);
    at = encode_hit_place_raw(at, has ? &hit : NULL);
    *at++ = '}';
    return at;
}

static enum err_code sweep_binary(struct call *call, struct err *err)
{
    static const char *const names[] = {"sphere", "capsule", "box", "layer", "base", NULL};
    struct sweep_options options;
    struct batch batch;

    if (batch_open(call, 6, 4, names, &batch, err) || decode_options(call, &options, err))
        return err->code;
    if (!options.has_shape)
        return err_set_at(err, ERR_MISSING, "sphere",
                          "one of sphere, capsule and box must be given");
    for (size_t i = 0; i < batch.count; i++) {
        struct sweep_item item = {.shape = options.shape};
        struct sweep_touch touch;
        double n[6], out[4] = {NAN, NAN, NAN, NAN};

        if (call_check_budget(call, i, err) || batch_read(&batch, i, 6, false, n, err))
            return err->code;
        item.from = (struct vec3){n[0] + batch.base[0], n[1] + batch.base[1], n[2] + batch.base[2]};
        item.to = (struct vec3){n[3] + batch.base[0], n[4] + batch.base[1], n[5] + batch.base[2]};
        if (sweep_check_place(item.from, err) || sweep_check_place(item.to, err))
            return err_at(err, "/%zu", i);
        if (ask(call, &options, &item, &touch, err))
            return err->code;
        if (touch.fraction < INFINITY) {
            out[0] = touch.fraction;
            out[1] = touch.normal.x, out[2] = touch.normal.y, out[3] = touch.normal.z;
        }
        batch_write(&batch, i, 4, out);
    }
    batch_close(call, &batch, 4);
    return ERR_OK;
}

/* shape_answer_fn */
static char *answer_item(struct call *call, const cJSON *json, size_t i, void *asked, char *at,
                         struct err *err)
{
    struct sweep_options *options = asked;
    struct sweep_item item;
    struct sweep_touch touch;

    if (decode_item(json, i, options, &item, err) || call_check_budget(call, i, err) ||
        ask(call, options, &item, &touch, err))
        return NULL;
    return encode(at, &touch);
}

enum err_code sweep_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"items", NULL};
    static const char *const names[] = {"sphere", "capsule", "box", "layer", NULL};
    struct sweep_options options;

    if (batch_is_binary(call))
        return sweep_binary(call, err);
    if (options_open_batch(call, items, names, err) || decode_options(call, &options, err))
        return err->code;
    return shape_answer_items(call, answer_item, &options, ITEM_BYTES, err);
}
API_HANDLER(sweep_post, 1, CALL_NEEDS_VALUE)
