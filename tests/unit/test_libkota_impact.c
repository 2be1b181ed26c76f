/* Impacts by the client library, against a daemon without a device: they are craters. */
#include "client/lib/kota.h"
#include "support/kotad_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct kotad_process kotad;
static struct kota_client *client;

static const float flat[81];

static struct kota_answer *call(struct kota_request *request)
{
    struct kota_answer *answer = kota_call(client, request);

    if (kota_answer_error(answer))
        fail_msg("%s", kota_answer_error(answer)->message);
    return answer;
}

static int set_up(void **state)
{
    struct kota_options options;

    (void)state;
    kotad_start(&kotad);
    kota_options_init(&options, sizeof(options));
    options.url = kotad.url;
    options.timeout_s = 600;
    client = kota_open(&options);
    kota_answer_free(call(kota_put_locale("yard", "{}")));
    kota_answer_free(call(kota_put_layer_heights("yard", "ground", flat, 9, 9, 1, 1)));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kota_close(client, NULL, NULL);
    kotad_remove(&kotad);
    return 0;
}

static void throw_a_ball(bool is_waiting)
{
    struct kota_impact_options options;
    struct kota_impact made, again;
    struct kota_answer *answer;

    kota_impact_options_init(&options, sizeof(options));
    options.radius_m = 0.5;
    options.mass_kg = 1500;
    options.position[0] = options.position[1] = options.position[2] = 4;
    options.velocity[2] = -9;
    options.has_observer = true;
    options.until_written = is_waiting;
    answer = call(kota_post_impact("yard", &options));
    assert_true(kota_read_impact(answer, &made));
    assert_true(made.is_written && !made.by_patch && made.patch == 0 && made.reason);
    assert_true(made.number > 2 && made.number == made.revision);
    kota_answer_free(answer);
    answer = call(kota_impact("yard", made.number));
    assert_true(kota_read_impact(answer, &again));
    assert_true(again.number == made.number);
    kota_answer_free(answer);
}

static void an_impact_has_a_fate(void **state)
{
    (void)state;
    throw_a_ball(false);
    throw_a_ball(true);
}

static void what_is_no_impact_is_not_read(void **state)
{
    struct kota_answer *answer = kota_call(client, kota_impact("yard", 1));
    struct kota_impact impact;

    (void)state;
    assert_int_equal(kota_answer_error(answer)->status, 404);
    assert_false(kota_read_impact(answer, &impact));
    kota_answer_free(answer);
    answer = call(kota_locale("yard"));
    assert_false(kota_read_impact(answer, &impact));
    kota_answer_free(answer);
}

static void a_model_that_is_not_there_is_refused(void **state)
{
    struct kota_impact_options options;
    struct kota_answer *answer;

    (void)state;
    kota_impact_options_init(&options, sizeof(options));
    options.model = "nothing";
    options.mass_kg = 1;
    options.position[2] = 4;
    answer = kota_call(client, kota_post_impact("yard", &options));
    assert_int_equal(kota_answer_error(answer)->status, 422);
    kota_answer_free(answer);
}

/* This daemon has no OpenGL; it looks at the question first. */
static void a_picture_is_asked_for(void **state)
{
    struct kota_view view;
    struct kota_answer *answer;

    (void)state;
    kota_view_init(&view, sizeof(view));
    view.eye[2] = 9;
    view.light[0] = view.light[1] = 0;
    view.light[2] = -1;
    view.has_no_shadows = true;
    answer = kota_call(client, kota_view("yard", &view));
    assert_int_equal(kota_answer_error(answer)->status, 400); /* up is along the view */
    kota_answer_free(answer);
    view.target[0] = 4;
    answer = kota_call(client, kota_view("yard", &view));
    if (kota_answer_error(answer))
        assert_int_equal(kota_answer_error(answer)->status, 503);
    kota_answer_free(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_impact_has_a_fate),
        cmocka_unit_test(what_is_no_impact_is_not_read),
        cmocka_unit_test(a_picture_is_asked_for),
        cmocka_unit_test(a_model_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
