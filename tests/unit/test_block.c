/*
 * Blocks: every sample of every block by hand, and what a block is named by.
 *
 * The names are compared with what is true by definition: an edit of one sample may change the
 * block's name only if it remakes a tile that the block reads, and must if it changes the block.
 */
#include "terrain/field/block.h"

#include "support/random.h"
#include "terrain/field/edit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static float *samples_make(uint32_t cols, uint32_t rows, uint64_t seed)
{
    struct random random = {seed};
    float *samples = malloc((size_t)cols * rows * sizeof *samples);

    assert_non_null(samples);
    for (size_t i = 0; i < (size_t)cols * rows; i++)
        samples[i] = random_below(&random, 50) == 0 ? __builtin_nanf("")
                                                    : (float)random_in(&random, -100, 100);
    return samples;
}

static struct heightfield *field_make(uint32_t cols, uint32_t rows, const float *samples)
{
    const struct heightfield_spec spec = {cols, rows, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct err err;
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    assert_non_null(field);
    return field;
}

static float wanted(const float *samples, uint32_t cols, uint32_t rows,
                    const struct block_place *place, uint32_t i, uint32_t j)
{
    uint64_t step = (uint64_t)1 << place->level, side = place->kind == BLOCK_SAMPLED ? 1 : step;
    uint64_t c0 = (place->column * (uint64_t)BLOCK_CELLS + i) * step;
    uint64_t r0 = (place->row * (uint64_t)BLOCK_CELLS + j) * step;
    float best = NAN;

    for (uint64_t r = r0; r < r0 + side && r < rows; r++)
        for (uint64_t c = c0; c < c0 + side && c < cols; c++) {
            float h = samples[r * cols + c];

            if (isnan(best) || (place->kind == BLOCK_MIN ? h < best : h > best))
                best = isnan(h) ? best : h;
        }
    return best;
}

static void check_blocks(uint32_t cols, uint32_t rows)
{
    float *samples = samples_make(cols, rows, cols * 31 + rows);
    struct heightfield *field = field_make(cols, rows, samples);
    float *block = malloc(BLOCK_SAMPLES * sizeof *block);
    uint32_t last = block_level_last(heightfield_spec(field));

    assert_non_null(block);
    for (struct block_place p = {0}; p.level <= last; p.level++) {
        uint32_t columns, block_rows;

        block_count(heightfield_spec(field), p.level, &columns, &block_rows);
        for (uint32_t n = 0; n < columns * block_rows * 3; n++) {
            p.column = n / 3 % columns;
            p.row = n / 3 / columns;
            p.kind = (enum block_kind)(n % 3);
            block_read(field, &p, block);
            for (uint32_t k = 0; k < BLOCK_SAMPLES; k++) {
                float want = wanted(samples, cols, rows, &p, k % BLOCK_SIDE, k / BLOCK_SIDE);

                if (block[k] != want && !(isnan(block[k]) && isnan(want)))
                    fail_msg("%u×%u, %u/%u/%u kind %d, sample %u: %.9g, expected %.9g", cols, rows,
                             p.level, p.column, p.row, (int)p.kind, k, (double)block[k],
                             (double)want);
            }
        }
    }
    free(block);
    heightfield_unref(field);
    free(samples);
}

static void every_block_has_the_samples_it_should(void **state)
{
    (void)state;
    check_blocks(2, 2);
    check_blocks(2, 300);
    check_blocks(257, 257);
    check_blocks(258, 256);
    check_blocks(600, 520);
}

/* Which blocks change their name, and which their samples, when one sample changes. */
static void check_names(uint32_t cols, uint32_t rows, uint32_t column, uint32_t row)
{
    float *samples = samples_make(cols, rows, 9);
    float *before = malloc(BLOCK_SAMPLES * sizeof *before);
    float *after = malloc(BLOCK_SAMPLES * sizeof *after), value = 1000;
    struct heightfield *field = field_make(cols, rows, samples), *edited;
    const struct sample_rect rect = {column, row, 1, 1};
    struct err err;
    uint32_t columns, block_rows, touched = 0, all = 0;

    edited = heightfield_with_samples(field, &rect, &value, &err);
    assert_true(before && after && edited);
    for (struct block_place p = {0}; p.level <= block_level_last(heightfield_spec(field));
         p.level++) {
        block_count(heightfield_spec(field), p.level, &columns, &block_rows);
        for (uint32_t n = 0; n < columns * block_rows * 3; n++) {
            uint64_t first[2], second[2];
            bool is_renamed, is_changed;

            p.column = n / 3 % columns;
            p.row = n / 3 / columns;
            p.kind = (enum block_kind)(n % 3);
            block_source(field, &p, first);
            block_source(edited, &p, second);
            block_read(field, &p, before);
            block_read(edited, &p, after);
            is_renamed = memcmp(first, second, sizeof first) != 0;
            is_changed = memcmp(before, after, BLOCK_SAMPLES * sizeof *before) != 0;
            if (is_changed && !is_renamed)
                fail_msg("(%u,%u): %u/%u/%u kind %d changed under its old name", column, row,
                         p.level, p.column, p.row, (int)p.kind);
            if (p.level == 0 && is_renamed != is_changed)
                fail_msg("(%u,%u): 0/%u/%u kind %d has a new name and did not change", column, row,
                         p.column, p.row, (int)p.kind);
            touched += is_renamed;
            all++;
        }
    }
    assert_true(touched > 0 && touched < all);
    free(before);
    free(after);
    heightfield_unref(field);
    heightfield_unref(edited);
    free(samples);
}

static void an_edit_renames_the_blocks_that_it_touches(void **state)
{
    (void)state;
    check_names(1100, 700, 0, 0);
    check_names(1100, 700, 256, 100); /* a seam */
    check_names(1100, 700, 256, 512); /* a corner of four tiles */
    check_names(1100, 700, 300, 300);
    check_names(1100, 700, 1099, 699);
    check_names(513, 513, 512, 512); /* the last sample is an apron alone */
}

static void names_differ_by_place_and_field(void **state)
{
    float *samples = samples_make(600, 300, 3);
    struct heightfield *one = field_make(600, 300, samples), *other = field_make(600, 300, samples);
    const struct block_place left = {0, 0, 0, BLOCK_SAMPLED}, right = {0, 1, 0, BLOCK_SAMPLED};
    uint64_t a[2], b[2], c[2];

    (void)state;
    block_source(one, &left, a);
    block_source(one, &right, b);
    block_source(other, &left, c);
    assert_true(a[0] != b[0] && a[1] != b[1] && a[0] != c[0] && a[1] != c[1]);
    block_source(one, &left, b);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(block_tile_count(one, &left), 1);
    heightfield_unref(one);
    heightfield_unref(other);
    free(samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_has_the_samples_it_should),
        cmocka_unit_test(an_edit_renames_the_blocks_that_it_touches),
        cmocka_unit_test(names_differ_by_place_and_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
