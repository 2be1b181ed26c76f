/*
 * The parts of a patch, and the checks of its bodies.
 *
 * Problem: a body that starts in the ground, in a wall or at 1,000 m/s makes the solver throw
 * granules about; a clear refusal is better than a bounded explosion. Approach: every centre of the
 * shell is transformed to its starting place and tested against walls and ground; speeds are
 * bounded by the step of the scale (half a radius a substep). The frame of a model is not that of
 * its body: the body's origin is the centre of mass. So poses are translated on the way in and out.
 */
#include "sand/patch/patch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[PATCH_STATES] = {"filling", "settling",  "active", "resting",
                                                      "written", "discarded", "failed"};

const char *patch_state_name(enum patch_state state)
{
    return state_names[state];
}

bool patch_state_is_end(enum patch_state state)
{
    return state >= PATCH_WRITTEN;
}

void patch_body_free(struct patch_body *body)
{
    if (body->shape.release)
        body->shape.release(body->shape.owner);
    free(body->path);
    patch_dents_end(body->dent, 0, 0, "its body was not taken, or removed before it came in");
    *body = (struct patch_body){.shape = {.release = NULL}};
}

void patch_start_free(struct patch_start *start)
{
    for (uint32_t i = 0; i < start->body_count; i++)
        patch_body_free(&start->bodies[i]);
    free(start->bodies);
    start->bodies = NULL;
    start->body_count = 0;
    heightfield_unref(start->field);
    start->field = NULL;
    convert_ground_free(&start->ground);
}

struct box3 patch_report_bounds(const struct patch_report *report)
{
    const struct convert_place *place = &report->place;

    return (struct box3){
        {place->low.x, place->low.y, place->z_m},
        {place->low.x + place->size_m[0], place->low.y + place->size_m[1], place->peak_m}};
}

struct patch_report *patch_report_ref(struct patch_report *report)
{
    __atomic_add_fetch(&report->refs, 1, __ATOMIC_RELAXED);
    return report;
}

void patch_report_unref(struct patch_report *report)
{
    if (!report || __atomic_sub_fetch(&report->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (uint32_t i = 0; i < report->body_count; i++)
        layer_unref(report->bodies[i].surface);
    free(report);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* v turned by the unit quaternion q. */
static void turn(const double q[4], const double v[3], double out[3])
{
    const double t[3] = {2 * (q[1] * v[2] - q[2] * v[1]), 2 * (q[2] * v[0] - q[0] * v[2]),
                         2 * (q[0] * v[1] - q[1] * v[0])};

    out[0] = v[0] + q[3] * t[0] + q[1] * t[2] - q[2] * t[1];
    out[1] = v[1] + q[3] * t[1] + q[2] * t[0] - q[0] * t[2];
    out[2] = v[2] + q[3] * t[2] + q[0] * t[1] - q[1] * t[0];
}

static void turned_center(const struct scaled_model *shape, const double q[4], double out[3])
{
    const double center[3] = {shape->center_m[0], shape->center_m[1], shape->center_m[2]};

    turn(q, center, out);
}

void patch_pose_in(const struct patch_body *body, const struct convert_place *place,
                   struct sand_pose *out)
{
    const double corner[3] = {place->low.x, place->low.y, place->z_m};
    double center[3];

    turned_center(&body->shape, body->orientation, center);
    for (int i = 0; i < 3; i++) {
        out->x[i] = (float)(body->position[i] + center[i] - corner[i]);
        out->v[i] = (float)body->velocity[i];
        out->w[i] = (float)body->angular_velocity[i];
    }
    for (int i = 0; i < 4; i++)
        out->q[i] = (float)body->orientation[i];
}

void patch_pose_out(const struct scaled_model *shape, const struct convert_place *place,
                    const struct sand_pose *pose, double position[3], double orientation[4])
{
    const double corner[3] = {place->low.x, place->low.y, place->z_m};
    const double *q = orientation;
    double center[3], length;

    for (int i = 0; i < 4; i++)
        orientation[i] = pose->q[i];
    /* the engine's is a unit to float32: what others turn by it would be as much too large */
    length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++)
        orientation[i] /= length;
    turned_center(shape, orientation, center);
    for (int i = 0; i < 3; i++)
        position[i] = pose->x[i] + corner[i] - center[i];
}

double patch_body_clearance_m(const struct scaled_model *shape, const struct convert_place *place,
                              const struct sand_pose *pose, const struct heightfield *field)
{
    const double q[4] = {pose->q[0], pose->q[1], pose->q[2], pose->q[3]};
    double least_m = INFINITY;

    for (uint32_t i = 0; i < shape->skin_count; i++) {
        const float *point = shape->skin_m[i];
        const double own[3] = {point[0], point[1], point[2]};
        struct ground_height ground;
        double at[3];

        turn(q, own, at);
        ground = heightfield_interpolate(
            field,
            (struct vec2){place->low.x + pose->x[0] + at[0], place->low.y + pose->x[1] + at[1]},
            INTERPOLATION_TRIANGLE);
        if (ground.status == GROUND_OK)
            least_m = fmin(least_m, place->z_m + pose->x[2] + at[2] - ground.height_m);
    }
    return least_m;
}

/* ---- what may be asked ----------------------------------------------------------------------- */

static double length3(const double v[3])
{
    return hypot(hypot(v[0], v[1]), v[2]);
}

static enum err_code too_fast(const char *what, const char *unit, double got, double most,
                              struct err *err)
{
    err_limit(err, ERR_UNPROCESSABLE, most, got,
              "%s is %g %s, the most that granules of this scale can follow is %.4g %s", what, got,
              unit, most, unit);
    return err_at(err, "/%s", what);
}

/* How far the shell's far side is from the centre. */
static double reach_m(const struct scaled_model *shape, double radius_m)
{
    double most = 0;

    for (uint32_t i = 0; i < shape->shape.particles; i++) {
        const float *at = shape->shape.offsets_m[i];
        const double d = (double)at[0] * at[0] + (double)at[1] * at[1] + (double)at[2] * at[2];

        most = fmax(most, d);
    }
    return sqrt(most) + radius_m;
}

static enum err_code check_speeds(const struct patch_body *body,
                                  const struct granular_params *params, struct err *err)
{
    const double speed = length3(body->velocity), spin = length3(body->angular_velocity);
    const double spin_max = params->speed_max / reach_m(&body->shape, params->radius_m);

    if (!(speed <= params->speed_max))
        return too_fast("velocity", "m/s", speed, params->speed_max, err);
    if (!(spin <= spin_max))
        return too_fast("angular_velocity", "rad/s", spin, spin_max, err);
    return ERR_OK;
}

static enum err_code outside(const struct convert_place *place, double x, double y, struct err *err)
{
    err_set(err, ERR_UNPROCESSABLE,
            "the body is outside the patch: it reaches to (%.4g, %.4g), the patch lies between "
            "(%.4g, %.4g) and (%.4g, %.4g)",
            place->low.x + x, place->low.y + y, place->low.x, place->low.y,
            place->low.x + place->size_m[0], place->low.y + place->size_m[1]);
    return err_at(err, "/position");
}

/* Is this a place for the body, at most so deep in the ground? */
static enum err_code check_place(const struct scaled_model *shape, const double position[3],
                                 const double orientation[4], double deep_m,
                                 const struct heightfield *field, const struct convert_place *place,
                                 const struct granular_params *params, struct err *err)
{
    const double r = params->radius_m;
    double lowest_m = INFINITY;
    double center[3];

    turned_center(shape, orientation, center);
    for (int i = 0; i < 3; i++)
        center[i] += position[i];
    for (uint32_t i = 0; i < shape->shape.particles; i++) {
        const float *offset = shape->shape.offsets_m[i];
        const double own[3] = {offset[0], offset[1], offset[2]};
        struct ground_point ground;
        double at[3], x, y;

        turn(orientation, own, at);
        x = center[0] + at[0] - place->low.x;
        y = center[1] + at[1] - place->low.y;
        if (!(x >= r && y >= r && x <= place->size_m[0] - r && y <= place->size_m[1] - r))
            return outside(place, x, y, err);
        heightfield_height(field, (struct vec2){x + place->low.x, y + place->low.y},
                           INTERPOLATION_TRIANGLE, &ground);
        if (ground.status == GROUND_OK)
            lowest_m = fmin(lowest_m, center[2] + at[2] - r - ground.height_m);
    }
    if (!(lowest_m >= -deep_m)) {
        err_limit(err, ERR_UNPROCESSABLE, -deep_m, lowest_m,
                  "the body is %.4g m in the ground, the most is %.4g m", -lowest_m, deep_m);
        return err_at(err, "/position");
    }
    if (lowest_m > PATCH_BODY_ABOVE_M) {
        err_limit(err, ERR_UNPROCESSABLE, PATCH_BODY_ABOVE_M, lowest_m,
                  "the body is %.4g m above the ground, the most is %g m", lowest_m,
                  PATCH_BODY_ABOVE_M);
        return err_at(err, "/position");
    }
    return ERR_OK;
}

/* The velocities between pose i - 1 and pose i. */
static enum err_code check_way(const struct patch_body *body, uint32_t i,
                               const struct granular_params *params, struct err *err)
{
    const struct sand_path_pose *a = &body->path->poses[i - 1], *b = &body->path->poses[i];
    const double dt_s = b->t_s - a->t_s;
    const double way[3] = {b->position[0] - a->position[0], b->position[1] - a->position[1],
                           b->position[2] - a->position[2]};
    const double speed = length3(way) / dt_s;
    const double spin = sand_path_angle(a->orientation, b->orientation) / dt_s;
    const double spin_max = params->speed_max / reach_m(&body->shape, params->radius_m);

    if (!(speed <= params->speed_max)) {
        too_fast("velocity", "m/s", speed, params->speed_max, err);
        return err_at(err, "/path/%u/position", i);
    }
    if (!(spin <= spin_max)) {
        too_fast("angular_velocity", "rad/s", spin, spin_max, err);
        return err_at(err, "/path/%u/orientation", i);
    }
    return ERR_OK;
}

static enum err_code check_path(const struct patch_body *body, const struct heightfield *field,
                                const struct convert_place *place,
                                const struct granular_params *params, struct err *err)
{
    for (uint32_t i = 0; i < body->path->count; i++) {
        const struct sand_path_pose *pose = &body->path->poses[i];
        const double deep_m = i > 0 ? place->depth_m : 2 * (double)params->radius_m;

        if (i > 0 && check_way(body, i, params, err))
            return err->code;
        if (check_place(&body->shape, pose->position, pose->orientation, deep_m, field, place,
                        params, err))
            return err_at(err, "/path/%u/position", i);
    }
    return ERR_OK;
}

enum err_code patch_body_check(const struct patch_body *body, const struct heightfield *field,
                               const struct convert_place *place,
                               const struct granular_params *params, struct err *err)
{
    if (body->path)
        return check_path(body, field, place, params, err);
    if (check_speeds(body, params, err))
        return err->code;
    return check_place(&body->shape, body->position, body->orientation,
                       2 * (double)params->radius_m, field, place, params, err);
}

enum err_code patch_push_check(const struct patch_push *push, double mass_kg,
                               const struct granular_params *params, struct err *err)
{
    const double most = params->speed_max;

    if (push->has_velocity && !(length3(push->velocity) <= most))
        return too_fast("velocity", "m/s", length3(push->velocity), most, err);
    if (push->has_angular_velocity && !(length3(push->angular_velocity) <= params->spin_max))
        return too_fast("angular_velocity", "rad/s", length3(push->angular_velocity),
                        params->spin_max, err);
    if (push->has_impulse && !(length3(push->impulse) <= most * mass_kg))
        return too_fast("impulse", "N s", length3(push->impulse), most * mass_kg, err);
    return ERR_OK;
}
