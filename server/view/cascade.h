/*
 * Which parts of a view up to four shadow maps cover, in the sun's frame. Pure.
 */
#ifndef KOTA_VIEW_CASCADE_H
#define KOTA_VIEW_CASCADE_H

#include "view/scene.h"

enum { CASCADES_MAX = 4, CASCADE_TEXELS = 4096 };

struct cascade {
    struct vec3 across, upwards, along; /* unit; along: the way of the light */
    double middle[2], half_m[2];        /* the rectangle, of places relative to the eye */
    double depth[2];                    /* least and greatest of all that there is */
    double texel_m[2];
};

/*
 * The maps of a scene under a light, and how many: 0 where nothing is in the view. Map k covers the
 * part of the view between two depths, the far one at most three times as far unless four maps are
 * too few, as closely as the boxes of what is seen there allow. Each of them takes what casts
 * shadows into it from anywhere, also from behind the eye.
 */
int cascades_make(const struct scene *scene, const struct lens_frame *lens, struct vec3 light,
                  struct cascade out[CASCADES_MAX]);

/* Does anything of a box (relative to the eye) fall into the map? */
bool cascade_sees(const struct cascade *cascade, const struct box3 *box);

/* Column-major, of places relative to the eye: clip space, or u, v, depth from 0 to 1. */
void cascade_matrix(const struct cascade *cascade, bool to_map, float out[16]);

#endif
