/*
 * Places along Morton's curve (A computer oriented geodetic data base, 1966): what is near along it
 * is near in the plane, or in space.
 */
#ifndef KOTA_BASE_MORTON_H
#define KOTA_BASE_MORTON_H

#include <stdint.h>

/* The bits of both, x in the even ones. */
static inline uint64_t morton2(uint32_t x, uint32_t y)
{
    uint64_t spread[2] = {x, y};

    for (int i = 0; i < 2; i++) { /* a zero between all bits */
        uint64_t s = spread[i];

        s = (s | s << 16) & 0x0000ffff0000ffff;
        s = (s | s << 8) & 0x00ff00ff00ff00ff;
        s = (s | s << 4) & 0x0f0f0f0f0f0f0f0f;
        s = (s | s << 2) & 0x3333333333333333;
        spread[i] = (s | s << 1) & 0x5555555555555555;
    }
    return spread[0] | spread[1] << 1;
}

/* The low 21 bits of each, x in those whose number 3 divides. */
static inline uint64_t morton3(uint64_t x, uint64_t y, uint64_t z)
{
    uint64_t spread[3] = {x, y, z};

    for (int i = 0; i < 3; i++) { /* two zeros between all bits */
        uint64_t s = spread[i];

        s = (s | s << 32) & 0x001f00000000ffff;
        s = (s | s << 16) & 0x001f0000ff0000ff;
        s = (s | s << 8) & 0x100f00f00f00f00f;
        s = (s | s << 4) & 0x10c30c30c30c30c3;
        spread[i] = (s | s << 2) & 0x1249249249249249;
    }
    return spread[0] | spread[1] << 1 | spread[2] << 2;
}

#endif
