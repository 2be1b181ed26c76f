/*
 * Pictures of a heightfield: one ray a sample of a pixel, through the same heightfield_ray that
 * answers clients. Pure: a field and a view in, pixels out.
 */
#ifndef KOTA_DEMO_PICTURE_H
#define KOTA_DEMO_PICTURE_H

#include "terrain/pick.h"
#include "deploy/demo/palette.h"

#include <stdint.h>

struct picture_view {
    uint32_t width, height; /* pixels */
    struct camera camera;
    struct vec3 sun; /* towards the sun, not zero */
    enum palette palette;
    uint32_t threads;
};

/*
 * Perspective: sun and sky light, cast shadows, aerial haze, a sea at height 0 with
 * PALETTE_ISLANDS; 2×2 samples a pixel. PALETTE_AUTO: islands when the ground reaches below 0, else
 * alpine.
 *
 * rgb  out, [height][width][3], first row on top
 * ERR_UNPROCESSABLE  a camera that sees nothing (pick_camera_ray), a field without data
 * Cost about 10 rays a sample: a minute of one core for 1280 × 720.
 */
enum err_code picture_perspective(const struct heightfield *field, const struct picture_view *view,
                                  uint8_t *rgb, struct err *err);

/*
 * From above, north up, shaded by slope and cast shadows; view's width and height span the field,
 * its camera is not looked at. Holes are drawn magenta. Same errors and layout.
 */
enum err_code picture_map(const struct heightfield *field, const struct picture_view *view,
                          uint8_t *rgb, struct err *err);

#endif
