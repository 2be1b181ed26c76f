/*
 * POST …/ray  {"rays":[{"origin","direction","t_max"}…],"mode":"closest|any|all","hits_max":8,
 *               "trace","layer"}
 *   ->  results: {"status":"hit|miss|invalid","t","distance","point","normal","layer","cell",
 *                 "triangle","polygon"}
 *   ->  of mode all: results: {"hits":[{"t","distance","point",…}…]}, in order
 * POST …/ray  binary: ox oy oz dx dy dz t_max  ->  t nx ny nz (t = +inf: miss; NaN: invalid)
 * GET  …/ray?origin=&direction=&t_max=&mode=&hits_max=&layer=  ->  the members of one item
 *
 * t counts in lengths of the direction, distance in metres.
 * An impossible ray (no direction, negative t_max) is an item of status invalid; for malformed ones
 * the request is refused. A trace explains one ray: the boxes and cells that it visited in
 * heightfields, the boxes and polygons that it tested in meshes, bounded.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "json/json_raw.h"
#include "api/options.h"
#include "api/encode.h"
#include "world/ask/all_hits.h"
#include "world/ask/layer_ask.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"mode", "hits_max", "trace", "layer", NULL};

enum ray_status { RAY_HIT, RAY_MISS, RAY_INVALID };

struct ray_options {
    struct layer_choice choice;
    enum ray_mode mode;
    bool is_traced;
    size_t hits_max; /* 0: only the first */
};

static enum err_code decode_options(struct call *call, struct ray_options *out, struct err *err)
{
    static const char *const modes[] = {"closest", "any", "all", NULL};
    int mode = RAY_CLOSEST;

    *out = (struct ray_options){.mode = RAY_CLOSEST};
    if (option_hits(call, modes, &mode, &out->hits_max, err) ||
        option_boolean(call, "trace", &out->is_traced, err) ||
        option_choose(call, &out->choice, err))
        return err->code;
    out->mode = out->hits_max > 0 ? RAY_CLOSEST : (enum ray_mode)mode;
    if (out->is_traced && out->hits_max > 0) {
        err_set(err, ERR_BAD_INPUT, "a trace explains the first hit, not mode=all");
        return err_at(err, "%strace", call->json ? "/" : "");
    }
    return ERR_OK;
}

static enum err_code traced_of(const struct json_tape *tape, uint32_t value, bool *out,
                               struct err *err)
{
    enum json_token_kind kind = tape->tokens[value].kind;

    if (kind == JSON_TRUE || kind == JSON_FALSE)
        *out = kind == JSON_TRUE;
    else if (kind != JSON_NULL)
        return err_set(err, ERR_BAD_INPUT, "true or false was expected, not %s",
                       json_tape_kind(tape, value));
    return ERR_OK;
}

/* Is the one ray of a batch to be traced? From the option, or from the ray itself. */
static enum err_code decode_trace(const struct call *call, const struct json_batch *batch,
                                  struct ray_options *options, struct err *err)
{
    const struct json_tape *tape = &call->tape;
    uint32_t item = json_tape_array(tape, 0, "rays") + 1;
    bool is_option = options->is_traced;

    for (size_t i = 0; i < (batch->is_plain ? 1 : batch->count); i++) {
        uint32_t trace = json_tape_find(tape, item, "trace");

        options->is_traced = is_option;
        if (trace != 0 && traced_of(tape, trace, &options->is_traced, err))
            return err_at(err, "/rays/%zu/trace", i);
        if (options->is_traced && batch->count > 1) {
            err_limit(err, ERR_BAD_INPUT, 1, (double)batch->count,
                      "a trace explains one ray, this batch has %zu", batch->count);
            return err_at(err, is_option ? "/trace" : "/rays/%zu/trace", i);
        }
        item = tape->tokens[item].next;
    }
    return ERR_OK;
}

/* Some rays of a batch and their results. */
struct asked {
    struct ray rays[CALL_RAYS_TOGETHER];
    enum ray_status status[CALL_RAYS_TOGETHER];
    struct locale_hit hits[CALL_RAYS_TOGETHER];
};

/* The first `count` of them; trace (NULL: none) explains the one ray that there is then. */
static void ask(const struct ray_options *options, struct asked *asked, size_t count,
                struct ray_trace *trace)
{
    static const struct ray some = {{0, 0, 0}, {0, 0, 1}, 0};
    struct ray valid[CALL_RAYS_TOGETHER];

    for (size_t i = 0; i < count; i++) {
        asked->status[i] = ray_is_valid(&asked->rays[i]) ? RAY_HIT : RAY_INVALID;
        valid[i] = asked->status[i] == RAY_HIT ? asked->rays[i] : some;
    }
    if (!trace)
        locale_rays(&options->choice, valid, count, options->mode, asked->hits);
    else if (!locale_ray(&options->choice, valid, options->mode, asked->hits, trace))
        asked->hits[0].at.t = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (asked->status[i] == RAY_HIT && asked->hits[i].at.t == INFINITY)
            asked->status[i] = RAY_MISS;
}

/* A box of a trace; place: column and row of a heightfield's. */
static void encode_box(struct json_writer *w, uint32_t level, const uint32_t *place,
                       struct box3 bounds, bool is_entered)
{
    json_begin_object(w);
    json_put_integer(w, "level", level);
    if (place) {
        json_put_integer(w, "column", place[0]);
        json_put_integer(w, "row", place[1]);
    }
    json_put_box3(w, "bounds", bounds);
    json_put_boolean(w, "entered", is_entered);
    json_end_object(w);
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void encode_mesh_trace(struct json_writer *w, const struct layer *layer,
                              const struct ray_tree_trace *trace)
{
    struct mesh_axes axes = layer_mesh_axes(layer);

    json_begin_object(w);
    json_put_string(w, "layer", layer->id);
    json_key(w, "frame");
    encode_axes(w, &axes);
    json_put_array(w, "boxes");
    for (uint32_t i = 0; i < lesser(trace->box_count, trace->box_capacity); i++)
        encode_box(w, trace->boxes[i].level, NULL, trace->boxes[i].bounds,
                   trace->boxes[i].is_entered);
    json_end_array(w);
    json_put_array(w, "polygons");
    for (uint32_t i = 0; i < lesser(trace->polygon_count, trace->polygon_capacity); i++)
        json_integer(w, trace->polygons[i]);
    json_end_array(w);
    json_end_object(w);
}

/*
 * The meshes of the choice but bodies among granules, which share the arrays of `room`. True: these
 * were too small.
 */
static bool encode_mesh_traces(struct json_writer *w, const struct layer_choice *choice,
                               const struct ray *ray, const struct ray_tree_trace *room)
{
    struct ray_tree_trace trace = *room;
    bool is_cut = false;

    for (size_t i = 0; i < choice->count; i++) {
        const struct layer *layer = choice->layers[i];

        if (layer->kind != LAYER_MESH || layer->body.patch != 0)
            continue;
        trace.box_count = trace.polygon_count = 0;
        if (ray_is_valid(ray))
            layer_mesh_trace(layer, ray, &trace);
        encode_mesh_trace(w, layer, &trace);
        is_cut |=
            trace.box_count > trace.box_capacity || trace.polygon_count > trace.polygon_capacity;
        trace.box_capacity -= lesser(trace.box_count, trace.box_capacity);
        trace.polygon_capacity -= lesser(trace.polygon_count, trace.polygon_capacity);
    }
    return is_cut;
}

static void encode_trace(struct json_writer *w, const struct ray_options *options,
                         const struct ray *ray, const struct ray_trace *trace,
                         const struct ray_tree_trace *room)
{
    bool is_cut =
        trace->box_count > trace->box_capacity || trace->cell_count > trace->cell_capacity;

    json_put_object(w, "trace");
    json_put_array(w, "boxes");
    for (uint32_t i = 0; i < lesser(trace->box_count, trace->box_capacity); i++) {
        const struct ray_trace_box *box = &trace->boxes[i];

        encode_box(w, box->level, (uint32_t[]){box->column, box->row}, box->bounds, box->entered);
    }
    json_end_array(w);
    json_put_array(w, "cells");
    for (uint32_t i = 0; i < lesser(trace->cell_count, trace->cell_capacity); i++)
        encode_cell(w, trace->cells[i]);
    json_end_array(w);
    json_put_array(w, "meshes");
    is_cut |= encode_mesh_traces(w, &options->choice, ray, room);
    json_end_array(w);
    json_put_boolean(w, "truncated", is_cut);
    json_end_object(w);
}

enum { RAY_BYTES = ENCODED_HIT_BYTES + 128 };

/* An item without its closing brace; a trace may follow. */
static char *encode(char *at, enum ray_status status, const struct ray *ray,
                    const struct locale_hit *hit)
{
    switch (status) {
    case RAY_HIT:
        return encode_ray_hit_raw(JSON_RAW(at, "{\"status\":\"hit\""), ray, hit);
    case RAY_MISS:
        return encode_ray_hit_raw(JSON_RAW(at, "{\"status\":\"miss\""), ray, NULL);
    case RAY_INVALID:
        break;
    }
    const char *why = ray_fault(ray);

    at = JSON_RAW(at, "{\"status\":\"invalid\",\"detail\":\"");
    at = json_raw_text(at, why, strlen(why));
    at = JSON_RAW(at, "\"");
    return encode_ray_hit_raw(at, ray, NULL);
}

/* Items of the answer, from the first one on. */
static void encode_some(struct call *call, const struct asked *asked, size_t count, bool is_first)
{
    char *at = json_open_room(&call->out, count * RAY_BYTES);

    if (!at)
        return;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 || !is_first)
            *at++ = ',';
        at = encode(at, asked->status[i], &asked->rays[i], &asked->hits[i]);
        *at++ = '}';
    }
    json_close_room(&call->out, at);
}

/* The one ray of a batch, explained. */
static enum err_code answer_traced(struct call *call, const struct ray_options *options,
                                   const struct ray *ray, struct err *err)
{
    uint32_t capacity = (uint32_t)call_limits(call)->trace_max;
    struct ray_trace trace = {.box_capacity = capacity, .cell_capacity = capacity};
    struct ray_tree_trace room = {.box_capacity = capacity, .polygon_capacity = capacity};
    struct asked asked;
    char *at;

    trace.boxes = malloc(capacity * sizeof *trace.boxes);
    trace.cells = malloc(capacity * sizeof *trace.cells);
    room.boxes = malloc(capacity * sizeof *room.boxes);
    room.polygons = malloc(capacity * sizeof *room.polygons);
    if (!trace.boxes || !trace.cells || !room.boxes || !room.polygons) {
        err_set(err, ERR_NO_MEMORY, "no memory for a trace");
    } else {
        asked.rays[0] = *ray;
        ask(options, &asked, 1, &trace);
        at = json_open_room(&call->out, RAY_BYTES);
        if (at)
            json_close_room(&call->out, encode(at, asked.status[0], ray, &asked.hits[0]));
        encode_trace(&call->out, options, ray, &trace, &room);
        json_end_object(&call->out);
    }
    free(trace.boxes);
    free(trace.cells);
    free(room.boxes);
    free(room.polygons);
    return err->code;
}

static struct ray ray_of(const double *numbers)
{
    return (struct ray){
        {numbers[0], numbers[1], numbers[2]}, {numbers[3], numbers[4], numbers[5]}, numbers[6]};
}

/* The member hits, and why a ray is impossible. */
static void encode_all(struct call *call, const struct ray_options *options, const struct ray *ray)
{
    struct locale_hit hits[ALL_HITS_MOST];
    const char *why = ray_fault(ray);
    size_t count = why ? 0 : locale_ray_all(&options->choice, ray, options->hits_max, hits);
    struct json_writer *w = &call->out;

    json_put_array(w, "hits");
    for (size_t i = 0; i < count; i++) {
        char *at = json_open_room(w, RAY_BYTES), *begin;

        if (!at)
            return;
        if (i > 0)
            *at++ = ',';
        begin = at;
        at = encode_ray_hit_raw(begin, ray, &hits[i]);
        *begin = '{'; /* in place of the first member's comma */
        *at++ = '}';
        json_close_room(w, at);
    }
    json_end_array(w);
    if (!why)
        return;
    json_put_string(w, "status", "invalid");
    json_put_string(w, "detail", why);
}

static enum err_code answer_all(struct call *call, const struct ray_options *options,
                                const struct json_batch *batch, struct err *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ray ray = ray_of(batch->numbers + i * json_shape_rays.stride);

        if (call_check_budget(call, i, err))
            return err->code;
        json_begin_object(&call->out);
        encode_all(call, options, &ray);
        json_end_object(&call->out);
    }
    return ERR_OK;
}

/* `count` items from the first one on. */
static enum err_code answer_binary(struct batch *batch, const struct ray_options *options,
                                   size_t first, size_t count, struct err *err)
{
    struct asked asked;

    for (size_t i = 0; i < count; i++) {
        double in[7];

        if (batch_read(batch, first + i, 7, true, in, err))
            return err->code;
        asked.rays[i] =
            (struct ray){{in[0] + batch->base[0], in[1] + batch->base[1], in[2] + batch->base[2]},
                         {in[3], in[4], in[5]},
                         in[6]};
    }
    ask(options, &asked, count, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct ray_hit *hit = &asked.hits[i].at;
        double out[4] = {asked.status[i] == RAY_MISS ? INFINITY : NAN, NAN, NAN, NAN};

        if (asked.status[i] == RAY_HIT)
            memcpy(out, (double[4]){hit->t, hit->normal.x, hit->normal.y, hit->normal.z},
                   sizeof out);
        batch_write(batch, first + i, 4, out);
    }
    return ERR_OK;
}

static enum err_code ray_binary(struct call *call, struct err *err)
{
    static const char *const binary_names[] = {"mode", "layer", "base", NULL};
    struct ray_options options;
    struct batch batch;
    size_t together;

    if (batch_open(call, 7, 4, binary_names, &batch, err) || decode_options(call, &options, err) ||
        call_check_budget_rays(call, &options.choice, err))
        return err->code;
    if (options.hits_max > 0)
        return err_set_at(err, ERR_BAD_INPUT, "mode",
                          "mode=all has no binary form: a ray may have many hits");
    together = call_rays_together(call, &options.choice);
    for (size_t i = 0; i < batch.count; i += together)
        if (call_check_budget(call, i, err) ||
            answer_binary(&batch, &options, i, call_some_rays(batch.count, i, together), err))
            return err->code;
    batch_close(call, &batch, 4);
    return ERR_OK;
}

enum err_code ray_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"rays", NULL};
    struct ray_options options;
    struct json_batch batch;
    struct asked asked;
    size_t together;

    if (batch_is_binary(call))
        return ray_binary(call, err);
    if (options_open_batch(call, items, names, err) || decode_options(call, &options, err) ||
        option_batch(call, &json_shape_rays, &batch, err) ||
        decode_trace(call, &batch, &options, err) ||
        call_check_budget_rays(call, &options.choice, err))
        return err->code;
    if (option_hits_check(batch.count, options.hits_max, "/rays", err))
        return err->code;
    call_begin_results(call);
    if (options.hits_max > 0) {
        if (answer_all(call, &options, &batch, err))
            return err->code;
        batch.count = 0;
    }
    together = call_rays_together(call, &options.choice);
    for (size_t i = 0; i < batch.count; i += together) {
        size_t count = call_some_rays(batch.count, i, together);

        for (size_t k = 0; k < count; k++)
            asked.rays[k] = ray_of(batch.numbers + (i + k) * json_shape_rays.stride);
        if (call_check_budget(call, i, err))
            return err->code;
        if (options.is_traced) {
            if (answer_traced(call, &options, asked.rays, err))
                return err->code;
            continue;
        }
        ask(&options, &asked, count, NULL);
        encode_some(call, &asked, count, i == 0);
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(ray_post, 1, CALL_NEEDS_GROUND)

enum err_code ray_get_answer(struct call *call, struct err *err)
{
    static const char *const query_names[] = {"origin",   "direction", "t_max", "mode",
                                              "hits_max", "layer",     NULL};
    struct ray_options options;
    struct asked asked;
    struct ray *ray = asked.rays;
    char *comma, *at;

    ray->t_max = INFINITY;
    if (options_open_query(call, query_names, err) ||
        option_needed(call, "origin", 3, &ray->origin.x, err) ||
        option_needed(call, "direction", 3, &ray->direction.x, err) ||
        option_number(call, "t_max", &ray->t_max, NULL, err) ||
        decode_options(call, &options, err) || call_check_budget_rays(call, &options.choice, err))
        return err->code;
    if (options.hits_max > 0) {
        call_begin_answer(call);
        encode_all(call, &options, ray);
        json_end_object(&call->out);
        return ERR_OK;
    }
    ask(&options, &asked, 1, NULL);
    comma = call_open_answer(call, RAY_BYTES);
    if (!comma)
        return ERR_OK; /* json_finish returns the error */
    at = encode(comma, asked.status[0], ray, &asked.hits[0]);
    *comma = ',';
    *at++ = '}';
    json_close_room(&call->out, at);
    return ERR_OK;
}
API_HANDLER(ray_get, 1, CALL_NEEDS_GROUND)
