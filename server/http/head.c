/*
 * Strict check of a request's head: see head.h.
 *
 * Why: request smuggling lives in the differences between two parsers of the same bytes. llhttp,
 * in the version that Debian 12 ships, takes bare line feeds, folded lines, repeated
 * Content-Length and more than one space in the request line; a newer one refuses some of them.
 * This file makes the daemon behave the same with each, and refuse whatever is ambiguous.
 *
 * Approach: complete lines are found with memchr('\n'); a line must end in CRLF. The first line is
 * split by its two spaces; of the others the name must be a token directly followed by a colon and
 * the value free of control bytes. The few fields that decide framing (Host, Content-Length,
 * Transfer-Encoding, Expect) are read here and nowhere else. What cannot be decided before the
 * last line (Host missing, both length fields) is decided there.
 *
 * Invariants: scanned >= line_start; no byte after the head's end is looked at; a head is never
 * longer than header_bytes_max, a target never longer than target_bytes_max.
 *
 * Dropped: checking inside llhttp's callbacks. They come after it has joined folded lines and
 * skipped spaces, so the raw bytes are gone.
 *
 * Source: RFC 9112 (2022) sections 2.2, 3, 5, 6; RFC 9110 sections 5.5, 5.6.2, 7.2, 10.1.1.
 */
#include "http/head.h"

#include "http/authority.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Room for the longest method that is looked at, two spaces and the version. */
#define REQUEST_LINE_SLACK_BYTES 32

/* A set of bytes: bit c % 64 of word c / 64. */
typedef const uint64_t byte_set[4];

#define BYTES(first, last) (~(uint64_t)0 >> (63 - ((last) - (first))) << ((first) % 64))
#define BYTE(c) ((uint64_t)1 << ((c) % 64))

/* tchar of RFC 9110 section 5.6.2 */
static byte_set token_bytes = {
    BYTES('0', '9') | BYTE('!') | BYTES('#', '\'') | BYTE('*') | BYTE('+') | BYTE('-') | BYTE('.'),
    BYTES('A', 'Z') | BYTES('a', 'z') | BYTES('^', '`') | BYTE('|') | BYTE('~')};
/* What may stand in a target: printable, and no '#'. */
static byte_set target_bytes = {BYTES('!', '?') & ~BYTE('#'), BYTES('@', '~')};
/* What may stand in a field's value: no control bytes but the tab. */
static byte_set value_bytes = {BYTES(' ', '?') | BYTE('\t'), BYTES('@', '~'), ~(uint64_t)0,
                               ~(uint64_t)0};

static bool is_in(byte_set set, char c)
{
    return set[(unsigned char)c / 64] >> ((unsigned char)c % 64) & 1;
}

#define EACH(byte) (~(uint64_t)0 / 255 * (byte))

/*
 * How many of at[0..length) are surely harmless: whole groups of eight bytes, each first..'~' and
 * no '#'. The others are looked at one by one. (Of the bits above bit 7 of each byte the lowest
 * that is set is right, and that any is set is all that counts.)
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

static bool name_is(const char *name, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(name, wanted, length) == 0;
}

static enum err_code check_method(struct http_head *head, const char *name, size_t length,
                                  struct err *err)
{
    static const struct {
        const char *name;
        enum http_method method;
    } methods[] = {{"GET", METHOD_GET},    {"HEAD", METHOD_GET},    {"POST", METHOD_POST},
                   {"PUT", METHOD_PUT},    {"PATCH", METHOD_PATCH}, {"DELETE", METHOD_DELETE},
                   {"OPTIONS", METHOD_GET}};

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (length == strlen(methods[i].name) && memcmp(name, methods[i].name, length) == 0) {
            head->method = methods[i].method;
            head->is_head = name[0] == 'H';
            head->is_options = name[0] == 'O';
            return ERR_OK;
        }
    }
    return err_set(err, ERR_NOT_IMPLEMENTED, "method '%.*s' is not one that this server knows",
                   length < 32 ? (int)length : 32, name);
}

static enum err_code check_version(struct http_head *head, const char *text, size_t length,
                                   struct err *err)
{
    if (length != 8 || memcmp(text, "HTTP/", 5) != 0 || !is_digit(text[5]) || text[6] != '.' ||
        !is_digit(text[7]))
        return err_set(err, ERR_BAD_INPUT,
                       "the request line must be a method, a target and an HTTP version, "
                       "separated by one space");
    if (text[5] != '1' || text[7] > '1')
        return err_set(err, ERR_HTTP_VERSION, "HTTP version %c.%c is not 1.0 or 1.1", text[5],
                       text[7]);
    head->is_1_0 = text[7] == '0';
    return ERR_OK;
}

enum err_code http_head_check_request_line(struct http_head *head, const char *at, size_t start,
                                           size_t end, const struct http_limits *limits,
                                           struct err *err)
{
    const char *line = at + start;
    const char *stop = at + end;
    const char *target = line;
    const char *version;

    while (target < stop && is_in(token_bytes, *target))
        target++;
    if (target == line || target == stop || *target != ' ')
        return err_set(err, ERR_BAD_INPUT, "the request line does not begin with a method");
    target++;
    version = target + count_plain(target, (size_t)(stop - target), '!');
    while (version < stop && is_in(target_bytes, *version))
        version++;
    if (version < stop && *version != ' ')
        return err_set(err, ERR_BAD_INPUT,
                       "byte 0x%02x of the request target is not allowed in a URI",
                       (unsigned char)*version);
    head->target_start = (size_t)(target - at);
    head->target_length = (size_t)(version - target);
    if (head->target_length > limits->target_bytes_max)
        return err_limit(err, ERR_TARGET_TOO_LONG, (double)limits->target_bytes_max,
                         (double)head->target_length,
                         "the request target has %zu bytes; at most %zu are taken",
                         head->target_length, limits->target_bytes_max);
    if (head->target_length == 0 || version == stop)
        return err_set(err, ERR_BAD_INPUT,
                       "the request line must be a method, a target and an HTTP version, "
                       "separated by one space");
    version++;
    if (check_version(head, version, (size_t)(stop - version), err) ||
        check_method(head, line, (size_t)(target - 1 - line), err))
        return err->code;
    head->has_request_line = true;
    return ERR_OK;
}

/* Splits a field line; the value is trimmed. */
static enum err_code split_field(const char *line, size_t length, size_t *name_length,
                                 struct span *value, struct err *err)
{
    size_t colon = 0;
    const char *start, *stop = line + length;

    if (line[0] == ' ' || line[0] == '\t')
        return err_set(err, ERR_BAD_INPUT, "a header line begins with white space (obs-fold)");
    while (colon < length && is_in(token_bytes, line[colon]))
        colon++;
    if (colon == length || line[colon] != ':')
        return err_set(err, ERR_BAD_INPUT, "a header name is not a token followed by a colon");
    if (colon == 0)
        return err_set(err, ERR_BAD_INPUT, "a header line has an empty name");
    start = line + colon + 1;
    for (start += count_plain(start, (size_t)(stop - start), ' '); start < stop; start++)
        if (!is_in(value_bytes, *start))
            return err_set(err, ERR_BAD_INPUT, "header '%.*s' holds the control byte 0x%02x",
                           colon < 64 ? (int)colon : 64, line, (unsigned char)*start);
    start = line + colon + 1;
    while (start < stop && (*start == ' ' || *start == '\t'))
        start++;
    while (stop > start && (stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    *name_length = colon;
    *value = (struct span){start, (size_t)(stop - start)};
    return ERR_OK;
}

enum err_code http_head_check_field_line(const char *line, size_t length, struct err *err)
{
    size_t name_length;
    struct span value;

    return split_field(line, length, &name_length, &value, err);
}

static enum err_code take_host(struct http_head *head, struct span value, struct err *err)
{
    if (++head->host_count > 1)
        return err_set(err, ERR_BAD_INPUT, "there is more than one Host header");
    return http_authority_check(value, "the Host header", err);
}

static enum err_code take_content_length(struct http_head *head, struct span value, struct err *err)
{
    uint64_t bytes = 0;

    if (head->has_content_length)
        return err_set(err, ERR_BAD_INPUT, "there is more than one Content-Length header");
    head->has_content_length = true;
    for (size_t i = 0; i < value.length; i++) {
        if (!is_digit(value.at[i]))
            return err_set(err, ERR_BAD_INPUT, "Content-Length is not a decimal number");
        if (bytes > (UINT64_MAX - 9) / 10)
            bytes = UINT64_MAX;
        else
            bytes = bytes * 10 + (uint64_t)(value.at[i] - '0');
    }
    if (value.length == 0)
        return err_set(err, ERR_BAD_INPUT, "Content-Length is empty");
    head->content_length = bytes;
    return ERR_OK;
}

static enum err_code take_transfer_encoding(struct http_head *head, struct span value,
                                            struct err *err)
{
    if (head->has_transfer_encoding)
        return err_set(err, ERR_BAD_INPUT, "there is more than one Transfer-Encoding header");
    head->has_transfer_encoding = true;
    if (head->is_1_0)
        return err_set(err, ERR_BAD_INPUT, "HTTP/1.0 has no Transfer-Encoding");
    if (value.length == 0)
        return err_set(err, ERR_BAD_INPUT, "Transfer-Encoding is empty");
    if (!name_is(value.at, value.length, "chunked"))
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "Transfer-Encoding '%.*s' is not taken; only chunked is",
                       value.length < 64 ? (int)value.length : 64, value.at);
    head->is_chunked = true;
    return ERR_OK;
}

static enum err_code check_field(struct http_head *head, const char *line, size_t length,
                                 const struct http_limits *limits, struct err *err)
{
    size_t name_length;
    struct span value;

    if (split_field(line, length, &name_length, &value, err))
        return err->code;
    if (++head->header_count > limits->header_count_max)
        return err_limit(err, ERR_HEADERS_TOO_LARGE, (double)limits->header_count_max,
                         (double)head->header_count, "there are more than %zu header lines",
                         limits->header_count_max);
    if (name_is(line, name_length, "host"))
        return take_host(head, value, err);
    if (name_is(line, name_length, "content-length"))
        return take_content_length(head, value, err);
    if (name_is(line, name_length, "transfer-encoding"))
        return take_transfer_encoding(head, value, err);
    if (name_is(line, name_length, "expect")) {
        if (name_is(value.at, value.length, "100-continue"))
            head->expects_continue = true;
        else
            head->expects_other = true;
    }
    return ERR_OK;
}

/* What only the end of the head can tell. */
static enum http_head_state finish(struct http_head *head, size_t length, struct err *err)
{
    if (!head->is_1_0 && head->host_count == 0) {
        err_set(err, ERR_BAD_INPUT, "the Host header is missing");
        return HTTP_HEAD_BAD;
    }
    if (head->has_content_length && head->has_transfer_encoding) {
        err_set(err, ERR_BAD_INPUT, "Transfer-Encoding and Content-Length exclude each other");
        return HTTP_HEAD_BAD;
    }
    head->length = length;
    return HTTP_HEAD_DONE;
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

/* The line that has begun but not ended: only what need not wait for its end. */
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
        err_set(err, ERR_BAD_INPUT, "the request line does not begin with a method");
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
            err_set(err, ERR_BAD_INPUT, "a line of the head ends in a bare line feed");
            return HTTP_HEAD_BAD;
        }
        head->scanned = head->line_start = end + 1;
        end--;
        if (end == start && head->has_request_line)
            return finish(head, end + 2, err);
        if (end == start && start == 0) {
            head->begin = 2;
            continue;
        }
        if (head->has_request_line
                ? check_field(head, at + start, end - start, limits, err)
                : http_head_check_request_line(head, at, start, end, limits, err))
            return HTTP_HEAD_BAD;
    }
}
