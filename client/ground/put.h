/*
 * Values of bytes: the next state of a layer, as the writer of the daemon makes it.
 */
#ifndef KOTA_GROUND_PUT_H
#define KOTA_GROUND_PUT_H

#include "client/ground/copy.h"

/* in NULL: the defaults. False, and the error: it cannot be. */
/* Is it one? Numbers of a daemon's keep their bits. */
bool manifest_check(struct locale_manifest *manifest, struct err *err);
bool manifest_of(const struct kota_ground_manifest *in, struct locale_manifest *out,
                 struct err *err);

/*
 * Each a new layer, or NULL and the error.
 *
 * mesh_layer_of  polygons NULL: it cannot be edited
 */
struct layer *mesh_layer_of(const char *id, enum layer_role role, struct vec3 gravity,
                            const void *image, size_t image_bytes, const void *polygons,
                            size_t polygons_bytes, struct err *err);
struct layer *layer_after_polygons(const struct layer *layer, const void *bytes, size_t length,
                                   struct err *err);
struct layer *layer_after_samples(const struct layer *layer, const struct sample_rect *rect,
                                  const float *heights_m, struct err *err);
/* A part of a field whose least and greatest sample are `range`; NULL: no memory. */
struct layer *layer_widened(const struct layer *layer, const float range[2]);
/* In another pose, with the velocity that comes with it. */
struct layer *layer_posed(const struct layer *layer, const struct kota_ground_pose *pose,
                          uint64_t transform_seq, struct err *err);

#endif
