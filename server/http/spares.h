/*
 * Memory of large bodies that is kept for a moment, for the next ones of its loop.
 */
#ifndef KOTA_HTTP_SPARES_H
#define KOTA_HTTP_SPARES_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_SPARES = 4 };

/* Zero is an empty one. */
struct http_spares {
    struct http_spare {
        char *at; /* malloc; NULL: none */
        size_t capacity;
        bool is_old; /* since the last tick */
    } list[HTTP_SPARES];
};

/* A body from so many bytes on is worth it. */
#define HTTP_SPARE_BYTES_MIN ((size_t)256 * 1024)

/* Takes the memory of a body: keeps or frees it. */
void http_spares_give(struct http_spares *spares, char *at, size_t capacity);

/* The largest one, which the caller frees; NULL: none. */
char *http_spares_take(struct http_spares *spares, size_t *capacity);

/* Frees those that were not taken since the call before. */
void http_spares_age(struct http_spares *spares);

/* Frees all. */
void http_spares_drop(struct http_spares *spares);

#endif
