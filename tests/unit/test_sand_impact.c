/* Craters by the law, balls, and the taking back of craters that granules refine. */
#include "formats/polygon/polygon_file.h"
#include "sand/body/ball.h"
#include "sand/impact/crater.h"
#include "sand/impact/fates.h"
#include "sand/patch/patch.h"
#include "terrain/mesh/solid.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct crater crater(double mass_kg, double radius_m, double speed)
{
    return crater_of(&(struct crater_body){mass_kg, radius_m, speed});
}

static void depth_is_in_its_own_law(void **state)
{
    (void)state;
    for (double speed = 0; speed < 100; speed = 2 * speed + 1) {
        const struct crater made = crater(9000, 1, speed);
        const double density = 9000 / (4 * M_PI / 3), h = speed * speed / 19.62 + made.depth_m;

        assert_true(fabs(made.depth_m - 0.1075 * sqrt(density / 1200) * 2 * cbrt(h / 2)) < 1e-9);
        assert_true(made.radius_m > 0);
    }
}

static void depth_grows_with_a_third_of_the_energy(void **state)
{
    (void)state;
    for (double speed = 4; speed < 200; speed *= sqrt(2)) {
        const double power =
            log2(crater(9000, 1, speed * sqrt(2)).depth_m / crater(9000, 1, speed).depth_m);

        assert_true(power > 0.25 && power < 0.45);
    }
}

static void a_ball_is_a_solid_of_nearly_its_volume(void **state)
{
    const double radii[] = {0.01, 0.5, 100};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char text[BALL_OBJ_BYTES];
        const size_t length = ball_obj(radii[i], text);
        struct polygon_set mesh = {.vertex_count = 0};
        struct solid solid;
        struct err err;

        assert_int_equal(
            polygon_decode(POLYGON_OBJ, (const uint8_t *)text, length, NULL, NULL, &mesh, &err), 0);
        assert_int_equal(solid_measure(mesh.vertices, mesh.corners, mesh.starts, mesh.polygon_count,
                                       &solid, &err),
                         0);
        assert_true(fabs(solid.volume_m3 / (4 * M_PI / 3 * pow(radii[i], 3)) - 1) < 0.08);
        polygon_set_free(&mesh);
    }
}

/* ---- craters that are taken back ------------------------------------------------------------- */

enum { SIDE = 40 };

static uint64_t ended_at;
static int ended;

static void end(void *context, uint64_t patch, uint64_t revision, const char *why)
{
    (void)context;
    (void)patch;
    (void)why;
    ended_at = revision;
    ended++;
}

static struct heightfield *hills(void)
{
    const struct heightfield_spec spec = {
        .cols = SIDE, .rows = SIDE, .spacing_x_m = 0.5, .spacing_y_m = 0.5};
    float heights_m[SIDE * SIDE];
    struct err err;

    for (int i = 0; i < SIDE * SIDE; i++)
        heights_m[i] = (float)(3 * sin(i % SIDE * 0.3) + 2 * cos(i / SIDE * 0.2));
    return heightfield_create(&spec, heights_m, &err);
}

static void read_all(const struct heightfield *field, float *out)
{
    heightfield_read_samples(field, &(struct sample_rect){0, 0, SIDE, SIDE}, out);
}

static struct heightfield *edited(const struct heightfield *field, const struct edit *edit,
                                  struct sample_rect *rect)
{
    struct edit_outcome outcome;
    struct heightfield *out;
    struct err err;

    assert_int_equal(edit_evaluate(field, edit, 1 << 20, &outcome, &err), 0);
    out = heightfield_with_samples(field, &outcome.rect, outcome.heights_m, &err);
    *rect = outcome.rect;
    edit_outcome_free(&outcome);
    return out;
}

/* A crater dug into *field, as the call does it. */
static struct patch_dent *dig(struct heightfield **field, double x, double y)
{
    const struct crater made = crater(20000, 1, 10);
    const struct edit edit = crater_edit(&made, (struct vec2){x, y});
    struct patch_dent *dent = calloc(1, sizeof *dent);
    struct heightfield *after = edited(*field, &edit, &dent->rect);
    const size_t count = (size_t)dent->rect.cols * dent->rect.rows;
    float *before_m = malloc(count * sizeof *before_m);

    dent->added_m = malloc(count * sizeof *dent->added_m);
    heightfield_read_samples(*field, &dent->rect, before_m);
    heightfield_read_samples(after, &dent->rect, dent->added_m);
    for (size_t i = 0; i < count; i++)
        dent->added_m[i] -= before_m[i];
    dent->end = end;
    free(before_m);
    heightfield_unref(*field);
    *field = after;
    return dent;
}

static void a_crater_keeps_the_volume(void **state)
{
    struct heightfield *field = hills();
    float before_m[SIDE * SIDE], after_m[SIDE * SIDE];
    double sum = 0, most = 0;
    int changed = 0;

    (void)state;
    read_all(field, before_m);
    patch_dents_end(dig(&field, 10, 9), 0, 0, "");
    read_all(field, after_m);
    for (int i = 0; i < SIDE * SIDE; i++) {
        sum += (double)after_m[i] - (double)before_m[i];
        changed += after_m[i] != before_m[i];
        most = fmax(most, fabs((double)after_m[i]));
    }
    assert_true(changed > 20);
    assert_true(fabs(sum) <= 0.5 * 0x1p-24 * 2 * most * changed);
    heightfield_unref(field);
}

static void a_crater_is_taken_back_by_the_edit_that_writes(void **state)
{
    struct heightfield *field = hills(), *after, *without;
    struct patch_dent *first = dig(&field, 10, 9), *second = dig(&field, 11, 10);
    struct convert_change change = {.rect = {30, 30, 2, 1}, .heights_m = malloc(2 * sizeof(float))};
    float before_m[SIDE * SIDE], after_m[SIDE * SIDE];
    struct heightfield *plain = hills();
    struct sample_rect rect;
    struct err err;

    (void)state;
    read_all(plain, before_m);
    change.heights_m[0] = 1;
    change.heights_m[1] = -2;
    before_m[30 * SIDE + 30] += 1;
    before_m[30 * SIDE + 31] -= 2;
    without = patch_dent_undo(field, second, &err);
    assert_non_null(without);
    heightfield_unref(without);
    first->next = second;
    assert_int_equal(patch_dents_take_back(first, &change, &err), 0);
    after = edited(field, &(struct edit){EDIT_ADD, change.rect, change.heights_m, {0}}, &rect);
    read_all(after, after_m);
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_true(fabsf(after_m[i] - before_m[i]) <= 1e-6f);
    ended = 0;
    patch_dents_end(first, 1, 7, "");
    assert_int_equal(ended, 2);
    assert_int_equal(ended_at, 7);
    convert_change_free(&change);
    heightfield_unref(after);
    heightfield_unref(plain);
    heightfield_unref(field);
}

static void without_craters_a_change_stays(void **state)
{
    struct convert_change change = {.rect = {0, 0, 0, 0}};
    struct err err;

    (void)state;
    assert_int_equal(patch_dents_take_back(NULL, &change, &err), 0);
    assert_null(change.heights_m);
}

/* ---- fates ----------------------------------------------------------------------------------- */

static struct fate last;

static void told(void *context, const struct fate *fate)
{
    (*(int *)context)++;
    last = *fate;
}

static void a_fate_is_told_once_and_kept_for_long(void **state)
{
    struct err err;
    struct fates *fates = fates_create(&err);
    struct fate fate = {.locale = "a", .number = 5, .revision = 5, .is_refined = true};
    struct fates_stats stats;
    int calls = 0;

    (void)state;
    assert_int_equal(fates_add(fates, &fate, &err), 0);
    assert_true(fates_wait(fates, "a", 5, told, &calls));
    assert_false(fates_wait(fates, "b", 5, told, &calls));
    fates_set_patch(fates, "a", 5, 3);
    assert_true(fates_find(fates, "a", 5, &fate));
    assert_true(!fate.is_written && fate.patch == 3);
    fates_end(fates, "a", 5, 3, 9, "");
    fates_end(fates, "a", 5, 0, 0, "again");
    assert_int_equal(calls, 1);
    assert_true(last.is_written && last.is_refined && last.revision == 9);
    fate = (struct fate){.locale = "b", .is_written = true};
    for (fate.number = 1; fate.number < IMPACTS_KEPT; fate.number++)
        fates_add(fates, &fate, &err);
    assert_true(fates_find(fates, "a", 5, &last));
    fates_add(fates, &fate, &err);
    assert_false(fates_find(fates, "a", 5, &last));
    fates_stats(fates, &stats);
    assert_int_equal(stats.refined, 1);
    assert_int_equal(stats.craters, IMPACTS_KEPT);
    assert_int_equal(stats.pending, 0);
    fates_destroy(fates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_is_in_its_own_law),
        cmocka_unit_test(depth_grows_with_a_third_of_the_energy),
        cmocka_unit_test(a_ball_is_a_solid_of_nearly_its_volume),
        cmocka_unit_test(a_crater_keeps_the_volume),
        cmocka_unit_test(a_crater_is_taken_back_by_the_edit_that_writes),
        cmocka_unit_test(without_craters_a_change_stays),
        cmocka_unit_test(a_fate_is_told_once_and_kept_for_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
