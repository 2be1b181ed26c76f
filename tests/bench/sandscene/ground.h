#ifndef KOTA_SANDSCENE_GROUND_H
#define KOTA_SANDSCENE_GROUND_H

/* Ground and barrels for the scenes: made of nothing but numbers, the same on every machine. */

#include "sand/engine.h"

enum { GROUND_BED = 33 }; /* samples of the bed along each side */

struct ground {
    float size_m, depth_m;
    float bed_m[GROUND_BED * GROUND_BED];
    struct granule *granules; /* [count] */
    uint32_t count;
};

/*
 * A square of gentle hills, depth_m of granules over a rigid bed, with exactly `count` granules:
 * its size follows from them. ERR_NO_MEMORY. ground_free frees it.
 */
enum err_code ground_make(const struct granular_params *params, uint32_t count, float depth_m,
                          struct ground *ground, struct err *err);
void ground_free(struct ground *ground);

/* Fills a slot that it begins. */
enum err_code ground_begin(const struct ground *ground, struct sand_engine *engine, uint32_t slot,
                           struct err *err);

/* Height of the surface [m]: bed and depth. */
float ground_height(const struct ground *ground, float x, float y);

/*
 * The shell of a barrel, three radii high, of exactly `particles` >= 16 particles that stand
 * 1.4 r apart: its size follows from them. offsets_m[particles][3] is written and borrowed.
 */
void barrel_make(const struct granular_params *params, uint32_t particles, float (*offsets_m)[3],
                 struct sand_shape *shape);

/* Height of such a barrel [m]. */
float barrel_height(const struct granular_params *params, uint32_t particles);

#endif
