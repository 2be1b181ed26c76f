/*
 * The JSON writer and its numbers: what is written reads back as the same bits, and is as short as
 * it can be.
 */
#include "base/text/json_number.h"
#include "json/json_buffer.h"
#include "json/json_write.h"
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

enum { SEED = 754, NUMBERS = 100000, BUFFER_BYTES = 65536 };

/* A sink that gives little room at a time, and fails when it is full. */
struct buffer {
    char bytes[BUFFER_BYTES];
    size_t used, capacity;
};

static char *buffer_reserve(void *to, size_t bytes)
{
    struct buffer *buffer = to;

    return buffer->used + bytes <= buffer->capacity ? buffer->bytes + buffer->used : NULL;
}

static void buffer_advance(void *to, size_t bytes)
{
    struct buffer *buffer = to;

    buffer->used += bytes;
}

static void writer_open(struct json_writer *w, struct buffer *buffer, size_t capacity)
{
    buffer->used = 0;
    buffer->capacity = capacity;
    json_init(w, (struct json_sink){buffer, buffer_reserve, buffer_advance});
}

static double number_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of_number(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void assert_round_trip(double value)
{
    char text[JSON_NUMBER_TEXT_MAX + 1];
    struct err err = {.code = ERR_OK};
    size_t length = json_number_text(value, text);

    text[length] = '\0';
    if (bits_of_number(strtod(text, NULL)) != bits_of_number(value))
        fail_msg("%.17g was written as %s, which is %.17g", value, text, strtod(text, NULL));
    if (json_check(text, length, &json_limits_default, &err) != ERR_OK)
        fail_msg("%.17g was written as %s: %s", value, text, err.msg);
}

/* How many significant digits the shortest "%e" has that reads back. */
static int shortest_digits(double value)
{
    for (int digits = 1; digits < 17; digits++) {
        char text[40];

        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value)
            return digits;
    }
    return 17;
}

static int digits_of(const char *text, size_t length)
{
    int first = -1, last = -1, n = 0;

    for (size_t i = 0; i < length && text[i] != 'e'; i++) {
        if (text[i] < '0' || text[i] > '9')
            continue;
        n++;
        if (text[i] != '0') {
            first = first < 0 ? n : first;
            last = n;
        }
    }
    return last - first + 1;
}

static void random_numbers_read_back_bit_by_bit(void **state)
{
    struct random random = {SEED};

    (void)state;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < NUMBERS;) {
        double value = number_of_bits(random_bits(&random));

        if (!isfinite(value))
            continue;
        assert_round_trip(value);
        i++;
    }
    for (int i = 0; i < NUMBERS; i++) {
        assert_round_trip(random_in(&random, -10000, 10000));
        assert_round_trip((double)(float)random_in(&random, -10000, 10000));
    }
}

static void no_shorter_text_reads_back(void **state)
{
    struct random random = {SEED + 1};

    (void)state;
    print_message("seed %d\n", SEED + 1);
    for (int i = 0; i < 20000; i++) {
        double value = i % 2 ? random_in(&random, -1e4, 1e4) : number_of_bits(random_bits(&random));
        char text[JSON_NUMBER_TEXT_MAX];
        size_t length;

        if (!isfinite(value) || value == 0)
            continue;
        length = json_number_text(value, text);
        if (digits_of(text, length) > shortest_digits(value))
            fail_msg("%.17g was written as %.*s with %d digits, %d are enough", value, (int)length,
                     text, digits_of(text, length), shortest_digits(value));
    }
}

static void numbers_at_the_edges_read_back(void **state)
{
    (void)state;
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        double power = ldexp(1, exponent);

        assert_round_trip(power);
        assert_round_trip(-power);
        assert_round_trip(nextafter(power, INFINITY));
        assert_round_trip(nextafter(power, 0));
    }
    for (int exponent = -323; exponent <= 308; exponent++) {
        char text[16];

        snprintf(text, sizeof text, "1e%d", exponent);
        assert_round_trip(strtod(text, NULL));
        assert_round_trip(nextafter(strtod(text, NULL), 0));
    }
    assert_round_trip(1.7976931348623157e308);
    assert_round_trip(2.2250738585072014e-308);
}

static void numbers_have_their_plain_forms(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0.0"},
        {1, "1"},
        {-1, "-1"},
        {100, "100"},
        {0.1, "0.1"},
        {0.5, "0.5"},
        {123.456, "123.456"},
        {1e21, "1e21"},
        {1e20, "100000000000000000000"},
        {1e-5, "0.00001"},
        {1e-7, "1e-7"},
        {5e-324, "5e-324"},
        {1.5e300, "1.5e300"},
        {-2.5e-9, "-2.5e-9"},
        {9007199254740993.0, "9007199254740992"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[JSON_NUMBER_TEXT_MAX + 1];

        text[json_number_text(cases[i].value, text)] = '\0';
        assert_string_equal(text, cases[i].text);
    }
}

static void commas_stand_between_values_only(void **state)
{
    static struct buffer buffer;
    struct json_writer w;

    (void)state;
    writer_open(&w, &buffer, BUFFER_BYTES);
    json_begin_object(&w);
    json_key(&w, "a");
    json_begin_array(&w);
    json_begin_array(&w);
    json_end_array(&w);
    json_integer(&w, 18446744073709551615u);
    json_null(&w);
    json_begin_object(&w);
    json_end_object(&w);
    json_end_array(&w);
    json_key(&w, "b");
    json_boolean(&w, true);
    json_key(&w, "c");
    json_vec3(&w, (struct vec3){1, NAN, -2.5});
    json_key(&w, "d");
    json_number(&w, INFINITY);
    json_end_object(&w);
    assert_true(json_finish(&w));
    buffer.bytes[buffer.used] = '\0';
    assert_string_equal(buffer.bytes, "{\"a\":[[],18446744073709551615,null,{}],\"b\":true,"
                                      "\"c\":[1,null,-2.5],\"d\":null}");
}

static void members_have_a_key_and_a_value(void **state)
{
    static struct buffer buffer;
    static const char expected[] =
        "{\"number\":0.5,\"none\":null,\"integer\":18446744073709551615,\"is\":false,\"text\":"
        "\"a\","
        "\"empty\":null,\"absent\":null,\"there\":0,\"at\":[1,null,3],\"numbers\":[1,-2],"
        "\"object\":{\"array\":[]}}";
    struct json_writer w;

    (void)state;
    writer_open(&w, &buffer, BUFFER_BYTES);
    json_begin_object(&w);
    json_put_number(&w, "number", 0.5);
    json_put_null(&w, "none");
    json_put_integer(&w, "integer", UINT64_MAX);
    json_put_boolean(&w, "is", false);
    json_put_string(&w, "text", "a");
    json_put_string_or_null(&w, "empty", "");
    json_put_integer_or_null(&w, "absent", false, 7);
    json_put_integer_or_null(&w, "there", true, 0);
    json_put_vec3(&w, "at", (struct vec3){1, NAN, 3});
    json_put_numbers(&w, "numbers", (double[]){1, -2}, 2);
    json_put_object(&w, "object");
    json_put_array(&w, "array");
    json_end_array(&w);
    json_end_object(&w);
    json_end_object(&w);
    assert_true(json_finish(&w));
    buffer.bytes[buffer.used] = '\0';
    assert_string_equal(buffer.bytes, expected);
}

static void strings_are_escaped(void **state)
{
    static struct buffer buffer;
    struct json_writer w;
    struct err err = {.code = ERR_OK};

    (void)state;
    writer_open(&w, &buffer, BUFFER_BYTES);
    json_string(&w, "a\"b\\c\b\t\n\f\r\x01\x1f\x7f/\xc3\xa9");
    assert_true(json_finish(&w));
    assert_int_equal(json_check(buffer.bytes, buffer.used, &json_limits_default, &err), ERR_OK);
    buffer.bytes[buffer.used] = '\0';
    assert_string_equal(buffer.bytes,
                        "\"a\\\"b\\\\c\\b\\t\\n\\f\\r\\u0001\\u001f\\u007f/\xc3\xa9\"");
}

static void a_full_sink_fails_the_whole_text(void **state)
{
    static struct buffer buffer;
    struct json_writer w;

    (void)state;
    writer_open(&w, &buffer, 10000); /* room for one piece, not for two */
    json_begin_array(&w);
    for (int i = 0; i < 10000; i++)
        json_number(&w, i);
    json_end_array(&w);
    assert_false(json_finish(&w));
    assert_true(buffer.used <= 10000);
}

static void long_texts_come_whole_through_small_room(void **state)
{
    static struct buffer buffer;
    struct json_writer w;
    struct err err = {.code = ERR_OK};

    (void)state;
    writer_open(&w, &buffer, BUFFER_BYTES);
    json_begin_array(&w);
    for (int i = 0; i < 9000; i++)
        json_number(&w, i);
    json_end_array(&w);
    assert_true(json_finish(&w));
    assert_true(buffer.used > 40000);
    assert_int_equal(json_check(buffer.bytes, buffer.used, &json_limits_default, &err), ERR_OK);
    assert_memory_equal(buffer.bytes + buffer.used - 11, ",8998,8999]", 11);
}

/* 9,000 numbers, 43,891 bytes, into a buffer; the writer asks for 8,192 bytes at a time. */
static bool write_numbers(struct json_buffer *buffer)
{
    struct json_writer w;

    json_init(&w, json_sink_of_buffer(buffer));
    json_begin_array(&w);
    for (int i = 0; i < 9000; i++)
        json_number(&w, i);
    json_end_array(&w);
    return json_finish(&w);
}

static void a_buffer_grows_up_to_its_bound(void **state)
{
    struct json_buffer buffer = {.size_max = 60000};

    (void)state;
    assert_true(write_numbers(&buffer));
    assert_int_equal(buffer.length, 43891);
    assert_memory_equal(buffer.at + buffer.length - 11, ",8998,8999]", 11);
    assert_false(write_numbers(&buffer)); /* after the first text */
    assert_int_equal(buffer.size, 60000);
    assert_true(buffer.length <= 60000);
    free(buffer.at);
}

static void a_buffer_of_fixed_size_does_not_grow(void **state)
{
    static char room[10000];
    struct json_buffer buffer = {.at = room, .size = sizeof room, .size_max = sizeof room};

    (void)state;
    assert_false(write_numbers(&buffer));
    assert_ptr_equal(buffer.at, room);
    assert_true(buffer.length <= sizeof room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_read_back_bit_by_bit),
        cmocka_unit_test(no_shorter_text_reads_back),
        cmocka_unit_test(numbers_at_the_edges_read_back),
        cmocka_unit_test(numbers_have_their_plain_forms),
        cmocka_unit_test(commas_stand_between_values_only),
        cmocka_unit_test(members_have_a_key_and_a_value),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(a_full_sink_fails_the_whole_text),
        cmocka_unit_test(long_texts_come_whole_through_small_room),
        cmocka_unit_test(a_buffer_grows_up_to_its_bound),
        cmocka_unit_test(a_buffer_of_fixed_size_does_not_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
