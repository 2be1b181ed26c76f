/*
 * Swept boxes: which parts of space they meet.
 */
#include "terrain/swept_box.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Swept boxes beside and at the cube from 10 to 20, one row for each way to miss it. */
static void a_box_is_met_only_where_it_is_swept(void **state)
{
    static const struct {
        struct swept_box extent;
        bool is_met;
    } rows[] = {
        {{{0, 15, 15}, {1, 0, 0}, 0, 100, {0, 0, 0}, false, false}, true},
        {{{0, 15, 15}, {1, 0, 0}, 0, INFINITY, {0, 0, 0}, false, false}, true},
        {{{0, 15, 15}, {1, 0, 0}, 0, 9, {0, 0, 0}, false, false}, false},
        {{{0, 15, 15}, {1, 0, 0}, 21, 30, {0, 0, 0}, false, false}, false},
        {{{0, 15, 15}, {1, 0, 0}, 0, 9, {1, 0, 0}, false, false}, true},
        {{{0, 15, 15}, {-1, 0, 0}, 0, 100, {0, 0, 0}, false, false}, false},
        {{{0, 15, 15}, {-1, 0, 0}, -100, 0, {0, 0, 0}, false, false}, true},
        {{{0, 21, 15}, {1, 0, 0}, 0, 100, {0, 0, 0}, false, false}, false},
        {{{0, 21, 15}, {1, 0, 0}, 0, 100, {0, 1, 0}, false, false}, true},
        {{{0, 15, 9}, {1, 0, 0}, 0, 100, {0, 0, 0}, false, false}, false},
        {{{15, 15, 15}, {0, 0, 0}, 0, 0, {0, 0, 0}, false, false}, true},
        {{{21, 15, 15}, {0, 0, 0}, 0, 0, {0, 0, 0}, false, false}, false},
        {{{15, 9, 15}, {0, 0, 0}, 0, 0, {0, 0, 0}, false, false}, false},
        {{{15, 15, 21}, {0, 0, 0}, 0, 0, {0, 0, 0}, false, false}, false},
        {{{0, 0, 0}, {1, 1, 1}, 0, 100, {0, 0, 0}, false, false}, true},
        {{{0, 11, 0}, {1, 1, 1}, 0, 100, {0, 0, 0}, false, false}, false},
        {{{0, 0, 0}, {0, 0, 0}, 0, 0, {0, 0, 0}, true, false}, true},
        {{{15, 15, 15}, {0, 0, 0}, 0, 0, {9, 9, 9}, false, true}, false},
    };
    static const struct box3 cube = {{10, 10, 10}, {20, 20, 20}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (swept_box_meets(&rows[i].extent, &cube) != rows[i].is_met)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_is_met_only_where_it_is_swept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
