/*
 * The crater of a body that hits granular ground: its depth and its radius, by the energy of the
 * body (crater.c has the law and its sources). Pure.
 */
#ifndef KOTA_SAND_CRATER_H
#define KOTA_SAND_CRATER_H

#include "terrain/field/edit.h"

/* A body as it meets the ground. */
struct crater_body {
    double mass_kg;
    double radius_m;  /* of a ball of its volume */
    double speed_m_s; /* >= 0 */
};

struct crater {
    double depth_m;  /* below the ground before, at the centre */
    double radius_m; /* of the pit at the level of the ground before; the rim is outside */
};

/* Mass and radius are above 0. */
struct crater crater_of(const struct crater_body *body);

/* Nothing changes further from the centre than this. */
double crater_reach_m(const struct crater *crater);

/* The same as an edit: dug, thrown on a rim, and relaxed to the angle of repose. */
struct edit crater_edit(const struct crater *crater, struct vec2 center);

#endif
