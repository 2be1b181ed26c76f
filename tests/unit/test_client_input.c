/*
 * Command line and standard input of the client: options among words, rows of numbers, and every
 * fault named by its place.
 */
#include "client/args.h"
#include "client/input.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- options ------------------------------------------------------------------------------ */

struct parsed {
    const char *url, *fov;
    bool is_json;
    const char *words[8];
    size_t word_count;
    enum args_step end;
    struct err err;
};

static void parse(char **argv, int argc, struct parsed *out)
{
    const struct args_option common[] = {{.name = "url", .text = &out->url},
                                         {.name = "json", .flag = &out->is_json},
                                         {.name = NULL}};
    const struct args_option own[] = {{.name = "fov", .text = &out->fov}, {.name = NULL}};
    struct args args = {.argv = argv, .argc = argc};
    const char *word;

    while ((out->end = args_next(&args, own, common, &word, &out->err)) == ARGS_WORD)
        out->words[out->word_count++] = word;
}

static void options_may_stand_anywhere_among_words(void **state)
{
    char *argv[] = {"--json", "peaks", "--url=http://a", "1,2", "--fov", "60", "3,4"};
    struct parsed out = {0};

    (void)state;
    parse(argv, LENGTH(argv), &out);
    assert_int_equal(out.end, ARGS_END);
    assert_int_equal(out.word_count, 3);
    assert_string_equal(out.words[0], "peaks");
    assert_string_equal(out.words[2], "3,4");
    assert_string_equal(out.url, "http://a");
    assert_string_equal(out.fov, "60");
    assert_true(out.is_json);
}

static void negative_numbers_are_words(void **state)
{
    char *argv[] = {"-5,3", "-.5,2", "-"};
    struct parsed out = {0};

    (void)state;
    parse(argv, LENGTH(argv), &out);
    assert_int_equal(out.end, ARGS_END);
    assert_int_equal(out.word_count, 3);
}

static void an_option_takes_the_next_argument_whatever_it_looks_like(void **state)
{
    char *argv[] = {"--fov", "-60", "--url", "--json"};
    struct parsed out = {0};

    (void)state;
    parse(argv, LENGTH(argv), &out);
    assert_int_equal(out.end, ARGS_END);
    assert_string_equal(out.fov, "-60");
    assert_string_equal(out.url, "--json");
    assert_false(out.is_json);
}

static void two_dashes_end_the_options(void **state)
{
    char *argv[] = {"--", "--json", "-x"};
    struct parsed out = {0};

    (void)state;
    parse(argv, LENGTH(argv), &out);
    assert_int_equal(out.word_count, 2);
    assert_false(out.is_json);
}

static void wrong_options_are_named(void **state)
{
    static const struct {
        const char *argument, *message;
    } cases[] = {{"--fo", "unknown option --fo"},  {"--fovx", "unknown option --fovx"},
                 {"-x", "unknown option -x"},      {"--json=yes", "--json takes no value"},
                 {"--fov", "--fov needs a value"}, {"-json", "unknown option -json"},
                 {"--=3", "unknown option --=3"}};

    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char text[32], *argv[] = {text};
        struct parsed out = {0};

        snprintf(text, sizeof(text), "%s", cases[i].argument);
        parse(argv, 1, &out);
        if (out.end != ARGS_FAULT || strcmp(out.err.msg, cases[i].message) != 0)
            fail_msg("%s: step %d, '%s', expected '%s'", text, (int)out.end, out.err.msg,
                     cases[i].message);
    }
}

/* ---- rows --------------------------------------------------------------------------------- */

static FILE *stream_of(const char *text, size_t length)
{
    FILE *stream = tmpfile();

    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, length, stream), length);
    rewind(stream);
    return stream;
}

static void a_stream_has_one_row_a_line(void **state)
{
    static const char text[] = "1,2\n\n# comment\n  3 4\r\n[5,6]\n-7,8";
    static const double expected[][2] = {{1, 2}, {3, 4}, {5, 6}, {-7, 8}};
    FILE *stream = stream_of(text, strlen(text));
    struct input input = {.shape = &input_ground_points, .stream = stream};
    struct input_row row;
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < LENGTH(expected); i++) {
        if (input_next(&input, &row, &err) != INPUT_ROW)
            fail_msg("row %zu: %s", i, err.msg);
        if (row.count != 2 || row.values[0] != expected[i][0] || row.values[1] != expected[i][1])
            fail_msg("row %zu: %g %g, expected %g %g", i, row.values[0], row.values[1],
                     expected[i][0], expected[i][1]);
    }
    assert_int_equal(input_next(&input, &row, &err), INPUT_END);
    fclose(stream);
}

static void a_bad_line_is_named_by_its_number(void **state)
{
    static const struct {
        const char *text;
        size_t length;
        const char *part;
    } cases[] = {
        {"1,2\n1\n", 6, "line 2: '1': needs exactly 2 numbers"},
        {"1,2\n\n#x\nnan,2\n", 13, "line 4: 'nan,2': not a finite"},
        {"1,2,3\n", 6, "line 1: '1,2,3': needs exactly 2 numbers"},
        {"1,2\0,3\n", 7, "line 1: a NUL byte"},
        {"1,2}\n", 5, "line 1"},
        {"[1,2\n", 5, "line 1"},
    };

    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        FILE *stream = stream_of(cases[i].text, cases[i].length);
        struct input input = {.shape = &input_ground_points, .stream = stream};
        struct input_row row;
        struct err err = {0};
        enum input_step step;

        while ((step = input_next(&input, &row, &err)) == INPUT_ROW)
            ;
        fclose(stream);
        if (step != INPUT_FAULT || !strstr(err.msg, cases[i].part))
            fail_msg("case %zu: step %d, '%s', expected '%s'", i, (int)step, err.msg,
                     cases[i].part);
    }
}

static void a_line_without_end_is_refused_before_it_fills_the_memory(void **state)
{
    char *text = malloc(1 << 20);
    struct input_row row;
    struct err err = {0};
    struct input input = {.shape = &input_ground_points};

    (void)state;
    assert_non_null(text);
    memset(text, '1', 1 << 20);
    input.stream = stream_of(text, 1 << 20);
    assert_int_equal(input_next(&input, &row, &err), INPUT_FAULT);
    assert_non_null(strstr(err.msg, "longer than 4095 bytes"));
    assert_true(ftell(input.stream) <= 2 * INPUT_LINE_BYTES_MAX);
    fclose(input.stream);
    free(text);
}

static void a_row_may_be_made_of_several_words(void **state)
{
    static const char *const words[] = {"1,2,3", "0,0,-1", "4,5,6", "0,1,0"};
    struct input input = {
        .shape = &input_rays, .words = words, .word_count = LENGTH(words), .words_per_row = 2};
    struct input_row row;
    struct err err = {0};

    (void)state;
    assert_int_equal(input_next(&input, &row, &err), INPUT_ROW);
    assert_int_equal(row.count, 6);
    assert_true(row.values[2] == 3 && row.values[5] == -1);
    assert_int_equal(input_next(&input, &row, &err), INPUT_ROW);
    assert_int_equal(input_next(&input, &row, &err), INPUT_END);
}

static void a_row_that_lacks_a_word_is_refused(void **state)
{
    static const char *const words[] = {"1,2,3", "0,0,-1", "4,5,6"};
    struct input input = {
        .shape = &input_segments, .words = words, .word_count = LENGTH(words), .words_per_row = 2};
    struct input_row row;
    struct err err = {0};

    (void)state;
    assert_int_equal(input_next(&input, &row, &err), INPUT_ROW);
    assert_int_equal(input_next(&input, &row, &err), INPUT_FAULT);
    assert_non_null(strstr(err.msg, "'4,5,6'"));
}

/* Reads all rows of a text; the last step. */
static enum input_step read_all(const struct input_shape *shape, const char *text,
                                struct input_row *rows, size_t *count, struct err *err)
{
    FILE *stream = stream_of(text, strlen(text));
    struct input input = {.shape = shape, .stream = stream};
    enum input_step step;

    *count = 0;
    while ((step = input_next(&input, &rows[*count], err)) == INPUT_ROW)
        (*count)++;
    fclose(stream);
    return step;
}

static void a_header_says_which_columns_are_meant(void **state)
{
    static const char *const texts[] = {
        "x,y\n1,2\n3,4\n",
        "\xef\xbb\xbfname,Y,x\r\na,2,1\r\n\"b, \"\"c\"\"\",4,3\r\n",
        "# made by hand\n\n y ; info ; x \n2;q;1\n 4 ;; 3 \n",
        "y\tx\n2\t1\n4\t3\n",
        "\"x\",\"y\"\n\"1\",\"2\"\n3,4",
    };

    (void)state;
    for (size_t i = 0; i < LENGTH(texts); i++) {
        struct input_row rows[4];
        struct err err = {0};
        size_t count;

        if (read_all(&input_ground_points, texts[i], rows, &count, &err) != INPUT_END || count != 2)
            fail_msg("case %zu: %zu rows, %s", i, count, err.msg);
        if (rows[0].values[0] != 1 || rows[0].values[1] != 2 || rows[1].values[0] != 3 ||
            rows[1].values[1] != 4)
            fail_msg("case %zu: %g %g, %g %g", i, rows[0].values[0], rows[0].values[1],
                     rows[1].values[0], rows[1].values[1]);
    }
}

static void an_object_has_its_numbers_by_name_or_in_arrays(void **state)
{
    struct input_row rows[4];
    struct err err = {0};
    size_t count;

    (void)state;
    assert_int_equal(
        read_all(&input_rays,
                 "{\"origin\":[1,2,3],\"direction\":[0,0,-1]}\n"
                 "{\"direction\":[4,5,6],\"origin\":[1,2,3],\"t_max\":7}\n"
                 "{\"ox\":1,\"oy\":2,\"oz\":3,\"dx\":4,\"dy\":5,\"dz\":6,\"t_max\":null}\n",
                 rows, &count, &err),
        INPUT_END);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].count, 6);
    assert_true(rows[0].values[2] == 3 && rows[0].values[5] == -1);
    assert_int_equal(rows[1].count, 7);
    assert_true(rows[1].values[3] == 4 && rows[1].values[6] == 7);
    assert_int_equal(rows[2].count, 6);
    assert_true(rows[2].values[5] == 6);
    /* an answer of kota ray is a question of kota height */
    assert_int_equal(read_all(&input_ground_points,
                              "{\"status\":\"hit\",\"t\":1,\"point\":[1.5,2.5,3.5]}\n", rows,
                              &count, &err),
                     INPUT_END);
    assert_true(count == 1 && rows[0].values[1] == 2.5);
}

static void what_is_wrong_below_a_header_or_in_an_object_is_named(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"x,z\n1,2\n", "line 1: 'x,z': no numbers, and no header with a column y"},
        {"hello\n", "line 1: 'hello': no numbers, and no header with a column x"},
        {"x,y,x\n", "the column x is there twice"},
        {"x,y\n1\n", "line 2: 1 fields, and the header has 2"},
        {"x,y\n1,2,3\n", "line 2: 3 fields, and the header has 2"},
        {"x,y\n1,\n", "line 2: '': not a finite decimal number"},
        {"x,y\n1,nan\n", "line 2: 'nan': not a finite decimal number"},
        {"x,y\n1,\"2\n", "line 2: a quote is not closed"},
        {"x,y\n1,2 3\n", "line 2: '2 3': needs exactly 1 number"},
        {"{\"x\":1}\n", "line 1: \"y\" is missing"},
        {"{\"x\":1,\"y\":\"2\"}\n", "line 1: \"y\" is no finite number"},
        {"{\"x\":1,\"y\":1e999}\n", "line 1: \"y\" is no finite number"},
        {"{\"point\":[1]}\n", "\"point\" is no array of 2 numbers"},
        {"{\"point\":[1,null,3]}\n", "\"point\" is no finite number"},
        {"{\"x\":1,\"y\":2} 3\n", "is no JSON object"},
        {"{\n", "line 1: '{' is no JSON object"},
    };

    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct input_row rows[4];
        struct err err = {0};
        size_t count;

        if (read_all(&input_ground_points, cases[i].text, rows, &count, &err) != INPUT_FAULT ||
            !strstr(err.msg, cases[i].part))
            fail_msg("case %zu: '%s', expected '%s'", i, err.msg, cases[i].part);
    }
}

static void an_option_that_repeats_keeps_all_its_values(void **state)
{
    struct args_list bodies = {.count = 0};
    const struct args_option own[] = {{.name = "body", .list = &bodies}, {.name = NULL}};
    char *argv[2 * ARGS_LIST_MAX + 2], name[] = "--body", value[] = "b@1,2,3";
    struct args args = {.argv = argv, .argc = 2 * ARGS_LIST_MAX};
    struct err err = {0};
    const char *word;

    (void)state;
    for (size_t i = 0; i <= ARGS_LIST_MAX; i++) {
        argv[2 * i] = name;
        argv[2 * i + 1] = value;
    }
    assert_int_equal(args_next(&args, own, NULL, &word, &err), ARGS_END);
    assert_int_equal(bodies.count, ARGS_LIST_MAX);
    args.argc += 2;
    assert_int_equal(args_next(&args, own, NULL, &word, &err), ARGS_FAULT);
    assert_non_null(strstr(err.msg, "--body is given more than 64 times"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_stand_anywhere_among_words),
        cmocka_unit_test(a_header_says_which_columns_are_meant),
        cmocka_unit_test(an_object_has_its_numbers_by_name_or_in_arrays),
        cmocka_unit_test(what_is_wrong_below_a_header_or_in_an_object_is_named),
        cmocka_unit_test(an_option_that_repeats_keeps_all_its_values),
        cmocka_unit_test(negative_numbers_are_words),
        cmocka_unit_test(an_option_takes_the_next_argument_whatever_it_looks_like),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(a_stream_has_one_row_a_line),
        cmocka_unit_test(a_bad_line_is_named_by_its_number),
        cmocka_unit_test(a_line_without_end_is_refused_before_it_fills_the_memory),
        cmocka_unit_test(a_row_may_be_made_of_several_words),
        cmocka_unit_test(a_row_that_lacks_a_word_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
