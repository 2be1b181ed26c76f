/*
 * A locale's ground as maps see it: where it is on the Earth, and what a tile of a map reads of it.
 */
#ifndef KOTA_API_MAP_GROUND_H
#define KOTA_API_MAP_GROUND_H

#include "api/call.h"
#include "api/tile_cache.h"
#include "terrain/geo/map_tile.h"

enum { MAP_LOOP_TILES_MAX = 65536 };  /* of a key that is made on a loop: some 0.3 ms */
enum { DEM_GEODETIC_SIDE_MAX = 513 }; /* values along a geodetic tile's side */

struct map_ground {
    struct layer_choice ground;
    struct geo_map map;
    struct vec2 low, high; /* the rectangle that has ground, in the frame */
    struct geo_box box;    /* around it */
    double spacing_m;      /* the smaller one of a heightfield; of meshes, a 512th of their box */
    double greatest_m;     /* no height is farther from 0 */
    double slope_max;      /* no triangle is steeper; of meshes INFINITY */
};

/*
 * The map of a locale by its manifest.
 * ERR_NO_PLACE  it has neither geo nor a crs that is known here
 */
enum err_code map_of_locale(const struct locale *locale, struct geo_map *out, struct err *err);

/*
 * The ground of call->locale, by the option `layer`.
 * ERR_NO_PLACE, or the errors of option_choose_ground
 */
enum err_code map_ground_open(struct call *call, struct map_ground *out, struct err *err);

/* How many tiles of the field map_ground_source reads for that place. */
uint64_t map_ground_tile_count(const struct map_ground *ground, const struct map_tile *tile);

/*
 * Fills key->source: 128 bits that change when a height that the map's tile reads does, or the
 * place of the ground on the Earth; and the tile's place in the key. kind and format are left.
 */
void map_ground_source(const struct map_ground *ground, const struct map_tile *tile,
                       struct tile_key *key);

enum map_void {
    MAP_VOID_EDGE, /* beyond the ground its edge; a hole has the height of the nearest pixel */
    MAP_VOID_ZERO,
    MAP_VOID_NAN,
    MAP_VOID_GLOBE /* 0 beyond the ground; a hole has the middle of the range around it, which
                      depends on its place only */
};

/*
 * heights_m[side + 2 rim][side + 2 rim] of the tile, the first row in the north: each the height
 * (interp=triangle) at its place, computed within half_step_m of it. With is_mean the mean of 16
 * places spread over the pixel. ERR_NO_MEMORY. O(pixels).
 */
enum err_code map_ground_heights(const struct map_ground *ground, const struct map_tile *tile,
                                 uint32_t rim, enum map_void fill, bool is_mean, double half_step_m,
                                 double *heights_m, struct err *err);

/* Decodes tile numbers of a path, of call->params[1..3]; the last one without what follows it. */
enum err_code map_decode_numbers(struct call *call, struct span last, struct map_tile *out,
                                 struct err *err);

/*
 * The header Cache-Control for an answer that has an ETag. `?v=` of this revision: for ever, for
 * shared caches, too, unless the request brought a token; else with a question each time.
 */
const char *map_cache_control(const struct call *call, uint64_t v);

/* The answer: an entry's bytes, or 304 where If-None-Match has its tag; v as above. */
enum err_code map_send(struct call *call, const struct tile_entry *entry, uint64_t v,
                       struct err *err);

#endif
