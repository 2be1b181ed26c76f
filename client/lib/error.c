/*
 * Errors of the library.
 *
 * A caller branches on the kind and the status, and logs the message; so the message is one whole
 * sentence for every kind, and the daemon's own words are beside it unchanged. Texts are cut at
 * their size, never overrun, and never within a UTF-8 character.
 *
 * Source: RFC 9457 (problem details).
 */
#include "client/lib/error.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How much of a body that is no problem document a message repeats. */
enum { EXCERPT_BYTES_MAX = 80 };

void error_clear(struct kota_error *error)
{
    memset(error, 0, sizeof(*error));
    error->retry_after_s = -1;
}

/* Removes half a character from the end of a cut text, and makes it one line. */
static void tidy(char *text, size_t size)
{
    size_t length = strlen(text);

    if (length + 1 >= size) {
        size_t start = length;

        while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
            start--;
        if (start > 0 && (unsigned char)text[start - 1] >= 0xC0)
            text[start - 1] = '\0';
    }
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = ' ';
}

bool error_set(struct kota_error *error, enum kota_error_kind kind, const char *format, ...)
{
    int status = error->status;
    double retry_after_s = error->retry_after_s;
    va_list args;

    error_clear(error);
    error->kind = kind;
    error->status = status;
    error->retry_after_s = retry_after_s;
    va_start(args, format);
    vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);
    tidy(error->message, sizeof(error->message));
    return false;
}

static const char *member(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
    tidy(out, size);
}

void error_problem(struct kota_error *error, const char *method, const char *path, int status,
                   const char *body, size_t length)
{
    cJSON *document =
        length > 0 && length < (1u << 20) ? cJSON_ParseWithLength(body, length) : NULL;
    const cJSON *limit = cJSON_GetObjectItemCaseSensitive(document, "limit");
    const cJSON *got = cJSON_GetObjectItemCaseSensitive(document, "got");
    const cJSON *first =
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(document, "errors"), 0);

    error->status = status;
    if (!cJSON_IsObject(document)) {
        error_set(error, KOTA_ERROR_PROBLEM, "%s %.200s was answered with %d%s%.*s", method, path,
                  status, length > 0 ? ": " : "",
                  (int)(length < EXCERPT_BYTES_MAX ? length : EXCERPT_BYTES_MAX),
                  length > 0 ? body : "");
        cJSON_Delete(document);
        return;
    }
    error_set(error, KOTA_ERROR_PROBLEM, "%s", "");
    copy(error->code, sizeof(error->code), member(document, "code"));
    copy(error->title, sizeof(error->title), member(document, "title"));
    copy(error->detail, sizeof(error->detail), member(document, "detail"));
    copy(error->pointer, sizeof(error->pointer), member(first, "pointer"));
    if (!*error->detail)
        copy(error->detail, sizeof(error->detail), member(first, "detail"));
    if (cJSON_IsNumber(limit) && cJSON_IsNumber(got)) {
        error->has_limit = true;
        error->limit = limit->valuedouble;
        error->got = got->valuedouble;
    }
    snprintf(error->message, sizeof(error->message), "%d %s%s%s%s%s%s", status, error->title,
             *error->detail ? ": " : "", error->detail, *error->pointer ? " (" : "", error->pointer,
             *error->pointer ? ")" : "");
    cJSON_Delete(document);
}

const char *kota_error_name(enum kota_error_kind kind)
{
    static const char *const names[] = {"none",    "usage",   "memory",   "address",  "connect",
                                        "lost",    "timeout", "protocol", "too long", "cancelled",
                                        "problem", "content", "tls"};

    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

const char *kota_version(void)
{
    return KOTA_VERSION;
}
