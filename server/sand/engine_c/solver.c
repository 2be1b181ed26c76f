/*
 * The C engine: slots, their memory, and what goes in. The step itself is in solver_step.c, its
 * results in solver_results.c.
 *
 * All memory of all slots is taken by create, so that a new patch cannot fail for lack of it, and
 * nothing is allocated while patches run. Slots are stepped one after the other, each by all
 * threads.
 *
 * Invariants: bodies and particles that are in use lie below bodies_end and particles_end; the
 * particles of a body are contiguous; particles of removed bodies have body
 * GRANULAR_BODY_NONE and take part in nothing. A free stretch of particles is found first-fit.
 */
#include "sand/engine_c/solver.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sand/engine_input.h"
#include "sand/engine_c/solver_data.h"

static void slot_free(struct slot *slot)
{
    free(slot->granule);
    free(slot->body);
    free(slot->particle_body);
    free(slot->offset);
    free(slot->bed_m);
    free(slot->position);
    free(slot->arm);
    free(slot->force);
    free(slot->torque);
    free(slot->cell);
    free(slot->contacts);
    free(slot->contact);
    free(slot->cell_first);
    free(slot->cell_awake);
    free(slot->sorted);
}

static bool slot_allocate(struct slot *slot, const struct sand_engine_config *config,
                          uint32_t spheres)
{
    slot->granule = calloc(config->granules_max, sizeof(*slot->granule));
    slot->body = calloc(config->bodies_max, sizeof(*slot->body));
    slot->particle_body = calloc(config->particles_max, sizeof(*slot->particle_body));
    slot->offset = calloc(config->particles_max, sizeof(*slot->offset));
    slot->bed_m = calloc(config->bed_max, sizeof(*slot->bed_m));
    slot->position = calloc(spheres, sizeof(*slot->position));
    slot->arm = calloc(spheres, sizeof(*slot->arm));
    slot->force = calloc(spheres, sizeof(*slot->force));
    slot->torque = calloc(spheres, sizeof(*slot->torque));
    slot->cell = calloc(spheres, sizeof(*slot->cell));
    slot->contacts = calloc(spheres, sizeof(*slot->contacts));
    slot->contact = calloc(spheres, sizeof(*slot->contact));
    slot->cell_first = calloc((size_t)config->cells_max + 2, sizeof(*slot->cell_first));
    slot->cell_awake = calloc(config->cells_max, sizeof(*slot->cell_awake));
    slot->sorted = calloc(spheres, sizeof(*slot->sorted));
    return slot->granule && slot->body && slot->particle_body && slot->offset && slot->bed_m &&
           slot->position && slot->arm && slot->force && slot->torque && slot->cell &&
           slot->contacts && slot->contact && slot->cell_first && slot->cell_awake && slot->sorted;
}

static void solver_destroy(struct sand_engine *engine)
{
    struct solver *solver = solver_of(engine);

    workers_destroy(solver->workers);
    for (uint32_t i = 0; solver->slot && i < engine->config.slots; i++)
        slot_free(&solver->slot[i]);
    free(solver->slot);
    free(solver);
}

static struct slot *used_slot(struct sand_engine *engine, uint32_t index)
{
    struct slot *slot;

    CHECK(index < engine->config.slots);
    slot = &solver_of(engine)->slot[index];
    CHECK(slot->used);
    return slot;
}

static enum err_code solver_begin(struct sand_engine *engine, uint32_t index,
                                  const struct sand_slot_begin *begin, struct err *err)
{
    const struct sand_engine_config *config = &engine->config;
    struct slot *slot;

    CHECK(index < config->slots);
    slot = &solver_of(engine)->slot[index];
    CHECK(!slot->used);
    if (engine_box_make(config, begin, &slot->box, err))
        return err->code;
    for (int i = 0; i < 3; i++) {
        slot->side[i] = config->params.cell_m;
        slot->period[i] = 0;
    }
    slot->bed = begin->bed;
    memcpy(slot->bed_m, begin->heights_m,
           (size_t)begin->bed.cols * begin->bed.rows * sizeof(*slot->bed_m));
    slot->wake_force = engine_wake_force(&config->params, begin->gravity);
    slot->used = true;
    slot->failed = slot->status_asked = slot->depth_asked = slot->spheres_asked = false;
    slot->recheck = true;
    slot->granules = slot->bodies_end = slot->particles_end = 0;
    slot->steps = 0;
    memset(slot->body, 0, config->bodies_max * sizeof(*slot->body));
    return ERR_OK;
}

void solver_slot_periodic(struct sand_engine *engine, uint32_t index, float height_m)
{
    struct slot *slot = used_slot(engine, index);
    struct granular_box *box = &slot->box;
    const float size[3] = {box->size[0], box->size[1], height_m};

    CHECK(slot->granules == 0 && slot->bodies_end == 0);
    for (int i = 0; i < 3; i++) {
        if (!(size[i] > 0))
            continue;
        box->cells[i] = (uint32_t)floorf(size[i] / engine->config.params.cell_m);
        CHECK(box->cells[i] >= 3);
        slot->side[i] = size[i] / (float)box->cells[i];
        slot->period[i] = size[i];
    }
    CHECK((uint64_t)box->cells[0] * box->cells[1] * box->cells[2] <= engine->config.cells_max);
}

static enum err_code solver_fill(struct sand_engine *engine, uint32_t index,
                                 const struct granule *granules, uint32_t count, struct err *err)
{
    struct slot *slot = used_slot(engine, index);
    const uint32_t room = engine->config.granules_max - slot->granules;

    if (count > room)
        return err_limit(err, ERR_UNPROCESSABLE, engine->config.granules_max,
                         (double)slot->granules + count,
                         "%.0f granules; the pool has room for %u in a patch",
                         (double)slot->granules + count, engine->config.granules_max);
    if (count == 0)
        return ERR_OK;
    memcpy(slot->granule + slot->granules, granules, count * sizeof(*granules));
    memset(slot->contacts + GRANULE_SPHERES * slot->granules, 0,
           GRANULE_SPHERES * count * sizeof(*slot->contacts));
    slot->granules += count;
    slot->recheck = true;
    return ERR_OK;
}

static void solver_end(struct sand_engine *engine, uint32_t index)
{
    CHECK(index < engine->config.slots);
    solver_of(engine)->slot[index].used = false;
}

/* ---- bodies --------------------------------------------------------------------------------- */

static enum err_code solver_body_add(struct sand_engine *engine, uint32_t index,
                                     const struct sand_shape *shape, const struct sand_pose *pose,
                                     uint32_t *out, struct err *err)
{
    const struct sand_engine_config *config = &engine->config;
    struct slot *slot = used_slot(engine, index);
    struct granular_body body;
    uint32_t b = 0, first;

    if (engine_body_make(&config->params, shape, pose, &body, err))
        return err->code;
    while (b < slot->bodies_end && slot->body[b].particle_count > 0)
        b++;
    if (b == config->bodies_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->bodies_max, config->bodies_max + 1,
                         "a patch has room for %u bodies", config->bodies_max);
    first = engine_particles_find(slot->particle_body, slot->particles_end, config->particles_max,
                                  shape->particles);
    if (first == config->particles_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->particles_max, shape->particles,
                         "a shell of %u particles; a patch has room for %u of all its bodies",
                         shape->particles, config->particles_max);
    body.particle_first = first;
    slot->body[b] = body;
    for (uint32_t p = 0; p < shape->particles; p++) {
        memcpy(slot->offset[first + p], shape->offsets_m[p], sizeof(float[3]));
        slot->particle_body[first + p] = b;
        slot->contacts[particles_first(solver_of(engine)) + first + p] = 0;
    }
    if (slot->bodies_end <= b)
        slot->bodies_end = b + 1;
    if (slot->particles_end < first + shape->particles)
        slot->particles_end = first + shape->particles;
    slot->recheck = true;
    *out = b;
    return ERR_OK;
}

static struct granular_body *used_body(struct slot *slot, uint32_t index)
{
    CHECK(index < slot->bodies_end && slot->body[index].particle_count > 0);
    return &slot->body[index];
}

static void solver_body_remove(struct sand_engine *engine, uint32_t index, uint32_t b)
{
    struct slot *slot = used_slot(engine, index);
    struct granular_body *body = used_body(slot, b);

    for (uint32_t p = 0; p < body->particle_count; p++)
        slot->particle_body[body->particle_first + p] = GRANULAR_BODY_NONE;
    body->particle_count = 0;
    while (slot->bodies_end > 0 && slot->body[slot->bodies_end - 1].particle_count == 0)
        slot->bodies_end--;
    while (slot->particles_end > 0 &&
           slot->particle_body[slot->particles_end - 1] == GRANULAR_BODY_NONE)
        slot->particles_end--;
    slot->recheck = true;
}

static void solver_body_velocity(struct sand_engine *engine, uint32_t index, uint32_t b,
                                 const float v[3], const float w[3])
{
    const struct granular_params *params = &engine->config.params;
    struct granular_body *body = used_body(used_slot(engine, index), b);

    if (v)
        engine_velocity_cut(body->v, v, params->speed_max);
    if (w)
        engine_velocity_cut(body->w, w, params->speed_max / body->w[3]);
    body->v[3] = 0;
}

static void solver_body_impulse(struct sand_engine *engine, uint32_t index, uint32_t b,
                                const float impulse[3])
{
    const struct granular_params *params = &engine->config.params;
    struct granular_body *body = used_body(used_slot(engine, index), b);
    float v[3];

    for (int i = 0; i < 3; i++)
        v[i] = body->v[i] + impulse[i] * body->x[3];
    engine_velocity_cut(body->v, v, params->speed_max);
    body->v[3] = 0;
}

/* ---- the engine ----------------------------------------------------------------------------- */

static enum err_code solver_step(struct sand_engine *engine, uint32_t substeps, uint64_t active,
                                 struct err *err)
{
    struct solver *solver = solver_of(engine);

    (void)err;
    for (uint32_t k = 0; k < substeps; k++) {
        memset(solver->phase_ms, 0, sizeof(float) * SAND_PHASE_DEPTH);
        for (uint32_t i = 0; i < engine->config.slots; i++) {
            struct slot *slot = &solver->slot[i];

            if ((active >> i & 1) && slot->used && !slot->failed)
                solver_step_slot(solver, slot);
        }
    }
    return ERR_OK;
}

static const struct sand_engine_calls calls = {
    .name = "c",
    .destroy = solver_destroy,
    .begin = solver_begin,
    .fill = solver_fill,
    .end = solver_end,
    .body_add = solver_body_add,
    .body_remove = solver_body_remove,
    .body_velocity = solver_body_velocity,
    .body_impulse = solver_body_impulse,
    .step = solver_step,
    .status_request = solver_status_request,
    .status_poll = solver_status_poll,
    .depth_request = solver_depth_request,
    .depth_poll = solver_depth_poll,
    .spheres_request = solver_spheres_request,
    .spheres_poll = solver_spheres_poll,
    .granules_read = solver_granules_read,
};

struct sand_engine *solver_create(const struct sand_engine_config *config, struct err *err)
{
    struct solver *solver;

    if (engine_config_check(config, err))
        return NULL;
    solver = calloc(1, sizeof(*solver));
    if (!solver) {
        err_set(err, ERR_NO_MEMORY, "no memory for an engine");
        return NULL;
    }
    solver->engine.calls = &calls;
    solver->engine.config = *config;
    solver->spheres_max = config->granules_max * GRANULE_SPHERES + config->particles_max;
    solver->workers = workers_create(config->threads);
    solver->slot = calloc(config->slots, sizeof(*solver->slot));
    engine_tetrahedron(&config->params, solver->tetrahedron);
    for (uint32_t i = 0; i < config->slots; i++) {
        if (solver->workers && solver->slot &&
            slot_allocate(&solver->slot[i], config, solver->spheres_max))
            continue;
        err_set(err, ERR_NO_MEMORY, "no memory for %u slots of %u granules", config->slots,
                config->granules_max);
        solver_destroy(&solver->engine);
        return NULL;
    }
    return &solver->engine;
}
