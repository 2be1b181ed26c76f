/*
 * Parameters of granular ground.
 *
 * The medium scale (r = 0.1 m) of "sand" was found by experiment to rest and not to creep at
 * dt = 1/960 s; 3 ms is unstable. Other scales follow by similarity: with lengths as r, velocities
 * as sqrt(g r) and masses as r^3, the terms k_n xi^1.5 and gamma_n xi^0.5 v stay in proportion to
 * the weight when k_n goes as r^1.5 and gamma_n as r^2, and the same number of steps a contact
 * takes dt as sqrt(r). Both go as density, too, so that dt does not depend on it.
 *
 * | preset  | mu   | density kg/m3 | gamma_n at r = 0.1 | like                        |
 * |---------|------|---------------|--------------------|-----------------------------|
 * | sand    | 0.50 | 2000          | 2.0e4              | dry sand: heaps of 25-40 deg |
 * | pebbles | 0.35 | 2600          | 1.0e4 * 1.3        | smooth stones: flatter, livelier |
 * | rubble  | 0.70 | 2400          | 2.0e4 * 1.2        | broken stone: steeper       |
 *
 * Source: C. Leach 2014, 4.2.2 (after N. Bell et al. 2005) for the normal force; tangential
 * stiffness and damping after P. A. Cundall, O. D. L. Strack 1979.
 */
#include "sand/material.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

static const struct {
    const char *name;
    float friction, density, damping;
} materials[MATERIAL_COUNT] = {
    [MATERIAL_SAND] = {"sand", 0.5f, 2000, 2e4f},
    [MATERIAL_PEBBLES] = {"pebbles", 0.35f, 2600, 1e4f},
    [MATERIAL_RUBBLE] = {"rubble", 0.7f, 2400, 2e4f},
};

static const struct {
    const char *name;
    float radius_m;
} scales[SCALE_COUNT] = {
    [SCALE_FINE] = {"fine", 0.05f},
    [SCALE_MEDIUM] = {"medium", 0.1f},
    [SCALE_COARSE] = {"coarse", 0.2f},
};

const char *material_name(enum granular_material material)
{
    CHECK((unsigned)material < MATERIAL_COUNT);
    return materials[material].name;
}

const char *scale_name(enum granular_scale scale)
{
    CHECK((unsigned)scale < SCALE_COUNT);
    return scales[scale].name;
}

float scale_radius_m(enum granular_scale scale)
{
    CHECK((unsigned)scale < SCALE_COUNT);
    return scales[scale].radius_m;
}

bool material_from_name(const char *name, enum granular_material *material)
{
    for (int i = 0; i < MATERIAL_COUNT; i++) {
        if (strcmp(name, materials[i].name) == 0) {
            *material = (enum granular_material)i;
            return true;
        }
    }
    return false;
}

bool scale_from_name(const char *name, enum granular_scale *scale)
{
    for (int i = 0; i < SCALE_COUNT; i++) {
        if (strcmp(name, scales[i].name) == 0) {
            *scale = (enum granular_scale)i;
            return true;
        }
    }
    return false;
}

void granular_params_derive(struct granular_params *params)
{
    const double r = params->radius_m;
    const double sphere = 4.0 / 3.0 * M_PI * r * r * r * params->density;
    double mass, inertia, reach;

    CHECK(params->spheres == 1 || params->spheres == GRANULE_SPHERES);
    if (params->spheres == 1) {
        mass = sphere;
        inertia = 0.4 * sphere * r * r;
        reach = r;
    } else {
        /* corners (+-1, +-1, +-1) r / sqrt(2): each sphere 2/5 m r^2, and m r^2 from its place */
        mass = 4 * sphere;
        inertia = (1.6 + 4.0) * sphere * r * r;
        reach = (2 + sqrt(6)) / 2 * r;
    }
    params->cell_m = 2 * params->radius_m;
    params->mass_kg = (float)mass;
    params->mass_inverse = (float)(1 / mass);
    params->inertia = (float)inertia;
    params->inertia_inverse = (float)(1 / inertia);
    params->diameter_m = (float)(2 * reach);
    params->speed_max = 0.5f * params->radius_m / params->dt_s;
    params->spin_max = (float)(params->speed_max / reach);
    params->sleep_speed = (float)(0.03 * sqrt(r / 0.1));
    params->sleep_spin = (float)(params->sleep_speed / reach);
}

void granular_params_make(enum granular_material material, float radius_m,
                          struct granular_params *params)
{
    const double ratio = radius_m / 0.1;

    CHECK((unsigned)material < MATERIAL_COUNT);
    CHECK(radius_m >= 0.01f && radius_m <= 2.0f);
    memset(params, 0, sizeof(*params));
    params->radius_m = radius_m;
    params->density = materials[material].density;
    params->friction = materials[material].friction;
    params->stiffness = (float)(2e6 * pow(ratio, 1.5) * params->density / 2000);
    params->damping = (float)(materials[material].damping * ratio * ratio * params->density / 2000);
    params->tangent_stiffness = 1.2f;
    params->tangent_damping = 0.8f;
    params->drag_linear = 0.5f;
    params->drag_angular = 2.0f;
    params->sleep_after_s = 0.25f;
    params->wake_fraction = 0.1f;
    params->spheres = GRANULE_SPHERES;
    /* the float32 of 0.05 and 0.2 must not make one step more */
    params->substeps = (uint32_t)ceil(16 / sqrt(ratio) - 1e-4);
    params->dt_s = (float)(1.0 / (60.0 * params->substeps));
    granular_params_derive(params);
}
