/*
 * The head of a request: a strict check of its raw bytes, then llhttp over those bytes.
 *
 * http_head_feed finds the head's end and refuses bytes that RFC 9112 lets a server refuse; it
 * builds nothing. http_head_parse has llhttp split the whole head, once, and checks each field
 * where llhttp reports it: how many there may be of it, and its meaning for the body's framing.
 */
#ifndef KOTA_HTTP_HEAD_H
#define KOTA_HTTP_HEAD_H

#include "base/err.h"
#include "http/http.h"

enum http_head_state { HTTP_HEAD_MORE, HTTP_HEAD_DONE, HTTP_HEAD_BAD };

struct http_field {
    struct span name, value; /* name in lower case, value trimmed */
};

/* Zeroed at the start of each request. */
struct http_head {
    /* set by http_head_feed; places count from the head's first byte */
    size_t scanned;    /* bytes checked */
    size_t line_start; /* first byte of the line that is not complete yet */
    size_t begin;      /* of the request line: 2 after a leading CRLF, which is forgiven once */
    size_t length;     /* of the whole head with its empty line, once it is complete */
    size_t line_count; /* field lines */
    bool has_request_line;
    bool is_head; /* the method */
    bool is_1_0;

    /* set by http_head_parse; spans point into its text */
    enum http_method method; /* HEAD reads as GET; undefined for OPTIONS */
    bool is_options;
    bool wants_keep_alive;
    struct span target;
    struct http_field *fields; /* [field_count] */
    size_t field_count;
    struct span media_type; /* of Content-Type, in lower case; empty: none */
    const char *repeated;   /* a field that may be there once only, but is not; NULL: none */
    bool has_host;
    bool has_content_length;
    bool has_transfer_encoding;
    bool is_chunked;
    bool has_authorization, has_content_type;
    bool expects_continue;
    bool expects_other;
    uint64_t content_length;
};

/*
 * Checks the new part of at[0..length), the head's bytes so far (more may follow it): line ends,
 * the form of each line, bytes that no line may hold, limits.
 *
 * HTTP_HEAD_MORE  not complete yet, call again with the same bytes and more
 * HTTP_HEAD_DONE  head->length and line_count are set
 * HTTP_HEAD_BAD   err has the reason; the connection must be closed after the answer
 * Cost: each byte is read about twice in all, however the head was cut. No allocation. Source: RFC
 * 9112 sections 2.2, 3, 5, 6; RFC 9110 sections 5.5, 5.6.2.
 */
enum http_head_state http_head_feed(struct http_head *head, const char *at, size_t length,
                                    const struct http_limits *limits, struct err *err);

/*
 * Parses a head that http_head_feed has accepted.
 *
 * text    [head->length] the head; names and the media type are turned to lower case in place
 * fields  [head->line_count] memory for head->fields; it and text must outlive the spans
 *
 * ERR_BAD_INPUT        malformed, or framing that is missing, repeated or contradictory
 * ERR_NOT_IMPLEMENTED  a method or Transfer-Encoding that this server does not know
 * ERR_TOO_LARGE        a Content-Length of more than 64 bits
 * Cost O(length). No allocation.
 * Source: RFC 9112 sections 3.2, 6, 9.3; RFC 9110 sections 7.2, 10.1.1.
 */
enum err_code http_head_parse(struct http_head *head, char *text, struct http_field *fields,
                              const struct http_limits *limits, struct err *err);

/* tchar of RFC 9110 section 5.6.2 */
bool http_is_token_byte(char c);

/* One line of a trailer section, without its CRLF: the same checks as for a field line. */
enum err_code http_head_check_field_line(const char *line, size_t length, struct err *err);

#endif
