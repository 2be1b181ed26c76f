/*
 * Cutting ground out of a packing that repeats.
 *
 * The packing is a cube that repeats along all three axes, so that any stretch of it is as dense as
 * any other: no seam, no layered floor. assets/packing_dense.inc holds it as C initializers, in
 * units of the sphere radius, with the command that made it (sandscene/packing_bake.c).
 *
 * A granule is named by its tile and its place in the packing; its centre is computed in float64
 * and rounded once, so that granules of neighbouring tiles fit as those within a tile do.
 */
#include "sand/convert/packing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/morton.h"

static const float dense_pose[][8] = {
#include "sand/assets/packing_dense.inc"
};

/* The fields of the asset's header. */
static const struct packing dense = {
    .granules = sizeof(dense_pose) / sizeof(dense_pose[0]),
    .period = PACKING_DENSE_PERIOD,
    .pose = dense_pose,
};

const struct packing *packing_dense(void)
{
    return &dense;
}

float packing_fraction(const struct packing *packing)
{
    double volume = pow(packing->period, 3);

    return (float)(packing->granules * GRANULE_SPHERES * 4.0 / 3.0 * M_PI / volume);
}

/* Tiles first <= t < end so that every centre of low <= x < high is in one of them. */
static void tiles_over(double low, double high, double period, int *first, int *end)
{
    *first = (int)floor(low / period);
    *end = (int)floor(high / period) + 1;
}

uint32_t packing_cut(const struct packing *packing, float radius_m, const float size[2],
                     float z_from, float z_to, const float shift[3], packing_keep *keep,
                     void *context, struct granule *out, uint32_t capacity)
{
    const double period = (double)packing->period * radius_m;
    const double low[3] = {0, 0, z_from}, high[3] = {size[0], size[1], z_to};
    int first[3], end[3], tile[3];
    uint32_t count = 0;

    for (int a = 0; a < 3; a++) {
        CHECK(high[a] - low[a] < 1e5 * period && fabs(shift[a]) < 1e5 * period);
        tiles_over(low[a] - shift[a], high[a] - shift[a], period, &first[a], &end[a]);
    }
    for (tile[2] = first[2]; tile[2] < end[2]; tile[2]++) {
        for (tile[1] = first[1]; tile[1] < end[1]; tile[1]++) {
            for (tile[0] = first[0]; tile[0] < end[0]; tile[0]++) {
                for (uint32_t i = 0; i < packing->granules; i++) {
                    const float *pose = packing->pose[i];
                    struct granule granule = {.x = {0}};
                    bool inside = true;

                    for (int a = 0; a < 3; a++) {
                        double x = shift[a] + tile[a] * period + (double)pose[a] * radius_m;

                        granule.x[a] = (float)x;
                        inside = inside && x >= low[a] && x < high[a];
                    }
                    if (!inside || !keep(context, granule.x))
                        continue;
                    memcpy(granule.q, pose + 4, sizeof(granule.q));
                    if (count < capacity)
                        out[count] = granule;
                    count++;
                }
            }
        }
    }
    return count;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* A granule and its place in the order: cells interleaved, then its index. */
struct place {
    uint64_t code;
    uint32_t index;
};

static uint64_t cell_along(float x, float side_m)
{
    return (uint64_t)fminf(fmaxf(floorf(x / side_m) + 0x1p20f, 0), 0x1p21f - 1);
}

static int place_compare(const void *a, const void *b)
{
    const struct place *p = a, *q = b;

    if (p->code != q->code)
        return p->code < q->code ? -1 : 1;
    return p->index < q->index ? -1 : 1;
}

bool packing_order(struct granule *granules, uint32_t count, float side_m)
{
    struct place *place = malloc(((size_t)count + 1) * sizeof *place);
    struct granule *before = malloc(((size_t)count + 1) * sizeof *before);
    bool is_done = place && before;

    for (uint32_t i = 0; is_done && i < count; i++) {
        const float *x = granules[i].x;

        before[i] = granules[i];
        place[i].index = i;
        place[i].code =
            morton3(cell_along(x[0], side_m), cell_along(x[1], side_m), cell_along(x[2], side_m));
    }
    if (is_done) {
        qsort(place, count, sizeof *place, place_compare);
        for (uint32_t i = 0; i < count; i++)
            granules[i] = before[place[i].index];
    }
    free(place);
    free(before);
    return is_done;
}
