/*
 * What it costs to add one polygon to a mesh of 100,000, or to take one away, against building the
 * mesh anew, in one run on one thread. While it is timed, each edited mesh is asked for the floor
 * that has come or gone.
 */
#include "terrain/mesh/mesh_edit.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/random.h"
#include "support/soup.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 224, ROUNDS = 9, EDITS = 5 }; /* 2 · 224² = 100,352 triangles */

static const struct mesh_options options = {.gravity = {0, 0, -1}};

static void fail(const char *what)
{
    fprintf(stderr, "bench_polygons: %s\n", what);
    exit(1);
}

/* Rolling ground of triangles that share their vertices. */
static void ground_make(struct soup *soup)
{
    for (uint32_t r = 0; r <= SIDE; r++)
        for (uint32_t c = 0; c <= SIDE; c++)
            soup_vertex(soup, (struct vec3){c, r, 8 * sin(0.11 * c) * cos(0.07 * r)});
    for (uint32_t r = 0; r < SIDE; r++)
        for (uint32_t c = 0; c < SIDE; c++) {
            uint32_t v = r * (SIDE + 1) + c;

            soup_polygon(soup, (const uint32_t[]){v, v + 1, v + SIDE + 1}, 3);
            soup_polygon(soup, (const uint32_t[]){v + 1, v + SIDE + 2, v + SIDE + 1}, 3);
        }
}

static double build_s(const struct polygon_soup *soup)
{
    double begin = bench_thread_s();
    struct err err;
    struct mesh *mesh = mesh_create(soup, &options, NULL, &err);
    double took = bench_thread_s() - begin;

    if (!mesh)
        fail(err.msg);
    mesh_unref(mesh);
    return took;
}

/* A roof over a random place, added or, of the mesh that has it, removed. */
static double edit_s(const struct mesh *mesh, struct random *random, const struct soup *ground,
                     bool is_removal)
{
    struct soup roof = {0};
    double x = random_in(random, 1, SIDE - 2), y = random_in(random, 1, SIDE - 2), begin, took;
    uint32_t number = is_removal ? random_below(random, (uint32_t)ground->polygon_count) : 0;
    struct polygon_soup view, after;
    struct mesh_contact contact;
    struct mesh *next;
    struct err err;

    soup_add(&roof, (const struct vec3[]){{x, y, 50}, {x + 1, y, 50}, {x, y + 1, 50}}, 3);
    view = soup_view(&roof);
    after = soup_view(ground); /* the bounds stay */
    struct mesh_change change = {is_removal ? NULL : &view,
                                 (uint32_t)ground->polygon_count,
                                 &number,
                                 is_removal,
                                 &after,
                                 NULL,
                                 NULL};

    begin = bench_thread_s();
    next = mesh_edit(mesh, &change, &err);
    took = bench_thread_s() - begin;
    if (!next)
        fail(err.msg);
    const uint32_t *corners = ground->corners + ground->starts[number];
    struct vec3 at = {x + 0.25, y + 0.25, 99};

    if (is_removal) {
        struct vec3 a = ground->vertices[corners[0]], b = ground->vertices[corners[1]],
                    c = ground->vertices[corners[2]];

        at = (struct vec3){(a.x + b.x + c.x) / 3, (a.y + b.y + c.y) / 3, 99};
    }
    if (mesh_floor(next, at, 0, &contact) == is_removal)
        fail("the edited mesh answers like the one before");
    if (!is_removal && contact.polygon != ground->polygon_count)
        fail("the floor is not the one that was added");
    mesh_unref(next);
    soup_free(&roof);
    return took;
}

int main(void)
{
    struct soup ground = {0};
    struct random random = {11};
    double built[ROUNDS], added[ROUNDS * EDITS], removed[ROUNDS * EDITS];
    struct err err;

    ground_make(&ground);
    struct polygon_soup view = soup_view(&ground);
    struct mesh *mesh = mesh_create(&view, &options, NULL, &err);

    if (!mesh)
        fail(err.msg);
    for (int i = 0; i < ROUNDS; i++) {
        built[i] = build_s(&view);
        for (int k = 0; k < EDITS; k++) {
            added[i * EDITS + k] = edit_s(mesh, &random, &ground, false);
            removed[i * EDITS + k] = edit_s(mesh, &random, &ground, true);
        }
    }
    double build = bench_median(built, ROUNDS);
    double add = bench_median(added, (size_t)ROUNDS * EDITS);
    double drop = bench_median(removed, (size_t)ROUNDS * EDITS);
    char note[96];

    snprintf(note, sizeof note, "%.1f ms for %.0f ms", 1e3 * add, 1e3 * build);
    bench_row("polygons", "add 1 polygon to a mesh of 100,352", "building it anew", build / add, 0,
              note);
    snprintf(note, sizeof note, "%.1f ms for %.0f ms", 1e3 * drop, 1e3 * build);
    bench_row("polygons", "remove 1 polygon from a mesh of 100,352", "building it anew",
              build / drop, 0, note);
    mesh_unref(mesh);
    soup_free(&ground);
    return 0;
}
