/*
 * Rays against a heightfield (text T): descent through the min/max pyramid in order of entry, then
 * an exact walk over the cells under the ray.
 */
#ifndef KOTA_TERRAIN_RAY_H
#define KOTA_TERRAIN_RAY_H

#include "terrain/field/heightfield.h"

struct ray {
    struct vec3 origin;    /* finite */
    struct vec3 direction; /* finite, not zero; need not be unit: t counts in its lengths */
    double t_max;          /* >= 0; INFINITY for a ray without end */
};

/*
 * RAY_LIGHT: as light is stopped. A polygon that is seen exactly from its side stops none; a ray
 * along it meets it.
 */
enum ray_mode { RAY_CLOSEST, RAY_ANY, RAY_LIGHT, RAY_LIGHT_ANY };

static inline bool ray_takes_any(enum ray_mode mode)
{
    return mode == RAY_ANY || mode == RAY_LIGHT_ANY;
}

static inline bool ray_is_light(enum ray_mode mode)
{
    return mode == RAY_LIGHT || mode == RAY_LIGHT_ANY;
}

struct ray_hit {
    double t;
    struct vec3 point;
    struct vec3 normal; /* unit, up */
    uint32_t cell[2];   /* column, row */
    int triangle; /* 0: the one with the cell's (0,0) sample, or with `main` its (1,0); else 1 */
};

/* One box of the pyramid that a ray tested. */
struct ray_trace_box {
    uint32_t level;       /* 0 is one cell; level L is 2^L cells wide */
    uint32_t column, row; /* in nodes of that level */
    struct box3 bounds;
    bool entered; /* the ray passes the box's height range, so that it was opened */
};

/* The trace of a ray, in order; counts go on when the arrays are full. */
struct ray_trace {
    struct ray_trace_box *boxes;
    uint32_t box_capacity, box_count;
    uint32_t (*cells)[2];
    uint32_t cell_capacity, cell_count;
};

/*
 * The first point of the surface along a ray; surfaces have two sides.
 *
 * mode   RAY_ANY and RAY_LIGHT_ANY may return any hit within t_max
 * hit    out, untouched on a miss
 * trace  filled when not NULL
 *
 * True on a hit with 0 <= t <= t_max. Watertight: rays through vertices and along edges hit.
 * Cost O(cells under the ray near the surface), no allocation. Source: T, sections 3.2 to 3.6,
 * without its Bresenham walk, which skips cells.
 */
bool heightfield_ray(const struct heightfield *field, const struct ray *ray, enum ray_mode mode,
                     struct ray_hit *hit, struct ray_trace *trace);

/*
 * The first hits of many rays: hits[count], each with the bits that heightfield_ray gives; t is
 * INFINITY and the rest untouched where there is none. The rays are interleaved, so that one walks
 * while the memory of another is on its way; some hundred at once are enough for that. No
 * allocation.
 */
void heightfield_rays(const struct heightfield *field, const struct ray *rays, size_t count,
                      struct ray_hit *hits);

#define RAY_NUMBER_MAX 1e307 /* of origin, direction and t: sums of three stay finite */

/* True when the ray is valid: numbers up to RAY_NUMBER_MAX, a direction that is not zero and not so
 * short that t would be more at 1e6 m, or at its origin's own coordinates; t_max >= 0. */
bool ray_is_valid(const struct ray *ray);

/* t of a ray in metres; the square of a component may overflow. */
static inline double ray_distance_m(const struct ray *ray, double t)
{
    struct vec3 d = ray->direction;
    double most = fmax(fabs(d.x), fmax(fabs(d.y), fabs(d.z)));

    return t * most * vec3_length(vec3_scale(d, 1 / most));
}

/* Why it may not: a few words with field and limit; NULL when it may. */
const char *ray_fault(const struct ray *ray);

#endif
