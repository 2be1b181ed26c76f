/*
 * Requests.
 *
 * A request is checked while it is put together, and the first thing that is wrong with it stays in
 * it: the caller sees it in the answer, and nothing of it is sent. Request smuggling is prevented
 * here: methods, paths, header names and values take no control characters, and only the library
 * sets the framing of a body.
 */
#include "client/lib/request.h"

#include "client/lib/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

void request_fail(struct kota_request *request, const char *format, ...)
{
    char message[512];
    va_list args;

    if (!request || request->error.kind)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    error_set(&request->error, KOTA_ERROR_USAGE, "%s", message);
}

const struct kota_error *request_error(struct kota_request *request)
{
    if (!request->error.kind &&
        (request->path.is_broken || request->headers.is_broken || request->own_body.is_broken))
        error_set(&request->error, KOTA_ERROR_MEMORY, "no memory for the request");
    return request->error.kind ? &request->error : NULL;
}

/* RFC 9110, section 5.6.2. */
static bool is_token(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at >= 127 || strchr("\"(),/:;<=>?@[\\]{}", *at))
            return false;
    return *text != '\0';
}

static bool is_visible(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 127)
            return false;
    return true;
}

struct kota_request *kota_request_new(const char *method, const char *path)
{
    struct kota_request *request = calloc(1, sizeof(*request));

    if (!request)
        return NULL;
    error_clear(&request->error);
    request->accept = "application/json";
    if (!method || strlen(method) >= sizeof(request->method) || !is_token(method) ||
        strcmp(method, "CONNECT") == 0) {
        request_fail(request, "'%.40s' is no method", method ? method : "NULL");
        return request;
    }
    strcpy(request->method, method);
    if (!path || path[0] != '/' || !is_visible(path, strlen(path)) || strchr(path, '#')) {
        request_fail(request, "'%.200s' is no path: it begins with '/' and is visible ASCII",
                     path ? path : "NULL");
        return request;
    }
    text_adds(&request->path, path);
    request->has_query = strchr(path, '?') != NULL;
    request->may_repeat =
        strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0;
    return request;
}

void kota_request_free(struct kota_request *request)
{
    if (!request)
        return;
    text_free(&request->path);
    text_free(&request->headers);
    text_free(&request->own_body);
    free(request->media_type);
    free(request);
}

void kota_request_body_borrowed(struct kota_request *request, const char *media_type,
                                const void *bytes, size_t length)
{
    if (!request)
        return;
    if (!media_type || !*media_type || strpbrk(media_type, "\r\n") || (!bytes && length > 0)) {
        request_fail(request, "a body needs a media type of one line and its bytes");
        return;
    }
    free(request->media_type);
    request->media_type = strdup(media_type);
    request->own_body.is_broken |= !request->media_type;
    request->body = bytes ? bytes : "";
    request->body_length = length;
}

void kota_request_body(struct kota_request *request, const char *media_type, const void *bytes,
                       size_t length)
{
    if (!request)
        return;
    text_clear(&request->own_body);
    if (bytes && !text_add(&request->own_body, bytes, length))
        return;
    kota_request_body_borrowed(request, media_type, bytes ? request->own_body.at : NULL, length);
}

void kota_request_query(struct kota_request *request, const char *name, const char *value)
{
    if (!request)
        return;
    if (!name || !*name || !value) {
        request_fail(request, "a query parameter needs a name and a value");
        return;
    }
    text_adds(&request->path, request->has_query ? "&" : "?");
    request->has_query = true;
    text_add_escaped(&request->path, name);
    text_adds(&request->path, "=");
    text_add_escaped(&request->path, value);
}

void kota_request_query_number(struct kota_request *request, const char *name, double value)
{
    struct text digits = {0};

    if (!request)
        return;
    if (!isfinite(value)) {
        request_fail(request, "%.40s is not finite", name ? name : "a number");
        return;
    }
    text_add_number(&digits, value);
    request->path.is_broken |= digits.is_broken;
    kota_request_query(request, name, text_string(&digits));
    text_free(&digits);
}

/* The library's own: framing, host, expectations. */
static bool header_is_ours(const char *name)
{
    static const char *const ours[] = {"Host",
                                       "Content-Length",
                                       "Transfer-Encoding",
                                       "Connection",
                                       "Content-Type",
                                       "Upgrade",
                                       "Expect",
                                       "TE",
                                       "Trailer"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strcasecmp(name, ours[i]) == 0)
            return true;
    return false;
}

void kota_request_header(struct kota_request *request, const char *name, const char *value)
{
    if (!request)
        return;
    if (!name || !is_token(name) || header_is_ours(name)) {
        request_fail(request, "'%.60s' is no header that may be set", name ? name : "NULL");
        return;
    }
    for (const char *at = value ? value : "\n"; *at; at++)
        if (((unsigned char)*at < ' ' && *at != '\t') || *at == 127) {
            request_fail(request, "the value of %.60s has a control character", name);
            return;
        }
    if (strcasecmp(name, "Idempotency-Key") == 0) {
        kota_request_key(request, value);
        return;
    }
    if (strcasecmp(name, "Accept") == 0)
        request->accept = NULL;
    text_adds(&request->headers, name);
    text_adds(&request->headers, ": ");
    text_adds(&request->headers, value);
    text_adds(&request->headers, "\r\n");
}

void kota_request_take(struct kota_request *request, kota_take_fn *take, void *context)
{
    if (!request)
        return;
    request->take = take;
    request->context = context;
}

void kota_request_on_sent(struct kota_request *request, kota_sent_fn *sent, void *context)
{
    if (!request)
        return;
    request->on_sent = sent;
    request->sent_context = context;
}

void kota_request_timeout(struct kota_request *request, double timeout_s)
{
    if (!request)
        return;
    if (!(timeout_s > 0 && timeout_s <= 1e6))
        request_fail(request, "timeout_s %g is not above 0 and at most 1e6", timeout_s);
    request->timeout_s = timeout_s;
}

static void header_number(struct kota_request *request, const char *name, const char *quote,
                          uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%s%llu%s", quote, (unsigned long long)value, quote);
    kota_request_header(request, name, text);
}

void kota_request_min_revision(struct kota_request *request, uint64_t revision)
{
    header_number(request, "Kota-Min-Revision", "", revision);
}

void kota_request_if_match(struct kota_request *request, uint64_t revision)
{
    header_number(request, "If-Match", "\"", revision);
}

void kota_request_if_none_match(struct kota_request *request, const char *etag)
{
    kota_request_header(request, "If-None-Match", etag);
}

void kota_request_since(struct kota_request *request, uint64_t id)
{
    if (!request)
        return;
    request->has_since = true;
    request->since = id;
}

void kota_request_key(struct kota_request *request, const char *idempotency_key)
{
    unsigned char random[16];

    if (!request)
        return;
    if (idempotency_key) {
        size_t length = strlen(idempotency_key);

        if (length == 0 || length >= sizeof(request->key) || !is_visible(idempotency_key, length)) {
            request_fail(request, "an Idempotency-Key is 1 to 128 visible ASCII characters");
            return;
        }
        memcpy(request->key, idempotency_key, length + 1);
    } else if (uv_random(NULL, NULL, random, sizeof(random), 0, NULL) == 0) {
        for (size_t i = 0; i < sizeof(random); i++)
            snprintf(request->key + 2 * i, 3, "%02x", random[i]);
    } else {
        request_fail(request, "the system gives no random numbers");
        return;
    }
    request->may_repeat = true;
}

void kota_request_may_repeat(struct kota_request *request, bool may_repeat)
{
    if (request)
        request->may_repeat = may_repeat;
}
