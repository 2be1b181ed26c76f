/*
 * Shadows of many points by the blocks of light/shadow_blocks.c, where problem, approach and
 * bounds are. Compiled once per instruction set (kernels.h).
 *
 * Points go in steps, 64 together: one cell each, or one block of each that is not decided yet. No
 * branch depends on a point, and a step prefetches the memory of the next one.
 */
#include "terrain/kernels/kernels.h"

#include "terrain/kernels/int_lanes.h"
#include "terrain/light/shadow_blocks.h"
#include "terrain/mesh/mesh_place.h"

enum { TOGETHER = 64 };

/* A point of a cell, in the units of a block. */
struct spot {
    int16_t x, y;
    float z;
};

/* One edge of eight polygons. */
PLACE_INLINE i32x8 edge_at(const struct shadow_block *b, unsigned edge, const struct spot *at)
{
    return i32x8_pair_products(at->x, at->y, b->ab[edge]) +
           (i32x8_of_shorts(b->c[edge]) << COLUMN_SHIFT);
}

/* Of eight polygons: is one certainly in front, may one be? Both may be, and no branch depends on
 * it. */
PLACE_INLINE unsigned block_any(const struct shadow_block *b, const struct spot *at, float doubt_m)
{
    i32x8 inside = i32x8_min(i32x8_min(edge_at(b, 0, at), edge_at(b, 1, at)), edge_at(b, 2, at));
    f32x8 plane = f32x8_load(b->z), x_unit = f32x8_load(b->x_unit), y_unit = f32x8_load(b->y_unit);
    f32x8 over = plane + x_unit * (float)at->x + y_unit * (float)at->y - at->z; /* the point */
    f32x8 uncertain = (f32x8_abs(x_unit) + f32x8_abs(y_unit)) * SHADOW_DOUBT_UNITS +
                      f32x8_abs(plane) * SHADOW_DOUBT_HEIGHT + doubt_m;
    i32x8 is_front = (i32x8)(over < -uncertain), is_behind = (i32x8)(over > uncertain);
    i32x8 unsure = (i32x8)(inside >= 0) & ~is_behind;
    i32x8 blocks_it = is_front & (i32x8)(inside >= 2 * COLUMN_DOUBT + SHADOW_MARGIN);

    return (unsigned)i32x8_any(unsure) * SHADOW_UNSURE |
           (unsigned)i32x8_any(blocks_it) * SHADOW_BLOCKED;
}

/* Some points on their way: each step of all before the next step of any, as in mesh_floor.c. */
struct some {
    double dx[TOGETHER], dy[TOGETHER]; /* places in the root, as place_begin has them */
    float z[TOGETHER];
    uint64_t x[TOGETHER], y[TOGETHER]; /* places in the cell */
    uint32_t cell[TOGETHER], block[TOGETHER];
    float more_from[TOGETHER]; /* of the block */
    struct spot spot[TOGETHER];
    uint8_t todo[TOGETHER];
};

PLACE_INLINE f64x4 gathered(const struct vec3 *const at[4], size_t axis)
{
    return (f64x4){(&at[0]->x)[axis], (&at[1]->x)[axis], (&at[2]->x)[axis], (&at[3]->x)[axis]};
}

/* From the locale's frame into the root's, four at a time. */
PLACE_INLINE void some_turn(const struct mesh *tree, const struct vec3 *origins, size_t count,
                            struct vec3 centre, double reach_m, struct some *some)
{
    const struct floor_grid *grid = &tree->grid;
    const double *r = tree->header->rotation;

    for (size_t i = 0; i < count; i += 4) {
        const struct vec3 *first = origins + i;
        size_t last = count - 1 - i; /* instead of those after it */
        const struct vec3 *at[4] = {first, first + (last < 1 ? last : 1),
                                    first + (last < 2 ? last : 2), first + (last < 3 ? last : 3)};
        f64x4 x = gathered(at, 0) - centre.x, y = gathered(at, 1) - centre.y;
        f64x4 z = gathered(at, 2) - centre.z;
        i64x4 is_near = (x <= reach_m) & (x >= -reach_m) & (y <= reach_m) & (y >= -reach_m) &
                        (z <= reach_m) & (z >= -reach_m);
        f64x4 dx = (r[0] * x + r[1] * y + r[2] * z - grid->x_min) * grid->scale_x;
        f64x4 dy = (r[3] * x + r[4] * y + r[5] * z - grid->y_min) * grid->scale_y;
        f64x4 up = r[6] * x + r[7] * y + r[8] * z;

        dx = (f64x4)((i64x4)dx | ~is_near); /* no number, and so outside */
        memcpy(&some->dx[i], &dx, sizeof dx);
        memcpy(&some->dy[i], &dy, sizeof dy);
        f32x4 z_float = __builtin_convertvector(up, f32x4);

        memcpy(&some->z[i], &z_float, sizeof z_float);
    }
}

/* Into the grid of that name. */
PLACE_INLINE void some_enter(const struct shadow_blocks *blocks, struct some *some, uint8_t i,
                             uint32_t name)
{
    unsigned bits = (name & ~SHADOW_INNER) >> SHADOW_SIDE_SHIFT;
    uint64_t x = some->x[i] << bits, y = some->y[i] << bits;
    uint32_t column = (uint32_t)(x >> COLUMN_PLACE), row = (uint32_t)(y >> COLUMN_PLACE);

    some->x[i] = x & PLACE_MASK;
    some->y[i] = y & PLACE_MASK;
    some->cell[i] = (name & SHADOW_FIRST) + (row << bits) + column;
    __builtin_prefetch(&blocks->cells[some->cell[i]]);
}

PLACE_INLINE void block_fetch(const struct shadow_block *block)
{
    __builtin_prefetch(block->ab);
    __builtin_prefetch((const char *)block + 64);
    __builtin_prefetch((const char *)block + 128);
}

/* Into the grids of the root; how many are in it, in todo. */
PLACE_INLINE size_t some_begin(const struct mesh *tree, const struct shadow_blocks *blocks,
                               size_t count, struct some *some, uint8_t *answers)
{
    size_t in = 0;

    for (size_t i = 0; i < count; i++) {
        struct place place;

        answers[i] = SHADOW_UNSURE;
        if (!place_at(tree, some->dx[i], some->dy[i], &place))
            continue;
        some->todo[in++] = (uint8_t)i;
        some->x[i] = place.x;
        some->y[i] = place.y;
        some_enter(blocks, some, (uint8_t)i, blocks->roots[place.cell - tree->grid.cells]);
    }
    return in;
}

/*
 * The answers of the cells of `inner` without their lists; points that need a list are added to
 * todo, and those that are grids, and look as if they were clear, are left in inner.
 */
PLACE_INLINE size_t some_limits(const struct shadow_blocks *blocks, uint8_t *inner, size_t *count,
                                size_t lists, struct some *some, uint8_t *answers)
{
    size_t grids = 0;

    for (size_t k = 0; k < *count; k++) {
        uint8_t i = inner[k];
        const struct shadow_cell *cell = &blocks->cells[some->cell[i]];
        uint32_t x = (uint32_t)(some->x[i] >> UNIT_SHIFT), y = (uint32_t)(some->y[i] >> UNIT_SHIFT);
        float z = some->z[i];
        /* each is computed: a branch would not be predictable */
        unsigned is_border = (x - 1 >= COLUMN_UNIT - 2) | (y - 1 >= COLUMN_UNIT - 2);
        unsigned is_blocked = z > cell->blocked_from, is_clear = !(z >= cell->clear_to);

        _Static_assert(SHADOW_CLEAR == 0 && SHADOW_BLOCKED == 1 && SHADOW_UNSURE == 2, "a sum");
        answers[i] = (uint8_t)(is_border ? SHADOW_UNSURE : is_blocked);
        some->spot[i] =
            (struct spot){(int16_t)(x - COLUMN_UNIT / 2), (int16_t)(y - COLUMN_UNIT / 2), z};
        some->block[i] = cell->first;
        some->more_from[i] = cell->more_from;
        inner[grids] = some->todo[lists] = i;
        grids += cell->first >= SHADOW_INNER;
        lists += !(is_border | is_blocked | is_clear);
        block_fetch(&blocks->blocks[cell->first & SHADOW_FIRST]);
    }
    *count = grids;
    return lists;
}

/* Down to the lists that are needed; how many, in todo. */
PLACE_INLINE size_t some_descend(const struct mesh *tree, const struct shadow_blocks *blocks,
                                 size_t count, struct some *some, uint8_t *answers)
{
    uint8_t inner[TOGETHER];
    size_t in = some_begin(tree, blocks, count, some, answers), lists = 0;

    memcpy(inner, some->todo, sizeof inner);
    for (;;) {
        lists = some_limits(blocks, inner, &in, lists, some, answers);
        if (in == 0)
            return lists;
        for (size_t k = 0; k < in; k++)
            some_enter(blocks, some, inner[k], some->block[inner[k]]);
    }
}

/* One block of each list; how many have more. */
PLACE_INLINE size_t some_blocks(const struct shadow_blocks *blocks, size_t lists, struct some *some,
                                uint8_t *answers)
{
    size_t more = 0;

    for (size_t k = 0; k < lists; k++) {
        uint8_t i = some->todo[k];
        unsigned answer =
            block_any(&blocks->blocks[some->block[i]], &some->spot[i], blocks->doubt_m);

        answers[i] |= (uint8_t)answer;
        some->todo[more] = i;
        more += ~answer & SHADOW_BLOCKED & (unsigned)(some->spot[i].z >= some->more_from[i]);
    }
    for (size_t k = 0; k < more; k++) {
        uint32_t block = ++some->block[some->todo[k]];

        some->more_from[some->todo[k]] = blocks->more_from[block];
        block_fetch(&blocks->blocks[block]);
    }
    return more;
}

PLACE_INLINE void some_any(const struct mesh *tree, const struct shadow_blocks *blocks,
                           const struct vec3 *origins, size_t count, struct vec3 centre,
                           double reach_m, uint8_t *answers)
{
    struct some some;
    size_t lists;

    some_turn(tree, origins, count, centre, reach_m, &some);
    lists = some_descend(tree, blocks, count, &some, answers);
    while (lists > 0)
        lists = some_blocks(blocks, lists, &some, answers);
}

void KERNEL(mesh_shadows)(const struct mesh *tree, const struct shadow_blocks *blocks,
                          const struct vec3 *origins, size_t count, struct vec3 centre,
                          double reach_m, uint8_t *answers)
{
    for (size_t i = 0; i < count; i += TOGETHER)
        some_any(tree, blocks, origins + i, count - i < TOGETHER ? count - i : TOGETHER, centre,
                 reach_m, answers + i);
}
