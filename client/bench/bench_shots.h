/*
 * The requests that a load is made of, ready to be sent.
 */
#ifndef KOTA_CLIENT_BENCH_SHOTS_H
#define KOTA_CLIENT_BENCH_SHOTS_H

#include "base/err.h"

#include <stddef.h>

struct bench_text {
    const char *at;
    size_t length;
};

/* The content of the requests. Request i has target i and body i, each in turn. */
struct bench_words {
    const struct bench_text *targets; /* [target_count], each begins with '/'; at least one */
    size_t target_count;
    const struct bench_text *bodies; /* [body_count]; none: GET, else POST */
    size_t body_count;
    const char *host;          /* of the Host header */
    const char *prefix;        /* before each target; "" for none */
    const char *authorization; /* a whole header line without its end, or NULL */
    const char *media_type;    /* of the bodies */
};

/*
 * Requests one after the other, with the first ones again at the end: any `run` successive ones,
 * beginning at any of the `count`, are one piece of memory.
 */
struct bench_shots {
    char *bytes;
    size_t *starts; /* [count + run + 1] offsets into bytes */
    size_t count, run;
};

/* ERR_BAD_INPUT (a target that is none), ERR_TOO_LARGE (over 1 GiB), ERR_NO_MEMORY. */
enum err_code bench_shots_make(struct bench_shots *shots, const struct bench_words *words,
                               size_t run, struct err *err);
void bench_shots_free(struct bench_shots *shots);

#endif
