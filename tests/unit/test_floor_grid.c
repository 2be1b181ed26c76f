/*
 * The floor grid of a mesh (floor_grid.c): that they give what the tree gives, lose no floor where
 * cells meet, stay small on heaps and slivers, and that mesh_validate would notice.
 */
#include "support/long_form.h"
#include "support/random.h"
#include "support/soup.h"
#include "terrain/mesh/mesh_data.h"
#include "terrain/mesh/floor_mask.h"
#include "terrain/mesh/mesh_contact.h"
#include "world/values/threads.h"

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
static struct mesh *make_mesh(double far)
{
    struct mesh_options options = {.gravity = {0, 0, -1}, .max_polygons = 4, .keep_axes = true};
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
    for (int i = 0; i < 2; i++) {
        double far = fars[i];
        struct mesh *mesh = make_mesh(far);
        const struct floor_grid *d = &mesh->grid;
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

/* The floor (sign 1) up to a limit, or the ceiling (-1) from there on, by the tree of boxes. */
static bool ask_tree(const struct mesh *mesh, struct vec3 place, double sign, double limit,
                     struct mesh_height *out)
{
    struct column_found found = mesh_column_by_tree(mesh, place.x, place.y, sign, sign * limit);

    if (found.polygon == NO_POLYGON)
        return false;
    *out = (struct mesh_height){sign * found.best, mesh_source(mesh, found.polygon)};
    return true;
}

/* The same question to the columns, scalar and not, to the tree, and in a batch. */
static void check_ways(struct mesh *mesh, struct vec3 at, double reach)
{
    struct mesh_height by_tree = {0}, in_batch;
    struct mesh_contact by_columns, plain;
    enum simd_level simd = simd_level();
    struct vec3 place = column_place(mesh, at);

    memset(&by_columns, 0, sizeof by_columns);
    plain = by_columns;
    bool is_there = mesh_floor(mesh, at, reach, &by_columns);

    mesh_floor_heights(mesh, &at, 1, reach, &in_batch);
    assert_true(simd_select(SIMD_SCALAR));
    bool is_plain = mesh_floor(mesh, at, reach, &plain);

    assert_true(simd_select(simd));
    bool is_in_tree = ask_tree(mesh, place, 1, place.z + reach + mesh->header->slack, &by_tree);

    if (is_there != is_in_tree || is_there != is_plain ||
        is_there != (in_batch.polygon != MESH_NO_POLYGON) ||
        memcmp(&plain, &by_columns, sizeof plain) != 0 ||
        (is_there && (by_columns.distance_m != place.z - by_tree.height_m ||
                      by_columns.polygon != by_tree.polygon ||
                      in_batch.height_m != by_tree.height_m + mesh->lift ||
                      in_batch.polygon != by_tree.polygon)))
        fail_msg("(%.17g, %.17g, %.17g): polygon %u, %.17g below by columns, %u at %.17g by the "
                 "tree, %u at %.17g in a batch",
                 at.x, at.y, at.z, by_columns.polygon, by_columns.distance_m, by_tree.polygon,
                 by_tree.height_m, in_batch.polygon, in_batch.height_m);
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
    struct face face = mesh_face(mesh, which);
    uint32_t i = (uint32_t)random_in(random, 0, face.count);
    struct vec3 a = face_at(&face, i), b = face_after(&face, i);
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
    const int questions = (int)long_form(20000, 4000);

    (void)state;
    for (int i = 0; i < 8; i++) {
        struct mesh *mesh = make_pile(&random, polygons[i / 2], i % 2 * 0.7);
        struct box3 box = mesh_bounds(mesh);

        assert_true(i < 4 || mesh->grid.side > 1);
        assert_true(i < 6 || mesh->grid.is_stacked);
        for (int k = 0; k < questions; k++)
            check_ways(mesh,
                       (struct vec3){random_in(&random, box.min.x - 1, box.max.x + 1),
                                     random_in(&random, box.min.y - 1, box.max.y + 1),
                                     random_in(&random, box.min.z - 1, box.max.z + 1)},
                       k % 4 == 0 ? INFINITY : 0);
        for (int k = 0; k < questions; k++)
            check_ways(mesh, point_by_edge(mesh, &random), k % 2 == 0 ? INFINITY : 0.1);
        for (uint64_t k = 0; k < mesh->header->count[MESH_VERTICES]; k += long_form(1, 5)) {
            struct vec3 v = vec3_add(mesh_turn_back(mesh->header, point_at(&mesh->points, k)),
                                     mesh->header->centre);

            check_ways(mesh, v, 0);
            check_ways(mesh, v, INFINITY);
        }
        mesh_unref(mesh);
    }
}

/* ---- stacks --------------------------------------------------------------------------------- */

enum { STACK = 5000 };

/* What lies over one another, whatever its order in the file. */
enum stack { STACK_FLAT, STACK_TILTED, STACK_CROSSING, STACK_WITH_ROOFS, STACKS };

static struct mesh *make_stack(enum stack kind, double turn)
{
    struct mesh_options options = {.gravity = {sin(turn), 0, -cos(turn)}, .keep_axes = turn == 0};
    struct soup soup = {0};
    struct err err;

    for (int i = 0; i < STACK; i++) {
        double z = (double)(i * 7919LL % STACK), rise = 0;

        if (kind == STACK_TILTED)
            rise = 0.01 + i % 3;
        if (kind == STACK_CROSSING)
            rise = i % 11 - 5;
        if (kind == STACK_WITH_ROOFS && i % 1000 == 500)
            rise = 3.0 * STACK;
        struct vec3 v[] = {{0, 0, z}, {10, 0, z + rise}, {10, 10, z + rise}, {0, 10, z}};

        soup_add(&soup, v, 4);
    }
    struct polygon_soup view = soup_view(&soup);
    struct mesh *mesh = mesh_create(&view, &options, NULL, &err);

    if (mesh == NULL || !mesh_validate(mesh, &err))
        fail_msg("%s", err.msg);
    soup_free(&soup);
    return mesh;
}

static void check_ceiling(const struct mesh *mesh, struct vec3 at)
{
    struct mesh_contact c = {.polygon = MESH_NO_POLYGON};
    struct mesh_height by_tree = {.polygon = MESH_NO_POLYGON};
    struct vec3 place = mesh_to_frame(mesh->header, at);
    double slack = mesh->header->slack;
    double limit = fmax(nextafter(place.z + slack, INFINITY), place.z - slack);
    bool is_there = mesh_ceiling(mesh, at, 0, 0, &c);
    bool is_in_tree = ask_tree(mesh, place, -1, limit, &by_tree);

    if (is_there != is_in_tree || c.polygon != by_tree.polygon ||
        (is_there && c.distance_m != place.z - by_tree.height_m))
        fail_msg("(%.17g, %.17g, %.17g): ceiling %u by columns, %u by the tree", at.x, at.y, at.z,
                 c.polygon, by_tree.polygon);
}

/* The pairs of blocks that a place in the only cell is put to; the answer must be `height_m`. */
static int pairs_asked(const struct mesh *mesh, struct vec3 point, double sign, double height_m)
{
    struct place place = {0};
    struct vec3 at = column_place(mesh, point);
    struct column c = {mesh, at.x, at.y, sign * at.z, sign, -INFINITY, NO_POLYGON, 0};
    int pairs = 0;

    assert_true(place_begin(mesh, at.x, at.y, &place));
    place_descend(mesh, &place);
    const struct column_block *list = mesh->grid.blocks + place.cell->first;
    uint32_t count = place.cell->count, from = 0;

    for (;; from++, pairs++) {
        from = stack_next(list, count, from, sign, c.limit, c.best);
        if (from == UINT32_MAX)
            break;
        uint32_t pair = stack_pair(count, from, sign);
        size_t lanes = count - pair * STACK_LANES > COLUMN_LANES ? STACK_LANES : COLUMN_LANES;

        pair_scan(&c, list + (size_t)2 * pair, lanes,
                  (u64x2){place.x, place.y} >> (UNIT_SHIFT + 1));
    }
    c.best = c.best * sign + mesh->lift;
    if (c.polygon == NO_POLYGON || !(fabs(c.best - height_m) < 0.01)) /* of a roof */
        fail_msg("%.17g from %.17g on: expected %.17g", c.best, point.z, height_m);
    return pairs;
}

static void a_stack_gives_what_the_tree_gives(void **state)
{
    struct random random = {77};

    (void)state;
    for (int i = 0; i < 2 * STACKS; i++) {
        struct mesh *mesh = make_stack((enum stack)(i / 2), i % 2 * 0.3);
        struct box3 box = mesh_bounds(mesh);

        assert_true(i % 2 == 1 || mesh->grid.side > 0);
        for (int k = 0; k < 200; k++) {
            double z = random_in(&random, -20, STACK + 20);
            struct vec3 at = {random_in(&random, box.min.x, box.max.x),
                              random_in(&random, box.min.y, box.max.y), k % 3 == 0 ? floor(z) : z};

            check_ways(mesh, at, k % 5 == 0 ? INFINITY : k % 5 == 1 ? 0.5 : 0);
            check_ceiling(mesh, at);
        }
        mesh_unref(mesh);
    }
}

static void a_stack_is_not_asked_as_a_whole(void **state)
{
    struct mesh *mesh = make_stack(STACK_FLAT, 0);
    struct mesh *roofs = make_stack(STACK_WITH_ROOFS, 0);

    (void)state;
    for (int z = 0; z + 1 < STACK; z += 7) {
        struct vec3 at = {4, 3, z + 0.5}, by_side = {1e-6, 3, z + 0.5};

        assert_in_range(pairs_asked(mesh, at, 1, z), 1, 2);
        assert_in_range(pairs_asked(mesh, at, -1, z + 1), 1, 2);
        /* each of the roofs may be in a pair of its own */
        assert_in_range(pairs_asked(roofs, by_side, 1, z), 1, 2 + STACK / 1000);
    }
    mesh_unref(mesh);
    mesh_unref(roofs);
}

/* Outward rounding of levels would lose a floor: each height's level is at least that of a lower.
 */
static void levels_rise_with_heights(void **state)
{
    struct random random = {33};
    struct floor_grid grid = {.z_min = -3.7, .scale_z = COLUMN_LEVELS / 11.3};
    uint32_t seen = 0;

    (void)state;
    for (int k = 0; k < 100000; k++) {
        double low = random_in(&random, -5, 9), high = low + pow(10, random_in(&random, -17, 1));
        uint32_t a = column_level(&grid, low), b = column_level(&grid, high);

        if (a > b || b >= COLUMN_LEVELS)
            fail_msg("level %u at %.17g, %u at %.17g", a, low, b, high);
        seen |= 1u << a;
    }
    assert_int_equal(seen, (1u << COLUMN_LEVELS) - 1);
    assert_int_equal(column_level(&grid, INFINITY), COLUMN_LEVELS - 1);
    assert_int_equal(column_level(&grid, -INFINITY), 0);
    assert_int_equal(column_level(&grid, NAN), 0);
    grid.scale_z = 0; /* a flat mesh: nothing is left out */
    assert_int_equal(column_level(&grid, INFINITY), 0);
}

/* With others a floor far below is looked at as if it were near: right, but slow. */
static void levels_share_the_heights_of_a_mesh(void **state)
{
    struct mesh_options options = {.gravity = {0, 0, -1}, .keep_axes = true};
    struct vec3 low[] = {{0, 0, 30}, {90, 0, 30}, {90, 90, 30}, {0, 90, 30}};
    struct vec3 high[] = {{0, 0, 46}, {90, 0, 46}, {90, 90, 46}, {0, 90, 46}};
    struct soup soup = {0};
    struct err err;

    (void)state;
    soup_add(&soup, low, 4);
    soup_add(&soup, high, 4);
    struct polygon_soup view = soup_view(&soup);
    struct mesh *mesh = mesh_create(&view, &options, NULL, &err);

    assert_non_null(mesh);
    for (uint32_t level = 0; level < COLUMN_LEVELS; level++)
        assert_int_equal(column_level(&mesh->grid, 30 + 16 * (level + 0.5) / COLUMN_LEVELS -
                                                       mesh->header->centre.z),
                         level);
    mesh_unref(mesh);
    soup_free(&soup);
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
        assert_true(mesh->grid.refs <= 4 * (uint64_t)MANY + 65536);
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
            struct mesh_contact one;

            if (mesh_floor(mesh, points[i], 0.5, &one)) {
                assert_true(one.distance_m ==
                            column_place(mesh, points[i]).z - heights[i].height_m);
                assert_int_equal(one.polygon, heights[i].polygon);
            } else {
                assert_true(isnan(heights[i].height_m));
                assert_true(heights[i].polygon == MESH_NO_POLYGON);
            }
        }
    }
    mesh_unref(mesh);
}

static void a_wrong_cell_block_or_entry_is_noticed(void **state)
{
    struct mesh *mesh = make_mesh(0);
    struct floor_grid *d = &mesh->grid;
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
        d->lut[i] ^= 1u << i % 32;
        assert_false(mesh_validate(mesh, &err));
        d->lut[i] ^= 1u << i % 32;
        d->lows[i] ^= (uint8_t)(1u << i % 8);
        assert_false(mesh_validate(mesh, &err));
        d->lows[i] ^= (uint8_t)(1u << i % 8);
    }
    assert_true(mesh_validate(mesh, &err));
    mesh_unref(mesh);
}

/* Grid and tree do not depend on the number of threads, and a pace ends them all. */
static enum err_code pace_never(void *context, struct err *err)
{
    ++*(int *)context;
    return err_set(err, ERR_BUSY, "not any more");
}

static void threads_make_the_same_grid_and_tree(void **state)
{
    enum { SIDE = 200 };
    struct threads threads = threads_of_machine();
    struct mesh_options options = {.gravity = {0, 0, -1}, .keep_axes = true};
    struct random random = {12};
    struct soup soup = {0};
    int asked = 0;
    struct pace never = {.ask = pace_never, .context = &asked};
    struct pace_progress progress[2] = {{0, 0}, {0, 0}};
    struct mesh *mesh[2];
    struct err err;

    (void)state;
    /* closer together at one border: cells there have cells of their own */
    for (int i = 0; i < SIDE * SIDE; i++)
        soup_square(&soup, (double)(i % SIDE) * (i % SIDE) / SIDE + random_in(&random, 0, 3),
                    i / SIDE, random_in(&random, 0.3, 2), random_in(&random, 0, 9));
    struct polygon_soup view = soup_view(&soup);

    threads.count = 5;
    for (int i = 0; i < 2; i++) {
        struct pace pace = {.progress = &progress[i], .first = 0.5, .share = 0.25};

        options.crew = i ? &threads.crew : NULL;
        options.pace = &pace;
        mesh[i] = soup_mesh(&soup, &options, NULL);
    }
    assert_true(progress[0].done == 0.75);
    assert_true(progress[1].done > 0.5 && progress[1].done <= 0.75); /* others made the last part */
    const struct floor_grid *a = &mesh[0]->grid, *b = &mesh[1]->grid;

    assert_true(a->side > 16 && a->cell_count > (size_t)a->side * a->side);
    assert_int_equal(a->cell_count, b->cell_count);
    assert_int_equal(a->block_count, b->block_count);
    assert_memory_equal(a->cells, b->cells, a->cell_count * sizeof *a->cells);
    assert_memory_equal(a->blocks, b->blocks, a->block_count * sizeof *a->blocks);
    const struct ray_tree *first = &mesh[0]->rays.first, *second = &mesh[1]->rays.first;

    assert_true(first->triangle_count > 1 << 16); /* several subtrees */
    assert_int_equal(first->node_count, second->node_count);
    assert_int_equal(first->block_count, second->block_count);
    assert_memory_equal(first->nodes, second->nodes, first->node_count * sizeof *first->nodes);
    assert_memory_equal(first->blocks, second->blocks, first->block_count * sizeof *first->blocks);
    mesh_unref(mesh[0]);
    mesh_unref(mesh[1]);
    options.pace = &never;
    assert_null(mesh_create(&view, &options, NULL, &err));
    assert_int_equal(err.code, ERR_BUSY);
    assert_int_equal(asked, 1);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_floor_is_lost_where_cells_meet),
        cmocka_unit_test(columns_give_what_the_tree_gives),
        cmocka_unit_test(a_stack_gives_what_the_tree_gives),
        cmocka_unit_test(a_stack_is_not_asked_as_a_whole),
        cmocka_unit_test(levels_rise_with_heights),
        cmocka_unit_test(levels_share_the_heights_of_a_mesh),
        cmocka_unit_test(heaps_and_slivers_stay_small),
        cmocka_unit_test(a_batch_gives_the_bits_of_single_answers),
        cmocka_unit_test(a_wrong_cell_block_or_entry_is_noticed),
        cmocka_unit_test(threads_make_the_same_grid_and_tree),
    };

    return run_at_every_level("columns", tests, sizeof tests / sizeof *tests);
}
