/*
 * Polygons as triangles, for those who draw them.
 */
#ifndef KOTA_FORMATS_POLYGON_TRIANGLES_H
#define KOTA_FORMATS_POLYGON_TRIANGLES_H

#include "formats/polygon/polygon_set.h"

/* Twice the area of a polygon as a vector: M. Newell's sum over the edges. */
struct vec3 polygon_area(const struct polygon_set *set, const uint32_t *corners, uint32_t count);

/* The work of cutting, to be used again. NULL without memory. */
struct polygon_cutter;
struct polygon_cutter *polygon_cutter_create(void);
void polygon_cutter_destroy(struct polygon_cutter *cutter);
/*
 * Cuts one polygon, concave ones by ears: *triangles has three indices into its corners for each.
 * How many; 0: it has no area, or is not simple, or has too many corners. *area as above.
 */
uint32_t polygon_cut(struct polygon_cutter *cutter, const struct polygon_set *set, size_t polygon,
                     const uint32_t **triangles, struct vec3 *area);

/* All triangles of a set, in the order of its polygons. ERR_NO_MEMORY. */
enum err_code polygon_triangles(const struct polygon_set *set,
                                void (*put)(void *context, const struct vec3 corners[3]),
                                void *context, struct err *err);

#endif
