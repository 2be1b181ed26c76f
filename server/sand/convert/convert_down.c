/*
 * What goes down: the place of a patch, its bed, and the granules of its ground (text S, 5.3).
 *
 * Problem: columns of loose granules, as S stacks them, sink together under the first impact, and
 * volume is lost for good. Approach: granules are taken from a packing that was settled once and is
 * tiled without seams (packing.h); those between the bed and the surface are kept. The packing is
 * shifted by the seed, so that no two patches look alike, and the granules at the surface are
 * rotated at random: each tries some orientations and takes the first that touches no neighbour.
 * Invariant: no granule reaches into a wall or the bed by more than SLACK of a radius, so that
 * nothing springs apart at the first step. The bed is the ground smoothed over three diameters,
 * `depth` lower.
 */
#include "sand/convert/convert.h"

#include "base/check.h"
#include "sand/convert/packing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLACK 0.05f        /* of a radius */
#define TURN_OVERLAP 0.05f /* of a radius, between a turned granule and its neighbours */
#define BED_REACH_STEPS 3  /* of half a diameter: the width of the bed's smoothing */
#define SETTLED_R3 29.6 /* volume of a settled granule with its pores, in r³: measured, ± 3 % */
#define LIFT_DIAMETERS 1.25f /* how much higher it is cut than the ground */
#define LIFT_MOST 2.75f
#define TURNS 6             /* orientations that are tried */
#define TOP_DIAMETERS 0.75f /* how deep the surface reaches */
#define ROOM_DIAMETERS 6.0f /* above the ground, in the cell grid */
#define LOOKED_AT_MOST 64   /* granules of the packing that a cut tests, per one of the pool */

/* ---- the place ------------------------------------------------------------------------------- */

static const char *const axis_names[2] = {"x", "y"};

static enum err_code place_numbers(struct vec2 center, const double size_m[2], double depth_m,
                                   double diameter_m, struct err *err)
{
    if (!isfinite(center.x) || !isfinite(center.y)) {
        err_set(err, ERR_BAD_INPUT, "the centre is not finite");
        return err_at(err, "/center");
    }
    for (int axis = 0; axis < 2; axis++) {
        if (isfinite(size_m[axis]) && size_m[axis] > 0)
            continue;
        err_limit(err, ERR_BAD_INPUT, 0, size_m[axis], "size %s is %g m, it must be above 0",
                  axis_names[axis], size_m[axis]);
        return err_at(err, "/size");
    }
    if (!isfinite(depth_m) || !(depth_m > 0)) {
        err_limit(err, ERR_BAD_INPUT, 0, depth_m, "depth is %g m, it must be above 0", depth_m);
        return err_at(err, "/depth");
    }
    if (depth_m < 2 * diameter_m) {
        err_limit(err, ERR_UNPROCESSABLE, 2 * diameter_m, depth_m,
                  "depth is %g m; granules of %.3g m need at least two of them: %.3g m", depth_m,
                  diameter_m, 2 * diameter_m);
        return err_at(err, "/depth");
    }
    return ERR_OK;
}

/* First sample and count along one axis. */
static enum err_code place_axis(double center_m, double size_m, double origin_m, double spacing_m,
                                uint32_t samples, const char *axis, uint32_t *first,
                                uint32_t *count, struct err *err)
{
    const double low = round((center_m - size_m / 2 - origin_m) / spacing_m);
    const double cells = round(size_m / spacing_m);

    if (low < 0 || low + cells > samples - 1) {
        err_set(err, ERR_UNPROCESSABLE,
                "the patch reaches from %g to %g m in %s, the field from %g to %g m",
                center_m - size_m / 2, center_m + size_m / 2, axis, origin_m,
                origin_m + (samples - 1) * spacing_m);
        return err_at(err, "/size");
    }
    if (cells < 2) {
        err_limit(err, ERR_UNPROCESSABLE, 2 * spacing_m, size_m,
                  "size is %g m in %s, less than two cells of %g m: %g m are the least here",
                  size_m, axis, spacing_m, 2 * spacing_m);
        return err_at(err, "/size");
    }
    *first = (uint32_t)low;
    *count = (uint32_t)cells + 1;
    return ERR_OK;
}

static enum err_code place_size(const struct convert_place *place, double diameter_m,
                                uint64_t samples_max, struct err *err)
{
    const double samples = (double)place->samples.cols * place->samples.rows;
    const double side_m = fmin(place->size_m[0], place->size_m[1]);

    if (side_m < 4 * diameter_m)
        err_limit(err, ERR_UNPROCESSABLE, 4 * diameter_m, side_m,
                  "a side of the patch is %g m; granules of %.3g m need at least four of them: "
                  "%.3g m",
                  side_m, diameter_m, 4 * diameter_m);
    else if (samples > (double)samples_max)
        err_limit(err, ERR_TOO_LARGE, (double)samples_max, samples,
                  "the patch covers %.0f samples, the most is %llu", samples,
                  (unsigned long long)samples_max);
    else
        return ERR_OK;
    return err_at(err, "/size");
}

static enum err_code place_holes(const struct heightfield *field, struct convert_place *place,
                                 struct err *err)
{
    const struct sample_rect *s = &place->samples;

    place->lowest_m = INFINITY;
    place->peak_m = -INFINITY;
    for (uint32_t r = s->row; r < s->row + s->rows; r++) {
        for (uint32_t c = s->column; c < s->column + s->cols; c++) {
            const float height_m = heightfield_sample(field, c, r);

            if (isnan(height_m)) {
                err_set(err, ERR_UNPROCESSABLE, "the patch lies over a hole: sample (%u, %u)", c,
                        r);
                return err_at(err, "/center");
            }
            place->lowest_m = fmin(place->lowest_m, height_m);
            place->peak_m = fmax(place->peak_m, height_m);
        }
    }
    return ERR_OK;
}

enum err_code convert_place_find(const struct heightfield *field, struct vec2 center,
                                 const double size_m[2], double depth_m, double diameter_m,
                                 uint64_t samples_max, struct convert_place *out, struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    struct convert_place place = {.depth_m = depth_m,
                                  .spacing_m = {spec->spacing_x_m, spec->spacing_y_m}};
    struct sample_rect *s = &place.samples;

    if (place_numbers(center, size_m, depth_m, diameter_m, err) ||
        place_axis(center.x, size_m[0], spec->origin_x_m, spec->spacing_x_m, spec->cols, "x",
                   &s->column, &s->cols, err) ||
        place_axis(center.y, size_m[1], spec->origin_y_m, spec->spacing_y_m, spec->rows, "y",
                   &s->row, &s->rows, err))
        return err->code;
    place.low = (struct vec2){spec->origin_x_m + s->column * spec->spacing_x_m,
                              spec->origin_y_m + s->row * spec->spacing_y_m};
    place.size_m[0] = (s->cols - 1) * spec->spacing_x_m;
    place.size_m[1] = (s->rows - 1) * spec->spacing_y_m;
    if (place_size(&place, diameter_m, samples_max, err) || place_holes(field, &place, err))
        return err->code;
    place.z_m = place.lowest_m - depth_m;
    *out = place;
    return ERR_OK;
}

/* ---- numbers of the seed --------------------------------------------------------------------- */

/* Sebastiano Vigna, splitmix64. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double random_unit(uint64_t *state) /* 0 <= … < 1 */
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* Uniform over all orientations (K. Shoemake, Uniform Random Rotations, 1992). */
static void random_turn(uint64_t *state, float q[4])
{
    const double two_pi = 6.283185307179586, u = random_unit(state);
    const double a = two_pi * random_unit(state), b = two_pi * random_unit(state);

    q[0] = (float)(sqrt(1 - u) * sin(a));
    q[1] = (float)(sqrt(1 - u) * cos(a));
    q[2] = (float)(sqrt(u) * sin(b));
    q[3] = (float)(sqrt(u) * cos(b));
}

/* ---- spheres --------------------------------------------------------------------------------- */

static void spheres_of(const struct granule *granule, float radius_m, float out[GRANULE_SPHERES][3])
{
    const float *q = granule->q, e = radius_m * 0.70710678f;

    for (int j = 0; j < GRANULE_SPHERES; j++) {
        const float p[3] = {e * GRANULE_CORNER[j][0], e * GRANULE_CORNER[j][1],
                            e * GRANULE_CORNER[j][2]};
        /* p + 2 w (q × p) + 2 q × (q × p) */
        const float t[3] = {2 * (q[1] * p[2] - q[2] * p[1]), 2 * (q[2] * p[0] - q[0] * p[2]),
                            2 * (q[0] * p[1] - q[1] * p[0])};

        out[j][0] = granule->x[0] + p[0] + q[3] * t[0] + q[1] * t[2] - q[2] * t[1];
        out[j][1] = granule->x[1] + p[1] + q[3] * t[1] + q[2] * t[0] - q[0] * t[2];
        out[j][2] = granule->x[2] + p[2] + q[3] * t[2] + q[0] * t[1] - q[1] * t[0];
    }
}

/* ---- the ground ------------------------------------------------------------------------------ */

struct cut {
    const struct heightfield *field;
    const struct convert_place *place;
    const struct granular_params *params;
    float size_m[2];
    struct granular_bed bed;
    const float *bed_m;
    float lift_m; /* the cut is so far above the ground */
};

/* Of the ground in the local frame; at the box's edges where x lies outside. */
static float surface_at(const struct cut *cut, const float x[3])
{
    const struct convert_place *place = cut->place;
    struct ground_point ground;
    const struct vec2 at = {
        place->low.x + fmin(fmax(x[0], 0), place->size_m[0]),
        place->low.y + fmin(fmax(x[1], 0), place->size_m[1]),
    };

    heightfield_height(cut->field, at, INTERPOLATION_BILINEAR, &ground);
    return ground.status == GROUND_OK ? (float)(ground.height_m - place->z_m)
                                      : (float)(place->lowest_m - place->z_m);
}

/* Of the bed in the local frame: bilinear, constant beyond its edges. */
static float bed_at(const struct cut *cut, const float x[3])
{
    const struct granular_bed *bed = &cut->bed;
    const float u = fminf(fmaxf(x[0] / bed->dx, 0), (float)(bed->cols - 1)),
                v = fminf(fmaxf(x[1] / bed->dy, 0), (float)(bed->rows - 1));
    const uint32_t c = u >= (float)(bed->cols - 1) ? bed->cols - 2 : (uint32_t)u,
                   r = v >= (float)(bed->rows - 1) ? bed->rows - 2 : (uint32_t)v;
    const float *h = cut->bed_m + (size_t)r * bed->cols + c, s = u - (float)c, t = v - (float)r;

    return (h[0] * (1 - s) + h[1] * s) * (1 - t) +
           (h[bed->cols] * (1 - s) + h[bed->cols + 1] * s) * t;
}

/* Its centre may lie so deep that some orientation still fits between it and the bed. */
static bool is_ground(void *context, const float x[3])
{
    const struct cut *cut = context;
    const float surface_m = surface_at(cut, x), r = cut->params->radius_m;

    return x[2] <= surface_m + cut->lift_m && x[2] >= bed_at(cut, x) + r;
}

/* Does it reach into no wall and not into the bed? */
static bool is_clear(const struct cut *cut, const struct granule *granule)
{
    const float r = cut->params->radius_m * (1 - SLACK);
    float spheres[GRANULE_SPHERES][3];

    spheres_of(granule, cut->params->radius_m, spheres);
    for (int j = 0; j < GRANULE_SPHERES; j++) {
        const float *x = spheres[j];
        const float e = 0.1f * r;
        float h, hx, hy, normal_z;

        if (x[0] < r || x[1] < r || x[0] > cut->size_m[0] - r || x[1] > cut->size_m[1] - r)
            return false;
        h = bed_at(cut, x);
        if (x[2] - h < r)
            return false;
        if (x[2] - h > 4 * r)
            continue;
        hx = (bed_at(cut, (const float[3]){x[0] + e, x[1], 0}) -
              bed_at(cut, (const float[3]){x[0] - e, x[1], 0})) /
             (2 * e);
        hy = (bed_at(cut, (const float[3]){x[0], x[1] + e, 0}) -
              bed_at(cut, (const float[3]){x[0], x[1] - e, 0})) /
             (2 * e);
        normal_z = 1 / sqrtf(1 + hx * hx + hy * hy);
        if ((x[2] - h) * normal_z < r)
            return false;
    }
    return true;
}

static uint32_t keep_clear(const struct cut *cut, struct granule *granules, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (is_clear(cut, &granules[i]))
            granules[kept++] = granules[i];
    return kept;
}

/* ---- the top layer --------------------------------------------------------------------------- */

/* Granules near the surface in columns of one diameter, as lists. */
struct columns {
    uint32_t cols, rows;
    float side_m;
    uint32_t *head, *next; /* UINT32_MAX ends a list */
};

static uint32_t column_of(const struct columns *columns, const float x[3], int dc, int dr)
{
    const int64_t c = (int64_t)(x[0] / columns->side_m) + dc;
    const int64_t r = (int64_t)(x[1] / columns->side_m) + dr;

    if (c < 0 || r < 0 || c >= columns->cols || r >= columns->rows)
        return UINT32_MAX;
    return (uint32_t)r * columns->cols + (uint32_t)c;
}

static bool columns_make(const struct cut *cut, const struct granule *granules, uint32_t count,
                         struct columns *out)
{
    const float side_m = cut->params->diameter_m;

    *out = (struct columns){.side_m = side_m,
                            .cols = (uint32_t)(cut->size_m[0] / side_m) + 1,
                            .rows = (uint32_t)(cut->size_m[1] / side_m) + 1};
    out->head = malloc((size_t)out->cols * out->rows * sizeof *out->head);
    out->next = malloc(((size_t)count + 1) * sizeof *out->next);
    if (!out->head || !out->next) {
        free(out->head);
        free(out->next);
        return false;
    }
    memset(out->head, 0xff, (size_t)out->cols * out->rows * sizeof *out->head);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t column = column_of(out, granules[i].x, 0, 0);

        CHECK(column != UINT32_MAX);
        out->next[i] = UINT32_MAX;
        if (granules[i].x[2] < surface_at(cut, granules[i].x) + cut->lift_m - 3 * side_m)
            continue;
        out->next[i] = out->head[column];
        out->head[column] = i;
    }
    return true;
}

static bool touches(const struct granule *a, const struct granule *b, float radius_m)
{
    const float least_m = radius_m * (2 - TURN_OVERLAP);
    float own[GRANULE_SPHERES][3], other[GRANULE_SPHERES][3];

    spheres_of(a, radius_m, own);
    spheres_of(b, radius_m, other);
    for (int i = 0; i < GRANULE_SPHERES; i++) {
        for (int j = 0; j < GRANULE_SPHERES; j++) {
            const float dx = own[i][0] - other[j][0], dy = own[i][1] - other[j][1],
                        dz = own[i][2] - other[j][2];

            if (dx * dx + dy * dy + dz * dz < least_m * least_m)
                return true;
        }
    }
    return false;
}

static bool has_room(const struct cut *cut, const struct columns *columns,
                     const struct granule *granules, uint32_t self, const struct granule *turned)
{
    if (!is_clear(cut, turned))
        return false;
    for (int dr = -1; dr <= 1; dr++) {
        for (int dc = -1; dc <= 1; dc++) {
            const uint32_t column = column_of(columns, turned->x, dc, dr);

            if (column == UINT32_MAX)
                continue;
            for (uint32_t i = columns->head[column]; i != UINT32_MAX; i = columns->next[i])
                if (i != self && touches(turned, &granules[i], cut->params->radius_m))
                    return false;
        }
    }
    return true;
}

static enum err_code turn_top(const struct cut *cut, struct granule *granules, uint32_t count,
                              uint64_t *random, struct err *err)
{
    const float top_m = TOP_DIAMETERS * cut->params->diameter_m;
    struct columns columns;

    if (!columns_make(cut, granules, count, &columns))
        return err_set(err, ERR_NO_MEMORY, "no memory for the surface of %u granules", count);
    for (uint32_t i = 0; i < count; i++) {
        struct granule turned = granules[i];

        if (granules[i].x[2] < surface_at(cut, granules[i].x) + cut->lift_m - top_m)
            continue;
        for (int n = 0; n < TURNS; n++) {
            random_turn(random, turned.q);
            if (!has_room(cut, &columns, granules, i, &turned))
                continue;
            granules[i] = turned;
            break;
        }
    }
    free(columns.head);
    free(columns.next);
    return ERR_OK;
}

/* ---- packed and stacked ---------------------------------------------------------------------- */

static enum err_code too_many(uint32_t count, uint32_t granules_max, struct err *err)
{
    err_limit(err, ERR_TOO_LARGE, granules_max, count,
              "the patch takes %u granules, a patch of this scale has room for %u", count,
              granules_max);
    return err_at(err, "/size");
}

static enum err_code no_granules(uint32_t count, struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory for %u granules", count);
}

/* Cuts into ground->granules, which are freed first. */
static enum err_code cut_packed(struct cut *cut, const float shift[3], uint32_t granules_max,
                                struct convert_ground *ground, struct err *err)
{
    const struct packing *packing = packing_dense();
    const float r = cut->params->radius_m;
    const float z_to = (float)(cut->place->peak_m - cut->place->z_m) + cut->lift_m;
    /* Those that reach into walls and bed are counted here and left out below. */
    const uint32_t most = 4 * granules_max + 1024; /* thin ground is cut 2.4 times as high */
    const uint32_t count =
        packing_cut(packing, r, cut->size_m, 0, z_to, shift, is_ground, cut, NULL, 0);

    free(ground->granules);
    ground->granules = NULL;
    if (count > most)
        return too_many(count, granules_max, err);
    ground->granules = malloc(((size_t)count + 1) * sizeof *ground->granules);
    if (!ground->granules)
        return no_granules(count, err);
    packing_cut(packing, r, cut->size_m, 0, z_to, shift, is_ground, cut, ground->granules, count);
    ground->count = keep_clear(cut, ground->granules, count);
    return ERR_OK;
}

/* How far a granule is above the ground, and which it is. */
struct level {
    float above_m;
    uint32_t index;
};

static int compare_levels(const void *a, const void *b)
{
    const struct level *x = a, *y = b;

    if (x->above_m != y->above_m)
        return x->above_m < y->above_m ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Keeps the `wanted` granules that lie lowest under the ground, in their order. */
static enum err_code keep_lowest(struct cut *cut, uint32_t wanted, struct convert_ground *ground,
                                 struct err *err)
{
    struct level *levels;
    struct level last;
    uint32_t kept = 0;

    if (wanted == 0 || ground->count <= wanted)
        return ERR_OK;
    levels = malloc(ground->count * sizeof *levels);
    if (!levels)
        return no_granules(ground->count, err);
    for (uint32_t i = 0; i < ground->count; i++)
        levels[i] =
            (struct level){ground->granules[i].x[2] - surface_at(cut, ground->granules[i].x), i};
    qsort(levels, ground->count, sizeof *levels, compare_levels);
    last = levels[wanted - 1];
    free(levels);
    for (uint32_t i = 0; i < ground->count; i++) {
        const struct level own = {ground->granules[i].x[2] - surface_at(cut, ground->granules[i].x),
                                  i};

        if (own.index == last.index || compare_levels(&own, &last) < 0)
            ground->granules[kept++] = ground->granules[i];
    }
    CHECK(kept == wanted);
    ground->count = kept;
    cut->lift_m = last.above_m;
    return ERR_OK;
}

/*
 * The packing has no room at walls and bed, and sinks into what is_clear has left out there. So it
 * is cut higher than the ground, and of that as many granules are taken as the settled ground has,
 * from below. (A cut at some height does not do: the packing has layers, and by how they lie one
 * more or less is cut, half a granule of height.)
 */
static enum err_code fill_packed(struct cut *cut, uint64_t *random, uint32_t granules_max,
                                 struct convert_ground *ground, struct err *err)
{
    const float r = cut->params->radius_m, period_m = packing_dense()->period * r;
    const float shift[3] = {(float)random_unit(random) * period_m,
                            (float)random_unit(random) * period_m,
                            (float)random_unit(random) * period_m};
    const uint32_t wanted = (uint32_t)convert_granules(cut->place, cut->params, CONVERT_PACKED);

    /* Thin ground loses more at its edges. */
    for (float lift = LIFT_DIAMETERS; lift <= LIFT_MOST; lift += 0.5f) {
        cut->lift_m = lift * cut->params->diameter_m;
        if (cut_packed(cut, shift, granules_max, ground, err))
            return err->code;
        if (ground->count >= wanted)
            break;
    }
    if (keep_lowest(cut, wanted, ground, err))
        return err->code;
    return turn_top(cut, ground->granules, ground->count, random, err);
}

static enum err_code fill_stacked(const struct cut *cut, uint64_t *random,
                                  struct convert_ground *ground, struct err *err)
{
    const float side_m = cut->params->diameter_m;
    const uint32_t cols = (uint32_t)(cut->size_m[0] / side_m),
                   rows = (uint32_t)(cut->size_m[1] / side_m);
    const uint32_t high = (uint32_t)(cut->place->depth_m / side_m);
    const uint64_t count = (uint64_t)cols * rows * high;

    ground->granules = calloc(count + 1, sizeof *ground->granules);
    if (!ground->granules)
        return no_granules((uint32_t)count, err);
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t column = (uint32_t)(i / high), level = (uint32_t)(i % high);
        struct granule granule = {
            .x = {((float)(column % cols) + 0.5f) * cut->size_m[0] / (float)cols,
                  ((float)(column / cols) + 0.5f) * cut->size_m[1] / (float)rows, 0, 0},
            .q = {0, 0, 0, 1}};

        granule.x[2] = bed_at(cut, granule.x) + ((float)level + 0.5f) * side_m;
        if (level + 1 == high)
            random_turn(random, granule.q);
        if (is_clear(cut, &granule))
            ground->granules[ground->count++] = granule;
    }
    return ERR_OK;
}

/* ---- the bed --------------------------------------------------------------------------------- */

/* Mean ground around a point, over BED_REACH diameters each way. */
static float smooth_at(const struct cut *cut, float x, float y)
{
    const float step_m = cut->params->diameter_m / 2;
    double sum = 0;

    for (int r = -BED_REACH_STEPS; r <= BED_REACH_STEPS; r++)
        for (int c = -BED_REACH_STEPS; c <= BED_REACH_STEPS; c++)
            sum +=
                surface_at(cut, (const float[3]){x + (float)c * step_m, y + (float)r * step_m, 0});
    return (float)(sum / ((2 * BED_REACH_STEPS + 1) * (2 * BED_REACH_STEPS + 1)));
}

/*
 * The bed follows the ground without its edges: in a crease granules never come to rest, because
 * the plane that holds them up is now the one, now the other.
 */
static enum err_code bed_make(struct cut *cut, uint32_t bed_max, struct convert_ground *ground,
                              struct err *err)
{
    const float step_m = cut->params->diameter_m / 2;
    const double wanted[2] = {ceil(cut->size_m[0] / step_m) + 1, ceil(cut->size_m[1] / step_m) + 1};
    const double factor =
        wanted[0] * wanted[1] > bed_max ? sqrt(bed_max / (wanted[0] * wanted[1])) : 1;
    const uint32_t cols = (uint32_t)fmax(2, floor(wanted[0] * factor)),
                   rows = (uint32_t)fmax(2, floor(wanted[1] * factor));
    struct granular_bed *bed = &ground->begin.bed;

    *bed = (struct granular_bed){.cols = cols,
                                 .rows = rows,
                                 .dx = cut->size_m[0] / (float)(cols - 1),
                                 .dy = cut->size_m[1] / (float)(rows - 1)};
    ground->bed_m = malloc((size_t)cols * rows * sizeof *ground->bed_m);
    if (!ground->bed_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a bed of %u x %u", cols, rows);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            ground->bed_m[(size_t)r * cols + c] =
                smooth_at(cut, (float)c * bed->dx, (float)r * bed->dy) - (float)cut->place->depth_m;
    ground->begin.heights_m = cut->bed_m = ground->bed_m;
    cut->bed = *bed;
    return ERR_OK;
}

/* Whole granules along a length, one diameter each. */
static double stacked_along(double length_m, double diameter_m)
{
    return floor(length_m / diameter_m);
}

static double settled_m3(const struct granular_params *params)
{
    return SETTLED_R3 * pow((double)params->radius_m, 3);
}

double convert_granules(const struct convert_place *place, const struct granular_params *params,
                        enum convert_fill fill)
{
    const double d_m = (double)params->diameter_m;
    const double area_m2 = place->size_m[0] * place->size_m[1];

    if (fill == CONVERT_STACKED)
        return stacked_along(place->size_m[0], d_m) * stacked_along(place->size_m[1], d_m) *
               stacked_along(place->depth_m, d_m);
    return floor(area_m2 * place->depth_m / settled_m3(params));
}

/*
 * The needed part of the pool, and the number of tests of the cut on steep ground, bounded at any
 * depth of the patch.
 */
enum err_code convert_check(const struct convert_place *place, const struct granular_params *params,
                            enum convert_fill fill, uint32_t granules_max, struct err *err)
{
    const double area_m2 = place->size_m[0] * place->size_m[1];
    const double relief_m = place->peak_m - place->lowest_m;
    const double count = convert_granules(place, params, fill);
    const double relief_max_m =
        LOOKED_AT_MOST * (double)granules_max * settled_m3(params) / area_m2 - place->depth_m;

    if (count > (double)granules_max)
        return too_many(count < UINT32_MAX ? (uint32_t)count : UINT32_MAX, granules_max, err);
    if (!(relief_m <= relief_max_m)) {
        err_limit(err, ERR_UNPROCESSABLE, relief_max_m, relief_m,
                  "the ground of the patch rises by %g m, the most for this size and scale is %g m",
                  relief_m, relief_max_m);
        return err_at(err, "/size");
    }
    return ERR_OK;
}

enum err_code convert_down(const struct heightfield *field, const struct convert_place *place,
                           const struct granular_params *params, enum convert_fill fill,
                           uint64_t seed, uint32_t granules_max, uint32_t bed_max,
                           struct convert_ground *out, struct err *err)
{
    struct cut cut = {.field = field,
                      .place = place,
                      .params = params,
                      .size_m = {(float)place->size_m[0], (float)place->size_m[1]}};
    struct convert_ground ground = {.granules = NULL};
    uint64_t random = seed;

    if (convert_check(place, params, fill, granules_max, err))
        return err->code;
    ground.begin.size_m[0] = cut.size_m[0];
    ground.begin.size_m[1] = cut.size_m[1];
    ground.begin.height_m =
        (float)(place->peak_m - place->z_m) + ROOM_DIAMETERS * params->diameter_m;
    err->code = ERR_OK;
    if (bed_make(&cut, bed_max, &ground, err) == ERR_OK) {
        if (fill == CONVERT_STACKED)
            fill_stacked(&cut, &random, &ground, err);
        else
            fill_packed(&cut, &random, granules_max, &ground, err);
    }
    if (err->code == ERR_OK && ground.count > granules_max)
        too_many(ground.count, granules_max, err);
    if (err->code == ERR_OK && !packing_order(ground.granules, ground.count, params->diameter_m))
        no_granules(ground.count, err);
    if (err->code != ERR_OK) {
        convert_ground_free(&ground);
        return err->code;
    }
    *out = ground;
    return ERR_OK;
}

void convert_ground_free(struct convert_ground *ground)
{
    free(ground->bed_m);
    free(ground->granules);
    *ground = (struct convert_ground){.granules = NULL};
}
