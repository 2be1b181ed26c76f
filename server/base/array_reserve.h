/*
 * Arrays that grow.
 */
#ifndef KOTA_BASE_ARRAY_RESERVE_H
#define KOTA_BASE_ARRAY_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Room for `count` elements of `size` bytes. False, with nothing changed: no memory. */
static inline bool array_reserve(void **block, size_t *capacity, size_t count, size_t size)
{
    size_t wanted = *capacity;
    void *grown;

    if (count <= *capacity)
        return true;
    while (wanted < count)
        wanted = wanted + wanted / 2 + 64;
    grown = realloc(*block, wanted * size);
    if (!grown)
        return false;
    *block = grown;
    *capacity = wanted;
    return true;
}

#endif
