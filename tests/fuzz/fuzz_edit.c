/*
 * Fuzzes the decoding of edits: byte 0 says JSON or f32, then up to a NUL the query (`a=b&c=d`),
 * then the body. What is taken must be whole, and its heights those that the JSON parser finds; an
 * error must give its reason.
 */
#include "api/edit_decode.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/api_call.h"

#include <math.h>

static const char *const media_types[] = {"application/json", "application/vnd.kota.f32"};

/* Read in two ways; cJSON's number rounded once. */
static void compare(struct span body, const struct edit *edit)
{
    cJSON *json = cJSON_ParseWithLengthOpts(body.at, body.length, NULL, false);
    const cJSON *item;
    size_t n = 0;

    if (!json)
        abort();
    item = json_member(json, "heights");
    for (item = item->child; item; item = item->next, n++) {
        float wanted = cJSON_IsNull(item) ? NAN : (float)item->valuedouble;

        if (isnan(wanted) ? !isnan(edit->heights_m[n])
                          : memcmp(&wanted, &edit->heights_m[n], sizeof wanted) != 0)
            abort();
    }
    if (n != (size_t)edit->rect.cols * edit->rect.rows)
        abort();
    cJSON_Delete(json);
}

static void check(const struct call *call, const struct edit *edit, const struct err *err)
{
    if (err->code != ERR_OK && (err->msg[0] == '\0' || edit->heights_m))
        abort();
    if (err->code != ERR_OK || edit->kind == EDIT_BRUSH)
        return;
    if (!edit->heights_m)
        abort();
    for (size_t i = 0; i < (size_t)edit->rect.cols * edit->rect.rows; i++)
        if (isinf(edit->heights_m[i]))
            abort();
    if (call->media_type.length == strlen(media_types[0]))
        compare(call->body, edit);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct api api;
    const uint8_t *end = size > 1 ? memchr(bytes + 1, '\0', size - 1) : NULL;
    char query[API_TEST_QUERY_BYTES] = "", layer[WORLD_ID_MAX + 1];
    struct call call = {.api = &api};
    struct err err = {.code = ERR_OK};
    struct edit edit;
    const char *media;

    if (!end || (size_t)(end - bytes) > sizeof query)
        return 0;
    api_limits_init(&api.limits);
    api.limits.world.edit_samples_max = 4096;
    memcpy(query, bytes + 1, (size_t)(end - bytes) - 1);
    media = media_types[bytes[0] & 1];
    call.media_type = (struct span){media, strlen(media)};
    call.body = (struct span){(const char *)end + 1, size - (size_t)(end - bytes) - 1};
    api_test_query(query, &call);
    edit_decode(&call, &edit, layer, &err);
    check(&call, &edit, &err);
    free((void *)edit.heights_m);
    call_close(&call);
    return 0;
}
