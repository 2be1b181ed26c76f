/*
 * Distance fields: distances and signs against brute force, columns through edges and vertices,
 * and meshes that overlap themselves.
 */
#include "sand/body/sdf.h"

#include "support/solid_make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

struct made {
    struct polygon_set set;
    struct triangle_mesh mesh;
    struct triangle_tree *tree;
    struct err err;
};

static struct made take(struct polygon_set set)
{
    struct made m = {.set = set};

    m.mesh = (struct triangle_mesh){set.vertices, set.corners, (uint32_t)set.polygon_count};
    return m;
}

static void plant(struct made *m) /* the tree borrows m->mesh */
{
    m->tree = triangle_tree_create(&m->mesh, &m->err);
    assert_non_null(m->tree);
}

static void drop(struct made *m)
{
    triangle_tree_free(m->tree);
    polygon_set_free(&m->set);
}

static struct vec3 place(const struct sdf *sdf, size_t index)
{
    size_t x = index % sdf->size[0], y = index / sdf->size[0] % sdf->size[1];
    size_t z = index / sdf->size[0] / sdf->size[1];

    return (struct vec3){sdf->origin.x + (double)x * sdf->spacing_m,
                         sdf->origin.y + (double)y * sdf->spacing_m,
                         sdf->origin.z + (double)z * sdf->spacing_m};
}

static size_t cells(const struct sdf *sdf)
{
    return (size_t)sdf->size[0] * sdf->size[1] * sdf->size[2];
}

static void expect_field(const struct made *m, const struct sdf *sdf, uint32_t samples,
                         struct random *random)
{
    for (uint32_t i = 0; i < samples; i++) {
        size_t index = random_below(random, (uint32_t)cells(sdf));
        struct vec3 at = place(sdf, index);
        double d = solid_distance(&m->set, at);

        assert_near(fabs((double)sdf->distance_m[index]), d, 1e-6 * (1 + d));
        if (d < 1e-7)
            continue;
        if ((sdf->distance_m[index] < 0) != (solid_winding(&m->set, at) > 0.5))
            fail_msg("sample %zu at (%g, %g, %g), %g from the surface, has the wrong side", index,
                     at.x, at.y, at.z, d);
    }
}

static void expect_right(struct polygon_set set, double spacing_m, uint64_t seed)
{
    struct made m = take(set);
    struct sdf_options options = {spacing_m, INFINITY, 1000000, 2};
    struct random random = {seed};
    struct sdf sdf;

    print_message("# seed %llu\n", (unsigned long long)seed);
    plant(&m);
    if (sdf_build(&m.mesh, m.tree, &options, &sdf, &m.err))
        fail_msg("%s", m.err.msg);
    expect_field(&m, &sdf, 250, &random);
    sdf_free(&sdf);
    drop(&m);
}

static void distance_and_side_are_those_of_brute_force(void **state)
{
    struct random random = {5};
    struct polygon_set set;

    (void)state;
    expect_right(solid_sphere(1, 8), 0.11, 1);
    expect_right(solid_torus(1, 0.3, 9), 0.1, 2);
    expect_right(solid_bowl(1, 0.02, 6), 0.09, 3);
    for (uint64_t seed = 10; seed < 14; seed++) {
        set = solid_torus(1, 0.3, 7);
        solid_turn(&set, &random, (struct vec3){1000, -500, 80});
        expect_right(set, 0.12, seed);
    }
}

/* Every sample of an octahedron's and a box's field lies on a plane, an edge or a vertex of it. */
static void columns_through_edges_and_vertices_do_not_leak(void **state)
{
    static const double diamond[3][2] = {{0, -1}, {1, 0}, {0, 1}};

    (void)state;
    expect_right(solid_box((struct vec3){-1, -1, -1}, (struct vec3){1, 1, 1}), 0.25, 20);
    expect_right(solid_revolve(diamond, 3, false, 4), 0.25, 21);
    expect_right(solid_revolve(diamond, 3, false, 8), 0.125, 22);
    expect_right(solid_join(solid_box((struct vec3){-1, -1, -1}, (struct vec3){1, 1, 1}),
                            solid_box((struct vec3){-0.5, -0.5, -0.5}, (struct vec3){0.5, 0.5, 1}),
                            true),
                 0.125, 23);
}

/* Heights of a rough field of small whole numbers: vertical and flat triangles everywhere. */
static void small_whole_numbers_do_not_leak(void **state)
{
    enum { SIDE = 6 };

    (void)state;
    for (uint64_t seed = 30; seed < 34; seed++) {
        struct random random = {seed};
        double profile[SIDE + 2][2] = {{0, -2}};

        for (int i = 1; i <= SIDE; i++) {
            profile[i][0] = 1 + (double)random_below(&random, 3);
            profile[i][1] = i - 2;
        }
        profile[SIDE + 1][1] = SIDE - 1;
        expect_right(solid_revolve((const double(*)[2])profile, SIDE + 2, false, 4), 0.25, seed);
    }
}

static void a_hollow_is_outside(void **state)
{
    struct made m = take(solid_join(solid_sphere(1, 8), solid_sphere(0.5, 8), true));
    struct sdf_options options = {0.1, INFINITY, 100000, 1};
    struct sdf sdf;
    size_t middle;

    (void)state;
    plant(&m);
    assert_int_equal(sdf_build(&m.mesh, m.tree, &options, &sdf, &m.err), ERR_OK);
    middle = sdf.size[0] / 2 + (size_t)sdf.size[0] * (sdf.size[1] / 2) +
             (size_t)sdf.size[0] * sdf.size[1] * (sdf.size[2] / 2);
    assert_true(sdf.distance_m[middle] > 0.3F);
    assert_true(sdf.distance_m[0] > 0);
    sdf_free(&sdf);
    drop(&m);
}

static void beyond_the_band_there_is_only_a_side(void **state)
{
    struct made m = take(solid_torus(1, 0.4, 8));
    struct sdf_options options = {0.1, INFINITY, 100000, 1};
    struct sdf all, band;

    (void)state;
    plant(&m);
    assert_int_equal(sdf_build(&m.mesh, m.tree, &options, &all, &m.err), ERR_OK);
    options.band_m = 0.15;
    assert_int_equal(sdf_build(&m.mesh, m.tree, &options, &band, &m.err), ERR_OK);
    for (size_t i = 0; i < cells(&all); i++) {
        float d = all.distance_m[i];
        float want = fabsf(d) < 0.15F ? d : copysignf(0.15F, d);

        if (band.distance_m[i] != want)
            fail_msg("sample %zu is %g, expected %g", i, (double)band.distance_m[i], (double)want);
    }
    sdf_free(&all);
    sdf_free(&band);
    drop(&m);
}

static void threads_change_no_bit(void **state)
{
    struct made m = take(solid_bowl(1, 0.1, 8));
    struct sdf_options options = {0.08, INFINITY, 100000, 1};
    struct sdf one, many;

    (void)state;
    plant(&m);
    assert_int_equal(sdf_build(&m.mesh, m.tree, &options, &one, &m.err), ERR_OK);
    options.threads = 5;
    assert_int_equal(sdf_build(&m.mesh, m.tree, &options, &many, &m.err), ERR_OK);
    assert_memory_equal(one.distance_m, many.distance_m, cells(&one) * sizeof(float));
    sdf_free(&one);
    sdf_free(&many);
    drop(&m);
}

static void too_many_samples_are_refused(void **state)
{
    struct made m = take(solid_box((struct vec3){0, 0, 0}, (struct vec3){10, 10, 10}));
    struct sdf_options options = {0.1, INFINITY, 1000, 1};
    struct sdf sdf;

    (void)state;
    plant(&m);
    assert_int_equal(sdf_build(&m.mesh, m.tree, &options, &sdf, &m.err), ERR_TOO_LARGE);
    assert_true(m.err.has_limit && m.err.limit == 1000);
    assert_near(m.err.got, 105.0 * 105 * 105, 0.5);
    assert_null(sdf.distance_m);
    options.spacing_m = 1e-300;
    assert_int_equal(sdf_build(&m.mesh, m.tree, &options, &sdf, &m.err), ERR_TOO_LARGE);
    drop(&m);
}

static void overlaps_are_refused_and_found(void **state)
{
    const struct vec3 zero = {0, 0, 0}, one = {1, 1, 1};
    const struct {
        struct vec3 min, max;
        bool overlaps, crosses;
    } cases[] = {
        {{0.5, 0.45, 0.55}, {1.5, 1.45, 1.55}, true, true},
        {{0.2, 0.2, 0.2}, {0.8, 0.8, 0.8}, true, false}, /* one in the other, not turned out */
        {{1, 0, 0}, {2, 1, 1}, false, false},            /* face to face */
        {{1.1, 0, 0}, {2, 1, 1}, false, false},
        {{0.4, 0.4, -1}, {0.6, 0.65, 2}, true, true}, /* a bar through it */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made m =
            take(solid_join(solid_box(zero, one), solid_box(cases[i].min, cases[i].max), false));
        struct sdf_options options = {0.09, INFINITY, 1000000, 1};
        struct sdf sdf;
        uint32_t pair[2] = {99, 99};
        enum err_code code;

        plant(&m);
        code = sdf_build(&m.mesh, m.tree, &options, &sdf, &m.err);
        assert_int_equal(code, cases[i].overlaps ? ERR_UNPROCESSABLE : ERR_OK);
        if (code)
            assert_non_null(strstr(m.err.msg, "intersects itself"));
        assert_int_equal(triangle_tree_crossing(m.tree, pair),
                         cases[i].crosses ? CROSSING_FOUND : CROSSING_NONE);
        if (cases[i].crosses)
            assert_true(pair[0] < 12 && pair[1] >= 12 && pair[1] < 24);
        sdf_free(&sdf);
        drop(&m);
    }
}

/* Parts whose y differ by less than any product of it with a length can hold. */
static void the_smallest_numbers_do_not_leak(void **state)
{
    struct random random = {40};

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct made m = take(solid_sphere(1, 4));
        struct sdf_options options = {0.5, INFINITY, 100000, 1};
        struct sdf sdf;

        for (size_t i = 0; i < m.set.vertex_count; i++)
            if (random_below(&random, 2))
                m.set.vertices[i].y = (double)random_below(&random, 5) * 5e-324;
        for (size_t i = 0; i < m.set.vertex_count; i++)
            m.set.vertices[i].y += random_below(&random, 3) == 0 ? 1 : 0;
        plant(&m);
        if (sdf_build(&m.mesh, m.tree, &options, &sdf, &m.err)) /* it ends, which CHECK may not */
            assert_non_null(strstr(m.err.msg, "intersects itself"));
        sdf_free(&sdf);
        drop(&m);
    }
}

/* Thousands of thin bars side by side, slantwise, so that each lies in the box of all. */
static void a_bundle_of_bars_is_bounded(void **state)
{
    enum { BARS = 2000 };
    struct polygon_set bar = solid_box((struct vec3){0, 0, 0}, (struct vec3){100, 1e-4, 1e-4}), all;
    struct made m;
    uint32_t pair[2];
    struct err err;

    (void)state;
    assert_int_equal(polygon_set_allocate(8 * BARS, 12 * BARS, 36 * BARS, &all, &err), ERR_OK);
    for (uint32_t i = 0; i < BARS; i++) {
        for (uint32_t j = 0; j < 8; j++) {
            struct vec3 v = bar.vertices[j];

            v.y += 1e-3 * (i % 100);
            v.z += 1e-3 * (i / 100);
            all.vertices[8 * i + j] = (struct vec3){v.x + v.y, v.x - v.y, v.x + v.z};
        }
        for (uint32_t j = 0; j < 36; j++)
            all.corners[36 * i + j] = 8 * i + bar.corners[j];
    }
    all.vertex_count = 8 * BARS;
    all.polygon_count = 12 * BARS;
    polygon_set_free(&bar);
    m = take(all);
    plant(&m);
    assert_int_equal(triangle_tree_crossing(m.tree, pair), CROSSING_UNKNOWN);
    drop(&m);
}

/* A star whose spikes were pushed through the far side: triangles that share a vertex cross. */
static void neighbours_that_cross_are_found(void **state)
{
    struct made m = take(solid_box((struct vec3){0, 0, 0}, (struct vec3){1, 1, 1}));
    uint32_t pair[2];

    (void)state;
    plant(&m);
    assert_int_equal(triangle_tree_crossing(m.tree, pair), CROSSING_NONE);
    triangle_tree_free(m.tree);
    m.set.vertices[6] = (struct vec3){-0.5, 0.3, -0.4};
    plant(&m);
    assert_int_equal(triangle_tree_crossing(m.tree, pair), CROSSING_FOUND);
    drop(&m);
}

static void triangles_of_no_area_have_distances(void **state)
{
    const struct vec3 line[] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}};
    const uint32_t corners[] = {0, 1, 2, 1, 1, 1};
    struct triangle_mesh mesh = {line, corners, 2};
    struct err err;
    struct triangle_tree *tree = triangle_tree_create(&mesh, &err);
    struct vec3 nearest;

    (void)state;
    assert_non_null(tree);
    assert_near(triangle_tree_nearest(tree, (struct vec3){1.5, 2, 0}, INFINITY, &nearest), 2, 0);
    assert_near(nearest.x, 1.5, 1e-15);
    assert_near(triangle_tree_nearest(tree, (struct vec3){5, 4, 0}, INFINITY, &nearest), 5, 0);
    nearest.x = 77;
    assert_near(triangle_tree_nearest(tree, (struct vec3){5, 4, 0}, 5, &nearest), 5, 0);
    assert_near(nearest.x, 77, 0);
    triangle_tree_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_and_side_are_those_of_brute_force),
        cmocka_unit_test(columns_through_edges_and_vertices_do_not_leak),
        cmocka_unit_test(small_whole_numbers_do_not_leak),
        cmocka_unit_test(a_hollow_is_outside),
        cmocka_unit_test(beyond_the_band_there_is_only_a_side),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(too_many_samples_are_refused),
        cmocka_unit_test(overlaps_are_refused_and_found),
        cmocka_unit_test(the_smallest_numbers_do_not_leak),
        cmocka_unit_test(a_bundle_of_bars_is_bounded),
        cmocka_unit_test(neighbours_that_cross_are_found),
        cmocka_unit_test(triangles_of_no_area_have_distances),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
