/*
 * The floors of a cell that are over a place, and their heights. For the kernels of vertical
 * queries (kernels/floor_query.c) and for shadow_index.c.
 *
 * Two blocks are tested together, whether there is a second or not: their sixteen polygons are one
 * vector of AVX2, or two of SSE2 or NEON. The arithmetic is of integers and only sorts out: an edge
 * that is nearer than its roundings is tested by its line in double precision. So the answers do
 * not depend on it.
 */
#ifndef KOTA_TERRAIN_FLOOR_MASK_H
#define KOTA_TERRAIN_FLOOR_MASK_H

#include "terrain/kernels/int_lanes.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/mesh/mesh_data.h"
#include "terrain/mesh/mesh_place.h"
#include "terrain/mesh/mesh_stack.h"

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* The compiler may not derive a value again from its operands. */
#define KEEP_APART(value) __asm__("" : "+r"(value))

/* Nothing found yet. */
#define NO_POLYGON UINT32_MAX

/* The point in the mesh's frame. */
ALWAYS_INLINE struct vec3 column_place(const struct mesh *mesh, struct vec3 point)
{
    return mesh->is_turned ? mesh_to_frame(mesh->header, point)
                           : vec3_sub(point, mesh->header->centre);
}

struct column {
    const struct mesh *mesh;
    double x, y;
    double limit; /* times sign: the best is the greatest not above it */
    double sign;
    double best;
    uint32_t polygon;
    double start; /* of a walk through the tree of boxes, times sign */
};

/* Is the point inside of all edge lines, or outside by no more than the slack? */
ALWAYS_INLINE bool is_inside(const struct column *c, uint32_t polygon)
{
    struct face face = mesh_face(c->mesh, polygon);
    double least = -c->mesh->header->slack;
    bool inside = true;

    for (uint32_t i = 0; i < face.count; i++) {
        struct mesh_line line = convex_part_line(&face, i);

        inside &= line_value(&line, c->x, c->y) >= least;
    }
    return inside;
}

/* Of a steep or sharp polygon: held between its lowest and its highest corner. */
double mesh_held_z(const struct mesh *mesh, uint32_t polygon, double x, double y);

/* The height of the polygon's plane. */
ALWAYS_INLINE double floor_z(const struct mesh *mesh, uint32_t polygon, double x, double y)
{
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    /* by pairs, and in the order of a scalar sum: the same bits */
    f64x2 from = f64x2_of_floats(f32x4_load_two(&p->x_min));
    f64x2 rise = f64x2_load(&p->slope_x) * ((f64x2){x, y} - from);
    double z = p->height + rise[0] + f64x2_seconds(rise)[0];

    return __builtin_expect(isnan(z), 0) ? mesh_held_z(mesh, polygon, x, y) : z;
}

/* Without a branch: which of the floors over one another is the best is not predictable. */
ALWAYS_INLINE void floor_take(struct column *c, uint32_t polygon)
{
    double z = floor_z(c->mesh, polygon, c->x, c->y) * c->sign;
    /* where two meet, the first: as in any other order of tests */
    bool is_best = (z <= c->limit) & ((z > c->best) | ((z == c->best) & (polygon < c->polygon)));

    c->best = is_best ? z : c->best;
    c->polygon = is_best ? polygon : c->polygon;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Lanes of a block or of a pair, bit i for lane i. */
struct floor_mask {
    unsigned hit;       /* the polygon may be over the place */
    unsigned uncertain; /* ... and its lines decide */
};

/* A pair is read as one, beyond the array of its first block. */
ALWAYS_INLINE const unsigned char *block_bytes(const struct column_block *b)
{
    return (const unsigned char *)b;
}

/* The polygons of a block or of a pair, with their levels. */
ALWAYS_INLINE const uint32_t *block_polygons(const struct column_block *b, size_t lanes)
{
    return (const void *)(block_bytes(b) + 2 * lanes * 2 * COLUMN_EDGES);
}

/*
 * Sixteen lanes in 16 bits each, e >> COLUMN_SHIFT: the place's last bit is left out, the other 14
 * go as bytes of seven bits, whose products with a and b need no more than 16 bits. That is less
 * than e / 2^COLUMN_SHIFT by less than 2, or more by less than 1. Lanes that are not there are of
 * the bytes that follow.
 */
enum { SUM_HIT = -1, SUM_CERTAIN = 2 * COLUMN_DOUBT / (1 << COLUMN_SHIFT) + 2 };

/* Defined in floor_grid_lut.c: gcc 12 would compute constants that it knows by three instructions,
 * instead of reading them. */
extern const struct floor_mask_constants {
    uint64_t place[2], upper[2];             /* 14 bits, and the upper seven of them */
    int8_t below_hit[16], below_certain[16]; /* sums */
    uint64_t zero[2];                        /* 2^52 as a double, of places (lut_fixed) */
} floor_mask_constants;

ALWAYS_INLINE struct i16x16 edge_sums(const unsigned char *ab, const unsigned char *c,
                                      struct byte_pairs high, struct byte_pairs low)
{
    struct i16x16 fraction = i16x16_shift_right(i16x16_pair_products(low, ab), 7);

    return i16x16_add_saturated(i16x16_add(i16x16_pair_products(high, ab), fraction), c);
}

/*
 * Of a block (8 lanes) or of a pair (16). Without a branch: both halves are tested even where there
 * is one. x and y are the lowest 14 bits of the place's lanes, in two units.
 */
ALWAYS_INLINE struct floor_mask floor_mask_of(const struct column_block *b, size_t lanes,
                                              u64x2 place)
{
    const struct floor_mask_constants *v = &floor_mask_constants;
    u64x2 upper = place & u64x2_load(v->upper);
    /* the upper seven bits go up by one: a byte each */
    u64x2 bytes = (place & u64x2_load(v->place)) + upper;
    struct byte_pairs high = byte_pairs_all(bytes, 1), low = byte_pairs_all(bytes, 0);
    const unsigned char *b0 = block_bytes(b), *b1 = b0 + 2 * lanes, *b2 = b0 + 4 * lanes;

    KEEP_APART(b1); /* as addresses are made of a register, and of another one times 2, 4 or 8 */
    KEEP_APART(b2);
    struct i16x16 least = edge_sums(b0, b2 + 2 * lanes, high, low);

    least = i16x16_min(least, edge_sums(b1, b0 + 8 * lanes, high, low));
    least = i16x16_min(least, edge_sums(b2, b1 + 8 * lanes, high, low));
    i8x16 sums = i16x16_pack_saturated(least);

    return (struct floor_mask){
        i8x16_signs(sums > i8x16_load(v->below_hit)) & ((1u << lanes) - 1),
        ~i8x16_signs(sums > i8x16_load(v->below_certain)),
    };
}

/*
 * The lanes of a block or of a pair whose lowest point is not above a level; of lanes that are not
 * there anything.
 */
ALWAYS_INLINE unsigned pair_levels(const struct column_block *b, size_t lanes, uint32_t level)
{
    const uint32_t *polygons = block_polygons(b, lanes);
    const uint32_t *second = polygons + (lanes & COLUMN_LANES ? 0 : COLUMN_LANES);

    return u32x8_not_above(polygons, COLUMN_LOW_SHIFT, level) |
           u32x8_not_above(second, COLUMN_LOW_SHIFT, level) << COLUMN_LANES;
}

/*
 * Is the highest point of a polygon below a level? Then so are those after it in the list, which
 * runs from the highest down.
 */
ALWAYS_INLINE bool is_below(uint32_t polygon, uint32_t level)
{
    return (polygon >> COLUMN_HIGH_SHIFT & (COLUMN_LEVELS - 1)) < level;
}

/* The polygons of a block or of a pair that are there. */
ALWAYS_INLINE void pair_take(struct column *c, const struct column_block *b, size_t count,
                             struct floor_mask mask)
{
    const struct floor_grid *grid = &c->mesh->grid;
    const uint32_t *polygons = block_polygons(b, count);

    while (mask.hit != 0) {
        unsigned i = (unsigned)__builtin_ctz(mask.hit);
        uint32_t polygon = polygons[i] & COLUMN_POLYGON;

        mask.hit &= mask.hit - 1;
        if (mask.uncertain >> i & 1 && !is_inside(c, polygon))
            continue;
        floor_take(c, polygon);
        /* elsewhere there is no other, mostly */
        if (c->sign > 0 && grid->is_stacked && mask.hit != 0 &&
            is_below(polygons[__builtin_ctz(mask.hit)], column_level(grid, c->best)))
            break;
    }
}

/* A block or a pair of a leaf's list. */
ALWAYS_INLINE void pair_scan(struct column *c, const struct column_block *b, size_t count,
                             u64x2 place)
{
    const struct floor_grid *grid = &c->mesh->grid;
    struct floor_mask mask = floor_mask_of(b, count, place);

    if (c->sign > 0 && grid->is_stacked)
        mask.hit &= pair_levels(b, count, column_level(grid, c->limit));
    pair_take(c, b, count, mask);
}

/* A leaf's list, and a place in its cell. */
struct floor_list {
    uint32_t first, count; /* count: or with all lanes of its last block, where there is no stack */
    u64x2 place;           /* as floor_mask_of */
};

ALWAYS_INLINE struct floor_list place_list(const struct place *place)
{
    return (struct floor_list){place->cell->first, place->cell->count,
                               (u64x2){place->x, place->y} >> (UNIT_SHIFT + 1)};
}

/* All of a list. Of a long one only the pairs that may hold the answer by their heights. */
ALWAYS_INLINE void list_scan(struct column *c, const struct floor_list *of)
{
    const struct column_block *list = c->mesh->grid.blocks + of->first;
    uint32_t count = of->count;

    for (uint32_t at = 0;; at++) {
        uint32_t pair = at;

        if (count > STACK_LEAST) {
            at = stack_next(list, count, at, c->sign, c->limit, c->best);
            pair = stack_pair(count, at, c->sign);
        }
        if (at == UINT32_MAX || pair * STACK_LANES >= count)
            break;
        pair_scan(c, list + (size_t)2 * pair,
                  count - pair * STACK_LANES > COLUMN_LANES ? STACK_LANES : COLUMN_LANES,
                  of->place);
    }
}

#endif
