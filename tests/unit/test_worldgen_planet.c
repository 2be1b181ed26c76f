/*
 * The demo world's small planet and the ferry, as lists of polygons: the ground and the sky are
 * closed, what is said of places holds, the ways around are free, and the files are the same bytes
 * everywhere.
 */
#include "base/content_hash.h"
#include "deploy/demo/planet.h"
#include "deploy/demo/village.h"
#include "deploy/demo/village_plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PLANET = 2, EDGES_MAX = 1 << 16 };

struct edge {
    struct vec3 from, to;
};

static int edge_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct edge));
}

static struct vec3 positive(struct vec3 v)
{
    return (struct vec3){v.x + 0.0, v.y + 0.0, v.z + 0.0}; /* -0 is 0 */
}

/* Each edge once there and once back: no gap, no T-junction, all polygons the same way round. */
static void expect_closed(const char *what, const struct polygons *list)
{
    static struct edge edges[EDGES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        for (uint32_t k = 0; k < list->at[i].corners; k++) {
            const struct vec3 *at = list->at[i].at;

            assert_true(count < EDGES_MAX);
            edges[count++] =
                (struct edge){positive(at[k]), positive(at[(k + 1) % list->at[i].corners])};
        }
    qsort(edges, count, sizeof *edges, edge_compare);
    for (size_t i = 0; i < count; i++) {
        struct edge back = {edges[i].to, edges[i].from};

        if (i > 0 && edge_compare(&edges[i - 1], &edges[i]) == 0)
            fail_msg("%s: an edge is there twice", what);
        if (!bsearch(&back, edges, count, sizeof *edges, edge_compare))
            fail_msg("%s: the edge from %g %g %g is open", what, edges[i].from.x, edges[i].from.y,
                     edges[i].from.z);
    }
}

static struct vec3 front_of(const struct polygon *p)
{
    return vec3_unit(vec3_cross(vec3_sub(p->at[1], p->at[0]), vec3_sub(p->at[2], p->at[0])));
}

static void ground_and_sky_are_closed_around_the_centre(void **state)
{
    static void (*const makes[])(struct polygons *) = {planet_ground, planet_sky};
    static const char *const names[] = {"ground", "sky"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct polygons list = {0};

        makes[i](&list);
        assert_false(list.no_memory);
        expect_closed(names[i], &list);
        for (size_t k = 0; k < list.count; k++) {
            struct vec3 up = vec3_unit(list.at[k].at[0]);

            if (!(vec3_dot(front_of(&list.at[k]), up) > 0.3))
                fail_msg("%s: polygon %zu leans over, or looks in", names[i], k);
        }
        polygons_destroy(&list);
    }
}

static void the_ground_has_seas_and_mountains(void **state)
{
    struct polygons list = {0};
    size_t sea = 0;
    double highest = 0;

    (void)state;
    planet_ground(&list);
    for (size_t i = 0; i < list.count; i++) {
        double high = vec3_length(list.at[i].at[0]) - PLANET_RADIUS_M;

        assert_true(high > -0.01);
        sea += high < 0.01;
        highest = high > highest ? high : highest;
    }
    assert_true(sea * 10 > list.count && sea * 10 < 8 * list.count);
    assert_true(highest > 5 && highest < 20);
    polygons_destroy(&list);
}

/* Who walks in the planes y = 0 and z = 0 meets nothing; the tower stands where the page says. */
static void trees_stand_beside_the_ways(void **state)
{
    const struct vec3 tower =
        vec3_unit((struct vec3){PLANET_TOWER_X, PLANET_TOWER_Y, PLANET_TOWER_Z});
    struct polygons list = {0};
    double top = 0;
    size_t of_tower = 0;

    (void)state;
    planet_trees(&list);
    assert_false(list.no_memory);
    for (size_t i = 0; i < list.count; i++) {
        bool is_tower = !strcmp(list.at[i].group, "tower");

        of_tower += is_tower;
        for (uint32_t k = 0; k < list.at[i].corners; k++) {
            struct vec3 at = list.at[i].at[k];
            double r = vec3_length(at);

            assert_true(r > PLANET_RADIUS_M - 1.5);
            assert_true(fabs(at.y) > 1.5 && fabs(at.z) > 1.5);
            if (is_tower) {
                assert_true(vec3_length(vec3_sub(vec3_unit(at), tower)) * r < 4);
                top = r > top ? r : top;
            }
        }
    }
    assert_int_equal(of_tower, 14);
    assert_true(top > PLANET_RADIUS_M + 18 && top < PLANET_RADIUS_M + 26);
    assert_true(list.count > 1000);
    polygons_destroy(&list);
}

static void the_ferry_fits_its_pond(void **state)
{
    struct polygons list = {0};
    size_t level = 0;

    (void)state;
    garden_ferry(&list);
    for (size_t i = 0; i < list.count; i++)
        for (uint32_t k = 0; k < list.at[i].corners; k++) {
            struct vec3 at = list.at[i].at[k];

            assert_true(at.x >= 276 && at.x <= 284 && at.y >= 77 && at.y <= 83);
            assert_true(at.z >= FERRY_KEEL_M && at.z <= FERRY_ROOF_M);
            level += at.z == village_ground_at((struct vec2){284, 80}).z;
        }
    assert_true(level >= 4); /* the deck is level with the bank */
    polygons_destroy(&list);
}

static void files_are_the_same_everywhere(void **state)
{
    static const struct {
        uint32_t locale, layer;
        uint64_t golden; /* FNV-1a, 64 bits */
    } files[] = {
        {1, 1, 0x8165c449aa4ba8de},
        {PLANET, 0, 0xc58117909b58dde0},
        {PLANET, 1, 0x75bea3d9802c588e},
        {PLANET, 2, 0x8fb8e51ceb065cdc},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const struct village_locale *locale = &village_locales[files[i].locale];
        struct err err = {.code = ERR_OK};
        uint64_t sum;
        size_t length;
        char *text;

        if (village_layer_obj(locale, &locale->layers[files[i].layer], &text, &length, &err))
            fail_msg("%s", err.msg);
        sum = fnv1a(FNV1A_EMPTY, text, length);
        free(text);
        if (sum != files[i].golden)
            fail_msg("%s %s is 0x%016llx, not 0x%016llx", locale->id,
                     locale->layers[files[i].layer].id, (unsigned long long)sum,
                     (unsigned long long)files[i].golden);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ground_and_sky_are_closed_around_the_centre),
        cmocka_unit_test(the_ground_has_seas_and_mountains),
        cmocka_unit_test(trees_stand_beside_the_ways),
        cmocka_unit_test(the_ferry_fits_its_pond),
        cmocka_unit_test(files_are_the_same_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
