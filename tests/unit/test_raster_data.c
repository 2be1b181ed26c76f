/*
 * The real terrain of the shared set: each original against its PNG copy, sample by sample, and
 * each raster against the minimum, maximum, mean and voids that its meta.json tells (made with
 * GDAL). Skipped, with the reason, where the set is absent.
 */
#include "tests/support/raster_check.h"
#include "tests/support/test_data.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* What a folder's meta.json says. */
struct meta {
    uint32_t cols, rows;
    double scale, offset, min, max, mean, png_max_error_m;
    double spacing_x, spacing_y;
    size_t voids;
    bool has_void_code;
    double void_code;
    bool stats_are_codes; /* PNG originals: min, max and mean are codes, not metres */
};

static double meta_number(const cJSON *json, const char *folder, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);

    if (!cJSON_IsNumber(item))
        fail_msg("%s: meta.json has no number \"%s\"", folder, name);
    return item->valuedouble;
}

static bool meta_has_number(const cJSON *json, const char *name)
{
    return cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(json, name));
}

/* False, after a message, when the folder is absent. */
static bool meta_read(const char *folder, struct meta *out)
{
    char name[128];
    size_t length;
    uint8_t *bytes;
    cJSON *json;

    snprintf(name, sizeof name, "rasters/%s/meta.json", folder);
    bytes = test_data_read(name, &length);
    if (!bytes) {
        print_message("%s is absent: set KOTA_TEST_DATA or put the data at ../shared/data\n", name);
        return false;
    }
    json = cJSON_ParseWithLength((const char *)bytes, length);
    free(bytes);
    if (!json)
        fail_msg("%s is not JSON", name);
    *out = (struct meta){
        .cols = (uint32_t)meta_number(json, folder, "width"),
        .rows = (uint32_t)meta_number(json, folder, "height"),
        .scale = meta_number(json, folder, "scale"),
        .offset = meta_number(json, folder, "offset"),
        .min = meta_number(json, folder, "min"),
        .max = meta_number(json, folder, "max"),
        .mean = meta_number(json, folder, "mean"),
        .spacing_x = meta_number(json, folder, "spacing_m_x"),
        .spacing_y = meta_number(json, folder, "spacing_m_y"),
        .voids = (size_t)meta_number(json, folder, "void_samples"),
        .has_void_code = meta_has_number(json, "png_void_code"),
    };
    out->stats_are_codes = !out->has_void_code;
    if (out->has_void_code) {
        out->void_code = meta_number(json, folder, "png_void_code");
        out->png_max_error_m = meta_number(json, folder, "png_max_error_m");
    }
    cJSON_Delete(json);
    return true;
}

static void file_decode(const char *folder, const char *file, enum raster_format format,
                        const struct raster_options *options, struct raster *out)
{
    char name[128];
    size_t length;
    uint8_t *bytes;
    struct err err;

    snprintf(name, sizeof name, "rasters/%s/%s", folder, file);
    bytes = test_data_read(name, &length);
    if (!bytes)
        fail_msg("%s has a meta.json but no %s", folder, file);
    if (raster_check_decode(format, bytes, length, options, NULL, out, &err))
        fail_msg("%s: %s", name, err.msg);
    free(bytes);
}

static void copy_decode(const char *folder, const struct meta *meta, bool flip_y,
                        struct raster *out)
{
    const struct raster_options options = {
        .height_scale = meta->stats_are_codes ? 1 : meta->scale,
        .height_offset = meta->stats_are_codes ? 0 : meta->offset,
        .flip_y = flip_y,
        .has_nodata = meta->has_void_code,
        .nodata = meta->void_code,
    };
    char file[64];

    snprintf(file, sizeof file, "%s.png", folder);
    file_decode(folder, file, RASTER_PNG, &options, out);
    if (out->cols != meta->cols || out->rows != meta->rows)
        fail_msg("%s: %u x %u samples, meta.json says %u x %u", folder, out->cols, out->rows,
                 meta->cols, meta->rows);
}

/*
 * Both flipped, so that the flip is part of what must agree. float32 itself rounds by at most half
 * of its spacing at the greatest height, which is added to what the copy may be off.
 */
static void originals_compare(const char *folder, const char *file, enum raster_format format)
{
    struct raster_options options = {.height_scale = 1, .flip_y = true};
    struct raster original, copy;
    struct meta meta;
    double allowed, worst = 0;

    if (!meta_read(folder, &meta))
        skip();
    if (format == RASTER_F32) {
        options.cols = meta.cols;
        options.rows = meta.rows;
    }
    file_decode(folder, file, format, &options, &original);
    copy_decode(folder, &meta, true, &copy);
    assert_int_equal(original.cols, copy.cols);
    assert_int_equal(original.rows, copy.rows);
    allowed = meta.png_max_error_m;
    if (allowed > 0)
        allowed += fmax(fabs(meta.min), fabs(meta.max)) * 0x1p-24;
    for (size_t i = 0; i < (size_t)original.cols * original.rows; i++) {
        double a = (double)original.heights_m[i], b = (double)copy.heights_m[i];

        if (isnan(a) != isnan(b) || fabs(a - b) > allowed)
            fail_msg("%s, column %zu of row %zu: %s has %.9g, its PNG copy %.9g", folder,
                     i % original.cols, i / original.cols, file, a, b);
        if (fabs(a - b) > worst)
            worst = fabs(a - b);
    }
    print_message("%s: %u x %u samples, the copy is off by at most %.9g m (allowed %.9g)\n", folder,
                  original.cols, original.rows, worst, allowed);
    if (format == RASTER_ASC &&
        (original.spacing_x != meta.spacing_x || original.spacing_y != meta.spacing_y ||
         original.origin_x != meta.spacing_x / 2 || original.origin_y != meta.spacing_y / 2))
        fail_msg("%s: spacing %g, %g, origin %g, %g", folder, original.spacing_x,
                 original.spacing_y, original.origin_x, original.origin_y);
    raster_free(&original);
    raster_free(&copy);
}

static void srtm3_n41e001_equals_its_png_exactly(void **state)
{
    (void)state;
    originals_compare("srtm3_N41E001", "N41E001.hgt", RASTER_HGT);
}

static void srtm3_n42e001_equals_its_png_exactly(void **state)
{
    (void)state;
    originals_compare("srtm3_N42E001", "N42E001.hgt", RASTER_HGT);
}

static void hugo_site_equals_its_png_exactly(void **state)
{
    (void)state;
    originals_compare("hugo_site", "hugo_site.asc", RASTER_ASC);
}

static void volcano_equals_its_png_exactly(void **state)
{
    (void)state;
    originals_compare("volcano", "volcano.asc", RASTER_ASC);
}

static void lidar_equals_its_png_within_the_error_it_names(void **state)
{
    (void)state;
    originals_compare("lidar_1m", "lidar_1m.f32", RASTER_F32);
}

/* The last row of the northern tile is the first of the southern one (SOURCES.md). */
static void neighbouring_srtm_tiles_share_their_border_row(void **state)
{
    struct raster north, south;
    struct meta meta;
    size_t cols;

    (void)state;
    if (!meta_read("srtm3_N41E001", &meta) || !meta_read("srtm3_N42E001", &meta))
        skip();
    file_decode("srtm3_N42E001", "N42E001.hgt", RASTER_HGT, NULL, &north);
    file_decode("srtm3_N41E001", "N41E001.hgt", RASTER_HGT, NULL, &south);
    cols = north.cols;
    for (size_t i = 0; i < cols; i++) {
        float a = north.heights_m[(north.rows - 1) * cols + i], b = south.heights_m[i];

        if (a != b && !(isnan(a) && isnan(b)))
            fail_msg("column %zu: %g in the north, %g in the south", i, (double)a, (double)b);
    }
    raster_free(&north);
    raster_free(&south);
}

static void stats_compare(const char *folder)
{
    double min = INFINITY, max = -INFINITY, sum = 0, error;
    struct raster raster;
    struct meta meta;
    size_t voids = 0, samples;

    if (!meta_read(folder, &meta))
        skip();
    copy_decode(folder, &meta, false, &raster);
    samples = (size_t)raster.cols * raster.rows;
    for (size_t i = 0; i < samples; i++) {
        double height = (double)raster.heights_m[i];

        if (isnan(height)) {
            voids++;
            continue;
        }
        min = fmin(min, height);
        max = fmax(max, height);
        sum += height;
    }
    error = meta.png_max_error_m + (meta.png_max_error_m > 0 ? meta.max * 0x1p-24 : 0);
    if (voids != meta.voids || fabs(min - meta.min) > error || fabs(max - meta.max) > error)
        fail_msg("%s: %zu voids, %.9g .. %.9g; meta.json: %zu, %.9g .. %.9g", folder, voids, min,
                 max, meta.voids, meta.min, meta.max);
    if (fabs(sum / (double)(samples - voids) - meta.mean) > error + 0.5e-4 + 1e-9)
        fail_msg("%s: mean %.9g, meta.json %.9g", folder, sum / (double)(samples - voids),
                 meta.mean);
    raster_free(&raster);
}

static void each_png_has_the_voids_and_heights_its_meta_tells(void **state)
{
    static const char *const folders[] = {"puget_1k",       "srtm3_N41E001",     "srtm3_N42E001",
                                          "srtm1_S46W066",  "fuji_srtm3",        "sthelens_usgs",
                                          "volcano",        "hugo_site",         "lidar_1m",
                                          "mars_mola_4ppd", "apollo15_lroc_8bit"};

    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        stats_compare(folders[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(srtm3_n41e001_equals_its_png_exactly),
        cmocka_unit_test(srtm3_n42e001_equals_its_png_exactly),
        cmocka_unit_test(hugo_site_equals_its_png_exactly),
        cmocka_unit_test(volcano_equals_its_png_exactly),
        cmocka_unit_test(lidar_equals_its_png_within_the_error_it_names),
        cmocka_unit_test(neighbouring_srtm_tiles_share_their_border_row),
        cmocka_unit_test(each_png_has_the_voids_and_heights_its_meta_tells),
    };

    return cmocka_run_group_tests_name("raster_data", tests, NULL, NULL);
}
