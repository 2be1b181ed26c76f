/*
 * Tiles and the pyramid inside them.
 *
 * The pyramid is text T's T-pyramid (Sjöstrand 2017, section 3.1) laid out level by level, row by
 * row, rather than as one array in child order: a ray that walks from node to node then needs no
 * parent or child arithmetic, and a level of a tile stays in a few cache lines.
 *
 * Two slips of the text are not copied. Its leaves take the samples of their area only, although
 * the cells at the far side use one more row and column; here a leaf covers (2^leaf_shift + 1)²
 * samples. Its leaf_first_index sums from m = 1; there is no such index here.
 *
 * NaN never enters a bound: `sample < min` is false for NaN. Bounds are float32 like the samples,
 * so they are exact and need no rounding outward.
 */
#include "terrain/tile.h"

#include <stdlib.h>
#include <string.h>

static size_t node_count(uint32_t leaf_shift)
{
    size_t count = 0;

    for (uint32_t level = leaf_shift; level <= TILE_SHIFT; level++)
        count += (size_t)1 << 2 * (TILE_SHIFT - level);
    return count;
}

size_t tile_bytes(uint32_t leaf_shift)
{
    return sizeof(struct tile) + node_count(leaf_shift) * sizeof(struct bounds);
}

static struct bounds leaf_bounds(const float *samples, uint32_t side_cells)
{
    struct bounds b = BOUNDS_EMPTY;

    for (uint32_t row = 0; row <= side_cells; row++)
        for (uint32_t column = 0; column <= side_cells; column++)
            b = bounds_add(b, samples[row * TILE_SAMPLES + column]);
    return b;
}

static void build_leaves(struct tile *tile)
{
    uint32_t shift = tile->leaf_shift;
    uint32_t side = (uint32_t)TILE_CELLS >> shift;
    struct bounds *leaves = tile->nodes + tile->level_offset[shift];

    for (uint32_t row = 0; row < side; row++)
        for (uint32_t column = 0; column < side; column++)
            leaves[row * side + column] = leaf_bounds(
                tile->samples + (size_t)(row << shift) * TILE_SAMPLES + ((size_t)column << shift),
                1u << shift);
}

static void build_levels(struct tile *tile)
{
    for (uint32_t level = tile->leaf_shift + 1; level <= TILE_SHIFT; level++) {
        uint32_t side = (uint32_t)TILE_CELLS >> level;
        struct bounds *nodes = tile->nodes + tile->level_offset[level];
        const struct bounds *below = tile->nodes + tile->level_offset[level - 1];

        for (uint32_t row = 0; row < side; row++)
            for (uint32_t column = 0; column < side; column++) {
                const struct bounds *child = below + (size_t)row * 4 * side + (size_t)column * 2;

                nodes[row * side + column] =
                    bounds_union(bounds_union(child[0], child[1]),
                                 bounds_union(child[2 * side], child[2 * side + 1]));
            }
    }
}

struct tile *tile_create(const float *heights_m, uint32_t cols, uint32_t rows, uint32_t column0,
                         uint32_t row0, uint32_t leaf_shift)
{
    uint32_t width = cols - column0 < TILE_SAMPLES ? cols - column0 : TILE_SAMPLES;
    uint32_t height = rows - row0 < TILE_SAMPLES ? rows - row0 : TILE_SAMPLES;
    struct tile *tile = malloc(tile_bytes(leaf_shift));
    uint32_t offset = 0;

    if (tile == NULL)
        return NULL;
    atomic_init(&tile->refs, 1);
    tile->leaf_shift = leaf_shift;
    memset(tile->level_offset, 0, sizeof tile->level_offset);
    for (uint32_t level = leaf_shift; level <= TILE_SHIFT; level++) {
        tile->level_offset[level] = offset;
        offset += 1u << 2 * (TILE_SHIFT - level);
    }
    tile->nodes = (struct bounds *)(void *)((char *)tile + sizeof *tile);
    for (uint32_t row = 0; row < TILE_SAMPLES; row++) {
        float *to = tile->samples + (size_t)row * TILE_SAMPLES;
        uint32_t filled = row < height ? width : 0;

        memcpy(to, heights_m + (size_t)(row < height ? row0 + row : row0) * cols + column0,
               filled * sizeof *to);
        for (uint32_t column = filled; column < TILE_SAMPLES; column++)
            to[column] = __builtin_nanf("");
    }
    build_leaves(tile);
    build_levels(tile);
    return tile;
}

void tile_ref(struct tile *tile)
{
    atomic_fetch_add_explicit(&tile->refs, 1, memory_order_relaxed);
}

void tile_unref(struct tile *tile)
{
    if (tile != NULL && atomic_fetch_sub_explicit(&tile->refs, 1, memory_order_acq_rel) == 1)
        free(tile);
}

bool tile_validate(const struct tile *tile, struct err *err)
{
    for (uint32_t level = tile->leaf_shift; level <= TILE_SHIFT; level++) {
        uint32_t side = (uint32_t)TILE_CELLS >> level;

        for (uint32_t row = 0; row < side; row++)
            for (uint32_t column = 0; column < side; column++) {
                struct bounds want =
                    leaf_bounds(tile->samples + (size_t)(row << level) * TILE_SAMPLES +
                                    ((size_t)column << level),
                                1u << level);
                struct bounds got = tile_node(tile, level, column, row);

                if (want.min != got.min || want.max != got.max) {
                    err_set(err, ERR_INTERNAL,
                            "node (%u, %u) of level %u is %g..%g, its samples %g..%g", column, row,
                            level, (double)got.min, (double)got.max, (double)want.min,
                            (double)want.max);
                    return false;
                }
            }
    }
    return true;
}
