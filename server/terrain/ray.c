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
 * This walk is the scalar level (simd.h), the one that a trace shows, and what rays along a grid
 * line take. Where the machine has vectors, ray_avx2.c and ray_avx512.c find the cells instead, by
 * wide nodes; what decides in a cell is here and in ray_walk.h for all, so that all give the same
 * bits.
 *
 * Invariants: t never decreases; c and r only move in the ray's direction; each jump leaves the
 * node it asked. So the walk ends after at most cols + rows cells.
 *
 * Far origins: the ray is moved to where it enters the field's box (the coordinate on the entry
 * face is then exact), so that the walk works with numbers of the field's size.
 */
#include "terrain/ray.h"

#include "terrain/ray_walk.h"
#include "terrain/simd.h"

#include <string.h>

/* Heights up to here leave float32 room for the arithmetic of wide nodes. */
#define WIDE_Z_MAX_M 1e15

bool ray_is_valid(const struct ray *ray)
{
    double m = fmax(fabs(ray->direction.x), fmax(fabs(ray->direction.y), fabs(ray->direction.z)));

    return vec3_is_finite(ray->origin) && vec3_is_finite(ray->direction) && m >= DBL_MIN &&
           ray->t_max >= 0;
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
static inline bool slab(struct interval *i, int axis, double origin, double direction, double inv,
                        double low, double high, double pad)
{
    if (direction == 0)
        return origin >= low - pad && origin <= high + pad;
    double in = ((direction > 0 ? low : high) - origin) * inv;
    double out = ((direction > 0 ? high + pad : low - pad) - origin) * inv;

    i->entry_axis = in > i->t0 ? axis : i->entry_axis;
    i->t0 = in > i->t0 ? in : i->t0;
    i->t1 = out < i->t1 ? out : i->t1;
    return i->t0 <= i->t1;
}

static inline double clamped(double x, double high)
{
    x = x > 0 ? x : 0;
    return x < high ? x : high;
}

/*
 * Moves the walk's origin to where the ray enters the field's box, cuts t_end, gives t of the
 * entry. The box is a few roundings larger than the field, so that a flat field and a ray through
 * an outermost vertex are not lost; the walk itself clamps to the cells.
 */
static bool enter_box(struct walk *w)
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

    if (!(low <= high) || !slab(&i, 0, w->u0, w->du, w->inv_du, 0, cols, pad_u) ||
        !slab(&i, 1, w->v0, w->dv, w->inv_dv, 0, rows, pad_v) ||
        !slab(&i, 2, w->z0, w->dz, 1 / w->dz, low, high, pad_z))
        return false;
    if (!isfinite(i.t0)) /* so far away that no t reaches the box */
        return false;
    w->t_entry = i.t0;
    w->z = z;
    if (i.t0 > 0) {
        w->u0 = i.entry_axis == 0 ? (w->du > 0 ? 0 : cols) : w->u0 + w->du * i.t0;
        w->v0 = i.entry_axis == 1 ? (w->dv > 0 ? 0 : rows) : w->v0 + w->dv * i.t0;
        w->z0 = i.entry_axis == 2 ? (w->dz > 0 ? low : high) : w->z0 + w->dz * i.t0;
    }
    w->u0 = clamped(w->u0, cols);
    w->v0 = clamped(w->v0, rows);
    if (i.entry_axis == 0)
        w->t_begin = -pad_u * fabs(w->inv_du);
    if (i.entry_axis == 1)
        w->t_begin = -pad_v * fabs(w->inv_dv);
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
    w->ground_m = ground->height_m;
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

/* Does the ground line run along a grid line, beside which another cell lies? */
static inline bool on_u_line(const struct walk *w)
{
    return w->du == 0 && w->u0 == (double)w->first_column && w->first_column > 0;
}

static inline bool on_v_line(const struct walk *w)
{
    return w->dv == 0 && w->v0 == (double)w->first_row && w->first_row > 0;
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
bool ray_walk(struct walk *w)
{
    bool on_u = on_u_line(w), on_v = on_v_line(w);
    bool is_hit = walk_from(w, w->first_column, w->first_row);

    if (!on_u && !on_v)
        return is_hit;
    struct walk other = *w;

    other.t_end = is_hit ? w->hit_t : w->t_end;
    if (walk_from(&other, w->first_column - on_u, w->first_row - on_v) &&
        (!is_hit || other.hit_t < w->hit_t)) {
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

/* frexp's exponent; of zero 0. */
static inline int exponent_of(double x)
{
    uint64_t bits;
    int exponent;

    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0 || exponent == 0x7ff)
        frexp(x, &exponent);
    else
        exponent -= 1022;
    return exponent;
}

/* ldexp, by one product where the power is a number: both round once. */
static inline double scaled(double x, int exponent)
{
    if (exponent < -1000 || exponent > 1000)
        return ldexp(x, exponent);
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;

    memcpy(&power, &bits, sizeof power);
    return x * power;
}

static inline double longest(struct vec3 d)
{
    double x = fabs(d.x), y = fabs(d.y), z = fabs(d.z);

    x = x > y ? x : y;
    return x > z ? x : z;
}

/*
 * Puts the ray into grid coordinates. t is scaled by a power of two so that the longest component
 * is near 1, first in metres, so that nothing overflows, then in cells: exact both ways. False when
 * it is further away than float64 counts cells.
 */
static bool to_grid(struct walk *w, const struct ray *ray)
{
    const struct heightfield_spec *s = &w->field->spec;
    struct vec3 d = ray->direction;
    int exponent = exponent_of(longest(d));

    d = (struct vec3){scaled(d.x, -exponent) / s->spacing_x_m,
                      scaled(d.y, -exponent) / s->spacing_y_m, scaled(d.z, -exponent)};
    int more = exponent_of(longest(d));

    w->exponent = exponent + more;
    w->u0 = (ray->origin.x - s->origin_x_m) / s->spacing_x_m;
    w->v0 = (ray->origin.y - s->origin_y_m) / s->spacing_y_m;
    w->z0 = ray->origin.z;
    w->du = scaled(d.x, -more);
    w->dv = scaled(d.y, -more);
    w->dz = scaled(d.z, -more);
    w->t_begin = 0;
    w->t_end = scaled(ray->t_max, w->exponent);
    if (!isfinite(w->u0) || !isfinite(w->v0) || !vec3_is_finite(d))
        return false;
    if (fabs(w->du) < DBL_MIN) /* would not move by a cell within any finite t */
        w->du = 0;
    if (fabs(w->dv) < DBL_MIN)
        w->dv = 0;
    if (fabs(w->dz) < DBL_MIN && (w->du != 0 || w->dv != 0)) /* likewise within the field */
        w->dz = 0;
    return true;
}

enum ray_begin ray_begin(struct walk *w, const struct heightfield *field, const struct ray *ray,
                         struct ray_trace *trace)
{
    w->field = field;
    w->trace = trace;
    w->t_entry = 0;
    if (!to_grid(w, ray))
        return RAY_BEGIN_MISS;
    w->is_vertical = w->du == 0 && w->dv == 0;
    if (w->is_vertical) {
        struct vec2 at = {ray->origin.x, ray->origin.y};
        struct ground_triangle ground;

        return heightfield_to_grid(field, at, &w->u0, &w->v0) && vertical_hit(w, &ground)
                   ? RAY_BEGIN_HIT
                   : RAY_BEGIN_MISS;
    }
    w->inv_du = w->du != 0 ? 1 / w->du : 0;
    w->inv_dv = w->dv != 0 ? 1 / w->dv : 0;
    if (!enter_box(w))
        return RAY_BEGIN_MISS;
    w->first_column = w->u0 < field->cell_cols ? (int64_t)w->u0 : field->cell_cols - 1;
    w->first_row = w->v0 < field->cell_rows ? (int64_t)w->v0 : field->cell_rows - 1;
    if ((w->u0 == (double)w->first_column || w->v0 == (double)w->first_row) && starts_on_ground(w))
        return RAY_BEGIN_HIT;
    w->is_wide = !on_u_line(w) && !on_v_line(w) &&
                 fabs((double)w->z.min) + fabs((double)w->z.max) < WIDE_Z_MAX_M;
    return RAY_BEGIN_WALK;
}

bool ray_end(const struct walk *w, const struct ray *ray, struct ray_hit *hit)
{
    double t = w->t_entry + w->hit_t;

    t = scaled(t > 0 ? t : 0, -w->exponent);
    if (!isfinite(t))
        return false;
    fill_hit(w, hit);
    if (w->is_vertical)
        hit->point = (struct vec3){ray->origin.x, ray->origin.y, w->ground_m};
    hit->t = t < ray->t_max ? t : ray->t_max;
    return true;
}

bool heightfield_ray(const struct heightfield *field, const struct ray *ray, enum ray_mode mode,
                     struct ray_hit *hit, struct ray_trace *trace)
{
    enum simd_level level = trace == NULL ? simd_level() : SIMD_SCALAR;
    struct walk w;

    (void)mode; /* the first hit is found first: there is no earlier place to stop */
    if (level == SIMD_AVX512)
        return ray_alone_avx512(field, ray, hit);
    if (level == SIMD_AVX2)
        return ray_alone_avx2(field, ray, hit);
    enum ray_begin begin = ray_begin(&w, field, ray, trace);

    return begin != RAY_BEGIN_MISS && (begin == RAY_BEGIN_HIT || ray_walk(&w)) &&
           ray_end(&w, ray, hit);
}

static void rays_scalar(const struct heightfield *field, const struct ray *rays, size_t count,
                        struct ray_hit *hits)
{
    for (size_t i = 0; i < count; i++)
        if (!heightfield_ray(field, &rays[i], RAY_CLOSEST, &hits[i], NULL))
            hits[i].t = INFINITY;
}

void heightfield_rays(const struct heightfield *field, const struct ray *rays, size_t count,
                      struct ray_hit *hits)
{
    switch (simd_level()) {
    case SIMD_AVX512:
        rays_avx512(field, rays, count, hits);
        break;
    case SIMD_AVX2:
        rays_avx2(field, rays, count, hits);
        break;
    case SIMD_SCALAR:
        rays_scalar(field, rays, count, hits);
        break;
    }
}
