/*
 * Rings of up to 4096 corners: convexity and crossings are what every pair says, triangles and
 * pieces cover what the ring covers, once, and nothing else.
 */
#include "terrain/mesh/convex_split.h"

#include "support/random.h"
#include "support/ring_shapes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SLACK 3e-15 /* of coordinates up to 1 */

static struct split *split;

static double area2(struct vec2 a, struct vec2 b, struct vec2 c)
{
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

static struct vec2 at(const struct vec2 *points, const uint32_t *corners, uint32_t count,
                      uint32_t i)
{
    i %= count;
    return points[corners ? corners[i] : i];
}

/* Twice the area of a ring of points, or of some of them. */
static double ring_area2(const struct vec2 *points, const uint32_t *corners, uint32_t count)
{
    double sum = 0;

    for (uint32_t i = 1; i + 1 < count; i++)
        sum += area2(at(points, corners, count, 0), at(points, corners, count, i),
                     at(points, corners, count, i + 1));
    return sum;
}

/* Crossings of a line to the right; *is_near when the point is within 1e-9 of an edge. */
static bool is_inside(const struct vec2 *points, const uint32_t *corners, uint32_t count,
                      struct vec2 p, bool *is_near)
{
    bool inside = false;

    for (uint32_t i = 0; i < count; i++) {
        struct vec2 a = at(points, corners, count, i), b = at(points, corners, count, i + 1);
        double dx = b.x - a.x, dy = b.y - a.y;

        if (fabs(dx * (p.y - a.y) - dy * (p.x - a.x)) < 1e-9 * hypot(dx, dy))
            *is_near = true;
        if ((a.y > p.y) != (b.y > p.y) && p.x < a.x + (p.y - a.y) / dy * dx)
            inside = !inside;
    }
    return inside;
}

static bool fits(const void *context, const uint32_t *corners, uint32_t count)
{
    struct vec2 points[SPLIT_PIECE_MAX];

    for (uint32_t i = 0; i < count; i++)
        points[i] = ((const struct vec2 *)context)[corners[i]];
    return ring_is_convex(points, count, SLACK);
}

/* The pieces cover the places that the ring covers, each once. */
static void check_cover(const char *what, const struct vec2 *points, uint32_t count,
                        uint32_t pieces, struct random *random)
{
    double sum = 0, whole = ring_area2(points, NULL, count);
    const uint32_t *corners = split->corners;

    for (uint32_t i = 0; i < pieces; corners += split->counts[i++]) {
        double area = ring_area2(points, corners, split->counts[i]);

        if (!(area > 0) || !fits(points, corners, split->counts[i]))
            fail_msg("%s: piece %u of %u corners has area %g or is not convex", what, i,
                     split->counts[i], area / 2);
        sum += area;
    }
    if (!(fabs(sum - whole) <= 1e-12 * count))
        fail_msg("%s: area %.17g of pieces, %.17g of the ring", what, sum / 2, whole / 2);
    for (int i = 0; i < 100; i++) {
        struct vec2 p = {random_in(random, -1, 1), random_in(random, -1, 1)};
        bool is_near = false, wanted = is_inside(points, NULL, count, p, &is_near);
        int found = 0;

        corners = split->corners;
        for (uint32_t k = 0; k < pieces; corners += split->counts[k++])
            found += is_inside(points, corners, split->counts[k], p, &is_near);
        if (!is_near && found != wanted)
            fail_msg("%s: (%.17g, %.17g) is in %d pieces, inside %d", what, p.x, p.y, found,
                     wanted);
    }
}

static void pieces_cover_the_ring_once(void **state)
{
    static const uint32_t counts[] = {8, 10, 16, 30, 64, 100, 256, 1024, 4096};
    struct vec2 points[4096];
    (void)state;

    for (uint64_t seed = 1; seed <= 20; seed++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int shape = 0; shape < RING_SHAPES; shape++) {
                struct random random = {seed};
                const struct convex_judge judge = {fits, points};
                uint32_t count = counts[i], triangles, pieces;
                char what[96];

                if (count >= 1024 && seed > 2)
                    continue;
                snprintf(what, sizeof what, "seed %d: %s of %u", (int)seed, ring_shape_names[shape],
                         count);
                ring_shape((enum ring_shape)shape, &random, count, points);
                if (ring_crosses_itself(split, points, count, SLACK))
                    fail_msg("%s crosses itself", what);
                triangles = ring_triangulate(split, points, count, SLACK);
                if (triangles == 0)
                    fail_msg("%s: no triangles", what);
                for (uint32_t k = 0; k < triangles; k++)
                    split->counts[k] = 3;
                check_cover(what, points, count, triangles, &random);
                pieces = pieces_join(split, &judge);
                check_cover(what, points, count, pieces, &random);
                if (shape == RING_STAR && pieces > triangles - triangles / 8)
                    fail_msg("%s: %u pieces of %u triangles", what, pieces, triangles);
            }
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static bool is_apart(double one, double other, double least)
{
    return (one > least && other < -least) || (one < -least && other > least);
}

static bool any_pair_crosses(const struct vec2 *points, uint32_t count)
{
    for (uint32_t i = 0; i + 2 < count; i++)
        for (uint32_t k = i + 2; k < count - (i == 0); k++) {
            struct vec2 a = points[i], b = points[i + 1], c = points[k];
            struct vec2 d = points[(k + 1) % count];

            if (is_apart(area2(a, b, c), area2(a, b, d), SLACK * hypot(b.x - a.x, b.y - a.y)) &&
                is_apart(area2(c, d, a), area2(c, d, b), SLACK * hypot(d.x - c.x, d.y - c.y)))
                return true;
        }
    return false;
}

static void a_ring_crosses_itself_where_a_pair_of_edges_does(void **state)
{
    struct vec2 points[600];
    int crossed = 0, simple = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct random random = {seed};
        uint32_t count = seed % 50 ? 8 + 2 * random_below(&random, 20) : 600;

        ring_shape((enum ring_shape)random_below(&random, RING_SHAPES), &random, count, points);
        if (seed % 2) { /* one corner elsewhere: mostly a little */
            uint32_t k = random_below(&random, count);
            double by = pow(10, random_in(&random, -6, 0));

            points[k].x += random_in(&random, -by, by);
            points[k].y += random_in(&random, -by, by);
        }
        bool wanted = any_pair_crosses(points, count);

        if (ring_crosses_itself(split, points, count, SLACK) != wanted)
            fail_msg("seed %d: %u corners, a pair crosses: %d", (int)seed, count, wanted);
        crossed += wanted;
        simple += !wanted;
    }
    if (crossed < 200 || simple < 200)
        fail_msg("%d crossed, %d simple", crossed, simple);
}

static bool all_pairs_are_convex(const struct vec2 *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < count; k++) {
            struct vec2 a = points[i], b = points[(i + 1) % count];

            if (area2(a, b, points[k]) < -SLACK * hypot(b.x - a.x, b.y - a.y))
                return false;
        }
    return true;
}

/* Polygons that are nearly convex, with corners on edges, and around more than once. */
static void a_ring_is_convex_where_each_corner_is_inside_of_each_edge(void **state)
{
    struct vec2 points[4096];
    int convex = 0, dented = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct random random = {seed};
        uint32_t count = seed % 500 ? 3 + random_below(&random, 300) : 4096, edge = 0;
        uint32_t along = 1 + random_below(&random, 5); /* corners an edge */
        double around = seed % 7 ? 6.283185307179586 : 2 * 6.283185307179586;

        for (uint32_t i = 0; i < count; i++) {
            uint32_t edges = (count + along - 1) / along;
            double part = (double)(i % along) / along, p, q;

            edge = i / along;
            p = around * edge / edges;
            q = edge + 1 < edges ? around * (edge + 1) / edges : around;
            if (i - i % along + along > count)
                part = (double)(i % along) / (count - (i - i % along));
            points[i] =
                (struct vec2){cos(p) + part * (cos(q) - cos(p)), sin(p) + part * (sin(q) - sin(p))};
        }
        if (seed % 3 == 0) {
            double by = 1 - pow(10, random_in(&random, -17, -8));
            uint32_t k = random_below(&random, count);

            points[k] = (struct vec2){by * points[k].x, by * points[k].y};
        }
        bool wanted = all_pairs_are_convex(points, count);

        if (ring_is_convex(points, count, SLACK) != wanted)
            fail_msg("seed %d: %u corners, convex: %d", (int)seed, count, wanted);
        convex += wanted;
        dented += !wanted;
    }
    if (convex < 200 || dented < 200)
        fail_msg("%d convex, %d dented", convex, dented);
}

/* ---- awkward rings -------------------------------------------------------------------------- */

static void an_ear_is_none_where_a_pinch_runs_into_it(void **state)
{
    /* the tip of the first corner is met from inside by a chain that comes from beyond */
    static const struct vec2 points[] = {{0, 0}, {4, -1}, {4, -0.2}, {0, 0}, {4, 0.2}, {4, 1}};
    struct random random = {1};
    (void)state;

    uint32_t triangles = ring_triangulate(split, points, 6, SLACK);

    assert_true(triangles > 0);
    for (uint32_t k = 0; k < triangles; k++)
        split->counts[k] = 3;
    check_cover("pinch", points, 6, triangles, &random);
}

static int make_split(void **state)
{
    (void)state;
    split = malloc(sizeof *split);
    return split ? 0 : -1;
}

static int free_split(void **state)
{
    (void)state;
    free(split);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cover_the_ring_once),
        cmocka_unit_test(a_ring_crosses_itself_where_a_pair_of_edges_does),
        cmocka_unit_test(a_ring_is_convex_where_each_corner_is_inside_of_each_edge),
        cmocka_unit_test(an_ear_is_none_where_a_pinch_runs_into_it),
    };

    return cmocka_run_group_tests(tests, make_split, free_split);
}
