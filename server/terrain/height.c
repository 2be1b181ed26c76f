/*
 * Height of the ground at a point: nearest, bilinear and the exact triangle (text H).
 *
 * The triangles are closed sets. A point strictly inside a cell belongs to one triangle (two on the
 * hypotenuse); on a cell's edge the neighbour's triangles hold it as well. That matters only beside
 * holes, where the own cell may have no triangle while the neighbour has one: the edge is then
 * still ground, as it is for a ray that meets it.
 */
#include "terrain/heightfield_data.h"

struct vec3 triangle_normal(const struct heightfield *field, const struct corners *k, bool is_main,
                            int triangle)
{
    double h00 = (double)k->h00, h10 = (double)k->h10;
    double h01 = (double)k->h01, h11 = (double)k->h11;
    bool low = (triangle == 0); /* which of the two edges along x and y it has */
    double along_u = low ? h10 - h00 : h11 - h01;
    double along_v = is_main == low ? h11 - h10 : h01 - h00;
    /* 0 - a, not -a: flat ground has no -0 in its normal */
    struct vec3 n = {0 - along_u / field->spec.spacing_x_m, 0 - along_v / field->spec.spacing_y_m,
                     1};

    return vec3_unit(n);
}

bool heightfield_to_grid(const struct heightfield *field, struct vec2 at, double *u, double *v)
{
    const struct heightfield_spec *s = &field->spec;
    double cols = field->cell_cols, rows = field->cell_rows;

    /* the same products as heightfield_bounds, so that a bound's own corner is inside */
    if (!(at.x >= s->origin_x_m && at.x <= s->origin_x_m + s->spacing_x_m * cols &&
          at.y >= s->origin_y_m && at.y <= s->origin_y_m + s->spacing_y_m * rows))
        return false;
    *u = fmin(fmax((at.x - s->origin_x_m) / s->spacing_x_m, 0), cols);
    *v = fmin(fmax((at.y - s->origin_y_m) / s->spacing_y_m, 0), rows);
    return true;
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
