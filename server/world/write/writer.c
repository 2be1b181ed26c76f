/*
 * The writer's thread: takes the queued changes, makes them durable together and then visible.
 *
 *   queued changes -> draft and store, one by one -> COMMIT -> publish -> feed -> answers
 *
 * Problem: a commit waits for the disk for milliseconds, an edit takes microseconds. Approach:
 * group commit. While one commit waits, changes gather; the next takes all of them (within bounds)
 * into one transaction (group_commit.c). Nothing is published before COMMIT has returned.
 *
 * Edits are durable by their row in the log. Their tiles are written after a while without changes,
 * or when the log has many (store_materialise).
 *
 * Moves of layers (move.c) need no commit: they have a queue of their own, which takes turns with
 * the other one.
 *
 * With a shared log (follow.c) the thread waits on the log's connection, which a submitted change
 * wakes. Between its own commits it applies the entries of other nodes.
 *
 * Invariant: world->sequence is that of the published snapshot; the feed ends there.
 */
#include "world/world_data.h"

#include "base/log.h"
#include "base/timed_wait.h"
#include "base/clock.h"
#include "world/follow/follow.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum {
    POLL_FIRST_MS = 1,
    POLL_LAST_MS = 64,
    IDLE_MS = 200, /* without a change before the tiles are brought up to date */
    RETRY_MS = 2000
};
#define COMMIT_BYTES_MAX ((uint64_t)64 << 20)
/* Of samples in the log. Tiles are written when these have as many bytes as the tiles, so that the
 * log's pages are used again while edits go on; tiles are at most half of the bytes written. */
#define BEHIND_BYTES_MIN ((uint64_t)1 << 20)
#define BEHIND_BYTES_MAX ((uint64_t)64 << 20)
#define TILE_BYTES (sizeof(float) * 257 * 257)
#define BEHIND_EDITS_MAX 4096u

static void load_run(struct world *world, struct change_group *group)
{
    struct err err = {.code = ERR_OK};
    struct draft draft;

    draft_begin(&draft, world);
    if (persist_load(world, &draft, &err) == ERR_OK) {
        world->sequence = draft.sequence; /* also when every locale was deleted */
        if (draft.is_own) {
            draft.is_own = false;
            world_publish(world, draft.snapshot);
        }
        if (world->follow)
            follow_start(world, &err);
    }
    draft_end(&draft);
    group->done(group->context, &err);
    free(group);
}

/* ---- tiles of logged edits ------------------------------------------------------------------- */

static bool has_behind(const struct world *world)
{
    struct store_behind behind;

    if (!world->store || world->is_store_broken)
        return false;
    store_behind(world->store, &behind);
    return behind.edits > 0;
}

static bool is_far_behind(const struct world *world)
{
    struct store_behind behind;

    if (!world->store || world->is_store_broken)
        return false;
    store_behind(world->store, &behind);
    return behind.log_bytes > BEHIND_BYTES_MAX || behind.edits > BEHIND_EDITS_MAX ||
           (behind.log_bytes > BEHIND_BYTES_MIN && behind.log_bytes > behind.tiles * TILE_BYTES);
}

static enum err_code materialise(struct world *world)
{
    struct err err = {.code = ERR_OK};

    if (store_materialise(world->store, persist_field_of, atomic_load(&world->published), &err) ==
        ERR_OK)
        return ERR_OK;
    if (err.code == ERR_BUSY || err.code == ERR_NO_MEMORY) { /* retried later */
        log_warn("tiles are not written yet: %s", err_for_log(&err));
    } else {
        world->is_store_broken = true;
        log_error("the store takes no more changes: %s", err_for_log(&err));
    }
    return err.code;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static uint64_t bytes_of(const struct change_group *group)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < group->count; i++) {
        const struct world_change *change = &group->changes[i];

        bytes += change->layer ? change->layer->memory_bytes : 0;
        bytes += change->shell.length;
        if (change->edit.heights_m)
            bytes += sizeof(float) * change->edit.rect.cols * change->edit.rect.rows;
        bytes += polygon_edit_bytes(&change->polygons);
    }
    return bytes;
}

/*
 * The first groups of a queue, as many as one commit takes; a load is a commit of its own. Under
 * the mutex.
 */
static struct change_group *take_from(struct world *world, struct change_group **first,
                                      struct change_group ***end)
{
    struct change_group *groups = *first, *last = NULL;
    uint64_t bytes = 0;
    size_t taken = 0;

    while (*first && taken < COMMIT_GROUPS_MAX) {
        struct change_group *group = *first;

        bytes += bytes_of(group);
        if (last && (group->is_load || last->is_load || bytes > COMMIT_BYTES_MAX))
            break;
        last = group;
        *first = group->next;
        world->queued_count -= group->count;
        taken++;
    }
    if (!*first)
        *end = first;
    if (last)
        last->next = NULL;
    return last ? groups : NULL;
}

/* Moves go first, in turn with the others where both wait. Under the mutex. */
static struct change_group *take(struct world *world)
{
    world->had_moves = world->first_move && (!world->first || !world->had_moves);
    return world->had_moves ? take_from(world, &world->first_move, &world->last_move)
                            : take_from(world, &world->first, &world->last);
}

static void wait_ms(struct world *world, int ms)
{
    struct timespec until = timed_wait_until(ms * 1e-3);

    pthread_cond_timedwait(&world->changed, &world->mutex, &until);
}

/* When the writer runs its idle work. */
struct pause {
    int poll_ms;        /* while snapshots wait for readers to pass; grows */
    double behind_at_s; /* the tiles may be written then */
};

/* Milliseconds until the next idle work; -1: none is due. */
static int pause_ms(const struct world *world, const struct pause *pause)
{
    double wait_s = fmin(move_wait_s(world), builder_wait_s(world));

    if (has_behind(world))
        wait_s = fmin(wait_s, fmax(0, pause->behind_at_s - monotonic_s()));
    if (world->retired)
        wait_s = fmin(wait_s, pause->poll_ms * 1e-3);
    return isinf(wait_s) ? -1 : (int)ceil(wait_s * 1e3);
}

bool writer_has_work(const struct world *world)
{
    return world->first || world->first_move || world->leases || world->garbage ||
           world->is_stopping || world->is_poked;
}

static struct change_group *next_groups(struct world *world, const struct pause *pause,
                                        bool *is_over)
{
    int ms = pause_ms(world, pause);
    struct change_group *groups;

    if (world->follow) /* set before the thread starts its first group */
        follow_wait(world, ms);
    pthread_mutex_lock(&world->mutex);
    while (!writer_has_work(world) && ms < 0 && !world->follow)
        pthread_cond_wait(&world->changed, &world->mutex);
    if (!writer_has_work(world) && ms > 0 && !world->follow)
        wait_ms(world, ms);
    world->is_poked = false;
    world->limits = world->wanted;
    if (world->store)
        store_set_history_max(world->store, world->limits.history_bytes_max);
    groups = take(world);
    *is_over = world->is_stopping && !groups;
    pthread_mutex_unlock(&world->mutex);
    return groups;
}

static void run(struct world *world, struct change_group *groups)
{
    if (groups->is_load)
        load_run(world, groups);
    else
        group_commit_run(world, groups);
}

/* Idle work: wakes lagging readers, writes tiles of logged edits. */
static void writer_idle(struct world *world, struct pause *pause)
{
    if (world->retired) {
        world_wake(world);
        pause->poll_ms = pause->poll_ms < POLL_LAST_MS ? pause->poll_ms * 2 : POLL_LAST_MS;
    }
    if (has_behind(world) && monotonic_s() >= pause->behind_at_s && materialise(world) != ERR_OK)
        pause->behind_at_s = monotonic_s() + RETRY_MS * 1e-3;
}

void *writer_main(void *argument)
{
    struct world *world = argument;
    struct pause pause = {POLL_FIRST_MS, 0};
    bool is_over = false;

    pthread_setname_np(pthread_self(), "writer");
    while (!is_over) {
        struct change_group *groups = next_groups(world, &pause, &is_over);

        atomic_fetch_add_explicit(&world->writer_turns, 1, memory_order_relaxed);
        if (groups) {
            run(world, groups);
            pause.poll_ms = POLL_FIRST_MS;
            if (!world->had_moves)
                pause.behind_at_s = monotonic_s() + IDLE_MS * 1e-3;
            if (is_far_behind(world))
                materialise(world);
        } else {
            writer_idle(world, &pause);
        }
        if (world->follow && !is_over)
            follow_poll(world);
        if (world->follow)
            lease_poll(world, is_over);
        move_poll(world);
        builder_poll(world);
        world_reclaim(world);
    }
    if (has_behind(world))
        materialise(world);
    builder_finish(world);
    move_finish(world);
    return NULL;
}
