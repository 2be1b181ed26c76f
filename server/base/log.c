/*
 * Log lines: see log.h. Each line is put together on the stack and leaves with one write(2).
 *
 * Event loops write them, so none waits for a reader of standard error that has stopped (a pager, a
 * log driver that hangs): where it takes no more, the line is dropped and counted, and the next one
 * that leaves is preceded by the count. A pipe that polls as writable takes PIPE_BUF bytes, the
 * most that a line has; the lock keeps other threads from filling it in between. O_NONBLOCK would
 * change the descriptor for every process that shares it, such as the shell.
 *
 * A message may quote a client's bytes. In both formats control bytes are escaped and broken UTF-8
 * is replaced (json_text.h), so that a request can neither forge a line nor paint on an operator's
 * terminal. Messages longer than the buffer are cut; a line always ends in a newline.
 *
 * The text form is `2026-01-31T12:00:00.123Z info [request id trace] message`; the JSON form has
 * the members time, level, request_id and traceparent (when there are such) and message, in this
 * order.
 *
 * The settings are atomics, because tests and a reload change them while threads run.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/text/json_text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_MESSAGE_BYTES 1024
#define LOG_LINE_BYTES 4096

_Static_assert(LOG_LINE_BYTES <= PIPE_BUF, "a pipe that is writable takes a line");

static _Atomic int log_least = LOG_INFO;
static _Atomic int log_format = LOG_TEXT;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t dropped;
static uint64_t dropped_told; /* under the lock */

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_init(enum log_level least, enum log_format format)
{
    atomic_store_explicit(&log_least, (int)least, memory_order_relaxed);
    atomic_store_explicit(&log_format, (int)format, memory_order_relaxed);
}

/* Under the lock. False: it is not written. */
static bool write_now(const char *bytes, size_t length)
{
    struct pollfd to = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (poll(&to, 1, 0) != 1 || !(to.revents & POLLOUT))
        return false;
    while (length) {
        ssize_t written = write(STDERR_FILENO, bytes, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

struct line {
    size_t length;
    char text[LOG_LINE_BYTES];
};

static void line_make(struct line *line, enum log_level level, const char *id, const char *trace,
                      const char *message)
{
    char escaped[LOG_LINE_BYTES - 512];
    char when[UTC_TEXT_BYTES];
    int length;

    json_text_escape(escaped, sizeof escaped, message, strlen(message));
    utc_text(realtime_ms(), when);
    if (atomic_load_explicit(&log_format, memory_order_relaxed) == LOG_JSON)
        length =
            snprintf(line->text, sizeof line->text,
                     "{\"time\":\"%s\",\"level\":\"%s\"%s%.64s%s%s%.64s%s,\"message\":\"%s\"}\n",
                     when, level_names[level], *id ? ",\"request_id\":\"" : "", id, *id ? "\"" : "",
                     *trace ? ",\"traceparent\":\"" : "", trace, *trace ? "\"" : "", escaped);
    else
        length = snprintf(line->text, sizeof line->text, "%s %-5s %s%.64s%s%.64s%s%s\n", when,
                          level_names[level], *id ? "[" : "", id, *id && *trace ? " " : "", trace,
                          *id ? "] " : "", escaped);
    line->length = length > 0 ? (size_t)length : 0;
}

/* Under the lock: that lines are missing. False: it is not written, either. */
static bool tell_dropped(void)
{
    uint64_t count = atomic_load_explicit(&dropped, memory_order_relaxed);
    char message[LOG_MESSAGE_BYTES];
    struct line line;

    if (count == dropped_told)
        return true;
    snprintf(message, sizeof message, "%llu log lines were dropped: standard error took no more",
             (unsigned long long)(count - dropped_told));
    line_make(&line, LOG_WARN, "", "", message);
    if (!write_now(line.text, line.length))
        return false;
    dropped_told = count;
    return true;
}

static void write_line(enum log_level level, const char *id, const char *trace, const char *format,
                       va_list args)
{
    char message[LOG_MESSAGE_BYTES];
    struct line line;

    vsnprintf(message, sizeof message, format, args);
    line_make(&line, level, id, trace, message);
    pthread_mutex_lock(&log_lock);
    if (!tell_dropped() || !write_now(line.text, line.length))
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
    pthread_mutex_unlock(&log_lock);
}

uint64_t log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

static bool is_logged(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&log_least, memory_order_relaxed);
}

void log_write(enum log_level level, const char *request_id, const char *format, ...)
{
    va_list args;

    if (!is_logged(level))
        return;
    va_start(args, format);
    write_line(level, request_id ? request_id : "", "", format, args);
    va_end(args);
}

void log_write_traced(enum log_level level, const char *request_id, const char *trace,
                      const char *format, ...)
{
    va_list args;

    if (!is_logged(level))
        return;
    va_start(args, format);
    write_line(level, request_id ? request_id : "", trace ? trace : "", format, args);
    va_end(args);
}
