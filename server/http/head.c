/*
 * The raw bytes of a request's head: see head.h. http/head_parse.c has the other half.
 *
 * Why: request smuggling lives in the differences between two readers of the same bytes. llhttp,
 * in the version that Debian 12 ships, accepts bare line feeds, folded lines and more than one
 * space in the request line; a newer one refuses some of them. After this check the daemon behaves
 * the same with each, and nothing ambiguous reaches llhttp.
 *
 * Approach: complete lines are found with memchr('\n'); a line must end in CRLF. The first one must
 * be three words with one space between them, in every other one a token must be directly followed
 * by a colon, and no value may hold a control byte. Nothing is kept of a line but that it was seen.
 * Only two facts are noted, for the answer to a refused head: HEAD, and HTTP/1.0.
 *
 * Invariants: scanned >= line_start; no byte after the head's end is read; a head is never longer
 * than header_bytes_max, a target never longer than target_bytes_max.
 *
 * Dropped: checking this inside llhttp's callbacks. They come after it has joined folded lines and
 * skipped spaces, so the raw bytes are gone.
 *
 * Source: RFC 9112 (2022) sections 2.2, 3, 5; RFC 9110 sections 5.5, 5.6.2.
 */
#include "http/head.h"

#include <stdint.h>
#include <string.h>

/* No registered method is longer. */
#define METHOD_BYTES_MAX 20
/*
 * Room for such a method, two spaces, the version and CRLF: a line that is accepted once it is
 * complete was not too long before.
 */
#define REQUEST_LINE_SLACK_BYTES 32

/* A set of bytes: bit c % 64 of word c / 64. */
typedef const uint64_t byte_set[4];

#define BYTES(first, last) (~(uint64_t)0 >> (63 - ((last) - (first))) << ((first) % 64))
#define BYTE(c) ((uint64_t)1 << ((c) % 64))

/* tchar of RFC 9110 section 5.6.2 */
static byte_set token_bytes = {
    BYTES('0', '9') | BYTE('!') | BYTES('#', '\'') | BYTE('*') | BYTE('+') | BYTE('-') | BYTE('.'),
    BYTES('A', 'Z') | BYTES('a', 'z') | BYTES('^', '`') | BYTE('|') | BYTE('~')};
/* Allowed in a target: printable, and no '#'. */
static byte_set target_bytes = {BYTES('!', '?') & ~BYTE('#'), BYTES('@', '~')};
/* Allowed in a field's value: no control bytes but the tab. */
static byte_set value_bytes = {BYTES(' ', '?') | BYTE('\t'), BYTES('@', '~'), ~(uint64_t)0,
                               ~(uint64_t)0};

static bool is_in(byte_set set, char c)
{
    return set[(unsigned char)c / 64] >> ((unsigned char)c % 64) & 1;
}

#define EACH(byte) (~(uint64_t)0 / 255 * (byte))

/*
 * How many of at[0..length) are surely harmless: whole groups of eight bytes, each first..'~' and
 * no '#'. The others are checked one by one. (Of the bits above bit 7 of each byte the lowest that
 * is set is right, and that any is set is all that counts.)
 */
static size_t count_plain(const char *at, size_t length, unsigned char first)
{
    size_t used = 0;

    for (; length - used >= 8; used += 8) {
        uint64_t x, hash;

        memcpy(&x, at + used, 8);
        hash = x ^ EACH('#');
        if ((x | (x - EACH(first)) | (x + EACH(1)) | (hash - EACH(1))) & EACH(0x80))
            break;
    }
    return used;
}

bool http_is_token_byte(char c)
{
    return is_in(token_bytes, c);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static enum err_code check_version(struct http_head *head, const char *text, size_t length,
                                   struct err *err)
{
    if (length != 8 || memcmp(text, "HTTP/", 5) != 0 || !is_digit(text[5]) || text[6] != '.' ||
        !is_digit(text[7]))
        return err_set(err, ERR_BAD_REQUEST,
                       "the request line must be a method, a target and an HTTP version, "
                       "separated by one space");
    if (text[5] != '1' || text[7] > '1')
        return err_set(err, ERR_HTTP_VERSION, "HTTP version %c.%c is not 1.0 or 1.1", text[5],
                       text[7]);
    head->is_1_0 = text[7] == '0';
    return ERR_OK;
}

/* "METHOD SP target SP HTTP/1.x" and nothing else. */
static enum err_code check_request_line(struct http_head *head, const char *line, const char *stop,
                                        const struct http_limits *limits, struct err *err)
{
    const char *target = line;
    const char *version;
    size_t target_length;

    while (target < stop && is_in(token_bytes, *target))
        target++;
    if (target == line || target == stop || *target != ' ')
        return err_set(err, ERR_BAD_REQUEST, "the request line does not begin with a method");
    if (target - line > METHOD_BYTES_MAX)
        return err_set(err, ERR_NOT_IMPLEMENTED, "method '%.*s…' is not one that this server knows",
                       METHOD_BYTES_MAX, line);
    head->is_head = target - line == 4 && memcmp(line, "HEAD", 4) == 0;
    target++;
    version = target + count_plain(target, (size_t)(stop - target), '!');
    while (version < stop && is_in(target_bytes, *version))
        version++;
    if (version < stop && *version != ' ')
        return err_set(err, ERR_BAD_REQUEST,
                       "byte 0x%02x of the request target is not allowed in a URI",
                       (unsigned char)*version);
    target_length = (size_t)(version - target);
    if (target_length > limits->target_bytes_max)
        return err_limit(err, ERR_TARGET_TOO_LONG, (double)limits->target_bytes_max,
                         (double)target_length,
                         "the request target has %zu bytes; at most %zu are accepted",
                         target_length, limits->target_bytes_max);
    if (target_length == 0 || version == stop)
        return err_set(err, ERR_BAD_REQUEST,
                       "the request line must be a method, a target and an HTTP version, "
                       "separated by one space");
    version++;
    if (check_version(head, version, (size_t)(stop - version), err))
        return err->code;
    head->has_request_line = true;
    return ERR_OK;
}

enum err_code http_head_check_field_line(const char *line, size_t length, struct err *err)
{
    size_t colon = 0;
    const char *at, *stop = line + length;

    if (line[0] == ' ' || line[0] == '\t')
        return err_set(err, ERR_BAD_REQUEST, "a header line begins with white space (obs-fold)");
    while (colon < length && is_in(token_bytes, line[colon]))
        colon++;
    if (colon == length || line[colon] != ':')
        return err_set(err, ERR_BAD_REQUEST, "a header name is not a token followed by a colon");
    if (colon == 0)
        return err_set(err, ERR_BAD_REQUEST, "a header line has an empty name");
    at = line + colon + 1;
    for (at += count_plain(at, (size_t)(stop - at), ' '); at < stop; at++)
        if (!is_in(value_bytes, *at))
            return err_set(err, ERR_BAD_REQUEST, "header '%.*s' holds the control byte 0x%02x",
                           colon < 64 ? (int)colon : 64, line, (unsigned char)*at);
    return ERR_OK;
}

static enum err_code check_field_line(struct http_head *head, const char *line, size_t length,
                                      const struct http_limits *limits, struct err *err)
{
    if (http_head_check_field_line(line, length, err))
        return err->code;
    if (++head->line_count > limits->header_count_max)
        return err_limit(err, ERR_HEADERS_TOO_LARGE, (double)limits->header_count_max,
                         (double)head->line_count, "there are more than %zu header lines",
                         limits->header_count_max);
    return ERR_OK;
}

static enum http_head_state too_long(const struct http_head *head, size_t length,
                                     const struct http_limits *limits, struct err *err)
{
    if (head->has_request_line)
        err_limit(err, ERR_HEADERS_TOO_LARGE, (double)limits->header_bytes_max, (double)length,
                  "request line and headers have more than %zu bytes", limits->header_bytes_max);
    else
        err_limit(err, ERR_TARGET_TOO_LONG, (double)limits->target_bytes_max, (double)length,
                  "the request target has more than %zu bytes", limits->target_bytes_max);
    return HTTP_HEAD_BAD;
}

/* The line that has begun but not ended: only checks that need not wait for its end. */
static enum http_head_state check_open_line(const struct http_head *head, const char *at,
                                            size_t length, const struct http_limits *limits,
                                            struct err *err)
{
    size_t line_bytes = length - head->line_start;

    if (length > limits->header_bytes_max)
        return too_long(head, length, limits, err);
    if (head->has_request_line || line_bytes == 0)
        return HTTP_HEAD_MORE;
    if (line_bytes > limits->target_bytes_max + REQUEST_LINE_SLACK_BYTES)
        return too_long(head, length, limits, err);
    if (!is_in(token_bytes, at[head->line_start]) && at[head->line_start] != '\r') {
        err_set(err, ERR_BAD_REQUEST, "the request line does not begin with a method");
        return HTTP_HEAD_BAD;
    }
    return HTTP_HEAD_MORE;
}

enum http_head_state http_head_feed(struct http_head *head, const char *at, size_t length,
                                    const struct http_limits *limits, struct err *err)
{
    for (;;) {
        const char *newline = memchr(at + head->scanned, '\n', length - head->scanned);
        size_t start = head->line_start, end;

        if (!newline) {
            head->scanned = length;
            return check_open_line(head, at, length, limits, err);
        }
        end = (size_t)(newline - at);
        if (end + 1 > limits->header_bytes_max)
            return too_long(head, end + 1, limits, err);
        if (end == start || at[end - 1] != '\r') {
            err_set(err, ERR_BAD_REQUEST, "a line of the head ends in a bare line feed");
            return HTTP_HEAD_BAD;
        }
        head->scanned = head->line_start = end + 1;
        end--;
        if (end == start && head->has_request_line)
            break;
        if (end == start && start == 0) {
            head->begin = 2;
            continue;
        }
        if (head->has_request_line ? check_field_line(head, at + start, end - start, limits, err)
                                   : check_request_line(head, at + start, at + end, limits, err))
            return HTTP_HEAD_BAD;
    }
    head->length = head->scanned;
    return HTTP_HEAD_DONE;
}
