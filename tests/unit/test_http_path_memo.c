/*
 * The memo of paths: whatever request line it finds, it says of it what the head check, the target
 * and the router say.
 */
#include "http/path_memo.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20261
#define ROUNDS 200000

static void handler(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    (void)reply;
}

static const struct http_route routes[] = {
    {METHOD_GET, "/", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/v1/locales/{id}/height", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_POST, "/v1/locales/{id}/height", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/v1/{kind}/{id}/tiles/{level}", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_PUT, "/v1/locales/{id}", handler, HTTP_ON_LOOP, 0, false},
};
#define ROUTES (sizeof routes / sizeof *routes)

struct fixture {
    struct http_router router;
    struct http_path_memo memo;
    struct http_request long_way, again; /* what the checks say, and what the memo says */
    struct http_limits limits;
};

static int setup(void **state)
{
    struct fixture *f = aligned_alloc(64, (sizeof *f + 63) & ~(size_t)63);

    memset(f, 0, sizeof *f);
    f->limits = http_limits_default;
    f->limits.target_bytes_max = 100;
    http_arena_init(&f->long_way.arena, f->long_way.first, sizeof f->long_way.first, 1 << 20);
    http_arena_init(&f->again.arena, f->again.first, sizeof f->again.first, 1 << 20);
    assert_true(http_router_init(&f->router, routes, ROUTES));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    http_router_finish(&f->router);
    free(f);
    return 0;
}

static const char *pick(struct random *random, const char *const *of, size_t count)
{
    return of[random_below(random, (uint32_t)count)];
}

#define PICK(random, of) pick(random, of, sizeof(of) / sizeof *(of))

/* A head in memory of its exact length; some have a byte of chance in their line. */
static char *make_head(struct random *random, size_t *line, size_t *length)
{
    static const char *const methods[] = {"GET", "GET",  "GET", "POST",
                                          "PUT", "HEAD", "get", "OPTIONS"};
    static const char *const paths[] = {"/",
                                        "/v1/locales/a/height",
                                        "/v1/locales/b/height",
                                        "/v1/locales/%61/height",
                                        "/?",
                                        "/v1/x/y/tiles/3",
                                        "/v1/x/z/tiles/4",
                                        "http://a/v1/locales/a/height",
                                        "*",
                                        "/v1/locales/a",
                                        "/nothing",
                                        "/v1/locales/a/heights"};
    static const char *const queries[] = {
        "",
        "?",
        "?x=1",
        "?x=12.5&y=-3",
        "?x=1&y=2&",
        "?&&x=1",
        "?x",
        "?=1",
        "?x=1=2&=",
        "?x=%31",
        "?x=1+2",
        "?x=1?/:@-._~",
        "?!\"$'()*,;[]{}|^`\\<>",
        "?a&b&c&d&e&f&g&h",
        "?a&b&c&d&e&f&g&h&i",
        "?x=1234567890123456789012345678901234567890&y=1234567890123456789012345678901234567890",
        "?x=1234567890123456789012345678901234567890&y=1234567890123456789012345678901"};
    static const char *const versions[] = {" HTTP/1.1", " HTTP/1.1",  " HTTP/1.1",  " HTTP/1.1",
                                           " HTTP/1.0", "  HTTP/1.1", " HTTP/1.1 ", ""};
    char text[512];
    char *head;

    *line = (size_t)snprintf(text, sizeof text, "%s %s%s%s\r\n", PICK(random, methods),
                             PICK(random, paths), PICK(random, queries), PICK(random, versions));
    if (random_below(random, 3) == 0)
        text[random_below(random, (uint32_t)*line - 2)] = (char)random_below(random, 256);
    memcpy(text + *line, "Host: a\r\n\r\n", 11);
    *length = *line + 11 - (random_below(random, 8) == 0 ? 11 : 0);
    head = malloc(*length);
    assert_non_null(head);
    memcpy(head, text, *length);
    return head;
}

/* The line by the checks, into long_way; false when they refuse it, or nothing is there. */
static bool take_long_way(struct fixture *f, const char *head, size_t line)
{
    struct http_request *request = &f->long_way;
    struct err err;

    http_arena_reset(&request->arena);
    request->head = (struct http_head){0};
    if (memchr(head, '\n', line) != head + line - 1 ||
        http_head_check_request_line(&request->head, head, 0, line - 2, &f->limits, &err) ||
        http_target_parse(
            &request->target,
            (struct span){head + request->head.target_start, request->head.target_length},
            &request->arena, &err))
        return false;
    http_router_find(&f->router, &request->target, request->head.method, &request->match);
    return request->match.route < ROUTES && !request->target.is_asterisk;
}

static void assert_span(struct span got, struct span want, const char *head, const char *what)
{
    if (got.length != want.length || (want.length && got.at != want.at))
        fail_msg("%s: %s is %.*s, expected %.*s", head, what, (int)got.length, got.at,
                 (int)want.length, want.at);
}

static void assert_same(struct fixture *f, const char *head)
{
    const struct http_request *got = &f->again, *want = &f->long_way;

    assert_true(got->head.has_request_line && !got->head.is_head && !got->head.is_options);
    assert_int_equal(got->head.method, want->head.method);
    assert_int_equal(got->head.target_start, want->head.target_start);
    assert_int_equal(got->head.target_length, want->head.target_length);
    assert_int_equal(got->match.route, want->match.route);
    assert_int_equal(got->match.allowed, want->match.allowed);
    assert_int_equal(got->match.param_count, want->match.param_count);
    for (size_t i = 0; i < want->match.param_count; i++)
        assert_span(got->match.params[i], want->match.params[i], head, "a parameter");
    assert_span(got->target.path, want->target.path, head, "the path");
    assert_span(got->target.query, want->target.query, head, "the query");
    assert_true((got->target.query.at == NULL) == (want->target.query.at == NULL));
    assert_int_equal(got->target.item_count, want->target.item_count);
    for (size_t i = 0; i < want->target.item_count; i++) {
        assert_span(got->target.items[i].name, want->target.items[i].name, head, "a name");
        assert_span(got->target.items[i].value, want->target.items[i].value, head, "a value");
    }
}

static void what_is_found_is_what_the_checks_say(void **state)
{
    struct fixture *f = *state;
    struct random random = {SEED};
    size_t found = 0, kept = 0;
    struct err err;

    for (int n = 0; n < ROUNDS; n++) {
        size_t line, length, used;
        char *head = make_head(&random, &line, &length);
        bool is_good = take_long_way(f, head, line);

        http_arena_reset(&f->again.arena);
        f->again.head.scanned = SIZE_MAX; /* untouched unless it is found */
        used = http_path_memo_find(&f->memo, head, length, &f->limits, &f->again.head);
        if (used == 0) {
            assert_null(f->memo.found);
            assert_true(f->again.head.scanned == SIZE_MAX);
        } else if (!is_good || used != line || f->again.head.scanned != line ||
                   f->again.head.line_start != line) {
            fail_msg("seed %d, round %d: found %.*s", SEED, n, (int)line, head);
        } else {
            f->again.target.item_count = 0;
            assert_int_equal(http_path_memo_apply(&f->memo, head, &f->again, &err), ERR_OK);
            assert_same(f, head);
            found++;
        }
        if (is_good && used == 0) {
            http_path_memo_keep(&f->memo, &f->long_way, head);
            kept++;
        }
        free(head);
    }
    if (found < ROUNDS / 100 || kept < ROUNDS / 100)
        fail_msg("seed %d: %zu found, %zu kept", SEED, found, kept);
}

static size_t find(struct fixture *f, const char *head)
{
    return http_path_memo_find(&f->memo, head, strlen(head), &f->limits, &f->again.head);
}

#define END " HTTP/1.1\r\nHost: a\r\n\r\n"

static void a_path_that_is_kept_is_found_with_any_query(void **state)
{
    static const char line[] = "GET /v1/locales/a/height?x=1&y=2" END;
    struct fixture *f = *state;

    memset(&f->memo, 0, sizeof f->memo);
    assert_int_equal(find(f, line), 0);
    assert_true(take_long_way(f, line, (size_t)(strchr(line, '\n') + 1 - line)));
    http_path_memo_keep(&f->memo, &f->long_way, line);
    assert_true(find(f, line) > 0);
    assert_true(find(f, "GET /v1/locales/a/height?" END) > 0);
    assert_true(find(f, "GET /v1/locales/a/height?layer=ground" END) > 0);
    assert_int_equal(find(f, "GET /v1/locales/a/height" END), 0); /* of that nothing was said */
    assert_int_equal(find(f, "POST /v1/locales/a/height?x=1" END), 0);
    assert_int_equal(find(f, "GET /v1/locales/b/height?x=1" END), 0);
    assert_int_equal(find(f, "GET /v1/locales/a/height?x=%31" END), 0);
    assert_int_equal(find(f, "GET /v1/locales/a/height?x=1"), 0);
    f->limits.target_bytes_max = strlen("/v1/locales/a/height?x=1&y=");
    assert_int_equal(find(f, line), 0); /* a reload has lowered it */
    f->limits.target_bytes_max++;
    assert_true(find(f, line) > 0);
    f->limits.header_bytes_max = strlen("GET /v1/locales/a/height?x=1&y=2 HTTP/1.1\r");
    assert_int_equal(find(f, line), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_found_is_what_the_checks_say, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_that_is_kept_is_found_with_any_query, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
