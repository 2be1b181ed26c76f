/*
 * The members of a reply; the functions for handlers are in http.h.
 */
#ifndef KOTA_HTTP_REPLY_H
#define KOTA_HTTP_REPLY_H

#include "http/http.h"
#include "http/output.h"

/* All headers that a handler may add, together. */
#define HTTP_REPLY_HEADERS_BYTES 2048

struct http_reply {
    int status;
    const char *content_type; /* NULL: none */
    const void *static_body;  /* not NULL: instead of body */
    size_t static_length;
    char *body; /* malloc'd, kept between requests while it is small */
    size_t body_length;
    size_t body_capacity;
    struct http_budget *budget;
    size_t charged;  /* of a large body, to the budget */
    bool is_failed;  /* memory ran out: the answer becomes 503 */
    bool is_made;    /* then without an answer, since the write is done */
    bool is_endless; /* the head of a stream: without a length */
    char log_only[sizeof((struct err *)0)->log_only]; /* of the error: for the log */
    size_t headers_length;
    char headers[HTTP_REPLY_HEADERS_BYTES]; /* "Name: value\r\n" each */
};

/* Back to 200 and nothing; keeps the body's memory while it is small. */
void http_reply_reset(struct http_reply *reply);
void http_reply_free(struct http_reply *reply);

#endif
