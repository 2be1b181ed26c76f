/*
 * The manager of patches (text S, 5.1; design, section 4): a pool of slots at three scales, the
 * states of each patch, rest, pause, waking and writing back.
 *
 * Pure but for the engines that it drives: the time is passed in (seconds of a clock that never
 * goes back), what concerns the world goes out by calls. One thread owns it.
 */
#ifndef KOTA_SAND_MANAGER_H
#define KOTA_SAND_MANAGER_H

#include "sand/patch/patch.h"

struct manager_limits {
    uint32_t active_max;    /* patches that are stepped at once; the others wait in filling, 4 */
    uint32_t kept_max;      /* patches that have ended and are kept, 256 */
    double keep_s;          /* how long those are kept, 600 */
    double pause_after_s;   /* of stillness, simulated: active -> resting, 2 */
    double linger_s;        /* of rest, wall time: resting -> written, 30 */
    double settle_still_s;  /* of stillness, simulated: settling -> active, 0.25 */
    double settle_max_s;    /* simulated; not settled by then: failed, 30 */
    double active_max_s;    /* simulated, since it was made active or woken: resting, 60 */
    double speed;           /* simulated seconds a second while active; 0: as fast as it goes, 1 */
    double report_s;        /* the least time between two reports of poses, 0.05 */
    uint32_t fill_granules; /* that are handed to the engine in one tick, 8,192 */
};

extern const struct manager_limits manager_limits_default;

struct manager_calls {
    void *context;
    /* A new report; taken. With `is_state` a state has changed. */
    void (*report)(void *context, struct patch_report *report, bool is_state);
    /* The patch is no longer kept. */
    void (*forget)(void *context, uint64_t number);
    /*
     * Add these heights (taken, malloc; without columns NULL) to the ground, if the locale still is
     * at that revision, and of a patch that leaves its bodies make layers of them (manager_leave).
     * manager_written gets the outcome, later or at once.
     */
    void (*write)(void *context, uint64_t number, const struct patch_start *start,
                  uint64_t revision, const struct sample_rect *rect, float *heights_m);
    /* An engine has lost its device: all its patches have failed, it is no longer used. */
    void (*lost)(void *context, enum granular_scale scale);
};

struct manager_stats {
    uint32_t slots[SCALE_COUNT], used[SCALE_COUNT];
    uint32_t states[PATCH_STATES]; /* kept patches by state */
    uint64_t made, written, discarded, failed;
    uint64_t steps[SCALE_COUNT];          /* substeps, of all patches of a scale together */
    uint64_t particle_steps[SCALE_COUNT]; /* spheres times substeps */
    float phase_ms[SCALE_COUNT][SAND_PHASE_COUNT];
    float pass_ms[SCALE_COUNT][SAND_PASS_COUNT]; /* of the OpenGL engine */
    struct sand_rate rate[SCALE_COUNT];
};

struct manager;

/* NULL and ERR_NO_MEMORY. */
struct manager *manager_create(const struct manager_limits *limits,
                               const struct manager_calls *calls, struct err *err);
void manager_destroy(struct manager *manager); /* its engines stay; NULL is fine */

/* Which engine does a scale; borrowed until it is set again. NULL: none, its patches have failed.
 */
void manager_set_engine(struct manager *manager, enum granular_scale scale,
                        struct sand_engine *engine, double now_s);

/* The rate of a scale's engine (estimate.h), as measured; patches move it (sand_rate_learn). */
void manager_set_rate(struct manager *manager, enum granular_scale scale, double sphere_steps_s);

/*
 * A new patch; takes start, also on error. *report is its first report, a reference for the
 * caller.
 * ERR_CONFLICT  it shares a cell with another patch
 * ERR_BUSY      all patches of this scale are in use; there is no engine
 * ERR_UNPROCESSABLE more bodies or particles than a patch takes
 */
enum err_code manager_add(struct manager *manager, struct patch_start *start, double now_s,
                          struct patch_report **report, struct err *err);

/*
 * Adds a body (taken, also on error); it comes in when the patch is active and wakes it if it
 * rests. It is put higher where it would touch granules or another body.
 * ERR_NOT_FOUND, ERR_CONFLICT (the patch is being closed or written, or has ended),
 * ERR_UNPROCESSABLE (too many; a patch gives SAND_BODIES_MAX numbers)
 */
enum err_code manager_body_add(struct manager *manager, uint64_t number, struct patch_body *body,
                               double now_s, struct patch_report **report, struct err *err);

/* Pushes a body; a held one starts with it. Errors as above, and of patch_push_check. */
enum err_code manager_push(struct manager *manager, uint64_t number, uint32_t body,
                           const struct patch_push *push, double now_s,
                           struct patch_report **report, struct err *err);

/*
 * Removes a body for good; the others keep their numbers, and a patch that rests wakes.
 * ERR_BODY_UNKNOWN; else as of a push.
 */
enum err_code manager_body_remove(struct manager *manager, uint64_t number, uint32_t body,
                                  double now_s, struct patch_report **report, struct err *err);

/*
 * Ends a patch: with `discard` at once (what was written at an earlier rest stays), else it
 * continues to rest, is written, and ends then. Of a patch that has ended nothing changes.
 * ERR_NOT_FOUND.
 */
enum err_code manager_close(struct manager *manager, uint64_t number, bool discard, double now_s,
                            struct patch_report **report, struct err *err);

/* Each patch that has not ended; the locale's revision may be moved on. */
void manager_each(struct manager *manager,
                  void (*visit)(void *context, uint64_t number, struct patch_start *start),
                  void *context);
/* Ends a patch as discarded or failed. */
void manager_end(struct manager *manager, uint64_t number, enum patch_state state, const char *why,
                 double now_s);

/* What came of a write: ERR_OK, the revision and the layer as it is then (borrowed), or why not. */
void manager_written(struct manager *manager, uint64_t number, enum err_code code,
                     uint64_t revision, const struct heightfield *field, const char *why,
                     double now_s);

/*
 * The bodies of a patch that become layers, left[SAND_BODIES_MAX], lowered onto the ground as it is
 * going to be written; returns their number. manager_left: they have, before manager_written.
 */
uint32_t manager_leave(struct manager *manager, uint64_t number, const struct heightfield *field,
                       struct patch_left *left);
void manager_left(struct manager *manager, uint64_t number, const struct patch_left *left,
                  uint32_t count);

/*
 * Runs all work that is due at this time. Returns the seconds until its next call, INFINITY when
 * nothing is pending.
 */
double manager_tick(struct manager *manager, double now_s);

/*
 * The spheres of a patch, for a picture: a request to its engine; false when it has no slot. poll:
 * true when they have come, spheres[manager_spheres_max][4] as in engine.h.
 */
bool manager_spheres_request(struct manager *manager, uint64_t number);
uint32_t manager_spheres_max(const struct manager *manager, uint64_t number);
/* 1: there; 0: not yet; -1: never, the slot is gone. */
int manager_spheres_poll(struct manager *manager, uint64_t number, float (*spheres)[4],
                         uint32_t *count);

void manager_stats(const struct manager *manager, struct manager_stats *out);

/* Checks the invariants: slots and owners agree, no two patches overlap, counts. For tests. */
bool manager_validate(const struct manager *manager, struct err *err);

#endif
