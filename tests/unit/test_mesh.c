/*
 * Floors and ceilings of meshes: by hand, against brute force under any gravity, on shared edges.
 */
#include "terrain/mesh/mesh.h"

#include "support/long_form.h"
#include "support/mesh_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

static const struct vec3 down = {0, 0, -1};

/* ---- by hand -------------------------------------------------------------------------------- */

static void the_inside_of_a_square_is_its_floor_either_way_round(void **state)
{
    static const struct vec3 square[2][4] = {
        {{0, 0, 3}, {1, 0, 3}, {1, 1, 3}, {0, 1, 3}},
        {{0, 0, 3}, {0, 1, 3}, {1, 1, 3}, {1, 0, 3}},
    };
    static const struct {
        double x, y;
        bool is_inside;
    } cases[] = {
        {0.5, 0.5, true},  {0, 0, true},       {1, 1, true},        {0, 0.5, true}, {0.5, 1, true},
        {1.1, 0.5, false}, {0.5, -0.1, false}, {-1e-9, 0.5, false}, {2, 2, false},
    };
    (void)state;

    for (int way = 0; way < 2; way++) {
        struct soup soup = {0};
        struct mesh_options options = {.gravity = down};

        soup_add(&soup, square[way], 4);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct mesh_contact contact;
            struct vec3 point = {cases[i].x, cases[i].y, 5};

            if (mesh_floor(mesh, point, 0, &contact) != cases[i].is_inside)
                fail_msg("way %d: (%g, %g) is on the wrong side", way, point.x, point.y);
            if (!cases[i].is_inside)
                continue;
            assert_near(contact.point.x, point.x, 0);
            assert_near(contact.point.y, point.y, 0);
            assert_near(contact.point.z, 3, 0);
            assert_near(contact.distance_m, 2, 0);
            assert_near(contact.normal.z, 1, 0);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

/* A road at 0, a bridge at 6 over part of it. */
static struct mesh *bridge(void)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = down};

    soup_square(&soup, 0, 0, 10, 0);
    soup_square(&soup, 4, 0, 3, 6);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    soup_free(&soup);
    return mesh;
}

static void a_bridge_is_a_floor_above_and_a_ceiling_below(void **state)
{
    struct mesh *mesh = bridge();
    struct mesh_contact c;

    (void)state;
    assert_true(mesh_floor(mesh, (struct vec3){5, 1, 8}, 0, &c));
    assert_near(c.point.z, 6, 0);
    assert_int_equal(c.polygon, 1);
    assert_true(mesh_floor(mesh, (struct vec3){5, 1, 2}, 0, &c));
    assert_near(c.point.z, 0, 0);
    assert_int_equal(c.polygon, 0);
    assert_true(mesh_floor(mesh, (struct vec3){5, 1, 5.5}, 0.4, &c));
    assert_near(c.point.z, 0, 0);
    assert_true(mesh_floor(mesh, (struct vec3){5, 1, 5.5}, 0.5, &c));
    assert_near(c.point.z, 6, 0);
    assert_near(c.distance_m, -0.5, 0);
    assert_true(mesh_floor(mesh, (struct vec3){5, 1, -9}, INFINITY, &c));
    assert_near(c.point.z, 6, 0);
    assert_false(mesh_floor(mesh, (struct vec3){5, 1, -9}, 0, &c));

    assert_true(mesh_ceiling(mesh, (struct vec3){5, 1, 2}, -2, 0, &c));
    assert_near(c.point.z, 6, 0);
    assert_near(c.distance_m, -4, 0);
    assert_false(mesh_ceiling(mesh, (struct vec3){1, 1, 2}, -2, 0, &c));
    assert_true(mesh_ceiling(mesh, (struct vec3){1, 1, -2}, -INFINITY, 0, &c));
    assert_near(c.point.z, 0, 0);
    assert_false(mesh_ceiling(mesh, (struct vec3){5, 1, 2}, -2, 4.5, &c));
    /* a point on the bridge has no ceiling: the bridge is its floor */
    assert_true(mesh_floor(mesh, (struct vec3){5, 1, 6}, 0, &c));
    assert_false(mesh_ceiling(mesh, (struct vec3){5, 1, 6}, -c.distance_m, 0, &c));
    mesh_unref(mesh);
}

static void a_wall_and_a_hole_are_no_floor(void **state)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = down};
    const struct vec3 wall[] = {{0, 2, 0}, {4, 2, 0}, {4, 2, 5}, {0, 2, 5}};
    struct mesh_contact c;

    (void)state;
    soup_square(&soup, 0, 0, 1, 0);
    soup_square(&soup, 3, 0, 1, 0);
    soup_add(&soup, wall, 4);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    assert_false(mesh_floor(mesh, (struct vec3){2, 0.5, 9}, INFINITY, &c));
    assert_false(mesh_floor(mesh, (struct vec3){2, 2, 9}, INFINITY, &c));
    assert_true(mesh_floor(mesh, (struct vec3){3.5, 0.5, 9}, INFINITY, &c));
    assert_int_equal(c.polygon, 1);
    mesh_unref(mesh);
    soup_free(&soup);
}

static void gravity_may_point_anywhere(void **state)
{
    static const struct {
        struct vec3 gravity, point, floor;
        double distance;
    } cases[] = {
        {{1, 0, 0}, {-5, 0.25, 0.25}, {0, 0.25, 0.25}, 5},
        {{-1, 0, 0}, {5, 0.25, 0.25}, {0, 0.25, 0.25}, 5},
        {{0.6, 0, -0.8}, {-3, 0.25, 4}, {0, 0.25, 0}, 5},
    };
    const struct vec3 upright[] = {{0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1}};
    const struct vec3 tilted[] = {{-0.8, 0, -0.6}, {0.8, 0, 0.6}, {0.8, 1, 0.6}, {-0.8, 1, -0.6}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct soup soup = {0};
        struct mesh_options options = {.gravity = cases[i].gravity};
        struct mesh_contact c;

        soup_add(&soup, i < 2 ? upright : tilted, 4);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        if (!mesh_floor(mesh, cases[i].point, 0, &c))
            fail_msg("case %zu has no floor", i);
        assert_near(vec3_length(vec3_sub(c.point, cases[i].floor)), 0, 1e-12);
        assert_near(c.distance_m, cases[i].distance, 1e-12);
        assert_near(vec3_dot(c.normal, cases[i].gravity), -1, 1e-12);
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void a_slope_has_its_normal(void **state)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = down};
    const struct vec3 slope[] = {{0, 0, 0}, {3, 0, 4}, {3, 9, 4}, {0, 9, 0}};
    struct mesh_contact c;

    (void)state;
    soup_add(&soup, slope, 4);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    assert_true(mesh_floor(mesh, (struct vec3){1.5, 1, 10}, 0, &c));
    assert_near(c.point.z, 2, 1e-15);
    assert_near(c.normal.x, -0.8, 1e-15);
    assert_near(c.normal.y, 0, 0);
    assert_near(c.normal.z, 0.6, 1e-15);
    mesh_unref(mesh);
    soup_free(&soup);
}

/* ---- against brute force -------------------------------------------------------------------- */

enum { POLYGONS_MAX = 1000 };

struct asked {
    const struct polygon_soup *soup;
    struct vec3 up, point;
    double lowest, highest; /* over the point: what may be found */
    bool is_ceiling;
};

/*
 * Agreement: what was found is a crossing within 1e-6, and none that rounding cannot have hidden is
 * better. Returns whether rounding had a say.
 */
static bool expect_crossing(const struct asked *a, bool is_found, const struct mesh_contact *c,
                            uint64_t seed)
{
    static struct oracle_crossing crossings[POLYGONS_MAX];
    uint32_t count = oracle_column(a->soup, a->up, a->point, 1e-9, crossings);
    double sign = a->is_ceiling ? -1 : 1, best = -INFINITY;
    bool is_known = !is_found, is_doubtful = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct oracle_crossing *x = &crossings[i];
        double doubt = 1e-9 + x->doubt;

        if (x->height < a->lowest - doubt || x->height > a->highest + doubt)
            continue;
        if (is_found && fabs(x->height + c->distance_m) <= 1e-6)
            is_known = true;
        if (x->is_border || x->height < a->lowest + doubt || x->height > a->highest - doubt)
            is_doubtful = true;
        else
            best = fmax(best, sign * x->height);
    }
    if (!is_known || (!is_found && isfinite(best)) ||
        (is_found && sign * -c->distance_m < best - 1e-6))
        fail_msg("seed %llu: from (%.17g %.17g %.17g), up (%.17g %.17g %.17g), %g..%g: found %d at "
                 "%.17g, brute force %.17g of %u",
                 (unsigned long long)seed, a->point.x, a->point.y, a->point.z, a->up.x, a->up.y,
                 a->up.z, a->lowest, a->highest, is_found, is_found ? -c->distance_m : NAN,
                 sign * best, count);
    return is_doubtful;
}

/* Anywhere; or in line with a vertex or a point of an edge. */
static struct vec3 random_point(struct random *random, const struct polygon_soup *soup,
                                struct vec3 up, double size)
{
    struct vec3 p = {random_in(random, -size, size), random_in(random, -size, size),
                     random_in(random, -size, size)};
    uint32_t kind = random_below(random, 8);

    if (kind >= 3)
        return vec3_scale(p, random_in(random, 0, 1));
    uint32_t polygon = random_below(random, (uint32_t)soup->polygon_count);
    uint32_t start = soup->starts[polygon], count = soup->starts[polygon + 1] - start;
    struct vec3 a = soup->vertices[soup->corners[start]];
    struct vec3 b = soup->vertices[soup->corners[start + 1 % count]];
    double share = kind == 0 ? 0 : random_in(random, 0, 1);

    p = vec3_add(a, vec3_scale(vec3_sub(b, a), share));
    return vec3_add(p, vec3_scale(up, random_in(random, -size, size)));
}

struct doubts {
    unsigned asked, doubtful;
};

static void ask_floor_and_ceiling(struct random *random, const struct mesh *mesh,
                                  const struct polygon_soup *soup, struct vec3 up, double size,
                                  uint64_t seed, struct doubts *doubts)
{
    struct mesh_contact c = {.distance_m = NAN};
    struct vec3 point = random_point(random, soup, up, size);
    uint32_t kind = random_below(random, 3);
    double reach = kind == 0 ? 0 : kind == 1 ? INFINITY : random_in(random, 0, size);
    double above = kind == 1 ? -INFINITY : random_in(random, -size, size);
    double lift = random_in(random, -size, size);
    struct asked floor = {soup, up, point, -INFINITY, reach, false};
    struct asked ceiling = {soup, up, point, fmax(above, lift), INFINITY, true};
    bool is_found = mesh_floor(mesh, point, reach, &c);

    doubts->doubtful += expect_crossing(&floor, is_found, &c, seed);
    is_found = mesh_ceiling(mesh, point, above, lift, &c);
    doubts->doubtful += expect_crossing(&ceiling, is_found, &c, seed);
    doubts->asked += 2;
}

static struct mesh_options random_options(struct random *random)
{
    static const uint32_t max_polygons[] = {0, 1, 2, 4, 12, 40};
    static const uint32_t max_depth[] = {0, 1, 3, 6, 12, 20};

    return (struct mesh_options){
        .max_polygons = max_polygons[random_below(random, 6)],
        .max_depth = max_depth[random_below(random, 6)],
        .keep_axes = random_below(random, 2),
    };
}

static void vertical_queries_agree_with_brute_force(void **state)
{
    enum { QUERIES = 1000 };
    unsigned soups = long_form(500, 100);
    struct doubts doubts = {0, 0};

    (void)state;
    for (uint64_t seed = 1; seed <= soups; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        struct mesh_options options = random_options(&random);
        struct vec3 up = seed % 3 == 0 ? (struct vec3){0, 0, 1} : oracle_direction(&random);
        double size = exp(random_in(&random, 0, 5));

        options.gravity = vec3_scale(up, -1);
        oracle_soup(&random, up, size, &soup);
        struct polygon_soup view = soup_view(&soup);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        for (int i = 0; i < QUERIES; i++)
            ask_floor_and_ceiling(&random, mesh, &view, up, size, seed, &doubts);
        mesh_unref(mesh);
        soup_free(&soup);
    }
    assert_int_equal(doubts.asked, 2 * soups * QUERIES);
    /* what stands in line with vertices and edges is doubtful, other points are not */
    if (doubts.doubtful > doubts.asked / 2)
        fail_msg("%u of %u queries decided nothing", doubts.doubtful, doubts.asked);
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* Ground without holes in the frame of east, north, up; convex on its outside. */
static void add_closed_ground(struct random *random, struct vec3 up, uint32_t side, bool is_aligned,
                              struct soup *soup)
{
    struct vec3 east, north;
    double step = is_aligned ? 1 : random_in(random, 0.1, 10);

    oracle_axes(up, &east, &north);
    for (uint32_t r = 0; r <= side; r++)
        for (uint32_t c = 0; c <= side; c++) {
            bool is_inner = r > 0 && c > 0 && r < side && c < side && !is_aligned;
            double x = c + (is_inner ? random_in(random, -0.2, 0.2) : 0);
            double y = r + (is_inner ? random_in(random, -0.2, 0.2) : 0);
            double z = random_in(random, -1, 1);

            soup_vertex(soup,
                        vec3_scale(vec3_add(vec3_add(vec3_scale(east, x), vec3_scale(north, y)),
                                            vec3_scale(up, z)),
                                   step));
        }
    for (uint32_t r = 0; r < side; r++)
        for (uint32_t c = 0; c < side; c++) {
            uint32_t i = r * (side + 1) + c, k = i + side + 1;

            soup_polygon(soup, (uint32_t[]){i, i + 1, k}, 3);
            soup_polygon(soup, (uint32_t[]){k + 1, k, i + 1}, 3);
        }
}

static void points_on_vertices_and_edges_always_have_a_floor(void **state)
{
    enum { GROUNDS = 100, POINTS = 5000 };
    unsigned missed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= GROUNDS; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        bool is_aligned = seed % 4 == 0;
        struct mesh_options options = random_options(&random);
        struct vec3 up = seed % 2 == 0 ? (struct vec3){0, 0, 1} : oracle_direction(&random);

        options.gravity = vec3_scale(up, -1);
        add_closed_ground(&random, up, 20, is_aligned, &soup);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        for (int i = 0; i < POINTS; i++) {
            uint32_t at = random_below(&random, (uint32_t)soup.corner_count);
            struct vec3 a = soup.vertices[soup.corners[at]];
            struct vec3 b = soup.vertices[soup.corners[at / 3 * 3 + (at + 1) % 3]];
            double share = i % 3 == 0 ? 0 : i % 3 == 1 ? 0.5 : random_in(&random, 0, 1);
            struct vec3 on = vec3_add(a, vec3_scale(vec3_sub(b, a), share)), p;
            struct mesh_contact c;
            double rise = i % 2 ? random_in(&random, 0, 30) : 0;

            p = vec3_add(on, vec3_scale(up, rise));
            if (!mesh_floor(mesh, p, 1e-9, &c) || !(fabs(c.distance_m - rise) < 1e-9))
                missed++;
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
    assert_int_equal(missed, 0);
}

static void a_point_that_was_put_on_the_floor_stands_on_it(void **state)
{
    struct random random = {5};
    unsigned fell = 0, roofed = 0;

    (void)state;
    for (int n = 0; n < 40; n++) {
        struct soup soup = {0};
        struct vec3 up = oracle_direction(&random);
        struct mesh_options options = {.gravity = vec3_scale(up, -1)};

        add_closed_ground(&random, up, 10, false, &soup);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);
        struct box3 b = mesh_bounds(mesh);

        for (int i = 0; i < 500; i++) {
            struct vec3 p = {random_in(&random, b.min.x, b.max.x),
                             random_in(&random, b.min.y, b.max.y),
                             random_in(&random, b.min.z, b.max.z)};
            struct mesh_contact first, second, roof;

            if (!mesh_floor(mesh, p, INFINITY, &first))
                continue;
            fell += !mesh_floor(mesh, first.point, 0, &second) || fabs(second.distance_m) > 1e-12;
            roofed += mesh_ceiling(mesh, first.point, -second.distance_m, 0, &roof);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
    assert_int_equal(fell, 0);
    assert_int_equal(roofed, 0);
}

/* ---- the tree ------------------------------------------------------------------------------- */

static void coincident_polygons_end_with_bounded_memory(void **state)
{
    static const uint32_t depths[] = {0, 20, 32};
    (void)state;

    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
        struct soup soup = {0};
        struct mesh_options options = {.gravity = down, .max_depth = depths[d]};
        struct mesh_stats stats;
        struct mesh_contact c;

        for (int i = 0; i < 3000; i++)
            soup_square(&soup, 0, 0, 1, i % 7);
        soup_square(&soup, 5, 5, 1e-3, 0);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        mesh_stats(mesh, &stats);
        if (stats.bytes > 4000000)
            fail_msg("depth %u: %llu bytes", depths[d], (unsigned long long)stats.bytes);
        assert_true(mesh_floor(mesh, (struct vec3){0.3, 0.4, 5.5}, 0, &c));
        assert_near(c.point.z, 5, 0);
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void a_terrain_that_is_one_straight_wall_can_be_built(void **state)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = down};
    struct mesh_stats stats;
    struct mesh_contact c;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        const struct vec3 wall[] = {{i, 2, 0}, {i + 1, 2, 0}, {i + 1, 2, 5}, {i, 2, 5}};

        soup_add(&soup, wall, 4);
    }
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    mesh_stats(mesh, &stats);
    assert_true(stats.average_tests < 13);
    assert_false(mesh_floor(mesh, (struct vec3){5, 2, 9}, INFINITY, &c));
    mesh_unref(mesh);
    soup_free(&soup);
}

/* Q, table 4: the smaller the lists may be, the more nodes there are and the fewer tests. */
static void lists_are_as_long_as_asked_for(void **state)
{
    static const struct {
        uint32_t max_polygons, max_depth;
    } cases[] = {{400, 5}, {16, 12}, {12, 12}, {8, 14}, {8, 2}};
    struct mesh_stats stats[5];
    struct soup soup = {0};

    (void)state;
    for (int i = 0; i < 100 * 100; i++) {
        double x = i % 100, y = i / 100;

        soup_add(&soup, (struct vec3[]){{x, y, 0}, {x + 1, y, 1}, {x, y + 1, 0}}, 3);
        soup_add(&soup, (struct vec3[]){{x + 1, y, 1}, {x + 1, y + 1, 1}, {x, y + 1, 0}}, 3);
    }
    for (int i = 0; i < 5; i++) {
        struct mesh_options options = {.gravity = down,
                                       .max_polygons = cases[i].max_polygons,
                                       .max_depth = cases[i].max_depth};
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);
        uint64_t leaves = 0;

        mesh_stats(mesh, &stats[i]);
        assert_in_range(stats[i].depth, 1, cases[i].max_depth);
        for (int depth = 0; depth < MESH_DEPTHS; depth++)
            leaves += stats[i].depths[depth];
        assert_int_equal(leaves, stats[i].leaves);
        assert_true(i == 4 || stats[i].average_tests <= cases[i].max_polygons);
        assert_true(i == 0 || i == 4 ||
                    (stats[i].nodes > stats[i - 1].nodes &&
                     stats[i].average_tests < stats[i - 1].average_tests));
        mesh_unref(mesh);
    }
    assert_int_equal(stats[4].leaves, 16);
    soup_free(&soup);
}

static void a_long_terrain_is_turned_to_its_own_direction(void **state)
{
    struct random random = {8};
    struct soup soup = {0};
    double tests[2];

    (void)state;
    /* a strip of 200 by 40 squares along (4, 3) */
    for (int r = 0; r < 40; r++)
        for (int k = 0; k < 200; k++) {
            double x = 0.8 * k - 0.6 * r, y = 0.6 * k + 0.8 * r, z = random_in(&random, 0, 1);
            const struct vec3 tile[] = {
                {x, y, z}, {x + 0.8, y + 0.6, z}, {x + 0.2, y + 1.4, z}, {x - 0.6, y + 0.8, z}};

            soup_add(&soup, tile, 4);
        }
    for (int keep = 0; keep < 2; keep++) {
        struct mesh_options options = {.gravity = down, .keep_axes = keep};
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);
        struct mesh_stats stats;
        struct mesh_contact c;

        mesh_stats(mesh, &stats);
        tests[keep] = stats.average_tests;
        assert_true(mesh_floor(mesh, (struct vec3){80.1, 60.7, 3}, 0, &c));
        assert_near(c.point.x, 80.1, 0);
        assert_near(c.point.y, 60.7, 0);
        assert_int_equal(c.polygon, 100);
        mesh_unref(mesh);
    }
    /* the average is over the root's box, which the strip fills only when it is turned */
    if (!(tests[0] > 3 && tests[1] < 0.8 * tests[0]))
        fail_msg("turned: %g tests; upright: %g", tests[0], tests[1]);
    soup_free(&soup);
}

static void an_upright_terrain_keeps_its_axes(void **state)
{
    struct soup soup = {0};
    const void *images[2];
    struct mesh *meshes[2];
    size_t length[2];

    (void)state;
    for (int r = 0; r < 20; r++)
        for (int k = 0; k < 30; k++)
            soup_square(&soup, k, r, 1, r + k);
    for (int keep = 0; keep < 2; keep++) {
        struct mesh_options options = {.gravity = down, .keep_axes = keep};

        meshes[keep] = soup_mesh(&soup, &options, NULL);
        images[keep] = mesh_image(meshes[keep], &length[keep]);
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(images[0], images[1], length[0]);
    mesh_unref(meshes[0]);
    mesh_unref(meshes[1]);
    soup_free(&soup);
}

static void coordinates_far_from_the_origin_keep_their_precision(void **state)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = down};
    struct mesh_contact c;
    const double x0 = 500000.25, y0 = 4649776.5;

    (void)state;
    for (int r = 0; r < 30; r++)
        for (int k = 0; k < 30; k++)
            soup_square(&soup, x0 + k, y0 + r, 1, 1200 + k);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    for (int k = 0; k < 30; k++) {
        assert_true(mesh_floor(mesh, (struct vec3){x0 + k + 0.5, y0 + 7.5, 1e4}, 0, &c));
        assert_near(c.point.x, x0 + k + 0.5, 0);
        assert_near(c.point.z, 1200 + k, 1e-9);
        assert_int_equal(c.polygon, 7 * 30 + k);
    }
    mesh_unref(mesh);
    soup_free(&soup);
}

/* ---- bad input ------------------------------------------------------------------------------ */

static void bad_soups_are_refused_by_name(void **state)
{
    static const struct vec3 good[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    static const struct vec3 nan[] = {{0, 0, 0}, {1, NAN, 0}, {0, 1, 0}};
    static const struct vec3 infinite[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, -INFINITY}};
    static const struct vec3 line[] = {{0, 0, 0}, {1, 1, 0}, {2, 2, 0}};
    static const uint32_t corners[] = {0, 1, 2}, beyond[] = {0, 3, 2};
    static const uint32_t starts[] = {0, 3}, backwards[] = {3, 0};
    static const struct {
        struct polygon_soup soup;
        struct mesh_options options;
        enum err_code code;
        const char *text;
    } cases[] = {
        {{nan, 3, corners, starts, 1}, {.gravity = {0, 0, -1}}, ERR_BAD_INPUT, "vertex 1"},
        {{infinite, 3, corners, starts, 1}, {.gravity = {0, 0, -1}}, ERR_BAD_INPUT, "vertex 2"},
        {{good, 3, beyond, starts, 1}, {.gravity = {0, 0, -1}}, ERR_BAD_INPUT, "corner 1"},
        {{good, 3, corners, backwards, 1}, {.gravity = {0, 0, -1}}, ERR_BAD_INPUT, "polygon 0"},
        {{line, 3, corners, starts, 1}, {.gravity = {0, 0, -1}}, ERR_UNPROCESSABLE, "no polygon"},
        {{good, 3, corners, starts, 0}, {.gravity = {0, 0, -1}}, ERR_UNPROCESSABLE, "no polygons"},
        {{good, 3, corners, starts, 1}, {.gravity = {0, 0, 0}}, ERR_BAD_INPUT, "gravity"},
        {{good, 3, corners, starts, 1}, {.gravity = {0, NAN, 1}}, ERR_BAD_INPUT, "gravity"},
        {{good, 3, corners, starts, 1},
         {.gravity = {0, 0, -1}, .max_depth = 33},
         ERR_BAD_INPUT,
         "max_depth"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mesh_import import;
        struct err err;

        if (mesh_create(&cases[i].soup, &cases[i].options, &import, &err) != NULL)
            fail_msg("case %zu is taken", i);
        if (err.code != cases[i].code || strstr(err.msg, cases[i].text) == NULL)
            fail_msg("case %zu: code %d \"%s\", expected %d \"%s\"", i, (int)err.code, err.msg,
                     (int)cases[i].code, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_inside_of_a_square_is_its_floor_either_way_round),
        cmocka_unit_test(a_bridge_is_a_floor_above_and_a_ceiling_below),
        cmocka_unit_test(a_wall_and_a_hole_are_no_floor),
        cmocka_unit_test(gravity_may_point_anywhere),
        cmocka_unit_test(a_slope_has_its_normal),
        cmocka_unit_test(vertical_queries_agree_with_brute_force),
        cmocka_unit_test(points_on_vertices_and_edges_always_have_a_floor),
        cmocka_unit_test(a_point_that_was_put_on_the_floor_stands_on_it),
        cmocka_unit_test(coincident_polygons_end_with_bounded_memory),
        cmocka_unit_test(a_terrain_that_is_one_straight_wall_can_be_built),
        cmocka_unit_test(lists_are_as_long_as_asked_for),
        cmocka_unit_test(a_long_terrain_is_turned_to_its_own_direction),
        cmocka_unit_test(an_upright_terrain_keeps_its_axes),
        cmocka_unit_test(coordinates_far_from_the_origin_keep_their_precision),
        cmocka_unit_test(bad_soups_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
