#ifndef KOTA_SANDSCENE_COMPARE_H
#define KOTA_SANDSCENE_COMPARE_H

/* kota-sand compare repeat|impacts|scales|fill: what conversions do to the ground, as tables. */

#include "bench/sandscene/cycle.h"

struct compare_options {
    const char *what;
    uint32_t count; /* conversions or impacts; 0: 15 and 12 */
    /* size_m and depth_m 0: eight and three diameters of the granules */
    struct stage_options stage;
};

/* Prints to stdout. 0 done, 1 failed, 2 no such comparison. */
int compare_run(const struct compare_options *options);

#endif
