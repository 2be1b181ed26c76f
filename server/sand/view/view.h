/*
 * A picture of a patch: its spheres and bodies, lit and shadowed, and the ground around. By the
 * processor only; pure: a scene in, pixels out.
 */
#ifndef KOTA_SAND_VIEW_H
#define KOTA_SAND_VIEW_H

#include "formats/raster/raster.h"
#include "sand/body/triangle_tree.h"
#include "sand/material.h"
#include "terrain/pick.h"

/* A model where it lies: its own frame's origin, and the turn from it to the locale's. */
struct view_body {
    struct triangle_mesh mesh;
    struct vec3 origin;
    double orientation[4]; /* unit quaternion x y z w */
};

/* All in the locale's frame but the spheres. Borrowed. */
struct view_scene {
    const struct heightfield *field;
    double min[2], max[2]; /* the patch: x, y */
    double depth_m;        /* of the bed under the ground */
    /*
     * As sand_spheres_poll gives them: x, y, z from `origin`; those whose [3] is not negative are
     * of bodies' shells and not drawn. None: the patch is still ground.
     */
    const float (*spheres)[4];
    uint32_t sphere_count;
    uint32_t spheres_of_granule; /* >= 1: so many in a row have one shade */
    float radius_m;
    enum granular_material material; /* a preset */
    struct vec3 origin;
    const struct view_body *bodies;
    uint32_t body_count;
};

enum { VIEW_SIDE_MIN = 16, VIEW_SIDE_MAX = 1920 };

struct view_options {
    uint32_t width, height;      /* pixels, VIEW_SIDE_MIN..VIEW_SIDE_MAX */
    const struct camera *camera; /* NULL: view_camera's */
};

/*
 * The camera: in the south-west, 35 degrees above or as steep as the ground in between requires,
 * the whole patch in the picture.
 */
struct camera view_camera(const struct view_scene *scene, uint32_t width, uint32_t height);

/*
 * rgb  out, [height][width][3], first row on top
 * ERR_BAD_INPUT      a size out of range
 * ERR_UNPROCESSABLE  a camera that sees nothing (pick_camera_ray)
 * ERR_NO_MEMORY
 * The same scene gives the same bytes. Spheres that are not finite are left out. Some 0.1 s of one
 * core for 640 × 480 and 16,000 spheres.
 */
enum err_code view_render(const struct view_scene *scene, const struct view_options *options,
                          uint8_t *rgb, struct err *err);

/* The same as a PNG; *out is untouched unless ERR_OK. */
enum err_code view_png(const struct view_scene *scene, const struct view_options *options,
                       struct raster_bytes *out, struct err *err);

#endif
