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
 * so they are exact and need no rounding outward. A zero bound is made +0, so that a bound does not
 * depend on the order in which samples are read, and a pyramid that was updated is bit for bit
 * the one of a new build.
 *
 * Bounds are made by rows of squares: first the bounds of each column of samples (four at a time;
 * minps and maxps with the sample first are exactly `sample < min ? sample : min`), then of the
 * columns of each square. Infinite samples show in the root at no cost.
 */
#include "terrain/field/tile.h"

#include "base/check.h"
#include "base/slab.h"
#include "terrain/field/sample_hash.h"
#include "terrain/kernels/lanes.h"

#include <math.h>
#include <string.h>

static atomic_uint_least64_t last_serial;
static atomic_uint_least64_t all_bytes;
static struct slab_pool pools[TILE_SHIFT + 1] = {
    [0 ... TILE_SHIFT] = SLAB_POOL_INIT}; /* a leaf size has its size of tiles */

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

void tile_column_bounds_scalar(const float *samples, uint32_t rows, uint32_t cols, float *min,
                               float *max)
{
    for (uint32_t column = 0; column < cols; column++) {
        struct bounds b = BOUNDS_EMPTY;

        for (uint32_t row = 0; row < rows; row++)
            b = bounds_add(b, samples[(size_t)row * TILE_SAMPLES + column]);
        min[column] = b.min;
        max[column] = b.max;
    }
}

void tile_column_bounds(const float *samples, uint32_t rows, uint32_t cols, float *min, float *max)
{
    uint32_t column = 0;

    for (; column + 8 <= cols; column += 8) {
        const float *at = samples + column;
        f32x4 min0 = f32x4_all(__builtin_inff()), max0 = f32x4_all(-__builtin_inff());
        f32x4 min1 = min0, max1 = max0;

        for (uint32_t row = 0; row < rows; row++, at += TILE_SAMPLES) {
            f32x4 h0 = f32x4_load(at), h1 = f32x4_load(at + 4);

            min0 = f32x4_min(h0, min0);
            max0 = f32x4_max(h0, max0);
            min1 = f32x4_min(h1, min1);
            max1 = f32x4_max(h1, max1);
        }
        f32x4_store(min + column, min0);
        f32x4_store(min + column + 4, min1);
        f32x4_store(max + column, max0);
        f32x4_store(max + column + 4, max1);
    }
    tile_column_bounds_scalar(samples + column, rows, cols - column, min + column, max + column);
}

/* Part of the nodes of one level: column0 .. column1 - 1, row0 .. row1 - 1. */
struct node_rect {
    uint32_t column0, row0, column1, row1;
};

/* ---- leaves and the minmax16 nodes above them ---------------------------------------------------
 *
 * Both are made in one pass over the samples, by blocks of 16×16 cells: the bounds of squares of
 * 4×4 cells are what the last minmax16 nodes hold, and leaves of up to 16×16 cells are unions of
 * them.
 */
enum {
    SQUARE_SHIFT = 2, /* log2 of MINMAX16_LEAF_CELLS */
    BLOCK_SHIFT = 4,  /* of a minmax16 node's side in cells, where its children are squares */
    BLOCKS = TILE_CELLS >> BLOCK_SHIFT,
    SQUARES = TILE_CELLS >> SQUARE_SHIFT
};
_Static_assert(1 << SQUARE_SHIFT == MINMAX16_LEAF_CELLS &&
                   BLOCK_SHIFT == SQUARE_SHIFT + MINMAX16_SHIFT,
               "a block is a node of squares");

/* The bounds of squares whose columns' bounds are min and max, the shared columns included. */
static void squares_of_columns(const float *min, const float *max, uint32_t count,
                               struct bounds *squares)
{
    uint32_t i = 0;

    for (; i + 4 <= count; i += 4, min += 16, max += 16) {
        f32x4 low[4], high[4];

        f32x4_transpose(f32x4_load(min), f32x4_load(min + 4), f32x4_load(min + 8),
                        f32x4_load(min + 12), low);
        f32x4_transpose(f32x4_load(max), f32x4_load(max + 4), f32x4_load(max + 8),
                        f32x4_load(max + 12), high);
        /* the fifth columns are the next squares' first */
        f32x4 low4 = {min[4], min[8], min[12], min[16]};
        f32x4 high4 = {max[4], max[8], max[12], max[16]};

        low[0] = f32x4_min(f32x4_min(low[0], low[1]), f32x4_min(low[2], low[3]));
        high[0] = f32x4_max(f32x4_max(high[0], high[1]), f32x4_max(high[2], high[3]));
        low[0] = f32x4_min(low[0], low4);
        high[0] = f32x4_max(high[0], high4);
        f32x4_store(&squares[i].min, __builtin_shufflevector(low[0], high[0], 0, 4, 1, 5));
        f32x4_store(&squares[i + 2].min, __builtin_shufflevector(low[0], high[0], 2, 6, 3, 7));
    }
    for (; i < count; i++, min += MINMAX16_LEAF_CELLS, max += MINMAX16_LEAF_CELLS) {
        squares[i] = (struct bounds){min[0], max[0]};
        for (uint32_t k = 1; k <= MINMAX16_LEAF_CELLS; k++)
            squares[i] = bounds_union(squares[i], (struct bounds){min[k], max[k]});
    }
}

/* The node of the last level over one of 16×16 blocks. */
static uint32_t minmax16_index(uint32_t column, uint32_t row)
{
    uint32_t parent = 1 + 4 * (row / 4) + column / 4;

    return MINMAX16_CHILDREN * parent + 1 + 4 * (row & 3) + (column & 3);
}

/* Leaves of 2^shift cells over one row of blocks, whose squares are there. */
static void leaves_of_squares(struct tile *tile, const struct node_rect *blocks, uint32_t block_row,
                              const struct bounds squares[4][SQUARES])
{
    uint32_t shift = tile->leaf_shift - SQUARE_SHIFT, each = 1u << shift;
    uint32_t side = (uint32_t)TILE_CELLS >> tile->leaf_shift;
    uint32_t first = blocks->column0 * 4 >> shift, end = blocks->column1 * 4 >> shift;
    struct bounds *leaves = tile->nodes + tile->level_offset[tile->leaf_shift];

    for (uint32_t row = 0; row < 4u >> shift; row++)
        for (uint32_t column = first; column < end; column++) {
            struct bounds b = BOUNDS_EMPTY;

            for (uint32_t r = row << shift; r < (row << shift) + each; r++)
                for (uint32_t c = column << shift; c < (column << shift) + each; c++)
                    b = bounds_union(b, squares[r][c]);
            leaves[((block_row * 4 >> shift) + row) * side + column] =
                (struct bounds){b.min + 0.0f, b.max + 0.0f};
        }
}

/* The last minmax16 nodes over a part of the blocks, and the leaves where squares make them. */
static void build_blocks(struct tile *tile, const struct node_rect *blocks)
{
    bool makes_leaves = tile->leaf_shift >= SQUARE_SHIFT && tile->leaf_shift <= BLOCK_SHIFT;
    uint32_t first = blocks->column0 << BLOCK_SHIFT, end = blocks->column1 << BLOCK_SHIFT;
    float min[TILE_SAMPLES], max[TILE_SAMPLES];
    struct bounds squares[4][SQUARES], children[MINMAX16_CHILDREN];

    for (uint32_t row = blocks->row0; row < blocks->row1; row++) {
        for (uint32_t i = 0; i < 4; i++) {
            const float *samples =
                tile->samples + (((size_t)row * 4 + i) << SQUARE_SHIFT) * TILE_SAMPLES + first;

            tile_column_bounds(samples, MINMAX16_LEAF_CELLS + 1, end - first + 1, min, max);
            squares_of_columns(min, max, (end - first) >> SQUARE_SHIFT,
                               squares[i] + (first >> SQUARE_SHIFT));
        }
        for (uint32_t column = blocks->column0; column < blocks->column1; column++) {
            for (uint32_t i = 0; i < 4; i++)
                memcpy(children + i * 4, squares[i] + (size_t)column * 4, 4 * sizeof *children);
            minmax16_build(&tile->minmax16[minmax16_index(column, row)], children);
        }
        if (makes_leaves)
            leaves_of_squares(tile, blocks, row, squares);
    }
}

/* Leaves of any size, from the samples. */
static void build_leaves(struct tile *tile, const struct node_rect *part)
{
    uint32_t shift = tile->leaf_shift, cells = 1u << shift;
    uint32_t side = (uint32_t)TILE_CELLS >> shift;
    struct bounds *leaves = tile->nodes + tile->level_offset[shift];
    float min[TILE_SAMPLES], max[TILE_SAMPLES];

    for (uint32_t row = part->row0; row < part->row1; row++) {
        const float *samples = tile->samples + ((size_t)row << shift) * TILE_SAMPLES +
                               ((size_t)part->column0 << shift);

        tile_column_bounds(samples, cells + 1, ((part->column1 - part->column0) << shift) + 1, min,
                           max);
        for (uint32_t column = part->column0; column < part->column1; column++) {
            uint32_t first = (column - part->column0) << shift;
            struct bounds b = {min[first], max[first]};

            for (uint32_t i = first + 1; i <= first + cells; i++)
                b = bounds_union(b, (struct bounds){min[i], max[i]});
            leaves[row * side + column] = (struct bounds){b.min + 0.0f, b.max + 0.0f};
        }
    }
}

/* The ancestors of these leaves. */
static void build_levels(struct tile *tile, const struct node_rect *leaves)
{
    struct node_rect part = *leaves;

    for (uint32_t level = tile->leaf_shift + 1; level <= TILE_SHIFT; level++) {
        uint32_t side = (uint32_t)TILE_CELLS >> level;
        struct bounds *nodes = tile->nodes + tile->level_offset[level];
        const struct bounds *below = tile->nodes + tile->level_offset[level - 1];

        part = (struct node_rect){part.column0 / 2, part.row0 / 2, (part.column1 + 1) / 2,
                                  (part.row1 + 1) / 2};
        for (uint32_t row = part.row0; row < part.row1; row++)
            for (uint32_t column = part.column0; column < part.column1; column++) {
                const struct bounds *child = below + (size_t)row * 4 * side + (size_t)column * 2;

                nodes[row * side + column] =
                    bounds_union(bounds_union(child[0], child[1]),
                                 bounds_union(child[2 * side], child[2 * side + 1]));
            }
    }
}

/* Node n from the nodes below it. */
static void minmax16_from_below(struct tile *tile, uint32_t n)
{
    struct bounds children[MINMAX16_CHILDREN];

    for (uint32_t i = 0; i < MINMAX16_CHILDREN; i++)
        children[i] = minmax16_bounds(&tile->minmax16[MINMAX16_CHILDREN * n + 1 + i]);
    minmax16_build(&tile->minmax16[n], children);
}

/* The minmax16 nodes above a part of the blocks. */
static void build_wide(struct tile *tile, const struct node_rect *blocks)
{
    for (uint32_t row = blocks->row0 / 4; row <= (blocks->row1 - 1) / 4; row++)
        for (uint32_t column = blocks->column0 / 4; column <= (blocks->column1 - 1) / 4; column++)
            minmax16_from_below(tile, 1 + 4 * row + column);
    minmax16_from_below(tile, 0);
}

/* Everything over these blocks of 16×16 cells. */
static void build(struct tile *tile, const struct node_rect *blocks)
{
    struct node_rect leaves;

    build_blocks(tile, blocks);
    build_wide(tile, blocks);
    if (tile->leaf_shift > BLOCK_SHIFT) {
        uint32_t more = tile->leaf_shift - BLOCK_SHIFT, round = (1u << more) - 1;

        leaves =
            (struct node_rect){blocks->column0 >> more, blocks->row0 >> more,
                               (blocks->column1 + round) >> more, (blocks->row1 + round) >> more};
    } else {
        uint32_t less = BLOCK_SHIFT - tile->leaf_shift;

        leaves = (struct node_rect){blocks->column0 << less, blocks->row0 << less,
                                    blocks->column1 << less, blocks->row1 << less};
    }
    if (tile->leaf_shift < SQUARE_SHIFT || tile->leaf_shift > BLOCK_SHIFT)
        build_leaves(tile, &leaves);
    build_levels(tile, &leaves);
}

struct tile *tile_begin(uint32_t cols, uint32_t rows, uint32_t leaf_shift)
{
    struct tile *tile = slab_alloc(&pools[leaf_shift], tile_bytes(leaf_shift));
    uint32_t offset = 0;

    if (tile == NULL)
        return NULL;
    atomic_fetch_add_explicit(&all_bytes, tile_bytes(leaf_shift), memory_order_relaxed);
    atomic_init(&tile->refs, 1);
    tile->leaf_shift = leaf_shift;
    tile->serial = 0;
    atomic_init(&tile->hash[0], 0);
    atomic_init(&tile->hash[1], 0);
    memset(tile->level_offset, 0, sizeof tile->level_offset);
    for (uint32_t level = leaf_shift; level <= TILE_SHIFT; level++) {
        tile->level_offset[level] = offset;
        offset += 1u << 2 * (TILE_SHIFT - level);
    }
    tile->nodes = (struct bounds *)(void *)((char *)tile + sizeof *tile);
    for (uint32_t row = 0; row < TILE_SAMPLES; row++) {
        float *to = tile->samples + (size_t)row * TILE_SAMPLES;

        for (uint32_t column = row < rows ? cols : 0; column < TILE_SAMPLES; column++)
            to[column] = __builtin_nanf("");
    }
    return tile;
}

static uint64_t next_serial(void)
{
    return atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
}

bool tile_seal(struct tile *tile)
{
    build(tile, &(struct node_rect){0, 0, BLOCKS, BLOCKS});
    struct bounds root = tile_root(tile);

    if (root.min == -__builtin_inff() || root.max == __builtin_inff())
        return false;
    tile->serial = next_serial();
    return true;
}

static bool has_samples(const struct tile *tile, const struct tile_rect *rect,
                        const float *heights_m, size_t stride)
{
    const float *own = tile->samples + (size_t)rect->row * TILE_SAMPLES + rect->column;

    for (uint32_t row = 0; row < rect->rows; row++)
        if (memcmp(own + (size_t)row * TILE_SAMPLES, heights_m + row * stride,
                   rect->cols * sizeof *own) != 0)
            return false;
    return true;
}

/* The blocks that use one of count samples from the first on: a seam belongs to both sides. */
static void blocks_of(uint32_t first, uint32_t count, uint32_t *low, uint32_t *high)
{
    uint32_t last = (first + count - 1) >> BLOCK_SHIFT;

    *low = first == 0 ? 0 : (first - 1) >> BLOCK_SHIFT;
    *high = last < BLOCKS ? last + 1 : BLOCKS;
}

struct tile *tile_with_samples(struct tile *tile, const struct tile_rect *rect,
                               const float *heights_m, size_t stride)
{
    CHECK(rect->cols > 0 && rect->rows > 0 && rect->column + rect->cols <= TILE_SAMPLES &&
          rect->row + rect->rows <= TILE_SAMPLES);
    if (has_samples(tile, rect, heights_m, stride)) {
        tile_ref(tile);
        return tile;
    }
    struct tile *copy = tile_begin(TILE_SAMPLES, TILE_SAMPLES, tile->leaf_shift);
    struct node_rect part;

    if (copy == NULL)
        return NULL;
    memcpy(copy->samples, tile->samples, sizeof tile->samples);
    memcpy(copy->nodes, tile->nodes, node_count(tile->leaf_shift) * sizeof *tile->nodes);
    for (uint32_t row = 0; row < rect->rows; row++)
        memcpy(copy->samples + (size_t)(rect->row + row) * TILE_SAMPLES + rect->column,
               heights_m + row * stride, rect->cols * sizeof *heights_m);
    memcpy(copy->minmax16, tile->minmax16, sizeof tile->minmax16);
    blocks_of(rect->column, rect->cols, &part.column0, &part.column1);
    blocks_of(rect->row, rect->rows, &part.row0, &part.row1);
    build(copy, &part);
    copy->serial = next_serial();
    return copy;
}

void tile_hash(const struct tile *tile, uint64_t hash[2])
{
    struct tile *written = (struct tile *)tile; /* only the two words, which all compute alike */

    hash[0] = atomic_load_explicit(&tile->hash[0], memory_order_acquire);
    if (hash[0] != 0) {
        hash[1] = atomic_load_explicit(&tile->hash[1], memory_order_relaxed);
        return;
    }
    hash[1] = 0;
    for (uint32_t row = 0; row < TILE_CELLS; row++)
        sample_hash(tile->samples + (size_t)row * TILE_SAMPLES, TILE_CELLS, 1, hash);
    hash[0] |= 1;
    atomic_store_explicit(&written->hash[1], hash[1], memory_order_relaxed);
    atomic_store_explicit(&written->hash[0], hash[0], memory_order_release);
}

void tile_ref(struct tile *tile)
{
    atomic_fetch_add_explicit(&tile->refs, 1, memory_order_relaxed);
}

void tile_unref(struct tile *tile)
{
    if (tile == NULL || atomic_fetch_sub_explicit(&tile->refs, 1, memory_order_acq_rel) != 1)
        return;
    atomic_fetch_sub_explicit(&all_bytes, tile_bytes(tile->leaf_shift), memory_order_relaxed);
    slab_free(&pools[tile->leaf_shift], tile);
}

uint64_t tile_all_bytes(void)
{
    return atomic_load_explicit(&all_bytes, memory_order_relaxed);
}

static struct bounds leaf_bounds(const float *samples, uint32_t side_cells)
{
    struct bounds b = BOUNDS_EMPTY;

    for (uint32_t row = 0; row <= side_cells; row++)
        for (uint32_t column = 0; column <= side_cells; column++)
            b = bounds_add(b, samples[row * TILE_SAMPLES + column]);
    return b;
}

/* The minmax16 nodes over the samples, and that those above follow from them. */
static bool minmax16_is_valid(const struct tile *tile, struct err *err)
{
    for (uint32_t i = 0; i < 64 * 64; i++) {
        uint32_t column = i % 64, row = i / 64, lane = (row & 3) * 4 + (column & 3);
        const float *samples = tile->samples + (size_t)row * MINMAX16_LEAF_CELLS * TILE_SAMPLES +
                               column * MINMAX16_LEAF_CELLS;

        if (!minmax16_child_holds(&tile->minmax16[minmax16_index(column / 4, row / 4)], lane,
                                  leaf_bounds(samples, MINMAX16_LEAF_CELLS))) {
            err_set(err, ERR_INTERNAL, "minmax16 leaf (%u, %u) does not hold its samples", column,
                    row);
            return false;
        }
    }
    for (uint32_t n = 1; n < MINMAX16_TILE_NODES; n++)
        if (!minmax16_child_holds(&tile->minmax16[(n - 1) / MINMAX16_CHILDREN],
                                  (n - 1) % MINMAX16_CHILDREN,
                                  minmax16_bounds(&tile->minmax16[n]))) {
            err_set(err, ERR_INTERNAL, "minmax16 node %u is not held by the one above it", n);
            return false;
        }
    return true;
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

                bool is_minus_zero =
                    (got.min == 0 && signbit(got.min)) || (got.max == 0 && signbit(got.max));

                if (want.min != got.min || want.max != got.max || is_minus_zero) {
                    err_set(err, ERR_INTERNAL,
                            "node (%u, %u) of level %u is %g..%g, its samples %g..%g", column, row,
                            level, (double)got.min, (double)got.max, (double)want.min,
                            (double)want.max);
                    return false;
                }
            }
    }
    return minmax16_is_valid(tile, err);
}
