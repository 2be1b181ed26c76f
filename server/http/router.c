/*
 * The router: see router.h.
 *
 * Patterns are split once. Nearly all routes differ in their last segment, so there is a list for
 * each hash of that, and for those that end in a parameter one for each number of segments; a
 * request is compared with the routes of two lists. Each segment has a mark, some of its bytes in
 * one number, so that one comparison refuses nearly every pattern. The table is the only source: of
 * the rows that match, the first is taken. A tree was left out: it would hide the order.
 *
 * Methods of all patterns that match the path are collected on the way: they distinguish 404 from
 * 405 and make the Allow header.
 */
#include "http/router.h"

#include "base/check.h"
#include "base/text/nearest_word.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct http_pattern {
    struct span segments[HTTP_SEGMENTS_MAX];
    uint64_t marks[HTTP_SEGMENTS_MAX];
    unsigned params;    /* bit i: segments[i] is a {name}, perhaps with an ending: {layer}.tif */
    struct span ending; /* of the last segment, where it is one with an ending */
    size_t segment_count;
    size_t next; /* in the same list; route_count: none */
};

#define MARK_BYTES ((size_t)8)

static bool is_param(struct span segment)
{
    return segment.length > 2 && segment.at[0] == '{';
}

/* The first and the last bytes: with the length all of a segment of up to MARK_BYTES. */
static uint64_t mark_of(struct span segment)
{
    uint32_t first = 0, last = 0;

    if (segment.length >= 4) {
        memcpy(&first, segment.at, 4);
        memcpy(&last, segment.at + segment.length - 4, 4);
    } else if (segment.length > 0) {
        first = (unsigned char)segment.at[0] |
                (uint32_t)(unsigned char)segment.at[segment.length / 2] << 8;
        last = (unsigned char)segment.at[segment.length - 1];
    }
    return first | (uint64_t)last << 32;
}

static void split_pattern(struct http_pattern *pattern, const char *text)
{
    size_t params = 0;

    CHECK(text[0] == '/');
    while (*text) {
        struct span segment = {text + 1, strcspn(text + 1, "/")};
        const char *close;

        CHECK(pattern->segment_count < HTTP_SEGMENTS_MAX);
        close = segment.length > 0 ? memchr(segment.at, '}', segment.length) : NULL;
        CHECK((segment.length > 0 && segment.at[0] == '{') == (close != NULL));
        if (close)
            pattern->ending =
                (struct span){close + 1, segment.length - (size_t)(close + 1 - segment.at)};
        CHECK(pattern->ending.length == 0 || text[1 + segment.length] == '\0');
        params += is_param(segment);
        CHECK(params <= HTTP_PARAMS_MAX);
        pattern->params |= (unsigned)is_param(segment) << pattern->segment_count;
        pattern->marks[pattern->segment_count] = mark_of(segment);
        pattern->segments[pattern->segment_count++] = segment;
        text = segment.at + segment.length;
    }
}

/*
 * The list that a route is in: by the hash of its last segment, or, where that is a parameter, by
 * the number of segments.
 */
static size_t list_of_literal(uint64_t last_mark)
{
    return (size_t)(last_mark * 0x9e3779b97f4a7c15u >> (64 - HTTP_ROUTER_HASH_BITS));
}

static size_t list_of_param(size_t segment_count)
{
    return ((size_t)1 << HTTP_ROUTER_HASH_BITS) + segment_count - 1;
}

static size_t list_of(const struct http_pattern *pattern)
{
    size_t last = pattern->segment_count - 1;

    return pattern->params >> last & 1 ? list_of_param(pattern->segment_count)
                                       : list_of_literal(pattern->marks[last]);
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
    for (size_t list = 0; list < HTTP_ROUTER_LISTS; list++)
        router->first[list] = count;
    for (size_t i = count; i-- > 0;) {
        size_t list = list_of(&router->patterns[i]);

        router->patterns[i].next = router->first[list];
        router->first[list] = i;
    }
    return true;
}

void http_router_finish(struct http_router *router)
{
    free(router->patterns);
    router->patterns = NULL;
}

/* From the last segment on, because the first ones are the same in nearly all patterns. */
static bool pattern_fits(const struct http_pattern *pattern, const struct http_target *target,
                         const uint64_t *marks)
{
    struct span ending = pattern->ending, tail = target->segments[target->segment_count - 1];

    if (ending.length > 0 &&
        (tail.length <= ending.length ||
         memcmp(tail.at + tail.length - ending.length, ending.at, ending.length) != 0))
        return false;
    for (size_t i = pattern->segment_count; i-- > 0;) {
        struct span want = pattern->segments[i], have = target->segments[i];

        if (pattern->params >> i & 1) {
            if (have.length == 0)
                return false;
        } else if (pattern->marks[i] != marks[i] || have.length != want.length ||
                   (have.length > MARK_BYTES && memcmp(want.at, have.at, want.length) != 0)) {
            return false;
        }
    }
    return true;
}

/* One list: adds to the methods, and to *route the first that fits and has the method. */
static void find_in_list(const struct http_router *router, size_t list,
                         const struct http_target *target, const uint64_t *marks,
                         enum http_method method, struct http_match *match)
{
    const struct http_pattern *pattern;
    bool has_ending = false; /* then the path is that file's, and no other pattern's */

    for (size_t i = router->first[list]; i < router->route_count; i = pattern->next) {
        pattern = &router->patterns[i];
        if (pattern->segment_count != target->segment_count ||
            (has_ending && pattern->ending.length == 0) || !pattern_fits(pattern, target, marks))
            continue;
        has_ending = has_ending || pattern->ending.length > 0;
        match->allowed |= router->routes[i].method;
        if (i < match->route && router->routes[i].method == method)
            match->route = i;
    }
}

/* The parameters of the route that was found. */
static void take_params(const struct http_router *router, const struct http_target *target,
                        struct http_match *match)
{
    unsigned params = router->patterns[match->route].params;

    for (; params; params &= params - 1)
        match->params[match->param_count++] = target->segments[__builtin_ctz(params)];
    if (match->param_count > 0)
        match->params[match->param_count - 1].length -=
            router->patterns[match->route].ending.length;
}

void http_router_find(const struct http_router *router, const struct http_target *target,
                      enum http_method method, struct http_match *match)
{
    uint64_t marks[HTTP_SEGMENTS_MAX];
    size_t count = target->segment_count;

    match->route = router->route_count;
    match->allowed = 0;
    match->param_count = 0;
    if (count == 0 || count > HTTP_SEGMENTS_MAX)
        return;
    for (size_t i = 0; i < count; i++)
        marks[i] = mark_of(target->segments[i]);
    find_in_list(router, list_of_literal(marks[count - 1]), target, marks, method, match);
    find_in_list(router, list_of_param(count), target, marks, method, match);
    if (match->route < router->route_count)
        take_params(router, target, match);
}

/*
 * The mistakes in the first `count` segments of a target, and *where they are: SIZE_MAX when there
 * are too many, or in more than one place.
 */
static size_t mistakes(const struct http_pattern *pattern, const struct http_target *target,
                       size_t count, size_t *where)
{
    size_t found = 0;

    *where = count;
    for (size_t i = 0; i < count; i++) {
        struct span want = pattern->segments[i], have = target->segments[i];
        size_t most = nearest_word_slips(have.length), distance;

        if (pattern->params >> i & 1) {
            if (have.length == 0)
                return SIZE_MAX;
            continue;
        }
        distance = word_distance(have.at, have.length, want.at, want.length, most);
        if (distance == 0)
            continue;
        if (distance > most || found > 0)
            return SIZE_MAX;
        found = distance;
        *where = i;
    }
    return found;
}

static bool is_last_word(const struct http_pattern *pattern, struct span word)
{
    size_t last = pattern->segment_count - 1;
    struct span want = pattern->segments[last];

    return !(pattern->params >> last & 1) && want.length == word.length && word.length > 0 &&
           memcmp(want.at, word.at, word.length) == 0;
}

bool http_router_guess(const struct http_router *router, const struct http_target *target,
                       char *out, size_t size)
{
    size_t count = target->segment_count, best = SIZE_MAX, where, used = 0, at = 0, row = 0;

    if (count == 0 || count > HTTP_SEGMENTS_MAX)
        return false;
    if (count > 1 && target->segments[count - 1].length == 0)
        count--;
    for (size_t i = 0; i < router->route_count; i++) {
        const struct http_pattern *pattern = &router->patterns[i];
        size_t found =
            pattern->segment_count == count ? mistakes(pattern, target, count, &where) : SIZE_MAX;

        if (found >= best)
            continue;
        best = found;
        row = i;
        at = where;
    }
    for (size_t i = 0; best == SIZE_MAX && i < router->route_count; i++)
        if (is_last_word(&router->patterns[i], target->segments[count - 1]))
            return snprintf(out, size, "%s", router->routes[i].pattern) > 0;
    if (best == SIZE_MAX)
        return false;
    for (size_t i = 0; i < count && used < size; i++) {
        struct span segment = i == at ? router->patterns[row].segments[i] : target->segments[i];

        used += (size_t)snprintf(out + used, size - used, "/%.*s", (int)segment.length, segment.at);
    }
    return true;
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
