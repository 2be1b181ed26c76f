/*
 * One conversion of a place, down and up, on any engine and without a server: what `kota-sand
 * compare` repeats, and the tests of it hold against C. Leach 2014, 6.4.4.
 *
 * The parts are those of a patch (convert.h), in a patch's order: cut, settle, look, drop, rest,
 * look, write. The error is told where something moved: how far the written height of a sample is
 * from the mean of the granules' surface over its cell. That is C. Leach's measure (his new heights
 * are that surface) on the part of the ground that changed; elsewhere ours is 0 by construction,
 * which `outside` and `still` count after the fact.
 *
 * The barrel grows with the patch: its shell has a tenth of the patch's side for a radius.
 */
#include "bench/sandscene/cycle.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sandscene/engines.h"
#include "bench/sandscene/ground.h"
#include "terrain/field/edit.h"

enum { MARGIN_CELLS = 4, BED_MAX = 65536, POINTS_MAX = 1 << 20, PARTICLES_MAX = 8192 };

static const double REST_S = 0.5, REST_MOST_S = 30;

/* ---- the stage ------------------------------------------------------------------------------- */

static enum err_code field_make(struct stage *stage, double spacing_m, uint32_t side,
                                struct err *err)
{
    const struct heightfield_spec spec = {side, side, 0, 0, spacing_m, spacing_m, 0, 0};
    float *heights_m = malloc((size_t)side * side * sizeof *heights_m);

    if (!heights_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u by %u samples", side, side);
    for (uint32_t i = 0; i < side * side; i++) {
        const double x = 2 * M_PI * (i % side) / side, y = 2 * M_PI * (i / side) / side;

        heights_m[i] = (float)(0.02 * stage->options->size_m * (sin(x + 1) + sin(x + 2 * y)));
    }
    stage->field = heightfield_create(&spec, heights_m, err);
    free(heights_m);
    return stage->field ? ERR_OK : err->code;
}

static uint32_t barrel_particles(const struct stage *stage)
{
    const double radius = 0.1 * stage->place.size_m[0] / (1.4 * (double)stage->params.radius_m);

    return (uint32_t)fmin(fmax(8 * M_PI * radius * radius, 64), PARTICLES_MAX);
}

/* A pool for the place: cut once to see how large it is. */
static enum err_code engine_make(struct stage *stage, struct err *err)
{
    const double cell = (double)stage->params.cell_m;
    struct sand_engine_config config = {.params = stage->params,
                                        .slots = 1,
                                        .bodies_max = 1,
                                        .particles_max = barrel_particles(stage),
                                        .bed_max = BED_MAX,
                                        .depth_max = POINTS_MAX,
                                        .threads = stage->options->threads};
    struct convert_ground ground;
    double height;

    stage->granules_max =
        (uint32_t)(2 * stage->volume_m3 / (29 * pow((double)stage->params.radius_m, 3))) + 1000;
    if (convert_down(stage->field, &stage->place, &stage->params, CONVERT_PACKED, 1,
                     stage->granules_max, BED_MAX, &ground, err))
        return err->code;
    height = (double)ground.begin.height_m +
             2 * (double)barrel_height(&stage->params, config.particles_max);
    config.granules_max = stage->granules_max;
    config.cells_max =
        (uint32_t)(ceil(stage->place.size_m[0] / cell + 1) *
                   ceil(stage->place.size_m[1] / cell + 1) * ceil(height / cell + 4));
    convert_ground_free(&ground);
    stage->engine = scene_engine_create(stage->options->gpu, &config, err);
    return stage->engine ? ERR_OK : err->code;
}

enum err_code stage_init(struct stage *stage, const struct stage_options *options, struct err *err)
{
    const double spacing_m = options->size_m / options->cells;
    const double middle_m = spacing_m * (MARGIN_CELLS + options->cells / 2.0);
    const uint32_t side = options->cells + 2 * MARGIN_CELLS + 1;
    size_t texels;

    *stage = (struct stage){.options = options};
    granular_params_make(MATERIAL_SAND, scale_radius_m(options->scale), &stage->params);
    if (field_make(stage, spacing_m, side, err) ||
        convert_place_find(stage->field, (struct vec2){middle_m, middle_m},
                           (const double[2]){options->size_m, options->size_m}, options->depth_m,
                           (double)stage->params.diameter_m, (uint64_t)side * side, &stage->place,
                           err) ||
        convert_grid_make(&stage->place, (double)stage->params.diameter_m, POINTS_MAX, &stage->grid,
                          err))
        return err->code;
    stage->volume_m3 = options->size_m * options->size_m * options->depth_m;
    texels = (size_t)stage->grid.depth.cols * stage->grid.depth.rows;
    stage->before_m = malloc(texels * sizeof *stage->before_m);
    stage->after_m = malloc(texels * sizeof *stage->after_m);
    if (!stage->before_m || !stage->after_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu texels", texels);
    return engine_make(stage, err);
}

void stage_finish(struct stage *stage)
{
    sand_engine_destroy(stage->engine);
    heightfield_unref(stage->field);
    free(stage->before_m);
    free(stage->after_m);
    *stage = (struct stage){.options = NULL};
}

/* ---- granules -------------------------------------------------------------------------------- */

/* Frames until rest; *passed_s is the simulated time that it took. */
static enum err_code rest(struct stage *stage, double *passed_s, struct err *err)
{
    const struct granular_params *params = &stage->params;
    struct sand_status status;
    double quiet_s = 0, time_s = 0;

    while (quiet_s < REST_S) {
        for (int frame = 0; frame < 3; frame++)
            if (sand_engine_step(stage->engine, params->substeps, 1, err))
                return err->code;
        time_s += 3 / 60.0;
        if (!scene_engine_status(stage->engine, 0, &status) || status.failed)
            return err_set(err, ERR_INTERNAL, "the solver has failed");
        quiet_s =
            status.body_speed_max <= params->sleep_speed && status.asleep >= 0.99 * status.granules
                ? quiet_s + 3 / 60.0
                : 0;
        if (time_s > REST_MOST_S)
            return err_set(err, ERR_INTERNAL, "%u of %u granules sleep after %.0f s", status.asleep,
                           status.granules, time_s);
    }
    *passed_s = time_s - REST_S;
    return ERR_OK;
}

static enum err_code drop(struct stage *stage, const struct cycle_how *how, struct cycle *out,
                          struct err *err)
{
    const uint32_t particles = barrel_particles(stage);
    const float middle = (float)(stage->place.size_m[0] / 2);
    const struct sand_depth *grid = &stage->grid.depth;
    float(*offsets_m)[3] = calloc(particles, sizeof(*offsets_m));
    struct sand_pose pose = {.q = {0.3f, 0, 0, 0.954f}};
    struct sand_shape shape;
    float heavier, top = 0;
    uint32_t body;

    if (!offsets_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a barrel");
    barrel_make(&stage->params, particles, offsets_m, &shape);
    heavier = (float)how->drop_kg / shape.mass_kg;
    shape.mass_kg *= heavier;
    for (int a = 0; a < 3; a++)
        shape.inertia[a][a] *= heavier;
    for (uint32_t i = 0; i < grid->cols * grid->rows; i++)
        top = fmaxf(top, stage->before_m[i]);
    pose.x[0] = pose.x[1] = middle;
    pose.x[2] = top + barrel_height(&stage->params, particles) / 2 + stage->params.diameter_m;
    pose.v[2] = -(float)how->speed_m_s;
    out->particles = particles;
    sand_body_add(stage->engine, 0, &shape, &pose, &body, err);
    free(offsets_m);
    return err->code;
}

static enum err_code look(struct stage *stage, float *map_m, struct err *err)
{
    return scene_engine_depth(stage->engine, 0, &stage->grid.depth, map_m, err);
}

/* Mean of a map, or of the ground over it. */
static double map_mean(const struct stage *stage, const float *map_m)
{
    const struct sand_depth *d = &stage->grid.depth;
    double sum = 0;

    for (uint32_t i = 0; i < d->cols * d->rows; i++)
        sum += map_m[i];
    return sum / (d->cols * d->rows);
}

/* From the cut to the second map. The slot is begun, and ended by the caller. */
static enum err_code granules_run(struct stage *stage, const struct cycle_how *how,
                                  struct cycle *out, struct err *err)
{
    double cut_m;

    if (look(stage, stage->before_m, err))
        return err->code;
    cut_m = map_mean(stage, stage->before_m);
    if (rest(stage, &out->settle_s, err) || look(stage, stage->before_m, err))
        return err->code;
    out->sunk_m = cut_m - map_mean(stage, stage->before_m);
    if (how->drop_kg > 0 && (drop(stage, how, out, err) || rest(stage, &out->rest_s, err)))
        return err->code;
    return look(stage, stage->after_m, err);
}

static enum err_code granules_make(struct stage *stage, const struct cycle_how *how,
                                   struct cycle *out, struct err *err)
{
    const double sphere_m3 = 4 * M_PI / 3 * pow((double)stage->params.radius_m, 3);
    struct convert_ground ground;
    enum err_code code;

    if (convert_down(stage->field, &stage->place, &stage->params, how->fill, how->seed,
                     stage->granules_max, BED_MAX, &ground, err))
        return err->code;
    ground.begin.gravity[2] = -9.81f;
    out->granules = ground.count;
    out->fraction = GRANULE_SPHERES * sphere_m3 * ground.count / stage->volume_m3;
    code = sand_slot_begin(stage->engine, 0, &ground.begin, err);
    if (!code)
        code = sand_slot_fill(stage->engine, 0, ground.granules, ground.count, err);
    convert_ground_free(&ground);
    return code;
}

/* ---- the ground ------------------------------------------------------------------------------ */

/* Whether the cell of an inner sample looked the same before and after; its mean after. */
static bool cell_is_still(const struct stage *stage, uint32_t column, uint32_t row, double *mean_m)
{
    const uint32_t kx = stage->grid.per_sample[0], ky = stage->grid.per_sample[1];
    bool still = true;

    *mean_m = 0;
    for (uint32_t r = (row - 1) * ky; r < row * ky; r++) {
        for (uint32_t c = (column - 1) * kx; c < column * kx; c++) {
            const size_t at = (size_t)r * stage->grid.depth.cols + c;

            still = still && memcmp(&stage->before_m[at], &stage->after_m[at], sizeof(float)) == 0;
            *mean_m += stage->after_m[at];
        }
    }
    *mean_m /= (double)kx * ky;
    return still;
}

/* Compares the fields bit by bit. */
static void changes_count(const struct stage *stage, const struct heightfield *next,
                          struct cycle *out)
{
    const struct heightfield_spec *spec = heightfield_spec(next);
    const struct sample_rect *s = &stage->place.samples;
    double error_m = 0, bias_m = 0;
    uint32_t inner = 0;

    for (uint32_t i = 0; i < spec->cols * spec->rows; i++) {
        const uint32_t c = i % spec->cols - s->column, r = i / spec->cols - s->row;
        const float old_m = heightfield_sample(stage->field, i % spec->cols, i / spec->cols);
        const float new_m = heightfield_sample(next, i % spec->cols, i / spec->cols);
        double mean_m;

        if (memcmp(&old_m, &new_m, sizeof(old_m)) == 0)
            continue;
        out->changed++;
        out->outside += c >= s->cols || r >= s->rows;
        if (c - 1 >= s->cols - 2 || r - 1 >= s->rows - 2)
            continue;
        out->still += cell_is_still(stage, c, r, &mean_m);
        error_m += fabs((double)new_m - stage->place.z_m - mean_m);
        bias_m += (double)new_m - stage->place.z_m - mean_m;
        inner++;
    }
    out->error_m = inner > 0 ? error_m / inner : 0;
    out->bias_m = inner > 0 ? bias_m / inner : 0;
}

static enum err_code ground_write(struct stage *stage, const struct cycle_how *how,
                                  struct cycle *out, struct err *err)
{
    struct convert_change change;
    struct edit edit = {.kind = EDIT_ADD};
    struct edit_outcome outcome;
    struct heightfield *next;

    if (convert_up(stage->field, &stage->place, &stage->grid, (double)stage->params.diameter_m,
                   stage->before_m, stage->after_m, how->mode, &change, err))
        return err->code;
    out->ledger = change.ledger;
    free(change.next_m);
    if (change.rect.cols == 0)
        return ERR_OK;
    edit.rect = change.rect;
    edit.heights_m = change.heights_m;
    if (edit_evaluate(stage->field, &edit, POINTS_MAX, &outcome, err)) {
        free(change.heights_m);
        return err->code;
    }
    next = heightfield_with_samples(stage->field, &outcome.rect, outcome.heights_m, err);
    edit_outcome_free(&outcome);
    free(change.heights_m);
    if (!next)
        return err->code;
    changes_count(stage, next, out);
    heightfield_unref(stage->field);
    stage->field = next;
    return ERR_OK;
}

enum err_code cycle_run(struct stage *stage, const struct cycle_how *how, struct cycle *out,
                        struct err *err)
{
    enum err_code code;

    *out = (struct cycle){.granules = 0};
    code = granules_make(stage, how, out, err);
    if (!code)
        code = granules_run(stage, how, out, err);
    sand_slot_end(stage->engine, 0);
    return code ? code : ground_write(stage, how, out, err);
}
