/*
 * GET …/terrain/layer.json?layer=           ->  what quantized-mesh readers ask first
 * GET …/terrain/{z}/{x}/{y}.terrain?layer=&v=&extensions=  ->  a tile, quantized-mesh 1.0
 *
 * The ground as Cesium and its relatives in engines show it: a geographic tiling of two tiles at
 * zoom 0, y from the south (TMS). Vertices have the exact heights; beside the ground they are 0, in
 * a hole the middle of the range of the smallest square with ground around it, which depends on the
 * place only: neighbours of one level have no cracks. Extensions are those of the header Accept, as
 * Cesium asks, or of the query.
 */
#include "api/calls.h"

#include "api/answer/coding.h"
#include "api/maps/map_ground.h"
#include "api/options.h"
#include "formats/quantized_mesh.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METERS_A_DEGREE (2 * M_PI * 6378137.0 / 360)

enum { ZOOM_OF_DATA_MAX = 22, METADATA_LEVELS = 6, METADATA_BYTES = 1024 };
enum { WITH_NORMALS = 1, WITH_METADATA = 2 };
enum { KIND = 5 }; /* of the cache's keys, beside those of answer/file.h and of dem.c */

struct terrain {
    struct map_ground ground;
    struct map_tile tile; /* y from the north */
    unsigned extensions;
    struct coding coding;
    uint64_t v;
    struct span match;
};

/* ---- which tiles there are ------------------------------------------------------------------- */

/* The first zoom whose vertices are no farther apart than the ground's samples. */
static uint32_t last_zoom(const struct map_ground *ground)
{
    double most_m = 180 * METERS_A_DEGREE / (QUANTIZED_SIDE - 1);

    return (uint32_t)fmin(fmax(ceil(log2(most_m / ground->spacing_m)), 0), ZOOM_OF_DATA_MAX);
}

struct tile_range {
    uint32_t x0, x1, y0, y1; /* y from the south */
};

/* The tiles of a zoom that have ground: up to two ranges, where it crosses the antimeridian. */
static size_t ranges_of(const struct map_ground *ground, uint32_t z, struct tile_range out[2])
{
    const struct geo_box *box = &ground->box;
    double columns = map_tile_columns(MAP_QUANTIZED, z), rows = map_tile_rows(MAP_QUANTIZED, z);
    double west = floor((box->west_deg + 180) / 360 * columns);
    double east = floor((box->east_deg + 180) / 360 * columns);
    struct tile_range range = {
        .y0 = (uint32_t)fmin(floor((box->south_deg + 90) / 180 * rows), rows - 1),
        .y1 = (uint32_t)fmin(floor((box->north_deg + 90) / 180 * rows), rows - 1)};

    if (z == 0 || east - west >= columns - 1) {
        range.x1 = (uint32_t)columns - 1;
        out[0] = range;
        return 1;
    }
    range.x0 = (uint32_t)(west < 0 ? west + columns : west);
    range.x1 = (uint32_t)(east >= columns        ? east - columns
                          : west < 0 && east < 0 ? east + columns
                                                 : east);
    out[0] = out[1] = range;
    if (range.x0 <= range.x1)
        return 1;
    out[0].x1 = (uint32_t)columns - 1;
    out[1].x0 = 0;
    return 2;
}

static void write_range(struct json_writer *w, const struct tile_range *range)
{
    const uint32_t values[] = {range->x0, range->y0, range->x1, range->y1};
    static const char *const names[] = {"startX", "startY", "endX", "endY"};

    json_begin_object(w);
    for (int i = 0; i < 4; i++) {
        json_put_integer(w, names[i], values[i]);
    }
    json_end_object(w);
}

static void text(struct json_writer *w, const char *key, const char *value)
{
    json_put_string(w, key, value);
}

static void write_layer(struct call *call, const struct map_ground *ground, const char *layer)
{
    const struct locale *locale = call->locale;
    const struct geo_box *box = &ground->box;
    bool is_around = box->west_deg < -180 || box->east_deg > 180;
    const double bounds[] = {is_around ? -180 : box->west_deg, box->south_deg,
                             is_around ? 180 : box->east_deg, box->north_deg};
    struct json_writer *w = &call->out;
    char words[128 + CALL_AT_BYTES], earlier[CALL_AT_BYTES];

    call_write_at(call, earlier);
    json_begin_object(w);
    text(w, "tilejson", "2.1.0");
    text(w, "name", locale->manifest.title[0] ? locale->manifest.title : locale->id);
    text(w, "format", "quantized-mesh-1.0");
    snprintf(words, sizeof words, "%llu.0.0", (unsigned long long)locale->revision);
    text(w, "version", words);
    text(w, "scheme", "tms");
    text(w, "projection", "EPSG:4326");
    json_put_array(w, "tiles");
    snprintf(words, sizeof words, "{z}/{x}/{y}.terrain?v=%llu%s%s%s",
             (unsigned long long)locale->revision, layer[0] ? "&layer=" : "", layer, earlier);
    json_string(w, words);
    json_end_array(w);
    json_put_array(w, "extensions");
    json_string(w, "octvertexnormals");
    json_string(w, "metadata");
    json_end_array(w);
    json_put_integer(w, "minzoom", 0);
    json_put_integer(w, "maxzoom", last_zoom(ground));
    json_put_array(w, "bounds");
    for (int i = 0; i < 4; i++)
        json_number(w, bounds[i]);
    json_end_array(w);
    json_put_array(w, "available");
    for (uint32_t z = 0; z <= last_zoom(ground); z++) {
        struct tile_range ranges[2];
        size_t count = ranges_of(ground, z, ranges);

        json_begin_array(w);
        for (size_t i = 0; i < count; i++)
            write_range(w, &ranges[i]);
        json_end_array(w);
    }
    json_end_array(w);
    /* without it CesiumJS takes no tile that has metadata */
    json_put_integer(w, "metadataAvailability", METADATA_LEVELS);
    text(w, "attribution", "");
    json_end_object(w);
}

enum err_code terrain_layer_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"layer", NULL};
    char layer[WORLD_ID_MAX + 1];
    struct map_ground ground;

    if (options_open_query(call, names, err) || option_layer(call, layer, err) ||
        map_ground_open(call, &ground, err))
        return err->code;
    call_header(call, "Cache-Control", "no-cache");
    write_layer(call, &ground, layer);
    return ERR_OK;
}
API_HANDLER(terrain_layer_get, 1, CALL_NEEDS_VALUE)

/* ---- a tile ---------------------------------------------------------------------------------- */

static bool has_word(struct span text, const char *word)
{
    return text.at && memmem(text.at, text.length, word, strlen(word)) != NULL;
}

static enum err_code decode(struct call *call, struct terrain *out, struct err *err)
{
    static const char *const names[] = {"layer", "v", "extensions", NULL};
    struct span last = call->params[3], accept = call_request_header(call, "accept");
    const struct http_query_item *wanted = call_query(call, "extensions");
    struct geo_box box;

    if (last.length <= 8 || memcmp(last.at + last.length - 8, ".terrain", 8) != 0)
        return err_set_at(err, ERR_TILE_UNKNOWN, "y",
                          "a tile ends in .terrain: /terrain/{z}/{x}/{y}.terrain");
    last.length -= 8;
    out->tile = (struct map_tile){.scheme = MAP_QUANTIZED, .side = QUANTIZED_SIDE};
    if (options_open_query(call, names, err) || map_decode_numbers(call, last, &out->tile, err) ||
        option_integer(call, "v", 1, UINT64_MAX, &out->v, err) ||
        map_ground_open(call, &out->ground, err))
        return err->code;
    out->tile.y = map_tile_rows(MAP_QUANTIZED, out->tile.z) - 1 - out->tile.y;
    out->match = call_request_header(call, "if-none-match");
    coding_accepted(call_request_header(call, "accept-encoding"), true, &out->coding.content);
    if (has_word(accept, "octvertexnormals") ||
        (wanted && has_word(wanted->value, "octvertexnormals")))
        out->extensions |= WITH_NORMALS;
    if (has_word(accept, "metadata") || (wanted && has_word(wanted->value, "metadata")))
        out->extensions |= WITH_METADATA;
    box = map_tile_box(&out->tile);
    if (out->tile.z == 0 || geo_box_meets(&box, &out->ground.box))
        return ERR_OK;
    return err_set_at(err, ERR_TILE_UNKNOWN, "x", "locale %s has no ground in that tile of zoom %u",
                      call->locale->id, out->tile.z);
}

/* Which of the tiles below this one exist, of the next levels. */
static void write_metadata(const struct terrain *terrain, char out[static METADATA_BYTES])
{
    uint32_t y = map_tile_rows(MAP_QUANTIZED, terrain->tile.z) - 1 - terrain->tile.y;
    uint32_t last = last_zoom(&terrain->ground);
    size_t at = (size_t)sprintf(out, "{\"available\":[");

    for (uint32_t up = 1; up <= METADATA_LEVELS && terrain->tile.z + up <= last; up++) {
        const uint32_t x0 = terrain->tile.x << up, y0 = y << up, more = ((uint32_t)1 << up) - 1;
        struct tile_range ranges[2];
        size_t count = ranges_of(&terrain->ground, terrain->tile.z + up, ranges);
        bool is_first = true;

        at += (size_t)sprintf(out + at, "%s[", up > 1 ? "," : "");
        for (size_t i = 0; i < count; i++) {
            struct tile_range r = ranges[i];

            r.x0 = r.x0 > x0 ? r.x0 : x0;
            r.y0 = r.y0 > y0 ? r.y0 : y0;
            r.x1 = r.x1 < x0 + more ? r.x1 : x0 + more;
            r.y1 = r.y1 < y0 + more ? r.y1 : y0 + more;
            if (r.x0 > r.x1 || r.y0 > r.y1)
                continue;
            at +=
                (size_t)sprintf(out + at, "%s{\"startX\":%u,\"startY\":%u,\"endX\":%u,\"endY\":%u}",
                                is_first ? "" : ",", r.x0, r.y0, r.x1, r.y1);
            is_first = false;
        }
        at += (size_t)sprintf(out + at, "]");
    }
    sprintf(out + at, "]}");
}

static enum err_code make_image(const struct terrain *terrain, const double *heights_m,
                                struct tile_image *image, struct err *err)
{
    double lng_deg[GEO_MAP_SIDE_MAX], lat_deg[GEO_MAP_SIDE_MAX];
    char metadata[METADATA_BYTES];
    struct quantized_mesh mesh = {.lng_deg = lng_deg,
                                  .lat_deg = lat_deg,
                                  .heights_m = heights_m,
                                  .has_normals = terrain->extensions & WITH_NORMALS};

    if (terrain->extensions & WITH_METADATA) {
        write_metadata(terrain, metadata);
        mesh.metadata = metadata;
    }
    map_tile_places(&terrain->tile, QUANTIZED_RIM, 0, 0, lng_deg, lat_deg);
    image->media_type = "application/vnd.quantized-mesh";
    return quantized_mesh_encode(&mesh, &image->bytes, err);
}

/* NULL on an error. */
static struct tile_entry *make(const struct terrain *terrain, const struct tile_key *key,
                               struct err *err)
{
    struct tile_image image = {.bytes = {NULL, 0}};
    struct tile_entry *entry = NULL;
    double *heights_m = malloc(sizeof(double) * QUANTIZED_GRID * QUANTIZED_GRID);
    char tag[TILE_TAG_BYTES], suffix[CODING_SUFFIX_MAX], form[CODING_SUFFIX_MAX + 8];

    if (!heights_m)
        err_set(err, ERR_NO_MEMORY, "no memory for a tile");
    else if (map_ground_heights(&terrain->ground, &terrain->tile, QUANTIZED_RIM, MAP_VOID_GLOBE,
                                false, 0, heights_m, err) == ERR_OK &&
             make_image(terrain, heights_m, &image, err) == ERR_OK) {
        coding_suffix(&terrain->coding, suffix);
        snprintf(form, sizeof form, "terrain%s", suffix);
        tile_tag_of(image.bytes.at, image.bytes.length / 4, 4, form, tag);
        if (coding_pack_in_place(&terrain->coding, 0, 0, &image.bytes, err) == ERR_OK)
            entry = tile_entry_create(key, tag, &image, err);
    }
    free(image.bytes.at);
    free(heights_m);
    return entry;
}

enum err_code terrain_get_answer(struct call *call, struct err *err)
{
    struct terrain terrain = {.extensions = 0};
    struct tile_key key = {.kind = KIND};
    struct tile_entry *entry;

    if (decode(call, &terrain, err))
        return err->code;
    key.format = (uint16_t)(terrain.extensions | (unsigned)terrain.coding.content << 4);
    if (map_ground_tile_count(&terrain.ground, &terrain.tile) > MAP_LOOP_TILES_MAX &&
        call_offload(call, err))
        return err->code;
    map_ground_source(&terrain.ground, &terrain.tile, &key);
    entry = tile_cache_find(call->api->tiles, &key, terrain.match.at, terrain.match.length);
    if (!entry) {
        if (call_offload(call, err))
            return err->code;
        entry = make(&terrain, &key, err);
        if (!entry)
            return err->code;
        tile_cache_put(call->api->tiles, entry);
    }
    call_header(call, "Vary", "Accept, Accept-Encoding");
    if (!tile_tag_matches(terrain.match.at, terrain.match.length, entry->tag))
        coding_headers(call, &terrain.coding);
    map_send(call, entry, terrain.v, err);
    tile_entry_unref(entry);
    return err->code;
}
API_HANDLER(terrain_get, 4, CALL_NEEDS_VALUE)
