/*
 * The crater of an impact.
 *
 * Problem: where no granules can be simulated, an impact must leave the crater that they would
 * have left. Approach: the form of the published laws of balls dropped on dry grains, with two
 * constants from runs of this project's own granules (tests/bench/bench_impacts.c prints them).
 *
 *   depth = DEPTH_FACTOR  (rho / rho0)^(1/2) D ((h + depth) / D)^(1/3)
 *   pit   = RADIUS_FACTOR D ((h + depth) / D)^RADIUS_POWER    (its radius)
 *
 * D is the ball's diameter, rho its density, rho0 that of the ground with its pores, h = v^2 / 2g
 * the fall that its speed is worth.
 *
 * Depth: J. S. Uehara, M. A. Ambroso, R. P. Ojha, D. J. Durian: Low-speed impact craters in loose
 * granular media, 2003: d = 0.14 / mu (rho / rho0)^(1/2) D^(2/3) (h + d)^(1/3). The granules follow
 * these powers, at half of the amplitude: theirs is the depth of the ball's underside, ours of the
 * bowl that is left, in shallow ground of 4.5 granules to a ball. J. R. de Bruyn, A. M. Walsh:
 * Penetration of spheres into loose granular media, 2004, found depths linear in the momentum,
 * about the same over this range.
 *
 * Radius: A. M. Walsh, K. E. Holloway, P. Habdas, J. R. de Bruyn: Morphology and scaling of impact
 * craters in granular media, 2003, and Uehara 2003 have a power of 1/4 of the energy, for rims in
 * fine grains. Granules as large as these open a pit about as wide as the ball, which hardly
 * grows; the constants are fitted to their dug volume, whose power of the energy is 0.43.
 *
 * The shape is that of the brush `crater` (edit.h): its volume is 1.28 depth pit^2, that of the
 * granules 1.2 to 1.4 of the same. A rim of the same volume is around it, so nothing is lost, and
 * the brush relaxes it all to the angle of repose.
 */
#include "sand/impact/crater.h"

#include <math.h>

#define GRAVITY 9.81
#define GROUND_DENSITY 1200.0 /* kg/m3, of granules at 2000 with their pores */
#define DEPTH_FACTOR 0.1075
#define DEPTH_POWER (1.0 / 3)
#define RADIUS_FACTOR 0.56
#define RADIUS_POWER 0.06
#define PIT_PART 0.488 /* of the brush's radius: where its profile crosses the ground before */
#define ROUNDS 60      /* of the depth, which is in its own law; each gives half a digit */

struct crater crater_of(const struct crater_body *body)
{
    const double diameter_m = 2 * body->radius_m;
    const double volume_m3 = 4 * M_PI / 3 * pow(body->radius_m, 3);
    const double ratio = body->mass_kg / volume_m3 / GROUND_DENSITY;
    const double fall_m = body->speed_m_s * body->speed_m_s / (2 * GRAVITY);
    const double scale_m = DEPTH_FACTOR * sqrt(ratio) * diameter_m;
    double depth_m = scale_m;

    for (int i = 0; i < ROUNDS; i++)
        depth_m = scale_m * pow((fall_m + depth_m) / diameter_m, DEPTH_POWER);
    return (struct crater){.depth_m = depth_m,
                           .radius_m = RADIUS_FACTOR * diameter_m *
                                       pow((fall_m + depth_m) / diameter_m, RADIUS_POWER)};
}

double crater_reach_m(const struct crater *crater)
{
    return crater->radius_m / PIT_PART;
}

struct edit crater_edit(const struct crater *crater, struct vec2 center)
{
    return (struct edit){.kind = EDIT_BRUSH,
                         .brush = {.shape = BRUSH_CRATER,
                                   .center = center,
                                   .radius_m = crater_reach_m(crater),
                                   .amount_m = crater->depth_m,
                                   .slope_deg = BRUSH_SLOPE_DEG}};
}
