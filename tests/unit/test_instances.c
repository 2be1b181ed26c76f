/*
 * Meshes in many places against brute force over polygons that this test puts there itself, at
 * every level of vector instructions: floors, ceilings, rays, sweeps, under upright and other
 * gravity; the numbers of polygons; then the same bits in batches and from the image. And what is
 * copied, refused, or damaged.
 */
#include "terrain/instances/instances.h"

#include "support/mesh_oracle.h"
#include "terrain/mesh/mesh_edit.h"
#include "terrain/sweep/sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/each_level.h"
#include "support/long_form.h"

enum { PLACES = 60, KINDS = 2 };

#define BORDER 1e-9
#define RELATIVE 1e-9 /* of the largest coordinate, some 200 m */
#define AGREE (200 * RELATIVE)

/* Two kinds in many places and one alone, in any order. */
struct town {
    struct vec3 axis;
    struct soup soup, copies;
    struct polygon_soup view; /* of the copies */
    struct mesh_instance at[PLACES];
    struct mesh_instances instances;
    struct mesh *mesh, *again, *flat;
    struct mesh_import import;
    struct oracle_crossing *crossings;
};

static void kind_add(struct town *town, struct random *random, double size)
{
    struct soup kind = {.vertices = NULL};
    uint32_t base = (uint32_t)town->soup.vertex_count;

    oracle_soup(random, town->axis, size, &kind);
    for (size_t i = 0; i < kind.vertex_count; i++)
        soup_vertex(&town->soup, kind.vertices[i]);
    for (size_t i = 0; i < kind.polygon_count; i++) {
        uint32_t corners[64], count = kind.starts[i + 1] - kind.starts[i];

        assert_true(count <= 64);
        for (uint32_t k = 0; k < count; k++)
            corners[k] = base + kind.corners[kind.starts[i] + k];
        soup_polygon(&town->soup, corners, count);
    }
    soup_free(&kind);
}

/* By a matrix, not as the server does it. */
static struct vec3 placed(const struct town *town, const struct mesh_instance *at, struct vec3 v)
{
    struct vec3 u = town->axis;
    double c = at->cos, s = at->sin, rest = 1 - c;

    return (struct vec3){
        (c + u.x * u.x * rest) * v.x + (u.x * u.y * rest - u.z * s) * v.y +
            (u.x * u.z * rest + u.y * s) * v.z + at->translation.x,
        (u.y * u.x * rest + u.z * s) * v.x + (c + u.y * u.y * rest) * v.y +
            (u.y * u.z * rest - u.x * s) * v.z + at->translation.y,
        (u.z * u.x * rest - u.y * s) * v.x + (u.z * u.y * rest + u.x * s) * v.y +
            (c + u.z * u.z * rest) * v.z + at->translation.z,
    };
}

static void copies_make(struct town *town)
{
    for (int i = 0; i < PLACES; i++)
        for (uint32_t p = 0; p < town->at[i].count; p++) {
            const uint32_t *starts = town->soup.starts + town->at[i].first + p;
            struct vec3 corners[64];

            for (uint32_t k = starts[0]; k < starts[1]; k++)
                corners[k - starts[0]] =
                    placed(town, &town->at[i], town->soup.vertices[town->soup.corners[k]]);
            soup_add(&town->copies, corners, starts[1] - starts[0]);
        }
    town->view = soup_view(&town->copies);
    town->crossings = malloc(town->view.polygon_count * sizeof *town->crossings);
}

static void places_set(struct town *town, struct random *random, const uint32_t ends[KINDS + 2])
{
    for (int i = 0; i < PLACES; i++) {
        int kind = i == PLACES / 3 ? KINDS : i % KINDS;
        double turn = i % 5 == 0 ? 0 : random_in(random, -4, 4);

        town->at[i] = (struct mesh_instance){.translation = {random_in(random, -80, 80),
                                                             random_in(random, -80, 80),
                                                             random_in(random, -20, 20)},
                                             .cos = cos(turn),
                                             .sin = sin(turn),
                                             .first = ends[kind],
                                             .count = ends[kind + 1] - ends[kind]};
        if (i == 4) /* two lie on one another */
            town->at[i].translation = town->at[2].translation;
        if (kind == KINDS)
            town->at[i] = (struct mesh_instance){
                .cos = 1, .first = town->at[i].first, .count = town->at[i].count};
    }
    town->instances = (struct mesh_instances){town->at, PLACES, town->axis};
}

static void town_make(struct town *town, uint64_t seed, struct vec3 axis)
{
    struct random random = {seed};
    uint32_t ends[KINDS + 2] = {0};
    struct err err;
    size_t length;

    *town = (struct town){.axis = axis};
    for (int i = 0; i <= KINDS; i++) {
        kind_add(town, &random, i == KINDS ? 100 : 10 + 10 * i);
        ends[i + 1] = (uint32_t)town->soup.polygon_count;
    }
    places_set(town, &random, ends);
    copies_make(town);
    const struct mesh_options plain = {.gravity = vec3_opposite(axis)};
    struct mesh_options shared = plain;

    shared.instances = &town->instances;
    town->mesh = soup_mesh(&town->soup, &shared, &town->import);
    town->flat = soup_mesh(&town->copies, &plain, NULL);
    const void *image = mesh_image(town->mesh, &length);

    town->again = mesh_open(image, length, NULL, NULL, &err);
    if (!town->again || !mesh_validate(town->again, &err))
        fail_msg("%s", err.msg);
}

static void town_free(struct town *town)
{
    mesh_unref(town->mesh);
    mesh_unref(town->again);
    mesh_unref(town->flat);
    soup_free(&town->soup);
    soup_free(&town->copies);
    free(town->crossings);
}

static struct vec3 somewhere(struct random *random)
{
    return (struct vec3){random_in(random, -100, 100), random_in(random, -100, 100),
                         random_in(random, -60, 60)};
}

/* ---- against brute force --------------------------------------------------------------------- */

/* The polygon that was named is one that the line meets at this height. */
static bool is_named(const struct town *town, uint32_t count, double up_m, uint32_t polygon)
{
    for (uint32_t i = 0; i < count; i++)
        if (town->crossings[i].polygon == polygon &&
            fabs(town->crossings[i].height - up_m) <= AGREE + town->crossings[i].doubt)
            return true;
    return false;
}

static void expect_contact(struct town *town, struct vec3 p, bool is_floor, bool is_found,
                           const struct mesh_contact *c)
{
    uint32_t count = oracle_column(&town->view, town->axis, p, BORDER, town->crossings);
    double best = INFINITY, at = is_floor ? c->distance_m : -c->distance_m;

    for (uint32_t i = 0; i < count; i++) {
        const struct oracle_crossing *x = &town->crossings[i];
        double way = is_floor ? -x->height : x->height;

        if (!x->is_border && way > AGREE + x->doubt)
            best = fmin(best, way + x->doubt);
    }
    if (is_found ? at > best + AGREE || !is_named(town, count, -c->distance_m, c->polygon)
                 : best < INFINITY)
        fail_msg("from (%.17g %.17g %.17g): found %d at %.17g, brute force %.17g", p.x, p.y, p.z,
                 is_found, is_found ? at : NAN, best);
}

static void expect_same(const struct mesh_contact *a, const struct mesh_contact *b)
{
    assert_memory_equal(&a->point, &b->point, sizeof a->point);
    assert_memory_equal(&a->normal, &b->normal, sizeof a->normal);
    assert_memory_equal(&a->distance_m, &b->distance_m, sizeof a->distance_m);
    assert_int_equal(a->polygon, b->polygon);
}

static void ask_contacts(struct town *town, struct random *random)
{
    struct vec3 p = somewhere(random);
    struct mesh_contact c[2] = {{.polygon = 0}};
    struct mesh_height height;
    bool is_found = mesh_floor(town->mesh, p, 0, &c[0]);

    expect_contact(town, p, true, is_found, &c[0]);
    assert_int_equal(mesh_floor(town->again, p, 0, &c[1]), is_found);
    mesh_floor_heights(town->mesh, &p, 1, 0, &height);
    assert_int_equal(height.polygon, is_found ? c[0].polygon : MESH_NO_POLYGON);
    if (is_found) {
        expect_same(&c[0], &c[1]);
        assert_true(fabs(height.height_m + c[0].distance_m - vec3_dot(p, town->axis)) < AGREE);
        /* it stays on it, and is not its own ceiling */
        assert_true(mesh_floor(town->mesh, c[0].point, 0, &c[1]));
        assert_true(fabs(c[1].distance_m) < AGREE);
        if (mesh_ceiling(town->mesh, c[0].point, -c[1].distance_m, 0, &c[1]))
            assert_true(-c[1].distance_m > 0);
    }
    is_found = mesh_ceiling(town->mesh, p, -INFINITY, 0, &c[0]);
    expect_contact(town, p, false, is_found, &c[0]);
    assert_int_equal(mesh_ceiling(town->again, p, -INFINITY, 0, &c[1]), is_found);
    if (is_found)
        expect_same(&c[0], &c[1]);
}

static void ask_rays(struct town *town, struct random *random)
{
    struct vec3 from = somewhere(random), to = somewhere(random);
    struct ray ray = {from, vec3_sub(to, from), random_bits(random) % 2 ? INFINITY : 1};
    struct mesh_hit hit[3] = {{.t = INFINITY}, {.t = INFINITY}}, any;
    struct oracle_hit want;

    if (random_bits(random) % 8 == 0)
        ray.direction = vec3_scale(town->axis, -3);
    want = oracle_ray(&town->view, &ray, 1e-7);
    mesh_ray(town->mesh, &ray, RAY_CLOSEST, &hit[0]);
    mesh_ray(town->again, &ray, RAY_CLOSEST, &hit[1]);
    mesh_rays(town->mesh, &ray, 1, RAY_CLOSEST, &hit[2]);
    for (int i = 1; i < 3; i++) {
        assert_memory_equal(&hit[0].t, &hit[i].t, sizeof hit[0].t);
        assert_true(hit[0].t == INFINITY || hit[0].polygon == hit[i].polygon);
    }
    assert_int_equal(mesh_ray(town->mesh, &ray, RAY_ANY, &any), hit[0].t < INFINITY);
    if (hit[0].t > want.t_tight + AGREE || hit[0].t < want.t_loose - AGREE)
        fail_msg("ray: t %.17g, brute force %.17g", hit[0].t, want.t);
    if (hit[0].t == INFINITY)
        return;
    /* the polygon named is met there */
    const uint32_t starts[2] = {town->view.starts[hit[0].polygon],
                                town->view.starts[hit[0].polygon + 1]};
    const struct polygon_soup one = {town->view.vertices, town->view.vertex_count,
                                     town->view.corners, starts, 1};

    want = oracle_ray(&one, &ray, 1e-7);
    assert_true(fabs(want.t_loose - hit[0].t) < AGREE);
}

static void ask_sweeps(const struct town *town, struct random *random)
{
    const struct shape shapes[] = {{.kind = SHAPE_SPHERE, .radius_m = 0.7},
                                   {.kind = SHAPE_CAPSULE, .radius_m = 0.4, .height_m = 1.8},
                                   {.kind = SHAPE_BOX, .half_m = {1, 2, 0.5}, .yaw_deg = 30},
                                   {.kind = SHAPE_SPHERE}};
    struct vec3 from = somewhere(random), to = somewhere(random);

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct sweep s[2];

        for (int k = 0; k < 2; k++)
            sweep_begin(&s[k], &shapes[i], town->axis, from, to);
        assert_int_equal(mesh_sweep(town->mesh, &s[0]), mesh_sweep(town->flat, &s[1]));
        if (s[0].best.fraction == INFINITY)
            continue;
        assert_true(fabs(s[0].best.fraction - s[1].best.fraction) < 1e-9);
        assert_int_equal(s[0].best.starts_inside, s[1].best.starts_inside);
        assert_true(s[0].best.polygon < town->view.polygon_count);
    }
}

/* As a layer that is tilted asks it. */
static void ask_along(const struct town *town, struct random *random)
{
    struct vec3 p = somewhere(random), down = oracle_direction(random);
    struct mesh_contact a, b;
    bool is_found = mesh_floor_along(town->mesh, p, down, 5, &a);

    assert_int_equal(mesh_floor_along(town->flat, p, down, 5, &b), is_found);
    if (is_found)
        assert_true(fabs(a.distance_m - b.distance_m) < AGREE);
    is_found = mesh_ceiling_along(town->mesh, p, down, -INFINITY, 0, &a);
    assert_int_equal(mesh_ceiling_along(town->flat, p, down, -INFINITY, 0, &b), is_found);
    if (is_found)
        assert_true(fabs(a.distance_m - b.distance_m) < AGREE);
}

static void questions(uint64_t seed, struct vec3 axis)
{
    struct random random = {seed + 1};
    struct mesh_stats shared, flat;
    struct town town;

    town_make(&town, seed, axis);
    for (unsigned i = 0; i < long_form(2000, 100); i++) {
        ask_contacts(&town, &random);
        ask_rays(&town, &random);
        ask_sweeps(&town, &random);
        ask_along(&town, &random);
    }
    mesh_stats(town.mesh, &shared);
    mesh_stats(town.flat, &flat);
    assert_true(shared.polygons == flat.polygons && shared.bytes < flat.bytes);
    assert_int_equal(town.import.instances_shared, PLACES - 1);
    assert_int_equal(town.import.instances_copied, 0);
    assert_true(town.import.kept == flat.polygons);
    town_free(&town);
}

static void upright_instances_are_as_brute_force_says(void **state)
{
    (void)state;
    questions(11, (struct vec3){0, 0, 1});
    questions(12, (struct vec3){0, 0, 1});
}

static void they_are_under_any_gravity(void **state)
{
    (void)state;
    questions(13, vec3_unit((struct vec3){0.3, -0.5, 0.8}));
    questions(14, (struct vec3){0, 1, 0});
}

/* ---- the same bits at every level ------------------------------------------------------------ */

static void answers_have_the_same_bits_at_every_level(void **state)
{
    enum { GOT = 8 };
    const struct shape sphere = {.kind = SHAPE_SPHERE, .radius_m = 0.7};
    static double first[300 * GOT];
    static bool has_first;
    struct random random = {99};
    struct town town;

    (void)state;
    town_make(&town, 98, (struct vec3){0, 0, 1});
    for (int i = 0; i < 300; i++) {
        struct vec3 from = somewhere(&random), to = somewhere(&random);
        struct ray ray = {from, vec3_sub(to, from), INFINITY};
        struct mesh_contact c = {.distance_m = INFINITY};
        struct mesh_hit hit = {.t = INFINITY}, any = hit;
        struct sweep sweep;

        (void)mesh_floor(town.mesh, from, 1, &c);
        (void)mesh_ray(town.mesh, &ray, RAY_CLOSEST, &hit);
        (void)mesh_ray(town.mesh, &ray, RAY_ANY, &any);
        sweep_begin(&sweep, &sphere, town.axis, from, to);
        sweep.best.polygon = 0;
        (void)mesh_sweep(town.mesh, &sweep);
        const double got[GOT] = {c.distance_m,
                                 c.distance_m < INFINITY ? c.polygon : 0,
                                 hit.t,
                                 hit.t < INFINITY ? hit.polygon : 0,
                                 any.t,
                                 any.t < INFINITY ? any.polygon : 0,
                                 sweep.best.fraction,
                                 sweep.best.polygon};

        if (has_first)
            assert_memory_equal(got, first + (ptrdiff_t)GOT * i, sizeof got);
        else
            memcpy(first + (ptrdiff_t)GOT * i, got, sizeof got);
    }
    has_first = true;
    town_free(&town);
}

/* ---- what is not shared ---------------------------------------------------------------------- */

static void other_gravity_makes_copies(void **state)
{
    struct town town;
    struct mesh_import import;
    struct vec3 place = {0, 0, 100};
    struct mesh_contact a, b;

    (void)state;
    town_make(&town, 5, (struct vec3){0, 0, 1});
    const struct mesh_options tilted = {.gravity = {0.6, 0, -0.8}, .instances = &town.instances};
    struct mesh *mesh = soup_mesh(&town.soup, &tilted, &import);

    assert_null(mesh->instances);
    assert_int_equal(import.instances_shared, 0);
    struct mesh_options plain = tilted;

    plain.instances = NULL;
    struct mesh *flat = soup_mesh(&town.copies, &plain, NULL);
    bool is_found = mesh_floor(mesh, place, INFINITY, &a);

    assert_int_equal(mesh_floor(flat, place, INFINITY, &b), is_found);
    assert_true(!is_found || a.polygon == b.polygon);
    mesh_unref(mesh);
    mesh_unref(flat);
    town_free(&town);
}

static void a_kind_without_polygons_makes_copies(void **state)
{
    struct soup soup = {.vertices = NULL};
    struct mesh_instance at[4] = {{.cos = 1, .first = 0, .count = 1},
                                  {.translation = {5, 0, 0}, .cos = 1, .first = 0, .count = 1},
                                  {.translation = {0, 0, 1}, .cos = 1, .first = 1, .count = 1},
                                  {.translation = {9, 0, 1}, .cos = 1, .first = 1, .count = 1}};
    const struct mesh_instances instances = {at, 4, {0, 0, 1}};
    const struct mesh_options options = {.gravity = {0, 0, -1}, .instances = &instances};
    struct mesh_import import;
    struct mesh_contact contact;

    (void)state;
    soup_square(&soup, 0, 0, 1, 0);
    soup_add(&soup, (struct vec3[]){{0, 0, 0}, {1, 1, 1}, {2, 2, 2}}, 3); /* no area */
    struct mesh *mesh = soup_mesh(&soup, &options, &import);

    assert_int_equal(import.instances_copied, 4);
    assert_int_equal(import.dropped, 2);
    assert_int_equal(import.drops[1].polygon, 3);
    assert_true(mesh_floor(mesh, (struct vec3){5.5, 0.5, 2}, 0, &contact));
    assert_int_equal(contact.polygon, 1);
    mesh_unref(mesh);
    soup_free(&soup);
}

/* Kinds that are in one place only, where they were made, take no mesh each. */
static void what_is_in_one_place_is_of_one_mesh(void **state)
{
    struct soup soup = {.vertices = NULL};
    struct mesh_instance at[4] = {{.cos = 1, .first = 0, .count = 1},
                                  {.cos = 1, .first = 1, .count = 1},
                                  {.cos = 1, .first = 2, .count = 1},
                                  {.translation = {0, 9, 0}, .cos = 1, .first = 2, .count = 1}};
    const struct mesh_instances instances = {at, 4, {0, 0, 1}};
    const struct mesh_options options = {.gravity = {0, 0, -1}, .instances = &instances};
    struct mesh_import import;

    (void)state;
    for (int i = 0; i < 3; i++)
        soup_square(&soup, 3 * i, 0, 1, 0);
    struct mesh *mesh = soup_mesh(&soup, &options, &import);

    assert_int_equal(mesh->instances->header->mesh_count, 2);
    assert_int_equal(mesh->instances->header->place_count, 3);
    mesh_unref(mesh);
    soup_free(&soup);
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    struct soup soup = {.vertices = NULL};
    const struct mesh_instance good = {.cos = 1, .first = 0, .count = 2};
    struct mesh_instance bad[] = {good, good, good, good, good, good};
    struct err err;

    (void)state;
    soup_square(&soup, 0, 0, 1, 0);
    soup_square(&soup, 3, 0, 1, 0);
    struct polygon_soup view = soup_view(&soup);

    bad[0].first = 1;
    bad[1].count = 0;
    bad[2].translation.y = NAN;
    bad[3].sin = 0.5;
    bad[4].cos = INFINITY;
    bad[5].translation.x = 1e13;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mesh_instance both[2] = {good, bad[i]};
        const struct mesh_instances instances = {both, 2, {0, 0, 1}};
        const struct mesh_options options = {.gravity = {0, 0, -1}, .instances = &instances};

        assert_null(mesh_create(&view, &options, NULL, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
    }
    struct mesh_instance parts[2] = {good, good};
    const struct mesh_instances instances = {parts, 2, {0, 0, 1}};
    const struct mesh_options options = {.gravity = {0, 0, -1}, .instances = &instances};

    parts[1].count = 1;
    assert_null(mesh_create(&view, &options, NULL, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    soup_free(&soup);
}

static void a_damaged_image_is_refused(void **state)
{
    struct random random = {3};
    struct town town;
    struct err err;
    size_t length;

    (void)state;
    town_make(&town, 6, (struct vec3){0, 0, 1});
    const uint8_t *image = mesh_image(town.mesh, &length);
    uint8_t *damaged = aligned_alloc(64, (length + 63) / 64 * 64);

    for (int i = 0; i < 200; i++) {
        memcpy(damaged, image, length);
        damaged[random_bits(&random) % length] ^= (uint8_t)(1 + random_bits(&random) % 255);
        assert_null(mesh_open(damaged, length, NULL, NULL, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
    }
    for (int i = 0; i < 50; i++)
        assert_null(mesh_open(image, random_bits(&random) % length, NULL, NULL, &err));
    memcpy(damaged, image, length);
    ((struct instances_header *)(void *)damaged)->version = INSTANCES_VERSION + 1;
    assert_null(mesh_open(damaged, length, NULL, NULL, &err));
    assert_non_null(strstr(err.msg, "version 2"));
    free(damaged);
    town_free(&town);
}

static void an_edit_is_made_in_copies(void **state)
{
    const uint32_t removed[] = {3};
    const struct mesh_change change = {.removed = removed, .removed_count = 1};
    struct town town;
    struct err err;

    (void)state;
    town_make(&town, 7, (struct vec3){0, 0, 1});
    assert_null(mesh_edit(town.mesh, &change, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    town_free(&town);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upright_instances_are_as_brute_force_says),
        cmocka_unit_test(they_are_under_any_gravity),
        cmocka_unit_test(answers_have_the_same_bits_at_every_level),
        cmocka_unit_test(other_gravity_makes_copies),
        cmocka_unit_test(a_kind_without_polygons_makes_copies),
        cmocka_unit_test(what_is_in_one_place_is_of_one_mesh),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(a_damaged_image_is_refused),
        cmocka_unit_test(an_edit_is_made_in_copies),
    };

    return run_at_every_level("instances", tests, sizeof tests / sizeof *tests);
}
