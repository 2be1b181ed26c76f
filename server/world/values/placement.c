/*
 * Placements: see placement.h. A placement turns by a unit quaternion and then translates; the
 * inverse is by the conjugate, so that nothing is inverted numerically.
 */
#include "world/values/placement.h"

/* v turned by the quaternion x, y, z, w; its inverse has the vector part negated. */
static struct vec3 rotate(struct vec3 q, double w, struct vec3 v)
{
    struct vec3 t = vec3_scale(vec3_cross(q, v), 2);

    return vec3_add(v, vec3_add(vec3_scale(t, w), vec3_cross(q, t)));
}

struct vec3 placement_to_locale(const struct placement *placement, struct vec3 world)
{
    const double *q = placement->rotation;

    return rotate((struct vec3){-q[0], -q[1], -q[2]}, q[3],
                  vec3_sub(world, placement->translation));
}

struct vec3 placement_to_world(const struct placement *placement, struct vec3 local)
{
    const double *q = placement->rotation;

    return vec3_add(rotate((struct vec3){q[0], q[1], q[2]}, q[3], local), placement->translation);
}

struct vec3 placement_turn_to_locale(const struct placement *placement, struct vec3 world)
{
    const double *q = placement->rotation;

    return rotate((struct vec3){-q[0], -q[1], -q[2]}, q[3], world);
}

struct vec3 placement_turn_to_world(const struct placement *placement, struct vec3 local)
{
    const double *q = placement->rotation;

    return rotate((struct vec3){q[0], q[1], q[2]}, q[3], local);
}
