/*
 * `make bench-all`: contact and rays on meshes under radial gravity, against Embree's rtcIntersect1
 * (robust, high quality) on the same triangles, in one thread, in turns, medians.
 *
 * A planet is a bumpy ball of triangles that is walked on outside, a drum a bumpy tube that is
 * walked in. Contact asks for the floor of points up to 2 m above it; Embree gets a ray from the
 * same point along gravity, whose direction it is told. Rays begin at such points and run anywhere,
 * and the first hit is asked for.
 *
 * Each answer is stored and compared: distances agree within 1e-4 of the radius, or one of both
 * goes past an edge, which more than 1 of 500 must not. Every 256th answer is put to brute force in
 * double precision.
 */
#include "tests/bench/peers.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/mesh_oracle.h"
#include "terrain/mesh/mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1 << 14, ROUNDS = 9, JUDGED = 256 };
enum { OWN, EMBREE, WAYS };
enum { CONTACT, RAY, QUESTIONS };

#define RADIUS_M 500.0
#define FEET_M 2.0
#define AGREE_M (1e-4 * RADIUS_M)

struct scene {
    const char *name;
    struct mesh_space space;
    uint32_t around, along;
    struct soup soup; /* rounded to float32 */
    struct mesh *mesh;
    void *embree;
    struct vec3 points[POINTS], ways[QUESTIONS][POINTS]; /* ways of contact: along gravity */
    float origins[3 * POINTS], directions[QUESTIONS][3 * POINTS];
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_frames_peers: %s\n", what);
    exit(1);
}

/* ---- the scenes ----------------------------------------------------------------------------- */

static struct vec3 rounded(struct vec3 v)
{
    return (struct vec3){(double)(float)v.x, (double)(float)v.y, (double)(float)v.z};
}

static struct vec3 corner(const struct scene *s, struct random *random, uint32_t i, uint32_t k)
{
    double a = 2 * M_PI * k / s->around, share = (double)i / s->along;
    double r = RADIUS_M + 4 * sin(7 * a) * sin(9 * share) + random_in(random, -0.5, 0.5);

    if (s->space.frame == MESH_CYLINDRICAL)
        return (struct vec3){r * cos(a), r * sin(a), 2 * RADIUS_M * (2 * share - 1)};
    double p = M_PI * (share - 0.5);

    return (struct vec3){r * cos(p) * cos(a), r * cos(p) * sin(a), r * sin(p)};
}

/* Rows of corners, k around the axis; the ball's ends are pushed together to its poles. */
static void soup_make(struct scene *s)
{
    struct random random = {5};
    bool is_ball = s->space.frame == MESH_SPHERICAL;
    uint32_t first = 0;

    for (uint32_t i = 0; i <= s->along; i++) {
        uint32_t row = (uint32_t)s->soup.vertex_count;

        for (uint32_t k = 0; k < s->around; k++) {
            struct vec3 v = corner(s, &random, i, k);

            if (is_ball && (i == 0 || i == s->along))
                v = (struct vec3){0, 0, i == 0 ? -RADIUS_M : RADIUS_M};
            soup_vertex(&s->soup, rounded(v));
        }
        for (uint32_t k = 0; i > 0 && k < s->around; k++) {
            uint32_t n = (k + 1) % s->around;

            if (!is_ball || i > 1)
                soup_polygon(&s->soup, (uint32_t[]){first + k, first + n, row + k}, 3);
            if (!is_ball || i < s->along)
                soup_polygon(&s->soup, (uint32_t[]){first + n, row + n, row + k}, 3);
        }
        first = row;
    }
}

static void peer_make(struct scene *s)
{
    struct peer_triangles triangles = {.vertex_count = s->soup.vertex_count,
                                       .corners = s->soup.corners,
                                       .triangle_count = s->soup.polygon_count};

    triangles.vertices = malloc(3 * s->soup.vertex_count * sizeof(float));
    if (triangles.vertices == NULL)
        fail("no memory");
    for (size_t i = 0; i < s->soup.vertex_count; i++) {
        triangles.vertices[3 * i] = (float)s->soup.vertices[i].x;
        triangles.vertices[3 * i + 1] = (float)s->soup.vertices[i].y;
        triangles.vertices[3 * i + 2] = (float)s->soup.vertices[i].z;
    }
    if (&peer_embree != NULL)
        s->embree = peer_embree.create(&triangles);
    free(triangles.vertices);
}

static struct vec3 gravity_at(struct mesh_space space, struct vec3 p)
{
    struct vec3 out = {p.x, p.y, space.frame == MESH_SPHERICAL ? p.z : 0};

    return vec3_scale(vec3_unit(out), space.is_outward ? 1 : -1);
}

static void floats_of(struct vec3 v, float out[3])
{
    out[0] = (float)v.x;
    out[1] = (float)v.y;
    out[2] = (float)v.z;
}

/* Feet over the ground, drawn evenly over it, and ways to look. */
static void points_draw(struct scene *s)
{
    struct random random = {12};

    for (size_t i = 0; i < POINTS;) {
        struct vec3 u = oracle_direction(&random), down;
        struct vec3 at = s->space.frame == MESH_SPHERICAL
                             ? vec3_scale(u, 2 * RADIUS_M)
                             : vec3_scale(vec3_unit((struct vec3){u.x, u.y, 0}), RADIUS_M / 2);
        struct mesh_contact floor;

        if (s->space.frame == MESH_CYLINDRICAL)
            at.z = random_in(&random, -1.9 * RADIUS_M, 1.9 * RADIUS_M);
        if (!mesh_floor(s->mesh, at, 0, &floor))
            continue;
        down = gravity_at(s->space, floor.point);
        s->points[i] =
            rounded(vec3_sub(floor.point, vec3_scale(down, random_in(&random, 0.1, FEET_M))));
        floats_of(s->points[i], &s->origins[3 * i]);
        s->ways[CONTACT][i] = gravity_at(s->space, s->points[i]);
        s->ways[RAY][i] = rounded(oracle_direction(&random));
        for (int q = 0; q < QUESTIONS; q++)
            floats_of(s->ways[q][i], &s->directions[q][3 * i]);
        i++;
    }
}

static void scene_make(struct scene *s)
{
    struct mesh_options options = {.space = s->space};
    struct polygon_soup view;
    struct mesh_import import;
    struct err err;

    soup_make(s);
    view = soup_view(&s->soup);
    s->mesh = mesh_create(&view, &options, &import, &err);
    if (s->mesh == NULL)
        fail(err.msg);
    if (import.kept != view.polygon_count)
        fail("not all triangles are kept");
    peer_make(s);
    points_draw(s);
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
    for (size_t i = 0; i < POINTS; i++) {
        struct ray ray = {s->points[i], s->ways[question][i], INFINITY};
        struct mesh_contact floor;
        struct mesh_hit hit;

        if (question == CONTACT)
            ts[i] =
                mesh_floor(s->mesh, s->points[i], 0, &floor) ? (float)floor.distance_m : INFINITY;
        else
            ts[i] = mesh_ray(s->mesh, &ray, RAY_CLOSEST, &hit) ? (float)hit.t : INFINITY;
    }
}

static void ask(const struct scene *s, int way, int question, float *ts)
{
    if (way == OWN)
        ask_own(s, question, ts);
    else
        peer_embree.rays(s->embree, s->origins, s->directions[question], POINTS, ts);
}

static void judge(const struct scene *s, int question, const float *ts)
{
    struct polygon_soup view = soup_view(&s->soup);

    for (size_t i = 0; i < POINTS; i += JUDGED) {
        struct ray ray = {s->points[i], s->ways[question][i], INFINITY};
        struct oracle_hit want = oracle_ray(&view, &ray, 1e-6);
        double t = (double)ts[i];

        if (isinf(t) ? isfinite(want.t_tight)
                     : t < want.t_loose - AGREE_M || t > want.t_tight + AGREE_M)
            fail("brute force differs");
    }
}

struct asking {
    const struct scene *scene;
    int question;
    float (*ts)[POINTS];
};

static void ask_again(void *context, unsigned way)
{
    const struct asking *a = context;

    ask(a->scene, (int)way, a->question, a->ts[way]);
}

static void race(const struct scene *s, int question)
{
    static const char *const names[QUESTIONS] = {"contact", "rays"};
    static float ts[WAYS][POINTS];
    struct asking asking = {s, question, ts};
    struct bench_race race = {
        s->embree ? WAYS : EMBREE, ROUNDS, 1, POINTS, ask_again, &asking,
    };
    struct bench_time times[WAYS];
    unsigned hits = 0, differ = 0;
    char work[96];

    bench_in_turns(&race, times);
    judge(s, question, ts[OWN]);
    for (size_t i = 0; i < POINTS; i++) {
        hits += isfinite(ts[OWN][i]);
        if (s->embree != NULL && ts[OWN][i] != ts[EMBREE][i])
            differ += !(fabs((double)ts[OWN][i] - (double)ts[EMBREE][i]) <= AGREE_M);
    }
    if (differ > POINTS / 500)
        fail("Embree's answers differ");
    printf("  %-8s %-8s %5.1f %% hit;  %.0f ns", s->name, names[question], 100.0 * hits / POINTS,
           1e9 * times[OWN].median_s);
    if (s->embree == NULL) {
        printf("\n");
        return;
    }
    printf("  Embree %.0f ns (%u differ)\n", 1e9 * times[EMBREE].median_s, differ);
    fflush(stdout);
    snprintf(work, sizeof work, "%s, %s of %zu triangles", names[question], s->name,
             s->soup.polygon_count);
    bench_row_times("frames", work, peer_embree.name(), &times[OWN], &times[EMBREE], 0,
                    "in double precision");
}

int main(void)
{
    static struct scene scenes[] = {
        {.name = "planet", .space = {MESH_SPHERICAL, false}, .around = 200, .along = 100},
        {.name = "drum", .space = {MESH_CYLINDRICAL, true}, .around = 200, .along = 100},
    };

    printf("\nMeshes under radial gravity: %d points\n", POINTS);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        scene_make(&scenes[i]);
        for (int question = 0; question < QUESTIONS; question++)
            race(&scenes[i], question);
        scene_free(&scenes[i]);
    }
    return 0;
}
