/*
 * The plan that the village's ground and its buildings share; metres in the village's frame. All
 * numbers are short binary fractions, so sums and slopes of them are exact.
 */
#ifndef KOTA_DEMO_VILLAGE_PLAN_H
#define KOTA_DEMO_VILLAGE_PLAN_H

#include "deploy/demo/village.h"

/* The level ground at the bridge and the hall, and the road's depth below it there. */
#define PLAN_LEVEL_M 2.5
#define PLAN_ROAD_DEPTH_M 5.0

/* The bridge: west to east over the road, between its banks' upper edges. */
#define BRIDGE_WEST_M 88.0
#define BRIDGE_EAST_M 112.0
#define BRIDGE_SOUTH_M 76.0
#define BRIDGE_NORTH_M 84.0
#define ROAD_WEST_M 96.0
#define ROAD_EAST_M 104.0

/* The hall: outer faces, thickness of its walls, the doorway in its south wall, the stairs. */
#define HALL_WEST_M 130.0
#define HALL_EAST_M 150.0
#define HALL_SOUTH_M 98.0
#define HALL_NORTH_M 110.0
#define HALL_WALL_M 0.5
#define DOOR_WEST_M 139.0
#define DOOR_EAST_M 141.0
#define DOOR_HEIGHT_M 2.5
#define STAIR_TREADS 15
#define STAIR_RISE_M 0.1875
#define STAIR_GOING_M 0.3125
#define STAIR_WEST_M 140.0
#define STAIR_EAST_M (STAIR_WEST_M + STAIR_TREADS * STAIR_GOING_M)
#define STAIR_SOUTH_M 107.5
#define HALL_UPPER_M (PLAN_LEVEL_M + (STAIR_TREADS + 1) * STAIR_RISE_M)
#define HALL_ROOF_M (HALL_UPPER_M + 3.0)
#define HALL_SLAB_M 0.25 /* a ceiling lies so far under the floor or roof above it */

/* The ferry, as its file says; the pond it crosses along x begins at x 248. */
#define FERRY_WEST_M 276.0
#define FERRY_EAST_M 284.0
#define FERRY_SOUTH_M 77.0
#define FERRY_NORTH_M 83.0
#define FERRY_DECK_M 1.0 /* level with the pond's bank */
#define FERRY_KEEL_M 0.25
#define FERRY_ROOF_M 3.75

enum { HOUSE_CORNERS_MAX = 6, HOUSE_COUNT = 8 };

struct house {
    const char *name;
    struct vec2 lot_min, lot_max; /* the cell of the ground that it is in */
    uint32_t corners;
    struct vec2 at[HOUSE_CORNERS_MAX]; /* its outline, convex, counter-clockwise */
    uint32_t nearest[4];               /* the corner that the lot's SW, SE, NE, NW is joined to */
    double height_m;                   /* roof above the highest ground at its walls */
};

extern const struct house village_houses[HOUSE_COUNT];

/* The ground's z where there is no road, and everywhere in a lot. */
struct vec3 village_ground_at(struct vec2 xy);

void village_bridge(struct polygons *out);
void village_walls(struct polygons *out);
void village_ceiling(struct polygons *out);
void garden_ferry(struct polygons *out); /* at the pond's far bank */

#endif
