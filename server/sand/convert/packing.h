#ifndef KOTA_SAND_PACKING_H
#define KOTA_SAND_PACKING_H

/*
 * A dense packing of granules at rest, from which ground is cut. It was made once, with low
 * friction (kota-sand bake), and is embedded in the program; its unit of length is the sphere
 * radius r. It is a cube that repeats along x, y and z without a seam.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sand/granular.h"

struct packing {
    uint32_t granules;
    float period;           /* in r: centres lie in 0 <= x, y, z < period */
    const float (*pose)[8]; /* [granules]: x y z in r, 0; quaternion x y z w */
};

/* The packing that comes with the program. Any thread. */
const struct packing *packing_dense(void);

/* Volume of spheres per volume. */
float packing_fraction(const struct packing *packing);

/*
 * Is a granule with its centre at x part of the cut ground? Called for each granule of the tiled
 * packing within the box. Poses are in the local frame of a slot.
 */
typedef bool packing_keep(void *context, const float x[3]);

/*
 * Tiles the packing over 0 <= x < size[0], 0 <= y < size[1], z_from <= z < z_to, in metres, and
 * writes those for which `keep` is true to out[capacity]. The packing is moved by `shift` metres
 * first, so that different patches may cut it differently. Returns how many were kept, which may be
 * more than capacity: then only the first were written. Order: by tile, then by the packing's own
 * order, the same on every machine.
 */
uint32_t packing_cut(const struct packing *packing, float radius_m, const float size[2],
                     float z_from, float z_to, const float shift[3], packing_keep *keep,
                     void *context, struct granule *out, uint32_t capacity);

/*
 * Sorts granules along Morton's curve in cells of side_m, so that neighbours have ids that are
 * near: engines find them in the same lines of memory. False without memory; the order then stays.
 */
bool packing_order(struct granule *granules, uint32_t count, float side_m);

#endif
