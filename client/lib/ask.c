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
        } else if (at[0] == '%' && at[1] == 'u') {
            text_add_uint(&path, va_arg(args, unsigned));
            at++;
        } else {
            text_add(&path, at, 1);
        }
    }
    request = path.is_broken ? NULL : kota_request_new(method, text_string(&path));
    text_free(&path);
    if (request && is_wrong)
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

struct kota_request *ask_question(const char *locale, const char *what)
{
    struct kota_request *request = ask_new("POST", "/v1/locales/%i/", locale);

    if (!request)
        return NULL;
    text_adds(&request->path, what);
    request->may_repeat = true;
    return request;
}

void ask_vector(struct kota_request *request, const double *numbers, size_t count, const char *name,
                size_t index)
{
    struct text *body = &request->own_body;

    text_adds(body, "[");
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i])) {
            request_fail(request, "%s %zu has %g, which is not finite", name, index, numbers[i]);
            return;
        }
        if (i > 0)
            text_adds(body, ",");
        text_add_number(body, numbers[i]);
    }
    text_adds(body, "]");
}

void ask_vectors(struct kota_request *request, const double *numbers, size_t count, size_t side,
                 const char *name)
{
    text_adds(&request->own_body, "[");
    for (size_t i = 0; i < count && !request->error.kind; i++) {
        if (i > 0)
            text_adds(&request->own_body, ",");
        ask_vector(request, numbers + side * i, side, name, i);
    }
    text_adds(&request->own_body, "]");
}

void ask_optional(struct kota_request *request, const char *name, double value)
{
    if (isnan(value))
        return;
    if (!isfinite(value)) {
        request_fail(request, "%s is not finite", name);
        return;
    }
    text_adds(&request->own_body, ",\"");
    text_adds(&request->own_body, name);
    text_adds(&request->own_body, "\":");
    text_add_number(&request->own_body, value);
}

struct kota_request *ask_json(struct kota_request *request)
{
    if (request && !request->own_body.is_broken)
        kota_request_body_borrowed(request, "application/json", text_string(&request->own_body),
                                   request->own_body.length);
    return request;
}
