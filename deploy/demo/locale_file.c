/*
 * A locale directory is our own output, or a foreign DEM with a manifest beside it; so it is read
 * with the same decoders as the daemon's and checked, though less is asked for: the first layer's
 * file, spacing, origin and codes, and the triangulation.
 */
#include "deploy/demo/locale_file.h"

#include "formats/raster/raster.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MANIFEST_BYTES_MAX = 1 << 20, LAYER_BYTES_MAX = 1 << 30 };

uint8_t *file_read(const char *path, size_t length_max, size_t *length, struct err *err)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long size;

    if (!file) {
        err_set(err, ERR_NOT_FOUND, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET)) {
        err_set(err, ERR_INTERNAL, "cannot read %s: %s", path, strerror(errno));
    } else if ((size_t)size > length_max) {
        err_limit(err, ERR_TOO_LARGE, (double)length_max, (double)size,
                  "%s has %ld bytes, at most %zu are read", path, size, length_max);
    } else if (!(bytes = malloc((size_t)size + 1))) {
        err_set(err, ERR_NO_MEMORY, "no memory for %s", path);
    } else if (fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        err_set(err, ERR_INTERNAL, "cannot read %s: %s", path, strerror(errno));
        free(bytes);
        bytes = NULL;
    } else {
        bytes[size] = 0;
        *length = (size_t)size;
    }
    fclose(file);
    return bytes;
}

/* ---- members ------------------------------------------------------------------------------ */

static enum err_code member_number(const cJSON *object, const char *name, double *value,
                                   struct err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (item && !cJSON_IsNumber(item))
        return err_set(err, ERR_BAD_INPUT, "locale.json: %s is not a number", name);
    if (item)
        *value = item->valuedouble;
    return ERR_OK;
}

static enum err_code member_pair(const cJSON *object, const char *name, double *x, double *y,
                                 struct err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!item)
        return ERR_OK;
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 ||
        !cJSON_IsNumber(cJSON_GetArrayItem(item, 0)) ||
        !cJSON_IsNumber(cJSON_GetArrayItem(item, 1)))
        return err_set(err, ERR_BAD_INPUT, "locale.json: %s is not a pair of numbers", name);
    *x = cJSON_GetArrayItem(item, 0)->valuedouble;
    *y = cJSON_GetArrayItem(item, 1)->valuedouble;
    return ERR_OK;
}

static enum err_code layer_options(const cJSON *layer, enum raster_format format,
                                   struct raster_options *options, struct err *err)
{
    const cJSON *flip = cJSON_GetObjectItemCaseSensitive(layer, "flip_y");
    double cols = 0, rows = 0;

    *options = (struct raster_options){.height_scale = 1};
    options->flip_y = flip ? cJSON_IsTrue(flip) : format == RASTER_HGT || format == RASTER_ASC;
    options->has_nodata = cJSON_HasObjectItem(layer, "nodata");
    if (member_number(layer, "height_scale", &options->height_scale, err) ||
        member_number(layer, "height_offset", &options->height_offset, err) ||
        member_number(layer, "nodata", &options->nodata, err) ||
        member_number(layer, "cols", &cols, err) || member_number(layer, "rows", &rows, err))
        return err->code;
    if (!(cols >= 0 && cols <= HEIGHTFIELD_SIDE_MAX && rows >= 0 && rows <= HEIGHTFIELD_SIDE_MAX))
        return err_set(err, ERR_BAD_INPUT, "locale.json: cols and rows are out of range");
    if (format == RASTER_F32) {
        options->cols = (uint32_t)cols;
        options->rows = (uint32_t)rows;
    }
    return ERR_OK;
}

/* ---- layers ------------------------------------------------------------------------------- */

static bool is_mesh_name(const char *name)
{
    static const char *const endings[] = {".obj", ".glb", ".gltf", ".ply", ".stl", ".ac", ".dae"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (!strcasecmp(dot, endings[i]))
            return true;
    return false;
}

static enum err_code layer_raster(const char *dir, const cJSON *layer, struct raster *out,
                                  struct err *err)
{
    const cJSON *file = cJSON_GetObjectItemCaseSensitive(layer, "file");
    struct raster_options options;
    enum raster_format format;
    enum err_code code;
    char path[PATH_MAX];
    size_t length = 0;
    uint8_t *bytes;

    if (cJSON_IsString(file) && is_mesh_name(file->valuestring))
        return err_set(err, ERR_UNPROCESSABLE, "the first layer of %s, %s, is a mesh", dir,
                       file->valuestring);
    if (!cJSON_IsString(file) || !raster_format_of_name(file->valuestring, &format))
        return err_set(err, ERR_BAD_INPUT, "locale.json: the layer's file is not a raster's name");
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, file->valuestring) >= sizeof path)
        return err_set(err, ERR_BAD_INPUT, "the path of %s is too long", file->valuestring);
    if (layer_options(layer, format, &options, err))
        return err->code;
    bytes = file_read(path, LAYER_BYTES_MAX, &length, err);
    if (!bytes)
        return err->code;
    code = raster_decode(format, bytes, length, &options, &raster_limits_default, out, err);
    free(bytes);
    return code;
}

static enum triangulation triangulation_of(const cJSON *manifest)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(manifest, "triangulation");

    if (cJSON_IsString(name) && !strcmp(name->valuestring, "main"))
        return TRIANGULATION_MAIN;
    if (cJSON_IsString(name) && !strcmp(name->valuestring, "alternating"))
        return TRIANGULATION_ALTERNATING;
    return TRIANGULATION_ANTI;
}

static struct heightfield *layer_field(const char *dir, const cJSON *manifest, struct err *err)
{
    const cJSON *layer =
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(manifest, "layers"), 0);
    struct heightfield_spec spec = {.spacing_x_m = 1, .spacing_y_m = 1};
    struct heightfield *field = NULL;
    struct raster raster;

    if (!cJSON_IsObject(layer)) {
        err_set(err, ERR_BAD_INPUT, "%s/locale.json has no layers", dir);
        return NULL;
    }
    if (layer_raster(dir, layer, &raster, err))
        return NULL;
    spec.cols = raster.cols;
    spec.rows = raster.rows;
    spec.triangulation = triangulation_of(manifest);
    if (raster.has_spacing) {
        spec.spacing_x_m = raster.spacing_x;
        spec.spacing_y_m = raster.spacing_y;
    }
    if (!member_pair(layer, "spacing", &spec.spacing_x_m, &spec.spacing_y_m, err) &&
        !member_pair(layer, "origin", &spec.origin_x_m, &spec.origin_y_m, err))
        field = heightfield_create(&spec, raster.heights_m, err);
    raster_free(&raster);
    return field;
}

struct heightfield *locale_read(const char *dir, struct err *err)
{
    struct heightfield *field = NULL;
    char path[PATH_MAX];
    size_t length = 0;
    cJSON *manifest;
    uint8_t *text;

    if ((size_t)snprintf(path, sizeof path, "%s/locale.json", dir) >= sizeof path) {
        err_set(err, ERR_BAD_INPUT, "the path %s is too long", dir);
        return NULL;
    }
    text = file_read(path, MANIFEST_BYTES_MAX, &length, err);
    if (!text)
        return NULL;
    manifest = cJSON_ParseWithLength((const char *)text, length);
    free(text);
    if (manifest)
        field = layer_field(dir, manifest, err);
    else
        err_set(err, ERR_BAD_INPUT, "%s is not JSON", path);
    cJSON_Delete(manifest);
    return field;
}
