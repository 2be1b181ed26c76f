/*
 * Sweeps over layers: each is asked for what is better than the best of those before. Unlike a
 * ray's t, a fraction does not depend on where the search ends (terrain/sweep/triangle.c), so the
 * result has the bits of the layer's own answer.
 */
#include "world/ask/sweep.h"

#include "world/ask/layer_ask.h"

struct vec3 locale_up(const struct locale *locale, struct vec3 point)
{
    struct vec3 gravity = locale_gravity(locale, point);
    bool is_none = gravity.x == 0 && gravity.y == 0 && gravity.z == 0;

    return is_none ? (struct vec3){0, 0, 1} : vec3_opposite(gravity);
}

static bool layer_sweep(const struct layer *layer, struct sweep *s)
{
    if (layer->kind == LAYER_HEIGHTFIELD)
        return heightfield_sweep(layer->field, s);
    return layer->is_moved ? moved_mesh_sweep(layer->mesh, &layer->motion, s)
                           : mesh_sweep(layer->mesh, s);
}

void locale_sweep(const struct layer_choice *choice, struct sweep *s)
{
    for (size_t i = 0; i < choice->count; i++) {
        const struct layer *layer = choice->layers[i];

        if ((s->floor_cosine > 0 && layer->role != LAYER_GROUND) || !layer_sweep(layer, s))
            continue;
        s->best.surface = layer;
        s->best.is_ceiling = layer->role != LAYER_GROUND;
    }
}

static void ground_sweep(const void *ground, struct sweep *s)
{
    locale_sweep(ground, s);
}

struct move_ground locale_move_ground(const struct layer_choice *choice)
{
    return (struct move_ground){ground_sweep, choice};
}

struct locale_hit locale_hit_of_touch(const struct sweep_touch *touch)
{
    const struct layer *layer = touch->surface;

    return (struct locale_hit){
        .at = {.t = touch->fraction,
               .point = touch->point,
               .normal = touch->normal,
               .cell = {touch->cell[0], touch->cell[1]},
               .triangle = touch->triangle},
        .polygon = touch->polygon,
        .layer = layer,
        .velocity = layer_velocity(layer, touch->point),
    };
}

double locale_sweep_cost(const struct layer_choice *choice, double reach_m, double length_m)
{
    double cost = 0;

    for (size_t i = 0; i < choice->count; i++) {
        const struct layer *layer = choice->layers[i];
        double most, spacing;
        struct box3 box;

        if (layer->kind == LAYER_HEIGHTFIELD) {
            const struct heightfield_spec *spec = heightfield_spec(layer->field);

            most = 2.0 * spec->cols * spec->rows;
            spacing = sqrt(spec->spacing_x_m * spec->spacing_y_m / 2);
        } else {
            most = (double)layer->mesh_stats.polygons;
            layer_bounds(layer, &box);
            spacing = sqrt((box.max.x - box.min.x + box.max.z - box.min.z) *
                           (box.max.y - box.min.y + box.max.z - box.min.z) / (most + 1));
        }
        cost += fmin((2 * reach_m / spacing + 1) * ((2 * reach_m + length_m) / spacing + 1), most);
    }
    return cost;
}

/* ---- what may be asked ----------------------------------------------------------------------- */

/* ERR_BAD_INPUT: a size is not in least..SWEEP_SIZE_MAX_M. */
static enum err_code check_size(const char *what, double size, double least, struct err *err)
{
    double limit = size < least ? least : SWEEP_SIZE_MAX_M;

    if (size >= least && size <= SWEEP_SIZE_MAX_M)
        return ERR_OK;
    return err_limit(err, ERR_BAD_INPUT, limit, size, "%s is %g m, must be %g to %g m", what, size,
                     least, SWEEP_SIZE_MAX_M);
}

enum err_code shape_set(enum shape_kind kind, const double n[4], struct shape *out, struct err *err)
{
    static const char *const halves[] = {"the half extent hx", "the half extent hy",
                                         "the half extent hz"};

    *out = (struct shape){.kind = kind};
    if (kind != SHAPE_BOX) {
        out->radius_m = n[0];
        out->height_m = kind == SHAPE_CAPSULE ? n[1] : 2 * n[0];
        if (check_size("the radius", n[0], 0, err))
            return err->code;
        return kind == SHAPE_CAPSULE ? check_size("the height, ends included,", n[1], 2 * n[0], err)
                                     : ERR_OK;
    }
    for (int i = 0; i < 3; i++) {
        out->half_m[i] = n[i];
        if (check_size(halves[i], n[i], 0, err))
            return err->code;
    }
    out->yaw_deg = n[3];
    if (!(fabs(n[3]) <= POSE_YAW_MAX_DEG))
        return err_limit(err, ERR_BAD_INPUT, POSE_YAW_MAX_DEG, n[3],
                         "the yaw is %g degrees, must be within %g", n[3], POSE_YAW_MAX_DEG);
    return ERR_OK;
}

double shape_reach_m(const struct shape *shape)
{
    if (shape->kind == SHAPE_BOX)
        return vec3_length((struct vec3){shape->half_m[0], shape->half_m[1], shape->half_m[2]});
    return fmax(shape->radius_m, shape->height_m / 2);
}

enum err_code sweep_check_place(struct vec3 place, struct err *err)
{
    double most = fmax(fabs(place.x), fmax(fabs(place.y), fabs(place.z)));

    if (most <= SWEEP_COORDINATE_MAX_M)
        return ERR_OK;
    return err_limit(err, ERR_BAD_INPUT, SWEEP_COORDINATE_MAX_M, most,
                     "a coordinate is %g m, must be at most %g m", most, SWEEP_COORDINATE_MAX_M);
}

const struct move_number_limits move_numbers[MOVE_NUMBERS] = {
    {"dt", "s", MOVE_DT_MAX_S, NAN},
    {"slope_max_deg", "degrees", 90, MOVE_SLOPE_DEG},
    {"step_up", "m", MOVE_STEP_MAX_M, MOVE_STEP_UP_M},
    {"snap_down", "m", MOVE_STEP_MAX_M, MOVE_SNAP_DOWN_M},
};

enum err_code move_check_number(enum move_number i, double value, struct err *err)
{
    const struct move_number_limits *limits = &move_numbers[i];

    if (value >= 0 && value <= limits->most)
        return ERR_OK;
    return err_limit(err, ERR_BAD_INPUT, value < 0 ? 0 : limits->most, value,
                     "%s is %g %s, must be 0 to %g", limits->name, value, limits->unit,
                     limits->most);
}

enum err_code move_check_velocity(struct vec3 velocity, struct err *err)
{
    double most = fmax(fabs(velocity.x), fmax(fabs(velocity.y), fabs(velocity.z)));

    if (most <= MOVE_VELOCITY_MAX)
        return ERR_OK;
    return err_limit(err, ERR_BAD_INPUT, MOVE_VELOCITY_MAX, most,
                     "a component of the velocity is %g m/s, must be at most %g m/s", most,
                     MOVE_VELOCITY_MAX);
}
