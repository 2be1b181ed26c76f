/*
 * What the OpenGL engine answers: status, top-down depth, spheres.
 *
 * A request computes its answer on the device into OUT, copies it into a buffer of the host and
 * sets a fence after that. A poll tests the fence, without waiting, and only after it has passed
 * reads the buffer, which stays mapped from its creation to its end (OpenGL 4.4 or
 * GL_ARB_buffer_storage; older drivers map it then). A shader must not write the host's buffer
 * itself: a driver may keep such a buffer on the device, and move it at the first map, after all
 * work that is queued. Each slot and question has a ring of three buffers; when all are on their
 * way a new request replaces the newest, so that the oldest is sure to arrive. Of several that have
 * arrived the newest is given. Buffers are made when they are first needed, as large as that.
 *
 * Depth is a splat: the map begins as the bed, each sphere raises the points below it to its cap
 * by an integer maximum over keys that compare like the floats, which does not depend on the
 * order; then the points of a texel are averaged. On hardware whose square root is not exact in
 * the last bit the heights may differ from the CPU's by that bit.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "sand/engine_gl/gl_data.h"

/* ---- the ring -------------------------------------------------------------------------------- */

void gl_answers_drop(struct gl_slot *slot)
{
    for (int q = 0; q < ASK_COUNT; q++) {
        for (int i = 0; i < ANSWER_RING; i++) {
            if (slot->answer[q][i].fence)
                glDeleteSync(slot->answer[q][i].fence);
            slot->answer[q][i].fence = NULL;
        }
    }
}

/* A new buffer of the host for an answer. What has the old one's name is let go by the driver. */
static void answer_room(const struct gl_engine *gl, struct gl_answer *answer, size_t bytes)
{
    const GLbitfield how = GL_MAP_READ_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;

    glDeleteBuffers(1, &answer->buffer);
    glGenBuffers(1, &answer->buffer);
    glBindBuffer(GL_COPY_WRITE_BUFFER, answer->buffer);
    answer->room_bytes = bytes;
    answer->map = NULL;
    if (gl->persistent) {
        glBufferStorage(GL_COPY_WRITE_BUFFER, (GLsizeiptr)bytes, NULL, how | GL_CLIENT_STORAGE_BIT);
        answer->map = glMapBufferRange(GL_COPY_WRITE_BUFFER, 0, (GLsizeiptr)bytes, how);
    } else {
        glBufferData(GL_COPY_WRITE_BUFFER, (GLsizeiptr)bytes, NULL, GL_STREAM_READ);
    }
}

/* A place in the ring for an answer of so many bytes, and room for it in OUT; binds all blocks. */
static struct gl_answer *answer_take(struct gl_engine *gl, struct gl_slot *slot,
                                     enum gl_question question, size_t bytes)
{
    struct gl_answer *ring = slot->answer[question], *taken = NULL, *newest = ring;

    for (int i = 0; i < ANSWER_RING && !taken; i++) {
        if (!ring[i].fence)
            taken = &ring[i];
        else if (ring[i].serial > newest->serial)
            newest = &ring[i];
    }
    if (!taken) {
        taken = newest;
        glDeleteSync(taken->fence);
        taken->fence = NULL;
    }
    if (taken->room_bytes < bytes)
        answer_room(gl, taken, bytes);
    if (gl->out_bytes < bytes) {
        glBindBuffer(GL_COPY_WRITE_BUFFER, gl->buffers[GL_BLOCK_OUT]);
        glBufferData(GL_COPY_WRITE_BUFFER, (GLsizeiptr)bytes, NULL, GL_DYNAMIC_COPY);
        gl->out_bytes = bytes;
    }
    gl_blocks_bind(gl);
    return taken;
}

static void answer_copy(const struct gl_answer *answer, GLuint from, size_t at, size_t to,
                        size_t bytes)
{
    glBindBuffer(GL_COPY_READ_BUFFER, from);
    glBindBuffer(GL_COPY_WRITE_BUFFER, answer->buffer);
    glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, (GLintptr)at, (GLintptr)to,
                        (GLsizeiptr)bytes);
}

/* Sends the first bytes of OUT, and what was copied to the answer. */
static void answer_send(struct gl_engine *gl, const struct gl_slot *slot, struct gl_answer *answer,
                        size_t bytes)
{
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    answer_copy(answer, gl->buffers[GL_BLOCK_OUT], 0, 0, bytes);
    answer->steps = slot->steps;
    answer->granules = slot->record.granules;
    answer->serial = ++gl->serial;
    answer->fence = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    glFlush();
}

static bool has_arrived(const struct gl_answer *answer)
{
    GLenum said;

    if (!answer->fence)
        return false;
    said = glClientWaitSync(answer->fence, 0, 0);
    return said == GL_ALREADY_SIGNALED || said == GL_CONDITION_SATISFIED;
}

/* The newest answer that has arrived, mapped; those before it are dropped. NULL: none. */
static const void *answer_open(struct gl_slot *slot, enum gl_question question,
                               struct gl_answer **out)
{
    struct gl_answer *ring = slot->answer[question], *newest = NULL;

    for (int i = 0; i < ANSWER_RING; i++)
        if (has_arrived(&ring[i]) && (!newest || ring[i].serial > newest->serial))
            newest = &ring[i];
    if (!newest)
        return NULL;
    for (int i = 0; i < ANSWER_RING; i++) {
        if (ring[i].fence && ring[i].serial <= newest->serial) {
            glDeleteSync(ring[i].fence);
            ring[i].fence = NULL;
        }
    }
    *out = newest;
    if (newest->map)
        return newest->map;
    glBindBuffer(GL_COPY_READ_BUFFER, newest->buffer);
    return glMapBufferRange(GL_COPY_READ_BUFFER, 0, (GLsizeiptr)newest->room_bytes,
                            GL_MAP_READ_BIT);
}

static void answer_close(const struct gl_answer *answer)
{
    if (!answer->map)
        glUnmapBuffer(GL_COPY_READ_BUFFER);
}

static const struct gl_program *use(const struct gl_engine *gl, enum gl_pass pass, uint32_t slot)
{
    glUseProgram(gl->program[pass].name);
    glUniform1ui(gl->program[pass].slot, slot);
    return &gl->program[pass];
}

static void dispatch(GLuint x, GLuint y)
{
    if (x > 0 && y > 0)
        glDispatchCompute(x, y, 1);
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
}

/* ---- status ---------------------------------------------------------------------------------- */

/* The output of status_sum.glsl, followed by the bodies. */
struct status_record {
    float energy_j;
    uint32_t asleep, failed, pad;
    struct granular_body body[SAND_BODIES_MAX];
};

void gl_status_request(struct sand_engine *engine, uint32_t index)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const size_t bodies = engine->config.bodies_max * sizeof(struct granular_body);
    struct gl_answer *answer;

    if (gl_engine_lost(gl))
        return;
    glPushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 0, -1, "sand status");
    answer = answer_take(gl, slot, ASK_STATUS, offsetof(struct status_record, body) + bodies);
    use(gl, GL_PASS_STATUS, index);
    dispatch(gl_groups(slot->record.granules, GL_GROUP_STATUS), 1);
    use(gl, GL_PASS_STATUS_SUM, index);
    dispatch(1, 1);
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    answer_copy(answer, gl->buffers[GL_BLOCK_BODIES], index * bodies,
                offsetof(struct status_record, body), bodies);
    answer->body_alive = 0;
    for (uint32_t b = 0; b < slot->record.bodies_end; b++)
        answer->body_alive |= (uint64_t)(slot->body[b].particle_count > 0) << b;
    answer_send(gl, slot, answer, offsetof(struct status_record, body));
    glPopDebugGroup();
}

static double square(const float v[3])
{
    return (double)v[0] * v[0] + (double)v[1] * v[1] + (double)v[2] * v[2];
}

/* Energy of spin: w in the body frame by the inertia. */
static double spin_energy(const struct granular_body *body)
{
    const double x = body->q[0], y = body->q[1], z = body->q[2], s = body->q[3];
    const double turn[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y + s * z), 2 * (x * z - s * y)},
                               {2 * (x * y - s * z), 1 - 2 * (x * x + z * z), 2 * (y * z + s * x)},
                               {2 * (x * z + s * y), 2 * (y * z - s * x), 1 - 2 * (x * x + y * y)}};
    double w[3], sum = 0;

    for (int i = 0; i < 3; i++)
        w[i] = turn[i][0] * body->w[0] + turn[i][1] * body->w[1] + turn[i][2] * body->w[2];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += w[i] * (double)body->inertia[i][j] * w[j];
    return 0.5 * sum;
}

static void status_times(const struct gl_engine *gl, struct sand_status *status)
{
    const float *ms = gl->pass_ms;

    memcpy(status->pass_ms, ms, sizeof(status->pass_ms));
    status->phase_ms[SAND_PHASE_INTEGRATE] =
        ms[SAND_PASS_PLACE] + ms[SAND_PASS_MOVE_GRANULES] + ms[SAND_PASS_MOVE_BODIES];
    status->phase_ms[SAND_PHASE_GRID] = ms[SAND_PASS_SCAN_BLOCKS] + ms[SAND_PASS_SCAN_SUMS] +
                                        ms[SAND_PASS_SCATTER] + ms[SAND_PASS_REORDER];
    status->phase_ms[SAND_PHASE_FORCE] = ms[SAND_PASS_FORCE];
    status->phase_ms[SAND_PHASE_DEPTH] = gl->depth_ms;
}

bool gl_status_poll(struct sand_engine *engine, uint32_t index, struct sand_status *status)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const struct status_record *record;
    struct gl_answer *answer;

    if (gl_engine_lost(gl))
        return false;
    record = answer_open(slot, ASK_STATUS, &answer);
    if (!record)
        return false;
    memset(status, 0, sizeof(*status));
    status->steps = answer->steps;
    status->time_s = (double)answer->steps * engine->config.params.dt_s;
    status->granules = answer->granules;
    status->asleep = record->asleep;
    status->failed = record->failed != 0;
    status->kinetic_energy_j = record->energy_j;
    status_times(gl, status);
    for (uint32_t b = 0; b < engine->config.bodies_max; b++)
        if (answer->body_alive >> b & 1) {
            const struct granular_body *body = &record->body[b];

            if (body->x[3] > 0)
                status->kinetic_energy_j += 0.5 * square(body->v) / body->x[3] + spin_energy(body);
            engine_status_body(body, b, status);
        }
    answer_close(answer);
    return true;
}

/* ---- depth ----------------------------------------------------------------------------------- */

/* The time of the last map, when it is there. */
static void depth_clock_poll(struct gl_engine *gl)
{
    GLuint64 at[2];
    GLint there = 0;

    if (!gl->depth_pending)
        return;
    glGetQueryObjectiv(gl->depth_query[1], GL_QUERY_RESULT_AVAILABLE, &there);
    if (!there)
        return;
    gl->depth_pending = false;
    for (int k = 0; k < 2; k++)
        glGetQueryObjectui64v(gl->depth_query[k], GL_QUERY_RESULT, &at[k]);
    gl->depth_ms = (float)((double)(at[1] - at[0]) * 1e-6);
}

static void depth_pass(const struct gl_engine *gl, enum gl_pass pass, uint32_t slot,
                       const struct engine_points along[2], uint32_t oversample)
{
    const struct gl_program *program = use(gl, pass, slot);

    glUniform4f(program->points, along[0].first, along[1].first, along[0].step, along[1].step);
    glUniform4ui(program->extent, along[0].count, along[1].count, oversample, 0);
}

static void depth_draw(const struct gl_engine *gl, uint32_t index, const struct sand_depth *depth)
{
    const struct engine_points along[2] = {
        engine_points_along(depth->x0, depth->dx, depth->cols, depth->oversample),
        engine_points_along(depth->y0, depth->dy, depth->rows, depth->oversample)};
    const uint32_t spheres = gl->slot[index].record.granules * gl->pool.params.spheres;

    depth_pass(gl, GL_PASS_DEPTH_BED, index, along, depth->oversample);
    dispatch(gl_groups(along[0].count, 16), gl_groups(along[1].count, 8));
    depth_pass(gl, GL_PASS_DEPTH_SPLAT, index, along, depth->oversample);
    dispatch(gl_groups(spheres, GL_GROUP_FORCE), 1);
    depth_pass(gl, GL_PASS_DEPTH_MEAN, index, along, depth->oversample);
    dispatch(gl_groups(depth->cols, 16), gl_groups(depth->rows, 8));
}

enum err_code gl_depth_request(struct sand_engine *engine, uint32_t index,
                               const struct sand_depth *depth, struct err *err)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const size_t bytes = (size_t)depth->cols * depth->rows * sizeof(float);
    struct gl_answer *answer;
    double start = 1e3 * monotonic_s();
    bool stamps;

    if (engine_depth_check(&engine->config, depth, err))
        return err->code;
    if (gl_engine_lost(gl))
        return err_set(err, ERR_INTERNAL, "the OpenGL context is lost");
    glPushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 0, -1, "sand depth");
    depth_clock_poll(gl);
    stamps = !gl->software && !gl->depth_pending;
    answer = answer_take(gl, slot, ASK_DEPTH, bytes);
    answer->count = depth->cols * depth->rows;
    if (stamps)
        glQueryCounter(gl->depth_query[0], GL_TIMESTAMP);
    depth_draw(gl, index, depth);
    if (stamps)
        glQueryCounter(gl->depth_query[1], GL_TIMESTAMP);
    gl->depth_pending |= stamps;
    if (gl->software)
        gl->depth_ms = (float)(1e3 * monotonic_s() - start);
    answer_send(gl, slot, answer, bytes);
    glPopDebugGroup();
    return ERR_OK;
}

bool gl_depth_poll(struct sand_engine *engine, uint32_t index, float *heights_m)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    struct gl_answer *answer;
    const float *from;

    if (gl_engine_lost(gl))
        return false;
    from = answer_open(slot, ASK_DEPTH, &answer);
    if (!from)
        return false;
    memcpy(heights_m, from, answer->count * sizeof(*heights_m));
    answer_close(answer);
    depth_clock_poll(gl);
    return true;
}

/* ---- spheres and granules -------------------------------------------------------------------- */

void gl_spheres_request(struct sand_engine *engine, uint32_t index)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const struct gl_slot_record *record = &slot->record;
    uint32_t count = record->granules * gl->pool.params.spheres + record->particles_end;
    const size_t bytes = (size_t)(count ? count : 1) * sizeof(float[4]);
    struct gl_answer *answer;

    if (gl_engine_lost(gl))
        return;
    glPushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 0, -1, "sand spheres");
    answer = answer_take(gl, slot, ASK_SPHERES, bytes);
    answer->count = count;
    use(gl, GL_PASS_SPHERES, index);
    dispatch(gl_groups(count, GL_GROUP_SPHERES), 1);
    answer_send(gl, slot, answer, bytes);
    glPopDebugGroup();
}

bool gl_spheres_poll(struct sand_engine *engine, uint32_t index, float (*spheres)[4],
                     uint32_t *count)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct gl_slot *slot = gl_used_slot(engine, index);
    const float(*from)[4];
    struct gl_answer *answer;
    uint32_t n = 0;

    if (gl_engine_lost(gl))
        return false;
    from = answer_open(slot, ASK_SPHERES, &answer);
    if (!from)
        return false;
    for (uint32_t i = 0; i < answer->count; i++)
        if (from[i][3] >= -1)
            memcpy(spheres[n++], from[i], sizeof(*from));
    answer_close(answer);
    *count = n;
    return true;
}

uint32_t gl_granules_read(struct sand_engine *engine, uint32_t index, struct granule *granules)
{
    struct gl_engine *gl = gl_engine_of(engine);
    const struct gl_slot *slot = gl_used_slot(engine, index);
    const uint32_t count = slot->record.granules;

    if (gl_engine_lost(gl) || count == 0)
        return 0;
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    glBindBuffer(GL_COPY_READ_BUFFER, gl->buffers[GL_BLOCK_GRANULES]);
    glGetBufferSubData(GL_COPY_READ_BUFFER,
                       (GLintptr)((size_t)index * engine->config.granules_max * sizeof(*granules)),
                       (GLsizeiptr)(count * sizeof(*granules)), granules);
    return count;
}
