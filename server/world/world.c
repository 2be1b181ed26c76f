/*
 * One writer, many readers, no waiting for readers.
 *
 * Problem: thousands of requests a second read the world while edits replace parts of it. Locks
 * would make readers wait for a writer. A counted pointer cannot be loaded safely: between the load
 * and the increment the last owner may free it. Approach: epoch-based reclamation. `published` is
 * the snapshot. A reader announces in `seen` the epoch at its last quiet moment, when it held no
 * snapshot. To retire a snapshot the writer swaps the pointer, increments the epoch and tags the
 * old snapshot with the new one. As soon as every reader has announced that epoch, no reader can be
 * between load and increment, and the writer drops its own reference. Longer holds are counted:
 * with a plain count per reader (snapshot_hold, touched only by its thread), and with one atomic
 * operation for a reader's first and last hold. A reader holds the snapshot that it saw last, so
 * the steady state has no atomic write. The last release returns the snapshot to the writer, so
 * that a loop never frees a gigabyte. A reader whose thread does not run has the greatest epoch and
 * delays nothing. Readers are admitted before their threads start, under the mutex that the writer
 * holds when it compares epochs. Back-pressure: with more than retired_max snapshots waiting, the
 * writer publishes nothing until the readers have passed. Invariants: only the writer stores
 * `published` and `epoch`; refs > 0 while published or held; the mutex guards the queue, the
 * garbage, the wake function and the counters, never a snapshot. Source: P. McKenney and others on
 * quiescent-state based reclamation; measured before: reads run at millions a second and are clean
 * under ThreadSanitizer. Dropped: liburcu (its online/offline hooks do not fit libuv, whose
 * callbacks run inside the poll).
 */
#include "world/world.h"

#include "base/check.h"
#include "base/timed_wait.h"
#include "base/clock.h"
#include "world/world_data.h"
#include "world/values/history_list.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct world_limits world_limits_default = {
    .locales_max = 100000,
    .models_max = 1000,
    .bytes_max = (uint64_t)8 << 30,
    .queue_max = 1000,
    .edit_samples_max = 16777216,
    .pins_max = 64,
    .past_bytes_max = (uint64_t)256 << 20,
    .history_bytes_max = (uint64_t)64 << 20,
    .polygon = {.polygons_max = 2000000, .corners_max = 8000000, .vertices_max = 8000000},
    .retired_max = 64,
};

enum { POLL_FIRST_MS = 1, POLL_LAST_MS = 64 };

/* ---- readers --------------------------------------------------------------------------------- */

static void snapshot_hold(struct world_snapshot *snapshot, size_t reader)
{
    if (snapshot->holds[reader].count++ == 0)
        __atomic_fetch_add(&snapshot->refs, 1, __ATOMIC_RELAXED);
}

void world_signal(struct world *world)
{
    pthread_cond_signal(&world->changed);
    if (world->follow)
        follow_wake(world->follow);
}

/* Takes one reference away; the last one hands the snapshot to the writer. */
static void snapshot_release(struct world *world, struct world_snapshot *snapshot)
{
    if (__atomic_fetch_sub(&snapshot->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    pthread_mutex_lock(&world->mutex);
    snapshot->next = world->garbage;
    world->garbage = snapshot;
    world_signal(world);
    pthread_mutex_unlock(&world->mutex);
}

static void snapshot_drop(struct world *world, struct world_snapshot *snapshot, size_t reader)
{
    CHECK(snapshot->holds[reader].count > 0);
    if (--snapshot->holds[reader].count == 0)
        snapshot_release(world, snapshot);
}

const struct world_snapshot *world_pin(struct world *world, size_t reader)
{
    struct reader *r = &world->readers[reader];
    struct world_snapshot *snapshot = atomic_load_explicit(&world->published, memory_order_acquire);

    CHECK(reader < world->reader_count);
    if (r->current != snapshot) {
        snapshot_hold(snapshot, reader);
        if (r->current)
            snapshot_drop(world, r->current, reader);
        r->current = snapshot;
    }
    snapshot_hold(snapshot, reader);
    return snapshot;
}

void world_unpin(struct world *world, size_t reader, const struct world_snapshot *snapshot)
{
    CHECK(reader < world->reader_count);
    snapshot_drop(world, (struct world_snapshot *)snapshot, reader);
}

/*
 * Threads that ask now and then share the last reader. It has gone but for these lines, so that it
 * holds nothing back; the snapshot is held by its count. The mutex is that of seen_least:
 * either it sees the epoch here, or the published snapshot is the new one already.
 */
const struct world_snapshot *world_hold(struct world *world)
{
    const struct world_snapshot *snapshot;
    size_t last = world->reader_count - 1;

    pthread_mutex_lock(&world->hold_mutex);
    pthread_mutex_lock(&world->mutex);
    atomic_store(&world->readers[last].seen, atomic_load(&world->epoch));
    pthread_mutex_unlock(&world->mutex);
    snapshot = world_pin(world, last);
    world_reader_gone(world, last);
    pthread_mutex_unlock(&world->hold_mutex);
    return snapshot;
}

void world_release(struct world *world, const struct world_snapshot *snapshot)
{
    pthread_mutex_lock(&world->hold_mutex);
    world_unpin(world, world->reader_count - 1, snapshot);
    pthread_mutex_unlock(&world->hold_mutex);
}

void world_readers_begin(struct world *world)
{
    pthread_mutex_lock(&world->mutex);
    for (size_t i = 0; i + 1 < world->reader_count; i++)
        atomic_store(&world->readers[i].seen, atomic_load(&world->epoch));
    pthread_mutex_unlock(&world->mutex);
}

void world_reader_quiet(struct world *world, size_t reader)
{
    struct reader *r = &world->readers[reader];
    uint64_t epoch = atomic_load_explicit(&world->epoch, memory_order_acquire);

    CHECK(reader < world->reader_count);
    if (r->current && r->current != atomic_load_explicit(&world->published, memory_order_relaxed)) {
        snapshot_drop(world, r->current, reader);
        r->current = NULL;
    }
    if (atomic_load_explicit(&r->seen, memory_order_relaxed) != epoch)
        atomic_store_explicit(&r->seen, epoch, memory_order_release);
}

void world_reader_gone(struct world *world, size_t reader)
{
    struct reader *r = &world->readers[reader];

    CHECK(reader < world->reader_count);
    if (r->current)
        snapshot_drop(world, r->current, reader);
    r->current = NULL;
    atomic_store_explicit(&r->seen, UINT64_MAX, memory_order_release);
}

/* ---- the writer: publish and reclaim --------------------------------------------------------- */

/* Under the mutex, so that it does not miss readers that world_readers_begin just let in. */
static uint64_t seen_least(const struct world *world)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < world->reader_count; i++) {
        uint64_t seen = atomic_load_explicit(&world->readers[i].seen, memory_order_acquire);

        if (seen < least)
            least = seen;
    }
    return least;
}

void world_wake(struct world *world)
{
    pthread_mutex_lock(&world->wake_mutex);
    if (world->wake)
        world->wake(world->wake_context);
    pthread_mutex_unlock(&world->wake_mutex);
}

void world_reclaim(struct world *world)
{
    struct world_snapshot *garbage;
    uint64_t freed = 0, least;

    pthread_mutex_lock(&world->mutex);
    least = seen_least(world);
    pthread_mutex_unlock(&world->mutex);

    while (world->retired && world->retired->retired_epoch <= least) {
        struct world_snapshot *snapshot = world->retired;

        world->retired = snapshot->next;
        if (!world->retired)
            world->retired_last = &world->retired;
        world->retired_count--;
        snapshot_release(world, snapshot);
    }
    pthread_mutex_lock(&world->mutex);
    garbage = world->garbage;
    world->garbage = NULL;
    pthread_mutex_unlock(&world->mutex);
    while (garbage) {
        struct world_snapshot *next = garbage->next;

        snapshot_destroy(garbage);
        garbage = next;
        freed++;
    }
    pthread_mutex_lock(&world->mutex);
    world->counted.reclaimed += freed;
    world->counted.retired = world->retired_count;
    pthread_mutex_unlock(&world->mutex);
}

static void pause_ms(int ms)
{
    struct timespec time = {.tv_nsec = ms * 1000000L};

    nanosleep(&time, NULL);
}

static struct world_revision revision_of(const struct locale *locale)
{
    struct world_revision of = {.revision = locale->revision};

    memcpy(of.locale_id, locale->id, sizeof of.locale_id);
    return of;
}

void world_make_room(struct world *world)
{
    for (int ms = POLL_FIRST_MS; world->retired_count >= world->limits.retired_max;) {
        world_wake(world);
        pause_ms(ms);
        ms = ms < POLL_LAST_MS ? ms * 2 : POLL_LAST_MS;
        world_reclaim(world);
    }
}

void world_publish(struct world *world, struct world_snapshot *next)
{
    struct world_snapshot *old;
    const struct locale_sums *sum = &next->sums;

    pthread_mutex_lock(&world->mutex);
    world->counted.publications++;
    world->counted.locales = next->locale_count;
    world->counted.layers = sum->layers;
    world->counted.mesh_layers = sum->mesh_layers;
    world->counted.mesh_polygons = sum->mesh_polygons;
    world->counted.mesh_bytes = sum->mesh_bytes;
    snapshot_count_memory(next, &world->counted.memory_bytes, &world->counted.earlier_bytes);
    world->counted.pins = sum->pins;
    for (size_t i = 0; i < next->locale_count && i < WORLD_REVISIONS_MAX; i++)
        world->revisions[i] = revision_of(snapshot_at(next, i));
    pthread_mutex_unlock(&world->mutex);

    old = atomic_exchange_explicit(&world->published, next, memory_order_acq_rel);
    old->retired_epoch = atomic_fetch_add_explicit(&world->epoch, 1, memory_order_acq_rel) + 1;
    old->next = NULL;
    *world->retired_last = old;
    world->retired_last = &old->next;
    world->retired_count++;
}

/* ---- from any thread ------------------------------------------------------------------------- */

void world_drop(const struct world_change *change)
{
    layer_unref(change->layer);
    locale_unref(change->prepared);
    model_unref(change->model);
    struct polygon_edit polygons = change->polygons;

    layer_unref(change->base);
    polygon_edit_free(&polygons);
    free((void *)change->edit.heights_m);
    free((void *)(uintptr_t)change->shell.bytes);
    free(change->poses);
    revert_plan_free(change->revert);
}

static struct change_group *group_create(size_t count)
{
    struct change_group *group = calloc(1, sizeof *group + count * sizeof group->changes[0]);

    if (group)
        group->count = count;
    return group;
}

/* A group has only moves or none: moves are published without a commit. */
static bool is_of_moves(const struct change_group *group)
{
    size_t moves = 0;

    for (size_t i = 0; i < group->count; i++)
        moves += change_is_of_pose(group->changes[i].kind);
    CHECK(moves == 0 || moves == group->count);
    return moves > 0;
}

/* Takes the group; on error it is freed with the values of its changes. */
static enum err_code enqueue(struct world *world, struct change_group *group, struct err *err)
{
    size_t most;
    bool is_full;

    group->queued_us = monotonic_us();
    pthread_mutex_lock(&world->mutex);
    most = world->wanted.queue_max;
    is_full = world->queued_count > 0 && world->queued_count + group->count > most;
    if (!is_full) {
        struct change_group ***last = is_of_moves(group) ? &world->last_move : &world->last;

        **last = group;
        *last = &group->next;
        world->queued_count += group->count;
        world_signal(world);
    }
    pthread_mutex_unlock(&world->mutex);
    if (!is_full)
        return ERR_OK;
    for (size_t i = 0; i < group->count; i++)
        world_drop(&group->changes[i]);
    free(group);
    return err_limit(err, ERR_BUSY, (double)most, (double)most + 1,
                     "%zu changes wait already; try again in a moment", most);
}

/* A group of these changes, which it takes; NULL lets them go. */
static struct change_group *group_of(const struct world_change *changes, size_t count,
                                     struct err *err)
{
    struct change_group *group = group_create(count);

    for (size_t i = 0; i < count; i++) {
        if (group)
            group->changes[i] = changes[i];
        else
            world_drop(&changes[i]);
    }
    if (!group)
        err_set(err, ERR_NO_MEMORY, "no memory for a change");
    return group;
}

enum err_code world_submit_all(struct world *world, const struct world_change *changes,
                               size_t count, struct err *err)
{
    struct change_group *group = group_of(changes, count, err);

    return group ? enqueue(world, group, err) : err->code;
}

enum err_code world_submit(struct world *world, const struct world_change *change, struct err *err)
{
    return world_submit_all(world, change, 1, err);
}

struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_done;
    struct err err;
};

static void waiter_done(void *context, const struct err *err)
{
    struct waiter *waiter = context;

    pthread_mutex_lock(&waiter->mutex);
    waiter->is_done = true;
    waiter->err = *err;
    pthread_cond_signal(&waiter->cond);
    pthread_mutex_unlock(&waiter->mutex);
}

/* Queues a group and waits until it is done. */
static enum err_code wait_for(struct world *world, struct change_group *group, struct err *err)
{
    struct waiter waiter = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

    group->done = waiter_done;
    group->context = &waiter;
    if (enqueue(world, group, err))
        return err->code;
    pthread_mutex_lock(&waiter.mutex);
    while (!waiter.is_done)
        pthread_cond_wait(&waiter.cond, &waiter.mutex);
    pthread_mutex_unlock(&waiter.mutex);
    pthread_cond_destroy(&waiter.cond);
    pthread_mutex_destroy(&waiter.mutex);
    *err = waiter.err;
    return waiter.err.code;
}

enum err_code world_apply_all(struct world *world, const struct world_change *changes, size_t count,
                              struct err *err)
{
    struct change_group *group = group_of(changes, count, err);

    return group ? wait_for(world, group, err) : err->code;
}

enum err_code world_apply(struct world *world, const struct world_change *change, struct err *err)
{
    return world_apply_all(world, change, 1, err);
}

enum err_code world_load(struct world *world, struct err *err)
{
    struct change_group *group;

    if (!world->store)
        return ERR_OK;
    group = group_create(0);
    if (!group)
        return err_set(err, ERR_NO_MEMORY, "no memory to load the store");
    group->is_load = true;
    return wait_for(world, group, err);
}

enum err_code world_save_layer(struct world *world, const struct layer *layer, struct err *err)
{
    if (!world->store || layer->kind != LAYER_MESH)
        return ERR_OK;
    return store_save_mesh(world->store, layer->mesh, layer_polygon_set(layer), err);
}

struct feed *world_feed(struct world *world)
{
    return world->feed;
}

struct moves *world_moves(struct world *world)
{
    return world->moves;
}

struct store *world_store(struct world *world)
{
    return world->store;
}

const char *world_damage(const struct world *world, const char *id)
{
    for (size_t i = 0; i < world->damage_count; i++) {
        const char *damaged = world->damages[i].locale_id;

        if (!id || damaged[0] == '\0' || strcmp(damaged, id) == 0)
            return world->damages[i].message;
    }
    return NULL;
}

int world_id_order(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool world_is_stored(const struct world *world, const char *id)
{
    return world->stored_count > 0 && bsearch(id, world->stored, world->stored_count,
                                              sizeof *world->stored, world_id_order) != NULL;
}

void world_set_wake(struct world *world, void (*wake)(void *context), void *context)
{
    pthread_mutex_lock(&world->wake_mutex);
    world->wake = wake;
    world->wake_context = context;
    pthread_mutex_unlock(&world->wake_mutex);
}

void world_set_audit(struct world *world, const struct world_audit *audit)
{
    world->audit = *audit;
}

void world_stats(struct world *world, struct world_stats *out)
{
    pthread_mutex_lock(&world->mutex);
    *out = world->counted;
    out->queued = world->queued_count;
    pthread_mutex_unlock(&world->mutex);
    out->builds = builds_list(&world->builds, NULL, 0);
}

struct builds *world_builds(struct world *world)
{
    return &world->builds;
}

size_t world_revisions(struct world *world, struct world_revision *out)
{
    size_t count;

    pthread_mutex_lock(&world->mutex);
    count = world->counted.locales < WORLD_REVISIONS_MAX ? (size_t)world->counted.locales
                                                         : WORLD_REVISIONS_MAX;
    memcpy(out, world->revisions, count * sizeof *out);
    pthread_mutex_unlock(&world->mutex);
    return count;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void world_free(struct world *world)
{
    builder_destroy(world->builder);
    lease_finish(world);
    if (atomic_load(&world->published))
        snapshot_destroy(atomic_load(&world->published));
    pthread_mutex_destroy(&world->mutex);
    pthread_mutex_destroy(&world->builds.mutex);
    pthread_mutex_destroy(&world->wake_mutex);
    pthread_mutex_destroy(&world->hold_mutex);
    pthread_cond_destroy(&world->changed);
    feed_destroy(world->feed);
    moves_destroy(world->moves);
    ops_destroy(world->ops);
    history_list_destroy(world->history);
    follow_free(world->follow);
    free(world->tombstones.at);
    free(world->damages);
    free(world->stored);
    free(world->readers);
    free(world);
}

void world_set_limits(struct world *world, const struct world_limits *limits)
{
    pthread_mutex_lock(&world->mutex);
    world->wanted = *limits;
    world->wanted.retired_max = world->limits.retired_max;
    pthread_mutex_unlock(&world->mutex);
}

enum err_code world_history(struct world *world, const struct store_history_question *question,
                            uint64_t *since, store_take_past take, void *context, struct err *err)
{
    return world->store ? store_history(world->store, question, since, take, context, err)
                        : history_list_read(world->history, question, since, take, context, err);
}

uint64_t world_writer_turns(struct world *world)
{
    pthread_mutex_lock(&world->mutex);
    world->is_poked = true;
    world_signal(world);
    pthread_mutex_unlock(&world->mutex);
    return atomic_load_explicit(&world->writer_turns, memory_order_relaxed);
}

struct world *world_create_shared(size_t reader_count, const struct world_limits *limits,
                                  struct store *store, const struct world_sharing *sharing,
                                  struct err *err)
{
    struct world *world = calloc(1, sizeof *world);
    size_t readers = reader_count + 1, bytes = readers * sizeof(struct reader);
    struct world_snapshot *first;

    change_kinds_check();
    if (!world) {
        err_set(err, ERR_NO_MEMORY, "no memory for a world");
        return NULL;
    }
    pthread_mutex_init(&world->mutex, NULL);
    pthread_mutex_init(&world->builds.mutex, NULL);
    pthread_mutex_init(&world->wake_mutex, NULL);
    pthread_mutex_init(&world->hold_mutex, NULL);
    timed_wait_init(&world->changed);
    world->store = store;
    world->limits = world->wanted = *limits;
    world->reader_count = readers;
    world->last = &world->first;
    world->last_move = &world->first_move;
    world->retired_last = &world->retired;
    world->readers = aligned_alloc(_Alignof(struct reader), bytes);
    world->feed = feed_create(FEED_EVENTS_MAX, err);
    world->moves = moves_create(err);
    world->ops = store ? NULL : ops_create(OPS_MAX, err);
    world->history = store ? NULL : history_list_create();
    world->builder = builder_create(world, err);
    world->follow = sharing ? follow_create(sharing, err) : NULL;
    first = world->readers && world->feed && world->moves && world->builder &&
                    ((world->ops && world->history) || store) && (world->follow || !sharing)
                ? snapshot_create(readers, err)
                : NULL;
    if (!first) {
        err_set(err, ERR_NO_MEMORY, "no memory for %zu readers", readers);
        world_free(world);
        return NULL;
    }
    memset(world->readers, 0, bytes);
    for (size_t i = 0; i < readers; i++)
        world_reader_gone(world, i);
    atomic_store(&world->published, first);
    if (pthread_create(&world->writer, NULL, writer_main, world) != 0) {
        err_set(err, ERR_INTERNAL, "the writer's thread cannot be started");
        world_free(world);
        return NULL;
    }
    return world;
}

struct world *world_create(size_t reader_count, const struct world_limits *limits,
                           struct store *store, struct err *err)
{
    return world_create_shared(reader_count, limits, store, NULL, err);
}

void world_destroy(struct world *world)
{
    for (size_t i = 0; i < world->reader_count; i++)
        world_reader_gone(world, i);
    pthread_mutex_lock(&world->mutex);
    world->is_stopping = true;
    world_signal(world);
    pthread_mutex_unlock(&world->mutex);
    pthread_join(world->writer, NULL);
    world_reclaim(world);
    CHECK(!world->retired);
    world_free(world);
}
