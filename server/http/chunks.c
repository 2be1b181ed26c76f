/*
 * Chunked bodies: see chunks.h.
 *
 * Why not llhttp: its older versions take a bare line feed after a chunk's size or in trailers, 8.1
 * refuses a second extension and quoted pairs, which RFC 9112 requires to be ignored, and none of
 * them bounds extensions or trailers. A proxy in front that reads such bytes in another way would
 * see another end of the request.
 *
 * Approach: a byte-wise state machine over the framing; a chunk's data is handed out in one step.
 * Extensions must follow the grammar, bad white space included, and are ignored. Trailer lines are
 * checked like header lines and ignored. What is not body may grow to header_bytes_max, plus 16
 * bytes for each byte of body: honest one-byte chunks pass, endless extensions do not.
 *
 * Source: RFC 9112 (2022) sections 7.1, 7.1.1, 7.1.2; RFC 9110 sections 5.6.2-5.6.4, 6.5.1.
 */
#include "http/chunks.h"

#include "http/head.h"
#include "base/text/hex.h"

enum state {
    AT_SIZE, /* the first is 0, the zeroed state */
    AT_GAP,  /* white space after a size or an extension: a semicolon must follow */
    AT_NAME, /* the first byte of an extension's name, or white space before it */
    AT_IN_NAME,
    AT_NAME_GAP, /* white space after a name: '=' or a semicolon must follow */
    AT_VALUE,    /* the first byte of a value, or white space before it */
    AT_IN_VALUE,
    AT_IN_QUOTES,
    AT_QUOTED_PAIR,
    AT_QUOTES_END,
    AT_SIZE_LF,
    AT_DATA,
    AT_DATA_CR,
    AT_DATA_LF,
    AT_TRAILER,
    AT_TRAILER_LF
};

#define SIZE_DIGITS_MAX 15
#define FRAME_BYTES_PER_BODY_BYTE 16

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static enum err_code take_size_byte(struct http_chunks *chunks, char c, struct err *err)
{
    int value = hex_value(c);

    if (value >= 0) {
        if (++chunks->digits > SIZE_DIGITS_MAX)
            return err_set(err, ERR_BAD_REQUEST, "a chunk size has more than %d digits",
                           SIZE_DIGITS_MAX);
        chunks->chunk_bytes = chunks->chunk_bytes * 16 + (uint64_t)value;
        return ERR_OK;
    }
    if (chunks->digits == 0 || (c != ';' && c != '\r' && !is_blank(c)))
        return err_set(err, ERR_BAD_REQUEST, "a chunk size is not a hexadecimal number");
    chunks->state = c == ';' ? AT_NAME : c == '\r' ? AT_SIZE_LF : AT_GAP;
    return ERR_OK;
}

/* The state after a complete name or value, or -1. */
static int after_part(char c, enum state gap)
{
    return c == ';' ? AT_NAME : c == '\r' ? AT_SIZE_LF : is_blank(c) ? (int)gap : -1;
}

/* Is it allowed between quotes, apart from the backslash and the quote? qdtext of RFC 9110. */
static bool is_quotable(char c)
{
    unsigned char byte = (unsigned char)c;

    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

/* The state after byte c of an extension; -1: not in the grammar. */
static int extension_next(int state, char c)
{
    switch (state) {
    case AT_GAP:
        return c == ';' ? AT_NAME : is_blank(c) ? AT_GAP : -1;
    case AT_NAME:
        return http_is_token_byte(c) ? AT_IN_NAME : is_blank(c) ? AT_NAME : -1;
    case AT_IN_NAME:
        if (http_is_token_byte(c))
            return AT_IN_NAME;
        return c == '=' ? AT_VALUE : after_part(c, AT_NAME_GAP);
    case AT_NAME_GAP:
        return c == '=' ? AT_VALUE : c == ';' ? AT_NAME : is_blank(c) ? AT_NAME_GAP : -1;
    case AT_VALUE:
        if (is_blank(c))
            return AT_VALUE;
        return c == '"' ? AT_IN_QUOTES : http_is_token_byte(c) ? AT_IN_VALUE : -1;
    case AT_IN_VALUE:
        return http_is_token_byte(c) ? AT_IN_VALUE : after_part(c, AT_GAP);
    case AT_IN_QUOTES:
        if (c == '"' || c == '\\')
            return c == '"' ? AT_QUOTES_END : AT_QUOTED_PAIR;
        return is_quotable(c) ? AT_IN_QUOTES : -1;
    case AT_QUOTED_PAIR:
        return is_quotable(c) ? AT_IN_QUOTES : -1;
    default:
        return after_part(c, AT_GAP);
    }
}

static enum err_code take_extension_byte(struct http_chunks *chunks, char c, struct err *err)
{
    int next = extension_next(chunks->state, c);

    if (next < 0)
        return err_set(err, ERR_BAD_REQUEST, "a chunk extension is malformed at byte 0x%02x",
                       (unsigned char)c);
    chunks->state = next;
    return ERR_OK;
}

static enum err_code take_size_end(struct http_chunks *chunks, uint64_t body_bytes_max,
                                   struct err *err)
{
    chunks->digits = 0;
    chunks->body_bytes += chunks->chunk_bytes;
    if (chunks->body_bytes > body_bytes_max)
        return err_limit(err, ERR_BODY_TOO_LARGE, (double)body_bytes_max,
                         (double)chunks->body_bytes, "the body has more than %llu bytes",
                         (unsigned long long)body_bytes_max);
    chunks->state = chunks->chunk_bytes ? AT_DATA : AT_TRAILER;
    return ERR_OK;
}

static enum err_code take_trailer_byte(struct http_chunks *chunks, char c,
                                       const struct http_limits *limits, struct err *err)
{
    if (c == '\r') {
        chunks->state = AT_TRAILER_LF;
        return ERR_OK;
    }
    if (c == '\n')
        return err_set(err, ERR_BAD_REQUEST, "a trailer line ends in a bare line feed");
    if (chunks->line_length == sizeof chunks->line)
        return err_limit(err, ERR_HEADERS_TOO_LARGE, (double)sizeof chunks->line,
                         (double)sizeof chunks->line + 1, "a trailer line has more than %zu bytes",
                         sizeof chunks->line);
    if (chunks->line_length == 0 && ++chunks->trailer_count > limits->header_count_max)
        return err_limit(err, ERR_HEADERS_TOO_LARGE, (double)limits->header_count_max,
                         (double)chunks->trailer_count, "there are more than %zu trailer lines",
                         limits->header_count_max);
    chunks->line[chunks->line_length++] = c;
    return ERR_OK;
}

static enum err_code take_trailer_end(struct http_chunks *chunks, struct err *err)
{
    if (chunks->line_length == 0) {
        chunks->is_done = true;
        return ERR_OK;
    }
    if (http_head_check_field_line(chunks->line, chunks->line_length, err))
        return err->code;
    chunks->line_length = 0;
    chunks->state = AT_TRAILER;
    return ERR_OK;
}

static enum err_code take_line_feed(struct http_chunks *chunks, char c, uint64_t body_bytes_max,
                                    struct err *err)
{
    if (c != '\n')
        return err_set(err, ERR_BAD_REQUEST, "a carriage return without line feed in the framing");
    if (chunks->state == AT_SIZE_LF)
        return take_size_end(chunks, body_bytes_max, err);
    if (chunks->state == AT_TRAILER_LF)
        return take_trailer_end(chunks, err);
    chunks->state = AT_SIZE;
    return ERR_OK;
}

static enum err_code take_byte(struct http_chunks *chunks, char c, uint64_t body_bytes_max,
                               const struct http_limits *limits, struct err *err)
{
    if (chunks->state >= AT_GAP && chunks->state <= AT_QUOTES_END)
        return take_extension_byte(chunks, c, err);
    switch (chunks->state) {
    case AT_SIZE:
        return take_size_byte(chunks, c, err);
    case AT_DATA_CR:
        if (c != '\r')
            return err_set(err, ERR_BAD_REQUEST, "a chunk is longer than its size says");
        chunks->state = AT_DATA_LF;
        return ERR_OK;
    case AT_TRAILER:
        return take_trailer_byte(chunks, c, limits, err);
    default:
        return take_line_feed(chunks, c, body_bytes_max, err);
    }
}

enum err_code http_chunks_feed(struct http_chunks *chunks, const char *at, size_t length,
                               uint64_t body_bytes_max, const struct http_limits *limits,
                               size_t *used, struct span *data, struct err *err)
{
    size_t i = 0;

    *data = (struct span){at, 0};
    while (i < length && !chunks->is_done) {
        if (chunks->state == AT_DATA) {
            uint64_t some = length - i;

            if (some > chunks->chunk_bytes)
                some = chunks->chunk_bytes;
            *data = (struct span){at + i, (size_t)some};
            i += (size_t)some;
            chunks->chunk_bytes -= some;
            if (chunks->chunk_bytes == 0)
                chunks->state = AT_DATA_CR;
            break;
        }
        if (++chunks->frame_bytes >
            limits->header_bytes_max + FRAME_BYTES_PER_BODY_BYTE * chunks->body_bytes)
            return err_set(err, ERR_BAD_REQUEST, "the chunks hold more framing than body");
        if (take_byte(chunks, at[i], body_bytes_max, limits, err))
            return err->code;
        i++;
    }
    *used = i;
    return ERR_OK;
}
