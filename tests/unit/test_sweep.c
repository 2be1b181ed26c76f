/*
 * Sweeps against brute force over all triangles (support/sweep_oracle.h): heightfields of the three
 * triangulations with holes, meshes under any gravity, moved ones, planets; starts far, near,
 * grazing and deep. With KOTA_LONG=1 a million of them.
 */
#include "terrain/sweep/sweep.h"

#include "support/long_form.h"
#include "support/mesh_oracle.h"
#include "support/rotation.h"
#include "support/sweep_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/each_level.h"
#include "support/field_make.h"

/* Ground, and all triangles of it. */
struct scene {
    struct heightfield *field;
    struct mesh *mesh;
    struct motion motion;
    bool is_moved, is_radial;
    struct vec3 up; /* not radial */
    struct vec3 (*triangles)[3];
    uint32_t *polygon; /* of each triangle of a mesh */
    size_t count;
    double size; /* metres from the origin */
};

struct tally {
    unsigned hits, inside, misses, grazing;
    double worst; /* of the fractions that are not grazing */
};

static bool scene_sweep(const struct scene *scene, struct sweep *s)
{
    if (scene->field)
        return heightfield_sweep(scene->field, s);
    return scene->is_moved ? moved_mesh_sweep(scene->mesh, &scene->motion, s)
                           : mesh_sweep(scene->mesh, s);
}

static void scene_add(struct scene *scene, struct vec3 a, struct vec3 b, struct vec3 c,
                      uint32_t polygon)
{
    if (scene->count % 256 == 0) {
        scene->triangles =
            realloc(scene->triangles, (scene->count + 256) * sizeof *scene->triangles);
        scene->polygon = realloc(scene->polygon, (scene->count + 256) * sizeof *scene->polygon);
        assert_non_null(scene->triangles);
        assert_non_null(scene->polygon);
    }
    scene->triangles[scene->count][0] = a;
    scene->triangles[scene->count][1] = b;
    scene->triangles[scene->count][2] = c;
    scene->polygon[scene->count++] = polygon;
}

static void scene_free(struct scene *scene)
{
    heightfield_unref(scene->field);
    mesh_unref(scene->mesh);
    free(scene->triangles);
    free(scene->polygon);
}

/* ---- grounds -------------------------------------------------------------------------------- */

static void field_triangles(struct scene *scene, const struct heightfield_spec *spec,
                            const float *heights)
{
    for (uint32_t r = 0; r + 1 < spec->rows; r++)
        for (uint32_t c = 0; c + 1 < spec->cols; c++) {
            struct vec3 at[4];
            bool is_main = spec->triangulation == TRIANGULATION_MAIN ||
                           (spec->triangulation == TRIANGULATION_ALTERNATING && (c + r) % 2);
            static const int anti[2][3] = {{0, 1, 2}, {3, 1, 2}},
                             main[2][3] = {{1, 0, 3}, {2, 0, 3}};

            for (uint32_t i = 0; i < 4; i++)
                at[i] = (struct vec3){spec->origin_x_m + (c + i % 2) * spec->spacing_x_m,
                                      spec->origin_y_m + (r + i / 2) * spec->spacing_y_m,
                                      (double)heights[(r + i / 2) * spec->cols + c + i % 2]};
            for (int k = 0; k < 2; k++) {
                const int *i = is_main ? main[k] : anti[k];

                if (!isnan(at[i[0]].z + at[i[1]].z + at[i[2]].z))
                    scene_add(scene, at[i[0]], at[i[1]], at[i[2]], 0);
            }
        }
}

static struct scene field_scene(struct random *random, int kind)
{
    struct heightfield_spec spec = {.cols = 4 + random_below(random, 24),
                                    .rows = 4 + random_below(random, 24),
                                    .origin_x_m = kind % 2 ? -7.5 : 1000.125,
                                    .origin_y_m = kind % 2 ? -9.25 : -2000.5,
                                    .spacing_x_m = kind % 3 ? 1 : 0.7,
                                    .spacing_y_m = kind % 3 ? 1 : 1.3,
                                    .triangulation = (enum triangulation)(kind % 3),
                                    .leaf_cells = kind % 2 ? 0 : 2};
    struct scene scene = {.up = {0, 0, 1}};
    float *heights = malloc(sizeof *heights * spec.cols * spec.rows);
    double rough = kind % 4 == 0 ? 8 : kind % 4 == 1 ? 0 : 1;

    assert_non_null(heights);
    for (uint32_t i = 0; i < spec.cols * spec.rows; i++)
        heights[i] = random_below(random, 12) == 0 && kind % 4 != 1
                         ? NAN
                         : (float)random_in(random, -rough, rough);
    scene.field = field_make(&spec, heights);
    field_triangles(&scene, &spec, heights);
    free(heights);
    return scene;
}

static void soup_triangles(struct scene *scene, const struct soup *soup)
{
    for (size_t i = 0; i < soup->polygon_count; i++)
        for (uint32_t k = soup->starts[i] + 2; k < soup->starts[i + 1]; k++) {
            struct vec3 at[3] = {soup->vertices[soup->corners[soup->starts[i]]],
                                 soup->vertices[soup->corners[k - 1]],
                                 soup->vertices[soup->corners[k]]};

            for (int j = 0; scene->is_moved && j < 3; j++)
                at[j] = motion_point_out(&scene->motion, at[j]);
            scene_add(scene, at[0], at[1], at[2], (uint32_t)i);
        }
}

static struct scene mesh_scene(struct random *random, int kind)
{
    struct scene scene = {.up = kind % 2 ? (struct vec3){0, 0, 1} : oracle_direction(random)};
    struct mesh_options options = {.gravity = vec3_opposite(scene.up)};
    struct pose pose = {.translation = {random_in(random, -9, 9), 3, -2},
                        .yaw_deg = random_in(random, -400, 400)};
    struct soup soup = {0};

    oracle_soup(random, scene.up, 20, &soup);
    scene.mesh = soup_mesh(&soup, &options, NULL);
    scene.is_moved = kind % 3 == 0;
    if (kind % 6 == 0)
        rotation_random(random, pose.rotation);
    scene.motion = motion_at(&pose, scene.up);
    soup_triangles(&scene, &soup);
    soup_free(&soup);
    return scene;
}

/* A ball of bumps about the origin. */
static struct scene planet_scene(struct random *random, int kind)
{
    enum { ROUND = 16, HIGH = 9 };
    struct mesh_options options = {
        .space = {kind % 2 ? MESH_SPHERICAL : MESH_CYLINDRICAL, .is_outward = kind % 3 == 0}};
    struct scene scene = {.is_radial = true};
    struct soup soup = {0};
    struct vec3 at[HIGH][ROUND];

    for (int j = 0; j < HIGH; j++)
        for (int i = 0; i < ROUND; i++) {
            double r = random_in(random, 9, 11), a = 2 * M_PI * i / ROUND;
            double b = M_PI * (j + 0.5) / HIGH - M_PI / 2;

            at[j][i] = (struct vec3){r * cos(a) * cos(b), r * sin(a) * cos(b), r * sin(b)};
        }
    for (int j = 0; j + 1 < HIGH; j++)
        for (int i = 0; i < ROUND; i++) {
            int next = (i + 1) % ROUND;

            if (random_below(random, 20) == 0)
                continue;
            soup_add(&soup, (struct vec3[]){at[j][i], at[j][next], at[j + 1][i]}, 3);
            soup_add(&soup, (struct vec3[]){at[j][next], at[j + 1][next], at[j + 1][i]}, 3);
        }
    scene.mesh = soup_mesh(&soup, &options, NULL);
    soup_triangles(&scene, &soup);
    soup_free(&soup);
    return scene;
}

/* ---- sweeps --------------------------------------------------------------------------------- */

static struct shape random_shape(struct random *random)
{
    struct shape shape = {.kind = (enum shape_kind)random_below(random, 3)};
    double size = exp(random_in(random, log(0.005), log(1.5)));

    shape.radius_m = random_below(random, 8) ? size : 0.5;
    shape.height_m = 2 * shape.radius_m * (1 + random_in(random, 0, 4));
    for (int i = 0; i < 3; i++)
        shape.half_m[i] = size * random_in(random, 0.2, 1.5);
    shape.yaw_deg = random_below(random, 3) ? random_in(random, -360, 360) : 0;
    return shape;
}

static struct vec3 somewhere(struct random *random, const struct scene *scene)
{
    const struct vec3 *t = scene->triangles[random_below(random, (uint32_t)scene->count)];
    double u = random_in(random, 0, 1), v = random_in(random, 0, 1);

    if (u + v > 1) {
        u = 1 - u;
        v = 1 - v;
    }
    if (random_below(random, 4) == 0) /* an edge, and sometimes a corner */
        v = random_below(random, 2) ? 0 : 1 - u;
    if (random_below(random, 16) == 0)
        u = v = 0;
    return vec3_add(
        t[0], vec3_add(vec3_scale(vec3_sub(t[1], t[0]), u), vec3_scale(vec3_sub(t[2], t[0]), v)));
}

static double radius_of(const struct shape *shape)
{
    return shape->kind == SHAPE_BOX ? shape->half_m[2] : shape->radius_m;
}

/* Half of the diagonal of the shape's box, and more. */
static double reach_of(const struct shape *shape)
{
    return shape->kind == SHAPE_BOX ? shape->half_m[0] + shape->half_m[1] + shape->half_m[2]
                                    : fmax(shape->radius_m, shape->height_m);
}

static void random_way(struct random *random, const struct scene *scene, const struct shape *shape,
                       struct vec3 *from, struct vec3 *to)
{
    struct vec3 target = somewhere(random, scene), aside = oracle_direction(random);
    double length = exp(random_in(random, log(0.01), log(30)));

    switch (random_below(random, 8)) {
    case 0: /* grazing: past the place at about the radius */
        *from = vec3_add(
            target, vec3_scale(aside, radius_of(shape) * (1 + random_in(random, -1e-7, 1e-7))));
        aside = vec3_unit(vec3_cross(aside, oracle_direction(random)));
        *to = vec3_add(*from, vec3_scale(aside, length));
        *from = vec3_sub(*from, vec3_scale(aside, random_in(random, 0, 5)));
        return;
    case 1: /* deep */
        *from = vec3_add(target, vec3_scale(aside, radius_of(shape) * random_in(random, 0, 1)));
        *to = vec3_add(*from, vec3_scale(oracle_direction(random), length));
        return;
    case 2: /* along an axis */
        aside = random_below(random, 3) == 0   ? (struct vec3){1, 0, 0}
                : random_below(random, 2) == 0 ? (struct vec3){0, -1, 0}
                                               : (struct vec3){0, 0, -1};
        *from = vec3_sub(target, vec3_scale(aside, length));
        *to = vec3_add(target, vec3_scale(aside, random_in(random, -1, 3)));
        return;
    case 3: /* nowhere */
        *from = *to = vec3_add(target, vec3_scale(aside, random_in(random, 0, 2)));
        return;
    default:
        *from = vec3_add(target, vec3_scale(aside, length + reach_of(shape)));
        *to = vec3_add(target, vec3_scale(oracle_direction(random), random_in(random, 0, 4)));
    }
}

static bool is_far(const struct vec3 t[3], struct vec3 low, struct vec3 high)
{
    return fmax(fmax(t[0].x, t[1].x), t[2].x) < low.x ||
           fmin(fmin(t[0].x, t[1].x), t[2].x) > high.x ||
           fmax(fmax(t[0].y, t[1].y), t[2].y) < low.y ||
           fmin(fmin(t[0].y, t[1].y), t[2].y) > high.y ||
           fmax(fmax(t[0].z, t[1].z), t[2].z) < low.z ||
           fmin(fmin(t[0].z, t[1].z), t[2].z) > high.z;
}

static struct oracle_touch brute_force(const struct scene *scene, const struct oracle_way *way)
{
    struct oracle_touch all = {INFINITY, INFINITY, 0, INFINITY};
    double r = reach_of(way->shape) + 1e-6;
    struct vec3 more = {r, r, r}, from = way->from, to = way->to;
    struct vec3 low = {fmin(from.x, to.x), fmin(from.y, to.y), fmin(from.z, to.z)};
    struct vec3 high = {fmax(from.x, to.x), fmax(from.y, to.y), fmax(from.z, to.z)};

    low = vec3_sub(low, more);
    high = vec3_add(high, more);
    for (size_t i = 0; i < scene->count; i++) {
        if (is_far(scene->triangles[i], low, high))
            continue;
        struct oracle_touch one = oracle_sweep(way, scene->triangles[i]);

        all.least = fmin(all.least, one.least);
        all.start = fmin(all.start, one.start);
        if (one.fraction < all.fraction) {
            all.fraction = one.fraction;
            all.slope = one.slope;
        }
    }
    return all;
}

/* Is the touched point on the surface, on the shape, and the normal between them? */
static void check_touch(const struct scene *scene, const struct oracle_way *way,
                        const struct sweep *s)
{
    const struct sweep_touch *t = &s->best;
    struct vec3 at = vec3_add(way->from, vec3_scale(s->along, t->fraction));
    const struct shape point = {.kind = SHAPE_SPHERE};
    double least = INFINITY, clearance = INFINITY;

    assert_true(fabs(vec3_length(t->normal) - 1) < 1e-9);
    for (size_t i = 0; i < scene->count; i++)
        if (scene->field || scene->polygon[i] == t->polygon) {
            least = fmin(least, oracle_clearance(&point, way->up, t->point, scene->triangles[i]));
            clearance =
                fmin(clearance, oracle_clearance(way->shape, way->up, at, scene->triangles[i]));
        }
    if (least > 1e-7 || (!t->starts_inside && clearance > 1e-7))
        fail_msg("the point is %g m from the surface, the shape %g m", least, clearance);
    if (!t->starts_inside && vec3_dot(t->normal, s->along) > 1e-6 * vec3_length(s->along) &&
        t->fraction > 0)
        fail_msg("it leads away from what it touches");
}

static void check_sweep(struct random *random, const struct scene *scene, struct tally *tally)
{
    struct shape shape = random_shape(random);
    struct vec3 from, to;
    uint64_t seed = random->state;

    random_way(random, scene, &shape, &from, &to);
    struct vec3 up = scene->is_radial ? vec3_unit(from) : scene->up;
    struct oracle_way way = {&shape, up, from, to};
    struct oracle_touch want = brute_force(scene, &way);
    struct sweep s;

    sweep_begin(&s, &shape, up, from, to);
    bool has = scene_sweep(scene, &s);
    double fraction = has ? s.best.fraction : INFINITY, difference = fabs(fraction - want.fraction);
    double coordinates = 1e-15 * (vec3_length(from) + vec3_length(to) + scene->size + 10);

    assert_true(has == (s.best.fraction < INFINITY));
    if (fraction == want.fraction)
        difference = 0;
    if (difference > 1e-9) {
        /* within rounding of its radius it may touch or not; so it may where it ends */
        bool is_doubtful =
            fabs(want.least) < 20 * coordinates || fabs(want.start) < 20 * coordinates ||
            difference * want.slope < 40 * coordinates ||
            (fabs(fmin(fraction, want.fraction) - 1) * want.slope < 40 * coordinates);

        if (!is_doubtful)
            fail_msg("seed %llu: shape %d, fraction %.17g, by brute force %.17g (start %g, slope "
                     "%g, least %g)",
                     (unsigned long long)seed, (int)shape.kind, fraction, want.fraction, want.start,
                     want.slope, want.least);
        tally->grazing++;
        return;
    }
    tally->worst = fmax(tally->worst, difference);
    if (!has) {
        tally->misses++;
        return;
    }
    tally->hits++;
    tally->inside += s.best.starts_inside;
    if (fabs(want.start) > 1e-9 && s.best.starts_inside != (want.start < 0) &&
        shape.kind != SHAPE_BOX) /* of an overlap the oracle of boxes knows no depth */
        fail_msg("seed %llu: starts inside", (unsigned long long)seed);
    check_touch(scene, &way, &s);
}

static void check_scenes(struct scene (*make)(struct random *random, int kind), unsigned count)
{
    struct random random = {20261127};
    struct tally tally = {0};

    for (int kind = 0; kind < 24; kind++) {
        struct scene scene = make(&random, kind);

        for (unsigned i = 0; i < count / 24; i++)
            check_sweep(&random, &scene, &tally);
        scene_free(&scene);
    }
    print_message(
        "%u touches, %u from inside, %u misses, %u within rounding of a touch, worst %g\n",
        tally.hits, tally.inside, tally.misses, tally.grazing, tally.worst);
    assert_true(tally.hits > count / 4);
    assert_true(tally.misses > count / 20);
    assert_true(tally.inside > count / 50);
    assert_true(tally.grazing < count / 100);
}

/* A million in all with KOTA_LONG=1. */
static unsigned by_hand(unsigned most, unsigned few)
{
    return getenv("KOTA_LONG") ? most : few;
}

static void fields_as_by_brute_force(void **state)
{
    (void)state;
    check_scenes(field_scene, by_hand(200000, long_form(4800, 600)));
}

static void meshes_as_by_brute_force(void **state)
{
    (void)state;
    check_scenes(mesh_scene, by_hand(200000, 4800));
}

static void planets_as_by_brute_force(void **state)
{
    (void)state;
    check_scenes(planet_scene, by_hand(100000, 2400));
}

/* ---- by hand -------------------------------------------------------------------------------- */

/* 8 m × 8 m at height 0. */
static struct heightfield *plain(void)
{
    struct heightfield_spec spec = {.cols = 9, .rows = 9, .spacing_x_m = 1, .spacing_y_m = 1};
    float heights[81] = {0};

    return field_make(&spec, heights);
}

static struct sweep_touch swept(struct shape shape, struct vec3 from, struct vec3 to)
{
    struct heightfield *field = plain();
    struct sweep s;

    sweep_begin(&s, &shape, (struct vec3){0, 0, 1}, from, to);
    heightfield_sweep(field, &s);
    heightfield_unref(field);
    return s.best;
}

static void shapes_land_on_a_plain(void **state)
{
    const struct shape shapes[] = {
        {.kind = SHAPE_SPHERE, .radius_m = 0.5},
        {.kind = SHAPE_CAPSULE, .radius_m = 0.25, .height_m = 1},
        {.kind = SHAPE_BOX, .half_m = {0.25, 0.125, 0.5}, .yaw_deg = 30},
    };

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct sweep_touch t =
            swept(shapes[i], (struct vec3){3.3, 4.4, 2}, (struct vec3){3.3, 4.4, -1});

        assert_true(fabs(t.fraction - 0.5) < 1e-15);
        assert_false(t.starts_inside);
        assert_true(t.normal.x == 0 && t.normal.y == 0 && t.normal.z == 1);
        double off = shapes[i].kind == SHAPE_BOX ? 0.3 : 1e-9; /* a box touches by an area */

        assert_true(t.point.z == 0 && fabs(t.point.x - 3.3) < off && fabs(t.point.y - 4.4) < off);
        assert_int_equal(t.cell[0], 3);
        assert_int_equal(t.cell[1], 4);

        t = swept(shapes[i], (struct vec3){3.3, 4.4, 0.25}, (struct vec3){3.3, 4.4, 9});
        assert_true(t.starts_inside && t.fraction == 0 && t.normal.z == 1);

        t = swept(shapes[i], (struct vec3){3.3, 4.4, 0.5}, (struct vec3){3.3, 4.4, 9});
        assert_true(!t.starts_inside && t.fraction == 0); /* it touches there, as a ray hits */

        t = swept(shapes[i], (struct vec3){3.3, 4.4, 0.5001}, (struct vec3){3.3, 4.4, 9});
        assert_true(t.fraction == INFINITY);
    }
}

static void from_below_the_normal_is_down(void **state)
{
    struct sweep_touch t = swept((struct shape){.kind = SHAPE_SPHERE, .radius_m = 0.5},
                                 (struct vec3){2, 2, -3}, (struct vec3){2, 2, 3});

    (void)state;
    assert_true(fabs(t.fraction - 2.5 / 6) < 1e-15 && t.normal.z == -1);
}

/* A sphere passes the edge of the ground as far aside as it is wide, or a little less. */
static void edges_and_corners_are_met(void **state)
{
    const struct shape sphere = {.kind = SHAPE_SPHERE, .radius_m = 0.5};
    struct sweep_touch t = swept(sphere, (struct vec3){-0.3, 4, 2}, (struct vec3){-0.3, 4, -2});

    (void)state;
    assert_true(fabs(t.fraction - (2 - 0.4) / 4) < 1e-15);
    assert_true(fabs(t.normal.x + 0.6) < 1e-12 && fabs(t.normal.z - 0.8) < 1e-12);
    t = swept(sphere, (struct vec3){-0.5000001, 4, 2}, (struct vec3){-0.5000001, 4, -2});
    assert_true(t.fraction == INFINITY);
    t = swept(sphere, (struct vec3){-0.3, -0.3, 2}, (struct vec3){-0.3, -0.3, -2});
    assert_true(fabs(t.fraction - (2 - sqrt(0.25 - 0.18)) / 4) < 1e-15);
}

/* A floor and walls beside it are touched at the start: the wall ahead is reported. */
static void what_is_left_is_never_the_touch(void **state)
{
    static const struct vec3 at[4][3] = {
        {{-30, -30, 0}, {30, -30, 0}, {0, 60, 0}},
        {{-0.99, -30, -30}, {-0.99, 30, -30}, {-0.99, 0, 60}},
        {{-30, -0.99, -30}, {30, -0.99, -30}, {0, -0.99, 60}},
        {{5, -30, -30}, {5, 30, -30}, {5, 0, 60}},
    };
    static const struct shape shapes[] = {
        {.kind = SHAPE_SPHERE, .radius_m = 1},
        {.kind = SHAPE_CAPSULE, .radius_m = 1, .height_m = 3},
        {.kind = SHAPE_BOX, .half_m = {1, 1, 1}},
    };
    const double middle_m[] = {0.99, 1.49, 0.99};
    struct mesh_options options = {.gravity = {0, 0, -1}};

    (void)state;
    for (unsigned round = 0; round < 16; round++) {
        struct soup soup = {0};

        for (unsigned i = 0; i < 4; i++)
            soup_add(&soup, at[i ^ (round & 3)], 3);
        if (round & 4) /* and once more, far away: another tree */
            soup_add(&soup, (struct vec3[]){{90, 90, 90}, {91, 90, 90}, {90, 91, 90}}, 3);
        struct mesh *mesh = soup_mesh(&soup, &options, NULL);

        for (int k = 0; k < 3; k++) {
            struct vec3 from = {0, 0, middle_m[k]}, to = {8, round & 8 ? 0.5 : 0, middle_m[k]};
            struct sweep s;

            sweep_begin(&s, &shapes[k], (struct vec3){0, 0, 1}, from, to);
            s.is_approaching = true;
            assert_true(mesh_sweep(mesh, &s));
            assert_true(fabs(s.best.fraction - 0.5) < 1e-12);
            assert_int_equal(s.best.polygon, 3 ^ (round & 3));
            assert_false(s.best.starts_inside);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void a_point_moves_as_a_ray(void **state)
{
    struct random random = {7};

    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        struct scene scene = kind % 2 ? field_scene(&random, kind) : mesh_scene(&random, kind + 1);

        for (unsigned i = 0; i < 2000; i++) {
            struct shape points[2] = {{.kind = SHAPE_SPHERE}, {.kind = SHAPE_SPHERE}};
            struct vec3 from, to;

            points[1].radius_m = 1e-9;
            random_way(&random, &scene, &points[0], &from, &to);
            struct ray ray = {from, vec3_sub(to, from), 1};
            struct ray_hit on_field = {.t = INFINITY};
            struct mesh_hit on_mesh = {.t = INFINITY};
            double t[2];

            if (!ray_is_valid(&ray) || scene.is_moved)
                continue;
            if (scene.field)
                heightfield_ray(scene.field, &ray, RAY_CLOSEST, &on_field, NULL);
            else
                mesh_ray(scene.mesh, &ray, RAY_CLOSEST, &on_mesh);
            for (int k = 0; k < 2; k++) {
                struct sweep s;

                sweep_begin(&s, &points[k], scene.up, from, to);
                scene_sweep(&scene, &s);
                t[k] = s.best.fraction;
            }
            double want = fmin(on_field.t, on_mesh.t);

            assert_true(t[0] == want);
            if (want < INFINITY && !(t[1] <= want + 1e-12))
                fail_msg("%u: ray %.17g, sphere of a nanometre %.17g", i, want, t[1]);
        }
        scene_free(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_land_on_a_plain),
        cmocka_unit_test(from_below_the_normal_is_down),
        cmocka_unit_test(edges_and_corners_are_met),
        cmocka_unit_test(what_is_left_is_never_the_touch),
        cmocka_unit_test(a_point_moves_as_a_ray),
        cmocka_unit_test(fields_as_by_brute_force),
        cmocka_unit_test(meshes_as_by_brute_force),
        cmocka_unit_test(planets_as_by_brute_force),
    };

    return run_at_every_level("sweep", tests, sizeof tests / sizeof *tests);
}
