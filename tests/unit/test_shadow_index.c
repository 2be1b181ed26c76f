/*
 * Meshes under a light: the tree gives the bits of a ray, whatever the light, the soup and the
 * point; and what has no tree says so.
 */
#include "terrain/light/shadow_index.h"

#include "support/mesh_oracle.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

static const struct vec3 down = {0, 0, -1};

enum { ORIGINS = 1500, SOUPS = 60 };

struct tally {
    unsigned lights, refused, questions, hits;
};

/* One answer of the tree against mesh_ray: every bit of it. */
static void expect_same(const struct mesh *mesh, const struct ray *ray, const struct mesh_hit *hit,
                        bool is_hit, uint64_t seed)
{
    struct vec3 origin = ray->origin, toward = ray->direction;
    struct mesh_hit want, any;
    bool has = mesh_ray(mesh, ray, RAY_LIGHT, &want);
    bool same = has ? hit->t == want.t && hit->polygon == want.polygon &&
                          memcmp(&hit->point, &want.point, sizeof want.point) == 0 &&
                          memcmp(&hit->normal, &want.normal, sizeof want.normal) == 0
                    : isinf(hit->t);

    assert_int_equal(mesh_ray(mesh, ray, RAY_LIGHT_ANY, &any), has);
    if (!same || is_hit != has)
        fail_msg("seed %llu: from (%.17g %.17g %.17g) towards (%.17g %.17g %.17g): t is %.17g "
                 "(polygon %u; any %d), by a ray of %.17g m %.17g (polygon %u)",
                 (unsigned long long)seed, origin.x, origin.y, origin.z, toward.x, toward.y,
                 toward.z, hit->t, hit->polygon, is_hit, ray->t_max, has ? want.t : INFINITY,
                 want.polygon);
}

/* Puts origins to a tree all together, and to rays one by one. */
static void compare(const struct mesh *mesh, struct vec3 toward, const struct vec3 *origins,
                    size_t count, uint64_t seed, struct tally *tally)
{
    static struct mesh_hit hits[ORIGINS];
    static uint8_t any[ORIGINS];
    struct err err;
    struct shadow_index *light = shadow_index_create(mesh, toward, &err);

    tally->lights++;
    if (!light) {
        assert_int_equal(err.code, ERR_UNPROCESSABLE);
        tally->refused++;
        return;
    }
    shadow_index_hits(light, mesh, origins, count, hits);
    shadow_index_any(light, mesh, origins, count, any);
    for (size_t i = 0; i < count; i++) {
        struct ray ray = {origins[i], toward, INFINITY};

        expect_same(mesh, &ray, &hits[i], any[i], seed);
        tally->hits += any[i];
    }
    tally->questions += (unsigned)count;
    shadow_index_unref(light);
}

/* Somewhere, on a polygon, at a vertex or on an edge; moved by a hair towards the light or not. */
static struct vec3 origin_of(struct random *random, const struct polygon_soup *soup, double size,
                             struct vec3 toward)
{
    uint32_t kind = random_below(random, 5),
             polygon = random_below(random, (uint32_t)soup->polygon_count);
    const uint32_t *corners = soup->corners + soup->starts[polygon];
    uint32_t count = soup->starts[polygon + 1] - soup->starts[polygon];
    uint32_t k = random_below(random, count);
    struct vec3 a = soup->vertices[corners[k]], b = soup->vertices[corners[(k + 1) % count]];
    struct vec3 c = soup->vertices[corners[(k + 2) % count]];
    double s = random_in(random, 0, 1), t = random_in(random, 0, 1 - s);
    static const double hairs[] = {0, 1e-6, 1e-6, 1e-7, 1e-13, -1e-7, -1e-3, 1e-3};
    double hair = hairs[random_below(random, 8)];

    if (kind == 0) /* anywhere; the range is larger than the soup's, and now and then far more */
        return vec3_scale(oracle_direction(random),
                          random_in(random, 0, size * (random_below(random, 50) ? 1.5 : 1e9)));
    if (kind == 1)
        b = c = a;
    if (kind == 2)
        c = a;
    a = vec3_add(a, vec3_add(vec3_scale(vec3_sub(b, a), s), vec3_scale(vec3_sub(c, a), t)));
    return vec3_add(a, vec3_scale(toward, hair * fmax(1, size)));
}

static struct vec3 light_of(struct random *random, const struct polygon_soup *soup)
{
    uint32_t kind = random_below(random, 5),
             polygon = random_below(random, (uint32_t)soup->polygon_count);
    const uint32_t *corners = soup->corners + soup->starts[polygon];
    struct vec3 along = vec3_unit(vec3_sub(soup->vertices[corners[1]], soup->vertices[corners[0]]));

    if (kind == 0 && vec3_length(along) > 0.5) /* in the plane of a polygon, along an edge */
        return along;
    if (kind == 1) /* along an axis, or between two */
        return vec3_unit(
            (struct vec3){random_below(random, 3) - 1.0, random_below(random, 3) - 1.0, 1});
    if (kind == 2) /* grazing the ground */
        return vec3_unit((struct vec3){random_in(random, -1, 1), random_in(random, -1, 1),
                                       random_in(random, 0, 0.01)});
    return oracle_direction(random);
}

static void the_tree_gives_the_bits_of_a_ray(void **state)
{
    static struct vec3 origins[ORIGINS];
    struct tally tally = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= SOUPS; seed++) {
        struct random random = {seed};
        struct vec3 up = seed % 3 ? (struct vec3){0, 0, 1} : oracle_direction(&random);
        double size = exp(random_in(&random, 0, 9));
        struct mesh_options options = {.gravity = vec3_scale(up, -1)};
        struct soup soup = {0};

        oracle_soup(&random, up, size, &soup);
        if (seed % 7 == 0) /* far from the origin */
            for (size_t i = 0; i < soup.vertex_count; i++)
                soup.vertices[i].x += 1000 * size;
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);
        struct polygon_soup view = soup_view(&soup);

        for (int i = 0; i < 6; i++) {
            struct vec3 toward = light_of(&random, &view);

            for (size_t k = 0; k < ORIGINS; k++)
                origins[k] = origin_of(&random, &view, size, toward);
            compare(mesh, toward, origins, ORIGINS, seed, &tally);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
    print_message("%u lights (%u without a tree), %u questions, %u shadows\n", tally.lights,
                  tally.refused, tally.questions, tally.hits);
    assert_true(tally.questions > 100000 && tally.hits > tally.questions / 10 &&
                tally.hits < tally.questions * 9 / 10);
}

enum { SIDE = 40 };

/* Ground of shared vertices with a roof over a part: what nearly all lights are asked about. */
static void ground_make(struct soup *soup, double height)
{
    for (int r = 0; r <= SIDE; r++)
        for (int c = 0; c <= SIDE; c++)
            soup_vertex(soup, (struct vec3){c, r, height * sin(0.3 * c) * cos(0.2 * r)});
    for (uint32_t r = 0; r < SIDE; r++)
        for (uint32_t c = 0; c < SIDE; c++) {
            uint32_t v = r * (SIDE + 1) + c;

            soup_polygon(soup, (uint32_t[]){v, v + 1, v + SIDE + 1}, 3);
            soup_polygon(soup, (uint32_t[]){v + 1, v + SIDE + 2, v + SIDE + 1}, 3);
        }
    soup_add(soup, (struct vec3[]){{5, 5, 6}, {20, 5, 6}, {20, 15, 6}, {5, 15, 6}}, 4);
}

static void ground_has_a_tree_under_every_sun(void **state)
{
    static struct vec3 origins[ORIGINS];
    struct random random = {77};
    struct mesh_options options = {.gravity = down};
    struct soup soup = {0};
    struct tally tally = {0};

    (void)state;
    ground_make(&soup, 3);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);
    struct polygon_soup view = soup_view(&soup);

    for (int i = 0; i < 40; i++) {
        double height = random_in(&random, 0.02, 1.5), yaw = random_in(&random, 0, 6.3);
        struct vec3 toward = {cos(yaw) * cos(height), sin(yaw) * cos(height), sin(height)};

        if (i % 4 == 0) /* along the grid's lines, or its diagonals */
            toward = vec3_unit((struct vec3){i % 8 ? 1 : 0, 1, random_in(&random, 0.1, 1)});
        for (size_t k = 0; k < ORIGINS; k++)
            origins[k] = origin_of(&random, &view, SIDE, toward);
        compare(mesh, toward, origins, ORIGINS, (uint64_t)i, &tally);
    }
    assert_int_equal(tally.refused, 0);
    mesh_unref(mesh);
    soup_free(&soup);
}

/* A box of four walls and a lid: its walls are parallel to a light from above. */
static void what_has_no_tree_says_so(void **state)
{
    struct mesh_options options = {.gravity = down};
    struct soup soup = {0};
    struct err err;

    (void)state;
    soup_add(&soup, (struct vec3[]){{0, 0, 0}, {9, 0, 0}, {9, 9, 1}, {0, 9, 0}}, 4);
    soup_add(&soup, (struct vec3[]){{3, 3, 3}, {5, 3, 3}, {5, 3, 5}, {3, 3, 5}}, 4);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    assert_true(shadow_index_is_vertical(mesh, (struct vec3){0, 0, 1}));
    assert_null(shadow_index_create(mesh, (struct vec3){0, 0, 1}, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    assert_false(shadow_index_is_vertical(mesh, (struct vec3){0.6, 0, 0.8}));
    struct shadow_index *light = shadow_index_create(mesh, (struct vec3){0.6, 0, 0.8}, &err);

    /* the wall is seen exactly from its side: a ray does not hit it either */
    assert_non_null(light);
    assert_true(shadow_index_bytes(light) > sizeof(struct mesh *));
    shadow_index_unref(light);
    /* and here so nearly that rounding decides */
    assert_null(shadow_index_create(mesh, vec3_unit((struct vec3){0.6, 1e-14, 0.8}), &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    shadow_index_unref(NULL);
    mesh_unref(mesh);
    soup_free(&soup);
}

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void its_size_is_what_it_holds(void **state)
{
    struct mesh_options options = {.gravity = down};
    struct soup soup = {0};
    struct err err;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        double x = i % 70, y = i / 70, z = (i * 37) % 5;

        soup_add(&soup, (struct vec3[]){{x, y, z}, {x + 1, y, z}, {x + 1, y + 1, z + 1}}, 3);
    }
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);
    size_t before = allocated();
    struct shadow_index *light = shadow_index_create(mesh, vec3_unit((struct vec3){1, 2, 8}), &err);

    assert_non_null(light);
    double grown = (double)(allocated() - before), bytes = (double)shadow_index_bytes(light);

    shadow_index_unref(light);
    mesh_unref(mesh);
    soup_free(&soup);
    if (grown == 0) { /* an allocator that does not count: a sanitizer's */
        skip();
        return;
    }
    if (!(bytes > 0.9 * grown && bytes < 1.1 * grown))
        fail_msg("%g bytes reported, %g were allocated", bytes, grown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_gives_the_bits_of_a_ray),
        cmocka_unit_test(ground_has_a_tree_under_every_sun),
        cmocka_unit_test(what_has_no_tree_says_so),
        cmocka_unit_test(its_size_is_what_it_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
