/*
 * One daemon, called by libkota: a request in, a JSON document or an error out.
 *
 * This file is independent of commands and prints nothing.
 */
#ifndef KOTA_CLIENT_CALL_H
#define KOTA_CLIENT_CALL_H

#include "base/err.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct call_config {
    const char *url;         /* as of struct kota_options */
    const char *token;       /* bearer token; NULL for none */
    const char *ca_file;     /* authorities to trust; NULL: the system's */
    double timeout_s;        /* of one call with all its tries and pauses; > 0 */
    size_t answer_bytes_max; /* a longer answer is an error */
};

/* A feed is lost after so long without a byte; the daemon sends something every 15 s. */
#define CALL_SILENCE_S 45

/* A client of libkota. One thread at a time. */
struct call;
struct kota_client;
struct kota_error;

/* NULL: err has the error of the URL or the token. The strings are copied. */
struct call *call_open(const struct call_config *config, struct err *err);
void call_close(struct call *call);
/* The header line that carries the token, without its end; NULL without a token. */
const char *call_authorization(const struct call *call);
struct kota_client *call_client(struct call *call);
/* The reason as struct err; NULL: none. */
enum err_code call_error(const struct kota_error *error, struct err *err);

/*
 * Questions by GET and POST. path begins with '/'. On ERR_OK *answer is the document, freed by
 * cJSON_Delete; else it is NULL.
 *
 * Whatever this file sends is sent again when the connection broke or could not be made, and after
 * 429 and 503 with Retry-After: 4 times at most, all within timeout_s, which a body lengthens by a
 * second for each million bytes.
 *
 * Errors: a problem of the daemon keeps its status as the nearest code of err.h, its detail as the
 * message and the first pointer; a call without an HTTP answer is ERR_BUSY, an answer that violates
 * the contract ERR_INTERNAL.
 */
enum err_code call_get(struct call *call, const char *path, cJSON **answer, struct err *err);
enum err_code call_post(struct call *call, const char *path, const cJSON *body, cJSON **answer,
                        struct err *err);

/*
 * A write: any method but GET, under an Idempotency-Key of its own, so that it happens once however
 * often it arrives. bytes may be NULL. *answer is NULL when the answer has no body (204).
 */
enum err_code call_write(struct call *call, const char *method, const char *path,
                         const char *media_type, const void *bytes, size_t length, cJSON **answer,
                         struct err *err);

/* A PUT, only if there is nothing at that path: ERR_PRECONDITION_FAILED. */
enum err_code call_put_new(struct call *call, const char *path, const char *media_type,
                           const void *bytes, size_t length, cJSON **answer, struct err *err);

/* DELETE, only at that revision: ERR_PRECONDITION_FAILED. */
enum err_code call_delete_at(struct call *call, const char *path, double revision, struct err *err);

/* POST whose answer is bytes: *got of them at *answer, freed by free(), NULL unless ERR_OK. */
enum err_code call_post_bytes(struct call *call, const char *path, const char *media_type,
                              const void *bytes, size_t length, char **answer, size_t *got,
                              struct err *err);

/*
 * From now on report is called with the sent part of a body, about ten times a second, within the
 * calls. It must not call. NULL ends it, and so does call_get_stream.
 */
void call_on_upload(struct call *call, void (*report)(void *context, double done, double all),
                    void *context);

/* A header of an answer; the value is "" when there is none, and cut at its size. */
struct call_header {
    const char *name;
    char value[128];
};

/* An answer that is taken as it comes, and may never end. */
struct call_stream {
    struct call_header *headers; /* [header_count] wanted ones, filled before `take` is called */
    size_t header_count;
    double silence_s; /* given up when nothing comes for so long; > 0 */
    /* The next bytes of a 2xx answer; an error in err ends the call with it. */
    enum err_code (*take)(void *context, const char *bytes, size_t length, struct err *err);
    void *context;
};

/*
 * GET of bytes. There is no limit to their length, and instead of the time of one call there is one
 * to silence. ERR_OK: the answer ended as it should. Errors as above, or take's.
 */
enum err_code call_get_stream(struct call *call, const char *path, const char *accept,
                              const struct call_stream *stream, struct err *err);

#endif
