/*
 * Fuzzes the calls: bytes to decode, ask, encode, over a small world in memory.
 *
 *   byte 0        which call
 *   byte 1        bits 0, 1, 5: which locale; bits 2-4: JSON, f32, f64, no media type, form
 *   up to a NUL   the query (as `a=b&c=d`)
 *   the rest      the body
 *
 * An answer in JSON must pass the checker, unless it was asked to say NaN; an error must give its
 * reason.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/support/api_call.h"
#include "tests/support/json_tape_check.h"

enum kind { BYTES, DOCUMENT, DOCUMENT_OR_NAN };

static const struct {
    call_answer answer;
    enum kind kind;
} calls[] = {
    {height_get_answer, DOCUMENT},
    {height_post_answer, DOCUMENT},
    {profile_post_answer, DOCUMENT},
    {ray_post_answer, DOCUMENT},
    {los_post_answer, DOCUMENT},
    {pick_post_answer, DOCUMENT},
    {contact_post_answer, DOCUMENT},
    {contains_post_answer, DOCUMENT},
    {tile_get_answer, BYTES},
    {elevation_get_answer, DOCUMENT_OR_NAN},
    {elevation_post_answer, DOCUMENT_OR_NAN},
    {dataset_get_answer, DOCUMENT_OR_NAN},
    {dataset_post_answer, DOCUMENT_OR_NAN},
    {lit_post_answer, DOCUMENT},
    {locate_post_answer, DOCUMENT},
    {world_ray_post_answer, DOCUMENT},
    {world_pick_post_answer, DOCUMENT},
    {world_contact_post_answer, DOCUMENT},
    {contact_get_answer, DOCUMENT},
    {ray_get_answer, DOCUMENT},
    {los_get_answer, DOCUMENT},
    {pick_get_answer, DOCUMENT},
    {sweep_post_answer, DOCUMENT},
    {move_post_answer, DOCUMENT},
};

static const char *const locales[8] = {"hills",    "twin",  "tilted", "bare",
                                       "crossing", "house", "earth",  "hills"};
static const char *const media_types[] = {"application/json", "application/vnd.kota.f32",
                                          "application/vnd.kota.f64", "",
                                          "application/x-www-form-urlencoded"};

/* The world of api_call.h, and `earth`, which has a place on the Earth. */
static void open_world(struct api_test *test)
{
    struct world_change change = {
        .kind = WORLD_PUT_LOCALE, .locale_id = "earth", .manifest = locale_manifest_default};

    api_test_open(test);
    change.manifest.has_geo = true;
    change.manifest.geo_lat_deg = 46.5;
    change.manifest.geo_lng_deg = 8;
    api_test_must(world_apply(test->world, &change, &test->err) == ERR_OK, test->err.msg);
    api_test_layer(test, "earth", "ground", 0);
    world_unpin(test->world, 0, test->snapshot);
    test->snapshot = world_pin(test->world, 0);
}

/* Elevations are asked of lists, too. */
static const char *place_of(size_t which, size_t place)
{
    bool is_list =
        calls[which].answer == dataset_get_answer || calls[which].answer == dataset_post_answer;

    return is_list && place == 7 ? "bare,hills,,earth" : locales[place];
}

static bool is_checked(const struct api_test *test, size_t which, size_t media)
{
    if (test->err.code != ERR_OK || calls[which].kind == BYTES || media == 1 || media == 2)
        return false;
    return calls[which].kind == DOCUMENT || !strstr(test->out, "NaN");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct api_test test;
    static bool is_open;
    char query[API_TEST_QUERY_BYTES] = "";
    const uint8_t *end;
    size_t which, media, place, length;

    if (!is_open)
        open_world(&test);
    is_open = true;
    if (size < 3)
        return 0;
    which = bytes[0] % (sizeof calls / sizeof *calls);
    media = (bytes[1] >> 2 & 7) % (sizeof media_types / sizeof *media_types);
    place = (size_t)((bytes[1] & 3) | (bytes[1] >> 5 & 1) << 2);
    end = memchr(bytes + 2, '\0', size - 2);
    if (!end)
        return 0;
    length = (size_t)(end - bytes) - 2;
    if (length >= sizeof query)
        return 0;
    memcpy(query, bytes + 2, length);
    api_test_ask(&test, calls[which].answer, place_of(which, place), "0/0/0", query,
                 media_types[media], end + 1, size - 3 - length);
    if (test.err.code != ERR_OK && test.err.msg[0] == '\0')
        abort();
    if (is_checked(&test, which, media)) {
        struct err err = {.code = ERR_OK};

        if (json_check(test.out, test.out_used, &json_limits_default, &err) != ERR_OK &&
            err.code != ERR_TOO_LARGE)
            abort();
    }
    return 0;
}
