/*
 * A hash of samples: 128 bits that are the same for the same heights in every process.
 *
 * Two chains of multiplications, each of which keeps every bit, so that two rows that differ in one
 * pair of samples never have the same hash. It is for tags of content, not against an attacker:
 * samples are what its owner uploads. About 4 GB/s.
 */
#ifndef KOTA_TERRAIN_SAMPLE_HASH_H
#define KOTA_TERRAIN_SAMPLE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_rotate(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

static inline void hash_word(uint64_t word, uint64_t hash[2])
{
    hash[0] = hash_rotate((hash[0] ^ word) * 0x9e3779b97f4a7c15u, 29) + 0x632be59bd9b4e019u;
    hash[1] = hash_rotate((hash[1] + word) * 0xd6e8feb86659fd93u, 31) ^ 0xa0761d6478bd642fu;
}

/* The bits of a sample; of NaN always the same. */
static inline uint32_t sample_bits(float sample)
{
    uint32_t bits;

    memcpy(&bits, &sample, sizeof bits);
    return sample == sample ? bits : 0x7fc00000u;
}

/* Every stride-th of count samples, added to hash. */
static inline void sample_hash(const float *samples, size_t count, size_t stride, uint64_t hash[2])
{
    size_t i = 0;

    for (; i + 2 <= count; i += 2)
        hash_word((uint64_t)sample_bits(samples[i * stride]) << 32 |
                      sample_bits(samples[(i + 1) * stride]),
                  hash);
    if (i < count)
        hash_word(sample_bits(samples[i * stride]), hash);
}

/* The end of a hash: every bit depends on every bit. (SplitMix64's; Steele, Lea, Flood 2014.) */
static inline uint64_t hash_finish(uint64_t h)
{
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

#endif
