/*
 * From a tile of a map to heights.
 *
 * The places of the pixels go to the frame by rows and columns (terrain/geo/geo_map.h), and then to
 * the batched heights: a pixel is the height that GET …/height gives there. The error that the
 * projection may make follows from the encoding: half of its step, over the steepest slope that the
 * field can have.
 *
 * A tile's key in the cache is made of the serials of the field's tiles below it, so an edit
 * forgets the tiles that it touched and no others. Which ones: the tile's outline is projected at a
 * few places; between them it bends by less than the square of their distance over the Earth's
 * radius. Meshes have no serials; their key is the locale's revision.
 */
#include "api/maps/map_ground.h"

#include "api/answer/file.h"
#include "api/options.h"
#include "base/content_hash.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EARTH_RADIUS_M 6356752.0
#define WIDE_DEG 20.0       /* a tile that is larger reads the whole field */
#define POLAR_DEG 88.0      /* and one that comes so near to a pole */
#define MESH_SPACINGS 512.0 /* along the larger side of meshes */

enum { OUTLINE = 9, MEAN_SIDE = 4 };

enum err_code map_of_locale(const struct locale *locale, struct geo_map *out, struct err *err)
{
    const struct locale_manifest *manifest = &locale->manifest;

    if (manifest->has_geo) {
        *out = geo_map_plane(manifest->geo_lat_deg, manifest->geo_lng_deg);
        return ERR_OK;
    }
    if (manifest->crs != 0 && geo_map_of_epsg(manifest->crs, out))
        return ERR_OK;
    if (manifest->crs != 0)
        err_set(err, ERR_NO_PLACE,
                "locale %s is in EPSG:%u; maps are made of UTM on WGS84, ETRS89 or NAD83, of "
                "EPSG:3857, and of a frame with `geo`",
                locale->id, manifest->crs);
    else
        err_set(err, ERR_NO_PLACE,
                "locale %s is nowhere on the Earth: its manifest has neither geo nor crs",
                locale->id);
    return err_at(err, "locale");
}

static void measure_field(struct map_ground *out, const struct heightfield *field)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    struct box3 box;

    heightfield_bounds(field, &box);
    out->low = (struct vec2){spec->origin_x_m, spec->origin_y_m};
    out->high = (struct vec2){spec->origin_x_m + spec->spacing_x_m * (double)(spec->cols - 1),
                              spec->origin_y_m + spec->spacing_y_m * (double)(spec->rows - 1)};
    out->spacing_m = fmin(spec->spacing_x_m, spec->spacing_y_m);
    out->greatest_m = fmax(fabs(box.min.z), fabs(box.max.z));
    out->slope_max = M_SQRT2 * (box.max.z - box.min.z) / out->spacing_m;
}

static void measure_meshes(struct map_ground *out)
{
    const struct locale *locale = out->ground.locale;
    const struct box3 *box = &locale->bounds;

    out->low = (struct vec2){box->min.x, box->min.y};
    out->high = (struct vec2){box->max.x, box->max.y};
    out->spacing_m =
        fmax(fmax(out->high.x - out->low.x, out->high.y - out->low.y), 1) / MESH_SPACINGS;
    out->greatest_m = fmax(fabs(box->min.z), fabs(box->max.z));
    out->slope_max = INFINITY;
}

static uint64_t hash(uint64_t seed, const void *bytes, size_t length)
{
    uint64_t h = fnv1a(seed ^ FNV1A_EMPTY, bytes, length);

    return h ^ (h >> 32);
}

/*
 * The box around a place's ground is 260 places on the Earth, as much work as a tile that is in the
 * cache costs otherwise; so each thread keeps the last ones by what they follow from.
 */
enum { BOXES_KEPT = 16, BOX_NUMBERS = 7 };

static struct geo_box box_of(const struct locale_manifest *manifest,
                             const struct map_ground *ground)
{
    static _Thread_local struct {
        double key[BOX_NUMBERS];
        struct geo_box box;
        bool is_known;
    } kept[BOXES_KEPT], *at;
    const double key[BOX_NUMBERS] = {manifest->geo_lat_deg, manifest->geo_lng_deg, manifest->crs,
                                     ground->low.x,         ground->low.y,         ground->high.x,
                                     ground->high.y};

    at = &kept[hash(0, key, sizeof key) % BOXES_KEPT];
    if (!at->is_known || memcmp(at->key, key, sizeof key) != 0) {
        memcpy(at->key, key, sizeof key);
        at->box = geo_map_box(&ground->map, ground->low, ground->high);
        at->is_known = true;
    }
    return at->box;
}

enum err_code map_ground_open(struct call *call, struct map_ground *out, struct err *err)
{
    if (map_of_locale(call->locale, &out->map, err) ||
        option_choose_ground(call, &out->ground, err))
        return err->code;
    if (out->ground.layers[0]->kind == LAYER_HEIGHTFIELD)
        measure_field(out, out->ground.layers[0]->field);
    else
        measure_meshes(out);
    out->box = box_of(&call->locale->manifest, out);
    return ERR_OK;
}

/* ---- what a tile reads ----------------------------------------------------------------------- */

/* A rectangle of the frame that holds the tile and a pixel around it; false: it may be anywhere. */
static bool outline(const struct map_ground *ground, const struct map_tile *tile, struct vec2 *low,
                    struct vec2 *high)
{
    struct geo_box box = map_tile_box(tile);
    double most_lat = fmax(fabs(box.south_deg), fabs(box.north_deg)), pad, step;
    double lng[OUTLINE], lat[OUTLINE];
    struct vec2 places[OUTLINE * OUTLINE];

    if (box.east_deg - box.west_deg > WIDE_DEG || box.north_deg - box.south_deg > WIDE_DEG ||
        most_lat > POLAR_DEG)
        return false;
    *low = (struct vec2){INFINITY, INFINITY};
    *high = (struct vec2){-INFINITY, -INFINITY};
    for (int i = 0; i < OUTLINE; i++) {
        lng[i] = box.west_deg + (box.east_deg - box.west_deg) * i / (OUTLINE - 1);
        lat[i] = box.south_deg + (box.north_deg - box.south_deg) * i / (OUTLINE - 1);
    }
    geo_map_grid(&ground->map, lng, OUTLINE, lat, OUTLINE, 0, places);
    for (int i = 0; i < OUTLINE * OUTLINE; i++) {
        struct vec2 at = places[i];

        if (at.x == GEO_MAP_NOWHERE)
            return false;
        *low = (struct vec2){fmin(low->x, at.x), fmin(low->y, at.y)};
        *high = (struct vec2){fmax(high->x, at.x), fmax(high->y, at.y)};
    }
    step = hypot(high->x - low->x, high->y - low->y) / (OUTLINE - 1);
    pad = step * step / EARTH_RADIUS_M * (1 + tan(most_lat * M_PI / 180)) +
          2 * step * (OUTLINE - 1) / tile->side;
    *low = (struct vec2){low->x - pad, low->y - pad};
    *high = (struct vec2){high->x + pad, high->y + pad};
    return true;
}

/* The cell at a place along one axis, the nearest one of the field. */
static uint32_t cell_of(double at_m, double origin_m, double spacing_m, uint32_t samples)
{
    return (uint32_t)fmin(fmax(floor((at_m - origin_m) / spacing_m), 0), samples - 2.0);
}

struct cells {
    uint32_t column0, row0, column1, row1;
};

static struct cells cells_of(const struct map_ground *ground, const struct map_tile *tile)
{
    const struct heightfield_spec *spec = heightfield_spec(ground->ground.layers[0]->field);
    struct vec2 low, high;

    if (!outline(ground, tile, &low, &high)) {
        low = ground->low;
        high = ground->high;
    }
    return (struct cells){cell_of(low.x, spec->origin_x_m, spec->spacing_x_m, spec->cols),
                          cell_of(low.y, spec->origin_y_m, spec->spacing_y_m, spec->rows),
                          cell_of(high.x, spec->origin_x_m, spec->spacing_x_m, spec->cols),
                          cell_of(high.y, spec->origin_y_m, spec->spacing_y_m, spec->rows)};
}

static bool is_field(const struct map_ground *ground)
{
    return ground->ground.layers[0]->kind == LAYER_HEIGHTFIELD;
}

uint64_t map_ground_tile_count(const struct map_ground *ground, const struct map_tile *tile)
{
    struct cells cells;

    if (!is_field(ground))
        return 0;
    cells = cells_of(ground, tile);
    return (uint64_t)((cells.column1 >> 8) - (cells.column0 >> 8) + 1) *
           ((cells.row1 >> 8) - (cells.row0 >> 8) + 1);
}

void map_ground_source(const struct map_ground *ground, const struct map_tile *tile,
                       struct tile_key *key)
{
    const struct locale *locale = ground->ground.locale;
    const double place[] = {locale->manifest.geo_lat_deg, locale->manifest.geo_lng_deg,
                            locale->manifest.crs};

    if (is_field(ground)) {
        const struct heightfield *field = ground->ground.layers[0]->field;
        const struct heightfield_spec *spec = heightfield_spec(field);
        const double grid[] = {spec->origin_x_m, spec->origin_y_m, spec->spacing_x_m,
                               spec->spacing_y_m, (double)spec->triangulation};
        struct cells cells = cells_of(ground, tile);

        block_source_of_cells(field, cells.column0, cells.row0, cells.column1, cells.row1,
                              key->source);
        key->source[1] ^= hash(1, grid, sizeof grid);
    } else {
        const uint64_t state[] = {locale->revision, locale->transform_seq};
        const char *layer = ground->ground.count == 1 ? ground->ground.layers[0]->id : "";

        key->source[0] = hash(2, locale->id, strlen(locale->id)) ^ hash(3, state, sizeof state);
        key->source[1] = hash(4, state, sizeof state) ^ hash(5, layer, strlen(layer));
    }
    key->source[0] ^= hash(6, place, sizeof place);
    key->level = tile->z;
    key->column = tile->x;
    key->row = tile->y;
}

/* ---- heights --------------------------------------------------------------------------------- */

struct work {
    double lng_deg[GEO_MAP_SIDE_MAX], lat_deg[GEO_MAP_SIDE_MAX];
    struct vec2 *points;
    struct map_nearest *nearest;
    double *sum, *sampled;
};

/* Not fmin and fmax: they are calls, and nothing here is NaN. */
static double between(double low, double value, double high)
{
    return value < low ? low : value > high ? high : value;
}

static void clamp(const struct map_ground *ground, struct vec2 *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (points[i].x == GEO_MAP_NOWHERE)
            continue;
        points[i].x = between(ground->low.x, points[i].x, ground->high.x);
        points[i].y = between(ground->low.y, points[i].y, ground->high.y);
    }
}

/* Heights of one place in each pixel, shifted from its middle by shares of a pixel. */
static void sample(const struct map_ground *ground, const struct map_tile *tile, uint32_t rim,
                   enum map_void fill, double half_step_m, double east, double south,
                   struct work *work, double *heights_m)
{
    uint32_t side = tile->side + 2 * rim;
    size_t count = (size_t)side * side;
    double error_m = ground->slope_max > 0 ? half_step_m / ground->slope_max : DBL_MAX;

    map_tile_places(tile, rim, east, south, work->lng_deg, work->lat_deg);
    geo_map_grid(&ground->map, work->lng_deg, side, work->lat_deg, side, error_m, work->points);
    if (fill == MAP_VOID_EDGE)
        clamp(ground, work->points, count);
    locale_heights_plain(&ground->ground, work->points, count, INTERPOLATION_TRIANGLE, heights_m);
}

/*
 * Of a place without a height: 0 beyond the field; else the middle of the range of the smallest
 * square of 2^L × 2^L samples around it, at a multiple of its size, that has ground.
 */
static double hole_m(const struct map_ground *ground, struct vec2 at)
{
    const struct heightfield_spec *spec;
    const struct heightfield *field;
    uint32_t column, row;
    float low, high;

    if (!is_field(ground) || !(at.x >= ground->low.x && at.x <= ground->high.x &&
                               at.y >= ground->low.y && at.y <= ground->high.y))
        return 0;
    field = ground->ground.layers[0]->field;
    spec = heightfield_spec(field);
    column = cell_of(at.x, spec->origin_x_m, spec->spacing_x_m, spec->cols);
    row = cell_of(at.y, spec->origin_y_m, spec->spacing_y_m, spec->rows);
    for (uint32_t level = 1; level <= 20; level++) {
        uint32_t c0 = column >> level << level, r0 = row >> level << level;
        uint32_t more = ((uint32_t)1 << level) - 1;

        if (heightfield_range(field, c0, r0, c0 + more, r0 + more, &low, &high))
            return ((double)low + (double)high) / 2;
    }
    return 0;
}

static void sample_mean(const struct map_ground *ground, const struct map_tile *tile, uint32_t rim,
                        enum map_void fill, double half_step_m, struct work *work,
                        double *heights_m)
{
    size_t count = (size_t)(tile->side + 2 * rim) * (tile->side + 2 * rim);

    memset(work->sum, 0, count * sizeof *work->sum);
    memset(heights_m, 0, count * sizeof *heights_m);
    for (int k = 0; k < MEAN_SIDE * MEAN_SIDE; k++) {
        sample(ground, tile, rim, fill, half_step_m, (k % MEAN_SIDE + 0.5) / MEAN_SIDE - 0.5,
               (k / MEAN_SIDE + 0.5) / MEAN_SIDE - 0.5, work, work->sampled);
        for (size_t i = 0; i < count; i++)
            if (!isnan(work->sampled[i])) {
                heights_m[i] += work->sampled[i];
                work->sum[i]++;
            }
    }
    for (size_t i = 0; i < count; i++)
        heights_m[i] = work->sum[i] > 0 ? heights_m[i] / work->sum[i] : NAN;
}

enum err_code map_ground_heights(const struct map_ground *ground, const struct map_tile *tile,
                                 uint32_t rim, enum map_void fill, bool is_mean, double half_step_m,
                                 double *heights_m, struct err *err)
{
    uint32_t side = tile->side + 2 * rim;
    size_t count = (size_t)side * side;
    struct work *work = calloc(1, sizeof *work);

    if (work) {
        work->points = malloc(count * sizeof *work->points);
        work->nearest = malloc(count * sizeof *work->nearest);
        work->sum = is_mean ? malloc(count * sizeof *work->sum) : NULL;
        work->sampled = is_mean ? malloc(count * sizeof *work->sampled) : NULL;
    }
    if (!work || !work->points || !work->nearest || (is_mean && (!work->sum || !work->sampled))) {
        err_set(err, ERR_NO_MEMORY, "no memory for a tile of %u × %u heights", side, side);
    } else {
        if (is_mean)
            sample_mean(ground, tile, rim, fill, half_step_m, work, heights_m);
        else
            sample(ground, tile, rim, fill, half_step_m, 0, 0, work, heights_m);
        if (fill == MAP_VOID_EDGE)
            map_tile_fill(heights_m, side, side, work->nearest);
        for (size_t i = 0; (fill == MAP_VOID_ZERO || fill == MAP_VOID_GLOBE) && i < count; i++)
            if (isnan(heights_m[i]))
                heights_m[i] = fill == MAP_VOID_GLOBE ? hole_m(ground, work->points[i]) : 0;
    }
    if (work) {
        free(work->points);
        free(work->nearest);
        free(work->sum);
        free(work->sampled);
        free(work);
    }
    return err->code;
}

/* ---- requests -------------------------------------------------------------------------------- */

enum err_code map_decode_numbers(struct call *call, struct span last, struct map_tile *out,
                                 struct err *err)
{
    static const char *const names[] = {"z", "x", "y"};
    const struct span texts[] = {call->params[1], call->params[2], last};
    uint32_t *const to[] = {&out->z, &out->x, &out->y};
    uint32_t counts[2];

    for (size_t i = 0; i < 3; i++) {
        uint64_t value;

        if (!span_index(texts[i], &value) || value > UINT32_MAX)
            return err_set_at(err, ERR_TILE_UNKNOWN, names[i],
                              "%s of a tile is a whole number from 0, not '%.*s'", names[i],
                              texts[i].length < 32 ? (int)texts[i].length : 32, texts[i].at);
        *to[i] = (uint32_t)value;
    }
    if (out->z > MAP_ZOOM_MAX)
        return err_limit_at(err, ERR_TILE_UNKNOWN, "z", MAP_ZOOM_MAX, out->z,
                            "there is no zoom %u, the last is %d", out->z, MAP_ZOOM_MAX);
    counts[0] = map_tile_columns(out->scheme, out->z);
    counts[1] = map_tile_rows(out->scheme, out->z);
    for (size_t i = 0; i < 2; i++)
        if (*to[1 + i] >= counts[i])
            return err_limit_at(err, ERR_TILE_UNKNOWN, names[1 + i], counts[i] - 1.0, *to[1 + i],
                                "%s of zoom %u goes to %u, not to %u", names[1 + i], out->z,
                                counts[i] - 1, *to[1 + i]);
    return ERR_OK;
}

enum err_code map_send(struct call *call, const struct tile_entry *entry, uint64_t v,
                       struct err *err)
{
    if (answer_is_known(call, entry->tag, map_cache_control(call, v)))
        return ERR_OK;
    call_content_type(call, entry->media_type);
    return answer_append(call, entry->bytes, entry->length, err);
}

const char *map_cache_control(const struct call *call, uint64_t v)
{
    if (v == 0 || v != call->locale->revision)
        return "no-cache";
    return call_request_header(call, "authorization").at ? "private, max-age=31536000, immutable"
                                                         : "public, max-age=31536000, immutable";
}
