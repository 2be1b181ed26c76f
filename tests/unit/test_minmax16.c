/*
 * A node of sixteen children in bytes: what it says of a child holds the child's heights, and by no
 * more than a step of 1/255 of all heights on either side.
 */
#include "terrain/field/minmax16.h"

#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void bytes_hold_the_heights_and_little_more(void **state)
{
    struct random random = {16};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        double size = pow(10, random_in(&random, -2, 4)), base = random_in(&random, -size, size);
        struct bounds children[MINMAX16_CHILDREN], all = BOUNDS_EMPTY;
        struct minmax16_node node;

        for (int i = 0; i < MINMAX16_CHILDREN; i++) {
            double low = base + random_in(&random, 0, size), high = low;

            if (random_below(&random, 4))
                high += random_in(&random, 0, size);
            children[i] = random_below(&random, 9) || i == 0
                              ? (struct bounds){(float)low, (float)high}
                              : BOUNDS_EMPTY;
            all = bounds_union(all, children[i]);
        }
        minmax16_build(&node, children);

        double allowed =
            1.05 * (double)(all.max - all.min) / 255 + 1e-6 * (fabs(base) + size) + 1e-30;

        for (int i = 0; i < MINMAX16_CHILDREN; i++) {
            double low = (double)node.base_m + node.min[i] * (double)node.step_m;
            double high = (double)node.base_m + node.max[i] * (double)node.step_m;
            double rounding = 1e-6 * (fabs(base) + size);

            if (!(children[i].min <= children[i].max)) {
                assert_true(node.min[i] > node.max[i]);
                continue;
            }
            assert_true(low <= (double)children[i].min + rounding);
            assert_true(high >= (double)children[i].max - rounding);
            assert_true((double)children[i].min - low <= allowed);
            assert_true(high - (double)children[i].max <= allowed);
        }
    }
}

static void without_data_no_child_has_heights(void **state)
{
    struct bounds children[MINMAX16_CHILDREN];
    struct minmax16_node node;

    (void)state;
    for (int i = 0; i < MINMAX16_CHILDREN; i++)
        children[i] = BOUNDS_EMPTY;
    minmax16_build(&node, children);
    for (int i = 0; i < MINMAX16_CHILDREN; i++)
        assert_true(node.min[i] > node.max[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_hold_the_heights_and_little_more),
        cmocka_unit_test(without_data_no_child_has_heights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
