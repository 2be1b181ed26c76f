/*
 * Answers: HTTP/1.1 by llhttp, with limits.
 *
 * llhttp splits; this file decides what is accepted. The peer is not trusted: heads, header counts,
 * early answers and bodies have limits, and the announced length is checked before anything is
 * kept. An ordinary answer must have a length, or be chunked: one that ends with the connection
 * cannot be distinguished from one that was cut. Only a stream of events may.
 *
 * Invariant: after an error nothing is fed any more; the connection is closed.
 *
 * Source: RFC 9112; llhttp 8.
 */
#include "client/lib/response.h"

#include "client/lib/error.h"

#include <string.h>
#include <strings.h>

static struct response *of(llhttp_t *parser)
{
    return parser->data;
}

static int on_message_begin(llhttp_t *parser)
{
    struct response *response = of(parser);

    text_clear(&response->headers);
    response->header_count = 0;
    return 0;
}

static int keep(struct response *response, const char *bytes, size_t length)
{
    if (response->has_head) /* a trailer */
        return 0;
    if (text_add(&response->headers, bytes, length))
        return 0;
    error_set(&response->error, KOTA_ERROR_MEMORY, "no memory for the answer's head");
    return -1;
}

static int on_header_piece(llhttp_t *parser, const char *at, size_t length)
{
    return keep(of(parser), at, length);
}

static int on_field_complete(llhttp_t *parser)
{
    struct response *response = of(parser);

    if (!response->has_head && ++response->header_count > RESPONSE_HEADERS_MAX) {
        error_set(&response->error, KOTA_ERROR_TOO_LONG, "the answer has more than %d headers",
                  RESPONSE_HEADERS_MAX);
        return -1;
    }
    return keep(response, "", 1);
}

static int on_value_complete(llhttp_t *parser)
{
    return keep(of(parser), "", 1);
}

static bool has_no_body(const struct response *response, int status)
{
    return response->is_head_request || status == 204 || status == 304;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct response *response = of(parser);
    int status = parser->status_code;
    bool is_chunked = (parser->flags & F_CHUNKED) != 0;
    bool has_length = (parser->flags & F_CONTENT_LENGTH) != 0;

    if (status < 200) {
        if (status == 101 || ++response->early_count > RESPONSE_EARLY_MAX) {
            error_set(&response->error, KOTA_ERROR_PROTOCOL, "an answer %d was not asked for",
                      status);
            return -1;
        }
        return 1; /* it has no body, with any fields: RFC 9112, section 6.3 */
    }
    response->has_head = true;
    response->status = status;
    if (has_no_body(response, status))
        return 1;
    if (status >= 300)
        response->is_stream = false;
    if (!response->is_stream && !is_chunked && !has_length) {
        error_set(&response->error, KOTA_ERROR_PROTOCOL, "the answer does not say its length");
        return -1;
    }
    if (has_length && parser->content_length > response->body_bytes_max && !response->is_stream) {
        error_set(&response->error, KOTA_ERROR_TOO_LONG,
                  "the answer has %llu bytes, at most %zu are taken",
                  (unsigned long long)parser->content_length, response->body_bytes_max);
        response->error.has_limit = true;
        response->error.limit = (double)response->body_bytes_max;
        response->error.got = (double)parser->content_length;
        return -1;
    }
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
    struct response *response = of(parser);

    if (response->is_stream) {
        response->is_left = !response->take(response->context, at, length);
        return response->is_left ? -1 : 0;
    }
    if (length > response->body_bytes_max - response->body.length) {
        error_set(&response->error, KOTA_ERROR_TOO_LONG, "the answer is longer than %zu bytes",
                  response->body_bytes_max);
        response->error.has_limit = true;
        response->error.limit = (double)response->body_bytes_max;
        response->error.got = (double)(response->body.length + length);
        return -1;
    }
    if (text_add(&response->body, at, length))
        return 0;
    error_set(&response->error, KOTA_ERROR_MEMORY, "no memory for an answer of %zu bytes",
              response->body.length + length);
    return -1;
}

static int on_message_complete(llhttp_t *parser)
{
    struct response *response = of(parser);

    if (!response->has_head) /* 1xx: the answer is still to come */
        return 0;
    response->is_done = true;
    response->keeps_alive = llhttp_should_keep_alive(parser);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_message_begin,
    .on_header_field = on_header_piece,
    .on_header_value = on_header_piece,
    .on_header_field_complete = on_field_complete,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void response_begin(struct response *response)
{
    error_clear(&response->error);
    llhttp_init(&response->parser, HTTP_RESPONSE, &settings);
    response->parser.data = response;
}

bool response_feed(struct response *response, const char *bytes, size_t length)
{
    bool was_in_head = !response->has_head;
    enum llhttp_errno code;

    if (length == 0)
        return true;
    response->has_begun = true;
    code = llhttp_execute(&response->parser, bytes, length);
    if (code == HPE_PAUSED && response->is_done) {
        const char *end = llhttp_get_error_pos(&response->parser);

        if (end && end < bytes + length) /* more than one answer to one question */
            response->keeps_alive = false;
        return true;
    }
    if (response->error.kind || response->is_left)
        return false;
    if (code != HPE_OK) {
        const char *reason = llhttp_get_error_reason(&response->parser);

        return error_set(&response->error, KOTA_ERROR_PROTOCOL, "the answer is not HTTP/1.1: %s",
                         reason && *reason ? reason : llhttp_errno_name(code));
    }
    if (was_in_head && !response->has_head) {
        response->head_bytes += length;
        if (response->head_bytes > RESPONSE_HEAD_BYTES_MAX)
            return error_set(&response->error, KOTA_ERROR_TOO_LONG,
                             "the answer's head is longer than %d bytes", RESPONSE_HEAD_BYTES_MAX);
    }
    return true;
}

bool response_end(struct response *response)
{
    if (response->is_done)
        return true;
    if (response->has_head && response->is_stream && !(response->parser.flags & F_CHUNKED)) {
        response->is_done = true;
        return true;
    }
    return false;
}

void response_free(struct response *response)
{
    text_free(&response->headers);
    text_free(&response->body);
}

const char *headers_find(const struct text *headers, const char *name)
{
    const char *at = headers->at, *end = at + headers->length;

    while (headers->at && at < end) {
        const char *value = at + strlen(at) + 1;

        if (value >= end)
            break;
        if (strcasecmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}
