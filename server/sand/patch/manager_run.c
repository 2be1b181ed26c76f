/*
 * The life of patches: one tick polls the answers of the engines, advances each patch, and steps
 * the active ones.
 *
 * Engines answer late (a GPU lags by frames), and no tick waits for one: requests are recorded and
 * polled again. A status that is older than the last push or body is no evidence of stillness
 * (fresh_at).
 *
 * Rest is measured in simulated time, so that slowness of the machine does not count as rest; the
 * time from rest to writing is wall time. "At rest" is never a maximum over granules: some rattle
 * in their cages for ever. 99 of 100 asleep (all but 4 of a few) and every body slow is rest, for
 * as long as the limits say; and after active_max_s the patch is taken as it is.
 *
 * Bodies are added when nothing is being stepped and the surface has just been measured; they are
 * lifted until they touch nothing, so that no overlap acts as a spring.
 *
 * Active patches are stepped as time goes by (limits.speed), at most 0.1 s at once; settling
 * patches as fast as the engine can, because they are not shown yet. An engine gets substeps for
 * about CHUNK_MS at a time, and never more than two such chunks ahead of its answers, so that
 * orders do not wait for a queue of work. The cost of a new patch is unknown: its first chunk is
 * one substep, and each later one at most CHUNK_GROWTH times what it has answered.
 */
#include "sand/patch/manager.h"

#include "base/check.h"
#include "sand/patch/manager_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ASLEEP_PART 0.99
#define RATTLERS 4              /* granules that may be awake however few there are */
#define ASLEEP_PART_CAPPED 0.95 /* with so many asleep it advances at the end of its time, too */
#define CREDIT_MAX_S 0.1
#define CHUNK_MS 30.0
#define CHUNK_LEAST_MS 4.0 /* many times POLL_S */
#define CHUNK_FRAMES_MAX 8
#define CHUNK_GROWTH 3
#define POLL_S 0.0005
#define WRITE_AGAIN_S 1.0
#define SETTLE_DRAG 3.0f /* 1/s at this radius: a third less of processor time until ground rests */
#define SETTLE_DRAG_RADIUS_M 0.1f
#define WRITE_TRIES 60
#define LIFT_ROUNDS 64
#define LIFT_PAIRS_MAX 4000000u

/* ---- room for a body ------------------------------------------------------------------------- */

static void turned(const float q[4], const float v[3], float out[3])
{
    const float t[3] = {2 * (q[1] * v[2] - q[2] * v[1]), 2 * (q[2] * v[0] - q[0] * v[2]),
                        2 * (q[0] * v[1] - q[1] * v[0])};

    out[0] = v[0] + q[3] * t[0] + q[1] * t[2] - q[2] * t[1];
    out[1] = v[1] + q[3] * t[1] + q[2] * t[0] - q[0] * t[2];
    out[2] = v[2] + q[3] * t[2] + q[0] * t[1] - q[1] * t[0];
}

static void particle_at(const struct sand_shape *shape, const struct sand_pose *pose, uint32_t i,
                        float out[3])
{
    turned(pose->q, shape->offsets_m[i], out);
    for (int k = 0; k < 3; k++)
        out[k] += pose->x[k];
}

static int64_t clamped(double value, uint32_t count)
{
    return value < 0 ? 0 : value >= count ? (int64_t)count - 1 : (int64_t)value;
}

/* The greatest depth around a point, which the texels about it may hide. */
static float surface_near(const struct sand_depth *depth, const float *surface_m, const float x[3],
                          float radius_m)
{
    const int64_t c0 = clamped(round((x[0] - radius_m - depth->x0) / depth->dx), depth->cols),
                  c1 = clamped(round((x[0] + radius_m - depth->x0) / depth->dx), depth->cols),
                  r0 = clamped(round((x[1] - radius_m - depth->y0) / depth->dy), depth->rows),
                  r1 = clamped(round((x[1] + radius_m - depth->y0) / depth->dy), depth->rows);
    float most = -INFINITY;

    for (int64_t r = r0; r <= r1; r++)
        for (int64_t c = c0; c <= c1; c++)
            most = fmaxf(most, surface_m[(size_t)r * depth->cols + (size_t)c]);
    return most;
}

static float lift_over_ground(const struct sand_shape *shape, const struct sand_pose *pose,
                              const struct sand_depth *depth, const float *surface_m,
                              float radius_m)
{
    float lift = 0;

    for (uint32_t i = 0; i < shape->particles; i++) {
        float at[3];

        particle_at(shape, pose, i, at);
        lift = fmaxf(lift, surface_near(depth, surface_m, at, radius_m) + radius_m - at[2]);
    }
    return lift;
}

static float encode_reach(const struct sand_shape *shape)
{
    float most = 0;

    for (uint32_t i = 0; i < shape->particles; i++) {
        const float *p = shape->offsets_m[i];

        most = fmaxf(most, p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    }
    return sqrtf(most);
}

/* What must be added to z so that two points of that height are `least` apart; 0 if they are. */
static float apart(const float upper[3], const float lower[3], float least)
{
    const float dx = upper[0] - lower[0], dy = upper[1] - lower[1], dz = upper[2] - lower[2];
    const float left = least * least - dx * dx - dy * dy;

    return left > 0 && dz * dz < left ? sqrtf(left) - dz : 0;
}

/* One round: the lift over another body that the pose needs now; 0 when they do not touch. */
static float lift_over_body(const struct sand_shape *shape, const struct sand_pose *pose,
                            const struct sand_shape *other, const struct sand_pose *other_pose,
                            float radius_m)
{
    const float reach = encode_reach(shape) + encode_reach(other) + 2 * radius_m;
    float lift = apart(pose->x, other_pose->x, reach);

    if (lift == 0 || (uint64_t)shape->particles * other->particles > LIFT_PAIRS_MAX)
        return lift;
    lift = 0;
    for (uint32_t i = 0; i < shape->particles; i++) {
        float at[3];

        particle_at(shape, pose, i, at);
        for (uint32_t k = 0; k < other->particles; k++) {
            float other_at[3];

            particle_at(other, other_pose, k, other_at);
            lift = fmaxf(lift, apart(at, other_at, 2 * radius_m));
        }
    }
    return lift;
}

double manager_lift(const struct manager *manager, const struct patch *patch,
                    const struct patch_member *member, const struct sand_pose *pose,
                    const float *surface_m)
{
    const float r = manager_engine_of(manager, patch)->config.params.radius_m;
    const struct sand_shape *shape = &member->body.shape.shape;
    struct sand_pose raised = *pose;

    raised.x[2] += lift_over_ground(shape, pose, &patch->start.grid.depth, surface_m, r);
    for (int round = 0; round < LIFT_ROUNDS; round++) {
        float lift = 0;

        for (uint32_t i = 0; i < patch->member_count; i++) {
            const struct patch_member *other = &patch->members[i];

            if (other != member && other->is_in)
                lift = fmaxf(lift, lift_over_body(shape, &raised, &other->body.shape.shape,
                                                  &other->pose, r));
        }
        if (lift == 0)
            break;
        raised.x[2] += lift + 0.01f * r;
    }
    return raised.x[2] - pose->x[2];
}

static bool has_held_bodies(const struct patch *patch)
{
    for (uint32_t i = 0; i < patch->member_count; i++)
        if (!patch->members[i].is_in && !patch->members[i].is_removed)
            return true;
    return false;
}

/* A path, in the slot's frame. */
static void path_in(struct patch_body *body, const struct convert_place *place)
{
    const double corner[3] = {place->low.x, place->low.y, place->z_m};

    for (int i = 0; i < 3; i++) {
        body->path->origin[i] = corner[i];
        body->path->center[i] = (double)body->shape.center_m[i];
    }
    body->shape.shape.path = body->path;
}

/* Hands the held bodies to the engine, above the surface that was just measured. */
static void insert_bodies(struct manager *manager, struct patch *patch, const float *surface_m,
                          double now_s)
{
    struct sand_engine *engine = manager_engine_of(manager, patch);
    struct err err = {.code = ERR_OK};

    for (uint32_t i = 0; i < patch->member_count; i++) {
        struct patch_member *member = &patch->members[i];
        struct sand_pose pose;

        if (member->is_in || member->is_removed)
            continue;
        patch_pose_in(&member->body, &patch->start.place, &pose);
        if (member->body.path)
            path_in(&member->body, &patch->start.place);
        else
            pose.x[2] += (float)manager_lift(manager, patch, member, &pose, surface_m);
        if (sand_body_add(engine, patch->slot, &member->body.shape.shape, &pose, &member->index,
                          &err)) {
            manager_finish(manager, patch, PATCH_FAILED, now_s, "body %u: %s", i, err.msg);
            return;
        }
        member->is_in = true;
        member->in_at = patch->sent;
        member->pose = pose;
        if (member->body.dent) {
            member->body.dent->next = patch->dents;
            patch->dents = member->body.dent;
            member->body.dent = NULL;
        }
    }
    patch->fresh_at = patch->sent + 1;
    patch->still_since_s = -1;
    patch->has_news = true;
}

/* ---- what engines answer --------------------------------------------------------------------- */

static bool is_still(const struct sand_engine *engine, const struct sand_status *status)
{
    const double awake_max = fmax((1 - ASLEEP_PART) * status->granules, RATTLERS);

    return status->body_speed_max < engine->config.params.sleep_speed &&
           status->granules - status->asleep <= awake_max;
}

static void take_body(struct patch_member *member, const struct sand_status *status)
{
    member->pose = status->pose[member->index];
    member->sums = status->forces[member->index];
}

/* Some body is not at the end of its path. */
static bool has_way_to_go(const struct manager *manager, const struct patch *patch)
{
    const double dt_s = (double)manager_engine_of(manager, patch)->config.params.dt_s;

    for (uint32_t i = 0; i < patch->member_count; i++) {
        const struct patch_member *member = &patch->members[i];

        if (member->is_in && member->body.path &&
            (double)patch->status.steps - (double)member->in_at <
                sand_path_end_s(member->body.path) / dt_s)
            return true;
    }
    return false;
}

static void take_status(struct manager *manager, struct patch *patch, double now_s)
{
    struct manager_engine *engine = &manager->engines[patch->start.scale];
    struct sand_status *status = &patch->status;

    if (!sand_status_poll(engine->engine, patch->slot, status))
        return;
    patch->has_news = true;
    memcpy(engine->phase_ms, status->phase_ms, sizeof engine->phase_ms);
    memcpy(engine->pass_ms, status->pass_ms, sizeof engine->pass_ms);
    if (status->failed) {
        manager_finish(manager, patch, PATCH_FAILED, now_s,
                       "the simulation broke down: a state was not a finite number");
        return;
    }
    for (uint32_t i = 0; i < patch->member_count; i++) {
        struct patch_member *member = &patch->members[i];

        if (member->is_in && member->in_at <= status->steps &&
            (status->body_alive >> member->index & 1))
            take_body(member, status);
    }
    if (status->steps < patch->fresh_at || has_way_to_go(manager, patch) ||
        !is_still(engine->engine, status))
        patch->still_since_s = -1;
    else if (patch->still_since_s < 0)
        patch->still_since_s = status->time_s;
}

static bool has_been_still(const struct patch *patch, double for_s)
{
    return patch->still_since_s >= 0 && patch->status.steps >= patch->fresh_at &&
           patch->status.time_s - patch->still_since_s >= for_s - 1e-9;
}

/* Asks for a depth map; the patch fails when it cannot be. */
static void measure(struct manager *manager, struct patch *patch, enum depth_use use, double now_s)
{
    struct err err = {.code = ERR_OK};

    if (sand_depth_request(manager_engine_of(manager, patch), patch->slot, &patch->start.grid.depth,
                           &err))
        manager_finish(manager, patch, PATCH_FAILED, now_s, "%s", err.msg);
    else
        patch->depth = use;
}

/* ---- filling --------------------------------------------------------------------------------- */

static uint32_t stepped_count(const struct manager *manager)
{
    uint32_t count = 0;

    for (size_t i = 0; i < manager->count; i++)
        count += manager->patches[i]->is_begun && manager->patches[i]->state <= PATCH_ACTIVE;
    return count;
}

/* Lowers the grid's height to what its cells hold; spheres above are counted to the last layer. */
static void fit_height(const struct sand_engine_config *config, struct sand_slot_begin *begin)
{
    const double cell_m = config->params.cell_m;
    const double layer = ceil(begin->size_m[0] / cell_m) * ceil(begin->size_m[1] / cell_m);
    const double layers = floor(config->cells_max / layer);

    if (layers >= 2 && begin->height_m > (float)((layers - 1) * cell_m))
        begin->height_m = (float)((layers - 1) * cell_m);
}

static void begin(struct manager *manager, struct patch *patch, double now_s)
{
    struct sand_engine *engine = manager_engine_of(manager, patch);
    struct sand_slot_begin *slot = &patch->start.ground.begin;
    const struct sand_depth *depth = &patch->start.grid.depth;
    const struct material_numbers numbers = patch->start.material == MATERIAL_OWN
                                                ? patch->start.numbers
                                                : material_numbers_of(patch->start.material);
    struct granular_params params;
    const size_t bytes = (size_t)depth->cols * depth->rows * sizeof(float);
    struct err err = {.code = ERR_OK};

    patch->before_m = malloc(bytes);
    patch->settled_m = malloc(bytes);
    patch->surface_m = malloc(bytes);
    fit_height(&engine->config, slot);
    granular_params_of(&numbers, engine->config.params.radius_m, &params);
    slot->params = &params;
    if (!patch->before_m || !patch->settled_m || !patch->surface_m)
        manager_finish(manager, patch, PATCH_FAILED, now_s, "no memory for its depth maps");
    else if (sand_slot_begin(engine, patch->slot, slot, &err))
        manager_finish(manager, patch, PATCH_FAILED, now_s, "%s", err.msg);
    else
        patch->is_begun = true;
    slot->params = NULL;
    if (patch->is_begun)
        sand_slot_calm(engine, patch->slot,
                       SETTLE_DRAG * sqrtf(SETTLE_DRAG_RADIUS_M / engine->config.params.radius_m));
}

static void fill(struct manager *manager, struct patch *patch, double now_s)
{
    const struct convert_ground *ground = &patch->start.ground;
    const uint32_t left = ground->count - patch->filled, most = manager->limits.fill_granules;
    const uint32_t count = left < most ? left : most;
    struct err err = {.code = ERR_OK};

    if (count > 0 && sand_slot_fill(manager_engine_of(manager, patch), patch->slot,
                                    ground->granules + patch->filled, count, &err)) {
        manager_finish(manager, patch, PATCH_FAILED, now_s, "%s", err.msg);
        return;
    }
    patch->filled += count;
    if (patch->filled < ground->count)
        return;
    convert_ground_free(&patch->start.ground);
    patch->filled_at_s = now_s;
    manager_move(manager, patch, PATCH_SETTLING, now_s);
}

static void go_on_filling(struct manager *manager, struct patch *patch, double now_s)
{
    if (!patch->is_begun && stepped_count(manager) < manager->limits.active_max)
        begin(manager, patch, now_s);
    else if (patch->is_begun)
        fill(manager, patch, now_s);
}

/* ---- settling, active, resting --------------------------------------------------------------- */

static void make_active(struct manager *manager, struct patch *patch, double now_s)
{
    convert_change_free(&patch->change);
    patch->is_saved = false;
    for (uint32_t i = 0; i < patch->member_count; i++)
        patch->members[i].lowered_m = 0;
    patch->awake_since_s = patch->status.time_s;
    patch->active_at_s = now_s;
    patch->behind_s = 0;
    patch->still_since_s = -1;
    patch->fresh_at = patch->sent + 1;
    patch->wants_to_wake = false;
    manager_move(manager, patch, PATCH_ACTIVE, now_s);
}

/* The surface before the first body is there. */
static void settled(struct manager *manager, struct patch *patch, double now_s)
{
    const struct patch_start *start = &patch->start;
    struct manager_engine *engine = &manager->engines[start->scale];
    struct err err = {.code = ERR_OK};

    sand_rate_learn(
        &engine->rate,
        (double)patch->status.steps * patch->granules * engine->engine->config.params.spheres,
        now_s - patch->filled_at_s, patch->status.time_s - manager->limits.settle_still_s);
    memcpy(patch->settled_m, patch->before_m,
           (size_t)start->grid.depth.cols * start->grid.depth.rows * sizeof(float));
    if (convert_slump(start->field, &start->place, &start->grid,
                      (double)engine->engine->config.params.diameter_m, patch->before_m, &err)) {
        manager_finish(manager, patch, PATCH_FAILED, now_s, "%s", err.msg);
        return;
    }
    sand_slot_calm(engine->engine, patch->slot, 0);
    make_active(manager, patch, now_s);
    insert_bodies(manager, patch, patch->settled_m, now_s);
}

static void go_on_settling(struct manager *manager, struct patch *patch, double now_s)
{
    const struct manager_limits *limits = &manager->limits;

    if (patch->depth == DEPTH_BEFORE) {
        if (!sand_depth_poll(manager_engine_of(manager, patch), patch->slot, patch->before_m))
            return;
        patch->depth = DEPTH_NONE;
        settled(manager, patch, now_s);
    } else if (has_been_still(patch, limits->settle_still_s)) {
        measure(manager, patch, DEPTH_BEFORE, now_s);
    } else if (patch->status.time_s > limits->settle_max_s &&
               patch->status.asleep >= ASLEEP_PART_CAPPED * patch->status.granules) {
        patch->was_capped = true;
        measure(manager, patch, DEPTH_BEFORE, now_s);
    } else if (patch->status.time_s > limits->settle_max_s) {
        manager_finish(manager, patch, PATCH_FAILED, now_s,
                       "the ground did not come to rest within %g simulated seconds: %u of %u "
                       "granules are asleep",
                       limits->settle_max_s, patch->status.asleep, patch->status.granules);
    }
}

/* What has changed is measured, and written, now. */
static void make_rest(struct manager *manager, struct patch *patch, double now_s)
{
    patch->rested_at_s = patch->write_at_s = now_s;
    patch->write_tries = 0;
    manager_move(manager, patch, PATCH_RESTING, now_s);
    measure(manager, patch, DEPTH_AFTER, now_s);
}

/* Less than the engine may be ahead or behind by its chunks is nothing. */
static void look_behind(const struct manager *manager, struct patch *patch, double now_s)
{
    const double behind_s = (now_s - patch->active_at_s) * manager->limits.speed -
                            (patch->status.time_s - patch->awake_since_s);

    patch->behind_s = behind_s > CREDIT_MAX_S ? behind_s : 0;
}

static void go_on_active(struct manager *manager, struct patch *patch, double now_s)
{
    look_behind(manager, patch, now_s);
    if (patch->depth == DEPTH_INSERT) {
        if (!sand_depth_poll(manager_engine_of(manager, patch), patch->slot, patch->surface_m))
            return;
        patch->depth = DEPTH_NONE;
        insert_bodies(manager, patch, patch->surface_m, now_s);
    } else if (has_held_bodies(patch)) {
        measure(manager, patch, DEPTH_INSERT, now_s);
    } else if (has_been_still(patch, manager->limits.pause_after_s)) {
        make_rest(manager, patch, now_s);
    } else if (patch->status.time_s - patch->awake_since_s > manager->limits.active_max_s &&
               !has_way_to_go(manager, patch)) {
        patch->was_capped = true;
        make_rest(manager, patch, now_s);
    }
}

/* ---- resting and writing --------------------------------------------------------------------- */

/* The ground of this rest is everybody's. field: as it was written; NULL: nothing was. */
static void saved(struct manager *manager, struct patch *patch, const struct heightfield *field,
                  double now_s)
{
    const struct sand_engine *engine = manager_engine_of(manager, patch);
    struct mass_ledger *sum = &patch->ledger;
    const struct mass_ledger *last = &patch->change.ledger;

    sum->volume_before_m3 = patch->has_ledger ? sum->volume_before_m3 : last->volume_before_m3;
    sum->volume_after_m3 = last->volume_after_m3;
    sum->moved_m3 += last->moved_m3;
    sum->compacted_m3 += last->compacted_m3;
    sum->lost_m3 += last->lost_m3;
    patch->has_ledger = patch->has_revision = patch->is_saved = true;
    if (patch->change.rect.cols > 0)
        patch->rect = patch->change.rect;
    if (patch->change.next_m) { /* the next difference begins here */
        free(patch->before_m);
        patch->before_m = patch->change.next_m;
        patch->change.next_m = NULL;
    }
    convert_change_free(&patch->change);
    patch_dents_end(patch->sent_dents, patch->number, patch->revision, "");
    patch->sent_dents = NULL;
    if (engine)
        manager_lower(patch, field ? field : patch->start.field, engine->config.params.diameter_m);
    patch->has_news = true;
    patch->told_at_s = -INFINITY;
    manager_publish(manager, patch, false, now_s);
}

/* Are there bodies that become layers? */
static bool is_leaving(const struct patch *patch)
{
    bool has_body = false;

    for (uint32_t i = 0; i < patch->member_count; i++)
        has_body |= patch->members[i].is_in && patch->members[i].body.shape.surface;
    return patch->start.leaves && has_body;
}

static void submit(struct manager *manager, struct patch *patch, double now_s)
{
    const struct sample_rect *rect = &patch->change.rect;
    const size_t bytes = (size_t)rect->cols * rect->rows * sizeof(float);
    float *heights_m = bytes > 0 ? malloc(bytes) : NULL;

    if (bytes > 0 && !heights_m) {
        manager_finish(manager, patch, PATCH_FAILED, now_s, "no memory for its edit");
        return;
    }
    if (bytes > 0)
        memcpy(heights_m, patch->change.heights_m, bytes);
    patch->is_submitted = true;
    patch->is_closing |= is_leaving(patch); /* what comes now would be lost with its granules */
    manager->calls.write(manager->calls.context, patch->number, &patch->start,
                         patch->start.revision, rect, heights_m);
}

static void write_rest(struct manager *manager, struct patch *patch, double now_s)
{
    if (patch->change.rect.cols > 0 || is_leaving(patch)) {
        submit(manager, patch, now_s);
        return;
    }
    if (!patch->has_revision)
        patch->revision = patch->start.revision;
    saved(manager, patch, NULL, now_s);
}

static void convert(struct manager *manager, struct patch *patch, double now_s)
{
    struct patch_start *start = &patch->start;
    struct patch_dent **last = &patch->dents;
    struct err err = {.code = ERR_OK};

    while (*last)
        last = &(*last)->next;
    *last = patch->sent_dents; /* of a change that was not written before the patch woke */
    patch->sent_dents = NULL;
    if (convert_up(start->field, &start->place, &start->grid,
                   manager_engine_of(manager, patch)->config.params.diameter_m, patch->before_m,
                   patch->surface_m, start->mode, &patch->change, &err) ||
        patch_dents_take_back(patch->dents, &patch->change, &err)) {
        manager_finish(manager, patch, PATCH_FAILED, now_s, "%s", err.msg);
        return;
    }
    patch->sent_dents = patch->dents;
    patch->dents = NULL;
    write_rest(manager, patch, now_s);
}

/* On a patch that no body came to nothing has moved but what still trembled. */
static void take_surface(struct manager *manager, struct patch *patch, double now_s)
{
    const struct sand_depth *depth = &patch->start.grid.depth;

    if (!sand_depth_poll(manager_engine_of(manager, patch), patch->slot, patch->surface_m))
        return;
    patch->depth = DEPTH_NONE;
    if (patch->member_count == 0 && patch->start.mode == CONVERT_DIFFERENCE)
        memcpy(patch->surface_m, patch->settled_m,
               (size_t)depth->cols * depth->rows * sizeof(float));
    convert(manager, patch, now_s);
}

static void go_on_resting(struct manager *manager, struct patch *patch, double now_s)
{
    if (patch->depth == DEPTH_AFTER) {
        take_surface(manager, patch, now_s);
    } else if (patch->is_submitted) {
        return;
    } else if (patch->wants_to_wake || has_held_bodies(patch)) {
        if (stepped_count(manager) < manager->limits.active_max)
            make_active(manager, patch, now_s);
    } else if (!patch->is_saved) {
        if (now_s >= patch->write_at_s)
            write_rest(manager, patch, now_s);
    } else if (patch->is_closing || now_s - patch->rested_at_s >= manager->limits.linger_s) {
        manager_finish(manager, patch, PATCH_WRITTEN, now_s, "%s", patch->unleft);
    }
}

void manager_written(struct manager *manager, uint64_t number, enum err_code code,
                     uint64_t revision, const struct heightfield *field, const char *why,
                     double now_s)
{
    struct patch *patch = manager_find(manager, number);

    CHECK(patch && patch->state == PATCH_RESTING && patch->is_submitted);
    patch->is_submitted = false;
    if (code == ERR_OK) {
        patch->revision = revision;
        if (patch->start.revision < revision)
            patch->start.revision = revision;
        saved(manager, patch, field, now_s);
        if (patch->is_dropped)
            manager_finish(manager, patch, PATCH_DISCARDED, now_s, DISCARDED_ON_REQUEST);
        else if (!patch->is_begun) /* its device was lost meanwhile */
            manager_finish(manager, patch, PATCH_WRITTEN, now_s, "%s", patch->unleft);
    } else if (patch->is_dropped) {
        manager_finish(manager, patch, PATCH_DISCARDED, now_s, DISCARDED_ON_REQUEST);
    } else if (err_http_status(code) == 404) {
        manager_finish(manager, patch, PATCH_DISCARDED, now_s, "its ground is gone: %s", why);
    } else if (code == ERR_PRECONDITION_FAILED) {
        patch->write_at_s = now_s; /* the ground has moved on; again at its new revision */
    } else if (code == ERR_UNAVAILABLE) {
        patch->write_at_s = now_s + WRITE_AGAIN_S; /* until the lease of the ground is lost */
    } else if ((code == ERR_BUSY || code == ERR_NO_MEMORY) && ++patch->write_tries < WRITE_TRIES) {
        patch->write_at_s = now_s + WRITE_AGAIN_S;
    } else if (is_leaving(patch)) { /* the ground is still to be had */
        snprintf(patch->unleft, sizeof patch->unleft, "its bodies are not left as layers: %s", why);
        patch->start.leaves = false;
        patch->write_at_s = now_s;
    } else {
        manager_finish(manager, patch, PATCH_FAILED, now_s, "it could not be written: %s", why);
    }
}

uint32_t manager_leave(struct manager *manager, uint64_t number, const struct heightfield *field,
                       struct patch_left *left)
{
    struct patch *patch = manager_find(manager, number);
    uint32_t count = 0;

    CHECK(patch && patch->is_submitted);
    if (patch->is_begun)
        manager_lower(patch, field, manager_engine_of(manager, patch)->config.params.diameter_m);
    for (uint32_t i = 0; i < patch->member_count; i++) {
        const struct patch_member *member = &patch->members[i];
        struct patch_left *one = &left[count];

        if (!member->is_in || !member->body.shape.surface)
            continue;
        *one = (struct patch_left){.number = i, .surface = layer_ref(member->body.shape.surface)};
        patch_pose_out(&member->body.shape, &patch->start.place, &member->pose, one->position,
                       one->orientation);
        one->position[2] -= member->lowered_m;
        count++;
    }
    return count;
}

void manager_left(struct manager *manager, uint64_t number, const struct patch_left *left,
                  uint32_t count)
{
    struct patch *patch = manager_find(manager, number);

    CHECK(patch && patch->is_submitted);
    for (uint32_t i = 0; i < count; i++)
        memcpy(patch->members[left[i].number].layer, left[i].layer, sizeof left[i].layer);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void go_on(struct manager *manager, struct patch *patch, double now_s)
{
    if (patch->is_begun)
        take_status(manager, patch, now_s);
    switch (patch->state) {
    case PATCH_FILLING:
        go_on_filling(manager, patch, now_s);
        break;
    case PATCH_SETTLING:
        go_on_settling(manager, patch, now_s);
        break;
    case PATCH_ACTIVE:
        go_on_active(manager, patch, now_s);
        break;
    case PATCH_RESTING:
        go_on_resting(manager, patch, now_s);
        break;
    default:
        break;
    }
    if (!patch_state_is_end(patch->state) && patch->has_news &&
        now_s - patch->told_at_s >= manager->limits.report_s)
        manager_publish(manager, patch, false, now_s);
}

/*
 * Substeps that take an engine some CHUNK_MS, by the last that was measured; a frame at most. A
 * fast device that only settles patches gets several, so that it does not wait for the next poll.
 */
static uint32_t chunk_of(const struct manager_engine *engine)
{
    const uint64_t frame = engine->engine->config.params.substeps;
    uint64_t chunk = frame;
    bool is_shown = false;
    double substep_ms = 0;

    for (int phase = 0; phase < SAND_PHASE_DEPTH; phase++)
        substep_ms += engine->phase_ms[phase];
    for (uint32_t slot = 0; slot < engine->engine->config.slots; slot++)
        is_shown |= engine->owners[slot] && engine->owners[slot]->state == PATCH_ACTIVE;
    while (!is_shown && substep_ms > 0 && substep_ms * (double)chunk < CHUNK_LEAST_MS &&
           chunk < CHUNK_FRAMES_MAX * frame)
        chunk += frame;
    if (substep_ms * (double)chunk > CHUNK_MS)
        chunk = substep_ms < CHUNK_MS ? (uint64_t)(CHUNK_MS / substep_ms) : 1;
    for (uint32_t slot = 0; slot < engine->engine->config.slots; slot++) {
        const struct patch *patch = engine->owners[slot];

        if (patch && patch->is_begun && chunk > 1 + CHUNK_GROWTH * patch->status.steps)
            chunk = 1 + CHUNK_GROWTH * patch->status.steps;
    }
    return (uint32_t)chunk;
}

static double chunk_s(const struct manager_engine *engine, uint32_t substeps)
{
    return substeps * (double)engine->engine->config.params.dt_s;
}

/* Is the patch to be stepped now? Sets *waits when its engine owes an answer first. */
static bool is_due(const struct manager *manager, const struct patch *patch, uint32_t chunk,
                   bool *waits)
{
    const struct manager_engine *engine = &manager->engines[patch->start.scale];

    if (!patch->is_begun || patch->depth != DEPTH_NONE ||
        (patch->state != PATCH_SETTLING && patch->state != PATCH_ACTIVE))
        return false;
    if (patch->state == PATCH_ACTIVE &&
        (has_held_bodies(patch) ||
         (manager->limits.speed > 0 && engine->credit_s < chunk_s(engine, chunk))))
        return false;
    if (patch->sent - patch->status.steps >= 2 * chunk) {
        *waits = true;
        return false;
    }
    return true;
}

/* True when something was stepped. */
static bool step_engine(struct manager *manager, enum granular_scale scale, double now_s,
                        bool *waits)
{
    struct manager_engine *engine = &manager->engines[scale];
    const uint32_t chunk = chunk_of(engine);
    struct err err = {.code = ERR_OK};
    bool has_active = false;
    uint64_t mask = 0;

    for (uint32_t slot = 0; slot < engine->engine->config.slots; slot++) {
        const struct patch *patch = engine->owners[slot];

        if (!patch || !is_due(manager, patch, chunk, waits))
            continue;
        mask |= (uint64_t)1 << slot;
        has_active |= patch->state == PATCH_ACTIVE;
    }
    if (mask == 0)
        return false;
    if (sand_engine_step(engine->engine, chunk, mask, &err)) {
        manager_engine_lost(manager, scale, err.msg, now_s);
        manager->calls.lost(manager->calls.context, scale);
        return true;
    }
    if (has_active && manager->limits.speed > 0)
        engine->credit_s -= chunk_s(engine, chunk);
    for (uint32_t slot = 0; slot < engine->engine->config.slots; slot++) {
        struct patch *patch = engine->owners[slot];

        if (!(mask >> slot & 1))
            continue;
        patch->sent += chunk;
        sand_status_request(engine->engine, slot);
        manager->stats.particle_steps[scale] +=
            (uint64_t)chunk * patch->granules * engine->engine->config.params.spheres;
    }
    manager->stats.steps[scale] += chunk;
    return true;
}

/* ---- the tick -------------------------------------------------------------------------------- */

static void give_credit(struct manager *manager, double now_s)
{
    const double passed_s = manager->has_ticked ? now_s - manager->last_tick_s : 0;

    manager->has_ticked = true;
    manager->last_tick_s = now_s;
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        double *credit_s = &manager->engines[scale].credit_s;

        *credit_s = fmin(*credit_s + passed_s * manager->limits.speed, CREDIT_MAX_S);
    }
}

static void forget_the_old(struct manager *manager, double now_s)
{
    uint32_t ended = 0;
    size_t kept = 0;

    for (size_t i = 0; i < manager->count; i++)
        ended += patch_state_is_end(manager->patches[i]->state);
    for (size_t i = 0; i < manager->count; i++) {
        struct patch *patch = manager->patches[i];

        if (patch_state_is_end(patch->state) &&
            (now_s - patch->ended_at_s >= manager->limits.keep_s ||
             ended > manager->limits.kept_max)) {
            ended--;
            manager->calls.forget(manager->calls.context, patch->number);
            patch_report_unref(patch->last);
            free(patch);
            continue;
        }
        manager->patches[kept++] = patch;
    }
    manager->count = kept;
}

/* The next time of work of this patch that needs no answer and no step. */
static double next_of(const struct manager *manager, const struct patch *patch, double now_s)
{
    const struct manager_limits *limits = &manager->limits;

    if (patch_state_is_end(patch->state) && patch->has_news && !patch->last)
        return POLL_S;
    if (patch_state_is_end(patch->state))
        return fmax(0, patch->ended_at_s + limits->keep_s - now_s);
    if (patch->depth != DEPTH_NONE)
        return POLL_S;
    switch (patch->state) {
    case PATCH_FILLING:
        return patch->is_begun || stepped_count(manager) < limits->active_max ? 0 : INFINITY;
    case PATCH_ACTIVE:
        return has_held_bodies(patch) ? 0 : INFINITY;
    case PATCH_RESTING:
        if (patch->is_submitted)
            return INFINITY;
        if (patch->wants_to_wake || has_held_bodies(patch))
            return stepped_count(manager) < limits->active_max ? 0 : INFINITY;
        if (!patch->is_saved)
            return fmax(0, patch->write_at_s - now_s);
        return patch->is_closing ? 0 : fmax(0, patch->rested_at_s + limits->linger_s - now_s);
    default:
        return INFINITY;
    }
}

/* When an active patch has earned its next chunk. */
static double next_credit(const struct manager *manager)
{
    double next_s = INFINITY;

    for (size_t i = 0; i < manager->count; i++) {
        const struct patch *patch = manager->patches[i];
        const struct manager_engine *engine = &manager->engines[patch->start.scale];
        double needed_s;

        if (patch->state != PATCH_ACTIVE || !engine->engine)
            continue;
        needed_s = chunk_s(engine, chunk_of(engine)) - engine->credit_s;
        /* What could be stepped was: with credit in hand it waits for an answer. */
        if (needed_s > 0 && manager->limits.speed > 0)
            next_s = fmin(next_s, needed_s / manager->limits.speed);
        else
            next_s = fmin(next_s, POLL_S);
    }
    return next_s;
}

double manager_tick(struct manager *manager, double now_s)
{
    bool is_stepped = false, waits = false;
    double next_s;

    give_credit(manager, now_s);
    for (size_t i = 0; i < manager->count; i++) {
        struct patch *patch = manager->patches[i];

        if (!patch_state_is_end(patch->state))
            go_on(manager, patch, now_s);
        else if (patch->has_news && !patch->last)
            manager_publish(manager, patch, true,
                            now_s); /* there was no memory for it at the end */
    }
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        if (manager->engines[scale].engine)
            is_stepped |= step_engine(manager, (enum granular_scale)scale, now_s, &waits);
    forget_the_old(manager, now_s);
    if (is_stepped)
        return 0;
    next_s = waits ? POLL_S : INFINITY;
    for (size_t i = 0; i < manager->count; i++)
        next_s = fmin(next_s, next_of(manager, manager->patches[i], now_s));
    return fmin(next_s, next_credit(manager));
}
