/*
 * A patch as JSON.
 */
#ifndef KOTA_API_ENCODE_PATCH_H
#define KOTA_API_ENCODE_PATCH_H

#include "json/json_write.h"
#include "sand/patch/patch.h"

/* The Patch object. */
void encode_patch(struct json_writer *w, const struct patch_report *report);

/* Members of an event `state` and of one `poses`, each as an object. */
void encode_patch_state(struct json_writer *w, const struct patch_report *report,
                        const struct patch_transition *transition);
void encode_patch_poses(struct json_writer *w, const struct patch_report *report);

#endif
