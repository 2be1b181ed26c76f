/*
 * Ground at its angle of repose.
 *
 * Problem: bring samples to at most a slope, keep their volume, stop within a bounded time, and be
 * exact at the end. Approach: a cellular automaton (M. Pla-Castells, I. García-Fernández, R. J.
 * Martínez: Interactive Terrain Simulation and Force Distribution Models in Sand Piles, 2006; text
 * S, 2.4.3), then a closed form for what it has left.
 *
 * The automaton is one of blocks. The pairs of neighbours are split into eight matchings: four
 * directions, even and odd. Within a matching no sample is in two pairs, so their order does not
 * matter; of each pair that is too steep the higher sample gives half of the excess to the
 * lower one. A row is looked at again only when it or the one beside it has changed. It ends when
 * no pair exceeds the slope by SLACK of it, or after VISITS_MAX pairs.
 *
 * The closed form: let L be the highest surface below h that keeps the slope, U the lowest above
 * it (shortest paths from all samples, Dijkstra's algorithm). Every mean (1 - a) L + a U keeps the
 * slope, too, and where h keeps it, L = U = h. So each connected part with L < U takes the one `a`
 * that keeps its volume. After the automaton L and U are almost the same; where it was cut off
 * the ground becomes flatter than it would have to, and is never too steep.
 *
 * Rounding: limits are two float32 units of the greatest height below slope · distance, and the
 * remainder of each rounding goes to the next changed sample, so each is rounded by less than one
 * unit and their sum by half of one.
 *
 * Tried: the closed form only (a cliff gets half of the angle), one sample after the other (a cone
 * leans), all pairs at once with an eighth of the excess (four times as long).
 */
#include "terrain/field/relax.h"

#include "base/array_reserve.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VISITS_MAX ((uint64_t)1 << 26) /* of pairs: half a second */
#define SLACK 0x1p-10

/* Columns, rows and length of a step; each pair of neighbours once. */
struct direction {
    int dc, dr;
    double steep_m;  /* a pair is too steep beyond this */
    double target_m; /* and becomes this */
};

struct queued {
    double height_m;
    uint32_t at;
};

struct relax {
    const struct relax_grid *grid;
    struct direction directions[4];
    double *h;           /* the samples */
    double *low, *high;  /* L and U */
    uint32_t *part;      /* samples of the connected part that is being looked at */
    uint8_t *is_seen;    /* it has been in a part */
    uint8_t *was, *is;   /* rows that the last, and this sweep changed */
    struct queued *heap; /* the least height first */
    size_t heap_count, heap_room;
};

/* ---- the automaton --------------------------------------------------------------------------- */

/* Slides one pair; the excess that it had, 0 if none. */
static double slide(const struct direction *direction, double *a, double *b)
{
    const double difference = *a - *b;
    double moved;

    if (!(fabs(difference) > direction->steep_m)) /* a NaN is beside nothing */
        return 0;
    moved = (difference - copysign(direction->target_m, difference)) / 2;
    *a -= moved;
    *b += moved;
    return fabs(difference) - direction->steep_m;
}

/* One matching of a row with itself or the next; true when something slid. */
static bool slide_row(struct relax *relax, const struct direction *direction, uint32_t row,
                      uint32_t first, uint32_t step, double *most)
{
    const uint32_t cols = relax->grid->cols;
    double *a = relax->h + (size_t)row * cols + (direction->dc < 0 ? 1 : 0);
    const ptrdiff_t next = direction->dr * (ptrdiff_t)cols + direction->dc;
    const uint32_t count = direction->dc != 0 ? cols - 1 : cols;
    double excess = 0;

    for (uint32_t c = first; c < count; c += step)
        excess = fmax(excess, slide(direction, a + c, a + c + next));
    *most = fmax(*most, excess / direction->steep_m);
    return excess > 0;
}

/* All pairs once; the greatest excess as a part of what is allowed. */
static double sweep(struct relax *relax, uint64_t *visits)
{
    const uint32_t rows = relax->grid->rows;
    double most = 0;

    memset(relax->is, 0, rows);
    for (int i = 0; i < 4; i++)
        for (uint32_t odd = 0; odd < 2; odd++) {
            const struct direction *direction = &relax->directions[i];
            const bool is_along = direction->dr == 0;

            for (uint32_t row = is_along ? 0 : odd; row + (is_along ? 0 : 1) < rows;
                 row += is_along ? 1 : 2) {
                const uint32_t other = row + (is_along ? 0 : 1);

                if (!(relax->was[row] | relax->was[other] | relax->is[row] | relax->is[other]))
                    continue;
                *visits += relax->grid->cols / (is_along ? 2 : 1);
                if (slide_row(relax, direction, row, is_along ? odd : 0, is_along ? 2 : 1, &most))
                    relax->is[row] = relax->is[other] = 1;
            }
        }
    uint8_t *was = relax->was;

    relax->was = relax->is;
    relax->is = was;
    return most;
}

/* ---- the surfaces that keep the slope -------------------------------------------------------- */

static bool heap_push(struct relax *relax, double height_m, uint32_t at)
{
    size_t i = relax->heap_count;

    if (!array_reserve((void **)&relax->heap, &relax->heap_room, i + 1, sizeof *relax->heap))
        return false;
    relax->heap_count++;
    for (; i > 0 && relax->heap[(i - 1) / 2].height_m > height_m; i = (i - 1) / 2)
        relax->heap[i] = relax->heap[(i - 1) / 2];
    relax->heap[i] = (struct queued){height_m, at};
    return true;
}

static struct queued heap_pop(struct relax *relax)
{
    const struct queued top = relax->heap[0], last = relax->heap[--relax->heap_count];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < relax->heap_count; i = child) {
        if (child + 1 < relax->heap_count &&
            relax->heap[child + 1].height_m < relax->heap[child].height_m)
            child++;
        if (relax->heap[child].height_m >= last.height_m)
            break;
        relax->heap[i] = relax->heap[child];
    }
    relax->heap[i] = last;
    return top;
}

/* The neighbour in direction k of 8, false beyond the grid. */
static bool neighbour(const struct relax *relax, uint32_t at, int k, uint32_t *out,
                      const struct direction **direction)
{
    const uint32_t cols = relax->grid->cols;
    const int64_t sign = k < 4 ? 1 : -1;

    *direction = &relax->directions[k % 4];

    const int64_t c = at % cols + sign * (*direction)->dc, r = at / cols + sign * (*direction)->dr;

    *out = (uint32_t)(r * cols + c);
    return c >= 0 && c < cols && r >= 0 && r < relax->grid->rows;
}

/* Is neighbour k of a sample higher than the slope from there allows? That is *most_m. */
static bool is_too_high(const struct relax *relax, const double *h, uint32_t at, int k,
                        uint32_t *other, double *most_m)
{
    const struct direction *direction;

    if (!neighbour(relax, at, k, other, &direction))
        return false;
    *most_m = h[at] + direction->target_m;
    return h[*other] > *most_m;
}

/* Lowers the neighbours of a sample to what it allows; false without memory. */
static bool lower_around(struct relax *relax, double *h, uint32_t at)
{
    uint32_t other;
    double most_m;

    for (int k = 0; k < 8; k++)
        if (is_too_high(relax, h, at, k, &other, &most_m)) {
            h[other] = most_m;
            if (!heap_push(relax, most_m, other))
                return false;
        }
    return true;
}

/* h becomes the highest surface below it that keeps the slope. */
static bool lower(struct relax *relax, double *h)
{
    const uint32_t count = relax->grid->cols * relax->grid->rows;
    uint32_t other;
    double most_m;

    for (uint32_t at = 0; at < count; at++)
        for (int k = 0; k < 8; k++)
            if (is_too_high(relax, h, at, k, &other, &most_m)) {
                if (!heap_push(relax, h[at], at))
                    return false;
                break;
            }
    while (relax->heap_count > 0) {
        const struct queued top = heap_pop(relax);

        if (top.height_m <= h[top.at] && !lower_around(relax, h, top.at))
            return false;
    }
    return true;
}

static bool make_surfaces(struct relax *relax)
{
    const size_t count = (size_t)relax->grid->cols * relax->grid->rows;

    for (size_t i = 0; i < count; i++) {
        relax->low[i] = relax->h[i];
        relax->high[i] = -relax->h[i];
    }
    if (!lower(relax, relax->low) || !lower(relax, relax->high))
        return false;
    for (size_t i = 0; i < count; i++)
        relax->high[i] = -relax->high[i];
    return true;
}

/* ---- the parts ------------------------------------------------------------------------------- */

static bool is_between(const struct relax *relax, uint32_t at)
{
    return relax->low[at] < relax->high[at];
}

/* Is a pair of this sample too steep, or has it slid? Then its part is mended. */
static bool needs_it(const struct relax *relax, const float *heights_m, uint32_t at)
{
    for (int k = 0; k < 8; k++) {
        const struct direction *direction;
        uint32_t other;

        if (neighbour(relax, at, k, &other, &direction) &&
            fabs(relax->h[other] - relax->h[at]) > direction->steep_m)
            return true;
    }
    return relax->h[at] != (double)heights_m[at];
}

/* Collects the part of a sample; *is_wanted: it must change. */
static uint32_t collect(struct relax *relax, const float *heights_m, uint32_t first,
                        bool *is_wanted)
{
    uint32_t count = 1;

    relax->part[0] = first;
    relax->is_seen[first] = 1;
    *is_wanted = false;
    for (uint32_t i = 0; i < count; i++) {
        *is_wanted |= needs_it(relax, heights_m, relax->part[i]);
        for (int k = 0; k < 8; k++) {
            const struct direction *direction;
            uint32_t other;

            if (!neighbour(relax, relax->part[i], k, &other, &direction) || relax->is_seen[other] ||
                !is_between(relax, other))
                continue;
            relax->is_seen[other] = 1;
            relax->part[count++] = other;
        }
    }
    return count;
}

/* The mean of L and U with the part's volume. */
static void mix(struct relax *relax, uint32_t count)
{
    double below = 0, all = 0, share;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = relax->part[i];

        below += relax->h[at] - relax->low[at];
        all += relax->high[at] - relax->low[at];
    }
    share = below / all;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = relax->part[i];

        relax->h[at] = relax->low[at] + share * (relax->high[at] - relax->low[at]);
    }
}

static void mend_parts(struct relax *relax, const float *heights_m)
{
    const uint32_t count = relax->grid->cols * relax->grid->rows;

    for (uint32_t at = 0; at < count; at++) {
        bool is_wanted;
        uint32_t in_part;

        if (relax->is_seen[at] || !is_between(relax, at))
            continue;
        in_part = collect(relax, heights_m, at, &is_wanted);
        if (is_wanted)
            mix(relax, in_part);
    }
}

/* ---- the frame ------------------------------------------------------------------------------- */

static void put_back(const struct relax *relax, float *heights_m)
{
    const size_t count = (size_t)relax->grid->cols * relax->grid->rows;
    double carry = 0;

    for (size_t i = 0; i < count; i++) {
        if (isnan(heights_m[i]) || relax->h[i] == (double)heights_m[i])
            continue;
        heights_m[i] = (float)(relax->h[i] + carry);
        carry += relax->h[i] - (double)heights_m[i];
    }
}

static void set_directions(struct relax *relax, const float *heights_m)
{
    static const int steps[4][2] = {{1, 0}, {0, 1}, {1, 1}, {-1, 1}};
    const struct relax_grid *grid = relax->grid;
    const size_t count = (size_t)grid->cols * grid->rows;
    float most = FLT_MIN;

    for (size_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(heights_m[i]));
    for (int i = 0; i < 4; i++) {
        const double x = steps[i][0] * grid->spacing_x_m, y = steps[i][1] * grid->spacing_y_m;
        const double steep_m = grid->slope * sqrt(x * x + y * y);

        relax->directions[i] = (struct direction){steps[i][0], steps[i][1], steep_m,
                                                  fmax(steep_m - 0x1p-22 * (double)most, 0)};
    }
}

static bool get_memory(struct relax *relax)
{
    const size_t count = (size_t)relax->grid->cols * relax->grid->rows;

    relax->h = malloc(count * sizeof *relax->h);
    relax->low = malloc(count * sizeof *relax->low);
    relax->high = malloc(count * sizeof *relax->high);
    relax->part = malloc(count * sizeof *relax->part);
    relax->is_seen = calloc(count, 1);
    relax->was = malloc(relax->grid->rows);
    relax->is = malloc(relax->grid->rows);
    return relax->h && relax->low && relax->high && relax->part && relax->is_seen && relax->was &&
           relax->is;
}

static bool run(struct relax *relax, float *heights_m)
{
    const size_t count = (size_t)relax->grid->cols * relax->grid->rows;
    uint64_t visits = 0;

    if (!get_memory(relax))
        return false;
    set_directions(relax, heights_m);
    for (size_t i = 0; i < count; i++)
        relax->h[i] = (double)heights_m[i];
    memset(relax->was, 1, relax->grid->rows);
    while (visits < VISITS_MAX && sweep(relax, &visits) > SLACK)
        ;
    if (!make_surfaces(relax))
        return false;
    mend_parts(relax, heights_m);
    put_back(relax, heights_m);
    return true;
}

enum err_code relax_heights(const struct relax_grid *grid, float *heights_m, struct err *err)
{
    struct relax relax = {.grid = grid};

    err->code = ERR_OK;
    if (!run(&relax, heights_m))
        err_set(err, ERR_NO_MEMORY, "no memory to relax %u×%u samples", grid->cols, grid->rows);
    free(relax.h);
    free(relax.low);
    free(relax.high);
    free(relax.part);
    free(relax.is_seen);
    free(relax.was);
    free(relax.is);
    free(relax.heap);
    return err->code;
}
