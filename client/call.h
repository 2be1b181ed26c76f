/*
 * One daemon, spoken to over HTTP: a request in, a JSON document or an error out.
 *
 * This file knows no commands and prints nothing; a client library can take it as it is.
 */
#ifndef KOTA_CLIENT_CALL_H
#define KOTA_CLIENT_CALL_H

#include "base/err.h"

#include <cjson/cJSON.h>
#include <stddef.h>

struct call_config {
    const char *url;         /* "http://127.0.0.1:7420", a path behind it is kept */
    const char *token;       /* bearer token; NULL for none */
    double timeout_s;        /* of one call, connecting included; > 0 */
    size_t answer_bytes_max; /* a longer answer is an error */
};

/* A connection that is kept between calls. One thread at a time. */
struct call;

/* NULL: err says what is wrong with the URL or the token. The strings are copied. */
struct call *call_open(const struct call_config *config, struct err *err);
void call_close(struct call *call);

/*
 * GET and POST. path begins with '/'. On ERR_OK *answer is the document, freed by cJSON_Delete;
 * else it is NULL.
 *
 * Errors: a problem of the daemon keeps its status as the code that stands nearest in err.h, its
 * detail as the message and the first pointer; a call that brought no HTTP answer at all is
 * ERR_BUSY, an answer that is not what the contract says ERR_INTERNAL.
 */
enum err_code call_get(struct call *call, const char *path, cJSON **answer, struct err *err);
enum err_code call_post(struct call *call, const char *path, const cJSON *body, cJSON **answer,
                        struct err *err);

/* PUT of bytes with their media type; else as above. */
enum err_code call_put(struct call *call, const char *path, const char *media_type,
                       const void *bytes, size_t length, cJSON **answer, struct err *err);

#endif
