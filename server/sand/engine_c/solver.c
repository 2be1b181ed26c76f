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

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sand/engine_input.h"
#include "sand/engine_c/solver_data.h"
#include "sand/engine_c/solver_lanes.h"

#define SKIN 0.3f /* of a radius */

static void slot_free(struct slot *slot)
{
    free(slot->mover);
    free(slot->body);
    free(slot->path);
    free(slot->came_in);
    free(slot->particle_body);
    free(slot->offset);
    free(slot->bed_m);
    free(slot->position);
    free(slot->granule_list);
    free(slot->particle_list);
    free(slot->listed);
    free(slot->load);
    free(slot->by_granules);
    free(slot->cell);
    free(slot->next);
    free(slot->awake);
    free(slot->hot);
    free(slot->crowded);
    free(slot->beside);
    free(slot->border);
    free(slot->head);
}

/* Cells of clusters are more than twice as wide as those of spheres that config counts. */
static uint32_t cells_room(const struct sand_engine_config *config)
{
    return config->params.spheres == 1 ? config->cells_max : config->cells_max / 2 + 1;
}

/* Takes memory and counts it. */
static void *take(size_t count, size_t size, uint64_t *bytes)
{
    *bytes += count * size;
    return calloc(count, size);
}

static bool slot_allocate(struct slot *slot, const struct solver *solver, uint64_t *bytes)
{
    const struct sand_engine_config *config = &solver->engine.config;
    const size_t clusters = (size_t)solver->particle_clusters + config->particles_max;
    const size_t words = (clusters + WORD_BITS - 1) / WORD_BITS;

    slot->mover = take(ground_mover(solver) + 1, sizeof(*slot->mover), bytes);
    slot->body = take(config->bodies_max, sizeof(*slot->body), bytes);
    slot->path = take(config->bodies_max, sizeof(*slot->path), bytes);
    slot->came_in = take(config->bodies_max, sizeof(*slot->came_in), bytes);
    slot->particle_body = take(config->particles_max, sizeof(*slot->particle_body), bytes);
    slot->offset = take(config->particles_max, sizeof(*slot->offset), bytes);
    slot->bed_m = take(config->bed_max, sizeof(*slot->bed_m), bytes);
    /* one that touches nothing; a granule's spheres are read four at a time */
    slot->position = take(solver->spheres_max + 4, sizeof(*slot->position), bytes);
    slot->granule_list = take(config->granules_max, sizeof(*slot->granule_list), bytes);
    slot->particle_list = take(config->particles_max, sizeof(*slot->particle_list), bytes);
    slot->listed = take(clusters, sizeof(*slot->listed), bytes);
    slot->load = take(clusters, sizeof(*slot->load), bytes);
    slot->by_granules = take(config->particles_max, sizeof(*slot->by_granules), bytes);
    slot->cell = take(clusters, sizeof(*slot->cell), bytes);
    slot->next = take(clusters, sizeof(*slot->next), bytes);
    slot->awake = take(words, sizeof(*slot->awake), bytes);
    slot->hot = take(words, sizeof(*slot->hot), bytes);
    slot->crowded = take(words, sizeof(*slot->crowded), bytes);
    slot->beside = take(words, sizeof(*slot->beside), bytes);
    slot->border = take(words, sizeof(*slot->border), bytes);
    slot->head = take(cells_room(config), sizeof(*slot->head), bytes);
    return slot->mover && slot->body && slot->path && slot->came_in && slot->particle_body &&
           slot->offset && slot->bed_m && slot->by_granules && slot->position &&
           slot->granule_list && slot->particle_list && slot->listed && slot->load && slot->cell &&
           slot->next && slot->awake && slot->hot && slot->crowded && slot->beside &&
           slot->border && slot->head;
}

/* What rests, as stiff as its partner, and the sphere that nothing touches. */
static void ground_make(const struct solver *solver, struct slot *slot)
{
    const uint32_t ground = ground_mover(solver);
    float *nowhere = slot->position[solver->spheres_max];

    slot->mover[ground] =
        (struct granule){.x = {0, 0, 0, FLT_MAX}, .q = {0, 0, 0, 1}, .v = {0, 0, 0, INFINITY}};
    nowhere[0] = nowhere[1] = nowhere[2] = 1e18f; /* its square is finite */
    memcpy(&nowhere[3], &ground, sizeof(ground));
}

uint64_t solver_bytes(const struct sand_engine *engine)
{
    return ((const struct solver *)engine)->bytes;
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

/*
 * Cells that are as wide as the farthest centres of a pair and what neighbours.c adds. As many
 * layers as fit: what is above counts to the highest, which is right and only slower.
 */
static void grid_make(const struct solver *solver, struct slot *slot, const float period[3],
                      float height_m)
{
    const float width =
        2 * (solver->reach_m + solver->engine.config.params.radius_m) + 2 * solver->skin_m;
    const float size[3] = {slot->box.size[0], slot->box.size[1], height_m + width};
    uint32_t room = cells_room(&solver->engine.config);

    for (int a = 0; a < 3; a++) {
        const float cells = period[a] > 0 ? floorf(period[a] / width) : ceilf(size[a] / width);

        slot->period[a] = period[a];
        slot->cells[a] = (uint32_t)fminf(fmaxf(cells, 1), (float)room);
        slot->side[a] = period[a] > 0 ? period[a] / (float)slot->cells[a] : width;
        CHECK(slot->cells[a] >= 1);
        room /= slot->cells[a];
    }
}

/* Its highest sample, and how far above it a sphere may be that touches it before the next list:
   within `near` of a slope, and that slope may be half a skin farther on. */
static void bed_measure(struct slot *slot, float near)
{
    const struct granular_bed *bed = &slot->bed;
    float top = slot->bed_m[0], x_rise = 0, y_rise = 0;

    for (uint32_t i = 0; i < bed->cols * bed->rows; i++) {
        const float *at = &slot->bed_m[i];

        top = fmaxf(top, *at);
        if (i % bed->cols + 1 < bed->cols)
            x_rise = fmaxf(x_rise, fabsf(at[1] - at[0]) / bed->dx);
        if (i / bed->cols + 1 < bed->rows)
            y_rise = fmaxf(y_rise, fabsf(at[bed->cols] - at[0]) / bed->dy);
    }
    slot->bed_top_m = top;
    slot->bed_near_m = near * sqrtf(1 + x_rise * x_rise + y_rise * y_rise);
}

static uint32_t words_for(uint32_t clusters)
{
    return (clusters + WORD_BITS - 1) / WORD_BITS;
}

static enum err_code solver_begin(struct sand_engine *engine, uint32_t index,
                                  const struct sand_slot_begin *begin, struct err *err)
{
    const struct sand_engine_config *config = &engine->config;
    const uint32_t words = words_for(solver_of(engine)->particle_clusters + config->particles_max);
    struct slot *slot;

    CHECK(index < config->slots);
    slot = &solver_of(engine)->slot[index];
    CHECK(!slot->used);
    if (engine_box_make(config, begin, &slot->box, err))
        return err->code;
    grid_make(solver_of(engine), slot, (const float[3]){0, 0, 0}, begin->height_m);
    slot->params = *engine_params_of(config, begin);
    slot->bed = begin->bed;
    memcpy(slot->bed_m, begin->heights_m,
           (size_t)begin->bed.cols * begin->bed.rows * sizeof(*slot->bed_m));
    bed_measure(slot, config->params.radius_m + solver_of(engine)->skin_m);
    slot->wake_force = engine_wake_force(&slot->params, begin->gravity);
    slot->used = true;
    slot->failed = slot->status_asked = slot->depth_asked = slot->spheres_asked = false;
    slot->recheck = true;
    slot->granules = slot->bodies_end = slot->particles_end = 0;
    slot->steps = 0;
    memset(slot->body, 0, config->bodies_max * sizeof(*slot->body));
    memset(slot->awake, 0, words * sizeof(*slot->awake));
    memset(slot->hot, 0, words * sizeof(*slot->hot));
    return ERR_OK;
}

void solver_slot_periodic(struct sand_engine *engine, uint32_t index, float height_m)
{
    struct slot *slot = used_slot(engine, index);
    const struct granular_box *box = &slot->box;
    const float size[3] = {box->size[0], box->size[1], height_m};

    CHECK(slot->granules == 0 && slot->bodies_end == 0);
    for (int i = 0; i < 3; i++)
        CHECK(!(size[i] > 0) || size[i] >= 3 * engine->config.params.cell_m);
    grid_make(solver_of(engine), slot, size, 0);
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
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t g = slot->granules++;
        struct granule *granule = &slot->mover[g];

        *granule = granules[i];
        granule->x[3] = 1;
        granule->w[3] = INFINITY;
        slot->listed[g] = 0;
        solver_place_granule(solver_of(engine), slot, g);
        bit_set(slot->awake, g, !mover_asleep(&slot->params, granule));
    }
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
    const struct solver *solver = solver_of(engine);
    struct slot *slot = used_slot(engine, index);
    struct granular_body body;
    uint32_t b, first;

    if (engine_body_make(&slot->params, shape, pose, &body, err) ||
        engine_body_room(config, slot->body, slot->bodies_end, slot->particle_body,
                         slot->particles_end, shape->particles, &b, &first, err))
        return err->code;
    body.particle_first = first;
    slot->body[b] = body;
    slot->path[b] = shape->path;
    slot->came_in[b] = slot->steps;
    slot->mover[body_mover(solver, b)].x[3] = body.soft;
    slot->mover[body_mover(solver, b)].w[3] = INFINITY;
    for (uint32_t p = 0; p < shape->particles; p++) {
        memcpy(slot->offset[first + p], shape->offsets_m[p], sizeof(float[3]));
        slot->particle_body[first + p] = b;
        slot->listed[solver->particle_clusters + first + p] = 0;
        bit_set(slot->awake, solver->particle_clusters + first + p, true);
    }
    solver_place_particles(solver, slot, first, first + shape->particles);
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
    const uint32_t first = solver_of(engine)->particle_clusters + body->particle_first;

    for (uint32_t p = 0; p < body->particle_count; p++) {
        slot->particle_body[body->particle_first + p] = GRANULAR_BODY_NONE;
        bit_set(slot->awake, first + p, false);
        bit_set(slot->hot, first + p, false);
    }
    body->particle_count = 0;
    while (slot->bodies_end > 0 && slot->body[slot->bodies_end - 1].particle_count == 0)
        slot->bodies_end--;
    while (slot->particles_end > 0 &&
           slot->particle_body[slot->particles_end - 1] == GRANULAR_BODY_NONE)
        slot->particles_end--;
    slot->recheck = true;
}

static void solver_calm(struct sand_engine *engine, uint32_t index, float drag)
{
    used_slot(engine, index)->calm = drag;
}

static void solver_body_velocity(struct sand_engine *engine, uint32_t index, uint32_t b,
                                 const float v[3], const float w[3])
{
    const struct granular_params *params = &engine->config.params;
    struct granular_body *body = used_body(used_slot(engine, index), b);

    CHECK(body->x[3] > 0);
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

    CHECK(body->x[3] > 0);
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
    .calm = solver_calm,
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
    solver->particle_clusters = words_for(config->granules_max) * WORD_BITS;
    engine_tetrahedron(&config->params, solver->tetrahedron);
    solver->reach_m = solver->tetrahedron[0][0] * sqrtf(3);
    solver->skin_m = SKIN * config->params.radius_m;
    solver->lanes = solver_lanes();
    solver->workers = workers_create(config->threads);
    solver->slot = calloc(config->slots, sizeof(*solver->slot));
    for (uint32_t i = 0; i < config->slots; i++) {
        if (solver->workers && solver->slot &&
            slot_allocate(&solver->slot[i], solver, &solver->bytes)) {
            ground_make(solver, &solver->slot[i]);
            continue;
        }
        err_set(err, ERR_NO_MEMORY, "no memory for %u slots of %u granules", config->slots,
                config->granules_max);
        solver_destroy(&solver->engine);
        return NULL;
    }
    return &solver->engine;
}
