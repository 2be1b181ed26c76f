/*
 * The physics of one contact and of few granules, against what can be computed by hand or by an
 * ordinary differential equation. All lengths are those of r = 0.1 m.
 */
#include "sand/engine.h"
#include "sand/material.h"

#include "support/sand_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "support/near.h"

/* How much of a test: the short form is for engines slower than that in C. */
#ifndef contact_form
#define contact_form(most, few) (most)
#endif

/* ---- impact ---------------------------------------------------------------------------------- */

struct impact {
    double restitution, overlap_m, duration_s;
};

/* Two spheres meet head-on with relative speed v; force at the start of a step from its start. */
static struct impact collide(const struct granular_params *params, float v)
{
    struct sand_engine *engine = sand_make(params, 1);
    const float r = params->radius_m;
    struct granule pair[2] = {sand_granule(2, 2, 2, NULL), sand_granule(2 + 2.02f * r, 2, 2, NULL)};
    struct impact impact = {0, 0, 0};
    double first = -1, last = -1, before = 0.02 * r, step = params->dt_s;

    pair[0].v[0] = v / 2;
    pair[1].v[0] = -v / 2;
    sand_flat(engine, 0, 4, 4, sand_weightless);
    sand_put(engine, 0, pair, 2);
    for (int k = 0; k < 100000 && last < 0; k++) {
        double gap;

        sand_substeps(engine, 1, 1);
        sand_granules_read(engine, 0, pair);
        gap = (double)pair[1].x[0] - pair[0].x[0] - 2 * r;
        impact.overlap_m = fmax(impact.overlap_m, -gap);
        /* the moment of touch, between two steps */
        if (first < 0 && gap < 0)
            first = step * (k + 1 + gap / (before - gap));
        if (first >= 0 && gap > 0)
            last = step * (k + 1 - gap / (gap - before));
        before = gap;
    }
    sand_substeps(engine, 1, 1);
    sand_granules_read(engine, 0, pair);
    impact.duration_s = last - first;
    impact.restitution = ((double)pair[1].v[0] - pair[0].v[0]) / v;
    sand_engine_destroy(engine);
    return impact;
}

static void an_elastic_impact_is_that_of_hertz(void **state)
{
    struct granular_params params = sand_spheres(1e-4f);
    double v = 1, mass, overlap;
    struct impact impact;

    (void)state;
    params.damping = 0;
    mass = params.mass_kg / 2;
    overlap = pow(5 * mass * v * v / (4 * (double)params.stiffness), 0.4);
    impact = collide(&params, (float)v);
    assert_near(impact.restitution, 1, 0.01);
    assert_near(impact.overlap_m, overlap, 0.01 * overlap);
    assert_near(impact.duration_s, 2.943 * overlap / v, 0.01 * 2.943 * overlap / v);
}

/* The same law as a differential equation, in steps of 1 microsecond. */
static double restitution_exact(const struct granular_params *params, double v)
{
    const double mass = params->mass_kg / 2, dt = 1e-6;
    double xi = 0, rate = v;

    do {
        double root = sqrt(fmax(xi, 0));
        double f = fmax(params->stiffness * xi * root + params->damping * root * rate, 0);

        rate -= dt * f / mass;
        xi += dt * rate;
    } while (xi > 0);
    return -rate / v;
}

/* At the working step, damped as sand is, 4 m/s would be 0.015 off: the contact lasts 13 steps. */
static void a_damped_impact_follows_its_equation(void **state)
{
    static const struct {
        float damping, speed;
    } cases[] = {{5e3f, 4}, {1e4f, 2}, {2e4f, 1}};

    (void)state;
    for (size_t i = 0; i < contact_form(sizeof cases / sizeof *cases, 1); i++) {
        struct granular_params fine = sand_spheres(1e-4f), work = sand_spheres(1.0f / 960);
        double exact;

        fine.damping = work.damping = cases[i].damping;
        exact = restitution_exact(&fine, cases[i].speed);
        assert_near(collide(&fine, cases[i].speed).restitution, exact, 0.005);
        assert_near(collide(&work, cases[i].speed).restitution, exact, 0.01);
    }
}

/* ---- inclines: gravity is turned, the bed is flat -------------------------------------------- */

static double sphere_acceleration(double angle_rad, float friction)
{
    struct granular_params params = sand_spheres(1.0f / 960);
    const float gravity[3] = {(float)(9.81 * sin(angle_rad)), 0, (float)(-9.81 * cos(angle_rad))};
    struct sand_engine *engine;
    struct granule ball;
    double press, v0;

    params.friction = friction;
    engine = sand_make(&params, 1);
    press = pow(-params.mass_kg * (double)gravity[2] / params.stiffness, 2.0 / 3);
    ball = sand_granule(2, 3, (float)(params.radius_m - press), NULL);
    sand_flat(engine, 0, 6, 1, gravity);
    sand_put(engine, 0, &ball, 1);
    sand_substeps(engine, 1, 240); /* the contact finds its balance */
    sand_granules_read(engine, 0, &ball);
    v0 = ball.v[0];
    sand_substeps(engine, 1, 480);
    sand_granules_read(engine, 0, &ball);
    sand_engine_destroy(engine);
    return (ball.v[0] - v0) / (480.0 / 960);
}

static void a_sphere_rolls_on_a_slight_incline(void **state)
{
    static const double degrees[] = {20, 5, 45};

    (void)state;
    for (size_t i = 0; i < contact_form(sizeof degrees / sizeof *degrees, 1); i++) {
        double angle = degrees[i] * M_PI / 180, rolling = 5.0 / 7 * 9.81 * sin(angle);

        assert_near(sphere_acceleration(angle, 0.5f), rolling, 0.02 * rolling);
    }
}

static void a_sphere_slips_on_a_steep_one(void **state)
{
    double angle = 60 * M_PI / 180, slipping = 9.81 * (sin(angle) - 0.3 * cos(angle));

    (void)state;
    assert_near(sphere_acceleration(angle, 0.3f), slipping, 0.01 * slipping);
}

/* A granule on three of its spheres; the fourth is above. */
static struct granule granule_on_its_face(const struct granular_params *params)
{
    /* turns (1,1,1) up: about (1,-1,0) / sqrt(2) by acos(1/sqrt(3)) */
    const double half = acos(1 / sqrt(3)) / 2;
    struct granule granule =
        sand_granule(3, 3, params->radius_m * (1 + (float)(sqrt(1.5) / 3)) - 0.001f, NULL);

    granule.q[0] = (float)(sin(half) / sqrt(2));
    granule.q[1] = (float)(-sin(half) / sqrt(2));
    granule.q[3] = (float)cos(half);
    return granule;
}

static void a_granule_sticks_on_an_incline(void **state)
{
    const double angle = 20 * M_PI / 180;
    const float gravity[3] = {(float)(9.81 * sin(angle)), 0, (float)(-9.81 * cos(angle))};
    struct granular_params params;
    struct granule then, now;
    struct sand_engine *engine;

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    params.sleep_after_s = INFINITY; /* friction must do it */
    params.drag_linear = params.drag_angular = 0;
    engine = sand_make(&params, 1);
    then = granule_on_its_face(&params);
    sand_flat(engine, 0, 6, 1, gravity);
    sand_put(engine, 0, &then, 1);
    sand_frames(engine, 1, contact_form(60, 20));
    sand_granules_read(engine, 0, &then);
    sand_frames(engine, 1, contact_form(60, 20));
    sand_granules_read(engine, 0, &now);
    for (int a = 0; a < 3; a++)
        assert_near(now.x[a], then.x[a], 0.001 / sqrt(3));
    sand_engine_destroy(engine);
}

/* ---- momentum -------------------------------------------------------------------------------- */

static void body_momentum(const struct sand_pose *pose, const struct sand_shape *shape,
                          const float origin[3], double linear[3], double angular[3])
{
    const float *q = pose->q;
    double turn[3][3] = {{1 - 2.0 * (q[1] * q[1] + q[2] * q[2]), 2.0 * (q[0] * q[1] - q[2] * q[3]),
                          2.0 * (q[0] * q[2] + q[1] * q[3])},
                         {2.0 * (q[0] * q[1] + q[2] * q[3]), 1 - 2.0 * (q[0] * q[0] + q[2] * q[2]),
                          2.0 * (q[1] * q[2] - q[0] * q[3])},
                         {2.0 * (q[0] * q[2] - q[1] * q[3]), 2.0 * (q[1] * q[2] + q[0] * q[3]),
                          1 - 2.0 * (q[0] * q[0] + q[1] * q[1])}};
    double own[3] = {0, 0, 0}, x[3];

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            own[i] += turn[j][i] * pose->w[j];
    for (int i = 0; i < 3; i++) {
        x[i] = (double)pose->x[i] - origin[i];
        linear[i] += (double)shape->mass_kg * pose->v[i];
        for (int j = 0; j < 3; j++)
            angular[i] += turn[i][j] * shape->inertia[j][j] * own[j];
    }
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;

        angular[i] += shape->mass_kg * (x[j] * pose->v[k] - x[k] * pose->v[j]);
    }
}

/* Of all: granules as bodies with a round inertia. */
static void momentum(struct sand_engine *engine, const struct sand_shape *brick, double linear[3],
                     double angular[3])
{
    static struct granule granules[64];
    const struct granular_params *params = &engine->config.params;
    const float origin[3] = {5, 5, 5};
    struct sand_shape round = {.mass_kg = params->mass_kg};
    struct sand_status status = sand_status(engine, 0);
    uint32_t count = sand_granules_read(engine, 0, granules);

    memset(linear, 0, 3 * sizeof(*linear));
    memset(angular, 0, 3 * sizeof(*angular));
    for (int i = 0; i < 3; i++)
        round.inertia[i][i] = params->inertia;
    for (uint32_t g = 0; g < count; g++) {
        struct sand_pose pose;

        memcpy(pose.x, granules[g].x, sizeof(pose.x));
        memcpy(pose.q, granules[g].q, sizeof(pose.q));
        memcpy(pose.v, granules[g].v, sizeof(pose.v));
        memcpy(pose.w, granules[g].w, sizeof(pose.w));
        body_momentum(&pose, &round, origin, linear, angular);
    }
    body_momentum(&status.pose[0], brick, origin, linear, angular);
}

static void collisions_conserve_momentum(void **state)
{
    struct granular_params params;
    struct sand_engine *engine;
    static struct granule granules[64];
    static struct sand_cube brick;
    struct random random = {11};
    struct sand_pose pose = sand_pose(5, 5, 5);
    double p0[3], l0[3], p1[3], l1[3], p_scale = 0, l_scale = 0;
    uint32_t body;
    struct err err;

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    params.drag_linear = params.drag_angular = 0;
    params.sleep_after_s = INFINITY;
    engine = sand_make(&params, 1);
    sand_flat(engine, 0, 8, 8, sand_weightless);
    for (int i = 0; i < 64; i++) { /* a sphere of granules that falls in on itself */
        float *x = granules[i].x, *v = granules[i].v;

        granules[i] =
            sand_granule(5 + 0.6f * (float)(i % 4) - 0.9f, 5 + 0.6f * (float)(i / 4 % 4) - 0.9f,
                         5 + 0.6f * (float)(i / 16) - 0.9f, &random);
        for (int a = 0; a < 3; a++) {
            x[a] += x[a] > 5 ? 1.0f : -1.0f;
            v[a] = -1.5f * (x[a] - 5) + (float)random_in(&random, -0.3, 0.3);
            granules[i].w[a] = (float)random_in(&random, -3, 3);
            p_scale += params.mass_kg * fabs((double)v[a]);
            l_scale += params.mass_kg * fabs((double)v[a]) * fabs((double)x[a] - 5);
        }
    }
    sand_put(engine, 0, granules, 64);
    sand_cube(&params, 0.8f, 2000, &brick);
    brick.shape.inertia[0][0] *= 0.5f; /* as if it were heavier along one axis */
    brick.shape.inertia[1][1] *= 0.8f;
    pose.w[0] = 1, pose.w[1] = 2, pose.w[2] = -0.5f;
    assert_int_equal(sand_body_add(engine, 0, &brick.shape, &pose, &body, &err), ERR_OK);
    momentum(engine, &brick.shape, p0, l0);
    sand_frames(engine, 1, contact_form(90, 24));
    momentum(engine, &brick.shape, p1, l1);
    for (int a = 0; a < 3; a++) {
        assert_near(p1[a], p0[a], 1e-6 * p_scale);
        assert_near(l1[a], l0[a], 1e-5 * l_scale);
    }
    sand_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_elastic_impact_is_that_of_hertz),
        cmocka_unit_test(a_damped_impact_follows_its_equation),
        cmocka_unit_test(a_sphere_rolls_on_a_slight_incline),
        cmocka_unit_test(a_sphere_slips_on_a_steep_one),
        cmocka_unit_test(a_granule_sticks_on_an_incline),
        cmocka_unit_test(collisions_conserve_momentum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
