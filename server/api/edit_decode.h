/*
 * The body of POST …/edits, to an edit that is checked as far as that goes without the field.
 */
#ifndef KOTA_API_EDIT_DECODE_H
#define KOTA_API_EDIT_DECODE_H

#include "api/call.h"
#include "terrain/field/edit.h"

/*
 * JSON: rect, op and heights, or brush; f32: rect and op in the query. edit->heights_m is malloc
 * and the caller's, NULL on error and for a brush; layer "" when none is named.
 *
 * ERR_BAD_INPUT          malformed; a height beyond float32; a count that is not the rect's
 * ERR_TOO_LARGE          more samples than limits.world.edit_samples_max, refused unread
 * ERR_UNPROCESSABLE      a rect that no field can hold, an id that no layer can have
 * ERR_UNSUPPORTED_MEDIA_TYPE, ERR_NO_MEMORY
 * O(bytes). Any thread.
 */
enum err_code edit_decode(struct call *call, struct edit *edit, char layer[WORLD_ID_MAX + 1],
                          struct err *err);

#endif
