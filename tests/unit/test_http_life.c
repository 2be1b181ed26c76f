/*
 * The server over time: workers and deferred answers, peers that vanish, deadlines, draining,
 * several loops, logs. Nothing here measures time; waits end when something happens.
 */
#include "base/log.h"
#include "tests/support/http_fixture.h"
#include "tests/support/raw_http.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"
#define GET_HELLO "GET /hello HTTP/1.1\r\n" HOST "\r\n"
#define GET_WORKER "GET /worker HTTP/1.1\r\n" HOST "\r\n"
#define GET_DEFERRED "GET /deferred HTTP/1.1\r\n" HOST "\r\n"

static struct http_fixture fixture;

static int setup(void **state)
{
    (void)state;
    fixture_start(&fixture, NULL);
    return 0;
}

static int setup_with_short_times(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.idle_ms = config.limits.header_ms = 250;
    config.limits.body_ms = config.limits.write_ms = 250;
    fixture_start(&fixture, &config);
    return 0;
}

static int setup_with_two_loops(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.loops = 2;
    fixture_start(&fixture, &config);
    return 0;
}

static int setup_with_small_budget(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.bodies_bytes_max = 100000;
    fixture_start(&fixture, &config);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (fixture.server)
        fixture_stop(&fixture);
    return 0;
}

/* Waits until a number that another thread changes is there; ten minutes at most. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int left = 600000;                                                                         \
        while (!(condition)) {                                                                     \
            if (left-- == 0)                                                                       \
                fail_msg("not within ten minutes: %s", #condition);                                \
            poll(NULL, 0, 1);                                                                      \
        }                                                                                          \
    } while (0)

static uint64_t open_connections(void)
{
    struct http_counters counters;

    http_server_counters(fixture.server, &counters);
    return counters.open;
}

static void a_worker_between_loop_requests_keeps_the_order(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, GET_HELLO GET_WORKER GET_HELLO GET_DEFERRED
                  "GET /params/a/b HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&client, 200, "hello");
    fixture_await_entered(&fixture);
    assert_true(raw_is_silent(&client, 10));
    fixture_open_gate(&fixture, 1);
    raw_expect(&client, 200, "worker");
    raw_expect(&client, 200, "hello");
    fixture_await_entered(&fixture);
    assert_true(raw_is_silent(&client, 10));
    fixture_open_gate(&fixture, 1);
    raw_expect(&client, 200, "deferred");
    raw_expect(&client, 200, "a|b");
    raw_close(&client);
}

static void the_loop_serves_others_while_a_worker_is_busy(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, GET_WORKER);
    fixture_await_entered(&fixture);
    for (int i = 0; i < 10; i++)
        assert_int_equal(raw_status_of(fixture.port, GET_HELLO), 200);
    fixture_open_gate(&fixture, 1);
    raw_expect(&client, 200, "worker");
    raw_close(&client);
}

static void bodies_over_the_loop_limit_go_to_a_worker_and_back(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    char *body = malloc(17000);

    (void)state;
    memset(body, 'b', 17000);
    body[16999] = '\0';
    raw_send_text(&client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 16999\r\n\r\n");
    raw_send(&client, body, 16999);
    raw_send_text(&client, GET_HELLO);
    raw_expect(&client, 200, body);
    raw_expect(&client, 200, "hello");
    raw_close(&client);
    free(body);
}

static void a_peer_that_vanishes_does_no_harm(void **state)
{
    static const char *const requests[] = {GET_WORKER, GET_DEFERRED, GET_WORKER GET_HELLO};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct raw_client client = raw_connect(fixture.port);

        raw_send_text(&client, requests[i % 3]);
        fixture_await_entered(&fixture);
        if (i < 3) {
            raw_reset(&client);
            AWAIT(open_connections() == 0);
        } else {
            raw_close(&client);
        }
        fixture_open_gate(&fixture, 1);
        AWAIT(atomic_load(&fixture.begun) == atomic_load(&fixture.ended));
        AWAIT(open_connections() == 0);
    }
    assert_int_equal(raw_status_of(fixture.port, GET_HELLO), 200);
}

/* More than one turn settles at once, long bodies and broken connections among them. */
static void many_that_ask_in_one_turn_are_all_answered(void **state)
{
    enum { CLIENTS = 150, BODY = 2000 };
    static struct raw_client clients[CLIENTS];
    struct raw_client holder = raw_connect(fixture.port);
    char body[BODY + 1];

    (void)state;
    memset(body, 'b', BODY);
    body[BODY] = '\0';
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = raw_connect(fixture.port);
        raw_send_text(&clients[i], GET_HELLO);
        raw_expect(&clients[i], 200, "hello");
    }
    raw_send_text(&holder, "GET /still HTTP/1.1\r\n" HOST "\r\n");
    fixture_await_entered(&fixture);
    for (size_t i = 0; i < CLIENTS; i++) {
        if (i % 3 == 0) {
            raw_send_text(&clients[i],
                          "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2000\r\n\r\n");
            raw_send(&clients[i], body, BODY);
        } else {
            raw_send_text(&clients[i], GET_HELLO GET_HELLO);
        }
        if (i % 10 == 7)
            raw_reset(&clients[i]);
    }
    fixture_open_gate(&fixture, 1);
    raw_expect(&holder, 200, "worker");
    raw_close(&holder);
    for (size_t i = 0; i < CLIENTS; i++) {
        if (i % 10 == 7)
            continue;
        raw_expect(&clients[i], 200, i % 3 == 0 ? body : "hello");
        if (i % 3 != 0)
            raw_expect(&clients[i], 200, "hello");
        raw_close(&clients[i]);
    }
    AWAIT(open_connections() == 0);
    assert_int_equal(raw_status_of(fixture.port, GET_HELLO), 200);
}

static void a_request_may_be_finished_before_its_handler_returns(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    fixture_open_gate(&fixture, 200);
    for (int i = 0; i < 200; i++)
        raw_send_text(&client, "GET /handed-on HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 200; i++)
        raw_expect(&client, 200, "deferred");
    raw_close(&client);
}

static void a_request_that_moves_is_answered_by_a_worker_alone(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct raw_answer answer;
        char value[8];

        raw_send_text(&client, "POST /moving HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
        answer = raw_read(&client, false);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, "from a worker");
        assert_false(raw_header(&answer, "X-Lost", value, sizeof value));
        raw_answer_free(&answer);
    }
    raw_close(&client);
    fixture_stop(&fixture);
    if (atomic_load(&fixture.begun) != 3)
        fail_msg("three requests began %u times", atomic_load(&fixture.begun));
}

static void a_handler_learns_that_its_peer_is_gone(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, "GET /patient HTTP/1.1\r\n" HOST "\r\n");
    fixture_await_entered(&fixture);
    raw_reset(&client);
    for (int i = 0; i < 60000 && atomic_load(&fixture.ended) == 0; i++)
        poll(NULL, 0, 10);
    if (atomic_load(&fixture.ended) != 1)
        fail_msg("the handler still works, ten minutes after its peer has gone");
}

static void a_handler_learns_that_the_time_to_drain_is_over(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, "GET /patient HTTP/1.1\r\n" HOST "\r\n");
    fixture_await_entered(&fixture);
    http_server_stop(fixture.server, 20);
    fixture.server = NULL;
    assert_int_equal(atomic_load(&fixture.ended), 1);
    raw_close(&client);
}

static void a_half_closed_peer_gets_its_late_answer(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, GET_WORKER GET_HELLO);
    raw_end_sending(&client);
    fixture_await_entered(&fixture);
    fixture_open_gate(&fixture, 1);
    raw_expect(&client, 200, "worker");
    raw_expect(&client, 200, "hello");
    assert_true(raw_is_closed(&client));
    raw_close(&client);
}

static void what_is_pipelined_behind_a_worker_is_bounded(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    struct http_counters counters;
    char junk[65536];
    size_t requests = 0, sent = 0;

    (void)state;
    raw_send_text(&client, GET_WORKER);
    fixture_await_entered(&fixture);
    for (size_t at = 0; at + sizeof GET_HELLO < sizeof junk; at += sizeof GET_HELLO - 1) {
        memcpy(junk + at, GET_HELLO, sizeof GET_HELLO - 1);
        requests++;
    }
    /* Everything that the sockets and the server hold; then the server stops reading. */
    for (;;) {
        struct pollfd wait = {.fd = client.fd, .events = POLLOUT};
        size_t length = requests * (sizeof GET_HELLO - 1);
        ssize_t some;

        if (poll(&wait, 1, 50) == 0)
            break;
        some = send(client.fd, junk + sent % length, length - sent % length,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
        assert_true(some > 0);
        sent += (size_t)some;
        assert_true(sent < (size_t)64 << 20);
    }
    http_server_counters(fixture.server, &counters);
    assert_true(counters.bytes_in < 200000);
    fixture_open_gate(&fixture, 1);
    raw_expect(&client, 200, "worker");
    for (size_t i = 0; i < sent / (sizeof GET_HELLO - 1); i++)
        raw_expect(&client, 200, "hello");
    raw_close(&client);
}

static void an_idle_connection_is_closed_silently(void **state)
{
    struct raw_client never = raw_connect(fixture.port), once = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&once, GET_HELLO);
    raw_expect(&once, 200, "hello");
    assert_true(raw_is_closed(&once));
    assert_true(raw_is_closed(&never));
    raw_close(&once);
    raw_close(&never);
}

static void slow_heads_and_bodies_are_told_408(void **state)
{
    static const char *const texts[] = {
        "G", "GET /hello HTTP/1.1\r\n" HOST,
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nhi",
        "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\n"};
    struct http_counters counters;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct raw_client client = raw_connect(fixture.port);

        raw_send_text(&client, texts[i]);
        raw_expect(&client, 408, NULL);
        assert_true(raw_is_closed(&client));
        raw_close(&client);
    }
    http_server_counters(fixture.server, &counters);
    assert_int_equal(counters.timeouts, sizeof texts / sizeof *texts);
}

static void dripping_bytes_do_not_buy_time(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, "GET /hello HTTP/1.1\r\nX: ");
    for (int drips = 0; raw_is_silent(&client, 5); drips++) {
        if (drips == 1000)
            fail_msg("still not closed after %d drips", drips);
        raw_try_send(&client, "x", 1);
    }
    raw_expect(&client, 408, NULL);
    raw_close(&client);
}

static void a_busy_handler_has_all_the_time(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, GET_WORKER);
    fixture_await_entered(&fixture);
    assert_true(raw_is_silent(&client, 600));
    fixture_open_gate(&fixture, 1);
    raw_expect(&client, 200, "worker");
    raw_close(&client);
}

static void who_does_not_read_is_closed(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    struct http_counters counters;

    (void)state;
    raw_send_text(&client, "GET /large?bytes=50000000 HTTP/1.1\r\n" HOST "\r\n");
    AWAIT((http_server_counters(fixture.server, &counters), counters.timeouts > 0));
    AWAIT(open_connections() == 0);
    http_server_counters(fixture.server, &counters);
    assert_int_equal(counters.timeouts, 1);
    raw_close(&client);
}

static void who_does_not_read_holds_little_of_the_server(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    char text[8192];
    size_t used = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "GET /large?bytes=1000000 HTTP/1.1\r\n" HOST "\r\n");
    raw_send(&client, text, used);
    AWAIT(atomic_load(&fixture.ended) > 0);
    poll(NULL, 0, 100);
    assert_true(atomic_load(&fixture.ended) < 20);
    for (int i = 0; i < 100; i++)
        raw_expect(&client, 200, NULL);
    raw_close(&client);
}

static void bodies_together_are_bounded(void **state)
{
    struct raw_client first = raw_connect(fixture.port), second = raw_connect(fixture.port);
    char *body = calloc(1, 70000);

    (void)state;
    raw_send_text(&first, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 70001\r\n\r\n");
    raw_send(&first, body, 70000);
    raw_send_text(&second, GET_HELLO);
    raw_expect(&second, 200, "hello");
    raw_send_text(&second, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 70001\r\n\r\n");
    raw_try_send(&second, body, 70000);
    raw_expect(&second, 503, NULL);
    raw_send(&first, "x", 1);
    raw_expect(&first, 200, NULL);
    raw_close(&first);
    raw_close(&second);
    free(body);
}

static void *stop_server(void *argument)
{
    const uint32_t *drain_ms = argument;

    http_server_stop(fixture.server, *drain_ms);
    return NULL;
}

static void draining_lets_the_running_request_finish(void **state)
{
    struct raw_client busy = raw_connect(fixture.port), idle = raw_connect(fixture.port);
    struct raw_answer answer;
    uint32_t drain_ms = 30000;
    pthread_t thread;
    char connection[32];

    (void)state;
    raw_send_text(&idle, GET_HELLO);
    raw_expect(&idle, 200, "hello");
    raw_send_text(&busy, GET_WORKER);
    fixture_await_entered(&fixture);
    pthread_create(&thread, NULL, stop_server, &drain_ms);
    assert_true(raw_is_closed(&idle));
    raw_close(&idle);
    fixture_open_gate(&fixture, 1);
    answer = raw_read(&busy, false);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "worker");
    assert_true(raw_header(&answer, "Connection", connection, sizeof connection));
    assert_string_equal(connection, "close");
    raw_answer_free(&answer);
    assert_true(raw_is_closed(&busy));
    raw_close(&busy);
    pthread_join(thread, NULL);
    fixture.server = NULL;
    assert_int_equal(atomic_load(&fixture.begun), atomic_load(&fixture.ended));
}

static void draining_answers_new_connections_as_long_as_something_is_under_way(void **state)
{
    struct raw_client busy = raw_connect(fixture.port), idle = raw_connect(fixture.port);
    struct raw_client probe, silent, half;
    struct raw_answer answer;
    uint32_t drain_ms = 30000;
    pthread_t thread;
    char connection[32];

    (void)state;
    raw_send_text(&busy, GET_WORKER);
    fixture_await_entered(&fixture);
    pthread_create(&thread, NULL, stop_server, &drain_ms);
    assert_true(raw_is_closed(&idle));
    raw_close(&idle);
    for (int i = 0; i < 3; i++) {
        probe = raw_connect(fixture.port);
        raw_send_text(&probe, "GET /probe HTTP/1.1\r\n" HOST "\r\n");
        answer = raw_read(&probe, false);
        assert_int_equal(answer.status, 200);
        assert_true(raw_header(&answer, "Connection", connection, sizeof connection));
        assert_string_equal(connection, "close");
        raw_answer_free(&answer);
        raw_close(&probe);
    }
    silent = raw_connect(fixture.port);
    half = raw_connect(fixture.port);
    raw_send_text(&half, "GET /hel");
    fixture_open_gate(&fixture, 1);
    raw_expect(&busy, 200, "worker");
    raw_close(&busy);
    assert_true(raw_is_closed(&silent)); /* long before drain_ms */
    assert_true(raw_is_closed(&half));
    raw_close(&silent);
    raw_close(&half);
    pthread_join(thread, NULL);
    fixture.server = NULL;
    assert_int_equal(atomic_load(&fixture.begun), atomic_load(&fixture.ended));
}

static void draining_waits_for_an_answer_that_is_read_slowly(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    struct raw_answer answer;
    uint32_t drain_ms = 30000;
    pthread_t thread;

    (void)state;
    raw_send_text(&client, "GET /large?bytes=30000000 HTTP/1.1\r\n" HOST "\r\n");
    AWAIT(atomic_load(&fixture.ended) == 1);
    pthread_create(&thread, NULL, stop_server, &drain_ms);
    answer = raw_read(&client, false);
    assert_int_equal(answer.body_length, 30000000);
    raw_answer_free(&answer);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    pthread_join(thread, NULL);
    fixture.server = NULL;
}

static void draining_ends_when_its_time_is_up(void **state)
{
    static const char *const requests[] = {GET_WORKER, GET_DEFERRED};
    uint32_t drain_ms = 20;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct raw_client client;
        pthread_t thread;

        if (!fixture.server)
            setup(NULL);
        client = raw_connect(fixture.port);
        raw_send_text(&client, requests[i]);
        fixture_await_entered(&fixture);
        pthread_create(&thread, NULL, stop_server, &drain_ms);
        assert_true(raw_is_closed(&client));
        fixture_open_gate(&fixture, 1);
        pthread_join(thread, NULL);
        fixture.server = NULL;
        assert_int_equal(atomic_load(&fixture.begun), atomic_load(&fixture.ended));
        raw_close(&client);
    }
}

static void each_loop_says_that_it_is_gone(void **state)
{
    unsigned gone;

    (void)state;
    http_server_stop(fixture.server, 20);
    fixture.server = NULL;
    gone = atomic_load(&fixture.gone);
    if (gone != 2)
        fail_msg("%u of two loops said that they are gone", gone);
}

/* Whoever waits for every loop to be quiet must not wait for the end of a request. */
static void a_draining_loop_is_quiet_again_and_again(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    uint32_t drain_ms = 30000;
    unsigned before;
    pthread_t thread;

    (void)state;
    raw_send_text(&client, GET_DEFERRED);
    fixture_await_entered(&fixture);
    raw_close(&client);
    pthread_create(&thread, NULL, stop_server, &drain_ms);
    before = atomic_load(&fixture.quiet);
    for (int i = 0; i < 60000 && atomic_load(&fixture.quiet) < before + 20; i++)
        poll(NULL, 0, 10);
    if (atomic_load(&fixture.quiet) < before + 20)
        fail_msg("only %u times quiet within ten minutes", atomic_load(&fixture.quiet) - before);
    fixture_open_gate(&fixture, 1);
    pthread_join(thread, NULL);
    fixture.server = NULL;
}

static void stopping_closes_what_has_only_begun(void **state)
{
    struct raw_client half = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&half, "GET /hel");
    AWAIT(open_connections() == 1);
    http_server_stop(fixture.server, 20);
    fixture.server = NULL;
    assert_true(raw_is_closed(&half));
    raw_close(&half);
    http_server_stop(NULL, 0);
}

static void two_loops_share_the_connections(void **state)
{
    struct raw_client clients[32];
    struct http_counters counters;

    (void)state;
    assert_int_equal(http_server_loops(fixture.server), 2);
    for (int i = 0; i < 32; i++)
        clients[i] = raw_connect(fixture.port);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 32; i++)
            raw_send_text(&clients[i], GET_HELLO);
        for (int i = 0; i < 32; i++)
            raw_expect(&clients[i], 200, "hello");
    }
    http_server_counters(fixture.server, &counters);
    assert_int_equal(counters.requests, 320);
    assert_int_equal(counters.open, 32);
    for (int i = 0; i < 32; i++)
        raw_close(&clients[i]);
}

static void waking_makes_every_loop_quiet(void **state)
{
    unsigned before;

    (void)state;
    AWAIT(atomic_load(&fixture.quiet) > 0);
    poll(NULL, 0, 20);
    before = atomic_load(&fixture.quiet);
    http_server_wake(fixture.server);
    AWAIT(atomic_load(&fixture.quiet) > before);
}

static void a_taken_port_and_a_bad_host_are_errors(void **state)
{
    struct http_config config = fixture_config();
    struct http_app app = {.context = &fixture};
    struct err err;

    (void)state;
    config.port = fixture.port;
    assert_null(http_server_start(&config, &app, &err));
    assert_non_null(strstr(err.msg, "in use"));
    config.port = 0;
    config.host = "localhost";
    assert_null(http_server_start(&config, &app, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    config.host = "127.0.0.1";
    config.cors_allow_origin = "http://a\r\nX: y";
    assert_null(http_server_start(&config, &app, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    config.host = "192.0.2.1";
    config.cors_allow_origin = NULL;
    config.loops = 2;
    assert_null(http_server_start(&config, &app, &err));
}

static void without_an_origin_there_are_no_cors_headers(void **state)
{
    struct http_config config = fixture_config();
    struct raw_client client;
    struct raw_answer answer;

    (void)state;
    config.cors_allow_origin = NULL;
    fixture_start(&fixture, &config);
    client = raw_connect(fixture.port);
    raw_send_text(&client, GET_HELLO "OPTIONS /hello HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 2; i++) {
        answer = raw_read(&client, false);
        assert_null(strstr(answer.head, "Access-Control"));
        raw_answer_free(&answer);
    }
    raw_close(&client);
}

static void a_lowered_limit_holds_for_lines_that_were_taken_before(void **state)
{
    static const char text[] = "GET /hello HTTP/1.1\r\n" HOST "A: 1\r\nB: 2\r\nC: 3\r\n\r\n";
    struct raw_client client = raw_connect(fixture.port);
    struct http_limits limits = fixture_config().limits;
    struct err err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        raw_send_text(&client, text);
        raw_expect(&client, 200, "hello");
    }
    limits.header_count_max = 3;
    assert_int_equal(http_server_set(fixture.server, &limits, 0, false, &err), ERR_OK);
    raw_send_text(&client, text);
    raw_expect(&client, 431, NULL);
    raw_close(&client);
}

static void the_access_log_has_every_request_but_probes_and_no_queries(void **state)
{
    struct http_config config = fixture_config();
    char text[4096];
    int ends[2], saved;
    ssize_t got;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    config.access_log = true;
    fixture_start(&fixture, &config);
    raw_status_of(fixture.port, "GET /probe HTTP/1.1\r\n" HOST "\r\n");
    raw_status_of(fixture.port, "GET /query?token=secret HTTP/1.1\r\n" HOST "\r\n");
    raw_status_of(fixture.port, "GET /nothing HTTP/1.1\r\n" HOST "\r\n");
    fixture_stop(&fixture);
    dup2(saved, STDERR_FILENO);
    close(saved);
    got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[got > 0 ? got : 0] = '\0';
    assert_non_null(strstr(text, "] GET /query 200 13 bytes "));
    assert_non_null(strstr(text, "] GET /nothing 404 "));
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "/probe")); /* they come every second */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_WITH(name, setup_function)                                                            \
    cmocka_unit_test_setup_teardown(name, setup_function, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_between_loop_requests_keeps_the_order),
        TEST(the_loop_serves_others_while_a_worker_is_busy),
        TEST(bodies_over_the_loop_limit_go_to_a_worker_and_back),
        TEST(a_peer_that_vanishes_does_no_harm),
        TEST(many_that_ask_in_one_turn_are_all_answered),
        TEST(a_request_may_be_finished_before_its_handler_returns),
        TEST(a_request_that_moves_is_answered_by_a_worker_alone),
        TEST(a_handler_learns_that_its_peer_is_gone),
        TEST(a_handler_learns_that_the_time_to_drain_is_over),
        TEST(a_half_closed_peer_gets_its_late_answer),
        TEST(what_is_pipelined_behind_a_worker_is_bounded),
        TEST(who_does_not_read_holds_little_of_the_server),
        TEST(draining_lets_the_running_request_finish),
        TEST(draining_answers_new_connections_as_long_as_something_is_under_way),
        TEST(draining_waits_for_an_answer_that_is_read_slowly),
        TEST(draining_ends_when_its_time_is_up),
        TEST_WITH(each_loop_says_that_it_is_gone, setup_with_two_loops),
        TEST(a_draining_loop_is_quiet_again_and_again),
        TEST(stopping_closes_what_has_only_begun),
        TEST(a_taken_port_and_a_bad_host_are_errors),
        TEST(waking_makes_every_loop_quiet),
        TEST_WITH(an_idle_connection_is_closed_silently, setup_with_short_times),
        TEST_WITH(slow_heads_and_bodies_are_told_408, setup_with_short_times),
        TEST_WITH(dripping_bytes_do_not_buy_time, setup_with_short_times),
        TEST_WITH(a_busy_handler_has_all_the_time, setup_with_short_times),
        TEST_WITH(who_does_not_read_is_closed, setup_with_short_times),
        TEST_WITH(bodies_together_are_bounded, setup_with_small_budget),
        TEST_WITH(two_loops_share_the_connections, setup_with_two_loops),
        TEST(a_lowered_limit_holds_for_lines_that_were_taken_before),
        TEST_WITH(without_an_origin_there_are_no_cors_headers, NULL),
        TEST_WITH(the_access_log_has_every_request_but_probes_and_no_queries, NULL),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
