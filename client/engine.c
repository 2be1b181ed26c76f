/*
 * The files of engines.
 *
 * Problem: each engine has its own sizes, byte order, first row and scale, and shows wrong ground
 * without a word when one of them is wrong. Approach: a table of what each reads; the surface is
 * taken at the engine's samples, which are kota's own wherever the size allows it. Codes of 16 bits
 * go from the lowest height (0) to the highest (65535). A hole is 0 there, and NaN in float32.
 * docs/engines.md has the axes.
 */
#include "client/engine.h"

#include "formats/raster/raster.h"

#include <endian.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SIZE_MAX_ANY = 32768, CODE_MAX = 65535 };

/* The samples of the file, first row on top. */
struct grid {
    uint32_t cols, rows;
    double step[2]; /* between samples, in the ground's samples */
    double spacing_m[2];
    double low_m, range_m;     /* of all heights */
    double min_m[2], max_m[2]; /* where the file's ground begins and ends */
    size_t holes;
    float *heights_m; /* [rows][cols], row 0 in the south */
};

struct engine {
    const char *name;
    const char *endings[3];
    uint32_t sizes[10]; /* of a square, growing; empty: any, with one spacing for both axes */
    bool is_north_first;
    bool (*tell)(cJSON *told, const struct grid *grid);
};

/* ---- what to type ---------------------------------------------------------------------------- */

static bool add_numbers(cJSON *object, const char *name, const double *values, int count)
{
    cJSON *array = cJSON_CreateDoubleArray(values, count);

    if (array && cJSON_AddItemToObject(object, name, array))
        return true;
    cJSON_Delete(array);
    return false;
}

static bool add_triple(cJSON *object, const char *name, double x, double y, double z)
{
    return add_numbers(object, name, (const double[]){x, y, z}, 3);
}

/* Height in centimetres = location + (code - 32768) / 128 · scale. */
static bool tell_unreal(cJSON *told, const struct grid *grid)
{
    uint32_t quads = grid->cols > 4033 ? 127 : 63;
    double scale_z = grid->range_m * 100 * 128 / CODE_MAX;

    return add_triple(told, "location", 100 * grid->min_m[0], -100 * grid->max_m[1],
                      100 * grid->low_m + 256 * scale_z) &&
           add_triple(told, "scale", 100 * grid->spacing_m[0], 100 * grid->spacing_m[1], scale_z) &&
           cJSON_AddNumberToObject(told, "section_size", quads) &&
           cJSON_AddStringToObject(told, "sections_per_component", "2x2") &&
           cJSON_AddNumberToObject(told, "components", (grid->cols - 1) / (2 * quads));
}

static bool tell_unity(cJSON *told, const struct grid *grid)
{
    return cJSON_AddStringToObject(told, "depth", "Bit 16") &&
           cJSON_AddNumberToObject(told, "resolution", grid->cols) &&
           cJSON_AddStringToObject(told, "byte_order", "Windows") &&
           cJSON_AddFalseToObject(told, "flip_vertically") &&
           add_triple(told, "terrain_size", grid->max_m[0] - grid->min_m[0], grid->range_m,
                      grid->max_m[1] - grid->min_m[1]) &&
           add_triple(told, "position", grid->min_m[0], grid->low_m, grid->min_m[1]);
}

static bool tell_terrain3d(cJSON *told, const struct grid *grid)
{
    return add_numbers(told, "r16_range",
                       (const double[]){grid->low_m, grid->low_m + grid->range_m}, 2) &&
           add_numbers(told, "r16_size", (const double[]){grid->cols, grid->rows}, 2) &&
           cJSON_AddNumberToObject(told, "vertex_spacing", grid->spacing_m[0]) &&
           add_triple(told, "import_position", grid->min_m[0], 0, -grid->max_m[1]);
}

static bool tell_godot(cJSON *told, const struct grid *grid)
{
    return cJSON_AddNumberToObject(told, "map_width", grid->cols) &&
           cJSON_AddNumberToObject(told, "map_depth", grid->rows) &&
           add_triple(told, "scale", grid->spacing_m[0], 1, grid->spacing_m[0]) &&
           add_triple(told, "position", (grid->min_m[0] + grid->max_m[0]) / 2, 0,
                      -(grid->min_m[1] + grid->max_m[1]) / 2);
}

static const struct engine engines[] = {
    {"unreal", {".r16", ".png"}, {127, 253, 505, 1009, 2017, 4033, 8129}, true, tell_unreal},
    {"unity", {".raw", ".r16"}, {33, 65, 129, 257, 513, 1025, 2049, 4097}, false, tell_unity},
    {"terrain3d", {".r16"}, {0}, true, tell_terrain3d},
    {"godot", {".f32", ".glb"}, {0}, true, tell_godot},
    {"blender", {".glb"}, {0}, true, NULL},
};

static bool ends_in(const char *file, const char *ending)
{
    size_t length = strlen(file), tail = strlen(ending);

    return length > tail && strcasecmp(file + length - tail, ending) == 0;
}

const struct engine *engine_of(const char *name, const char *file, struct err *err)
{
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
        const struct engine *engine = &engines[i];
        const char *const *endings = engine->endings;

        if (strcmp(engine->name, name) != 0)
            continue;
        for (int k = 0; endings[k]; k++)
            if (ends_in(file, endings[k]))
                return engine;
        err_set(err, ERR_BAD_INPUT, "%.200s: for %s the name ends in %s%s%s", file, name,
                endings[0], endings[1] ? " or " : "", endings[1] ? endings[1] : "");
        return NULL;
    }
    err_set(err, ERR_BAD_INPUT, "--for '%.64s' is none of %s", name, ENGINE_NAMES);
    return NULL;
}

/* ---- the grid -------------------------------------------------------------------------------- */

/* The engine's size: the one that was asked for, or the least that keeps each sample. */
static enum err_code square_of(const struct engine *engine, const struct heightfield_spec *spec,
                               uint32_t size, struct grid *grid, struct err *err)
{
    uint32_t wanted = spec->cols > spec->rows ? spec->cols : spec->rows;
    char list[96] = "";

    for (int i = 0; engine->sizes[i]; i++) {
        size_t length = strlen(list);

        if (size ? engine->sizes[i] == size : grid->cols < wanted)
            grid->cols = grid->rows = engine->sizes[i];
        snprintf(list + length, sizeof(list) - length, " %u", engine->sizes[i]);
    }
    if (grid->cols == 0)
        return err_set(err, ERR_BAD_INPUT, "--size %u: %s takes%s", size, engine->name, list);
    grid->step[0] = (double)(spec->cols - 1) / (grid->cols - 1);
    grid->step[1] = (double)(spec->rows - 1) / (grid->rows - 1);
    return ERR_OK;
}

static enum err_code any_of(const struct engine_ground *ground, uint32_t size, struct grid *grid,
                            struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(ground->field);
    const uint32_t counts[2] = {spec->cols, spec->rows};
    uint32_t *const out[2] = {&grid->cols, &grid->rows};
    double spacing_m = fmin(ground->spacing_m[0], ground->spacing_m[1]);

    if (size == 1 || size > SIZE_MAX_ANY)
        return err_set(err, ERR_BAD_INPUT, "--size %u is not in 2..%d", size, SIZE_MAX_ANY);
    if (size)
        spacing_m =
            fmax((spec->cols - 1) * ground->spacing_m[0], (spec->rows - 1) * ground->spacing_m[1]) /
            (size - 1);
    for (int i = 0; i < 2; i++) {
        double count;

        grid->step[i] = spacing_m / ground->spacing_m[i];
        count = floor((counts[i] - 1) / grid->step[i] + 1e-9) + 1;
        if (count < 2 || count > SIZE_MAX_ANY)
            return err_set(err, ERR_BAD_INPUT, "--size: %.0f samples of %s are not in 2..%d", count,
                           i == 0 ? "a row" : "a column", SIZE_MAX_ANY);
        *out[i] = (uint32_t)count;
    }
    return ERR_OK;
}

/* The surface at each sample; the range of all of them. */
static enum err_code take_heights(const struct engine_ground *ground, struct grid *grid,
                                  struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(ground->field);
    double low = INFINITY, high = -INFINITY;
    float *at;

    at = grid->heights_m = malloc((size_t)grid->cols * grid->rows * sizeof(*at));
    if (!at)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u x %u samples", grid->cols, grid->rows);
    for (uint32_t r = 0; r < grid->rows; r++)
        for (uint32_t c = 0; c < grid->cols; c++, at++) {
            struct vec2 place = {fmin(c * grid->step[0], spec->cols - 1),
                                 fmin(r * grid->step[1], spec->rows - 1)};

            *at = (float)heightfield_interpolate(ground->field, place, INTERPOLATION_TRIANGLE)
                      .height_m;
            grid->holes += isnan(*at) ? 1 : 0;
            low = fmin(low, *at); /* the other one of a NaN */
            high = fmax(high, *at);
        }
    if (!(low <= high))
        return err_set(err, ERR_UNPROCESSABLE, "the layer has no ground at these samples");
    grid->low_m = low;
    grid->range_m = high > low ? high - low : 1;
    for (int i = 0; i < 2; i++) {
        grid->spacing_m[i] = ground->spacing_m[i] * grid->step[i];
        grid->min_m[i] = ground->origin_m[i];
        grid->max_m[i] =
            ground->origin_m[i] + ((i ? grid->rows : grid->cols) - 1) * grid->spacing_m[i];
    }
    return ERR_OK;
}

static uint16_t code_of(const struct grid *grid, float height_m)
{
    double code = rint((height_m - grid->low_m) / grid->range_m * CODE_MAX);

    return isnan(code) ? 0 : (uint16_t)fmin(fmax(code, 0), CODE_MAX);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* codes[rows][cols] or float32 in the engine's order of rows, little-endian unless `png`. */
static enum err_code encode_rows(const struct engine *engine, const struct grid *grid, bool is_f32,
                                 bool is_png, struct engine_file *out, struct err *err)
{
    size_t width = is_f32 ? sizeof(float) : sizeof(uint16_t);
    unsigned char *at;

    out->length = width * grid->cols * grid->rows;
    at = out->bytes = malloc(out->length);
    if (!at)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file of %zu bytes", out->length);
    for (uint32_t r = 0; r < grid->rows; r++) {
        uint32_t row = engine->is_north_first ? grid->rows - 1 - r : r;
        const float *heights_m = grid->heights_m + (size_t)row * grid->cols;

        for (uint32_t c = 0; c < grid->cols; c++, at += width) {
            uint16_t code = code_of(grid, heights_m[c]);
            uint32_t bits;

            memcpy(&bits, &heights_m[c], sizeof(bits));
            bits = htole32(bits);
            code = is_png ? code : htole16(code);
            memcpy(at, is_f32 ? (const void *)&bits : (const void *)&code, width);
        }
    }
    return ERR_OK;
}

static enum err_code encode_png(const struct grid *grid, struct engine_file *out, struct err *err)
{
    struct raster_bytes png = {0};

    if (png_encode(grid->cols, grid->rows, 1, out->bytes, 4, &png, err))
        return err->code;
    free(out->bytes);
    out->bytes = png.at;
    out->length = png.length;
    return ERR_OK;
}

static cJSON *tell(const struct engine *engine, const char *form, const struct grid *grid)
{
    cJSON *told = cJSON_CreateObject();

    if (cJSON_AddStringToObject(told, "for", engine->name) &&
        cJSON_AddStringToObject(told, "format", form) &&
        cJSON_AddNumberToObject(told, "cols", grid->cols) &&
        cJSON_AddNumberToObject(told, "rows", grid->rows) &&
        cJSON_AddStringToObject(told, "first_row", engine->is_north_first ? "north" : "south") &&
        cJSON_AddNumberToObject(told, "height_step",
                                strcmp(form, "f32") == 0 ? 0 : grid->range_m / CODE_MAX) &&
        cJSON_AddNumberToObject(told, "holes", (double)grid->holes) && engine->tell(told, grid))
        return told;
    cJSON_Delete(told);
    return NULL;
}

enum err_code engine_encode(const struct engine *engine, const char *file,
                            const struct engine_ground *ground, uint32_t size,
                            struct engine_file *out, struct err *err)
{
    bool is_f32 = ends_in(file, ".f32"), is_png = ends_in(file, ".png");
    const char *form = is_f32 ? "f32" : is_png ? "png16" : "uint16 little-endian";
    struct grid grid = {0};

    *out = (struct engine_file){0};
    if (!(engine->sizes[0] ? square_of(engine, heightfield_spec(ground->field), size, &grid, err)
                           : any_of(ground, size, &grid, err)) &&
        !take_heights(ground, &grid, err) &&
        !encode_rows(engine, &grid, is_f32, is_png, out, err) &&
        !(is_png && encode_png(&grid, out, err))) {
        out->told = tell(engine, form, &grid);
        if (!out->told)
            err_set(err, ERR_NO_MEMORY, "out of memory");
    }
    free(grid.heights_m);
    return err->code;
}
