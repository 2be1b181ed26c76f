/*
 * How long a patch will take on this device: from its request to `active`, and to `resting`.
 */
#ifndef KOTA_SAND_ESTIMATE_H
#define KOTA_SAND_ESTIMATE_H

#include "sand/engine.h"

/* Of one scale on this device, as last measured. */
struct sand_rate {
    double
        sphere_steps_s; /* spheres times substeps in a second, while ground settles; 0: unknown */
    double settle_s;    /* simulated time that ground takes to settle */
};

/* What is asked of the device. */
struct patch_load {
    double granules;
    double fall_s; /* until the last body meets the ground; below 0: there are no bodies */
    double speed;  /* simulated seconds in one of the clock while active; 0: as fast as it goes */
    double pause_after_s, settle_still_s;
};

struct patch_estimate {
    double active_s, resting_s; /* of the clock, from the request on */
};

/* Where nothing was measured: sphere_steps_s 0, and settle_s of this scale. */
void sand_rate_init(struct sand_rate *rate, const struct granular_params *params);

/* rate->sphere_steps_s must be known. O(1). */
struct patch_estimate patch_estimate_of(const struct sand_rate *rate,
                                        const struct granular_params *params,
                                        const struct patch_load *load);

/* The most granules that rest within limit_s; below 0: none would. */
double patch_granules_within(const struct sand_rate *rate, const struct granular_params *params,
                             const struct patch_load *load, double limit_s);

/* One patch has settled: in clock_s of the clock and simulated_s. Moves the rate towards it. */
void sand_rate_learn(struct sand_rate *rate, double sphere_steps, double clock_s,
                     double simulated_s);

/*
 * Measures an engine whose slots are free: the best of some rounds of a few granules in slot 0.
 * Blocks. Returns sphere-steps a second; 0 and an error when the engine refuses them.
 */
double sand_rate_measure(struct sand_engine *engine, struct err *err);

#endif
