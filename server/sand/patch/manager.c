/*
 * The manager's orders: patches are added, get bodies, are pushed and closed; and their reports.
 *
 * Problem: setting up a simulation takes long and memory is bounded, so nothing may be made when a
 * body already falls. Approach (S, 5.1): all slots exist from the start; a patch takes a free one
 * of its scale or is refused, and gives it back when it ends.
 * Two patches must not own the same cell, or one would overwrite the ground of the other; so an
 * order for shared ground is refused, too. Patches may have a common edge: nothing changes there.
 * Everybody else sees a patch through reports: immutable, counted, a new one for each change. The
 * resources of a patch are released when it ends; its last report stays.
 */
#include "sand/patch/manager.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "sand/patch/manager_data.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct manager_limits manager_limits_default = {
    .active_max = 4,
    .kept_max = 256,
    .keep_s = 600,
    .pause_after_s = 2,
    .linger_s = 30,
    .settle_still_s = 0.25,
    .settle_max_s = 30,
    .active_max_s = 60,
    .speed = 1,
    .report_s = 0.05,
    .fill_granules = 8192,
};

/* ---- made and unmade ------------------------------------------------------------------------- */

struct manager *manager_create(const struct manager_limits *limits,
                               const struct manager_calls *calls, struct err *err)
{
    struct manager *manager = calloc(1, sizeof *manager);

    if (!manager) {
        err_set(err, ERR_NO_MEMORY, "no memory for the patches");
        return NULL;
    }
    manager->limits = *limits;
    manager->calls = *calls;
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        struct granular_params params;

        granular_params_make(MATERIAL_SAND, scale_radius_m((enum granular_scale)scale), &params);
        sand_rate_init(&manager->engines[scale].rate, &params);
    }
    return manager;
}

static void drop(struct patch *patch)
{
    const char *why = patch->reason[0] ? patch->reason : "the patch has ended unwritten";

    patch_dents_end(patch->dents, patch->number, 0, why);
    patch_dents_end(patch->sent_dents, patch->number, 0, why);
    patch->dents = patch->sent_dents = NULL;
    for (uint32_t i = 0; i < patch->member_count; i++) {
        patch_dents_end(patch->members[i].body.dent, patch->number, 0, why);
        patch->members[i].body.dent = NULL;
        patch_body_free(&patch->members[i].body);
    }
    patch->member_count = 0;
    patch_start_free(&patch->start);
    free(patch->before_m);
    free(patch->settled_m);
    free(patch->surface_m);
    convert_change_free(&patch->change);
    patch->before_m = patch->settled_m = patch->surface_m = NULL;
}

static void patch_free(struct patch *patch)
{
    drop(patch);
    patch_report_unref(patch->last);
    free(patch);
}

static void give_slot_back(struct manager *manager, struct patch *patch)
{
    struct manager_engine *engine = &manager->engines[patch->start.scale];

    CHECK(engine->owners[patch->slot] == patch);
    engine->owners[patch->slot] = NULL;
    if (patch->is_begun && engine->engine)
        sand_slot_end(engine->engine, patch->slot);
    patch->is_begun = false;
}

void manager_destroy(struct manager *manager)
{
    if (!manager)
        return;
    for (size_t i = 0; i < manager->count; i++) {
        if (!patch_state_is_end(manager->patches[i]->state))
            give_slot_back(manager, manager->patches[i]);
        patch_free(manager->patches[i]);
    }
    free(manager->patches);
    free(manager);
}

struct patch *manager_find(const struct manager *manager, uint64_t number)
{
    for (size_t i = 0; i < manager->count; i++)
        if (manager->patches[i]->number == number)
            return manager->patches[i];
    return NULL;
}

struct sand_engine *manager_engine_of(const struct manager *manager, const struct patch *patch)
{
    return manager->engines[patch->start.scale].engine;
}

void manager_engine_lost(struct manager *manager, enum granular_scale scale, const char *why,
                         double now_s)
{
    manager->engines[scale].engine = NULL;
    for (size_t i = 0; i < manager->count; i++) {
        struct patch *patch = manager->patches[i];

        if (patch->start.scale != scale)
            continue;
        if (!patch_state_is_end(patch->state) && !patch->is_submitted)
            manager_finish(manager, patch, patch->is_saved ? PATCH_WRITTEN : PATCH_FAILED, now_s,
                           "%s", patch->is_saved ? "" : why);
        patch->is_begun = false;
    }
}

void manager_set_engine(struct manager *manager, enum granular_scale scale,
                        struct sand_engine *engine, double now_s)
{
    if (manager->engines[scale].engine && manager->engines[scale].engine != engine)
        manager_engine_lost(manager, scale, "the device of this scale is no longer there", now_s);
    manager->engines[scale].engine = engine;
    manager->stats.slots[scale] = engine ? engine->config.slots : 0;
}

void manager_set_rate(struct manager *manager, enum granular_scale scale, double sphere_steps_s)
{
    manager->engines[scale].rate.sphere_steps_s = sphere_steps_s;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void report_body(const struct patch *patch, const struct patch_member *member,
                        struct patch_report_body *out)
{
    const struct patch_body *body = &member->body;

    *out = (struct patch_report_body){
        .is_in = member->is_in,
        .is_removed = member->is_removed,
        .ball_m = body->ball_m,
        .mass_kg = body->shape.shape.mass_kg,
        .particles = body->shape.shape.particles,
        .surface = body->shape.surface ? layer_ref(body->shape.surface) : NULL};
    memcpy(out->model, body->model, sizeof out->model);
    memcpy(out->layer, member->layer, sizeof out->layer);
    memcpy(out->center_m, body->shape.center_m, sizeof out->center_m);
    memcpy(out->position, body->position, sizeof out->position);
    memcpy(out->orientation, body->orientation, sizeof out->orientation);
    memcpy(out->velocity, body->velocity, sizeof out->velocity);
    memcpy(out->angular_velocity, body->angular_velocity, sizeof out->angular_velocity);
    if (!member->is_in)
        return;
    patch_pose_out(&body->shape, &patch->start.place, &member->pose, out->position,
                   out->orientation);
    out->position[2] -= member->lowered_m;
    for (int i = 0; i < 3; i++) {
        out->velocity[i] = member->pose.v[i];
        out->angular_velocity[i] = member->pose.w[i];
        out->force_n[i] = member->force_n[i];
        out->torque_nm[i] = member->torque_nm[i];
    }
}

static uint32_t particles_of(const struct manager *manager, const struct patch *patch)
{
    const struct sand_engine *engine = manager_engine_of(manager, patch);
    const uint32_t spheres = engine ? engine->config.params.spheres : GRANULE_SPHERES;
    uint32_t particles = patch->granules * spheres;

    for (uint32_t i = 0; i < patch->member_count; i++)
        particles += patch->members[i].body.shape.shape.particles;
    return particles;
}

struct patch_report *manager_report(struct patch *patch, double now_s)
{
    struct patch_report *report =
        calloc(1, sizeof *report + patch->member_count * sizeof report->bodies[0]);
    const struct patch_start *start = &patch->start;

    if (!report)
        return NULL;
    report->refs = 1;
    report->serial = ++patch->serial;
    report->poses = patch->poses;
    report->number = patch->number;
    memcpy(report->locale, start->locale, sizeof report->locale);
    memcpy(report->layer, start->layer, sizeof report->layer);
    report->state = patch->state;
    memcpy(report->reason, patch->reason, sizeof report->reason);
    report->scale = start->scale;
    report->material = start->material;
    report->numbers = start->numbers;
    report->fill = start->fill;
    report->mode = start->mode;
    report->place = start->place;
    report->seed = start->seed;
    report->granules = patch->granules;
    report->asleep = patch->status.asleep;
    report->steps = patch->status.steps;
    report->time_s = patch->status.time_s;
    report->kinetic_energy_j = patch->status.kinetic_energy_j;
    report->age_s = now_s - patch->made_at_s;
    memcpy(report->phase_ms, patch->status.phase_ms, sizeof report->phase_ms);
    report->has_estimate = start->has_estimate;
    report->estimate = start->estimate;
    report->behind_s = patch->behind_s;
    report->is_closing = patch->is_closing;
    report->leaves = start->leaves;
    report->was_capped = patch->was_capped;
    report->has_ledger = patch->has_ledger;
    report->ledger = patch->ledger;
    report->has_revision =
        patch->has_revision && (patch->is_saved || patch->state != PATCH_RESTING);
    report->revision = patch->revision;
    report->rect = patch->rect;
    report->transition_count = patch->transition_count;
    memcpy(report->transitions, patch->transitions, sizeof report->transitions);
    report->body_count = patch->member_count;
    for (uint32_t i = 0; i < patch->member_count; i++)
        report->has_dents |= patch->members[i].body.dent != NULL;
    for (uint32_t i = 0; i < patch->member_count; i++)
        report_body(patch, &patch->members[i], &report->bodies[i]);
    return report;
}

static struct patch_report *full_report(const struct manager *manager, struct patch *patch,
                                        double now_s)
{
    struct patch_report *report = manager_report(patch, now_s);

    if (report) {
        report->particles = particles_of(manager, patch);
        report->diameter_m = (double)scale_radius_m(patch->start.scale) * (2 + sqrt(6));
    }
    return report;
}

/* The mean forces since the last report of poses; as they were where no substep was summed. */
static void take_forces(struct patch *patch)
{
    for (uint32_t i = 0; i < patch->member_count; i++) {
        struct patch_member *member = &patch->members[i];
        const uint32_t substeps = member->sums.substeps - member->told.substeps;

        for (int k = 0; substeps > 0 && k < 3; k++) {
            member->force_n[k] = (member->sums.force_n[k] - member->told.force_n[k]) / substeps;
            member->torque_nm[k] =
                (member->sums.torque_nm[k] - member->told.torque_nm[k]) / substeps;
        }
        member->told = member->sums;
    }
}

void manager_publish(struct manager *manager, struct patch *patch, bool is_state, double now_s)
{
    struct patch_report *report;

    /* Orders are reported at once, poses at their interval, the last ones always. */
    if (patch->has_news && (now_s - patch->told_at_s >= manager->limits.report_s ||
                            patch_state_is_end(patch->state))) {
        patch->poses++;
        take_forces(patch);
        patch->told_at_s = now_s;
        patch->has_news = false;
    }
    report = full_report(manager, patch, now_s);
    if (!report) {
        patch->has_news = true; /* the next one reports it */
        return;
    }
    if (patch_state_is_end(patch->state)) {
        patch_report_unref(patch->last);
        patch->last = patch_report_ref(report);
    }
    manager->calls.report(manager->calls.context, report, is_state);
}

void manager_move(struct manager *manager, struct patch *patch, enum patch_state state,
                  double now_s)
{
    const uint64_t sequence = ++patch->transition_count;

    patch->state = state;
    patch->transitions[sequence % PATCH_TRANSITIONS_KEPT] =
        (struct patch_transition){sequence, state, now_s - patch->made_at_s};
    if (!patch_state_is_end(state))
        manager_publish(manager, patch, true, now_s);
}

void manager_finish(struct manager *manager, struct patch *patch, enum patch_state state,
                    double now_s, const char *format, ...)
{
    va_list arguments;

    CHECK(patch_state_is_end(state) && !patch_state_is_end(patch->state));
    va_start(arguments, format);
    vsnprintf(patch->reason, sizeof patch->reason, format, arguments);
    va_end(arguments);
    give_slot_back(manager, patch);
    patch->ended_at_s = now_s;
    manager_move(manager, patch, state, now_s);
    manager_publish(manager, patch, true, now_s);
    drop(patch);
    if (state == PATCH_WRITTEN)
        manager->stats.written++;
    else if (state == PATCH_DISCARDED)
        manager->stats.discarded++;
    else
        manager->stats.failed++;
}

/* The report for an answer; ERR_NO_MEMORY. */
static enum err_code give_report(const struct manager *manager, struct patch *patch, double now_s,
                                 struct patch_report **report, struct err *err)
{
    *report = patch->last ? patch_report_ref(patch->last) : full_report(manager, patch, now_s);
    return *report ? ERR_OK : err_set(err, ERR_NO_MEMORY, "no memory for a report");
}

/* ---- orders ---------------------------------------------------------------------------------- */

static bool is_overlap(const struct patch_start *a, const struct patch_start *b)
{
    const struct sample_rect *p = &a->place.samples, *q = &b->place.samples;

    if (strcmp(a->locale, b->locale) != 0 || strcmp(a->layer, b->layer) != 0)
        return false;
    return p->column < q->column + q->cols - 1 && q->column < p->column + p->cols - 1 &&
           p->row < q->row + q->rows - 1 && q->row < p->row + p->rows - 1;
}

static enum err_code check_overlap(const struct manager *manager, const struct patch_start *start,
                                   struct err *err)
{
    for (size_t i = 0; i < manager->count; i++) {
        const struct patch *patch = manager->patches[i];

        if (patch_state_is_end(patch->state) || !is_overlap(&patch->start, start))
            continue;
        return err_set(err, ERR_CONFLICT, "the patch shares ground with patch %llu, which is %s",
                       (unsigned long long)patch->number, patch_state_name(patch->state));
    }
    return ERR_OK;
}

static enum err_code free_slot(const struct manager *manager, enum granular_scale scale,
                               uint32_t *slot, struct err *err)
{
    const struct manager_engine *engine = &manager->engines[scale];

    if (!engine->engine)
        return err_set(err, ERR_BUSY, "there is no device for %s granules", scale_name(scale));
    for (uint32_t i = 0; i < engine->engine->config.slots; i++) {
        if (engine->owners[i])
            continue;
        *slot = i;
        return ERR_OK;
    }
    return err_limit(err, ERR_BUSY, engine->engine->config.slots,
                     engine->engine->config.slots + 1.0,
                     "all %u patches of %s granules are in use; try again later",
                     engine->engine->config.slots, scale_name(scale));
}

static enum err_code check_bodies(const struct sand_engine *engine, const struct patch *patch,
                                  const struct patch_body *bodies, uint32_t count, struct err *err)
{
    const struct sand_engine_config *config = &engine->config;
    uint64_t particles = 0;

    for (uint32_t i = 0; patch && i < patch->member_count; i++)
        particles += patch->members[i].body.shape.shape.particles;
    for (uint32_t i = 0; i < count; i++)
        particles += bodies[i].shape.shape.particles;
    if (patch && patch->member_count + count > SAND_BODIES_MAX)
        return err_limit(err, ERR_UNPROCESSABLE, SAND_BODIES_MAX, patch->member_count + count,
                         "the patch has given all of its %d numbers of bodies; those of removed "
                         "ones are not given again",
                         SAND_BODIES_MAX);
    for (uint32_t i = 0; patch && i < patch->member_count; i++)
        count += !patch->members[i].is_removed;
    if (count > config->bodies_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->bodies_max, count,
                         "the patch would have %u bodies, the most is %u", count,
                         config->bodies_max);
    if (particles > config->particles_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->particles_max, (double)particles,
                         "the shells of the patch's bodies would have %llu particles, the most is "
                         "%u",
                         (unsigned long long)particles, config->particles_max);
    return ERR_OK;
}

static void adopt_bodies(struct patch *patch)
{
    struct patch_start *start = &patch->start;

    for (uint32_t i = 0; i < start->body_count; i++)
        patch->members[i].body = start->bodies[i];
    patch->member_count = start->body_count;
    free(start->bodies);
    start->bodies = NULL;
    start->body_count = 0;
}

static enum err_code add(struct manager *manager, struct patch_start *start, double now_s,
                         struct patch_report **report, struct err *err)
{
    struct manager_engine *engine = &manager->engines[start->scale];
    struct patch *patch;
    uint32_t slot = 0;

    if (check_overlap(manager, start, err) || free_slot(manager, start->scale, &slot, err) ||
        check_bodies(engine->engine, NULL, start->bodies, start->body_count, err))
        return err->code;
    if (!array_reserve((void **)&manager->patches, &manager->room, manager->count + 1,
                       sizeof(struct patch *)))
        return err_set(err, ERR_NO_MEMORY, "no memory for a patch");
    patch = calloc(1, sizeof *patch);
    if (!patch)
        return err_set(err, ERR_NO_MEMORY, "no memory for a patch");
    patch->number = ++manager->last_number;
    patch->start = *start;
    *start = (struct patch_start){.field = NULL};
    adopt_bodies(patch);
    patch->slot = slot;
    patch->granules = patch->start.ground.count;
    patch->made_at_s = now_s;
    patch->still_since_s = -1;
    engine->owners[slot] = patch;
    manager->patches[manager->count++] = patch;
    manager->stats.made++;
    manager_move(manager, patch, PATCH_FILLING, now_s);
    return give_report(manager, patch, now_s, report, err);
}

enum err_code manager_add(struct manager *manager, struct patch_start *start, double now_s,
                          struct patch_report **report, struct err *err)
{
    err->code = ERR_OK;
    *report = NULL;
    add(manager, start, now_s, report, err);
    patch_start_free(start);
    return err->code;
}

/* A patch that still takes orders. */
static enum err_code find_open(const struct manager *manager, uint64_t number, struct patch **patch,
                               struct err *err)
{
    *patch = manager_find(manager, number);
    if (!*patch)
        return err_set(err, ERR_PATCH_UNKNOWN, "there is no patch %llu",
                       (unsigned long long)number);
    if (patch_state_is_end((*patch)->state))
        return err_set(err, ERR_CONFLICT, "patch %llu is %s: it takes no bodies and no pushes",
                       (unsigned long long)number, patch_state_name((*patch)->state));
    if (!manager_engine_of(manager, *patch))
        return err_set(err, ERR_CONFLICT, "patch %llu has lost its device",
                       (unsigned long long)number);
    if ((*patch)->is_closing)
        return err_set(err, ERR_CONFLICT,
                       "patch %llu is being closed: it takes no bodies and no pushes",
                       (unsigned long long)number);
    return ERR_OK;
}

static enum err_code body_add(struct manager *manager, uint64_t number, struct patch_body *body,
                              double now_s, struct patch_report **report, struct err *err)
{
    struct patch *patch;

    if (find_open(manager, number, &patch, err) ||
        check_bodies(manager_engine_of(manager, patch), patch, body, 1, err))
        return err->code;
    patch->members[patch->member_count++] = (struct patch_member){.body = *body};
    *body = (struct patch_body){.shape = {.release = NULL}};
    manager_publish(manager, patch, false, now_s);
    return give_report(manager, patch, now_s, report, err);
}

enum err_code manager_body_add(struct manager *manager, uint64_t number, struct patch_body *body,
                               double now_s, struct patch_report **report, struct err *err)
{
    err->code = ERR_OK;
    *report = NULL;
    body_add(manager, number, body, now_s, report, err);
    patch_body_free(body);
    return err->code;
}

/* A living body of a patch that takes orders. */
static enum err_code find_body(const struct manager *manager, uint64_t number, uint32_t body,
                               struct patch **patch, struct patch_member **member, struct err *err)
{
    if (find_open(manager, number, patch, err))
        return err->code;
    if (body >= (*patch)->member_count || (*patch)->members[body].is_removed)
        return err_set(err, ERR_BODY_UNKNOWN, "patch %llu has no body %u",
                       (unsigned long long)number, body);
    *member = &(*patch)->members[body];
    return ERR_OK;
}

/* What was known of stillness is no longer true. */
static void stir(struct patch *patch)
{
    patch->fresh_at = patch->sent + 1;
    patch->still_since_s = -1;
    patch->wants_to_wake = patch->state == PATCH_RESTING;
}

enum err_code manager_body_remove(struct manager *manager, uint64_t number, uint32_t body,
                                  double now_s, struct patch_report **report, struct err *err)
{
    struct patch_member *member;
    struct patch *patch;

    *report = NULL;
    if (find_body(manager, number, body, &patch, &member, err))
        return err->code;
    if (member->is_in) {
        sand_body_remove(manager_engine_of(manager, patch), patch->slot, member->index);
        stir(patch);
    }
    patch_body_free(&member->body);
    *member = (struct patch_member){.is_removed = true};
    patch->has_news = true;
    manager_publish(manager, patch, false, now_s);
    return give_report(manager, patch, now_s, report, err);
}

static void push_held(struct patch_body *body, const struct patch_push *push)
{
    for (int i = 0; i < 3; i++) {
        if (push->has_velocity)
            body->velocity[i] = push->velocity[i];
        if (push->has_angular_velocity)
            body->angular_velocity[i] = push->angular_velocity[i];
        if (push->has_impulse)
            body->velocity[i] += push->impulse[i] / body->shape.shape.mass_kg;
    }
}

static void push_in(struct manager *manager, struct patch *patch, struct patch_member *member,
                    const struct patch_push *push)
{
    struct sand_engine *engine = manager_engine_of(manager, patch);
    float v[3], w[3], impulse[3];

    for (int i = 0; i < 3; i++) {
        v[i] = (float)push->velocity[i];
        w[i] = (float)push->angular_velocity[i];
        impulse[i] = (float)push->impulse[i];
    }
    if (push->has_velocity || push->has_angular_velocity)
        sand_body_velocity(engine, patch->slot, member->index, push->has_velocity ? v : NULL,
                           push->has_angular_velocity ? w : NULL);
    if (push->has_impulse)
        sand_body_impulse(engine, patch->slot, member->index, impulse);
    stir(patch);
}

enum err_code manager_push(struct manager *manager, uint64_t number, uint32_t body,
                           const struct patch_push *push, double now_s,
                           struct patch_report **report, struct err *err)
{
    struct sand_engine *engine;
    struct patch_member *member;
    struct patch *patch;

    *report = NULL;
    if (find_body(manager, number, body, &patch, &member, err))
        return err->code;
    engine = manager_engine_of(manager, patch);
    if (member->body.path)
        return err_set(err, ERR_UNPROCESSABLE, "body %u follows a path: it takes no push", body);
    if (patch_push_check(push, member->body.shape.shape.mass_kg, &engine->config.params, err))
        return err->code;
    if (member->is_in)
        push_in(manager, patch, member, push);
    else
        push_held(&member->body, push);
    manager_publish(manager, patch, false, now_s);
    return give_report(manager, patch, now_s, report, err);
}

enum err_code manager_close(struct manager *manager, uint64_t number, bool discard, double now_s,
                            struct patch_report **report, struct err *err)
{
    struct patch *patch = manager_find(manager, number);

    *report = NULL;
    if (!patch)
        return err_set(err, ERR_PATCH_UNKNOWN, "there is no patch %llu",
                       (unsigned long long)number);
    if (!patch_state_is_end(patch->state)) {
        if (discard && !patch->is_submitted) {
            manager_finish(manager, patch, PATCH_DISCARDED, now_s, DISCARDED_ON_REQUEST);
        } else {
            patch->is_closing = true;
            patch->is_dropped = discard;
        }
    }
    return give_report(manager, patch, now_s, report, err);
}

void manager_end(struct manager *manager, uint64_t number, enum patch_state state, const char *why,
                 double now_s)
{
    struct patch *patch = manager_find(manager, number);

    if (patch && !patch_state_is_end(patch->state) && !patch->is_submitted)
        manager_finish(manager, patch, state, now_s, "%s", why);
}

void manager_each(struct manager *manager,
                  void (*visit)(void *context, uint64_t number, struct patch_start *start),
                  void *context)
{
    /* A visit may end the patch, which stays where it is. */
    for (size_t i = 0; i < manager->count; i++)
        if (!patch_state_is_end(manager->patches[i]->state))
            visit(context, manager->patches[i]->number, &manager->patches[i]->start);
}

/* ---- spheres for a picture ------------------------------------------------------------------- */

static struct patch *begun(const struct manager *manager, uint64_t number)
{
    struct patch *patch = manager_find(manager, number);

    return patch && patch->is_begun && manager_engine_of(manager, patch) ? patch : NULL;
}

bool manager_spheres_request(struct manager *manager, uint64_t number)
{
    struct patch *patch = begun(manager, number);

    if (patch)
        sand_spheres_request(manager_engine_of(manager, patch), patch->slot);
    return patch != NULL;
}

uint32_t manager_spheres_max(const struct manager *manager, uint64_t number)
{
    const struct patch *patch = begun(manager, number);
    const struct sand_engine *engine = patch ? manager_engine_of(manager, patch) : NULL;

    return engine ? engine->config.granules_max * engine->config.params.spheres +
                        engine->config.particles_max
                  : 0;
}

int manager_spheres_poll(struct manager *manager, uint64_t number, float (*spheres)[4],
                         uint32_t *count)
{
    struct patch *patch = begun(manager, number);

    if (!patch)
        return -1;
    return sand_spheres_poll(manager_engine_of(manager, patch), patch->slot, spheres, count);
}

/* ---- numbers --------------------------------------------------------------------------------- */

void manager_stats(const struct manager *manager, struct manager_stats *out)
{
    *out = manager->stats;
    memset(out->used, 0, sizeof out->used);
    memset(out->states, 0, sizeof out->states);
    for (size_t i = 0; i < manager->count; i++) {
        const struct patch *patch = manager->patches[i];

        out->states[patch->state]++;
        if (!patch_state_is_end(patch->state))
            out->used[patch->start.scale]++;
    }
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        memcpy(out->phase_ms[scale], manager->engines[scale].phase_ms, sizeof out->phase_ms[scale]);
        memcpy(out->pass_ms[scale], manager->engines[scale].pass_ms, sizeof out->pass_ms[scale]);
        out->rate[scale] = manager->engines[scale].rate;
    }
}

bool manager_validate(const struct manager *manager, struct err *err)
{
    uint32_t owned = 0, open = 0, stepped = 0;

    for (int scale = 0; scale < SCALE_COUNT; scale++)
        for (uint32_t slot = 0; slot < SAND_SLOTS_MAX; slot++)
            owned += manager->engines[scale].owners[slot] != NULL;
    for (size_t i = 0; i < manager->count; i++) {
        const struct patch *patch = manager->patches[i];

        if (i > 0 && manager->patches[i - 1]->number >= patch->number) {
            err_set(err, ERR_INTERNAL, "patches are not in order at %zu", i);
            return false;
        }
        if (patch_state_is_end(patch->state))
            continue;
        open++;
        stepped += patch->is_begun && patch->state <= PATCH_ACTIVE;
        if (manager->engines[patch->start.scale].owners[patch->slot] != patch) {
            err_set(err, ERR_INTERNAL, "patch %llu does not own its slot",
                    (unsigned long long)patch->number);
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (patch_state_is_end(manager->patches[k]->state) ||
                !is_overlap(&manager->patches[k]->start, &patch->start))
                continue;
            err_set(err, ERR_INTERNAL, "patches %llu and %llu overlap",
                    (unsigned long long)manager->patches[k]->number,
                    (unsigned long long)patch->number);
            return false;
        }
    }
    if (owned != open || stepped > manager->limits.active_max) {
        err_set(err, ERR_INTERNAL, "%u slots have an owner, %u patches are open, %u are stepped",
                owned, open, stepped);
        return false;
    }
    return true;
}
