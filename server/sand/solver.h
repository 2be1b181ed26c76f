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

#endif
