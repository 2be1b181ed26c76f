/*
 * Line of sight and profiles over a heightfield.
 */
#ifndef KOTA_TERRAIN_SIGHT_H
#define KOTA_TERRAIN_SIGHT_H

#include "terrain/field_ray/ray.h"

/* The line between two ends is a ray: no number of it is twice as large. */
#define SIGHT_END_MAX (RAY_NUMBER_MAX / 2)

/*
 * Ends of a sight line this near the surface count as on it: a micrometre, or where that is more
 * the error of a client that keeps the height as a float32 (1 mm at 8 km).
 */
static inline double sight_end_tolerance(double height_m)
{
    return fmax(1e-6, 0x1p-23 * fabs(height_m));
}

/*
 * Whether the ground leaves the straight line between two points free. A line that only touches the
 * ground at its end points is visible.
 *
 * blocker  out when not visible: the blocking point, t in 0..1 from `from` to `to`
 */
bool heightfield_line_of_sight(const struct heightfield *field, struct vec3 from, struct vec3 to,
                               struct ray_hit *blocker);

/*
 * Where the samples of a profile lie: along a polyline of `count` >= 2 points, both ends included.
 */
struct profile_path {
    const struct vec2 *points;
    size_t count;
    double length_m; /* filled by profile_path_init */
    size_t segment;  /* of the last query, and where it starts: */
    double segment_start_m;
};

void profile_path_init(struct profile_path *path, const struct vec2 *points, size_t count);

/*
 * The point at a distance along the path, 0..length_m (clamped). Distances in ascending order cost
 * O(1) each, over the whole path; a smaller one than before starts over.
 */
struct vec2 profile_path_at(struct profile_path *path, double distance_m);

/* How many samples a step of step_m > 0 gives: 0, step, 2·step, … and the far end. May be huge. */
double profile_step_count(const struct profile_path *path, double step_m);

#endif
