/*
 * `make bench`: Q's table 5 (Barrus and Waters 1996) in today's terms. Q asked for the contact of
 * one point and terrain, once through Performer's general intersection and once through QOTA, on
 * the same polygons: 1881 against 19 µs where there was one, 1892 against 13 µs where there was
 * none. Here Bullet and Embree are the general ones, each asked in the way that its documentation
 * recommends: the first triangle straight below the point. They are taken from the distribution
 * (sh deploy/install-deps.sh bench); without them their rows say so.
 *
 * All get the same float32 triangles and the same float32 points, drawn before, in random order.
 * A hit is a point at most 2 m above a floor, whatever storey; a miss is a point over a hole or
 * beside all polygons, inside of the bounding rectangle. One thread and its CPU time, rounds
 * interleaved and begun by another contestant each, medians; before it is timed, each asks all
 * points five times, so that nobody pays for the cache that the one before has filled, and those
 * that ask a tree which another has just asked gain nothing by it. Every answer is stored, and
 * compared at the end: heights agree within 1e-4 of the terrain's height. Where they do not, brute
 * force tells if the point is within that distance of an edge or of a surface, seen from above;
 * anything else is a failure.
 *
 * Builds are in the table, too: BUILDS of each contestant in turns, the least of each, by processor
 * time of the one thread that builds.
 *
 * The shared data gives the terrains; one more is always made here, by a formula: hills with ponds
 * left out, a road over them, a bridge, upright trees; and those of mesh_scenes.h.
 */
#include "tests/bench/peers.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/mesh_scenes.h"
#include "support/random.h"
#include "support/soup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1 << 15, ROUNDS = 11, LISTS = 2, BATCH = 256, WARM = 5, BUILDS = 7 };

/* The last is the judge of the others' answers. */
enum { BULLET, EMBREE, QOTA_BATCH, QOTA, CONTESTANTS };

#define AGREE 1e-4 /* of the terrain's height */
#define FEET_M 2.0 /* a hit is asked from at most this much above its floor */

/* ---- the terrains --------------------------------------------------------------------------- */

/* Drawn by KOTA_BENCH_SEED. */
static double shift_x, shift_y, steepness = 1;

static double hill(double x, double y)
{
    x += shift_x;
    y += shift_y;
    return steepness *
           (9 * sin(x / 61) * cos(y / 47) + 3 * sin(x / 17 + 1) + 2 * cos((x - y) / 23));
}

static bool is_pond(double x, double y)
{
    return sin(x / 40) * sin(y / 35) > 0.9;
}

static void make_hills(struct soup *soup, struct random *random)
{
    enum { COLS = 108, ROWS = 58 };
    uint32_t first = (uint32_t)soup->vertex_count;

    for (int row = 0; row <= ROWS; row++)
        for (int col = 0; col <= COLS; col++) {
            double x = 8 * col + random_in(random, -3, 3), y = 8 * row + random_in(random, -3, 3);

            soup_vertex(soup, (struct vec3){x, y, hill(x, y)});
        }
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t col = 0; col < COLS; col++) {
            uint32_t v = first + row * (COLS + 1) + col, w = v + COLS + 1;

            if (is_pond(8 * col + 4, 8 * row + 4))
                continue;
            soup_polygon(soup, (uint32_t[]){v, v + 1, w + 1}, 3);
            soup_polygon(soup, (uint32_t[]){v, w + 1, w}, 3);
        }
}

/* A closed band around the middle, and, lifted, a bridge across it. */
static void make_road(struct soup *soup)
{
    enum { PARTS = 300 };
    uint32_t first = (uint32_t)soup->vertex_count;

    for (int i = 0; i <= PARTS; i++)
        for (int side = -1; side <= 1; side++) {
            double angle = 6.283185307179586 * i / PARTS;
            double x = 432 + (340 + 6 * side) * cos(angle);
            double y = 232 + (170 + 6 * side) * sin(angle) * (1 + 0.3 * cos(3 * angle));

            soup_vertex(soup, (struct vec3){x, y, hill(x, y) + 0.5});
        }
    for (uint32_t i = 0; i < PARTS; i++)
        for (uint32_t lane = 0; lane < 2; lane++) {
            uint32_t v = first + 3 * i + lane;

            soup_polygon(soup, (uint32_t[]){v, v + 1, v + 4}, 3);
            soup_polygon(soup, (uint32_t[]){v, v + 4, v + 3}, 3);
        }
    for (int i = 0; i < 40; i++) {
        double x = 60 + 2.5 * i, z = 20 + 4 * sin(0.0785 * i),
               next = 20 + 4 * sin(0.0785 * i + 0.0785);

        soup_add(soup, (struct vec3[]){{x, 226, z}, {x + 2.5, 226, next}, {x, 238, z}}, 3);
        soup_add(soup, (struct vec3[]){{x + 2.5, 226, next}, {x + 2.5, 238, next}, {x, 238, z}}, 3);
    }
}

static void make_trees(struct soup *soup, struct random *random)
{
    for (int i = 0; i < 240; i++) {
        double x = random_in(random, 0, 860), y = random_in(random, 0, 460), z = hill(x, y);

        soup_add(soup, (struct vec3[]){{x - 2, y, z}, {x + 2, y, z}, {x + 2, y, z + 6}}, 3);
        soup_add(soup, (struct vec3[]){{x - 2, y, z}, {x + 2, y, z + 6}, {x - 2, y, z + 6}}, 3);
    }
}

static bool make_track(struct soup *soup)
{
    struct random random = {bench_seed() != 0 ? bench_seed() : 1996};

    if (bench_seed() != 0) {
        shift_x = random_in(&random, 0, 1e4);
        shift_y = random_in(&random, 0, 1e4);
        steepness = random_in(&random, 0.3, 4);
    }

    make_hills(soup, &random);
    make_road(soup);
    make_trees(soup, &random);
    return true;
}

/* ---- contestants ---------------------------------------------------------------------------- */

struct terrain {
    struct soup soup; /* triangles, vertices rounded to float32 */
    struct peer_triangles triangles;
    double z_min, height; /* height: z_max - z_min */
    uint64_t dropped;
};

struct contestant {
    const char *name;
    const char *package; /* of a peer */
    void (*floors)(const void *scene, const float *points, size_t count, float *heights);
    void (*destroy)(void *scene);
    void *scene;    /* NULL: absent */
    double build_s; /* the least */
    bool is_tree;
    struct bench_time times[LISTS];
    float *heights; /* [POINTS] */
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_contact_peers: %s\n", what);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *block = calloc(count, size);

    if (block == NULL)
        fail("no memory");
    return block;
}

static struct vec3 point_at(const float *p)
{
    return (struct vec3){(double)p[0], (double)p[1], (double)p[2]};
}

/* With the normal, the distance and the point itself. */
static void qota_floors(const void *scene, const float *points, size_t count, float *heights)
{
    for (size_t i = 0; i < count; i++) {
        struct mesh_contact contact;

        heights[i] =
            mesh_floor(scene, point_at(&points[3 * i]), 0, &contact) ? (float)contact.point.z : NAN;
    }
}

static void qota_batches(const void *scene, const float *points, size_t count, float *heights)
{
    struct vec3 at[BATCH];
    struct mesh_height floor[BATCH];

    for (size_t first = 0; first < count; first += BATCH) {
        for (size_t i = 0; i < BATCH; i++)
            at[i] = point_at(&points[3 * (first + i)]);
        mesh_floor_heights(scene, at, BATCH, 0, floor);
        for (size_t i = 0; i < BATCH; i++)
            heights[first + i] = (float)floor[i].height_m;
    }
}

static void qota_destroy(void *scene)
{
    mesh_unref(scene);
}

static void build_took(struct contestant *c, double seconds)
{
    c->build_s = c->build_s == 0 || seconds < c->build_s ? seconds : c->build_s;
}

static void qota_create(struct contestant *c, struct terrain *terrain)
{
    struct polygon_soup view = soup_view(&terrain->soup);
    struct mesh_options options = {.gravity = {0, 0, -1}};
    struct mesh_import import;
    struct err err;

    double start = bench_thread_s();

    c->name = "QOTA";
    c->floors = qota_floors;
    c->is_tree = true;
    c->destroy = qota_destroy;
    c->scene = mesh_create(&view, &options, &import, &err);
    build_took(c, bench_thread_s() - start);
    if (c->scene == NULL)
        fail(err.msg);
    terrain->dropped = import.dropped;
}

/* The same tree asked in another way. */
static void qota_again(struct contestant *c, const struct contestant *tree, const char *name,
                       void (*floors)(const void *, const float *, size_t, float *))
{
    c->name = name;
    c->floors = floors;
    c->destroy = qota_destroy;
    c->scene = mesh_ref(tree->scene);
}

static void peer_create(struct contestant *c, const struct terrain *terrain,
                        const struct peer *peer, const char *name, const char *package)
{
    c->name = name;
    c->package = package;
    if (peer == NULL)
        return;
    c->name = peer->name();
    c->floors = peer->floors;
    c->destroy = peer->destroy;
    double start = bench_thread_s();

    c->scene = peer->create(&terrain->triangles);
    build_took(c, bench_thread_s() - start);
    if (c->scene == NULL)
        fail("a peer does not take the triangles");
}

/* Each several times in turns; the last scenes stay. */
static void scenes_create(struct contestant *c, struct terrain *t)
{
    for (int i = 0; i < BUILDS; i++) {
        for (int k = 0; k < CONTESTANTS; k++)
            if (c[k].scene != NULL)
                c[k].destroy(c[k].scene);
        peer_create(&c[BULLET], t, &peer_bullet, "Bullet", "libbullet-dev or g++");
        peer_create(&c[EMBREE], t, &peer_embree, "Embree", "libembree-dev");
        qota_create(&c[QOTA], t);
    }
}

static void terrain_prepare(struct terrain *t)
{
    struct soup *s = &t->soup;
    float z_max = -INFINITY;

    t->triangles = (struct peer_triangles){
        .vertices = allocate(3 * s->vertex_count, sizeof(float)),
        .vertex_count = s->vertex_count,
        .corners = s->corners,
        .triangle_count = s->polygon_count,
        .z_min = INFINITY,
    };
    if (s->corner_count != 3 * s->polygon_count)
        fail("the terrain is not of triangles");
    for (size_t i = 0; i < s->vertex_count; i++) {
        float *v = &t->triangles.vertices[3 * i];

        v[0] = (float)s->vertices[i].x;
        v[1] = (float)s->vertices[i].y;
        v[2] = (float)s->vertices[i].z;
        s->vertices[i] = (struct vec3){(double)v[0], (double)v[1], (double)v[2]};
        t->triangles.z_min = v[2] < t->triangles.z_min ? v[2] : t->triangles.z_min;
        z_max = v[2] > z_max ? v[2] : z_max;
    }
    t->z_min = (double)t->triangles.z_min;
    t->height = (double)z_max - t->z_min;
}

/* ---- the points ----------------------------------------------------------------------------- */

/* Fills both lists [POINTS][3] from uniform points of the bounding box. */
static void points_draw(const struct mesh *mesh, float *hits, float *misses)
{
    struct random random = {5};
    struct box3 b = mesh_bounds(mesh);
    size_t hit_count = 0, miss_count = 0, tries = 0;

    while (hit_count < POINTS || miss_count < POINTS) {
        struct mesh_contact c;
        struct vec3 p = {(double)(float)random_in(&random, b.min.x, b.max.x),
                         (double)(float)random_in(&random, b.min.y, b.max.y),
                         random_in(&random, b.min.z, b.max.z + 5)};
        double above = random_in(&random, 0.01, FEET_M);

        if (++tries > 1000 * (size_t)POINTS)
            fail("the terrain has no holes or nothing else");
        if (mesh_floor(mesh, p, 0, &c)) {
            float z = (float)fmin(p.z, c.point.z + above);

            if (hit_count < POINTS)
                memcpy(&hits[3 * hit_count++], (float[]){(float)p.x, (float)p.y, z}, 3 * sizeof z);
        } else if (miss_count < POINTS && !mesh_floor(mesh, p, INFINITY, &c)) {
            memcpy(&misses[3 * miss_count++], (float[]){(float)p.x, (float)p.y, (float)p.z},
                   3 * sizeof(float));
        }
    }
}

/* ---- agreement ------------------------------------------------------------------------------ */

struct agreement {
    uint64_t compared, at_edges, wrong;
    double largest; /* difference of heights that agree */
};

/* Is there an edge, or a surface near the asked height, within the tolerance of the point? */
static bool is_doubtful(const struct terrain *t, const float *point, double tolerance)
{
    struct vec3 p = {(double)point[0], (double)point[1], (double)point[2]};

    for (size_t i = 0; i < t->triangles.triangle_count; i++) {
        struct vec3 v[3];
        double side[3], area = 0, z = 0;

        for (int k = 0; k < 3; k++)
            v[k] = t->soup.vertices[t->triangles.corners[3 * i + (size_t)k]];
        for (int k = 0; k < 3; k++) {
            struct vec3 a = v[k], e = vec3_sub(v[(k + 1) % 3], a), q = vec3_sub(p, a);
            double square = e.x * e.x + e.y * e.y;
            double along = square > 0 ? fmin(fmax((e.x * q.x + e.y * q.y) / square, 0), 1) : 0;

            if (hypot(q.x - along * e.x, q.y - along * e.y) <= tolerance)
                return true;
            side[k] = e.x * q.y - e.y * q.x;
            area += side[k];
            z += side[k] * v[(k + 2) % 3].z;
        }
        bool is_inside = area > 0 ? fmin(fmin(side[0], side[1]), side[2]) >= 0
                                  : fmax(fmax(side[0], side[1]), side[2]) <= 0;

        if (is_inside && area != 0 && fabs(z / area - p.z) <= tolerance)
            return true;
    }
    return false;
}

static void compare(const struct terrain *t, const float *points, const float *want,
                    const float *got, struct agreement *sum)
{
    double tolerance = AGREE * t->height;

    for (size_t i = 0; i < POINTS; i++) {
        double difference = fabs((double)want[i] - (double)got[i]);

        sum->compared++;
        if ((isnan(want[i]) && isnan(got[i])))
            continue;
        if (difference <= tolerance)
            sum->largest = fmax(sum->largest, difference);
        else if (is_doubtful(t, &points[3 * i], tolerance))
            sum->at_edges++;
        else if (sum->wrong++ < 5)
            printf("  at (%.9g, %.9g, %.9g): %.9g and %.9g\n", (double)points[3 * i],
                   (double)points[3 * i + 1], (double)points[3 * i + 2], (double)want[i],
                   (double)got[i]);
    }
}

/* ---- the race ------------------------------------------------------------------------------- */

struct asking {
    const struct contestant *contestants;
    const float *points;
};

static void ask_again(void *context, unsigned way)
{
    const struct asking *a = context;
    const struct contestant *now = &a->contestants[way];

    if (now->scene != NULL)
        now->floors(now->scene, a->points, POINTS, now->heights);
}

/* The last contestant is what the others are compared with. */
static void race(const struct terrain *t, struct contestant *c, float *points[LISTS],
                 struct agreement *agreement)
{
    const struct contestant *judge = &c[CONTESTANTS - 1];

    for (int list = 0; list < LISTS; list++) {
        struct asking asking = {c, points[list]};
        struct bench_race race = {CONTESTANTS, ROUNDS, WARM, POINTS, ask_again, &asking};
        struct bench_time times[CONTESTANTS];

        bench_in_turns(&race, times);
        for (int k = 0; k < CONTESTANTS; k++)
            c[k].times[list] = times[k];
        for (int k = 0; k < CONTESTANTS - 1; k++)
            if (c[k].scene != NULL)
                compare(t, points[list], judge->heights, c[k].heights, &agreement[k]);
    }
}

static void table_print(const struct contestant *c, const struct agreement *a)
{
    const struct contestant *qota = &c[QOTA];

    for (int k = 0; k < CONTESTANTS; k++) {
        double hit = c[k].times[0].median_s, miss = c[k].times[1].median_s;

        if (c[k].scene == NULL) {
            printf("  %-24s skipped: %s is not installed (sh deploy/install-deps.sh bench)\n",
                   c[k].name, c[k].package);
            continue;
        }
        printf("  %-24s %7.1f ns %6.1f %8.1f ns %6.1f %8.3f s   ", c[k].name, 1e9 * hit,
               hit / qota->times[0].median_s, 1e9 * miss, miss / qota->times[1].median_s,
               c[k].build_s);
        if (&c[k] != qota)
            printf("%.1g m, %llu, %llu", a[k].largest, (unsigned long long)a[k].at_edges,
                   (unsigned long long)a[k].wrong);
        printf("\n");
    }
    for (int k = 0; k < CONTESTANTS; k++) {
        struct mesh_stats stats;

        if (!c[k].is_tree)
            continue;
        mesh_stats(c[k].scene, &stats);
        printf("  %s: %llu nodes, %.1f MB, %.0f bytes a polygon, %.1f tests on average\n",
               c[k].name, (unsigned long long)stats.nodes, 1e-6 * (double)stats.bytes,
               (double)stats.bytes / (double)stats.polygons, stats.average_tests);
    }
}

/* Hits and misses of each way to ask, against each peer. */
static void rows_print(const struct contestant *c, const char *terrain)
{
    static const double asked[2][LISTS] = {[BULLET] = {20, 6}, [EMBREE] = {4.5, 1.7}};
    static const struct {
        int who;
        const char *how;
        bool is_asked;
    } ways[] = {{QOTA_BATCH, "in a batch", true}, {QOTA, "whole contact with normal", false}};
    static const char *const lists[LISTS] = {"hit", "miss"};

    for (int peer = BULLET; peer <= EMBREE; peer++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
            for (int list = 0; list < LISTS; list++) {
                char work[128];

                if (c[peer].scene == NULL)
                    continue;
                snprintf(work, sizeof work, "contact, %s, %s, %s", lists[list], terrain,
                         ways[way].how);
                bench_row_times("contact", work, c[peer].name, &c[ways[way].who].times[list],
                                &c[peer].times[list], ways[way].is_asked ? asked[peer][list] : 0,
                                NULL);
            }
}

static void build_row_print(const struct contestant *c, const char *terrain)
{
    char work[128], note[128];

    if (c[EMBREE].scene == NULL)
        return;
    snprintf(work, sizeof work, "build, %s", terrain);
    snprintf(note, sizeof note, "%.1f and %.1f ms", 1e3 * c[QOTA].build_s, 1e3 * c[EMBREE].build_s);
    bench_row_most("contact", work, c[EMBREE].name, c[QOTA].build_s / c[EMBREE].build_s, 3, note);
}

/* True when all answers agree. */
static bool terrain_race(struct terrain *t, const char *name)
{
    struct contestant c[CONTESTANTS] = {0};
    struct agreement agreement[CONTESTANTS] = {0};
    float *points[LISTS];
    bool is_good = true;

    terrain_prepare(t);
    scenes_create(c, t);
    qota_again(&c[QOTA_BATCH], &c[QOTA], "  a batch", qota_batches);
    for (int list = 0; list < LISTS; list++)
        points[list] = allocate(3 * (size_t)POINTS, sizeof(float));
    for (int k = 0; k < CONTESTANTS; k++)
        c[k].heights = allocate(POINTS, sizeof(float));
    points_draw(c[QOTA].scene, points[0], points[1]);
    printf("\n  %s: %zu triangles, %llu of them without area\n", name, t->soup.polygon_count,
           (unsigned long long)t->dropped);
    race(t, c, points, agreement);
    table_print(c, agreement);
    rows_print(c, name);
    build_row_print(c, name);
    for (int k = 0; k < CONTESTANTS; k++) {
        is_good &= agreement[k].wrong == 0;
        if (c[k].scene != NULL)
            c[k].destroy(c[k].scene);
        free(c[k].heights);
    }
    free(points[0]);
    free(points[1]);
    free(t->triangles.vertices);
    return is_good;
}

/* With an argument only the terrain of that name; with another one so many triangles. */
int main(int argc, char **argv)
{
    static const struct {
        const char *file, *name; /* file NULL: made here */
    } terrains[] = {
        {NULL, "hills by formula"},
        {"meshes-sharealike/torcs_g-track-2.obj", "race track"},
        {"meshes-sharealike/sauerbraten_fdm6.obj", "open map"},
        {"meshes/recast_dungeon.obj", "dungeon"},
    };
    size_t triangles = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
    bool is_good = true;

    printf("\nQ, table 5, in today's terms: the floor under a point, against general collision "
           "detection\non the same polygons. Medians of %d rounds of %d points, one thread. x: how "
           "many times the time\nof QOTA. Last: heights agree within; points at an edge where\nthe "
           "answers differ; other points where they do.\n\n"
           "  %-24s %10s %6s %11s %6s %10s   %s\n",
           ROUNDS, (int)POINTS, "", "hit", "x", "miss", "x", "build", "agreement");
    printf("  Q, 1996: Performer         1881 us   99.0     1892 us  145.5\n"
           "  Q, 1996: QOTA                19 us    1.0       13 us    1.0\n");
    for (size_t i = 0; i < sizeof terrains / sizeof *terrains; i++) {
        struct terrain t = {0};

        if ((argc > 1 && strcmp(argv[1], terrains[i].name) != 0) ||
            (bench_seed() != 0 && terrains[i].file != NULL))
            continue;
        if (terrains[i].file == NULL ? make_track(&t.soup)
                                     : soup_read(&t.soup, terrains[i].file, true))
            is_good &= terrain_race(&t, terrains[i].name);
        else
            printf("\n  %s: skipped: %s is absent\n", terrains[i].name, terrains[i].file);
        soup_free(&t.soup);
    }
    for (enum mesh_scene scene = 0; scene < MESH_SCENES; scene++) {
        struct terrain t = {0};

        if (argc > 1 && strcmp(argv[1], mesh_scene_names[scene]) != 0)
            continue;
        mesh_scene_make(scene, triangles, bench_seed() != 0 ? bench_seed() : 26, &t.soup);
        is_good &= terrain_race(&t, mesh_scene_names[scene]);
        soup_free(&t.soup);
    }
    if (!is_good)
        fail("answers differ away from edges");
    return 0;
}
