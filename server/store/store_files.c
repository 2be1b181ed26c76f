/*
 * meshes/: images of meshes and the polygons they were built of, in files named by their content.
 *
 * Problem: an image of hundreds of megabytes should be mapped at a start, not copied out of a
 * database; yet a COMMIT that names it must never be durable before it. Approach: the file is
 * written under a temporary name, synced, renamed, and its folder synced, before the COMMIT. Files
 * that no row names after a crash are removed at the next load, and only then: a backup may be
 * copying.
 *
 *   HASH.qota      the image. HASH is BLAKE2b-256 of its first 4 KiB, which hold its header and in
 *                  it the hash of all the rest. (mesh_content does not suffice: it omits the
 *                  header, and a mesh and the same mesh moved differ only there.)
 *   HASH.polygons  "KOTAPOLY", 3 × uint64 counts (vertices, polygons, corners), then vertices
 *                  (3 × float64), starts and corners (uint32), instances (polygon_set.h). HASH
 *                  is BLAKE2b-256 of all of it.
 *
 * An existing file is compared with the bytes to be written; a damaged one is replaced. Bytes go
 * through SQLite's VFS, so that a test's VFS sees them (store_data.h, STORE_FCNTL_*).
 */
#include "store/store_data.h"

#include "base/array_reserve.h"
#include "base/content_hash.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLYGONS_MAGIC "KOTAPOLY"
enum { POLYGONS_HEAD_BYTES = 8 + 3 * 8, IMAGE_HEAD_BYTES = 4096 };

/* SQLite's unix VFS takes the length of one write modulo 128 KiB, so a multiple of it is an error.
 */
enum { CHUNK_BYTES = 1 << 16 };

/* ---- names ---------------------------------------------------------------------------------- */

struct file_name {
    char text[STORE_PATH_MAX + 112];
};

static struct file_name file_name(const struct store *store, const uint8_t name[STORE_HASH_BYTES],
                                  const char *suffix)
{
    struct file_name out;
    int used = snprintf(out.text, sizeof out.text, "%s/meshes/", store->directory);

    for (int i = 0; i < STORE_HASH_BYTES; i++)
        used += snprintf(out.text + used, sizeof out.text - (size_t)used, "%02x", name[i]);
    snprintf(out.text + used, sizeof out.text - (size_t)used, "%s", suffix);
    return out;
}

static void image_name(const void *image, size_t length, uint8_t name[STORE_HASH_BYTES])
{
    content_hash(image, length < IMAGE_HEAD_BYTES ? length : IMAGE_HEAD_BYTES, name);
}

/* ---- durable names -------------------------------------------------------------------------- */

static bool sync_folder_of(const char *path)
{
    char folder[STORE_PATH_MAX + 128];
    char *slash;
    int fd, rc;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash == folder)
        slash++;
    if (slash)
        *slash = '\0';
    fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    rc = fsync(fd);
    close(fd);
    return rc == 0;
}

bool store_make_directory(const char *path)
{
    char part[STORE_PATH_MAX + 16];
    size_t length = strlen(path);

    for (size_t i = 1; i <= length; i++) {
        if (i < length && path[i] != '/')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0755) == 0) {
            if (!sync_folder_of(part)) {
                int why = errno;

                (void)rmdir(part); /* or the next call would find it, and not sync its name */
                errno = why;
                return false;
            }
        } else if (errno != EEXIST && errno != EISDIR) {
            return false;
        }
    }
    return true;
}

/* ---- files through the VFS ------------------------------------------------------------------ */

struct file {
    sqlite3_filename name; /* a VFS takes names only as SQLite makes them */
    sqlite3_file *of;      /* NULL: not open */
};

static int errno_code(int otherwise)
{
    return store_is_full(errno) ? SQLITE_FULL : otherwise;
}

static int file_open(struct store *store, const char *path, int flags, struct file *file)
{
    int rc = SQLITE_NOMEM;

    file->of = calloc(1, (size_t)store->vfs->szOsFile);
    file->name = sqlite3_create_filename(path, "", "", 0, NULL);
    if (file->of && file->name)
        rc = store->vfs->xOpen(store->vfs, file->name, file->of, flags | SQLITE_OPEN_SUPER_JOURNAL,
                               NULL);
    if (rc == SQLITE_OK)
        return rc;
    if (rc == SQLITE_CANTOPEN)
        rc = errno_code(rc);
    if (file->of && file->of->pMethods)
        file->of->pMethods->xClose(file->of);
    sqlite3_free_filename(file->name);
    free(file->of);
    file->of = NULL;
    return rc;
}

static void file_close(struct file *file)
{
    if (!file->of)
        return;
    file->of->pMethods->xClose(file->of);
    sqlite3_free_filename(file->name);
    free(file->of);
    file->of = NULL;
}

static int file_sync_directory(struct file *file)
{
    int rc = file->of->pMethods->xFileControl(file->of, STORE_FCNTL_SYNC_DIRECTORY, NULL);

    if (rc == SQLITE_NOTFOUND)
        rc = sync_folder_of(file->name) ? SQLITE_OK : errno_code(SQLITE_IOERR_DIR_FSYNC);
    return rc;
}

/* The file is synced; so is its new name when this returns. */
static int file_rename(struct file *file, const char *to)
{
    int rc = file->of->pMethods->xFileControl(file->of, STORE_FCNTL_RENAME, (void *)(uintptr_t)to);

    if (rc == SQLITE_NOTFOUND)
        rc = rename(file->name, to) == 0 ? SQLITE_OK : errno_code(SQLITE_IOERR);
    return rc == SQLITE_OK ? file_sync_directory(file) : rc;
}

int files_rename(struct store *store, const char *from, const char *to)
{
    struct file file;
    int rc = file_open(store, from, SQLITE_OPEN_READWRITE, &file);

    if (rc == SQLITE_OK)
        rc = file.of->pMethods->xSync(file.of, SQLITE_SYNC_NORMAL);
    if (rc == SQLITE_OK)
        rc = file_rename(&file, to);
    file_close(&file);
    return rc;
}

/* ---- a block of bytes as a file -------------------------------------------------------------- */

/* Whether the file is there and holds these bytes; then its name is made durable, too. */
static int file_holds(struct store *store, const char *path, const void *bytes, size_t length,
                      bool *holds)
{
    struct file file;
    sqlite3_int64 size = -1;
    char *chunk;
    int rc;

    *holds = false;
    if (access(path, F_OK) != 0)
        return SQLITE_OK;
    chunk = malloc(CHUNK_BYTES);
    rc = chunk ? file_open(store, path, SQLITE_OPEN_READONLY, &file) : SQLITE_NOMEM;
    if (rc != SQLITE_OK) {
        free(chunk);
        return rc;
    }
    rc = file.of->pMethods->xFileSize(file.of, &size);
    *holds = rc == SQLITE_OK && (uint64_t)size == length;
    for (size_t at = 0; *holds && at < length; at += CHUNK_BYTES) {
        size_t part = length - at < CHUNK_BYTES ? length - at : CHUNK_BYTES;

        *holds =
            file.of->pMethods->xRead(file.of, chunk, (int)part, (sqlite3_int64)at) == SQLITE_OK &&
            memcmp(chunk, (const char *)bytes + at, part) == 0;
    }
    if (*holds) /* it may have been renamed a moment ago */
        rc = file_sync_directory(&file);
    file_close(&file);
    free(chunk);
    return rc;
}

static int file_write(struct file *file, const void *bytes, size_t length)
{
    int rc = SQLITE_OK;

    for (size_t at = 0; rc == SQLITE_OK && at < length; at += CHUNK_BYTES) {
        size_t part = length - at < CHUNK_BYTES ? length - at : CHUNK_BYTES;

        rc = file->of->pMethods->xWrite(file->of, (const char *)bytes + at, (int)part,
                                        (sqlite3_int64)at);
    }
    return rc == SQLITE_IOERR_WRITE ? errno_code(rc) : rc;
}

static int file_save(struct store *store, const char *path, const void *bytes, size_t length)
{
    char temporary[STORE_PATH_MAX + 64];
    struct file file;
    bool holds;
    int rc = file_holds(store, path, bytes, length, &holds);

    if (rc != SQLITE_OK || holds)
        return rc;
    snprintf(temporary, sizeof temporary, "%s/meshes/%u.part", store->directory,
             atomic_fetch_add(&store->temporary, 1));
    rc = file_open(store, temporary, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &file);
    if (rc != SQLITE_OK)
        return rc;
    rc = file.of->pMethods->xTruncate(file.of, 0);
    if (rc == SQLITE_OK)
        rc = file_write(&file, bytes, length);
    if (rc == SQLITE_OK)
        rc = file.of->pMethods->xSync(file.of, SQLITE_SYNC_NORMAL);
    if (rc == SQLITE_OK)
        rc = file_rename(&file, path);
    file_close(&file);
    if (rc != SQLITE_OK)
        unlink(temporary);
    return rc;
}

/* ---- polygons ------------------------------------------------------------------------------- */

static void *polygons_encode(const struct polygon_set *set, size_t *length)
{
    uint64_t counts[3] = {set->vertex_count, set->polygon_count, set->starts[set->polygon_count]};
    size_t parts[3] = {counts[0] * sizeof *set->vertices, (counts[1] + 1) * sizeof *set->starts,
                       counts[2] * sizeof *set->corners};
    size_t rest = polygon_instances_bytes(set);
    char *bytes = malloc(POLYGONS_HEAD_BYTES + parts[0] + parts[1] + parts[2] + rest), *to = bytes;

    if (!bytes)
        return NULL;
    to = (char *)memcpy(to, POLYGONS_MAGIC, 8) + 8;
    to = (char *)memcpy(to, counts, sizeof counts) + sizeof counts;
    to = (char *)memcpy(to, set->vertices, parts[0]) + parts[0];
    to = (char *)memcpy(to, set->starts, parts[1]) + parts[1];
    to = (char *)memcpy(to, set->corners, parts[2]) + parts[2];
    polygon_instances_put(set, to);
    *length = (size_t)(to - bytes) + rest;
    return bytes;
}

/* The hash matches: an error here is a bug of the writer, not damage. */
static bool polygons_decode(const char *bytes, size_t length, struct polygon_set *out,
                            struct err *err)
{
    const uint64_t most = UINT32_MAX;
    uint64_t counts[3];
    size_t parts[3];

    if (length < POLYGONS_HEAD_BYTES || memcmp(bytes, POLYGONS_MAGIC, 8) != 0)
        return false;
    memcpy(counts, bytes + 8, sizeof counts);
    if (counts[0] > most || counts[1] >= most || counts[2] > most)
        return false;
    parts[0] = counts[0] * sizeof *out->vertices;
    parts[1] = (counts[1] + 1) * sizeof *out->starts;
    parts[2] = counts[2] * sizeof *out->corners;
    if (length < POLYGONS_HEAD_BYTES + parts[0] + parts[1] + parts[2] ||
        polygon_set_allocate(counts[0], counts[1], counts[2], out, err))
        return false;
    bytes += POLYGONS_HEAD_BYTES;
    memcpy(out->vertices, bytes, parts[0]);
    memcpy(out->starts, bytes + parts[0], parts[1]);
    memcpy(out->corners, bytes + parts[0] + parts[1], parts[2]);
    bytes += parts[0] + parts[1] + parts[2];
    if (polygon_instances_take(bytes, length - POLYGONS_HEAD_BYTES - parts[0] - parts[1] - parts[2],
                               out, err))
        return true;
    polygon_set_free(out);
    return false;
}

/* ---- meshes --------------------------------------------------------------------------------- */

static int save_polygons(struct store *store, const struct polygon_set *set,
                         uint8_t name[STORE_HASH_BYTES])
{
    size_t length;
    void *bytes = polygons_encode(set, &length);
    int rc;

    if (!bytes)
        return SQLITE_NOMEM;
    content_hash(bytes, length, name);
    rc = file_save(store, file_name(store, name, ".polygons").text, bytes, length);
    free(bytes);
    return rc;
}

enum err_code files_save_mesh(struct store *store, const struct mesh *mesh,
                              const struct polygon_set *polygons,
                              uint8_t mesh_name[STORE_HASH_BYTES],
                              uint8_t polygons_name[STORE_HASH_BYTES], struct err *err)
{
    size_t length;
    const void *image = mesh_image(mesh, &length);
    int rc;

    image_name(image, length, mesh_name);
    rc = file_save(store, file_name(store, mesh_name, ".qota").text, image, length);
    if (rc == SQLITE_OK)
        rc = save_polygons(store, polygons, polygons_name);
    if (rc == SQLITE_OK)
        return ERR_OK;
    err_set(err, store_code(rc, true), "meshes: cannot write a mesh: %s (SQLite %d)",
            sqlite3_errstr(rc), rc);
    return err_log_only(err, "%s/meshes", store->directory);
}

enum err_code store_save_mesh(struct store *store, const struct mesh *mesh,
                              const struct polygon_set *polygons, struct err *err)
{
    uint8_t names[2][STORE_HASH_BYTES];

    if (store->is_read_only)
        return err_set(err, ERR_READ_ONLY, "%.200s is open for reading only", store->path);
    return files_save_mesh(store, mesh, polygons, names[0], names[1], err);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct mapping {
    void *bytes;
    size_t length;
};

static void unmap(void *context)
{
    struct mapping *mapping = context;

    munmap(mapping->bytes, mapping->length);
    free(mapping);
}

/* Want of memory or of descriptors is no damage: the file may be as good as ever. */
static enum err_code code_of(int error)
{
    bool is_want = error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN;

    return is_want ? ERR_NO_MEMORY : ERR_DAMAGED;
}

static struct mapping *map(const char *path, struct err *err)
{
    struct mapping *mapping = calloc(1, sizeof *mapping);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat_of;

    if (mapping && fd >= 0 && fstat(fd, &stat_of) == 0) {
        mapping->length = (size_t)stat_of.st_size;
        errno = ENODATA; /* an empty file cannot be mapped */
        mapping->bytes = mapping->length ? mmap(NULL, mapping->length, PROT_READ, MAP_SHARED, fd, 0)
                                         : MAP_FAILED;
    }
    if (!mapping || !mapping->bytes || mapping->bytes == MAP_FAILED) {
        err_set(err, mapping ? code_of(errno) : ERR_NO_MEMORY, "file %.100s: %s",
                strrchr(path, '/') + 1, strerror(errno));
        free(mapping);
        mapping = NULL;
    }
    if (fd >= 0)
        close(fd);
    return mapping;
}

static enum err_code damaged_file(const char *path, const char *what, struct err *err)
{
    return err_set(err, ERR_DAMAGED, "file %.100s: %.120s", strrchr(path, '/') + 1, what);
}

enum err_code files_load_mesh(struct store *store, const uint8_t name[STORE_HASH_BYTES],
                              struct mesh **out, struct err *err)
{
    struct file_name path = file_name(store, name, ".qota");
    struct mapping *mapping = map(path.text, err);
    uint8_t is[STORE_HASH_BYTES];
    struct err reason;

    if (!mapping)
        return err->code;
    image_name(mapping->bytes, mapping->length, is);
    if (memcmp(is, name, sizeof is) != 0) {
        unmap(mapping);
        return damaged_file(path.text, "its content is not the one it is named by", err);
    }
    *out = mesh_open_by(store->crew, mapping->bytes, mapping->length, unmap, mapping, &reason);
    if (*out)
        return ERR_OK;
    unmap(mapping);
    if (reason.code != ERR_BAD_INPUT)
        return err_set(err, reason.code, "%s", reason.msg);
    return damaged_file(path.text, reason.msg, err);
}

enum err_code files_load_polygons(struct store *store, const uint8_t name[STORE_HASH_BYTES],
                                  struct polygon_set *out, struct err *err)
{
    struct file_name path = file_name(store, name, ".polygons");
    struct mapping *mapping = map(path.text, err);
    uint8_t is[STORE_HASH_BYTES];

    memset(out, 0, sizeof *out);
    if (!mapping)
        return err->code;
    content_hash(mapping->bytes, mapping->length, is);
    damaged_file(path.text, "its content is not the one it is named by", err);
    if (memcmp(is, name, sizeof is) == 0 &&
        polygons_decode(mapping->bytes, mapping->length, out, err))
        err->code = ERR_OK;
    unmap(mapping);
    return err->code;
}

/* ---- unreferenced files ---------------------------------------------------------------------- */

static bool names_file(const struct store *store, const struct row_cache_layer *layer,
                       const char *file)
{
    return layer->kind == STORE_MESH &&
           (strcmp(strrchr(file_name(store, layer->mesh, ".qota").text, '/') + 1, file) == 0 ||
            strcmp(strrchr(file_name(store, layer->polygons, ".polygons").text, '/') + 1, file) ==
                0);
}

static bool is_named(const struct store *store, const char *file)
{
    const struct row_cache *cache = &store->cache;

    for (size_t i = 0; i < cache->locale_count; i++)
        for (const struct row_cache_layer *layer = cache->locales[i]->first; layer;
             layer = layer->next)
            if (names_file(store, layer, file))
                return true;
    for (size_t i = 0; i < cache->pin_layer_count; i++)
        if (names_file(store, &cache->pin_layers[i].layer, file))
            return true;
    return false;
}

#define OLD_KEPT_US ((uint64_t)3600 * 1000000) /* for a copy of meshes/ that is under way */

static const char *suffix_of(const struct old_file *file)
{
    return file->is_image ? ".qota" : ".polygons";
}

static void note_old(struct store *store, const uint8_t name[STORE_HASH_BYTES], bool is_image)
{
    struct old_file file = {.since_us = monotonic_us(), .is_image = is_image};

    memcpy(file.name, name, sizeof file.name);
    if (!array_reserve((void **)&store->old_files, &store->old_file_room, store->old_file_count + 1,
                       sizeof file))
        return; /* the next load removes it */
    store->old_files[store->old_file_count++] = file;
}

void files_note_old(struct store *store, const struct row_cache_layer *layer)
{
    note_old(store, layer->mesh, true);
    note_old(store, layer->polygons, false);
}

void files_sweep_old(struct store *store)
{
    uint64_t now_us = monotonic_us();
    size_t done = 0;

    while (done < store->old_file_count &&
           now_us - store->old_files[done].since_us >= OLD_KEPT_US) {
        const struct old_file *file = &store->old_files[done++];
        struct file_name path = file_name(store, file->name, suffix_of(file));

        if (!is_named(store, strrchr(path.text, '/') + 1))
            unlink(path.text);
    }
    store->old_file_count -= done;
    memmove(store->old_files, store->old_files + done,
            store->old_file_count * sizeof *store->old_files);
}

void files_sweep(struct store *store)
{
    static const char *const ours[] = {".qota", ".polygons", ".part"};
    char path[STORE_PATH_MAX + 16];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof path, "%s/meshes", store->directory);
    folder = opendir(path);
    while (folder && (entry = readdir(folder)) != NULL)
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
            const char *suffix = strrchr(entry->d_name, '.');

            if (suffix && strcmp(suffix, ours[i]) == 0 && !is_named(store, entry->d_name))
                unlinkat(dirfd(folder), entry->d_name, 0);
        }
    if (folder)
        closedir(folder);
}
