/*
 * `make bench`: shadows of meshes under a light that is far away, against Embree's any-hit rays
 * (rtcOccluded1, robust), on the same triangles and points, in one thread, in turns, medians.
 *
 * Points stand on the ground, uniformly seen from above, and begin a centimetre over it, in random
 * order. The sun stands high, at 50 degrees, or low, at 12. Ours is the whole question to a locale
 * of one layer (lighting_lit), with its tree built; and again by rays, as it is before.
 *
 * Every answer of Embree is compared with ours. It works with 24 bits: near edges they may differ,
 * and how often is told; more than 1 of 200 ends the program. And every 64th point is put to brute
 * force in double precision, all triangles, which may differ from ours only at their edges.
 */
#include "tests/bench/peers.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/mesh_oracle.h"
#include "world/ask/lit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1 << 15, ROUNDS = 9, SUNS = 2, JUDGED = 64 };
enum { OWN_TREE, OWN_RAYS, EMBREE, WAYS };

#define LIFT_M 0.01

static const char *const sun_names[SUNS] = {"high sun", "low sun"};
static const double sun_rise[SUNS] = {0.873, 0.209};

struct scene {
    const char *name;
    struct soup soup; /* rounded to float32 */
    struct locale *locale;
    struct layer_choice choice;
    struct light_cache *cache;
    struct vec3 points[POINTS];
    float origins[3 * POINTS]; /* where the rays begin */
    void *embree;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_lit_peers: %s\n", what);
    exit(1);
}

/* ---- the scene ------------------------------------------------------------------------------- */

static void *copy_of(const void *from, size_t count, size_t size)
{
    void *copy = malloc(count * size);

    if (copy == NULL)
        fail("no memory");
    memcpy(copy, from, count * size);
    return copy;
}

static void locale_make(struct scene *scene)
{
    const struct soup *s = &scene->soup;
    struct polygon_set set = {
        .vertices = copy_of(s->vertices, s->vertex_count, sizeof *s->vertices),
        .vertex_count = s->vertex_count,
        .corners = copy_of(s->corners, s->corner_count, sizeof *s->corners),
        .starts = copy_of(s->starts, s->polygon_count + 1, sizeof *s->starts),
        .polygon_count = s->polygon_count,
    };
    struct err err;
    struct layer *layer =
        layer_create_mesh("mesh", LAYER_GROUND, &set, (struct vec3){0, 0, -1}, NULL, &err);

    if (layer == NULL)
        fail(err.msg);
    scene->locale = locale_assemble("bench", 1, &locale_manifest_default, &layer, 1, &err);
    scene->cache = light_cache_create((uint64_t)1 << 30, &err);
    if (scene->locale == NULL || scene->cache == NULL ||
        locale_choose(scene->locale, NULL, &scene->choice, &err))
        fail(err.msg);
}

static void embree_make(struct scene *scene)
{
    struct soup *s = &scene->soup;
    struct peer_triangles triangles = {
        .vertex_count = s->vertex_count, .corners = s->corners, .triangle_count = s->polygon_count};

    if (s->corner_count != 3 * s->polygon_count)
        fail("the terrain is not of triangles");
    triangles.vertices = malloc(3 * s->vertex_count * sizeof(float));
    if (triangles.vertices == NULL)
        fail("no memory");
    for (size_t i = 0; i < s->vertex_count; i++) {
        float *v = &triangles.vertices[3 * i];

        v[0] = (float)s->vertices[i].x;
        v[1] = (float)s->vertices[i].y;
        v[2] = (float)s->vertices[i].z;
        s->vertices[i] = (struct vec3){(double)v[0], (double)v[1], (double)v[2]};
    }
    if (&peer_embree != NULL)
        scene->embree = peer_embree.create(&triangles);
    free(triangles.vertices);
}

static void points_draw(struct scene *scene)
{
    const struct mesh *mesh = scene->locale->layers[0]->mesh;
    struct box3 b = mesh_bounds(mesh);
    struct random random = {11};

    for (size_t count = 0; count < POINTS;) {
        struct mesh_contact floor;
        struct vec3 at = {random_in(&random, b.min.x, b.max.x),
                          random_in(&random, b.min.y, b.max.y),
                          random_in(&random, b.min.z, b.max.z + 5)};

        if (mesh_floor(mesh, at, 0, &floor))
            scene->points[count++] =
                (struct vec3){(double)(float)floor.point.x, (double)(float)floor.point.y,
                              (double)(float)(floor.point.z + LIFT_M)};
    }
}

static bool scene_make(struct scene *scene, const char *file, const char *name)
{
    memset(scene, 0, sizeof *scene);
    scene->name = name;
    if (!soup_read(&scene->soup, file, true))
        return false;
    embree_make(scene);
    locale_make(scene);
    points_draw(scene);
    return true;
}

static void scene_free(struct scene *scene)
{
    if (scene->embree != NULL)
        peer_embree.destroy(scene->embree);
    light_cache_destroy(scene->cache);
    locale_unref(scene->locale);
    soup_free(&scene->soup);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void ask_own(const struct lighting *lighting, const struct vec3 *points, uint8_t *is_lit)
{
    for (size_t i = 0; i < POINTS; i += LIT_TOGETHER_MAX)
        lighting_lit(lighting, points + i, LIT_TOGETHER_MAX, is_lit + i);
}

static void ask(int way, struct scene *scene, const struct lighting *lighting, uint8_t *is_lit)
{
    struct vec3 toward = lighting->light.toward;
    const float direction[3] = {(float)toward.x, (float)toward.y, (float)toward.z};

    if (way != EMBREE) {
        ask_own(lighting, scene->points, is_lit);
        return;
    }
    peer_embree.shadows(scene->embree, scene->origins, POINTS, direction, is_lit);
    for (size_t i = 0; i < POINTS; i++)
        is_lit[i] ^= 1;
}

/* Ends the program where brute force differs by more than an edge. */
static void judge(const struct scene *scene, const struct light *light, const uint8_t *is_lit)
{
    struct polygon_soup view = soup_view(&scene->soup);

    for (size_t i = 0; i < POINTS; i += JUDGED) {
        struct ray ray;
        double start_m;
        struct oracle_hit want;

        if (!light_ray(light, scene->points[i], &ray, &start_m))
            fail("a point has no ray");
        want = oracle_ray(&view, &ray, 1e-6);
        if (is_lit[i] ? isfinite(want.t_tight) : isinf(want.t_loose))
            fail("brute force differs");
    }
}

struct asking {
    struct scene *scene;
    const struct lighting *lighting;
    uint8_t (*is_lit)[POINTS];
};

static void ask_again(void *context, unsigned way)
{
    const struct asking *a = context;

    if (way != EMBREE || a->scene->embree != NULL)
        ask((int)way, a->scene, &a->lighting[way == OWN_RAYS], a->is_lit[way]);
}

static void race(struct scene *scene, int sun)
{
    static uint8_t is_lit[WAYS][POINTS];
    double yaw = 0.7;
    struct vec3 toward = {cos(yaw) * cos(sun_rise[sun]), sin(yaw) * cos(sun_rise[sun]),
                          sin(sun_rise[sun])};
    struct lighting lighting[2];
    struct asking asking = {scene, lighting, is_lit};
    struct bench_race race = {WAYS, ROUNDS, 1, POINTS, ask_again, &asking};
    struct bench_time times[WAYS];
    unsigned shadows = 0, differ = 0;
    struct light light;
    char work[96], note[96];

    light_from_direction(vec3_scale(toward, -1), &light);
    if (!lighting_open(&lighting[OWN_TREE], &scene->choice, &light, POINTS, scene->cache, true) ||
        !lighting_open(&lighting[OWN_RAYS], &scene->choice, &light, POINTS, NULL, true) ||
        lighting[OWN_TREE].trees[0] == NULL)
        fail("there is no tree for the light");
    for (size_t i = 0; i < POINTS; i++) {
        struct ray ray;
        double start_m;

        (void)light_ray(&light, scene->points[i], &ray, &start_m);
        memcpy(&scene->origins[3 * i],
               (float[]){(float)ray.origin.x, (float)ray.origin.y, (float)ray.origin.z},
               3 * sizeof(float));
    }
    bench_in_turns(&race, times);
    if (memcmp(is_lit[OWN_TREE], is_lit[OWN_RAYS], POINTS) != 0)
        fail("the tree and rays differ");
    judge(scene, &light, is_lit[OWN_TREE]);
    for (size_t i = 0; i < POINTS; i++) {
        shadows += !is_lit[OWN_TREE][i];
        differ += scene->embree != NULL && is_lit[OWN_TREE][i] != is_lit[EMBREE][i];
    }
    if (differ > POINTS / 200)
        fail("Embree's answers differ");
    printf("  %-12s %-9s %4.1f %% in shadow;  tree %.0f ns  rays %.0f ns  Embree %.0f ns (%u "
           "differ)\n",
           scene->name, sun_names[sun], 100.0 * shadows / POINTS, 1e9 * times[OWN_TREE].median_s,
           1e9 * times[OWN_RAYS].median_s, 1e9 * times[EMBREE].median_s, differ);
    fflush(stdout);
    if (scene->embree != NULL) {
        snprintf(note, sizeof note, "%.0f %% in shadow", 100.0 * shadows / POINTS);
        snprintf(work, sizeof work, "lit, %s, %s", scene->name, sun_names[sun]);
        bench_row_times("light", work, peer_embree.name(), &times[OWN_TREE], &times[EMBREE], 3,
                        note);
        snprintf(work, sizeof work, "lit, %s, %s, before there is a tree", scene->name,
                 sun_names[sun]);
        bench_row_times("light", work, peer_embree.name(), &times[OWN_RAYS], &times[EMBREE], 0,
                        NULL);
    }
    lighting_close(&lighting[OWN_TREE]);
    lighting_close(&lighting[OWN_RAYS]);
}

int main(void)
{
    static const struct {
        const char *file, *name;
    } terrains[] = {
        {"meshes-sharealike/torcs_g-track-2.obj", "race track"},
        {"meshes-sharealike/sauerbraten_fdm6.obj", "open map"},
        {"meshes/recast_dungeon.obj", "dungeon"},
    };
    static struct scene scene;

    printf("\nShadows of meshes: one light, %d points on the ground\n", POINTS);
    for (size_t i = 0; i < sizeof terrains / sizeof *terrains; i++) {
        if (!scene_make(&scene, terrains[i].file, terrains[i].name)) {
            printf("  no %s in the shared data\n", terrains[i].file);
            continue;
        }
        for (int sun = 0; sun < SUNS; sun++)
            race(&scene, sun);
        scene_free(&scene);
    }
    return 0;
}
