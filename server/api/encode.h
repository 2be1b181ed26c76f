/*
 * JSON shapes that several answers share, and the ids of their words.
 */
#ifndef KOTA_API_ENCODE_H
#define KOTA_API_ENCODE_H

#include "formats/raster/raster.h"
#include "json/json_write.h"
#include "terrain/field/edit.h"
#include "terrain/mesh/mesh_trace.h"
#include "world/ask/query.h"

extern const char *const triangulation_names[]; /* by enum triangulation, NULL-terminated */
extern const char *const role_names[];          /* by enum layer_role, NULL-terminated */
extern const char *const frame_names[];         /* by enum mesh_frame, NULL-terminated */
extern const char *const pull_names[];          /* by is_outward of a space, NULL-terminated */

const char *encode_contact_status(enum contact_status status);

/* What has become of a file: `import` of an answer. */
struct imported {
    bool is_raster;
    struct mesh_import mesh;
    struct raster_import raster;
};

/* A whole Locale object; with `import`, unless NULL, as its last member. */
void encode_locale(struct json_writer *w, const struct locale *locale,
                   const struct imported *import);
/* The same, with or without its layers, still open: members may follow. */
void encode_locale_open(struct json_writer *w, const struct locale *locale, bool with_layers,
                        const struct imported *import);

/* The members locale and revision; null without one. */
void encode_locale_members(struct json_writer *w, const struct locale *locale);

/* [c,r] */
void encode_cell(struct json_writer *w, const uint32_t cell[2]);

/* [c0,r0,cols,rows], or null without columns. */
void encode_rect(struct json_writer *w, const struct sample_rect *rect);

/* The members distance … polygon of a hit along a unit direction: the first ones of an object. */
void encode_hit_members(struct json_writer *w, const struct locale_hit *hit);

/*
 * The same as pieces (json_raw.h), with a comma before each member: an id in quotes; the members
 * cell and polygon of a place on a layer, one of which is null; those of a hit.
 */
enum { ENCODED_ID_BYTES = WORLD_ID_MAX + 2, ENCODED_PLACE_BYTES = 64, ENCODED_HIT_BYTES = 680 };
char *encode_id_raw(char *at, const char *id);
/* The member layer: its id; of a body among granules null, and the member body. */
char *encode_layer_raw(char *at, const struct layer *layer);
char *encode_cell_raw(char *at, const struct layer *layer, const uint32_t cell[2]);
char *encode_polygon_raw(char *at, const struct layer *layer, uint32_t polygon);
char *encode_hit_raw(char *at, const struct locale_hit *hit);
/* The same without the distance; hit NULL: all of them null. */
char *encode_hit_place_raw(char *at, const struct locale_hit *hit);
/* The same of a ray, whose t is before the distance; hit NULL: all of them null. */
char *encode_ray_hit_raw(char *at, const struct ray *ray, const struct locale_hit *hit);
/* The member velocity of a place on a layer that was moved; nothing for any other. */
char *encode_velocity_raw(char *at, const struct layer *layer, struct vec3 velocity);

/* {"origin":[x,y,z],"axes":[[x,y,z] × 3]}: the frame of a mesh's boxes. */
void encode_axes(struct json_writer *w, const struct mesh_axes *axes);

/* The members translation and yaw_deg. */
void encode_pose_members(struct json_writer *w, const struct pose *pose);

#endif
