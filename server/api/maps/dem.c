/*
 * GET …/dem/{z}/{x}/{y}.png|f32|tif   ->  256×256 heights, the first row in the north
 *   ?encoding=terrarium|mapbox&style=relief&void=edge|zero|alpha&sampling=point|mean&layer=&v=
 *   {y}@2x  ->  512×512
 * GET …/dem/geodetic/{z}/{x}/{y}.f32  ->  values on the tile's corners and between
 *   ?size=65&void=zero|edge|alpha&…
 *
 * Tiles as maps read them: XYZ of web Mercator, and the geographic tiling of globes. What a pixel
 * is: map_ground.h. An XYZ tile beside the ground is 404. Globes ask for all tiles, so a geodetic
 * one always exists and is 0 where nothing is, unless `void` says otherwise.
 *
 * The ETag is a hash of the heights. A hit of the cache is answered on the loop.
 */
#include "api/calls.h"
#include "api/maps/map_ground.h"
#include "api/options.h"
#include "formats/raster/map_image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 256, GEODETIC_SIDE = 65 };

struct dem {
    struct map_ground ground;
    struct map_tile tile;
    enum map_format format;
    enum map_void fill;
    bool is_mean;
    uint64_t v;        /* 0: none */
    struct span match; /* If-None-Match */
};

static const char *const format_words[] = {"terrarium", "mapbox", "relief", "f32", "tif"};

/* ---- decode ---------------------------------------------------------------------------------- */

/* "12.png", "12@2x.f32": the number stays in *last. */
static enum err_code decode_ending(struct span *last, int *ending, struct dem *out, struct err *err)
{
    static const char *const endings[] = {".png", ".f32", ".tif"};

    for (int i = 0; i < 3; i++) {
        struct span number = {last->at, last->length - 4};

        if (last->length <= 4 || memcmp(last->at + number.length, endings[i], 4) != 0)
            continue;
        if (number.length > 3 && memcmp(number.at + number.length - 3, "@2x", 3) == 0 &&
            out->tile.scheme == MAP_MERCATOR) {
            number.length -= 3;
            out->tile.side = 2 * SIDE;
        }
        *ending = i;
        *last = number;
        return ERR_OK;
    }
    return err_set_at(err, ERR_TILE_UNKNOWN, "y",
                      "a tile ends in .png, .f32 or .tif: /dem/{z}/{x}/{y}.png");
}

static enum err_code decode_options(struct call *call, int ending, struct dem *out, struct err *err)
{
    static const char *const encodings[] = {"terrarium", "mapbox", NULL};
    static const char *const styles[] = {"dem", "relief", NULL};
    static const char *const voids[] = {"edge", "zero", "alpha", NULL};
    static const char *const samplings[] = {"point", "mean", NULL};
    int encoding = 0, style = 0, fill = (int)out->fill, sampling = 0;
    uint64_t size = out->tile.side;

    if (option_word(call, "encoding", encodings, &encoding, err) ||
        option_word(call, "style", styles, &style, err) ||
        option_word(call, "void", voids, &fill, err) ||
        option_word(call, "sampling", samplings, &sampling, err) ||
        option_integer(call, "v", 1, UINT64_MAX, &out->v, err))
        return err->code;
    if (out->tile.scheme == MAP_GEODETIC &&
        option_integer(call, "size", 2, DEM_GEODETIC_SIDE_MAX, &size, err))
        return err->code;
    out->tile.side = (uint32_t)size;
    out->format = ending == 1   ? MAP_F32
                  : ending == 2 ? MAP_TIF
                  : style == 1  ? MAP_RELIEF
                                : (enum map_format)encoding;
    out->fill = (enum map_void)fill;
    out->is_mean = sampling == 1;
    return ERR_OK;
}

static enum err_code decode(struct call *call, enum map_scheme scheme, struct dem *out,
                            struct err *err)
{
    static const char *const names[] = {"encoding", "style", "void", "sampling",
                                        "layer",    "v",     NULL};
    static const char *const geodetic_names[] = {"encoding", "style", "void", "sampling",
                                                 "size",     "layer", "v",    NULL};
    bool is_geodetic = scheme == MAP_GEODETIC;
    struct span last = call->params[3];
    struct geo_box box;
    int ending = 0;

    *out = (struct dem){.tile = {.scheme = scheme, .side = is_geodetic ? GEODETIC_SIDE : SIDE},
                        .fill = is_geodetic ? MAP_VOID_ZERO : MAP_VOID_EDGE};
    if (options_open_query(call, is_geodetic ? geodetic_names : names, err) ||
        decode_ending(&last, &ending, out, err) ||
        map_decode_numbers(call, last, &out->tile, err) || decode_options(call, ending, out, err) ||
        map_ground_open(call, &out->ground, err))
        return err->code;
    out->match = call_request_header(call, "if-none-match");
    box = map_tile_box(&out->tile);
    if (is_geodetic || geo_box_meets(&box, &out->ground.box))
        return ERR_OK;
    return err_set_at(err, ERR_TILE_UNKNOWN, "x", "locale %s has no ground in tile %u/%u/%u",
                      call->locale->id, out->tile.z, out->tile.x, out->tile.y);
}

/* ---- ask, encode ----------------------------------------------------------------------------- */

static struct tile_key key_of(const struct dem *dem)
{
    struct tile_key key = {.kind = (uint16_t)(0x8000u | dem->tile.side),
                           .format = (uint16_t)((unsigned)dem->format | (unsigned)dem->fill << 4 |
                                                (unsigned)dem->tile.scheme << 6 |
                                                (unsigned)dem->is_mean << 7)};

    map_ground_source(&dem->ground, &dem->tile, &key);
    return key;
}

/* Of a tile as one GeoTIFF: metres of web Mercator, or degrees. */
static struct geotiff_place place_of(const struct map_tile *tile)
{
    struct geo_box box = map_tile_box(tile);
    double world_m = 2 * M_PI * 6378137.0,
           tile_m = world_m / map_tile_columns(MAP_MERCATOR, tile->z);

    if (tile->scheme == MAP_GEODETIC)
        return (struct geotiff_place){.spacing_x = (box.east_deg - box.west_deg) / (tile->side - 1),
                                      .spacing_y =
                                          (box.north_deg - box.south_deg) / (tile->side - 1),
                                      .left = box.west_deg,
                                      .top = box.north_deg,
                                      .is_point = true,
                                      .frame = GEOTIFF_GEOGRAPHIC};
    return (struct geotiff_place){.spacing_x = tile_m / tile->side,
                                  .spacing_y = tile_m / tile->side,
                                  .left = tile->x * tile_m - world_m / 2,
                                  .top = world_m / 2 - tile->y * tile_m,
                                  .frame = GEOTIFF_EPSG,
                                  .epsg = 3857};
}

/* The heights, and encoded unless their tag is among those that the client holds. */
static struct tile_entry *make(const struct dem *dem, const struct tile_key *key, struct err *err)
{
    uint32_t rim = map_format_rim(dem->format), side = dem->tile.side + 2 * rim;
    size_t bytes = (size_t)side * side * sizeof(double);
    double *heights_m = malloc(bytes);
    double half_step_m = map_format_half_step_m(dem->format, dem->ground.greatest_m);
    struct geotiff_place place = place_of(&dem->tile);
    struct tile_image image = {.bytes = {NULL, 0}};
    struct tile_entry *entry = NULL;
    char tag[TILE_TAG_BYTES], form[24];

    if (!heights_m) {
        err_set(err, ERR_NO_MEMORY, "no memory for a tile");
        return NULL;
    }
    if (map_ground_heights(&dem->ground, &dem->tile, rim, dem->fill, dem->is_mean, half_step_m,
                           heights_m, err) == ERR_OK) {
        snprintf(form, sizeof form, "%s%d", format_words[dem->format], dem->fill == MAP_VOID_NAN);
        tile_tag_of(heights_m, (size_t)side * side, sizeof *heights_m, form, tag);
        if (tile_tag_matches(dem->match.at, dem->match.length, tag))
            entry = tile_entry_create(key, tag, NULL, err);
        else if (map_image_encode(dem->format, dem->tile.side, heights_m, dem->fill == MAP_VOID_NAN,
                                  map_tile_pixel_m(&dem->tile), &place, &image, err) == ERR_OK)
            entry = tile_entry_create(key, tag, &image, err);
    }
    free(image.bytes.at);
    free(heights_m);
    return entry;
}

static enum err_code answer(struct call *call, enum map_scheme scheme, struct err *err)
{
    struct tile_cache *cache = call->api->tiles;
    struct tile_entry *entry;
    struct tile_key key;
    struct dem dem;

    if (decode(call, scheme, &dem, err) ||
        (map_ground_tile_count(&dem.ground, &dem.tile) > MAP_LOOP_TILES_MAX &&
         call_offload(call, err)))
        return err->code;
    key = key_of(&dem);
    entry = tile_cache_find(cache, &key, dem.match.at, dem.match.length);
    if (!entry) {
        if (call_offload(call, err))
            return err->code;
        entry = make(&dem, &key, err);
        if (!entry)
            return err->code;
        tile_cache_put(cache, entry);
    }
    map_send(call, entry, dem.v, err);
    tile_entry_unref(entry);
    return err->code;
}

enum err_code dem_get_answer(struct call *call, struct err *err)
{
    return answer(call, MAP_MERCATOR, err);
}
API_HANDLER(dem_get, 4, CALL_NEEDS_VALUE)

enum err_code dem_geodetic_get_answer(struct call *call, struct err *err)
{
    return answer(call, MAP_GEODETIC, err);
}
API_HANDLER(dem_geodetic_get, 4, CALL_NEEDS_VALUE)
