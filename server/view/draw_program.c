/*
 * Compiling the programs of a view.
 */
#include "view/draw_program.h"

#include <stdio.h>
#include <string.h>

#ifndef KOTA_VIEW_SHADERS
#error "the build defines KOTA_VIEW_SHADERS, the folder of the shaders to embed"
#endif

#define EMBED(name)                                                                                \
    extern const char view_shader_##name[];                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global view_shader_" #name "\n"                                                      \
            "view_shader_" #name ":\n"                                                             \
            ".incbin \"" KOTA_VIEW_SHADERS "/" #name ".glsl\"\n"                                   \
            ".byte 0\n"                                                                            \
            ".popsection\n")

EMBED(ground_vert);
EMBED(mesh_vert);
EMBED(surface_frag);
EMBED(sphere_vert);
EMBED(sphere_frag);
EMBED(shade_vert);
EMBED(shade_frag);

static const struct {
    const char *name, *vertex, *fragment;
} sources[PROGRAM_COUNT] = {
    [PROGRAM_GROUND] = {"ground", view_shader_ground_vert, view_shader_surface_frag},
    [PROGRAM_MESH] = {"mesh", view_shader_mesh_vert, view_shader_surface_frag},
    [PROGRAM_SPHERE] = {"sphere", view_shader_sphere_vert, view_shader_sphere_frag},
    [PROGRAM_SHADE] = {"shade", view_shader_shade_vert, view_shader_shade_frag},
};

static enum err_code refuse(enum draw_program program, const char *what, char *log, struct err *err)
{
    log[strcspn(log, "\n")] = 0;
    err_set(err, ERR_INTERNAL, "the shader %s does not %s", sources[program].name, what);
    return err_log_only(err, "%.200s", log);
}

static enum err_code add_shader(GLuint name, enum draw_program program, GLenum kind,
                                bool depth_only, struct err *err)
{
    const char *parts[] = {"#version 430 core\n", depth_only ? "#define DEPTH_ONLY\n" : "",
                           kind == GL_VERTEX_SHADER ? sources[program].vertex
                                                    : sources[program].fragment};
    const GLuint shader = glCreateShader(kind);
    char log[512] = "";
    GLint done = 0;

    glShaderSource(shader, 3, parts, NULL);
    glCompileShader(shader);
    glGetShaderiv(shader, GL_COMPILE_STATUS, &done);
    if (done)
        glAttachShader(name, shader);
    else
        glGetShaderInfoLog(shader, sizeof log, NULL, log);
    glDeleteShader(shader); /* lives on as long as it is attached */
    return done ? ERR_OK : refuse(program, "compile", log, err);
}

GLuint draw_program_make(enum draw_program program, bool depth_only, struct err *err)
{
    const GLuint name = glCreateProgram();
    char log[512] = "";
    GLint done = 0;

    err->code = ERR_OK;
    if (add_shader(name, program, GL_VERTEX_SHADER, depth_only, err) == ERR_OK &&
        add_shader(name, program, GL_FRAGMENT_SHADER, depth_only, err) == ERR_OK) {
        glLinkProgram(name);
        glGetProgramiv(name, GL_LINK_STATUS, &done);
        if (!done) {
            glGetProgramInfoLog(name, sizeof log, NULL, log);
            refuse(program, "link", log, err);
        }
    }
    if (done)
        return name;
    glDeleteProgram(name);
    return 0;
}
