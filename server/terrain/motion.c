/*
 * Rigid motion about one axis.
 *
 * Problem: a moved surface is queried in its own frame, so each point is turned
 * twice, and a game that sets the yaw to 90 degrees wants a bridge that lies exactly along the
 * axis. Approach: Rodrigues' form. A vector's part along the axis stays, the part across is turned;
 * under the axis +Z the part along is exactly (0, 0, z), so that heights are shifted and nothing
 * else. The yaw is reduced by quarters, exactly, before sine and cosine are taken. Velocity is that
 * of a rigid body: of the origin, and the spin about it. It is the mean since the earlier pose,
 * taken at the place where the surface is now.
 *
 * Invariant: axis is a unit vector; cos and sin are those of pose.yaw_deg.
 */
#include "terrain/motion.h"

#include "terrain/trig.h"

#include <float.h>

/* Steps of a turn and a shift that round, in units in the last place, with some to spare. */
#define MOTION_ROUNDING_ULPS 16

#define DEGREE (M_PI / 180)

static void turn_of(double yaw_deg, double *c, double *s)
{
    double rest = remainder(yaw_deg, 360), quarters = nearbyint(rest / 90);
    double angle = (rest - 90 * quarters) * DEGREE;
    double cosine = trig_cos(angle), sine = trig_sin(angle);

    switch ((int)quarters & 3) {
    case 0:
        *c = cosine;
        *s = sine;
        return;
    case 1:
        *c = 0 - sine;
        *s = cosine;
        return;
    case 2:
        *c = 0 - cosine;
        *s = 0 - sine;
        return;
    default:
        *c = sine;
        *s = 0 - cosine;
        return;
    }
}

struct motion motion_at(const struct pose *pose, struct vec3 axis)
{
    struct motion motion = {.pose = *pose, .axis = axis};

    turn_of(pose->yaw_deg, &motion.cos, &motion.sin);
    return motion;
}

void motion_came_from(struct motion *motion, const struct pose *earlier, double seconds)
{
    struct vec3 way = vec3_sub(motion->pose.translation, earlier->translation);

    motion->velocity = vec3_scale(way, 1 / seconds);
    motion->spin = remainder(motion->pose.yaw_deg - earlier->yaw_deg, 360) * DEGREE / seconds;
}

static struct vec3 rotate(const struct motion *motion, double sine, struct vec3 v)
{
    struct vec3 along, across;

    if (sine == 0 && motion->cos == 1)
        return v;
    along = vec3_scale(motion->axis, vec3_dot(motion->axis, v));
    across = vec3_scale(vec3_sub(v, along), motion->cos);
    across = vec3_add(across, vec3_scale(vec3_cross(motion->axis, v), sine));
    return vec3_add(along, across);
}

struct vec3 motion_turn_in(const struct motion *motion, struct vec3 direction)
{
    return rotate(motion, -motion->sin, direction);
}

struct vec3 motion_turn_out(const struct motion *motion, struct vec3 direction)
{
    return rotate(motion, motion->sin, direction);
}

struct vec3 motion_point_in(const struct motion *motion, struct vec3 point)
{
    return motion_turn_in(motion, vec3_sub(point, motion->pose.translation));
}

struct vec3 motion_point_out(const struct motion *motion, struct vec3 point)
{
    return vec3_add(motion_turn_out(motion, point), motion->pose.translation);
}

struct box3 motion_box_out(const struct motion *motion, const struct box3 *box)
{
    struct box3 out;

    for (unsigned i = 0; i < 8; i++) {
        struct vec3 corner = {i & 1 ? box->max.x : box->min.x, i & 2 ? box->max.y : box->min.y,
                              i & 4 ? box->max.z : box->min.z};

        corner = motion_point_out(motion, corner);
        out =
            i > 0 ? box3_union(out, (struct box3){corner, corner}) : (struct box3){corner, corner};
    }
    return out;
}

struct vec3 motion_velocity(const struct motion *motion, struct vec3 point)
{
    struct vec3 arm = vec3_sub(point, motion->pose.translation);

    return vec3_add(motion->velocity, vec3_scale(vec3_cross(motion->axis, arm), motion->spin));
}

double motion_rounding(const struct motion *motion, struct vec3 point)
{
    return MOTION_ROUNDING_ULPS * DBL_EPSILON *
           (vec3_length(point) + vec3_length(motion->pose.translation));
}
