/*
 * Polygons on their way into a mesh: concave ones are split, crooked ones made of triangles,
 * degenerate ones dropped, and each of it counted; their floors are what the polygons cover.
 */
#include "terrain/mesh.h"

#include "support/mesh_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

enum { CORNERS_MAX = 64 };

static const struct vec3 down = {0, 0, -1};

static struct mesh *create(const struct soup *soup, struct vec3 gravity, struct mesh_import *import)
{
    struct mesh_options options = {.gravity = gravity};

    return soup_mesh(soup, &options, import);
}

static void each_polygon_is_kept_split_or_dropped(void **state)
{
    static const struct {
        const char *what;
        uint32_t count;
        struct vec3 v[10];
        struct mesh_import import;
    } cases[] = {
        {"triangle", 3, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {1, 0, 0}},
        {"square", 4, {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}}, {1, 0, 0}},
        {"corners on an edge",
         5,
         {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {2, 2, 0}, {0, 2, 0}},
         {1, 0, 0}},
        {"a corner twice", 4, {{0, 0, 0}, {1, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {1, 0, 0}},
        {"the first corner again", 4, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 0}}, {1, 0, 0}},
        {"arrow", 4, {{0, 0, 0}, {2, 1, 0}, {0, 2, 0}, {1, 1, 0}}, {2, 1, 0}},
        {"L", 6, {{0, 0, 0}, {3, 0, 0}, {3, 1, 0}, {1, 1, 0}, {1, 3, 0}, {0, 3, 0}}, {2, 1, 0}},
        {"L, clockwise",
         6,
         {{0, 0, 0}, {0, 3, 0}, {1, 3, 0}, {1, 1, 0}, {3, 1, 0}, {3, 0, 0}},
         {2, 1, 0}},
        {"upright L",
         6,
         {{0, 0, 0}, {3, 0, 0}, {3, 0, 1}, {1, 0, 1}, {1, 0, 3}, {0, 0, 3}},
         {2, 1, 0}},
        {"saddle", 4, {{0, 0, 0}, {1, 0, 1}, {1, 1, 0}, {0, 1, 1}}, {2, 1, 0}},
        {"square ring over a bridge",
         10,
         {{0, 0, 0},
          {3, 0, 0},
          {3, 3, 0},
          {0, 3, 0},
          {0, 0, 0},
          {1, 1, 0},
          {1, 2, 0},
          {2, 2, 0},
          {2, 1, 0},
          {1, 1, 0}},
         {4, 1, 0}},
        {"two corners", 2, {{0, 0, 0}, {1, 0, 0}}, {0, 0, 1}},
        {"no corner", 0, {{0, 0, 0}}, {0, 0, 1}},
        {"a line", 3, {{0, 0, 0}, {1, 1, 1}, {3, 3, 3}}, {0, 0, 1}},
        {"one place", 3, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {0, 0, 1}},
        {"bow tie with area", 4, {{0, 0, 0}, {2, 2, 0}, {2, 0, 0}, {0, 1, 0}}, {0, 0, 1}},
        {"pentagram", 5, {{0, 3, 0}, {2, -3, 0}, {-3, 1, 0}, {3, 1, 0}, {-2, -3, 0}}, {0, 0, 1}},
    };
    const struct vec3 anchor[] = {{9, 9, 0}, {10, 9, 0}, {9, 10, 0}};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct soup soup = {0};
        struct mesh_import got;

        soup_add(&soup, cases[i].v, cases[i].count);
        soup_add(&soup, anchor, 3);
        mesh_unref(create(&soup, down, &got));
        got.kept--;
        if (got.kept != cases[i].import.kept || got.split != cases[i].import.split ||
            got.dropped != cases[i].import.dropped)
            fail_msg("%s: kept %d, split %d, dropped %d; expected %d, %d, %d", cases[i].what,
                     (int)got.kept, (int)got.split, (int)got.dropped, (int)cases[i].import.kept,
                     (int)cases[i].import.split, (int)cases[i].import.dropped);
        soup_free(&soup);
    }
}

static void a_ring_keeps_its_hole(void **state)
{
    const struct vec3 ring[] = {{0, 0, 1}, {3, 0, 1}, {3, 3, 1}, {0, 3, 1}, {0, 0, 1},
                                {1, 1, 1}, {1, 2, 1}, {2, 2, 1}, {2, 1, 1}, {1, 1, 1}};
    struct soup soup = {0};
    struct mesh_import import;
    struct mesh_contact c;

    (void)state;
    soup_add(&soup, ring, 10);
    struct mesh *mesh = create(&soup, down, &import);

    assert_false(mesh_floor(mesh, (struct vec3){1.5, 1.5, 9}, 0, &c));
    assert_true(mesh_floor(mesh, (struct vec3){0.5, 1.5, 9}, 0, &c));
    assert_true(mesh_floor(mesh, (struct vec3){1.5, 2, 9}, 0, &c));
    assert_true(mesh_floor(mesh, (struct vec3){0.5, 0.5, 9}, 0, &c)); /* on the bridge */
    mesh_unref(mesh);
    soup_free(&soup);
}

static void a_crooked_polygon_is_made_of_triangles_on_its_corners(void **state)
{
    const struct vec3 saddle[] = {{0, 0, 0}, {1, 0, 1}, {1, 1, 0}, {0, 1, 1}};
    struct soup soup = {0};
    struct mesh_import import;
    struct mesh_contact c;

    (void)state;
    soup_add(&soup, saddle, 4);
    struct mesh *mesh = create(&soup, down, &import);

    for (int i = 0; i < 4; i++) {
        assert_true(mesh_floor(mesh, (struct vec3){saddle[i].x, saddle[i].y, 9}, 0, &c));
        assert_near(c.point.z, saddle[i].z, 1e-15);
        assert_int_equal(c.polygon, 0);
    }
    mesh_unref(mesh);
    soup_free(&soup);
}

/* ---- stars ---------------------------------------------------------------------------------- */

/* Corners around the origin at random distances: simple, mostly concave. */
static uint32_t star(struct random *random, struct vec2 *points)
{
    uint32_t count = 4 + random_below(random, CORNERS_MAX - 4);

    for (uint32_t i = 0; i < count; i++) {
        double angle = 6.283185307179586 * i / count, radius = random_in(random, 0.2, 1);

        points[i] = (struct vec2){radius * cos(angle), radius * sin(angle)};
    }
    return count;
}

/* Crossings of a line to the right; is_near when the point is within 1e-9 of an edge. */
static bool is_inside(const struct vec2 *points, uint32_t count, struct vec2 at, bool *is_near)
{
    bool inside = false;

    *is_near = false;
    for (uint32_t i = 0; i < count; i++) {
        struct vec2 a = points[i], b = points[(i + 1) % count];
        double dx = b.x - a.x, dy = b.y - a.y;
        double side = (dx * (at.y - a.y) - dy * (at.x - a.x)) / hypot(dx, dy);

        if (fabs(side) < 1e-9)
            *is_near = true;
        if ((a.y > at.y) != (b.y > at.y) && at.x < a.x + (at.y - a.y) / dy * dx)
            inside = !inside;
    }
    return inside;
}

static void the_floor_of_a_star_is_its_inside(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        struct mesh_import import;
        struct vec2 points[CORNERS_MAX];
        struct vec3 v[CORNERS_MAX], east, north;
        struct vec3 up = seed % 2 ? (struct vec3){0, 0, 1} : oracle_direction(&random);
        uint32_t count = star(&random, points);
        double sx = random_in(&random, -3, 3), sy = random_in(&random, -3, 3);

        oracle_axes(up, &east, &north);
        for (uint32_t i = 0; i < count; i++) {
            struct vec2 p = points[seed % 3 ? i : count - 1 - i];

            v[i] = vec3_add(vec3_add(vec3_scale(east, p.x), vec3_scale(north, p.y)),
                            vec3_scale(up, sx * p.x + sy * p.y));
        }
        soup_add(&soup, v, count);
        struct mesh *mesh = create(&soup, vec3_scale(up, -1), &import);

        assert_int_equal(import.dropped, 0);
        /* at least n/4 pieces are joined away again: triangles would be count - 2 */
        if (count > 8 && import.kept > count - 3)
            fail_msg("seed %d: %d pieces of %u corners", (int)seed, (int)import.kept, count);
        for (int i = 0; i < 300; i++) {
            struct vec2 at = {random_in(&random, -1, 1), random_in(&random, -1, 1)};
            struct vec3 p = vec3_add(vec3_scale(east, at.x), vec3_scale(north, at.y));
            struct mesh_contact c;
            bool is_near, wanted = is_inside(points, count, at, &is_near);
            bool is_found = mesh_floor(mesh, p, INFINITY, &c);

            if (is_near)
                continue;
            if (is_found != wanted)
                fail_msg("seed %d: (%.17g, %.17g) found %d, inside %d", (int)seed, at.x, at.y,
                         is_found, wanted);
            if (is_found)
                assert_near(-c.distance_m, sx * at.x + sy * at.y, 1e-9);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void rays_through_a_split_wall_hit_where_the_wall_is(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        struct mesh_import import;
        struct vec2 points[CORNERS_MAX];
        struct vec3 v[CORNERS_MAX];
        uint32_t count = star(&random, points);

        for (uint32_t i = 0; i < count; i++) /* upright, along (3, 4, 0) */
            v[i] = (struct vec3){0.6 * points[i].x, 0.8 * points[i].x, points[i].y};
        soup_add(&soup, v, count);
        struct mesh *mesh = create(&soup, down, &import);

        for (int i = 0; i < 300; i++) {
            struct vec2 at = {random_in(&random, -1, 1), random_in(&random, -1, 1)};
            struct vec3 aim = {0.6 * at.x, 0.8 * at.x, at.y};
            struct vec3 from = {random_in(&random, 2, 5), random_in(&random, -5, 1),
                                random_in(&random, -3, 3)};
            struct ray ray = {from, vec3_sub(aim, from), INFINITY};
            struct mesh_hit hit;
            bool is_near, wanted = is_inside(points, count, at, &is_near);

            if (!is_near && mesh_ray(mesh, &ray, RAY_CLOSEST, &hit) != wanted)
                fail_msg("seed %d: (%.17g, %.17g), inside %d", (int)seed, at.x, at.y, wanted);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void polygons_with_too_many_corners_are_dropped_in_bounded_time(void **state)
{
    static const uint32_t counts[] = {1025, 4097, 100000};
    const struct vec3 anchor[] = {{9, 9, 0}, {10, 9, 0}, {9, 10, 0}};
    (void)state;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct soup soup = {0};
        struct mesh_import import;
        struct vec3 *comb = malloc(counts[i] * sizeof *comb);

        assert_non_null(comb);
        for (uint32_t k = 0; k < counts[i]; k++)
            comb[k] = (struct vec3){k, k % 2 ? 1 : 0, 0};
        comb[counts[i] - 1].y = 99;
        soup_add(&soup, comb, counts[i]);
        soup_add(&soup, anchor, 3);
        mesh_unref(create(&soup, down, &import));
        assert_int_equal(import.dropped, 1);
        assert_int_equal(import.kept, 1);
        free(comb);
        soup_free(&soup);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_polygon_is_kept_split_or_dropped),
        cmocka_unit_test(a_ring_keeps_its_hole),
        cmocka_unit_test(a_crooked_polygon_is_made_of_triangles_on_its_corners),
        cmocka_unit_test(the_floor_of_a_star_is_its_inside),
        cmocka_unit_test(rays_through_a_split_wall_hit_where_the_wall_is),
        cmocka_unit_test(polygons_with_too_many_corners_are_dropped_in_bounded_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
