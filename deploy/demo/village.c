/*
 * The ground of the village and of the garden, and the table of all locales of polygons.
 *
 * The ground is a net of cells between given x and y lines that runs through both locales, so that
 * they meet in the same corners. Its height is the sum of a broken line over x and one over y:
 * every cell is then flat, whatever its slopes. Only the banks of the road, whose depth changes
 * along y, are twisted, and become two triangles. All numbers are binary fractions: sums are
 * exact, corners of neighbours are the same bits, flat is flat to the last bit.
 *
 * A building in a cell is a hole in it: the cell's four corners are joined to the hole's, and no
 * corner is set on the cell's edges, so the neighbours need not know (no T-junctions). The pond
 * takes five cells of the net, a cross, and cuts a corner off the four between its arms.
 *
 * Tried and dropped: lines for every house through the whole net (slivers half a metre wide across
 * the whole village).
 */
#include "deploy/demo/village.h"

#include "deploy/demo/planet.h"
#include "deploy/demo/village_plan.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct line {
    double at_m, height_m, depth_m; /* depth: of the road below the ground, along y */
};

static const struct line lines_x[] = {
    {0, 0, 0},       {16, 0.5, 0},   {32, 1, 0},      {48, 1.25, 0},   {64, 1.25, 0},
    {80, 1.25, 0},   {88, 1.25, 0},  {96, 1.25, 0},   {104, 1.25, 0},  {112, 1.25, 0},
    {128, 1.25, 0},  {152, 1.25, 0}, {168, 1, 0},     {184, 0.5, 0},   {200, 0.25, 0},
    {216, 0.25, 0},  {232, 0, 0},    {248, -0.25, 0}, {260, -0.25, 0}, {272, -0.25, 0},
    {284, -0.25, 0}, {304, 0, 0},    {320, 0.5, 0},
};
static const struct line lines_y[] = {
    {0, 0, 0},        {16, 0.5, 1.5}, {32, 0.75, 3},    {48, 1, 4.5},
    {64, 1.25, 5},    {76, 1.25, 5},  {84, 1.25, 5},    {96, 1.25, 5},
    {112, 1.25, 4.5}, {128, 1.75, 3}, {144, 2.25, 1.5}, {160, 2.5, 0},
};

enum { BORDER_LINE = 14, POND_LINE_X = 17, POND_LINE_Y = 4, POND_CUT_M = 4 };

static double height_of(const struct line *lines, size_t count, double at_m)
{
    size_t i = 0;

    while (i + 2 < count && at_m > lines[i + 1].at_m)
        i++;
    return lines[i].height_m + (lines[i + 1].height_m - lines[i].height_m) *
                                   (at_m - lines[i].at_m) / (lines[i + 1].at_m - lines[i].at_m);
}

struct vec3 village_ground_at(struct vec2 xy)
{
    return (struct vec3){xy.x, xy.y,
                         height_of(lines_x, COUNT(lines_x), xy.x) +
                             height_of(lines_y, COUNT(lines_y), xy.y)};
}

static struct vec3 net_at(size_t i, size_t j)
{
    struct vec3 at = village_ground_at((struct vec2){lines_x[i].at_m, lines_y[j].at_m});

    if (at.x >= ROAD_WEST_M && at.x <= ROAD_EAST_M)
        at.z -= lines_y[j].depth_m;
    return at;
}

/* ---- cells -------------------------------------------------------------------------------- */

static void add_ground(struct polygons *out, const struct vec2 *corners, uint32_t count)
{
    struct vec3 at[POLYGON_CORNERS_MAX];

    for (uint32_t i = 0; i < count; i++)
        at[i] = village_ground_at(corners[i]);
    polygons_add(out, at, count);
}

static void add_cell(struct polygons *out, size_t i, size_t j)
{
    struct vec3 at[] = {net_at(i, j), net_at(i + 1, j), net_at(i + 1, j + 1), net_at(i, j + 1)};

    if (at[0].z + at[2].z == at[1].z + at[3].z) {
        polygons_add(out, at, 4);
        return;
    }
    polygons_add(out, (struct vec3[]){at[0], at[1], at[3]}, 3);
    polygons_add(out, (struct vec3[]){at[1], at[2], at[3]}, 3);
}

/* The strip between one edge a, b of a lot and the chain of the hole's corners that faces it, from
 * a's to b's. */
static void add_strip(struct polygons *out, struct vec2 a, struct vec2 b, const struct vec2 *chain,
                      uint32_t count)
{
    uint32_t turn = (count - 1) / 2; /* a sees the chain before it, b the rest */

    if (count == 2) {
        add_ground(out, (struct vec2[]){a, b, chain[1], chain[0]}, 4);
        return;
    }
    for (uint32_t i = 0; i < turn; i++)
        add_ground(out, (struct vec2[]){a, chain[i + 1], chain[i]}, 3);
    add_ground(out, (struct vec2[]){a, b, chain[turn]}, 3);
    for (uint32_t i = turn; i + 1 < count; i++)
        add_ground(out, (struct vec2[]){b, chain[i + 1], chain[i]}, 3);
}

/* A lot but for the hole in it; nearest[k] is the hole's corner that the lot's corner k joins. */
static void add_lot(struct polygons *out, struct vec2 min, struct vec2 max, const struct vec2 *hole,
                    uint32_t corners, const uint32_t nearest[4])
{
    const struct vec2 lot[] = {min, {max.x, min.y}, max, {min.x, max.y}};
    struct vec2 chain[POLYGON_CORNERS_MAX];

    for (uint32_t k = 0; k < 4; k++) {
        uint32_t last = nearest[(k + 1) % 4], i = nearest[k], count = 0;

        chain[count++] = hole[i];
        while (i != last) {
            i = (i + 1) % corners;
            chain[count++] = hole[i];
        }
        add_strip(out, lot[k], lot[(k + 1) % 4], chain, count);
    }
}

/* ---- the village -------------------------------------------------------------------------- */

/* The hall's floor goes out through the doorway; its walls and the stairs are holes. */
static void hall_ground(struct polygons *out)
{
    const double in = HALL_WALL_M;
    const struct vec2 outline[] = {{HALL_WEST_M, HALL_SOUTH_M}, {DOOR_WEST_M, HALL_SOUTH_M},
                                   {DOOR_EAST_M, HALL_SOUTH_M}, {HALL_EAST_M, HALL_SOUTH_M},
                                   {HALL_EAST_M, HALL_NORTH_M}, {HALL_WEST_M, HALL_NORTH_M}};
    const struct vec2 sw = {HALL_WEST_M + in, HALL_SOUTH_M + in},
                      se = {HALL_EAST_M - in, HALL_SOUTH_M + in},
                      ne = {HALL_EAST_M - in, HALL_NORTH_M - in},
                      nw = {HALL_WEST_M + in, HALL_NORTH_M - in};
    const struct vec2 door_w = {DOOR_WEST_M, HALL_SOUTH_M + in},
                      door_e = {DOOR_EAST_M, HALL_SOUTH_M + in};
    const struct vec2 stair_sw = {STAIR_WEST_M, STAIR_SOUTH_M},
                      stair_se = {STAIR_EAST_M, STAIR_SOUTH_M},
                      stair_ne = {STAIR_EAST_M, HALL_NORTH_M - in},
                      stair_nw = {STAIR_WEST_M, HALL_NORTH_M - in};

    out->group = "hall_yard";
    add_lot(out, (struct vec2){128, 96}, (struct vec2){152, 112}, outline, 6,
            (uint32_t[]){0, 3, 4, 5});
    out->group = "hall_doorway";
    add_ground(out, (struct vec2[]){outline[1], outline[2], door_e, door_w}, 4);
    out->group = "hall_floor";
    add_ground(out, (struct vec2[]){sw, door_w, stair_sw, stair_nw, nw}, 5);
    add_ground(out, (struct vec2[]){door_w, door_e, stair_se, stair_sw}, 4);
    add_ground(out, (struct vec2[]){door_e, se, stair_se}, 3);
    add_ground(out, (struct vec2[]){stair_se, se, ne, stair_ne}, 4);
}

static const struct house *house_in(size_t i, size_t j)
{
    for (uint32_t k = 0; k < HOUSE_COUNT; k++)
        if (village_houses[k].lot_min.x == lines_x[i].at_m &&
            village_houses[k].lot_min.y == lines_y[j].at_m)
            return &village_houses[k];
    return NULL;
}

static void village_cell(struct polygons *out, size_t i, size_t j)
{
    double x = lines_x[i].at_m, y = lines_y[j].at_m;
    const struct house *house = house_in(i, j);

    if (house) {
        out->group = "yards";
        add_lot(out, house->lot_min, house->lot_max, house->at, house->corners, house->nearest);
    } else if (x == 128 && y == 96) {
        hall_ground(out);
    } else if (x == ROAD_WEST_M) {
        out->group = "road";
        add_cell(out, i, j);
    } else if (x == BRIDGE_WEST_M || x == ROAD_EAST_M) {
        out->group = "banks";
        if (y != BRIDGE_SOUTH_M) /* there the bridge's piers stand */
            add_cell(out, i, j);
    } else {
        out->group = "land";
        add_cell(out, i, j);
    }
}

static void village_ground(struct polygons *out)
{
    for (size_t j = 0; j + 1 < COUNT(lines_y); j++)
        for (size_t i = 0; i < BORDER_LINE; i++)
            village_cell(out, i, j);
}

/* ---- the garden --------------------------------------------------------------------------- */

/* The cells between the pond's arms lose the corner that points to its middle. */
static void pond_bank(struct polygons *out, size_t i, size_t j)
{
    double x = lines_x[i].at_m, y = lines_y[j].at_m, x1 = lines_x[i + 1].at_m,
           y1 = lines_y[j + 1].at_m, cut = POND_CUT_M;
    bool west = i == POND_LINE_X, south = j == POND_LINE_Y;

    out->group = "pond_bank";
    if (west && south)
        add_ground(out, (struct vec2[]){{x, y}, {x1, y}, {x1, y1 - cut}, {x1 - cut, y1}, {x, y1}},
                   5);
    else if (south)
        add_ground(out, (struct vec2[]){{x, y}, {x1, y}, {x1, y1}, {x + cut, y1}, {x, y1 - cut}},
                   5);
    else if (west)
        add_ground(out, (struct vec2[]){{x, y}, {x1 - cut, y}, {x1, y + cut}, {x1, y1}, {x, y1}},
                   5);
    else
        add_ground(out, (struct vec2[]){{x + cut, y}, {x1, y}, {x1, y1}, {x, y1}, {x, y + cut}}, 5);
}

static void garden_ground(struct polygons *out)
{
    for (size_t j = 0; j + 1 < COUNT(lines_y); j++)
        for (size_t i = BORDER_LINE; i + 1 < COUNT(lines_x); i++) {
            bool middle_x = i == POND_LINE_X + 1, middle_y = j == POND_LINE_Y + 1;
            bool beside = i >= POND_LINE_X && i <= POND_LINE_X + 2 && j >= POND_LINE_Y &&
                          j <= POND_LINE_Y + 2;

            out->group = "meadow";
            if (!beside)
                add_cell(out, i, j);
            else if (!middle_x && !middle_y)
                pond_bank(out, i, j);
        }
}

/* ---- all locales -------------------------------------------------------------------------- */

/* What takes the village's frame to the garden's, after the half turn. */
static const struct vec3 garden_translate = {320, 160, 4};

const struct village_locale village_locales[VILLAGE_LOCALE_COUNT] = {
    {"village",
     "Village",
     {4192, 2048, 64},
     false,
     "cartesian",
     true,
     4,
     {{"ground", "ground", village_ground},
      {"bridge", "ground", village_bridge},
      {"houses", "ground", village_walls},
      {"ceiling", "ceiling", village_ceiling}}},
    {"garden",
     "Garden",
     {4192 + 320, 2048 + 160, 64 - 4},
     true,
     "cartesian",
     true,
     2,
     {{"ground", "ground", garden_ground}, {"ferry", "ground", garden_ferry}}},
    {"planet",
     "A small planet",
     {6600, -1400, 600},
     false,
     "spherical",
     false,
     3,
     {{"ground", "ground", planet_ground},
      {"trees", "ground", planet_trees},
      {"sky", "ceiling", planet_sky}}},
};

enum err_code village_layer_obj(const struct village_locale *locale,
                                const struct village_layer *layer, char **text, size_t *length,
                                struct err *err)
{
    struct polygons list = {0};
    struct vec3 translate = {0, 0, 0};
    char title[64];

    layer->make(&list);
    if (locale->turned)
        translate = garden_translate;
    snprintf(title, sizeof title, "%s, %s", locale->title, layer->id);
    polygons_obj(&list, title, locale->turned, translate, text, length, err);
    polygons_destroy(&list);
    return err->code;
}

int village_manifest(char *text, size_t size, const struct village_locale *locale)
{
    const struct vec3 *at = &locale->translation;
    char layers[512] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < locale->layer_count; i++)
        used += (size_t)snprintf(layers + used, sizeof layers - used,
                                 "    {\"id\": \"%s\", \"file\": \"%s.obj\", \"role\": \"%s\", "
                                 "\"up\": \"z\", \"frame\": \"%s\"}%s\n",
                                 locale->layers[i].id, locale->layers[i].id, locale->layers[i].role,
                                 locale->frame, i + 1 < locale->layer_count ? "," : "");
    return snprintf(text, size,
                    "{\n"
                    "  \"title\": \"%s\",\n"
                    "  \"placement\": {\"translation\": [%.17g, %.17g, %.17g], "
                    "\"rotation\": [0, 0, %d, %d]},\n"
                    "  \"open_sky\": %s,\n"
                    "  \"layers\": [\n%s  ]\n"
                    "}\n",
                    locale->title, at->x, at->y, at->z, locale->turned, !locale->turned,
                    locale->open_sky ? "true" : "false", layers);
}
