/*
 * A film strip of a drop: the body over the ground, the impact, all at rest, and the ground that is
 * written back.
 *
 * Problem: a picture of what the daemon does must not come from something that is only like it.
 * Approach: the patch is the daemon's: a heightfield, ground cut from it (convert_down), the
 * manager with its states, and at the end its edit, evaluated as the writer does. Only the clock is
 * made up, and what is said over HTTP elsewhere is called here. The last picture has no granules:
 * it is the heightfield with the edit, and the body where it lies.
 * The way that the body falls above the patch is fallen in thought. The engine is the C one, or one
 * on a GPU; the pictures are by the processor.
 */
#include "bench/sandscene/film.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/raster/raster.h"
#include "sand/device.h"
#include "sand/patch/manager.h"
#include "sand/body/shell.h"
#include "sand/view/view.h"
#include "bench/sandscene/engines.h"

enum {
    FRAMES = 4,
    WIDTH = 480,
    HEIGHT = 360,
    STRIP_GAP_PX = 4,
    BARREL_SIDES = 24,
    FIELD_MARGIN = 3, /* sizes of the patch, of ground around it */
    SAMPLES_MAX = 1 << 20
};

#define DEPTH_M 0.8
#define SPACING_M 0.1
#define SETTLED_R3 29.6   /* volume of a granule with its pores, in r^3 */
#define TICK_S (1.0 / 60) /* of the clock that is made up */
#define GAP_M 0.35        /* between the ground and the body in the first picture */
#define IMPACT_S 0.06     /* the second picture, after the body has met the ground */

struct film {
    const struct film_options *options;
    struct granular_params params;
    struct polygon_set model;
    struct shell shell;
    struct heightfield *field, *after; /* the ground before, and with the edit */
    struct patch_start start;
    struct convert_place place;
    double speed; /* of the body when it comes in, m/s */
    struct sand_engine *engine;
    struct manager *manager;
    double now_s;
    uint64_t number;
    struct patch_report *report; /* the newest; NULL before the first */
    struct camera camera;        /* of all pictures */
    float (*spheres)[4];
    uint8_t *frame[FRAMES];
    struct err write_err;
};

/* ---- the model ------------------------------------------------------------------------------- */

static void barrel_triangle(struct polygon_set *set, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t *corner = set->corners + 3 * set->polygon_count++;

    corner[0] = a;
    corner[1] = b;
    corner[2] = c;
    set->starts[set->polygon_count] = (uint32_t)(3 * set->polygon_count);
}

/* 0.9 m high, 0.3 m of radius, and a lid at each end. */
static enum err_code barrel_model(struct polygon_set *set, struct err *err)
{
    const uint32_t n = BARREL_SIDES;

    if (polygon_set_allocate(2 * n + 2, 4 * n, 12 * n, set, err))
        return err->code;
    set->vertex_count = 2 * n + 2;
    set->polygon_count = 0;
    set->starts[0] = 0;
    for (uint32_t i = 0; i < 2 * n; i++) {
        double angle = 2 * M_PI * (i % n) / n;

        set->vertices[i] = (struct vec3){0.3 * cos(angle), 0.3 * sin(angle), i < n ? -0.45 : 0.45};
    }
    set->vertices[2 * n] = (struct vec3){0, 0, -0.45};
    set->vertices[2 * n + 1] = (struct vec3){0, 0, 0.45};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = (i + 1) % n;

        barrel_triangle(set, i, j, n + j);
        barrel_triangle(set, i, n + j, n + i);
        barrel_triangle(set, j, i, 2 * n);
        barrel_triangle(set, n + i, n + j, 2 * n + 1);
    }
    return ERR_OK;
}

static enum err_code read_model(const char *path, struct polygon_set *set, struct err *err)
{
    FILE *file = fopen(path, "rb");
    size_t room = 64 << 20, length;
    uint8_t *bytes = malloc(room);

    if (!file || !bytes) {
        err_set(err, ERR_NOT_FOUND, "%s cannot be read", path);
    } else {
        length = fread(bytes, 1, room, file);
        polygon_decode(POLYGON_OBJ, bytes, length, NULL, NULL, set, err);
    }
    free(bytes);
    if (file)
        fclose(file);
    return err->code;
}

/* ---- the stage ------------------------------------------------------------------------------- */

static double hills(double x, double y)
{
    return 0.05 * (sin(2.1 * x + 1) + sin(1.3 * x + 2.3 * y));
}

static enum err_code make_field(struct film *film, double size_m, struct err *err)
{
    const uint32_t cells = (uint32_t)ceil(size_m / SPACING_M) * (2 * FIELD_MARGIN + 1);
    const struct heightfield_spec spec = {
        .cols = cells + 1, .rows = cells + 1, .spacing_x_m = SPACING_M, .spacing_y_m = SPACING_M};
    float *heights = malloc((size_t)spec.cols * spec.rows * sizeof *heights);

    if (!heights)
        return err_set(err, ERR_NO_MEMORY, "no memory for the ground");
    for (uint32_t r = 0; r < spec.rows; r++)
        for (uint32_t c = 0; c < spec.cols; c++)
            heights[(size_t)r * spec.cols + c] = (float)hills(c * SPACING_M, r * SPACING_M);
    film->field = heightfield_create(&spec, heights, err);
    free(heights);
    return err->code;
}

/* The body over the middle of the patch, as fast as it would be after the whole fall. */
static enum err_code make_body(struct film *film, struct vec2 middle, struct err *err)
{
    const struct film_options *options = film->options;
    const double gap_m = fmin(options->height_m, GAP_M), q[4] = {0.3, 0, 0, sqrt(1 - 0.3 * 0.3)};
    const double mass_kg = options->density * film->shell.volume_m3;
    const struct vec3 centre = {middle.x, middle.y,
                                hills(middle.x, middle.y) + film->shell.extent_m + gap_m};
    const struct vec3 origin = shell_origin_of(&film->shell, centre, q);
    struct patch_body *body = calloc(1, sizeof *body);

    if (!body)
        return err_set(err, ERR_NO_MEMORY, "no memory for a body");
    film->speed = sqrt(2 * 9.81 * (options->height_m - gap_m));
    *body = (struct patch_body){
        .model = "body",
        .shape = {.shape = shell_shape(&film->shell, mass_kg),
                  .center_m = {(float)film->shell.centre.x, (float)film->shell.centre.y,
                               (float)film->shell.centre.z}},
        .position = {origin.x, origin.y, origin.z},
        .velocity = {0, 0, -film->speed},
    };
    memcpy(body->orientation, q, sizeof q);
    film->start.bodies = body;
    film->start.body_count = 1;
    return patch_body_check(body, film->field, &film->place, &film->params, err);
}

static enum err_code make_start(struct film *film, struct err *err)
{
    const struct film_options *options = film->options;
    const double r = (double)film->params.radius_m;
    const double size_m = sqrt(options->granules * SETTLED_R3 * r * r * r / DEPTH_M);
    struct patch_start *start = &film->start;
    struct vec2 middle;

    if (make_field(film, size_m, err))
        return err->code;
    middle.x = middle.y = (FIELD_MARGIN + 0.5) * ceil(size_m / SPACING_M) * SPACING_M;
    *start = (struct patch_start){.locale = "film",
                                  .layer = "ground",
                                  .revision = 1,
                                  .field = heightfield_ref(film->field),
                                  .scale = SCALE_FINE,
                                  .material = MATERIAL_SAND,
                                  .fill = CONVERT_PACKED,
                                  .mode = CONVERT_DIFFERENCE,
                                  .seed = 1};
    if (convert_place_find(film->field, middle, (const double[2]){size_m, size_m}, DEPTH_M,
                           (double)film->params.diameter_m, SAMPLES_MAX, &start->place, err))
        return err->code;
    film->place = start->place;
    return make_body(film, middle, err);
}

/* The engine as the daemon would make it for one patch of this size. */
static enum err_code make_engine(struct film *film, struct err *err)
{
    struct patch_start *start = &film->start;
    struct device_config device = device_config_default;
    struct sand_engine_config config;

    memset(device.slots, 0, sizeof device.slots);
    device.slots[SCALE_FINE] = device.bodies_max = 1;
    device.granules_max = (uint32_t)(1.1 * film->options->granules) + 100;
    device.particles_max = film->shell.particles;
    device.threads = film->options->threads;
    device_engine_config(&device, SCALE_FINE, &config);
    if (convert_grid_make(&start->place, (double)config.params.diameter_m, config.depth_max,
                          &start->grid, err) ||
        convert_down(film->field, &start->place, &config.params, start->fill, start->seed,
                     config.granules_max, config.bed_max, &start->ground, err))
        return err->code;
    start->ground.begin.gravity[2] = -9.81F;
    film->engine = scene_engine_create(film->options->gpu, &config, err);
    return err->code;
}

/* ---- the patch ------------------------------------------------------------------------------- */

static void on_report(void *context, struct patch_report *report, bool is_state)
{
    struct film *film = context;

    (void)is_state;
    patch_report_unref(film->report);
    film->report = report;
}

static void on_forget(void *context, uint64_t number)
{
    (void)context;
    (void)number;
}

/* What the world's writer does with it. */
static void on_write(void *context, uint64_t number, const struct patch_start *start,
                     uint64_t revision, const struct sample_rect *rect, float *heights_m)
{
    struct film *film = context;
    const struct edit edit = {.kind = EDIT_ADD, .rect = *rect, .heights_m = heights_m};
    struct edit_outcome outcome = {.heights_m = NULL};
    struct err *err = &film->write_err;

    err->code = ERR_OK;
    if (edit_evaluate(start->field, &edit, SAMPLES_MAX, &outcome, err) == ERR_OK)
        film->after = heightfield_with_samples(start->field, &outcome.rect, outcome.heights_m, err);
    edit_outcome_free(&outcome);
    free(heights_m);
    manager_written(film->manager, number, err->code, revision + 1, film->after,
                    err->code ? err->msg : "", film->now_s);
}

static void on_lost(void *context, enum granular_scale scale)
{
    (void)context; /* the patch has failed, which its report says */
    (void)scale;
}

static enum err_code make_patch(struct film *film, struct err *err)
{
    const struct manager_calls calls = {film, on_report, on_forget, on_write, on_lost};
    struct manager_limits limits = manager_limits_default;
    struct patch_report *report;

    limits.pause_after_s = 0.5;
    limits.linger_s = INFINITY;
    limits.active_max_s = film->options->rest_s;
    limits.report_s = 0;
    film->manager = manager_create(&limits, &calls, err);
    if (!film->manager)
        return err->code;
    manager_set_engine(film->manager, SCALE_FINE, film->engine, 0);
    if (manager_add(film->manager, &film->start, 0, &report, err))
        return err->code;
    film->number = report->number;
    patch_report_unref(report);
    return ERR_OK;
}

static enum err_code prepare(struct film *film, struct err *err)
{
    const struct film_options *options = film->options;

    if (options->model ? read_model(options->model, &film->model, err)
                       : barrel_model(&film->model, err))
        return err->code;
    granular_params_make(MATERIAL_SAND, scale_radius_m(SCALE_FINE), &film->params);
    if (shell_build(&film->model, (double)film->params.radius_m, options->threads, &film->shell,
                    err) ||
        make_start(film, err) || make_engine(film, err))
        return err->code;
    return make_patch(film, err);
}

/* ---- the drop -------------------------------------------------------------------------------- */

static void wait_a_little(void)
{
    const struct timespec moment = {0, 200000};

    nanosleep(&moment, NULL);
}

/* Lets the clock go on until the patch is in this state (or beyond) and so far in its time. */
static enum err_code run(struct film *film, enum patch_state state, double time_s, struct err *err)
{
    while (film->report->state < state || film->report->time_s < time_s) {
        if (patch_state_is_end(film->report->state) && film->report->state != PATCH_WRITTEN)
            return err_set(err, ERR_INTERNAL, "the patch has %s: %s",
                           patch_state_name(film->report->state), film->report->reason);
        if (state == PATCH_ACTIVE && film->report->state > state)
            break; /* it rests already */
        film->now_s += TICK_S;
        if (manager_tick(film->manager, film->now_s) > 0)
            wait_a_little();
    }
    return ERR_OK;
}

/* The granules, as long as there are any. */
static enum err_code look_at_spheres(struct film *film, struct view_scene *scene, struct err *err)
{
    const size_t most = manager_spheres_max(film->manager, film->number);
    int answer = 0;

    if (!film->spheres)
        film->spheres = malloc((most + 1) * sizeof *film->spheres);
    if (!film->spheres)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu spheres", most);
    if (!manager_spheres_request(film->manager, film->number))
        return ERR_OK;
    while (answer == 0) {
        answer =
            manager_spheres_poll(film->manager, film->number, film->spheres, &scene->sphere_count);
        if (answer == 0)
            wait_a_little();
    }
    scene->spheres = (const float(*)[4])film->spheres;
    return ERR_OK;
}

static enum err_code shoot(struct film *film, uint32_t index, struct err *err)
{
    const struct patch_report *report = film->report;
    const struct patch_report_body *lies = &report->bodies[0];
    const struct convert_place *place = &film->place;
    const struct view_body body = {
        {film->model.vertices, film->model.corners, (uint32_t)film->model.polygon_count},
        {lies->position[0], lies->position[1], lies->position[2]},
        {lies->orientation[0], lies->orientation[1], lies->orientation[2], lies->orientation[3]}};
    struct view_scene scene = {
        .field = film->after ? film->after : film->field,
        .min = {place->low.x, place->low.y},
        .max = {place->low.x + place->size_m[0], place->low.y + place->size_m[1]},
        .depth_m = DEPTH_M,
        .spheres_of_granule = GRANULE_SPHERES,
        .radius_m = film->params.radius_m,
        .origin = {place->low.x, place->low.y, place->z_m},
        .bodies = &body,
        .body_count = 1};
    const struct view_options options = {.width = WIDTH, .height = HEIGHT, .camera = &film->camera};

    if (index == 0)
        film->camera = view_camera(&scene, WIDTH, HEIGHT);
    if (look_at_spheres(film, &scene, err))
        return err->code;
    film->frame[index] = malloc(3 * WIDTH * HEIGHT);
    if (!film->frame[index])
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture");
    printf("%6.2f s  %-8s %5u of %u granules asleep, body at %.2f m, %.2f m/s\n", report->time_s,
           patch_state_name(report->state), report->asleep, report->granules, lies->position[2],
           sqrt(lies->velocity[0] * lies->velocity[0] + lies->velocity[1] * lies->velocity[1] +
                lies->velocity[2] * lies->velocity[2]));
    return view_render(&scene, &options, film->frame[index], err);
}

static enum err_code close_patch(struct film *film, struct err *err)
{
    const struct mass_ledger *ledger;
    struct patch_report *report = NULL;

    if (manager_close(film->manager, film->number, false, film->now_s, &report, err))
        return err->code;
    patch_report_unref(report);
    if (run(film, PATCH_WRITTEN, 0, err))
        return err->code;
    ledger = &film->report->ledger;
    printf("written back: %u x %u samples, %.3f m3 moved, %+.4f m3 of %.3f lost\n",
           film->report->rect.cols, film->report->rect.rows, ledger->moved_m3, ledger->lost_m3,
           ledger->volume_before_m3);
    return ERR_OK;
}

static enum err_code shoot_all(struct film *film, struct err *err)
{
    double began_s, meets_s;

    if (run(film, PATCH_ACTIVE, 0, err) || shoot(film, 0, err))
        return err->code;
    began_s = film->report->time_s;
    meets_s = film->speed > 0 ? fmin(film->options->height_m, GAP_M) / film->speed : 0;
    if (run(film, PATCH_ACTIVE, began_s + meets_s + IMPACT_S, err) || shoot(film, 1, err) ||
        run(film, PATCH_RESTING, 0, err) || shoot(film, 2, err) || close_patch(film, err))
        return err->code;
    return shoot(film, 3, err);
}

/* The pictures side by side, with a gap between. */
static enum err_code strip_png(const struct film *film, struct raster_bytes *png, struct err *err)
{
    const size_t all = (size_t)FRAMES * WIDTH + (size_t)(FRAMES - 1) * STRIP_GAP_PX;
    uint8_t *rgb = malloc(3 * all * HEIGHT);

    if (!rgb)
        return err_set(err, ERR_NO_MEMORY, "no memory for a strip of pictures");
    memset(rgb, 255, 3 * all * HEIGHT);
    for (size_t i = 0; i < FRAMES; i++)
        for (size_t row = 0; row < HEIGHT; row++)
            memcpy(rgb + 3 * (row * all + i * (WIDTH + STRIP_GAP_PX)),
                   film->frame[i] + 3 * row * WIDTH, 3 * (size_t)WIDTH);
    png_encode((uint32_t)all, HEIGHT, 3, rgb, 6, png, err);
    free(rgb);
    return err->code;
}

static enum err_code write_strip(const struct film *film, struct err *err)
{
    struct raster_bytes png;
    FILE *file;

    if (strip_png(film, &png, err))
        return err->code;
    file = fopen(film->options->out, "wb");
    if (!file || fwrite(png.at, 1, png.length, file) != png.length)
        err_set(err, ERR_INTERNAL, "%s cannot be written", film->options->out);
    if (file && fclose(file) != 0 && !err->code)
        err_set(err, ERR_INTERNAL, "%s cannot be written", film->options->out);
    free(png.at);
    return err->code;
}

int film_run(const struct film_options *options)
{
    struct film film = {.options = options};
    struct err err = {.code = ERR_OK};

    if (prepare(&film, &err) == ERR_OK && shoot_all(&film, &err) == ERR_OK)
        write_strip(&film, &err);
    if (err.code)
        fprintf(stderr, "kota-sand: %s\n", err.msg);
    manager_destroy(film.manager);
    patch_start_free(&film.start);
    patch_report_unref(film.report);
    sand_engine_destroy(film.engine);
    scene_engines_close();
    heightfield_unref(film.field);
    heightfield_unref(film.after);
    polygon_set_free(&film.model);
    shell_free(&film.shell);
    free(film.spheres);
    for (int i = 0; i < FRAMES; i++)
        free(film.frame[i]);
    return err.code ? 1 : 0;
}
