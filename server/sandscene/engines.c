/*
 * The engines that the scenes run on.
 *
 * The OpenGL engines share one context, which is made when the first is asked for. A pool that is
 * too large for the device is refused by the engine, and the message says by how much.
 */
#include "sandscene/engines.h"

#include <stdio.h>

#include "sand/context.h"
#include "sand/gl_engine.h"
#include "sand/solver.h"

static struct context *context;

struct sand_engine *scene_engine_create(const char *gpu, const struct sand_engine_config *config,
                                        struct err *err)
{
    if (!gpu)
        return solver_create(config, err);
    if (!context) {
        context_prepare();
        context = context_create(gpu, false, err);
        if (!context)
            return NULL;
        printf("on %s, %s\n", context_info(context)->renderer, context_info(context)->version);
    }
    return gl_engine_create(context, config, err);
}

void scene_engines_close(void)
{
    context_destroy(context);
    context = NULL;
}
