/*
 * Rays over real terrain against general collision detection: Embree's triangles (rtcIntersect1,
 * robust) and Bullet's heightfield, in one thread, on the same surface and rays, in turns, medians.
 *
 *   picks    a camera somewhere over the ground, a ray through one of its pixels; another camera
 *            for each ray
 *   random   from a point of the map's box to another
 *   grazing  across the map, from border to border, as low as misses: over the highest ridge on
 *            the way by half a metre
 *
 * Every answer of a peer is compared with ours: both miss, or both hit at the same distance. The
 * peers work with 24 bits; where a ray passes an edge or grazes they may differ, and how often is
 * told. A set whose answers differ for more than 1 of 200 rays ends the program.
 *
 * Rays are asked by one call for all, behind a pointer, and all answers are stored and looked at,
 * so that none can be lifted out of its loop.
 */
#include "tests/bench/bench_map.h"
#include "tests/bench/field_peers.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/random.h"
#include "terrain/field_ray/ray.h"
#include "terrain/kernels/simd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RAYS = 1 << 14, ROUNDS = 11, SETS = 3, OURS = 3, WAYS_MAX = 5 };

static const char *const set_names[SETS] = {"picks", "random", "grazing"};

struct scene {
    struct field_map map;
    struct heightfield *field;
    struct field_ray rays[SETS][RAYS];
    struct ray own[SETS][RAYS]; /* the same */
};

/* ---- rays ------------------------------------------------------------------------------------ */

static double ground_z(const struct heightfield *field, double x, double y)
{
    struct ground_point ground;

    heightfield_height(field, (struct vec2){x, y}, INTERPOLATION_TRIANGLE, &ground);
    return ground.height_m;
}

static void put(struct scene *scene, int set, size_t i, struct vec3 from, struct vec3 way,
                double t_max)
{
    struct field_ray *r = &scene->rays[set][i];

    way = vec3_unit(way);
    *r = (struct field_ray){{(float)from.x, (float)from.y, (float)from.z},
                            {(float)way.x, (float)way.y, (float)way.z},
                            (float)t_max};
    scene->own[set][i] =
        (struct ray){{(double)r->origin[0], (double)r->origin[1], (double)r->origin[2]},
                     {(double)r->direction[0], (double)r->direction[1], (double)r->direction[2]},
                     (double)r->t_max};
}

/* 60° wide, looking 5° to 60° down, 20 m to 2 km over the ground. */
static void make_pick(struct scene *scene, size_t i, struct random *random)
{
    double extent = (double)scene->map.spacing_m * (scene->map.side - 1);
    double x = random_in(random, 0.05, 0.95) * extent, y = random_in(random, 0.05, 0.95) * extent;
    double z = ground_z(scene->field, x, y) + 20 * pow(100, random_in(random, 0, 1));
    double yaw = random_in(random, 0, 6.283185307179586);
    double down = random_in(random, 0.087, 1.05);
    double right = 0.577 * random_in(random, -1, 1), up = 0.325 * random_in(random, -1, 1);
    struct vec3 forward = {cos(yaw) * cos(down), sin(yaw) * cos(down), -sin(down)};
    struct vec3 side = {sin(yaw), -cos(yaw), 0}, over = vec3_cross(side, forward);

    put(scene, 0, i, (struct vec3){x, y, z},
        vec3_add(forward, vec3_add(vec3_scale(side, right), vec3_scale(over, up))), 2 * extent);
}

static struct vec3 point_of(const struct field_map *map, struct random *random)
{
    double extent = (double)map->spacing_m * (map->side - 1);

    return (struct vec3){random_in(random, 0, extent), random_in(random, 0, extent),
                         random_in(random, (double)map->min_m, (double)map->max_m)};
}

static void make_random(struct scene *scene, size_t i, struct random *random)
{
    struct vec3 from = point_of(&scene->map, random), to = point_of(&scene->map, random);
    double floor_z = ground_z(scene->field, from.x, from.y);

    if (from.z < floor_z) /* nobody looks from inside the ground */
        from.z = 2 * floor_z - from.z;
    put(scene, 1, i, from, vec3_sub(to, from), 4e5);
}

/* Lifted over what it meets until it misses: to half a metre over the ridge. */
static void make_grazing(struct scene *scene, size_t i, struct random *random)
{
    double extent = (double)scene->map.spacing_m * (scene->map.side - 1);
    double a = random_in(random, 0, extent), b = random_in(random, 0, extent);
    bool across = random_bits(random) & 1;
    struct vec3 from = across ? (struct vec3){0, a, 0} : (struct vec3){a, 0, 0};
    struct vec3 to = across ? (struct vec3){extent, b, 0} : (struct vec3){b, extent, 0};
    double low = (double)scene->map.min_m, high = (double)scene->map.max_m + 1;
    double tilt = random_in(random, -20, 20); /* metres over the map */
    struct ray_hit hit;

    while (high - low > 0.5) {
        double z = (low + high) / 2;

        from.z = z - tilt;
        to.z = z + tilt;
        put(scene, 2, i, from, vec3_sub(to, from), 2 * extent);
        if (heightfield_ray(scene->field, &scene->own[2][i], RAY_ANY, &hit, NULL))
            low = z;
        else
            high = z;
    }
    from.z = high - tilt;
    to.z = high + tilt;
    put(scene, 2, i, from, vec3_sub(to, from), 2 * extent);
}

static struct scene *scene_create(uint32_t side)
{
    struct scene *scene = malloc(sizeof *scene);
    struct random random = {side};

    if (scene == NULL || !bench_map(side, &scene->map)) {
        free(scene);
        return NULL;
    }
    scene->field = bench_map_field(&scene->map);
    for (size_t i = 0; i < RAYS; i++) {
        make_pick(scene, i, &random);
        make_random(scene, i, &random);
        make_grazing(scene, i, &random);
    }
    return scene;
}

/* ---- ways to ask ----------------------------------------------------------------------------- */

struct way {
    const char *name;
    const struct field_peer *peer; /* NULL: ours */
    void *peer_scene;
    void (*ask)(const struct scene *scene, int set, float *t);
    struct bench_time times[SETS];
};

static void ask_single(const struct scene *scene, int set, float *t)
{
    for (size_t i = 0; i < RAYS; i++) {
        struct ray_hit hit;

        t[i] = heightfield_ray(scene->field, &scene->own[set][i], RAY_CLOSEST, &hit, NULL)
                   ? (float)hit.t
                   : INFINITY;
    }
}

static void ask_scalar(const struct scene *scene, int set, float *t)
{
    enum simd_level level = simd_level();

    simd_select(SIMD_SCALAR);
    ask_single(scene, set, t);
    simd_select(level);
}

static void ask_batch(const struct scene *scene, int set, float *t)
{
    static struct ray_hit hits[RAYS];

    heightfield_rays(scene->field, scene->own[set], RAYS, hits);
    for (size_t i = 0; i < RAYS; i++)
        t[i] = (float)hits[i].t;
}

static void ask(const struct way *way, const struct scene *scene, int set, float *t)
{
    if (way->peer != NULL)
        way->peer->rays(way->peer_scene, scene->rays[set], RAYS, t);
    else
        way->ask(scene, set, t);
}

/* Rays whose answers differ by more than the peers' rounding explains. */
static unsigned differences(const struct way *way, const float *t, const float *want)
{
    unsigned count = 0;

    for (size_t i = 0; i < RAYS; i++) {
        float slack = 1e-3f * want[i] + 0.5f;

        count += !(t[i] == want[i] || fabsf(t[i] - want[i]) <= slack);
    }
    if (count > RAYS / 200) {
        fprintf(stderr, "bench_ray_peers: %s differs for %u of %d rays\n", way->name, count, RAYS);
        exit(1);
    }
    return count;
}

struct asking {
    const struct scene *scene;
    const struct way *ways;
    int set;
    float (*t)[RAYS];
};

static void ask_again(void *context, unsigned way)
{
    const struct asking *a = context;

    ask(&a->ways[way], a->scene, a->set, a->t[way]);
}

/* The time of each way, and how often each differs from the first. */
static void measure(const struct scene *scene, struct way *ways, int way_count, int set)
{
    static float t[WAYS_MAX][RAYS];
    struct asking asking = {scene, ways, set, t};
    struct bench_race race = {(unsigned)way_count, ROUNDS, 1, RAYS, ask_again, &asking};
    struct bench_time times[WAYS_MAX];
    unsigned hits = 0;

    bench_in_turns(&race, times);
    for (size_t i = 0; i < RAYS; i++)
        hits += t[0][i] < INFINITY;
    printf("  %-8s %5.1f %% hit;", set_names[set], 100.0 * hits / RAYS);
    for (int i = 0; i < way_count; i++) {
        ways[i].times[set] = times[i];
        printf("  %s %.0f ns (%u differ)", ways[i].name, 1e9 * times[i].median_s,
               differences(&ways[i], t[i], t[0]));
    }
    printf("\n");
    fflush(stdout);
}

/* A row a peer, set and way of ours. */
static void print_rows(const struct way *ways, int way_count, uint32_t side)
{
    static const double asked_of_embree[OURS][SETS] = {{2, 2, 1.1}, {3.5, 3.5, 1.7}, {1.5, 0, 0}};
    static const double asked_of_bullet[OURS][SETS] = {{10, 10, 0}};
    static const char *const names[OURS] = {"single ray", "rays in a batch", "single ray, scalar"};

    for (int peer = OURS; peer < way_count; peer++)
        for (int own = 0; own < OURS; own++)
            for (int set = 0; set < SETS; set++) {
                bool is_embree = ways[peer].peer == &field_peer_embree;
                char work[64];

                snprintf(work, sizeof work, "%s, %s, %u²", names[own], set_names[set], side);
                bench_row_times(
                    "rays", work, ways[peer].name, &ways[own].times[set], &ways[peer].times[set],
                    is_embree ? asked_of_embree[own][set] : asked_of_bullet[own][set], NULL);
            }
}

static void run_side(uint32_t side)
{
    const struct field_peer *peers[] = {&field_peer_embree, &field_peer_bullet};
    struct scene *scene = scene_create(side);
    struct way ways[WAYS_MAX] = {{.name = "kota", .ask = ask_single},
                                 {.name = "kota, batch", .ask = ask_batch},
                                 {.name = "kota, scalar", .ask = ask_scalar}};
    int count = OURS;

    if (scene == NULL)
        return;
    for (int i = 0; i < 2; i++)
        if (peers[i] != NULL) {
            ways[count] = (struct way){.name = peers[i]->name(), .peer = peers[i]};
            ways[count].peer_scene = peers[i]->create(&scene->map);
            count += ways[count].peer_scene != NULL;
        }
    printf("\nRays over real terrain of %u²\n", side);
    for (int set = 0; set < SETS; set++)
        measure(scene, ways, count, set);
    print_rows(ways, count, side);
    for (int i = OURS; i < count; i++)
        ways[i].peer->destroy(ways[i].peer_scene);
    heightfield_unref(scene->field);
    free((void *)(uintptr_t)scene->map.heights_m);
    free(scene);
}

/*
 * Text T's worst case (bench_ray.c) against Embree: along the diagonal, half as high as the spikes,
 * past all of them. Nothing is hit.
 */
static void run_diagonal(uint32_t cells, uint32_t every)
{
    uint32_t side = cells + 1;
    float *heights_m = calloc((size_t)side * side, sizeof *heights_m);
    struct scene *scene = malloc(sizeof *scene);
    struct way ways[2] = {{.name = "kota", .ask = ask_single}};
    char work[96];

    if (heights_m == NULL || scene == NULL)
        exit(1);
    for (uint32_t r = 0; r < cells; r += every)
        for (uint32_t c = 0; c < cells; c += every)
            heights_m[(size_t)(r + every / 4) * side + c + every * 3 / 4] = 1;
    scene->map = (struct field_map){heights_m, side, 1, 0, 1};
    scene->field = bench_map_field(&scene->map);
    for (size_t i = 0; i < RAYS; i++)
        put(scene, 0, i, (struct vec3){0.1 + 0.001 * (double)(i % 100), 0, 0.75},
            (struct vec3){1, 1, 0}, 2.0 * cells);
    ways[1] = (struct way){.name = field_peer_embree.name(), .peer = &field_peer_embree};
    ways[1].peer_scene = field_peer_embree.create(&scene->map);
    if (ways[1].peer_scene != NULL) {
        printf("\nAlong the diagonal of %u², a spike every %u²\n", cells, every);
        measure(scene, ways, 2, 0);
        snprintf(work, sizeof work, "one ray along the diagonal, a spike every %u², %u²", every,
                 cells);
        bench_row_times("rays", work, ways[1].name, &ways[0].times[0], &ways[1].times[0], 0, NULL);
        field_peer_embree.destroy(ways[1].peer_scene);
    }
    heightfield_unref(scene->field);
    free(heights_m);
    free(scene);
}

/* With an argument only a map of that side. */
int main(int argc, char **argv)
{
    if (argc > 1) {
        run_side((uint32_t)atoi(argv[1]));
        return 0;
    }
    run_side(1024);
    run_side(4096);
    if (&field_peer_embree != NULL && bench_seed() == 0) {
        run_diagonal(1024, 32);
        run_diagonal(1024, 4);
    }
    return 0;
}
