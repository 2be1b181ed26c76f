/*
 * Errors: one list gives the code, its word in problem documents, the HTTP status and the title.
 * docs/errors.md has a paragraph for each word, and the daemon serves it as /docs/errors.
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
    X(OK, ok, 200, "OK")                                                                           \
    X(ELSEWHERE, served_elsewhere, 307, "Served elsewhere")                                        \
    X(BAD_INPUT, bad_input, 400, "Bad input")                                                      \
    X(MISSING, missing, 400, "Missing value")                                                      \
    X(UNKNOWN_MEMBER, unknown_member, 400, "Unknown member")                                       \
    X(UNKNOWN_PARAMETER, unknown_parameter, 400, "Unknown parameter")                              \
    X(BAD_JSON, bad_json, 400, "Malformed JSON")                                                   \
    X(BAD_REQUEST, bad_request, 400, "Malformed request")                                          \
    X(UNAUTHORIZED, unauthorized, 401, "Unauthorized")                                             \
    X(FORBIDDEN, forbidden, 403, "Forbidden")                                                      \
    X(SCOPE, scope_too_small, 403, "Scope too small")                                              \
    X(READ_ONLY_DAEMON, read_only_daemon, 403, "Read-only daemon")                                 \
    X(CLAIMS, beyond_claims, 403, "Beyond the token's claims")                                     \
    X(PROXIED, proxied_without_tokens, 403, "Proxied without tokens")                              \
    X(NOT_FOUND, not_found, 404, "Not found")                                                      \
    X(LOCALE_UNKNOWN, locale_unknown, 404, "Unknown locale")                                       \
    X(LAYER_UNKNOWN, layer_unknown, 404, "Unknown layer")                                          \
    X(MODEL_UNKNOWN, model_unknown, 404, "Unknown model")                                          \
    /* the same words where a query or a body names it, and the path is right */                   \
    X(LAYER_UNKNOWN_OPTION, layer_unknown, 422, "Unknown layer")                                   \
    X(MODEL_UNKNOWN_OPTION, model_unknown, 422, "Unknown model")                                   \
    X(PATCH_UNKNOWN, patch_unknown, 404, "Unknown patch")                                          \
    X(PIN_UNKNOWN, pin_unknown, 404, "Unknown pin")                                                \
    X(WATCH_UNKNOWN, watch_unknown, 404, "Unknown watch")                                          \
    X(BODY_UNKNOWN, body_unknown, 404, "Unknown body")                                             \
    X(IMPACT_UNKNOWN, impact_unknown, 404, "Unknown impact")                                       \
    X(TILE_UNKNOWN, tile_unknown, 404, "Unknown tile")                                             \
    X(METHOD_NOT_ALLOWED, method_not_allowed, 405, "Method not allowed")                           \
    X(NOT_ACCEPTABLE, not_acceptable, 406, "Not acceptable")                                       \
    X(REQUEST_TIMEOUT, request_timeout, 408, "Request timeout")                                    \
    X(CONFLICT, conflict, 409, "Conflict")                                                         \
    X(PATCH_CLOSED, patch_closed, 409, "Patch closed")                                             \
    X(GONE, revision_gone, 410, "Revision gone")                                                   \
    X(PRECONDITION_FAILED, precondition_failed, 412, "Precondition failed")                        \
    X(TOO_LARGE, too_large, 413, "Too large")                                                      \
    X(BODY_TOO_LARGE, body_too_large, 413, "Body too large")                                       \
    X(TOO_MANY_ITEMS, too_many_items, 413, "Too many items")                                       \
    X(TOO_SLOW, too_slow, 413, "Takes too long")                                                   \
    X(WORLD_FULL, world_full, 413, "World full")                                                   \
    X(TARGET_TOO_LONG, target_too_long, 414, "Target too long")                                    \
    X(UNSUPPORTED_MEDIA_TYPE, unsupported_media_type, 415, "Unsupported media type")               \
    X(RANGE, range_beyond_end, 416, "Range beyond the end")                                        \
    X(EXPECTATION_FAILED, expectation_failed, 417, "Expectation failed")                           \
    X(MISDIRECTED, misdirected, 421, "Misdirected request")                                        \
    X(UNPROCESSABLE, unprocessable, 422, "Unprocessable")                                          \
    X(NO_PLACE, no_place, 422, "Not on the Earth")                                                 \
    X(NO_HEIGHTFIELD, no_heightfield, 422, "No heightfield")                                       \
    X(LAYER_AMBIGUOUS, layer_ambiguous, 422, "Layer not chosen")                                   \
    X(LAYER_KIND, wrong_layer_kind, 422, "Wrong kind of layer")                                    \
    X(KEY_REUSED, key_reused, 422, "Idempotency key reused")                                       \
    X(REVISION_AHEAD, revision_in_future, 422, "Revision in the future")                           \
    X(TOO_MANY, too_many_requests, 429, "Too many requests")                                       \
    X(HEADERS_TOO_LARGE, headers_too_large, 431, "Headers too large")                              \
    X(INTERNAL, internal_error, 500, "Internal error")                                             \
    X(NOT_IMPLEMENTED, not_implemented, 501, "Not implemented")                                    \
    X(BUSY, busy, 503, "Busy")                                                                     \
    X(NOT_READY, not_ready, 503, "Not ready")                                                      \
    X(REVISION_LATE, revision_not_here, 503, "Revision not here yet")                              \
    X(NO_DEVICE, no_device, 503, "No device")                                                      \
    X(NO_MEMORY, no_memory, 503, "Out of memory")                                                  \
    X(READ_ONLY, read_only_store, 503, "Read-only store")                                          \
    X(AUDIT, audit_not_written, 503, "Audit not written")                                          \
    X(UNAVAILABLE, shared_log_away, 503, "Shared log away")                                        \
    X(DAMAGED, damaged_data, 503, "Damaged data")                                                  \
    X(HTTP_VERSION, http_version, 505, "HTTP version not supported")                               \
    X(DISK_FULL, disk_full, 507, "Disk full")

enum err_code {
#define ERR_ENUM(name, word, status, title) ERR_##name,
    ERR_LIST(ERR_ENUM)
#undef ERR_ENUM
};

struct err {
    enum err_code code;
    bool has_limit;      /* limit and got are set: they go into the problem document */
    double limit;        /* the greatest (or least) value that would have been taken */
    double got;          /* the value in the input */
    unsigned retry_in_s; /* the Retry-After of an answer that has one; 0: 1 */
    char pointer[96];    /* JSON pointer or query parameter of the error, "" when there is none */
    char msg[320];       /* one sentence, UTF-8, names field, value and limit */
    char log_only[256];  /* more for the operator, never for a client; "" when there is none */
};

enum { ERR_LOG_BYTES = sizeof((struct err *)0)->msg + sizeof((struct err *)0)->log_only + 2 };

/* Sets code and a printf-style message; clears limit, pointer and log_only; returns the code. */
enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set, for something that is over a limit. */
enum err_code err_limit(struct err *err, enum err_code code, double limit, double got,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same two with the place of the error (err_at), a text as it is. */
enum err_code err_set_at(struct err *err, enum err_code code, const char *at, const char *format,
                         ...) __attribute__((format(printf, 4, 5)));
enum err_code err_limit_at(struct err *err, enum err_code code, const char *at, double limit,
                           double got, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

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
/* The stable word of a problem document: "layer_unknown". */
const char *err_word(enum err_code code);

#endif
