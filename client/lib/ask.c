/*
 * Paths, numbers and JSON bodies of typed requests.
 *
 * JSON is written by hand into the request's own body: cJSON would hold each number of a batch in a
 * node of its own. Numbers are checked here, because JSON has no NaN and the daemon could only
 * report malformed text; the message here names the item.
 */
#include "client/lib/ask.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_id(const char *text)
{
    size_t length = text ? strlen(text) : 0;

    return length > 0 && length <= 64 &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") ==
               length;
}

static struct kota_request *ask_by(const char *method, const char *pattern, va_list args)
{
    struct text path = {0};
    struct kota_request *request;
    const char *wrong = NULL;
    bool is_wrong = false;

    for (const char *at = pattern; *at; at++) {
        if (at[0] == '%' && at[1] == 'i') {
            const char *id = va_arg(args, const char *);

            if (!is_id(id) && !is_wrong) {
                is_wrong = true;
                wrong = id;
            }
            text_adds(&path, is_id(id) ? id : "-");
            at++;
        } else if (at[0] == '%') {
            text_add_uint(&path, at[1] == 'u' ? va_arg(args, unsigned) : va_arg(args, uint64_t));
            at++;
        } else {
            text_add(&path, at, 1);
        }
    }
    request = path.is_broken ? NULL : kota_request_new(method, text_string(&path));
    text_free(&path);
    if (is_wrong)
        request_fail(request, "'%.100s' is no id: letters, digits, '_' and '-', 1 to 64 of them",
                     wrong ? wrong : "NULL");
    return request;
}

struct kota_request *ask_new(const char *method, const char *pattern, ...)
{
    struct kota_request *request;
    va_list args;

    va_start(args, pattern);
    request = ask_by(method, pattern, args);
    va_end(args);
    return request;
}

struct kota_request *ask_write(const char *method, const char *pattern, ...)
{
    struct kota_request *request;
    va_list args;

    va_start(args, pattern);
    request = ask_by(method, pattern, args);
    va_end(args);
    kota_request_key(request, NULL);
    return request;
}

struct kota_request *ask_accept(struct kota_request *request, const char *media_type)
{
    if (request)
        request->accept = media_type;
    return request;
}

void ask_init(void *options, size_t size, const void *defaults, size_t known)
{
    memset(options, 0, size);
    memcpy(options, defaults, size < known ? size : known);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void ask_raw(struct kota_request *request, const char *json)
{
    if (request)
        text_adds(&request->own_body, json);
}

static void ask_name(struct kota_request *request, const char *name)
{
    ask_raw(request, ",\"");
    ask_raw(request, name);
    ask_raw(request, "\":");
}

void ask_number(struct kota_request *request, double number)
{
    if (request)
        text_add_number(&request->own_body, number);
}

void ask_vector(struct kota_request *request, const double *numbers, size_t count, const char *name,
                size_t index)
{
    ask_raw(request, "[");
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i])) {
            request_fail(request, "%s %zu has %g, which is not finite", name, index, numbers[i]);
            return;
        }
        ask_raw(request, i > 0 ? "," : "");
        ask_number(request, numbers[i]);
    }
    ask_raw(request, "]");
}

void ask_vectors(struct kota_request *request, const double *numbers, size_t count, size_t side,
                 const char *name)
{
    ask_raw(request, "[");
    for (size_t i = 0; i < count && request && !request->error.kind; i++) {
        ask_raw(request, i > 0 ? "," : "");
        ask_vector(request, numbers + side * i, side, name, i);
    }
    ask_raw(request, "]");
}

void ask_member(struct kota_request *request, const char *name, const double *numbers, size_t count,
                size_t index)
{
    ask_name(request, name);
    ask_vector(request, numbers, count, name, index);
}

void ask_optional(struct kota_request *request, const char *name, double value)
{
    if (isnan(value))
        return;
    if (!isfinite(value)) {
        request_fail(request, "%s is not finite", name);
        return;
    }
    ask_name(request, name);
    ask_number(request, value);
}

void ask_string(struct kota_request *request, const char *text, const char *name)
{
    if (request && (!text || !text_add_json(&request->own_body, text)))
        request_fail(request, "%s is not UTF-8", name);
}

void ask_optional_string(struct kota_request *request, const char *name, const char *text)
{
    if (!text)
        return;
    ask_name(request, name);
    ask_string(request, text, name);
}

void ask_uint(struct kota_request *request, uint64_t value)
{
    if (request)
        text_add_uint(&request->own_body, value);
}

struct kota_request *ask_json(struct kota_request *request)
{
    if (request && !request->own_body.is_broken)
        kota_request_body_borrowed(request, "application/json", text_string(&request->own_body),
                                   request->own_body.length);
    return request;
}

void ask_query_numbers(struct kota_request *request, const char *name, const double *numbers,
                       size_t count)
{
    struct text text = {0};

    if (!request)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i])) {
            request_fail(request, "%s has %g, which is not finite", name, numbers[i]);
            continue;
        }
        text_adds(&text, i > 0 ? "," : "");
        text_add_number(&text, numbers[i]);
    }
    kota_request_query(request, name, text_string(&text));
    request->path.is_broken |= text.is_broken;
    text_free(&text);
}
