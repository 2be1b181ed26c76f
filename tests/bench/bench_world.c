/*
 * Calls of the world where it has many locales: points and rays, beside a loop that asks each
 * locale's own box, as they did before there were reaches (bounding_sphere.h). A thousand fields of
 * 90 m, 100 m apart; one thread, in turns; both name the same locale for every point.
 */
#include "base/check.h"
#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/random.h"
#include "world/ask/across.h"
#include "world/ask/locate.h"
#include "world/ask/query.h"
#include "world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 40, LOCALES = 1000, POINTS = 1000, ROUNDS = 11 };
enum { OWN, BOXES, WAYS };

struct bench {
    const struct world_snapshot *snapshot;
    struct vec3 points[POINTS];
    const struct locale *located[WAYS][POINTS];
    struct crossing *crossings; /* [LOCALES] */
};

static struct world *make_world(void)
{
    struct world *world;
    struct err err;

    world = world_create(1, &world_limits_default, NULL, &err);
    CHECK(world != NULL);
    world_readers_begin(world);
    for (int i = 0; i < LOCALES; i++) {
        static const float heights_m[] = {1, 2, 3, 4};
        struct world_change put = {.kind = WORLD_PUT_LOCALE, .manifest = locale_manifest_default};
        struct world_change fill = {.kind = WORLD_PUT_LAYER, .layer_id = "ground"};
        struct heightfield_spec spec = {.cols = 2, .rows = 2, .spacing_x_m = 90, .spacing_y_m = 90};

        snprintf(put.locale_id, sizeof put.locale_id, "l%04d", i);
        memcpy(fill.locale_id, put.locale_id, sizeof fill.locale_id);
        put.manifest.placement.translation = (struct vec3){100.0 * (i % ROW), 100.0 * (i / ROW), 0};
        CHECK(world_apply(world, &put, &err) == ERR_OK);
        fill.layer =
            layer_create_heightfield("ground", heightfield_create(&spec, heights_m, &err), &err);
        CHECK(fill.layer != NULL && world_apply(world, &fill, &err) == ERR_OK);
        world_reader_quiet(world, 0); /* or the writer waits for it */
    }
    return world;
}

/* By each locale's own box alone, the smallest id first. */
static const struct locale *locate_by_boxes(const struct world_snapshot *snapshot,
                                            struct vec3 world)
{
    for (size_t i = 0; i < snapshot->locale_count; i++) {
        const struct locale *locale = snapshot_at(snapshot, i);
        const struct layer_choice all = {locale, locale->layers, locale->layer_count};
        struct vec3 point = placement_to_locale(&locale->manifest.placement, world);
        bool has_floor, has_ceiling;

        if (locale_gravity_meets(locale, point, &locale->bounds) &&
            locale_contains(&all, point, &has_floor, &has_ceiling) == CONTAINED_INSIDE)
            return locale;
    }
    return NULL;
}

static void ask_points(void *context, unsigned way)
{
    struct bench *b = context;

    for (int i = 0; i < POINTS; i++) {
        struct located found;

        if (way == BOXES) {
            b->located[way][i] = locate_by_boxes(b->snapshot, b->points[i]);
            continue;
        }
        snapshot_locate(b->snapshot, b->points[i], NULL, 0, &found);
        b->located[way][i] = found.locale;
    }
}

/* Slanted down; by boxes each locale is asked with its whole ray, and the nearest hit counts. */
static void ask_rays(void *context, unsigned way)
{
    struct bench *b = context;

    for (int i = 0; i < POINTS; i++) {
        const struct ray world = {b->points[i], {0.1, 0.2, -1}, INFINITY};
        struct across_hit hit = {.locale = NULL};
        double nearest = INFINITY;

        if (way == OWN) {
            snapshot_ray(b->snapshot, &world, RAY_CLOSEST, b->crossings, &hit);
            b->located[way][i] = hit.locale;
            continue;
        }
        b->located[way][i] = NULL;
        for (size_t k = 0; k < b->snapshot->locale_count; k++) {
            const struct locale *locale = snapshot_at(b->snapshot, k);
            const struct layer_choice all = {locale, locale->layers, locale->layer_count};
            const struct placement *placement = &locale->manifest.placement;
            struct ray ray = {placement_to_locale(placement, world.origin),
                              placement_turn_to_locale(placement, world.direction), INFINITY};
            struct locale_hit found;

            if (locale_ray(&all, &ray, RAY_CLOSEST, &found, NULL) && found.at.t < nearest) {
                nearest = found.at.t;
                b->located[way][i] = locale;
            }
        }
    }
}

static void race(struct bench *b, const char *work, void (*ask)(void *context, unsigned way))
{
    struct bench_race race = {WAYS, ROUNDS, 1, POINTS, ask, b};
    struct bench_time times[WAYS];
    char name[64];

    bench_in_turns(&race, times);
    if (memcmp(b->located[OWN], b->located[BOXES], sizeof b->located[OWN]) != 0) {
        fprintf(stderr, "bench_world: %s: the locales differ\n", work);
        exit(1);
    }
    snprintf(name, sizeof name, "%s, %d locales", work, LOCALES);
    bench_row_times("world", name, "each locale asked", &times[OWN], &times[BOXES], 0, NULL);
}

int main(void)
{
    static struct bench b;
    struct world *world = make_world();
    struct random random = {3};

    b.snapshot = world_pin(world, 0);
    b.crossings = calloc(LOCALES, sizeof *b.crossings);
    CHECK(b.crossings != NULL);
    for (int i = 0; i < POINTS; i++)
        b.points[i] = (struct vec3){random_in(&random, 0, 100.0 * ROW),
                                    random_in(&random, 0, 100.0 * LOCALES / ROW), 50};
    printf("\nCalls of the world: %d locales, %d points\n", LOCALES, POINTS);
    race(&b, "locate", ask_points);
    race(&b, "ray", ask_rays);
    free(b.crossings);
    world_unpin(world, 0, b.snapshot);
    world_destroy(world);
    return 0;
}
