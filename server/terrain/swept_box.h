/*
 * A box swept along a part of a line: the part of space on which an answer depends. And an index of
 * many of them over the plan, which finds those that a change of the ground meets.
 */
#ifndef KOTA_TERRAIN_SWEPT_BOX_H
#define KOTA_TERRAIN_SWEPT_BOX_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct swept_box {
    struct vec3 origin, direction; /* direction may be zero */
    double t_min, t_max;           /* may be infinite */
    struct vec3 half;              /* of the box that goes along it */
    bool is_everywhere;            /* any change concerns it */
    bool is_none;                  /* no question: nothing does */
};

/* Is a closed box met? Larger by a millionth of the numbers, so that rounding misses nothing. */
bool swept_box_meets(const struct swept_box *extent, const struct box3 *box);

/* Extents by squares of the plan; those that span many of them, or are not bounded, are listed. */
struct swept_box_index {
    double origin[2], side;
    uint32_t columns, rows; /* 0: all are wide */
    uint32_t *starts;       /* [columns · rows + 1], into entries */
    uint32_t *entries;
    uint32_t *wide;
    size_t wide_count;
    uint32_t *stamps; /* [count] */
    uint32_t stamp;
    size_t count;
};

/* Over extents[count]; replaces what was there. False: no memory; it is then empty. O(count). */
bool swept_box_index_build(struct swept_box_index *index, const struct swept_box *extents,
                           size_t count);
void swept_box_index_free(struct swept_box_index *index);

/*
 * The extents that meet a box, each once between two calls of swept_box_index_begin: written to
 * out, which has room for all. Returns how many.
 */
void swept_box_index_begin(struct swept_box_index *index);
size_t swept_box_index_find(struct swept_box_index *index, const struct swept_box *extents,
                            const struct box3 *box, uint32_t *out);

#endif
