/*
 * Compute programs: sources embedded at build, put together, compiled.
 *
 * A source is #version, one AT_NAME and IS_NAME for each storage block that the pass uses, the
 * file common.glsl, perhaps a file that a few passes share, and the pass itself. A block has the
 * same binding in all passes, so that a step binds its buffers once. A pass uses 14 blocks at most
 * (llvmpipe and NVIDIA take 16 in one shader), all have 19 (they take 80 and 96 bindings). One
 * table has the blocks that a pass uses, and those that it only reads, so that host and shader
 * cannot disagree.
 *
 * What differs between scales is in a uniform block, so engines share one set of programs: drivers
 * compile each of them once, when it is made or when it is first used (llvmpipe: a second for all).
 * The context keeps the set, so that a pool that is given back and made again costs no compilation.
 */
#include "sand/engine_gl/gl_program.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#ifndef KOTA_SAND_SHADERS
#error "the build defines KOTA_SAND_SHADERS, the folder of the shaders to embed"
#endif

#define EMBED(name)                                                                                \
    extern const char shader_##name[];                                                             \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global shader_" #name "\n"                                                           \
            "shader_" #name ":\n"                                                                  \
            ".incbin \"" KOTA_SAND_SHADERS "/" #name ".glsl\"\n"                                   \
            ".byte 0\n"                                                                            \
            ".popsection\n")

EMBED(common);
EMBED(motion);
EMBED(depth);
EMBED(place);
EMBED(scan_blocks);
EMBED(scan_sums);
EMBED(scatter);
EMBED(reorder);
EMBED(force);
EMBED(move_granules);
EMBED(move_bodies);
EMBED(impulse);
EMBED(status);
EMBED(status_sum);
EMBED(depth_bed);
EMBED(depth_splat);
EMBED(depth_mean);
EMBED(spheres);

enum { BLOCKS_OF_PASS_MAX = 15 };

/* A block and how it is used; ends with NONE. */
struct use {
    enum gl_block block;
    enum { NONE, READ, WRITE } how;
};

#define R(name)                                                                                    \
    {                                                                                              \
        GL_BLOCK_##name, READ                                                                      \
    }
#define W(name)                                                                                    \
    {                                                                                              \
        GL_BLOCK_##name, WRITE                                                                     \
    }

static const struct {
    const char *name, *shared, *source;
    struct use uses[BLOCKS_OF_PASS_MAX];
} passes[GL_PASS_COUNT] = {
    [GL_PASS_PLACE] = {"place",
                       "",
                       shader_place,
                       {R(TABLE), R(FLAGS), R(GRANULES), R(BODIES), R(PARTICLES), W(POSITION),
                        W(ARM), W(COUNTS)}},
    [GL_PASS_SCAN_BLOCKS] = {"scan_blocks",
                             "",
                             shader_scan_blocks,
                             {R(TABLE), R(FLAGS), W(COUNTS), W(START), W(SUMS)}},
    [GL_PASS_SCAN_SUMS] = {"scan_sums", "", shader_scan_sums, {R(TABLE), W(FLAGS), W(SUMS)}},
    [GL_PASS_SCATTER] = {"scatter",
                         "",
                         shader_scatter,
                         {R(TABLE), R(FLAGS), R(POSITION), W(COUNTS), R(START), R(SUMS), W(ORDER)}},
    [GL_PASS_REORDER] = {"reorder",
                         "",
                         shader_reorder,
                         {R(TABLE), R(FLAGS), R(POSITION), R(START), R(SUMS), R(ORDER), W(SORTED)}},
    [GL_PASS_FORCE] = {"force",
                       "",
                       shader_force,
                       {R(TABLE), R(FLAGS), R(GRANULES), R(BODIES), R(PARTICLES), R(BED),
                        R(POSITION), R(ARM), R(START), R(SUMS), R(SORTED), W(FORCE),
                        W(GRANULE_FORCE), W(CONTACT)}},
    [GL_PASS_MOVE_GRANULES] = {"move_granules",
                               shader_motion,
                               shader_move_granules,
                               {R(TABLE), W(FLAGS), W(GRANULES), R(FORCE)}},
    [GL_PASS_MOVE_BODIES] = {"move_bodies",
                             shader_motion,
                             shader_move_bodies,
                             {R(TABLE), W(FLAGS), W(BODIES), R(FORCE), R(GRANULE_FORCE)}},
    [GL_PASS_IMPULSE] = {"impulse", "", shader_impulse, {W(BODIES)}},
    [GL_PASS_STATUS] = {"status", "", shader_status, {R(TABLE), R(GRANULES), W(PARTIAL)}},
    [GL_PASS_STATUS_SUM] = {"status_sum",
                            "",
                            shader_status_sum,
                            {R(TABLE), R(FLAGS), R(PARTIAL), W(OUT)}},
    [GL_PASS_DEPTH_BED] = {"depth_bed", shader_depth, shader_depth_bed, {R(TABLE), R(BED), W(MAP)}},
    [GL_PASS_DEPTH_SPLAT] = {"depth_splat",
                             shader_depth,
                             shader_depth_splat,
                             {R(TABLE), R(GRANULES), W(MAP)}},
    [GL_PASS_DEPTH_MEAN] = {"depth_mean", shader_depth, shader_depth_mean, {R(MAP), W(OUT)}},
    [GL_PASS_SPHERES] = {"spheres",
                         "",
                         shader_spheres,
                         {R(TABLE), R(GRANULES), R(BODIES), R(PARTICLES), W(OUT)}},
};

static const char *const block_names[GL_BLOCK_COUNT] = {
#define BLOCK_NAME(name) #name,
    GL_BLOCKS(BLOCK_NAME)
#undef BLOCK_NAME
};

const char *gl_program_name(enum gl_pass pass)
{
    return passes[pass].name;
}

void gl_program_source(enum gl_pass pass, char *head, size_t bytes,
                       const char *parts[GL_SOURCE_PARTS])
{
    size_t at = (size_t)snprintf(head, bytes, "#version 430 core\n");

    for (int i = 0; i < BLOCKS_OF_PASS_MAX && passes[pass].uses[i].how != NONE; i++) {
        const struct use *use = &passes[pass].uses[i];
        const char *name = block_names[use->block];

        at += (size_t)snprintf(head + at, bytes - at, "#define AT_%s %d\n#define IS_%s %s\n", name,
                               (int)use->block, name, use->how == READ ? "readonly" : "");
        CHECK(at < bytes);
    }
    parts[0] = head;
    parts[1] = shader_common;
    parts[2] = passes[pass].shared;
    parts[3] = passes[pass].source;
}

/* The first line of a driver's log. */
static enum err_code log_error_of(enum gl_pass pass, const char *what, char *log, struct err *err)
{
    log[strcspn(log, "\n")] = 0;
    err_set(err, ERR_INTERNAL, "the shader %s does not %s", passes[pass].name, what);
    return err_log_only(err, "%.200s", log);
}

static enum err_code shader_compile(enum gl_pass pass, GLuint shader, struct err *err)
{
    char head[GL_HEAD_BYTES], log[512] = "";
    const char *parts[GL_SOURCE_PARTS];
    GLint done = 0;

    gl_program_source(pass, head, sizeof(head), parts);
    glShaderSource(shader, GL_SOURCE_PARTS, parts, NULL);
    glCompileShader(shader);
    glGetShaderiv(shader, GL_COMPILE_STATUS, &done);
    if (done)
        return ERR_OK;
    glGetShaderInfoLog(shader, sizeof(log), NULL, log);
    return log_error_of(pass, "compile", log, err);
}

/* NULL-safe for a name of 0. */
static void program_finish(struct gl_program *program)
{
    glDeleteProgram(program->name);
    program->name = 0;
}

/* program->name is 0 after an error. */
static enum err_code program_make(enum gl_pass pass, struct gl_program *program, struct err *err)
{
    GLuint shader = glCreateShader(GL_COMPUTE_SHADER);
    char log[512] = "";
    GLint done = 0;

    program->name = 0;
    if (shader_compile(pass, shader, err))
        goto out;
    program->name = glCreateProgram();
    glAttachShader(program->name, shader);
    glLinkProgram(program->name);
    glDetachShader(program->name, shader);
    glGetProgramiv(program->name, GL_LINK_STATUS, &done);
    if (!done) {
        glGetProgramInfoLog(program->name, sizeof(log), NULL, log);
        log_error_of(pass, "link", log, err);
        program_finish(program);
        goto out;
    }
    glObjectLabel(GL_PROGRAM, program->name, -1, passes[pass].name);
    program->substep = glGetUniformLocation(program->name, "substep");
    program->slot = glGetUniformLocation(program->name, "slot");
    program->body = glGetUniformLocation(program->name, "body");
    program->impulse = glGetUniformLocation(program->name, "impulse");
    program->points = glGetUniformLocation(program->name, "points");
    program->extent = glGetUniformLocation(program->name, "extent");
out:
    glDeleteShader(shader);
    return program->name ? ERR_OK : ERR_INTERNAL;
}

const struct gl_program *gl_programs(struct context *context, struct err *err)
{
    struct gl_program *programs = context_kept(context);

    if (programs)
        return programs;
    programs = calloc(GL_PASS_COUNT, sizeof *programs);
    if (!programs) {
        err_set(err, ERR_NO_MEMORY, "no memory for programs");
        return NULL;
    }
    for (int i = 0; i < GL_PASS_COUNT; i++) {
        if (context_gives_up(context, err) || program_make((enum gl_pass)i, &programs[i], err)) {
            while (i-- > 0)
                program_finish(&programs[i]);
            free(programs);
            return NULL;
        }
    }
    context_keep(context, programs);
    return programs;
}
