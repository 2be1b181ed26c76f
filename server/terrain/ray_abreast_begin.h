/*
 * ray_begin of ray_ends.h for as many rays as a vector of float64 holds, a lane each. For
 * ray_turns.h only; ray_begin_eight.h is the same for eight lanes with masks.
 *
 * Every operation is the one of ray_ends.h, in the same order and rounded as often (nothing is
 * fused), so that all levels give the same bits. Left to a ray alone: rays along an axis or nearly
 * so, directions beyond 2^±480, origins that overflow in cells.
 *
 * Invariant: the field has data (z is not empty).
 */
#ifndef KOTA_TERRAIN_RAY_BEGIN_ABREAST_H
#define KOTA_TERRAIN_RAY_BEGIN_ABREAST_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/ray_begin.h"
#include "terrain/ray_abreast.h"

#define ABREAST_MOVE_MIN 0x1p-30 /* of the longest component, along both axes */

/* Rays that have begun; bit i is ray i's. */
struct abreast_begun {
    const struct heightfield *field;
    struct bounds z;
    bool is_wide;
    uint32_t misses;
    uint32_t alone;        /* not for here */
    uint32_t may_start_on; /* may start on the ground */
};

/* An axis of the rays: what becomes u0, du, inv_du; or those of v and z. */
struct abreast_axis {
    vd o, d, inv;
    vd pad;      /* how far the box is left behind its face */
    vd near, in; /* the face by which the rays come in, and t of it */
    vd out;
};

static inline void abreast_begun_init(struct abreast_begun *b, const struct heightfield *field)
{
    b->field = field;
    b->z = heightfield_node(field, field->level_max, 0, 0);
    b->is_wide = fabs((double)b->z.min) + fabs((double)b->z.max) < WIDE_Z_MAX_M;
}

/* The bits of the exponents of the longest components; see axes_exponent. */
static inline vl abreast_exponent(vd x, vd y, vd z)
{
    return vl_of(vd_max(vd_max(vd_abs(x), vd_abs(y)), vd_abs(z))) & vl_set1(0x7ffLL << 52);
}

static inline vd abreast_power(vl exponent)
{
    return vl_bits(vl_sub(vl_set1(2045LL << 52), exponent));
}

/* The exponents as exponent_of counts; those beyond BEGIN_EXPONENT_MAX are in the mask. */
static inline vl abreast_exponent_of(vl exponent, vm *beyond)
{
    vl e = vl_sub(vl_down(exponent, 52), vl_set1(1022));

    *beyond |= vl_beyond(e, BEGIN_EXPONENT_MAX);
    return e;
}

/* Origins and directions whose component is not for here. */
static inline vm abreast_axis_rare(const struct abreast_axis *a)
{
    return vd_cmp(vd_abs(a->d), vd_set1(DBL_MIN), _CMP_NGE_UQ) |
           vd_cmp(vd_abs(a->o), vd_set1(DBL_MAX), _CMP_NLE_UQ);
}

/* to_grid of rays whose seven members are in m. t_end; the rare ones are in *rare. */
static inline vd abreast_to_grid(struct abreast_begun *b, struct abreast_axis a[3], const vd *m,
                                 vl *exponent, vm *rare)
{
    const struct heightfield_spec *s = &b->field->spec;
    vd spacing_x = vd_set1(s->spacing_x_m), spacing_y = vd_set1(s->spacing_y_m);
    vl first = abreast_exponent(m[3], m[4], m[5]);
    vd power = abreast_power(first);
    vm beyond = vm_none();

    a[0].o = vd_div(vd_sub(m[0], vd_set1(s->origin_x_m)), spacing_x);
    a[1].o = vd_div(vd_sub(m[1], vd_set1(s->origin_y_m)), spacing_y);
    a[2].o = m[2];
    a[0].d = vd_div(vd_mul(m[3], power), spacing_x);
    a[1].d = vd_div(vd_mul(m[4], power), spacing_y);
    a[2].d = vd_mul(m[5], power);
    vl more = abreast_exponent(a[0].d, a[1].d, a[2].d);
    vl e = vl_add(abreast_exponent_of(first, &beyond), abreast_exponent_of(more, &beyond));

    power = abreast_power(more);
    for (int i = 0; i < 3; i++) {
        a[i].d = vd_mul(a[i].d, power);
        a[i].inv = vd_div(vd_set1(1), a[i].d);
        beyond |= abreast_axis_rare(&a[i]);
    }
    *rare = beyond;
    *exponent = e;
    return vd_mul(m[6], vl_bits(vl_up(vl_add(e, vl_set1(1023)), 52)));
}

/* Where the rays pass the box's two faces of an axis. */
static inline void abreast_slab(struct abreast_axis *a, double low, double high)
{
    const vd lows = vd_set1(low), highs = vd_set1(high);
    vm up = vd_cmp(a->d, vd_zero(), _CMP_GT_OQ);
    vd far = vd_blend(up, vd_sub(lows, a->pad), vd_add(highs, a->pad));

    a->near = vd_blend(up, highs, lows);
    a->in = vd_mul(vd_sub(a->near, a->o), a->inv);
    a->out = vd_mul(vd_sub(far, a->o), a->inv);
}

/* The pad of a horizontal axis. */
static inline vd abreast_pad(vd o, double cells, double far_origin)
{
    vd far = vd_add(vd_set1(cells), vd_abs(o));

    return vd_mul(vd_set1(4 * DBL_EPSILON), vd_add(far, vd_set1(far_origin)));
}

/* How the rays are in the box. */
struct abreast_inside {
    vd t_entry, t_begin, t_end, pad_m;
};

/* Moves origins to where the rays come in: those that do by the axis' face are on it. */
static inline void abreast_move(struct abreast_axis *a, vd t, vm is_moved, vm by_face)
{
    a->o = vd_put(a->o, is_moved, abreast_along(a->o, a->d, t));
    a->o = vd_put(a->o, by_face, a->near);
}

/* Onto the field; the first cells. */
static inline vi abreast_first(struct abreast_axis *a, uint32_t cells, vm *on_line)
{
    a->o = vd_min(vd_max(a->o, vd_zero()), vd_set1(cells));
    vd off = vd_abs(vd_off_whole(a->o)); /* is_near_line */

    *on_line |= vd_cmp(off, vd_set1(LINE_NEAR), _CMP_LE_OQ);
    return vi_min(vi_truncated(a->o), vi_set1((int32_t)cells - 1));
}

/* enter_box. */
static inline struct abreast_inside abreast_enter_box(struct abreast_begun *b,
                                                      struct abreast_axis a[3], vd t_end)
{
    const struct heightfield *f = b->field;
    const vd zero = vd_zero(), eps = vd_set1(4 * DBL_EPSILON);
    double low = (double)b->z.min, high = (double)b->z.max;
    vd pad_z = vd_set1(1e-9 * (1 + fabs(low) + fabs(high)));
    vd far_z = vd_abs(a[2].o);
    struct abreast_inside in;

    a[0].pad = abreast_pad(a[0].o, f->cell_cols, f->origin_u);
    a[1].pad = abreast_pad(a[1].o, f->cell_rows, f->origin_v);
    a[2].pad = vd_add(pad_z, vd_mul(eps, far_z));
    abreast_slab(&a[0], 0, f->cell_cols);
    abreast_slab(&a[1], 0, f->cell_rows);
    abreast_slab(&a[2], low, high);
    vd t0 = vd_max(vd_max(a[0].in, a[1].in), vd_max(a[2].in, zero));
    vd t1 = vd_min(vd_min(a[0].out, a[1].out), vd_min(a[2].out, t_end));

    t0 = vd_add(t0, zero); /* no -0 */
    vm is_moved = vd_cmp(t0, zero, _CMP_GT_OQ);
    vm by_u = vd_cmp_in(is_moved, a[0].in, t0, _CMP_EQ_OQ);
    vm by_v = ~by_u & vd_cmp_in(is_moved, a[1].in, t0, _CMP_EQ_OQ);
    vm by_z = is_moved & ~(by_u | by_v); /* one of them is t0 */
    vd back_u = vd_mul_in(by_u, a[0].pad, vd_abs(a[0].inv));
    vd back_v = vd_mul_in(by_v, a[1].pad, vd_abs(a[1].inv));

    b->misses = vm_bits(vd_cmp(t0, t1, _CMP_NLE_UQ) | vd_cmp(t0, vd_set1(DBL_MAX), _CMP_NLE_UQ));
    abreast_move(&a[0], t0, is_moved, by_u);
    abreast_move(&a[1], t0, is_moved, by_v);
    abreast_move(&a[2], t0, is_moved, by_z);
    in.t_entry = t0;
    in.t_begin = vd_sub(zero, vd_add(back_u, back_v));
    in.t_end = vd_sub(t1, t0);
    in.pad_m = vd_add(vd_set1(fabs(low) + fabs(high)), far_z);
    in.pad_m = vd_add(in.pad_m, vd_abs(vd_mul(a[2].d, in.t_end)));
    in.pad_m = vd_mul(eps, in.pad_m);
    return in;
}

/* ray_may_start_on_ground of some of the rays. */
static inline uint32_t abreast_may_start(const struct abreast_begun *b, vm rays, vi columns,
                                         vi rows, vd z0, vd pad_m)
{
    uint32_t column_of[ABREAST], row_of[ABREAST];
    vd pad = vd_mul(vd_set1(4), pad_m), h00, h10, h01, h11;
    const float *at[ABREAST];

    vi_store(column_of, vi_in(rays, columns));
    vi_store(row_of, vi_in(rays, rows));
    for (int i = 0; i < ABREAST; i++) {
        uint32_t column = column_of[i], row = row_of[i];

        at[i] = heightfield_tile(b->field, column, row)->samples +
                (size_t)(row & (TILE_CELLS - 1)) * TILE_SAMPLES + (column & (TILE_CELLS - 1));
    }
    vd_pairs(at, 0, &h00, &h10);
    vd_pairs(at, TILE_SAMPLES, &h01, &h11);
    vd low = vd_min(vd_min(h00, h10), vd_min(h01, h11));
    vd high = vd_max(vd_max(h00, h10), vd_max(h01, h11));
    vm off = vd_cmp(z0, vd_add(high, pad), _CMP_GT_OQ) | vd_cmp(z0, vd_sub(low, pad), _CMP_LT_OQ);
    vm missing = vd_cmp(h00, h10, _CMP_UNORD_Q) | vd_cmp(h01, h11, _CMP_UNORD_Q);

    return vm_bits(rays & (missing | ~off));
}

/* Do rays move along both axes, as float32 knows it? */
static inline vm abreast_suit(const struct abreast_axis a[3])
{
    const vd least = vd_set1(ABREAST_MOVE_MIN);

    return vd_cmp(vd_abs(a[0].d), least, _CMP_GT_OQ) & vd_cmp(vd_abs(a[1].d), least, _CMP_GT_OQ);
}

/* What is known of rays that have begun, a lane each. */
struct abreast_start {
    struct abreast_axis a[3];
    struct abreast_inside in;
    vi column, row; /* of the first cell */
};

/* Rays and their walks, of which abreast_walk_init has set the rest. */
static inline void abreast_begin(struct abreast_begun *b, const struct ray *const *rays,
                                 struct walk *const *w, struct abreast_start *s)
{
    const struct heightfield *field = b->field;
    struct abreast_axis *a = s->a;
    vd m[8];
    vm rare, on_line = vm_none();
    vl exponent;

    _Static_assert(sizeof(struct ray) == 7 * sizeof(double), "seven members");
    vd_four((const void *const *)rays, 3 * sizeof(double), m + 3);
    vd_four((const void *const *)rays, 0, m); /* the fourth once more */
    vd t_end = abreast_to_grid(b, a, m, &exponent, &rare);

    s->in = abreast_enter_box(b, a, t_end);
    s->column = abreast_first(&a[0], field->cell_cols, &on_line);
    s->row = abreast_first(&a[1], field->cell_rows, &on_line);
    b->misses &= ~vm_bits(rare);
    b->alone = b->is_wide ? vm_bits(rare | ~abreast_suit(a)) : (1u << ABREAST) - 1;
    uint32_t maybe = vm_bits(on_line) & ~(b->misses | b->alone);

    b->may_start_on =
        maybe == 0 ? 0
                   : maybe & abreast_may_start(b, on_line, s->column, s->row, a[2].o, s->in.pad_m);
    for (int i = 0; i < 3; i++) {
        m[i] = a[i].o;
        m[3 + i] = a[i].d;
    }
    m[6] = a[0].inv;
    m[7] = a[1].inv;
    vd_rows((void *const *)w, offsetof(struct walk, u0), m);
    m[0] = s->in.t_begin;
    m[1] = s->in.t_end;
    m[2] = s->in.pad_m;
    m[3] = vl_bits(vl_of_ints(s->column));
    m[4] = vl_bits(vl_of_ints(s->row));
    m[5] = s->in.t_entry;
    m[6] = vl_bits(vl_low_halves(exponent)); /* the triangle is 0 */
    m[7] = vd_zero();
    vd_rows((void *const *)w, offsetof(struct walk, t_begin), m); /* up to hit_t */
}

static inline void abreast_walk_init(const struct abreast_begun *b, struct walk *w)
{
    w->field = b->field;
    w->trace = NULL;
    w->z = b->z;
    w->is_vertical = false;
    w->is_wide = b->is_wide;
}

_Static_assert(offsetof(struct walk, t_entry) == offsetof(struct walk, t_begin) + 40 &&
                   offsetof(struct walk, exponent) == offsetof(struct walk, t_begin) + 48 &&
                   offsetof(struct walk, hit_t) == offsetof(struct walk, t_begin) + 56,
               "abreast_begin stores eight members at once");
#endif
#endif
