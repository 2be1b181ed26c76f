/*
 * A client for tests that sends exactly the bytes it is told and takes answers apart. Everything
 * fails the running test after ten seconds without an answer.
 */
#ifndef KOTA_TESTS_RAW_HTTP_H
#define KOTA_TESTS_RAW_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct raw_client {
    int fd;
    char *buffer;                   /* [capacity] */
    size_t start, length, capacity; /* length bytes from start came and were not taken */
};

struct raw_answer {
    int status;
    char *head; /* with its empty line, NUL-terminated */
    char *body; /* NUL-terminated too */
    size_t body_length;
};

struct raw_client raw_connect(uint16_t port);
void raw_close(struct raw_client *client);
/* Closes with a reset. */
void raw_reset(struct raw_client *client);
void raw_send(struct raw_client *client, const void *bytes, size_t length);
void raw_send_text(struct raw_client *client, const char *text);
/* As raw_send, but false when the peer does not take it (any more). */
bool raw_try_send(struct raw_client *client, const void *bytes, size_t length);
void raw_end_sending(struct raw_client *client);

/* The next answer; with is_head its Content-Length counts no bytes. */
struct raw_answer raw_read(struct raw_client *client, bool is_head);
void raw_answer_free(struct raw_answer *answer);
/* The next answer must have this status and, unless NULL, this body. */
void raw_expect(struct raw_client *client, int status, const char *body);
/* The next bytes as they come. */
void raw_read_bytes(struct raw_client *client, void *out, size_t length);
/* The value of the first header of that name (any case), copied to out[size]; false: none. */
bool raw_header(const struct raw_answer *answer, const char *name, char *out, size_t size);
/* True when the peer has closed and nothing more came. */
bool raw_is_closed(struct raw_client *client);
/* True when nothing came for wait_ms and the connection is open. */
bool raw_is_silent(struct raw_client *client, int wait_ms);

/* Sends text on a connection of its own and returns the first answer's status. */
int raw_status_of(uint16_t port, const char *text);

#endif
