/*
 * The OpenGL engine: its memory on the device, and what goes in. The passes of a step are in
 * gl_step.c, its results in gl_results.c, the shaders in shaders/.
 *
 * Each buffer holds all slots one after the other, with a fixed stride, so that a dispatch serves
 * all of them. All are made by create. The host keeps only bookkeeping: counts, free particles,
 * mass and reach of bodies; poses and velocities are on the device only.
 *
 * A contact's history is kept in two halves per sphere, and a bit beside the count selects the
 * current one: a sphere writes its new list into the other. So it needs no copy of 16 contacts in
 * registers, and a sleeper that is passed over keeps its list without touching it.
 *
 * Writes by glBufferSubData come between dispatches in order; those are small, but for the
 * granules of fill, which the caller portions.
 *
 * Loss: every call checks the context first. An engine belongs to one generation of the context;
 * names of objects mean others in the next, so destroy does not free them then.
 *
 * Tried and dropped: two buffers for the history that are exchanged each substep (sleepers would
 * have to copy).
 */
#include "sand/engine_gl/gl_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sand/engine_gl/gl_data.h"

_Static_assert(sizeof(struct granular_params) == 24 * 4, "as in pool_block");
_Static_assert(sizeof(struct gl_pool) == 48 * 4, "as in pool_block");
_Static_assert(sizeof(struct gl_slot_record) == 128, "as in slot_record");
_Static_assert(sizeof(struct granule) == 64, "as in granule_record");
_Static_assert(sizeof(struct granular_body) == 240, "as in body_record");
_Static_assert(sizeof(struct granular_particle) == 16, "as in particles_block");

bool gl_engine_lost(struct gl_engine *gl)
{
    if (!gl->lost)
        gl->lost = context_rebuilds(gl->context) != gl->generation || context_lost(gl->context);
    return gl->lost;
}

void gl_blocks_bind(const struct gl_engine *gl)
{
    glBindBufferBase(GL_UNIFORM_BUFFER, 0, gl->pool_buffer);
    for (GLuint i = 0; i < GL_BLOCK_COUNT; i++)
        glBindBufferBase(GL_SHADER_STORAGE_BUFFER, i, gl->buffers[i]);
}

struct gl_slot *gl_used_slot(struct sand_engine *engine, uint32_t index)
{
    CHECK(index < engine->config.slots && gl_engine_of(engine)->slot[index].used);
    return &gl_engine_of(engine)->slot[index];
}

void gl_write_at(GLuint buffer, size_t at, const void *bytes, size_t count)
{
    glBindBuffer(GL_SHADER_STORAGE_BUFFER, buffer);
    glBufferSubData(GL_SHADER_STORAGE_BUFFER, (GLintptr)at, (GLsizeiptr)count, bytes);
}

static void zero_at(GLuint buffer, size_t at, size_t count)
{
    glBindBuffer(GL_SHADER_STORAGE_BUFFER, buffer);
    glClearBufferSubData(GL_SHADER_STORAGE_BUFFER, GL_R32UI, (GLintptr)at, (GLsizeiptr)count,
                         GL_RED_INTEGER, GL_UNSIGNED_INT, NULL);
}

static void record_write(struct gl_engine *gl, uint32_t index)
{
    gl_write_at(gl->buffers[GL_BLOCK_TABLE],
                GL_RUNNING_BYTES + index * sizeof(struct gl_slot_record), &gl->slot[index].record,
                sizeof(struct gl_slot_record));
}

static void force_zero(struct gl_engine *gl, uint32_t index, uint32_t first, uint32_t count)
{
    zero_at(gl->buffers[GL_BLOCK_FORCE],
            ((size_t)index * gl->pool.spheres_max + first) * GL_SPHERE_FORCE_BYTES,
            (size_t)count * GL_SPHERE_FORCE_BYTES);
}

static enum err_code lost_error(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "the OpenGL context is lost");
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void record_make(struct gl_slot_record *record, const struct granular_params *params,
                        const struct granular_box *box, const struct granular_bed *bed)
{
    memset(record, 0, sizeof(*record));
    memcpy(record->gravity, box->gravity, sizeof(box->gravity));
    record->gravity[3] = engine_wake_force(params, box->gravity);
    memcpy(record->size, box->size, sizeof(box->size));
    record->z_low = box->z_low;
    memcpy(record->cells, box->cells, sizeof(box->cells));
    record->cells[3] = box->cells[0] * box->cells[1] * box->cells[2];
    record->bed_cols = bed->cols;
    record->bed_rows = bed->rows;
    record->bed[0] = bed->x0;
    record->bed[1] = bed->y0;
    record->bed[2] = bed->dx;
    record->bed[3] = bed->dy;
    record->friction = params->friction;
    record->stiffness = params->stiffness;
    record->damping = params->damping;
    record->mass_kg = params->mass_kg;
    record->mass_inverse = params->mass_inverse;
    record->inertia = params->inertia;
    record->inertia_inverse = params->inertia_inverse;
}

static enum err_code gl_begin(struct sand_engine *engine, uint32_t index,
                              const struct sand_slot_begin *begin, struct err *err)
{
    struct gl_engine *gl = gl_engine_of(engine);
    const struct sand_engine_config *config = &engine->config;
    struct granular_box box;
    struct gl_slot *slot;

    CHECK(index < config->slots);
    slot = &gl->slot[index];
    CHECK(!slot->used);
    if (engine_box_make(config, begin, &box, err))
        return err->code;
    if (gl_engine_lost(gl))
        return lost_error(err);
    slot->params = *engine_params_of(config, begin);
    record_make(&slot->record, &slot->params, &box, &begin->bed);
    slot->used = slot->stirred = slot->recheck = true;
    slot->steps = 0;
    memset(slot->body, 0, config->bodies_max * sizeof(*slot->body));
    memset(slot->path, 0, config->bodies_max * sizeof(*slot->path));
    record_write(gl, index);
    zero_at(gl->buffers[GL_BLOCK_FLAGS], (size_t)index * GL_FLAG_BYTES, GL_FLAG_BYTES);
    gl_write_at(gl->buffers[GL_BLOCK_BED], (size_t)index * config->bed_max * sizeof(float),
                begin->heights_m, (size_t)begin->bed.cols * begin->bed.rows * sizeof(float));
    force_zero(gl, index, 0, gl->pool.spheres_max);
    return ERR_OK;
}

static enum err_code gl_fill(struct sand_engine *engine, uint32_t index,
                             const struct granule *granules, uint32_t count, struct err *err)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const uint32_t most = engine->config.granules_max, had = slot->record.granules;

    if (count > most - had)
        return err_limit(err, ERR_UNPROCESSABLE, most, (double)had + count,
                         "%.0f granules; the pool has room for %u in a patch", (double)had + count,
                         most);
    if (gl_engine_lost(gl))
        return lost_error(err);
    if (count == 0)
        return ERR_OK;
    gl_write_at(gl->buffers[GL_BLOCK_GRANULES], ((size_t)index * most + had) * sizeof(*granules),
                granules, (size_t)count * sizeof(*granules));
    slot->record.granules += count;
    slot->stirred = slot->recheck = true;
    record_write(gl, index);
    return ERR_OK;
}

static void gl_end(struct sand_engine *engine, uint32_t index)
{
    struct gl_engine *gl = gl_engine_of(engine);

    CHECK(index < engine->config.slots);
    if (gl->slot[index].used && !gl_engine_lost(gl))
        gl_answers_drop(&gl->slot[index]);
    gl->slot[index].used = false;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

size_t gl_body_at(const struct sand_engine *engine, uint32_t index, uint32_t b)
{
    return ((size_t)index * engine->config.bodies_max + b) * sizeof(struct granular_body);
}

static size_t particle_at(const struct sand_engine *engine, uint32_t index, uint32_t p)
{
    return ((size_t)index * engine->config.particles_max + p) * sizeof(struct granular_particle);
}

/* The particles [first, first + count) belong to body b, or to none. */
static enum err_code particles_write(struct gl_engine *gl, uint32_t index, uint32_t first,
                                     uint32_t count, const float (*offsets_m)[3], uint32_t b,
                                     struct err *err)
{
    struct gl_slot *slot = &gl->slot[index];
    struct granular_particle *particle = calloc(count, sizeof(*particle));

    if (!particle)
        return err_set(err, ERR_NO_MEMORY, "no memory for a shell of %u particles", count);
    for (uint32_t p = 0; p < count; p++) {
        if (offsets_m)
            memcpy(particle[p].offset, offsets_m[p], sizeof(particle[p].offset));
        particle[p].body = b;
        slot->particle_body[first + p] = b;
    }
    gl_write_at(gl->buffers[GL_BLOCK_PARTICLES], particle_at(&gl->engine, index, first), particle,
                count * sizeof(*particle));
    free(particle);
    return ERR_OK;
}

static enum err_code gl_body_add(struct sand_engine *engine, uint32_t index,
                                 const struct sand_shape *shape, const struct sand_pose *pose,
                                 uint32_t *out, struct err *err)
{
    struct gl_engine *gl = gl_engine_of(engine);
    const struct sand_engine_config *config = &engine->config;
    struct gl_slot *slot = gl_used_slot(engine, index);
    struct gl_slot_record *record = &slot->record;
    struct granular_body body;
    uint32_t b, first;

    if (engine_body_make(&slot->params, shape, pose, &body, err) ||
        engine_body_room(config, slot->body, record->bodies_end, slot->particle_body,
                         record->particles_end, shape->particles, &b, &first, err))
        return err->code;
    if (gl_engine_lost(gl))
        return lost_error(err);
    if (particles_write(gl, index, first, shape->particles, shape->offsets_m, b, err))
        return err->code;
    body.particle_first = first;
    slot->body[b] = body;
    slot->path[b] = shape->path;
    slot->came_in[b] = slot->steps;
    gl_write_at(gl->buffers[GL_BLOCK_BODIES], gl_body_at(engine, index, b), &body, sizeof(body));
    force_zero(gl, index, gl->pool.particles_first + first, shape->particles);
    zero_at(gl->buffers[GL_BLOCK_GRANULE_FORCE],
            ((size_t)index * config->particles_max + first) * GL_SPHERE_FORCE_BYTES,
            (size_t)shape->particles * GL_SPHERE_FORCE_BYTES);
    if (record->bodies_end <= b)
        record->bodies_end = b + 1;
    if (record->particles_end < first + shape->particles)
        record->particles_end = first + shape->particles;
    record_write(gl, index);
    slot->stirred = slot->recheck = true;
    *out = b;
    return ERR_OK;
}

static struct granular_body *used_body(struct gl_slot *slot, uint32_t b)
{
    CHECK(b < slot->record.bodies_end && slot->body[b].particle_count > 0);
    return &slot->body[b];
}

static void gl_body_remove(struct sand_engine *engine, uint32_t index, uint32_t b)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    struct gl_slot_record *record = &slot->record;
    struct granular_body *body = used_body(slot, b);
    struct err err;

    if (gl_engine_lost(gl))
        return;
    /* Without memory for that they would stay; the process is about to end of it anyway. */
    CHECK(!particles_write(gl, index, body->particle_first, body->particle_count, NULL,
                           GRANULAR_BODY_NONE, &err));
    memset(body, 0, sizeof(*body));
    slot->path[b] = NULL;
    gl_write_at(gl->buffers[GL_BLOCK_BODIES], gl_body_at(engine, index, b), body, sizeof(*body));
    while (record->bodies_end > 0 && slot->body[record->bodies_end - 1].particle_count == 0)
        record->bodies_end--;
    while (record->particles_end > 0 &&
           slot->particle_body[record->particles_end - 1] == GRANULAR_BODY_NONE)
        record->particles_end--;
    record_write(gl, index);
    slot->stirred = slot->recheck = true;
}

static void gl_calm(struct sand_engine *engine, uint32_t index, float drag)
{
    struct gl_engine *gl = gl_engine_of(engine);

    gl_used_slot(engine, index)->record.calm = drag;
    if (!gl_engine_lost(gl))
        record_write(gl, index);
}

static void gl_body_velocity(struct sand_engine *engine, uint32_t index, uint32_t b,
                             const float v[3], const float w[3])
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const struct granular_body *body = used_body(slot, b);
    const float most = engine->config.params.speed_max;
    const GLuint buffer = gl->buffers[GL_BLOCK_BODIES];
    const size_t at = gl_body_at(engine, index, b);
    float value[4] = {0};

    CHECK(body->x[3] > 0);
    if (gl_engine_lost(gl))
        return;
    if (v)
        engine_velocity_cut(value, v, most);
    /* with the time of being slow, which begins again */
    gl_write_at(buffer, at + offsetof(struct granular_body, v) + (v ? 0 : 3 * sizeof(float)), value,
                v ? sizeof(value) : sizeof(float));
    if (w) {
        engine_velocity_cut(value, w, most / body->w[3]);
        gl_write_at(buffer, at + offsetof(struct granular_body, w), value, 3 * sizeof(float));
    }
    slot->stirred = true;
}

static void gl_body_impulse(struct sand_engine *engine, uint32_t index, uint32_t b,
                            const float impulse[3])
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const struct gl_program *program = &gl->program[GL_PASS_IMPULSE];

    CHECK(used_body(slot, b)->x[3] > 0);
    if (gl_engine_lost(gl))
        return;
    gl_blocks_bind(gl);
    glUseProgram(program->name);
    glUniform1ui(program->body, index * engine->config.bodies_max + b);
    glUniform3f(program->impulse, impulse[0], impulse[1], impulse[2]);
    glDispatchCompute(1, 1, 1);
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT);
    slot->stirred = true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void pool_make(const struct sand_engine_config *config, struct gl_pool *pool)
{
    float tetrahedron[GRANULE_SPHERES][3];

    memset(pool, 0, sizeof(*pool));
    pool->params = config->params;
    engine_tetrahedron(&config->params, tetrahedron);
    for (int j = 0; j < GRANULE_SPHERES; j++)
        memcpy(pool->tetrahedron[j], tetrahedron[j], sizeof(tetrahedron[j]));
    pool->granules_max = config->granules_max;
    pool->particles_first = GRANULE_SPHERES * config->granules_max;
    pool->spheres_max = pool->particles_first + config->particles_max;
    pool->bodies_max = config->bodies_max;
    pool->particles_max = config->particles_max;
    pool->block_stride = 2 * (config->cells_max / GL_SCAN_BLOCK + 1);
    pool->cell_stride = pool->block_stride / 2 * GL_SCAN_BLOCK;
    pool->bed_max = config->bed_max;
}

/* Bytes of each buffer. */
static void sizes_of(const struct sand_engine_config *config, uint64_t bytes[GL_BLOCK_COUNT])
{
    struct gl_pool pool;
    uint64_t slots = config->slots, spheres, cells;

    pool_make(config, &pool);
    spheres = slots * pool.spheres_max;
    cells = slots * pool.cell_stride;
    bytes[GL_BLOCK_TABLE] = GL_RUNNING_BYTES + slots * sizeof(struct gl_slot_record);
    bytes[GL_BLOCK_FLAGS] = slots * GL_FLAG_BYTES;
    bytes[GL_BLOCK_GRANULES] = slots * config->granules_max * sizeof(struct granule);
    bytes[GL_BLOCK_BODIES] = slots * config->bodies_max * sizeof(struct granular_body);
    bytes[GL_BLOCK_PARTICLES] = slots * config->particles_max * sizeof(struct granular_particle);
    bytes[GL_BLOCK_BED] = slots * config->bed_max * sizeof(float);
    bytes[GL_BLOCK_POSITION] = bytes[GL_BLOCK_ARM] = bytes[GL_BLOCK_SORTED] = spheres * 16;
    bytes[GL_BLOCK_FORCE] = spheres * GL_SPHERE_FORCE_BYTES;
    bytes[GL_BLOCK_GRANULE_FORCE] = slots * config->particles_max * GL_SPHERE_FORCE_BYTES;
    bytes[GL_BLOCK_CONTACT] = spheres * GL_SPHERE_CONTACT_BYTES;
    bytes[GL_BLOCK_ORDER] = spheres * 4;
    bytes[GL_BLOCK_COUNTS] = bytes[GL_BLOCK_START] = cells * 4;
    bytes[GL_BLOCK_SUMS] = slots * pool.block_stride * 4;
    bytes[GL_BLOCK_PARTIAL] = 8 * (uint64_t)gl_groups(config->granules_max, GL_GROUP_STATUS);
    bytes[GL_BLOCK_MAP] = (uint64_t)config->depth_max * 4;
    bytes[GL_BLOCK_OUT] = sizeof(float[4]);
}

uint64_t gl_engine_bytes(const struct sand_engine_config *config)
{
    uint64_t bytes[GL_BLOCK_COUNT], sum = sizeof(struct gl_pool);

    sizes_of(config, bytes);
    for (int i = 0; i < GL_BLOCK_COUNT; i++)
        sum += bytes[i];
    return sum;
}

/* Whether the device takes buffers of these sizes, and dispatches over them. */
static enum err_code buffers_fit(const struct gl_engine *gl, struct err *err)
{
    const struct sand_engine_config *config = &gl->engine.config;
    const struct context_info *info = context_info(gl->context);
    const double most = (double)info->storage_block_bytes;
    const double spheres_most = (double)GL_GROUP_FORCE * info->group_count;
    uint64_t bytes[GL_BLOCK_COUNT];

    if (gl->pool.spheres_max > spheres_most)
        return err_limit(err, ERR_UNPROCESSABLE, spheres_most, gl->pool.spheres_max,
                         "a slot of %u spheres; %.60s takes at most %.0f in one dispatch",
                         gl->pool.spheres_max, info->renderer, spheres_most);
    sizes_of(config, bytes);
    for (int i = 0; i < GL_BLOCK_COUNT; i++)
        if ((double)bytes[i] > most)
            return err_limit(err, ERR_UNPROCESSABLE, most, (double)bytes[i],
                             "the pool of %u slots of %u granules needs a buffer of %.0f bytes; "
                             "%.60s takes at most %.0f",
                             config->slots, config->granules_max, (double)bytes[i], info->renderer,
                             most);
    return ERR_OK;
}

static enum err_code buffers_make(struct gl_engine *gl, struct err *err)
{
    const struct context_info *info = context_info(gl->context);
    uint64_t bytes[GL_BLOCK_COUNT];

    sizes_of(&gl->engine.config, bytes);
    while (glGetError() != GL_NO_ERROR && !context_lost(gl->context))
        ;
    for (int i = 0; i < GL_BLOCK_COUNT; i++) {
        glGenBuffers(1, &gl->buffers[i]);
        glBindBuffer(GL_SHADER_STORAGE_BUFFER, gl->buffers[i]);
        glBufferData(GL_SHADER_STORAGE_BUFFER, (GLsizeiptr)bytes[i], NULL, GL_DYNAMIC_COPY);
    }
    gl->out_bytes = bytes[GL_BLOCK_OUT];
    glGenBuffers(1, &gl->pool_buffer);
    glBindBuffer(GL_UNIFORM_BUFFER, gl->pool_buffer);
    glBufferData(GL_UNIFORM_BUFFER, sizeof(gl->pool), &gl->pool, GL_STATIC_DRAW);
    if (glGetError() != GL_NO_ERROR)
        return err_set(err, ERR_NO_MEMORY, "%.60s has no memory for a pool of %.0f MiB",
                       info->renderer, (double)gl_engine_bytes(&gl->engine.config) / 1048576);
    zero_at(gl->buffers[GL_BLOCK_COUNTS], 0, bytes[GL_BLOCK_COUNTS]);
    zero_at(gl->buffers[GL_BLOCK_FLAGS], 0, bytes[GL_BLOCK_FLAGS]);
    return ERR_OK;
}

static void buffers_finish(struct gl_engine *gl)
{
    for (int i = 0; i < GL_BLOCK_COUNT; i++)
        glDeleteBuffers(1, &gl->buffers[i]);
    glDeleteBuffers(1, &gl->pool_buffer);
}

static bool slots_make(struct gl_engine *gl)
{
    const struct sand_engine_config *config = &gl->engine.config;

    gl->slot = calloc(config->slots, sizeof(*gl->slot));
    for (uint32_t i = 0; gl->slot && i < config->slots; i++) {
        gl->slot[i].body = calloc(config->bodies_max, sizeof(*gl->slot[i].body));
        gl->slot[i].particle_body =
            calloc(config->particles_max, sizeof(*gl->slot[i].particle_body));
        gl->slot[i].path = calloc(config->bodies_max, sizeof(*gl->slot[i].path));
        gl->slot[i].came_in = calloc(config->bodies_max, sizeof(*gl->slot[i].came_in));
        if (!gl->slot[i].body || !gl->slot[i].particle_body || !gl->slot[i].path ||
            !gl->slot[i].came_in)
            return false;
    }
    return gl->slot != NULL;
}

static void slots_finish(struct gl_engine *gl)
{
    for (uint32_t i = 0; gl->slot && i < gl->engine.config.slots; i++) {
        free(gl->slot[i].body);
        free(gl->slot[i].particle_body);
        free(gl->slot[i].path);
        free(gl->slot[i].came_in);
    }
    free(gl->slot);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void answers_finish(struct gl_slot *slot)
{
    gl_answers_drop(slot);
    for (int q = 0; q < ASK_COUNT; q++)
        for (int i = 0; i < ANSWER_RING; i++)
            glDeleteBuffers(1, &slot->answer[q][i].buffer);
}

static void gl_destroy(struct sand_engine *engine)
{
    struct gl_engine *gl = gl_engine_of(engine);

    if (context_rebuilds(gl->context) == gl->generation) {
        glFinish();
        for (uint32_t i = 0; i < engine->config.slots; i++)
            answers_finish(&gl->slot[i]);
        for (int i = 0; i < GL_CLOCKS; i++)
            glDeleteQueries(GL_STAMPS, gl->clock[i].query);
        glDeleteQueries(2, gl->depth_query);
        buffers_finish(gl);
    }
    slots_finish(gl);
    free(gl);
}

static const struct sand_engine_calls calls = {
    .name = "gl",
    .destroy = gl_destroy,
    .begin = gl_begin,
    .fill = gl_fill,
    .end = gl_end,
    .body_add = gl_body_add,
    .body_remove = gl_body_remove,
    .calm = gl_calm,
    .body_velocity = gl_body_velocity,
    .body_impulse = gl_body_impulse,
    .step = gl_step,
    .status_request = gl_status_request,
    .status_poll = gl_status_poll,
    .depth_request = gl_depth_request,
    .depth_poll = gl_depth_poll,
    .spheres_request = gl_spheres_request,
    .spheres_poll = gl_spheres_poll,
    .granules_read = gl_granules_read,
};

struct sand_engine *gl_engine_create(struct context *context,
                                     const struct sand_engine_config *config, struct err *err)
{
    struct gl_engine *gl;

    if (engine_config_check(config, err))
        return NULL;
    if (context_lost(context)) {
        lost_error(err);
        return NULL;
    }
    gl = calloc(1, sizeof(*gl));
    if (!gl) {
        err_set(err, ERR_NO_MEMORY, "no memory for an engine");
        return NULL;
    }
    gl->engine.calls = &calls;
    gl->engine.config = *config;
    gl->context = context;
    gl->generation = context_rebuilds(context);
    gl->software = context_info(context)->software;
    gl->persistent = epoxy_has_gl_extension("GL_ARB_buffer_storage");
    pool_make(config, &gl->pool);
    if (!slots_make(gl)) {
        err_set(err, ERR_NO_MEMORY, "no memory for %u slots", config->slots);
        goto fail_slots;
    }
    if (buffers_fit(gl, err))
        goto fail_slots;
    gl->program = gl_programs(context, err);
    if (!gl->program)
        goto fail_slots;
    if (buffers_make(gl, err))
        goto fail_buffers;
    for (int i = 0; i < GL_CLOCKS; i++)
        glGenQueries(GL_STAMPS, gl->clock[i].query);
    glGenQueries(2, gl->depth_query);
    return &gl->engine;

fail_buffers:
    buffers_finish(gl);
fail_slots:
    slots_finish(gl);
    free(gl);
    return NULL;
}
