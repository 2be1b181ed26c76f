/*
 * How heightfields come to be: from an array, tile by tile, as a copy.
 *
 * Problem: fill many tiles of 275 kB with few passes over the memory, on as many threads as the
 * caller has; and make a field that differs from another in some tiles without touching the rest.
 * Approach: a builder hands out each tile's own samples, so that a decoder writes to where they
 * stay; a tile is sealed (pyramid, infinite samples) right after, while it is in the cache. Tiles
 * have different places in one array, so their threads share nothing. Rows that arrive in pieces
 * are put into the tiles that they cross, and those are sealed at the end. Fields hold their tiles
 * by groups of 32, so that a copy counts 32 times less; a tile that is replaced gives the copy a
 * group of its own.
 *
 * A spec's tiles without a field: heightfield_tile_layout. Invariants: heightfield.c.
 */
#include "terrain/field/heightfield.h"

#include "base/check.h"
#include "terrain/field/heightfield_data.h"

#include <stdlib.h>
#include <string.h>

/*
 * Cells. Nearer than this, the upper edges are less than a cell from their exact place, and the
 * part that rays lose by it is within the pads of minmax16 nodes.
 */
#define ORIGIN_FAR 0x1p40

struct heightfield_builder {
    struct heightfield *field; /* its tiles are counted here until it has groups */
};

/* ---- a field's own memory -------------------------------------------------------------------- */

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

/* The pyramid above the tiles: its levels, and all of its nodes. */
struct layers {
    struct top_level level[TOP_LEVELS_MAX];
    uint32_t levels, nodes;
};

static void layers_add(struct layers *layers, uint32_t cols, uint32_t rows)
{
    layers->level[layers->levels++] = (struct top_level){cols, rows, layers->nodes};
    layers->nodes += cols * rows;
}

/* Of nodes with side² children, over the first level or over the tiles. */
static void lay_out(struct layers *layers, struct heightfield_tile_layout tiles, uint32_t side)
{
    uint32_t cols = tiles.tile_cols, rows = tiles.tile_rows;

    while (cols > 1 || rows > 1) {
        cols = (cols + side - 1) / side;
        rows = (rows + side - 1) / side;
        layers_add(layers, cols, rows);
    }
}

/* The field without tiles: all sizes and offsets, top levels laid out. */
static struct heightfield *field_allocate(const struct heightfield_spec *spec, struct err *err)
{
    struct heightfield_tile_layout layout = heightfield_tile_layout(spec);
    struct layers top = {.levels = 0}, wide = {.levels = 0};
    struct tile_shape shape = heightfield_tile_shape(spec, 0, 0);

    layers_add(&top, layout.tile_cols, layout.tile_rows);
    lay_out(&top, layout, 2);
    if (shape.first < MINMAX16_TILE_NODES)
        lay_out(&wide, layout, 4);
    size_t tiles = (size_t)layout.tile_cols * layout.tile_rows;
    size_t groups = (tiles + TILE_GROUP_TILES - 1) / TILE_GROUP_TILES;
    struct heightfield *field =
        calloc(1, sizeof *field + tiles * sizeof *field->tiles + groups * sizeof *field->groups +
                      top.nodes * sizeof *field->top + wide.nodes * sizeof *field->minmax16_top +
                      (top.levels + wide.levels) * sizeof *field->top_level);

    if (field == NULL) {
        err_set(err, ERR_NO_MEMORY, "no memory for a heightfield of %zu tiles", tiles);
        return NULL;
    }
    field->groups = (struct tile_group **)(void *)(field->tiles + tiles);
    field->top = (struct bounds *)(void *)(field->groups + groups);
    field->minmax16_top = (struct minmax16_node *)(void *)(field->top + top.nodes);
    field->top_level = (struct top_level *)(void *)(field->minmax16_top + wide.nodes);
    field->minmax16_level = field->top_level + top.levels;
    field->tile_cols = layout.tile_cols;
    field->tile_rows = layout.tile_rows;
    field->top_level_count = top.levels;
    field->level_max = TILE_SHIFT + top.levels - 1;
    field->minmax16_level_count = wide.levels;
    field->minmax16_count = wide.nodes;
    memcpy(field->top_level, top.level, top.levels * sizeof *top.level);
    memcpy(field->minmax16_level, wide.level, wide.levels * sizeof *wide.level);
    atomic_init(&field->refs, 1);
    field->spec = *spec;
    if (field->spec.leaf_cells == 0)
        field->spec.leaf_cells = HEIGHTFIELD_LEAF_CELLS_DEFAULT;
    field->leaf_shift = (uint32_t)__builtin_ctz(field->spec.leaf_cells);
    field->origin_u = fabs(spec->origin_x_m / spec->spacing_x_m);
    field->origin_v = fabs(spec->origin_y_m / spec->spacing_y_m);
    field->cell_cols = spec->cols - 1;
    field->cell_rows = spec->rows - 1;
    field->stride = shape.stride;
    field->minmax16_first = shape.first;
    memcpy(field->strides, (int16_t[8]){1, (int16_t)field->tile_cols, 1, (int16_t)shape.stride},
           sizeof field->strides);
    field->is_far = !(field->origin_u < ORIGIN_FAR && field->origin_v < ORIGIN_FAR);
    if (!field->is_far) {
        field->inner_m[0] = spec->spacing_x_m * (field->cell_cols - 1);
        field->inner_m[1] = spec->spacing_y_m * (field->cell_rows - 1);
    }
    return field;
}

static size_t tile_count(const struct heightfield *field)
{
    return (size_t)field->tile_cols * field->tile_rows;
}

static void group_unref(struct tile_group *group)
{
    if (group == NULL || atomic_fetch_sub_explicit(&group->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < group->count; i++)
        tile_unref(group->tiles[i]);
    free(group);
}

static void field_free(struct heightfield *field)
{
    for (size_t i = 0; i < heightfield_group_count(field); i++)
        group_unref(field->groups[i]);
    free(field);
}

/* A group of the field's own for the tiles in `tiles`; takes their references. */
static bool group_create(struct heightfield *field, size_t number)
{
    size_t first = number * TILE_GROUP_TILES, tiles = tile_count(field) - first;
    size_t count = tiles < TILE_GROUP_TILES ? tiles : TILE_GROUP_TILES;
    struct tile_group *group = malloc(sizeof *group + count * sizeof *group->tiles);

    if (group == NULL)
        return false;
    atomic_init(&group->refs, 1);
    group->count = (uint32_t)count;
    memcpy(group->tiles, field->tiles + first, count * sizeof *group->tiles);
    field->groups[number] = group;
    return true;
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
    if (field != NULL && atomic_fetch_sub_explicit(&field->refs, 1, memory_order_acq_rel) == 1)
        field_free(field);
}

/* ---- the pyramid above the tiles ------------------------------------------------------------- */

struct bounds heightfield_top_node(const struct heightfield *field, uint32_t level, uint32_t column,
                                   uint32_t row)
{
    const struct top_level *below = &field->top_level[level - 1];
    struct bounds b = BOUNDS_EMPTY;

    for (uint32_t r = 2 * row; r < 2 * row + 2 && r < below->rows; r++)
        for (uint32_t c = 2 * column; c < 2 * column + 2 && c < below->cols; c++)
            b = bounds_union(b, field->top[below->offset + (size_t)r * below->cols + c]);
    return b;
}

/* A minmax16 node above the tiles, from the nodes below it. */
static void build_minmax16_node(struct heightfield *field, uint32_t level, uint32_t column,
                                uint32_t row)
{
    const struct top_level *own = &field->minmax16_level[level];
    const struct top_level *below = level > 0 ? &field->minmax16_level[level - 1] : NULL;
    uint32_t cols = below ? below->cols : field->tile_cols;
    uint32_t rows = below ? below->rows : field->tile_rows;
    struct bounds children[MINMAX16_CHILDREN];

    for (uint32_t i = 0; i < MINMAX16_CHILDREN; i++) {
        uint32_t c = 4 * column + i % 4, r = 4 * row + i / 4;
        size_t at = (size_t)r * cols + c;

        children[i] = c >= cols || r >= rows ? BOUNDS_EMPTY
                      : below ? minmax16_bounds(&field->minmax16_top[below->offset + at])
                              : minmax16_bounds(heightfield_minmax16(field, field->tiles[at], 0));
    }
    minmax16_build(&field->minmax16_top[own->offset + (size_t)row * own->cols + column], children);
}

static void build_minmax16_top(struct heightfield *field, uint32_t column0, uint32_t row0,
                               uint32_t column1, uint32_t row1)
{
    for (uint32_t level = 0; level < field->minmax16_level_count; level++) {
        column0 /= 4, row0 /= 4, column1 /= 4, row1 /= 4;
        for (uint32_t row = row0; row <= row1; row++)
            for (uint32_t column = column0; column <= column1; column++)
                build_minmax16_node(field, level, column, row);
    }
}

static void build_ray_box(struct heightfield *field)
{
    int root_cells = TILE_CELLS << MINMAX16_SHIFT * field->minmax16_level_count;

    ray_box_init(&field->ray_box, &field->spec,
                 field->top[field->top_level[field->top_level_count - 1].offset],
                 field->minmax16_first < MINMAX16_TILE_NODES ? (float)root_cells : 0);
}

void heightfield_build_top(struct heightfield *field, uint32_t tile_column0, uint32_t tile_row0,
                           uint32_t tile_column1, uint32_t tile_row1)
{
    for (uint32_t level = 0; level < field->top_level_count; level++) {
        const struct top_level *top = &field->top_level[level];

        for (uint32_t row = tile_row0 >> level; row <= tile_row1 >> level; row++)
            for (uint32_t column = tile_column0 >> level; column <= tile_column1 >> level;
                 column++) {
                size_t i = (size_t)row * top->cols + column;

                field->top[top->offset + i] = level == 0
                                                  ? tile_root(field->tiles[i])
                                                  : heightfield_top_node(field, level, column, row);
            }
    }
    build_minmax16_top(field, tile_column0, tile_row0, tile_column1, tile_row1);
    build_ray_box(field);
}

struct heightfield *heightfield_widened(const struct heightfield *field, float low_m, float high_m,
                                        struct err *err)
{
    struct heightfield *wide = heightfield_copy(field, err);
    struct bounds *root;

    if (!wide)
        return NULL;
    heightfield_build_top(wide, 0, 0, 0, 0);
    root = &wide->top[wide->top_level[wide->top_level_count - 1].offset];
    *root = bounds_union(*root, (struct bounds){low_m, high_m});
    build_ray_box(wide);
    return wide;
}

/* ---- tile by tile ---------------------------------------------------------------------------- */

struct heightfield_builder *heightfield_builder_create(const struct heightfield_spec *spec,
                                                       struct err *err)
{
    struct heightfield_builder *builder;

    if (spec_check(spec, err))
        return NULL;
    builder = malloc(sizeof *builder);
    if (builder == NULL) {
        err_set(err, ERR_NO_MEMORY, "no memory for a heightfield");
        return NULL;
    }
    builder->field = field_allocate(spec, err);
    if (builder->field == NULL) {
        free(builder);
        return NULL;
    }
    return builder;
}

void heightfield_builder_free(struct heightfield_builder *builder)
{
    if (builder == NULL)
        return;
    for (size_t i = 0; i < tile_count(builder->field); i++)
        tile_unref(builder->field->tiles[i]);
    field_free(builder->field);
    free(builder);
}

/* The tile, begun: samples[rows][cols] are to be written, the rest has no data. */
static struct tile *begin(struct heightfield_builder *builder, uint32_t tile_column,
                          uint32_t tile_row, uint32_t cols, uint32_t rows, struct err *err)
{
    struct heightfield *field = builder->field;

    CHECK(tile_column < field->tile_cols && tile_row < field->tile_rows);
    struct tile **tile = &field->tiles[(size_t)tile_row * field->tile_cols + tile_column];

    const struct tile_shape shape = heightfield_tile_shape(&field->spec, tile_column, tile_row);

    CHECK(*tile == NULL);
    *tile = tile_begin(&shape, cols, rows);
    if (*tile == NULL)
        err_set(err, ERR_NO_MEMORY, "no memory for a heightfield of %u×%u samples",
                field->spec.cols, field->spec.rows);
    return *tile;
}

size_t heightfield_builder_stride(const struct heightfield_builder *builder)
{
    return builder->field->stride;
}

float *heightfield_builder_begin(struct heightfield_builder *builder, uint32_t tile_column,
                                 uint32_t tile_row, struct err *err)
{
    struct tile *tile;
    uint32_t cols, rows;

    heightfield_tile_size(&builder->field->spec, tile_column, tile_row, &cols, &rows);
    tile = begin(builder, tile_column, tile_row, cols, rows, err);
    return tile ? tile->samples : NULL;
}

void heightfield_builder_share(struct heightfield_builder *builder, uint32_t tile_column,
                               uint32_t tile_row, const struct heightfield *from)
{
    struct heightfield *field = builder->field;
    struct tile **tile = &field->tiles[(size_t)tile_row * field->tile_cols + tile_column];

    CHECK(*tile == NULL && from->leaf_shift == field->leaf_shift &&
          from->spec.cols == field->spec.cols && from->spec.rows == field->spec.rows);
    *tile = from->tiles[(size_t)tile_row * from->tile_cols + tile_column];
    tile_ref(*tile);
}

/* The samples column .. end - 1 of a row, as far as they are in this tile. */
static bool put_in_tile(struct heightfield_builder *builder, uint32_t tile_column,
                        uint32_t tile_row, uint32_t column, uint32_t row, uint32_t end,
                        const float *heights_m, struct err *err)
{
    struct heightfield *field = builder->field;
    struct tile *tile = field->tiles[(size_t)tile_row * field->tile_cols + tile_column];
    uint32_t first = tile_column << TILE_SHIFT, from = column > first ? column : first;
    uint32_t to = end < first + TILE_SAMPLES ? end : first + TILE_SAMPLES;

    if (tile == NULL) /* of a field that is put in part the rest has no data */
        tile = begin(builder, tile_column, tile_row, 0, 0, err);
    if (tile != NULL)
        memcpy(tile->samples + (size_t)(row - (tile_row << TILE_SHIFT)) * field->stride + from -
                   first,
               heights_m + from - column, (to - from) * sizeof *heights_m);
    return tile != NULL;
}

enum err_code heightfield_builder_put(struct heightfield_builder *builder, uint32_t column,
                                      uint32_t row, const float *heights_m, uint32_t count,
                                      struct err *err)
{
    const struct heightfield *field = builder->field;
    uint32_t end = column + count;

    CHECK(count > 0 && end <= field->spec.cols && row < field->spec.rows);
    /* a sample on a seam is in the tiles on both sides, and the last one has none after it */
    for (uint32_t r = row > 0 ? (row - 1) >> TILE_SHIFT : 0;
         r < field->tile_rows && r << TILE_SHIFT <= row; r++)
        for (uint32_t c = column > 0 ? (column - 1) >> TILE_SHIFT : 0;
             c < field->tile_cols && c << TILE_SHIFT < end; c++)
            if (!put_in_tile(builder, c, r, column, row, end, heights_m, err))
                return err->code;
    return ERR_OK;
}

static enum err_code infinite_in_tile(const struct tile *tile, uint32_t tile_column,
                                      uint32_t tile_row, struct err *err)
{
    uint32_t i = 0;

    while (!isinf(tile->samples[i])) /* one is, tile_seal says */
        i++;
    return err_set(err, ERR_BAD_INPUT, "height (%u, %u) is infinite",
                   (tile_column << TILE_SHIFT) + i % tile->shape.stride,
                   (tile_row << TILE_SHIFT) + i / tile->shape.stride);
}

enum err_code heightfield_builder_seal(struct heightfield_builder *builder, uint32_t tile_column,
                                       uint32_t tile_row, struct err *err)
{
    struct heightfield *field = builder->field;

    CHECK(tile_column < field->tile_cols && tile_row < field->tile_rows);
    struct tile *tile = field->tiles[(size_t)tile_row * field->tile_cols + tile_column];

    CHECK(tile != NULL && tile->serial == 0);
    return tile_seal(tile) ? ERR_OK : infinite_in_tile(tile, tile_column, tile_row, err);
}

void heightfield_builder_over(struct heightfield_builder *builder, uint32_t tile_column,
                              uint32_t tile_row, const struct heightfield *other)
{
    struct heightfield *field = builder->field;

    CHECK(other->leaf_shift == field->leaf_shift && other->spec.cols == field->spec.cols &&
          other->spec.rows == field->spec.rows);
    heightfield_tile_over(field, (size_t)tile_row * field->tile_cols + tile_column, other);
}

enum err_code heightfield_builder_rest(struct heightfield_builder *builder, struct err *err)
{
    struct heightfield *field = builder->field;
    struct tile *none[4] = {NULL}, **same; /* those of the last column and row are others */

    for (uint32_t i = 0; i < tile_count(field); i++) {
        if (field->tiles[i] && field->tiles[i]->serial == 0 &&
            heightfield_builder_seal(builder, i % field->tile_cols, i / field->tile_cols, err))
            break;
        if (field->tiles[i])
            continue;
        same = &none[(i % field->tile_cols + 1 == field->tile_cols) +
                     2 * (i / field->tile_cols + 1 == field->tile_rows)];
        if (!*same) {
            *same = begin(builder, i % field->tile_cols, i / field->tile_cols, 0, 0, err);
            if (!*same)
                break;
            CHECK(tile_seal(*same)); /* it has no sample that could be infinite */
        } else {
            tile_ref(*same);
        }
        field->tiles[i] = *same;
    }
    return err->code;
}

static bool tiles_are_sealed(const struct heightfield *field, struct err *err)
{
    for (size_t i = 0; i < tile_count(field); i++)
        if (field->tiles[i] == NULL || field->tiles[i]->serial == 0) {
            err_set(err, ERR_BAD_INPUT, "tile (%zu, %zu) is missing", i % field->tile_cols,
                    i / field->tile_cols);
            return false;
        }
    return true;
}

/* Groups and the top pyramid for tiles that are all there; takes the builder. */
static struct heightfield *finish(struct heightfield_builder *builder, struct err *err)
{
    struct heightfield *field = builder->field;

    for (size_t i = 0; i < heightfield_group_count(field); i++)
        if (!group_create(field, i)) {
            for (size_t j = 0; j < i; j++) { /* the builder still counts the tiles */
                free(field->groups[j]);
                field->groups[j] = NULL;
            }
            heightfield_builder_free(builder);
            err_set(err, ERR_NO_MEMORY, "no memory for a heightfield");
            return NULL;
        }
    for (size_t i = 0; i < tile_count(field); i++)
        field->has_bases |= field->tiles[i]->base != NULL;
    heightfield_build_top(field, 0, 0, field->tile_cols - 1, field->tile_rows - 1);
    free(builder);
    return field;
}

struct heightfield *heightfield_builder_finish(struct heightfield_builder *builder, struct err *err)
{
    if (!tiles_are_sealed(builder->field, err) || !heightfield_aprons_agree(builder->field, err)) {
        err->code = ERR_BAD_INPUT; /* these tiles are not our own work */
        heightfield_builder_free(builder);
        return NULL;
    }
    return finish(builder, err);
}

/* ---- from an array --------------------------------------------------------------------------- */

/* The first infinite height, row by row; there is one. */
static void infinite_height(const float *heights_m, uint32_t cols, struct err *err)
{
    size_t i = 0;

    while (!isinf(heights_m[i]))
        i++;
    err_set(err, ERR_BAD_INPUT, "height (%u, %u) is infinite", (uint32_t)(i % cols),
            (uint32_t)(i / cols));
}

static bool tile_from_array(struct heightfield_builder *builder, uint32_t tile_column,
                            uint32_t tile_row, const float *heights_m, struct err *err)
{
    const struct heightfield_spec *spec = &builder->field->spec;
    float *samples_m = heightfield_builder_begin(builder, tile_column, tile_row, err);
    uint32_t cols, rows;

    if (samples_m == NULL)
        return false;
    heights_m += ((size_t)tile_row * spec->cols + tile_column) << TILE_SHIFT;
    heightfield_tile_size(spec, tile_column, tile_row, &cols, &rows);
    for (uint32_t row = 0; row < rows; row++)
        memcpy(samples_m + (size_t)row * builder->field->stride,
               heights_m + (size_t)row * spec->cols, cols * sizeof *samples_m);
    return heightfield_builder_seal(builder, tile_column, tile_row, err) == ERR_OK;
}

struct heightfield *heightfield_create(const struct heightfield_spec *spec, const float *heights_m,
                                       struct err *err)
{
    struct heightfield_builder *builder = heightfield_builder_create(spec, err);

    if (builder == NULL)
        return NULL;
    for (uint32_t row = 0; row < builder->field->tile_rows; row++)
        for (uint32_t column = 0; column < builder->field->tile_cols; column++)
            if (!tile_from_array(builder, column, row, heights_m, err)) {
                heightfield_builder_free(builder);
                if (err->code == ERR_BAD_INPUT)
                    infinite_height(heights_m, spec->cols, err);
                return NULL;
            }
    return finish(builder, err); /* tiles of one array agree at the seams */
}

/* ---- copies ---------------------------------------------------------------------------------- */

struct heightfield *heightfield_copy(const struct heightfield *field, struct err *err)
{
    const struct top_level *last = &field->top_level[field->top_level_count - 1];
    struct heightfield *copy = field_allocate(&field->spec, err);

    if (copy == NULL)
        return NULL;
    memcpy(copy->tiles, field->tiles, tile_count(field) * sizeof *field->tiles);
    memcpy(copy->top, field->top, (last->offset + 1) * sizeof *field->top);
    memcpy(copy->minmax16_top, field->minmax16_top,
           field->minmax16_count * sizeof *field->minmax16_top);
    copy->ray_box = field->ray_box;
    copy->has_bases = field->has_bases;
    for (size_t i = 0; i < heightfield_group_count(field); i++) {
        copy->groups[i] = field->groups[i];
        atomic_fetch_add_explicit(&copy->groups[i]->refs, 1, memory_order_relaxed);
    }
    return copy;
}

bool heightfield_replace_tile(struct heightfield *field, size_t index, struct tile *tile)
{
    size_t number = index / TILE_GROUP_TILES;
    struct tile_group *shared = field->groups[number];

    CHECK(index < tile_count(field));
    if (atomic_load_explicit(&shared->refs, memory_order_acquire) != 1) {
        if (!group_create(field, number)) {
            tile_unref(tile);
            return false;
        }
        for (uint32_t i = 0; i < shared->count; i++)
            tile_ref(shared->tiles[i]);
        group_unref(shared);
    }
    tile_unref(field->tiles[index]);
    field->tiles[index] = tile;
    field->groups[number]->tiles[index % TILE_GROUP_TILES] = tile;
    return true;
}

void heightfield_tile_over(struct heightfield *field, size_t index, const struct heightfield *other)
{
    struct tile *tile = field->tiles[index];

    if (tile == other->tiles[index] || tile->base)
        return;
    tile = tile_over(tile, other->tiles[index]);
    field->tiles[index] = tile;
    if (field->groups[index / TILE_GROUP_TILES])
        field->groups[index / TILE_GROUP_TILES]->tiles[index % TILE_GROUP_TILES] = tile;
}

struct heightfield *heightfield_with_triangulation(const struct heightfield *field,
                                                   enum triangulation triangulation,
                                                   struct err *err)
{
    struct heightfield *copy = heightfield_copy(field, err);

    if (copy != NULL)
        copy->spec.triangulation = triangulation;
    return copy;
}
