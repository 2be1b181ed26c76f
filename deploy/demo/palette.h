/*
 * What the ground is made of, by its height and slope: colours for pictures. Albedo is linear
 * light, 0..1 a channel.
 */
#ifndef KOTA_DEMO_PALETTE_H
#define KOTA_DEMO_PALETTE_H

#include "terrain/shade.h"

#include <stdbool.h>

enum palette { PALETTE_AUTO, PALETTE_ALPINE, PALETTE_ISLANDS, PALETTE_DESERT };

/* "auto", "alpine", "islands", "desert"; false for any other name. */
bool palette_of_name(const char *name, enum palette *out);

/*
 * Albedo of the ground.
 *
 * palette  not PALETTE_AUTO
 * point    metres in the locale's frame
 * normal   unit, up
 * low, high  the heights between which the palette spreads, metres; low < high
 */
struct colour palette_ground(enum palette palette, struct vec3 point, struct vec3 normal,
                             double low_m, double high_m);

#endif
