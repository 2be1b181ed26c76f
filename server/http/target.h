/*
 * Request targets: the forms of RFC 9112 section 3.2, percent-decoding, path segments, queries.
 * Decoded text lives in the request's arena; text without escapes is borrowed.
 */
#ifndef KOTA_HTTP_TARGET_H
#define KOTA_HTTP_TARGET_H

#include "base/err.h"
#include "http/arena.h"
#include "http/http.h"

#define HTTP_SEGMENTS_MAX 16

struct http_target {
    bool is_asterisk;                        /* "*": the server itself */
    struct span path;                        /* raw, begins with '/' */
    struct span query;                       /* raw, without its '?'; at is NULL: none */
    struct span segments[HTTP_SEGMENTS_MAX]; /* decoded; "/" has one empty segment */
    size_t segment_count;                    /* HTTP_SEGMENTS_MAX + 1: more than any route has */
    struct http_query_item *items;
    size_t item_count;
};

/*
 * Splits and decodes the target of a request. The scheme and authority of an absolute-form target
 * (http or https) are dropped.
 *
 * ERR_BAD_INPUT  no known form, bad percent-encoding, an encoded NUL
 * ERR_NO_MEMORY  the arena is full
 * Cost O(length). The thread that owns the arena.
 */
enum err_code http_target_parse(struct http_target *target, struct span text,
                                struct http_arena *arena, struct err *err);

/*
 * Decodes in[length] to out (at least length bytes) and sets *out_length. With plus_is_space, '+'
 * becomes a space. ERR_BAD_INPUT for "%" without two hexadecimal digits, and for "%00".
 */
enum err_code http_percent_decode(char *out, size_t *out_length, const char *in, size_t length,
                                  bool plus_is_space, struct err *err);

#endif
