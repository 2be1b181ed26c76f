/*
 * What goes up: the difference of two depth maps as heights to be added (text S, 5.4, and design,
 * section 4, which replaces S's overwriting).
 *
 * Problem: a heap of granules is bumpy, and its depth map never equals the ground it was cut from;
 * overwriting the ground with it changes untouched ground, a little more with each conversion (S's
 * method gains 8 % of volume in 15). Approach: only what moved counts. Granules that sleep do not
 * move by a bit, so the difference of the maps is exactly 0 there; hysteresis leaves out isolated
 * trembling: a texel beyond the high threshold is kept, with all connected texels beyond the low
 * one (J. Canny, A Computational Approach to Edge Detection, 1986). Each sample inside the rim
 * grows by the mean of the texels of its own cell. A vertex of the triangles lifts a volume of
 * height times cell, so the volume of the texels is the volume of the samples. Invariants: on the
 * patch's edge nothing changes. What is not kept is -0, and h + -0 is h, bit for bit, for every h
 * (+0 would turn -0 over). Tried and dropped: bilinear resampling (loses volume where the spacing
 * is coarse), thresholds on the samples instead of the texels (a granule is lost in a cell of 2 m).
 */
#include "sand/convert/convert.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_HIGH 0.11 /* of a diameter */
#define KEEP_LOW 0.022
#define GRANULE_D3 0.19 /* volume of a granule, in D³ */
#define SMOOTH                                                                                     \
    0.35 /* of a diameter: the written change, measured: keeps 90 % of a crater's depth */
#define SPREAD_PART 0.5
#define SPREAD_SIGMA 3.0  /* of a diameter: how far from what moved its compaction is given back */
#define SLUMP_SLOPE 0.577 /* tan 30 degrees */
#define SLUMP_SIGMA 0.5   /* of a diameter */
#define SLUMP_HIGH 0.5
#define SLUMP_FULL 0.4
#define SLUMP_LOW 0.15
#define OVERSAMPLE_MOST 16

enum { TEXEL_NONE, TEXEL_LOW, TEXEL_HIGH, TEXEL_KEPT };

/* ---- the grid -------------------------------------------------------------------------------- */

static double texels_a_sample(double spacing_m, double diameter_m)
{
    return fmax(1, ceil(spacing_m / (diameter_m / 2) - 1e-9));
}

enum err_code convert_grid_make(const struct convert_place *place, double diameter_m,
                                uint32_t points_max, struct convert_grid *out, struct err *err)
{
    const uint32_t inner[2] = {place->samples.cols - 2, place->samples.rows - 2};
    struct sand_depth *depth = &out->depth;
    const double k[2] = {texels_a_sample(place->spacing_m[0], diameter_m),
                         texels_a_sample(place->spacing_m[1], diameter_m)};
    const double texels = inner[0] * k[0] * inner[1] * k[1];
    double side_m;

    if (texels > points_max)
        return err_limit(err, ERR_TOO_LARGE, points_max, texels,
                         "the patch's surface has %.0f texels of half a granule, the most is %u",
                         texels, points_max);
    *out = (struct convert_grid){.per_sample = {(uint32_t)k[0], (uint32_t)k[1]}};
    depth->cols = inner[0] * out->per_sample[0];
    depth->rows = inner[1] * out->per_sample[1];
    depth->dx = (float)(place->spacing_m[0] / out->per_sample[0]);
    depth->dy = (float)(place->spacing_m[1] / out->per_sample[1]);
    depth->x0 = (float)((place->spacing_m[0] + place->spacing_m[0] / out->per_sample[0]) / 2);
    depth->y0 = (float)((place->spacing_m[1] + place->spacing_m[1] / out->per_sample[1]) / 2);
    side_m = fmax(depth->dx, depth->dy);
    depth->oversample = (uint32_t)fmax(4, ceil(side_m / (diameter_m / 8)));
    if (depth->oversample > OVERSAMPLE_MOST)
        depth->oversample = OVERSAMPLE_MOST;
    while (texels * depth->oversample * depth->oversample > points_max)
        depth->oversample--;
    return ERR_OK;
}

/* ---- texels ---------------------------------------------------------------------------------- */

struct texels {
    uint32_t cols, rows;
    double dx, dy;
    double *delta_m; /* [rows][cols] */
    double *weight;  /* the same: where compaction is given back */
    double *scratch;
    uint8_t *mark;
    uint32_t *stack;
};

static void texels_free(struct texels *t)
{
    free(t->delta_m);
    free(t->weight);
    free(t->scratch);
    free(t->mark);
    free(t->stack);
}

/* delta_m is left to the caller. */
static enum err_code texels_make(const struct convert_grid *grid, struct texels *out,
                                 struct err *err)
{
    const size_t count = (size_t)grid->depth.cols * grid->depth.rows;

    *out = (struct texels){
        .cols = grid->depth.cols,
        .rows = grid->depth.rows,
        .dx = grid->depth.dx,
        .dy = grid->depth.dy,
        .delta_m = malloc(count * sizeof *out->delta_m),
        .weight = malloc(count * sizeof *out->weight),
        .scratch = malloc(count * sizeof *out->scratch),
        .mark = calloc(count, sizeof *out->mark),
        .stack = malloc(count * sizeof *out->stack),
    };
    if (!out->delta_m || !out->weight || !out->scratch || !out->mark || !out->stack) {
        texels_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu texels", count);
    }
    return ERR_OK;
}

/* One axis of blur: `count` lines of `length` values, `step` apart. */
static void blur_lines(const double *in, double *out, uint32_t length, size_t step, uint32_t count,
                       size_t line_step, double sigma)
{
    const int64_t reach = (int64_t)fmin(ceil(3 * sigma), length - 1);

    for (int64_t k = 0; k <= reach; k++) {
        const double weight = exp(-0.5 * (double)(k * k) / fmax(sigma * sigma, 1e-12));

        for (uint32_t line = 0; line < count; line++) {
            const double *from = in + line * line_step;
            double *to = out + line * line_step;

            for (int64_t i = 0; i < length; i++) {
                double sum = i + k < length ? from[(size_t)(i + k) * step] : 0;

                if (k > 0)
                    sum += i >= k ? from[(size_t)(i - k) * step] : 0;
                to[(size_t)i * step] = (k > 0 ? to[(size_t)i * step] : 0) + weight * sum;
            }
        }
    }
}

/* Values times a Gaussian that is 1 in its middle, not normalised; nothing is beyond the edges. */
static void blur(const struct texels *t, double *values, double sigma_m)
{
    blur_lines(values, t->scratch, t->cols, 1, t->rows, t->cols, sigma_m / t->dx);
    blur_lines(t->scratch, values, t->rows, t->cols, t->cols, 1, sigma_m / t->dy);
}

/* Keeps the texels connected to one that is; returns their number, they are on the stack. */
static size_t keep_region(struct texels *t, uint32_t seed)
{
    size_t count = 0, next = 0;

    t->stack[count++] = seed;
    t->mark[seed] = TEXEL_KEPT;
    while (next < count) {
        const uint32_t at = t->stack[next++], column = at % t->cols, row = at / t->cols;

        for (uint32_t r = row > 0 ? row - 1 : 0; r <= row + 1 && r < t->rows; r++) {
            for (uint32_t c = column > 0 ? column - 1 : 0; c <= column + 1 && c < t->cols; c++) {
                const uint32_t other = r * t->cols + c;

                if (t->mark[other] != TEXEL_LOW && t->mark[other] != TEXEL_HIGH)
                    continue;
                t->mark[other] = TEXEL_KEPT;
                t->stack[count++] = other;
            }
        }
    }
    return count;
}

/* Hysteresis: regions of what is beyond `low`, with something beyond `high`, of `least` volume. */
static void keep_what_moved(struct texels *t, const double *value_m, double high_m, double low_m,
                            double least_m3)
{
    const size_t count = (size_t)t->cols * t->rows;

    for (size_t i = 0; i < count; i++) {
        const double size_m = fabs(value_m[i]);

        t->mark[i] = size_m > high_m ? TEXEL_HIGH : size_m > low_m ? TEXEL_LOW : TEXEL_NONE;
    }
    for (size_t i = 0; i < count; i++) {
        double volume_m3 = 0;
        size_t texels;

        if (t->mark[i] != TEXEL_HIGH)
            continue;
        texels = keep_region(t, (uint32_t)i);
        for (size_t k = 0; k < texels; k++)
            volume_m3 += fabs(value_m[t->stack[k]]) * t->dx * t->dy;
        for (size_t k = 0; k < texels && volume_m3 < least_m3; k++)
            t->mark[t->stack[k]] = TEXEL_NONE;
    }
}

/*
 * Smooths the kept texels among themselves: each gives its volume to those about it, by weights
 * that add up to 1, so the volume stays to the bit of rounding.
 */
static void smooth(struct texels *t, double sigma_m)
{
    const size_t count = (size_t)t->cols * t->rows;

    for (size_t i = 0; i < count; i++)
        t->weight[i] = t->mark[i] == TEXEL_KEPT;
    blur(t, t->weight, sigma_m);
    for (size_t i = 0; i < count; i++)
        if (t->mark[i] == TEXEL_KEPT)
            t->delta_m[i] /= t->weight[i];
    blur(t, t->delta_m, sigma_m);
    for (size_t i = 0; i < count; i++)
        if (t->mark[i] != TEXEL_KEPT)
            t->delta_m[i] = 0;
}

/* What moved, in delta_m and mark. */
static void difference(struct texels *t, double diameter_m, const float *before_m,
                       const float *after_m)
{
    const size_t count = (size_t)t->cols * t->rows;

    for (size_t i = 0; i < count; i++)
        t->delta_m[i] = (double)after_m[i] - (double)before_m[i];
    keep_what_moved(t, t->delta_m, KEEP_HIGH * diameter_m, KEEP_LOW * diameter_m,
                    GRANULE_D3 * pow(diameter_m, 3));
    for (size_t i = 0; i < count; i++)
        if (t->mark[i] != TEXEL_KEPT)
            t->delta_m[i] = 0;
}

/* What moved as it is written, and the weights of what is given back. */
static void soften(struct texels *t, const struct convert_place *place, double diameter_m)
{
    const size_t count = (size_t)t->cols * t->rows;

    if (fmin(place->spacing_m[0], place->spacing_m[1]) < diameter_m)
        smooth(t, SMOOTH * diameter_m);
    for (size_t i = 0; i < count; i++)
        t->weight[i] = fabs(t->delta_m[i]);
    blur(t, t->weight, SPREAD_SIGMA * diameter_m);
    for (size_t i = 0; i < count; i++)
        if (t->mark[i] != TEXEL_KEPT)
            t->weight[i] = 0;
}

/* `before` of the next difference: what was not kept stays to be written. */
static float *next_before(const struct texels *t, const float *before_m, const float *after_m,
                          struct err *err)
{
    const size_t count = (size_t)t->cols * t->rows;
    float *next_m = malloc(count * sizeof *next_m);

    if (!next_m)
        err_set(err, ERR_NO_MEMORY, "no memory for %zu texels", count);
    for (size_t i = 0; next_m && i < count; i++)
        next_m[i] = t->mark[i] == TEXEL_KEPT ? after_m[i] : before_m[i];
    return next_m;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* 0 on the edge of the patch, 1 from some way inwards. */
static double rim_weight(double inwards_m, double side_m, double spacing_m, double diameter_m)
{
    const double rim_m = fmin(fmax(spacing_m, 2 * diameter_m), side_m / 4);
    const double t = inwards_m / rim_m;

    return t >= 1 ? 1 : t * t * (3 - 2 * t);
}

/* Of sample (column, row) of the rect along one axis; the far edge counts like the near one. */
static double edge_weight(const struct convert_place *place, int axis, uint32_t index,
                          double diameter_m)
{
    const uint32_t last = (axis == 0 ? place->samples.cols : place->samples.rows) - 1;
    const uint32_t inwards = index < last - index ? index : last - index;

    return rim_weight(inwards * place->spacing_m[axis], place->size_m[axis], place->spacing_m[axis],
                      diameter_m);
}

/* Mean of the texels of the cell of an inner sample. */
static double cell_mean(const struct convert_grid *grid, const double *values, uint32_t column,
                        uint32_t row)
{
    const uint32_t kx = grid->per_sample[0], ky = grid->per_sample[1];
    double sum = 0;

    for (uint32_t r = (row - 1) * ky; r < row * ky; r++)
        for (uint32_t c = (column - 1) * kx; c < column * kx; c++)
            sum += values[(size_t)r * grid->depth.cols + c];
    return sum / ((double)kx * ky);
}

/*
 * Texels as samples of the patch: the mean of each cell, less towards the rim; `none` on the edge
 * and where it is 0.
 */
static float *samples_of(const struct convert_place *place, const struct convert_grid *grid,
                         double diameter_m, const double *texels, float none, struct err *err)
{
    const uint32_t cols = place->samples.cols, rows = place->samples.rows;
    float *samples = malloc((size_t)cols * rows * sizeof *samples);

    if (!samples) {
        err_set(err, ERR_NO_MEMORY, "no memory for %u x %u samples", cols, rows);
        return NULL;
    }
    for (size_t i = 0; i < (size_t)cols * rows; i++)
        samples[i] = none;
    for (uint32_t r = 1; r + 1 < rows; r++) {
        for (uint32_t c = 1; c + 1 < cols; c++) {
            const double value = edge_weight(place, 0, c, diameter_m) *
                                 edge_weight(place, 1, r, diameter_m) *
                                 cell_mean(grid, texels, c, r);

            if (value != 0)
                samples[(size_t)r * cols + c] = (float)value;
        }
    }
    return samples;
}

/*
 * Ground that was hit is denser than before, but the next conversion fills it at the initial
 * density: the compacted volume would be lost for ever, a little with each impact in the same
 * place. So it is given back to the moved ground, by at most SPREAD_PART of the mean change: more
 * would fill ground that a heavy body only presses down. Twelve impacts of 4 t on 7 m by 7 m of
 * coarse granules lost 1.8 % of the volume with a quarter. Most goes where most has moved, within
 * some diameters, so that there is no step where the moved ground ends; an even share was seen as a
 * table. moved_m: before it was smoothed. Returns the volume dug less heaped before that.
 */
static double spread_compacted(const struct convert_place *place, const float *moved_m,
                               const float *weights, float *change_m)
{
    const size_t count = (size_t)place->samples.cols * place->samples.rows;
    double sum = 0, size = 0, all = 0, share;

    for (size_t i = 0; i < count; i++) {
        sum += (double)change_m[i];
        size += fabs((double)moved_m[i]);
        all += (double)weights[i];
    }
    if (all == 0)
        return 0;
    share = fmin(fmax(-sum, -SPREAD_PART * size), SPREAD_PART * size) / all;
    for (size_t i = 0; i < count; i++)
        if (weights[i] > 0)
            change_m[i] += (float)(share * (double)weights[i]);
    return -sum * place->spacing_m[0] * place->spacing_m[1];
}

/* The heights that each sample of the patch grows by; -0 where it does not. */
static float *difference_changes(const struct convert_place *place, const struct convert_grid *grid,
                                 double diameter_m, const float *before_m, const float *after_m,
                                 struct convert_change *change, struct err *err)
{
    struct texels texels;
    float *moved_m, *change_m = NULL, *weights = NULL;

    if (texels_make(grid, &texels, err))
        return NULL;
    difference(&texels, diameter_m, before_m, after_m);
    change->next_m = next_before(&texels, before_m, after_m, err);
    moved_m = samples_of(place, grid, diameter_m, texels.delta_m, 0, err);
    soften(&texels, place, diameter_m);
    if (change->next_m && moved_m)
        change_m = samples_of(place, grid, diameter_m, texels.delta_m, -0.0f, err);
    if (change_m)
        weights = samples_of(place, grid, diameter_m, texels.weight, 0, err);
    if (weights)
        change->ledger.compacted_m3 = spread_compacted(place, moved_m, weights, change_m);
    texels_free(&texels);
    free(moved_m);
    if (!weights) {
        free(change_m);
        return NULL;
    }
    free(weights);
    return change_m;
}

/* Cuts the rect to what changes; an empty one when nothing does. */
static void trim(const struct sample_rect *whole, float *change_m, struct convert_change *out)
{
    uint32_t c0 = whole->cols, c1 = 0, r0 = whole->rows, r1 = 0;

    for (uint32_t r = 0; r < whole->rows; r++) {
        for (uint32_t c = 0; c < whole->cols; c++) {
            if (change_m[(size_t)r * whole->cols + c] == 0)
                continue;
            c0 = c < c0 ? c : c0;
            c1 = c > c1 ? c : c1;
            r0 = r < r0 ? r : r0;
            r1 = r > r1 ? r : r1;
        }
    }
    if (c0 > c1) {
        free(change_m);
        return;
    }
    out->rect = (struct sample_rect){whole->column + c0, whole->row + r0, c1 - c0 + 1, r1 - r0 + 1};
    for (uint32_t r = r0; r <= r1; r++)
        memmove(change_m + (size_t)(r - r0) * out->rect.cols,
                change_m + (size_t)r * whole->cols + c0, out->rect.cols * sizeof *change_m);
    out->heights_m = change_m;
}

/* ---- S's way --------------------------------------------------------------------------------- */

static double overwritten(const struct heightfield *field, const struct convert_place *place,
                          const struct convert_grid *grid, const float *after_m, int64_t column,
                          int64_t row)
{
    const struct sample_rect *s = &place->samples;
    const struct heightfield_spec *spec = heightfield_spec(field);
    const int64_t c = column - s->column, r = row - s->row;
    const uint32_t kx = grid->per_sample[0], ky = grid->per_sample[1];

    if (c > 0 && r > 0 && c + 1 < s->cols && r + 1 < s->rows)
        return place->z_m + after_m[((size_t)(r - 1) * ky + ky / 2) * grid->depth.cols +
                                    (size_t)(c - 1) * kx + kx / 2];
    if (column < 0 || row < 0 || column >= spec->cols || row >= spec->rows)
        return NAN;
    return heightfield_sample(field, (uint32_t)column, (uint32_t)row);
}

/* The 3×3 kernel 1 2 1; absent neighbours do not count. */
static double gaussian(const struct heightfield *field, const struct convert_place *place,
                       const struct convert_grid *grid, const float *after_m, int64_t column,
                       int64_t row)
{
    double sum = 0, weights = 0;

    for (int dr = -1; dr <= 1; dr++) {
        for (int dc = -1; dc <= 1; dc++) {
            const double weight = (dr == 0 ? 2 : 1) * (dc == 0 ? 2 : 1);
            const double height_m = overwritten(field, place, grid, after_m, column + dc, row + dr);

            if (isnan(height_m))
                continue;
            sum += weight * height_m;
            weights += weight;
        }
    }
    return sum / weights;
}

static float *overwrite_changes(const struct heightfield *field, const struct convert_place *place,
                                const struct convert_grid *grid, const float *after_m,
                                struct err *err)
{
    const struct sample_rect *s = &place->samples;
    float *change_m = malloc((size_t)s->cols * s->rows * sizeof *change_m);

    if (!change_m) {
        err_set(err, ERR_NO_MEMORY, "no memory for %u x %u samples", s->cols, s->rows);
        return NULL;
    }
    for (uint32_t r = 0; r < s->rows; r++) {
        for (uint32_t c = 0; c < s->cols; c++) {
            const float old_m = heightfield_sample(field, s->column + c, s->row + r);
            const double new_m =
                gaussian(field, place, grid, after_m, (int64_t)s->column + c, (int64_t)s->row + r);

            change_m[(size_t)r * s->cols + c] =
                isnan(old_m) || new_m == old_m ? -0.0f : (float)(new_m - old_m);
        }
    }
    return change_m;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Volume over the bed, whose local height is the ground's less depth. */
static double volume_m3(const struct heightfield *field, const struct convert_place *place,
                        const struct convert_grid *grid, const float *depth_m)
{
    const struct sand_depth *d = &grid->depth;
    double sum = 0;

    for (uint32_t r = 0; r < d->rows; r++) {
        for (uint32_t c = 0; c < d->cols; c++) {
            struct ground_point ground;
            const struct vec2 at = {place->low.x + d->x0 + (double)c * d->dx,
                                    place->low.y + d->y0 + (double)r * d->dy};

            heightfield_height(field, at, INTERPOLATION_TRIANGLE, &ground);
            if (ground.status == GROUND_OK)
                sum += depth_m[(size_t)r * d->cols + c] + place->z_m -
                       (ground.height_m - place->depth_m);
        }
    }
    return sum * d->dx * d->dy;
}

static void ledger_make(const struct heightfield *field, const struct convert_place *place,
                        const struct convert_grid *grid, const float *before_m,
                        const float *after_m, struct convert_change *change)
{
    const double cell_m2 = place->spacing_m[0] * place->spacing_m[1];
    double dug = 0, heaped = 0;

    for (size_t i = 0; i < (size_t)change->rect.cols * change->rect.rows; i++) {
        dug -= fmin(change->heights_m[i], 0);
        heaped += fmax(change->heights_m[i], 0);
    }
    change->ledger.volume_before_m3 = volume_m3(field, place, grid, before_m);
    change->ledger.volume_after_m3 = volume_m3(field, place, grid, after_m);
    change->ledger.moved_m3 = (dug + heaped) / 2 * cell_m2;
    change->ledger.lost_m3 = (dug - heaped) * cell_m2;
}

static enum err_code check_depths(const struct convert_grid *grid, const float *before_m,
                                  const float *after_m, struct err *err)
{
    for (size_t i = 0; i < (size_t)grid->depth.cols * grid->depth.rows; i++)
        if (!isfinite(before_m[i]) || !isfinite(after_m[i]))
            return err_set(err, ERR_INTERNAL, "depth %zu of the patch is not finite", i);
    return ERR_OK;
}

enum err_code convert_up(const struct heightfield *field, const struct convert_place *place,
                         const struct convert_grid *grid, double diameter_m, const float *before_m,
                         const float *after_m, enum convert_mode mode, struct convert_change *out,
                         struct err *err)
{
    struct convert_change change = {.heights_m = NULL};
    float *heights_m;

    err->code = ERR_OK;
    if (check_depths(grid, before_m, after_m, err))
        return err->code;
    if (mode == CONVERT_OVERWRITE)
        heights_m = overwrite_changes(field, place, grid, after_m, err);
    else
        heights_m = difference_changes(place, grid, diameter_m, before_m, after_m, &change, err);
    if (!heights_m) {
        convert_change_free(&change);
        return err->code;
    }
    trim(&place->samples, heights_m, &change);
    ledger_make(field, place, grid, before_m, after_m, &change);
    *out = change;
    return ERR_OK;
}

void convert_change_free(struct convert_change *change)
{
    free(change->heights_m);
    free(change->next_m);
    *change = (struct convert_change){.heights_m = NULL};
}

/* ---- ground that slumps ---------------------------------------------------------------------- */

/* A running mean, weighted by a Gaussian; uses weight. */
static void mean_of(struct texels *t, double *values, double sigma_m)
{
    const size_t count = (size_t)t->cols * t->rows;

    for (size_t i = 0; i < count; i++)
        t->weight[i] = 1;
    blur(t, t->weight, sigma_m);
    blur(t, values, sigma_m);
    for (size_t i = 0; i < count; i++)
        values[i] /= t->weight[i];
}

/* Is the mean of the ground over some granules steeper than they can lie? Uses weight, delta_m. */
static bool is_steep(struct texels *t, const struct convert_grid *grid, double sigma_m,
                     const float *ground_m)
{
    const size_t count = (size_t)t->cols * t->rows;

    for (size_t i = 0; i < count; i++)
        t->delta_m[i] = ground_m[i];
    mean_of(t, t->delta_m, sigma_m);
    for (uint32_t r = 0; r + 1 < t->rows; r++) {
        for (uint32_t c = 0; c + 1 < t->cols; c++) {
            const double *h = t->delta_m + (size_t)r * t->cols + c;

            if (hypot((h[1] - h[0]) / grid->depth.dx, (h[t->cols] - h[0]) / grid->depth.dy) >
                SLUMP_SLOPE)
                return true;
        }
    }
    return false;
}

static double smooth_step(double t)
{
    t = fmin(fmax(t, 0), 1);
    return t * t * (3 - 2 * t);
}

/* Local heights of the ground at the texels; 0 in holes. */
static float *ground_of(const struct heightfield *field, const struct convert_place *place,
                        const struct convert_grid *grid, struct err *err)
{
    const struct sand_depth *d = &grid->depth;
    const size_t count = (size_t)d->cols * d->rows;
    float *ground_m = malloc(count * sizeof *ground_m);

    if (!ground_m)
        err_set(err, ERR_NO_MEMORY, "no memory for %zu texels", count);
    for (size_t i = 0; ground_m && i < count; i++) {
        const struct vec2 at = {place->low.x + d->x0 + (double)(i % d->cols) * d->dx,
                                place->low.y + d->y0 + (double)(i / d->cols) * d->dy};
        const struct ground_height ground =
            heightfield_interpolate(field, at, INTERPOLATION_TRIANGLE);

        ground_m[i] = ground.status == GROUND_OK ? (float)(ground.height_m - place->z_m) : 0;
    }
    return ground_m;
}

enum err_code convert_slump(const struct heightfield *field, const struct convert_place *place,
                            const struct convert_grid *grid, double diameter_m, float *before_m,
                            struct err *err)
{
    const size_t count = (size_t)grid->depth.cols * grid->depth.rows;
    const double low_m = SLUMP_LOW * diameter_m, full_m = SLUMP_FULL * diameter_m;
    struct texels t;
    float *ground_m;

    err->code = ERR_OK;
    if (texels_make(grid, &t, err))
        return err->code;
    ground_m = ground_of(field, place, grid, err);
    if (ground_m && is_steep(&t, grid, SLUMP_SIGMA * diameter_m, ground_m)) {
        for (size_t i = 0; i < count; i++)
            t.delta_m[i] = (double)before_m[i] - (double)ground_m[i];
        mean_of(&t, t.delta_m, SLUMP_SIGMA * diameter_m);
        keep_what_moved(&t, t.delta_m, SLUMP_HIGH * diameter_m, low_m, 0);
        for (size_t i = 0; i < count; i++) {
            const double part = smooth_step((fabs(t.delta_m[i]) - low_m) / (full_m - low_m));

            if (t.mark[i] == TEXEL_KEPT)
                before_m[i] += (float)part * (ground_m[i] - before_m[i]);
        }
    }
    free(ground_m);
    texels_free(&t);
    return err->code;
}
