/* An interval of heights, as float32 like the samples: exact, no rounding outward. */
#ifndef KOTA_TERRAIN_BOUNDS_H
#define KOTA_TERRAIN_BOUNDS_H

struct bounds {
    float min, max; /* min > max: nothing inside */
};

#define BOUNDS_EMPTY ((struct bounds){__builtin_inff(), -__builtin_inff()})

static inline struct bounds bounds_union(struct bounds a, struct bounds b)
{
    return (struct bounds){a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}

/* NaN leaves the bounds as they are. */
static inline struct bounds bounds_add(struct bounds a, float sample)
{
    return (struct bounds){sample < a.min ? sample : a.min, sample > a.max ? sample : a.max};
}

#endif
