/*
 * Meshes of real files: a dungeon against heights that were worked out by others' code
 * (recast_dungeon.oracle.csv, described in the data's SOURCES.md), and every mesh of the set
 * against brute force. Skipped, with the reason, without the data.
 */
#include "terrain/mesh/mesh.h"

#include "support/mesh_oracle.h"
#include "support/test_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct vec3 down = {0, 0, -1};

static struct mesh *load(const char *file, struct soup *soup)
{
    struct mesh_options options = {.gravity = down};
    struct mesh_import import;
    struct err err;

    if (!soup_read(soup, file, true)) {
        print_message("%s is absent: set KOTA_TEST_DATA or put the data at ../shared/data\n", file);
        skip();
    }
    struct polygon_soup view = soup_view(soup);
    struct mesh *mesh = mesh_create(&view, &options, &import, &err);

    if (mesh == NULL || !mesh_validate(mesh, &err))
        fail_msg("%s: %s", file, err.msg);
    return mesh;
}

/* ---- the dungeon's oracle ------------------------------------------------------------------- */

enum { HEIGHTS_MAX = 64 };

struct oracle_line {
    double x, z; /* of the file, Y up */
    int is_stable, hits;
    double heights[HEIGHTS_MAX]; /* from high to low */
};

static bool line_read(FILE *file, struct oracle_line *out)
{
    char line[4096], *at = line;
    int used = 0, found = 0;

    if (fgets(line, sizeof line, file) == NULL)
        return false;
    if (sscanf(line, "%lf,%lf,%d,%d,%n", &out->x, &out->z, &out->is_stable, &out->hits, &used) != 4)
        fail_msg("the oracle has the line %s", line);
    for (at += used; found < HEIGHTS_MAX && *at != '\0' && *at != '\n' && *at != '\r'; found++) {
        out->heights[found] = strtod(at, &at);
        at += strcspn(at, ";\n");
        at += *at == ';';
    }
    if (found != out->hits)
        fail_msg("the oracle says %d hits and lists %d: %s", out->hits, found, line);
    return true;
}

/* All heights from above; then all from below, ceiling by ceiling. */
static void line_check(const struct mesh *mesh, const struct oracle_line *want)
{
    struct vec3 at = {want->x, -want->z, 100};
    struct mesh_contact c;
    const double tolerance = 1e-4; /* the oracle prints six digits of a steep floor's height */

    for (int i = 0; i < want->hits; i++) {
        if (!mesh_floor(mesh, at, 0, &c))
            fail_msg("(%g, %g): hit %d of %d is missing", want->x, want->z, i, want->hits);
        if (!(fabs(c.point.z - want->heights[i]) <= tolerance))
            fail_msg("(%g, %g): hit %d is at %.9g, expected %.9g", want->x, want->z, i, c.point.z,
                     want->heights[i]);
        at.z = c.point.z - 2e-5;
    }
    if (mesh_floor(mesh, at, 0, &c))
        fail_msg("(%g, %g): hit %d of %d at %.9g", want->x, want->z, want->hits, want->hits,
                 c.point.z);
    at.z = -100;
    for (int i = want->hits; i-- > 0;) {
        if (!mesh_ceiling(mesh, at, 0, 0, &c) || !(fabs(c.point.z - want->heights[i]) <= tolerance))
            fail_msg("(%g, %g): ceiling %d is wrong", want->x, want->z, i);
        at.z = c.point.z + 2e-5;
    }
}

static void the_dungeon_has_the_heights_of_its_oracle(void **state)
{
    const char *path = test_data_path("meshes/recast_dungeon.oracle.csv");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    struct oracle_line want;
    char names[256];
    unsigned checked = 0;

    (void)state;
    if (file == NULL) {
        print_message("meshes/recast_dungeon.oracle.csv is absent\n");
        skip();
    }
    struct soup soup = {0};
    struct mesh *mesh = load("meshes/recast_dungeon.obj", &soup);

    assert_non_null(fgets(names, sizeof names, file));
    while (line_read(file, &want))
        if (want.is_stable) {
            line_check(mesh, &want);
            checked++;
        }
    fclose(file);
    if (checked < 200)
        fail_msg("only %u lines of the oracle are stable", checked);
    mesh_unref(mesh);
    soup_free(&soup);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void compare(const char *file, const struct mesh *mesh, const struct polygon_soup *soup,
                    unsigned points)
{
    struct oracle_crossing *crossings = malloc(soup->polygon_count * sizeof *crossings);
    struct random random = {23};
    struct box3 b = mesh_bounds(mesh);

    assert_non_null(crossings);
    for (unsigned i = 0; i < points; i++) {
        struct vec3 p = {random_in(&random, b.min.x, b.max.x), random_in(&random, b.min.y, b.max.y),
                         random_in(&random, b.min.z, b.max.z)};
        struct mesh_contact c = {.distance_m = NAN};
        bool is_found = mesh_floor(mesh, p, 0, &c), is_known = !is_found;
        double best = -INFINITY;
        uint32_t count = oracle_column(soup, (struct vec3){0, 0, 1}, p, 1e-9, crossings);

        for (uint32_t k = 0; k < count; k++) {
            is_known |= fabs(crossings[k].height + c.distance_m) <= 1e-6;
            if (!crossings[k].is_border && crossings[k].height < -1e-9)
                best = fmax(best, crossings[k].height);
        }
        if (!is_known || (is_found ? -c.distance_m < best - 1e-6 : isfinite(best)))
            fail_msg("%s: floor of (%.17g %.17g %.17g) at %.17g, brute force %.17g", file, p.x, p.y,
                     p.z, is_found ? p.z - c.distance_m : NAN, p.z + best);
    }
    free(crossings);
}

static void floors_of_all_meshes_agree_with_brute_force(void **state)
{
    static const char *const files[] = {
        "meshes/recast_dungeon.obj",
        "meshes/gazebo_parking_garage.obj",
        "meshes-sharealike/torcs_g-track-2.obj",
        "meshes-sharealike/sauerbraten_fdm6.obj",
        "objects/spot_low_resolution.obj",
        "objects/cardboard_box.obj",
    };
    (void)state;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct soup soup = {0};
        struct mesh *mesh = load(files[i], &soup);
        struct polygon_soup view = soup_view(&soup);

        compare(files[i], mesh, &view, 400);
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void quads_of_the_cardboard_box_stay_quads(void **state)
{
    struct soup soup = {0};
    struct mesh *mesh = load("objects/cardboard_box.obj", &soup);
    struct mesh_stats stats;

    (void)state;
    mesh_stats(mesh, &stats);
    assert_int_equal(stats.polygons, 16);
    mesh_unref(mesh);
    soup_free(&soup);
}

static void a_real_terrain_stays_within_qs_average_of_tests(void **state)
{
    struct soup soup = {0};
    struct mesh *mesh = load("meshes-sharealike/torcs_g-track-2.obj", &soup);
    struct mesh_stats stats;

    (void)state;
    mesh_stats(mesh, &stats);
    assert_true(stats.average_tests < 7.8);
    mesh_unref(mesh);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dungeon_has_the_heights_of_its_oracle),
        cmocka_unit_test(floors_of_all_meshes_agree_with_brute_force),
        cmocka_unit_test(quads_of_the_cardboard_box_stay_quads),
        cmocka_unit_test(a_real_terrain_stays_within_qs_average_of_tests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
