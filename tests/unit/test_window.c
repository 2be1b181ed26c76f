/*
 * Windows beside their samples one by one, and the names of their content; the layouts of samples.
 */
#include "terrain/field/window.h"

#include "formats/float_layout.h"
#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct heightfield *field_make(uint32_t cols, uint32_t rows, const float *samples)
{
    const struct heightfield_spec spec = {cols, rows, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct err err;
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    assert_non_null(field);
    return field;
}

static float *samples_make(struct random *random, size_t count)
{
    float *samples = malloc(count * sizeof *samples);

    assert_non_null(samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = random_below(random, 40) == 0 ? -__builtin_nanf("0x1234")
                                                   : (float)random_in(random, -100, 100);
    return samples;
}

static struct window window_any(struct random *random, uint32_t cols, uint32_t rows)
{
    uint32_t c = (uint32_t)random_below(random, cols), r = (uint32_t)random_below(random, rows);

    if (random_below(random, 4) == 0)
        return (struct window){{0, 0, cols, rows}, 1u << random_below(random, 11)};
    return (struct window){{c, r, 1 + (uint32_t)random_below(random, cols - c),
                            1 + (uint32_t)random_below(random, rows - r)},
                           1u << random_below(random, 11)};
}

static void rows_are_the_samples(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2},     {257, 257}, {256, 300},
                                        {258, 513}, {700, 30},  {5, 700}};
    struct random random = {20261127};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint32_t cols = sizes[s][0], rows = sizes[s][1];
        float *samples = samples_make(&random, (size_t)cols * rows), *row;
        struct heightfield *field = field_make(cols, rows, samples);

        for (int n = 0; n < 200; n++) {
            struct window w = window_any(&random, cols, rows);
            uint32_t nan, none;

            row = malloc(window_cols(&w) * sizeof *row);
            assert_non_null(row);
            for (uint32_t j = 0; j < window_rows(&w); j++) {
                window_row(field, &w, j, row);
                for (uint32_t i = 0; i < window_cols(&w); i++) {
                    size_t at = (size_t)(w.rect.row + j * w.step) * cols + w.rect.column +
                                (size_t)i * w.step;
                    float hole = __builtin_nanf("");

                    memcpy(&nan, &row[i], sizeof nan);
                    memcpy(&none, &hole, sizeof none);
                    if (isnan(samples[at]) ? nan != none : row[i] != samples[at])
                        fail_msg("%u×%u, window %u,%u,%u,%u step %u: sample %u,%u is %.9g", cols,
                                 rows, w.rect.column, w.rect.row, w.rect.cols, w.rect.rows, w.step,
                                 i, j, (double)row[i]);
                }
            }
            free(row);
        }
        heightfield_unref(field);
        free(samples);
    }
}

static bool is_in(const struct window *w, uint32_t c, uint32_t r)
{
    return c >= w->rect.column && c < w->rect.column + w->rect.cols && r >= w->rect.row &&
           r < w->rect.row + w->rect.rows && (c - w->rect.column) % w->step == 0 &&
           (r - w->rect.row) % w->step == 0;
}

/* A change of one sample changes the hashes of the windows that have it, and of no other. */
static void a_hash_is_of_the_samples(void **state)
{
    enum { COLS = 520, ROWS = 300, WINDOWS = 100, EDITS = 60 };
    struct random random = {7};
    float *samples = samples_make(&random, COLS * ROWS), height = 1e6f;
    struct heightfield *field = field_make(COLS, ROWS, samples), *next;
    struct window windows[WINDOWS];
    uint64_t before[WINDOWS][2], after[2];
    struct err err;

    (void)state;
    for (int n = 0; n < WINDOWS; n++) {
        windows[n] = window_any(&random, COLS, ROWS);
        window_hash(field, &windows[n], before[n]);
    }
    for (int k = 0; k < EDITS; k++, height += 1) {
        struct sample_rect one = {(uint32_t)random_below(&random, COLS),
                                  (uint32_t)random_below(&random, ROWS), 1, 1};

        if (k % 3 == 0) /* on a seam */
            one.column = 256, one.row = k % 2 ? 256 : one.row;
        samples[(size_t)one.row * COLS + one.column] = height;
        next = heightfield_with_samples(field, &one, &height, &err);
        assert_non_null(next);
        heightfield_unref(field);
        field = next;
        for (int n = 0; n < WINDOWS; n++) {
            window_hash(field, &windows[n], after);
            assert_int_equal(memcmp(before[n], after, sizeof after) != 0,
                             is_in(&windows[n], one.column, one.row));
            memcpy(before[n], after, sizeof after);
        }
    }
    next = field_make(COLS, ROWS, samples); /* as after a restart */
    for (int n = 0; n < WINDOWS; n++) {
        window_hash(next, &windows[n], after);
        assert_memory_equal(before[n], after, sizeof after);
    }
    heightfield_unref(next);
    heightfield_unref(field);
    free(samples);
}

static void layouts_keep_every_bit(void **state)
{
    struct random random = {99};

    (void)state;
    for (int n = 0; n < 300; n++) {
        size_t cols = 1 + random_below(&random, 40), rows = 1 + random_below(&random, 40);
        size_t bytes = 4 * cols * rows;
        unsigned char *from = malloc(bytes), *to = malloc(bytes), *back = malloc(bytes);

        assert_true(from && to && back);
        for (size_t i = 0; i < bytes; i++)
            from[i] = (unsigned char)random_below(&random, 256);
        for (enum float_layout layout = LAYOUT_BYTES; layout <= LAYOUT_DELTA; layout++) {
            float_layout_write(layout, from, cols, rows, to);
            float_layout_read(layout, to, cols, rows, back);
            assert_memory_equal(from, back, bytes);
            float_layout_read(layout, from, cols, rows, back); /* any bytes are some samples */
            float_layout_write(layout, back, cols, rows, to);
            assert_memory_equal(from, to, bytes);
        }
        free(from);
        free(to);
        free(back);
    }
}

/* The words of proto/feed.md, by hand. */
static void layouts_are_as_described(void **state)
{
    static const uint32_t samples[4] = {0x01020304, 0x01020306, 0x11020304, 0x11020305};
    static const unsigned char bytes[16] = {4, 6, 4, 5, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 0x11, 0x11};
    /* left: a, +2, +0x10000000, 0x11020305 - (0x11020304 + 0x01020306 - 0x01020304) = -1 */
    static const uint32_t folded[4] = {0x02040608, 4, 0x20000000, 1};
    unsigned char to[16];

    (void)state;
    float_layout_write(LAYOUT_BYTES, samples, 2, 2, to);
    assert_memory_equal(to, bytes, sizeof bytes);
    float_layout_write(LAYOUT_DELTA, samples, 2, 2, to);
    for (int k = 0; k < 16; k++)
        assert_int_equal(to[k], folded[k % 4] >> 8 * (k / 4) & 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_samples),
        cmocka_unit_test(a_hash_is_of_the_samples),
        cmocka_unit_test(layouts_keep_every_bit),
        cmocka_unit_test(layouts_are_as_described),
    };

    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
