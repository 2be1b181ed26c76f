/*
 * A patch as JSON.
 */
#ifndef KOTA_API_PATCH_SHAPE_H
#define KOTA_API_PATCH_SHAPE_H

#include "api/json_write.h"
#include "sand/patch.h"

/* The Patch object. */
void patch_shape(struct json_writer *w, const struct patch_report *report);

/* Members of an event `state` and of one `poses`, each as an object. */
void patch_shape_state(struct json_writer *w, const struct patch_report *report,
                       const struct patch_transition *transition);
void patch_shape_poses(struct json_writer *w, const struct patch_report *report);

#endif
