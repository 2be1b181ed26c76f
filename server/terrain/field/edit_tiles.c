/*
 * Samples of a rectangle, out of the tiles and into new ones.
 *
 * Problem: an edit of some samples must not cost as much as the whole field. Approach: the copy of
 * the field begins with all tiles of the old one (heightfield_copy); the tiles that hold a sample
 * of the rectangle are remade. A sample on a seam is held by the tiles of both sides, where four
 * tiles meet by all of them: tile t holds the samples 256·t .. 256·t + 256. A tile whose samples
 * would stay as they are, bit for bit, stays shared. Above the tiles only the nodes over the
 * rectangle are computed again, from the level below, always all of them: there are few.
 *
 * Invariant: the field is bit for bit the one that heightfield_create makes of the same samples.
 */
#include "terrain/field/edit.h"

#include "terrain/field/heightfield_data.h"

#include "base/check.h"

#include <string.h>

/* Tiles, both ends included. */
struct tile_range {
    uint32_t column0, row0, column1, row1;
};

static bool is_inside(const struct heightfield *field, const struct sample_rect *rect)
{
    return rect->cols > 0 && rect->rows > 0 && rect->column < field->spec.cols &&
           rect->cols <= field->spec.cols - rect->column && rect->row < field->spec.rows &&
           rect->rows <= field->spec.rows - rect->row;
}

/* The tiles that hold one of count samples from the first on, of `tiles` along this axis. */
static void tiles_of(uint32_t first, uint32_t count, uint32_t tiles, uint32_t *low, uint32_t *high)
{
    uint32_t last = (first + count - 1) >> TILE_SHIFT;

    *low = first == 0 ? 0 : (first - 1) >> TILE_SHIFT;
    *high = last < tiles ? last : tiles - 1;
}

static struct tile_range range_of(const struct heightfield *field, const struct sample_rect *rect)
{
    struct tile_range range;

    tiles_of(rect->column, rect->cols, field->tile_cols, &range.column0, &range.column1);
    tiles_of(rect->row, rect->rows, field->tile_rows, &range.row0, &range.row1);
    return range;
}

/* The samples of an interval that the tile from `start` on holds: first in the tile, and count. */
static void overlap(uint32_t first, uint32_t count, uint32_t start, uint32_t *own_first,
                    uint32_t *own_count)
{
    uint32_t low = first > start ? first : start;
    uint32_t high = first + count < start + TILE_SAMPLES ? first + count : start + TILE_SAMPLES;

    *own_first = low - start;
    *own_count = high - low;
}

/* The part of a rectangle that a tile holds, and where it begins in heights[rect.rows][cols]. */
static struct tile_rect part_of(const struct sample_rect *rect, uint32_t tile_column,
                                uint32_t tile_row, size_t *offset)
{
    uint32_t column0 = tile_column << TILE_SHIFT, row0 = tile_row << TILE_SHIFT;
    struct tile_rect part;

    overlap(rect->column, rect->cols, column0, &part.column, &part.cols);
    overlap(rect->row, rect->rows, row0, &part.row, &part.rows);
    *offset =
        (size_t)(row0 + part.row - rect->row) * rect->cols + column0 + part.column - rect->column;
    return part;
}

struct heightfield *heightfield_with_samples(const struct heightfield *field,
                                             const struct sample_rect *rect, const float *heights_m,
                                             struct err *err)
{
    CHECK(is_inside(field, rect));
    struct heightfield *copy = heightfield_copy(field, err);
    struct tile_range range = range_of(field, rect);

    if (copy == NULL)
        return NULL;
    for (uint32_t row = range.row0; row <= range.row1; row++)
        for (uint32_t column = range.column0; column <= range.column1; column++) {
            size_t index = (size_t)row * field->tile_cols + column, offset;
            struct tile_rect part = part_of(rect, column, row, &offset);
            struct tile *tile =
                tile_with_samples(field->tiles[index], &part, heights_m + offset, rect->cols);

            if (tile == NULL || !heightfield_replace_tile(copy, index, tile)) {
                heightfield_unref(copy);
                err_set(err, ERR_NO_MEMORY, "no memory for an edit of %u×%u samples", rect->cols,
                        rect->rows);
                return NULL;
            }
        }
    heightfield_build_top(copy, range.column0, range.row0, range.column1, range.row1);
    return copy;
}

void heightfield_share(struct heightfield *field, const struct heightfield *other,
                       const struct sample_rect *rect)
{
    struct tile_range range = range_of(field, rect);

    for (uint32_t row = range.row0; row <= range.row1; row++)
        for (uint32_t column = range.column0; column <= range.column1; column++)
            heightfield_tile_over(field, (size_t)row * field->tile_cols + column, other);
    field->has_bases = true;
}

void heightfield_read_samples(const struct heightfield *field, const struct sample_rect *rect,
                              float *out_m)
{
    CHECK(is_inside(field, rect));
    struct tile_range range = range_of(field, rect);

    for (uint32_t row = range.row0; row <= range.row1; row++)
        for (uint32_t column = range.column0; column <= range.column1; column++) {
            const struct tile *tile = field->tiles[(size_t)row * field->tile_cols + column];
            size_t offset;
            struct tile_rect part = part_of(rect, column, row, &offset);

            for (uint32_t r = 0; r < part.rows; r++)
                memcpy(out_m + offset + (size_t)r * rect->cols,
                       tile_at(tile, (size_t)(part.row + r) * field->stride + part.column),
                       part.cols * sizeof *out_m);
        }
}
