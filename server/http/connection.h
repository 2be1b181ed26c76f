/*
 * One connection: bytes in, bytes out, deadlines. The meaning of the bytes is in exchange.h.
 */
#ifndef KOTA_HTTP_CONNECTION_H
#define KOTA_HTTP_CONNECTION_H

#include "http/connection_data.h"

/*
 * Takes connections off the queue of one of the loop's listeners. Without memory or a file
 * descriptor for another one they stay there, and no listener is polled until
 * http_connection_retry_accept.
 */
void http_connection_accept(struct http_loop *loop, const uv_poll_t *listener);
void http_connection_retry_accept(struct http_loop *loop);
/* After a change outside of a read: takes pending input, sends, sets deadlines. */
void http_connection_continue(struct http_connection *connection);
/*
 * The end of an iteration: answers, sends and sets deadlines for all connections that were read in
 * it.
 */
void http_connection_process_reads(struct http_loop *loop);
/* Before long work: sends the answers that are ready. */
void http_connection_flush_writes(struct http_loop *loop);
/* Sets the error of a connection beyond the limits, and counts it. */
enum err_code http_connection_refuse(const struct http_connection *connection, struct err *err);
/* The loop drains: closes it if it is a stream, or idle and no request is on its way. */
void http_connection_drain(struct http_connection *connection);
/* At once. A request that is being handled is detached and ends later. */
void http_connection_close(struct http_connection *connection);
/* A deadline has passed. */
void http_connection_expired(struct http_timer *timer);

#endif
