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

#endif
