/*
 * JSON shapes that several answers share, and the ids of their words.
 */
#ifndef KOTA_API_SHAPE_H
#define KOTA_API_SHAPE_H

#include "api/json_write.h"
#include "world/query.h"

extern const char *const shape_triangulations[]; /* by enum triangulation, NULL-terminated */

const char *shape_ground_status(enum ground_status status);

/* A whole Locale object. */
void shape_locale(struct json_writer *w, const struct locale *locale);

/* [c,r] */
void shape_cell(struct json_writer *w, const uint32_t cell[2]);

/* The members t … triangle of a hit, or all of them null when hit is NULL. */
void shape_hit_members(struct json_writer *w, const struct locale_hit *hit);

/* The status words of a ray's answer. */
enum ray_status { RAY_HIT, RAY_MISS, RAY_INVALID };
const char *shape_ray_status(enum ray_status status);

#endif
