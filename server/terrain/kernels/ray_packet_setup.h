/*
 * ray_begin of ray_ends.h for as many rays as a vector of float64 holds, a lane each. For
 * ray_stream.c only.
 *
 * Every operation is the one of ray_ends.h, in the same order and rounded as often (nothing is
 * fused), so that all levels give the same bits. Left to the single ray: rays along an axis or
 * nearly so, directions beyond 2^±480, origins that overflow in cells.
 *
 * Invariant: the field has data (z is not empty).
 */
#ifndef KOTA_TERRAIN_RAY_PACKET_SETUP_H
#define KOTA_TERRAIN_RAY_PACKET_SETUP_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/kernels/cell_packet.h"
#include "terrain/field_ray/ray_ends.h"

#define PACKET_MOVE_MIN 0x1p-30 /* of the longest component, along both axes */

/* Rays that have begun; bit i is ray i's. */
struct packet_setup {
    const struct heightfield *field;
    struct bounds z;
    bool has_minmax16;
    uint32_t misses;
    uint32_t singles;      /* begin one by one, not in the packet */
    uint32_t may_start_on; /* may start on the ground */
};

/* An axis of the rays: the source of u0, du, inv_du; or of those of v and z. */
struct packet_axis {
    f64x4 o, d, inv;
    f64x4 pad;      /* how far after its face the box is left */
    f64x4 near, in; /* the face by which the rays come in, and t of it */
    f64x4 out;
};

static inline void packet_setup_init(struct packet_setup *b, const struct heightfield *field)
{
    b->field = field;
    b->z = heightfield_node(field, field->level_max, 0, 0);
    b->has_minmax16 = field->minmax16_first < MINMAX16_TILE_NODES &&
                      fabs((double)b->z.min) + fabs((double)b->z.max) < MINMAX16_Z_MAX_M;
}

/* The bits of the exponents of the longest components; see axes_exponents. */
static inline i64x4 packet_exponent(f64x4 x, f64x4 y, f64x4 z)
{
    return (i64x4)f64x4_max(f64x4_max(f64x4_abs(x), f64x4_abs(y)), f64x4_abs(z)) &
           i64x4_all(0x7ffLL << 52);
}

static inline f64x4 packet_power(i64x4 exponent)
{
    return (f64x4)(i64x4_all(2045LL << 52) - exponent);
}

enum { BEGIN_EXPONENT_MAX = 480 };

/* The exponents as exponent_of counts; those beyond BEGIN_EXPONENT_MAX are in the mask. */
static inline i64x4 packet_exponent_of(i64x4 exponent, i64x4 *beyond)
{
    i64x4 e = (i64x4)((u64x4)exponent >> 52) - i64x4_all(1022);

    *beyond |= (e > i64x4_all(BEGIN_EXPONENT_MAX)) | (i64x4_all(-BEGIN_EXPONENT_MAX) > e);
    return e;
}

/* Origins and directions whose component is not for here. */
static inline i64x4 packet_axis_rare(const struct packet_axis *a)
{
    return f64x4_not_ge(f64x4_abs(a->d), f64x4_all(DBL_MIN)) |
           f64x4_not_le(f64x4_abs(a->o), f64x4_all(DBL_MAX));
}

/* to_grid of rays whose seven members are in m. t_end; the rare ones are in *rare. */
static inline f64x4 packet_to_grid(struct packet_setup *b, struct packet_axis a[3], const f64x4 *m,
                                   i64x4 *exponent, i64x4 *rare)
{
    const struct heightfield_spec *s = &b->field->spec;
    f64x4 spacing_x = f64x4_all(s->spacing_x_m), spacing_y = f64x4_all(s->spacing_y_m);
    i64x4 first = packet_exponent(m[3], m[4], m[5]);
    f64x4 power = packet_power(first);
    i64x4 beyond = i64x4_all(0);

    a[0].o = (m[0] - f64x4_all(s->origin_x_m)) / spacing_x;
    a[1].o = (m[1] - f64x4_all(s->origin_y_m)) / spacing_y;
    a[2].o = m[2];
    a[0].d = m[3] * power / spacing_x;
    a[1].d = m[4] * power / spacing_y;
    a[2].d = m[5] * power;
    i64x4 more = packet_exponent(a[0].d, a[1].d, a[2].d);
    i64x4 e = packet_exponent_of(first, &beyond) + packet_exponent_of(more, &beyond);

    power = packet_power(more);
    for (int i = 0; i < 3; i++) {
        a[i].d = a[i].d * power;
        a[i].inv = f64x4_all(1) / a[i].d;
        beyond |= packet_axis_rare(&a[i]);
    }
    *rare = beyond;
    *exponent = e;
    return m[6] * (f64x4)((e + i64x4_all(1023)) << 52);
}

/* Where the rays pass the box's two faces of an axis. */
static inline void packet_slab(struct packet_axis *a, double low, double high)
{
    const f64x4 lows = f64x4_all(low), highs = f64x4_all(high);
    i64x4 up = f64x4_gt(a->d, f64x4_all(0));
    f64x4 far = f64x4_select(up, highs + a->pad, lows - a->pad);

    a->near = f64x4_select(up, lows, highs);
    a->in = (a->near - a->o) * a->inv;
    a->out = (far - a->o) * a->inv;
}

/* The pad of a horizontal axis. */
static inline f64x4 packet_pad(f64x4 o, double cells, double far_origin)
{
    f64x4 far = f64x4_all(cells) + f64x4_abs(o);

    return f64x4_all(4 * DBL_EPSILON) * (far + f64x4_all(far_origin));
}

/* How the rays are in the box. */
struct packet_inside {
    f64x4 t_entry, t_begin, t_end, pad_m;
};

/* Moves origins to where the rays come in: those that do by the axis' face are on it. */
static inline void packet_move(struct packet_axis *a, f64x4 t, i64x4 is_moved, i64x4 by_face)
{
    a->o = f64x4_select(is_moved, packet_along(a->o, a->d, t), a->o);
    a->o = f64x4_select(by_face, a->near, a->o);
}

/* Onto the field; the first cells. */
static inline i32x4 packet_first(struct packet_axis *a, uint32_t cells, i64x4 *on_line)
{
    a->o = f64x4_min(f64x4_max(a->o, f64x4_all(0)), f64x4_all(cells));
    f64x4 off = f64x4_abs(a->o - f64x4_round(a->o)); /* is_near_line */

    *on_line |= f64x4_le(off, f64x4_all(LINE_NEAR));
    return i32x4_min(f64x4_truncated(a->o), i32x4_all((int32_t)cells - 1));
}

/* enter_box. */
static inline struct packet_inside packet_enter_box(struct packet_setup *b, struct packet_axis a[3],
                                                    f64x4 t_end)
{
    const struct heightfield *f = b->field;
    const f64x4 zero = f64x4_all(0), eps = f64x4_all(4 * DBL_EPSILON);
    double low = (double)b->z.min, high = (double)b->z.max;
    f64x4 pad_z = f64x4_all(1e-9 * (1 + fabs(low) + fabs(high)));
    f64x4 far_z = f64x4_abs(a[2].o);
    struct packet_inside in;

    a[0].pad = packet_pad(a[0].o, f->cell_cols, f->origin_u);
    a[1].pad = packet_pad(a[1].o, f->cell_rows, f->origin_v);
    a[2].pad = pad_z + eps * far_z;
    packet_slab(&a[0], 0, f->cell_cols);
    packet_slab(&a[1], 0, f->cell_rows);
    packet_slab(&a[2], low, high);
    f64x4 t0 = f64x4_max(f64x4_max(a[0].in, a[1].in), f64x4_max(a[2].in, zero));
    f64x4 t1 = f64x4_min(f64x4_min(a[0].out, a[1].out), f64x4_min(a[2].out, t_end));

    t0 = t0 + zero; /* no -0 */
    i64x4 is_moved = f64x4_gt(t0, zero);
    i64x4 by_u = is_moved & f64x4_eq(a[0].in, t0);
    i64x4 by_v = ~by_u & (is_moved & f64x4_eq(a[1].in, t0));
    i64x4 by_z = is_moved & ~(by_u | by_v); /* one of them is t0 */
    f64x4 back_u = f64x4_and((f64x4)by_u, a[0].pad * f64x4_abs(a[0].inv));
    f64x4 back_v = f64x4_and((f64x4)by_v, a[1].pad * f64x4_abs(a[1].inv));

    b->misses = i64x4_signs(f64x4_not_le(t0, t1) | f64x4_not_le(t0, f64x4_all(DBL_MAX)));
    packet_move(&a[0], t0, is_moved, by_u);
    packet_move(&a[1], t0, is_moved, by_v);
    packet_move(&a[2], t0, is_moved, by_z);
    in.t_entry = t0;
    in.t_begin = zero - (back_u + back_v);
    in.t_end = t1 - t0;
    in.pad_m = f64x4_all(fabs(low) + fabs(high)) + far_z;
    in.pad_m = in.pad_m + f64x4_abs(a[2].d * in.t_end);
    in.pad_m = eps * in.pad_m;
    return in;
}

/* ray_may_start_on_ground of some of the rays. */
static inline uint32_t packet_may_start(const struct packet_setup *b, i64x4 rays, i32x4 columns,
                                        i32x4 rows, f64x4 z0, f64x4 pad_m)
{
    uint32_t column_of[PACKET], row_of[PACKET];
    f64x4 pad = f64x4_all(4) * pad_m, h00, h10, h01, h11;
    const size_t stride = b->field->stride;
    const float *at[PACKET];

    i32x4_store(column_of, columns & i64x4_narrow(rays));
    i32x4_store(row_of, rows & i64x4_narrow(rays));
    for (int i = 0; i < PACKET; i++)
        at[i] = heightfield_at(b->field, column_of[i], row_of[i]);
    f64x4_load_pairs(at, 0, &h00, &h10);
    f64x4_load_pairs(at, stride, &h01, &h11);
    f64x4 low = f64x4_min(f64x4_min(h00, h10), f64x4_min(h01, h11));
    f64x4 high = f64x4_max(f64x4_max(h00, h10), f64x4_max(h01, h11));
    i64x4 off = f64x4_gt(z0, high + pad) | f64x4_lt(z0, low - pad);
    i64x4 missing = f64x4_unordered(h00, h10) | f64x4_unordered(h01, h11);

    return i64x4_signs(rays & (missing | ~off));
}

/* Do rays move along both axes, in float32? */
static inline i64x4 packet_suit(const struct packet_axis a[3])
{
    const f64x4 least = f64x4_all(PACKET_MOVE_MIN);

    return f64x4_gt(f64x4_abs(a[0].d), least) & f64x4_gt(f64x4_abs(a[1].d), least);
}

/* The state of rays that have begun, a lane each. */
struct packet_start {
    struct packet_axis a[3];
    struct packet_inside in;
    i32x4 column, row; /* of the first cell */
};

/* Rays and their walks, of which packet_walk_init has set the rest. */
static inline void packet_begin(struct packet_setup *b, const struct ray *const *rays,
                                struct walk *const *w, struct packet_start *s)
{
    const struct heightfield *field = b->field;
    struct packet_axis *a = s->a;
    f64x4 m[8];
    i64x4 rare, on_line = i64x4_all(0);
    i64x4 exponent;

    _Static_assert(sizeof(struct ray) == 7 * sizeof(double), "seven members");
    f64x4_load_columns((const void *const *)rays, 3 * sizeof(double), m + 3);
    f64x4_load_columns((const void *const *)rays, 0, m); /* the fourth once more */
    f64x4 t_end = packet_to_grid(b, a, m, &exponent, &rare);

    s->in = packet_enter_box(b, a, t_end);
    s->column = packet_first(&a[0], field->cell_cols, &on_line);
    s->row = packet_first(&a[1], field->cell_rows, &on_line);
    b->misses &= ~i64x4_signs(rare);
    b->singles = b->has_minmax16 ? i64x4_signs(rare | ~packet_suit(a)) : (1u << PACKET) - 1;
    uint32_t candidates = i64x4_signs(on_line) & ~(b->misses | b->singles);

    b->may_start_on = candidates == 0 ? 0
                                      : candidates & packet_may_start(b, on_line, s->column, s->row,
                                                                      a[2].o, s->in.pad_m);
    for (int i = 0; i < 3; i++) {
        m[i] = a[i].o;
        m[3 + i] = a[i].d;
    }
    m[6] = a[0].inv;
    m[7] = a[1].inv;
    f64x4_store_rows8((void *const *)w, offsetof(struct walk, u0), m);
    m[0] = s->in.t_begin;
    m[1] = s->in.t_end;
    m[2] = s->in.pad_m;
    m[3] = (f64x4)i64x4_of_ints(s->column);
    m[4] = (f64x4)i64x4_of_ints(s->row);
    m[5] = s->in.t_entry;
    m[6] = (f64x4)(exponent & i64x4_all(0xffffffff)); /* the triangle is 0 */
    m[7] = f64x4_all(0);
    f64x4_store_rows8((void *const *)w, offsetof(struct walk, t_begin), m); /* up to hit_t */
}

static inline void packet_walk_init(const struct packet_setup *b, struct walk *w)
{
    w->field = b->field;
    w->trace = NULL;
    w->z = b->z;
    w->is_vertical = false;
    w->has_minmax16 = b->has_minmax16;
}

_Static_assert(offsetof(struct walk, t_entry) == offsetof(struct walk, t_begin) + 40 &&
                   offsetof(struct walk, exponent) == offsetof(struct walk, t_begin) + 48 &&
                   offsetof(struct walk, hit_t) == offsetof(struct walk, t_begin) + 56,
               "packet_begin stores eight members at once");
#endif
#endif
