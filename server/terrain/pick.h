/*
 * Picking: a pixel of a camera becomes a ray, a hit becomes a logical tile (text P, made exact).
 */
#ifndef KOTA_TERRAIN_PICK_H
#define KOTA_TERRAIN_PICK_H

#include "terrain/field_ray/ray.h"

struct camera {
    struct vec3 eye, target, up;
    double fov_y_deg; /* 0..180, exclusive */
};
#define PICK_FOV_Y_DEG 60.0 /* of a camera that names none */
/* The least sine between up and the view. */
#define PICK_PARALLEL 1e-9

/* Up of a camera that names none: text Q's Z, or Y where the view is along Z. */
struct vec3 pick_default_up(const struct camera *camera);

/* Depth of the near plane and of the far one: -1 and 1; 0 and 1; 1 and 0. */
enum depth_range { DEPTH_GL, DEPTH_WEBGPU, DEPTH_REVERSED };

struct viewport {
    double width_px, height_px; /* > 0 */
    double pixel_x, pixel_y;    /* (0,0) is the upper left corner; a pixel's centre is at +0.5 */
};

/* ERR_UNPROCESSABLE: no width, no height, or a pixel that is not finite. */
enum err_code pick_viewport_check(const struct viewport *viewport, struct err *err);
/* ERR_UNPROCESSABLE: the pixel is not in 0 <= x < width, 0 <= y < height. */
enum err_code pick_pixel_check(const struct viewport *viewport, struct err *err);

/*
 * ERR_UNPROCESSABLE  eye = target, up along the view, an angle out of range; err->pointer is the
 *                    member
 */
enum err_code pick_camera_check(const struct camera *camera, struct err *err);

/*
 * The ray through a pixel: origin the eye, direction a unit vector, t_max infinite.
 *
 * ERR_UNPROCESSABLE  eye = target, up along the view, an angle or viewport out of range
 */
enum err_code pick_camera_ray(const struct camera *camera, const struct viewport *viewport,
                              struct ray *ray, struct err *err);

/*
 * The same from the inverse of view-projection (column-major, so m[12..14] is the translation):
 * from the near plane to the far plane, direction a unit vector, t_max the far plane (which may be
 * at infinity).
 *
 * ERR_UNPROCESSABLE  a singular matrix, a pixel that maps to infinity
 */
enum err_code pick_unproject_ray(const double m[16], enum depth_range depth,
                                 const struct viewport *viewport, struct ray *ray, struct err *err);

struct logical_tile {
    uint32_t column, row, side; /* side in cells; column = floor(c / side) */
    struct vec3 center;         /* over the middle of the tile (of its part inside the field) */
    bool center_on_surface;     /* false over a hole: center.z is then NaN */
    struct box3 bounds;         /* of the tile's samples, clipped to the field */
};

/* The logical tile that holds a cell; side >= 1. O(tile's boundary in the pyramid). */
void pick_logical_tile(const struct heightfield *field, const uint32_t cell[2], uint32_t side,
                       struct logical_tile *out);

#endif
