/*
 * A ball as a model: the body of an impact that has a radius and no model.
 */
#ifndef KOTA_SAND_BALL_H
#define KOTA_SAND_BALL_H

#include <stddef.h>

enum { BALL_OBJ_BYTES = 16384 };

/*
 * Writes a closed OBJ file of triangles about the origin, all of its vertices radius_m away from
 * it, 0 < radius_m < 1e6. Returns its length. The same radius gives the same bytes.
 */
size_t ball_obj(double radius_m, char out[BALL_OBJ_BYTES]);

#endif
