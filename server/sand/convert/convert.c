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
#define SPREAD_PART 0.5
#define OVERSAMPLE_MOST 16

enum { TEXEL_NONE, TEXEL_LOW, TEXEL_KEPT };

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

/* ---- hysteresis ------------------------------------------------------------------------------ */

struct texels {
    uint32_t cols, rows;
    double *delta_m; /* [rows][cols] */
    uint8_t *mark;
    uint32_t *stack;
};

static void texels_free(struct texels *t)
{
    free(t->delta_m);
    free(t->mark);
    free(t->stack);
}

static enum err_code texels_make(const struct convert_grid *grid, const float *before_m,
                                 const float *after_m, struct texels *out, struct err *err)
{
    const size_t count = (size_t)grid->depth.cols * grid->depth.rows;

    *out = (struct texels){
        .cols = grid->depth.cols,
        .rows = grid->depth.rows,
        .delta_m = malloc(count * sizeof *out->delta_m),
        .mark = calloc(count, sizeof *out->mark),
        .stack = malloc(count * sizeof *out->stack),
    };
    if (!out->delta_m || !out->mark || !out->stack) {
        texels_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu texels", count);
    }
    for (size_t i = 0; i < count; i++)
        out->delta_m[i] = (double)after_m[i] - (double)before_m[i];
    return ERR_OK;
}

/* Keeps all texels connected to those on the stack. */
static void spread(struct texels *t, size_t depth)
{
    while (depth > 0) {
        const uint32_t at = t->stack[--depth], column = at % t->cols, row = at / t->cols;

        for (uint32_t r = row > 0 ? row - 1 : 0; r <= row + 1 && r < t->rows; r++) {
            for (uint32_t c = column > 0 ? column - 1 : 0; c <= column + 1 && c < t->cols; c++) {
                const uint32_t next = r * t->cols + c;

                if (t->mark[next] != TEXEL_LOW)
                    continue;
                t->mark[next] = TEXEL_KEPT;
                t->stack[depth++] = next;
            }
        }
    }
}

static void keep_what_moved(struct texels *t, double diameter_m)
{
    const size_t count = (size_t)t->cols * t->rows;
    size_t depth = 0;

    for (size_t i = 0; i < count; i++) {
        const double size_m = fabs(t->delta_m[i]);

        if (size_m > KEEP_HIGH * diameter_m) {
            t->mark[i] = TEXEL_KEPT;
            t->stack[depth++] = (uint32_t)i;
        } else if (size_m > KEEP_LOW * diameter_m) {
            t->mark[i] = TEXEL_LOW;
        }
    }
    spread(t, depth);
    for (size_t i = 0; i < count; i++)
        if (t->mark[i] != TEXEL_KEPT)
            t->delta_m[i] = 0;
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
static double cell_mean(const struct convert_grid *grid, const double *delta_m, uint32_t column,
                        uint32_t row)
{
    const uint32_t kx = grid->per_sample[0], ky = grid->per_sample[1];
    double sum = 0;

    for (uint32_t r = (row - 1) * ky; r < row * ky; r++)
        for (uint32_t c = (column - 1) * kx; c < column * kx; c++)
            sum += delta_m[(size_t)r * grid->depth.cols + c];
    return sum / ((double)kx * ky);
}

/* The heights that each sample of the patch grows by; -0 where it does not. */
static float *sample_changes(const struct convert_place *place, const struct convert_grid *grid,
                             double diameter_m, const struct texels *t, struct err *err)
{
    const uint32_t cols = place->samples.cols, rows = place->samples.rows;
    float *change_m = malloc((size_t)cols * rows * sizeof *change_m);

    if (!change_m) {
        err_set(err, ERR_NO_MEMORY, "no memory for %u x %u samples", cols, rows);
        return NULL;
    }
    for (size_t i = 0; i < (size_t)cols * rows; i++)
        change_m[i] = -0.0f;
    for (uint32_t r = 1; r + 1 < rows; r++) {
        for (uint32_t c = 1; c + 1 < cols; c++) {
            const double weight =
                edge_weight(place, 0, c, diameter_m) * edge_weight(place, 1, r, diameter_m);
            const double grows_m = weight * cell_mean(grid, t->delta_m, c, r);

            if (grows_m != 0)
                change_m[(size_t)r * cols + c] = (float)grows_m;
        }
    }
    return change_m;
}

/*
 * Ground that was hit is denser than before, but the next conversion fills it at the initial
 * density: the compacted volume would be lost for ever, a little with each impact in the same
 * place. So it is given back evenly to the moved ground, by at most SPREAD_PART of the mean change:
 * more would fill ground that a heavy body only presses down. Twelve impacts of 4 t on 7 m by 7 m
 * of coarse granules lost 1.8 % of the volume with a quarter. Returns the volume dug less heaped
 * before that.
 */
static double spread_compacted(const struct convert_place *place, double diameter_m,
                               float *change_m)
{
    const uint32_t cols = place->samples.cols, rows = place->samples.rows;
    double sum = 0, size = 0, weights = 0, share;

    for (uint32_t i = 0; i < cols * rows; i++) {
        if (change_m[i] == 0)
            continue;
        sum += (double)change_m[i];
        size += fabs((double)change_m[i]);
        weights += edge_weight(place, 0, i % cols, diameter_m) *
                   edge_weight(place, 1, i / cols, diameter_m);
    }
    if (weights == 0)
        return 0;
    share = fmin(fmax(-sum, -SPREAD_PART * size), SPREAD_PART * size) / weights;
    for (uint32_t i = 0; i < cols * rows; i++)
        if (change_m[i] != 0)
            change_m[i] += (float)(share * edge_weight(place, 0, i % cols, diameter_m) *
                                   edge_weight(place, 1, i / cols, diameter_m));
    return -sum * place->spacing_m[0] * place->spacing_m[1];
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
    struct texels texels = {.cols = 0};
    float *heights_m;

    if (check_depths(grid, before_m, after_m, err))
        return err->code;
    if (mode == CONVERT_OVERWRITE) {
        heights_m = overwrite_changes(field, place, grid, after_m, err);
    } else {
        if (texels_make(grid, before_m, after_m, &texels, err))
            return err->code;
        keep_what_moved(&texels, diameter_m);
        heights_m = sample_changes(place, grid, diameter_m, &texels, err);
        texels_free(&texels);
        if (heights_m)
            change.ledger.compacted_m3 = spread_compacted(place, diameter_m, heights_m);
    }
    if (!heights_m)
        return err->code;
    trim(&place->samples, heights_m, &change);
    ledger_make(field, place, grid, before_m, after_m, &change);
    *out = change;
    return ERR_OK;
}
