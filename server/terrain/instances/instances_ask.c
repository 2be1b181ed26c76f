/*
 * Questions to instances: each is put to the meshes whose boxes its line meets, in the frame of
 * their places, and the first along the line counts.
 *
 * A place is turned about gravity, so "down" is the same in its frame, and distances along gravity
 * and the t of a ray are the same numbers. What a question determines is not turned back: a contact
 * is on its gravity line, a hit on its ray (as in world/ask/layer_ask.c). Of what is equally near
 * the polygon with the least number counts, so an answer does not depend on the order of the tree.
 * While nearer hits are found a ray's t_max shrinks, but stays some roundings beyond the best one:
 * a hit that is as near as t_max is rounded to it.
 */
#include "terrain/instances/instances.h"

#include "terrain/mesh/mesh_trace.h"
#include "terrain/power.h"

#define T_OFF 1e-12 /* roundings of t, relative */

/* A question on its way. */
struct asked {
    const struct instances *instances;
    struct vec3 point;
    double reach_m, above_m; /* of floors; of ceilings above_m and lift (reach_m) */
    const struct ray *ray;
    double t_max;
    enum ray_mode mode;
    int exponent; /* t of the tree's line is the ray's times 2^exponent */
    double spare; /* in its units */
    struct mesh_contact *contact;
    struct mesh_hit *hit;
    struct ray_tree_trace *trace;
    double best; /* metres along the line, or t */
    bool is_found;
};

static struct vec3 gravity_of(const struct instances *instances)
{
    return vec3_opposite(instances->header->axis);
}

/* ---- floors and ceilings --------------------------------------------------------------------- */

/* Is it farther along, or as far and of a greater number? */
static bool is_worse(double at, uint32_t polygon, double best, uint32_t best_polygon)
{
    return at > best || (at == best && polygon > best_polygon);
}

/* Is it the best so far? */
static bool contact_take(struct asked *a, uint32_t i, const struct motion *motion, double at,
                         struct mesh_contact *contact)
{
    const struct instances *of = a->instances;

    contact->polygon += of->places[i].first;
    if (a->is_found && is_worse(at, contact->polygon, a->best, a->contact->polygon))
        return false;
    if (of->is_upright)
        contact->point =
            (struct vec3){a->point.x, a->point.y, contact->point.z + motion->pose.translation.z};
    else
        contact->point = vec3_add(a->point, vec3_scale(gravity_of(of), contact->distance_m));
    contact->normal = motion_turn_out(motion, contact->normal);
    *a->contact = *contact;
    a->is_found = true;
    a->best = at;
    return true;
}

/* These tests have the contract of struct ray_tree_line. */
static bool floor_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct asked *a = asker;
    uint32_t i = block->polygon[lane];
    struct motion motion = instances_motion(a->instances, i);
    struct mesh_contact contact;

    if (!mesh_floor(instances_mesh(a->instances, i), motion_point_in(&motion, a->point), a->reach_m,
                    &contact) ||
        !contact_take(a, i, &motion, contact.distance_m, &contact))
        return false;
    *end = a->best;
    return true;
}

static bool ceiling_test(void *asker, const struct ray_tree_block *block, unsigned lane,
                         double *end)
{
    struct asked *a = asker;
    uint32_t i = block->polygon[lane];
    struct motion motion = instances_motion(a->instances, i);
    struct mesh_contact contact;

    if (!mesh_ceiling(instances_mesh(a->instances, i), motion_point_in(&motion, a->point),
                      a->above_m, a->reach_m, &contact) ||
        !contact_take(a, i, &motion, -contact.distance_m, &contact))
        return false;
    *end = a->best;
    return true;
}

/* By how much a point may be off in the frame of a place. */
static double rounding_m(const struct instances *instances, struct vec3 point)
{
    const struct motion still = {.cos = 1};

    return instances->rounding + motion_rounding(&still, point);
}

/* What a line may begin before its end for rounding. */
static double spare_m(const struct instances *instances, struct vec3 point)
{
    return 4 * instances->slack + 64 * DBL_EPSILON * vec3_length(point);
}

static bool column_ask(struct asked *a, struct vec3 along, double low,
                       bool (*test)(void *asker, const struct ray_tree_block *block, unsigned lane,
                                    double *end))
{
    static const double no_reach[3];
    const struct ray_tree_line line = {.o = {a->point.x, a->point.y, a->point.z},
                                       .d = {along.x, along.y, along.z},
                                       .low = low - spare_m(a->instances, a->point),
                                       .high = INFINITY,
                                       .test = test,
                                       .asker = a};

    ray_tree_sweep(&a->instances->tree, &line, no_reach);
    return a->is_found;
}

bool instances_floor(const struct instances *instances, struct vec3 point, double reach_up_m,
                     struct mesh_contact *out)
{
    struct asked a = {.instances = instances,
                      .point = point,
                      .reach_m = reach_up_m + rounding_m(instances, point),
                      .contact = out};

    return column_ask(&a, gravity_of(instances), -reach_up_m, floor_test);
}

bool instances_height(const struct instances *instances, struct vec3 point, double reach_up_m,
                      struct mesh_height *out)
{
    struct mesh_contact contact;

    if (!instances_floor(instances, point, reach_up_m, &contact))
        return false;
    out->height_m =
        instances->is_upright ? contact.point.z : vec3_dot(contact.point, instances->header->axis);
    out->polygon = contact.polygon;
    return true;
}

bool instances_ceiling(const struct instances *instances, struct vec3 point, double above_m,
                       double lift_m, struct mesh_contact *out)
{
    struct asked a = {.instances = instances,
                      .point = point,
                      .reach_m = lift_m - rounding_m(instances, point),
                      .above_m = above_m + rounding_m(instances, point),
                      .contact = out};

    return column_ask(&a, instances->header->axis, fmax(above_m, lift_m), ceiling_test);
}

/* ---- rays ------------------------------------------------------------------------------------ */

static struct ray ray_in(const struct motion *motion, const struct asked *a)
{
    return (struct ray){motion_point_in(motion, a->ray->origin),
                        motion_turn_in(motion, a->ray->direction), a->t_max};
}

static bool ray_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct asked *a = asker;
    uint32_t i = block->polygon[lane];
    const struct ray *ray = a->ray;
    struct motion motion = instances_motion(a->instances, i);
    struct ray own = ray_in(&motion, a);
    struct mesh_hit hit;

    if (!ray_is_valid(&own) || !mesh_ray(instances_mesh(a->instances, i), &own, a->mode, &hit))
        return false;
    hit.polygon += a->instances->places[i].first;
    if (a->is_found && is_worse(hit.t, hit.polygon, a->hit->t, a->hit->polygon))
        return false;
    if (a->instances->is_upright && ray->direction.x == 0 && ray->direction.y == 0)
        hit.point =
            (struct vec3){ray->origin.x, ray->origin.y, hit.point.z + motion.pose.translation.z};
    else
        hit.point = vec3_add(ray->origin, vec3_scale(ray->direction, hit.t));
    hit.normal = motion_turn_out(&motion, hit.normal);
    *a->hit = hit;
    a->is_found = true;
    *end = scaled(hit.t, a->exponent);
    a->t_max = fmin(a->t_max, scaled(*end * (1 + T_OFF) + a->spare, -a->exponent));
    return true;
}

/* Asks the mesh as ray_test does; its polygons come to the trace, its own boxes, in a frame of
 * their own, do not. */
static bool trace_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct asked *a = asker;
    uint32_t i = block->polygon[lane], from = a->trace->polygon_count;
    struct motion motion = instances_motion(a->instances, i);
    struct ray ray = ray_in(&motion, a);
    struct ray_tree_trace own = {.polygons = a->trace->polygons,
                                 .polygon_count = from,
                                 .polygon_capacity = a->trace->polygon_capacity};

    if (ray_is_valid(&ray))
        mesh_ray_trace(instances_mesh(a->instances, i), &ray, &own);
    a->trace->polygon_count = own.polygon_count;
    for (uint32_t k = from; k < own.polygon_count && k < own.polygon_capacity; k++)
        own.polygons[k] += a->instances->places[i].first;
    return ray_test(asker, block, lane, end);
}

/* The reach lets it begin some roundings earlier: a ray from a surface hits it. */
static bool ray_ask(struct asked *a)
{
    const struct ray *ray = a->ray;
    double spare = spare_m(a->instances, ray->origin);
    const double reach[3] = {spare, spare, spare};
    const struct ray_tree *tree = &a->instances->tree;

    a->t_max = ray->t_max;
    a->exponent = exponent_of(ray->direction);
    a->spare = 4 * spare;
    struct vec3 d = vec3_scaled(ray->direction, -a->exponent);
    const struct ray_tree_line line = {.o = {ray->origin.x, ray->origin.y, ray->origin.z},
                                       .d = {d.x, d.y, d.z},
                                       .high = scaled(ray->t_max, a->exponent),
                                       .is_any = ray_takes_any(a->mode),
                                       .test = a->trace ? trace_test : ray_test,
                                       .asker = a};

    if (a->trace)
        ray_tree_ask_traced(tree, &line, reach, a->trace);
    else
        ray_tree_sweep(tree, &line, reach);
    return a->is_found;
}

bool instances_ray(const struct instances *instances, const struct ray *ray, enum ray_mode mode,
                   struct mesh_hit *hit)
{
    struct asked a = {.instances = instances, .ray = ray, .mode = mode, .hit = hit};

    return ray_ask(&a);
}

void instances_ray_trace(const struct instances *instances, const struct ray *ray,
                         struct ray_tree_trace *trace)
{
    struct mesh_hit hit;
    struct asked a = {
        .instances = instances, .ray = ray, .mode = RAY_CLOSEST, .hit = &hit, .trace = trace};

    (void)ray_ask(&a);
}
