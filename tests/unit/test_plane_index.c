/*
 * The index of points and edges in the plane beside a loop over all of them: every live item whose
 * box meets is found, dead ones never, and each node counts the live items below it.
 */
#include "terrain/mesh/plane_index.h"

#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool boxes_overlap(const struct plane_box *a, const struct plane_box *b)
{
    for (int i = 0; i < 4; i++)
        if (a->low[i] > b->high[i] || b->low[i] > a->high[i])
            return false;
    return true;
}

/* The live counts of all nodes against the items' flags. */
static void validate(const struct plane_index *index)
{
    uint32_t width = (index->count + PLANE_FANOUT - 1) / PLANE_FANOUT, span = PLANE_FANOUT;

    for (uint32_t level = 0; level < index->levels; level++, span *= PLANE_FANOUT) {
        for (uint32_t node = 0; node < width; node++) {
            unsigned live = 0;

            for (uint32_t i = node * span; i < (node + 1) * span && i < index->count; i++)
                live += index->is_live[index->order[i]];
            if (index->live[index->first[level] + node] != live)
                fail_msg("%u items, level %u, node %u: %u live items, counted %u", index->count,
                         level, node, live, (unsigned)index->live[index->first[level] + node]);
        }
        width = (width + PLANE_FANOUT - 1) / PLANE_FANOUT;
    }
}

static void compare(const struct plane_index *index, const struct vec2 *points, bool is_edges,
                    const struct plane_box *box)
{
    static uint8_t found[PLANE_ITEMS_MAX];
    struct plane_walk walk;
    uint32_t item;

    memset(found, 0, sizeof found);
    plane_walk_begin(&walk, index, box);
    while (plane_walk_next(&walk, &item)) {
        assert_in_range(item, 0, index->count - 1);
        assert_true(index->is_live[item]);
        assert_int_equal(found[item]++, 0);
    }
    for (uint32_t i = 0; i < index->count; i++) {
        struct vec2 ends[2] = {points[i], points[is_edges ? (i + 1) % index->count : i]};
        struct plane_box own = plane_box_of(ends, 2);

        if (index->is_live[i] && !found[i] && boxes_overlap(&own, box))
            fail_msg("item %u of %u is not found", i, index->count);
    }
}

static void live_items_are_found_as_by_a_loop(void **state)
{
    static const uint32_t counts[] = {1, 2, 7, 8, 9, 64, 65, 511, 513, 4096};
    static struct plane_index index;
    static struct vec2 points[PLANE_ITEMS_MAX];
    struct random random = {8};

    (void)state;
    for (size_t n = 0; n < 2 * sizeof counts / sizeof counts[0]; n++) {
        const uint32_t count = counts[n / 2];
        const bool is_edges = n % 2;
        size_t least = count;

        for (uint32_t i = 0; i < count; i++)
            points[i] = (struct vec2){random_in(&random, -9, 9), random_in(&random, -3, 3)};
        (is_edges ? plane_index_edges : plane_index_points)(&index, points, count);
        for (int round = 0; round < 60; round++) {
            const double size = pow(10, random_in(&random, -2, 1));
            struct vec2 corners[3], centre = points[random_below(&random, count)];
            size_t found = 0;
            struct plane_walk walk;
            uint32_t item;

            for (int k = 0; k < 3; k++)
                corners[k] = (struct vec2){centre.x + random_in(&random, -size, size),
                                           centre.y + random_in(&random, -size, size)};
            struct plane_box box = plane_box_of(corners, 3);

            compare(&index, points, is_edges, &box);
            plane_walk_begin(&walk, &index, &box);
            while (plane_walk_next(&walk, &item))
                found++;
            least = found < least ? found : least;
            for (uint32_t k = 0; k <= count / 50; k++)
                plane_index_set(&index, random_below(&random, count), random_below(&random, 3) > 0);
            validate(&index);
        }
        assert_true(count < 64 || least < count / 8); /* it leaves most of them out */
        for (uint32_t i = 0; i < count; i++)
            plane_index_set(&index, i, false);
        validate(&index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_items_are_found_as_by_a_loop),
    };

    return cmocka_run_group_tests_name("plane_index", tests, NULL, NULL);
}
