/*
 * The demo world's village and garden, read back from their OBJ text: shapes that a mesh promises,
 * and everything that docs/demo-world.md says about places. The numbers here are the page's, not
 * the generator's.
 */
#include "base/content_hash.h"
#include "deploy/demo/demo.h"
#include "deploy/demo/locale_file.h"
#include "deploy/demo/village.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { MESH_CORNERS_MAX = 1024, MESH_POLYGONS_MAX = 1024, FACE_CORNERS_MAX = 8 };

#define FLAT_M 1e-9

struct face {
    int count, corner[FACE_CORNERS_MAX];
    struct vec3 normal; /* unit */
};

struct mesh {
    const char *name;
    int corners, faces;
    struct vec3 at[MESH_CORNERS_MAX];
    struct face face[MESH_POLYGONS_MAX];
};

static const struct {
    uint32_t locale, layer;
    const char *name;
    uint64_t golden;
} layers[] = {
    {0, 0, "village ground", 0x95df73398f1cb1f0}, {0, 1, "village bridge", 0x44e4f0e5ee5d33b5},
    {0, 2, "village houses", 0xa320206a1f0e0a2a}, {0, 3, "village ceiling", 0x20b0ce2354ff3e5c},
    {1, 0, "garden ground", 0x35928a90a2fbf244},
};
enum { VILLAGE, BRIDGE, HOUSES, CEILING, GARDEN, LAYERS };

static struct mesh meshes[LAYERS];

/* ---- reading ------------------------------------------------------------------------------ */

static char *layer_text(uint32_t i, size_t *length)
{
    const struct village_locale *locale = &village_locales[layers[i].locale];
    struct err err = {.code = ERR_OK};
    char *text;

    if (village_layer_obj(locale, &locale->layers[layers[i].layer], &text, length, &err))
        fail_msg("%s: %s", layers[i].name, err.msg);
    return text;
}

static struct vec3 face_at(const struct mesh *mesh, const struct face *face, int i)
{
    return mesh->at[face->corner[(i + face->count) % face->count]];
}

static struct vec3 face_normal(const struct mesh *mesh, const struct face *face)
{
    struct vec3 sum = {0, 0, 0}, first = face_at(mesh, face, 0);

    for (int i = 1; i + 1 < face->count; i++)
        sum = vec3_add(sum, vec3_cross(vec3_sub(face_at(mesh, face, i), first),
                                       vec3_sub(face_at(mesh, face, i + 1), first)));
    return vec3_unit(sum);
}

static void read_corner(struct mesh *mesh, const char *line)
{
    struct vec3 at = {0, 0, 0};
    int used = 0;

    if (mesh->corners == MESH_CORNERS_MAX ||
        sscanf(line, "v %lf %lf %lf%n", &at.x, &at.y, &at.z, &used) != 3 || line[used])
        fail_msg("%s: not a corner: %s", mesh->name, line);
    mesh->at[mesh->corners++] = at;
}

static void read_face(struct mesh *mesh, const char *line)
{
    struct face face = {0};
    int used, number;

    for (const char *rest = line + 1; *rest; rest += used) {
        if (face.count == FACE_CORNERS_MAX || sscanf(rest, " %d%n", &number, &used) != 1 ||
            number < 1 || number > mesh->corners)
            fail_msg("%s: not a face: %s", mesh->name, line);
        face.corner[face.count++] = number - 1;
    }
    if (face.count < 3 || mesh->faces == MESH_POLYGONS_MAX)
        fail_msg("%s: a face of %d corners: %s", mesh->name, face.count, line);
    face.normal = face_normal(mesh, &face);
    mesh->face[mesh->faces++] = face;
}

static void read_mesh(uint32_t i)
{
    struct mesh *mesh = &meshes[i];
    size_t length;
    char *raw = layer_text(i, &length), *text = strndup(raw, length), *rest = text, *line;

    free(raw);
    assert_non_null(text);
    *mesh = (struct mesh){.name = layers[i].name};
    while ((line = strsep(&rest, "\n"))) {
        if (!strncmp(line, "v ", 2))
            read_corner(mesh, line);
        else if (!strncmp(line, "f ", 2))
            read_face(mesh, line);
        else if (*line && *line != '#' && strncmp(line, "g ", 2))
            fail_msg("%s: an unknown line: %s", mesh->name, line);
    }
    free(text);
}

static int read_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LAYERS; i++)
        read_mesh(i);
    return 0;
}

/* ---- asking ------------------------------------------------------------------------------- */

static bool is_floor(const struct face *face)
{
    return fabs(face->normal.z) > FLAT_M;
}

/* Whether a face lies over or under (x, y), its edges included, and its z there. */
static bool face_z(const struct mesh *mesh, const struct face *face, double x, double y, double *z)
{
    struct vec3 first = face_at(mesh, face, 0), n = face->normal;

    if (!is_floor(face))
        return false;
    for (int i = 0; i < face->count; i++) {
        struct vec3 a = face_at(mesh, face, i), b = face_at(mesh, face, i + 1);
        double side = (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);

        if (side * n.z < 0)
            return false;
    }
    *z = first.z - (n.x * (x - first.x) + n.y * (y - first.y)) / n.z;
    return true;
}

/* The highest floor of one layer at or below z; NaN when there is none. */
static double floor_below(const struct mesh *mesh, double x, double y, double z)
{
    double found = NAN, at;

    for (int i = 0; i < mesh->faces; i++)
        if (face_z(mesh, &mesh->face[i], x, y, &at) && at <= z + FLAT_M && !(at <= found))
            found = at;
    return found;
}

/* What a walker in the village stands on: the highest floor of its ground layers. */
static double village_floor(double x, double y, double z)
{
    double found = NAN;

    for (int i = VILLAGE; i <= HOUSES; i++)
        found = fmax(found, floor_below(&meshes[i], x, y, z)); /* fmax passes NaN over */
    return found;
}

/* The first t in 0..1 where the segment meets a face of the layer; 2 when it meets none. */
static double segment_hit(const struct mesh *mesh, struct vec3 from, struct vec3 to)
{
    struct vec3 d = vec3_sub(to, from);
    double first = 2;

    for (int k = 0; k < mesh->faces; k++) {
        const struct face *face = &mesh->face[k];
        double t = vec3_dot(vec3_sub(face_at(mesh, face, 0), from), face->normal) /
                   vec3_dot(d, face->normal);
        struct vec3 at = vec3_add(from, vec3_scale(d, t));
        bool inside = t >= 0 && t <= 1;

        for (int i = 0; i < face->count && inside; i++) {
            struct vec3 a = face_at(mesh, face, i), b = face_at(mesh, face, i + 1);

            inside = vec3_dot(vec3_cross(vec3_sub(b, a), vec3_sub(at, a)), face->normal) >= -FLAT_M;
        }
        if (inside && t < first)
            first = t;
    }
    return first;
}

static void expect_near(const char *what, double got, double want)
{
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= FLAT_M))
        fail_msg("%s is %.17g, not %.17g", what, got, want);
}

static void expect_floor(double x, double y, double z, double want)
{
    char what[96];

    snprintf(what, sizeof what, "the village's floor below %g, %g, %g", x, y, z);
    expect_near(what, village_floor(x, y, z), want);
}

/* ---- shapes ------------------------------------------------------------------------------- */

static void every_polygon_is_convex_and_flat(void **state)
{
    (void)state;
    for (int m = 0; m < LAYERS; m++)
        for (int k = 0; k < meshes[m].faces; k++) {
            const struct face *face = &meshes[m].face[k];

            for (int i = 0; i < face->count; i++) {
                struct vec3 a = face_at(&meshes[m], face, i - 1), b = face_at(&meshes[m], face, i),
                            c = face_at(&meshes[m], face, i + 1);
                double off = vec3_dot(vec3_sub(b, face_at(&meshes[m], face, 0)), face->normal);
                double turn = vec3_dot(vec3_cross(vec3_sub(b, a), vec3_sub(c, b)), face->normal);

                if (!(fabs(off) <= FLAT_M))
                    fail_msg("%s: face %d is off its plane by %g", meshes[m].name, k, off);
                if (!(turn > 1e-6))
                    fail_msg("%s: face %d does not turn left at corner %d (%g)", meshes[m].name, k,
                             i, turn);
            }
        }
}

static void floors_and_ceilings_face_up(void **state)
{
    (void)state;
    for (int m = 0; m < LAYERS; m++)
        for (int k = 0; k < meshes[m].faces; k++)
            if (!(meshes[m].face[k].normal.z >= 0))
                fail_msg("%s: face %d faces down", meshes[m].name, k);
}

static void no_two_corners_of_a_file_are_the_same(void **state)
{
    (void)state;
    for (int m = 0; m < LAYERS; m++)
        for (int i = 0; i < meshes[m].corners; i++)
            for (int k = 0; k < i; k++)
                if (!(vec3_length(vec3_sub(meshes[m].at[i], meshes[m].at[k])) > 0.01))
                    fail_msg("%s: corners %d and %d are one place", meshes[m].name, k + 1, i + 1);
}

/* Whether p lies on the edge a, b and is neither end. */
static bool inside_edge(struct vec3 p, struct vec3 a, struct vec3 b)
{
    struct vec3 ab = vec3_sub(b, a), ap = vec3_sub(p, a);
    double along = vec3_dot(ap, ab) / vec3_dot(ab, ab);

    return along > 1e-9 && along < 1 - 1e-9 &&
           vec3_length(vec3_sub(ap, vec3_scale(ab, along))) < 1e-6;
}

static void floors_have_no_t_junctions(void **state)
{
    (void)state;
    for (int m = 0; m < LAYERS; m++) {
        const struct mesh *mesh = &meshes[m];
        bool used[MESH_CORNERS_MAX] = {false};

        for (int k = 0; k < mesh->faces; k++)
            for (int i = 0; i < mesh->face[k].count && is_floor(&mesh->face[k]); i++)
                used[mesh->face[k].corner[i]] = true;
        for (int k = 0; k < mesh->faces; k++)
            for (int i = 0; i < mesh->face[k].count && is_floor(&mesh->face[k]); i++)
                for (int c = 0; c < mesh->corners; c++)
                    if (used[c] && inside_edge(mesh->at[c], face_at(mesh, &mesh->face[k], i),
                                               face_at(mesh, &mesh->face[k], i + 1)))
                        fail_msg("%s: corner %d lies on edge %d of face %d", mesh->name, c + 1, i,
                                 k);
    }
}

/* How often the edge a, b is used in this direction. */
static int edge_uses(const struct mesh *mesh, int a, int b)
{
    int uses = 0;

    for (int k = 0; k < mesh->faces; k++)
        for (int i = 0; i < mesh->face[k].count; i++)
            uses += mesh->face[k].corner[i] == a &&
                    mesh->face[k].corner[(i + 1) % mesh->face[k].count] == b;
    return uses;
}

/* The grounds' open edges: where they are, and how long they are in all. */
static double open_edges_m(const struct mesh *mesh)
{
    double length = 0;

    for (int k = 0; k < mesh->faces; k++)
        for (int i = 0; i < mesh->face[k].count; i++) {
            int a = mesh->face[k].corner[i],
                b = mesh->face[k].corner[(i + 1) % mesh->face[k].count];
            int back = edge_uses(mesh, b, a);

            if (edge_uses(mesh, a, b) != 1 || back > 1)
                fail_msg("%s: the edge %d, %d is used %d and %d times", mesh->name, a + 1, b + 1,
                         edge_uses(mesh, a, b), back);
            if (!back)
                length += hypot(mesh->at[b].x - mesh->at[a].x, mesh->at[b].y - mesh->at[a].y);
        }
    return length;
}

static double ground_area_m2(const struct mesh *mesh)
{
    double twice = 0;

    for (int k = 0; k < mesh->faces; k++)
        for (int i = 0; i < mesh->face[k].count; i++) {
            struct vec3 a = face_at(mesh, &mesh->face[k], i),
                        b = face_at(mesh, &mesh->face[k], i + 1);

            twice += a.x * b.y - a.y * b.x;
        }
    return twice / 2;
}

static void grounds_are_whole_but_for_their_holes(void **state)
{
    double rectangles = 36 + 36 + 36 + 38 + 32 + 36 + 36, tower = 4 + 4 + 4 * sqrt(13);
    double piers = 4 * 8 * 2, hall = 64 - 2 + 60 + 2 * 2 - 2 + 2 * 0.5;

    (void)state;
    expect_near("the village's open edges", open_edges_m(&meshes[VILLAGE]),
                720 + rectangles + tower + piers + hall);
    expect_near("the garden's open edges", open_edges_m(&meshes[GARDEN]),
                560 + 2 * 12 + 2 * 8 + 8 * 8 + 4 * 4 * sqrt(2));
    expect_near("the village's area", ground_area_m2(&meshes[VILLAGE]),
                200 * 160 - (80 + 81 + 80 + 90 + 60 + 80 + 81 + 36) - 2 * 8 * 8 -
                    (20 * 12 - 19 * 11 - 2 * 0.5 + 2 * 4.6875));
    expect_near("the garden's area", ground_area_m2(&meshes[GARDEN]),
                120 * 160 - (12 * 32 + 36 * 8 - 12 * 8 + 4 * 8));
}

/* ---- places ------------------------------------------------------------------------------- */

static void houses_and_piers_and_the_pond_are_holes_in_the_ground(void **state)
{
    static const double inside[][2] = {
        {24, 24},  {55, 40}, {40, 120}, {72, 104},     {176, 80},     {160, 40},    {190, 135},
        {120, 56}, {92, 80}, {108, 80}, {130.25, 104}, {149.75, 104}, {135, 98.25}, {142, 108.5}};
    static const double outside[][2] = {{19.9, 24},  {55, 44.1},  {35.9, 120},
                                        {170.9, 80}, {181.1, 80}, {116, 53.5},
                                        {95, 75.9},  {100, 80},   {140, 98.25}};
    static const double pond[][2] = {{54, 80}, {54, 65}, {54, 95}, {37, 80}, {71, 80}, {61, 85}};
    static const double bank[][2] = {{62, 66}, {46, 94}, {38, 66}, {63, 87.5}, {54, 63.9}};

    (void)state;
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        expect_near("the ground in a hole",
                    floor_below(&meshes[VILLAGE], inside[i][0], inside[i][1], 1e3), NAN);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (isnan(floor_below(&meshes[VILLAGE], outside[i][0], outside[i][1], 1e3)))
            fail_msg("no ground at %g, %g", outside[i][0], outside[i][1]);
    for (size_t i = 0; i < sizeof pond / sizeof *pond; i++)
        if (!isnan(floor_below(&meshes[GARDEN], pond[i][0], pond[i][1], 1e3)))
            fail_msg("ground in the pond at %g, %g", pond[i][0], pond[i][1]);
    for (size_t i = 0; i < sizeof bank / sizeof *bank; i++)
        expect_near("the pond's bank", floor_below(&meshes[GARDEN], bank[i][0], bank[i][1], 1e3),
                    5);
}

static void each_house_stands_where_it_should_and_is_roofed(void **state)
{
    static const struct {
        double x0, x1, y0, y1, roof;
    } houses[] = {
        {171, 181, 77, 83, 7.15625},    {20, 28, 19, 29, 6.578125},    {51, 60, 35, 44, 6.1875},
        {36, 44, 115, 125, 9.84375},    {67, 77, 99, 108, 8.5},        {155, 165, 36, 44, 6.140625},
        {187, 196, 131, 140, 7.578125}, {118, 122, 53, 59, 16.421875}, {130, 150, 98, 110, 8.5},
    };
    const double step = 0.0625;

    (void)state;
    for (size_t i = 0; i < sizeof houses / sizeof *houses; i++)
        for (int corner = 0; corner < 4; corner++) {
            double x = corner & 1 ? houses[i].x1 - step : houses[i].x0 + step;
            double y = corner & 2 ? houses[i].y1 - step : houses[i].y0 + step;
            double out = corner & 2 ? houses[i].y1 + step : houses[i].y0 - step;

            expect_floor(x, y, 100, houses[i].roof);
            expect_floor(x, y, houses[i].roof - 0.5, NAN);
            if (!(village_floor(x, out, 100) < houses[i].roof - 3))
                fail_msg("no ground beside house %zu at %g, %g", i, x, out);
        }
}

/* The page's walk, in the frames of both locales. */
static void the_walk_has_the_floors_that_the_page_says(void **state)
{
    static const struct {
        bool garden;
        double x, y, reach, z;
    } steps[] = {
        {false, 64, 80, 3, 2.5},   {false, 100, 80, 4.5, 4},      {false, 100, 80, 3.9, 2.5},
        {false, 100, 80, 2, -2.5}, {false, 170, 80, 3, 2.1875},   {false, 172, 80, 3, NAN},
        {false, 176, 70, 3, 2},    {false, 199, 80, 3, 1.515625}, {false, 200, 80, 3, 1.5},
        {true, 120, 80, 6, 5.5},   {true, 119, 80, 6, 5.5},       {true, 72, 80, 6, 5},
        {true, 70, 80, 6, NAN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].garden)
            expect_near("the garden's floor",
                        floor_below(&meshes[GARDEN], steps[i].x, steps[i].y, steps[i].reach),
                        steps[i].z);
        else
            expect_floor(steps[i].x, steps[i].y, steps[i].reach, steps[i].z);
    }
    for (double x = 165; x <= 200; x += 0.25) /* around the gate house */
        if (isnan(floor_below(&meshes[VILLAGE], x, 70, 100)))
            fail_msg("no ground at %g, 70", x);
}

static void the_bridge_has_two_floors_six_metres_apart(void **state)
{
    (void)state;
    expect_floor(100, 80, 5, 4);
    expect_floor(100, 80, 0, -2.5);
    expect_near("the arch's crown", floor_below(&meshes[BRIDGE], 100, 80, 3), 2.5);
    for (double x = 96; x <= 104; x += 0.25)
        for (double y = 76; y <= 84; y += 0.5) {
            double deck = floor_below(&meshes[BRIDGE], x, y, 1e3),
                   road = floor_below(&meshes[VILLAGE], x, y, 1e3);

            if (!(deck - road >= 6.25))
                fail_msg("at %g, %g the deck is at %g, the road at %g", x, y, deck, road);
        }
}

static void parapets_and_piers_stop_rays(void **state)
{
    static const struct {
        struct vec3 from, to;
        double t;
    } cases[] = {
        {{100, 74, 4.9375}, {100, 78, 4.9375}, 0.5}, {{100, 82, 4.9375}, {100, 86, 4.9375}, 0.5},
        {{100, 74, 5.0625}, {100, 78, 5.0625}, 2},   {{100, 80, 0}, {92, 80, 0}, 0.5},
        {{100, 80, 0}, {108, 80, 0}, 0.5},           {{100, 60, 0}, {100, 100, 0}, 2},
        {{100, 80, -2}, {100, 80, 7}, 0.5},          {{90, 74, 2}, {90, 78, 2}, 0.5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double t = segment_hit(&meshes[BRIDGE], cases[i].from, cases[i].to);

        if (!(fabs(t - cases[i].t) <= FLAT_M))
            fail_msg("case %zu: the bridge is met at %g, not %g", i, t, cases[i].t);
    }
}

static void the_way_over_the_bridge_has_no_step(void **state)
{
    double last = village_floor(60, 80, 10);

    (void)state;
    for (double x = 60; x <= 171; x += 0.125) {
        double z = village_floor(x, 80, last + 0.25);

        if (!(fabs(z - last) <= 0.03))
            fail_msg("at x %g the floor is at %g, 0.125 m before at %g", x, z, last);
        last = z;
    }
}

static void a_wall_stops_the_way_behind_the_bridge(void **state)
{
    struct vec3 from = {165, 80, 3.5}, to = {177, 80, 3.5};

    (void)state;
    expect_near("the gate house's west wall", segment_hit(&meshes[HOUSES], from, to), 0.5);
    expect_floor(170.75, 80, 4, 2.1640625);
    expect_floor(171.25, 80, 4, NAN);
    expect_floor(176, 80, 20, 7.15625); /* its roof */
}

static void the_hall_is_entered_by_its_doorway_alone(void **state)
{
    (void)state;
    for (double y = 90; y <= 107; y += 0.125)
        expect_floor(140, y, 3.5, 2.5);
    expect_near(
        "a look through the doorway",
        segment_hit(&meshes[HOUSES], (struct vec3){139.5, 90, 4.9}, (struct vec3){139.5, 106, 4.9}),
        2);
    expect_near("a look at the wall",
                segment_hit(&meshes[HOUSES], (struct vec3){135, 90, 4}, (struct vec3){135, 106, 4}),
                0.5);
    expect_near(
        "a look over the doorway",
        segment_hit(&meshes[HOUSES], (struct vec3){140, 90, 5.1}, (struct vec3){140, 106, 5.1}),
        0.5);
    expect_near("the lintel", floor_below(&meshes[CEILING], 140, 98.25, 6), 5);
    expect_floor(135, 98.25, 4, NAN); /* in the wall */
}

static void the_stairs_lead_to_the_upper_storey(void **state)
{
    double last = 2.5;

    (void)state;
    for (int i = 0; i < 16; i++) {
        double x = 140.15625 + 0.3125 * i, z = village_floor(x, 108.5, last + 0.2);

        expect_near("a step's height", z - last, 0.1875);
        last = z;
    }
    expect_near("the upper storey", last, 5.5);
    expect_floor(135, 104, 6, 5.5);
    expect_floor(140, 104, 9, 8.5);
    expect_near("the lower ceiling", floor_below(&meshes[CEILING], 135, 104, 6), 5.25);
    expect_near("the upper ceiling", floor_below(&meshes[CEILING], 135, 104, 9), 8.25);
    expect_near("the ceiling over the stairs", floor_below(&meshes[CEILING], 142, 108.5, 6), NAN);
}

/* ---- border ------------------------------------------------------------------------------- */

static struct vec3 world_of(const struct village_locale *locale, struct vec3 at)
{
    if (locale->turned)
        at = (struct vec3){-at.x, -at.y, at.z};
    return vec3_add(at, locale->translation);
}

static void the_border_is_the_same_corners_in_the_world(void **state)
{
    static const double y_m[] = {0, 16, 32, 48, 64, 76, 84, 96, 112, 128, 144, 160};
    static const double z_m[] = {0.25, 0.75, 1, 1.25, 1.5, 1.5, 1.5, 1.5, 1.5, 2, 2.5, 2.75};
    int found[2] = {0, 0};

    (void)state;
    for (int m = 0; m < 2; m++) {
        const struct mesh *mesh = &meshes[m ? GARDEN : VILLAGE];

        for (int i = 0; i < mesh->corners; i++) {
            struct vec3 at = world_of(&village_locales[m], mesh->at[i]);
            int k = 0;

            if (mesh->at[i].x != (m ? 120 : 200))
                continue;
            while (k < 12 && at.y != 2048 + y_m[k])
                k++;
            if (k == 12 || at.x != 4392 || at.z != 64 + z_m[k])
                fail_msg("%s has a border corner at %.17g, %.17g, %.17g", mesh->name, at.x, at.y,
                         at.z);
            found[m]++;
        }
    }
    assert_int_equal(found[0], 12);
    assert_int_equal(found[1], 12);
    expect_near("the village's border", floor_below(&meshes[VILLAGE], 200, 100, 9), 1.5);
    expect_near("the garden's border", floor_below(&meshes[GARDEN], 120, 60, 9), 5.5);
}

static void grounds_keep_to_their_bounds(void **state)
{
    static const struct {
        int mesh;
        struct box3 bounds;
    } want[] = {
        {VILLAGE, {{0, 0, -2.5}, {200, 160, 3.75}}},
        {BRIDGE, {{88, 76, -2.5}, {112, 84, 5}}},
        {GARDEN, {{0, 0, 3.75}, {120, 160, 7}}},
    };

    (void)state;
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        const struct mesh *mesh = &meshes[want[k].mesh];
        struct box3 box = {mesh->at[0], mesh->at[0]};

        for (int i = 0; i < mesh->corners; i++) {
            struct vec3 at = mesh->at[i];

            box.min =
                (struct vec3){fmin(box.min.x, at.x), fmin(box.min.y, at.y), fmin(box.min.z, at.z)};
            box.max =
                (struct vec3){fmax(box.max.x, at.x), fmax(box.max.y, at.y), fmax(box.max.z, at.z)};
        }
        if (memcmp(&box, &want[k].bounds, sizeof box) != 0)
            fail_msg("%s reaches from %g, %g, %g to %g, %g, %g", mesh->name, box.min.x, box.min.y,
                     box.min.z, box.max.x, box.max.y, box.max.z);
    }
}

/* ---- files -------------------------------------------------------------------------------- */

static void manifests_say_placement_open_sky_and_layers(void **state)
{
    static const struct vec3 at[VILLAGE_LOCALE_COUNT] = {
        {4192, 2048, 64}, {4512, 2208, 60}, {6600, -1400, 600}};

    (void)state;
    for (int m = 0; m < VILLAGE_LOCALE_COUNT; m++) {
        const struct village_locale *locale = &village_locales[m];
        char text[1024];
        int length = village_manifest(text, sizeof text, locale);
        cJSON *json = cJSON_Parse(text), *placement, *list, *item;
        uint32_t count = 0;

        assert_true(length > 0 && (size_t)length < sizeof text);
        if (!json)
            fail_msg("not JSON: %s", text);
        /* the planet has a sky of its own */
        assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(json, "open_sky")),
                         strcmp(locale->id, "planet") != 0);
        placement = cJSON_GetObjectItem(json, "placement");
        list = cJSON_GetObjectItem(placement, "translation");
        expect_near("the translation's x", cJSON_GetArrayItem(list, 0)->valuedouble, at[m].x);
        expect_near("the translation's y", cJSON_GetArrayItem(list, 1)->valuedouble, at[m].y);
        expect_near("the translation's z", cJSON_GetArrayItem(list, 2)->valuedouble, at[m].z);
        list = cJSON_GetObjectItem(placement, "rotation");
        expect_near("the rotation's z", cJSON_GetArrayItem(list, 2)->valuedouble, m == 1);
        expect_near("the rotation's w", cJSON_GetArrayItem(list, 3)->valuedouble, m != 1);
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "layers"))
        {
            char file[64];

            snprintf(file, sizeof file, "%s.obj", locale->layers[count].id);
            assert_string_equal(cJSON_GetObjectItem(item, "file")->valuestring, file);
            assert_string_equal(cJSON_GetObjectItem(item, "role")->valuestring,
                                locale->layers[count].role);
            assert_string_equal(cJSON_GetObjectItem(item, "frame")->valuestring,
                                m == 2 ? "spherical" : "cartesian");
            count++;
        }
        assert_int_equal(count, locale->layer_count);
        cJSON_Delete(json);
    }
}

static uint64_t digest(const char *text, size_t length)
{
    return fnv1a(FNV1A_EMPTY, text, length);
}

/* A change is intended, or a machine or compiler writes something else (test_worldgen_landscape).
 */
static void files_are_the_same_bytes_everywhere(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LAYERS; i++) {
        size_t length;
        char *text = layer_text(i, &length);
        uint64_t got = digest(text, length);

        free(text);
        if (got != layers[i].golden)
            fail_msg("%s: 0x%016llx, not 0x%016llx", layers[i].name, (unsigned long long)got,
                     (unsigned long long)layers[i].golden);
    }
}

static void numbers_in_a_file_read_back_as_the_same_bits(void **state)
{
    const struct vec3 at[] = {{1.0 / 3, 0.1, -0.0}, {1e-9, 123456.789, 5e-324}, {-7, 80, 1e21}};
    struct polygons list = {0};
    struct err err = {.code = ERR_OK};
    size_t length;
    char *text, *line;

    (void)state;
    polygons_add(&list, at, 3);
    assert_int_equal(polygons_obj(&list, "x", false, (struct vec3){0, 0, 0}, &text, &length, &err),
                     ERR_OK);
    line = strstr(text, "\nv ");
    for (int i = 0; i < 3; i++, line = strstr(line + 1, "\nv ")) {
        struct vec3 got;

        assert_int_equal(sscanf(line, " v %lf %lf %lf", &got.x, &got.y, &got.z), 3);
        if (got.x != at[i].x || got.y != at[i].y || got.z != at[i].z || signbit(got.z))
            fail_msg("corner %d: %.17g %.17g %.17g", i, got.x, got.y, got.z);
    }
    if (!strstr(text, "v -7 80 "))
        fail_msg("a short number is written long: %s", text);
    free(text);
    polygons_destroy(&list);
}

static void the_demo_world_holds_both_and_neither_is_a_heightfield(void **state)
{
    char root[] = "/tmp/test_village_XXXXXX", path[256], command[64];
    struct demo_options options = {.size = 128, .seed = 1, .threads = 1, .format = GROUND_F32};
    struct err err = {.code = ERR_OK};

    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/world", root);
    options.dir = path;
    if (demo_write(&options, &err))
        fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < LAYERS; i++) {
        const struct village_locale *locale = &village_locales[layers[i].locale];
        size_t written = 0, length;
        char *text = layer_text(i, &length);
        uint8_t *bytes;

        snprintf(path, sizeof path, "%s/world/%s/%s.obj", root, locale->id,
                 locale->layers[layers[i].layer].id);
        bytes = file_read(path, 1 << 20, &written, &err);
        if (!bytes)
            fail_msg("%s", err.msg);
        assert_int_equal(written, length);
        assert_memory_equal(bytes, text, length);
        free(bytes);
        free(text);
    }
    snprintf(path, sizeof path, "%s/world/village", root);
    assert_null(locale_read(path, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    if (!strstr(err.msg, "ground.obj, is a mesh"))
        fail_msg("the refusal does not say why: %s", err.msg);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_polygon_is_convex_and_flat),
        cmocka_unit_test(floors_and_ceilings_face_up),
        cmocka_unit_test(no_two_corners_of_a_file_are_the_same),
        cmocka_unit_test(floors_have_no_t_junctions),
        cmocka_unit_test(grounds_are_whole_but_for_their_holes),
        cmocka_unit_test(houses_and_piers_and_the_pond_are_holes_in_the_ground),
        cmocka_unit_test(each_house_stands_where_it_should_and_is_roofed),
        cmocka_unit_test(the_walk_has_the_floors_that_the_page_says),
        cmocka_unit_test(parapets_and_piers_stop_rays),
        cmocka_unit_test(the_bridge_has_two_floors_six_metres_apart),
        cmocka_unit_test(the_way_over_the_bridge_has_no_step),
        cmocka_unit_test(a_wall_stops_the_way_behind_the_bridge),
        cmocka_unit_test(the_hall_is_entered_by_its_doorway_alone),
        cmocka_unit_test(the_stairs_lead_to_the_upper_storey),
        cmocka_unit_test(the_border_is_the_same_corners_in_the_world),
        cmocka_unit_test(grounds_keep_to_their_bounds),
        cmocka_unit_test(manifests_say_placement_open_sky_and_layers),
        cmocka_unit_test(files_are_the_same_bytes_everywhere),
        cmocka_unit_test(numbers_in_a_file_read_back_as_the_same_bits),
        cmocka_unit_test(the_demo_world_holds_both_and_neither_is_a_heightfield),
    };

    return cmocka_run_group_tests_name("worldgen_village", tests, read_all, NULL);
}
