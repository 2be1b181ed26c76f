/*
 * Edits of polygon sets: numbers, gaps, limits, two states compared, and the bytes of the log.
 */
#include "formats/polygon/polygon_edit.h"

#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct err err;

/* `count` triangles, the i-th at z = first + i. */
static struct polygon_set triangles(size_t count, double first)
{
    struct polygon_set set;

    assert_int_equal(polygon_set_allocate(3 * count, count, 3 * count, &set, &err), ERR_OK);
    for (size_t i = 0; i < 3 * count; i++) {
        set.vertices[i] = (struct vec3){i % 3 == 1, i % 3 == 2, first + (double)(i / 3)};
        set.corners[i] = (uint32_t)i;
    }
    for (size_t i = 0; i <= count; i++)
        set.starts[i] = (uint32_t)(3 * i);
    return set;
}

static struct polygon_edit edit_of(size_t added, double first, const uint32_t *removed,
                                   size_t removed_count)
{
    struct polygon_edit edit = {.removed = malloc((removed_count + 1) * sizeof *edit.removed),
                                .removed_count = removed_count};

    assert_non_null(edit.removed);
    for (size_t i = 0; i < removed_count; i++)
        edit.removed[i] = removed[i];
    if (added > 0)
        edit.add = triangles(added, first);
    return edit;
}

/* The height of a polygon; NAN of a gap. */
static double height_of(const struct polygon_set *set, size_t number)
{
    return set->starts[number] < set->starts[number + 1]
               ? set->vertices[set->corners[set->starts[number]]].z
               : NAN;
}

static void numbers_are_given_once(void **state)
{
    struct polygon_set set = triangles(3, 0), next, last;
    struct polygon_edit edit = edit_of(2, 10, (const uint32_t[]){1}, 1);
    struct polygon_edit all = edit_of(1, 20, (const uint32_t[]){0, 4}, 2);

    (void)state;
    assert_int_equal(polygon_set_edited(&set, &edit, &next, &err), ERR_OK);
    assert_int_equal(next.polygon_count, 5);
    assert_true(height_of(&next, 0) == 0 && isnan(height_of(&next, 1)));
    assert_true(height_of(&next, 3) == 10 && height_of(&next, 4) == 11);
    assert_int_equal(next.vertex_count, 12); /* those of the removed one are gone */
    assert_int_equal(polygon_set_count(&next), 4);
    assert_int_equal(polygon_set_edited(&next, &all, &last, &err), ERR_OK);
    assert_int_equal(last.polygon_count, 6);
    assert_true(isnan(height_of(&last, 4)) && height_of(&last, 5) == 20);
    polygon_set_free(&set);
    polygon_set_free(&next);
    polygon_set_free(&last);
    polygon_edit_free(&edit);
    polygon_edit_free(&all);
}

static void what_cannot_be_removed_is_named(void **state)
{
    struct polygon_limits limits = polygon_limits_default;
    struct polygon_set set = triangles(3, 0), next;
    struct polygon_edit edit = edit_of(0, 0, (const uint32_t[]){1}, 1);
    struct polygon_edit far = edit_of(0, 0, (const uint32_t[]){3}, 1);
    struct polygon_edit more = edit_of(2, 5, NULL, 0);

    (void)state;
    assert_int_equal(polygon_edit_check(&set, &edit, &limits, &err), ERR_OK);
    assert_int_equal(polygon_set_edited(&set, &edit, &next, &err), ERR_OK);
    assert_int_equal(polygon_edit_check(&next, &edit, &limits, &err), ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "polygon 1 any more"));
    assert_int_equal(polygon_edit_check(&set, &far, &limits, &err), ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "polygon 3"));
    limits.polygons_max = 4;
    assert_int_equal(polygon_edit_check(&set, &more, &limits, &err), ERR_TOO_LARGE);
    assert_true(err.limit == 4 && err.got == 5);
    assert_int_equal(polygon_edit_check(&next, &more, &limits, &err), ERR_OK);
    polygon_set_free(&set);
    polygon_set_free(&next);
    polygon_edit_free(&edit);
    polygon_edit_free(&far);
    polygon_edit_free(&more);
}

/* Numbers run out long before an index does. */
static void gaps_are_bounded(void **state)
{
    const struct polygon_limits limits = {.polygons_max = 2, .corners_max = 9, .vertices_max = 9};
    struct polygon_set set = triangles(1, 0), next;
    uint32_t number = 0;
    int edits = 0;

    (void)state;
    for (;; edits++) {
        struct polygon_edit edit = edit_of(1, edits, &number, 1);
        enum err_code code = polygon_edit_check(&set, &edit, &limits, &err);

        if (code == ERR_OK) {
            assert_int_equal(polygon_set_edited(&set, &edit, &next, &err), ERR_OK);
            polygon_set_free(&set);
            set = next;
            number = (uint32_t)set.polygon_count - 1;
        }
        polygon_edit_free(&edit);
        if (code != ERR_OK)
            break;
    }
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_int_equal(edits, 2 * POLYGON_NUMBERS_TIMES - 1);
    assert_int_equal(set.vertex_count, 3);
    polygon_set_free(&set);
}

static bool is_same_set(const struct polygon_set *a, const struct polygon_set *b)
{
    if (a->polygon_count != b->polygon_count || a->vertex_count != b->vertex_count ||
        memcmp(a->starts, b->starts, (a->polygon_count + 1) * sizeof *a->starts) != 0)
        return false;
    return memcmp(a->vertices, b->vertices, a->vertex_count * sizeof *a->vertices) == 0 &&
           memcmp(a->corners, b->corners, a->starts[a->polygon_count] * sizeof *a->corners) == 0;
}

enum { EDITS = 40 };

/* One by one, all at once, through bytes, and as the difference: the same set. */
static void edits_together_are_edits_one_by_one(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct random random = {seed};
        struct polygon_edit edits[EDITS], between;
        struct polygon_set first = triangles(10, 0), now = triangles(10, 0), next, all;

        (void)state;
        for (int i = 0; i < EDITS; i++) {
            uint32_t removed[4];
            size_t count = 0;

            for (uint32_t n = 0; n < now.polygon_count && count < 4; n++)
                if (!isnan(height_of(&now, n)) && random_below(&random, 12) == 0)
                    removed[count++] = n;
            edits[i] = edit_of(random_below(&random, 4), 100 * i, removed, count);
            assert_int_equal(polygon_set_edited(&now, &edits[i], &next, &err), ERR_OK);
            polygon_set_free(&now);
            now = next;
        }
        assert_int_equal(polygon_set_edited_all(&first, edits, EDITS, &all, &err), ERR_OK);
        assert_int_equal(polygon_set_count(&now), polygon_set_count(&all));
        for (size_t i = 0; i < now.polygon_count; i++)
            assert_true(height_of(&now, i) == height_of(&all, i) ||
                        (isnan(height_of(&now, i)) && isnan(height_of(&all, i))));
        assert_int_equal(polygon_edit_between(&first, &all, &between, &err), ERR_OK);
        assert_int_equal(polygon_set_edited(&first, &between, &next, &err), ERR_OK);
        assert_true(is_same_set(&next, &all));
        polygon_set_free(&next);
        polygon_set_free(&all);
        polygon_set_free(&first);
        polygon_set_free(&now);
        polygon_edit_free(&between);
        for (int i = 0; i < EDITS; i++)
            polygon_edit_free(&edits[i]);
    }
}

static void bytes_come_back_and_others_are_damage(void **state)
{
    struct polygon_edit edit = edit_of(2, 5, (const uint32_t[]){3, 9}, 2), back;
    size_t length;
    uint8_t *bytes = polygon_edit_encode(&edit, &length);

    (void)state;
    assert_non_null(bytes);
    assert_int_equal(polygon_edit_decode(bytes, length, &back, &err), ERR_OK);
    assert_true(is_same_set(&edit.add, &back.add));
    assert_int_equal(back.removed_count, 2);
    assert_memory_equal(back.removed, edit.removed, 2 * sizeof *back.removed);
    polygon_edit_free(&back);
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *less = malloc(cut + !cut); /* exact: a read behind it is seen */

        assert_non_null(less);
        memcpy(less, bytes, cut);
        assert_int_equal(polygon_edit_decode(less, cut, &back, &err), ERR_DAMAGED);
        free(less);
    }
    for (size_t i = 0; i < length; i++) { /* no byte leads out of an array */
        bytes[i] ^= 0x81;
        if (polygon_edit_decode(bytes, length, &back, &err) == ERR_OK)
            polygon_edit_free(&back);
        bytes[i] ^= 0x81;
    }
    free(bytes);
    polygon_edit_free(&edit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_given_once),
        cmocka_unit_test(what_cannot_be_removed_is_named),
        cmocka_unit_test(gaps_are_bounded),
        cmocka_unit_test(edits_together_are_edits_one_by_one),
        cmocka_unit_test(bytes_come_back_and_others_are_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
