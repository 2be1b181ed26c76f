/*
 * BLAKE2b-256: names a block of bytes by its content.
 */
#ifndef KOTA_BASE_CONTENT_HASH_H
#define KOTA_BASE_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Unkeyed, 32 bytes. O(length), about a byte a nanosecond. Source: RFC 7693. */
void content_hash(const void *bytes, size_t length, uint8_t hash[32]);

#endif
