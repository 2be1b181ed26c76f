/*
 * POST …/lit  {"points":[[x,y,z]…],"light":{"direction":[x,y,z]} or {"position":[x,y,z]},"layer"}
 *   ->  results: {"lit":bool,"occluder":{"distance","point","normal","layer","cell","triangle",
 *                 "polygon"}}
 * POST …/lit  binary: x y z, the light in the query  ->  one byte: 1 lit, 0 in shadow
 *
 * direction is the way that the light travels, as gravity is the way that things fall; it need not
 * be unit. The occluder is the first hit from the point to the light, distance from the point;
 * null where the point is lit. Where a ray begins and ends: world/ask/lit.h.
 *
 * A batch that makes a light's tree pay (world/values/light_cache.h) makes it, on a worker.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "json/json_raw.h"
#include "api/options.h"
#include "api/encode.h"
#include "world/ask/lit.h"

/* ---- the light ------------------------------------------------------------------------------- */

static enum err_code check_direction(struct vec3 direction, struct light *out, struct err *err)
{
    if (!light_from_direction(direction, out))
        return err_set(err, ERR_BAD_INPUT, "direction is the zero vector, a light must travel");
    return ERR_OK;
}

/* A way that begins farther away would be no ray. */
static enum err_code check_point(struct vec3 point, struct err *err)
{
    double largest = fmax(fabs(point.x), fmax(fabs(point.y), fabs(point.z)));
    double most = RAY_NUMBER_MAX / 2;

    return largest <= most
               ? ERR_OK
               : err_limit(err, ERR_BAD_INPUT, most, largest,
                           "the point has a coordinate of %g, must be at most %g m", largest, most);
}

static enum err_code check_position(struct vec3 place, struct light *out, struct err *err)
{
    double largest = fmax(fabs(place.x), fmax(fabs(place.y), fabs(place.z)));

    if (!(largest <= LIGHT_PLACE_MAX_M))
        return err_limit(err, ERR_BAD_INPUT, LIGHT_PLACE_MAX_M, largest,
                         "position has a coordinate of %g, must be at most %g m", largest,
                         LIGHT_PLACE_MAX_M);
    *out = light_at_place(place);
    return ERR_OK;
}

static enum err_code either(bool has_direction, bool has_position, struct err *err)
{
    if (has_direction == has_position)
        return err_set(err, ERR_BAD_INPUT,
                       "exactly one of direction and position must be given, not %s",
                       has_direction ? "both" : "neither");
    return ERR_OK;
}

static enum err_code light_of_json(const struct call *call, struct light *out, struct err *err)
{
    static const char *const names[] = {"direction", "position", NULL};
    const cJSON *light = json_given(call->json, "light");
    const cJSON *direction, *position;
    struct vec3 v;

    if (!light)
        return err_set_at(err, ERR_MISSING, "/light",
                          "is missing: an object with direction or position");
    if (json_only_members(light, names, "/light", err))
        return err->code;
    direction = json_given(light, "direction");
    position = json_given(light, "position");
    if (either(direction != NULL, position != NULL, err))
        return err_at(err, "/light");
    if (json_get_vec3(direction ? direction : position, &v, err) ||
        (direction ? check_direction(v, out, err) : check_position(v, out, err)))
        return err_at(err, direction ? "/light/direction" : "/light/position");
    return ERR_OK;
}

/* base: the origin of a position. */
static enum err_code light_of_query(struct call *call, const double base[3], struct light *out,
                                    struct err *err)
{
    double d[3], p[3];
    bool has_direction = false, has_position = false;

    if (option_numbers(call, "direction", 3, d, &has_direction, err) ||
        option_numbers(call, "position", 3, p, &has_position, err))
        return err->code;
    if (either(has_direction, has_position, err))
        return err_at(err, "direction");
    if (has_direction
            ? check_direction((struct vec3){d[0], d[1], d[2]}, out, err)
            : check_position((struct vec3){p[0] + base[0], p[1] + base[1], p[2] + base[2]}, out,
                             err))
        return err_at(err, has_direction ? "direction" : "position");
    return ERR_OK;
}

/* ---- the batch ------------------------------------------------------------------------------- */

/* Ready to answer, or ERR_BUSY: the call leaves the loop first. */
static enum err_code open_lighting(struct call *call, const struct layer_choice *choice,
                                   const struct light *light, size_t count,
                                   struct lighting *lighting, struct err *err)
{
    struct light_cache *cache = call->api->lights;
    bool is_on_loop = call->request && http_request_may_offload(call->request);

    if (call_check_budget_rays(call, choice, err))
        return err->code;
    if (lighting_open(lighting, choice, light, count, cache, !is_on_loop))
        return ERR_OK;
    return call_offload(call, err);
}

static enum err_code answer_binary(struct call *call, struct batch *batch,
                                   const struct lighting *lighting, struct err *err)
{
    size_t together = call_rays_together(call, lighting->choice);

    for (size_t i = 0; i < batch->count; i += together) {
        size_t count = call_some_rays(batch->count, i, together);
        struct vec3 points[LIT_TOGETHER_MAX];

        if (call_check_budget(call, i, err))
            return err->code;
        for (size_t k = 0; k < count; k++) {
            double in[3];

            if (batch_read(batch, i + k, 3, false, in, err))
                return err->code;
            points[k] = (struct vec3){in[0] + batch->base[0], in[1] + batch->base[1],
                                      in[2] + batch->base[2]};
            if (check_point(points[k], err))
                return err_at(err, "/%zu", i + k);
        }
        lighting_lit(lighting, points, count, batch->out + i);
    }
    batch_close(call, batch, 0);
    return ERR_OK;
}

static enum err_code lit_binary(struct call *call, struct err *err)
{
    static const char *const names[] = {"layer", "base", "direction", "position", NULL};
    struct layer_choice choice;
    struct lighting lighting;
    struct light light;
    struct batch batch;

    if (batch_open(call, 3, 0, names, &batch, err) || option_choose(call, &choice, err) ||
        light_of_query(call, batch.base, &light, err) ||
        open_lighting(call, &choice, &light, batch.count, &lighting, err))
        return err->code;
    (void)answer_binary(call, &batch, &lighting, err);
    lighting_close(&lighting);
    return err->code;
}

enum { ITEM_BYTES = ENCODED_HIT_BYTES + 64 };

static char *encode(char *at, const struct locale_hit *occluder)
{
    char *comma;

    if (occluder->at.t == INFINITY)
        return JSON_RAW(at, "{\"lit\":true,\"occluder\":null}");
    at = JSON_RAW(at, "{\"lit\":false,\"occluder\":");
    comma = at;
    at = encode_hit_raw(at, occluder);
    *comma = '{';
    return JSON_RAW(at, "}}");
}

static enum err_code check_points(const struct json_batch *batch, struct err *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        const double *p = batch->numbers + 3 * i;

        if (check_point((struct vec3){p[0], p[1], p[2]}, err))
            return err_at(err, "/points/%zu", i);
    }
    return ERR_OK;
}

static enum err_code answer_json(struct call *call, const struct json_batch *batch,
                                 const struct lighting *lighting, struct err *err)
{
    size_t together = call_rays_together(call, lighting->choice);

    call_begin_results(call);
    for (size_t i = 0; i < batch->count; i += together) {
        size_t count = call_some_rays(batch->count, i, together);
        struct locale_hit occluders[LIT_TOGETHER_MAX];
        struct vec3 points[LIT_TOGETHER_MAX];
        char *at;

        if (call_check_budget(call, i, err))
            return err->code;
        for (size_t k = 0; k < count; k++) {
            const double *p = batch->numbers + 3 * (i + k);

            points[k] = (struct vec3){p[0], p[1], p[2]};
        }
        lighting_occluders(lighting, points, count, occluders);
        at = json_open_room(&call->out, count * ITEM_BYTES);
        if (!at)
            break;
        for (size_t k = 0; k < count; k++) {
            if (i + k > 0)
                *at++ = ',';
            at = encode(at, &occluders[k]);
        }
        json_close_room(&call->out, at);
    }
    call_end_results(call);
    return ERR_OK;
}

enum err_code lit_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", "light", NULL};
    static const char *const names[] = {"layer", NULL};
    struct layer_choice choice;
    struct lighting lighting;
    struct json_batch batch;
    struct light light;

    if (batch_is_binary(call))
        return lit_binary(call, err);
    if (options_open_batch(call, items, names, err) || option_choose(call, &choice, err) ||
        light_of_json(call, &light, err) || option_batch(call, &json_shape_points3, &batch, err) ||
        check_points(&batch, err) ||
        open_lighting(call, &choice, &light, batch.count, &lighting, err))
        return err->code;
    (void)answer_json(call, &batch, &lighting, err);
    lighting_close(&lighting);
    return err->code;
}
API_HANDLER(lit_post, 1, CALL_NEEDS_VALUE)

_Static_assert((int)LIT_TOGETHER_MAX >= (int)CALL_RAYS_TOGETHER, "as many as are paced together");
