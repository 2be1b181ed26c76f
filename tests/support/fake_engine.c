/*
 * Problem: the life of a patch must be tried at each of its turns, faster than granules fall.
 * Approach: a table of calls over a few numbers; a body is fast until the test says otherwise.
 */
#include "tests/support/fake_engine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct fake *fake_of(struct sand_engine *engine)
{
    return (struct fake *)engine;
}

static enum err_code fake_begin(struct sand_engine *engine, uint32_t slot,
                                const struct sand_slot_begin *begin, struct err *err)
{
    (void)err;
    assert_false(fake_of(engine)->slots[slot].is_begun);
    fake_of(engine)->slots[slot] =
        (struct fake_slot){.is_begun = true, .height_m = begin->height_m};
    return ERR_OK;
}

static enum err_code fake_fill(struct sand_engine *engine, uint32_t slot,
                               const struct granule *granules, uint32_t count, struct err *err)
{
    (void)granules;
    (void)err;
    assert_true(count <= 100); /* limits.fill_granules */
    fake_of(engine)->slots[slot].granules += count;
    return ERR_OK;
}

static void fake_end(struct sand_engine *engine, uint32_t slot)
{
    assert_true(fake_of(engine)->slots[slot].is_begun);
    fake_of(engine)->slots[slot].is_begun = false;
}

static enum err_code fake_body_add(struct sand_engine *engine, uint32_t slot,
                                   const struct sand_shape *shape, const struct sand_pose *pose,
                                   uint32_t *body, struct err *err)
{
    struct fake_slot *s = &fake_of(engine)->slots[slot];

    (void)shape;
    (void)err;
    *body = s->bodies++;
    s->stale_steps = fake_of(engine)->is_late ? s->steps - 1 : 0;
    s->pose[*body] = *pose;
    s->speed = 5;
    return ERR_OK;
}

static void fake_body_remove(struct sand_engine *engine, uint32_t slot, uint32_t body)
{
    fake_of(engine)->slots[slot].removed |= (uint64_t)1 << body;
}

static void fake_calm(struct sand_engine *engine, uint32_t slot, float drag)
{
    fake_of(engine)->slots[slot].calm = drag;
}

static void fake_body_velocity(struct sand_engine *engine, uint32_t slot, uint32_t body,
                               const float v[3], const float w[3])
{
    (void)body;
    (void)v;
    (void)w;
    fake_of(engine)->slots[slot].speed = 2;
}

static void fake_body_impulse(struct sand_engine *engine, uint32_t slot, uint32_t body,
                              const float impulse[3])
{
    (void)body;
    (void)impulse;
    fake_of(engine)->slots[slot].speed = 3;
}

static enum err_code fake_step(struct sand_engine *engine, uint32_t substeps, uint64_t active,
                               struct err *err)
{
    struct fake *fake = fake_of(engine);
    uint32_t count = 0;

    if (fake->is_lost)
        return err_set(err, ERR_INTERNAL, "the device is lost");
    for (uint32_t i = 0; i < FAKE_SLOTS; i++) {
        if (!(active >> i & 1))
            continue;
        assert_true(fake->slots[i].is_begun);
        if (fake->slots[i].steps == 0)
            fake->slots[i].first_chunk = substeps;
        fake->slots[i].steps += substeps;
        count++;
    }
    fake->chunk_most = substeps > fake->chunk_most ? substeps : fake->chunk_most;
    fake->active_most = count > fake->active_most ? count : fake->active_most;
    return ERR_OK;
}

static void fake_status_request(struct sand_engine *engine, uint32_t slot)
{
    fake_of(engine)->slots[slot].has_status = true;
}

static bool fake_status_poll(struct sand_engine *engine, uint32_t slot, struct sand_status *status)
{
    struct fake_slot *s = &fake_of(engine)->slots[slot];

    if (!s->has_status || fake_of(engine)->is_silent)
        return false;
    s->has_status = false;
    *status = (struct sand_status){.steps = s->stale_steps ? s->stale_steps : s->steps,
                                   .phase_ms = {fake_of(engine)->substep_ms},
                                   .time_s = (double)s->steps * engine->config.params.dt_s,
                                   .granules = s->granules,
                                   .asleep = s->asleep,
                                   .bodies = s->bodies,
                                   .body_speed_max = s->speed,
                                   .failed = s->is_failed,
                                   .body_alive = (((uint64_t)1 << s->bodies) - 1) & ~s->removed};
    if (s->stale_steps == 0)
        memcpy(status->pose, s->pose, sizeof status->pose);
    return true;
}

static enum err_code fake_depth_request(struct sand_engine *engine, uint32_t slot,
                                        const struct sand_depth *depth, struct err *err)
{
    (void)err;
    fake_of(engine)->slots[slot].depth = *depth;
    fake_of(engine)->slots[slot].wants_depth = true;
    return ERR_OK;
}

static bool fake_depth_poll(struct sand_engine *engine, uint32_t slot, float *heights_m)
{
    struct fake_slot *s = &fake_of(engine)->slots[slot];

    if (!s->wants_depth || fake_of(engine)->is_silent)
        return false;
    s->wants_depth = false;
    for (uint32_t i = 0; i < s->depth.cols * s->depth.rows; i++)
        heights_m[i] = 2;
    heights_m[s->depth.rows / 2 * s->depth.cols + s->depth.cols / 2] -= s->dug_m;
    return true;
}

const struct sand_engine_calls fake_calls = {
    .name = "fake",
    .begin = fake_begin,
    .fill = fake_fill,
    .end = fake_end,
    .body_add = fake_body_add,
    .body_remove = fake_body_remove,
    .calm = fake_calm,
    .body_velocity = fake_body_velocity,
    .body_impulse = fake_body_impulse,
    .step = fake_step,
    .status_request = fake_status_request,
    .status_poll = fake_status_poll,
    .depth_request = fake_depth_request,
    .depth_poll = fake_depth_poll,
};
