/*
 * A replica beside its daemon: what it costs to open, to follow and to ask.
 *
 * One daemon on loopback holds a field of 4096². Bootstrap is beside `curl` of the same samples, in
 * turns; each figure is the least of its rounds, since other work on the machine only adds. An edit
 * of 39 × 39 samples is timed from its acknowledgement to the moment when the copy answers at its
 * revision; the bytes are those of the feed. Heights one by one are asked of the replica and of a
 * field of the core with the same samples, in turns.
 */
#include "client/ground/kota-ground.h"
#include "client/lib/kota.h"

#include "support/bench_rows.h"
#include "support/kotad_process.h"
#include "support/random.h"
#include "terrain/field/heightfield.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 4096, ROUNDS = 5, EDITS = 500, EDIT_SIDE = 39, POINTS = 4096, AVATARS = 1000 };

static const char section[] = "Replica";

static void fail(const char *what, struct kota_answer *answer)
{
    const struct kota_error *error = answer ? kota_answer_error(answer) : NULL;

    fprintf(stderr, "bench_replica: %s: %s\n", what, error ? error->message : "");
    exit(1);
}

static void call(struct kota_client *client, struct kota_request *request, const char *what)
{
    struct kota_answer *answer = kota_call(client, request);

    if (kota_answer_error(answer))
        fail(what, answer);
    kota_answer_free(answer);
}

static float *make_heights(void)
{
    float *heights_m = malloc(sizeof *heights_m * SIDE * SIDE);

    for (size_t r = 0; heights_m && r < SIDE; r++)
        for (size_t c = 0; c < SIDE; c++)
            heights_m[r * SIDE + c] = (float)(40 * sin(0.003 * (double)c) * cos(0.002 * (double)r) +
                                              sin(0.3 * (double)c + 0.17 * (double)r));
    return heights_m;
}

static struct kota_replica *open_replica(const char *url)
{
    const struct kota_replica_locale followed = {.id = "land"};
    struct kota_replica_options options;
    struct kota_options client;
    struct kota_replica *replica;

    kota_options_init(&client, sizeof client);
    client.url = url;
    kota_replica_options_init(&options, sizeof options);
    options.client = &client;
    options.locales = &followed;
    options.locale_count = 1;
    replica = kota_replica_open(&options);
    if (!replica || !kota_replica_wait(replica, "land", 0, 120))
        fail("no replica", NULL);
    return replica;
}

/* ---- bootstrap ------------------------------------------------------------------------------- */

static void bench_bootstrap(const char *url)
{
    double replica_s = INFINITY, curl_s = INFINITY;
    char command[256], note[128];

    snprintf(command, sizeof command,
             "curl -sf -o /dev/null %s/v1/locales/land/layers/ground/samples", url);
    for (int i = 0; i < ROUNDS; i++) {
        double start_s = bench_now_s(), took_s;
        struct kota_replica *replica = open_replica(url);

        took_s = bench_now_s() - start_s;
        replica_s = took_s < replica_s ? took_s : replica_s;
        kota_replica_close(replica);
        start_s = bench_now_s();
        if (system(command) != 0)
            fail("curl", NULL);
        took_s = bench_now_s() - start_s;
        curl_s = took_s < curl_s ? took_s : curl_s;
    }
    snprintf(note, sizeof note, "%.0f ms, %.0f ms", 1e3 * replica_s, 1e3 * curl_s);
    bench_row_most(section, "bootstrap of 4096²", "curl of the same bytes", replica_s / curl_s, 1.5,
                   note);
}

/* ---- edits ----------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static uint64_t received(struct kota_replica *replica)
{
    struct kota_replica_status status;

    kota_replica_status(replica, "land", &status, sizeof status);
    return status.received_bytes;
}

static void bench_edits(struct kota_client *client, struct kota_replica *replica)
{
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
    struct random random = {27};
    float samples[EDIT_SIDE * EDIT_SIDE];
    double took_s[EDITS];
    uint64_t before = received(replica);
    char note[128];

    for (int i = 0; i < EDITS; i++) {
        const uint32_t rect[4] = {random_below(&random, SIDE - EDIT_SIDE),
                                  random_below(&random, SIDE - EDIT_SIDE), EDIT_SIDE, EDIT_SIDE};
        struct kota_answer *answer;
        struct kota_edit edit;
        double start_s;

        for (int k = 0; k < EDIT_SIDE * EDIT_SIDE; k++)
            samples[k] = (float)random_in(&random, 0, 30);
        answer = kota_call(client, kota_edit("land", rect, KOTA_SET, samples));
        start_s = bench_now_s();
        if (!kota_read_edit(answer, &edit))
            fail("edit", answer);
        while (kota_ground_revision(kota_ground_locale(kota_ground_newest(reader), "land")) <
               edit.revision)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        took_s[i] = bench_now_s() - start_s;
        kota_answer_free(answer);
    }
    qsort(took_s, EDITS, sizeof *took_s, by_size);
    snprintf(note, sizeof note, "median %.2f ms, p99 %.2f ms", 1e3 * took_s[EDITS / 2],
             1e3 * took_s[EDITS * 99 / 100]);
    bench_row_most(section, "an edit of 39 × 39 acknowledged, until an equal copy answers, p99",
                   "5 ms", took_s[EDITS * 99 / 100] / 5e-3, 1, note);
    snprintf(note, sizeof note, "%.0f bytes", (double)(received(replica) - before) / EDITS);
    bench_row_most(section, "received for an edit of 39 × 39", "7.0 KB",
                   (double)(received(replica) - before) / EDITS / 7000, 1, note);
    kota_ground_reader_close(reader);
}

/* ---- questions ------------------------------------------------------------------------------- */

struct heights {
    const struct kota_ground_locale *locale;
    const struct heightfield *field;
    double xy[2 * POINTS];
    double sum;
};

static void ask_replica(void *context)
{
    struct heights *h = context;

    for (int i = 0; i < POINTS; i++)
        h->sum += kota_ground_height(h->locale, h->xy[2 * i], h->xy[2 * i + 1]);
}

static void ask_core(void *context)
{
    struct heights *h = context;

    for (int i = 0; i < POINTS; i++)
        h->sum += heightfield_interpolate(h->field, (struct vec2){h->xy[2 * i], h->xy[2 * i + 1]},
                                          INTERPOLATION_TRIANGLE)
                      .height_m;
}

static double least_ns(void (*ask)(void *context), struct heights *h, double least)
{
    double start_s = bench_now_s(), took_ns;

    ask(h);
    took_ns = 1e9 * (bench_now_s() - start_s) / POINTS;
    return took_ns < least ? took_ns : least;
}

static void bench_heights(struct kota_replica *replica, const float *heights_m)
{
    const struct heightfield_spec spec = {
        .cols = SIDE, .rows = SIDE, .spacing_x_m = 1, .spacing_y_m = 1};
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
    struct err err = {.code = ERR_OK};
    struct random random = {5};
    static struct heights h;
    double own_ns = INFINITY, core_ns = INFINITY;
    char note[64];

    h.locale = kota_ground_locale(kota_ground_newest(reader), "land");
    h.field = heightfield_create(&spec, heights_m, &err);
    for (int i = 0; i < 2 * POINTS; i++) /* near each other: what is compared is the code */
        h.xy[i] = random_in(&random, 1000, 1200);
    for (int i = 0; i < 400; i++) {
        own_ns = least_ns(ask_replica, &h, own_ns);
        core_ns = least_ns(ask_core, &h, core_ns);
    }
    snprintf(note, sizeof note, "%.1f ns, %.1f ns", own_ns, core_ns);
    bench_row_most(section, "height, one by one", "the core's own", own_ns / core_ns, 1.5, note);
    heightfield_unref((struct heightfield *)(uintptr_t)h.field);
    kota_ground_reader_close(reader);
}

/* A tick: the ground under a thousand avatars. */
static void bench_tick(struct kota_client *client, struct kota_replica *replica)
{
    struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
    static struct kota_ground_contact contacts[AVATARS];
    static double xyz[3 * AVATARS];
    double own_s = INFINITY, asked_s = INFINITY;
    struct random random = {9};
    char note[64];

    for (int i = 0; i < 3 * AVATARS; i++)
        xyz[i] = i % 3 == 2 ? 100 : random_in(&random, 0, SIDE - 1);
    for (int i = 0; i < 100; i++) {
        double start_s = bench_now_s(), took_s;
        const struct kota_ground_view *view = kota_ground_newest(reader);
        struct kota_answer *answer;

        kota_ground_contacts(kota_ground_locale(view, "land"), NULL, NULL, xyz, AVATARS, contacts,
                             NULL);
        took_s = bench_now_s() - start_s;
        own_s = took_s < own_s ? took_s : own_s;
        start_s = bench_now_s();
        answer = kota_call(client, kota_batch_f64(KOTA_CONTACT, "land", xyz, AVATARS, NULL));
        if (!kota_read_f64(answer, AVATARS, KOTA_CONTACT_NUMBERS))
            fail("contact", answer);
        took_s = bench_now_s() - start_s;
        asked_s = took_s < asked_s ? took_s : asked_s;
        kota_answer_free(answer);
    }
    snprintf(note, sizeof note, "%.0f µs, %.0f µs", 1e6 * own_s, 1e6 * asked_s);
    bench_row(section, "a tick: contact of 1,000 avatars", "one binary batch over HTTP",
              asked_s / own_s, 0, note);
    kota_ground_reader_close(reader);
}

int main(void)
{
    struct kotad_process daemon = {.pid = 0};
    float *heights_m = make_heights();
    struct kota_replica *replica;
    struct kota_client *client;
    struct kota_options options;

    kotad_start(&daemon);
    kota_options_init(&options, sizeof options);
    options.url = daemon.url;
    options.timeout_s = 120;
    client = kota_open(&options);
    call(client, kota_put_locale("land", NULL), "locale");
    call(client, kota_put_layer_heights("land", "ground", heights_m, SIDE, SIDE, 1, 1), "layer");
    bench_bootstrap(daemon.url);
    replica = open_replica(daemon.url);
    bench_heights(replica, heights_m);
    bench_tick(client, replica);
    bench_edits(client, replica);
    kota_replica_close(replica);
    kota_close(client, NULL, NULL);
    kotad_remove(&daemon);
    free(heights_m);
    return 0;
}
