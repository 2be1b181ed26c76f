/*
 * Reading answers as cheaply as can be: see bench_answer.h.
 *
 * Line by line with memchr; only lines with the initial of Content-Length are parsed. A head that
 * is whole in the bytes that were read, as nearly all are, is never copied. Bodies are counted, not
 * read.
 */
#include "client/bench/bench_answer.h"

#include <string.h>
#include <strings.h>

static enum err_code take_length(struct bench_answer *answer, const char *at, const char *end,
                                 struct err *err)
{
    uint64_t bytes = 0;

    while (at < end && *at == ' ')
        at++;
    for (; at < end && *at >= '0' && *at <= '9' && bytes < UINT64_MAX / 16; at++)
        bytes = bytes * 10 + (uint64_t)(*at - '0');
    if (at == end || *at != '\r')
        return err_set(err, ERR_INTERNAL, "an answer has a Content-Length that is no number");
    answer->body_left = bytes;
    return ERR_OK;
}

/* The head at[0..length), its empty line included. */
static enum err_code read_head(struct bench_answer *answer, const char *at, size_t length,
                               struct err *err)
{
    static const char name[] = "ontent-length:";
    const char *end = at + length, *line;
    bool has_length = false;

    if (length < 13 || memcmp(at, "HTTP/1.1 ", 9) != 0 || at[9] < '1' || at[9] > '5')
        return err_set(err, ERR_INTERNAL, "an answer is no HTTP/1.1");
    answer->status = (at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0');
    answer->body_left = 0;
    for (line = at; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));

        if (!newline)
            break;
        if ((*line | 0x20) == 'c' && newline - line > 15 &&
            strncasecmp(line + 1, name, sizeof name - 1) == 0) {
            if (take_length(answer, line + sizeof name, newline, err))
                return err->code;
            has_length = true;
        }
        line = newline + 1;
    }
    if (!has_length && answer->status != 204 && answer->status != 304)
        return err_set(err, ERR_INTERNAL, "an answer has no Content-Length");
    return ERR_OK;
}

/* The length of the head that begins at `at`, 0 when its end has not come. */
static size_t find_end(const char *at, size_t length)
{
    const char *line = at, *end = at + length;

    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));

        if (!newline)
            return 0;
        if (newline - line == 1 && *line == '\r')
            return (size_t)(newline + 1 - at);
        line = newline + 1;
    }
    return 0;
}

/* Adds to the kept beginning; the head's end is in the new bytes if anywhere. */
static enum err_code complete_head(struct bench_answer *answer, const char *at, size_t length,
                                   size_t *used, bool *has_head, struct err *err)
{
    size_t room = sizeof answer->head - answer->kept, before = answer->kept, end;
    size_t taken = length < room ? length : room;

    memcpy(answer->head + answer->kept, at, taken);
    answer->kept += taken;
    end = find_end(answer->head, answer->kept);
    *has_head = end > 0;
    *used = end ? end - before : taken;
    if (end == 0)
        return answer->kept == sizeof answer->head
                   ? err_set(err, ERR_INTERNAL, "the head of an answer has more than %d bytes",
                             BENCH_HEAD_BYTES_MAX)
                   : ERR_OK;
    answer->kept = 0;
    return read_head(answer, answer->head, end, err);
}

enum err_code bench_answer_take(struct bench_answer *answer, const char *at, size_t length,
                                size_t *used, bool *is_done, struct err *err)
{
    size_t head = 0, body;
    bool has_head = true;

    *used = 0;
    *is_done = false;
    if (answer->body_left == 0) {
        if (answer->kept == 0)
            head = find_end(at, length);
        if (head ? read_head(answer, at, head, err)
                 : complete_head(answer, at, length, &head, &has_head, err))
            return err->code;
    }
    body = length - head < answer->body_left ? length - head : (size_t)answer->body_left;
    *used = head + body;
    if (!has_head)
        return ERR_OK;
    answer->body_left -= body;
    *is_done = answer->body_left == 0;
    return ERR_OK;
}
