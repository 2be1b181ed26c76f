/*
 * libkota: models, and patches of sand. Included by kota.h, whose rules hold.
 */
#ifndef KOTA_LIB_KOTA_SAND_H
#define KOTA_LIB_KOTA_SAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kota_answer;
struct kota_request;

/* ---- models ---------------------------------------------------------------------------------- */

struct kota_request *kota_models(void);
/* The file, as it was sent. */
struct kota_request *kota_model(const char *id);
/* obj: a closed mesh of triangles as Wavefront OBJ. */
struct kota_request *kota_put_model(const char *id, const char *obj, size_t length);
struct kota_request *kota_delete_model(const char *id);

/* ---- patches --------------------------------------------------------------------------------- */

struct kota_path_pose {
    double t_s, position[3], orientation[4]; /* t_s: simulated, since the body came in */
};

struct kota_body {
    size_t size;
    const char *model;
    double position[3];
    double orientation[4]; /* x y z w; 0 0 0 1 */
    double velocity[3], angular_velocity[3];
    double mass_kg, density_kg_m3;     /* NaN (default): not given */
    const struct kota_path_pose *path; /* NULL (default): it falls; else mass_kg is 0 */
    size_t path_count;
};

void kota_body_init(struct kota_body *body, size_t size);

struct kota_patch_options {
    size_t size;
    double center[2], size_m[2];
    const char *scale; /* "fine", "medium", "coarse", "auto"; NULL (default): not given */
    double depth_m;    /* NaN (default): not given */
    bool has_seed;
    uint32_t seed;
    bool has_observer; /* with scale "auto" */
    double observer[3];
    const struct kota_body *bodies; /* [body_count] */
    size_t body_count;
    double deadline_ms;   /* NaN (default): not given; a patch that would rest later is refused */
    const char *material; /* a word, or an object of numbers as JSON; NULL (default): not given */
    bool overflow;        /* a full scale spills into the next coarser one */
    const char *leave; /* "layer": bodies become layers at the first rest; NULL (default): none */
};

void kota_patch_options_init(struct kota_patch_options *options, size_t size);

enum kota_patch_state {
    KOTA_PATCH_FILLING,
    KOTA_PATCH_SETTLING,
    KOTA_PATCH_ACTIVE,
    KOTA_PATCH_RESTING,
    KOTA_PATCH_WRITING, /* of daemons before 0.2 */
    KOTA_PATCH_WRITTEN,
    KOTA_PATCH_DISCARDED,
    KOTA_PATCH_FAILED
};

struct kota_patch {
    uint32_t id;
    enum kota_patch_state state;
    const char *reason; /* borrowed; NULL: none */
    uint32_t rect[4];
    double granules, steps, time_s, kinetic_energy_j;
    uint64_t revision; /* that wrote it back; 0: none */
    size_t body_count;
};

struct kota_pose {
    uint32_t body;
    const char *model; /* borrowed; NULL: the ball of an impact */
    bool held;         /* it waits until the patch is active */
    double position[3], orientation[4], velocity[3], angular_velocity[3];
    double force_n[3], torque_nm[3]; /* of granules, mean since the pose before; 0: not said */
};

struct kota_request *kota_patches(const char *locale);
struct kota_request *kota_post_patch(const char *locale, const struct kota_patch_options *options);
struct kota_request *kota_patch(const char *locale, uint32_t patch);
/* Answers when it has ended: give it time (kota_request_timeout). discard: at once. */
struct kota_request *kota_delete_patch(const char *locale, uint32_t patch, bool discard);
struct kota_request *kota_post_patch_body(const char *locale, uint32_t patch,
                                          const struct kota_body *body);
/* Each of velocity, angular_velocity, impulse: [3] or NULL. */
struct kota_request *kota_patch_patch_body(const char *locale, uint32_t patch, uint32_t body,
                                           const double *velocity, const double *angular_velocity,
                                           const double *impulse);
/* Removes a body for good; the others keep their numbers. */
struct kota_request *kota_delete_patch_body(const char *locale, uint32_t patch, uint32_t body);
/* ---- impacts --------------------------------------------------------------------------------- */

/* A body that hits the ground: of a model, or a ball of a radius. */
struct kota_impact_options {
    size_t size;
    const char *model; /* NULL (default): a ball */
    double radius_m;   /* NaN (default): it has a model */
    double mass_kg;
    double position[3], velocity[3]; /* of its centre of mass, on its way */
    bool has_observer;
    double observer[3];
    bool until_written; /* answers when the granules are at rest: give it time */
};

void kota_impact_options_init(struct kota_impact_options *options, size_t size);

struct kota_impact {
    uint64_t number;    /* the revision of its crater */
    bool is_written;    /* nothing more comes */
    bool by_patch;      /* granules refine it, or have; else it is a crater */
    uint32_t patch;     /* of those; 0: not known */
    uint64_t revision;  /* of the ground that has it */
    const char *reason; /* borrowed: why it is a crater; NULL: none */
};

struct kota_request *kota_post_impact(const char *locale,
                                      const struct kota_impact_options *options);
struct kota_request *kota_impact(const char *locale, uint64_t number);
bool kota_read_impact(struct kota_answer *answer, struct kota_impact *impact);

/* ---- pictures of patches --------------------------------------------------------------------- */

/* A picture (PNG); 0: the daemon's size. */
struct kota_request *kota_patch_view(const char *locale, uint32_t patch, unsigned width,
                                     unsigned height);
/* Its surface as it is now, float32; per_cell samples along a cell's side, 0: one. */
struct kota_request *kota_patch_surface(const char *locale, uint32_t patch, unsigned per_cell);
/*
 * Its granules as they are now: 9 float32 each. since: the Kota-Step of an earlier answer; only
 * those that moved then, each after its number (uint32). NULL: all.
 */
struct kota_request *kota_patch_granules(const char *locale, uint32_t patch, const uint64_t *since);
/* Patch `index` of kota_patches, or 0 of an answer that is one. */
bool kota_read_patch(struct kota_answer *answer, size_t index, struct kota_patch *patch);
bool kota_read_pose(struct kota_answer *answer, size_t index, size_t body_index,
                    struct kota_pose *pose);

#ifdef __cplusplus
}
#endif

#endif
