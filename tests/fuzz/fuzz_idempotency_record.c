/*
 * Fuzzes what the store keeps for others, and gives back as bytes: answers under an idempotency key
 * and shells of models. Byte 0 chooses; the rest is the row, in memory of its exact size. A shell
 * runs twice, the second time with its hash made anew. What is taken is what it was made of.
 */
#include "api/idempotency_record.h"
#include "base/check.h"
#include "http/reply.h"
#include "sand/body/shell.h"
#include "base/content_hash.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { HASH_BYTES = 32, SHELL_RADIUS_AT = 40, SHELL_MODEL_AT = 8 };

/* Sent again, it has the headers that it should have and no others. */
static void send_check(const struct idempotency_record *answer)
{
    struct http_budget budget = {.most = SIZE_MAX};
    struct http_reply reply = {.budget = &budget};
    size_t lines = 0;

    http_reply_reset(&reply);
    idempotency_record_send(answer, &reply);
    CHECK(!reply.is_failed && reply.status == answer->status);
    CHECK(reply.body_length == answer->body_length);
    for (size_t i = 0; i < reply.headers_length; i++)
        lines += reply.headers[i] == '\n';
    CHECK(lines == (size_t)(answer->revision != 0) +
                       (size_t)(answer->revision != 0 && answer->has_tag) +
                       (size_t)(answer->location[0] != '\0'));
    http_reply_free(&reply);
}

static void answer_check(const uint8_t *bytes, size_t length)
{
    struct idempotency_record answer;
    size_t again_length = 0;
    void *again;

    if (!idempotency_record_decode(bytes, length, &answer))
        return;
    CHECK(strlen(answer.location) <= KEPT_LOCATION_MAX);
    again = idempotency_record_encode(&answer, &again_length);
    CHECK(again && again_length == length && memcmp(again, bytes, length) == 0);
    free(again);
    send_check(&answer);
}

static void shell_check(const uint8_t *bytes, size_t length)
{
    uint8_t model[SHELL_HASH_BYTES] = {0};
    double radius_m = 0.1;
    struct raster_bytes again;
    struct shell shell;
    struct err err = {.code = ERR_OK};

    if (length >= SHELL_RADIUS_AT + sizeof radius_m) {
        memcpy(model, bytes + SHELL_MODEL_AT, sizeof model);
        memcpy(&radius_m, bytes + SHELL_RADIUS_AT, sizeof radius_m);
    }
    if (shell_decode(bytes, length, model, radius_m, &shell, &err) != ERR_OK) {
        CHECK(err.code == ERR_DAMAGED && err.msg[0] != '\0' && !shell.offsets_m);
        return;
    }
    CHECK(shell.particles > 0 && shell.particles <= SHELL_SPHERES_MAX);
    CHECK(shell_encode(&shell, model, &again, &err) == ERR_OK && again.length == length);
    free(again.at);
    shell_free(&shell);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t length = size ? size - 1 : 0;
    uint8_t *exact = calloc(1, length ? length : 1);

    CHECK(exact);
    if (length)
        memcpy(exact, bytes + 1, length);
    if (size && bytes[0] & 1) {
        shell_check(exact, length);
        if (length > HASH_BYTES) {
            content_hash(exact, length - HASH_BYTES, exact + length - HASH_BYTES);
            shell_check(exact, length);
        }
    } else {
        answer_check(exact, length);
    }
    free(exact);
    return 0;
}
