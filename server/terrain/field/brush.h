/*
 * Brushes: the part of edits that is round. For edit.c; edit.h describes each shape.
 */
#ifndef KOTA_TERRAIN_BRUSH_H
#define KOTA_TERRAIN_BRUSH_H

#include "terrain/field/edit.h"

/*
 * The samples nearer to the centre than the radius, as the least rectangle of the columns and of
 * the rows that do, each by itself; cut at the field's edges. O(1). Errors: edit_rect.
 */
enum err_code brush_rect(const struct heightfield_spec *spec, const struct brush *brush,
                         struct sample_rect *out, struct err *err);

/*
 * heights_m[rect.rows][rect.cols] holds the field's samples in the brush's rectangle and becomes
 * the new values; it is undefined after an error. Errors: edit_evaluate.
 */
enum err_code brush_apply(const struct heightfield *field, const struct brush *brush,
                          const struct sample_rect *rect, float *heights_m, struct err *err);

#endif
