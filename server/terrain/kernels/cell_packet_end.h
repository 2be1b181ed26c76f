/*
 * Cells and the answers of the rays that hit, a lane each: packet_pass and packet_pieces of
 * cell_packet.h, then ray_end of ray_ends.h. For ray_stream.c only.
 *
 * Every operation is the one of ray_ends.h and triangle_normal, in the same order and rounded as
 * often (nothing is fused), so that all levels give the same bits. Values that few rays need are
 * left to ray_end: cells that cell_packet.h leaves to cell_single_hit, hits beyond any t, slopes
 * whose square overflows.
 */
#ifndef KOTA_TERRAIN_CELL_PACKET_END_H
#define KOTA_TERRAIN_CELL_PACKET_END_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/kernels/cell_packet.h"
#include "terrain/field_ray/ray_ends.h"

/* The rays, and the place of their answers. */
struct packet_asked {
    struct packet_cells cells;
    const struct ray *ray[PACKET];
    struct ray_hit *hit[PACKET];
};

_Static_assert(offsetof(struct ray_hit, cell) == 7 * sizeof(double) &&
                   sizeof(struct ray_hit) == 9 * sizeof(double),
               "an answer begins with eight members of eight bytes");

/* t of the answers; those beyond any t are in *rare. */
static inline f64x4 packet_end_t(const struct packet_asked *a, f64x4 hit_t, i64x4 *rare)
{
    const f64x4 zero = f64x4_all(0);
    double most[PACKET];
    f64x4 n[8];

    packet_members(&a->cells, offsetof(struct walk, t_begin), n);
    for (int i = 0; i < PACKET; i++)
        most[i] = a->ray[i]->t_max;
    /* the exponent is half of its member, and the shift leaves nothing of the other half */
    i64x4 power = (i64x4_all(1023) - (i64x4)n[6]) << 52;
    /* of two operands the second, when neither is more or one is NaN */
    f64x4 t = f64x4_max(n[5] + hit_t, zero);

    power &= i64x4_all(0x7ffLL << 52);
    t = t * (f64x4)power;
    *rare |= f64x4_not_le(t, f64x4_all(DBL_MAX));
    return f64x4_min(t, f64x4_load(most));
}

/* The normals; triangle_normal. */
static inline void packet_normal(const struct cell_packet *e, const struct heightfield_spec *s,
                                 i64x4 triangle, f64x4 *to, i64x4 *rare)
{
    const f64x4 zero = f64x4_all(0), one = f64x4_all(1);
    i64x4 high_v = (e->is_main ^ triangle); /* the edge between 10 and 11 */
    f64x4 u = f64x4_select(triangle, e->h11, e->h10) - f64x4_select(triangle, e->h01, e->h00);
    f64x4 v = f64x4_select(high_v, e->h11, e->h01) - f64x4_select(high_v, e->h10, e->h00);
    f64x4 x = zero - u / f64x4_all(s->spacing_x_m);
    f64x4 y = zero - v / f64x4_all(s->spacing_y_m);
    f64x4 square = x * x + y * y + one;
    f64x4 by = one / f64x4_sqrt(square);

    *rare |= f64x4_not_lt(square, f64x4_all(1e300));
    to[0] = x * by;
    to[1] = y * by;
    to[2] = by;
}

static inline f64x4 packet_world(f64x4 o, f64x4 d, f64x4 t, double origin_m, double spacing_m)
{
    return f64x4_all(origin_m) + packet_along(o, d, t) * f64x4_all(spacing_m);
}

/* ray_end of those that hit at hit_t, but for those that it returns. */
static inline uint32_t packet_end(const struct packet_asked *a, const struct cell_packet *e,
                                  uint32_t hits, f64x4 hit_t, i64x4 triangle)
{
    const struct heightfield_spec *s = &a->cells.w[0]->field->spec;
    i32x4 column = i32x4_load(a->cells.column);
    i32x4 row = i32x4_load(a->cells.row);
    struct ray_hit none, *to[PACKET];
    uint32_t triangles = i64x4_signs(triangle);
    f64x4 m[8];
    i64x4 rare = i64x4_all(0);

    m[0] = packet_end_t(a, hit_t, &rare);
    m[1] = packet_world(e->u0, e->du, hit_t, s->origin_x_m, s->spacing_x_m);
    m[2] = packet_world(e->v0, e->dv, hit_t, s->origin_y_m, s->spacing_y_m);
    m[3] = packet_along(e->z0, e->dz, hit_t);
    packet_normal(e, s, triangle, &m[4], &rare);
    m[7] = (f64x4)(i64x4_of_ints(column) | (i64x4_of_ints(row) << 32));
    for (int i = 0; i < PACKET; i++) { /* the lanes that hit are not predictable */
        to[i] = ((hits & ~i64x4_signs(rare)) >> i & 1) != 0 ? a->hit[i] : &none;
        to[i]->triangle = triangles >> i & 1;
    }
    f64x4_store_rows8((void *const *)to, 0, m);
    return hits & i64x4_signs(rare);
}

/*
 * A bit for each cell that is hit. The answers are there but for those of *left, whose
 * walks hold how.
 */
static inline uint32_t packet_cells_end(const struct packet_asked *a, uint32_t *left)
{
    struct cell_packet e;
    f64x4 hit_t;
    i64x4 triangle;
    uint32_t again = 0;

    packet_load(&e, &a->cells);
    struct packet_pass p = packet_pass(&e, a->cells.w[0]->field);
    i64x4 is_hit = packet_pieces(&e, &p, &hit_t, &triangle) & p.is_met & ~packet_behind(&e);
    uint32_t rare = i64x4_signs(p.is_rare), hits = i64x4_signs(is_hit) & ~rare;

    if (hits != 0) /* grazing rays do not */
        rare |= packet_end(a, &e, hits, hit_t, triangle);
    for (; rare != 0; rare &= rare - 1)
        again |= packet_cell_hit(&a->cells, __builtin_ctz(rare));
    *left = again;
    return hits | again;
}
#endif
#endif
