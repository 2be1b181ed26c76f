/*
 * The check of chunked framing by itself, at every cut and in memory of exact size.
 */
#include "http/chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BODY_MAX 1000
#define BYTES(text) (text), sizeof(text) - 1

struct chunk_case {
    const char *name;
    const char *bytes;
    size_t length;
    int status; /* 200: complete; 0: more is needed */
    uint64_t body_bytes;
    size_t rest; /* bytes after the body's end */
};

static const struct chunk_case cases[] = {
    {"nothing", BYTES("0\r\n\r\n"), 200, 0, 0},
    {"one chunk", BYTES("5\r\nhello\r\n0\r\n\r\n"), 200, 5, 0},
    {"two chunks and a next request", BYTES("1\r\na\r\n2\r\nbc\r\n0\r\n\r\nGET"), 200, 3, 3},
    {"data like framing", BYTES("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), 200, 5, 0},
    {"capitals and leading zeros", BYTES("00A\r\n0123456789\r\n0\r\n\r\n"), 200, 10, 0},
    {"extensions", BYTES("1;a=b;c=\"d\"\r\nx\r\n0;e\r\n\r\n"), 200, 1, 0},
    {"trailers", BYTES("1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n"), 200, 1, 0},
    {"incomplete", BYTES("5\r\nhel"), 0, 5, 0},
    {"incomplete end", BYTES("1\r\nx\r\n0\r\n"), 0, 1, 0},
    {"no size", BYTES("\r\nx"), 400, 0, 0},
    {"size not hexadecimal", BYTES("g\r\n"), 400, 0, 0},
    {"size with 0x", BYTES("0x5\r\nhello"), 400, 0, 0},
    {"negative size", BYTES("-1\r\n"), 400, 0, 0},
    {"space before the size", BYTES(" 5\r\nhello"), 400, 0, 0},
    {"space after the size", BYTES("5 \r\nhello"), 400, 0, 0},
    {"bad white space", BYTES("1 \t; a = b ;c\t;d= \"e\" \t;f\r\nx\r\n0\r\n\r\n"), 200, 1, 0},
    {"quoted pairs", BYTES("1;a=\"b\\\"c\\\\\"\r\nx\r\n0\r\n\r\n"), 200, 1, 0},
    {"extension without a name", BYTES("1;=b\r\nx"), 400, 0, 0},
    {"empty extension", BYTES("1;\r\nx"), 400, 0, 0},
    {"semicolon at the end", BYTES("1;a=b;\r\nx"), 400, 0, 0},
    {"extension without a value", BYTES("1;a=\r\nx"), 400, 0, 0},
    {"space at the end", BYTES("1;a=b \r\nx"), 400, 0, 0},
    {"space after a name at the end", BYTES("1;a \r\nx"), 400, 0, 0},
    {"two words", BYTES("1;a b\r\nx"), 400, 0, 0},
    {"text behind quotes", BYTES("1;a=\"b\"c\r\nx"), 400, 0, 0},
    {"quotes that stay open", BYTES("1;a=\"b\r\nx"), 400, 0, 0},
    {"control byte in quotes", BYTES("1;a=\"\001\"\r\nx"), 400, 0, 0},
    {"bare LF after the size", BYTES("5\nhello\r\n0\r\n\r\n"), 400, 0, 0},
    {"bare LF after an extension", BYTES("5;a\nhello\r\n0\r\n\r\n"), 400, 0, 0},
    {"bare CR after the size", BYTES("5\rXhello"), 400, 0, 0},
    {"chunk longer than said", BYTES("2\r\nabc\r\n"), 400, 2, 0},
    {"bare LF after the data", BYTES("1\r\na\n0\r\n\r\n"), 400, 1, 0},
    {"bare LF in a trailer", BYTES("0\r\nA: b\n\r\n"), 400, 0, 0},
    {"bare LF as the end", BYTES("0\r\n\n"), 400, 0, 0},
    {"folded trailer", BYTES("0\r\nA: b\r\n c\r\n\r\n"), 400, 0, 0},
    {"trailer without colon", BYTES("0\r\nnonsense\r\n\r\n"), 400, 0, 0},
    {"size of 16 digits", BYTES("0000000000000001\r\na"), 400, 0, 0},
    {"huge size", BYTES("fffffffffffffff\r\n"), 413, 0, 0},
    {"one byte over the limit", BYTES("3e9\r\n"), 413, 0, 0},
    {"exactly the limit", BYTES("3e8\r\n"), 0, 1000, 0},
};

static int feed(struct http_chunks *chunks, const char *bytes, size_t length, size_t *used)
{
    char *copy = malloc(length ? length : 1);
    struct err err = {0};
    struct span data;
    enum err_code code;
    size_t taken;

    *used = 0;
    memcpy(copy, bytes, length);
    do {
        code = http_chunks_feed(chunks, copy + *used, length - *used, BODY_MAX,
                                &http_limits_default, &taken, &data, &err);
        if (code == ERR_OK)
            *used += taken;
    } while (code == ERR_OK && taken && !chunks->is_done);
    free(copy);
    if (code != ERR_OK)
        return err_http_status(code);
    return chunks->is_done ? 200 : 0;
}

static void each_body_is_taken_or_refused_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t first = 0; first <= cases[i].length; first++) {
            const struct chunk_case *one = &cases[i];
            struct http_chunks chunks = {0};
            size_t used = 0, more = 0;
            int status = feed(&chunks, one->bytes, first, &used);

            if (status == 0)
                status = feed(&chunks, one->bytes + first, one->length - first, &more);
            if (status != one->status)
                fail_msg("%s, cut at %zu: %d instead of %d", one->name, first, status, one->status);
            if (status == 200 &&
                (chunks.body_bytes != one->body_bytes || used + more != one->length - one->rest))
                fail_msg("%s, cut at %zu: %llu bytes of body, %zu of %zu taken", one->name, first,
                         (unsigned long long)chunks.body_bytes, used + more, one->length);
        }
    }
}

static void framing_is_bounded(void **state)
{
    static const char *const floods[] = {"1;", "0\r\nA: "};
    static char junk[20000];

    (void)state;
    memset(junk, 'x', sizeof junk);
    for (size_t i = 0; i < 2; i++) {
        struct http_chunks chunks = {0};
        size_t used;

        assert_int_equal(feed(&chunks, floods[i], strlen(floods[i]), &used), 0);
        assert_int_equal(feed(&chunks, junk, sizeof junk, &used), i == 0 ? 400 : 431);
    }
}

static void too_many_trailers_are_refused(void **state)
{
    struct http_chunks chunks = {0};
    size_t used;
    int status = feed(&chunks, "0\r\n", 3, &used);

    (void)state;
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(status, 0);
        status = feed(&chunks, "A: b\r\n", 6, &used);
    }
    assert_int_equal(status, 0);
    assert_int_equal(feed(&chunks, "A: b\r\n", 6, &used), 431);
}

static void a_thousand_chunks_of_one_byte_are_taken(void **state)
{
    struct http_chunks chunks = {0};
    size_t used;

    (void)state;
    for (int i = 0; i < BODY_MAX; i++)
        assert_int_equal(feed(&chunks, "1\r\nx\r\n", 6, &used), 0);
    assert_int_equal(feed(&chunks, "0\r\n\r\n", 5, &used), 200);
    assert_int_equal(chunks.body_bytes, BODY_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_body_is_taken_or_refused_as_the_table_says),
        cmocka_unit_test(framing_is_bounded),
        cmocka_unit_test(too_many_trailers_are_refused),
        cmocka_unit_test(a_thousand_chunks_of_one_byte_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
