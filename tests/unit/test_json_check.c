/*
 * The strict JSON checker against a table of texts that are JSON and texts that are not, and
 * against cJSON: whatever passes is parsed, and the tape and its tree have the same values.
 */
#include "tests/support/json_suite.h"
#include "tests/support/json_tape_check.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct text {
    const char *bytes;
    size_t length;
};

#define TEXT(s)                                                                                    \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

static const struct text accepted[] = {
    TEXT("null"),
    TEXT("true"),
    TEXT("false"),
    TEXT("0"),
    TEXT("-0"),
    TEXT("-0.0"),
    TEXT("1"),
    TEXT("10"),
    TEXT("-1"),
    TEXT("0.5"),
    TEXT("-0.5e-3"),
    TEXT("1E5"),
    TEXT("1e+5"),
    TEXT("1e-400"),
    TEXT("123456789012345678901234567890"),
    TEXT("1.7976931348623157e308"),
    TEXT("5e-324"),
    TEXT("\"\""),
    TEXT("\"a\""),
    TEXT("\" \\\" \\\\ \\/ \\b \\f \\n \\r \\t \""),
    TEXT("\"\\u0041\""),
    TEXT("\"\\uABCD\\uabcd\""),
    TEXT("\"\\ud83d\\ude00\""),
    TEXT("\"\x7f\""),
    TEXT("\"\xc3\xa9\""),
    TEXT("\"\xe2\x82\xac\""),
    TEXT("\"\xf0\x9f\x98\x80\""),
    TEXT("\"\xf4\x8f\xbf\xbf\""),
    TEXT("\"\xee\x80\x80\""),
    TEXT("\"\xed\x9f\xbf\""),
    TEXT("\"\xc2\x80\""),
    TEXT("[]"),
    TEXT("[ ]"),
    TEXT("[1]"),
    TEXT("[1,2]"),
    TEXT(" [ 1 , 2 ] "),
    TEXT("\t[\n1\r\n]\n"),
    TEXT("[[[]]]"),
    TEXT("[null,true]"),
    TEXT("{}"),
    TEXT("{ }"),
    TEXT("{\"a\":1}"),
    TEXT("{\"a\":1,\"a\":2}"),
    TEXT("{\"\":null}"),
    TEXT("{ \"a\" : [ { \"b\" : \"c\" } ] , \"d\" : -1.5e2 }"),
    TEXT("[0e1]"),
    TEXT("[0.0]"),
    TEXT("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
    TEXT("1.00000000000000000000000000000000000000000000000000000000000e5"), /* 63 characters */
};

static const struct text refused[] = {
    TEXT(""), TEXT(" "), TEXT("\n"), TEXT("nul"), TEXT("nulll"), TEXT("True"), TEXT("TRUE"),
    TEXT("NaN"), TEXT("Infinity"), TEXT("-Infinity"), TEXT("inf"), TEXT("undefined"),
    /* numbers */
    TEXT("01"), TEXT("-01"), TEXT("00"), TEXT("+1"), TEXT(".5"), TEXT("-.5"), TEXT("5."),
    TEXT("1.e5"), TEXT("1e"), TEXT("1e+"), TEXT("1e5.5"), TEXT("-"), TEXT("--1"), TEXT("0x10"),
    TEXT("1_000"), TEXT("1 000"), TEXT("1,5"), TEXT("1e999"), TEXT("-1e999"), TEXT("[1e400]"),
    TEXT("1.8e308"), TEXT("0e"), TEXT("1a"), TEXT("[-]"), TEXT("[1.]"),
    TEXT("1234567890123456789012345678901234567890123456789012345678901234"), /* 64 characters */
    TEXT("1.000000000000000000000000000000000000000000000000000000000000e5"), /* and these */
    /* strings */
    TEXT("\""), TEXT("\"a"), TEXT("a"), TEXT("'a'"), TEXT("\"\\\""), TEXT("\"\\a\""),
    TEXT("\"\\x41\""), TEXT("\"\\0\""), TEXT("\"\\u\""), TEXT("\"\\u12\""), TEXT("\"\\u12g4\""),
    TEXT("\"\\U0041\""), TEXT("\"\t\""), TEXT("\"\n\""), TEXT("\"\x01\""), TEXT("\"\x1f\""),
    TEXT("\"\0\""), TEXT("\"\\u0000\""), TEXT("\"\\ud800\""), TEXT("\"\\udc00\""),
    TEXT("\"\\ud800\\u0041\""), TEXT("\"\\ud800\\ud800\""), TEXT("\"\\ud800x\""), TEXT("\"\\\0\""),
    /* UTF-8 */
    TEXT("\"\x80\""), TEXT("\"\xff\""), TEXT("\"\xfe\""), TEXT("\"\xc3\""), TEXT("\"\xc3(\""),
    TEXT("\"\xc0\x80\""), TEXT("\"\xc1\xbf\""), TEXT("\"\xe0\x80\x80\""), TEXT("\"\xe0\x9f\xbf\""),
    TEXT("\"\xed\xa0\x80\""), TEXT("\"\xed\xbf\xbf\""), TEXT("\"\xf0\x80\x80\x80\""),
    TEXT("\"\xf0\x8f\xbf\xbf\""), TEXT("\"\xf4\x90\x80\x80\""), TEXT("\"\xf5\x80\x80\x80\""),
    TEXT("\"\xe2\x82\""), TEXT("\"\xf0\x9f\x98\""), TEXT("\"\xe9\""),
    /* arrays */
    TEXT("["), TEXT("]"), TEXT("[1"), TEXT("[1,"), TEXT("[1,]"), TEXT("[,1]"), TEXT("[,]"),
    TEXT("[1 2]"), TEXT("[1;2]"), TEXT("[1]]"), TEXT("[1}"), TEXT("[1]x"), TEXT("[1],"),
    TEXT("[\"a\" 1]"), TEXT("[\"a\":1]"), TEXT("[1]\0"),
    /* objects */
    TEXT("{"), TEXT("}"), TEXT("{\"a\"}"), TEXT("{\"a\":}"), TEXT("{\"a\":1,}"), TEXT("{,}"),
    TEXT("{a:1}"), TEXT("{'a':1}"), TEXT("{1:1}"), TEXT("{null:1}"), TEXT("{\"a\":1 \"b\":2}"),
    TEXT("{\"a\",1}"), TEXT("{\"a\":1}}"), TEXT("{\"a\"::1}"), TEXT("{\"a\":1]"), TEXT("{[]:1}"),
    TEXT("{\"a\":1}{\"b\":2}"), TEXT("{} {}"),
    /* around it */
    TEXT("\xef\xbb\xbf[]"), TEXT("\xff\xfe[\0]\0"), TEXT("[] // no"), TEXT("/* no */ []"),
    TEXT("#\n[]"), TEXT("\f[]"), TEXT("\v[]"), TEXT("\xc2\xa0[]"), TEXT("[]\0"), TEXT("1 2"),
    TEXT("\"a\" \"b\""), TEXT("*"), TEXT("<a/>"), TEXT("(1)"),
    TEXT("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"), /* 33 deep */
};

/* In a block of exactly its size, so that a read past the end is seen. */
static enum err_code check_exact(const char *bytes, size_t length, struct err *err)
{
    char *copy = malloc(length + (length == 0));
    enum err_code code;

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    err->code = ERR_OK;
    code = json_check(copy, length, &json_limits_default, err);
    assert_int_equal(json_tape_check(copy, length), code == ERR_OK);
    free(copy);
    return code;
}

static void json_texts_are_accepted_and_parsed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        struct err err;
        cJSON *json = NULL;

        if (check_exact(accepted[i].bytes, accepted[i].length, &err) != ERR_OK)
            fail_msg("refused: %s: %s", accepted[i].bytes, err.msg);
        if (json_parse(accepted[i].bytes, accepted[i].length, &json_limits_default, &json, &err) !=
            ERR_OK)
            fail_msg("not parsed: %s: %s", accepted[i].bytes, err.msg);
        cJSON_Delete(json);
    }
}

static void what_is_not_json_is_refused_with_its_offset(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct err err;

        if (check_exact(refused[i].bytes, refused[i].length, &err) == ERR_OK)
            fail_msg("accepted: case %zu: %s", i, refused[i].bytes);
        if (!strstr(err.msg, "at byte "))
            fail_msg("no offset for case %zu: %s", i, err.msg);
    }
}

static void the_offset_is_that_of_the_fault(void **state)
{
    static const struct {
        const char *text;
        const char *place;
    } cases[] = {
        {"", "byte 0:"},           {"  x", "byte 2 "},         {"[1,02]", "byte 4 "},
        {"[1,2", "byte 4:"},       {"{\"a\":tru}", "byte 5 "}, {"[1e999]", "byte 1 "},
        {"[1] x", "byte 4 "},      {"\"ab\tc\"", "byte 3 "},   {"\"a\\qb\"", "byte 3 "},
        {"{\"a\":1,}", "byte 7 "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;

        assert_int_not_equal(check_exact(cases[i].text, strlen(cases[i].text), &err), ERR_OK);
        if (!strstr(err.msg, cases[i].place))
            fail_msg("%s: expected \"%s\" in: %s", cases[i].text, cases[i].place, err.msg);
    }
}

static void the_pointer_is_that_of_the_value_at_fault(void **state)
{
    static const struct {
        const char *text;
        const char *pointer;
    } cases[] = {
        {"", ""},
        {"1e999", ""},
        {"[1e999]", "/0"},
        {"{\"points\":[[1,2],[3,NaN]]}", "/points/1/1"},
        {"{\"a\":{\"b\":[{},{\"c\":[1,2", "/a/b/1/c"},
        {"{\"a\":1,\"b\" 2}", ""},
        {"{\"a/b\":[x]}", ""}, /* a name that would need an escape */
        {"{\"a\":[1],\"b\":[[[x]]]}", "/b/0/0/0"},
        {"{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aa"
         "aaaaaaaaaa\":x}",
         ""}, /* longer than the room */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;

        assert_int_not_equal(check_exact(cases[i].text, strlen(cases[i].text), &err), ERR_OK);
        if (strcmp(err.pointer, cases[i].pointer) != 0)
            fail_msg("%s: got \"%s\", expected \"%s\"", cases[i].text, err.pointer,
                     cases[i].pointer);
    }
}

static void every_truncation_of_a_request_is_refused(void **state)
{
    static const char text[] = "{\"rays\":[{\"origin\":[1,2.5,-3e2],\"direction\":[0,0,-1],"
                               "\"note\":\"\\u00e9 \xc3\xa9\"}],\"mode\":\"any\"}";
    struct err err;

    (void)state;
    assert_int_equal(check_exact(text, sizeof text - 1, &err), ERR_OK);
    for (size_t length = 0; length < sizeof text - 1; length++)
        if (check_exact(text, length, &err) == ERR_OK)
            fail_msg("accepted when cut after %zu bytes", length);
}

static void too_many_values_are_refused_with_limit_and_count(void **state)
{
    size_t values = json_limits_default.values_max; /* and the array itself */
    char *text = malloc(2 * values + 2);
    struct err err = {.code = ERR_OK};

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < values; i++)
        memcpy(text + 2 * i, i == 0 ? "[0" : ",0", 2);
    text[2 * values] = ']';
    assert_int_equal(json_check(text, 2 * values + 1, &json_limits_default, &err), ERR_TOO_LARGE);
    assert_true(err.has_limit);
    assert_int_equal((int)err.limit, json_limits_default.values_max);
    /* one value less fits */
    text[2 * values - 2] = ']';
    assert_int_equal(json_check(text, 2 * values - 1, &json_limits_default, &err), ERR_OK);
    free(text);
}

static void as_deep_as_the_limit_says_and_no_deeper(void **state)
{
    static const size_t depths[] = {JSON_DEPTH_LEAST, 32, JSON_DEPTH_MOST};
    char text[2 * JSON_DEPTH_MOST + 2];

    (void)state;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        struct json_limits limits = {depths[i], 1000};
        struct err err = {.code = ERR_OK};
        cJSON *json = NULL;
        size_t n = depths[i];

        memset(text, '[', n);
        memset(text + n, ']', n);
        assert_int_equal(json_parse(text, 2 * n, &limits, &json, &err), ERR_OK);
        cJSON_Delete(json);
        memset(text, '[', n + 1);
        memset(text + n + 1, ']', n + 1);
        assert_int_equal(json_check(text, 2 * n + 2, &limits, &err), ERR_BAD_JSON);
        assert_true(err.has_limit && err.limit == (double)n && err.got == (double)n + 1);
    }
}

static void changed_bytes_never_pass_what_the_parser_refuses(void **state)
{
    static const char text[] = "{\"a\":[1,2.5,-3e2,\"x\\n\\u00e9\",null,true],\"b\":{\"c\":false}}";
    static const char pool[] = "{}[],:\"0123456789.eE+-\\ \n\tunltrfas\xc3\xa9";
    struct random random = {20260101};
    size_t passed = 0;

    (void)state;
    print_message("seed 20260101\n");
    for (int round = 0; round < 50000; round++) {
        char changed[sizeof text - 1];
        struct err err = {.code = ERR_OK};
        cJSON *json = NULL;

        memcpy(changed, text, sizeof changed);
        for (uint32_t n = 1 + random_below(&random, 3); n > 0; n--)
            changed[random_below(&random, sizeof changed)] =
                pool[random_below(&random, sizeof pool - 1)];
        if (check_exact(changed, sizeof changed, &err) != ERR_OK)
            continue;
        passed++;
        if (json_parse(changed, sizeof changed, &json_limits_default, &json, &err) != ERR_OK)
            fail_msg("passed the check, not the parser: %.*s", (int)sizeof changed, changed);
        cJSON_Delete(json);
    }
    assert_true(passed > 1000);
}

static void the_known_minefield_is_crossed(void **state)
{
    size_t cases[3] = {0};

    (void)state;
    for (size_t i = 0; i < JSON_SUITE_CASES; i++) {
        const struct json_case *c = &json_suite[i];
        struct err err = {.code = ERR_OK};
        bool is_json = check_exact(c->text, c->length, &err) == ERR_OK;
        cJSON *json = NULL;

        cases[c->verdict]++;
        if (c->verdict != JSON_I && is_json != (c->verdict == JSON_Y))
            fail_msg("%s: %s", c->name, is_json ? "accepted" : err.msg);
        if ((json_parse(c->text, c->length, &json_limits_default, &json, &err) == ERR_OK) !=
            is_json)
            fail_msg("%s: the check and the parser disagree", c->name);
        if (is_json)
            cJSON_Delete(json);
    }
    print_message("%zu accepted, %zu refused, %zu as we like\n", cases[JSON_Y], cases[JSON_N],
                  cases[JSON_I]);
    assert_true(cases[JSON_Y] >= 80 && cases[JSON_N] >= 180 && cases[JSON_I] >= 33);
}

/* ---- random texts ---------------------------------------------------------------------------- */

struct long_text {
    char bytes[1 << 16];
    size_t length;
};

static void add(struct long_text *text, const char *piece)
{
    size_t length = strlen(piece);

    assert_true(text->length + length < sizeof text->bytes);
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
}

/* A code point, often a power of two, as \u; a pair of surrogates when it is beyond 16 bits. */
static void add_escape(struct long_text *text, struct random *random)
{
    unsigned code = 2u << random_below(random, 20);
    char escape[16];

    if (random_below(random, 4) != 0)
        code = 1 + random_below(random, code);
    if (code > 0xffff)
        snprintf(escape, sizeof escape, "\\u%04x\\u%04X", 0xd800 + ((code - 0x10000) >> 10),
                 0xdc00 + (code & 0x3ff));
    else
        snprintf(escape, sizeof escape, "\\u%04X", code >> 11 == 0xd800 >> 11 ? 0xd7ff : code);
    add(text, escape);
}

static void add_string(struct long_text *text, struct random *random)
{
    static const char *const pieces[] = {"a",   "bfu", "/",   "~",   "{",    "]",    ",",
                                         ":",   "é",   "日",  "😀",   "\x7f", "\\\"", "\\\\",
                                         "\\/", "\\b", "\\f", "\\n", "\\r",  "\\t"};

    add(text, "\"");
    for (uint32_t n = random_below(random, 6); n > 0; n--) {
        if (random_below(random, 3) == 0)
            add_escape(text, random);
        else
            add(text, pieces[random_below(random, sizeof pieces / sizeof *pieces)]);
    }
    add(text, "\"");
}

static void add_number(struct long_text *text, struct random *random)
{
    static const char *const formats[] = {"%.17g", "%.0f", "%.3f", "%.6e", "%.25e", "%E"};
    char number[JSON_NUMBER_BYTES_MAX + 1];
    double size = random_in(random, -20, random_below(random, 8) == 0 ? 308 : 25);

    snprintf(number, sizeof number, formats[random_below(random, 6)],
             random_in(random, -1, 1) * pow(10, size));
    add(text, strlen(number) < JSON_NUMBER_BYTES_MAX ? number : "-0");
}

static void add_value(struct long_text *text, struct random *random, int depth)
{
    static const char *const words[] = {"null", "true", "false", "0", "-0", "-0.0e-7"};
    static const char *const spaces[] = {"", "", "", " ", "\n\t", "\r "};
    uint32_t kind = random_below(random, depth > 0 ? 6 : 3);
    bool is_object = kind == 5;

    add(text, spaces[random_below(random, 6)]);
    if (kind == 0)
        add(text, words[random_below(random, 6)]);
    else if (kind == 1)
        add_number(text, random);
    else if (kind == 2)
        add_string(text, random);
    if (kind > 2) {
        add(text, is_object ? "{" : "[");
        for (uint32_t i = 0, n = random_below(random, 7); i < n; i++) {
            add(text, i > 0 ? "," : "");
            if (is_object) {
                add_string(text, random);
                add(text, ":");
            }
            add_value(text, random, depth - 1);
        }
        add(text, is_object ? "}" : "]");
    }
    add(text, spaces[random_below(random, 6)]);
}

/* cJSON is the oracle, in json_tape_check. */
static void trees_of_random_texts_are_those_of_the_parser(void **state)
{
    enum { ROUNDS = 5000 };
    struct random random = {20260102};
    struct long_text text;

    (void)state;
    print_message("seed 20260102\n");
    for (int round = 0; round < ROUNDS; round++) {
        text.length = 0;
        add_value(&text, &random, 6);
        if (!json_tape_check(text.bytes, text.length))
            fail_msg("refused: %.*s", (int)text.length, text.bytes);
    }
}

/* Growing, and no further than the limits say. */
static void a_tape_is_bounded_by_the_values(void **state)
{
    static const char member[] = "\"\":[]";
    enum { MEMBERS = 20000 };
    struct json_limits limits = {8, 2 * MEMBERS + 1};
    struct json_tape tape = {NULL, NULL, 0, 0};
    struct err err = {.code = ERR_OK};
    char *text = malloc(MEMBERS * sizeof member + 1);
    size_t length = 0;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < MEMBERS; i++) {
        text[length++] = i == 0 ? '{' : ',';
        memcpy(text + length, member, sizeof member - 1);
        length += sizeof member - 1;
    }
    text[length++] = '}';
    assert_int_equal(json_scan(text, length, &limits, &tape, &err), ERR_OK);
    assert_int_equal(tape.count, 2 * MEMBERS + 1); /* the root; names and values */
    assert_int_equal(tape.tokens[0].count, MEMBERS);
    assert_int_equal(tape.tokens[0].next, tape.count);
    assert_true(tape.capacity <= 2 * tape.count);
    free(tape.tokens);
    tape = (struct json_tape){NULL, NULL, 0, 0};
    limits.values_max = 1000;
    assert_int_equal(json_scan(text, length, &limits, &tape, &err), ERR_TOO_LARGE);
    assert_true(tape.count <= 2 * limits.values_max);
    free(tape.tokens);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_texts_are_accepted_and_parsed),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_offset),
        cmocka_unit_test(the_offset_is_that_of_the_fault),
        cmocka_unit_test(the_pointer_is_that_of_the_value_at_fault),
        cmocka_unit_test(every_truncation_of_a_request_is_refused),
        cmocka_unit_test(too_many_values_are_refused_with_limit_and_count),
        cmocka_unit_test(as_deep_as_the_limit_says_and_no_deeper),
        cmocka_unit_test(the_known_minefield_is_crossed),
        cmocka_unit_test(trees_of_random_texts_are_those_of_the_parser),
        cmocka_unit_test(a_tape_is_bounded_by_the_values),
        cmocka_unit_test(changed_bytes_never_pass_what_the_parser_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
