#ifndef KOTA_SAND_ENGINE_INPUT_H
#define KOTA_SAND_ENGINE_INPUT_H

/*
 * What both engines do with input before they take it: the same checks, the same messages, the
 * same numbers. Pure; any thread.
 */

#include "sand/engine.h"

/* A particle of a body that was removed. */
#define GRANULAR_BODY_NONE 0xffffffffu

/* ERR_BAD_INPUT: a number of the pool is zero or too large. */
enum err_code engine_config_check(const struct sand_engine_config *config, struct err *err);

/* Offsets of the spheres of a granule in its body frame [m]; zero when it has one sphere. */
void engine_tetrahedron(const struct granular_params *params, float offsets_m[GRANULE_SPHERES][3]);

/*
 * Makes the box of a slot: as many layers of cells as its height needs, or as cells_max has room
 * for. ERR_UNPROCESSABLE: the bed or one layer does not fit. CHECKs the shape of the bed.
 */
enum err_code engine_box_make(const struct sand_engine_config *config,
                              const struct sand_slot_begin *begin, struct granular_box *box,
                              struct err *err);

/* The material of a slot; CHECKs that it steps as the pool does. */
const struct granular_params *engine_params_of(const struct sand_engine_config *config,
                                               const struct sand_slot_begin *begin);

/* Force [N] that wakes a granule under this gravity. */
float engine_wake_force(const struct granular_params *params, const float gravity[3]);

/*
 * Makes a body but its particle_first: inverse of the inertia, unit quaternion, velocities cut.
 * ERR_BAD_INPUT: not finite, mass not above 0, inertia not positive definite.
 */
enum err_code engine_body_make(const struct granular_params *params, const struct sand_shape *shape,
                               const struct sand_pose *pose, struct granular_body *body,
                               struct err *err);

/* The sums of a body's record. */
void engine_forces_get(const struct granular_body *body, struct sand_forces *out);

/* in, cut to the length `most`. */
void engine_velocity_cut(float out[3], const float in[3], float most);

/*
 * First of `count` particles in a row that are free, first fit; body[particles_end] is the body of
 * each, GRANULAR_BODY_NONE when free, and the rest up to particles_max is free. particles_max when
 * there is no such row.
 */
uint32_t engine_particles_find(const uint32_t *body, uint32_t particles_end, uint32_t particles_max,
                               uint32_t count);

/* Points of a depth map along one axis: coordinate of point i is first + i * step. */
struct engine_points {
    float first, step;
    uint32_t count;
};

struct engine_points engine_points_along(float start, float d, uint32_t texels,
                                         uint32_t oversample);

#endif
