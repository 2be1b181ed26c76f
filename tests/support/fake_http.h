/*
 * A server for tests that says what its test tells it, however wrong. Each connection has a thread,
 * which runs the test's function and then closes. Everything listens on a free port of 127.0.0.1.
 */
#ifndef KOTA_TESTS_FAKE_HTTP_H
#define KOTA_TESTS_FAKE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_http;

/* One connection, the number-th (from 0). */
typedef void fake_serve(struct fake_http *server, int fd, unsigned number, void *context);

struct fake_http *fake_http_start(fake_serve *serve, void *context);
uint16_t fake_http_port(const struct fake_http *server);
unsigned fake_http_connections(struct fake_http *server); /* so far */
/* Ends all connections, waits for their threads. */
void fake_http_stop(struct fake_http *server);

/* Reads a request with its body (Content-Length); false: the peer has closed. Cut at size - 1. */
bool fake_read_request(int fd, char *text, size_t size);
/* False: the peer takes no more. */
bool fake_send(int fd, const char *text);
bool fake_send_bytes(int fd, const void *bytes, size_t length);
/* Until the peer has closed or the server is stopped. */
void fake_wait_closed(int fd);
/* Sleeps; false: the server is being stopped. */
bool fake_pause(struct fake_http *server, unsigned ms);

#endif
