/*
 * A shape that walks: swept along its velocity, it slides along what it touches, steps up, snaps
 * down to the floor. Pure: the same ground and numbers give the same bits.
 */
#ifndef KOTA_TERRAIN_MOVE_H
#define KOTA_TERRAIN_MOVE_H

#include "terrain/sweep/sweep.h"

#define MOVE_SKIN_M 1e-4    /* the distance that is kept from all that is touched */
#define MOVE_ROOM_M 0.1     /* by so much it is pushed out of what it begins in */
#define MOVE_REACHED_M 1e-2 /* a claimed end so near is reached */
#define MOVE_DT_MAX_S 60    /* longest time of a move */
#define MOVE_STEP_MAX_M 1e3 /* greatest step_up and snap_down */
#define MOVE_SLOPE_DEG 50   /* defaults */
#define MOVE_STEP_UP_M 0.5
#define MOVE_SNAP_DOWN_M 0.5

enum { MOVE_TOUCHES = 4, MOVE_HITS_MAX = MOVE_TOUCHES + 1 };

/* The surfaces: asks all of them, and sets surface and is_ceiling of a new best touch. Where
 * s->floor_cosine > 0 only those that may be floors. */
struct move_ground {
    void (*sweep)(const void *ground, struct sweep *s);
    const void *ground;
};

struct move {
    struct shape shape;
    struct vec3 up; /* unit, where it begins */
    struct vec3 from, velocity;
    double dt_s;
    double slope_max_deg; /* 0 to 90: what is steeper is no floor */
    double step_up_m, snap_down_m;
};

struct moved {
    struct vec3 to;
    bool starts_inside; /* and it could not be pushed out: it stays where it is */
    bool is_grounded;
    struct sweep_touch floor; /* if it is; its fraction says nothing */
    double slope_deg;         /* of the floor */
    uint32_t hit_count;
    struct sweep_touch hits[MOVE_HITS_MAX]; /* in order, of the way that was left each time */
};

/*
 * Moves it. The end is reached by sweeps, none of which meets anything: it passes through nothing,
 * and is never within a surface that it did not begin in. It stands only on triangles within
 * slope_max_deg. It steps only from such a floor to another that is no more than step_up_m higher.
 * It snaps down to a floor within snap_down_m, unless the velocity leads upwards.
 * Cost: some sweeps, up to about 30 where each touch is a step; no allocation.
 */
void move_run(const struct move_ground *ground, const struct move *move, struct moved *out);

/*
 * Could it be at `claimed` by now? Yes, within MOVE_REACHED_M of where move_run ends, or where it
 * ends when it goes straight there, no faster than its velocity, and upwards no faster than that
 * leads upwards.
 */
bool move_is_reachable(const struct move_ground *ground, const struct move *move,
                       const struct moved *moved, struct vec3 claimed);

#endif
