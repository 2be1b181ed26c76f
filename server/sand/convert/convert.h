/*
 * Ground to granules and back (text S, 5.3 and 5.4; design, section 4). Pure: no clock, no thread.
 *
 * A patch covers whole cells of one heightfield. It is simulated in a local frame: the origin is
 * its south-west corner at the elevation of the deepest point of its bed (convert_place.z_m).
 *
 * Down: granules from the dense packing, cut by the surface, over a bed that follows the ground
 * `depth` below it. Up: two depth maps of the same grid, one from before the first body and one
 * from the end, and their difference as heights to be added to the samples.
 */
#ifndef KOTA_SAND_CONVERT_H
#define KOTA_SAND_CONVERT_H

#include "sand/engine.h"
#include "terrain/field/edit.h"

/* Where a patch lies. */
struct convert_place {
    struct sample_rect samples; /* of the field; the outermost ones are the patch's edges */
    struct vec2 low;            /* the south-west corner, in the locale's frame */
    double size_m[2];
    double spacing_m[2];
    double depth_m;
    double z_m;              /* local z = 0: the least sample of the rect less depth */
    double lowest_m, peak_m; /* least and greatest sample of the rect */
};

/*
 * The whole cells nearest to the requested square.
 * ERR_BAD_INPUT      numbers that are not finite, a size or depth that is not above 0
 * ERR_UNPROCESSABLE  beyond the field, over a hole, a side of one cell (a sample between the edges
 *                    is the least that can change), a side or a depth too small for granules of
 *                    this diameter (4 and 2 of them)
 * ERR_TOO_LARGE      more than samples_max samples
 * O(samples of the rect).
 */
enum err_code convert_place_find(const struct heightfield *field, struct vec2 center,
                                 const double size_m[2], double depth_m, double diameter_m,
                                 uint64_t samples_max, struct convert_place *out, struct err *err);

enum convert_fill {
    CONVERT_PACKED, /* cut from the settled packing */
    CONVERT_STACKED /* S's columns of granules, one diameter apart */
};

/* A slot's contents; free with convert_ground_free. */
struct convert_ground {
    struct sand_slot_begin begin; /* heights_m is bed_m; gravity is left to the caller */
    float *bed_m;
    struct granule *granules;
    uint32_t count;
};

/* The most granules of a place: of packed ground, the count after settling. */
double convert_granules(const struct convert_place *place, const struct granular_params *params,
                        enum convert_fill fill);

/*
 * What convert_down would refuse before it cuts anything: ERR_TOO_LARGE, ERR_UNPROCESSABLE. O(1).
 */
enum err_code convert_check(const struct convert_place *place, const struct granular_params *params,
                            enum convert_fill fill, uint32_t granules_max, struct err *err);

/*
 * Cuts the ground of a place. The same seed gives the same granules. Granules that would stick out
 * of a wall or into the bed are left out; those at the surface are turned by the seed, as far as
 * their neighbours leave them room (stacked ones always). bed_max bounds the bed's samples.
 *
 * ERR_TOO_LARGE      more than granules_max, with limit and got
 * ERR_UNPROCESSABLE  ground so steep that most of the cut would be air
 * ERR_NO_MEMORY
 * O(granules), some 10 ms for 50,000: for a worker.
 */
enum err_code convert_down(const struct heightfield *field, const struct convert_place *place,
                           const struct granular_params *params, enum convert_fill fill,
                           uint64_t seed, uint32_t granules_max, uint32_t bed_max,
                           struct convert_ground *out, struct err *err);
void convert_ground_free(struct convert_ground *ground); /* an empty one is fine */

/*
 * The grid of the depth maps: each sample inside the rim has a cell of its own around it, of
 * per_sample[0] × per_sample[1] texels that are at most half a diameter wide, so that the mean of
 * a cell is what its sample grows by, and volume is kept. The oversampling is reduced to fit
 * points_max (sub-texels). ERR_TOO_LARGE when even without it does not.
 */
struct convert_grid {
    struct sand_depth depth;
    uint32_t per_sample[2];
};
enum err_code convert_grid_make(const struct convert_place *place, double diameter_m,
                                uint32_t points_max, struct convert_grid *out, struct err *err);

/* Where the material is that was there. Volumes are of heaped granules, pores and all. */
struct mass_ledger {
    double volume_before_m3, volume_after_m3; /* over the bed, as the depth maps measured it */
    double moved_m3;                          /* half of the sum of the dug and the heaped volume */
    double compacted_m3;                      /* dug less heaped, as measured */
    double lost_m3; /* of that, the part that is not given back: dug less heaped, as written */
};

enum convert_mode {
    CONVERT_DIFFERENCE, /* what changed, with hysteresis, to nothing at the rim */
    CONVERT_OVERWRITE   /* S: the depths in place of the samples, then a 3×3 Gaussian */
};

/* What is to be added to the field; empty when nothing has moved. */
struct convert_change {
    struct sample_rect rect; /* cols 0: nothing has moved */
    float *heights_m;        /* malloc, as the next */
    float *next_m;           /* depth map: `before` of the next difference, when this is written */
    struct mass_ledger ledger;
};
void convert_change_free(struct convert_change *change); /* an empty one is fine */

/*
 * Ground that is steeper than granules can lie has slumped while they settled: there the measured
 * depths before_m become the ground's own, so that the next difference writes the slope as it is
 * now. A place belongs to it where their means over a diameter differ by half a diameter, or
 * by 0.15 D next to such a place; ground whose mean is nowhere steeper than 30 degrees never does.
 * ERR_NO_MEMORY. O(texels).
 */
enum err_code convert_slump(const struct heightfield *field, const struct convert_place *place,
                            const struct convert_grid *grid, double diameter_m, float *before_m,
                            struct err *err);

/*
 * The change between two depth maps of one grid, [rows][cols] in the local frame.
 *
 * Difference: of Δ = after - before the texels beyond 0.11 D and those connected to them (8
 * neighbours) beyond 0.022 D, when together they hold a granule; smoothed among themselves by a
 * Gaussian of 0.35 D where samples are closer than D; averaged over the samples' cells; times a
 * smooth step that is 0 on the patch's edge and 1 from a cell or two diameters inwards (at most a
 * quarter of the side); and what was compacted is spread over it, up to half of what moved, most
 * where most has moved. A sample that gets nothing gets -0, so that it keeps its bits; a hole, too.
 * Overwrite: needs the field as it is, which the difference does not.
 *
 * ERR_INTERNAL   a depth that is not finite
 * ERR_NO_MEMORY
 * O(texels).
 */
enum err_code convert_up(const struct heightfield *field, const struct convert_place *place,
                         const struct convert_grid *grid, double diameter_m, const float *before_m,
                         const float *after_m, enum convert_mode mode, struct convert_change *out,
                         struct err *err);

#endif
