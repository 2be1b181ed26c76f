/* The client library against a real daemon: every call once, many calls, a daemon that goes. */
#include "client/lib/kota.h"
#include "support/kotad_process.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <cmocka.h>

static struct kotad_process kotad;
static struct kota_client *client;

/* Four by three samples, 10 m apart: a ramp of 1 m a column, and a hole at (3, 2). */
static const float ramp[12] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, NAN};

static const char tetrahedron[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
                                  "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";

#define assert_fine(answer)                                                                        \
    do {                                                                                           \
        if (kota_answer_error(answer))                                                             \
            fail_msg("%s: %s", kota_error_name(kota_answer_error(answer)->kind),                   \
                     kota_answer_error(answer)->message);                                          \
    } while (0)

static struct kota_answer *call(struct kota_request *request)
{
    struct kota_answer *answer = kota_call(client, request);

    assert_fine(answer);
    return answer;
}

/* Nothing of the answer matters but that it came. */
static void call_away(struct kota_request *request)
{
    kota_answer_free(call(request));
}

static void assert_close(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9))
        fail_msg("got %.17g, expected %.17g", got, want);
}

static int set_up(void **state)
{
    struct kota_options options;

    (void)state;
    kotad_start(&kotad);
    kota_options_init(&options, sizeof(options));
    options.url = kotad.url;
    options.timeout_s = 600; /* sanitizers are slow; the tests of time set their own */
    client = kota_open(&options);
    assert_null(kota_open_error(client));
    call_away(kota_put_locale("yard", "{\"title\":\"A yard\",\"geo\":{\"lat\":47,\"lng\":11}}"));
    call_away(kota_put_layer_heights("yard", "ground", ramp, 4, 3, 10, 10));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kota_close(client, NULL, NULL);
    kotad_remove(&kotad);
    return 0;
}

/* ---- every call ------------------------------------------------------------------------------ */

static void operation_is_answered(void **state)
{
    struct kota_answer *answer;
    const char *text;
    double number;

    (void)state;
    call_away(kota_livez());
    call_away(kota_healthz());
    call_away(kota_openapi());
    call_away(kota_index());
    call_away(kota_web("kota.js"));
    answer = call(kota_readyz());
    assert_true(kota_read_text(answer, "/status", &text));
    assert_string_equal(text, "ok");
    kota_answer_free(answer);
    answer = call(kota_calls());
    assert_true(kota_read_text(answer, "/calls/0/name", &text));
    assert_string_equal(text, "calls");
    kota_answer_free(answer);
    answer = call(kota_limits());
    assert_true(kota_read_number(answer, "/items_max", &number));
    assert_true(number >= 10000);
    assert_false(kota_read_number(answer, "/no_such_limit", &number));
    assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_CONTENT);
    kota_answer_free(answer);
    answer = call(kota_metrics());
    assert_non_null(strstr(kota_answer_body(answer, NULL), "kota_"));
    kota_answer_free(answer);
    call_away(kota_stats());
    answer = kota_call(client, kota_audit());
    assert_int_equal(kota_answer_status(answer), 404); /* the daemon keeps none */
    kota_answer_free(answer);
}

/* As many locales by pages of one, in order and each with its layers, as in a list of all. */
static void pages_are_followed(size_t count)
{
    struct kota_request *request = kota_locales();
    struct kota_answer *answer;
    struct kota_locale locale;
    char last[65] = "";
    size_t read, with_layers = 0;

    call_away(kota_put_locale("zoo", NULL));
    kota_request_query(request, "layers", "true");
    kota_request_query(request, "limit", "1");
    for (size_t i = 0; i < count + 1; i++) {
        assert_non_null(request);
        answer = call(request);
        assert_true(kota_read_locale_count(answer, &read));
        assert_int_equal(read, 1);
        assert_true(kota_read_locale(answer, 0, &locale));
        assert_true(strcmp(last, locale.id) < 0);
        snprintf(last, sizeof(last), "%s", locale.id);
        with_layers += locale.layer_count > 0;
        request = kota_locales_next(answer);
        kota_answer_free(answer);
    }
    assert_null(request);
    assert_true(with_layers > 0);
    call_away(kota_delete_locale("zoo"));
}

static void locales_and_layers_are_read(void **state)
{
    struct kota_answer *answer = call(kota_locales());
    struct kota_locale locale;
    struct kota_layer layer;
    size_t count = 0, length;
    char etag[32];

    (void)state;
    assert_true(kota_read_locale_count(answer, &count));
    assert_true(count >= 1);
    assert_true(kota_read_locale(answer, 0, &locale));
    assert_int_equal(locale.layer_count, 0); /* was not asked for */
    assert_null(kota_locales_next(answer));
    kota_answer_free(answer);
    pages_are_followed(count);

    answer = call(kota_locale("yard"));
    assert_true(kota_read_locale(answer, 0, &locale));
    assert_string_equal(locale.id, "yard");
    assert_string_equal(locale.title, "A yard");
    assert_true(locale.revision >= 2 && locale.revision == kota_answer_revision(answer));
    assert_close(locale.gravity[2], -1);
    assert_close(locale.rotation[3], 1);
    assert_true(locale.has_bounds);
    assert_close(locale.max[0], 30);
    assert_int_equal(locale.layer_count, 1);
    assert_true(kota_read_layer(answer, 0, 0, &layer));
    assert_string_equal(layer.id, "ground");
    assert_int_equal(layer.kind, KOTA_HEIGHTFIELD);
    assert_int_equal(layer.cols, 4);
    assert_close(layer.spacing[1], 10);
    assert_false(kota_read_layer(answer, 0, 1, &layer));
    snprintf(etag, sizeof(etag), "\"%llu\"", (unsigned long long)locale.revision);
    kota_answer_free(answer);

    struct kota_request *request = kota_locale("yard");
    kota_request_if_none_match(request, etag);
    answer = call(request);
    assert_int_equal(kota_answer_status(answer), 304);
    kota_answer_free(answer);

    answer = call(kota_layer("yard", "ground", NULL));
    assert_int_equal(((kota_answer_body(answer, &length)), length), sizeof(ramp));
    assert_string_equal(kota_answer_header(answer, "kota-cols"), "4");
    kota_answer_free(answer);
    call_away(kota_layer_stats("yard", "ground"));
    call_away(kota_put_layer("yard", "roof", "model/obj",
                             "v 0 0 9\nv 5 0 9\nv 5 5 9\nv 0 5 9\nf 1 2 3 4\n", 43));
    call_away(kota_put_transform("yard", "roof", (double[3]){1, 2, 3}, 45));
    call_away(kota_polygons("yard", "roof", (double[9]){9, 0, 9, 12, 0, 9, 12, 5, 9},
                            (size_t[1]){3}, 1, (uint32_t[1]){0}, 1));
    call_away(kota_delete_layer("yard", "roof"));
    call_away(kota_put_layer_mesh("yard", "roof", "model/obj",
                                  "v 0 0 9\nv 5 0 9\nv 5 5 9\nv 0 5 9\nf 1 2 3 4\n", 43, NULL));
    call_away(kota_put_locale("gone", NULL));
    call_away(kota_delete_locale("gone"));
}

static void meshes_of_every_frame_are_put_and_read(void **state)
{
    static const char obj[] = "v 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 2 3\n";
    static const struct {
        struct kota_mesh_options options;
        enum kota_layer_gravity gravity; /* as it is then */
    } cases[] = {
        {{.scale = 2}, KOTA_GRAVITY_USUAL},
        {{.frame = KOTA_SPHERICAL}, KOTA_GRAVITY_IN},
        {{.frame = KOTA_SPHERICAL, .gravity = KOTA_GRAVITY_OUT, .is_up_y = true}, KOTA_GRAVITY_OUT},
        {{.frame = KOTA_CYLINDRICAL, .is_ceiling = true}, KOTA_GRAVITY_OUT},
        {{.frame = KOTA_CYLINDRICAL, .gravity = KOTA_GRAVITY_IN}, KOTA_GRAVITY_IN},
    };
    const struct kota_mesh_options flat = {.gravity = KOTA_GRAVITY_IN}, none = {.frame = 7};
    struct kota_answer *answer;
    struct kota_layer layer;

    (void)state;
    call_away(kota_put_locale("moon", NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kota_mesh_options *options = &cases[i].options;

        answer =
            call(kota_put_layer_mesh("moon", "ground", "model/obj", obj, sizeof obj - 1, options));
        assert_true(kota_read_layer(answer, 0, 0, &layer));
        assert_int_equal(layer.frame, options->frame);
        assert_int_equal(layer.gravity, cases[i].gravity);
        assert_int_equal(layer.is_ceiling, options->is_ceiling);
        /* up y: the file's y is the frame's z, its z the frame's -y */
        assert_close(layer.min[1], options->is_up_y ? -9 : 0);
        assert_close(layer.max[0], options->scale != 0 ? 18 : 9);
        kota_answer_free(answer);
    }
    answer = kota_call(
        client, kota_put_layer_mesh("moon", "ground", "model/obj", obj, sizeof obj - 1, &flat));
    assert_int_equal(kota_answer_status(answer), 422);
    kota_answer_free(answer);
    answer = kota_call(
        client, kota_put_layer_mesh("moon", "ground", "model/obj", obj, sizeof obj - 1, &none));
    assert_int_equal(kota_answer_status(answer), 0);
    assert_non_null(strstr(kota_answer_error(answer)->message, "frame"));
    kota_answer_free(answer);
    call_away(kota_delete_locale("moon"));
}

static void heights_profiles_and_contacts_are_read(void **state)
{
    const double xy[6] = {5, 5, 29, 19, 50, 5}, path[4] = {0, 5, 20, 5};
    const double xyz[6] = {15, 5, 9, 15, 5, -3}, feet[9] = {10, 5, 9, 12, 5, 9, 10, 7, 9};
    const size_t foot_counts[1] = {3};
    struct kota_height heights[3];
    struct kota_profile_point points[4];
    struct kota_contact contacts[2];
    struct kota_footprint footprint;
    struct kota_contact_options options;
    struct kota_answer *answer =
        call(kota_height("yard", xy, 3, KOTA_WITH_NORMAL | KOTA_WITH_CELL));
    size_t count;

    (void)state;
    assert_true(kota_read_height(answer, heights, 3));
    assert_close(heights[0].height_m, 0.5);
    assert_true(heights[0].has_cell && heights[0].cell[0] == 0 && heights[0].normal[2] > 0.9);
    assert_int_equal(heights[1].status, KOTA_GROUND_HOLE);
    assert_true(isnan(heights[1].height_m));
    assert_int_equal(heights[2].status, KOTA_GROUND_OUTSIDE);
    assert_false(kota_read_height(answer, heights, 2));
    kota_answer_free(answer);

    answer = call(kota_get_height("yard", 5, 5, 0));
    assert_true(kota_read_height(answer, heights, 1));
    assert_close(heights[0].height_m, 0.5);
    kota_answer_free(answer);

    answer = call(kota_profile("yard", path, 2, 5, 0));
    assert_true(kota_read_profile(answer, points, 4, &count));
    assert_int_equal(count, 5);
    assert_close(points[3].distance_m, 15);
    assert_close(points[3].point[2], 1.5);
    kota_answer_free(answer);

    kota_contact_options_init(&options, sizeof(options));
    options.clearance_m = 2;
    answer = call(kota_contact("yard", xyz, 2, &options));
    assert_true(kota_read_contact(answer, contacts, 2));
    assert_true(contacts[0].floor.is_there);
    assert_close(contacts[0].floor.point[2], 1.5);
    assert_close(contacts[0].floor.distance_m, 7.5);
    assert_string_equal(contacts[0].floor.layer, "ground");
    assert_false(contacts[0].ceiling.is_there);
    assert_true(contacts[1].has_placed);
    assert_close(contacts[1].placed[2], 3.5);
    kota_answer_free(answer);
    kota_contact_options_init(&options, sizeof(options));
    options.max_distance_m = 7;
    answer = call(kota_contact("yard", xyz, 2, &options));
    assert_true(kota_read_contact(answer, contacts, 2));
    assert_int_equal(contacts[0].status, KOTA_GROUND_TOO_FAR);
    assert_false(contacts[0].floor.is_there);
    assert_int_equal(contacts[1].status, KOTA_GROUND_BELOW);
    assert_true(contacts[1].ceiling.is_there);
    kota_answer_free(answer);

    answer = call(kota_contact_footprints("yard", feet, foot_counts, 1, NULL));
    assert_true(kota_read_contact_footprints(answer, &footprint, 1));
    assert_true(footprint.has_plane);
    assert_true(fabs(footprint.normal[0] * 10 + footprint.normal[2] * 1 + footprint.d) < 1e-9);
    kota_answer_free(answer);
}

static void rays_sight_and_picks_are_read(void **state)
{
    const struct kota_ray rays[2] = {{{15, 5, 9}, {0, 0, -1}, INFINITY},
                                     {{15, 5, 9}, {0, 0, 1}, 5}};
    const struct kota_segment segments[2] = {{{5, 5, 9}, {15, 5, 9}}, {{5, 5, 9}, {15, 5, -9}}};
    struct kota_hit hits[2];
    struct kota_los sights[2];
    struct kota_pick pick;
    struct kota_picked picked;
    struct kota_answer *answer = call(kota_ray("yard", rays, 2, false));

    (void)state;
    assert_true(kota_read_ray(answer, hits, 2));
    assert_int_equal(hits[0].status, KOTA_RAY_HIT);
    assert_close(hits[0].t, 7.5);
    assert_close(hits[0].distance_m, 7.5);
    assert_true(hits[0].has_cell);
    assert_int_equal(hits[1].status, KOTA_RAY_MISS);
    assert_true(isnan(hits[1].t) && !hits[1].layer);
    kota_answer_free(answer);
    call_away(kota_ray("yard", rays, 1, true));

    answer = call(kota_los("yard", segments, 2));
    assert_true(kota_read_los(answer, sights, 2));
    assert_true(sights[0].visible && !sights[1].visible && sights[1].fraction > 0);
    kota_answer_free(answer);

    kota_pick_init(&pick, sizeof(pick));
    memcpy(pick.eye, (double[3]){15, 5, 50}, sizeof(pick.eye));
    memcpy(pick.target, (double[3]){15, 5, 0}, sizeof(pick.target));
    memcpy(pick.up, (double[3]){0, 1, 0}, sizeof(pick.up));
    pick.fov_y_deg = 60;
    pick.viewport[0] = pick.viewport[1] = 100;
    pick.pixel[0] = pick.pixel[1] = 50;
    answer = call(kota_pick("yard", &pick));
    assert_true(kota_read_pick(answer, &picked));
    assert_int_equal(picked.hit.status, KOTA_RAY_HIT);
    assert_close(picked.hit.point[2], 1.5);
    assert_true(picked.has_tile && picked.column == 1 && picked.row == 0);
    kota_answer_free(answer);

    pick.fov_y_deg =
        (double)NAN; /* a matrix of the whole clip space: 90 degrees, near 1, far 101 */
    memcpy(pick.inverse_view_projection,
           (double[16]){1, 0, 0, 0, 0, 1, 0, 0, -7.920792079207921, -8.910891089108912,
                        -24.75247524752475, -0.4950495049504951, 8.079207920792079,
                        9.089108910891088, 24.24752475247525, 0.504950495049505},
           sizeof(pick.inverse_view_projection));
    pick.plan_side_m = 4; /* of hexagons */
    answer = call(kota_world_pick(&pick));
    assert_true(kota_read_pick(answer, &picked) && !strcmp(picked.hit.locale, "yard"));
    kota_answer_free(answer);
}

static void shadows_are_read(void **state)
{
    const struct kota_light noon = {.vector = {0, 0, -1}};
    const struct kota_light lamp = {.has_position = true, .vector = {15, 5, -4}};
    const double xyz[6] = {15, 5, 9, 15, 5, -9};
    struct kota_lit lit[2];
    struct kota_answer *answer = call(kota_lit("yard", xyz, 2, &noon));

    (void)state;
    assert_true(kota_read_lit(answer, lit, 2));
    assert_true(lit[0].lit && lit[0].occluder.status == KOTA_RAY_MISS);
    assert_true(!lit[1].lit && lit[1].occluder.status == KOTA_RAY_HIT);
    assert_close(lit[1].occluder.distance_m, 10.5);
    kota_answer_free(answer);
    answer = call(kota_lit("yard", xyz, 2, &lamp));
    assert_true(kota_read_lit(answer, lit, 2));
    assert_true(!lit[0].lit && lit[1].lit);
    kota_answer_free(answer);
}

static void sweeps_and_moves_are_read(void **state)
{
    const struct kota_sweep sweep = {{KOTA_SPHERE, {0.5}}, {15, 5, 9}, {15, 5, -9}};
    const struct kota_ray ray = {{15, 5, 9}, {0, 0, -18}, 1};
    const struct kota_move move = {.shape = {KOTA_CAPSULE, {0.4, 1.8}},
                                   .from = {15, 5, 9},
                                   .velocity = {0, 0, -20},
                                   .dt_s = 1,
                                   .has_claimed = true};
    struct kota_touch touch;
    struct kota_moved moved;
    struct kota_hit hits[4];
    size_t found;
    struct kota_answer *answer = call(kota_sweep("yard", &sweep, 1));

    (void)state;
    assert_true(kota_read_sweep(answer, &touch, 1) && touch.hit.layer != NULL);
    kota_answer_free(answer);
    answer = call(kota_ray_all("yard", &ray, 1, 4));
    assert_true(kota_read_all(answer, hits, &found, 1, 4) && found >= 1);
    assert_true(touch.fraction < hits[0].t && touch.fraction > hits[0].t - 0.05);
    kota_answer_free(answer);
    answer = call(kota_move("yard", &move, 1));
    assert_true(kota_read_move(answer, &moved, 1) && moved.hit_count > 0 && !moved.is_reachable);
    kota_answer_free(answer);
}

static void containment_and_places_are_read(void **state)
{
    const double xyz[6] = {15, 5, 9, 15, 5, -9};
    const double aside[3] = {-1, 5, 9};
    const char *const hints[2] = {"yard", "gone"};
    struct kota_place places[2];
    uint8_t bits[2];
    struct kota_answer *answer = call(kota_contains("yard", xyz, 2));

    (void)state;
    assert_true(kota_read_contains(answer, bits, 2));
    assert_int_equal(bits[0], KOTA_INSIDE | KOTA_HAS_FLOOR);
    assert_int_equal(bits[1], KOTA_HAS_CEILING);
    kota_answer_free(answer);
    answer = call(kota_contains("yard", aside, 1));
    assert_true(kota_read_contains(answer, bits, 1));
    assert_int_equal(bits[0], KOTA_OUTSIDE);
    kota_answer_free(answer);
    answer = call(kota_locate(xyz, 2, hints));
    assert_true(kota_read_locate(answer, places, 2));
    assert_string_equal(places[0].locale, "yard");
    assert_true(!places[0].hint_is_unknown && places[1].hint_is_unknown);
    assert_close(places[0].point[0], 15);
    assert_null(places[1].locale);
    kota_answer_free(answer);
}

static void the_world_is_asked(void **state)
{
    const double xyz[6] = {15, 5, 9, 15, 5000, 9};
    const char *const hints[2] = {"yard", "gone"};
    const struct kota_ray ray = {{15, 5, 9}, {0, 0, -1}, INFINITY};
    struct kota_contact contacts[2];
    struct kota_hit hit;
    struct kota_answer *answer = call(kota_world_contact(xyz, 2, hints, NULL));

    (void)state;
    assert_true(kota_read_contact(answer, contacts, 2));
    assert_string_equal(contacts[0].locale, "yard");
    assert_close(contacts[0].floor.point[2], 1.5);
    assert_null(contacts[1].locale);
    assert_int_equal(contacts[1].status, KOTA_GROUND_OUTSIDE);
    assert_true(!contacts[0].hint_is_unknown && contacts[1].hint_is_unknown);
    kota_answer_free(answer);
    answer = call(kota_world_ray(&ray, 1));
    assert_true(kota_read_ray(answer, &hit, 1));
    assert_string_equal(hit.locale, "yard");
    assert_close(hit.t, 7.5);
    kota_answer_free(answer);
}

static void batches_have_the_bits_of_single_answers(void **state)
{
    const double base[3] = {10, 0, 0};
    const float near_f32[3] = {5, 5, 9};
    const double far_f64[3] = {15, 5, 9}, ray[7] = {15, 5, 9, 0, 0, -1, INFINITY}, xy[2] = {15, 5};
    const double beyond[2] = {-1, 0};
    struct kota_request *request;
    struct kota_height height;
    struct kota_answer *answer = call(kota_batch_f32(KOTA_CONTACT, "yard", near_f32, 1, base));
    const float *floor = kota_read_f32(answer, 1, KOTA_CONTACT_NUMBERS);

    (void)state;
    assert_non_null(floor);
    assert_true(floor[0] == 1.5f && isnan(floor[4]));
    assert_true(floor[5] == KOTA_GROUND_OK);
    assert_null(kota_read_f64(answer, 1, KOTA_CONTACT_NUMBERS));
    assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_CONTENT);
    kota_answer_free(answer);

    answer = call(kota_batch_f64(KOTA_CONTACT, "yard", far_f64, 1, NULL));
    assert_true(kota_read_f64(answer, 1, KOTA_CONTACT_NUMBERS)[0] == 1.5);
    assert_true(kota_answer_revision(answer) >= 2);
    kota_answer_free(answer);
    answer = call(kota_batch_f64(KOTA_RAY, "yard", ray, 1, NULL));
    assert_true(kota_read_f64(answer, 1, 4)[0] == 7.5);
    kota_answer_free(answer);
    answer = call(kota_batch_f64(KOTA_CONTAINS, "yard", far_f64, 1, NULL));
    assert_int_equal(kota_read_bytes(answer, 1)[0], KOTA_INSIDE | KOTA_HAS_FLOOR);
    kota_answer_free(answer);

    answer = call(kota_height("yard", xy, 1, 0));
    assert_true(kota_read_height(answer, &height, 1));
    kota_answer_free(answer);
    answer = call(kota_batch_f64(KOTA_HEIGHT, "yard", xy, 1, NULL));
    assert_true(kota_read_f64(answer, 1, 1)[0] == height.height_m);
    kota_answer_free(answer);
    request = kota_batch_f64(KOTA_HEIGHT, "yard", beyond, 1, NULL);
    kota_request_query(request, "status", "true");
    answer = call(request);
    assert_true(isnan(kota_read_f64(answer, 1, 2)[0]));
    assert_true(kota_read_f64(answer, 1, 2)[1] == KOTA_GROUND_OUTSIDE);
    kota_answer_free(answer);
}

static void edits_happen_once_and_are_told(void **state)
{
    const uint32_t rect[4] = {1, 1, 2, 1};
    const float heights[2] = {1, 2};
    uint32_t rects[2][4];
    struct kota_edit edit, again;
    struct kota_request *request = kota_edit("yard", rect, KOTA_SET, heights);
    struct kota_answer *answer;
    size_t count;

    (void)state;
    kota_request_key(request, "one-key");
    answer = call(request);
    assert_true(kota_read_edit(answer, &edit));
    assert_memory_equal(edit.rect, rect, sizeof(rect));
    kota_answer_free(answer);

    request = kota_edit("yard", rect, KOTA_SET, heights);
    kota_request_key(request, "one-key");
    answer = call(request);
    assert_true(kota_read_edit(answer, &again));
    assert_int_equal(again.revision, edit.revision);
    assert_string_equal(kota_answer_header(answer, "Idempotency-Replayed"), "true");
    kota_answer_free(answer);

    call_away(kota_edit_brush("yard", KOTA_RAISE, 10, 10, 5, 0));
    answer = call(kota_diff("yard", edit.revision - 1));
    assert_true(kota_read_diff(answer, rects, 2, &count));
    assert_true(count >= 1);
    kota_answer_free(answer);

    request = kota_edit("yard", rect, KOTA_SET, heights);
    kota_request_if_match(request, 1);
    answer = kota_call(client, request);
    assert_int_equal(kota_answer_status(answer), 412);
    assert_string_equal(kota_answer_error(answer)->title, "Precondition failed");
    kota_answer_free(answer);
}

static void tiles_and_models_are_read(void **state)
{
    struct kota_answer *answer = call(kota_tile("yard", 0, 0, 0, KOTA_TILE_F32, KOTA_TILE_SAMPLED));
    const float *heights = kota_read_tile(answer);
    struct kota_request *request;
    char etag[128];

    (void)state;
    assert_non_null(heights);
    assert_true(heights[3] == 3 && isnan(heights[4]));
    snprintf(etag, sizeof(etag), "%s", kota_answer_header(answer, "ETag"));
    kota_answer_free(answer);
    request = kota_tile("yard", 0, 0, 0, KOTA_TILE_F32, KOTA_TILE_SAMPLED);
    kota_request_if_none_match(request, etag);
    answer = call(request);
    assert_int_equal(kota_answer_status(answer), 304);
    kota_answer_free(answer);
    call_away(kota_tile("yard", 0, 0, 0, KOTA_TILE_PNG16, KOTA_TILE_MAX));

    call_away(kota_put_model("tetra", tetrahedron, strlen(tetrahedron)));
    call_away(kota_models());
    call_away(kota_delete_model("tetra"));
}

/* Without a device the daemon says so: each request is one that it understands. */
static void assert_no_device(struct kota_request *request, int status)
{
    struct kota_answer *answer = kota_call(client, request);

    assert_non_null(kota_answer_error(answer));
    if (kota_answer_status(answer) != status)
        fail_msg("%s", kota_answer_error(answer)->message);
    kota_answer_free(answer);
}

static void patches_are_asked_for(void **state)
{
    struct kota_patch_options options;
    struct kota_body body;
    struct kota_patch patch;
    struct kota_answer *answer = call(kota_patches("yard"));

    (void)state;
    assert_false(kota_read_patch(answer, 0, &patch));
    kota_answer_free(answer);
    call_away(kota_put_model("tetra", tetrahedron, strlen(tetrahedron)));
    kota_body_init(&body, sizeof(body));
    body.model = "tetra";
    body.position[0] = body.position[1] = 10;
    body.position[2] = 3;
    kota_patch_options_init(&options, sizeof(options));
    options.center[0] = options.center[1] = 10;
    options.size_m[0] = options.size_m[1] = 20; /* two cells */
    options.scale = "medium";
    options.depth_m = 1;
    options.has_seed = true;
    options.seed = 7;
    options.bodies = &body, options.body_count = 1;
    assert_no_device(kota_post_patch("yard", &options), 503);
    assert_no_device(kota_patch("yard", 1), 404);
    assert_no_device(kota_delete_patch("yard", 1, true), 404);
    assert_no_device(kota_post_patch_body("yard", 1, &body), 404);
    assert_no_device(kota_patch_patch_body("yard", 1, 0, body.position, NULL, body.velocity), 404);
    assert_no_device(kota_delete_patch_body("yard", 1, 0), 404);
    assert_no_device(kota_patch_view("yard", 1, 64, 48), 404);
    call_away(kota_delete_model("tetra"));
}

static void elevations_are_read(void **state)
{
    static const char place[] = "47.000045,11.000066"; /* about (5, 5) in the yard */
    struct kota_request *requests[] = {
        kota_get_elevation(place),
        kota_elevation(place),
        kota_google_elevation(place),
        kota_get_dataset_elevation("yard", place),
        kota_dataset_elevation("yard", place),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct kota_answer *answer = call(requests[i]);
        double height_m;

        if (!kota_read_number(answer, "/results/0/elevation", &height_m))
            fail_msg("%s", kota_answer_error(answer)->message);
        if (!(fabs(height_m - 0.5) < 0.01))
            fail_msg("request %zu: %g m", i, height_m);
        kota_answer_free(answer);
    }
}

/* A daemon may be older than its client: it says so, and the connection goes on. */
static void every_daemon_has_an_answer(void **state)
{
    struct kota_request *requests[] = {
        kota_docs(),
        kota_model("tetra"),
        kota_patch_surface("yard", 1, 2),
        kota_patch_granules("yard", 1, (const uint64_t[]){2}),
        kota_request_new("GET", "/v9/unknown"),
        kota_request_new("OPTIONS", "/v1/limits"),
        kota_request_new("HEAD", "/v1/limits"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct kota_answer *answer = kota_call(client, requests[i]);
        int status = kota_answer_status(answer);

        if (status < 200 || status > 499)
            fail_msg("request %zu: %d %s", i, status,
                     kota_answer_error(answer) ? kota_answer_error(answer)->message : "");
        kota_answer_free(answer);
    }
}

/* ---- bad use --------------------------------------------------------------------------------- */

static void bad_use_is_told_without_sending(void **state)
{
    const double nan_xy[4] = {1, 2, 3, (double)NAN};
    struct kota_request *requests[] = {
        kota_locale("a/b"),
        kota_locale(""),
        kota_locale(NULL),
        kota_height("yard", nan_xy, 2, 0),
        kota_get_height("yard", INFINITY, 0, 0),
        kota_request_new("GET", "no-slash"),
        kota_request_new("GET", "/with space"),
        kota_request_new("GE T", "/"),
        kota_request_new("GET", "/a\r\nX: y"),
        kota_web("../etc/passwd"),
        kota_tile("yard", 0, 0, 0, (enum kota_tile_format)7, KOTA_TILE_MIN),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct kota_answer *answer = kota_call(client, requests[i]);

        assert_non_null(kota_answer_error(answer));
        assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_USAGE);
        assert_int_equal(kota_answer_tries(answer), 0);
        kota_answer_free(answer);
    }
    struct kota_request *request = kota_livez();
    kota_request_header(request, "X", "a\r\nHost: evil");
    struct kota_answer *answer = kota_call(client, request);
    assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_USAGE);
    kota_answer_free(answer);
    answer = kota_call(client, NULL);
    assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_MEMORY);
    kota_answer_free(answer);
    kota_request_free(kota_limits());
    kota_request_free(NULL);
    kota_answer_free(NULL);
    kota_close(NULL, NULL, NULL);
}

static void wrong_options_are_told_by_each_call(void **state)
{
    const char *const urls[] = {"ftp://x",        "http://",    "127.0.0.1:1", "http://h:0",
                                "http://h:99999", "unix:",      "http://h/?q", "http://a b",
                                "http://u@h/",    "http://[::1"};

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct kota_options options;
        struct kota_client *wrong;
        struct kota_answer *answer;

        kota_options_init(&options, sizeof(options));
        options.url = urls[i];
        wrong = kota_open(&options);
        if (!kota_open_error(wrong))
            fail_msg("%s was taken", urls[i]);
        answer = kota_call(wrong, kota_livez());
        assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_USAGE);
        kota_answer_free(answer);
        kota_close(wrong, NULL, NULL);
    }
}

static void problems_keep_what_the_daemon_said(void **state)
{
    struct kota_request *request = kota_request_new("POST", "/v1/locales/yard/height");
    const struct kota_error *error;
    struct kota_answer *answer;

    (void)state;
    kota_request_body(request, "application/json", "{\"points\":[[1,\"x\"]]}", 20);
    answer = kota_call(client, request);
    error = kota_answer_error(answer);
    assert_int_equal(error->kind, KOTA_ERROR_PROBLEM);
    assert_int_equal(error->status, 400);
    assert_string_equal(error->title, "Bad input");
    assert_string_equal(error->code, "bad_input");
    assert_non_null(strstr(error->pointer, "/points/0"));
    assert_true(*error->detail && strstr(error->message, error->detail));
    kota_answer_free(answer);

    float *many = calloc(1000001, 2 * sizeof(float));
    assert_non_null(many);
    answer = kota_call(client, kota_batch_f32(KOTA_HEIGHT, "yard", many, 1000001, NULL));
    error = kota_answer_error(answer);
    assert_int_equal(error->status, 413);
    assert_true(error->has_limit && error->limit < error->got);
    kota_answer_free(answer);
    free(many);
}

/* ---- many calls ------------------------------------------------------------------------------ */

static void ten_thousand_calls_one_after_the_other(void **state)
{
    const double xy[2] = {15, 5};

    (void)state;
    for (int i = 0; i < 10000; i++) {
        struct kota_answer *answer = kota_call(client, kota_height("yard", xy, 1, 0));
        struct kota_height height;

        if (!kota_read_height(answer, &height, 1))
            fail_msg("call %d: %s", i, kota_answer_error(answer)->message);
        assert_close(height.height_m, 1.5);
        kota_answer_free(answer);
    }
}

struct many {
    unsigned right, wrong;
    bool is_closed;
};

static bool count_heights(struct kota_answer *answer, void *context)
{
    struct many *many = context;
    struct kota_height height;

    if (kota_read_height(answer, &height, 1) && height.height_m == 1.5)
        many->right++;
    else
        many->wrong++;
    return false;
}

static void note_closed(void *context)
{
    ((struct many *)context)->is_closed = true;
}

static void a_thousand_calls_at_once_on_the_callers_loop(void **state)
{
    const double xy[2] = {15, 5};
    struct kota_options options;
    struct kota_client *async;
    struct kota_answer *answer;
    struct many many = {0};
    uv_loop_t loop;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    kota_options_init(&options, sizeof(options));
    options.url = kotad.url;
    options.loop = &loop;
    options.timeout_s = 600;
    async = kota_open(&options);
    for (int i = 0; i < 1000; i++)
        assert_true(kota_start(async, kota_height("yard", xy, 1, 0), count_heights, &many) > 0);
    assert_int_equal(many.right + many.wrong, 0);
    uv_run(&loop, UV_RUN_DEFAULT); /* ends by itself: kept connections do not hold a loop */
    assert_int_equal(many.right, 1000);
    answer = kota_call(async, kota_livez()); /* blocking is for private loops */
    assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_USAGE);
    kota_answer_free(answer);
    kota_close(async, note_closed, &many);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(many.is_closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

struct closing {
    struct kota_client *client;
    struct kota_answer *kept;
    unsigned told;
    bool is_closed;
};

static void note_closing(void *context)
{
    ((struct closing *)context)->is_closed = true;
}

/* Keeps the first answer and closes; the others are cancelled. */
static bool close_at_first(struct kota_answer *answer, void *context)
{
    struct closing *closing = context;

    if (closing->told++ > 0)
        return false;
    closing->kept = answer;
    kota_close(closing->client, note_closing, closing);
    assert_int_equal(kota_start(closing->client, kota_limits(), close_at_first, closing), 0);
    return true;
}

static void a_callback_may_close_the_client(void **state)
{
    struct kota_options options;
    struct closing closing = {0};
    uv_loop_t loop;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    kota_options_init(&options, sizeof(options));
    options.url = kotad.url;
    options.loop = &loop;
    options.connections_max = 4;
    closing.client = kota_open(&options);
    for (int i = 0; i < 100; i++)
        kota_start(closing.client, kota_locale("yard"), close_at_first, &closing);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closing.told, 100);
    assert_true(closing.is_closed);
    assert_int_equal(kota_answer_status(closing.kept), 200);
    kota_answer_free(closing.kept);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static bool count_cancelled(struct kota_answer *answer, void *context)
{
    unsigned *count = context;

    *count += kota_answer_error(answer)->kind == KOTA_ERROR_CANCELLED;
    return false;
}

static void what_is_cancelled_is_told_once(void **state)
{
    struct kota_options options;
    struct kota_client *other;
    unsigned cancelled = 0;
    uint64_t number;

    (void)state;
    kota_options_init(&options, sizeof(options));
    options.url = kotad.url;
    other = kota_open(&options);
    number = kota_start(other, kota_limits(), count_cancelled, &cancelled);
    assert_true(kota_cancel(other, number));
    assert_false(kota_cancel(other, number));
    assert_int_equal(kota_wait(other, 10), 1);
    assert_int_equal(cancelled, 1);
    for (int i = 0; i < 50; i++)
        kota_start(other, kota_limits(), count_cancelled, &cancelled);
    kota_close(other, NULL, NULL);
    assert_int_equal(cancelled, 51);
}

/* ---- a daemon that goes ---------------------------------------------------------------------- */

static void calls_survive_a_restart(void **state)
{
    const double xy[2] = {15, 5};
    struct kota_height height;
    struct kota_answer *answer;

    (void)state;
    call_away(kota_locale("yard"));
    kotad_kill(&kotad);
    answer = kota_call(client, kota_height("yard", xy, 1, 0));
    assert_int_equal(kota_answer_error(answer)->kind, KOTA_ERROR_CONNECT);
    kota_answer_free(answer);
    kotad_start(&kotad);
    answer = call(kota_height("yard", xy, 1, 0));
    assert_true(kota_read_height(answer, &height, 1));
    assert_close(height.height_m, 1.5);
    kota_answer_free(answer);
    kotad_stop(&kotad);
    kotad_start(&kotad);
    call_away(kota_edit_brush("yard", KOTA_RAISE, 10, 10, 5, 0));
}

struct killing {
    unsigned there, lost, others;
};

static bool count_killed(struct kota_answer *answer, void *context)
{
    struct killing *killing = context;
    const struct kota_error *error = kota_answer_error(answer);

    if (!error)
        killing->there++;
    else if (error->kind == KOTA_ERROR_LOST || error->kind == KOTA_ERROR_CONNECT)
        killing->lost++;
    else
        killing->others++;
    return false;
}

static void a_daemon_killed_in_mid_call_ends_each_call_once(void **state)
{
    float *items = calloc(200000, 3 * sizeof(float));
    struct killing killing = {0};

    (void)state;
    assert_non_null(items);
    for (int i = 0; i < 64; i++)
        kota_start(client, kota_batch_f32(KOTA_CONTACT, "yard", items, 200000, NULL), count_killed,
                   &killing);
    while (killing.there == 0)
        assert_true(kota_wait(client, 60) > 0);
    kotad_kill(&kotad);
    while (killing.there + killing.lost + killing.others < 64)
        assert_true(kota_wait(client, 60) > 0);
    assert_int_equal(killing.others, 0);
    assert_true(killing.lost > 0);
    kotad_start(&kotad);
    call_away(kota_locale("yard"));
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operation_is_answered),
        cmocka_unit_test(locales_and_layers_are_read),
        cmocka_unit_test(meshes_of_every_frame_are_put_and_read),
        cmocka_unit_test(heights_profiles_and_contacts_are_read),
        cmocka_unit_test(rays_sight_and_picks_are_read),
        cmocka_unit_test(shadows_are_read),
        cmocka_unit_test(sweeps_and_moves_are_read),
        cmocka_unit_test(containment_and_places_are_read),
        cmocka_unit_test(the_world_is_asked),
        cmocka_unit_test(batches_have_the_bits_of_single_answers),
        cmocka_unit_test(edits_happen_once_and_are_told),
        cmocka_unit_test(tiles_and_models_are_read),
        cmocka_unit_test(patches_are_asked_for),
        cmocka_unit_test(elevations_are_read),
        cmocka_unit_test(every_daemon_has_an_answer),
        cmocka_unit_test(bad_use_is_told_without_sending),
        cmocka_unit_test(wrong_options_are_told_by_each_call),
        cmocka_unit_test(problems_keep_what_the_daemon_said),
        cmocka_unit_test(ten_thousand_calls_one_after_the_other),
        cmocka_unit_test(a_thousand_calls_at_once_on_the_callers_loop),
        cmocka_unit_test(a_callback_may_close_the_client),
        cmocka_unit_test(what_is_cancelled_is_told_once),
        cmocka_unit_test(calls_survive_a_restart),
        cmocka_unit_test(a_daemon_killed_in_mid_call_ends_each_call_once),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
