/*
 * Drainage: pits are filled from the outside in, then every cell looks for its way down.
 *
 * Filling keeps a heap of the lowest rim cells reached so far. The lowest is taken; a neighbour
 * that lies lower than the way out is raised to just above it. Such raised cells need no heap,
 * since they are next in line anyway: they go through a plain queue (Barnes' improvement), and most
 * cells of a rough terrain then cost O(1).
 *
 * The order of cells is Kahn's: start at cells into which nothing drains and follow the water
 * while every other donor of the next cell is done. It visits a stream's cells one after the other,
 * which is kinder to the cache than a breadth-first stack. All sequential parts go in index order,
 * so the result is the same for every number of threads.
 *
 * Tried and dropped: a queue by layers as in Braun and Willett (the same result, 1.6 times slower
 * at 2048²), and the plain steepest way of the eight (long parallel gullies at multiples of 45°).
 */
#include "deploy/demo/drainage.h"

#include "base/check.h"
#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const int drainage_step_x[8] = {1, 0, -1, 0, 1, -1, -1, 1};
const int drainage_step_y[8] = {0, 1, 0, -1, 1, 1, -1, -1};

enum err_code drainage_create(struct drainage *drainage, uint32_t cols, uint32_t rows,
                              struct err *err)
{
    size_t count = (size_t)cols * rows;

    *drainage = (struct drainage){.cols = cols, .rows = rows};
    drainage->receiver = malloc(count);
    drainage->donors = malloc(count);
    drainage->order = malloc(count * sizeof *drainage->order);
    drainage->area = malloc(count * sizeof *drainage->area);
    if (drainage->receiver && drainage->donors && drainage->order && drainage->area)
        return ERR_OK;
    drainage_destroy(drainage);
    return err_set(err, ERR_NO_MEMORY, "no memory for the drainage of %u x %u samples", cols, rows);
}

void drainage_destroy(struct drainage *drainage)
{
    free(drainage->receiver);
    free(drainage->donors);
    free(drainage->order);
    free(drainage->area);
    *drainage = (struct drainage){0};
}

/* ---- filling ------------------------------------------------------------------------------ */

struct flood_cell {
    float height_m;
    uint32_t cell;
};

struct flood {
    struct flood_cell *heap; /* 1-based binary heap, least height first */
    uint32_t heap_count;
    uint32_t *queue; /* cells of pits, in the order they were raised; each cell once at most */
    uint32_t queue_first, queue_end;
    uint8_t *seen;
};

static bool flood_less(struct flood_cell a, struct flood_cell b)
{
    return a.height_m < b.height_m || (a.height_m <= b.height_m && a.cell < b.cell);
}

static void flood_push(struct flood *flood, float height_m, uint32_t cell)
{
    struct flood_cell item = {height_m, cell};
    uint32_t i = ++flood->heap_count;

    while (i > 1 && flood_less(item, flood->heap[i / 2])) {
        flood->heap[i] = flood->heap[i / 2];
        i /= 2;
    }
    flood->heap[i] = item;
}

static uint32_t flood_pop(struct flood *flood)
{
    uint32_t top = flood->heap[1].cell, last = flood->heap_count--;
    struct flood_cell item = flood->heap[last];
    uint32_t i = 1;

    while (2 * i < last) {
        uint32_t child = 2 * i;

        if (child + 1 < last && flood_less(flood->heap[child + 1], flood->heap[child]))
            child++;
        if (!flood_less(flood->heap[child], item))
            break;
        flood->heap[i] = flood->heap[child];
        i = child;
    }
    flood->heap[i] = item;
    return top;
}

static void flood_neighbours(struct flood *flood, struct grid *grid, uint32_t cell, float rise_m)
{
    int64_t column = cell % grid->cols, row = cell / grid->cols;
    float way_out_m = grid->at[cell] + rise_m;

    for (int way = 0; way < 8; way++) {
        int64_t c = column + drainage_step_x[way], r = row + drainage_step_y[way];
        uint32_t next = (uint32_t)(r * grid->cols + c);

        if (c < 0 || r < 0 || c >= grid->cols || r >= grid->rows || flood->seen[next])
            continue;
        flood->seen[next] = 1;
        if (grid->at[next] <= way_out_m) {
            grid->at[next] = way_out_m;
            flood->queue[flood->queue_end++] = next;
        } else {
            flood_push(flood, grid->at[next], next);
        }
    }
}

/* A cell of the sea is not raised, and only its shore needs a place in the heap. */
static void flood_seed(struct flood *flood, const struct grid *grid, float sea_level_m)
{
    for (uint32_t row = 0; row < grid->rows; row++) {
        for (uint32_t column = 0; column < grid->cols; column++) {
            uint32_t cell = row * grid->cols + column;

            if (row && column && row + 1 < grid->rows && column + 1 < grid->cols &&
                !(grid->at[cell] <= sea_level_m))
                continue;
            flood->seen[cell] = 1;
            flood_push(flood, grid->at[cell], cell);
        }
    }
}

enum err_code drainage_fill(struct grid *grid, double sea_level_m, double slope, struct err *err)
{
    size_t count = grid_count(grid);
    float rise_m = (float)(slope * grid->spacing_m);
    struct flood flood = {.heap = malloc((count + 1) * sizeof *flood.heap),
                          .queue = malloc(count * sizeof *flood.queue),
                          .seen = calloc(count, 1)};
    enum err_code code = ERR_OK;

    CHECK(count < UINT32_MAX);
    if (flood.heap && flood.queue && flood.seen) {
        flood_seed(&flood, grid, (float)sea_level_m);
        while (flood.heap_count || flood.queue_first < flood.queue_end) {
            uint32_t cell = flood.queue_first < flood.queue_end ? flood.queue[flood.queue_first++]
                                                                : flood_pop(&flood);

            flood_neighbours(&flood, grid, cell, rise_m);
        }
    } else {
        code = err_set(err, ERR_NO_MEMORY, "no memory to fill the pits of %u x %u samples",
                       grid->cols, grid->rows);
    }
    free(flood.heap);
    free(flood.queue);
    free(flood.seen);
    return code;
}

/* ---- routing ------------------------------------------------------------------------------ */

struct route_job {
    struct drainage *drainage;
    const struct grid *grid;
    float sea_level_m;
    uint32_t seed;
};

static uint8_t way_down(const struct grid *grid, size_t cell, float reach)
{
    const float *at = grid->at + cell;
    ptrdiff_t cols = (ptrdiff_t)grid->cols;
    float best = 0;
    uint8_t way = DRAINAGE_OUTLET;

    for (uint8_t i = 0; i < 8; i++) {
        float fall_m = at[0] - at[drainage_step_y[i] * cols + drainage_step_x[i]];
        float slope = i < 4 ? fall_m : fall_m * reach;

        if (slope > best) {
            best = slope;
            way = i;
        }
    }
    return way;
}

static void route_rows(void *context, uint32_t first, uint32_t end)
{
    const struct route_job *job = context;
    const struct grid *grid = job->grid;

    for (uint32_t row = first; row < end; row++) {
        for (uint32_t column = 0; column < grid->cols; column++) {
            size_t cell = (size_t)row * grid->cols + column;
            uint8_t way = DRAINAGE_OUTLET;

            if (row && column && row + 1 < grid->rows && column + 1 < grid->cols &&
                grid->at[cell] > job->sea_level_m) {
                float draw = (float)(noise_hash(column, row, job->seed) >> 8) * 0x1p-24f;

                way = way_down(grid, cell, 1 / (2 - draw));
            }
            job->drainage->receiver[cell] = way;
        }
    }
}

static void route_order(struct drainage *drainage)
{
    size_t count = (size_t)drainage->cols * drainage->rows, ordered = 0;
    uint8_t *donors = drainage->donors;

    memset(donors, 0, count);
    for (size_t cell = 0; cell < count; cell++) {
        drainage->area[cell] = 1;
        if (drainage->receiver[cell] != DRAINAGE_OUTLET)
            donors[drainage_receiver(drainage, cell)]++;
    }
    for (size_t start = 0; start < count; start++) {
        size_t cell = start;

        if (donors[start])
            continue;
        for (;;) {
            size_t next;

            drainage->order[ordered++] = (uint32_t)cell;
            donors[cell] = UINT8_MAX; /* done: not to be started at again */
            if (drainage->receiver[cell] == DRAINAGE_OUTLET)
                break;
            next = drainage_receiver(drainage, cell);
            drainage->area[next] += drainage->area[cell];
            if (--donors[next])
                break;
            cell = next;
        }
    }
    CHECK(ordered == count); /* water runs strictly down, so there is no circle */
}

void drainage_route(struct drainage *drainage, const struct grid *grid, double sea_level_m,
                    uint32_t seed, uint32_t threads)
{
    struct route_job job = {drainage, grid, (float)sea_level_m, seed};

    CHECK(drainage->cols == grid->cols && drainage->rows == grid->rows);
    parallel_rows(threads, grid->rows, 32, route_rows, &job);
    route_order(drainage);
}

bool drainage_validate(const struct drainage *drainage, struct err *err)
{
    size_t count = (size_t)drainage->cols * drainage->rows;
    uint32_t *place = malloc(count * sizeof *place);
    double drained = 0;
    bool valid = true;

    CHECK(place);
    memset(place, 0xff, count * sizeof *place);
    for (size_t i = 0; i < count; i++)
        place[drainage->order[i]] = (uint32_t)i;
    for (size_t cell = 0; valid && cell < count; cell++) {
        if (place[cell] == UINT32_MAX) {
            err_set(err, ERR_INTERNAL, "cell %zu has no place in the order", cell);
            valid = false;
        } else if (drainage->receiver[cell] == DRAINAGE_OUTLET) {
            drained += drainage->area[cell];
        } else if (place[drainage_receiver(drainage, cell)] <= place[cell]) {
            err_set(err, ERR_INTERNAL, "cell %zu comes after its receiver", cell);
            valid = false;
        }
    }
    free(place);
    if (valid && fabs(drained - (double)count) > 1e-6 * (double)count) {
        err_set(err, ERR_INTERNAL, "outlets drain %g of %zu cells", drained, count);
        valid = false;
    }
    return valid;
}
