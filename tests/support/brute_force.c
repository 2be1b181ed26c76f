/*
 * Brute force: see brute_force.h. Written from the design's words alone, by Möller and Trumbore
 * 1997.
 */
#include "support/brute_force.h"

#include <stdlib.h>

static struct vec3 vertex(const struct brute_field *b, uint32_t c, uint32_t r)
{
    return (struct vec3){b->spec.origin_x_m + c * b->spec.spacing_x_m,
                         b->spec.origin_y_m + r * b->spec.spacing_y_m,
                         (double)b->samples[(size_t)r * b->spec.cols + c]};
}

static bool is_main(const struct heightfield_spec *spec, uint32_t c, uint32_t r)
{
    if (spec->triangulation == TRIANGULATION_ALTERNATING)
        return (c + r) % 2 == 1;
    return spec->triangulation == TRIANGULATION_MAIN;
}

/* The three samples of a triangle, as offsets in the cell. */
static const int corner_table[2][2][3][2] = {
    {{{0, 0}, {1, 0}, {0, 1}}, {{1, 1}, {0, 1}, {1, 0}}}, /* anti */
    {{{1, 0}, {1, 1}, {0, 0}}, {{0, 1}, {0, 0}, {1, 1}}}, /* main */
};

static bool make(const struct brute_field *b, uint32_t c, uint32_t r, int number,
                 struct brute_triangle *out)
{
    const int(*corner)[2] = corner_table[is_main(&b->spec, c, r)][number];

    *out = (struct brute_triangle){.cell = {c, r}, .number = number};
    for (int i = 0; i < 3; i++) {
        out->v[i] = vertex(b, c + (uint32_t)corner[i][0], r + (uint32_t)corner[i][1]);
        if (isnan(out->v[i].z))
            return false;
    }
    return true;
}

static bool same_xy(struct vec3 a, struct vec3 b)
{
    return a.x == b.x && a.y == b.y;
}

/* Does some other triangle hold both ends of the edge opposite to vertex i? Else it is a border. */
static bool has_neighbour(const struct brute_field *b, const struct brute_triangle *t, int i)
{
    struct vec3 p = t->v[(i + 1) % 3], q = t->v[(i + 2) % 3];
    uint32_t cols = b->spec.cols - 1, rows = b->spec.rows - 1;

    for (int dr = -1; dr <= 1; dr++)
        for (int dc = -1; dc <= 1; dc++)
            for (int number = 0; number < 2; number++) {
                uint32_t c = t->cell[0] + (uint32_t)dc, r = t->cell[1] + (uint32_t)dr;
                struct brute_triangle o;
                int held = 0;

                if (c >= cols || r >= rows || (dc == 0 && dr == 0 && number == t->number) ||
                    !make(b, c, r, number, &o))
                    continue;
                for (int j = 0; j < 3; j++)
                    held += same_xy(o.v[j], p) || same_xy(o.v[j], q);
                if (held == 2)
                    return true;
            }
    return false;
}

void brute_field_init(struct brute_field *brute, const struct heightfield_spec *spec,
                      const float *samples)
{
    *brute = (struct brute_field){.spec = *spec, .samples = samples};
    brute->triangles =
        malloc(2 * (size_t)(spec->cols - 1) * (spec->rows - 1) * sizeof *brute->triangles);
    if (brute->triangles == NULL)
        abort();
    for (uint32_t r = 0; r + 1 < spec->rows; r++)
        for (uint32_t c = 0; c + 1 < spec->cols; c++)
            for (int number = 0; number < 2; number++)
                brute->count += make(brute, c, r, number, &brute->triangles[brute->count]);
}

void brute_field_finish(struct brute_field *brute)
{
    free(brute->triangles);
}

/* Möller-Trumbore; weights[i] belongs to vertex i. False when parallel, or clearly outside. */
static bool intersect(const struct brute_triangle *tri, const struct ray *ray, double tolerance,
                      double *t, double weights[3])
{
    struct vec3 e1 = vec3_sub(tri->v[1], tri->v[0]), e2 = vec3_sub(tri->v[2], tri->v[0]);
    struct vec3 p = vec3_cross(ray->direction, e2);
    double det = vec3_dot(e1, p);

    if (det == 0)
        return false;
    struct vec3 s = vec3_sub(ray->origin, tri->v[0]);

    weights[1] = vec3_dot(s, p) / det;
    if (weights[1] < -2 * tolerance || weights[1] > 1 + 4 * tolerance)
        return false;
    struct vec3 q = vec3_cross(s, e1);

    weights[2] = vec3_dot(ray->direction, q) / det;
    weights[0] = 1 - weights[1] - weights[2];
    *t = vec3_dot(e2, q) / det;
    return true;
}

struct brute_hit brute_field_ray(const struct brute_field *brute, const struct ray *ray,
                                 double tolerance)
{
    struct brute_hit hit = {INFINITY, INFINITY, false};

    for (size_t n = 0; n < brute->count; n++) {
        const struct brute_triangle *tri = &brute->triangles[n];
        double t, w[3], least;

        if (!intersect(tri, ray, tolerance, &t, w) || t < 0 || t > ray->t_max)
            continue;
        least = fmin(w[0], fmin(w[1], w[2]));
        if (least >= -tolerance && t < hit.t_loose)
            hit.t_loose = t;
        if (least >= 0 && t < hit.t) {
            hit.t = t;
            hit.near_border = false;
            for (int i = 0; i < 3; i++)
                hit.near_border |= w[i] <= tolerance && !has_neighbour(brute, tri, i);
        }
    }
    return hit;
}
