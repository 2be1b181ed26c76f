/*
 * Sweeps and moves over the layers of a locale (terrain/sweep). Pure reading; any thread that holds
 * a snapshot.
 */
#ifndef KOTA_WORLD_SWEEP_H
#define KOTA_WORLD_SWEEP_H

#include "terrain/sweep/move.h"
#include "world/ask/query.h"

/* Against gravity at a point: unit. On the origin or axis of a planet or drum it is +Z. */
struct vec3 locale_up(const struct locale *locale, struct vec3 point);

/* Asks all chosen layers; the surface of s->best is a struct layer, borrowed. */
void locale_sweep(const struct layer_choice *choice, struct sweep *s);

/* The layers as the ground of moves; layers that are ceilings have no floors. Borrows the choice.
 */
struct move_ground locale_move_ground(const struct layer_choice *choice);

/* A touch as a hit: t is the fraction; layer, velocity and the rest as there. */
struct locale_hit locale_hit_of_touch(const struct sweep_touch *touch);

/*
 * About how many triangles a way of that length may meet, for a shape that reaches so far from its
 * middle.
 */
double locale_sweep_cost(const struct layer_choice *choice, double reach_m, double length_m);

/* ---- what may be asked ----------------------------------------------------------------------- */

#define MOVE_VELOCITY_MAX 1e9 /* m/s, a component */

/*
 * sizes: of a sphere its radius; of a capsule its radius and its whole height; of a box its half
 * extents and its yaw in degrees. ERR_BAD_INPUT
 */
enum err_code shape_set(enum shape_kind kind, const double sizes[4], struct shape *out,
                        struct err *err);

/* How far it reaches from its middle, at most. */
double shape_reach_m(const struct shape *shape);

/* ERR_BAD_INPUT: a coordinate is beyond SWEEP_COORDINATE_MAX_M. */
enum err_code sweep_check_place(struct vec3 place, struct err *err);

/* Numbers of a move, from 0 to `most`; without `missing` (NAN) it must be given. */
enum move_number { MOVE_DT, MOVE_SLOPE_MAX, MOVE_STEP_UP, MOVE_SNAP_DOWN, MOVE_NUMBERS };

struct move_number_limits {
    const char *name, *unit;
    double most, missing;
};

extern const struct move_number_limits move_numbers[MOVE_NUMBERS];

/* ERR_BAD_INPUT */
enum err_code move_check_number(enum move_number i, double value, struct err *err);
enum err_code move_check_velocity(struct vec3 velocity, struct err *err);

#endif
