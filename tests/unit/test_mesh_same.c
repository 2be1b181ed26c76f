/*
 * Equal polygons (mesh_same.c): that they are asked once, that of those at one place the first one
 * answers with the bits that it had, and that the next one does when the first is removed.
 */
#include "support/random.h"
#include "support/soup.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/mesh_edit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/each_level.h"

enum { KINDS = 30 };

/*
 * One polygon of a few kinds: floors, slopes, walls, with three to six corners; now and then turned
 * to another first corner, or the other way round, which is not equal bit for bit.
 */
static void add_one(struct soup *soup, struct random *random)
{
    struct random own = {1 + (uint64_t)random_in(random, 0, KINDS)};
    uint32_t corners = 3 + (uint32_t)random_in(&own, 0, 4), kind = (uint32_t)random_in(&own, 0, 3);
    double x = random_in(&own, 0, 40), y = random_in(&own, 0, 40), z = random_in(&own, 0, 5);
    double size = random_in(&own, 2, 9), rise = kind == 0 ? 0 : random_in(&own, -1, 1);
    uint32_t from = random_in(random, 0, 1) < 0.2 ? (uint32_t)random_in(random, 0, corners) : 0;
    bool is_back = random_in(random, 0, 1) < 0.1;
    struct vec3 v[6];

    for (uint32_t i = 0; i < corners; i++) {
        uint32_t at = (is_back ? corners - i : i) + from;
        double angle = 6.283185307179586 * (at % corners) / corners;
        double u = size * cos(angle), w = size * sin(angle);

        v[i] =
            kind == 2 ? (struct vec3){x + u, y, z + w} : (struct vec3){x + u, y + w, z + rise * u};
    }
    soup_add(soup, v, corners);
}

static struct mesh *mesh_of(const struct soup *soup, const struct mesh *like)
{
    struct mesh_options options = {.gravity = {0, 0, -1}, .like = like};
    struct polygon_soup view = soup_view(soup);
    struct err err;
    struct mesh *mesh = mesh_create(&view, &options, NULL, &err);

    if (!mesh || !mesh_validate(mesh, &err))
        fail_msg("%s", err.msg);
    return mesh;
}

/* The same mesh in which every polygon is asked. */
static struct mesh *asked_as_a_whole(const struct mesh *mesh)
{
    struct err err;
    size_t length;
    const void *image = mesh_image(mesh, &length);
    struct mesh *whole = mesh_open(image, length, NULL, NULL, &err);

    if (!whole)
        fail_msg("%s", err.msg);
    free(whole->same);
    whole->same = NULL;
    floor_grid_free(&whole->grid);
    assert_int_equal(floor_grid_make(whole, &(struct mesh_making){0}, &err), ERR_OK);
    assert_int_equal(mesh_rays_make(whole, &(struct mesh_making){0}, &err), ERR_OK);
    if (!mesh_validate(whole, &err))
        fail_msg("%s", err.msg);
    return whole;
}

static struct ray ray_of(struct random *random)
{
    struct ray ray = {
        .origin = {random_in(random, -5, 45), random_in(random, -5, 45),
                   random_in(random, -10, 15)},
        .direction = {random_in(random, -1, 1), random_in(random, -1, 1), random_in(random, -1, 1)},
        .t_max = INFINITY};

    if (random_in(random, 0, 1) < 0.1)
        ray.direction = (struct vec3){0, 0, ray.direction.z < 0 ? -1 : 1};
    return ray;
}

static void check_ray(const struct mesh *mesh, const struct mesh *whole, const struct ray *ray)
{
    for (int mode = 0; mode < 4; mode++) {
        static const enum ray_mode modes[] = {RAY_CLOSEST, RAY_ANY, RAY_LIGHT, RAY_LIGHT_ANY};
        struct mesh_hit a, b, c;
        bool is_hit, is_whole;

        memset(&a, 0, sizeof a);
        b = c = a;
        is_hit = mesh_ray(mesh, ray, modes[mode], &a);
        is_whole = mesh_ray(whole, ray, modes[mode], &b);
        assert_int_equal(is_hit, is_whole);
        mesh_rays(mesh, ray, 1, modes[mode], &c);
        assert_int_equal(is_hit, isfinite(c.t));
        if (mode % 2 == 0 && memcmp(&a, &b, sizeof a) != 0)
            fail_msg("mode %d: polygon %u at %.17g, as a whole %u at %.17g", mode, a.polygon, a.t,
                     b.polygon, b.t);
        if (is_hit)
            assert_memory_equal(&a, &c, sizeof a);
    }
}

/* The same bits from a mesh and from one that asks all of its polygons. */
static void check_mesh(const struct mesh *mesh, struct random *random, int questions)
{
    struct mesh *whole = asked_as_a_whole(mesh);

    for (int i = 0; i < questions; i++) {
        struct ray ray = ray_of(random);
        struct mesh_contact a, b;
        struct mesh_height one, many;

        check_ray(mesh, whole, &ray);
        memset(&a, 0, sizeof a);
        b = a;
        assert_int_equal(mesh_floor(mesh, ray.origin, 0.5, &a),
                         mesh_floor(whole, ray.origin, 0.5, &b));
        assert_memory_equal(&a, &b, sizeof a);
        mesh_floor_heights(mesh, &ray.origin, 1, 0.5, &many);
        mesh_floor_heights(whole, &ray.origin, 1, 0.5, &one);
        assert_int_equal(one.polygon, many.polygon);
        assert_int_equal(mesh_ceiling(mesh, ray.origin, 0, 0, &a),
                         mesh_ceiling(whole, ray.origin, 0, 0, &b));
        assert_memory_equal(&a, &b, sizeof a);
    }
    mesh_unref(whole);
}

static size_t kinds_of(const struct mesh *mesh)
{
    size_t kinds = 0;

    for (uint32_t i = 0; i < mesh->header->count[MESH_POLYGONS]; i++)
        kinds += mesh_is_first(mesh, i);
    return kinds;
}

static void equal_polygons_are_asked_once(void **state)
{
    struct random random = {3};
    struct soup soup = {0}, pile = {0};

    (void)state;
    for (int i = 0; i < 3000; i++)
        add_one(&soup, &random);
    struct mesh *mesh = mesh_of(&soup, NULL);
    size_t kinds = kinds_of(mesh);

    assert_in_range(kinds, KINDS / 2, 12 * KINDS);
    assert_in_range(mesh->rays.first.triangle_count, kinds, 4 * kinds);
    check_mesh(mesh, &random, 2000);
    mesh_unref(mesh);
    for (int i = 0; i < 3000; i++)
        soup_add(&pile, (struct vec3[]){{0, 0, 1}, {10, 0, 2}, {0, 10, 3}}, 3);
    mesh = mesh_of(&pile, NULL);
    assert_int_equal(kinds_of(mesh), 1);
    assert_int_equal(mesh->rays.first.triangle_count, 1);
    assert_int_equal(mesh->grid.refs, 1);
    check_mesh(mesh, &random, 500);
    mesh_unref(mesh);
    soup_free(&soup);
    soup_free(&pile);
}

/* Which polygons there are, by their numbers; gone: no corners. */
struct state {
    struct soup all;
    bool *is_there;
};

static struct mesh *change(const struct mesh *mesh, struct state *s, struct random *random)
{
    struct soup added = {0};
    uint32_t *removed = malloc((s->all.polygon_count + 1) * sizeof *removed);
    uint32_t first = (uint32_t)s->all.polygon_count;
    size_t count = 0, more = (size_t)random_in(random, 0, 12);
    double share = random_in(random, 0, 1) < 0.3 ? 0 : random_in(random, 0, 0.1);
    bool is_from_front = random_in(random, 0, 1) < 0.5;
    struct err err;

    for (uint32_t i = 0; i < first; i++) { /* the first of their kinds, or any */
        bool is_gone = is_from_front ? i < share * first : random_in(random, 0, 1) < share;

        if (!s->is_there[i] || !is_gone)
            continue;
        s->is_there[i] = false;
        removed[count++] = i;
    }
    s->is_there = realloc(s->is_there, first + more + 1);
    for (size_t i = 0; i < more; i++) {
        add_one(&added, random);
        s->is_there[first + i] = true;
    }
    for (size_t i = 0; i < more; i++) {
        uint32_t at = added.starts[i];

        soup_add(&s->all, added.vertices + added.corners[at], added.starts[i + 1] - at);
    }
    struct polygon_soup view = soup_view(&added), after = soup_view(&s->all);
    struct mesh_change c = {.added = more > 0 ? &view : NULL,
                            .first_number = first,
                            .removed = removed,
                            .removed_count = count,
                            .after = &after};
    struct mesh *next = mesh_edit(mesh, &c, &err);

    /* none is left, or the leaf lists are full and it is to be built again */
    if (!next && err.code != ERR_UNPROCESSABLE && err.code != ERR_CONFLICT)
        fail_msg("%s", err.msg);
    free(removed);
    soup_free(&added);
    return next;
}

static void the_next_answers_when_the_first_is_removed(void **state)
{
    struct random random = {17};
    int edits = 0;

    (void)state;
    for (int run = 0; run < 12; run++) {
        struct state s = {{0}, NULL};

        for (int i = 0; i < 300; i++)
            add_one(&s.all, &random);
        s.is_there = malloc(s.all.polygon_count);
        memset(s.is_there, true, s.all.polygon_count);
        struct mesh *mesh = mesh_of(&s.all, NULL);

        for (int i = 0; i < 25 && mesh; i++, edits++) {
            struct mesh *next = change(mesh, &s, &random);
            struct err err;

            mesh_unref(mesh);
            mesh = next;
            if (mesh && !mesh_validate(mesh, &err))
                fail_msg("run %d, edit %d: %s", run, i, err.msg);
            if (mesh)
                check_mesh(mesh, &random, 60);
        }
        mesh_unref(mesh);
        soup_free(&s.all);
        free(s.is_there);
    }
    assert_true(edits > 150);
}

static void a_wrong_first_is_noticed(void **state)
{
    struct random random = {29};
    struct soup soup = {0};
    struct err err;
    int changed = 0;

    (void)state;
    for (int i = 0; i < 300; i++)
        add_one(&soup, &random);
    struct mesh *mesh = mesh_of(&soup, NULL);

    for (uint32_t i = 1; i < mesh->header->count[MESH_POLYGONS]; i++) {
        uint32_t was = mesh->same[i];

        if (mesh->same[i - 1] == was)
            continue;
        mesh->same[i] = mesh->same[i - 1];
        assert_false(mesh_validate(mesh, &err));
        mesh->same[i] = was;
        changed++;
    }
    assert_true(changed > 50 && mesh_validate(mesh, &err));
    mesh_unref(mesh);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_polygons_are_asked_once),
        cmocka_unit_test(the_next_answers_when_the_first_is_removed),
        cmocka_unit_test(a_wrong_first_is_noticed),
    };

    return run_at_every_level("same", tests, sizeof tests / sizeof *tests);
}
