/*
 * Threads that wait a while must not care for the wall clock: while they wait it is set back by an
 * hour. What a wait makes of that is seen from inside by giving the program a wall clock that is an
 * hour ahead of the kernel's: a time-out by it comes an hour late.
 */
#include "base/timed_wait.h"
#include "world/world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/store_fixture.h"

enum { AHEAD_S = 3600, ROUNDS = 1000, ROUND_MS = 10 };

/* Instead of libc's, for everything that is linked into this program. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);

    if (rc == 0 && clock == CLOCK_REALTIME)
        out->tv_sec += AHEAD_S;
    return rc;
}

static void pause_once(void)
{
    const struct timespec time = {.tv_nsec = ROUND_MS * 1000000L};

    nanosleep(&time, NULL);
}

static struct err err;

static void apply(struct world *world, struct world_change *change)
{
    snprintf(change->locale_id, sizeof change->locale_id, "a");
    store_must(world_apply(world, change, &err), &err);
}

static void put_ground(struct world *world)
{
    struct world_change locale = {.kind = WORLD_PUT_LOCALE, .manifest = locale_manifest_default};
    struct world_change layer = {.kind = WORLD_PUT_LAYER, .layer_id = "roof"};
    struct polygon_set polygons;

    mesh_unref(store_test_mesh(1, &polygons));
    layer.layer =
        layer_create_mesh("roof", LAYER_GROUND, &polygons, (struct vec3){0, 0, -1}, NULL, &err);
    assert_non_null(layer.layer);
    apply(world, &locale);
    apply(world, &layer);
}

static double speed_of_roof(struct world *world)
{
    const struct world_snapshot *snapshot = world_pin(world, 0);
    double speed = locale_layer(snapshot_locale(snapshot, "a"), "roof")->motion.velocity.x;

    world_unpin(world, 0, snapshot);
    world_reader_quiet(world, 0);
    return speed;
}

static void a_layer_comes_to_rest(void **state)
{
    struct world *world = world_create(1, &world_limits_default, NULL, &err);
    struct world_change move = {.kind = WORLD_MOVE_LAYER, .layer_id = "roof"};
    bool rests = false;

    (void)state;
    assert_non_null(world);
    world_readers_begin(world);
    put_ground(world);
    apply(world, &move);
    pause_once();
    move.pose.translation.x = 1;
    apply(world, &move);
    for (int i = 0; i < ROUNDS && !rests; i++, pause_once())
        rests = speed_of_roof(world) == 0;
    assert_true(rests);
    world_destroy(world);
}

static void what_was_written_is_checkpointed(void **state)
{
    struct store_stats stats = {0};
    struct world *world;
    struct store *store;
    char path[256];

    (void)state;
    store_folder_make(path);
    store = store_must_open(path);
    world = world_create(1, &world_limits_default, store, &err);
    assert_non_null(world);
    put_ground(world);
    for (int i = 0; i < ROUNDS && stats.checkpoints == 0; i++, pause_once())
        store_stats(store, &stats);
    assert_true(stats.checkpoints > 0);
    world_destroy(world);
    store_close(store);
    store_folder_remove(path);
}

static void a_wait_ends_when_its_time_is_over_and_not_before(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct timespec until, now;
    pthread_cond_t condition;

    (void)state;
    timed_wait_init(&condition);
    for (int ms = 0; ms < 40; ms += 13) {
        until = timed_wait_until(ms * 1e-3);
        assert_true(until.tv_nsec >= 0 && until.tv_nsec < 1000000000L);
        pthread_mutex_lock(&mutex);
        assert_int_equal(pthread_cond_timedwait(&condition, &mutex, &until), ETIMEDOUT);
        pthread_mutex_unlock(&mutex);
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec > until.tv_sec ||
                    (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
    }
    pthread_cond_destroy(&condition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_comes_to_rest),
        cmocka_unit_test(what_was_written_is_checkpointed),
        cmocka_unit_test(a_wait_ends_when_its_time_is_over_and_not_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
