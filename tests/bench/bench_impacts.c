/*
 * Craters of granules beside those of the law (server/sand/impact/crater.c), as Markdown.
 *
 *   bench_impacts [--scale coarse,medium,fine] [--energies N] [--threads N] [--seed N]
 *
 * For each scale a ball of ACROSS granules, of DENSITY, is dropped on flat ground with each of the
 * energies, 1.515 times as much each time. A run is the daemon's: the same cut, manager, C engine
 * and difference (the patch is written at its first rest).
 *
 * Printed for each run: the fall that the energy is worth, in diameters of the ball; depth (mean
 * within a quarter of the ball's diameter of the centre), deepest sample, radius, dug volume and
 * rim of the pit, of the granules and of the law on the same samples. Then exponents of depth and
 * of volume over the energy, by least squares of logarithms, and the factor of the law's depth that
 * would fit the even runs (calibration), with the greatest difference of the depth on the odd ones.
 *
 * A run takes up to a minute of a core, so neither `make bench` nor `make bench-all` runs it.
 */
#include "formats/polygon/polygon_file.h"
#include "sand/body/ball.h"
#include "sand/body/shell.h"
#include "sand/device.h"
#include "sand/engine_c/solver.h"
#include "sand/impact/crater.h"
#include "sand/patch/manager.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACROSS 4.5 /* granules across the ball */
#define DENSITY 2500.0
#define GRAVITY 9.81
#define FALL_LEAST 0.25 /* diameters of the ball */
#define FALL_FACTOR 1.515
#define TICK_S (1.0 / 60)
#define SAMPLES_MAX (1 << 24)

enum { ENERGIES_MAX = 24, RINGS = 64 };

/* A crater as heights show it. */
struct measured {
    double deepest_m; /* of a sample */
    double depth_m;   /* mean within a quarter of the ball's diameter of the centre */
    double radius_m;  /* where the mean of a ring crosses the level of the ground before */
    double dug_m3;
    double rim_m;
};

struct drop {
    struct granular_params params;
    struct crater_body ball;
    struct heightfield *field, *after;
    struct vec2 middle;
    double now_s;
    struct manager *manager;
    struct patch_report *report;
    struct err err;
};

static void must(enum err_code code, const struct err *err)
{
    if (code) {
        fprintf(stderr, "bench_impacts: %s\n", err->msg);
        exit(1);
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */

static struct measured measure(const struct drop *drop, const struct heightfield *after)
{
    const struct heightfield_spec *spec = heightfield_spec(drop->field);
    const double ring_m = spec->spacing_x_m, core_m = drop->ball.radius_m / 2;
    double sums[RINGS] = {0}, core = 0;
    int counts[RINGS] = {0}, core_count = 0;
    struct measured out = {.deepest_m = 0};

    for (uint32_t r = 0; r < spec->rows; r++)
        for (uint32_t c = 0; c < spec->cols; c++) {
            const double dx = c * spec->spacing_x_m - drop->middle.x;
            const double dy = r * spec->spacing_y_m - drop->middle.y;
            const double distance_m = sqrt(dx * dx + dy * dy);
            const int ring = (int)(distance_m / ring_m);
            float h;

            heightfield_read_samples(after, &(struct sample_rect){c, r, 1, 1}, &h);
            out.deepest_m = fmax(out.deepest_m, -(double)h);
            out.rim_m = fmax(out.rim_m, (double)h);
            out.dug_m3 += fmax(0, -(double)h) * spec->spacing_x_m * spec->spacing_y_m;
            if (distance_m <= core_m) {
                core -= (double)h;
                core_count++;
            }
            if (ring < RINGS) {
                sums[ring] += (double)h;
                counts[ring]++;
            }
        }
    out.depth_m = core_count ? core / core_count : out.deepest_m;
    for (int i = 0; i + 1 < RINGS && counts[i + 1]; i++) {
        const double a = counts[i] ? sums[i] / counts[i] : -out.deepest_m;
        const double b = sums[i + 1] / counts[i + 1];

        if (a < 0 && b >= 0) {
            out.radius_m = (i + 0.5 + a / (a - b)) * ring_m;
            break;
        }
    }
    return out;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void on_report(void *context, struct patch_report *report, bool is_state)
{
    struct drop *drop = context;

    (void)is_state;
    patch_report_unref(drop->report);
    drop->report = report;
}

static void on_forget(void *context, uint64_t number)
{
    (void)context;
    (void)number;
}

static struct heightfield *edited(const struct heightfield *field, const struct edit *edit)
{
    struct edit_outcome outcome = {.heights_m = NULL};
    struct heightfield *out;
    struct err err = {.code = ERR_OK};

    must(edit_evaluate(field, edit, SAMPLES_MAX, &outcome, &err), &err);
    out = heightfield_with_samples(field, &outcome.rect, outcome.heights_m, &err);
    must(err.code, &err);
    edit_outcome_free(&outcome);
    return out;
}

static void on_write(void *context, uint64_t number, const struct patch_start *start,
                     uint64_t revision, const struct sample_rect *rect, float *heights_m)
{
    struct drop *drop = context;

    drop->after = edited(start->field,
                         &(struct edit){.kind = EDIT_ADD, .rect = *rect, .heights_m = heights_m});
    free(heights_m);
    manager_written(drop->manager, number, ERR_OK, revision + 1, drop->after, "", drop->now_s);
}

static void on_lost(void *context, enum granular_scale scale)
{
    (void)context;
    (void)scale;
    fprintf(stderr, "bench_impacts: the engine failed\n");
    exit(1);
}

static struct heightfield *flat(double size_m, double spacing_m)
{
    const uint32_t cells = 2 * (uint32_t)ceil(size_m / spacing_m / 2);
    const struct heightfield_spec spec = {
        .cols = cells + 1, .rows = cells + 1, .spacing_x_m = spacing_m, .spacing_y_m = spacing_m};
    float *heights = calloc((size_t)spec.cols * spec.rows, sizeof *heights);
    struct err err = {.code = ERR_OK};
    struct heightfield *field = heightfield_create(&spec, heights, &err);

    must(err.code, &err);
    free(heights);
    return field;
}

static void ball_shell(const struct drop *drop, uint32_t threads, struct shell *shell)
{
    char text[BALL_OBJ_BYTES];
    const size_t length = ball_obj(drop->ball.radius_m, text);
    struct polygon_set mesh = {.vertex_count = 0};
    struct err err = {.code = ERR_OK};

    must(polygon_decode(POLYGON_OBJ, (const uint8_t *)text, length, NULL, NULL, &mesh, &err), &err);
    must(shell_build(&mesh, (double)drop->params.radius_m, threads, shell, &err), &err);
    polygon_set_free(&mesh);
}

static void start_patch(struct drop *drop, const struct shell *shell, enum granular_scale scale,
                        uint32_t threads, uint64_t seed, struct sand_engine **engine)
{
    const double diameter_m = (double)drop->params.diameter_m;
    const struct crater crater = crater_of(&drop->ball);
    const double side_m = fmax(8 * drop->ball.radius_m, 3.6 * crater.radius_m);
    const double depth_m = 2.5 * drop->ball.radius_m;
    struct device_config device = device_config_default;
    struct patch_start start = {.locale = "bench",
                                .layer = "ground",
                                .revision = 1,
                                .scale = scale,
                                .material = MATERIAL_SAND,
                                .fill = CONVERT_PACKED,
                                .mode = CONVERT_DIFFERENCE,
                                .seed = seed};
    struct sand_engine_config config;
    struct patch_body *body = calloc(1, sizeof *body);
    struct patch_report *report;
    struct err err = {.code = ERR_OK};

    drop->field = flat(side_m + 4 * diameter_m, 0.56 * diameter_m);
    drop->middle.x = drop->middle.y =
        (heightfield_spec(drop->field)->cols - 1) / 2 * heightfield_spec(drop->field)->spacing_x_m;
    start.field = heightfield_ref(drop->field);
    must(convert_place_find(drop->field, drop->middle, (const double[2]){side_m, side_m}, depth_m,
                            diameter_m, SAMPLES_MAX, &start.place, &err),
         &err);
    memset(device.slots, 0, sizeof device.slots);
    device.slots[scale] = device.bodies_max = 1;
    device.granules_max =
        (uint32_t)convert_granules(&start.place, &drop->params, CONVERT_PACKED) + 100;
    device.particles_max = shell->particles;
    device.threads = threads;
    device_engine_config(&device, scale, &config);
    config.threads = threads;
    must(convert_grid_make(&start.place, diameter_m, config.depth_max, &start.grid, &err), &err);
    must(convert_down(drop->field, &start.place, &config.params, start.fill, seed,
                      config.granules_max, config.bed_max, &start.ground, &err),
         &err);
    start.ground.begin.gravity[2] = (float)-GRAVITY;
    *engine = solver_create(&config, &err);
    must(err.code, &err);
    *body = (struct patch_body){
        .model = "ball",
        .shape = {.shape = shell_shape(shell, drop->ball.mass_kg)},
        .position = {drop->middle.x, drop->middle.y, shell->extent_m + 0.01 * diameter_m},
        .orientation = {0, 0, 0, 1},
        .velocity = {0, 0, -drop->ball.speed_m_s},
    };
    must(patch_body_check(body, drop->field, &start.place, &drop->params, &err), &err);
    start.bodies = body;
    start.body_count = 1;
    manager_set_engine(drop->manager, scale, *engine, 0);
    must(manager_add(drop->manager, &start, 0, &report, &err), &err);
    patch_report_unref(report);
}

static struct measured run(struct drop *drop, const struct shell *shell, enum granular_scale scale,
                           uint32_t threads, uint64_t seed)
{
    const struct manager_calls calls = {drop, on_report, on_forget, on_write, on_lost};
    struct manager_limits limits = manager_limits_default;
    struct sand_engine *engine = NULL;
    struct measured out;
    struct err err = {.code = ERR_OK};

    limits.pause_after_s = 0.5;
    limits.linger_s = 0;
    limits.speed = 0;
    drop->manager = manager_create(&limits, &calls, &err);
    must(err.code, &err);
    start_patch(drop, shell, scale, threads, seed, &engine);
    while (!patch_state_is_end(drop->report->state)) {
        drop->now_s += TICK_S;
        manager_tick(drop->manager, drop->now_s);
    }
    if (drop->report->state != PATCH_WRITTEN) {
        fprintf(stderr, "bench_impacts: the patch has failed: %s\n", drop->report->reason);
        exit(1);
    }
    out = measure(drop, drop->after ? drop->after : drop->field);
    manager_destroy(drop->manager);
    sand_engine_destroy(engine);
    return out;
}

/* ---- fits ------------------------------------------------------------------------------------ */

/* Slope of y over x, of the points whose index has this parity (-1: all). */
static double slope_of(const double *x, const double *y, int count, int parity)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;

    for (int i = 0; i < count; i++) {
        if (parity >= 0 && i % 2 != parity)
            continue;
        n++;
        sx += x[i];
        sy += y[i];
        sxx += x[i] * x[i];
        sxy += x[i] * y[i];
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

static void run_scale(enum granular_scale scale, int energies, uint32_t threads, uint64_t seed)
{
    double energy[ENERGIES_MAX], depth[ENERGIES_MAX], law[ENERGIES_MAX], width[ENERGIES_MAX];
    double dug[ENERGIES_MAX];
    struct granular_params params;
    struct shell shell;
    double factor = 0, worst = 0;
    int fitted = 0;

    granular_params_make(MATERIAL_SAND, scale_radius_m(scale), &params);
    for (int i = 0; i < energies; i++) {
        const double radius_m = ACROSS / 2 * (double)params.diameter_m;
        const double fall = FALL_LEAST * pow(FALL_FACTOR, i);
        struct drop drop = {.params = params,
                            .ball = {.radius_m = radius_m,
                                     .mass_kg = DENSITY * 4 * M_PI / 3 * pow(radius_m, 3),
                                     .speed_m_s = sqrt(2 * GRAVITY * fall * 2 * radius_m)}};
        struct measured sand, made;
        struct heightfield *dented;
        struct crater crater = crater_of(&drop.ball);
        struct edit edit;

        if (i == 0)
            ball_shell(&drop, threads, &shell);
        sand = run(&drop, &shell, scale, threads, seed);
        edit = crater_edit(&crater, drop.middle);
        dented = edited(drop.field, &edit);
        made = measure(&drop, dented);
        printf("| %s | %d | %.2f | %.4g | %.3f | %.3f | %.2f | %.3f | %.3f | %.2f | %.2f | %.3f |"
               " %.3f | %.2f | %.2f | %u |\n",
               scale_name(scale), i, fall, drop.ball.mass_kg * GRAVITY * fall * 2 * radius_m,
               sand.depth_m / (2 * radius_m), made.depth_m / (2 * radius_m),
               made.depth_m / sand.depth_m, sand.deepest_m / (2 * radius_m),
               made.deepest_m / (2 * radius_m), sand.radius_m / (2 * radius_m),
               made.radius_m / (2 * radius_m), sand.dug_m3 / pow(2 * radius_m, 3),
               made.dug_m3 / pow(2 * radius_m, 3), sand.rim_m / (2 * radius_m),
               made.rim_m / (2 * radius_m), drop.report->granules);
        fflush(stdout);
        energy[i] = log(fall);
        depth[i] = log(sand.depth_m);
        law[i] = log(made.depth_m);
        width[i] = log(sand.radius_m);
        dug[i] = log(sand.dug_m3);
        if (i % 2 == 0) {
            factor += depth[i] - law[i];
            fitted++;
        } else {
            worst = fmax(worst, fabs(exp(law[i] - depth[i]) - 1));
        }
        patch_report_unref(drop.report);
        heightfield_unref(dented);
        heightfield_unref(drop.field);
        heightfield_unref(drop.after);
    }
    printf("\n%s: exponents over the energy: depth %.3f, radius %.3f, volume %.3f; law's depth "
           "%.3f\ncalibration half (even): granules' depth / law's %.3f; other half: greatest "
           "difference %.0f %%\n\n",
           scale_name(scale), slope_of(energy, depth, energies, -1),
           slope_of(energy, width, energies, -1), slope_of(energy, dug, energies, -1),
           slope_of(energy, law, energies, -1), exp(factor / fitted), 100 * worst);
    shell_free(&shell);
}

int main(int argc, char **argv)
{
    const char *scales = "coarse,medium,fine";
    uint32_t threads = 1;
    uint64_t seed = 1;
    int energies = 12;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--scale") == 0)
            scales = argv[i + 1];
        else if (strcmp(argv[i], "--energies") == 0)
            energies = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = (uint32_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = (uint64_t)atoll(argv[i + 1]);
    }
    if (energies < 2 || energies > ENERGIES_MAX || threads < 1)
        return 2;
    printf(
        "| scale | run | fall / ball | energy J | depth / ball | law | law / granules | deepest | "
        "law | radius / ball | law | dug / ball³ | law | rim / ball | law | granules |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int scale = SCALE_COUNT; scale-- > 0;)
        if (strstr(scales, scale_name((enum granular_scale)scale)))
            run_scale((enum granular_scale)scale, energies, threads, seed);
    return 0;
}
