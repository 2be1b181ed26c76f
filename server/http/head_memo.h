/*
 * The field lines of the last plain request, so that the same lines need not be parsed again.
 */
#ifndef KOTA_HTTP_HEAD_MEMO_H
#define KOTA_HTTP_HEAD_MEMO_H

#include "http/head.h"
#include "http/request.h"

#define HTTP_MEMO_BYTES_MAX 1024
#define HTTP_MEMO_FIELDS_MAX 32

/* One a loop; zeroed before first use. */
struct http_head_memo {
    size_t length;                  /* of raw and tidy; 0: nothing is kept */
    char raw[HTTP_MEMO_BYTES_MAX];  /* the field lines and the empty line, as they came */
    char tidy[HTTP_MEMO_BYTES_MAX]; /* the same with names in lower case */
    struct {
        uint16_t name, name_length, value, value_length; /* places in tidy */
    } fields[HTTP_MEMO_FIELDS_MAX];
    size_t field_count;
    uint32_t initials;
    struct http_head head;
};

/*
 * Keeps the fields of a request that both parsers have taken, if it is plain: GET of a path in
 * HTTP/1.1, without a body, Expect, Content-Type or a repeated field, with a connection that is
 * kept. raw[length] is the head as it came, text the tidied copy that the request's fields point
 * into.
 */
void http_head_memo_keep(struct http_head_memo *memo, const struct http_request *request,
                         const char *raw, const char *text);

/*
 * Is the head at[0..length) a plain request with the very lines that are kept? Then *head is filled
 * as http_head_feed would. False says nothing but that it must be parsed.
 */
bool http_head_memo_find(const struct http_head_memo *memo, const char *at, size_t length,
                         const struct http_limits *limits, struct http_head *head);

/*
 * Fills the request, whose head was found, from the memo; `at` is its head as it came. False
 * without memory.
 */
bool http_head_memo_apply(const struct http_head_memo *memo, struct http_request *request,
                          const char *at, char **text);

#endif
