/*
 * Packing granules densely, without a floor, a top or a seam.
 *
 * Granules start on a loose jittered lattice, in random orientation, in a cube that repeats along
 * x, y and z. There is no gravity: the cube shrinks, all centres with it, and friction is low, so
 * that contacts slide and the granules find places. Shrinking goes in small moves with some
 * substeps between them; it slows down near the end. At the wanted fraction the cube stays and the
 * granules come to rest, with strong background damping.
 *
 * Tried and dropped: pouring onto a floor. The layers next to the floor are ordered, and neither
 * the floor nor the top fits onto the other when ground deeper than the packing is cut.
 * The method is that of B. D. Lubachevsky, F. H. Stillinger (1990), with soft spheres.
 */
#include "bench/sandscene/packing_bake.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "sand/material.h"
#include "sand/engine_c/solver.h"

/* Random numbers of our own, the same everywhere: splitmix64. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double random_unit(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* Uniform over the rotations (K. Shoemake 1992). */
static void random_turn(uint64_t *state, float q[4])
{
    double u = random_unit(state);
    double a = 2 * M_PI * random_unit(state), b = 2 * M_PI * random_unit(state);

    q[0] = (float)(sqrt(1 - u) * sin(a));
    q[1] = (float)(sqrt(1 - u) * cos(a));
    q[2] = (float)(sqrt(u) * sin(b));
    q[3] = (float)(sqrt(u) * cos(b));
}

struct baker {
    struct sand_engine *engine;
    struct granule *granule;
    uint32_t count;
    double period_m; /* of the granules as they are */
};

static void scatter(struct baker *baker, const struct packing_bake *bake)
{
    const double spacing = baker->period_m / bake->side;
    uint64_t state = bake->seed;

    for (uint32_t i = 0; i < baker->count; i++) {
        const uint32_t at[3] = {i % bake->side, i / bake->side % bake->side,
                                i / bake->side / bake->side};
        struct granule *granule = &baker->granule[i];

        *granule = (struct granule){.x = {0}};
        for (int a = 0; a < 3; a++)
            granule->x[a] = (float)(spacing * (at[a] + 0.5 + 0.1 * (random_unit(&state) - 0.5)));
        random_turn(&state, granule->q);
    }
}

/* Shrinks the cube to period_m and steps. */
static enum err_code squeeze(struct baker *baker, double period_m, uint32_t substeps,
                             struct err *err)
{
    static const float flat[4] = {0, 0, 0, 0};
    const float size = (float)period_m;
    const float scale = (float)(period_m / baker->period_m);
    const struct sand_slot_begin begin = {.size_m = {size, size},
                                          .height_m = 0.1f,
                                          .bed = {2, 2, 0, 0, size, size},
                                          .heights_m = flat};

    for (uint32_t i = 0; i < baker->count; i++)
        for (int a = 0; a < 3; a++)
            baker->granule[i].x[a] *= scale;
    baker->period_m = period_m;
    if (sand_slot_begin(baker->engine, 0, &begin, err))
        return err->code;
    solver_slot_periodic(baker->engine, 0, size);
    if (sand_slot_fill(baker->engine, 0, baker->granule, baker->count, err) ||
        sand_engine_step(baker->engine, substeps, 1, err))
        return err->code;
    sand_granules_read(baker->engine, 0, baker->granule);
    sand_slot_end(baker->engine, 0);
    return ERR_OK;
}

/* Mean overlap of all contacts between spheres of different granules, in r. */
static double overlap_mean(const float (*pose)[8], uint32_t count, double period)
{
    double(*at)[3] = malloc(sizeof(*at) * count * GRANULE_SPHERES);
    double sum = 0;
    uint64_t contacts = 0;

    CHECK(at);
    for (uint32_t i = 0; i < count * GRANULE_SPHERES; i++) {
        const float *p = pose[i / GRANULE_SPHERES], *q = p + 4;
        const float *o = GRANULE_CORNER[i % GRANULE_SPHERES];
        /* the turned corner: o + 2 w (u x o) + 2 u x (u x o) */
        double t[3] = {2.0 * (q[1] * o[2] - q[2] * o[1]), 2.0 * (q[2] * o[0] - q[0] * o[2]),
                       2.0 * (q[0] * o[1] - q[1] * o[0])};

        for (int a = 0; a < 3; a++) {
            int b = (a + 1) % 3, c = (a + 2) % 3;

            at[i][a] = p[a] + (o[a] + q[3] * t[a] + q[b] * t[c] - q[c] * t[b]) * M_SQRT1_2;
        }
    }
    for (uint32_t i = 0; i < count * GRANULE_SPHERES; i++) {
        for (uint32_t j = (i / GRANULE_SPHERES + 1) * GRANULE_SPHERES; j < count * GRANULE_SPHERES;
             j++) {
            double square = 0;

            for (int a = 0; a < 3; a++) {
                double d = at[i][a] - at[j][a];

                d -= period * rint(d / period);
                square += d * d;
            }
            if (square >= 4)
                continue;
            sum += 2 - sqrt(square);
            contacts++;
        }
    }
    free(at);
    return contacts > 0 ? sum / (double)contacts : 0;
}

static void export(const struct baker *baker, float radius_m, float (*pose)[8], float *period)
{
    *period = (float)(baker->period_m / radius_m);
    for (uint32_t i = 0; i < baker->count; i++) {
        for (int a = 0; a < 3; a++) {
            float x = baker->granule[i].x[a] / radius_m;

            x -= *period * floorf(x / *period);
            pose[i][a] = x < *period ? x : 0;
            pose[i][4 + a] = baker->granule[i].q[a];
        }
        pose[i][3] = 0;
        pose[i][7] = baker->granule[i].q[3];
    }
}

static enum err_code press(struct baker *baker, const struct packing_bake *bake, float radius_m,
                           struct err *err)
{
    const double volume = baker->count * GRANULE_SPHERES * 4.0 / 3.0 * M_PI * pow(radius_m, 3);
    const double last = cbrt(volume / bake->fraction);
    double gap;

    /* each move takes a part of the way that is left, and never more than the contacts bear */
    while ((gap = baker->period_m / last - 1) > 1e-5)
        if (squeeze(baker, baker->period_m / (1 + fmin(0.002, fmax(0.03 * gap, 5e-6))), 20, err))
            return err->code;
    for (int i = 0; i < 20; i++)
        if (squeeze(baker, last, 100, err))
            return err->code;
    return ERR_OK;
}

enum err_code packing_bake(const struct packing_bake *bake, float (*pose)[8], float *period,
                           float *overlap, struct err *err)
{
    const float radius_m = 0.1f;
    struct baker baker = {.count = bake->side * bake->side * bake->side};
    struct sand_engine_config config = {.slots = 1,
                                        .granules_max = baker.count,
                                        .bodies_max = 1,
                                        .particles_max = 1,
                                        .cells_max = 64 * baker.count,
                                        .bed_max = 4,
                                        .depth_max = 1,
                                        .threads = bake->threads};
    enum err_code code;

    CHECK(bake->side >= 3 && bake->side <= 16);
    CHECK(bake->fraction >= 0.3f && bake->fraction <= 0.63f);
    granular_params_make(MATERIAL_SAND, radius_m, &config.params);
    config.params.friction = bake->friction;
    config.params.drag_linear = 10;
    config.params.drag_angular = 10;
    config.params.sleep_after_s = INFINITY;
    baker.period_m = 1.15 * config.params.diameter_m * bake->side;
    baker.engine = solver_create(&config, err);
    if (!baker.engine)
        return err->code;
    baker.granule = calloc(baker.count, sizeof(*baker.granule));
    if (baker.granule) {
        scatter(&baker, bake);
        code = press(&baker, bake, radius_m, err);
        export(&baker, radius_m, pose, period);
        *overlap = (float)overlap_mean((const float(*)[8])pose, baker.count, *period);
    } else {
        code = err_set(err, ERR_NO_MEMORY, "no memory for %u granules", baker.count);
    }
    free(baker.granule);
    sand_engine_destroy(baker.engine);
    return code;
}
