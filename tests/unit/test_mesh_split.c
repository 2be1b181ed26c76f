/*
 * Polygons on their way into a mesh: concave ones are split, crooked ones made of triangles,
 * degenerate ones dropped, and each of it counted; their floors are what the polygons cover.
 */
#include "terrain/mesh/mesh.h"

#include "support/mesh_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

static const struct {
    const char *what;
    uint32_t count;
    struct vec3 v[10];
    struct {
        uint64_t kept, split, dropped;
        enum mesh_fate fate; /* then */
    } import;
} fates[] = {
    {"triangle", 3, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {1, 0, 0, MESH_KEPT}},
    {"square", 4, {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}}, {1, 0, 0, MESH_KEPT}},
    {"corners on an edge",
     5,
     {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {2, 2, 0}, {0, 2, 0}},
     {1, 0, 0, MESH_KEPT}},
    {"a corner twice", 4, {{0, 0, 0}, {1, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {1, 0, 0, MESH_KEPT}},
    {"the first corner again",
     4,
     {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 0}},
     {1, 0, 0, MESH_KEPT}},
    {"arrow", 4, {{0, 0, 0}, {2, 1, 0}, {0, 2, 0}, {1, 1, 0}}, {2, 1, 0, MESH_KEPT}},
    {"L",
     6,
     {{0, 0, 0}, {3, 0, 0}, {3, 1, 0}, {1, 1, 0}, {1, 3, 0}, {0, 3, 0}},
     {2, 1, 0, MESH_KEPT}},
    {"L, clockwise",
     6,
     {{0, 0, 0}, {0, 3, 0}, {1, 3, 0}, {1, 1, 0}, {3, 1, 0}, {3, 0, 0}},
     {2, 1, 0, MESH_KEPT}},
    {"upright L",
     6,
     {{0, 0, 0}, {3, 0, 0}, {3, 0, 1}, {1, 0, 1}, {1, 0, 3}, {0, 0, 3}},
     {2, 1, 0, MESH_KEPT}},
    {"saddle", 4, {{0, 0, 0}, {1, 0, 1}, {1, 1, 0}, {0, 1, 1}}, {2, 1, 0, MESH_KEPT}},
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
     {4, 1, 0, MESH_KEPT}},
    {"two corners", 2, {{0, 0, 0}, {1, 0, 0}}, {0, 0, 1, MESH_FEW_CORNERS}},
    {"no corner", 0, {{0, 0, 0}}, {0, 0, 1, MESH_FEW_CORNERS}},
    {"a line", 3, {{0, 0, 0}, {1, 1, 1}, {3, 3, 3}}, {0, 0, 1, MESH_NO_AREA}},
    {"one place", 3, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {0, 0, 1, MESH_FEW_CORNERS}},
    {"bow tie with area",
     4,
     {{0, 0, 0}, {2, 2, 0}, {2, 0, 0}, {0, 1, 0}},
     {0, 0, 1, MESH_CROSSES_ITSELF}},
    {"pentagram",
     5,
     {{0, 3, 0}, {2, -3, 0}, {-3, 1, 0}, {3, 1, 0}, {-2, -3, 0}},
     {0, 0, 1, MESH_CROSSES_ITSELF}},
    {"bow tie without area",
     4,
     {{0, 0, 0}, {1, 1, 0}, {1, 0, 0}, {0, 1, 0}},
     {0, 0, 1, MESH_CROSSES_ITSELF}},
    {"there and back again",
     5,
     {{0, 0, 0}, {1, 0, 0}, {1, 1, 1}, {1, 0, 0}, {0, 0, 0}},
     {0, 0, 1, MESH_CROSSES_ITSELF}},
    {"bow tie in the air", 4, {{0, 0, 0}, {1, 1, 0.5}, {1, 0, 0}, {0, 1, 0}}, {2, 1, 0, MESH_KEPT}},
    {"folded sheet", 4, {{0, 0, 0}, {2, 0, 0}, {1, 1, 0}, {1, 1, 1}}, {2, 1, 0, MESH_KEPT}},
    {"quad of a model",
     4,
     {{0.210205, 0.246046, 0.758202},
      {0.169506, 0.370178, 0.796441},
      {0.17047, 0.366116, 0.793819},
      {0.211178, 0.239481, 0.765424}},
     {2, 1, 0, MESH_KEPT}},
};

static void each_polygon_is_kept_split_or_dropped(void **state)
{
    const struct vec3 anchor[] = {{9, 9, 0}, {10, 9, 0}, {9, 10, 0}};
    (void)state;

    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        struct soup soup = {0};
        struct mesh_import got;

        soup_add(&soup, fates[i].v, fates[i].count);
        soup_add(&soup, anchor, 3);
        mesh_unref(create(&soup, down, &got));
        got.kept--;
        if (got.kept != fates[i].import.kept || got.split != fates[i].import.split ||
            got.dropped != fates[i].import.dropped || got.told != got.dropped ||
            got.by_fate[fates[i].import.fate] != got.dropped ||
            (got.told > 0 &&
             (got.drops[0].polygon != 0 || got.drops[0].fate != fates[i].import.fate)))
            fail_msg("%s: kept %d, split %d, dropped %d; expected %d, %d, %d", fates[i].what,
                     (int)got.kept, (int)got.split, (int)got.dropped, (int)fates[i].import.kept,
                     (int)fates[i].import.split, (int)fates[i].import.dropped);
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

static void a_polygon_has_at_most_4096_corners(void **state)
{
    static const uint32_t counts[] = {1024, 1025, 4095, 4096, 4097, 100000};
    const struct vec3 anchor[] = {{9, 9, 0}, {10, 9, 0}, {9, 10, 0}};
    (void)state;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct soup soup = {0};
        struct mesh_import import;
        struct vec3 *comb = malloc(counts[i] * sizeof *comb);

        assert_non_null(comb);
        for (uint32_t k = 0; k < counts[i]; k++)
            comb[k] = (struct vec3){k, k % 2 ? 1 : 0, 0};
        comb[counts[i] - 2] = (struct vec3){counts[i], -5, 0};
        comb[counts[i] - 1] = (struct vec3){-1, -5, 0};
        soup_add(&soup, anchor, 3);
        soup_add(&soup, comb, counts[i]);
        mesh_unref(create(&soup, down, &import));
        assert_int_equal(import.dropped, counts[i] > 4096);
        assert_int_equal(import.by_fate[MESH_MANY_CORNERS], import.dropped);
        assert_int_equal(import.split, 1 - import.dropped);
        if (import.dropped == 1)
            assert_int_equal(import.drops[0].polygon, 1);
        else
            assert_true(import.kept > counts[i] / 4);
        free(comb);
        soup_free(&soup);
    }
}

static void the_first_hundred_that_are_dropped_are_told(void **state)
{
    const struct vec3 good[] = {{9, 9, 0}, {10, 9, 0}, {9, 10, 0}};
    const struct vec3 bad[] = {{0, 0, 0}, {2, 2, 0}, {2, 0, 0}, {0, 1, 0}};
    struct soup soup = {0};
    struct mesh_import import;
    (void)state;

    for (int i = 0; i < 150; i++) {
        soup_add(&soup, good, 3);
        soup_add(&soup, bad, i % 3 ? 4 : 2);
    }
    mesh_unref(create(&soup, down, &import));
    assert_int_equal(import.kept, 150);
    assert_int_equal(import.dropped, 150);
    assert_int_equal(import.by_fate[MESH_FEW_CORNERS], 50);
    assert_int_equal(import.by_fate[MESH_CROSSES_ITSELF], 100);
    assert_int_equal(import.told, MESH_DROPS_TOLD);
    for (uint32_t i = 0; i < import.told; i++) {
        assert_int_equal(import.drops[i].polygon, 2 * i + 1);
        assert_int_equal(import.drops[i].fate, i % 3 ? MESH_CROSSES_ITSELF : MESH_FEW_CORNERS);
    }
    soup_free(&soup);
}

/* A ball of quads, the corners moved along the sphere and off it so far that many are no polygon
 * as they are seen from anywhere. */
static void ball(struct soup *soup, struct random *random, double by)
{
    enum { ROWS = 9, COLS = 12 };
    uint32_t corners[ROWS][COLS];
    uint32_t south = soup_vertex(soup, (struct vec3){0, 0, -1});
    uint32_t north = soup_vertex(soup, (struct vec3){0, 0, 1});

    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            double lat = 3.141592653589793 * ((r + 1.0 + random_in(random, -by, by)) / (ROWS + 1));
            double lng = 6.283185307179586 * (c + random_in(random, -by, by)) / COLS;
            double radius = random_in(random, 1 - by / 3, 1 + by / 3);

            corners[r][c] =
                soup_vertex(soup, (struct vec3){radius * sin(lat) * cos(lng),
                                                radius * sin(lat) * sin(lng), -radius * cos(lat)});
        }
    for (int c = 0; c < COLS; c++) {
        int d = (c + 1) % COLS;

        soup_polygon(soup, (const uint32_t[]){south, corners[0][d], corners[0][c]}, 3);
        soup_polygon(soup, (const uint32_t[]){north, corners[ROWS - 1][c], corners[ROWS - 1][d]},
                     3);
        for (int r = 0; r + 1 < ROWS; r++)
            soup_polygon(soup,
                         (const uint32_t[]){corners[r][c], corners[r][d], corners[r + 1][d],
                                            corners[r + 1][c]},
                         4);
    }
}

static void a_closed_model_of_crooked_quads_stays_closed(void **state)
{
    int folded = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        struct mesh_import import;

        ball(&soup, &random, 0.02 * (double)(seed % 40));
        struct mesh *mesh = create(&soup, oracle_direction(&random), &import);

        if (import.dropped > 0)
            fail_msg("seed %d: polygon %u %s", (int)seed, import.drops[0].polygon,
                     mesh_fate_text[import.drops[0].fate]);
        folded += import.split > 12;
        for (int i = 0; i < 100; i++) {
            struct vec3 from = vec3_scale(oracle_direction(&random), 0.2);
            struct ray ray = {from, oracle_direction(&random), INFINITY};
            struct mesh_hit hit;

            if (!mesh_ray(mesh, &ray, RAY_CLOSEST, &hit))
                fail_msg("seed %d, ray %d leaves the ball", (int)seed, i);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
    assert_true(folded > 50);
}

/* ---- time ----------------------------------------------------------------------------------- */

/* Whose question is the last one that is answered with yes. */
struct patience {
    int asked, most;
};

static enum err_code ask_patience(void *context, struct err *err)
{
    struct patience *patience = context;

    if (++patience->asked <= patience->most)
        return ERR_OK;
    return err_set(err, ERR_TOO_LARGE, "asked %d times", patience->asked);
}

/* How often a build asks, having been stopped at each of the questions once. */
static int stop_at_each_question(const struct polygon_soup *soup, enum mesh_frame frame)
{
    for (int most = 0; most < 1000; most++) {
        struct patience patience = {0, most};
        struct pace pace = {.ask = ask_patience, .context = &patience};
        struct mesh_options options = {.gravity = down, .space.frame = frame, .pace = &pace};
        struct mesh_import import;
        struct err err = {.code = ERR_OK};
        struct mesh *mesh = mesh_create(soup, &options, &import, &err);
        char expected[32];

        if (mesh) {
            mesh_unref(mesh);
            return most;
        }
        snprintf(expected, sizeof expected, "asked %d times", most + 1);
        assert_int_equal(err.code, ERR_TOO_LARGE);
        assert_string_equal(err.msg, expected);
    }
    fail_msg("asked over 1,000 times");
    return 0;
}

static void a_build_stops_when_it_may_not_go_on(void **state)
{
    struct soup soup = {0};
    (void)state;

    for (int i = 0; i < 8000; i++)
        soup_add(&soup, (const struct vec3[]){{i, 0, 1}, {i + 1, 0, 1}, {i, 1, 1}}, 3);
    struct polygon_soup view = soup_view(&soup);

    assert_true(stop_at_each_question(&view, MESH_CARTESIAN) >= 4);
    assert_true(stop_at_each_question(&view, MESH_SPHERICAL) >= 2);
    soup_free(&soup);
}

/* Polygons across the whole mesh are in many leaves and cells: the work is in making these. */
static void a_build_stops_while_it_cuts_the_ground_into_leaves_and_cells(void **state)
{
    struct soup soup = {0};
    struct random random = {7};
    (void)state;

    for (int i = 0; i < 400; i++) {
        struct vec3 v[3];

        for (int k = 0; k < 3; k++)
            v[k] = (struct vec3){random_in(&random, 0, 100), random_in(&random, 0, 100),
                                 random_in(&random, 0, 1)};
        soup_add(&soup, v, 3);
    }
    struct polygon_soup view = soup_view(&soup);
    int asked = stop_at_each_question(&view, MESH_CARTESIAN);

    if (asked < 15)
        fail_msg("asked %d times", asked);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_polygon_is_kept_split_or_dropped),
        cmocka_unit_test(a_ring_keeps_its_hole),
        cmocka_unit_test(a_crooked_polygon_is_made_of_triangles_on_its_corners),
        cmocka_unit_test(the_floor_of_a_star_is_its_inside),
        cmocka_unit_test(rays_through_a_split_wall_hit_where_the_wall_is),
        cmocka_unit_test(a_polygon_has_at_most_4096_corners),
        cmocka_unit_test(the_first_hundred_that_are_dropped_are_told),
        cmocka_unit_test(a_closed_model_of_crooked_quads_stays_closed),
        cmocka_unit_test(a_build_stops_when_it_may_not_go_on),
        cmocka_unit_test(a_build_stops_while_it_cuts_the_ground_into_leaves_and_cells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
