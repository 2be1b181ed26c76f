/*
 * The C engine: slots, their memory, and what goes in. The step itself is in solver_step.c, what
 * comes out in solver_look.c.
 *
 * All memory of all slots is taken by create, so that a patch that begins cannot fail for want of
 * it, and nothing is allocated while patches run. Slots are stepped one after the other, each by
 * all threads.
 *
 * Invariants: bodies and particles that are in use lie below bodies_end and particles_end; the
 * particles of a body are contiguous; particles of removed bodies have body NO_CELL and take part
 * in nothing. A free stretch of particles is found first-fit.
 */
#include "sand/solver.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sand/solver_data.h"

static void slot_free(struct slot *slot)
{
    free(slot->granule);
    free(slot->body);
    free(slot->particle);
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
    slot->particle = calloc(config->particles_max, sizeof(*slot->particle));
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
    return slot->granule && slot->body && slot->particle && slot->bed_m && slot->position &&
           slot->arm && slot->force && slot->torque && slot->cell && slot->contacts &&
           slot->contact && slot->cell_first && slot->cell_awake && slot->sorted;
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

/* The cell grid of a box: as many layers as the height needs, or as cells_max has room for. */
static enum err_code box_make(const struct sand_engine_config *config,
                              const struct sand_slot_begin *begin, float z_low,
                              struct granular_box *box, struct err *err)
{
    const float cell = config->params.cell_m;
    double nx = ceil(begin->size_m[0] / cell), ny = ceil(begin->size_m[1] / cell);
    double nz = ceil(begin->height_m / cell) + 1;

    if (!(nx >= 1 && ny >= 1 && nx * ny <= config->cells_max))
        return err_limit(err, ERR_UNPROCESSABLE, config->cells_max, nx * ny,
                         "a patch of %g by %g m has %g cells in a layer; the pool has room for %u",
                         begin->size_m[0], begin->size_m[1], nx * ny, config->cells_max);
    nz = fmax(fmin(nz, floor(config->cells_max / (nx * ny))), 1);
    memcpy(box->size, begin->size_m, sizeof(box->size));
    memcpy(box->gravity, begin->gravity, sizeof(box->gravity));
    box->z_low = z_low;
    box->cells[0] = (uint32_t)nx;
    box->cells[1] = (uint32_t)ny;
    box->cells[2] = (uint32_t)nz;
    return ERR_OK;
}

static enum err_code solver_begin(struct sand_engine *engine, uint32_t index,
                                  const struct sand_slot_begin *begin, struct err *err)
{
    const struct sand_engine_config *config = &engine->config;
    struct slot *slot;
    double samples = (double)begin->bed.cols * begin->bed.rows;
    float z_low;

    CHECK(index < config->slots);
    slot = &solver_of(engine)->slot[index];
    CHECK(!slot->used);
    CHECK(begin->bed.cols >= 2 && begin->bed.rows >= 2);
    CHECK(begin->bed.dx > 0 && begin->bed.dy > 0);
    if (samples > config->bed_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->bed_max, samples,
                         "a bed of %u by %u samples; the pool has room for %u", begin->bed.cols,
                         begin->bed.rows, config->bed_max);
    z_low = begin->heights_m[0];
    for (uint32_t i = 0; i < begin->bed.cols * begin->bed.rows; i++)
        z_low = fminf(z_low, begin->heights_m[i]);
    if (box_make(config, begin, z_low, &slot->box, err))
        return err->code;
    for (int i = 0; i < 3; i++) {
        slot->side[i] = config->params.cell_m;
        slot->period[i] = 0;
    }
    slot->bed = begin->bed;
    memcpy(slot->bed_m, begin->heights_m, (size_t)samples * sizeof(*slot->bed_m));
    slot->wake_force = config->params.wake_fraction * config->params.mass_kg *
                       fmaxf(sqrtf(f3_dot(f3_of(begin->gravity), f3_of(begin->gravity))), 0.1f);
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

/* First of `count` free particles in a row, or particles_max. */
static uint32_t particles_find(const struct sand_engine_config *config, const struct slot *slot,
                               uint32_t count)
{
    uint32_t run = 0;

    for (uint32_t p = 0; p < slot->particles_end; p++) {
        run = slot->particle[p].body == NO_CELL ? run + 1 : 0;
        if (run == count)
            return p + 1 - count;
    }
    return config->particles_max - slot->particles_end + run >= count ? slot->particles_end - run
                                                                      : config->particles_max;
}

static bool all_finite(const float *a, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(a[i]))
            return false;
    return true;
}

/* The inverse by cofactors, in float64. False when the matrix is not positive definite. */
static bool inertia_set(struct granular_body *body, const float inertia[3][3])
{
    double m[3][3], cofactor[3][3], det = 0;

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m[i][j] = 0.5 * ((double)inertia[i][j] + inertia[j][i]);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;

            cofactor[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
        }
    }
    for (int j = 0; j < 3; j++)
        det += m[0][j] * cofactor[0][j];
    if (!(m[0][0] > 0 && cofactor[2][2] > 0 && det > 0))
        return false;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            body->inertia[i][j] = (float)m[i][j];
            body->inertia_inverse[i][j] = (float)(cofactor[j][i] / det);
        }
    }
    return all_finite(body->inertia_inverse[0], 12);
}

static enum err_code body_make(const struct granular_params *params, const struct sand_shape *shape,
                               const struct sand_pose *pose, struct granular_body *body,
                               struct err *err)
{
    double reach = 0, length = 0;

    memset(body, 0, sizeof(*body));
    if (!all_finite(pose->x, 3) || !all_finite(pose->q, 4) || !all_finite(pose->v, 3) ||
        !all_finite(pose->w, 3))
        return err_set(err, ERR_BAD_INPUT, "a pose or velocity of the body is not finite");
    for (int i = 0; i < 4; i++)
        length += (double)pose->q[i] * pose->q[i];
    if (!(length > 1e-12))
        return err_set(err, ERR_BAD_INPUT, "the orientation of the body has no length");
    if (!(shape->mass_kg > 0 && isfinite(shape->mass_kg) && isfinite(1 / shape->mass_kg) &&
          isfinite(granular_soft(params, shape->mass_kg, 1)) &&
          granular_soft(params, shape->mass_kg, shape->particles) > 0))
        return err_set(err, ERR_BAD_INPUT, "the mass of the body is %g kg; it must be above 0",
                       shape->mass_kg);
    if (!inertia_set(body, shape->inertia))
        return err_set(err, ERR_BAD_INPUT, "the inertia of the body is not positive definite");
    for (uint32_t p = 0; p < shape->particles; p++) {
        if (!all_finite(shape->offsets_m[p], 3))
            return err_set(err, ERR_BAD_INPUT, "particle %u of the body is not finite", p);
        reach = fmax(reach, sqrt(f3_dot(f3_of(shape->offsets_m[p]), f3_of(shape->offsets_m[p]))));
    }
    memcpy(body->x, pose->x, sizeof(pose->x));
    body->x[3] = 1 / shape->mass_kg;
    for (int i = 0; i < 4; i++)
        body->q[i] = (float)(pose->q[i] / sqrt(length));
    body->w[3] = (float)reach + params->radius_m;
    body->particle_count = shape->particles;
    body->soft = granular_soft(params, shape->mass_kg, shape->particles);
    return ERR_OK;
}

static void velocity_set(float *out, const float in[3], float most)
{
    double length = sqrt((double)in[0] * in[0] + (double)in[1] * in[1] + (double)in[2] * in[2]);
    double scale = length > most ? most / length : 1;

    for (int i = 0; i < 3; i++)
        out[i] = (float)(in[i] * scale);
}

static enum err_code solver_body_add(struct sand_engine *engine, uint32_t index,
                                     const struct sand_shape *shape, const struct sand_pose *pose,
                                     uint32_t *out, struct err *err)
{
    const struct sand_engine_config *config = &engine->config;
    struct slot *slot = used_slot(engine, index);
    struct granular_body body;
    uint32_t b = 0, first;

    CHECK(shape->particles >= 1);
    if (body_make(&config->params, shape, pose, &body, err))
        return err->code;
    velocity_set(body.v, pose->v, config->params.speed_max);
    velocity_set(body.w, pose->w, config->params.speed_max / body.w[3]);
    while (b < slot->bodies_end && slot->body[b].particle_count > 0)
        b++;
    if (b == config->bodies_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->bodies_max, config->bodies_max + 1,
                         "a patch has room for %u bodies", config->bodies_max);
    first = particles_find(config, slot, shape->particles);
    if (first == config->particles_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->particles_max, shape->particles,
                         "a shell of %u particles; a patch has room for %u of all its bodies",
                         shape->particles, config->particles_max);
    body.particle_first = first;
    slot->body[b] = body;
    for (uint32_t p = 0; p < shape->particles; p++) {
        memcpy(slot->particle[first + p].offset, shape->offsets_m[p], sizeof(float[3]));
        slot->particle[first + p].body = b;
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
        slot->particle[body->particle_first + p].body = NO_CELL;
    body->particle_count = 0;
    while (slot->bodies_end > 0 && slot->body[slot->bodies_end - 1].particle_count == 0)
        slot->bodies_end--;
    while (slot->particles_end > 0 && slot->particle[slot->particles_end - 1].body == NO_CELL)
        slot->particles_end--;
    slot->recheck = true;
}

static void solver_body_velocity(struct sand_engine *engine, uint32_t index, uint32_t b,
                                 const float v[3], const float w[3])
{
    const struct granular_params *params = &engine->config.params;
    struct granular_body *body = used_body(used_slot(engine, index), b);

    if (v)
        velocity_set(body->v, v, params->speed_max);
    if (w)
        velocity_set(body->w, w, params->speed_max / body->w[3]);
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
    velocity_set(body->v, v, params->speed_max);
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

static enum err_code config_check(const struct sand_engine_config *config, struct err *err)
{
    const struct {
        const char *name;
        uint32_t value, most;
    } fields[] = {
        {"slots", config->slots, SAND_SLOTS_MAX},
        {"granules_max", config->granules_max, 1u << 24},
        {"bodies_max", config->bodies_max, SAND_BODIES_MAX},
        {"particles_max", config->particles_max, 1u << 24},
        {"cells_max", config->cells_max, 1u << 28},
        {"bed_max", config->bed_max, 1u << 24},
        {"depth_max", config->depth_max, 1u << 28},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].value < 1 || fields[i].value > fields[i].most)
            return err_limit(err, ERR_BAD_INPUT, fields[i].most, fields[i].value,
                             "%s of the pool is %u; it must be 1 to %u", fields[i].name,
                             fields[i].value, fields[i].most);
    return ERR_OK;
}

static void tetrahedron_make(struct solver *solver)
{
    const struct granular_params *params = &solver->engine.config.params;
    float s = params->spheres == 1 ? 0 : (float)(params->radius_m / sqrt(2));

    for (int j = 0; j < GRANULE_SPHERES; j++)
        solver->tetrahedron[j] = f3_scale(f3_of(GRANULE_CORNER[j]), s);
}

struct sand_engine *solver_create(const struct sand_engine_config *config, struct err *err)
{
    struct solver *solver;

    if (config_check(config, err))
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
    tetrahedron_make(solver);
    for (uint32_t i = 0; i < config->slots; i++) {
        if (solver->slot && slot_allocate(&solver->slot[i], config, solver->spheres_max))
            continue;
        err_set(err, ERR_NO_MEMORY, "no memory for %u slots of %u granules", config->slots,
                config->granules_max);
        solver_destroy(&solver->engine);
        return NULL;
    }
    return &solver->engine;
}
