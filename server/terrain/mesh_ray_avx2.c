/*
 * A ray over a mesh with AVX2: how it begins, one triangle, and what is told of the hit. The three
 * axes, or the three corners, are side by side, where mesh_ray.c has them one after the other. Of a
 * mesh with one tree the whole walk is in one function, once for the nearest and once for any hit.
 *
 * Every operation is the one that mesh_ray.c and ring.h do, in the same order and rounded as often,
 * so that all levels give the same bits. What needs a branch is left to them: rays along an axis,
 * whose component is 0, or along gravity, and numbers that are too large or too small.
 */
#ifdef __AVX2__

#include "terrain/axes.h"
#include "terrain/mesh_walk.h"
#include "terrain/ray_tree_begin.h"

#include <stddef.h>

ALWAYS_INLINE bool lane_test(void *asker, const struct ray_tree_block *block, unsigned lane,
                             double *end);

#define RAY_TREE_TEST(line, block, lane, end) lane_test((line)->asker, block, lane, end)
#define RAY_TREE_AHEAD 4 /* cache lines */
#include "terrain/ray_tree_walk.h"

enum { EXPONENT_MAX = 480 };

_Static_assert(offsetof(struct ring_sight, pad) == offsetof(struct ring_sight, o) + 24 &&
                   offsetof(struct ring_sight, inv_z) ==
                       offsetof(struct ring_sight, shear_x) + 16 &&
                   offsetof(struct walk, inv) == offsetof(struct walk, d) + 24 &&
                   offsetof(struct mesh_hit, normal) == offsetof(struct mesh_hit, point) + 24 &&
                   offsetof(struct mesh_hit, polygon) == offsetof(struct mesh_hit, normal) + 24 &&
                   sizeof(struct mesh_hit) >= offsetof(struct mesh_hit, normal) + 32 &&
                   offsetof(struct ray, direction) == offsetof(struct ray, origin) + 24 &&
                   offsetof(struct ray, t_max) == offsetof(struct ray, direction) + 24 &&
                   offsetof(struct mesh_header, centre) ==
                       offsetof(struct mesh_header, rotation) + 72,
               "vectors are loaded and stored over more than one member");

/* A place or direction, turned into the mesh's frame. */
static inline __m256d turn(const struct mesh_ray_frame *f, __m256d x, __m256d y, __m256d z)
{
    x = _mm256_mul_pd(_mm256_loadu_pd(f->column[0]), x);
    y = _mm256_mul_pd(_mm256_loadu_pd(f->column[1]), y);
    z = _mm256_mul_pd(_mm256_loadu_pd(f->column[2]), z);
    return _mm256_add_pd(_mm256_add_pd(x, y), z);
}

static inline __m256d from_centre(const struct mesh_ray_frame *f, double at, unsigned axis)
{
    return _mm256_sub_pd(_mm256_set1_pd(at), _mm256_loadu_pd(f->centre[axis]));
}

/* The ray in the mesh's frame. */
struct turned_ray {
    __m256d o, d, inv;
    __m256i exponent; /* of d, which is scaled by it; axes_exponent */
    unsigned kz;
};

/* False: it is rare. */
static inline bool ray_turn(const struct mesh_ray_frame *f, const struct ray *ray,
                            struct turned_ray *r)
{
    const struct vec3 *from = &ray->origin, *along = &ray->direction;
    __m256d d =
        turn(f, _mm256_set1_pd(along->x), _mm256_set1_pd(along->y), _mm256_set1_pd(along->z));
    __m256d sizes = axes_abs(d), greatest = axes_greatest(sizes); /* lane 3: 0 */
    unsigned is_largest =
        (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(sizes, greatest, _CMP_EQ_OQ)) & AXES;

    /* powers of two change no digit; the division need not wait for them */
    r->exponent = axes_exponents(greatest);
    r->inv = _mm256_mul_pd(_mm256_div_pd(_mm256_set1_pd(1), d), axes_power_back(r->exponent));
    r->d = _mm256_mul_pd(d, axes_power(r->exponent));
    r->o =
        turn(f, from_centre(f, from->x, 0), from_centre(f, from->y, 1), from_centre(f, from->z, 2));
    r->kz = 31 - (unsigned)__builtin_clz(is_largest | 1);

    __m256d is_rare =
        _mm256_or_pd(_mm256_cmp_pd(axes_abs(r->d), _mm256_set1_pd(1 / RAY_TREE_STEEP), _CMP_NGE_UQ),
                     _mm256_cmp_pd(axes_abs(r->o), _mm256_set1_pd(DBL_MAX), _CMP_NLE_UQ));

    return (_mm256_movemask_pd(is_rare) & AXES) == 0 &&
           abs(axes_exponent_of(r->exponent)) <= EXPONENT_MAX;
}

/* kx to kz, the shears, the inverses. */
static inline void sight_set(struct walk *w, const struct turned_ray *r)
{
    __m256d turned = axes_turned(r->d, r->kz);
    __m256d sight = _mm256_div_pd(_mm256_blend_pd(turned, _mm256_set1_pd(1), 4),
                                  _mm256_permute4x64_pd(turned, 0xaa));

    w->s.kz = (int)r->kz;
    w->s.kx = axis_behind(w->s.kz);
    w->s.ky = axis_behind(w->s.kx);
    _mm_storeu_pd(&w->s.shear_x, _mm256_castpd256_pd128(sight));
    _mm_store_sd(&w->s.inv_z, _mm256_extractf128_pd(sight, 1));
    _mm256_storeu_pd(w->d, r->d); /* a lane too far, which the next one puts right */
    _mm_storeu_pd(w->inv, _mm256_castpd256_pd128(r->inv));
}

/* Where the ray enters and leaves the mesh's box; z by division, as there. */
static inline struct span box_enter(const struct mesh_ray_frame *f, const struct turned_ray *r,
                                    double t_end)
{
    __m256d low = _mm256_loadu_pd(f->low), high = _mm256_loadu_pd(f->high);
    /* blends by the sign */
    __m256d near = _mm256_sub_pd(_mm256_blendv_pd(low, high, r->d), r->o);
    __m256d far = _mm256_sub_pd(_mm256_blendv_pd(high, low, r->d), r->o);
    __m256d in = _mm256_blend_pd(_mm256_mul_pd(near, r->inv), _mm256_div_pd(near, r->d), 4);
    __m256d out = _mm256_blend_pd(_mm256_mul_pd(far, r->inv), _mm256_div_pd(far, r->d), 4);

    in = _mm256_blend_pd(in, _mm256_setzero_pd(), 8);
    out = _mm256_blend_pd(out, _mm256_set1_pd(t_end), 8);
    return (struct span){_mm256_cvtsd_f64(axes_greatest(in)), _mm256_cvtsd_f64(axes_least(out))};
}

/* All that the exact tests ask for; r->o becomes where the ray enters the mesh's box. */
ALWAYS_INLINE enum walk_begin walk_set(struct walk *w, const struct mesh *mesh,
                                       const struct ray *ray, enum ray_mode mode,
                                       struct turned_ray *r, struct begun_ray *begun)
{
    double pad = 2 * mesh->header->slack;

    w->mesh = mesh;
    begun->t_max = ray->t_max * _mm256_cvtsd_f64(axes_power_back(r->exponent));
    begun->exponent = axes_exponent_of(r->exponent);
    w->is_any = ray_takes_any(mode);
    w->is_light = ray_is_light(mode);
    w->is_hit = false;
    w->polygon = 0;
    sight_set(w, r);
    if (runs_along_gravity(w))
        return WALK_RARE;
    begun->inside = box_enter(&mesh->rays.frame, r, begun->t_max);
    if (!(begun->inside.t0 <= begun->inside.t1))
        return WALK_MISS;
    r->o = _mm256_add_pd(r->o, _mm256_mul_pd(r->d, _mm256_set1_pd(begun->inside.t0)));
    _mm256_storeu_pd(w->s.o, _mm256_blend_pd(r->o, _mm256_set1_pd(pad), 8));
    w->t_min = -pad;
    w->t_end = begun->inside.t1 - begun->inside.t0 + pad;
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
static inline __m256d corners_axis(const struct walk *w, const double *const corner[3], int axis)
{
    __m128d two = _mm_loadh_pd(_mm_load_sd(corner[0] + axis), corner[1] + axis);
    __m128d last = _mm_loaddup_pd(corner[2] + axis);

    return _mm256_sub_pd(_mm256_insertf128_pd(_mm256_castpd128_pd256(two), last, 1),
                         _mm256_set1_pd(w->s.o[axis]));
}

ALWAYS_INLINE bool triangle_test(struct walk *w, uint32_t index, const uint32_t corners[3])
{
    const struct vec3 *vertices = w->mesh->vertices;
    const double *const corner[3] = {&vertices[corners[0]].x, &vertices[corners[1]].x,
                                     &vertices[corners[2]].x};
    __m256d z = corners_axis(w, corner, w->s.kz);
    __m256d x = _mm256_sub_pd(corners_axis(w, corner, w->s.kx),
                              _mm256_mul_pd(_mm256_set1_pd(w->s.shear_x), z));
    __m256d y = _mm256_sub_pd(corners_axis(w, corner, w->s.ky),
                              _mm256_mul_pd(_mm256_set1_pd(w->s.shear_y), z));
    __m256d t = _mm256_mul_pd(z, _mm256_set1_pd(w->s.inv_z));
    __m256d x_before = _mm256_permute4x64_pd(x, 0x92), y_before = _mm256_permute4x64_pd(y, 0x92);
    __m256d turns = _mm256_sub_pd(_mm256_mul_pd(x_before, y), _mm256_mul_pd(y_before, x));
    __m256d slack = _mm256_mul_pd(
        _mm256_set1_pd(w->s.pad),
        _mm256_add_pd(axes_abs(_mm256_sub_pd(x, x_before)), axes_abs(_mm256_sub_pd(y, y_before))));
    __m256d no = _mm256_sub_pd(_mm256_setzero_pd(), slack);
    int left = _mm256_movemask_pd(_mm256_cmp_pd(turns, no, _CMP_GE_OQ)) & AXES;
    int right = _mm256_movemask_pd(_mm256_cmp_pd(turns, slack, _CMP_LE_OQ)) & AXES;
    struct span span = {_mm256_cvtsd_f64(axes_least(t)), _mm256_cvtsd_f64(axes_greatest(t))};

    return (left == AXES || right == AXES) && span.t0 <= w->t_end && span.t1 >= w->t_min &&
           ring_take(w, index, corners, 3, span);
}

ALWAYS_INLINE bool lane_test(void *asker, const struct ray_tree_block *block, unsigned lane,
                             double *end)
{
    struct walk *w = asker;
    uint32_t polygon = block->polygon[lane];
    const uint32_t corners[3] = {block->vertex[0][lane], block->vertex[1][lane],
                                 block->vertex[2][lane]};

    if (polygon & RAY_TREE_PART)
        return mesh_part_test(asker, block, lane, end);
    __builtin_prefetch(&w->mesh->polygons[polygon].source); /* told in the end */
    if (!triangle_test(w, polygon, corners))
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
static inline double axes_sum(__m256d a)
{
    __m128d xy = _mm256_castpd256_pd128(a);

    return _mm_cvtsd_f64(xy) + _mm_cvtsd_f64(_mm_unpackhi_pd(xy, xy)) +
           _mm_cvtsd_f64(_mm256_extractf128_pd(a, 1));
}

/* Of one with finite numbers that are not all 0: slanted_normal. */
static inline __m256d normal_tell(const struct walk *w, __m256d n, __m256d sizes)
{
    const struct mesh_polygon *p = &w->mesh->polygons[w->polygon];
    const double *r = w->mesh->header->rotation;
    double along = axes_sum(_mm256_mul_pd(n, _mm256_loadu_pd(w->d)));
    bool is_away = p->is_wall ? along > 0 : w->normal.z < 0;

    n = _mm256_xor_pd(n, _mm256_set1_pd(is_away ? -0.0 : 0.0));
    n = _mm256_div_pd(n, axes_greatest(sizes));
    n = _mm256_mul_pd(n, _mm256_set1_pd(1 / sqrt(axes_sum(_mm256_mul_pd(n, n)))));
    return _mm256_add_pd(
        _mm256_add_pd(_mm256_mul_pd(_mm256_loadu_pd(r), _mm256_permute4x64_pd(n, 0)),
                      _mm256_mul_pd(_mm256_loadu_pd(r + 3), _mm256_permute4x64_pd(n, 0x55))),
        _mm256_mul_pd(_mm256_loadu_pd(r + 6), _mm256_permute4x64_pd(n, 0xaa)));
}

/* slanted_hit */
static inline bool hit_tell(const struct walk *w, const struct ray *ray,
                            const struct begun_ray *begun, struct mesh_hit *hit)
{
    double t = scaled(slanted_end(w, begun->inside, begun->t_max), -begun->exponent);
    __m256d n = axes_of((const double *)(const void *)&w->normal), sizes = axes_abs(n);
    __m256d along = _mm256_loadu_pd(&ray->direction.x), most = _mm256_set1_pd(DBL_MAX);

    t = t < ray->t_max ? t : ray->t_max;
    if (!isfinite(t))
        return false;
    hit->t = t;
    _mm256_storeu_pd(&hit->point.x, _mm256_add_pd(_mm256_loadu_pd(&ray->origin.x),
                                                  _mm256_mul_pd(along, _mm256_set1_pd(t))));
    if (_mm256_movemask_pd(_mm256_cmp_pd(sizes, most, _CMP_LE_OQ)) == 15 &&
        _mm256_movemask_pd(_mm256_cmp_pd(sizes, _mm256_setzero_pd(), _CMP_GT_OQ)) != 0)
        _mm256_storeu_pd(&hit->normal.x, normal_tell(w, n, sizes));
    else
        hit->normal = mesh_normal_tell(w);
    hit->polygon = w->mesh->polygons[w->polygon].source; /* after the lane too far of the normal */
    return true;
}

/* From where it enters the mesh's box. */
static __attribute__((noinline)) bool far_begin(const struct ray_tree *tree,
                                                const struct turned_ray *r,
                                                struct ray_tree_walk *walk)
{
    return ray_tree_begin_at(tree, r->o, r->d, r->inv, r->kz, RAY_TREE_FAR_OFF, walk);
}

/* `is_any`: known when this is compiled. */
ALWAYS_INLINE enum walk_begin ray_run(const struct mesh *mesh, const struct ray *ray,
                                      enum ray_mode mode, bool is_any, struct mesh_hit *hit)
{
    const struct ray_tree *tree = &mesh->rays.first;
    struct walk w;
    struct begun_ray begun;
    struct turned_ray r;
    struct ray_tree_line line; /* what a walk that has begun still asks of it */
    struct ray_tree_walk walk;
    enum walk_begin how;

    if (!ray_turn(&mesh->rays.frame, ray, &r))
        return WALK_RARE;
    /* the tree's beginning waits for no box where the ray begins near it */
    bool is_near = ray_tree_begin_at(tree, r.o, r.d, r.inv, r.kz, RAY_TREE_NEAR, &walk);

    how = walk_set(&w, mesh, ray, mode, &r, &begun);
    if (how != WALK_BEGUN)
        return how;
    line.is_any = is_any;
    line.asker = &w;
    walk.tree = tree;
    walk.line = &line;
    walk.t_base = is_near ? -begun.inside.t0 : 0;
    walk.t_to_u = tree->scale;
    walk.end = ray_tree_end(&walk, w.t_end);
    if (!is_near && !far_begin(tree, &r, &walk))
        return WALK_MISS;
    walk_run(&walk, is_any);
    if (!w.is_hit)
        return WALK_MISS;
    return hit_tell(&w, ray, &begun, hit) ? WALK_BEGUN : WALK_MISS;
}

enum walk_begin mesh_ray_avx2(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                              struct mesh_hit *hit)
{
    return ray_takes_any(mode) ? ray_run(mesh, ray, mode, true, hit)
                               : ray_run(mesh, ray, mode, false, hit);
}

#endif
