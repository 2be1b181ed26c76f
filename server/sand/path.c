/*
 * Paths of kinematic bodies.
 *
 * A step takes the pose at its end, and as velocity what brought the body there from its start. A
 * pose in the middle of a step needs no care so, nor is any drift added up.
 *
 * Source of slerp: K. Shoemake, "Animating rotation with quaternion curves", 1985.
 */
#include "sand/path.h"

#include "sand/engine.h"

#include <math.h>

double sand_path_end_s(const struct sand_path *path)
{
    return path->poses[path->count - 1].t_s;
}

/* Of the shorter way from one to the other; sign: of the other, for that way. */
static double half_cosine(const double from[4], const double to[4], double *sign)
{
    const double dot = from[0] * to[0] + from[1] * to[1] + from[2] * to[2] + from[3] * to[3];

    *sign = dot < 0 ? -1 : 1;
    return fmin(fabs(dot), 1);
}

double sand_path_angle(const double from[4], const double to[4])
{
    double sign;

    return 2 * acos(half_cosine(from, to, &sign));
}

static void slerp(const double from[4], const double to[4], double part, double out[4])
{
    double sign, length = 0;
    const double half = acos(half_cosine(from, to, &sign)), s = sin(half);
    const double a = s > 1e-9 ? sin((1 - part) * half) / s : 1 - part;
    const double b = sign * (s > 1e-9 ? sin(part * half) / s : part);

    for (int i = 0; i < 4; i++) {
        out[i] = a * from[i] + b * to[i];
        length += out[i] * out[i];
    }
    for (int i = 0; i < 4; i++)
        out[i] /= sqrt(length);
}

static void turned(const double q[4], const double v[3], double out[3])
{
    const double t[3] = {2 * (q[1] * v[2] - q[2] * v[1]), 2 * (q[2] * v[0] - q[0] * v[2]),
                         2 * (q[0] * v[1] - q[1] * v[0])};

    out[0] = v[0] + q[3] * t[0] + q[1] * t[2] - q[2] * t[1];
    out[1] = v[1] + q[3] * t[1] + q[2] * t[0] - q[0] * t[2];
    out[2] = v[2] + q[3] * t[2] + q[0] * t[1] - q[1] * t[0];
}

/* The centre of mass in the slot's frame, and the orientation. */
static void place_at(const struct sand_path *path, double t_s, double x[3], double q[4])
{
    uint32_t low = 0, high = path->count; /* the last pose that is not later */
    const struct sand_path_pose *a, *b;
    double part, center[3];

    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;

        if (path->poses[middle].t_s <= t_s)
            low = middle;
        else
            high = middle;
    }
    a = &path->poses[low];
    b = low + 1 < path->count ? a + 1 : a;
    part = b != a ? fmin(fmax((t_s - a->t_s) / (b->t_s - a->t_s), 0), 1) : 0;
    slerp(a->orientation, b->orientation, part, q);
    turned(q, path->center, center);
    for (int i = 0; i < 3; i++)
        x[i] =
            a->position[i] + part * (b->position[i] - a->position[i]) + center[i] - path->origin[i];
}

void sand_path_at(const struct sand_path *path, double t_s, double dt_s, struct sand_pose *out)
{
    double x[3], q[4], x0[3], q0[4], turn[4], sign, length, rate;

    place_at(path, t_s, x, q);
    place_at(path, t_s - dt_s, x0, q0);
    half_cosine(q0, q, &sign);
    /* q times the inverse of q0 */
    turn[0] = sign * (-q[3] * q0[0] + q[0] * q0[3] - q[1] * q0[2] + q[2] * q0[1]);
    turn[1] = sign * (-q[3] * q0[1] + q[0] * q0[2] + q[1] * q0[3] - q[2] * q0[0]);
    turn[2] = sign * (-q[3] * q0[2] - q[0] * q0[1] + q[1] * q0[0] + q[2] * q0[3]);
    turn[3] = sign * (q[3] * q0[3] + q[0] * q0[0] + q[1] * q0[1] + q[2] * q0[2]);
    length = sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]);
    rate = length > 0 ? 2 * atan2(length, turn[3]) / (length * dt_s) : 0;
    for (int i = 0; i < 3; i++) {
        out->x[i] = (float)x[i];
        out->v[i] = (float)((x[i] - x0[i]) / dt_s);
        out->w[i] = (float)(rate * turn[i]);
    }
    for (int i = 0; i < 4; i++)
        out->q[i] = (float)q[i];
}
