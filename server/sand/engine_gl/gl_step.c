/*
 * Stepping on the device: the passes of one substep for all running slots, and their times.
 *
 * place -> scan_blocks, scan_sums, scatter, reorder (the grid) -> force -> move_granules,
 * move_bodies. Each pass is one dispatch; along y it counts the running slots, along x the spheres
 * (cells, granules, bodies) of the largest, and a group that has nothing to do ends at once. So a
 * frame of 16 substeps is 128 dispatches for any number of slots.
 *
 * A slot where everything sleeps costs the start of its groups only: move_* raises a flag for the
 * next substep when something stays awake (flags.awake, by parity of the slot's steps). What comes
 * from outside sets STIRRED, which counts as awake for one substep.
 *
 * Times: the last substep of a call is measured with time stamps that the device takes, read when
 * they are there, some frames later. llvmpipe computes within the call and its stamps wait for the
 * next flush, so there the CPU's clock is the true one.
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
        gl->phase_ms[SAND_PHASE_INTEGRATE] =
            (float)((double)(at[1] - at[0] + at[4] - at[3]) * 1e-6);
        gl->phase_ms[SAND_PHASE_GRID] = (float)((double)(at[2] - at[1]) * 1e-6);
        gl->phase_ms[SAND_PHASE_FORCE] = (float)((double)(at[3] - at[2]) * 1e-6);
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

static void pass_run(struct gl_engine *gl, enum gl_pass pass, uint32_t substep, GLuint groups,
                     GLuint slots)
{
    const struct gl_program *program = &gl->program[pass];

    if (groups == 0)
        return;
    gl_program_use(pass, program, gl->buffers);
    glUniform1ui(program->substep, substep);
    glDispatchCompute(groups, slots, 1);
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
}

static void stamp(struct gl_clock *clock, double *times_ms, int k)
{
    if (clock)
        glQueryCounter(clock->query[k], GL_TIMESTAMP);
    times_ms[k] = 1e3 * monotonic_s();
}

static void substep_run(struct gl_engine *gl, uint32_t k, const struct extent *extent,
                        struct gl_clock *clock, double times_ms[GL_STAMPS])
{
    const GLuint spheres = gl_groups(extent->spheres, GL_GROUP_SPHERES);

    stamp(clock, times_ms, 0);
    pass_run(gl, GL_PASS_PLACE, k, spheres, extent->slots);
    stamp(clock, times_ms, 1);
    pass_run(gl, GL_PASS_SCAN_BLOCKS, k, gl_groups(extent->cells, GL_SCAN_BLOCK), extent->slots);
    pass_run(gl, GL_PASS_SCAN_SUMS, k, 1, extent->slots);
    pass_run(gl, GL_PASS_SCATTER, k, spheres, extent->slots);
    pass_run(gl, GL_PASS_REORDER, k, spheres, extent->slots);
    stamp(clock, times_ms, 2);
    pass_run(gl, GL_PASS_FORCE, k, gl_groups(extent->spheres, GL_GROUP_FORCE), extent->slots);
    stamp(clock, times_ms, 3);
    pass_run(gl, GL_PASS_MOVE_GRANULES, k, gl_groups(extent->granules, GL_GROUP_SPHERES),
             extent->slots);
    pass_run(gl, GL_PASS_MOVE_BODIES, k, extent->bodies, extent->slots);
    stamp(clock, times_ms, 4);
}

static void substeps_run(struct gl_engine *gl, uint32_t substeps, const struct extent *extent)
{
    double at[GL_STAMPS];

    glBindBufferBase(GL_UNIFORM_BUFFER, 0, gl->pool_buffer);
    for (uint32_t k = 0; k < substeps; k++) {
        struct gl_clock *clock = k + 1 == substeps ? clock_take(gl) : NULL;

        substep_run(gl, k, extent, clock, at);
        if (clock)
            clock->pending = true;
    }
    if (gl->software) {
        gl->phase_ms[SAND_PHASE_INTEGRATE] = (float)(at[1] - at[0] + at[4] - at[3]);
        gl->phase_ms[SAND_PHASE_GRID] = (float)(at[2] - at[1]);
        gl->phase_ms[SAND_PHASE_FORCE] = (float)(at[3] - at[2]);
    }
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
        substeps_run(gl, substeps, &extent);
    for (uint32_t i = 0; i < engine->config.slots; i++)
        if ((active >> i & 1) && gl->slot[i].used)
            gl->slot[i].steps += substeps;
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT); /* input from outside is written by copies */
    glFlush();
    glPopDebugGroup();
    return ERR_OK;
}
