/*
 * The router: see router.h.
 *
 * Patterns are split once. A request compares its decoded segments with each pattern of the same
 * length, in the table's order; some thirty routes make that less than a microsecond, and the
 * table stays the one visible truth. A tree was left out: it would hide the order.
 *
 * Methods of all patterns that fit the path are gathered on the way: they tell 404 from 405 and
 * make the Allow header.
 */
#include "http/router.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

struct http_pattern {
    struct span segments[HTTP_SEGMENTS_MAX];
    size_t segment_count;
};

static bool is_param(struct span segment)
{
    return segment.length > 2 && segment.at[0] == '{';
}

static void split_pattern(struct http_pattern *pattern, const char *text)
{
    size_t params = 0;

    CHECK(text[0] == '/');
    while (*text) {
        struct span segment = {text + 1, strcspn(text + 1, "/")};

        CHECK(pattern->segment_count < HTTP_SEGMENTS_MAX);
        CHECK((segment.length > 0 && segment.at[0] == '{') ==
              (segment.length > 0 && segment.at[segment.length - 1] == '}'));
        params += is_param(segment);
        CHECK(params <= HTTP_PARAMS_MAX);
        pattern->segments[pattern->segment_count++] = segment;
        text = segment.at + segment.length;
    }
}

bool http_router_init(struct http_router *router, const struct http_route *routes, size_t count)
{
    router->routes = routes;
    router->route_count = count;
    router->patterns = calloc(count ? count : 1, sizeof *router->patterns);
    if (!router->patterns)
        return false;
    for (size_t i = 0; i < count; i++) {
        CHECK(routes[i].handler != NULL);
        split_pattern(&router->patterns[i], routes[i].pattern);
    }
    return true;
}

void http_router_finish(struct http_router *router)
{
    free(router->patterns);
    router->patterns = NULL;
}

static bool pattern_fits(const struct http_pattern *pattern, const struct http_target *target)
{
    if (pattern->segment_count != target->segment_count)
        return false;
    for (size_t i = 0; i < pattern->segment_count; i++) {
        struct span want = pattern->segments[i], have = target->segments[i];

        if (is_param(want) ? have.length == 0
                           : want.length != have.length ||
                                 (want.length && memcmp(want.at, have.at, want.length) != 0))
            return false;
    }
    return true;
}

void http_router_find(const struct http_router *router, const struct http_target *target,
                      enum http_method method, struct http_match *match)
{
    match->route = router->route_count;
    match->allowed = 0;
    match->param_count = 0;
    for (size_t i = 0; i < router->route_count; i++) {
        const struct http_pattern *pattern = &router->patterns[i];

        if (!pattern_fits(pattern, target))
            continue;
        match->allowed |= router->routes[i].method;
        if (match->route < router->route_count || router->routes[i].method != method)
            continue;
        match->route = i;
        for (size_t s = 0; s < pattern->segment_count; s++)
            if (is_param(pattern->segments[s]))
                match->params[match->param_count++] = target->segments[s];
    }
}

void http_router_allow_text(unsigned allowed, char *out, size_t size)
{
    static const struct {
        unsigned method;
        const char *text;
    } names[] = {{METHOD_GET, "GET, HEAD, "},
                 {METHOD_POST, "POST, "},
                 {METHOD_PUT, "PUT, "},
                 {METHOD_PATCH, "PATCH, "},
                 {METHOD_DELETE, "DELETE, "}};
    size_t used = 0;

    CHECK(size >= 64);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i].text);

        if (!(allowed & names[i].method))
            continue;
        memcpy(out + used, names[i].text, length);
        used += length;
    }
    memcpy(out + used, "OPTIONS", sizeof "OPTIONS");
}
