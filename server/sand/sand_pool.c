/*
 * The device of the sand thread and its pools: when they are made, when they are given back, and
 * what other threads can know of them.  Problem: a pool is up to hundreds of megabytes and a
 * driver as many again, and most daemons never get a patch; but a request should not fail because
 * it is the first. Approach: a request for a patch wants the pool of its scale (sand_wait) and
 * waits in the queue of patch_wait_queue.h. The sand thread opens the device with the first, makes
 * the pool, and answers. A pool that had no patch for config.idle_s is given back; the device
 * stays open, because drivers do not unload.
 */
#include "sand/sand_data.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/timed_wait.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define REBUILD_AGAIN_S 5.0
#define MEASURE_AGAIN_S 5.0

/* ---- the sand thread ------------------------------------------------------------------------- */

void sand_publish_stats(struct sand *sand)
{
    struct sand_stats stats = {
        .ticks = sand->ticks, .orders = sand->orders, .live_made = sand->live.made};

    device_describe(sand->device, &stats.device);
    manager_stats(sand->manager, &stats.patches);
    stats.is_possible = stats.device.engine[0] != '\0' || stats.device.is_coming;
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        stats.has_pool[scale] = device_engine(sand->device, (enum granular_scale)scale) != NULL;
        stats.patches.slots[scale] = stats.is_possible ? stats.device.config.slots[scale] : 0;
    }
    pthread_mutex_lock(&sand->mutex);
    sand->stats = stats;
    pthread_mutex_unlock(&sand->mutex);
    leases_report_room(&sand->leases, &stats.patches);
}

bool sand_pools_wanted(const struct sand *sand)
{
    bool is = false;

    for (int scale = 0; scale < SCALE_COUNT; scale++)
        is |= sand->pools[scale].is_wanted || sand->pools[scale].is_rate_wanted;
    return is;
}

/* The calls into the driver that may take long, or never return, are between these two. */
static void driver_enter(struct sand *sand)
{
    pthread_mutex_lock(&sand->mutex);
    sand->is_in_driver = true;
    pthread_mutex_unlock(&sand->mutex);
}

/* False: the end does not wait for this thread any more. */
static bool driver_leave(struct sand *sand)
{
    bool is_left;

    pthread_mutex_lock(&sand->mutex);
    sand->is_in_driver = false;
    is_left = sand->is_left;
    pthread_cond_broadcast(&sand->is_answered);
    pthread_mutex_unlock(&sand->mutex);
    return !is_left;
}

static bool open_device(struct sand *sand)
{
    struct device_info info;

    driver_enter(sand);
    device_open(sand->device);
    if (!driver_leave(sand))
        return false;
    device_describe(sand->device, &info);
    if (info.engine[0] != '\0')
        log_info("patches are simulated by %s", info.name);
    else
        log_info("patches cannot be simulated: %s", info.reason);
    sand_publish_stats(sand);
    pthread_mutex_lock(&sand->mutex);
    sand->is_open = true;
    pthread_cond_broadcast(&sand->is_answered);
    pthread_mutex_unlock(&sand->mutex);
    return true;
}

/* The outcome of a pool that was wanted. */
static void pool_done(struct sand *sand, enum granular_scale scale, const struct err *err)
{
    struct sand_pool *pool = &sand->pools[scale];

    pthread_mutex_lock(&sand->mutex);
    pool->is_wanted = false;
    pool->is_made = err->code == ERR_OK;
    pool->used_at_s = monotonic_s();
    pool->why = *err;
    pthread_cond_broadcast(&sand->is_answered);
    pthread_mutex_unlock(&sand->mutex);
}

static void measure_rate(struct sand *sand, enum granular_scale scale)
{
    struct err err = {.code = ERR_OK};
    const double rate = sand_rate_measure(device_engine(sand->device, scale), &err);

    if (err.code != ERR_OK)
        log_warn("sand: the rate of %s granules was not measured: %s", scale_name(scale),
                 err_for_log(&err));
    else
        manager_set_rate(sand->manager, scale, rate);
    pthread_mutex_lock(&sand->mutex);
    sand->pools[scale].measured_at_s = monotonic_s();
    pthread_mutex_unlock(&sand->mutex);
}

static bool make_pool(struct sand *sand, enum granular_scale scale)
{
    struct err err = {.code = ERR_OK};
    struct device_info info;

    device_describe(sand->device, &info);
    driver_enter(sand);
    device_engine_make(sand->device, scale, &err);
    if (!driver_leave(sand))
        return false;
    if (err.code != ERR_OK && info.engine[0] != '\0')
        log_warn("sand: no pool of %s granules: %s", scale_name(scale), err_for_log(&err));
    manager_set_engine(sand->manager, scale, device_engine(sand->device, scale), monotonic_s());
    if (err.code == ERR_OK && sand->stats.patches.rate[scale].sphere_steps_s == 0)
        measure_rate(sand, scale);
    sand_publish_stats(sand);
    pool_done(sand, scale, &err);
    return true;
}

/* The device is lost: everything of it is destroyed, and pools are made again when wanted. */
static void rebuild(struct sand *sand)
{
    const double now = monotonic_s();
    struct err err = {.code = ERR_OK};

    if (!sand->is_lost || now < sand->rebuild_at_s)
        return;
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        manager_set_engine(sand->manager, (enum granular_scale)scale, NULL, now);
    pthread_mutex_lock(&sand->mutex);
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        sand->pools[scale].is_made = false;
    pthread_mutex_unlock(&sand->mutex);
    if (device_rebuild(sand->device, &err)) {
        log_error("the device of the patches is lost: %s", err_for_log(&err));
        sand->rebuild_at_s = now + REBUILD_AGAIN_S;
        return;
    }
    log_warn("the device of the patches was lost and is made again");
    sand->is_lost = false;
}

bool sand_pools_make(struct sand *sand)
{
    bool is_wanted[SCALE_COUNT], is_rate_wanted[SCALE_COUNT], is_open, is_stopping;

    rebuild(sand);
    pthread_mutex_lock(&sand->mutex);
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        is_wanted[scale] = sand->pools[scale].is_wanted;
        is_rate_wanted[scale] = sand->pools[scale].is_rate_wanted;
        sand->pools[scale].is_rate_wanted = false;
    }
    is_open = sand->is_open;
    is_stopping = sand->is_stopping;
    pthread_mutex_unlock(&sand->mutex);
    if (is_stopping)
        return true;
    if (!is_open && !open_device(sand))
        return false;
    for (int scale = 0; scale < SCALE_COUNT && !sand->is_lost; scale++)
        if (is_wanted[scale] && !make_pool(sand, (enum granular_scale)scale))
            return false;
    for (int scale = 0; scale < SCALE_COUNT && !sand->is_lost; scale++)
        if (is_rate_wanted[scale] && sand->stats.patches.used[scale] == 0 &&
            device_engine(sand->device, (enum granular_scale)scale))
            measure_rate(sand, (enum granular_scale)scale);
    return true;
}

double sand_pools_release(struct sand *sand)
{
    const double now = monotonic_s(), idle_s = sand->config.idle_s;
    double next_s = INFINITY;

    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        struct sand_pool *pool = &sand->pools[scale];
        bool is_due = false;

        pthread_mutex_lock(&sand->mutex);
        if (sand->stats.patches.used[scale] > 0)
            pool->used_at_s = now;
        if (pool->is_made && !sand->config.is_warm && sand->stats.patches.used[scale] == 0) {
            is_due = now >= pool->used_at_s + idle_s;
            next_s = is_due ? next_s : fmin(next_s, pool->used_at_s + idle_s - now);
        }
        if (is_due)
            pool->is_made = false;
        pthread_mutex_unlock(&sand->mutex);
        if (!is_due)
            continue;
        manager_set_engine(sand->manager, (enum granular_scale)scale, NULL, now);
        device_engine_free(sand->device, (enum granular_scale)scale);
        sand_publish_stats(sand);
    }
    return next_s;
}

/* ---- other threads --------------------------------------------------------------------------- */

/* The mutex is held. */
static enum err_code check_ready(const struct sand *sand, enum granular_scale scale,
                                 struct err *err)
{
    const struct device_info *device = &sand->stats.device;

    if (!sand->stats.is_possible)
        return err_set(err, ERR_NO_DEVICE, "patches cannot be simulated here: %s", device->reason);
    if (sand->is_stopping)
        return err_set(err, ERR_BUSY, "the daemon stops");
    if (sand->pools[scale].is_made)
        return err->code = ERR_OK;
    if (device->engine[0] == '\0')
        return err_set(err, ERR_BUSY, "patches cannot be simulated yet: %s",
                       sand->is_open ? device->reason : "the device is being opened");
    return err_set(err, ERR_BUSY,
                   "patches cannot be simulated yet: the pool of %s granules is "
                   "being made",
                   scale_name(scale));
}

enum err_code sand_ready(struct sand *sand, enum granular_scale scale, struct err *err)
{
    enum err_code code;

    pthread_mutex_lock(&sand->mutex);
    code = check_ready(sand, scale, err);
    if (code == ERR_OK)
        sand->pools[scale].used_at_s = monotonic_s();
    pthread_mutex_unlock(&sand->mutex);
    return code;
}

enum err_code sand_wait(struct sand *sand, enum granular_scale scale, double seconds,
                        struct err *err)
{
    const struct timespec until = timed_wait_until(fmax(seconds, 0));
    struct sand_pool *pool = &sand->pools[scale];
    int failed = 0;

    pthread_mutex_lock(&sand->mutex);
    err->code = ERR_OK;
    if (check_ready(sand, scale, err) == ERR_BUSY && sand_need_thread(sand, err) == ERR_OK) {
        pool->is_wanted = true;
        pool->why.code = ERR_OK;
        pthread_cond_signal(&sand->is_wanted);
        while (pool->is_wanted && !sand->is_stopping && failed != ETIMEDOUT)
            failed = pthread_cond_timedwait(&sand->is_answered, &sand->mutex, &until);
        if (check_ready(sand, scale, err) == ERR_BUSY && pool->why.code != ERR_OK)
            *err = pool->why;
    }
    pthread_mutex_unlock(&sand->mutex);
    return err->code;
}

void sand_measure_again(struct sand *sand, enum granular_scale scale)
{
    struct sand_pool *pool = &sand->pools[scale];

    pthread_mutex_lock(&sand->mutex);
    if (pool->is_made && sand->stats.patches.used[scale] == 0 &&
        monotonic_s() >= pool->measured_at_s + MEASURE_AGAIN_S) {
        pool->is_rate_wanted = true;
        pthread_cond_signal(&sand->is_wanted);
    }
    pthread_mutex_unlock(&sand->mutex);
}

enum err_code sand_engine_config(struct sand *sand, enum granular_scale scale,
                                 struct sand_engine_config *out, struct err *err)
{
    struct sand_stats stats;

    sand_stats(sand, &stats);
    if (stats.device.config.slots[scale] == 0)
        return err_limit(err, ERR_NO_DEVICE, 0, 1,
                         "this daemon has no patches of %s granules (--patches-%s 0)",
                         scale_name(scale), scale_name(scale));
    if (stats.device.config.granules_max == 0)
        stats.device.config.granules_max = DEVICE_GRANULES_HARDWARE;
    device_engine_config(&stats.device.config, scale, out);
    return ERR_OK;
}

enum err_code sand_is_free(struct sand *sand, enum granular_scale scale, struct err *err)
{
    struct sand_stats stats;

    sand_stats(sand, &stats);
    if (stats.patches.used[scale] < stats.device.config.slots[scale])
        return ERR_OK;
    return err_limit(err, ERR_BUSY, stats.patches.slots[scale], stats.patches.used[scale] + 1.0,
                     "all %u patches of %s granules are in use; try again later",
                     stats.patches.slots[scale], scale_name(scale));
}

void sand_stats(struct sand *sand, struct sand_stats *out)
{
    pthread_mutex_lock(&sand->mutex);
    *out = sand->stats;
    pthread_mutex_unlock(&sand->mutex);
}
