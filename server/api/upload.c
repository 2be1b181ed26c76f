/*
 * Uploads. The options are read by the same functions as any call's (options.h), so that the query
 * of a PUT, the text after `FILE?` and an entry of locale.json have one grammar.
 */
#include "api/upload.h"

#include "api/options.h"
#include "api/encode.h"
#include "base/degree_grid.h"

#include <stdio.h>
#include <string.h>

/* What a mesh takes while it is built: its own arrays, its image, and a draft of that. */
enum { MESH_POLYGON_BYTES = 512, MESH_CORNER_BYTES = 64, MESH_VERTEX_BYTES = 96 };

bool upload_format_of_name(const char *name, struct upload_format *out)
{
    *out = (struct upload_format){.kind = LAYER_HEIGHTFIELD};
    if (raster_format_of_name(name, &out->raster))
        return true;
    out->kind = LAYER_MESH;
    return polygon_format_of_name(name, &out->polygon);
}

bool upload_format_of_word(const char *word, struct upload_format *out)
{
    char name[16];

    if (snprintf(name, sizeof name, "file.%s", word) >= (int)sizeof name || strchr(word, '.'))
        return false;
    return upload_format_of_name(name, out);
}

bool upload_format_of_media_type(const char *media_type, struct upload_format *out)
{
    *out = (struct upload_format){.kind = LAYER_HEIGHTFIELD};
    if (raster_format_of_media_type(media_type, &out->raster))
        return true;
    out->kind = LAYER_MESH;
    return polygon_format_of_media_type(media_type, &out->polygon);
}

const char *const *upload_names(enum layer_kind kind)
{
    static const char *const rasters[] = {"role",          "spacing", "origin", "height_scale",
                                          "height_offset", "flip_y",  "nodata", "cols",
                                          "rows",          "frame",   NULL};
    static const char *const polygons[] = {
        "role",   "up",           "scale",     "frame", "gravity", "precision_max_m",
        "strict", "max_polygons", "max_depth", NULL};

    return kind == LAYER_MESH ? polygons : rasters;
}

/* Any whole number is judged by the limits of a side. */
static enum err_code decode_side(struct call *call, const char *name, uint32_t *out,
                                 struct err *err)
{
    double side = 0;
    bool is_given = false;

    if (option_number(call, name, &side, &is_given, err))
        return err->code;
    if (!is_given)
        return ERR_OK;
    if (side != floor(side))
        err_set(err, ERR_BAD_INPUT, "%.17g is not a whole number", side);
    else if (side < 2)
        err_set(err, ERR_BAD_INPUT, "%.17g is outside 2..%d", side, HEIGHTFIELD_SIDE_MAX);
    else if (side > HEIGHTFIELD_SIDE_MAX)
        err_limit(err, ERR_TOO_LARGE, HEIGHTFIELD_SIDE_MAX, side,
                  "%.17g samples: a side has at most %d", side, HEIGHTFIELD_SIDE_MAX);
    else
        *out = (uint32_t)side;
    return side >= 2 && *out > 0 ? ERR_OK : err_at(err, "%s", name);
}

static enum err_code decode_size(struct call *call, enum raster_format format, struct upload *out,
                                 struct err *err)
{
    uint32_t cols = 0, rows = 0; /* not given */

    if (decode_side(call, "cols", &cols, err) || decode_side(call, "rows", &rows, err))
        return err->code;
    if (format == RASTER_F32 && (cols == 0 || rows == 0))
        return err_set_at(err, ERR_MISSING, cols == 0 ? "cols" : "rows",
                          "an f32 file needs cols and rows, %s is missing",
                          cols == 0 ? "cols" : "rows");
    if (format != RASTER_F32 && (cols != 0 || rows != 0))
        return err_set_at(err, ERR_BAD_INPUT, cols != 0 ? "cols" : "rows",
                          "cols and rows belong to f32 files; this file says its own");
    out->raster.cols = cols;
    out->raster.rows = rows;
    return ERR_OK;
}

static enum err_code decode_raster(struct call *call, struct upload *out, struct err *err)
{
    bool is_scale_given = false, is_offset_given = false;
    int frame = -1;

    if (option_word(call, "frame", frame_names, &frame, err))
        return err->code;
    if (frame >= 0)
        return err_set_at(err, ERR_UNPROCESSABLE, "frame",
                          "a heightfield takes no frame, frame=%s is for meshes",
                          frame_names[frame]);
    if (out->role != LAYER_GROUND)
        return err_set_at(err, ERR_BAD_INPUT, "role",
                          "a heightfield is ground, it cannot be a ceiling");
    if (option_numbers(call, "spacing", 2, out->spacing_m, &out->has_spacing, err) ||
        option_numbers(call, "origin", 2, out->origin_m, &out->has_origin, err) ||
        option_number(call, "height_scale", &out->raster.height_scale, &is_scale_given, err) ||
        option_number(call, "height_offset", &out->raster.height_offset, &is_offset_given, err) ||
        option_boolean(call, "flip_y", &out->raster.flip_y, err) ||
        option_number(call, "nodata", &out->raster.nodata, &out->raster.has_nodata, err) ||
        decode_size(call, out->format.raster, out, err))
        return err->code;
    out->raster.is_placed = out->has_spacing;
    out->raster.is_scaled = is_scale_given || is_offset_given;
    return ERR_OK;
}

/* Of the query or of the file. */
static enum err_code check_spacing(double x_m, double y_m, struct err *err)
{
    double least = HEIGHTFIELD_SPACING_MIN_M, most = HEIGHTFIELD_SPACING_MAX_M;

    if (x_m >= least && x_m <= most && y_m >= least && y_m <= most)
        return ERR_OK;
    return err_set_at(err, ERR_BAD_INPUT, "spacing",
                      "spacing is %.17g,%.17g, each must be %g to %g m", x_m, y_m, least, most);
}

/* The direction of gravity: inward on a planet, outward in a drum, unless given. */
static enum err_code decode_space(struct call *call, struct mesh_space *out, struct err *err)
{
    int frame = MESH_CARTESIAN, pull = -1;

    if (option_word(call, "frame", frame_names, &frame, err) ||
        option_word(call, "gravity", pull_names, &pull, err))
        return err->code;
    if (frame == MESH_CARTESIAN && pull >= 0)
        return err_set_at(
            err, ERR_UNPROCESSABLE, "gravity",
            "gravity=%s is for frame=spherical and frame=cylindrical; that of a cartesian layer "
            "is the locale's",
            pull_names[pull]);
    out->frame = (enum mesh_frame)frame;
    out->is_outward = pull >= 0 ? pull == 1 : frame == MESH_CYLINDRICAL;
    return ERR_OK;
}

static enum err_code decode_polygon(struct call *call, struct upload *out, struct err *err)
{
    static const char *const axes[] = {"z", "y", NULL};
    uint64_t max_polygons = 0, max_depth = 0;
    int axis = 0;

    if (option_word(call, "up", axes, &axis, err) || decode_space(call, &out->space, err) ||
        option_number(call, "scale", &out->polygon.scale, NULL, err) ||
        option_number(call, "precision_max_m", &out->precision_max_m, NULL, err) ||
        option_boolean(call, "strict", &out->is_strict, err) ||
        option_integer(call, "max_polygons", 1, MESH_MAX_POLYGONS_MOST, &max_polygons, err) ||
        option_integer(call, "max_depth", 1, MESH_DEPTH_MAX, &max_depth, err))
        return err->code;
    out->space.max_polygons = (uint32_t)max_polygons;
    out->space.max_depth = (uint32_t)max_depth;
    if (!(out->polygon.scale > 0))
        return err_set_at(err, ERR_BAD_INPUT, "scale", "scale %.17g: it must be above 0",
                          out->polygon.scale);
    if (!(out->precision_max_m >= 0))
        return err_set_at(err, ERR_BAD_INPUT, "precision_max_m",
                          "precision_max_m %.17g: it must be 0 or more", out->precision_max_m);
    out->polygon.up_y = axis == 1;
    return ERR_OK;
}

enum err_code upload_decode(struct call *call, struct upload_format format, bool flip_y_default,
                            struct upload *out, struct err *err)
{
    int role = LAYER_GROUND;

    *out = (struct upload){
        .format = format,
        .raster = {.height_scale = 1, .flip_y = flip_y_default},
        .polygon = polygon_options_default,
        .precision_max_m = UPLOAD_PRECISION_MAX_M,
    };
    if (option_word(call, "role", role_names, &role, err))
        return err->code;
    out->role = (enum layer_role)role;
    return format.kind == LAYER_MESH ? decode_polygon(call, out, err)
                                     : decode_raster(call, out, err);
}

/* A cellsize in degrees, taken as metres, would make a field of a few centimetres. */
static enum err_code degrees_refuse(const struct raster *raster, struct err *err)
{
    const double origin[2] = {raster->origin_x, raster->origin_y};
    const double spacing[2] = {raster->spacing_x, raster->spacing_y};
    const double size[2] = {spacing[0] * (raster->cols - 1), spacing[1] * (raster->rows - 1)};
    double metres[2];

    if (!raster->has_origin || raster->is_in_metres ||
        !degree_grid_suspected(origin, spacing, size, metres))
        return ERR_OK;
    return err_set_at(
        err, ERR_UNPROCESSABLE, "spacing",
        "the grid seems to be in degrees: cells of %.6g x %.6g from %.6g, %.6g; spacing says "
        "the metres: if they are degrees, about %.6g,%.6g; if they are metres, %.17g,%.17g",
        spacing[0], spacing[1], origin[0], origin[1], metres[0], metres[1], spacing[0], spacing[1]);
}

enum err_code upload_spec(const struct upload *upload, const struct raster *raster,
                          enum triangulation triangulation, struct heightfield_spec *out,
                          struct err *err)
{
    *out = (struct heightfield_spec){.cols = raster->cols, .rows = raster->rows};
    out->triangulation = triangulation;
    if (upload->has_spacing) {
        out->spacing_x_m = upload->spacing_m[0];
        out->spacing_y_m = upload->spacing_m[1];
    } else if (raster->has_spacing) {
        if (degrees_refuse(raster, err))
            return err->code;
        out->spacing_x_m = raster->spacing_x;
        out->spacing_y_m = raster->spacing_y;
    } else {
        return err_set_at(err, ERR_MISSING, "spacing",
                          "spacing=sx,sy is missing, and the file does not carry it");
    }
    if (check_spacing(out->spacing_x_m, out->spacing_y_m, err))
        return err->code;
    if (upload->has_origin) {
        out->origin_x_m = upload->origin_m[0];
        out->origin_y_m = upload->origin_m[1];
    } else if (raster->has_import && raster->has_origin && !upload->has_spacing) {
        out->origin_x_m = raster->origin_x;
        out->origin_y_m = raster->origin_y;
    }
    return ERR_OK;
}

enum err_code upload_charge(struct api *api, uint64_t bytes, struct err *err)
{
    uint64_t most = api_limits(api)->uploads_bytes_max;
    uint64_t before = atomic_fetch_add(&api->upload_bytes, bytes);

    if (before == 0 || before + bytes <= most)
        return ERR_OK;
    atomic_fetch_sub(&api->upload_bytes, bytes);
    return err_limit(err, ERR_BUSY, (double)most, (double)(before + bytes),
                     "the layers that are being built would take %llu bytes together, the most is "
                     "%llu; try again in a moment",
                     (unsigned long long)(before + bytes), (unsigned long long)most);
}

void upload_release(struct api *api, uint64_t bytes)
{
    atomic_fetch_sub(&api->upload_bytes, bytes);
}

static void raster_layer(struct api *api, const char *id, const struct heightfield_spec *spec,
                         const struct raster *raster, struct uploaded *out, struct err *err)
{
    uint64_t charge = heightfield_tile_bytes(spec);
    struct heightfield *field;

    if (upload_charge(api, charge, err))
        return;
    field = heightfield_create(spec, raster->heights_m, err);
    out->layer = field ? layer_create_heightfield(id, field, err) : NULL;
    if (out->layer)
        out->charge = charge;
    else
        upload_release(api, charge);
}

enum err_code upload_check_strict(const struct mesh_import *import, struct err *err)
{
    if (import->dropped == 0)
        return ERR_OK;
    return err_set(err, ERR_UNPROCESSABLE,
                   "strict: %llu polygons would be dropped; the first is polygon %u, which %s",
                   (unsigned long long)import->dropped, import->drops[0].polygon,
                   mesh_fate_text[import->drops[0].fate]);
}

static void polygon_layer(struct api *api, const char *id, const struct upload *upload,
                          struct vec3 gravity, struct polygon_set *polygons, struct pace *pace,
                          struct uploaded *out, struct err *err)
{
    uint64_t copied = polygons->instances_copied;
    uint64_t charge = polygons->polygon_count * MESH_POLYGON_BYTES +
                      polygons->starts[polygons->polygon_count] * MESH_CORNER_BYTES +
                      polygons->vertex_count * MESH_VERTEX_BYTES;

    if (upload_charge(api, charge, err)) {
        polygon_set_free(polygons);
        return;
    }
    out->layer = layer_create_mesh_in(id, upload->role, polygons, upload->space, gravity, pace,
                                      &out->import.mesh, err);
    if (out->layer && upload->is_strict && upload_check_strict(&out->import.mesh, err)) {
        err_at(err, "strict");
        layer_unref(out->layer);
        out->layer = NULL;
    }
    out->import.mesh.instances_copied += copied;
    if (out->layer)
        out->charge = charge;
    else
        upload_release(api, charge);
}

static enum err_code precision_check(const struct upload *upload, const struct polygon_set *set,
                                     struct err *err)
{
    if (set->precision_m <= upload->precision_max_m)
        return ERR_OK;
    return err_limit_at(err, ERR_UNPROCESSABLE, "precision_max_m", upload->precision_max_m,
                        set->precision_m,
                        "its coordinates are read as float32, which has steps of %g m there, over "
                        "precision_max_m %g; move them nearer to 0, send OBJ or PLY, or raise it",
                        set->precision_m, upload->precision_max_m);
}

static void place_text(uint32_t crs, double lat_deg, double lng_deg, char out[static 64])
{
    if (crs != 0)
        snprintf(out, 64, "EPSG:%u", crs);
    else
        snprintf(out, 64, "lat %.9g, lng %.9g", lat_deg, lng_deg);
}

/* A file of one place does not go into a locale of another one. */
static enum err_code place_check(const struct raster_import *import,
                                 const struct locale_manifest *manifest, struct err *err)
{
    bool is_known = import->has_geo || import->crs != 0;
    char here[64], there[64];

    if (!is_known || (!manifest->has_geo && manifest->crs == 0) ||
        (import->has_geo == manifest->has_geo && import->crs == manifest->crs &&
         (!import->has_geo ||
          (import->lat_deg == manifest->geo_lat_deg && import->lng_deg == manifest->geo_lng_deg))))
        return ERR_OK;
    place_text(import->crs, import->lat_deg, import->lng_deg, there);
    place_text(manifest->crs, manifest->geo_lat_deg, manifest->geo_lng_deg, here);
    return err_set_at(
        err, ERR_UNPROCESSABLE, "origin",
        "the file is at %s, the locale at %s: origin=x,y places it in the locale's frame all the "
        "same",
        there, here);
}

void upload_set_place(const struct uploaded *uploaded, struct world_change *change)
{
    const struct raster_import *import = &uploaded->import.raster;

    change->manifest = locale_manifest_default;
    change->manifest.has_geo = import->has_geo;
    change->manifest.geo_lat_deg = import->has_geo ? import->lat_deg : 0;
    change->manifest.geo_lng_deg = import->has_geo ? import->lng_deg : 0;
    change->manifest.crs = import->crs;
}

enum err_code upload_layer(struct api *api, const char *id, const void *bytes, size_t length,
                           const struct upload *upload, const struct locale_manifest *manifest,
                           struct pace *pace, struct uploaded *out, struct err *err)
{
    struct heightfield_spec spec;
    struct raster raster;
    struct polygon_options options = upload->polygon;
    struct polygon_set polygons;
    double precision_m;

    *out = (struct uploaded){.layer = NULL};
    if (upload->format.kind == LAYER_MESH) {
        if (upload->space.frame == MESH_CARTESIAN)
            options.axis = vec3_opposite(manifest->gravity);
        if (polygon_decode(upload->format.polygon, bytes, length, &options,
                           &api_limits(api)->polygon, &polygons, err))
            return err->code;
        precision_m = polygons.precision_m;
        if (pace_step(pace, PACE_UNITS, err) || precision_check(upload, &polygons, err))
            polygon_set_free(&polygons);
        else
            polygon_layer(api, id, upload, manifest->gravity, &polygons, pace, out, err);
        out->has_import = out->layer != NULL;
        out->import.mesh.precision_m = precision_m;
        return err->code;
    }
    if (raster_decode(upload->format.raster, bytes, length, &upload->raster,
                      &api_limits(api)->raster, &raster, err))
        return err->code;
    out->import = (struct imported){.is_raster = true, .raster = raster.import};
    out->has_import = raster.has_import;
    if (upload->has_spacing || upload->has_origin || !raster.has_origin) {
        out->import.raster.has_geo = false;
        out->import.raster.crs = 0;
    }
    if (place_check(&out->import.raster, manifest, err) == ERR_OK &&
        upload_spec(upload, &raster, manifest->triangulation, &spec, err) == ERR_OK)
        raster_layer(api, id, &spec, &raster, out, err);
    raster_free(&raster);
    return err->code;
}
