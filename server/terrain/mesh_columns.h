/*
 * Columns: a mesh's floors by cells of a grid, for questions straight up and down. Inside of the
 * room only. What they are and why: mesh_columns.c.
 */
#ifndef KOTA_TERRAIN_MESH_COLUMNS_H
#define KOTA_TERRAIN_MESH_COLUMNS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    COLUMN_LANES = 8, /* polygons of a block */
    COLUMN_EDGES = 3, /* edges of a polygon that a block has room for */
    COLUMN_UNIT_BITS = 15,
    COLUMN_UNIT = 1 << COLUMN_UNIT_BITS, /* of a place in a cell: 0 up to COLUMN_UNIT */
    COLUMN_SCALE = 127,                  /* what the larger of an edge's a and b is up to */
    COLUMN_WHOLE = 32,                   /* ... both within a 32nd of whole */
    COLUMN_SHIFT = 8,                    /* of its c */
    COLUMN_MIDDLE = COLUMN_UNIT / 2 / (1 << COLUMN_SHIFT), /* what a and b add to c there */
    COLUMN_DOUBT = 800, /* what all roundings of an edge's value are less than */
    COLUMN_PLACE = 50,  /* bits of a place behind the point, in cells of the root */
    COLUMN_LEVELS = 16  /* of height, in the mesh's whole */
};

/*
 * Up to eight polygons of a cell, two cache lines. A list's blocks go in pairs, whose sixteen lanes
 * stand together; the last has eight if their number is odd. Seven parts follow one another: (a, b)
 * of each edge, two bytes a lane, c of each edge, two bytes a lane, and the polygons, four bytes a
 * lane. Edge k of a lane at the place (x, y) in the cell:
 *
 *     e = a x + b y + (c << COLUMN_SHIFT)      COLUMN_DOUBT added
 *
 * e < 0: the place is outside of the edge. e >= 2 COLUMN_DOUBT: inside. Between: ask the lines.
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
 * lowest bits of a double from 2^52 on. It has as many bits behind the point, at most COLUMN_PLACE,
 * as the root has room for in 52: finer than a 16th of `near`, and than 2^-21 of any cell.
 */
struct column_fixed {
    double scale[2], zero[2]; /* places a metre; that of the frame's (0, 0) and 2^52 */
    uint64_t square_shift[2]; /* from a place to its square */
    uint64_t last[2];         /* the square for all that is outside */
    uint64_t steps[2];        /* from square to square in the directory */
    uint32_t coarser[4];      /* how many bits less than COLUMN_PLACE; 0, 0, 0 */
};

struct mesh_columns {
    /* [side][side] of the root first, row 0 at the root's y_min; they are inner or empty */
    struct column_cell *cells;
    struct column_block *blocks; /* and one more, which vectors may read */
    uint32_t *directory;         /* [stride][stride] (mesh_directory.h) */
    uint32_t squares, stride;    /* stride: squares + 1 */
    unsigned square_shift;       /* from a place to its square */
    size_t cell_count, block_count;
    uint64_t refs;
    uint32_t side;                         /* 0: there are no columns, ask the tree */
    uint64_t side_limit;                   /* the side's place */
    double x_min, y_min, scale_x, scale_y; /* of the root; places a metre */
    double place_0[2];                     /* of the frame's (0, 0) */
    struct column_fixed fixed;
    double x_max, y_max;   /* of the root that they were made for */
    double z_min, scale_z; /* levels a metre */
    size_t unused_blocks;  /* of cells that were made again */
    bool is_stacked;       /* floors lie over one another in many places */
};

/* The level of a height; never falls while z rises, whatever the rounding. NaN: 0. */
static inline uint32_t column_level(const struct mesh_columns *columns, double z)
{
    double level = (z - columns->z_min) * columns->scale_z;

#ifdef __SSE2__
    __m128d clamped = _mm_max_sd(_mm_set_sd(level), _mm_setzero_pd()); /* gcc 12 makes branches */

    return (uint32_t)_mm_cvttsd_si32(_mm_min_sd(clamped, _mm_set_sd(COLUMN_LEVELS - 1)));
#else
    level = level > 0 ? level : 0;
    return (uint32_t)(int32_t)(level < COLUMN_LEVELS - 1 ? level : COLUMN_LEVELS - 1);
#endif
}

struct mesh;
struct box2;

/* What is another in a mesh than in the one that it was made of. */
struct column_change {
    const uint32_t *map; /* new index of each polygon there, UINT32_MAX: gone; NULL: as it was */
    const struct box2 *gone; /* [gone_count] boxes of those that are gone */
    size_t gone_count;
    uint32_t first_added;     /* this one and those behind it are new */
    const struct box2 *added; /* their boxes */
};

/*
 * Columns of a mesh from those of `old`: cells that nothing was taken from or brought into are
 * copied. All are made anew where that is no more work, or where too much of the memory is of cells
 * that were. As mesh_columns_make.
 */
enum err_code mesh_columns_edit(struct mesh *mesh, const struct mesh *old,
                                const struct column_change *change, struct err *err);

/* Makes a mesh's columns. ERR_NO_MEMORY. O(polygons), about 0.5 µs each. */
enum err_code mesh_columns_make(struct mesh *mesh, struct err *err);
void mesh_columns_free(struct mesh_columns *columns);
size_t mesh_columns_bytes(const struct mesh_columns *columns);

/* Each cell's list and blocks against the polygons. False and a message. */
bool mesh_columns_validate(const struct mesh *mesh, struct err *err);

#endif
