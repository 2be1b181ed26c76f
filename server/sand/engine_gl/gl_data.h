#ifndef KOTA_SAND_GL_DATA_H
#define KOTA_SAND_GL_DATA_H

/* The insides of the OpenGL engine, shared by its files: gl_engine.c, gl_step.c, gl_results.c. */

#include <stdbool.h>
#include <stdint.h>

#include "sand/engine_gl/context.h"
#include "sand/engine_input.h"
#include "sand/engine_gl/gl_program.h"

/* ---- records, as in common.glsl -------------------------------------------------------------- */

/* uniform pool_block */
struct gl_pool {
    struct granular_params params; /* 24 words */
    float tetrahedron[GRANULE_SPHERES][4];
    uint32_t granules_max, particles_first, spheres_max, bodies_max;
    uint32_t particles_max, cell_stride, block_stride, bed_max;
};

/* slot_record */
struct gl_slot_record {
    float gravity[4]; /* [3]: force that wakes */
    float size[2];
    float z_low, calm; /* further drag of granules */
    uint32_t cells[4]; /* [3]: all of them */
    uint32_t granules, bodies_end, particles_end, pad1;
    uint32_t bed_cols, bed_rows, pad2, pad3;
    float bed[4];
    float friction, stiffness, damping, pad4; /* of its material, as the rest */
    float mass_kg, mass_inverse, inertia, inertia_inverse;
};

enum {
    GL_RUNNING_BYTES = SAND_SLOTS_MAX * 4, /* the list of running slots before the records */
    GL_STIRRED = 0x100,
    GL_RECHECK = 0x200,
    GL_PARITY_SHIFT = 16,
    GL_FLAG_BYTES = 16,
    GL_SPHERE_FORCE_BYTES = 32,
    GL_SPHERE_CONTACT_BYTES = 2 * GRANULAR_CONTACTS_MAX * 16
};

/* ---- answers --------------------------------------------------------------------------------- */

enum gl_question { ASK_STATUS, ASK_DEPTH, ASK_SPHERES, ASK_COUNT };

enum { ANSWER_RING = 3 };

/* One answer on its way: a buffer of the host that is read when its fence has passed. */
struct gl_answer {
    GLuint buffer;
    const void *map; /* of all of it, for as long as it exists; NULL where the driver has no such */
    size_t room_bytes;
    GLsync fence; /* NULL: it is free */
    uint64_t serial;
    uint64_t steps; /* as of the request */
    uint64_t body_alive;
    uint32_t granules, count; /* count: of texels, of spheres */
};

/* ---- the engine ------------------------------------------------------------------------------ */

struct gl_slot {
    bool used;
    bool stirred;                  /* something came from outside since the last step */
    bool recheck;                  /* it was added or taken away */
    struct granular_params params; /* its material */
    struct gl_slot_record record;
    uint64_t steps;
    struct granular_body *body;    /* [bodies_max], as added: particles, mass and reach are used */
    uint32_t *particle_body;       /* [particles_max] */
    const struct sand_path **path; /* [bodies_max]; NULL: the body is free */
    uint64_t *came_in;             /* [bodies_max] steps then */
    struct gl_answer answer[ASK_COUNT][ANSWER_RING];
};

enum { GL_CLOCKS = 4, GL_STAMPS = SAND_PASS_COUNT + 1 };

/* Time stamps around the passes of one substep. */
struct gl_clock {
    GLuint query[GL_STAMPS];
    bool pending;
};

struct gl_engine {
    struct sand_engine engine; /* first */
    struct context *context;
    uint32_t generation; /* of the context */
    bool lost;
    bool software;
    bool persistent; /* answers are mapped for as long as they exist */
    struct gl_pool pool;
    GLuint pool_buffer;
    GLuint buffers[GL_BLOCK_COUNT];
    size_t out_bytes;                 /* of OUT, which grows */
    const struct gl_program *program; /* [GL_PASS_COUNT], of the context */
    struct gl_clock clock[GL_CLOCKS];
    GLuint depth_query[2];
    bool depth_pending;
    float depth_ms;
    float pass_ms[SAND_PASS_COUNT];
    uint64_t serial;
    struct gl_slot *slot; /* [slots] */
};

static inline struct gl_engine *gl_engine_of(struct sand_engine *engine)
{
    return (struct gl_engine *)engine;
}

/* Whether the context is lost, or is another one since. */
bool gl_engine_lost(struct gl_engine *gl);

/* CHECKs that it is begun. */
struct gl_slot *gl_used_slot(struct sand_engine *engine, uint32_t index);

/* Bytes of a buffer, in order with the dispatches. */
void gl_write_at(GLuint buffer, size_t at, const void *bytes, size_t count);

/* Where a body is in its block. */
size_t gl_body_at(const struct sand_engine *engine, uint32_t index, uint32_t b);

/* Binds all blocks of the engine; each pass finds its own. */
void gl_blocks_bind(const struct gl_engine *gl);

static inline GLuint gl_groups(uint32_t invocations, uint32_t of_a_group)
{
    return (invocations + of_a_group - 1) / of_a_group;
}

/* Drops the answers of a slot that are on their way. */
void gl_answers_drop(struct gl_slot *slot);

/* The calls, as in engine.h. */
enum err_code gl_step(struct sand_engine *engine, uint32_t substeps, uint64_t active,
                      struct err *err);
void gl_status_request(struct sand_engine *engine, uint32_t index);
bool gl_status_poll(struct sand_engine *engine, uint32_t index, struct sand_status *status);
enum err_code gl_depth_request(struct sand_engine *engine, uint32_t index,
                               const struct sand_depth *depth, struct err *err);
bool gl_depth_poll(struct sand_engine *engine, uint32_t index, float *heights_m);
void gl_spheres_request(struct sand_engine *engine, uint32_t index);
bool gl_spheres_poll(struct sand_engine *engine, uint32_t index, float (*spheres)[4],
                     uint32_t *count);
uint32_t gl_granules_read(struct sand_engine *engine, uint32_t index, struct granule *granules);

#endif
