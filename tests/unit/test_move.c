/*
 * Shapes that walk: by hand on stairs, slopes, walls and ledges, and thousands of fast ones over
 * spikes, walls of a millimetre and dungeons: each way is judged by distances in long double.
 */
#include "terrain/sweep/move.h"

#include "support/long_form.h"
#include "support/mesh_oracle.h"
#include "support/mesh_scenes.h"
#include "support/sweep_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/field_make.h"

static const struct vec3 up = {0, 0, 1};

/* A heightfield and a mesh, either may be NULL. */
struct ground {
    struct heightfield *field;
    struct mesh *mesh;
};

static void ground_sweep(const void *of, struct sweep *s)
{
    const struct ground *ground = of;

    if (ground->field)
        heightfield_sweep(ground->field, s);
    if (ground->mesh)
        mesh_sweep(ground->mesh, s);
}

static struct moved run(const struct ground *ground, const struct move *move)
{
    const struct move_ground over = {ground_sweep, ground};
    struct moved moved;

    move_run(&over, move, &moved);
    return moved;
}

static struct move capsule_at(double x, double y, double z)
{
    return (struct move){.shape = {.kind = SHAPE_CAPSULE, .radius_m = 0.3, .height_m = 1.8},
                         .up = up,
                         .from = {x, y, z + 0.9},
                         .dt_s = 1,
                         .slope_max_deg = MOVE_SLOPE_DEG,
                         .step_up_m = MOVE_STEP_UP_M,
                         .snap_down_m = MOVE_SNAP_DOWN_M};
}

/* ---- by hand -------------------------------------------------------------------------------- */

/* From x0 on level ground of a height, so wide as the rest; the rise to it is vertical. */
struct tread {
    double x0, height;
};

static struct ground stairs(const struct tread *treads, int count, double end)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = {0, 0, -1}};

    for (int i = 0; i < count; i++) {
        double x1 = i + 1 < count ? treads[i + 1].x0 : end, x0 = treads[i].x0, z = treads[i].height;

        soup_add(&soup, (struct vec3[]){{x0, -9, z}, {x1, -9, z}, {x1, 9, z}, {x0, 9, z}}, 4);
        if (i + 1 < count) {
            double top = treads[i + 1].height;

            soup_add(&soup, (struct vec3[]){{x1, -9, z}, {x1, 9, z}, {x1, 9, top}, {x1, -9, top}},
                     4);
        }
    }
    struct ground ground = {.mesh = soup_mesh(&soup, &options, NULL)};

    soup_free(&soup);
    return ground;
}

/* Walks for some ticks of a sixtieth of a second; the last answer. */
static struct moved walk(const struct ground *ground, struct move *move, int ticks)
{
    struct moved moved = {.to = move->from};

    move->dt_s = 1.0 / 60;
    for (int i = 0; i < ticks; i++) {
        moved = run(ground, move);
        move->from = moved.to;
    }
    return moved;
}

static void steps_are_climbed_up_to_step_up(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        double height = 0.01 + 0.02 * i;
        struct ground ground = stairs((struct tread[]){{-9, 0}, {2, height}}, 2, 9);

        for (int fast = 0; fast < 2; fast++) {
            struct move move = capsule_at(0, 0, 0);
            struct moved end;

            move.velocity = (struct vec3){fast ? 300 : 3, 0, fast ? 0 : -1};
            end = walk(&ground, &move, fast ? 1 : 120);
            bool is_up = end.to.z > 0.9 + height - 0.01;

            if (is_up != (height <= move.step_up_m))
                fail_msg("a step of %g m, %s: at %g, %g", height, fast ? "fast" : "slow", end.to.x,
                         end.to.z);
            if (!end.is_grounded || fabs(end.to.z - 0.9 - (is_up ? height : 0)) > 1e-3)
                fail_msg("a step of %g m, %s: at %g, %g, grounded %d", height,
                         fast ? "fast" : "slow", end.to.x, end.to.z, end.is_grounded);
        }
        mesh_unref(ground.mesh);
    }
}

static void no_step_without_step_up(void **state)
{
    struct ground ground = stairs((struct tread[]){{-9, 0}, {2, 0.05}}, 2, 9);
    struct move move = capsule_at(0, 0, 0);

    (void)state;
    move.step_up_m = 0;
    move.velocity = (struct vec3){3, 0, -1};
    assert_true(walk(&ground, &move, 120).to.z < 0.901);
    assert_true(move.from.x < 2);
    mesh_unref(ground.mesh);
}

static void a_staircase_up_and_down(void **state)
{
    enum { STEPS = 12 };
    struct tread treads[STEPS + 1] = {{-9, 0}};

    (void)state;
    for (int i = 1; i <= STEPS; i++)
        treads[i] = (struct tread){1 + 0.3 * i, 0.2 * i};
    struct ground ground = stairs(treads, STEPS + 1, 20);
    struct move move = capsule_at(0, 0, 0);

    move.velocity = (struct vec3){2, 0, 0};
    struct moved end = walk(&ground, &move, 400);

    assert_true(end.is_grounded && fabs(end.to.z - 0.9 - 0.2 * STEPS) < 1e-3 && end.to.x > 8);
    move.velocity = (struct vec3){-2, 0, 0};
    for (int i = 0; i < 410; i++) {
        end = walk(&ground, &move, 1);
        assert_true(end.is_grounded);
    }
    if (fabs(end.to.z - 0.9) > 1e-3 || end.to.x > 0)
        fail_msg("it ends at %g, %g", end.to.x, end.to.z);
    mesh_unref(ground.mesh);
}

/* A plane through the Y axis that rises along x, from x = 0 on; level before. */
static struct ground slope(double degrees)
{
    struct heightfield_spec spec = {.cols = 41,
                                    .rows = 21,
                                    .origin_x_m = -20,
                                    .origin_y_m = -10,
                                    .spacing_x_m = 1,
                                    .spacing_y_m = 1};
    float heights[21 * 41];

    for (int i = 0; i < 21 * 41; i++)
        heights[i] = (float)(i % 41 < 20 ? 0 : (i % 41 - 20) * tan(degrees * M_PI / 180));
    return (struct ground){.field = field_make(&spec, heights)};
}

static void slopes_are_climbed_up_to_the_limit(void **state)
{
    (void)state;
    for (int degrees = 5; degrees < 90; degrees += 5) {
        struct ground ground = slope(degrees);
        struct move move = capsule_at(-2, 0.3, 0);

        move.velocity = (struct vec3){4, 0.5, -2};
        struct moved end = walk(&ground, &move, 120);
        bool is_up = end.to.z > 1.2;

        if (degrees != MOVE_SLOPE_DEG && is_up != (degrees < MOVE_SLOPE_DEG))
            fail_msg("a slope of %d degrees: at %g, %g", degrees, end.to.x, end.to.z);
        assert_true(end.is_grounded);
        assert_true(end.slope_deg <= MOVE_SLOPE_DEG + 1e-6);
        heightfield_unref(ground.field);
    }
}

static void nobody_creeps_down_where_he_can_stand(void **state)
{
    struct ground ground = slope(30);
    struct move move = capsule_at(5, 0, 5 * tan(M_PI / 6) + 0.2);

    (void)state;
    move.velocity = (struct vec3){0, 0, -5};
    struct vec3 rest = walk(&ground, &move, 10).to;
    struct vec3 later = walk(&ground, &move, 600).to;

    assert_true(vec3_length(vec3_sub(rest, later)) < 1e-3);
    heightfield_unref(ground.field);
}

static void nobody_stands_on_what_is_too_steep(void **state)
{
    struct ground ground = slope(65);
    struct move move = capsule_at(5, 0, 5 * tan(65 * M_PI / 180) + 1);
    struct moved end = {.is_grounded = false};

    (void)state;
    for (int i = 0; i < 20 && !end.is_grounded; i++) {
        move.velocity = (struct vec3){0, 0, -9};
        end = walk(&ground, &move, 10);
        assert_true(!end.is_grounded || end.floor.face.z > 0.99);
    }
    assert_true(end.is_grounded && end.to.z < 1.5); /* it has slid down to the level part */
    heightfield_unref(ground.field);
}

static void a_jump_is_no_step_and_does_not_snap(void **state)
{
    struct ground ground = stairs((struct tread[]){{-9, 0}, {2, 0.4}}, 2, 9);
    struct move move = capsule_at(0, 0, 0);

    (void)state;
    move.velocity = (struct vec3){0, 0, 0.3};
    struct moved end = run(&ground, &move);

    assert_true(!end.is_grounded && fabs(end.to.z - 1.2) < 1e-3);
    mesh_unref(ground.mesh);
}

static void where_it_begins_inside_it_stays(void **state)
{
    struct ground ground = slope(0);
    struct move move = capsule_at(-5, 0, -0.2);
    struct moved end;

    (void)state;
    move.velocity = (struct vec3){5, 0, 0};
    end = run(&ground, &move);
    assert_true(end.starts_inside && !end.is_grounded && end.hit_count == 1);
    assert_memory_equal(&end.to, &move.from, sizeof end.to);
    heightfield_unref(ground.field);
}

static void what_overlaps_a_little_is_pushed_out(void **state)
{
    struct ground ground = slope(20);

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct move move = capsule_at(5, 0, 5 * tan(20 * M_PI / 180) - 0.05);
        struct moved end;

        move.shape.kind = (enum shape_kind)kind;
        move.shape.half_m[0] = move.shape.half_m[1] = 0.05;
        move.shape.half_m[2] = 0.9;
        move.from.z -= kind == SHAPE_SPHERE ? 0.6 : 0;
        end = run(&ground, &move);
        assert_true(!end.starts_inside && end.is_grounded);
        assert_true(end.to.z > move.from.z && end.to.z < move.from.z + 0.2);
        move.from = end.to;
        assert_true(vec3_length(vec3_sub(run(&ground, &move).to, end.to)) < 1e-9);
    }
    heightfield_unref(ground.field);
}

static void claims_are_judged(void **state)
{
    struct ground ground = stairs((struct tread[]){{-9, 0}, {2, 0.4}, {4, 3}}, 3, 9);
    const struct move_ground over = {ground_sweep, &ground};
    struct move move = capsule_at(0, 0, 0);
    struct moved end;

    (void)state;
    move.velocity = (struct vec3){3, 0, 0};
    end = run(&ground, &move);
    assert_true(fabs(end.to.x - 3) < 1e-3 && fabs(end.to.z - 1.3) < 1e-3);
    assert_true(move_is_reachable(&over, &move, &end, end.to));
    assert_true(move_is_reachable(&over, &move, &end, (struct vec3){1.2, 0, 0.9}));
    assert_true(move_is_reachable(&over, &move, &end, (struct vec3){2.5, 0, 1.3}));
    assert_false(move_is_reachable(&over, &move, &end, (struct vec3){1.2, 0, 2.9})); /* it flies */
    assert_false(move_is_reachable(&over, &move, &end, (struct vec3){3.2, 0, 1.3})); /* too far */
    move.velocity = (struct vec3){20, 0, 0};
    end = run(&ground, &move);
    assert_true(end.to.x < 3.7);                                                   /* the wall */
    assert_false(move_is_reachable(&over, &move, &end, (struct vec3){6, 0, 3.9})); /* on it */
    assert_false(move_is_reachable(&over, &move, &end, (struct vec3){6, 0, 1.3})); /* in it */
    mesh_unref(ground.mesh);
}

/* ---- many, fast ----------------------------------------------------------------------------- */

struct arena {
    struct ground ground;
    struct vec3 (*triangles)[3];
    size_t count;
    struct vec3 low, high; /* where moves begin */
};

static void arena_soup(struct arena *arena, const struct soup *soup)
{
    struct mesh_options options = {.gravity = {0, 0, -1}};
    size_t count = 0;

    arena->ground.mesh = soup_mesh(soup, &options, NULL);
    arena->triangles =
        realloc(arena->triangles, (arena->count + soup->corner_count) * sizeof *arena->triangles);
    assert_non_null(arena->triangles);
    for (size_t i = 0; i < soup->polygon_count; i++)
        for (uint32_t k = soup->starts[i] + 2; k < soup->starts[i + 1]; k++, count++) {
            struct vec3 *t = arena->triangles[arena->count + count];

            t[0] = soup->vertices[soup->corners[soup->starts[i]]];
            t[1] = soup->vertices[soup->corners[k - 1]];
            t[2] = soup->vertices[soup->corners[k]];
        }
    arena->count += count;
}

static void arena_free(struct arena *arena)
{
    heightfield_unref(arena->ground.field);
    mesh_unref(arena->ground.mesh);
    free(arena->triangles);
}

/* Rooms: floors, ceilings, walls of a millimetre with doors. */
static struct arena dungeon(struct random *random)
{
    struct arena arena = {.low = {0, 0, 0.1}, .high = {20, 20, 5.5}};
    struct soup soup = {0};

    for (int storey = 0; storey < 3; storey++)
        for (int x = 0; x < 20; x += 4)
            for (int y = 0; y < 20; y += 4)
                if (storey == 0 || random_below(random, 6))
                    soup_square(&soup, x, y, 4, 3 * storey);
    for (int i = 0; i < 60; i++) {
        double x = 4 * random_below(random, 6), y = 4 * random_below(random, 6);
        double z = 3 * random_below(random, 2), high = random_below(random, 3) ? 3 : 0.4;
        bool is_x = random_below(random, 2);
        double ex = is_x ? 3 : 0, ey = is_x ? 0 : 3, dx = is_x ? 0 : 0.001, dy = is_x ? 0.001 : 0;

        for (int side = 0; side < 2; side++)
            soup_add(&soup,
                     (struct vec3[]){{x + side * dx, y + side * dy, z},
                                     {x + ex + side * dx, y + ey + side * dy, z},
                                     {x + ex + side * dx, y + ey + side * dy, z + high},
                                     {x + side * dx, y + side * dy, z + high}},
                     4);
    }
    arena_soup(&arena, &soup);
    soup_free(&soup);
    return arena;
}

/* Spikes, and loose triangles over them. */
static struct arena spikes(struct random *random)
{
    enum { SIDE = 21 };
    struct heightfield_spec spec = {.cols = SIDE, .rows = SIDE, .spacing_x_m = 1, .spacing_y_m = 1};
    struct arena arena = {.low = {0, 0, 0}, .high = {20, 20, 9}};
    struct soup soup = {0};
    float heights[SIDE * SIDE];

    for (int i = 0; i < SIDE * SIDE; i++)
        heights[i] = random_below(random, 3) ? (float)random_in(random, 0, 0.5)
                                             : (float)random_in(random, 0, 6);
    arena.ground.field = field_make(&spec, heights);
    arena.triangles = malloc(2 * SIDE * SIDE * sizeof *arena.triangles);
    assert_non_null(arena.triangles);
    for (int r = 0; r + 1 < SIDE; r++)
        for (int c = 0; c + 1 < SIDE; c++) {
            struct vec3 at[4];

            for (int i = 0; i < 4; i++)
                at[i] = (struct vec3){c + i % 2, r + i / 2,
                                      (double)heights[(r + i / 2) * SIDE + c + i % 2]};
            for (int k = 0; k < 2; k++, arena.count++) {
                arena.triangles[arena.count][0] = at[3 * k];
                arena.triangles[arena.count][1] = at[1];
                arena.triangles[arena.count][2] = at[2];
            }
        }
    for (int i = 0; i < 60; i++) {
        struct vec3 a = {random_in(random, 0, 20), random_in(random, 0, 20),
                         random_in(random, 1, 7)};

        soup_add(&soup,
                 (struct vec3[]){a, vec3_add(a, vec3_scale(oracle_direction(random), 2)),
                                 vec3_add(a, vec3_scale(oracle_direction(random), 2))},
                 3);
    }
    arena_soup(&arena, &soup);
    soup_free(&soup);
    return arena;
}

/* Is a triangle nowhere near a box around two places? */
static bool is_far(const struct vec3 t[3], struct vec3 a, struct vec3 b)
{
    enum { REACH = 3 }; /* metres, more than any shape has */

    return fmin(fmin(t[0].x, t[1].x), t[2].x) > fmax(a.x, b.x) + REACH ||
           fmax(fmax(t[0].x, t[1].x), t[2].x) < fmin(a.x, b.x) - REACH ||
           fmin(fmin(t[0].y, t[1].y), t[2].y) > fmax(a.y, b.y) + REACH ||
           fmax(fmax(t[0].y, t[1].y), t[2].y) < fmin(a.y, b.y) - REACH ||
           fmin(fmin(t[0].z, t[1].z), t[2].z) > fmax(a.z, b.z) + REACH ||
           fmax(fmax(t[0].z, t[1].z), t[2].z) < fmin(a.z, b.z) - REACH;
}

static double clearance(const struct arena *arena, const struct shape *shape, struct vec3 at)
{
    double least = INFINITY;

    for (size_t i = 0; i < arena->count; i++)
        if (!is_far(arena->triangles[i], at, at))
            least = fmin(least, oracle_clearance(shape, up, at, arena->triangles[i]));
    return least;
}

/* Is the straight way from one place to another free for a shape? */
static bool is_straight_free(const struct arena *arena, const struct shape *shape, struct vec3 from,
                             struct vec3 to)
{
    struct oracle_way way = {shape, up, from, to};

    for (size_t i = 0; i < arena->count; i++)
        if (!is_far(arena->triangles[i], from, to) &&
            oracle_sweep(&way, arena->triangles[i]).fraction < INFINITY)
            return false;
    return true;
}

struct tally {
    unsigned moves, grounded, touched, blocked;
};

static void check_end(const struct arena *arena, const struct move *move, const struct moved *moved,
                      uint64_t seed)
{
    double gap = clearance(arena, &move->shape, moved->to);

    if (!(gap >= MOVE_SKIN_M / 2))
        fail_msg("seed %llu: shape %d ends %g m from the ground", (unsigned long long)seed,
                 (int)move->shape.kind, gap);
    if (!moved->is_grounded)
        return;
    double least = INFINITY; /* is there a floor that it touches, and that is flat enough? */

    for (size_t i = 0; i < arena->count; i++) {
        const struct vec3 *t = arena->triangles[i];
        struct vec3 n = vec3_unit(vec3_cross(vec3_sub(t[1], t[0]), vec3_sub(t[2], t[0])));

        if (!is_far(t, moved->to, moved->to) &&
            fabs(n.z) >= cos((move->slope_max_deg + 1e-6) * M_PI / 180))
            least = fmin(least, oracle_clearance(&move->shape, up, moved->to, t));
    }
    if (!(least < 4 * MOVE_SKIN_M))
        fail_msg("seed %llu: it stands %g m over the nearest floor", (unsigned long long)seed,
                 least);
}

/* No way from one side of all ground to the other: a point's way that is left after a free one. */
static void check_no_tunnel(const struct arena *arena, const struct move *move,
                            const struct moved *moved, uint64_t seed, struct tally *tally)
{
    struct vec3 whole = vec3_scale(move->velocity, move->dt_s);

    if (moved->hit_count > 0)
        return;
    /* nothing was touched: then the whole straight way is free, but for the snap at its end */
    if (!is_straight_free(arena, &move->shape, move->from, vec3_add(move->from, whole)))
        fail_msg("seed %llu: it passed through the ground", (unsigned long long)seed);
    tally->blocked++;
}

static void many_moves(struct arena (*make)(struct random *random), unsigned count)
{
    struct random random = {29};
    struct tally tally = {0};

    for (int kind = 0; kind < 8; kind++) {
        struct arena arena = make(&random);

        for (unsigned i = 0; i < count / 8; i++) {
            struct move move = capsule_at(0, 0, 0);
            uint64_t seed = random.state;

            move.shape.kind = (enum shape_kind)random_below(&random, 3);
            move.shape.radius_m = random_in(&random, 0.05, 0.5);
            move.shape.height_m = 2 * move.shape.radius_m + random_in(&random, 0, 1.5);
            for (int k = 0; k < 3; k++)
                move.shape.half_m[k] = random_in(&random, 0.05, 0.8);
            move.shape.yaw_deg = random_in(&random, 0, 360);
            move.from = (struct vec3){random_in(&random, arena.low.x, arena.high.x),
                                      random_in(&random, arena.low.y, arena.high.y),
                                      random_in(&random, arena.low.z, arena.high.z)};
            move.velocity = vec3_scale(oracle_direction(&random),
                                       exp(random_in(&random, log(0.01), log(1000))));
            if (random_below(&random, 2))
                move.velocity.z = 0;
            if (random_below(&random, 4) == 0)
                move.snap_down_m = 0;
            if (random_below(&random, 4) == 0)
                move.step_up_m = 0;
            if (clearance(&arena, &move.shape, move.from) < 2 * MOVE_SKIN_M)
                continue;
            struct moved moved = run(&arena.ground, &move);

            assert_false(moved.starts_inside);
            check_end(&arena, &move, &moved, seed);
            if (vec3_length(vec3_scale(move.velocity, move.dt_s)) < 30)
                check_no_tunnel(&arena, &move, &moved, seed, &tally);
            tally.moves++;
            tally.grounded += moved.is_grounded;
            tally.touched += moved.hit_count > 0;
        }
        arena_free(&arena);
    }
    print_message("%u moves, %u touched, %u ended on a floor, %u judged straight\n", tally.moves,
                  tally.touched, tally.grounded, tally.blocked);
    assert_true(tally.moves > count / 5);
    assert_true(tally.touched > tally.moves / 4);
}

static void fast_moves_in_a_dungeon(void **state)
{
    (void)state;
    many_moves(dungeon, long_form(60000, 2000));
}

static void fast_moves_over_spikes(void **state)
{
    (void)state;
    many_moves(spikes, long_form(60000, 2000));
}

/* Ten thousand ticks at a running pace, with gravity, a new direction now and then. */
static void a_walk_of_ten_thousand_steps(void **state)
{
    struct random random = {31};

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct arena arena = kind ? dungeon(&random) : spikes(&random);
        struct move move = capsule_at(10, 10, 8);
        struct moved last = {.is_grounded = false};
        double course = 0, way = 0;

        move.dt_s = 1.0 / 60;
        for (int i = 0; i < 5000; i++) {
            if (i % 40 == 0)
                course = random_in(&random, 0, 2 * M_PI);
            if (fabs(move.from.x - 10) > 9 || fabs(move.from.y - 10) > 9) /* back from the rim */
                course = atan2(10 - move.from.y, 10 - move.from.x);
            move.velocity = (struct vec3){5 * cos(course), 5 * sin(course), -4};
            struct moved moved = run(&arena.ground, &move);
            double rise = moved.floor.point.z - last.floor.point.z;

            if (moved.starts_inside)
                fail_msg("step %d begins inside", i);
            check_end(&arena, &move, &moved, (uint64_t)i);
            /* up by a step or by a slope, which is no longer than the way */
            if (moved.is_grounded && last.is_grounded &&
                rise > move.step_up_m + 0.1 * tan(MOVE_SLOPE_DEG * M_PI / 180) + 1e-3)
                fail_msg("step %d rises by %g m", i, rise);
            way += vec3_length(vec3_sub(moved.to, move.from));
            move.from = moved.to;
            last = moved;
        }
        print_message("%g m walked\n", way);
        assert_true(way > 50);
        arena_free(&arena);
    }
}

/* Up turns with each step, and the capsule with it: it stays on its feet, and free. */
static void a_walk_round_a_planet(void **state)
{
    enum { ROUND = 72, HIGH = 36 };
    struct mesh_options options = {.space = {MESH_SPHERICAL, .is_outward = false}};
    struct random random = {32};
    struct soup soup = {0};
    static struct vec3 at[HIGH][ROUND];
    unsigned grounded = 0;

    (void)state;
    for (int j = 0; j < HIGH; j++)
        for (int i = 0; i < ROUND; i++) {
            double r = random_in(&random, 30, 30.8), a = 2 * M_PI * i / ROUND;
            double b = M_PI * (j + 0.5) / HIGH - M_PI / 2;

            at[j][i] = (struct vec3){r * cos(a) * cos(b), r * sin(a) * cos(b), r * sin(b)};
        }
    for (int i = 0; i < ROUND; i++) {
        int next = (i + 1) % ROUND;

        for (int j = 0; j + 1 < HIGH; j++) {
            soup_add(&soup, (struct vec3[]){at[j][i], at[j][next], at[j + 1][i]}, 3);
            soup_add(&soup, (struct vec3[]){at[j][next], at[j + 1][next], at[j + 1][i]}, 3);
        }
        soup_add(&soup, (struct vec3[]){at[0][i], at[0][next], {0, 0, -30.4}}, 3);
        soup_add(&soup, (struct vec3[]){at[HIGH - 1][i], at[HIGH - 1][next], {0, 0, 30.4}}, 3);
    }
    struct ground ground = {.mesh = soup_mesh(&soup, &options, NULL)};
    struct move move = capsule_at(0, 0, 0);
    struct vec3 north = {0.1, 0.2, 0.97};

    move.from = (struct vec3){33, 0, 0};
    move.dt_s = 1.0 / 30;
    for (int i = 0; i < 3000; i++) {
        move.up = vec3_unit(move.from);
        if (i % 300 == 0)
            north = oracle_direction(&random);
        move.velocity =
            vec3_add(vec3_scale(vec3_unit(vec3_cross(north, move.up)), 5), vec3_scale(move.up, -5));
        struct moved moved = run(&ground, &move);

        if (moved.starts_inside)
            fail_msg("step %d begins inside", i);
        double height = vec3_length(moved.to);

        if (!(height > 30 && height < 34))
            fail_msg("step %d ends at %g, %g, %g", i, moved.to.x, moved.to.y, moved.to.z);
        grounded += moved.is_grounded;
        move.from = moved.to;
    }
    print_message("%u of 3000 steps on the ground\n", grounded);
    assert_true(grounded > 2500);
    mesh_unref(ground.mesh);
    soup_free(&soup);
}

/* Boxes closed on all sides: nobody leaves them, however fast and however often he tries. */
static void nobody_leaves_a_closed_room(void **state)
{
    struct random random = {30};
    struct soup soup = {0};
    struct mesh_options options = {.gravity = {0, 0, -1}};
    static const int sides[6][4] = {{0, 1, 3, 2}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                    {2, 3, 7, 6}, {0, 2, 6, 4}, {1, 3, 7, 5}};

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct vec3 at[4];

        for (int k = 0; k < 4; k++)
            at[k] = (struct vec3){sides[i][k] & 1 ? 5 : -5, sides[i][k] & 2 ? 4 : -4,
                                  sides[i][k] & 4 ? 3 : 0};
        soup_add(&soup, at, 4);
    }
    /* and within it a thicket of walls that meet at all angles */
    for (int i = 0; i < 30; i++) {
        double x = random_in(&random, -5, 5), y = random_in(&random, -4, 4);
        double a = random_in(&random, 0, 2 * M_PI);

        soup_add(&soup,
                 (struct vec3[]){{x, y, 0},
                                 {x + cos(a), y + sin(a), 0},
                                 {x + cos(a), y + sin(a), random_in(&random, 0.2, 3)}},
                 3);
    }
    struct ground ground = {.mesh = soup_mesh(&soup, &options, NULL)};
    unsigned count = long_form(500000, 14000);

    for (unsigned i = 0; i < count; i++) {
        static struct move move;

        if (i % (count / 2) == 0) { /* a capsule, then a sphere */
            move = capsule_at(0, 0, 0.5);
            move.shape.kind = i == 0 ? SHAPE_CAPSULE : SHAPE_SPHERE;
        }
        move.velocity =
            vec3_scale(oracle_direction(&random), exp(random_in(&random, log(0.01), log(1e4))));
        if (i % 3)
            move.velocity.z = 0;
        struct moved moved = run(&ground, &move);

        if (moved.starts_inside || fabs(moved.to.x) > 5 - 0.3 || fabs(moved.to.y) > 4 - 0.3 ||
            moved.to.z < 0.3 || moved.to.z > 3 - 0.3)
            fail_msg("move %u ends at %g, %g, %g%s", i, moved.to.x, moved.to.y, moved.to.z,
                     moved.starts_inside ? ", where it began within a wall" : "");
        move.from = moved.to;
    }
    mesh_unref(ground.mesh);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_climbed_up_to_step_up),
        cmocka_unit_test(no_step_without_step_up),
        cmocka_unit_test(a_staircase_up_and_down),
        cmocka_unit_test(slopes_are_climbed_up_to_the_limit),
        cmocka_unit_test(nobody_creeps_down_where_he_can_stand),
        cmocka_unit_test(nobody_stands_on_what_is_too_steep),
        cmocka_unit_test(a_jump_is_no_step_and_does_not_snap),
        cmocka_unit_test(where_it_begins_inside_it_stays),
        cmocka_unit_test(what_overlaps_a_little_is_pushed_out),
        cmocka_unit_test(claims_are_judged),
        cmocka_unit_test(fast_moves_in_a_dungeon),
        cmocka_unit_test(fast_moves_over_spikes),
        cmocka_unit_test(a_walk_of_ten_thousand_steps),
        cmocka_unit_test(a_walk_round_a_planet),
        cmocka_unit_test(nobody_leaves_a_closed_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
