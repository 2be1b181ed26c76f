/*
 * base/wake.h against libuv: what was stored before a wake is found by the loop, in whatever moment
 * of its turn the wake comes.
 */
#include "base/wake.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

enum { RUN_MS = 2000, LOST_MS = 5000, DELAY_MAX = 12000 };

struct sleeper {
    uv_loop_t loop;
    struct wake wake;
    uv_poll_t woken;
    atomic_bool is_woken, is_over;
};

static void on_woken(uv_poll_t *woken, int status, int events)
{
    struct sleeper *sleeper = woken->data;

    (void)status;
    (void)events;
    wake_take(&sleeper->wake);
    atomic_exchange_explicit(&sleeper->is_woken, false, memory_order_acquire);
    if (atomic_load(&sleeper->is_over))
        uv_close((uv_handle_t *)woken, NULL);
}

static void *sleep_and_turn(void *context)
{
    struct sleeper *sleeper = context;

    uv_run(&sleeper->loop, UV_RUN_DEFAULT);
    return NULL;
}

static bool is_found(struct sleeper *sleeper)
{
    uint64_t begun_ns = uv_hrtime();

    while (atomic_load_explicit(&sleeper->is_woken, memory_order_relaxed))
        if (uv_hrtime() - begun_ns > LOST_MS * 1000000ull)
            return false;
    return true;
}

/* The first signal is pending while the flag is stored, or is being taken away in that moment. */
static bool wake_in_the_turn(struct sleeper *sleeper, unsigned delay)
{
    wake_send(&sleeper->wake);
    for (volatile unsigned i = 0; i < delay;)
        i = i + 1;
    atomic_store_explicit(&sleeper->is_woken, true, memory_order_release);
    wake_send(&sleeper->wake);
    return is_found(sleeper);
}

static void no_wake_is_lost(void **state)
{
    static struct sleeper sleeper;
    pthread_t thread;
    uint64_t begun_ns = uv_hrtime();
    unsigned rounds = 0;
    bool is_well = true;

    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    assert_int_equal(uv_loop_init(&sleeper.loop), 0);
    assert_true(wake_open(&sleeper.wake));
    assert_int_equal(uv_poll_init(&sleeper.loop, &sleeper.woken, sleeper.wake.fd), 0);
    sleeper.woken.data = &sleeper;
    assert_int_equal(uv_poll_start(&sleeper.woken, UV_READABLE, on_woken), 0);
    assert_int_equal(pthread_create(&thread, NULL, sleep_and_turn, &sleeper), 0);
    for (; is_well && uv_hrtime() - begun_ns < RUN_MS * 1000000ull; rounds++)
        is_well = wake_in_the_turn(&sleeper, rounds * 7919 % DELAY_MAX);
    atomic_store(&sleeper.is_over, true);
    wake_send(&sleeper.wake);
    pthread_join(thread, NULL);
    uv_loop_close(&sleeper.loop);
    wake_close(&sleeper.wake);
    if (!is_well)
        fail_msg("wake %u was lost", rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_wake_is_lost)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
