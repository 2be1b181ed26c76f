/*
 * What a write is made of: kept answers there and back and cut anywhere, entity tags, the hash of a
 * request, and the union of rectangles beside brute force.
 */
#include "api/idempotency_record.h"
#include "api/precondition.h"
#include "api/rect_set.h"
#include "api/write.h"
#include "base/content_hash.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- kept answers ---------------------------------------------------------------------------- */

static void a_kept_answer_reads_back(void **state)
{
    struct idempotency_record answer = {201, true, 7, "/v1/locales/a", "{\"id\":\"a\"}", 10}, back;
    size_t length = 0;
    unsigned char *bytes = idempotency_record_encode(&answer, &length);

    (void)state;
    assert_true(idempotency_record_decode(bytes, length, &back));
    assert_int_equal(back.status, 201);
    assert_true(back.has_tag && back.revision == 7 && back.body_length == 10);
    assert_string_equal(back.location, answer.location);
    assert_memory_equal(back.body, answer.body, 10);
    for (size_t cut = 0; cut < length; cut++) {
        unsigned char *exact = malloc(cut + (cut == 0));

        memcpy(exact, bytes, cut);
        assert_false(idempotency_record_decode(exact, cut, &back));
        free(exact);
    }
    free(bytes);
    assert_false(idempotency_record_decode(NULL, 0, &back));
}

static void a_location_has_all_the_room_that_it_may(void **state)
{
    struct idempotency_record answer = {.status = 201, .body = "{}", .body_length = 2}, back;
    size_t length = 0;
    unsigned char *bytes;

    (void)state;
    memset(answer.location, 'a', KEPT_LOCATION_MAX);
    bytes = idempotency_record_encode(&answer, &length);
    assert_true(idempotency_record_decode(bytes, length, &back));
    assert_string_equal(back.location, answer.location);
    free(bytes);
}

static void a_damaged_answer_is_refused(void **state)
{
    struct idempotency_record answer = {200, false, 1, "/v1/locales/a", "{}", 2}, back;
    size_t length = 0;
    unsigned char *bytes = idempotency_record_encode(&answer, &length);
    static const struct {
        size_t at;
        unsigned char value;
    } wrong[] = {{0, 2},
                 {1, 2},
                 {2, 100},
                 {3, 1},
                 {2, 204},
                 {12, 255},
                 {13, 1},
                 {14, 3},
                 {17, 255},
                 {KEPT_HEAD_BYTES, '\n'},
                 {KEPT_HEAD_BYTES + 3, 0xff}};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        unsigned char kept = bytes[wrong[i].at];

        bytes[wrong[i].at] = wrong[i].value;
        assert_false(idempotency_record_decode(bytes, length, &back));
        bytes[wrong[i].at] = kept;
    }
    assert_true(idempotency_record_decode(bytes, length, &back));
    free(bytes);
}

/* ---- entity tags ----------------------------------------------------------------------------- */

static const struct {
    const char *header;
    uint64_t current;
    bool weak_too, is_good, is_any;
    uint64_t revision;
} tags[] = {
    {"*", 5, false, true, true, UINT64_MAX},
    {" * ", 5, false, true, true, UINT64_MAX},
    {"\"5\"", 5, false, true, false, 5},
    {"\"4\", \"5\"", 5, false, true, false, 5},
    {"\"9\",\"5\",\"4\"", 5, false, true, false, 5},
    {"\"9\", \"7\"", 5, false, true, false, 7},
    {"\"3\", \"4\"", 5, false, true, false, 4},
    {"\"3\", \"9\"", 5, false, true, false, 9},
    {", \"5\" ,,", 5, false, true, false, 5},
    {"W/\"5\"", 5, false, true, false, UINT64_MAX},
    {"W/\"5\"", 5, true, true, false, 5},
    {"W/\"5\", \"6\"", 5, false, true, false, 6},
    {"\"05\"", 5, false, true, false, UINT64_MAX},
    {"\"0\"", 0, false, true, false, UINT64_MAX},
    {"\"\"", 5, false, true, false, UINT64_MAX},
    {"\"five\"", 5, false, true, false, UINT64_MAX},
    {"\"1000000000000000000\"", 5, false, true, false, UINT64_MAX},
    {"5", 5, false, false, false, 0},
    {"\"5", 5, false, false, false, 0},
    {"\"5\" \"6\"", 5, false, false, false, 0},
    {"\"5\"x", 5, false, false, false, 0},
    {"w/\"5\"", 5, false, false, false, 0},
    {"W/5", 5, false, false, false, 0},
    {"\"5\", *", 5, false, false, false, 0},
    {"\"a b\"", 5, false, false, false, 0},
    {"", 5, false, false, false, 0},
    {" , ", 5, false, false, false, 0},
};

static void tags_are_read_as_the_rfc_wants(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        struct span header = {tags[i].header, strlen(tags[i].header)};
        struct tag_match match;
        bool is_good = tags_read(header, tags[i].current, tags[i].weak_too, &match);

        if (is_good != tags[i].is_good ||
            (is_good && (match.is_any != tags[i].is_any || match.revision != tags[i].revision)))
            fail_msg("%s: good %d, any %d, revision %llu", tags[i].header, is_good, match.is_any,
                     (unsigned long long)match.revision);
    }
}

/* ---- the hash of a request ------------------------------------------------------------------- */

static struct call call_of(const char *media, const char *body)
{
    return (struct call){.media_type = {media, strlen(media)}, .body = {body, strlen(body)}};
}

static void add(struct call *call, const char *name, const char *value)
{
    call->query[call->query_count++] =
        (struct http_query_item){{name, strlen(name)}, {value, strlen(value)}};
}

static void the_order_of_the_query_does_not_make_another_request(void **state)
{
    struct call a = call_of("m", "body"), b = a, c = a;
    uint8_t of_a[32], of_b[32], of_c[32];

    (void)state;
    add(&a, "x", "1");
    add(&a, "xy", "2");
    add(&b, "xy", "2");
    add(&b, "x", "1");
    add(&c, "x", "12");
    add(&c, "y", "");
    write_request_hash(&a, "PUT /", of_a);
    write_request_hash(&b, "PUT /", of_b);
    write_request_hash(&c, "PUT /", of_c);
    assert_memory_equal(of_a, of_b, 32);
    assert_memory_not_equal(of_a, of_c, 32);
    write_request_hash(&a, "POST /", of_b);
    assert_memory_not_equal(of_a, of_b, 32);
    b = call_of("mbod", "y");
    c = call_of("m", "body");
    write_request_hash(&b, "PUT /", of_b);
    write_request_hash(&c, "PUT /", of_c);
    assert_memory_not_equal(of_b, of_c, 32);
}

static void a_body_in_pieces_has_the_hash_of_the_whole(void **state)
{
    struct content_hasher hasher;
    struct call whole, pieces;
    uint8_t bytes[700], body_hash[32], a[32], b[32];
    uint32_t random = 1;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        content_hash_begin(&hasher);
        for (size_t at = 0, some; at < length; at += some) {
            random = random * 1664525 + 1013904223;
            some = (random >> 16) % (random >> 31 ? 300 : 20);
            some = some < length - at ? some : length - at;
            content_hash_add(&hasher, bytes + at, some);
        }
        content_hash_end(&hasher, body_hash);
        whole = pieces = call_of("m", "");
        whole.body = (struct span){(const char *)bytes, length};
        pieces.body_hash = body_hash;
        write_request_hash(&whole, "PUT /", a);
        write_request_hash(&pieces, "PUT /", b);
        assert_memory_equal(a, b, 32);
    }
}

/* ---- rectangles ------------------------------------------------------------------------------ */

enum { SIDE = 96 };

static void paint(bool *map, const struct sample_rect *r)
{
    for (uint32_t y = r->row; y < r->row + r->rows; y++)
        for (uint32_t x = r->column; x < r->column + r->cols; x++)
            map[y * SIDE + x] = true;
}

static void check_set(const struct rect_set *set, const bool *wanted, bool is_exact)
{
    bool map[SIDE * SIDE] = {false};

    assert_true(set->count <= RECT_SET_MAX);
    for (size_t i = 0; i < set->count; i++)
        paint(map, &set->rects[i]);
    for (size_t i = 0; i < SIDE * SIDE; i++)
        assert_true(is_exact ? map[i] == wanted[i] : map[i] || !wanted[i]);
}

static void a_set_of_rects_holds_every_sample(void **state)
{
    static struct rect_set set;
    struct random random = {7};

    (void)state;
    for (int round = 0; round < 60; round++) {
        uint32_t count = random_below(&random, 300), size = 1 + random_below(&random, 40);
        bool wanted[SIDE * SIDE] = {false};

        set.count = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct sample_rect r = {
                random_below(&random, SIDE - 40), random_below(&random, SIDE - 40),
                1 + random_below(&random, size), 1 + random_below(&random, size)};

            rect_set_add(&set, &r);
            paint(wanted, &r);
        }
        rect_set_finish(&set);
        check_set(&set, wanted, true);
        for (size_t i = 0; i < set.count; i++)
            for (size_t k = 0; k < set.count; k++)
                assert_true(i == k || set.rects[i].column < set.rects[k].column ||
                            set.rects[i].row < set.rects[k].row ||
                            set.rects[i].column + set.rects[i].cols >
                                set.rects[k].column + set.rects[k].cols ||
                            set.rects[i].row + set.rects[i].rows >
                                set.rects[k].row + set.rects[k].rows);
    }
}

static void too_many_rects_are_united(void **state)
{
    static struct rect_set set;
    bool wanted[SIDE * SIDE] = {false};

    (void)state;
    set.count = 0;
    for (uint32_t y = 0; y < SIDE; y += 2) {
        for (uint32_t x = 0; x < SIDE; x += 2) {
            struct sample_rect r = {x, y, 1, 1};

            rect_set_add(&set, &r);
            paint(wanted, &r);
        }
    }
    rect_set_finish(&set);
    check_set(&set, wanted, false);
    assert_true(set.count > 100);
    rect_set_add(&set, &(struct sample_rect){0, 0, SIDE, SIDE});
    assert_int_equal(set.count, 1);
}

/* Samples that changed, and samples that the set names, of a wide field. */
static void unite_wide(uint32_t count, uint32_t places, double most)
{
    enum { WIDE = 2000 };
    static struct rect_set set;
    static bool wanted[WIDE * WIDE], named[WIDE * WIDE];
    struct random random = {count};
    size_t changed = 0, told = 0;
    struct sample_rect at[2048];

    memset(wanted, 0, sizeof wanted);
    memset(named, 0, sizeof named);
    set.count = 0;
    for (uint32_t i = 0; i < places; i++)
        at[i] = (struct sample_rect){random_below(&random, WIDE - 8),
                                     random_below(&random, WIDE - 8), 2, 2};
    for (uint32_t i = 0; i < count; i++) {
        struct sample_rect r = at[i % places];

        r.column += 2 * (i / places % 2);
        r.row += 2 * (i / places / 2);
        rect_set_add(&set, &r);
        for (uint32_t y = r.row; y < r.row + r.rows; y++)
            for (uint32_t x = r.column; x < r.column + r.cols; x++)
                wanted[y * WIDE + x] = true;
    }
    rect_set_finish(&set);
    assert_true(set.count <= RECT_SET_MAX && set.count > RECT_SET_MAX / 2);
    for (size_t i = 0; i < set.count; i++)
        for (uint32_t y = set.rects[i].row; y < set.rects[i].row + set.rects[i].rows; y++)
            memset(&named[y * WIDE + set.rects[i].column], 1, set.rects[i].cols);
    for (size_t i = 0; i < sizeof wanted; i++) {
        assert_true(named[i] || !wanted[i]);
        changed += wanted[i];
        told += named[i];
    }
    if ((double)told > most * (double)changed)
        fail_msg("%zu samples for %zu that changed", told, changed);
}

static void what_is_united_names_little_that_did_not_change(void **state)
{
    (void)state;
    unite_wide(900, 900, 1);    /* few enough */
    unite_wide(1400, 1400, 20); /* scattered: some have to be united over the gaps between them */
    unite_wide(1400, 700, 1.1); /* two side by side at each place */
    unite_wide(2800, 700, 1.1); /* four; the room is full in between */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_united_names_little_that_did_not_change),
        cmocka_unit_test(a_kept_answer_reads_back),
        cmocka_unit_test(a_location_has_all_the_room_that_it_may),
        cmocka_unit_test(a_damaged_answer_is_refused),
        cmocka_unit_test(tags_are_read_as_the_rfc_wants),
        cmocka_unit_test(the_order_of_the_query_does_not_make_another_request),
        cmocka_unit_test(a_body_in_pieces_has_the_hash_of_the_whole),
        cmocka_unit_test(a_set_of_rects_holds_every_sample),
        cmocka_unit_test(too_many_rects_are_united),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
