/*
 * POST …/impacts  {"model"|"radius","mass","position","velocity","observer"?,"until"?}
 *
 * The way of the body is straight, along its velocity, or along gravity where that is 0: an impact
 * is when the body meets the ground, and its flight is the caller's. Its speed there is that of the
 * request and of the fall between: v² + 2gh. `position` is the centre of mass.
 *
 * What is not finite is refused by the reader of JSON.
 */
#include "api/impacts/impact_decode.h"

#include "api/node.h"
#include "api/options.h"
#include "sand/body/ball.h"

#include <math.h>
#include <string.h>

#define GRAVITY 9.81
#define RADIUS_MIN_M 0.01

/* Where the request says that the body is, and goes. */
struct flight {
    struct vec3 position, velocity;
};

static enum err_code get_bounded(const cJSON *json, const char *name, double least, double most,
                                 const char *unit, double *out, struct err *err)
{
    if (json_get_number(json_given(json, name), out, err))
        return err_at(err, "/%s", name);
    if (*out >= least && *out > 0 && *out <= most)
        return ERR_OK;
    err_limit(err, ERR_UNPROCESSABLE, *out <= most ? least : most, *out,
              "%s is %g %s, it must be above 0, at least %g and at most %g", name, *out, unit,
              least, most);
    return err_at(err, "/%s", name);
}

/* ---- the body -------------------------------------------------------------------------------- */

static enum err_code take_ball(struct call *call, struct impact *out, struct err *err)
{
    char text[BALL_OBJ_BYTES];

    if (get_bounded(call->json, "radius", RADIUS_MIN_M, IMPACT_RADIUS_MAX_M, "m", &out->ball_m,
                    err))
        return err->code;
    out->body.radius_m = out->extent_m = out->ball_m;
    out->model =
        model_create("ball", text, ball_obj(out->ball_m, text), &call_limits(call)->polygon, err);
    return out->model ? ERR_OK : err->code;
}

static enum err_code take_model(struct call *call, const cJSON *value, struct impact *out,
                                struct err *err)
{
    const struct box3 *box;
    struct model *model;
    const char *id;

    if (json_get_string(value, &id, err))
        return err_at(err, "/model");
    model = (struct model *)(uintptr_t)model_list_find(call->snapshot->models, id);
    if (!model)
        return err_set_at(err, ERR_MODEL_UNKNOWN_OPTION, "/model", "there is no model \"%.64s\"",
                          id);
    out->body.radius_m = cbrt(model->solid.volume_m3 * 3 / (4 * M_PI));
    if (out->body.radius_m > IMPACT_RADIUS_MAX_M)
        return err_limit_at(
            err, ERR_UNPROCESSABLE, "/model", IMPACT_RADIUS_MAX_M, out->body.radius_m,
            "a ball of the volume of model \"%.64s\" has a radius of %g m, the most is %d m", id,
            out->body.radius_m, IMPACT_RADIUS_MAX_M);
    box = &model->solid.bounds;
    out->extent_m = vec3_length(vec3_sub(box->max, box->min));
    out->model = model_ref(model);
    return ERR_OK;
}

static enum err_code take_body(struct call *call, struct impact *out, struct err *err)
{
    const cJSON *model = json_given(call->json, "model"),
                *radius = json_given(call->json, "radius");

    if ((model != NULL) == (radius != NULL))
        return err_set_at(err, ERR_BAD_INPUT, model ? "/radius" : "/model",
                          "an impact has a model or a radius, %s",
                          model ? "not both" : "this one has none");
    if (get_bounded(call->json, "mass", 0, IMPACT_MASS_MAX_KG, "kg", &out->body.mass_kg, err))
        return err->code;
    return model ? take_model(call, model, out, err) : take_ball(call, out, err);
}

/* ---- its way --------------------------------------------------------------------------------- */

static enum err_code take_way(struct call *call, struct flight *flight, struct impact *out,
                              struct err *err)
{
    double speed;

    if (json_get_vec3(json_given(call->json, "position"), &flight->position, err))
        return err_at(err, "/position");
    if (json_get_vec3(json_given(call->json, "velocity"), &flight->velocity, err))
        return err_at(err, "/velocity");
    speed = vec3_length(flight->velocity);
    if (!(speed <= IMPACT_SPEED_MAX))
        return err_limit_at(err, ERR_UNPROCESSABLE, "/velocity", IMPACT_SPEED_MAX, speed,
                            "velocity is %g m/s, the most is %d m/s", speed, IMPACT_SPEED_MAX);
    out->direction =
        speed > 0 ? vec3_scale(flight->velocity, 1 / speed) : call->locale->manifest.gravity;
    return ERR_OK;
}

static enum err_code no_ground(struct err *err, const char *format, const char *what)
{
    return err_set_at(err, ERR_UNPROCESSABLE, "/velocity", format, what);
}

/* The ground on its way, and its speed there. */
static enum err_code land(struct call *call, const struct flight *flight, struct impact *out,
                          struct err *err)
{
    const struct ray ray = {flight->position, out->direction, INFINITY};
    const double speed2 = vec3_dot(flight->velocity, flight->velocity);
    struct layer_choice choice;
    struct locale_hit hit;
    double fall_m, met2;

    if (locale_choose(call->locale, NULL, &choice, err))
        return err->code;
    if (!locale_ray(&choice, &ray, RAY_CLOSEST, &hit, NULL))
        return no_ground(err, "there is no ground on the way of the body in locale %s",
                         call->locale->id);
    if (!hit.layer->field)
        return no_ground(err, "the body meets layer %s, a mesh, which takes no craters",
                         hit.layer->id);
    if (vec3_dot(out->direction, hit.at.normal) >= 0)
        return no_ground(err, "the body comes to the ground of layer %s from below", hit.layer->id);
    fall_m = vec3_dot(vec3_sub(hit.at.point, flight->position), call->locale->manifest.gravity);
    if (fall_m > 0) /* its centre stays a radius above */
        fall_m = fmax(fall_m - out->body.radius_m, 0);
    met2 = speed2 + 2 * GRAVITY * fall_m;
    if (!(met2 >= 0))
        return no_ground(err, "the body is too slow to rise to the ground of layer %s",
                         hit.layer->id);
    out->body.speed_m_s = sqrt(met2);
    out->point = hit.at.point;
    out->normal = hit.at.normal;
    memcpy(out->layer, hit.layer->id, sizeof out->layer);
    return ERR_OK;
}

static enum err_code take_until(struct call *call, bool *is_waiting, struct err *err)
{
    static const char *const words[] = {"accepted", "written", NULL};
    int word = 0;

    if (option_word(call, "until", words, &word, err))
        return err->code;
    *is_waiting = word == 1;
    return ERR_OK;
}

static enum err_code take_observer(struct call *call, struct impact *out, struct err *err)
{
    struct vec3 eye;
    bool is_given;

    if (option_numbers(call, "observer", 3, &eye.x, &is_given, err))
        return err->code;
    if (is_given)
        out->observer_m = vec3_length(vec3_sub(eye, out->point));
    return ERR_OK;
}

static const char *const items[] = {"model",    "radius",   "mass",  "position",
                                    "velocity", "observer", "until", NULL};
static const char *const options[] = {NODE_PLACED, NULL};

enum err_code impact_decode(struct call *call, struct impact *out, struct err *err)
{
    struct impact impact = {.model = NULL};
    struct flight flight;

    if (options_open_json(call, items, options, err) ||
        option_boolean(call, NODE_PLACED, &impact.is_placed, err))
        return err->code;
    if (take_way(call, &flight, &impact, err) || take_body(call, &impact, err) ||
        take_until(call, &impact.is_waiting, err) || land(call, &flight, &impact, err) ||
        take_observer(call, &impact, err)) {
        impact_free(&impact);
        return err->code;
    }
    impact.crater = crater_of(&impact.body);
    *out = impact;
    return ERR_OK;
}

enum err_code impact_decode_until(struct call *call, bool *is_waiting, struct err *err)
{
    return options_open_json(call, items, options, err) ? err->code
                                                        : take_until(call, is_waiting, err);
}

void impact_free(struct impact *impact)
{
    model_unref(impact->model);
    impact->model = NULL;
}
