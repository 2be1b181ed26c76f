/*
 * The field lines of the last plain requests, so that the same lines need not be parsed again.
 */
#ifndef KOTA_HTTP_HEAD_MEMO_H
#define KOTA_HTTP_HEAD_MEMO_H

#include "http/head.h"
#include "http/path_memo.h"
#include "http/request.h"

#define HTTP_MEMO_BYTES_MAX 1024
#define HTTP_MEMO_FIELDS_MAX 32
#define HTTP_MEMO_TYPE_BYTES_MAX 64
#define HTTP_MEMO_SETS 8

/* The lines of one head, and what came of them. */
struct http_head_lines {
    size_t length;                  /* of raw and tidy; 0: nothing is kept */
    char raw[HTTP_MEMO_BYTES_MAX];  /* the field lines and the empty line, as they came */
    char tidy[HTTP_MEMO_BYTES_MAX]; /* the same with names in lower case */
    struct {
        uint16_t name, name_length, value, value_length; /* places in tidy */
    } fields[HTTP_MEMO_FIELDS_MAX];
    size_t field_count;
    uint32_t initials;
    char type[HTTP_MEMO_TYPE_BYTES_MAX]; /* the media type */
    size_t type_length;
    struct http_head head;
};

/* One a loop; zeroed before first use. */
struct http_head_memo {
    struct http_path_memo paths;
    struct http_head_lines sets[HTTP_MEMO_SETS];
    size_t found; /* last */
    size_t kept;  /* last */
};

/*
 * Keeps the fields of a request that both parsers have taken, if it is plain: GET without a body or
 * POST with a Content-Length, of a path in HTTP/1.1, without Expect or a repeated field, with a
 * connection that is kept. raw[length] is the head as it came, text the tidied copy that the
 * request's fields point into.
 */
void http_head_memo_keep(struct http_head_memo *memo, const struct http_request *request,
                         const char *raw, const char *text);

/*
 * Is the head at[0..length), at which nobody has looked yet, a plain request with lines that are
 * kept? Then *head is filled as http_head_feed would, and the lines are returned; they are valid
 * until the next keep. NULL says nothing but that http_head_feed must parse it; where the request
 * line was found (memo->paths.found) *head is as that one leaves it behind the line, else it is
 * undefined.
 */
const struct http_head_lines *http_head_memo_find(struct http_head_memo *memo, const char *at,
                                                  size_t length, const struct http_limits *limits,
                                                  struct http_head *head);

/*
 * Fills the request, whose head was found, from its lines; `at` is its head as it came. False
 * without memory.
 */
bool http_head_lines_apply(const struct http_head_lines *lines, struct http_request *request,
                           const char *at, char **text);

#endif
