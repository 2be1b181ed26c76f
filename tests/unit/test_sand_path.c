/*
 * Bodies on a path, and the forces of granules on bodies.
 *
 * The balance of a shovel that is driven through sand: nothing falls asleep and there is no drag,
 * so what changes the momentum of the granules is gravity, bed and walls, and the shovel. The
 * forces of bed and walls are computed here once more, in double, from the state before each
 * substep and the springs after it; those between granules cancel. So the shovel's force, by what
 * the engine reports, must be what is left, and its torque as well, about the slot's origin.
 */
#include "sand/engine.h"
#include "sand/material.h"
#include "sand/path.h"
#include "sand/engine_c/solver_data.h"

#include "support/sand_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "support/near.h"

#define SIDE_M 4.2f

enum { POSES_MAX = 4, GRANULES = 620 };

static struct sand_path *path_of(const struct sand_path_pose *poses, uint32_t count)
{
    struct sand_path *path = calloc(1, sizeof(*path) + count * sizeof(*poses));

    assert_non_null(path);
    path->count = count;
    memcpy(path->poses, poses, count * sizeof(*poses));
    return path;
}

/* ---- poses ----------------------------------------------------------------------------------- */

static void a_path_is_a_line_and_a_slerp(void **state)
{
    const double s = sqrt(0.5);
    const struct sand_path_pose poses[] = {{1, {0, 0, 1}, {0, 0, 0, 1}},
                                           {3, {4, 0, 1}, {0, 0, s, s}},    /* a quarter about z */
                                           {4, {4, 2, 1}, {0, 0, -s, -s}}}; /* the same */
    struct sand_path *path = path_of(poses, 3);
    struct sand_pose pose;

    (void)state;
    path->origin[0] = 10;
    path->center[0] = 0.5;
    sand_path_at(path, 0.5, 0.01, &pose);
    assert_near(pose.x[0], -9.5, 1e-6);
    assert_near(pose.v[0], 0, 1e-9);
    sand_path_at(path, 2, 1e-3, &pose); /* half of the way: 45 degrees */
    assert_near(pose.x[0], 2 + 0.5 * s - 10, 1e-6);
    assert_near(pose.x[1], 0.5 * s, 1e-6);
    assert_near(pose.q[2], sin(M_PI / 8), 1e-6);
    assert_near(pose.w[2], M_PI / 4, 1e-4);
    assert_near(pose.v[0], 2 - 0.5 * s * M_PI / 4, 1e-3);
    assert_near(pose.v[1], 0.5 * s * M_PI / 4, 1e-3);
    sand_path_at(path, 3.5, 1e-3, &pose); /* q and -q are one orientation: nothing turns */
    assert_near(pose.w[2], 0, 1e-6);
    assert_near(pose.v[1], 2, 1e-3);
    sand_path_at(path, 9, 1e-3, &pose);
    assert_near(pose.x[1], 2 + 0.5, 1e-6);
    assert_near(pose.v[1], 0, 1e-9);
    assert_near(sand_path_end_s(path), 4, 0);
    free(path);
}

/* Steps of the velocities that are given end where the path does. */
static void velocities_lead_from_pose_to_pose(void **state)
{
    const struct sand_path_pose poses[] = {{0, {1, 2, 3}, {0.5, 0.5, 0.5, 0.5}},
                                           {0.3, {1.5, 2, 2}, {0, 0.6, 0, 0.8}},
                                           {1, {2, 1, 2.5}, {0.48, 0.6, 0, 0.64}}};
    struct sand_path *path = path_of(poses, 3);
    const double dt_s = 1.0 / 960;
    struct sand_pose pose, end;
    double x[3], q[4];

    (void)state;
    sand_path_at(path, 0, dt_s, &pose);
    for (int i = 0; i < 4; i++)
        q[i] = pose.q[i];
    for (int i = 0; i < 3; i++)
        x[i] = pose.x[i];
    for (int k = 1; k <= 960; k++) {
        double size, half, turn[4], next[4];

        sand_path_at(path, k * dt_s, dt_s, &pose);
        size = sqrt((double)pose.w[0] * pose.w[0] + (double)pose.w[1] * pose.w[1] +
                    (double)pose.w[2] * pose.w[2]);
        half = 0.5 * size * dt_s;
        for (int i = 0; i < 3; i++) {
            x[i] += dt_s * (double)pose.v[i];
            turn[i] = size > 0 ? sin(half) * (double)pose.w[i] / size : 0;
        }
        turn[3] = cos(half);
        next[0] = turn[3] * q[0] + turn[0] * q[3] + turn[1] * q[2] - turn[2] * q[1];
        next[1] = turn[3] * q[1] - turn[0] * q[2] + turn[1] * q[3] + turn[2] * q[0];
        next[2] = turn[3] * q[2] + turn[0] * q[1] - turn[1] * q[0] + turn[2] * q[3];
        next[3] = turn[3] * q[3] - turn[0] * q[0] - turn[1] * q[1] - turn[2] * q[2];
        memcpy(q, next, sizeof(q));
    }
    sand_path_at(path, 1, dt_s, &end);
    for (int i = 0; i < 3; i++)
        assert_near(x[i], end.x[i], 1e-5);
    for (int i = 0; i < 4; i++)
        assert_near(fabs(q[i]), fabs((double)end.q[i]), 1e-5);
    free(path);
}

/* ---- on the engine --------------------------------------------------------------------------- */

/* A plate of 0.9 by 0.9 m, two particles thick. */
static void plate(struct sand_cube *out)
{
    uint32_t count = 0;

    for (int z = 0; z < 9; z++)
        for (int y = 0; y < 9; y++)
            for (int x = 0; x < 2; x++) {
                out->offset_m[count][0] = 0.1f * ((float)x - 0.5f);
                out->offset_m[count][1] = 0.1f * ((float)y - 4);
                out->offset_m[count++][2] = 0.1f * ((float)z - 4);
            }
    out->shape =
        (struct sand_shape){.offsets_m = (const float(*)[3])out->offset_m, .particles = count};
}

/* In from above, through the sand while it turns, and out. */
static struct sand_path *shovel(void)
{
    const double c = cos(0.3), s = sin(0.3);
    const struct sand_path_pose poses[POSES_MAX] = {{0, {1.0, 2.1, 2.6}, {0, 0, 0, 1}},
                                                    {0.8, {1.1, 2.1, 1.15}, {0, 0, 0, 1}},
                                                    {2.0, {2.2, 2.2, 1.1}, {0, s, 0, c}},
                                                    {2.6, {2.3, 2.1, 2.8}, {0, 0, 0, 1}}};

    return path_of(poses, POSES_MAX);
}

struct momentum {
    double p[3], l[3]; /* linear; angular about the slot's origin */
};

static void momentum_of(const struct granule *granules, uint32_t count,
                        const struct granular_params *params, struct momentum *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t g = 0; g < count; g++) {
        const float *x = granules[g].x, *v = granules[g].v;

        for (int i = 0; i < 3; i++) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;

            out->p[i] += (double)params->mass_kg * v[i];
            out->l[i] += (double)params->mass_kg * ((double)x[j] * v[k] - (double)x[k] * v[j]) +
                         (double)params->inertia * granules[g].w[i];
        }
    }
}

/* Adds a force at a place, during dt. */
static void push_at(struct momentum *m, const double x[3], const double f[3], double dt_s)
{
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;

        m->p[i] += f[i] * dt_s;
        m->l[i] += (x[j] * f[k] - x[k] * f[j]) * dt_s;
    }
}

/*
 * What the shovel does in one substep, by what the engine says: its force acts at its centre, its
 * torque is added. pose: before the substep.
 */
static void push_of_body(struct momentum *m, const struct sand_pose *pose,
                         const struct sand_forces *before, const struct sand_forces *after,
                         double dt_s)
{
    double x[3], f[3];

    for (int i = 0; i < 3; i++) {
        x[i] = pose->x[i];
        f[i] = -(after->force_n[i] - before->force_n[i]);
        m->l[i] -= (after->torque_nm[i] - before->torque_nm[i]) * dt_s;
    }
    push_at(m, x, f, dt_s);
}

/* |a - b| as a part of |of|. */
static double part(const double a[3], const double b[3], const double of[3])
{
    double square = 0, all = 0;

    for (int i = 0; i < 3; i++) {
        square += (a[i] - b[i]) * (a[i] - b[i]);
        all += of[i] * of[i];
    }
    return sqrt(square / all);
}

/* ---- bed and walls once more ----------------------------------------------------------------- */

/* State before a substep. */
struct before {
    float position[GRANULES * GRANULE_SPHERES][4];
    struct granule granules[GRANULES];
};

/* One contact of a granule with bed or wall: the law of solver_step.c, in double. */
static void ground_contact(const struct slot *slot, const struct before *before, uint32_t g,
                           const struct granule_list *list, uint32_t e, struct momentum *m)
{
    static const double inward[5][3] = {{0, 0, 1}, {1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}};
    const struct granular_params *params = &slot->params;
    const uint32_t partner = list->entry[e] & ENTRY_PARTNER, which = partner - ENTRY_BED;
    const float *own = before->position[GRANULE_SPHERES * g + (list->entry[e] >> ENTRY_OWN_SHIFT)];
    const struct granule *granule = &before->granules[g];
    const double *n = inward[which], r = (double)params->radius_m;
    const double gap = which == 0   ? (double)own[2] - (double)slot->bed_m[0]
                       : which == 1 ? (double)own[0]
                       : which == 2 ? (double)slot->box.size[0] - (double)own[0]
                       : which == 3 ? (double)own[1]
                                    : (double)slot->box.size[1] - (double)own[1];
    const double xi = fmin(r - gap, r), root = sqrt(fmax(xi, 0));
    const double k_t = (double)params->tangent_stiffness * (double)params->stiffness * root;
    const double g_t =
        (double)params->tangent_damping * (double)params->damping * fmin(root, sqrt(0.02 * r));
    double at[3], arm[3], u[3], un = 0, fn, f[3];

    if (!(xi > 0))
        return;
    for (int i = 0; i < 3; i++) {
        at[i] = (double)own[i] - n[i] * (r - xi / 2);
        arm[i] = at[i] - (double)granule->x[i];
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;

        u[i] =
            (double)granule->v[i] + (double)granule->w[j] * arm[k] - (double)granule->w[k] * arm[j];
        un += u[i] * n[i];
    }
    fn = fmax((double)params->stiffness * xi * root - (double)params->damping * root * un, 0);
    for (int i = 0; i < 3; i++) /* the spring is such that this is the force, also where it slips */
        f[i] = fn * n[i] - k_t * (double)list->spring[i][e] - g_t * (u[i] - un * n[i]);
    push_at(m, at, f, (double)params->dt_s);
}

static void push_of_ground(const struct slot *slot, const struct before *before, struct momentum *m)
{
    for (uint32_t g = 0; g < slot->granules; g++)
        for (uint32_t e = 0; e < slot->listed[g]; e++)
            if ((slot->granule_list[g].entry[e] & ENTRY_PARTNER) >= ENTRY_BED)
                ground_contact(slot, before, g, &slot->granule_list[g], e, m);
}

/* ---- the balance ----------------------------------------------------------------------------- */

static struct granular_params undamped(void)
{
    struct granular_params params;

    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    params.drag_linear = params.drag_angular = 0;
    params.sleep_after_s = INFINITY;
    return params;
}

static void a_shovel_balances_with_the_granules_momentum(void **state)
{
    static struct granule granules[GRANULES];
    static struct before before;
    static struct sand_cube blade;
    const struct granular_params params = undamped();
    struct sand_engine *engine = sand_make(&params, 2);
    struct sand_path *path = shovel();
    const double dt_s = (double)params.dt_s;
    const struct slot *slot = &solver_of(engine)->slot[0];
    struct momentum start, end, by_body = {{0}, {0}}, other = {{0}, {0}}, got;
    struct sand_pose pose = {0};
    struct sand_status status;
    struct err err;
    uint32_t body;
    double work = 0;

    (void)state;
    plate(&blade);
    blade.shape.path = path;
    sand_flat(engine, 0, SIDE_M, 4, sand_earth);
    sand_put(engine, 0, granules, sand_lattice(granules, &params, SIDE_M, 0.1f, GRANULES, 8));
    sand_frames(engine, 1, 60);
    assert_int_equal(sand_body_add(engine, 0, &blade.shape, &pose, &body, &err), ERR_OK);
    sand_granules_read(engine, 0, granules);
    momentum_of(granules, GRANULES, &params, &start);
    status = sand_status(engine, 0);
    for (uint32_t k = 0; k < (uint32_t)(2.7 / dt_s); k++) {
        const struct sand_status was = status;
        const float weight[3] = {0, 0, -9.81f * params.mass_kg};

        memcpy(before.position, slot->position, sizeof(before.position));
        sand_granules_read(engine, 0, before.granules);
        sand_substeps(engine, 1, 1);
        status = sand_status(engine, 0);
        push_of_body(&by_body, &was.pose[0], &was.forces[0], &status.forces[0], dt_s);
        push_of_ground(slot, &before, &other);
        for (uint32_t g = 0; g < GRANULES; g++) {
            const float *x = before.granules[g].x;

            push_at(&other, (const double[3]){x[0], x[1], x[2]},
                    (const double[3]){weight[0], weight[1], weight[2]}, dt_s);
        }
        for (int i = 0; i < 3; i++)
            work -= (status.forces[0].force_n[i] - was.forces[0].force_n[i]) *
                    (double)was.pose[0].v[i] * dt_s;
    }
    sand_granules_read(engine, 0, granules);
    momentum_of(granules, GRANULES, &params, &end);
    for (int i = 0; i < 3; i++) {
        got.p[i] = end.p[i] - start.p[i] - other.p[i];
        got.l[i] = end.l[i] - start.l[i] - other.l[i];
    }
    print_message(
        "# the shovel gave %.1f %.1f %.1f N s, the granules got %.1f %.1f %.1f; about the "
        "origin %.1f %.1f %.1f and %.1f %.1f %.1f N m s; %.0f J of work\n",
        by_body.p[0], by_body.p[1], by_body.p[2], got.p[0], got.p[1], got.p[2], by_body.l[0],
        by_body.l[1], by_body.l[2], got.l[0], got.l[1], got.l[2], work);
    assert_true(hypot(by_body.p[0], by_body.p[2]) > 100); /* it did push */
    assert_true(work > 100);
    assert_true(part(by_body.p, got.p, got.p) < 0.02);
    assert_true(part(by_body.l, got.l, got.l) < 0.02);
    sand_engine_destroy(engine);
    free(path);
}

/* What lies on sand is carried by it: the mean force is its weight, the mean torque nothing. */
static void sand_carries_what_lies_on_it(void **state)
{
    static struct granule granules[GRANULES];
    static struct sand_cube cube;
    struct granular_params params;
    struct sand_status first, last;
    struct sand_engine *engine;
    struct sand_pose pose = sand_pose(1.4f, 1.4f, 3.2f);
    double weight, force[3];
    struct err err;
    uint32_t body;

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    engine = sand_make(&params, 2);
    sand_cube(&params, 0.8f, 1500, &cube);
    weight = 9.81 * (double)cube.shape.mass_kg;
    sand_flat(engine, 0, 2.8f, 4, sand_earth);
    sand_put(engine, 0, granules, sand_lattice(granules, &params, 2.8f, 0.1f, 260, 8));
    sand_frames(engine, 1, 90);
    assert_int_equal(sand_body_add(engine, 0, &cube.shape, &pose, &body, &err), ERR_OK);
    sand_frames(engine, 1, 150);
    first = sand_status(engine, 0);
    sand_frames(engine, 1, 30);
    last = sand_status(engine, 0);
    for (int i = 0; i < 3; i++)
        force[i] = (last.forces[0].force_n[i] - first.forces[0].force_n[i]) /
                   (last.forces[0].substeps - first.forces[0].substeps);
    print_message("# %.0f %.0f %.0f N carry %.0f N\n", force[0], force[1], force[2], weight);
    assert_near(force[2], weight, 0.1 * weight);
    assert_near(hypot(force[0], force[1]), 0, 0.1 * weight);
    sand_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_a_line_and_a_slerp),
        cmocka_unit_test(velocities_lead_from_pose_to_pose),
        cmocka_unit_test(a_shovel_balances_with_the_granules_momentum),
        cmocka_unit_test(sand_carries_what_lies_on_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
