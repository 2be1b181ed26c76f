/*
 * The inside of a heightfield. Private to terrain/; other rooms use heightfield.h.
 *
 * Grid coordinates: u = (x - origin_x) / spacing_x and v likewise, so that sample (c, r) is at
 * (u, v) = (c, r) and cell (c, r) is [c, c+1] × [r, r+1]. Heights stay in metres.
 */
#ifndef KOTA_TERRAIN_HEIGHTFIELD_DATA_H
#define KOTA_TERRAIN_HEIGHTFIELD_DATA_H

#include "terrain/field/heightfield.h"
#include "terrain/field_ray/ray_box.h"
#include "terrain/field/tile.h"

enum {
    TOP_LEVELS_MAX = 14, /* 2^20 samples are 2^12 tiles */
    MINMAX16_TOP_LEVELS_MAX = 6,
    TILE_GROUP_TILES = 32
};

/*
 * The references to some tiles that follow one another, shared between fields as tiles are: what
 * an edit does not touch costs it one count for 32 tiles, each of which lies far from the next.
 */
struct tile_group {
    atomic_uint refs;
    uint32_t count;
    struct tile *tiles[]; /* count, up to TILE_GROUP_TILES */
};

struct top_level {
    uint32_t cols, rows, offset;
};

struct heightfield {
    atomic_uint refs;
    struct heightfield_spec spec;
    double inner_m[2]; /* from the origin, 0 to less than these is inside, for any rounding */
    /* of column and row: of the tile, in tiles; in the tile, in samples; four zeros */
    int16_t strides[8];
    uint32_t stride;           /* of a row of samples, in all tiles */
    uint32_t minmax16_first;   /* as the tiles' shape.first */
    double origin_u, origin_v; /* how far the frame's origin is, in cells: |origin / spacing| */
    uint32_t cell_cols, cell_rows;
    uint32_t leaf_shift;
    uint32_t tile_cols, tile_rows;
    uint32_t top_level_count;
    uint32_t level_max;          /* TILE_SHIFT + top_level_count - 1: the root's level */
    struct tile_group **groups;  /* of all tiles in this order, after them */
    struct bounds *top;          /* after groups */
    struct top_level *top_level; /* after minmax16_top; [0] are the tiles' roots */
    /* nodes above the tiles, none over a single tile: [0] has the tiles' roots as children */
    uint32_t minmax16_level_count, minmax16_count;
    struct top_level *minmax16_level;   /* after top_level */
    struct minmax16_node *minmax16_top; /* after top */
    /* so many cells away from the origin that a minmax16 node may lose a hit; inner_m is 0 then */
    bool is_far;
    bool has_bases; /* of some tiles only a part of the samples is in them (tile_at) */
    struct ray_box ray_box;
    struct tile *tiles[]; /* [tile_rows][tile_cols]; here, a step less to a sample */
};

static inline size_t heightfield_group_count(const struct heightfield *field)
{
    return ((size_t)field->tile_cols * field->tile_rows + TILE_GROUP_TILES - 1) / TILE_GROUP_TILES;
}

/* ---- fields in the making: heightfield_build.c ----------------------------------------------- */

/* A copy that still has the other's tiles, pyramid and groups; NULL without memory. */
struct heightfield *heightfield_copy(const struct heightfield *field, struct err *err);

/* Replaces a tile by another (taken), in a field that is not shared yet. */
bool heightfield_replace_tile(struct heightfield *field, size_t index, struct tile *tile);

/* tile_over the other field's tile, of a tile that only this field has. */
void heightfield_tile_over(struct heightfield *field, size_t index,
                           const struct heightfield *other);

/* The top pyramid's nodes over some tiles, each level computed from the one below. */
void heightfield_build_top(struct heightfield *field, uint32_t tile_column0, uint32_t tile_row0,
                           uint32_t tile_column1, uint32_t tile_row1);

/* Do neighbouring tiles have the same samples where they meet, bit for bit? O(tiles · 257). */
bool heightfield_aprons_agree(const struct heightfield *field, struct err *err);

/* The node of a top level (1 ..) that the nodes below it make. */
struct bounds heightfield_top_node(const struct heightfield *field, uint32_t level, uint32_t column,
                                   uint32_t row);

/* The four samples of a cell: h[row][column]. */
struct corners {
    float h00, h10, h01, h11; /* (column, row) */
};

static inline const struct tile *heightfield_tile(const struct heightfield *field, uint32_t column,
                                                  uint32_t row)
{
    return field->tiles[(size_t)(row >> TILE_SHIFT) * field->tile_cols + (column >> TILE_SHIFT)];
}

/* The samples of a cell and of the squares and rows that begin there, as tile_at. */
static inline const float *heightfield_at(const struct heightfield *field, uint32_t column,
                                          uint32_t row)
{
    return tile_at(heightfield_tile(field, column, row),
                   (size_t)(row & (TILE_CELLS - 1)) * field->stride + (column & (TILE_CELLS - 1)));
}

static inline struct corners heightfield_corners(const struct heightfield *field, uint32_t column,
                                                 uint32_t row)
{
    size_t stride = field->stride;
    const float *at = heightfield_at(field, column, row);

    return (struct corners){at[0], at[1], at[stride], at[stride + 1]};
}

/* A minmax16 node of a tile by its number. */
static inline const struct minmax16_node *heightfield_minmax16(const struct heightfield *field,
                                                               const struct tile *tile,
                                                               uint32_t number)
{
    return tile_minmax16(tile, field->minmax16_first, number);
}

/* The shape of a tile. */
struct tile_shape heightfield_tile_shape(const struct heightfield_spec *spec, uint32_t tile_column,
                                         uint32_t tile_row);

/* tile_at, a load less for a field whose tiles have all of their samples. */
static inline const float *heightfield_tile_at(const struct heightfield *field,
                                               const struct tile *tile, size_t offset)
{
    return __builtin_expect(field->has_bases, 0) ? tile_at(tile, offset) : tile->samples + offset;
}

/* Bounds of the node of `level` that holds a cell; level is leaf_shift..level_max. */
static inline struct bounds heightfield_node(const struct heightfield *field, uint32_t level,
                                             uint32_t column, uint32_t row)
{
    if (level < TILE_SHIFT) {
        const struct tile *tile = heightfield_tile(field, column, row);

        return tile_node(tile, level, (column & (TILE_CELLS - 1)) >> level,
                         (row & (TILE_CELLS - 1)) >> level);
    }
    const struct top_level *top = &field->top_level[level - TILE_SHIFT];

    return field->top[top->offset + (size_t)(row >> level) * top->cols + (column >> level)];
}

/* True when the cell's hypotenuse runs from (0,0) to (1,1). */
static inline bool cell_is_main(const struct heightfield *field, uint32_t column, uint32_t row)
{
    return field->spec.triangulation == TRIANGULATION_MAIN ||
           (field->spec.triangulation == TRIANGULATION_ALTERNATING && ((column + row) & 1) != 0);
}

/* Does triangle 0 or 1 exist? */
static inline bool triangle_exists(const struct corners *k, bool is_main, int triangle)
{
    /* all of them, and not one after the other: the triangle is not predictable */
    unsigned has = (unsigned)(k->h00 == k->h00) | (unsigned)(k->h10 == k->h10) << 1 |
                   (unsigned)(k->h01 == k->h01) << 2 | (unsigned)(k->h11 == k->h11) << 3;
    unsigned needs = is_main ? 9u | 4u >> (triangle == 0) : 6u | 1u << 3 * (triangle != 0);

    return (has & needs) == needs;
}

/* Height of a triangle's plane at (fu, fv) in the cell; exact at its three samples. */
static inline double triangle_height(const struct corners *k, bool is_main, int triangle, double fu,
                                     double fv)
{
    double h00 = (double)k->h00, h10 = (double)k->h10;
    double h01 = (double)k->h01, h11 = (double)k->h11;

    if (is_main)
        return triangle == 0 ? h00 + fu * (h10 - h00) + fv * (h11 - h10)
                             : h00 + fv * (h01 - h00) + fu * (h11 - h01);
    return triangle == 0 ? h00 + fu * (h10 - h00) + fv * (h01 - h00)
                         : h11 + (1 - fu) * (h01 - h11) + (1 - fv) * (h10 - h11);
}

/* Unit, up. Here, so that corners in registers need not go through memory. */
static inline struct vec3 triangle_normal(const struct heightfield *field, const struct corners *k,
                                          bool is_main, int triangle)
{
    double h00 = (double)k->h00, h10 = (double)k->h10;
    double h01 = (double)k->h01, h11 = (double)k->h11;
    /* of each pair the edge that the triangle has, by index: it is not predictable */
    const double along_u[2] = {h11 - h01, h10 - h00}, along_v[2] = {h01 - h00, h11 - h10};
    bool low = (triangle == 0);
    /* 0 - a, not -a: flat ground has no -0 in its normal */
    double x = 0 - along_u[low] / field->spec.spacing_x_m;
    double y = 0 - along_v[is_main == low] / field->spec.spacing_y_m;
    double square = x * x + y * y + 1;

    if (!(square < 1e300))
        return vec3_unit((struct vec3){x, y, 1});
    double by = 1 / sqrt(square);

    return (struct vec3){x * by, y * by, by};
}

/* A point of the ground in grid coordinates, and the triangle it belongs to. */
struct ground_triangle {
    uint32_t column, row;
    int triangle; /* -1: none exists there */
    double fu, fv;
    double height_m;
    struct corners corners;
    bool is_main;
};

/*
 * The triangle at a point with 0 <= u <= cell_cols, 0 <= v <= cell_rows. Triangles are closed: on
 * an edge or vertex whose own cell has none there, the neighbours' are taken. O(1).
 */
void heightfield_triangle_at(const struct heightfield *field, double u, double v,
                             struct ground_triangle *out);

/* World to grid; false when the point is outside. The upper edges belong to the field. */
bool heightfield_to_grid(const struct heightfield *field, struct vec2 at, double *u, double *v);

/* Min and max over the samples column0..column1 × row0..row1, inclusive, by the pyramid. */
struct bounds heightfield_rect_bounds(const struct heightfield *field, uint32_t column0,
                                      uint32_t row0, uint32_t column1, uint32_t row1);

#endif
