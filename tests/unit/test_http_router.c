/*
 * Targets and routes: splitting, percent-decoding, queries, matching, Allow.
 */
#include "http/router.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void handler(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    (void)reply;
}

static const struct http_route routes[] = {
    {METHOD_GET, "/", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/v1/locales", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/v1/locales/{id}", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_PUT, "/v1/locales/{id}", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/v1/locales/special", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/v1/{kind}/{id}/tiles/{level}", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/v1/layers/{id}.tif", handler, HTTP_ON_LOOP, 0, false},
    {METHOD_PUT, "/v1/layers/{id}", handler, HTTP_ON_LOOP, 0, false},
};
#define ROUTES (sizeof routes / sizeof *routes)

struct fixture {
    struct http_arena arena;
    _Alignas(16) char first[1024];
    struct http_router router;
    struct http_target target;
    struct err err;
    char *text;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    http_arena_init(&fixture->arena, fixture->first, sizeof fixture->first, 1 << 20);
    assert_true(http_router_init(&fixture->router, routes, ROUTES));
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    http_arena_reset(&fixture->arena);
    http_router_finish(&fixture->router);
    free(fixture->text);
    free(fixture);
    return 0;
}

/* Parses text from memory of its exact size, which lives until the next call. */
static enum err_code parse(struct fixture *fixture, const char *text)
{
    size_t length = strlen(text);

    free(fixture->text);
    fixture->text = malloc(length);
    memcpy(fixture->text, text, length);
    http_arena_reset(&fixture->arena);
    return http_target_parse(&fixture->target, (struct span){fixture->text, length},
                             &fixture->arena, &fixture->err);
}

static void paths_find_their_route(void **state)
{
    static const struct {
        const char *target;
        enum http_method method;
        size_t route;
        unsigned allowed;
        const char *param;
    } cases[] = {
        {"/", METHOD_GET, 0, METHOD_GET, NULL},
        {"/?a=b", METHOD_GET, 0, METHOD_GET, NULL},
        {"/v1/locales", METHOD_GET, 1, METHOD_GET, NULL},
        {"/v1/%6cocales", METHOD_GET, 1, METHOD_GET, NULL},
        {"http://host:80/v1/locales?x", METHOD_GET, 1, METHOD_GET, NULL},
        {"HTTPS://host", METHOD_GET, 0, METHOD_GET, NULL},
        {"http://host?x=y", METHOD_GET, 0, METHOD_GET, NULL},
        {"/v1/locales/a", METHOD_GET, 2, METHOD_GET | METHOD_PUT, "a"},
        {"/v1/locales/a%2Fb%20c", METHOD_PUT, 3, METHOD_GET | METHOD_PUT, "a/b c"},
        {"/v1/locales/special", METHOD_GET, 2, METHOD_GET | METHOD_PUT, "special"},
        {"/v1/locales/a", METHOD_DELETE, ROUTES, METHOD_GET | METHOD_PUT, NULL},
        {"/v1/locales/", METHOD_GET, ROUTES, 0, NULL},
        {"/v1//locales", METHOD_GET, ROUTES, 0, NULL},
        {"//", METHOD_GET, ROUTES, 0, NULL},
        {"/v1/locales/a/b", METHOD_GET, ROUTES, 0, NULL},
        {"/v1/meshes/a/tiles/3", METHOD_GET, 5, METHOD_GET, "meshes"},
        {"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18", METHOD_GET, ROUTES, 0, NULL},
        {"/V1/locales", METHOD_GET, ROUTES, 0, NULL},
        {"/v1/layers/a.tif", METHOD_GET, 6, METHOD_GET, "a"},
        {"/v1/layers/a.tif.tif", METHOD_GET, 6, METHOD_GET, "a.tif"},
        {"/v1/layers/a.tif", METHOD_PUT, ROUTES, METHOD_GET, NULL},
        {"/v1/layers/.tif", METHOD_PUT, 7, METHOD_PUT, ".tif"},
        {"/v1/layers/tif", METHOD_PUT, 7, METHOD_PUT, "tif"},
        {"/v1/layers/a.TIF", METHOD_GET, ROUTES, METHOD_PUT, NULL},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_match match;

        assert_int_equal(parse(fixture, cases[i].target), ERR_OK);
        http_router_find(&fixture->router, &fixture->target, cases[i].method, &match);
        if (match.route != cases[i].route || match.allowed != cases[i].allowed)
            fail_msg("%s: route %zu instead of %zu, methods %u instead of %u", cases[i].target,
                     match.route, cases[i].route, match.allowed, cases[i].allowed);
        if (cases[i].param && !span_equals(match.params[0], cases[i].param))
            fail_msg("%s: parameter %.*s", cases[i].target, (int)match.params[0].length,
                     match.params[0].at);
    }
}

static void bad_targets_are_refused(void **state)
{
    static const char *const bad[] = {"/%",      "/%4",     "/a%zz",     "/a%0gb",  "/%00",
                                      "/?a=%",   "/?%=b",   "/?a=b%1",   "/?a=%00", "ftp://host/",
                                      "host:80", "http://", "http:///a", "a",       "/a%2"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse(fixture, bad[i]) != ERR_BAD_REQUEST)
            fail_msg("%s was taken", bad[i]);
}

static void queries_are_decoded_in_order(void **state)
{
    static const struct {
        const char *target;
        const char *items; /* name=value; for each */
    } cases[] = {
        {"/", ""},
        {"/?", ""},
        {"/?a", "a=;"},
        {"/?a=", "a=;"},
        {"/?=b", "=b;"},
        {"/?a=b=c", "a=b=c;"},
        {"/?a=1&b=2&a=3", "a=1;b=2;a=3;"},
        {"/?&&a=1&&", "a=1;"},
        {"/?a+b=c+d%2Be", "a b=c d+e;"},
        {"/?a%3D=%26&b=%c3%A9", "a==&;b=\xc3\xa9;"},
        {"/?a=b?c/d", "a=b?c/d;"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        size_t used = 0;

        assert_int_equal(parse(fixture, cases[i].target), ERR_OK);
        text[0] = '\0';
        for (size_t n = 0; n < fixture->target.item_count; n++) {
            const struct http_query_item *item = &fixture->target.items[n];

            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s=%.*s;",
                                     (int)item->name.length, item->name.at, (int)item->value.length,
                                     item->value.at);
        }
        assert_string_equal(text, cases[i].items);
    }
}

static void the_asterisk_is_a_target_of_its_own(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(parse(fixture, "*"), ERR_OK);
    assert_true(fixture->target.is_asterisk);
}

static void allow_lists_methods_with_head_and_options(void **state)
{
    char text[96];

    (void)state;
    http_router_allow_text(METHOD_GET | METHOD_PUT, text, sizeof text);
    assert_string_equal(text, "GET, HEAD, PUT, OPTIONS");
    http_router_allow_text(0, text, sizeof text);
    assert_string_equal(text, "OPTIONS");
    http_router_allow_text(~0u, text, sizeof text);
    assert_string_equal(text, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
}

static void the_arena_aligns_bounds_and_starts_over(void **state)
{
    static char first[64] __attribute__((aligned(16)));
    struct http_arena arena;

    (void)state;
    http_arena_init(&arena, first, sizeof first, 100000);
    for (int round = 0; round < 2; round++) {
        assert_ptr_equal(http_arena_alloc(&arena, 1), first);
        assert_ptr_equal(http_arena_alloc(&arena, 48), first + 16);
        for (size_t bytes = 1; bytes < 20000; bytes = bytes * 3 + 1) {
            char *piece = http_arena_alloc(&arena, bytes);

            assert_non_null(piece);
            assert_int_equal((uintptr_t)piece % 16, 0);
            memset(piece, 0xaa, bytes);
        }
        assert_null(http_arena_alloc(&arena, 100000));
        assert_null(http_arena_alloc(&arena, SIZE_MAX));
        assert_non_null(http_arena_alloc(&arena, 16));
        http_arena_reset(&arena);
    }
}

/* ---- all tables of small patterns, against a plain walk -------------------------------------- */

#define WORDS 7
#define SEED 2011
#define TABLES 300
#define TABLE_ROUTES 24

/* Alike in length, in their first or their last bytes, or in all of these. */
static const char *const words[WORDS] = {
    "a", "ab", "tile", "tiles", "longer-segment-x-end", "longer-segment-y-end", "{id}"};

static void make_path(struct random *random, char *out, size_t size, size_t word_count)
{
    size_t segments = 1 + random_below(random, 3), used = 0;

    for (size_t i = 0; i < segments; i++)
        used += (size_t)snprintf(out + used, size - used, "/%s",
                                 words[random_below(random, (uint32_t)word_count)]);
}

/* Does the pattern fit the path? Both without empty segments. */
static bool fits(const char *pattern, const char *path)
{
    while (*pattern && *path) {
        size_t want = strcspn(pattern + 1, "/"), have = strcspn(path + 1, "/");

        if (pattern[1] != '{' && (want != have || memcmp(pattern + 1, path + 1, want) != 0))
            return false;
        pattern += want + 1;
        path += have + 1;
    }
    return *pattern == *path;
}

static void any_table_is_matched_in_its_order(void **state)
{
    struct fixture *fixture = *state;
    struct random random = {SEED};

    print_message("seed %d\n", SEED);
    for (int table = 0; table < TABLES; table++) {
        char patterns[TABLE_ROUTES][80];
        struct http_route rows[TABLE_ROUTES];
        struct http_router router;

        for (size_t i = 0; i < TABLE_ROUTES; i++) {
            make_path(&random, patterns[i], sizeof patterns[i], WORDS);
            rows[i] = (struct http_route){random_below(&random, 2) ? METHOD_GET : METHOD_PUT,
                                          patterns[i],
                                          handler,
                                          HTTP_ON_LOOP,
                                          0,
                                          false};
        }
        assert_true(http_router_init(&router, rows, TABLE_ROUTES));
        for (int n = 0; n < 50; n++) {
            char path[80];
            struct http_match match;
            unsigned allowed = 0;
            size_t first = TABLE_ROUTES;

            make_path(&random, path, sizeof path, WORDS - 1);
            assert_int_equal(parse(fixture, path), ERR_OK);
            for (size_t i = TABLE_ROUTES; i-- > 0;) {
                if (!fits(patterns[i], path))
                    continue;
                allowed |= rows[i].method;
                if (rows[i].method == METHOD_GET)
                    first = i;
            }
            http_router_find(&router, &fixture->target, METHOD_GET, &match);
            if (match.route != first || match.allowed != allowed)
                fail_msg("%s: route %zu, methods %x; expected %zu, %x", path, match.route,
                         match.allowed, first, allowed);
        }
        http_router_finish(&router);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(paths_find_their_route, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_targets_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(queries_are_decoded_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(the_asterisk_is_a_target_of_its_own, setup, teardown),
        cmocka_unit_test(allow_lists_methods_with_head_and_options),
        cmocka_unit_test_setup_teardown(any_table_is_matched_in_its_order, setup, teardown),
        cmocka_unit_test(the_arena_aligns_bounds_and_starts_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
