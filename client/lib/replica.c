/*
 * Replicas: the transport of a copy (client/ground/kota-ground.h).
 *
 * The copy says what it needs, this file sends the requests, by a client on the loop of a thread of
 * its own. Only that thread changes the copy; readers see what it publishes. A feed is a request
 * whose body goes on: its bytes go to the copy as they come and are published at once, and since
 * no request may be made there, what the copy needs next is asked for from `wake`. After a failure
 * the next request of that locale is sent after a pause, longer with each failure.
 *
 * What other threads ask about (revision, staleness) is kept beside the copy under a lock that no
 * reader of ground takes.
 */
#include "client/lib/kota.h"

#include "client/ground/kota-ground.h"
#include "client/lib/client.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

enum { PAUSE_MS = 250, PAUSE_MAX_MS = 30000, CONNECTIONS = 16 };
#define SILENCE_S 45.0
#define FETCH_S 120.0

/* What is known of a locale; under the lock. */
struct place_status {
    char id[65];
    struct kota_ground_following following;
    double current_s;  /* when it was last known to be current; negative: never */
    unsigned failures; /* of the thread: since an answer came */
};

struct kota_replica {
    struct kota_ground_copy *copy;
    struct kota_client *client;
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t pause;      /* rings when the first of these is due */
    struct asked *delayed; /* requests that are not sent yet */
    pthread_t thread;
    bool has_thread, is_compressed, is_closing;
    atomic_bool is_to_close;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct kota_error error; /* of the last failure; under the lock */
    uint64_t bytes;          /* received; under the lock */
    struct place_status *places;
    size_t place_count;
};

/* A request under way, or one that waits. */
struct asked {
    struct kota_replica *replica;
    struct place_status *place;
    struct kota_ground_need need;
    bool is_over; /* a feed that the copy does not take any more */
    uint64_t due_ms;
    struct asked *next; /* of the delayed ones */
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- status ---------------------------------------------------------------------------------- */

/* After each change of the copy. */
static void note(struct kota_replica *replica, size_t bytes, bool is_heard)
{
    struct kota_ground_error ignored;
    double at_s = now_s();

    kota_ground_publish(replica->copy, &ignored);
    pthread_mutex_lock(&replica->lock);
    replica->bytes += bytes;
    for (size_t i = 0; i < replica->place_count; i++) {
        struct place_status *place = &replica->places[i];

        kota_ground_following(replica->copy, place->id, &place->following);
        if (is_heard && place->following.state == KOTA_GROUND_CURRENT)
            place->current_s = at_s;
    }
    pthread_cond_broadcast(&replica->news);
    pthread_mutex_unlock(&replica->lock);
}

static void note_failure(struct kota_replica *replica, const struct kota_error *error)
{
    pthread_mutex_lock(&replica->lock);
    if (error)
        replica->error = *error;
    pthread_mutex_unlock(&replica->lock);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The body without its zstd: malloc; NULL: it is none, or there is no memory. */
static void *unpacked(const void *bytes, size_t length, size_t *out_length)
{
    unsigned long long size = ZSTD_getFrameContentSize(bytes, length);
    void *out;

    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > SIZE_MAX / 2)
        return NULL;
    out = malloc(size > 0 ? (size_t)size : 1);
    *out_length = out ? ZSTD_decompress(out, (size_t)size, bytes, length) : 0;
    if (out && !ZSTD_isError(*out_length) && *out_length == size)
        return out;
    free(out);
    return NULL;
}

static bool is_passing(int status)
{
    return status == 0 || status >= 500 || status == 408 || status == 425 || status == 429;
}

/* Gives an answer to the copy; false: it cannot be read. */
static bool give(struct asked *asked, struct kota_answer *answer, int status)
{
    struct kota_replica *replica = asked->replica;
    const char *coding = kota_answer_header(answer, "Content-Encoding");
    const char *revision = kota_answer_header(answer, "Kota-Revision");
    struct kota_ground_answer given = {.status = (uint32_t)status,
                                       .layout = kota_answer_header(answer, "Kota-Layout"),
                                       .etag = kota_answer_header(answer, "ETag"),
                                       .revision = revision ? strtoull(revision, NULL, 10) : 0};
    struct kota_ground_error error;
    void *made = NULL;

    given.body = kota_answer_body(answer, &given.length);
    if (coding && strcmp(coding, "zstd") == 0) {
        made = unpacked(given.body, given.length, &given.length);
        if (!made)
            return false;
        given.body = made;
    }
    kota_ground_give(replica->copy, asked->need.number, &given, &error);
    free(made);
    return true;
}

static bool on_done(struct kota_answer *answer, void *context)
{
    struct asked *asked = context;
    struct kota_replica *replica = asked->replica;
    int status = answer ? kota_answer_status(answer) : 0;
    const struct kota_error *error = answer ? kota_answer_error(answer) : NULL;
    bool is_feed = asked->need.kind == KOTA_GROUND_NEED_FEED;
    size_t length = 0;

    if (replica->is_closing) {
        free(asked);
        return false;
    }
    if (answer)
        kota_answer_body(answer, &length);
    /* a call that broke off in its body has a status, too */
    if ((error && error->kind != KOTA_ERROR_PROBLEM) || is_passing(status) ||
        (is_feed && status < 300) || !give(asked, answer, status)) {
        kota_ground_give_up(replica->copy, asked->need.number);
        note_failure(replica, error);
        asked->place->failures++;
    } else {
        asked->place->failures = is_feed ? asked->place->failures + 1 : 0; /* refused, for now */
    }
    free(asked);
    note(replica, length, true);
    uv_async_send(&replica->wake);
    return false;
}

static bool on_feed(const struct kota_answer *head, const void *bytes, size_t length, void *context)
{
    struct asked *asked = context;
    struct kota_replica *replica = asked->replica;
    struct kota_ground_error error;

    (void)head;
    if (replica->is_closing || asked->is_over)
        return false;
    asked->place->failures = 0;
    asked->is_over = !kota_ground_feed(replica->copy, asked->need.number, bytes, length, &error);
    note(replica, length, true);
    uv_async_send(&replica->wake);
    return !asked->is_over;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Sends it; takes it. */
static void send_it(struct asked *asked)
{
    struct kota_replica *replica = asked->replica;
    const struct kota_ground_need *need = &asked->need;
    struct kota_request *request = kota_request_new("GET", need->path);
    bool is_feed = need->kind == KOTA_GROUND_NEED_FEED;

    if (*need->accept)
        kota_request_header(request, "Accept", need->accept);
    if (*need->if_none_match)
        kota_request_header(request, "If-None-Match", need->if_none_match);
    if (replica->is_compressed && !is_feed) {
        kota_request_header(request, "Accept-Encoding", "zstd");
        if (need->is_samples)
            kota_request_header(request, "Kota-Layout", "delta");
    }
    kota_request_timeout(request, is_feed ? SILENCE_S : FETCH_S);
    if (is_feed) {
        kota_request_take(request, on_feed, asked);
        kota_request_may_repeat(request, false);
    }
    if (kota_start(replica->client, request, on_done, asked) != 0)
        return;
    kota_ground_give_up(replica->copy, need->number); /* no memory */
    asked->place->failures++;
    free(asked);
}

static void on_pause(uv_timer_t *timer);

/* The timer rings when the first delayed request is due. */
static void set_pause(struct kota_replica *replica)
{
    uint64_t now_ms = uv_now(&replica->loop), first_ms = UINT64_MAX;

    for (const struct asked *asked = replica->delayed; asked; asked = asked->next)
        first_ms = asked->due_ms < first_ms ? asked->due_ms : first_ms;
    if (first_ms < UINT64_MAX)
        uv_timer_start(&replica->pause, on_pause, first_ms > now_ms ? first_ms - now_ms : 0, 0);
}

static void on_pause(uv_timer_t *timer)
{
    struct kota_replica *replica = timer->data;
    uint64_t now_ms = uv_now(&replica->loop);

    for (struct asked **at = &replica->delayed; *at;) {
        struct asked *asked = *at;

        if (asked->due_ms > now_ms) {
            at = &asked->next;
            continue;
        }
        *at = asked->next;
        send_it(asked);
    }
    set_pause(replica);
}

static uint64_t pause_ms(unsigned failures)
{
    uint64_t ms = (uint64_t)PAUSE_MS << (failures < 8 ? failures - 1 : 7);

    return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}

static struct place_status *place_of(const struct kota_replica *replica, const char *locale);

/* Sends what the copy needs, now or after a pause. */
static void pump(struct kota_replica *replica)
{
    struct kota_ground_need need;

    while (!replica->is_closing && kota_ground_next(replica->copy, &need)) {
        struct asked *asked = calloc(1, sizeof *asked);

        if (!asked) {
            kota_ground_give_up(replica->copy, need.number);
            break;
        }
        asked->replica = replica;
        asked->place = place_of(replica, need.locale);
        asked->need = need;
        if (asked->place->failures == 0) {
            send_it(asked);
            continue;
        }
        asked->due_ms = uv_now(&replica->loop) + pause_ms(asked->place->failures);
        asked->next = replica->delayed;
        replica->delayed = asked;
        set_pause(replica);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void on_closed(void *context)
{
    struct kota_replica *replica = context;

    uv_close((uv_handle_t *)&replica->wake, NULL);
    uv_close((uv_handle_t *)&replica->pause, NULL);
}

static void on_wake(uv_async_t *wake)
{
    struct kota_replica *replica = wake->data;

    if (atomic_load(&replica->is_to_close) && !replica->is_closing) {
        replica->is_closing = true;
        uv_timer_stop(&replica->pause); /* which would send what is freed here */
        for (struct asked *asked = replica->delayed, *next; asked; asked = next) {
            next = asked->next;
            free(asked);
        }
        kota_close(replica->client, on_closed, replica);
    }
    pump(replica);
}

static void *run(void *context)
{
    struct kota_replica *replica = context;

    pump(replica);
    uv_run(&replica->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* With all signals left to the other threads. */
static bool start(struct kota_replica *replica)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    replica->has_thread = pthread_create(&replica->thread, NULL, run, replica) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return replica->has_thread;
}

/* ---- opening and closing --------------------------------------------------------------------- */

void kota_replica_options_init(struct kota_replica_options *options, size_t size)
{
    const struct kota_replica_options defaults = {.size = size, .compression = -1};

    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

static bool open_client(struct kota_replica *replica, const struct kota_replica_options *options)
{
    struct kota_options client;

    kota_options_init(&client, sizeof client);
    if (options->client)
        memcpy(&client, options->client,
               options->client->size < sizeof client ? options->client->size : sizeof client);
    client.size = sizeof client;
    client.loop = &replica->loop;
    client.connections_max =
        options->locale_count < 900 ? (unsigned)options->locale_count + CONNECTIONS : 1000;
    replica->client = kota_open(&client);
    if (!replica->client)
        return false;
    replica->is_compressed = options->compression > 0 ||
                             (options->compression < 0 && !replica->client->place.is_loopback &&
                              replica->client->place.unix_path.length == 0);
    return true;
}

/* Follows the locales; false: one cannot be followed (replica->error), or there is no memory. */
static bool follow(struct kota_replica *replica, const struct kota_replica_options *options)
{
    struct kota_ground_error error;

    replica->places = calloc(options->locale_count + 1, sizeof *replica->places);
    for (size_t i = 0; replica->places && i < options->locale_count; i++) {
        const struct kota_replica_locale *locale = &options->locales[i];
        struct place_status *place = &replica->places[i];

        if (!kota_ground_follow(replica->copy, locale->id,
                                locale->has_bounds ? locale->bounds : NULL, &error)) {
            replica->error.kind = KOTA_ERROR_USAGE;
            snprintf(replica->error.message, sizeof replica->error.message, "%s", error.message);
            return false;
        }
        snprintf(place->id, sizeof place->id, "%s", locale->id);
        place->current_s = -1;
        kota_ground_following(replica->copy, place->id, &place->following);
        replica->place_count++;
    }
    return replica->places != NULL;
}

struct kota_replica *kota_replica_open(const struct kota_replica_options *options)
{
    struct kota_replica *replica = calloc(1, sizeof *replica);
    pthread_condattr_t monotonic;
    const struct kota_error *error;

    if (!replica)
        return NULL;
    pthread_mutex_init(&replica->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&replica->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    uv_loop_init(&replica->loop);
    uv_async_init(&replica->loop, &replica->wake, on_wake);
    uv_timer_init(&replica->loop, &replica->pause);
    replica->wake.data = replica->pause.data = replica;
    replica->copy = kota_ground_open();
    if (!replica->copy || !open_client(replica, options)) {
        kota_replica_close(replica);
        return NULL;
    }
    error = kota_open_error(replica->client);
    if (error)
        replica->error = *error;
    else if (follow(replica, options) && !start(replica)) {
        replica->error.kind = KOTA_ERROR_MEMORY;
        snprintf(replica->error.message, sizeof replica->error.message,
                 "the replica's thread cannot be started");
    }
    return replica;
}

void kota_replica_close(struct kota_replica *replica)
{
    if (!replica)
        return;
    atomic_store(&replica->is_to_close, true);
    uv_async_send(&replica->wake);
    if (replica->has_thread) {
        pthread_join(replica->thread, NULL);
    } else {
        if (!replica->client)
            on_closed(replica);
        uv_run(&replica->loop, UV_RUN_DEFAULT);
    }
    uv_loop_close(&replica->loop);
    kota_ground_close(replica->copy);
    pthread_cond_destroy(&replica->news);
    pthread_mutex_destroy(&replica->lock);
    free(replica->places);
    free(replica);
}

/* ---- questions about the replica ------------------------------------------------------------- */

struct kota_ground_copy *kota_replica_copy(const struct kota_replica *replica)
{
    return replica->copy;
}

/* The place of a locale; NULL: it is not followed. */
static struct place_status *place_of(const struct kota_replica *replica, const char *locale)
{
    for (size_t i = 0; i < replica->place_count; i++)
        if (strcmp(replica->places[i].id, locale) == 0)
            return &replica->places[i];
    return NULL;
}

bool kota_replica_status(struct kota_replica *replica, const char *locale,
                         struct kota_replica_status *status, size_t size)
{
    struct kota_replica_status out = {.staleness_s = INFINITY, .is_lost = true};
    const struct place_status *place;

    pthread_mutex_lock(&replica->lock);
    place = place_of(replica, locale);
    if (place) {
        out.revision = place->following.revision;
        out.transform_seq = place->following.transform_seq;
        out.heard = place->following.heard;
        out.state = (enum kota_replica_state)place->following.state;
        out.is_lost = !place->following.is_fed;
        if (place->current_s >= 0)
            out.staleness_s = now_s() - place->current_s;
        snprintf(out.refusal, sizeof out.refusal, "%s", place->following.error.message);
    }
    out.received_bytes = replica->bytes;
    out.error = replica->error;
    pthread_mutex_unlock(&replica->lock);
    memset(status, 0, size);
    memcpy(status, &out, size < sizeof out ? size : sizeof out);
    return place != NULL;
}

uint64_t kota_replica_revision(struct kota_replica *replica, const char *locale)
{
    struct kota_replica_status status;

    kota_replica_status(replica, locale, &status, sizeof status);
    return status.revision;
}

double kota_replica_staleness(struct kota_replica *replica, const char *locale)
{
    struct kota_replica_status status;

    kota_replica_status(replica, locale, &status, sizeof status);
    return status.staleness_s;
}

bool kota_replica_wait(struct kota_replica *replica, const char *locale, uint64_t revision,
                       double timeout_s)
{
    double until_s = now_s() + (timeout_s < 1e8 ? timeout_s : 1e8);
    const struct timespec until = {(time_t)until_s, (long)(1e9 * (until_s - floor(until_s)))};
    const struct place_status *place;
    bool is_there;

    pthread_mutex_lock(&replica->lock);
    for (;;) {
        place = place_of(replica, locale);
        is_there = place && place->following.revision > 0 && place->following.revision >= revision;
        if (is_there || !place || place->following.state == KOTA_GROUND_REFUSED ||
            pthread_cond_timedwait(&replica->news, &replica->lock, &until) != 0)
            break;
    }
    pthread_mutex_unlock(&replica->lock);
    return is_there;
}
