/*
 * The strict check of a chunked body's framing, over raw bytes and before llhttp sees them: sizes,
 * extensions, the CRLF after each chunk, trailers.
 */
#ifndef KOTA_HTTP_CHUNKS_H
#define KOTA_HTTP_CHUNKS_H

#include "base/err.h"
#include "http/http.h"

/* Zeroed at the start of each body. */
struct http_chunks {
    int state;
    unsigned digits;      /* of the size that is being read */
    uint64_t chunk_bytes; /* size being read, then bytes of the chunk still to come */
    uint64_t body_bytes;  /* announced by all chunks so far */
    uint64_t frame_bytes; /* everything that is not the body */
    size_t trailer_count;
    size_t line_length;
    bool is_done;
    char line[1024]; /* the trailer line being read */
};

/*
 * Takes bytes from at[0..length), the next of the message, up to the end of the first run of the
 * body's own bytes, or of the body. *used is how many were taken, *data that run (empty when there
 * is none yet). Call again with the rest; chunks->is_done: the body is complete.
 *
 * ERR_BAD_INPUT  malformed; ERR_TOO_LARGE over body_bytes_max; ERR_HEADERS_TOO_LARGE for trailers
 * Cost: constant for a chunk's data, once per byte of framing. No allocation.
 * Source: RFC 9112 section 7.1.
 */
enum err_code http_chunks_feed(struct http_chunks *chunks, const char *at, size_t length,
                               uint64_t body_bytes_max, const struct http_limits *limits,
                               size_t *used, struct span *data, struct err *err);

#endif
