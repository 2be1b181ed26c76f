/*
 * Cells and the answers of the rays that hit, a lane each: abreast_pass and abreast_pieces of
 * ray_abreast.h, then ray_end of ray_ends.h. For ray_turns.h only; ray_end_eight.h is the same for
 * eight lanes with masks.
 *
 * Every operation is the one of ray_ends.h and triangle_normal, in the same order and rounded as
 * often (nothing is fused), so that all levels give the same bits. What few rays need is left to
 * ray_end: cells that ray_abreast.h leaves to cell_alone_hit, hits beyond any t, slopes whose
 * square overflows.
 */
#ifndef KOTA_TERRAIN_RAY_END_ABREAST_H
#define KOTA_TERRAIN_RAY_END_ABREAST_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/ray_abreast.h"
#include "terrain/ray_ends.h"

/* What is asked, and where its answers go. */
struct abreast_asked {
    struct abreast_cells cells;
    const struct ray *ray[ABREAST];
    struct ray_hit *hit[ABREAST];
};

_Static_assert(offsetof(struct ray_hit, cell) == 7 * sizeof(double) &&
                   sizeof(struct ray_hit) == 9 * sizeof(double),
               "an answer begins with eight members of eight bytes");

/* t of the answers; those beyond any t are in *rare. */
static inline vd abreast_end_t(const struct abreast_asked *a, vd hit_t, vm *rare)
{
    const vd zero = vd_zero();
    double most[ABREAST];
    vd n[8];

    abreast_members(&a->cells, offsetof(struct walk, t_begin), n);
    for (int i = 0; i < ABREAST; i++)
        most[i] = a->ray[i]->t_max;
    /* the exponent is half of its member, and the shift leaves nothing of the other half */
    vl power = vl_up(vl_sub(vl_set1(1023), vl_of(n[6])), 52);
    /* of two operands the second, when neither is more or one is NaN */
    vd t = vd_max(vd_add(n[5], hit_t), zero);

    power &= vl_set1(0x7ffLL << 52);
    t = vd_mul(t, vl_bits(power));
    *rare |= vd_cmp(t, vd_set1(DBL_MAX), _CMP_NLE_UQ);
    return vd_min(t, vd_load(most));
}

/* The normals; triangle_normal. */
static inline void abreast_normal(const struct abreast *e, const struct heightfield_spec *s,
                                  vm triangle, vd *to, vm *rare)
{
    const vd zero = vd_zero(), one = vd_set1(1);
    vm high_v = (e->is_main ^ triangle); /* the edge between 10 and 11 */
    vd u = vd_sub(vd_blend(triangle, e->h10, e->h11), vd_blend(triangle, e->h00, e->h01));
    vd v = vd_sub(vd_blend(high_v, e->h01, e->h11), vd_blend(high_v, e->h00, e->h10));
    vd x = vd_sub(zero, vd_div(u, vd_set1(s->spacing_x_m)));
    vd y = vd_sub(zero, vd_div(v, vd_set1(s->spacing_y_m)));
    vd square = vd_add(vd_add(vd_mul(x, x), vd_mul(y, y)), one);
    vd by = vd_div(one, vd_sqrt(square));

    *rare |= vd_cmp(square, vd_set1(1e300), _CMP_NLT_UQ);
    to[0] = vd_mul(x, by);
    to[1] = vd_mul(y, by);
    to[2] = by;
}

static inline vd abreast_world(vd o, vd d, vd t, double origin_m, double spacing_m)
{
    return vd_add(vd_set1(origin_m), vd_mul(abreast_along(o, d, t), vd_set1(spacing_m)));
}

/* ray_end of those that hit at hit_t, but for those that it returns. */
static inline uint32_t abreast_end(const struct abreast_asked *a, const struct abreast *e,
                                   uint32_t hits, vd hit_t, vm triangle)
{
    const struct heightfield_spec *s = &a->cells.w[0]->field->spec;
    vi column = vi_load(a->cells.column);
    vi row = vi_load(a->cells.row);
    struct ray_hit none, *to[ABREAST];
    uint32_t triangles = vm_bits(triangle);
    vd m[8];
    vm rare = vm_none();

    m[0] = abreast_end_t(a, hit_t, &rare);
    m[1] = abreast_world(e->u0, e->du, hit_t, s->origin_x_m, s->spacing_x_m);
    m[2] = abreast_world(e->v0, e->dv, hit_t, s->origin_y_m, s->spacing_y_m);
    m[3] = abreast_along(e->z0, e->dz, hit_t);
    abreast_normal(e, s, triangle, &m[4], &rare);
    m[7] = vl_bits(vl_of_ints(column) | vl_up(vl_of_ints(row), 32));
    for (int i = 0; i < ABREAST; i++) { /* which of them hit nobody guesses */
        to[i] = ((hits & ~vm_bits(rare)) >> i & 1) != 0 ? a->hit[i] : &none;
        to[i]->triangle = triangles >> i & 1;
    }
    vd_rows((void *const *)to, 0, m);
    return hits & vm_bits(rare);
}

/*
 * A bit for each cell that is hit. The answers are there but for those of *left, whose
 * walks hold how.
 */
static inline uint32_t abreast_cells_end(const struct abreast_asked *a, uint32_t *left)
{
    struct abreast e;
    vd hit_t;
    vm triangle;
    uint32_t again = 0;

    abreast_load(&e, &a->cells);
    struct abreast_pass p = abreast_pass(&e, a->cells.w[0]->field);
    vm is_hit = abreast_pieces(&e, &p, &hit_t, &triangle) & p.is_met & ~abreast_behind(&e);
    uint32_t rare = vm_bits(p.is_rare), hits = vm_bits(is_hit) & ~rare;

    if (hits != 0) /* grazing rays do not */
        rare |= abreast_end(a, &e, hits, hit_t, triangle);
    for (; rare != 0; rare &= rare - 1)
        again |= abreast_cell_hit(&a->cells, __builtin_ctz(rare));
    *left = again;
    return hits | again;
}
#endif
#endif
