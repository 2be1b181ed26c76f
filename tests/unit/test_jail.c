/*
 * The child process with its hands tied: what it says arrives, however it ends is told, and what it
 * must not do it cannot.
 */
#include "base/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const struct jail_limits plain = {.memory_bytes = 64 << 20, .cpu_s = 10, .wall_s = 60};

static void start(struct jail *jail, const struct jail_limits *limits,
                  void (*body)(void *context, int pipe), void *context)
{
    struct err err;

    if (jail_start(jail, limits, body, context, &err))
        fail_msg("%s", err.msg);
}

/* Runs body, which writes one int at most; its end in *end, and whether the int came. */
static bool ask(const struct jail_limits *limits, void (*body)(void *context, int pipe),
                void *context, int *answer, enum jail_end *end)
{
    struct jail jail;
    bool came;

    start(&jail, limits, body, context);
    came = jail_read(&jail, answer, sizeof *answer);
    *end = jail_end(&jail);
    return came;
}

enum { BLOCK_INTS = 1 << 20 };

static void block_write(void *context, int pipe)
{
    const int *factor = context;
    int *block = malloc(BLOCK_INTS * sizeof *block);

    for (int i = 0; i < BLOCK_INTS; i++)
        block[i] = i * *factor;
    jail_write(pipe, block, BLOCK_INTS * sizeof *block);
}

static void what_the_child_writes_arrives_whole_and_no_more(void **state)
{
    int *block = malloc(BLOCK_INTS * sizeof *block), factor = 3;
    struct jail jail;
    char more;

    (void)state;
    start(&jail, &plain, block_write, &factor);
    assert_true(jail_read(&jail, block, BLOCK_INTS * sizeof *block));
    for (int i = 0; i < BLOCK_INTS; i++)
        if (block[i] != 3 * i)
            fail_msg("number %d is %d", i, block[i]);
    assert_false(jail_read(&jail, &more, 1));
    assert_int_equal(jail_end(&jail), JAIL_DONE);
    free(block);
}

static void half_write(void *context, int pipe)
{
    (void)context;
    jail_write(pipe, "ab", 2);
}

static void fewer_bytes_than_asked_for_are_no_answer(void **state)
{
    enum jail_end end;
    int answer;

    (void)state;
    assert_false(ask(&plain, half_write, NULL, &answer, &end));
    assert_int_equal(end, JAIL_DONE);
}

static void signal_raise(void *context, int pipe)
{
    (void)pipe;
    raise(*(const int *)context);
}

static void a_crash_is_told(void **state)
{
    static const int numbers[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGTERM};

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int number = numbers[i], answer;
        enum jail_end end;

        assert_false(ask(&plain, signal_raise, &number, &answer, &end));
        if (end != JAIL_CRASHED)
            fail_msg("signal %d: end %d", number, (int)end);
    }
}

static void burn(void *context, int pipe)
{
    (void)context, (void)pipe;
    for (volatile unsigned i = 0;; i++)
        ;
}

static void doze(void *context, int pipe)
{
    (void)context, (void)pipe;
    for (;;)
        pause();
}

static void a_child_that_works_or_waits_for_ever_is_ended(void **state)
{
    static const struct jail_limits cpu = {.memory_bytes = 64 << 20, .cpu_s = 1, .wall_s = 300};
    static const struct jail_limits wall = {.memory_bytes = 64 << 20, .cpu_s = 300, .wall_s = 1};
    enum jail_end end;
    int answer;

    (void)state;
    assert_false(ask(&cpu, burn, NULL, &answer, &end));
    assert_int_equal(end, JAIL_TIMED_OUT);
    assert_false(ask(&wall, doze, NULL, &answer, &end));
    assert_int_equal(end, JAIL_TIMED_OUT);
}

static void memory_count(void *context, int pipe)
{
    enum { STEP = 1 << 20, STEPS_MAX = 1024 };
    int steps = 0;

    (void)context;
    for (; steps < STEPS_MAX; steps++) {
        char *block = malloc(STEP);

        if (!block)
            break;
        memset(block, 1, STEP);
    }
    jail_write(pipe, &steps, sizeof steps);
}

/* AddressSanitizer's allocator ends the process instead of returning NULL. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_RETURNS_NULL 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOCATOR_RETURNS_NULL 0
#endif
#endif
#ifndef ALLOCATOR_RETURNS_NULL
#define ALLOCATOR_RETURNS_NULL 1
#endif

static void memory_beyond_the_bound_is_not_to_be_had(void **state)
{
    enum jail_end end;
    void *before;
    int steps = -1;

    (void)state;
    if (!ALLOCATOR_RETURNS_NULL) {
        print_message("# the sanitizer's allocator ends the process instead of returning NULL\n");
        skip();
    }
    before = malloc(200 << 20);
    memset(before, 1, 200 << 20); /* what the parent has does not count */
    assert_true(ask(&plain, memory_count, NULL, &steps, &end));
    free(before);
    if (steps < 32 || steps > 64)
        fail_msg("a child that may have 64 MiB got %d", steps);
}

static void doors_try(void *context, int pipe)
{
    int opened = 0;

    opened += open("/etc/passwd", O_RDONLY) >= 0;
    opened += open("/dev/null", O_WRONLY) >= 0;
    opened += socket(AF_INET, SOCK_STREAM, 0) >= 0;
    opened += dup(pipe) >= 0;
    for (int i = 0; i < 256; i++)
        opened += i != pipe && i != STDERR_FILENO && fcntl(i, F_GETFD) >= 0;
    (void)context;
    jail_write(pipe, &opened, sizeof opened);
}

static void the_child_can_open_nothing_and_has_nothing_open(void **state)
{
    int kept = open("/dev/null", O_RDONLY), opened = -1;
    enum jail_end end;

    (void)state;
    assert_true(ask(&plain, doors_try, NULL, &opened, &end));
    close(kept);
    assert_int_equal(opened, 0);
    assert_int_equal(end, JAIL_DONE);
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled = 1;
}

static void the_parents_signal_handlers_do_not_run_in_the_child(void **state)
{
    struct sigaction ours = {.sa_handler = handle}, before;
    int number = SIGTERM, answer;
    enum jail_end end;

    (void)state;
    sigaction(SIGTERM, &ours, &before);
    assert_false(ask(&plain, signal_raise, &number, &answer, &end));
    sigaction(SIGTERM, &before, NULL);
    assert_int_equal(end, JAIL_CRASHED);
    assert_int_equal(handled, 0);
}

static void write_for_ever(void *context, int pipe)
{
    static const char zeros[4096];

    (void)context;
    for (;;)
        jail_write(pipe, zeros, sizeof zeros);
}

static void a_child_that_nobody_listens_to_any_more_ends(void **state)
{
    struct jail jail;
    char first;

    (void)state;
    start(&jail, &plain, write_for_ever, NULL);
    assert_true(jail_read(&jail, &first, 1));
    assert_int_equal(jail_end(&jail), JAIL_CRASHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_child_writes_arrives_whole_and_no_more),
        cmocka_unit_test(fewer_bytes_than_asked_for_are_no_answer),
        cmocka_unit_test(a_crash_is_told),
        cmocka_unit_test(a_child_that_works_or_waits_for_ever_is_ended),
        cmocka_unit_test(memory_beyond_the_bound_is_not_to_be_had),
        cmocka_unit_test(the_child_can_open_nothing_and_has_nothing_open),
        cmocka_unit_test(the_parents_signal_handlers_do_not_run_in_the_child),
        cmocka_unit_test(a_child_that_nobody_listens_to_any_more_ends),
    };

    return cmocka_run_group_tests_name("jail", tests, NULL, NULL);
}
