#ifndef KOTA_SANDSCENE_CYCLE_H
#define KOTA_SANDSCENE_CYCLE_H

/* Ground to granules and back, once, as a patch goes it; and what that did to the ground. */

#include "sand/convert/convert.h"
#include "sand/material.h"

struct stage_options {
    enum granular_scale scale;
    double size_m, depth_m; /* of the patch */
    uint32_t cells;         /* along a side of the patch, 4..256 */
    uint32_t threads;
    const char *gpu; /* NULL: the C engine */
};

/* A field of gentle hills, and a place in its middle. */
struct stage {
    struct granular_params params;
    struct heightfield *field; /* as the last cycle left it */
    struct convert_place place;
    struct convert_grid grid;
    float *before_m, *after_m; /* depth maps of the last cycle */
    double volume_m3;          /* of the place: size by size by depth */
    uint32_t granules_max;
    const struct stage_options *options;
    struct sand_engine *engine;
};

/* ERR_* of convert_place_find, the engine's, ERR_NO_MEMORY. stage_finish frees it in any case. */
enum err_code stage_init(struct stage *stage, const struct stage_options *options, struct err *err);
void stage_finish(struct stage *stage);

struct cycle_how {
    enum convert_fill fill;
    enum convert_mode mode;
    uint64_t seed;
    double drop_kg, speed_m_s; /* a barrel that falls into the middle; 0 kg: nothing falls */
};

struct cycle {
    uint32_t granules, particles;
    double fraction;         /* of the place that spheres fill when it is cut */
    double settle_s, rest_s; /* simulated until it came to rest: as cut, and hit */
    double sunk_m;           /* mean way of the surface while it settled, downwards */
    struct mass_ledger ledger;
    uint32_t changed; /* samples */
    uint32_t outside; /* of them, not within the patch */
    uint32_t still;   /* of them, inner ones over which no texel changed in a bit */
    double error_m;   /* mean |height written - surface of granules| where it changed; 0: nowhere */
    double bias_m;    /* mean of the same without || */
};

/*
 * Cuts the place, waits for rest, lets the barrel fall, waits for rest, writes back: stage->field
 * is the new one. Rest: bodies slow and 99 of 100 granules asleep for half a second. ERR_INTERNAL:
 * the solver failed, or there was no rest within 30 s.
 */
enum err_code cycle_run(struct stage *stage, const struct cycle_how *how, struct cycle *out,
                        struct err *err);

#endif
