/*
 * Reading windows, and naming their content.
 *
 * Along an axis a window is cut at the seams of tiles into runs; sample 256·k is the first of tile
 * k, and of the tile before it only where there is no tile k. A row is read run by run. The hash
 * goes over the pieces (run × run), each hashed by itself: at step 1 a piece that is the 256×256
 * samples of a tile is named by the hash that the tile keeps, so that a window of a whole field
 * costs an addition a tile while nothing changes.
 */
#include "terrain/field/window.h"

#include "terrain/field/heightfield_data.h"
#include "terrain/field/sample_hash.h"

/* The samples of a window that are in one tile, along one axis. */
struct run {
    uint32_t tile, first; /* first: in the tile */
    uint32_t count;
};

/* The run of samples at, at + step, … below end; O(1). */
static struct run run_at(uint32_t at, uint32_t end, uint32_t step, uint32_t tiles)
{
    struct run run = {at >> TILE_SHIFT, at & (TILE_CELLS - 1), 1};
    uint64_t seam = ((uint64_t)run.tile + 1) << TILE_SHIFT;

    if (run.tile == tiles)
        return (struct run){tiles - 1, TILE_CELLS, 1}; /* on the last apron */
    run.count = (uint32_t)(((end < seam ? end : seam) - at - 1) / step) + 1;
    return run;
}

static void copy_run(const float *from, uint32_t count, uint32_t step, float *to)
{
    for (uint32_t i = 0; i < count; i++) {
        float h = from[(size_t)i * step];

        to[i] = h == h ? h : __builtin_nanf("");
    }
}

void window_row(const struct heightfield *field, const struct window *window, uint32_t j,
                float *samples)
{
    const struct sample_rect *rect = &window->rect;
    uint32_t end = rect->column + rect->cols;
    struct run row = run_at(rect->row + j * window->step, rect->row + rect->rows, window->step,
                            field->tile_rows);

    for (uint32_t i = 0, cols = window_cols(window); i < cols;) {
        struct run run =
            run_at(rect->column + i * window->step, end, window->step, field->tile_cols);
        const struct tile *tile = field->tiles[(size_t)row.tile * field->tile_cols + run.tile];

        copy_run(tile_at(tile, (size_t)row.first * field->stride + run.first), run.count,
                 window->step, samples + i);
        i += run.count;
    }
}

static void piece_hash(const struct tile *tile, const struct run *columns, const struct run *rows,
                       uint32_t step, uint64_t hash[2])
{
    size_t stride = tile->shape.stride, at = rows->first * stride + columns->first;

    if (step == 1 && columns->count == TILE_CELLS && rows->count == TILE_CELLS) {
        tile_hash(tile, hash);
        return;
    }
    hash[0] = hash[1] = 0;
    for (uint32_t j = 0; j < rows->count; j++, at += step * stride)
        sample_hash(tile_at(tile, at), columns->count, step, hash);
}

void window_hash(const struct heightfield *field, const struct window *window, uint64_t hash[2])
{
    const struct sample_rect *rect = &window->rect;
    uint32_t cols = window_cols(window), rows = window_rows(window), step = window->step;

    hash[0] = cols;
    hash[1] = rows;
    for (uint32_t j = 0; j < rows;) {
        struct run row =
            run_at(rect->row + j * step, rect->row + rect->rows, step, field->tile_rows);

        for (uint32_t i = 0; i < cols;) {
            struct run run =
                run_at(rect->column + i * step, rect->column + rect->cols, step, field->tile_cols);
            uint64_t piece[2];

            piece_hash(field->tiles[(size_t)row.tile * field->tile_cols + run.tile], &run, &row,
                       step, piece);
            hash_word(piece[0], hash);
            hash_word(piece[1], hash);
            i += run.count;
        }
        j += row.count;
    }
    hash[0] = hash_finish(hash[0]);
    hash[1] = hash_finish(hash[1]);
}
