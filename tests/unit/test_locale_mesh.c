/*
 * Questions over heightfields and meshes together, by hand: a bridge over ground, a roof, storeys,
 * gravity sideways, sight lines that end on polygons.
 */
#include "world/ask/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/near.h"
#include "tests/support/random.h"

static struct err err;

/* Quads, given by their four corners each. */
static struct layer *quads(const char *id, enum layer_role role, struct vec3 gravity,
                           const struct vec3 (*corners)[4], uint32_t count)
{
    struct polygon_set set;
    struct layer *layer;

    assert_int_equal(polygon_set_allocate(4 * count, count, 4 * count, &set, &err), ERR_OK);
    for (uint32_t i = 0; i < 4 * count; i++) {
        set.vertices[i] = corners[i / 4][i % 4];
        set.corners[i] = i;
        set.starts[i / 4 + 1] = 4 * (i / 4 + 1);
    }
    layer = layer_create_mesh(id, role, &set, gravity, NULL, &err);
    if (!layer)
        fail_msg("%s", err.msg);
    return layer;
}

static struct locale *with(struct locale *locale, struct layer *layer)
{
    struct locale *next = locale_next(locale, NULL, layer, NULL, NULL, &err);

    if (!next)
        fail_msg("%s", err.msg);
    layer_unref(layer);
    locale_unref(locale);
    if (!locale_validate(next, &err))
        fail_msg("%s", err.msg);
    return next;
}

static struct locale *empty(struct vec3 gravity, bool open_sky)
{
    struct locale_manifest manifest = locale_manifest_default;

    manifest.gravity = gravity;
    manifest.open_sky = open_sky;
    return locale_create("l", &manifest, &err);
}

static const struct vec3 down = {0, 0, -1}, east = {1, 0, 0};

/* Ground at z = x/10 over 0..100 × 0..100, with a hole around (90, 90). */
static struct layer *slope(void)
{
    const struct heightfield_spec spec = {11, 11, 0, 0, 10, 10, TRIANGULATION_ANTI, 0};
    float heights_m[121];

    for (int i = 0; i < 121; i++)
        heights_m[i] = (float)(i % 11);
    heights_m[9 * 11 + 9] = NAN;
    return layer_create_heightfield("ground", heightfield_create(&spec, heights_m, &err), &err);
}

enum { DECK, RAIL };

/* A bridge at z = 20 over x 40..60, y -20..50 (so it leads out of the field), and its rail. */
static struct layer *bridge(enum layer_role role)
{
    static const struct vec3 corners[][4] = {
        {{40, -20, 20}, {60, -20, 20}, {60, 50, 20}, {40, 50, 20}},
        {{60, -20, 20}, {60, 50, 20}, {60, 50, 21}, {60, -20, 21}},
    };

    return quads("bridge", role, down, corners, 2);
}

static struct layer_choice all_of(const struct locale *locale)
{
    struct layer_choice choice;

    assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
    return choice;
}

/* z of floor and ceiling; NAN: none. */
static const struct {
    const char *what;
    struct vec3 point;
    double reach_up_m, floor_m, ceiling_m;
    enum contact_status status;
} over_and_under[] = {
    {"on the bridge", {50, 20, 22}, 0, 20, NAN, CONTACT_OK},
    {"exactly on it", {50, 20, 20}, 0, 20, NAN, CONTACT_OK},
    {"under the bridge", {50, 20, 8}, 0, 5, 20, CONTACT_OK},
    {"exactly on the ground under it", {50, 20, 5}, 0, 5, 20, CONTACT_OK},
    {"underground", {50, 20, 3}, 0, NAN, 5, CONTACT_BELOW},
    {"under it, reaching over it", {50, 20, 8}, 13, 20, NAN, CONTACT_OK},
    {"underground, reaching between", {50, 20, 3}, 4, 5, 20, CONTACT_OK},
    {"underground, reaching everywhere", {50, 20, 3}, INFINITY, 20, NAN, CONTACT_OK},
    {"beside the bridge", {61, 20, 30}, 0, 6.1, NAN, CONTACT_OK},
    {"on its border", {60, 20, 30}, 0, 20, NAN, CONTACT_OK},
    {"on the part beyond the field", {50, -10, 22}, 0, 20, NAN, CONTACT_OK},
    {"under that part", {50, -10, 2}, 0, NAN, 20, CONTACT_BELOW},
    {"beside that part, inside the bounds", {10, -10, 22}, 0, NAN, NAN, CONTACT_HOLE},
    {"in the field's hole", {90, 90, 22}, 0, NAN, NAN, CONTACT_HOLE},
    {"beyond all", {50, -21, 22}, 0, NAN, NAN, CONTACT_OUTSIDE},
};

static void assert_contact(const char *what, bool has, double z, double expected)
{
    if (has != !isnan(expected) || (has && !(fabs(z - expected) <= 1e-9)))
        fail_msg("%s: got %.17g, expected %.17g", what, has ? z : NAN, expected);
}

static void a_bridge_over_ground_has_two_floors(void **state)
{
    struct locale *locale = with(with(empty(down, true), slope()), bridge(LAYER_GROUND));
    struct layer_choice choice = all_of(locale);

    (void)state;
    for (size_t i = 0; i < sizeof over_and_under / sizeof *over_and_under; i++) {
        struct contacts got;
        char what[80];

        locale_contact(&choice, over_and_under[i].point,
                       (struct contact_reach){over_and_under[i].reach_up_m, INFINITY}, &got);
        snprintf(what, sizeof what, "%s, floor", over_and_under[i].what);
        assert_contact(what, got.has_floor, got.floor.point.z, over_and_under[i].floor_m);
        snprintf(what, sizeof what, "%s, ceiling", over_and_under[i].what);
        assert_contact(what, got.has_ceiling, got.ceiling.point.z, over_and_under[i].ceiling_m);
        if (got.status != over_and_under[i].status)
            fail_msg("%s: status %d, expected %d", over_and_under[i].what, (int)got.status,
                     (int)over_and_under[i].status);
        if (got.has_floor && got.floor.point.z == 20) {
            assert_string_equal(got.floor.layer->id, "bridge");
            assert_int_equal(got.floor.polygon, DECK);
            assert_near(got.floor.distance_m, fabs(over_and_under[i].point.z - 20), 1e-12);
            assert_near(got.floor.slope_deg, 0, 1e-9);
        }
    }
    locale_unref(locale);
}

static void a_floor_may_be_too_far(void **state)
{
    struct locale *locale = with(with(empty(down, true), slope()), bridge(LAYER_GROUND));
    struct layer_choice choice = all_of(locale);
    const struct vec3 under = {50, 20, 8};
    struct contacts got;

    (void)state;
    locale_contact(&choice, under, (struct contact_reach){0, 3}, &got);
    assert_int_equal(got.status, CONTACT_OK); /* exactly so far */
    locale_contact(&choice, under, (struct contact_reach){0, 2.999}, &got);
    assert_int_equal(got.status, CONTACT_TOO_FAR);
    assert_false(got.has_floor);
    assert_contact("its ceiling", got.has_ceiling, got.ceiling.point.z, 20);
    locale_contact(&choice, under, (struct contact_reach){13, 0},
                   &got); /* up is no distance down */
    assert_int_equal(got.status, CONTACT_OK);
    assert_contact("above", got.has_floor, got.floor.point.z, 20);
    locale_unref(locale);
}

static void a_place_above_is_contained_up_to_the_reach(void **state)
{
    struct locale *open = with(with(empty(down, true), slope()), bridge(LAYER_GROUND));
    struct locale *closed = with(with(empty(down, false), slope()), bridge(LAYER_CEILING));
    struct layer_choice of_open = all_of(open), of_closed = all_of(closed);

    (void)state;
    assert_false(locale_contains_above(&of_open, (struct vec3){50, 20, 3}, 1.999));
    assert_true(locale_contains_above(&of_open, (struct vec3){50, 20, 3}, 2.001));
    assert_true(locale_contains_above(&of_open, (struct vec3){50, 20, -1000}, INFINITY));
    assert_false(locale_contains_above(&of_open, (struct vec3){50, 20, 30}, INFINITY)); /* below */
    assert_true(locale_contains_above(&of_closed, (struct vec3){50, 20, 3}, 2.001));
    assert_true(locale_contains_above(&of_closed, (struct vec3){50, 20, 3}, INFINITY));
    assert_false(
        locale_contains_above(&of_closed, (struct vec3){30, 20, 1}, INFINITY)); /* no roof */
    locale_unref(open);
    locale_unref(closed);
}

static void a_ceiling_is_no_floor(void **state)
{
    struct locale *locale = with(with(empty(down, false), slope()), bridge(LAYER_CEILING));
    struct layer_choice choice = all_of(locale);
    struct contacts got;
    bool has_floor, has_ceiling;

    (void)state;
    locale_contact(&choice, (struct vec3){50, 20, 22}, (struct contact_reach){0, INFINITY}, &got);
    assert_contact("floor from above", got.has_floor, got.floor.point.z, 5);
    assert_contact("ceiling from above", got.has_ceiling, got.ceiling.point.z, NAN);
    locale_contact(&choice, (struct vec3){50, 20, 8}, (struct contact_reach){0, INFINITY}, &got);
    assert_contact("ceiling from below", got.has_ceiling, got.ceiling.point.z, 20);
    assert_int_equal(locale_contains(&choice, (struct vec3){50, 20, 8}, &has_floor, &has_ceiling),
                     CONTAINED_INSIDE);
    assert_int_equal(locale_contains(&choice, (struct vec3){50, 20, 22}, &has_floor, &has_ceiling),
                     CONTAINED_OUTSIDE);
    assert_int_equal(locale_contains(&choice, (struct vec3){30, 20, 8}, &has_floor, &has_ceiling),
                     CONTAINED_OUTSIDE);
    assert_true(has_floor && !has_ceiling);
    /* no ground under the deck beyond the field, and it is no ground itself */
    locale_contact(&choice, (struct vec3){50, -10, 2}, (struct contact_reach){0, INFINITY}, &got);
    assert_int_equal(got.status, CONTACT_HOLE);
    assert_contact("ceiling over a hole", got.has_ceiling, got.ceiling.point.z, 20);
    assert_int_equal(locale_contains(&choice, (struct vec3){50, -10, 2}, &has_floor, &has_ceiling),
                     CONTAINED_HOLE);
    locale_unref(locale);
}

static void rays_and_sight_lines_meet_the_nearest_layer(void **state)
{
    struct locale *locale = with(with(empty(down, true), slope()), bridge(LAYER_GROUND));
    struct layer_choice choice = all_of(locale);
    const struct ray straight = {{50, 20, 100}, {0, 0, -2}, INFINITY};
    const struct ray at_rail = {{70, 20, 20.5}, {-1, 0, 0}, INFINITY};
    const struct ray along = {{0, 20, 10}, {1, 0, 0}, 200};
    struct locale_hit hit;

    (void)state;
    assert_true(locale_ray(&choice, &straight, RAY_CLOSEST, &hit, NULL));
    assert_string_equal(hit.layer->id, "bridge");
    assert_near(hit.at.t, 40, 1e-12);
    assert_int_equal(hit.polygon, DECK);
    assert_int_equal(hit.at.triangle, -1);
    assert_true(hit.at.normal.z == 1);
    assert_true(locale_ray(&choice, &at_rail, RAY_CLOSEST, &hit, NULL));
    assert_int_equal(hit.polygon, RAIL);
    assert_near(hit.at.normal.x, 1, 1e-12); /* against the ray */
    assert_true(locale_ray(&choice, &along, RAY_CLOSEST, &hit, NULL));
    assert_string_equal(hit.layer->id, "ground");
    assert_near(hit.at.t, 100, 1e-9);
    locale_unref(locale);
}

static const struct {
    const char *what;
    struct vec3 from, to;
    double t; /* NAN: visible */
} sights[] = {
    {"over the bridge", {30, 20, 25}, {80, 20, 25}, NAN},
    {"through the deck", {50, 20, 30}, {50, 20, 10}, 0.5},
    {"through the rail", {50, 20, 20.5}, {70, 20, 20.5}, 0.5},
    {"standing on the deck, along it", {45, 20, 20}, {55, 30, 20}, NAN},
    {"a hair under the deck's top, along it", {45, 20, 20 - 5e-7}, {55, 30, 21}, NAN},
    {"from the deck up", {45, 20, 20}, {45, 30, 40}, NAN},
    {"down on the deck", {45, 20, 40}, {45, 30, 20}, NAN},
    {"up to the deck from below", {45, 20, 10}, {45, 30, 20}, NAN},
    {"from the deck to a point underneath: it only touches", {45, 20, 20}, {45, 30, 10}, NAN},
    {"from the deck down, beside it: it only touches", {59, 20, 20}, {63, 20, 15}, NAN},
    {"beginning on the rail", {60, 20, 20.5}, {70, 20, 20.5}, NAN},
    {"beginning on the rail, through the deck", {60, 20, 20.5}, {50, 20, 10}, 1.0 / 21},
    {"ending on the rail", {50, 20, 20.5}, {60, 20, 20.5}, NAN},
    {"into the ground under the bridge", {50, 20, 15}, {50, 20, -5}, 0.5},
    {"from a point to itself", {50, 20, 20}, {50, 20, 20}, NAN},
};

static void sight_lines_may_touch_at_their_ends(void **state)
{
    struct locale *locale = with(with(empty(down, true), slope()), bridge(LAYER_GROUND));
    struct layer_choice choice = all_of(locale);

    (void)state;
    for (size_t i = 0; i < sizeof sights / sizeof *sights; i++) {
        struct locale_hit blocker;
        bool is_visible = locale_line_of_sight(&choice, sights[i].from, sights[i].to, &blocker);

        if (is_visible != isnan(sights[i].t) ||
            (!is_visible && fabs(blocker.at.t - sights[i].t) > 1e-5))
            fail_msg("%s: got %.17g, expected %.17g", sights[i].what,
                     is_visible ? NAN : blocker.at.t, sights[i].t);
    }
    locale_unref(locale);
}

static void feet_across_a_ridge_do_not_see_each_other(void **state)
{
    static const struct vec3 corners[][4] = {
        {{0, 0, 0}, {4, 0, 4}, {4, 8, 4}, {0, 8, 0}},
        {{4, 0, 4}, {8, 0, 0}, {8, 8, 0}, {4, 8, 4}},
        {{0, 0, 9}, {8, 0, 9}, {8, 8, 9}, {0, 8, 9}}, /* a roof over it */
    };
    const struct vec3 west = {2, 4, 2}, east_foot = {6, 4, 2}, top = {4, 4, 4}, beneath = {3, 4, 1};
    struct locale_hit blocker;

    (void)state;
    for (uint32_t count = 2; count <= 3; count++) {
        struct locale *locale =
            with(empty(down, true), quads("ridge", LAYER_GROUND, down, corners, count));
        struct layer_choice choice = all_of(locale);

        assert_false(locale_line_of_sight(&choice, west, east_foot, &blocker));
        assert_false(locale_line_of_sight(&choice, east_foot, west, &blocker));
        assert_true(locale_line_of_sight(&choice, west, top, &blocker));
        assert_true(locale_line_of_sight(&choice, beneath, west, &blocker));
        assert_true(locale_line_of_sight(&choice, west, beneath, &blocker));
        locale_unref(locale);
    }
}

/* Gravity along +X: "floors" face west. */
static void gravity_may_pull_sideways(void **state)
{
    static const struct vec3 corners[][4] = {
        {{100, -50, -50}, {100, 50, -50}, {100, 50, 50}, {100, -50, 50}}, /* the far floor */
        {{60, 0, 0}, {60, 10, 0}, {60, 10, 10}, {60, 0, 10}},             /* a step before it */
        {{0, 0, 0}, {100, 0, 0}, {100, 10, 0}, {0, 10, 0}},               /* upright: a wall */
    };
    struct locale *locale =
        with(with(empty(east, true), quads("walls", LAYER_GROUND, east, corners, 3)), slope());
    struct layer_choice choice = all_of(locale);
    const struct ray at_wall = {{30, 5, 4}, {0, 0, -1}, INFINITY};
    struct contacts got;
    struct locale_hit hit;
    struct ground_point ground;
    struct layer_choice of_height;

    (void)state;
    /* over the step: it is nearer than the slope, which this line meets at x = 55 ... */
    locale_contact(&choice, (struct vec3){57, 5, 5.5}, (struct contact_reach){0, INFINITY}, &got);
    assert_true(got.has_floor && got.has_ceiling);
    assert_near(got.floor.point.x, 60, 1e-9);
    assert_int_equal(got.floor.polygon, 1);
    assert_near(got.floor.distance_m, 3, 1e-9);
    assert_near(got.floor.normal.x, -1, 1e-12);
    assert_near(got.ceiling.point.x, 55, 1e-9); /* ... behind the point, so above it */
    assert_string_equal(got.ceiling.layer->id, "ground");
    /* before the slope */
    locale_contact(&choice, (struct vec3){30, 5, 5.5}, (struct contact_reach){0, INFINITY}, &got);
    assert_string_equal(got.floor.layer->id, "ground");
    assert_near(got.floor.point.x, 55, 1e-9);
    assert_false(got.has_ceiling);
    /* reaching back over the step: it is the floor no more than the slope is */
    locale_contact(&choice, (struct vec3){90, 5, 5.5}, (struct contact_reach){32, INFINITY}, &got);
    assert_near(got.floor.point.x, 60, 1e-9);
    assert_near(got.ceiling.point.x, 55, 1e-9);
    /* past everything, and beside everything */
    locale_contact(&choice, (struct vec3){101, 5, 5.5}, (struct contact_reach){0, INFINITY}, &got);
    assert_false(got.has_floor);
    assert_near(got.ceiling.point.x, 100, 1e-9);
    locale_contact(&choice, (struct vec3){30, 300, 5.5}, (struct contact_reach){0, INFINITY}, &got);
    assert_int_equal(got.status, CONTACT_OUTSIDE);
    assert_true(locale_ray(&choice, &at_wall, RAY_CLOSEST, &hit, NULL));
    assert_near(hit.at.point.z, 3, 1e-9); /* the slope; the wall is below it */
    assert_int_equal(locale_choose_ground(locale, NULL, &of_height, &err), ERR_OK);
    locale_height(&of_height, (struct vec2){30, 5}, INTERPOLATION_TRIANGLE, &ground);
    assert_near(ground.height_m, 3, 1e-6); /* heights stay along Z */
    locale_unref(locale);
}

static void polygons_on_a_heightfield_are_not_their_own_ceiling(void **state)
{
    /* a path that lies on the slope: rounded another way than the samples are */
    static const struct vec3 corners[][4] = {
        {{0, 30, 0}, {70, 30, 7}, {70, 33, 7}, {0, 33, 0}},
    };
    struct locale *locale =
        with(with(empty(down, false), slope()), quads("path", LAYER_GROUND, down, corners, 1));
    struct layer_choice choice = all_of(locale);
    int on_path = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct vec3 point = {0.05 + 0.07 * i / 1.01, 30.2 + 0.0027 * i, 0};
        struct contacts got;

        point.z = point.x / 10;
        locale_contact(&choice, point, (struct contact_reach){1e-3, INFINITY}, &got);
        if (!got.has_floor || got.has_ceiling)
            fail_msg("point %d: floor %d, ceiling %d", i, got.has_floor, got.has_ceiling);
        on_path += got.floor.layer->kind == LAYER_MESH;
        locale_contact(&choice, got.floor.point, (struct contact_reach){0, INFINITY},
                       &got); /* standing there */
        if (!got.has_floor || got.has_ceiling)
            fail_msg("standing at %d: floor %d, ceiling %d", i, got.has_floor, got.has_ceiling);
    }
    assert_true(on_path > 0);
    locale_unref(locale);
}

static void heights_are_of_the_only_field_or_of_the_meshes(void **state)
{
    static const struct vec3 storeys[][4] = {
        {{0, 0, 0}, {10, 0, 0}, {10, 10, 0}, {0, 10, 0}},
        {{0, 0, 3}, {5, 0, 3}, {5, 10, 3}, {0, 10, 3}},
        {{20, 0, 0}, {30, 0, 0}, {30, 10, 0}, {20, 10, 0}},
    };
    static const struct vec3 roofs[][4] = {{{0, 0, 9}, {10, 0, 9}, {10, 10, 9}, {0, 10, 9}}};
    struct locale *locale =
        with(with(empty(down, true), quads("house", LAYER_GROUND, down, storeys, 3)),
             quads("roof", LAYER_CEILING, down, roofs, 1));
    static const struct {
        struct vec2 at;
        double height_m;
        enum ground_status status;
    } cases[] = {{{2, 5}, 3, GROUND_OK},
                 {{7, 5}, 0, GROUND_OK},
                 {{15, 5}, NAN, GROUND_HOLE},
                 {{31, 5}, NAN, GROUND_OUTSIDE}};
    struct layer_choice ground;
    const struct layer *field;

    (void)state;
    assert_int_equal(locale_choose_ground(locale, NULL, &ground, &err), ERR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ground_point got;

        locale_height(&ground, cases[i].at, INTERPOLATION_TRIANGLE, &got);
        if (got.status != cases[i].status ||
            (got.status == GROUND_OK && got.height_m != cases[i].height_m))
            fail_msg("(%g, %g): status %d, height %.17g", cases[i].at.x, cases[i].at.y,
                     (int)got.status, got.height_m);
    }
    assert_int_equal(locale_choose_ground(locale, "house", &ground, &err), ERR_OK);
    assert_int_equal(locale_choose_ground(locale, "roof", &ground, &err), ERR_LAYER_KIND);
    assert_int_equal(locale_choose_field(locale, NULL, &field, &err), ERR_NO_HEIGHTFIELD);
    assert_int_equal(locale_choose_field(locale, "house", &field, &err), ERR_LAYER_KIND);
    assert_string_equal(err.pointer, "/layer");
    locale = with(locale, slope());
    assert_int_equal(locale_choose_field(locale, NULL, &field, &err), ERR_OK);
    assert_string_equal(field->id, "ground");
    assert_int_equal(locale_choose_ground(locale, NULL, &ground, &err), ERR_OK);
    assert_ptr_equal(ground.layers[0], field);
    locale_unref(locale);
    locale = with(empty(east, true), quads("house", LAYER_GROUND, east, storeys, 3));
    assert_int_equal(locale_choose_ground(locale, NULL, &ground, &err), ERR_NO_HEIGHTFIELD);
    locale_unref(locale);
}

static void expect_heights(const struct layer_choice *ground, struct random *random)
{
    enum { COUNT = 150 };
    struct vec2 points[COUNT];
    struct ground_height got[COUNT];
    int ok = 0;

    for (int i = 0; i < COUNT; i++) {
        points[i] = (struct vec2){random_in(random, -10, 110), random_in(random, -30, 110)};
        if (i % 5 == 0) /* on cells' corners and polygons' borders */
            points[i] = (struct vec2){floor(points[i].x / 10) * 10, floor(points[i].y / 10) * 10};
    }
    locale_heights_only(ground, points, COUNT, INTERPOLATION_TRIANGLE, got);
    for (int i = 0; i < COUNT; i++) {
        struct ground_point want;

        locale_height(ground, points[i], INTERPOLATION_TRIANGLE, &want);
        if (got[i].status != want.status ||
            (want.status == GROUND_OK ? got[i].height_m != want.height_m : !isnan(got[i].height_m)))
            fail_msg("at %g %g: %.17g, alone %.17g", points[i].x, points[i].y, got[i].height_m,
                     want.height_m);
        ok += want.status == GROUND_OK;
    }
    assert_true(ok > COUNT / 20 && ok < COUNT);
}

static void expect_rays(const struct layer_choice *choice, enum ray_mode mode,
                        struct random *random)
{
    enum { COUNT = 150 };
    struct ray rays[COUNT];
    struct locale_hit got[COUNT];
    int hits = 0;

    for (int i = 0; i < COUNT; i++) {
        rays[i].origin = (struct vec3){random_in(random, -20, 120), random_in(random, -40, 120),
                                       random_in(random, -5, 60)};
        rays[i].direction = (struct vec3){random_in(random, -1, 1), random_in(random, -1, 1),
                                          random_in(random, -1, 0.2)};
        rays[i].t_max = i % 3 == 0 ? random_in(random, 0, 60) : INFINITY;
    }
    locale_rays(choice, rays, COUNT, mode, got);
    for (int i = 0; i < COUNT; i++) {
        struct locale_hit want = {.at = {.t = INFINITY}};
        bool is_hit = locale_ray(choice, &rays[i], mode, &want, NULL);

        if (got[i].at.t != want.at.t ||
            (is_hit && (got[i].layer != want.layer || got[i].polygon != want.polygon ||
                        memcmp(&got[i].at.point, &want.at.point, sizeof want.at.point) != 0 ||
                        memcmp(&got[i].at.normal, &want.at.normal, sizeof want.at.normal) != 0)))
            fail_msg("ray %d: t %.17g, alone %.17g", i, got[i].at.t, want.at.t);
        hits += is_hit;
    }
    assert_true(hits > 0 && hits < COUNT);
}

/* Over a field, over a field and meshes, over meshes alone. */
static void a_batch_has_the_bits_of_single_answers(void **state)
{
    struct random random = {8};
    struct locale *locale = with(empty(down, true), bridge(LAYER_GROUND));
    static const struct vec3 ramp[][4] = {
        {{45, 0, 10}, {80, 0, 30}, {80, 45, 33}, {45, 45, 13}},
    };
    struct layer_choice choice;

    (void)state;
    locale = with(locale, quads("ramp", LAYER_GROUND, down, ramp, 1));
    choice = all_of(locale);
    for (int i = 0; i < 20; i++) {
        expect_heights(&choice, &random);
        expect_rays(&choice, i % 2 ? RAY_ANY : RAY_CLOSEST, &random);
    }
    locale = with(locale, slope());
    choice = all_of(locale);
    for (int i = 0; i < 20; i++)
        expect_rays(&choice, i % 2 ? RAY_ANY : RAY_CLOSEST, &random);
    assert_int_equal(locale_choose_ground(locale, NULL, &choice, &err), ERR_OK);
    for (int i = 0; i < 20; i++) {
        expect_heights(&choice, &random);
        expect_rays(&choice, RAY_CLOSEST, &random);
    }
    locale_unref(locale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_the_bits_of_single_answers),
        cmocka_unit_test(a_bridge_over_ground_has_two_floors),
        cmocka_unit_test(a_floor_may_be_too_far),
        cmocka_unit_test(a_place_above_is_contained_up_to_the_reach),
        cmocka_unit_test(a_ceiling_is_no_floor),
        cmocka_unit_test(rays_and_sight_lines_meet_the_nearest_layer),
        cmocka_unit_test(sight_lines_may_touch_at_their_ends),
        cmocka_unit_test(feet_across_a_ridge_do_not_see_each_other),
        cmocka_unit_test(gravity_may_pull_sideways),
        cmocka_unit_test(polygons_on_a_heightfield_are_not_their_own_ceiling),
        cmocka_unit_test(heights_are_of_the_only_field_or_of_the_meshes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
