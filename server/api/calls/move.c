/*
 * POST …/move  {"items":[{"shape","from","velocity","dt","slope_max_deg":50,"step_up":0.5,
 *                         "snap_down":0.5,"claimed":[x,y,z]}…],"layer"}
 *   ->  results: {"to","grounded","floor":{"point","normal","slope_deg","layer","cell","triangle",
 *                 "polygon"}|null,"hits":[{"point","normal",…}…],"starts_inside","reachable"}
 * POST …/move  binary, shape, dt and the rest in the query: from and velocity  ->  to, grounded
 *
 * What is given in the query or beside the items is that of items without it. `reachable` is there
 * where `claimed` is: could the shape be there by now? What a move does: terrain/sweep/move.h.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "api/encode.h"
#include "api/options.h"
#include "api/shape_decode.h"
#include "json/json_raw.h"

#include <stdio.h>

enum {
    FLOOR_BYTES = ENCODED_HIT_BYTES + 64,
    ITEM_BYTES = FLOOR_BYTES + MOVE_HITS_MAX * FLOOR_BYTES + 256,
    SWEEPS = 8 /* of a move, about */
};

struct move_options {
    struct layer_choice choice;
    struct shape shape;
    bool has_shape;
    double number[MOVE_NUMBERS];
    double cost; /* of the items so far */
};

struct move_item {
    struct move move;
    bool is_claimed;
    struct vec3 claimed;
};

struct move_answer {
    struct moved moved;
    bool is_reachable;
};

static enum err_code decode_options(struct call *call, struct move_options *out, struct err *err)
{
    *out = (struct move_options){.has_shape = false};
    if (shape_of_query(call, &out->shape, &out->has_shape, err))
        return err->code;
    for (int i = 0; i < MOVE_NUMBERS; i++) {
        bool is_given = false;

        out->number[i] = move_numbers[i].missing;
        if (option_number(call, move_numbers[i].name, &out->number[i], &is_given, err))
            return err->code;
        if (is_given && move_check_number((enum move_number)i, out->number[i], err))
            return err_at(err, "%s%s", call->json ? "/" : "", move_numbers[i].name);
    }
    return option_choose(call, &out->choice, err);
}

static enum err_code decode_numbers(const cJSON *json, const char *place,
                                    const struct move_options *options, double out[MOVE_NUMBERS],
                                    struct err *err)
{
    for (int i = 0; i < MOVE_NUMBERS; i++) {
        const cJSON *given = json_given(json, move_numbers[i].name);

        out[i] = options->number[i];
        if ((given || isnan(out[i])) && (json_get_number(given, &out[i], err) ||
                                         move_check_number((enum move_number)i, out[i], err)))
            return err_at(err, "%s/%s", place, move_numbers[i].name);
    }
    return ERR_OK;
}

static void move_set(struct move *move, const struct move_options *options,
                     const double number[MOVE_NUMBERS])
{
    move->up = locale_up(options->choice.locale, move->from);
    move->dt_s = number[MOVE_DT];
    move->slope_max_deg = number[MOVE_SLOPE_MAX];
    move->step_up_m = number[MOVE_STEP_UP];
    move->snap_down_m = number[MOVE_SNAP_DOWN];
}

static enum err_code decode_item(const cJSON *json, size_t i, const struct move_options *options,
                                 struct move_item *out, struct err *err)
{
    static const char *const members[] = {"shape",   "from",      "velocity", "dt", "slope_max_deg",
                                          "step_up", "snap_down", "claimed",  NULL};
    const cJSON *shape = json_given(json, "shape"), *claimed = json_given(json, "claimed");
    double number[MOVE_NUMBERS];
    char place[32], of_shape[48];

    snprintf(place, sizeof place, "/items/%zu", i);
    snprintf(of_shape, sizeof of_shape, "%s/shape", place);
    *out = (struct move_item){.move.shape = options->shape, .is_claimed = claimed != NULL};
    if (json_only_members(json, members, place, err) ||
        ((shape || !options->has_shape) && shape_of_json(shape, of_shape, &out->move.shape, err)) ||
        decode_numbers(json, place, options, number, err))
        return err->code;
    if (json_get_vec3(json_member(json, "from"), &out->move.from, err) ||
        sweep_check_place(out->move.from, err))
        return err_at(err, "%s/from", place);
    if (json_get_vec3(json_member(json, "velocity"), &out->move.velocity, err) ||
        move_check_velocity(out->move.velocity, err))
        return err_at(err, "%s/velocity", place);
    if (claimed &&
        (json_get_vec3(claimed, &out->claimed, err) || sweep_check_place(out->claimed, err)))
        return err_at(err, "%s/claimed", place);
    move_set(&out->move, options, number);
    return ERR_OK;
}

/* Moves an item; or the call leaves the loop first. */
static enum err_code ask(struct call *call, struct move_options *options,
                         const struct move_item *item, struct move_answer *out, struct err *err)
{
    const struct move *move = &item->move;
    struct move_ground ground = locale_move_ground(&options->choice);
    double length = vec3_length(move->velocity) * move->dt_s + move->step_up_m + move->snap_down_m;
    double cost = locale_sweep_cost(&options->choice, shape_reach_m(&move->shape), length);

    if (sweep_check_cost(call, SWEEPS * cost, &options->cost, err))
        return err->code;
    move_run(&ground, move, &out->moved);
    out->is_reachable =
        item->is_claimed && move_is_reachable(&ground, move, &out->moved, item->claimed);
    return ERR_OK;
}

/* The members of a place without the comma before the first one. */
static char *encode_place(char *at, const struct sweep_touch *touch, struct vec3 normal)
{
    struct locale_hit hit = locale_hit_of_touch(touch);
    char *end;

    hit.at.normal = normal;
    end = encode_hit_place_raw(at, &hit);
    *at = '{'; /* in place of the comma */
    return end;
}

static char *encode(char *at, const struct move_item *item, const struct move_answer *answer)
{
    const struct moved *moved = &answer->moved;

    at = JSON_RAW(at, "{\"to\":");
    at = json_raw_vec3(at, moved->to);
    at = JSON_RAW(at, ",\"grounded\":");
    at = json_raw_boolean(at, moved->is_grounded);
    at = JSON_RAW(at, ",\"floor\":");
    if (moved->is_grounded) {
        at = encode_place(at, &moved->floor, moved->floor.face);
        at = JSON_RAW(at, ",\"slope_deg\":");
        at = json_raw_number(at, moved->slope_deg);
        *at++ = '}';
    } else {
        at = JSON_RAW(at, "null");
    }
    at = JSON_RAW(at, ",\"hits\":[");
    for (uint32_t i = 0; i < moved->hit_count; i++) {
        if (i > 0)
            *at++ = ',';
        at = encode_place(at, &moved->hits[i], moved->hits[i].normal);
        *at++ = '}';
    }
    at = JSON_RAW(at, "],\"starts_inside\":");
    at = json_raw_boolean(at, moved->starts_inside);
    if (item->is_claimed) {
        at = JSON_RAW(at, ",\"reachable\":");
        at = json_raw_boolean(at, answer->is_reachable);
    }
    *at++ = '}';
    return at;
}

static const char *const binary_names[] = {"sphere",        "capsule", "box",  "dt",        "layer",
                                           "slope_max_deg", "step_up", "base", "snap_down", NULL};

static enum err_code move_binary(struct call *call, struct err *err)
{
    struct move_options options;
    struct batch batch;

    if (batch_open(call, 6, 4, binary_names, &batch, err) || decode_options(call, &options, err))
        return err->code;
    if (!options.has_shape || isnan(options.number[MOVE_DT]))
        return err_set_at(err, ERR_MISSING, options.has_shape ? "dt" : "sphere",
                          "%s must be given in the query",
                          options.has_shape ? "dt" : "one of sphere, capsule and box");
    for (size_t i = 0; i < batch.count; i++) {
        struct move_item item = {.move.shape = options.shape};
        struct move_answer answer;
        double n[6];

        if (call_check_budget(call, i, err) || batch_read(&batch, i, 6, false, n, err))
            return err->code;
        item.move.from =
            (struct vec3){n[0] + batch.base[0], n[1] + batch.base[1], n[2] + batch.base[2]};
        item.move.velocity = (struct vec3){n[3], n[4], n[5]};
        if (sweep_check_place(item.move.from, err) || move_check_velocity(item.move.velocity, err))
            return err_at(err, "/%zu", i);
        move_set(&item.move, &options, options.number);
        if (ask(call, &options, &item, &answer, err))
            return err->code;
        const struct vec3 to = answer.moved.to;
        const double out[4] = {to.x - batch.base[0], to.y - batch.base[1], to.z - batch.base[2],
                               answer.moved.is_grounded};

        batch_write(&batch, i, 4, out);
    }
    batch_close(call, &batch, 4);
    return ERR_OK;
}

/* shape_answer_fn */
static char *answer_item(struct call *call, const cJSON *json, size_t i, void *asked, char *at,
                         struct err *err)
{
    struct move_options *options = asked;
    struct move_item item;
    struct move_answer answer;

    if (decode_item(json, i, options, &item, err) || call_check_budget(call, i, err) ||
        ask(call, options, &item, &answer, err))
        return NULL;
    return encode(at, &item, &answer);
}

enum err_code move_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"items", NULL};
    static const char *const names[] = {"sphere",        "capsule", "box",       "layer", "dt",
                                        "slope_max_deg", "step_up", "snap_down", NULL};
    struct move_options options;

    if (batch_is_binary(call))
        return move_binary(call, err);
    if (options_open_batch(call, items, names, err) || decode_options(call, &options, err))
        return err->code;
    return shape_answer_items(call, answer_item, &options, ITEM_BYTES, err);
}
API_HANDLER(move_post, 1, CALL_NEEDS_VALUE)
