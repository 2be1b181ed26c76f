/*
 * The engines that the scenes run on.
 *
 * The OpenGL engines share one context, which is made when the first is asked for. A pool that is
 * too large for the device is refused by the engine, and the message says by how much.
 */
#include "bench/sandscene/engines.h"

#include <stdio.h>
#include <time.h>

#include "sand/engine_gl/context.h"
#include "sand/engine_gl/gl_engine.h"
#include "sand/engine_c/solver.h"

enum { POLLS_MAX = 1000000 };

static struct context *context;

struct sand_engine *scene_engine_create(const char *gpu, const struct sand_engine_config *config,
                                        struct err *err)
{
    if (!gpu)
        return solver_create(config, err);
    if (!context) {
        context_prepare();
        context = context_create(gpu, 0, err);
        if (!context)
            return NULL;
        context_settle(context);
        printf("on %s, %s\n", context_info(context)->renderer, context_info(context)->version);
    }
    return gl_engine_create(context, config, err);
}

static void wait_a_little(void)
{
    const struct timespec moment = {0, 100000};

    nanosleep(&moment, NULL);
}

bool scene_engine_status(struct sand_engine *engine, uint32_t slot, struct sand_status *status)
{
    sand_status_request(engine, slot);
    for (int i = 0; i < POLLS_MAX; i++) {
        if (sand_status_poll(engine, slot, status))
            return true;
        wait_a_little();
    }
    return false;
}

enum err_code scene_engine_depth(struct sand_engine *engine, uint32_t slot,
                                 const struct sand_depth *depth, float *heights_m, struct err *err)
{
    if (sand_depth_request(engine, slot, depth, err))
        return err->code;
    for (int i = 0; i < POLLS_MAX; i++) {
        if (sand_depth_poll(engine, slot, heights_m))
            return ERR_OK;
        wait_a_little();
    }
    return err_set(err, ERR_INTERNAL, "no depths came");
}

void scene_engines_close(void)
{
    context_destroy(context);
    context = NULL;
}
