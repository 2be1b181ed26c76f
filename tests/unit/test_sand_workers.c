/*
 * Threads for parallel loops: each item is done once, and helpers are as nice as the thread that
 * runs, however nice the one was that made them.
 */
#include "sand/engine_c/workers.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

enum { ITEMS = 5000, THREADS = 4 };

struct items {
    atomic_uint done[ITEMS];
};

static void count_items(void *context, uint32_t first, uint32_t end)
{
    struct items *items = context;

    for (uint32_t i = first; i < end; i++)
        atomic_fetch_add(&items->done[i], 1);
}

static void each_item_is_done_once(void **state)
{
    static const struct {
        uint32_t count, piece;
    } cases[] = {{0, 1}, {1, 1}, {7, 8}, {8, 8}, {9, 8}, {ITEMS, 1}, {ITEMS, 64}, {ITEMS, ITEMS}};

    (void)state;
    for (uint32_t threads = 0; threads <= THREADS; threads++) {
        struct workers *workers = workers_create(threads);

        assert_non_null(workers);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            static struct items items;

            for (int i = 0; i < ITEMS; i++)
                atomic_store(&items.done[i], 0);
            workers_run(workers, cases[c].count, cases[c].piece, count_items, &items);
            for (uint32_t i = 0; i < ITEMS; i++)
                if (atomic_load(&items.done[i]) != (i < cases[c].count))
                    fail_msg("item %u of %u in pieces of %u: done %u times", i, cases[c].count,
                             cases[c].piece, atomic_load(&items.done[i]));
        }
        workers_destroy(workers);
    }
}

/* Waits until all threads have an item each, and notes how nice they are. */
struct meeting {
    atomic_uint there;
    int niceness[THREADS];
};

static void meet(void *context, uint32_t first, uint32_t end)
{
    struct meeting *meeting = context;

    for (uint32_t i = first; i < end; i++) {
        meeting->niceness[i] = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
        atomic_fetch_add(&meeting->there, 1);
        while (atomic_load(&meeting->there) < THREADS)
            sched_yield();
    }
}

static void helpers_are_as_nice_as_who_runs(void **state)
{
    struct workers *workers = workers_create(THREADS);
    const id_t self = (id_t)syscall(SYS_gettid);
    const int before = getpriority(PRIO_PROCESS, self);
    static struct meeting meeting;

    (void)state;
    assert_non_null(workers);
    if (before >= 19) {
        print_message("niceness is %d: nothing is nicer\n", before);
        workers_destroy(workers);
        skip();
    }
    assert_int_equal(setpriority(PRIO_PROCESS, self, before + 1), 0);
    workers_run(workers, THREADS, 1, meet, &meeting);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(meeting.niceness[i], before + 1);
    workers_destroy(workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_done_once),
        cmocka_unit_test(helpers_are_as_nice_as_who_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
