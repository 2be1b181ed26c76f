/*
 * The corners of a polygon, whose vertices are float64 numbers, or float32 numbers where all of a
 * mesh's are such. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_FACE_H
#define KOTA_TERRAIN_FACE_H

#include "terrain/vec.h"

#include <stddef.h>
#include <stdint.h>

struct points {
    const struct vec3 *wide;
    const float (*narrow)[3]; /* instead of those; NULL: there are those */
};

static inline struct vec3 point_at(const struct points *points, size_t i)
{
    const float *p;

    if (!points->narrow)
        return points->wide[i];
    p = points->narrow[i];
    return (struct vec3){(double)p[0], (double)p[1], (double)p[2]};
}

/* Those from this one on. */
static inline struct points points_from(const struct points *points, size_t i)
{
    return points->narrow ? (struct points){NULL, points->narrow + i}
                          : (struct points){points->wide + i, NULL};
}

struct face {
    struct points points;
    const uint32_t *corners; /* indices of points */
    uint32_t count;
};

static inline struct vec3 face_at(const struct face *face, uint32_t i)
{
    return point_at(&face->points, face->corners[i]);
}

/* The corner after corner i. */
static inline struct vec3 face_after(const struct face *face, uint32_t i)
{
    return face_at(face, i + 1 < face->count ? i + 1 : 0);
}

/* Face i of triangles that share no vertex and follow one another: they need no indices. */
static inline struct face face_of_three(const struct points *points, size_t i)
{
    static const uint32_t three[3] = {0, 1, 2};

    return (struct face){points_from(points, 3 * i), three, 3};
}

#endif
