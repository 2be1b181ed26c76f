/*
 * Errors: one list gives the code, the HTTP status and the title.
 *
 * Functions that can fail on bad input take a `struct err *` as their last argument and return
 * `enum err_code` (ERR_OK is 0). A message has field, value and limit. A bug is no error: it aborts
 * in CHECK().
 *
 * A message may reach any client. The text of a library that may have paths, addresses or names of
 * roles goes to log_only (err_log_only), which is in no answer.
 */
#ifndef KOTA_BASE_ERR_H
#define KOTA_BASE_ERR_H

#include <stdbool.h>

#define ERR_LIST(X)                                                                                \
    X(OK, 200, "OK")                                                                               \
    X(ELSEWHERE, 307, "Served elsewhere")                                                          \
    X(BAD_INPUT, 400, "Bad input")                                                                 \
    X(UNAUTHORIZED, 401, "Unauthorized")                                                           \
    X(FORBIDDEN, 403, "Forbidden")                                                                 \
    X(NOT_FOUND, 404, "Not found")                                                                 \
    X(METHOD_NOT_ALLOWED, 405, "Method not allowed")                                               \
    X(REQUEST_TIMEOUT, 408, "Request timeout")                                                     \
    X(CONFLICT, 409, "Conflict")                                                                   \
    X(GONE, 410, "Gone")                                                                           \
    X(LENGTH_REQUIRED, 411, "Length required")                                                     \
    X(PRECONDITION_FAILED, 412, "Precondition failed")                                             \
    X(TOO_LARGE, 413, "Too large")                                                                 \
    X(TARGET_TOO_LONG, 414, "Target too long")                                                     \
    X(UNSUPPORTED_MEDIA_TYPE, 415, "Unsupported media type")                                       \
    X(EXPECTATION_FAILED, 417, "Expectation failed")                                               \
    X(MISDIRECTED, 421, "Misdirected request")                                                     \
    X(UNPROCESSABLE, 422, "Unprocessable")                                                         \
    X(TOO_MANY, 429, "Too many requests")                                                          \
    X(HEADERS_TOO_LARGE, 431, "Headers too large")                                                 \
    X(INTERNAL, 500, "Internal error")                                                             \
    X(NOT_IMPLEMENTED, 501, "Not implemented")                                                     \
    X(BUSY, 503, "Busy")                                                                           \
    X(NO_DEVICE, 503, "No device")                                                                 \
    X(NO_MEMORY, 503, "Out of memory")                                                             \
    X(READ_ONLY, 503, "Read-only store")                                                           \
    X(UNAVAILABLE, 503, "Shared log away")                                                         \
    X(DAMAGED, 503, "Damaged data")                                                                \
    X(HTTP_VERSION, 505, "HTTP version not supported")                                             \
    X(DISK_FULL, 507, "Disk full")

enum err_code {
#define ERR_ENUM(name, status, title) ERR_##name,
    ERR_LIST(ERR_ENUM)
#undef ERR_ENUM
};

struct err {
    enum err_code code;
    bool has_limit;     /* limit and got are set: they go into the problem document */
    double limit;       /* the greatest (or least) value that would have been taken */
    double got;         /* the value in the input */
    char pointer[96];   /* JSON pointer or query parameter of the error, "" when there is none */
    char msg[320];      /* one sentence, UTF-8, names field, value and limit */
    char log_only[256]; /* more for the operator, never for a client; "" when there is none */
};

enum { ERR_LOG_BYTES = sizeof((struct err *)0)->msg + sizeof((struct err *)0)->log_only + 2 };

/* Sets code and a printf-style message; clears limit, pointer and log_only; returns the code. */
enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set, for something that is over a limit. */
enum err_code err_limit(struct err *err, enum err_code code, double limit, double got,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Names the place of an error that is already set, printf-style; returns its code. */
enum err_code err_at(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a text for the log only to an error that is already set, printf-style; returns its code. */
enum err_code err_log_only(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Message and log_only as one text, for a line of the log, in a buffer of the calling block. */
const char *err_write_for_log(const struct err *err, char text[ERR_LOG_BYTES]);
#define err_for_log(err) err_write_for_log((err), (char[ERR_LOG_BYTES]){0})

int err_http_status(enum err_code code);
const char *err_title(enum err_code code);

#endif
