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
#include <stdlib.h>
#include <string.h>

static atomic_uint_least64_t last_serial;
static atomic_uint_least64_t all_bytes;
/* of whole tiles, and of those with one or two chunks: a leaf size has its size of them */
enum { OWN_CHUNKS_MAX = 2 };
static struct slab_pool pools[OWN_CHUNKS_MAX + 1][TILE_SHIFT + 1] = {
    [0 ... OWN_CHUNKS_MAX] = {[0 ... TILE_SHIFT] = SLAB_POOL_INIT}};

void tile_column_bounds_scalar(const float *samples, size_t stride, uint32_t rows, uint32_t cols,
                               float *min, float *max)
{
    for (uint32_t column = 0; column < cols; column++) {
        struct bounds b = BOUNDS_EMPTY;

        for (uint32_t row = 0; row < rows; row++)
            b = bounds_add(b, samples[row * stride + column]);
        min[column] = b.min;
        max[column] = b.max;
    }
}

void tile_column_bounds(const float *samples, size_t stride, uint32_t rows, uint32_t cols,
                        float *min, float *max)
{
    uint32_t column = 0;

    for (; column + 8 <= cols; column += 8) {
        const float *at = samples + column;
        f32x4 min0 = f32x4_all(__builtin_inff()), max0 = f32x4_all(-__builtin_inff());
        f32x4 min1 = min0, max1 = max0;

        for (uint32_t row = 0; row < rows; row++, at += stride) {
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
    tile_column_bounds_scalar(samples + column, stride, rows, cols - column, min + column,
                              max + column);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

enum {
    SQUARE_SHIFT = 2, /* log2 of MINMAX16_LEAF_CELLS */
    BLOCK_SHIFT = 4,  /* of a minmax16 node's side in cells, where its children are squares */
    BLOCKS = TILE_CELLS >> BLOCK_SHIFT,
    SQUARES = TILE_CELLS >> SQUARE_SHIFT
};
_Static_assert(1 << SQUARE_SHIFT == MINMAX16_LEAF_CELLS &&
                   BLOCK_SHIFT == SQUARE_SHIFT + MINMAX16_SHIFT,
               "a block is a node of squares");

/* Whole squares of 4×4 cells over so many samples, and one more, up to those of a whole tile. */
static uint32_t padded(uint32_t samples)
{
    uint32_t cells = (samples + 2) / MINMAX16_LEAF_CELLS * MINMAX16_LEAF_CELLS;

    return cells + MINMAX16_LEAF_CELLS < TILE_CELLS ? cells + MINMAX16_LEAF_CELLS + 1
                                                    : (uint32_t)TILE_SAMPLES;
}

struct tile_shape tile_shape(uint32_t cols, uint32_t rows, uint32_t leaf_shift, uint32_t field_cols,
                             uint32_t field_rows)
{
    uint32_t longer = field_cols > field_rows ? field_cols : field_rows;
    uint32_t shorter = field_cols + field_rows - longer;
    bool is_strip = shorter < 16 && (longer > 17 || longer > 2 * shorter);

    return (struct tile_shape){
        .cols = (uint16_t)cols,
        .rows = (uint16_t)rows,
        .stride = (uint16_t)(field_cols > TILE_SAMPLES ? (uint32_t)TILE_SAMPLES
                             : is_strip                ? cols
                                                       : padded(cols)),
        /* a ray begins at the smallest node over its way: no larger one is ever looked at */
        .first = is_strip      ? MINMAX16_TILE_NODES
                 : longer > 65 ? 0
                 : longer > 17 ? 1
                               : MINMAX16_TILE_LAST_LEVEL,
        .leaf_shift = leaf_shift,
    };
}

static bool has_minmax16(const struct tile_shape *shape)
{
    return shape->first < MINMAX16_TILE_NODES;
}

uint32_t tile_row_count(const struct tile_shape *shape)
{
    return has_minmax16(shape) ? padded(shape->rows) : shape->rows;
}

/* Blocks of 16×16 cells over so many samples of the field. */
static uint32_t block_count(uint32_t samples)
{
    return (samples + (1u << BLOCK_SHIFT) - 2) >> BLOCK_SHIFT;
}

/* The node of the last level over one of 16×16 blocks. */
static uint32_t minmax16_index(uint32_t column, uint32_t row)
{
    uint32_t parent = 1 + 4 * (row / 4) + column / 4;

    return MINMAX16_CHILDREN * parent + 1 + 4 * (row & 3) + (column & 3);
}

uint32_t tile_minmax16_count(const struct tile_shape *shape)
{
    uint32_t last = minmax16_index(block_count(shape->cols) - 1, block_count(shape->rows) - 1);

    if (!has_minmax16(shape))
        return 0;
    if (shape->first == MINMAX16_TILE_LAST_LEVEL)
        return 1;
    return (last - 1) / MINMAX16_CHILDREN * MINMAX16_CHILDREN + MINMAX16_CHILDREN + 1 -
           shape->first;
}

static size_t minmax16_bytes(const struct tile_shape *shape)
{
    return (tile_minmax16_count(shape) * sizeof(struct minmax16_node) + 63) / 64 * 64;
}

/* log2 of the nodes of a level along so many samples of the tile's part of the field. */
static uint32_t side_shift(const struct tile_shape *shape, uint32_t samples, uint32_t level)
{
    uint32_t extent = BLOCK_SHIFT > shape->leaf_shift ? (uint32_t)BLOCK_SHIFT : shape->leaf_shift;

    while (1u << extent < samples - 1)
        extent++;
    return level < extent ? extent - level : 0;
}

static size_t level_nodes(const struct tile_shape *shape, uint32_t level)
{
    return (size_t)1 << (side_shift(shape, shape->cols, level) +
                         side_shift(shape, shape->rows, level));
}

static size_t node_count(const struct tile_shape *shape)
{
    size_t count = 0;

    for (uint32_t level = shape->leaf_shift; level <= TILE_SHIFT; level++)
        count += level_nodes(shape, level);
    return count;
}

static size_t sample_bytes(const struct tile_shape *shape)
{
    /* an even number of them, for bounds come after */
    return ((size_t)shape->stride * tile_row_count(shape) + 1) / 2 * 2 * sizeof(float);
}

/* A chunk's samples with five rows after its first ones. */
enum { CHUNK_SAMPLES = (1 << TILE_CHUNK_SHIFT) + 5 * TILE_SAMPLES + 1 };
_Static_assert(CHUNK_SAMPLES % 2 == 0 &&
                   TILE_SAMPLES * TILE_SAMPLES <=
                       ((TILE_CHUNKS - 1) << TILE_CHUNK_SHIFT) + CHUNK_SAMPLES,
               "bounds come after the chunks, and the last one has the rest");

/* own: of how many chunks; 0: of all samples. */
static size_t bytes_with(const struct tile_shape *shape, uint32_t own)
{
    size_t samples = own ? own * CHUNK_SAMPLES * sizeof(float) : sample_bytes(shape);

    return minmax16_bytes(shape) + sizeof(struct tile) + samples +
           node_count(shape) * sizeof(struct bounds);
}

size_t tile_bytes(const struct tile_shape *shape)
{
    return bytes_with(shape, 0);
}

static bool is_whole(const struct tile_shape *shape)
{
    return shape->stride == TILE_SAMPLES && shape->cols == TILE_SAMPLES &&
           shape->rows == TILE_SAMPLES;
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

/* Leaves of 2^shift cells over one row of blocks, whose squares are there. */
static void leaves_of_squares(struct tile *tile, const struct node_rect *blocks, uint32_t block_row,
                              const struct bounds squares[4][SQUARES])
{
    uint32_t shift = tile->shape.leaf_shift - SQUARE_SHIFT, each = 1u << shift;
    uint32_t side = 1u << tile->level_shift[tile->shape.leaf_shift];
    uint32_t first = blocks->column0 * 4 >> shift, end = blocks->column1 * 4 >> shift;
    struct bounds *leaves = tile->nodes + tile->level_offset[tile->shape.leaf_shift];

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
    const struct tile_shape *shape = &tile->shape;
    bool makes_leaves = shape->leaf_shift >= SQUARE_SHIFT && shape->leaf_shift <= BLOCK_SHIFT;
    uint32_t first = blocks->column0 << BLOCK_SHIFT, end = blocks->column1 << BLOCK_SHIFT;
    uint32_t own_end = end < shape->stride ? end : shape->stride - 1u;
    uint32_t square_rows = (tile_row_count(shape) - 1) >> SQUARE_SHIFT;
    float min[TILE_SAMPLES], max[TILE_SAMPLES];
    struct bounds squares[4][SQUARES], children[MINMAX16_CHILDREN];

    for (uint32_t row = blocks->row0; row < blocks->row1; row++) {
        for (uint32_t i = 0; i < 4; i++) {
            const float *samples =
                tile->samples + (((size_t)row * 4 + i) << SQUARE_SHIFT) * shape->stride + first;
            uint32_t column = first >> SQUARE_SHIFT;

            if (row * 4 + i < square_rows) {
                tile_column_bounds(samples, shape->stride, MINMAX16_LEAF_CELLS + 1,
                                   own_end - first + 1, min, max);
                squares_of_columns(min, max, (own_end - first) >> SQUARE_SHIFT,
                                   squares[i] + column);
                column = own_end >> SQUARE_SHIFT;
            }
            for (; column < end >> SQUARE_SHIFT; column++)
                squares[i][column] = BOUNDS_EMPTY;
        }
        for (uint32_t column = blocks->column0; column < blocks->column1; column++) {
            for (uint32_t i = 0; i < 4; i++)
                memcpy(children + i * 4, squares[i] + (size_t)column * 4, 4 * sizeof *children);
            minmax16_build(tile_minmax16(tile, shape->first, minmax16_index(column, row)),
                           children);
        }
        if (makes_leaves)
            leaves_of_squares(tile, blocks, row, squares);
    }
}

/* Leaves of any size, from the samples. */
static void build_leaves(struct tile *tile, const struct node_rect *part)
{
    const struct tile_shape *shape = &tile->shape;
    uint32_t shift = shape->leaf_shift, cells = 1u << shift, rows = tile_row_count(shape);
    uint32_t side = 1u << tile->level_shift[shift];
    uint32_t begin = part->column0 << shift, end = (part->column1 << shift) + 1;
    uint32_t cols = (end < shape->stride ? end : shape->stride) - begin;
    struct bounds *leaves = tile->nodes + tile->level_offset[shift];
    float min[TILE_SAMPLES], max[TILE_SAMPLES];

    for (uint32_t row = part->row0; row < part->row1; row++) {
        uint32_t from = row << shift, to = from + cells + 1 < rows ? from + cells + 1 : rows;

        if (from >= rows) /* a block may be larger than the tile */
            break;
        tile_column_bounds(tile->samples + (size_t)from * shape->stride + begin, shape->stride,
                           to - from, cols, min, max);
        for (uint32_t column = part->column0; column < part->column1; column++) {
            uint32_t first = (column - part->column0) << shift;
            struct bounds b = BOUNDS_EMPTY;

            for (uint32_t i = first; i <= first + cells && i < cols; i++)
                b = bounds_union(b, (struct bounds){min[i], max[i]});
            leaves[row * side + column] = (struct bounds){b.min + 0.0f, b.max + 0.0f};
        }
    }
}

/* The ancestors of these leaves. */
static void build_levels(struct tile *tile, const struct node_rect *leaves)
{
    struct node_rect part = *leaves;

    for (uint32_t level = tile->shape.leaf_shift + 1; level <= TILE_SHIFT; level++) {
        uint32_t side = 1u << tile->level_shift[level];
        uint32_t below_side = 1u << tile->level_shift[level - 1];
        struct bounds *nodes = tile->nodes + tile->level_offset[level];
        const struct bounds *below = tile->nodes + tile->level_offset[level - 1];
        /* a level of one column or row has the one below it as its children */
        uint32_t is_wide = below_side > 1;
        uint32_t is_high = side_shift(&tile->shape, tile->shape.rows, level - 1) > 0;
        uint32_t next_column = is_wide, next_row = is_high ? below_side : 0;

        part = (struct node_rect){part.column0 / 2, part.row0 / 2, (part.column1 + 1) / 2,
                                  (part.row1 + 1) / 2};
        for (uint32_t row = part.row0; row < part.row1; row++)
            for (uint32_t column = part.column0; column < part.column1; column++) {
                const struct bounds *child =
                    below + (size_t)(row << is_high) * below_side + (column << is_wide);

                nodes[row * side + column] =
                    bounds_union(bounds_union(child[0], child[next_column]),
                                 bounds_union(child[next_row], child[next_row + next_column]));
            }
    }
}

/* Node n from the nodes below it. */
static void minmax16_from_below(struct tile *tile, uint32_t n)
{
    struct bounds children[MINMAX16_CHILDREN];

    for (uint32_t i = 0; i < MINMAX16_CHILDREN; i++)
        children[i] =
            minmax16_bounds(tile_minmax16(tile, tile->shape.first, MINMAX16_CHILDREN * n + 1 + i));
    minmax16_build(tile_minmax16(tile, tile->shape.first, n), children);
}

/* The minmax16 nodes above a part of the blocks. */
static void build_wide(struct tile *tile, const struct node_rect *blocks)
{
    if (tile->shape.first > 1)
        return;
    for (uint32_t row = blocks->row0 / 4; row <= (blocks->row1 - 1) / 4; row++)
        for (uint32_t column = blocks->column0 / 4; column <= (blocks->column1 - 1) / 4; column++)
            minmax16_from_below(tile, 1 + 4 * row + column);
    if (tile->shape.first == 0)
        minmax16_from_below(tile, 0);
}

/* Everything over these blocks of 16×16 cells. */
static void build(struct tile *tile, const struct node_rect *blocks)
{
    uint32_t leaf_shift = tile->shape.leaf_shift;
    struct node_rect leaves;

    if (has_minmax16(&tile->shape)) {
        build_blocks(tile, blocks);
        build_wide(tile, blocks);
    }
    if (leaf_shift > BLOCK_SHIFT) {
        uint32_t more = leaf_shift - BLOCK_SHIFT, round = (1u << more) - 1;

        leaves =
            (struct node_rect){blocks->column0 >> more, blocks->row0 >> more,
                               (blocks->column1 + round) >> more, (blocks->row1 + round) >> more};
    } else {
        uint32_t less = BLOCK_SHIFT - leaf_shift;

        leaves = (struct node_rect){blocks->column0 << less, blocks->row0 << less,
                                    blocks->column1 << less, blocks->row1 << less};
    }
    if (leaf_shift < SQUARE_SHIFT || leaf_shift > BLOCK_SHIFT || !has_minmax16(&tile->shape))
        build_leaves(tile, &leaves);
    build_levels(tile, &leaves);
}

/* The tile without samples; its nodes and leaves have no data. own: as of bytes_with. */
static struct tile *allocate(const struct tile_shape *shape, uint32_t own)
{
    size_t bytes = bytes_with(shape, own), below = minmax16_bytes(shape);
    char *block = is_whole(shape) ? slab_alloc(&pools[own][shape->leaf_shift], bytes)
                                  : aligned_alloc(64, (bytes + 63) / 64 * 64);
    struct tile *tile = block ? (struct tile *)(void *)(block + below) : NULL;
    uint32_t offset = 0;

    if (tile == NULL)
        return NULL;
    atomic_fetch_add_explicit(&all_bytes, bytes, memory_order_relaxed);
    atomic_init(&tile->refs, 1);
    tile->shape = *shape;
    tile->serial = 0;
    atomic_init(&tile->hash[0], 0);
    atomic_init(&tile->hash[1], 0);
    memset(tile->level_offset, 0, sizeof tile->level_offset);
    memset(tile->level_shift, 0, sizeof tile->level_shift);
    for (uint32_t level = shape->leaf_shift; level <= TILE_SHIFT; level++) {
        tile->level_offset[level] = offset;
        tile->level_shift[level] = (uint8_t)side_shift(shape, shape->cols, level);
        offset += (uint32_t)level_nodes(shape, level);
    }
    tile->base = NULL;
    for (uint32_t i = 0; i <= TILE_CHUNKS; i++)
        tile->chunk[i] = tile->samples;
    tile->nodes = (struct bounds *)(void *)(block + bytes) - offset;
    if (is_whole(shape)) /* all are built then */
        return tile;
    for (uint32_t i = 0; i < tile_minmax16_count(shape); i++)
        minmax16_clear(tile_minmax16(tile, 0, i));
    for (uint32_t i = 0; i < offset; i++)
        tile->nodes[i] = BOUNDS_EMPTY;
    return tile;
}

struct tile *tile_begin(const struct tile_shape *shape, uint32_t cols, uint32_t rows)
{
    struct tile *tile = allocate(shape, 0);

    for (uint32_t row = 0; tile && row < tile_row_count(shape); row++) {
        float *to = tile->samples + (size_t)row * shape->stride;

        for (uint32_t column = row < rows ? cols : 0; column < shape->stride; column++)
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
    build(tile,
          &(struct node_rect){0, 0, block_count(tile->shape.cols), block_count(tile->shape.rows)});
    struct bounds root = tile_root(tile);

    if (root.min == -__builtin_inff() || root.max == __builtin_inff())
        return false;
    tile->serial = next_serial();
    return true;
}

static bool has_samples(const struct tile *tile, const struct tile_rect *rect,
                        const float *heights_m, size_t stride)
{
    for (uint32_t row = 0; row < rect->rows; row++)
        if (memcmp(tile_at(tile, (size_t)(rect->row + row) * tile->shape.stride + rect->column),
                   heights_m + row * stride, rect->cols * sizeof *heights_m) != 0)
            return false;
    return true;
}

/* The blocks that use one of count samples from the first on: a seam belongs to both sides. */
static void blocks_of(uint32_t first, uint32_t count, uint32_t blocks, uint32_t *low,
                      uint32_t *high)
{
    uint32_t last = (first + count - 1) >> BLOCK_SHIFT;

    *low = first == 0 ? 0 : (first - 1) >> BLOCK_SHIFT;
    *high = last < blocks ? last + 1 : blocks;
}

struct tile *tile_with_samples(struct tile *tile, const struct tile_rect *rect,
                               const float *heights_m, size_t stride)
{
    const struct tile_shape *shape = &tile->shape;

    CHECK(rect->cols > 0 && rect->rows > 0 && rect->column + rect->cols <= shape->cols &&
          rect->row + rect->rows <= shape->rows);
    if (has_samples(tile, rect, heights_m, stride)) {
        tile_ref(tile);
        return tile;
    }
    struct tile *copy = allocate(shape, 0);
    size_t below = minmax16_bytes(shape);
    struct node_rect part;

    if (copy == NULL)
        return NULL;
    for (uint32_t row = 0; row < tile_row_count(shape); row++)
        memcpy(copy->samples + (size_t)row * shape->stride,
               tile_at(tile, (size_t)row * shape->stride), shape->stride * sizeof(float));
    memcpy(copy->nodes, tile->nodes, node_count(shape) * sizeof *tile->nodes);
    for (uint32_t row = 0; row < rect->rows; row++)
        memcpy(copy->samples + (size_t)(rect->row + row) * shape->stride + rect->column,
               heights_m + row * stride, rect->cols * sizeof *heights_m);
    memcpy((char *)copy - below, (const char *)tile - below, below);
    blocks_of(rect->column, rect->cols, block_count(shape->cols), &part.column0, &part.column1);
    blocks_of(rect->row, rect->rows, block_count(shape->rows), &part.row0, &part.row1);
    build(copy, &part);
    copy->serial = next_serial();
    return copy;
}

/* How many samples of a chunk there are. */
static size_t chunk_samples(uint32_t chunk)
{
    size_t rest = (size_t)TILE_SAMPLES * TILE_SAMPLES - ((size_t)chunk << TILE_CHUNK_SHIFT);

    return rest < CHUNK_SAMPLES ? rest : CHUNK_SAMPLES;
}

struct tile *tile_over(struct tile *tile, struct tile *other)
{
    const struct tile_shape *shape = &tile->shape;
    size_t below = minmax16_bytes(shape);
    struct tile *base = other->base ? other->base : other, *copy;
    uint32_t own[TILE_CHUNKS], count = 0;

    /* larger leaves are of more than five rows */
    if (!is_whole(shape) || shape->leaf_shift > BLOCK_SHIFT)
        return tile;
    CHECK(tile->base == NULL && base->base == NULL && is_whole(&base->shape));
    for (uint32_t i = 0; i < TILE_CHUNKS; i++) {
        size_t first = (size_t)i << TILE_CHUNK_SHIFT;

        if (memcmp(tile->samples + first, base->samples + first,
                   chunk_samples(i) * sizeof(float)) != 0)
            own[count++] = i;
    }
    copy = count >= 1 && count <= OWN_CHUNKS_MAX ? allocate(shape, count) : NULL;
    if (copy == NULL)
        return tile;
    memcpy((char *)copy - below, (const char *)tile - below, below);
    memcpy(copy->nodes, tile->nodes, node_count(shape) * sizeof *tile->nodes);
    memcpy(copy->chunk, base->chunk, sizeof copy->chunk);
    for (uint32_t i = 0; i < count; i++) {
        size_t first = (size_t)own[i] << TILE_CHUNK_SHIFT;
        float *to = copy->samples + (size_t)i * CHUNK_SAMPLES;

        memcpy(to, tile->samples + first, chunk_samples(own[i]) * sizeof *to);
        copy->chunk[own[i]] = (float *)((uintptr_t)to - first * sizeof *to);
    }
    copy->chunk[TILE_CHUNKS] = copy->chunk[TILE_CHUNKS - 1];
    copy->base = base;
    tile_ref(base);
    copy->serial = tile->serial;
    tile_unref(tile);
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
    CHECK(tile->shape.cols >= TILE_CELLS && tile->shape.rows >= TILE_CELLS);
    for (uint32_t row = 0; row < TILE_CELLS; row++)
        sample_hash(tile_at(tile, (size_t)row * TILE_SAMPLES), TILE_CELLS, 1, hash);
    hash[0] |= 1;
    atomic_store_explicit(&written->hash[1], hash[1], memory_order_relaxed);
    atomic_store_explicit(&written->hash[0], hash[0], memory_order_release);
}

void tile_ref(struct tile *tile)
{
    atomic_fetch_add_explicit(&tile->refs, 1, memory_order_relaxed);
}

/* How many chunks a tile has of its own; 0: all its samples. */
static uint32_t own_chunks(const struct tile *tile)
{
    size_t samples = (size_t)((const float *)(const void *)tile->nodes - tile->samples);

    return tile->base ? (uint32_t)(samples / CHUNK_SAMPLES) : 0;
}

void tile_unref(struct tile *tile)
{
    if (tile == NULL || atomic_fetch_sub_explicit(&tile->refs, 1, memory_order_acq_rel) != 1)
        return;
    char *block = (char *)tile - minmax16_bytes(&tile->shape);
    uint32_t own = own_chunks(tile);
    struct tile *base = tile->base;

    atomic_fetch_sub_explicit(&all_bytes, bytes_with(&tile->shape, own), memory_order_relaxed);
    if (is_whole(&tile->shape))
        slab_free(&pools[own][tile->shape.leaf_shift], block);
    else
        free(block);
    tile_unref(base); /* it has none itself */
}

uint64_t tile_all_bytes(void)
{
    return atomic_load_explicit(&all_bytes, memory_order_relaxed);
}

static struct bounds leaf_bounds(const struct tile *tile, uint32_t column0, uint32_t row0,
                                 uint32_t side_cells)
{
    uint32_t stride = tile->shape.stride, rows = tile_row_count(&tile->shape);
    struct bounds b = BOUNDS_EMPTY;

    for (uint32_t row = row0; row <= row0 + side_cells && row < rows; row++)
        for (uint32_t column = column0; column <= column0 + side_cells && column < stride; column++)
            b = bounds_add(b, *tile_at(tile, (size_t)row * stride + column));
    return b;
}

/* Has a square that begins at these cells one of the field? Of others nothing is asked. */
static bool has_cells(const struct tile *tile, uint32_t column, uint32_t row)
{
    return column + 1 < tile->shape.cols && row + 1 < tile->shape.rows;
}

/* The minmax16 nodes over the samples, and that those above follow from them. */
static bool minmax16_is_valid(const struct tile *tile, struct err *err)
{
    uint32_t first = tile->shape.first, count = tile_minmax16_count(&tile->shape);

    if (count == 0)
        return true;
    for (uint32_t i = 0; i < 64 * 64; i++) {
        uint32_t column = i % 64, row = i / 64, lane = (row & 3) * 4 + (column & 3);
        uint32_t node = minmax16_index(column / 4, row / 4);
        struct bounds bounds = leaf_bounds(tile, column * MINMAX16_LEAF_CELLS,
                                           row * MINMAX16_LEAF_CELLS, MINMAX16_LEAF_CELLS);

        if (has_cells(tile, column * MINMAX16_LEAF_CELLS, row * MINMAX16_LEAF_CELLS) &&
            (node >= first + count ||
             !minmax16_child_holds(tile_minmax16(tile, first, node), lane, bounds))) {
            err_set(err, ERR_INTERNAL, "minmax16 leaf (%u, %u) does not hold its samples", column,
                    row);
            return false;
        }
    }
    for (uint32_t n = first; n < first + count; n++)
        if (n > 0 && (n - 1) / MINMAX16_CHILDREN >= first &&
            !minmax16_child_holds(tile_minmax16(tile, first, (n - 1) / MINMAX16_CHILDREN),
                                  (n - 1) % MINMAX16_CHILDREN,
                                  minmax16_bounds(tile_minmax16(tile, first, n)))) {
            err_set(err, ERR_INTERNAL, "minmax16 node %u is not held by the one above it", n);
            return false;
        }
    return true;
}

bool tile_validate(const struct tile *tile, struct err *err)
{
    for (uint32_t level = tile->shape.leaf_shift; level <= TILE_SHIFT; level++) {
        uint32_t cols = 1u << tile->level_shift[level];
        uint32_t rows = 1u << side_shift(&tile->shape, tile->shape.rows, level);

        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t column = 0; column < cols; column++) {
                struct bounds want = leaf_bounds(tile, column << level, row << level, 1u << level);
                struct bounds got = tile_node(tile, level, column, row);

                bool is_minus_zero =
                    (got.min == 0 && signbit(got.min)) || (got.max == 0 && signbit(got.max));

                if (has_cells(tile, column << level, row << level) &&
                    (want.min != got.min || want.max != got.max || is_minus_zero)) {
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
