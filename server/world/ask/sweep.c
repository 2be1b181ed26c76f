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
        double most = (double)layer->mesh_stats.polygons, spacing;
        struct box3 box;

        if (layer->kind == LAYER_HEIGHTFIELD) {
            const struct heightfield_spec *spec = heightfield_spec(layer->field);

            most = 2.0 * spec->cols * spec->rows;
            spacing = sqrt(spec->spacing_x_m * spec->spacing_y_m / 2);
        } else {
            layer_bounds(layer, &box);
            spacing = sqrt((box.max.x - box.min.x + box.max.z - box.min.z) *
                           (box.max.y - box.min.y + box.max.z - box.min.z) / (most + 1));
        }
        cost += fmin((2 * reach_m / spacing + 1) * ((2 * reach_m + length_m) / spacing + 1), most);
    }
    return cost;
}
