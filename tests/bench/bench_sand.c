/*
 * `make bench-sand`: how many spheres the sand's solver steps in a second, with contact history.
 *
 *   bench_sand [--gpu auto|INDEX|software|off] [--spheres N,N,…] [--seconds S] [--simd LEVEL]
 *              [--access robust|plain] [--dump FILE]
 *
 * Scene: a square of ground two metres deep, cut from the dense packing at the medium scale
 * (r = 0.1 m), bed below and walls around, everything kept awake, so that each sphere looks for
 * its contacts in each substep (about the worst case: ground that rests costs much less). After 64
 * substeps of settling, frames of 16 substeps are submitted two ahead, each with a status to be
 * read back, until S seconds (1) have passed.
 *
 * Printed for each size, as a table of Markdown: threads, spheres, slots, memory of a sphere,
 * substeps a second, sphere-steps a second and a second of CPU time (all threads), simulated
 * seconds in one of the clock, and the milliseconds of the phases of one substep, and on OpenGL of
 * its passes in their order, as the device measured them. The C engine is printed for sizes where
 * it takes seconds only, on one thread and on as many as there are processors. Hash is that of the
 * granules after the first 64 substeps: the same number again means the same bits.
 *
 * --dump writes the spheres of the first size as a data file of LAMMPS (bench_sand_peers.py).
 *
 * With plain access only OpenGL is printed, in a context whose shaders may reach out of their
 * buffers: as fast as the device is without these checks.
 *
 * The last two lines are of ground that sleeps, 262,144 spheres on the C engine: one substep with
 * nothing awake, and one with a body of 386 particles that flies above it.
 *
 * For comparison: C. Leach 2014 (GTX 770) stepped 19.5 M spheres a second without history; R.
 * Zhang et al. 2024 (Chrono DEM-Engine, RTX 3080) about 417 M with it.
 */
#include "sand/engine_gl/gl_engine.h"
#include "base/content_hash.h"
#include "sand/material.h"
#include "sand/convert/packing.h"
#include "sand/engine_c/solver.h"
#include "terrain/kernels/simd.h"

#include "support/bench_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SIZES_MAX = 16,
    SETTLE_SUBSTEPS = 64,
    C_SPHERES_MAX = 70000,
    DEPTH_TEXELS = 128,
    ASLEEP = 65536
};

static const float DEEP_M = 2.0f;

static void must(enum err_code code, const struct err *err)
{
    if (code) {
        fprintf(stderr, "bench_sand: %s\n", err->msg);
        exit(1);
    }
}

/* ---- the ground ------------------------------------------------------------------------------ */

struct ground {
    struct granular_params params;
    float size_m[2];
    struct granule *granules;
    uint32_t count;
};

/* A centre that keeps its spheres off the bed and the walls. */
static bool inside(void *context, const float x[3])
{
    const struct ground *ground = context;
    const float margin = 2.1f * ground->params.radius_m;

    return x[0] > margin && x[0] < ground->size_m[0] - margin && x[1] > margin &&
           x[1] < ground->size_m[1] - margin && x[2] > 1.6f * ground->params.radius_m;
}

static void ground_make(struct ground *ground, uint32_t spheres)
{
    const float shift[3] = {0};
    double volume;

    granular_params_make(MATERIAL_SAND, 0.1f, &ground->params);
    ground->params.sleep_after_s = 1e9f;
    volume = spheres * 4.0 / 3.0 * M_PI * pow(ground->params.radius_m, 3) /
             packing_fraction(packing_dense());
    ground->size_m[0] = ground->size_m[1] =
        (float)sqrt(volume / (DEEP_M - 0.1)) + 4 * ground->params.radius_m;
    ground->granules = calloc(spheres, sizeof(*ground->granules));
    if (!ground->granules) {
        fprintf(stderr, "bench_sand: no memory for %u spheres\n", spheres);
        exit(1);
    }
    ground->count = packing_cut(packing_dense(), ground->params.radius_m, ground->size_m, 0, DEEP_M,
                                shift, inside, ground, ground->granules, spheres);
    if (ground->count > spheres)
        ground->count = spheres;
    if (!packing_order(ground->granules, ground->count, ground->params.diameter_m)) {
        fprintf(stderr, "bench_sand: no memory for the order of %u granules\n", ground->count);
        exit(1);
    }
}

static struct sand_engine_config config_of(const struct ground *ground, uint32_t slots,
                                           uint32_t threads)
{
    const float cell = ground->params.cell_m;
    const double layer = ceil(ground->size_m[0] / cell) * ceil(ground->size_m[1] / cell);

    return (struct sand_engine_config){
        .params = ground->params,
        .slots = slots,
        .granules_max = ground->count,
        .bodies_max = 1,
        .particles_max = 1,
        .cells_max = (uint32_t)(layer * (ceil((DEEP_M + 1) / cell) + 1)),
        .bed_max = 4,
        .depth_max = DEPTH_TEXELS * DEPTH_TEXELS,
        .threads = threads,
    };
}

static void slot_fill(struct sand_engine *engine, uint32_t slot, const struct ground *ground)
{
    const float flat[4] = {0};
    const struct sand_slot_begin begin = {
        .size_m = {ground->size_m[0], ground->size_m[1]},
        .height_m = DEEP_M + 1,
        .gravity = {0, 0, -9.81f},
        .bed = {.cols = 2, .rows = 2, .dx = ground->size_m[0], .dy = ground->size_m[1]},
        .heights_m = flat};
    struct err err;

    must(sand_slot_begin(engine, slot, &begin, &err), &err);
    must(sand_slot_fill(engine, slot, ground->granules, ground->count, &err), &err);
}

/* ---- for another program --------------------------------------------------------------------- */

static void sphere_at(const struct granule *granule, float radius_m, int corner, float out[3])
{
    const float *q = granule->q, e = radius_m * 0.70710678f;
    const float p[3] = {e * GRANULE_CORNER[corner][0], e * GRANULE_CORNER[corner][1],
                        e * GRANULE_CORNER[corner][2]};
    const float t[3] = {2 * (q[1] * p[2] - q[2] * p[1]), 2 * (q[2] * p[0] - q[0] * p[2]),
                        2 * (q[0] * p[1] - q[1] * p[0])};

    out[0] = granule->x[0] + p[0] + q[3] * t[0] + q[1] * t[2] - q[2] * t[1];
    out[1] = granule->x[1] + p[1] + q[3] * t[1] + q[2] * t[0] - q[0] * t[2];
    out[2] = granule->x[2] + p[2] + q[3] * t[2] + q[0] * t[1] - q[1] * t[0];
}

/* atom_style sphere: id type diameter density x y z; the molecule is the granule. */
static void dump(const struct ground *ground, const char *path)
{
    const float r = ground->params.radius_m, side = ground->size_m[0];
    FILE *file = fopen(path, "w");

    if (!file) {
        fprintf(stderr, "bench_sand: %s cannot be written\n", path);
        exit(1);
    }
    fprintf(file,
            "clumps of kota\n\n%u atoms\n1 atom types\n\n0 %g xlo xhi\n0 %g ylo yhi\n"
            "-1 %g zlo zhi\n\nAtoms\n\n",
            4 * ground->count, (double)side, (double)side, (double)DEEP_M + 3);
    for (uint32_t i = 0; i < 4 * ground->count; i++) {
        float x[3];

        sphere_at(&ground->granules[i / 4], r, (int)(i % 4), x);
        fprintf(file, "%u 1 %g %g %.7g %.7g %.7g\n", i + 1, 2 * (double)r,
                (double)ground->params.density, (double)x[0], (double)x[1], (double)x[2]);
    }
    fprintf(file, "\nMolecules\n\n");
    for (uint32_t i = 0; i < 4 * ground->count; i++)
        fprintf(file, "%u %u\n", i + 1, i / 4 + 1);
    fclose(file);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static struct sand_status status_after(struct sand_engine *engine, uint64_t steps)
{
    struct sand_status status = {0};

    while (status.steps < steps)
        if (!sand_status_poll(engine, 0, &status))
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    if (status.failed) {
        fprintf(stderr, "bench_sand: the solver failed\n");
        exit(1);
    }
    return status;
}

static uint64_t frame(struct sand_engine *engine, uint32_t substeps, uint64_t active,
                      uint64_t before)
{
    struct err err;

    must(sand_engine_step(engine, substeps, active, &err), &err);
    sand_status_request(engine, 0);
    return before + substeps;
}

static uint64_t hash_of(struct sand_engine *engine, struct granule *room)
{
    const size_t bytes = sand_granules_read(engine, 0, room) * sizeof(*room);

    return fnv1a(FNV1A_EMPTY, room, bytes);
}

static void depth_once(struct sand_engine *engine, const struct ground *ground)
{
    static float heights[DEPTH_TEXELS * DEPTH_TEXELS];
    const float d = ground->size_m[0] / DEPTH_TEXELS;
    const struct sand_depth depth = {.x0 = d / 2,
                                     .y0 = d / 2,
                                     .dx = d,
                                     .dy = d,
                                     .cols = DEPTH_TEXELS,
                                     .rows = DEPTH_TEXELS,
                                     .oversample = 1};
    struct err err;

    must(sand_depth_request(engine, 0, &depth, &err), &err);
    while (!sand_depth_poll(engine, 0, heights))
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One row of the table. Destroys the engine. */
static void measure(struct sand_engine *engine, const struct ground *ground, double seconds)
{
    const uint32_t slots = engine->config.slots, substeps = ground->params.substeps;
    const uint64_t active = slots == 64 ? ~(uint64_t)0 : ((uint64_t)1 << slots) - 1;
    const double spheres = 4.0 * ground->count * slots;
    struct granule *room = malloc(ground->count * sizeof(*room));
    struct sand_status status;
    uint64_t steps = 0, first, hash;
    double start, passed, rate, cpu;

    for (uint32_t i = 0; i < slots; i++)
        slot_fill(engine, i, ground);
    while (steps < SETTLE_SUBSTEPS)
        steps = frame(engine, substeps, active, steps);
    status_after(engine, steps);
    hash = room ? hash_of(engine, room) : 0;
    free(room);
    depth_once(engine, ground);
    first = steps;
    start = bench_now_s();
    cpu = cpu_s();
    do {
        steps = frame(engine, substeps, active, steps);
        status = status_after(engine, steps - substeps); /* the one before: two are ahead */
        passed = bench_now_s() - start;
    } while (passed < seconds || steps < first + 2 * substeps);
    if (status.steps < steps)
        status = status_after(engine, steps);
    passed = bench_now_s() - start;
    cpu = cpu_s() - cpu;
    rate = (double)(steps - first) / passed;
    printf("| %s | %u | %.0f | %u | %.0f", engine->calls->name, engine->config.threads, spheres,
           slots,
           (double)(strcmp(engine->calls->name, "gl") == 0 ? gl_engine_bytes(&engine->config)
                                                           : solver_bytes(engine)) /
               spheres);
    printf(" | %.1f | %.3g M | %.3g M | %.3g | %.3f | %.3f | %.3f | %.3f |", rate,
           rate * spheres * 1e-6, rate * spheres * passed / cpu * 1e-6, rate * ground->params.dt_s,
           status.phase_ms[SAND_PHASE_INTEGRATE], status.phase_ms[SAND_PHASE_GRID],
           status.phase_ms[SAND_PHASE_FORCE], status.phase_ms[SAND_PHASE_DEPTH]);
    for (int pass = 0; pass < SAND_PASS_COUNT && status.pass_ms[SAND_PASS_FORCE] > 0; pass++)
        printf(" %.4f", status.pass_ms[pass]);
    printf(" | %016llx |\n", (unsigned long long)hash);
    fflush(stdout);
    sand_engine_destroy(engine);
}

static void measure_gl(struct context *context, const struct ground *ground, uint32_t slots,
                       double seconds)
{
    struct sand_engine_config config = config_of(ground, slots, 1);
    struct err err = {0};
    struct sand_engine *engine = gl_engine_create(context, &config, &err);

    if (engine)
        measure(engine, ground, seconds);
    else
        printf("| gl | 1 | %.0f | %u | %s |\n", 4.0 * ground->count * slots, slots, err.msg);
}

static void measure_c(const struct ground *ground, double seconds, uint32_t threads)
{
    struct sand_engine_config config = config_of(ground, 1, threads);
    struct err err = {0};
    struct sand_engine *engine = solver_create(&config, &err);

    must(engine ? ERR_OK : err.code, &err);
    measure(engine, ground, seconds);
}

/* ---- ground that sleeps ---------------------------------------------------------------------- */

/* Granules that touch nothing, without weight, so that all of them stay asleep. */
static void sleepers_make(struct ground *ground)
{
    const uint32_t side = 64, layers = ASLEEP / (side * side);
    const float apart = 1.1f * ground->params.diameter_m;

    ground->count = 0;
    for (uint32_t i = 0; i < side * side * layers; i++)
        ground->granules[ground->count++] = (struct granule){
            .x = {apart * ((float)(i % side) + 1), apart * ((float)(i / side % side) + 1),
                  apart * ((float)(i / side / side) + 1), 0},
            .q = {0, 0, 0, 1},
            .v = {0, 0, 0, 1e9f}};
    ground->size_m[0] = ground->size_m[1] = apart * (float)(side + 1);
}

/* A cube of 9 particles along an edge, faces only, that moves sideways above them. */
static void flier_add(struct sand_engine *engine, float height_m)
{
    static float offsets[9 * 9 * 9][3];
    const float r = engine->config.params.radius_m;
    struct sand_shape shape = {.offsets_m = (const float(*)[3])offsets, .mass_kg = 500};
    const struct sand_pose pose = {.x = {3, 3, height_m}, .q = {0, 0, 0, 1}};
    uint32_t body;
    struct err err;

    for (int i = 0; i < 9 * 9 * 9; i++) {
        const int at[3] = {i % 9, i / 9 % 9, i / 81};
        bool is_face = false;

        for (int a = 0; a < 3; a++) {
            offsets[shape.particles][a] = r * (float)(at[a] - 4);
            is_face = is_face || at[a] == 0 || at[a] == 8;
        }
        shape.particles += is_face;
    }
    for (int a = 0; a < 3; a++)
        shape.inertia[a][a] = 50;
    must(sand_body_add(engine, 0, &shape, &pose, &body, &err), &err);
}

static void measure_sleepers(double seconds)
{
    struct ground ground = {.count = ASLEEP};
    const float flat[4] = {0}, height_m = 12;
    struct sand_engine_config config;
    struct sand_engine *engine;
    struct err err = {0};

    granular_params_make(MATERIAL_SAND, 0.1f, &ground.params);
    ground.granules = calloc(ASLEEP, sizeof(*ground.granules));
    must(ground.granules ? ERR_OK : ERR_NO_MEMORY, &err);
    sleepers_make(&ground);
    config = config_of(&ground, 1, 1);
    config.particles_max = 1024;
    config.cells_max = 1 << 22;
    engine = solver_create(&config, &err);
    must(engine ? ERR_OK : err.code, &err);
    must(sand_slot_begin(
             engine, 0,
             &(struct sand_slot_begin){.size_m = {ground.size_m[0], ground.size_m[1]},
                                       .height_m = height_m,
                                       .bed = {2, 2, 0, 0, ground.size_m[0], ground.size_m[1]},
                                       .heights_m = flat},
             &err),
         &err);
    must(sand_slot_fill(engine, 0, ground.granules, ground.count, &err), &err);
    free(ground.granules);
    for (int flies = 0; flies < 2; flies++) {
        uint64_t steps = 0;
        double start;

        if (flies)
            flier_add(engine, height_m - 1);
        must(sand_engine_step(engine, 2, 1, &err), &err);
        start = cpu_s();
        for (; cpu_s() - start < seconds && steps < 1000000; steps += 16) {
            /* to and fro */
            if (flies && steps % 960 == 0)
                sand_body_velocity(engine, 0, 0,
                                   (const float[3]){steps % 1920 ? -0.5f : 0.5f, 0, 0}, NULL);
            must(sand_engine_step(engine, 16, 1, &err), &err);
        }
        sand_status_request(engine, 0);
        printf("\n%u spheres, %u of %u granules asleep%s: %.4f ms of CPU time a substep\n",
               4 * ASLEEP, status_after(engine, steps).asleep, ASLEEP,
               flies ? ", a body flies above" : "", 1e3 * (cpu_s() - start) / (double)steps);
    }
    sand_engine_destroy(engine);
}

/* ---- the program ----------------------------------------------------------------------------- */

struct options {
    const char *gpu, *dump;
    bool is_plain;
    uint32_t size[SIZES_MAX];
    int sizes;
    double seconds;
};

static void options_read(struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && !strcmp(argv[i], "--gpu")) {
            options->gpu = argv[i + 1];
        } else if (i + 1 < argc && !strcmp(argv[i], "--access") &&
                   (!strcmp(argv[i + 1], "plain") || !strcmp(argv[i + 1], "robust"))) {
            options->is_plain = !strcmp(argv[i + 1], "plain");
        } else if (i + 1 < argc && !strcmp(argv[i], "--dump")) {
            options->dump = argv[i + 1];
        } else if (i + 1 < argc && !strcmp(argv[i], "--simd")) {
            struct err err;

            must(simd_select_name(argv[i + 1], &err), &err);
        } else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) {
            options->seconds = atof(argv[i + 1]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--spheres")) {
            for (char *at = strtok(argv[i + 1], ","); at && options->sizes < SIZES_MAX;
                 at = strtok(NULL, ","))
                options->size[options->sizes++] = (uint32_t)strtoul(at, NULL, 10);
        } else {
            fprintf(stderr, "usage: bench_sand [--gpu auto|INDEX|software|off] "
                            "[--spheres N,N,…] [--seconds S] [--simd LEVEL] "
                            "[--access robust|plain] [--dump FILE]\n");
            exit(2);
        }
    }
}

static void sizes_default(struct options *options, bool software)
{
    static const uint32_t small[] = {1000, 4000, 16000};
    static const uint32_t large[] = {16000, 64000, 250000, 1000000, 2000000, 4000000};
    const uint32_t *from = software ? small : large;

    if (options->sizes > 0)
        return;
    options->sizes = software ? 3 : 6;
    memcpy(options->size, from, (size_t)options->sizes * sizeof(*from));
}

int main(int argc, char **argv)
{
    const uint32_t processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    struct options options = {.gpu = "auto", .seconds = 1};
    struct context_info none = {.renderer = "no device", .software = true}, *info = &none;
    struct err err = {0};
    struct context *context = NULL;
    char date[32];
    time_t now = time(NULL);

    options_read(&options, argc, argv);
    if (strcmp(options.gpu, "off") != 0) {
        const unsigned how = options.is_plain ? CONTEXT_PLAIN : 0;

        context_prepare();
        context = context_create(options.gpu, how, &err);
        if (!context && strcmp(options.gpu, "auto") == 0)
            context = context_create("software", how, &err);
        if (!context) {
            printf("bench_sand: skipped: %s\n", err.msg);
            return 0;
        }
        none = *context_info(context);
    }
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", gmtime(&now));
    printf("%s, %s, OpenGL %d.%d (%s), %s access%s, simd %s\n\n", date, info->renderer, info->major,
           info->minor, info->version, info->robust && !options.is_plain ? "robust" : "plain",
           info->software ? ", software: no figure of a GPU" : "", simd_level_name(simd_level()));
    printf("| engine | threads | spheres | slots | bytes/sphere | steps/s | sphere-steps/s | of a "
           "CPU second | real time | integrate ms | grid ms | force ms | depth ms | "
#define PASS_WORD(name, word) word " "
           SAND_PASSES(PASS_WORD)
#undef PASS_WORD
               "ms | hash |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    sizes_default(&options, info->software);
    for (int i = 0; i < options.sizes; i++) {
        struct ground ground;

        ground_make(&ground, options.size[i]);
        if (options.dump && i == 0)
            dump(&ground, options.dump);
        if (4 * ground.count <= C_SPHERES_MAX && !options.is_plain) {
            measure_c(&ground, options.seconds, 1);
            if (processors > 1)
                measure_c(&ground, options.seconds, processors);
        }
        if (context)
            measure_gl(context, &ground, 1, options.seconds);
        if (context && i == 1) /* shared dispatches */
            measure_gl(context, &ground, 4, options.seconds);
        free(ground.granules);
    }
    if (!options.is_plain)
        measure_sleepers(options.seconds);
    if (context && context_errors(context) > 0)
        printf("\nOpenGL reported %u errors\n", context_errors(context));
    context_destroy(context);
    return 0;
}
