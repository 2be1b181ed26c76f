/*
 * Rays against a heightfield.
 *
 * Text T (Sjöstrand 2017, chapter 3): descend the min/max pyramid in order of entry, then walk the
 * cells under the ray inside a leaf, and test the triangles of those cells only. Three things are
 * done otherwise.
 *
 * 1. No list, no sort. The ray is at cell (c, r) at parameter t. It tests the largest node that
 *    begins there and is worth a test; if the ray passes above or below it, it jumps to the cell
 *    where it leaves the node, else it tests a smaller one (Tevs, Ihrke, Seidel: Maximum Mipmaps
 *    for Fast, Accurate, and Scalable Dynamic Height Field Rendering, 2008, does so for images).
 *    The order of entry follows, and nothing is allocated.
 *
 * 2. An exact walk. T walks by Bresenham's line, which skips cells whose corner the line cuts. Here
 *    a cell is left through the grid line that comes first: t_u(k) = (k - u0) / du is one monotone
 *    function of k, t_v(k) another, and a tie goes to u. So the order of all crossings is total,
 *    the path through the cells is the same however it was reached, jumps included.
 *
 * 3. Signs instead of triangle tests. Over the ground line, f(t) = z of the ray - height of the
 *    surface is linear inside each triangle. f is evaluated where the ground line crosses the edges
 *    of the triangles, only from the edge's two samples: both triangles at an edge see the same
 *    number, so a change of sign cannot fall between them. Möller-Trumbore per triangle leaks there
 *    by rounding, and tests each shared edge twice.
 *
 * Triangles are closed: f = 0 (within the rounding of z) is a hit. A ray whose ground line runs
 * along a grid line is walked on both sides of it, since beside a hole only one of them has
 * triangles. Beside the path only a point can be met: a vertex whose one triangle is in the cell
 * across a hole, and, by rounding, the surface that the ray touches where it begins, ends or leaves
 * the field. So there (ray_touches), and at the exit of cells with a missing sample, the place is
 * put onto the grid line that it is on but for rounding, and all triangles that hold it are tested.
 *
 * This walk is the scalar level (simd.h), the one that a trace shows, and the walk that rays along
 * a grid line take. Where the machine has AVX2, ray_single.c and ray_stream.c find the cells by
 * wide nodes; the arithmetic that decides in a cell is here and in ray_walk.h for all, so that all
 * give the same bits.
 *
 * Invariants: t never decreases; c and r only move in the ray's direction; each jump leaves the
 * node it tested. So the walk ends after at most cols + rows cells.
 *
 * Far origins: the ray is moved to where it enters the field's box (the coordinate on the entry
 * face is then exact), so that the walk works with numbers of the field's size.
 */
#include "terrain/field_ray/ray.h"

#include "terrain/kernels/kernels.h"
#include "terrain/field_ray/ray_ends.h"

#define FAR_M 1e6 /* t of a surface so far away is within RAY_NUMBER_MAX */

bool ray_is_valid(const struct ray *ray)
{
    return ray_fault(ray) == NULL;
}

/* No number of it is beyond RAY_NUMBER_MAX, and none is none. */
static inline bool is_moderate(struct vec3 v)
{
    return fabs(v.x) <= RAY_NUMBER_MAX && fabs(v.y) <= RAY_NUMBER_MAX &&
           fabs(v.z) <= RAY_NUMBER_MAX;
}

static inline double largest(struct vec3 v)
{
    return fmax(fabs(v.x), fmax(fabs(v.y), fabs(v.z)));
}

const char *ray_fault(const struct ray *ray)
{
    struct vec3 d = ray->direction;
    double along = largest(d);

    if (!(ray->t_max >= 0))
        return "t_max is negative";
    if (!is_moderate(ray->origin))
        return "origin has a coordinate beyond 1e307";
    if (!is_moderate(d))
        return "direction has a number beyond 1e307";
    if (along == 0)
        return "direction is the zero vector";
    if (!(fmax(largest(ray->origin), FAR_M) <= along * RAY_NUMBER_MAX))
        return "direction is too short: t would be beyond 1e307";
    return NULL;
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

/* ---- from cell to cell ----------------------------------------------------------------------- */

struct exit {
    double t;
    enum entry line; /* ENTRY_START: the ray ends inside */
};

/* By the line that comes first; a tie goes to u. Not before t, where the ray is. */
static inline struct exit first_exit(double t_u, double t_v, double t, double t_end)
{
    struct exit e = {t_u <= t_v ? t_u : t_v, t_u <= t_v ? ENTRY_U : ENTRY_V};

    if (!(e.t <= t_end))
        e = (struct exit){t_end, ENTRY_START};
    e.t = e.t < t ? t : e.t;
    return e;
}

/* Of the field's lines those that the ray crosses. */
struct lines {
    uint64_t u, v;
};

static inline struct lines lines_of(const struct walk *w)
{
    return (struct lines){lines_crossed(w->du, w->field->cell_cols),
                          lines_crossed(w->dv, w->field->cell_rows)};
}

/*
 * Where the ray leaves the node of 2^level cells that holds the present cell. The field's own
 * border is no line to cross: there the ray ends at t_end, a rounding after the border, so that
 * a ray aimed exactly at the border is not lost.
 */
static inline struct exit node_exit(const struct walk *w, uint32_t level, struct lines lines)
{
    int64_t line_u = ((w->column >> level) + (w->du > 0)) << level;
    int64_t line_v = ((w->row >> level) + (w->dv > 0)) << level;
    double t_u = next_crossing(line_u, w->u0, w->inv_du, lines.u);
    double t_v = next_crossing(line_v, w->v0, w->inv_dv, lines.v);

    return first_exit(t_u, t_v, w->t, w->t_end);
}

/* The last of a node's 2^level columns or rows that the field has. */
static inline int64_t node_last(int64_t first, uint32_t level, uint32_t cells)
{
    int64_t last = first + ((int64_t)1 << level) - 1;

    return last < cells ? last : (int64_t)cells - 1;
}

/* The column or row of a place, of those from 0 <= low to high. */
static inline int64_t cell_between(double place, int64_t low, int64_t high)
{
    place = place > (double)low ? place : (double)low;
    return (int64_t)(place < (double)high ? place : (double)high);
}

/*
 * The column the ray is in when it leaves a node by a v line at t: every u line with
 * crossing_u <= t is passed. A tie went to u.
 */
static int64_t column_at(const struct walk *w, double t, uint32_t level)
{
    int64_t low = (w->column >> level) << level;
    int64_t high = node_last(low, level, w->field->cell_cols);
    int64_t c = cell_between(w->u0 + w->du * t, low, high);

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

/* Likewise the row when it leaves by a u line: v lines with crossing_v < t are passed. */
static int64_t row_at(const struct walk *w, double t, uint32_t level)
{
    int64_t low = (w->row >> level) << level;
    int64_t high = node_last(low, level, w->field->cell_rows);
    int64_t r = cell_between(w->v0 + w->dv * t, low, high);

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
static inline __attribute__((always_inline)) bool node_leave(struct walk *w, struct exit e,
                                                             uint32_t level)
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
    const int64_t stride = field->stride;
    const float *at = heightfield_at(field, (uint32_t)w->column, (uint32_t)w->row);
    const struct lines lines = lines_of(w);
    double t_u = next_crossing(w->column + (du > 0), w->u0, w->inv_du, lines.u);
    double t_v = next_crossing(w->row + (dv > 0), w->v0, w->inv_dv, lines.v);
    double z_in = z0 + dz * w->t;

    do {
        struct exit e = first_exit(t_u, t_v, w->t, t_end);
        enum entry line = e.line;
        double t_exit = e.t;
        double z_out = z0 + dz * t_exit;
        double low = z_in < z_out ? z_in : z_out, high = z_in < z_out ? z_out : z_in;

        if (w->trace != NULL)
            trace_cell(w);
        struct bounds b = cell_bounds(at, (size_t)stride);

        if (!(low - pad > (double)b.max || high + pad < (double)b.min) &&
            cell_hit(w, at, t_exit, line))
            return true;
        if (line == ENTRY_START) {
            *is_over = true;
            return false;
        }
        if (line == ENTRY_U) {
            w->column += step_u;
            at += step_u;
            t_u = next_crossing(w->column + (du > 0), w->u0, w->inv_du, lines.u);
        } else {
            w->row += step_v;
            at += step_v * stride;
            t_v = next_crossing(w->row + (dv > 0), w->v0, w->inv_dv, lines.v);
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

/* The next level: one up where the ray has just come upon a larger node. */
static inline uint32_t level_after_leaving(const struct walk *w, uint32_t level)
{
    int64_t k = w->entry == ENTRY_U ? w->column + (w->du < 0) : w->row + (w->dv < 0);

    return level < w->field->level_max && (k & ((int64_t)1 << level)) == 0 ? level + 1 : level;
}

/*
 * The level of the smallest node that holds the ray's way, but for rounding: over its border the
 * walk goes on as over any other. A trace shows all from the root on.
 */
static inline uint32_t first_level(const struct walk *w)
{
    const struct heightfield *field = w->field;
    uint32_t column = (uint32_t)clamped(w->u0 + w->du * w->t_end, field->cell_cols - 1);
    uint32_t row = (uint32_t)clamped(w->v0 + w->dv * w->t_end, field->cell_rows - 1);
    uint32_t apart = (column ^ (uint32_t)w->column) | (row ^ (uint32_t)w->row);
    uint32_t level = apart == 0 ? 0 : 32 - (uint32_t)__builtin_clz(apart);

    if (w->trace != NULL)
        return field->level_max;
    return level > field->leaf_shift ? level : field->leaf_shift;
}

static bool walk_run(struct walk *w)
{
    const struct lines lines = lines_of(w);
    uint32_t level = first_level(w);
    bool is_over = false;

    while (!is_over) {
        struct exit e = node_exit(w, level, lines);
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

/* ---- the ray as a whole ---------------------------------------------------------------------- */

/*
 * Straight up or down: the triangle under the origin (T, section 3.6). A trace shows the field's
 * own box, which the origin lies over or under, and this cell.
 */
bool ray_vertical_hit(struct walk *w, const struct ray *ray)
{
    struct vec2 at = {ray->origin.x, ray->origin.y};
    struct ground_triangle ground;

    if (!heightfield_to_grid(w->field, at, &w->u0, &w->v0))
        return false;
    heightfield_triangle_at(w->field, w->u0, w->v0, &ground);
    w->column = ground.column;
    w->row = ground.row;
    if (w->trace != NULL) {
        uint32_t top = w->field->level_max;

        trace_box(w, top, heightfield_node(w->field, top, ground.column, ground.row), true);
        trace_cell(w);
    }
    if (ground.triangle < 0)
        return false;
    w->hit_triangle = ground.triangle;
    w->ground_m = ground.height_m;
    w->hit_t = (ground.height_m - w->z0) / w->dz;
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

/* A place in cells, on the grid line that it is on but for rounding. */
static double on_grid(double x, double cells, double slack)
{
    double line = (double)(int64_t)(x + 0.5);

    return clamped(fabs(x - line) <= slack ? line : x, cells);
}

/* The greatest difference of a cell's samples. */
static double corners_range(const struct corners *k)
{
    float high = fmaxf(fmaxf(k->h00, k->h10), fmaxf(k->h01, k->h11));
    float low = fminf(fminf(k->h00, k->h10), fminf(k->h01, k->h11));

    return (double)high - (double)low;
}

bool ray_touches(struct walk *w, double t)
{
    const struct heightfield *field = w->field;
    double cols = field->cell_cols, rows = field->cell_rows;
    double slack = place_slack(field);
    struct ground_triangle ground;

    heightfield_triangle_at(field, on_grid(w->u0 + w->du * t, cols, slack),
                            on_grid(w->v0 + w->dv * t, rows, slack), &ground);
    if (ground.triangle < 0 || !(fabs(ground.height_m - (w->z0 + w->dz * t)) <=
                                 w->pad_m + slack * corners_range(&ground.corners)))
        return false;
    w->column = ground.column;
    w->row = ground.row;
    w->hit_triangle = ground.triangle;
    w->hit_t = t;
    return true;
}

/* t_end is after the border by more than the height of the ray may be wrong. */
bool ray_touches_last(struct walk *w)
{
    double t = w->t_end;

    if (w->du != 0)
        t = fmin(t, crossing_u(w, w->du > 0 ? w->field->cell_cols : 0));
    if (w->dv != 0)
        t = fmin(t, crossing_v(w, w->dv > 0 ? w->field->cell_rows : 0));
    return ray_touches(w, fmax(t, 0));
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

/* trace may be NULL. */
static bool ray_traced(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit,
                       struct ray_trace *trace)
{
    struct walk w;
    enum ray_begin begin = ray_begin(&w, field, ray, trace);

    return begin != RAY_BEGIN_MISS && (begin == RAY_BEGIN_HIT || ray_walk(&w)) &&
           ray_end(&w, ray, hit);
}

bool ray_exact(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    return ray_traced(field, ray, hit, NULL);
}

void rays_exact(const struct heightfield *field, const struct ray *rays, size_t count,
                struct ray_hit *hits)
{
    for (size_t i = 0; i < count; i++)
        if (!ray_exact(field, &rays[i], &hits[i]))
            hits[i].t = INFINITY;
}

bool heightfield_ray(const struct heightfield *field, const struct ray *ray, enum ray_mode mode,
                     struct ray_hit *hit, struct ray_trace *trace)
{
    (void)mode; /* the first hit is found first: there is no earlier place to stop */
    if (trace != NULL || field->is_far)
        return ray_traced(field, ray, hit, trace);
    return kernels()->ray(field, ray, hit);
}

void heightfield_rays(const struct heightfield *field, const struct ray *rays, size_t count,
                      struct ray_hit *hits)
{
    if (field->is_far)
        rays_exact(field, rays, count, hits);
    else
        kernels()->rays(field, rays, count, hits);
}
