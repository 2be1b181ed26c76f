/*
 * Rays against meshes: by hand, against brute force, at vertices and edges, and along gravity.
 */
#include "terrain/mesh/mesh_contact.h"

#include "support/mesh_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"
#include "support/whole.h"

static const struct vec3 down = {0, 0, -1};

/* ---- by hand -------------------------------------------------------------------------------- */

/* A floor of 10 by 10 at 0, a wall across it at x = 6 from 0 to 3, a roof of 10 by 10 at 4. */
static struct mesh *room(void)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = down};
    const struct vec3 floor[] = {{0, 0, 0}, {10, 0, 0}, {10, 10, 0}, {0, 10, 0}};
    const struct vec3 wall[] = {{6, 0, 0}, {6, 10, 0}, {6, 10, 3}, {6, 0, 3}};
    const struct vec3 roof[] = {{0, 0, 4}, {10, 0, 4}, {10, 10, 4}, {0, 10, 4}};

    soup_add(&soup, floor, 4);
    soup_add(&soup, wall, 4);
    soup_add(&soup, roof, 4);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    soup_free(&soup);
    return mesh;
}

static void exact_cases_by_hand(void **state)
{
    static const struct {
        struct ray ray;
        double t; /* INFINITY: a miss */
        uint32_t polygon;
        struct vec3 normal;
    } cases[] = {
        /* the wall, from both sides; its normal is against the ray */
        {{{1, 5, 1}, {1, 0, 0}, INFINITY}, 5, 1, {-1, 0, 0}},
        {{{9, 5, 1}, {-2, 0, 0}, INFINITY}, 1.5, 1, {1, 0, 0}},
        {{{1, 5, 1}, {1, 0, 0}, 4.9}, INFINITY, 0, {0, 0, 0}},
        {{{1, 5, 1}, {1, 0, 0}, 5}, 5, 1, {-1, 0, 0}},
        /* above the wall, and out of the room */
        {{{1, 5, 3.5}, {1, 0, 0}, INFINITY}, INFINITY, 0, {0, 0, 0}},
        /* the wall's upper edge and its corner */
        {{{1, 5, 3}, {1, 0, 0}, INFINITY}, 5, 1, {-1, 0, 0}},
        {{{1, 10, 3}, {1, 0, 0}, INFINITY}, 5, 1, {-1, 0, 0}},
        /* down and up; the roof from below has its normal up */
        {{{2, 2, 3}, {0, 0, -1}, INFINITY}, 3, 0, {0, 0, 1}},
        {{{2, 2, 3}, {0, 0, 0.5}, INFINITY}, 2, 2, {0, 0, 1}},
        {{{2, 2, 9}, {0, 0, -1}, INFINITY}, 5, 2, {0, 0, 1}},
        {{{2, 2, 9}, {0, 0, -1}, 4}, INFINITY, 0, {0, 0, 0}},
        {{{12, 2, 9}, {0, 0, -1}, INFINITY}, INFINITY, 0, {0, 0, 0}},
        /* straight down on the wall there is the roof, below it the floor */
        {{{6, 2, 3.9}, {0, 0, -1}, INFINITY}, 3.9, 0, {0, 0, 1}},
        /* slanted */
        {{{2, 2, 1}, {0, 1, -1}, INFINITY}, 1, 0, {0, 0, 1}},
        {{{2, 2, 1}, {0, 1, 1}, INFINITY}, 3, 2, {0, 0, 1}},
        {{{-5, 5, 2}, {11, 0, 0}, 1}, 1, 1, {-1, 0, 0}},
        /* from the surface itself */
        {{{2, 2, 0}, {1, 0, 1}, INFINITY}, 0, 0, {0, 0, 1}},
        /* from far away */
        {{{1e6, 5, 1}, {-1, 0, 0}, INFINITY}, 1e6 - 6, 1, {1, 0, 0}},
        {{{2, 2, 1e9}, {0, 0, -1e9}, INFINITY}, 1 - 4e-9, 2, {0, 0, 1}},
    };
    struct mesh *mesh = room();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int mode = 0; mode < 2; mode++) {
            struct mesh_hit hit = {.t = INFINITY};
            bool is_hit = mesh_ray(mesh, &cases[i].ray, RAY_CLOSEST, &hit);
            struct mesh_hit any;

            if (is_hit != isfinite(cases[i].t) ||
                (is_hit && !(fabs(hit.t - cases[i].t) <= 1e-12 * fabs(cases[i].t))))
                fail_msg("case %zu: t is %.17g, expected %.17g", i, hit.t, cases[i].t);
            if (mesh_ray(mesh, &cases[i].ray, RAY_ANY, &any) != is_hit)
                fail_msg("case %zu: any hit and closest hit disagree", i);
            if (!is_hit)
                continue;
            if (hit.polygon != cases[i].polygon)
                fail_msg("case %zu: polygon %u, expected %u", i, hit.polygon, cases[i].polygon);
            assert_near(vec3_length(vec3_sub(hit.normal, cases[i].normal)), 0, 1e-15);
        }
    mesh_unref(mesh);
}

/* ---- against brute force -------------------------------------------------------------------- */

static struct vec3 random_in_ball(struct random *random, double size)
{
    return vec3_scale(oracle_direction(random), random_in(random, 0, size));
}

static struct ray random_ray(struct random *random, struct vec3 up, double size)
{
    struct ray ray = {
        random_in_ball(random, size * (random_below(random, 2) ? 0.5 : 3)), {0, 0, 0}, INFINITY};
    uint32_t kind = random_below(random, 12);
    double scale = exp(random_in(random, -7, 7));

    ray.direction = vec3_sub(random_in_ball(random, 0.6 * size), ray.origin);
    if (kind == 0)
        ray.direction.x = 0;
    if (kind == 1)
        ray.direction = (struct vec3){0, ray.direction.y, 0};
    if (kind == 2)
        ray.direction = vec3_scale(up, random_below(random, 2) ? size : -size);
    if (kind == 3) /* across gravity */
        ray.direction = vec3_sub(ray.direction, vec3_scale(up, vec3_dot(up, ray.direction)));
    if (kind == 4)
        ray.t_max = random_in(random, 0, 1.5) / scale;
    ray.direction = vec3_scale(ray.direction, scale);
    return ray;
}

static void expect_agreement(const struct mesh *mesh, const struct polygon_soup *soup,
                             const struct ray *ray, uint64_t seed)
{
    struct mesh_hit hit = {.t = INFINITY}, any;
    bool is_hit = mesh_ray(mesh, ray, RAY_CLOSEST, &hit);
    struct oracle_hit want = oracle_ray(soup, ray, 1e-9);
    double slack = 1e-6 / vec3_length(ray->direction) + 1e-9 * hit.t;
    /* walls and needles along gravity are no floors, so a ray along gravity may miss them */
    bool agrees = is_hit ? fabs(hit.t - want.t) <= slack || fabs(hit.t - want.t_loose) <= slack ||
                               (hit.t >= want.t_loose - slack && hit.t <= want.t_tight + slack)
                         : isinf(want.t_tight);

    if (!agrees || mesh_ray(mesh, ray, RAY_ANY, &any) != is_hit)
        fail_msg("seed %llu: from (%.17g %.17g %.17g) along (%.17g %.17g %.17g) to %g: t is %.17g, "
                 "brute force %.17g (grown %.17g, shrunk %.17g)",
                 (unsigned long long)seed, ray->origin.x, ray->origin.y, ray->origin.z,
                 ray->direction.x, ray->direction.y, ray->direction.z, ray->t_max, hit.t, want.t,
                 want.t_loose, want.t_tight);
    if (is_hit && !(vec3_length(vec3_sub(
                        hit.point, vec3_add(ray->origin, vec3_scale(ray->direction, hit.t)))) <=
                    1e-9 * (1 + vec3_length(ray->origin))))
        fail_msg("seed %llu: the point is not on the ray", (unsigned long long)seed);
}

/* Random rays at the soup's mesh, by the tree and then put to each polygon; frees the soup. */
static void expect_rays(struct soup *soup, const struct mesh_options *options, double size,
                        int count, struct random *random, uint64_t seed)
{
    struct polygon_soup view = soup_view(soup);
    struct mesh *mesh = soup_mesh(soup, options, NULL);
    struct ray *rays = test_malloc((size_t)count * sizeof *rays);
    struct mesh_hit *hits = test_calloc((size_t)count, sizeof *hits), hit;
    uint32_t pieces = (uint32_t)mesh->header->count[MESH_POLYGONS];
    uint32_t *all = test_malloc(pieces * sizeof *all);

    for (int i = 0; i < count; i++) {
        rays[i] = random_ray(random, vec3_opposite(options->gravity), size);
        expect_agreement(mesh, &view, &rays[i], seed);
        hits[i].t = INFINITY;
        (void)mesh_ray(mesh, &rays[i], RAY_CLOSEST, &hits[i]);
    }
    for (uint32_t i = 0; i < pieces; i++)
        all[i] = i;
    for (int i = 0; i < count; i++) {
        hit = (struct mesh_hit){.t = INFINITY};
        (void)mesh_ray_among(mesh, &rays[i], all, pieces, &hit);
        if (memcmp(&hit.t, &hits[i].t, sizeof hit.t) != 0 || hit.polygon != hits[i].polygon)
            fail_msg(
                "seed %llu, ray %d: t %.17g of polygon %u without the tree, %.17g of %u with it",
                (unsigned long long)seed, i, hit.t, hit.polygon, hits[i].t, hits[i].polygon);
    }
    test_free(all);
    test_free(rays);
    test_free(hits);
    mesh_unref(mesh);
    soup_free(soup);
}

static void a_hundred_thousand_random_rays_agree_with_brute_force(void **state)
{
    enum { SOUPS = 200, RAYS = 500 };
    (void)state;

    for (uint64_t seed = 1; seed <= SOUPS; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        struct vec3 up = seed % 3 == 0 ? (struct vec3){0, 0, 1} : oracle_direction(&random);
        double size = exp(random_in(&random, 0, 5));
        struct mesh_options options = {.gravity = vec3_scale(up, -1),
                                       .max_polygons = 1 + random_below(&random, 12)};

        oracle_soup(&random, up, size, &soup);
        expect_rays(&soup, &options, size, RAYS, &random, seed);
    }
}

/* Decks, lifts, pads: nothing but floors of one height, so that no ray runs far inside their box.
 */
static void rays_at_flat_floors_agree_with_brute_force(void **state)
{
    enum { SOUPS = 60, RAYS = 300 };
    (void)state;

    for (uint64_t seed = 1; seed <= SOUPS; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        struct vec3 up = seed % 3 == 0 ? (struct vec3){0, 0, 1} : oracle_direction(&random);
        double size = exp(random_in(&random, 0, 5));
        double height = seed % 2 ? 0 : random_in(&random, -size, size);
        struct vec3 a = vec3_unit(vec3_cross(up, (struct vec3){up.y, up.z, up.x + 1}));
        struct vec3 b = vec3_cross(up, a);
        struct mesh_options options = {.gravity = vec3_scale(up, -1)};

        for (uint32_t i = 1 + random_below(&random, 8); i > 0; i--) {
            struct vec3 floor[4], middle = vec3_scale(up, height);
            double x = random_in(&random, -size, size), y = random_in(&random, -size, size);
            double w = random_in(&random, 0.1, 0.6) * size, h = random_in(&random, 0.1, 0.6) * size;

            for (int k = 0; k < 4; k++)
                floor[k] = vec3_add(middle, vec3_add(vec3_scale(a, x + (k % 3 ? w : -w)),
                                                     vec3_scale(b, y + (k > 1 ? h : -h))));
            soup_add(&soup, floor, 4);
        }
        expect_rays(&soup, &options, size, RAYS, &random, seed);
    }
}

/* ---- watertight ----------------------------------------------------------------------------- */

/* A closed ball of triangles around the origin, its vertices moved at random. */
static void add_ball(struct random *random, uint32_t rings, uint32_t sectors, struct soup *soup)
{
    uint32_t top = soup_vertex(soup, (struct vec3){0, 0, 1}), bottom;

    for (uint32_t r = 1; r < rings; r++)
        for (uint32_t s = 0; s < sectors; s++) {
            double a = 3.141592653589793 * r / rings, b = 6.283185307179586 * s / sectors;
            double radius = random_in(random, 0.9, 1.1);

            soup_vertex(soup, (struct vec3){radius * sin(a) * cos(b), radius * sin(a) * sin(b),
                                            radius * cos(a)});
        }
    bottom = soup_vertex(soup, (struct vec3){0, 0, -1});
    for (uint32_t s = 0; s < sectors; s++) {
        uint32_t next = (s + 1) % sectors, last = 1 + (rings - 2) * sectors;

        soup_polygon(soup, (uint32_t[]){top, 1 + s, 1 + next}, 3);
        soup_polygon(soup, (uint32_t[]){bottom, last + next, last + s}, 3);
        for (uint32_t r = 0; r + 2 < rings; r++) {
            uint32_t a = 1 + r * sectors, b = a + sectors;

            soup_polygon(soup, (uint32_t[]){a + s, b + s, a + next}, 3);
            soup_polygon(soup, (uint32_t[]){a + next, b + s, b + next}, 3);
        }
    }
}

static void rays_at_vertices_and_edges_of_a_closed_ball_do_not_leak(void **state)
{
    enum { BALLS = 50, RAYS = 4000 };
    unsigned leaked = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= BALLS; seed++) {
        struct random random = {seed};
        struct soup soup = {0};
        struct mesh_options options = {.gravity = oracle_direction(&random),
                                       .max_polygons = 1 + random_below(&random, 12)};

        if (seed % 2)
            options.gravity = down;
        add_ball(&random, 12, 16, &soup);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        for (int i = 0; i < RAYS; i++) {
            uint32_t at = random_below(&random, (uint32_t)soup.corner_count);
            struct vec3 a = soup.vertices[soup.corners[at]];
            struct vec3 b = soup.vertices[soup.corners[at / 3 * 3 + (at + 1) % 3]];
            double share = i % 3 == 0 ? 0 : random_in(&random, 0, 1);
            struct vec3 aim = vec3_add(a, vec3_scale(vec3_sub(b, a), share));
            struct vec3 inside = random_in_ball(&random, i % 2 ? 0.5 : 0);
            struct ray ray = {inside, vec3_sub(aim, inside), INFINITY};
            struct mesh_hit hit;

            leaked += !mesh_ray(mesh, &ray, RAY_CLOSEST, &hit) || hit.t > 1 + 1e-9;
            ray.origin = vec3_scale(aim, 5);
            ray.direction = vec3_sub(inside, ray.origin);
            leaked += !mesh_ray(mesh, &ray, RAY_ANY, &hit);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
    assert_int_equal(leaked, 0);
}

/* ---- along edges and in planes, in whole numbers --------------------------------------------- */

/* Where o + t d, t >= 0, meets a triangle first, borders included; INFINITY: nowhere. */
static double whole_ray(const struct whole *corner, struct whole o, struct whole d)
{
    struct whole n = whole_cross(whole_sub(corner[1], corner[0]), whole_sub(corner[2], corner[0]));
    int64_t across = whole_dot(n, d), above = whole_dot(n, whole_sub(corner[0], o));
    double low = INFINITY, high = -INFINITY;
    int left = 0, right = 0;

    if (across != 0) {
        for (int i = 0; i < 3; i++) {
            struct whole a = whole_sub(corner[i], o), b = whole_sub(corner[(i + 1) % 3], o);
            int64_t turn = whole_dot(whole_cross(a, b), d);

            left += turn >= 0;
            right += turn <= 0;
        }
        return (left == 3 || right == 3) && (above == 0 || (above < 0) == (across < 0))
                   ? (double)above / (double)across
                   : INFINITY;
    }
    if (above != 0)
        return INFINITY;
    struct whole aside = whole_cross(n, d); /* in the plane, across the ray */

    for (int i = 0; i < 3; i++) {
        struct whole a = whole_sub(corner[i], o), b = whole_sub(corner[(i + 1) % 3], o);
        int64_t from = whole_dot(aside, a), to = whole_dot(aside, b);
        double t_a = (double)whole_dot(a, d) / (double)whole_dot(d, d);
        double t_b = (double)whole_dot(b, d) / (double)whole_dot(d, d), t = t_a;

        if (from != 0 && (to == 0 || (from < 0) == (to < 0)))
            continue;
        if (from != 0)
            t += (t_b - t_a) * (double)from / (double)(from - to);
        low = fmin(low, t);
        high = fmax(high, t);
    }
    return high >= 0 ? fmax(low, 0) : INFINITY;
}

static struct whole whole_random(struct random *random, int64_t most)
{
    return (struct whole){(int64_t)random_below(random, 2 * (uint32_t)most + 1) - most,
                          (int64_t)random_below(random, 2 * (uint32_t)most + 1) - most,
                          (int64_t)random_below(random, 2 * (uint32_t)most + 1) - most};
}

/*
 * With `far` the polygons are so far from the origin, and one beside it makes the ground so long,
 * that its axes are turned, and a plane through the ray is off it by roundings.
 */
static void along_edges_and_in_planes(int64_t far)
{
    enum { SOUPS = 300, RAYS = 400, MOST = 12 };
    size_t hits = 0, in_planes = 0;

    for (uint64_t seed = 1; seed <= SOUPS; seed++) {
        struct random random = {seed};
        struct whole corners[MOST + 1][3];
        struct mesh_options options = {.gravity = down};
        struct soup soup = {0};
        uint32_t count = 0, wanted = 1 + random_below(&random, MOST), all;

        while (count < wanted) {
            struct whole *c = corners[count], n;
            struct vec3 ring[3];

            for (int i = 0; i < 3; i++) {
                c[i] = whole_random(&random, 4);
                c[i].z = seed % 3 ? c[i].z : c[i].z / 3;
                c[i].x += far;
                c[i].y += far / (1 + (int64_t)(seed % 4));
                ring[i] = whole_vec3(c[i]);
            }
            n = whole_cross(whole_sub(c[1], c[0]), whole_sub(c[2], c[0]));
            if (whole_dot(n, n) == 0)
                continue;
            soup_add(&soup, ring, 3);
            count++;
        }
        all = count;
        if (far > 0) {
            memcpy(corners[all++], (const struct whole[]){{0, 0, 0}, {1, 0, 0}, {0, 1, 0}},
                   sizeof corners[0]);
            soup_add(&soup, (const struct vec3[]){{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, 3);
        }
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        for (int i = 0; i < RAYS; i++) {
            const struct whole *c = corners[random_below(&random, count)];
            struct whole a = c[random_below(&random, 3)], b = c[random_below(&random, 3)];
            struct whole o = whole_random(&random, 8), d = whole_random(&random, 4);
            int64_t back = (int64_t)random_below(&random, 4);
            struct mesh_hit hit = {.t = INFINITY};
            double want = INFINITY;

            o.x += far;
            o.y += far / (1 + (int64_t)(seed % 4));
            if (i % 2)
                d = whole_sub(b, a);
            if (i % 4 == 1) /* along the edge */
                o = (struct whole){a.x - back * d.x, a.y - back * d.y, a.z - back * d.z};
            if (i % 4 == 3) /* beside the edge, in the plane */
                o = (struct whole){c[2].x - back * d.x, c[2].y - back * d.y, c[2].z - back * d.z};
            if (d.x == 0 && d.y == 0)
                continue;
            for (uint32_t k = 0; k < all; k++) {
                double t = whole_ray(corners[k], o, d);

                want = fmin(want, t);
                in_planes +=
                    isfinite(t) && whole_dot(whole_cross(whole_sub(corners[k][1], corners[k][0]),
                                                         whole_sub(corners[k][2], corners[k][0])),
                                             d) == 0;
            }
            struct ray ray = {whole_vec3(o), whole_vec3(d), INFINITY};

            mesh_ray(mesh, &ray, RAY_CLOSEST, &hit);
            hits += isfinite(hit.t);
            if (isfinite(want) != isfinite(hit.t) ||
                (isfinite(want) && !(fabs(want - hit.t) <= 1e-9)))
                fail_msg("seed %llu: from (%g %g %g) along (%g %g %g): t is %.17g, exactly %.17g",
                         (unsigned long long)seed, ray.origin.x, ray.origin.y, ray.origin.z,
                         ray.direction.x, ray.direction.y, ray.direction.z, hit.t, want);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
    assert_true(hits > 10000 && in_planes > 10000);
}

static void rays_along_edges_and_in_planes_hit_where_the_polygon_begins(void **state)
{
    (void)state;
    along_edges_and_in_planes(0);
    along_edges_and_in_planes(1000);
}

/* ---- along gravity -------------------------------------------------------------------------- */

static void a_ray_along_gravity_gives_the_floor_to_the_bit(void **state)
{
    struct random random = {3};
    (void)state;

    for (int n = 0; n < 50; n++) {
        struct vec3 up = n % 2 ? oracle_direction(&random) : (struct vec3){0, 0, 1};
        struct mesh_options options = {.gravity = vec3_scale(up, -1)};
        struct soup soup = {0};

        oracle_soup(&random, up, 100, &soup);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        for (int i = 0; i < 500; i++) {
            struct vec3 p = random_in_ball(&random, 60);
            struct ray ray = {p, options.gravity, INFINITY};
            struct mesh_contact floor;
            struct mesh_hit hit;
            bool has_floor = mesh_floor(mesh, p, 0, &floor);

            if (mesh_ray(mesh, &ray, RAY_CLOSEST, &hit) != has_floor)
                fail_msg("soup %d: ray and floor disagree", n);
            if (has_floor && vec3_length(vec3_sub(floor.point, hit.point)) > (n % 2 ? 1e-10 : 0))
                fail_msg("soup %d: floor at %.17g, hit at %.17g", n, floor.point.z, hit.point.z);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_cases_by_hand),
        cmocka_unit_test(a_hundred_thousand_random_rays_agree_with_brute_force),
        cmocka_unit_test(rays_at_flat_floors_agree_with_brute_force),
        cmocka_unit_test(rays_at_vertices_and_edges_of_a_closed_ball_do_not_leak),
        cmocka_unit_test(rays_along_edges_and_in_planes_hit_where_the_polygon_begins),
        cmocka_unit_test(a_ray_along_gravity_gives_the_floor_to_the_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
