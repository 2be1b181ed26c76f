#ifndef KOTA_SANDSCENE_PACKING_BAKE_H
#define KOTA_SANDSCENE_PACKING_BAKE_H

/* How the packing that ground is cut from was made; by kota-sand bake, and small ones by a test. */

#include "base/err.h"
#include "sand/granular.h"

struct packing_bake {
    uint32_t side;  /* granules along one edge at the start: side^3 in all, 3..16 */
    float friction; /* while packing; low, so that they find dense places */
    float fraction; /* volume of spheres per volume to stop at, 0.3..0.63 */
    uint64_t seed;
    uint32_t threads;
};

/*
 * Packs side^3 granules into a cube that repeats along all axes. Writes them in units of the sphere
 * radius: x y z, 0, quaternion; centres lie in 0 <= x, y, z < *period. pose[side^3][8].
 * *overlap: the mean overlap of the contacts in r, how hard they press. The same for any number of
 * threads. Cost: some 10,000 substeps of side^3 granules. ERR_NO_MEMORY.
 */
enum err_code packing_bake(const struct packing_bake *bake, float (*pose)[8], float *period,
                           float *overlap, struct err *err);

#endif
