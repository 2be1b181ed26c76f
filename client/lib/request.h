/*
 * A request as it waits to be sent.
 */
#ifndef KOTA_LIB_REQUEST_H
#define KOTA_LIB_REQUEST_H

#include "client/lib/kota.h"
#include "client/lib/text.h"

struct kota_request {
    char method[8];
    struct text path;    /* with the query */
    struct text headers; /* "Name: value\r\n" … */
    const char *accept;  /* static */
    char *media_type;    /* malloc; NULL: no body */
    const void *body;    /* own_body's, or borrowed */
    size_t body_length;
    struct text own_body;
    char key[129]; /* "": none */
    bool may_repeat;
    bool has_query;
    bool has_since;
    uint64_t since;
    double timeout_s;   /* 0: the client's */
    kota_take_fn *take; /* NULL: the body is kept in the answer */
    void *context;
    kota_sent_fn *on_sent; /* NULL: nobody asks */
    void *sent_context;
    struct kota_error error;
};

/* Does the body of an answer of that status go to the caller as it comes? */
static inline bool request_takes(const struct kota_request *request, int status)
{
    return request->take && status >= 200 && status < 300;
}

/* The reason that it cannot be sent, or NULL; checks its memory, too. */
const struct kota_error *request_error(struct kota_request *request);
/* printf-style; the first error stays. NULL: does nothing. */
void request_fail(struct kota_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
