/*
 * See sand_fixture.h.
 */
#include "support/sand_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/content_hash.h"
#include "sand/material.h"
#include "sand/engine_c/solver.h"

const float sand_weightless[3] = {0, 0, 0};
const float sand_earth[3] = {0, 0, -9.81f};

struct sand_engine_config sand_config(const struct granular_params *params)
{
    return (struct sand_engine_config){.params = *params,
                                       .slots = 4,
                                       .granules_max = 4096,
                                       .bodies_max = 8,
                                       .particles_max = 4096,
                                       .cells_max = 200000,
                                       .bed_max = 4096,
                                       .depth_max = 1 << 20,
                                       .threads = 1};
}

struct sand_engine *sand_make(const struct granular_params *params, uint32_t threads)
{
    struct sand_engine_config config = sand_config(params);
    struct sand_engine *engine;
    struct err err;

    config.threads = threads;
    engine = solver_create(&config, &err);
    if (!engine)
        fail_msg("solver_create: %s", err.msg);
    return engine;
}

struct granular_params sand_spheres(float dt_s)
{
    struct granular_params params;

    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    params.spheres = 1;
    params.dt_s = dt_s;
    params.drag_linear = params.drag_angular = 0;
    params.sleep_after_s = INFINITY;
    granular_params_derive(&params);
    return params;
}

void sand_flat(struct sand_engine *engine, uint32_t slot, float size_m, float height_m,
               const float gravity[3])
{
    static const float heights_m[4] = {0, 0, 0, 0};
    struct sand_slot_begin begin = {.size_m = {size_m, size_m},
                                    .height_m = height_m,
                                    .bed = {2, 2, 0, 0, size_m, size_m},
                                    .heights_m = heights_m};
    struct err err;

    memcpy(begin.gravity, gravity, sizeof(begin.gravity));
    if (sand_slot_begin(engine, slot, &begin, &err))
        fail_msg("sand_slot_begin: %s", err.msg);
}

struct granule sand_granule(float x, float y, float z, struct random *random)
{
    struct granule granule = {.x = {x, y, z}, .q = {0, 0, 0, 1}};
    double length = 0;

    if (!random)
        return granule;
    for (int i = 0; i < 4; i++) {
        granule.q[i] = (float)random_in(random, -1, 1);
        length += (double)granule.q[i] * granule.q[i];
    }
    for (int i = 0; i < 4; i++)
        granule.q[i] = (float)(granule.q[i] / sqrt(length));
    return granule;
}

void sand_put(struct sand_engine *engine, uint32_t slot, const struct granule *granules,
              uint32_t count)
{
    struct err err;

    if (sand_slot_fill(engine, slot, granules, count, &err))
        fail_msg("sand_slot_fill: %s", err.msg);
}

void sand_substeps(struct sand_engine *engine, uint64_t active, uint32_t substeps)
{
    struct err err;

    if (sand_engine_step(engine, substeps, active, &err))
        fail_msg("sand_engine_step: %s", err.msg);
}

void sand_frames(struct sand_engine *engine, uint64_t active, uint32_t frames)
{
    for (uint32_t i = 0; i < frames; i++)
        sand_substeps(engine, active, engine->config.params.substeps);
}

struct sand_status sand_status(struct sand_engine *engine, uint32_t slot)
{
    struct sand_status status;

    sand_status_request(engine, slot);
    while (!sand_status_poll(engine, slot, &status))
        ;
    return status;
}

uint64_t sand_hash(struct sand_engine *engine, uint32_t slot)
{
    struct granule *granules = calloc(engine->config.granules_max, sizeof(*granules));
    struct sand_status status = sand_status(engine, slot);
    uint64_t hash = FNV1A_EMPTY;
    uint32_t count;

    assert_non_null(granules);
    count = sand_granules_read(engine, slot, granules);
    hash = fnv1a(hash, granules, count * sizeof(*granules));
    hash = fnv1a(hash, status.pose, sizeof(status.pose));
    free(granules);
    return hash;
}

void sand_cube(const struct granular_params *params, float side_m, float density,
               struct sand_cube *cube)
{
    const float half = side_m / 2 - params->radius_m;
    const int n = (int)ceilf(2 * half / params->radius_m);
    const float mass = side_m * side_m * side_m * density;
    uint32_t count = 0;

    for (int z = 0; z <= n; z++) {
        for (int y = 0; y <= n; y++) {
            for (int x = 0; x <= n; x++) {
                if (x > 0 && x < n && y > 0 && y < n && z > 0 && z < n)
                    continue;
                assert_true(count < SAND_CUBE_PARTICLES_MAX);
                cube->offset_m[count][0] = half * (float)(2 * x - n) / (float)n;
                cube->offset_m[count][1] = half * (float)(2 * y - n) / (float)n;
                cube->offset_m[count++][2] = half * (float)(2 * z - n) / (float)n;
            }
        }
    }
    cube->shape = (struct sand_shape){
        .offsets_m = (const float(*)[3])cube->offset_m, .particles = count, .mass_kg = mass};
    for (int i = 0; i < 3; i++)
        cube->shape.inertia[i][i] = mass * side_m * side_m / 6;
}

struct sand_pose sand_pose(float x, float y, float z)
{
    return (struct sand_pose){.x = {x, y, z}, .q = {0, 0, 0, 1}};
}

uint32_t sand_lattice(struct granule *granules, const struct granular_params *params, float size_m,
                      float z, uint32_t count, uint64_t seed)
{
    const float d = 1.1f * params->diameter_m;
    const uint32_t n = (uint32_t)(size_m / d);
    struct random random = {seed};

    for (uint32_t i = 0; i < count; i++) {
        float x = ((float)(i % n) + 0.5f) * size_m / (float)n;
        float y = ((float)(i / n % n) + 0.5f) * size_m / (float)n;

        granules[i] = sand_granule(x, y, z + ((float)(i / n / n) + 0.5f) * d, &random);
        for (int a = 0; a < 2; a++)
            granules[i].x[a] += (float)random_in(&random, -0.04, 0.04) * d;
    }
    return count;
}
