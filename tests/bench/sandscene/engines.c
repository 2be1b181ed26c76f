/*
 * The engines that the scenes run on.
 *
 * The OpenGL engines share one context, which is made when the first is asked for. A pool that is
 * too large for the device is refused by the engine, and the message says by how much.
 */
#include "bench/sandscene/engines.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "sand/engine_gl/context.h"
#include "sand/engine_gl/gl_engine.h"
#include "sand/engine_c/solver.h"

enum { POLLS_MAX = 1000000, POLLS_AT_ONCE = 1000 };

static struct context *context;

static enum err_code context_open(const char *gpu, struct err *err)
{
    context_prepare();
    context = context_create(gpu, 0, err);
    if (!context)
        return err->code;
    printf("on %s, %s\n", context_info(context)->renderer, context_info(context)->version);
    return ERR_OK;
}

int scene_device_print(const char *gpu)
{
    struct err err = {.code = ERR_OK};

    if (context_open(gpu, &err))
        fprintf(stderr, "kota-sand: %s\n", err.msg);
    scene_engines_close();
    return err.code ? 1 : 0;
}

struct sand_engine *scene_engine_create(const char *gpu, const struct sand_engine_config *config,
                                        struct err *err)
{
    if (!gpu)
        return solver_create(config, err);
    if (!context && context_open(gpu, err))
        return NULL;
    return gl_engine_create(context, config, err);
}

/* Frames of a GPU may take less than a sleep of the system does. */
static void wait_a_little(int polls)
{
    const struct timespec moment = {0, 100000};

    if (polls < POLLS_AT_ONCE)
        sched_yield();
    else
        nanosleep(&moment, NULL);
}

bool scene_engine_status(struct sand_engine *engine, uint32_t slot, struct sand_status *status)
{
    sand_status_request(engine, slot);
    for (int i = 0; i < POLLS_MAX; i++) {
        if (sand_status_poll(engine, slot, status))
            return true;
        wait_a_little(i);
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
        wait_a_little(i);
    }
    return err_set(err, ERR_INTERNAL, "no depths came");
}

void scene_engines_close(void)
{
    context_destroy(context);
    context = NULL;
}
