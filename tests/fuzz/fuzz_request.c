/*
 * Fuzzes the calls: bytes to decode, ask, encode, over a small world in memory.
 *
 *   byte 0        which call
 *   byte 1        bits 0-1: which locale; bits 2-3: JSON, f32, f64, no media type
 *   up to a NUL   the query (as `a=b&c=d`)
 *   the rest      the body
 *
 * An answer in JSON must pass the checker; an error must give its reason.
 */
#include "api/json_check.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/api_call.h"

static const struct {
    call_answer answer;
    bool is_json;
} calls[] = {
    {height_get_answer, true},   {height_post_answer, true},   {profile_post_answer, true},
    {ray_post_answer, true},     {los_post_answer, true},      {pick_post_answer, true},
    {contact_post_answer, true}, {contains_post_answer, true}, {tile_get_answer, false},
};

static const char *const locales[] = {"hills", "twin", "tilted", "bare"};
static const char *const media_types[] = {"application/json", "application/vnd.kota.f32",
                                          "application/vnd.kota.f64", ""};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct api_test test;
    static bool is_open;
    char query[API_TEST_QUERY_BYTES] = "";
    const uint8_t *end;
    size_t which, media, length;

    if (!is_open)
        api_test_open(&test);
    is_open = true;
    if (size < 3)
        return 0;
    which = bytes[0] % (sizeof calls / sizeof *calls);
    media = bytes[1] >> 2 & 3;
    end = memchr(bytes + 2, '\0', size - 2);
    if (!end)
        return 0;
    length = (size_t)(end - bytes) - 2;
    if (length >= sizeof query)
        return 0;
    memcpy(query, bytes + 2, length);
    api_test_ask(&test, calls[which].answer, locales[bytes[1] & 3], "0/0/0", query,
                 media_types[media], end + 1, size - 3 - length);
    if (test.err.code != ERR_OK && test.err.msg[0] == '\0')
        abort();
    if (test.err.code == ERR_OK && calls[which].is_json && (media == 0 || media == 3)) {
        struct err err = {.code = ERR_OK};

        if (json_check(test.out, test.out_used, &json_limits_default, &err) != ERR_OK &&
            err.code != ERR_TOO_LARGE)
            abort();
    }
    return 0;
}
