/*
 * Leases, heartbeats, and the table of nodes.
 *
 * Each third of lease_ms one query is sent without a waiting caller: a heartbeat, the renewal of
 * all leases, and the list of nodes. A renewal counts from the moment before it was sent, on a
 * clock that also runs while the machine sleeps; so the lease ends here no later than in the
 * engine. The local state is only a hint: an append is bound to the fence in the engine.
 *
 * A lease that was not renewed in time is lost for good, even if its cells are free: after such a
 * time the holder has to read the ground again. A lease with one cell of another holder is lost,
 * too.
 *
 * Two processes with one name would release each other's leases. Each heartbeat reads the instance
 * of the one before it, and a second instance is reported in the log.
 */
#include "replica/cluster_data.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t lease_clock_ms(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- held leases ---------------------------------------------------------------------------- */

/* Under the mutex. */
static struct held_lease *lease_of(struct cluster *cluster, uint64_t fence)
{
    for (size_t i = 0; i < cluster->lease_count; i++)
        if (cluster->leases[i].fence == fence)
            return &cluster->leases[i];
    return NULL;
}

/* Under the mutex. */
static void lose_lease(struct cluster *cluster, struct held_lease *lease)
{
    if (lease->is_lost)
        return;
    lease->is_lost = true;
    cluster->stats.leases_lost++;
    cluster->stats.leases_held--;
}

/* Under the mutex. */
static void look_at_clock(struct cluster *cluster)
{
    uint64_t now = lease_clock_ms();

    for (size_t i = 0; i < cluster->lease_count; i++)
        if (now >= cluster->leases[i].deadline_ms)
            lose_lease(cluster, &cluster->leases[i]);
}

bool cluster_is_lost(struct cluster *cluster, uint64_t fence)
{
    const struct held_lease *lease;
    bool is_lost;

    pthread_mutex_lock(&cluster->mutex);
    look_at_clock(cluster);
    lease = lease_of(cluster, fence);
    is_lost = !lease || lease->is_lost;
    pthread_mutex_unlock(&cluster->mutex);
    return is_lost;
}

/* ---- signs of life --------------------------------------------------------------------------- */

struct beat {
    struct ask ask;
    uint64_t sent_ms; /* lease_clock_ms */
    uint64_t *asked;  /* the leases that it renews */
    size_t asked_count;
    bool *renewed;
    struct cluster_node *nodes;
    size_t node_count;
    bool is_other; /* an instance of our name that lives besides */
};

enum { BEAT_SIGN, BEAT_OLD, BEAT_RENEW, BEAT_NODES };

static void take_renewed(struct beat *beat, const PGresult *result)
{
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t fence;

        if (!result_int8(result, row, 0, &fence))
            continue;
        for (size_t i = 0; i < beat->asked_count; i++)
            if (beat->asked[i] == (uint64_t)fence)
                beat->renewed[i] = true;
    }
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((uint8_t)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

/* It becomes the Location of an answer: text with a byte that no address has is refused. */
static bool is_address(const char *url)
{
    for (; *url; url++)
        if (*url <= ' ' || *url >= 0x7f)
            return false;
    return true;
}

static void take_nodes(struct beat *beat, const PGresult *result)
{
    int rows = PQntuples(result);

    beat->nodes = calloc(rows > 0 ? (size_t)rows : 1, sizeof *beat->nodes);
    for (int row = 0; row < rows && beat->nodes; row++) {
        struct cluster_node *node = &beat->nodes[beat->node_count];
        int64_t slots, patches;

        if (!result_text(result, row, 0, node->id, sizeof node->id) ||
            !result_text(result, row, 1, node->url, sizeof node->url) ||
            !result_text(result, row, 2, node->locales, sizeof node->locales) ||
            !result_int8(result, row, 3, &slots) || !result_int8(result, row, 4, &patches) ||
            !result_text(result, row, 5, node->leased, sizeof node->leased) || slots < 0 ||
            slots > UINT32_MAX || patches < 0 || patches > UINT32_MAX || has_control(node->id) ||
            has_control(node->locales))
            continue;
        if (!is_address(node->url))
            node->url[0] = '\0';
        node->patch_slots = (uint32_t)slots;
        node->patches = (uint32_t)patches;
        beat->node_count++;
    }
}

static void take_beat(struct ask *ask, unsigned index, const PGresult *result)
{
    struct beat *beat = ask->context;
    char before[40];

    if (index == BEAT_SIGN && result_text(result, 0, 0, before, sizeof before))
        beat->is_other = before[0] && strcmp(before, ask->cluster->instance) != 0;
    else if (index == BEAT_RENEW)
        take_renewed(beat, result);
    else if (index == BEAT_NODES)
        take_nodes(beat, result);
}

static void beat_free(struct beat *beat)
{
    free(beat->asked);
    free(beat->renewed);
    free(beat->nodes);
    free(beat);
}

/* The answer is there: leases are renewed or lost, the nodes are known. */
static void learn(struct cluster *cluster, struct beat *beat)
{
    pthread_mutex_lock(&cluster->mutex);
    for (size_t i = 0; i < beat->asked_count; i++) {
        struct held_lease *lease = lease_of(cluster, beat->asked[i]);

        if (lease && beat->renewed[i] && !lease->is_lost)
            lease->deadline_ms = beat->sent_ms + cluster->lease_ms;
        else if (lease && !beat->renewed[i])
            lose_lease(cluster, lease);
    }
    if (beat->nodes) {
        free(cluster->nodes);
        cluster->nodes = beat->nodes;
        cluster->node_count = beat->node_count;
        beat->nodes = NULL;
    }
    pthread_mutex_unlock(&cluster->mutex);
    /* the first sign of life follows that of the process before this one */
    if (beat->is_other && cluster->has_released_old && !cluster->was_other_instance)
        log_error("the shared log: another process calls itself %s, too (--node)", cluster->node);
    cluster->was_other_instance = beat->is_other && cluster->has_released_old;
    cluster->has_released_old = true;
}

static void beat_ended(struct ask *ask)
{
    struct beat *beat = ask->context;
    struct cluster *cluster = ask->cluster;

    if (ask->end == ASK_DONE)
        learn(cluster, beat);
    else if (ask->end == ASK_REFUSED)
        log_warn("the shared log refuses a sign of life: %s (%s)", ask->message, ask->sqlstate);
    cluster->is_beating = false;
    beat_free(beat);
}

/* The leases to be renewed: a copy of the list, without the lost ones. */
static bool copy_leases(struct cluster *cluster, struct beat *beat)
{
    pthread_mutex_lock(&cluster->mutex);
    look_at_clock(cluster);
    beat->asked = calloc(cluster->lease_count + 1, sizeof *beat->asked);
    beat->renewed = calloc(cluster->lease_count + 1, sizeof *beat->renewed);
    for (size_t i = 0; beat->asked && beat->renewed && i < cluster->lease_count; i++)
        if (!cluster->leases[i].is_lost)
            beat->asked[beat->asked_count++] = cluster->leases[i].fence;
    pthread_mutex_unlock(&cluster->mutex);
    return beat->asked && beat->renewed;
}

static void beat_send(struct cluster *cluster, struct beat *beat)
{
    struct params sign = {0}, old = {0}, renew = {0};
    struct array fences = {0};

    pthread_mutex_lock(&cluster->mutex);
    params_text(&sign, cluster->node);
    params_text(&sign, cluster->url);
    params_text(&sign, cluster->locales);
    params_int8(&sign, cluster->patch_slots);
    params_int8(&sign, cluster->patches);
    params_text(&sign, cluster->instance);
    params_int8(&sign, cluster->lease_ms);
    pthread_mutex_unlock(&cluster->mutex);
    array_begin(&fences, ARRAY_INT8, beat->asked_count);
    for (size_t i = 0; i < beat->asked_count; i++)
        array_int8(&fences, (int64_t)beat->asked[i]);
    /* leases of an earlier process of this name are released */
    params_text(&old, cluster->has_released_old ? "" : cluster->node);
    params_array(&old, &fences);
    params_text(&renew, cluster->node);
    params_array(&renew, &fences);
    params_int8(&renew, cluster->lease_ms);
    ask_statement(cluster, &beat->ask, STATEMENT_SIGN_OF_LIFE, &sign);
    ask_statement(cluster, &beat->ask, STATEMENT_LET_GO_OLD, &old);
    ask_statement(cluster, &beat->ask, STATEMENT_RENEW_LEASES, &renew);
    ask_statement(cluster, &beat->ask, STATEMENT_NODES, NULL);
    array_free(&fences);
    cluster->is_beating = true;
    ask_send(cluster, &beat->ask);
}

/* A sign of life with the renewals, unless one is under way. */
static void beat_try(struct cluster *cluster)
{
    struct beat *new;

    /* within cluster_hold's transaction it would not count before that ends */
    if (cluster->is_beating || cluster->is_held || atomic_load(&cluster->is_away))
        return;
    new = calloc(1, sizeof *new);
    if (!new)
        return;
    new->ask.take = take_beat;
    new->ask.ended = beat_ended;
    new->ask.context = new;
    new->sent_ms = lease_clock_ms();
    if (!copy_leases(cluster, new)) {
        beat_free(new);
        return;
    }
    beat_send(cluster, new);
}

static void on_beat_due(uv_timer_t *timer)
{
    beat_try(timer->data);
}

void beat_start(struct cluster *cluster)
{
    uint64_t every = cluster->lease_ms / 3 > 0 ? cluster->lease_ms / 3 : 1;

    uv_timer_start(&cluster->beat_timer, on_beat_due, every, every);
    beat_try(cluster);
}

void beat_stop(struct cluster *cluster)
{
    uv_timer_stop(&cluster->beat_timer);
}

static void let_go(struct cluster *cluster, const uint64_t *list, size_t count)
{
    struct params params = {0};
    struct array fences = {0};
    struct err ignored;

    array_begin(&fences, ARRAY_INT8, count);
    for (size_t i = 0; i < count; i++)
        array_int8(&fences, (int64_t)list[i]);
    params_text(&params, cluster->node);
    params_array(&params, &fences);
    ask_one(cluster, STATEMENT_LET_GO, &params, NULL, NULL, &ignored);
    array_free(&fences);
}

void beat_goodbye(struct cluster *cluster)
{
    struct params params = {0};
    struct err ignored;

    beat_stop(cluster); /* none after the last query */
    for (size_t i = 0; i < cluster->lease_count; i++)
        let_go(cluster, &cluster->leases[i].fence, 1);
    params_text(&params, cluster->node);
    params_text(&params, cluster->instance);
    ask_one(cluster, STATEMENT_SIGN_OFF, &params, NULL, NULL, &ignored);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void take_fence(struct ask *ask, unsigned index, const PGresult *result)
{
    (void)index;
    result_int8(result, 0, 0, ask->context);
}

/* Room for one more, before the engine grants it: it cannot be returned to an unreachable one. */
static bool lease_room(struct cluster *cluster)
{
    bool has_room;

    pthread_mutex_lock(&cluster->mutex);
    has_room = array_reserve((void **)&cluster->leases, &cluster->lease_room,
                             cluster->lease_count + 1, sizeof *cluster->leases);
    pthread_mutex_unlock(&cluster->mutex);
    return has_room;
}

static void lease_given(struct cluster *cluster, uint64_t fence, uint64_t sent_ms)
{
    pthread_mutex_lock(&cluster->mutex);
    cluster->leases[cluster->lease_count++] =
        (struct held_lease){.fence = fence, .deadline_ms = sent_ms + cluster->lease_ms};
    cluster->stats.leases_held++;
    cluster->stats.leases_taken++;
    pthread_mutex_unlock(&cluster->mutex);
}

static enum err_code check_area(const struct cluster_area *area, struct err *err)
{
    uint64_t cols = (uint64_t)area->last_x - (uint64_t)area->first_x + 1;
    uint64_t rows = (uint64_t)area->last_y - (uint64_t)area->first_y + 1;
    double cells = (double)cols * (double)rows;

    CHECK(area->first_x <= area->last_x && area->first_y <= area->last_y);
    /* 0: all 2^64 of them */
    if (cols == 0 || rows == 0 || cells > CLUSTER_LEASE_CELLS_MAX)
        return err_limit(err, ERR_TOO_LARGE, CLUSTER_LEASE_CELLS_MAX, cells,
                         "the area has %.0f cells; the limit is %d", cells,
                         (int)CLUSTER_LEASE_CELLS_MAX);
    return ERR_OK;
}

static enum err_code refused(struct cluster *cluster, const struct ask *ask,
                             const struct cluster_area *area, char *holder, struct err *err)
{
    char *name;
    long long ms;

    if (strcmp(ask->sqlstate, "KT004") != 0)
        return err->code;
    ms = strtoll(ask->detail, &name, 10);
    snprintf(holder, CLUSTER_ID_MAX + 1, "%.*s", (int)CLUSTER_ID_MAX, *name ? name + 1 : "");
    cluster_count(cluster, &cluster->stats.leases_refused, 1);
    return err_set(err, ERR_CONFLICT, "a cell of that area of %s is held by %s for %lld ms",
                   area->locale, holder, ms);
}

enum err_code cluster_lease(struct cluster *cluster, const struct cluster_area *area,
                            uint64_t *fence, char *holder, struct err *err)
{
    uint64_t give_up_ms, sent_ms;
    int64_t drawn = 0;

    holder[0] = '\0';
    if (check_area(area, err) || cluster_ready(cluster, err))
        return err->code;
    if (!lease_room(cluster))
        return err_set(err, ERR_NO_MEMORY, "no memory for a lease");
    give_up_ms = lease_clock_ms() + cluster->wait_ms;
    for (;;) {
        struct ask ask = {.take = take_fence, .context = &drawn};
        struct params params = {0};

        sent_ms = lease_clock_ms();
        params_text(&params, cluster->node);
        params_text(&params, area->locale);
        params_int8(&params, area->first_x);
        params_int8(&params, area->last_x);
        params_int8(&params, area->first_y);
        params_int8(&params, area->last_y);
        params_int8(&params, cluster->lease_ms);
        ask_statement(cluster, &ask, STATEMENT_TAKE_LEASE, &params);
        ask_run(cluster, &ask, err);
        if (ask.end == ASK_DONE)
            break;
        if (ask.end == ASK_LOST)
            return err->code;
        if (strcmp(ask.sqlstate, "40P01") != 0 || sent_ms >= give_up_ms)
            return refused(cluster, &ask, area, holder, err);
    }
    if (drawn <= 0)
        return err_set(err, ERR_DAMAGED, "the shared log gave the fence %lld", (long long)drawn);
    *fence = (uint64_t)drawn;
    lease_given(cluster, *fence, sent_ms);
    return ERR_OK;
}

static void take_holder(struct ask *ask, unsigned index, const PGresult *result)
{
    (void)index;
    if (PQntuples(result) > 0)
        result_text(result, 0, 0, ask->context, CLUSTER_ID_MAX + 1);
}

enum err_code cluster_holder(struct cluster *cluster, const struct cluster_area *area, char *holder,
                             struct err *err)
{
    struct params params = {0};

    holder[0] = '\0';
    if (cluster_ready(cluster, err))
        return err->code;
    params_text(&params, area->locale);
    params_int8(&params, area->first_x);
    params_int8(&params, area->last_x);
    params_int8(&params, area->first_y);
    params_int8(&params, area->last_y);
    params_text(&params, cluster->node);
    return ask_one(cluster, STATEMENT_LEASE_HOLDER, &params, take_holder, holder, err);
}

void cluster_unlease(struct cluster *cluster, uint64_t fence)
{
    struct held_lease *lease;
    bool was_held = false;

    pthread_mutex_lock(&cluster->mutex);
    lease = lease_of(cluster, fence);
    if (lease) {
        was_held = !lease->is_lost;
        *lease = cluster->leases[--cluster->lease_count];
    }
    pthread_mutex_unlock(&cluster->mutex);
    if (!lease)
        return;
    /* unreachable, or lost: it expires */
    let_go(cluster, &fence, 1);
    /* now, for another node may take the cells where the statistics say 0 */
    pthread_mutex_lock(&cluster->mutex);
    cluster->stats.leases_held -= was_held;
    pthread_mutex_unlock(&cluster->mutex);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

void cluster_set_patches(struct cluster *cluster, uint32_t patches)
{
    pthread_mutex_lock(&cluster->mutex);
    cluster->patches = patches;
    pthread_mutex_unlock(&cluster->mutex);
}

void cluster_set_patch_slots(struct cluster *cluster, uint32_t slots)
{
    pthread_mutex_lock(&cluster->mutex);
    cluster->patch_slots = slots;
    pthread_mutex_unlock(&cluster->mutex);
}

void cluster_set_url(struct cluster *cluster, const char *url)
{
    pthread_mutex_lock(&cluster->mutex);
    snprintf(cluster->url, sizeof cluster->url, "%s", url);
    pthread_mutex_unlock(&cluster->mutex);
}

enum err_code cluster_nodes(struct cluster *cluster, struct cluster_node **nodes, size_t *count,
                            struct err *err)
{
    pthread_mutex_lock(&cluster->mutex);
    *count = cluster->node_count;
    *nodes = calloc(*count > 0 ? *count : 1, sizeof **nodes);
    if (*nodes && *count > 0)
        memcpy(*nodes, cluster->nodes, *count * sizeof **nodes);
    pthread_mutex_unlock(&cluster->mutex);
    if (*nodes)
        return ERR_OK;
    *count = 0;
    return err_set(err, ERR_NO_MEMORY, "no memory for the list of nodes");
}
