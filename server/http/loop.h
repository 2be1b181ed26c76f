/*
 * The life of a loop: listening, its thread, the end. Its members are in loop_data.h.
 */
#ifndef KOTA_HTTP_LOOP_H
#define KOTA_HTTP_LOOP_H

#include "http/loop_data.h"

/*
 * A loop that listens on address but does not run yet. *port is the port to bind, 0 for a free
 * one, and becomes the port that was bound. NULL and err on failure.
 */
struct http_loop *http_loop_create(struct http_server *server, size_t index, const char *host,
                                   uint16_t *port, struct err *err);
/* Starts the thread. */
enum err_code http_loop_start(struct http_loop *loop, struct err *err);
/* Joins the thread (if started), closes all handles. The loop must be draining. */
void http_loop_join(struct http_loop *loop, bool is_started);
/*
 * After the join of every loop: until then each of them may read the counters of all (/metrics).
 */
void http_loop_free(struct http_loop *loop);
/* Polls the listeners (again). Loop thread. */
void http_loop_listen(struct http_loop *loop);
/* From any thread. */
void http_loop_wake(struct http_loop *loop);
/*
 * Starts the tick. So does an opened connection. After the end of a connection or request: closes a
 * draining loop without any.
 */
void http_loop_tick(struct http_loop *loop);
void http_loop_connection_opened(struct http_loop *loop);
void http_loop_something_ended(struct http_loop *loop);

#endif
