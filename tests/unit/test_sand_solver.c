/*
 * The C engine: the same bits for any number of threads, all instructions and whoever is beside a
 * patch, lists of pairs beside brute force, sleep, bodies, what it answers, and what it refuses.
 */
#include "sand/engine.h"
#include "sand/material.h"
#include "sand/engine_input.h"
#include "sand/engine_c/solver.h"
#include "sand/engine_c/solver_data.h"
#include "terrain/kernels/simd.h"

#include "support/sand_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "support/near.h"

static struct granule ground[4096];
static struct sand_cube cube;

static struct granular_params sand_medium(void)
{
    struct granular_params params;

    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    return params;
}

/* 150 granules that fall into a heap of three layers, and a cube that falls on them. */
static void fall(struct sand_engine *engine, uint32_t slot, uint64_t seed)
{
    const struct granular_params *params = &engine->config.params;
    struct sand_pose pose = sand_pose(1.5f, 1.5f, 4);
    uint32_t body;
    struct err err;

    sand_flat(engine, slot, 3, 4, sand_earth);
    sand_put(engine, slot, ground, sand_lattice(ground, params, 3, 0, 150, seed));
    sand_cube(params, 0.8f, 2500, &cube);
    pose.w[0] = 1;
    assert_int_equal(sand_body_add(engine, slot, &cube.shape, &pose, &body, &err), ERR_OK);
}

/* Steps until all granules and bodies sleep; fails after 20 s. */
static void rest(struct sand_engine *engine, uint32_t slot)
{
    struct sand_status status;

    for (int i = 0; i < 200; i++) {
        sand_frames(engine, (uint64_t)1 << slot, 6);
        status = sand_status(engine, slot);
        if (status.asleep == status.granules && status.body_speed_max == 0)
            return;
    }
    fail_msg("%u of %u granules sleep after 20 s, bodies at %g m/s", status.asleep, status.granules,
             status.body_speed_max);
}

/* Changes with the solver, and with nothing else: the commit that changes it tells why. */
static const uint64_t golden_hash = 0x7ed8c27d2e6a389b;

static void all_threads_and_instructions_give_the_golden_bits(void **state)
{
    static const uint32_t threads[] = {1, 2, 3, 8};
    const struct granular_params params = sand_medium();
    const enum simd_level before = simd_level();

    (void)state;
    for (int level = 0; level < SIMD_LEVELS && simd_select((enum simd_level)level); level++)
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            struct sand_engine *engine = sand_make(&params, threads[i]);
            uint64_t hash;

            fall(engine, 0, 7);
            sand_frames(engine, 1, 40);
            hash = sand_hash(engine, 0);
            sand_engine_destroy(engine);
            if (hash != golden_hash)
                fail_msg("%s, %u threads: %016llx, not %016llx",
                         simd_level_name((enum simd_level)level), threads[i],
                         (unsigned long long)hash, (unsigned long long)golden_hash);
        }
    assert_true(simd_select(before));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool list_has(const struct solver *solver, const struct slot *slot, uint32_t own,
                     uint32_t partner)
{
    const uint32_t cluster = cluster_of_sphere(solver, own);
    const struct list list = list_of(solver, slot, cluster);
    const uint32_t j = own - sphere_of_cluster(solver, cluster);

    for (uint32_t e = 0; e < slot->listed[cluster]; e++)
        if (list.entry[e] == (j << ENTRY_OWN_SHIFT | partner))
            return true;
    return false;
}

/* Every two spheres that touch are in each other's list; those of hot ones come with the next. */
static uint32_t lists_check(struct sand_engine *engine, uint32_t index)
{
    const struct solver *solver = solver_of(engine);
    const struct slot *slot = &solver->slot[index];
    static uint32_t sphere[8192];
    uint32_t spheres = 0, pairs = 0;

    for (uint32_t i = 0; i < GRANULE_SPHERES * slot->granules; i++)
        sphere[spheres++] = i;
    for (uint32_t p = 0; p < slot->particles_end; p++)
        if (slot->particle_body[p] != GRANULAR_BODY_NONE)
            sphere[spheres++] = particles_first(solver) + p;
    for (uint32_t i = 0; i < spheres; i++) {
        const float *a = slot->position[sphere[i]];
        const uint32_t mover = mover_of_sphere(slot, sphere[i]);

        for (uint32_t j = i + 1; j < spheres; j++) {
            const float *b = slot->position[sphere[j]];
            const uint32_t other = mover_of_sphere(slot, sphere[j]);
            const struct f3 d = f3_sub(f3_of(a), f3_of(b));

            if (mover == other || !(sqrtf(f3_dot(d, d)) < 2 * engine->config.params.radius_m) ||
                mover_hot(solver, &slot->mover[mover]) || mover_hot(solver, &slot->mover[other]))
                continue;
            if (!list_has(solver, slot, sphere[i], sphere[j]) ||
                !list_has(solver, slot, sphere[j], sphere[i]))
                fail_msg("step %llu: spheres %u and %u touch and are not in both lists",
                         (unsigned long long)slot->steps, sphere[i], sphere[j]);
            pairs++;
        }
    }
    return pairs;
}

/* From a fall at 6 m/s to sleep, and when what sleeps is hit again. */
static void lists_have_every_pair_that_touches(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 2);
    uint32_t pairs = 0;

    (void)state;
    fall(engine, 0, 5);
    sand_body_velocity(engine, 0, 0, (const float[3]){0, 0, -6}, NULL);
    for (int i = 0; i < 250; i++) {
        sand_substeps(engine, 1, i < 100 ? 5 : 20);
        pairs = lists_check(engine, 0);
        if (i == 200)
            sand_body_velocity(engine, 0, 0, (const float[3]){2, 0, 3}, NULL);
    }
    assert_true(pairs > 300);
    sand_engine_destroy(engine);
}

static void chunks_of_any_size_give_the_same_bits(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *frames = sand_make(&params, 1), *chunks = sand_make(&params, 1);
    const uint32_t total = 30 * params.substeps;
    struct err err;

    (void)state;
    fall(frames, 0, 7);
    sand_frames(frames, 1, 30);
    fall(chunks, 0, 7);
    for (uint32_t done = 0, chunk = 1; done < total; done += chunk, chunk = chunk * 3 % 23 + 1) {
        chunk = chunk < total - done ? chunk : total - done;
        assert_int_equal(sand_engine_step(chunks, chunk, 1, &err), ERR_OK);
    }
    assert_true(sand_hash(frames, 0) == sand_hash(chunks, 0));
    sand_engine_destroy(chunks);
    sand_engine_destroy(frames);
}

static void neighbours_change_nothing(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *alone = sand_make(&params, 1), *together = sand_make(&params, 1);

    (void)state;
    fall(alone, 0, 7);
    sand_frames(alone, 1, 30);
    fall(together, 1, 8);
    sand_frames(together, 1 << 1, 3);
    fall(together, 3, 7);
    sand_frames(together, 1 << 1 | 1 << 3, 10);
    sand_slot_end(together, 1);
    fall(together, 0, 9);
    sand_frames(together, 1 << 0 | 1 << 3, 10);
    sand_frames(together, 1 << 0, 5); /* 3 pauses */
    sand_frames(together, 1 << 3, 10);
    assert_true(sand_hash(alone, 0) == sand_hash(together, 3));
    assert_true(sand_hash(alone, 0) != sand_hash(together, 0));
    sand_engine_destroy(alone);
    sand_engine_destroy(together);
}

static void idle_ground_does_not_change_in_a_bit(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 1);
    struct sand_pose pose = sand_pose(1.5f, 1.5f, 60);
    uint64_t before;
    uint32_t body;
    struct err err;

    (void)state;
    fall(engine, 0, 3);
    rest(engine, 0);
    before = sand_hash(engine, 0);
    sand_frames(engine, 1, 600);
    assert_true(sand_hash(engine, 0) == before);
    /* the same when all of them look at their contacts, because something comes and goes */
    for (int i = 0; i < 300; i++) {
        assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
        sand_frames(engine, 1, 1);
        sand_body_remove(engine, 0, body);
    }
    assert_true(sand_hash(engine, 0) == before);
    assert_near(sand_status(engine, 0).kinetic_energy_j, 0, 0);
    sand_engine_destroy(engine);
}

/* Weightless: asleep, and stopped, after the step with which it has been slow for sleep_after_s. */
static void sleep_begins_with_the_step_that_makes_its_time_full(void **state)
{
    struct granular_params params = sand_spheres(1.0f / 1024);
    struct granule granule = sand_granule(1, 1, 1, NULL);
    struct sand_engine *engine;

    (void)state;
    params.sleep_after_s = 8 * params.dt_s;
    granule.v[0] = 0.5f * params.sleep_speed;
    engine = sand_make(&params, 1);
    sand_flat(engine, 0, 2, 3, sand_weightless);
    sand_put(engine, 0, &granule, 1);
    for (int step = 1; step <= 9; step++) {
        sand_substeps(engine, 1, 1);
        sand_granules_read(engine, 0, &granule);
        if (sand_status(engine, 0).asleep != (step >= 8) || (granule.v[0] == 0) != (step >= 8))
            fail_msg("step %d: %u asleep, at %g m/s", step, sand_status(engine, 0).asleep,
                     granule.v[0]);
    }
    sand_engine_destroy(engine);
}

static void sleepers_wake_when_their_support_goes(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 1);
    struct sand_pose pose = sand_pose(1, 1, 0.6f);
    struct granule granule = sand_granule(1, 1, 1.5f, NULL);
    uint32_t body;
    struct err err;

    (void)state;
    sand_flat(engine, 0, 2, 3, sand_earth);
    sand_cube(&params, 1.2f, 2000, &cube);
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
    sand_put(engine, 0, &granule, 1);
    rest(engine, 0);
    sand_granules_read(engine, 0, &granule);
    assert_true(granule.x[2] > 1.2f);
    sand_body_remove(engine, 0, body);
    assert_int_equal(sand_status(engine, 0).bodies, 0);
    rest(engine, 0);
    sand_granules_read(engine, 0, &granule);
    assert_true(granule.x[2] < 0.2f);
    sand_engine_destroy(engine);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void a_body_comes_to_rest_on_another(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 1);
    struct sand_pose low = sand_pose(1.5f, 1.5f, 0.5f), high = sand_pose(1.6f, 1.4f, 2.2f);
    struct sand_status status;
    uint32_t a, b;
    struct err err;

    (void)state;
    sand_flat(engine, 0, 3, 3, sand_earth);
    sand_cube(&params, 1, 1500, &cube);
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &low, &a, &err), ERR_OK);
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &high, &b, &err), ERR_OK);
    assert_int_equal(a, 0);
    assert_int_equal(b, 1);
    rest(engine, 0);
    status = sand_status(engine, 0);
    assert_int_equal(status.bodies, 2);
    assert_true(status.body_alive == 3);
    assert_near(status.pose[a].x[2], 0.5, 0.01);
    assert_near(status.pose[b].x[2], 1.5, 0.02);
    sand_body_impulse(engine, 0, b, (const float[3]){1500, 0, 0}); /* 1 m/s */
    assert_near(sand_status(engine, 0).pose[b].v[0], 1, 1e-6);
    sand_frames(engine, 1, 6);
    assert_true(sand_status(engine, 0).pose[b].x[0] > status.pose[b].x[0] + 0.01f);
    sand_body_velocity(engine, 0, b, NULL, (const float[3]){0, 0, 2});
    assert_near(sand_status(engine, 0).pose[b].w[2], 2, 0);
    sand_engine_destroy(engine);
}

/* What ends as a fountain, a hole to the centre of the earth, or a number that is none. */
static void absurd_bodies_stay_bounded(void **state)
{
    static const struct {
        float mass_kg, velocity[3], spin;
    } cases[] = {{1, {0, 0, -1000}, 0},
                 {1, {700, 0, -700}, 1e6f},
                 {1e7f, {0, 0, -1000}, 0},
                 {0.01f, {0, 0, 0}, 0},
                 {1e-6f, {3e38f, 3e38f, -3e38f}, 3e38f}};
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 2);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sand_pose pose = sand_pose(1.5f, 1.5f, 4);
        struct sand_status status;
        uint32_t body;
        struct err err;
        float scale;

        sand_flat(engine, 0, 3, 4, sand_earth);
        sand_put(engine, 0, ground, sand_lattice(ground, &params, 3, 0, 100, i));
        sand_frames(engine, 1, 60);
        sand_cube(&params, 0.8f, 2000, &cube);
        scale = cases[i].mass_kg / cube.shape.mass_kg;
        cube.shape.mass_kg = cases[i].mass_kg;
        for (int a = 0; a < 3; a++)
            cube.shape.inertia[a][a] *= scale;
        memcpy(pose.v, cases[i].velocity, sizeof(pose.v));
        pose.w[1] = cases[i].spin;
        assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
        for (int k = 0; k < 60; k++) {
            sand_frames(engine, 1, 1);
            status = sand_status(engine, 0);
            if (status.failed || status.body_speed_max > 2 * params.speed_max)
                fail_msg("case %zu, frame %d: failed %d, body at %g m/s", i, k, status.failed,
                         status.body_speed_max);
        }
        for (int a = 0; a < 2; a++)
            if (!(status.pose[body].x[a] > -1 && status.pose[body].x[a] < 4))
                fail_msg("case %zu: the body is at %g", i, status.pose[body].x[a]);
        if (!(status.pose[body].x[2] > -0.5f && status.pose[body].x[2] < 20))
            fail_msg("case %zu: the body is at a height of %g", i, status.pose[body].x[2]);
        sand_slot_end(engine, 0);
    }
    sand_engine_destroy(engine);
}

static void a_number_that_is_none_ends_the_patch(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 1);
    uint64_t steps;

    (void)state;
    fall(engine, 0, 1);
    fall(engine, 1, 1);
    ground[0] = sand_granule(0.5f, 0.5f, 3.5f, NULL);
    ground[0].v[1] = NAN;
    sand_put(engine, 0, ground, 1);
    sand_frames(engine, 3, 1);
    assert_true(sand_status(engine, 0).failed);
    assert_false(sand_status(engine, 1).failed);
    steps = sand_status(engine, 0).steps;
    sand_frames(engine, 3, 1);
    assert_true(sand_status(engine, 0).steps == steps);
    sand_slot_end(engine, 0);
    fall(engine, 0, 1);
    sand_frames(engine, 1, 1);
    assert_false(sand_status(engine, 0).failed);
    sand_engine_destroy(engine);
}

/* ---- what it answers ------------------------------------------------------------------------ */

static void depth_is_the_top_of_granules(void **state)
{
    const struct granular_params params = sand_spheres(1.0f / 960);
    struct sand_engine *engine = sand_make(&params, 1);
    const struct sand_depth points = {
        .x0 = 1, .y0 = 2, .dx = 0.05f, .dy = 0.15f, .cols = 3, .rows = 2, .oversample = 1};
    struct sand_depth wide = {
        .x0 = 1, .y0 = 2, .dx = 0.4f, .dy = 0.4f, .cols = 1, .rows = 1, .oversample = 64};
    struct granule balls[2] = {sand_granule(1, 2, 0.5f, NULL), sand_granule(1, 2, 0.3f, NULL)};
    struct sand_pose pose = sand_pose(1, 2, 3);
    float heights_m[6];
    uint32_t body;
    struct err err;

    (void)state;
    sand_flat(engine, 0, 4, 4, sand_weightless);
    sand_put(engine, 0, balls, 2);
    sand_cube(&params, 0.6f, 2000, &cube); /* is not seen */
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
    assert_false(sand_depth_poll(engine, 0, heights_m));
    assert_int_equal(sand_depth_request(engine, 0, &points, &err), ERR_OK);
    while (!sand_depth_poll(engine, 0, heights_m))
        ;
    assert_near(heights_m[0], 0.6, 1e-6);
    assert_near(heights_m[1], 0.5 + sqrt(0.01 - 0.0025), 1e-6);
    assert_near(heights_m[5], 0, 0);
    /* a texel around the ball: half a ball and a cylinder below it */
    assert_int_equal(sand_depth_request(engine, 0, &wide, &err), ERR_OK);
    while (!sand_depth_poll(engine, 0, heights_m))
        ;
    assert_near(heights_m[0], (M_PI * 0.01 * 0.5 + 2.0 / 3 * M_PI * 0.001) / 0.16, 0.002);
    wide.oversample = 4096;
    assert_int_equal(sand_depth_request(engine, 0, &wide, &err), ERR_UNPROCESSABLE);
    assert_true(err.has_limit);
    sand_engine_destroy(engine);
}

static void spheres_are_those_of_granules_then_of_bodies(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 1);
    static float spheres[4 * 4096 + 4096][4];
    struct granule granule = sand_granule(1, 1, 1, NULL);
    struct sand_pose pose = sand_pose(2, 2, 2);
    uint32_t body, count;
    struct err err;

    (void)state;
    sand_flat(engine, 0, 4, 4, sand_earth);
    sand_put(engine, 0, &granule, 1);
    sand_cube(&params, 0.5f, 2000, &cube);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
    sand_body_remove(engine, 0, 1);
    sand_spheres_request(engine, 0);
    while (!sand_spheres_poll(engine, 0, spheres, &count))
        ;
    assert_int_equal(count, 4 + 2 * cube.shape.particles);
    for (int j = 0; j < 4; j++)
        for (int k = 0; k < j; k++)
            assert_near(hypot(hypot(spheres[j][0] - spheres[k][0], spheres[j][1] - spheres[k][1]),
                              spheres[j][2] - spheres[k][2]),
                        0.2, 1e-6);
    assert_near(spheres[3][3], -1, 0);
    assert_near(spheres[4][3], 0, 0);
    assert_near(spheres[4][0], 2 + cube.offset_m[0][0], 1e-6);
    assert_near(spheres[count - 1][3], 2, 0);
    /* its particles and its index are used again */
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
    assert_int_equal(body, 1);
    sand_engine_destroy(engine);
}

/* ---- what it refuses ------------------------------------------------------------------------ */

static void what_does_not_fit_is_refused(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine_config config = sand_config(&params);
    struct sand_engine *engine = sand_make(&params, 1);
    static float heights_m[4097 * 2];
    struct sand_slot_begin begin = {
        .size_m = {100, 100}, .height_m = 2, .bed = {2, 2, 0, 0, 1, 1}, .heights_m = heights_m};
    struct sand_pose pose = sand_pose(1, 1, 1);
    uint32_t body;
    struct err err = {.msg = ""};

    (void)state;
    assert_int_equal(sand_slot_begin(engine, 0, &begin, &err), ERR_UNPROCESSABLE);
    assert_near(err.limit, config.cells_max, 0);
    begin.size_m[0] = begin.size_m[1] = 4;
    begin.bed.cols = 4097;
    assert_int_equal(sand_slot_begin(engine, 0, &begin, &err), ERR_UNPROCESSABLE);
    assert_near(err.limit, config.bed_max, 0);
    sand_flat(engine, 0, 4, 1e6f, sand_earth); /* the grid ends below that */
    assert_int_equal(sand_slot_fill(engine, 0, ground, config.granules_max, &err), ERR_OK);
    assert_int_equal(sand_slot_fill(engine, 0, ground, 1, &err), ERR_UNPROCESSABLE);
    assert_near(err.got, config.granules_max + 1, 0);
    sand_cube(&params, 1.5f, 2000, &cube);
    for (uint32_t n = 1; n * cube.shape.particles <= config.particles_max; n++)
        assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_UNPROCESSABLE);
    assert_near(err.limit, config.particles_max, 0);
    sand_cube(&params, 0.25f, 2000, &cube);
    while (sand_status(engine, 0).bodies < config.bodies_max)
        assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_UNPROCESSABLE);
    assert_near(err.limit, config.bodies_max, 0);
    sand_engine_destroy(engine);
}

static void bodies_that_are_none_are_refused(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine *engine = sand_make(&params, 1);
    struct sand_pose pose = sand_pose(1, 1, 1), bad;
    struct sand_shape shape;
    uint32_t body;
    struct err err = {.msg = ""};

    (void)state;
    sand_flat(engine, 0, 4, 4, sand_earth);
    sand_cube(&params, 0.5f, 2000, &cube);
    bad = pose, bad.v[2] = NAN;
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &bad, &body, &err), ERR_BAD_INPUT);
    bad = pose, bad.x[0] = INFINITY;
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &bad, &body, &err), ERR_BAD_INPUT);
    bad = pose, bad.q[3] = 0;
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &bad, &body, &err), ERR_BAD_INPUT);
    shape = cube.shape, shape.mass_kg = -1;
    assert_int_equal(sand_body_add(engine, 0, &shape, &pose, &body, &err), ERR_BAD_INPUT);
    shape = cube.shape, shape.inertia[2][2] = 0;
    assert_int_equal(sand_body_add(engine, 0, &shape, &pose, &body, &err), ERR_BAD_INPUT);
    assert_int_equal(sand_status(engine, 0).bodies, 0);
    sand_engine_destroy(engine);
}

static void a_pool_of_nothing_is_refused(void **state)
{
    const struct granular_params params = sand_medium();
    struct sand_engine_config config = sand_config(&params);
    struct err err = {.msg = ""};

    (void)state;
    config.slots = 0;
    assert_null(solver_create(&config, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    config.slots = SAND_SLOTS_MAX + 1;
    assert_null(solver_create(&config, &err));
    assert_non_null(strstr(err.msg, "slots"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_threads_and_instructions_give_the_golden_bits),
        cmocka_unit_test(lists_have_every_pair_that_touches),
        cmocka_unit_test(chunks_of_any_size_give_the_same_bits),
        cmocka_unit_test(neighbours_change_nothing),
        cmocka_unit_test(idle_ground_does_not_change_in_a_bit),
        cmocka_unit_test(sleep_begins_with_the_step_that_makes_its_time_full),
        cmocka_unit_test(sleepers_wake_when_their_support_goes),
        cmocka_unit_test(a_body_comes_to_rest_on_another),
        cmocka_unit_test(absurd_bodies_stay_bounded),
        cmocka_unit_test(a_number_that_is_none_ends_the_patch),
        cmocka_unit_test(depth_is_the_top_of_granules),
        cmocka_unit_test(spheres_are_those_of_granules_then_of_bodies),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(bodies_that_are_none_are_refused),
        cmocka_unit_test(a_pool_of_nothing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
