/*
 * Answers that are kept and sent again.
 *
 * Problem: a client that received no answer to its write repeats it under the same key and must get
 * the first answer, also after a restart, also when the locale is deleted by then. Approach: the
 * parts of an answer that a write decides, in a small encoding with a version; date, request id and
 * the like are the new answer's own. The bytes are read from a file that may be damaged, so every
 * length is checked and only visible ASCII goes into a header. Dropped: to keep a whole HTTP
 * message (it would freeze the server's own headers), or JSON (a body within a body).
 */
#include "api/idempotency_record.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };

static void put_number(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

void *idempotency_record_encode(const struct idempotency_record *answer, size_t *length)
{
    size_t location = strlen(answer->location);
    unsigned char *bytes = malloc(KEPT_HEAD_BYTES + location + answer->body_length);

    if (!bytes || answer->body_length > UINT32_MAX) {
        free(bytes);
        return NULL;
    }
    bytes[0] = VERSION;
    bytes[1] = answer->has_tag;
    put_number(bytes + 2, (uint64_t)answer->status, 2);
    put_number(bytes + 4, answer->revision, 8);
    put_number(bytes + 12, location, 2);
    put_number(bytes + 14, answer->body_length, 4);
    memcpy(bytes + KEPT_HEAD_BYTES, answer->location, location);
    if (answer->body_length > 0)
        memcpy(bytes + KEPT_HEAD_BYTES + location, answer->body, answer->body_length);
    *length = KEPT_HEAD_BYTES + location + answer->body_length;
    return bytes;
}

bool idempotency_record_decode(const void *bytes, size_t length, struct idempotency_record *out)
{
    const unsigned char *head = bytes;
    size_t location;

    *out = (struct idempotency_record){.status = 0};
    if (!bytes || length < KEPT_HEAD_BYTES || head[0] != VERSION || head[1] > 1)
        return false;
    out->has_tag = head[1] == 1;
    out->status = (int)get_number(head + 2, 2);
    out->revision = get_number(head + 4, 8);
    location = (size_t)get_number(head + 12, 2);
    out->body_length = (size_t)get_number(head + 14, 4);
    if ((out->status != 200 && out->status != 201 && out->status != 204) ||
        location > KEPT_LOCATION_MAX || length - KEPT_HEAD_BYTES < location ||
        length - KEPT_HEAD_BYTES - location != out->body_length ||
        (out->status == 204 && out->body_length > 0))
        return false;
    for (size_t i = 0; i < location; i++)
        if (head[KEPT_HEAD_BYTES + i] <= 0x20 || head[KEPT_HEAD_BYTES + i] >= 0x7f)
            return false;
    memcpy(out->location, head + KEPT_HEAD_BYTES, location);
    out->body = out->body_length > 0 ? (const char *)head + KEPT_HEAD_BYTES + location : NULL;
    return true;
}

void idempotency_record_send(const struct idempotency_record *answer, struct http_reply *reply)
{
    http_reply_status(reply, answer->status);
    if (answer->revision != 0)
        http_reply_header(reply, "Kota-Revision", "%llu", (unsigned long long)answer->revision);
    if (answer->revision != 0 && answer->has_tag)
        http_reply_header(reply, "ETag", "\"%llu\"", (unsigned long long)answer->revision);
    if (answer->location[0] != '\0')
        http_reply_header(reply, "Location", "%s", answer->location);
    http_reply_content_type(reply, answer->status == 204 ? NULL : "application/json");
    http_reply_append(reply, answer->body, answer->body_length);
}
