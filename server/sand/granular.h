#ifndef KOTA_SAND_GRANULAR_H
#define KOTA_SAND_GRANULAR_H

/*
 * What the two engines (C and OpenGL) share: parameters and records of granules, bodies and beds.
 *
 * Units are SI: metres, kilograms, seconds, newtons, radians. Records are plain float32 (and
 * uint32) in rows of four, so that a shader takes them as std430 structs without conversion.
 *
 * One engine holds all patches of one scale. Each patch has a slot; a slot has its own local
 * frame: the origin is the south-west corner of the patch's box at an elevation that the caller
 * chooses, x east, y north, z up. A slot is computed in its own frame, with its own cell grid, and
 * in the order of its own ids, so that its bits do not depend on other slots.
 *
 * A granule is one rigid body of four equal spheres of radius r whose centres form a regular
 * tetrahedron of edge 2r: outer diameter D = (2 + sqrt(6)) r = 4.449 r (C. Leach 2014, 4.1;
 * N. Bell, Y. Yu, P. J. Mucha 2005). Shell particles of free bodies are spheres of radius r too.
 *
 * Ids of spheres in a slot: sphere j of granule g is 4 g + j; particle p of the slot is
 * 4 granules_max + p. With params.spheres == 1 (a test configuration) a granule is one sphere at
 * its centre and only j = 0 exists.
 */

#include <stdint.h>

#define GRANULE_SPHERES 4
/* Centre of sphere j from the granule's centre, body frame: GRANULE_CORNER[j] * r / sqrt(2). */
static const float GRANULE_CORNER[GRANULE_SPHERES][3] = {
    {1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
/* Contacts with history that a sphere keeps in the OpenGL engine, bed and walls among them. */
#define GRANULAR_CONTACTS_MAX 16
/*
 * Overlap, as a part of r, above which tangential damping grows no more. A granule turns easily:
 * the damping of ten contacts at 0.08 r would turn its spin around in each step, and beds deeper
 * than 30 r buzzed for ever.
 */
#define GRANULAR_DAMPED_OVERLAP 0.02f

/*
 * All parameters of the step for one scale of one material. Made by granular_params_of
 * (material.h); tests change single fields. A row of four floats a line. The slots of an engine
 * share radius, step and what follows from them; each has its own material.
 */
struct granular_params {
    float radius_m; /* r of each sphere */
    float cell_m;   /* side of a grid cell: 2 r */
    float dt_s;     /* one substep, proportional to sqrt(r); 1/960 s at r = 0.1 */
    float friction; /* Coulomb's mu of all contacts */

    float stiffness; /* k_n: F = k_n xi^1.5 [N/m^1.5], proportional to r^1.5 */
    float damping;   /* gamma_n: F = gamma_n xi^0.5 dxi/dt [N s/m^1.5], proportional to r^2 */
    float tangent_stiffness; /* 1.2: k_t = this * k_n * sqrt(xi) [N/m] */
    float tangent_damping;   /* 0.8: gamma_t = this * gamma_n * sqrt(min(xi, 0.02 r)) [N s/m] */

    float drag_linear;  /* background damping of velocity, 0.5 1/s */
    float drag_angular; /* of angular velocity, 2 1/s */
    float speed_max;    /* velocities are cut to this length [m/s]: 0.5 r / dt */
    float spin_max;     /* angular velocities of granules to this [rad/s]: speed_max / (D/2) */

    float mass_kg; /* of one granule */
    float mass_inverse;
    float inertia; /* of one granule about any axis [kg m2]: a tetrahedron is isotropic */
    float inertia_inverse;

    float sleep_speed;   /* slow: |v| below this [m/s], 0.03 sqrt(r / 0.1) */
    float sleep_spin;    /* and |w| below this [rad/s]: sleep_speed / (D/2) */
    float sleep_after_s; /* asleep after being slow for so long: 0.25 */
    float wake_fraction; /* woken when |F + m g| exceeds this part of m |g|, or |T| of m |g| r */

    uint32_t spheres;  /* of a granule: 4, or 1 in tests */
    uint32_t substeps; /* of one 60 Hz frame: dt_s = 1 / (60 substeps) */
    float density;     /* kg/m3, of the material of the spheres */
    float diameter_m;  /* D of a granule */
};

/* One granule, 64 bytes; also how granules are handed in and read back. */
struct granule {
    float x[4]; /* centre of mass, local frame; [3]: 0 */
    float q[4]; /* orientation, unit quaternion x y z w: body frame to local frame */
    float v[4]; /* velocity; [3]: seconds it has been slow; asleep when >= sleep_after_s */
    float w[4]; /* angular velocity, local frame; [3]: 0 */
};

/* A long sum of float32: what rounding took from it is kept beside it (W. Kahan 1965). */
struct granular_sum {
    float sum[4], rest[4]; /* the sum is sum - rest; [3]: 0 */
};

/* One body, 240 bytes: the shell of a model. */
struct granular_body {
    float x[4]; /* centre of mass; [3]: 1 / mass [1/kg], 0: it follows a path */
    float q[4];
    float v[4];          /* [3]: seconds it has been slow */
    float w[4];          /* [3]: largest distance of a particle's far side from the centre [m] */
    float inertia[3][4]; /* rows, about the centre in the body frame [kg m2]; [i][3]: 0 */
    float inertia_inverse[3][4]; /* its inverse */
    uint32_t particle_first;     /* in the slot's particles */
    uint32_t particle_count;     /* 0: this entry is free */
    float soft;                  /* factor of k_n and gamma_n at its contacts: granular_soft */
    uint32_t summed;             /* substeps that are in the sums, modulo 2^32 */
    struct granular_sum force;   /* of granules on it [N] */
    struct granular_sum torque;  /* and about its centre [N m] */
};

/* One shell particle, 16 bytes. */
struct granular_particle {
    float offset[3]; /* from its body's centre of mass, body frame */
    uint32_t body;   /* index of its body in the slot */
};

/*
 * The rigid bed: heights of a regular grid over the box in the local frame, bilinear between
 * samples, constant beyond the outermost. A sphere touches the tangent plane of the surface below
 * its centre: distance (z - h) n_z, overlap r - distance, cut at r.
 */
struct granular_bed {
    uint32_t cols, rows; /* >= 2 each */
    float x0, y0;        /* of sample (0, 0), local frame */
    float dx, dy;        /* spacing, > 0 */
};

/* A slot's box and cell grid; the walls are at x = 0, x = size[0], y = 0, y = size[1]. */
struct granular_box {
    float size[2];
    float z_low;       /* lowest elevation of the bed: where the grid begins */
    float gravity[3];  /* m/s2, local frame */
    uint32_t cells[3]; /* of cell_m; the first begins at 0, 0, z_low. Spheres beyond are counted to
                          the outermost cell, which is right and only slower. */
};

/*
 * Of a body on a path: stiffer than what it meets, whose factor counts then. Where it meets the
 * ground or its like nothing gives way, and no force is counted.
 */
#define GRANULAR_SOFT_PATH 1e6f

/*
 * The factor of k_n and gamma_n at a body's contacts, so that the same dt is stable for a light
 * body and the bed holds a heavy one: the body's mass per particle as a part of the mass of a
 * granule's sphere. A contact takes the smaller of its two partners'; a granule has 1, the bed and
 * the walls have no limit.
 */
static inline float granular_soft(const struct granular_params *params, float mass_kg,
                                  uint32_t particles)
{
    return mass_kg * (float)params->spheres / ((float)particles * params->mass_kg);
}

/* Bits of a granule's own: its shade, among others. Number from 1. (C. Wellons 2018, lowbias32.) */
static inline uint32_t granule_hash(uint32_t number)
{
    number ^= number >> 16;
    number *= 0x7feb352du;
    number ^= number >> 15;
    number *= 0x846ca68bu;
    return number ^ number >> 16;
}

#endif
