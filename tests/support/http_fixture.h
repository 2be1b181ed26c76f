/*
 * A small server for tests of the HTTP room: one loop (unless said) on a free port of 127.0.0.1,
 * with routes that show what they were given, wait, or fail.
 *
 *   GET  /hello            "hello"
 *   POST /echo             the body; by size on the loop or on a worker; X-Media-Type
 *   POST /small            as /echo with at most 100 bytes
 *   GET  /params/{a}/{b}   "a|b"
 *   GET  /query            "name=value;" for each item
 *   GET  /worker           waits on a worker until fixture_open_gate, then "worker"
 *   GET  /still            the same on the loop, which does nothing else meanwhile
 *   GET  /deferred         answered by another thread after fixture_open_gate: "deferred"
 *   GET  /handed-on        the same, but put off by a worker
 *   GET  /large?bytes=N    N bytes 'x'
 *   GET  /static           20,000 static bytes
 *   GET  /empty            204
 *   GET  /problem          422 with pointer, limit and got
 *   GET  /huge             asks for more memory than a reply may have
 *   GET  /probe            is_probe
 *   POST /moving           moves to a worker; "from a worker"
 *   GET  /patient          stays on a worker until nobody waits for it
 *   PUT  /secret           authorize refuses it
 *   PUT  /sink             takes its body by a sink: "BYTES SUM PIECES", SUM by fixture_sum; with
 *                          ?refuse= 422 before the body, with ?fail= 422 by the sink; with ?wait=
 *                          each piece waits for the gate
 */
#ifndef KOTA_TESTS_HTTP_FIXTURE_H
#define KOTA_TESTS_HTTP_FIXTURE_H

#include "http/http.h"

#include <semaphore.h>
#include <stdatomic.h>

#define FIXTURE_ROUTE_HELLO 0
#define FIXTURE_ROUTE_NONE 19 /* counts what matched no route */

struct http_fixture {
    struct http_server *server;
    uint16_t port;
    sem_t gate;    /* one post lets one waiting handler go */
    sem_t entered; /* posted by each handler that waits */
    atomic_uint begun, ended, quiet, gone;
    atomic_uint sinks, dropped;
};

/* Defaults that a test may change before fixture_start. */
struct http_config fixture_config(void);
/* Starts it, by the defaults where config is NULL; fails the test when it does not start. */
void fixture_start(struct http_fixture *fixture, const struct http_config *config);
/* Stops it and checks that each begun request has ended. */
void fixture_stop(struct http_fixture *fixture);
void fixture_open_gate(struct http_fixture *fixture, unsigned count);
void fixture_await_entered(struct http_fixture *fixture);
/* The first query item of that name; at is NULL when there is none. */
struct span fixture_query(const struct http_request *request, const char *name);
/* A sum of bytes that depends on their order; 0 before the first. */
uint64_t fixture_sum(uint64_t sum, const char *at, size_t length);

#endif
