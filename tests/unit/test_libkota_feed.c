/*
 * Feeds of the client library: a real daemon that is killed and comes back, and streams that are
 * cut, wrong, or left by their reader.
 */
#include "client/lib/kota.h"
#include "support/fake_http.h"
#include "support/kotad_process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { LOG_MAX = 4096 };

/* What was told: a letter an event. */
struct told {
    char letters[LOG_MAX]; /* o open, e edit, r resync, x other, l lost, z ended */
    uint64_t revisions[LOG_MAX];
    size_t count;
    enum kota_error_kind error;
    char source[32], data[256], id[64];
    float samples[4];
    size_t sample_count;
    /* what the callback does at an event of that letter */
    char act_at, act;
    struct kota_client *client;
    uint64_t number;
};

static void note(const struct kota_event *event, void *context)
{
    static const char letters[] = "oerxlz";
    struct told *told = context;
    char letter = letters[event->kind];

    assert_true(told->count + 1 < LOG_MAX);
    told->revisions[told->count] = event->revision;
    told->letters[told->count++] = letter;
    if (event->error)
        told->error = event->error->kind;
    if (event->source)
        snprintf(told->source, sizeof(told->source), "%s", event->source);
    if (event->data) {
        snprintf(told->data, sizeof(told->data), "%s", event->data);
        snprintf(told->id, sizeof(told->id), "%s", event->id);
    }
    if (event->kind == KOTA_EVENT_EDIT)
        told->sample_count = event->sample_count;
    assert_int_equal(event->samples == NULL, event->sample_count == 0);
    for (size_t i = 0; i < event->sample_count && i < 4; i++)
        told->samples[i] = event->samples[i];
    if (letter != told->act_at)
        return;
    if (told->act == 'c')
        assert_true(kota_cancel(told->client, told->number));
    else
        kota_close(told->client, NULL, NULL);
}

static struct kota_client *open_url(const char *url)
{
    struct kota_options options;

    kota_options_init(&options, sizeof(options));
    options.url = url;
    options.timeout_s = 600;
    return kota_open(&options);
}

/* Waits until so many events of that letter have come. */
static void await(struct kota_client *client, const struct told *told, char letter, size_t count)
{
    for (;;) {
        size_t seen = 0;

        for (size_t i = 0; i < told->count; i++)
            seen += told->letters[i] == letter;
        if (seen >= count)
            return;
        if (kota_wait(client, 90) == 0)
            fail_msg("waited for %zu of '%c', got '%s'", count, letter, told->letters);
    }
}

static uint64_t dig(struct kota_client *client)
{
    struct kota_answer *answer =
        kota_call(client, kota_edit_brush("yard", KOTA_CRATER, 20, 20, 10, 0.5));
    struct kota_edit edit;

    if (!kota_read_edit(answer, &edit))
        fail_msg("%s", kota_answer_error(answer)->message);
    kota_answer_free(answer);
    return edit.revision;
}

static void assert_made(struct kota_client *client, struct kota_request *request)
{
    struct kota_answer *answer = kota_call(client, request);

    if (kota_answer_error(answer))
        fail_msg("%s", kota_answer_error(answer)->message);
    kota_answer_free(answer);
}

/* Each revision from first to last is told, or lies in a gap that a resync tells of. */
static void assert_no_gap(const struct told *told, uint64_t first, uint64_t last)
{
    uint64_t next = first;

    for (size_t i = 0; i < told->count; i++) {
        if (told->letters[i] == 'e' && told->revisions[i] != next)
            fail_msg("revision %llu came where %llu was due ('%s')",
                     (unsigned long long)told->revisions[i], (unsigned long long)next,
                     told->letters);
        if (told->letters[i] == 'e' || told->letters[i] == 'r')
            next = told->revisions[i] + 1;
    }
    assert_int_equal(next, last + 1);
}

static void a_feed_goes_on_after_a_restart(void **state)
{
    struct kotad_process kotad = {0};
    struct kota_client *reader, *writer;
    struct told told = {0};
    float *flat = calloc(50 * 50, sizeof(float));
    uint64_t first, last = 0;

    (void)state;
    assert_non_null(flat);
    kotad_start(&kotad);
    reader = open_url(kotad.url);
    writer = open_url(kotad.url);
    assert_made(writer, kota_put_locale("yard", NULL));
    assert_made(writer, kota_put_layer_heights("yard", "ground", flat, 50, 50, 1, 1));
    free(flat);
    told.number = kota_watch(reader, kota_locale_events("yard"), note, &told);
    await(reader, &told, 'o', 1);
    first = dig(writer);
    for (int i = 0; i < 20; i++)
        last = dig(writer);
    await(reader, &told, 'e', 21);
    assert_string_equal(told.source, "brush");
    assert_no_gap(&told, first, last);

    kotad_kill(&kotad);
    kotad_start(&kotad);
    for (int i = 0; i < 20; i++) /* before the feed has come back */
        last = dig(writer);
    await(reader, &told, 'l', 1);
    await(reader, &told, 'o', 2);
    last = dig(writer);
    while (told.revisions[told.count - 1] < last)
        assert_true(kota_wait(reader, 90) > 0);
    assert_no_gap(&told, first, last);

    assert_made(writer, kota_delete_locale("yard"));
    await(reader, &told, 'z', 1);
    assert_string_equal(told.source, "delete");
    assert_int_equal(kota_wait(reader, 1), 0); /* nothing is under way */
    kota_close(reader, NULL, NULL);
    kota_close(writer, NULL, NULL);
    kotad_remove(&kotad);
}

static void a_watch_is_read_changed_and_ended_by_its_name(void **state)
{
    static const float flat[2500];
    struct kotad_process kotad = {0};
    struct kota_client *client;
    struct kota_answer *answer;
    struct told told = {0};
    const char *name;

    (void)state;
    kotad_start(&kotad);
    client = open_url(kotad.url);
    assert_made(client, kota_put_locale("yard", NULL));
    assert_made(client, kota_put_layer_heights("yard", "ground", flat, 50, 50, 1, 1));
    answer = kota_call(
        client, kota_post_watch("yard", "{\"height\":{\"points\":[[5,5]],\"ids\":[\"door\"]}}"));
    name = kota_answer_header(answer, "Location");
    assert_non_null(name);
    name = strrchr(name, '/') + 1;
    kota_watch(client, kota_watch_events(name), note, &told);
    await(client, &told, 'x', 1);
    assert_non_null(strstr(told.data, "door"));
    assert_made(client, kota_patch_watch(name, "{\"remove\":[\"door\"]}"));
    assert_made(client, kota_delete_watch(name));
    kota_answer_free(answer);
    kota_close(client, NULL, NULL);
    kotad_remove(&kotad);
}

/* A binary feed brings samples and poses, and continues after its last frame. */
static void a_feed_may_be_binary(void **state)
{
    static const float flat[2500];
    struct kotad_process kotad = {0};
    struct kota_client *reader, *writer;
    struct kota_request *request;
    struct told told = {0};
    uint64_t first, last;

    (void)state;
    kotad_start(&kotad);
    reader = open_url(kotad.url);
    writer = open_url(kotad.url);
    assert_made(writer, kota_put_locale("yard", NULL));
    assert_made(writer, kota_put_layer_heights("yard", "ground", flat, 50, 50, 1, 1));
    request = kota_locale_events("yard");
    kota_request_header(request, "Accept", "application/vnd.kota.feed");
    told.number = kota_watch(reader, request, note, &told);
    await(reader, &told, 'o', 1);
    await(reader, &told, 'x', 1); /* hello */
    first = dig(writer);
    await(reader, &told, 'e', 1);
    assert_true(told.sample_count > 0);
    assert_string_equal(told.source, "brush");
    kotad_kill(&kotad);
    kotad_start(&kotad);
    last = dig(writer);
    await(reader, &told, 'e', 2);
    assert_no_gap(&told, first, last);
    assert_made(writer, kota_delete_locale("yard"));
    await(reader, &told, 'z', 1);
    assert_string_equal(told.source, "delete");
    kota_close(reader, NULL, NULL);
    kota_close(writer, NULL, NULL);
    kotad_remove(&kotad);
}

static void a_feed_of_nothing_ends(void **state)
{
    struct kotad_process kotad = {0};
    struct kota_client *client;
    struct told told = {0}, wrong = {0};

    (void)state;
    kotad_start(&kotad);
    client = open_url(kotad.url);
    kota_watch(client, kota_locale_events("atlantis"), note, &told);
    await(client, &told, 'z', 1);
    assert_string_equal(told.letters, "z");
    assert_int_equal(told.error, KOTA_ERROR_PROBLEM);
    kota_watch(client, kota_locale_events("a/b"), note, &wrong);
    assert_int_equal(wrong.count, 0);
    await(client, &wrong, 'z', 1);
    assert_int_equal(wrong.error, KOTA_ERROR_USAGE);
    kota_close(client, NULL, NULL);
    kotad_remove(&kotad);
}

/* ---- streams that a test writes -------------------------------------------------------------- */

#define STREAM_HEAD                                                                                \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"              \
    "retry: 20\n: hello\n\n"

struct script {
    const char *answers[8]; /* of the first, second … connection; then silence */
    unsigned piece;         /* bytes sent at once; 0: all */
    char ids[8][32];        /* Last-Event-ID of each */
};

static void serve_script(struct fake_http *server, int fd, unsigned number, void *context)
{
    struct script *script = context;
    char request[4096];
    const char *id, *text;
    size_t length;

    (void)server;
    if (!fake_read_request(fd, request, sizeof(request)) || number >= 8)
        return;
    id = strstr(request, "Last-Event-ID: ");
    if (id)
        snprintf(script->ids[number], sizeof(script->ids[0]), "%.*s", (int)strcspn(id + 15, "\r"),
                 id + 15);
    text = script->answers[number] ? script->answers[number] : STREAM_HEAD;
    length = strlen(text);
    for (size_t from = 0; from < length;) {
        size_t count =
            script->piece && script->piece < length - from ? script->piece : length - from;

        if (!fake_send_bytes(fd, text + from, count))
            return;
        from += count;
        if (script->piece)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (!script->answers[number])
        fake_wait_closed(fd);
}

#define EDIT(id)                                                                                   \
    "event: edit\r\nid: " id "\r\ndata: {\"locale\":\"yard\",\"revision\":" id                     \
    ",\"rect\":[1,2,3,4],\"bounds\":null,\r\ndata: \"source\":\"edit\",\"layer\":\"g\"}\r\n\r\n"

static struct kota_client *open_fake(const struct fake_http *server)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u", fake_http_port(server));
    return open_url(url);
}

static void a_cut_stream_goes_on_behind_what_was_told(void **state)
{
    for (unsigned piece = 0; piece <= 2; piece++) {
        struct script script = {.answers = {STREAM_HEAD EDIT("7") "event: edit\nid: 8\ndata: {",
                                            "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
                                            "nonsense\r\n\r\n", STREAM_HEAD EDIT("8") EDIT("9")},
                                .piece = piece};
        struct fake_http *server = fake_http_start(serve_script, &script);
        struct kota_client *client = open_fake(server);
        struct kota_request *request = kota_locale_events("yard");
        struct told told = {0};

        (void)state;
        kota_request_since(request, 6);
        told.number = kota_watch(client, request, note, &told);
        await(client, &told, 'o', 3);
        assert_string_equal(told.letters, "oellloeelo");
        assert_string_equal(script.ids[0], "6");
        for (int i = 1; i < 4; i++)
            assert_string_equal(script.ids[i], "7");
        assert_string_equal(script.ids[4], "9");
        assert_string_equal(told.id, "9");
        assert_int_equal(told.revisions[1], 7);
        assert_true(kota_cancel(client, told.number));
        assert_false(kota_cancel(client, told.number));
        kota_close(client, NULL, NULL);
        assert_string_equal(told.letters, "oellloeelo"); /* nothing after it was cancelled */
        fake_http_stop(server);
    }
}

static void a_gap_that_nobody_can_tell_is_a_resync(void **state)
{
    struct script script = {.answers = {STREAM_HEAD}};
    struct fake_http *server = fake_http_start(serve_script, &script);
    struct kota_client *client = open_fake(server);
    struct told told = {0};

    (void)state;
    kota_watch(client, kota_events(), note, &told);
    await(client, &told, 'r', 1);
    assert_string_equal(told.letters, "olor");
    assert_string_equal(script.ids[1], "");
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

#define SAMPLES(rect, text)                                                                        \
    "event: edit\nid: 9\ndata: {\"revision\":9,\"rect\":" rect ",\"samples\":" text "}\n\n"

/* Base64 of 1.5 and -2; of another count, malformed, or null there are no samples. */
static void events_bring_samples(void **state)
{
    static const struct {
        const char *event;
        size_t count;
    } cases[] = {{SAMPLES("[0,0,2,1]", "\"AADAPwAAAMA=\""), 2},
                 {SAMPLES("[0,0,1,1]", "\"AADAPwAAAMA=\""), 0},
                 {SAMPLES("null", "\"AADAPwAAAMA=\""), 0},
                 {SAMPLES("[0,0,2,1]", "null"), 0},
                 {SAMPLES("[0,0,2,1]", "\"AADAPwAA?MA=\""), 0},
                 {SAMPLES("[0,0,2,1]", "\"AADAPwAAAM\""), 0},
                 {SAMPLES("[0,0,0,0]", "\"\""), 0},
                 {SAMPLES("[0,0,2,1]", "[1,2]"), 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        struct script script = {.answers = {text}};
        struct fake_http *server = fake_http_start(serve_script, &script);
        struct kota_client *client = open_fake(server);
        struct kota_request *request = kota_locale_events("yard");
        struct told told = {0};

        snprintf(text, sizeof(text), STREAM_HEAD "%s", cases[i].event);
        kota_request_query(request, "samples", "f32");
        kota_watch(client, request, note, &told);
        await(client, &told, 'e', 1);
        assert_int_equal(told.revisions[1], 9);
        assert_int_equal(told.sample_count, cases[i].count);
        if (cases[i].count > 0) {
            assert_true(told.samples[0] == 1.5f);
            assert_true(told.samples[1] == -2.0f);
        }
        kota_close(client, NULL, NULL);
        fake_http_stop(server);
    }
}

static void a_head_says_where_to_go_on(void **state)
{
    struct script script = {
        .answers = {
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nKota-Revision: 41\r\n\r\n"
            "retry: 20\n\n"}};
    struct fake_http *server = fake_http_start(serve_script, &script);
    struct kota_client *client = open_fake(server);
    struct told told = {0};

    (void)state;
    kota_watch(client, kota_locale_events("yard"), note, &told);
    await(client, &told, 'o', 2);
    assert_string_equal(told.letters, "olo");
    assert_string_equal(script.ids[1], "41");
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

static void callbacks_may_leave_their_feed(void **state)
{
    static const char letters[] = "oelz";

    for (size_t i = 0; i < 2 * strlen(letters); i++) {
        char end = letters[i / 2];
        struct script script = {.answers = {end == 'z'
                                                ? "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
                                                : STREAM_HEAD EDIT("7") EDIT("8")}};
        struct fake_http *server = fake_http_start(serve_script, &script);
        struct told told = {.act_at = end, .act = i % 2 ? 'c' : 'q'};
        size_t count;

        (void)state;
        if (end == 'z' && told.act == 'c')
            told.act_at = 0; /* there is nothing to cancel any more */
        told.client = open_fake(server);
        told.number = kota_watch(told.client, kota_locale_events("yard"), note, &told);
        while (told.count == 0 || told.letters[told.count - 1] != end)
            assert_true(kota_wait(told.client, 60) > 0);
        count = told.count;
        if (told.act == 'c') { /* nothing comes any more */
            assert_int_equal(kota_wait(told.client, 0.05), 0);
            kota_close(told.client, NULL, NULL);
        } /* else kota_wait has freed the client */
        assert_int_equal(told.count, count);
        fake_http_stop(server);
    }
}

static void a_silent_stream_is_lost(void **state)
{
    struct script script = {0};
    struct fake_http *server = fake_http_start(serve_script, &script);
    struct kota_options options;
    struct kota_client *client;
    struct told told = {0};
    char url[64];

    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", fake_http_port(server));
    kota_options_init(&options, sizeof(options));
    options.url = url;
    options.silence_s = 0.1;
    client = kota_open(&options);
    kota_watch(client, kota_locale_events("yard"), note, &told);
    await(client, &told, 'l', 2);
    assert_int_equal(told.error, KOTA_ERROR_TIMEOUT);
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

static void serve_long_event(struct fake_http *server, int fd, unsigned number, void *context)
{
    char request[4096];

    (void)server;
    (void)number;
    (void)context;
    if (!fake_read_request(fd, request, sizeof(request)) || !fake_send(fd, STREAM_HEAD "data: "))
        return;
    while (fake_send(fd, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
        continue;
}

static void an_endless_event_is_cut(void **state)
{
    struct fake_http *server = fake_http_start(serve_long_event, NULL);
    struct kota_client *client = open_fake(server);
    struct told told = {0};

    (void)state;
    kota_watch(client, kota_locale_events("yard"), note, &told);
    await(client, &told, 'l', 1);
    assert_int_equal(told.error, KOTA_ERROR_TOO_LONG);
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_feed_goes_on_after_a_restart),
        cmocka_unit_test(a_feed_of_nothing_ends),
        cmocka_unit_test(a_watch_is_read_changed_and_ended_by_its_name),
        cmocka_unit_test(a_cut_stream_goes_on_behind_what_was_told),
        cmocka_unit_test(a_gap_that_nobody_can_tell_is_a_resync),
        cmocka_unit_test(a_feed_may_be_binary),
        cmocka_unit_test(events_bring_samples),
        cmocka_unit_test(a_head_says_where_to_go_on),
        cmocka_unit_test(callbacks_may_leave_their_feed),
        cmocka_unit_test(a_silent_stream_is_lost),
        cmocka_unit_test(an_endless_event_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
