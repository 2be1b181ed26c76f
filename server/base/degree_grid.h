/*
 * Grids in degrees: those that were expected in metres, and the tiles of SRTM, whose place
 * is only in their names (N42E001.hgt).
 */
#ifndef KOTA_BASE_DEGREE_GRID_H
#define KOTA_BASE_DEGREE_GRID_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is a grid without a coordinate system probably in degrees? It does when its cells are smaller
 * than 0.1, all of it is within longitudes -180 to 360 and latitudes -90 to 90, and it does not
 * begin at 0, 0, as a small scan in metres does.
 *
 * origin   [2] of the sample with the smallest x and y
 * spacing  [2] above 0
 * size     [2] from the first sample to the last, in the same unit
 * metres   out: the spacing in metres at the grid's middle latitude, on the WGS84
 *          ellipsoid; untouched when false
 */
bool degree_grid_suspected(const double origin[2], const double spacing[2], const double size[2],
                           double metres[2]);

/* "N42E001" at the start of a name: the tile's middle latitude. False when it is none. */
bool hgt_name_latitude(const char *name, double *middle_deg);

/* Metres a degree of longitude and of latitude on the WGS84 ellipsoid. */
void hgt_metres_a_degree(double latitude_deg, double *east_m, double *north_m);

/*
 * Metres between samples of a tile of one degree, at its middle. path may have folders before the
 * name; bytes is the file's length, of a square of int16. False when the name is none of a tile.
 */
bool hgt_name_spacing(const char *path, uint64_t bytes, double spacing_m[2]);

#endif
