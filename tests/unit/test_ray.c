/*
 * Rays against brute force, exact aims, and the cases that are easy to get wrong by hand.
 */
#include "terrain/field_ray/ray.h"
#include "terrain/kernels/simd.h"

#include "support/brute_force.h"
#include "support/long_form.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/each_level.h"
#include "support/field_make.h"
#include "support/near.h"

/* Rough ground with a share of holes. */
static float *random_samples(struct random *random, uint32_t cols, uint32_t rows, double holes)
{
    size_t count = (size_t)cols * rows;
    float *samples = malloc(count * sizeof *samples);

    assert_non_null(samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = random_in(random, 0, 1) < holes ? NAN : (float)random_in(random, -4, 9);
    return samples;
}

static struct heightfield_spec random_spec(struct random *random, uint32_t cols, uint32_t rows,
                                           enum triangulation triangulation)
{
    static const uint32_t leaf_cells[] = {1, 2, 4, 8, 16, 32, 64, 256};

    return (struct heightfield_spec){
        .cols = cols,
        .rows = rows,
        .origin_x_m = random_in(random, -1000, 1000),
        .origin_y_m = random_in(random, -1000, 1000),
        .spacing_x_m = random_in(random, 0.25, 4),
        .spacing_y_m = random_in(random, 0.25, 4),
        .triangulation = triangulation,
        .leaf_cells = leaf_cells[random_below(random, 8)],
    };
}

static struct vec3 random_point(struct random *random, const struct box3 *box, double grow)
{
    struct vec3 size = vec3_sub(box->max, box->min);

    return (struct vec3){
        random_in(random, box->min.x - grow * size.x, box->max.x + grow * size.x),
        random_in(random, box->min.y - grow * size.y, box->max.y + grow * size.y),
        random_in(random, box->min.z - grow * (size.z + 1), box->max.z + grow * (size.z + 1)),
    };
}

/* From anywhere, at something inside; some along axes, some short, some long, some with an end. */
static struct ray random_ray(struct random *random, const struct box3 *box)
{
    struct ray ray = {.origin = random_point(random, box, random_below(random, 2) ? 1 : 0)};
    uint32_t kind = random_below(random, 16);
    double scale = exp(random_in(random, -7, 7));

    ray.direction = vec3_sub(random_point(random, box, 0), ray.origin);
    if (kind == 0 || kind == 3)
        ray.direction.x = 0;
    if (kind == 1 || kind == 3)
        ray.direction.y = 0;
    if (kind == 2)
        ray.direction.z = 0;
    ray.direction = vec3_scale(ray.direction, scale);
    ray.t_max = kind == 4 ? random_in(random, 0, 1.5) / scale : INFINITY;
    return ray;
}

static void expect_agreement(const struct heightfield *field, const struct brute_field *brute,
                             const struct ray *ray, uint64_t seed, unsigned number)
{
    struct ray_hit hit = {.t = INFINITY};
    bool is_hit = heightfield_ray(field, ray, RAY_CLOSEST, &hit, NULL);
    struct brute_hit want = brute_field_ray(brute, ray, 1e-9);
    bool agrees;

    if (!is_hit)
        agrees = isinf(want.t) || want.near_border;
    else
        agrees = fabs(hit.t - want.t) <= 1e-6 * hit.t + 1e-12 ||
                 fabs(hit.t - want.t_loose) <= 1e-6 * hit.t + 1e-12;
    if (!agrees)
        fail_msg("seed %llu ray %u: from (%.17g %.17g %.17g) along (%.17g %.17g %.17g) t_max %g: "
                 "t is %.17g, brute force %.17g (grown by 1e-9: %.17g)",
                 (unsigned long long)seed, number, ray->origin.x, ray->origin.y, ray->origin.z,
                 ray->direction.x, ray->direction.y, ray->direction.z, ray->t_max, hit.t, want.t,
                 want.t_loose);
    if (is_hit) {
        struct vec3 p = vec3_add(ray->origin, vec3_scale(ray->direction, hit.t));
        double slack = 1e-9 * (1 + vec3_length(ray->origin) + hit.t * vec3_length(ray->direction));

        if (vec3_length(vec3_sub(p, hit.point)) > slack)
            fail_msg("seed %llu ray %u: the point is not on the ray", (unsigned long long)seed,
                     number);
    }
}

/* Many fields of one size; a new field every rays_per_field rays. */
static void agree_on_size(uint32_t cols, uint32_t rows, unsigned rays, unsigned rays_per_field,
                          uint64_t seed)
{
    struct random random = {seed};

    for (unsigned done = 0; done < rays; done += rays_per_field) {
        double holes = random_below(&random, 3) == 0 ? 0 : random_in(&random, 0, 0.3);
        struct heightfield_spec spec =
            random_spec(&random, cols, rows, (enum triangulation)(random_below(&random, 3)));
        float *samples = random_samples(&random, cols, rows, holes);
        struct heightfield *field = field_make(&spec, samples);
        struct brute_field brute;
        struct box3 box;

        heightfield_bounds(field, &box);
        brute_field_init(&brute, &spec, samples);
        for (unsigned i = 0; i < rays_per_field && done + i < rays; i++) {
            struct ray ray = random_ray(&random, &box);

            expect_agreement(field, &brute, &ray, seed, done + i);
        }
        brute_field_finish(&brute);
        heightfield_unref(field);
        free(samples);
    }
}

static void random_rays_agree_with_brute_force(void **state)
{
    static const struct {
        uint32_t cols, rows;
        unsigned rays, rays_per_field;
    } sizes[] = {
        {2, 2, 20000, 100},   {3, 2, 10000, 100},    {2, 9, 10000, 100},   {5, 5, 20000, 200},
        {17, 13, 20000, 500}, {33, 64, 14000, 1000}, {65, 65, 4000, 1000}, {129, 97, 2000, 250},
    };
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        agree_on_size(sizes[i].cols, sizes[i].rows, sizes[i].rays / long_form(1, 3),
                      sizes[i].rays_per_field / long_form(1, 2), 100 + i);
}

static void rays_over_tiles_and_seams_agree_with_brute_force(void **state)
{
    (void)state;
    agree_on_size(1025, 700, long_form(500, 12), long_form(250, 12), 7);
    agree_on_size(11, 700, long_form(20000, 1200), long_form(250, 100), 8);
}

static double aim_z(const struct heightfield *field, double x, double y)
{
    struct ground_point ground;

    heightfield_height(field, (struct vec2){x, y}, INTERPOLATION_TRIANGLE, &ground);
    assert_int_equal(ground.status, GROUND_OK);
    return ground.height_m;
}

/* A point of the grid: a vertex, or somewhere on one of the three kinds of edges. */
static struct vec3 random_aim(struct random *random, const struct heightfield *field, int kind)
{
    const struct heightfield_spec *s = heightfield_spec(field);
    uint32_t c = random_below(random, s->cols - 1), r = random_below(random, s->rows - 1);
    bool is_main = s->triangulation == TRIANGULATION_MAIN ||
                   (s->triangulation == TRIANGULATION_ALTERNATING && (c + r) % 2 == 1);
    double fu = random_in(random, 0, 1), fv = fu;
    struct vec3 p;

    if (kind == 0)
        fu = fv = 0;
    else if (kind == 1)
        fv = 0;
    else if (kind == 2)
        fu = 0;
    else if (!is_main)
        fv = 1 - fu;
    p.x = s->origin_x_m + (c + fu) * s->spacing_x_m;
    p.y = s->origin_y_m + (r + fv) * s->spacing_y_m;
    p.z = aim_z(field, p.x, p.y);
    return p;
}

/* Steeper than any triangle, so that a ray that meets the aim cannot miss the surface. */
static struct ray steep_ray_at(struct random *random, const struct heightfield *field,
                               struct vec3 aim)
{
    const struct heightfield_spec *s = heightfield_spec(field);
    struct box3 box;
    double side = random_below(random, 2) ? 1 : -1;
    struct ray ray = {.t_max = INFINITY};

    heightfield_bounds(field, &box);
    double rise = side * random_in(random, 20, 200);
    double reach = random_in(random, 0, 0.01 * fabs(rise));
    uint32_t way = random_below(random, 6);
    double angle = random_in(random, 0, 6.283185307179586);

    ray.origin = aim;
    ray.origin.z += rise;
    if (way < 4) {
        ray.origin.x += way == 1 ? 0 : reach * cos(angle) * s->spacing_x_m;
        ray.origin.y += way == 2 ? 0 : reach * sin(angle) * s->spacing_y_m;
        if (way == 3) /* the ground line along a diagonal */
            ray.origin.y = aim.y + (ray.origin.x - aim.x) * s->spacing_y_m / s->spacing_x_m;
    }
    ray.direction = vec3_sub(aim, ray.origin);
    return ray;
}

static void a_million_rays_at_vertices_and_edges_do_not_leak(void **state)
{
    struct random random = {11};
    unsigned missed = 0, wrong = 0;

    (void)state;
    for (unsigned n = 0; n < 100; n++) {
        struct heightfield_spec spec = random_spec(&random, 40, 30, (enum triangulation)(n % 3));
        float *samples = random_samples(&random, 40, 30, 0);
        struct heightfield *field;

        if (n % 2 == 0) /* numbers that float64 does not round */
            spec.origin_x_m = spec.origin_y_m = 0, spec.spacing_x_m = spec.spacing_y_m = 0.5;
        field = field_make(&spec, samples);
        for (unsigned i = 0; i < 10000; i++) {
            struct vec3 aim = random_aim(&random, field, (int)(i % 4));
            struct ray ray = steep_ray_at(&random, field, aim);
            struct ray_hit hit;

            if (!heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL))
                missed++;
            else if (hit.t > 1 + 1e-9)
                wrong++;
        }
        heightfield_unref(field);
        free(samples);
    }
    if (missed || wrong)
        fail_msg("of 1,000,000 rays %u leaked and %u hit behind their aim (seed 11)", missed,
                 wrong);
}

/*
 * Small whole numbers, where brute force rounds nothing: rays that only touch a vertex or an edge,
 * in every way there is. It finds no ray that lies within a triangle's plane, so ours may be
 * earlier.
 */
static void rays_through_lattice_points_hit_no_later_than_brute_force(void **state)
{
    const unsigned fields = long_form(3000, 1000);
    struct random random = {15};

    (void)state;
    for (unsigned n = 0; n < fields; n++) {
        uint32_t cols = 2 + random_below(&random, 6), rows = 2 + random_below(&random, 6);
        struct heightfield_spec spec = {
            cols, rows, 0, 0, 1, 1, (enum triangulation)(n % 3), 1u << random_below(&random, 4)};
        float samples[49];
        struct brute_field brute;

        for (unsigned i = 0; i < cols * rows; i++)
            samples[i] = (float)random_below(&random, 4);
        struct heightfield *field = field_make(&spec, samples);

        brute_field_init(&brute, &spec, samples);
        for (unsigned i = 0; i < 100; i++) {
            struct ray ray = {
                {(double)random_below(&random, 11) - 2, (double)random_below(&random, 11) - 2,
                 (double)random_below(&random, 9) - 2},
                {(double)random_below(&random, 7) - 3, (double)random_below(&random, 7) - 3,
                 (double)random_below(&random, 7) - 3},
                INFINITY};
            struct ray_hit hit = {.t = INFINITY};

            if (!ray_is_valid(&ray))
                continue;
            heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL);
            double want = brute_field_ray(&brute, &ray, 0).t;
            struct vec3 at = vec3_add(ray.origin, vec3_scale(ray.direction, want));
            bool is_inside =
                at.x > 1e-9 && at.x < cols - 1 - 1e-9 && at.y > 1e-9 && at.y < rows - 1 - 1e-9;

            if (hit.t > want + 1e-12 && is_inside)
                fail_msg("field %u (seed 15): from (%g %g %g) along (%g %g %g) t %.17g, brute "
                         "force %.17g",
                         n, ray.origin.x, ray.origin.y, ray.origin.z, ray.direction.x,
                         ray.direction.y, ray.direction.z, hit.t, want);
        }
        brute_field_finish(&brute);
        heightfield_unref(field);
    }
}

/* Along grid lines, from above the field's highest point down to its lowest. */
static void rays_along_grid_lines_do_not_leak(void **state)
{
    struct random random = {12};
    unsigned missed = 0;

    (void)state;
    for (unsigned n = 0; n < 300; n++) {
        struct heightfield_spec spec = random_spec(&random, 20, 25, (enum triangulation)(n % 3));
        float *samples = random_samples(&random, 20, 25, 0);
        struct heightfield *field = field_make(&spec, samples);
        struct box3 box;

        heightfield_bounds(field, &box);
        for (unsigned i = 0; i < 100; i++) {
            uint32_t line = random_below(&random, 20);
            struct ray ray = {.t_max = INFINITY};
            struct ray_hit hit;

            if (i % 2 == 0) {
                ray.origin.x = spec.origin_x_m + line * spec.spacing_x_m;
                ray.origin.y = i % 4 ? box.min.y : box.max.y;
                ray.direction.y = (i % 4 ? 1 : -1) * (box.max.y - box.min.y);
            } else {
                ray.origin.y = spec.origin_y_m + line * spec.spacing_y_m;
                ray.origin.x = i % 4 == 1 ? box.min.x : box.max.x;
                ray.direction.x = (i % 4 == 1 ? 1 : -1) * (box.max.x - box.min.x);
            }
            ray.origin.z = box.max.z;
            ray.direction.z = box.min.z - box.max.z;
            missed += !heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL);
        }
        heightfield_unref(field);
        free(samples);
    }
    if (missed)
        fail_msg("of 30,000 rays along grid lines %u leaked (seed 12)", missed);
}

static void a_vertical_ray_gives_the_triangle_height(void **state)
{
    struct random random = {13};

    (void)state;
    for (unsigned n = 0; n < 60; n++) {
        struct heightfield_spec spec =
            random_spec(&random, 2 + random_below(&random, 30), 2 + random_below(&random, 30),
                        (enum triangulation)(n % 3));
        float *samples = random_samples(&random, spec.cols, spec.rows, n % 2 ? 0.2 : 0);
        struct heightfield *field = field_make(&spec, samples);
        struct box3 box;

        heightfield_bounds(field, &box);
        for (unsigned i = 0; i < 500; i++) {
            struct vec3 at = random_point(&random, &box, 0.1);
            bool up = i % 2;
            struct ray ray = {at, {0, 0, up ? 2 : -0.5}, INFINITY};
            struct ground_point ground;
            struct ray_hit hit;

            if (i % 5 == 0) /* on a vertex */
                ray.origin.x =
                    spec.origin_x_m + spec.spacing_x_m * random_below(&random, spec.cols),
                ray.origin.y =
                    spec.origin_y_m + spec.spacing_y_m * random_below(&random, spec.rows);
            ray.origin.z = up ? box.min.z - 1 : box.max.z + 1;
            heightfield_height(field, (struct vec2){ray.origin.x, ray.origin.y},
                               INTERPOLATION_TRIANGLE, &ground);
            bool is_hit = heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL);

            if (is_hit != (ground.status == GROUND_OK) ||
                (is_hit && (hit.point.z != ground.height_m || hit.cell[0] != ground.cell[0] ||
                            hit.cell[1] != ground.cell[1] || hit.triangle != ground.triangle)))
                fail_msg("field %u point %u: height %d %.17g, ray %d %.17g", n, i, ground.status,
                         ground.height_m, is_hit, is_hit ? hit.point.z : NAN);
        }
        heightfield_unref(field);
        free(samples);
    }
}

struct aimed {
    const char *what;
    struct ray ray;
    bool is_hit;
    double t;
};

/* 5×5, flat at 0, one peak of 4 in the middle, spacing 1. */
static struct heightfield *peak_field(enum triangulation triangulation, bool has_hole)
{
    struct heightfield_spec spec = {5, 5, 0, 0, 1, 1, triangulation, 2};
    float samples[25] = {0};

    samples[12] = 4;
    if (has_hole)
        samples[0] = NAN;
    return field_make(&spec, samples);
}

static void exact_cases_by_hand(void **state)
{
    static const struct aimed cases[] = {
        {"grazes the peak along a row", {{-1, 2, 4}, {1, 0, 0}, INFINITY}, true, 3},
        {"grazes the peak along a column, downwards in y",
         {{2, 9, 4}, {0, -2, 0}, INFINITY},
         true,
         3.5},
        {"grazes the peak along a diagonal", {{0, 0, 4}, {1, 1, 0}, INFINITY}, true, 2},
        {"grazes the peak along the other diagonal",
         {{0, 4, 4}, {0.5, -0.5, 0}, INFINITY},
         true,
         4},
        {"grazes the peak off the diagonals", {{0, 1, 4}, {2, 1, 0}, INFINITY}, true, 1},
        {"just above the peak", {{-1, 2, 4.0000001}, {1, 0, 0}, INFINITY}, false, 0},
        {"inside flat ground, along x", {{-3, 0.25, 0}, {1, 0, 0}, INFINITY}, true, 3},
        {"inside flat ground, origin on it", {{0.5, 0.25, 0}, {0, 1, 0}, INFINITY}, true, 0},
        {"straight down on a corner of the field", {{4, 4, 9}, {0, 0, -3}, INFINITY}, true, 3},
        {"straight up from below", {{0.5, 0.5, -2}, {0, 0, 1}, INFINITY}, true, 2},
        {"straight down beside the field", {{4.000001, 4, 9}, {0, 0, -3}, INFINITY}, false, 0},
        {"down through the far corner", {{5, 5, 1}, {-1, -1, -1}, INFINITY}, true, 1},
        {"down along the outer edge", {{0, 6, 2}, {0, -1, -0.5}, INFINITY}, true, 4},
        {"away from the ground", {{2, 2, 5}, {0.1, 0, 1}, INFINITY}, false, 0},
        {"too short", {{2, 2, 5}, {0, 0, -1}, 0.5}, false, 0},
        {"just long enough", {{2, 2, 5}, {0, 0, -1}, 1}, true, 1},
        {"t_max 0 on the ground", {{1, 1, 0}, {1, 0, -1}, 0}, true, 0},
        {"a tiny direction", {{0.5, 0.5, 1}, {0, 1e-300, -1e-300}, INFINITY}, true, 1e300},
        {"a huge direction", {{0.5, 0.5, 1}, {0, 1e300, -1e300}, INFINITY}, true, 1e-300},
        {"from very far, straight down", {{0.5, 0.5, 1e18}, {0, 0, -1}, INFINITY}, true, 1e18},
        {"from very far along x", {{1e18, 2, 3}, {-1, 0, 0}, INFINITY}, true, 1e18},
        {"from below through the peak's flank", {{1.75, 2, -1}, {0, 0, 1}, INFINITY}, true, 4},
        {"nearly straight down, on a grid line", {{1, 1.5, 3}, {1e-20, 0, -1}, INFINITY}, true, 3},
    };
    (void)state;

    for (int triangulation = 0; triangulation < 3; triangulation++) {
        struct heightfield *field = peak_field((enum triangulation)triangulation, false);

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct ray_hit hit = {.t = -1};
            bool is_hit = heightfield_ray(field, &cases[i].ray, RAY_CLOSEST, &hit, NULL);

            if (is_hit != cases[i].is_hit ||
                (is_hit && fabs(hit.t - cases[i].t) > 1e-12 * cases[i].t))
                fail_msg("%s (triangulation %d): %s, t %.17g; expected %s, %.17g", cases[i].what,
                         triangulation, is_hit ? "hit" : "miss", hit.t,
                         cases[i].is_hit ? "hit" : "miss", cases[i].t);
        }
        heightfield_unref(field);
    }
}

/* Beside a hole the grid line belongs to the neighbour that is left. */
static void an_edge_of_a_hole_is_still_ground(void **state)
{
    static const float samples[9] = {1, 1, 1, 1, 1, 1, NAN, 1, 1};
    static const struct heightfield_spec spec = {3, 3, 0, 0, 1, 1, TRIANGULATION_MAIN, 1};
    struct heightfield *field = field_make(&spec, samples);
    /* cell (0,1) keeps no triangle but the one with (1,0) and (1,1): holds sample (1, 1), (1, 2) */
    struct ray along = {{1, 3, 1}, {0, -1, 0}, INFINITY}, inside = {{0.2, 1.9, 5}, {0, 0, -1}, 9};
    struct ray_hit hit;

    (void)state;
    assert_true(heightfield_ray(field, &along, RAY_CLOSEST, &hit, NULL));
    assert_near(hit.t, 1, 1e-12);
    assert_false(heightfield_ray(field, &inside, RAY_CLOSEST, &hit, NULL));
    heightfield_unref(field);
}

static void a_field_without_data_is_never_hit(void **state)
{
    static const float samples[4] = {NAN, NAN, NAN, NAN};
    static const struct heightfield_spec spec = {2, 2, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct heightfield *field = field_make(&spec, samples);
    struct ray ray = {{0.5, 0.5, 5}, {0.01, 0, -1}, INFINITY};
    struct ray_hit hit;

    (void)state;
    assert_false(heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL));
    heightfield_unref(field);
}

static void normals_and_triangles_are_those_of_the_cell(void **state)
{
    static const float samples[4] = {0, 2, 6, 20};
    static const struct {
        enum triangulation triangulation;
        double x, y;
        int triangle;
        double slope_x, slope_y;
    } cases[] = {
        {TRIANGULATION_ANTI, 0.5, 0.5, 0, 1, 2},        {TRIANGULATION_ANTI, 1.5, 2.5, 1, 7, 6},
        {TRIANGULATION_MAIN, 1.5, 0.5, 0, 1, 6},        {TRIANGULATION_MAIN, 0.5, 2.5, 1, 7, 2},
        {TRIANGULATION_ALTERNATING, 0.5, 0.5, 0, 1, 2},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heightfield_spec spec = {2, 2, 0, 0, 2, 3, cases[i].triangulation, 0};
        struct heightfield *field = field_make(&spec, samples);
        struct ray ray = {{cases[i].x, cases[i].y, 50}, {0, 0, -1}, INFINITY};
        struct vec3 want = vec3_unit((struct vec3){-cases[i].slope_x, -cases[i].slope_y, 1});
        struct ray_hit hit;

        assert_true(heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL));
        assert_int_equal(hit.triangle, cases[i].triangle);
        if (vec3_length(vec3_sub(want, hit.normal)) > 1e-12)
            fail_msg("case %zu: normal (%g %g %g), expected (%g %g %g)", i, hit.normal.x,
                     hit.normal.y, hit.normal.z, want.x, want.y, want.z);
        heightfield_unref(field);
    }
}

/* T's complaint about Bresenham: every cell whose inside the ground line crosses is visited. */
static void the_walk_visits_every_cell_under_the_ray_once(void **state)
{
    struct random random = {14};
    struct heightfield_spec spec = {33, 33, 0, 0, 1, 1, TRIANGULATION_ANTI, 32};
    float samples[33 * 33] = {0};
    uint32_t cells[128][2];
    struct ray_trace_box boxes[64];

    (void)state;
    samples[0] = 1; /* the box of the single leaf is 0..1 high: no pruning below 1 */
    struct heightfield *field = field_make(&spec, samples);

    for (unsigned n = 0; n < 2000; n++) {
        struct ray_trace trace = {boxes, 64, 0, cells, 128, 0};
        double angle = random_in(&random, 0, 6.283185307179586);
        struct ray ray = {{random_in(&random, 2, 31), random_in(&random, 2, 31), 0.5},
                          {cos(angle), sin(angle), 0},
                          INFINITY};
        struct ray_hit hit;
        bool seen[32][32] = {{false}};

        heightfield_ray(field, &ray, RAY_CLOSEST, &hit, &trace);
        assert_in_range(trace.cell_count, 1, 128);
        for (uint32_t i = 0; i < trace.cell_count; i++) {
            assert_false(seen[cells[i][1]][cells[i][0]]);
            seen[cells[i][1]][cells[i][0]] = true;
        }
        for (double t = 0; t < 46; t += 0.01) { /* far finer than a cell, away from its corners */
            double x = ray.origin.x + t * ray.direction.x, y = ray.origin.y + t * ray.direction.y;

            if (x < 1.1 && y < 1.1)
                break; /* the spike in the corner may stop the ray */
            if (x > 0.001 && y > 0.001 && x < 31.999 && y < 31.999 && fabs(x - round(x)) > 1e-6 &&
                fabs(y - round(y)) > 1e-6 && !seen[(int)y][(int)x])
                fail_msg("ray %u (seed 14) passes cell (%d, %d), which was not visited", n, (int)x,
                         (int)y);
        }
    }
    heightfield_unref(field);
}

/* Each box of a trace is its node's: the columns and rows of the level, cut at the field's edge. */
static void boxes_of_a_trace_are_those_of_their_nodes(void **state)
{
    struct heightfield_spec spec = {300, 290, 5, -7, 2, 3, TRIANGULATION_ANTI, 8};
    float *samples = calloc((size_t)spec.cols * spec.rows, sizeof *samples);
    struct ray_trace_box boxes[256];
    uint32_t cells[1][2], levels = 0;
    struct ray_trace trace = {boxes, 256, 0, cells, 1, 0};
    struct ray ray = {{6, -6, 1.5}, {1, 1.4, -0.002}, INFINITY};
    struct ray_hit hit;

    (void)state;
    for (uint32_t i = 0; i < spec.cols * spec.rows; i++)
        samples[i] = (float)(i % 7) / 4;
    struct heightfield *field = field_make(&spec, samples);

    heightfield_ray(field, &ray, RAY_CLOSEST, &hit, &trace);
    assert_in_range(trace.box_count, 4, 256);
    for (uint32_t i = 0; i < trace.box_count; i++) {
        uint32_t size = 1u << boxes[i].level, column = boxes[i].column * size,
                 row = boxes[i].row * size;

        assert_near(boxes[i].bounds.min.x, 5 + 2.0 * column, 0);
        assert_near(boxes[i].bounds.min.y, -7 + 3.0 * row, 0);
        assert_near(boxes[i].bounds.max.x, 5 + 2.0 * fmin(column + size, spec.cols - 1), 0);
        assert_near(boxes[i].bounds.max.y, -7 + 3.0 * fmin(row + size, spec.rows - 1), 0);
        levels |= size;
    }
    assert_true(__builtin_popcount(levels) >= 3);
    free(samples);
    heightfield_unref(field);
}

static void a_full_trace_still_counts(void **state)
{
    struct heightfield *field = peak_field(TRIANGULATION_ANTI, false);
    struct ray ray = {{-1, 2.2, 3}, {1, 0, 0}, INFINITY};
    struct ray_trace_box boxes[2] = {[1].level = 77};
    uint32_t cells[2][2] = {[1] = {88, 99}};
    struct ray_trace trace = {boxes, 1, 0, cells, 1, 0};
    struct ray_hit hit;

    (void)state;
    assert_true(heightfield_ray(field, &ray, RAY_CLOSEST, &hit, &trace));
    assert_true(trace.box_count > 1 && trace.cell_count > 1);
    assert_true(boxes[1].level == 77 && cells[1][0] == 88 && cells[1][1] == 99);
    assert_int_equal(boxes[0].level, 8); /* the root: one tile */
    assert_true(boxes[0].entered);
    assert_near(boxes[0].bounds.max.z, 4, 0);
    assert_near(boxes[0].bounds.max.x, 4, 0);
    heightfield_unref(field);
}

static void rays_that_cannot_be_asked_are_told(void **state)
{
    static const struct ray bad[] = {
        {{0, 0, 0}, {0, 0, 0}, 1},  {{NAN, 0, 0}, {1, 0, 0}, 1}, {{0, 0, 0}, {INFINITY, 0, 0}, 1},
        {{0, 0, 0}, {1, 0, 0}, -1}, {{0, 0, 0}, {1, 0, 0}, NAN}, {{0, 0, 0}, {5e-324, 0, 0}, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ray_is_valid(&bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_cases_by_hand),
        cmocka_unit_test(random_rays_agree_with_brute_force),
        cmocka_unit_test(rays_over_tiles_and_seams_agree_with_brute_force),
        cmocka_unit_test(a_million_rays_at_vertices_and_edges_do_not_leak),
        cmocka_unit_test(rays_along_grid_lines_do_not_leak),
        cmocka_unit_test(rays_through_lattice_points_hit_no_later_than_brute_force),
        cmocka_unit_test(a_vertical_ray_gives_the_triangle_height),
        cmocka_unit_test(an_edge_of_a_hole_is_still_ground),
        cmocka_unit_test(a_field_without_data_is_never_hit),
        cmocka_unit_test(normals_and_triangles_are_those_of_the_cell),
        cmocka_unit_test(the_walk_visits_every_cell_under_the_ray_once),
        cmocka_unit_test(a_full_trace_still_counts),
        cmocka_unit_test(boxes_of_a_trace_are_those_of_their_nodes),
        cmocka_unit_test(rays_that_cannot_be_asked_are_told),
    };

    return run_at_every_level("rays", tests, sizeof tests / sizeof *tests);
}
