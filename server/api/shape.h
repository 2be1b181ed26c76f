/*
 * JSON shapes that several answers share, and the ids of their words.
 */
#ifndef KOTA_API_SHAPE_H
#define KOTA_API_SHAPE_H

#include "api/json_write.h"
#include "terrain/edit.h"
#include "world/query.h"

extern const char *const shape_triangulations[]; /* by enum triangulation, NULL-terminated */
extern const char *const shape_roles[];          /* by enum layer_role, NULL-terminated */
extern const char *const shape_frames[];         /* by enum mesh_frame, NULL-terminated */
extern const char *const shape_pulls[];          /* by is_outward of a space, NULL-terminated */

const char *shape_ground_status(enum ground_status status);

/* A whole Locale object; with `import`, unless NULL, as its last member. */
void shape_locale(struct json_writer *w, const struct locale *locale,
                  const struct mesh_import *import);
/* The same, still open: members may follow. */
void shape_locale_open(struct json_writer *w, const struct locale *locale,
                       const struct mesh_import *import);

/* [c,r] */
void shape_cell(struct json_writer *w, const uint32_t cell[2]);

/* [c0,r0,cols,rows], or null without columns. */
void shape_rect(struct json_writer *w, const struct sample_rect *rect);

/* The members t … triangle, polygon of a hit, or all of them null when hit is NULL: the first ones
 * of an object. */
void shape_hit_members(struct json_writer *w, const struct locale_hit *hit);

/*
 * The same as pieces (json_pieces.h), with a comma before each member: an id in quotes; the members
 * cell and polygon of a place on a layer, one of which is null; those of a hit.
 */
enum { SHAPE_ID_BYTES = WORLD_ID_MAX + 2, SHAPE_PLACE_BYTES = 64, SHAPE_HIT_BYTES = 640 };
char *shape_id_piece(char *at, const char *id);
char *shape_cell_piece(char *at, const struct layer *layer, const uint32_t cell[2]);
char *shape_polygon_piece(char *at, const struct layer *layer, uint32_t polygon);
char *shape_hit_pieces(char *at, const struct locale_hit *hit);
/* The member velocity of a place on a layer that was moved; nothing for any other. */
char *shape_velocity_piece(char *at, const struct layer *layer, struct vec3 velocity);

/* The members translation and yaw_deg. */
void shape_pose_members(struct json_writer *w, const struct pose *pose);

#endif
