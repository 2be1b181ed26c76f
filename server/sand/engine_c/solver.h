#ifndef KOTA_SAND_SOLVER_H
#define KOTA_SAND_SOLVER_H

/*
 * The C engine: the reference of the solver, deterministic for any number of threads. It answers
 * every request at once: a poll after a request is always true.
 */

#include "sand/engine.h"

/*
 * Allocates the whole pool. ERR_NO_MEMORY; ERR_BAD_INPUT for a config with a zero or too large
 * number. All cost is in step: O(spheres of the active slots).
 */
struct sand_engine *solver_create(const struct sand_engine_config *config, struct err *err);

/* Bytes of the pool's arrays. */
uint64_t solver_bytes(const struct sand_engine *engine);

/*
 * Lets a slot that was just begun repeat along x and y, with its box's size as the period, instead
 * of having walls; with height_m > 0 along z, too, and then it has no bed. For packings only; no
 * patch uses it. Each period is at least three cells (CHECKed).
 */
void solver_slot_periodic(struct sand_engine *engine, uint32_t slot, float height_m);

#endif
