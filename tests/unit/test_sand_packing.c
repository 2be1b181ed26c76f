/*
 * The packing that ground is cut from, and what granules do together: packing fractions, heaps.
 * make test has smaller cases; KOTA_LONG=1 (make physics) runs larger ones.
 */
#include "sand/material.h"
#include "sand/convert/packing.h"
#include "bench/sandscene/packing_bake.h"
#include "sand/engine_c/solver.h"

#include "support/long_form.h"
#include "support/sand_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "support/near.h"

static struct granule granules[4096];

static bool long_run(void)
{
    const char *value = getenv("KOTA_LONG");

    return value && strcmp(value, "1") == 0;
}

/* ---- materials and scales ------------------------------------------------------------------- */

static void parameters_follow_the_radius(void **state)
{
    struct granular_params a, b;

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &a);
    granular_params_make(MATERIAL_SAND, 0.2f, &b);
    assert_int_equal(a.substeps, 16);
    assert_near(a.dt_s, 1.0 / 960, 1e-9);
    assert_near(a.stiffness, 2e6, 0.5);
    assert_near(a.damping, 2e4, 0.01);
    assert_near(a.diameter_m, 0.4449, 1e-4);
    assert_near(a.mass_kg, 4 * 4 * M_PI / 3 * 0.001 * 2000, 1e-4);
    assert_int_equal(b.substeps, 12); /* 11.3 */
    assert_near(b.stiffness / a.stiffness, pow(2, 1.5), 1e-5);
    assert_near(b.damping / a.damping, 4, 1e-5);
    granular_params_make(MATERIAL_SAND, 0.05f, &b);
    assert_int_equal(b.substeps, 23); /* 22.6 */
    granular_params_make(MATERIAL_PEBBLES, 0.1f, &b);
    assert_near(b.stiffness / a.stiffness, b.density / a.density, 1e-5);
}

static void materials_and_scales_have_names(void **state)
{
    enum granular_material material;
    enum granular_scale scale;

    (void)state;
    for (int i = 0; i < MATERIAL_COUNT; i++) {
        assert_true(material_from_name(material_name((enum granular_material)i), &material));
        assert_int_equal(material, i);
    }
    for (int i = 0; i < SCALE_COUNT; i++) {
        assert_true(scale_from_name(scale_name((enum granular_scale)i), &scale));
        assert_int_equal(scale, i);
    }
    assert_false(material_from_name("Sand", &material));
    assert_false(scale_from_name("", &scale));
    assert_near(scale_radius_m(SCALE_FINE), 0.05, 1e-8);
}

/* ---- the packing ---------------------------------------------------------------------------- */

/* Spheres of granules in units of r; at[4 * count][3]. */
static void spheres_of(const float (*pose)[8], uint32_t count, double (*at)[3])
{
    for (uint32_t i = 0; i < GRANULE_SPHERES * count; i++) {
        const float *p = pose[i / GRANULE_SPHERES], *o = GRANULE_CORNER[i % GRANULE_SPHERES];
        const double x = p[4], y = p[5], z = p[6], w = p[7];
        const double turn[3][3] = {
            {1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)},
            {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)},
            {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)}};

        for (int a = 0; a < 3; a++)
            at[i][a] = p[a] + (turn[a][0] * o[0] + turn[a][1] * o[1] + turn[a][2] * o[2]) / sqrt(2);
    }
}

/* The largest overlap in r, over the seams too; and how many contacts a granule has. */
static double overlap_largest(const float (*pose)[8], uint32_t count, double period,
                              double *contacts)
{
    double(*at)[3] = malloc(sizeof(*at) * count * GRANULE_SPHERES), most = 0;

    assert_non_null(at);
    *contacts = 0;
    spheres_of(pose, count, at);
    for (uint32_t i = 0; i < GRANULE_SPHERES * count; i++) {
        for (uint32_t j = 0; j < i / GRANULE_SPHERES * GRANULE_SPHERES; j++) {
            double square = 0;

            for (int a = 0; a < 3; a++) {
                double d = remainder(at[i][a] - at[j][a], period);

                square += d * d;
            }
            if (square >= 4)
                continue;
            most = fmax(most, 2 - sqrt(square));
            *contacts += 2.0 / count;
        }
    }
    free(at);
    return most;
}

static void the_packing_is_dense_and_has_no_seam(void **state)
{
    const struct packing *packing = packing_dense();
    double contacts;

    (void)state;
    assert_near(packing_fraction(packing), 0.60, 0.001);
    assert_true(overlap_largest(packing->pose, packing->granules, packing->period, &contacts) <
                0.06);
    if (!(contacts > 6 && contacts < 16))
        fail_msg("a granule has %g contacts", contacts);
    for (uint32_t i = 0; i < packing->granules; i++) {
        const float *p = packing->pose[i];

        for (int a = 0; a < 3; a++)
            assert_true(p[a] >= 0 && p[a] < packing->period);
        assert_near(p[4] * p[4] + p[5] * p[5] + p[6] * p[6] + p[7] * p[7], 1, 1e-4);
    }
}

static void a_small_packing_is_baked_the_same_by_any_threads(void **state)
{
    struct packing_bake bake = {.side = 4, .fraction = 0.58f, .seed = 5};
    static float one[64][8], two[64][8];
    float period, overlap, period_two, overlap_two;
    double contacts;
    struct err err;

    (void)state;
    bake.threads = 1;
    assert_int_equal(packing_bake(&bake, one, &period, &overlap, &err), ERR_OK);
    bake.threads = 2;
    assert_int_equal(packing_bake(&bake, two, &period_two, &overlap_two, &err), ERR_OK);
    assert_memory_equal(one, two, sizeof(one));
    assert_near(period_two, period, 0);
    assert_near(64 * 4 * 4 * M_PI / 3 / pow(period, 3), 0.58, 0.0005);
    assert_true(overlap < 0.05f);
    assert_true(overlap_largest((const float(*)[8])one, 64, period, &contacts) < 0.15);
    assert_true(contacts > 4);
}

static bool keep_all(void *context, const float x[3])
{
    (void)x;
    ++*(uint32_t *)context;
    return true;
}

/* The same granules, each near the one before it: on the mean within two cells. */
static void ordered_granules_are_the_same_and_near_each_other(void **state)
{
    const float size[2] = {6.4f, 5.1f}, none[3] = {0, 0, 0}, side = 0.45f;
    static struct granule before[4096];
    uint32_t asked = 0, count;
    double way = 0, sum[2] = {0, 0};

    (void)state;
    count = packing_cut(packing_dense(), 0.1f, size, -2.5f, 0.5f, none, keep_all, &asked, granules,
                        4096);
    memcpy(before, granules, count * sizeof(*granules));
    assert_true(packing_order(granules, count, side));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t same = 0;

        for (uint32_t j = 0; j < count; j++)
            same += memcmp(&granules[i], &before[j], sizeof(*before)) == 0;
        assert_int_equal(same, 1);
        for (int k = 0; k < 2 && i > 0; k++) {
            const struct granule *a = (k ? granules : before) + i;
            double square = 0;

            for (int axis = 0; axis < 3; axis++)
                square += pow((double)a[0].x[axis] - (double)a[-1].x[axis], 2);
            sum[k] += sqrt(square);
        }
    }
    way = sum[1] / (count - 1);
    if (!(way < 2 * side && sum[1] < sum[0] / 2))
        fail_msg("%.2f m from one to the next, %.2f m before", way, sum[0] / (count - 1));
    assert_true(packing_order(granules, 0, side));
}

static bool keep_below(void *context, const float x[3])
{
    return x[2] < *(const float *)context;
}

static void a_cut_has_its_share_of_granules(void **state)
{
    const struct packing *packing = packing_dense();
    const float size[2] = {6.4f, 5.1f}, shift[3] = {100.3f, -7.7f, 1.1f}, none[3] = {0, 0, 0};
    const double each = pow(packing->period * 0.1, 3) / packing->granules;
    uint32_t asked = 0, count;
    float level = -1.0f;

    (void)state;
    count = packing_cut(packing, 0.1f, size, -2.5f, 0.5f, shift, keep_all, &asked, granules, 4096);
    assert_int_equal(count, asked);
    assert_near(count, 6.4 * 5.1 * 3 / each, 0.02 * 6.4 * 5.1 * 3 / each);
    for (uint32_t i = 0; i < count; i++) {
        const float *x = granules[i].x;

        assert_true(x[0] >= 0 && x[0] < 6.4f && x[1] >= 0 && x[1] < 5.1f);
        assert_true(x[2] >= -2.5f && x[2] < 0.5f);
        assert_near(granules[i].v[3], 0, 0);
    }
    count = packing_cut(packing, 0.1f, size, -2.5f, 0.5f, none, keep_below, &level, granules, 100);
    assert_near(count, 6.4 * 5.1 * 1.5 / each, 0.03 * 6.4 * 5.1 * 1.5 / each);
    assert_true(granules[99].x[2] < level);
}

/* Flat ground of sand, cut from the packing, r = 0.1 m. */
struct cut {
    float size_m, top_m;
};

static bool keep_inside(void *context, const float x[3])
{
    const struct cut *cut = context;

    return x[2] > 0.12f && x[2] < cut->top_m && x[0] > 0.12f && x[0] < cut->size_m - 0.12f &&
           x[1] > 0.12f && x[1] < cut->size_m - 0.12f;
}

static double top_mean(struct sand_engine *engine, float size_m)
{
    enum { TEXELS = 16 };
    const float d = size_m / 2 / TEXELS;
    const struct sand_depth depth = {.x0 = size_m / 4,
                                     .y0 = size_m / 4,
                                     .dx = d,
                                     .dy = d,
                                     .cols = TEXELS,
                                     .rows = TEXELS,
                                     .oversample = 4};
    float heights_m[TEXELS * TEXELS];
    double sum = 0;
    struct err err;

    assert_int_equal(sand_depth_request(engine, 0, &depth, &err), ERR_OK);
    while (!sand_depth_poll(engine, 0, heights_m))
        ;
    for (int i = 0; i < TEXELS * TEXELS; i++)
        sum += heights_m[i];
    return sum / (TEXELS * TEXELS);
}

static void cut_comes_to_rest(float size_m, float depth_m)
{
    const float shift[3] = {0, 0, 0}, size[2] = {size_m, size_m};
    struct cut cut = {size_m, depth_m};
    struct granular_params params;
    struct sand_engine *engine;
    struct sand_status status;
    double before;
    uint32_t count;

    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    engine = sand_make(&params, 2);
    sand_flat(engine, 0, size_m, depth_m + 1, sand_earth);
    count = packing_cut(packing_dense(), 0.1f, size, 0, depth_m + 1, shift, keep_inside, &cut,
                        granules, 4096);
    sand_put(engine, 0, granules, count);
    before = top_mean(engine, size_m);
    sand_frames(engine, 1, 180);
    status = sand_status(engine, 0);
    if (status.asleep < 0.99 * status.granules)
        fail_msg("%g m deep, %u of %u granules sleep after 3 s, with %g J", depth_m, status.asleep,
                 status.granules, status.kinetic_energy_j);
    assert_near(top_mean(engine, size_m), before, 0.1);
    sand_engine_destroy(engine);
}

static void ground_that_was_cut_comes_to_rest_where_it_is(void **state)
{
    (void)state;
    cut_comes_to_rest(3, 1.5f);
}

/* As deep as 2 m of the fine scale: so much weight once made the lowest buzz. */
static void deep_ground_comes_to_rest_too(void **state)
{
    (void)state;
    cut_comes_to_rest(2.5f, 4);
}

/* ---- granules together ---------------------------------------------------------------------- */

/*
 * Granules fall from a loose lattice between repeating walls; the fraction is measured from half a
 * diameter above the bed to a diameter below the top.
 */
static double poured_fraction(float friction, float size, uint32_t count)
{
    struct granular_params params;
    struct sand_engine *engine;
    double low, high, solid = 0;

    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    params.friction = friction;
    engine = sand_make(&params, 2);
    sand_flat(engine, 0, size, 6, sand_earth);
    solver_slot_periodic(engine, 0, 0);
    sand_put(engine, 0, granules, sand_lattice(granules, &params, size, 0, count, 5));
    sand_frames(engine, 1, 210);
    low = 0.5 * params.diameter_m;
    high = top_mean(engine, size) - params.diameter_m;
    sand_granules_read(engine, 0, granules);
    for (uint32_t g = 0; g < count; g++) {
        float pose[1][8] = {{granules[g].x[0] / 0.1f, granules[g].x[1] / 0.1f,
                             granules[g].x[2] / 0.1f, 0, granules[g].q[0], granules[g].q[1],
                             granules[g].q[2], granules[g].q[3]}};
        double at[GRANULE_SPHERES][3];

        spheres_of((const float(*)[8])pose, 1, at);
        for (int j = 0; j < GRANULE_SPHERES; j++) {
            /* the part of a sphere between two levels: pi (h r^2 - z^3 / 3) */
            double a = fmin(fmax((low - at[j][2] * 0.1) / 0.1, -1), 1);
            double b = fmin(fmax((high - at[j][2] * 0.1) / 0.1, -1), 1);

            solid += M_PI * 1e-3 * ((b - b * b * b / 3) - (a - a * a * a / 3));
        }
    }
    sand_engine_destroy(engine);
    return solid / (size * size * (high - low));
}

static void poured_granules_pack_by_their_friction(void **state)
{
    static const struct {
        float friction;
        double fraction;
    } cases[] = {{0.05f, 0.617}, {0.2f, 0.561}, {0.35f, 0.528}};
    const uint32_t count = long_run() ? 729 : 324; /* 9 layers: a higher fall packs denser */
    const float size = long_run() ? 4.5f : 3;

    (void)state;
    for (size_t i = long_form(0, 2); i < sizeof cases / sizeof *cases; i++) {
        double fraction = poured_fraction(cases[i].friction, size, count);

        print_message("# friction %g: %.4f\n", cases[i].friction, fraction);
        if (!(fabs(fraction - cases[i].fraction) <= 0.02))
            fail_msg("at friction %g the fraction is %.4f, not %.3f", cases[i].friction, fraction,
                     cases[i].fraction);
    }
}

/* Slope of the mean height over the distance from the middle, between two distances. */
static double heap_angle(struct sand_engine *engine, float size_m)
{
    enum { TEXELS = 64 };
    const float d = size_m / TEXELS;
    const struct sand_depth depth = {.x0 = d / 2,
                                     .y0 = d / 2,
                                     .dx = d,
                                     .dy = d,
                                     .cols = TEXELS,
                                     .rows = TEXELS,
                                     .oversample = 4};
    static float heights_m[TEXELS * TEXELS];
    double n = 0, sr = 0, sh = 0, srr = 0, srh = 0, top = 0, foot = 0, volume = 0;
    struct err err;

    assert_int_equal(sand_depth_request(engine, 0, &depth, &err), ERR_OK);
    while (!sand_depth_poll(engine, 0, heights_m))
        ;
    for (int i = 0; i < TEXELS * TEXELS; i++) {
        volume += heights_m[i] * d * d;
        top = fmax(top, heights_m[i]);
    }
    foot = sqrt(3 * volume / (M_PI * top)); /* of a cone so high and so large */
    for (int i = 0; i < TEXELS * TEXELS; i++) {
        double r = hypot((i % TEXELS + 0.5) * d - size_m / 2, (i / TEXELS + 0.5) * d - size_m / 2);

        if (r < 0.2 * foot || r > 0.8 * foot)
            continue;
        n++, sr += r, sh += heights_m[i], srr += r * r, srh += r * heights_m[i];
    }
    return -atan((n * srh - sr * sh) / (n * srr - sr * sr)) * 180 / M_PI;
}

enum { HEAP_SIZE_M = 12, HEAP_PORTION = 14 };

/* Pours so many portions, each from a little above the top, and waits until the last ones have
   rolled down. */
static void heap_pour(struct sand_engine *engine, uint32_t portions)
{
    const float middle = HEAP_SIZE_M / 2.0f;
    struct random random = {3};

    sand_flat(engine, 0, HEAP_SIZE_M, 5, sand_earth);
    for (uint32_t p = 0; p < portions; p++) {
        float z = 0.8f + 1.9f * sqrtf((float)p / 60);

        for (uint32_t i = 0; i < HEAP_PORTION; i++) {
            granules[i] = sand_granule(middle + 0.5f * ((float)(i % 3) - 1),
                                       middle + 0.5f * ((float)(i / 3 % 3) - 1),
                                       z + 0.5f * (float)(i / 9), &random);
            granules[i].v[2] = -1;
        }
        sand_put(engine, 0, granules, HEAP_PORTION);
        sand_frames(engine, 1, 20);
    }
    sand_frames(engine, 1, 150);
}

/* Between 25 and 40 degrees, and after two seconds the same. */
static void heap_stays(struct sand_engine *engine)
{
    double angle = heap_angle(engine, HEAP_SIZE_M), later;

    sand_frames(engine, 1, 120);
    later = heap_angle(engine, HEAP_SIZE_M);
    print_message("# %u granules: %.2f degrees, %.2f two seconds later\n",
                  sand_status(engine, 0).granules, angle, later);
    if (!(angle >= 25 && angle <= 40))
        fail_msg("the heap has a slope of %.2f degrees", angle);
    assert_near(later, angle, 0.5);
}

static void a_poured_heap_keeps_its_slope(void **state)
{
    struct granular_params params;
    struct sand_engine *engine;

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    engine = sand_make(&params, 2);
    heap_pour(engine, long_run() ? 60 : long_form(24, 12));
    heap_stays(engine);
    sand_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_follow_the_radius),
        cmocka_unit_test(materials_and_scales_have_names),
        cmocka_unit_test(the_packing_is_dense_and_has_no_seam),
        cmocka_unit_test(a_small_packing_is_baked_the_same_by_any_threads),
        cmocka_unit_test(a_cut_has_its_share_of_granules),
        cmocka_unit_test(ordered_granules_are_the_same_and_near_each_other),
        cmocka_unit_test(ground_that_was_cut_comes_to_rest_where_it_is),
        cmocka_unit_test(deep_ground_comes_to_rest_too),
        cmocka_unit_test(poured_granules_pack_by_their_friction),
        cmocka_unit_test(a_poured_heap_keeps_its_slope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
