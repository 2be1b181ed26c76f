#ifndef KOTA_SAND_GL_PROGRAM_H
#define KOTA_SAND_GL_PROGRAM_H

/*
 * The compute programs of the OpenGL engine, and the storage blocks that each one uses. Everything
 * here needs the context to be current.
 */

#include <epoxy/gl.h>
#include <stdint.h>

#include "base/err.h"
#include "sand/engine_gl/context.h"

/* Storage blocks by binding; the names are those of AT_NAME in the shaders. */
#define GL_BLOCKS(X)                                                                               \
    X(TABLE)                                                                                       \
    X(FLAGS)                                                                                       \
    X(GRANULES)                                                                                    \
    X(BODIES)                                                                                      \
    X(PARTICLES)                                                                                   \
    X(BED)                                                                                         \
    X(POSITION)                                                                                    \
    X(ARM)                                                                                         \
    X(FORCE)                                                                                       \
    X(GRANULE_FORCE)                                                                               \
    X(CONTACT)                                                                                     \
    X(COUNTS)                                                                                      \
    X(START)                                                                                       \
    X(SUMS)                                                                                        \
    X(ORDER)                                                                                       \
    X(SORTED)                                                                                      \
    X(PARTIAL)                                                                                     \
    X(MAP)                                                                                         \
    X(OUT)

enum gl_block {
#define GL_BLOCK_ENUM(name) GL_BLOCK_##name,
    GL_BLOCKS(GL_BLOCK_ENUM)
#undef GL_BLOCK_ENUM
        GL_BLOCK_COUNT
};

/* The first are those of a substep, in the order of enum sand_pass. */
enum gl_pass {
    GL_PASS_PLACE,
    GL_PASS_SCAN_BLOCKS,
    GL_PASS_SCAN_SUMS,
    GL_PASS_SCATTER,
    GL_PASS_REORDER,
    GL_PASS_FORCE,
    GL_PASS_MOVE_GRANULES,
    GL_PASS_MOVE_BODIES,
    GL_PASS_IMPULSE,
    GL_PASS_STATUS,
    GL_PASS_STATUS_SUM,
    GL_PASS_DEPTH_BED,
    GL_PASS_DEPTH_SPLAT,
    GL_PASS_DEPTH_MEAN,
    GL_PASS_SPHERES,
    GL_PASS_COUNT
};

/* Invocations of a group along x, as in the shaders. */
enum {
    GL_GROUP_SPHERES = 128,
    GL_GROUP_FORCE = 64,
    GL_GROUP_STATUS = 256,
    GL_SCAN_BLOCK = 1024, /* cells of a group of scan_blocks */
    GL_SCAN_SUMS = 256    /* such blocks of a group of scan_sums */
};

struct gl_program {
    GLuint name;
    GLint substep, slot, body, impulse, points, extent; /* uniforms; -1: it has none */
};

/*
 * The programs of the current context, by pass: compiled at the first call, kept by the context.
 * NULL: ERR_INTERNAL with the compiler's first line, ERR_NO_MEMORY; ERR_BUSY between two programs
 * when the context gives up (some 40 ms each on llvmpipe).
 */
const struct gl_program *gl_programs(struct context *context, struct err *err);

const char *gl_program_name(enum gl_pass pass);

/*
 * The source of a pass, as it is compiled: parts in their order. The first is written to
 * head[bytes], GL_HEAD_BYTES of them; the others are static. Needs no context.
 */
enum { GL_SOURCE_PARTS = 4, GL_HEAD_BYTES = 1024 };
void gl_program_source(enum gl_pass pass, char *head, size_t bytes,
                       const char *parts[GL_SOURCE_PARTS]);

#endif
