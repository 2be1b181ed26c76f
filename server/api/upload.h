/*
 * From the bytes of a file to a layer, for PUT of a layer, `kotad FILE` and a world's locale.json.
 */
#ifndef KOTA_API_UPLOAD_H
#define KOTA_API_UPLOAD_H

#include "api/call.h"
#include "api/encode.h"
#include "formats/polygon/polygon_file.h"
#include "formats/raster/raster.h"

/* What a file is: a raster becomes a heightfield, polygons become a mesh. */
struct upload_format {
    enum layer_kind kind;
    enum raster_format raster;   /* LAYER_HEIGHTFIELD */
    enum polygon_format polygon; /* LAYER_MESH */
};

struct upload {
    struct upload_format format;
    enum layer_role role;
    struct raster_options raster; /* as the following two, LAYER_HEIGHTFIELD */
    bool has_spacing, has_origin;
    double spacing_m[2], origin_m[2];
    struct polygon_options polygon; /* LAYER_MESH, as the following */
    struct mesh_space space;
    bool is_strict; /* no polygon may be dropped */
    double precision_max_m;
};

/* The default of the greatest loss that is accepted. */
#define UPLOAD_PRECISION_MAX_M 0.01

/*
 * By a name's ending, a word of the `format` option (png f32 hgt asc tif obj glb gltf ply stl ac
 * dae), or a media type. False when it is none.
 */
bool upload_format_of_name(const char *name, struct upload_format *out);
bool upload_format_of_word(const char *word, struct upload_format *out);
bool upload_format_of_media_type(const char *media_type, struct upload_format *out);

/*
 * The names of the options, NULL-terminated. Rasters: role, spacing, origin, height_scale,
 * height_offset, flip_y, nodata, cols, rows, frame. Polygons: role, up, scale, frame, gravity,
 * precision_max_m, strict, max_polygons, max_depth.
 */
const char *const *upload_names(enum layer_kind kind);

/*
 * Reads these options of a call, from the query or from a JSON object; flip_y_default is the
 * default of flip_y. ERR_BAD_INPUT names the option; ERR_UNPROCESSABLE: a frame for a raster, a
 * gravity for a cartesian mesh.
 */
enum err_code upload_decode(struct call *call, struct upload_format format, bool flip_y_default,
                            struct upload *out, struct err *err);

/*
 * Bytes of layers that are being built are charged to api->upload_bytes until they are published or
 * dropped, because a thin file makes a large layer: a tile has 256×256 cells, full or not.
 * ERR_BUSY  others are being built, and all together pass limits.uploads_bytes_max. Any thread.
 */
enum err_code upload_charge(struct api *api, uint64_t bytes, struct err *err);
void upload_release(struct api *api, uint64_t bytes);

/*
 * The field's spec by the options and the file's own header. ERR_BAD_INPUT without a
 * spacing; ERR_UNPROCESSABLE: one that seems to be in degrees.
 */
enum err_code upload_spec(const struct upload *upload, const struct raster *raster,
                          enum triangulation triangulation, struct heightfield_spec *out,
                          struct err *err);

struct uploaded {
    struct layer *layer;    /* a reference */
    bool has_import;        /* of polygons, and of a GeoTIFF */
    struct imported import; /* else zero */
    uint64_t charge;        /* for upload_release */
};

/*
 * Decodes a file and builds the layer by the manifest's triangulation and gravity. A file's own
 * spacing (ASC, TIFF) is the default of the option. The origin of an ASC, a place on a map far from
 * the frame's, is ignored; that of a TIFF is in the manifest's system, or the manifest has none and
 * upload_set_place gives it that of the file.
 *
 * ERR_UNPROCESSABLE  a file's own spacing that seems to be in degrees; polygons that the reader
 *                    rounds by more than precision_max_m; a TIFF of another place than the manifest
 * ERR_BAD_INPUT  malformed, or no spacing anywhere; else as raster_decode, polygon_decode,
 *                mesh_create and upload_charge say
 * ERR_UNPROCESSABLE  is_strict, and polygons would be dropped
 * pace           as of mesh_options
 * *out is empty on error. O(samples), or the build of a mesh: no loop's thread.
 */
enum err_code upload_layer(struct api *api, const char *id, const void *bytes, size_t length,
                           const struct upload *upload, const struct locale_manifest *manifest,
                           struct pace *pace, struct uploaded *out, struct err *err);

/* Gives the change of a layer the place of its file, for a locale that has none. */
void upload_set_place(const struct uploaded *uploaded, struct world_change *change);

/* ERR_UNPROCESSABLE when polygons were dropped; names the first and why. */
enum err_code upload_check_strict(const struct mesh_import *import, struct err *err);

#endif
