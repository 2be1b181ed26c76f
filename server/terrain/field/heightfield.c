/*
 * Heightfields: an array of tiles, and above it a small pyramid over the tiles' roots.
 *
 * Problem: hold rows × cols samples of any size so that a ray can skip the parts that it cannot
 * meet, a cell is read from one place, and an edit need only remake the tiles it touches. Approach:
 * text T's min/max pyramid (Sjöstrand 2017, section 3.1), cut in two. Up to 256×256 cells it lives
 * inside immutable tiles; above them `top` holds ceil(n / 2^k)² nodes a level, so that no power of
 * two is needed. Samples of the last tiles that are beyond the field are NaN. How fields are made:
 * heightfield_build.c, edit_tiles.c.
 *
 * Invariants (heightfield_validate): neighbouring tiles agree on their apron bit for bit; each node
 * is exactly the min and max of the samples that its cells use; a node without data is (+inf,
 * -inf); groups name the field's tiles.
 */
#include "terrain/field/heightfield.h"

#include "terrain/field/heightfield_data.h"

#include "base/check.h"

#include <string.h>

const struct heightfield_spec *heightfield_spec(const struct heightfield *field)
{
    return &field->spec;
}

struct heightfield_tile_layout heightfield_tile_layout(const struct heightfield_spec *spec)
{
    return (struct heightfield_tile_layout){(spec->cols - 1 + TILE_CELLS - 1) >> TILE_SHIFT,
                                            (spec->rows - 1 + TILE_CELLS - 1) >> TILE_SHIFT};
}

void heightfield_tile_size(const struct heightfield_spec *spec, uint32_t tile_column,
                           uint32_t tile_row, uint32_t *cols, uint32_t *rows)
{
    uint32_t right = spec->cols - (tile_column << TILE_SHIFT);
    uint32_t up = spec->rows - (tile_row << TILE_SHIFT);

    *cols = right < TILE_SAMPLES ? right : TILE_SAMPLES;
    *rows = up < TILE_SAMPLES ? up : TILE_SAMPLES;
}

struct tile_shape heightfield_tile_shape(const struct heightfield_spec *spec, uint32_t tile_column,
                                         uint32_t tile_row)
{
    uint32_t leaf_cells = spec->leaf_cells ? spec->leaf_cells : HEIGHTFIELD_LEAF_CELLS_DEFAULT;
    uint32_t cols, rows;

    heightfield_tile_size(spec, tile_column, tile_row, &cols, &rows);
    return tile_shape(cols, rows, (uint32_t)__builtin_ctz(leaf_cells), spec->cols, spec->rows);
}

static const struct tile *tile_of(const struct heightfield *field, uint32_t tile_column,
                                  uint32_t tile_row)
{
    CHECK(tile_column < field->tile_cols && tile_row < field->tile_rows);
    return field->tiles[(size_t)tile_row * field->tile_cols + tile_column];
}

const float *heightfield_tile_row(const struct heightfield *field, uint32_t tile_column,
                                  uint32_t tile_row, uint32_t row)
{
    return tile_at(tile_of(field, tile_column, tile_row), (size_t)row * field->stride);
}

const float *heightfield_tile_pack(const struct heightfield *field, uint32_t tile_column,
                                   uint32_t tile_row, size_t *bytes, float **made)
{
    const struct tile *tile = tile_of(field, tile_column, tile_row);
    uint32_t cols, rows;

    heightfield_tile_size(&field->spec, tile_column, tile_row, &cols, &rows);
    *bytes = (size_t)cols * rows * sizeof(float);
    *made = NULL;
    if (cols == field->stride && tile->base == NULL)
        return tile->samples;
    *made = malloc(*bytes);
    for (uint32_t row = 0; *made && row < rows; row++)
        memcpy(*made + (size_t)row * cols, tile_at(tile, (size_t)row * field->stride),
               cols * sizeof **made);
    return *made;
}

uint64_t heightfield_tile_serial(const struct heightfield *field, uint32_t tile_column,
                                 uint32_t tile_row)
{
    return tile_of(field, tile_column, tile_row)->serial;
}

uint64_t heightfield_all_tiles_bytes(void)
{
    return tile_all_bytes();
}

uint64_t heightfield_tile_bytes(const struct heightfield_spec *spec)
{
    const struct heightfield_tile_layout layout = heightfield_tile_layout(spec);
    uint64_t bytes = 0;

    /* those of the last column and row may be smaller than the others, which are alike */
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t column = i % 2 ? 0 : layout.tile_cols - 1, row = i / 2 ? 0 : layout.tile_rows - 1;
        uint64_t count =
            (uint64_t)(i % 2 ? layout.tile_cols - 1 : 1) * (i / 2 ? layout.tile_rows - 1 : 1);
        struct tile_shape shape = heightfield_tile_shape(spec, column, row);

        bytes += count * tile_bytes(&shape);
    }
    return bytes;
}

void heightfield_stats(const struct heightfield *field, struct heightfield_stats *out)
{
    const struct top_level *last = &field->top_level[field->top_level_count - 1];
    size_t tiles = (size_t)field->tile_cols * field->tile_rows;

    out->tiles = tiles;
    out->samples = (uint64_t)field->spec.cols * field->spec.rows;
    out->levels = field->level_max - field->leaf_shift + 1;
    out->bytes =
        sizeof *field + tiles * 2 * sizeof(struct tile *) + heightfield_tile_bytes(&field->spec) +
        heightfield_group_count(field) * (sizeof(struct tile_group *) + sizeof(struct tile_group)) +
        (last->offset + 1) * sizeof(struct bounds) +
        field->minmax16_count * sizeof(struct minmax16_node) +
        (field->top_level_count + field->minmax16_level_count) * sizeof(struct top_level);
}

bool heightfield_bounds(const struct heightfield *field, struct box3 *out)
{
    const struct heightfield_spec *s = &field->spec;
    struct bounds z = heightfield_node(field, field->level_max, 0, 0);
    bool has_data = z.min <= z.max;

    out->min = (struct vec3){s->origin_x_m, s->origin_y_m, has_data ? (double)z.min : 0};
    out->max = (struct vec3){s->origin_x_m + s->spacing_x_m * field->cell_cols,
                             s->origin_y_m + s->spacing_y_m * field->cell_rows,
                             has_data ? (double)z.max : 0};
    return has_data;
}

float heightfield_sample(const struct heightfield *field, uint32_t column, uint32_t row)
{
    uint32_t c = column < field->cell_cols ? column : field->cell_cols - 1;
    uint32_t r = row < field->cell_rows ? row : field->cell_rows - 1;
    const struct tile *tile = heightfield_tile(field, c, r);

    return *tile_at(tile, (size_t)((r & (TILE_CELLS - 1)) + (row - r)) * field->stride +
                              (c & (TILE_CELLS - 1)) + (column - c));
}

/* The samples of a node, clipped to the query; tiles hold every sample a node's cells use. */
static struct bounds scan_samples(const struct heightfield *field, uint32_t column0, uint32_t row0,
                                  uint32_t column1, uint32_t row1)
{
    struct bounds b = BOUNDS_EMPTY;

    for (uint32_t row = row0; row <= row1; row++)
        for (uint32_t column = column0; column <= column1; column++)
            b = bounds_add(b, heightfield_sample(field, column, row));
    return b;
}

struct rect_query {
    const struct heightfield *field;
    uint32_t column0, row0, column1, row1; /* samples, inclusive */
};

static struct bounds rect_visit(const struct rect_query *q, uint32_t level, uint32_t column,
                                uint32_t row)
{
    uint32_t side = 1u << level;
    struct bounds b = BOUNDS_EMPTY;

    if (column >= q->field->cell_cols || row >= q->field->cell_rows || column > q->column1 ||
        row > q->row1 || column + side < q->column0 || row + side < q->row0)
        return b;
    if (column >= q->column0 && row >= q->row0 && column + side <= q->column1 &&
        row + side <= q->row1)
        return heightfield_node(q->field, level, column, row);
    if (level == q->field->leaf_shift) {
        uint32_t c1 = column + side < q->column1 ? column + side : q->column1;
        uint32_t r1 = row + side < q->row1 ? row + side : q->row1;

        return scan_samples(q->field, column > q->column0 ? column : q->column0,
                            row > q->row0 ? row : q->row0, c1, r1);
    }
    for (uint32_t i = 0; i < 4; i++)
        b = bounds_union(b, rect_visit(q, level - 1, column + (i & 1) * (side / 2),
                                       row + (i >> 1) * (side / 2)));
    return b;
}

struct bounds heightfield_rect_bounds(const struct heightfield *field, uint32_t column0,
                                      uint32_t row0, uint32_t column1, uint32_t row1)
{
    struct rect_query q = {field, column0, row0,
                           column1 < field->cell_cols ? column1 : field->cell_cols,
                           row1 < field->cell_rows ? row1 : field->cell_rows};

    return rect_visit(&q, field->level_max, 0, 0);
}

bool heightfield_range(const struct heightfield *field, uint32_t column0, uint32_t row0,
                       uint32_t column1, uint32_t row1, float *min_m, float *max_m)
{
    struct bounds b = heightfield_rect_bounds(field, column0, row0, column1, row1);

    if (!(b.min <= b.max))
        return false;
    *min_m = b.min + 0.0f; /* never -0: as the pyramid's bounds are */
    *max_m = b.max + 0.0f;
    return true;
}

bool heightfield_aprons_agree(const struct heightfield *field, struct err *err)
{
    for (uint32_t ty = 0; ty < field->tile_rows; ty++)
        for (uint32_t tx = 0; tx < field->tile_cols; tx++) {
            const struct tile *tile = field->tiles[(size_t)ty * field->tile_cols + tx];
            size_t stride = field->stride, rows = tile_row_count(&tile->shape);
            bool has_east = tx + 1 < field->tile_cols, has_north = ty + 1 < field->tile_rows;
            const struct tile *east =
                has_east ? field->tiles[(size_t)ty * field->tile_cols + tx + 1] : tile;
            const struct tile *north =
                has_north ? field->tiles[(size_t)(ty + 1) * field->tile_cols + tx] : tile;

            for (size_t i = 0; i < TILE_SAMPLES; i++)
                if ((has_east && i < rows &&
                     memcmp(tile_at(tile, i * stride + TILE_CELLS), tile_at(east, i * stride),
                            sizeof(float)) != 0) ||
                    (has_north && i < stride &&
                     memcmp(tile_at(tile, TILE_CELLS * stride + i), tile_at(north, i),
                            sizeof(float)) != 0)) {
                    err_set(err, ERR_INTERNAL, "tile (%u, %u) disagrees with its apron at %zu", tx,
                            ty, i);
                    return false;
                }
        }
    return true;
}

static bool groups_agree(const struct heightfield *field, struct err *err)
{
    for (size_t i = 0; i < (size_t)field->tile_cols * field->tile_rows; i++)
        if (field->groups[i / TILE_GROUP_TILES]->tiles[i % TILE_GROUP_TILES] != field->tiles[i] ||
            field->tiles[i]->serial == 0) {
            err_set(err, ERR_INTERNAL, "tile %zu is not the one that is counted, or not sealed", i);
            return false;
        }
    return true;
}

static bool beyond_is_nan(const struct heightfield *field, struct err *err)
{
    for (uint32_t i = 0; i < field->tile_cols * field->tile_rows; i++) {
        const struct tile *tile = field->tiles[i];
        uint32_t cols, rows;

        heightfield_tile_size(&field->spec, i % field->tile_cols, i / field->tile_cols, &cols,
                              &rows);
        for (uint32_t row = 0; row < tile_row_count(&tile->shape); row++)
            for (uint32_t column = row < rows ? cols : 0; column < field->stride; column++)
                if (!isnan(*tile_at(tile, (size_t)row * field->stride + column))) {
                    err_set(err, ERR_INTERNAL, "tile %u has sample (%u, %u) beyond the field", i,
                            column, row);
                    return false;
                }
    }
    return true;
}

/* Each level of minmax16 nodes above the tiles, from the level below it. */
static bool minmax16_top_is_valid(const struct heightfield *field, struct err *err)
{
    uint32_t cols = field->tile_cols, rows = field->tile_rows;
    const struct minmax16_node *below = NULL; /* the tiles */

    for (uint32_t level = 0; level < field->minmax16_level_count; level++) {
        const struct top_level *own = &field->minmax16_level[level];
        const struct minmax16_node *nodes = field->minmax16_top + own->offset;

        for (uint32_t i = 0; i < own->cols * own->rows * MINMAX16_CHILDREN; i++) {
            uint32_t column = i % (4 * own->cols), row = i / (4 * own->cols);
            size_t at = (size_t)row * cols + column;
            bool is_inside = column < cols && row < rows;
            struct bounds bounds =
                !is_inside ? BOUNDS_EMPTY
                : below    ? minmax16_bounds(&below[at])
                           : minmax16_bounds(heightfield_minmax16(field, field->tiles[at], 0));

            if (!minmax16_child_holds(&nodes[row / 4 * own->cols + column / 4],
                                      row % 4 * 4 + column % 4, bounds)) {
                err_set(err, ERR_INTERNAL,
                        "minmax16 child (%u, %u) of level %u above the tiles is "
                        "wrong",
                        column, row, level);
                return false;
            }
        }
        below = nodes, cols = own->cols, rows = own->rows;
    }
    return true;
}

bool heightfield_validate(const struct heightfield *field, struct err *err)
{
    if (!groups_agree(field, err) || !beyond_is_nan(field, err))
        return false;
    for (size_t i = 0; i < (size_t)field->tile_cols * field->tile_rows; i++) {
        struct bounds root = tile_root(field->tiles[i]);

        if (!tile_validate(field->tiles[i], err))
            return false;
        if (root.min != field->top[i].min || root.max != field->top[i].max) {
            err_set(err, ERR_INTERNAL, "the root of tile %zu is not in the pyramid above", i);
            return false;
        }
    }
    for (uint32_t level = 1; level < field->top_level_count; level++) {
        const struct top_level *top = &field->top_level[level];

        for (uint32_t i = 0; i < top->cols * top->rows; i++) {
            struct bounds want = heightfield_top_node(field, level, i % top->cols, i / top->cols);
            struct bounds got = field->top[top->offset + i];

            if (want.min != got.min || want.max != got.max) {
                err_set(err, ERR_INTERNAL, "node %u of level %u is wrong", i, level + TILE_SHIFT);
                return false;
            }
        }
    }
    return minmax16_top_is_valid(field, err) && heightfield_aprons_agree(field, err);
}
