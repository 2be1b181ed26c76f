/*
 * A ray on its way through a mesh, and one polygon: what mesh_ray.c and its form with AVX2 share.
 * Inside of the room only.
 */
#ifndef KOTA_TERRAIN_MESH_WALK_H
#define KOTA_TERRAIN_MESH_WALK_H

#include "terrain/mesh_data.h"
#include "terrain/pieces.h"
#include "terrain/ray_tree_levels.h"
#include "terrain/ring.h"

#include <float.h>

#define SIDEWAYS 1e-14 /* cosine between ray and normal: seen from its side */

struct walk {
    const struct mesh *mesh;
    struct ring_sight s; /* in the mesh's frame */
    double d[3];         /* scaled to about 1 */
    double inv[2];
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
ALWAYS_INLINE bool is_through(const struct walk *w, const uint32_t *corners, uint32_t count,
                              struct span *t)
{
    return ring_is_through(&w->s, w->mesh->vertices, corners, count, &t->t0, &t->t1) &&
           t->t0 <= w->t_end && t->t1 >= w->t_min;
}

/* Of a polygon that the ray goes through, with t of its corners: is it hit, and the best so far? */
ALWAYS_INLINE bool ring_take(struct walk *w, uint32_t index, const uint32_t *corners,
                             uint32_t count, struct span span)
{
    const struct vec3 *vertices = w->mesh->vertices;
    struct vec3 n = piece_normal(vertices, corners, count);
    struct vec3 v = vertices[corners[0]];
    double across = n.x * w->d[0] + n.y * w->d[1] + n.z * w->d[2];
    double t =
        (n.x * (v.x - w->s.o[0]) + n.y * (v.y - w->s.o[1]) + n.z * (v.z - w->s.o[2])) / across;

    if (__builtin_expect(ring_is_within(&w->s, RING_NARROW, across, n, span.t0, span.t1), 0)) {
        bool is_sideways = !is_across(across, SIDEWAYS, n) ||
                           ring_is_within(&w->s, RING_SIDEWAYS, across, n, span.t0, span.t1);

        if ((w->is_light && is_sideways) ||
            !ring_edge_on(&w->s, vertices, corners, count, &span.t0, &span.t1))
            return false;
        if (is_sideways)
            t = w->t_min > span.t0 ? w->t_min : span.t0;
    }
    t = t < span.t0 ? span.t0 : t > span.t1 ? span.t1 : t;
    /* of two at one place the first of the mesh, in whatever order they are asked */
    if (!(t >= w->t_min && t <= w->t_end) || (w->is_hit && t == w->t_end && index >= w->polygon))
        return false;
    w->is_hit = true;
    w->t_end = t;
    w->polygon = index;
    w->normal = n;
    return true;
}

/* Is it hit, and the best so far? */
ALWAYS_INLINE bool ring_test(struct walk *w, uint32_t index, const uint32_t *corners,
                             uint32_t count)
{
    struct span span;

    return is_through(w, corners, count, &span) && ring_take(w, index, corners, count, span);
}

static inline bool runs_along_gravity(const struct walk *w)
{
    const struct mesh *m = w->mesh;
    double height = (double)m->nodes[0].z_max - (double)m->nodes[0].z_min;

    /* most do not, and hypot is no less than the larger */
    return w->s.kz == 2 && fabs(w->d[0]) * height <= m->header->slack * fabs(w->d[2]) &&
           fabs(w->d[1]) * height <= m->header->slack * fabs(w->d[2]) &&
           hypot(w->d[0], w->d[1]) * height <= m->header->slack * fabs(w->d[2]);
}

/* What it takes to tell the hit of a ray that was begun. */
struct begun_ray {
    struct span inside; /* the mesh's box */
    double t_max;       /* scaled, as the walk's numbers are */
    int exponent;
};

/* t of what was met, if anything was. */
static inline double slanted_end(const struct walk *w, struct span t, double t_max)
{
    double t_hit = t.t0 + w->t_end > 0 ? t.t0 + w->t_end : 0;

    return t_hit < t_max ? t_hit : t_max;
}

/*
 * With AVX2, mesh_ray_avx2.c: walk_set, enter_box and slanted_begin in one, the same bits. RARE:
 * nothing is done; for the general way (rays along an axis or gravity, numbers that are too large).
 */
enum walk_begin { WALK_RARE, WALK_MISS, WALK_BEGUN };

enum walk_begin mesh_walk_begin_avx2(struct walk *w, const struct mesh *mesh, const struct ray *ray,
                                     enum ray_mode mode, struct begun_ray *begun);

/* tree_test of mesh_ray.c: triangles by vectors. */
bool mesh_lane_test_avx2(void *asker, const struct ray_tree_block *block, unsigned lane,
                         double *end);

/* mesh_ray over a mesh's only tree: WALK_BEGUN: it is hit. */
enum walk_begin mesh_ray_avx2(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                              struct mesh_hit *hit);

/* tree_test of mesh_ray.c, which that leaves polygons with more corners to. */
bool mesh_part_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end);

/* Of the hit, as mesh_hit has it. */
struct vec3 mesh_normal_tell(const struct walk *w);

#endif
