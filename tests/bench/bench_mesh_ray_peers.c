/*
 * `make bench`: rays over meshes, one at a time and 1,024 a call, against Embree's rtcIntersect1
 * and rtcOccluded1 (robust, high quality) on the same triangles, in one thread, in turns, medians.
 *
 * Picks are what a tool asks: a camera stands above the ground and looks somewhere into the mesh.
 * Random rays run from one place in the mesh's box to another, and on. Nearest: the first hit with
 * its place and normal. Any: whether there is a hit before the second place of a random ray. The
 * hills are made by a formula, 200,000 triangles; the shared data gives the others.
 *
 * Each answer is stored and compared: distances agree within 1e-4 of the mesh's size, or one of
 * both goes past an edge, which more than 1 of 200 must not. Every 512th answer is put to brute
 * force in double precision. What building costs is told beside.
 */
#include "tests/bench/peers.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/mesh_oracle.h"
#include "terrain/mesh/mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RAYS = 1 << 14, ROUNDS = 9, JUDGED = 512, HILLS = 316, BATCH = 1024 };
enum { OWN, BATCHES, EMBREE, WAYS };
enum { PICKS, RANDOM, ANY, QUESTIONS };

static const char *const names[QUESTIONS] = {"picks", "random rays", "any hit"};

struct scene {
    const char *name;
    struct soup soup; /* rounded to float32 */
    struct mesh *mesh;
    double size_m;
    void *embree;
    struct ray rays[QUESTIONS][RAYS];
    float origins[3 * RAYS], directions[3 * RAYS], t_max[RAYS]; /* of one question */
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_mesh_ray_peers: %s\n", what);
    exit(1);
}

/* ---- the scenes ----------------------------------------------------------------------------- */

static struct vec3 rounded(struct vec3 v)
{
    return (struct vec3){(double)(float)v.x, (double)(float)v.y, (double)(float)v.z};
}

static void hills_make(struct soup *soup)
{
    struct random random = {7};

    for (uint32_t i = 0; i <= HILLS; i++)
        for (uint32_t k = 0; k <= HILLS; k++)
            soup_vertex(
                soup,
                (struct vec3){4 * k + random_in(&random, -1, 1), 4 * i + random_in(&random, -1, 1),
                              20 * sin(k / 20.0) * cos(i / 13.0) + random_in(&random, -0.5, 0.5)});
    for (uint32_t i = 0; i < HILLS; i++)
        for (uint32_t k = 0; k < HILLS; k++) {
            uint32_t a = i * (HILLS + 1) + k, b = a + HILLS + 1;

            soup_polygon(soup, (uint32_t[]){a, a + 1, b + 1}, 3);
            soup_polygon(soup, (uint32_t[]){a, b + 1, b}, 3);
        }
}

static void peer_make(struct scene *s)
{
    struct peer_triangles triangles = {.vertex_count = s->soup.vertex_count,
                                       .corners = s->soup.corners,
                                       .triangle_count = s->soup.polygon_count};

    if (s->soup.corner_count != 3 * s->soup.polygon_count)
        fail("the terrain is not of triangles");
    triangles.vertices = malloc(3 * s->soup.vertex_count * sizeof(float));
    if (triangles.vertices == NULL)
        fail("no memory");
    for (size_t i = 0; i < s->soup.vertex_count; i++) {
        s->soup.vertices[i] = rounded(s->soup.vertices[i]);
        triangles.vertices[3 * i] = (float)s->soup.vertices[i].x;
        triangles.vertices[3 * i + 1] = (float)s->soup.vertices[i].y;
        triangles.vertices[3 * i + 2] = (float)s->soup.vertices[i].z;
    }
    if (&peer_embree != NULL)
        s->embree = peer_embree.create(&triangles);
    free(triangles.vertices);
}

static struct vec3 place_in(struct random *random, struct box3 b)
{
    return rounded((struct vec3){random_in(random, b.min.x, b.max.x),
                                 random_in(random, b.min.y, b.max.y),
                                 random_in(random, b.min.z, b.max.z)});
}

static void rays_draw(struct scene *s)
{
    struct box3 b = mesh_bounds(s->mesh);
    struct random random = {12};
    double high = s->size_m / 4;

    for (size_t i = 0; i < RAYS; i++) {
        struct vec3 from = place_in(&random, b), to = place_in(&random, b), camera = from;

        camera.z = (double)(float)(b.max.z + random_in(&random, 0.1, 1) * high);
        s->rays[PICKS][i] = (struct ray){camera, rounded(vec3_sub(to, camera)), INFINITY};
        s->rays[RANDOM][i] = (struct ray){from, rounded(vec3_sub(to, from)), INFINITY};
        s->rays[ANY][i] = (struct ray){from, rounded(vec3_sub(to, from)), 1};
    }
}

static void mesh_build(struct scene *s)
{
    struct polygon_soup view = soup_view(&s->soup);
    double times[3], without[3], opening[3], count = (double)s->soup.polygon_count;
    struct err err;

    for (int round = 0; round < 3; round++) {
        struct mesh_options options = {.gravity = {0, 0, -1}};
        struct mesh *opened;
        size_t length;
        double start = bench_thread_s();

        mesh_unref(s->mesh);
        s->mesh = mesh_create(&view, &options, NULL, &err);
        if (s->mesh == NULL)
            fail(err.msg);
        times[round] = bench_thread_s() - start;
        options.without_rays = true;
        start = bench_thread_s();
        opened = mesh_create(&view, &options, NULL, &err);
        if (opened == NULL)
            fail(err.msg);
        without[round] = bench_thread_s() - start;
        mesh_unref(opened);

        const void *image = mesh_image(s->mesh, &length);

        start = bench_thread_s();
        opened = mesh_open(image, length, NULL, NULL, &err);
        if (opened == NULL)
            fail(err.msg);
        opening[round] = bench_thread_s() - start;
        mesh_unref(opened);
    }
    printf("  %-12s %zu triangles: built in %.2f us each, %.2f without the tree of rays; opened in "
           "%.2f us\n",
           s->name, s->soup.polygon_count, 1e6 * bench_median(times, 3) / count,
           1e6 * bench_median(without, 3) / count, 1e6 * bench_median(opening, 3) / count);
}

static bool scene_make(struct scene *s, const char *file, const char *name)
{
    struct box3 b;

    memset(s, 0, sizeof *s);
    s->name = name;
    if (file == NULL)
        hills_make(&s->soup);
    else if (!soup_read(&s->soup, file, true))
        return false;
    peer_make(s);
    mesh_build(s);
    b = mesh_bounds(s->mesh);
    s->size_m = fmax(b.max.x - b.min.x, b.max.y - b.min.y);
    rays_draw(s);
    return true;
}

static void scene_free(struct scene *s)
{
    if (s->embree != NULL)
        peer_embree.destroy(s->embree);
    mesh_unref(s->mesh);
    soup_free(&s->soup);
}

/* ---- asking --------------------------------------------------------------------------------- */

static void ask_own(const struct scene *s, int question, float *ts)
{
    enum ray_mode mode = question == ANY ? RAY_ANY : RAY_CLOSEST;

    for (size_t i = 0; i < RAYS; i++) {
        struct mesh_hit hit;
        bool is_hit = mesh_ray(s->mesh, &s->rays[question][i], mode, &hit);

        ts[i] = !is_hit ? INFINITY : question == ANY ? 0 : (float)hit.t;
    }
}

static void ask_batches(const struct scene *s, int question, float *ts)
{
    enum ray_mode mode = question == ANY ? RAY_ANY : RAY_CLOSEST;
    static struct mesh_hit hits[BATCH];

    for (size_t i = 0; i < RAYS; i += BATCH) {
        mesh_rays(s->mesh, &s->rays[question][i], BATCH, mode, hits);
        for (size_t k = 0; k < BATCH; k++)
            ts[i + k] = question == ANY && hits[k].t < INFINITY ? 0 : (float)hits[k].t;
    }
}

static void ask(const struct scene *s, int way, int question, float *ts)
{
    if (way == OWN)
        ask_own(s, question, ts);
    else if (way == BATCHES)
        ask_batches(s, question, ts);
    else if (question == ANY)
        peer_embree.any(s->embree, s->origins, s->directions, s->t_max, RAYS, ts);
    else
        peer_embree.rays(s->embree, s->origins, s->directions, RAYS, ts);
}

static double agree_of(const struct scene *s, const struct ray *ray)
{
    return 1e-4 * s->size_m / vec3_length(ray->direction);
}

static void judge(const struct scene *s, int question, const float *ts)
{
    struct polygon_soup view = soup_view(&s->soup);

    for (size_t i = 0; i < RAYS; i += JUDGED) {
        const struct ray *ray = &s->rays[question][i];
        struct oracle_hit want = oracle_ray(&view, ray, 1e-6);
        double t = (double)ts[i], agree = agree_of(s, ray);

        if (isinf(t)          ? isfinite(want.t_tight)
            : question == ANY ? isinf(want.t_loose)
                              : t < want.t_loose - agree || t > want.t_tight + agree)
            fail("brute force differs");
    }
}

static void floats_make(struct scene *s, int question)
{
    for (size_t i = 0; i < RAYS; i++) {
        const struct ray *ray = &s->rays[question][i];
        const double *o = &ray->origin.x, *d = &ray->direction.x;

        for (int a = 0; a < 3; a++) {
            s->origins[3 * i + (size_t)a] = (float)o[a];
            s->directions[3 * i + (size_t)a] = (float)d[a];
        }
        s->t_max[i] = (float)ray->t_max;
    }
}

struct asking {
    struct scene *scene;
    int question;
    float (*ts)[RAYS];
};

static void ask_again(void *context, unsigned way)
{
    const struct asking *a = context;

    ask(a->scene, (int)way, a->question, a->ts[way]);
}

static void row_put(const struct scene *s, int question, const char *how,
                    const struct bench_time *own, const struct bench_time *embree)
{
    char work[96];

    snprintf(work, sizeof work, "%s, %s of %zu triangles%s", names[question], s->name,
             s->soup.polygon_count, how);
    bench_row_times("rays over polygons", work, peer_embree.name(), own, embree, 1,
                    "in double precision");
}

static void race(struct scene *s, int question)
{
    static float ts[WAYS][RAYS];
    struct asking asking = {s, question, ts};
    struct bench_race race = {
        s->embree ? WAYS : EMBREE, ROUNDS, 1, RAYS, ask_again, &asking,
    };
    struct bench_time times[WAYS];
    unsigned hits = 0, differ = 0;

    floats_make(s, question);
    bench_in_turns(&race, times);
    judge(s, question, ts[OWN]);
    for (size_t i = 0; i < RAYS; i++) {
        hits += isfinite(ts[OWN][i]);
        if (ts[BATCHES][i] != ts[OWN][i])
            fail("a batch's answers differ");
        if (s->embree != NULL && ts[OWN][i] != ts[EMBREE][i])
            differ += !(fabs((double)ts[OWN][i] - (double)ts[EMBREE][i]) <=
                        agree_of(s, &s->rays[question][i]));
    }
    if (differ > RAYS / 200)
        fail("Embree's answers differ");
    printf("  %-12s %-12s %5.1f %% hit;  %.0f ns, in a batch %.0f ns", s->name, names[question],
           100.0 * hits / RAYS, 1e9 * times[OWN].median_s, 1e9 * times[BATCHES].median_s);
    if (s->embree == NULL) {
        printf("\n");
        return;
    }
    printf("  Embree %.0f ns (%u differ)\n", 1e9 * times[EMBREE].median_s, differ);
    fflush(stdout);
    row_put(s, question, "", &times[OWN], &times[EMBREE]);
    row_put(s, question, ", in batches", &times[BATCHES], &times[EMBREE]);
}

int main(void)
{
    static const struct {
        const char *file, *name;
    } terrains[] = {
        {NULL, "hills"},
        {"meshes-sharealike/torcs_g-track-2.obj", "race track"},
        {"meshes-sharealike/sauerbraten_fdm6.obj", "open map"},
        {"meshes/recast_dungeon.obj", "dungeon"},
    };
    static struct scene scene;

    printf("\nRays over meshes, one at a time and %d a call: %d rays\n", BATCH, RAYS);
    for (size_t i = 0; i < sizeof terrains / sizeof *terrains; i++) {
        if (!scene_make(&scene, terrains[i].file, terrains[i].name)) {
            printf("  no %s in the shared data\n", terrains[i].file);
            continue;
        }
        for (int question = 0; question < QUESTIONS; question++)
            race(&scene, question);
        scene_free(&scene);
    }
    return 0;
}
