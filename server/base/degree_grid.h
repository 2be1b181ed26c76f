/*
 * Grids whose numbers are degrees although metres were expected.
 */
#ifndef KOTA_BASE_DEGREE_GRID_H
#define KOTA_BASE_DEGREE_GRID_H

#include <stdbool.h>

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

#endif
