/*
 * See mesh_scenes.h. Sizes are those of the real things: triangles of the hills are about 4 m wide,
 * storeys 3 m high, a road 12 m wide.
 */
#include "support/mesh_scenes.h"

#include "support/random.h"

#include <math.h>

const char *const mesh_scene_names[MESH_SCENES] = {"hills", "town", "track", "soup"};

#define TURN 6.283185307179586

/* A function: of two side by side gcc 12 makes a vector and leaves the conversions out. */
__attribute__((noinline)) static double float32(double x)
{
    return (double)(float)x;
}

static uint32_t vertex(struct soup *soup, double x, double y, double z)
{
    return soup_vertex(soup, (struct vec3){float32(x), float32(y), float32(z)});
}

/* Two triangles of a, b, c, d, one after another around. */
static void quad(struct soup *soup, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    soup_polygon(soup, (uint32_t[]){a, b, c}, 3);
    soup_polygon(soup, (uint32_t[]){a, c, d}, 3);
}

/* ---- hills ---------------------------------------------------------------------------------- */

struct waves {
    double x[6], y[6], shift[6], height[6];
};

static struct waves waves_make(struct random *random)
{
    struct waves w;

    for (int i = 0; i < 6; i++) {
        double length = 900 / pow(2.3, i), angle = random_in(random, 0, TURN);

        w.x[i] = cos(angle) * TURN / length;
        w.y[i] = sin(angle) * TURN / length;
        w.shift[i] = random_in(random, 0, TURN);
        w.height[i] = length / 18;
    }
    return w;
}

static double waves_at(const struct waves *w, double x, double y)
{
    double z = 0;

    for (int i = 0; i < 6; i++)
        z += w->height[i] * sin(w->x[i] * x + w->y[i] * y + w->shift[i]);
    return z;
}

static void hills_make(struct soup *soup, size_t triangles, struct random *random)
{
    const double step = 4;
    struct waves ground = waves_make(random), ponds = waves_make(random);
    uint32_t side = (uint32_t)sqrt((double)triangles / 2 / 0.92), first = 0;

    for (uint32_t row = 0; row <= side; row++)
        for (uint32_t column = 0; column <= side; column++) {
            double x = step * column + random_in(random, -1.6, 1.6);
            double y = step * row + random_in(random, -1.6, 1.6);

            vertex(soup, x, y, waves_at(&ground, x, y));
        }
    for (uint32_t row = 0; row < side; row++)
        for (uint32_t column = 0; column < side; column++) {
            uint32_t v = first + row * (side + 1) + column, w = v + side + 1;

            if (waves_at(&ponds, step * column, step * row) > 48)
                continue;
            if ((row ^ column) & 1)
                quad(soup, v, v + 1, w + 1, w);
            else
                quad(soup, v + 1, w + 1, w, v);
        }
}

/* ---- town ----------------------------------------------------------------------------------- */

static void box_walls(struct soup *soup, const uint32_t low[4], const uint32_t high[4])
{
    for (int i = 0; i < 4; i++)
        quad(soup, low[i], low[(i + 1) % 4], high[(i + 1) % 4], high[i]);
}

/* A house of some storeys, its floors with a stairwell, and a ramp from each to the next. */
static void house_make(struct soup *soup, struct random *random, double x, double y)
{
    double angle = random_in(random, 0, TURN), c = cos(angle), s = sin(angle);
    double w = random_in(random, 4, 8), d = random_in(random, 4, 8);
    uint32_t storeys = 1 + (uint32_t)random_in(random, 0, 9), before[4] = {0, 0, 0, 0};

    for (uint32_t k = 0; k <= storeys; k++) {
        const double at[8][2] = {{-w, -d},   {w, -d},   {w, d},   {-w, d},
                                 {-1.5, -2}, {1.5, -2}, {1.5, 2}, {-1.5, 2}};
        uint32_t v[8];

        for (int i = 0; i < 8; i++)
            v[i] = vertex(soup, x + c * at[i][0] - s * at[i][1], y + s * at[i][0] + c * at[i][1],
                          3.0 * k);
        for (uint32_t i = 0; i < 4; i++)
            quad(soup, v[i], v[(i + 1) % 4], v[4 + (i + 1) % 4], v[4 + i]);
        if (k > 0) {
            box_walls(soup, before, v);
            quad(soup, v[6], v[7],
                 vertex(soup, x + c * -1.5 + s * 2, y + s * -1.5 - c * 2, 3.0 * k - 3),
                 vertex(soup, x + c * 1.5 + s * 2, y + s * 1.5 - c * 2, 3.0 * k - 3));
        }
        for (int i = 0; i < 4; i++)
            before[i] = v[i];
    }
}

static void town_make(struct soup *soup, size_t triangles, struct random *random)
{
    double width = sqrt((double)triangles / 112) * 26;
    uint32_t blocks = (uint32_t)(width / 26) + 1;

    for (uint32_t row = 0; row < blocks; row++)
        for (uint32_t column = 0; column < blocks && soup->polygon_count < triangles; column++) {
            double x = 26.0 * column, y = 26.0 * row;

            if (random_below(random, 12) == 0) /* a lake */
                continue;
            quad(soup, vertex(soup, x, y, 0), vertex(soup, x + 26, y, 0),
                 vertex(soup, x + 26, y + 26, 0), vertex(soup, x, y + 26, 0));
            house_make(soup, random, x + 13, y + 13);
        }
}

/* ---- track ---------------------------------------------------------------------------------- */

static void track_make(struct soup *soup, size_t triangles, struct random *random)
{
    enum { LANES = 12 };
    struct waves ground = waves_make(random);
    size_t parts = triangles / (2 * LANES);
    double length = 2.0 * (double)parts, radius = length / TURN / 2.2;
    double a = random_in(random, 0, TURN), b = random_in(random, 0, TURN);

    for (size_t i = 0; i < parts; i++)
        for (int lane = 0; lane <= LANES; lane++) {
            double t = TURN * (double)i / (double)parts;
            double r = radius * (1 + 0.35 * sin(3 * t + a) + 0.2 * sin(7 * t + b));
            double side = (lane - LANES / 2) * 1.5, bank = 0.06 * side * sin(5 * t);
            double x = (r + side) * cos(t), y = (r + side) * sin(2 * t) * 0.8;

            vertex(soup, x, y, 0.2 * waves_at(&ground, x / 4, y / 4) + bank + 6 * sin(t));
        }
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint32_t v = i * (LANES + 1) + lane;
            uint32_t w = (uint32_t)((i + 1) % parts) * (LANES + 1) + lane;

            quad(soup, v, v + 1, w + 1, w);
        }
}

/* ---- soup ----------------------------------------------------------------------------------- */

static void soup_make(struct soup *soup, size_t triangles, struct random *random)
{
    double width = sqrt((double)triangles) * 2;

    for (size_t i = 0; i < triangles; i++) {
        double x = random_in(random, 0, width), y = random_in(random, 0, width);
        double z = random_in(random, 0, 40), size = random_in(random, 0.5, 5);
        uint32_t v[3];

        for (int k = 0; k < 3; k++)
            v[k] =
                vertex(soup, x + random_in(random, -size, size), y + random_in(random, -size, size),
                       z + random_in(random, -size, size) * 0.5);
        soup_polygon(soup, v, 3);
    }
}

void mesh_scene_make(enum mesh_scene scene, size_t triangles, uint64_t seed, struct soup *soup)
{
    struct random random = {seed};

    switch (scene) {
    case MESH_SCENE_HILLS:
        hills_make(soup, triangles, &random);
        break;
    case MESH_SCENE_TOWN:
        town_make(soup, triangles, &random);
        break;
    case MESH_SCENE_TRACK:
        track_make(soup, triangles, &random);
        break;
    default:
        soup_make(soup, triangles, &random);
        break;
    }
}
