/*
 * What the two halves of the manager share: manager.c takes orders, manager_run.c moves patches.
 */
#ifndef KOTA_SAND_MANAGER_DATA_H
#define KOTA_SAND_MANAGER_DATA_H

#include "sand/patch/manager.h"

#define DISCARDED_ON_REQUEST "discarded on request"

/* The purpose of a depth map. */
enum depth_use { DEPTH_NONE, DEPTH_BEFORE, DEPTH_INSERT, DEPTH_AFTER };

/* A body of a patch. */
struct patch_member {
    struct patch_body body;          /* freed when it is removed */
    bool is_in;                      /* the engine has it */
    bool is_removed;                 /* its number stays its own */
    uint32_t index;                  /* there */
    uint64_t in_at;                  /* substeps that had been sent then */
    struct sand_pose pose;           /* the last that is known, once it is in */
    struct sand_forces sums;         /* as of the last status */
    struct sand_forces told;         /* those at the last pose that was reported */
    double force_n[3], torque_nm[3]; /* mean since the pose before that */
    double lowered_m;                /* at rest, onto the ground as it was written */
    char layer[WORLD_ID_MAX + 1];    /* that it has become; "": none */
};

struct patch {
    uint64_t number;
    struct patch_start start; /* emptied when the patch ends */
    enum patch_state state;
    char reason[PATCH_REASON_BYTES];
    char unleft[PATCH_REASON_BYTES]; /* why its bodies have not become layers, or "" */
    uint32_t slot;                   /* of its scale, until it ends */
    uint32_t granules, filled;
    bool is_begun;      /* the engine's slot is */
    bool is_closing;    /* it ends as soon as it rests and is written */
    bool is_dropped;    /* it ends when its write has come back */
    bool wants_to_wake; /* a push came while it rested */
    bool was_capped;
    bool is_saved;     /* this rest has been written */
    bool is_submitted; /* a write is on its way */
    uint64_t sent;     /* substeps that the engine was given since begin */
    uint64_t fresh_at; /* a status before so many substeps is no evidence of stillness */
    struct sand_status status;
    double still_since_s; /* simulated; below 0: it moves */
    double awake_since_s; /* simulated */
    double behind_s;      /* as in patch_report */
    double filled_at_s, active_at_s;
    double made_at_s, rested_at_s, ended_at_s, told_at_s, write_at_s;
    uint32_t write_tries;
    enum depth_use depth; /* that is being measured */
    float *before_m, *settled_m, *surface_m;
    struct convert_change change;
    struct patch_dent *dents;      /* of bodies that are in; no change takes them back yet */
    struct patch_dent *sent_dents; /* that the change takes back */
    bool has_ledger, has_revision;
    struct mass_ledger ledger; /* of all writes */
    struct sample_rect rect;   /* of the last */
    uint64_t revision;
    bool has_news; /* a status has come since poses were last reported, at told_at_s */
    uint64_t serial, poses;
    uint64_t transition_count;
    struct patch_transition transitions[PATCH_TRANSITIONS_KEPT];
    struct patch_report *last; /* when it has ended */
    uint32_t member_count;
    struct patch_member members[SAND_BODIES_MAX];
};

struct manager_engine {
    struct sand_engine *engine; /* NULL: none */
    struct patch *owners[SAND_SLOTS_MAX];
    double credit_s; /* simulated time that active patches may be stepped */
    float phase_ms[SAND_PHASE_COUNT], pass_ms[SAND_PASS_COUNT]; /* as last measured */
    struct sand_rate rate;
};

struct manager {
    struct manager_limits limits;
    struct manager_calls calls;
    struct manager_engine engines[SCALE_COUNT];
    struct patch **patches; /* by number */
    size_t count, room;
    uint64_t last_number;
    double last_tick_s;
    bool has_ticked;
    struct manager_stats stats;
};

/* manager.c */
struct patch *manager_find(const struct manager *manager, uint64_t number);
/* A report of the patch as it is; NULL without memory. */
struct patch_report *manager_report(struct patch *patch, double now_s);
/* Makes a report and sends it out. */
void manager_publish(struct manager *manager, struct patch *patch, bool is_state, double now_s);
void manager_move(struct manager *manager, struct patch *patch, enum patch_state state,
                  double now_s);
/* To one of the three ends: frees its slot. */
void manager_finish(struct manager *manager, struct patch *patch, enum patch_state state,
                    double now_s, const char *format, ...) __attribute__((format(printf, 5, 6)));
struct sand_engine *manager_engine_of(const struct manager *manager, const struct patch *patch);
/* The engine of a scale is gone: its patches fail. */
void manager_engine_lost(struct manager *manager, enum granular_scale scale, const char *why,
                         double now_s);

/*
 * Lowers the reported poses of bodies at rest onto the ground as it was written (lower.c).
 */
void manager_lower(struct patch *patch, const struct heightfield *field, double diameter_m);

/* manager_run.c */
/* How far a pose must be lifted so that the body touches neither granules nor other bodies. */
double manager_lift(const struct manager *manager, const struct patch *patch,
                    const struct patch_member *member, const struct sand_pose *pose,
                    const float *surface_m);

#endif
