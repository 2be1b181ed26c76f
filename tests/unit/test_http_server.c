/*
 * The server over loopback sockets: requests in every cut and order, answers, refusals, limits.
 */
#include "tests/support/http_fixture.h"
#include "tests/support/raw_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"

static struct http_fixture fixture;

static int setup(void **state)
{
    (void)state;
    fixture_start(&fixture, NULL);
    return 0;
}

static int setup_with_small_limits(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.body_bytes_max = 1000;
    config.limits.connections_max = 3;
    fixture_start(&fixture, &config);
    return 0;
}

static int setup_with_address_limit(void **state)
{
    struct http_config config = fixture_config();

    (void)state;
    config.limits.connections_per_address_max = 2;
    fixture_start(&fixture, &config);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&fixture);
    return 0;
}

static void expect_header(const struct raw_answer *answer, const char *name, const char *value)
{
    char got[512];

    if (!raw_header(answer, name, got, sizeof got))
        fail_msg("no header %s in %s", name, answer->head);
    if (value)
        assert_string_equal(got, value);
}

static void expect_no_header(const struct raw_answer *answer, const char *name)
{
    char got[512];

    if (raw_header(answer, name, got, sizeof got))
        fail_msg("there is a header %s: %s", name, got);
}

static struct raw_answer ask(const char *text)
{
    struct raw_client client = raw_connect(fixture.port);
    struct raw_answer answer;

    raw_send_text(&client, text);
    answer = raw_read(&client, strncmp(text, "HEAD", 4) == 0);
    raw_close(&client);
    return answer;
}

static void a_request_is_answered_wherever_it_is_cut(void **state)
{
    static const char text[] =
        "POST /echo?a=b HTTP/1.1\r\n" HOST "Content-Type: Text/Plain; charset=utf-8\r\n"
        "Content-Length: 11\r\n\r\nhello world";
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct raw_answer answer;

        raw_send(&client, text, cut);
        if (cut % 8 == 1 && cut < sizeof text - 1)
            assert_true(raw_is_silent(&client, 2));
        raw_send(&client, text + cut, sizeof text - 1 - cut);
        answer = raw_read(&client, false);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, "hello world");
        expect_header(&answer, "X-Media-Type", "text/plain");
        raw_answer_free(&answer);
    }
    raw_close(&client);
}

static void a_request_may_come_byte_by_byte(void **state)
{
    static const char text[] = "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                               "5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nT: u\r\n\r\n";
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++)
        raw_send(&client, text + i, 1);
    raw_expect(&client, 200, "hello world");
    raw_close(&client);
}

static void a_chunked_request_is_answered_wherever_it_is_cut(void **state)
{
    static const char text[] = "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                               "5\r\nhello\r\n0\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n";
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        raw_send(&client, text, cut);
        raw_send(&client, text + cut, sizeof text - 1 - cut);
        raw_expect(&client, 200, "hello");
        raw_expect(&client, 200, "hello");
    }
    raw_close(&client);
}

static void a_hundred_pipelined_requests_are_answered_in_order(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    char text[16384], want[32];
    size_t used = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "GET /params/a/%d HTTP/1.1\r\n" HOST "\r\n", i);
    raw_send(&client, text, used);
    for (int i = 0; i < 100; i++) {
        snprintf(want, sizeof want, "a|%d", i);
        raw_expect(&client, 200, want);
    }
    raw_close(&client);
}

static void large_pipelined_answers_do_not_stall(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    char text[16384];
    size_t used = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "GET /large?bytes=%d HTTP/1.1\r\n" HOST "\r\n", 100000 + i);
    raw_send(&client, text, used);
    for (int i = 0; i < 100; i++) {
        struct raw_answer answer = raw_read(&client, false);

        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.body_length, 100000 + i);
        raw_answer_free(&answer);
    }
    raw_close(&client);
}

static void a_large_body_goes_there_and_back(void **state)
{
    enum { BYTES = 3000001 };
    struct raw_client client = raw_connect(fixture.port);
    char *body = malloc(BYTES), head[128];
    struct raw_answer answer;

    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        body[i] = (char)(i * 31 + i / 4096);
    snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", BYTES);
    raw_send_text(&client, head);
    raw_send(&client, body, BYTES);
    answer = raw_read(&client, false);
    assert_int_equal(answer.body_length, BYTES);
    assert_memory_equal(answer.body, body, BYTES);
    raw_answer_free(&answer);
    raw_send_text(&client, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&client, 200, "hello");
    raw_close(&client);
    free(body);
}

static void head_is_get_without_a_body(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    struct raw_answer answer;

    (void)state;
    raw_send_text(&client, "HEAD /hello HTTP/1.1\r\n" HOST "\r\n"
                           "HEAD /nothing HTTP/1.1\r\n" HOST "\r\n"
                           "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    answer = raw_read(&client, true);
    assert_int_equal(answer.status, 200);
    expect_header(&answer, "Content-Length", "5");
    raw_answer_free(&answer);
    answer = raw_read(&client, true);
    assert_int_equal(answer.status, 404);
    raw_answer_free(&answer);
    raw_expect(&client, 200, "hello");
    raw_close(&client);
}

static void options_answers_preflights(void **state)
{
    struct raw_answer answer = ask("OPTIONS /echo HTTP/1.1\r\n" HOST "Origin: http://b\r\n"
                                   "Access-Control-Request-Method: POST\r\n\r\n");

    (void)state;
    assert_int_equal(answer.status, 204);
    expect_header(&answer, "Allow", "POST, OPTIONS");
    expect_header(&answer, "Access-Control-Allow-Methods", "POST, OPTIONS");
    expect_header(&answer, "Access-Control-Allow-Origin", "*");
    expect_header(&answer, "Access-Control-Allow-Headers", NULL);
    expect_header(&answer, "Access-Control-Max-Age", NULL);
    expect_no_header(&answer, "Content-Length");
    raw_answer_free(&answer);
    answer = ask("OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(answer.status, 204);
    expect_header(&answer, "Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    raw_answer_free(&answer);
    answer = ask("OPTIONS /secret HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(answer.status, 204);
    raw_answer_free(&answer);
}

static void a_wrong_method_names_the_right_ones(void **state)
{
    struct raw_answer answer = ask("DELETE /hello HTTP/1.1\r\n" HOST "\r\n");

    (void)state;
    assert_int_equal(answer.status, 405);
    expect_header(&answer, "Allow", "GET, HEAD, OPTIONS");
    expect_header(&answer, "Content-Type", "application/problem+json");
    raw_answer_free(&answer);
}

static void every_answer_has_its_headers(void **state)
{
    static const char *const requests[] = {"GET /hello HTTP/1.1\r\n" HOST "\r\n",
                                           "GET /nothing HTTP/1.1\r\n" HOST "\r\n",
                                           "GET / HTTP/1.1\n\n",
                                           "GET /empty HTTP/1.1\r\n" HOST "\r\n",
                                           "PUT /secret HTTP/1.1\r\n" HOST "\r\n",
                                           "GET /huge HTTP/1.1\r\n" HOST "\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct raw_answer answer = ask(requests[i]);
        char id[64];

        assert_true(raw_header(&answer, "X-Request-Id", id, sizeof id));
        assert_int_equal(strlen(id), 16);
        assert_int_equal(strspn(id, "0123456789abcdef"), 16);
        expect_header(&answer, "Date", NULL);
        expect_header(&answer, "Access-Control-Allow-Origin", "*");
        expect_header(&answer, "Access-Control-Expose-Headers", NULL);
        if (answer.status != 204)
            expect_header(&answer, "Content-Length", NULL);
        raw_answer_free(&answer);
    }
}

static void a_problem_has_pointer_limit_and_detail(void **state)
{
    struct raw_answer answer = ask("GET /problem HTTP/1.1\r\n" HOST "\r\n");

    (void)state;
    assert_int_equal(answer.status, 422);
    expect_header(&answer, "Content-Type", "application/problem+json");
    assert_string_equal(
        answer.body,
        "{\"type\":\"/docs/errors#unprocessable\",\"title\":\"Unprocessable\",\"status\":422,"
        "\"code\":\"unprocessable\","
        "\"detail\":\"/rays/3/origin: a \\\"quoted\\\" detail\",\"errors\":[{\"pointer\":"
        "\"/rays/3/origin\",\"detail\":\"a \\\"quoted\\\" detail\"}],"
        "\"limit\":10000,\"got\":10001.5}");
    raw_answer_free(&answer);
}

static void an_answer_without_memory_is_503_and_not_half(void **state)
{
    struct raw_answer answer = ask("GET /huge HTTP/1.1\r\n" HOST "\r\n");

    (void)state;
    assert_int_equal(answer.status, 503);
    assert_null(strstr(answer.body, "half"));
    expect_header(&answer, "Retry-After", NULL);
    raw_answer_free(&answer);
}

/* Requests and the status of their first answer; after those below 400 the connection stays. */
static void requests_get_the_status_that_the_table_says(void **state)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET http://a/hello HTTP/1.1\r\n" HOST "\r\n", 200},
        {"GET /hello?x=%zz HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /params/%4/b HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /params/%00/b HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET * HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET hello HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /nothing HTTP/1.1\r\n" HOST "\r\n", 404},
        {"PATCH /hello HTTP/1.1\r\n" HOST "\r\n", 405},
        {"POST /small HTTP/1.1\r\n" HOST "Content-Length: 101\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 67108865\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n", 413},
        {"POST /small HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n65\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\nExpect: a-pony\r\n\r\nx", 417},
        {"PUT /secret HTTP/1.1\r\n" HOST "\r\n", 401},
        {"PUT /secret HTTP/1.1\r\n" HOST "Authorization: Bearer x\r\n\r\n", 200},
        {"BREW /hello HTTP/1.1\r\n" HOST "\r\n", 501},
        {"GET /hello HTTP/2.0\r\n" HOST "\r\n", 505},
        {"GET /hello HTTP/1.1\r\n\r\n", 400},
        {"GET /hello HTTP/1.1\n" HOST "\r\n", 400},
        {"GET  /hello HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /hello HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 501},
        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nz\r\n", 400},
        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", 400},
        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
         400},
        {"GET /hello HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 200},
        {"POST /echo HTTP/1.1\r\n" HOST
         "Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 1\r\n\r\nx",
         200},
        {"GET /hello HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi", 200},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct raw_client client = raw_connect(fixture.port);
        struct raw_answer answer;

        raw_send_text(&client, cases[i].text);
        answer = raw_read(&client, false);
        if (answer.status != cases[i].status)
            fail_msg("%d instead of %d for:\n%s", answer.status, cases[i].status, cases[i].text);
        if (answer.status < 400) {
            raw_send_text(&client, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
            raw_expect(&client, 200, "hello");
        }
        raw_answer_free(&answer);
        raw_close(&client);
    }
}

static void after_a_framing_error_the_connection_closes(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    struct raw_answer answer;

    (void)state;
    raw_send_text(&client, "GET /hello HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\n\r\n"
                           "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&client, 200, "hello");
    answer = raw_read(&client, false);
    assert_int_equal(answer.status, 400);
    expect_header(&answer, "Connection", "close");
    raw_answer_free(&answer);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
}

static void overlong_targets_and_headers_are_refused(void **state)
{
    static const struct {
        size_t target, headers, value;
        int status;
    } cases[] = {{8000, 0, 0, 404}, {9000, 0, 0, 414},  {100000, 0, 0, 414},
                 {1, 64, 0, 431},   {1, 0, 17000, 431}, {1, 0, 200000, 431}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct raw_client client = raw_connect(fixture.port);
        char *text = malloc(300000), *at = text;

        at += sprintf(at, "GET /");
        memset(at, 'a', cases[i].target);
        at += cases[i].target;
        at += sprintf(at, " HTTP/1.1\r\n" HOST);
        for (size_t n = 0; n < cases[i].headers; n++)
            at += sprintf(at, "X: y\r\n");
        at += sprintf(at, "Z: ");
        memset(at, 'z', cases[i].value);
        at += cases[i].value;
        at += sprintf(at, "\r\n\r\n");
        raw_try_send(&client, text, (size_t)(at - text));
        raw_expect(&client, cases[i].status, NULL);
        free(text);
        raw_close(&client);
    }
}

static void a_refused_upload_can_still_read_its_answer(void **state)
{
    enum { BYTES = 4 * 1024 * 1024 };
    static const char *const heads[] = {
        "PUT /secret HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n",
        "POST /small HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n",
        "POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n"};
    static const int statuses[] = {401, 413, 404};
    char *body = calloc(1, BYTES);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct raw_client client = raw_connect(fixture.port);

        raw_send_text(&client, heads[i]);
        raw_send(&client, body, BYTES);
        raw_expect(&client, statuses[i], NULL);
        assert_true(raw_is_closed(&client));
        raw_close(&client);
    }
    free(body);
}

static void a_small_refused_body_keeps_the_connection(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, "PUT /secret HTTP/1.1\r\n" HOST "Content-Length: 27\r\n\r\n");
    raw_send_text(&client, "GET /hello HTTP/1.1\r\n\r\nbody");
    raw_expect(&client, 401, NULL);
    raw_send_text(&client, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&client, 200, "hello");
    raw_close(&client);
}

static void continue_is_said_only_to_what_will_be_taken(void **state)
{
    struct raw_client client = raw_connect(fixture.port);
    struct raw_answer answer;

    (void)state;
    raw_send_text(&client, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                           "Content-Length: 2\r\n\r\n");
    answer = raw_read(&client, false);
    assert_int_equal(answer.status, 100);
    raw_answer_free(&answer);
    raw_send_text(&client, "hi");
    raw_expect(&client, 200, "hi");
    raw_send_text(&client, "PUT /secret HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                           "Content-Length: 2\r\n\r\n");
    raw_expect(&client, 401, NULL);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
    client = raw_connect(fixture.port);
    raw_send_text(&client, "POST /small HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                           "Content-Length: 2000\r\n\r\n");
    raw_expect(&client, 413, NULL);
    raw_close(&client);
}

static void old_clients_are_closed_unless_they_ask(void **state)
{
    static const struct {
        const char *text;
        const char *connection; /* header of the answer */
        bool closes;
    } cases[] = {
        {"GET /hello HTTP/1.0\r\n\r\n", "close", true},
        {"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", false},
        {"GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "close", true},
        {"GET /hello HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n", "close", true},
        {"GET /hello HTTP/1.1\r\n" HOST "\r\n", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct raw_client client = raw_connect(fixture.port);
        struct raw_answer answer;

        raw_send_text(&client, cases[i].text);
        answer = raw_read(&client, false);
        assert_int_equal(answer.status, 200);
        if (cases[i].connection)
            expect_header(&answer, "Connection", cases[i].connection);
        else
            expect_no_header(&answer, "Connection");
        if (cases[i].closes)
            assert_true(raw_is_closed(&client));
        else
            assert_true(raw_is_silent(&client, 10));
        raw_answer_free(&answer);
        raw_close(&client);
    }
}

static void a_half_closed_client_is_answered(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client,
                  "GET /hello HTTP/1.1\r\n" HOST "\r\nGET /static HTTP/1.1\r\n" HOST "\r\n");
    raw_end_sending(&client);
    raw_expect(&client, 200, "hello");
    raw_expect(&client, 200, NULL);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
}

static void an_incomplete_request_is_told_so(void **state)
{
    static const char *const texts[] = {
        "GET /hel", "POST /echo HTTP/1.1\r\n" HOST,
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhi",
        "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhi"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct raw_client client = raw_connect(fixture.port);

        raw_send_text(&client, texts[i]);
        raw_end_sending(&client);
        raw_expect(&client, 400, NULL);
        assert_true(raw_is_closed(&client));
        raw_close(&client);
    }
}

static void parameters_and_queries_reach_the_handler(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, "GET /params/a%2Fb/%C3%A9+ HTTP/1.1\r\n" HOST "\r\n"
                           "GET /query?x=1&y=a+b%26&x=2 HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&client, 200, "a/b|\xc3\xa9+");
    raw_expect(&client, 200, "x=1;y=a b&;x=2;");
    raw_close(&client);
}

static void static_bytes_are_sent_whole(void **state)
{
    struct raw_answer answer = ask("GET /static HTTP/1.1\r\n" HOST "\r\n");

    (void)state;
    assert_int_equal(answer.body_length, 20000);
    assert_int_equal(strspn(answer.body, "s"), 20000);
    raw_answer_free(&answer);
}

static void chunked_bodies_are_counted_against_the_limit(void **state)
{
    struct raw_client client = raw_connect(fixture.port);

    (void)state;
    raw_send_text(&client, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 10; i++) {
        char chunk[128];

        memset(chunk, 'c', sizeof chunk);
        memcpy(chunk, "64\r\n", 4);
        memcpy(chunk + 104, "\r\n", 2);
        raw_send(&client, chunk, 106);
    }
    raw_send_text(&client, "1\r\n");
    raw_expect(&client, 413, NULL);
    assert_true(raw_is_closed(&client));
    raw_close(&client);
}

static void the_fourth_of_three_connections_is_turned_away(void **state)
{
    struct raw_client held[3], more;
    struct http_counters counters;

    (void)state;
    for (int i = 0; i < 3; i++) {
        held[i] = raw_connect(fixture.port);
        raw_send_text(&held[i], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        raw_expect(&held[i], 200, "hello");
    }
    more = raw_connect(fixture.port);
    raw_expect(&more, 503, NULL);
    assert_true(raw_is_closed(&more));
    raw_close(&more);
    more = raw_connect(fixture.port);
    raw_send_text(&more, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&more, 503, NULL);
    assert_true(raw_is_closed(&more));
    raw_close(&more);
    more = raw_connect(fixture.port); /* a probe is answered, and one only */
    raw_send_text(&more, "GET /probe HTTP/1.1\r\n" HOST "\r\nGET /probe HTTP/1.1\r\n" HOST "\r\n");
    raw_expect(&more, 200, "hello");
    assert_true(raw_is_closed(&more));
    raw_close(&more);
    http_server_counters(fixture.server, &counters);
    assert_int_equal(counters.accepted, 6);
    assert_int_equal(counters.rejected, 2);
    assert_int_equal(counters.open, 3);
    for (int i = 0; i < 3; i++) {
        raw_send_text(&held[i], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        raw_expect(&held[i], 200, "hello");
        raw_close(&held[i]);
    }
}

static void one_address_may_hold_only_so_many(void **state)
{
    struct raw_client held[2], more;

    (void)state;
    for (int i = 0; i < 2; i++) {
        held[i] = raw_connect(fixture.port);
        raw_send_text(&held[i], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        raw_expect(&held[i], 200, "hello");
    }
    more = raw_connect(fixture.port);
    raw_expect(&more, 429, NULL);
    raw_close(&more);
    raw_send_text(&held[0], "GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    raw_expect(&held[0], 200, "hello");
    assert_true(raw_is_closed(&held[0]));
    assert_int_equal(raw_status_of(fixture.port, "GET /hello HTTP/1.1\r\n" HOST "\r\n"), 200);
    raw_close(&held[0]);
    raw_close(&held[1]);
}

static void counters_tell_what_happened(void **state)
{
    struct http_route_counters hello, none;
    struct http_counters counters;
    uint64_t latencies = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        raw_status_of(fixture.port, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    raw_status_of(fixture.port, "GET /nothing HTTP/1.1\r\n" HOST "\r\n");
    raw_status_of(fixture.port, "nonsense\r\n\r\n");
    http_server_counters(fixture.server, &counters);
    http_server_route_counters(fixture.server, FIXTURE_ROUTE_HELLO, &hello);
    http_server_route_counters(fixture.server, FIXTURE_ROUTE_NONE, &none);
    assert_int_equal(counters.requests, 5);
    assert_int_equal(counters.parse_errors, 1);
    assert_int_equal(hello.by_class[2], 3);
    assert_int_equal(none.by_class[4], 2);
    assert_true(counters.bytes_in > 100 && counters.bytes_out > 500);
    for (int i = 0; i < 20; i++)
        latencies += counters.latency_count[i];
    assert_int_equal(latencies, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_WITH(name, setup_function)                                                            \
    cmocka_unit_test_setup_teardown(name, setup_function, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_answered_wherever_it_is_cut),
        TEST(a_request_may_come_byte_by_byte),
        TEST(a_chunked_request_is_answered_wherever_it_is_cut),
        TEST(a_hundred_pipelined_requests_are_answered_in_order),
        TEST(large_pipelined_answers_do_not_stall),
        TEST(a_large_body_goes_there_and_back),
        TEST(head_is_get_without_a_body),
        TEST(options_answers_preflights),
        TEST(a_wrong_method_names_the_right_ones),
        TEST(every_answer_has_its_headers),
        TEST(a_problem_has_pointer_limit_and_detail),
        TEST(an_answer_without_memory_is_503_and_not_half),
        TEST(requests_get_the_status_that_the_table_says),
        TEST(after_a_framing_error_the_connection_closes),
        TEST(overlong_targets_and_headers_are_refused),
        TEST(a_refused_upload_can_still_read_its_answer),
        TEST(a_small_refused_body_keeps_the_connection),
        TEST(continue_is_said_only_to_what_will_be_taken),
        TEST(old_clients_are_closed_unless_they_ask),
        TEST(a_half_closed_client_is_answered),
        TEST(an_incomplete_request_is_told_so),
        TEST(parameters_and_queries_reach_the_handler),
        TEST(static_bytes_are_sent_whole),
        TEST(counters_tell_what_happened),
        TEST_WITH(chunked_bodies_are_counted_against_the_limit, setup_with_small_limits),
        TEST_WITH(the_fourth_of_three_connections_is_turned_away, setup_with_small_limits),
        TEST_WITH(one_address_may_hold_only_so_many, setup_with_address_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
