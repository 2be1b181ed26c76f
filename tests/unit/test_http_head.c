/*
 * The head by itself, through both its checks: what is accepted, what is refused and with which
 * status, at every cut.
 */
#include "http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_BYTES(text) (text), sizeof(text) - 1

struct head_case {
    const char *name;
    const char *bytes;
    size_t length;
    int status; /* 200: taken */
};

static const struct head_case cases[] = {
    {"plain", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200},
    {"1.0 without host", HEAD_BYTES("GET / HTTP/1.0\r\n\r\n"), 200},
    {"one leading empty line", HEAD_BYTES("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200},
    {"empty host", HEAD_BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 200},
    {"value with tab and high bytes",
     HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\tb\xe9\r\n\r\n"), 200},
    {"value with outer space", HEAD_BYTES("GET / HTTP/1.1\r\nHost: \t a \t\r\n\r\n"), 200},
    {"chunked in capitals",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n"), 200},
    {"two leading empty lines", HEAD_BYTES("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"bare LF after the request line", HEAD_BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400},
    {"bare LF after a header", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400},
    {"bare LF as empty line", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400},
    {"bare LF first", HEAD_BYTES("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"bare CR in a value", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"), 400},
    {"two CR", HEAD_BYTES("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), 400},
    {"CR CR LF after a header", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), 400},
    {"obs-fold by space", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"), 400},
    {"obs-fold by tab", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n"), 400},
    {"space before the first header", HEAD_BYTES("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400},
    {"space before the colon", HEAD_BYTES("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400},
    {"tab before the colon", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\t: a\r\n\r\n"), 400},
    {"empty name", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n"), 400},
    {"no colon", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n"), 400},
    {"name with a slash", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\na/b: c\r\n\r\n"), 400},
    {"name with a high byte", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\n\xc3\xa9: c\r\n\r\n"), 400},
    {"NUL in a value", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"), 400},
    {"NUL in a name", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\0: a\r\n\r\n"), 400},
    {"NUL in the target", HEAD_BYTES("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"DEL in a value", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n"), 400},
    {"escape in a value", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[2J\r\n\r\n"), 400},
    {"high byte in the target", HEAD_BYTES("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"fragment in the target", HEAD_BYTES("GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"two spaces after the method", HEAD_BYTES("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"two spaces before the version", HEAD_BYTES("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"space after the version", HEAD_BYTES("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), 400},
    {"tab between", HEAD_BYTES("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"space before the method", HEAD_BYTES(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"HTTP/0.9", HEAD_BYTES("GET /\r\n\r\n"), 400},
    {"no target", HEAD_BYTES("GET HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"TLS hello", HEAD_BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400},
    {"lower-case protocol", HEAD_BYTES("GET / http/1.1\r\nHost: a\r\n\r\n"), 400},
    {"two minor digits", HEAD_BYTES("GET / HTTP/1.10\r\nHost: a\r\n\r\n"), 400},
    {"HTTP/2.0", HEAD_BYTES("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505},
    {"HTTP/2 preface", HEAD_BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505},
    {"HTTP/1.2", HEAD_BYTES("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505},
    {"HTTP/0.9 by name", HEAD_BYTES("GET / HTTP/0.9\r\nHost: a\r\n\r\n"), 505},
    {"unknown method", HEAD_BYTES("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), 501},
    {"CONNECT", HEAD_BYTES("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), 501},
    {"TRACE", HEAD_BYTES("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"), 501},
    {"a method of HTTP/2", HEAD_BYTES("PRI / HTTP/1.1\r\nHost: a\r\n\r\n"), 501},
    {"a method of 21 letters", HEAD_BYTES("ABCDEFGHIJKLMNOPQRSTU / HTTP/1.1\r\nHost: a\r\n\r\n"),
     501},
    {"a method of 21 letters, before the head's end",
     HEAD_BYTES("ABCDEFGHIJKLMNOPQRSTU / HTTP/1.1\r\n"), 501},
    {"a method of RTSP", HEAD_BYTES("SETUP / HTTP/1.1\r\nHost: a\r\n\r\n"), 501},
    {"lower-case method", HEAD_BYTES("get / HTTP/1.1\r\nHost: a\r\n\r\n"), 501},
    {"no host", HEAD_BYTES("GET / HTTP/1.1\r\n\r\n"), 400},
    {"two hosts", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400},
    {"two hosts in 1.0", HEAD_BYTES("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400},
    {"host with a space", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400},
    {"host with a path", HEAD_BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400},
    {"two equal lengths",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"),
     400},
    {"two unequal lengths",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
     400},
    {"list of lengths", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n"),
     400},
    {"signed length", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"), 400},
    {"negative length", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n"),
     400},
    {"hexadecimal length", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n"),
     400},
    {"empty length", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n"), 400},
    {"length with a space", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n"),
     400},
    {"both framings",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"),
     400},
    {"both framings, other order",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                "chunked\r\nContent-Length: 5\r\n\r\n"),
     400},
    {"chunked twice",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"),
     400},
    {"chunked in 1.0", HEAD_BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
    {"empty encoding", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"), 400},
    {"encoding with vertical tab",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0b"
                "chunked\r\n\r\n"),
     400},
    {"gzip", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"), 501},
    {"gzip, chunked",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 501},
    {"chunked, identity",
     HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n"), 501},
    {"xchunked", HEAD_BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"),
     501},
};

enum { FIELDS_MAX = 128 };

/*
 * Both checks of a head: its bytes, and what llhttp finds in them. Once it is complete, text and
 * fields have what head points into.
 */
static enum http_head_state take_head(struct http_head *head, const char *at, size_t length,
                                      char *text, struct http_field *fields, struct err *err)
{
    enum http_head_state state = http_head_feed(head, at, length, &http_limits_default, err);

    if (state != HTTP_HEAD_DONE)
        return state;
    assert_true(head->line_count <= FIELDS_MAX);
    memcpy(text, at, head->length);
    return http_head_parse(head, text, fields, &http_limits_default, err) ? HTTP_HEAD_BAD
                                                                          : HTTP_HEAD_DONE;
}

/* Feeds the bytes in two steps, each in memory of its exact size. */
static int status_when_cut(const struct head_case *one, size_t first, struct http_head *head)
{
    struct err err = {0};
    enum http_head_state state;
    struct http_field fields[FIELDS_MAX];
    char *copy = malloc(first ? first : 1), *text = malloc(one->length);

    memset(head, 0, sizeof *head);
    memcpy(copy, one->bytes, first);
    state = take_head(head, copy, first, text, fields, &err);
    free(copy);
    if (state == HTTP_HEAD_MORE) {
        copy = malloc(one->length);
        memcpy(copy, one->bytes, one->length);
        state = take_head(head, copy, one->length, text, fields, &err);
        free(copy);
    }
    free(text);
    if (state == HTTP_HEAD_MORE)
        return 0;
    return state == HTTP_HEAD_DONE ? 200 : err_http_status(err.code);
}

static void each_head_is_taken_or_refused_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t first = 0; first <= cases[i].length; first++) {
            struct http_head head;
            int status = status_when_cut(&cases[i], first, &head);

            if (status != cases[i].status)
                fail_msg("%s, cut at %zu: %d instead of %d", cases[i].name, first, status,
                         cases[i].status);
        }
    }
}

static void no_prefix_of_a_good_head_is_refused_or_complete(void **state)
{
    static const char text[] = "PUT /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n";

    (void)state;
    for (size_t length = 0; length < sizeof text - 1; length++) {
        struct http_head head = {0};
        struct err err;

        assert_int_equal(http_head_feed(&head, text, length, &http_limits_default, &err),
                         HTTP_HEAD_MORE);
    }
}

static void a_parsed_head_has_method_target_fields_and_framing(void **state)
{
    static const char bytes[] = "\r\nHEAD /a?b HTTP/1.0\r\nContent-Length: 0012\r\nX-Empty: \r\n"
                                "Expect: 100-Continue\r\nConnection: keep-alive\r\n"
                                "Content-Type: Text/Plain;charset=UTF-8\r\n\r\nrest";
    static const struct {
        const char *name, *value;
    } expected[] = {{"content-length", "0012"},
                    {"x-empty", ""},
                    {"expect", "100-Continue"},
                    {"connection", "keep-alive"},
                    {"content-type", "text/plain;charset=UTF-8"}};
    struct http_head head = {0};
    struct http_field fields[FIELDS_MAX];
    char text[sizeof bytes];
    struct err err;

    (void)state;
    assert_int_equal(take_head(&head, bytes, sizeof bytes - 1, text, fields, &err), HTTP_HEAD_DONE);
    assert_int_equal(head.method, METHOD_GET);
    assert_true(head.is_head && head.is_1_0 && head.wants_keep_alive && !head.is_options);
    assert_int_equal(head.target.length, 4);
    assert_memory_equal(head.target.at, "/a?b", 4);
    assert_int_equal(head.content_length, 12);
    assert_true(head.expects_continue && !head.expects_other);
    assert_int_equal(head.media_type.length, 10);
    assert_memory_equal(head.media_type.at, "text/plain", 10);
    assert_null(head.repeated);
    assert_int_equal(head.length, sizeof bytes - 1 - 4);
    assert_int_equal(head.field_count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < head.field_count; i++) {
        assert_int_equal(head.fields[i].name.length, strlen(expected[i].name));
        assert_memory_equal(head.fields[i].name.at, expected[i].name, strlen(expected[i].name));
        assert_int_equal(head.fields[i].value.length, strlen(expected[i].value));
        assert_memory_equal(head.fields[i].value.at, expected[i].value, strlen(expected[i].value));
    }
}

static void what_may_be_there_once_only_is_noted(void **state)
{
    static const struct head_case repeats[] = {
        {"content-type",
         HEAD_BYTES("GET / HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\n"
                    "content-type: a/b\r\n\r\n"),
         200},
        {"authorization",
         HEAD_BYTES("GET / HTTP/1.1\r\nAuthorization: Bearer a\r\nHost: a\r\n"
                    "AUTHORIZATION: Bearer b\r\n\r\n"),
         200},
    };

    (void)state;
    for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++) {
        struct http_head head = {0};
        struct http_field fields[FIELDS_MAX];
        char text[256];
        struct err err;

        assert_int_equal(take_head(&head, repeats[i].bytes, repeats[i].length, text, fields, &err),
                         HTTP_HEAD_DONE);
        assert_string_equal(head.repeated, repeats[i].name);
    }
}

static void a_length_beyond_64_bits_is_beyond_the_limit(void **state)
{
    static const char bytes[] =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n";
    struct http_head head = {0};
    struct http_field fields[FIELDS_MAX];
    char text[sizeof bytes];
    struct err err;

    (void)state;
    assert_int_equal(take_head(&head, bytes, sizeof bytes - 1, text, fields, &err), HTTP_HEAD_BAD);
    assert_int_equal(err.code, ERR_BODY_TOO_LARGE);
    assert_true(err.has_limit);
}

/* A head with a target of target_bytes, `headers` more headers and one of value_bytes. */
static size_t make_head(char *out, size_t target_bytes, size_t headers, size_t value_bytes)
{
    char *at = out;

    at += sprintf(at, "GET /");
    memset(at, 'a', target_bytes - 1);
    at += target_bytes - 1;
    at += sprintf(at, " HTTP/1.1\r\nHost: a\r\n");
    for (size_t i = 0; i < headers; i++)
        at += sprintf(at, "X: y\r\n");
    if (value_bytes) {
        at += sprintf(at, "Y: ");
        memset(at, 'b', value_bytes);
        at += value_bytes;
        at += sprintf(at, "\r\n");
    }
    at += sprintf(at, "\r\n");
    return (size_t)(at - out);
}

static void limits_hold_at_their_edge(void **state)
{
    const struct http_limits *limits = &http_limits_default;
    static const struct {
        const char *name;
        size_t target, headers, value;
        int status;
    } edges[] = {
        {"longest target", 8192, 0, 0, 200},       {"target too long", 8193, 0, 0, 414},
        {"target far too long", 40000, 0, 0, 414}, {"most headers", 1, 63, 0, 200},
        {"too many headers", 1, 64, 0, 431},       {"longest head", 1, 0, 16384 - 32, 200},
        {"head too long", 1, 0, 16384 - 31, 431},  {"head far too long", 1, 0, 40000, 431},
    };
    char *text = malloc(65536);

    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        size_t length = make_head(text, edges[i].target, edges[i].headers, edges[i].value);

        for (size_t step = 1; step <= length; step = step * 7 + 1) {
            struct http_head head = {0};
            struct err err = {0};
            enum http_head_state got = HTTP_HEAD_MORE;
            size_t fed = 0;

            while (got == HTTP_HEAD_MORE && fed < length) {
                fed = fed + step < length ? fed + step : length;
                got = http_head_feed(&head, text, fed, limits, &err);
            }
            if ((got == HTTP_HEAD_DONE ? 200 : err_http_status(err.code)) != edges[i].status)
                fail_msg("%s (%zu bytes in steps of %zu): %s instead of %d", edges[i].name, length,
                         step, err.msg, edges[i].status);
            if (got == HTTP_HEAD_BAD)
                assert_true(err.has_limit);
        }
    }
    free(text);
}

/* ---- every byte at every place, against the rules spelled out -------------------------------- */

#define FILL_BYTES 21 /* two groups of eight, and a rest */

enum place { IN_TARGET, IN_NAME, IN_VALUE, IN_HOST, PLACES };

static bool may_stand(enum place place, int c)
{
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

    switch (place) {
    case IN_TARGET:
        return c > 0x20 && c < 0x7f && c != '#';
    case IN_NAME:
        return is_letter || (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
    case IN_VALUE:
        return (c >= 0x20 && c != 0x7f) || c == '\t';
    default: /* of a name: unreserved and sub-delims, but no comma */
        return is_letter || (c != 0 && strchr("-._~!$&'()*+;=", c));
    }
}

static void each_byte_at_each_place_is_judged_by_the_rules(void **state)
{
    static const char *const before[PLACES] = {
        "GET /", "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: ", "GET / HTTP/1.1\r\nHost: x"};
    static const char *const behind[PLACES] = {" HTTP/1.1\r\nHost: a\r\n\r\n", ": a\r\n\r\n",
                                               "\r\n\r\n", "x\r\n\r\n"};

    (void)state;
    for (int place = 0; place < PLACES; place++) {
        for (int at = 0; at < FILL_BYTES; at++) {
            for (int c = 0; c < 256; c++) {
                char text[128], fill[FILL_BYTES];
                struct http_head head = {0};
                struct http_field fields[FIELDS_MAX];
                char parsed[128];
                struct err err;
                size_t length = strlen(before[place]);
                bool is_taken;

                if (c == '\n' || (place == IN_TARGET && c == ' ') ||
                    (place == IN_NAME && c == ':' && at > 0) ||
                    (place == IN_HOST && (c == ':' || c == '%')))
                    continue; /* means something there */
                memset(fill, 'a', sizeof fill);
                fill[at] = (char)c;
                memcpy(text, before[place], length);
                memcpy(text + length, fill, sizeof fill);
                length += sizeof fill;
                memcpy(text + length, behind[place], strlen(behind[place]) + 1);
                length += strlen(behind[place]);
                is_taken = take_head(&head, text, length, parsed, fields, &err) == HTTP_HEAD_DONE;
                if (is_taken != may_stand((enum place)place, c))
                    fail_msg("byte 0x%02x at %d of place %d: %s", (unsigned)c, at, place,
                             is_taken ? "taken" : err.msg);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_head_is_taken_or_refused_as_the_table_says),
        cmocka_unit_test(no_prefix_of_a_good_head_is_refused_or_complete),
        cmocka_unit_test(a_parsed_head_has_method_target_fields_and_framing),
        cmocka_unit_test(what_may_be_there_once_only_is_noted),
        cmocka_unit_test(a_length_beyond_64_bits_is_beyond_the_limit),
        cmocka_unit_test(limits_hold_at_their_edge),
        cmocka_unit_test(each_byte_at_each_place_is_judged_by_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
