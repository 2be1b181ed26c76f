/*
 * Heightfields: an array of tiles, and above it a small pyramid over the tiles' roots.
 *
 * Problem: hold rows × cols samples of any size so that a ray can skip what it cannot meet, a cell
 * is read from one place, and an edit need only remake the tiles it touches. Approach: text T's
 * min/max pyramid (Sjöstrand 2017, section 3.1), cut in two. Up to 256×256 cells it lives inside
 * immutable tiles; above them `top` holds ceil(n / 2^k)² nodes a level, so that no power of two is
 * needed. What lies beyond the field inside the last tiles is NaN.
 *
 * Invariants (heightfield_validate): neighbouring tiles agree on their apron bit for bit; each node
 * is exactly the min and max of the samples that its cells use; a node without data is (+inf,
 * -inf).
 */
#include "terrain/heightfield.h"

#include "terrain/heightfield_data.h"

#include <stdlib.h>
#include <string.h>

static enum err_code spec_check(const struct heightfield_spec *spec, struct err *err)
{
    uint32_t leaf = spec->leaf_cells;

    if (spec->cols < 2 || spec->cols > HEIGHTFIELD_SIDE_MAX)
        return err_limit(err, ERR_BAD_INPUT, HEIGHTFIELD_SIDE_MAX, spec->cols,
                         "cols is %u, must be 2..%d", spec->cols, HEIGHTFIELD_SIDE_MAX);
    if (spec->rows < 2 || spec->rows > HEIGHTFIELD_SIDE_MAX)
        return err_limit(err, ERR_BAD_INPUT, HEIGHTFIELD_SIDE_MAX, spec->rows,
                         "rows is %u, must be 2..%d", spec->rows, HEIGHTFIELD_SIDE_MAX);
    if (!(spec->spacing_x_m > 0 && spec->spacing_y_m > 0) ||
        !isfinite(spec->spacing_x_m * spec->cols) || !isfinite(spec->spacing_y_m * spec->rows))
        return err_set(err, ERR_BAD_INPUT, "spacing is %g, %g, must be positive and finite",
                       spec->spacing_x_m, spec->spacing_y_m);
    if (!isfinite(spec->origin_x_m) || !isfinite(spec->origin_y_m))
        return err_set(err, ERR_BAD_INPUT, "origin is %g, %g, must be finite", spec->origin_x_m,
                       spec->origin_y_m);
    /* a grid whose samples fall on one another in float64 has no cells */
    if (spec->origin_x_m + spec->spacing_x_m == spec->origin_x_m ||
        spec->origin_y_m + spec->spacing_y_m == spec->origin_y_m)
        return err_set(err, ERR_BAD_INPUT, "spacing %g, %g vanishes beside the origin %g, %g",
                       spec->spacing_x_m, spec->spacing_y_m, spec->origin_x_m, spec->origin_y_m);
    if (leaf != 0 && (leaf > TILE_CELLS || (leaf & (leaf - 1)) != 0))
        return err_set(err, ERR_BAD_INPUT, "leaf_cells is %u, must be a power of two up to %d",
                       leaf, TILE_CELLS);
    if ((unsigned)spec->triangulation > TRIANGULATION_ALTERNATING)
        return err_set(err, ERR_BAD_INPUT, "triangulation is %d, must be 0..2",
                       (int)spec->triangulation);
    return ERR_OK;
}

static enum err_code heights_check(const float *heights_m, uint32_t cols, uint32_t rows,
                                   struct err *err)
{
    for (uint32_t row = 0; row < rows; row++) {
        const float *line = heights_m + (size_t)row * cols;
        uint32_t infinite = 0;

        for (uint32_t column = 0; column < cols; column++)
            infinite |= (uint32_t)(fabsf(line[column]) > __FLT_MAX__);
        if (infinite)
            for (uint32_t column = 0;; column++)
                if (isinf(line[column]))
                    return err_set(err, ERR_BAD_INPUT, "height (%u, %u) is infinite", column, row);
    }
    return ERR_OK;
}

/* The field without tiles: all sizes and offsets, top levels laid out. */
static struct heightfield *field_allocate(const struct heightfield_spec *spec)
{
    uint32_t tile_cols = (spec->cols - 1 + TILE_CELLS - 1) >> TILE_SHIFT;
    uint32_t tile_rows = (spec->rows - 1 + TILE_CELLS - 1) >> TILE_SHIFT;
    struct top_level level[TOP_LEVELS_MAX];
    uint32_t count = 0, offset = 0;

    for (uint32_t c = tile_cols, r = tile_rows;; c = (c + 1) / 2, r = (r + 1) / 2) {
        level[count++] = (struct top_level){c, r, offset};
        offset += c * r;
        if (c == 1 && r == 1)
            break;
    }
    size_t tiles = (size_t)tile_cols * tile_rows;
    struct heightfield *field = calloc(1, sizeof *field);

    if (field == NULL)
        return NULL;
    field->tiles = calloc(1, tiles * sizeof *field->tiles + offset * sizeof *field->top);
    if (field->tiles == NULL) {
        free(field);
        return NULL;
    }
    field->top = (struct bounds *)(void *)(field->tiles + tiles);
    atomic_init(&field->refs, 1);
    field->spec = *spec;
    if (field->spec.leaf_cells == 0)
        field->spec.leaf_cells = HEIGHTFIELD_LEAF_CELLS_DEFAULT;
    field->leaf_shift = (uint32_t)__builtin_ctz(field->spec.leaf_cells);
    field->cell_cols = spec->cols - 1;
    field->cell_rows = spec->rows - 1;
    field->tile_cols = tile_cols;
    field->tile_rows = tile_rows;
    field->top_level_count = count;
    field->level_max = TILE_SHIFT + count - 1;
    memcpy(field->top_level, level, count * sizeof *level);
    return field;
}

/* One node of a top level from the (up to four) nodes below it. */
static struct bounds top_node(const struct heightfield *field, uint32_t level, uint32_t column,
                              uint32_t row)
{
    const struct top_level *below = &field->top_level[level - 1];
    struct bounds b = BOUNDS_EMPTY;

    for (uint32_t r = 2 * row; r < 2 * row + 2 && r < below->rows; r++)
        for (uint32_t c = 2 * column; c < 2 * column + 2 && c < below->cols; c++)
            b = bounds_union(b, field->top[below->offset + (size_t)r * below->cols + c]);
    return b;
}

static void top_build(struct heightfield *field)
{
    for (size_t i = 0; i < (size_t)field->tile_cols * field->tile_rows; i++)
        field->top[i] = tile_root(field->tiles[i]);
    for (uint32_t level = 1; level < field->top_level_count; level++) {
        const struct top_level *top = &field->top_level[level];

        for (uint32_t row = 0; row < top->rows; row++)
            for (uint32_t column = 0; column < top->cols; column++)
                field->top[top->offset + (size_t)row * top->cols + column] =
                    top_node(field, level, column, row);
    }
}

struct heightfield *heightfield_create(const struct heightfield_spec *spec, const float *heights_m,
                                       struct err *err)
{
    if (spec_check(spec, err) || heights_check(heights_m, spec->cols, spec->rows, err))
        return NULL;
    struct heightfield *field = field_allocate(spec);

    if (field == NULL) {
        err_set(err, ERR_NO_MEMORY, "no memory for a heightfield");
        return NULL;
    }
    for (uint32_t row = 0; row < field->tile_rows; row++)
        for (uint32_t column = 0; column < field->tile_cols; column++) {
            struct tile *tile = tile_create(heights_m, spec->cols, spec->rows, column << TILE_SHIFT,
                                            row << TILE_SHIFT, field->leaf_shift);

            if (tile == NULL) {
                heightfield_unref(field);
                err_set(err, ERR_NO_MEMORY, "no memory for a heightfield of %u×%u samples",
                        spec->cols, spec->rows);
                return NULL;
            }
            field->tiles[(size_t)row * field->tile_cols + column] = tile;
        }
    top_build(field);
    return field;
}

struct heightfield *heightfield_with_triangulation(const struct heightfield *field,
                                                   enum triangulation triangulation,
                                                   struct err *err)
{
    struct heightfield *copy = field_allocate(&field->spec);
    size_t tiles = (size_t)field->tile_cols * field->tile_rows;

    if (copy == NULL) {
        err_set(err, ERR_NO_MEMORY, "no memory for a heightfield");
        return NULL;
    }
    copy->spec.triangulation = triangulation;
    for (size_t i = 0; i < tiles; i++) {
        copy->tiles[i] = field->tiles[i];
        tile_ref(copy->tiles[i]);
    }
    top_build(copy);
    return copy;
}

struct heightfield *heightfield_ref(const struct heightfield *field)
{
    struct heightfield *counted =
        (struct heightfield *)(uintptr_t)field; /* only the count changes */

    atomic_fetch_add_explicit(&counted->refs, 1, memory_order_relaxed);
    return counted;
}

void heightfield_unref(struct heightfield *field)
{
    if (field == NULL || atomic_fetch_sub_explicit(&field->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < (size_t)field->tile_cols * field->tile_rows; i++)
        tile_unref(field->tiles[i]);
    free(field->tiles);
    free(field);
}

const struct heightfield_spec *heightfield_spec(const struct heightfield *field)
{
    return &field->spec;
}

uint64_t heightfield_tile_bytes(const struct heightfield_spec *spec)
{
    uint64_t tile_cols = (spec->cols - 1 + TILE_CELLS - 1) >> TILE_SHIFT;
    uint64_t tile_rows = (spec->rows - 1 + TILE_CELLS - 1) >> TILE_SHIFT;
    uint32_t leaf_cells = spec->leaf_cells ? spec->leaf_cells : HEIGHTFIELD_LEAF_CELLS_DEFAULT;

    return tile_cols * tile_rows * tile_bytes((uint32_t)__builtin_ctz(leaf_cells));
}

void heightfield_stats(const struct heightfield *field, struct heightfield_stats *out)
{
    const struct top_level *last = &field->top_level[field->top_level_count - 1];
    size_t tiles = (size_t)field->tile_cols * field->tile_rows;

    out->tiles = tiles;
    out->samples = (uint64_t)field->spec.cols * field->spec.rows;
    out->levels = field->level_max - field->leaf_shift + 1;
    out->bytes = sizeof *field + tiles * (sizeof(struct tile *) + tile_bytes(field->leaf_shift)) +
                 (last->offset + 1) * sizeof(struct bounds);
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

    return tile->samples[(size_t)((r & (TILE_CELLS - 1)) + (row - r)) * TILE_SAMPLES +
                         (c & (TILE_CELLS - 1)) + (column - c)];
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
    *min_m = b.min;
    *max_m = b.max;
    return true;
}

static bool aprons_agree(const struct heightfield *field, struct err *err)
{
    for (uint32_t ty = 0; ty < field->tile_rows; ty++)
        for (uint32_t tx = 0; tx < field->tile_cols; tx++) {
            const float *own = field->tiles[(size_t)ty * field->tile_cols + tx]->samples;
            bool has_east = tx + 1 < field->tile_cols, has_north = ty + 1 < field->tile_rows;
            const float *east =
                has_east ? field->tiles[(size_t)ty * field->tile_cols + tx + 1]->samples : own;
            const float *north =
                has_north ? field->tiles[(size_t)(ty + 1) * field->tile_cols + tx]->samples : own;

            for (size_t i = 0; i < TILE_SAMPLES; i++)
                if ((has_east && memcmp(&own[i * TILE_SAMPLES + TILE_CELLS],
                                        &east[i * TILE_SAMPLES], sizeof *own) != 0) ||
                    (has_north &&
                     memcmp(&own[TILE_CELLS * TILE_SAMPLES + i], &north[i], sizeof *own) != 0)) {
                    err_set(err, ERR_INTERNAL, "tile (%u, %u) disagrees with its apron at %zu", tx,
                            ty, i);
                    return false;
                }
        }
    return true;
}

bool heightfield_validate(const struct heightfield *field, struct err *err)
{
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
            struct bounds want = top_node(field, level, i % top->cols, i / top->cols);
            struct bounds got = field->top[top->offset + i];

            if (want.min != got.min || want.max != got.max) {
                err_set(err, ERR_INTERNAL, "node %u of level %u is wrong", i, level + TILE_SHIFT);
                return false;
            }
        }
    }
    return aprons_agree(field, err);
}
