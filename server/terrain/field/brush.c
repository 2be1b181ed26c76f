/*
 * Brushes.
 *
 * Problem: dig, raise, flatten and smooth round places so that nothing at or beyond the radius
 * changes and a crater neither makes nor loses ground. Approach: one weight w(t), the smooth step
 * of t = distance / radius; each shape defines the new value of a sample of weight w, in float64,
 * rounded once. A crater's profile is w · (1 - βt²): with the sums over the samples that there are
 * (not the integral over a disc), β = Σw / Σwt² makes the changes add up to 0 at the field's edge
 * and around holes, too. Where no sample but the centre's is inside, nothing can be thrown
 * anywhere: nothing changes. relax has no weight (relax.c); a crater with a slope is relaxed after.
 *
 * Distances: dx, dy and the radius are scaled by the same power of two, which is exact, so that no
 * square overflows or vanishes, and a sample exactly at the radius is exactly outside.
 *
 * Invariants: holes and samples outside keep their bits; the rectangle of a brush holds every
 * sample that it changes.
 */
#include "terrain/field/brush.h"

#include "base/check.h"
#include "terrain/field/relax.h"
#include "terrain/trig.h"

#include <stdlib.h>

/* ---- the rectangle
 * ------------------------------------------------------------------------------- */

static enum err_code brush_check(const struct brush *brush, struct err *err)
{
    bool may_be_infinite = brush->shape >= BRUSH_FLATTEN;

    if ((unsigned)brush->shape > BRUSH_RELAX)
        return err_set(err, ERR_BAD_INPUT, "brush shape is %d, must be 0..4", (int)brush->shape);
    if (!isfinite(brush->center.x) || !isfinite(brush->center.y))
        return err_set(err, ERR_BAD_INPUT, "brush center is %g, %g, must be finite",
                       brush->center.x, brush->center.y);
    if (!(brush->radius_m > 0) || !isfinite(brush->radius_m))
        return err_limit(err, ERR_BAD_INPUT, 0, brush->radius_m,
                         "brush radius is %g, must be positive and finite", brush->radius_m);
    if (isnan(brush->amount_m) || (isinf(brush->amount_m) && !may_be_infinite))
        return err_set(err, ERR_BAD_INPUT, "brush amount is %g, must be finite", brush->amount_m);
    if (brush->amount_m < 0 && brush->shape != BRUSH_RAISE)
        return err_limit(err, ERR_BAD_INPUT, 0, brush->amount_m,
                         "brush amount is %g, must be at least 0", brush->amount_m);
    if ((brush->shape == BRUSH_RELAX || (brush->shape == BRUSH_CRATER && brush->slope_deg != 0)) &&
        !(brush->slope_deg >= BRUSH_SLOPE_MIN_DEG && brush->slope_deg <= BRUSH_SLOPE_MAX_DEG))
        return err_set(err, ERR_BAD_INPUT, "brush slope is %g degrees, must be %g..%g",
                       brush->slope_deg, BRUSH_SLOPE_MIN_DEG, BRUSH_SLOPE_MAX_DEG);
    return ERR_OK;
}

/* Samples along one axis, origin + i · spacing for i in 0..count-1, and the brush's part of it. */
struct axis {
    double origin, spacing, center, radius;
    uint32_t count;
};

static bool is_near(const struct axis *axis, uint32_t i)
{
    return fabs(axis->origin + i * axis->spacing - axis->center) < axis->radius;
}

static uint32_t clamp_index(double i, uint32_t count)
{
    return (uint32_t)fmin(fmax(i, 0), (double)(count - 1));
}

/* The samples nearer than the radius: false when there is none. */
static bool axis_range(const struct axis *axis, uint32_t *first, uint32_t *count)
{
    double u = (axis->center - axis->origin) / axis->spacing, half = axis->radius / axis->spacing;
    uint32_t low = clamp_index(floor(u - half), axis->count);
    uint32_t high = clamp_index(ceil(u + half), axis->count);

    /* the division rounds, is_near decides */
    while (low > 0 && is_near(axis, low - 1))
        low--;
    while (high + 1 < axis->count && is_near(axis, high + 1))
        high++;
    while (low < high && !is_near(axis, low))
        low++;
    while (low < high && !is_near(axis, high))
        high--;
    *first = low;
    *count = high - low + 1;
    return is_near(axis, low);
}

/* Lengths scaled by a power of two that makes the radius 1/2 .. 1. */
struct disc {
    const struct heightfield_spec *spec;
    struct vec2 center;
    double scale, radius;
};

static struct disc disc_of(const struct heightfield_spec *spec, const struct brush *brush)
{
    int exponent;
    double scale;

    frexp(brush->radius_m, &exponent);
    scale = ldexp(1, exponent > -1000 ? -exponent : 1000); /* finite for the least radii, too */
    return (struct disc){spec, brush->center, scale, brush->radius_m * scale};
}

/* Distance / radius of a sample, below 1 when it is inside; for those of the brush's rectangle. */
static double disc_t(const struct disc *disc, uint32_t column, uint32_t row)
{
    const struct heightfield_spec *s = disc->spec;
    double dx = (s->origin_x_m + column * s->spacing_x_m - disc->center.x) * disc->scale;
    double dy = (s->origin_y_m + row * s->spacing_y_m - disc->center.y) * disc->scale;
    double distance2 = dx * dx + dy * dy;

    return distance2 < disc->radius * disc->radius ? fmin(sqrt(distance2) / disc->radius, 1) : 1;
}

/* The column or row of the sample nearest to the centre. */
static uint32_t nearest(const struct axis *axis, uint32_t first, uint32_t count)
{
    uint32_t i = clamp_index(round((axis->center - axis->origin) / axis->spacing), axis->count);

    return i < first ? first : i > first + count - 1 ? first + count - 1 : i;
}

enum err_code brush_rect(const struct heightfield_spec *spec, const struct brush *brush,
                         struct sample_rect *out, struct err *err)
{
    struct axis x = {spec->origin_x_m, spec->spacing_x_m, brush->center.x, brush->radius_m,
                     spec->cols};
    struct axis y = {spec->origin_y_m, spec->spacing_y_m, brush->center.y, brush->radius_m,
                     spec->rows};
    struct sample_rect rect;

    if (brush_check(brush, err))
        return err->code;
    if (axis_range(&x, &rect.column, &rect.cols) && axis_range(&y, &rect.row, &rect.rows)) {
        struct disc disc = disc_of(spec, brush);

        if (disc_t(&disc, nearest(&x, rect.column, rect.cols), nearest(&y, rect.row, rect.rows)) <
            1) {
            *out = rect;
            return ERR_OK;
        }
    }
    return err_set(err, ERR_UNPROCESSABLE,
                   "no sample is nearer than %g m to the brush's center %g, %g", brush->radius_m,
                   brush->center.x, brush->center.y);
}

/* ---- the samples
 * --------------------------------------------------------------------------------- */

struct stroke {
    struct disc disc;
    const struct brush *brush;
    const struct sample_rect *rect;
    double beta;     /* crater; not finite: there is nowhere to throw anything */
    double target_m; /* flatten */
    /* smooth: the old samples, one more on each side where the field has them */
    struct sample_rect around;
    float *around_m;
};

/* 1 - 3t² + 2t³, written so that it does not fall below 0 before t = 1. */
static double weight(double t)
{
    return (1 - t) * (1 - t) * (1 + 2 * t);
}

/* The crater's β, infinite or NaN when no sample but the centre's is inside. */
static double crater_beta(const struct stroke *stroke, const float *heights_m)
{
    const struct sample_rect *rect = stroke->rect;
    double sum = 0, sum_tt = 0;

    for (uint32_t row = 0; row < rect->rows; row++)
        for (uint32_t column = 0; column < rect->cols; column++) {
            double t = disc_t(&stroke->disc, rect->column + column, rect->row + row);

            if (t < 1 && !isnan(heights_m[(size_t)row * rect->cols + column])) {
                sum += weight(t);
                sum_tt += weight(t) * t * t;
            }
        }
    return sum / sum_tt;
}

/* Mean of the up to 8 neighbours that are no holes; NAN when all are. */
static double neighbours_mean(const struct stroke *stroke, uint32_t column, uint32_t row)
{
    const struct sample_rect *around = &stroke->around;
    uint32_t c = column - around->column, r = row - around->row;
    uint32_t c1 = c + 1 < around->cols ? c + 1 : c, r1 = r + 1 < around->rows ? r + 1 : r;
    double sum = 0;
    int count = 0;

    for (uint32_t i = r > 0 ? r - 1 : 0; i <= r1; i++)
        for (uint32_t k = c > 0 ? c - 1 : 0; k <= c1; k++) {
            float h = stroke->around_m[(size_t)i * around->cols + k];

            if ((i != r || k != c) && !isnan(h)) {
                sum += (double)h;
                count++;
            }
        }
    return count > 0 ? sum / count : NAN;
}

/* The new value of a sample of height h at distance t < 1. */
static double stroke_height(const struct stroke *stroke, double t, double h, uint32_t column,
                            uint32_t row)
{
    double amount = stroke->brush->amount_m, w = weight(t), target_m = stroke->target_m;

    switch (stroke->brush->shape) {
    case BRUSH_RAISE:
        return h + amount * w;
    case BRUSH_CRATER:
        return !isfinite(stroke->beta) ? h : h - amount * w * (1 - stroke->beta * t * t);
    case BRUSH_SMOOTH:
        target_m = neighbours_mean(stroke, column, row);
        if (isnan(target_m))
            return h;
        break;
    case BRUSH_FLATTEN:
    case BRUSH_RELAX:
        break;
    }
    return h + w * fmin(fmax(target_m - h, -amount), amount);
}

static enum err_code stroke_apply(const struct stroke *stroke, float *heights_m, struct err *err)
{
    const struct sample_rect *rect = stroke->rect;

    for (uint32_t row = 0; row < rect->rows; row++)
        for (uint32_t column = 0; column < rect->cols; column++) {
            uint32_t c = rect->column + column, r = rect->row + row;
            float *h = &heights_m[(size_t)row * rect->cols + column];
            double t = disc_t(&stroke->disc, c, r);

            if (!(t < 1) || isnan(*h))
                continue;
            double became = stroke_height(stroke, t, (double)*h, c, r);

            *h = (float)became;
            if (!isfinite(*h))
                return err_limit(err, ERR_UNPROCESSABLE, (double)__FLT_MAX__, became,
                                 "sample (%u, %u) would become %g, beyond float32", c, r, became);
        }
    return ERR_OK;
}

/* Height of the surface at the centre. */
static enum err_code flatten_target(const struct heightfield *field, const struct brush *brush,
                                    double *target_m, struct err *err)
{
    struct ground_point ground;

    heightfield_height(field, brush->center, INTERPOLATION_TRIANGLE, &ground);
    if (ground.status != GROUND_OK)
        return err_set(err, ERR_UNPROCESSABLE,
                       "brush center %g, %g is %s: there is no height to flatten to",
                       brush->center.x, brush->center.y,
                       ground.status == GROUND_HOLE ? "over a hole" : "outside the field");
    *target_m = ground.height_m;
    return ERR_OK;
}

/* Reads the old samples with one more on each side. */
static enum err_code read_around(const struct heightfield *field, struct stroke *stroke,
                                 struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    const struct sample_rect *rect = stroke->rect;
    uint32_t column0 = rect->column > 0 ? rect->column - 1 : 0;
    uint32_t row0 = rect->row > 0 ? rect->row - 1 : 0;
    uint32_t column1 = rect->column + rect->cols, row1 = rect->row + rect->rows;

    column1 = column1 < spec->cols ? column1 + 1 : spec->cols;
    row1 = row1 < spec->rows ? row1 + 1 : spec->rows;
    stroke->around = (struct sample_rect){column0, row0, column1 - column0, row1 - row0};
    stroke->around_m =
        malloc((size_t)stroke->around.cols * stroke->around.rows * sizeof *stroke->around_m);
    if (stroke->around_m == NULL)
        return err_set(err, ERR_NO_MEMORY, "no memory for a brush of %u×%u samples", rect->cols,
                       rect->rows);
    heightfield_read_samples(field, &stroke->around, stroke->around_m);
    return ERR_OK;
}

/* Samples at or beyond the radius are hidden from the relaxation, like holes. */
static enum err_code relax(const struct stroke *stroke, float *heights_m, struct err *err)
{
    const struct heightfield_spec *spec = stroke->disc.spec;
    const struct sample_rect *rect = stroke->rect;
    const struct relax_grid grid = {rect->cols, rect->rows, spec->spacing_x_m, spec->spacing_y_m,
                                    trig_tan(stroke->brush->slope_deg * (M_PI / 180))};
    const size_t count = (size_t)rect->cols * rect->rows;
    float *inside_m = malloc(count * sizeof *inside_m);

    if (!inside_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a brush of %u×%u samples", rect->cols,
                       rect->rows);
    for (size_t i = 0; i < count; i++) {
        const uint32_t c = rect->column + (uint32_t)(i % rect->cols);
        const uint32_t r = rect->row + (uint32_t)(i / rect->cols);

        inside_m[i] = disc_t(&stroke->disc, c, r) < 1 ? heights_m[i] : NAN;
    }
    relax_heights(&grid, inside_m, err);
    for (size_t i = 0; i < count && err->code == ERR_OK; i++)
        if (!isnan(inside_m[i]))
            heights_m[i] = inside_m[i];
    free(inside_m);
    return err->code;
}

enum err_code brush_apply(const struct heightfield *field, const struct brush *brush,
                          const struct sample_rect *rect, float *heights_m, struct err *err)
{
    struct stroke stroke = {
        .disc = disc_of(heightfield_spec(field), brush), .brush = brush, .rect = rect};

    if (brush->shape == BRUSH_RELAX)
        return relax(&stroke, heights_m, err);
    if (brush->shape == BRUSH_FLATTEN && flatten_target(field, brush, &stroke.target_m, err))
        return err->code;
    if (brush->shape == BRUSH_SMOOTH && read_around(field, &stroke, err))
        return err->code;
    if (brush->shape == BRUSH_CRATER)
        stroke.beta = crater_beta(&stroke, heights_m);
    enum err_code code = stroke_apply(&stroke, heights_m, err);

    free(stroke.around_m);
    if (code == ERR_OK && brush->shape == BRUSH_CRATER && brush->slope_deg != 0)
        code = relax(&stroke, heights_m, err);
    return code;
}
