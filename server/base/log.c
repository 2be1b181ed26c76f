/*
 * Log lines: see log.h. Each line is put together on the stack and leaves with one write(2), which
 * the kernel keeps whole between threads for pipes up to PIPE_BUF and for files opened to append;
 * so no lock is held while a slow reader of standard error is waited for.
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

#include "base/json_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_MESSAGE_BYTES 1024
#define LOG_LINE_BYTES 4096

static _Atomic int log_least = LOG_INFO;
static _Atomic int log_format = LOG_TEXT;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_init(enum log_level least, enum log_format format)
{
    atomic_store_explicit(&log_least, (int)least, memory_order_relaxed);
    atomic_store_explicit(&log_format, (int)format, memory_order_relaxed);
}

static void write_all(const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(STDERR_FILENO, bytes, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        length -= (size_t)written;
    }
}

/* UTC with milliseconds, RFC 3339; out[32]. */
static void format_time(char *out, size_t size)
{
    struct timespec now;
    struct tm parts;
    size_t used;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    used = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out + used, size - used, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

static void write_line(enum log_level level, const char *id, const char *trace, const char *format,
                       va_list args)
{
    char message[LOG_MESSAGE_BYTES];
    char escaped[LOG_LINE_BYTES - 512];
    char line[LOG_LINE_BYTES];
    char when[40];
    int length;

    vsnprintf(message, sizeof message, format, args);
    json_text_escape(escaped, sizeof escaped, message, strlen(message));
    format_time(when, sizeof when);
    if (atomic_load_explicit(&log_format, memory_order_relaxed) == LOG_JSON)
        length =
            snprintf(line, sizeof line,
                     "{\"time\":\"%s\",\"level\":\"%s\"%s%.64s%s%s%.64s%s,\"message\":\"%s\"}\n",
                     when, level_names[level], *id ? ",\"request_id\":\"" : "", id, *id ? "\"" : "",
                     *trace ? ",\"traceparent\":\"" : "", trace, *trace ? "\"" : "", escaped);
    else
        length =
            snprintf(line, sizeof line, "%s %-5s %s%.64s%s%.64s%s%s\n", when, level_names[level],
                     *id ? "[" : "", id, *id && *trace ? " " : "", trace, *id ? "] " : "", escaped);
    if (length > 0)
        write_all(line, (size_t)length);
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
