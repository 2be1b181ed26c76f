/*
 * Little-endian numbers in the bytes of a file, wherever they are aligned.
 */
#ifndef KOTA_FORMATS_LITTLE_H
#define KOTA_FORMATS_LITTLE_H

#include <stdint.h>
#include <string.h>

static inline uint32_t little16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t little32(const uint8_t *at)
{
    return little16(at) | little16(at + 2) << 16;
}

static inline float little_float(const uint8_t *at)
{
    uint32_t bits = little32(at);
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
