/*
 * `make bench-all`: Q's table 4 (Barrus and Waters 1996) on terrains of today beside Q's own
 * numbers, how long 10,000 polygons take, and what a question costs.
 *
 * Q measured Diamond Park: 13,346 polygons of outdoor terrain. Here stand a race track of 13,004
 * triangles and an open map of 9,779. The average of tests is Q's: polygons in a leaf, weighted by
 * the leaves' areas. Q kept no walls; ours count as polygons like all others.
 *
 * Without the shared data there is nothing to measure, and it says so.
 */
#include "support/bench_time.h"
#include "support/random.h"
#include "support/soup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, BUILD_POLYGONS = 10000, QUESTIONS = 1 << 20, TERRAINS = 2, POINTS = 200000 };

static const struct {
    const char *file, *name;
} terrains[TERRAINS] = {
    {"meshes-sharealike/torcs_g-track-2.obj", "race track"},
    {"meshes-sharealike/sauerbraten_fdm6.obj", "open map"},
};

static struct mesh *build(const struct soup *soup, uint32_t max_polygons, uint32_t max_depth,
                          bool keep_axes)
{
    struct polygon_soup view = soup_view(soup);
    struct mesh_options options = {.gravity = {0, 0, -1},
                                   .max_polygons = max_polygons,
                                   .max_depth = max_depth,
                                   .keep_axes = keep_axes};
    struct mesh_import import;
    struct err err;
    struct mesh *mesh = mesh_create(&view, &options, &import, &err);

    if (mesh == NULL) {
        fprintf(stderr, "bench_mesh: %s\n", err.msg);
        exit(1);
    }
    return mesh;
}

static struct mesh_stats stats_of(const struct soup *soup, uint32_t max_polygons,
                                  uint32_t max_depth)
{
    struct mesh *mesh = build(soup, max_polygons, max_depth, true);
    struct mesh_stats stats;

    mesh_stats(mesh, &stats);
    mesh_unref(mesh);
    return stats;
}

static void table_4(const struct soup *soups)
{
    static const struct {
        uint32_t max_polygons, max_depth;
        const char *q;
    } rows[] = {
        {400, 5, "   105   1.1  319.0"},
        {16, 12, "  6394   1.7    9.3"},
        {12, 12, "  9069   1.9    7.2"},
        {8, 14, " 17865   2.6    5.2"},
    };

    printf("\nQ, table 4: nodes, megabytes, average tests\n\n  %-10s %-22s", "max",
           "Q, 13,346 polygons");
    for (int i = 0; i < TERRAINS; i++)
        printf(" %10s, %5zu polygons", terrains[i].name, soups[i].polygon_count);
    printf("\n");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        printf("  %3u / %-4u %-22s", rows[r].max_polygons, rows[r].max_depth, rows[r].q);
        for (int i = 0; i < TERRAINS; i++) {
            struct mesh_stats s = stats_of(&soups[i], rows[r].max_polygons, rows[r].max_depth);

            printf("        %6llu %5.1f %6.1f", (unsigned long long)s.nodes, 1e-6 * (double)s.bytes,
                   s.average_tests);
        }
        printf("\n");
    }
}

/* ---- times ---------------------------------------------------------------------------------- */

static void build_times(const struct soup *soup)
{
    struct soup part = *soup;

    part.polygon_count = BUILD_POLYGONS;
    double times[ROUNDS];

    printf("\nBuilding the first %d polygons of the race track (Q: 2 s; wanted: 20 ms)\n\n",
           BUILD_POLYGONS);
    for (int round = 0; round < ROUNDS; round++) {
        struct polygon_soup view = soup_view(&part);
        struct mesh_options options = {.gravity = {0, 0, -1}};
        struct mesh_import import;
        struct err err;
        double start = bench_now_s();
        struct mesh *mesh = mesh_create(&view, &options, &import, &err);

        times[round] = bench_now_s() - start;
        mesh_unref(mesh);
    }
    printf("  %6.1f ms\n", 1e3 * bench_median(times, ROUNDS));
}

/* Seconds a question; all points of a list, so that the generator costs nothing. */
static double floor_time(const struct mesh *mesh, const struct vec3 *points, double *sum)
{
    double start = bench_now_s();

    for (int i = 0; i < QUESTIONS; i++) {
        struct mesh_contact contact;

        if (mesh_floor(mesh, points[i], 0, &contact))
            *sum += contact.point.z;
    }
    return (bench_now_s() - start) / QUESTIONS;
}

static double ray_time(const struct mesh *mesh, const struct vec3 *points, double *sum)
{
    double start = bench_now_s();

    for (int i = 0; i + 1 < QUESTIONS; i += 2) {
        struct ray ray = {points[i], vec3_sub(points[i + 1], points[i]), INFINITY};
        struct mesh_hit hit;

        if (mesh_ray(mesh, &ray, RAY_CLOSEST, &hit))
            *sum += hit.t;
    }
    return (bench_now_s() - start) / (QUESTIONS / 2);
}

static void question_times(const struct soup *soups)
{
    struct vec3 *points = malloc(QUESTIONS * sizeof *points);

    if (points == NULL)
        exit(1);
    printf("\nOne question, points uniform over the bounds (Q: 19 µs, 13 µs when there is "
           "nothing)\n\n  %-12s %12s %12s\n",
           "", "floor", "ray");
    for (int i = 0; i < TERRAINS; i++) {
        struct mesh *mesh = build(&soups[i], 0, 0, false);
        struct box3 b = mesh_bounds(mesh);
        struct random random = {3};
        double floors[ROUNDS], rays[ROUNDS], sum = 0;

        for (int k = 0; k < QUESTIONS; k++)
            points[k] = (struct vec3){random_in(&random, b.min.x, b.max.x),
                                      random_in(&random, b.min.y, b.max.y),
                                      random_in(&random, b.min.z, b.max.z + 50)};
        for (int round = 0; round < ROUNDS; round++) {
            floors[round] = floor_time(mesh, points, &sum);
            rays[round] = ray_time(mesh, points, &sum);
        }
        printf("  %-12s %9.0f ns %9.0f ns%s\n", terrains[i].name,
               1e9 * bench_median(floors, ROUNDS), 1e9 * bench_median(rays, ROUNDS),
               isfinite(sum) ? "" : " !");
        mesh_unref(mesh);
    }
    free(points);
}

/* A valley of 1,200 m by 150 m in 24,000 triangles, lying askew by 30 degrees. */
static void valley_init(struct soup *soup)
{
    enum { LONG = 240, WIDE = 50 };
    uint32_t row[2][LONG + 1];

    for (uint32_t j = 0; j <= WIDE; j++)
        for (uint32_t i = 0; i <= LONG; i++) {
            double x = 5.0 * i, y = 3.0 * j;
            double z = 0.05 * x + 0.01 * y * y;

            row[j % 2][i] = soup_vertex(soup, (struct vec3){0.8660254037844386 * x - 0.5 * y,
                                                            0.5 * x + 0.8660254037844386 * y, z});
            if (j > 0 && i > 0) {
                const uint32_t *low = row[(j + 1) % 2], *high = row[j % 2];
                const uint32_t a[3] = {low[i - 1], low[i], high[i]};
                const uint32_t b[3] = {low[i - 1], high[i], high[i - 1]};

                soup_polygon(soup, a, 3);
                soup_polygon(soup, b, 3);
            }
        }
}

static double floor_seconds(const struct mesh *mesh, double *sum)
{
    struct random random = {13};
    double start = bench_now_s();

    for (int i = 0; i < POINTS; i++) {
        double x = random_in(&random, 0, 1200), y = random_in(&random, 0, 150);
        struct vec3 at = {0.8660254037844386 * x - 0.5 * y, 0.5 * x + 0.8660254037844386 * y, 200};
        struct mesh_contact contact;

        if (mesh_floor(mesh, at, 0, &contact))
            *sum += contact.point.z;
    }
    return (bench_now_s() - start) / POINTS;
}

/* Q's other direction: X-Y turned to the terrain's own direction. */
static void axes_table(void)
{
    struct soup soup = {0};
    struct mesh *mesh[2];
    double times[2][ROUNDS], sums[2] = {0};

    valley_init(&soup);
    for (int turned = 0; turned < 2; turned++)
        mesh[turned] = build(&soup, 12, 12, !turned);
    for (int round = 0; round < ROUNDS; round++)
        for (int turned = 0; turned < 2; turned++)
            times[turned][round] = floor_seconds(mesh[turned], &sums[turned]);
    printf("\nA valley of 24,000 triangles, 8 times longer than wide, askew; 12 / 12 "
           "(sums of heights differ by %.1g)\n\n"
           "  %-30s %8s %12s %18s\n",
           fabs(sums[0] - sums[1]) / fabs(sums[0]), "", "nodes", "bytes", "time of a floor");
    double base = bench_median(times[0], ROUNDS);

    for (int turned = 0; turned < 2; turned++) {
        struct mesh_stats stats;

        mesh_stats(mesh[turned], &stats);
        printf("  %-30s %8llu %12llu %18.2f\n",
               turned ? "turned to its own direction" : "axes kept",
               (unsigned long long)stats.nodes, (unsigned long long)stats.bytes,
               turned ? bench_median(times[1], ROUNDS) / base : 1.0);
        mesh_unref(mesh[turned]);
    }
    soup_free(&soup);
}

int main(void)
{
    struct soup soups[TERRAINS] = {0};

    axes_table();
    for (int i = 0; i < TERRAINS; i++)
        if (!soup_read(&soups[i], terrains[i].file, true)) {
            printf("\nbench_mesh: %s is absent, nothing measured\n", terrains[i].file);
            return 0;
        }
    table_4(soups);
    build_times(&soups[0]);
    question_times(soups);
    for (int i = 0; i < TERRAINS; i++)
        soup_free(&soups[i]);
    return 0;
}
