/*
 * The WAL: when it is copied into the database, and the limits when it cannot be.
 *
 * Problem: a checkpoint writes and syncs two files, which no edit should wait for; but a WAL that
 * is not reset grows for ever, and it is reset only when all of it is in the database, no reader
 * uses it, and the next write begins. Approach, in three steps:
 *
 *   4 MiB, or half a second of quiet   a thread with a connection of its own checkpoints PASSIVE:
 *                                      no transaction waits for it, nor it for one
 *   soft limit (a quarter of the cap,  writers that never leave a gap: before its next transaction
 *   at most 64 MiB)                    the writer itself checkpoints and resets
 *   wal_bytes_max                      a reader (a backup) is in the way: the transaction is
 *                                      refused with ERR_BUSY until it has gone
 *
 * Sizes are those of the frames in use, as the last commit left them; the file may be larger, since
 * it is overwritten from its beginning (and cut to journal_size_limit then). `running` is held
 * during a checkpoint, so that the writer does not take the thread for a reader in its way.
 */
#include "store/store_data.h"

#include "base/timed_wait.h"

#include <errno.h>

enum { FRAME_BYTES = STORE_PAGE_BYTES + 24, DUE_FRAMES = (4 << 20) / FRAME_BYTES, QUIET_MS = 500 };

static int on_commit(void *context, sqlite3 *db, const char *name, int frames)
{
    struct store *store = context;

    (void)db;
    (void)name;
    atomic_store(&store->wal_frames, (uint64_t)frames);
    return SQLITE_OK;
}

static uint64_t soft_frames(const struct store *store)
{
    uint64_t quarter = store->wal_bytes_max / 4, most = UINT64_C(64) << 20;

    return (quarter < most ? quarter : most) / FRAME_BYTES;
}

static void count(struct store *store, bool is_blocked)
{
    pthread_mutex_lock(&store->stats_mutex);
    store->stats.checkpoints++;
    store->stats.checkpoints_blocked += is_blocked;
    pthread_mutex_unlock(&store->stats_mutex);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void checkpoint_passive(struct store *store, sqlite3 *db)
{
    int frames = 0, copied = 0, rc;
    struct err err;

    if (store_has_failed(store)) /* the WAL is for the recovery that follows */
        return;
    pthread_mutex_lock(&store->checkpointer.running);
    rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
    pthread_mutex_unlock(&store->checkpointer.running);
    if (rc == SQLITE_OK && frames >= 0)
        count(store, copied < frames);
    else if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_NOMEM) {
        store_sqlite_error(store, db, rc, true, "cannot checkpoint", &err);
        store_poison(store, &err);
    }
}

/* With the mutex: until there are many frames, or some and no more commits. False: the end. */
static bool wait_until_due(struct store *store)
{
    struct checkpointer *c = &store->checkpointer;
    uint64_t commits = c->commits_done;

    while (!c->is_ending && c->commits == commits)
        pthread_cond_wait(&c->wake, &c->mutex);
    while (!c->is_ending && !c->is_due && commits != c->commits) {
        struct timespec until = timed_wait_until(QUIET_MS * 1e-3);

        commits = c->commits;
        while (!c->is_ending && !c->is_due &&
               pthread_cond_timedwait(&c->wake, &c->mutex, &until) != ETIMEDOUT)
            ;
    }
    c->is_due = false;
    c->commits_done = c->commits;
    c->frames_done = atomic_load(&store->wal_frames);
    return !c->is_ending;
}

static void checkpoint_when_due(struct store *store, sqlite3 *db)
{
    struct checkpointer *c = &store->checkpointer;

    pthread_mutex_lock(&c->mutex);
    while (wait_until_due(store)) {
        pthread_mutex_unlock(&c->mutex);
        checkpoint_passive(store, db);
        pthread_mutex_lock(&c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
}

static void *run(void *context)
{
    struct store *store = context;

    checkpoint_when_due(store, store->checkpointer.db);
    return NULL;
}

/* The connection is opened here: on the thread its first read of the schema, at any moment, would
 * be a reader in the writer's way. */
enum err_code checkpointer_start(struct store *store, struct err *err)
{
    struct checkpointer *c = &store->checkpointer;
    int rc = store_connect(store, store->path, false, &c->db);

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c->db,
                          store->sync == STORE_SYNC_FULL ? "PRAGMA synchronous=FULL"
                                                         : "PRAGMA synchronous=NORMAL",
                          NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return store_sqlite_error(store, c->db, rc, false, "cannot be opened twice", err);
    sqlite3_wal_hook(store->db, on_commit, store);
    if (pthread_create(&c->thread, NULL, run, store) != 0)
        return err_set(err, ERR_NO_MEMORY, "no thread for checkpoints");
    c->is_running = true;
    return ERR_OK;
}

void checkpointer_stop(struct store *store)
{
    struct checkpointer *c = &store->checkpointer;

    if (c->is_running) {
        pthread_mutex_lock(&c->mutex);
        c->is_ending = true;
        pthread_cond_signal(&c->wake);
        pthread_mutex_unlock(&c->mutex);
        pthread_join(c->thread, NULL);
        c->is_running = false;
    }
    sqlite3_close(c->db); /* not the last connection: the writer's is closed after it */
    c->db = NULL;
}

/* ---- the writer ----------------------------------------------------------------------------- */

void checkpointer_notify(struct store *store)
{
    struct checkpointer *c = &store->checkpointer;
    uint64_t frames = atomic_load(&store->wal_frames);
    bool is_first;

    pthread_mutex_lock(&c->mutex);
    is_first = c->commits++ == c->commits_done; /* else the thread checks by itself */
    if (frames < c->frames_done)
        c->frames_done = 0; /* the WAL was reset */
    c->is_due |= frames - c->frames_done >= DUE_FRAMES;
    if (is_first || c->is_due)
        pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->mutex);
}

enum err_code checkpointer_make_room(struct store *store, struct err *err)
{
    uint64_t frames = atomic_load(&store->wal_frames), bytes = frames * FRAME_BYTES;
    uint64_t soft = soft_frames(store);
    bool is_full = bytes > store->wal_bytes_max;
    int rc;

    if (frames < soft)
        return ERR_OK;
    /* with a reader in the way, again when there is more to copy */
    if (!is_full && store->wal_blocked_at != 0 && frames >= store->wal_blocked_at &&
        frames - store->wal_blocked_at < soft / 4)
        return ERR_OK;
    sqlite3_busy_timeout(store->db, 0);
    pthread_mutex_lock(&store->checkpointer.running);
    rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    pthread_mutex_unlock(&store->checkpointer.running);
    sqlite3_busy_timeout(store->db, 2000);
    if (rc == SQLITE_OK) {
        store->wal_blocked_at = 0;
        atomic_store(&store->wal_frames, 0);
        count(store, false);
        return ERR_OK;
    }
    if ((rc & 0xff) != SQLITE_BUSY)
        return store_write_error(store, rc, "cannot checkpoint", err);
    store->wal_blocked_at = frames;
    count(store, true);
    if (!is_full)
        return ERR_OK;
    return err_set(err, ERR_BUSY,
                   "%.160s-wal has %llu bytes of at most %llu, and a reader (a backup?) keeps it",
                   store->path, (unsigned long long)bytes,
                   (unsigned long long)store->wal_bytes_max);
}
