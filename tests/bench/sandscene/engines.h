#ifndef KOTA_SANDSCENE_ENGINES_H
#define KOTA_SANDSCENE_ENGINES_H

#include <stdbool.h>

#include "sand/engine.h"

/* Prints which device `gpu` is (context.h); 1 when there is none. */
int scene_device_print(const char *gpu);

/*
 * The C engine when gpu is NULL, else the OpenGL engine on the device that gpu names (context.h);
 * all engines share one context.
 */
struct sand_engine *scene_engine_create(const char *gpu, const struct sand_engine_config *config,
                                        struct err *err);

/*
 * Asks for the status after what was submitted and waits for it: at most 100 s, then false.
 */
bool scene_engine_status(struct sand_engine *engine, uint32_t slot, struct sand_status *status);

/* The same for depths. ERR_INTERNAL: none came; and what sand_depth_request says. */
enum err_code scene_engine_depth(struct sand_engine *engine, uint32_t slot,
                                 const struct sand_depth *depth, float *heights_m, struct err *err);

/* After the last engine was destroyed. */
void scene_engines_close(void);

#endif
