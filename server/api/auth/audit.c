/*
 * The audit.
 *
 * Problem: a world that is open to players must be able to say who dug where, also after a crash.
 * Approach: the writer adds a line for each change of a commit, after the commit and before any
 * answer, and flushes once a commit; with --audit-sync the flush ends in fdatasync, so that every
 * acknowledged write has its line. A write that crashed between its commit and its line was never
 * acknowledged, and neither is one whose line failed then: it is answered by an error, and when it
 * is sent again under its key. A file that cannot be written refuses later writes until it can:
 * lines are kept meanwhile, at most LINES_BYTES_MAX of them.
 *
 *   2026-12-31T18:00:00.123Z name=alice address=10.0.0.7 route=edit locale=arena-1
 *       rect=3,4,39,39 revision=12 request=4f1c…                            (one line; - for none)
 */
#include "api/auth/audit.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 640, LINES_BYTES_MAX = 1 << 20 };

struct audit {
    char *path;
    bool is_sync;
    pthread_mutex_t mutex; /* guards all below */
    int fd;
    int failed;  /* errno of the last flush; 0: it has not */
    char *lines; /* [LINES_BYTES_MAX]: not yet written */
    size_t length;
    uint64_t sequence;          /* of the last entry */
    struct audit_entry *recent; /* [AUDIT_RECENT]: by sequence */
};

/* A pipe that has no reader, or one that has stopped, is an error and not waited for. */
static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
}

struct audit *audit_create(const char *path, bool is_sync, struct err *err)
{
    struct audit *audit = calloc(1, sizeof *audit);

    if (audit) {
        audit->path = strdup(path);
        audit->lines = malloc(LINES_BYTES_MAX);
        audit->recent = calloc(AUDIT_RECENT, sizeof *audit->recent);
        audit->is_sync = is_sync;
        audit->fd = -1;
        pthread_mutex_init(&audit->mutex, NULL);
    }
    if (!audit || !audit->path || !audit->lines || !audit->recent) {
        audit_destroy(audit);
        err_set(err, ERR_NO_MEMORY, "no memory for the audit");
        return NULL;
    }
    audit->fd = open_file(path);
    if (audit->fd < 0) {
        err_set(err, ERR_BAD_INPUT, "--audit %s: %s", path, strerror(errno));
        audit_destroy(audit);
        return NULL;
    }
    return audit;
}

static void flush(struct audit *audit);

void audit_destroy(struct audit *audit)
{
    if (!audit)
        return;
    if (audit->fd >= 0) {
        flush(audit);
        close(audit->fd);
    }
    pthread_mutex_destroy(&audit->mutex);
    free(audit->recent);
    free(audit->lines);
    free(audit->path);
    free(audit);
}

enum err_code audit_reopen(struct audit *audit, struct err *err)
{
    const int fd = open_file(audit->path);

    if (fd < 0)
        return err_set(err, ERR_BAD_INPUT, "--audit %s: %s", audit->path, strerror(errno));
    pthread_mutex_lock(&audit->mutex);
    flush(audit);
    close(audit->fd);
    audit->fd = fd;
    flush(audit);
    pthread_mutex_unlock(&audit->mutex);
    return ERR_OK;
}

static const char *or_none(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

static size_t write_line(const struct audit_entry *entry, char line[LINE_BYTES_MAX])
{
    char time[UTC_TEXT_BYTES], rect[64] = "-", revision[24] = "-";
    int length;

    utc_text(entry->time_ms, time);
    if (entry->rect.cols > 0)
        snprintf(rect, sizeof rect, "%u,%u,%u,%u", entry->rect.column, entry->rect.row,
                 entry->rect.cols, entry->rect.rows);
    if (entry->revision > 0)
        snprintf(revision, sizeof revision, "%llu", (unsigned long long)entry->revision);
    length = snprintf(line, LINE_BYTES_MAX,
                      "%s name=%s address=%s route=%s locale=%s rect=%s revision=%s "
                      "request=%s\n",
                      time, entry->origin.name, or_none(entry->origin.address), entry->origin.route,
                      or_none(entry->target), rect, revision, entry->origin.request);
    return (size_t)length < LINE_BYTES_MAX ? (size_t)length : LINE_BYTES_MAX - 1;
}

/* Under the mutex. */
static void flush(struct audit *audit)
{
    size_t done = 0;
    int failed = 0;

    while (done < audit->length && !failed) {
        const ssize_t written = write(audit->fd, audit->lines + done, audit->length - done);

        if (written > 0)
            done += (size_t)written;
        else if (errno != EINTR)
            failed = errno;
    }
    memmove(audit->lines, audit->lines + done, audit->length - done);
    audit->length -= done;
    if (audit->is_sync && done > 0 && fdatasync(audit->fd) != 0 && errno != EINVAL &&
        errno != EROFS) /* a pipe or a terminal has nothing to sync */
        failed = errno;
    if (failed && !audit->failed)
        log_error("the audit cannot be written: %s: %s", audit->path, strerror(failed));
    if (!failed && audit->failed)
        log_info("the audit is written again: %s", audit->path);
    audit->failed = failed;
}

void audit_add(struct audit *audit, const struct change_origin *origin, const char *target,
               const struct sample_rect *rect, uint64_t revision)
{
    struct audit_entry *entry;

    pthread_mutex_lock(&audit->mutex);
    entry = &audit->recent[++audit->sequence % AUDIT_RECENT];
    *entry = (struct audit_entry){.sequence = audit->sequence,
                                  .time_ms = realtime_ms(),
                                  .origin = *origin,
                                  .revision = revision};
    if (target)
        snprintf(entry->target, sizeof entry->target, "%s", target);
    if (rect)
        entry->rect = *rect;
    if (audit->length + LINE_BYTES_MAX > LINES_BYTES_MAX)
        flush(audit);
    if (audit->length + LINE_BYTES_MAX <= LINES_BYTES_MAX)
        audit->length += write_line(entry, audit->lines + audit->length);
    pthread_mutex_unlock(&audit->mutex);
}

void audit_flush(struct audit *audit)
{
    pthread_mutex_lock(&audit->mutex);
    flush(audit);
    pthread_mutex_unlock(&audit->mutex);
}

enum err_code audit_acknowledge(struct audit *audit, struct err *err)
{
    int failed;

    if (!audit)
        return err->code = ERR_OK;
    pthread_mutex_lock(&audit->mutex);
    failed = audit->is_sync ? audit->failed : 0;
    pthread_mutex_unlock(&audit->mutex);
    return failed
               ? err_set(err, ERR_AUDIT, "this write is made, but its line in the audit is not: %s",
                         strerror(failed))
               : ERR_OK;
}

enum err_code audit_check(struct audit *audit, struct err *err)
{
    int failed;

    pthread_mutex_lock(&audit->mutex);
    if (audit->failed)
        flush(audit); /* perhaps there is room again */
    failed = audit->failed;
    pthread_mutex_unlock(&audit->mutex);
    return failed ? err_set(err, ERR_AUDIT,
                            "the audit cannot be written, and no write goes without its line: %s",
                            strerror(failed))
                  : ERR_OK;
}

size_t audit_recent(struct audit *audit, uint64_t after, struct audit_entry *out, size_t most)
{
    size_t count = 0;

    pthread_mutex_lock(&audit->mutex);
    if (audit->sequence > AUDIT_RECENT - 1 && after < audit->sequence - (AUDIT_RECENT - 1))
        after = audit->sequence - (AUDIT_RECENT - 1);
    while (after < audit->sequence && count < most)
        out[count++] = audit->recent[++after % AUDIT_RECENT];
    pthread_mutex_unlock(&audit->mutex);
    return count;
}
