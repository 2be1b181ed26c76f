/*
 * What all loops of a server share. Everything but the atomics is set before a loop's thread
 * starts and stays as it is.
 */
#ifndef KOTA_HTTP_SERVER_DATA_H
#define KOTA_HTTP_SERVER_DATA_H

#include "http/http.h"
#include "http/output.h"
#include "http/peers.h"
#include "http/router.h"

#include <stdatomic.h>

enum { HTTP_ORIGIN_BYTES_MAX = 256 };

struct http_loop;
struct http_pool;

/* What a reload may change: immutable, and kept until the server is freed. */
struct http_settings {
    struct http_settings *next;
    struct http_limits limits;
    uint32_t slow_request_ms;
    bool access_log;
};

struct http_server {
    struct http_app app;
    struct http_limits limits;                      /* of the start */
    _Atomic(const struct http_settings *) settings; /* in force, one of the kept */
    struct http_settings *kept;
    struct http_router router;
    struct http_peers *peers;
    struct http_pool *pool;   /* NULL: no route needs a worker */
    struct http_loop **loops; /* [loop_count] */
    size_t loop_count;
    char host[64]; /* numeric; "": no TCP */
    uint16_t port;
    int listener;      /* -1: each loop has its own */
    int unix_listener; /* -1: none */
    bool is_inherited; /* the sockets outlive this process */
    bool probes_only;
    bool has_cors;
    size_t cors_length;
    char cors[512];            /* header lines that every answer carries */
    const char *cors_origins;  /* the list, when it is one: the Origin header is looked up in it */
    atomic_size_t connections; /* open, without those that were turned away */
    atomic_size_t body_bytes;  /* held by the bodies of requests */
    atomic_size_t streams;     /* made and not over */
    struct http_budget answers;
    atomic_bool is_draining;
    uint32_t drain_ms; /* set before is_draining */
};

static inline const struct http_settings *http_settings(const struct http_server *server)
{
    return atomic_load_explicit(&server->settings, memory_order_acquire);
}

static inline const struct http_limits *http_limits_now(const struct http_server *server)
{
    return &http_settings(server)->limits;
}

#endif
