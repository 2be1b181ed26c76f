#include "support/fault_vfs.h"

#include "store/store_data.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, FILES_MAX = 512, RENAMES_MAX = 64 };

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "fault_vfs: %s\n", what);
    abort();
}

/* ---- state: guarded by the mutex ------------------------------------------------------------- */

struct sector {
    uint64_t at; /* number + 1; 0: none */
    uint8_t was[SECTOR];
};

struct tracked {
    char path[512]; /* "": free */
    sqlite3_int64 synced_bytes;
    struct sector *dirty; /* a hash table */
    size_t count, room;
};

struct renamed {
    char from[512], to[512];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tracked files[FILES_MAX];
static struct renamed renames[RENAMES_MAX];
static size_t rename_count;
static struct random *chance;
static enum fault armed;
static uint64_t countdown, calls;
static bool has_fired;

/* Counts a call; true: the fault happens now, or goes on. */
static bool happens(enum fault fault)
{
    if (fault == FAULT_CUT)
        calls++;
    if (armed != fault)
        return false;
    if (has_fired)
        return fault == FAULT_CUT || fault == FAULT_FULL;
    if (--countdown > 0)
        return false;
    has_fired = true;
    return true;
}

/* ---- what was not synced --------------------------------------------------------------------- */

static struct tracked *track(const char *path)
{
    struct tracked *place = NULL;

    for (size_t i = 0; i < FILES_MAX; i++) {
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
        if (!files[i].path[0] && !place)
            place = &files[i];
    }
    must(place != NULL && strlen(path) < sizeof place->path, "too many files");
    snprintf(place->path, sizeof place->path, "%s", path);
    return place;
}

static void forget_dirty(struct tracked *file)
{
    if (file->count > 0)
        memset(file->dirty, 0, file->room * sizeof *file->dirty);
    file->count = 0;
}

static void forget(struct tracked *file)
{
    free(file->dirty);
    memset(file, 0, sizeof *file);
}

static struct sector *find(struct tracked *file, uint64_t number)
{
    size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (file->room - 1);

    while (file->dirty[i].at != 0 && file->dirty[i].at != number + 1)
        i = (i + 1) & (file->room - 1);
    return &file->dirty[i];
}

static void grow(struct tracked *file)
{
    struct sector *old = file->dirty;
    size_t room = file->room;

    file->room = room ? 2 * room : 256;
    file->dirty = calloc(file->room, sizeof *file->dirty);
    must(file->dirty != NULL, "no memory");
    for (size_t i = 0; i < room; i++)
        if (old[i].at != 0)
            *find(file, old[i].at - 1) = old[i];
    free(old);
}

/* Remembers what the sectors of a range hold, unless they have been changed since the sync. */
static void remember(struct tracked *file, sqlite3_file *real, sqlite3_int64 from,
                     sqlite3_int64 end)
{
    for (uint64_t number = (uint64_t)from / SECTOR; (sqlite3_int64)(number * SECTOR) < end;
         number++) {
        struct sector *sector;

        if (2 * (file->count + 1) > file->room)
            grow(file);
        sector = find(file, number);
        if (sector->at != 0)
            continue;
        sector->at = number + 1;
        file->count++;
        /* beyond the end it reads zeros */
        real->pMethods->xRead(real, sector->was, SECTOR, (sqlite3_int64)(number * SECTOR));
    }
}

/* Each sector that is not synced as it was, or as it is. */
static void tear(struct tracked *file)
{
    static const uint32_t keep_of_4[] = {0, 2, 4}; /* all lost, torn, all there */
    uint32_t keep = keep_of_4[random_below(chance, 3)];
    struct stat is;
    FILE *stream;

    if (stat(file->path, &is) != 0 || (file->count == 0 && is.st_size == file->synced_bytes))
        return;
    if (random_below(chance, 4) >= keep && truncate(file->path, (off_t)file->synced_bytes) != 0)
        must(false, "truncate");
    must(stat(file->path, &is) == 0, "stat");
    stream = fopen(file->path, "r+b");
    must(stream != NULL, "open");
    for (size_t i = 0; i < file->room; i++) {
        uint64_t at = (file->dirty[i].at - 1) * SECTOR;
        size_t part;

        if (file->dirty[i].at == 0 || at >= (uint64_t)is.st_size || random_below(chance, 4) < keep)
            continue;
        part = (uint64_t)is.st_size - at < SECTOR ? (size_t)((uint64_t)is.st_size - at) : SECTOR;
        must(fseek(stream, (long)at, SEEK_SET) == 0 &&
                 fwrite(file->dirty[i].was, 1, part, stream) == part,
             "write");
    }
    must(fclose(stream) == 0, "close");
}

void fault_vfs_crash(void)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < FILES_MAX; i++)
        if (files[i].path[0])
            tear(&files[i]);
    while (rename_count > 0) {
        const struct renamed *r = &renames[--rename_count];

        if (random_below(chance, 2) == 0)
            must(rename(r->to, r->from) == 0, "rename");
    }
    for (size_t i = 0; i < FILES_MAX; i++)
        forget(&files[i]);
    armed = FAULT_NONE;
    pthread_mutex_unlock(&mutex);
}

/* ---- files ---------------------------------------------------------------------------------- */

struct file {
    sqlite3_file base;
    struct tracked *tracked; /* NULL: shared memory and temporary files are not the disk */
    sqlite3_file *real;      /* behind this */
};

static int file_close(sqlite3_file *of)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xClose(f->real);
}

static int file_read(sqlite3_file *of, void *bytes, int count, sqlite3_int64 at)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xRead(f->real, bytes, count, at);
}

static int file_write(sqlite3_file *of, const void *bytes, int count, sqlite3_int64 at)
{
    struct file *f = (struct file *)of;
    int rc = SQLITE_OK, written;

    pthread_mutex_lock(&mutex);
    if (armed == FAULT_CUT && has_fired)
        rc = SQLITE_IOERR_WRITE;
    else if (happens(FAULT_FULL))
        rc = SQLITE_FULL;
    if (rc == SQLITE_OK) {
        remember(f->tracked, f->real, at, at + count);
        if (happens(FAULT_CUT))
            rc = SQLITE_IOERR_WRITE;
        if (happens(FAULT_SHORT)) {
            count /= 2;
            rc = SQLITE_IOERR_WRITE;
        }
        written = f->real->pMethods->xWrite(f->real, bytes, count, at);
        if (rc == SQLITE_OK)
            rc = written;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int file_truncate(sqlite3_file *of, sqlite3_int64 size)
{
    struct file *f = (struct file *)of;
    sqlite3_int64 is = 0;
    int rc = SQLITE_IOERR_TRUNCATE;

    pthread_mutex_lock(&mutex);
    if (!happens(FAULT_CUT)) {
        f->real->pMethods->xFileSize(f->real, &is);
        remember(f->tracked, f->real, size, is);
        rc = f->real->pMethods->xTruncate(f->real, size);
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int file_sync(sqlite3_file *of, int flags)
{
    struct file *f = (struct file *)of;
    int rc = SQLITE_OK;

    (void)flags;
    pthread_mutex_lock(&mutex);
    if (happens(FAULT_CUT)) {
        rc = SQLITE_IOERR_FSYNC;
    } else if (happens(FAULT_SYNC)) {
        rc = SQLITE_IOERR_FSYNC; /* and a later one says nothing of what this one lost */
        tear(f->tracked);
    }
    if (rc == SQLITE_OK || armed == FAULT_SYNC) {
        forget_dirty(f->tracked);
        f->real->pMethods->xFileSize(f->real, &f->tracked->synced_bytes);
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int file_size(sqlite3_file *of, sqlite3_int64 *size)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xFileSize(f->real, size);
}

static int file_lock(sqlite3_file *of, int level)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xLock(f->real, level);
}

static int file_unlock(sqlite3_file *of, int level)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xUnlock(f->real, level);
}

static int file_check_lock(sqlite3_file *of, int *out)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xCheckReservedLock(f->real, out);
}

static int file_rename(struct file *f, const char *to)
{
    struct renamed *r = &renames[rename_count];

    if (happens(FAULT_CUT))
        return SQLITE_IOERR;
    must(rename_count < RENAMES_MAX, "too many renames");
    if (rename(f->tracked->path, to) != 0)
        return SQLITE_IOERR;
    snprintf(r->from, sizeof r->from, "%s", f->tracked->path);
    snprintf(r->to, sizeof r->to, "%s", to);
    rename_count++;
    snprintf(f->tracked->path, sizeof f->tracked->path, "%s", to);
    return SQLITE_OK;
}

static int file_control(sqlite3_file *of, int what, void *argument)
{
    struct file *f = (struct file *)of;
    int rc = SQLITE_OK;

    if (what != STORE_FCNTL_RENAME && what != STORE_FCNTL_SYNC_DIRECTORY)
        return f->real->pMethods->xFileControl(f->real, what, argument);
    pthread_mutex_lock(&mutex);
    if (what == STORE_FCNTL_RENAME)
        rc = file_rename(f, argument);
    else if (happens(FAULT_CUT))
        rc = SQLITE_IOERR_DIR_FSYNC;
    else
        rename_count = 0;
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int file_sector_size(sqlite3_file *of)
{
    (void)of;
    return SECTOR;
}

static int file_characteristics(sqlite3_file *of)
{
    (void)of;
    return 0; /* no promise of power-safe overwrite or atomic sectors */
}

static int file_shm_map(sqlite3_file *of, int page, int bytes, int extend, void volatile **out)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xShmMap(f->real, page, bytes, extend, out);
}

static int file_shm_lock(sqlite3_file *of, int offset, int count, int flags)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xShmLock(f->real, offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *of)
{
    struct file *f = (struct file *)of;

    f->real->pMethods->xShmBarrier(f->real);
}

static int file_shm_unmap(sqlite3_file *of, int remove_it)
{
    struct file *f = (struct file *)of;

    return f->real->pMethods->xShmUnmap(f->real, remove_it);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* no xFetch: reads see what was written */
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- the VFS -------------------------------------------------------------------------------- */

static sqlite3_vfs vfs, *real_vfs;

static int vfs_open(sqlite3_vfs *of, sqlite3_filename name, sqlite3_file *out, int flags,
                    int *flags_out)
{
    struct file *f = (struct file *)out;
    int rc;

    (void)of;
    out->pMethods = NULL;
    if (!name) /* a temporary file is not the disk */
        return real_vfs->xOpen(real_vfs, name, out, flags, flags_out);
    f->real = (sqlite3_file *)(void *)(f + 1);
    rc = real_vfs->xOpen(real_vfs, name, f->real, flags, flags_out);
    if (rc != SQLITE_OK)
        return rc;
    pthread_mutex_lock(&mutex);
    f->tracked = track(name);
    if (f->tracked->count == 0)
        f->real->pMethods->xFileSize(f->real, &f->tracked->synced_bytes);
    pthread_mutex_unlock(&mutex);
    out->pMethods = &methods;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *of, const char *name, int is_synced)
{
    int rc = SQLITE_IOERR_DELETE;

    (void)of;
    pthread_mutex_lock(&mutex);
    if (!happens(FAULT_CUT)) {
        forget(track(name));
        rc = real_vfs->xDelete(real_vfs, name, is_synced);
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

void fault_vfs_reset(struct random *random)
{
    pthread_mutex_lock(&mutex);
    if (!real_vfs) {
        real_vfs = sqlite3_vfs_find(NULL);
        vfs = *real_vfs;
        vfs.pNext = NULL;
        vfs.zName = FAULT_VFS;
        vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
        vfs.xOpen = vfs_open;
        vfs.xDelete = vfs_delete;
        must(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK, "register");
    }
    for (size_t i = 0; i < FILES_MAX; i++)
        forget(&files[i]);
    rename_count = 0;
    chance = random;
    armed = FAULT_NONE;
    has_fired = false;
    calls = 0;
    pthread_mutex_unlock(&mutex);
}

void fault_vfs_arm(enum fault fault, uint64_t count)
{
    pthread_mutex_lock(&mutex);
    armed = fault;
    countdown = count;
    has_fired = false;
    pthread_mutex_unlock(&mutex);
}

bool fault_vfs_has_fired(void)
{
    bool fired;

    pthread_mutex_lock(&mutex);
    fired = has_fired;
    pthread_mutex_unlock(&mutex);
    return fired;
}

uint64_t fault_vfs_calls(void)
{
    uint64_t count;

    pthread_mutex_lock(&mutex);
    count = calls;
    pthread_mutex_unlock(&mutex);
    return count;
}
