/*
 * The place in the name of an SRTM tile (N42E001.hgt): the file itself has neither place nor
 * spacing.
 */
#ifndef KOTA_BASE_HGT_NAME_H
#define KOTA_BASE_HGT_NAME_H

#include <stdbool.h>
#include <stdint.h>

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
