#ifndef KOTA_SANDSCENE_SCENE_H
#define KOTA_SANDSCENE_SCENE_H

/* kota-sand scene NAME …: runs one of the scenes of C. Leach 2014, 6.4, and says how fast. */

#include <stdint.h>

struct scene_options {
    const char *name;  /* dense, scales or ten */
    double share;      /* of the published numbers of granules and particles, 0 < share <= 1 */
    double seconds;    /* simulated */
    double wall_s;     /* stop after so long, whatever has been reached */
    double interval_s; /* ten: simulated time between two bodies */
    uint32_t threads;
    const char *gpu; /* NULL: the C engine; else auto, software or an index */
};

/* Prints to stdout. 0 done, 1 failed, 2 no scene of this name. */
int scene_run(const struct scene_options *options);

#endif
