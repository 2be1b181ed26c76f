/*
 * The demo world's small planet: ground around a centre, trees and a tower on it, and a sky.
 *
 * The ground is an icosahedron whose faces are cut into triangles (a geodesic grid), each corner
 * lifted by noise of its direction; what would lie lower than PLANET_RADIUS_M is a frozen sea. A
 * corner that several faces share comes from the same sum of the same two corners of the
 * icosahedron, and is rounded, so it has the same bits in all of them: the ground is closed.
 *
 * Two great circles are kept free to be walked: that of y = 0, through both poles and along the
 * seam of ±180 degrees, and the equator. Trees stand 4 m from them at least.
 *
 * The sky is a shell of role ceiling. Without it the planet would contain all of the world that is
 * of no locale (a place over its ground has a floor, however far). A sun is within the sky.
 *
 * No libm but sqrt: the same bytes on any machine.
 */
#include "deploy/demo/planet.h"

#include "deploy/demo/noise.h"

#include <math.h>

#define GOLDEN 1.6180339887498949
#define GRAIN_M 0.00390625 /* corners are multiples of it */

enum { GROUND_CUTS = 18, SKY_CUTS = 3, TREES_TRIED = 700, TREES_MAX = 110, TREE_SIDES = 6 };

static const struct vec3 corners[12] = {
    {-1, GOLDEN, 0}, {1, GOLDEN, 0}, {-1, -GOLDEN, 0}, {1, -GOLDEN, 0},
    {0, -1, GOLDEN}, {0, 1, GOLDEN}, {0, -1, -GOLDEN}, {0, 1, -GOLDEN},
    {GOLDEN, 0, -1}, {GOLDEN, 0, 1}, {-GOLDEN, 0, -1}, {-GOLDEN, 0, 1},
};
static const uint8_t faces[20][3] = {
    {0, 11, 5},  {0, 5, 1},  {0, 1, 7},  {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
    {11, 10, 2}, {10, 7, 6}, {7, 1, 8},  {3, 9, 4},  {3, 4, 2},   {3, 2, 6}, {3, 6, 8},
    {3, 8, 9},   {4, 9, 5},  {2, 4, 11}, {6, 2, 10}, {8, 6, 7},   {9, 8, 1},
};

/* ---- ground ------------------------------------------------------------------------------- */

static double grained(double value)
{
    return floor(value / GRAIN_M + 0.5) * GRAIN_M;
}

static struct vec3 at_radius(struct vec3 way, double radius_m)
{
    return (struct vec3){grained(way.x * radius_m), grained(way.y * radius_m),
                         grained(way.z * radius_m)};
}

/* Metres over the sea, 0 where it is: hills, and mountains where it is high. */
static double land_m(struct vec3 way)
{
    const struct noise_sum hills = {.wavelength = 1.3, .octaves = 5, .gain = 0.48};
    double sum = noise_fbm(&hills, way.x + 9, way.y, 41) + noise_fbm(&hills, way.y + 9, way.z, 42) +
                 noise_fbm(&hills, way.z + 9, way.x, 43);
    double land = sum + 0.06;

    return land > 0 ? 3 * land + 16 * land * land : 0;
}

static struct vec3 ground_at(struct vec3 way)
{
    return at_radius(way, PLANET_RADIUS_M + land_m(way));
}

static struct vec3 sky_at(struct vec3 way)
{
    return at_radius(way, PLANET_SKY_M);
}

/* The corner i, j of a face cut `cuts` times along each edge, 0 <= i, j and i + j <= cuts. */
static struct vec3 way_of(const uint8_t face[3], uint32_t i, uint32_t j, uint32_t cuts)
{
    struct vec3 a = vec3_scale(corners[face[0]], cuts - i - j);
    struct vec3 b = vec3_scale(corners[face[1]], i), c = vec3_scale(corners[face[2]], j);

    return vec3_unit(vec3_add(vec3_add(a, b), c));
}

static void add_sphere(struct polygons *out, uint32_t cuts, struct vec3 (*at)(struct vec3 way))
{
    for (uint32_t f = 0; f < 20; f++)
        for (uint32_t i = 0; i < cuts; i++)
            for (uint32_t j = 0; i + j < cuts; j++) {
                struct vec3 a = at(way_of(faces[f], i, j, cuts));
                struct vec3 b = at(way_of(faces[f], i + 1, j, cuts));
                struct vec3 c = at(way_of(faces[f], i, j + 1, cuts)), d;

                polygons_add(out, (struct vec3[]){a, b, c}, 3);
                if (i + j + 1 == cuts)
                    continue;
                d = at(way_of(faces[f], i + 1, j + 1, cuts));
                polygons_add(out, (struct vec3[]){b, d, c}, 3);
            }
}

void planet_ground(struct polygons *out)
{
    out->group = "ground";
    add_sphere(out, GROUND_CUTS, ground_at);
}

void planet_sky(struct polygons *out)
{
    out->group = "sky";
    add_sphere(out, SKY_CUTS, sky_at);
}

/* ---- what stands on it -------------------------------------------------------------------- */

/* Upright at a place of the ground: up, and two ways along the ground. */
struct stand {
    struct vec3 foot, up, a, b;
};

static struct stand stand_at(struct vec3 way)
{
    struct vec3 other = fabs(way.z) < 0.9 ? (struct vec3){0, 0, 1} : (struct vec3){1, 0, 0};
    struct stand s = {.foot = vec3_scale(way, PLANET_RADIUS_M + land_m(way)), .up = way};

    s.a = vec3_unit(vec3_cross(other, way));
    s.b = vec3_cross(way, s.a);
    return s;
}

static struct vec3 stand_place(const struct stand *s, double a, double b, double up)
{
    struct vec3 flat = vec3_add(vec3_scale(s->a, a), vec3_scale(s->b, b));
    struct vec3 at = vec3_add(s->foot, vec3_add(flat, vec3_scale(s->up, up)));

    return at_radius(at, 1);
}

/* Sides of a pillar of four corners that tapers from half the width `low` to `high`, 0 a tip. */
static void add_pillar(struct polygons *out, const struct stand *s, double low, double from,
                       double high, double to)
{
    static const double side[5][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}, {-1, -1}};

    for (int k = 0; k < 4; k++) {
        const double *p = side[k], *q = side[k + 1];
        struct vec3 a = stand_place(s, low * p[0], low * p[1], from);
        struct vec3 b = stand_place(s, low * q[0], low * q[1], from);
        struct vec3 c = stand_place(s, high * q[0], high * q[1], to);
        struct vec3 d = stand_place(s, high * p[0], high * p[1], to);

        polygons_add(out, (struct vec3[]){a, b, c}, 3);
        if (high > 0)
            polygons_add(out, (struct vec3[]){a, c, d}, 3);
    }
}

static void add_cone(struct polygons *out, const struct stand *s, double radius, double from,
                     double to)
{
    static const double side[TREE_SIDES + 1][2] = {
        {1, 0}, {0.5, 0.875}, {-0.5, 0.875}, {-1, 0}, {-0.5, -0.875}, {0.5, -0.875}, {1, 0}};
    struct vec3 rim[TREE_SIDES + 1];

    for (int k = 0; k <= TREE_SIDES; k++)
        rim[k] = stand_place(s, radius * side[k][0], radius * side[k][1], from);
    polygons_fan(out, stand_place(s, 0, 0, to), rim, TREE_SIDES + 1);
    polygons_fan(out, rim[0], rim + 1, TREE_SIDES - 1); /* seen from below */
}

static void add_tree(struct polygons *out, struct vec3 way, double height_m)
{
    struct stand s = stand_at(way);

    add_pillar(out, &s, 0.25, -0.5, 0.25, 0.2 * height_m);
    add_cone(out, &s, 0.28 * height_m, 0.2 * height_m, 0.65 * height_m);
    add_cone(out, &s, 0.2 * height_m, 0.5 * height_m, height_m);
}

static bool is_free(struct vec3 way, const struct vec3 *taken, uint32_t count)
{
    double land = land_m(way);

    if (land < 0.4 || land > 6 || fabs(way.y) * PLANET_RADIUS_M < PLANET_WAY_M ||
        fabs(way.z) * PLANET_RADIUS_M < PLANET_WAY_M)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (vec3_length(vec3_sub(way, taken[i])) * PLANET_RADIUS_M < (i == 0 ? 8 : 3.5))
            return false;
    return true;
}

static double chance(uint32_t tree, uint32_t what)
{
    return noise_uniform(tree, what, 77);
}

void planet_trees(struct polygons *out)
{
    struct vec3 taken[TREES_MAX + 1];
    struct stand tower;
    uint32_t count = 0;

    taken[count++] = vec3_unit((struct vec3){PLANET_TOWER_X, PLANET_TOWER_Y, PLANET_TOWER_Z});
    tower = stand_at(taken[0]);
    out->group = "tower";
    add_pillar(out, &tower, 1.75, -1, 1.25, 14);
    add_pillar(out, &tower, 1.75, 14, 0, 18);
    polygons_add(out,
                 (struct vec3[]){stand_place(&tower, -1.75, -1.75, 14),
                                 stand_place(&tower, 1.75, -1.75, 14),
                                 stand_place(&tower, 1.75, 1.75, 14)},
                 3);
    polygons_add(out,
                 (struct vec3[]){stand_place(&tower, -1.75, -1.75, 14),
                                 stand_place(&tower, 1.75, 1.75, 14),
                                 stand_place(&tower, -1.75, 1.75, 14)},
                 3);
    out->group = "trees";
    for (uint32_t i = 0; i < TREES_TRIED && count <= TREES_MAX; i++) {
        struct vec3 way = {2 * chance(i, 0) - 1, 2 * chance(i, 1) - 1, 2 * chance(i, 2) - 1};
        double far = vec3_length(way);

        if (far < 0.2 || far > 1 || !is_free(vec3_unit(way), taken, count))
            continue;
        taken[count++] = vec3_unit(way);
        add_tree(out, taken[count - 1], 3.5 + 3 * chance(i, 3));
    }
}
