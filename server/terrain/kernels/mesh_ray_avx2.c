/*
 * A ray over a mesh with AVX2: how it begins, one triangle, and the hit. The three
 * axes, or the three corners, are side by side, where mesh_ray.c has them one after the other. Of a
 * mesh with one tree the whole walk is in one function, once for the nearest and once for any hit.
 *
 * Every operation is the one that mesh_ray.c and woop.h do, in the same order and rounded as often,
 * so that all levels give the same bits. Cases that need a branch are left to them: rays along an
 * axis, whose component is 0, or along gravity, and numbers that are too large or too small.
 */
#ifdef __AVX2__

#include "terrain/bvh/axes.h"
#include "terrain/mesh/mesh_walk.h"
#include "terrain/bvh/ray_tree_begin.h"

#include <stddef.h>

ALWAYS_INLINE bool lane_test(void *asker, const struct ray_tree_block *block, unsigned lane,
                             double *end);

#define RAY_TREE_TEST(line, block, lane, end) lane_test((line)->asker, block, lane, end)
#define RAY_TREE_AHEAD 4 /* cache lines */
#include "terrain/bvh/ray_tree_walk.h"

enum { EXPONENT_MAX = 480 };

_Static_assert(offsetof(struct woop_ray, pad) == offsetof(struct woop_ray, o) + 24 &&
                   offsetof(struct woop_ray, inv_z) == offsetof(struct woop_ray, shear_x) + 16 &&
                   offsetof(struct walk, t_min) == offsetof(struct walk, d) + 24 &&
                   offsetof(struct mesh_hit, normal) == offsetof(struct mesh_hit, point) + 24 &&
                   offsetof(struct mesh_hit, polygon) == offsetof(struct mesh_hit, normal) + 24 &&
                   sizeof(struct mesh_hit) >= offsetof(struct mesh_hit, normal) + 32 &&
                   offsetof(struct ray, direction) == offsetof(struct ray, origin) + 24 &&
                   offsetof(struct ray, t_max) == offsetof(struct ray, direction) + 24 &&
                   offsetof(struct mesh_header, centre) ==
                       offsetof(struct mesh_header, rotation) + 72,
               "vectors are loaded and stored over more than one member");

/* A place or direction, turned into the mesh's frame. */
static inline f64x4 turn(const struct mesh_ray_frame *f, f64x4 x, f64x4 y, f64x4 z)
{
    x = f64x4_load(f->column[0]) * x;
    y = f64x4_load(f->column[1]) * y;
    z = f64x4_load(f->column[2]) * z;
    return x + y + z;
}

static inline f64x4 from_centre(const struct mesh_ray_frame *f, double at, unsigned axis)
{
    return f64x4_all(at) - f64x4_load(f->centre[axis]);
}

/* The ray in the mesh's frame. */
struct turned_ray {
    f64x4 o, d, inv;
    i64x4 exponent; /* of d, which is scaled by it; axes_exponents */
    unsigned kz;
};

/* False: it is rare. */
static inline bool ray_turn(const struct mesh_ray_frame *f, const struct ray *ray,
                            struct turned_ray *r)
{
    const struct vec3 *from = &ray->origin, *along = &ray->direction;
    f64x4 d = turn(f, f64x4_all(along->x), f64x4_all(along->y), f64x4_all(along->z));
    f64x4 sizes = f64x4_abs(d), greatest = axes_greatest(sizes); /* lane 3: 0 */
    unsigned is_largest = (unsigned)i64x4_signs(f64x4_eq(sizes, greatest)) & AXES;

    /* powers of two change no digit; the division need not wait for them */
    r->exponent = axes_exponents(greatest);
    r->inv = f64x4_all(1) / d * axes_power_back(r->exponent);
    r->d = d * axes_power(r->exponent);
    r->o =
        turn(f, from_centre(f, from->x, 0), from_centre(f, from->y, 1), from_centre(f, from->z, 2));
    r->kz = 31 - (unsigned)__builtin_clz(is_largest | 1);

    i64x4 is_rare = f64x4_not_ge(f64x4_abs(r->d), f64x4_all(1 / RAY_TREE_STEEP)) |
                    f64x4_not_le(f64x4_abs(r->o), f64x4_all(DBL_MAX));

    return (i64x4_signs(is_rare) & AXES) == 0 && abs(axes_exponent_of(r->exponent)) <= EXPONENT_MAX;
}

/* kx to kz, the shears, the inverses. */
static inline void sight_set(struct walk *w, const struct turned_ray *r)
{
    f64x4 turned = axes_turned(r->d, r->kz);
    f64x4 sight = f64x4_put_third(turned, f64x4_all(1)) / f64x4_all_third(turned);

    w->s.kz = (int)r->kz;
    w->s.kx = axis_after(w->s.kz);
    w->s.ky = axis_after(w->s.kx);
    f64x2_store(&w->s.shear_x, f64x4_low(sight));
    w->s.inv_z = sight[2];
    f64x4_store(w->d, r->d); /* a lane too far, which is set after it */
}

/* Where the ray enters the mesh's cube, and the least of where it leaves that and its own end. */
static inline struct span cube_enter(const struct turned_ray *r, double reach, double t_end)
{
    f64x4 side = f64x4_xor(f64x4_all(reach), f64x4_and(f64x4_all(-0.0), r->d));
    f64x4 back = f64x4_all(0) - side;
    f64x4 in = (back - r->o) / r->d;
    f64x4 out = (side - r->o) / r->d;

    in = f64x4_put_last(in, f64x4_all(0));
    out = f64x4_put_last(out, f64x4_all(t_end));
    return (struct span){axes_greatest(in)[0], axes_least(out)[0]};
}

/* All that the exact tests need; an r->o outside of the mesh's cube becomes where it enters. */
ALWAYS_INLINE enum walk_begin walk_set(struct walk *w, const struct mesh *mesh,
                                       const struct ray *ray, enum ray_mode mode,
                                       struct turned_ray *r, struct begun_ray *begun)
{
    double pad = 2 * mesh->header->slack, reach = mesh_reach(mesh);
    i64x4 is_far = f64x4_not_le(f64x4_abs(r->o), f64x4_all(reach));

    w->mesh = mesh;
    begun->t_max = ray->t_max * axes_power_back(r->exponent)[0];
    begun->exponent = axes_exponent_of(r->exponent);
    w->is_any = ray_takes_any(mode);
    w->is_light = ray_is_light(mode);
    w->is_hit = false;
    w->polygon = 0;
    sight_set(w, r);
    if (runs_along_gravity(w))
        return WALK_RARE;
    begun->t_cube = 0;
    if (i64x4_signs(is_far) & AXES) {
        struct span inside = cube_enter(r, reach, begun->t_max);

        if (!(inside.t0 <= inside.t1))
            return WALK_MISS;
        begun->t_cube = inside.t0;
        r->o = r->o + r->d * f64x4_all(inside.t0);
    }
    f64x4_store(w->s.o, f64x4_put_last(r->o, f64x4_all(pad)));
    w->t_min = -pad;
    w->t_end = begun->t_max - begun->t_cube + pad;
    return WALK_BEGUN;
}

enum walk_begin mesh_walk_begin_avx2(struct walk *w, const struct mesh *mesh, const struct ray *ray,
                                     enum ray_mode mode, struct begun_ray *begun)
{
    struct turned_ray r;

    if (!ray_turn(&mesh->rays.frame, ray, &r))
        return WALK_RARE;
    return walk_set(w, mesh, ray, mode, &r, begun);
}

/* One axis of three corners, and of the last again, from the origin. */
static inline f64x4 corners_axis(const struct walk *w, const struct face *face, int axis)
{
    const uint32_t *k = face->corners;
    f64x4 at;

    if (face->points.narrow) {
        const float(*p)[3] = face->points.narrow;

        at = f64x4_of_floats((f32x4){p[k[0]][axis], p[k[1]][axis], p[k[2]][axis], p[k[2]][axis]});
    } else {
        const double *p = &face->points.wide->x;

        at = (f64x4){p[3 * (size_t)k[0] + (size_t)axis], p[3 * (size_t)k[1] + (size_t)axis],
                     p[3 * (size_t)k[2] + (size_t)axis], p[3 * (size_t)k[2] + (size_t)axis]};
    }
    return at - f64x4_all(w->s.o[axis]);
}

ALWAYS_INLINE bool triangle_test(struct walk *w, uint32_t index, const struct face *face)
{
    f64x4 z = corners_axis(w, face, w->s.kz);
    f64x4 x = corners_axis(w, face, w->s.kx) - f64x4_all(w->s.shear_x) * z;
    f64x4 y = corners_axis(w, face, w->s.ky) - f64x4_all(w->s.shear_y) * z;
    f64x4 t = z * f64x4_all(w->s.inv_z);
    f64x4 x_before = f64x4_before(x), y_before = f64x4_before(y);
    f64x4 turns = x_before * y - y_before * x;
    f64x4 slack = f64x4_all(w->s.pad) * (f64x4_abs(x - x_before) + f64x4_abs(y - y_before));
    f64x4 no = f64x4_all(0) - slack;
    unsigned left = i64x4_signs(f64x4_ge(turns, no)) & AXES;
    unsigned right = i64x4_signs(f64x4_le(turns, slack)) & AXES;
    struct span span = {axes_least(t)[0], axes_greatest(t)[0]};

    return (left == AXES || right == AXES) && span.t0 <= w->t_end && span.t1 >= w->t_min &&
           face_take(w, index, face, span);
}

ALWAYS_INLINE bool lane_test(void *asker, const struct ray_tree_block *block, unsigned lane,
                             double *end)
{
    struct walk *w = asker;
    uint32_t polygon = block->polygon[lane];

    if (polygon & RAY_TREE_PART)
        return mesh_lane_test_scalar(asker, block, lane, end);
    __builtin_prefetch(&w->mesh->polygons[polygon]); /* for the hit */
    struct face face = mesh_face(w->mesh, polygon);

    face.count = 3;
    if (!triangle_test(w, polygon, &face))
        return false;
    *end = w->t_end;
    return true;
}

bool mesh_lane_test_avx2(void *asker, const struct ray_tree_block *block, unsigned lane,
                         double *end)
{
    return lane_test(asker, block, lane, end);
}

/* x + y + z, in that order. */
static inline double axes_sum(f64x4 a)
{
    f64x2 xy = f64x4_low(a);

    return xy[0] + f64x2_seconds(xy)[0] + f64x4_high(a)[0];
}

/* Of one with finite numbers that are not all 0: slanted_normal. */
static inline f64x4 normal_of_walk(const struct walk *w, f64x4 n, f64x4 sizes)
{
    const struct mesh_polygon *p = &w->mesh->polygons[w->polygon];
    const double *r = w->mesh->header->rotation;
    double along = axes_sum(n * f64x4_load(w->d));
    bool is_away = mesh_is_wall(p) ? along > 0 : w->normal.z < 0;

    n = f64x4_xor(n, f64x4_all(is_away ? -0.0 : 0.0));
    n = n / axes_greatest(sizes);
    n = n * f64x4_all(1 / sqrt(axes_sum(n * n)));
    return f64x4_load(r) * f64x4_all_first(n) + f64x4_load(r + 3) * f64x4_all_second(n) +
           f64x4_load(r + 6) * f64x4_all_third(n);
}

/* slanted_hit */
static inline bool hit_write(const struct walk *w, const struct ray *ray,
                             const struct begun_ray *begun, struct mesh_hit *hit)
{
    double t = scaled(slanted_end(w, begun), -begun->exponent);
    f64x4 n = axes_of((const double *)(const void *)&w->normal), sizes = f64x4_abs(n);
    f64x4 along = f64x4_load(&ray->direction.x), most = f64x4_all(DBL_MAX);

    t = t < ray->t_max ? t : ray->t_max;
    if (!isfinite(t))
        return false;
    hit->t = t;
    f64x4_store(&hit->point.x, f64x4_load(&ray->origin.x) + along * f64x4_all(t));
    if (i64x4_signs(f64x4_le(sizes, most)) == 15 && i64x4_signs(f64x4_gt(sizes, f64x4_all(0))) != 0)
        f64x4_store(&hit->normal.x, normal_of_walk(w, n, sizes));
    else
        hit->normal = mesh_normal_of_walk(w);
    hit->polygon = mesh_source(w->mesh, w->polygon); /* after the lane too far of the normal */
    return true;
}

/* From where it enters the tree's box; false: it passes. */
static __attribute__((noinline)) bool far_begin(const struct ray_tree *tree,
                                                const struct turned_ray *r, double t_end,
                                                struct ray_tree_walk *walk)
{
    double t0, t1;

    if (!axes_clip(tree, r->o, r->inv, 0, t_end, &t0, &t1))
        return false;
    f64x4 o = r->o + r->d * f64x4_all(t0);

    walk->t_base = t0;
    return ray_tree_begin_at(tree, o, r->d, r->inv, r->kz, RAY_TREE_FAR_OFF, walk);
}

/* `is_any`: known when this is compiled. */
ALWAYS_INLINE enum walk_begin ray_run(const struct mesh *mesh, const struct ray *ray,
                                      enum ray_mode mode, bool is_any, struct mesh_hit *hit)
{
    const struct ray_tree *tree = &mesh->rays.first;
    struct walk w;
    struct begun_ray begun;
    struct turned_ray r;
    struct ray_tree_line line; /* the members that a walk uses after its beginning */
    struct ray_tree_walk walk;
    enum walk_begin how;

    if (!ray_turn(&mesh->rays.frame, ray, &r))
        return WALK_RARE;
    /* where the ray begins near the tree, no box is waited for */
    bool is_near = ray_tree_begin_at(tree, r.o, r.d, r.inv, r.kz, RAY_TREE_NEAR, &walk);

    how = walk_set(&w, mesh, ray, mode, &r, &begun);
    if (how != WALK_BEGUN)
        return how;
    line.is_any = is_any;
    line.asker = &w;
    walk.tree = tree;
    walk.line = &line;
    walk.t_base = -begun.t_cube;
    walk.t_to_u = tree->scale;
    if (!is_near && !far_begin(tree, &r, w.t_end, &walk))
        return WALK_MISS;
    walk.end = ray_tree_end(&walk, w.t_end);
    walk_run(&walk, is_any, false);
    if (!w.is_hit)
        return WALK_MISS;
    return hit_write(&w, ray, &begun, hit) ? WALK_BEGUN : WALK_MISS;
}

enum walk_begin mesh_ray_avx2(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                              struct mesh_hit *hit)
{
    return ray_takes_any(mode) ? ray_run(mesh, ray, mode, true, hit)
                               : ray_run(mesh, ray, mode, false, hit);
}

#endif
