/*
 * The scenes of the evaluation in C. Leach 2014, 6.4, with his numbers:
 *
 *   dense   one patch of 115,502 granules, a barrel of 6,261 particles falls on it
 *   scales  three patches of 202,352, 54,876 and 25,776 particles, a scale each, a barrel on each
 *   ten     ten patches with the granule counts of his table 6.2; every ten seconds a barrel falls
 *           on the next, and a patch that has come to rest is not stepped any more
 *
 * --share scales granules and particles. His scale 0.33 is our medium one (r = 0.1 m). All ground
 * is 2 m deep. Printed each simulated second: where it stands, and since the line before substeps
 * a second of wall time, particle-steps, the real-time factor, and milliseconds of each phase of a
 * substep (poses, grid, forces). The last lines tell the whole, how long a frame of 1/60 s took in
 * which something was stepped (from its first call to the answer that all engines have done it),
 * and what was published: frames (his is one step) on cards of his time. Particle-steps count four
 * a granule, and the shells, asleep or not, in patches that were not at rest: compare engines by
 * them while most are awake.
 */
#include "bench/sandscene/scene.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sand/material.h"
#include "bench/sandscene/engines.h"
#include "bench/sandscene/ground.h"

enum { PATCHES_MAX = 10 };

static const struct plan {
    const char *name;
    const char *published;
    uint32_t patches;
    struct {
        enum granular_scale scale;
        uint32_t granules, particles;
    } patch[PATCHES_MAX];
} plans[] = {
    {"dense",
     "figure 6.9: a GTX 770 above 30 frames/s but while the barrel comes in, a GTX 460 about 29",
     1,
     {{SCALE_MEDIUM, 115502, 6261}}},
    {"scales",
     "figure 6.11: a GTX 770 about 75 frames/s, a GTX 460 about 45",
     3,
     {{SCALE_FINE, 50588, 2000}, {SCALE_MEDIUM, 13719, 1000}, {SCALE_COARSE, 6444, 500}}},
    {"ten",
     "figure 6.13: a GTX 770 above 30 frames/s but for moments, about 100 while one patch is "
     "active; a GTX 460 below",
     10,
     {{SCALE_MEDIUM, 41292, 1000},
      {SCALE_MEDIUM, 42195, 1000},
      {SCALE_MEDIUM, 62773, 1000},
      {SCALE_MEDIUM, 63008, 1000},
      {SCALE_MEDIUM, 54339, 1000},
      {SCALE_MEDIUM, 67282, 1000},
      {SCALE_MEDIUM, 41964, 1000},
      {SCALE_MEDIUM, 46609, 1000},
      {SCALE_MEDIUM, 48128, 1000},
      {SCALE_MEDIUM, 60568, 1000}}},
};

struct patch {
    enum granular_scale scale;
    uint32_t slot;
    uint32_t granules, particles;
    double drop_s; /* when its body falls */
    bool dropped, resting;
    double quiet_s; /* bodies and granules have been still for so long */
    struct ground ground;
};

struct scene {
    const struct scene_options *options;
    struct patch patch[PATCHES_MAX];
    uint32_t patches;
    struct sand_engine *engine[SCALE_COUNT];
    double time_s;
    double substeps, particle_steps; /* since the last line */
    double all_substeps, all_particle_steps;
    float *frame_ms; /* [frames], of frames in which something was stepped */
    size_t frames, frames_room;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void scene_plan(struct scene *scene, const struct plan *plan)
{
    uint32_t slots[SCALE_COUNT] = {0};

    scene->patches = plan->patches;
    for (uint32_t i = 0; i < plan->patches; i++) {
        struct patch *patch = &scene->patch[i];

        patch->scale = plan->patch[i].scale;
        patch->slot = slots[patch->scale]++;
        patch->granules = (uint32_t)fmax(plan->patch[i].granules * scene->options->share, 50);
        patch->particles = (uint32_t)fmax(plan->patch[i].particles * scene->options->share, 64);
        patch->drop_s = 1 + (plan->patches == PATCHES_MAX ? scene->options->interval_s * i : 0);
    }
}

/* A pool for all patches of one scale, no larger than they need. */
static enum err_code scene_engine(struct scene *scene, enum granular_scale scale, struct err *err)
{
    struct sand_engine_config config = {.slots = 0,
                                        .granules_max = 1,
                                        .bodies_max = 1,
                                        .particles_max = 1,
                                        .cells_max = 1,
                                        .bed_max = GROUND_BED * GROUND_BED,
                                        .depth_max = 1024,
                                        .threads = scene->options->threads};

    granular_params_make(MATERIAL_SAND, scale_radius_m(scale), &config.params);
    for (uint32_t i = 0; i < scene->patches; i++) {
        struct patch *patch = &scene->patch[i];
        double layer, height;

        if (patch->scale != scale)
            continue;
        if (ground_make(&config.params, patch->granules, 2, &patch->ground, err))
            return err->code;
        config.slots++;
        if (config.granules_max < patch->granules)
            config.granules_max = patch->granules;
        if (config.particles_max < patch->particles)
            config.particles_max = patch->particles;
        layer = pow(ceil(patch->ground.size_m / config.params.cell_m), 2);
        height = 2 * patch->ground.depth_m + 0.1 * patch->ground.size_m +
                 2 * barrel_height(&config.params, patch->particles);
        config.cells_max =
            (uint32_t)fmax(config.cells_max, layer * (ceil(height / config.params.cell_m) + 2));
    }
    if (config.slots == 0)
        return ERR_OK;
    scene->engine[scale] = scene_engine_create(scene->options->gpu, &config, err);
    if (!scene->engine[scale])
        return err->code;
    for (uint32_t i = 0; i < scene->patches; i++)
        if (scene->patch[i].scale == scale &&
            ground_begin(&scene->patch[i].ground, scene->engine[scale], scene->patch[i].slot, err))
            return err->code;
    return ERR_OK;
}

static enum err_code drop(struct scene *scene, struct patch *patch, struct err *err)
{
    struct sand_engine *engine = scene->engine[patch->scale];
    const struct granular_params *params = &engine->config.params;
    float(*offsets_m)[3] = calloc(patch->particles, sizeof(*offsets_m));
    const float middle = patch->ground.size_m / 2;
    struct sand_pose pose = {.x = {middle, middle, 0}, .q = {0.3f, 0, 0, 0.954f}};
    struct sand_shape shape;
    uint32_t body;
    enum err_code code;

    if (!offsets_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a barrel");
    barrel_make(params, patch->particles, offsets_m, &shape);
    pose.x[2] =
        ground_height(&patch->ground, middle, middle) + barrel_height(params, patch->particles);
    pose.v[2] = -3;
    code = sand_body_add(engine, patch->slot, &shape, &pose, &body, err);
    free(offsets_m);
    patch->dropped = true;
    patch->resting = false;
    patch->quiet_s = 0;
    return code;
}

static bool status_of(struct scene *scene, const struct patch *patch, struct sand_status *status)
{
    return scene_engine_status(scene->engine[patch->scale], patch->slot, status);
}

/* Waits until each engine has done what it was given. */
static enum err_code frame_wait(struct scene *scene, const uint64_t active[SCALE_COUNT],
                                struct err *err)
{
    struct sand_status status;

    for (int scale = 0; scale < SCALE_COUNT; scale++)
        if (active[scale] != 0 &&
            !scene_engine_status(scene->engine[scale], (uint32_t)__builtin_ctzll(active[scale]),
                                 &status))
            return err_set(err, ERR_INTERNAL, "no status came");
    return ERR_OK;
}

/* A frame of all patches that are not at rest; rest is looked for ten times a second. */
static enum err_code scene_frame(struct scene *scene, uint32_t frame, struct err *err)
{
    uint64_t active[SCALE_COUNT] = {0};

    for (uint32_t i = 0; i < scene->patches; i++) {
        struct patch *patch = &scene->patch[i];
        const struct granular_params *params = &scene->engine[patch->scale]->config.params;

        if (!patch->dropped && scene->time_s >= patch->drop_s && drop(scene, patch, err))
            return err->code;
        if (patch->resting)
            continue;
        active[patch->scale] |= (uint64_t)1 << patch->slot;
        scene->particle_steps +=
            (double)params->substeps *
            (patch->granules * GRANULE_SPHERES + (patch->dropped ? patch->particles : 0));
    }
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        if (active[scale] == 0)
            continue;
        scene->substeps += scene->engine[scale]->config.params.substeps;
        if (sand_engine_step(scene->engine[scale], scene->engine[scale]->config.params.substeps,
                             active[scale], err))
            return err->code;
    }
    if (frame_wait(scene, active, err))
        return err->code;
    scene->time_s += 1.0 / 60;
    for (uint32_t i = 0; frame % 6 == 5 && i < scene->patches; i++) {
        struct patch *patch = &scene->patch[i];
        struct sand_status status;
        bool quiet;

        if (patch->resting)
            continue;
        if (!status_of(scene, patch, &status) || status.failed)
            return err_set(err, ERR_INTERNAL, "patch %u has failed", i);
        quiet = status.body_speed_max <= scene->engine[patch->scale]->config.params.sleep_speed &&
                status.asleep >= 0.99 * status.granules;
        patch->quiet_s = quiet ? patch->quiet_s + 0.1 : 0;
        patch->resting = patch->quiet_s >= 2;
    }
    return ERR_OK;
}

/* The same, with its time. */
static enum err_code frame_timed(struct scene *scene, uint32_t frame, struct err *err)
{
    const double start = now_s(), substeps = scene->substeps;

    if (scene->frames == scene->frames_room) {
        const size_t room = 2 * scene->frames_room + 1024;
        float *frame_ms = realloc(scene->frame_ms, room * sizeof(*frame_ms));

        if (!frame_ms)
            return err_set(err, ERR_NO_MEMORY, "no memory for %zu frames", room);
        scene->frame_ms = frame_ms;
        scene->frames_room = room;
    }
    if (scene_frame(scene, frame, err))
        return err->code;
    if (scene->substeps > substeps)
        scene->frame_ms[scene->frames++] = (float)(1e3 * (now_s() - start));
    return ERR_OK;
}

static void report(struct scene *scene, double wall_s, double since_s)
{
    printf("%6.2f s: %8.0f steps/s %10.4g particle-steps/s, %6.3f of real time;", scene->time_s,
           scene->substeps / wall_s, scene->particle_steps / wall_s, since_s / wall_s);
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        struct sand_status status;
        uint32_t asleep = 0, granules = 0, resting = 0, patches = 0;

        for (uint32_t i = 0; i < scene->patches; i++) {
            struct patch *patch = &scene->patch[i];

            if (patch->scale != (enum granular_scale)scale || !status_of(scene, patch, &status))
                continue;
            asleep += status.asleep;
            granules += status.granules;
            resting += patch->resting;
            patches++;
        }
        if (patches > 0)
            printf(" %s %.1f%% asleep, %u/%u rest, ms %.3f %.3f %.3f;",
                   scale_name((enum granular_scale)scale), 100.0 * asleep / granules, resting,
                   patches, status.phase_ms[SAND_PHASE_INTEGRATE], status.phase_ms[SAND_PHASE_GRID],
                   status.phase_ms[SAND_PHASE_FORCE]);
    }
    printf("\n");
    fflush(stdout);
    scene->all_substeps += scene->substeps;
    scene->all_particle_steps += scene->particle_steps;
    scene->substeps = scene->particle_steps = 0;
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void report_frames(struct scene *scene)
{
    static const double parts[] = {0.5, 0.95, 0.99, 1};

    if (scene->frames == 0)
        return;
    qsort(scene->frame_ms, scene->frames, sizeof(float), compare_floats);
    printf("ms of a frame, p50 p95 p99 max:");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        printf(" %.2f", scene->frame_ms[(size_t)(parts[i] * (double)(scene->frames - 1))]);
    printf("\n");
}

/* The last lines: ours, and what was published. */
static void report_all(struct scene *scene, const struct plan *plan, uint32_t frames, double wall_s)
{
    uint32_t granules = 0, particles = 0;

    for (uint32_t i = 0; i < scene->patches; i++) {
        granules += scene->patch[i].granules;
        particles += scene->patch[i].granules * GRANULE_SPHERES +
                     (scene->patch[i].dropped ? scene->patch[i].particles : 0);
    }
    printf("in all: %.2f s simulated in %.2f s, %.0f steps/s, %.4g particle-steps/s, %.3f of real "
           "time, %.1f frames/s; %u granules, %u particles\n",
           scene->time_s, wall_s, scene->all_substeps / wall_s, scene->all_particle_steps / wall_s,
           scene->time_s / wall_s, frames / wall_s, granules, particles);
    report_frames(scene);
    printf("C. Leach 2014, %s\n", plan->published);
}

static enum err_code scene_play(struct scene *scene, const struct plan *plan, struct err *err)
{
    const double start = now_s();
    double line = start, line_time = 0;
    uint32_t frame = 0;
    bool over = false;

    while (!over && scene->time_s < scene->options->seconds) {
        bool all_rest = true;

        if (frame_timed(scene, frame++, err))
            return err->code;
        for (uint32_t i = 0; i < scene->patches; i++)
            all_rest = all_rest && scene->patch[i].dropped && scene->patch[i].resting;
        over = all_rest || now_s() - start > scene->options->wall_s;
        if (frame % 60 != 0 && !over && scene->time_s < scene->options->seconds)
            continue;
        report(scene, now_s() - line, scene->time_s - line_time);
        line = now_s();
        line_time = scene->time_s;
    }
    report_all(scene, plan, frame, now_s() - start);
    return ERR_OK;
}

int scene_run(const struct scene_options *options)
{
    struct scene scene = {.options = options};
    const struct plan *plan = NULL;
    struct err err = {.code = ERR_OK};

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        if (strcmp(plans[i].name, options->name) == 0)
            plan = &plans[i];
    if (!plan)
        return 2;
    scene_plan(&scene, plan);
    for (int scale = 0; scale < SCALE_COUNT && !err.code; scale++)
        scene_engine(&scene, (enum granular_scale)scale, &err);
    for (uint32_t i = 0; i < scene.patches && !err.code; i++)
        printf("patch %u: %s, %u granules on %.1f by %.1f m, a body of %u particles at %.1f s\n",
               i + 1, scale_name(scene.patch[i].scale), scene.patch[i].granules,
               scene.patch[i].ground.size_m, scene.patch[i].ground.size_m, scene.patch[i].particles,
               scene.patch[i].drop_s);
    if (!err.code)
        scene_play(&scene, plan, &err);
    if (err.code)
        fprintf(stderr, "kota-sand: %s\n", err.msg);
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        sand_engine_destroy(scene.engine[scale]);
    scene_engines_close();
    for (uint32_t i = 0; i < scene.patches; i++)
        ground_free(&scene.patch[i].ground);
    free(scene.frame_ms);
    return err.code ? 1 : 0;
}
