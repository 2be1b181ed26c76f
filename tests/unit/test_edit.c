/*
 * Edits: what set, add and the brushes make of samples, and the field that comes of it.
 */
#include "terrain/field/edit.h"

#include "support/long_form.h"
#include "support/random.h"
#include "support/same_field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/field_make.h"
#include "support/near.h"

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Numbers, zeros of both signs, holes with bits of their own. */
static float random_height(struct random *random)
{
    switch (random_below(random, 8)) {
    case 0:
        return float_of(0x7fc00000u | random_below(random, 1000));
    case 1:
        return float_of(0xff800001u + random_below(random, 1000));
    case 2:
        return -0.0f;
    case 3:
        return 0;
    default:
        return (float)random_in(random, -50, 50);
    }
}

static void fill(struct random *random, float *samples, size_t count)
{
    bool is_hole = random_below(random, 6) == 0, is_flat = random_below(random, 6) == 0;

    for (size_t i = 0; i < count; i++)
        samples[i] = is_hole ? NAN : is_flat ? -0.0f : random_height(random);
}

/* ---- the field that comes of it
 * ------------------------------------------------------------------ */

struct mirror {
    struct heightfield_spec spec;
    float *samples; /* what the field must hold */
    float *heights; /* room for an edit of all samples */
    struct heightfield *field;
};

/* One of many kinds of places: a sample, a seam, a corner of tiles, everything, anything. */
static struct sample_rect random_rect(struct random *random, const struct heightfield_spec *spec)
{
    uint32_t kind = random_below(random, 16);
    uint32_t c = random_below(random, spec->cols), r = random_below(random, spec->rows);

    if (kind == 0)
        return (struct sample_rect){0, 0, spec->cols, spec->rows};
    if (kind == 1)
        return (struct sample_rect){spec->cols - 1, spec->rows - 1, 1, 1};
    if (kind <= 4 && spec->cols > 257 && spec->rows > 257) {
        c = 256 * (1 + random_below(random, (spec->cols - 2) / 256)) - kind % 2;
        r = 256 * (1 + random_below(random, (spec->rows - 2) / 256)) - kind % 3;
    }
    uint32_t cols = kind <= 6 ? 1 : 1 + random_below(random, spec->cols - c);
    uint32_t rows = kind <= 5 ? 1 : 1 + random_below(random, spec->rows - r);

    if (kind > 8) { /* mostly small */
        cols = cols < 20 ? cols : 20;
        rows = rows < 20 ? rows : 20;
    }
    return (struct sample_rect){c, r, cols, rows};
}

static struct brush random_brush(struct random *random, const struct heightfield_spec *spec)
{
    double width = spec->spacing_x_m * spec->cols, height = spec->spacing_y_m * spec->rows;
    struct brush brush = {(enum brush_shape)random_below(random, 4),
                          {random_in(random, -0.1, 1.1) * width + spec->origin_x_m,
                           random_in(random, -0.1, 1.1) * height + spec->origin_y_m},
                          pow(10, random_in(random, -1, 2)),
                          random_in(random, 0, 9),
                          0};

    if (random_below(random, 4) == 0) {
        brush.center.x = spec->origin_x_m + random_below(random, spec->cols) * spec->spacing_x_m;
        brush.center.y = spec->origin_y_m + random_below(random, spec->rows) * spec->spacing_y_m;
    }
    return brush;
}

static void step(struct mirror *mirror, struct random *random)
{
    struct edit edit = {.kind = (enum edit_kind)random_below(random, 3),
                        .rect = random_rect(random, &mirror->spec),
                        .heights_m = mirror->heights,
                        .brush = random_brush(random, &mirror->spec)};
    struct edit_outcome outcome;
    struct heightfield *next;
    struct err err;

    if (edit.kind != EDIT_BRUSH)
        fill(random, mirror->heights, (size_t)edit.rect.cols * edit.rect.rows);
    if (edit_evaluate(mirror->field, &edit, UINT64_MAX, &outcome, &err)) {
        assert_int_equal(err.code, ERR_UNPROCESSABLE); /* beside the field, or over a hole */
        assert_int_equal(edit.kind, EDIT_BRUSH);
        return;
    }
    next = heightfield_with_samples(mirror->field, &outcome.rect, outcome.heights_m, &err);
    assert_non_null(next);
    if (random_below(random, 2) == 0) /* as a fork's edit */
        heightfield_share(next, mirror->field, &outcome.rect);
    heightfield_unref(mirror->field);
    mirror->field = next;
    for (uint32_t row = 0; row < outcome.rect.rows; row++)
        memcpy(mirror->samples + (size_t)(outcome.rect.row + row) * mirror->spec.cols +
                   outcome.rect.column,
               outcome.heights_m + (size_t)row * outcome.rect.cols,
               outcome.rect.cols * sizeof *mirror->samples);
    edit_outcome_free(&outcome);
}

static void edit_again_and_again(uint32_t cols, uint32_t rows, uint32_t leaf, uint64_t seed)
{
    const int steps = (int)long_form(1500, 120), each = (int)long_form(1, 3);
    struct random random = {seed};
    struct mirror mirror = {.spec = {cols, rows, -7, 3, 0.5, 2, TRIANGULATION_ANTI, leaf},
                            .samples = malloc((size_t)cols * rows * sizeof(float)),
                            .heights = malloc((size_t)cols * rows * sizeof(float))};
    char where[80];
    struct err err;

    assert_non_null(mirror.samples);
    assert_non_null(mirror.heights);
    fill(&random, mirror.samples, (size_t)cols * rows);
    mirror.field = field_make(&mirror.spec, mirror.samples);
    for (int n = 0; n < steps; n++) {
        step(&mirror, &random);
        if (n % each != 0)
            continue; /* a wrong bit stays until another edit covers it */
        struct heightfield *anew = field_make(&mirror.spec, mirror.samples);

        if (!same_field(mirror.field, anew, where, sizeof where))
            fail_msg("%ux%u leaf %u seed %llu step %d: %s", cols, rows, leaf,
                     (unsigned long long)seed, n, where);
        if (n % 30 == 0 && !heightfield_validate(mirror.field, &err))
            fail_msg("%ux%u leaf %u seed %llu step %d: %s", cols, rows, leaf,
                     (unsigned long long)seed, n, err.msg);
        heightfield_unref(anew);
    }
    heightfield_unref(mirror.field);
    free(mirror.samples);
    free(mirror.heights);
}

static void edits_give_the_bits_of_a_field_made_anew(void **state)
{
    static const uint32_t cases[][3] = {
        {2, 2, 0},     {2, 300, 0},   {300, 2, 1},     {40, 31, 2},   {256, 256, 0},
        {257, 257, 8}, {258, 513, 0}, {513, 258, 256}, {600, 530, 0}, {769, 512, 4}};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        edit_again_and_again(cases[i][0], cases[i][1], cases[i][2], 100 + i);
}

static void an_edit_remakes_the_tiles_that_hold_its_samples(void **state)
{
    enum { COLS = 769, ROWS = 1000 }; /* 3 × 4 tiles */
    static const struct {
        struct sample_rect rect;
        uint32_t tiles[4]; /* column0, row0, column1, row1 */
    } cases[] = {
        {{0, 0, 1, 1}, {0, 0, 0, 0}},         {{255, 255, 1, 1}, {0, 0, 0, 0}},
        {{256, 255, 1, 1}, {0, 0, 1, 0}},     {{256, 256, 1, 1}, {0, 0, 1, 1}},
        {{257, 257, 1, 1}, {1, 1, 1, 1}},     {{512, 768, 1, 1}, {1, 2, 2, 3}},
        {{768, 999, 1, 1}, {2, 3, 2, 3}},     {{768, 0, 1, 1000}, {2, 0, 2, 3}},
        {{0, 0, COLS, ROWS}, {0, 0, 2, 3}},   {{250, 300, 10, 3}, {0, 1, 1, 1}},
        {{257, 257, 255, 255}, {1, 1, 1, 1}}, {{257, 257, 256, 255}, {1, 1, 2, 1}},
    };
    float *samples = calloc((size_t)COLS * ROWS, sizeof *samples);
    float *ones = malloc((size_t)COLS * ROWS * sizeof *ones);
    struct heightfield_spec spec = {COLS, ROWS, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct heightfield *field = field_make(&spec, samples);
    struct err err;

    (void)state;
    for (size_t i = 0; i < (size_t)COLS * ROWS; i++)
        ones[i] = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heightfield *next = heightfield_with_samples(field, &cases[i].rect, ones, &err);

        assert_true(heightfield_validate(next, &err));
        for (uint32_t row = 0; row < 4; row++)
            for (uint32_t column = 0; column < 3; column++) {
                bool is_new = column >= cases[i].tiles[0] && row >= cases[i].tiles[1] &&
                              column <= cases[i].tiles[2] && row <= cases[i].tiles[3];
                bool same = heightfield_tile_serial(field, column, row) ==
                            heightfield_tile_serial(next, column, row);
                bool same_serial = heightfield_tile_serial(field, column, row) ==
                                   heightfield_tile_serial(next, column, row);

                if (same == is_new || same_serial == is_new)
                    fail_msg("case %zu: tile (%u, %u) is %s", i, column, row,
                             same ? "shared" : "new");
            }
        heightfield_unref(next);
    }
    heightfield_unref(field);
    free(samples);
    free(ones);
}

static void an_edit_that_changes_nothing_shares_every_tile(void **state)
{
    float *samples = calloc(600 * 600, sizeof *samples);
    struct heightfield_spec spec = {600, 600, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct heightfield *field = field_make(&spec, samples);
    struct sample_rect all = {0, 0, 600, 600};
    struct err err;

    (void)state;
    samples[300 * 600 + 300] = -0.0f; /* another sample, though not another number */
    struct heightfield *next = heightfield_with_samples(field, &all, samples, &err);

    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(field->tiles[i] == next->tiles[i], i != 4);
    assert_int_equal(bits_of(heightfield_sample(next, 300, 300)), bits_of(-0.0f));
    assert_int_equal(bits_of(heightfield_sample(field, 300, 300)), 0);
    heightfield_unref(field);
    assert_true(heightfield_validate(next, &err));
    heightfield_unref(next);
    free(samples);
}

/* A bound that is wrong, away from the edit, is still wrong after it: it was not computed. What is
 * computed are blocks of 16×16 cells, two leaves wide. */
static void an_edit_computes_the_blocks_it_changed_alone(void **state)
{
    enum { SIDE = TILE_CELLS / 8 };
    static const struct {
        uint32_t column, row, leaf; /* the leaf beside, or with, the sample */
        bool is_computed;
    } cases[] = {
        {100, 100, 12 * SIDE + 12, true},
        {100, 100, 12 * SIDE + 14, false},
        {100, 100, 12 * SIDE + 11, false},
        {112, 100, 12 * SIDE + 13, true},
        {112, 100, 12 * SIDE + 14, true},
        {112, 112, 13 * SIDE + 13, true},
        {112, 112, 14 * SIDE + 13, true},
        {113, 113, 13 * SIDE + 13, false},
        {113, 113, 13 * SIDE + 14, false},
        {256, 256, 31 * SIDE + 31, true},
        {256, 256, 31 * SIDE + 29, false},
        {0, 0, 0, true},
        {0, 0, 2, false},
    };
    float *samples = calloc(300 * 300, sizeof *samples);
    struct heightfield_spec spec = {300, 300, 0, 0, 1, 1, TRIANGULATION_ANTI, 8};
    static const float height = 5;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heightfield *field = field_make(&spec, samples), *next;
        struct sample_rect rect = {cases[i].column, cases[i].row, 1, 1};
        struct err err;

        field->tiles[0]->nodes[cases[i].leaf].min = -77;
        next = heightfield_with_samples(field, &rect, &height, &err);
        if ((next->tiles[0]->nodes[cases[i].leaf].min == 0) != cases[i].is_computed)
            fail_msg("case %zu: the leaf is %s", i,
                     cases[i].is_computed ? "not computed" : "computed");
        heightfield_unref(next);
        heightfield_unref(field);
    }
    free(samples);
}

static void read_samples_reads_what_is_there(void **state)
{
    struct random random = {9};
    float *samples = malloc(700 * 600 * sizeof *samples), *got = malloc(700 * 600 * sizeof *got);
    struct heightfield_spec spec = {700, 600, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};

    (void)state;
    fill(&random, samples, 700 * 600);
    struct heightfield *field = field_make(&spec, samples);

    for (int n = 0; n < 300; n++) {
        struct sample_rect rect = random_rect(&random, &spec);

        heightfield_read_samples(field, &rect, got);
        for (uint32_t row = 0; row < rect.rows; row++)
            if (memcmp(got + (size_t)row * rect.cols,
                       samples + (size_t)(rect.row + row) * 700 + rect.column,
                       rect.cols * sizeof *got) != 0)
                fail_msg("row %u of %ux%u at (%u, %u) differs", row, rect.cols, rect.rows,
                         rect.column, rect.row);
    }
    heightfield_unref(field);
    free(samples);
    free(got);
}

/* ---- set and add
 * --------------------------------------------------------------------------------- */

static void set_and_add_by_hand(void **state)
{
    static const float samples[6] = {1, 2, NAN, 4, -0.0f, 3e38f};
    static const float heights[4] = {0.1f, NAN, -0.0f, 1e38f};
    static const struct heightfield_spec spec = {3, 2, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    const float added[4] = {2.1f, NAN, 0, 0}, set[4] = {0.1f, NAN, -0.0f, 1e38f};
    struct heightfield *field = field_make(&spec, samples);
    struct edit edit = {.kind = EDIT_SET, .rect = {1, 0, 2, 2}, .heights_m = heights};
    struct edit_outcome outcome;
    struct err err;

    (void)state;
    assert_int_equal(edit_evaluate(field, &edit, 4, &outcome, &err), ERR_OK);
    assert_memory_equal(&outcome.rect, &edit.rect, sizeof outcome.rect);
    assert_memory_equal(outcome.heights_m, set, sizeof set);
    edit_outcome_free(&outcome);
    edit_outcome_free(&outcome); /* an empty one is fine */
    edit.kind = EDIT_ADD;
    assert_int_equal(edit_evaluate(field, &edit, 4, &outcome, &err), ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "sample (2, 1) would become 4e+38"));
    edit.rect.rows = 1;
    assert_int_equal(edit_evaluate(field, &edit, 4, &outcome, &err), ERR_OK);
    assert_memory_equal(outcome.heights_m, added, 2 * sizeof *added);
    edit_outcome_free(&outcome);
    edit.rect = (struct sample_rect){0, 0, 2, 1}; /* NaN added to a number: a hole */
    assert_int_equal(edit_evaluate(field, &edit, 4, &outcome, &err), ERR_OK);
    assert_true(outcome.heights_m[0] == 1.1f);
    assert_int_equal(bits_of(outcome.heights_m[1]), 0x7fc00000u);
    edit_outcome_free(&outcome);
    heightfield_unref(field);
}

static const float good[25] = {0}, infinite[4] = {0, 0, 0, -INFINITY};
static const float huge[4] = {3e38f, 0, 0, 0};
static const struct {
    struct edit edit;
    enum err_code code;
    const char *says;
} refused[] = {
    {{EDIT_SET, {0, 0, 0, 1}, good, {0}}, ERR_BAD_INPUT, "rect has 0×1"},
    {{EDIT_SET, {0, 0, 1, 0}, good, {0}}, ERR_BAD_INPUT, "rect has 1×0"},
    {{EDIT_SET, {4, 0, 2, 1}, good, {0}}, ERR_UNPROCESSABLE, "columns 4..5 are not inside 0..4"},
    {{EDIT_ADD, {5, 0, 1, 1}, good, {0}}, ERR_UNPROCESSABLE, "columns 5..5"},
    {{EDIT_SET, {0, 3, 1, 3}, good, {0}}, ERR_UNPROCESSABLE, "rows 3..5 are not inside 0..4"},
    {{EDIT_SET, {1, 0, UINT32_MAX, 1}, good, {0}}, ERR_UNPROCESSABLE, "columns 1..4294967295"},
    {{EDIT_SET, {0, 0, 5, 5}, good, {0}}, ERR_TOO_LARGE, "5×5 samples, must be at most 24"},
    {{EDIT_SET, {1, 1, 2, 2}, infinite, {0}}, ERR_BAD_INPUT, "height (1, 1) of the rect is inf"},
    {{EDIT_ADD, {1, 1, 2, 2}, infinite, {0}}, ERR_BAD_INPUT, "height (1, 1) of the rect is inf"},
    {{EDIT_BRUSH, {0}, NULL, {(enum brush_shape)5, {12, 22}, 1, 1, 0}},
     ERR_BAD_INPUT,
     "shape is 5"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {NAN, 22}, 1, 1, 0}}, ERR_BAD_INPUT, "center is nan"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12, INFINITY}, 1, 1, 0}}, ERR_BAD_INPUT, "12, inf"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12, 22}, 0, 1, 0}}, ERR_BAD_INPUT, "radius is 0"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12, 22}, -1, 1, 0}}, ERR_BAD_INPUT, "radius is -1"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12, 22}, NAN, 1, 0}}, ERR_BAD_INPUT, "radius is nan"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12, 22}, INFINITY, 1, 0}},
     ERR_BAD_INPUT,
     "radius is inf"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12, 22}, 1, INFINITY, 0}},
     ERR_BAD_INPUT,
     "amount is inf"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_CRATER, {12, 22}, 1, INFINITY, 0}},
     ERR_BAD_INPUT,
     "amount is inf"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_CRATER, {12, 22}, 1, -1, 0}}, ERR_BAD_INPUT, "amount is -1"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_SMOOTH, {12, 22}, 1, -1, 0}}, ERR_BAD_INPUT, "amount is -1"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_FLATTEN, {12, 22}, 1, NAN, 0}}, ERR_BAD_INPUT, "amount is nan"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RELAX, {12, 22}, 1, 0, 0.5}},
     ERR_BAD_INPUT,
     "slope is 0.5 degrees, must be 1..89"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RELAX, {12, 22}, 1, 0, NAN}}, ERR_BAD_INPUT, "slope is nan"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {9, 22}, 1, 1, 0}},
     ERR_UNPROCESSABLE,
     "no sample is nearer"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12.5, 22.5}, 0.7, 1, 0}},
     ERR_UNPROCESSABLE,
     "no sample"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {-1e308, 1e308}, 1e308, 1, 0}},
     ERR_UNPROCESSABLE,
     "no sample"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {12, 22}, 5, 1, 0}}, ERR_TOO_LARGE, "5×5 samples"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_FLATTEN, {12, 22}, 2, 1, 0}}, ERR_UNPROCESSABLE, "over a hole"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_FLATTEN, {9.5, 22}, 1, 1, 0}},
     ERR_UNPROCESSABLE,
     "outside the field"},
    {{EDIT_BRUSH, {0}, NULL, {BRUSH_RAISE, {11, 22}, 1, 1e39, 0}},
     ERR_UNPROCESSABLE,
     "sample (1, 2) would"},
};

static void an_edit_that_cannot_be_is_refused(void **state)
{
    static const float samples[25] = {[12] = NAN};
    static const struct heightfield_spec spec = {5, 5, 10, 20, 1, 1, TRIANGULATION_ANTI, 0};
    struct heightfield *field = field_make(&spec, samples);
    struct edit_outcome outcome;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        outcome.heights_m = NULL;
        if (edit_evaluate(field, &refused[i].edit, 24, &outcome, &err) != refused[i].code)
            fail_msg("case %zu: code %d, \"%s\"", i, err.code, err.msg);
        if (strstr(err.msg, refused[i].says) == NULL)
            fail_msg("case %zu says \"%s\", not \"%s\"", i, err.msg, refused[i].says);
        assert_null(outcome.heights_m);
        if (err.code == ERR_TOO_LARGE)
            assert_true(err.has_limit && err.limit == 24 && err.got == 25);
    }
    const struct edit twice = {EDIT_ADD, {0, 0, 2, 2}, huge, {0}};
    struct sample_rect rect = {0, 0, 2, 2};
    struct heightfield *next = heightfield_with_samples(field, &rect, huge, &err);

    assert_int_equal(edit_evaluate(next, &twice, 24, &outcome, &err), ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "sample (0, 0) would become 6e+38"));
    heightfield_unref(next);
    heightfield_unref(field);
}

/* ---- brushes: an oracle over all samples of the field, from the words of edit.h
 * ------------------- */

struct ground {
    struct heightfield_spec spec;
    float *samples;
    struct heightfield *field;
};

static double t_of(const struct ground *ground, const struct brush *brush, uint32_t c, uint32_t r)
{
    return hypot(ground->spec.origin_x_m + c * ground->spec.spacing_x_m - brush->center.x,
                 ground->spec.origin_y_m + r * ground->spec.spacing_y_m - brush->center.y) /
           brush->radius_m;
}

static double smooth_step(double t)
{
    return t < 1 ? 1 - 3 * t * t + 2 * t * t * t : 0;
}

static double beta_of(const struct ground *ground, const struct brush *brush)
{
    double sum = 0, sum_tt = 0;

    for (uint32_t r = 0; r < ground->spec.rows; r++)
        for (uint32_t c = 0; c < ground->spec.cols; c++)
            if (!isnan(ground->samples[(size_t)r * ground->spec.cols + c])) {
                double t = t_of(ground, brush, c, r), w = smooth_step(t);

                sum += w;
                sum_tt += w * t * t;
            }
    return sum / sum_tt;
}

static double mean_of(const struct ground *ground, uint32_t c, uint32_t r)
{
    double sum = 0;
    int count = 0;

    for (int dr = -1; dr <= 1; dr++)
        for (int dc = -1; dc <= 1; dc++) {
            int64_t x = (int64_t)c + dc, y = (int64_t)r + dr;

            if ((dc == 0 && dr == 0) || x < 0 || y < 0 || x >= ground->spec.cols ||
                y >= ground->spec.rows)
                continue;
            float h = ground->samples[(size_t)y * ground->spec.cols + (size_t)x];

            if (!isnan(h)) {
                sum += (double)h;
                count++;
            }
        }
    return sum / count; /* NaN: no neighbours */
}

/* What a sample inside becomes. */
static double wanted(const struct ground *ground, const struct brush *brush, double beta,
                     double center_m, uint32_t c, uint32_t r)
{
    double h = (double)ground->samples[(size_t)r * ground->spec.cols + c];
    double t = t_of(ground, brush, c, r), w = smooth_step(t), target;

    if (brush->shape == BRUSH_RAISE)
        return h + brush->amount_m * w;
    if (brush->shape == BRUSH_CRATER)
        return isfinite(beta) ? h - brush->amount_m * w * (1 - beta * t * t) : h;
    target = brush->shape == BRUSH_FLATTEN ? center_m : mean_of(ground, c, r);
    if (isnan(target))
        return h;
    if (target - h > brush->amount_m)
        return h + w * brush->amount_m;
    return target - h < -brush->amount_m ? h - w * brush->amount_m : h + w * (target - h);
}

static void check_brush(const struct ground *ground, const struct brush *brush, uint64_t seed)
{
    struct edit edit = {.kind = EDIT_BRUSH, .brush = *brush};
    struct edit_outcome outcome;
    struct ground_point center;
    struct err err;
    double beta = brush->shape == BRUSH_CRATER ? beta_of(ground, brush) : 0, sum = 0, slack = 0;
    uint32_t inside = 0;

    for (uint32_t i = 0; i < ground->spec.cols * ground->spec.rows; i++)
        inside += t_of(ground, brush, i % ground->spec.cols, i / ground->spec.cols) < 1;
    heightfield_height(ground->field, brush->center, INTERPOLATION_TRIANGLE, &center);
    if (edit_evaluate(ground->field, &edit, UINT64_MAX, &outcome, &err)) {
        bool is_refused =
            inside == 0 || (brush->shape == BRUSH_FLATTEN && center.status != GROUND_OK);

        if (!is_refused || err.code != ERR_UNPROCESSABLE)
            fail_msg("seed %llu: %u inside: %s", (unsigned long long)seed, inside, err.msg);
        return;
    }
    assert_int_not_equal(inside, 0);
    for (uint32_t i = 0; i < ground->spec.cols * ground->spec.rows; i++) {
        uint32_t c = i % ground->spec.cols, r = i / ground->spec.cols;
        bool is_in_rect =
            c - outcome.rect.column < outcome.rect.cols && r - outcome.rect.row < outcome.rect.rows;
        float was = ground->samples[i], got = was;

        if (is_in_rect)
            got = outcome.heights_m[(size_t)(r - outcome.rect.row) * outcome.rect.cols + c -
                                    outcome.rect.column];
        if (t_of(ground, brush, c, r) >= 1 || isnan(was)) {
            if (bits_of(was) != bits_of(got))
                fail_msg("seed %llu: (%u, %u) at %g or a hole changed from %g to %g",
                         (unsigned long long)seed, c, r, t_of(ground, brush, c, r), (double)was,
                         (double)got);
            continue;
        }
        double want = wanted(ground, brush, beta, center.height_m, c, r);
        double ulp = fmax(fabs(want), 1e-3) * 0x1p-23;

        if (!is_in_rect || !(fabs((double)got - want) <= ulp))
            fail_msg("seed %llu: shape %d at (%u, %u): %.9g, wanted %.9g, was %.9g",
                     (unsigned long long)seed, (int)brush->shape, c, r, (double)got, want,
                     (double)was);
        sum += (double)got - (double)was;
        slack += ulp;
    }
    if (brush->shape == BRUSH_CRATER && !(fabs(sum) <= slack))
        fail_msg("seed %llu: a crater's changes add up to %g", (unsigned long long)seed, sum);
    edit_outcome_free(&outcome);
}

/* Heights from level - rough up to level + rough, and holes. */
static struct ground random_ground(struct random *random, double holes, double level, double rough)
{
    struct heightfield_spec spec = {2 + random_below(random, 40), 2 + random_below(random, 40),
                                    random_in(random, -100, 100), random_in(random, -100, 100),
                                    random_in(random, 0.1, 3),    random_in(random, 0.1, 3),
                                    TRIANGULATION_ALTERNATING,    0};
    struct ground ground = {spec, malloc((size_t)spec.cols * spec.rows * sizeof(float)), NULL};

    assert_non_null(ground.samples);
    for (uint32_t i = 0; i < spec.cols * spec.rows; i++)
        ground.samples[i] = random_in(random, 0, 1) < holes
                                ? float_of(0x7fc00000u | i)
                                : (float)(level + random_in(random, -rough, rough));
    ground.field = field_make(&spec, ground.samples);
    return ground;
}

static void brushes_do_what_the_oracle_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct random random = {seed};
        double holes = random_below(&random, 3) * 0.15;
        struct ground ground = random_ground(&random, holes, 0, 50);

        for (int n = 0; n < 4; n++) {
            struct brush brush = random_brush(&random, &ground.spec);

            if (brush.shape >= BRUSH_FLATTEN && random_below(&random, 3) == 0)
                brush.amount_m = INFINITY;
            check_brush(&ground, &brush, seed);
        }
        heightfield_unref(ground.field);
        free(ground.samples);
    }
}

static void a_sample_exactly_at_the_radius_stays(void **state)
{
    static const struct heightfield_spec spec = {11, 11, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    float samples[121] = {0};
    struct heightfield *field = field_make(&spec, samples);
    /* 3² + 4² = 5², and an amount by which the least weight would show */
    struct edit edit = {.kind = EDIT_BRUSH, .brush = {BRUSH_RAISE, {5, 5}, 5, 3e38, 0}};
    struct edit_outcome outcome;
    struct err err;

    (void)state;
    assert_int_equal(edit_evaluate(field, &edit, 1000, &outcome, &err), ERR_OK);
    assert_int_equal(outcome.rect.column, 1);
    assert_int_equal(outcome.rect.row, 1);
    assert_int_equal(outcome.rect.cols, 9);
    assert_int_equal(outcome.rect.rows, 9);
    assert_true(outcome.heights_m[4 * 9 + 4] == 3e38f);
    for (uint32_t i = 0; i < 81; i++) {
        int c = (int)(i % 9) - 4, r = (int)(i / 9) - 4;

        assert_int_equal(outcome.heights_m[i] != 0, c * c + r * r < 25);
    }
    edit_outcome_free(&outcome);
    heightfield_unref(field);
}

static void brushes_of_any_size_are_taken(void **state)
{
    static const double radii[] = {5e-324, 1e-310, 1e-300, 1e-9, 1, 1e9, 1e300, 1.7e308};
    static const struct heightfield_spec spec = {9, 7, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    float samples[63] = {0};
    struct heightfield *field = field_make(&spec, samples);
    (void)state;

    for (size_t i = 0; i < sizeof radii / sizeof *radii; i++)
        for (int shape = 0; shape < 4; shape++) {
            struct edit edit = {.kind = EDIT_BRUSH,
                                .brush = {(enum brush_shape)shape, {4, 3}, radii[i], 2}};
            struct edit_outcome outcome;
            struct err err;

            if (edit_evaluate(field, &edit, 63, &outcome, &err))
                fail_msg("radius %g shape %d: %s", radii[i], shape, err.msg);
            assert_int_equal(outcome.rect.cols, radii[i] > 1 ? 9 : 1);
            assert_int_equal(outcome.rect.rows, radii[i] > 1 ? 7 : 1);
            if (shape == BRUSH_RAISE)
                for (uint32_t k = 0; k < outcome.rect.cols * outcome.rect.rows; k++)
                    assert_near((double)outcome.heights_m[k], 2, 1e-6);
            edit_outcome_free(&outcome);
        }
    heightfield_unref(field);
}

static void a_crater_has_a_pit_and_a_rim(void **state)
{
    static const struct heightfield_spec spec = {201, 201, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    float *samples = calloc(201 * 201, sizeof *samples);
    struct heightfield *field = field_make(&spec, samples);
    struct edit edit = {.kind = EDIT_BRUSH, .brush = {BRUSH_CRATER, {100, 100}, 80, 10, 0}};
    struct edit_outcome outcome;
    struct err err;
    double turn_m = 0, rim_m = 0;

    (void)state;
    assert_int_equal(edit_evaluate(field, &edit, 1000000, &outcome, &err), ERR_OK);
    const float *middle = outcome.heights_m + (size_t)(100 - outcome.rect.row) * outcome.rect.cols;

    assert_true(middle[100 - outcome.rect.column] == -10);
    for (uint32_t d = 1; d < 80; d++) {
        float h = middle[100 - outcome.rect.column + d];

        if (h < 0)
            turn_m = d;
        rim_m = fmax(rim_m, (double)h);
    }
    assert_near(turn_m, 40, 8); /* about half the radius */
    assert_true(rim_m > 0.3 && rim_m < 5);
    edit_outcome_free(&outcome);
    heightfield_unref(field);
    free(samples);
}

/* ---- relax: slopes, volume and what must stay, by brute force -------------------------------- */

static double tan_deg(double deg)
{
    return tan(deg * (acos(-1) / 180));
}

/* How much steeper than allowed the steepest pair of neighbours inside is; 1: just allowed. */
static double steepest(const struct ground *ground, const struct brush *brush, const float *samples)
{
    const struct heightfield_spec *spec = &ground->spec;
    double most = 0;

    for (uint32_t i = 0; i < spec->cols * spec->rows; i++)
        for (int k = 0; k < 9; k++) {
            const int64_t c = (int64_t)(i % spec->cols) + k % 3 - 1;
            const int64_t r = (int64_t)(i / spec->cols) + k / 3 - 1;

            if (k == 4 || c < 0 || r < 0 || c >= spec->cols || r >= spec->rows)
                continue;
            const float a = samples[i], b = samples[r * spec->cols + c];
            const double far =
                hypot((k % 3 - 1) * spec->spacing_x_m, (k / 3 - 1) * spec->spacing_y_m);

            if (isnan(a) || isnan(b) || t_of(ground, brush, i % spec->cols, i / spec->cols) >= 1 ||
                t_of(ground, brush, (uint32_t)c, (uint32_t)r) >= 1)
                continue;
            most = fmax(most, fabs((double)a - (double)b) / (far * tan_deg(brush->slope_deg)));
        }
    return most;
}

/* Numbers the parts that holes and the radius separate; 0: no part. */
static uint32_t number_parts(const struct ground *ground, const struct brush *brush, uint32_t *part)
{
    const struct heightfield_spec *spec = &ground->spec;
    const uint32_t count = spec->cols * spec->rows;
    uint32_t parts = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool is_in =
            !isnan(ground->samples[i]) && t_of(ground, brush, i % spec->cols, i / spec->cols) < 1;

        part[i] = is_in ? ++parts : 0;
    }
    for (bool is_changed = true; is_changed;) { /* the least number spreads */
        is_changed = false;
        for (uint32_t i = 0; i < count; i++)
            for (int k = 0; k < 9 && part[i] > 0; k++) {
                const int64_t c = (int64_t)(i % spec->cols) + k % 3 - 1;
                const int64_t r = (int64_t)(i / spec->cols) + k / 3 - 1;

                if (c < 0 || r < 0 || c >= spec->cols || r >= spec->rows)
                    continue;
                const uint32_t other = part[r * spec->cols + c];

                if (other > 0 && other < part[i]) {
                    part[i] = other;
                    is_changed = true;
                }
            }
    }
    return parts;
}

/* The field's samples after the brush. */
static float *relaxed(const struct ground *ground, const struct brush *brush)
{
    const struct heightfield_spec *spec = &ground->spec;
    const size_t count = (size_t)spec->cols * spec->rows;
    struct edit edit = {.kind = EDIT_BRUSH, .brush = *brush};
    float *after = malloc(count * sizeof *after);
    struct edit_outcome outcome;
    struct err err;

    assert_non_null(after);
    memcpy(after, ground->samples, count * sizeof *after);
    if (edit_evaluate(ground->field, &edit, UINT64_MAX, &outcome, &err)) {
        assert_int_equal(err.code, ERR_UNPROCESSABLE); /* it meets no sample */
        return after;
    }
    for (uint32_t r = 0; r < outcome.rect.rows; r++)
        memcpy(after + (size_t)(outcome.rect.row + r) * spec->cols + outcome.rect.column,
               outcome.heights_m + (size_t)r * outcome.rect.cols,
               outcome.rect.cols * sizeof *after);
    edit_outcome_free(&outcome);
    return after;
}

static void check_relaxed(const struct ground *ground, const struct brush *brush,
                          const float *after, uint64_t seed)
{
    const struct heightfield_spec *spec = &ground->spec;
    const uint32_t count = spec->cols * spec->rows;
    uint32_t *part = calloc(count, sizeof *part);
    double *sums = calloc(count + 1, sizeof *sums), *slack = calloc(count + 1, sizeof *slack);
    const double steep = steepest(ground, brush, after);
    double all = 0, most = 0;

    assert_true(part && sums && slack);
    const uint32_t parts = number_parts(ground, brush, part);

    if (!(steep <= 1 + 1e-12))
        fail_msg("seed %llu: a pair is %.12f as steep as allowed", (unsigned long long)seed, steep);
    for (uint32_t i = 0; i < count; i++) {
        const float was = ground->samples[i];

        if (part[i] == 0 && bits_of(was) != bits_of(after[i]))
            fail_msg("seed %llu: sample %u is a hole or not inside, and changed",
                     (unsigned long long)seed, i);
        if (part[i] == 0)
            continue;
        most = fmax(most, fabs((double)was));
        sums[part[i]] += (double)after[i] - (double)was;
        slack[part[i]] += was != after[i] ? 0x1p-23 * fabs((double)was) + 1e-9 : 1e-12;
        all += (double)after[i] - (double)was;
    }
    for (uint32_t i = 1; i <= parts; i++)
        if (!(fabs(sums[i]) <= slack[i] + 0x1p-23 * most))
            fail_msg("seed %llu: part %u gained %g", (unsigned long long)seed, i, sums[i]);
    if (!(fabs(all) <= 0x1p-24 * most + 1e-9)) /* half a unit of the greatest */
        fail_msg("seed %llu: all gained %g, heights up to %g", (unsigned long long)seed, all, most);
    if (steepest(ground, brush, ground->samples) <= 1)
        assert_memory_equal(after, ground->samples, count * sizeof *after);
    free(part);
    free(sums);
    free(slack);
}

static void relaxed_ground_is_nowhere_too_steep(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random random = {seed};
        const double holes = random_below(&random, 4) * 0.15,
                     rough = pow(10, random_in(&random, -1, 2));
        const double level = random_below(&random, 3) * 900.0;
        struct ground ground = random_ground(&random, holes, level, rough);
        struct brush brush = random_brush(&random, &ground.spec);

        brush.shape = BRUSH_RELAX;
        brush.slope_deg = random_below(&random, 2) ? 34 : random_in(&random, 5, 80);
        struct ground again = {ground.spec, relaxed(&ground, &brush), NULL};

        check_relaxed(&ground, &brush, again.samples, seed);
        again.field = field_make(&again.spec, again.samples);
        float *twice = relaxed(&again, &brush);

        assert_memory_equal(twice, again.samples,
                            (size_t)again.spec.cols * again.spec.rows * sizeof *twice);
        free(twice);
        free(again.samples);
        free(ground.samples);
        heightfield_unref(again.field);
        heightfield_unref(ground.field);
    }
}

/* A spike becomes a cone of the angle, one that is as high in each of the eight directions. */
static void a_spike_becomes_a_cone(void **state)
{
    static const struct heightfield_spec spec = {81, 81, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    const struct brush brush = {BRUSH_RELAX, {40, 40}, 35, 0, 34};
    struct ground ground = {spec, calloc(81 * 81, sizeof(float)), NULL};
    const double slope = tan_deg(34);

    (void)state;
    assert_non_null(ground.samples);
    ground.samples[40 * 81 + 40] = 1000;
    ground.field = field_make(&spec, ground.samples);
    float *after = relaxed(&ground, &brush);

    check_relaxed(&ground, &brush, after, 0);
    for (int k = 0; k < 9; k++)
        for (int d = 0; d < 6; d++) {
            const int at = (40 + (k / 3 - 1) * d) * 81 + 40 + (k % 3 - 1) * d;
            const double far = d * hypot(k % 3 - 1, k / 3 - 1);

            /* V = pi/3 h³ / slope² of a round cone; of an octagon a little less high */
            assert_near((double)after[at] + far * slope, 7.4, 0.9);
        }
    free(after);
    free(ground.samples);
    heightfield_unref(ground.field);
}

/* The automaton is cut off here; the result holds all the same. */
static void relaxing_at_the_bound_holds(void **state)
{
    static const struct heightfield_spec spec = {500, 500, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    const struct brush brush = {BRUSH_RELAX, {250, 250}, 249, 0, 34};
    const size_t count = 500 * 500;
    struct ground ground = {spec, malloc(count * sizeof(float)), NULL};
    struct edit too_large = {.kind = EDIT_BRUSH, .brush = {BRUSH_RELAX, {300, 300}, 270, 0, 34}};
    struct heightfield_spec wide = {600, 600, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    float *samples = calloc(600 * 600, sizeof *samples);
    struct edit_outcome outcome;
    struct err err;

    (void)state;
    assert_true(ground.samples && samples);
    for (size_t i = 0; i < count; i++)
        ground.samples[i] = i % 500 < 250 ? 120 : 0;
    ground.field = field_make(&spec, ground.samples);
    float *after = relaxed(&ground, &brush);
    double steep = steepest(&ground, &brush, after), sum = 0;

    assert_true(steep <= 1 + 1e-12 && steep > 0.99);
    for (size_t i = 0; i < count; i++)
        sum += (double)after[i] - (double)ground.samples[i];
    assert_true(fabs(sum) <= 120 * 0x1p-24 + 1e-9);

    struct heightfield *field = field_make(&wide, samples);

    assert_int_equal(edit_evaluate(field, &too_large, UINT64_MAX, &outcome, &err), ERR_TOO_LARGE);
    assert_true(err.has_limit && err.limit == 262144 && err.got == 539 * 539);
    heightfield_unref(field);
    heightfield_unref(ground.field);
    free(samples);
    free(after);
    free(ground.samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_give_the_bits_of_a_field_made_anew),
        cmocka_unit_test(an_edit_remakes_the_tiles_that_hold_its_samples),
        cmocka_unit_test(an_edit_that_changes_nothing_shares_every_tile),
        cmocka_unit_test(an_edit_computes_the_blocks_it_changed_alone),
        cmocka_unit_test(read_samples_reads_what_is_there),
        cmocka_unit_test(set_and_add_by_hand),
        cmocka_unit_test(an_edit_that_cannot_be_is_refused),
        cmocka_unit_test(brushes_do_what_the_oracle_says),
        cmocka_unit_test(a_sample_exactly_at_the_radius_stays),
        cmocka_unit_test(brushes_of_any_size_are_taken),
        cmocka_unit_test(a_crater_has_a_pit_and_a_rim),
        cmocka_unit_test(relaxed_ground_is_nowhere_too_steep),
        cmocka_unit_test(a_spike_becomes_a_cone),
        cmocka_unit_test(relaxing_at_the_bound_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
