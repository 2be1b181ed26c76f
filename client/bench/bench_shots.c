/*
 * Requests as bytes: see bench_shots.h.
 *
 * Made once, before anything is measured; the loop that sends them only steps from offset to
 * offset. Two passes over the same function: the first measures, the second writes.
 */
#include "client/bench/bench_shots.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)1 << 30)

static enum err_code check_target(struct bench_text target, struct err *err)
{
    if (target.length == 0 || target.at[0] != '/')
        return err_set(err, ERR_BAD_INPUT, "'%.*s' is no target: it must begin with '/'",
                       target.length < 80 ? (int)target.length : 80, target.at);
    for (size_t i = 0; i < target.length; i++)
        if ((unsigned char)target.at[i] <= 0x20 || (unsigned char)target.at[i] >= 0x7f)
            return err_set(err, ERR_BAD_INPUT, "a target holds byte 0x%02x",
                           (unsigned char)target.at[i]);
    return ERR_OK;
}

/* One request into out[room] (NULL, 0: only its length), which has room for a NUL after it. */
static size_t put_shot(const struct bench_words *words, size_t i, char *out, size_t room)
{
    struct bench_text target = words->targets[i % words->target_count];
    struct bench_text body = {"", 0};
    char length[128] = "";
    const char *authorization = words->authorization ? words->authorization : "";
    size_t head;

    if (words->body_count) {
        body = words->bodies[i % words->body_count];
        snprintf(length, sizeof length, "Content-Type: %.64s\r\nContent-Length: %zu\r\n",
                 words->media_type, body.length);
    }
    head = (size_t)snprintf(out, room, "%s %s%.*s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n",
                            words->body_count ? "POST" : "GET", words->prefix, (int)target.length,
                            target.at, words->host, authorization, *authorization ? "\r\n" : "",
                            length);
    if (out)
        memcpy(out + head, body.at, body.length);
    return head + body.length;
}

static enum err_code measure(struct bench_shots *shots, const struct bench_words *words,
                             struct err *err)
{
    size_t total = 0;

    for (size_t i = 0; i < shots->count + shots->run; i++) {
        shots->starts[i] = total;
        total += put_shot(words, i % shots->count, NULL, 0);
        if (total > BYTES_MAX)
            return err_set(err, ERR_TOO_LARGE, "the requests have more than %zu bytes together",
                           BYTES_MAX);
    }
    shots->starts[shots->count + shots->run] = total;
    return ERR_OK;
}

enum err_code bench_shots_make(struct bench_shots *shots, const struct bench_words *words,
                               size_t run, struct err *err)
{
    size_t all;

    *shots = (struct bench_shots){.run = run};
    shots->count =
        words->target_count > words->body_count ? words->target_count : words->body_count;
    all = shots->count + run;
    for (size_t i = 0; i < words->target_count; i++)
        if (check_target(words->targets[i], err))
            return err->code;
    shots->starts = calloc(all + 1, sizeof *shots->starts);
    if (!shots->starts)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    if (measure(shots, words, err))
        return err->code;
    shots->bytes = malloc(shots->starts[all] + 1);
    if (!shots->bytes)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < all; i++)
        put_shot(words, i % shots->count, shots->bytes + shots->starts[i],
                 shots->starts[all] + 1 - shots->starts[i]);
    return ERR_OK;
}

void bench_shots_free(struct bench_shots *shots)
{
    free(shots->starts);
    free(shots->bytes);
    *shots = (struct bench_shots){0};
}
