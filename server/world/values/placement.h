/*
 * Points and directions between the world and a locale's frame.
 */
#ifndef KOTA_WORLD_PLACEMENT_H
#define KOTA_WORLD_PLACEMENT_H

#include "world/values/locale.h"

/* A point of the world in a locale's frame: the inverse of the placement. */
struct vec3 placement_to_locale(const struct placement *placement, struct vec3 world);

/* A point of a locale's frame in the world. */
struct vec3 placement_to_world(const struct placement *placement, struct vec3 local);

/* The same for directions, which are only turned. */
struct vec3 placement_turn_to_locale(const struct placement *placement, struct vec3 world);
struct vec3 placement_turn_to_world(const struct placement *placement, struct vec3 local);

#endif
