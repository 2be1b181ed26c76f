/*
 * Parameters of granular ground.
 *
 * The medium scale (r = 0.1 m) of "sand" was found by experiment to rest and not to creep at
 * dt = 1/960 s; 3 ms is unstable. Other scales follow by similarity: with lengths as r, velocities
 * as sqrt(g r) and masses as r^3, the terms k_n xi^1.5 and gamma_n xi^0.5 v stay in proportion to
 * the weight when k_n goes as r^1.5 and gamma_n as r^2, and the same number of steps a contact
 * takes dt as sqrt(r). Both go as density, too, so that dt does not depend on it.
 *
 * | preset  | mu   | density kg/m3 | damping | stiffness | like                              |
 * |---------|------|---------------|---------|-----------|-----------------------------------|
 * | sand    | 0.50 | 2000          | 1       | 1         | dry sand: heaps of 25-40 deg      |
 * | pebbles | 0.35 | 2600          | 0.5     | 1         | smooth stones: flatter, livelier  |
 * | rubble  | 0.70 | 2400          | 1       | 1         | broken stone: steeper             |
 * | snow    | 0.90 | 400           | 1       | 0.5       | old dry snow: light, soft, steep  |
 *
 * Damping is a part of gamma_n = 2e4 at r = 0.1, stiffness of k_n = 2e6. The period of a contact
 * goes as 1 / sqrt(stiffness): twice as stiff is like a step of 1.5 ms, half of what is unstable.
 * Damping grows with the overlap: at 1.5 a bed of 80 r never comes to rest, nor at 1 with a quarter
 * of the stiffness, where granules are pressed into each other. Snow does not stick: granules have
 * no cohesion.
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
    struct material_numbers numbers;
} materials[MATERIAL_COUNT] = {
    [MATERIAL_SAND] = {"sand", {0.5f, 2000, 1, 1}},
    [MATERIAL_PEBBLES] = {"pebbles", {0.35f, 2600, 0.5f, 1}},
    [MATERIAL_RUBBLE] = {"rubble", {0.7f, 2400, 1, 1}},
    [MATERIAL_SNOW] = {"snow", {0.9f, 400, 1, 0.5f}},
};

const struct material_numbers material_least = {0.1f, 100, 0.25f, 0.5f};
const struct material_numbers material_most = {1.2f, 8000, 1, 2};

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

enum granular_material material_like(const struct material_numbers *numbers)
{
    enum granular_material like = MATERIAL_SAND;
    double least = INFINITY;

    for (int i = 0; i < MATERIAL_COUNT; i++) {
        const struct material_numbers *other = &materials[i].numbers;
        const double apart = fabs(log((double)numbers->density / (double)other->density)) +
                             fabs((double)numbers->friction - (double)other->friction);

        if (apart < least) {
            least = apart;
            like = (enum granular_material)i;
        }
    }
    return like;
}

struct material_numbers material_numbers_of(enum granular_material material)
{
    CHECK((unsigned)material < MATERIAL_COUNT);
    return materials[material].numbers;
}

void granular_params_make(enum granular_material material, float radius_m,
                          struct granular_params *params)
{
    const struct material_numbers numbers = material_numbers_of(material);

    granular_params_of(&numbers, radius_m, params);
}

void granular_params_of(const struct material_numbers *numbers, float radius_m,
                        struct granular_params *params)
{
    const double ratio = radius_m / 0.1;

    CHECK(radius_m >= 0.01f && radius_m <= 2.0f);
    memset(params, 0, sizeof(*params));
    params->radius_m = radius_m;
    params->density = numbers->density;
    params->friction = numbers->friction;
    params->stiffness =
        (float)(numbers->stiffness * (2e6 * pow(ratio, 1.5) * params->density / 2000));
    params->damping = (float)(numbers->damping * (2e4 * ratio * ratio * params->density / 2000));
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
