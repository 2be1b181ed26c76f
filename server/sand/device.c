/*
 * Opening what --gpu names, and making the pools on it.
 *
 * Problem: a server may have no GPU, several, or lose its GPU, and must report which; and a pool is
 * memory that most daemons never need. Approach: everything that depends on the device is made
 * here, the context when it is opened, the engine of a scale when that scale is needed first.
 * Without a configured size a pool starts at the default of the device, and is halved while the
 * device has too little memory.
 *
 * Sizes: a granule takes about 4 cells of the grid (30 r³ in cells of 8 r³); 16 leave room for
 * slopes and for what flies. A contact history is 512 bytes a sphere, and llvmpipe takes buffers of
 * 128 MiB: so three patches of 16,384 granules and as many shell particles.
 *
 * Without a GPU the C engine does the work: on the same cores it is three to four times as fast as
 * llvmpipe, and takes no driver. Half of the cores are left to questions about the ground.
 */
#include "sand/device.h"

#include "base/check.h"
#include "base/log.h"
#include "sand/engine_gl/context.h"
#include "sand/engine_gl/gl_engine.h"
#include "sand/engine_c/solver.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CELLS_A_GRANULE 16
#define CELLS_MIN 65536
#define BED_MAX 65536
#define DEPTH_MAX (1u << 21)
#define GRANULES_SOFTWARE 16384
#define GRANULES_LEAST 4096

struct device {
    struct device_config config; /* as requested */
    struct context *context;     /* NULL: the C engine, or nothing */
    struct sand_engine *engines[SCALE_COUNT];
    struct device_info info;
    atomic_bool gives_up;
};

const struct device_config device_config_default = {
    .gpu = "auto",
    .material = MATERIAL_SAND,
    .slots = {3, 3, 3},
    .granules_max = 0,
    .bodies_max = 16,
    .particles_max = 16384,
};

static bool is_word(const struct device_config *config, const char *word)
{
    return strcmp(config->gpu, word) == 0;
}

bool device_word_ok(const char *word)
{
    return strcmp(word, "cpu") == 0 || context_word_ok(word);
}

bool device_may_open_driver(const struct device_config *config)
{
    return !is_word(config, "off");
}

bool device_is_explicit(const struct device_config *config)
{
    return !is_word(config, "cpu") && !is_word(config, "auto");
}

void device_prepare(const struct device_config *config)
{
    if (device_may_open_driver(config))
        context_prepare();
}

void device_engine_config(const struct device_config *config, enum granular_scale scale,
                          struct sand_engine_config *out)
{
    const uint64_t cells = (uint64_t)config->granules_max * CELLS_A_GRANULE;

    *out = (struct sand_engine_config){
        .slots = config->slots[scale],
        .granules_max = config->granules_max,
        .bodies_max = config->bodies_max,
        .particles_max = config->particles_max,
        .cells_max = cells < CELLS_MIN ? CELLS_MIN : (uint32_t)cells,
        .bed_max = BED_MAX,
        .depth_max = DEPTH_MAX,
        .threads = config->threads,
    };
    granular_params_make(config->material, scale_radius_m(scale), &out->params);
}

/* ---- engines --------------------------------------------------------------------------------- */

static void engines_destroy(struct device *device)
{
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        device_engine_free(device, (enum granular_scale)scale);
}

static enum err_code engine_create(struct device *device, enum granular_scale scale,
                                   struct err *err)
{
    struct sand_engine_config engine;

    device_engine_config(&device->info.config, scale, &engine);
    device->engines[scale] = device->context ? gl_engine_create(device->context, &engine, err)
                                             : solver_create(&engine, err);
    return device->engines[scale] ? ERR_OK : err->code;
}

enum err_code device_engine_make(struct device *device, enum granular_scale scale, struct err *err)
{
    struct device_config *config = &device->info.config;

    err->code = ERR_OK;
    if (device->engines[scale])
        return ERR_OK;
    if (device->info.engine[0] == '\0')
        return err_set(err, ERR_NO_DEVICE, "%s", device->info.reason);
    while (engine_create(device, scale, err) != ERR_OK) {
        if ((err->code != ERR_UNPROCESSABLE && err->code != ERR_NO_MEMORY) ||
            device->config.granules_max > 0 || config->granules_max <= GRANULES_LEAST)
            return err->code;
        config->granules_max /= 2;
        err->code = ERR_OK;
    }
    return ERR_OK;
}

void device_engine_free(struct device *device, enum granular_scale scale)
{
    sand_engine_destroy(device->engines[scale]);
    device->engines[scale] = NULL;
}

/* ---- the device ------------------------------------------------------------------------------ */

static void describe(struct device *device)
{
    struct device_info *info = &device->info;

    info->reason[0] = '\0';
    info->is_coming = false;
    if (!device->context) {
        snprintf(info->engine, sizeof info->engine, "c");
        snprintf(info->name, sizeof info->name, "C engine, %u thread%s", info->config.threads,
                 info->config.threads == 1 ? "" : "s");
        info->is_software = true;
        return;
    }
    snprintf(info->engine, sizeof info->engine, "gl");
    snprintf(info->name, sizeof info->name, "%s, OpenGL %s",
             context_info(device->context)->renderer, context_info(device->context)->version);
    info->is_software = context_info(device->context)->software;
}

static void describe_none(struct device *device, const struct err *why)
{
    struct device_info *info = &device->info;

    info->engine[0] = '\0';
    info->name[0] = '\0';
    snprintf(info->reason, sizeof info->reason, "%.*s", (int)sizeof info->reason - 1, why->msg);
    if (why->log_only[0])
        log_warn("sand: %s", err_for_log(why));
}

/* The context, of every word but cpu and off. */
static enum err_code driver_open(struct device *device, struct err *err)
{
    if (atomic_load(&device->gives_up))
        return err_set(err, ERR_BUSY, "the daemon stops");
    device->context = context_create(device->config.gpu, 0, err);
    if (!device->context)
        return err->code;
    context_set_gives_up(device->context, &device->gives_up);
    return ERR_OK;
}

static enum err_code open(struct device *device, struct err *err)
{
    struct device_config *config = &device->info.config;

    err->code = ERR_OK;
    if (is_word(config, "off"))
        return err_set(err, ERR_NO_DEVICE, "it is switched off (--gpu off)");
    if (!is_word(config, "cpu") && driver_open(device, err)) {
        if (!is_word(config, "auto") || atomic_load(&device->gives_up))
            return err->code;
        log_info("sand: no GPU, the processor simulates: %s", err_for_log(err));
        err->code = ERR_OK;
    }
    if (config->granules_max == 0)
        config->granules_max = device->context && !context_info(device->context)->software
                                   ? DEVICE_GRANULES_HARDWARE
                                   : GRANULES_SOFTWARE;
    return ERR_OK;
}

/* Of those that this process may use. */
static uint32_t half_of_the_cores(void)
{
    cpu_set_t set;
    int cores = 1;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
    return cores < 4 ? 1 : (uint32_t)cores / 2;
}

struct device *device_create(const struct device_config *config, struct err *err)
{
    struct device *device = calloc(1, sizeof *device);

    if (!device) {
        err_set(err, ERR_NO_MEMORY, "no memory for a device");
        return NULL;
    }
    device->config = *config;
    if (config->threads == 0)
        device->config.threads = half_of_the_cores();
    device->info.config = device->config;
    device->info.is_coming = true;
    snprintf(device->info.reason, sizeof device->info.reason,
             "not opened yet: the first patch opens it");
    return device;
}

void device_open(struct device *device)
{
    struct err why;

    device->info.is_coming = false;
    if (open(device, &why) == ERR_OK)
        describe(device);
    else
        describe_none(device, &why);
}

void device_give_up(struct device *device)
{
    atomic_store(&device->gives_up, true);
}

void device_destroy(struct device *device)
{
    if (!device)
        return;
    engines_destroy(device);
    context_destroy(device->context);
    free(device);
}

struct sand_engine *device_engine(const struct device *device, enum granular_scale scale)
{
    return device->engines[scale];
}

void device_describe(const struct device *device, struct device_info *out)
{
    *out = device->info;
}

enum err_code device_rebuild(struct device *device, struct err *err)
{
    err->code = ERR_OK;
    engines_destroy(device);
    if (device->context && context_rebuild(device->context, err)) {
        describe_none(device, err);
        device->info.is_coming = true;
        return err->code;
    }
    device->info.rebuilds++;
    describe(device);
    return ERR_OK;
}
