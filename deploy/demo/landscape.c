/*
 * What the three landscapes are called and where they lie: side by side from west to east, with a
 * strait between them, so that a ray in world coordinates can pass from one to the next. Each
 * shows another way to split cells; the mesa is not square and has a hole.
 *
 * Two have a place on the Earth, so that elevation calls find ground: the highlands at Glen Coe,
 * the islands at Scilly. Their distance there has nothing to do with the one in the world.
 */
#include "deploy/demo/landscape.h"

const struct landscape landscapes[LANDSCAPE_COUNT] = {
    {"highlands",
     "Highlands",
     highlands_make,
     TRIANGULATION_ANTI,
     {0, 0, 0},
     "{\"lat\": 56.64, \"lng\": -5.06}"},
    {"mesa", "Red Mesa", mesa_make, TRIANGULATION_MAIN, {4608, 512, 120}, NULL},
    {"islands",
     "Archipelago",
     islands_make,
     TRIANGULATION_ALTERNATING,
     {9216, 512, 0},
     "{\"lat\": 49.92, \"lng\": -6.36}"},
};
