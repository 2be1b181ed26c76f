/*
 * POST …/profile  {"path":[[x,y]…],"samples":n} or "step":m, "interp","layer"
 *   ->  results: {"distance","point":[x,y,z],"status"}
 *
 * Samples lie along the polyline, both ends included; where there is no ground z is null.
 */
#include "api/calls.h"

#include "json/json_raw.h"
#include "api/options.h"

#include <float.h>
#include <math.h>

struct sampling {
    uint64_t samples; /* how many; they are spread evenly unless has_step */
    bool has_step;
    double step_m;
};

static enum err_code decode_path(struct call *call, struct profile_path *path, struct err *err)
{
    struct json_batch batch;

    if (option_batch(call, &json_shape_path, &batch, err))
        return err->code;
    if (batch.count < 2)
        return err_limit_at(err, ERR_BAD_INPUT, "/path", 2, (double)batch.count,
                            "a path has at least 2 points");
    profile_path_init(path, (const struct vec2 *)batch.numbers, batch.count);
    if (isfinite(path->length_m))
        return ERR_OK;
    return err_set_at(err, ERR_UNPROCESSABLE, "/path",
                      "the path is longer than a float64 can hold");
}

static enum err_code decode_sampling(struct call *call, struct sampling *out, struct err *err)
{
    bool has_samples = json_given(call->json, "samples") != NULL;
    size_t limit = call_limits(call)->items_max;

    if (option_number(call, "step", &out->step_m, &out->has_step, err))
        return err->code;
    if (has_samples == out->has_step)
        return err_set_at(err, ERR_BAD_INPUT, has_samples ? "/step" : "/samples",
                          "exactly one of samples and step must be given, not %s",
                          has_samples ? "both" : "neither");
    if (out->has_step && !(out->step_m > 0))
        return err_set_at(err, ERR_BAD_INPUT, "/step", "step must be above 0 m, it is %.17g",
                          out->step_m);
    if (has_samples && option_integer(call, "samples", 0, UINT32_MAX, &out->samples, err))
        return err->code;
    if (has_samples && out->samples < 2)
        return err_limit_at(err, ERR_BAD_INPUT, "/samples", 2, (double)out->samples,
                            "a profile has 2 to %zu samples, not %llu", limit,
                            (unsigned long long)out->samples);
    if (has_samples && out->samples > limit)
        return err_limit_at(err, ERR_TOO_MANY_ITEMS, "/samples", (double)limit,
                            (double)out->samples, "a profile has at most %zu samples, not %llu",
                            limit, (unsigned long long)out->samples);
    return ERR_OK;
}

/* How many samples a step gives must be known before any is taken. */
static enum err_code count_steps(struct call *call, const struct profile_path *path,
                                 struct sampling *sampling, struct err *err)
{
    double limit = (double)call_limits(call)->items_max;
    double count = profile_step_count(path, sampling->step_m);

    if (!(count <= limit)) {
        count = fmin(count, DBL_MAX); /* JSON has no infinity */
        return err_limit_at(err, ERR_TOO_MANY_ITEMS, "/step", limit, count,
                            "a step of %.17g m gives %.17g samples, the most is %.17g",
                            sampling->step_m, count, limit);
    }
    sampling->samples = (uint64_t)count;
    return ERR_OK;
}

static double distance_of(const struct profile_path *path, const struct sampling *sampling,
                          uint64_t i)
{
    if (i + 1 == sampling->samples)
        return path->length_m;
    if (sampling->has_step)
        return (double)i * sampling->step_m;
    return path->length_m * ((double)i / (double)(sampling->samples - 1));
}

enum { SAMPLE_BYTES = 256 };

static char *encode(char *at, double distance_m, struct vec2 xy, const struct ground_point *ground)
{
    bool is_ok = ground->status == GROUND_OK;

    at = JSON_RAW(at, "{\"distance\":");
    at = json_raw_number(at, distance_m);
    at = JSON_RAW(at, ",\"point\":");
    at = json_raw_vec3(at, (struct vec3){xy.x, xy.y, is_ok ? ground->height_m : NAN});
    switch (ground->status) {
    case GROUND_OK:
        return JSON_RAW(at, ",\"status\":\"ok\"}");
    case GROUND_HOLE:
        return JSON_RAW(at, ",\"status\":\"hole\"}");
    case GROUND_OUTSIDE:
        break;
    }
    return JSON_RAW(at, ",\"status\":\"outside\"}");
}

enum err_code profile_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"path", "samples", "step", NULL};
    static const char *const names[] = {"interp", "layer", NULL};
    struct sampling sampling;
    struct profile_path path;
    enum interpolation interpolation;
    const struct layer *layer;

    if (options_open_batch(call, items, names, err) ||
        option_interpolation(call, &interpolation, err) || option_choose_field(call, &layer, err) ||
        decode_sampling(call, &sampling, err) || decode_path(call, &path, err) ||
        (sampling.has_step && count_steps(call, &path, &sampling, err)) ||
        call_take_items(call, (size_t)sampling.samples, err))
        return err->code;
    call_begin_results(call);
    for (uint64_t i = 0; i < sampling.samples; i++) {
        double distance_m = distance_of(&path, &sampling, i);
        struct vec2 xy = profile_path_at(&path, distance_m);
        struct ground_point ground;
        char *at;

        heightfield_height(layer->field, xy, interpolation, &ground);
        at = call_open_item(call, i, SAMPLE_BYTES);
        if (!at)
            break;
        json_close_room(&call->out, encode(at, distance_m, xy, &ground));
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(profile_post, 1, CALL_NEEDS_GROUND)
