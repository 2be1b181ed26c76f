/*
 * Height of the ground at a point: nearest, bilinear and the exact triangle (text H).
 *
 * The triangles are closed sets. A point strictly inside a cell belongs to one triangle (two on the
 * hypotenuse); on a cell's edge the neighbour's triangles hold it as well. That matters only beside
 * holes, where the own cell may have no triangle while the neighbour has one: the edge is then
 * still ground, as it is for a ray that meets it.
 *
 * Most callers need only the height, of many points. Then the cell's four samples are all that is
 * read, and the choice of the triangle, which is not predictable, selects corners and not code. A
 * height that comes out as NaN, beside a hole, is computed again the long way. In a batch the
 * samples of all points are prefetched before the first is used, so that the memory loads many at
 * once. That is here for every machine; with AVX2 it is height_batch.c, with the same bits.
 */
#include "terrain/field/heightfield_data.h"
#include "terrain/kernels/kernels.h"
#include "terrain/kernels/lanes.h"

#include <string.h>

#define ALWAYS_INLINE LANES_INLINE

/* Operands by index and not by branches: the triangle is not predictable. */
static inline double between(double x, double most)
{
    x = x > 0 ? x : 0; /* of -0 as well: it is 0 in the vectors */
    return x > most ? most : x;
}

/* As heightfield_to_grid in the header says, for the calls of this file to contain. */
ALWAYS_INLINE bool to_grid(const struct heightfield *field, struct vec2 at, double *u, double *v)
{
    const struct heightfield_spec *s = &field->spec;
    double cols = field->cell_cols, rows = field->cell_rows;

    /* the same products as heightfield_bounds, so that a bound's own corner is inside */
    if (!(at.x >= s->origin_x_m && at.x <= s->origin_x_m + s->spacing_x_m * cols &&
          at.y >= s->origin_y_m && at.y <= s->origin_y_m + s->spacing_y_m * rows))
        return false;
    /* not fmin and fmax: they are calls, and nothing here is NaN */
    *u = between((at.x - s->origin_x_m) / s->spacing_x_m, cols);
    *v = between((at.y - s->origin_y_m) / s->spacing_y_m, rows);
    return true;
}

bool heightfield_to_grid(const struct heightfield *field, struct vec2 at, double *u, double *v)
{
    return to_grid(field, at, u, v);
}

/* Takes the cell's triangle that holds (u, v), the lower number first; false if none exists. */
static bool take_triangle(const struct heightfield *field, uint32_t column, uint32_t row, double u,
                          double v, struct ground_triangle *out)
{
    struct corners k = heightfield_corners(field, column, row);
    bool is_main = cell_is_main(field, column, row);
    double fu = u - column, fv = v - row;
    double side = is_main ? fu - fv : 1 - (fu + fv); /* > 0: triangle 0, < 0: triangle 1 */

    for (int triangle = 0; triangle < 2; triangle++) {
        if (!(triangle == 0 ? side >= 0 : side <= 0) || !triangle_exists(&k, is_main, triangle))
            continue;
        *out = (struct ground_triangle){
            .column = column,
            .row = row,
            .triangle = triangle,
            .fu = fu,
            .fv = fv,
            .height_m = triangle_height(&k, is_main, triangle, fu, fv),
            .corners = k,
            .is_main = is_main,
        };
        return true;
    }
    return false;
}

void heightfield_triangle_at(const struct heightfield *field, double u, double v,
                             struct ground_triangle *out)
{
    uint32_t column = u < field->cell_cols ? (uint32_t)u : field->cell_cols - 1;
    uint32_t row = v < field->cell_rows ? (uint32_t)v : field->cell_rows - 1;
    bool west = u == column && column > 0, south = v == row && row > 0;

    if (take_triangle(field, column, row, u, v, out) ||
        (west && take_triangle(field, column - 1, row, u, v, out)) ||
        (south && take_triangle(field, column, row - 1, u, v, out)) ||
        (west && south && take_triangle(field, column - 1, row - 1, u, v, out)))
        return;
    *out = (struct ground_triangle){.column = column,
                                    .row = row,
                                    .triangle = -1,
                                    .fu = u - column,
                                    .fv = v - row,
                                    .height_m = NAN,
                                    .corners = heightfield_corners(field, column, row),
                                    .is_main = cell_is_main(field, column, row)};
}

static double height_bilinear(const struct heightfield *field, double u, double v)
{
    uint32_t column = u < field->cell_cols ? (uint32_t)u : field->cell_cols - 1;
    uint32_t row = v < field->cell_rows ? (uint32_t)v : field->cell_rows - 1;
    struct corners k = heightfield_corners(field, column, row);
    double fu = u - column, fv = v - row;
    /* a corner without weight may be no-data: 0 · NaN must not spread */
    double south = fu == 0 ? (double)k.h00 : (1 - fu) * (double)k.h00;
    double north = fu == 0 ? (double)k.h01 : (1 - fu) * (double)k.h01;

    if (fu == 1) {
        south = (double)k.h10;
        north = (double)k.h11;
    } else if (fu > 0) {
        south += fu * (double)k.h10;
        north += fu * (double)k.h11;
    }
    if (fv == 0)
        return south;
    return fv == 1 ? north : (1 - fv) * south + fv * north;
}

void heightfield_prefetch(const struct heightfield *field, struct vec2 at)
{
    const struct heightfield_spec *s = &field->spec;
    double u = (at.x - s->origin_x_m) / s->spacing_x_m, v = (at.y - s->origin_y_m) / s->spacing_y_m;
    uint32_t column, row;
    const float *samples;

    if (!(u >= 0 && v >= 0 && u < field->cell_cols && v < field->cell_rows))
        return; /* the borders are no matter here */
    column = (uint32_t)u;
    row = (uint32_t)v;
    samples = heightfield_at(field, column, row);
    __builtin_prefetch(samples);
    __builtin_prefetch(samples + field->stride);
}

void heightfield_height(const struct heightfield *field, struct vec2 at, enum interpolation mode,
                        struct ground_point *out)
{
    struct ground_triangle ground;
    double u, v;

    *out = (struct ground_point){
        .status = GROUND_OUTSIDE, .height_m = NAN, .normal = {NAN, NAN, NAN}, .triangle = -1};
    if (!heightfield_to_grid(field, at, &u, &v))
        return;
    heightfield_triangle_at(field, u, v, &ground);
    out->cell[0] = ground.column;
    out->cell[1] = ground.row;
    out->triangle = ground.triangle;
    if (ground.triangle >= 0)
        out->normal = triangle_normal(field, &ground.corners, ground.is_main, ground.triangle);
    switch (mode) {
    case INTERPOLATION_TRIANGLE:
        out->height_m = ground.height_m;
        break;
    case INTERPOLATION_BILINEAR:
        out->height_m = height_bilinear(field, u, v);
        break;
    case INTERPOLATION_NEAREST:
        out->height_m = (double)heightfield_sample(field, (uint32_t)(u + 0.5), (uint32_t)(v + 0.5));
        break;
    }
    out->status = isnan(out->height_m) ? GROUND_HOLE : GROUND_OK;
}

/* ---- only the height ------------------------------------------------------------------------- */

enum { BATCH = 32 };

/* A point in its cell. */
struct cell_place {
    const float *at; /* sample (0, 0) of the cell, in its tile */
    size_t stride;   /* to the next row */
    double fu, fv;
    bool is_main, is_in; /* is_in false: some cell, the point is outside of the field */
};

/* As to_grid, by the same operations, both axes at once. */
ALWAYS_INLINE void cell_of(const struct heightfield *field, double x, double y,
                           struct cell_place *place, uint32_t *column, uint32_t *row)
{
    i32x4 cells = i32x4_load_two(&field->cell_cols);
    f64x2 sides = f64x2_of_ints(cells), point = {x, y};
    f64x2 low = f64x2_load(&field->spec.origin_x_m);
    f64x2 spacing = f64x2_load(&field->spec.spacing_x_m);
    f64x2 high = low + spacing * sides;
    i64x2 is_in = (i64x2)(point >= low) & (i64x2)(point <= high);
    f64x2 uv = (point - low) / spacing;

    /* NaN becomes 0 */
    uv = f64x2_min(f64x2_max(uv, f64x2_all(0)), sides);
    i32x4 cell = f64x2_truncated(uv);

    cell += (i32x4)(cell == cells); /* the upper edges */
    uv -= f64x2_of_ints(cell);
    *column = (uint32_t)cell[0];
    *row = (uint32_t)cell[1];
    place->is_in = i64x2_signs(is_in) == 3;
    place->fu = uv[0];
    place->fv = uv[1];
}

/* Of a place that has cell, fu and fv: the rest. */
ALWAYS_INLINE void place_fill(const struct heightfield *field, uint32_t column, uint32_t row,
                              enum triangulation triangulation, struct cell_place *place)
{
    place->stride = field->stride;
    place->at = heightfield_at(field, column, row);
    place->is_main = triangulation == TRIANGULATION_MAIN ||
                     (triangulation == TRIANGULATION_ALTERNATING && ((column + row) & 1) != 0);
}

/*
 * triangle_height of the triangle that holds the point, the lower number on the hypotenuse: the
 * same operations on the same numbers. NaN where one of its corners is.
 */
ALWAYS_INLINE double main_height(const struct cell_place *place)
{
    const size_t h01 = place->stride;
    const float *at = place->at;
    double fu = place->fu, fv = place->fv;
    double first = fu < fv ? fv : fu, second = fu < fv ? fu : fv;
    double h00 = (double)at[0], middle = (double)at[fu - fv >= 0 ? 1 : h01];

    return h00 + first * (middle - h00) + second * ((double)at[h01 + 1] - middle);
}

/* All samples are read before it is known which of them count: the latency of memory dominates. */
ALWAYS_INLINE double anti_height(const struct cell_place *place)
{
    const float *at = place->at;
    f32x4 samples = f32x4_pairs(at, at + place->stride);
    f64x2 low = f64x2_of_floats(samples);
    f64x2 high = f64x2_of_floats(__builtin_shufflevector(samples, samples, 2, 3, 2, 3));
    f64x2 f = {place->fu, place->fv}, one = f64x2_all(1);
    i64x2 is_upper = ~(i64x2)(one - f64x2_all(place->fu + place->fv) >= f64x2_all(0));
    f64x2 base =
        f64x2_select(is_upper, f64x2_seconds(high), __builtin_shufflevector(low, low, 0, 0));
    f64x2 ends = __builtin_shufflevector(low, high, 1, 2); /* h10, h01 */

    ends = f64x2_select(is_upper, __builtin_shufflevector(ends, ends, 1, 0), ends);
    f = f64x2_select(is_upper, one - f, f);
    f64x2 part = f * (ends - base);

    return base[0] + part[0] + part[1];
}

ALWAYS_INLINE double place_height(const struct cell_place *place)
{
    return place->is_main ? main_height(place) : anti_height(place);
}

/*
 * Outside, beside a hole, or by another mode. x and y, not a struct, and a call: gcc 12 keeps a
 * struct that it passes on in memory, written as two and read as one, and each height then waits
 * for the one before.
 */
__attribute__((noinline)) static struct ground_height height_slow(const struct heightfield *field,
                                                                  double x, double y,
                                                                  enum interpolation mode)
{
    struct ground_triangle ground;
    double height_m, u, v;

    if (!to_grid(field, (struct vec2){x, y}, &u, &v))
        return (struct ground_height){NAN, GROUND_OUTSIDE};
    switch (mode) {
    case INTERPOLATION_BILINEAR:
        height_m = height_bilinear(field, u, v);
        break;
    case INTERPOLATION_NEAREST:
        height_m = (double)heightfield_sample(field, (uint32_t)(u + 0.5), (uint32_t)(v + 0.5));
        break;
    default:
        heightfield_triangle_at(field, u, v, &ground);
        height_m = ground.height_m;
    }
    return (struct ground_height){height_m, isnan(height_m) ? GROUND_HOLE : GROUND_OK};
}

ALWAYS_INLINE struct ground_height triangle_ask(const struct heightfield *field, double x, double y,
                                                enum triangulation triangulation)
{
    struct cell_place place;
    uint32_t column, row;

    cell_of(field, x, y, &place, &column, &row);
    place_fill(field, column, row, triangulation, &place);
    double height_m = place_height(&place);

    if (!place.is_in || isnan(height_m))
        return height_slow(field, x, y, INTERPOLATION_TRIANGLE);
    return (struct ground_height){height_m, GROUND_OK};
}

struct ground_height height_scalar(const struct heightfield *field, double x, double y)
{
    if (field->spec.triangulation == TRIANGULATION_ANTI)
        return triangle_ask(field, x, y, TRIANGULATION_ANTI);
    return triangle_ask(field, x, y, field->spec.triangulation);
}

/* Up to BATCH points by the triangle. */
ALWAYS_INLINE void triangle_batch(const struct heightfield *field, const struct vec2 *points,
                                  size_t count, struct ground_height *out,
                                  enum triangulation triangulation)
{
    struct cell_place places[BATCH];

    for (size_t i = 0; i < count; i++) {
        uint32_t column, row;

        cell_of(field, points[i].x, points[i].y, &places[i], &column, &row);
        place_fill(field, column, row, triangulation, &places[i]);
        __builtin_prefetch(places[i].at);
        __builtin_prefetch(places[i].at + places[i].stride);
    }
    for (size_t i = 0; i < count; i++) {
        double height_m = place_height(&places[i]);

        if (places[i].is_in && !isnan(height_m))
            out[i] = (struct ground_height){height_m, GROUND_OK};
        else
            out[i] = height_slow(field, points[i].x, points[i].y, INTERPOLATION_TRIANGLE);
    }
}

void heights_scalar(const struct heightfield *field, const struct vec2 *points, size_t count,
                    struct ground_height *out, double *heights_m)
{
    enum triangulation triangulation = field->spec.triangulation;
    struct ground_height some[BATCH];

    for (size_t first = 0; first < count; first += BATCH) {
        size_t n = count - first < BATCH ? count - first : BATCH;
        struct ground_height *to = out != NULL ? out + first : some;

        if (triangulation == TRIANGULATION_ANTI)
            triangle_batch(field, points + first, n, to, TRIANGULATION_ANTI);
        else
            triangle_batch(field, points + first, n, to, triangulation);
        for (size_t i = 0; heights_m != NULL && i < n; i++)
            heights_m[first + i] = some[i].height_m;
    }
}

/* 1 up to BATCH points. */
static bool batch_f32(const struct heightfield *field, const unsigned char *floats, size_t count,
                      enum interpolation mode, const double base[3], unsigned char *out)
{
    struct vec2 points[BATCH];
    double heights_m[BATCH];
    bool is_finite = true;
    size_t read = 0;

    do { /* gcc assumes that there is a point */
        float at[2];

        memcpy(at, floats + read * sizeof at, sizeof at);
        is_finite &= isfinite(at[0]) && isfinite(at[1]);
        points[read] = (struct vec2){(double)at[0] + base[0], (double)at[1] + base[1]};
    } while (++read < count);
    heightfield_heights_plain(field, points, count, mode, heights_m);
    for (size_t i = 0; i < count; i++) {
        float height = (float)(heights_m[i] - base[2]);

        memcpy(out + i * sizeof height, &height, sizeof height);
    }
    return is_finite;
}

/* Of any mode, by the plain heights of some points at a time. */
static bool heights_f32(const struct heightfield *field, const unsigned char *floats, size_t count,
                        enum interpolation mode, const double base[3], unsigned char *out)
{
    bool is_finite = true;

    for (size_t first = 0; first < count; first += BATCH)
        is_finite &= batch_f32(field, floats + first * 2 * sizeof(float),
                               count - first < BATCH ? count - first : BATCH, mode, base,
                               out + first * sizeof(float));
    return is_finite;
}

bool heights_f32_scalar(const struct heightfield *field, const unsigned char *floats, size_t count,
                        const double base[3], unsigned char *out)
{
    return heights_f32(field, floats, count, INTERPOLATION_TRIANGLE, base, out);
}

/* ---- by the level in use, and the other modes ------------------------------------------------ */

struct ground_height heightfield_interpolate(const struct heightfield *field, struct vec2 at,
                                             enum interpolation mode)
{
    if (mode == INTERPOLATION_TRIANGLE)
        return kernels()->height(field, at.x, at.y);
    return height_slow(field, at.x, at.y, mode);
}

void heightfield_heights(const struct heightfield *field, const struct vec2 *points, size_t count,
                         enum interpolation mode, struct ground_height *out)
{
    if (mode == INTERPOLATION_TRIANGLE)
        kernels()->heights(field, points, count, out, NULL);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = height_slow(field, points[i].x, points[i].y, mode);
}

void heightfield_heights_plain(const struct heightfield *field, const struct vec2 *points,
                               size_t count, enum interpolation mode, double *heights_m)
{
    if (mode == INTERPOLATION_TRIANGLE)
        kernels()->heights(field, points, count, NULL, heights_m);
    else
        for (size_t i = 0; i < count; i++)
            heights_m[i] = height_slow(field, points[i].x, points[i].y, mode).height_m;
}

bool heightfield_heights_f32(const struct heightfield *field, const unsigned char *floats,
                             size_t count, enum interpolation mode, const double base[3],
                             unsigned char *out)
{
    if (mode == INTERPOLATION_TRIANGLE)
        return kernels()->heights_f32(field, floats, count, base, out);
    return heights_f32(field, floats, count, mode, base, out);
}
