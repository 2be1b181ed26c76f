/*
 * POST …/patches  {"center":[x,y],"size":[w,h],"scale"?,"observer"?,"depth"?,"bodies"?,"seed"?,
 *                  "fill"?,"mode"?,"material"?,"deadline_ms"?,"leave"?,"overflow"?,
 *                  "layer"?}
 * Body            {"model","position","orientation"?,"velocity"?,"angular_velocity"?,
 *                  "mass"?|"density"?}
 *                 {"model","mass":0,"path":[{"t","position","orientation"?}…]}
 *
 * Everything that can be refused is refused here, before the sand thread gets it: numbers, the
 * place on the field, the shells of the models (kept by their hash, shell_cache.h), where bodies
 * start. Impossible requests are refused first, in any state of the device. Cutting the ground
 * takes tens of milliseconds, so all of this runs on a worker, after a check that a patch of the
 * scale is free.
 */
#include "api/calls/patch_decode.h"

#include "api/node.h"
#include "api/options.h"
#include "api/calls/patch_wait_queue.h"
#include "sand/body/shell_cache.h"
#include "world/follow/lease.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far from the observer `auto` takes which granules. */
#define FINE_WITHIN_M 50.0
#define MEDIUM_WITHIN_M 200.0
#define DEPTH_DEFAULT_M 2.0
#define DENSITY_DEFAULT 1000.0
#define DENSITY_MAX 1e5
#define MASS_MAX_KG 1e9
#define GRAVITY 9.81
#define GRANULES_ACROSS 5 /* of a body, at least, for a crater */

static const char *const scale_words[] = {"auto", "fine", "medium", "coarse", NULL};
static const char *const fill_words[] = {"packed", "stacked", NULL};
static const char *const leave_words[] = {"layer", NULL};
static const char *const body_members[] = {
    "model", "position", "orientation", "velocity", "angular_velocity",
    "mass",  "density",  "path",        NULL};
static const char *const mode_words[] = {"difference", "overwrite", NULL};

/* ---- numbers --------------------------------------------------------------------------------- */

/* A member of numbers, if it is given. */
static enum err_code given_numbers(const cJSON *object, const char *name, const char *place,
                                   size_t count, double *out, bool *is_given, struct err *err)
{
    const cJSON *value = json_given(object, name);

    *is_given = value != NULL;
    if (value && json_get_numbers(value, count, out, err))
        return err_at(err, "%s/%s", place, name);
    return ERR_OK;
}

/* Puts the place of an object before the pointer within it. */
static enum err_code at_place(struct err *err, const char *place)
{
    char pointer[sizeof err->pointer];

    memcpy(pointer, err->pointer, sizeof pointer);
    return err_at(err, "%s%s", place, pointer);
}

static enum err_code unit_quaternion(double q[4], const char *place, struct err *err)
{
    const double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);

    if (!(fabs(length - 1) <= 1e-3)) {
        err_limit(err, ERR_BAD_INPUT, 1, length,
                  "orientation is a unit quaternion x, y, z, w; this one is %g long", length);
        return err_at(err, "%s/orientation", place);
    }
    for (int i = 0; i < 4; i++)
        q[i] /= length;
    return ERR_OK;
}

/* mass, or density times the model's volume. */
static enum err_code decode_mass(const cJSON *json, const char *place, double volume_m3,
                                 double *mass_kg, struct err *err)
{
    const cJSON *mass = json_given(json, "mass"), *density = json_given(json, "density");
    const char *name = mass ? "mass" : "density";
    double value = DENSITY_DEFAULT;

    if (mass && density) {
        err_set(err, ERR_BAD_INPUT, "a body has mass or density, not both");
        return err_at(err, "%s/density", place);
    }
    if ((mass || density) && json_get_number(mass ? mass : density, &value, err))
        return err_at(err, "%s/%s", place, name);
    if (mass && value == 0 && json_given(json, "path")) {
        *mass_kg = 0;
        return ERR_OK;
    }
    if (json_given(json, "path")) {
        err_limit(err, ERR_UNPROCESSABLE, 0, value, "a body with a path has mass 0, not a %s of %g",
                  name, value);
        return err_at(err, "%s/%s", place, name);
    }
    if (!(value > 0) || value > (mass ? MASS_MAX_KG : DENSITY_MAX)) {
        err_limit(err, ERR_UNPROCESSABLE, mass ? MASS_MAX_KG : DENSITY_MAX, value,
                  "%s is %g %s, it must be above 0 and at most %g%s", name, value,
                  mass ? "kg" : "kg/m3", mass ? MASS_MAX_KG : DENSITY_MAX,
                  mass && value == 0 ? "; a mass of 0 needs a path" : "");
        return err_at(err, "%s/%s", place, name);
    }
    *mass_kg = mass ? value : value * volume_m3;
    return ERR_OK;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static const struct model *find_model(const struct call *call, const cJSON *json, const char *place,
                                      struct err *err)
{
    const struct model *model;
    const char *id;

    if (json_get_string(json_given(json, "model"), &id, err)) {
        err_at(err, "%s/model", place);
        return NULL;
    }
    model = model_list_find(call->snapshot->models, id);
    if (!model) {
        err_set(err, ERR_MODEL_UNKNOWN_OPTION, "there is no model \"%.64s\"", id);
        err_at(err, "%s/model", place);
    }
    return model;
}

/* Pose i of a path; `before` is the one before it, NULL for the first. */
static enum err_code decode_path_pose(const cJSON *json, const char *place,
                                      const struct sand_path_pose *before,
                                      struct sand_path_pose *out, struct err *err)
{
    static const char *const members[] = {"t", "position", "orientation", NULL};
    const double least_s = before ? before->t_s : 0;
    bool is_given;

    *out = (struct sand_path_pose){.orientation = {0, 0, 0, 1}};
    if (json_only_members(json, members, place, err))
        return err->code;
    if (json_get_number(json_given(json, "t"), &out->t_s, err))
        return err_at(err, "%s/t", place);
    if (!(before ? out->t_s > least_s : out->t_s >= 0) || out->t_s > PATCH_PATH_S_MAX) {
        const bool is_late = out->t_s > PATCH_PATH_S_MAX;

        err_limit(err, ERR_UNPROCESSABLE, is_late ? PATCH_PATH_S_MAX : least_s, out->t_s,
                  "t is %g s; the times of a path ascend, from 0 to %g s at most%s", out->t_s,
                  PATCH_PATH_S_MAX,
                  is_late  ? ""
                  : before ? ", and the one before is not less"
                           : "");
        return err_at(err, "%s/t", place);
    }
    if (given_numbers(json, "position", place, 3, out->position, &is_given, err))
        return err->code;
    if (!is_given) {
        err_set(err, ERR_BAD_INPUT, "a pose needs a position [x,y,z]");
        return err_at(err, "%s/position", place);
    }
    return given_numbers(json, "orientation", place, 4, out->orientation, &is_given, err)
               ? err->code
               : unit_quaternion(out->orientation, place, err);
}

/* Of a kinematic body, which begins where its path does. */
static enum err_code decode_path(const cJSON *json, const char *place, struct patch_body *body,
                                 struct err *err)
{
    const cJSON *array = json_given(json, "path"), *item;
    const int count = cJSON_GetArraySize(array);
    char at[96];

    if (!cJSON_IsArray(array)) {
        err_set(err, ERR_BAD_INPUT, "path is an array, not %s", json_kind(array));
        return err_at(err, "%s/path", place);
    }
    if (count < 1 || count > PATCH_PATH_POSES_MAX) {
        err_limit(err, ERR_UNPROCESSABLE, count < 1 ? 1 : PATCH_PATH_POSES_MAX, count,
                  "a path of %d poses; it has 1 to %d", count, PATCH_PATH_POSES_MAX);
        return err_at(err, "%s/path", place);
    }
    if (!json_given(json, "mass")) {
        err_set(err, ERR_BAD_INPUT, "a body with a path has mass 0");
        return err_at(err, "%s/mass", place);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *const name = i ? "angular_velocity" : "velocity";

        if (!json_given(json, name))
            continue;
        err_set(err, ERR_BAD_INPUT, "a body with a path has the %s of its path", name);
        return err_at(err, "%s/%s", place, name);
    }
    body->path = calloc(1, sizeof *body->path + (size_t)count * sizeof body->path->poses[0]);
    if (!body->path)
        return err_set(err, ERR_NO_MEMORY, "no memory for a path of %d poses", count);
    cJSON_ArrayForEach(item, array)
    {
        struct sand_path_pose *poses = body->path->poses;
        const uint32_t i = body->path->count;

        snprintf(at, sizeof at, "%s/path/%u", place, i);
        if (decode_path_pose(item, at, i > 0 ? &poses[i - 1] : NULL, &poses[i], err))
            return err->code;
        body->path->count++;
    }
    memcpy(body->position, body->path->poses[0].position, sizeof body->position);
    memcpy(body->orientation, body->path->poses[0].orientation, sizeof body->orientation);
    return ERR_OK;
}

static enum err_code decode_poses(const cJSON *json, const char *place, struct patch_body *body,
                                  struct err *err)
{
    bool is_given;

    if (given_numbers(json, "position", place, 3, body->position, &is_given, err))
        return err->code;
    if (!is_given && !json_given(json, "path")) {
        err_set(err, ERR_BAD_INPUT, "a body needs a position [x,y,z]");
        return err_at(err, "%s/position", place);
    }
    body->orientation[3] = 1;
    if (given_numbers(json, "orientation", place, 4, body->orientation, &is_given, err) ||
        unit_quaternion(body->orientation, place, err))
        return err->code;
    if (given_numbers(json, "velocity", place, 3, body->velocity, &is_given, err) ||
        given_numbers(json, "angular_velocity", place, 3, body->angular_velocity, &is_given, err))
        return err->code;
    return json_given(json, "path") ? decode_path(json, place, body, err) : ERR_OK;
}

static enum err_code decode_body(struct call *call, const cJSON *json, const char *place,
                                 const struct patch_start *start,
                                 const struct granular_params *params, struct patch_body *out,
                                 struct err *err)
{
    struct patch_body body = {.shape = {.release = NULL}};
    const struct model *model;
    struct shell_ref *shell;
    double mass_kg = 0;

    if (json_only_members(json, body_members, place, err))
        return err->code;
    model = find_model(call, json, place, err);
    if (!model || decode_poses(json, place, &body, err) ||
        decode_mass(json, place, model->solid.volume_m3, &mass_kg, err)) {
        patch_body_free(&body);
        return err->code;
    }
    memcpy(body.model, model->id, sizeof body.model);
    shell = shell_cache_get(call->api->shells, model, params->radius_m, &call_limits(call)->polygon,
                            err);
    if (!shell) {
        patch_body_free(&body);
        return err_at(err, "%s/model", place);
    }
    shell_ref_body(shell, mass_kg, &body.shape); /* keeps the reference */
    if (patch_body_check(&body, start->field, &start->place, params, err)) {
        patch_body_free(&body);
        return at_place(err, place);
    }
    *out = body;
    return ERR_OK;
}

static enum err_code decode_bodies(struct call *call, struct patch_start *start,
                                   const struct sand_engine_config *config, struct err *err)
{
    const cJSON *array = json_given(call->json, "bodies"), *item;
    uint32_t count;

    if (!array)
        return ERR_OK;
    if (!cJSON_IsArray(array))
        return err_set_at(err, ERR_BAD_INPUT, "/bodies", "bodies is an array, not %s",
                          json_kind(array));
    count = (uint32_t)cJSON_GetArraySize(array);
    if (count > config->bodies_max)
        return err_limit_at(err, ERR_UNPROCESSABLE, "/bodies", config->bodies_max, count,
                            "the patch would have %u bodies, the most is %u", count,
                            config->bodies_max);
    start->bodies = calloc((size_t)count + 1, sizeof *start->bodies);
    if (!start->bodies)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u bodies", count);
    cJSON_ArrayForEach(item, array)
    {
        char place[32];

        snprintf(place, sizeof place, "/bodies/%u", start->body_count);
        if (decode_body(call, item, place, start, &config->params,
                        &start->bodies[start->body_count], err))
            return err->code;
        start->body_count++;
    }
    return ERR_OK;
}

/* ---- the patch ------------------------------------------------------------------------------- */

/* Sand lies on its ground: gravity within 45 degrees of -Z. */
static enum err_code decode_gravity(const struct call *call, float out[3], struct err *err)
{
    const struct vec3 gravity = call->locale->manifest.gravity;

    if (!(gravity.z <= -0.7))
        return err_set(err, ERR_UNPROCESSABLE,
                       "gravity of locale %s is [%g,%g,%g]: a patch needs it to point down, within "
                       "45 degrees of -Z",
                       call->locale->id, gravity.x, gravity.y, gravity.z);
    out[0] = (float)(GRAVITY * gravity.x);
    out[1] = (float)(GRAVITY * gravity.y);
    out[2] = (float)(GRAVITY * gravity.z);
    return ERR_OK;
}

struct asked {
    struct vec2 center;
    double size_m[2], depth_m;
    int scale;
    double deadline_s;                 /* INFINITY: none */
    double across_m;                   /* the least side of the smallest body; INFINITY: none */
    double fall_s;                     /* until the last body meets the ground; below 0: none */
    const struct patch_impact *impact; /* its patch; NULL: the request has it all */
};

/* Numbers of one's own; those that are not given are sand's. */
static enum err_code decode_own_material(const cJSON *json, struct material_numbers *out,
                                         struct err *err)
{
    static const char *const members[] = {"friction", "density", "damping", "stiffness", NULL};
    const struct material_numbers *least = &material_least, *most = &material_most;
    const struct {
        float *number, least, most;
    } of[] = {{&out->friction, least->friction, most->friction},
              {&out->density, least->density, most->density},
              {&out->damping, least->damping, most->damping},
              {&out->stiffness, least->stiffness, most->stiffness}};

    *out = material_numbers_of(MATERIAL_SAND);
    if (json_only_members(json, members, "/material", err))
        return err->code;
    for (size_t i = 0; members[i]; i++) {
        const cJSON *value = json_given(json, members[i]);
        double given;

        if (!value)
            continue;
        if (json_get_number(value, &given, err))
            return err_at(err, "/material/%s", members[i]);
        *of[i].number = (float)given;
        if (*of[i].number >= of[i].least && *of[i].number <= of[i].most)
            continue;
        err_limit(
            err, ERR_UNPROCESSABLE, *of[i].number < of[i].least ? of[i].least : of[i].most, given,
            "%s is %g, it must be from %g to %g: beyond that the simulation is not stable, or "
            "never at rest",
            members[i], given, of[i].least, of[i].most);
        return err_at(err, "/material/%s", members[i]);
    }
    return ERR_OK;
}

/* The name of a preset, or an object of numbers. */
static enum err_code decode_material(const struct call *call, struct patch_start *start,
                                     struct err *err)
{
    const cJSON *value = json_given(call->json, "material");
    const char *words[MATERIAL_COUNT + 1] = {NULL};
    int word = (int)call_limits(call)->sand.device.material;

    if (cJSON_IsObject(value)) {
        start->material = MATERIAL_OWN;
        return decode_own_material(value, &start->numbers, err);
    }
    for (int i = 0; i < MATERIAL_COUNT; i++)
        words[i] = material_name((enum granular_material)i);
    if (value && json_get_word(value, words, &word, err))
        return err_at(err, "/material");
    start->material = (enum granular_material)word;
    start->numbers = material_numbers_of(start->material);
    return ERR_OK;
}

static enum err_code decode_deadline(struct call *call, double *deadline_s, struct err *err)
{
    bool is_given;
    double ms;

    *deadline_s = INFINITY;
    if (option_number(call, "deadline_ms", &ms, &is_given, err) || !is_given)
        return err->code;
    if (!(ms > 0))
        return err_limit_at(err, ERR_BAD_INPUT, "/deadline_ms", 0, ms,
                            "deadline_ms is %g, it must be above 0", ms);
    *deadline_s = ms / 1e3;
    return ERR_OK;
}

/* Has the locale room for a layer of each body? */
static enum err_code check_layers(const struct call *call, struct err *err)
{
    const cJSON *bodies = json_given(call->json, "bodies");
    const size_t layers = call->locale->layer_count +
                          (size_t)(cJSON_IsArray(bodies) ? cJSON_GetArraySize(bodies) : 0);

    if (layers <= LOCALE_LAYERS_MAX)
        return ERR_OK;
    return err_limit_at(err, ERR_WORLD_FULL, "/leave", LOCALE_LAYERS_MAX, (double)layers,
                        "with one layer a body locale %s would have %zu layers, it takes %d",
                        call->locale->id, layers, LOCALE_LAYERS_MAX);
}

static enum err_code decode_numbers(struct call *call, struct asked *asked,
                                    struct patch_start *start, struct err *err)
{
    const cJSON *json = call->json;
    int fill = 0, mode = 0, leave = -1;
    double center[2];

    if (json_get_numbers(json_given(json, "center"), 2, center, err))
        return err_at(err, "/center");
    asked->center = (struct vec2){center[0], center[1]};
    if (json_get_numbers(json_given(json, "size"), 2, asked->size_m, err))
        return err_at(err, "/size");
    asked->depth_m = DEPTH_DEFAULT_M;
    if (option_numbers(call, "observer", 3, (double[3]){0}, NULL, err) ||
        option_number(call, "depth", &asked->depth_m, NULL, err) ||
        decode_deadline(call, &asked->deadline_s, err) ||
        option_integer(call, "seed", 0, (uint64_t)1 << 53, &start->seed, err) ||
        option_word(call, "scale", scale_words, &asked->scale, err) ||
        option_word(call, "fill", fill_words, &fill, err) ||
        option_word(call, "mode", mode_words, &mode, err) ||
        option_boolean(call, "overflow", &start->overflows, err) ||
        option_word(call, "leave", leave_words, &leave, err))
        return err->code;
    start->fill = fill == 1 ? CONVERT_STACKED : CONVERT_PACKED;
    start->mode = mode == 1 ? CONVERT_OVERWRITE : CONVERT_DIFFERENCE;
    start->leaves = leave >= 0;
    if (start->leaves && check_layers(call, err))
        return err->code;
    return decode_material(call, start, err);
}

static enum err_code find_ground(struct call *call, const struct asked *asked,
                                 struct patch_start *start, struct err *err)
{
    struct feed *feed = world_feed(call->api->world);
    const struct locale *locale = call->locale;
    const struct layer *layer;

    if (asked->impact ? locale_choose_field(locale, asked->impact->layer, &layer, err)
                      : option_choose_field(call, &layer, err))
        return err->code;
    memcpy(start->locale, locale->id, sizeof start->locale);
    memcpy(start->layer, layer->id, sizeof start->layer);
    start->revision = locale->revision;
    if (!feed_find(feed, locale->id, locale->revision, locale->revision, &start->feed_after))
        return err_set(err, ERR_BUSY, "locale %s has just changed; try again", locale->id);
    start->field = asked->impact ? patch_dent_undo(layer->field, asked->impact->dent, err)
                                 : heightfield_ref(layer->field);
    return start->field ? ERR_OK : err->code;
}

/* ---- which granules -------------------------------------------------------------------------- */

/*
 * The bodies before they are decoded, which needs the scale: how small, and how long they fall.
 * What is wrong with one is found later.
 */
static void look_at_bodies(struct call *call, const struct heightfield *field, struct asked *asked)
{
    const cJSON *item;

    asked->across_m = INFINITY;
    asked->fall_s = asked->impact ? 0 : -1;
    cJSON_ArrayForEach(item, json_given(call->json, "bodies"))
    {
        const cJSON *name = json_given(item, "model");
        const struct model *model = cJSON_IsString(name)
                                        ? model_list_find(call->snapshot->models, name->valuestring)
                                        : NULL;
        const cJSON *path = json_given(item, "path");
        double at[3], v[3] = {0, 0, 0}, above_m = 0, last_s;
        struct ground_point ground;
        struct err ignored;
        bool is_given;

        if (cJSON_GetArraySize(path) > 0 &&
            !json_get_number(
                json_given(cJSON_GetArrayItem(path, cJSON_GetArraySize(path) - 1), "t"), &last_s,
                &ignored)) {
            asked->fall_s = fmax(asked->fall_s, fmin(last_s, PATCH_PATH_S_MAX));
            continue;
        }
        if (!model || given_numbers(item, "position", "", 3, at, &is_given, &ignored) ||
            !is_given || given_numbers(item, "velocity", "", 3, v, &is_given, &ignored))
            continue;
        asked->across_m = fmin(asked->across_m,
                               fmin(model->solid.bounds.max.x - model->solid.bounds.min.x,
                                    fmin(model->solid.bounds.max.y - model->solid.bounds.min.y,
                                         model->solid.bounds.max.z - model->solid.bounds.min.z)));
        heightfield_height(field, (struct vec2){at[0], at[1]}, INTERPOLATION_TRIANGLE, &ground);
        if (ground.status == GROUND_OK)
            above_m = fmax(at[2] - ground.height_m, 0);
        asked->fall_s =
            fmax(asked->fall_s, (v[2] + sqrt(v[2] * v[2] + 2 * GRAVITY * above_m)) / GRAVITY);
    }
}

/* The coarsest that is five granules across; medium without a body. */
static enum granular_scale asked_scale_of_bodies(const struct asked *asked)
{
    int scale = SCALE_MEDIUM;

    while (scale > SCALE_FINE &&
           asked->across_m <
               GRANULES_ACROSS * (2 + sqrt(6)) * (double)scale_radius_m((enum granular_scale)scale))
        scale--;
    return (enum granular_scale)scale;
}

/*
 * What `auto` means: the smallest body is five granules across, where
 * that can be; and by the distance of the observer from the patch's centre on the ground.
 */
static enum err_code auto_scale(struct call *call, const struct asked *asked,
                                const struct heightfield *field, enum granular_scale *out,
                                struct err *err)
{
    const struct vec2 center = asked->center;
    const cJSON *observer = json_given(call->json, "observer");
    struct ground_point ground;
    enum granular_scale near;
    struct vec3 eye;
    double dx, dy, dz, distance_m;

    *out = asked_scale_of_bodies(asked);
    if (!observer)
        return ERR_OK;
    if (json_get_vec3(observer, &eye, err))
        return err_at(err, "/observer");
    heightfield_height(field, center, INTERPOLATION_TRIANGLE, &ground);
    dx = eye.x - center.x;
    dy = eye.y - center.y;
    dz = ground.status == GROUND_OK ? eye.z - ground.height_m : 0;
    distance_m = sqrt(dx * dx + dy * dy + dz * dz);
    near = distance_m < FINE_WITHIN_M     ? SCALE_FINE
           : distance_m < MEDIUM_WITHIN_M ? SCALE_MEDIUM
                                          : SCALE_COARSE;
    if (near < *out || !isfinite(asked->across_m))
        *out = near;
    return ERR_OK;
}

/* The rate of a scale on this device, or of another one; false: nothing was measured yet. */
static bool find_rate(struct call *call, enum granular_scale scale, struct sand_rate *out)
{
    struct sand_stats stats;

    sand_stats(call->api->sand, &stats);
    *out = stats.patches.rate[scale];
    for (int other = 0; other < SCALE_COUNT && out->sphere_steps_s == 0; other++)
        out->sphere_steps_s = stats.patches.rate[other].sphere_steps_s;
    return out->sphere_steps_s > 0;
}

static struct patch_load load_of(struct call *call, const struct asked *asked, double granules)
{
    const struct manager_limits *limits = &call_limits(call)->sand.limits;

    return (struct patch_load){.granules = granules,
                               .fall_s = asked->fall_s,
                               .speed = limits->speed,
                               .pause_after_s = limits->pause_after_s,
                               .settle_still_s = limits->settle_still_s};
}

/* The granules that there is room for, and time. */
static double granules_most(struct call *call, const struct asked *asked, enum granular_scale scale,
                            const struct sand_engine_config *config)
{
    const struct patch_load load = load_of(call, asked, 0);
    struct sand_rate rate;

    if (!isfinite(asked->deadline_s) || !find_rate(call, scale, &rate))
        return config->granules_max;
    return fmin(config->granules_max,
                patch_granules_within(&rate, &config->params, &load, asked->deadline_s));
}

static enum err_code check_deadline(struct call *call, const struct asked *asked,
                                    const struct patch_start *start,
                                    const struct sand_engine_config *config, struct err *err)
{
    const double count = convert_granules(&start->place, &config->params, start->fill);
    const struct patch_load load = load_of(call, asked, count);
    struct sand_rate rate;
    double ms;

    if (count <= granules_most(call, asked, start->scale, config) ||
        !find_rate(call, start->scale, &rate))
        return ERR_OK;
    sand_measure_again(call->api->sand, start->scale);
    ms = 1e3 * patch_estimate_of(&rate, &config->params, &load).resting_s;
    return err_limit_at(err, ERR_TOO_LARGE, "/deadline_ms", 1e3 * asked->deadline_s, ms,
                        "%.0f %s granules are at rest after %.0f ms here, the deadline is %.0f ms",
                        count, scale_name(start->scale), ms, 1e3 * asked->deadline_s);
}

/* Could the place be granules of this scale? *is_amount: no, they would be too many. */
static enum err_code try_scale(struct call *call, const struct asked *asked,
                               enum granular_scale scale, struct patch_start *start,
                               struct sand_engine_config *config, bool *is_amount, struct err *err)
{
    double diameter_m;

    *is_amount = false;
    err->code = ERR_OK;
    if (sand_engine_config(call->api->sand, scale, config, err))
        return err->code;
    diameter_m = config->params.diameter_m;
    if (convert_place_find(start->field, asked->center, asked->size_m, asked->depth_m, diameter_m,
                           call_limits(call)->world.edit_samples_max, &start->place, err) ||
        convert_grid_make(&start->place, diameter_m, config->depth_max, &start->grid, err))
        return err->code;
    start->scale = scale;
    *is_amount = convert_check(&start->place, &config->params, start->fill, config->granules_max,
                               err) == ERR_TOO_LARGE ||
                 check_deadline(call, asked, start, config, err) == ERR_TOO_LARGE;
    return err->code;
}

/* The greatest depth that would do for this place and scale, in whole centimetres; 0: none. */
static double depth_that_fits(const struct convert_place *place,
                              const struct sand_engine_config *config, enum convert_fill fill,
                              double granules_most)
{
    const double count = convert_granules(place, &config->params, fill);
    struct convert_place thin = *place;

    thin.depth_m = floor(100 * place->depth_m * granules_most / count) / 100;
    if (convert_granules(&thin, &config->params, fill) > granules_most)
        thin.depth_m = floor(100 * (thin.depth_m - (double)config->params.diameter_m)) / 100;
    return thin.depth_m >= 2 * (double)config->params.diameter_m ? thin.depth_m : 0;
}

/* The finest of the coarser scales that would do; SCALE_COUNT: none. */
static int coarser_that_fits(struct call *call, const struct asked *asked,
                             const struct patch_start *start)
{
    for (int scale = (int)start->scale + 1; scale < SCALE_COUNT; scale++) {
        struct patch_start other = {.field = start->field, .fill = start->fill};
        struct sand_engine_config config;
        struct err ignored;
        bool is_amount;

        if (try_scale(call, asked, (enum granular_scale)scale, &other, &config, &is_amount,
                      &ignored) == ERR_OK)
            return scale;
    }
    return SCALE_COUNT;
}

/* For too many granules: an error with a size that fits. */
static enum err_code too_many_granules(struct call *call, const struct asked *asked,
                                       const struct patch_start *start,
                                       const struct sand_engine_config *config, struct err *err)
{
    const double depth_m = depth_that_fits(&start->place, config, start->fill,
                                           granules_most(call, asked, start->scale, config));
    const int coarser = coarser_that_fits(call, asked, start);
    const bool has_scale = coarser != SCALE_COUNT;
    const bool has_depth = depth_m > 0;
    char scale_text[32] = "", depth_text[48] = "";
    double counts[SCALE_COUNT];

    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        struct granular_params params;

        granular_params_make(call_limits(call)->sand.device.material,
                             scale_radius_m((enum granular_scale)scale), &params);
        counts[scale] = fmin(convert_granules(&start->place, &params, start->fill), 1e15);
    }
    if (has_scale)
        snprintf(scale_text, sizeof scale_text, "scale %s",
                 scale_name((enum granular_scale)coarser));
    if (has_depth)
        snprintf(depth_text, sizeof depth_text, "%sdepth %g m", has_scale ? " or " : "", depth_m);
    if (counts[start->scale] <= config->granules_max) {
        snprintf(err->msg + strlen(err->msg), sizeof err->msg - strlen(err->msg), "; %s%s would do",
                 scale_text, has_scale || has_depth ? depth_text : "nothing but a later deadline");
        return err->code;
    }
    return err_limit_at(
        err, ERR_TOO_LARGE, "/size", config->granules_max, counts[start->scale],
        "the patch takes %.0f %s granules, there is room for %u (it takes %.0f fine, %.0f "
        "medium, %.0f coarse); %s%s would do",
        counts[start->scale], scale_name(start->scale), config->granules_max, counts[SCALE_FINE],
        counts[SCALE_MEDIUM], counts[SCALE_COARSE], scale_text,
        has_scale || has_depth ? depth_text : "only a smaller size");
}

/*
 * The scale of the request; for auto the finest that fits, and none finer than suits the observer.
 */
static enum err_code choose_scale(struct call *call, const struct asked *asked,
                                  struct patch_start *start, struct sand_engine_config *config,
                                  struct err *err)
{
    enum granular_scale from = (enum granular_scale)(asked->scale - 1);
    int to = (int)from;
    struct err why = {.code = ERR_OK}; /* of too many granules the coarsest, else the first */

    if (asked->scale == 0) {
        to = SCALE_COUNT - 1;
        if (auto_scale(call, asked, start->field, &from, err))
            return err->code;
    }
    for (int scale = (int)from; scale <= to; scale++) {
        bool is_amount;

        if (try_scale(call, asked, (enum granular_scale)scale, start, config, &is_amount, err) ==
            ERR_OK)
            return ERR_OK;
        if (is_amount) {
            why = *err;
            too_many_granules(call, asked, start, config, &why);
        }
        if (!is_amount && (why.code == ERR_OK || why.code == ERR_NO_DEVICE))
            why = *err;
    }
    *err = why;
    return err->code;
}

static void drop_bodies(struct patch_start *start)
{
    for (uint32_t i = 0; i < start->body_count; i++)
        patch_body_free(&start->bodies[i]);
    free(start->bodies);
    start->bodies = NULL;
    start->body_count = 0;
}

/* All checks of a patch that need no device. */
static enum err_code decode_place(struct call *call, struct asked *asked, struct patch_start *start,
                                  struct sand_engine_config *config, struct err *err)
{
    if (find_ground(call, asked, start, err))
        return err->code;
    look_at_bodies(call, start->field, asked);
    if (choose_scale(call, asked, start, config, err) ||
        decode_gravity(call, start->ground.begin.gravity, err))
        return err->code;
    return decode_bodies(call, start, config, err);
}

/*
 * Leases the place, and reads the ground again: changes may have come before the lease. The locale
 * goes with the lease.
 */
static enum err_code lease_ground(struct call *call, struct asked *asked, struct patch_start *start,
                                  struct sand_engine_config *config, struct locale **leased,
                                  struct err *err)
{
    const struct convert_place place = start->place;
    struct vec2 high = {place.low.x + place.size_m[0], place.low.y + place.size_m[1]};
    struct world_lease lease;
    bool is_own;

    if (world_lease(call->api->world, start->locale, place.low, high, &lease, &is_own, err)) {
        if (!is_own)
            return err->code;
        snprintf(start->refusal, sizeof start->refusal, "%s", err->msg);
        return err->code = ERR_OK; /* it may be a repeat */
    }
    if (!lease.locale)
        return ERR_OK;
    call->locale = *leased = lease.locale;
    start->fence = lease.fence;
    heightfield_unref(start->field);
    start->field = NULL;
    drop_bodies(start);
    if (decode_place(call, asked, start, config, err))
        return err->code;
    if (memcmp(&place.low, &start->place.low, sizeof place.low) != 0 ||
        memcmp(place.size_m, start->place.size_m, sizeof place.size_m) != 0)
        return err_set(err, ERR_BUSY, "layer %s has just been replaced; try again", start->layer);
    return ERR_OK;
}

/* The pool for it. *awaited: the request waits until that scale has one. */
static enum err_code check_device(struct call *call, bool is_held, const struct patch_start *start,
                                  int *awaited, struct err *err)
{
    struct sand *sand = call->api->sand;

    if (sand_ready(sand, start->scale, err) == ERR_OK && !is_held &&
        patch_wait_queue_is_busy(call->api->patch_queue))
        err_set(err, ERR_BUSY, "others wait for the device of the patches");
    if (err->code == ERR_BUSY && is_held) /* it has waited for another scale */
        sand_wait(sand, start->scale, PATCH_WAIT_MS_MAX * 1e-3, err);
    else if (err->code == ERR_BUSY)
        *awaited = (int)start->scale;
    return err->code == ERR_OK ? sand_is_free(sand, start->scale, err) : err->code;
}

/*
 * The pool for it; where that is full, and the request says so, that of the finest of the coarser
 * scales that would do and has room. Full everywhere: the error of the first.
 */
static enum err_code find_room(struct call *call, bool is_held, struct asked *asked,
                               struct patch_start *start, struct sand_engine_config *config,
                               int *awaited, struct err *err)
{
    struct err full;
    bool is_amount;

    if (check_device(call, is_held, start, awaited, err) == ERR_OK || !start->overflows ||
        err->code != ERR_BUSY || !err->has_limit)
        return err->code;
    full = *err;
    for (int scale = (int)start->scale + 1; scale < SCALE_COUNT; scale++) {
        *err = (struct err){.code = ERR_OK};
        if (try_scale(call, asked, (enum granular_scale)scale, start, config, &is_amount, err))
            continue;
        drop_bodies(start);
        if (decode_bodies(call, start, config, err))
            continue; /* such granules are too large for a body */
        check_device(call, is_held, start, awaited, err);
        asked->scale = scale + 1;
        if (err->code == ERR_OK || *awaited != SCALE_COUNT)
            return err->code;
    }
    *err = full;
    return err->code;
}

static void estimate(struct call *call, const struct asked *asked, struct patch_start *start,
                     const struct granular_params *params)
{
    const struct patch_load load =
        load_of(call, asked, convert_granules(&start->place, params, start->fill));
    struct sand_rate rate;

    start->has_estimate = find_rate(call, start->scale, &rate);
    if (start->has_estimate)
        start->estimate = patch_estimate_of(&rate, params, &load);
}

static enum err_code make_start(struct call *call, struct asked *asked, bool is_held,
                                struct patch_start *start, struct locale **leased, int *awaited,
                                struct err *err)
{
    struct sand_engine_config config;
    float gravity[3];

    if (decode_place(call, asked, start, &config, err) ||
        find_room(call, is_held, asked, start, &config, awaited, err) ||
        lease_ground(call, asked, start, &config, leased, err))
        return err->code;
    estimate(call, asked, start, &config.params);
    memcpy(gravity, start->ground.begin.gravity, sizeof gravity);
    if (convert_down(start->field, &start->place, &config.params, start->fill, start->seed,
                     config.granules_max, config.bed_max, &start->ground, err))
        return err->code;
    memcpy(start->ground.begin.gravity, gravity, sizeof gravity);
    if (start->ground.count == 0)
        return err_set(err, ERR_UNPROCESSABLE, "no granule fits between the ground and the bed");
    return ERR_OK;
}

/* Takes start. */
static enum err_code give_start(struct call *call, struct asked *asked, bool is_held,
                                struct patch_start *start, struct patch_start *out, int *awaited,
                                struct err *err)
{
    const struct locale *pinned = call->locale;
    struct locale *leased = NULL;

    *awaited = SCALE_COUNT;
    make_start(call, asked, is_held, start, &leased, awaited, err);
    call->locale = pinned;
    locale_unref(leased);
    if (err->code == ERR_OK) {
        *out = *start;
        return ERR_OK;
    }
    world_unlease(call->api->world, start->fence);
    patch_start_free(start);
    return err->code;
}

enum err_code patch_decode(struct call *call, bool is_held, struct patch_start *out, int *awaited,
                           struct err *err)
{
    static const char *const items[] = {"center",      "size",  "scale",    "observer", "depth",
                                        "bodies",      "seed",  "fill",     "mode",     "material",
                                        "deadline_ms", "leave", "overflow", NULL};
    static const char *const options[] = {"layer", NODE_PLACED, NULL};
    struct asked asked = {.scale = 0};
    struct patch_start start = {.field = NULL};

    *awaited = SCALE_COUNT;
    if (options_open_json(call, items, options, err) || decode_numbers(call, &asked, &start, err))
        return err->code;
    return give_start(call, &asked, is_held, &start, out, awaited, err);
}

enum err_code patch_impact_start(struct call *call, const struct patch_impact *impact,
                                 struct patch_start *out, struct err *err)
{
    struct asked asked = {.center = impact->point,
                          .size_m = {impact->size_m, impact->size_m},
                          .depth_m = impact->depth_m,
                          .scale = (int)impact->scale + 1,
                          .deadline_s = impact->deadline_s,
                          .impact = impact};
    struct patch_start start = {.field = NULL};
    int awaited;

    decode_material(call, &start, err); /* of this daemon: an impact names none */
    return give_start(call, &asked, false, &start, out, &awaited, err);
}

enum err_code patch_body_decode(struct call *call, const struct patch_report *report,
                                struct patch_body *out, struct err *err)
{
    const struct layer *layer = call->locale ? locale_layer(call->locale, report->layer) : NULL;
    struct patch_start start = {.place = report->place};
    struct sand_engine_config config;

    if (options_open_json(call, body_members, NULL, err))
        return err->code;
    if (!layer || !layer->field)
        return err_set(err, ERR_CONFLICT, "the layer %s of the patch is gone", report->layer);
    if (sand_engine_config(call->api->sand, report->scale, &config, err))
        return err->code;
    start.field = layer->field; /* borrowed */
    if (decode_body(call, call->json, "", &start, &config.params, out, err))
        return err->code;
    if (sand_ready(call->api->sand, report->scale, err))
        patch_body_free(out);
    return err->code;
}

enum err_code patch_push_decode(struct call *call, struct patch_push *out, struct err *err)
{
    static const char *const items[] = {"velocity", "angular_velocity", "impulse", NULL};
    struct patch_push push = {.has_velocity = false};

    if (options_open_json(call, items, NULL, err) ||
        option_numbers(call, "velocity", 3, push.velocity, &push.has_velocity, err) ||
        option_numbers(call, "angular_velocity", 3, push.angular_velocity,
                       &push.has_angular_velocity, err) ||
        option_numbers(call, "impulse", 3, push.impulse, &push.has_impulse, err))
        return err->code;
    if (!push.has_velocity && !push.has_angular_velocity && !push.has_impulse)
        return err_set(err, ERR_BAD_INPUT,
                       "a push has velocity, angular_velocity or impulse; this one has none");
    *out = push;
    return ERR_OK;
}
