/*
 * Everything along a ray or a line of sight, in order, over the layers of a locale. Pure reading;
 * any thread that holds a snapshot.
 */
#ifndef KOTA_WORLD_ALL_HITS_H
#define KOTA_WORLD_ALL_HITS_H

#include "world/ask/query.h"

enum { ALL_HITS_MOST = 256 }; /* of one ray */

/*
 * The hits of a valid ray, by t: hits[most], most 1 to ALL_HITS_MOST; their number. The first has
 * the bits of locale_ray. A surface that is met at an edge or a vertex is met once; two triangles
 * of one layer nearer than a billionth of the coordinates (1 nm at least) are one hit.
 */
size_t locale_ray_all(const struct layer_choice *choice, const struct ray *ray, size_t most,
                      struct locale_hit *hits);

/*
 * The surfaces between two points; t runs from 0 at `from` to 1 at `to`. None when
 * locale_line_of_sight is free; else without what the ends stand on.
 */
size_t locale_sight_all(const struct layer_choice *choice, struct vec3 from, struct vec3 to,
                        size_t most, struct locale_hit *hits);

#endif
