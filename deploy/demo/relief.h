/*
 * A relief grown from coarse to fine: rivers first settle on a coarse grid, where a step is cheap
 * and a valley is a few cells; each finer grid then starts from the coarser one, folded a little
 * and roughened, and cuts its own smaller valleys.
 */
#ifndef KOTA_DEMO_RELIEF_H
#define KOTA_DEMO_RELIEF_H

#include "deploy/demo/erosion.h"
#include "deploy/demo/grid.h"

/* A function of a point of the plane, metres; pure. */
typedef double (*relief_function)(double x_m, double y_m, uint32_t seed);

/* What one level of the pyramid does. */
struct relief_level {
    uint32_t steps; /* of stream power */
    double time_step;
    double detail_m;  /* amplitude of the roughness that is added before */
    bool widen;       /* valley floors after it */
    uint32_t thermal; /* steps of thermal erosion after it */
};

enum { RELIEF_LEVELS_MAX = 8 };

struct relief_spec {
    double extent_x_m, extent_y_m; /* the ground covers 0 <= x < extent */
    relief_function start;         /* the first ground */
    relief_function uplift;        /* metres per unit of time; NULL: none */
    relief_function fold;          /* bottom of the lowest layer of rock; NULL: 0 */
    const struct rock *layers;
    uint32_t layer_count;
    double layer_thickness_m;
    double sea_level_m;
    double talus; /* of the thermal erosion */
    struct valley_floor floors;
    struct relief_level levels[RELIEF_LEVELS_MAX]; /* from the coarsest; the last one goes on */
};

/*
 * Grows a relief with cols = size samples along x at spacing extent_x_m/size, and as many rows as
 * the extent has. The coarsest level is 128 to 255 samples wide. Each level is 24 cells wider on
 * all sides than the ground, so that the outlets on its edge are not seen.
 *
 * out  created; origin 0, 0
 * ERR_NO_MEMORY. The result does not depend on threads.
 */
enum err_code relief_grow(const struct relief_spec *spec, uint32_t size, uint32_t seed,
                          uint32_t threads, struct grid *out, struct err *err);

/* Sets every sample to what `function` says at its place, with rows on several threads. */
void relief_fill(struct grid *grid, relief_function function, uint32_t seed, uint32_t threads);

#endif
