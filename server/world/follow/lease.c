/*
 * Leases of ground: orders of other threads to the writer, which owns the log.
 *
 * The holder of a lease begins with the ground as it is. So a lease is granted only after
 * everything has been applied that the log had when the cells were taken; later entries are of
 * nodes that could see the lease. When applying fails, the cells are released.
 *
 * A call that would refuse a request because of a locale that is missing here orders a poll of the
 * log in the same way (world_locale_now).
 *
 * An order is on the stack of the thread that waits for it. A release has no waiting thread;
 * without memory for it the lease stays until the node ends, and that is logged.
 */
#include "world/follow/lease.h"

#include "base/log.h"
#include "world/follow/follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lease_order {
    struct lease_order *next;
    bool lets_go; /* of fence; the order is malloc and the writer's */
    bool looks;   /* only: no lease */
    char *holder; /* only asks for it; NULL: another order */
    uint64_t fence;
    struct cluster_area area;
    struct locale *locale;
    bool is_own, is_done;
    pthread_cond_t done; /* with the world's mutex */
    struct err err;
};

/* ---- any thread ------------------------------------------------------------------------------ */

/* False: the writer takes no more. */
static bool queue(struct world *world, struct lease_order *order)
{
    struct lease_order **at = &world->leases;

    if (world->is_stopping && !order->lets_go)
        return false;
    while (*at)
        at = &(*at)->next;
    *at = order;
    world_signal(world);
    return true;
}

static bool cell_of(double metres, int64_t *out)
{
    double cell = floor(metres / WORLD_LEASE_CELL_M);

    *out = (int64_t)cell;
    return fabs(cell) < 1e15;
}

static enum err_code area_of(const char *locale_id, struct vec2 low, struct vec2 high,
                             struct cluster_area *out, struct err *err)
{
    *out = (struct cluster_area){.first_x = 0};
    memcpy(out->locale, locale_id, strlen(locale_id) + 1);
    if (cell_of(low.x, &out->first_x) && cell_of(low.y, &out->first_y) &&
        cell_of(high.x, &out->last_x) && cell_of(high.y, &out->last_y))
        return ERR_OK;
    return err_set(err, ERR_UNPROCESSABLE,
                   "the area lies at (%g, %g) m, too far from the origin for a lease", low.x,
                   low.y);
}

static void wait_for(struct world *world, struct lease_order *order)
{
    pthread_cond_init(&order->done, NULL);
    pthread_mutex_lock(&world->mutex);
    if (!queue(world, order)) {
        err_set(&order->err, ERR_BUSY, "the daemon stops");
        order->is_done = true;
    }
    while (!order->is_done)
        pthread_cond_wait(&order->done, &world->mutex);
    pthread_mutex_unlock(&world->mutex);
    pthread_cond_destroy(&order->done);
}

enum err_code world_locale_now(struct world *world, const char *locale_id, struct locale **out,
                               struct err *err)
{
    struct lease_order order = {.looks = true, .err = {.code = ERR_OK}};

    *out = NULL;
    if (!world->follow)
        return err_set(err, ERR_LOCALE_UNKNOWN, "there is no locale %s", locale_id);
    memcpy(order.area.locale, locale_id, strlen(locale_id) + 1);
    wait_for(world, &order);
    *err = order.err;
    *out = order.locale;
    return err->code;
}

enum err_code world_lease(struct world *world, const char *locale_id, struct vec2 low,
                          struct vec2 high, struct world_lease *out, bool *is_own, struct err *err)
{
    struct lease_order order = {.err = {.code = ERR_OK}};

    *out = (struct world_lease){.fence = 0};
    *is_own = false;
    err->code = ERR_OK;
    if (!world->follow)
        return ERR_OK;
    if (area_of(locale_id, low, high, &order.area, err))
        return err->code;
    wait_for(world, &order);
    *is_own = order.is_own;
    *err = order.err;
    if (err->code == ERR_OK)
        *out = (struct world_lease){order.fence, order.locale};
    return err->code;
}

enum err_code world_lease_holder(struct world *world, const char *locale_id, struct vec2 low,
                                 struct vec2 high, char *holder, struct err *err)
{
    struct lease_order order = {.holder = holder, .err = {.code = ERR_OK}};

    holder[0] = '\0';
    err->code = ERR_OK;
    if (!world->follow)
        return ERR_OK;
    if (area_of(locale_id, low, high, &order.area, err))
        return err->code;
    wait_for(world, &order);
    *err = order.err;
    return err->code;
}

void world_unlease(struct world *world, uint64_t fence)
{
    struct lease_order *order;

    if (fence == 0 || !world->follow)
        return;
    order = calloc(1, sizeof *order);
    if (!order) {
        log_warn("no memory to let go of lease %llu: it ends with this node",
                 (unsigned long long)fence);
        return;
    }
    order->lets_go = true;
    order->fence = fence;
    pthread_mutex_lock(&world->mutex);
    queue(world, order);
    pthread_mutex_unlock(&world->mutex);
}

bool world_lease_is_lost(struct world *world, uint64_t fence)
{
    return fence != 0 && world->follow && cluster_is_lost(world->follow->log, fence);
}

/* ---- the writer's thread --------------------------------------------------------------------- */

/* The locale with all that the log has of it. */
static enum err_code find_now(struct world *world, struct lease_order *order)
{
    const char *id = order->area.locale;
    struct err *err = &order->err;
    const struct followed *f;

    if (follow_all(world, err))
        return err->code;
    f = follow_find(world->follow, id);
    if (f && (f->is_doubtful || f->applied < f->head))
        return err_set(err, ERR_UNAVAILABLE, "%s is not here as the shared log has it: %.200s", id,
                       f->reason[0] != '\0' ? f->reason : "it is being followed");
    order->locale = snapshot_locale(atomic_load(&world->published), id);
    if (!order->locale)
        return err_set(err, ERR_LOCALE_UNKNOWN, "there is no locale %s", id);
    locale_ref(order->locale);
    return ERR_OK;
}

static enum err_code take(struct world *world, struct lease_order *order)
{
    struct follow *follow = world->follow;
    struct err *err = &order->err;
    char holder[CLUSTER_ID_MAX + 1] = "";

    if (cluster_lease(follow->log, &order->area, &order->fence, holder, err)) {
        order->is_own = err->code == ERR_CONFLICT && strcmp(holder, follow->node) == 0;
        return err->code;
    }
    if (find_now(world, order))
        cluster_unlease(follow->log, order->fence);
    return err->code;
}

static struct lease_order *first_order(struct world *world)
{
    struct lease_order *order;

    pthread_mutex_lock(&world->mutex);
    order = world->leases;
    if (order)
        world->leases = order->next;
    pthread_mutex_unlock(&world->mutex);
    return order;
}

static void answer(struct world *world, struct lease_order *order)
{
    pthread_mutex_lock(&world->mutex);
    order->is_done = true;
    pthread_cond_signal(&order->done);
    pthread_mutex_unlock(&world->mutex);
}

void lease_poll(struct world *world, bool is_over)
{
    for (struct lease_order *order; (order = first_order(world));) {
        if (order->lets_go) {
            cluster_unlease(world->follow->log, order->fence);
            free(order);
            continue;
        }
        if (is_over)
            err_set(&order->err, ERR_BUSY, "the daemon stops");
        else if (order->looks)
            find_now(world, order);
        else if (order->holder)
            cluster_holder(world->follow->log, &order->area, order->holder, &order->err);
        else
            take(world, order);
        answer(world, order);
    }
}

void lease_finish(struct world *world)
{
    for (struct lease_order *order; (order = first_order(world));)
        free(order);
}
