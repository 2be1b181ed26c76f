/*
 * The sand thread: orders in, ticks of the manager, edits and reports out.
 *
 * Problem: one thread must own the device, because OpenGL is bound to threads, and no other thread
 * may wait for it. Approach: a bounded queue of orders, each with a callback that is called once; a
 * table of reports (report_table.h); the writer's answers come back through the queue as well.
 * Between two ticks the thread sleeps until an order or the manager's next time.
 *
 * What happens to a patch's ground meanwhile is read from the change feed: a deleted locale or a
 * replaced layer discards the patch; every other change only moves its revision on. The edit that
 * writes a patch back carries that revision as its precondition, so that it cannot apply to ground
 * that replaced the patch's own between the last check and the commit.
 *
 * Where daemons share a log, the ground of a patch is leased (lease.h): the edit carries the
 * lease's fence, the lease goes when the patch has ended, and a patch whose lease is lost has
 * failed.
 *
 * The thread starts with the first request for a patch (sand_pool.c has why, and its device).
 * A driver that is being opened cannot be interrupted: the end leaves the thread in it (sand_stop).
 * Invariants: each order is done exactly once; a submitted edit comes back before the thread ends.
 */
#include "sand/sand.h"

#include "sand/sand_data.h"

#include "base/background.h"
#include "base/check.h"
#include "base/log.h"
#include "base/timed_wait.h"
#include "base/clock.h"
#include "world/follow/lease.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_S 0.1         /* at the feed, while there are patches */
#define OPENING_WAIT_S 0.5 /* at the end, for a driver that is being opened */

void sand_config_init(struct sand_config *config)
{
    *config = (struct sand_config){.device = device_config_default,
                                   .limits = manager_limits_default,
                                   .orders_max = 1000,
                                   .idle_s = 60};
}

struct node {
    struct node *next;
    struct sand_order order;
    struct written *written; /* not NULL: this is no order */
};

/* A thread that waits for the end of a patch. */
struct waiter {
    struct waiter *next;
    uint64_t number;
    struct order_key key;
    sand_done done;
    void *context;
};

/* ---- the queue ------------------------------------------------------------------------------- */

void sand_order_drop(struct sand_order *order)
{
    if (order->kind == SAND_ADD)
        patch_start_free(&order->start);
    if (order->kind == SAND_BODY)
        patch_body_free(&order->body);
}

/* Frees its members, and releases the lease. */
static void order_refused(struct sand *sand, struct sand_order *order)
{
    if (order->kind == SAND_ADD)
        world_unlease(sand->world, order->start.fence);
    sand_order_drop(order);
}

/* The mutex is held. */
static void push(struct sand *sand, struct node *node)
{
    node->next = NULL;
    *sand->last = node;
    sand->last = &node->next;
    sand->queued++;
    pthread_cond_signal(&sand->is_wanted);
}

enum err_code sand_submit(struct sand *sand, struct sand_order *order, struct err *err)
{
    struct node *node = calloc(1, sizeof *node);

    err->code = ERR_OK;
    if (!node)
        err_set(err, ERR_NO_MEMORY, "no memory for an order");
    pthread_mutex_lock(&sand->mutex);
    if (node)
        sand_need_thread(sand, err);
    if (node && err->code == ERR_OK && sand->queued >= sand->config.orders_max) {
        err_limit(err, ERR_BUSY, (double)sand->config.orders_max, (double)sand->queued,
                  "%zu orders for patches wait already", sand->queued);
    } else if (err->code == ERR_OK) {
        node->order = *order;
        push(sand, node);
    }
    pthread_mutex_unlock(&sand->mutex);
    if (err->code != ERR_OK) {
        free(node);
        order_refused(sand, order);
    }
    return err->code;
}

static struct node *take_all(struct sand *sand)
{
    struct node *all;

    pthread_mutex_lock(&sand->mutex);
    all = sand->first;
    sand->first = NULL;
    sand->last = &sand->first;
    sand->queued = 0;
    pthread_mutex_unlock(&sand->mutex);
    return all;
}

/* ---- what the manager says ------------------------------------------------------------------- */

static void answer_waiters(struct sand *sand, struct patch_report *report)
{
    struct waiter **at = &sand->waiters;

    while (*at) {
        struct waiter *waiter = *at;

        if (waiter->number != report->number) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        repeats_keep(sand->repeats, &waiter->key, report);
        waiter->done(waiter->context, ERR_OK, NULL, report, false);
        free(waiter);
    }
}

static void report_end(const struct patch_report *report)
{
    if (report->state == PATCH_FAILED)
        log_warn("patch %llu of %s has failed: %s", (unsigned long long)report->number,
                 report->locale, report->reason);
    else
        log_info("patch %llu of %s is %s%s%s", (unsigned long long)report->number, report->locale,
                 patch_state_name(report->state), report->reason[0] ? ": " : "", report->reason);
}

static void on_report(void *context, struct patch_report *report, bool is_state)
{
    struct sand *sand = context;
    const bool is_end = patch_state_is_end(report->state);
    bool is_change;

    patch_report_ref(report);
    is_change = report_table_put(&sand->reports, report);
    live_report(&sand->live, report);
    if (is_change || atomic_load(&sand->followers) > 0) {
        pthread_mutex_lock(&sand->mutex);
        if (sand->wake)
            sand->wake(sand->wake_context);
        pthread_mutex_unlock(&sand->mutex);
    }
    if (is_state && is_end) {
        report_end(report);
        leases_let_go(&sand->leases, report->number);
        sand_publish_stats(sand); /* the answered client finds its place free */
        answer_waiters(sand, report);
    }
    patch_report_unref(report);
}

static void on_forget(void *context, uint64_t number)
{
    struct sand *sand = context;

    report_table_forget(&sand->reports, number);
}

static void written_free(struct written *written)
{
    heightfield_unref(written->field);
    for (uint32_t i = 0; i < written->left_count; i++)
        layer_unref(written->left[i].surface);
    free(written);
}

static struct heightfield *written_field(const struct written *written,
                                         const struct world_outcome *outcome)
{
    const struct layer *layer = outcome->code == ERR_OK && outcome->locale
                                    ? locale_layer(outcome->locale, written->layer)
                                    : NULL;

    return layer && layer->field ? heightfield_ref(layer->field) : NULL;
}

/* On the writer's thread, or that of sand_leave. */
void sand_write_done(void *context, const struct world_outcome *outcome)
{
    struct written *written = context;
    struct sand *sand = written->sand;
    struct node *node = written->node;

    written->code = outcome->code;
    written->revision = outcome->revision;
    written->field = written_field(written, outcome);
    if (outcome->err && outcome->code != ERR_OK)
        snprintf(written->why, sizeof written->why, "%s", outcome->err->msg);
    node->written = written;
    pthread_mutex_lock(&sand->mutex);
    push(sand, node);
    pthread_mutex_unlock(&sand->mutex);
}

static void on_write(void *context, uint64_t number, const struct patch_start *start,
                     uint64_t revision, const struct sample_rect *rect, float *heights_m)
{
    struct sand *sand = context;
    struct written *written = calloc(1, sizeof *written);
    struct node *node = calloc(1, sizeof *node);
    struct world_change change = {
        .kind = WORLD_EDIT,
        .edit = {.kind = EDIT_ADD, .rect = *rect, .heights_m = heights_m},
        .if_revision = revision,
        .fence = start->fence,
        .author = start->author,
        .source = "patch",
        .done = sand_write_done,
        .context = written,
    };
    struct err err = {.code = ERR_OK};

    if (!written || !node) {
        free(written);
        free(node);
        free(heights_m);
        manager_written(sand->manager, number, ERR_NO_MEMORY, 0, NULL, "no memory", monotonic_s());
        return;
    }
    written->sand = sand;
    written->node = node;
    written->number = number;
    memcpy(written->layer, start->layer, sizeof written->layer);
    written->origin = start->origin;
    change.origin = start->origin.name[0] ? &written->origin : NULL;
    memcpy(change.locale_id, start->locale, sizeof change.locale_id);
    memcpy(change.layer_id, start->layer, sizeof change.layer_id);
    sand->writes++;
    if ((start->leaves ? sand_leave(written, &change, &err)
                       : world_submit(sand->world, &change, &err)) == ERR_OK)
        return;
    sand->writes--;
    free(node);
    written_free(written);
    manager_written(sand->manager, number, err.code, 0, NULL, err.msg, monotonic_s());
}

static void on_lost(void *context, enum granular_scale scale)
{
    struct sand *sand = context;

    (void)scale;
    sand->is_lost = true;
    sand->rebuild_at_s = 0;
}

/* ---- the feed -------------------------------------------------------------------------------- */

/* False when the patch has ended by it. */
static bool take_event(struct sand *sand, uint64_t number, struct patch_start *start,
                       const struct feed_event *event)
{
    const char *why = NULL;

    if (event->revision <= start->revision)
        return true;
    if (strcmp(event->source, "delete") == 0 && event->layer[0] == '\0')
        why = "its locale was deleted";
    else if ((strcmp(event->source, "layer") == 0 || strcmp(event->source, "delete") == 0) &&
             strcmp(event->layer, start->layer) == 0)
        why = "its layer was replaced or deleted";
    if (why)
        manager_end(sand->manager, number, PATCH_DISCARDED, why, monotonic_s());
    else
        start->revision = event->revision;
    return why == NULL;
}

static void look_at_feed(void *context, uint64_t number, struct patch_start *start)
{
    struct sand *sand = context;
    struct feed *feed = world_feed(sand->world);

    while (start->feed_after != feed_last(feed)) {
        struct feed_event events[4];
        bool is_held;
        const size_t count =
            feed_read(feed, start->locale, &start->feed_after, events, 4, &is_held);

        if (!is_held) {
            manager_end(sand->manager, number, PATCH_FAILED,
                        "more changes came than the feed holds", monotonic_s());
            return;
        }
        for (size_t i = 0; i < count; i++)
            if (!take_event(sand, number, start, &events[i]))
                return;
    }
}

/* Somebody else may hold the ground now. */
static void look_at_lease(void *context, uint64_t number, struct patch_start *start)
{
    struct sand *sand = context;

    if (world_lease_is_lost(sand->world, start->fence))
        manager_end(sand->manager, number, PATCH_FAILED, "the lease of its ground was lost",
                    monotonic_s());
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Is this order under a known key? Then it is answered here. */
static bool is_repeat_of(struct sand *sand, struct sand_order *order)
{
    struct err err;
    struct patch_report *report = repeats_find(sand->repeats, &order->key, &err);

    if (!report && err.code == ERR_OK)
        return false;
    order->done(order->context, err.code, &err, report, true);
    patch_report_unref(report);
    order_refused(sand, order);
    return true;
}

static void do_close(struct sand *sand, struct sand_order *order)
{
    struct patch_report *report = NULL;
    struct waiter *waiter = malloc(sizeof *waiter);
    struct err err = {.code = ERR_OK};

    if (!waiter)
        err_set(&err, ERR_NO_MEMORY, "no memory to wait for the patch");
    else
        manager_close(sand->manager, order->number, order->discard, monotonic_s(), &report, &err);
    if (err.code == ERR_OK && !patch_state_is_end(report->state)) {
        *waiter =
            (struct waiter){sand->waiters, order->number, order->key, order->done, order->context};
        sand->waiters = waiter;
        waiter = NULL;
    } else {
        if (err.code == ERR_OK)
            repeats_keep(sand->repeats, &order->key, report);
        order->done(order->context, err.code, &err, report, false);
    }
    free(waiter);
    patch_report_unref(report);
}

static void do_order(struct sand *sand, struct sand_order *order)
{
    struct patch_report *report = NULL;
    struct err err = {.code = ERR_OK};

    sand->orders++;
    if (is_repeat_of(sand, order))
        return;
    if (order->kind == SAND_CLOSE) {
        do_close(sand, order);
        return;
    }
    if (order->kind == SAND_ADD)
        leases_add(&sand->leases, sand->manager, &order->start, monotonic_s(), &report, &err);
    else if (order->kind == SAND_BODY)
        manager_body_add(sand->manager, order->number, &order->body, monotonic_s(), &report, &err);
    else if (order->kind == SAND_UNBODY)
        manager_body_remove(sand->manager, order->number, order->body_index, monotonic_s(), &report,
                            &err);
    else
        manager_push(sand->manager, order->number, order->body_index, &order->push, monotonic_s(),
                     &report, &err);
    if (err.code == ERR_OK)
        repeats_keep(sand->repeats, &order->key, report);
    sand_publish_stats(sand);
    order->done(order->context, err.code, &err, report, false);
    patch_report_unref(report);
}

static void do_all(struct sand *sand)
{
    for (struct node *node = take_all(sand), *next; node; node = next) {
        next = node->next;
        if (node->written) {
            struct written *written = node->written;

            sand->writes--;
            if (written->is_leaving)
                pthread_join(written->thread, NULL);
            if (written->code == ERR_OK)
                manager_left(sand->manager, written->number, written->left, written->left_count);
            /* What this edit made is known from here, not only from the feed. */
            manager_written(sand->manager, written->number, written->code, written->revision,
                            written->field, written->why, monotonic_s());
            written_free(written);
        } else {
            do_order(sand, &node->order);
        }
        free(node);
    }
}

static void refuse_all(struct sand *sand)
{
    struct err err;

    err_set(&err, ERR_BUSY, "the daemon stops");
    for (struct node *node = take_all(sand), *next; node; node = next) {
        next = node->next;
        CHECK(!node->written);
        node->order.done(node->order.context, err.code, &err, NULL, false);
        order_refused(sand, &node->order);
        free(node);
    }
    while (sand->waiters) {
        struct waiter *waiter = sand->waiters;

        sand->waiters = waiter->next;
        waiter->done(waiter->context, err.code, &err, NULL, false);
        free(waiter);
    }
    granules_refuse(sand);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Sleeps until an order comes or the time is over; INFINITY: until an order. */
static void rest(struct sand *sand, double seconds)
{
    if (!(seconds > 0))
        return;
    pthread_mutex_lock(&sand->mutex);
    if (!sand->first && !sand->is_stopping && !sand_pools_wanted(sand) &&
        !sand->has_granule_waits && !atomic_load(&sand->live.is_wanted)) {
        if (seconds > 1e6) {
            pthread_cond_wait(&sand->is_wanted, &sand->mutex);
        } else {
            struct timespec until = timed_wait_until(seconds);

            pthread_cond_timedwait(&sand->is_wanted, &sand->mutex, &until);
        }
    }
    pthread_mutex_unlock(&sand->mutex);
}

static bool is_stopping(struct sand *sand)
{
    bool is;

    pthread_mutex_lock(&sand->mutex);
    is = sand->is_stopping;
    pthread_mutex_unlock(&sand->mutex);
    return is;
}

static double turn(struct sand *sand)
{
    double next_s;
    bool is_asked;

    do_all(sand);
    manager_each(sand->manager, look_at_feed, sand);
    manager_each(sand->manager, look_at_lease, sand);
    next_s = manager_tick(sand->manager, monotonic_s());
    live_begin(sand);
    granules_begin(sand);
    is_asked = sand_spheres_serve(sand);
    live_make(sand);
    granules_make(sand);
    sand->ticks++;
    sand_publish_stats(sand);
    if (is_asked)
        next_s = fmin(next_s, 0.001);
    if (sand->is_lost)
        next_s = fmin(next_s, 1);
    return next_s;
}

static bool has_open_patches(struct sand *sand)
{
    const struct manager_stats *stats = &sand->stats.patches;

    return stats->used[SCALE_FINE] + stats->used[SCALE_MEDIUM] + stats->used[SCALE_COARSE] > 0;
}

/* What a visit of all patches at the end does and finds. */
struct ending {
    struct sand *sand;
    uint32_t open; /* patches that have not ended */
};

/* Goes on to rest, and is written then. */
static void close_one(void *context, uint64_t number, struct patch_start *start)
{
    struct ending *ending = context;
    struct patch_report *report = NULL;
    struct err err = {.code = ERR_OK};

    (void)start;
    ending->open++;
    manager_close(ending->sand->manager, number, false, monotonic_s(), &report, &err);
    patch_report_unref(report);
}

static void count_one(void *context, uint64_t number, struct patch_start *start)
{
    (void)number, (void)start;
    ((struct ending *)context)->open++;
}

static void discard_one(void *context, uint64_t number, struct patch_start *start)
{
    struct sand *sand = ((struct ending *)context)->sand;
    const char *why = sand->saves_at_end ? "it was not at rest when the time to drain was over"
                                         : "the daemon stops, and discards its patches";

    (void)start;
    manager_end(sand->manager, number, PATCH_DISCARDED, why, monotonic_s());
}

/* Settles and writes patches while time is left, discards the rest; no edit is lost. */
static void end_patches(struct sand *sand)
{
    struct ending ending = {.sand = sand};

    if (sand->saves_at_end)
        manager_each(sand->manager, close_one, &ending);
    while (ending.open > 0 && monotonic_s() < sand->end_until_s) {
        turn(sand);
        ending.open = 0;
        manager_each(sand->manager, count_one, &ending);
        usleep(1000);
    }
    while (sand->writes > 0) {
        do_all(sand);
        usleep(1000);
    }
    manager_each(sand->manager, discard_one, &ending);
}

static void thread_end(struct sand *sand)
{
    refuse_all(sand);
    sand_spheres_serve(sand);
    manager_destroy(sand->manager);
    sand->manager = NULL;
    device_destroy(sand->device);
    sand->device = NULL;
}

static void *run(void *context)
{
    struct sand *sand = context;

    pthread_setname_np(pthread_self(), "sand");
    background_enter(); /* without a GPU it would take the loops' time */
    while (!is_stopping(sand)) {
        double next_s;

        if (!sand_pools_make(sand))
            return NULL;
        next_s = turn(sand);
        next_s = fmin(next_s, sand_pools_release(sand));
        rest(sand, has_open_patches(sand) ? fmin(next_s, LOOK_S) : next_s);
    }
    end_patches(sand);
    thread_end(sand);
    return NULL;
}

enum err_code sand_need_thread(struct sand *sand, struct err *err)
{
    sigset_t all, old;
    int failed;

    err->code = ERR_OK;
    if (sand->is_stopping)
        return err_set(err, ERR_BUSY, "the daemon stops");
    if (sand->has_thread)
        return ERR_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&sand->thread, NULL, run, sand);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return err_set(err, ERR_INTERNAL, "no thread for the patches: %s", strerror(failed));
    sand->has_thread = true;
    return ERR_OK;
}

/*
 * The first request for a patch starts the thread, which opens the device. A device that was named
 * is opened and waited for at the start, so that its absence is in the log then; --gpu-warm makes
 * all pools as well, and does not wait.
 */
static enum err_code start_early(struct sand *sand, struct err *err)
{
    const struct device_config *device = &sand->config.device;
    const bool is_off = strcmp(device->gpu, "off") == 0;
    const bool is_waited_for = device_is_explicit(device) && !is_off;

    if (is_off)
        device_open(sand->device);
    sand_publish_stats(sand);
    err->code = ERR_OK;
    pthread_mutex_lock(&sand->mutex);
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        sand->pools[scale].is_wanted = sand->config.is_warm && !is_off && device->slots[scale] > 0;
    if (is_waited_for || sand_pools_wanted(sand))
        sand_need_thread(sand, err);
    while (is_waited_for && !sand->is_open && err->code == ERR_OK)
        pthread_cond_wait(&sand->is_answered, &sand->mutex);
    pthread_mutex_unlock(&sand->mutex);
    return err->code;
}

struct sand *sand_create(struct world *world, const struct sand_config *config, struct err *err)
{
    struct sand *sand = calloc(1, sizeof *sand);
    const struct manager_calls calls = {sand, on_report, on_forget, on_write, on_lost};

    if (!sand) {
        err_set(err, ERR_NO_MEMORY, "no memory for the patches");
        return NULL;
    }
    sand->world = sand->leases.world = world;
    sand->config = *config;
    sand->last = &sand->first;
    sand->repeats = repeats_create();
    sand->manager = manager_create(&config->limits, &calls, err);
    sand->device = sand->manager ? device_create(&config->device, err) : NULL;
    pthread_mutex_init(&sand->mutex, NULL);
    timed_wait_init(&sand->is_wanted);
    timed_wait_init(&sand->is_answered);
    report_table_init(&sand->reports);
    live_init(&sand->live);
    if (!sand->repeats)
        err_set(err, ERR_NO_MEMORY, "no memory for the patches");
    if (!sand->device || !sand->repeats || start_early(sand, err)) {
        device_destroy(sand->device);
        manager_destroy(sand->manager);
        sand->is_over = true;
        sand_destroy(sand);
        return NULL;
    }
    return sand;
}

void sand_end(struct sand *sand, bool saves, double within_s)
{
    if (!sand || sand->is_over)
        return;
    pthread_mutex_lock(&sand->mutex);
    sand->saves_at_end = saves;
    sand->end_until_s = monotonic_s() + within_s;
    sand->is_stopping = true;
    sand->wake = NULL;
    device_give_up(sand->device); /* it is there: the thread has not seen is_stopping yet */
    pthread_cond_broadcast(&sand->is_wanted);
    pthread_cond_broadcast(&sand->is_answered);
    pthread_mutex_unlock(&sand->mutex);
}

/* The end waits for a driver that is being opened, longer when patches are to be written. */
static bool wait_for_driver(struct sand *sand)
{
    const double most_s =
        has_open_patches(sand) ? fmax(sand->end_until_s - monotonic_s(), 0) : OPENING_WAIT_S;
    const struct timespec until = timed_wait_until(fmax(most_s, OPENING_WAIT_S));
    int failed = 0;

    while (sand->is_in_driver && failed != ETIMEDOUT)
        failed = pthread_cond_timedwait(&sand->is_answered, &sand->mutex, &until);
    sand->is_left = sand->is_in_driver;
    return !sand->is_left;
}

bool sand_stop(struct sand *sand)
{
    bool is_back, has_thread;

    if (!sand || sand->is_over)
        return true;
    CHECK(sand->is_stopping);
    pthread_mutex_lock(&sand->mutex);
    has_thread = sand->has_thread;
    is_back = wait_for_driver(sand);
    pthread_mutex_unlock(&sand->mutex);
    if (!is_back) {
        log_warn("the device of the patches is still being opened; the end does not wait for it");
        refuse_all(sand);
        sand_spheres_serve(sand);
        return false;
    }
    if (has_thread)
        pthread_join(sand->thread, NULL);
    else
        thread_end(sand);
    sand->is_over = true;
    return true;
}

void sand_destroy(struct sand *sand)
{
    if (!sand)
        return;
    CHECK(sand->is_over);
    live_finish(&sand->live);
    granules_finish(sand);
    report_table_finish(&sand->reports);
    repeats_destroy(sand->repeats);
    pthread_cond_destroy(&sand->is_wanted);
    pthread_cond_destroy(&sand->is_answered);
    pthread_mutex_destroy(&sand->mutex);
    free(sand);
}

/* ---- for other threads ----------------------------------------------------------------------- */

struct patch_report *sand_repeat(struct sand *sand, const struct order_key *key, struct err *err)
{
    return repeats_find(sand->repeats, key, err);
}

void sand_set_wake(struct sand *sand, void (*wake)(void *context), void *context)
{
    pthread_mutex_lock(&sand->mutex);
    sand->wake = wake;
    sand->wake_context = context;
    pthread_mutex_unlock(&sand->mutex);
}

void sand_follow(struct sand *sand, int change)
{
    atomic_fetch_add(&sand->followers, change);
}

struct patch_report *sand_report(struct sand *sand, const char *locale, uint64_t number)
{
    return report_table_find(&sand->reports, locale, number);
}

uint64_t sand_last_change(const struct sand *sand)
{
    return atomic_load(&sand->reports.last_change);
}

struct patch_report *sand_next_change(struct sand *sand, const char *locale, uint64_t after)
{
    return report_table_next(&sand->reports, locale, after);
}

struct patch_report **sand_reports(struct sand *sand, const char *locale, size_t *count)
{
    return report_table_list(&sand->reports, locale, count);
}
