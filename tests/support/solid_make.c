/*
 * Meshes for tests of bodies. Brute force here shares nothing with the server's way: the distance
 * to a triangle is found by golden sections, which need no cases, winding numbers are sums of solid
 * angles (A. van Oosterom, J. Strackee, "The solid angle of a plane triangle", 1983).
 */
#include "support/solid_make.h"

#include <stdlib.h>
#include <string.h>

static const double TAU = 6.283185307179586;

static struct polygon_set make(size_t vertices, size_t triangles)
{
    struct polygon_set set;
    struct err err;

    if (polygon_set_allocate(vertices, triangles, 3 * triangles, &set, &err))
        abort();
    set.vertex_count = vertices;
    set.polygon_count = 0;
    set.starts[0] = 0;
    return set;
}

static void add(struct polygon_set *set, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t *corner = set->corners + 3 * set->polygon_count;

    corner[0] = a;
    corner[1] = b;
    corner[2] = c;
    set->polygon_count++;
    set->starts[set->polygon_count] = (uint32_t)(3 * set->polygon_count);
}

struct polygon_set solid_box(struct vec3 min, struct vec3 max)
{
    static const uint32_t corners[12][3] = {{0, 2, 1}, {0, 3, 2}, {4, 5, 6}, {4, 6, 7},
                                            {0, 1, 5}, {0, 5, 4}, {1, 2, 6}, {1, 6, 5},
                                            {2, 3, 7}, {2, 7, 6}, {3, 0, 4}, {3, 4, 7}};
    struct polygon_set set = make(8, 12);

    for (int i = 0; i < 8; i++)
        set.vertices[i] = (struct vec3){i % 4 == 1 || i % 4 == 2 ? max.x : min.x,
                                        i % 4 >= 2 ? max.y : min.y, i >= 4 ? max.z : min.z};
    for (int i = 0; i < 12; i++)
        add(&set, corners[i][0], corners[i][1], corners[i][2]);
    return set;
}

struct polygon_set solid_revolve(const double (*profile)[2], uint32_t count, bool is_ring,
                                 uint32_t turns)
{
    uint32_t poles = is_ring ? 0 : 2, rings = count - poles, bands = is_ring ? rings : rings - 1;
    struct polygon_set set =
        make((size_t)rings * turns + poles, 2 * (size_t)bands * turns + poles * (size_t)turns);
    uint32_t low = rings * turns, high = low + 1;

    for (uint32_t i = 0; i < rings; i++) {
        const double *p = profile[is_ring ? i : i + 1];

        for (uint32_t j = 0; j < turns; j++)
            set.vertices[i * turns + j] =
                (struct vec3){p[0] * cos(TAU * j / turns), p[0] * sin(TAU * j / turns), p[1]};
    }
    for (uint32_t i = 0; i < bands; i++) {
        for (uint32_t j = 0; j < turns; j++) {
            uint32_t k = (j + 1) % turns, up = (i + 1) % rings;

            add(&set, i * turns + j, i * turns + k, up * turns + k);
            add(&set, i * turns + j, up * turns + k, up * turns + j);
        }
    }
    if (is_ring)
        return set;
    set.vertices[low] = (struct vec3){0, 0, profile[0][1]};
    set.vertices[high] = (struct vec3){0, 0, profile[count - 1][1]};
    for (uint32_t j = 0; j < turns; j++) {
        uint32_t k = (j + 1) % turns;

        add(&set, low, k, j);
        add(&set, high, (rings - 1) * turns + j, (rings - 1) * turns + k);
    }
    return set;
}

struct polygon_set solid_sphere(double radius, uint32_t rings)
{
    double(*profile)[2] = malloc((rings + 1) * sizeof *profile);
    struct polygon_set set;

    for (uint32_t i = 0; i <= rings; i++) {
        profile[i][0] = radius * sin(TAU / 2 * i / rings);
        profile[i][1] = -radius * cos(TAU / 2 * i / rings);
    }
    set = solid_revolve((const double(*)[2])profile, rings + 1, false, 2 * rings);
    free(profile);
    return set;
}

struct polygon_set solid_torus(double ring_radius, double tube_radius, uint32_t steps)
{
    double(*profile)[2] = malloc(steps * sizeof *profile);
    struct polygon_set set;

    for (uint32_t i = 0; i < steps; i++) {
        profile[i][0] = ring_radius + tube_radius * cos(TAU * i / steps);
        profile[i][1] = tube_radius * sin(TAU * i / steps);
    }
    set = solid_revolve((const double(*)[2])profile, steps, true, 2 * steps);
    free(profile);
    return set;
}

struct polygon_set solid_bowl(double radius, double wall, uint32_t rings)
{
    uint32_t count = 2 * rings + 2;
    double(*profile)[2] = malloc(count * sizeof *profile);
    struct polygon_set set;

    for (uint32_t i = 0; i <= rings; i++) {
        double turn = TAU / 4 * i / rings;

        profile[i][0] = radius * sin(turn);
        profile[i][1] = -radius * cos(turn);
        profile[count - 1 - i][0] = (radius - wall) * sin(turn);
        profile[count - 1 - i][1] = -(radius - wall) * cos(turn);
    }
    set = solid_revolve((const double(*)[2])profile, count, false, 4 * rings);
    free(profile);
    return set;
}

struct polygon_set solid_join(struct polygon_set a, struct polygon_set b, bool is_hole)
{
    struct polygon_set set =
        make(a.vertex_count + b.vertex_count, a.polygon_count + b.polygon_count);
    uint32_t base = (uint32_t)a.vertex_count;

    memcpy(set.vertices, a.vertices, a.vertex_count * sizeof *a.vertices);
    memcpy(set.vertices + base, b.vertices, b.vertex_count * sizeof *b.vertices);
    for (size_t i = 0; i < a.polygon_count; i++)
        add(&set, a.corners[3 * i], a.corners[3 * i + 1], a.corners[3 * i + 2]);
    for (size_t i = 0; i < b.polygon_count; i++)
        add(&set, base + b.corners[3 * i], base + b.corners[3 * i + (is_hole ? 2 : 1)],
            base + b.corners[3 * i + (is_hole ? 1 : 2)]);
    polygon_set_free(&a);
    polygon_set_free(&b);
    return set;
}

void solid_turn(struct polygon_set *set, struct random *random, struct vec3 move)
{
    double yaw = random_in(random, 0, TAU), pitch = random_in(random, 0, TAU);
    double roll = random_in(random, 0, TAU);

    for (size_t i = 0; i < set->vertex_count; i++) {
        struct vec3 v = set->vertices[i], w;

        w = (struct vec3){v.x * cos(yaw) - v.y * sin(yaw), v.x * sin(yaw) + v.y * cos(yaw), v.z};
        v = (struct vec3){w.x * cos(pitch) + w.z * sin(pitch), w.y,
                          w.z * cos(pitch) - w.x * sin(pitch)};
        w = (struct vec3){v.x, v.y * cos(roll) - v.z * sin(roll),
                          v.y * sin(roll) + v.z * cos(roll)};
        set->vertices[i] = vec3_add(w, move);
    }
}

/* ---- brute force ----------------------------------------------------------------------------- */

static double segment_distance(struct vec3 a, struct vec3 b, struct vec3 p)
{
    struct vec3 ab = vec3_sub(b, a);
    double length2 = vec3_dot(ab, ab);
    double t = length2 > 0 ? vec3_dot(vec3_sub(p, a), ab) / length2 : 0;

    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return vec3_length(vec3_sub(p, vec3_add(a, vec3_scale(ab, t))));
}

/*
 * Over s in 0..1 the distance to the segment between a + s (b - a) and a + s (c - a) is convex, for
 * the triangle is: golden section finds its least.
 */
static double triangle_distance(struct vec3 a, struct vec3 b, struct vec3 c, struct vec3 p)
{
    const double golden = 0.6180339887498949;
    struct vec3 ab = vec3_sub(b, a), ac = vec3_sub(c, a);
    double low = 0, high = 1, best = INFINITY;

    for (int i = 0; i < 60; i++) {
        double s = high - golden * (high - low), t = low + golden * (high - low);
        double at_s =
            segment_distance(vec3_add(a, vec3_scale(ab, s)), vec3_add(a, vec3_scale(ac, s)), p);
        double at_t =
            segment_distance(vec3_add(a, vec3_scale(ab, t)), vec3_add(a, vec3_scale(ac, t)), p);

        best = fmin(best, fmin(at_s, at_t));
        if (at_s < at_t)
            high = t;
        else
            low = s;
    }
    return fmin(best, fmin(segment_distance(b, c, p), vec3_length(vec3_sub(p, a))));
}

double solid_distance(const struct polygon_set *set, struct vec3 at)
{
    double best = INFINITY;

    for (size_t i = 0; i < set->polygon_count; i++) {
        const uint32_t *t = set->corners + 3 * i;
        const struct vec3 a = set->vertices[t[0]], b = set->vertices[t[1]], c = set->vertices[t[2]];
        const double reach = fmax(vec3_length(vec3_sub(b, a)), vec3_length(vec3_sub(c, a)));

        if (vec3_length(vec3_sub(at, a)) < best + reach)
            best = fmin(best, triangle_distance(a, b, c, at));
    }
    return best;
}

double solid_winding(const struct polygon_set *set, struct vec3 at)
{
    double sum = 0;

    for (size_t i = 0; i < set->polygon_count; i++) {
        const uint32_t *t = set->corners + 3 * i;
        struct vec3 a = vec3_sub(set->vertices[t[0]], at), b = vec3_sub(set->vertices[t[1]], at);
        struct vec3 c = vec3_sub(set->vertices[t[2]], at);
        double la = vec3_length(a), lb = vec3_length(b), lc = vec3_length(c);

        sum +=
            2 * atan2(vec3_dot(a, vec3_cross(b, c)), la * lb * lc + vec3_dot(a, b) * lc +
                                                         vec3_dot(b, c) * la + vec3_dot(c, a) * lb);
    }
    return sum / (2 * TAU);
}

struct vec3 solid_point(const struct polygon_set *set, struct random *random, struct vec3 *normal)
{
    double largest = 0, u, v;

    for (size_t i = 0; i < set->polygon_count; i++) {
        const uint32_t *t = set->corners + 3 * i;

        largest = fmax(largest,
                       vec3_length(vec3_cross(vec3_sub(set->vertices[t[1]], set->vertices[t[0]]),
                                              vec3_sub(set->vertices[t[2]], set->vertices[t[0]]))));
    }
    for (;;) {
        const uint32_t *t = set->corners + 3 * random_below(random, (uint32_t)set->polygon_count);
        struct vec3 a = set->vertices[t[0]], ab = vec3_sub(set->vertices[t[1]], a);
        struct vec3 ac = vec3_sub(set->vertices[t[2]], a), n = vec3_cross(ab, ac);

        if (random_in(random, 0, largest) > vec3_length(n))
            continue;
        u = random_in(random, 0, 1);
        v = random_in(random, 0, 1);
        if (u + v > 1) {
            u = 1 - u;
            v = 1 - v;
        }
        *normal = vec3_unit(n);
        return vec3_add(a, vec3_add(vec3_scale(ab, u), vec3_scale(ac, v)));
    }
}
