/*
 * Server-sent events: the stream's grammar, cut at every byte.
 */
#include "client/lib/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Events as "name|id|data;" behind each other. */
struct seen {
    char text[1024];
    bool is_refusing;
};

static bool take(void *context, const struct sse *sse)
{
    struct seen *seen = context;
    size_t length = strlen(seen->text);

    if (seen->is_refusing)
        return false;
    snprintf(seen->text + length, sizeof seen->text - length, "%s|%s|%s;",
             *sse->name ? sse->name : "message", sse->id, text_string(&sse->data));
    return true;
}

static const struct {
    const char *stream, *events;
} cases[] = {
    {"data: a\n\n", "message||a;"},
    {"event: edit\nid: 7\ndata: {\"x\":1}\n\n", "edit|7|{\"x\":1};"},
    {"event:edit\r\nid:7\r\ndata:x\r\n\r\n", "edit|7|x;"},
    {"id: 7\rdata: x\r\rdata: y\r\r", "message|7|x;message|7|y;"},
    {":comment\n\n:\n\ndata: x\n\n", "message||x;"},
    {"data: a\ndata: b\ndata\n\n", "message||a\nb\n;"},
    {"data:  two blanks\n\n", "message|| two blanks;"},
    {"id: 3\n\ndata: x\n\n", "message|3|x;"},
    {"id: 3\ndata: x\n\nid\ndata: y\n\n", "message|3|x;message||y;"},
    {"event: gone\n\ndata: x\n\n", "message||x;"},
    {"data: half", ""},
    {"data: half\n", ""},
    {"other: x\nnonsense\n\n", ""},
    {"retry: 1500\ndata: x\n\n", "message||x;"},
};

static void streams_are_read_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i].stream);

        for (size_t cut = 0; cut <= length; cut++) {
            struct seen seen = {.text = ""};
            struct sse sse = {.take = take, .context = &seen};
            bool is_too_long;

            assert_true(sse_read(&sse, cases[i].stream, cut, &is_too_long));
            assert_true(sse_read(&sse, cases[i].stream + cut, length - cut, &is_too_long));
            if (strcmp(seen.text, cases[i].events) != 0)
                fail_msg("case %zu cut at %zu: %s, expected %s", i, cut, seen.text,
                         cases[i].events);
            sse_free(&sse);
        }
    }
}

static void byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = {.text = ""};
        struct sse sse = {.take = take, .context = &seen};
        bool is_too_long;

        for (const char *at = cases[i].stream; *at; at++)
            assert_true(sse_read(&sse, at, 1, &is_too_long));
        assert_string_equal(seen.text, cases[i].events);
        sse_free(&sse);
    }
}

static void a_cut_connection_forgets_half_an_event_and_keeps_the_id(void **state)
{
    static const char first[] = "retry: 1500\nid: 8\ndata: x\n\nevent: edit\nid: 9\ndata: ha",
                      second[] = "data: y\n\n";
    struct seen seen = {.text = ""};
    struct sse sse = {.take = take, .context = &seen};
    bool is_too_long;

    (void)state;
    assert_true(sse_read(&sse, first, sizeof first - 1, &is_too_long));
    assert_int_equal(sse.retry_ms, 1500);
    sse_cut(&sse);
    assert_string_equal(sse.id, "8");
    assert_true(sse_read(&sse, second, sizeof second - 1, &is_too_long));
    assert_string_equal(seen.text, "message|8|x;message|8|y;");
    sse_free(&sse);
}

static void what_is_too_long_or_refused_is_an_error(void **state)
{
    struct seen seen = {.is_refusing = true};
    struct sse sse = {.take = take, .context = &seen};
    size_t length = SSE_BYTES_MAX + 1;
    char *long_line = malloc(length);
    bool is_too_long;

    (void)state;
    assert_non_null(long_line);
    assert_false(sse_read(&sse, "data: x\n\n", 9, &is_too_long));
    assert_false(is_too_long);
    memset(long_line, 'x', length);
    assert_false(sse_read(&sse, long_line, length, &is_too_long));
    assert_true(is_too_long);
    sse_free(&sse);
    free(long_line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_read_however_they_are_cut),
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(a_cut_connection_forgets_half_an_event_and_keeps_the_id),
        cmocka_unit_test(what_is_too_long_or_refused_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
