/*
 * The passes of a picture.
 *
 *   1. places: ground, meshes and spheres with a depth test, into two textures: the plane and the
 *      way along the pixel's ray; the normal and the kind of surface
 *   2. shadows: the same, only their depth, into up to four layers (cascade.h)
 *   3. shade: one triangle over the picture reads both, so that each pixel is shaded once
 *
 * Depth is near / z, greater is nearer, in float32 (E. Lengyel; N. Reed, Depth precision
 * visualized, 2015): its relative precision is that of floats at any distance, so the near plane
 * can be a millimetre and there is no far one. The projection is that of pick_camera_ray: the
 * middle of a pixel is its ray.
 *
 * Everything of a picture is made for it and deleted after it; programs stay.
 */
#include "view/draw.h"

#include "base/check.h"
#include "view/cascade.h"
#include "view/draw_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_M 1e-3

enum { INDICES = 6 * SCENE_BLOCK * SCENE_BLOCK, HEM_INDICES = 4 * 6 * SCENE_BLOCK };
enum { KIND_GROUND = 1, KIND_MESH, KIND_BODY, KIND_GRANULE };

struct draw {
    struct context *context;
    GLuint programs[PROGRAM_COUNT][2]; /* [1]: only their depth */
    GLuint vertices;                   /* the vertex array */
};

/* Of one picture. */
struct work {
    struct draw *draw;
    const struct scene *scene;
    const struct lens_frame *lens;
    const struct draw_light *light;
    struct cascade cascades[CASCADES_MAX];
    int cascade_count; /* 0: no shadows */
    GLuint textures[5], frames[3], buffers[7];
    uint32_t *drawn; /* room for the numbers of blocks */
};

enum { PLACES, LOOKS, DEPTHS, SHADOWS, COLOURS };
enum { HEIGHTS, BLOCKS, DRAWN, BLOCK_INDICES, CORNERS, NORMALS, SPHERES };

/* What a pass draws for: the camera, or a cascade. */
struct target {
    float matrix[16];
    const struct cascade *cascade; /* NULL: the camera */
};

/* ---- life ------------------------------------------------------------------------------------ */

struct draw *draw_create(struct context *context, struct err *err)
{
    struct draw *draw = calloc(1, sizeof *draw);
    GLint blocks = 0;

    if (!draw) {
        err_set(err, ERR_NO_MEMORY, "no memory for the programs of a view");
        return NULL;
    }
    draw->context = context;
    glGetIntegerv(GL_MAX_VERTEX_SHADER_STORAGE_BLOCKS, &blocks);
    err->code = ERR_OK;
    if (blocks < 3 || (epoxy_gl_version() < 45 && !epoxy_has_gl_extension("GL_ARB_clip_control")))
        err_set(err, ERR_NO_DEVICE,
                "this OpenGL has no storage blocks of vertices, or no "
                "GL_ARB_clip_control");
    for (int i = 0; i < PROGRAM_COUNT && err->code == ERR_OK; i++)
        for (int j = 0; j < (i == PROGRAM_SHADE ? 1 : 2) && err->code == ERR_OK; j++)
            draw->programs[i][j] = draw_program_make((enum draw_program)i, j == 1, err);
    if (err->code != ERR_OK) {
        draw_destroy(draw);
        return NULL;
    }
    glGenVertexArrays(1, &draw->vertices);
    glBindVertexArray(draw->vertices);
    return draw;
}

void draw_destroy(struct draw *draw)
{
    if (!draw)
        return;
    for (int i = 0; i < PROGRAM_COUNT; i++)
        for (int j = 0; j < 2; j++)
            glDeleteProgram(draw->programs[i][j]);
    glDeleteVertexArrays(1, &draw->vertices);
    free(draw);
}

uint64_t draw_bytes(uint32_t width, uint32_t height)
{
    return (uint64_t)width * height * (16 + 8 + 4 + 4) +
           (uint64_t)CASCADES_MAX * CASCADE_TEXELS * CASCADE_TEXELS * 4;
}

/* ---- what is drawn --------------------------------------------------------------------------- */

static void set_matrix(GLuint program, const struct target *target)
{
    glUseProgram(program);
    glUniformMatrix4fv(glGetUniformLocation(program, "matrix"), 1, GL_FALSE, target->matrix);
}

static bool is_in(const struct work *work, const struct target *target, const struct box3 *box)
{
    return target->cascade ? cascade_sees(target->cascade, box) : lens_frame_sees(work->lens, box);
}

/* The corners of a cell's two triangles, as numbers of vertices; then the hem's. */
static void make_indices(enum triangulation split, uint16_t *out)
{
    const int hem = SCENE_SIDE * SCENE_SIDE;

    for (int j = 0; j < SCENE_BLOCK; j++)
        for (int i = 0; i < SCENE_BLOCK; i++) {
            const int a = j * SCENE_SIDE + i, b = a + 1, c = a + SCENE_SIDE, d = c + 1;
            const bool is_main = split == TRIANGULATION_MAIN ||
                                 (split == TRIANGULATION_ALTERNATING && (i + j) % 2 == 1);
            const int corners[2][6] = {{a, b, c, b, d, c}, {a, b, d, a, d, c}};

            for (int k = 0; k < 6; k++)
                *out++ = (uint16_t)corners[is_main][k];
        }
    for (int edge = 0; edge < 4; edge++)
        for (int i = 0; i < SCENE_BLOCK; i++) {
            const int step = edge < 2 ? 1 : SCENE_SIDE;
            const int from = edge == 1 ? SCENE_BLOCK * SCENE_SIDE : edge == 3 ? SCENE_BLOCK : 0;
            const int a = from + i * step, b = a + step, c = hem + edge * SCENE_SIDE + i;
            const int corners[6] = {a, b, c, b, c + 1, c};

            for (int k = 0; k < 6; k++)
                *out++ = (uint16_t)corners[k];
        }
}

static void fill_buffer(GLenum target, GLuint buffer, const void *bytes, size_t count)
{
    glBindBuffer(target, buffer);
    glBufferData(target, (GLsizeiptr)(count ? count : 1), bytes, GL_STREAM_DRAW);
}

static void draw_field(struct work *work, const struct scene_field *field,
                       const struct target *target, GLuint program)
{
    uint16_t indices[INDICES + HEM_INDICES];
    GLsizei count = 0;

    for (uint32_t i = field->first; i < field->first + field->count; i++)
        if (is_in(work, target, &work->scene->boxes[i]))
            work->drawn[count++] = i;
    if (count == 0)
        return;
    make_indices(field->triangulation, indices);
    fill_buffer(GL_ELEMENT_ARRAY_BUFFER, work->buffers[BLOCK_INDICES], indices, sizeof indices);
    fill_buffer(GL_SHADER_STORAGE_BUFFER, work->buffers[DRAWN], work->drawn,
                (size_t)count * sizeof *work->drawn);
    for (GLuint i = HEIGHTS; i <= DRAWN; i++)
        glBindBufferBase(GL_SHADER_STORAGE_BUFFER, i, work->buffers[i]);
    glUniform2iv(glGetUniformLocation(program, "last"), 1, field->last);
    glUniform2fv(glGetUniformLocation(program, "spacing"), 1, field->spacing);
    glUniform2fv(glGetUniformLocation(program, "base"), 1, field->base);
    glUniform2fv(glGetUniformLocation(program, "eye_z"), 1, field->eye_z);
    glDrawElementsInstanced(GL_TRIANGLES, INDICES + (field->has_hems ? HEM_INDICES : 0),
                            GL_UNSIGNED_SHORT, NULL, count);
}

static void set_kind(GLuint program, int kind)
{
    glUniform1f(glGetUniformLocation(program, "kind"), (float)kind);
}

static void draw_parts(const struct work *work, const struct target *target, GLuint program)
{
    for (GLuint i = 0; i < 2; i++) { /* corners, normals */
        glBindBuffer(GL_ARRAY_BUFFER, work->buffers[CORNERS + i]);
        glVertexAttribPointer(i, 3, GL_FLOAT, GL_FALSE, 0, NULL);
        glVertexAttribDivisor(i, 0);
        glEnableVertexAttribArray(i);
    }
    for (size_t i = 0; i < work->scene->part_count; i++) {
        const struct scene_part *part = &work->scene->parts[i];

        if (!is_in(work, target, &part->box) || (target->cascade && !part->casts))
            continue;
        set_kind(program, part->is_body ? KIND_BODY : KIND_MESH);
        glDrawArrays(GL_TRIANGLES, (GLint)part->first, (GLsizei)part->count);
    }
    for (GLuint i = 0; i < 2; i++)
        glDisableVertexAttribArray(i);
}

static void draw_spheres(const struct work *work, const struct target *target, GLuint program)
{
    const struct vec3 way = work->light->direction;
    const GLsizei stride = sizeof(struct scene_sphere);

    if (work->scene->sphere_count == 0)
        return;
    glBindBuffer(GL_ARRAY_BUFFER, work->buffers[SPHERES]);
    glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, stride, NULL);
    glVertexAttribPointer(1, 1, GL_FLOAT, GL_FALSE, stride,
                          (const void *)offsetof(struct scene_sphere, shade));
    for (GLuint i = 0; i < 2; i++) {
        glVertexAttribDivisor(i, 1);
        glEnableVertexAttribArray(i);
    }
    glUniform4f(glGetUniformLocation(program, "light"), (float)way.x, (float)way.y, (float)way.z,
                target->cascade ? 1 : 0);
    set_kind(program, KIND_GRANULE);
    glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, (GLsizei)work->scene->sphere_count);
    for (GLuint i = 0; i < 2; i++)
        glDisableVertexAttribArray(i);
}

static void draw_all(struct work *work, const struct target *target)
{
    const int depth_only = target->cascade != NULL;
    const GLuint(*programs)[2] = work->draw->programs;

    set_matrix(programs[PROGRAM_GROUND][depth_only], target);
    set_kind(programs[PROGRAM_GROUND][depth_only], KIND_GROUND);
    for (size_t i = 0; i < work->scene->field_count; i++)
        draw_field(work, &work->scene->fields[i], target, programs[PROGRAM_GROUND][depth_only]);
    set_matrix(programs[PROGRAM_MESH][depth_only], target);
    draw_parts(work, target, programs[PROGRAM_MESH][depth_only]);
    set_matrix(programs[PROGRAM_SPHERE][depth_only], target);
    draw_spheres(work, target, programs[PROGRAM_SPHERE][depth_only]);
}

/* ---- the passes ------------------------------------------------------------------------------ */

static void camera_matrix(const struct lens_frame *lens, float out[16])
{
    const struct vec3 rows[4] = {vec3_scale(lens->right, 1 / lens->tangent[0]),
                                 vec3_scale(lens->up, 1 / lens->tangent[1]),
                                 {0, 0, 0},
                                 lens->forward};

    memset(out, 0, 16 * sizeof *out);
    for (int row = 0; row < 4; row++) {
        out[row] = (float)rows[row].x;
        out[4 + row] = (float)rows[row].y;
        out[8 + row] = (float)rows[row].z;
    }
    out[14] = (float)NEAR_M;
}

static void make_texture(GLuint name, GLenum format, uint32_t width, uint32_t height)
{
    glBindTexture(GL_TEXTURE_2D, name);
    glTexStorage2D(GL_TEXTURE_2D, 1, format, (GLsizei)width, (GLsizei)height);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
}

static void draw_places(struct work *work)
{
    const struct lens_frame *lens = work->lens;
    const GLenum both[] = {GL_COLOR_ATTACHMENT0, GL_COLOR_ATTACHMENT1};
    struct target target = {.cascade = NULL};
    const float nothing[4] = {0, 0, 0, 0};

    make_texture(work->textures[PLACES], GL_RGBA32F, lens->width, lens->height);
    make_texture(work->textures[LOOKS], GL_RGBA16F, lens->width, lens->height);
    make_texture(work->textures[DEPTHS], GL_DEPTH_COMPONENT32F, lens->width, lens->height);
    glBindFramebuffer(GL_FRAMEBUFFER, work->frames[0]);
    glFramebufferTexture(GL_FRAMEBUFFER, both[0], work->textures[PLACES], 0);
    glFramebufferTexture(GL_FRAMEBUFFER, both[1], work->textures[LOOKS], 0);
    glFramebufferTexture(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, work->textures[DEPTHS], 0);
    glDrawBuffers(2, both);
    glViewport(0, 0, (GLsizei)lens->width, (GLsizei)lens->height);
    glClearBufferfv(GL_COLOR, 0, nothing);
    glClearBufferfv(GL_COLOR, 1, nothing);
    glClearBufferfv(GL_DEPTH, 0, nothing);
    glDepthFunc(GL_GREATER);
    camera_matrix(lens, target.matrix);
    draw_all(work, &target);
}

static void draw_shadows(struct work *work)
{
    const float far = 1;

    glBindTexture(GL_TEXTURE_2D_ARRAY, work->textures[SHADOWS]);
    glTexStorage3D(GL_TEXTURE_2D_ARRAY, 1, GL_DEPTH_COMPONENT32F, CASCADE_TEXELS, CASCADE_TEXELS,
                   work->cascade_count);
    glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_COMPARE_MODE, GL_COMPARE_REF_TO_TEXTURE);
    glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_COMPARE_FUNC, GL_LEQUAL);
    glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    glBindFramebuffer(GL_FRAMEBUFFER, work->frames[1]);
    glDrawBuffer(GL_NONE);
    glViewport(0, 0, CASCADE_TEXELS, CASCADE_TEXELS);
    glDepthFunc(GL_LESS);
    for (int k = 0; k < work->cascade_count; k++) {
        struct target target = {.cascade = &work->cascades[k]};

        glFramebufferTextureLayer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, work->textures[SHADOWS], 0,
                                  k);
        glClearBufferfv(GL_DEPTH, 0, &far);
        cascade_matrix(&work->cascades[k], false, target.matrix);
        draw_all(work, &target);
    }
}

static void set_vector(GLuint program, const char *name, struct vec3 v)
{
    glUniform3f(glGetUniformLocation(program, name), (float)v.x, (float)v.y, (float)v.z);
}

static void set_shadows(GLuint program, const struct work *work)
{
    float matrices[CASCADES_MAX][16], texels[CASCADES_MAX][3];

    for (int k = 0; k < work->cascade_count; k++) {
        const struct cascade *c = &work->cascades[k];

        cascade_matrix(c, true, matrices[k]);
        texels[k][0] = (float)c->texel_m[0];
        texels[k][1] = (float)c->texel_m[1];
        texels[k][2] = (float)(1 / (c->depth[1] - c->depth[0]));
    }
    glUniform1i(glGetUniformLocation(program, "cascade_count"), work->cascade_count);
    glUniformMatrix4fv(glGetUniformLocation(program, "to_map"), work->cascade_count, GL_FALSE,
                       matrices[0]);
    glUniform3fv(glGetUniformLocation(program, "texel"), work->cascade_count, texels[0]);
    set_vector(program, "across", work->cascades[0].across); /* the same for all */
    set_vector(program, "upwards", work->cascades[0].upwards);
}

static void shade(struct work *work)
{
    const struct lens_frame *lens = work->lens;
    const GLuint program = work->draw->programs[PROGRAM_SHADE][0];
    const struct vec3 eye = {fmod(lens->eye.x, 4096), fmod(lens->eye.y, 4096),
                             fmod(lens->eye.z, 4096)};
    static const char *const names[] = {"places", "looks", "shadows"};
    const GLuint textures[] = {work->textures[PLACES], work->textures[LOOKS],
                               work->textures[SHADOWS]};

    make_texture(work->textures[COLOURS], GL_RGBA8, lens->width, lens->height);
    glBindFramebuffer(GL_FRAMEBUFFER, work->frames[2]);
    glFramebufferTexture(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, work->textures[COLOURS], 0);
    glViewport(0, 0, (GLsizei)lens->width, (GLsizei)lens->height);
    glDisable(GL_DEPTH_TEST);
    glUseProgram(program);
    for (GLuint i = 0; i < 3; i++) {
        glActiveTexture(GL_TEXTURE0 + i);
        glBindTexture(i == 2 ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D, textures[i]);
        glUniform1i(glGetUniformLocation(program, names[i]), (GLint)i);
    }
    set_shadows(program, work);
    set_vector(program, "forward", lens->forward);
    set_vector(program, "right", vec3_scale(lens->right, lens->tangent[0]));
    set_vector(program, "up", vec3_scale(lens->up, lens->tangent[1]));
    set_vector(program, "sun", vec3_opposite(work->light->direction));
    set_vector(program, "grain_base", eye);
    glUniform2f(glGetUniformLocation(program, "size"), (float)lens->width, (float)lens->height);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    glActiveTexture(GL_TEXTURE0);
}

/* ---- a picture ------------------------------------------------------------------------------- */

/* OpenGL's first row is the lowest. */
static enum err_code read_back(const struct work *work, uint8_t *rgb, float *distance_m,
                               struct err *err)
{
    const size_t width = work->lens->width, height = work->lens->height;
    uint8_t *from = malloc(width * height * (distance_m ? 16 : 4));
    const float *places = (const float *)(const void *)from;

    if (!from)
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture of %zu × %zu pixels", width,
                       height);
    glPixelStorei(GL_PACK_ALIGNMENT, 4);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, work->frames[2]);
    glReadPixels(0, 0, (GLsizei)width, (GLsizei)height, GL_RGBA, GL_UNSIGNED_BYTE, from);
    for (size_t row = 0; row < height; row++)
        for (size_t i = 0; i < width; i++)
            memcpy(rgb + 3 * (row * width + i), from + 4 * ((height - 1 - row) * width + i), 3);
    if (distance_m) {
        glBindFramebuffer(GL_READ_FRAMEBUFFER, work->frames[0]);
        glReadPixels(0, 0, (GLsizei)width, (GLsizei)height, GL_RGBA, GL_FLOAT, from);
        for (size_t row = 0; row < height; row++)
            for (size_t i = 0; i < width; i++)
                distance_m[row * width + i] = places[4 * ((height - 1 - row) * width + i) + 3];
    }
    free(from);
    return ERR_OK;
}

static void send_scene(struct work *work)
{
    const struct scene *scene = work->scene;

    fill_buffer(GL_SHADER_STORAGE_BUFFER, work->buffers[HEIGHTS], scene->heights,
                (size_t)scene->block_count * SCENE_STORED * SCENE_STORED * sizeof(float));
    fill_buffer(GL_SHADER_STORAGE_BUFFER, work->buffers[BLOCKS], scene->blocks,
                (size_t)scene->block_count * sizeof *scene->blocks);
    fill_buffer(GL_ARRAY_BUFFER, work->buffers[CORNERS], scene->corners,
                scene->corner_count * sizeof *scene->corners);
    fill_buffer(GL_ARRAY_BUFFER, work->buffers[NORMALS], scene->normals,
                scene->corner_count * sizeof *scene->normals);
    fill_buffer(GL_ARRAY_BUFFER, work->buffers[SPHERES], scene->spheres,
                scene->sphere_count * sizeof *scene->spheres);
}

enum err_code draw_picture(struct draw *draw, const struct scene *scene,
                           const struct lens_frame *lens, const struct draw_light *light,
                           uint8_t *rgb, float *distance_m, struct err *err)
{
    struct work work = {.draw = draw, .scene = scene, .lens = lens, .light = light};
    const uint32_t errors = context_errors(draw->context);

    err->code = ERR_OK;
    work.drawn = malloc(((size_t)scene->block_count + 1) * sizeof *work.drawn);
    if (!work.drawn)
        return err_set(err, ERR_NO_MEMORY, "no memory for the blocks of a view");
    if (light->has_shadows)
        work.cascade_count = cascades_make(scene, lens, light->direction, work.cascades);
    glGenTextures(5, work.textures);
    glGenFramebuffers(3, work.frames);
    glGenBuffers(7, work.buffers);
    glClipControl(GL_LOWER_LEFT, GL_ZERO_TO_ONE);
    glDisable(GL_CULL_FACE);
    glEnable(GL_DEPTH_TEST);
    send_scene(&work);
    draw_places(&work);
    if (work.cascade_count > 0)
        draw_shadows(&work);
    shade(&work);
    read_back(&work, rgb, distance_m, err);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteTextures(5, work.textures);
    glDeleteFramebuffers(3, work.frames);
    glDeleteBuffers(7, work.buffers);
    free(work.drawn);
    if (err->code == ERR_OK && (context_lost(draw->context) || glGetError() != GL_NO_ERROR ||
                                context_errors(draw->context) != errors))
        return err_set(err, ERR_INTERNAL, "OpenGL reported an error, or lost its context");
    return err->code;
}
