/*
 * Ground to granules and back: places, cuts, differences with hysteresis, and that nothing changes
 * where nothing has moved.
 */
#include "sand/convert/convert.h"
#include "sand/material.h"
#include "sand/engine_c/solver.h"

#include "support/long_form.h"
#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SIDE = 24, GRANULES_MAX = 4096 };

static const float diameter_m = 4.449490f * 0.1f;

/* A field of SIDE × SIDE samples. */
static struct heightfield *field_of(double spacing_m, float (*height)(uint32_t c, uint32_t r))
{
    const struct heightfield_spec spec = {SIDE, SIDE, 100, 200, spacing_m, spacing_m, 0, 0};
    float samples[SIDE * SIDE];
    struct heightfield *field;
    struct err err;

    for (uint32_t r = 0; r < SIDE; r++)
        for (uint32_t c = 0; c < SIDE; c++)
            samples[r * SIDE + c] = height(c, r);
    field = heightfield_create(&spec, samples, &err);
    if (!field)
        fail_msg("heightfield_create: %s", err.msg);
    return field;
}

static float flat(uint32_t c, uint32_t r)
{
    (void)c;
    (void)r;
    return 5;
}

/* Rolling, with -0 where it crosses zero, and one hole in a corner. */
static float rolling(uint32_t c, uint32_t r)
{
    if (c == SIDE - 2 && r == SIDE - 2)
        return NAN;
    return c % 3 == 0 ? -0.0f : 0.2f * sinf((float)c) + 0.05f * (float)r;
}

/* 45 degrees, 3 m high, about (110, 208). */
static float cone(uint32_t c, uint32_t r)
{
    return fmaxf(0, 3 - hypotf((float)c - 10, (float)r - 8));
}

/* ---- places ---------------------------------------------------------------------------------- */

static void places_are_whole_cells_or_refused(void **state)
{
    static const struct {
        double x, y, w, h, depth;
        enum err_code code;
        const char *word;
    } cases[] = {
        {108, 208, 6, 5, 2, ERR_OK, ""},
        {108.3, 207.8, 6.2, 4.9, 1, ERR_OK, ""},
        {101, 208, 6, 6, 2, ERR_UNPROCESSABLE, "reaches"},
        {120, 208, 8, 6, 2, ERR_UNPROCESSABLE, "reaches"},
        {108, 208, 1e9, 6, 2, ERR_UNPROCESSABLE, "reaches"},
        {108, 208, 1, 3, 2, ERR_UNPROCESSABLE, "2 m are the least"},
        {108, 208, 1, 20, 2, ERR_UNPROCESSABLE, "two cells"},
        {121, 221, 4, 4, 2, ERR_UNPROCESSABLE, "hole"},
        {108, 208, 6, 6, 0.5, ERR_UNPROCESSABLE, "two of them"},
        {108, 208, 6, 6, 0, ERR_BAD_INPUT, "depth"},
        {108, 208, 0, 6, 2, ERR_BAD_INPUT, "size x"},
        {108, 208, 6, -3, 2, ERR_BAD_INPUT, "size y"},
        {NAN, 208, 6, 6, 2, ERR_BAD_INPUT, "centre"},
        {108, 208, INFINITY, 6, 2, ERR_BAD_INPUT, "size x"},
    };
    struct heightfield *field = field_of(1, rolling);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {.code = ERR_OK};
        struct convert_place place;
        const enum err_code code = convert_place_find(
            field, (struct vec2){cases[i].x, cases[i].y}, (const double[2]){cases[i].w, cases[i].h},
            cases[i].depth, diameter_m, 100000, &place, &err);

        if (code != cases[i].code || (code != ERR_OK && !strstr(err.msg, cases[i].word)))
            fail_msg("case %zu: code %d, message \"%s\"", i, code, err.msg);
        if (code != ERR_OK)
            continue;
        assert_int_equal(place.samples.column, 5);
        assert_int_equal(place.samples.cols, 7);
        assert_int_equal(place.samples.rows, 6);
        assert_true(place.low.x == 105 && place.size_m[0] == 6 && place.size_m[1] == 5);
        assert_true(place.z_m == place.lowest_m - cases[i].depth);
    }
    heightfield_unref(field);
}

static float cliff(uint32_t c, uint32_t r)
{
    (void)r;
    return c < 8 ? 0 : 1e30f;
}

/* Nothing is tiled, cut or allocated before it is counted. */
static void absurd_ground_is_refused_at_once(void **state)
{
    struct heightfield *field = field_of(1, cliff), *wide = field_of(1e9, flat);
    struct convert_place place;
    struct convert_ground ground;
    struct convert_grid grid;
    struct granular_params params;
    struct err err = {.code = ERR_OK};

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    assert_int_equal(convert_place_find(field, (struct vec2){108, 208}, (const double[2]){6, 6}, 2,
                                        diameter_m, 100000, &place, &err),
                     ERR_OK);
    assert_int_equal(
        convert_down(field, &place, &params, CONVERT_PACKED, 1, GRANULES_MAX, 65536, &ground, &err),
        ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "rises by"));
    assert_int_equal(convert_place_find(wide, (struct vec2){100 + 8e9, 200 + 8e9},
                                        (const double[2]){6e9, 6e9}, 2, diameter_m, 100000, &place,
                                        &err),
                     ERR_OK);
    assert_int_equal(convert_grid_make(&place, diameter_m, 1 << 20, &grid, &err), ERR_TOO_LARGE);
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    assert_int_equal(
        convert_down(wide, &place, &params, CONVERT_PACKED, 1, GRANULES_MAX, 65536, &ground, &err),
        ERR_TOO_LARGE);
    assert_int_equal(
        convert_down(wide, &place, &params, CONVERT_STACKED, 1, GRANULES_MAX, 65536, &ground, &err),
        ERR_TOO_LARGE);
    heightfield_unref(field);
    heightfield_unref(wide);
}

/* Columns take a third of what the packing does, and are counted as they are. */
static void columns_are_counted_as_columns(void **state)
{
    struct heightfield *field = field_of(1, flat);
    struct convert_place place;
    struct convert_ground ground;
    struct granular_params params;
    struct err err = {.code = ERR_OK};

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    assert_int_equal(convert_place_find(field, (struct vec2){110, 208}, (const double[2]){6, 6}, 2,
                                        diameter_m, 100000, &place, &err),
                     ERR_OK);
    assert_int_equal(
        convert_down(field, &place, &params, CONVERT_STACKED, 1, 13 * 13 * 4, 65536, &ground, &err),
        ERR_OK);
    assert_in_range(ground.count, 13 * 13 * 3, 13 * 13 * 4);
    convert_ground_free(&ground);
    assert_int_equal(
        convert_down(field, &place, &params, CONVERT_STACKED, 1, 500, 65536, &ground, &err),
        ERR_TOO_LARGE);
    assert_float_equal(err.got, 13 * 13 * 4, 0);
    assert_int_equal(
        convert_down(field, &place, &params, CONVERT_PACKED, 1, 13 * 13 * 4, 65536, &ground, &err),
        ERR_TOO_LARGE);
    heightfield_unref(field);
}

/* ---- down ------------------------------------------------------------------------------------ */

struct patch_of {
    struct heightfield *field;
    struct granular_params params;
    struct convert_place place;
    struct convert_grid grid;
};

static struct patch_of patch_over(struct heightfield *field, struct vec2 center,
                                  enum granular_scale scale, double side_m, double depth_m)
{
    struct patch_of p = {.field = field};
    struct err err = {.code = ERR_OK};

    granular_params_make(MATERIAL_SAND, scale_radius_m(scale), &p.params);
    if (convert_place_find(p.field, center, (const double[2]){side_m, side_m}, depth_m,
                           p.params.diameter_m, 100000, &p.place, &err) ||
        convert_grid_make(&p.place, p.params.diameter_m, 1 << 20, &p.grid, &err))
        fail_msg("%s", err.msg);
    return p;
}

static struct patch_of patch_make(enum granular_scale scale, double side_m, double depth_m,
                                  float (*height)(uint32_t c, uint32_t r))
{
    return patch_over(field_of(1, height), (struct vec2){110, 208}, scale, side_m, depth_m);
}

static struct convert_ground cut(const struct patch_of *p, enum convert_fill fill, uint64_t seed)
{
    struct err err = {.code = ERR_OK};
    struct convert_ground ground;

    if (convert_down(p->field, &p->place, &p->params, fill, seed, GRANULES_MAX, 65536, &ground,
                     &err))
        fail_msg("convert_down: %s", err.msg);
    ground.begin.gravity[2] = -9.81f;
    return ground;
}

static void the_same_seed_cuts_the_same_granules(void **state)
{
    const struct patch_of p = patch_make(SCALE_MEDIUM, 6, 2, rolling);
    struct convert_ground a = cut(&p, CONVERT_PACKED, 7), b = cut(&p, CONVERT_PACKED, 7),
                          c = cut(&p, CONVERT_PACKED, 8);

    (void)state;
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.granules, b.granules, a.count * sizeof *a.granules);
    assert_true(c.count != a.count ||
                memcmp(a.granules, c.granules, a.count * sizeof *a.granules) != 0);
    convert_ground_free(&a);
    convert_ground_free(&b);
    convert_ground_free(&c);
    heightfield_unref(p.field);
}

static void granules_lie_between_walls_bed_and_surface(void **state)
{
    const struct patch_of p = patch_make(SCALE_MEDIUM, 6, 2, rolling);

    (void)state;
    for (int fill = CONVERT_PACKED; fill <= CONVERT_STACKED; fill++) {
        struct convert_ground ground = cut(&p, (enum convert_fill)fill, 3);
        const double whole = 6 * 6 * 2 / (29.8 * 1e-3);

        /* Columns of granules a diameter apart hold less than half as many. */
        assert_true(ground.count > (fill == CONVERT_PACKED ? 0.9 : 0.2) * whole);
        assert_true(ground.count < 1.1 * whole);
        for (uint32_t i = 0; i < ground.count; i++) {
            const float *x = ground.granules[i].x, *q = ground.granules[i].q;
            struct ground_point under;
            double z;

            heightfield_height(p.field, (struct vec2){p.place.low.x + x[0], p.place.low.y + x[1]},
                               INTERPOLATION_BILINEAR, &under);
            z = x[2] + p.place.z_m - under.height_m;
            if (!(x[0] >= 0.1f && x[1] >= 0.1f && x[0] <= 5.9f && x[1] <= 5.9f) ||
                !(z > -2.3 && z < 2 * diameter_m))
                fail_msg("fill %d: granule %u at %g %g, %g m from the surface", fill, i, x[0], x[1],
                         z);
            assert_true(fabsf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1) < 1e-4f);
        }
        convert_ground_free(&ground);
    }
    heightfield_unref(p.field);
}

/* A patch that is not square has a bed of square cells, with room for all of it and with less. */
static void beds_of_long_patches_have_square_cells(void **state)
{
    const struct patch_of p = patch_make(SCALE_MEDIUM, 6, 2, rolling);
    const uint32_t rooms[] = {65536, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        struct convert_place place;
        struct convert_ground ground;
        struct err err = {.code = ERR_OK};

        assert_int_equal(convert_place_find(p.field, (struct vec2){110, 208},
                                            (const double[2]){12, 4}, 2, p.params.diameter_m,
                                            100000, &place, &err),
                         ERR_OK);
        assert_int_equal(convert_down(p.field, &place, &p.params, CONVERT_PACKED, 1, GRANULES_MAX,
                                      rooms[i], &ground, &err),
                         ERR_OK);
        const struct granular_bed *bed = &ground.begin.bed;

        assert_true(bed->cols * bed->rows <= rooms[i] && bed->cols * bed->rows > 0.8 * rooms[1]);
        assert_float_equal(bed->dx * (float)(bed->cols - 1), 12, 1e-4);
        assert_float_equal(bed->dy * (float)(bed->rows - 1), 4, 1e-4);
        assert_float_equal(bed->dx / bed->dy, 1, 0.1);
        convert_ground_free(&ground);
    }
    heightfield_unref(p.field);
}

/* Where one granule more is refused, before anything is cut, the place has room for all of them. */
static void granules_are_counted_exactly(void **state)
{
    static const double sides[] = {2, 3, 6, 12};

    (void)state;
    for (int scale = SCALE_FINE; scale <= SCALE_COARSE; scale++) {
        for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
            const double depth_m = 2.2 * (double)scale_radius_m((enum granular_scale)scale) * 4.45;
            struct patch_of p;
            struct convert_ground ground;
            struct err err = {.code = ERR_OK};
            uint32_t most;

            if (scale == SCALE_COARSE && sides[i] < 4)
                continue; /* four of them are wider */
            p = patch_make((enum granular_scale)scale, sides[i], depth_m, rolling);
            most = (uint32_t)convert_granules(&p.place, &p.params, CONVERT_PACKED);
            assert_int_equal(convert_check(&p.place, &p.params, CONVERT_PACKED, most - 1, &err),
                             ERR_TOO_LARGE);
            assert_true(err.limit == most - 1 && err.got == most);
            if (convert_down(p.field, &p.place, &p.params, CONVERT_PACKED, 7, most, 65536, &ground,
                             &err))
                fail_msg("scale %d, %g m, room for %u: %s", scale, sides[i], most, err.msg);
            assert_in_range(ground.count, most / 2, most);
            convert_ground_free(&ground);
            heightfield_unref(p.field);
        }
    }
}

static void too_many_granules_are_told(void **state)
{
    const struct patch_of p = patch_make(SCALE_FINE, 12, 3, flat);
    struct err err = {.code = ERR_OK};
    struct convert_ground ground;

    (void)state;
    assert_int_equal(convert_down(p.field, &p.place, &p.params, CONVERT_PACKED, 1, GRANULES_MAX,
                                  65536, &ground, &err),
                     ERR_TOO_LARGE);
    assert_true(err.has_limit && err.limit == GRANULES_MAX && err.got > GRANULES_MAX);
    heightfield_unref(p.field);
}

/* ---- up, by hand ----------------------------------------------------------------------------- */

struct maps {
    float *before, *after;
    size_t count;
};

static struct maps maps_make(const struct convert_grid *grid, struct random *random)
{
    struct maps m = {.count = (size_t)grid->depth.cols * grid->depth.rows};

    m.before = malloc(m.count * sizeof(float));
    m.after = malloc(m.count * sizeof(float));
    for (size_t i = 0; i < m.count; i++)
        m.before[i] = m.after[i] = (float)random_in(random, 1.8, 2.2);
    return m;
}

static void maps_free(struct maps *m)
{
    free(m->before);
    free(m->after);
}

static struct convert_change up(const struct patch_of *p, const struct maps *m,
                                enum convert_mode mode)
{
    struct err err = {.code = ERR_OK};
    struct convert_change change;

    if (convert_up(p->field, &p->place, &p->grid, p->params.diameter_m, m->before, m->after, mode,
                   &change, &err))
        fail_msg("convert_up: %s", err.msg);
    return change;
}

static void what_trembles_is_left_out(void **state)
{
    const struct patch_of p = patch_make(SCALE_MEDIUM, 12, 2, flat);
    struct random random = {20261121};
    struct maps m = maps_make(&p.grid, &random);
    struct convert_change change;

    (void)state;
    for (size_t i = 0; i < m.count; i++)
        m.after[i] += (float)random_in(&random, -0.109, 0.109) * diameter_m;
    change = up(&p, &m, CONVERT_DIFFERENCE);
    assert_int_equal(change.rect.cols, 0);
    assert_null(change.heights_m);
    assert_true(change.ledger.moved_m3 == 0 && change.ledger.lost_m3 == 0);
    for (size_t i = 0; i < m.count; i++)
        assert_true(change.next_m[i] == m.before[i]); /* it may add up */
    convert_change_free(&change);
    maps_free(&m);
    heightfield_unref(p.field);
}

/* One texel far above the high threshold, a tail above the low one, and one that is not joined. */
static void what_is_joined_to_what_moved_is_kept(void **state)
{
    const struct patch_of p = patch_make(SCALE_MEDIUM, 12, 2, flat);
    struct random random = {20261121};
    struct maps m = maps_make(&p.grid, &random);
    const uint32_t cols = p.grid.depth.cols, k = p.grid.per_sample[0];
    const uint32_t at = cols * (5 * k) + 5 * k;
    const double texel_m2 = p.grid.depth.dx * p.grid.depth.dy;
    struct convert_change change;
    double sum = 0;

    (void)state;
    assert_int_equal(k, 5);
    m.after[at] -= 0.5f;                          /* high */
    m.after[at + cols + 1] += 0.05f * diameter_m; /* low, joined by a corner */
    m.after[at + 2 * cols + 2] += 0.05f * diameter_m;
    m.after[at + 4 * cols + 4] += 0.05f * diameter_m; /* not joined */
    change = up(&p, &m, CONVERT_DIFFERENCE);
    for (size_t i = 0; i < (size_t)change.rect.cols * change.rect.rows; i++)
        sum += change.heights_m[i];
    /* The spacing is 1 m, so heights are volumes. */
    /* A half of it is given back, at most. */
    assert_true(fabs(sum - 0.5 * (2 * 0.05 * diameter_m - 0.5) * texel_m2) < 1e-5);
    assert_true(fabs(change.ledger.compacted_m3 - (0.5 - 2 * 0.05 * diameter_m) * texel_m2) < 1e-5);
    assert_int_equal(change.rect.cols, 1);
    assert_int_equal(change.rect.column, p.place.samples.column + 6);
    assert_true(fabs(change.ledger.lost_m3 + sum) < 1e-9);
    convert_change_free(&change);
    maps_free(&m);
    heightfield_unref(p.field);
}

/*
 * Down to two cells a side: a digging and a heaping somewhere inside the rim, and what is written
 * is what the ledger says of it, no sample of the edge among it; and nothing, where nothing moved.
 */
static void small_patches_keep_their_ledger(void **state)
{
    struct random random = {20261122};

    (void)state;
    for (uint32_t side = 2; side <= 4; side++) {
        const struct patch_of p = patch_make(SCALE_MEDIUM, side, 2, rolling);
        const struct sample_rect *s = &p.place.samples;
        struct maps m = maps_make(&p.grid, &random);
        const double texel_m2 = (double)p.grid.depth.dx * (double)p.grid.depth.dy;
        struct convert_change change = up(&p, &m, CONVERT_DIFFERENCE);
        double moved_m3 = 0, sum_m3 = 0;

        assert_int_equal(s->cols, side + 1);
        assert_int_equal(change.rect.cols, 0);
        convert_change_free(&change);
        for (size_t i = 0; i < m.count; i++) {
            const float by_m = (float)random_in(&random, 0.1, 0.3);

            m.after[i] += i % 3 == 0 ? by_m : -by_m;
            moved_m3 += ((double)m.after[i] - (double)m.before[i]) * texel_m2;
        }
        change = up(&p, &m, CONVERT_DIFFERENCE);
        assert_true(change.rect.column > s->column && change.rect.row > s->row &&
                    change.rect.column + change.rect.cols < s->column + s->cols &&
                    change.rect.row + change.rect.rows < s->row + s->rows);
        for (uint32_t i = 0; i < change.rect.cols * change.rect.rows; i++)
            sum_m3 += (double)change.heights_m[i];
        /* every weight of so small a rim is 1, and a cell is a square metre */
        assert_float_equal(change.ledger.compacted_m3, -moved_m3, 1e-5);
        assert_float_equal(change.ledger.lost_m3, -sum_m3, 1e-6);
        assert_true(change.ledger.lost_m3 >= -1e-6 &&
                    change.ledger.lost_m3 <= change.ledger.compacted_m3 + 1e-6);
        convert_change_free(&change);
        maps_free(&m);
        heightfield_unref(p.field);
    }
}

static void the_edge_stays_and_volume_is_kept_inside(void **state)
{
    const struct patch_of p = patch_make(SCALE_MEDIUM, 12, 2, rolling);
    struct random random = {20261121};
    struct maps m = maps_make(&p.grid, &random);
    const struct sample_rect *s = &p.place.samples;
    struct convert_change change;

    (void)state;
    for (size_t i = 0; i < m.count; i++)
        m.after[i] += 0.25f; /* everything rises */
    change = up(&p, &m, CONVERT_DIFFERENCE);
    assert_true(change.rect.column == s->column + 1 && change.rect.cols == s->cols - 2);
    for (uint32_t r = 0; r < change.rect.rows; r++) {
        for (uint32_t c = 0; c < change.rect.cols; c++) {
            const float height_m = change.heights_m[r * change.rect.cols + c];

            /* A half goes to what has been gained from nowhere, most from the middle. */
            assert_true(height_m > 0 && height_m <= 0.25f);
            if (c >= 2 && r >= 2 && c + 2 < change.rect.cols && r + 2 < change.rect.rows)
                assert_true(fabsf(height_m - 0.125f) < 0.04f);
        }
    }
    assert_true(fabs(change.ledger.lost_m3 - change.ledger.compacted_m3 / 2) < 1e-5);
    assert_true(fabs(change.ledger.volume_after_m3 - change.ledger.volume_before_m3 -
                     0.25 * 11 * 11) < 1e-3);
    convert_change_free(&change);
    m.after[3] = NAN;
    assert_int_equal(convert_up(p.field, &p.place, &p.grid, p.params.diameter_m, m.before, m.after,
                                CONVERT_DIFFERENCE, &change, &(struct err){.code = ERR_OK}),
                     ERR_INTERNAL);
    maps_free(&m);
    heightfield_unref(p.field);
}

/*
 * A crater of a metre with a bump on every texel: what is written keeps its depth and its volume,
 * and loses the bumps; compaction rises near it and not at the far end of what trembled along.
 */
static void what_is_written_is_smooth_and_local(void **state)
{
    const struct patch_of p =
        patch_over(field_of(0.25, flat), (struct vec2){102.75, 202.75}, SCALE_MEDIUM, 5, 2);
    const uint32_t cols = p.grid.depth.cols, rows = p.grid.depth.rows;
    const double middle[2] = {cols / 2.0, rows / 2.0};
    const struct sample_rect *s = &p.place.samples;
    struct maps m = maps_make(&p.grid, &(struct random){20261127});
    struct convert_change change;
    double sum = 0, rough[2] = {0, 0}, far_m = 0, dug_m = 0;

    (void)state;
    for (uint32_t i = 0; i < m.count; i++) {
        const double x = (i % cols - middle[0]) * p.grid.depth.dx,
                     y = (i / cols - middle[1]) * p.grid.depth.dy, r = hypot(x, y);
        const double bump_m = ((i % cols / 2 + i / cols / 2) % 2 ? 0.1 : -0.1) * diameter_m;

        m.after[i] = m.before[i] + (float)(r < 1 ? bump_m - 0.5 * (1 - r * r) : 0.05 * bump_m);
        if (r >= 1)
            m.after[i] += (float)(0.03 * diameter_m); /* joined, and hardly moved */
    }
    change = up(&p, &m, CONVERT_DIFFERENCE);
    for (uint32_t r = 0; r < change.rect.rows; r++) {
        for (uint32_t c = 0; c < change.rect.cols; c++) {
            const uint32_t i = r * change.rect.cols + c;
            const double x = (change.rect.column + c - s->column) * p.place.spacing_m[0] -
                             p.place.size_m[0] / 2,
                         y = (change.rect.row + r - s->row) * p.place.spacing_m[1] -
                             p.place.size_m[1] / 2;

            sum += (double)change.heights_m[i] * p.place.spacing_m[0] * p.place.spacing_m[1];
            dug_m = fmin(dug_m, (double)change.heights_m[i]);
            if (hypot(x, y) > 1.6 && hypot(x, y) < 1.9)
                far_m = fmax(far_m, (double)change.heights_m[i]);
            if (hypot(x, y) < 0.7 && c > 0) {
                rough[0] += fabs((double)change.heights_m[i - 1] - 2 * (double)change.heights_m[i] +
                                 (double)change.heights_m[i + 1]);
                rough[1] += 1;
            }
        }
    }
    assert_true(dug_m < -0.35 && dug_m > -0.55);
    assert_true(rough[0] / rough[1] < 0.1); /* 0.18 as it is, 0.06 of the bowl alone */
    assert_true(far_m < 0.03 * diameter_m + 0.05);
    assert_true(fabs(change.ledger.lost_m3 + sum) < 1e-5);
    convert_change_free(&change);
    maps_free(&m);
    heightfield_unref(p.field);
}

/* ---- there and back -------------------------------------------------------------------------- */

static struct sand_engine *engine_make(const struct granular_params *params)
{
    const struct sand_engine_config config = {.params = *params,
                                              .slots = 1,
                                              .granules_max = GRANULES_MAX,
                                              .bodies_max = 1,
                                              .particles_max = 64,
                                              .cells_max = 65536,
                                              .bed_max = 65536,
                                              .depth_max = 1 << 20,
                                              .threads = 1};
    struct err err = {.code = ERR_OK};
    struct sand_engine *engine = solver_create(&config, &err);

    if (!engine)
        fail_msg("solver_create: %s", err.msg);
    return engine;
}

static void step(struct sand_engine *engine, uint32_t frames)
{
    struct err err;

    for (uint32_t i = 0; i < frames; i++)
        assert_int_equal(sand_engine_step(engine, engine->config.params.substeps, 1, &err), ERR_OK);
}

static void look(struct sand_engine *engine, const struct patch_of *p, float *map)
{
    struct err err;

    assert_int_equal(sand_depth_request(engine, 0, &p->grid.depth, &err), ERR_OK);
    assert_true(sand_depth_poll(engine, 0, map));
}

/* Down, to rest, up; the field that comes of it. */
static struct heightfield *convert_once(struct sand_engine *engine, const struct patch_of *p,
                                        uint64_t seed, enum convert_mode mode)
{
    const size_t count = (size_t)p->grid.depth.cols * p->grid.depth.rows;
    struct maps m = {malloc(count * sizeof(float)), malloc(count * sizeof(float)), count};
    struct convert_ground ground = cut(p, CONVERT_PACKED, seed);
    struct convert_change change;
    struct heightfield *next;
    struct edit edit = {.kind = EDIT_ADD};
    struct edit_outcome outcome;
    struct sand_status status;
    struct err err = {.code = ERR_OK};

    assert_int_equal(sand_slot_begin(engine, 0, &ground.begin, &err), ERR_OK);
    assert_int_equal(sand_slot_fill(engine, 0, ground.granules, ground.count, &err), ERR_OK);
    do {
        step(engine, 15);
        sand_status_request(engine, 0);
        assert_true(sand_status_poll(engine, 0, &status));
        assert_true(status.time_s < 20);
    } while (status.asleep < 0.99 * status.granules);
    look(engine, p, m.before);
    assert_int_equal(
        convert_slump(p->field, &p->place, &p->grid, p->params.diameter_m, m.before, &err), ERR_OK);
    step(engine, 30);
    look(engine, p, m.after);
    change = up(p, &m, mode);
    sand_slot_end(engine, 0);
    convert_ground_free(&ground);
    maps_free(&m);
    if (change.rect.cols == 0) {
        convert_change_free(&change);
        return heightfield_ref(p->field);
    }
    edit.rect = change.rect;
    edit.heights_m = change.heights_m;
    assert_int_equal(edit_evaluate(p->field, &edit, 1 << 20, &outcome, &err), ERR_OK);
    next = heightfield_with_samples(p->field, &outcome.rect, outcome.heights_m, &err);
    assert_non_null(next);
    edit_outcome_free(&outcome);
    convert_change_free(&change);
    return next;
}

static void conversions_change_no_bit(void **state)
{
    struct patch_of p = patch_make(SCALE_COARSE, 5, 2, rolling);
    struct sand_engine *engine = engine_make(&p.params);
    float *first = malloc(SIDE * SIDE * sizeof(float)), *last = malloc(SIDE * SIDE * sizeof(float));
    const struct sample_rect all = {0, 0, SIDE, SIDE};

    (void)state;
    heightfield_read_samples(p.field, &all, first);
    for (uint64_t i = 0; i < long_form(20, 5); i++) {
        struct heightfield *next = convert_once(engine, &p, i, CONVERT_DIFFERENCE);

        heightfield_unref(p.field);
        p.field = next;
    }
    heightfield_read_samples(p.field, &all, last);
    assert_memory_equal(first, last, SIDE * SIDE * sizeof(float));
    free(first);
    free(last);
    sand_engine_destroy(engine);
    heightfield_unref(p.field);
}

/* S's way, for comparison: it writes what nobody touched. */
static void overwriting_changes_ground_that_nothing_touched(void **state)
{
    struct patch_of p = patch_make(SCALE_COARSE, 5, 2, rolling);
    struct sand_engine *engine = engine_make(&p.params);
    const struct sample_rect all = {0, 0, SIDE, SIDE};
    float first[SIDE * SIDE], last[SIDE * SIDE];
    struct heightfield *next = convert_once(engine, &p, 1, CONVERT_OVERWRITE);
    double worst = 0;

    (void)state;
    heightfield_read_samples(p.field, &all, first);
    heightfield_read_samples(next, &all, last);
    for (int i = 0; i < SIDE * SIDE; i++)
        if (!isnan(first[i]))
            worst = fmax(worst, fabs((double)first[i] - (double)last[i]));
    assert_true(worst > 0.01 && worst < 1.5);
    heightfield_unref(next);
    sand_engine_destroy(engine);
    heightfield_unref(p.field);
}

/*
 * 45 degrees: what slumped while it settled is written, and flat ground about it keeps its bits. Of
 * medium granules in make test-all.
 */
static void steep_ground_is_written_as_it_settled(void **state)
{
    const enum granular_scale scale = long_form(SCALE_MEDIUM, SCALE_COARSE);
    struct patch_of p = patch_make(scale, 7, 2, cone);
    struct sand_engine *engine = engine_make(&p.params);
    const struct sample_rect all = {0, 0, SIDE, SIDE};
    float first[SIDE * SIDE], last[SIDE * SIDE];
    struct heightfield *next = convert_once(engine, &p, 8, CONVERT_DIFFERENCE);
    double apex_m = 0, net_m3 = 0;

    (void)state;
    heightfield_read_samples(p.field, &all, first);
    heightfield_read_samples(next, &all, last);
    for (int i = 0; i < SIDE * SIDE; i++) {
        if (isnan(first[i]))
            continue;
        apex_m = fmin(apex_m, (double)last[i] - (double)first[i]);
        net_m3 += (double)last[i] - (double)first[i];
    }
    if (!(apex_m < -0.3 && apex_m > -2))
        fail_msg("the apex sank by %g m", apex_m);
    assert_true(fabs(net_m3) < 2); /* of 98 */
    heightfield_unref(next);
    sand_engine_destroy(engine);
    heightfield_unref(p.field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_whole_cells_or_refused),
        cmocka_unit_test(absurd_ground_is_refused_at_once),
        cmocka_unit_test(columns_are_counted_as_columns),
        cmocka_unit_test(the_same_seed_cuts_the_same_granules),
        cmocka_unit_test(granules_lie_between_walls_bed_and_surface),
        cmocka_unit_test(beds_of_long_patches_have_square_cells),
        cmocka_unit_test(granules_are_counted_exactly),
        cmocka_unit_test(too_many_granules_are_told),
        cmocka_unit_test(what_trembles_is_left_out),
        cmocka_unit_test(what_is_joined_to_what_moved_is_kept),
        cmocka_unit_test(what_is_written_is_smooth_and_local),
        cmocka_unit_test(steep_ground_is_written_as_it_settled),
        cmocka_unit_test(the_edge_stays_and_volume_is_kept_inside),
        cmocka_unit_test(small_patches_keep_their_ledger),
        cmocka_unit_test(conversions_change_no_bit),
        cmocka_unit_test(overwriting_changes_ground_that_nothing_touched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
