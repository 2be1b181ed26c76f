/*
 * POST …/ray  {"rays":[{"origin","direction","t_max"}…],"mode":"closest|any","trace","layer"}
 *   ->  results: {"status":"hit|miss|invalid","t","point","normal","layer","cell","triangle",
 *                 "polygon"}
 * POST …/ray  binary: ox oy oz dx dy dz t_max  ->  t nx ny nz (t = +inf: miss; NaN: invalid)
 *
 * A ray that cannot be (no direction, negative t_max) is an item of status invalid; what is no ray
 * at all refuses the request. A trace explains one ray: the boxes and cells it visited in
 * heightfields, bounded.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "api/options.h"
#include "api/shape.h"

#include <stdlib.h>

static const char *const names[] = {"mode", "trace", "layer", NULL};

struct ray_options {
    struct layer_choice choice;
    enum ray_mode mode;
    bool is_traced;
};

static enum err_code decode_options(struct call *call, struct ray_options *out, struct err *err)
{
    static const char *const modes[] = {"closest", "any", NULL};
    int mode = RAY_CLOSEST;

    *out = (struct ray_options){.mode = RAY_CLOSEST};
    if (option_word(call, "mode", modes, &mode, err) ||
        option_boolean(call, "trace", &out->is_traced, err) ||
        option_choose(call, &out->choice, err))
        return err->code;
    out->mode = (enum ray_mode)mode;
    return ERR_OK;
}

static enum err_code decode_ray(const cJSON *item, size_t i, struct ray *out, bool *is_traced,
                                struct err *err)
{
    const cJSON *t_max = json_given(item, "t_max"), *trace = json_given(item, "trace");

    if (!cJSON_IsObject(item)) {
        err_set(err, ERR_BAD_INPUT, "a ray is an object, not %s", json_kind(item));
        return err_at(err, "/rays/%zu", i);
    }
    if (json_get_vec3(json_member(item, "origin"), &out->origin, err))
        return err_at(err, "/rays/%zu/origin", i);
    if (json_get_vec3(json_member(item, "direction"), &out->direction, err))
        return err_at(err, "/rays/%zu/direction", i);
    out->t_max = INFINITY;
    if (t_max && json_get_number(t_max, &out->t_max, err))
        return err_at(err, "/rays/%zu/t_max", i);
    if (trace && json_get_boolean(trace, is_traced, err))
        return err_at(err, "/rays/%zu/trace", i);
    return ERR_OK;
}

static enum ray_status ask(const struct ray_options *options, const struct ray *ray,
                           struct locale_hit *hit, struct ray_trace *trace)
{
    if (!ray_is_valid(ray))
        return RAY_INVALID;
    return locale_ray(&options->choice, ray, options->mode, hit, trace) ? RAY_HIT : RAY_MISS;
}

static const char *why_invalid(const struct ray *ray)
{
    return ray->t_max >= 0 ? "direction is the zero vector" : "t_max is negative";
}

static void encode_trace(struct json_writer *w, const struct ray_trace *trace)
{
    json_key(w, "trace");
    json_begin_object(w);
    json_key(w, "boxes");
    json_begin_array(w);
    for (uint32_t i = 0; i < trace->box_count && i < trace->box_capacity; i++) {
        const struct ray_trace_box *box = &trace->boxes[i];

        json_begin_object(w);
        json_key(w, "level");
        json_integer(w, box->level);
        json_key(w, "column");
        json_integer(w, box->column);
        json_key(w, "row");
        json_integer(w, box->row);
        json_key(w, "bounds");
        json_box3(w, box->bounds);
        json_key(w, "entered");
        json_boolean(w, box->entered);
        json_end_object(w);
    }
    json_end_array(w);
    json_key(w, "cells");
    json_begin_array(w);
    for (uint32_t i = 0; i < trace->cell_count && i < trace->cell_capacity; i++)
        shape_cell(w, trace->cells[i]);
    json_end_array(w);
    json_key(w, "truncated");
    json_boolean(w, trace->box_count > trace->box_capacity ||
                        trace->cell_count > trace->cell_capacity);
    json_end_object(w);
}

static void encode(struct json_writer *w, enum ray_status status, const struct ray *ray,
                   const struct locale_hit *hit, const struct ray_trace *trace)
{
    json_begin_object(w);
    json_key(w, "status");
    json_string(w, shape_ray_status(status));
    if (status == RAY_INVALID) {
        json_key(w, "detail");
        json_string(w, why_invalid(ray));
    }
    shape_hit_members(w, status == RAY_HIT ? hit : NULL);
    if (trace)
        encode_trace(w, trace);
    json_end_object(w);
}

static enum err_code answer_one(struct call *call, const struct ray_options *options,
                                const struct ray *ray, bool is_traced, struct err *err)
{
    uint32_t capacity = (uint32_t)call->api->limits.trace_max;
    struct ray_trace trace = {.box_capacity = capacity, .cell_capacity = capacity};
    struct locale_hit hit;
    enum ray_status status;

    if (is_traced) {
        trace.boxes = malloc(capacity * sizeof *trace.boxes);
        trace.cells = malloc(capacity * sizeof *trace.cells);
        if (!trace.boxes || !trace.cells)
            err_set(err, ERR_NO_MEMORY, "no memory for a trace");
    }
    if (err->code == ERR_OK) {
        status = ask(options, ray, &hit, is_traced ? &trace : NULL);
        encode(&call->out, status, ray, &hit, is_traced ? &trace : NULL);
    }
    free(trace.boxes);
    free(trace.cells);
    return err->code;
}

static enum err_code ray_binary(struct call *call, struct err *err)
{
    static const char *const binary_names[] = {"mode", "layer", "base", NULL};
    struct ray_options options;
    struct batch batch;

    if (batch_open(call, 7, 4, binary_names, &batch, err) || decode_options(call, &options, err) ||
        call_pace_rays(call, &options.choice, err))
        return err->code;
    for (size_t i = 0; i < batch.count; i++) {
        double in[7], out[4] = {NAN, NAN, NAN, NAN};
        struct locale_hit hit;
        struct ray ray;
        enum ray_status status;

        if (call_pace(call, i, err) || batch_read(&batch, i, 7, true, in, err))
            return err->code;
        ray.origin =
            (struct vec3){in[0] + batch.base[0], in[1] + batch.base[1], in[2] + batch.base[2]};
        ray.direction = (struct vec3){in[3], in[4], in[5]};
        ray.t_max = in[6];
        status = ask(&options, &ray, &hit, NULL);
        if (status == RAY_MISS)
            out[0] = INFINITY;
        if (status == RAY_HIT) {
            out[0] = hit.at.t;
            out[1] = hit.at.normal.x;
            out[2] = hit.at.normal.y;
            out[3] = hit.at.normal.z;
        }
        batch_write(&batch, i, 4, out);
    }
    batch_close(call, &batch, 4);
    return ERR_OK;
}

enum err_code ray_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"rays", NULL};
    struct ray_options options;
    const cJSON *item;
    size_t count;

    if (batch_is_binary(call))
        return ray_binary(call, err);
    if (options_open_json(call, items, names, err) || decode_options(call, &options, err) ||
        json_get_batch(call->json, "rays", call->api->limits.items_max, &item, &count, err) ||
        call_pace_rays(call, &options.choice, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; item; item = item->next, i++) {
        bool is_traced = options.is_traced;
        struct ray ray;

        if (call_pace(call, i, err) || decode_ray(item, i, &ray, &is_traced, err))
            return err->code;
        if (is_traced && count > 1) {
            err_limit(err, ERR_BAD_INPUT, 1, (double)count,
                      "a trace explains one ray, this batch has %zu", count);
            return err_at(err, options.is_traced ? "/trace" : "/rays/%zu/trace", i);
        }
        if (answer_one(call, &options, &ray, is_traced, err))
            return err->code;
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(ray_post, 1, CALL_NEEDS_LOCALE)
