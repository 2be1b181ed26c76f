/*
 * Granular ground for tests: small engines, flat slots, granules and bodies made by hand. Works on
 * any engine; sand_make gives the one in C. Failures end the test through cmocka.
 */
#ifndef KOTA_TESTS_SAND_FIXTURE_H
#define KOTA_TESTS_SAND_FIXTURE_H

#include "sand/engine.h"
#include "support/random.h"

#include <stdbool.h>

/* A pool that is large enough for tests: 4 slots of 4,096 granules and 8 bodies. */
struct sand_engine_config sand_config(const struct granular_params *params);

/* The C engine with sand_config and so many threads. */
struct sand_engine *sand_make(const struct granular_params *params, uint32_t threads);

/* Single spheres of r = 0.1 m and 2000 kg/m3, with no drag and no sleep, for the physics of one
   contact. */
struct granular_params sand_spheres(float dt_s);

/* Begins a slot with walls at 0 and size_m, a flat bed at z = 0 and this gravity. */
void sand_flat(struct sand_engine *engine, uint32_t slot, float size_m, float height_m,
               const float gravity[3]);

extern const float sand_weightless[3]; /* 0 0 0 */
extern const float sand_earth[3];      /* 0 0 -9.81 */

/* At rest at x, upright; turned at random when random is not NULL. */
struct granule sand_granule(float x, float y, float z, struct random *random);

void sand_put(struct sand_engine *engine, uint32_t slot, const struct granule *granules,
              uint32_t count);

/* One frame of 1/60 s, or so many substeps. */
void sand_frames(struct sand_engine *engine, uint64_t active, uint32_t frames);
void sand_substeps(struct sand_engine *engine, uint64_t active, uint32_t substeps);

struct sand_status sand_status(struct sand_engine *engine, uint32_t slot);

/* FNV-1a over poses and velocities of granules and bodies. */
uint64_t sand_hash(struct sand_engine *engine, uint32_t slot);

/* A cube of side_m as a shell of spheres a radius apart, of this density. */
enum { SAND_CUBE_PARTICLES_MAX = 2048 };
struct sand_cube {
    float offset_m[SAND_CUBE_PARTICLES_MAX][3];
    struct sand_shape shape;
};
void sand_cube(const struct granular_params *params, float side_m, float density,
               struct sand_cube *cube);

/* At rest, upright. */
struct sand_pose sand_pose(float x, float y, float z);

/* Fills a flat box with `count` granules on a loose lattice, turned at random, from z upwards. */
uint32_t sand_lattice(struct granule *granules, const struct granular_params *params, float size_m,
                      float z, uint32_t count, uint64_t seed);

#endif
