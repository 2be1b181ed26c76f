/*
 * The strict check of a request's head, over raw bytes and before llhttp sees them.
 *
 * It finds the head's end, decides the framing of the body and refuses what RFC 9112 lets a
 * server refuse; llhttp then only splits a head that is known to be well formed.
 */
#ifndef KOTA_HTTP_HEAD_H
#define KOTA_HTTP_HEAD_H

#include "base/err.h"
#include "http/http.h"

enum http_head_state { HTTP_HEAD_MORE, HTTP_HEAD_DONE, HTTP_HEAD_BAD };

/* Zeroed at the start of each request. Offsets count from the head's first byte. */
struct http_head {
    size_t scanned;    /* bytes looked at */
    size_t line_start; /* first byte of the line that is not complete yet */
    size_t begin;      /* of the request line: 2 after a leading CRLF, which is forgiven once */
    size_t length;     /* of the whole head with its empty line, once it is complete */
    size_t header_count;
    bool has_request_line;

    enum http_method method; /* HEAD reads as GET; undefined for OPTIONS */
    bool is_head;
    bool is_options;
    bool is_1_0;
    size_t target_start;
    size_t target_length;

    unsigned host_count;
    bool has_content_length;
    bool has_transfer_encoding;
    bool is_chunked;
    bool expects_continue;
    bool expects_other;
    uint64_t content_length; /* saturates at UINT64_MAX */
};

/*
 * Looks at what is new in at[0..length), the head's bytes so far (more may follow it).
 *
 * HTTP_HEAD_MORE  not complete yet, call again with the same bytes and more
 * HTTP_HEAD_DONE  head->length and the members above are set
 * HTTP_HEAD_BAD   err says why; the connection must be closed after the answer
 * Cost: each byte is looked at about twice in all, however the head was cut. No allocation.
 * Source: RFC 9112 sections 2.2, 3, 5, 6; RFC 9110 sections 5.5, 5.6.2, 7.2.
 */
enum http_head_state http_head_feed(struct http_head *head, const char *at, size_t length,
                                    const struct http_limits *limits, struct err *err);

/*
 * The request line at[start..end), without its CRLF: "METHOD SP target SP HTTP/1.x" and nothing
 * else. Sets method, target and version. Errors as above.
 */
enum err_code http_head_check_request_line(struct http_head *head, const char *at, size_t start,
                                           size_t end, const struct http_limits *limits,
                                           struct err *err);

/* tchar of RFC 9110 section 5.6.2 */
bool http_is_token_byte(char c);

/* One line of a trailer section, without its CRLF: the same checks as for a header line. */
enum err_code http_head_check_field_line(const char *line, size_t length, struct err *err);

#endif
