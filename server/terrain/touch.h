/*
 * What a question can be changed by: a part of a line, as thick as a box. And an index of many such
 * parts over the plan, for the ones that a change of the ground meets.
 */
#ifndef KOTA_TERRAIN_TOUCH_H
#define KOTA_TERRAIN_TOUCH_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct touch {
    struct vec3 origin, direction; /* direction may be zero */
    double t_min, t_max;           /* may be infinite */
    struct vec3 half;              /* of the box that goes along it */
    bool is_everywhere;            /* any change concerns it */
    bool is_none;                  /* no question: nothing does */
};

/* Is a closed box met? Larger by a millionth of the numbers, so that rounding misses nothing. */
bool touch_meets(const struct touch *touch, const struct box3 *box);

/* Touches by squares of the plan; those that span many of them, or are not bounded, are listed. */
struct touch_index {
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

/* Over touches[count]; replaces what was there. False: no memory; it is then empty. O(count). */
bool touch_index_build(struct touch_index *index, const struct touch *touches, size_t count);
void touch_index_free(struct touch_index *index);

/*
 * The touches that meet a box, each once between two calls of touch_index_begin: written to out,
 * which has room for all. Returns how many.
 */
void touch_index_begin(struct touch_index *index);
size_t touch_index_find(struct touch_index *index, const struct touch *touches,
                        const struct box3 *box, uint32_t *out);

#endif
