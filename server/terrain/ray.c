/*
 * Rays against a heightfield.
 *
 * Text T (Sjöstrand 2017, chapter 3): descend the min/max pyramid in order of entry, then walk the
 * cells under the ray inside a leaf, and test the triangles of those cells only. Three things are
 * done otherwise.
 *
 * 1. No list, no sort. The ray is at cell (c, r) at parameter t. It looks at the largest node that
 *    begins there and is worth asking; if the ray passes above or below it, it jumps to the cell
 *    where it leaves the node, else it looks at a smaller one (Tevs, Ihrke, Seidel: Maximum Mipmaps
 *    for Fast, Accurate, and Scalable Dynamic Height Field Rendering, 2008, does so for images).
 * The order of entry comes by itself, and nothing is allocated.
 *
 * 2. An exact walk. T walks by Bresenham's line, which skips cells whose corner the line cuts. Here
 *    a cell is left through the grid line that comes first: t_u(k) = (k - u0) / du is one monotone
 *    function of k, t_v(k) another, and a tie goes to u. So the order of all crossings is total,
 * the path through the cells is the same however it was reached, jumps included.
 *
 * 3. Signs instead of triangle tests. Over the ground line, f(t) = z of the ray - height of the
 *    surface is linear inside each triangle. f is evaluated where the ground line crosses the edges
 *    of the triangles, from the edge's two samples alone: both triangles at an edge see the same
 *    number, so a change of sign cannot fall between them. Möller-Trumbore per triangle leaks there
 *    by rounding, and tests each shared edge twice.
 *
 * Triangles are closed: f = 0 (within the rounding of z) is a hit. A ray whose ground line runs
 * along a grid line is walked on both sides of it, since beside a hole only one of them has
 * triangles.
 *
 * Invariants: t never decreases; c and r only move in the ray's direction; each jump leaves the
 * node it asked. So the walk ends after at most cols + rows cells.
 *
 * Far origins: the ray is moved to where it enters the field's box (the coordinate on the entry
 * face is then exact), so that the walk works with numbers of the field's size.
 */
#include "terrain/ray.h"

#include "terrain/heightfield_data.h"

#include <float.h>

/* How the present cell was entered; tells which edge f is evaluated on. */
enum entry { ENTRY_START, ENTRY_U, ENTRY_V };

struct walk {
    const struct heightfield *field;
    struct ray_trace *trace;
    double u0, v0, z0; /* grid, grid, metres: where t is 0 */
    double du, dv, dz; /* per t */
    double inv_du, inv_dv;
    double t_begin; /* 0, or a rounding before the border by which the ray comes in */
    double t_end;
    double pad_m; /* rounding of z along the ray */
    /* the cell the ray is in */
    int64_t column, row;
    double t;
    enum entry entry;
    /* the hit */
    double hit_t;
    int hit_triangle;
};

bool ray_is_valid(const struct ray *ray)
{
    double m = fmax(fabs(ray->direction.x), fmax(fabs(ray->direction.y), fabs(ray->direction.z)));

    return vec3_is_finite(ray->origin) && vec3_is_finite(ray->direction) && m >= DBL_MIN &&
           ray->t_max >= 0;
}

static inline double crossing_u(const struct walk *w, int64_t k)
{
    return ((double)k - w->u0) * w->inv_du;
}

static inline double crossing_v(const struct walk *w, int64_t k)
{
    return ((double)k - w->v0) * w->inv_dv;
}

static inline double clamp_unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* ---- one cell ----------------------------------------------------------------------------------
 */

/* Height of the edge between two samples, lower index first: the same from both sides. */
static inline double edge_height(float a, float b, double s)
{
    return (double)a + s * ((double)b - (double)a);
}

/* f where the ray crosses the edge by which it entered or leaves; NaN when a sample is missing. */
static double f_on_edge(const struct walk *w, const struct corners *k, double t, bool on_u_line,
                        bool far_side)
{
    double z = w->z0 + w->dz * t;

    if (on_u_line) {
        double s = clamp_unit(w->v0 + w->dv * t - (double)w->row);

        return z - (far_side ? edge_height(k->h10, k->h11, s) : edge_height(k->h00, k->h01, s));
    }
    double s = clamp_unit(w->u0 + w->du * t - (double)w->column);

    return z - (far_side ? edge_height(k->h01, k->h11, s) : edge_height(k->h00, k->h10, s));
}

/* f over a triangle's plane; for ends that lie on no edge of the cell. */
static double f_on_plane(const struct walk *w, const struct corners *k, bool is_main, int triangle,
                         double t)
{
    double fu = clamp_unit(w->u0 + w->du * t - (double)w->column);
    double fv = clamp_unit(w->v0 + w->dv * t - (double)w->row);

    return w->z0 + w->dz * t - triangle_height(k, is_main, triangle, fu, fv);
}

struct piece {
    int triangle;
    double t0, f0, t1, f1; /* an f of NaN is to be taken from the triangle's plane */
};

/* The first zero of f over one triangle. */
static bool piece_hit(struct walk *w, const struct corners *k, bool is_main, struct piece p)
{
    if (!triangle_exists(k, is_main, p.triangle))
        return false;
    if (isnan(p.f0))
        p.f0 = f_on_plane(w, k, is_main, p.triangle, p.t0);
    if (isnan(p.f1))
        p.f1 = f_on_plane(w, k, is_main, p.triangle, p.t1);
    /* within rounding of z the ray touches: a vertex or edge that it only grazes is hit as well */
    bool is_on0 = fabs(p.f0) <= w->pad_m, is_on1 = fabs(p.f1) <= w->pad_m;

    if (!is_on0 && !is_on1 && (p.f0 > 0) == (p.f1 > 0))
        return false;
    w->hit_triangle = p.triangle;
    w->hit_t = is_on0                     ? p.t0
               : (p.f0 > 0) == (p.f1 > 0) ? p.t1
                                          : p.t0 + (p.t1 - p.t0) * (p.f0 / (p.f0 - p.f1));
    return true;
}

/*
 * Both triangles of the present cell between w->t and t_exit, in the ray's order. f_in and f_out
 * are f at the cell's edges (NaN at the ends of the ray).
 */
static bool cell_pieces(struct walk *w, const struct corners *k, bool is_main, double t_exit,
                        double f_in, double f_out)
{
    double c = (double)w->column, r = (double)w->row;
    /* side(t) > 0: triangle 0; it is linear and zero on the hypotenuse */
    double rate = is_main ? w->du - w->dv : -(w->du + w->dv);
    double start = is_main ? (w->u0 - w->v0) - (c - r) : (c + r + 1) - (w->u0 + w->v0);
    struct piece whole = {0, w->t, f_in, t_exit, f_out};

    if (rate == 0) {
        whole.triangle = start < 0;
        if (piece_hit(w, k, is_main, whole))
            return true;
        whole.triangle = 1;
        return start == 0 && piece_hit(w, k, is_main, whole);
    }
    int first = rate > 0; /* the triangle before the hypotenuse */
    double t_cut = -start / rate;

    double slack = 4 * DBL_EPSILON * (fabs(w->t) + fabs(t_exit)); /* at a corner both are met */

    if (t_cut > t_exit + slack || t_cut < w->t - slack) {
        whole.triangle = t_cut > t_exit ? first : !first;
        return piece_hit(w, k, is_main, whole);
    }
    t_cut = fmin(fmax(t_cut, w->t), t_exit);
    double s = clamp_unit(w->u0 + w->du * t_cut - c);
    double f_cut = w->z0 + w->dz * t_cut -
                   (is_main ? edge_height(k->h00, k->h11, s) : edge_height(k->h01, k->h10, s));

    return piece_hit(w, k, is_main, (struct piece){first, w->t, f_in, t_cut, f_cut}) ||
           piece_hit(w, k, is_main, (struct piece){!first, t_cut, f_cut, t_exit, f_out});
}

/* Is the ray between t0 and t1 clear of lowest..highest? */
static inline bool passes(const struct walk *w, double t0, double t1, double lowest, double highest)
{
    double z0 = w->z0 + w->dz * t0, z1 = w->z0 + w->dz * t1;
    double low = z0 < z1 ? z0 : z1, high = z0 < z1 ? z1 : z0;

    return low - w->pad_m > highest || high + w->pad_m < lowest;
}

static void trace_cell(struct walk *w)
{
    struct ray_trace *trace = w->trace;

    if (trace->cell_count < trace->cell_capacity) {
        trace->cells[trace->cell_count][0] = (uint32_t)w->column;
        trace->cells[trace->cell_count][1] = (uint32_t)w->row;
    }
    trace->cell_count++;
}

/*
 * The present cell, its samples at `at`, between w->t and t_exit; exit tells through which line it
 * is left.
 */
static bool cell_hit(struct walk *w, const float *at, double t_exit, enum entry exit)
{
    struct corners k = {at[0], at[1], at[TILE_SAMPLES], at[TILE_SAMPLES + 1]};
    double f_in = NAN, f_out = NAN;

    if (w->entry != ENTRY_START)
        f_in = f_on_edge(w, &k, w->t, w->entry == ENTRY_U,
                         w->entry == ENTRY_U ? w->du < 0 : w->dv < 0);
    if (exit != ENTRY_START)
        f_out = f_on_edge(w, &k, t_exit, exit == ENTRY_U, exit == ENTRY_U ? w->du > 0 : w->dv > 0);
    return cell_pieces(w, &k, cell_is_main(w->field, (uint32_t)w->column, (uint32_t)w->row), t_exit,
                       f_in, f_out);
}

/* ---- from cell to cell -------------------------------------------------------------------------
 */

struct exit {
    double t;
    enum entry line; /* ENTRY_START: the ray ends inside */
};

/*
 * Where the ray leaves the node of 2^level cells that holds the present cell. The field's own
 * border is no line to cross: there the ray ends at t_end, a rounding behind the border, so that
 * what is aimed exactly at the border is not lost.
 */
static inline struct exit node_exit(const struct walk *w, uint32_t level)
{
    struct exit e = {w->t_end, ENTRY_START};

    if (w->du != 0) {
        int64_t k = ((w->column >> level) + (w->du > 0)) << level;
        double t = crossing_u(w, k);

        if (t <= e.t && k > 0 && k < w->field->cell_cols)
            e = (struct exit){t, ENTRY_U};
    }
    if (w->dv != 0) {
        int64_t k = ((w->row >> level) + (w->dv > 0)) << level;
        double t = crossing_v(w, k);

        if ((t < e.t || (t == e.t && e.line == ENTRY_START)) && k > 0 && k < w->field->cell_rows)
            e = (struct exit){t, ENTRY_V};
    }
    if (e.t < w->t)
        e.t = w->t;
    return e;
}

/* The last of a node's 2^level columns or rows that the field has. */
static inline int64_t node_last(int64_t first, uint32_t level, uint32_t cells)
{
    int64_t last = first + ((int64_t)1 << level) - 1;

    return last < cells ? last : (int64_t)cells - 1;
}

/*
 * The column the ray is in when it leaves a node by a v line at t: every u line with
 * crossing_u <= t lies behind. A tie went to u.
 */
static int64_t column_at(const struct walk *w, double t, uint32_t level)
{
    int64_t low = (w->column >> level) << level;
    int64_t high = node_last(low, level, w->field->cell_cols);
    int64_t c = (int64_t)floor(fmin(fmax(w->u0 + w->du * t, (double)low), (double)high));

    if (w->du > 0) {
        c = c < w->column ? w->column : c;
        while (c > w->column && !(crossing_u(w, c) <= t))
            c--;
        while (c < high && crossing_u(w, c + 1) <= t)
            c++;
    } else if (w->du < 0) {
        c = c > w->column ? w->column : c;
        while (c < w->column && !(crossing_u(w, c + 1) <= t))
            c++;
        while (c > low && crossing_u(w, c) <= t)
            c--;
    } else {
        c = w->column;
    }
    return c;
}

/* Likewise the row when it leaves by a u line: v lines with crossing_v < t lie behind. */
static int64_t row_at(const struct walk *w, double t, uint32_t level)
{
    int64_t low = (w->row >> level) << level;
    int64_t high = node_last(low, level, w->field->cell_rows);
    int64_t r = (int64_t)floor(fmin(fmax(w->v0 + w->dv * t, (double)low), (double)high));

    if (w->dv > 0) {
        r = r < w->row ? w->row : r;
        while (r > w->row && !(crossing_v(w, r) < t))
            r--;
        while (r < high && crossing_v(w, r + 1) < t)
            r++;
    } else if (w->dv < 0) {
        r = r > w->row ? w->row : r;
        while (r < w->row && !(crossing_v(w, r + 1) < t))
            r++;
        while (r > low && crossing_v(w, r) < t)
            r--;
    } else {
        r = w->row;
    }
    return r;
}

/* Moves over the node's border; false when the ray ends inside. */
static bool node_leave(struct walk *w, struct exit e, uint32_t level)
{
    if (e.line == ENTRY_START)
        return false;
    if (e.line == ENTRY_U) {
        w->row = row_at(w, e.t, level);
        w->column = (((w->column >> level) + (w->du > 0)) << level) - (w->du < 0);
    } else {
        w->column = column_at(w, e.t, level);
        w->row = (((w->row >> level) + (w->dv > 0)) << level) - (w->dv < 0);
    }
    w->t = e.t;
    w->entry = e.line;
    return true;
}

/* Where the next grid line in the ray's direction is crossed; never at the field's border. */
static inline double next_crossing(double d, double origin, double inv, int64_t cell,
                                   uint32_t cells)
{
    int64_t k = cell + (d > 0);

    return d == 0 || k <= 0 || k >= cells ? INFINITY : ((double)k - origin) * inv;
}

static inline double min4(const float *at)
{
    struct bounds b = bounds_add(bounds_add(BOUNDS_EMPTY, at[0]), at[1]);

    return (double)bounds_add(bounds_add(b, at[TILE_SAMPLES]), at[TILE_SAMPLES + 1]).min;
}

static inline double max4(const float *at)
{
    struct bounds b = bounds_add(bounds_add(BOUNDS_EMPTY, at[0]), at[1]);

    return (double)bounds_add(bounds_add(b, at[TILE_SAMPLES]), at[TILE_SAMPLES + 1]).max;
}

/*
 * Cell by cell through one leaf. The same steps as node_exit and node_leave at level 0, with what
 * the loop needs in registers; a cell that the ray passes above or below costs no more than its
 * four samples.
 */
static bool leaf_hit(struct walk *w, bool *is_over)
{
    const struct heightfield *field = w->field;
    const double du = w->du, dv = w->dv, dz = w->dz, z0 = w->z0, t_end = w->t_end, pad = w->pad_m;
    const int step_u = du > 0 ? 1 : -1, step_v = dv > 0 ? 1 : -1;
    const uint32_t shift = field->leaf_shift;
    const int64_t leaf_column = w->column >> shift, leaf_row = w->row >> shift;
    const float *at = heightfield_tile(field, (uint32_t)w->column, (uint32_t)w->row)->samples +
                      (size_t)(w->row & (TILE_CELLS - 1)) * TILE_SAMPLES +
                      (w->column & (TILE_CELLS - 1));
    double t_u = next_crossing(du, w->u0, w->inv_du, w->column, field->cell_cols);
    double t_v = next_crossing(dv, w->v0, w->inv_dv, w->row, field->cell_rows);
    double z_in = z0 + dz * w->t;

    do {
        enum entry line = t_u <= t_v ? ENTRY_U : ENTRY_V;
        double t_exit = t_u <= t_v ? t_u : t_v;

        if (!(t_exit <= t_end)) {
            line = ENTRY_START;
            t_exit = t_end;
        }
        t_exit = t_exit < w->t ? w->t : t_exit;
        double z_out = z0 + dz * t_exit;
        double low = z_in < z_out ? z_in : z_out, high = z_in < z_out ? z_out : z_in;

        if (w->trace != NULL)
            trace_cell(w);
        if (!(low - pad > max4(at) || high + pad < min4(at)) && cell_hit(w, at, t_exit, line))
            return true;
        if (line == ENTRY_START) {
            *is_over = true;
            return false;
        }
        if (line == ENTRY_U) {
            w->column += step_u;
            at += step_u;
            t_u = next_crossing(du, w->u0, w->inv_du, w->column, field->cell_cols);
        } else {
            w->row += step_v;
            at += step_v * TILE_SAMPLES;
            t_v = next_crossing(dv, w->v0, w->inv_dv, w->row, field->cell_rows);
        }
        w->t = t_exit;
        w->entry = line;
        z_in = z_out;
    } while (w->column >> shift == leaf_column && w->row >> shift == leaf_row);
    return false;
}

static void trace_box(struct walk *w, uint32_t level, struct bounds b, bool is_entered)
{
    struct ray_trace *trace = w->trace;
    const struct heightfield_spec *s = &w->field->spec;
    uint32_t column = (uint32_t)w->column >> level, row = (uint32_t)w->row >> level;
    uint32_t c0 = column << level, r0 = row << level;
    double c1 = fmin((double)c0 + (double)(1u << level), w->field->cell_cols);
    double r1 = fmin((double)r0 + (double)(1u << level), w->field->cell_rows);

    if (trace->box_count < trace->box_capacity)
        trace->boxes[trace->box_count] = (struct ray_trace_box){
            .level = level,
            .column = column,
            .row = row,
            .bounds = {{s->origin_x_m + c0 * s->spacing_x_m, s->origin_y_m + r0 * s->spacing_y_m,
                        (double)b.min},
                       {s->origin_x_m + c1 * s->spacing_x_m, s->origin_y_m + r1 * s->spacing_y_m,
                        (double)b.max}},
            .entered = is_entered,
        };
    trace->box_count++;
}

/* The level to ask next: one up where the ray has just come upon a larger node. */
static inline uint32_t level_after_leaving(const struct walk *w, uint32_t level)
{
    int64_t k = w->entry == ENTRY_U ? w->column + (w->du < 0) : w->row + (w->dv < 0);

    return level < w->field->level_max && (k & ((int64_t)1 << level)) == 0 ? level + 1 : level;
}

static bool walk_run(struct walk *w)
{
    uint32_t level = w->field->level_max;
    bool is_over = false;

    while (!is_over) {
        struct exit e = node_exit(w, level);
        struct bounds b = heightfield_node(w->field, level, (uint32_t)w->column, (uint32_t)w->row);
        bool is_entered = !passes(w, w->t, e.t, (double)b.min, (double)b.max);

        if (w->trace != NULL)
            trace_box(w, level, b, is_entered);
        if (!is_entered) {
            is_over = !node_leave(w, e, level);
            level = level_after_leaving(w, level);
        } else if (level > w->field->leaf_shift) {
            level--;
        } else {
            if (leaf_hit(w, &is_over))
                return true;
            level = level_after_leaving(w, level);
        }
    }
    return false;
}

/* ---- the ray as a whole ------------------------------------------------------------------------
 */

struct interval {
    double t0, t1;
    int entry_axis; /* 0, 1, 2; -1: the origin is inside */
};

/*
 * Cuts the interval by one slab; false when nothing is left. The ray enters at the face itself and
 * leaves `pad` behind the other one: entries stay exact, and rounding loses no ray at an edge.
 */
static bool slab(struct interval *i, int axis, double origin, double direction, double low,
                 double high, double pad)
{
    if (direction == 0)
        return origin >= low - pad && origin <= high + pad;
    double in = ((direction > 0 ? low : high) - origin) / direction;
    double out = ((direction > 0 ? high + pad : low - pad) - origin) / direction;

    if (in > i->t0) {
        i->t0 = in;
        i->entry_axis = axis;
    }
    if (out < i->t1)
        i->t1 = out;
    return i->t0 <= i->t1;
}

/*
 * Moves the walk's origin to where the ray enters the field's box, cuts t_end, gives t of the
 * entry. The box is a few roundings larger than the field, so that a flat field and a ray through
 * an outermost vertex are not lost; the walk itself clamps to the cells.
 */
static bool enter_box(struct walk *w, double *t_entry)
{
    const struct heightfield_spec *s = &w->field->spec;
    double cols = w->field->cell_cols, rows = w->field->cell_rows;
    struct bounds z = heightfield_node(w->field, w->field->level_max, 0, 0);
    double eps = 4 * DBL_EPSILON;
    double pad_u = eps * (cols + fabs(w->u0) + fabs(s->origin_x_m / s->spacing_x_m));
    double pad_v = eps * (rows + fabs(w->v0) + fabs(s->origin_y_m / s->spacing_y_m));
    double low = (double)z.min, high = (double)z.max;
    double pad_z = 1e-9 * (1 + fabs(low) + fabs(high)) + eps * fabs(w->z0);
    struct interval i = {0, w->t_end, -1};

    if (!(low <= high) || !slab(&i, 0, w->u0, w->du, 0, cols, pad_u) ||
        !slab(&i, 1, w->v0, w->dv, 0, rows, pad_v) || !slab(&i, 2, w->z0, w->dz, low, high, pad_z))
        return false;
    if (!isfinite(i.t0)) /* so far away that no t reaches the box */
        return false;
    *t_entry = i.t0;
    if (i.t0 > 0) {
        w->u0 = i.entry_axis == 0 ? (w->du > 0 ? 0 : cols) : w->u0 + w->du * i.t0;
        w->v0 = i.entry_axis == 1 ? (w->dv > 0 ? 0 : rows) : w->v0 + w->dv * i.t0;
        w->z0 = i.entry_axis == 2 ? (w->dz > 0 ? low : high) : w->z0 + w->dz * i.t0;
    }
    w->u0 = fmin(fmax(w->u0, 0), cols);
    w->v0 = fmin(fmax(w->v0, 0), rows);
    if (i.entry_axis == 0)
        w->t_begin = -pad_u / fabs(w->du);
    if (i.entry_axis == 1)
        w->t_begin = -pad_v / fabs(w->dv);
    w->t_end = i.t1 - i.t0;
    w->pad_m = eps * (fabs(low) + fabs(high) + fabs(w->z0) + fabs(w->dz * w->t_end));
    return true;
}

/*
 * Straight up or down: the triangle under the origin (T, section 3.6). A trace shows the field's
 * own box, which the origin lies over or under, and this cell.
 */
static bool vertical_hit(struct walk *w, struct ground_triangle *ground)
{
    heightfield_triangle_at(w->field, w->u0, w->v0, ground);
    w->column = ground->column;
    w->row = ground->row;
    if (w->trace != NULL) {
        uint32_t top = w->field->level_max;

        trace_box(w, top, heightfield_node(w->field, top, ground->column, ground->row), true);
        trace_cell(w);
    }
    if (ground->triangle < 0)
        return false;
    w->hit_triangle = ground->triangle;
    w->hit_t = (ground->height_m - w->z0) / w->dz;
    return w->hit_t >= 0 && w->hit_t <= w->t_end;
}

/* Walks from a given first cell. */
static bool walk_from(struct walk *w, int64_t column, int64_t row)
{
    w->column = column;
    w->row = row;
    w->t = w->t_begin;
    w->entry = ENTRY_START;
    return walk_run(w);
}

/* Starts on a grid line and on the ground: then any of the triangles there may hold it. */
static bool starts_on_ground(struct walk *w)
{
    struct ground_triangle ground;

    heightfield_triangle_at(w->field, w->u0, w->v0, &ground);
    if (ground.triangle < 0 || !(fabs(ground.height_m - w->z0) <= w->pad_m))
        return false;
    w->column = ground.column;
    w->row = ground.row;
    w->hit_triangle = ground.triangle;
    w->hit_t = 0;
    return true;
}

/*
 * Walks; along a grid line on both sides of it. The nearer hit stays in w.
 */
static bool walk_all(struct walk *w)
{
    int64_t column = w->u0 < w->field->cell_cols ? (int64_t)w->u0 : w->field->cell_cols - 1;
    int64_t row = w->v0 < w->field->cell_rows ? (int64_t)w->v0 : w->field->cell_rows - 1;
    bool on_u = w->du == 0 && w->u0 == (double)column && column > 0;
    bool on_v = w->dv == 0 && w->v0 == (double)row && row > 0;
    if ((w->u0 == (double)column || w->v0 == (double)row) && starts_on_ground(w))
        return true;
    bool is_hit = walk_from(w, column, row);

    if (!on_u && !on_v)
        return is_hit;
    struct walk other = *w;

    other.t_end = is_hit ? w->hit_t : w->t_end;
    if (walk_from(&other, column - on_u, row - on_v) && (!is_hit || other.hit_t < w->hit_t)) {
        *w = other;
        return true;
    }
    return is_hit;
}

static void fill_hit(const struct walk *w, struct ray_hit *hit)
{
    uint32_t column = (uint32_t)w->column, row = (uint32_t)w->row;
    struct corners k = heightfield_corners(w->field, column, row);
    bool is_main = cell_is_main(w->field, column, row);
    const struct heightfield_spec *s = &w->field->spec;

    hit->point = (struct vec3){s->origin_x_m + (w->u0 + w->du * w->hit_t) * s->spacing_x_m,
                               s->origin_y_m + (w->v0 + w->dv * w->hit_t) * s->spacing_y_m,
                               w->z0 + w->dz * w->hit_t};
    hit->normal = triangle_normal(w->field, &k, is_main, w->hit_triangle);
    hit->cell[0] = column;
    hit->cell[1] = row;
    hit->triangle = w->hit_triangle;
}

bool heightfield_ray(const struct heightfield *field, const struct ray *ray, enum ray_mode mode,
                     struct ray_hit *hit, struct ray_trace *trace)
{
    const struct heightfield_spec *s = &field->spec;
    struct vec3 d = ray->direction;
    int exponent, more;
    struct ground_triangle ground;
    double t_entry = 0;

    (void)mode; /* the first hit is found first: there is no earlier place to stop */
    /*
     * t is scaled by a power of two so that the longest component is near 1, first in metres, so
     * that nothing overflows, then in cells: exact both ways.
     */
    frexp(fmax(fmax(fabs(d.x), fabs(d.y)), fabs(d.z)), &exponent);
    d = (struct vec3){ldexp(d.x, -exponent) / s->spacing_x_m,
                      ldexp(d.y, -exponent) / s->spacing_y_m, ldexp(d.z, -exponent)};
    frexp(fmax(fmax(fabs(d.x), fabs(d.y)), fabs(d.z)), &more);
    exponent += more;
    struct walk w = {
        .field = field,
        .trace = trace,
        .u0 = (ray->origin.x - s->origin_x_m) / s->spacing_x_m,
        .v0 = (ray->origin.y - s->origin_y_m) / s->spacing_y_m,
        .z0 = ray->origin.z,
        .du = ldexp(d.x, -more),
        .dv = ldexp(d.y, -more),
        .dz = ldexp(d.z, -more),
        .t_end = ldexp(ray->t_max, exponent),
    };

    if (!isfinite(w.u0) || !isfinite(w.v0) || !vec3_is_finite(d))
        return false;         /* further away than float64 counts cells */
    if (fabs(w.du) < DBL_MIN) /* would not move by a cell within any finite t */
        w.du = 0;
    if (fabs(w.dv) < DBL_MIN)
        w.dv = 0;
    bool is_vertical = w.du == 0 && w.dv == 0;

    if (is_vertical) {
        struct vec2 at = {ray->origin.x, ray->origin.y};

        if (!heightfield_to_grid(field, at, &w.u0, &w.v0) || !vertical_hit(&w, &ground))
            return false;
    } else {
        if (!enter_box(&w, &t_entry))
            return false;
        w.inv_du = w.du != 0 ? 1 / w.du : 0;
        w.inv_dv = w.dv != 0 ? 1 / w.dv : 0;
        if (!walk_all(&w))
            return false;
    }
    double t = ldexp(fmax(t_entry + w.hit_t, 0), -exponent);

    if (!isfinite(t))
        return false;
    fill_hit(&w, hit);
    if (is_vertical)
        hit->point = (struct vec3){ray->origin.x, ray->origin.y, ground.height_m};
    hit->t = t < ray->t_max ? t : ray->t_max;
    return true;
}
