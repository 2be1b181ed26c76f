/*
 * From a path's segments to a row of the route table.
 */
#ifndef KOTA_HTTP_ROUTER_H
#define KOTA_HTTP_ROUTER_H

#include "http/target.h"

#define HTTP_PARAMS_MAX 8
#define HTTP_ROUTER_HASH_BITS 5
#define HTTP_ROUTER_LISTS (((size_t)1 << HTTP_ROUTER_HASH_BITS) + HTTP_SEGMENTS_MAX)

struct http_pattern;

struct http_router {
    const struct http_route *routes;
    size_t route_count;
    struct http_pattern *patterns;   /* [route_count] */
    size_t first[HTTP_ROUTER_LISTS]; /* route_count: none */
};

struct http_match {
    size_t route;     /* index; route_count when there is none */
    unsigned allowed; /* methods of every pattern that fits the path, enum http_method bits */
    struct span params[HTTP_PARAMS_MAX];
    size_t param_count;
};

/*
 * Splits the patterns of routes[count], which are borrowed. A bad pattern is a bug of ours and
 * ends the process. False without memory.
 */
bool http_router_init(struct http_router *router, const struct http_route *routes, size_t count);
void http_router_finish(struct http_router *router);

/*
 * The first route, in the table's order, whose pattern fits and whose method is `method`. A
 * parameter takes one segment that is not empty. Cost: a comparison for each route with the
 * same last segment or a parameter there, no allocation; any thread.
 */
void http_router_find(const struct http_router *router, const struct http_target *target,
                      enum http_method method, struct http_match *match);

/*
 * The path that a target without a route was probably meant to be, into out[size]: another word in
 * one place, no slash at the end, or the pattern that ends in the same word. False: no guess.
 */
bool http_router_guess(const struct http_router *router, const struct http_target *target,
                       char *out, size_t size);

/* "GET, HEAD, PUT, OPTIONS": GET implies HEAD; OPTIONS is always included. out[size]. */
void http_router_allow_text(unsigned allowed, char *out, size_t size);

#endif
