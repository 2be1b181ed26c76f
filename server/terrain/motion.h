/*
 * The pose of a rigid surface that may be moved: turned about its own origin, by a yaw about an
 * axis or by any rotation, then shifted; and how fast it goes. Values only, no allocation.
 *
 * "In" is from the frame around into the surface's own, "out" is back.
 */
#ifndef KOTA_TERRAIN_MOTION_H
#define KOTA_TERRAIN_MOTION_H

#include "terrain/vec.h"

#include <stdbool.h>

/* Greatest component of a translation in metres, and greatest yaw in degrees, either way. */
#define POSE_TRANSLATION_MAX_M 1e9
#define POSE_YAW_MAX_DEG 1e6

struct pose {
    struct vec3 translation; /* metres, in the frame around */
    double yaw_deg;          /* right-handed about the axis */
    double rotation[4];      /* in place of the yaw: a unit quaternion x y z w; all 0: the yaw */
};

/* Is it turned by a rotation in place of a yaw? */
static inline bool pose_is_tilted(const struct pose *pose)
{
    const double *q = pose->rotation;

    return q[0] != 0 || q[1] != 0 || q[2] != 0 || q[3] != 0;
}

bool pose_is_equal(const struct pose *a, const struct pose *b);

/* Is the length of a quaternion, which is set, within a thousandth of 1? It is 1 where only
 * rounding is between them: a quaternion that was made unit keeps its bits. */
bool rotation_is_unit(const double rotation[4], double *length);

struct motion {
    struct pose pose;
    struct vec3 axis;     /* unit, of the yaw */
    double cos, sin;      /* of the yaw; exact at multiples of 90 degrees */
    bool is_tilted;       /* pose_is_tilted: */
    struct vec3 row[3];   /* of the rotation's matrix, own frame to the frame around */
    struct vec3 velocity; /* of the surface's origin, m/s in the frame around */
    struct vec3 spin;     /* its angular velocity there, rad/s */
};

/* At rest in a pose, whose rotation is unit or all 0. */
struct motion motion_at(const struct pose *pose, struct vec3 axis);

/* Are pose, axis and velocities the same? */
bool motion_is_equal(const struct motion *a, const struct motion *b);

/*
 * Gives the motion the velocity of one that came from an earlier pose in seconds > 0, by the
 * shorter way round.
 */
void motion_came_from(struct motion *motion, const struct pose *earlier, double seconds);

/* Points, and directions, which are only turned. Under the axis +Z, z is turned by no bit. */
struct vec3 motion_point_in(const struct motion *motion, struct vec3 point);
struct vec3 motion_point_out(const struct motion *motion, struct vec3 point);
struct vec3 motion_turn_in(const struct motion *motion, struct vec3 direction);
struct vec3 motion_turn_out(const struct motion *motion, struct vec3 direction);

/* The box around a box of the own frame: larger than its contents unless it is turned by right
 * angles. */
struct box3 motion_box_out(const struct motion *motion, const struct box3 *box);

/* The velocity of the surface at a point of the frame around, m/s. */
struct vec3 motion_velocity(const struct motion *motion, struct vec3 point);

/* The error of a point by rounding on its way in or out, in metres. */
double motion_rounding(const struct motion *motion, struct vec3 point);

#endif
