/*
 * The answer to a write, as a value: made once, sent, and kept with the write's Idempotency-Key so
 * that a repeat is answered alike.
 *
 *   byte 0      version, 1
 *   byte 1      1: a Locale was left, which has an ETag; else 0
 *   bytes 2-3   status: 200, 201 or 204
 *   bytes 4-11  revision that the write made, 0: none
 *   bytes 12-13 length of the Location, 0: none
 *   bytes 14-17 length of the body, 0: none; it is JSON
 *   then the Location (visible ASCII) and the body. Numbers are little-endian.
 */
#ifndef KOTA_API_IDEMPOTENCY_RECORD_H
#define KOTA_API_IDEMPOTENCY_RECORD_H

#include "http/http.h"

enum { KEPT_LOCATION_MAX = 255, KEPT_HEAD_BYTES = 18 };

struct idempotency_record {
    int status;
    bool has_tag;
    uint64_t revision;
    char location[KEPT_LOCATION_MAX + 1]; /* "": none */
    const char *body;                     /* NULL: none */
    size_t body_length;
};

/* malloc; NULL without memory. */
void *idempotency_record_encode(const struct idempotency_record *answer, size_t *length);

/* The body is borrowed from the bytes. False when they are no answer of this version. */
bool idempotency_record_decode(const void *bytes, size_t length, struct idempotency_record *out);

/* Status, headers and body. */
void idempotency_record_send(const struct idempotency_record *answer, struct http_reply *reply);

#endif
