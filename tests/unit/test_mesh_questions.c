/*
 * Questions at ground that nobody tuned for (mesh_scenes.h), at every level of vector instructions,
 * against brute force: heights, contacts, rays and any hit; then the same bits in batches, from an
 * image and from a mesh that several threads have made.
 */
#include "support/mesh_oracle.h"
#include "support/mesh_scenes.h"
#include "world/values/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/each_level.h"
#include "support/long_form.h"

enum { TRIANGLES = 2500, AT_ONCE = 500, KINDS = 3 };

#define BORDER 1e-9 /* barycentric units, and metres */
#define AGREE 1e-6  /* metres */

/* One scene, made in three ways that must not differ. */
struct scene {
    struct soup soup;
    struct polygon_soup view;
    struct mesh *meshes[KINDS];
    struct box3 box;
    struct oracle_crossing crossings[2 * TRIANGLES];
};

static void scene_make(struct scene *s, enum mesh_scene which)
{
    struct threads threads = threads_of_machine();
    struct mesh_options options = {.gravity = {0, 0, -1}};
    struct err err;
    size_t length;

    memset(s, 0, sizeof *s);
    mesh_scene_make(which, TRIANGLES, 26 + (uint64_t)which, &s->soup);
    s->view = soup_view(&s->soup);
    assert_true(s->view.polygon_count <= 2 * TRIANGLES);
    s->meshes[0] = soup_mesh(&s->soup, &options, NULL);
    threads.count = 3;
    options.crew = &threads.crew;
    s->meshes[1] = soup_mesh(&s->soup, &options, NULL);
    const void *image = mesh_image(s->meshes[0], &length);

    s->meshes[2] = mesh_open_by(&threads.crew, image, length, NULL, NULL, &err);
    assert_non_null(s->meshes[2]);
    s->box = mesh_bounds(s->meshes[0]);
}

static void scene_free(struct scene *s)
{
    for (int i = 0; i < KINDS; i++)
        mesh_unref(s->meshes[i]);
    soup_free(&s->soup);
}

static struct vec3 place(const struct scene *s, struct random *random)
{
    const struct box3 *b = &s->box;

    return (struct vec3){random_in(random, b->min.x - 1, b->max.x + 1),
                         random_in(random, b->min.y - 1, b->max.y + 1),
                         random_in(random, b->min.z - 2, b->max.z + 2)};
}

/* The highest floor at or below a point, within what rounding may decide otherwise. */
static void expect_floor(struct scene *s, struct vec3 p, bool is_found,
                         const struct mesh_contact *c)
{
    uint32_t count = oracle_column(&s->view, (struct vec3){0, 0, 1}, p, BORDER, s->crossings);
    double best = -INFINITY;
    bool is_known = !is_found;

    for (uint32_t i = 0; i < count; i++) {
        const struct oracle_crossing *x = &s->crossings[i];
        double doubt = BORDER + x->doubt;

        is_known |= is_found && fabs(x->height + c->distance_m) <= AGREE;
        if (!x->is_border && x->height < -doubt && x->height > best)
            best = x->height;
    }
    if (!is_known || (is_found ? -c->distance_m < best - AGREE : best > -INFINITY))
        fail_msg("from (%.17g %.17g %.17g): found %d at %.17g, brute force %.17g of %u", p.x, p.y,
                 p.z, is_found, is_found ? -c->distance_m : NAN, best, count);
}

static void expect_same_contact(const struct mesh_contact *a, const struct mesh_contact *b)
{
    assert_memory_equal(&a->point, &b->point, sizeof a->point);
    assert_memory_equal(&a->normal, &b->normal, sizeof a->normal);
    assert_memory_equal(&a->distance_m, &b->distance_m, sizeof a->distance_m);
    assert_int_equal(a->polygon, b->polygon);
}

static void ask_floors(struct scene *s, struct random *random)
{
    struct vec3 points[AT_ONCE];
    struct mesh_height heights[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++)
        points[i] = place(s, random);
    mesh_floor_heights(s->meshes[0], points, AT_ONCE, 0, heights);
    for (int i = 0; i < AT_ONCE; i++) {
        struct mesh_contact c[KINDS] = {{.polygon = 0}};
        struct mesh_height height;
        bool is_found = mesh_floor(s->meshes[0], points[i], 0, &c[0]);

        expect_floor(s, points[i], is_found, &c[0]);
        for (int k = 1; k < KINDS; k++) {
            assert_int_equal(mesh_floor(s->meshes[k], points[i], 0, &c[k]), is_found);
            expect_same_contact(&c[0], &c[k]);
        }
        mesh_floor_heights(s->meshes[0], &points[i], 1, 0, &height);
        assert_int_equal(heights[i].polygon, is_found ? c[0].polygon : MESH_NO_POLYGON);
        assert_memory_equal(&heights[i].height_m, &height.height_m, sizeof height.height_m);
    }
}

static void expect_ray(const struct scene *s, const struct ray *ray, double t)
{
    struct oracle_hit want = oracle_ray(&s->view, ray, 1e-7);
    double agree = AGREE + 1e-9 * fabs(t);

    if (t > want.t_tight + agree || t < want.t_loose - agree)
        fail_msg("from (%.17g %.17g %.17g) along (%.17g %.17g %.17g): t %.17g, brute force %.17g",
                 ray->origin.x, ray->origin.y, ray->origin.z, ray->direction.x, ray->direction.y,
                 ray->direction.z, t, want.t);
}

static void ask_rays(struct scene *s, struct random *random)
{
    struct ray rays[AT_ONCE];
    struct mesh_hit batch[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++) {
        struct vec3 from = place(s, random), to = place(s, random);

        rays[i] = (struct ray){from, vec3_unit(vec3_sub(to, from)), INFINITY};
    }
    mesh_rays(s->meshes[0], rays, AT_ONCE, RAY_CLOSEST, batch);
    for (int i = 0; i < AT_ONCE; i++) {
        struct mesh_hit hit[KINDS], any;

        for (int k = 0; k < KINDS; k++) {
            hit[k] = (struct mesh_hit){.t = INFINITY};
            (void)mesh_ray(s->meshes[k], &rays[i], RAY_CLOSEST, &hit[k]);
            assert_memory_equal(&hit[0].t, &hit[k].t, sizeof hit[0].t);
            assert_int_equal(hit[0].polygon, hit[k].polygon);
        }
        expect_ray(s, &rays[i], hit[0].t);
        assert_memory_equal(&hit[0].t, &batch[i].t, sizeof hit[0].t);
        assert_int_equal(mesh_ray(s->meshes[0], &rays[i], RAY_ANY, &any), isfinite(hit[0].t));
    }
}

static void questions(enum mesh_scene which)
{
    static struct scene s;
    unsigned rounds = long_form(25, 4);
    struct random random = {which + 5};

    scene_make(&s, which);
    for (unsigned i = 0; i < rounds; i++) {
        ask_floors(&s, &random);
        ask_rays(&s, &random);
    }
    scene_free(&s);
}

static void hills_are_as_brute_force_says(void **state)
{
    (void)state;
    questions(MESH_SCENE_HILLS);
}

static void a_town_is_as_brute_force_says(void **state)
{
    (void)state;
    questions(MESH_SCENE_TOWN);
}

static void a_track_is_as_brute_force_says(void **state)
{
    (void)state;
    questions(MESH_SCENE_TRACK);
}

static void a_soup_is_as_brute_force_says(void **state)
{
    (void)state;
    questions(MESH_SCENE_SOUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hills_are_as_brute_force_says),
        cmocka_unit_test(a_town_is_as_brute_force_says),
        cmocka_unit_test(a_track_is_as_brute_force_says),
        cmocka_unit_test(a_soup_is_as_brute_force_says),
    };

    return run_at_every_level("mesh_questions", tests, sizeof tests / sizeof *tests);
}
