/*
 * From the bytes of a file to a heightfield: what PUT of a layer, `kotad FILE` and a world's
 * locale.json have in common.
 */
#ifndef KOTA_API_UPLOAD_H
#define KOTA_API_UPLOAD_H

#include "api/call.h"

struct upload {
    struct raster_options raster;
    bool has_spacing, has_origin;
    double spacing_m[2], origin_m[2];
};

/* spacing, origin, height_scale, height_offset, flip_y, nodata, cols, rows; NULL-terminated. */
extern const char *const upload_names[];

/*
 * Reads these options of a call, from the query or from a JSON object; flip_y_default stands where
 * flip_y is not given. ERR_BAD_INPUT names the option.
 */
enum err_code upload_decode(struct call *call, enum raster_format format, bool flip_y_default,
                            struct upload *out, struct err *err);

/*
 * Decodes a file and builds the heightfield. A file's own spacing (ASC) stands where the
 * options give none; its own origin, a place on a map far from the frame's, does not.
 * ERR_BAD_INPUT  malformed, or no spacing anywhere; else what raster_decode says
 * NULL on error. O(samples).
 */
struct heightfield *upload_heightfield(enum raster_format format, const void *bytes, size_t length,
                                       const struct upload *upload,
                                       const struct raster_limits *limits,
                                       enum triangulation triangulation, struct err *err);

#endif
