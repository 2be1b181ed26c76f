/*
 * A body on a path, and what granules do to it, on the OpenGL engine beside the C engine.
 * KOTA_TEST_GPU takes another device than Mesa's software renderer.
 */
#include "support/sand_gl.h"

#include "sand/material.h"

#include <math.h>
#include <string.h>

/* A plate of 5 by 5 particles that is driven through a cloud without weight, turning. */
static struct sand_path *add_shovel(struct sand_engine *engine, uint32_t slot, uint32_t *body)
{
    const double c = cos(0.4), s = sin(0.4);
    const struct sand_path_pose poses[] = {{0, {0.4, 1.1, 1}, {0, 0, 0, 1}},
                                           {0.06, {0.6, 1.1, 1}, {0, 0, s, c}},
                                           {0.1, {0.7, 1.2, 1.1}, {s, 0, 0, c}}};
    struct sand_path *path = calloc(1, sizeof(*path) + sizeof(poses));
    float offsets[25][3];
    struct sand_shape shape = {.offsets_m = (const float(*)[3])offsets, .particles = 25};
    const struct sand_pose none = {.x = {0}};
    struct err err;

    assert_non_null(path);
    path->count = 3;
    path->center[2] = 0.05;
    memcpy(path->poses, poses, sizeof(poses));
    shape.path = path;
    for (int i = 0; i < 25; i++) {
        offsets[i][0] = 0;
        offsets[i][1] = 0.12f * (float)(i % 5 - 2);
        offsets[i][2] = 0.12f * (float)(i / 5 - 2);
    }
    assert_int_equal(sand_body_add(engine, slot, &shape, &none, body, &err), ERR_OK);
    return path;
}

enum { CLOUD = 60, SHOVEL_STEPS = 110 };

/* Linear momentum, and angular about the slot's origin. */
static void momentum_of(struct sand_engine *engine, uint32_t slot,
                        const struct granular_params *params, double out[6])
{
    static struct granule granules[1024];
    const uint32_t count = sand_granules_read(engine, slot, granules);

    memset(out, 0, 6 * sizeof(*out));
    for (uint32_t g = 0; g < count; g++) {
        const float *x = granules[g].x, *v = granules[g].v;

        for (int i = 0; i < 3; i++) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;

            out[i] += (double)(params->mass_kg * v[i]);
            out[3 + i] += (double)params->mass_kg * ((double)x[j] * v[k] - (double)x[k] * v[j]) +
                          (double)(params->inertia * granules[g].w[i]);
        }
    }
}

/*
 * Far from bed and walls and without drag, what a shovel gives is what granules get: force and
 * torque against their momentum. It goes where its path says, on both engines to the bit.
 */
static void a_shovel_gives_what_the_granules_get(void **state)
{
    struct granular_params params;
    struct sand_status last[2];

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    params.drag_linear = params.drag_angular = 0;
    for (int e = 0; e < 2; e++) {
        struct sand_engine *engine = e ? sand_make(&params, 1) : gl_make(&params, 1);
        struct granule cloud[CLOUD];
        struct sand_path *path;
        double before[6], after[6], given[6] = {0}, off = 0, all = 0;
        struct sand_status status;
        uint32_t body;

        sand_flat(engine, 0, 6, 6, sand_weightless);
        for (int g = 0; g < CLOUD; g++)
            cloud[g] = (struct granule){.x = {0.95f + 0.4f * (float)(g % 3),
                                              0.4f + 0.4f * (float)(g / 3 % 4),
                                              0.5f + 0.4f * (float)(g / 12)},
                                        .q = {0, 0, 0, 1}};
        sand_put(engine, 0, cloud, CLOUD);
        path = add_shovel(engine, 0, &body);
        momentum_of(engine, 0, &params, before);
        status = sand_status(engine, 0);
        for (int k = 0; k < SHOVEL_STEPS; k++) {
            const struct sand_status was = status;
            double f[3], t[3];

            sand_substeps(engine, 1, 1);
            status = sand_status(engine, 0);
            for (int i = 0; i < 3; i++) {
                f[i] = (was.forces[0].force_n[i] - status.forces[0].force_n[i]) * params.dt_s;
                t[i] = (was.forces[0].torque_nm[i] - status.forces[0].torque_nm[i]) * params.dt_s;
            }
            for (int i = 0; i < 3; i++) {
                const int j = (i + 1) % 3, l = (i + 2) % 3;

                given[i] += f[i];
                given[3 + i] +=
                    t[i] + (double)was.pose[0].x[j] * f[l] - (double)was.pose[0].x[l] * f[j];
            }
        }
        momentum_of(engine, 0, &params, after);
        for (int i = 0; i < 6; i++) {
            off = fmax(off, fabs(given[i] - (after[i] - before[i])));
            all = fmax(all, fabs(given[i]));
        }
        print_message("# %s: %.2f N s given along x, off by %.1e of the largest\n",
                      engine->calls->name, given[0], off / all);
        assert_true(given[0] > 10);
        assert_true(off < 0.02 * all);
        assert_false(status.failed);
        assert_true(status.pose[0].v[0] == 0); /* at its end it stays */
        last[e] = status;
        sand_engine_destroy(engine);
        free(path);
    }
    assert_memory_equal(last[0].pose[0].x, last[1].pose[0].x, sizeof(last[0].pose[0].x));
    assert_memory_equal(last[0].pose[0].q, last[1].pose[0].q, sizeof(last[0].pose[0].q));
    for (int i = 0; i < 3; i++)
        assert_true(fabs(last[0].forces[0].force_n[i] - last[1].forces[0].force_n[i]) <
                    1e-2 * fabs(last[1].forces[0].force_n[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shovel_gives_what_the_granules_get),
    };
    const char *gpu = getenv("KOTA_TEST_GPU");
    struct err err = {0};
    int failed;

    context_prepare();
    gl_context = context_create(gpu ? gpu : "software", CONTEXT_DEBUG, &err);
    if (!gl_context) {
        printf("1..0 # SKIP %s\n", err.msg);
        return 0;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (context_errors(gl_context) > 0)
        failed++;
    context_destroy(gl_context);
    return failed;
}
