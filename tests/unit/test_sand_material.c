/*
 * Materials: slots of one engine, each of its own. They differ as they are named: how steep a
 * heap of them is, and how deep a body sinks into them.
 */
#include "sand/engine.h"
#include "sand/material.h"

#include "support/long_form.h"
#include "support/sand_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { COLUMN = 260, BED = 300, PORTIONS = 28 };

static void begin(struct sand_engine *engine, uint32_t slot, const struct material_numbers *numbers,
                  float size_m)
{
    static const float heights_m[4] = {0, 0, 0, 0};
    struct granular_params params;
    const struct sand_slot_begin how = {.size_m = {size_m, size_m},
                                        .height_m = 6,
                                        .gravity = {0, 0, -9.81f},
                                        .bed = {2, 2, 0, 0, size_m, size_m},
                                        .heights_m = heights_m,
                                        .params = &params};
    struct err err;

    granular_params_of(numbers, engine->config.params.radius_m, &params);
    if (sand_slot_begin(engine, slot, &how, &err))
        fail_msg("%s", err.msg);
}

static struct sand_engine *make(void)
{
    struct granular_params params;

    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    return sand_make(&params, 2);
}

/* Frames until 97 % of the granules of the first slots sleep; `most` at most. */
static void settle(struct sand_engine *engine, uint32_t slots, uint32_t most)
{
    bool is_awake = true;

    for (uint32_t done = 0; done < most && is_awake; done += 10) {
        sand_frames(engine, (1u << slots) - 1, 10);
        is_awake = false;
        for (uint32_t slot = 0; slot < slots; slot++) {
            const struct sand_status status = sand_status(engine, slot);

            is_awake |= status.asleep < 0.97 * status.granules;
        }
    }
}

/* Degrees of the cone with the mean height and the mean distance from the middle of these. */
static double slope_of(struct sand_engine *engine, uint32_t slot)
{
    static struct granule granules[9 * PORTIONS];
    const uint32_t count = sand_granules_read(engine, slot, granules);
    double middle[2] = {0, 0}, high = 0, out = 0;

    for (uint32_t g = 0; g < count; g++) {
        middle[0] += granules[g].x[0] / (double)count;
        middle[1] += granules[g].x[1] / (double)count;
        high += granules[g].x[2] / (double)count;
    }
    for (uint32_t g = 0; g < count; g++)
        out += hypot(granules[g].x[0] - middle[0], granules[g].x[1] - middle[1]) / count;
    return atan(2 * high / out) * 180 / M_PI;
}

static void measure(struct sand_engine *engine, const char *what, double slope[MATERIAL_COUNT])
{
    for (uint32_t m = 0; m < MATERIAL_COUNT; m++) {
        const struct sand_status status = sand_status(engine, m);

        slope[m] = slope_of(engine, m);
        print_message("# %s of %s: %.1f degrees, %u of %u asleep\n", what,
                      material_name((enum granular_material)m), slope[m], status.asleep,
                      status.granules);
        assert_false(status.failed);
    }
}

/* Heaps of each preset, poured side by side from a little above their tops. */
static void heaps_are_as_steep_as_they_are_rough(void **state)
{
    struct sand_engine *engine = make();
    double slope[MATERIAL_COUNT];
    struct random random = {3};

    (void)state;
    for (uint32_t m = 0; m < MATERIAL_COUNT; m++) {
        const struct material_numbers numbers = material_numbers_of((enum granular_material)m);

        begin(engine, m, &numbers, 14);
    }
    for (uint32_t p = 0; p < long_form(PORTIONS, 20); p++) {
        struct granule portion[9];

        for (uint32_t i = 0; i < 9; i++) {
            portion[i] = sand_granule(6.5f + 0.5f * (float)(i % 3), 6.5f + 0.5f * (float)(i / 3),
                                      0.8f + 0.05f * (float)p, &random);
            portion[i].v[2] = -1;
        }
        for (uint32_t m = 0; m < MATERIAL_COUNT; m++)
            sand_put(engine, m, portion, 9);
        sand_frames(engine, (1 << MATERIAL_COUNT) - 1, 15);
    }
    settle(engine, MATERIAL_COUNT, long_form(240, 60));
    measure(engine, "a heap", slope);
    assert_true(slope[MATERIAL_PEBBLES] < slope[MATERIAL_SAND] - 0.8);
    assert_true(slope[MATERIAL_SAND] < slope[MATERIAL_RUBBLE] - 0.8);
    assert_true(slope[MATERIAL_RUBBLE] < slope[MATERIAL_SNOW] - 0.3);
    sand_engine_destroy(engine);
}

/* Columns 1.6 m wide that fall over. */
static void columns_run_out_as_far_as_they_are_smooth(void **state)
{
    static struct granule granules[COLUMN];
    struct sand_engine *engine = make();
    double slope[MATERIAL_COUNT];

    (void)state;
    sand_lattice(granules, &engine->config.params, 1.6f, 0.1f, COLUMN, 5);
    for (uint32_t g = 0; g < COLUMN; g++)
        for (int i = 0; i < 2; i++)
            granules[g].x[i] += 6.2f;
    for (uint32_t m = 0; m < MATERIAL_COUNT; m++) {
        const struct material_numbers numbers = material_numbers_of((enum granular_material)m);

        begin(engine, m, &numbers, 14);
        sand_put(engine, m, granules, COLUMN);
    }
    settle(engine, MATERIAL_COUNT, long_form(300, 150));
    measure(engine, "a column", slope);
    assert_true(slope[MATERIAL_PEBBLES] < slope[MATERIAL_SAND] - 2);
    assert_true(slope[MATERIAL_SAND] < slope[MATERIAL_RUBBLE] - 1);
    assert_true(slope[MATERIAL_RUBBLE] < slope[MATERIAL_SNOW] - 1);
    sand_engine_destroy(engine);
}

/* How far the middle of a cube of 0.8 m and 1 t/m3 lies above the bed after a fall of 1 m. */
static void a_body_sinks_deeper_into_snow(void **state)
{
    static struct granule granules[BED];
    struct sand_engine *engine = make();
    static struct sand_cube cube;
    double depth_m[MATERIAL_COUNT];
    struct sand_pose pose;
    struct err err;
    uint32_t body;

    (void)state;
    sand_cube(&engine->config.params, 0.8f, 1000, &cube);
    sand_lattice(granules, &engine->config.params, 3, 0.1f, BED, 8);
    for (uint32_t m = 0; m < MATERIAL_COUNT; m++) {
        const struct material_numbers numbers = material_numbers_of((enum granular_material)m);

        begin(engine, m, &numbers, 3);
        sand_put(engine, m, granules, BED);
    }
    settle(engine, MATERIAL_COUNT, long_form(150, 80));
    for (uint32_t m = 0; m < MATERIAL_COUNT; m++) {
        float top_m = 0;
        const struct sand_depth above = {1, 1, 1, 1, 2, 2, 8};
        float heights_m[4];

        assert_int_equal(sand_depth_request(engine, m, &above, &err), ERR_OK);
        assert_true(sand_depth_poll(engine, m, heights_m));
        for (int i = 0; i < 4; i++)
            top_m += heights_m[i] / 4;
        depth_m[m] = top_m;
        pose = sand_pose(1.5f, 1.5f, top_m + 1.6f);
        assert_int_equal(sand_body_add(engine, m, &cube.shape, &pose, &body, &err), ERR_OK);
    }
    sand_frames(engine, (1 << MATERIAL_COUNT) - 1, long_form(200, 60));
    for (uint32_t m = 0; m < MATERIAL_COUNT; m++) {
        const struct sand_status status = sand_status(engine, m);

        depth_m[m] -= status.pose[0].x[2] - 0.4;
        print_message("# %s: %.3f m deep\n", material_name((enum granular_material)m), depth_m[m]);
        assert_false(status.failed);
    }
    for (uint32_t m = 0; m < MATERIAL_SNOW; m++)
        assert_true(depth_m[MATERIAL_SNOW] > depth_m[m] + 0.1);
    sand_engine_destroy(engine);
}

/*
 * The corners of what is allowed: each stays bounded, and nearly all of it falls asleep. make test
 * has the 8 corners that hold any three bounds together, make test-all all 16.
 */
static void numbers_within_the_bounds_are_stable(void **state)
{
    static struct granule granules[BED];
    const uint32_t count = long_form(BED, BED / 2);
    struct sand_engine *engine = make();

    (void)state;
    sand_lattice(granules, &engine->config.params, 2.4f, 0.1f, count, 8);
    for (uint32_t k = 0; k < long_form(16, 8); k++) {
        const uint32_t half = k & 7, odd = (half ^ half >> 1 ^ half >> 2 ^ k >> 3) & 1;
        const uint32_t corner = half | odd << 3;
        const struct material_numbers *end[2] = {&material_least, &material_most};
        const struct material_numbers numbers = {
            end[corner & 1]->friction, end[corner >> 1 & 1]->density, end[corner >> 2 & 1]->damping,
            end[corner >> 3 & 1]->stiffness};
        struct sand_status status;

        begin(engine, k % 4, &numbers, 2.4f);
        sand_put(engine, k % 4, granules, count);
        if (k % 4 != 3)
            continue;
        settle(engine, 4, 400);
        for (uint32_t slot = 0; slot < 4; slot++) {
            status = sand_status(engine, slot);
            if (status.failed || status.asleep < 0.97 * count)
                fail_msg("corner %u: %u of %u asleep%s", k - 3 + slot, status.asleep, count,
                         status.failed ? ", failed" : "");
            sand_slot_end(engine, slot);
        }
    }
    sand_engine_destroy(engine);
}

/* A slot that brings the pool's material is the slot that brings none, bit by bit. */
static void the_default_is_the_pools(void **state)
{
    static struct granule granules[COLUMN];
    const struct material_numbers sand = material_numbers_of(MATERIAL_SAND);
    struct sand_engine *engine = make();

    (void)state;
    sand_lattice(granules, &engine->config.params, 2, 0.1f, COLUMN, 5);
    begin(engine, 0, &sand, 2);
    sand_flat(engine, 1, 2, 6, sand_earth);
    for (uint32_t slot = 0; slot < 2; slot++)
        sand_put(engine, slot, granules, COLUMN);
    sand_frames(engine, 3, 60);
    assert_true(sand_hash(engine, 0) == sand_hash(engine, 1));
    sand_engine_destroy(engine);
}

static void materials_look_like_the_nearest_preset(void **state)
{
    (void)state;
    for (int m = 0; m < MATERIAL_COUNT; m++) {
        struct material_numbers numbers = material_numbers_of((enum granular_material)m);

        numbers.density *= 1.05f;
        assert_int_equal(material_like(&numbers), m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(materials_look_like_the_nearest_preset),
        cmocka_unit_test(the_default_is_the_pools),
        cmocka_unit_test(heaps_are_as_steep_as_they_are_rough),
        cmocka_unit_test(columns_run_out_as_far_as_they_are_smooth),
        cmocka_unit_test(a_body_sinks_deeper_into_snow),
        cmocka_unit_test(numbers_within_the_bounds_are_stable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
