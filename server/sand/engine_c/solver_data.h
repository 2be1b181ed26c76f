#ifndef KOTA_SAND_SOLVER_DATA_H
#define KOTA_SAND_SOLVER_DATA_H

/* The insides of the C engine, shared by its files. */

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sand/engine.h"
#include "sand/engine_c/workers.h"

struct f3 {
    float x, y, z;
};

static inline struct f3 f3_of(const float a[3])
{
    return (struct f3){a[0], a[1], a[2]};
}

static inline void f3_put(float out[3], struct f3 a)
{
    out[0] = a.x;
    out[1] = a.y;
    out[2] = a.z;
}

static inline struct f3 f3_add(struct f3 a, struct f3 b)
{
    return (struct f3){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline struct f3 f3_sub(struct f3 a, struct f3 b)
{
    return (struct f3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline struct f3 f3_scale(struct f3 a, float s)
{
    return (struct f3){a.x * s, a.y * s, a.z * s};
}

static inline float f3_dot(struct f3 a, struct f3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct f3 f3_cross(struct f3 a, struct f3 b)
{
    return (struct f3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* v turned by the unit quaternion q (x y z w). */
static inline struct f3 f3_rotate(const float q[4], struct f3 v)
{
    struct f3 u = {q[0], q[1], q[2]};
    struct f3 t = f3_scale(f3_cross(u, v), 2);

    return f3_add(f3_add(v, f3_scale(t, q[3])), f3_cross(u, t));
}

/* v turned back. */
static inline struct f3 f3_rotate_back(const float q[4], struct f3 v)
{
    const float inverse[4] = {-q[0], -q[1], -q[2], q[3]};

    return f3_rotate(inverse, v);
}

static inline struct f3 f3_apply(const float rows[3][4], struct f3 v)
{
    return (struct f3){rows[0][0] * v.x + rows[0][1] * v.y + rows[0][2] * v.z,
                       rows[1][0] * v.x + rows[1][1] * v.y + rows[1][2] * v.z,
                       rows[2][0] * v.x + rows[2][1] * v.y + rows[2][2] * v.z};
}

/*
 * Movers are what has a pose: granules, then bodies, then the ground (bed and walls), which stays.
 * A sphere belongs to a mover. A cluster is what gathers forces: a granule with its spheres, or one
 * particle of a body; clusters of particles begin at a multiple of 32.
 */

/* The list of a cluster: an entry is a pair of spheres that touch, or may before the next list. */
enum { GRANULE_LIST = 40, PARTICLE_LIST = 16 };

struct granule_list {
    uint32_t entry[GRANULE_LIST];
    float spring[3][GRANULE_LIST]; /* tangential displacement of the contact [m] */
};

struct particle_list {
    uint32_t entry[PARTICLE_LIST];
    float spring[3][PARTICLE_LIST];
};

/* Either of them. Entries of bed and walls come first; the last vector of lanes is padded. */
struct list {
    uint32_t *entry; /* partner's sphere id or ENTRY_*, | which of the own spheres << 30 */
    float *spring[3];
    uint32_t room;
};

#define ENTRY_OWN_SHIFT 30
#define ENTRY_PARTNER 0x3fffffffu
#define ENTRY_BED 0x3ffffff0u
#define ENTRY_WALL 0x3ffffff1u /* + 0 west (x=0), 1 east, 2 south (y=0), 3 north */

/* Force on a cluster, and torque about the centre of its mover; kept while the mover sleeps. */
struct load {
    float force[4], torque[4];
};

/* Bits of clusters. */
enum { WORD_BITS = 32 };

struct slot {
    bool used, failed;
    bool recheck; /* something was added or removed: all lists and forces are made again */
    bool status_asked, depth_asked, spheres_asked;
    struct granular_params params; /* its material */
    struct granular_box box;
    struct granular_bed bed;
    float bed_top_m;  /* its highest sample */
    float bed_near_m; /* a sphere that may touch the bed is less than this above it */
    float wake_force; /* unbalanced force that wakes a granule [N] */
    float calm;       /* further drag of granules [1/s] */
    float period[3];  /* the box repeats along this axis; 0: it does not (patches never do) */

    uint32_t granules;
    uint32_t bodies_end;    /* all bodies lie below */
    uint32_t particles_end; /* all particles of bodies lie below */
    uint64_t steps;

    /*
     * [granules_max + bodies_max + 1]. x[3]: soft, as of bodies; w[3]: way since its list was made
     * [m], INFINITY when there was none. A body is copied here before each step.
     */
    struct granule *mover;
    /* [bodies_max] three times, [particles_max] twice, [bed_max] */
    struct granular_body *body;
    const struct sand_path **path; /* NULL: the body is free */
    uint64_t *came_in;             /* steps then */
    uint32_t *particle_body;       /* GRANULAR_BODY_NONE: the particle is free */
    float (*offset)[3];            /* of a particle, from its body's centre, body frame */
    float *bed_m;

    /* By id of sphere, and one more that nothing touches; [3]: bits of the mover's index. */
    float (*position)[4];

    /* By cluster. */
    struct granule_list *granule_list;
    struct particle_list *particle_list;
    uint8_t *listed; /* entries */
    struct load *load;
    struct load *by_granules; /* [particles_max] the part of it that is of granules */
    uint32_t *cell, *next;    /* its cell in the grid, and the next cluster there */

    /* A bit for each cluster. */
    uint32_t *awake;
    uint32_t *hot;            /* its list is to be made again, with those of its partners */
    uint32_t *crowded;        /* its list had too little room: it stays hot */
    _Atomic uint32_t *beside; /* a partner of what is hot */
    _Atomic uint32_t *border; /* sleeps beside something awake: its forces may change */

    /* The grid of clusters by their centres: the first of each cell. NONE ends a chain. */
    float side[3];
    uint32_t cells[3];
    uint32_t *head;

    struct sand_depth depth; /* requested */
};

#define NONE 0xffffffffu

struct solver {
    struct sand_engine engine; /* first */
    struct workers *workers;
    const struct solver_lanes *lanes;
    uint32_t spheres_max;       /* ids of a slot end here; this one touches nothing */
    uint32_t particle_clusters; /* the first of them */
    float skin_m;
    float reach_m; /* of a granule's spheres' centres from its own */
    float phase_ms[SAND_PHASE_COUNT];
    float tetrahedron[GRANULE_SPHERES][3]; /* offsets of a granule's spheres */
    uint64_t bytes;                        /* of all slots */
    struct slot *slot;                     /* [slots] */
};

/* What the jobs of one substep share. */
struct step {
    struct solver *solver;
    struct slot *slot;
    const struct granular_params *params;
    atomic_bool failed;
};

static inline struct solver *solver_of(struct sand_engine *engine)
{
    return (struct solver *)engine;
}

/* First id of the particles' spheres. */
static inline uint32_t particles_first(const struct solver *solver)
{
    return solver->engine.config.granules_max * GRANULE_SPHERES;
}

/* Index of a body's mover. */
static inline uint32_t body_mover(const struct solver *solver, uint32_t body)
{
    return solver->engine.config.granules_max + body;
}

static inline uint32_t ground_mover(const struct solver *solver)
{
    return solver->engine.config.granules_max + solver->engine.config.bodies_max;
}

static inline uint32_t mover_of_sphere(const struct slot *slot, uint32_t sphere)
{
    uint32_t mover;

    memcpy(&mover, &slot->position[sphere][3], sizeof(mover));
    return mover;
}

static inline uint32_t cluster_of_sphere(const struct solver *solver, uint32_t sphere)
{
    const uint32_t first = particles_first(solver);

    return sphere < first ? sphere / GRANULE_SPHERES : solver->particle_clusters + (sphere - first);
}

/* Its first sphere. */
static inline uint32_t sphere_of_cluster(const struct solver *solver, uint32_t cluster)
{
    return cluster < solver->particle_clusters
               ? cluster * GRANULE_SPHERES
               : particles_first(solver) + (cluster - solver->particle_clusters);
}

static inline struct list list_of(const struct solver *solver, const struct slot *slot,
                                  uint32_t cluster)
{
    if (cluster < solver->particle_clusters) {
        struct granule_list *list = &slot->granule_list[cluster];

        return (struct list){
            list->entry, {list->spring[0], list->spring[1], list->spring[2]}, GRANULE_LIST};
    } else {
        struct particle_list *list = &slot->particle_list[cluster - solver->particle_clusters];

        return (struct list){
            list->entry, {list->spring[0], list->spring[1], list->spring[2]}, PARTICLE_LIST};
    }
}

/* Words of bits of all clusters that a slot has. */
static inline uint32_t words_of(const struct solver *solver, const struct slot *slot)
{
    return (solver->particle_clusters + slot->particles_end + WORD_BITS - 1) / WORD_BITS;
}

static inline bool bit_of(const uint32_t *bits, uint32_t cluster)
{
    return bits[cluster / WORD_BITS] >> cluster % WORD_BITS & 1;
}

static inline void bit_set(uint32_t *bits, uint32_t cluster, bool on)
{
    const uint32_t bit = (uint32_t)1 << cluster % WORD_BITS;

    bits[cluster / WORD_BITS] =
        on ? bits[cluster / WORD_BITS] | bit : bits[cluster / WORD_BITS] & ~bit;
}

/* Sets the bit of a sphere's cluster, from any thread. */
static inline void sphere_mark(const struct solver *solver, _Atomic uint32_t *bits, uint32_t sphere)
{
    const uint32_t cluster = cluster_of_sphere(solver, sphere);
    const uint32_t bit = (uint32_t)1 << cluster % WORD_BITS;
    _Atomic uint32_t *word = &bits[cluster / WORD_BITS];

    if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

/* Has moved by half of the skin, or is not a number. */
static inline bool mover_hot(const struct solver *solver, const struct granule *mover)
{
    return !(mover->w[3] <= 0.5f * solver->skin_m);
}

static inline bool mover_asleep(const struct granular_params *params, const struct granule *mover)
{
    return mover->v[3] >= params->sleep_after_s;
}

static inline bool body_asleep(const struct granular_params *params, const struct granular_body *b)
{
    return b->v[3] >= params->sleep_after_s;
}

/* Height of the bed and its unit normal below x, y. */
float solver_bed(const struct slot *slot, float x, float y, struct f3 *normal);

/* Positions of the spheres of a granule; of particles first <= p < end whose bodies are awake. */
void solver_place_granule(const struct solver *solver, struct slot *slot, uint32_t g);
void solver_place_particles(const struct solver *solver, struct slot *slot, uint32_t first,
                            uint32_t end);

/* Makes the lists of what is hot and of its partners again; all of them in a slot to recheck. */
void solver_lists_make(struct step *step);

/* One substep of a slot. Poses of a slot that has failed stay as they became. */
void solver_step_slot(struct solver *solver, struct slot *slot);

/* The answers: as in engine.h. */
void solver_status_request(struct sand_engine *engine, uint32_t slot);
bool solver_status_poll(struct sand_engine *engine, uint32_t slot, struct sand_status *status);
enum err_code solver_depth_request(struct sand_engine *engine, uint32_t slot,
                                   const struct sand_depth *depth, struct err *err);
bool solver_depth_poll(struct sand_engine *engine, uint32_t slot, float *heights_m);
void solver_spheres_request(struct sand_engine *engine, uint32_t slot);
bool solver_spheres_poll(struct sand_engine *engine, uint32_t slot, float (*spheres)[4],
                         uint32_t *count);
uint32_t solver_granules_read(struct sand_engine *engine, uint32_t slot, struct granule *granules);

#endif
