/*
 * What the three landscapes are called and where they lie: side by side from west to east, with a
 * strait between them, so that a ray in world coordinates can pass from one to the next. Each
 * stands for another way to split cells; the mesa is not square and has a hole.
 */
#include "worldgen/landscape.h"

const struct landscape landscapes[LANDSCAPE_COUNT] = {
    {"highlands", "Highlands", highlands_make, TRIANGULATION_ANTI, {0, 0, 0}},
    {"mesa", "Red Mesa", mesa_make, TRIANGULATION_MAIN, {4608, 512, 120}},
    {"islands", "Archipelago", islands_make, TRIANGULATION_ALTERNATING, {9216, 512, 0}},
};
