/*
 * The OpenGL engine beside the C engine, on Mesa's software renderer: the same short scenes, two
 * runs, two slots, sleep, depth, failure and loss. Skipped, with the reason, where there is no
 * OpenGL.
 */
#include "sand/gl_engine.h"

#include "sand/material.h"
#include "sand/solver.h"
#include "support/random.h"

#include <epoxy/gl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static struct context *context;

enum {
    SIDE = 6, /* granules along one side of the lattice */
    LAYERS = 4,
    GRANULES = SIDE * SIDE * LAYERS,
    CUBE = 5, /* particles along its edge */
    BED = 9
};

/* ---- scenes ---------------------------------------------------------------------------------- */

static struct sand_engine_config config_of(const struct granular_params *params)
{
    return (struct sand_engine_config){.params = *params,
                                       .slots = 4,
                                       .granules_max = 1024,
                                       .bodies_max = 4,
                                       .particles_max = 512,
                                       .cells_max = 20000,
                                       .bed_max = 1024,
                                       .depth_max = 65536,
                                       .threads = 1};
}

static struct granular_params medium(void)
{
    struct granular_params params;

    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    return params;
}

static struct sand_engine *make_gl(const struct granular_params *params)
{
    struct sand_engine_config config = config_of(params);
    struct err err = {0};
    struct sand_engine *engine = gl_engine_create(context, &config, &err);

    if (!engine)
        fail_msg("%s", err.msg);
    return engine;
}

static struct sand_engine *make_c(const struct granular_params *params)
{
    struct sand_engine_config config = config_of(params);
    struct err err = {0};
    struct sand_engine *engine = solver_create(&config, &err);

    if (!engine)
        fail_msg("%s", err.msg);
    return engine;
}

static void ok(enum err_code code, const struct err *err)
{
    if (code)
        fail_msg("%s", err->msg);
}

/* A box of size_m with a bed of hills. */
static void begin(struct sand_engine *engine, uint32_t slot, float size_m, float hills_m)
{
    float heights[BED * BED];
    struct sand_slot_begin how = {.size_m = {size_m, size_m},
                                  .height_m = 4,
                                  .gravity = {0, 0, -9.81f},
                                  .bed = {.cols = BED, .rows = BED},
                                  .heights_m = heights};
    struct err err = {0};

    how.bed.dx = how.bed.dy = size_m / (BED - 1);
    for (int i = 0; i < BED * BED; i++)
        heights[i] = hills_m * sinf((float)(i % BED)) * cosf((float)(i / BED));
    ok(sand_slot_begin(engine, slot, &how, &err), &err);
}

/* Granules on a lattice 1.02 D wide, turned and moving a little. */
static void fill(struct sand_engine *engine, uint32_t slot, uint64_t seed, uint32_t count)
{
    const struct granular_params *params = &engine->config.params;
    struct granule *granules = calloc(count, sizeof(*granules));
    struct random random = {seed};
    struct err err = {0};

    assert_non_null(granules);
    for (uint32_t g = 0; g < count; g++) {
        struct granule *granule = &granules[g];
        float length = 0;

        granule->x[0] = params->diameter_m * (0.55f + 1.02f * (float)(g % SIDE));
        granule->x[1] = params->diameter_m * (0.55f + 1.02f * (float)(g / SIDE % SIDE));
        granule->x[2] = params->diameter_m * (0.8f + 1.02f * (float)(g / (SIDE * SIDE)));
        for (int i = 0; i < 4; i++) {
            granule->q[i] = (float)random_in(&random, -1, 1);
            length += granule->q[i] * granule->q[i];
        }
        for (int i = 0; i < 4; i++)
            granule->q[i] /= sqrtf(length);
        for (int i = 0; i < 3; i++)
            granule->v[i] = (float)random_in(&random, -0.5, 0.5);
    }
    /* in two portions */
    ok(sand_slot_fill(engine, slot, granules, count / 2, &err), &err);
    ok(sand_slot_fill(engine, slot, granules + count / 2, count - count / 2, &err), &err);
    free(granules);
}

/* A cube of 125 particles, thrown. */
static uint32_t add_cube(struct sand_engine *engine, uint32_t slot, float x, float y, float z)
{
    const float pitch = 1.5f * engine->config.params.radius_m;
    float offsets[CUBE * CUBE * CUBE][3];
    const float edge = pitch * CUBE, mass = 1500 * edge * edge * edge;
    const float moment = mass * edge * edge / 6;
    struct sand_shape shape = {.offsets_m = offsets,
                               .particles = CUBE * CUBE * CUBE,
                               .mass_kg = mass,
                               .inertia = {{moment, 0.05f * moment, 0},
                                           {0.05f * moment, 1.2f * moment, 0},
                                           {0, 0, 0.9f * moment}}};
    struct sand_pose pose = {
        .x = {x, y, z}, .q = {0.1f, 0.2f, 0.3f, 0.9f}, .v = {0.3f, -0.2f, -3}, .w = {1, 2, -1}};
    struct err err = {0};
    uint32_t body;

    for (int i = 0; i < CUBE * CUBE * CUBE; i++) {
        offsets[i][0] = pitch * (float)(i % CUBE - CUBE / 2);
        offsets[i][1] = pitch * (float)(i / CUBE % CUBE - CUBE / 2);
        offsets[i][2] = pitch * (float)(i / CUBE / CUBE - CUBE / 2);
    }
    ok(sand_body_add(engine, slot, &shape, &pose, &body, &err), &err);
    return body;
}

static void step(struct sand_engine *engine, uint32_t substeps, uint64_t active)
{
    struct err err = {0};

    ok(sand_engine_step(engine, substeps, active, &err), &err);
}

/* The status after what was submitted; waits for it as a caller may, by polling. */
static struct sand_status status_of(struct sand_engine *engine, uint32_t slot)
{
    struct sand_status status;

    sand_status_request(engine, slot);
    for (int i = 0; i < 20000; i++) {
        if (sand_status_poll(engine, slot, &status))
            return status;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("no status came within 20 s");
    return status;
}

/* FNV-1a over all that moves. */
static uint64_t hash_of(struct sand_engine *engine, uint32_t slot)
{
    struct granule granules[1024];
    struct sand_status status = status_of(engine, slot);
    uint32_t count = sand_granules_read(engine, slot, granules);
    uint64_t hash = 0xcbf29ce484222325u;
    const uint8_t *bytes[2] = {(const uint8_t *)granules, (const uint8_t *)status.pose};
    const size_t sizes[2] = {count * sizeof(*granules), sizeof(status.pose)};

    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < sizes[part]; i++)
            hash = (hash ^ bytes[part][i]) * 0x100000001b3u;
    return hash;
}

/* The largest distance between the granules of two engines [m]. */
static double apart(struct sand_engine *a, struct sand_engine *b, uint32_t slot)
{
    static struct granule of_a[1024], of_b[1024];
    uint32_t count = sand_granules_read(a, slot, of_a);
    struct sand_status status_a = status_of(a, slot), status_b = status_of(b, slot);
    double most = 0;

    assert_int_equal(count, sand_granules_read(b, slot, of_b));
    for (uint32_t g = 0; g < count; g++)
        for (int i = 0; i < 3; i++)
            most = fmax(most, fabs((double)of_a[g].x[i] - of_b[g].x[i]));
    assert_true(status_a.body_alive == status_b.body_alive);
    for (uint32_t k = 0; k < SAND_BODIES_MAX; k++)
        for (int i = 0; i < 3; i++)
            most = fmax(most, fabs((double)status_a.pose[k].x[i] - status_b.pose[k].x[i]));
    return most;
}

#define NEEDS_GL()                                                                                 \
    do {                                                                                           \
        if (!context)                                                                              \
            skip();                                                                                \
    } while (0)

/* ---- beside the C engine -----------------------------------------------------------------------
 */

static void granules_fall_as_in_c(void **state)
{
    const struct granular_params params = medium();

    (void)state;
    NEEDS_GL();
    struct sand_engine *gl = make_gl(&params), *c = make_c(&params);

    for (int i = 0; i < 2; i++) {
        begin(i ? c : gl, 1, 3, 0.2f);
        fill(i ? c : gl, 1, 7, GRANULES);
        step(i ? c : gl, 100, 1u << 1);
    }
    double most = apart(gl, c, 1);

    print_message("# granules: %g m apart after 100 steps\n", most);
    assert_true(most < 1e-4);
    struct sand_status of_gl = status_of(gl, 1), of_c = status_of(c, 1);

    assert_int_equal(of_gl.steps, 100);
    assert_int_equal(of_gl.granules, GRANULES);
    assert_int_equal(of_gl.asleep, of_c.asleep);
    assert_false(of_gl.failed);
    assert_true(fabs(of_gl.kinetic_energy_j / of_c.kinetic_energy_j - 1) < 1e-3);
    assert_int_equal(context_errors(context), 0);
    sand_engine_destroy(gl);
    sand_engine_destroy(c);
}

static void a_body_falls_as_in_c(void **state)
{
    const struct granular_params params = medium();

    (void)state;
    NEEDS_GL();
    struct sand_engine *gl = make_gl(&params), *c = make_c(&params);

    for (int i = 0; i < 2; i++) {
        struct sand_engine *engine = i ? c : gl;
        uint32_t first, second;

        begin(engine, 0, 3, 0.1f);
        fill(engine, 0, 9, GRANULES);
        first = add_cube(engine, 0, 0.9f, 0.9f, 2.6f);
        second = add_cube(engine, 0, 2.1f, 2.1f, 2.6f);
        assert_int_equal(first, 0);
        assert_int_equal(second, 1);
        step(engine, 20, 1);
        sand_body_impulse(engine, 0, 1, (const float[3]){100, 50, 20});
        sand_body_velocity(engine, 0, 0, NULL, (const float[3]){0, 0, 3});
        step(engine, 80, 1);
    }
    double most = apart(gl, c, 0);
    struct sand_status of_gl = status_of(gl, 0), of_c = status_of(c, 0);

    print_message("# bodies: %g m apart after 100 steps\n", most);
    assert_true(most < 1e-4);
    assert_int_equal(of_gl.bodies, 2);
    assert_true(fabs(of_gl.kinetic_energy_j / of_c.kinetic_energy_j - 1) < 1e-3);
    assert_true(fabsf(of_gl.body_speed_max / of_c.body_speed_max - 1) < 1e-3f);
    sand_engine_destroy(gl);
    sand_engine_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granules_fall_as_in_c),
        cmocka_unit_test(a_body_falls_as_in_c),
    };
    struct err err = {0};
    int failed;

    context_prepare();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    context = context_create("software", true, &err);
    if (!context)
        print_message("# skipped: %s\n", err.msg);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    context_destroy(context);
    return failed;
}
