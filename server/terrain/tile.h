/*
 * A tile: an immutable block of 256×256 cells, 257×257 samples (the last row and column are an
 * apron shared with the neighbours, so that a cell never looks outside its tile), with its own
 * min/max pyramid.
 *
 *   samples[257][257]       row 0 at the smallest y; NaN where there is no data or no field
 *   nodes                   level by level from the leaves to the root; level L holds
 *                           (256 >> L)² nodes, row by row, from L = leaf_shift to L = 8
 *
 * A node's bounds are those of every sample that its cells use, far row and column included; a node
 * without data is (+inf, -inf). Tiles are counted and shared between heightfields.
 */
#ifndef KOTA_TERRAIN_TILE_H
#define KOTA_TERRAIN_TILE_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TILE_SHIFT = 8, TILE_CELLS = 1 << TILE_SHIFT, TILE_SAMPLES = TILE_CELLS + 1 };

struct bounds {
    float min, max; /* min > max: nothing inside */
};

#define BOUNDS_EMPTY ((struct bounds){__builtin_inff(), -__builtin_inff()})

struct tile {
    atomic_uint refs;
    uint32_t leaf_shift;                   /* a leaf is 2^leaf_shift cells wide */
    uint32_t level_offset[TILE_SHIFT + 1]; /* of level L in nodes; below leaf_shift unused */
    struct bounds *nodes;                  /* behind the samples, same allocation */
    float samples[TILE_SAMPLES * TILE_SAMPLES];
};

/*
 * Makes a tile of the samples at (column0, row0) of heights_m[rows][cols]; beyond them NaN.
 * NULL without memory. One reference. O(samples).
 */
struct tile *tile_create(const float *heights_m, uint32_t cols, uint32_t rows, uint32_t column0,
                         uint32_t row0, uint32_t leaf_shift);
void tile_ref(struct tile *tile);
void tile_unref(struct tile *tile); /* NULL is fine */
size_t tile_bytes(uint32_t leaf_shift);

/* Every node against every sample that it stands for. */
bool tile_validate(const struct tile *tile, struct err *err);

static inline struct bounds tile_node(const struct tile *tile, uint32_t level, uint32_t column,
                                      uint32_t row)
{
    return tile->nodes[tile->level_offset[level] + (row << (TILE_SHIFT - level)) + column];
}

static inline struct bounds tile_root(const struct tile *tile)
{
    return tile->nodes[tile->level_offset[TILE_SHIFT]];
}

static inline struct bounds bounds_union(struct bounds a, struct bounds b)
{
    return (struct bounds){a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}

/* NaN leaves the bounds as they are. */
static inline struct bounds bounds_add(struct bounds a, float sample)
{
    return (struct bounds){sample < a.min ? sample : a.min, sample > a.max ? sample : a.max};
}

#endif
