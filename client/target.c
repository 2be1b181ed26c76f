/*
 * Files that appear whole or not at all: a temporary name in the same folder, fsync, rename, fsync
 * of the folder.
 *
 * No file is left after a signal. While a file grows, the signals by which people end a program
 * unlink it first and then end the process the way they always do, so that a shell sees "killed by
 * SIGINT" and stops its loop. unlink, sigaction and raise may be called in a handler; the name is
 * set before the handlers and cleared after them. A signal that was ignored before (nohup) stays
 * ignored. O_TMPFILE would need no handler, but linkat cannot replace a file.
 *
 * Invariant: grown_name is NULL or names a file that this process made.
 */
#include "client/target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
enum { END_COUNT = sizeof(ends) / sizeof(ends[0]) };

static const char *volatile grown_name;
static struct sigaction before[END_COUNT];

static void take_away(int signal)
{
    const char *name = grown_name;

    if (name)
        unlink(name);
    raise(signal); /* once more, by SA_RESETHAND with its usual effect */
}

static void signals_catch(void)
{
    struct sigaction action = {.sa_handler = take_away, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < END_COUNT; i++)
        if (sigaction(ends[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
}

static void signals_leave(void)
{
    for (int i = 0; i < END_COUNT; i++)
        sigaction(ends[i], &before[i], NULL);
    grown_name = NULL;
}

static enum err_code file_error(const char *name, struct err *err)
{
    return err_set(err, ERR_INTERNAL, "%.200s cannot be written: %s", name, strerror(errno));
}

/* The file exists from mkstemp on, so no signal comes between it and the handlers. */
static int make_file(struct target *target)
{
    mode_t mask = umask(0);
    sigset_t all, old;
    int file;

    umask(mask);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    file = mkstemp(target->name);
    if (file >= 0) {
        grown_name = target->name;
        signals_catch();
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (file >= 0 && fchmod(file, 0666 & ~mask) == 0)
        target->file = fdopen(file, "wb");
    if (file >= 0 && !target->file)
        close(file);
    return file;
}

enum err_code target_open(struct target *target, const char *wanted, struct err *err)
{
    struct stat there;

    *target = (struct target){.file = NULL};
    if (stat(wanted, &there) == 0 && !S_ISREG(there.st_mode))
        return err_set(err, ERR_INTERNAL, "%.200s cannot be written: it is no regular file",
                       wanted);
    target->wanted = strdup(wanted);
    if (!target->wanted || asprintf(&target->name, "%s.XXXXXX", wanted) < 0) {
        target->name = NULL;
        target_drop(target);
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    }
    if (make_file(target) < 0) {
        file_error(wanted, err);
        free(target->name);
        target->name = NULL;
    } else if (!target->file) {
        file_error(wanted, err);
    } else {
        return ERR_OK;
    }
    target_drop(target);
    return err->code;
}

enum err_code target_take(void *context, const char *bytes, size_t length, struct err *err)
{
    struct target *target = context;

    return fwrite(bytes, 1, length, target->file) == length ? ERR_OK
                                                            : file_error(target->wanted, err);
}

/* The name is on the disk, too; a folder that cannot be opened or synced has it in time. */
static void sync_folder(char *name)
{
    int folder = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return;
    fsync(folder);
    close(folder);
}

enum err_code target_keep(struct target *target, struct err *err)
{
    FILE *file = target->file;
    bool is_good = fflush(file) == 0 && fsync(fileno(file)) == 0;

    target->file = NULL;
    is_good = fclose(file) == 0 && is_good;
    if (!is_good || rename(target->name, target->wanted) != 0)
        return file_error(target->wanted, err);
    signals_leave();
    sync_folder(target->name);
    free(target->name);
    target->name = NULL;
    return ERR_OK;
}

void target_drop(struct target *target)
{
    if (target->file)
        fclose(target->file);
    if (target->name) {
        unlink(target->name);
        signals_leave();
    }
    free(target->name);
    free(target->wanted);
    *target = (struct target){.file = NULL};
}
