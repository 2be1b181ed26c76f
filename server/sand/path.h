#ifndef KOTA_SAND_PATH_H
#define KOTA_SAND_PATH_H

/*
 * The path of a kinematic body: a wheel, a foot, a shovel. It goes through timed poses whatever
 * lies in its way; positions are interpolated along a line, orientations by slerp. Before the first
 * pose it is there, after the last one it stays. Pure; any thread.
 */

#include <stdint.h>

struct sand_pose;

/* A pose of the model's frame. */
struct sand_path_pose {
    double t_s; /* of the slot's time, since the body came in */
    double position[3];
    double orientation[4]; /* unit quaternion x y z w */
};

struct sand_path {
    double origin[3]; /* of the slot's frame, in that of the poses */
    double center[3]; /* of mass, which a pose of the engine is about, in the model's frame */
    uint32_t count;   /* >= 1 */
    struct sand_path_pose poses[]; /* t_s ascending */
};

/* When its last pose is reached. */
double sand_path_end_s(const struct sand_path *path);

/*
 * The pose of the body at this time, in the slot's frame. v and w are the mean ones since dt_s
 * before, so that each step moves a contact by as much as its velocity says.
 */
void sand_path_at(const struct sand_path *path, double t_s, double dt_s, struct sand_pose *out);

/* The angle between two orientations, 0..pi. */
double sand_path_angle(const double from[4], const double to[4]);

#endif
