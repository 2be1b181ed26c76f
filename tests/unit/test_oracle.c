/*
 * Heights of a real SRTM tile against values that GDAL and NumPy worked out from the same file
 * (srtm3_N42E001.oracle.csv, described in the data's SOURCES.md): nearest, bilinear and both
 * triangulations, at random points, corners, samples, grid lines and beside voids. The whole way is
 * under test: decoder, flip, heightfield, query. Skipped, with the reason, without the data.
 *
 * The oracle counts rows from the north. Flipped on import, row r lies at y = rows - 1 - r, and the
 * diagonal from the north-west to the south-east sample is `anti`; unflipped, y = r and it is
 * `main`.
 */
#include "base/text/decimal.h"
#include "terrain/field/heightfield.h"
#include "tests/support/raster_check.h"
#include "tests/support/test_data.h"

#include <cjson/cJSON.h>
#include <stdio.h>

#define FOLDER "rasters/srtm3_N42E001/"

enum { ORACLE_VOID = -32768, POINTS_MAX = 1000 };

enum column { KIND, COL, ROW, NEAREST, BILINEAR, NW_SE, NE_SW, VOID_CORNERS, BILINEAR_M, COLUMNS };

struct oracle_point {
    char kind[16];
    double value[COLUMNS]; /* NaN where the field is empty */
};

struct oracle {
    size_t count;
    struct oracle_point points[POINTS_MAX];
};

/* One line of the file; false at its end. */
static bool line_read(const char **at, const char *end, struct oracle_point *out)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));

    if (!stop)
        return false;
    for (int column = 0; column < COLUMNS; column++) {
        size_t length = strcspn(*at, ",\n");

        out->value[column] = NAN;
        if (column == KIND)
            snprintf(out->kind, sizeof out->kind, "%.*s", (int)length, *at);
        else if (length > 0)
            assert_int_equal(decimal_parse(*at, length, &out->value[column]), DECIMAL_OK);
        if (*at + length == stop && column + 1 < COLUMNS)
            fail_msg("a line has %d columns", column + 1);
        *at += length + 1;
    }
    return true;
}

/* As many points as meta.json promises. */
static size_t points_promised(void)
{
    size_t length;
    uint8_t *bytes = test_data_read(FOLDER "meta.json", &length);
    cJSON *json = bytes ? cJSON_ParseWithLength((const char *)bytes, length) : NULL;
    const cJSON *oracle = cJSON_GetObjectItemCaseSensitive(json, "oracle");
    const cJSON *points = cJSON_GetObjectItemCaseSensitive(oracle, "points");
    size_t count = cJSON_IsNumber(points) ? (size_t)points->valuedouble : 0;

    cJSON_Delete(json);
    free(bytes);
    return count;
}

static void oracle_read(struct oracle *out)
{
    size_t length;
    char *text = (char *)test_data_read(FOLDER "srtm3_N42E001.oracle.csv", &length);
    const char *at = text;

    if (!text) {
        print_message("%s is absent: set KOTA_TEST_DATA or put the data at ../shared/data\n",
                      FOLDER "srtm3_N42E001.oracle.csv");
        skip();
    }
    at = (const char *)memchr(text, '\n', length) + 1; /* the names of the columns */
    out->count = 0;
    while (out->count < POINTS_MAX && line_read(&at, text + length, &out->points[out->count]))
        out->count++;
    free(text);
    if (out->count == 0 || out->count != points_promised())
        fail_msg("read %zu points, meta.json promises %zu", out->count, points_promised());
}

/* The tile as a heightfield with a sample every metre; skips the test when it is absent. */
static struct heightfield *tile_load(const char *file, enum raster_format format,
                                     const struct raster_options *options,
                                     enum triangulation triangulation)
{
    struct heightfield_spec spec = {
        .spacing_x_m = 1, .spacing_y_m = 1, .triangulation = triangulation};
    struct heightfield *field;
    struct raster raster;
    struct err err;
    size_t length;
    uint8_t *bytes = test_data_read(file, &length);

    if (!bytes) {
        print_message("%s is absent\n", file);
        skip();
    }
    if (raster_check_decode(format, bytes, length, options, NULL, &raster, &err))
        fail_msg("%s: %s", file, err.msg);
    free(bytes);
    spec.cols = raster.cols;
    spec.rows = raster.rows;
    field = heightfield_create(&spec, raster.heights_m, &err);
    if (!field || !heightfield_validate(field, &err))
        fail_msg("%s: %s", file, err.msg);
    raster_free(&raster);
    return field;
}

static struct ground_point ask(const struct heightfield *field, const struct oracle_point *point,
                               bool flipped, enum interpolation mode)
{
    double row = point->value[ROW];
    struct vec2 at = {point->value[COL], flipped ? heightfield_spec(field)->rows - 1 - row : row};
    struct ground_point out;

    heightfield_height(field, at, mode, &out);
    return out;
}

/* The oracle is printed with twelve digits; a sample of the tile is a whole number of metres. */
static void height_check(const struct oracle_point *point, const char *what,
                         const struct ground_point *got, double expected)
{
    const double tolerance_m = 1e-6;
    bool none = isnan(expected);

    if (got->status != (none ? GROUND_HOLE : GROUND_OK) ||
        (!none && !(fabs(got->height_m - expected) <= tolerance_m)))
        fail_msg("%s %.6f, %.6f, %s: got status %d, height %.12g; expected %.12g", point->kind,
                 point->value[COL], point->value[ROW], what, (int)got->status, got->height_m,
                 expected);
}

/*
 * The oracle leaves a triangle's height empty wherever one of the cell's four corners is void. Our
 * surface still has the triangle that lacks just that corner, so there either answer may be right,
 * but with two void corners or more no triangle is left.
 */
static void triangle_check(const struct oracle_point *point, const char *what,
                           const struct ground_point *got, double expected)
{
    if (isnan(expected) && point->value[VOID_CORNERS] == 1 && got->status == GROUND_OK)
        return;
    height_check(point, what, got, expected);
}

static void tile_compare(const char *file, enum raster_format format,
                         const struct raster_options *options)
{
    static struct oracle oracle;
    bool flipped = options->flip_y;
    struct heightfield *nw_se, *ne_sw;
    struct err err;

    oracle_read(&oracle);
    nw_se = tile_load(file, format, options, flipped ? TRIANGULATION_ANTI : TRIANGULATION_MAIN);
    ne_sw = heightfield_with_triangulation(nw_se, flipped ? TRIANGULATION_MAIN : TRIANGULATION_ANTI,
                                           &err);
    assert_non_null(ne_sw);
    for (size_t i = 0; i < oracle.count; i++) {
        const struct oracle_point *point = &oracle.points[i];
        double nearest = point->value[NEAREST];
        struct ground_point got = ask(nw_se, point, flipped, INTERPOLATION_NEAREST);

        height_check(point, "nearest", &got, nearest == ORACLE_VOID ? NAN : nearest);
        got = ask(nw_se, point, flipped, INTERPOLATION_BILINEAR);
        height_check(point, "bilinear", &got, point->value[BILINEAR]);
        got = ask(nw_se, point, flipped, INTERPOLATION_TRIANGLE);
        triangle_check(point, "north-west to south-east", &got, point->value[NW_SE]);
        got = ask(ne_sw, point, flipped, INTERPOLATION_TRIANGLE);
        triangle_check(point, "north-east to south-west", &got, point->value[NE_SW]);
    }
    print_message("%s: %zu points agree\n", file, oracle.count);
    heightfield_unref(nw_se);
    heightfield_unref(ne_sw);
}

static void srtm_heights_agree_with_gdal_when_north_is_up(void **state)
{
    static const struct raster_options options = {.height_scale = 1, .flip_y = true};

    (void)state;
    tile_compare(FOLDER "N42E001.hgt", RASTER_HGT, &options);
}

static void srtm_heights_agree_with_gdal_in_the_order_of_the_file(void **state)
{
    static const struct raster_options options = {.height_scale = 1};

    (void)state;
    tile_compare(FOLDER "N42E001.hgt", RASTER_HGT, &options);
}

static void heights_of_the_png_copy_agree_with_gdal(void **state)
{
    static const struct raster_options options = {
        .height_scale = 1, .height_offset = 348, .flip_y = true, .has_nodata = true, .nodata = 0};

    (void)state;
    tile_compare(FOLDER "srtm3_N42E001.png", RASTER_PNG, &options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(srtm_heights_agree_with_gdal_when_north_is_up),
        cmocka_unit_test(srtm_heights_agree_with_gdal_in_the_order_of_the_file),
        cmocka_unit_test(heights_of_the_png_copy_agree_with_gdal),
    };

    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
