/*
 * Edits from bytes: hand-made cases, errors with their places, and numbers held to strtod.
 */
#include "api/edit_decode.h"
#include "tests/support/api_call.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct api api;
static struct err err;
static struct edit edit;
static char layer[WORLD_ID_MAX + 1];

static enum err_code decode(const char *media, const char *query, const void *body, size_t length)
{
    char copy[API_TEST_QUERY_BYTES];
    char *exact = malloc(length + (length == 0)); /* its end is its end, for the sanitizer */
    struct call call = {.api = &api, .media_type = {media, strlen(media)}};

    api_limits_init(&api.limits);
    api.limits.world.edit_samples_max = 1000;
    snprintf(copy, sizeof copy, "%s", query);
    memcpy(exact, body, length);
    call.body = (struct span){exact, length};
    api_test_query(copy, &call);
    err = (struct err){.code = ERR_OK};
    layer[0] = '\0';
    edit_decode(&call, &edit, layer, &err);
    call_close(&call);
    free(exact);
    return err.code;
}

static enum err_code json(const char *body)
{
    return decode("application/json", "", body, strlen(body));
}

static void let_go(void)
{
    free((void *)edit.heights_m);
}

static void expect_rect(uint32_t column, uint32_t row, uint32_t cols, uint32_t rows)
{
    assert_int_equal(edit.rect.column, column);
    assert_int_equal(edit.rect.row, row);
    assert_int_equal(edit.rect.cols, cols);
    assert_int_equal(edit.rect.rows, rows);
}

static void a_set_is_read_from_json(void **state)
{
    (void)state;
    assert_int_equal(json(" {\"rect\" : [3,4,2,2],\"heights\":[ 1.5 , -2e1,null\n,0.1 ] } "),
                     ERR_OK);
    assert_int_equal(edit.kind, EDIT_SET);
    expect_rect(3, 4, 2, 2);
    assert_true(edit.heights_m[0] == 1.5f && edit.heights_m[1] == -20.0f);
    assert_true(isnan(edit.heights_m[2]) && edit.heights_m[3] == 0.1f);
    assert_string_equal(layer, "");
    let_go();
}

static void the_order_of_members_and_escapes_in_names_do_not_matter(void **state)
{
    (void)state;
    assert_int_equal(json("{\"\\u0068eights\":[7],\"op\":\"add\",\"layer\":\"a\\u0062\","
                          "\"rect\":[0,0,1,1]}"),
                     ERR_OK);
    assert_int_equal(edit.kind, EDIT_ADD);
    assert_true(edit.heights_m[0] == 7.0f);
    assert_string_equal(layer, "ab");
    let_go();
    /* a name within a string or an inner object is no member of the edit */
    assert_int_equal(json("{\"layer\":\"\\\"heights\\\":[1]\",\"rect\":[0,0,1,1]}"), ERR_MISSING);
    assert_string_equal(err.pointer, "/heights");
    assert_int_equal(json("{\"brush\":{\"heights\":[1]},\"rect\":[0,0,1,1]}"), ERR_BAD_INPUT);
}

static void options_may_stand_in_the_query(void **state)
{
    static const float two[2] = {1, NAN};

    (void)state;
    assert_int_equal(
        decode("application/vnd.kota.f32", "rect=5,6,2,1&op=add&layer=low", two, sizeof two),
        ERR_OK);
    assert_int_equal(edit.kind, EDIT_ADD);
    expect_rect(5, 6, 2, 1);
    assert_true(edit.heights_m[0] == 1.0f && isnan(edit.heights_m[1]));
    assert_string_equal(layer, "low");
    let_go();
    assert_int_equal(decode("", "rect=0,0,1,1", "{\"heights\":[3]}", 15), ERR_OK);
    assert_true(edit.heights_m[0] == 3.0f);
    let_go();
}

static void a_brush_is_read(void **state)
{
    (void)state;
    assert_int_equal(json("{\"brush\":{\"shape\":\"raise\",\"center\":[1,-2.5],\"radius\":3,"
                          "\"amount\":-4}}"),
                     ERR_OK);
    assert_int_equal(edit.kind, EDIT_BRUSH);
    assert_int_equal(edit.brush.shape, BRUSH_RAISE);
    assert_true(edit.brush.center.x == 1 && edit.brush.center.y == -2.5);
    assert_true(edit.brush.radius_m == 3 && edit.brush.amount_m == -4);
    assert_null(edit.heights_m);
    assert_int_equal(json("{\"brush\":{\"shape\":\"smooth\",\"center\":[0,0],\"radius\":1}}"),
                     ERR_OK);
    assert_true(isinf(edit.brush.amount_m));
    assert_int_equal(json("{\"brush\":{\"shape\":\"flatten\",\"center\":[0,0],\"radius\":1,"
                          "\"amount\":0}}"),
                     ERR_OK);
    assert_true(edit.brush.amount_m == 0);
    assert_int_equal(json("{\"brush\":{\"shape\":\"relax\",\"center\":[0,0],\"radius\":1}}"),
                     ERR_OK);
    assert_int_equal(edit.brush.shape, BRUSH_RELAX);
    assert_true(edit.brush.slope_deg == 34);
    assert_int_equal(json("{\"brush\":{\"shape\":\"relax\",\"center\":[0,0],\"radius\":1,"
                          "\"slope_deg\":1}}"),
                     ERR_OK);
    assert_true(edit.brush.slope_deg == 1);
}

#define BRUSH(members) "{\"brush\":{" members "}}"

static const struct {
    const char *body;
    enum err_code code;
    const char *pointer;
} refused[] = {
    {"", ERR_MISSING, ""},
    {"[]", ERR_BAD_INPUT, ""},
    {"{\"rect\":[0,0,1,1],\"heights\":[1]", ERR_BAD_JSON, ""},
    {"{\"rect\":[0,0,1,1],\"heights\":[01]}", ERR_BAD_JSON, "/heights/0"},
    {"{}", ERR_MISSING, "/rect"},
    {"{\"heights\":[1]}", ERR_MISSING, "/rect"},
    {"{\"rect\":[0,0,1],\"heights\":[1]}", ERR_BAD_INPUT, "/rect"},
    {"{\"rect\":[0,0,1,1,1],\"heights\":[1]}", ERR_BAD_INPUT, "/rect"},
    {"{\"rect\":[0.5,0,1,1],\"heights\":[1]}", ERR_BAD_INPUT, "/rect"},
    {"{\"rect\":[0,0,0,1],\"heights\":[]}", ERR_BAD_INPUT, "/rect"},
    {"{\"rect\":[0,0,1,-1],\"heights\":[1]}", ERR_BAD_INPUT, "/rect"},
    {"{\"rect\":[0,0,1001,1],\"heights\":[1]}", ERR_TOO_LARGE, "/rect"},
    {"{\"rect\":[0,0,1e300,1e300],\"heights\":[1]}", ERR_TOO_LARGE, "/rect"},
    {"{\"rect\":[-1,0,1,1],\"heights\":[1]}", ERR_UNPROCESSABLE, "/rect"},
    {"{\"rect\":[0,1e9,1,1],\"heights\":[1]}", ERR_UNPROCESSABLE, "/rect"},
    {"{\"rect\":[0,0,1,1]}", ERR_MISSING, "/heights"},
    {"{\"rect\":[0,0,1,1],\"heights\":5}", ERR_BAD_INPUT, "/heights"},
    {"{\"rect\":[0,0,1,1],\"heights\":[]}", ERR_BAD_INPUT, "/heights"},
    {"{\"rect\":[0,0,1,1],\"heights\":[1,2]}", ERR_BAD_INPUT, "/heights"},
    {"{\"rect\":[0,0,2,1],\"heights\":[1]}", ERR_BAD_INPUT, "/heights"},
    {"{\"rect\":[0,0,2,1],\"heights\":[[1,2]]}", ERR_BAD_INPUT, "/heights"},
    {"{\"rect\":[0,0,2,1],\"heights\":[1,[2,3]]}", ERR_BAD_INPUT, "/heights/1"},
    {"{\"rect\":[0,0,2,1],\"heights\":[1,\"2\"]}", ERR_BAD_INPUT, "/heights/1"},
    {"{\"rect\":[0,0,2,1],\"heights\":[1,true]}", ERR_BAD_INPUT, "/heights/1"},
    {"{\"rect\":[0,0,2,1],\"heights\":[1e39,1]}", ERR_BAD_INPUT, "/heights/0"},
    {"{\"rect\":[0,0,2,1],\"heights\":[1,-3.4028236e38]}", ERR_BAD_INPUT, "/heights/1"},
    {"{\"rect\":[0,0,2,1],\"heights\":[1,1e999]}", ERR_BAD_JSON, "/heights/1"},
    {"{\"rect\":[0,0,1,1],\"heights\":[1],\"heights\":[1]}", ERR_BAD_INPUT, "/heights"},
    {"{\"rect\":[0,0,1,1],\"heights\":[1],\"x\":1}", ERR_UNKNOWN_MEMBER, "/x"},
    {"{\"rect\":[0,0,1,1],\"heights\":[1],\"op\":\"dig\"}", ERR_BAD_INPUT, "/op"},
    {"{\"rect\":[0,0,1,1],\"heights\":[1],\"layer\":5}", ERR_BAD_INPUT, "/layer"},
    {"{\"rect\":[0,0,1,1],\"heights\":[1],\"layer\":\"\"}", ERR_LAYER_UNKNOWN_OPTION, "/layer"},
    {"{\"brush\":5}", ERR_BAD_INPUT, "/brush"},
    {BRUSH(""), ERR_MISSING, "/brush/shape"},
    {BRUSH("\"shape\":\"dig\""), ERR_BAD_INPUT, "/brush/shape"},
    {BRUSH("\"shape\":\"smooth\",\"center\":[1]"), ERR_BAD_INPUT, "/brush/center"},
    {BRUSH("\"shape\":\"smooth\",\"center\":[1,2]"), ERR_MISSING, "/brush/radius"},
    {BRUSH("\"shape\":\"smooth\",\"center\":[1,2],\"radius\":0"), ERR_BAD_INPUT, "/brush/radius"},
    {BRUSH("\"shape\":\"raise\",\"center\":[1,2],\"radius\":1"), ERR_MISSING, "/brush/amount"},
    {BRUSH("\"shape\":\"crater\",\"center\":[1,2],\"radius\":1"), ERR_MISSING, "/brush/amount"},
    {BRUSH("\"shape\":\"crater\",\"center\":[1,2],\"radius\":1,\"amount\":-1"), ERR_BAD_INPUT,
     "/brush/amount"},
    {BRUSH("\"shape\":\"relax\",\"center\":[1,2],\"radius\":1,\"amount\":1"), ERR_BAD_INPUT,
     "/brush/amount"},
    {BRUSH("\"shape\":\"raise\",\"center\":[1,2],\"radius\":1,\"amount\":1,\"slope_deg\":30"),
     ERR_BAD_INPUT, "/brush/slope_deg"},
    {BRUSH("\"shape\":\"relax\",\"center\":[1,2],\"radius\":1,\"slope_deg\":0.99"), ERR_BAD_INPUT,
     "/brush/slope_deg"},
    {BRUSH("\"shape\":\"relax\",\"center\":[1,2],\"radius\":1,\"slope_deg\":89.01"), ERR_BAD_INPUT,
     "/brush/slope_deg"},
    {BRUSH("\"shape\":\"relax\",\"center\":[1,2],\"radius\":1,\"slope_deg\":\"30\""), ERR_BAD_INPUT,
     "/brush/slope_deg"},
    {BRUSH("\"shape\":\"smooth\",\"depth\":1"), ERR_UNKNOWN_MEMBER, "/brush/depth"},
    {"{\"brush\":{},\"rect\":[0,0,1,1]}", ERR_BAD_INPUT, "/rect"},
    {"{\"brush\":{},\"heights\":[]}", ERR_BAD_INPUT, "/heights"},
};

static void what_is_wrong_is_named_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (json(refused[i].body) != refused[i].code ||
            strcmp(err.pointer, refused[i].pointer) != 0 || edit.heights_m)
            fail_msg("%s: code %d at \"%s\" (%s), expected %d at \"%s\"", refused[i].body, err.code,
                     err.pointer, err.msg, refused[i].code, refused[i].pointer);
        assert_true(err.msg[0] != '\0');
    }
}

static void binary_edits_are_refused_with_their_place(void **state)
{
    static const char f32[] = "application/vnd.kota.f32";
    const float heights_m[3] = {0, 1, INFINITY};

    (void)state;
    assert_int_equal(decode(f32, "", heights_m, 8), ERR_MISSING);
    assert_string_equal(err.pointer, "rect");
    for (size_t length = 0; length < 12; length++)
        if (length != 8)
            assert_int_equal(decode(f32, "rect=0,0,2,1", heights_m, length), ERR_BAD_INPUT);
    assert_int_equal(decode(f32, "rect=0,0,3,1", heights_m, 12), ERR_BAD_INPUT);
    assert_string_equal(err.pointer, "/2");
    assert_int_equal(decode(f32, "rect=0,0,3,1&base=1,2,3", heights_m, 12), ERR_UNKNOWN_PARAMETER);
    assert_string_equal(err.pointer, "base");
    assert_int_equal(decode(f32, "rect=0,0,2000,1", heights_m, 12), ERR_TOO_LARGE);
    assert_true(err.has_limit && err.limit == 1000 && err.got == 2000);
    assert_int_equal(decode("application/vnd.kota.f64", "rect=0,0,1,1", heights_m, 8),
                     ERR_UNSUPPORTED_MEDIA_TYPE);
    assert_int_equal(
        decode("application/json", "rect=0,0,1,1", "{\"rect\":[0,0,1,1],\"heights\":[1]}", 32),
        ERR_BAD_INPUT);
}

static void every_truncated_length_is_refused(void **state)
{
    static const char whole[] =
        "{\"op\":\"add\",\"rect\":[0,0,3,1],\"heights\":[1.25e-3,null,-7],\"layer\":\"a\"}";

    (void)state;
    for (size_t length = 0; length + 1 < sizeof whole; length++)
        assert_int_equal(decode("application/json", "", whole, length),
                         length == 0 ? ERR_MISSING : ERR_BAD_JSON);
    assert_int_equal(decode("application/json", "", whole, sizeof whole - 1), ERR_OK);
    let_go();
}

/* Text of a random number; long ones, short ones, with and without fraction and exponent. */
static void random_number(struct random *random, char *out)
{
    static const char *const formats[] = {"%.0f",  "%.3f", "%.17g", "%.9g",
                                          "%.25e", "%.1e", "%.19f"};
    double size = exp(random_in(random, -80, 80)), value = random_in(random, -1, 1) * size;

    if (random_below(random, 3) == 0)
        value = floor(random_in(random, -9e15, 9e15));
    snprintf(out, 64, formats[random_below(random, 7)], fabs(value) < 1e30 ? value : 0.0);
}

static void a_height_is_what_strtod_says_rounded_once(void **state)
{
    struct random random = {20261121};

    (void)state;
    for (int i = 0; i < 200000; i++) {
        char text[80], body[128];
        float expected;

        random_number(&random, text);
        expected = (float)strtod(text, NULL);
        snprintf(body, sizeof body, "{\"rect\":[0,0,1,1],\"heights\":[%s]}", text);
        if (json(body) != ERR_OK || memcmp(&expected, edit.heights_m, sizeof expected) != 0)
            fail_msg("%s: expected %.9g (seed 20261121)", text, (double)expected);
        let_go();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_read_from_json),
        cmocka_unit_test(the_order_of_members_and_escapes_in_names_do_not_matter),
        cmocka_unit_test(options_may_stand_in_the_query),
        cmocka_unit_test(a_brush_is_read),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(binary_edits_are_refused_with_their_place),
        cmocka_unit_test(every_truncated_length_is_refused),
        cmocka_unit_test(a_height_is_what_strtod_says_rounded_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
