/*
 * Traces of rays through meshes and the leaves of their quadtrees, against all boxes and polygons.
 */
#include "support/mesh_oracle.h"
#include "support/mesh_scenes.h"
#include "support/random.h"
#include "support/soup.h"
#include "terrain/mesh/mesh_trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/each_level.h"

enum { ROOM = 1 << 16, RAYS = 300, SCENES = 5, TRIANGLES = 3000 };

static struct ray_tree_box boxes[ROOM];
static uint32_t polygons[ROOM];
static struct mesh_leaf leaves[ROOM];

/* Scenes under a gravity that turns the frame, and one that is radial. */
static struct mesh *scene_mesh(int i, struct soup *soup)
{
    struct mesh_options options = {.gravity = {0, 0, -1}};

    mesh_scene_make((enum mesh_scene)(i % MESH_SCENES), TRIANGLES, 11 + (uint64_t)i, soup);
    if (i == 1)
        options.gravity = (struct vec3){0.6, 0, -0.8};
    if (i == MESH_SCENES)
        options.space.frame = MESH_SPHERICAL;
    return soup_mesh(soup, &options, NULL);
}

static struct vec3 in_frame(const struct mesh_axes *axes, struct vec3 p)
{
    struct vec3 from = vec3_sub(p, axes->origin);

    return (struct vec3){vec3_dot(from, axes->axis[0]), vec3_dot(from, axes->axis[1]),
                         vec3_dot(from, axes->axis[2])};
}

static struct ray random_ray(struct random *random, const struct box3 *box)
{
    struct ray ray = {.t_max = INFINITY};

    ray.origin = (struct vec3){random_in(random, box->min.x, box->max.x),
                               random_in(random, box->min.y, box->max.y),
                               random_in(random, box->min.z, box->max.z + 20)};
    ray.direction = oracle_direction(random);
    return ray;
}

/* Where a line of the frame enters a box, grown by `grown`; INFINITY: nowhere up to `end`. */
static double enters(const struct box3 *box, struct vec3 o, struct vec3 d, double grown, double end)
{
    const double *low = &box->min.x, *high = &box->max.x, *from = &o.x, *along = &d.x;
    double t0 = 0, t1 = end;

    for (int i = 0; i < 3; i++) {
        double a = (low[i] - grown - from[i]) / along[i];
        double b = (high[i] + grown - from[i]) / along[i];

        t0 = fmax(t0, fmin(a, b));
        t1 = fmin(t1, fmax(a, b));
    }
    return t0 <= t1 ? t0 : INFINITY;
}

static bool is_listed(const struct ray_tree_trace *trace, uint32_t polygon)
{
    for (uint32_t i = 0; i < trace->polygon_count; i++)
        if (trace->polygons[i] == polygon)
            return true;
    return false;
}

/*
 * What was entered is on the ray's way, what was not is beside it or after the hit, and every box
 * below the first is in one that was entered.
 */
static void check_boxes(const struct ray_tree_trace *trace, const struct mesh_axes *axes,
                        const struct ray *ray, double t_hit, double size)
{
    struct vec3 o = in_frame(axes, ray->origin);
    struct vec3 d = in_frame(axes, vec3_add(axes->origin, ray->direction));
    double slack = size * 1e-4;

    for (uint32_t i = 0; i < trace->box_count; i++) {
        const struct ray_tree_box *box = &trace->boxes[i];
        bool is_below_one = box->level == 0;

        if (box->is_entered && enters(&box->bounds, o, d, slack, ray->t_max) == INFINITY)
            fail_msg("box %u was entered, the ray does not meet it", i);
        if (!box->is_entered && enters(&box->bounds, o, d, -slack, t_hit - slack) < INFINITY)
            fail_msg("box %u was not entered, the ray meets it before its hit", i);
        for (uint32_t k = 0; k < i && !is_below_one; k++) {
            const struct ray_tree_box *above = &trace->boxes[k];

            is_below_one = above->is_entered && above->level + 1 == box->level &&
                           above->bounds.min.x <= box->bounds.min.x + slack &&
                           above->bounds.max.z >= box->bounds.max.z - slack;
        }
        assert_true(is_below_one);
    }
}

static void a_trace_has_what_the_ray_tests(void **state)
{
    (void)state;
    for (int scene = 0; scene < SCENES; scene++) {
        struct soup soup = {0};
        struct mesh *mesh = scene_mesh(scene, &soup);
        struct box3 box = mesh_bounds(mesh);
        struct mesh_axes axes = mesh_axes(mesh);
        double size = vec3_length(vec3_sub(box.max, box.min));
        struct random random = {7};
        uint32_t hits = 0;

        for (int i = 0; i < RAYS; i++) {
            struct ray_tree_trace trace = {boxes, ROOM, 0, polygons, ROOM, 0};
            struct ray ray = random_ray(&random, &box);
            struct mesh_hit hit = {.t = INFINITY};
            bool is_hit = mesh_ray(mesh, &ray, RAY_CLOSEST, &hit);

            mesh_ray_trace(mesh, &ray, &trace);
            assert_true(trace.box_count < ROOM && trace.polygon_count < ROOM);
            if (is_hit && !is_listed(&trace, hit.polygon))
                fail_msg("scene %d, ray %d: polygon %u was hit, not tested", scene, i, hit.polygon);
            check_boxes(&trace, &axes, &ray, is_hit ? hit.t : INFINITY, size);
            hits += is_hit;
        }
        assert_true(hits > RAYS / 20);
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void a_ray_along_gravity_has_a_leaf_that_lists_all_over_it(void **state)
{
    struct oracle_crossing *all = malloc(4 * TRIANGLES * sizeof *all);

    (void)state;
    assert_non_null(all);
    for (int scene = 0; scene < MESH_SCENES; scene++) {
        struct soup soup = {0};
        struct mesh *mesh = scene_mesh(scene, &soup);
        struct polygon_soup view = soup_view(&soup);
        struct mesh_axes axes = mesh_axes(mesh);
        struct box3 box = mesh_bounds(mesh);
        struct random random = {5};
        uint32_t listed = 0;

        assert_true(view.polygon_count < 4 * TRIANGLES);
        for (int i = 0; i < RAYS; i++) {
            struct ray_tree_trace trace = {boxes, ROOM, 0, polygons, ROOM, 0};
            struct ray ray = random_ray(&random, &box);
            uint32_t count;

            ray.direction = vec3_scale(axes.axis[2], -1);
            mesh_ray_trace(mesh, &ray, &trace);
            count = oracle_column(&view, axes.axis[2], ray.origin, -1e-9, all);
            for (uint32_t k = 0; k < count; k++)
                if (!all[k].is_border && !is_listed(&trace, all[k].polygon))
                    fail_msg("scene %d: polygon %u is over the leaf", scene, all[k].polygon);
            listed += count;
            if (trace.box_count != 1 || trace.boxes[0].level == 0)
                continue; /* beside the grid */
            struct vec3 at = in_frame(&axes, ray.origin);

            assert_true(at.x >= trace.boxes[0].bounds.min.x && at.y <= trace.boxes[0].bounds.max.y);
        }
        assert_true(listed > 0);
        mesh_unref(mesh);
        soup_free(&soup);
    }
    free(all);
}

static double leaf_area(const struct mesh_leaf *leaf)
{
    return (leaf->x_max - leaf->x_min) * (leaf->y_max - leaf->y_min);
}

static void leaves_tile_the_root(void **state)
{
    const struct box3 all = {{-INFINITY, -INFINITY, 0}, {INFINITY, INFINITY, 0}};

    (void)state;
    for (int scene = 0; scene < MESH_SCENES; scene++) {
        struct soup soup = {0};
        struct mesh *mesh = scene_mesh(scene, &soup);
        uint32_t depths[MESH_DEPTHS] = {0};
        struct mesh_stats stats;
        size_t count = mesh_leaves(mesh, &all, leaves, ROOM), met = 0;
        double area = 0, mean = 0;
        double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;

        mesh_stats(mesh, &stats);
        assert_int_equal(count, stats.leaves);
        for (size_t i = 0; i < count; i++) {
            const struct mesh_leaf *leaf = &leaves[i];

            depths[leaf->depth]++;
            area += leaf_area(leaf);
            mean += leaf_area(leaf) * leaf->polygons;
            x0 = fmin(x0, leaf->x_min), x1 = fmax(x1, leaf->x_max);
            y0 = fmin(y0, leaf->y_min), y1 = fmax(y1, leaf->y_max);
        }
        assert_memory_equal(depths, stats.depths, sizeof depths);
        assert_true(fabs(area / ((x1 - x0) * (y1 - y0)) - 1) < 1e-9);
        assert_true(fabs(mean / area / stats.average_tests - 1) < 1e-9);

        struct box3 part = {{x0 + (x1 - x0) / 3, y0 + (y1 - y0) / 3, 0},
                            {x0 + (x1 - x0) / 2, y0 + (y1 - y0) / 2, 0}};

        for (size_t i = 0; i < count; i++)
            met += leaves[i].x_max > part.min.x && leaves[i].x_min < part.max.x &&
                   leaves[i].y_max > part.min.y && leaves[i].y_min < part.max.y;
        size_t some = mesh_leaves(mesh, &part, leaves, ROOM);

        assert_in_range(some, met, met + met / 2 + 8); /* those that touch it, too */
        assert_int_equal(mesh_leaves(mesh, &all, leaves, 3), 4);
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void what_has_no_room_is_counted(void **state)
{
    struct soup soup = {0};
    struct mesh *mesh = scene_mesh(MESH_SCENE_SOUP, &soup);
    struct box3 box = mesh_bounds(mesh);
    struct random random = {3};

    (void)state;
    for (int i = 0; i < RAYS; i++) {
        struct ray_tree_trace whole = {boxes, ROOM, 0, polygons, ROOM, 0};
        struct ray_tree_trace cut = {boxes, 5, 0, polygons, 1, 0};
        struct ray ray = random_ray(&random, &box);

        mesh_ray_trace(mesh, &ray, &whole);
        boxes[5].level = polygons[1] = 12345;
        mesh_ray_trace(mesh, &ray, &cut);
        assert_true(boxes[5].level == 12345 && polygons[1] == 12345);
        assert_int_equal(cut.box_count, whole.box_count);
        assert_int_equal(cut.polygon_count, whole.polygon_count);
    }
    mesh_unref(mesh);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_has_what_the_ray_tests),
        cmocka_unit_test(a_ray_along_gravity_has_a_leaf_that_lists_all_over_it),
        cmocka_unit_test(leaves_tile_the_root),
        cmocka_unit_test(what_has_no_room_is_counted),
    };

    return run_at_every_level("traces", tests, sizeof tests / sizeof *tests);
}
