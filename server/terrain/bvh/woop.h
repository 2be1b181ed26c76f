/*
 * A polygon as a line sees it.
 *
 * In the line's own space (Woop, Benthin, Wald: Watertight Ray/Triangle Intersection, 2013) corners
 * are moved by the origin and sheared so that the line is an axis; the line is inside when all
 * edges turn the same way around the axis. A corner's place there depends only on the corner, and
 * cross(p, q) is exactly -cross(q, p), so two polygons at an edge cannot both be missed.
 */
#ifndef KOTA_TERRAIN_WOOP_H
#define KOTA_TERRAIN_WOOP_H

#include "terrain/bvh/face.h"
#include "terrain/power.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct woop_ray {
    double o[3];
    double pad;     /* rounding of a place across the line */
    int kx, ky, kz; /* d[kz] is the largest */
    double shear_x, shear_y, inv_z;
};

/* Where a corner is: across the line, and along it. */
struct woop_point {
    double x, y, t;
};

/* The last of equals. Without a branch: directions come in any order. */
static inline int axis_of_largest(double x, double y, double z)
{
    int is_z = (z >= x) & (z >= y);

    return is_z << 1 | ((y >= x) & (is_z ^ 1));
}

static inline int axis_after(int axis)
{
    return 9 >> 2 * axis & 3; /* 1, 2, 0 */
}

/* All but origin and pad, for the direction d, which is not 0. */
static inline void woop_ray_along(struct woop_ray *s, const double d[3])
{
    double x = fabs(d[0]), y = fabs(d[1]), z = fabs(d[2]);

    s->kz = axis_of_largest(x, y, z);
    s->kx = axis_after(s->kz);
    s->ky = axis_after(s->kx);
    s->shear_x = d[s->kx] / d[s->kz];
    s->shear_y = d[s->ky] / d[s->kz];
    s->inv_z = 1 / d[s->kz];
}

static inline struct woop_point woop_point_of(const struct woop_ray *s, struct vec3 vertex)
{
    double v[3] = {vertex.x - s->o[0], vertex.y - s->o[1], vertex.z - s->o[2]};

    return (struct woop_point){v[s->kx] - s->shear_x * v[s->kz], v[s->ky] - s->shear_y * v[s->kz],
                               v[s->kz] * s->inv_z};
}

/*
 * True when the line is inside all edges, or on one within pad, which closes T-junctions; t0 and
 * t1: of the nearest and the farthest corner. A polygon that is seen from its side is a line
 * through the axis, or past it: true for both (woop_edge_on).
 */
static inline __attribute__((always_inline)) bool woop_is_through(const struct woop_ray *s,
                                                                  const struct face *face,
                                                                  double *t0, double *t1)
{
    struct woop_point a = woop_point_of(s, face_at(face, face->count - 1));
    bool can_left = true, can_right = true;

    *t0 = *t1 = a.t;
    for (uint32_t i = 0; i < face->count; i++) {
        struct woop_point b = woop_point_of(s, face_at(face, i));
        double turn = a.x * b.y - a.y * b.x;
        double slack = s->pad * (fabs(b.x - a.x) + fabs(b.y - a.y));

        can_left &= turn >= -slack;
        can_right &= turn <= slack;
        if (!can_left && !can_right)
            return false;
        *t0 = b.t < *t0 ? b.t : *t0;
        *t1 = b.t > *t1 ? b.t : *t1;
        a = b;
    }
    return true;
}

/*
 * Is the polygon slanted to the line, and no wider across it than so many pads? n is its normal, of
 * any length, `across` that times the line's direction, t0 to t1 as above.
 */
static inline bool woop_is_within(const struct woop_ray *s, double pads, double across,
                                  struct vec3 n, double t0, double t1)
{
    double length = largest_of(n); /* at least */

    return fabs(across) * (t1 - t0) <= pads * s->pad * length && fabs(across) <= length / 4;
}

/*
 * So narrow polygons are seen from their side, but for rounding. Of those that are not much wider,
 * rounding is as large as their edges: beyond a tip woop_is_through may be true as far away as the
 * polygon is long over WOOP_NARROW, and the plane does not give the place where the line meets it.
 * woop_edge_on does both.
 */
#define WOOP_SIDEWAYS 2.0  /* pads */
#define WOOP_NARROW 0x1p20 /* pads */

/*
 * Of a polygon that is seen from its side, or all but so, and that woop_is_through is true of:
 * where the line runs along it, from t0 to t1. False where it passes. O(corners).
 */
bool woop_edge_on(const struct woop_ray *s, const struct face *face, double *t0, double *t1);

#endif
