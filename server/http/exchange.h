/*
 * From bytes to a request, to a handler, to an answer: the course of one exchange.
 */
#ifndef KOTA_HTTP_EXCHANGE_H
#define KOTA_HTTP_EXCHANGE_H

#include "http/connection_data.h"
#include "http/request.h"

/*
 * Takes requests from at[0..length) as long as the connection takes input; answers that are ready
 * are put into its output. Returns the bytes taken. The rest must be passed again, with more.
 */
size_t http_exchange_feed(struct http_connection *connection, const char *at, size_t length);

/* Answers the request being read with an error, after which the connection closes. */
void http_exchange_fail(struct http_connection *connection, const struct err *err);

/* The request is back from a worker, or finished by its owner. True when that answered it. */
bool http_exchange_arrived(struct http_request *request, enum http_arrival arrival);

/* Gives a request back that is answered, or whose connection has closed before it was begun. */
void http_exchange_release(struct http_request *request);

/* Takes a parked request out of its loop's list; nothing if it is in none. */
void http_exchange_unpark(struct http_request *request);
/* Begins a parked request again; the caller then lets its connection continue. */
void http_exchange_retry(struct http_request *request, bool is_last);

#endif
