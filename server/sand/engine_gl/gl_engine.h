#ifndef KOTA_SAND_GL_ENGINE_H
#define KOTA_SAND_GL_ENGINE_H

/*
 * The OpenGL engine: the solver of solver_step.c as compute shaders, for all slots of a scale at
 * once. Same seed, same bits on one device; beside the C engine within rounding.
 */

#include "sand/engine_gl/context.h"
#include "sand/engine.h"

/*
 * Allocates the whole pool on the device of `context`, which must be current on this thread and
 * stay until the engine is destroyed; several engines may share it. config->threads is ignored.
 *
 * After a loss of the context destroy its engines first, then context_rebuild, then make new ones.
 *
 * ERR_BAD_INPUT for a config with a zero or too large number; ERR_UNPROCESSABLE when a buffer
 * would be larger than the device allows (limit and got in bytes); ERR_NO_MEMORY; ERR_INTERNAL
 * when a shader is refused or the context is lost. Costs some ms per shader on hardware, about a
 * second in all on llvmpipe when it has not cached them.
 */
struct sand_engine *gl_engine_create(struct context *context,
                                     const struct sand_engine_config *config, struct err *err);

/* Bytes of device memory that a pool takes. */
uint64_t gl_engine_bytes(const struct sand_engine_config *config);

#endif
