/*
 * Polygons added to meshes in place, and removed: after each change the mesh is valid (lists,
 * bounds, columns), and floors, ceilings and rays are those of brute force and of a mesh that is
 * built anew.
 */
#include "terrain/mesh/mesh_edit.h"

#include "support/mesh_oracle.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

static const struct vec3 down = {0, 0, -1};

enum { NUMBERS_MAX = 1 << 15, ADDED_MAX = 8 };

/* All polygons that there ever were. */
struct ground {
    struct soup all;
    bool is_gone[NUMBERS_MAX];
    uint32_t *corners, *starts;  /* of `after` */
    uint32_t *numbers, *present; /* of those that are there; starts of them */
    size_t there;
};

static struct ground *ground_make(void)
{
    struct ground *g = calloc(1, sizeof *g);

    assert_non_null(g);
    return g;
}

static void ground_free(struct ground *g)
{
    soup_free(&g->all);
    free(g->corners);
    free(g->starts);
    free(g->numbers);
    free(g->present);
    free(g);
}

/* The polygons by their numbers, those that are gone without corners. */
static struct polygon_soup ground_after(struct ground *g)
{
    size_t corners = 0;

    g->corners = realloc(g->corners, (g->all.corner_count + 1) * sizeof *g->corners);
    g->starts = realloc(g->starts, (g->all.polygon_count + 1) * sizeof *g->starts);
    g->numbers = realloc(g->numbers, (g->all.polygon_count + 1) * sizeof *g->numbers);
    g->present = realloc(g->present, (g->all.polygon_count + 1) * sizeof *g->present);
    g->there = 0;
    for (size_t i = 0; i < g->all.polygon_count; i++) {
        uint32_t from = g->all.starts[i], count = g->all.starts[i + 1] - from;

        g->starts[i] = (uint32_t)corners;
        if (g->is_gone[i])
            continue;
        g->numbers[g->there] = (uint32_t)i;
        g->present[g->there++] = (uint32_t)corners;
        memcpy(g->corners + corners, g->all.corners + from, count * sizeof *g->corners);
        corners += count;
    }
    g->starts[g->all.polygon_count] = g->present[g->there] = (uint32_t)corners;
    return (struct polygon_soup){g->all.vertices, g->all.vertex_count, g->corners, g->starts,
                                 g->all.polygon_count};
}

/* The same without the gaps, for those who count through all. */
static struct polygon_soup ground_there(const struct ground *g)
{
    return (struct polygon_soup){g->all.vertices, g->all.vertex_count, g->corners, g->present,
                                 g->there};
}

static struct mesh *anew(struct ground *g, struct vec3 gravity)
{
    struct polygon_soup after = ground_after(g);
    struct mesh_options options = {.gravity = gravity};
    struct err err;
    struct mesh *mesh = mesh_create(&after, &options, NULL, &err);

    if (!mesh)
        fail_msg("%s", err.msg);
    return mesh;
}

/* Takes `removed` out and puts `added` in. *anew_count counts what could not be done in place. */
static struct mesh *edit(struct mesh *mesh, struct ground *g, const struct soup *added,
                         const uint32_t *removed, size_t removed_count, struct vec3 gravity,
                         size_t *anew_count)
{
    uint32_t first = (uint32_t)g->all.polygon_count;
    struct polygon_soup view = soup_view(added);
    struct err err;

    for (size_t i = 0; i < removed_count; i++)
        g->is_gone[removed[i]] = true;
    for (size_t i = 0; i < added->polygon_count; i++) {
        struct vec3 v[16];
        uint32_t from = added->starts[i], count = added->starts[i + 1] - from;

        assert_true(count <= 16 && first + i < NUMBERS_MAX);
        for (uint32_t k = 0; k < count; k++)
            v[k] = added->vertices[added->corners[from + k]];
        soup_add(&g->all, v, count);
    }
    struct polygon_soup after = ground_after(g);
    struct mesh_change change = {
        added->polygon_count > 0 ? &view : NULL, first, removed, removed_count, &after, NULL, NULL};
    struct mesh *next = mesh_edit(mesh, &change, &err);

    if (!next && err.code == ERR_CONFLICT) {
        next = anew(g, gravity);
        *anew_count += 1;
    } else if (!next) {
        fail_msg("%s", err.msg);
    }
    if (!mesh_validate(next, &err))
        fail_msg("after %zu polygons: %s", g->all.polygon_count, err.msg);
    mesh_unref(mesh);
    return next;
}

/* ---- against brute force and a mesh built anew ----------------------------------------------- */

struct asked {
    struct ground *g;
    struct vec3 up;
    double size;
    uint64_t seed;
    struct oracle_crossing crossings[NUMBERS_MAX];
};

static void check_floor(struct asked *a, const struct mesh *mesh, struct vec3 point, double reach)
{
    struct polygon_soup there = ground_there(a->g);
    double tolerance = 1e-10 * (a->size + 1) + 1e-12;
    uint32_t count = oracle_column(&there, a->up, point, tolerance, a->crossings);
    double sure = -INFINITY, sure_doubt = 0;
    struct mesh_contact c = {.distance_m = 0};
    bool is_found = mesh_floor(mesh, point, reach, &c), is_known = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct oracle_crossing *x = &a->crossings[i];

        if (!x->is_border && x->height <= reach - x->doubt && x->height > sure) {
            sure = x->height;
            sure_doubt = x->doubt;
        }
        if (is_found && a->g->numbers[x->polygon] == c.polygon)
            is_known = fabs(x->height + c.distance_m) <= x->doubt + tolerance;
    }
    if (is_found ? !is_known || -c.distance_m < sure - sure_doubt - tolerance : sure > -INFINITY)
        fail_msg("seed %llu, (%.17g, %.17g, %.17g): floor %d of polygon %u at %.17g, brute force "
                 "%.17g of %u",
                 (unsigned long long)a->seed, point.x, point.y, point.z, is_found, c.polygon,
                 -c.distance_m, sure, count);
    assert_true(!is_found || !a->g->is_gone[c.polygon]);
}

static void check_ceiling(struct asked *a, const struct mesh *mesh, struct vec3 point)
{
    struct polygon_soup there = ground_there(a->g);
    double tolerance = 1e-10 * (a->size + 1) + 1e-12, sure = INFINITY;
    uint32_t count = oracle_column(&there, a->up, point, tolerance, a->crossings);
    struct mesh_contact c = {.distance_m = 0};
    bool is_found = mesh_ceiling(mesh, point, -INFINITY, 0, &c);

    for (uint32_t i = 0; i < count; i++)
        if (!a->crossings[i].is_border && a->crossings[i].height >= a->crossings[i].doubt)
            sure = fmin(sure, a->crossings[i].height + a->crossings[i].doubt);
    if (is_found ? -c.distance_m > sure + tolerance : sure < INFINITY)
        fail_msg("seed %llu, (%.17g, %.17g, %.17g): ceiling %d at %.17g, brute force %.17g",
                 (unsigned long long)a->seed, point.x, point.y, point.z, is_found, -c.distance_m,
                 sure);
}

static void check_ray(struct asked *a, const struct mesh *mesh, const struct ray *ray)
{
    struct polygon_soup there = ground_there(a->g);
    struct oracle_hit want = oracle_ray(&there, ray, 1e-7);
    struct mesh_hit hit = {.t = INFINITY};
    bool is_hit = mesh_ray(mesh, ray, RAY_CLOSEST, &hit);
    double doubt = 1e-9 * (a->size + 1);

    if (hit.t <= doubt || want.t_loose <= doubt) /* it begins on a polygon */
        return;
    if (is_hit ? hit.t < want.t_loose - doubt || hit.t > want.t_tight + doubt
               : want.t_tight < INFINITY)
        fail_msg("seed %llu: ray hits %d at %.17g, brute force %.17g (%.17g .. %.17g)",
                 (unsigned long long)a->seed, is_hit, hit.t, want.t, want.t_loose, want.t_tight);
}

/* Floors of the batch and of one that is built anew; true where they are the same. */
static bool is_like_anew(struct asked *a, const struct mesh *mesh, const struct mesh *built,
                         struct vec3 point)
{
    struct mesh_contact c = {.distance_m = 0}, d = c;
    bool is_found = mesh_floor(mesh, point, a->size / 4, &c);
    struct mesh_height height;

    mesh_floor_heights(mesh, &point, 1, a->size / 4, &height);
    assert_int_equal(height.polygon, is_found ? c.polygon : MESH_NO_POLYGON);
    return is_found == mesh_floor(built, point, a->size / 4, &d) && c.polygon == d.polygon &&
           fabs(c.distance_m - d.distance_m) <= 1e-9 * (a->size + 1);
}

static struct vec3 random_point(struct random *random, const struct asked *a)
{
    const struct soup *all = &a->g->all;
    struct vec3 v = all->vertices[random_below(random, (uint32_t)all->vertex_count)];
    double by = random_below(random, 4) == 0 ? 0 : a->size * random_in(random, 0, 0.5);

    return vec3_add(v, vec3_add(vec3_scale(oracle_direction(random), by),
                                vec3_scale(a->up, random_in(random, -1, 1) * a->size / 4)));
}

static void compare(struct random *random, struct asked *a, const struct mesh *mesh, int questions)
{
    struct vec3 gravity = vec3_scale(a->up, -1);
    struct mesh *built = anew(a->g, gravity);
    struct box3 box = mesh_bounds(mesh), want = mesh_bounds(built);
    int unlike = 0;

    assert_memory_equal(&box, &want, sizeof box);
    for (int i = 0; i < questions; i++) {
        struct vec3 from = random_point(random, a), to = random_point(random, a);
        struct ray ray = {from, vec3_sub(to, from), 2};

        check_floor(a, mesh, from, i % 3 == 0 ? INFINITY : random_in(random, 0, a->size / 4));
        check_ceiling(a, mesh, from);
        if (vec3_length(ray.direction) > 0)
            check_ray(a, mesh, &ray);
        unlike += !is_like_anew(a, mesh, built, from);
    }
    /* at edges and where two lie on one another rounding decides */
    if (unlike > questions / 10 + 2)
        fail_msg("seed %llu: %d of %d floors are not those of a mesh built anew",
                 (unsigned long long)a->seed, unlike, questions);
    mesh_unref(built);
}

/* ---- random changes -------------------------------------------------------------------------- */

/* Triangles, convex polygons, walls, and such as cannot be. */
static void add_random(struct random *random, const struct asked *a, struct soup *out)
{
    struct vec3 at = random_point(random, a), east, north;
    double size = a->size * exp(random_in(random, -5, 0));
    uint32_t kind = random_below(random, 8), count = 3 + random_below(random, 3);
    struct vec3 v[6];

    oracle_axes(a->up, &east, &north);
    if (kind == 0) /* a wall */
        north = a->up;
    for (uint32_t i = 0; i < count; i++) {
        double angle = 6.2831853 * i / count;

        v[i] = vec3_add(at, vec3_add(vec3_scale(east, size * cos(angle)),
                                     vec3_scale(north, size * sin(angle))));
        if (kind >= 6)
            v[i] = vec3_add(v[i], vec3_scale(a->up, random_in(random, 0, 0.05 * size)));
    }
    if (kind == 2) /* without area */
        v[2] = v[1];
    soup_add(out, v, kind >= 6 ? 3 : count);
}

static size_t remove_random(struct random *random, const struct ground *g, uint32_t *removed)
{
    size_t count = 0, most = random_below(random, 4);

    for (uint32_t i = 0; i < g->all.polygon_count && count < most; i++)
        if (!g->is_gone[i] && random_below(random, (uint32_t)g->there / 2 + 1) == 0)
            removed[count++] = i;
    return g->there > 20 ? count : 0;
}

static void change_often(uint64_t seed, int edits, struct asked *a, size_t *anew_count)
{
    struct random random = {seed};
    struct vec3 up = seed % 2 == 0 ? (struct vec3){0, 0, 1} : oracle_direction(&random);
    struct vec3 gravity = vec3_scale(up, -1);
    double size = exp(random_in(&random, 0, 5));

    a->g = ground_make();
    a->up = up;
    a->size = size;
    a->seed = seed;
    oracle_soup(&random, up, size, &a->g->all);
    struct mesh *mesh = anew(a->g, gravity);

    for (int i = 0; i < edits; i++) {
        struct soup added = {0};
        uint32_t removed[ADDED_MAX], count = random_below(&random, ADDED_MAX / 2);
        size_t gone = remove_random(&random, a->g, removed);

        for (uint32_t k = 0; k < count; k++)
            add_random(&random, a, &added);
        mesh = edit(mesh, a->g, &added, removed, gone, gravity, anew_count);
        soup_free(&added);
        if (i % 50 == 49)
            compare(&random, a, mesh, 40);
    }
    compare(&random, a, mesh, 200);
    mesh_unref(mesh);
    ground_free(a->g);
}

static void thousands_of_changes_leave_the_answers_of_brute_force(void **state)
{
    enum { SOUPS = 12, EDITS = 300 };
    struct asked *a = calloc(1, sizeof *a);
    size_t anew_count = 0;

    (void)state;
    assert_non_null(a);
    for (uint64_t seed = 1; seed <= SOUPS; seed++)
        change_often(seed, EDITS, a, &anew_count);
    print_message("%zu of %d changes built anew\n", anew_count, SOUPS * EDITS);
    assert_true(anew_count < SOUPS * EDITS / 5);
    free(a);
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void numbers_stay_when_others_go(void **state)
{
    struct ground *g = ground_make();
    struct soup added = {0}, none = {0};
    struct mesh_contact c;
    size_t anew_count = 0;

    (void)state;
    for (int i = 0; i < 4; i++)
        soup_square(&g->all, 2 * i, 0, 1, i);
    soup_square(&added, 2, 0, 1, 7);
    struct mesh *mesh = anew(g, down);

    mesh = edit(mesh, g, &added, (const uint32_t[]){1, 2}, 2, down, &anew_count);
    assert_int_equal(anew_count, 0);
    assert_true(mesh_floor(mesh, (struct vec3){2.5, 0.5, 9}, 0, &c));
    assert_int_equal(c.polygon, 4);
    assert_near(c.point.z, 7, 0);
    assert_false(mesh_floor(mesh, (struct vec3){4.5, 0.5, 9}, 0, &c));
    assert_true(mesh_floor(mesh, (struct vec3){6.5, 0.5, 9}, 0, &c));
    assert_int_equal(c.polygon, 3);
    mesh = edit(mesh, g, &none, (const uint32_t[]){4}, 1, down, &anew_count);
    assert_false(mesh_floor(mesh, (struct vec3){2.5, 0.5, 9}, 0, &c));
    mesh_unref(mesh);
    soup_free(&added);
    ground_free(g);
}

static void dented_polygons_are_split_and_impossible_ones_dropped(void **state)
{
    const struct vec3 dented[] = {{1, 1, 5}, {4, 1, 5}, {4, 4, 5}, {2.5, 2, 5}, {1, 4, 5}};
    const struct vec3 line[] = {{1, 1, 5}, {2, 2, 5}, {3, 3, 5}};
    struct ground *g = ground_make();
    struct soup added = {0};
    uint32_t pieces[3];
    struct mesh_contact c;
    size_t anew_count = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        soup_square(&g->all, i % 10, i / 10, 1, 0);
    soup_add(&added, dented, 5);
    soup_add(&added, line, 3);
    struct mesh *mesh = edit(anew(g, down), g, &added, NULL, 0, down, &anew_count);

    assert_int_equal(anew_count, 0);
    mesh_count_pieces(mesh, 99, 3, pieces);
    assert_int_equal(pieces[0], 1);
    assert_true(pieces[1] >= 2);
    assert_int_equal(pieces[2], 0);
    assert_true(mesh_floor(mesh, (struct vec3){2.5, 1.5, 9}, 0, &c));
    assert_int_equal(c.polygon, 100);
    assert_true(mesh_floor(mesh, (struct vec3){2.5, 3.5, 9}, 0, &c));
    assert_near(c.point.z, 0, 0);
    soup_free(&added);
    added = (struct soup){0};
    mesh = edit(mesh, g, &added, (const uint32_t[]){100, 101}, 2, down, &anew_count);
    assert_true(mesh_floor(mesh, (struct vec3){2.5, 1.5, 9}, 0, &c));
    assert_near(c.point.z, 0, 0);
    mesh_unref(mesh);
    ground_free(g);
}

static void the_last_polygon_cannot_go(void **state)
{
    struct ground *g = ground_make();
    struct err err;

    (void)state;
    soup_square(&g->all, 0, 0, 1, 0);
    struct mesh *mesh = anew(g, down);

    g->is_gone[0] = true;
    struct polygon_soup after = ground_after(g);
    struct mesh_change change = {NULL, 1, (const uint32_t[]){0}, 1, &after, NULL, NULL};

    assert_null(mesh_edit(mesh, &change, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    mesh_unref(mesh);
    ground_free(g);
}

/* A leaf that overflows is split where it is; the others are as they were. */
static void a_crowded_leaf_is_split(void **state)
{
    struct ground *g = ground_make();
    struct mesh_stats before, after;
    size_t anew_count = 0;

    (void)state;
    for (int i = 0; i < 400; i++)
        soup_square(&g->all, i % 20, i / 20, 1, 0);
    struct mesh *mesh = anew(g, down);

    mesh_stats(mesh, &before);
    for (int i = 0; i < 64; i++) {
        struct soup added = {0};

        soup_square(&added, 3.01 + 0.12 * (i % 8), 3.01 + 0.12 * (i / 8), 0.1, 1);
        mesh = edit(mesh, g, &added, NULL, 0, down, &anew_count);
        soup_free(&added);
    }
    mesh_stats(mesh, &after);
    assert_int_equal(anew_count, 0);
    assert_true(after.nodes > before.nodes && after.depth > before.depth);
    assert_true(after.average_tests < before.average_tests + 1);
    mesh_unref(mesh);
    ground_free(g);
}

/* Beyond the border in place, far beyond the coordinates anew. */
static void polygons_beyond_the_border_are_taken(void **state)
{
    struct ground *g = ground_make();
    struct mesh_contact c;
    size_t anew_count = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        soup_square(&g->all, 10 + i % 10, i / 10, 1, 0);
    struct mesh *mesh = anew(g, down);

    for (int i = 0; i < 10; i++) {
        struct soup added = {0};

        soup_square(&added, 9 - i, 3, 1, i);
        mesh = edit(mesh, g, &added, NULL, 0, down, &anew_count);
        assert_true(mesh_floor(mesh, (struct vec3){9.5 - i, 3.5, 99}, 0, &c));
        assert_int_equal(c.polygon, 100 + i);
        soup_free(&added);
    }
    assert_int_equal(anew_count, 0);
    struct soup far = {0};

    soup_square(&far, 5000, 0, 1, 0);
    mesh = edit(mesh, g, &far, NULL, 0, down, &anew_count);
    assert_int_equal(anew_count, 1);
    assert_true(mesh_floor(mesh, (struct vec3){5000.5, 0.5, 9}, 0, &c));
    mesh_unref(mesh);
    soup_free(&far);
    ground_free(g);
}

static void bad_polygons_are_refused_by_name(void **state)
{
    struct ground *g = ground_make();
    struct soup bad = {0};
    struct err err;

    (void)state;
    soup_square(&g->all, 0, 0, 1, 0);
    struct mesh *mesh = anew(g, down);

    soup_square(&bad, NAN, 0, 1, 0);
    struct polygon_soup view = soup_view(&bad), after = ground_after(g);
    struct mesh_change change = {&view, 1, NULL, 0, &after, NULL, NULL};

    assert_null(mesh_edit(mesh, &change, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "vertex 0"));
    mesh_unref(mesh);
    soup_free(&bad);
    ground_free(g);
}

/* The name says what the mesh was made of; the image is sealed when it is asked, and opens. */
static void an_edited_image_opens_and_is_named(void **state)
{
    struct ground *g = ground_make();
    struct soup added = {0};
    size_t anew_count = 0, length;
    uint8_t name[32];
    struct err err;

    (void)state;
    for (int i = 0; i < 100; i++)
        soup_square(&g->all, i % 10, i / 10, 1, 0);
    struct mesh *mesh = anew(g, down);

    memcpy(name, mesh_content(mesh), sizeof name);
    soup_square(&added, 2.5, 2.5, 1, 4);
    mesh = edit(mesh, g, &added, (const uint32_t[]){7}, 1, down, &anew_count);
    assert_memory_not_equal(name, mesh_content(mesh), sizeof name);
    memcpy(name, mesh_content(mesh), sizeof name);
    const void *image = mesh_image(mesh, &length);

    assert_memory_equal(name, mesh_content(mesh), sizeof name); /* whoever keeps it may go on */
    struct mesh *opened = mesh_open(image, length, NULL, NULL, &err);

    if (!opened || !mesh_validate(opened, &err))
        fail_msg("%s", err.msg);
    for (int i = 0; i < 2000; i++) {
        struct vec3 at = {0.005 * i, 0.0049 * i, 9};
        struct mesh_contact a = {.polygon = 0}, b = a;

        assert_int_equal(mesh_floor(mesh, at, 0, &a), mesh_floor(opened, at, 0, &b));
        assert_memory_equal(&a, &b, sizeof a);
    }
    mesh_unref(opened);
    mesh_unref(mesh);
    soup_free(&added);
    ground_free(g);
}

/* Removes one of 100 squares and adds one; fresh memory is filled with `garbage`. */
static struct mesh *edited(uint32_t removed, int garbage)
{
    struct ground *g = ground_make();
    struct soup added = {0};
    size_t anew_count = 0;

    for (int i = 0; i < 100; i++)
        soup_square(&g->all, i % 10, i / 10, 1, 0);
    soup_square(&added, 2.5, 2.5, 1, 4);
    mallopt(M_PERTURB, garbage);
    struct mesh *mesh = edit(anew(g, down), g, &added, &removed, 1, down, &anew_count);

    mallopt(M_PERTURB, 0);
    soup_free(&added);
    ground_free(g);
    return mesh;
}

static void an_edit_decides_every_byte_and_the_name(void **state)
{
    struct mesh *one = edited(7, 0x11), *same = edited(7, 0x22), *other = edited(8, 0x11);
    size_t length, same_length;
    const void *image = mesh_image(one, &length), *same_image = mesh_image(same, &same_length);

    (void)state;
    assert_int_equal(length, same_length);
    assert_memory_equal(image, same_image, length);
    assert_memory_equal(mesh_content(one), mesh_content(same), 32);
    assert_memory_not_equal(mesh_content(one), mesh_content(other), 32);
    mesh_unref(one);
    mesh_unref(same);
    mesh_unref(other);
}

/* A polygon over everything, and heaps on one place, many times: memory stays bounded. */
static void heaps_and_large_polygons_end(void **state)
{
    struct ground *g = ground_make();
    size_t anew_count = 0;
    struct mesh_stats stats;

    (void)state;
    for (int i = 0; i < 900; i++)
        soup_square(&g->all, i % 30, i / 30, 1, 0);
    struct mesh *mesh = anew(g, down);

    for (int i = 0; i < 60; i++) {
        struct soup added = {0};

        for (int k = 0; k < 10; k++)
            soup_square(&added, i % 2 ? 0 : 15.2, i % 2 ? 0 : 15.2, i % 2 ? 30 : 0.3, 10 * i + k);
        mesh = edit(mesh, g, &added, NULL, 0, down, &anew_count);
        soup_free(&added);
    }
    mesh_stats(mesh, &stats);
    assert_true(stats.bytes < 4 << 20);
    mesh_unref(mesh);
    ground_free(g);
}

/* ---- another tree of the same polygons ------------------------------------------------------- */

/* Hills that stand askew, and something far away and high that makes the box larger. */
static struct ground *hills_make(int side)
{
    struct ground *g = ground_make();
    double far = 30;
    const struct vec3 outlier[3] = {{far, far, 12}, {far + 1, far, 12}, {far, far + 1, 13}};

    for (int i = 0; i < side * side; i++) {
        struct vec3 v[4];

        for (int k = 0; k < 4; k++) {
            double x = (i % side + (k == 1 || k == 2)) / 9.0, y = (i / side + k / 2) / 30.0;

            v[k] = (struct vec3){0.8 * x - 0.6 * y, 0.6 * x + 0.8 * y, sin(x + y)};
        }
        soup_add(&g->all, (struct vec3[]){v[0], v[1], v[2]}, 3);
        soup_add(&g->all, (struct vec3[]){v[0], v[2], v[3]}, 3);
    }
    soup_add(&g->all, outlier, 3);
    return g;
}

static struct ray ray_from_anywhere(struct random *random, struct vec3 gravity)
{
    static const double sizes[] = {3, 30, 1e3, 1e7};
    double size = sizes[random_below(random, 4)];
    struct vec3 to = {random_in(random, -1, 4), random_in(random, -1, 4), random_in(random, -1, 1)};
    struct ray ray = {{random_in(random, -size, size), random_in(random, -size, size),
                       random_in(random, -size, size)},
                      {0, 0, 0},
                      INFINITY};

    if (random_below(random, 4) > 0) {
        ray.direction = vec3_sub(to, ray.origin);
        if (random_below(random, 4) == 0)
            ray.t_max = random_in(random, 0.5, 1.5);
        return ray;
    }
    ray.direction = vec3_scale(gravity, random_in(random, 0.1, 9)); /* or all but along it */
    ray.direction.x += random_in(random, -2e-15, 2e-15) * random_below(random, 2);
    ray.origin = vec3_sub(to, vec3_scale(gravity, random_in(random, -1, 20)));
    return ray;
}

static void expect_same_rays(const struct mesh *a, const struct mesh *b, const struct ray *ray)
{
    struct mesh_hit of_a, of_b;

    for (enum ray_mode mode = RAY_CLOSEST; mode <= RAY_LIGHT_ANY; mode++) {
        bool is_hit = mesh_ray(a, ray, mode, &of_a);

        assert_int_equal(mesh_ray(b, ray, mode, &of_b), is_hit);
        if (is_hit && !ray_takes_any(mode)) /* which one of several is nobody's promise */
            assert_memory_equal(&of_b, &of_a, offsetof(struct mesh_hit, polygon) + 4);
    }
}

static void expect_same_floors(const struct mesh *a, const struct mesh *b, struct vec3 point)
{
    struct mesh_contact of_a, of_b;
    bool is_over = mesh_floor(a, point, 0.5, &of_a);

    assert_int_equal(mesh_floor(b, point, 0.5, &of_b), is_over);
    if (is_over)
        assert_memory_equal(&of_b, &of_a, offsetof(struct mesh_contact, polygon) + 4);
}

/* An edited mesh, and one built for what is left of it: the same bits. */
static void another_tree(struct vec3 gravity)
{
    struct ground *g = hills_make(60);
    struct random random = {0xb0c5};
    const struct soup none = {0};
    uint32_t *removed = malloc(g->all.polygon_count * sizeof *removed);
    size_t count = 0, anew_count = 0, hits = 0;
    struct mesh_hit hit;
    struct err err;

    assert_non_null(removed);
    struct mesh *mesh = anew(g, gravity);

    for (uint32_t i = 0; i < 2500; i++)
        removed[count++] = i;
    removed[count++] = (uint32_t)g->all.polygon_count - 1;
    mesh = edit(mesh, g, &none, removed, count, gravity, &anew_count);
    assert_int_equal(anew_count, 0);
    struct polygon_soup after = ground_after(g);
    struct mesh_options options = {.gravity = gravity, .like = mesh};
    struct mesh *built = mesh_create(&after, &options, NULL, &err);

    assert_non_null(built);
    for (int i = 0; i < 60000; i++) {
        struct ray ray = ray_from_anywhere(&random, gravity);

        expect_same_rays(mesh, built, &ray);
        expect_same_floors(mesh, built, ray.origin);
        hits += mesh_ray(mesh, &ray, RAY_CLOSEST, &hit);
    }
    assert_in_range(hits, 6000, 54000);
    mesh_unref(built);
    mesh_unref(mesh);
    free(removed);
    ground_free(g);
}

static void another_tree_of_the_same_polygons_changes_no_bit(void **state)
{
    (void)state;
    another_tree(down);
    another_tree(vec3_unit((struct vec3){0.2, -0.3, -1}));
    another_tree(vec3_unit((struct vec3){1, 0.1, 0.05}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_stay_when_others_go),
        cmocka_unit_test(dented_polygons_are_split_and_impossible_ones_dropped),
        cmocka_unit_test(the_last_polygon_cannot_go),
        cmocka_unit_test(a_crowded_leaf_is_split),
        cmocka_unit_test(polygons_beyond_the_border_are_taken),
        cmocka_unit_test(bad_polygons_are_refused_by_name),
        cmocka_unit_test(an_edited_image_opens_and_is_named),
        cmocka_unit_test(an_edit_decides_every_byte_and_the_name),
        cmocka_unit_test(heaps_and_large_polygons_end),
        cmocka_unit_test(another_tree_of_the_same_polygons_changes_no_bit),
        cmocka_unit_test(thousands_of_changes_leave_the_answers_of_brute_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
