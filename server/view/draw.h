/*
 * Drawing a scene by OpenGL: what each pixel shows, up to four shadow maps, then its colour.
 */
#ifndef KOTA_VIEW_DRAW_H
#define KOTA_VIEW_DRAW_H

#include "sand/engine_gl/context.h"
#include "view/scene.h"

struct draw;

/*
 * The programs, in the current context. NULL: ERR_INTERNAL with the compiler's first line,
 * ERR_NO_DEVICE: this OpenGL lacks something; ERR_NO_MEMORY.
 */
struct draw *draw_create(struct context *context, struct err *err);
void draw_destroy(struct draw *draw); /* NULL is fine */

/* Bytes of the device's memory for a picture, beside its scene. */
uint64_t draw_bytes(uint32_t width, uint32_t height);

/* The way that the sun's light travels, unit. */
struct draw_light {
    struct vec3 direction;
    bool has_shadows;
};

/*
 * rgb         out, [height][width][3], first row on top
 * distance_m  out, NULL or [height][width]: along the pixel's ray; 0 where it shows sky
 * ERR_INTERNAL  OpenGL reported an error, or the context is lost; ERR_NO_MEMORY
 */
enum err_code draw_picture(struct draw *draw, const struct scene *scene,
                           const struct lens_frame *lens, const struct draw_light *light,
                           uint8_t *rgb, float *distance_m, struct err *err);

#endif
