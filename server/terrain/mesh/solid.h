/*
 * Solids: closed triangle meshes, as bodies are made of.
 */
#ifndef KOTA_TERRAIN_SOLID_H
#define KOTA_TERRAIN_SOLID_H

#include "base/err.h"
#include "terrain/vec.h"

#include <stddef.h>
#include <stdint.h>

struct solid {
    uint64_t triangles, vertices; /* vertices that a triangle has */
    double volume_m3;             /* > 0 */
    struct box3 bounds;
};

/*
 * Measures a mesh, if it is a solid: every polygon is a triangle, every edge is shared by exactly
 * two of them in opposite direction, the faces look outwards and enclose a volume. Vertices are the
 * same when their index is. Polygon i is corners[starts[i]] .. corners[starts[i+1]-1]; indices are
 * those of vertices, which are finite.
 *
 * ERR_UNPROCESSABLE  it is none: names the polygon or the edge, counted from 0
 * ERR_NO_MEMORY
 * O(n log n), any thread.
 */
enum err_code solid_measure(const struct vec3 *vertices, const uint32_t *corners,
                            const uint32_t *starts, size_t polygon_count, struct solid *out,
                            struct err *err);

#endif
