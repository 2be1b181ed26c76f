/*
 * A ray on its way through a mesh, and one polygon: shared by mesh_ray.c and its form with AVX2.
 * Private to terrain/.
 */
#ifndef KOTA_TERRAIN_MESH_WALK_H
#define KOTA_TERRAIN_MESH_WALK_H

#include "terrain/mesh/mesh_data.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/bvh/ray_tree_levels.h"
#include "terrain/bvh/woop.h"
#include "terrain/kernels/kernels.h"

#include <float.h>

#define SIDEWAYS 1e-14 /* cosine between ray and normal: seen from its side */

struct walk {
    const struct mesh *mesh;
    struct woop_ray s;   /* in the mesh's frame */
    double d[3];         /* scaled to about 1 */
    double t_min, t_end; /* t_end shrinks to the nearest hit */
    bool is_any, is_light;
    bool is_hit;
    uint32_t polygon;
    struct vec3 normal; /* of the hit, not unit, in the mesh's frame */
};

struct span {
    double t0, t1;
};

/* ---- one polygon ---------------------------------------------------------------------------- */

/* True when the ray is inside all edges, and not beyond them; t of the corners. */
ALWAYS_INLINE bool is_through(const struct walk *w, const struct face *face, struct span *t)
{
    return woop_is_through(&w->s, face, &t->t0, &t->t1) && t->t0 <= w->t_end && t->t1 >= w->t_min;
}

/* Of a polygon that the ray goes through, with t of its corners: is it hit, and the best so far? */
ALWAYS_INLINE bool face_take(struct walk *w, uint32_t index, const struct face *face,
                             struct span span)
{
    struct vec3 n = convex_part_normal(face);
    struct vec3 v = face_at(face, 0);
    double across = n.x * w->d[0] + n.y * w->d[1] + n.z * w->d[2];
    double t =
        (n.x * (v.x - w->s.o[0]) + n.y * (v.y - w->s.o[1]) + n.z * (v.z - w->s.o[2])) / across;

    if (__builtin_expect(woop_is_within(&w->s, WOOP_NARROW, across, n, span.t0, span.t1), 0)) {
        bool is_sideways = !is_across(across, SIDEWAYS, n) ||
                           woop_is_within(&w->s, WOOP_SIDEWAYS, across, n, span.t0, span.t1);

        if ((w->is_light && is_sideways) || !woop_edge_on(&w->s, face, &span.t0, &span.t1))
            return false;
        if (is_sideways)
            t = w->t_min > span.t0 ? w->t_min : span.t0;
    }
    t = t < span.t0 ? span.t0 : t > span.t1 ? span.t1 : t;
    /* of two at one place the first of the mesh, in any order of tests */
    if (!(t >= w->t_min && t <= w->t_end) || (w->is_hit && t == w->t_end && index >= w->polygon))
        return false;
    w->is_hit = true;
    w->t_end = t;
    w->polygon = index;
    w->normal = n;
    return true;
}

/* Is it hit, and the best so far? */
ALWAYS_INLINE bool face_test(struct walk *w, uint32_t index, const struct face *face)
{
    struct span span;

    return is_through(w, face, &span) && face_take(w, index, face, span);
}

static inline bool runs_along_gravity(const struct walk *w)
{
    double most = MESH_GRAVITY_SINE * fabs(w->d[2]);

    /* most do not, and no length is less than the larger */
    return w->s.kz == 2 && fabs(w->d[0]) <= most && fabs(w->d[1]) <= most &&
           length_xy(w->d[0], w->d[1]) <= most;
}

/* The values that the hit of a begun ray needs. */
struct begun_ray {
    double t_cube; /* where it begins: 0, or where it enters the mesh's cube */
    double t_max;  /* scaled, as the walk's numbers are */
    int exponent;
};

/* t of the hit, if there is one. */
static inline double slanted_end(const struct walk *w, const struct begun_ray *begun)
{
    double t_hit = begun->t_cube + w->t_end > 0 ? begun->t_cube + w->t_end : 0;

    return t_hit < begun->t_max ? t_hit : begun->t_max;
}

/* The exact test of a lane (struct ray_tree_line); the scalar level, and for AVX2 of polygons with
 * more corners than a triangle. */
bool mesh_lane_test_scalar(void *asker, const struct ray_tree_block *block, unsigned lane,
                           double *end);

/* Of the hit, as mesh_hit has it. */
struct vec3 mesh_normal_of_walk(const struct walk *w);

#endif
