/*
 * How a ray over a mesh begins, and one triangle, with AVX2: the three axes, or the three corners,
 * side by side, where mesh_ray.c has them one after the other.
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

enum { EXPONENT_MAX = 480 };

_Static_assert(offsetof(struct mesh_node, z_max) == offsetof(struct mesh_node, z_min) + 4 &&
                   offsetof(struct ring_sight, pad) == offsetof(struct ring_sight, o) + 24 &&
                   offsetof(struct ring_sight, inv_z) ==
                       offsetof(struct ring_sight, shear_x) + 16 &&
                   offsetof(struct walk, inv) == offsetof(struct walk, d) + 24,
               "vectors are stored over more than one member");

/* Column `i` of the rotation times a number. */
static inline __m256d turned_by(const double rotation[9], unsigned i, double by)
{
    __m128d two = _mm_loadh_pd(_mm_load_sd(&rotation[i]), &rotation[i + 3]);

    return _mm256_mul_pd(
        _mm256_insertf128_pd(_mm256_castpd128_pd256(two), _mm_load_sd(&rotation[i + 6]), 1),
        _mm256_set1_pd(by));
}

static inline __m256d turn(const double rotation[9], double x, double y, double z)
{
    return _mm256_add_pd(_mm256_add_pd(turned_by(rotation, 0, x), turned_by(rotation, 1, y)),
                         turned_by(rotation, 2, z));
}

/* kx to kz, the shears, the inverses, which are told. */
static inline __m256d sight_set(struct walk *w, __m256d d, unsigned kz)
{
    __m256d one = _mm256_set1_pd(1), turned = axes_turned(d, kz), inv = _mm256_div_pd(one, d);
    __m256d sight =
        _mm256_div_pd(_mm256_blend_pd(turned, one, 4), _mm256_permute4x64_pd(turned, 0xaa));

    w->s.kz = (int)kz;
    w->s.kx = axis_behind(w->s.kz);
    w->s.ky = axis_behind(w->s.kx);
    _mm_storeu_pd(&w->s.shear_x, _mm256_castpd256_pd128(sight));
    _mm_store_sd(&w->s.inv_z, _mm256_extractf128_pd(sight, 1));
    _mm256_storeu_pd(w->d, d); /* a lane too far, which the next one puts right */
    _mm_storeu_pd(w->inv, _mm256_castpd256_pd128(inv));
    return inv;
}

/* Where the ray enters and leaves the mesh's box; z by division, as there. */
static inline struct span box_enter(const struct walk *w, __m256d o, __m256d d, __m256d inv)
{
    const struct mesh_header *h = w->mesh->header;
    const struct mesh_node *root = w->mesh->nodes;
    __m256d near = _mm256_set1_pd(h->near);
    /* z_min and z_max; one number made a vector would be an instruction that valgrind lacks */
    __m128d zs =
        _mm_cvtps_pd(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)&root->z_min));
    __m256d low = axes_load(&h->root.x_min, zs);
    __m256d high = axes_load(&h->root.x_max, _mm_unpackhi_pd(zs, zs));

    low = _mm256_sub_pd(low, near);
    high = _mm256_add_pd(high, near);
    /* blends by the sign */
    __m256d in = _mm256_sub_pd(_mm256_blendv_pd(low, high, d), o);
    __m256d out = _mm256_sub_pd(_mm256_blendv_pd(high, low, d), o);
    __m128d z = _mm_unpacklo_pd(_mm256_extractf128_pd(in, 1), _mm256_extractf128_pd(out, 1));

    z = _mm_div_pd(z, _mm_movedup_pd(_mm256_extractf128_pd(d, 1)));
    in = _mm256_insertf128_pd(_mm256_mul_pd(in, inv), _mm_unpacklo_pd(z, _mm_setzero_pd()), 1);
    out =
        _mm256_insertf128_pd(_mm256_mul_pd(out, inv), _mm_unpackhi_pd(z, _mm_set1_pd(w->t_end)), 1);
    return (struct span){_mm256_cvtsd_f64(axes_greatest(in)), _mm256_cvtsd_f64(axes_least(out))};
}

/* The ray in the mesh's frame. */
struct turned_ray {
    __m256d o, d, inv;
    unsigned kz;
};

static inline enum walk_begin walk_begin_axes(struct walk *w, const struct mesh *mesh,
                                              const struct ray *ray, enum ray_mode mode,
                                              struct begun_ray *begun, struct turned_ray *r)
{
    const struct mesh_header *h = mesh->header;
    const struct vec3 *from = &ray->origin, *along = &ray->direction;
    __m256d o =
        turn(h->rotation, from->x - h->centre.x, from->y - h->centre.y, from->z - h->centre.z);
    __m256d d = turn(h->rotation, along->x, along->y, along->z);
    __m256i bits = axes_exponent(_mm256_blend_pd(d, _mm256_setzero_pd(), 8));
    int power = axes_exponent_of(bits);

    r->kz = axes_largest(d);
    d = _mm256_mul_pd(d, axes_power(bits));
    __m256d is_rare =
        _mm256_or_pd(_mm256_cmp_pd(axes_abs(d), _mm256_set1_pd(1 / RAY_TREE_STEEP), _CMP_NGE_UQ),
                     _mm256_cmp_pd(axes_abs(o), _mm256_set1_pd(DBL_MAX), _CMP_NLE_UQ));

    if ((_mm256_movemask_pd(is_rare) & AXES) != 0 || abs(power) > EXPONENT_MAX)
        return WALK_RARE;
    w->mesh = mesh;
    begun->t_max = w->t_end = scaled(ray->t_max, power);
    begun->exponent = power;
    w->is_any = ray_takes_any(mode);
    w->is_light = ray_is_light(mode);
    w->is_hit = false;
    w->polygon = 0;
    r->d = d;
    r->inv = sight_set(w, d, r->kz);
    if (runs_along_gravity(w))
        return WALK_RARE;
    struct span t = box_enter(w, o, d, r->inv);
    double pad = 2 * h->slack;

    if (!(t.t0 <= t.t1))
        return WALK_MISS;
    begun->inside = t;
    r->o = _mm256_add_pd(o, _mm256_mul_pd(d, _mm256_set1_pd(t.t0)));
    _mm256_storeu_pd(w->s.o, _mm256_blend_pd(r->o, _mm256_set1_pd(pad), 8));
    w->t_min = -pad;
    w->t_end = t.t1 - t.t0 + pad;
    return WALK_BEGUN;
}

enum walk_begin mesh_walk_begin_avx2(struct walk *w, const struct mesh *mesh, const struct ray *ray,
                                     enum ray_mode mode, struct begun_ray *begun)
{
    struct turned_ray r;

    return walk_begin_axes(w, mesh, ray, mode, begun, &r);
}

enum walk_begin mesh_walk_run_avx2(struct walk *w, const struct mesh *mesh, const struct ray *ray,
                                   enum ray_mode mode,
                                   bool (*test)(void *asker, const struct ray_tree_block *block,
                                                unsigned lane, double *end),
                                   struct begun_ray *begun)
{
    const struct ray_tree *tree = &mesh->rays.first;
    struct turned_ray r;
    struct ray_tree_line line; /* what a walk that has begun still asks of it */
    struct ray_tree_walk walk;
    enum walk_begin how = walk_begin_axes(w, mesh, ray, mode, begun, &r);

    if (how != WALK_BEGUN)
        return how;
    line.is_any = w->is_any;
    line.test = test;
    line.asker = w;
    walk.tree = tree;
    walk.line = &line;
    walk.t_base = 0;
    walk.t_to_u = tree->scale;
    walk.end = ray_tree_end(&walk, w->t_end);
    if (ray_tree_begin_at(tree, r.o, r.d, r.inv, r.kz, &walk))
        ray_tree_walk_avx2(&walk);
    return WALK_BEGUN;
}

/* One axis of three corners, and of the last again, from the origin. */
static inline __m256d corners_axis(const struct walk *w, const double *const corner[3], int axis)
{
    __m128d two = _mm_loadh_pd(_mm_load_sd(corner[0] + axis), corner[1] + axis);
    __m128d last = _mm_loaddup_pd(corner[2] + axis);

    return _mm256_sub_pd(_mm256_insertf128_pd(_mm256_castpd128_pd256(two), last, 1),
                         _mm256_set1_pd(w->s.o[axis]));
}

bool mesh_triangle_test_avx2(struct walk *w, uint32_t index, const uint32_t corners[3])
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
    __m256d turn = _mm256_sub_pd(_mm256_mul_pd(x_before, y), _mm256_mul_pd(y_before, x));
    __m256d slack = _mm256_mul_pd(
        _mm256_set1_pd(w->s.pad),
        _mm256_add_pd(axes_abs(_mm256_sub_pd(x, x_before)), axes_abs(_mm256_sub_pd(y, y_before))));
    __m256d no = _mm256_sub_pd(_mm256_setzero_pd(), slack);
    int left = _mm256_movemask_pd(_mm256_cmp_pd(turn, no, _CMP_GE_OQ)) & AXES;
    int right = _mm256_movemask_pd(_mm256_cmp_pd(turn, slack, _CMP_LE_OQ)) & AXES;
    struct span span = {_mm256_cvtsd_f64(axes_least(t)), _mm256_cvtsd_f64(axes_greatest(t))};

    return (left == AXES || right == AXES) && span.t0 <= w->t_end && span.t1 >= w->t_min &&
           ring_take(w, index, corners, 3, span);
}

#endif
