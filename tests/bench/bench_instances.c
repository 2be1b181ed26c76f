/*
 * A town of equal houses: shared beside copied, in one process. Memory, build, contacts and rays,
 * of these the least time of some rounds.
 *
 *   bench_instances [instances [triangles of a house [from one to the next, in its diagonals]]]
 */
#include "terrain/instances/instances.h"

#include "support/bench_time.h"
#include "support/mesh_scenes.h"
#include "support/random.h"
#include "world/values/threads.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUESTIONS = 200000, ROUNDS = 7 };

struct times {
    double contact_ns, ray_ns;
    unsigned found, hits;
};

static struct mesh *build(const struct polygon_soup *soup, const struct mesh_instances *instances,
                          const char *what)
{
    struct threads threads = threads_of_machine();
    const struct mesh_options options = {
        .gravity = {0, 0, -1}, .instances = instances, .crew = &threads.crew};
    double begun_s = bench_now_s();
    struct mesh_stats stats;
    struct err err;
    struct mesh *mesh = mesh_create(soup, &options, NULL, &err);

    if (!mesh) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    mesh_stats(mesh, &stats);
    printf("%-8s %10llu polygons %12llu bytes  built in %8.1f ms\n", what,
           (unsigned long long)stats.polygons, (unsigned long long)stats.bytes,
           1e3 * (bench_now_s() - begun_s));
    return mesh;
}

static void ask(const struct mesh *mesh, double side_m, struct times *least)
{
    struct random random = {7};
    struct mesh_contact contact;
    struct mesh_hit hit;
    double begun_s = bench_now_s(), between_s;

    least->found = least->hits = 0;
    for (int i = 0; i < QUESTIONS; i++)
        least->found += mesh_floor(
            mesh, (struct vec3){random_in(&random, 0, side_m), random_in(&random, 0, side_m), 100},
            0, &contact);
    between_s = bench_now_s();
    for (int i = 0; i < QUESTIONS; i++) {
        const struct ray ray = {{random_in(&random, 0, side_m), random_in(&random, 0, side_m), 60},
                                {random_in(&random, -1, 1), random_in(&random, -1, 1), -0.5},
                                INFINITY};

        least->hits += mesh_ray(mesh, &ray, RAY_CLOSEST, &hit);
    }
    least->contact_ns = fmin(least->contact_ns, 1e9 * (between_s - begun_s) / QUESTIONS);
    least->ray_ns = fmin(least->ray_ns, 1e9 * (bench_now_s() - between_s) / QUESTIONS);
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    size_t triangles = argc > 2 ? strtoul(argv[2], NULL, 10) : 240;
    double step = argc > 3 ? strtod(argv[3], NULL) : 1.5;
    struct mesh_instance *at = calloc(count, sizeof *at);
    struct random random = {3};
    struct soup house = {.vertices = NULL};
    struct soup_copy copy;
    struct err err;

    mesh_scene_make(MESH_SCENE_TOWN, triangles, 1, &house);
    struct polygon_soup soup = soup_view(&house);
    struct box3 box = {house.vertices[0], house.vertices[0]};

    for (size_t i = 1; i < house.vertex_count; i++)
        box = box3_union(box, (struct box3){house.vertices[i], house.vertices[i]});
    double step_m = step * vec3_length(vec3_sub(box.max, box.min)), row = ceil(sqrt((double)count));

    for (size_t i = 0; i < count; i++) {
        double turn = random_in(&random, -3, 3);

        at[i] = (struct mesh_instance){
            .translation = {step_m * (double)(i % (size_t)row), step_m * floor((double)i / row), 0},
            .cos = cos(turn),
            .sin = sin(turn),
            .count = (uint32_t)soup.polygon_count};
    }
    const struct mesh_instances instances = {at, count, {0, 0, 1}};
    struct mesh *shared = build(&soup, &instances, "shared");

    if (instances_copy(&soup, at, count, instances.axis, &copy, &err))
        return 1;
    struct polygon_soup copies = soup_copy_view(&copy);
    struct mesh *copied = build(&copies, NULL, "copied");

    struct times one = {INFINITY, INFINITY, 0, 0}, all = one;

    for (int round = 0; round < ROUNDS; round++) {
        ask(shared, row * step_m, &one);
        ask(copied, row * step_m, &all);
    }
    printf("contact  %6.0f ns shared, %6.0f ns copied: %.2f (of %d found %u, %u)\n", one.contact_ns,
           all.contact_ns, one.contact_ns / all.contact_ns, QUESTIONS, one.found, all.found);
    printf("ray      %6.0f ns shared, %6.0f ns copied: %.2f (of %d hit %u, %u)\n", one.ray_ns,
           all.ray_ns, one.ray_ns / all.ray_ns, QUESTIONS, one.hits, all.hits);
    mesh_unref(shared);
    mesh_unref(copied);
    soup_copy_free(&copy);
    soup_free(&house);
    free(at);
    return 0;
}
