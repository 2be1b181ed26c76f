/*
 * Putting an answer together: see http.h.
 *
 * The body grows by doubling in memory that the request keeps for the next one on its loop while
 * it is small, so a short answer allocates nothing. Failure is recorded, not returned: a handler
 * that ran out of memory half-way leaves a reply that is answered 503, never half a document. A
 * large body is charged to a budget of the server until it is sent, since it waits for its reader.
 *
 * Headers are kept as text. A control byte in a value becomes a space, so that text from outside
 * can never begin a header of its own.
 *
 * Problem documents follow RFC 9457; type is the paragraph of the error's code in /docs/errors.
 */
#include "http/reply.h"

#include "base/check.h"
#include "base/text/integer_text.h"
#include "base/text/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_FIRST_BYTES ((size_t)1024)
#define BODY_KEPT_BYTES ((size_t)16 * 1024)

void http_reply_reset(struct http_reply *reply)
{
    if (reply->body_capacity > BODY_KEPT_BYTES)
        http_reply_free(reply);
    reply->status = 200;
    reply->content_type = NULL;
    reply->static_body = NULL;
    reply->static_length = 0;
    reply->body_length = 0;
    reply->is_failed = reply->is_made = reply->is_endless = false;
    reply->headers_length = 0;
    reply->log_only[0] = '\0';
}

void http_reply_free(struct http_reply *reply)
{
    if (reply->charged)
        http_budget_give(reply->budget, reply->charged);
    reply->charged = 0;
    free(reply->body);
    reply->body = NULL;
    reply->body_length = reply->body_capacity = 0;
}

void http_reply_made(struct http_reply *reply)
{
    reply->is_made = true;
}

void http_reply_lose(struct http_reply *reply)
{
    reply->is_made = reply->is_failed = true;
}

void http_reply_status(struct http_reply *reply, int status)
{
    CHECK(status >= 200 && status <= 599);
    reply->status = status;
}

void http_reply_header(struct http_reply *reply, const char *name, const char *format, ...)
{
    char *at = reply->headers + reply->headers_length;
    size_t room = sizeof reply->headers - reply->headers_length;
    int name_length = snprintf(at, room, "%s: ", name);
    int value_length;
    va_list args;

    if (name_length < 0 || (size_t)name_length >= room) {
        reply->is_failed = true;
        return;
    }
    va_start(args, format);
    value_length = vsnprintf(at + name_length, room - (size_t)name_length, format, args);
    va_end(args);
    if (value_length < 0 || (size_t)name_length + (size_t)value_length + 2 >= room) {
        reply->is_failed = true;
        return;
    }
    at += name_length;
    for (int i = 0; i < value_length; i++)
        if ((unsigned char)at[i] < 0x20 || at[i] == 0x7f)
            at[i] = ' ';
    memcpy(at + value_length, "\r\n", 2);
    reply->headers_length += (size_t)name_length + (size_t)value_length + 2;
}

void http_reply_header_number(struct http_reply *reply, const char *name, uint64_t value)
{
    char *at = reply->headers + reply->headers_length;
    size_t name_length = strlen(name);

    if (name_length + INTEGER_TEXT_MAX + 4 >= sizeof reply->headers - reply->headers_length) {
        reply->is_failed = true;
        return;
    }
    memcpy(at, name, name_length);
    at += name_length;
    memcpy(at, ": ", 2);
    at += 2;
    at += integer_text(value, at);
    memcpy(at, "\r\n", 2);
    reply->headers_length = (size_t)(at + 2 - reply->headers);
}

void http_reply_content_type(struct http_reply *reply, const char *media_type)
{
    reply->content_type = media_type;
}

char *http_reply_reserve(struct http_reply *reply, size_t bytes)
{
    size_t capacity = reply->body_capacity ? reply->body_capacity : BODY_FIRST_BYTES;
    size_t charge;
    char *body;

    reply->static_body = NULL;
    if (reply->body && bytes <= reply->body_capacity - reply->body_length)
        return reply->body + reply->body_length;
    if (bytes > HTTP_REPLY_BODY_BYTES_MAX - reply->body_length) {
        reply->is_failed = true;
        return NULL;
    }
    if (reply->body_length == 0 && bytes > BODY_KEPT_BYTES)
        capacity = bytes; /* the caller knows the time */
    while (capacity - reply->body_length < bytes)
        capacity *= 2;
    charge = capacity > BODY_KEPT_BYTES ? capacity - reply->charged : 0;
    if (charge && !http_budget_take(reply->budget, charge)) {
        reply->is_failed = true;
        return NULL;
    }
    body = realloc(reply->body, capacity);
    if (!body) {
        if (charge)
            http_budget_give(reply->budget, charge);
        reply->is_failed = true;
        return NULL;
    }
    reply->charged += charge;
    reply->body = body;
    reply->body_capacity = capacity;
    return body + reply->body_length;
}

void http_reply_advance(struct http_reply *reply, size_t bytes)
{
    CHECK(bytes <= reply->body_capacity - reply->body_length);
    reply->body_length += bytes;
}

void http_reply_append(struct http_reply *reply, const void *bytes, size_t length)
{
    char *at;

    if (length == 0)
        return;
    at = http_reply_reserve(reply, length);
    if (!at)
        return;
    memcpy(at, bytes, length);
    http_reply_advance(reply, length);
}

void http_reply_static(struct http_reply *reply, const void *bytes, size_t length)
{
    reply->body_length = 0;
    reply->static_body = bytes;
    reply->static_length = length;
}

void http_reply_length_only(struct http_reply *reply, size_t length)
{
    http_reply_static(reply, "", length);
}

const void *http_reply_body(const struct http_reply *reply, size_t *length)
{
    *length = reply->static_body ? reply->static_length : reply->body_length;
    return reply->static_body ? reply->static_body : reply->body;
}

const char *http_reply_type(const struct http_reply *reply)
{
    return reply->content_type;
}

bool http_reply_has_header(const struct http_reply *reply, const char *name)
{
    const char *at = reply->headers, *end = at + reply->headers_length;
    size_t length = strlen(name);

    for (; at < end; at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1)
        if ((size_t)(end - at) > length && at[length] == ':' && memcmp(at, name, length) == 0)
            return true;
    return false;
}

void http_reply_replace_body(struct http_reply *reply, const void *bytes, size_t length)
{
    reply->static_body = NULL;
    reply->body_length = 0;
    http_reply_append(reply, bytes, length);
}

/* A number as JSON has it: integers plainly, anything not finite as null. */
static void append_number(struct http_reply *reply, double value)
{
    char text[40];
    int length;

    if (!isfinite(value))
        length = snprintf(text, sizeof text, "null");
    else if (value == floor(value) && fabs(value) < 9007199254740992.0)
        length = snprintf(text, sizeof text, "%.0f", value);
    else
        length = snprintf(text, sizeof text, "%.17g", value);
    http_reply_append(reply, text, (size_t)length);
}

static void append_text(struct http_reply *reply, const char *text)
{
    http_reply_append(reply, text, strlen(text));
}

static void append_string(struct http_reply *reply, const char *text)
{
    char escaped[2048];
    size_t length = json_text_escape(escaped, sizeof escaped, text, strlen(text));

    append_text(reply, "\"");
    http_reply_append(reply, escaped, length);
    append_text(reply, "\"");
}

/* A device that is not there will not be there in a second either. */
static void add_problem_headers(struct http_reply *reply, enum err_code code, unsigned retry_in_s)
{
    if (reply->status == 401)
        http_reply_header(reply, "WWW-Authenticate", "Bearer");
    if (reply->status == 429 || (reply->status == 503 && code != ERR_NO_DEVICE))
        http_reply_header_number(reply, "Retry-After", retry_in_s);
}

/* Does the message name the field at fault: the last word of the pointer that is no index? */
static bool names_field(const struct err *err)
{
    const char *end = err->pointer + strlen(err->pointer), *start;
    char name[sizeof err->pointer];

    for (;; end = start - 1) {
        for (start = end; start > err->pointer && start[-1] != '/'; start--)
            continue;
        if (start == err->pointer || strspn(start, "0123456789") < (size_t)(end - start))
            break;
    }
    snprintf(name, sizeof name, "%.*s", (int)(end - start), start);
    return strstr(err->msg, name) != NULL;
}

/* What an error is about that names no place within it; NULL: the state of the daemon. */
static const char *place_of(const struct err *err)
{
    if (err->pointer[0])
        return err->pointer;
    switch (err->code) {
    case ERR_BAD_INPUT:
    case ERR_BAD_JSON:
    case ERR_MISSING:
    case ERR_BODY_TOO_LARGE:
    case ERR_TOO_MANY_ITEMS: /* of a binary batch */
    case ERR_UNPROCESSABLE:
    case ERR_BODY_UNKNOWN: /* where it is a parameter of the path */
        return "body";
    case ERR_PATCH_UNKNOWN:
        return "patch";
    case ERR_WATCH_UNKNOWN:
        return "watch";
    case ERR_LAYER_KIND:
        return "layer";
    case ERR_UNKNOWN_PARAMETER:
        return "query";
    case ERR_METHOD_NOT_ALLOWED:
        return "method";
    case ERR_NOT_FOUND:
        return "path";
    default:
        return NULL;
    }
}

/* The message, with the field in front where it does not name it itself. */
static void append_detail(struct http_reply *reply, const struct err *err)
{
    char detail[sizeof err->pointer + sizeof err->msg + 2];

    if (!err->pointer[0] || names_field(err)) {
        append_string(reply, err->msg);
        return;
    }
    snprintf(detail, sizeof detail, "%s%s%s", err->pointer,
             strncmp(err->msg, "is missing", 10) == 0 ? " " : ": ", err->msg);
    append_string(reply, detail);
}

void http_reply_log_only(struct http_reply *reply, const struct err *err)
{
    memcpy(reply->log_only, err->log_only, sizeof reply->log_only);
}

void http_reply_problem(struct http_reply *reply, const struct err *err)
{
    const char *place = place_of(err);
    char number[16];

    http_reply_reset(reply);
    reply->status = err_http_status(err->code);
    reply->content_type = "application/problem+json";
    http_reply_log_only(reply, err);
    add_problem_headers(reply, err->code, err->retry_in_s ? err->retry_in_s : 1);
    append_text(reply, "{\"type\":\"/docs/errors#");
    append_text(reply, err_word(err->code));
    append_text(reply, "\",\"title\":");
    append_string(reply, err_title(err->code));
    snprintf(number, sizeof number, "%d", reply->status);
    append_text(reply, ",\"status\":");
    append_text(reply, number);
    append_text(reply, ",\"code\":\"");
    append_text(reply, err_word(err->code));
    append_text(reply, "\",\"detail\":");
    append_detail(reply, err);
    if (place) {
        append_text(reply, ",\"errors\":[{\"pointer\":");
        append_string(reply, place);
        append_text(reply, ",\"detail\":");
        append_string(reply, err->msg);
        append_text(reply, "}]");
    }
    if (err->has_limit) {
        append_text(reply, ",\"limit\":");
        append_number(reply, err->limit);
        append_text(reply, ",\"got\":");
        append_number(reply, err->got);
    }
    append_text(reply, "}");
}
