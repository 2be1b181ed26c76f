/*
 * Estimates of a patch's time: they grow with its granules, what fits a deadline keeps it, the rate
 * is learnt, and that of a new engine is measured.
 */
#include "sand/engine_c/solver.h"
#include "sand/material.h"
#include "sand/patch/estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct granular_params params_of(enum granular_scale scale)
{
    struct granular_params params;

    granular_params_make(MATERIAL_SAND, scale_radius_m(scale), &params);
    return params;
}

static void what_fits_a_deadline_keeps_it(void **state)
{
    static const double falls_s[] = {-1, 0, 1.5}, speeds[] = {0, 1, 0.1};

    (void)state;
    for (int i = 0; i < SCALE_COUNT * 9; i++) {
        const struct granular_params params = params_of((enum granular_scale)(i / 9));
        struct patch_load load = {.fall_s = falls_s[i / 3 % 3],
                                  .speed = speeds[i % 3],
                                  .pause_after_s = 2,
                                  .settle_still_s = 0.25};
        struct sand_rate rate;
        double before_s;

        sand_rate_init(&rate, &params);
        rate.sphere_steps_s = 5e6;
        before_s = patch_estimate_of(&rate, &params, &load).resting_s;
        for (double limit_s = 1; limit_s < 1000; limit_s *= 1.7) {
            const double most = patch_granules_within(&rate, &params, &load, limit_s);

            if (limit_s < before_s) {
                assert_true(most < 0);
                continue;
            }
            load.granules = most;
            assert_true(patch_estimate_of(&rate, &params, &load).resting_s <= limit_s * 1.000001);
            assert_true(patch_estimate_of(&rate, &params, &load).active_s <=
                        patch_estimate_of(&rate, &params, &load).resting_s);
            load.granules = most + 1;
            assert_true(patch_estimate_of(&rate, &params, &load).resting_s > limit_s);
        }
    }
}

static void a_rate_is_learnt(void **state)
{
    const struct granular_params params = params_of(SCALE_MEDIUM);
    struct sand_rate rate;

    (void)state;
    sand_rate_init(&rate, &params);
    assert_true(rate.sphere_steps_s == 0 && rate.settle_s > 1);
    for (int i = 0; i < 20; i++)
        sand_rate_learn(&rate, 8e6, 2, 1.5);
    assert_float_equal(rate.sphere_steps_s, 4e6, 100);
    assert_float_equal(rate.settle_s, 1.5, 1e-4);
    sand_rate_learn(&rate, 0, 2, 9); /* it tells nothing */
    assert_float_equal(rate.settle_s, 1.5, 1e-4);
}

static void a_new_engine_is_measured(void **state)
{
    const struct sand_engine_config config = {.params = params_of(SCALE_FINE),
                                              .slots = 1,
                                              .granules_max = 1000,
                                              .bodies_max = 1,
                                              .particles_max = 64,
                                              .cells_max = 65536,
                                              .bed_max = 1000,
                                              .depth_max = 1000,
                                              .threads = 1};
    struct err err = {.code = ERR_OK};
    struct sand_engine *engine = solver_create(&config, &err);

    (void)state;
    assert_non_null(engine);
    for (int i = 0; i < 2; i++) { /* the slot is free again */
        const double rate = sand_rate_measure(engine, &err);

        if (!(rate > 1e4 && rate < 1e10) || err.code != ERR_OK)
            fail_msg("%g sphere-steps a second", rate);
    }
    sand_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_a_deadline_keeps_it),
        cmocka_unit_test(a_rate_is_learnt),
        cmocka_unit_test(a_new_engine_is_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
