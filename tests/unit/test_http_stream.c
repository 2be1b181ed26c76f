/*
 * Answers that do not end, and requests that wait for the next wake-up, in a server of their own:
 *
 *   GET /stream      "begin\n", then message i as "i:" + filling + "\n" for each that is published
 *   GET /stream?ends the same, over after the message that is published next
 *   GET /endless     as much as there is room for, whenever it is asked
 *   GET /greedy      writes without asking for room
 *   GET /park        "now" once `is_open`, 503 at the last try
 *   GET /begin-park  the same on a worker, parked by request_begin
 *   GET /hello       "hello"
 *
 * Nothing here measures time; waits end when something happens.
 */
#include "tests/support/http_fixture.h"
#include "tests/support/raw_http.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

enum { MANY = 1000, MESSAGE_BYTES_MAX = 16 * 1024 };

static struct http_server *server;
static uint16_t port;
static atomic_uint begun, ended, pulls;
static atomic_uint ended_for[HTTP_STREAM_ENDS];
static atomic_uint published;     /* messages 1..published may be sent */
static atomic_uint message_bytes; /* of the filling */
static atomic_bool is_open;
static atomic_uint tries;
static atomic_size_t most_in_one_pull;
static atomic_int is_wrong; /* what a pull saw should not have been so */

struct reader {
    unsigned sent;
    bool ends;
};

/* ---- the application ------------------------------------------------------------------------- */

static void pull_messages(void *context, struct http_stream *stream)
{
    struct reader *reader = context;
    static char filling[MESSAGE_BYTES_MAX];

    atomic_fetch_add(&pulls, 1);
    while (reader->sent < atomic_load(&published) && http_stream_has_room(stream)) {
        char head[32];
        int length = snprintf(head, sizeof head, "%u:", ++reader->sent);

        http_stream_write(stream, head, (size_t)length);
        http_stream_write(stream, filling, atomic_load(&message_bytes));
        if (!http_stream_write(stream, "\n", 1))
            return;
        if (reader->ends) {
            http_stream_end(stream, HTTP_STREAM_OVER);
            atomic_fetch_or(&is_wrong, http_stream_has_room(stream));
            return;
        }
    }
}

static void pull_endless(void *context, struct http_stream *stream)
{
    static char bytes[1000];
    size_t written = 0;

    (void)context;
    atomic_fetch_add(&pulls, 1);
    while (http_stream_has_room(stream) && http_stream_write(stream, bytes, sizeof bytes))
        written += sizeof bytes;
    if (written > atomic_load(&most_in_one_pull))
        atomic_store(&most_in_one_pull, written);
}

static void pull_greedy(void *context, struct http_stream *stream)
{
    static char bytes[1000];

    (void)context;
    while (http_stream_write(stream, bytes, sizeof bytes))
        continue;
    atomic_fetch_or(&is_wrong, http_stream_has_room(stream));
    atomic_fetch_or(&is_wrong, http_stream_write(stream, "x", 1));
}

static void on_ended(void *context, enum http_stream_end reason)
{
    free(context);
    atomic_fetch_add(&ended_for[reason], 1);
}

static void begin_stream(struct http_request *request, struct http_reply *reply,
                         void (*pull)(void *, struct http_stream *))
{
    struct http_stream_calls calls = {.pull = pull, .ended = on_ended};
    struct reader *reader = calloc(1, sizeof *reader);
    struct err err;

    reader->ends = fixture_query(request, "ends").at != NULL;
    reader->sent = reader->ends ? atomic_load(&published) : 0;
    http_reply_content_type(reply, "text/event-stream");
    http_reply_append(reply, "begin\n", 6);
    if (http_reply_stream(request, reply, &calls, reader, &err) == ERR_OK) {
        http_reply_header(reply, "X-Later", "yes");
        return;
    }
    free(reader);
    http_reply_problem(reply, &err);
}

static void get_stream(struct http_request *request, struct http_reply *reply)
{
    begin_stream(request, reply, pull_messages);
}

static void get_endless(struct http_request *request, struct http_reply *reply)
{
    begin_stream(request, reply, pull_endless);
}

static void get_greedy(struct http_request *request, struct http_reply *reply)
{
    begin_stream(request, reply, pull_greedy);
}

/* It makes its stream and has an error after that: the problem is what is sent. */
static void get_refused(struct http_request *request, struct http_reply *reply)
{
    struct err err;

    begin_stream(request, reply, pull_messages);
    err_set(&err, ERR_UNPROCESSABLE, "no stream after all");
    http_reply_problem(reply, &err);
}

static void answer_now(struct http_reply *reply, bool is_now)
{
    struct err err;

    if (is_now) {
        http_reply_append(reply, "now", 3);
        return;
    }
    err_set(&err, ERR_BUSY, "not yet");
    http_reply_problem(reply, &err);
}

static void get_park(struct http_request *request, struct http_reply *reply)
{
    atomic_fetch_add(&tries, 1);
    if (!atomic_load(&is_open) && !http_request_is_last_try(request)) {
        http_reply_append(reply, "lost", 4);
        http_request_park(request);
        return;
    }
    answer_now(reply, atomic_load(&is_open));
}

static void get_begin_park(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    answer_now(reply, atomic_load(&is_open));
}

static void get_hello(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    http_reply_append(reply, "hello", 5);
}

static void on_begin(void *context, struct http_request *request)
{
    (void)context;
    atomic_fetch_add(&begun, 1);
    if (strcmp(http_request_route(request)->pattern, "/begin-park") == 0 &&
        !atomic_load(&is_open) && !http_request_is_last_try(request)) {
        atomic_fetch_add(&tries, 1);
        http_request_park(request);
    }
}

static void on_end(void *context, struct http_request *request)
{
    (void)context;
    (void)request;
    atomic_fetch_add(&ended, 1);
}

static const struct http_route routes[] = {
    {METHOD_GET, "/stream", get_stream, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/endless", get_endless, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/greedy", get_greedy, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/refused", get_refused, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/park", get_park, HTTP_ON_LOOP, 0, false},
    {METHOD_POST, "/park", get_park, HTTP_BY_SIZE, 0, false},
    {METHOD_GET, "/begin-park", get_begin_park, HTTP_ON_WORKER, 0, false},
    {METHOD_GET, "/hello", get_hello, HTTP_ON_LOOP, 0, false},
};

/* ---- the fixture ----------------------------------------------------------------------------- */

static void start(const struct http_config *config)
{
    struct http_app app = {.routes = routes,
                           .route_count = sizeof routes / sizeof *routes,
                           .request_begin = on_begin,
                           .request_end = on_end};
    struct err err;

    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    atomic_store(&pulls, 0);
    atomic_store(&published, 0);
    atomic_store(&message_bytes, 0);
    atomic_store(&is_open, false);
    atomic_store(&tries, 0);
    atomic_store(&is_wrong, 0);
    for (int i = 0; i < HTTP_STREAM_ENDS; i++)
        atomic_store(&ended_for[i], 0);
    server = http_server_start(config, &app, &err);
    if (!server)
        fail_msg("the server did not start: %s", err.msg);
    port = http_server_port(server);
}

static int setup(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    start(&config);
    return 0;
}

static int setup_with_two_loops(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.loops = 2;
    start(&config);
    return 0;
}

static int setup_with_short_times(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.stream_silence_ms = config.limits.park_ms_max = 40;
    config.limits.write_ms = 200;
    start(&config);
    return 0;
}

static int setup_with_long_waits(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.park_ms_max = 3600000;
    start(&config);
    return 0;
}

static int setup_with_few_streams(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.streams_max = 2;
    start(&config);
    return 0;
}

static void stop(uint32_t drain_ms)
{
    http_server_stop(server, drain_ms);
    server = NULL;
    assert_int_equal(atomic_load(&begun), atomic_load(&ended));
    assert_int_equal(atomic_load(&is_wrong), 0);
}

static int teardown(void **state)
{
    (void)state;
    if (server)
        stop(2000);
    return 0;
}

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int left = 600000;                                                                         \
        while (!(condition)) {                                                                     \
            if (left-- == 0)                                                                       \
                fail_msg("not within ten minutes: %s", #condition);                                \
            poll(NULL, 0, 1);                                                                      \
        }                                                                                          \
    } while (0)

static struct http_counters counters(void)
{
    struct http_counters now;

    http_server_counters(server, &now);
    return now;
}

static void publish(unsigned more)
{
    atomic_fetch_add(&published, more);
    http_server_wake(server);
}

/* Opens a stream and reads its head; the first bytes are left to be read. */
static struct raw_client subscribe(const char *request)
{
    struct raw_client client = raw_connect(port);
    struct raw_answer answer;
    char value[64];

    raw_send_text(&client, request);
    answer = raw_read(&client, false);
    assert_int_equal(answer.status, 200);
    assert_false(raw_header(&answer, "Content-Length", value, sizeof value));
    assert_false(raw_header(&answer, "Transfer-Encoding", value, sizeof value));
    assert_true(raw_header(&answer, "Connection", value, sizeof value));
    assert_string_equal(value, "close");
    assert_true(raw_header(&answer, "Content-Type", value, sizeof value));
    assert_string_equal(value, "text/event-stream");
    assert_true(raw_header(&answer, "X-Later", value, sizeof value));
    raw_answer_free(&answer);
    return client;
}

/* Reads exactly these bytes. */
static void expect_bytes(struct raw_client *client, const char *bytes, size_t length)
{
    char *got = malloc(length);

    raw_read_bytes(client, got, length);
    if (memcmp(got, bytes, length) != 0)
        fail_msg("'%.*s' instead of '%.*s'", (int)length, got, (int)length, bytes);
    free(got);
}

static void expect_text(struct raw_client *client, const char *text)
{
    expect_bytes(client, text, strlen(text));
}

static void expect_answer(struct raw_client *client, int status, const char *body)
{
    struct raw_answer answer = raw_read(client, false);

    assert_int_equal(answer.status, status);
    if (body)
        assert_string_equal(answer.body, body);
    raw_answer_free(&answer);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void a_stream_brings_what_is_published_and_holds_no_request(void **state)
{
    struct raw_client client = subscribe(GET("/stream"));

    (void)state;
    expect_text(&client, "begin\n");
    assert_int_equal(atomic_load(&begun), 1);
    assert_int_equal(atomic_load(&ended), 1);
    for (unsigned i = 1; i <= 20; i++) {
        char text[32];
        size_t length = (size_t)snprintf(text, sizeof text, "%u:", i) + 1;

        publish(1);
        text[length - 1] = '\n';
        expect_bytes(&client, text, length);
    }
    assert_int_equal(counters().streams, 1);
    assert_int_equal(counters().streams_opened, 1);
    raw_close(&client);
    AWAIT(atomic_load(&ended_for[HTTP_STREAM_LEFT]) == 1);
    assert_int_equal(counters().streams, 0);
    assert_int_equal(counters().streams_ended[HTTP_STREAM_LEFT], 1);
}

static void a_thousand_streams_get_every_message(void **state)
{
    struct raw_client *clients = calloc(MANY, sizeof *clients);
    struct rlimit files;

    (void)state;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 2 * MANY + 100) {
        free(clients);
        print_message("no %d open files allowed\n", 2 * MANY + 100);
        skip();
    }
    for (int i = 0; i < MANY; i++)
        clients[i] = subscribe(GET("/stream"));
    assert_int_equal(counters().streams, MANY);
    for (int i = 0; i < 5; i++)
        publish(1 + (unsigned)i % 2);
    for (int i = 0; i < MANY; i++)
        expect_text(&clients[i], "begin\n1:\n2:\n3:\n4:\n5:\n6:\n7:\n");
    /* the loop has room for others in between */
    publish(1);
    assert_int_equal(raw_status_of(port, GET("/hello")), 200);
    for (int i = 0; i < MANY; i++) {
        expect_text(&clients[i], "8:\n");
        raw_close(&clients[i]);
    }
    AWAIT(counters().streams == 0);
    assert_int_equal(counters().streams_ended[HTTP_STREAM_LEFT], MANY);
    free(clients);
}

static void a_slow_reader_is_dropped_while_others_go_on(void **state)
{
    static char message[MESSAGE_BYTES_MAX + 2];
    struct raw_client slow = subscribe(GET("/stream")), quick = subscribe(GET("/stream"));
    unsigned sent = 0;

    (void)state;
    atomic_store(&message_bytes, 8000);
    expect_text(&quick, "begin\n");
    while (counters().streams_ended[HTTP_STREAM_STALLED] == 0) {
        char head[32];
        int length = snprintf(head, sizeof head, "%u:", ++sent);

        publish(1);
        for (bool is_head = false; !is_head;) { /* heartbeats may stand in between */
            char first[1];

            raw_read_bytes(&quick, first, 1);
            if (first[0] == ':') {
                expect_text(&quick, "\n\n");
                continue;
            }
            assert_int_equal(first[0], head[0]);
            is_head = true;
        }
        expect_bytes(&quick, head + 1, (size_t)length - 1);
        message[8000] = '\n';
        expect_bytes(&quick, message, 8001);
        poll(NULL, 0, 1);
        if (sent == 20000)
            fail_msg("the slow reader was not dropped after %u messages", sent);
    }
    assert_int_equal(atomic_load(&ended_for[HTTP_STREAM_STALLED]), 1);
    assert_int_equal(counters().streams, 1);
    raw_close(&slow);
    raw_close(&quick);
    AWAIT(counters().streams == 0);
}

static void a_stream_holds_at_most_64_kib(void **state)
{
    struct raw_client client = subscribe(GET("/endless"));
    unsigned before;

    (void)state;
    AWAIT(atomic_load(&pulls) > 0 && counters().bytes_out > 64 * 1024);
    /* it is stuck: wake-ups bring nothing more */
    do {
        before = (unsigned)counters().bytes_out;
        poll(NULL, 0, 50);
        http_server_wake(server);
    } while (before != (unsigned)counters().bytes_out);
    assert_true(atomic_load(&most_in_one_pull) <= 64 * 1024);
    assert_int_equal(raw_status_of(port, GET("/hello")), 200);
    /* and flows again when it is read */
    for (int i = 0; i < 100; i++) {
        static char bytes[64 * 1024];

        raw_read_bytes(&client, bytes, sizeof bytes);
    }
    raw_close(&client);
    AWAIT(counters().streams == 0);
    assert_int_equal(raw_status_of(port, GET("/hello")), 200);
}

static void a_write_without_room_ends_the_stream(void **state)
{
    struct raw_client client = raw_connect(port);

    (void)state;
    raw_send_text(&client, GET("/greedy"));
    AWAIT(atomic_load(&ended_for[HTTP_STREAM_LEFT]) == 1);
    raw_close(&client);
    AWAIT(counters().open == 0);
}

static void the_end_of_a_stream_comes_after_its_last_bytes(void **state)
{
    struct raw_client client = subscribe(GET("/stream?ends"));

    (void)state;
    atomic_store(&message_bytes, 16000);
    expect_text(&client, "begin\n");
    publish(1);
    expect_bytes(&client, "1:", 2);
    for (int i = 0; i < 16000; i++)
        expect_bytes(&client, "", 1);
    expect_text(&client, "\n");
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    AWAIT(counters().open == 0);
    assert_int_equal(counters().streams_ended[HTTP_STREAM_OVER], 1);
    assert_int_equal(atomic_load(&ended_for[HTTP_STREAM_OVER]), 1);
}

static void a_peer_that_stops_sending_or_resets_ends_its_stream(void **state)
{
    struct raw_client client = subscribe(GET("/stream")), other = subscribe(GET("/stream"));

    (void)state;
    raw_end_sending(&client);
    expect_text(&client, "begin\n");
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    AWAIT(counters().streams_ended[HTTP_STREAM_LEFT] == 1);
    raw_reset(&other);
    AWAIT(counters().streams_ended[HTTP_STREAM_LEFT] == 2);
    AWAIT(counters().open == 0);
}

static void what_follows_a_stream_request_is_dropped(void **state)
{
    static char rubbish[70 * 1024];
    struct raw_client client = subscribe(GET("/stream") GET("/hello") "half a requ");

    (void)state;
    raw_send_text(&client, "est\r\n\r\n" GET("/hello"));
    publish(1);
    expect_text(&client, "begin\n1:\n");
    assert_true(raw_is_silent(&client, 10));
    assert_int_equal(atomic_load(&begun), 1);
    memset(rubbish, 'x', sizeof rubbish);
    raw_try_send(&client, rubbish, sizeof rubbish);
    AWAIT(counters().streams_ended[HTTP_STREAM_LEFT] == 1);
    raw_close(&client);
}

static void a_stream_behind_a_pipelined_answer(void **state)
{
    struct raw_client client = raw_connect(port);

    (void)state;
    publish(1);
    raw_send_text(&client, GET("/hello") GET("/stream"));
    expect_answer(&client, 200, "hello");
    expect_answer(&client, 200, NULL);
    expect_text(&client, "begin\n1:\n");
    raw_close(&client);
}

static void silence_is_broken_by_a_comment(void **state)
{
    struct raw_client client = subscribe(GET("/stream"));

    (void)state;
    expect_text(&client, "begin\n:\n\n:\n\n:\n\n");
    raw_close(&client);
}

static void more_streams_than_the_limit_are_refused(void **state)
{
    struct raw_client a = subscribe(GET("/stream")), b = subscribe(GET("/stream"));
    struct raw_client c = raw_connect(port);
    struct raw_answer answer;
    char value[32];

    (void)state;
    raw_send_text(&c, GET("/stream") GET("/hello"));
    answer = raw_read(&c, false);
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "all 2 streams are taken"));
    assert_true(raw_header(&answer, "Retry-After", value, sizeof value));
    raw_answer_free(&answer);
    expect_answer(&c, 200, "hello");
    assert_int_equal(counters().streams_rejected, 1);
    assert_int_equal(counters().streams, 2);
    raw_close(&a);
    AWAIT(counters().streams == 1);
    raw_send_text(&c, GET("/stream"));
    expect_answer(&c, 200, NULL);
    expect_text(&c, "begin\n");
    raw_close(&b);
    raw_close(&c);
}

static void a_stream_whose_handler_failed_is_never_begun(void **state)
{
    struct raw_client client = raw_connect(port);

    (void)state;
    for (int i = 0; i < 5; i++) { /* more than there may be */
        raw_send_text(&client, GET("/refused"));
        expect_answer(&client, 422, NULL);
    }
    assert_int_equal(atomic_load(&ended_for[HTTP_STREAM_LEFT]), 5);
    assert_int_equal(counters().streams_opened, 0);
    raw_close(&client);
}

static void head_of_a_stream_is_headers_only(void **state)
{
    struct raw_client client = raw_connect(port);
    struct raw_answer answer;
    char value[32];

    (void)state;
    raw_send_text(&client, "HEAD /stream HTTP/1.1\r\n" HOST "\r\n");
    answer = raw_read(&client, true);
    assert_int_equal(answer.status, 200);
    assert_false(raw_header(&answer, "Content-Length", value, sizeof value));
    assert_true(raw_header(&answer, "Content-Type", value, sizeof value));
    raw_answer_free(&answer);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    assert_int_equal(counters().streams_opened, 0);
    assert_int_equal(atomic_load(&ended_for[HTTP_STREAM_OVER]), 1);
}

static void draining_ends_all_streams_at_once(void **state)
{
    struct raw_client clients[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        clients[i] = subscribe(i % 2 ? GET("/stream") : GET("/endless"));
    stop(3600000); /* would hang if it waited for them */
    for (int i = 1; i < 20; i += 2) {
        expect_text(&clients[i], "begin\n");
        assert_true(raw_is_closed(&clients[i]));
    }
    for (int i = 0; i < 20; i++)
        raw_close(&clients[i]);
    assert_int_equal(atomic_load(&ended_for[HTTP_STREAM_DRAINED]), 20);
}

/* ---- parked requests ------------------------------------------------------------------------- */

static void a_parked_request_is_tried_again_after_a_wake_up(void **state)
{
    static const char *const requests[] = {GET("/park"), GET("/begin-park"),
                                           "POST /park HTTP/1.1\r\n" HOST
                                           "Content-Length: 4\r\n\r\nbody"};

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct raw_client client = raw_connect(port);

        atomic_store(&is_open, false);
        atomic_store(&tries, 0);
        raw_send_text(&client, requests[i]);
        raw_send_text(&client, GET("/hello"));
        AWAIT(atomic_load(&tries) == 1);
        AWAIT(atomic_load(&begun) == atomic_load(&ended)); /* nothing is pinned */
        http_server_wake(server);
        AWAIT(atomic_load(&tries) == 2);
        assert_true(raw_is_silent(&client, 5));
        atomic_store(&is_open, true);
        http_server_wake(server);
        expect_answer(&client, 200, "now");
        expect_answer(&client, 200, "hello");
        raw_close(&client);
    }
}

static void many_parked_requests_are_answered_by_one_wake_up(void **state)
{
    struct raw_client clients[50];

    (void)state;
    for (int i = 0; i < 50; i++) {
        clients[i] = raw_connect(port);
        raw_send_text(&clients[i], GET("/park") GET("/park"));
    }
    AWAIT(atomic_load(&tries) == 50);
    atomic_store(&is_open, true);
    http_server_wake(server);
    for (int i = 0; i < 50; i++) {
        expect_answer(&clients[i], 200, "now");
        expect_answer(&clients[i], 200, "now");
        raw_close(&clients[i]);
    }
}

static void a_parked_request_has_a_last_try(void **state)
{
    struct raw_client client = raw_connect(port);

    (void)state;
    raw_send_text(&client, GET("/park") GET("/begin-park") GET("/hello"));
    expect_answer(&client, 503, NULL);
    expect_answer(&client, 503, NULL);
    expect_answer(&client, 200, "hello");
    raw_close(&client);
}

static void a_parked_request_goes_with_its_peer(void **state)
{
    struct raw_client client = raw_connect(port), half = raw_connect(port);

    (void)state;
    raw_send_text(&client, GET("/park"));
    AWAIT(atomic_load(&tries) == 1);
    raw_reset(&client);
    AWAIT(counters().open == 1);
    http_server_wake(server);
    /* one that only stops sending is answered at once */
    raw_send_text(&half, GET("/park"));
    AWAIT(atomic_load(&tries) == 2);
    raw_end_sending(&half);
    expect_answer(&half, 503, NULL);
    assert_true(raw_is_closed(&half));
    assert_int_equal(atomic_load(&tries), 3);
    raw_close(&half);
    AWAIT(counters().open == 0);
    assert_int_equal(atomic_load(&begun), atomic_load(&ended));
}

static void draining_gives_parked_requests_their_last_try(void **state)
{
    struct raw_client client = raw_connect(port), other = raw_connect(port);

    (void)state;
    raw_send_text(&client, GET("/park"));
    raw_send_text(&other, GET("/begin-park"));
    AWAIT(atomic_load(&tries) == 2);
    stop(3600000);
    expect_answer(&client, 503, NULL);
    expect_answer(&other, 503, NULL);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    raw_close(&other);
}

#define TEST(name, before) cmocka_unit_test_setup_teardown(name, before, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_brings_what_is_published_and_holds_no_request, setup),
        TEST(a_thousand_streams_get_every_message, setup_with_two_loops),
        TEST(a_slow_reader_is_dropped_while_others_go_on, setup_with_short_times),
        TEST(a_stream_holds_at_most_64_kib, setup),
        TEST(a_write_without_room_ends_the_stream, setup),
        TEST(the_end_of_a_stream_comes_after_its_last_bytes, setup),
        TEST(a_peer_that_stops_sending_or_resets_ends_its_stream, setup),
        TEST(what_follows_a_stream_request_is_dropped, setup),
        TEST(a_stream_behind_a_pipelined_answer, setup),
        TEST(silence_is_broken_by_a_comment, setup_with_short_times),
        TEST(more_streams_than_the_limit_are_refused, setup_with_few_streams),
        TEST(a_stream_whose_handler_failed_is_never_begun, setup_with_few_streams),
        TEST(head_of_a_stream_is_headers_only, setup),
        TEST(draining_ends_all_streams_at_once, setup_with_two_loops),
        TEST(a_parked_request_is_tried_again_after_a_wake_up, setup_with_long_waits),
        TEST(many_parked_requests_are_answered_by_one_wake_up, setup_with_long_waits),
        TEST(a_parked_request_has_a_last_try, setup_with_short_times),
        TEST(a_parked_request_goes_with_its_peer, setup_with_long_waits),
        TEST(draining_gives_parked_requests_their_last_try, setup_with_long_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
