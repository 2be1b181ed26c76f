/*
 * The buildings of the village: the bridge, the houses, the hall and its ceilings; and the
 * ferry on the garden's pond.
 *
 * Walls are upright polygons on the rim of the holes that village.c leaves in the ground, from the
 * ground up to a flat roof. The bridge has two piers of masonry, holes in the banks like the
 * houses; its arch is the road's ceiling, seen from below. Deck, roofs, treads and the hall's upper
 * floor are floors; each kind shares its edges, corner for corner. The hall's walls are half a
 * metre thick. Its stairs climb along the north wall, from west to east; the upper floor begins
 * where they end and leaves the space above them open.
 */
#include "deploy/demo/village_plan.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define RECTANGLE(x0, y0, x1, y1)                                                                  \
    4, {{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}},                                                   \
    {                                                                                              \
        0, 1, 2, 3                                                                                 \
    }

const struct house village_houses[HOUSE_COUNT] = {
    {"west_house", {16, 16}, {32, 32}, RECTANGLE(20, 19, 28, 29), 5},
    {"smithy", {48, 32}, {64, 48}, RECTANGLE(51, 35, 60, 44), 4},
    {"barn", {32, 112}, {48, 128}, RECTANGLE(36, 115, 44, 125), 7},
    {"inn", {64, 96}, {80, 112}, RECTANGLE(67, 99, 77, 108), 6},
    {"gate_house", {168, 76}, {184, 84}, RECTANGLE(171, 77, 181, 83), 5},
    {"bakery", {152, 32}, {168, 48}, RECTANGLE(155, 36, 165, 44), 4},
    {"east_house", {184, 128}, {200, 144}, RECTANGLE(187, 131, 196, 140), 5},
    {"tower",
     {112, 48},
     {128, 64},
     6,
     {{118, 53}, {122, 53}, {124, 56}, {122, 59}, {118, 59}, {116, 56}},
     {0, 1, 3, 4},
     14},
};

/* An upright wall along a, b, from each end's z up to top. */
static void add_wall(struct polygons *out, struct vec3 a, struct vec3 b, double top)
{
    polygons_add(out, (struct vec3[]){a, b, {b.x, b.y, top}, {a.x, a.y, top}}, 4);
}

static void add_level(struct polygons *out, const struct vec2 *corners, uint32_t count, double z)
{
    struct vec3 at[POLYGON_CORNERS_MAX];

    for (uint32_t i = 0; i < count; i++)
        at[i] = (struct vec3){corners[i].x, corners[i].y, z};
    polygons_add(out, at, count);
}

/* ---- bridge ------------------------------------------------------------------------------- */

#define PARAPET_M 1.0

/* x and z of the deck's and the arch's corners, from west to east. */
static const struct vec2 deck[] = {
    {BRIDGE_WEST_M, PLAN_LEVEL_M},      {92, PLAN_LEVEL_M + 0.75},
    {ROAD_WEST_M, PLAN_LEVEL_M + 1.25}, {100, PLAN_LEVEL_M + 1.5},
    {ROAD_EAST_M, PLAN_LEVEL_M + 1.25}, {108, PLAN_LEVEL_M + 0.75},
    {BRIDGE_EAST_M, PLAN_LEVEL_M},
};
static const struct vec2 arch[] = {
    {ROAD_WEST_M, PLAN_LEVEL_M - 2}, {97, PLAN_LEVEL_M - 1},
    {98.5, PLAN_LEVEL_M - 0.25},     {100, PLAN_LEVEL_M},
    {101.5, PLAN_LEVEL_M - 0.25},    {103, PLAN_LEVEL_M - 1},
    {ROAD_EAST_M, PLAN_LEVEL_M - 2},
};

static struct vec3 profile_at(struct vec2 xz, double y)
{
    return (struct vec3){xz.x, y, xz.y};
}

/* From one side to the other, over a chain of the profile. */
static void add_span(struct polygons *out, const struct vec2 *chain, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++)
        polygons_add(out,
                     (struct vec3[]){profile_at(chain[i], BRIDGE_SOUTH_M),
                                     profile_at(chain[i + 1], BRIDGE_SOUTH_M),
                                     profile_at(chain[i + 1], BRIDGE_NORTH_M),
                                     profile_at(chain[i], BRIDGE_NORTH_M)},
                     4);
}

/* Triangles from one corner of the profile over a chain of it, in the plane y. */
static void add_side_fan(struct polygons *out, double y, struct vec2 apex, const struct vec2 *chain,
                         uint32_t count)
{
    struct vec3 at[COUNT(deck) + COUNT(arch)];

    for (uint32_t i = 0; i < count; i++)
        at[i] = profile_at(chain[i], y);
    polygons_fan(out, profile_at(apex, y), at, count);
}

/* The masonry between bank, deck and arch on one side. */
static void add_bridge_side(struct polygons *out, double y)
{
    const double road = PLAN_LEVEL_M - PLAN_ROAD_DEPTH_M;
    const struct vec2 west[] = {{ROAD_WEST_M, road}, deck[0], deck[1], deck[2]};
    const struct vec2 east[] = {{ROAD_EAST_M, road}, deck[6], deck[5], deck[4]};
    const struct vec2 crown_west[] = {arch[0], arch[1], arch[2], arch[3], deck[3]};
    const struct vec2 crown_east[] = {arch[6], arch[5], arch[4], arch[3], deck[3]};

    out->group = "masonry";
    add_side_fan(out, y, arch[0], west, COUNT(west));
    add_side_fan(out, y, deck[2], crown_west, COUNT(crown_west));
    add_side_fan(out, y, deck[4], crown_east, COUNT(crown_east));
    add_side_fan(out, y, arch[6], east, COUNT(east));
    out->group = "parapets";
    for (size_t i = 0; i + 1 < COUNT(deck); i++)
        polygons_add(out,
                     (struct vec3[]){{deck[i].x, y, deck[i].y},
                                     {deck[i + 1].x, y, deck[i + 1].y},
                                     {deck[i + 1].x, y, deck[i + 1].y + PARAPET_M},
                                     {deck[i].x, y, deck[i].y + PARAPET_M}},
                     4);
}

void village_bridge(struct polygons *out)
{
    const double road = PLAN_LEVEL_M - PLAN_ROAD_DEPTH_M;

    out->group = "deck";
    add_span(out, deck, COUNT(deck));
    out->group = "arch";
    add_span(out, arch, COUNT(arch));
    out->group = "piers";
    add_wall(out, (struct vec3){ROAD_WEST_M, BRIDGE_SOUTH_M, road},
             (struct vec3){ROAD_WEST_M, BRIDGE_NORTH_M, road}, arch[0].y);
    add_wall(out, (struct vec3){ROAD_EAST_M, BRIDGE_NORTH_M, road},
             (struct vec3){ROAD_EAST_M, BRIDGE_SOUTH_M, road}, arch[6].y);
    add_bridge_side(out, BRIDGE_SOUTH_M);
    add_bridge_side(out, BRIDGE_NORTH_M);
}

/* ---- houses ------------------------------------------------------------------------------- */

static void add_house(struct polygons *out, const struct house *house)
{
    struct vec3 foot[HOUSE_CORNERS_MAX];
    double top = -INFINITY;

    out->group = house->name;
    for (uint32_t i = 0; i < house->corners; i++) {
        foot[i] = village_ground_at(house->at[i]);
        top = fmax(top, foot[i].z + house->height_m);
    }
    for (uint32_t i = 0; i < house->corners; i++)
        add_wall(out, foot[i], foot[(i + 1) % house->corners], top);
    add_level(out, house->at, house->corners, top);
}

/* ---- hall --------------------------------------------------------------------------------- */

#define HALL_IN_WEST_M (HALL_WEST_M + HALL_WALL_M)
#define HALL_IN_EAST_M (HALL_EAST_M - HALL_WALL_M)
#define HALL_IN_SOUTH_M (HALL_SOUTH_M + HALL_WALL_M)
#define HALL_IN_NORTH_M (HALL_NORTH_M - HALL_WALL_M)
#define DOOR_TOP_M (PLAN_LEVEL_M + DOOR_HEIGHT_M)

static void add_level_wall(struct polygons *out, struct vec2 a, struct vec2 b, double bottom,
                           double top)
{
    add_wall(out, (struct vec3){a.x, a.y, bottom}, (struct vec3){b.x, b.y, bottom}, top);
}

/* A ring of four walls around min, max with the doorway in the south one. */
static void add_hall_ring(struct polygons *out, struct vec2 min, struct vec2 max, double top)
{
    const struct vec2 se = {max.x, min.y}, nw = {min.x, max.y};
    const struct vec2 door_w = {DOOR_WEST_M, min.y}, door_e = {DOOR_EAST_M, min.y};

    add_level_wall(out, min, door_w, PLAN_LEVEL_M, top);
    add_level_wall(out, door_w, door_e, DOOR_TOP_M, top);
    add_level_wall(out, door_e, se, PLAN_LEVEL_M, top);
    add_level_wall(out, se, max, PLAN_LEVEL_M, top);
    add_level_wall(out, max, nw, PLAN_LEVEL_M, top);
    add_level_wall(out, nw, min, PLAN_LEVEL_M, top);
}

static void add_stairs(struct polygons *out)
{
    double y0 = STAIR_SOUTH_M, y1 = HALL_IN_NORTH_M;

    out->group = "hall_stairs";
    for (int i = 0; i <= STAIR_TREADS; i++) {
        double x = STAIR_WEST_M + i * STAIR_GOING_M, x1 = x + STAIR_GOING_M;
        double z = PLAN_LEVEL_M + (i + 1) * STAIR_RISE_M;
        const struct vec2 tread[] = {{x, y0}, {x1, y0}, {x1, y1}, {x, y1}};

        add_level_wall(out, tread[3], tread[0], z - STAIR_RISE_M, z);
        if (i == STAIR_TREADS)
            break;
        add_level(out, tread, 4, z);
        add_level_wall(out, tread[0], tread[1], PLAN_LEVEL_M, z);
    }
    add_level_wall(out, (struct vec2){STAIR_EAST_M, y0}, (struct vec2){STAIR_EAST_M, y1},
                   PLAN_LEVEL_M, HALL_UPPER_M - STAIR_RISE_M);
}

/* The upper floor, or the ceiling under it: the hall without the space above the stairs. */
static void add_storey(struct polygons *out, double z)
{
    const struct vec2 sw = {HALL_IN_WEST_M, HALL_IN_SOUTH_M},
                      se = {HALL_IN_EAST_M, HALL_IN_SOUTH_M},
                      ne = {HALL_IN_EAST_M, HALL_IN_NORTH_M},
                      nw = {HALL_IN_WEST_M, HALL_IN_NORTH_M};
    const struct vec2 stair_sw = {STAIR_WEST_M, STAIR_SOUTH_M},
                      stair_se = {STAIR_EAST_M, STAIR_SOUTH_M},
                      stair_ne = {STAIR_EAST_M, HALL_IN_NORTH_M},
                      stair_nw = {STAIR_WEST_M, HALL_IN_NORTH_M};

    add_level(out, (struct vec2[]){sw, stair_sw, stair_nw, nw}, 4, z);
    add_level(out, (struct vec2[]){sw, se, stair_se, stair_sw}, 4, z);
    add_level(out, (struct vec2[]){stair_se, se, ne, stair_ne}, 4, z);
}

static void add_hall(struct polygons *out)
{
    const struct vec2 roof[] = {{HALL_WEST_M, HALL_SOUTH_M},
                                {HALL_EAST_M, HALL_SOUTH_M},
                                {HALL_EAST_M, HALL_NORTH_M},
                                {HALL_WEST_M, HALL_NORTH_M}};
    const struct vec2 landing[] = {{STAIR_WEST_M, HALL_IN_NORTH_M},
                                   {STAIR_WEST_M, STAIR_SOUTH_M},
                                   {STAIR_EAST_M, STAIR_SOUTH_M}};

    out->group = "hall_walls";
    add_hall_ring(out, roof[0], roof[2], HALL_ROOF_M);
    add_hall_ring(out, (struct vec2){HALL_IN_WEST_M, HALL_IN_SOUTH_M},
                  (struct vec2){HALL_IN_EAST_M, HALL_IN_NORTH_M}, HALL_ROOF_M - HALL_SLAB_M);
    add_level_wall(out, (struct vec2){DOOR_WEST_M, HALL_SOUTH_M},
                   (struct vec2){DOOR_WEST_M, HALL_IN_SOUTH_M}, PLAN_LEVEL_M, DOOR_TOP_M);
    add_level_wall(out, (struct vec2){DOOR_EAST_M, HALL_IN_SOUTH_M},
                   (struct vec2){DOOR_EAST_M, HALL_SOUTH_M}, PLAN_LEVEL_M, DOOR_TOP_M);
    add_stairs(out);
    out->group = "hall_upper_floor";
    add_storey(out, HALL_UPPER_M);
    out->group = "hall_railing";
    for (size_t i = 0; i + 1 < COUNT(landing); i++)
        add_level_wall(out, landing[i], landing[i + 1], HALL_UPPER_M, HALL_UPPER_M + 1);
    out->group = "hall_roof";
    add_level(out, roof, 4, HALL_ROOF_M);
}

void village_walls(struct polygons *out)
{
    for (uint32_t i = 0; i < HOUSE_COUNT; i++)
        add_house(out, &village_houses[i]);
    add_hall(out);
}

void village_ceiling(struct polygons *out)
{
    const struct vec2 lintel[] = {{DOOR_WEST_M, HALL_SOUTH_M},
                                  {DOOR_EAST_M, HALL_SOUTH_M},
                                  {DOOR_EAST_M, HALL_IN_SOUTH_M},
                                  {DOOR_WEST_M, HALL_IN_SOUTH_M}};
    const struct vec2 hall[] = {{HALL_IN_WEST_M, HALL_IN_SOUTH_M},
                                {HALL_IN_EAST_M, HALL_IN_SOUTH_M},
                                {HALL_IN_EAST_M, HALL_IN_NORTH_M},
                                {HALL_IN_WEST_M, HALL_IN_NORTH_M}};
    const struct vec2 stair_sw = {STAIR_WEST_M, STAIR_SOUTH_M};

    out->group = "doorway_lintel";
    add_level(out, lintel, 4, DOOR_TOP_M);
    out->group = "lower_storey";
    add_storey(out, HALL_UPPER_M - HALL_SLAB_M);
    out->group = "slab_edges";
    add_level_wall(out, stair_sw, (struct vec2){STAIR_EAST_M, STAIR_SOUTH_M},
                   HALL_UPPER_M - HALL_SLAB_M, HALL_UPPER_M);
    add_level_wall(out, (struct vec2){STAIR_WEST_M, HALL_IN_NORTH_M}, stair_sw,
                   HALL_UPPER_M - HALL_SLAB_M, HALL_UPPER_M);
    out->group = "upper_storey";
    add_level(out, hall, 4, HALL_ROOF_M - HALL_SLAB_M);
}

/* ---- ferry -------------------------------------------------------------------------------- */

#define POST_M 0.25
#define RAIL_M 1.0

static void add_box(struct polygons *out, struct vec2 min, struct vec2 max, double low, double high)
{
    const struct vec2 at[] = {min, {max.x, min.y}, max, {min.x, max.y}};

    for (size_t i = 0; i < 4; i++)
        add_level_wall(out, at[i], at[(i + 1) % 4], low, high);
}

/* A hull with a level deck, railings on its long sides and a roof on four posts. */
void garden_ferry(struct polygons *out)
{
    const struct vec2 hull[] = {{FERRY_WEST_M, FERRY_SOUTH_M},
                                {FERRY_EAST_M, FERRY_SOUTH_M},
                                {FERRY_EAST_M, FERRY_NORTH_M},
                                {FERRY_WEST_M, FERRY_NORTH_M}};
    const double west = FERRY_WEST_M + 2.5, east = FERRY_EAST_M - 2.5;
    const double south = FERRY_SOUTH_M, north = FERRY_NORTH_M;
    const struct vec2 roof[] = {{west, south}, {east, south}, {east, north}, {west, north}};
    const struct vec2 posts[] = {{west, south},
                                 {east - POST_M, south},
                                 {east - POST_M, north - POST_M},
                                 {west, north - POST_M}};

    out->group = "ferry_deck";
    add_level(out, hull, 4, FERRY_DECK_M);
    out->group = "ferry_hull";
    add_box(out, hull[0], hull[2], FERRY_KEEL_M, FERRY_DECK_M);
    add_level(out, hull, 4, FERRY_KEEL_M);
    out->group = "ferry_railing";
    add_level_wall(out, hull[0], hull[1], FERRY_DECK_M, FERRY_DECK_M + RAIL_M);
    add_level_wall(out, hull[3], hull[2], FERRY_DECK_M, FERRY_DECK_M + RAIL_M);
    out->group = "ferry_roof";
    for (size_t i = 0; i < COUNT(posts); i++)
        add_box(out, posts[i], (struct vec2){posts[i].x + POST_M, posts[i].y + POST_M},
                FERRY_DECK_M, FERRY_ROOF_M);
    add_level(out, roof, 4, FERRY_ROOF_M);
}
