/*
 * Replicas beside their daemon: the same bits after any change, and never an answer of another
 * revision than the one it names, whatever becomes of daemon, feed and reader.
 *
 * in make test-all: 1,000 changes and 1,000,000 answers.
 */
#include "client/ground/kota-ground.h"
#include "client/lib/kota.h"

#include "support/kotad_process.h"
#include "support/long_form.h"
#include "support/pause.h"
#include "support/random.h"
#include "support/replica/compare.h"
#include "support/rotation.h"
#include "support/tcp_proxy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLS = 600, ROWS = 530, SEED = 27 };

struct world {
    struct kotad_process daemon;
    struct kota_client *client;
    struct random random;
};

static struct world world;

static const struct replica_place places[] = {
    {"land", true, false, {0, 0, -30}, {1198, 1058, 60}},
    {"town", true, false, {0, 0, -10}, {200, 200, 40}},
    {"slope", false, false, {-50, -50, -50}, {50, 50, 50}},
    {"globe", false, false, {-120, -120, -120}, {120, 120, 120}},
};
enum { PLACES = sizeof places / sizeof *places };

/* ---- the world ------------------------------------------------------------------------------- */

static void done(struct kota_answer *answer)
{
    if (kota_answer_error(answer))
        fail_msg("%s", kota_answer_error(answer)->message);
    kota_answer_free(answer);
}

static void call(struct kota_request *request)
{
    done(kota_call(world.client, request));
}

static float ground_m(uint32_t c, uint32_t r)
{
    return (float)(20 * sin(c * 0.02) * cos(r * 0.017) + sin(c * 0.5) + cos(r * 0.41));
}

static void put_land(void)
{
    float *heights = malloc(sizeof *heights * COLS * ROWS);

    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLS; c++)
            heights[r * COLS + c] = (c / 7 + r / 9) % 97 == 0 ? NAN : ground_m(c, r);
    call(kota_put_locale("land", "{\"triangulation\":\"alternating\"}"));
    call(kota_put_layer_heights("land", "ground", heights, COLS, ROWS, 2, 2));
    free(heights);
}

/* A closed box of quads as OBJ. */
static void box_obj(char *out, size_t size, double x, double y, double z, double side, double high)
{
    int at = 0;

    for (int i = 0; i < 8; i++)
        at += snprintf(out + at, size - (size_t)at, "v %g %g %g\n", x + (i & 1) * side,
                       y + (i >> 1 & 1) * side, z + (i >> 2) * high);
    snprintf(out + at, size - (size_t)at,
             "f 1 2 4 3\nf 5 6 8 7\nf 1 2 6 5\nf 2 4 8 6\nf 4 3 7 8\nf 3 1 5 7\n");
}

static void put_boxes(const char *locale, const char *layer, int count, bool is_ceiling)
{
    const struct kota_mesh_options options = {.is_ceiling = is_ceiling};
    char *text = malloc((size_t)count * 512), one[512];
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        unsigned base = 8 * (unsigned)i, f[4];

        box_obj(one, sizeof one, 12.0 * (i % 14), 13.0 * (i / 14), 3 * sin(i), 5 + i % 4, 4);
        for (char *line = strtok(one, "\n"); line; line = strtok(NULL, "\n"))
            if (sscanf(line, "f %u %u %u %u", &f[0], &f[1], &f[2], &f[3]) == 4)
                at += (size_t)sprintf(text + at, "f %u %u %u %u\n", f[0] + base, f[1] + base,
                                      f[2] + base, f[3] + base);
            else
                at += (size_t)sprintf(text + at, "%s\n", line);
    }
    call(kota_put_layer_mesh(locale, layer, "model/obj", text, at, &options));
    free(text);
}

static void put_globe(void)
{
    static const struct kota_mesh_options spherical = {.frame = KOTA_SPHERICAL};
    char text[1024];

    box_obj(text, sizeof text, -80, -80, -80, 160, 160);
    call(kota_put_locale("globe", "{\"placement\":{\"translation\":[5000,0,0],"
                                  "\"rotation\":[0,0,0,1]}}"));
    call(kota_put_layer_mesh("globe", "planet", "model/obj", text, strlen(text), &spherical));
}

static void build_world(void)
{
    put_land();
    put_boxes("land", "bridge", 3, false);
    call(kota_put_locale("town", "{\"open_sky\":false,\"placement\":{\"translation\":[1500,20,3],"
                                 "\"rotation\":[0,0,0.6,0.8]}}"));
    put_boxes("town", "houses", 150, false);
    put_boxes("town", "roof", 30, true);
    call(kota_put_locale("slope", "{\"gravity\":[0,0.6,-0.8]}"));
    put_boxes("slope", "ramp", 40, false);
    put_globe();
}

static int setup(void **state)
{
    struct kota_options options;

    (void)state;
    world.random.state = SEED;
    kotad_start(&world.daemon);
    kota_options_init(&options, sizeof options);
    options.url = world.daemon.url;
    options.timeout_s = 600;
    world.client = kota_open(&options);
    build_world();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kota_close(world.client, NULL, NULL);
    kotad_remove(&world.daemon);
    return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void edit_samples(void)
{
    uint32_t cols = 1 + random_below(&world.random, 60), rows = 1 + random_below(&world.random, 60);
    uint32_t rect[4] = {random_below(&world.random, COLS - cols),
                        random_below(&world.random, ROWS - rows), cols, rows};
    float *heights;

    if (random_below(&world.random, 40) == 0) /* more than an event may have */
        memcpy(rect, (uint32_t[4]){100, 90, 200, 300}, sizeof rect);
    heights = malloc(sizeof *heights * rect[2] * rect[3]);
    for (uint32_t i = 0; i < rect[2] * rect[3]; i++)
        heights[i] =
            random_below(&world.random, 50) == 0 ? NAN : (float)random_in(&world.random, -20, 40);
    call(kota_edit("land", rect, random_below(&world.random, 2) ? KOTA_SET : KOTA_ADD, heights));
    free(heights);
}

static void edit_brush(void)
{
    call(kota_edit_brush("land", (enum kota_brush)random_below(&world.random, 2),
                         random_in(&world.random, 0, 1198), random_in(&world.random, 0, 1058),
                         random_in(&world.random, 4, 40), random_in(&world.random, 0.1, 4)));
}

/* Adds some triangles and removes what this test added before. */
static void edit_polygons(void)
{
    static uint32_t added = 0;
    static bool is_removed = true;
    enum { NEW = 3 };
    double xyz[9 * NEW];
    size_t counts[NEW] = {3, 3, 3};
    uint32_t removed[NEW];
    struct kota_answer *answer;
    double first = 0;

    for (int i = 0; i < 9 * NEW; i++)
        xyz[i] = random_in(&world.random, i % 3 == 2 ? -5 : 0, i % 3 == 2 ? 30 : 180);
    for (uint32_t i = 0; i < NEW; i++)
        removed[i] = added + i;
    answer = kota_call(world.client, kota_polygons("town", "houses", xyz, counts, NEW, removed,
                                                   is_removed ? 0 : NEW));
    assert_true(kota_read_number(answer, "/added/0", &first));
    added = (uint32_t)first;
    is_removed = false;
    done(answer);
}

static void move_layer(void)
{
    double to[3] = {random_in(&world.random, 0, 900), random_in(&world.random, 0, 900),
                    random_in(&world.random, -5, 30)};

    double rotation[4];

    if (random_below(&world.random, 3) == 0) {
        rotation_random(&world.random, rotation);
        call(kota_put_rotation("land", "bridge", to, rotation));
        return;
    }
    call(kota_put_transform("land", "bridge", to,
                            random_below(&world.random, 2) ? random_in(&world.random, -180, 180)
                                                           : 90));
}

static void change_something(void)
{
    switch (random_below(&world.random, 8)) {
    case 0:
    case 1:
    case 2:
        edit_samples();
        break;
    case 3:
    case 4:
        edit_brush();
        break;
    case 5:
        edit_polygons();
        break;
    default:
        move_layer();
        break;
    }
}

/* What of the locale is another than heights, polygons and poses. */
static void change_layers(void)
{
    call(kota_put_locale("land", "{\"triangulation\":\"main\"}"));
    call(kota_put_locale("slope", "{\"gravity\":[0.6,0,-0.8]}"));
    put_boxes("town", "roof", 12, true);
    put_boxes("town", "shed", 3, false);
    put_boxes("land", "bridge", 5, false); /* at rest again */
}

/* ---- replicas -------------------------------------------------------------------------------- */

/* bounds: of land; NULL: all of it. */
static struct kota_replica *open_replica_in(const char *url, int compression, const double *bounds)
{
    struct kota_replica_locale followed[PLACES];
    struct kota_replica_options options;
    struct kota_options client;

    kota_options_init(&client, sizeof client);
    client.url = url;
    kota_replica_options_init(&options, sizeof options);
    for (size_t i = 0; i < PLACES; i++)
        followed[i] = (struct kota_replica_locale){.id = places[i].locale};
    followed[0].has_bounds = bounds != NULL;
    if (bounds)
        memcpy(followed[0].bounds, bounds, sizeof followed[0].bounds);
    options.client = &client;
    options.locales = followed;
    options.locale_count = PLACES;
    options.compression = compression;
    return kota_replica_open(&options);
}

static struct kota_replica *open_replica_at(const char *url, int compression)
{
    return open_replica_in(url, compression, NULL);
}

/* The daemon's state of a locale. */
static void daemon_state(const char *locale, uint64_t *revision, uint64_t *transform_seq)
{
    struct kota_answer *answer = kota_call(world.client, kota_locale(locale));
    double seq = 0;

    *revision = kota_answer_revision(answer);
    *transform_seq = kota_read_number(answer, "/transform_seq", &seq) ? (uint64_t)seq : 0;
    kota_answer_free(answer);
}

/* Until the locale is at the daemon's revision and transform_seq. */
static void wait_for(struct kota_replica *replica, const char *locale)
{
    uint64_t revision, seq;
    struct kota_replica_status status;

    daemon_state(locale, &revision, &seq);
    for (int ms = 0;; ms += 2) {
        kota_replica_status(replica, locale, &status, sizeof status);
        if (status.revision == revision && status.transform_seq == seq)
            break;
        if (ms > 600000 || status.state == KOTA_REPLICA_REFUSED)
            fail_msg("%s: at %llu.%llu, the daemon at %llu.%llu: state %d, %s %s", locale,
                     (unsigned long long)status.revision, (unsigned long long)status.transform_seq,
                     (unsigned long long)revision, (unsigned long long)seq, (int)status.state,
                     status.refusal, status.error.message);
        pause_ms(2);
    }
}

/* And until what was moved is at rest, which no number names: its velocity is zero then. */
static void catch_up(struct kota_replica *replica)
{
    pause_ms(400);
    for (size_t i = 0; i < PLACES; i++)
        wait_for(replica, places[i].locale);
}

/* A change that a copy with these bounds receives at once, not with the next keep-alive. */
static void edit_inside(const double bounds[4])
{
    call(kota_edit_brush("land", KOTA_RAISE, (bounds[0] + bounds[2]) / 2,
                         (bounds[1] + bounds[3]) / 2, 9, 0.5));
}

/* The greatest sample of land, far from those bounds, is another. */
static void edit_beyond(double height_m)
{
    call(kota_edit("land", (const uint32_t[]){5, 6, 1, 1}, KOTA_SET,
                   (const float[]){(float)height_m}));
}

static bool is_absent_at(const struct kota_ground_view *view, const double bounds[4])
{
    double xy[2] = {random_in(&world.random, bounds[0], bounds[2]),
                    random_in(&world.random, bounds[1], bounds[3])};
    struct kota_ground_point point;

    assert_true(kota_ground_heights(kota_ground_locale(view, "land"), NULL, KOTA_GROUND_TRIANGLE,
                                    xy, 1, &point, NULL));
    return point.status == KOTA_GROUND_IS_ABSENT;
}

/*
 * The same answers. That a moved layer is at rest, with a velocity of zero, no number names: where
 * velocities differ the same questions are asked again, until both have heard of it.
 */
static void compare_place(struct kota_ground_reader *reader, const struct replica_place *place,
                          size_t count, struct replica_count *counted)
{
    const struct random before = world.random;

    for (unsigned again = 0;; again++) {
        *counted = (struct replica_count){0};
        world.random = before;
        if (!replica_compare(world.client, kota_ground_newest(reader), place, &world.random, count,
                             counted))
            fail_msg("%s", counted->first);
        if (counted->differ == 0)
            return;
        if (again == 100 || !strstr(counted->first, "velocity"))
            fail_msg("%llu of %llu differ: %s", (unsigned long long)counted->differ,
                     (unsigned long long)counted->compared, counted->first);
        pause_ms(100);
    }
}

static void compare_all(struct kota_ground_reader *reader, size_t count)
{
    for (size_t i = 0; i < PLACES; i++) {
        struct replica_count counted = {0};

        compare_place(reader, &places[i], count, &counted);
    }
}

static void answers_are_the_daemons_after_any_change(void **state)
{
    struct kota_replica *replica = open_replica_at(world.daemon.url, -1);
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
    unsigned rounds = long_form(20, 6), changes = long_form(50, 12), answers = long_form(2000, 60);

    (void)state;
    catch_up(replica);
    compare_all(reader, answers);
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < changes; i++)
            change_something();
        if (round % 5 == 3)
            change_layers();
        catch_up(replica);
        compare_all(reader, answers);
    }
    kota_ground_reader_close(reader);
    kota_replica_close(replica);
}

static void a_compressed_replica_is_the_same(void **state)
{
    struct kota_replica *replica = open_replica_at(world.daemon.url, 1);
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));

    (void)state;
    change_something();
    catch_up(replica);
    compare_all(reader, 60);
    kota_ground_reader_close(reader);
    kota_replica_close(replica);
}

/* Within the bounds all heights are there; what depends on more is absent, and nothing is wrong. */
static void a_part_answers_what_it_holds(void **state)
{
    static const double bounds[4] = {301, 240, 700.5, 777};
    struct kota_replica *replica = open_replica_in(world.daemon.url, -1, bounds);
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
    struct replica_place inside = {"land", true, true, {311, 250, -30}, {690, 767, 60}};
    struct replica_count counted = {0};

    (void)state;
    for (unsigned round = 0; round < long_form(20, 4); round++) {
        struct replica_place all = places[0];

        for (unsigned i = 0; i < 10; i++)
            change_something();
        if (round % 4 == 2)
            change_layers();
        edit_beyond(round % 2 ? 0 : 900 + round);
        pause_ms(400);
        edit_inside(bounds);
        wait_for(replica, "land");
        all.may_be_absent = true;
        for (int i = 0; i < 2; i++)
            compare_place(reader, i ? &inside : &all, long_form(1000, 50), &counted);
        for (unsigned i = 0; i < 1000; i++)
            assert_false(is_absent_at(kota_ground_newest(reader), bounds));
    }
    kota_ground_reader_close(reader);
    kota_replica_close(replica);
}

static void a_restarted_daemon_is_found_again(void **state)
{
    struct kota_replica *replica = open_replica_at(world.daemon.url, -1);
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
    struct kota_replica_status status;
    const struct kota_ground_view *view;

    (void)state;
    for (unsigned i = 0; i < long_form(20, 3); i++) {
        double before_m;

        catch_up(replica);
        view = kota_ground_newest(reader);
        before_m = kota_ground_height(kota_ground_locale(view, "land"), 333, 444);
        kotad_kill(&world.daemon);
        for (int ms = 0; kota_replica_status(replica, "land", &status, sizeof status) &&
                         !status.is_lost && ms < 600000;
             ms += 5)
            pause_ms(5);
        assert_true(status.is_lost);
        assert_int_equal(status.state, KOTA_REPLICA_BEHIND);
        view = kota_ground_newest(reader);
        assert_true(kota_ground_height(kota_ground_locale(view, "land"), 333, 444) == before_m ||
                    isnan(before_m));
        kotad_start(&world.daemon);
        change_something();
        catch_up(replica);
        compare_all(reader, 20);
    }
    kota_ground_reader_close(reader);
    kota_replica_close(replica);
}

static void a_feed_cut_anywhere_goes_on(void **state)
{
    struct tcp_proxy *proxy = tcp_proxy_start(world.daemon.port);
    struct kota_replica *replica;
    struct kota_ground_reader *reader;
    char url[64];
    unsigned cuts = long_form(10000, 25);

    (void)state;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", tcp_proxy_port(proxy));
    replica = open_replica_at(url, -1);
    reader = kota_ground_reader_open(kota_replica_copy(replica));
    for (unsigned i = 0; i < cuts; i++) {
        tcp_proxy_cut(proxy, TCP_PROXY_TO_CLIENT, random_below(&world.random, 20000));
        change_something();
        if (i % 5 == 4)
            change_something();
        if (i % 25 == 24) {
            catch_up(replica);
            compare_all(reader, 10);
        }
    }
    kota_ground_reader_close(reader);
    kota_replica_close(replica);
    tcp_proxy_stop(proxy);
}

/* As one that slept for an hour: its connection is full, then cut off, and changes are missed. */
static void a_frozen_replica_catches_up(void **state)
{
    struct tcp_proxy *proxy = tcp_proxy_start(world.daemon.port);
    struct kota_replica *replica;
    struct kota_ground_reader *reader;
    struct kota_replica_status status;
    char url[64];

    (void)state;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", tcp_proxy_port(proxy));
    replica = open_replica_at(url, -1);
    reader = kota_ground_reader_open(kota_replica_copy(replica));
    catch_up(replica);
    tcp_proxy_set(proxy, TCP_PROXY_HOLD);
    for (unsigned i = 0; i < long_form(6000, 1300); i++) /* the feed's ring has 1,024 at least */
        edit_brush();
    kota_replica_status(replica, "land", &status, sizeof status);
    assert_true(status.staleness_s > 0.1);
    tcp_proxy_set(proxy, TCP_PROXY_REFUSE);
    pause_ms(50);
    tcp_proxy_set(proxy, TCP_PROXY_PASS);
    catch_up(replica);
    compare_all(reader, 20);
    kota_ground_reader_close(reader);
    kota_replica_close(replica);
    tcp_proxy_stop(proxy);
}

/* Of one locale, of which nothing is there yet. */
static struct kota_replica *open_replica_of(const char *locale)
{
    struct kota_replica_locale followed = {.id = locale};
    struct kota_replica_options options;
    struct kota_options client;

    kota_options_init(&client, sizeof client);
    client.url = world.daemon.url;
    kota_replica_options_init(&options, sizeof options);
    options.client = &client;
    options.locales = &followed;
    options.locale_count = 1;
    return kota_replica_open(&options);
}

static void a_locale_that_goes_leaves_the_view(void **state)
{
    struct kota_replica *replica = open_replica_of("guest");
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
    struct kota_replica_status status = {0};

    (void)state;
    assert_false(kota_replica_wait(replica, "guest", 0, 0.3));
    call(kota_put_locale("guest", NULL));
    put_boxes("guest", "box", 2, false);
    assert_true(kota_replica_wait(replica, "guest", 2, 600));
    assert_non_null(kota_ground_locale(kota_ground_newest(reader), "guest"));
    call(kota_delete_locale("guest"));
    for (int ms = 0; status.state != KOTA_REPLICA_GONE && ms < 600000; ms += 5) {
        kota_replica_status(replica, "guest", &status, sizeof status);
        pause_ms(5);
    }
    assert_int_equal(status.state, KOTA_REPLICA_GONE);
    assert_null(kota_ground_locale(kota_ground_newest(reader), "guest"));
    kota_ground_reader_close(reader);
    kota_replica_close(replica);
}

/* The next request for a locale that is not there is due 250 ms after the last. */
static void a_replica_closes_while_a_request_waits(void **state)
{
    enum { COUNT = 40, ROUNDS = 3 };
    struct kota_replica *replicas[COUNT];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            replicas[i] = open_replica_of("nobody");
        pause_ms(230);
        for (int i = 0; i < COUNT; i++) {
            kota_replica_close(replicas[i]);
            pause_ms(1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_daemons_after_any_change),
        cmocka_unit_test(a_compressed_replica_is_the_same),
        cmocka_unit_test(a_part_answers_what_it_holds),
        cmocka_unit_test(a_restarted_daemon_is_found_again),
        cmocka_unit_test(a_feed_cut_anywhere_goes_on),
        cmocka_unit_test(a_frozen_replica_catches_up),
        cmocka_unit_test(a_locale_that_goes_leaves_the_view),
        cmocka_unit_test(a_replica_closes_while_a_request_waits),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
