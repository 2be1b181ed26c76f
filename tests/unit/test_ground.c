/*
 * A copy that is changed by values: what it holds, what it refuses, and readers on four threads
 * that never see two states mixed. (Beside a daemon: test_replica.c.)
 */
#include "client/ground/kota-ground.h"

#include "base/err.h"
#include "formats/polygon/polygon_edit.h"
#include "support/random.h"
#include "terrain/mesh/mesh.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = 300, READERS = 4, CHANGES = 400 };

static const struct kota_ground_field field = {{10, 20}, {2, 2}, SIDE, SIDE};

static float *level(float height_m)
{
    float *heights_m = malloc(sizeof *heights_m * SIDE * SIDE);

    assert_non_null(heights_m);
    for (int i = 0; i < SIDE * SIDE; i++)
        heights_m[i] = height_m;
    return heights_m;
}

/* A square floor of z 0 over 0..100, as image and polygons: malloc. */
static void square(void **image, size_t *image_bytes, void **polygons, size_t *polygons_bytes)
{
    struct vec3 vertices[4] = {{0, 0, 0}, {100, 0, 0}, {100, 100, 0}, {0, 100, 0}};
    uint32_t corners[4] = {0, 1, 2, 3}, starts[2] = {0, 4};
    const struct polygon_soup soup = {vertices, 4, corners, starts, 1};
    const struct mesh_options options = {.gravity = {0, 0, -1}};
    const struct polygon_edit all = {.add = {.vertices = vertices,
                                             .vertex_count = 4,
                                             .corners = corners,
                                             .starts = starts,
                                             .polygon_count = 1}};
    struct err err = {.code = ERR_OK};
    struct mesh *mesh = mesh_create(&soup, &options, NULL, &err);
    const void *bytes;

    assert_non_null(mesh);
    bytes = mesh_image(mesh, image_bytes);
    *image = malloc(*image_bytes);
    memcpy(*image, bytes, *image_bytes);
    mesh_unref(mesh);
    *polygons = polygon_edit_encode(&all, polygons_bytes);
    assert_non_null(*polygons);
}

/* Locale "here": a field at z 1 and, with a mesh, a floor that moves. */
static struct kota_ground_copy *make_copy(bool has_mesh)
{
    struct kota_ground_copy *copy = kota_ground_open();
    float *heights_m = level(1);

    assert_true(kota_ground_put_locale(copy, "here", NULL, 1, NULL));
    assert_true(kota_ground_put_field(copy, "here", "ground", &field, heights_m, 1, NULL));
    if (has_mesh) {
        void *image, *polygons;
        size_t image_bytes, polygons_bytes;

        square(&image, &image_bytes, &polygons, &polygons_bytes);
        assert_true(kota_ground_put_mesh(copy, "here", "lift", false, image, image_bytes, polygons,
                                         polygons_bytes, 1, NULL));
        free(image);
        free(polygons);
    }
    assert_true(kota_ground_publish(copy, NULL));
    free(heights_m);
    return copy;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void a_view_stays_what_it_was(void **state)
{
    struct kota_ground_copy *copy = make_copy(false);
    struct kota_ground_reader *reader = kota_ground_reader_open(copy);
    struct kota_ground_reader *other = kota_ground_reader_open(copy);
    const struct kota_ground_view *before = kota_ground_newest(reader), *after;
    const uint32_t rect[4] = {4, 5, 1, 1};
    const float high_m = 9;

    (void)state;
    for (uint64_t i = 2; i < 50; i++) {
        assert_true(kota_ground_put_samples(copy, "here", "ground", rect, &high_m, i, NULL));
        assert_true(kota_ground_publish(copy, NULL));
    }
    assert_int_equal(kota_ground_revision(kota_ground_locale(before, "here")), 1);
    assert_true(kota_ground_height(kota_ground_locale(before, "here"), 18, 30) == 1);
    after = kota_ground_newest(other);
    assert_int_equal(kota_ground_revision(kota_ground_locale(after, "here")), 49);
    assert_true(kota_ground_height(kota_ground_locale(after, "here"), 18, 30) == 9);
    assert_null(kota_ground_locale(after, "there"));
    kota_ground_reader_close(reader);
    kota_ground_reader_close(other);
    assert_ptr_equal(kota_ground_reader_open(copy), other); /* used again: the newest in the list */
    kota_ground_close(copy);
}

static void what_cannot_be_is_refused_with_its_reason(void **state)
{
    struct kota_ground_copy *copy = make_copy(true);
    struct kota_ground_reader *reader = kota_ground_reader_open(copy);
    const struct kota_ground_locale *here = kota_ground_locale(kota_ground_newest(reader), "here");
    const uint32_t outside[4] = {SIDE - 1, 0, 2, 1};
    const float two_m[2] = {0, INFINITY};
    const double beyond[3] = {NAN, 0, 0};
    struct kota_ground_contact contact;
    struct kota_ground_point point;
    struct kota_ground_error error;

    (void)state;
    assert_false(
        kota_ground_heights(here, "lake", KOTA_GROUND_TRIANGLE, beyond, 1, &point, &error));
    assert_string_equal(error.code, "layer_unknown");
    assert_false(kota_ground_contacts(here, NULL, NULL, beyond, 1, &contact, &error));
    assert_string_equal(error.pointer, "/0/0");
    assert_false(kota_ground_put_samples(copy, "here", "ground", outside, two_m, 2, &error));
    assert_string_equal(error.code, "unprocessable");
    assert_false(kota_ground_put_samples(copy, "here", "ground", (uint32_t[4]){0, 0, 2, 1}, two_m,
                                         2, &error));
    assert_string_equal(error.code, "bad_input");
    assert_false(
        kota_ground_put_mesh(copy, "here", "lift", false, "KOTAMESH?", 9, NULL, 0, 2, &error));
    assert_string_equal(error.code, "bad_input");
    assert_false(kota_ground_drop(copy, "there", NULL, 2, &error));
    assert_string_equal(error.code, "locale_unknown");
    assert_false(kota_ground_put_locale(copy, "no id", NULL, 1, &error));
    assert_string_equal(error.code, "bad_input");
    kota_ground_close(copy);
}

/* An image of a later version ends the following; it is not read as one of today. */
static void formats_of_another_version_are_refused(void **state)
{
    static const char hello[28] = "\x18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0kotafeed\3\0\0";
    struct kota_ground_copy *copy = kota_ground_open();
    struct kota_ground_following following;
    struct kota_ground_need need;
    struct kota_ground_error error;

    (void)state;
    assert_true(kota_ground_follow(copy, "far", NULL, NULL));
    assert_true(kota_ground_next(copy, &need));
    assert_string_equal(need.path, "/v1/locales/far/events");
    assert_false(kota_ground_feed(copy, need.number, hello, sizeof hello, &error));
    assert_true(kota_ground_following(copy, "far", &following));
    assert_int_equal(following.state, KOTA_GROUND_REFUSED);
    assert_non_null(strstr(following.error.message, "version"));
    assert_false(kota_ground_next(copy, &need));
    kota_ground_close(copy);
}

/* ---- four readers ---------------------------------------------------------------------------- */

struct watcher {
    pthread_t thread;
    struct kota_ground_copy *copy;
    atomic_bool *is_over;
    unsigned views, wrong;
};

/* Field and lift are at the height of the revision, everywhere. */
static bool is_of_one_state(const struct kota_ground_locale *here, struct random *random)
{
    double at_m = (double)kota_ground_revision(here);
    const double xyz[3] = {random_in(random, 20, 600), random_in(random, 30, 600), 1e6};
    struct kota_ground_contact contact;

    for (int i = 0; i < 8; i++)
        if (kota_ground_height(here, random_in(random, 10, 608), random_in(random, 20, 618)) !=
            at_m)
            return false;
    return kota_ground_contacts(here, NULL, NULL, xyz, 1, &contact, NULL) &&
           contact.floor.point[2] >= at_m &&
           contact.floor.point[2] <= at_m + (double)kota_ground_transform_seq(here);
}

static void *watch(void *context)
{
    struct watcher *watcher = context;
    struct random random = {(uint64_t)(uintptr_t)watcher};
    struct kota_ground_reader *reader = kota_ground_reader_open(watcher->copy);
    const struct kota_ground_view *last = NULL;

    do {
        const struct kota_ground_view *view = kota_ground_newest(reader);

        watcher->views += view != last;
        watcher->wrong += !is_of_one_state(kota_ground_locale(view, "here"), &random);
        last = view;
        if (random_below(&random, 50) == 0) {
            kota_ground_reader_close(reader);
            reader = kota_ground_reader_open(watcher->copy);
        }
    } while (!atomic_load(watcher->is_over));
    kota_ground_reader_close(reader);
    return NULL;
}

static void readers_see_one_state_while_it_changes(void **state)
{
    const uint32_t all[4] = {0, 0, SIDE, SIDE};
    struct kota_ground_copy *copy = make_copy(true);
    struct watcher watchers[READERS];
    atomic_bool is_over = false;
    unsigned views = 0;

    (void)state;
    for (int i = 0; i < READERS; i++) {
        watchers[i] = (struct watcher){.copy = copy, .is_over = &is_over};
        assert_int_equal(pthread_create(&watchers[i].thread, NULL, watch, &watchers[i]), 0);
    }
    for (unsigned i = 2; i < CHANGES; i++) {
        const struct kota_ground_pose pose = {.translation = {0, 0, i + i / 2}};
        float *heights_m = level((float)i);

        assert_true(kota_ground_put_samples(copy, "here", "ground", all, heights_m, i, NULL));
        assert_true(kota_ground_put_pose(copy, "here", "lift", &pose, i / 2, NULL));
        assert_true(kota_ground_publish(copy, NULL));
        free(heights_m);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(watchers[i].thread, NULL);
        assert_int_equal(watchers[i].wrong, 0);
        views += watchers[i].views;
    }
    assert_true(views >= READERS);
    kota_ground_close(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_stays_what_it_was),
        cmocka_unit_test(what_cannot_be_is_refused_with_its_reason),
        cmocka_unit_test(formats_of_another_version_are_refused),
        cmocka_unit_test(readers_see_one_state_while_it_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
