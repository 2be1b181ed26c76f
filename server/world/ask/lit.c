/*
 * Shadows over the layers of a locale.
 *
 * Where a ray begins: a point on the ground has an error, and its own surface must not shadow it.
 * So the ray begins LIT_NEAR_RELATIVE of the coordinates towards the light. It is moved along
 * itself and not along a normal, so that the answer is exactly that of a ray. The cost: surfaces
 * within that distance are ignored, and under a light so flat that the error of the point exceeds
 * the start's height over the surface, the surface may shadow itself. A ray to a point light ends
 * as far before the light: a lamp on a ceiling, or at a vertex, is not shadowed by its mount.
 *
 * Layers are tested one after another; the nearest hit counts, the first among equals, as in
 * locale_rays. A heightfield is tested by its own batches of rays, a mesh by the light's tree or by
 * rays. Both give the same bits.
 */
#include "world/ask/lit.h"

#include <float.h>

bool light_from_direction(struct vec3 direction, struct light *out)
{
    *out = (struct light){.toward = vec3_unit(vec3_opposite(direction))};
    return vec3_length(out->toward) > 0;
}

struct light light_at_place(struct vec3 place)
{
    return (struct light){.is_place = true, .place = place};
}

/* The largest coordinate, 1 at least. */
static inline double largest_m(struct vec3 p)
{
    double x = fabs(p.x), y = fabs(p.y), z = fabs(p.z), most = x > y ? x : y;

    most = most > z ? most : z;
    return most > 1 ? most : 1;
}

static double near_m(struct vec3 p)
{
    return LIT_NEAR_RELATIVE * largest_m(p);
}

bool light_ray(const struct light *light, struct vec3 point, struct ray *out, double *start_m)
{
    *start_m = near_m(point);
    *out = (struct ray){.direction = light->toward, .t_max = INFINITY};
    if (light->is_place) {
        struct vec3 way = vec3_sub(light->place, point);

        out->direction = vec3_unit(way);
        out->t_max = vec3_length(way) - *start_m - near_m(light->place);
    }
    out->origin = vec3_add(point, vec3_scale(out->direction, *start_m));
    return ray_is_valid(out); /* false also for a number that is too large: there are no surfaces */
}

/* ---- getting ready --------------------------------------------------------------------------- */

bool lighting_open(struct lighting *lighting, const struct layer_choice *choice,
                   const struct light *light, size_t points, struct light_cache *cache,
                   bool may_build)
{
    *lighting = (struct lighting){.choice = choice, .light = *light};
    if (!cache || light->is_place)
        return true;
    for (size_t i = 0; i < choice->count; i++) {
        const struct mesh *mesh = choice->layers[i]->mesh;
        const struct mesh_stats *size = &choice->layers[i]->mesh_stats;
        struct shadow_index **tree = &lighting->trees[i];

        /* no gravity like that of a globe's; and to a layer that was moved the light comes from
           elsewhere with each turn: rays */
        if (!mesh || choice->layers[i]->space.frame != MESH_CARTESIAN ||
            choice->layers[i]->is_moved || shadow_index_is_vertical(mesh, light->toward) ||
            light_cache_ask(cache, mesh, size, light, points, tree) != LIGHT_BUILD)
            continue;
        if (!may_build) {
            lighting_close(lighting);
            return false;
        }
        light_cache_build(cache, mesh, light);
        (void)light_cache_ask(cache, mesh, size, light, points, tree);
    }
    return true;
}

void lighting_close(struct lighting *lighting)
{
    for (size_t i = 0; i < lighting->choice->count; i++) {
        shadow_index_unref(lighting->trees[i]);
        lighting->trees[i] = NULL;
    }
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The rays of some points that are not at the light. */
struct beams {
    struct ray rays[LIT_TOGETHER_MAX];
    double start_m[LIT_TOGETHER_MAX];
    size_t point[LIT_TOGETHER_MAX];
    size_t count;
};

static void beams_make(const struct light *light, const struct vec3 *points, size_t count,
                       struct beams *out)
{
    out->count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = out->count;

        out->point[k] = i;
        out->count += light_ray(light, points[i], &out->rays[k], &out->start_m[k]);
    }
}

static void origins_of(const struct beams *beams, struct vec3 *out)
{
    for (size_t i = 0; i < beams->count; i++)
        out[i] = beams->rays[i].origin;
}

static struct layer_choice only(const struct layer_choice *choice, size_t layer)
{
    return (struct layer_choice){choice->locale, choice->layers + layer, 1};
}

static void layer_hits(const struct lighting *lighting, size_t layer, const struct beams *beams,
                       struct locale_hit *out)
{
    const struct layer_choice choice = only(lighting->choice, layer);
    const struct layer *asked = choice.layers[0];
    struct vec3 origins[LIT_TOGETHER_MAX];
    struct mesh_hit hits[LIT_TOGETHER_MAX];

    if (!lighting->trees[layer]) {
        locale_rays(&choice, beams->rays, beams->count, RAY_LIGHT, out);
        return;
    }
    origins_of(beams, origins);
    shadow_index_hits(lighting->trees[layer], asked->mesh, origins, beams->count, hits);
    for (size_t i = 0; i < beams->count; i++)
        if (hits[i].t < INFINITY)
            out[i] = locale_hit_on_mesh(asked, &hits[i]);
        else
            out[i].at.t = INFINITY;
}

void lighting_occluders(const struct lighting *lighting, const struct vec3 *points, size_t count,
                        struct locale_hit *out)
{
    struct locale_hit best[LIT_TOGETHER_MAX], hits[LIT_TOGETHER_MAX];
    struct beams beams;

    beams_make(&lighting->light, points, count, &beams);
    for (size_t i = 0; i < beams.count; i++)
        best[i].at.t = INFINITY;
    for (size_t layer = 0; layer < lighting->choice->count; layer++) {
        layer_hits(lighting, layer, &beams, hits);
        for (size_t i = 0; i < beams.count; i++)
            if (hits[i].at.t < best[i].at.t)
                best[i] = hits[i];
    }
    for (size_t i = 0; i < count; i++)
        out[i].at.t = INFINITY;
    for (size_t i = 0; i < beams.count; i++)
        if (best[i].at.t < INFINITY) {
            out[beams.point[i]] = best[i];
            out[beams.point[i]].at.t += beams.start_m[i];
        }
}

static void layer_any(const struct lighting *lighting, size_t layer, const struct beams *beams,
                      uint8_t *is_hit)
{
    const struct layer_choice choice = only(lighting->choice, layer);
    struct vec3 origins[LIT_TOGETHER_MAX];
    struct locale_hit hits[LIT_TOGETHER_MAX];

    if (lighting->trees[layer]) {
        origins_of(beams, origins);
        shadow_index_any(lighting->trees[layer], choice.layers[0]->mesh, origins, beams->count,
                         is_hit);
        return;
    }
    locale_rays(&choice, beams->rays, beams->count, RAY_LIGHT_ANY, hits);
    for (size_t i = 0; i < beams->count; i++)
        is_hit[i] = hits[i].at.t < INFINITY;
}

/* Removes the rays that hit; their points are in shadow. */
static void beams_keep(struct beams *beams, const uint8_t *is_hit, uint8_t *is_lit)
{
    size_t kept = 0;

    for (size_t i = 0; i < beams->count; i++) {
        if (is_hit[i]) {
            is_lit[beams->point[i]] = 0;
            continue;
        }
        beams->rays[kept] = beams->rays[i];
        beams->point[kept++] = beams->point[i];
    }
    beams->count = kept;
}

/* Far away, and where every layer has a tree, there is no need of rays: the same origins, put to
 * all. */
static bool lit_by_trees(const struct lighting *lighting, const struct vec3 *points, size_t count,
                         uint8_t *is_lit)
{
    struct vec3 origins[LIT_TOGETHER_MAX], toward = lighting->light.toward;
    uint8_t is_hit[LIT_TOGETHER_MAX];

    for (size_t layer = 0; layer < lighting->choice->count; layer++)
        if (!lighting->trees[layer])
            return false;
    for (size_t i = 0; i < count; i++) {
        double largest = largest_m(points[i]);

        if (!(largest < DBL_MAX / 2)) /* so all origins are finite */
            return false;
        origins[i] = vec3_add(points[i], vec3_scale(toward, LIT_NEAR_RELATIVE * largest));
        is_lit[i] = 1;
    }
    for (size_t layer = 0; layer < lighting->choice->count; layer++) {
        shadow_index_any(lighting->trees[layer], lighting->choice->layers[layer]->mesh, origins,
                         count, is_hit);
        for (size_t i = 0; i < count; i++)
            is_lit[i] &= !is_hit[i];
    }
    return true;
}

void lighting_lit(const struct lighting *lighting, const struct vec3 *points, size_t count,
                  uint8_t *is_lit)
{
    uint8_t is_hit[LIT_TOGETHER_MAX];
    struct beams beams;

    if (lit_by_trees(lighting, points, count, is_lit))
        return;
    beams_make(&lighting->light, points, count, &beams);
    for (size_t i = 0; i < count; i++)
        is_lit[i] = 1;
    for (size_t layer = 0; layer < lighting->choice->count && beams.count > 0; layer++) {
        layer_any(lighting, layer, &beams, is_hit);
        beams_keep(&beams, is_hit, is_lit);
    }
}
