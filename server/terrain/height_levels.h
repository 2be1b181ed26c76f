/*
 * Heights alone by vectors: what height.c has of height_avx2.c and height_avx512.c. Inside of the
 * room only.
 *
 * Only fields split `anti`, and only points at least a cell from the field's upper edges: there
 * being inside is one comparison of how far it is from the origin, d < inner_m. All others, and
 * heights that come out as NaN, go to heightfield_height_general. The operations are those of
 * height.c, so the bits are the same.
 */
#ifndef KOTA_TERRAIN_HEIGHT_LEVELS_H
#define KOTA_TERRAIN_HEIGHT_LEVELS_H

#include "terrain/heightfield_data.h"

/* INTERPOLATION_TRIANGLE for any field and point, by what every machine has. */
struct ground_height heightfield_height_general(const struct heightfield *field, double x,
                                                double y);

/* The same for fields split `anti`. */
struct ground_height heightfield_height_avx2(const struct heightfield *field, double x, double y);
struct ground_height heightfield_height_avx512(const struct heightfield *field, double x, double y);

/* One of out and heights_m, the other is NULL; heights_m: NaN where there is none. */
void heightfield_heights_avx2(const struct heightfield *field, const struct vec2 *points,
                              size_t count, struct ground_height *out, double *heights_m);
void heightfield_heights_avx512(const struct heightfield *field, const struct vec2 *points,
                                size_t count, struct ground_height *out, double *heights_m);

/* As heightfield_heights_f32. */
bool heightfield_heights_f32_avx2(const struct heightfield *field, const unsigned char *floats,
                                  size_t count, const double base[3], unsigned char *out);
bool heightfield_heights_f32_avx512(const struct heightfield *field, const unsigned char *floats,
                                    size_t count, const double base[3], unsigned char *out);

#endif
