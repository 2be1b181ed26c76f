#ifndef KOTA_SAND_SOLVER_LANES_H
#define KOTA_SAND_SOLVER_LANES_H

/*
 * The two inner loops of the C engine on vector lanes. Each source is compiled once per
 * instruction set (Makefile); all of them give the same bits, because they do the same operations
 * on the same eight lanes, each rounded once.
 */

#include <stdbool.h>
#include <stdint.h>

struct step;

struct solver_lanes {
    /*
     * Makes the list of a cluster again from the grid and keeps the springs of the pairs that were
     * in it; marks its partners as beside when the cluster is hot. False: there were more pairs
     * than room, so the list has none but those that touch, and must be made before each step.
     */
    bool (*list)(const struct step *step, uint32_t cluster);
    /* Forces of the pairs in a cluster's list, into its load; when it is awake, partners that sleep
       are marked as border. */
    void (*forces)(const struct step *step, uint32_t cluster);
};

/* Those of the level in use (terrain/kernels/simd.h). */
const struct solver_lanes *solver_lanes(void);

#ifdef KOTA_KERNELS_AVX2
#define LANES_NAME(name) name##_avx2
#else
#define LANES_NAME(name) name##_scalar
#endif

bool solver_list_scalar(const struct step *step, uint32_t cluster);
bool solver_list_avx2(const struct step *step, uint32_t cluster);
void solver_forces_scalar(const struct step *step, uint32_t cluster);
void solver_forces_avx2(const struct step *step, uint32_t cluster);

#endif
