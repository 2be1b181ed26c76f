/*
 * Solids: volumes by hand, and every way not to be one.
 */
#include "terrain/mesh/solid.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A box of 2×3×4 m at (100, 0, -4); the last vertex belongs to nothing. */
static const struct vec3 box_vertices[] = {{100, 0, -4}, {102, 0, -4}, {102, 3, -4},
                                           {100, 3, -4}, {100, 0, 0},  {102, 0, 0},
                                           {102, 3, 0},  {100, 3, 0},  {1e9, 1e9, 1e9}};
static const uint32_t box_corners[] = {0, 2, 1, 0, 3, 2, 4, 5, 6, 4, 6, 7, 0, 1, 5, 0, 5, 4,
                                       1, 2, 6, 1, 6, 5, 2, 3, 7, 2, 7, 6, 3, 0, 4, 3, 4, 7};
enum { BOX_TRIANGLES = 12 };

static enum err_code measure(const struct vec3 *vertices, const uint32_t *corners, size_t count,
                             struct solid *out, struct err *err)
{
    uint32_t starts[64];

    for (uint32_t i = 0; i <= count; i++)
        starts[i] = 3 * i;
    return solid_measure(vertices, corners, starts, count, out, err);
}

static void a_box_is_measured(void **state)
{
    struct solid solid;
    struct err err = {.msg = ""};

    (void)state;
    assert_int_equal(measure(box_vertices, box_corners, BOX_TRIANGLES, &solid, &err), ERR_OK);
    assert_int_equal(solid.triangles, 12);
    assert_int_equal(solid.vertices, 8);
    assert_true(fabs(solid.volume_m3 - 24) < 1e-12);
    assert_memory_equal(&solid.bounds.min, &box_vertices[0], sizeof(struct vec3));
    assert_memory_equal(&solid.bounds.max, &box_vertices[6], sizeof(struct vec3));
}

static void what_is_no_solid_says_why(void **state)
{
    uint32_t corners[3 * (BOX_TRIANGLES + 2)];
    struct vec3 flat[9];
    struct solid solid;
    struct err err = {.msg = ""};
    const uint32_t quad[] = {0, 1, 2, 3}, quad_starts[] = {0, 4};

    (void)state;
    for (size_t missing = 0; missing < BOX_TRIANGLES; missing++) {
        memcpy(corners, box_corners, sizeof box_corners);
        memmove(corners + 3 * missing, corners + 3 * missing + 3,
                (BOX_TRIANGLES - 1 - missing) * 3 * sizeof *corners);
        assert_int_equal(measure(box_vertices, corners, BOX_TRIANGLES - 1, &solid, &err),
                         ERR_UNPROCESSABLE);
        assert_non_null(strstr(err.msg, "not closed"));
    }
    for (size_t turned = 0; turned < BOX_TRIANGLES; turned++) {
        memcpy(corners, box_corners, sizeof box_corners);
        corners[3 * turned] = box_corners[3 * turned + 1];
        corners[3 * turned + 1] = box_corners[3 * turned];
        assert_int_equal(measure(box_vertices, corners, BOX_TRIANGLES, &solid, &err),
                         ERR_UNPROCESSABLE);
    }
    memcpy(corners, box_corners, sizeof box_corners);
    memcpy(corners + 3 * BOX_TRIANGLES, (uint32_t[]){0, 1, 6, 0, 6, 1}, 6 * sizeof *corners);
    assert_int_equal(measure(box_vertices, corners, BOX_TRIANGLES + 2, &solid, &err),
                     ERR_UNPROCESSABLE); /* a fin that shares an edge */
    assert_non_null(strstr(err.msg, "same direction"));
    for (size_t i = 0; i < 3 * BOX_TRIANGLES; i++)
        corners[i] = box_corners[3 * BOX_TRIANGLES - 1 - i];
    assert_int_equal(measure(box_vertices, corners, BOX_TRIANGLES, &solid, &err),
                     ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "inwards"));
    memcpy(flat, box_vertices, sizeof flat);
    for (size_t i = 0; i < 9; i++)
        flat[i].z = flat[i].x + flat[i].y;
    assert_int_equal(measure(flat, box_corners, BOX_TRIANGLES, &solid, &err), ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "no volume"));
    assert_int_equal(measure(box_vertices, (uint32_t[]){0, 1, 1}, 1, &solid, &err),
                     ERR_UNPROCESSABLE);
    assert_int_equal(solid_measure(box_vertices, quad, quad_starts, 1, &solid, &err),
                     ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "4 corners"));
    assert_int_equal(measure(box_vertices, box_corners, 0, &solid, &err), ERR_UNPROCESSABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_is_measured),
        cmocka_unit_test(what_is_no_solid_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
