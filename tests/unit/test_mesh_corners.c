/*
 * Floors exactly at the corners and at the middles of the edges of small whole-number polygons, on
 * every level: of a contact, of a height, and of one in a batch.
 */
#include "terrain/mesh/mesh.h"

#include "support/random.h"
#include "support/soup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/each_level.h"

enum { POLYGONS_MAX = 14 };

struct polygon {
    struct vec3 v[4];
    uint32_t count;
};

static int step(struct random *random)
{
    return (int)random_below(random, 7) - 3;
}

/* A triangle or a parallelogram that does not stand upright. */
static struct polygon random_polygon(struct random *random)
{
    struct polygon p = {.count = 3 + random_below(random, 2)};
    struct vec3 b = {random_below(random, 9), random_below(random, 9),
                     (double)random_below(random, 6) - 1};
    struct vec3 u, v;

    do {
        u = (struct vec3){step(random), step(random), step(random)};
        v = (struct vec3){step(random), step(random), step(random)};
    } while (u.x * v.y - u.y * v.x == 0);
    p.v[0] = b;
    p.v[1] = vec3_add(b, u);
    p.v[p.count - 1] = vec3_add(b, v);
    if (p.count == 4)
        p.v[2] = vec3_add(p.v[1], v);
    return p;
}

/* Of the point, and of the same as one of a batch. */
static void expect_floor(const struct mesh *mesh, struct vec3 up, struct vec3 at, unsigned number)
{
    struct vec3 point = vec3_add(at, vec3_scale(up, 50));
    struct mesh_contact contact;
    struct mesh_height batch;

    if (!mesh_floor(mesh, point, 0, &contact))
        fail_msg("mesh %u (seed 41): no floor under (%g %g %g)", number, at.x, at.y, at.z);
    mesh_floor_heights(mesh, &point, 1, 0, &batch);
    if (batch.polygon != contact.polygon)
        fail_msg("mesh %u (seed 41): (%g %g %g) has polygons %u and %u", number, at.x, at.y, at.z,
                 contact.polygon, batch.polygon);
}

static void expect_floors(struct random *random, struct vec3 gravity, unsigned number)
{
    struct polygon all[POLYGONS_MAX];
    uint32_t count = 1 + random_below(random, POLYGONS_MAX);
    struct mesh_options options = {.gravity = gravity, .without_rays = true};
    struct soup soup = {0};

    for (uint32_t i = 0; i < count; i++) {
        all[i] = random_polygon(random);
        soup_add(&soup, all[i].v, all[i].count);
    }
    struct mesh *mesh = soup_mesh(&soup, &options, NULL);

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < all[i].count; k++) {
            struct vec3 a = all[i].v[k], b = all[i].v[(k + 1) % all[i].count];
            struct vec3 up = vec3_scale(gravity, -1);

            expect_floor(mesh, up, a, number);
            expect_floor(mesh, up, vec3_scale(vec3_add(a, b), 0.5), number);
        }
    mesh_unref(mesh);
    soup_free(&soup);
}

static void corners_and_edges_have_floors(void **state)
{
    struct random random = {41};

    (void)state;
    for (unsigned n = 0; n < 8000; n++)
        expect_floors(&random, (struct vec3){0, 0, -1}, n);
}

/* A corner between two cells of the columns, the other of which is empty. */
static void a_corner_beside_an_empty_cell_has_a_floor(void **state)
{
    static const struct vec3 quad[4] = {{6, 5, -1}, {8, 2, -1}, {7, 0, -2}, {5, 3, -2}};
    static const struct vec3 triangle[2][3] = {{{3, 7, 2}, {2, 8, 2}, {5, 4, -1}},
                                               {{2, 8, -1}, {1, 8, -4}, {1, 11, 2}}};
    struct mesh_options options = {.gravity = {0, 0, -1}};
    struct soup soup = {0}, alone = {0};

    (void)state;
    soup_add(&soup, quad, 4);
    soup_add(&soup, triangle[0], 3);
    soup_add(&alone, triangle[1], 3);
    struct mesh *mesh = soup_mesh(&soup, &options, NULL), *one = soup_mesh(&alone, &options, NULL);

    expect_floor(mesh, (struct vec3){0, 0, 1}, quad[0], 0);
    expect_floor(one, (struct vec3){0, 0, 1}, (struct vec3){1.5, 9.5, 0}, 1);
    mesh_unref(mesh);
    mesh_unref(one);
    soup_free(&soup);
    soup_free(&alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_corner_beside_an_empty_cell_has_a_floor),
        cmocka_unit_test(corners_and_edges_have_floors),
    };

    return run_at_every_level("corners", tests, sizeof tests / sizeof *tests);
}
