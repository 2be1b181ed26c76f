/*
 * The OpenGL engine beside the C engine, on Mesa's software renderer: the same short scenes, two
 * runs, two slots, sleep, depth, failure and loss. Skipped, with the reason, where there is no
 * OpenGL. KOTA_TEST_GPU takes another device, in the words of --gpu.
 */
#include "sand/engine_gl/gl_engine.h"

#include "base/content_hash.h"
#include "sand/material.h"
#include "sand/engine_c/solver.h"
#include "sand/engine_gl/gl_data.h"
#include "support/long_form.h"
#include "support/pause.h"
#include "support/random.h"

#include <epoxy/gl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct context *context;           /* NULL: no OpenGL here, and every test is skipped */
static struct sand_engine *gl, *c_engine; /* of the test that runs */

enum {
    SIDE = 6, /* granules along one side of the lattice */
    LAYERS = 4,
    GRANULES = SIDE * SIDE * LAYERS,
    CUBE = 5, /* particles along its edge */
    BED = 9,
    ANSWERS_MAX = 3 /* a ring holds no more */
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

/* Around each test: an engine of each kind. */
static int setup(void **state)
{
    const struct granular_params params = medium();

    (void)state;
    if (context) {
        gl = make_gl(&params);
        c_engine = make_c(&params);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sand_engine_destroy(gl);
    sand_engine_destroy(c_engine);
    gl = c_engine = NULL;
    return 0;
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

/* Granules on a lattice 0.95 D wide, turned and moving a little. */
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

        granule->x[0] = params->diameter_m * (0.55f + 0.95f * (float)(g % SIDE));
        granule->x[1] = params->diameter_m * (0.55f + 0.95f * (float)(g / SIDE % SIDE));
        granule->x[2] = params->diameter_m * (0.8f + 0.95f * (float)(g / (SIDE * SIDE)));
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

/* A cube of 125 particles, so many times as heavy as granules would be, thrown. */
static uint32_t add_heavy_cube(struct sand_engine *engine, uint32_t slot, float x, float y, float z,
                               float times)
{
    const float pitch = 1.5f * engine->config.params.radius_m;
    float offsets[CUBE * CUBE * CUBE][3];
    const float edge = pitch * CUBE, mass = times * 1500 * edge * edge * edge;
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

static uint32_t add_cube(struct sand_engine *engine, uint32_t slot, float x, float y, float z)
{
    return add_heavy_cube(engine, slot, x, y, z, 1);
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
    for (int i = 0; i < 600000; i++) {
        if (sand_status_poll(engine, slot, &status))
            return status;
        pause_ms(1);
    }
    fail_msg("no status came within ten minutes");
    return status;
}

/* FNV-1a over all that moves. */
static uint64_t hash_of(struct sand_engine *engine, uint32_t slot)
{
    struct granule granules[1024];
    struct sand_status status = status_of(engine, slot);
    uint32_t count = sand_granules_read(engine, slot, granules);

    return fnv1a(fnv1a(FNV1A_EMPTY, granules, count * sizeof(*granules)), status.pose,
                 sizeof(status.pose));
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

#define NEEDS_GL(state)                                                                            \
    do {                                                                                           \
        (void)(state);                                                                             \
        if (!context)                                                                              \
            skip();                                                                                \
    } while (0)

/* ---- beside the C engine --------------------------------------------------------------------- */

static void granules_fall_as_in_c(void **state)
{
    NEEDS_GL(state);
    for (int i = 0; i < 2; i++) {
        begin(i ? c_engine : gl, 1, 3, 0.2f);
        fill(i ? c_engine : gl, 1, 7, GRANULES);
        sand_slot_calm(i ? c_engine : gl, 1, 3);
        step(i ? c_engine : gl, 100, 1u << 1);
    }
    double most = apart(gl, c_engine, 1);

    print_message("# granules: %g m apart after 100 steps\n", most);
    assert_true(most < 1e-4);
    struct sand_status of_gl = status_of(gl, 1), of_c = status_of(c_engine, 1);

    assert_int_equal(of_gl.steps, 100);
    assert_int_equal(of_gl.granules, GRANULES);
    assert_int_equal(of_gl.asleep, of_c.asleep);
    assert_false(of_gl.failed);
    assert_true(fabs(of_gl.kinetic_energy_j / of_c.kinetic_energy_j - 1) < 1e-3);
    assert_int_equal(context_errors(context), 0);
}

/* Two slots of one engine: snow beside pebbles. */
static void each_slot_has_its_material_as_in_c(void **state)
{
    static const float heights_m[4] = {0, 0, 0, 0};
    double apart_m;

    NEEDS_GL(state);
    for (int i = 0; i < 2; i++) {
        struct sand_engine *engine = i ? c_engine : gl;

        for (uint32_t slot = 0; slot < 2; slot++) {
            struct granular_params params;
            const struct sand_slot_begin how = {.size_m = {3, 3},
                                                .height_m = 4,
                                                .gravity = {0, 0, -9.81f},
                                                .bed = {2, 2, 0, 0, 3, 3},
                                                .heights_m = heights_m,
                                                .params = &params};
            struct err err = {0};

            granular_params_make(slot ? MATERIAL_PEBBLES : MATERIAL_SNOW, 0.1f, &params);
            ok(sand_slot_begin(engine, slot, &how, &err), &err);
            fill(engine, slot, 7, GRANULES);
            add_cube(engine, slot, 0.9f, 0.9f, 2.6f);
        }
        step(engine, 100, 3);
    }
    for (uint32_t slot = 0; slot < 2; slot++) {
        const struct sand_status of_gl = status_of(gl, slot), of_c = status_of(c_engine, slot);

        apart_m = apart(gl, c_engine, slot);
        print_message("# slot %u: %g m apart after 100 steps\n", slot, apart_m);
        assert_true(apart_m < 1e-4);
        assert_true(fabs(of_gl.kinetic_energy_j / of_c.kinetic_energy_j - 1) < 1e-3);
    }
    assert_true(status_of(gl, 0).kinetic_energy_j < status_of(gl, 1).kinetic_energy_j);
}

static void a_body_falls_as_in_c(void **state)
{
    NEEDS_GL(state);
    for (int i = 0; i < 2; i++) {
        struct sand_engine *engine = i ? c_engine : gl;
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
    double most = apart(gl, c_engine, 0);
    struct sand_status of_gl = status_of(gl, 0), of_c = status_of(c_engine, 0);

    print_message("# bodies: %g m apart after 100 steps\n", most);
    assert_true(most < 1e-4);
    assert_int_equal(of_gl.bodies, 2);
    assert_true(fabs(of_gl.kinetic_energy_j / of_c.kinetic_energy_j - 1) < 1e-3);
    assert_true(fabsf(of_gl.body_speed_max / of_c.body_speed_max - 1) < 1e-3f);
}

/* The bed is as hard as a heavy body needs, on both engines. */
static void a_heavy_body_meets_the_bed_as_in_c(void **state)
{
    NEEDS_GL(state);
    for (int i = 0; i < 2; i++) {
        struct sand_engine *engine = i ? c_engine : gl;

        begin(engine, 0, 3, 0.1f);
        add_heavy_cube(engine, 0, 1.5f, 1.5f, 0.8f, 20);
        step(engine, 100, 1);
    }
    double most = apart(gl, c_engine, 0);

    print_message("# a heavy body: %g m apart after 100 steps\n", most);
    assert_true(most < 1e-4);
    assert_true(status_of(gl, 0).pose[0].v[2] > -2.5f); /* it did meet the bed */
}

/* 660 blocks of 1,024 cells: three groups sum them, the last in two rounds what is before it. */
static void a_large_grid_is_counted_as_in_c(void **state)
{
    const struct granular_params params = medium();
    struct sand_engine_config config = config_of(&params);
    const float heights[4] = {0};
    const struct sand_slot_begin tall = {.size_m = {3, 3},
                                         .height_m = 600,
                                         .gravity = {0, 0, -9.81f},
                                         .bed = {.cols = 2, .rows = 2, .dx = 3, .dy = 3},
                                         .heights_m = heights};
    struct granule pairs[40];
    struct err err = {0};

    NEEDS_GL(state);
    config.cells_max = 15 * 15 * 3002;
    teardown(state);
    gl = gl_engine_create(context, &config, &err);
    c_engine = solver_create(&config, &err);
    assert_non_null(gl);
    assert_non_null(c_engine);
    for (int g = 0; g < 40; g++) /* one of each pair meets the other at once */
        pairs[g] = (struct granule){
            .x = {1.5f + 0.01f * (float)g, 1.5f, 1 + 30 * (float)(g / 2) + 0.3f * (float)(g % 2)},
            .q = {0, 0, 0, 1},
            .v = {0, 0, g % 2 ? -1.0f : 1.0f}};
    for (int i = 0; i < 2; i++) {
        struct sand_engine *engine = i ? c_engine : gl;

        ok(sand_slot_begin(engine, 0, &tall, &err), &err);
        ok(sand_slot_fill(engine, 0, pairs, 40, &err), &err);
        step(engine, long_form(60, 24), 1);
    }
    assert_true(apart(gl, c_engine, 0) < 1e-4);
    /* they did meet: nobody flew through */
    sand_granules_read(gl, 0, pairs);
    for (int g = 0; g < 40; g += 2)
        assert_true(pairs[g + 1].v[2] - pairs[g].v[2] > -1);
}

/* ---- the same bits --------------------------------------------------------------------------- */

/* A scene with everything in it. */
static void scene(struct sand_engine *engine, uint32_t slot, uint64_t seed)
{
    begin(engine, slot, 2.9f, 0.1f);
    fill(engine, slot, seed, GRANULES);
    add_cube(engine, slot, 1.4f, 1.5f, 2.6f);
}

static void two_runs_are_equal(void **state)
{
    uint64_t hash[2];

    NEEDS_GL(state);
    for (int run = 0; run < 2; run++) {
        scene(gl, 0, 3);
        for (unsigned i = 0; i < long_form(25, 12); i++)
            step(gl, 16, 1);
        hash[run] = hash_of(gl, 0);
        teardown(state);
        setup(state);
    }
    assert_true(hash[0] == hash[1]);
}

/* Alone in slot 0; and in slot 2 between others that begin, pause and end. */
static void neighbours_change_no_bit(void **state)
{
    uint64_t alone, beside;

    NEEDS_GL(state);
    scene(gl, 0, 3);
    step(gl, 16, 1);
    step(gl, 160, 1);
    alone = hash_of(gl, 0);

    scene(gl, 2, 3);
    begin(gl, 1, 3.4f, 0.3f);
    fill(gl, 1, 4, 100);
    step(gl, 16, 1 | 2 | 4);
    sand_slot_end(gl, 0);
    begin(gl, 3, 2.5f, 0);
    fill(gl, 3, 5, 40);
    add_cube(gl, 3, 1, 1, 2);
    step(gl, 53, 2 | 4 | 8);
    step(gl, 107, 4 | 8);
    beside = hash_of(gl, 2);
    assert_true(alone == beside);
}

/* Granules that touch from the first step on: what the slot remembers would matter at once. */
static void pile(struct sand_engine *engine, uint32_t slot)
{
    struct err err = {0};

    begin(engine, slot, 2, 0);
    for (int g = 0; g < 6; g++) {
        struct granule granule = {.x = {0.9f + 0.01f * (float)g, 1, 0.16f + 0.28f * (float)g},
                                  .q = {0, 0, 0, 1},
                                  .v = {0.2f * (float)(g % 2), 0.1f, 0}};

        ok(sand_slot_fill(engine, slot, &granule, 1, &err), &err);
    }
}

static void a_slot_is_as_new_when_it_begins_again(void **state)
{
    uint64_t first, again;

    NEEDS_GL(state);
    pile(gl, 0);
    step(gl, 64, 1);
    first = hash_of(gl, 0);
    sand_slot_end(gl, 0);
    begin(gl, 0, 3.6f, 0.3f);
    fill(gl, 0, 8, 200);
    add_cube(gl, 0, 1, 1, 2.5f);
    add_cube(gl, 0, 2.2f, 2.2f, 2.5f);
    step(gl, 33, 1);
    sand_slot_end(gl, 0);
    pile(gl, 0);
    step(gl, 33, 1);
    sand_slot_end(gl, 0);
    pile(gl, 0);
    step(gl, 64, 1);
    again = hash_of(gl, 0);
    assert_true(first == again);
}

/* A slot that is left out of some steps goes on as if time had stood still, and how many steps a
   call makes does not matter. */
static void a_pause_changes_nothing(void **state)
{
    uint64_t hash[2];

    NEEDS_GL(state);
    for (uint32_t slot = 0; slot < 2; slot++)
        scene(gl, slot, 6);
    step(gl, 1, 1);
    step(gl, 16, 1);
    step(gl, 17, 2);
    step(gl, 15, 1);
    step(gl, 31, 1);
    step(gl, 46, 2);
    for (uint32_t slot = 0; slot < 2; slot++) {
        assert_int_equal(status_of(gl, slot).steps, 63);
        hash[slot] = hash_of(gl, slot);
    }
    assert_true(hash[0] == hash[1]);
}

/* ---- sleep ----------------------------------------------------------------------------------- */

/* A few granules in a narrow box, settled until all sleep. */
static void settle(struct sand_engine *engine, uint32_t slot)
{
    struct sand_status status;

    begin(engine, slot, 2.0f, 0);
    for (int i = 0; i < 40; i++) {
        struct granule granule = {.x = {0.35f + 0.45f * (float)(i % 4),
                                        0.35f + 0.45f * (float)(i / 4 % 4),
                                        0.3f + 0.46f * (float)(i / 16)},
                                  .q = {0, 0, 0, 1}};
        struct err err = {0};

        ok(sand_slot_fill(engine, slot, &granule, 1, &err), &err);
    }
    for (int i = 0; i < 20; i++) {
        step(engine, 240, (uint64_t)1 << slot);
        status = status_of(engine, slot);
        if (status.asleep == status.granules)
            return;
    }
    fail_msg("%u of %u granules sleep after %g s", status.asleep, status.granules, status.time_s);
}

static void idle_ground_changes_no_bit_until_something_falls(void **state)
{
    uint64_t before, after;

    NEEDS_GL(state);
    settle(gl, 0);
    before = hash_of(gl, 0);
    step(gl, long_form(9601, 481), 1); /* 10 s, in make test half a second */
    after = hash_of(gl, 0);
    assert_true(before == after);
    assert_true(status_of(gl, 0).kinetic_energy_j == 0);
    add_cube(gl, 0, 1, 1, 1.9f);
    sand_body_velocity(gl, 0, 0, (const float[3]){0, 0, -1}, (const float[3]){0, 0, 0});
    step(gl, 360, 1);
    assert_true(hash_of(gl, 0) != before);
    assert_true(status_of(gl, 0).asleep < 40);
    /* body and ground come to rest; taken away, it leaves sleepers whose forces do not balance */
    for (int i = 0; i < 60 && status_of(gl, 0).asleep < 40; i++)
        step(gl, 120, 1);
    step(gl, long_form(960, 240), 1);
    before = hash_of(gl, 0);
    step(gl, 241, 1);
    assert_true(hash_of(gl, 0) == before);
    assert_int_equal(status_of(gl, 0).asleep, 40);
    sand_body_remove(gl, 0, 0);
    step(gl, 3, 1);
    assert_true(status_of(gl, 0).asleep < 40);
    for (int i = 0; i < 40 && status_of(gl, 0).asleep < 40; i++)
        step(gl, 120, 1);
    assert_int_equal(status_of(gl, 0).asleep, 40);
    assert_int_equal(status_of(gl, 0).bodies, 0);
}

/* ---- depth ----------------------------------------------------------------------------------- */

static float bed_height(const float *heights, float size_m, float x, float y)
{
    const float d = size_m / (BED - 1);
    const float fx = fminf(fmaxf(x / d, 0), BED - 1), fy = fminf(fmaxf(y / d, 0), BED - 1);
    const int c = fx < BED - 2 ? (int)fx : BED - 2, r = fy < BED - 2 ? (int)fy : BED - 2;
    const float *south = heights + r * BED + c, *north = south + BED;
    const float s = fx - (float)c, t = fy - (float)r;
    const float low = south[0] + s * (south[1] - south[0]);
    const float high = north[0] + s * (north[1] - north[0]);

    return low + t * (high - low);
}

/* v turned by q, as the solver does it. */
static void turned(const float q[4], const float v[3], float out[3])
{
    const float t[3] = {(q[1] * v[2] - q[2] * v[1]) * 2, (q[2] * v[0] - q[0] * v[2]) * 2,
                        (q[0] * v[1] - q[1] * v[0]) * 2};
    const float u[3] = {q[1] * t[2] - q[2] * t[1], q[2] * t[0] - q[0] * t[2],
                        q[0] * t[1] - q[1] * t[0]};

    for (int i = 0; i < 3; i++)
        out[i] = v[i] + t[i] * q[3] + u[i];
}

/* The highest cap or bed above a point: every sphere is asked. */
static float gathered(const struct granule *granules, uint32_t count,
                      const struct granular_params *params, float bed, float x, float y)
{
    const float r = params->radius_m, s = (float)(r / sqrt(2));
    float top = bed;

    for (uint32_t g = 0; g < count; g++) {
        for (int j = 0; j < GRANULE_SPHERES; j++) {
            const float corner[3] = {GRANULE_CORNER[j][0] * s, GRANULE_CORNER[j][1] * s,
                                     GRANULE_CORNER[j][2] * s};
            float arm[3];

            turned(granules[g].q, corner, arm);
            const float dx = x - (granules[g].x[0] + arm[0]);
            const float dy = y - (granules[g].x[1] + arm[1]);
            const float rest = r * r - dx * dx - dy * dy;

            if (rest >= 0)
                top = fmaxf(top, granules[g].x[2] + arm[2] + sqrtf(rest));
        }
    }
    return top;
}

enum { TEXELS_X = 23, TEXELS_Y = 17, OVER = 3 };

static void depth_is_a_gather_bit_for_bit(void **state)
{
    const struct granular_params params = medium();
    const struct sand_depth depth = {.x0 = -0.1f,
                                     .y0 = 0.05f,
                                     .dx = 0.14f,
                                     .dy = 0.19f,
                                     .cols = TEXELS_X,
                                     .rows = TEXELS_Y,
                                     .oversample = OVER};
    static struct granule granules[1024];
    static float heights[TEXELS_X * TEXELS_Y], of_c[TEXELS_X * TEXELS_Y];
    float bed[BED * BED];
    struct err err = {0};

    NEEDS_GL(state);
    begin(gl, 1, 3, 0.2f);
    fill(gl, 1, 11, 60);
    add_cube(gl, 1, 2, 2, 2); /* bodies are left out */
    step(gl, 50, 2);
    for (int i = 0; i < BED * BED; i++)
        bed[i] = 0.2f * sinf((float)(i % BED)) * cosf((float)(i / BED));
    ok(sand_depth_request(gl, 1, &depth, &err), &err);
    for (int i = 0; !sand_depth_poll(gl, 1, heights); i++) {
        assert_true(i < 20000);
        pause_ms(1);
    }
    assert_false(sand_depth_poll(gl, 1, heights));
    uint32_t count = sand_granules_read(gl, 1, granules);

    for (int texel = 0; texel < TEXELS_X * TEXELS_Y; texel++) {
        const float step_x = depth.dx / OVER, step_y = depth.dy / OVER;
        const float first_x = depth.x0 - 0.5f * depth.dx + 0.5f * step_x;
        const float first_y = depth.y0 - 0.5f * depth.dy + 0.5f * step_y;
        float sum = 0;

        for (int j = 0; j < OVER; j++) {
            for (int i = 0; i < OVER; i++) {
                float x = first_x + (float)(texel % TEXELS_X * OVER + i) * step_x;
                float y = first_y + (float)(texel / TEXELS_X * OVER + j) * step_y;

                sum += gathered(granules, count, &params, bed_height(bed, 3, x, y), x, y);
            }
        }
        sum /= OVER * OVER;
        /* a GPU's square root need not be exact in its last bit */
        if (context_info(context)->software ? memcmp(&sum, &heights[texel], sizeof(sum)) != 0
                                            : !(fabsf(sum - heights[texel]) < 2e-6f))
            fail_msg("texel %d: %.9g, gathered %.9g", texel, heights[texel], sum);
    }
    /* and the C engine sees the same granules alike */
    begin(c_engine, 0, 3, 0.2f);
    ok(sand_slot_fill(c_engine, 0, granules, count, &err), &err);
    ok(sand_depth_request(c_engine, 0, &depth, &err), &err);
    assert_true(sand_depth_poll(c_engine, 0, of_c));
    if (context_info(context)->software)
        assert_memory_equal(of_c, heights, sizeof(heights));
}

static void spheres_are_those_of_the_c_engine(void **state)
{
    static float spheres[2][4 * 1024 + 512][4];
    uint32_t count[2];

    NEEDS_GL(state);
    for (int k = 0; k < 2; k++) {
        struct sand_engine *engine = k ? c_engine : gl;
        int tries = 0;

        begin(engine, 0, 3, 0);
        fill(engine, 0, 2, 50);
        for (int body = 0; body < 3; body++)
            add_cube(engine, 0, 0.9f + 0.6f * (float)body, 1, 2.5f);
        sand_body_remove(engine, 0, 1);
        sand_spheres_request(engine, 0);
        while (!sand_spheres_poll(engine, 0, spheres[k], &count[k])) {
            assert_true(tries++ < 20000);
            pause_ms(1);
        }
    }
    assert_int_equal(count[0], 4 * 50 + 2 * CUBE * CUBE * CUBE);
    assert_int_equal(count[0], count[1]);
    for (uint32_t i = 0; i < count[0]; i++) {
        assert_true(spheres[0][i][3] == spheres[1][i][3]);
        for (int a = 0; a < 3; a++)
            assert_true(fabsf(spheres[0][i][a] - spheres[1][i][a]) < 1e-5f);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The queries of a device's own clock, which a software renderer answers, too. */
static void a_device_measures_each_pass(void **state)
{
    const struct sand_depth depth = {
        .x0 = 0, .y0 = 0, .dx = 0.1f, .dy = 0.1f, .cols = 30, .rows = 30, .oversample = OVER};
    static float heights[30 * 30];
    struct sand_status status;
    struct err err = {0};

    NEEDS_GL(state);
    gl_engine_of(gl)->software = false;
    begin(gl, 0, 3, 0);
    fill(gl, 0, 2, 50);
    for (int k = 0; k < 3; k++) { /* the second asks the clock of the first */
        step(gl, 4, 1);
        ok(sand_depth_request(gl, 0, &depth, &err), &err);
        for (int i = 0; !sand_depth_poll(gl, 0, heights); i++) {
            assert_true(i < 600000);
            pause_ms(1);
        }
        status = status_of(gl, 0);
    }
    for (int pass = 0; pass < SAND_PASS_COUNT; pass++)
        if (!(status.pass_ms[pass] >= 0 && status.pass_ms[pass] < 600000))
            fail_msg("pass %d took %g ms", pass, status.pass_ms[pass]);
    assert_true(status.phase_ms[SAND_PHASE_FORCE] > 0);
    assert_true(status.phase_ms[SAND_PHASE_DEPTH] > 0 &&
                status.phase_ms[SAND_PHASE_DEPTH] < 600000);
    assert_int_equal(context_errors(context), 0);
}

static void the_latest_answer_wins(void **state)
{
    struct sand_status status;
    uint64_t steps = 0;
    int answers = 0;

    NEEDS_GL(state);
    begin(gl, 0, 3, 0);
    fill(gl, 0, 2, 50);
    assert_false(sand_status_poll(gl, 0, &status));
    for (int i = 0; i < 12; i++) {
        step(gl, 1, 1);
        sand_status_request(gl, 0);
    }
    for (int i = 0; i < 20000 && steps < 12; i++) {
        if (sand_status_poll(gl, 0, &status)) {
            assert_true(status.steps > steps);
            steps = status.steps;
            answers++;
        } else {
            pause_ms(1);
        }
    }
    assert_int_equal(steps, 12);
    assert_in_range(answers, 1, ANSWERS_MAX);
    assert_false(sand_status_poll(gl, 0, &status));
    assert_true(status.phase_ms[SAND_PHASE_FORCE] > 0);
    assert_true(status.phase_ms[SAND_PHASE_GRID] > 0);
    assert_true(status.phase_ms[SAND_PHASE_INTEGRATE] > 0);
    for (int pass = 0; pass < SAND_PASS_MOVE_BODIES; pass++) /* there is no body */
        assert_true(status.pass_ms[pass] > 0);
}

/* Drivers before OpenGL 4.4 map an answer when it has come. */
static void answers_are_the_same_without_buffers_that_stay_mapped(void **state)
{
    const struct sand_depth depth = {
        .x0 = 0.1f, .y0 = 0.1f, .dx = 0.1f, .dy = 0.1f, .cols = 20, .rows = 20, .oversample = 1};
    static float heights[2][20 * 20], spheres[2][4 * 1024 + 512][4];
    struct sand_status status[2];
    struct err err = {0};
    uint32_t count[2];

    NEEDS_GL(state);
    if (!gl_engine_of(gl)->persistent)
        skip();
    for (int k = 0; k < 2; k++) {
        int tries = 0;
        bool has_depth = false, has_spheres = false;

        gl_engine_of(gl)->persistent = k == 0;
        scene(gl, (uint32_t)k, 5);
        step(gl, 32, 1u << k);
        status[k] = status_of(gl, (uint32_t)k);
        ok(sand_depth_request(gl, (uint32_t)k, &depth, &err), &err);
        sand_spheres_request(gl, (uint32_t)k);
        while (!has_depth || !has_spheres) {
            has_depth |= sand_depth_poll(gl, (uint32_t)k, heights[k]);
            has_spheres |= sand_spheres_poll(gl, (uint32_t)k, spheres[k], &count[k]);
            assert_true(tries++ < 20000);
            pause_ms(1);
        }
        assert_true((gl_engine_of(gl)->slot[k].answer[ASK_DEPTH][0].map != NULL) == (k == 0));
    }
    assert_int_equal(status[0].asleep, status[1].asleep);
    assert_true(status[0].kinetic_energy_j == status[1].kinetic_energy_j);
    assert_memory_equal(status[0].pose, status[1].pose, sizeof(status[0].pose));
    assert_memory_equal(heights[0], heights[1], sizeof(heights[0]));
    assert_int_equal(count[0], count[1]);
    assert_memory_equal(spheres[0], spheres[1], count[0] * sizeof(spheres[0][0]));
}

/* ---- bad input and loss ---------------------------------------------------------------------- */

static void a_number_that_is_none_fails_its_slot_alone(void **state)
{
    struct granule bad = {.x = {1, 1, 1}, .q = {0, 0, 0, 1}, .v = {0, 0, NAN}};
    struct err err = {0};
    uint64_t alone;

    NEEDS_GL(state);
    scene(gl, 0, 3);
    step(gl, 64, 1);
    alone = hash_of(gl, 0);
    sand_slot_end(gl, 0);
    scene(gl, 0, 3);
    scene(gl, 1, 4);
    ok(sand_slot_fill(gl, 1, &bad, 1, &err), &err);
    step(gl, 64, 3);
    assert_true(status_of(gl, 1).failed);
    assert_false(status_of(gl, 0).failed);
    assert_true(hash_of(gl, 0) == alone);
    /* the slot can be used again */
    sand_slot_end(gl, 1);
    scene(gl, 1, 3);
    step(gl, 64, 2);
    assert_false(status_of(gl, 1).failed);
    assert_true(hash_of(gl, 1) == alone);
}

static void what_does_not_fit_is_refused(void **state)
{
    const struct granular_params params = medium();
    struct sand_engine_config config = config_of(&params);
    struct granule granule = {.q = {0, 0, 0, 1}};
    struct granule *many = calloc(1025, sizeof(*many));
    struct sand_depth depth = {.dx = 1, .dy = 1, .cols = 300, .rows = 300, .oversample = 1};
    float heights[4] = {0};
    struct sand_slot_begin wide = {.size_m = {100, 100},
                                   .height_m = 1,
                                   .bed = {.cols = 2, .rows = 2, .dx = 1, .dy = 1},
                                   .heights_m = heights};
    struct err err = {0};

    if (!context)
        free(many);
    NEEDS_GL(state);
    assert_int_equal(sand_slot_begin(gl, 0, &wide, &err), ERR_UNPROCESSABLE);
    begin(gl, 0, 3, 0);
    assert_int_equal(sand_slot_fill(gl, 0, many, 1025, &err), ERR_UNPROCESSABLE);
    assert_true(err.has_limit && err.limit == 1024 && err.got == 1025);
    ok(sand_slot_fill(gl, 0, &granule, 1, &err), &err);
    assert_int_equal(sand_depth_request(gl, 0, &depth, &err), ERR_UNPROCESSABLE);
    free(many);

    config.slots = 0;
    assert_null(gl_engine_create(context, &config, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    config = config_of(&params);
    config.granules_max = 1u << 24;
    assert_null(gl_engine_create(context, &config, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    assert_true(err.has_limit && err.got > err.limit);
    assert_int_equal(context_errors(context), 0);
}

static void a_loss_ends_the_engine_and_a_new_one_goes_on(void **state)
{
    const struct granular_params params = medium();
    struct sand_status status;
    struct err err = {0};
    uint64_t before;

    NEEDS_GL(state);
    struct sand_engine *other = make_gl(&params);

    scene(gl, 0, 3);
    step(gl, 64, 1);
    before = hash_of(gl, 0);
    sand_status_request(gl, 0);
    context_pretend_loss(context);
    assert_int_equal(sand_engine_step(gl, 16, 1, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.msg, "lost"));
    assert_false(sand_status_poll(gl, 0, &status));
    sand_body_velocity(gl, 0, 0, (const float[3]){1, 0, 0}, NULL);
    sand_slot_end(gl, 0);
    assert_null(gl_engine_create(context, &gl->config, &err));
    sand_engine_destroy(gl);
    assert_int_equal(context_rebuild(context, &err), ERR_OK);
    gl = make_gl(&params);
    /* one that was forgotten cannot reach into the new context */
    assert_int_equal(sand_engine_step(other, 16, 1, &err), ERR_INTERNAL);
    sand_engine_destroy(other);
    scene(gl, 0, 3);
    step(gl, 64, 1);
    assert_true(hash_of(gl, 0) == before);
    assert_int_equal(context_errors(context), 0);
    sand_engine_destroy(NULL);
}

/* Pools are made when they are needed and given back: that leaves nothing, and compiles nothing. */
static void a_pool_that_is_given_back_leaves_nothing(void **state)
{
    const struct granular_params params = medium();
    const struct gl_program *program;
    struct sand_engine *other;
    GLuint names[GL_BLOCK_COUNT + 2];

    NEEDS_GL(state);
    other = make_gl(&params);
    program = gl_engine_of(other)->program;
    scene(other, 0, 3);
    step(other, 16, 1);
    status_of(other, 0);
    memcpy(names, gl_engine_of(other)->buffers, sizeof(gl_engine_of(other)->buffers));
    names[GL_BLOCK_COUNT] = gl_engine_of(other)->pool_buffer;
    names[GL_BLOCK_COUNT + 1] = gl_engine_of(other)->slot[0].answer[ASK_STATUS][0].buffer;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(glIsBuffer(names[i]));
    sand_engine_destroy(other);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(glIsBuffer(names[i]));
    sand_engine_destroy(gl); /* the last */
    gl = make_gl(&params);
    assert_ptr_equal(gl_engine_of(gl)->program, program);
    assert_true(glIsProgram(program->name));
    assert_int_equal(context_errors(context), 0);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(granules_fall_as_in_c),
        FACT(each_slot_has_its_material_as_in_c),
        FACT(a_body_falls_as_in_c),
        FACT(a_heavy_body_meets_the_bed_as_in_c),
        FACT(a_large_grid_is_counted_as_in_c),
        FACT(two_runs_are_equal),
        FACT(neighbours_change_no_bit),
        FACT(a_slot_is_as_new_when_it_begins_again),
        FACT(a_pause_changes_nothing),
        FACT(idle_ground_changes_no_bit_until_something_falls),
        FACT(depth_is_a_gather_bit_for_bit),
        FACT(spheres_are_those_of_the_c_engine),
        FACT(a_device_measures_each_pass),
        FACT(the_latest_answer_wins),
        FACT(answers_are_the_same_without_buffers_that_stay_mapped),
        FACT(a_number_that_is_none_fails_its_slot_alone),
        FACT(what_does_not_fit_is_refused),
        FACT(a_pool_that_is_given_back_leaves_nothing),
        FACT(a_loss_ends_the_engine_and_a_new_one_goes_on),
    };
    const char *gpu = getenv("KOTA_TEST_GPU");
    struct err err = {0};
    int failed;

    context_prepare();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    context = context_create(gpu ? gpu : "software", CONTEXT_DEBUG, &err);
    if (!context)
        print_message("# skipped: %s\n", err.msg);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    context_destroy(context);
    return failed;
}
