/*
 * Rasters through GDAL.
 *
 * libgdal depends on a hundred megabytes of libraries, and most users have PNG or .hgt files that
 * the daemon reads itself. So it is neither linked nor needed to build: it is opened at run time,
 * and the few functions that are called are those of its C interface that have not changed since
 * GDAL 3.0. KOTA_GDAL names a library in place of the default names.
 *
 * No data follows GDAL's mask: the no-data value, a mask band or an alpha band. The band's scale,
 * offset and unit of height are reported and not applied, so that the daemon gets the numbers of
 * the file, and computes heights from them as for any other file.
 */
#include "client/gdal.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SAMPLES_MAX ((size_t)1 << 28)
#define STRIP_SAMPLES ((size_t)1 << 20)

/* From gdal.h: values that are part of its interface. */
enum { OF_RASTER = 0x02, OF_VERBOSE_ERROR = 0x40, GF_READ = 0, GDT_BYTE = 1, GDT_FLOAT32 = 6 };
enum { MASK_ALL_VALID = 1 };

/* SONAMEs of GDAL 3.0 to those that are to come. */
enum { SONAME_FIRST = 26, SONAME_LAST = 60 };

#define FUNCTIONS(X)                                                                               \
    X(void, GDALAllRegister, (void))                                                               \
    X(void *, GDALOpenEx,                                                                          \
      (const char *, unsigned, const char *const *, const char *const *, const char *const *))     \
    X(void, GDALClose, (void *))                                                                   \
    X(int, GDALGetRasterXSize, (void *))                                                           \
    X(int, GDALGetRasterYSize, (void *))                                                           \
    X(int, GDALGetRasterCount, (void *))                                                           \
    X(void *, GDALGetRasterBand, (void *, int))                                                    \
    X(int, GDALRasterIO, (void *, int, int, int, int, int, void *, int, int, int, int, int))       \
    X(int, GDALGetGeoTransform, (void *, double *))                                                \
    X(double, GDALGetRasterScale, (void *, int *))                                                 \
    X(double, GDALGetRasterOffset, (void *, int *))                                                \
    X(const char *, GDALGetRasterUnitType, (void *))                                               \
    X(int, GDALGetMaskFlags, (void *))                                                             \
    X(void *, GDALGetMaskBand, (void *))                                                           \
    X(void *, GDALGetDatasetDriver, (void *))                                                      \
    X(const char *, GDALGetDriverShortName, (void *))                                              \
    X(void *, GDALGetSpatialRef, (void *))                                                         \
    X(int, OSRIsGeographic, (void *))                                                              \
    X(int, OSRIsProjected, (void *))                                                               \
    X(const char *, OSRGetAuthorityName, (void *, const char *))                                   \
    X(const char *, OSRGetAuthorityCode, (void *, const char *))                                   \
    X(const char *, OSRGetName, (void *))                                                          \
    X(double, OSRGetLinearUnits, (void *, char **))                                                \
    X(double, OSRGetAngularUnits, (void *, char **))                                               \
    X(double, OSRGetSemiMajor, (void *, int *))                                                    \
    X(double, OSRGetInvFlattening, (void *, int *))                                                \
    X(void *, CPLSetErrorHandler, (void *))                                                        \
    X(void, CPLQuietErrorHandler, (int, int, const char *))                                        \
    X(const char *, CPLGetLastErrorMsg, (void))

struct gdal {
    void *library;
#define FUNCTION_MEMBER(result, name, arguments) result(*name) arguments;
    FUNCTIONS(FUNCTION_MEMBER)
#undef FUNCTION_MEMBER
};

/* ---- the library ----------------------------------------------------------------------------- */

static void *library_open(void)
{
    const char *chosen = getenv("KOTA_GDAL");
    void *library;
    char name[32];

    if (chosen && *chosen)
        return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    for (int version = SONAME_LAST; version >= SONAME_FIRST; version--) {
        snprintf(name, sizeof(name), "libgdal.so.%d", version);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return dlopen("libgdal.so", RTLD_NOW | RTLD_LOCAL);
}

static enum err_code gdal_open(struct gdal *gdal, struct err *err)
{
    const char *missing = NULL;

    gdal->library = library_open();
    if (!gdal->library)
        return err_set(err, ERR_NO_DEVICE,
                       "GDAL is not installed (Debian: apt install gdal-bin), or KOTA_GDAL names "
                       "no library");
#define FUNCTION_FIND(result, name, arguments)                                                     \
    *(void **)&gdal->name = dlsym(gdal->library, #name);                                           \
    if (!gdal->name)                                                                               \
        missing = #name;
    FUNCTIONS(FUNCTION_FIND)
#undef FUNCTION_FIND
    if (missing) {
        dlclose(gdal->library);
        return err_set(err, ERR_NO_DEVICE, "the GDAL that is installed has no %s: 3.0 is needed",
                       missing);
    }
    gdal->CPLSetErrorHandler(*(void **)&gdal->CPLQuietErrorHandler);
    gdal->GDALAllRegister();
    return ERR_OK;
}

/* GDAL's last message, its first line. */
static enum err_code gdal_error(const struct gdal *gdal, const char *name, struct err *err)
{
    const char *said = gdal->CPLGetLastErrorMsg();
    size_t length;

    if (!said || !*said)
        said = "GDAL knows no format that it could be";
    if (strncmp(said, name, strlen(name)) == 0 && strncmp(said + strlen(name), ": ", 2) == 0)
        said += strlen(name) + 2;
    length = strcspn(said, "\r\n");
    length = length < 160 ? length : 160;
    if (length > 0 && said[length - 1] == '.')
        length--;
    return err_set(
        err, ERR_BAD_INPUT, "%.120s: %.*s%s", name, (int)length, said,
        strstr(said, "not recognized")
            ? "; kota itself reads png, f32, hgt, asc, tif, obj, glb, gltf, ply, stl, ac, dae"
            : "");
}

/* ---- the file's metadata --------------------------------------------------------------------- */

static void copy_text(char *out, size_t bytes, const char *text)
{
    snprintf(out, bytes, "%s", text ? text : "");
}

static void read_frame(const struct gdal *gdal, void *dataset, struct gdal_raster *out)
{
    void *frame = gdal->GDALGetSpatialRef(dataset);
    const char *authority;

    out->where.has_transform = gdal->GDALGetGeoTransform(dataset, out->where.transform) == 0;
    if (!frame)
        return;
    copy_text(out->frame, sizeof(out->frame), gdal->OSRGetName(frame));
    authority = gdal->OSRGetAuthorityName(frame, NULL);
    if (authority && strcmp(authority, "EPSG") == 0)
        copy_text(out->epsg, sizeof(out->epsg), gdal->OSRGetAuthorityCode(frame, NULL));
    out->where.is_geographic = gdal->OSRIsGeographic(frame) != 0;
    out->where.is_projected = gdal->OSRIsProjected(frame) != 0;
    out->where.unit = out->where.is_geographic ? gdal->OSRGetAngularUnits(frame, NULL)
                                               : gdal->OSRGetLinearUnits(frame, NULL);
    out->where.semi_major_m = gdal->OSRGetSemiMajor(frame, NULL);
    out->where.inverse_flattening = gdal->OSRGetInvFlattening(frame, NULL);
}

static void read_heights(const struct gdal *gdal, void *band, struct gdal_raster *out)
{
    int has_scale = 0, has_offset = 0;
    double scale = gdal->GDALGetRasterScale(band, &has_scale);
    double offset = gdal->GDALGetRasterOffset(band, &has_offset), unit_m;

    copy_text(out->height_unit, sizeof(out->height_unit), gdal->GDALGetRasterUnitType(band));
    unit_m = georef_height_unit_m(out->height_unit, strlen(out->height_unit));
    out->is_unit_unknown = unit_m == 0;
    unit_m = unit_m > 0 ? unit_m : 1;
    out->scale = (has_scale && isfinite(scale) && scale != 0 ? scale : 1) * unit_m;
    out->offset = (has_offset && isfinite(offset) ? offset : 0) * unit_m;
}

/* ---- the samples ----------------------------------------------------------------------------- */

/* Rows [first, first + count): numbers, and NaN where the mask is 0. */
static bool read_strip(const struct gdal *gdal, void *band, void *mask, uint8_t *valid,
                       struct gdal_raster *out, size_t first, size_t count)
{
    int cols = (int)out->where.cols, rows = (int)count;
    float *numbers = out->numbers + first * out->where.cols;

    if (gdal->GDALRasterIO(band, GF_READ, 0, (int)first, cols, rows, numbers, cols, rows,
                           GDT_FLOAT32, 0, 0) != 0)
        return false;
    if (!mask)
        return true;
    if (gdal->GDALRasterIO(mask, GF_READ, 0, (int)first, cols, rows, valid, cols, rows, GDT_BYTE, 0,
                           0) != 0)
        return false;
    for (size_t i = 0; i < count * out->where.cols; i++)
        if (!valid[i])
            numbers[i] = NAN;
    return true;
}

static enum err_code read_samples(const struct gdal *gdal, const char *name, void *band,
                                  void (*report)(void *context, double done, double all),
                                  void *context, struct gdal_raster *out, struct err *err)
{
    size_t strip = STRIP_SAMPLES / out->where.cols > 0 ? STRIP_SAMPLES / out->where.cols : 1;
    bool is_masked = (gdal->GDALGetMaskFlags(band) & MASK_ALL_VALID) == 0;
    void *mask = is_masked ? gdal->GDALGetMaskBand(band) : NULL;
    uint8_t *valid = malloc(strip * out->where.cols);

    out->numbers = malloc(out->where.cols * out->where.rows * sizeof(*out->numbers));
    if (!valid || !out->numbers)
        err_set(err, ERR_NO_MEMORY, "out of memory");
    for (size_t row = 0; !err->code && row < out->where.rows; row += strip) {
        size_t count = out->where.rows - row < strip ? out->where.rows - row : strip;

        if (!read_strip(gdal, band, mask, valid, out, row, count))
            gdal_error(gdal, name, err);
        else if (report)
            report(context, (double)(row + count), (double)out->where.rows);
    }
    free(valid);
    return err->code;
}

static enum err_code read_dataset(const struct gdal *gdal, const char *name, void *dataset,
                                  int band_number, struct gdal_raster *out, void **band,
                                  struct err *err)
{
    int cols = gdal->GDALGetRasterXSize(dataset), rows = gdal->GDALGetRasterYSize(dataset);
    int bands = gdal->GDALGetRasterCount(dataset);

    if (band_number < 1 || band_number > bands)
        return err_limit(err, ERR_BAD_INPUT, bands, band_number, "%.120s: band %d of %d", name,
                         band_number, bands);
    if (cols < 2 || rows < 2)
        return err_set(err, ERR_BAD_INPUT, "%.120s has %d x %d samples, 2 x 2 are needed", name,
                       cols, rows);
    if ((size_t)cols > SAMPLES_MAX / (size_t)rows)
        return err_limit(err, ERR_TOO_LARGE, (double)SAMPLES_MAX, (double)cols * rows,
                         "%.120s has %d x %d samples, at most %zu are read", name, cols, rows,
                         SAMPLES_MAX);
    *band = gdal->GDALGetRasterBand(dataset, band_number);
    if (!*band)
        return gdal_error(gdal, name, err);
    out->where.cols = (size_t)cols;
    out->where.rows = (size_t)rows;
    copy_text(out->driver, sizeof(out->driver),
              gdal->GDALGetDriverShortName(gdal->GDALGetDatasetDriver(dataset)));
    read_frame(gdal, dataset, out);
    read_heights(gdal, *band, out);
    return ERR_OK;
}

enum err_code gdal_read(const char *name, int band_number,
                        void (*report)(void *context, double done, double all), void *context,
                        struct gdal_raster *out, struct err *err)
{
    struct gdal gdal = {.library = NULL};
    void *dataset, *band = NULL;

    *out = (struct gdal_raster){.numbers = NULL};
    err->code = ERR_OK;
    if (gdal_open(&gdal, err))
        return err->code;
    dataset = gdal.GDALOpenEx(name, OF_RASTER | OF_VERBOSE_ERROR, NULL, NULL, NULL);
    if (!dataset) {
        gdal_error(&gdal, name, err);
    } else {
        if (!read_dataset(&gdal, name, dataset, band_number, out, &band, err))
            read_samples(&gdal, name, band, report, context, out, err);
        gdal.GDALClose(dataset);
    }
    if (err->code)
        gdal_free(out);
    /* The library stays: it has threads and exit handlers that would outlive dlclose. */
    return err->code;
}

void gdal_free(struct gdal_raster *raster)
{
    free(raster->numbers);
    raster->numbers = NULL;
}
