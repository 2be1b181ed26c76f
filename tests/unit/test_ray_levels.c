/*
 * Every level of vector instructions, alone and in batches, gives the bits of the scalar walk.
 */
#include "terrain/field_ray/ray.h"
#include "terrain/kernels/simd.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RAYS = 400, MANY = 9 /* enough for what begins together, and a rest */ };

static void expect_same(const struct ray_hit *got, const struct ray_hit *want, const char *how,
                        unsigned field, unsigned i)
{
    bool same = isinf(want->t)
                    ? isinf(got->t)
                    : got->t == want->t && got->cell[0] == want->cell[0] &&
                          got->cell[1] == want->cell[1] && got->triangle == want->triangle &&
                          memcmp(&got->point, &want->point, sizeof got->point) == 0 &&
                          memcmp(&got->normal, &want->normal, sizeof got->normal) == 0;

    if (!same)
        fail_msg("field %u ray %u, %s, %s: t %.17g in cell (%u, %u), the scalar walk %.17g in "
                 "(%u, %u)",
                 field, i, simd_level_name(simd_level()), how, got->t, got->cell[0], got->cell[1],
                 want->t, want->cell[0], want->cell[1]);
}

/* The scalar answer of ray number i over field number, asked at each level, alone and as many. */
static void expect_levels_same(const struct heightfield *field, const struct ray *ray,
                               const char *how, unsigned number, unsigned i)
{
    struct ray_hit want = {.t = INFINITY}, hits[MANY];
    struct ray many[MANY];

    for (int k = 0; k < MANY; k++)
        many[k] = *ray;
    assert_true(simd_select(SIMD_SCALAR));
    heightfield_ray(field, ray, RAY_CLOSEST, &want, NULL);
    for (enum simd_level level = SIMD_SCALAR; level <= simd_best(); level++) {
        struct ray_hit got = {.t = INFINITY};

        assert_true(simd_select(level));
        heightfield_ray(field, ray, RAY_CLOSEST, &got, NULL);
        expect_same(&got, &want, how, number, i);
        heightfield_rays(field, many, MANY, hits);
        for (int k = 0; k < MANY; k++)
            expect_same(&hits[k], &want, how, number, i);
    }
}

static struct ray random_ray(struct random *random, const struct heightfield_spec *s)
{
    double z[2];
    double u[2], v[2];
    uint32_t kind = random_below(random, 8);
    struct ray ray;

    for (int i = 0; i < 2; i++) {
        u[i] = random_in(random, -3, s->cols + 2.0);
        v[i] = random_in(random, -3, s->rows + 2.0);
        z[i] = random_in(random, -8, 12);
        if (kind == 0 || kind == 3) { /* through vertices, along lines and diagonals */
            u[i] = floor(u[i]);
            v[i] = floor(v[i]);
            z[i] = floor(z[i]);
        }
    }
    if (kind == 1 || (kind == 3 && random_below(random, 2)))
        u[1] = u[0];
    if (kind == 2)
        v[1] = v[0];
    if (kind == 4) /* nearly straight down */
        u[1] = u[0] + 1e-9, v[1] = v[0] - 1e-13, z[0] = 50, z[1] = -50;
    ray.origin = (struct vec3){s->origin_x_m + u[0] * s->spacing_x_m,
                               s->origin_y_m + v[0] * s->spacing_y_m, z[0]};
    ray.direction =
        (struct vec3){(u[1] - u[0]) * s->spacing_x_m, (v[1] - v[0]) * s->spacing_y_m, z[1] - z[0]};
    if (kind == 3)
        ray.direction.z = 0;
    ray.t_max = kind == 5 ? random_in(random, 0, 1) : INFINITY;
    if (!ray_is_valid(&ray))
        ray.direction = (struct vec3){1, 0.5, -1};
    return ray;
}

static float *random_samples(struct random *random, const struct heightfield_spec *s)
{
    float *samples = malloc((size_t)s->cols * s->rows * sizeof *samples);
    double holes = random_below(random, 2) ? 0.1 : 0, rough = random_in(random, 0, 6);
    bool whole = random_below(random, 3) == 0;

    assert_non_null(samples);
    for (uint32_t r = 0; r < s->rows; r++)
        for (uint32_t c = 0; c < s->cols; c++) {
            double h = 4 * sin(c * 0.05) + 3 * cos(r * 0.07) + random_in(random, 0, rough);

            samples[(size_t)r * s->cols + c] =
                random_in(random, 0, 1) < holes ? NAN : (float)(whole ? floor(h) : h);
        }
    return samples;
}

static void compare_on(struct random *random, const struct heightfield_spec *spec, unsigned number)
{
    static struct ray rays[RAYS];
    static struct ray_hit want[RAYS], got[RAYS];
    float *samples = random_samples(random, spec);
    struct err err;
    struct heightfield *field = heightfield_create(spec, samples, &err);

    assert_non_null(field);
    if (!heightfield_validate(field, &err))
        fail_msg("field %u: %s", number, err.msg);
    assert_true(simd_select(SIMD_SCALAR));
    for (unsigned i = 0; i < RAYS; i++) {
        rays[i] = random_ray(random, spec);
        if (!heightfield_ray(field, &rays[i], RAY_CLOSEST, &want[i], NULL))
            want[i].t = INFINITY;
    }
    for (enum simd_level level = SIMD_SCALAR; level <= simd_best(); level++) {
        size_t first = random_below(random, 30);

        assert_true(simd_select(level));
        for (unsigned i = 0; i < RAYS; i++) {
            struct ray_hit one = {.t = INFINITY};

            heightfield_ray(field, &rays[i], RAY_CLOSEST, &one, NULL);
            expect_same(&one, &want[i], "alone", number, i);
        }
        heightfield_rays(field, rays, first, got);
        heightfield_rays(field, rays + first, RAYS - first, got + first);
        for (unsigned i = 0; i < RAYS; i++)
            expect_same(&got[i], &want[i], "batch", number, i);
    }
    heightfield_unref(field);
    free(samples);
}

static void all_levels_and_batches_give_the_same_bits(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2},   {3, 6},    {5, 5},     {17, 16},
                                        {40, 33}, {257, 90}, {300, 700}, {1100, 60}};
    /* of a field's rays most go in lanes; with the largest leaves none does */
    static const uint32_t leaf_cells[] = {0, 0, 4, 16, 1, 64};
    struct random random = {21};
    enum simd_level level = simd_level();

    (void)state;
    for (unsigned n = 0; n < 240; n++) {
        const uint32_t any[2] = {2 + random_below(&random, 90), 2 + random_below(&random, 90)};
        const uint32_t *size = n % 4 == 3 ? any : sizes[n % (n % 5 == 0 ? 8 : 6)];
        struct heightfield_spec spec = {size[0],
                                        size[1],
                                        n % 2 ? random_in(&random, -1000, 1000) : 0,
                                        n % 2 ? random_in(&random, -1000, 1000) : 0,
                                        n % 2 ? random_in(&random, 0.25, 4) : 1,
                                        n % 2 ? random_in(&random, 0.25, 4) : 1,
                                        (enum triangulation)(n % 3),
                                        leaf_cells[n / 6 % 6]};

        compare_on(&random, &spec, n);
    }
    assert_true(simd_select(level));
}

/* What float32 cannot hold goes the scalar way; huge and tiny numbers on the way there. */
static void extreme_heights_and_sizes_are_the_same(void **state)
{
    static const float scales[] = {1e-38f, 1e-20f, 1e6f, 1e14f, 1e16f, 3e37f};
    static struct ray rays[2000];
    static struct ray_hit wants[2000], gots[2000];
    struct random random = {22};
    enum simd_level level = simd_level();

    (void)state;
    for (unsigned n = 0; n < 6; n++) {
        struct heightfield_spec spec = {30, 30, 0, 0, 1, 1, TRIANGULATION_MAIN, 0};
        float samples[900];
        struct err err;

        for (int i = 0; i < 900; i++)
            samples[i] = scales[n] * (float)random_in(&random, -9, 9);
        struct heightfield *field = heightfield_create(&spec, samples, &err);

        assert_non_null(field);
        for (unsigned i = 0; i < 2000; i++) {
            double scale = (double)scales[n];
            struct ray ray = {{random_in(&random, -5, 35), random_in(&random, -5, 35),
                               scale * random_in(&random, -12, 12)},
                              {random_in(&random, -1, 1), random_in(&random, -1, 1),
                               (i % 2 ? 1 : scale) * random_in(&random, -1, 1)},
                              INFINITY};
            struct ray_hit want = {.t = INFINITY}, got;

            rays[i] = ray;
            assert_true(simd_select(SIMD_SCALAR));
            heightfield_ray(field, &ray, RAY_CLOSEST, &want, NULL);
            wants[i] = want;
            for (enum simd_level l = SIMD_SCALAR; l <= simd_best(); l++) {
                assert_true(simd_select(l));
                heightfield_rays(field, &ray, 1, &got);
                expect_same(&got, &want, "extreme", n, i);
                got.t = INFINITY;
                heightfield_ray(field, &ray, RAY_CLOSEST, &got, NULL);
                expect_same(&got, &want, "extreme, alone", n, i);
            }
        }
        for (enum simd_level l = SIMD_SCALAR; l <= simd_best(); l++) {
            assert_true(simd_select(l));
            heightfield_rays(field, rays, 2000, gots);
            for (unsigned i = 0; i < 2000; i++)
                expect_same(&gots[i], &wants[i], "extreme, together", n, i);
        }
        heightfield_unref(field);
    }
    assert_true(simd_select(level));
}

/* From far away to a point of the field, in steps of any length, along axes and up to the point. */
static struct ray distant_ray(struct random *random, const struct heightfield_spec *s)
{
    double from = pow(10, random_in(random, -3, 9)), length = exp2(random_in(random, -200, 200));
    struct vec3 to = {s->origin_x_m + random_in(random, 0, s->cols - 1) * s->spacing_x_m,
                      s->origin_y_m + random_in(random, 0, s->rows - 1) * s->spacing_y_m,
                      random_in(random, -3, 3)};
    struct vec3 way = {random_in(random, -1, 1) * s->spacing_x_m,
                       random_in(random, -1, 1) * s->spacing_y_m, random_in(random, -1, 1)};
    uint32_t kind = random_below(random, 8);

    if (kind & 1)
        way.z *= pow(10, random_in(random, -9, 0));
    if (kind == 2 || kind == 3)
        way.x = kind == 2 ? 0.0 : -0.0;
    if (kind == 4 || kind == 3)
        way.y *= pow(10, random_in(random, -40, 0));
    if (kind == 5)
        way.z = 0;
    struct ray ray = {vec3_sub(to, vec3_scale(way, from)), vec3_scale(way, length), INFINITY};

    if (kind >= 6)
        ray.t_max = from / length * random_in(random, 0.5, 1.5) * (kind - 6);
    return ray;
}

/* Those that float32 is not for, and those that it just is for. */
static void far_fast_and_slow_rays_are_the_same(void **state)
{
    struct random random = {23};
    enum simd_level level = simd_level();

    (void)state;
    for (unsigned n = 0; n < 24; n++) {
        double origin = n % 3 == 2 ? 1e7 : n % 3 * 1000.0, spacing = n % 4 == 3 ? 1e-3 : 1;
        struct heightfield_spec spec = {n % 2 ? 40 : 600,
                                        300,
                                        origin,
                                        -origin,
                                        spacing,
                                        spacing,
                                        (enum triangulation)(n % 3),
                                        0};
        float *samples = random_samples(&random, &spec);
        struct err err;
        struct heightfield *field = heightfield_create(&spec, samples, &err);

        assert_non_null(field);
        for (unsigned i = 0; i < 3000; i++) {
            struct ray ray = distant_ray(&random, &spec);

            if (!ray_is_valid(&ray))
                continue;
            expect_levels_same(field, &ray, "distant", n, i);
        }
        heightfield_unref(field);
        free(samples);
    }
    assert_true(simd_select(level));
}

/* An origin so far away that its coordinates are coarse beside cells, or coarser than they. */
static void fields_far_from_the_origin_are_the_same(void **state)
{
    static const double origins[] = {1e9, 1e10, 1e11, 5e11, 1e12, 2e12, 1e13, 1e14, 1e15, 4e15};
    struct random random = {25};
    enum simd_level level = simd_level();

    (void)state;
    for (unsigned n = 0; n < sizeof origins / sizeof *origins; n++) {
        struct heightfield_spec spec = {
            300, 270, origins[n], n % 2 ? -origins[n] : 0, 1, 1, (enum triangulation)(n % 3), 0};
        float *samples = random_samples(&random, &spec);
        struct err err;
        struct heightfield *field = heightfield_create(&spec, samples, &err);

        assert_non_null(field);
        for (unsigned i = 0; i < 3000; i++) {
            struct ray ray = random_ray(&random, &spec);

            expect_levels_same(field, &ray, "far origin", n, i);
        }
        heightfield_unref(field);
        free(samples);
    }
    assert_true(simd_select(level));
}

/* Just over ground as flat as float32 sees it, and over a border where a tile ends. */
static void rays_over_flat_ground_leave_the_last_tile(void **state)
{
    static const uint32_t sizes[][2] = {{257, 257}, {513, 257}, {257, 1025}, {513, 513}, {2, 2},
                                        {9, 17},    {17, 17},   {33, 33},    {18, 66},   {65, 65},
                                        {66, 129},  {257, 21},  {300, 34},   {34, 300}};
    struct random random = {24};
    enum simd_level level = simd_level();

    (void)state;
    for (unsigned n = 0; n < 2 * sizeof sizes / sizeof *sizes; n++) {
        const uint32_t *size = sizes[n / 2];
        float height_m = n % 2 ? 5 : 0; /* 0: what a node without data might have */
        struct heightfield_spec spec = {size[0], size[1], 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
        size_t count = (size_t)spec.cols * spec.rows;
        float *samples = malloc(count * sizeof *samples);
        struct err err;

        assert_non_null(samples);
        for (size_t i = 0; i < count; i++)
            samples[i] = height_m;
        struct heightfield *field = heightfield_create(&spec, samples, &err);

        assert_non_null(field);
        for (unsigned i = 0; i < 2000; i++) {
            struct ray ray = {{random_in(&random, 0, spec.cols - 1),
                               random_in(&random, 0, spec.rows - 1),
                               (double)height_m + pow(10, random_in(&random, -14, -3))},
                              {random_in(&random, -1, 1), random_in(&random, -1, 1), 0},
                              INFINITY};

            expect_levels_same(field, &ray, "flat", n, i);
        }
        heightfield_unref(field);
        free(samples);
    }
    assert_true(simd_select(level));
}

/* All heights and what is left of them are 0, or -0: along the ground, and from its side. */
static void rays_in_ground_at_0_are_the_same(void **state)
{
    static float samples[257 * 257];
    struct heightfield_spec spec = {257, 257, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct random random = {25};
    enum simd_level level = simd_level();
    struct err err;
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    (void)state;
    assert_non_null(field);
    for (unsigned i = 0; i < 2000; i++) {
        bool is_beside = i & 4;
        struct ray ray = {{is_beside ? -10 : random_in(&random, 0, 256), random_in(&random, 0, 256),
                           (i & 1) ? -0.0 : 0.0},
                          {random_in(&random, is_beside ? 0.1 : -1, 1), random_in(&random, -1, 1),
                           (i & 2) ? -0.0 : 0.0},
                          (i & 8) ? 40 : INFINITY};

        expect_levels_same(field, &ray, "at 0", 0, i);
    }
    heightfield_unref(field);
    assert_true(simd_select(level));
}

static void levels_have_names(void **state)
{
    enum simd_level level = simd_level();
    struct err err;

    (void)state;
    for (int i = 0; i < SIMD_LEVELS; i++) {
        enum simd_level l = (enum simd_level)i;
        bool has = l <= simd_best();

        assert_int_equal(simd_select_name(simd_level_name(l), &err), has ? ERR_OK : ERR_BAD_INPUT);
        if (has)
            assert_int_equal(simd_level(), l);
        else
            assert_non_null(strstr(err.msg, "its best is"));
    }
    assert_int_equal(simd_select_name("", &err), ERR_BAD_INPUT);
    assert_int_equal(simd_select_name("avx512", &err), ERR_BAD_INPUT);
    assert_string_equal(err.msg, "simd: \"avx512\" is none of scalar, avx2");
    assert_true(simd_select(level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_levels_and_batches_give_the_same_bits),
        cmocka_unit_test(extreme_heights_and_sizes_are_the_same),
        cmocka_unit_test(far_fast_and_slow_rays_are_the_same),
        cmocka_unit_test(fields_far_from_the_origin_are_the_same),
        cmocka_unit_test(rays_over_flat_ground_leave_the_last_tile),
        cmocka_unit_test(rays_in_ground_at_0_are_the_same),
        cmocka_unit_test(levels_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
