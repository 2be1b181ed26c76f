/*
 * Shapes swept against a heightfield.
 *
 * The pyramid is descended with boxes grown by the shape, nearest first, from the level at which
 * the box of the whole way is in four nodes: a short way near the ground looks at a leaf or two and
 * not at the root. In a leaf each row of cells has an interval of the way, and that an interval of
 * columns; the triangles of those cells are tested exactly (triangle.c).
 *
 * All coordinates are relative to where the shape begins. Samples are where heightfield.h puts
 * them, origin + c spacing, for every node and triangle alike.
 */
#include "terrain/sweep/triangle.h"

#include "terrain/field/heightfield_data.h"
#include "terrain/field_ray/ray.h"

struct field_sweep {
    const struct heightfield *field;
    struct sweep *s;
    struct sweep_slabs slabs;
    uint64_t best_order;
    bool is_better;
};

static double column_x(const struct field_sweep *w, uint32_t column)
{
    const struct heightfield_spec *spec = &w->field->spec;

    return spec->origin_x_m + column * spec->spacing_x_m - w->s->from.x;
}

static double row_y(const struct field_sweep *w, uint32_t row)
{
    const struct heightfield_spec *spec = &w->field->spec;

    return spec->origin_y_m + row * spec->spacing_y_m - w->s->from.y;
}

/* ---- cells ---------------------------------------------------------------------------------- */

static void triangle_ask(struct field_sweep *w, const struct vec3 at[2][2], uint32_t column,
                         uint32_t row, bool is_main, int triangle)
{
    struct vec3 middle = triangle == 0 ? at[0][is_main ? 1 : 0] : at[1][is_main ? 0 : 1];
    const struct vec3 corner[3] = {middle, is_main ? at[1][1] : at[0][1],
                                   is_main ? at[0][0] : at[1][0]};
    uint64_t order = ((uint64_t)row << 32 | column) << 1 | (uint64_t)triangle;

    if (!sweep_triangle(w->s, corner, order, &w->best_order))
        return;
    w->is_better = true;
    w->s->best.cell[0] = column;
    w->s->best.cell[1] = row;
    w->s->best.triangle = triangle;
    w->s->best.polygon = 0;
}

static void cell_ask(struct field_sweep *w, uint32_t column, uint32_t row)
{
    struct corners k = heightfield_corners(w->field, column, row);
    struct bounds range = BOUNDS_EMPTY;
    double x0 = column_x(w, column), x1 = column_x(w, column + 1), z = w->s->from.z, enter;
    double y0 = row_y(w, row), y1 = row_y(w, row + 1);
    bool is_main = cell_is_main(w->field, column, row);

    range = bounds_add(bounds_add(bounds_add(bounds_add(range, k.h00), k.h10), k.h01), k.h11);
    if (!sweep_meets_box(&w->slabs, w->s, (struct vec3){x0, y0, (double)range.min - z},
                         (struct vec3){x1, y1, (double)range.max - z}, &enter))
        return;
    const struct vec3 at[2][2] = {
        {{x0, y0, (double)k.h00 - z}, {x1, y0, (double)k.h10 - z}},
        {{x0, y1, (double)k.h01 - z}, {x1, y1, (double)k.h11 - z}},
    };

    for (int triangle = 0; triangle < 2; triangle++)
        if (triangle_exists(&k, is_main, triangle))
            triangle_ask(w, at, column, row, is_main, triangle);
}

/* The cells of an axis that low to high meets, cut to first to last; false: none. */
static bool cells_between(double origin, double spacing, double low, double high, uint32_t *first,
                          uint32_t *last)
{
    const double rounding = 1e-6; /* cells; there are 2^20 at most */
    double from = floor((low - origin) / spacing - rounding);
    double to = floor((high - origin) / spacing + rounding);

    if (!(to >= *first && from <= *last)) /* NaN, too */
        return false;
    *first = from > *first ? (uint32_t)from : *first;
    *last = to < *last ? (uint32_t)to : *last;
    return true;
}

static void leaf_ask(struct field_sweep *w, uint32_t column0, uint32_t row0, uint32_t column1,
                     uint32_t row1)
{
    const struct sweep *s = w->s;
    const struct heightfield_spec *spec = &w->field->spec;

    for (uint32_t row = row0; row <= row1; row++) {
        /* the part of the way over this row */
        double a = (row_y(w, row) - s->reach.y) * w->slabs.inverse[1];
        double b = (row_y(w, row + 1) + s->reach.y) * w->slabs.inverse[1];
        double first_t = a < b ? a : b, last_t = a < b ? b : a;
        double most = s->best.fraction < 1 ? s->best.fraction : 1;
        double t0 = first_t > 0 ? first_t : 0, t1 = last_t < most ? last_t : most;
        double x0 = s->from.x + s->along.x * t0, x1 = s->from.x + s->along.x * t1;
        uint32_t first = column0, last = column1;

        if (!(t0 <= t1) ||
            !cells_between(spec->origin_x_m, spec->spacing_x_m, fmin(x0, x1) - s->reach.x,
                           fmax(x0, x1) + s->reach.x, &first, &last))
            continue;
        for (uint32_t column = first; column <= last; column++)
            cell_ask(w, column, row);
    }
}

/* ---- nodes ---------------------------------------------------------------------------------- */

struct child {
    double enter;
    uint32_t column, row; /* of its first cell */
};

/* Is the node met? */
static bool node_meets(const struct field_sweep *w, uint32_t level, struct child *child)
{
    const struct heightfield *field = w->field;
    struct bounds z = heightfield_node(field, level, child->column, child->row);
    uint32_t column1 = child->column + (1u << level), row1 = child->row + (1u << level);
    double base = w->s->from.z;

    if (z.min > z.max) /* no data */
        return false;
    column1 = column1 < field->cell_cols ? column1 : field->cell_cols;
    row1 = row1 < field->cell_rows ? row1 : field->cell_rows;
    return sweep_meets_box(
        &w->slabs, w->s,
        (struct vec3){column_x(w, child->column), row_y(w, child->row), (double)z.min - base},
        (struct vec3){column_x(w, column1), row_y(w, row1), (double)z.max - base}, &child->enter);
}

/* The nodes of a level that begin at two columns and rows, or one, nearest first. */
static void nodes_ask(struct field_sweep *w, uint32_t level, const uint32_t columns[2],
                      const uint32_t rows[2])
{
    struct child met[4];
    int count = 0;

    for (int i = 0; i < 4; i++) {
        struct child child = {0, columns[i & 1], rows[i >> 1]};
        int at = count;

        if (((i & 1) && columns[0] == columns[1]) || ((i >> 1) && rows[0] == rows[1]) ||
            child.column >= w->field->cell_cols || child.row >= w->field->cell_rows ||
            !node_meets(w, level, &child))
            continue;
        for (; at > 0 && met[at - 1].enter > child.enter; at--)
            met[at] = met[at - 1];
        met[at] = child;
        count++;
    }
    for (int i = 0; i < count; i++) {
        uint32_t column = met[i].column, row = met[i].row, half = (1u << level) / 2;

        if (met[i].enter > w->s->best.fraction)
            return;
        if (level > w->field->leaf_shift) {
            nodes_ask(w, level - 1, (const uint32_t[2]){column, column + half},
                      (const uint32_t[2]){row, row + half});
            continue;
        }
        uint32_t column1 = column + (1u << level), row1 = row + (1u << level);

        column1 = column1 < w->field->cell_cols ? column1 : w->field->cell_cols;
        row1 = row1 < w->field->cell_rows ? row1 : w->field->cell_rows;
        leaf_ask(w, column, row, column1 - 1, row1 - 1);
    }
}

/* A point moves as a ray does. */
static bool point_sweep(const struct heightfield *field, struct sweep *s)
{
    struct ray ray = {s->from, s->along, 1};
    struct ray_hit hit;

    if (!ray_is_valid(&ray) || !heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL) ||
        hit.t >= s->best.fraction)
        return false;
    sweep_take_hit(s, hit.t, hit.point, hit.normal);
    s->best.cell[0] = hit.cell[0];
    s->best.cell[1] = hit.cell[1];
    s->best.triangle = hit.triangle;
    return true;
}

bool heightfield_sweep(const struct heightfield *field, struct sweep *s)
{
    const struct heightfield_spec *spec = &field->spec;
    struct field_sweep w = {.field = field, .s = s};
    double most = fmin(s->best.fraction, 1);
    struct vec3 to = vec3_add(s->from, vec3_scale(s->along, most));
    uint32_t column0 = 0, column1 = field->cell_cols - 1, row0 = 0, row1 = field->cell_rows - 1;
    uint32_t level = field->leaf_shift;

    if (s->core == CORE_POINT && s->radius == 0)
        return point_sweep(field, s);
    if (!cells_between(spec->origin_x_m, spec->spacing_x_m, fmin(s->from.x, to.x) - s->reach.x,
                       fmax(s->from.x, to.x) + s->reach.x, &column0, &column1) ||
        !cells_between(spec->origin_y_m, spec->spacing_y_m, fmin(s->from.y, to.y) - s->reach.y,
                       fmax(s->from.y, to.y) + s->reach.y, &row0, &row1))
        return false;
    sweep_slabs_set(&w.slabs, s);
    while (level < field->level_max &&
           ((column1 >> level) - (column0 >> level) > 1 || (row1 >> level) - (row0 >> level) > 1))
        level++;
    nodes_ask(&w, level, (const uint32_t[2]){column0 >> level << level, column1 >> level << level},
              (const uint32_t[2]){row0 >> level << level, row1 >> level << level});
    return w.is_better;
}
