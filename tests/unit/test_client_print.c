/*
 * The client's output: whole lines, columns that stand below each other, no bit of a number lost,
 * no control character on a terminal.
 */
#include "client/print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text_at;
static size_t text_length;

static FILE *capture(void)
{
    FILE *stream = open_memstream(&text_at, &text_length);

    assert_non_null(stream);
    return stream;
}

/* Ends a capture and compares. */
static void check_captured(FILE *stream, const char *expected)
{
    fclose(stream);
    if (strcmp(text_at, expected) != 0)
        fail_msg("printed:\n%s\nexpected:\n%s", text_at, expected);
    free(text_at);
}

static void a_json_line_keeps_every_bit_and_the_order(void **state)
{
    static const char line[] = "{\"b\":0.1,\"a\":[0.30000000000000004,null,true,-1.5e-300],"
                               "\"c\":{\"d\":\"x\\ny\"},\"e\":1e+300}";
    cJSON *value = cJSON_Parse(line);
    FILE *stream = capture();
    struct err err = {0};
    char expected[256];

    (void)state;
    assert_non_null(value);
    assert_int_equal(print_json_line(stream, value, &err), ERR_OK);
    cJSON_Delete(value);
    snprintf(expected, sizeof(expected), "%s\n", line);
    check_captured(stream, expected);
}

static void columns_stand_below_their_headings(void **state)
{
    static const char *const headings[] = {"ID", "VALUE", "LAST"};
    struct table *table = table_open(headings, 3);
    FILE *stream = capture();
    struct err err = {0};

    (void)state;
    table_text(table, "köta-long");
    table_number(table, 0.1);
    table_value(table, NULL);
    table_text(table, "b");
    table_number(table, 1234.5);
    table_text(table, "end");
    assert_int_equal(table_print(table, stream, &err), ERR_OK);
    table_text(table, "c");
    table_number(table, 1);
    table_text(table, "second chunk");
    assert_int_equal(table_print(table, stream, &err), ERR_OK);
    table_close(table);
    check_captured(stream, "ID         VALUE   LAST\n"
                           "köta-long  0.1     -\n"
                           "b          1234.5  end\n"
                           "c          1       second chunk\n");
}

static void cells_of_json_are_for_people(void **state)
{
    static const struct {
        const char *json, *cell;
    } cases[] = {{"null", "-"},
                 {"true", "yes"},
                 {"false", "no"},
                 {"12.345678901", "12.3456789"},
                 {"[1,2.5,null]", "1, 2.5, -"},
                 {"\"a\\u001b[31mb\\u0007\"", "a?[31mb?"},
                 {"\"a\\u009bb\"", "a??b"},
                 {"\"\\n\"", "?"},
                 {"\"ü\"", "ü"}};
    static const char *const headings[] = {"H"};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct table *table = table_open(headings, 1);
        cJSON *value = cJSON_Parse(cases[i].json);
        FILE *stream = capture();
        struct err err = {0};
        char expected[64];

        assert_non_null(value);
        table_value(table, value);
        cJSON_Delete(value);
        assert_int_equal(table_print(table, stream, &err), ERR_OK);
        table_close(table);
        snprintf(expected, sizeof(expected), "H\n%s\n", cases[i].cell);
        check_captured(stream, expected);
    }
}

static void a_cell_that_is_too_long_is_cut_between_characters(void **state)
{
    static const char *const headings[] = {"H"};
    char long_text[601] = "x";

    (void)state;
    for (size_t i = 1; i + 1 < sizeof(long_text); i += 2)
        memcpy(long_text + i, "\xc3\xbc", 2);
    long_text[599] = '\0';
    for (size_t shift = 0; shift < 2; shift++) {
        struct table *table = table_open(headings, 1);
        cJSON *value = cJSON_CreateString(long_text + shift);
        FILE *stream = capture();
        struct err err = {0};
        size_t length;

        table_value(table, value);
        cJSON_Delete(value);
        assert_int_equal(table_print(table, stream, &err), ERR_OK);
        table_close(table);
        fclose(stream);
        length = strlen(text_at);
        assert_true(length > 150 && length <= 202);
        if ((unsigned char)text_at[length - 2] != 0xbc)
            fail_msg("the last byte is %02x, half a character", (unsigned char)text_at[length - 2]);
        free(text_at);
    }
}

static void members_are_listed_with_nested_names(void **state)
{
    cJSON *value = cJSON_Parse("{\"id\":\"a\",\"hit\":{\"t\":1.5,\"cell\":[1,2]},\"tile\":null}");
    FILE *stream = capture();
    struct err err = {0};

    (void)state;
    assert_int_equal(print_members(stream, value, &err), ERR_OK);
    cJSON_Delete(value);
    check_captured(stream, "id                      a\n"
                           "hit.t                   1.5\n"
                           "hit.cell                1, 2\n"
                           "tile                    -\n");
}

static void a_stream_that_refuses_is_an_error(void **state)
{
    FILE *stream = fopen("/dev/full", "w");
    cJSON *value = cJSON_Parse("[1]");
    struct err err = {0};

    (void)state;
    if (!stream) {
        cJSON_Delete(value);
        print_message("# there is no /dev/full\n");
        skip();
    }
    setvbuf(stream, NULL, _IONBF, 0);
    assert_int_equal(print_json_line(stream, value, &err), ERR_INTERNAL);
    cJSON_Delete(value);
    fclose(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_line_keeps_every_bit_and_the_order),
        cmocka_unit_test(columns_stand_below_their_headings),
        cmocka_unit_test(cells_of_json_are_for_people),
        cmocka_unit_test(a_cell_that_is_too_long_is_cut_between_characters),
        cmocka_unit_test(members_are_listed_with_nested_names),
        cmocka_unit_test(a_stream_that_refuses_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
