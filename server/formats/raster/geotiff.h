/*
 * GeoTIFF of float32 samples as a layout: where each byte of a file is, without the file.
 *
 * The file is cloud-optimised: a head with all directories, then uncompressed tiles of 256 × 256
 * samples, those of the smallest overview first. All sizes follow from the raster's size, so an
 * edit moves nothing, and any part can be made when it is asked for.
 */
#ifndef KOTA_FORMATS_GEOTIFF_H
#define KOTA_FORMATS_GEOTIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GEOTIFF_TILE_SIDE = 256, GEOTIFF_LEVELS_MAX = 16 };
#define GEOTIFF_TILE_BYTES ((uint64_t)4 * GEOTIFF_TILE_SIDE * GEOTIFF_TILE_SIDE)

struct geotiff_place {
    double spacing_x, spacing_y;
    double left, top; /* of the first sample if is_point, else of its outer corner */
    bool is_point;
    enum { GEOTIFF_NO_FRAME, GEOTIFF_EPSG, GEOTIFF_ORTHOGRAPHIC, GEOTIFF_GEOGRAPHIC } frame;
    uint16_t epsg; /* GEOTIFF_EPSG: of a projected coordinate system; GEOGRAPHIC is WGS84 */
    double lat_deg, lng_deg; /* GEOTIFF_ORTHOGRAPHIC: the centre, on WGS84 (EPSG method 9840) */
};

struct geotiff_level {
    uint32_t cols, rows; /* level L has each 2^L-th sample, from the first one in the north-west */
    uint32_t tile_cols, tile_rows;
    uint64_t at; /* of its first tile; they follow row by row */
};

struct geotiff {
    struct geotiff_level levels[GEOTIFF_LEVELS_MAX];
    uint32_t level_count;
    bool is_big;          /* BigTIFF: over 4 GiB */
    uint64_t head_bytes;  /* a multiple of 16 */
    uint64_t total_bytes; /* head and tiles */
};

/* cols and rows 1..2^20; with overviews until one tile holds all. O(levels). */
void geotiff_lay_out(uint32_t cols, uint32_t rows, bool has_overviews, struct geotiff *out);

/* Writes the head: out[head_bytes]. O(tiles). */
void geotiff_head(const struct geotiff *layout, const struct geotiff_place *place, uint8_t *out);

#endif
