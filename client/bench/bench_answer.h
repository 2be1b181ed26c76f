/*
 * The end of an answer and its status; the rest is ignored.
 */
#ifndef KOTA_CLIENT_BENCH_ANSWER_H
#define KOTA_CLIENT_BENCH_ANSWER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A head that arrives in pieces is put together here. */
#define BENCH_HEAD_BYTES_MAX 8192

/* Zeroed before the first answer of a connection. */
struct bench_answer {
    uint64_t body_left;
    int status;
    size_t kept; /* bytes of a head that is not complete */
    char head[BENCH_HEAD_BYTES_MAX];
};

/*
 * Takes bytes up to the end of the next answer. *used is their number; *is_done: it has ended.
 * ERR_INTERNAL  not HTTP/1.1, no Content-Length, or a head beyond BENCH_HEAD_BYTES_MAX
 */
enum err_code bench_answer_take(struct bench_answer *answer, const char *at, size_t length,
                                size_t *used, bool *is_done, struct err *err);

#endif
