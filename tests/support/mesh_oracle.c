/*
 * The mesh oracle: see mesh_oracle.h. Slow and plain on purpose.
 */
#include "tests/support/mesh_oracle.h"

#include <float.h>

void oracle_axes(struct vec3 up, struct vec3 *east, struct vec3 *north)
{
    struct vec3 other = fabs(up.x) < 0.5 ? (struct vec3){1, 0, 0} : (struct vec3){0, 1, 0};

    *north = vec3_unit(vec3_cross(up, other));
    *east = vec3_cross(*north, up);
}

struct vec3 oracle_direction(struct random *random)
{
    for (;;) {
        struct vec3 v = {random_in(random, -1, 1), random_in(random, -1, 1),
                         random_in(random, -1, 1)};

        if (vec3_length(v) > 0.1 && vec3_length(v) < 1)
            return vec3_unit(v);
    }
}

/* ---- vertical lines ------------------------------------------------------------------------- */

static struct vec3 corner(const struct polygon_soup *soup, size_t polygon, uint32_t i)
{
    return soup->vertices[soup->corners[soup->starts[polygon] + i]];
}

static struct vec3 normal_of(const struct polygon_soup *soup, size_t polygon)
{
    uint32_t count = soup->starts[polygon + 1] - soup->starts[polygon];
    struct vec3 sum = {0, 0, 0}, a = corner(soup, polygon, 0);

    for (uint32_t i = 1; i + 1 < count; i++)
        sum = vec3_add(sum, vec3_cross(vec3_sub(corner(soup, polygon, i), a),
                                       vec3_sub(corner(soup, polygon, i + 1), a)));
    return sum;
}

/*
 * How deep the line through the point is inside the polygon seen along up; below -tolerance when it
 * is farther outside than that.
 */
static double depth_in(const struct polygon_soup *soup, size_t polygon, struct vec3 up,
                       struct vec3 point, double side, double tolerance)
{
    const uint32_t first = soup->starts[polygon], end = soup->starts[polygon + 1];
    struct vec3 a = soup->vertices[soup->corners[end - 1]];
    double depth = INFINITY;

    for (uint32_t i = first; i < end && depth >= -tolerance; i++) {
        struct vec3 b = soup->vertices[soup->corners[i]];
        struct vec3 inward = vec3_scale(vec3_cross(up, vec3_sub(b, a)), side);
        double length = vec3_length(inward);

        if (length > 0)
            depth = fmin(depth, vec3_dot(inward, vec3_sub(point, a)) / length);
        a = b;
    }
    return depth;
}

uint32_t oracle_column(const struct polygon_soup *soup, struct vec3 up, struct vec3 point,
                       double tolerance, struct oracle_crossing *out)
{
    uint32_t found = 0;

    for (size_t i = 0; i < soup->polygon_count; i++) {
        struct vec3 n = normal_of(soup, i);
        double rise = vec3_dot(n, up);

        if (!(fabs(rise) > 1e-6 * vec3_length(n)))
            continue;
        double depth = depth_in(soup, i, up, point, rise > 0 ? 1 : -1, tolerance);

        if (depth < -tolerance)
            continue;
        out[found++] = (struct oracle_crossing){
            .height = vec3_dot(n, vec3_sub(corner(soup, i, 0), point)) / rise,
            .doubt = tolerance * vec3_length(n) / fabs(rise),
            .is_border = depth < tolerance,
            .polygon = (uint32_t)i,
        };
    }
    return found;
}

/* ---- rays ----------------------------------------------------------------------------------- */

/* Where a ray meets the plane of a triangle, with the barycentric weights of b and c. */
struct meeting {
    double t, u, v;
};

/* Is it in the triangle, grown by a barycentric amount? */
static bool is_within(const struct meeting *at, double grow)
{
    return at->u >= -grow && at->v >= -grow && at->u + at->v <= 1 + grow;
}

/* False: outside of the ray's length, edge-on, or outside of the grown triangle. */
static bool meet(const struct ray *ray, struct vec3 a, struct vec3 b, struct vec3 c, double grow,
                 struct meeting *at)
{
    struct vec3 e1 = vec3_sub(b, a), e2 = vec3_sub(c, a), p = vec3_cross(ray->direction, e2);
    double det = vec3_dot(e1, p);
    struct vec3 s = vec3_sub(ray->origin, a);

    at->u = vec3_dot(s, p) / det;
    if (det == 0 || !(at->u >= -grow && at->u <= 1 + 2 * grow))
        return false;
    struct vec3 q = vec3_cross(s, e1);

    at->v = vec3_dot(ray->direction, q) / det;
    at->t = vec3_dot(e2, q) / det;
    return is_within(at, grow) && at->t >= 0 && at->t <= ray->t_max;
}

struct oracle_hit oracle_ray(const struct polygon_soup *soup, const struct ray *ray,
                             double tolerance)
{
    struct oracle_hit hit = {INFINITY, INFINITY, INFINITY};

    for (size_t i = 0; i < soup->polygon_count; i++) {
        uint32_t count = soup->starts[i + 1] - soup->starts[i];
        struct vec3 a = corner(soup, i, 0), b = corner(soup, i, 1);

        for (uint32_t k = 2; k < count; k++) {
            struct vec3 c = corner(soup, i, k);
            struct meeting at;

            if (meet(ray, a, b, c, tolerance, &at)) {
                double side = vec3_dot(vec3_unit(normal_of(soup, i)), ray->direction);
                bool is_edge_on = fabs(side) < 1e-6 * vec3_length(ray->direction);

                hit.t_loose = fmin(hit.t_loose, at.t);
                if (is_within(&at, 0))
                    hit.t = fmin(hit.t, at.t);
                if (is_within(&at, -tolerance) && !is_edge_on)
                    hit.t_tight = fmin(hit.t_tight, at.t);
            }
            b = c;
        }
    }
    return hit;
}

/* ---- soups ---------------------------------------------------------------------------------- */

struct maker {
    struct random *random;
    struct soup *soup;
    struct vec3 east, north, up;
    double size;
};

static struct vec3 at(const struct maker *m, double x, double y, double z)
{
    return vec3_add(vec3_add(vec3_scale(m->east, x), vec3_scale(m->north, y)),
                    vec3_scale(m->up, z));
}

static double within(const struct maker *m, double reach)
{
    return random_in(m->random, -reach, reach) * m->size;
}

/* A grid with rough heights, its corners shifted; some cells missing, some as quads' halves. */
static void make_ground(struct maker *m)
{
    enum { SIDE = 7 };
    uint32_t index[SIDE + 1][SIDE + 1];
    double x0 = within(m, 0.3), y0 = within(m, 0.3), z0 = within(m, 0.2), step = m->size / 12;

    for (int r = 0; r <= SIDE; r++)
        for (int c = 0; c <= SIDE; c++)
            index[r][c] =
                soup_vertex(m->soup, at(m, x0 + (c + random_in(m->random, -0.3, 0.3)) * step,
                                        y0 + (r + random_in(m->random, -0.3, 0.3)) * step,
                                        z0 + random_in(m->random, 0, step)));
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) {
            uint32_t a[] = {index[r][c], index[r][c + 1], index[r + 1][c]};
            uint32_t b[] = {index[r + 1][c], index[r][c + 1], index[r + 1][c + 1]};

            if (random_below(m->random, 8) == 0)
                continue;
            soup_polygon(m->soup, a, 3);
            soup_polygon(m->soup, b, 3);
        }
}

static void make_triangle(struct maker *m)
{
    double reach = exp(random_in(m->random, -5, -0.5));
    double x = within(m, 0.5), y = within(m, 0.5), z = within(m, 0.3);
    struct vec3 v[3];

    for (int i = 0; i < 3; i++)
        v[i] = at(m, x + within(m, reach), y + within(m, reach), z + within(m, reach / 2));
    soup_add(m->soup, v, 3);
}

/* Corners on an ellipse in a plane that is not very steep, either way round. */
static void make_convex(struct maker *m)
{
    uint32_t count = 4 + random_below(m->random, 8), turn = random_below(m->random, 2);
    double x = within(m, 0.5), y = within(m, 0.5), z = within(m, 0.3);
    double a = m->size * random_in(m->random, 0.02, 0.2);
    double b = m->size * random_in(m->random, 0.02, 0.2);
    double sx = random_in(m->random, -1, 1), sy = random_in(m->random, -1, 1);
    struct vec3 v[16];

    for (uint32_t i = 0; i < count; i++) {
        double angle = 6.283185307179586 * (turn ? count - i : i) / count;
        double dx = a * cos(angle), dy = b * sin(angle);

        v[i] = at(m, x + dx, y + dy, z + sx * dx + sy * dy);
    }
    soup_add(m->soup, v, count);
}

/* Long and some micrometres to millimetres wide. */
static void make_sliver(struct maker *m)
{
    double x = within(m, 0.5), y = within(m, 0.5), z = within(m, 0.3);
    double dx = within(m, 0.4), dy = within(m, 0.4), width = exp(random_in(m->random, -13, -6));
    double share = random_in(m->random, 0.1, 0.9);
    struct vec3 v[3] = {at(m, x, y, z), at(m, x + dx, y + dy, z + within(m, 0.1)),
                        at(m, x + share * dx - width * dy, y + share * dy + width * dx, z)};

    soup_add(m->soup, v, 3);
}

static void make_wall(struct maker *m)
{
    double x = within(m, 0.5), y = within(m, 0.5), z = within(m, 0.3);
    bool is_aligned = random_below(m->random, 2) == 0;
    double dx = within(m, 0.2), dy = is_aligned ? 0 : within(m, 0.2), rise = within(m, 0.3);
    struct vec3 v[4] = {at(m, x, y, z), at(m, x + dx, y + dy, z), at(m, x + dx, y + dy, z + rise),
                        at(m, x, y, z + rise)};

    soup_add(m->soup, v, 4);
}

/* The polygon before once more, by its own vertices or by copies of them. */
static void make_copy(struct maker *m)
{
    const struct soup *s = m->soup;
    size_t last = s->polygon_count - 1;
    uint32_t count = s->starts[last + 1] - s->starts[last], corners[16];
    struct vec3 v[16];

    for (uint32_t i = 0; i < count; i++) {
        corners[i] = s->corners[s->starts[last] + i];
        v[i] = s->vertices[corners[i]];
    }
    if (random_below(m->random, 2))
        soup_polygon(m->soup, corners, count);
    else
        soup_add(m->soup, v, count);
}

void oracle_soup(struct random *random, struct vec3 up, double size, struct soup *out)
{
    struct maker m = {.random = random, .soup = out, .up = up, .size = size};
    uint32_t loose = 10 + random_below(random, 120);

    oracle_axes(up, &m.east, &m.north);
    if (random_below(random, 3) > 0)
        make_ground(&m);
    for (uint32_t i = 0; i < loose; i++) {
        uint32_t kind = random_below(random, 10);

        if (kind < 4)
            make_triangle(&m);
        else if (kind < 6)
            make_convex(&m);
        else if (kind < 7)
            make_sliver(&m);
        else if (kind < 9)
            make_wall(&m);
        else if (out->polygon_count > 0)
            make_copy(&m);
    }
}
