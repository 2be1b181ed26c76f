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
 * Decodes a file and builds the heightfield. Its bytes are charged to api->upload_bytes until
 * upload_release, because a thin file makes a large field: a tile has 256×256 cells, full or not. A
 * file's own spacing (ASC) stands where the options give none; its own origin, a place on a map far
 * from the frame's, does not. ERR_BAD_INPUT  malformed, or no spacing anywhere; else what
 * raster_decode says ERR_BUSY       others are being built, and all together pass
 * limits.uploads_bytes_max NULL on error. O(samples).
 */
struct heightfield *upload_heightfield(struct api *api, enum raster_format format,
                                       const void *bytes, size_t length,
                                       const struct upload *upload,
                                       enum triangulation triangulation, struct err *err);

/* What was charged for a field. */
uint64_t upload_charge(const struct heightfield *field);
/* The field of this charge is published, or dropped. Any thread. */
void upload_release(struct api *api, uint64_t charge);

#endif
