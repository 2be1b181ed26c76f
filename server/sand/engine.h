#ifndef KOTA_SAND_ENGINE_H
#define KOTA_SAND_ENGINE_H

/*
 * The interface below the patch manager: an engine steps all patches of one scale.
 *
 * Two engines exist: the C reference (solver.h, answers at once) and the OpenGL one (gl_engine.h,
 * answers when its fences have passed). Both are used through the inline functions at the end.
 *
 * One thread owns an engine and makes all calls. No call blocks on the device but destroy and
 * granules_read. Answers to requests (status, depth, spheres) come later by polling: `poll` returns
 * true once for each answer; of several pending requests the latest wins.
 *
 * A slot is free, or begun. begin -> fill in portions -> step with other slots -> end.
 * Granules and bodies that were added take part from the next step on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sand/granular.h"
#include "sand/path.h"

#define SAND_SLOTS_MAX 64
#define SAND_BODIES_MAX 64

/* The pool: everything is allocated by create, each number is for one slot but slots. */
struct sand_engine_config {
    struct granular_params params; /* of slots that bring none of their own */
    uint32_t slots;                /* 1..SAND_SLOTS_MAX */
    uint32_t granules_max;
    uint32_t bodies_max;    /* 1..SAND_BODIES_MAX */
    uint32_t particles_max; /* shell particles of all bodies of a slot */
    uint32_t cells_max;     /* of the cell grid; >= one layer of the box */
    uint32_t bed_max;       /* samples of the bed */
    uint32_t depth_max;     /* sub-texels (cols * rows * oversample^2) of one depth request */
    uint32_t threads; /* C engine: workers besides the caller are threads - 1; 0 counts as 1 */
};

/* What a slot begins with. heights_m[bed.rows][bed.cols], row 0 at the smallest y. */
struct sand_slot_begin {
    float size_m[2];  /* of the box; each >= 4 D */
    float height_m;   /* of the granules above the lowest bed sample: sizes the cell grid */
    float gravity[3]; /* m/s2 */
    struct granular_bed bed;
    const float *heights_m;
    /* Its material, borrowed for the call: radius, step and limits as of the pool's. NULL: that. */
    const struct granular_params *params;
};

/* A shell: a model at this scale. Borrowed for the call. */
struct sand_shape {
    const float (*offsets_m)[3]; /* [particles], from the centre of mass, body frame */
    uint32_t particles;          /* >= 1 */
    float mass_kg;               /* > 0; with a path it is not looked at */
    float inertia[3][3];         /* kg m2, about the centre, body frame, positive definite */
    /* Of a kinematic body: it follows it, nothing pushes it. Borrowed as long as the body is in its
       slot. NULL: a free body. */
    const struct sand_path *path;
};

struct sand_pose {
    float x[3]; /* centre of mass, local frame */
    float q[4]; /* x y z w */
    float v[3];
    float w[3];
};

/* What granules did to a body: sums over the substeps in which it or they were awake. */
struct sand_forces {
    double force_n[3];
    double torque_nm[3]; /* about its centre of mass; both along the slot's axes */
    uint32_t substeps;   /* modulo 2^32 */
};

enum sand_phase {
    SAND_PHASE_INTEGRATE, /* poses from forces, positions of spheres */
    SAND_PHASE_GRID,      /* count, scan, scatter, reorder */
    SAND_PHASE_FORCE,
    SAND_PHASE_DEPTH,
    SAND_PHASE_COUNT
};

/* The passes of a substep of the OpenGL engine. */
#define SAND_PASSES(X)                                                                             \
    X(PLACE, "place")                                                                              \
    X(SCAN_BLOCKS, "scan_blocks")                                                                  \
    X(SCAN_SUMS, "scan_sums")                                                                      \
    X(SCATTER, "scatter")                                                                          \
    X(REORDER, "reorder")                                                                          \
    X(FORCE, "force")                                                                              \
    X(MOVE_GRANULES, "move_granules")                                                              \
    X(MOVE_BODIES, "move_bodies")

enum sand_pass {
#define SAND_PASS_ENUM(name, word) SAND_PASS_##name,
    SAND_PASSES(SAND_PASS_ENUM)
#undef SAND_PASS_ENUM
        SAND_PASS_COUNT
};

struct sand_status {
    uint64_t steps;          /* substeps since begin */
    double time_s;           /* simulated, since begin */
    double kinetic_energy_j; /* of granules and bodies */
    uint32_t granules;
    uint32_t asleep;      /* granules */
    uint32_t bodies;      /* alive */
    float body_speed_max; /* largest |v| of a body, or |w| times its radius; 0 without bodies */
    bool failed;          /* a state was not finite: the slot is stepped no more */
    /* Milliseconds of one substep of the whole engine (all slots), the last measured. */
    float phase_ms[SAND_PHASE_COUNT];
    float pass_ms[SAND_PASS_COUNT]; /* the same by pass; 0 on the C engine */
    uint64_t body_alive;            /* bit b: pose[b] is a body */
    struct sand_pose pose[SAND_BODIES_MAX];
    struct sand_forces forces[SAND_BODIES_MAX];
};

/*
 * A top-down view of granules only, along -z. Texel (c, r) is centred on (x0 + c dx, y0 + r dy) and
 * dx by dy wide; each is the mean of oversample^2 points in the centres of its sub-texels. The
 * height of a point is the highest sphere cap z + sqrt(r^2 - d^2) above it, or the bed's height
 * where no sphere is. Points outside the box are treated like any other.
 */
struct sand_depth {
    float x0, y0, dx, dy;
    uint32_t cols, rows;
    uint32_t oversample; /* >= 1 */
};

struct sand_engine;

/* The calls of an engine, as documented at the functions below. */
struct sand_engine_calls {
    const char *name; /* "c" or "gl" */
    void (*destroy)(struct sand_engine *engine);
    enum err_code (*begin)(struct sand_engine *engine, uint32_t slot,
                           const struct sand_slot_begin *begin, struct err *err);
    enum err_code (*fill)(struct sand_engine *engine, uint32_t slot, const struct granule *granules,
                          uint32_t count, struct err *err);
    void (*end)(struct sand_engine *engine, uint32_t slot);
    void (*calm)(struct sand_engine *engine, uint32_t slot, float drag);
    enum err_code (*body_add)(struct sand_engine *engine, uint32_t slot,
                              const struct sand_shape *shape, const struct sand_pose *pose,
                              uint32_t *body, struct err *err);
    void (*body_remove)(struct sand_engine *engine, uint32_t slot, uint32_t body);
    void (*body_velocity)(struct sand_engine *engine, uint32_t slot, uint32_t body,
                          const float v[3], const float w[3]);
    void (*body_impulse)(struct sand_engine *engine, uint32_t slot, uint32_t body,
                         const float impulse[3]);
    enum err_code (*step)(struct sand_engine *engine, uint32_t substeps, uint64_t active,
                          struct err *err);
    void (*status_request)(struct sand_engine *engine, uint32_t slot);
    bool (*status_poll)(struct sand_engine *engine, uint32_t slot, struct sand_status *status);
    enum err_code (*depth_request)(struct sand_engine *engine, uint32_t slot,
                                   const struct sand_depth *depth, struct err *err);
    bool (*depth_poll)(struct sand_engine *engine, uint32_t slot, float *heights_m);
    void (*spheres_request)(struct sand_engine *engine, uint32_t slot);
    bool (*spheres_poll)(struct sand_engine *engine, uint32_t slot, float (*spheres)[4],
                         uint32_t *count);
    uint32_t (*granules_read)(struct sand_engine *engine, uint32_t slot, struct granule *granules);
};

/* First member of each engine. */
struct sand_engine {
    const struct sand_engine_calls *calls;
    struct sand_engine_config config;
};

/* Blocks until the device is done. NULL does nothing. */
static inline void sand_engine_destroy(struct sand_engine *engine)
{
    if (engine)
        engine->calls->destroy(engine);
}

/*
 * Begins a slot that is free: its box, bed and gravity are copied, it holds nothing.
 * ERR_UNPROCESSABLE: the box does not fit into cells_max or bed_max; the message names the limit.
 */
static inline enum err_code sand_slot_begin(struct sand_engine *engine, uint32_t slot,
                                            const struct sand_slot_begin *begin, struct err *err)
{
    return engine->calls->begin(engine, slot, begin, err);
}

/*
 * Appends granules to those of the slot; their ids follow. x, q, v and w are taken as they are
 * (v[3]: time they have been slow). ERR_UNPROCESSABLE: more than granules_max.
 */
static inline enum err_code sand_slot_fill(struct sand_engine *engine, uint32_t slot,
                                           const struct granule *granules, uint32_t count,
                                           struct err *err)
{
    return engine->calls->fill(engine, slot, granules, count, err);
}

/* Frees a slot; answers that are pending are dropped. A free slot stays free. */
static inline void sand_slot_end(struct sand_engine *engine, uint32_t slot)
{
    engine->calls->end(engine, slot);
}

/*
 * Granules of the slot lose so much of their velocities and spins more [1/s], from the next step
 * on; 0 after begin. For ground that settles and is not shown: it comes to rest sooner.
 */
static inline void sand_slot_calm(struct sand_engine *engine, uint32_t slot, float drag)
{
    engine->calls->calm(engine, slot, drag);
}

/*
 * Adds a body; *body is its index in the slot, the lowest that is free. Velocities above
 * params.speed_max are cut. One with a path is where that begins; its pose is not looked at, and
 * it takes no velocity nor impulse. ERR_BAD_INPUT: not finite, mass or inertia not positive.
 * ERR_UNPROCESSABLE: more than bodies_max or particles_max.
 */
static inline enum err_code sand_body_add(struct sand_engine *engine, uint32_t slot,
                                          const struct sand_shape *shape,
                                          const struct sand_pose *pose, uint32_t *body,
                                          struct err *err)
{
    return engine->calls->body_add(engine, slot, shape, pose, body, err);
}

static inline void sand_body_remove(struct sand_engine *engine, uint32_t slot, uint32_t body)
{
    engine->calls->body_remove(engine, slot, body);
}

/* Sets both velocities (NULL: leave it); wakes the body. */
static inline void sand_body_velocity(struct sand_engine *engine, uint32_t slot, uint32_t body,
                                      const float v[3], const float w[3])
{
    engine->calls->body_velocity(engine, slot, body, v, w);
}

/* Adds impulse / mass [N s] to the velocity; wakes the body. */
static inline void sand_body_impulse(struct sand_engine *engine, uint32_t slot, uint32_t body,
                                     const float impulse[3])
{
    engine->calls->body_impulse(engine, slot, body, impulse);
}

/*
 * Steps the slots whose bit is set in `active` by `substeps` of params.dt_s (usually
 * params.substeps: one 60 Hz frame). Slots that are free or failed are passed over.
 * ERR_INTERNAL: the device is lost; every slot is, too, and only destroy remains.
 */
static inline enum err_code sand_engine_step(struct sand_engine *engine, uint32_t substeps,
                                             uint64_t active, struct err *err)
{
    return engine->calls->step(engine, substeps, active, err);
}

/* Asks for the status after the steps that were submitted so far. */
static inline void sand_status_request(struct sand_engine *engine, uint32_t slot)
{
    engine->calls->status_request(engine, slot);
}

/* True when a status has come since the last poll: the newest is in *status. */
static inline bool sand_status_poll(struct sand_engine *engine, uint32_t slot,
                                    struct sand_status *status)
{
    return engine->calls->status_poll(engine, slot, status);
}

/* Asks for depths. ERR_UNPROCESSABLE: more than depth_max sub-texels. */
static inline enum err_code sand_depth_request(struct sand_engine *engine, uint32_t slot,
                                               const struct sand_depth *depth, struct err *err)
{
    return engine->calls->depth_request(engine, slot, depth, err);
}

/* True when they have come: heights_m[rows][cols] of the request, local frame. */
static inline bool sand_depth_poll(struct sand_engine *engine, uint32_t slot, float *heights_m)
{
    return engine->calls->depth_poll(engine, slot, heights_m);
}

static inline void sand_spheres_request(struct sand_engine *engine, uint32_t slot)
{
    engine->calls->spheres_request(engine, slot);
}

/*
 * True when they have come. spheres[granules_max * params.spheres + particles_max][4]: x, y, z of
 * the centres and -1 for a granule's sphere or the index of the body; granules first, by id.
 * *count: how many were written.
 */
static inline bool sand_spheres_poll(struct sand_engine *engine, uint32_t slot, float (*spheres)[4],
                                     uint32_t *count)
{
    return engine->calls->spheres_poll(engine, slot, spheres, count);
}

/* Blocks (for tests, never on the way of a patch): granules[granules_max]; returns the count. */
static inline uint32_t sand_granules_read(struct sand_engine *engine, uint32_t slot,
                                          struct granule *granules)
{
    return engine->calls->granules_read(engine, slot, granules);
}

#endif
