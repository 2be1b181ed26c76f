/*
 * The layers of the demo world's small planet, in its own frame: metres from its centre. What is
 * where: docs/demo-world.md.
 */
#ifndef KOTA_DEMO_PLANET_H
#define KOTA_DEMO_PLANET_H

#include "deploy/demo/polygons.h"

#define PLANET_RADIUS_M 60.0 /* of its seas, the lowest ground */
#define PLANET_SKY_M 400.0   /* of the corners of its sky */
#define PLANET_WAY_M 4.0     /* from the planes y = 0 and z = 0 to the nearest tree, at least */

/* The way from the centre to the tower; need not be unit. */
#define PLANET_TOWER_X 7.0
#define PLANET_TOWER_Y 10.0
#define PLANET_TOWER_Z 1.5

void planet_ground(struct polygons *out); /* closed */
void planet_trees(struct polygons *out);  /* and the tower */
void planet_sky(struct polygons *out);    /* closed */

#endif
