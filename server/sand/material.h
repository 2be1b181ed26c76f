#ifndef KOTA_SAND_MATERIAL_H
#define KOTA_SAND_MATERIAL_H

/*
 * What ground is made of, and how large its granules are: parameters of the solver from a preset
 * and a scale. docs: the table in material.c.
 */

#include <stdbool.h>

#include "sand/granular.h"

enum granular_material { MATERIAL_SAND, MATERIAL_PEBBLES, MATERIAL_RUBBLE, MATERIAL_COUNT };

/* Sphere radius r 0.05, 0.1 and 0.2 m; granules of 0.22, 0.44 and 0.89 m. */
enum granular_scale { SCALE_FINE, SCALE_MEDIUM, SCALE_COARSE, SCALE_COUNT };

/* "sand", "pebbles", "rubble"; "fine", "medium", "coarse". */
const char *material_name(enum granular_material material);
const char *scale_name(enum granular_scale scale);

/* False when no preset or scale has this name. */
bool material_from_name(const char *name, enum granular_material *material);
bool scale_from_name(const char *name, enum granular_scale *scale);

float scale_radius_m(enum granular_scale scale);

/*
 * All parameters of a material of spheres of radius_m, 0.01..2 m (CHECKed).
 *
 * dt = 1 / (60 substeps) with substeps = ceil(16 sqrt(0.1 / r)); k_n = 2e6 (r / 0.1)^1.5 and
 * gamma_n = 2e4 (r / 0.1)^2, both times density / 2000.
 */
void granular_params_make(enum granular_material material, float radius_m,
                          struct granular_params *params);

/* Derives masses, inertias and limits again after radius, density, dt or spheres were changed. */
void granular_params_derive(struct granular_params *params);

#endif
