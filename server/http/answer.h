/*
 * The bytes of an answer.
 */
#ifndef KOTA_HTTP_ANSWER_H
#define KOTA_HTTP_ANSWER_H

#include "http/connection_data.h"
#include "http/request.h"

/*
 * Puts the reply of the request into the connection's output: head and, but for HEAD, 204 and 304,
 * the body. A large body is moved, not copied. With close it has "Connection: close". Returns the
 * body's length as in Content-Length. False in *ok without memory: nothing was added.
 */
size_t http_answer_encode(struct http_connection *connection, struct http_request *request,
                          bool close, bool *ok);

/* The interim answer of RFC 9110 section 15.2.1. */
bool http_answer_continue(struct http_connection *connection);

#endif
