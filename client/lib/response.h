/*
 * The answer to one request as its bytes come.
 */
#ifndef KOTA_LIB_RESPONSE_H
#define KOTA_LIB_RESPONSE_H

#include "client/lib/kota.h"
#include "client/lib/text.h"

#include <llhttp.h>

enum {
    RESPONSE_HEAD_BYTES_MAX = 64 * 1024,
    RESPONSE_HEADERS_MAX = 128,
    RESPONSE_EARLY_MAX = 16 /* answers 1xx before the answer */
};

struct response {
    llhttp_t parser;
    struct text headers; /* "name\0value\0" … */
    struct text body;
    size_t body_bytes_max, head_bytes;
    unsigned header_count, early_count;
    int status;           /* 0 until the head is there */
    bool is_head_request; /* the answer has no body, at any Content-Length */
    bool is_stream;       /* a 2xx body goes to take, and may end with the connection */
    bool has_begun, has_head, is_done;
    bool is_left;            /* take has ended it */
    bool keeps_alive;        /* once done: another request may follow */
    struct kota_error error; /* kind is none while all is well */
    /* Bytes of a stream; false ends it (take has set the reason). */
    bool (*take)(void *context, const char *bytes, size_t length);
    void *context;
};

/* The caller has zeroed it and set its options: body_bytes_max, is_…, take, context. */
void response_begin(struct response *response);
/* The next bytes. False: an error is set, or take has ended it. */
bool response_feed(struct response *response, const char *bytes, size_t length);
/* The peer will send no more. False: it was not the end of the answer. */
bool response_end(struct response *response);
void response_free(struct response *response);

/* The value of the first header of that name in any case, or NULL. */
const char *headers_find(const struct text *headers, const char *name);

#endif
