/*
 * The table of all calls.
 */
#ifndef KOTA_API_ROUTES_H
#define KOTA_API_ROUTES_H

#include "api/auth/auth.h"
#include "http/http.h"

struct api_route {
    struct http_route http;
    enum right right;    /* that a token must have */
    const char *name;    /* the operationId */
    const char *summary; /* of the OpenAPI document */
    http_handler begin;  /* http_app.body_begin; NULL: the body is buffered */
};

extern const struct api_route api_routes[];
extern const size_t api_route_count;

/* "GET", … */
const char *route_method_word(enum http_method method);

#endif
