/*
 * Questions to instances: each is put to the meshes whose boxes its line meets, in the frame of
 * their places, and the first along the line counts.
 *
 * A place is turned about gravity, so "down" is the same in its frame, and distances along gravity
 * and the t of a ray are the same numbers. What a question determines is not turned back: a contact
 * is on its gravity line, a hit on its ray (as in world/ask/layer_ask.c). Of what is equally near
 * the polygon with the least number counts, so an answer does not depend on the order of the tree.
 * A ray's t_max stays that of the question while nearer hits are found: another one would round
 * them in another way.
 */
#include "terrain/instances/instances.h"

#include "terrain/mesh/mesh_trace.h"

/* A question on its way; the line is its first member. */
struct asked {
    struct instance_line line;
    const struct instances *instances;
    struct vec3 point;
    double reach_m, above_m; /* of floors; of ceilings above_m and lift (reach_m) */
    const struct ray *ray;
    enum ray_mode mode;
    struct mesh_contact *contact;
    struct mesh_hit *hit;
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

static void contact_take(struct asked *a, uint32_t i, const struct motion *motion, double at,
                         struct mesh_contact *contact)
{
    const struct instances *of = a->instances;

    contact->polygon += of->places[i].first;
    if (a->is_found && is_worse(at, contact->polygon, a->line.high, a->contact->polygon))
        return;
    if (of->is_upright)
        contact->point =
            (struct vec3){a->point.x, a->point.y, contact->point.z + motion->pose.translation.z};
    else
        contact->point = vec3_add(a->point, vec3_scale(gravity_of(of), contact->distance_m));
    contact->normal = motion_turn_out(motion, contact->normal);
    *a->contact = *contact;
    a->is_found = true;
    a->line.high = at;
}

static void floor_visit(struct instance_line *line, uint32_t i)
{
    struct asked *a = (struct asked *)line;
    struct motion motion = instances_motion(a->instances, i);
    struct mesh_contact contact;

    if (mesh_floor(instances_mesh(a->instances, i), motion_point_in(&motion, a->point),
                   a->reach_m + motion_rounding(&motion, a->point), &contact))
        contact_take(a, i, &motion, contact.distance_m, &contact);
}

static void ceiling_visit(struct instance_line *line, uint32_t i)
{
    struct asked *a = (struct asked *)line;
    struct motion motion = instances_motion(a->instances, i);
    double rounding = motion_rounding(&motion, a->point);
    struct mesh_contact contact;

    if (mesh_ceiling(instances_mesh(a->instances, i), motion_point_in(&motion, a->point),
                     a->above_m + rounding, a->reach_m - rounding, &contact))
        contact_take(a, i, &motion, -contact.distance_m, &contact);
}

/* What a line may begin before its end for rounding. */
static double spare_m(const struct instances *instances, struct vec3 point)
{
    return 4 * instances->slack + 64 * DBL_EPSILON * vec3_length(point);
}

bool instances_floor(const struct instances *instances, struct vec3 point, double reach_up_m,
                     struct mesh_contact *out)
{
    struct asked a = {
        .line = {.from = point,
                 .along = gravity_of(instances),
                 .low = -reach_up_m - spare_m(instances, point),
                 .high = INFINITY,
                 .visit = floor_visit},
        .instances = instances,
        .point = point,
        .reach_m = reach_up_m,
        .contact = out,
    };

    instance_tree_ask(&instances->tree, &a.line);
    return a.is_found;
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
    struct asked a = {
        .line = {.from = point,
                 .along = instances->header->axis,
                 .low = fmax(above_m, lift_m) - spare_m(instances, point),
                 .high = INFINITY,
                 .visit = ceiling_visit},
        .instances = instances,
        .point = point,
        .reach_m = lift_m,
        .above_m = above_m,
        .contact = out,
    };

    instance_tree_ask(&instances->tree, &a.line);
    return a.is_found;
}

/* ---- rays ------------------------------------------------------------------------------------ */

static struct ray ray_in(const struct motion *motion, const struct ray *ray)
{
    struct ray own = *ray;

    own.origin = motion_point_in(motion, ray->origin);
    own.direction = motion_turn_in(motion, ray->direction);
    return own;
}

static void ray_visit(struct instance_line *line, uint32_t i)
{
    struct asked *a = (struct asked *)line;
    const struct ray *ray = a->ray;
    struct motion motion = instances_motion(a->instances, i);
    struct ray own = ray_in(&motion, ray);
    struct mesh_hit hit;

    if ((a->is_found && ray_takes_any(a->mode)) || !ray_is_valid(&own) ||
        !mesh_ray(instances_mesh(a->instances, i), &own, a->mode, &hit))
        return;
    hit.polygon += a->instances->places[i].first;
    if (a->is_found && is_worse(hit.t, hit.polygon, a->hit->t, a->hit->polygon))
        return;
    if (a->instances->is_upright && ray->direction.x == 0 && ray->direction.y == 0)
        hit.point =
            (struct vec3){ray->origin.x, ray->origin.y, hit.point.z + motion.pose.translation.z};
    else
        hit.point = vec3_add(ray->origin, vec3_scale(ray->direction, hit.t));
    hit.normal = motion_turn_out(&motion, hit.normal);
    *a->hit = hit;
    a->is_found = true;
    line->high = ray_takes_any(a->mode) ? -INFINITY : hit.t;
}

/* Some roundings before the begin: a ray from a surface hits it. */
static struct instance_line ray_line(const struct instances *instances, const struct ray *ray)
{
    double spare = spare_m(instances, ray->origin);

    return (struct instance_line){.from = ray->origin,
                                  .along = ray->direction,
                                  .reach = {spare, spare, spare},
                                  .low = 0,
                                  .high = ray->t_max,
                                  .visit = ray_visit};
}

bool instances_ray(const struct instances *instances, const struct ray *ray, enum ray_mode mode,
                   struct mesh_hit *hit)
{
    struct asked a = {
        .line = ray_line(instances, ray),
        .instances = instances,
        .ray = ray,
        .mode = mode,
        .hit = hit,
    };

    instance_tree_ask(&instances->tree, &a.line);
    return a.is_found;
}

/* ---- what a ray tests ------------------------------------------------------------------------ */

/* Asks the mesh as ray_visit does; its polygons come to the trace, its own boxes, in a frame of
 * their own, do not. */
static void trace_visit(struct instance_line *line, uint32_t i)
{
    struct asked *a = (struct asked *)line;
    struct ray_tree_trace *trace = line->trace, own = {.polygons = NULL};
    struct motion motion = instances_motion(a->instances, i);
    struct ray ray = ray_in(&motion, a->ray);
    uint32_t from = trace->polygon_count;

    own.polygon_count = trace->polygon_count;
    own.polygon_capacity = trace->polygon_capacity;
    own.polygons = trace->polygons;
    if (ray_is_valid(&ray))
        mesh_ray_trace(instances_mesh(a->instances, i), &ray, &own);
    trace->polygon_count = own.polygon_count;
    for (uint32_t k = from; k < own.polygon_count && k < own.polygon_capacity; k++)
        trace->polygons[k] += a->instances->places[i].first;
    ray_visit(line, i);
}

void instances_ray_trace(const struct instances *instances, const struct ray *ray,
                         struct ray_tree_trace *trace)
{
    struct mesh_hit hit;
    struct asked a = {
        .line = ray_line(instances, ray),
        .instances = instances,
        .ray = ray,
        .mode = RAY_CLOSEST,
        .hit = &hit,
    };

    a.line.visit = trace_visit;
    a.line.trace = trace;
    instance_tree_ask(&instances->tree, &a.line);
}
