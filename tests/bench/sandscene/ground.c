/*
 * What the scenes are made of.
 *
 * The published scenes say how many granules and particles they had, not how large they were; so
 * sizes follow from numbers. A patch is a square of `depth` metres of the dense packing, cut a
 * little larger and then taken from the bed upwards until the number is reached. A barrel's
 * particles stand 1.4 r apart: on the side along a spiral, on the lids as the seeds of a sunflower
 * (H. Vogel 1979), so that any number gives an even shell.
 */
#include "bench/sandscene/ground.h"

#include <math.h>
#include <stdlib.h>

#include "sand/convert/packing.h"

static float hills(const struct ground *ground, float x, float y)
{
    const float wave = (float)(2 * M_PI) / ground->size_m;

    return 0.02f * ground->size_m * (sinf(wave * x + 1) + sinf(wave * (x + 1.7f * y)));
}

float ground_height(const struct ground *ground, float x, float y)
{
    return hills(ground, x, y) + ground->depth_m;
}

struct cut {
    const struct ground *ground;
    float wall_m; /* centres keep so far from the walls and the bed */
};

static bool above_bed(void *context, const float x[3])
{
    const struct cut *cut = context;
    const struct ground *ground = cut->ground;
    const float most = ground->size_m - cut->wall_m;
    const float above = x[2] - hills(ground, x[0], x[1]);

    return x[0] > cut->wall_m && x[0] < most && x[1] > cut->wall_m && x[1] < most &&
           above > cut->wall_m && above < 1.1f * ground->depth_m;
}

/* A granule and how far it is above the bed. */
struct ranked {
    float above;
    uint32_t index;
};

static int by_height(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;

    if (p->above != q->above)
        return p->above < q->above ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

/* Leaves the lowest ground->count of `found` granules, in their order. */
static bool lowest(struct ground *ground, uint32_t found)
{
    struct ranked *ranked = calloc(found, sizeof(*ranked));
    unsigned char *kept = calloc(found, 1);
    uint32_t count = 0;

    if (!ranked || !kept || found < ground->count) {
        free(ranked);
        free(kept);
        return false;
    }
    for (uint32_t i = 0; i < found; i++) {
        const float *x = ground->granules[i].x;

        ranked[i] = (struct ranked){x[2] - hills(ground, x[0], x[1]), i};
    }
    qsort(ranked, found, sizeof(*ranked), by_height);
    for (uint32_t i = 0; i < ground->count; i++)
        kept[ranked[i].index] = 1;
    for (uint32_t i = 0; i < found; i++)
        if (kept[i])
            ground->granules[count++] = ground->granules[i];
    free(ranked);
    free(kept);
    return true;
}

enum err_code ground_make(const struct granular_params *params, uint32_t count, float depth_m,
                          struct ground *ground, struct err *err)
{
    const struct packing *packing = packing_dense();
    const double each = pow((double)packing->period * params->radius_m, 3) / packing->granules;
    const float wall = 1.2f * params->radius_m, shift[3] = {0, 0, 0};
    const float relief_m = 0.05f;
    struct cut cut = {ground, wall};
    uint32_t capacity, found;

    /* the walls take a strip on each side, the bed a layer */
    ground->depth_m = depth_m;
    ground->size_m = (float)sqrt(count * each / (depth_m - wall)) + 2 * wall;
    ground->count = count;
    capacity = (uint32_t)(1.4 * count) + 1000;
    ground->granules = calloc(capacity, sizeof(*ground->granules));
    if (!ground->granules)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u granules", count);
    for (int i = 0; i < GROUND_BED * GROUND_BED; i++)
        ground->bed_m[i] =
            hills(ground, (float)(i % GROUND_BED) * ground->size_m / (GROUND_BED - 1),
                  (float)(i / GROUND_BED) * ground->size_m / (GROUND_BED - 1));
    found = packing_cut(packing, params->radius_m, (const float[2]){ground->size_m, ground->size_m},
                        -relief_m * ground->size_m, relief_m * ground->size_m + 1.2f * depth_m,
                        shift, above_bed, &cut, ground->granules, capacity);
    if (found > capacity || !lowest(ground, found)) {
        ground_free(ground);
        return err_set(err, ERR_INTERNAL, "%u granules were cut, %u are wanted", found, count);
    }
    return ERR_OK;
}

void ground_free(struct ground *ground)
{
    free(ground->granules);
    ground->granules = NULL;
}

enum err_code ground_begin(const struct ground *ground, struct sand_engine *engine, uint32_t slot,
                           struct err *err)
{
    const float d = ground->size_m / (GROUND_BED - 1);
    const struct sand_slot_begin begin = {
        .size_m = {ground->size_m, ground->size_m},
        .height_m = 1.3f * ground->depth_m + 0.1f * ground->size_m,
        .gravity = {0, 0, -9.81f},
        .bed = {GROUND_BED, GROUND_BED, 0, 0, d, d},
        .heights_m = ground->bed_m,
    };

    if (sand_slot_begin(engine, slot, &begin, err))
        return err->code;
    return sand_slot_fill(engine, slot, ground->granules, ground->count, err);
}

/* ---- barrels --------------------------------------------------------------------------------- */

/* Radius of the shell that the centres of the particles lie on; it is three such radii high. */
static double barrel_radius(const struct granular_params *params, uint32_t particles)
{
    const double each = 1.4 * params->radius_m;

    return sqrt(particles * each * each / (8 * M_PI)); /* side 6 pi R^2, lids 2 pi R^2 */
}

float barrel_height(const struct granular_params *params, uint32_t particles)
{
    return (float)(3 * barrel_radius(params, particles) + 2 * params->radius_m);
}

void barrel_make(const struct granular_params *params, uint32_t particles, float (*offsets_m)[3],
                 struct sand_shape *shape)
{
    const double golden = M_PI * (3 - sqrt(5));
    const double shell = barrel_radius(params, particles), radius = shell + params->radius_m;
    const double height = 3 * shell + 2 * params->radius_m;
    const double mass = 600 * M_PI * radius * radius * height;
    const uint32_t lid = particles / 8, side = particles - 2 * lid;

    for (uint32_t i = 0; i < particles; i++) {
        double r = shell, z, angle = golden * i;

        if (i < side) {
            z = 3 * shell * ((i + 0.5) / side - 0.5);
        } else {
            uint32_t seed = (i - side) % lid;

            r = shell * sqrt((seed + 0.5) / lid);
            angle = golden * seed;
            z = (i - side < lid ? -1.5 : 1.5) * shell;
        }
        offsets_m[i][0] = (float)(r * cos(angle));
        offsets_m[i][1] = (float)(r * sin(angle));
        offsets_m[i][2] = (float)z;
    }
    *shape = (struct sand_shape){
        .offsets_m = (const float(*)[3])offsets_m, .particles = particles, .mass_kg = (float)mass};
    shape->inertia[0][0] = shape->inertia[1][1] =
        (float)(mass * (3 * radius * radius + height * height) / 12);
    shape->inertia[2][2] = (float)(mass * radius * radius / 2);
}
