/*
 * The last paths that were asked, so that of the same path with another query only the query is
 * looked at.
 */
#ifndef KOTA_HTTP_PATH_MEMO_H
#define KOTA_HTTP_PATH_MEMO_H

#include "http/head.h"
#include "http/request.h"
#include "http/router.h"

#define HTTP_PATH_MEMO_BYTES_MAX 192
#define HTTP_PATH_MEMO_SETS 4
#define HTTP_PATH_MEMO_ITEMS_MAX 8

/* A piece of a request line, counted from its first byte. */
struct http_piece {
    uint16_t at, length;
};

struct http_path {
    size_t length;                      /* of raw; 0: nothing is kept */
    char raw[HTTP_PATH_MEMO_BYTES_MAX]; /* "GET /v1/locales/a/height?", or up to the space */
    enum http_method method;
    struct http_piece path;
    struct http_piece params[HTTP_PARAMS_MAX];
    size_t param_count;
    size_t route;
    unsigned allowed;
};

/* One a loop, for one router; zeroed before first use. */
struct http_path_memo {
    struct http_path sets[HTTP_PATH_MEMO_SETS];
    size_t kept; /* last */
    /* what was found last, until the next find */
    const struct http_path *found; /* NULL: nothing */
    size_t target_length;
    struct {
        struct http_piece name, value;
    } items[HTTP_PATH_MEMO_ITEMS_MAX];
    size_t item_count;
};

/*
 * Does at[0..length) begin with the request line of a path that is kept, in HTTP/1.1, with a query
 * in which nothing is encoded? Then the length of the line with its CRLF, and head tells of it what
 * http_head_check_request_line would; else 0, which says nothing, and head is untouched.
 */
size_t http_path_memo_find(struct http_path_memo *memo, const char *at, size_t length,
                           const struct http_limits *limits, struct http_head *head);

/*
 * Target, but for its segments, and match of the request whose line was found last; text is its
 * head in memory of its own. ERR_NO_MEMORY
 */
enum err_code http_path_memo_apply(const struct http_path_memo *memo, const char *text,
                                   struct http_request *request, struct err *err);

/* Keeps the path of a request that was routed, if it is plain: GET or POST, nothing encoded. */
void http_path_memo_keep(struct http_path_memo *memo, const struct http_request *request,
                         const char *text);

#endif
