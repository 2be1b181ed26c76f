/*
 * The demo world: golden numbers of each landscape, their character, the folder they are written
 * to, and enlarged DEMs.
 */
#include "deploy/demo/demo.h"
#include "deploy/demo/enlarge.h"
#include "deploy/demo/landscape.h"
#include "deploy/demo/locale_file.h"
#include "deploy/demo/world_folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { SIZE = 256, SEED = 1 };

/*
 * Bits of each landscape at 256 samples and seed 1. A change of any of them is a change of every
 * demo world out there: intended, then print and pin the new one; else a machine, compiler or
 * thread count that computes something else.
 */
static const uint64_t golden[LANDSCAPE_COUNT] = {0x0ff04e52db878c0a, 0x73c1b5012e51a074,
                                                 0xc8240a2038244dee}; /* as landscapes[] */

static struct grid make(uint32_t index, uint32_t size, uint32_t seed, uint32_t threads)
{
    struct grid ground = {0};
    struct err err;

    if (landscapes[index].make(size, seed, threads, &ground, &err))
        fail_msg("%s: %s", landscapes[index].id, err.msg);
    return ground;
}

static uint32_t index_of(const char *id)
{
    for (uint32_t i = 0; i < LANDSCAPE_COUNT; i++)
        if (!strcmp(landscapes[i].id, id))
            return i;
    fail_msg("there is no landscape %s", id);
    return 0;
}

static void landscapes_are_the_same_bits_for_one_and_two_threads(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LANDSCAPE_COUNT; i++) {
        for (uint32_t threads = 1; threads <= 2; threads++) {
            struct grid ground = make(i, SIZE, SEED, threads);
            uint64_t digest = grid_digest(&ground);

            grid_destroy(&ground);
            if (digest != golden[i])
                fail_msg("%s on %u threads: 0x%016llx, not 0x%016llx", landscapes[i].id, threads,
                         (unsigned long long)digest, (unsigned long long)golden[i]);
        }
    }
}

static void seeds_give_different_landscapes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LANDSCAPE_COUNT; i++) {
        struct grid one = make(i, 128, 1, 1), two = make(i, 128, 2, 1);

        assert_int_not_equal(grid_digest(&one), grid_digest(&two));
        grid_destroy(&one);
        grid_destroy(&two);
    }
}

static size_t count_holes(const struct grid *ground)
{
    size_t holes = 0;

    for (size_t i = 0; i < grid_count(ground); i++)
        holes += isnan(ground->at[i]) != 0;
    return holes;
}

static void highlands_reach_from_zero_to_nine_hundred_metres(void **state)
{
    struct grid ground = make(index_of("highlands"), SIZE, SEED, 1);
    float least, greatest;

    (void)state;
    grid_range(&ground, &least, &greatest);
    if (!(least >= 0 && least < 10 && greatest > 880 && greatest < 920))
        fail_msg("highlands reach from %g to %g", (double)least, (double)greatest);
    assert_int_equal(count_holes(&ground), 0);
    assert_int_equal(ground.cols, SIZE);
    assert_int_equal(ground.rows, SIZE);
    grid_destroy(&ground);
}

static void islands_have_land_beaches_and_sea_and_no_hole(void **state)
{
    struct grid ground = make(index_of("islands"), SIZE, SEED, 1);
    size_t land = 0, shore = 0;
    float least, greatest;

    (void)state;
    grid_range(&ground, &least, &greatest);
    for (size_t i = 0; i < grid_count(&ground); i++) {
        land += ground.at[i] > 0;
        shore += fabsf(ground.at[i]) < 2;
    }
    if (!(least > -80 && least < -30 && greatest > 80 && greatest < 400))
        fail_msg("islands reach from %g to %g", (double)least, (double)greatest);
    if (!(land > grid_count(&ground) / 10 && land < grid_count(&ground) * 6 / 10))
        fail_msg("%zu of %zu samples are land", land, grid_count(&ground));
    if (!(shore > grid_count(&ground) / 50))
        fail_msg("only %zu samples lie within 2 m of the sea", shore);
    assert_int_equal(count_holes(&ground), 0);
    for (uint32_t i = 0; i < ground.cols; i++)
        assert_true(ground.at[i] < 0); /* an island never runs over the edge */
    grid_destroy(&ground);
}

static void the_mesa_has_one_quarry_and_is_not_square(void **state)
{
    struct grid ground = make(index_of("mesa"), SIZE, SEED, 1);
    size_t holes = count_holes(&ground), count = grid_count(&ground);

    (void)state;
    if (!(holes > count / 1000 && holes < count / 20))
        fail_msg("%zu of %zu samples are holes", holes, count);
    assert_int_equal(ground.rows, SIZE * 3 / 4);
    for (uint32_t r = 0; r < ground.rows; r++) /* the outline lies inside the field */
        assert_true(isfinite(ground.at[(size_t)r * ground.cols]) != 0);
    grid_destroy(&ground);
}

/* ---- codes -------------------------------------------------------------------------------- */

static void codes_lose_at_most_half_a_step_and_keep_holes(void **state)
{
    static const float spans[][2] = {{0, 900}, {-45, 150}, {0, 0.5f}, {-11000, 8848}, {3, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        float samples[] = {spans[i][0], spans[i][1], (spans[i][0] + spans[i][1]) / 3, NAN};
        struct grid ground = {.cols = 2, .rows = 2, .spacing_m = 1, .at = samples};
        struct height_codes codes = height_codes_plan(&ground);

        assert_true(codes.has_holes);
        assert_int_equal(height_code(&codes, NAN), 0);
        for (int k = 0; k < 3; k++) {
            uint16_t code = height_code(&codes, samples[k]);
            double back = codes.offset_m + codes.scale_m * code;

            if (!(code && fabs(back - samples[k]) <= codes.scale_m / 2))
                fail_msg("%g became code %u, which is %g at a step of %g", (double)samples[k], code,
                         back, codes.scale_m);
        }
    }
}

/* ---- folders ------------------------------------------------------------------------------ */

struct folder {
    char root[64], world[96], path[160];
};

static void folder_make(struct folder *folder)
{
    strcpy(folder->root, "/tmp/test_worldgen_XXXXXX");
    assert_non_null(mkdtemp(folder->root));
    snprintf(folder->world, sizeof folder->world, "%s/world", folder->root);
}

static const char *folder_path(struct folder *folder, const char *name)
{
    snprintf(folder->path, sizeof folder->path, "%s/%s", folder->world, name);
    return folder->path;
}

static void folder_remove_meshes(struct folder *folder, const struct village_locale *locale)
{
    char name[64];

    for (uint32_t i = 0; i < locale->layer_count; i++) {
        snprintf(name, sizeof name, "%s/%s.obj", locale->id, locale->layers[i].id);
        remove(folder_path(folder, name));
    }
    snprintf(name, sizeof name, "%s/locale.json", locale->id);
    remove(folder_path(folder, name));
    remove(folder_path(folder, locale->id));
}

static void folder_remove_world(struct folder *folder)
{
    static const char *const files[] = {"ground.png", "locale.json", ""};
    char name[64];

    for (uint32_t i = 0; i < LANDSCAPE_COUNT; i++)
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof name, "%s/%s", landscapes[i].id, files[k]);
            remove(folder_path(folder, name));
        }
    for (uint32_t i = 0; i < VILLAGE_LOCALE_COUNT; i++)
        folder_remove_meshes(folder, &village_locales[i]);
    remove(folder_path(folder, ".kota-worldgen"));
    remove(folder->world);
    if (rmdir(folder->root)) /* whatever else was left there fails the test */
        fail_msg("%s is not empty after the world was removed", folder->root);
}

static enum err_code demo(const struct folder *folder, struct err *err)
{
    struct demo_options options = {
        .dir = folder->world, .size = 128, .seed = SEED, .threads = 2, .format = GROUND_PNG};

    return demo_write(&options, err);
}

static void a_written_world_reads_back_within_half_a_step(void **state)
{
    struct folder folder;
    struct err err;

    (void)state;
    folder_make(&folder);
    if (demo(&folder, &err) || demo(&folder, &err)) /* the second replaces the first */
        fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < LANDSCAPE_COUNT; i++) {
        struct grid ground = make(i, 128, SEED, 1);
        struct height_codes codes = height_codes_plan(&ground);
        struct heightfield *field = locale_read(folder_path(&folder, landscapes[i].id), &err);

        if (!field)
            fail_msg("%s", err.msg);
        assert_int_equal(heightfield_spec(field)->triangulation, landscapes[i].triangulation);
        assert_true(heightfield_spec(field)->spacing_x_m >= ground.spacing_m);
        for (uint32_t r = 0; r < ground.rows; r++)
            for (uint32_t c = 0; c < ground.cols; c++) {
                double want = ground.at[(size_t)r * ground.cols + c];
                double got = heightfield_sample(field, c, r);

                if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= codes.scale_m / 2))
                    fail_msg("%s: sample %u, %u is %g, not %g", landscapes[i].id, c, r, got, want);
            }
        heightfield_unref(field);
        grid_destroy(&ground);
    }
    folder_remove_world(&folder);
}

static void a_foreign_folder_is_refused_and_left_alone(void **state)
{
    struct folder folder;
    struct err err;
    FILE *file;

    (void)state;
    folder_make(&folder);
    assert_int_equal(mkdir(folder.world, 0777), 0);
    file = fopen(folder_path(&folder, "letter"), "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(demo(&folder, &err), ERR_CONFLICT);
    if (!strstr(err.msg, folder.world) || !strstr(err.msg, "not empty"))
        fail_msg("the message does not say which folder and why: %s", err.msg);
    assert_int_equal(remove(folder_path(&folder, "letter")), 0);
    assert_int_equal(demo(&folder, &err), ERR_OK); /* an empty one is welcome */
    folder_remove_world(&folder);
}

/* ---- enlarging and drawing ---------------------------------------------------------------- */

static void enlarging_keeps_flat_ground_flat_and_holes_open(void **state)
{
    float samples[16], out[31 * 31];
    struct grid from = {.cols = 4, .rows = 4, .spacing_m = 30, .at = samples};

    (void)state;
    for (int i = 0; i < 16; i++)
        samples[i] = 7;
    samples[5] = NAN;
    enlarge_rows(&from, 31, 1, 0, 31, out);
    for (int r = 0; r < 31; r++)
        for (int c = 0; c < 31; c++) {
            int hole = abs(c - 10) < 10 && abs(r - 10) < 10;
            float got = out[31 * r + c];

            if (hole ? !isnan(got) : !(fabsf(got - 7) < 1e-5f))
                fail_msg("sample %d, %d is %g, %s", c, r, (double)got, hole ? "not NaN" : "not 7");
        }
}

static void enlarged_ground_stays_near_its_source_and_is_rougher(void **state)
{
    enum { FROM = 9, SIDE = 65 };
    float samples[FROM * FROM], *out = malloc(SIDE * SIDE * sizeof *out), row[SIDE];
    struct grid from = {.cols = FROM, .rows = FROM, .spacing_m = 30, .at = samples};
    double bend = 0;

    (void)state;
    assert_non_null(out);
    for (int r = 0; r < FROM; r++)
        for (int c = 0; c < FROM; c++)
            samples[FROM * r + c] = (float)(10 * c + 5 * r);
    enlarge_rows(&from, SIDE, 1, 0, SIDE, out);
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) {
            double off = out[SIDE * r + c] - (10 * c + 5 * r) / 8.0;

            if (!(fabs(off) < 4))
                fail_msg("sample %d, %d is off the plane by %g", c, r, off);
            bend += fabs(off);
        }
    assert_true(bend / (SIDE * SIDE) > 0.1);
    enlarge_rows(&from, SIDE, 1, 17, 18, row); /* any row by itself is the same */
    assert_memory_equal(row, out + 17 * SIDE, sizeof row);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(landscapes_are_the_same_bits_for_one_and_two_threads),
        cmocka_unit_test(seeds_give_different_landscapes),
        cmocka_unit_test(highlands_reach_from_zero_to_nine_hundred_metres),
        cmocka_unit_test(islands_have_land_beaches_and_sea_and_no_hole),
        cmocka_unit_test(the_mesa_has_one_quarry_and_is_not_square),
        cmocka_unit_test(codes_lose_at_most_half_a_step_and_keep_holes),
        cmocka_unit_test(a_written_world_reads_back_within_half_a_step),
        cmocka_unit_test(a_foreign_folder_is_refused_and_left_alone),
        cmocka_unit_test(enlarging_keeps_flat_ground_flat_and_holes_open),
        cmocka_unit_test(enlarged_ground_stays_near_its_source_and_is_rougher),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
