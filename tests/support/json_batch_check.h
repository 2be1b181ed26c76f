/*
 * A body with a batch, read from its text and read the long way (strict check, cJSON, getters): the
 * same verdict, error, numbers and options. For a unit test and a fuzzer; a difference is told and
 * aborts.
 */
#ifndef KOTA_TESTS_JSON_BATCH_CHECK_H
#define KOTA_TESTS_JSON_BATCH_CHECK_H

#include "api/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BATCH_SHAPES = 5 };

static const struct json_shape *const json_batch_shapes[JSON_BATCH_SHAPES] = {
    &json_shape_points2, &json_shape_points3, &json_shape_path, &json_shape_rays,
    &json_shape_segments};

static const char *const json_batch_options[] = {"layer", "interp", "mode", "samples", NULL};

static inline void json_batch_must(bool condition, const char *what, struct span body)
{
    if (condition)
        return;
    fprintf(stderr, "json_batch_check.h: %s: %.*s\n", what, (int)body.length, body.at);
    abort();
}

/* The long way, as if there were no other. */
static inline enum err_code json_batch_long_way(struct call *call, const struct json_shape *shape,
                                                struct json_batch *out, struct err *err)
{
    const char *const items[] = {shape->member, NULL};

    *out = (struct json_batch){.count = 0};
    if (options_open_json(call, items, json_batch_options, err))
        return err->code;
    return option_batch(call, shape, out, err);
}

static inline bool json_batch_same_error(const struct err *a, const struct err *b)
{
    return a->code == b->code &&
           (a->code == ERR_OK ||
            (strcmp(a->msg, b->msg) == 0 && strcmp(a->pointer, b->pointer) == 0 &&
             a->has_limit == b->has_limit &&
             (!a->has_limit || (a->limit == b->limit && a->got == b->got))));
}

/* True when the body was taken; *is_short: its batch was read from the text. */
static inline bool json_batch_check(struct api *api, const struct json_shape *shape,
                                    struct span body, bool *is_short)
{
    const char *const items[] = {shape->member, NULL};
    struct call a = {.api = api, .body = body}, b = {.api = api, .body = body};
    struct err err_a = {.code = ERR_OK}, err_b = {.code = ERR_OK};
    struct json_batch batch_a = {.count = 0}, batch_b;
    bool is_taken;

    *is_short = false;
    if (options_open_batch(&a, shape, items, json_batch_options, &err_a) == ERR_OK) {
        *is_short = a.batch.count > 0;
        option_batch(&a, shape, &batch_a, &err_a);
    }
    json_batch_long_way(&b, shape, &batch_b, &err_b);
    is_taken = err_b.code == ERR_OK;
    json_batch_must(json_batch_same_error(&err_a, &err_b), "the errors differ", body);
    if (is_taken) {
        json_batch_must(batch_a.count == batch_b.count, "the counts differ", body);
        json_batch_must(memcmp(batch_a.numbers, batch_b.numbers,
                               batch_a.count * shape->stride * sizeof(double)) == 0,
                        "the numbers differ", body);
        for (const char *const *name = json_batch_options; *name; name++) {
            char *x = cJSON_PrintUnformatted(json_member(a.json, *name));
            char *y = cJSON_PrintUnformatted(json_member(b.json, *name));

            json_batch_must(x && y ? strcmp(x, y) == 0 : x == y, "the options differ", body);
            cJSON_free(x);
            cJSON_free(y);
        }
    }
    call_close(&a);
    call_close(&b);
    return is_taken;
}

#endif
