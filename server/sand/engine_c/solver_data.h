#ifndef KOTA_SAND_SOLVER_DATA_H
#define KOTA_SAND_SOLVER_DATA_H

/* The insides of the C engine, shared by its files: solver.c, solver_step.c, solver_results.c. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

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

/* A contact in the history of a sphere. */
struct contact {
    float spring[3];  /* tangential displacement [m] */
    uint32_t partner; /* id of the other sphere, or GRANULAR_PARTNER_* */
};

/* A sphere in the order of the cells. */
struct sorted {
    float x[3];
    uint32_t id;
};

struct slot {
    bool used, failed;
    bool recheck; /* something was added or removed: sleepers check their contacts once */
    bool status_asked, depth_asked, spheres_asked;
    struct granular_box box;
    struct granular_bed bed;
    float wake_force; /* unbalanced force that wakes a granule [N] */
    float side[3];    /* of a cell: params.cell_m, or a whole part of the period */
    float period[3];  /* the box repeats along this axis; 0: it does not (patches never do) */

    uint32_t granules;
    uint32_t bodies_end;    /* all bodies lie below */
    uint32_t particles_end; /* all particles of bodies lie below */
    uint64_t steps;

    /* [granules_max], [bodies_max], [particles_max] twice, [bed_max] */
    struct granule *granule;
    struct granular_body *body;
    uint32_t *particle_body; /* GRANULAR_BODY_NONE: the particle is free */
    float (*offset)[3];      /* of a particle, from its body's centre, body frame */
    float *bed_m;

    /*
     * By id of sphere, [4 granules_max + particles_max]. A removed particle has cell NO_CELL.
     * force and torque (about the centre of its granule or body) are kept while a sphere sleeps.
     */
    float (*position)[4];
    float (*arm)[4]; /* from the centre of its granule or body, local frame */
    float (*force)[3];
    float (*torque)[3];
    uint32_t *cell;
    uint32_t *contacts;
    struct contact (*contact)[GRANULAR_CONTACTS_MAX];

    /* The cell grid: [cells + 1], [cells], [spheres]. */
    uint32_t *cell_first;
    uint8_t *cell_awake; /* a sphere in it belongs to something awake */
    struct sorted *sorted;

    struct sand_depth depth; /* requested */
};

struct solver {
    struct sand_engine engine; /* first */
    struct workers *workers;
    uint32_t spheres_max; /* ids of a slot end here */
    float phase_ms[SAND_PHASE_COUNT];
    float tetrahedron[GRANULE_SPHERES][3]; /* offsets of a granule's spheres */
    struct slot *slot;                     /* [slots] */
};

#define NO_CELL 0xffffffffu

static inline struct solver *solver_of(struct sand_engine *engine)
{
    return (struct solver *)engine;
}

/* First id of the particles. */
static inline uint32_t particles_first(const struct solver *solver)
{
    return solver->engine.config.granules_max * GRANULE_SPHERES;
}

static inline bool granule_asleep(const struct granular_params *params, const struct granule *g)
{
    return g->v[3] >= params->sleep_after_s;
}

static inline bool body_asleep(const struct granular_params *params, const struct granular_body *b)
{
    return b->v[3] >= params->sleep_after_s;
}

/* Height of the bed and its unit normal below x, y. */
float solver_bed(const struct slot *slot, float x, float y, struct f3 *normal);

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
