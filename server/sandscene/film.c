/*
 * A film strip of a drop: ground at rest, the moment of impact, half a second on, and at rest.
 *
 * The whole way of a body is gone as a patch goes it: its model becomes a shell, the shell falls
 * with the solid's mass and inertia, and the pictures show the model itself where its shell is. The
 * engine is the C one, or one on a GPU; the pictures are by the processor.
 */
#include "sandscene/film.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sand/material.h"
#include "sand/shell.h"
#include "sand/view.h"
#include "sandscene/engines.h"
#include "sandscene/ground.h"

enum {
    FRAMES = 4,
    WIDTH = 480,
    HEIGHT = 360,
    SETTLE_FRAMES = 60, /* of 1/60 s, before the first picture */
    BARREL_SIDES = 24,
    FIELD_MARGIN = 3 /* sizes of the patch, of ground around it */
};

struct film {
    const struct film_options *options;
    struct granular_params params;
    struct ground ground;
    struct sand_engine *engine;
    struct polygon_set model;
    struct shell shell;
    struct heightfield *field;
    float (*spheres)[4];
    uint8_t *frame[FRAMES];
    struct sand_status status;
};

/* ---- the model ---------------------------------------------------------------------------------
 */

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

/* ---- the stage ---------------------------------------------------------------------------------
 */

static enum err_code make_field(struct film *film, struct err *err)
{
    enum { SIDE = 32 * (2 * FIELD_MARGIN + 1) + 1 };
    double size = (double)film->ground.size_m, step = size / 32;
    struct heightfield_spec spec = {.cols = SIDE,
                                    .rows = SIDE,
                                    .origin_x_m = -FIELD_MARGIN * size,
                                    .origin_y_m = -FIELD_MARGIN * size,
                                    .spacing_x_m = step,
                                    .spacing_y_m = step};
    float *heights = malloc(SIDE * SIDE * sizeof *heights);

    if (!heights)
        return err_set(err, ERR_NO_MEMORY, "no memory for the ground");
    for (int i = 0; i < SIDE * SIDE; i++)
        heights[i] = ground_height(&film->ground, (float)(spec.origin_x_m + i % SIDE * step),
                                   (float)(spec.origin_y_m + i / SIDE * step));
    film->field = heightfield_create(&spec, heights, err);
    free(heights);
    return err->code;
}

static enum err_code make_engine(struct film *film, struct err *err)
{
    const struct ground *ground = &film->ground;
    double cell = (double)film->params.cell_m, layer = pow(ceil((double)ground->size_m / cell), 2);
    double height = 1.3 * (double)ground->depth_m + 0.1 * (double)ground->size_m;
    struct sand_engine_config config = {.params = film->params,
                                        .slots = 1,
                                        .granules_max = ground->count,
                                        .bodies_max = 1,
                                        .particles_max = film->shell.particles,
                                        .cells_max = (uint32_t)(layer * (ceil(height / cell) + 4)),
                                        .bed_max = GROUND_BED * GROUND_BED,
                                        .depth_max = 1024,
                                        .threads = film->options->threads};

    film->engine = scene_engine_create(film->options->gpu, &config, err);
    film->spheres = malloc((GRANULE_SPHERES * (size_t)ground->count + film->shell.particles) *
                           sizeof *film->spheres);
    if (!film->engine || !film->spheres)
        return err->code ? err->code : err_set(err, ERR_NO_MEMORY, "no memory for spheres");
    return ground_begin(ground, film->engine, 0, err);
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
        ground_make(&film->params, (uint32_t)options->granules, 0.8F, &film->ground, err) ||
        make_field(film, err))
        return err->code;
    return make_engine(film, err);
}

/* ---- the drop ----------------------------------------------------------------------------------
 */

static void wait_a_little(void)
{
    const struct timespec moment = {0, 200000};

    nanosleep(&moment, NULL);
}

static enum err_code run(struct film *film, uint32_t frames, struct err *err)
{
    for (uint32_t i = 0; i < frames; i++)
        if (sand_engine_step(film->engine, film->params.substeps, 1, err))
            return err->code;
    sand_status_request(film->engine, 0);
    while (!sand_status_poll(film->engine, 0, &film->status))
        wait_a_little();
    return film->status.failed ? err_set(err, ERR_INTERNAL, "the sand failed") : ERR_OK;
}

static enum err_code shoot(struct film *film, uint32_t index, struct err *err)
{
    const struct sand_pose *pose = &film->status.pose[0];
    double size = (double)film->ground.size_m;
    struct view_body body = {
        {film->model.vertices, film->model.corners, (uint32_t)film->model.polygon_count},
        {0, 0, 0},
        {(double)pose->q[0], (double)pose->q[1], (double)pose->q[2], (double)pose->q[3]}};
    struct view_scene scene = {.field = film->field,
                               .max = {size, size},
                               .depth_m = (double)film->ground.depth_m,
                               .spheres = (const float(*)[4])film->spheres,
                               .spheres_of_granule = GRANULE_SPHERES,
                               .radius_m = film->params.radius_m,
                               .bodies = &body,
                               .body_count = film->status.bodies};
    struct view_options options = {.width = WIDTH, .height = HEIGHT};

    body.origin = shell_origin_of(
        &film->shell, (struct vec3){(double)pose->x[0], (double)pose->x[1], (double)pose->x[2]},
        body.orientation);
    sand_spheres_request(film->engine, 0);
    while (!sand_spheres_poll(film->engine, 0, film->spheres, &scene.sphere_count))
        wait_a_little();
    film->frame[index] = malloc(3 * WIDTH * HEIGHT);
    if (!film->frame[index])
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture");
    printf("%6.2f s  %5u of %u granules asleep, body at %.2f m, %.2f m/s\n", film->status.time_s,
           film->status.asleep, film->status.granules, (double)pose->x[2],
           (double)film->status.body_speed_max);
    return view_render(&scene, &options, film->frame[index], err);
}

static enum err_code drop(struct film *film, struct err *err)
{
    const float middle = film->ground.size_m / 2;
    double top = (double)ground_height(&film->ground, middle, middle);
    struct sand_shape shape =
        shell_shape(&film->shell, film->options->density * film->shell.volume_m3);
    struct sand_pose pose = {.x = {middle, middle, 0}, .q = {0.3F, 0, 0, 0.954F}};
    double fall_m = film->options->height_m, start_m = fmin(fall_m, 0.05);
    uint32_t body;

    /* what is above is fallen in thought: the body begins just over the ground */
    pose.x[2] = (float)(top + film->shell.extent_m + start_m);
    pose.v[2] = (float)-sqrt(2 * 9.81 * (fall_m - start_m));
    return sand_body_add(film->engine, 0, &shape, &pose, &body, err);
}

static bool is_at_rest(const struct film *film)
{
    return film->status.body_speed_max <= film->params.sleep_speed &&
           film->status.asleep >= 0.99 * film->status.granules;
}

static enum err_code shoot_all(struct film *film, struct err *err)
{
    if (run(film, SETTLE_FRAMES, err) || drop(film, err) || run(film, 1, err) ||
        shoot(film, 0, err) || run(film, 8, err) || shoot(film, 1, err) || run(film, 24, err) ||
        shoot(film, 2, err))
        return err->code;
    for (uint32_t i = 0; i < 60 * film->options->rest_s && !is_at_rest(film); i += 6)
        if (run(film, 6, err))
            return err->code;
    return shoot(film, 3, err);
}

static enum err_code write_strip(const struct film *film, struct err *err)
{
    struct raster_bytes png;
    FILE *file;

    if (view_strip((const uint8_t *const *)film->frame, FRAMES, WIDTH, HEIGHT, &png, err))
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
    sand_engine_destroy(film.engine);
    scene_engines_close();
    ground_free(&film.ground);
    heightfield_unref(film.field);
    polygon_set_free(&film.model);
    shell_free(&film.shell);
    free(film.spheres);
    for (int i = 0; i < FRAMES; i++)
        free(film.frame[i]);
    return err.code ? 1 : 0;
}
