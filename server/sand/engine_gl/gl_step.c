/*
 * Stepping on the device: the passes of one substep for all running slots, and their times.
 *
 * place -> scan_blocks, scan_sums, scatter, reorder (the grid) -> force -> move_granules,
 * move_bodies. All blocks are bound once for all of them. Each pass is one dispatch; along y it
 * counts the running slots, along x the spheres (cells, granules, bodies) of the largest, and a
 * group that has nothing to do ends at once. So a frame of 16 substeps is 128 dispatches for any
 * number of slots.
 *
 * A slot where everything sleeps costs the start of its groups only: move_* raises a flag for the
 * next substep when something stays awake (flags.awake, by parity of the slot's steps). What comes
 * from outside sets STIRRED, which counts as awake for one substep.
 *
 * Times: the last substep of a call is measured pass by pass, with time stamps that the device
 * takes, read when they are there, some frames later. llvmpipe computes within the call and its
 * stamps wait for the next flush, so there the CPU's clock is the true one.
 */
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "sand/engine_gl/gl_data.h"

/* What one dispatch must cover: the largest of the running slots. */
struct extent {
    uint32_t slots, spheres, cells, granules, bodies;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Writes the list of running slots. */
static struct extent running_write(struct gl_engine *gl, uint64_t active)
{
    uint32_t running[SAND_SLOTS_MAX];
    struct extent extent = {0};

    for (uint32_t i = 0; i < gl->engine.config.slots; i++) {
        struct gl_slot *slot = &gl->slot[i];
        const struct gl_slot_record *record = &slot->record;

        if (!(active >> i & 1) || !slot->used)
            continue;
        running[extent.slots++] = i | (uint32_t)(slot->steps & 1) << GL_PARITY_SHIFT |
                                  (slot->stirred ? GL_STIRRED : 0) |
                                  (slot->recheck ? GL_RECHECK : 0);
        slot->stirred = slot->recheck = false;
        extent.spheres = larger(extent.spheres,
                                record->granules * gl->pool.params.spheres + record->particles_end);
        extent.cells = larger(extent.cells, record->cells[3] + 1);
        extent.granules = larger(extent.granules, record->granules);
        extent.bodies = larger(extent.bodies, record->bodies_end);
    }
    if (extent.slots > 0) {
        glBindBuffer(GL_SHADER_STORAGE_BUFFER, gl->buffers[GL_BLOCK_TABLE]);
        glBufferSubData(GL_SHADER_STORAGE_BUFFER, 0, (GLsizeiptr)(extent.slots * sizeof(*running)),
                        running);
    }
    return extent;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* Takes the stamps that have come. */
static void clocks_poll(struct gl_engine *gl)
{
    for (int i = 0; i < GL_CLOCKS; i++) {
        struct gl_clock *clock = &gl->clock[i];
        GLuint64 at[GL_STAMPS];
        GLint there = 0;

        if (!clock->pending)
            continue;
        glGetQueryObjectiv(clock->query[GL_STAMPS - 1], GL_QUERY_RESULT_AVAILABLE, &there);
        if (!there)
            continue;
        clock->pending = false;
        for (int k = 0; k < GL_STAMPS; k++)
            glGetQueryObjectui64v(clock->query[k], GL_QUERY_RESULT, &at[k]);
        for (int pass = 0; pass < SAND_PASS_COUNT; pass++)
            gl->pass_ms[pass] = (float)((double)(at[pass + 1] - at[pass]) * 1e-6);
    }
}

/* A clock that is free, NULL when all are on their way or the CPU's is used. */
static struct gl_clock *clock_take(struct gl_engine *gl)
{
    if (gl->software)
        return NULL;
    clocks_poll(gl);
    for (int i = 0; i < GL_CLOCKS; i++)
        if (!gl->clock[i].pending)
            return &gl->clock[i];
    return NULL;
}

/* ---- one substep ----------------------------------------------------------------------------- */

_Static_assert((int)GL_PASS_FORCE == (int)SAND_PASS_FORCE &&
                   (int)GL_PASS_MOVE_BODIES + 1 == (int)SAND_PASS_COUNT,
               "the passes of a substep are the first of all");

static void groups_make(const struct extent *extent, GLuint groups[SAND_PASS_COUNT])
{
    const GLuint spheres = gl_groups(extent->spheres, GL_GROUP_SPHERES);
    const GLuint blocks = gl_groups(extent->cells, GL_SCAN_BLOCK);

    groups[SAND_PASS_PLACE] = groups[SAND_PASS_SCATTER] = groups[SAND_PASS_REORDER] = spheres;
    groups[SAND_PASS_SCAN_BLOCKS] = blocks;
    groups[SAND_PASS_SCAN_SUMS] = gl_groups(blocks, GL_SCAN_SUMS);
    groups[SAND_PASS_FORCE] = gl_groups(extent->spheres, GL_GROUP_FORCE);
    groups[SAND_PASS_MOVE_GRANULES] = gl_groups(extent->granules, GL_GROUP_SPHERES);
    groups[SAND_PASS_MOVE_BODIES] = extent->bodies;
}

static void pass_run(const struct gl_program *program, uint32_t substep, GLuint groups,
                     GLuint slots)
{
    if (groups == 0)
        return;
    glUseProgram(program->name);
    glUniform1ui(program->substep, substep);
    glDispatchCompute(groups, slots, 1);
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
}

/* clock: where to stamp, or NULL. at_ms: when each pass began by the CPU's clock, and the end. */
static void substep_run(struct gl_engine *gl, uint32_t k, const GLuint groups[SAND_PASS_COUNT],
                        GLuint slots, const struct gl_clock *clock, double at_ms[GL_STAMPS])
{
    for (int pass = 0; pass < GL_STAMPS; pass++) {
        if (clock)
            glQueryCounter(clock->query[pass], GL_TIMESTAMP);
        at_ms[pass] = 1e3 * monotonic_s();
        if (pass < SAND_PASS_COUNT)
            pass_run(&gl->program[pass], k, groups[pass], slots);
    }
}

/*
 * Bodies on a path are where it says after substep k of this call, as in the C engine. They are
 * few, and a shader that searched the poses would need them in another block.
 */
static void paths_follow(struct gl_engine *gl, uint64_t active, uint32_t k)
{
    const double dt_s = (double)gl->engine.config.params.dt_s;
    bool is_first = true;

    for (uint32_t i = 0; i < gl->engine.config.slots; i++) {
        const struct gl_slot *slot = &gl->slot[i];

        if (!(active >> i & 1) || !slot->used)
            continue;
        for (uint32_t b = 0; b < slot->record.bodies_end; b++) {
            const struct sand_path *path = slot->path[b];
            const double t_s = (double)(slot->steps + k + 1 - slot->came_in[b]) * dt_s;
            struct sand_pose pose;
            float row[4][4] = {{0}};

            if (!path || t_s - 2 * dt_s >= sand_path_end_s(path))
                continue;
            sand_path_at(path, t_s, dt_s, &pose);
            memcpy(row[0], pose.x, sizeof(pose.x));
            memcpy(row[1], pose.q, sizeof(pose.q));
            memcpy(row[2], pose.v, sizeof(pose.v));
            memcpy(row[3], pose.w, sizeof(pose.w));
            if (t_s - dt_s >= sand_path_end_s(path))
                row[2][3] = gl->engine.config.params.sleep_after_s;
            row[3][3] = slot->body[b].w[3];
            if (is_first)
                glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
            is_first = false;
            gl_write_at(gl->buffers[GL_BLOCK_BODIES], gl_body_at(&gl->engine, i, b), row,
                        sizeof(row));
        }
    }
}

static void substeps_run(struct gl_engine *gl, uint32_t substeps, uint64_t active,
                         const struct extent *extent)
{
    GLuint groups[SAND_PASS_COUNT];
    double at_ms[GL_STAMPS];

    groups_make(extent, groups);
    gl_blocks_bind(gl);
    for (uint32_t k = 0; k < substeps; k++) {
        struct gl_clock *clock = k + 1 == substeps ? clock_take(gl) : NULL;

        substep_run(gl, k, groups, extent->slots, clock, at_ms);
        if (clock)
            clock->pending = true;
        paths_follow(gl, active, k);
    }
    for (int pass = 0; gl->software && pass < SAND_PASS_COUNT; pass++)
        gl->pass_ms[pass] = (float)(at_ms[pass + 1] - at_ms[pass]);
}

enum err_code gl_step(struct sand_engine *engine, uint32_t substeps, uint64_t active,
                      struct err *err)
{
    struct gl_engine *gl = gl_engine_of(engine);
    struct extent extent;

    if (gl_engine_lost(gl))
        return err_set(err, ERR_INTERNAL, "the OpenGL context is lost");
    if (substeps == 0)
        return ERR_OK;
    glPushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 0, -1, "sand step");
    extent = running_write(gl, active);
    if (extent.slots > 0)
        substeps_run(gl, substeps, active, &extent);
    for (uint32_t i = 0; i < engine->config.slots; i++)
        if ((active >> i & 1) && gl->slot[i].used)
            gl->slot[i].steps += substeps;
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT); /* input from outside is written by copies */
    glFlush();
    glPopDebugGroup();
    return ERR_OK;
}
