/*
 * The manager with a clock of its own and an engine that only pretends: states, rest, pause,
 * waking, pool, cap, write-back and its failures.
 */
#include "sand/patch/manager.h"

#include "tests/support/fake_engine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SLOTS = FAKE_SLOTS, SIDE = 40 };

/* ---- a manager in its world ------------------------------------------------------------------ */

struct rig {
    struct fake fake;
    struct manager *manager;
    struct heightfield *field;
    double now_s;
    struct patch_report *last[32]; /* by number */
    uint32_t reports, forgotten, lost, writes;
    uint64_t write_number, write_revision;
    float *heights_m; /* of the last write */
    struct sample_rect rect;
};

static void on_report(void *context, struct patch_report *report, bool is_state)
{
    struct rig *rig = context;

    (void)is_state;
    rig->reports++;
    assert_true(report->number < 32);
    patch_report_unref(rig->last[report->number]);
    rig->last[report->number] = report;
}

static void on_forget(void *context, uint64_t number)
{
    (void)number;
    ((struct rig *)context)->forgotten++;
}

static void on_write(void *context, uint64_t number, const struct patch_start *start,
                     uint64_t revision, const struct sample_rect *rect, float *heights_m)
{
    struct rig *rig = context;

    (void)start;
    rig->writes++;
    rig->write_number = number;
    rig->write_revision = revision;
    rig->rect = *rect;
    free(rig->heights_m);
    rig->heights_m = heights_m;
}

static void on_lost(void *context, enum granular_scale scale)
{
    assert_int_equal(scale, SCALE_MEDIUM);
    ((struct rig *)context)->lost++;
}

static const struct manager_limits limits = {
    .active_max = 2,
    .kept_max = 4,
    .keep_s = 100,
    .pause_after_s = 2,
    .linger_s = 30,
    .settle_still_s = 0.5,
    .settle_max_s = 10,
    .active_max_s = 20,
    .speed = 1,
    .report_s = 0.05,
    .fill_granules = 100,
};

static struct rig *rig_create(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    const struct manager_calls calls = {rig, on_report, on_forget, on_write, on_lost};
    const struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, 0, 0};
    float *samples = calloc(SIDE * SIDE, sizeof *samples);
    struct err err = {.code = ERR_OK};

    rig->field = heightfield_create(&spec, samples, &err);
    free(samples);
    rig->fake.engine.calls = &fake_calls;
    rig->fake.engine.config = (struct sand_engine_config){.slots = SLOTS,
                                                          .granules_max = 1000,
                                                          .bodies_max = 4,
                                                          .particles_max = 64,
                                                          .cells_max = 100000,
                                                          .bed_max = 1000,
                                                          .depth_max = 100000};
    granular_params_make(MATERIAL_SAND, 0.1f, &rig->fake.engine.config.params);
    rig->manager = manager_create(&limits, &calls, &err);
    assert_non_null(rig->manager);
    manager_set_engine(rig->manager, SCALE_MEDIUM, &rig->fake.engine, 0);
    return rig;
}

static void rig_destroy(struct rig *rig)
{
    struct err err = {.code = ERR_OK};

    if (!manager_validate(rig->manager, &err))
        fail_msg("%s", err.msg);
    manager_destroy(rig->manager);
    for (int i = 0; i < 32; i++)
        patch_report_unref(rig->last[i]);
    for (int i = 0; i < SLOTS; i++)
        assert_false(rig->fake.slots[i].is_begun);
    heightfield_unref(rig->field);
    free(rig->heights_m);
    free(rig);
}

/* A start over cells x .. x + 5, y .. y + 5, of 250 granules. */
static struct patch_start start_at(const struct rig *rig, double x, double y)
{
    const struct granular_params *params = &rig->fake.engine.config.params;
    struct patch_start start = {.locale = "a",
                                .layer = "ground",
                                .revision = 7,
                                .field = heightfield_ref(rig->field),
                                .scale = SCALE_MEDIUM};
    struct err err = {.code = ERR_OK};

    if (convert_place_find(rig->field, (struct vec2){x + 2.5, y + 2.5}, (const double[2]){5, 5}, 2,
                           params->diameter_m, 10000, &start.place, &err) ||
        convert_grid_make(&start.place, params->diameter_m, 100000, &start.grid, &err))
        fail_msg("%s", err.msg);
    start.ground.count = 250;
    start.ground.granules = calloc(250, sizeof *start.ground.granules);
    start.ground.begin = (struct sand_slot_begin){.size_m = {5, 5}, .height_m = 3};
    return start;
}

static const float shell_m[2][3] = {{-0.1f, 0, 0}, {0.1f, 0, 0}};

static struct patch_body body_at(double x, double y, double z)
{
    struct patch_body body = {.model = "rod", .position = {x, y, z}, .orientation = {0, 0, 0, 1}};

    body.shape.shape = (struct sand_shape){.offsets_m = shell_m, .particles = 2, .mass_kg = 10};
    for (int i = 0; i < 3; i++)
        body.shape.shape.inertia[i][i] = 1;
    return body;
}

static uint64_t add(struct rig *rig, double x, double y, bool with_body)
{
    struct patch_start start = start_at(rig, x, y);
    struct patch_report *report;
    struct err err = {.code = ERR_OK};
    uint64_t number;

    if (with_body) {
        start.bodies = malloc(sizeof *start.bodies);
        start.bodies[0] = body_at(x + 2.5, y + 2.5, 3);
        start.body_count = 1;
    }
    if (manager_add(rig->manager, &start, rig->now_s, &report, &err))
        fail_msg("%s", err.msg);
    number = report->number;
    patch_report_unref(report);
    return number;
}

static enum err_code add_code(struct rig *rig, double x, double y)
{
    struct patch_start start = start_at(rig, x, y);
    struct patch_report *report = NULL;
    struct err err = {.code = ERR_OK};
    const enum err_code code = manager_add(rig->manager, &start, rig->now_s, &report, &err);

    patch_report_unref(report);
    return code;
}

/* Lets time pass in ticks of 10 ms. */
static void pass(struct rig *rig, double seconds)
{
    const double until = rig->now_s + seconds;
    struct err err = {.code = ERR_OK};

    while (rig->now_s < until - 1e-9) {
        rig->now_s += 0.01;
        manager_tick(rig->manager, rig->now_s);
    }
    if (!manager_validate(rig->manager, &err))
        fail_msg("%s", err.msg);
}

static void is_state(struct rig *rig, uint64_t number, enum patch_state state)
{
    if (rig->last[number]->state != state)
        fail_msg("patch %llu is %s (%s), not %s", (unsigned long long)number,
                 patch_state_name(rig->last[number]->state), rig->last[number]->reason,
                 patch_state_name(state));
}

static void pass_to(struct rig *rig, uint64_t number, enum patch_state state)
{
    for (int i = 0; i < 12000 && rig->last[number]->state != state; i++)
        pass(rig, 0.01);
    is_state(rig, number, state);
}

static void all_asleep(struct fake_slot *slot)
{
    slot->asleep = slot->granules;
}

/* To active, with its granules asleep. */
static void settle(struct rig *rig, uint64_t number, uint32_t slot)
{
    pass_to(rig, number, PATCH_SETTLING);
    all_asleep(&rig->fake.slots[slot]);
    pass_to(rig, number, PATCH_ACTIVE);
}

/* ---- the way of a patch ---------------------------------------------------------------------- */

static void a_patch_goes_its_way(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    struct fake_slot *slot = &rig->fake.slots[0];
    struct manager_stats stats;
    double at;

    (void)state;
    is_state(rig, n, PATCH_FILLING);
    pass(rig, 0.02);
    assert_int_equal(slot->granules, 100); /* in portions */
    pass_to(rig, n, PATCH_SETTLING);
    assert_int_equal(slot->granules, 250);
    pass(rig, 1);
    is_state(rig, n, PATCH_SETTLING); /* awake */
    assert_true(slot->calm > 0);
    assert_int_equal(slot->bodies, 0);
    slot->asleep = 245;
    pass(rig, 1);
    is_state(rig, n, PATCH_SETTLING); /* 5 of 250 are awake, one too many */
    slot->asleep = 246;
    pass_to(rig, n, PATCH_ACTIVE);
    assert_true(slot->calm == 0);
    assert_int_equal(slot->bodies, 1);
    pass(rig, 0.06);
    assert_true(rig->last[n]->bodies[0].is_in);
    pass(rig, 3);
    is_state(rig, n, PATCH_ACTIVE); /* the body falls */
    slot->speed = 0.01f;
    slot->dug_m = 1;
    pass(rig, 1.9);
    is_state(rig, n, PATCH_ACTIVE);
    pass(rig, 0.3);
    is_state(rig, n, PATCH_RESTING);
    at = (double)slot->steps;
    pass(rig, 0.05);
    assert_int_equal(rig->writes, 1); /* at once */
    assert_int_equal(rig->write_revision, 7);
    assert_true(rig->rect.cols == 1 && rig->rect.rows == 1 && rig->heights_m[0] < -0.01f);
    assert_false(rig->last[n]->has_revision);
    manager_written(rig->manager, n, ERR_OK, 9, rig->field, "", rig->now_s);
    is_state(rig, n, PATCH_RESTING);
    assert_int_equal(rig->last[n]->revision, 9);
    assert_true(rig->last[n]->has_ledger && rig->last[n]->ledger.lost_m3 > 0);
    pass(rig, 29);
    is_state(rig, n, PATCH_RESTING);        /* it lingers */
    assert_true((double)slot->steps == at); /* paused */
    pass_to(rig, n, PATCH_WRITTEN);
    assert_int_equal(rig->writes, 1);
    assert_int_equal(rig->last[n]->revision, 9);
    assert_int_equal(rig->last[n]->transition_count, 5);
    assert_false(slot->is_begun);
    manager_stats(rig->manager, &stats);
    assert_true(stats.steps[SCALE_MEDIUM] > 100);
    assert_int_equal(stats.particle_steps[SCALE_MEDIUM],
                     stats.steps[SCALE_MEDIUM] * 250 * rig->fake.engine.config.params.spheres);
    pass(rig, 99);
    assert_int_equal(rig->forgotten, 0);
    pass(rig, 2);
    assert_int_equal(rig->forgotten, 1);
    rig_destroy(rig);
}

static void a_patch_that_nothing_moved_is_written_without_an_edit(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, false);

    (void)state;
    settle(rig, n, 0);
    rig->fake.slots[0].dug_m = 0.2f; /* it trembles, but no body has come */
    pass_to(rig, n, PATCH_WRITTEN);
    assert_int_equal(rig->writes, 0);
    assert_int_equal(rig->last[n]->revision, 7);
    assert_int_equal(rig->last[n]->rect.cols, 0);
    rig_destroy(rig);
}

static void stillness_is_simulated_time_and_rest_is_wall_time(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, false);

    (void)state;
    settle(rig, n, 0);
    rig->fake.is_silent = true; /* a slow device: nothing is simulated any more */
    pass(rig, 60);
    is_state(rig, n, PATCH_ACTIVE);
    rig->fake.is_silent = false;
    pass_to(rig, n, PATCH_RESTING);
    pass(rig, 0.05);
    rig->fake.is_silent = true;
    pass(rig, 30.1);
    is_state(rig, n, PATCH_WRITTEN);
    rig_destroy(rig);
}

static void a_new_body_and_a_push_wake(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    struct fake_slot *slot = &rig->fake.slots[0];
    struct patch_push push = {.has_velocity = true, .velocity = {1, 0, 0}};
    struct patch_body body = body_at(6.5, 6.5, 0.5);
    struct patch_report *report;
    struct err err = {.code = ERR_OK};

    (void)state;
    settle(rig, n, 0);
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    assert_int_equal(manager_body_add(rig->manager, n, &body, rig->now_s, &report, &err), ERR_OK);
    assert_int_equal(report->body_count, 2);
    assert_false(report->bodies[1].is_in);
    patch_report_unref(report);
    pass_to(rig, n, PATCH_ACTIVE);
    pass(rig, 0.1);
    assert_int_equal(slot->bodies, 2);
    /* Half a metre over the ground's z 0, a fake surface of 2 m over z -2: it needed no lift. */
    assert_true(fabs(rig->last[n]->bodies[1].position[2] - 0.5) < 1e-5);
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    assert_int_equal(manager_push(rig->manager, n, 1, &push, rig->now_s, &report, &err), ERR_OK);
    patch_report_unref(report);
    pass_to(rig, n, PATCH_ACTIVE);
    pass(rig, 5);
    is_state(rig, n, PATCH_ACTIVE);
    assert_int_equal(manager_push(rig->manager, n, 5, &push, rig->now_s, &report, &err),
                     ERR_BODY_UNKNOWN);
    push.velocity[0] = 1000;
    assert_int_equal(manager_push(rig->manager, n, 1, &push, rig->now_s, &report, &err),
                     ERR_UNPROCESSABLE);
    push.velocity[0] = NAN;
    assert_int_equal(manager_push(rig->manager, n, 1, &push, rig->now_s, &report, &err),
                     ERR_UNPROCESSABLE);
    rig_destroy(rig);
}

static enum err_code body_remove(struct rig *rig, uint64_t n, uint32_t body)
{
    struct patch_report *report;
    struct err err = {.code = ERR_OK};

    if (manager_body_remove(rig->manager, n, body, rig->now_s, &report, &err))
        return err.code;
    assert_true(report->bodies[body].is_removed && !report->bodies[body].is_in);
    patch_report_unref(report);
    return ERR_OK;
}

static void a_removed_body_keeps_its_number(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    struct fake_slot *slot = &rig->fake.slots[0];
    const struct patch_push push = {.has_velocity = true, .velocity = {1, 0, 0}};
    struct patch_body body = body_at(6.5, 6.5, 0.5);
    struct patch_report *report;
    struct err err = {.code = ERR_OK};

    (void)state;
    settle(rig, n, 0);
    assert_int_equal(manager_body_add(rig->manager, n, &body, rig->now_s, &report, &err), ERR_OK);
    patch_report_unref(report);
    pass(rig, 0.1);
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    assert_int_equal(body_remove(rig, n, 0), ERR_OK);
    assert_true(slot->removed == 1);
    pass_to(rig, n, PATCH_ACTIVE);
    pass(rig, 0.1);
    assert_true(rig->last[n]->bodies[0].is_removed && rig->last[n]->bodies[1].is_in);
    assert_int_equal(body_remove(rig, n, 0), ERR_BODY_UNKNOWN);
    assert_int_equal(body_remove(rig, n, 2), ERR_BODY_UNKNOWN);
    assert_int_equal(manager_push(rig->manager, n, 0, &push, rig->now_s, &report, &err),
                     ERR_BODY_UNKNOWN);
    /* one that is held, and the numbers up to the last */
    for (uint32_t i = 2; i < SAND_BODIES_MAX; i++) {
        body = body_at(6.5, 6.5, 0.5);
        assert_int_equal(manager_body_add(rig->manager, n, &body, rig->now_s, &report, &err),
                         ERR_OK);
        assert_int_equal(report->body_count, i + 1);
        patch_report_unref(report);
        assert_int_equal(body_remove(rig, n, i), ERR_OK);
    }
    assert_true(slot->removed == 1);
    body = body_at(6.5, 6.5, 0.5);
    assert_int_equal(manager_body_add(rig->manager, n, &body, rig->now_s, &report, &err),
                     ERR_UNPROCESSABLE);
    assert_true(err.has_limit && err.limit == 64);
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    assert_int_equal(manager_close(rig->manager, n, true, rig->now_s, &report, &err), ERR_OK);
    patch_report_unref(report);
    assert_int_equal(body_remove(rig, n, 1), ERR_CONFLICT);
    rig_destroy(rig);
}

static void bodies_are_lifted_out_of_granules_and_of_each_other(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, false);
    struct patch_report *report;
    struct err err = {.code = ERR_OK};
    double z[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct patch_body body = body_at(7.5, 7.5, 0);

        assert_int_equal(manager_body_add(rig->manager, n, &body, 0, &report, &err), ERR_OK);
        patch_report_unref(report);
    }
    settle(rig, n, 0);
    pass(rig, 0.1);
    for (int i = 0; i < 3; i++)
        z[i] = rig->last[n]->bodies[i].position[2];
    assert_true(z[0] >= 0.1 - 1e-5 && z[0] < 0.11);
    assert_true(z[1] >= z[0] + 0.2 - 1e-5 && z[1] < z[0] + 0.21);
    assert_true(z[2] >= z[1] + 0.2 - 1e-5 && z[2] < z[1] + 0.21);
    rig_destroy(rig);
}

/* ---- the pool -------------------------------------------------------------------------------- */

static void the_pool_has_an_end_and_ground_one_owner(void **state)
{
    struct rig *rig = rig_create();
    struct manager_stats stats;

    (void)state;
    add(rig, 5, 5, false);
    assert_int_equal(add_code(rig, 9, 9), ERR_CONFLICT);
    assert_int_equal(add_code(rig, 5, 5), ERR_CONFLICT);
    add(rig, 10, 5, false); /* a common edge */
    add(rig, 5, 20, false);
    assert_int_equal(add_code(rig, 25, 25), ERR_BUSY);
    manager_stats(rig->manager, &stats);
    assert_int_equal(stats.used[SCALE_MEDIUM], 3);
    assert_int_equal(stats.slots[SCALE_MEDIUM], 3);
    manager_end(rig->manager, 2, PATCH_DISCARDED, "for the test", rig->now_s);
    assert_int_equal(add_code(rig, 10, 5), ERR_OK);
    rig_destroy(rig);
}

/* What is above the grid is counted to its last layer, so that one layer stays free. */
static void a_grid_is_as_high_as_its_engine_has_cells(void **state)
{
    static const struct {
        double layers, cells_more; /* of the engine: whole layers, and cells besides */
        double height_cells;       /* 0: as was asked */
    } cases[] = {{1000, 0, 0}, {4, 0, 3}, {4, 7, 3}, {2, 0, 1}, {1, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig *rig = rig_create();
        const double cell_m = rig->fake.engine.config.params.cell_m, side = ceil(5 / cell_m);
        double want = cases[i].height_cells * cell_m;

        rig->fake.engine.config.cells_max =
            (uint32_t)(cases[i].layers * side * side + cases[i].cells_more);
        add(rig, 0, 0, false);
        pass(rig, 0.02);
        assert_true(rig->fake.slots[0].is_begun);
        if (fabs((double)rig->fake.slots[0].height_m - (want > 0 ? want : 3)) > 1e-5)
            fail_msg("case %zu: %g m", i, (double)rig->fake.slots[0].height_m);
        rig_destroy(rig);
    }
}

static void no_more_than_the_cap_are_stepped_at_once(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t a = add(rig, 5, 5, true), b = add(rig, 15, 5, true), c = add(rig, 25, 5, true);

    (void)state;
    settle(rig, a, 0);
    settle(rig, b, 1);
    pass(rig, 1);
    is_state(rig, c, PATCH_FILLING);
    assert_int_equal(rig->fake.active_most, 2);
    rig->fake.slots[0].speed = 0;
    pass_to(rig, a, PATCH_RESTING);
    pass_to(rig, c, PATCH_SETTLING); /* a rests, so there is room */
    assert_int_equal(rig->fake.active_most, 2);
    {
        struct patch_push push = {.has_impulse = true, .impulse = {0, 0, 10}};
        struct patch_report *report;
        struct err err = {.code = ERR_OK};

        assert_int_equal(manager_push(rig->manager, a, 0, &push, rig->now_s, &report, &err),
                         ERR_OK);
        patch_report_unref(report);
        pass(rig, 1);
        is_state(rig, a, PATCH_RESTING); /* it waits until there is room */
        all_asleep(&rig->fake.slots[2]);
        rig->fake.slots[1].speed = 0;
        pass_to(rig, b, PATCH_RESTING);
        pass_to(rig, a, PATCH_ACTIVE);
    }
    rig_destroy(rig);
}

static void what_does_not_rest_is_capped(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t a = add(rig, 5, 5, true), b = add(rig, 15, 5, false);

    (void)state;
    settle(rig, a, 0);
    pass(rig, 19);
    is_state(rig, a, PATCH_ACTIVE);
    pass(rig, 2);
    is_state(rig, a, PATCH_RESTING);
    assert_true(rig->last[a]->was_capped);
    pass_to(rig, b, PATCH_FAILED); /* it never settled: nothing to measure against */
    assert_non_null(strstr(rig->last[b]->reason, "did not come to rest"));
    assert_int_equal(rig->writes, 0);
    rig_destroy(rig);
}

/* A handful of granules may rattle in their cages for ever. */
static void rattlers_do_not_keep_a_patch_from_resting(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t a = add(rig, 5, 5, false), b = add(rig, 15, 5, false);

    (void)state;
    pass_to(rig, b, PATCH_SETTLING);
    rig->fake.slots[0].asleep = 240; /* 96 % */
    rig->fake.slots[1].asleep = 230; /* 92 % */
    pass(rig, 5);                    /* settling is simulated as fast as it goes */
    is_state(rig, a, PATCH_SETTLING);
    pass_to(rig, a, PATCH_ACTIVE);
    assert_true(rig->last[a]->was_capped);
    pass_to(rig, b, PATCH_FAILED);
    rig_destroy(rig);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void closing_writes_without_the_time_of_rest(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    const struct patch_push push = {.has_velocity = true, .velocity = {1, 0, 0}};
    struct patch_body body = body_at(6.5, 6.5, 0.5);
    struct patch_report *report;
    struct err err = {.code = ERR_OK};

    (void)state;
    assert_int_equal(manager_close(rig->manager, n, false, 0, &report, &err), ERR_OK);
    patch_report_unref(report);
    settle(rig, n, 0);
    /* Nobody keeps it from its end. */
    assert_int_equal(manager_push(rig->manager, n, 0, &push, rig->now_s, &report, &err),
                     ERR_CONFLICT);
    assert_int_equal(manager_body_add(rig->manager, n, &body, rig->now_s, &report, &err),
                     ERR_CONFLICT);
    rig->fake.slots[0].dug_m = 1;
    rig->fake.slots[0].speed = 0;
    pass(rig, 2.5);
    is_state(rig, n, PATCH_RESTING);
    assert_int_equal(rig->writes, 1);
    manager_written(rig->manager, n, ERR_OK, 8, rig->field, "", rig->now_s);
    pass(rig, 0.05);
    is_state(rig, n, PATCH_WRITTEN);
    assert_int_equal(manager_close(rig->manager, n, true, rig->now_s, &report, &err), ERR_OK);
    assert_int_equal(report->state, PATCH_WRITTEN);
    patch_report_unref(report);
    assert_int_equal(manager_close(rig->manager, 99, true, 0, &report, &err), ERR_PATCH_UNKNOWN);
    rig_destroy(rig);
}

static void a_write_is_tried_again_or_ends_the_patch(void **state)
{
    static const struct {
        enum err_code code;
        enum patch_state state;
    } cases[] = {
        {ERR_PRECONDITION_FAILED, PATCH_RESTING},
        {ERR_BUSY, PATCH_RESTING},
        {ERR_NOT_FOUND, PATCH_DISCARDED},
        {ERR_READ_ONLY, PATCH_FAILED},
        {ERR_DISK_FULL, PATCH_FAILED},
        {ERR_UNPROCESSABLE, PATCH_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig *rig = rig_create();
        const uint64_t n = add(rig, 5, 5, true);

        settle(rig, n, 0);
        rig->fake.slots[0].dug_m = 1;
        rig->fake.slots[0].speed = 0;
        pass_to(rig, n, PATCH_RESTING);
        pass(rig, 0.05);
        manager_written(rig->manager, n, cases[i].code, 0, NULL, "why", rig->now_s);
        is_state(rig, n, cases[i].state);
        if (cases[i].state == PATCH_RESTING) {
            pass(rig, 1.1);
            assert_int_equal(rig->writes, 2);
            manager_written(rig->manager, n, ERR_OK, 12, rig->field, "", rig->now_s);
            pass_to(rig, n, PATCH_WRITTEN);
        } else {
            assert_non_null(strstr(rig->last[n]->reason, "why"));
            assert_false(rig->last[n]->has_revision);
        }
        rig_destroy(rig);
    }
}

/* Each rest is written once, and the next one has only what came after it. */
static void each_rest_is_one_edit(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    const struct patch_push push = {.has_velocity = true, .velocity = {1, 0, 0}};
    struct fake_slot *slot = &rig->fake.slots[0];
    struct patch_report *report;
    struct err err = {.code = ERR_OK};
    float first_m;

    (void)state;
    settle(rig, n, 0);
    slot->dug_m = 1;
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    pass(rig, 0.05);
    assert_int_equal(rig->writes, 1);
    first_m = rig->heights_m[0];
    manager_written(rig->manager, n, ERR_OK, 8, rig->field, "", rig->now_s);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(manager_push(rig->manager, n, 0, &push, rig->now_s, &report, &err),
                         ERR_OK);
        patch_report_unref(report);
        pass_to(rig, n, PATCH_ACTIVE);
        slot->dug_m = again == 0 ? 1 : 1.5f; /* nothing more at first */
        slot->speed = 0;
        pass_to(rig, n, PATCH_RESTING);
        pass(rig, 0.05);
        assert_int_equal(rig->writes, 1 + again);
    }
    assert_int_equal(rig->write_revision, 8);
    assert_float_equal(rig->heights_m[0], first_m / 2, 1e-5);
    manager_written(rig->manager, n, ERR_OK, 9, rig->field, "", rig->now_s);
    assert_true(fabs(rig->last[n]->ledger.lost_m3 + 1.5 * (double)first_m) < 1e-4);
    rig->fake.is_lost = true; /* what is written needs no device */
    manager_set_engine(rig->manager, SCALE_MEDIUM, NULL, rig->now_s);
    is_state(rig, n, PATCH_WRITTEN);
    slot->is_begun = false;
    rig_destroy(rig);
}

static void heights_are(const struct rig *rig, uint64_t n, double z_m)
{
    for (int i = 0; i < 2; i++)
        assert_float_equal(rig->last[n]->bodies[i].position[2], z_m, 1e-5);
}

/* At rest they are reported on the ground that was written, awake where the engine has them. */
static void bodies_rise_again_when_their_patch_wakes(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, false);
    const struct patch_push push = {.has_velocity = true, .velocity = {1, 0, 0}};
    struct fake_slot *slot = &rig->fake.slots[0];
    struct patch_report *report;
    struct err err = {.code = ERR_OK};

    (void)state;
    settle(rig, n, 0);
    for (int i = 0; i < 2; i++) {
        struct patch_body body = body_at(6.5 + 2 * i, 7.5, 1);

        body.shape.skin_m = shell_m;
        body.shape.skin_count = 2;
        assert_int_equal(manager_body_add(rig->manager, n, &body, 0, &report, &err), ERR_OK);
        patch_report_unref(report);
    }
    pass(rig, 0.1);
    heights_are(rig, n, 1);
    for (int i = 0; i < 2; i++)
        slot->pose[i].x[2] -= 0.9f;
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    pass(rig, 0.1);
    heights_are(rig, n, 0);
    assert_int_equal(manager_push(rig->manager, n, 0, &push, rig->now_s, &report, &err), ERR_OK);
    patch_report_unref(report);
    pass_to(rig, n, PATCH_ACTIVE);
    pass(rig, 0.1);
    heights_are(rig, n, 0.1);
    rig_destroy(rig);
}

static void a_discarded_patch_waits_for_its_write(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    struct patch_report *report;
    struct err err = {.code = ERR_OK};

    (void)state;
    settle(rig, n, 0);
    rig->fake.slots[0].dug_m = 1;
    rig->fake.slots[0].speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    pass(rig, 0.05);
    assert_int_equal(manager_close(rig->manager, n, true, rig->now_s, &report, &err), ERR_OK);
    assert_int_equal(report->state, PATCH_RESTING);
    patch_report_unref(report);
    manager_written(rig->manager, n, ERR_OK, 8, rig->field, "", rig->now_s);
    is_state(rig, n, PATCH_DISCARDED);
    assert_int_equal(rig->last[n]->revision, 8);
    rig_destroy(rig);
}

static void a_rest_that_was_not_written_is_part_of_the_next(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    const struct patch_push push = {.has_velocity = true, .velocity = {1, 0, 0}};
    struct fake_slot *slot = &rig->fake.slots[0];
    struct patch_report *report;
    struct err err = {.code = ERR_OK};
    float first_m;

    (void)state;
    settle(rig, n, 0);
    slot->dug_m = 1;
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    pass(rig, 0.05);
    first_m = rig->heights_m[0];
    assert_int_equal(manager_push(rig->manager, n, 0, &push, rig->now_s, &report, &err), ERR_OK);
    patch_report_unref(report);
    pass(rig, 1);
    is_state(rig, n, PATCH_RESTING); /* the writer has not answered */
    manager_written(rig->manager, n, ERR_BUSY, 0, NULL, "why", rig->now_s);
    pass_to(rig, n, PATCH_ACTIVE);
    slot->dug_m = 1.5f;
    slot->speed = 0;
    pass_to(rig, n, PATCH_RESTING);
    pass(rig, 0.05);
    assert_int_equal(rig->writes, 2);
    assert_float_equal(rig->heights_m[0], 1.5f * first_m, 1e-5);
    manager_written(rig->manager, n, ERR_OK, 8, rig->field, "", rig->now_s);
    rig_destroy(rig);
}

static void what_breaks_down_fails_and_writes_nothing(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t a = add(rig, 5, 5, true), b = add(rig, 15, 5, true);

    (void)state;
    settle(rig, a, 0);
    settle(rig, b, 1);
    rig->fake.slots[0].is_failed = true;
    pass_to(rig, a, PATCH_FAILED);
    is_state(rig, b, PATCH_ACTIVE);
    rig->fake.is_lost = true;
    pass_to(rig, b, PATCH_FAILED);
    assert_int_equal(rig->lost, 1);
    assert_int_equal(rig->writes, 0);
    assert_int_equal(add_code(rig, 5, 5), ERR_BUSY); /* no device */
    rig->fake.slots[1].is_begun = false;             /* it went with the device */
    rig->fake.is_lost = false;
    manager_set_engine(rig->manager, SCALE_MEDIUM, &rig->fake.engine, rig->now_s);
    assert_int_equal(add_code(rig, 5, 5), ERR_OK);
    rig_destroy(rig);
}

static void reports_of_poses_keep_their_distance(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    const struct patch_push push = {.has_velocity = true, .velocity = {1, 0, 0}};
    struct patch_report *report;
    struct err err = {.code = ERR_OK};
    uint64_t poses;
    uint32_t before;

    (void)state;
    settle(rig, n, 0);
    pass(rig, 0.1);
    before = rig->reports;
    pass(rig, 2);
    assert_in_range(rig->reports - before, 30, 41);
    /* Orders are told at once, but bring no poses before their time. */
    poses = rig->last[n]->poses;
    for (int i = 0; i < 200; i++) {
        assert_int_equal(manager_push(rig->manager, n, 0, &push, rig->now_s, &report, &err),
                         ERR_OK);
        assert_true(report->serial >= rig->last[n]->serial);
        patch_report_unref(report);
        pass(rig, 0.01);
    }
    assert_in_range(rig->last[n]->poses - poses, 30, 41);
    pass(rig, 0.1);
    /* In real time: two seconds are two seconds. */
    assert_true(fabs(rig->last[n]->time_s - (double)rig->fake.slots[0].steps / 960) < 0.2);
    rig_destroy(rig);
}

/* Whatever it costs, an order waits for one substep at most until that is known. */
static void chunks_begin_with_one_substep_and_grow_by_what_is_measured(void **state)
{
    struct rig *rig = rig_create();
    const uint32_t frame = rig->fake.engine.config.params.substeps;
    uint64_t n;

    (void)state;
    assert_true(frame > 4);
    rig->fake.substep_ms = 100;
    n = add(rig, 5, 5, false);
    pass_to(rig, n, PATCH_SETTLING);
    pass(rig, 1);
    assert_true(rig->fake.slots[0].steps > 10);
    assert_int_equal(rig->fake.chunk_most, 1);
    rig->fake.substep_ms = 10;
    pass(rig, 1);
    assert_int_equal(rig->fake.chunk_most, 3); /* 30 ms */
    rig->fake.substep_ms = 0.01f;
    pass(rig, 0.1);
    assert_int_equal(rig->fake.chunk_most, 8 * frame); /* 1.3 ms; as long as all is settling */
    n = add(rig, 20, 20, false);                       /* its cost was not in what was measured */
    pass_to(rig, n, PATCH_SETTLING);
    pass(rig, 0.1);
    assert_int_equal(rig->fake.slots[1].first_chunk, 1);
    assert_true(rig->fake.slots[1].steps >= 5 * (uint64_t)frame);
    settle(rig, n, 1);
    rig->fake.chunk_most = 0;
    pass(rig, 0.5);
    assert_int_equal(rig->fake.chunk_most, frame); /* it is shown frame by frame */
    rig_destroy(rig);
}

/* Of an engine that answers late: its slot may have held another body then. */
static void an_answer_from_before_a_body_came_in_says_nothing_of_it(void **state)
{
    struct rig *rig = rig_create();
    const uint64_t n = add(rig, 5, 5, true);
    struct fake_slot *slot = &rig->fake.slots[0];
    double x;

    (void)state;
    rig->fake.is_late = true;
    settle(rig, n, 0);
    x = rig->last[n]->bodies[0].position[0];
    pass(rig, 1);
    assert_int_equal(slot->bodies, 1);
    assert_true(rig->last[n]->bodies[0].is_in);
    assert_true(rig->last[n]->bodies[0].position[0] == x);
    slot->stale_steps = 0;
    slot->pose[0].x[0] += 0.5f;
    slot->has_status = true;
    pass(rig, 0.2);
    assert_true(fabs(rig->last[n]->bodies[0].position[0] - x - 0.5) < 1e-5);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_begin_with_one_substep_and_grow_by_what_is_measured),
        cmocka_unit_test(an_answer_from_before_a_body_came_in_says_nothing_of_it),
        cmocka_unit_test(a_patch_goes_its_way),
        cmocka_unit_test(a_patch_that_nothing_moved_is_written_without_an_edit),
        cmocka_unit_test(stillness_is_simulated_time_and_rest_is_wall_time),
        cmocka_unit_test(a_new_body_and_a_push_wake),
        cmocka_unit_test(a_removed_body_keeps_its_number),
        cmocka_unit_test(bodies_are_lifted_out_of_granules_and_of_each_other),
        cmocka_unit_test(the_pool_has_an_end_and_ground_one_owner),
        cmocka_unit_test(a_grid_is_as_high_as_its_engine_has_cells),
        cmocka_unit_test(no_more_than_the_cap_are_stepped_at_once),
        cmocka_unit_test(what_does_not_rest_is_capped),
        cmocka_unit_test(rattlers_do_not_keep_a_patch_from_resting),
        cmocka_unit_test(closing_writes_without_the_time_of_rest),
        cmocka_unit_test(a_write_is_tried_again_or_ends_the_patch),
        cmocka_unit_test(each_rest_is_one_edit),
        cmocka_unit_test(bodies_rise_again_when_their_patch_wakes),
        cmocka_unit_test(a_discarded_patch_waits_for_its_write),
        cmocka_unit_test(a_rest_that_was_not_written_is_part_of_the_next),
        cmocka_unit_test(what_breaks_down_fails_and_writes_nothing),
        cmocka_unit_test(reports_of_poses_keep_their_distance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
