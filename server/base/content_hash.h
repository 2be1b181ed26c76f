/*
 * BLAKE2b-256: names a block of bytes by its content. FNV-1a: a number of a few bytes, for tables.
 */
#ifndef KOTA_BASE_CONTENT_HASH_H
#define KOTA_BASE_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Unkeyed, 32 bytes. O(length), about a byte a nanosecond. Source: RFC 7693. */
void content_hash(const void *bytes, size_t length, uint8_t hash[32]);

/* The same of bytes that come in pieces: begin, add each piece, end. */
struct content_hasher {
    uint64_t state[8], done; /* done: bytes that the state has taken */
    size_t held;             /* of block; the last block is compressed by end only */
    uint8_t block[128];
};
void content_hash_begin(struct content_hasher *hasher);
void content_hash_add(struct content_hasher *hasher, const void *bytes, size_t length);
void content_hash_end(struct content_hasher *hasher, uint8_t hash[32]);

#define FNV1A_EMPTY UINT64_C(0xcbf29ce484222325)

/* FNV-1a, 64 bits (Fowler, Noll, Vo): `hash` of the bytes before, of none FNV1A_EMPTY. */
static inline uint64_t fnv1a(uint64_t hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
