/*
 * The directory of a mesh (mesh_directory.c): that it loses no floor where cells meet, and that
 * mesh_validate would notice.
 */
#include "support/random.h"
#include "support/soup.h"
#include "terrain/mesh_data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static double plane(double x, double y)
{
    return 3 + 0.25 * x - 0.5 * y;
}

/* 40 x 40 quads, one of them left out, on one plane. */
static struct mesh *make_mesh(enum mesh_cuts cuts, double far)
{
    struct mesh_options options = {
        .gravity = {0, 0, -1}, .max_polygons = 2, .cuts = cuts, .keep_axes = true};
    struct soup soup = {0};
    struct err err;

    for (int row = 0; row < 40; row++)
        for (int col = 0; col < 40; col++) {
            struct vec3 v[4];

            for (int i = 0; i < 4; i++) {
                double x = far + col + (i == 1 || i == 2), y = row + (i >= 2);

                v[i] = (struct vec3){x, y, plane(x, y)};
            }
            if (col != 7 || row != 11)
                soup_add(&soup, v, 4);
        }
    struct polygon_soup view = soup_view(&soup);
    struct mesh *mesh = mesh_create(&view, &options, NULL, &err);

    if (mesh == NULL || !mesh_validate(mesh, &err))
        fail_msg("%s", err.msg);
    soup_free(&soup);
    return mesh;
}

static void check_floor(const struct mesh *mesh, double far, double x, double y)
{
    bool is_hole = x > far + 7 && x < far + 8 && y > 11 && y < 12;
    double beside = fmin(fmin(fabs(x - far - 7), fabs(x - far - 8)),
                         fmin(fabs(y - 11), fabs(y - 12))); /* the hole's edges */
    struct mesh_contact c;
    bool is_floor = mesh_floor(mesh, (struct vec3){x, y, 1e6}, 0, &c);

    if (beside > 1e-6 && is_floor == is_hole)
        fail_msg("(%.17g, %.17g) %s", x, y, is_floor ? "has a floor in the hole" : "has no floor");
    if (is_floor && !(fabs(c.point.z - plane(x, y)) < 1e-9))
        fail_msg("(%.17g, %.17g) has %.17g, expected %.17g", x, y, c.point.z, plane(x, y));
}

/* Places to each side of every border between cells, by parts of near up to beyond the margin. */
static void no_floor_is_lost_where_cells_meet(void **state)
{
    static const double parts[] = {-3, -2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2, 3};
    enum { PARTS = sizeof parts / sizeof *parts };
    static const double fars[] = {0, 900};

    (void)state;
    for (int i = 0; i < 4; i++) {
        double far = fars[i / 2];
        struct mesh *mesh = make_mesh((enum mesh_cuts)(i % 2), far);
        const struct mesh_directory *d = &mesh->directory;
        struct random random = {9};

        assert_true(d->side > 8);
        for (uint32_t border = 1; border < d->side; border++)
            for (int k = 0; k < PARTS; k++) {
                double at = border / d->scale.x + parts[k] * mesh->header->near;
                double other = border / d->scale.y + parts[k] * mesh->header->near;

                check_floor(mesh, far, far + at, random_in(&random, 0.01, 39.99));
                check_floor(mesh, far, far + random_in(&random, 0.01, 39.99), other);
                check_floor(mesh, far, far + at, other);
            }
        mesh_unref(mesh);
    }
}

static void a_wrong_cell_is_noticed(void **state)
{
    struct mesh *mesh = make_mesh(MESH_CUTS_EQUAL, 0);
    struct mesh_directory *d = &mesh->directory;
    struct err err;

    (void)state;
    for (uint32_t i = 0; i + 1 < d->side; i += 5) {
        uint32_t right = d->nodes[i];

        d->nodes[i] = d->nodes[(size_t)d->side * d->side - 1];
        assert_false(mesh_validate(mesh, &err));
        d->nodes[i] = right;
    }
    assert_true(mesh_validate(mesh, &err));
    mesh_unref(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_floor_is_lost_where_cells_meet),
        cmocka_unit_test(a_wrong_cell_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
