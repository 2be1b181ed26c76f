/*
 * A tile: an immutable block of 256×256 cells, 257×257 samples (the last row and column are an
 * apron shared with the neighbours, so that a cell never looks outside its tile), with its own
 * min/max pyramid.
 *
 *   samples[257][257]       row 0 at the smallest y; NaN where there is no data or no field
 *   nodes                   level by level from the leaves to the root; level L holds
 *                           (256 >> L)² nodes, row by row, from L = leaf_shift to L = 8
 *   minmax16                the same once more for rays: nodes of 4×4 children down to 4×4 cells
 *
 * The samples are read by chunks of 2^14, in which a cell, a square of 4×4 cells and five rows from
 * their first sample on are without a gap (tile_at). Those of a tile are one array, but for a tile
 * that differs from another one in few chunks: it has only those, and holds the other tile
 * (tile_over). What is in no chunk of it costs a fork of a field nothing.
 *
 * A tile that the field covers in part has only the rows and the nodes over it, and in a field that
 * is one tile wide a row is shorter, too (struct tile_shape). Around the field are at least four
 * cells without data, for rays look at the square after the last.
 *
 * A node's bounds are those of every sample that its cells use, far row and column included; a node
 * without data is (+inf, -inf), and a bound that is zero is +0. Tiles are counted and shared
 * between heightfields.
 */
#ifndef KOTA_TERRAIN_TILE_H
#define KOTA_TERRAIN_TILE_H

#include "base/err.h"
#include "terrain/bounds.h"
#include "terrain/field/minmax16.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TILE_SHIFT = 8, TILE_CELLS = 1 << TILE_SHIFT, TILE_SAMPLES = TILE_CELLS + 1 };

/* The last chunk has the samples after 4 · 2^14, too. */
enum { TILE_CHUNK_SHIFT = 14, TILE_CHUNKS = 4 };

/* The size of a tile. */
struct tile_shape {
    uint16_t cols, rows; /* samples inside the field, 2..257 */
    /* alike in all tiles of a field: */
    uint16_t stride;     /* of a row of samples */
    uint16_t first;      /* the first minmax16 node that there is: the smallest over the field;
                            MINMAX16_TILE_NODES: a strip has none */
    uint32_t leaf_shift; /* a leaf is 2^leaf_shift cells wide */
};

/* Below it in memory are its minmax16 nodes (tile_minmax16). */
struct tile {
    atomic_uint refs;
    struct tile_shape shape;
    uint64_t serial;          /* no other tile of the process has it; 0: not sealed yet */
    _Atomic uint64_t hash[2]; /* tile_hash, once it was asked for; hash[0] is 0 before */
    uint32_t level_offset[TILE_SHIFT + 1]; /* of level L in nodes; below leaf_shift unused */
    uint8_t level_shift[TILE_SHIFT + 1];   /* log2 of the nodes in its rows */
    struct bounds *nodes;                  /* after the samples, same allocation */
    struct tile *base;                     /* has the chunks that are not here; NULL: none */
    float *chunk[TILE_CHUNKS + 1];         /* as if sample 0 were there: tile_at */
    float samples[];                       /* all, or the chunks that base has not */
};

/* Sample `offset` = row · stride + column, and those of five rows after it. */
static inline const float *tile_at(const struct tile *tile, size_t offset)
{
    return tile->chunk[offset >> TILE_CHUNK_SHIFT] + offset;
}

/* Of a tile with so many samples in a field of field_cols × field_rows. */
struct tile_shape tile_shape(uint32_t cols, uint32_t rows, uint32_t leaf_shift, uint32_t field_cols,
                             uint32_t field_rows);

/* The rows of samples that there are, some of them after the field. */
uint32_t tile_row_count(const struct tile_shape *shape);

/* Its minmax16 nodes, with all children of each that has data: rays look at those without, too. */
uint32_t tile_minmax16_count(const struct tile_shape *shape);

/*
 * A tile to be filled: of samples[rows][cols] at its low corner the caller writes all, the rest is
 * NaN already. NULL without memory. One reference.
 */
struct tile *tile_begin(const struct tile_shape *shape, uint32_t cols, uint32_t rows);

/*
 * Builds the pyramid of a tile whose samples are there; from now on nothing of it changes. False
 * when a sample is infinite; such a tile is good for tile_unref only. O(samples).
 */
bool tile_seal(struct tile *tile);

/* Samples column .. column + cols - 1 of a tile, and the rows likewise. */
struct tile_rect {
    uint32_t column, row, cols, rows;
};

/*
 * The tile with other samples in the rectangle: heights_m[rows][stride], none infinite. The same
 * tile, counted, when they equal the present ones, bit for bit. NULL without memory. O(bytes of the
 * tile); of the pyramid only blocks of 16×16 cells that use one of the samples and the nodes above
 * them are computed.
 */
struct tile *tile_with_samples(struct tile *tile, const struct tile_rect *rect,
                               const float *heights_m, size_t stride);

/*
 * A tile like this one (taken, not shared, with all its samples) that has only the chunks in which
 * it differs from another tile of its shape, and counts that one. The tile itself where it differs
 * in more than two, is a small one, or there is no memory. O(bytes of the tile).
 */
struct tile *tile_over(struct tile *tile, struct tile *other);

/*
 * 128 bits over the 256×256 samples without the apron, all of the field: equal samples have equal
 * hashes, in every process; all NaN are equal. O(samples) the first time, then O(1). Any thread.
 */
void tile_hash(const struct tile *tile, uint64_t hash[2]);

void tile_ref(struct tile *tile);
void tile_unref(struct tile *tile); /* NULL is fine */
size_t tile_bytes(const struct tile_shape *shape);
uint64_t tile_all_bytes(void); /* of all tiles there are */

/* Every node against every sample that it covers. */
bool tile_validate(const struct tile *tile, struct err *err);

/*
 * Per column, bounds of rows × cols samples: what all leaves are made of. The first is the scalar
 * form of the second; they give the same bits but for the sign of a zero.
 */
void tile_column_bounds_scalar(const float *samples, size_t stride, uint32_t rows, uint32_t cols,
                               float *min, float *max);
void tile_column_bounds(const float *samples, size_t stride, uint32_t rows, uint32_t cols,
                        float *min, float *max);

/* A minmax16 node by its number; first is the shape's. */
static inline struct minmax16_node *tile_minmax16(const struct tile *tile, uint32_t first,
                                                  uint32_t number)
{
    return (struct minmax16_node *)(uintptr_t)tile - 1 - (number - first);
}

static inline struct bounds tile_node(const struct tile *tile, uint32_t level, uint32_t column,
                                      uint32_t row)
{
    return tile->nodes[tile->level_offset[level] + (row << tile->level_shift[level]) + column];
}

static inline struct bounds tile_root(const struct tile *tile)
{
    return tile->nodes[tile->level_offset[TILE_SHIFT]];
}

#endif
