/*
 * Erosion: rivers that cut down, slopes that give way, valley floors that widen. All heights are
 * finite; grids are changed in place; results do not depend on `threads`.
 */
#ifndef KOTA_DEMO_EROSION_H
#define KOTA_DEMO_EROSION_H

#include "deploy/demo/drainage.h"
#include "deploy/demo/grid.h"

/* What a layer of rock withstands. */
struct rock {
    float erodibility; /* speed of incision, metres per unit of time at a slope and area of 1 */
    float talus;       /* the steepest slope it holds, rise over run */
};

struct stream_power {
    const struct rock *layers; /* from below; the first and last go on without end */
    uint32_t layer_count;
    double layer_thickness_m;
    const struct grid *fold;   /* height of the first layer's bottom, size of the ground; NULL: 0 */
    const struct grid *uplift; /* metres per unit of time, size of the ground; NULL: none */
    double sea_level_m;        /* cells at or below stay as they are; -INFINITY: no sea */
    double time_step;
    uint32_t steps;
    uint32_t seed;
};

/*
 * Incision by rivers: dh/dt = uplift - erodibility·sqrt(area)·slope along the way of the water,
 * solved implicitly from the outlets upwards, stable for any time step; then no cell is steeper
 * above its receiver than its rock's talus. Edge cells and the sea are outlets and do not change.
 *
 * ground must drain (drainage_fill); afterwards it still does. drainage holds the last step's
 * rivers. Cost O(n) a step. Source: J. Braun, S. Willett 2013 (sqrt(area): m = 0.5, n = 1); G.
 * Cordonnier et al., "Large scale terrain generation from tectonic uplift and fluvial erosion",
 * 2016 (talus).
 */
void erosion_stream_power(struct grid *ground, struct drainage *drainage,
                          const struct stream_power *spec, uint32_t threads);

/*
 * Widens valley floors: around each cell that drains at least area_min_m2, no ground within
 * width·sqrt(area) metres is above the river by more than a shallow bowl (side slope `rise` at
 * its rim). Lateral erosion, which stream power leaves out. Never raises ground.
 */
struct valley_floor {
    double area_min_m2;
    double width;       /* half width in metres per sqrt(m²); about 0.02 */
    double width_max_m; /* and at most this */
    double rise;
};

/* ERR_NO_MEMORY. Cost O(river cells · width²/spacing²). */
enum err_code erosion_widen(struct grid *ground, const struct drainage *drainage,
                            const struct valley_floor *spec, struct err *err);

/*
 * Thermal erosion: what lies steeper than talus (rise over run, towards any of the eight
 * neighbours) slides down, a sixteenth of the excess a step. Mass stays the same but for rounding;
 * nothing leaves over the edges. scratch has the ground's size and is overwritten. Cost O(n) a
 * step. Source: F. K. Musgrave, C. Kolb, R. Mace, "The synthesis and rendering of eroded fractal
 * terrains", 1989; J. Olsen, "Realtime procedural terrain generation", 2004.
 */
void erosion_thermal(struct grid *ground, struct grid *scratch, double talus, uint32_t steps,
                     uint32_t threads);

/* The steepest rise over run between any two neighbours of the eight. O(n). */
double erosion_steepest(const struct grid *ground);

#endif
