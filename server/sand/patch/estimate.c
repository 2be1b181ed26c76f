/*
 * Estimates of time.
 *
 * Problem: a patch takes between one second and ten minutes, and the difference is the number of
 * spheres and the device. Approach: cost is sphere-steps, and the device's rate of them is measured
 * when its pool is made, again with each patch that settles, and where it refused a request.
 * Settling takes about the same simulated time for all patches of a scale. While active the clock
 * goes on at `speed`, or more slowly where the device cannot follow: a body stirs a part of the
 * ground for as long as it moves, and comes to rest some STIR_S after it has met the ground. These
 * two numbers were fitted to patches of 4 to 12 m; an estimate is right within a factor of two.
 */
#include "sand/patch/estimate.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_S 2.0     /* without the time of stillness, at r = 0.1 m */
#define STIR_S 2.2       /* simulated, from the impact to stillness */
#define STIRRED_PART 0.5 /* of the granules, on the average of that time */
#define LEARN 0.5
#define SIDE 6 /* granules along each side of what is measured */
#define ROUNDS 5
#define SUBSTEPS 32 /* of a round: later the granules have flown apart */

void sand_rate_init(struct sand_rate *rate, const struct granular_params *params)
{
    *rate = (struct sand_rate){.settle_s = SETTLE_S * pow((double)params->radius_m / 0.1, 0.25)};
}

/* Clock seconds of one granule to active, and from there to rest. */
static void costs_of(const struct sand_rate *rate, const struct granular_params *params,
                     const struct patch_load *load, double *settle_s, double *stir_s)
{
    const double step_s = params->spheres / rate->sphere_steps_s;

    *settle_s = (rate->settle_s + load->settle_still_s) / (double)params->dt_s * step_s;
    *stir_s = load->fall_s < 0 ? 0 : STIR_S * STIRRED_PART / (double)params->dt_s * step_s;
}

/* What the clock takes from active to rest on a device that can follow. */
static double active_least_s(const struct patch_load *load)
{
    const double simulated_s = load->pause_after_s + (load->fall_s < 0 ? 0 : load->fall_s + STIR_S);

    return load->speed > 0 ? simulated_s / load->speed : 0;
}

struct patch_estimate patch_estimate_of(const struct sand_rate *rate,
                                        const struct granular_params *params,
                                        const struct patch_load *load)
{
    struct patch_estimate out;
    double settle_s, stir_s;

    costs_of(rate, params, load, &settle_s, &stir_s);
    out.active_s = load->granules * settle_s;
    out.resting_s = out.active_s + fmax(active_least_s(load), load->granules * stir_s);
    return out;
}

double patch_granules_within(const struct sand_rate *rate, const struct granular_params *params,
                             const struct patch_load *load, double limit_s)
{
    double settle_s, stir_s;

    costs_of(rate, params, load, &settle_s, &stir_s);
    return floor(fmin((limit_s - active_least_s(load)) / settle_s, limit_s / (settle_s + stir_s)));
}

void sand_rate_learn(struct sand_rate *rate, double sphere_steps, double clock_s,
                     double simulated_s)
{
    const double now = sphere_steps / fmax(clock_s, 1e-3);

    if (!(now > 0))
        return;
    rate->sphere_steps_s =
        rate->sphere_steps_s > 0 ? (1 - LEARN) * rate->sphere_steps_s + LEARN * now : now;
    rate->settle_s = (1 - LEARN) * rate->settle_s + LEARN * simulated_s;
}

/* ---- a new engine ---------------------------------------------------------------------------- */

/* Granules on a lattice, a tenth closer than they touch, and all in motion. */
static void lattice(const struct granular_params *params, struct granule *granules)
{
    const float pitch_m = 0.9f * params->diameter_m;

    for (int i = 0; i < SIDE * SIDE * SIDE; i++)
        granules[i] = (struct granule){.x = {((float)(i % SIDE) + 0.6f) * pitch_m,
                                             ((float)(i / SIDE % SIDE) + 0.6f) * pitch_m,
                                             ((float)(i / SIDE / SIDE) + 0.6f) * pitch_m, 0},
                                       .q = {0, 0, 0, 1}};
}

static enum err_code fill(struct sand_engine *engine, struct err *err)
{
    const struct granular_params *params = &engine->config.params;
    const float side_m = (0.9f * SIDE + 0.3f) * params->diameter_m;
    const float bed_m[4] = {0, 0, 0, 0};
    const struct sand_slot_begin begin = {.size_m = {side_m, side_m},
                                          .height_m = 2 * side_m,
                                          .gravity = {0, 0, -9.81f},
                                          .bed = {.cols = 2, .rows = 2, .dx = side_m, .dy = side_m},
                                          .heights_m = bed_m};
    struct granule granules[SIDE * SIDE * SIDE];

    lattice(params, granules);
    if (sand_slot_begin(engine, 0, &begin, err) == ERR_OK &&
        sand_slot_fill(engine, 0, granules, SIDE * SIDE * SIDE, err))
        sand_slot_end(engine, 0);
    return err->code;
}

/* Seconds of a round; its granules are new ones, which are close together at first. */
static double time_round(struct sand_engine *engine, struct granule *read, struct err *err)
{
    double began_s, seconds;

    if (fill(engine, err))
        return 0;
    began_s = monotonic_s();
    if (sand_engine_step(engine, SUBSTEPS, 1, err) == ERR_OK)
        sand_granules_read(engine, 0, read); /* waits for the device */
    seconds = monotonic_s() - began_s;
    sand_slot_end(engine, 0);
    return seconds;
}

double sand_rate_measure(struct sand_engine *engine, struct err *err)
{
    const uint32_t spheres = SIDE * SIDE * SIDE * engine->config.params.spheres;
    struct granule *read = malloc(engine->config.granules_max * sizeof *read);
    double best_s = INFINITY; /* of the rounds: others may have waited for a core */

    err->code = ERR_OK;
    if (!read)
        err_set(err, ERR_NO_MEMORY, "no memory for measuring a pool");
    if (read && engine->config.granules_max >= SIDE * SIDE * SIDE) {
        time_round(engine, read, err); /* warms up */
        for (int round = 0; round < ROUNDS && err->code == ERR_OK; round++)
            best_s = fmin(best_s, time_round(engine, read, err));
    }
    free(read);
    return best_s > 0 && best_s < INFINITY && err->code == ERR_OK
               ? (double)spheres * SUBSTEPS / best_s
               : 0;
}
