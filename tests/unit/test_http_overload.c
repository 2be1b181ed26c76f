/*
 * Overload: what waits for workers is bounded by number and by time, the newest is refused at once
 * with 503 and Retry-After, small requests pass large ones, and what the loop answers goes on.
 */
#include "http/http.h"
#include "tests/support/http_fixture.h"
#include "tests/support/raw_http.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOST "Host: localhost\r\n"
#define GET_HELLO "GET /hello HTTP/1.1\r\n" HOST "\r\n"
#define GET_PROBE "GET /probe HTTP/1.1\r\n" HOST "\r\n"
#define GET_WORKER "GET /worker HTTP/1.1\r\n" HOST "\r\n"
#define WORKERS 2

static struct http_fixture fixture;

static int start(uint32_t queue_ms_max, size_t queued_max)
{
    struct http_config config = fixture_config();

    config.limits.workers = WORKERS;
    config.limits.queue_ms_max = queue_ms_max;
    config.limits.queued_max = queued_max;
    fixture_start(&fixture, &config);
    return 0;
}

static int setup_with_few(void **state)
{
    (void)state;
    return start(3600000, 2);
}

static int setup_with_little_time(void **state)
{
    (void)state;
    return start(250, 1000); /* more than a thread takes to wake on a busy machine */
}

/* What a worker would do is refused. */
static int setup_with_none(void **state)
{
    (void)state;
    return start(3600000, 0);
}

static int setup_with_much(void **state)
{
    (void)state;
    return start(3600000, 1000);
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&fixture);
    return 0;
}

static struct http_counters counters(void)
{
    struct http_counters out;

    http_server_counters(fixture.server, &out);
    return out;
}

/* Until so many wait for a worker: they were sent, but to the loop nobody is in a hurry. */
static void await_queued(uint64_t count)
{
    for (int i = 0; counters().queued != count; i++) {
        assert_true(i < 30000);
        poll(NULL, 0, 1);
    }
}

static void expect(struct raw_client *client, int status, const char *words)
{
    struct raw_answer answer = raw_read(client, false);

    if (answer.status != status || !strstr(answer.body, words))
        fail_msg("%d '%.200s' instead of %d '%s'", answer.status, answer.body, status, words);
    raw_answer_free(&answer);
}

/* 503 with limit, got and a Retry-After of 1 second or more. */
static void expect_refused(struct raw_client *client, const char *words)
{
    struct raw_answer answer = raw_read(client, false);
    char seconds[32];

    if (answer.status != 503 || !strstr(answer.body, words))
        fail_msg("%d '%.200s' instead of 503 '%s'", answer.status, answer.body, words);
    assert_true(raw_header(&answer, "Retry-After", seconds, sizeof seconds));
    assert_true(strtoul(seconds, NULL, 10) >= 1);
    assert_non_null(strstr(answer.body, "\"limit\":"));
    raw_answer_free(&answer);
}

static struct raw_client ask(const char *text)
{
    struct raw_client client = raw_connect(fixture.port);

    raw_send_text(&client, text);
    return client;
}

static void the_newest_is_refused_and_the_loop_goes_on(void **state)
{
    struct raw_client busy[WORKERS], waiting[2], client;

    (void)state;
    for (size_t i = 0; i < WORKERS; i++) {
        busy[i] = ask(GET_WORKER);
        fixture_await_entered(&fixture);
    }
    for (size_t i = 0; i < 2; i++) {
        waiting[i] = ask(GET_WORKER);
        await_queued(i + 1);
    }
    client = ask(GET_WORKER GET_HELLO GET_PROBE);
    expect_refused(&client, "\"limit\":2,\"got\":3");
    expect(&client, 200, "hello");
    expect(&client, 200, "hello");
    assert_int_equal(counters().shed, 1);
    assert_int_equal(counters().workers_busy, WORKERS);
    fixture_open_gate(&fixture, 4);
    for (size_t i = 0; i < 2; i++) {
        expect(&busy[i], 200, "worker");
        expect(&waiting[i], 200, "worker");
        raw_close(&busy[i]);
        raw_close(&waiting[i]);
    }
    raw_close(&client);
    assert_int_equal(counters().queued, 0);
}

static void a_body_for_a_worker_is_not_waited_for(void **state)
{
    struct raw_client held[4], client;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        held[i] = ask(GET_WORKER);
        if (i < WORKERS)
            fixture_await_entered(&fixture);
        else
            await_queued(i + 1 - WORKERS);
    }
    client = ask("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n");
    expect_refused(&client, "\"limit\":2,\"got\":3");
    raw_close(&client);
    client = ask("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nsmall");
    expect(&client, 200, "small");
    raw_close(&client);
    fixture_open_gate(&fixture, 4);
    for (size_t i = 0; i < 4; i++) {
        expect(&held[i], 200, "worker");
        raw_close(&held[i]);
    }
}

/* Time passes and others come meanwhile; how many were refused. */
static uint64_t come_for(unsigned ms)
{
    uint64_t refused = 0;

    for (unsigned passed = 0; passed < ms; passed += 20) {
        struct raw_client client =
            ask("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n");

        poll(NULL, 0, 20);
        refused = counters().shed;
        raw_reset(&client);
    }
    return refused;
}

/* However long the test takes: more time makes both refusals only more certain. */
static void who_waits_too_long_is_refused_and_so_are_those_behind(void **state)
{
    struct raw_client busy[WORKERS], waiting, client;
    uint64_t refused;

    (void)state;
    for (size_t i = 0; i < WORKERS; i++) {
        busy[i] = ask(GET_WORKER);
        fixture_await_entered(&fixture);
    }
    waiting = ask(GET_WORKER);
    await_queued(1);
    come_for(300);
    client = ask(GET_WORKER);
    expect_refused(&client, "\"limit\":250,");
    raw_close(&client);
    refused = come_for(300);
    assert_true(refused >= 2);
    fixture_open_gate(&fixture, 2);
    expect_refused(&waiting, "\"limit\":500,");
    raw_close(&waiting);
    for (size_t i = 0; i < WORKERS; i++) {
        expect(&busy[i], 200, "worker");
        raw_close(&busy[i]);
    }
    assert_int_equal(counters().shed, refused + 1);
}

/* Nothing comes and nothing is done for longer than anybody is let wait: all stood still. */
static void who_waited_while_all_stood_still_is_served(void **state)
{
    struct raw_client busy[WORKERS], waiting[20], client;

    (void)state;
    for (size_t i = 0; i < WORKERS; i++) {
        busy[i] = ask(GET_WORKER);
        fixture_await_entered(&fixture);
    }
    for (size_t i = 0; i < 20; i++)
        waiting[i] = ask(GET_WORKER);
    await_queued(20);
    poll(NULL, 0, 1000);
    client = ask(GET_WORKER);
    await_queued(21);
    fixture_open_gate(&fixture, WORKERS + 21);
    for (size_t i = 0; i < WORKERS; i++) {
        expect(&busy[i], 200, "worker");
        raw_close(&busy[i]);
    }
    for (size_t i = 0; i < 20; i++) {
        expect(&waiting[i], 200, "worker");
        raw_close(&waiting[i]);
    }
    expect(&client, 200, "worker");
    raw_close(&client);
    assert_int_equal(counters().shed, 0);
}

static void send_still_and_echo(struct raw_client *client, const char *before, int body_bytes)
{
    char text[4096];

    assert_in_range(snprintf(text, sizeof text,
                             "%sPOST /echo HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n%0*d",
                             before, body_bytes, body_bytes, 7),
                    0, sizeof text - 1);
    *client = ask(text);
}

/* Bodies that are no short ones stay on the loop while their turn is young. */
static void what_comes_late_in_a_turn_goes_to_a_worker(void **state)
{
    static const char still[] = "GET /still HTTP/1.1\r\n" HOST "\r\n";
    struct raw_client client;

    (void)state;
    send_still_and_echo(&client, "", 2000);
    expect(&client, 200, "0007");
    raw_close(&client);
    for (int i = 0; i < 2; i++) {
        send_still_and_echo(&client, still, i ? 2000 : 1000);
        fixture_await_entered(&fixture);
        poll(NULL, 0, 3); /* the turn may take 2 ms */
        fixture_open_gate(&fixture, 1);
        expect(&client, 200, "worker"); /* as /worker, but on the loop */
        if (i)
            expect_refused(&client, "\"limit\":0,\"got\":1");
        else
            expect(&client, 200, "0007");
        raw_close(&client);
    }
    assert_int_equal(counters().shed, 1);
}

static void small_requests_pass_large_ones(void **state)
{
    struct raw_client large[3], client;

    (void)state;
    client = ask(GET_WORKER); /* the route is found to be slow */
    fixture_await_entered(&fixture);
    poll(NULL, 0, 100);
    fixture_open_gate(&fixture, 1);
    expect(&client, 200, "worker");
    raw_close(&client);
    for (size_t i = 0; i < 3; i++)
        large[i] = ask(GET_WORKER);
    fixture_await_entered(&fixture);
    await_queued(2);
    assert_int_equal(counters().workers_busy, 1);
    client = ask("POST /moving HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab");
    expect(&client, 200, "from a worker");
    raw_close(&client);
    fixture_open_gate(&fixture, 3);
    for (size_t i = 0; i < 3; i++) {
        expect(&large[i], 200, "worker");
        raw_close(&large[i]);
    }
}

static void nobody_works_for_who_has_gone(void **state)
{
    struct raw_client busy[WORKERS], gone, client;
    unsigned begun;

    (void)state;
    for (size_t i = 0; i < WORKERS; i++) {
        busy[i] = ask(GET_WORKER);
        fixture_await_entered(&fixture);
    }
    gone = ask(GET_WORKER);
    await_queued(1);
    begun = atomic_load(&fixture.begun);
    raw_reset(&gone);
    for (int i = 0; counters().open != WORKERS; i++) {
        assert_true(i < 30000);
        poll(NULL, 0, 1);
    }
    fixture_open_gate(&fixture, WORKERS);
    for (size_t i = 0; i < WORKERS; i++) {
        expect(&busy[i], 200, "worker");
        raw_close(&busy[i]);
    }
    client = ask(GET_WORKER);
    fixture_await_entered(&fixture); /* and not the handler of who has gone */
    assert_int_equal(atomic_load(&fixture.begun), begun + 1);
    fixture_open_gate(&fixture, 1);
    expect(&client, 200, "worker");
    raw_close(&client);
    assert_int_equal(counters().shed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_newest_is_refused_and_the_loop_goes_on, setup_with_few,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_body_for_a_worker_is_not_waited_for, setup_with_few,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_waits_too_long_is_refused_and_so_are_those_behind,
                                        setup_with_little_time, teardown),
        cmocka_unit_test_setup_teardown(who_waited_while_all_stood_still_is_served,
                                        setup_with_little_time, teardown),
        cmocka_unit_test_setup_teardown(what_comes_late_in_a_turn_goes_to_a_worker, setup_with_none,
                                        teardown),
        cmocka_unit_test_setup_teardown(small_requests_pass_large_ones, setup_with_much, teardown),
        cmocka_unit_test_setup_teardown(nobody_works_for_who_has_gone, setup_with_much, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
