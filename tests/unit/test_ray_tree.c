/*
 * The trees that rays walk through polygons: each answer is, bit for bit, that of the exact test
 * put to all polygons one by one, on every level of vector instructions, whatever the rays; and
 * what edits make of the trees.
 */
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/mesh_edit.h"

#include "support/mesh_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RAYS = 600 };

static const struct vec3 down = {0, 0, -1};

static struct random drawn(uint64_t seed)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    return (struct random){seed};
}

/* A mesh for each level that this machine has. */
struct meshes {
    struct mesh *of[SIMD_LEVELS];
    uint32_t *all; /* numbers of all its polygons */
    size_t count, hits;
};

static void meshes_make(struct meshes *m, const struct soup *soup)
{
    enum simd_level chosen = simd_level();
    struct mesh_options options = {.gravity = down};

    memset(m, 0, sizeof *m);
    for (int level = 0; level < SIMD_LEVELS; level++)
        if (simd_select((enum simd_level)level)) {
            m->of[level] = soup_mesh(soup, &options, NULL);
            assert_true(m->of[level]->rays.first.node_count > 0);
        }
    simd_select(chosen);
    m->count = m->of[0]->header->count[MESH_POLYGONS];
    m->all = malloc(m->count * sizeof *m->all);
    assert_non_null(m->all);
    for (size_t i = 0; i < m->count; i++)
        m->all[i] = (uint32_t)i;
}

static void meshes_free(struct meshes *m)
{
    for (int level = 0; level < SIMD_LEVELS; level++)
        mesh_unref(m->of[level]);
    free(m->all);
}

static void assert_same(const struct mesh_hit *a, const struct mesh_hit *b)
{
    assert_memory_equal(&a->t, &b->t, sizeof a->t);
    assert_memory_equal(&a->point, &b->point, sizeof a->point);
    assert_memory_equal(&a->normal, &b->normal, sizeof a->normal);
    assert_int_equal(a->polygon, b->polygon);
}

static bool ray_check(struct meshes *m, const struct ray *ray, struct mesh_hit *want)
{
    struct mesh_hit first_any = {.t = 0};
    bool has = mesh_ray_among(m->of[0], ray, m->all, m->count, want);

    m->hits += has;
    for (int level = 0; level < SIMD_LEVELS; level++) {
        struct mesh_hit hit = {.t = 0}, any = {.t = 0};

        if (m->of[level] == NULL)
            continue;
        assert_int_equal(mesh_ray(m->of[level], ray, RAY_CLOSEST, &hit), has);
        if (has)
            assert_same(&hit, want);
        assert_int_equal(mesh_ray(m->of[level], ray, RAY_ANY, &any), has);
        if (level > 0 && has)
            assert_same(&any, &first_any);
        first_any = any;
    }
    return has;
}

static struct vec3 some_vertex(const struct soup *s, struct random *random)
{
    return s->vertices[s->corners[random_below(random, (uint32_t)s->corner_count)]];
}

/* Somewhere in a polygon, or on one of its edges. */
static struct vec3 some_place(const struct soup *s, struct random *random, bool is_edge)
{
    uint32_t polygon = random_below(random, (uint32_t)s->polygon_count);
    const uint32_t *corners = &s->corners[s->starts[polygon]];
    struct vec3 a = s->vertices[corners[0]], b = s->vertices[corners[1]];
    struct vec3 c = s->vertices[corners[2]];
    double u = random_in(random, 0, 1), v = is_edge ? 0 : random_in(random, 0, 1 - u);

    return vec3_add(a, vec3_add(vec3_scale(vec3_sub(b, a), u), vec3_scale(vec3_sub(c, a), v)));
}

/* Of many kinds: towards vertices, edges and places, from vertices and places, along axes and in
 * planes of polygons. */
static struct ray some_ray(const struct soup *s, struct random *random, double size, unsigned kind)
{
    struct vec3 u = oracle_direction(random), at, from;

    at = kind & 1 ? some_vertex(s, random) : some_place(s, random, kind & 2);
    from = vec3_add(at, vec3_scale(u, random_in(random, 0, size)));
    switch (kind % 6) {
    case 0: /* from a place of one to a place of another */
        from = some_place(s, random, false);
        break;
    case 1: /* along an edge, or through a vertex */
        from = some_vertex(s, random);
        break;
    case 2: /* along an axis */
        from = at;
        (&from.x)[random_below(random, 3)] += random_in(random, -size, size);
        break;
    case 3: /* within a plane of axes */
        (&from.x)[random_below(random, 3)] = (&at.x)[random_below(random, 3)];
        break;
    default:
        break;
    }
    return (struct ray){from, vec3_sub(at, from), kind % 5 == 0 ? 1 : INFINITY};
}

static void soup_check_rays(const struct soup *soup, struct random *random, double size,
                            unsigned count)
{
    struct meshes m;

    meshes_make(&m, soup);
    for (unsigned i = 0; i < count; i++) {
        struct ray ray = some_ray(soup, random, size, i);
        struct mesh_hit hit;

        if (!(vec3_length(ray.direction) > 0))
            continue;
        if (!ray_check(&m, &ray, &hit))
            continue;
        /* it ends exactly there, and just before */
        ray.t_max = hit.t;
        ray_check(&m, &ray, &hit);
        ray.t_max = nextafter(ray.t_max, 0);
        if (ray.t_max > 0)
            ray_check(&m, &ray, &hit);
    }
    assert_true(m.hits > count / 4);
    meshes_free(&m);
}

static void soups_of_all_sizes(void **state)
{
    static const double sizes[] = {1e-6, 1, 100, 1e7};
    struct random random = drawn(4001);

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct soup soup = {0};

        oracle_soup(&random, (struct vec3){0, 0, 1}, sizes[i], &soup);
        soup_check_rays(&soup, &random, sizes[i], RAYS);
        soup_free(&soup);
    }
}

/* Triangles that have nothing to do with each other, a few of them very large, some very small. */
static void loose_triangles(void **state)
{
    struct random random = drawn(4002);
    struct soup soup = {0};

    (void)state;
    for (int i = 0; i < 400; i++) {
        struct vec3 at = vec3_scale(oracle_direction(&random), random_in(&random, 0, 100));
        double size = pow(10, random_in(&random, -3, i % 20 ? 1 : 2));
        struct vec3 ring[3];

        for (int k = 0; k < 3; k++)
            ring[k] = vec3_add(at, vec3_scale(oracle_direction(&random), size));
        soup_add(&soup, ring, 3);
        if (i % 9 == 0) /* once more at the same place */
            soup_add(&soup, ring, 3);
    }
    soup_check_rays(&soup, &random, 200, 4 * RAYS);
    soup_free(&soup);
}

/* Polygons of many corners are fans in the tree. */
static void polygons_of_many_corners(void **state)
{
    struct random random = drawn(4003);
    struct soup soup = {0};

    (void)state;
    for (int i = 0; i < 60; i++) {
        struct vec3 at = vec3_scale(oracle_direction(&random), random_in(&random, 0, 60));
        struct vec3 e, n, ring[40], up = oracle_direction(&random);
        uint32_t count = 4 + random_below(&random, 36);

        oracle_axes(up, &e, &n);
        for (uint32_t k = 0; k < count; k++)
            ring[k] = vec3_add(at, vec3_add(vec3_scale(e, 9 * cos(2 * M_PI * k / count)),
                                            vec3_scale(n, 5 * sin(2 * M_PI * k / count))));
        soup_add(&soup, ring, count);
    }
    soup_check_rays(&soup, &random, 100, 4 * RAYS);
    soup_free(&soup);
}

static void one_triangle(void **state)
{
    struct random random = drawn(4004);
    struct soup soup = {0};

    (void)state;
    soup_add(&soup, (struct vec3[]){{0, 0, 0}, {1, 0, 0.5}, {0, 1, 0}}, 3);
    soup_check_rays(&soup, &random, 3, RAYS);
    soup_free(&soup);
}

static void shared_meshes(void **state)
{
    static const char *const files[] = {"meshes/recast_dungeon.obj",
                                        "meshes-sharealike/torcs_g-track-2.obj"};
    struct random random = drawn(4005);
    unsigned found = 0;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct soup soup = {0};

        if (!soup_read(&soup, files[i], true))
            continue;
        soup_check_rays(&soup, &random, 100, 200);
        soup_free(&soup);
        found++;
    }
    if (found == 0)
        skip();
}

/* ---- radial ---------------------------------------------------------------------------------- */

static void levels_agree_on_a_planet(void **state)
{
    struct random random = drawn(4006);
    struct mesh_options options = {.space = {MESH_SPHERICAL, false}};
    struct mesh *of[SIMD_LEVELS] = {NULL};
    enum simd_level chosen = simd_level();
    struct soup soup = {0};
    unsigned hits = 0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct vec3 at = vec3_scale(oracle_direction(&random), random_in(&random, 90, 110));
        struct vec3 ring[3];

        for (int k = 0; k < 3; k++)
            ring[k] = vec3_add(at, vec3_scale(oracle_direction(&random), 6));
        soup_add(&soup, ring, 3);
    }
    for (int level = 0; level < SIMD_LEVELS; level++)
        if (simd_select((enum simd_level)level))
            of[level] = soup_mesh(&soup, &options, NULL);
    simd_select(chosen);
    for (int i = 0; i < 4 * RAYS; i++) {
        struct vec3 from = vec3_scale(oracle_direction(&random), random_in(&random, 0, 130));
        struct ray ray = {from, oracle_direction(&random), INFINITY};
        struct mesh_contact floor[SIMD_LEVELS];
        struct mesh_hit hit[SIMD_LEVELS];
        bool has[SIMD_LEVELS], stands[SIMD_LEVELS];

        for (int level = 0; level < SIMD_LEVELS; level++) {
            if (of[level] == NULL)
                continue;
            has[level] = mesh_ray(of[level], &ray, RAY_CLOSEST, &hit[level]);
            stands[level] = mesh_floor(of[level], from, 0, &floor[level]);
            assert_int_equal(has[level], has[0]);
            assert_int_equal(stands[level], stands[0]);
            if (has[0])
                assert_same(&hit[level], &hit[0]);
            if (stands[0])
                assert_memory_equal(&floor[level], &floor[0],
                                    offsetof(struct mesh_contact, polygon));
        }
        hits += has[0];
    }
    assert_true(hits > RAYS);
    for (int level = 0; level < SIMD_LEVELS; level++)
        mesh_unref(of[level]);
    soup_free(&soup);
}

/* ---- edits ----------------------------------------------------------------------------------- */

/* Puts rays to an edited mesh and its polygons. */
static void edited_check(const struct mesh *mesh, const struct soup *soup, struct random *random)
{
    struct err err;
    size_t count = mesh->header->count[MESH_POLYGONS];
    uint32_t *all = malloc(count * sizeof *all);

    assert_non_null(all);
    for (size_t i = 0; i < count; i++)
        all[i] = (uint32_t)i;
    assert_true(mesh_rays_validate(mesh, &err));
    for (unsigned i = 0; i < RAYS / 2; i++) {
        struct ray ray = some_ray(soup, random, 200, i);
        struct mesh_hit hit, want;
        bool has;

        if (!(vec3_length(ray.direction) > 0))
            continue;
        has = mesh_ray_among(mesh, &ray, all, count, &want);
        assert_int_equal(mesh_ray(mesh, &ray, RAY_CLOSEST, &hit), has);
        if (has)
            assert_same(&hit, &want);
        assert_int_equal(mesh_ray(mesh, &ray, RAY_ANY, &hit), has);
    }
    free(all);
}

static void triangle_draw(struct random *random, struct soup *soup)
{
    struct vec3 at = vec3_scale(oracle_direction(random), random_in(random, 0, 100)), ring[3];

    for (int k = 0; k < 3; k++)
        ring[k] = vec3_add(at, vec3_scale(oracle_direction(random), 12));
    soup_add(soup, ring, 3);
}

static void edits_keep_the_trees_right(void **state)
{
    struct random random = drawn(4007);
    struct mesh_options options = {.gravity = down};
    struct soup soup = {0}; /* all that was ever there */
    unsigned seconds = 0;

    (void)state;
    /* so far out that the roundings of what is added are allowed for */
    soup_add(&soup, (struct vec3[]){{-150, -150, 0}, {-150, -149, 0}, {-149, -150, 1}}, 3);
    soup_add(&soup, (struct vec3[]){{150, 150, 150}, {150, 149, 150}, {149, 150, 151}}, 3);
    for (int i = 0; i < 500; i++)
        triangle_draw(&random, &soup);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    for (int edit = 0; edit < 40; edit++) {
        struct soup added = {0};
        struct polygon_soup view, after;
        uint32_t removed[16], many = 0, number = random_below(&random, 40);
        struct err err;

        for (uint32_t k = 0; k < random_below(&random, 12); k++)
            triangle_draw(&random, &added);
        for (uint32_t k = 0; k < 16 && number < soup.polygon_count && edit % 3; k++) {
            removed[many++] = number;
            number += 1 + random_below(&random, 60);
        }
        struct mesh_change change = {.first_number = (uint32_t)soup.polygon_count,
                                     .removed = removed,
                                     .removed_count = many};

        for (size_t p = 0; p < added.polygon_count; p++) {
            const uint32_t *c = &added.corners[added.starts[p]];

            soup_add(
                &soup,
                (struct vec3[]){added.vertices[c[0]], added.vertices[c[1]], added.vertices[c[2]]},
                3);
        }
        view = soup_view(&added);
        after = soup_view(&soup);
        change.added = added.polygon_count ? &view : NULL;
        change.after = &after;
        struct mesh *next = mesh_edit(mesh, &change, &err);

        assert_non_null(next);
        mesh_unref(mesh);
        mesh = next;
        seconds += mesh->rays.more.node_count > 0;
        edited_check(mesh, &soup, &random);
        soup_free(&added);
    }
    assert_true(seconds > 5);
    mesh_unref(mesh);
    soup_free(&soup);
}

/* ---- many rays ------------------------------------------------------------------------------ */

static void batches_check(const struct mesh *mesh, const struct soup *soup, struct random *random)
{
    enum { COUNT = 1000 };
    static struct ray rays[COUNT];
    static struct mesh_hit hits[COUNT];
    unsigned found = 0;

    for (unsigned i = 0; i < COUNT; i++) {
        do
            rays[i] = some_ray(soup, random, 400, i);
        while (!(vec3_length(rays[i].direction) > 0));
        if (i % 16 == 0) /* along gravity; past the mesh */
            rays[i].direction = (struct vec3){0, 0, -1};
        if (i % 16 == 1)
            rays[i].origin.x += 1e6;
    }
    for (int mode = RAY_CLOSEST; mode <= RAY_LIGHT_ANY; mode++) {
        mesh_rays(mesh, rays, COUNT, (enum ray_mode)mode, hits);
        for (unsigned i = 0; i < COUNT; i++) {
            struct mesh_hit want;

            assert_int_equal(mesh_ray(mesh, &rays[i], (enum ray_mode)mode, &want),
                             hits[i].t < INFINITY);
            if (hits[i].t < INFINITY)
                assert_same(&hits[i], &want);
            found += hits[i].t < INFINITY;
        }
    }
    assert_in_range(found, COUNT, 4 * COUNT - 1);
}

/* Hills whose tree is larger than what is walked ray by ray, and with an edit's second tree. */
static void batches_have_the_bits_of_rays(void **state)
{
    enum { SIDE = 180 };
    struct random random = drawn(4009);
    struct soup soup = {0}, added = {0};
    struct meshes m;

    (void)state;
    for (uint32_t i = 0; i <= SIDE; i++)
        for (uint32_t k = 0; k <= SIDE; k++)
            soup_vertex(&soup, (struct vec3){k, i, random_in(&random, 0, 2)});
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = 0; k < SIDE; k++) {
            uint32_t a = i * (SIDE + 1) + k, b = a + SIDE + 1;

            soup_polygon(&soup, (uint32_t[]){a, a + 1, b + 1}, 3);
            soup_polygon(&soup, (uint32_t[]){a, b + 1, b}, 3);
        }
    meshes_make(&m, &soup);
    for (int i = 0; i < 10; i++)
        soup_add(&added, (struct vec3[]){{10 * i, 20, 1}, {10 * i + 9, 20, 1}, {10 * i, 90, 2}}, 3);
    for (int level = 0; level < SIMD_LEVELS; level++) {
        struct polygon_soup view = soup_view(&added);
        struct mesh_change change = {.first_number = (uint32_t)soup.polygon_count, .added = &view};
        struct mesh *edited;
        struct err err;

        if (m.of[level] == NULL)
            continue;
        batches_check(m.of[level], &soup, &random);
        edited = mesh_edit(m.of[level], &change, &err);
        assert_non_null(edited);
        assert_true(edited->rays.more.node_count > 0);
        batches_check(edited, &soup, &random);
        mesh_unref(edited);
    }
    meshes_free(&m);
    soup_free(&added);
    soup_free(&soup);
}

/* ---- is it right? ---------------------------------------------------------------------------- */

static void damage_is_found(void **state)
{
    struct random random = drawn(4008);
    struct mesh_options options = {.gravity = down};
    struct soup soup = {0};
    struct err err;

    (void)state;
    for (int i = 0; i < 200; i++)
        triangle_draw(&random, &soup);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);
    struct ray_tree *tree = &mesh->rays.first;

    assert_true(mesh_rays_validate(mesh, &err));
    for (int i = 0; i < 4; i++) {
        struct ray_tree_node node = tree->nodes[0];
        struct ray_tree_block block = tree->blocks[0];

        if (i == 0)
            tree->nodes[0].side[0][0][0] += 0.1F;
        else if (i == 1)
            tree->nodes[0].child[1] = tree->nodes[0].child[0];
        else if (i == 2)
            tree->blocks[0].polygon[0] = tree->blocks[1].polygon[0];
        else
            tree->blocks[0].step *= 64;
        assert_false(mesh_rays_validate(mesh, &err));
        tree->nodes[0] = node;
        tree->blocks[0] = block;
    }
    assert_true(mesh_rays_validate(mesh, &err));
    mesh_unref(mesh);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soups_of_all_sizes),
        cmocka_unit_test(loose_triangles),
        cmocka_unit_test(polygons_of_many_corners),
        cmocka_unit_test(one_triangle),
        cmocka_unit_test(shared_meshes),
        cmocka_unit_test(levels_agree_on_a_planet),
        cmocka_unit_test(edits_keep_the_trees_right),
        cmocka_unit_test(batches_have_the_bits_of_rays),
        cmocka_unit_test(damage_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
