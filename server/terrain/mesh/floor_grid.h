/*
 * A mesh's floors by cells of a grid, for vertical queries. A column is the list of floors over one
 * cell. Private to terrain/. How and why: floor_grid.c.
 */
#ifndef KOTA_TERRAIN_FLOOR_GRID_H
#define KOTA_TERRAIN_FLOOR_GRID_H

#include "base/err.h"
#include "terrain/kernels/lanes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COLUMN_LANES = 8, /* polygons of a block */
    COLUMN_EDGES = 3, /* edges of a polygon that a block has room for */
    COLUMN_UNIT_BITS = 15,
    COLUMN_UNIT = 1 << COLUMN_UNIT_BITS, /* of a place in a cell: 0 up to COLUMN_UNIT */
    COLUMN_SCALE = 127,                  /* the maximum of the larger of an edge's a and b */
    COLUMN_WHOLE = 32,                   /* ... both within a 32nd of whole */
    COLUMN_SHIFT = 8,                    /* of its c */
    COLUMN_MIDDLE = COLUMN_UNIT / 2 / (1 << COLUMN_SHIFT), /* the share of a and b in c there */
    COLUMN_DOUBT = 800, /* above the sum of all roundings of an edge's value */
    COLUMN_PLACE = 50,  /* fraction bits of a place in cells of the root */
    COLUMN_LEVELS = 16  /* of height, in the mesh's whole */
};

/*
 * Up to eight polygons of a cell, two cache lines. A list's blocks go in pairs, whose sixteen lanes
 * are stored together; the last has eight if their number is odd. Seven parts follow one another:
 * (a, b) of each edge, two bytes a lane, c of each edge, two bytes a lane, and the polygons, four
 * bytes a lane. Edge k of a lane at the place (x, y) in the cell:
 *
 *     e = a x + b y + (c << COLUMN_SHIFT)      COLUMN_DOUBT added
 *
 * e < 0: the place is outside of the edge. e >= 2 COLUMN_DOUBT: inside. Between: the lines decide.
 *
 * A polygon is its index, over it the levels of its highest and, topmost, of its lowest point.
 */
struct column_block {
    _Alignas(16) unsigned char bytes[128];
};

#define COLUMN_POLYGON 0x00ffffffu
#define COLUMN_HIGH_SHIFT 24 /* 4 bits */
#define COLUMN_LOW_SHIFT 28

_Static_assert(sizeof(struct column_block) == 16 * COLUMN_LANES, "seven parts, the last twice");

#define COLUMN_INNER 0x80000000u

struct column_cell {
    uint32_t first; /* leaf: block; inner: the cell of its grid with the least x and y */
    uint32_t count; /* leaf: polygons; inner: COLUMN_INNER | side of its grid, a power of two */
};

/* Bytes from one part of a block, or of a pair, to the next; the last is twice as long. */
static inline size_t column_step(bool is_pair)
{
    return (size_t)2 * COLUMN_LANES << is_pair;
}

/* Polygon i of a list of `count`: edge k has ab[k * step], ab[k * step + 1] and c[k * step / 2]. */
struct column_lane {
    int8_t *ab;
    int16_t *c;
    uint32_t *polygon;
    size_t step;
};

static inline struct column_lane column_lane(struct column_block *list, uint32_t count, uint32_t i)
{
    uint32_t pair = i / (2 * COLUMN_LANES), lane = i % (2 * COLUMN_LANES);
    size_t step = column_step(count - pair * 2 * COLUMN_LANES > COLUMN_LANES);
    unsigned char *bytes = list[2 * pair].bytes;

    return (struct column_lane){
        (int8_t *)bytes + (size_t)2 * lane,
        (int16_t *)(void *)(bytes + COLUMN_EDGES * step) + lane,
        (uint32_t *)(void *)(bytes + (size_t)2 * COLUMN_EDGES * step) + lane,
        step,
    };
}

/*
 * From a point to its square by vectors, x and y side by side: a place is the whole number in the
 * lowest bits of a double from 2^52 on. It has as many fraction bits, at most COLUMN_PLACE,
 * as the root has room for in 52: finer than a 16th of `near`, and than 2^-21 of any cell.
 */
struct lut_fixed {
    double scale[2], zero[2]; /* places a metre; that of the frame's (0, 0) and 2^52 */
    uint64_t square_shift[2]; /* from a place to its square */
    uint64_t last[2];         /* the square for all that is outside */
    uint64_t steps[2];        /* from square to square in the lookup table */
    uint32_t unit_shift[4]; /* from a place to one in a cell LUT_FINEST bits finer than the root, in
                               two units; 0, 0, 0 */
};

struct floor_grid {
    /* [side][side] of the root first, row 0 at the least y */
    struct column_cell *cells;
    struct column_block *blocks; /* and one more, which vectors may read */
    uint32_t *lut;               /* [stride][stride] (floor_grid_lut.h) */
    uint8_t *lows;               /* [stride][stride] floors begin at this height (floor_low) */
    uint32_t squares, stride;    /* stride: squares + 1 */
    unsigned square_shift;       /* from a place to its square */
    size_t cell_count, block_count;
    uint64_t refs;
    uint32_t side;                         /* 0: there is none, the tree of boxes answers */
    uint64_t side_limit;                   /* the side's place */
    double x_min, y_min, scale_x, scale_y; /* of its box; places a metre */
    double place_0[2];                     /* of the frame's (0, 0) */
    struct lut_fixed fixed;
    double x_max, y_max;
    double z_min, scale_z; /* levels a metre */
    size_t unused_blocks;  /* of cells that were made again */
    bool is_stacked;       /* floors lie over one another in many places */
};

/* The level of a height; never falls while z rises, for any rounding. NaN: 0. */
static inline uint32_t column_level(const struct floor_grid *grid, double z)
{
    double level = (z - grid->z_min) * grid->scale_z;

    return (uint32_t)(int32_t)f64_clamped(level, COLUMN_LEVELS - 1);
}

/* A height in the mesh, 0 to 255; never falls while z rises. NaN: 0. */
static inline uint32_t floor_low(const struct floor_grid *grid, double z)
{
    double level = (z - grid->z_min) * grid->scale_z * (255.0 / COLUMN_LEVELS);

    return (uint32_t)(int32_t)f64_clamped(level, 255);
}

/* How often a grid's side is halved; that of the root may be any number. */
static inline uint32_t floor_grid_root_bits(uint32_t side)
{
    return side > 1 ? 32 - (uint32_t)__builtin_clz(side - 1) : 0;
}

struct mesh;
struct mesh_stats;
struct box2;
struct crew;
struct pace;

/* How it is made; all zero: on the caller's thread, without a limit of time. */
struct mesh_making {
    struct crew *crew;
    struct pace *pace;
};

/* The differences of a mesh from the one that it was made of. */
struct floor_grid_change {
    const uint32_t *map; /* new index of each polygon there, UINT32_MAX: gone; NULL: as it was */
    const struct box2 *gone; /* [gone_count] boxes of those that are gone */
    size_t gone_count;
    uint32_t first_added; /* this one and those after it are new */
};

/*
 * The grid of a mesh from that of `old`: cells that nothing was taken from or brought into are
 * copied. All are made again where that is no more work, or where too much of the memory is of
 * cells that were. As floor_grid_make.
 */
enum err_code floor_grid_edit(struct mesh *mesh, const struct mesh *old,
                              const struct floor_grid_change *change,
                              const struct mesh_making *making, struct err *err);

/* Makes a mesh's grid. ERR_NO_MEMORY, or the error of the pace. O(polygons), about 0.5 µs each. */
enum err_code floor_grid_make(struct mesh *mesh, const struct mesh_making *making, struct err *err);

/* Is each point that may be over a floor in the grid? */
bool floor_grid_holds(const struct mesh *mesh);
void floor_grid_free(struct floor_grid *grid);
size_t floor_grid_bytes(const struct floor_grid *grid);

/* All but polygons and bytes, which stay. */
void floor_grid_stats(const struct floor_grid *grid, struct mesh_stats *out);

/* Each cell's list and blocks against the polygons. False and a message. */
bool floor_grid_validate(const struct mesh *mesh, struct err *err);

#endif
