/*
 * Log lines as they arrive on standard error, which each test turns into a pipe.
 */
#include "base/text/json_text.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int saved_stderr, pipe_out;

static void catch_stderr(void)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    pipe_out = ends[0];
}

/* What was written since catch_stderr. */
static void release_stderr(char *out, size_t size)
{
    ssize_t got;

    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    got = read(pipe_out, out, size - 1);
    close(pipe_out);
    out[got > 0 ? got : 0] = '\0';
}

static void a_text_line_has_time_level_id_and_message(void **state)
{
    char line[512];

    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    catch_stderr();
    log_write(LOG_WARN, "0123456789abcdef", "answer %d", 42);
    release_stderr(line, sizeof line);
    assert_int_equal(line[10], 'T');
    assert_int_equal(line[23], 'Z');
    assert_string_equal(line + 24, " warn  [0123456789abcdef] answer 42\n");
}

static void a_json_line_has_the_same_as_members(void **state)
{
    char line[512];

    (void)state;
    log_init(LOG_INFO, LOG_JSON);
    catch_stderr();
    log_write(LOG_ERROR, "0123456789abcdef", "a \"%s\"", "b\n\x01");
    release_stderr(line, sizeof line);
    assert_memory_equal(line, "{\"time\":\"2", 10);
    assert_string_equal(strstr(line, "\"level\""),
                        "\"level\":\"error\",\"request_id\":\"0123456789abcdef\","
                        "\"message\":\"a \\\"b\\n\\u0001\\\"\"}\n");
    catch_stderr();
    log_info("no id");
    release_stderr(line, sizeof line);
    assert_string_equal(strstr(line, "\"level\""), "\"level\":\"info\",\"message\":\"no id\"}\n");
}

static void less_than_the_least_level_is_dropped(void **state)
{
    char line[512];

    (void)state;
    log_init(LOG_WARN, LOG_TEXT);
    catch_stderr();
    log_info("dropped");
    release_stderr(line, sizeof line);
    assert_string_equal(line, "");
}

static void a_message_can_neither_forge_a_line_nor_overrun_one(void **state)
{
    char line[16384], long_text[8000];
    size_t length;

    (void)state;
    memset(long_text, '\x1b', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    log_init(LOG_INFO, LOG_TEXT);
    catch_stderr();
    log_info("a\nb %s", long_text);
    release_stderr(line, sizeof line);
    length = strlen(line);
    assert_true(length > 100 && length < 4096);
    assert_ptr_equal(strchr(line, '\n'), line + length - 1);
    assert_null(strchr(line, '\x1b'));
}

/* Of a reader of standard error that has stopped. */
static void what_does_not_fit_is_dropped_and_counted(void **state)
{
    enum { LINES = 2000, CHUNK = 1 << 17 };
    static char text[CHUNK], rest[CHUNK];
    uint64_t before = log_dropped(), missing;
    char want[96];

    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    catch_stderr();
    for (int i = 0; i < LINES; i++)
        log_info("%0100d", i);
    missing = log_dropped() - before;
    assert_true(missing > 0 && missing < LINES);
    text[read(pipe_out, text, sizeof text - 1)] = '\0';
    log_info("again");
    release_stderr(rest, sizeof rest);
    assert_int_equal(log_dropped() - before, missing);
    snprintf(want, sizeof want, "%llu log lines were dropped", (unsigned long long)missing);
    assert_non_null(strstr(rest, want));
    assert_true(strstr(rest, want) < strstr(rest, "again"));
    for (char *at = text, *end; *at; at = end + 1) { /* only whole lines */
        end = strchr(at, '\n');
        assert_non_null(end);
        assert_int_equal(end - at, 24 + strlen(" info  ") + 100);
    }
}

static void json_text_is_escaped_and_always_utf8(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"\"\\\b\f\n\r\t/", "\\\"\\\\\\b\\f\\n\\r\\t/"},
        {"\x01\x1f\x7f", "\\u0001\\u001f\\u007f"},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8f\x94", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8f\x94"},
        {"\xff\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    char out[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = json_text_escape(out, sizeof out, cases[i].in, strlen(cases[i].in));

        assert_string_equal(out, cases[i].out);
        assert_int_equal(length, strlen(cases[i].out));
    }
}

static void json_text_is_cut_between_characters(void **state)
{
    static const struct {
        size_t size;
        const char *out;
    } cases[] = {{1, ""},          {2, "a"},         {3, "a"},
                 {4, "a\xc3\xa9"}, {9, "a\xc3\xa9"}, {10, "a\xc3\xa9\\u0001"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[16];

        json_text_escape(out, cases[i].size, "a\xc3\xa9\x01", 4);
        assert_string_equal(out, cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_line_has_time_level_id_and_message),
        cmocka_unit_test(a_json_line_has_the_same_as_members),
        cmocka_unit_test(less_than_the_least_level_is_dropped),
        cmocka_unit_test(a_message_can_neither_forge_a_line_nor_overrun_one),
        cmocka_unit_test(what_does_not_fit_is_dropped_and_counted),
        cmocka_unit_test(json_text_is_escaped_and_always_utf8),
        cmocka_unit_test(json_text_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
