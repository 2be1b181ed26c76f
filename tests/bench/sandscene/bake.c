/*
 * Makes the asset server/sand/assets/packing_dense.inc: C initializers of the poses of a packing,
 * with the period as a macro and how it was made as a comment.
 *
 * Five digits after the point are 1e-5 r: a hundredth of the overlap that a granule's weight makes.
 * Granules are ordered from low to high, so that what is uploaded in portions is near each other.
 */
#include "bench/sandscene/bake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "bench/sandscene/packing_bake.h"

static int by_height(const void *a, const void *b)
{
    const float *p = a, *q = b;

    return (p[2] > q[2]) - (p[2] < q[2]);
}

int bake_command(int argc, char **argv)
{
    const struct packing_bake bake = {
        .side = argc > 0 ? (uint32_t)strtoul(argv[0], NULL, 10) : 11,
        .friction = 0,
        .fraction = argc > 1 ? strtof(argv[1], NULL) : 0.60f,
        .seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1,
        .threads = 2,
    };
    uint32_t count = bake.side * bake.side * bake.side;
    float(*pose)[8], period, overlap;
    struct err err;

    if (bake.side < 3 || bake.side > 16 || !(bake.fraction >= 0.3f && bake.fraction <= 0.63f)) {
        fprintf(stderr, "kota-sand: bake takes a side of 3 to 16 and a fraction of 0.3 to 0.63\n");
        return 2;
    }
    pose = calloc(count, sizeof(*pose));
    if (!pose || packing_bake(&bake, pose, &period, &overlap, &err)) {
        fprintf(stderr, "kota-sand: %s\n", pose ? err.msg : "no memory");
        free(pose);
        return 1;
    }
    qsort(pose, count, sizeof(*pose), by_height);
    printf(
        "/*\n * %u granules in a cube that repeats: x y z in sphere radii, 0, quaternion x y z w."
        "\n * Made by: kota-sand bake %u %g %llu\n * Mean overlap of contacts: %.5f radii.\n */\n",
        count, bake.side, bake.fraction, (unsigned long long)bake.seed, overlap);
    printf("#define PACKING_DENSE_PERIOD %.6ff\n", period);
    for (uint32_t i = 0; i < count; i++)
        printf("{%.5ff,%.5ff,%.5ff,0,%.5ff,%.5ff,%.5ff,%.5ff},\n", pose[i][0], pose[i][1],
               pose[i][2], pose[i][4], pose[i][5], pose[i][6], pose[i][7]);
    free(pose);
    return 0;
}
