/*
 * Heights of real terrain: random points, and a path of short steps, against the vertical ray of
 * Embree and Bullet on the same triangles (field_peers.h), and random points against GDAL's
 * gdallocationinfo, which gives the nearest sample.
 *
 * One thread, interleaved rounds, medians of the thread's CPU time. Before it is timed, each is
 * asked for all points once. All answers are stored and compared while timing; those of the peers
 * within a 10000th of the relief, for they work with 24 bits; a point outside of all their
 * triangles by rounding counts as different, and more than 1 of 1000 ends the program.
 *
 * GDAL reads the map as a raw float file and the points from a pipe, one process for all of them;
 * what a process for one point takes is taken off. Its answers must be ours for `nearest`.
 */
#include "tests/bench/bench_map.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { POINTS = 1 << 17, ROUNDS = 7, SETS = 2, BATCH = 256 };
enum { OWN_BATCH, OWN_ONE, OWN_POINT, BULLET, EMBREE, WAYS };

#define STEP_CELLS 0.37

static const char *const set_names[SETS] = {"random", "along a path"};

struct scene {
    struct field_map map;
    struct heightfield *field;
    float (*points)[2]; /* [POINTS], of one set */
    const struct field_peer *peer[WAYS];
    void *peer_scene[WAYS];
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_height_peers: %s\n", what);
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *block = malloc(bytes);

    if (block == NULL)
        fail("no memory");
    return block;
}

/* Inside of the field by half a cell, so that the peers' rounding does not lead out of it. */
static void points_make(struct scene *scene, int set)
{
    struct random random = {scene->map.side};
    double spacing_m = (double)scene->map.spacing_m;
    double low = 0.5 * spacing_m, high = (scene->map.side - 1.5) * spacing_m;
    double x = (low + high) / 2, y = x, angle = 1;

    for (size_t i = 0; i < POINTS; i++) {
        if (set == 0) {
            x = random_in(&random, low, high);
            y = random_in(&random, low, high);
        } else {
            angle += random_in(&random, -0.05, 0.05);
            x += STEP_CELLS * spacing_m * cos(angle);
            y += STEP_CELLS * spacing_m * sin(angle);
            if (x < low || x > high || y < low || y > high) {
                x = fmin(fmax(x, low), high);
                y = fmin(fmax(y, low), high);
                angle += 2;
            }
        }
        scene->points[i][0] = (float)x;
        scene->points[i][1] = (float)y;
    }
}

/* ---- ways to ask ----------------------------------------------------------------------------- */

static struct vec2 point_at(const struct scene *scene, size_t i)
{
    return (struct vec2){(double)scene->points[i][0], (double)scene->points[i][1]};
}

static void ask_batch(const struct scene *scene, enum interpolation mode, float *z)
{
    struct vec2 at[BATCH];
    struct ground_height out[BATCH];

    for (size_t first = 0; first < POINTS; first += BATCH) {
        for (size_t i = 0; i < BATCH; i++)
            at[i] = point_at(scene, first + i);
        heightfield_heights(scene->field, at, BATCH, mode, out);
        for (size_t i = 0; i < BATCH; i++)
            z[first + i] = (float)out[i].height_m;
    }
}

static void ask_one(const struct scene *scene, float *z)
{
    for (size_t i = 0; i < POINTS; i++)
        z[i] =
            (float)heightfield_interpolate(scene->field, point_at(scene, i), INTERPOLATION_TRIANGLE)
                .height_m;
}

/* With normal, cell and triangle. */
static void ask_point(const struct scene *scene, float *z)
{
    for (size_t i = 0; i < POINTS; i++) {
        struct ground_point out;

        heightfield_height(scene->field, point_at(scene, i), INTERPOLATION_TRIANGLE, &out);
        z[i] = (float)out.height_m;
    }
}

static void ask(const struct scene *scene, int way, float *z)
{
    switch (way) {
    case OWN_BATCH:
        ask_batch(scene, INTERPOLATION_TRIANGLE, z);
        break;
    case OWN_ONE:
        ask_one(scene, z);
        break;
    case OWN_POINT:
        ask_point(scene, z);
        break;
    default:
        scene->peer[way]->heights(scene->peer_scene[way], &scene->points[0][0], POINTS, z);
    }
}

static unsigned differences(const struct scene *scene, const float *z, const float *want)
{
    float slack = 1e-4f * (scene->map.max_m - scene->map.min_m);
    unsigned count = 0;

    for (size_t i = 0; i < POINTS; i++)
        count += !(fabsf(z[i] - want[i]) <= slack);
    if (count > POINTS / 1000)
        fail("a peer's heights differ");
    return count;
}

struct asking {
    const struct scene *scene;
    float *z[WAYS];
};

static void ask_again(void *context, unsigned way)
{
    const struct asking *a = context;

    if (way < BULLET || a->scene->peer_scene[way] != NULL)
        ask(a->scene, (int)way, a->z[way]);
}

static void rows_print(const struct scene *scene, const char *set,
                       const struct bench_time times[WAYS])
{
    static const double asked[WAYS] = {[BULLET] = 15, [EMBREE] = 50};
    static const char *const how[] = {"in a batch", "one by one", "with normal and cell"};
    bool is_random = set == set_names[0];

    for (int peer = BULLET; peer < WAYS; peer++)
        for (int own = OWN_BATCH; own <= OWN_POINT; own++) {
            char work[128];
            double wanted = own == OWN_POINT || (peer == EMBREE && !is_random) ? 0 : asked[peer];

            if (scene->peer_scene[peer] == NULL)
                continue;
            snprintf(work, sizeof work, "height, %s, %u², %s", set, scene->map.side, how[own]);
            bench_row_times("heights", work, scene->peer[peer]->name(), &times[own], &times[peer],
                            wanted, NULL);
        }
}

static void set_run(struct scene *scene, int set)
{
    struct asking asking = {.scene = scene};
    struct bench_race race = {WAYS, ROUNDS, 1, POINTS, ask_again, &asking};
    struct bench_time times[WAYS];
    float **z = asking.z;

    for (int way = 0; way < WAYS; way++)
        z[way] = allocate(POINTS * sizeof(float));
    points_make(scene, set);
    bench_in_turns(&race, times);
    printf("  %-13s", set_names[set]);
    for (int way = 0; way < WAYS; way++) {
        if (way >= BULLET && scene->peer_scene[way] == NULL)
            continue;
        printf(" %7.1f ns (%u)", 1e9 * times[way].median_s,
               way == OWN_ONE ? 0 : differences(scene, z[way], z[OWN_ONE]));
    }
    printf("\n");
    rows_print(scene, set_names[set], times);
    for (int way = 0; way < WAYS; way++)
        free(z[way]);
}

/* ---- GDAL ------------------------------------------------------------------------------------ */

/* The map as ESRI's raw float raster, which has its first row in the north. */
static void gdal_write(const struct scene *scene, const char *folder)
{
    uint32_t side = scene->map.side;
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/map.flt", folder);
    file = fopen(path, "wb");
    for (uint32_t row = side; file != NULL && row-- > 0;)
        fwrite(scene->map.heights_m + (size_t)row * side, sizeof(float), side, file);
    if (file == NULL || fclose(file) != 0)
        fail("cannot write the map for GDAL");
    snprintf(path, sizeof path, "%s/map.hdr", folder);
    file = fopen(path, "w");
    if (file == NULL)
        fail("cannot write the map for GDAL");
    fprintf(file,
            "ncols %u\nnrows %u\nxllcorner 0\nyllcorner 0\ncellsize 1\nNODATA_value -9999\n"
            "byteorder LSBFIRST\n",
            side, side);
    fclose(file);
    snprintf(path, sizeof path, "%s/points", folder);
    file = fopen(path, "w");
    if (file == NULL)
        fail("cannot write the points for GDAL");
    for (size_t i = 0; i < POINTS; i++) {
        struct vec2 at = point_at(scene, i);
        double spacing_m = (double)scene->map.spacing_m;

        fprintf(file, "%.9g %.9g\n", at.x / spacing_m + 0.5, side - at.y / spacing_m - 0.5);
    }
    fclose(file);
}

/* CPU seconds of one process for the first `count` points. */
static double gdal_seconds(const char *folder, size_t count)
{
    struct rusage before, after;
    char command[1024];

    getrusage(RUSAGE_CHILDREN, &before);
    snprintf(command, sizeof command,
             "head -n %zu %s/points >%s/some && gdallocationinfo -valonly %s/map.flt <%s/some "
             ">%s/out",
             count, folder, folder, folder, folder, folder);
    if (system(command) != 0)
        return NAN;
    getrusage(RUSAGE_CHILDREN, &after);
    return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
           (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
           1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
           1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
}

/* Places half way between two samples may be rounded to either; there are few. */
static void gdal_compare(const char *folder, const float *z)
{
    char path[256];
    unsigned wrong = 0;
    double value;
    FILE *file;

    snprintf(path, sizeof path, "%s/out", folder);
    file = fopen(path, "r");
    for (size_t i = 0; i < POINTS; i++) {
        if (file == NULL || fscanf(file, "%lf", &value) != 1)
            fail("GDAL gave too few answers");
        wrong += !(fabs(value - (double)z[i]) <= 1e-3);
    }
    fclose(file);
    printf("  GDAL: %u of %d answers differ\n", wrong, POINTS);
    if (wrong > POINTS / 1000)
        fail("GDAL's heights differ");
}

static void gdal_run(struct scene *scene)
{
    char folder[] = "/tmp/kota-bench-XXXXXX", command[64], work[64], note[64];
    float *z = allocate(POINTS * sizeof *z);
    double start, own_s;

    if (system("command -v gdallocationinfo >/dev/null") != 0) {
        printf("  GDAL skipped: gdal-bin is not installed (sh deploy/install-deps.sh bench)\n");
        free(z);
        return;
    }
    if (mkdtemp(folder) == NULL)
        fail("no temporary folder");
    points_make(scene, 0);
    gdal_write(scene, folder);
    double one_s = gdal_seconds(folder, 1), all_s = gdal_seconds(folder, POINTS);

    ask_batch(scene, INTERPOLATION_NEAREST, z);
    start = bench_thread_s();
    ask_batch(scene, INTERPOLATION_NEAREST, z);
    own_s = bench_thread_s() - start;
    gdal_compare(folder, z);
    snprintf(work, sizeof work, "height, random, %u², nearest", scene->map.side);
    snprintf(note, sizeof note, "%.1f and %.2f M points/s", 1e-6 * POINTS / own_s,
             1e-6 * POINTS / (all_s - one_s));
    bench_row("heights", work, "GDAL gdallocationinfo", (all_s - one_s) / own_s, 0, note);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0)
        fail("cannot remove the temporary folder");
    free(z);
}

/* With an argument only the map of that side. */
int main(int argc, char **argv)
{
    static const uint32_t sides[] = {1024, 4096};

    printf(
        "\nHeights of real terrain, ns a point: a batch, one by one, with normal and cell, Bullet, "
        "Embree\n(answers that differ)\n");
    for (int i = 0; i < 2; i++) {
        if (argc > 1 && (uint32_t)atoi(argv[1]) != sides[i])
            continue;

        struct scene scene = {.points = allocate(sizeof(float[POINTS][2]))};

        if (!bench_map(sides[i], &scene.map))
            return 0;
        scene.field = bench_map_field(&scene.map);
        scene.peer[BULLET] = &field_peer_bullet;
        scene.peer[EMBREE] = &field_peer_embree;
        for (int way = BULLET; way < WAYS; way++)
            if (scene.peer[way] != NULL)
                scene.peer_scene[way] = scene.peer[way]->create(&scene.map);
        printf("\n  %u²\n", sides[i]);
        for (int set = 0; set < SETS; set++)
            set_run(&scene, set);
        gdal_run(&scene);
        for (int way = BULLET; way < WAYS; way++)
            if (scene.peer_scene[way] != NULL)
                scene.peer[way]->destroy(scene.peer_scene[way]);
        heightfield_unref(scene.field);
        free((float *)(uintptr_t)scene.map.heights_m);
        free(scene.points);
    }
    return 0;
}
