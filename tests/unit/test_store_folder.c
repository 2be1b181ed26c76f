/*
 * The data folder: new names in it are durable, one that cannot be written is refused at the start,
 * and its path may have any characters.
 *
 * This program has its own mkdir, rename and fsync before libc's, which write down what was called,
 * in order. A name is durable when the next call after it is an fsync of the folder that has it.
 */
#include "store/store.h"

#include "support/store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- what was called ------------------------------------------------------------------------ */

enum event_kind { NAMED, SYNCED };

static struct event {
    enum event_kind kind;
    char folder[PATH_MAX]; /* that has the name; that was synced */
} events[256];
static size_t event_count;
static int syncs_until_fault; /* of folders; the last of them fails; 0: none does */

static void note(enum event_kind kind, const char *folder, size_t length)
{
    struct event *event = &events[event_count++];

    assert_true(event_count <= sizeof events / sizeof *events);
    event->kind = kind;
    snprintf(event->folder, sizeof event->folder, "%.*s", (int)length, folder);
}

static void note_name(const char *path)
{
    note(NAMED, path, (size_t)(strrchr(path, '/') - path));
}

int mkdir(const char *path, mode_t mode)
{
    int rc = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

    if (rc == 0)
        note_name(path);
    return rc;
}

int rename(const char *from, const char *to)
{
    int rc = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);

    if (rc == 0)
        note_name(to);
    return rc;
}

int fsync(int fd)
{
    char link[64], folder[PATH_MAX];
    struct stat what;
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, folder, sizeof folder - 1);
    if (length > 0 && fstat(fd, &what) == 0 && S_ISDIR(what.st_mode)) {
        note(SYNCED, folder, (size_t)length);
        if (syncs_until_fault > 0 && --syncs_until_fault == 0) {
            errno = EIO;
            return -1;
        }
    }
    return (int)syscall(SYS_fsync, fd);
}

/* Each new name is followed by an fsync of its folder; returns how many there were. */
static size_t names_are_durable(void)
{
    size_t names = 0;

    for (size_t i = 0; i < event_count; i++) {
        if (events[i].kind != NAMED)
            continue;
        names++;
        assert_true(i + 1 < event_count);
        assert_int_equal(events[i + 1].kind, SYNCED);
        assert_string_equal(events[i + 1].folder, events[i].folder);
    }
    event_count = 0;
    return names;
}

static void new_names_are_durable(void **state)
{
    struct store_options options = {0};
    struct polygon_set polygons;
    struct mesh *mesh = store_test_mesh(1, &polygons);
    char base[256], folder[300], meshes[320];
    struct store *store;
    struct err err;

    (void)state;
    store_folder_make(base);
    snprintf(folder, sizeof folder, "%s/a/data", base);
    snprintf(meshes, sizeof meshes, "%s/meshes", folder);
    options.directory = folder;
    event_count = 0;
    store = store_open(&options, &err);
    assert_non_null(store);
    assert_int_equal(names_are_durable(), 4); /* a, data, meshes, kota.db */
    store_must(store_save_mesh(store, mesh, &polygons, &err), &err);
    assert_int_equal(names_are_durable(), 2); /* the image and the polygons */
    /* the same again: another process may have named it a moment ago */
    store_must(store_save_mesh(store, mesh, &polygons, &err), &err);
    assert_int_equal(event_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(events[i].kind, SYNCED);
        assert_string_equal(events[i].folder, meshes);
    }
    store_close(store);
    store_folder_remove(base);
    mesh_unref(mesh);
    polygon_set_free(&polygons);
}

static void a_folder_whose_name_is_not_durable_is_refused(void **state)
{
    struct store_options options = {0};
    char base[256], folder[300];
    struct err err;

    (void)state;
    options.directory = folder;
    for (int made = 1; made <= 3; made++) {
        static const char *const names[] = {"a", "a/data", "a/data/meshes"};
        char refused[320];

        store_folder_make(base);
        snprintf(folder, sizeof folder, "%s/a/data", base);
        event_count = 0;
        syncs_until_fault = made;
        if (store_open(&options, &err))
            fail_msg("opened, although folder %d of 3 is not durable", made);
        assert_int_equal(err.code, ERR_BAD_INPUT);
        assert_non_null(strstr(err.msg, "cannot be made: Input/output error"));
        assert_int_equal(syncs_until_fault, 0);
        snprintf(refused, sizeof refused, "%s/%s", base, names[made - 1]);
        assert_int_equal(access(refused, F_OK), -1); /* the next start makes it again */
        store_folder_remove(base);
    }
    event_count = 0;
}

/* ---- what cannot be written ----------------------------------------------------------------- */

enum { SOMEBODY = 65534 };

static void refused(const char *folder, const char *path)
{
    struct store_options options = {.directory = folder};
    struct err err;
    struct store *store = store_open(&options, &err);

    if (store)
        fail_msg("%s may not be written, and was opened", path);
    assert_int_equal(err.code, ERR_BAD_INPUT);
    if (!strstr(err.msg, path) || !strstr(err.msg, "cannot be written"))
        fail_msg("\"%s\" does not say that %s cannot be written", err.msg, path);
}

static void what_cannot_be_written_is_refused(void **state)
{
    static const char *const names[] = {"", "/meshes", "/kota.db"};
    char folder[256], path[300];
    uid_t me = geteuid();

    (void)state;
    store_folder_make(folder);
    /* who is root may write everywhere: be somebody else */
    if (me == 0 && (chmod(folder, 0755) || chown(folder, SOMEBODY, (gid_t)-1) || seteuid(SOMEBODY)))
        skip();
    store_close(store_must_open(folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool is_file = strchr(names[i], '.') != NULL;

        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        assert_int_equal(chmod(path, is_file ? 0444 : 0555), 0);
        refused(folder, path);
        assert_int_equal(chmod(path, is_file ? 0644 : 0755), 0);
    }
    /* a log that an owner of another name left */
    snprintf(path, sizeof path, "%s/kota.db-wal", folder);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0444));
    refused(folder, "kota.db-wal");
    assert_int_equal(unlink(path), 0);
    store_close(store_must_open(folder));
    assert_int_equal(seteuid(me), 0);
    store_folder_remove(folder);
}

/* ---- any path ------------------------------------------------------------------------------- */

static void a_path_may_have_any_characters(void **state)
{
    static const char *const names[] = {"a%41b",    "a?mode=memory", "a#b",  "a b",
                                        "\xc3\xa4", "file:x",        "a&b=c"};
    char base[256], folder[300];

    (void)state;
    store_folder_make(base);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int slashes = 1; slashes <= 2; slashes++) {
            struct store_options options = {.directory = folder, .is_read_only = true};
            char path[320];
            struct store *store;
            struct err err;

            /* two slashes at the beginning are one, and no host of a URI */
            snprintf(folder, sizeof folder, "%s%s/%s", slashes == 2 ? "/" : "", base, names[i]);
            store_close(store_must_open(folder));
            snprintf(path, sizeof path, "%s/kota.db", folder);
            assert_int_equal(access(path, F_OK), 0);
            store = store_open(&options, &err);
            if (!store)
                fail_msg("%s: %s: %s", folder, err.msg, err.log_only);
            store_close(store);
        }
    }
    store_folder_remove(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_names_are_durable),
        cmocka_unit_test(a_folder_whose_name_is_not_durable_is_refused),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(a_path_may_have_any_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
