/*
 * Heights of a real DEM against values that GDAL and an independent script computed
 * (SRTM3 N42E001: Pyrenees, with voids).
 *
 * The oracle counts rows from the north; the field is flipped on import, so row r is 1200 - r there
 * and a cell's north-west sample is its (0,1): the diagonal NW-SE is `anti`, NE-SW is `main`.
 */
#include "formats/raster.h"
#include "terrain/heightfield.h"

#include "support/test_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SIDE = 1201, VOID = -32768 };

/* Column names of the file, in its order. */
enum { KIND, COL, ROW, NEAREST, BILINEAR, NW_SE, NE_SW, VOID_CORNERS, BILINEAR_M, FIELDS };

static struct heightfield *load(enum triangulation triangulation)
{
    size_t length;
    uint8_t *bytes = test_data_read("rasters/srtm3_N42E001/N42E001.hgt", &length);
    struct raster_options options = {.height_scale = 1, .flip_y = true};
    struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, triangulation, 0};
    struct heightfield *field;
    struct raster raster;
    struct err err;

    if (bytes == NULL)
        return NULL;
    if (raster_decode(RASTER_HGT, bytes, length, &options, &raster_limits_default, &raster, &err))
        fail_msg("%s", err.msg);
    field = heightfield_create(&spec, raster.heights_m, &err);
    if (field == NULL || !heightfield_validate(field, &err))
        fail_msg("%s", err.msg);
    raster_free(&raster);
    free(bytes);
    return field;
}

/* Splits a line at its commas in place; empty fields stay. */
static void split(char *line, char *fields[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        char *comma = strpbrk(line, ",\r\n");

        fields[i] = line;
        if (comma == NULL)
            comma = line + strlen(line);
        line = comma + (*comma != '\0');
        *comma = '\0';
    }
}

static void compare(const struct heightfield *field, char *const fields[FIELDS],
                    enum interpolation mode, int column, double slack)
{
    double row = strtod(fields[ROW], NULL);
    struct vec2 at = {strtod(fields[COL], NULL), SIDE - 1 - row};
    bool is_hole = fields[column][0] == '\0' || strtod(fields[column], NULL) == VOID;
    struct ground_point got;

    heightfield_height(field, at, mode, &got);
    if (is_hole ? got.status != GROUND_HOLE
                : got.status != GROUND_OK ||
                      !(fabs(got.height_m - strtod(fields[column], NULL)) <= slack))
        fail_msg("%s point %s, %s mode %d: status %d, height %.9f, expected \"%s\"", fields[KIND],
                 fields[COL], fields[ROW], (int)mode, got.status, got.height_m, fields[column]);
}

static void heights_equal_the_oracle(void **state)
{
    struct heightfield *anti = load(TRIANGULATION_ANTI), *main = load(TRIANGULATION_MAIN);
    const char *path = test_data_path("rasters/srtm3_N42E001/srtm3_N42E001.oracle.csv");
    char line[256], *fields[FIELDS];
    unsigned points = 0;

    (void)state;
    if (anti == NULL || path == NULL) {
        print_message("skipped: no shared terrain data\n");
        skip();
    }
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        split(line, fields);
        double row = strtod(fields[ROW], NULL);

        if (row - floor(row) != 0.5) /* a tie turns around with the flip */
            compare(anti, fields, INTERPOLATION_NEAREST, NEAREST, 0);
        compare(anti, fields, INTERPOLATION_BILINEAR, BILINEAR, 1e-6);
        /* beside a void the oracle leaves out triangles that exist */
        if (fields[NW_SE][0] != '\0') {
            compare(anti, fields, INTERPOLATION_TRIANGLE, NW_SE, 1e-6);
            compare(main, fields, INTERPOLATION_TRIANGLE, NE_SW, 1e-6);
        }
        points++;
    }
    fclose(file);
    assert_int_equal(points, 244);
    heightfield_unref(anti);
    heightfield_unref(main);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heights_equal_the_oracle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
