/*
 * A patch: a square of ground that is granules for a while (text S, 5.1).
 *
 *   filling -> settling -> active <-> resting -> written | discarded | failed
 *
 * At each rest the difference becomes an edit; `written` is the end of the patch, when it has
 * rested for long enough.
 *
 * A patch is a record that the manager advances (manager.h); this header has its parts, the checks
 * of its bodies, and the report of it that other threads read.
 */
#ifndef KOTA_SAND_PATCH_H
#define KOTA_SAND_PATCH_H

#include "sand/convert/convert.h"
#include "sand/material.h"
#include "sand/patch/estimate.h"
#include "world/world.h"

enum { PATCH_TRANSITIONS_KEPT = 32, PATCH_REASON_BYTES = 320, PATCH_KEY_MAX = STORE_OP_ID_MAX };

/* A body starts at most so far above the ground. */
#define PATCH_BODY_ABOVE_M 20.0

/* The path of a body has so many poses at most, and so many seconds. */
enum { PATCH_PATH_POSES_MAX = 1000 };
#define PATCH_PATH_S_MAX 600.0

enum patch_state {
    PATCH_FILLING,
    PATCH_SETTLING,
    PATCH_ACTIVE,
    PATCH_RESTING,
    PATCH_WRITTEN, /* the three ends */
    PATCH_DISCARDED,
    PATCH_FAILED,
    PATCH_STATES
};

/* "filling", … */
const char *patch_state_name(enum patch_state state);
bool patch_state_is_end(enum patch_state state);

/* ---- bodies ---------------------------------------------------------------------------------- */

/* A model at a scale, counted by its maker. */
struct scaled_model {
    struct sand_shape shape;  /* with its mass and inertia */
    float center_m[3];        /* centre of mass in the model's frame */
    const float (*skin_m)[3]; /* [skin_count] points of its surface, about the centre of mass */
    uint32_t skin_count;
    struct layer *surface; /* the model's triangles in its own frame; may be NULL */
    void *owner;           /* the owner of the particles; freed by release, may be NULL */
    void (*release)(void *owner);
};

/*
 * The crater of an impact, made before granules refine it (dent.c). It is in the ground, and not in
 * the patch's: when the patch writes what its body did, the same edit takes the crater back.
 */
struct patch_dent {
    struct patch_dent *next;
    struct sample_rect rect;
    float *added_m; /* [rect.rows][rect.cols]: what the crater has added; malloc */
    /* Once: it was taken back by the edit of this revision; or, 0, it stays in the ground. */
    void (*end)(void *context, uint64_t patch, uint64_t revision, const char *why);
    void *context;
};

/* Ends all of a list and frees them; NULL is fine. */
void patch_dents_end(struct patch_dent *dents, uint64_t patch, uint64_t revision, const char *why);
/*
 * Adds the taking back of all of a list to a change of the same field. ERR_NO_MEMORY: nothing has
 * changed.
 */
enum err_code patch_dents_take_back(const struct patch_dent *dents, struct convert_change *change,
                                    struct err *err);
/* The field without it, a reference. NULL: ERR_NO_MEMORY. */
struct heightfield *patch_dent_undo(const struct heightfield *field, const struct patch_dent *dent,
                                    struct err *err);

/* A requested body. position and orientation are those of the model's frame. */
struct patch_body {
    char model[WORLD_ID_MAX + 1]; /* "": a ball, of this radius */
    double ball_m;
    struct scaled_model shape;
    double position[3];    /* locale's frame, metres */
    double orientation[4]; /* unit quaternion x, y, z, w */
    double velocity[3], angular_velocity[3];
    struct sand_path *path;  /* malloc, in the locale's frame; NULL: the body is free */
    struct patch_dent *dent; /* of an impact; NULL: none. It ends with the body, unless that came in
                                (dents of the patch) */
};

/* PATCH of a body. */
struct patch_push {
    bool has_velocity, has_angular_velocity, has_impulse;
    double velocity[3], angular_velocity[3], impulse[3];
};

void patch_body_free(struct patch_body *body);

/*
 * May this body start here? Its sphere centres lie a radius inside the walls, none more than two
 * radii below the ground and the lowest at most PATCH_BODY_ABOVE_M above it; it is not faster than
 * params.speed_max, and its spin moves no particle faster. So it is at each pose of a path, and on
 * the way between two of them; below the ground it then goes as deep as the granules.
 * ERR_UNPROCESSABLE names field, value and limit. Pointers are relative to the body.
 */
enum err_code patch_body_check(const struct patch_body *body, const struct heightfield *field,
                               const struct convert_place *place,
                               const struct granular_params *params, struct err *err);
/* The same for a push; mass_kg of its body, which is free. */
enum err_code patch_push_check(const struct patch_push *push, double mass_kg,
                               const struct granular_params *params, struct err *err);

/* The pose of a body in the slot's frame, from the model's in the locale's, and back. */
void patch_pose_in(const struct patch_body *body, const struct convert_place *place,
                   struct sand_pose *out);
void patch_pose_out(const struct scaled_model *shape, const struct convert_place *place,
                    const struct sand_pose *pose, double position[3], double orientation[4]);

/*
 * How far the surface of a body is above the ground where it is nearest, along Z; below 0 where the
 * ground reaches into it. INFINITY when it is over no ground or has no skin.
 */
double patch_body_clearance_m(const struct scaled_model *shape, const struct convert_place *place,
                              const struct sand_pose *pose, const struct heightfield *field);

/* ---- the record ------------------------------------------------------------------------------ */

/* What a patch begins with; all of it is taken by manager_add. */
struct patch_start {
    char locale[WORLD_ID_MAX + 1];
    char layer[WORLD_ID_MAX + 1];
    uint64_t revision;   /* of the locale, that the ground was cut at */
    uint64_t feed_after; /* the feed's place then */
    uint64_t fence;      /* of the ground's lease (world/follow/lease.h), which the sand thread
                          * releases; 0: none is needed */
    struct change_origin origin; /* of the request; its writes have it, as the next */
    struct change_author author;
    char refusal[PATCH_REASON_BYTES]; /* why there is no lease: only a repeat is taken; or "" */
    struct heightfield *field;        /* a reference */
    struct convert_place place;
    struct convert_grid grid;
    struct convert_ground ground;
    enum granular_scale scale;
    enum granular_material material;
    struct material_numbers numbers; /* of MATERIAL_OWN */
    enum convert_fill fill;
    enum convert_mode mode;
    uint64_t seed;
    bool leaves;       /* its first rest ends it: bodies become layers, with the ground */
    bool overflows;    /* may be of coarser granules where its pool is full */
    bool has_estimate; /* false: nothing of this device was measured yet */
    struct patch_estimate estimate;
    struct patch_body *bodies; /* malloc */
    uint32_t body_count;
};
void patch_start_free(struct patch_start *start);

struct patch_transition {
    uint64_t sequence; /* from 1 */
    enum patch_state state;
    double at_s; /* wall time since the patch was made */
};

/* ---- the report ------------------------------------------------------------------------------ */

struct patch_report_body {
    char model[WORLD_ID_MAX + 1]; /* "": a ball, of this radius */
    double ball_m;
    bool is_in;      /* false: held until the patch is active */
    bool is_removed; /* there is nothing else of it */
    double position[3], orientation[4], velocity[3], angular_velocity[3];
    double force_n[3], torque_nm[3]; /* of granules, mean since the pose before */
    double mass_kg;                  /* 0: it follows a path */
    uint32_t particles;
    float center_m[3];            /* of mass, in the model's frame: what the velocity is of */
    struct layer *surface;        /* of the model, a reference; NULL: it has none, or is removed */
    char layer[WORLD_ID_MAX + 1]; /* that it has become; "": none */
};

/* A body that becomes a layer. */
struct patch_left {
    uint32_t number;
    struct layer *surface;              /* of its model, a reference */
    double position[3], orientation[4]; /* as of a report */
    char layer[WORLD_ID_MAX + 1];
};

/* Everything about a patch at one moment. Immutable, counted. */
struct patch_report {
    uint32_t refs;   /* atomic */
    uint64_t serial; /* grows with each report of the patch */
    uint64_t poses;  /* grows when the poses are newer, at most every limits.report_s */
    uint64_t number;
    char locale[WORLD_ID_MAX + 1], layer[WORLD_ID_MAX + 1];
    enum patch_state state;
    char reason[PATCH_REASON_BYTES]; /* why it was discarded or failed, or "" */
    enum granular_scale scale;
    enum granular_material material;
    struct material_numbers numbers;
    enum convert_fill fill;
    enum convert_mode mode;
    struct convert_place place;
    double diameter_m;
    uint64_t seed;
    uint32_t granules, asleep, particles;
    uint64_t steps;
    double time_s, kinetic_energy_j, age_s;
    float phase_ms[SAND_PHASE_COUNT];
    bool has_estimate;
    struct patch_estimate estimate;
    double behind_s; /* how much less was simulated than the clock went on, since it was active */
    bool is_closing, leaves;
    bool was_capped; /* it came to rest by the cap */
    bool has_dents;  /* of bodies that are not in yet: the ground has craters that granules lack */
    bool has_ledger;
    struct mass_ledger ledger;
    bool has_revision;
    uint64_t revision;       /* that the last write made, or the locale's when nothing had moved */
    struct sample_rect rect; /* of the write; cols 0: none */
    uint64_t transition_count; /* all; the last PATCH_TRANSITIONS_KEPT are held */
    struct patch_transition transitions[PATCH_TRANSITIONS_KEPT]; /* [sequence % KEPT] */
    /* Set by the report table (report_table.h): when it was born, was last in another state, and
     * last had other bodies or another state. */
    uint64_t born_change, state_change, change;
    uint32_t body_count;
    struct patch_report_body bodies[];
};

/* The granules at its birth: the patch's square, from the rigid bed to the highest ground. */
struct box3 patch_report_bounds(const struct patch_report *report);

struct patch_report *patch_report_ref(struct patch_report *report);
void patch_report_unref(struct patch_report *report); /* NULL is fine */

#endif
