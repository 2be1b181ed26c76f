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

/* A body's part of a status but its energy: pose, forces, the largest speed. */
void engine_status_body(const struct granular_body *body, uint32_t b, struct sand_status *status);

/* in, cut to the length `most`. */
void engine_velocity_cut(float out[3], const float in[3], float most);

/*
 * Places for one more body: *b is the lowest that is free of body[bodies_end], *first the first of
 * as many particles in a row that are free, first fit; particle_body[particles_end] is the body of
 * each, GRANULAR_BODY_NONE when free, and all beyond is free. ERR_UNPROCESSABLE: no room.
 */
enum err_code engine_body_room(const struct sand_engine_config *config,
                               const struct granular_body *body, uint32_t bodies_end,
                               const uint32_t *particle_body, uint32_t particles_end,
                               uint32_t particles, uint32_t *b, uint32_t *first, struct err *err);

/* CHECKs the form of a request for depths. ERR_UNPROCESSABLE: more points than depth_max. */
enum err_code engine_depth_check(const struct sand_engine_config *config,
                                 const struct sand_depth *depth, struct err *err);

/* Points of a depth map along one axis: coordinate of point i is first + i * step. */
struct engine_points {
    float first, step;
    uint32_t count;
};

struct engine_points engine_points_along(float start, float d, uint32_t texels,
                                         uint32_t oversample);

#endif
