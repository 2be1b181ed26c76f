/*
 * Are two heightfields the same bit for bit: samples, every node of every tile, the pyramid above?
 * Says where they are not. For tests that know the inside of a field.
 */
#ifndef KOTA_TESTS_SAME_FIELD_H
#define KOTA_TESTS_SAME_FIELD_H

#include "terrain/field/heightfield_data.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static inline bool same_tile(const struct tile *a, const struct tile *b)
{
    size_t nodes = a->level_offset[TILE_SHIFT] + 1u;
    uint32_t count = tile_minmax16_count(&a->shape), last = count - 1;

    if (a == b)
        return true;
    if (memcmp(&a->shape, &b->shape, sizeof a->shape) != 0)
        return false;
    for (uint32_t row = 0; row < tile_row_count(&a->shape); row++)
        if (memcmp(tile_at(a, (size_t)row * a->shape.stride),
                   tile_at(b, (size_t)row * a->shape.stride), a->shape.stride * sizeof(float)) != 0)
            return false;
    return memcmp(a->nodes, b->nodes, nodes * sizeof *a->nodes) == 0 &&
           memcmp(tile_minmax16(a, 0, last), tile_minmax16(b, 0, last),
                  count * sizeof(struct minmax16_node)) == 0;
}

static inline bool same_field(const struct heightfield *a, const struct heightfield *b, char *where,
                              size_t where_bytes)
{
    const struct top_level *last = &a->top_level[a->top_level_count - 1];

    if (a->tile_cols != b->tile_cols || a->tile_rows != b->tile_rows) {
        snprintf(where, where_bytes, "sizes differ");
        return false;
    }
    for (uint32_t i = 0; i < a->tile_cols * a->tile_rows; i++)
        if (!same_tile(a->tiles[i], b->tiles[i])) {
            snprintf(where, where_bytes, "tile (%u, %u) differs", i % a->tile_cols,
                     i / a->tile_cols);
            return false;
        }
    for (uint32_t i = 0; i <= last->offset; i++)
        if (memcmp(&a->top[i], &b->top[i], sizeof *a->top) != 0) {
            snprintf(where, where_bytes, "node %u above the tiles differs", i);
            return false;
        }
    if (memcmp(a->minmax16_top, b->minmax16_top, a->minmax16_count * sizeof *a->minmax16_top) !=
        0) {
        snprintf(where, where_bytes, "a wide node above the tiles differs");
        return false;
    }
    return true;
}

#endif
