/*
 * `make bench`: sweeps and moves, one at a time, in one thread, in turns, medians.
 *
 * Spheres over 200,000 triangles of hills against Bullet's convex cast (over its quantized tree) on
 * the same triangles: steps of 1 to 5 m along the ground, and throws of 100 m from above it.
 * Answers are compared: fractions agree within 1e-2 of a way, or one of both grazes, which more
 * than 1 of 100 must not. Bullet iterates (GJK) in float32.
 *
 * A move is a capsule that walks 5 m/s for a sixtieth of a second on the ground; beside it is the
 * closest ray from the same place along the same velocity, over the hills as a mesh and over a
 * heightfield.
 */
#include "tests/bench/peers.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/mesh_scenes.h"
#include "support/random.h"
#include "terrain/sweep/move.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 1 << 12, ROUNDS = 9, TRIANGLES = 200000, SIDE = 1025 };
enum { OWN, BULLET, PEERS };
enum { MOVES, RAYS, PAIR };

#define RADIUS 0.5

static const struct vec3 up = {0, 0, 1};

struct scene {
    struct soup soup;
    struct mesh *mesh;
    struct heightfield *field;
    void *bullet;
    float ways[6 * WAYS], fractions[PEERS][WAYS];
    struct move moves[WAYS];
    bool is_field;
    double sum; /* of answers, so that none can be left out */
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_sweep_peers: %s\n", what);
    exit(1);
}

static void scene_make(struct scene *s)
{
    struct mesh_options options = {.gravity = {0, 0, -1}};
    struct heightfield_spec spec = {.cols = SIDE, .rows = SIDE, .spacing_x_m = 1, .spacing_y_m = 1};
    float *heights = malloc(sizeof *heights * SIDE * SIDE);
    struct random random = {5};
    struct err err;

    if (!heights)
        fail("no memory");
    mesh_scene_make(MESH_SCENE_HILLS, TRIANGLES, 7, &s->soup);
    s->mesh = soup_mesh(&s->soup, &options, NULL);
    for (int i = 0; i < SIDE * SIDE; i++)
        heights[i] = (float)(20 * sin(i % SIDE / 20.0) * cos(i / SIDE / 13.0) +
                             random_in(&random, -0.2, 0.2));
    s->field = heightfield_create(&spec, heights, &err);
    free(heights);
    if (!s->field)
        fail(err.msg);
}

static void bullet_make(struct scene *s)
{
    struct peer_triangles triangles = {.vertex_count = s->soup.vertex_count,
                                       .corners = s->soup.corners,
                                       .triangle_count = s->soup.polygon_count};

    if (!&peer_bullet || s->soup.corner_count != 3 * s->soup.polygon_count)
        return;
    triangles.vertices = malloc(sizeof(float) * 3 * triangles.vertex_count);
    if (!triangles.vertices)
        fail("no memory");
    for (size_t i = 0; i < triangles.vertex_count; i++) {
        const struct vec3 v = s->soup.vertices[i];

        triangles.vertices[3 * i] = (float)v.x;
        triangles.vertices[3 * i + 1] = (float)v.y;
        triangles.vertices[3 * i + 2] = (float)v.z;
    }
    s->bullet = peer_bullet.create(&triangles);
}

/* A place on the ground in the middle of the mesh. */
static struct vec3 on_ground(const struct mesh *mesh, struct random *random)
{
    struct box3 box = mesh_bounds(mesh);
    struct mesh_contact floor;

    for (;;) {
        struct vec3 p = {random_in(random, box.min.x, box.max.x),
                         random_in(random, box.min.y, box.max.y), box.max.z + 1};

        if (mesh_floor(mesh, p, 0, &floor))
            return floor.point;
    }
}

static void ways_make(struct scene *s, bool is_throw)
{
    struct random random = {11};

    for (int i = 0; i < WAYS; i++) {
        struct vec3 from = on_ground(s->mesh, &random);
        double a = random_in(&random, 0, 2 * M_PI), length = random_in(&random, 1, 5);
        struct vec3 way = is_throw ? (struct vec3){60 * cos(a), 60 * sin(a), -80}
                                   : (struct vec3){length * cos(a), length * sin(a), 0};

        from.z += is_throw ? 40 : RADIUS * 2;
        const double n[6] = {from.x,         from.y,         from.z,
                             from.x + way.x, from.y + way.y, from.z + way.z};

        for (int k = 0; k < 6; k++)
            s->ways[6 * i + k] = (float)n[k];
    }
}

static void sweeps_ask(void *context, unsigned way)
{
    struct scene *s = context;
    const struct shape shape = {.kind = SHAPE_SPHERE, .radius_m = RADIUS};

    if (way == BULLET) {
        if (s->bullet)
            peer_bullet.spheres(s->bullet, s->ways, RADIUS, WAYS, s->fractions[BULLET]);
        return;
    }
    for (int i = 0; i < WAYS; i++) {
        const float *n = &s->ways[6 * i];
        struct sweep sweep;

        sweep_begin(&sweep, &shape, up, (struct vec3){(double)n[0], (double)n[1], (double)n[2]},
                    (struct vec3){(double)n[3], (double)n[4], (double)n[5]});
        mesh_sweep(s->mesh, &sweep);
        s->fractions[OWN][i] = (float)fmin(sweep.best.fraction, 1);
    }
}

static void sweeps_race(struct scene *s, bool is_throw)
{
    const struct bench_race race = {PEERS, ROUNDS, 1, WAYS, sweeps_ask, s};
    struct bench_time times[PEERS];
    unsigned differ = 0, touched = 0;

    ways_make(s, is_throw);
    bench_in_turns(&race, times);
    for (int i = 0; i < WAYS; i++) {
        touched += s->fractions[OWN][i] < 1;
        differ += s->bullet && fabsf(s->fractions[OWN][i] - s->fractions[BULLET][i]) > 1e-2F;
    }
    printf("  %s: %.0f ns, %u of %d touch", is_throw ? "throws" : "steps",
           1e9 * times[OWN].median_s, touched, WAYS);
    printf(s->bullet ? "; Bullet %.0f ns, %u differ\n" : "\n", 1e9 * times[BULLET].median_s,
           differ);
    if (differ > WAYS / 100)
        fail("Bullet's answers differ");
    if (s->bullet)
        bench_row_times("sweeps",
                        is_throw ? "spheres, thrown over hills" : "spheres, steps on hills",
                        peer_bullet.name(), &times[OWN], &times[BULLET], 0.7, NULL);
}

/* ---- moves ---------------------------------------------------------------------------------- */

static void ground_sweep(const void *of, struct sweep *sweep)
{
    const struct scene *s = of;

    if (s->is_field)
        heightfield_sweep(s->field, sweep);
    else
        mesh_sweep(s->mesh, sweep);
}

static void moves_make(struct scene *s)
{
    const struct move_ground ground = {ground_sweep, s};
    struct random random = {13};

    for (int i = 0; i < WAYS; i++) {
        struct move *m = &s->moves[i];
        struct ground_point point;
        struct vec3 p = on_ground(s->mesh, &random);
        double a = random_in(&random, 0, 2 * M_PI);
        struct moved moved;

        if (s->is_field) {
            p = (struct vec3){random_in(&random, 20, SIDE - 20), random_in(&random, 20, SIDE - 20),
                              0};
            heightfield_height(s->field, (struct vec2){p.x, p.y}, INTERPOLATION_TRIANGLE, &point);
            p.z = point.height_m;
        }
        *m = (struct move){.shape = {.kind = SHAPE_CAPSULE, .radius_m = 0.4, .height_m = 1.8},
                           .up = up,
                           .from = {p.x, p.y, p.z + 1.5},
                           .velocity = {0, 0, -1},
                           .dt_s = 1,
                           .slope_max_deg = 60,
                           .step_up_m = MOVE_STEP_UP_M,
                           .snap_down_m = MOVE_SNAP_DOWN_M};
        move_run(&ground, m, &moved); /* onto the floor */
        m->from = moved.to;
        m->velocity = (struct vec3){5 * cos(a), 5 * sin(a), 0};
        m->dt_s = 1.0 / 60;
    }
}

static void moves_ask(void *context, unsigned way)
{
    struct scene *s = context;
    const struct move_ground ground = {ground_sweep, s};

    for (int i = 0; i < WAYS; i++) {
        const struct move *m = &s->moves[i];
        const struct ray ray = {m->from, m->velocity, INFINITY};
        struct moved moved;
        struct ray_hit on_field;
        struct mesh_hit on_mesh;

        if (way == MOVES) {
            move_run(&ground, m, &moved);
            s->sum += moved.to.z;
        } else if (s->is_field) {
            s->sum +=
                heightfield_ray(s->field, &ray, RAY_CLOSEST, &on_field, NULL) ? on_field.t : 1;
        } else {
            s->sum += mesh_ray(s->mesh, &ray, RAY_CLOSEST, &on_mesh) ? on_mesh.t : 1;
        }
    }
}

static void moves_race(struct scene *s, bool is_field)
{
    const struct bench_race race = {PAIR, ROUNDS, 1, WAYS, moves_ask, s};
    struct bench_time times[PAIR];
    char note[96];

    s->is_field = is_field;
    moves_make(s);
    bench_in_turns(&race, times);
    snprintf(note, sizeof note, "%.0f and %.0f ns", 1e9 * times[MOVES].median_s,
             1e9 * times[RAYS].median_s);
    printf("  moves on a %s: %s\n", is_field ? "heightfield" : "mesh", note);
    bench_row_most("sweeps", is_field ? "a move on a heightfield" : "a move on hills",
                   "a closest ray", times[MOVES].median_s / times[RAYS].median_s, 12, note);
}

int main(void)
{
    static struct scene scene;

    printf("\nSweeps and moves, one at a time: %d of each\n", WAYS);
    scene_make(&scene);
    bullet_make(&scene);
    sweeps_race(&scene, false);
    sweeps_race(&scene, true);
    moves_race(&scene, false);
    moves_race(&scene, true);
    return scene.sum == 0;
}
