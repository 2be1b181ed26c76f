/*
 * An order of boxes in which those that are near to each other are next to each other. Private to
 * terrain/.
 */
#ifndef KOTA_TERRAIN_BOX_ORDER_H
#define KOTA_TERRAIN_BOX_ORDER_H

#include <stdint.h>

/* A box of float32: its maker rounds outward. */
struct box_bounds {
    float min[3], max[3];
};

/*
 * items[count] out: the indices of boxes[count], each once. None of the boxes has a NaN. The same
 * boxes give the same order. About 0.3 µs a box; O(count) for each of 72 levels at most.
 */
void box_order(const struct box_bounds *boxes, uint32_t count, uint32_t *items);

#endif
