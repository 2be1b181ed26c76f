/*
 * Batches read from the tape of a body against the long way through the checker and cJSON: for
 * plain bodies, for the texts around them, for every truncation, and for random changes.
 */
#include "tests/support/json_batch_check.h"
#include "api/api.h"
#include "tests/support/json_suite.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct json_shape *shape_of(const char *member)
{
    for (size_t i = 0; i < JSON_BATCH_SHAPES; i++)
        if (strcmp(json_batch_shapes[i]->member, member) == 0)
            return json_batch_shapes[i];
    return NULL;
}

/* In a block of exactly its size, so that a read past the end is seen. */
static bool check_text(const struct json_shape *shape, const char *text, size_t length,
                       bool *is_plain)
{
    struct api api = {0};
    char *copy = malloc(length + (length == 0));
    bool is_taken;

    assert_non_null(copy);
    memcpy(copy, text, length);
    api_limits_init(&api.limits);
    api.limits.items_max = 5;
    is_taken = json_batch_check(&api, shape, (struct span){copy, length}, is_plain);
    free(copy);
    return is_taken;
}

static void plain_bodies_are_read_from_the_tape(void **state)
{
    static const struct {
        const char *member, *text;
        bool is_plain;
    } cases[] = {
        {"points", "{\"points\":[[1,2]]}", true},
        {"points", "{\"points\":[[1,2],[3.5,-4e2],[0,-0.0]]}", true},
        {"points", " { \"points\" : [ [ 1 , 2 ] , [\t3,\r\n4 ] ] } \n", true},
        {"points", "{\"points\":[[1,2]],\"interp\":\"nearest\"}", true},
        {"points", "{\"interp\":\"nearest\",\"points\":[[1,2]]}", true},
        {"points",
         "{\"layer\":\"\\\"points\\\":[[1,2]]\",\"points\":[[3,4]],\"mode\":[{\"points\":"
         "[[5,6]]}]}",
         true},
        {"points", "{\"\\u0070oints\":[[1,2]]}", true},
        {"points", "{\"points\":[[1,2],[3,4],[5,6],[7,8],[9,10]]}", true},
        {"points", "{\"points\":[[0.1234567890123456789012345,12345678901234567890123]]}", true},
        {"path", "{\"path\":[[1,2],[3,4]],\"samples\":7}", true},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[4,5,6]}]}", true},
        {"rays", "{\"rays\":[{\"t_max\":7,\"direction\":[4,5,6],\"origin\":[1,2,3]}]}", true},
        {"segments", "{\"segments\":[{\"to\":[4,5,6] , \"from\":[1,2,3]}],\"mode\":null}", true},
        /* what is unusual becomes a tree, and is taken */
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[4,5,6],\"t_max\":null}]}", false},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[4,5,6],\"trace\":true}]}", false},
        {"rays", "{\"rays\":[{\"orig\\u0069n\":[1,2,3],\"direction\":[4,5,6]}]}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_plain;

        if (!check_text(shape_of(cases[i].member), cases[i].text, strlen(cases[i].text), &is_plain))
            fail_msg("refused: %s", cases[i].text);
        if (is_plain != cases[i].is_plain)
            fail_msg("%s: %s", is_plain ? "plain" : "unusual", cases[i].text);
    }
}

static void bad_bodies_are_refused_as_ever(void **state)
{
    static const struct {
        const char *member, *text;
    } cases[] = {
        {"points", ""},
        {"points", "[]"},
        {"points", "{}"},
        {"points", "{\"points\":[]}"},
        {"points", "{\"points\":5}"},
        {"points", "{\"points\":[[1,2]],\"points\":[[1,2]]}"},
        {"points", "{\"points\":[[1,2]],\"points\":1}"},
        {"points", "{\"points\":[[1,2]],\"bogus\":1}"},
        {"points", "{\"bogus\":1,\"points\":[[1,2]]}"},
        {"points", "{\"points\":[[1,2]]"},
        {"points", "{\"points\":[[1,2]]}}"},
        {"points", "{\"points\":[[1,2]],}"},
        {"points", "{\"points\":[[1,2],]}"},
        {"points", "{\"points\":[[1,2,3]]}"},
        {"points", "{\"points\":[[1]]}"},
        {"points", "{\"points\":[[1,\"2\"]]}"},
        {"points", "{\"points\":[[1,null]]}"},
        {"points", "{\"points\":[[1,1e999]]}"},
        {"points", "{\"points\":[[1,01]]}"},
        {"points", "{\"points\":[[1,2] [3,4]]}"},
        {"points", "{\"points\":[[1,2],[1,2],[1,2],[1,2],[1,2],[1,2]]}"},
        {"points", "{\"points\":[[1,1.0000000000000000000000000000000000000000000000000000000000000"
                   "1]]}"},
        {"points", "{\"a\\\"points\":[[1,2]]}"},
        {"points", "{\"x\" \"points\":[[1,2]]}"},
        {"points", "{\"x\":{\"points\":[[1,2]]}"},
        {"points", "x{\"points\":[[1,2]]}"},
        {"points", "{\"points\" [[1,2]]}"},
        {"points", "{\"points\":\f[[1,2]]}"},
        {"rays", "{\"rays\":[{}]}"},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3]}]}"},
        {"rays", "{\"rays\":[5]}"},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[1,2]}]}"},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[1,2,3],\"t_max\":\"x\"}]}"},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[1,2,3],}]}"},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"origin\":[0,0,0],\"direction\":[4,5,6]}]}"},
        {"rays", "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[4,5,6],\"tmax\":7}]}"},
        {"segments", "{\"segments\":[{\"from\":[1,2,3]}]}"},
        {"segments", "{\"segments\":[{\"from\":[1,2,3],\"to\":[4,5,6],\"t_max\":7}]}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_plain;

        if (check_text(shape_of(cases[i].member), cases[i].text, strlen(cases[i].text), &is_plain))
            fail_msg("taken: %s", cases[i].text);
    }
}

static const char many[] =
    "{\"layer\":\"a\\\"b\\\\\",\"rays\":[{\"origin\":[1,2.5,-3e2],\"direction\":[0,0,-1]},"
    "{ \"direction\":[1,0,0.25] ,\"t_max\":12.5, \"origin\":[0,0,0]}],\"mode\":{\"a\":[1,{}]}}";
static const char pairs[] = "{ \"points\":[[1,2], [3.25,-4],[5e1 ,6]],\"interp\":\"bilinear\" }";

static void every_truncation_has_the_same_verdict(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof many; length++) {
        bool is_plain, is_whole = length == sizeof many - 1;

        assert_int_equal(check_text(&json_shape_rays, many, length, &is_plain), is_whole);
    }
    for (size_t length = 0; length < sizeof pairs; length++) {
        bool is_plain, is_whole = length == sizeof pairs - 1;

        assert_int_equal(check_text(&json_shape_points2, pairs, length, &is_plain), is_whole);
    }
}

static void changed_bytes_have_the_same_verdict(void **state)
{
    static const char pool[] = "{}[],:\"0123456789.eE+-\\ \n\tunltrfas\xc3\xa9";
    struct random random = {20261122};
    size_t taken = 0, plain = 0;

    (void)state;
    print_message("seed 20261122\n");
    for (int round = 0; round < 60000; round++) {
        const char *text = round % 2 ? many : pairs;
        size_t length = round % 2 ? sizeof many - 1 : sizeof pairs - 1;
        char changed[sizeof many];
        bool is_plain;

        memcpy(changed, text, length);
        for (uint32_t n = 1 + random_below(&random, 3); n > 0; n--)
            changed[random_below(&random, (uint32_t)length)] =
                pool[random_below(&random, sizeof pool - 1)];
        taken += check_text(round % 2 ? &json_shape_rays : &json_shape_points2, changed, length,
                            &is_plain);
        plain += is_plain;
    }
    assert_true(taken > 2000 && plain > 1000 && plain < 60000);
}

/* Each text of the minefield as a body, beside a batch, and inside of one. */
static void the_known_minefield_has_the_same_verdicts(void **state)
{
    static const struct {
        const char *before, *behind;
    } places[] = {{"", ""},
                  {"{\"layer\":", ",\"points\":[[1,2]]}"},
                  {"{\"points\":[[1,2]],\"layer\":", "}"},
                  {"{\"points\":[[1,2],", "]}"},
                  {"{\"points\":[", "]}"},
                  {"{\"points\":", "}"}};

    (void)state;
    for (size_t i = 0; i < JSON_SUITE_CASES; i++) {
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            const struct json_case *c = &json_suite[i];
            size_t before = strlen(places[k].before), behind = strlen(places[k].behind);
            char text[512];
            bool is_plain;

            assert_true(before + c->length + behind <= sizeof text);
            memcpy(text, places[k].before, before);
            memcpy(text + before, c->text, c->length);
            memcpy(text + before + c->length, places[k].behind, behind);
            if (check_text(&json_shape_points2, text, before + c->length + behind, &is_plain) &&
                c->verdict == JSON_N && k != 0)
                fail_msg("taken: %s between %s and %s", c->name, places[k].before,
                         places[k].behind);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_bodies_are_read_from_the_tape),
        cmocka_unit_test(bad_bodies_are_refused_as_ever),
        cmocka_unit_test(every_truncation_has_the_same_verdict),
        cmocka_unit_test(changed_bytes_have_the_same_verdict),
        cmocka_unit_test(the_known_minefield_has_the_same_verdicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
