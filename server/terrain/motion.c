/*
 * Rigid motion.
 *
 * Problem: a moved surface is queried in its own frame, so each point is turned
 * twice, and a game that sets the yaw to 90 degrees wants a bridge that lies exactly along the
 * axis. Approach: Rodrigues' form. A vector's part along the axis stays, the part across is turned;
 * under the axis +Z the part along is exactly (0, 0, z), so that heights are shifted and nothing
 * else. The yaw is reduced by quarters, exactly, before sine and cosine are taken. A rotation in
 * place of a yaw is a matrix. Velocity is that of a rigid body: of the origin, and the spin about
 * it. It is the mean since the earlier pose, taken at the place where the surface is now.
 *
 * Invariant: axis is a unit vector; cos and sin are those of pose.yaw_deg, row those of
 * pose.rotation.
 */
#include "terrain/motion.h"

#include "terrain/trig.h"

#include <float.h>
#include <string.h>

/* Steps of a turn and a shift that round, in units in the last place, with some to spare. */
#define MOTION_ROUNDING_ULPS 16

#define DEGREE (M_PI / 180)
#define ROTATION_LENGTH_OFF 1e-3 /* a given quaternion may be this far from unit */

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

/* The rows of a unit quaternion's matrix. */
static void rows_of(const double q[4], struct vec3 row[3])
{
    double x = q[0], y = q[1], z = q[2], w = q[3];

    row[0] = (struct vec3){1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)};
    row[1] = (struct vec3){2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)};
    row[2] = (struct vec3){2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)};
}

struct motion motion_at(const struct pose *pose, struct vec3 axis)
{
    struct motion motion = {.pose = *pose, .axis = axis, .is_tilted = pose_is_tilted(pose)};

    turn_of(pose->yaw_deg, &motion.cos, &motion.sin);
    if (motion.is_tilted)
        rows_of(pose->rotation, motion.row);
    return motion;
}

static bool is_equal(struct vec3 a, struct vec3 b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

bool pose_is_equal(const struct pose *a, const struct pose *b)
{
    for (int i = 0; i < 4; i++)
        if (a->rotation[i] != b->rotation[i])
            return false;
    return is_equal(a->translation, b->translation) && a->yaw_deg == b->yaw_deg;
}

bool motion_is_equal(const struct motion *a, const struct motion *b)
{
    return pose_is_equal(&a->pose, &b->pose) && is_equal(a->axis, b->axis) &&
           is_equal(a->velocity, b->velocity) && is_equal(a->spin, b->spin);
}

bool rotation_is_unit(const double rotation[4], double *length)
{
    double squares = 0;

    for (int i = 0; i < 4; i++)
        squares += rotation[i] * rotation[i];
    *length = fabs(squares - 1) <= 4 * DBL_EPSILON ? 1 : sqrt(squares);
    return fabs(*length - 1) <= ROTATION_LENGTH_OFF;
}

/* ---- velocity -------------------------------------------------------------------------------- */

/* The pose's turn as a unit quaternion. */
static void quaternion_of(const struct pose *pose, struct vec3 axis, double q[4])
{
    double half = remainder(pose->yaw_deg, 360) * DEGREE / 2, sine = trig_sin(half);

    if (pose_is_tilted(pose)) {
        memcpy(q, pose->rotation, sizeof pose->rotation);
        return;
    }
    q[0] = axis.x * sine, q[1] = axis.y * sine, q[2] = axis.z * sine;
    q[3] = trig_cos(half);
}

/* The turn from one pose to another by the shorter way, as an axis times an angle in radians. */
static struct vec3 turn_between(const struct pose *from, const struct pose *to, struct vec3 axis)
{
    double a[4], b[4];

    quaternion_of(from, axis, a);
    quaternion_of(to, axis, b);
    struct vec3 u = {a[0], a[1], a[2]}, v = {b[0], b[1], b[2]};
    struct vec3 by = vec3_sub(vec3_sub(vec3_scale(v, a[3]), vec3_scale(u, b[3])), vec3_cross(v, u));
    double w = a[3] * b[3] + vec3_dot(u, v), sine = vec3_length(by);

    if (!(sine > 0))
        return (struct vec3){0, 0, 0};
    return vec3_scale(by, copysign(2 * trig_atan2(sine, fabs(w)), w) / sine);
}

void motion_came_from(struct motion *motion, const struct pose *earlier, double seconds)
{
    struct vec3 way = vec3_sub(motion->pose.translation, earlier->translation);
    double yaw_deg = remainder(motion->pose.yaw_deg - earlier->yaw_deg, 360);

    motion->velocity = vec3_scale(way, 1 / seconds);
    motion->spin = motion->is_tilted || pose_is_tilted(earlier)
                       ? vec3_scale(turn_between(earlier, &motion->pose, motion->axis), 1 / seconds)
                       : vec3_scale(motion->axis, yaw_deg * DEGREE / seconds);
}

/* ---- points ---------------------------------------------------------------------------------- */

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
    if (motion->is_tilted)
        return vec3_add(vec3_add(vec3_scale(motion->row[0], direction.x),
                                 vec3_scale(motion->row[1], direction.y)),
                        vec3_scale(motion->row[2], direction.z));
    return rotate(motion, -motion->sin, direction);
}

struct vec3 motion_turn_out(const struct motion *motion, struct vec3 direction)
{
    if (motion->is_tilted)
        return (struct vec3){vec3_dot(motion->row[0], direction),
                             vec3_dot(motion->row[1], direction),
                             vec3_dot(motion->row[2], direction)};
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

    return vec3_add(motion->velocity, vec3_cross(motion->spin, arm));
}

double motion_rounding(const struct motion *motion, struct vec3 point)
{
    return MOTION_ROUNDING_ULPS * DBL_EPSILON *
           (vec3_length(point) + vec3_length(motion->pose.translation));
}
