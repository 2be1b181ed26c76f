/*
 * Points of a model's surface, for questions about where it touches the ground.
 */
#ifndef KOTA_SAND_SKIN_H
#define KOTA_SAND_SKIN_H

#include "base/err.h"
#include "formats/polygon/polygon_set.h"

enum { SKIN_POINTS_MAX = 32768 };

/*
 * The vertices of a mesh of triangles and points between them, at most step_m apart along a
 * triangle's sides as long as that makes no more than SKIN_POINTS_MAX, about a centre. Of a mesh
 * with more vertices than that only some.
 *
 * points_m  out: [*count][3], malloc; NULL and ERR_NO_MEMORY
 */
enum err_code skin_points(const struct polygon_set *mesh, struct vec3 centre, double step_m,
                          float (**points_m)[3], uint32_t *count, struct err *err);

#endif
