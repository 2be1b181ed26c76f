/*
 * One line for each event: human on a terminal, JSON otherwise. Thread-safe; a line is written
 * with one write(2), or dropped where standard error takes no more: nothing waits for its reader.
 * Never put tokens or bodies in.
 */
#ifndef KOTA_BASE_LOG_H
#define KOTA_BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

/* To standard error. Any thread, at any time. */
void log_init(enum log_level least, enum log_format format);

/* request_id may be NULL. */
void log_write(enum log_level level, const char *request_id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the trace that the request belongs to ("" or NULL: none; W3C traceparent). */
void log_write_traced(enum log_level level, const char *request_id, const char *trace,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Lines that were dropped since the start. */
uint64_t log_dropped(void);

#define log_info(...) log_write(LOG_INFO, NULL, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, NULL, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, NULL, __VA_ARGS__)

#endif
