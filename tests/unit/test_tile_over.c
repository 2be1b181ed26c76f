/*
 * Tiles that hold only a part of their samples beside the same field of whole tiles.
 */
#include "terrain/field/edit.h"

#include "support/random.h"
#include "support/same_field.h"
#include "terrain/field_ray/ray.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/field_make.h"

/* Heights, one by one and as a batch, and rays of both kinds: the same bits. */
static void ask_both(const struct heightfield *a, const struct heightfield *b,
                     struct random *random)
{
    enum { COUNT = 256 };
    struct vec2 points[COUNT];
    struct ray rays[COUNT];
    struct ground_height heights[2][COUNT];
    struct ray_hit hits[2][COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        points[i] = (struct vec2){random_in(random, -1, 521), random_in(random, -1, 521)};
        rays[i] = (struct ray){{points[i].x, points[i].y, random_in(random, 3, 60)},
                               {random_in(random, -1, 1), random_in(random, -1, 1), -0.2},
                               1e4};
        rays[i].direction = vec3_unit(rays[i].direction);
    }
    heightfield_heights(a, points, COUNT, INTERPOLATION_TRIANGLE, heights[0]);
    heightfield_heights(b, points, COUNT, INTERPOLATION_TRIANGLE, heights[1]);
    heightfield_rays(a, rays, COUNT, hits[0]);
    heightfield_rays(b, rays, COUNT, hits[1]);
    for (size_t i = 0; i < COUNT; i++) {
        struct ground_height one[2] = {
            heightfield_interpolate(a, points[i], INTERPOLATION_TRIANGLE),
            heightfield_interpolate(b, points[i], INTERPOLATION_TRIANGLE)};
        struct ray_hit hit[2];

        assert_memory_equal(&one[0].height_m, &one[1].height_m, sizeof(double));
        assert_memory_equal(&heights[0][i].height_m, &heights[1][i].height_m, sizeof(double));
        assert_true(heights[0][i].status == heights[1][i].status);
        assert_true(hits[0][i].t == hits[1][i].t);
        for (int k = 0; k < 2; k++)
            if (!heightfield_ray(k ? b : a, &rays[i], RAY_CLOSEST, &hit[k], NULL))
                hit[k].t = INFINITY;
        assert_true(hit[0].t == hit[1].t && hit[0].t == hits[0][i].t);
    }
}

/* A tile of a fork has a quarter or half of the samples of its own; the rest is the other one's. */
static void a_forks_edit_keeps_what_it_changed(void **state)
{
    enum { SIDE = 521, EDITS = 40 };
    struct random random = {77};
    float *samples = malloc(SIDE * SIDE * sizeof *samples);
    struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, TRIANGULATION_ALTERNATING, 0};
    struct heightfield *base, *fork;
    uint64_t before;
    char where[80];
    struct err err;
    (void)state;

    for (size_t i = 0; i < SIDE * SIDE; i++)
        samples[i] = (float)random_in(&random, 0, 3);
    base = field_make(&spec, samples);
    fork = heightfield_ref(base);
    before = heightfield_all_tiles_bytes();
    for (uint32_t n = 0; n < EDITS; n++) {
        /* the first are in the first tile, in its first quarter but for the apron of the next */
        struct sample_rect rect = {random_below(&random, n < 4 ? 250 : SIDE - 4),
                                   random_below(&random, n < 4 ? 60 : SIDE - 4), 1, 1};
        float height = (float)random_in(&random, 5, 9);
        struct heightfield *next = heightfield_with_samples(fork, &rect, &height, &err), *made;

        assert_non_null(next);
        heightfield_share(next, fork, &rect);
        heightfield_unref(fork);
        fork = next;
        samples[rect.row * SIDE + rect.column] = height;
        if (n < 4)
            assert_in_range(heightfield_all_tiles_bytes() - before, 64 << 10, 100 << 10);
        made = field_make(&spec, samples);
        if (!same_field(fork, made, where, sizeof where))
            fail_msg("edit %u: %s", n, where);
        ask_both(fork, made, &random);
        assert_true(heightfield_validate(fork, &err));
        heightfield_unref(made);
        if (n == EDITS / 2) { /* what the fork needs of it stays */
            heightfield_unref(base);
            base = NULL;
        }
    }
    heightfield_unref(fork);
    assert_true(heightfield_all_tiles_bytes() < before);
    free(samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forks_edit_keeps_what_it_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
