/*
 * Which parts of a view up to four shadow maps cover, in the sun's frame. Pure.
 */
#ifndef KOTA_VIEW_CASCADE_H
#define KOTA_VIEW_CASCADE_H

#include "view/scene.h"

enum { CASCADES_MAX = 4, CASCADE_TEXELS = 2048 };

struct cascade {
    struct vec3 across, upwards, along; /* unit; along: the way of the light */
    double middle[2], radius_m;         /* the square, of places relative to the eye */
    double depth[2];                    /* least and greatest of all that there is */
    double texel_m;
};

/*
 * The maps of a scene under a light, and how many: 0 where nothing is in the view. Map k covers the
 * part of the view between two depths, the far one at most three times as far unless four maps are
 * too few, by the ball around it, so that turning the camera changes no texel; its middle is
 * snapped
 * to texels of the locale, so that moving it does not either. Each of them takes what casts shadows
 * into it from anywhere, also from behind the eye.
 * Source: M. Valient, Stable rendering of cascaded shadow maps (ShaderX6, 2008).
 */
int cascades_make(const struct scene *scene, const struct lens_frame *lens, struct vec3 light,
                  struct cascade out[CASCADES_MAX]);

/* Does anything of a box (relative to the eye) fall into the map? */
bool cascade_sees(const struct cascade *cascade, const struct box3 *box);

/* Column-major, of places relative to the eye: clip space, or u, v, depth from 0 to 1. */
void cascade_matrix(const struct cascade *cascade, bool to_map, float out[16]);

#endif
