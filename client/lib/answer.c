/*
 * Answers: status, headers, bytes, and the document in them.
 *
 * The document is parsed at its first use, by cJSON, once. Numbers come out as strtod reads them:
 * the daemon writes each so that it reads back as the same bits. A body with a NUL is no JSON,
 * though cJSON would take the NUL for a blank.
 *
 * Reading a missing member sets the answer's error, so that the caller checks one place for all
 * errors; the first error stays.
 */
#include "client/lib/answer.h"

#include "client/lib/error.h"
#include "client/lib/read.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static const struct kota_error no_memory = {
    .kind = KOTA_ERROR_MEMORY, .retry_after_s = -1, .message = "no memory for the call"};

struct kota_answer *answer_new(void)
{
    struct kota_answer *answer = calloc(1, sizeof(*answer));

    if (answer)
        error_clear(&answer->error);
    return answer;
}

void answer_clear(struct kota_answer *answer)
{
    answer->status = 0;
    text_free(&answer->headers);
    text_free(&answer->body);
    error_clear(&answer->error);
}

void kota_answer_free(struct kota_answer *answer)
{
    if (!answer)
        return;
    answer_clear(answer);
    cJSON_Delete(answer->json);
    free(answer);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7); negative: it is none. */
static double date_s(const char *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm = {0};
    char month[4];
    const char *found;
    int end = 0;

    if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &tm.tm_mday, month,
               &tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) != 6 ||
        end == 0 || text[end] || !(found = strstr(months, month)) || (found - months) % 3 != 0)
        return -1;
    tm.tm_mon = (int)(found - months) / 3;
    tm.tm_year -= 1900;
    return (double)timegm(&tm);
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

double answer_retry_after_s(const struct kota_answer *answer)
{
    const char *text = headers_find(&answer->headers, "Retry-After");
    struct timespec now;
    double at_s;

    if (!text || !*text)
        return -1;
    if (strspn(text, "0123456789") == strlen(text))
        return strlen(text) < 10 ? (double)atol(text) : 1e9;
    at_s = date_s(text);
    if (at_s < 0)
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    at_s -= (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return at_s > 0 ? at_s : 0;
}

const struct kota_error *kota_answer_error(const struct kota_answer *answer)
{
    if (!answer)
        return &no_memory;
    return answer->error.kind ? &answer->error : NULL;
}

int kota_answer_status(const struct kota_answer *answer)
{
    return answer ? answer->status : 0;
}

const void *kota_answer_body(const struct kota_answer *answer, size_t *length)
{
    if (length)
        *length = answer ? answer->body.length : 0;
    return answer ? text_string(&answer->body) : "";
}

const char *kota_answer_header(const struct kota_answer *answer, const char *name)
{
    return answer && name ? headers_find(&answer->headers, name) : NULL;
}

unsigned kota_answer_tries(const struct kota_answer *answer)
{
    return answer ? answer->tries : 0;
}

const struct cJSON *kota_answer_json(struct kota_answer *answer)
{
    const char *text, *end;

    if (!answer)
        return NULL;
    if (answer->json_was_tried)
        return answer->json;
    answer->json_was_tried = true;
    text = end = text_string(&answer->body);
    if (!memchr(text, '\0', answer->body.length))
        answer->json = cJSON_ParseWithLengthOpts(text, answer->body.length + 1, &end, 1);
    if (!answer->json && !answer->error.kind)
        error_set(&answer->error, KOTA_ERROR_CONTENT, "the answer is not JSON (byte %zu of %zu)",
                  (size_t)(end - text), answer->body.length);
    return answer->json;
}

uint64_t kota_answer_revision(struct kota_answer *answer)
{
    const char *header = kota_answer_header(answer, "Kota-Revision");
    const char *type = kota_answer_header(answer, "Content-Type");
    const cJSON *member;

    if (header)
        return strtoull(header, NULL, 10);
    if (!type || strncmp(type, "application/json", 16) != 0)
        return 0;
    member = cJSON_GetObjectItemCaseSensitive(kota_answer_json(answer), "revision");
    return cJSON_IsNumber(member) && member->valuedouble >= 0 ? (uint64_t)member->valuedouble : 0;
}

/* One step of a JSON pointer: a member's name with ~0 and ~1, or an index. */
static const cJSON *step(const cJSON *item, const char *from, size_t length)
{
    char name[256];
    size_t count = 0;

    if (cJSON_IsArray(item)) {
        size_t index = 0;

        if (length == 0 || length > 9 || (length > 1 && *from == '0'))
            return NULL;
        for (size_t i = 0; i < length; i++) {
            if (from[i] < '0' || from[i] > '9')
                return NULL;
            index = 10 * index + (size_t)(from[i] - '0');
        }
        return cJSON_GetArrayItem(item, (int)index);
    }
    for (size_t i = 0; i < length && count + 1 < sizeof(name); i++) {
        char c = from[i];

        if (c == '~' && i + 1 < length)
            c = from[++i] == '1' ? '/' : '~';
        name[count++] = c;
    }
    name[count] = '\0';
    return cJSON_GetObjectItemCaseSensitive(item, name);
}

static const cJSON *find(struct kota_answer *answer, const char *pointer)
{
    const cJSON *item = read_document(answer);

    for (const char *at = pointer; item && *at;) {
        size_t length;

        if (*at != '/')
            return NULL;
        length = strcspn(++at, "/");
        item = step(item, at, length);
        at += length;
    }
    return item;
}

bool kota_read_number(struct kota_answer *answer, const char *pointer, double *value)
{
    const cJSON *item = find(answer, pointer);

    if (!cJSON_IsNumber(item))
        return read_fail(answer, "the answer has no number at %.100s", pointer);
    *value = item->valuedouble;
    return true;
}

bool kota_read_text(struct kota_answer *answer, const char *pointer, const char **value)
{
    const cJSON *item = find(answer, pointer);

    if (!cJSON_IsString(item))
        return read_fail(answer, "the answer has no text at %.100s", pointer);
    *value = item->valuestring;
    return true;
}
