/*
 * A guess with one aim: a digital elevation model in degrees must not become a field of a few
 * centimetres without a word. A grid in metres that looks the same needs only the option of its
 * spacing.
 *
 * 0.1 degrees are 11 km: larger cells are of models of the whole globe, and 0.1 m and more are
 * spacings of surveys. The corner of a national grid is millions of metres away from 0, 0, that of
 * a scan of a few square metres is at 0, 0.
 */
#include "base/degree_grid.h"

#include "base/hgt_name.h"

#include <math.h>

#define CELL_MAX 0.1

bool degree_grid_suspected(const double origin[2], const double spacing[2], const double size[2],
                           double metres[2])
{
    double east_m, north_m;
    bool is_on_globe = origin[0] >= -180.0 - spacing[0] &&
                       origin[0] + size[0] <= 360.0 + spacing[0] &&
                       origin[1] >= -90.0 - spacing[1] && origin[1] + size[1] <= 90.0 + spacing[1];
    bool begins_at_zero = fabs(origin[0]) <= spacing[0] && fabs(origin[1]) <= spacing[1];

    if (!(spacing[0] < CELL_MAX && spacing[1] < CELL_MAX) || !is_on_globe || begins_at_zero)
        return false;
    hgt_metres_a_degree(origin[1] + size[1] / 2, &east_m, &north_m);
    metres[0] = spacing[0] * east_m;
    metres[1] = spacing[1] * north_m;
    return true;
}
