#ifndef KOTA_SAND_MATERIAL_H
#define KOTA_SAND_MATERIAL_H

/*
 * What ground is made of, and how large its granules are: parameters of the solver from a preset
 * and a scale. docs: the table in material.c.
 */

#include <stdbool.h>

#include "sand/granular.h"

enum granular_material {
    MATERIAL_SAND,
    MATERIAL_PEBBLES,
    MATERIAL_RUBBLE,
    MATERIAL_SNOW,
    MATERIAL_COUNT,
    MATERIAL_OWN = MATERIAL_COUNT /* not a preset: numbers of one's own */
};

/*
 * What differs between materials. Stiffness and damping are parts of what sand of that density
 * has; see the table in material.c.
 */
struct material_numbers {
    float friction; /* Coulomb's mu of all contacts */
    float density;  /* of the spheres, kg/m3 */
    float damping, stiffness;
};

/* The bounds within which the substep of each scale is stable, and ground comes to rest. */
extern const struct material_numbers material_least, material_most;

/* Sphere radius r 0.05, 0.1 and 0.2 m; granules of 0.22, 0.44 and 0.89 m. */
enum granular_scale { SCALE_FINE, SCALE_MEDIUM, SCALE_COARSE, SCALE_COUNT };

/* "sand", "pebbles", "rubble", "snow"; "fine", "medium", "coarse". */
const char *material_name(enum granular_material material);
const char *scale_name(enum granular_scale scale);

/* False when no preset or scale has this name. */
bool material_from_name(const char *name, enum granular_material *material);
bool scale_from_name(const char *name, enum granular_scale *scale);

float scale_radius_m(enum granular_scale scale);

/* The preset that is most like these numbers: it looks like that. */
enum granular_material material_like(const struct material_numbers *numbers);

/* Of a preset. */
struct material_numbers material_numbers_of(enum granular_material material);

/*
 * All parameters of a material of spheres of radius_m, 0.01..2 m (CHECKed).
 *
 * dt = 1 / (60 substeps) with substeps = ceil(16 sqrt(0.1 / r)); k_n = stiffness 2e6 (r / 0.1)^1.5
 * and gamma_n = damping 2e4 (r / 0.1)^2, both times density / 2000. So step and radius, and the
 * limits of speeds, are the same for all materials.
 */
void granular_params_of(const struct material_numbers *numbers, float radius_m,
                        struct granular_params *params);
/* The same of a preset. */
void granular_params_make(enum granular_material material, float radius_m,
                          struct granular_params *params);

/* Derives masses, inertias and limits again after radius, density, dt or spheres were changed. */
void granular_params_derive(struct granular_params *params);

#endif
