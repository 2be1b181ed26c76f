/*
 * The columns of a mesh (mesh_columns.c): that they give what the tree gives, lose no floor where
 * cells meet, stay small on heaps and slivers, and that mesh_validate would notice.
 */
#include "support/random.h"
#include "support/soup.h"
#include "terrain/mesh_data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "support/each_level.h"

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
        const struct mesh_columns *d = &mesh->columns;
        struct random random = {9};

        assert_true(d->side > 8);
        assert_false(d->is_stacked);
        for (uint32_t border = 1; border < d->side; border++)
            for (int k = 0; k < PARTS; k++) {
                double at = border * (double)(1ll << COLUMN_PLACE) / d->scale_x +
                            parts[k] * mesh->header->near;
                double other = border * (double)(1ll << COLUMN_PLACE) / d->scale_y +
                               parts[k] * mesh->header->near;

                check_floor(mesh, far, far + at, random_in(&random, 0.01, 39.99));
                check_floor(mesh, far, far + random_in(&random, 0.01, 39.99), other);
                check_floor(mesh, far, far + at, other);
            }
        mesh_unref(mesh);
    }
}

/* The same question to the columns, scalar and not, to the tree, and in a batch. */
static void check_ways(struct mesh *mesh, struct vec3 at, double reach)
{
    struct mesh_height by_columns = {0}, by_tree = {0}, in_batch, plain = {0};
    struct mesh_contact whole = {.polygon = MESH_NO_POLYGON};
    uint64_t limit = mesh->columns.side_limit;
    enum simd_level simd = mesh->simd;
    bool is_there = mesh_floor_height(mesh, at, reach, &by_columns);

    mesh_floor_heights(mesh, &at, 1, reach, &in_batch);
    mesh->simd = SIMD_SCALAR;
    bool is_plain = mesh_floor_height(mesh, at, reach, &plain);

    mesh->columns.side_limit = 0; /* outside of all columns: the tree */
    bool is_in_tree = mesh_floor_height(mesh, at, reach, &by_tree);

    mesh->columns.side_limit = limit;
    mesh->simd = simd;
    if (is_there != mesh_floor(mesh, at, reach, &whole) ||
        (is_there && whole.polygon != by_tree.polygon))
        fail_msg("(%.17g, %.17g, %.17g): the whole contact is with %u instead of %u", at.x, at.y,
                 at.z, whole.polygon, by_tree.polygon);
    if (is_there != is_in_tree || is_there != is_plain ||
        is_there != (in_batch.polygon != MESH_NO_POLYGON) ||
        by_columns.height_m != by_tree.height_m || by_columns.polygon != by_tree.polygon ||
        plain.height_m != by_tree.height_m || plain.polygon != by_tree.polygon ||
        (is_there &&
         (in_batch.height_m != by_tree.height_m || in_batch.polygon != by_tree.polygon)))
        fail_msg("(%.17g, %.17g, %.17g): polygon %u at %.17g by columns, %u at %.17g by the tree",
                 at.x, at.y, at.z, by_columns.polygon, by_columns.height_m, by_tree.polygon,
                 by_tree.height_m);
}

/* Polygons of all sizes, over one another. */
static struct mesh *make_pile(struct random *random, int polygons, double turn)
{
    struct mesh_options options = {.gravity = {sin(turn), 0, -cos(turn)}, .keep_axes = turn == 0};
    struct soup soup = {0};
    struct err err;

    for (int i = 0; i < polygons; i++) {
        double size = exp(random_in(random, -3, 3)), x = random_in(random, 0, 50);
        double y = random_in(random, 0, 30), z = random_in(random, 0, 20);
        double flat = random_in(random, 0, 1) < 0.2 ? 0.001 : 1;
        double angle = random_in(random, 0, 6.28), slope = random_in(random, -1, 1);
        int corners = 3 + i % 3 * 2;
        struct vec3 v[7];

        for (int k = 0; k < corners; k++) {
            double u = size * cos(6.283185307179586 * k / corners);
            double w = flat * size * sin(6.283185307179586 * k / corners);
            double dx = u * cos(angle) - w * sin(angle), dy = u * sin(angle) + w * cos(angle);

            v[k] = (struct vec3){x + dx, y + dy, z + slope * dx};
        }
        soup_add(&soup, v, (uint32_t)corners);
    }
    struct polygon_soup view = soup_view(&soup);
    struct mesh *mesh = mesh_create(&view, &options, NULL, &err);

    if (mesh == NULL || !mesh_validate(mesh, &err))
        fail_msg("%s", err.msg);
    soup_free(&soup);
    return mesh;
}

/* A point on an edge, or beside it by less than the edge's own roundings in a block, and more. */
static struct vec3 point_by_edge(const struct mesh *mesh, struct random *random)
{
    uint32_t which = (uint32_t)random_in(random, 0, (double)mesh->header->count[MESH_POLYGONS]);
    const struct mesh_polygon *p = &mesh->polygons[which];
    uint32_t i = (uint32_t)random_in(random, 0, p->count);
    struct vec3 a = mesh->vertices[mesh->corners[p->first + i]];
    struct vec3 b = mesh->vertices[mesh->corners[p->first + (i + 1) % p->count]];
    double along = random_in(random, 0, 1), beside = pow(10, random_in(random, -9, -1));
    struct vec3 at = vec3_add(a, vec3_scale(vec3_sub(b, a), along));

    at.x += random_in(random, -beside, beside);
    at.y += random_in(random, -beside, beside);
    return vec3_add(mesh_turn_back(mesh->header, at), mesh->header->centre);
}

static void columns_give_what_the_tree_gives(void **state)
{
    static const int polygons[] = {1, 7, 60, 4000};
    struct random random = {21};

    (void)state;
    for (int i = 0; i < 8; i++) {
        struct mesh *mesh = make_pile(&random, polygons[i / 2], i % 2 * 0.7);
        struct box3 box = mesh_bounds(mesh);

        assert_true(i < 4 || mesh->columns.side > 1);
        assert_true(i < 6 || mesh->columns.is_stacked);
        for (int k = 0; k < 20000; k++)
            check_ways(mesh,
                       (struct vec3){random_in(&random, box.min.x - 1, box.max.x + 1),
                                     random_in(&random, box.min.y - 1, box.max.y + 1),
                                     random_in(&random, box.min.z - 1, box.max.z + 1)},
                       k % 4 == 0 ? INFINITY : 0);
        for (int k = 0; k < 20000; k++)
            check_ways(mesh, point_by_edge(mesh, &random), k % 2 == 0 ? INFINITY : 0.1);
        for (uint64_t k = 0; k < mesh->header->count[MESH_VERTICES]; k++) {
            struct vec3 v =
                vec3_add(mesh_turn_back(mesh->header, mesh->vertices[k]), mesh->header->centre);

            check_ways(mesh, v, 0);
            check_ways(mesh, v, INFINITY);
        }
        mesh_unref(mesh);
    }
}

/* Outward rounding of levels would lose a floor: each height's level is at least that of a lower.
 */
static void levels_rise_with_heights(void **state)
{
    struct random random = {33};
    struct mesh_columns columns = {.z_min = -3.7, .scale_z = COLUMN_LEVELS / 11.3};
    uint32_t seen = 0;

    (void)state;
    for (int k = 0; k < 100000; k++) {
        double low = random_in(&random, -5, 9), high = low + pow(10, random_in(&random, -17, 1));
        uint32_t a = column_level(&columns, low), b = column_level(&columns, high);

        if (a > b || b >= COLUMN_LEVELS)
            fail_msg("level %u at %.17g, %u at %.17g", a, low, b, high);
        seen |= 1u << a;
    }
    assert_int_equal(seen, (1u << COLUMN_LEVELS) - 1);
    assert_int_equal(column_level(&columns, INFINITY), COLUMN_LEVELS - 1);
    assert_int_equal(column_level(&columns, -INFINITY), 0);
    assert_int_equal(column_level(&columns, NAN), 0);
    columns.scale_z = 0; /* a flat mesh: nothing is left out */
    assert_int_equal(column_level(&columns, INFINITY), 0);
}

/* Many on one place, and long thin ones across everything. */
static void heaps_and_slivers_stay_small(void **state)
{
    enum { MANY = 20000 };
    struct mesh_options options = {.gravity = {0, 0, -1}, .keep_axes = true};
    struct random random = {5};
    struct err err;

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct soup soup = {0};

        for (int i = 0; i < MANY; i++) {
            double a = kind == 0 ? 0 : random_in(&random, -1, 1);
            struct vec3 heap[] = {{0, 0, i}, {100, 0, i}, {0, 100, i}};
            struct vec3 sliver[] = {{a, -a, i}, {100 + a, 100 - a, i}, {99 + a, 99.001 - a, i}};

            soup_add(&soup, kind == 0 ? heap : sliver, 3);
        }
        struct polygon_soup view = soup_view(&soup);
        struct mesh *mesh = mesh_create(&view, &options, NULL, &err);

        if (mesh == NULL)
            fail_msg("%s", err.msg);
        assert_true(mesh->columns.refs <= 17 * (uint64_t)MANY + 4096);
        for (int k = 0; k < 50; k++) {
            double x = random_in(&random, 0, 100);

            check_ways(mesh, (struct vec3){x, x + random_in(&random, -1, 1), MANY}, 0);
        }
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void a_batch_gives_the_bits_of_single_answers(void **state)
{
    enum { POINTS = 1000 };
    struct random random = {8};
    struct mesh *mesh = make_pile(&random, 3000, 0.3);
    struct box3 box = mesh_bounds(mesh);
    struct vec3 points[POINTS];
    struct mesh_height heights[POINTS + 1];

    (void)state;
    for (int i = 0; i < POINTS; i++)
        points[i] = (struct vec3){random_in(&random, box.min.x - 1, box.max.x + 1),
                                  random_in(&random, box.min.y - 1, box.max.y + 1),
                                  random_in(&random, box.min.z - 1, box.max.z + 1)};
    for (size_t count = 0; count <= POINTS; count += count < 40 ? 1 : 320) {
        heights[count] = (struct mesh_height){-7, 7};
        mesh_floor_heights(mesh, points, count, 0.5, heights);
        assert_true(heights[count].height_m == -7); /* nothing is written behind the last */
        for (size_t i = 0; i < count; i++) {
            struct mesh_height one = {NAN, MESH_NO_POLYGON};
            struct mesh_contact contact;
            bool is_there = mesh_floor_height(mesh, points[i], 0.5, &one);

            assert_int_equal(mesh_floor(mesh, points[i], 0.5, &contact), is_there);
            assert_memory_equal(&one.height_m, &heights[i].height_m, sizeof one.height_m);
            assert_int_equal(one.polygon, heights[i].polygon);
            assert_true(!is_there || contact.polygon == one.polygon);
        }
    }
    mesh_unref(mesh);
}

static void a_wrong_cell_block_or_entry_is_noticed(void **state)
{
    struct mesh *mesh = make_mesh(MESH_CUTS_EQUAL, 0);
    struct mesh_columns *d = &mesh->columns;
    struct err err;

    (void)state;
    for (size_t i = 0; i < d->cell_count; i += 17) {
        d->cells[i].first ^= 1;
        assert_false(mesh_validate(mesh, &err));
        d->cells[i].first ^= 1;
    }
    for (size_t i = 0; i < d->block_count; i += 17) {
        d->blocks[i].bytes[i % sizeof d->blocks[i].bytes] ^= 1;
        assert_false(mesh_validate(mesh, &err));
        d->blocks[i].bytes[i % sizeof d->blocks[i].bytes] ^= 1;
    }
    for (size_t i = 0; i < (size_t)d->stride * d->stride; i += 57) {
        d->directory[i] ^= 1u << i % 32;
        assert_false(mesh_validate(mesh, &err));
        d->directory[i] ^= 1u << i % 32;
    }
    assert_true(mesh_validate(mesh, &err));
    mesh_unref(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_floor_is_lost_where_cells_meet),
        cmocka_unit_test(columns_give_what_the_tree_gives),
        cmocka_unit_test(levels_rise_with_heights),
        cmocka_unit_test(heaps_and_slivers_stay_small),
        cmocka_unit_test(a_batch_gives_the_bits_of_single_answers),
        cmocka_unit_test(a_wrong_cell_block_or_entry_is_noticed),
    };

    return run_at_every_level("columns", tests, sizeof tests / sizeof *tests);
}
