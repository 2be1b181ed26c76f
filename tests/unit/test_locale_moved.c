/*
 * Layers that stand elsewhere, against brute force: the oracle gets the polygons with their
 * vertices moved, the locale the layers with their poses. Gravity points anywhere.
 */
#include "world/ask/query.h"

#include "support/long_form.h"
#include "support/mesh_oracle.h"
#include "support/rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

enum { LAYERS = 3, POLYGONS_MAX = 3000 };

static struct err err;

/* A pose by another way than the server's: shares along axes across gravity. */
static struct vec3 moved(struct vec3 up, const struct pose *pose, struct vec3 v)
{
    struct vec3 east, north, out;
    double angle = pose->yaw_deg * M_PI / 180, x, y;

    if (pose_is_tilted(pose))
        return vec3_add(rotation_turn(pose->rotation, v), pose->translation);
    oracle_axes(up, &east, &north);
    x = vec3_dot(v, east);
    y = vec3_dot(v, north);
    out = vec3_add(vec3_scale(east, x * cos(angle) - y * sin(angle)),
                   vec3_scale(north, x * sin(angle) + y * cos(angle)));
    return vec3_add(vec3_add(out, vec3_scale(up, vec3_dot(v, up))), pose->translation);
}

static struct layer *layer_of(const struct soup *soup, const char *id, struct vec3 gravity)
{
    struct polygon_set set;
    struct layer *layer;

    assert_int_equal(polygon_set_allocate(soup->vertex_count, soup->polygon_count,
                                          soup->corner_count, &set, &err),
                     ERR_OK);
    memcpy(set.vertices, soup->vertices, soup->vertex_count * sizeof *set.vertices);
    memcpy(set.corners, soup->corners, soup->corner_count * sizeof *set.corners);
    memcpy(set.starts, soup->starts, (soup->polygon_count + 1) * sizeof *set.starts);
    layer = layer_create_mesh(id, LAYER_GROUND, &set, gravity, NULL, &err);
    if (!layer)
        fail_msg("%s", err.msg);
    return layer;
}

static void append_moved(struct soup *all, const struct soup *soup, struct vec3 up,
                         const struct pose *pose)
{
    struct vec3 corners[POLYGONS_MAX];

    for (size_t i = 0; i < soup->polygon_count; i++) {
        uint32_t count = soup->starts[i + 1] - soup->starts[i];

        assert_true(count <= POLYGONS_MAX);
        for (uint32_t k = 0; k < count; k++)
            corners[k] = moved(up, pose, soup->vertices[soup->corners[soup->starts[i] + k]]);
        soup_add(all, corners, count);
    }
}

struct world_of {
    struct locale *locale;
    struct soup all;
    size_t first[LAYERS]; /* polygon of each layer in all */
    struct vec3 up;
    double size;
    struct layer_choice choice;
};

static struct locale *with(struct locale *locale, struct layer *layer)
{
    struct locale *next = locale_next(locale, NULL, layer, NULL, NULL, &err);

    assert_non_null(next);
    layer_unref(layer);
    locale_unref(locale);
    return next;
}

static bool tilted; /* the poses of the worlds that are built have rotations in place of yaws */

/* Each layer is moved some times; the last pose counts. The first one is left where it was. */
static void build(struct random *random, uint64_t seed, struct world_of *out)
{
    struct locale_manifest manifest = locale_manifest_default;

    memset(out, 0, sizeof *out);
    out->up = seed % 3 == 0 ? (struct vec3){0, 0, 1} : oracle_direction(random);
    out->size = exp(random_in(random, 0, 4));
    manifest.gravity = vec3_opposite(out->up);
    out->locale = locale_create("l", &manifest, &err);
    for (int i = 0; i < LAYERS; i++) {
        struct pose pose = {.yaw_deg = 0};
        struct soup soup = {0};
        char id[16];

        snprintf(id, sizeof id, "l%d", i);
        oracle_soup(random, out->up, out->size, &soup);
        out->locale = with(out->locale, layer_of(&soup, id, manifest.gravity));
        for (int k = 0; k < 3 * i; k++) {
            const struct layer *layer = locale_layer(out->locale, id);
            struct layer *there;
            struct locale *next;

            pose.translation = vec3_scale(oracle_direction(random),
                                          random_in(random, 0, out->size * (k == 2 ? 100 : 1)));
            pose.yaw_deg =
                seed % 4 == 0 ? 90.0 * random_below(random, 8) : random_in(random, -400, 400);
            if (tilted)
                rotation_random(random, pose.rotation);
            there = layer_moved(layer, &pose, k, (uint64_t)k + 1, &err);
            next = locale_with_moved(out->locale, there, out->locale->transform_seq + 1, &err);
            assert_non_null(next);
            layer_unref(there);
            locale_unref(out->locale);
            out->locale = next;
        }
        out->first[i] = out->all.polygon_count;
        append_moved(&out->all, &soup, out->up, &pose);
        soup_free(&soup);
    }
    if (!locale_validate(out->locale, &err))
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.msg);
    assert_int_equal(locale_choose(out->locale, NULL, &out->choice, &err), ERR_OK);
}

static void finish(struct world_of *w)
{
    locale_unref(w->locale);
    soup_free(&w->all);
}

/* Somewhere near one of the polygons, where it stands. */
static struct vec3 random_point(struct random *random, const struct world_of *w)
{
    uint32_t polygon = random_below(random, (uint32_t)w->all.polygon_count);
    struct vec3 at = w->all.vertices[w->all.corners[w->all.starts[polygon]]];

    return vec3_add(at, vec3_scale(oracle_direction(random), random_in(random, 0, w->size)));
}

/* The normal is that of the polygon where it stands; of triangles, which nobody splits. */
static void expect_normal(const struct world_of *w, const struct layer *layer, uint32_t polygon,
                          struct vec3 normal)
{
    size_t index = w->first[layer->id[1] - '0'] + polygon;
    const uint32_t *corners = w->all.corners + w->all.starts[index];
    const struct vec3 *v = w->all.vertices;
    struct vec3 a, b;

    if (w->all.starts[index + 1] - w->all.starts[index] != 3)
        return;
    a = vec3_sub(v[corners[1]], v[corners[0]]);
    b = vec3_sub(v[corners[2]], v[corners[0]]);
    if (vec3_length(vec3_cross(a, b)) < 1e-3 * vec3_length(a) * vec3_length(b))
        return; /* a sliver's is rounded with its corners */
    assert_near(fabs(vec3_dot(vec3_unit(vec3_cross(a, b)), normal)), 1, 1e-7);
    assert_near(vec3_length(normal), 1, 1e-9);
}

/* ---- contact --------------------------------------------------------------------------------- */

/* The best of the crossings in low..high; *doubt: rounding may have its say. */
static double best_of(const struct oracle_crossing *crossings, uint32_t count, double low,
                      double high, double sign, bool *doubt)
{
    double best = -INFINITY;

    for (uint32_t i = 0; i < count; i++) {
        const struct oracle_crossing *x = &crossings[i];
        double slack = 1e-7 + x->doubt;

        if (x->height < low - slack || x->height > high + slack)
            continue;
        if (x->is_border || x->height < low + slack || x->height > high - slack)
            *doubt = true;
        else
            best = fmax(best, sign * x->height);
    }
    return sign * best;
}

static void expect(const char *what, uint64_t seed, bool has, double got, double want)
{
    if (has != isfinite(want) || (has && !(fabs(got - want) <= 1e-6)))
        fail_msg("seed %llu, %s: %.17g, brute force %.17g", (unsigned long long)seed, what,
                 has ? got : NAN, want);
}

static unsigned ask_contact(struct random *random, const struct world_of *w, uint64_t seed)
{
    static struct oracle_crossing crossings[POLYGONS_MAX];
    struct polygon_soup view = soup_view(&w->all);
    struct vec3 point = random_point(random, w);
    double reach = random_below(random, 2) ? 0 : random_in(random, 0, w->size);
    uint32_t count = oracle_column(&view, w->up, point, 1e-9, crossings);
    struct contacts got;
    bool doubt = false;
    double floor = best_of(crossings, count, -INFINITY, reach, 1, &doubt), ceiling;

    locale_contact(&w->choice, point, (struct contact_reach){reach, INFINITY}, &got);
    ceiling = best_of(crossings, count, fmax(floor + 1e-7, reach), INFINITY, -1, &doubt);
    if (doubt)
        return 0;
    expect("floor", seed, got.has_floor, vec3_dot(vec3_sub(got.floor.point, point), w->up), floor);
    expect("ceiling", seed, got.has_ceiling, vec3_dot(vec3_sub(got.ceiling.point, point), w->up),
           ceiling);
    if (got.has_floor) {
        struct contacts again;

        assert_near(got.floor.distance_m, fabs(floor), 1e-6);
        expect_normal(w, got.floor.layer, got.floor.polygon, got.floor.normal);
        locale_contact(&w->choice, got.floor.point, (struct contact_reach){0, INFINITY}, &again);
        assert_true(again.has_floor); /* what was put on a floor stands on it */
        assert_near(again.floor.distance_m, 0, 1e-6);
        if (again.has_ceiling)
            assert_true(again.ceiling.distance_m > 1e-9); /* and it is not its own ceiling */
    }
    return 1;
}

static void contacts_agree_with_brute_force(void **state)
{
    enum { WORLDS = 60, QUERIES = 400 };
    unsigned decided = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct random random = {seed};
        struct world_of w;

        build(&random, seed, &w);
        for (int i = 0; i < QUERIES; i++)
            decided += ask_contact(&random, &w, seed);
        finish(&w);
    }
    if (decided < WORLDS * QUERIES / 2)
        fail_msg("%u of %d queries decided anything", decided, WORLDS * QUERIES);
}

/* ---- rays ------------------------------------------------------------------------------------ */

static void rays_agree_with_brute_force(void **state)
{
    enum { WORLDS = 60, RAYS = 300 };

    (void)state;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct random random = {seed + 1000};
        struct world_of w;

        build(&random, seed, &w);
        struct polygon_soup view = soup_view(&w.all);

        for (int i = 0; i < RAYS; i++) {
            struct vec3 from = random_point(&random, &w);
            struct ray ray = {from, vec3_sub(random_point(&random, &w), from), INFINITY};
            struct oracle_hit want = oracle_ray(&view, &ray, 1e-9);
            double slack = 1e-6 / vec3_length(ray.direction) + 1e-9 * want.t;
            struct locale_hit hit = {.at.t = INFINITY}, batch;
            bool is_hit = locale_ray(&w.choice, &ray, RAY_CLOSEST, &hit, NULL);
            bool agrees = is_hit
                              ? hit.at.t >= want.t_loose - slack && hit.at.t <= want.t_tight + slack
                              : isinf(want.t_tight);

            if (!agrees)
                fail_msg("seed %llu, ray %d: t is %.17g, brute force %.17g",
                         (unsigned long long)seed, i, hit.at.t, want.t);
            locale_rays(&w.choice, &ray, 1, RAY_CLOSEST, &batch);
            assert_true(batch.at.t == hit.at.t);
            if (is_hit) {
                struct vec3 on = vec3_add(ray.origin, vec3_scale(ray.direction, hit.at.t));

                assert_near(vec3_length(vec3_sub(hit.at.point, on)), 0, 1e-9 * w.size * 100);
                expect_normal(&w, hit.layer, hit.polygon, hit.at.normal);
            }
        }
        finish(&w);
    }
}

static void sight_agrees_with_brute_force(void **state)
{
    enum { WORLDS = 40, LINES = 200 };
    unsigned decided = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct random random = {seed + 2000};
        struct world_of w;

        build(&random, seed, &w);
        struct polygon_soup view = soup_view(&w.all);

        for (int i = 0; i < LINES; i++) {
            struct vec3 from = random_point(&random, &w), to = random_point(&random, &w);
            struct ray ray = {from, vec3_sub(to, from), 1}, near_end = ray;
            struct locale_hit blocker;
            bool is_free = locale_line_of_sight(&w.choice, from, to, &blocker);
            struct oracle_hit want = oracle_ray(&view, &ray, 1e-6);

            near_end.t_max = 1 + 1e-4;
            /* what stands at the ends or is grazed may go either way */
            if (isinf(want.t_loose) && isinf(oracle_ray(&view, &near_end, 1e-6).t_loose)) {
                assert_true(is_free);
                decided++;
            } else if (want.t_tight > 1e-3 && want.t_tight < 1 - 1e-3 && want.t_loose > 1e-3) {
                assert_false(is_free);
                assert_near(blocker.at.t, want.t, 1e-5 + fabs(want.t_loose - want.t_tight));
                decided++;
            }
        }
        finish(&w);
    }
    if (decided < WORLDS * LINES / 3)
        fail_msg("%u of %d lines decided anything", decided, WORLDS * LINES);
}

/* ---- heights --------------------------------------------------------------------------------- */

static void heights_are_the_contacts_from_above_and_a_batch_gives_their_bits(void **state)
{
    enum { POINTS = 200 };

    (void)state;
    for (uint64_t seed = 3; seed <= 90; seed += 3) { /* gravity is -Z */
        struct random random = {seed + 3000};
        struct vec2 points[POINTS];
        struct ground_height heights[POINTS];
        struct layer_choice ground;
        struct world_of w;

        build(&random, seed, &w);
        assert_int_equal(locale_choose_ground(w.locale, NULL, &ground, &err), ERR_OK);
        for (int i = 0; i < POINTS; i++) {
            struct vec3 p = random_point(&random, &w);

            points[i] = (struct vec2){p.x, p.y};
        }
        locale_heights_only(&ground, points, POINTS, INTERPOLATION_TRIANGLE, heights);
        for (int i = 0; i < POINTS; i++) {
            struct ground_point one;
            struct contacts contacts;

            locale_height(&ground, points[i], INTERPOLATION_TRIANGLE, &one);
            locale_contact(&w.choice, (struct vec3){points[i].x, points[i].y, 0},
                           (struct contact_reach){INFINITY, INFINITY}, &contacts);
            assert_int_equal(one.status, heights[i].status);
            assert_int_equal(contacts.has_floor, one.status == GROUND_OK);
            if (one.status != GROUND_OK)
                continue;
            assert_true(one.height_m == heights[i].height_m);
            assert_true(one.height_m == contacts.floor.point.z);
            assert_true(contacts.floor.point.x == points[i].x);
        }
        finish(&w);
    }
}

/* ---- tilted, to the nanometre ---------------------------------------------------------------- */

enum { TRIANGLES = 60 };

/* Triangles where they are after the layer's pose; a third of them are vertical in the file. */
struct tilted_scene {
    struct vec3 own[TRIANGLES][3], at[TRIANGLES][3];
    struct layer *still, *moved;
    struct locale *locale;
    struct layer_choice choice;
};

static void tilted_build(struct random *random, struct tilted_scene *s)
{
    struct soup soup = {0};

    for (int i = 0; i < TRIANGLES; i++) {
        struct vec3 by = vec3_scale(oracle_direction(random), 5);

        for (int k = 0; k < 3; k++)
            s->own[i][k] = vec3_add(by, vec3_scale(oracle_direction(random), 3));
        if (i % 3 == 0) {
            s->own[i][2] = s->own[i][1];
            s->own[i][2].z += 2;
        }
        soup_add(&soup, s->own[i], 3);
    }
    s->still = layer_of(&soup, "tilted", (struct vec3){0, 0, -1});
    soup_free(&soup);
}

static void tilted_move(struct random *random, struct tilted_scene *s)
{
    struct locale *empty = locale_create("l", &locale_manifest_default, &err);
    struct pose pose = {.translation = vec3_scale(oracle_direction(random), 10)};

    rotation_random(random, pose.rotation);
    for (int i = 0; i < TRIANGLES; i++)
        for (int k = 0; k < 3; k++)
            s->at[i][k] = vec3_add(rotation_turn(pose.rotation, s->own[i][k]), pose.translation);
    s->moved = layer_moved(s->still, &pose, 1, 1, &err);
    s->locale = locale_next(empty, NULL, s->moved, NULL, NULL, &err);
    locale_unref(empty);
    assert_non_null(s->locale);
    assert_int_equal(locale_choose(s->locale, NULL, &s->choice, &err), ERR_OK);
}

static void tilted_end(struct tilted_scene *s)
{
    locale_unref(s->locale);
    layer_unref(s->moved);
}

/*
 * t of the first triangle along a ray from t_min on, by Cramer's rule; INFINITY: none. False: an
 * edge or a sideways triangle is so near that rounding may have its say.
 */
static bool tilted_first(const struct tilted_scene *s, const struct ray *ray, double t_min,
                         double *first, struct vec3 *normal)
{
    bool is_sure = true;

    *first = INFINITY;
    for (int i = 0; i < TRIANGLES; i++) {
        struct vec3 a = vec3_sub(s->at[i][1], s->at[i][0]), b = vec3_sub(s->at[i][2], s->at[i][0]);
        struct vec3 n = vec3_cross(a, b), from = vec3_sub(ray->origin, s->at[i][0]);
        double along = -vec3_dot(n, ray->direction), t = vec3_dot(n, from) / along;
        struct vec3 q = vec3_cross(from, ray->direction);
        double u = vec3_dot(b, q) / along, v = -vec3_dot(a, q) / along;
        double least = fmin(fmin(u, v), 1 - u - v);

        if (fabs(along) < 1e-2 * vec3_length(n) * vec3_length(ray->direction)) {
            is_sure = is_sure && (least < -0.3 || !isfinite(least)); /* seen from its side */
            continue;
        }
        if (least < -1e-7 || t < t_min - 1e-7)
            continue;
        is_sure = is_sure && least > 1e-7 && fabs(t - t_min) > 1e-7;
        if (t < *first) {
            *first = t;
            *normal = vec3_unit(n);
        }
    }
    return is_sure;
}

static void tilted_is(const char *what, uint64_t seed, bool is_there, double got, double want)
{
    if (is_there != isfinite(want) || (is_there && !(fabs(got - want) <= 1e-9)))
        fail_msg("seed %llu, %s: %.17g, the triangles %.17g", (unsigned long long)seed, what,
                 is_there ? got : NAN, want);
}

static unsigned tilted_ask(struct random *random, const struct tilted_scene *s, uint64_t seed)
{
    struct vec3 from = vec3_add(s->at[random_below(random, TRIANGLES)][0],
                                vec3_scale(oracle_direction(random), random_in(random, 0, 6)));
    struct ray ray = {from, oracle_direction(random), INFINITY},
               down = {from, {0, 0, -1}, INFINITY};
    double t, reach = random_below(random, 2) ? 0 : random_in(random, 0, 3);
    struct locale_hit hit = {.at.t = INFINITY};
    struct contacts got;
    struct vec3 normal;
    unsigned decided = 0;

    if (tilted_first(s, &ray, 0, &t, &normal)) {
        bool is_hit = locale_ray(&s->choice, &ray, RAY_CLOSEST, &hit, NULL);

        tilted_is("ray", seed, is_hit, hit.at.t, t);
        if (is_hit) {
            if (normal.z < 0)
                normal = vec3_opposite(normal);
            if (fabs(normal.z) > 1e-9)
                assert_near(vec3_length(vec3_sub(normal, hit.at.normal)), 0, 1e-9);
        }
        decided++;
    }
    if (tilted_first(s, &down, -reach, &t, &normal)) {
        locale_contact(&s->choice, from, (struct contact_reach){reach, INFINITY}, &got);
        tilted_is("contact", seed, got.has_floor, from.z - got.floor.point.z, t);
        if (got.has_floor)
            assert_near(fabs(vec3_dot(normal, got.floor.normal)), 1, 1e-9);
        decided++;
    }
    return decided;
}

static void tilted_layers_are_their_triangles_within_a_nanometre(void **state)
{
    unsigned scenes = long_form(500, 25), decided = 0;
    enum { POSES = 10, QUERIES = 100 };

    (void)state;
    for (uint64_t seed = 1; seed <= scenes; seed++) {
        struct random random = {seed + 5000};
        struct tilted_scene s;

        tilted_build(&random, &s);
        for (int i = 0; i < POSES; i++) {
            tilted_move(&random, &s);
            for (int k = 0; k < QUERIES; k++)
                decided += tilted_ask(&random, &s, seed);
            tilted_end(&s);
        }
        layer_unref(s.still);
    }
    if (decided < scenes * POSES * QUERIES)
        fail_msg("%u of %u questions decided anything", decided, scenes * POSES * QUERIES * 2);
}

/* ---- layers as values ------------------------------------------------------------------------ */

static struct layer *square(void)
{
    const struct vec3 corners[] = {{-1, -1, 0}, {1, -1, 0}, {1, 1, 0}, {-1, 1, 0}};
    struct soup soup = {0};
    struct layer *layer;

    soup_add(&soup, corners, 4);
    layer = layer_of(&soup, "square", (struct vec3){0, 0, -1});
    soup_free(&soup);
    return layer;
}

static struct vec3 speed_after(struct layer **layer, double x, double yaw_deg, double now_s)
{
    struct pose pose = {.translation = {x, 0, 0}, .yaw_deg = yaw_deg};
    struct layer *next = layer_moved(*layer, &pose, now_s, 1, &err);

    assert_non_null(next);
    assert_true(next->mesh == (*layer)->mesh);
    layer_unref(*layer);
    *layer = next;
    return motion_velocity(&next->motion, (struct vec3){x + 1, 0, 0});
}

static void velocity_is_the_mean_since_the_pose_before(void **state)
{
    struct layer *layer = square(), *still;

    (void)state;
    assert_near(speed_after(&layer, 5, 0, 10).x, 0, 0); /* the first one has come from nowhere */
    assert_near(speed_after(&layer, 6, 0, 10.5).x, 2, 1e-12);
    assert_near(speed_after(&layer, 6, 9, 11).x, 0, 1e-12);
    assert_near(speed_after(&layer, 6, 18, 11.5).y, 18 * M_PI / 180, 1e-12);
    assert_near(speed_after(&layer, 8, 18, 12.5).x, 2, 1e-12);
    /* two that come at once are measured from the one before */
    assert_near(speed_after(&layer, 8.001, 18, 12.5001).x, 2.001 / 1.0001, 1e-9);
    assert_near(speed_after(&layer, 10, 18, 13.5).x, 2, 1e-9);
    still = layer_rested(layer, &err);
    assert_near(vec3_length(motion_velocity(&still->motion, (struct vec3){1, 2, 3})), 0, 0);
    assert_near(still->motion.pose.translation.x, 10, 0);
    assert_near(speed_after(&still, 12, 18, 17.5).x, 0.5, 1e-12);
    layer_unref(still);
    layer_unref(layer);
}

static void another_gravity_keeps_the_pose_and_turns_about_itself(void **state)
{
    struct pose pose = {.translation = {0, 0, 3}, .yaw_deg = 90};
    struct layer *layer = square(), *there = layer_moved(layer, &pose, 1, 7, &err), *other;
    struct vec3 east = {1, 0, 0};

    (void)state;
    other = layer_fitted(there, TRIANGULATION_ANTI, east, &err);
    if (!other)
        fail_msg("%s", err.msg);
    assert_true(other->is_moved);
    assert_int_equal(other->transform_seq, 7);
    assert_near(vec3_length(vec3_add(other->motion.axis, east)), 0, 0);
    assert_near(motion_point_out(&other->motion, (struct vec3){0, 1, 0}).z, 2, 1e-12);
    assert_true(layer_validate(other, &err));
    layer_unref(other);
    layer_unref(there);
    layer_unref(layer);
}

static int tilt(void **state)
{
    (void)state;
    tilted = true;
    return 0;
}

static int untilt(void **state)
{
    (void)state;
    tilted = false;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contacts_agree_with_brute_force),
        cmocka_unit_test_setup_teardown(contacts_agree_with_brute_force, tilt, untilt),
        cmocka_unit_test(rays_agree_with_brute_force),
        cmocka_unit_test_setup_teardown(rays_agree_with_brute_force, tilt, untilt),
        cmocka_unit_test(sight_agrees_with_brute_force),
        cmocka_unit_test_setup_teardown(sight_agrees_with_brute_force, tilt, untilt),
        cmocka_unit_test(heights_are_the_contacts_from_above_and_a_batch_gives_their_bits),
        cmocka_unit_test_setup_teardown(
            heights_are_the_contacts_from_above_and_a_batch_gives_their_bits, tilt, untilt),
        cmocka_unit_test(tilted_layers_are_their_triangles_within_a_nanometre),
        cmocka_unit_test(velocity_is_the_mean_since_the_pose_before),
        cmocka_unit_test(another_gravity_keeps_the_pose_and_turns_about_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
