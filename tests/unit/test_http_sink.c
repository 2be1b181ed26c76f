/*
 * Bodies that are taken as they arrive: in every cut the sink gets each byte once and in order, a
 * refused or broken-off one is dropped once, and no limit of a body's size applies. Nothing here
 * measures time.
 */
#include "tests/support/http_fixture.h"
#include "tests/support/raw_http.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"
#define GET_HELLO "GET /hello HTTP/1.1\r\n" HOST "\r\n"
#define SEED 5
#define BYTES 3000001
/* Enough for a first piece, whatever is read at once, and not for a second one. */
#define PIECE (HTTP_SINK_BYTES + HTTP_SINK_BYTES / 2)

static struct http_fixture fixture;
static char *body; /* [BYTES] */

static int setup_body(void **state)
{
    (void)state;
    body = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        body[i] = (char)(i * 31 + i / 4096);
    return 0;
}

static int teardown_body(void **state)
{
    (void)state;
    free(body);
    return 0;
}

/* Bodies of 1,000 bytes, and 1 MiB of all together. */
static int setup(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.body_bytes_max = 1000;
    config.limits.bodies_bytes_max = 1 << 20;
    fixture_start(&fixture, &config);
    return 0;
}

static int setup_with_short_times(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.body_ms = 250;
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

static struct http_counters counters_now(void)
{
    struct http_counters counters;

    http_server_counters(fixture.server, &counters);
    return counters;
}

static size_t below(uint64_t *random, size_t most)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*random >> 33) % most;
}

static void send_head(struct raw_client *client, const char *query, size_t length)
{
    char head[200];

    snprintf(head, sizeof head, "PUT /sink%s HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
             query, length);
    raw_send_text(client, head);
}

/* The answer must name the first `length` bytes of the body; returns how many pieces came. */
static unsigned expect_taken(struct raw_client *client, size_t length)
{
    struct raw_answer answer = raw_read(client, false);
    unsigned long long sum;
    size_t bytes;
    unsigned pieces;

    assert_int_equal(answer.status, 200);
    assert_null(strstr(answer.head, "X-Before"));
    assert_int_equal(sscanf(answer.body, "%zu %llu %u", &bytes, &sum, &pieces), 3);
    assert_int_equal(bytes, length);
    assert_int_equal(sum, fixture_sum(0, body, length));
    raw_answer_free(&answer);
    return pieces;
}

static void a_body_beyond_all_limits_is_taken(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    send_head(&client, "", BYTES);
    raw_send(&client, body, BYTES);
    assert_in_range(expect_taken(&client, BYTES), 3, BYTES / HTTP_SINK_BYTES);
    raw_send_text(&client, GET_HELLO);
    raw_expect(&client, 200, "hello");
    send_head(&client, "", 10); /* a short one is whole when the handler sees it */
    raw_send(&client, body, 10);
    assert_int_equal(expect_taken(&client, 10), 0);
    raw_send_text(&client, "PUT /sink HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&client, 200, "no sink");
    raw_send_text(&client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n");
    raw_expect(&client, 413, NULL);
    raw_close(&client);
    assert_int_equal(atomic_load(&fixture.sinks), 2);
    assert_int_equal(atomic_load(&fixture.dropped), 0);
    assert_int_equal(counters_now().body_bytes, 0);
}

static void a_body_in_pieces_of_any_size_arrives_whole(void **state)
{
    static const size_t sizes[] = {3, 100, 5000, 70000, 400000};
    struct raw_client client = raw_connect(fixture.port);
    uint64_t random = SEED;
    char head[32];

    (void)state;
    for (int i = 0; i < 30; i++) {
        bool is_chunked = i % 2 == 0;
        size_t most = sizes[i / 2 % 5], length = 1 + below(&random, most < 100 ? 20000 : BYTES);

        if (is_chunked)
            raw_send_text(&client,
                          "PUT /sink HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
        else
            send_head(&client, "", length);
        for (size_t at = 0, some; at < length; at += some) {
            some = 1 + below(&random, most);
            some = some < length - at ? some : length - at;
            snprintf(head, sizeof head, "%zx\r\n", some);
            raw_send_text(&client, is_chunked ? head : "");
            raw_send(&client, body + at, some);
            raw_send_text(&client, is_chunked ? "\r\n" : "");
        }
        raw_send_text(&client, is_chunked ? "0\r\n\r\n" GET_HELLO : GET_HELLO);
        expect_taken(&client, length);
        raw_expect(&client, 200, "hello");
    }
    raw_close(&client);
    assert_int_equal(atomic_load(&fixture.dropped), 0);
}

static void what_is_refused_before_the_body_has_no_sink(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    send_head(&client, "?refuse=", 5);
    raw_send_text(&client, "12345" GET_HELLO);
    raw_expect(&client, 422, NULL);
    raw_expect(&client, 200, "hello");
    send_head(&client, "?refuse=", BYTES);
    raw_send(&client, body, BYTES);
    raw_expect(&client, 422, NULL);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    client = raw_connect(fixture.port);
    raw_send_text(&client, "PUT /sink?refuse= HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                           "Content-Length: 5\r\n\r\n");
    raw_expect(&client, 422, NULL);
    raw_close(&client);
    assert_int_equal(atomic_load(&fixture.sinks), 0);
}

static void an_error_of_the_sink_is_the_answer(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    struct raw_answer answer;

    (void)state;
    send_head(&client, "?fail=", BYTES);
    raw_send(&client, body, BYTES);
    answer = raw_read(&client, false);
    assert_int_equal(answer.status, 422);
    assert_non_null(strstr(answer.body, "the sink fails"));
    raw_answer_free(&answer);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    AWAIT(atomic_load(&fixture.dropped) == 1);
    AWAIT(counters_now().body_bytes == 0);
}

static void a_sender_is_not_faster_than_the_sink(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    send_head(&client, "?wait=", PIECE);
    raw_send(&client, body, PIECE / 2);
    raw_send(&client, body + PIECE / 2, PIECE - PIECE / 2);
    fixture_await_entered(&fixture);
    assert_in_range(counters_now().body_bytes, HTTP_SINK_BYTES, 2 * HTTP_SINK_BYTES);
    assert_int_equal(raw_status_of(fixture.port, GET_HELLO), 200);
    fixture_open_gate(&fixture, 1);
    assert_int_equal(expect_taken(&client, PIECE), 1);
    raw_close(&client);
}

/* Before a piece, while one is taken, and after it. */
static void a_peer_that_leaves_has_its_sink_dropped(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct raw_client client = raw_connect(fixture.port);

        send_head(&client, i % 3 == 2 ? "" : "?wait=", BYTES);
        raw_send(&client, body, i % 3 == 0 ? 100 : PIECE);
        if (i % 3 == 0)
            AWAIT(counters_now().body_bytes > 0);
        if (i % 3 == 1)
            fixture_await_entered(&fixture);
        if (i < 3)
            raw_reset(&client);
        else
            raw_close(&client);
        if (i % 3 == 1) {
            assert_int_equal(atomic_load(&fixture.dropped), i);
            fixture_open_gate(&fixture, 1);
        }
        AWAIT(atomic_load(&fixture.dropped) == i + 1);
        AWAIT(counters_now().body_bytes == 0);
    }
    assert_int_equal(raw_status_of(fixture.port, GET_HELLO), 200);
}

static void a_body_that_ends_early_is_told_so(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    send_head(&client, "", BYTES);
    raw_send(&client, body, BYTES - 1);
    raw_end_sending(&client);
    raw_expect(&client, 400, NULL);
    raw_close(&client);
    AWAIT(atomic_load(&fixture.dropped) == 1);
}

static void a_body_that_stalls_is_told_408(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    send_head(&client, "", BYTES);
    raw_send(&client, body, 1000); /* more would buy more time */
    raw_expect(&client, 408, NULL);
    raw_close(&client);
    AWAIT(atomic_load(&fixture.dropped) == 1);
}

static void *stop_server(void *argument)
{
    (void)argument;
    http_server_stop(fixture.server, 50);
    return NULL;
}

static void a_drain_waits_for_the_piece_and_drops_the_sink(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    pthread_t thread;

    (void)state;
    send_head(&client, "?wait=", BYTES);
    raw_send(&client, body, PIECE);
    fixture_await_entered(&fixture);
    assert_int_equal(pthread_create(&thread, NULL, stop_server, NULL), 0);
    AWAIT(counters_now().open == 0);
    assert_int_equal(atomic_load(&fixture.dropped), 0);
    fixture_open_gate(&fixture, 1);
    pthread_join(thread, NULL);
    fixture.server = NULL;
    assert_int_equal(atomic_load(&fixture.dropped), 1);
    assert_int_equal(atomic_load(&fixture.begun), atomic_load(&fixture.ended));
    raw_close(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_body_beyond_all_limits_is_taken),
        TEST(a_body_in_pieces_of_any_size_arrives_whole),
        TEST(what_is_refused_before_the_body_has_no_sink),
        TEST(an_error_of_the_sink_is_the_answer),
        TEST(a_sender_is_not_faster_than_the_sink),
        TEST(a_peer_that_leaves_has_its_sink_dropped),
        TEST(a_body_that_ends_early_is_told_so),
        cmocka_unit_test_setup_teardown(a_body_that_stalls_is_told_408, setup_with_short_times,
                                        teardown),
        TEST(a_drain_waits_for_the_piece_and_drops_the_sink),
    };

    return cmocka_run_group_tests(tests, setup_body, teardown_body);
}
