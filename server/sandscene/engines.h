#ifndef KOTA_SANDSCENE_ENGINES_H
#define KOTA_SANDSCENE_ENGINES_H

#include "sand/engine.h"

/*
 * The C engine when gpu is NULL, else the OpenGL engine on the device that gpu names (context.h);
 * all engines share one context.
 */
struct sand_engine *scene_engine_create(const char *gpu, const struct sand_engine_config *config,
                                        struct err *err);

/* After the last engine was destroyed. */
void scene_engines_close(void);

#endif
