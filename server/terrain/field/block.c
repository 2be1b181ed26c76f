/*
 * Reading blocks, and naming their source.
 *
 * A block is cheap to name and expensive to read: its samples come from a few tiles, which are
 * immutable and numbered (heightfield_tile_serial), so the numbers of the tiles identify the
 * samples. Which tiles: along each axis the samples first, first + step, …; at steps below a tile's
 * 256 cells they meet every tile in between, above it only each (step / 256)-th. A sample on a seam
 * is in two tiles; an edit that changes it remakes both, so one of them is enough, and the choice
 * is the one that takes the fewest: at level 0 a block is exactly one tile.
 *
 * The least and greatest read every sample of small squares, which lie in one tile, and go by
 * the field's pyramid in large ones, whose rim is then the work (`make bench` prints both).
 *
 * Invariant: every sample that block_read reads is in a tile that block_source mixes in.
 */
#include "terrain/field/block.h"

#include <string.h>

enum { TILE_SHIFT_OF_BLOCKS = 8 }; /* cells along a tile of the field, as BLOCK_CELLS */
enum { SCAN_STEP_MAX = 16 };       /* up to here looking at all is faster than the pyramid */

/* The tiles along one axis: first, first + stride, …, count of them, none beyond last. */
struct tile_run {
    uint32_t first, stride, count, last;
};

static uint32_t cells_along(uint32_t samples, uint32_t level)
{
    return (uint32_t)(((uint64_t)(samples - 1) + ((uint64_t)1 << level) - 1) >> level);
}

uint32_t block_level_last(const struct heightfield_spec *spec)
{
    uint32_t last = 0;

    while (cells_along(spec->cols, last) > 1 || cells_along(spec->rows, last) > 1)
        last++;
    return last;
}

void block_count(const struct heightfield_spec *spec, uint32_t level, uint32_t *columns,
                 uint32_t *rows)
{
    *columns = (cells_along(spec->cols, level) + BLOCK_CELLS - 1) / BLOCK_CELLS;
    *rows = (cells_along(spec->rows, level) + BLOCK_CELLS - 1) / BLOCK_CELLS;
}

/* How many of the 257 samples along one axis lie inside the field. */
static uint32_t inside_along(uint32_t samples, uint32_t level, uint32_t index)
{
    uint64_t first = (uint64_t)index * BLOCK_CELLS << level;
    uint64_t count = first < samples ? ((samples - 1 - first) >> level) + 1 : 0;

    return count < BLOCK_SIDE ? (uint32_t)count : BLOCK_SIDE;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The same by looking at each sample, of a square that lies inside one tile. */
static float scan(const struct heightfield *field, enum block_kind kind, uint32_t c, uint32_t r,
                  uint32_t step)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint32_t cols = spec->cols - c < step ? spec->cols - c : step;
    uint32_t rows = spec->rows - r < step ? spec->rows - r : step;
    float sign = kind == BLOCK_MIN ? 1.0f : -1.0f, best = __builtin_inff();

    for (uint32_t j = 0; j < rows; j++) {
        const float *at = heightfield_tile_row(field, c >> TILE_SHIFT_OF_BLOCKS,
                                               r >> TILE_SHIFT_OF_BLOCKS, r % BLOCK_CELLS + j) +
                          c % BLOCK_CELLS;

        for (uint32_t i = 0; i < cols; i++)
            best = sign * at[i] < best ? sign * at[i] : best; /* NaN is never less */
    }
    return best < __builtin_inff() ? sign * best : __builtin_nanf("");
}

/* The least or greatest sample of a square that begins at (c, r); NaN when it has none. */
static float extreme(const struct heightfield *field, enum block_kind kind, uint32_t c, uint32_t r,
                     uint32_t step)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    float min, max;

    if (step <= SCAN_STEP_MAX && c + 1 < spec->cols && r + 1 < spec->rows)
        return scan(field, kind, c, r, step);
    if (!heightfield_range(field, c, r, c + step - 1, r + step - 1, &min, &max))
        return __builtin_nanf("");
    return kind == BLOCK_MIN ? min : max;
}

void block_read(const struct heightfield *field, const struct block_place *place, float *samples)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint32_t step = (uint32_t)1 << place->level;
    uint32_t cols = inside_along(spec->cols, place->level, place->column);
    uint32_t rows = inside_along(spec->rows, place->level, place->row);
    uint32_t c0 = (uint32_t)((uint64_t)place->column * BLOCK_CELLS << place->level);
    uint32_t r0 = (uint32_t)((uint64_t)place->row * BLOCK_CELLS << place->level);

    for (uint32_t j = 0; j < BLOCK_SIDE; j++) {
        float *row = samples + (size_t)j * BLOCK_SIDE;
        uint32_t count = j < rows ? cols : 0, r = r0 + j * step;

        for (uint32_t i = 0; i < count; i++) {
            uint32_t c = c0 + i * step;
            float h = place->kind == BLOCK_SAMPLED || place->level == 0
                          ? heightfield_sample(field, c, r)
                          : extreme(field, place->kind, c, r, step);

            row[i] = h == h ? h : __builtin_nanf("");
        }
        for (uint32_t i = count; i < BLOCK_SIDE; i++)
            row[i] = __builtin_nanf("");
    }
}

/* ---- where they come from -------------------------------------------------------------------- */

static struct tile_run run_along(uint32_t samples, uint32_t tiles, const struct block_place *place,
                                 uint32_t index)
{
    uint64_t step = (uint64_t)1 << place->level;
    uint64_t first = (uint64_t)index * BLOCK_CELLS << place->level;
    uint64_t last = first + (inside_along(samples, place->level, index) - 1) * step;
    struct tile_run run = {(uint32_t)(first >> TILE_SHIFT_OF_BLOCKS), 1, 1, tiles - 1};

    if (place->kind == BLOCK_SAMPLED && place->level >= TILE_SHIFT_OF_BLOCKS) {
        run.stride = (uint32_t)(step >> TILE_SHIFT_OF_BLOCKS);
        run.count = (uint32_t)((last - first) >> place->level) + 1;
        return run;
    }
    if (place->kind != BLOCK_SAMPLED)
        last = last + step - 1 < samples - 1 ? last + step - 1 : samples - 1;
    if (last > first) /* the last one may lie on the apron of the tile before */
        last--;
    run.count = (uint32_t)(last >> TILE_SHIFT_OF_BLOCKS) - run.first + 1;
    return run;
}

static uint32_t run_at(const struct tile_run *run, uint32_t i)
{
    uint64_t tile = run->first + (uint64_t)i * run->stride;

    return tile < run->last ? (uint32_t)tile : run->last;
}

static void runs_of(const struct heightfield *field, const struct block_place *place,
                    struct tile_run *columns, struct tile_run *rows)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    struct heightfield_tile_layout layout = heightfield_tile_layout(spec);

    *columns = run_along(spec->cols, layout.tile_cols, place, place->column);
    *rows = run_along(spec->rows, layout.tile_rows, place, place->row);
}

uint64_t block_tile_count(const struct heightfield *field, const struct block_place *place)
{
    struct tile_run columns, rows;

    runs_of(field, place, &columns, &rows);
    return (uint64_t)columns.count * rows.count;
}

/* SplitMix64's finalizer (Steele, Lea, Flood 2014): every bit depends on every bit. */
static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* The numbers of the tiles where the runs meet, in order. */
static void source_of(const struct heightfield *field, const struct tile_run *columns,
                      const struct tile_run *rows, uint64_t source[2])
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint64_t a = mix(spec->cols), b = mix(~(uint64_t)spec->rows);

    for (uint32_t j = 0; j < rows->count; j++) {
        for (uint32_t i = 0; i < columns->count; i++) {
            uint64_t serial = heightfield_tile_serial(field, run_at(columns, i), run_at(rows, j));

            a = mix(a + serial + 0x9e3779b97f4a7c15u);
            b = mix(b * 0xd6e8feb86659fd93u ^ serial);
        }
    }
    source[0] = a;
    source[1] = b;
}

void block_source(const struct heightfield *field, const struct block_place *place,
                  uint64_t source[2])
{
    struct tile_run columns, rows;

    runs_of(field, place, &columns, &rows);
    source_of(field, &columns, &rows, source);
}

static struct tile_run run_of_cells(uint32_t first, uint32_t last)
{
    uint32_t tile = first >> TILE_SHIFT_OF_BLOCKS, end = last >> TILE_SHIFT_OF_BLOCKS;

    return (struct tile_run){tile, 1, end - tile + 1, end};
}

void block_source_of_cells(const struct heightfield *field, uint32_t column0, uint32_t row0,
                           uint32_t column1, uint32_t row1, uint64_t source[2])
{
    struct tile_run columns = run_of_cells(column0, column1), rows = run_of_cells(row0, row1);

    source_of(field, &columns, &rows, source);
}
