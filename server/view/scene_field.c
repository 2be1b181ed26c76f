/*
 * Heightfields as blocks of triangles.
 *
 * Problem: a field of 8192² samples has 134 million triangles, and a picture some million pixels.
 * Approach: squares of 32 × 32 cells whose samples lie 1, 2, 4, … apart (a quadtree): the step is
 * the largest whose cells are no larger than `pixels` pixels where the block is nearest to the eye;
 * outside of the picture four times that, for what only casts shadows. `pixels` is 0 where all
 * cells fit into the most blocks that there may be, else the least of 0.5, 1, 2, … with which they
 * fit. So small fields are exact, and the number of triangles is bounded.
 *
 * Blocks of different steps do not meet at their edges; each has a hem that hangs down from its
 * edge and covers the gap.
 */
#include "view/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE_COARSER 4

struct chooser {
    const struct heightfield *field;
    const struct heightfield_spec *spec;
    const struct lens_frame *lens;
    double pixels;
    struct scene *scene; /* NULL: only counted */
    uint32_t count, most;
    int32_t eye[2]; /* the sample that is counted from */
};

static double distance_to(const struct box3 *box)
{
    const double x = fmax(fmax(box->min.x, -box->max.x), 0);
    const double y = fmax(fmax(box->min.y, -box->max.y), 0);
    const double z = fmax(fmax(box->min.z, -box->max.z), 0);

    return sqrt(x * x + y * y + z * z);
}

static uint32_t cut(int64_t at, uint32_t count)
{
    return at < 0 ? 0 : at >= count ? count - 1 : (uint32_t)at;
}

static void add_block(struct chooser *c, uint32_t column, uint32_t row, uint32_t step,
                      const struct box3 *box)
{
    struct scene *scene = c->scene;
    float *to;

    c->count++;
    if (!scene)
        return;
    to = scene->heights + (size_t)scene->block_count * SCENE_STORED * SCENE_STORED;
    scene->boxes[scene->block_count] = *box;
    scene->blocks[scene->block_count++] = (struct scene_block){
        (int32_t)column - c->eye[0], (int32_t)row - c->eye[1], (int32_t)step, 0};
    for (int j = -1; j <= SCENE_SIDE; j++)
        for (int i = -1; i <= SCENE_SIDE; i++)
            *to++ = heightfield_sample(c->field, cut(column + (int64_t)i * step, c->spec->cols),
                                       cut(row + (int64_t)j * step, c->spec->rows));
}

/* A square of 32 × 2^level cells; false once there are too many. */
static bool choose(struct chooser *c, uint32_t column, uint32_t row, uint32_t level)
{
    const struct heightfield_spec *spec = c->spec;
    const uint32_t side = (uint32_t)SCENE_BLOCK << level, half = side / 2;
    const struct vec3 eye = c->lens->eye;
    uint32_t column1, row1;
    double cell_m, allowed_m;
    float low, high;
    struct box3 box;

    if (column + 1 >= spec->cols || row + 1 >= spec->rows)
        return true;
    column1 = cut((int64_t)column + side, spec->cols);
    row1 = cut((int64_t)row + side, spec->rows);
    if (!heightfield_range(c->field, column, row, column1, row1, &low, &high))
        return true; /* no data */
    box.min =
        (struct vec3){spec->origin_x_m + column * spec->spacing_x_m - eye.x,
                      spec->origin_y_m + row * spec->spacing_y_m - eye.y, (double)low - eye.z};
    box.max =
        (struct vec3){spec->origin_x_m + column1 * spec->spacing_x_m - eye.x,
                      spec->origin_y_m + row1 * spec->spacing_y_m - eye.y, (double)high - eye.z};
    cell_m = fmax(spec->spacing_x_m, spec->spacing_y_m) * (double)(1u << level);
    allowed_m = c->pixels * distance_to(&box) * 2 * c->lens->tangent[1] / c->lens->height;
    if (!lens_frame_sees(c->lens, &box))
        allowed_m *= OUTSIDE_COARSER;
    if (level == 0 || cell_m <= allowed_m) {
        add_block(c, column, row, 1u << level, &box);
        return c->count <= c->most;
    }
    return choose(c, column, row, level - 1) && choose(c, column + half, row, level - 1) &&
           choose(c, column, row + half, level - 1) &&
           choose(c, column + half, row + half, level - 1);
}

static bool choose_all(struct chooser *c)
{
    uint32_t level = 0;

    c->spec = heightfield_spec(c->field);
    while (((uint64_t)SCENE_BLOCK << level) + 1 < c->spec->cols ||
           ((uint64_t)SCENE_BLOCK << level) + 1 < c->spec->rows)
        level++;
    return choose(c, 0, 0, level);
}

static void describe(struct chooser *c, struct scene_field *out)
{
    const struct heightfield_spec *spec = heightfield_spec(c->field);
    const double spacing[2] = {spec->spacing_x_m, spec->spacing_y_m};
    const double from[2] = {spec->origin_x_m - c->lens->eye.x, spec->origin_y_m - c->lens->eye.y};
    const uint32_t last[2] = {spec->cols - 1, spec->rows - 1};

    for (int i = 0; i < 2; i++) {
        c->eye[i] = (int32_t)fmin(fmax(floor(-from[i] / spacing[i]), -1e8), 1e8);
        out->last[i] = (int32_t)last[i] - c->eye[i];
        out->spacing[i] = (float)spacing[i];
        out->base[i] = (float)(from[i] + c->eye[i] * spacing[i]);
    }
    out->eye_z[0] = (float)c->lens->eye.z;
    out->eye_z[1] = (float)(c->lens->eye.z - (double)out->eye_z[0]);
    out->triangulation = spec->triangulation;
    out->has_hems = c->pixels > 0;
}

/* The blocks of all fields at this many pixels; UINT32_MAX: too many. */
static uint32_t count_all(const struct locale *locale, struct chooser *c)
{
    c->count = 0;
    for (size_t i = 0; i < locale->layer_count; i++) {
        c->field = locale->layers[i]->field;
        if (c->field && !choose_all(c))
            return UINT32_MAX;
    }
    return c->count;
}

enum err_code scene_add_fields(const struct locale *locale, const struct lens_frame *lens,
                               uint32_t blocks_max, struct scene *scene, struct err *err)
{
    struct chooser c = {.lens = lens, .most = blocks_max};
    uint32_t count;

    while ((count = count_all(locale, &c)) == UINT32_MAX)
        c.pixels = fmax(2 * c.pixels, 0.5);
    scene->fields = calloc(locale->layer_count + 1, sizeof *scene->fields);
    scene->blocks = malloc(((size_t)count + 1) * sizeof *scene->blocks);
    scene->boxes = malloc(((size_t)count + 1) * sizeof *scene->boxes);
    scene->heights = malloc(((size_t)count + 1) * SCENE_STORED * SCENE_STORED * sizeof(float));
    if (!scene->fields || !scene->blocks || !scene->boxes || !scene->heights)
        return err_set(err, ERR_NO_MEMORY, "no memory for the ground of a view");
    c.count = 0;
    c.scene = scene;
    for (size_t i = 0; i < locale->layer_count; i++) {
        struct scene_field *out = &scene->fields[scene->field_count];

        c.field = locale->layers[i]->field;
        if (!c.field)
            continue;
        out->first = scene->block_count;
        describe(&c, out);
        choose_all(&c);
        out->count = scene->block_count - out->first;
        scene->field_count++;
    }
    return ERR_OK;
}
