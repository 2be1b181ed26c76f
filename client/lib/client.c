/*
 * Clients: the loop, the calls under way, their time.
 *
 * One state machine serves both ways to call: kota_start puts a call in, the loop moves it on, and
 * its callback runs from the loop; kota_call does the same on a private loop, and turns that loop
 * until the callback has run.
 *
 * Time: one timer, set to the earliest deadline; all deadlines are checked when it fires. A call
 * that has ended does not move the clock, so it rings about once in a time-out however many calls
 * pass. Whatever a call waits for (a name, a connection, an answer, a pause) its due time ends it;
 * nothing here waits for the operating system.
 *
 * Callbacks never run inside the function that caused them: finished calls wait in a list for the
 * `deliver` timer. So callbacks may start, cancel and close without surprise, and a caller sees the
 * number of a call before its callback.
 *
 * Invariant: each call is in one list; its callback runs exactly once.
 */
#include "client/lib/client.h"

#include "client/lib/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 100 };

uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void calls_remove(struct call *call)
{
    struct calls *calls = call->list;

    if (!calls)
        return;
    if (call->next)
        call->next->previous = call->previous;
    else
        calls->last = call->previous;
    if (call->previous)
        call->previous->next = call->next;
    else
        calls->first = call->next;
    calls->count--;
    call->next = call->previous = NULL;
    call->list = NULL;
}

void calls_add(struct calls *calls, struct call *call)
{
    calls_remove(call);
    call->previous = calls->last;
    if (calls->last)
        calls->last->next = call;
    else
        calls->first = call;
    calls->last = call;
    calls->count++;
    call->list = calls;
}

static void client_cancel_all(struct kota_client *client);
static void client_shut(struct kota_client *client);
static void on_deliver(uv_timer_t *timer);
static void client_set_clock(struct kota_client *client);

/* ---- the end of a call ----------------------------------------------------------------------- */

void client_deliver(struct kota_client *client)
{
    if (client->is_shut || uv_is_active((const uv_handle_t *)&client->deliver))
        return;
    uv_update_time(client->loop);
    uv_timer_start(&client->deliver, on_deliver, 0, 0);
}

/* Nothing is under way: nothing may keep the caller's loop alive. */
static void client_idle(struct kota_client *client)
{
    uv_timer_stop(&client->clock);
}

static void call_free(struct call *call)
{
    calls_remove(call);
    kota_request_free(call->request);
    watch_free(call->watch);
    free(call);
}

/* What happened to feeds while no callback could run. */
static void report_news(struct kota_client *client)
{
    while (client->has_news) {
        struct call *call = client->pausing.first;

        client->has_news = false;
        while (call && !(call->watch && watch_report(call)))
            call = call->next;
        client->has_news |= call != NULL; /* a callback may have changed the list */
    }
}

static void on_deliver(uv_timer_t *timer)
{
    struct kota_client *client = timer->data;
    size_t count;

    if (client->owns_loop) /* the running thread checks again before it waits */
        uv_stop(client->loop);
    if (client->is_closing && !client->is_shut)
        client_cancel_all(client);
    count = client->finished.count;

    /* those that finish meanwhile come next time, so that the loop continues */
    while (count-- > 0 && client->finished.first) {
        struct call *call = client->finished.first;
        struct kota_answer *answer = call->answer;
        kota_done_fn *done = call->done;
        void *context = call->context;
        bool was_in_callback = client->in_callback;

        if (answer)
            answer->tries = call->tries;
        if (call->watch)
            watch_report(call);
        call->answer = NULL;
        call_free(call);
        client->in_callback = true;
        if (!done || !done(answer, context))
            kota_answer_free(answer);
        client->in_callback = was_in_callback;
        client->callbacks_run += done != NULL;
    }
    report_news(client);
    if (client->is_closing && !client->is_shut) {
        client_cancel_all(client); /* closed by one of these callbacks, or going on */
        if (!client->finished.first)
            client_shut(client);
    }
    if (client->finished.first)
        client_deliver(client);
    if (!client->is_closing)
        client_pump(client); /* calls that were begun within a callback of libcurl */
}

void call_finish(struct call *call)
{
    struct kota_client *client = call->client;

    if (call->transfer)
        transfer_abandon(call->transfer);
    calls_add(&client->finished, call);
    client_deliver(client);
    if (client->waiting.count + client->sent.count + client->pausing.count == 0)
        client_idle(client);
}

static void call_end(struct call *call, const struct kota_error *error)
{
    if (call->answer) {
        int status = call->answer->status;

        call->answer->error = *error;
        if (!error->status)
            call->answer->error.status = status;
    }
    call_finish(call);
}

/* May it be tried again after a pause of at least so long, within its time? */
static bool call_again(struct call *call, double least_s)
{
    struct kota_client *client = call->client;
    uint64_t now = now_ms(), pause_ms = (uint64_t)PAUSE_FIRST_MS;

    if (call->tries >= client->options.tries_max || client->is_closing)
        return false;
    pause_ms <<= call->tries > 1 ? (call->tries < 12 ? call->tries - 1 : 11) : 0;
    /* a quarter more or less, so that many clients do not come back in one moment */
    pause_ms = pause_ms - pause_ms / 4 + uv_hrtime() / 1024 % (pause_ms / 2 + 1);
    if (least_s >= 0)
        pause_ms = least_s < 1e6 ? (uint64_t)(1000 * least_s) + pause_ms / 8 : UINT64_MAX / 4;
    if (call->due_ms <= now || pause_ms >= call->due_ms - now)
        return false;
    call->wake_ms = now + pause_ms;
    if (call->answer)
        answer_clear(call->answer);
    calls_add(&client->pausing, call);
    client_due(client, call->wake_ms);
    return true;
}

void call_failed(struct call *call, const struct kota_error *error)
{
    bool was_sent = error->kind != KOTA_ERROR_CONNECT;
    bool may_repeat = call->request->may_repeat && !call->has_taken;

    if (call->watch) {
        watch_ended(call, error);
        return;
    }
    if ((error->kind == KOTA_ERROR_LOST || error->kind == KOTA_ERROR_CONNECT) &&
        (may_repeat || !was_sent) && call_again(call, -1))
        return;
    call_end(call, error);
}

void call_answered(struct call *call)
{
    struct kota_answer *answer = call->answer;
    struct kota_error error;

    if (!answer) {
        call_finish(call);
        return;
    }
    if ((answer->status >= 200 && answer->status < 300) || answer->status == 304) {
        if (call->watch) {
            error_clear(&error);
            error_set(&error, KOTA_ERROR_PROTOCOL, "the answer to a feed is no stream of events");
            watch_ended(call, &error);
            return;
        }
        error_clear(&answer->error);
        call_finish(call);
        return;
    }
    error_clear(&error);
    error.retry_after_s = answer_retry_after_s(answer);
    error_problem(&error, call->request->method, text_string(&call->request->path), answer->status,
                  text_string(&answer->body), answer->body.length);
    if (call->watch) {
        watch_ended(call, &error);
        return;
    }
    if ((answer->status == 429 || answer->status == 503) && call->request->may_repeat &&
        error.retry_after_s >= 0 && call_again(call, error.retry_after_s))
        return;
    call_end(call, &error);
}

/* ---- transfers for calls --------------------------------------------------------------------- */

bool client_take(struct call *call, const char *bytes, size_t length, struct kota_error *error)
{
    struct kota_client *client = call->client;
    bool was_in_callback = client->in_callback, goes_on;

    call->due_ms = now_ms() + call->silence_ms;
    call->has_taken = true;
    client->in_callback = true;
    goes_on = call->request->take(call->answer, bytes, length, call->request->context);
    client->in_callback = was_in_callback;
    return goes_on || error_set(error, KOTA_ERROR_CANCELLED, "the receiver refused the answer");
}

void client_sent(struct call *call, size_t sent)
{
    struct kota_client *client = call->client;
    bool was_in_callback = client->in_callback;

    client->in_callback = true;
    call->request->on_sent(sent, call->request->body_length, call->request->sent_context);
    client->in_callback = was_in_callback;
}

static void begin_transfer(struct call *call)
{
    struct kota_error error;

    error_clear(&error);
    call->tries++;
    calls_add(&call->client->sent, call);
    if (call->watch)
        watch_begin(call);
    if (!transfer_begin(call->client, call, &error))
        call_failed(call, &error);
}

void client_pump(struct kota_client *client)
{
    struct call *next;

    if (client->transfers.in_curl) {
        client_deliver(client);
        return;
    }
    if (client->is_closing || client->is_pumping || !client->waiting.first)
        return;
    client->is_pumping = true;
    for (struct call *call = client->waiting.first; call; call = next) {
        next = call->next;
        if (call->watch || client->transfers.active < client->options.connections_max)
            begin_transfer(call);
    }
    client->is_pumping = false;
}

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t least_due(const struct calls *calls, uint64_t due)
{
    for (const struct call *call = calls->first; call; call = call->next)
        if (call->due_ms < due)
            due = call->due_ms;
    return due;
}

static double timeout_of(const struct call *call)
{
    return call->request->timeout_s > 0 ? call->request->timeout_s
                                        : call->client->options.timeout_s;
}

static void time_out(struct call *call)
{
    struct kota_answer *answer = call->answer;
    double timeout_s = call->silence_ms > 0 ? (double)call->silence_ms / 1000 : timeout_of(call);
    const char *what = call->transfer                         ? "an answer"
                       : call->list == &call->client->pausing ? "the next try"
                                                              : "a connection";
    struct kota_error error;

    error_clear(&error);
    error_set(&error, KOTA_ERROR_TIMEOUT, "%s %s%.200s: timed out after %g s, waiting for %s",
              call->request->method, call->client->place.name, text_string(&call->request->path),
              timeout_s, what);
    if (answer)
        answer_clear(answer);
    call_end(call, &error);
}

static void calls_time_out(struct calls *calls, uint64_t now)
{
    for (struct call *call = calls->first, *next; call; call = next) {
        next = call->next;
        if (call->due_ms > now)
            continue;
        if (call->watch) {
            struct kota_error error;

            error_clear(&error);
            error_set(&error, KOTA_ERROR_TIMEOUT, "nothing came from %s in time",
                      call->client->place.name);
            if (call->transfer)
                transfer_abandon(call->transfer);
            watch_ended(call, &error);
        } else {
            time_out(call);
        }
    }
}

static void on_clock(uv_timer_t *clock)
{
    struct kota_client *client = clock->data;
    uint64_t now = now_ms();

    calls_time_out(&client->waiting, now);
    calls_time_out(&client->sent, now);
    calls_time_out(&client->pausing, now);
    for (struct call *call = client->pausing.first, *next; call; call = next) {
        next = call->next;
        if (call->wake_ms > now)
            continue;
        if (call->watch)
            call->due_ms = now + (uint64_t)ceil(1000 * client->options.timeout_s);
        calls_add(&client->waiting, call);
    }
    client_pump(client);
    client_set_clock(client);
}

/* Sets the clock to the earliest thing that is due. */
static void client_set_clock(struct kota_client *client)
{
    uint64_t due = UINT64_MAX;

    due = least_due(&client->waiting, due);
    due = least_due(&client->sent, due);
    due = least_due(&client->pausing, due);
    for (const struct call *call = client->pausing.first; call; call = call->next)
        if (call->wake_ms < due)
            due = call->wake_ms;
    client_due(client, due);
}

void client_due(struct kota_client *client, uint64_t due_ms)
{
    uint64_t now = now_ms();

    if (client->is_shut || due_ms == UINT64_MAX ||
        (uv_is_active((const uv_handle_t *)&client->clock) && client->clock_ms <= due_ms))
        return;
    client->clock_ms = due_ms;
    uv_update_time(client->loop);
    uv_timer_start(&client->clock, on_clock, due_ms > now ? due_ms - now : 0, 0);
}

/* ---- opening and closing --------------------------------------------------------------------- */

void kota_options_init(struct kota_options *options, size_t size)
{
    struct kota_options defaults = {.size = size,
                                    .url = "http://127.0.0.1:7420",
                                    .timeout_s = 10,
                                    .connect_timeout_s = 3,
                                    .idle_s = 8,
                                    .silence_s = 45,
                                    .connections_max = 16,
                                    .tries_max = 4,
                                    .answer_bytes_max = (size_t)256 << 20};

    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

static bool check_seconds(double seconds, const char *name, struct kota_error *error)
{
    if (seconds > 0 && seconds <= 1e6)
        return true;
    return error_set(error, KOTA_ERROR_USAGE, "%s %g is not above 0 and at most 1e6", name,
                     seconds);
}

/* Strings are copied into the client; false: open_error has the reason. */
static bool client_take_options(struct kota_client *client)
{
    struct kota_options *options = &client->options;
    struct kota_error *error = &client->open_error;

    if (!check_seconds(options->timeout_s, "timeout_s", error) ||
        !check_seconds(options->connect_timeout_s, "connect_timeout_s", error) ||
        !check_seconds(options->idle_s, "idle_s", error) ||
        !check_seconds(options->silence_s, "silence_s", error))
        return false;
    if (options->connections_max < 1 || options->connections_max > 1000)
        return error_set(error, KOTA_ERROR_USAGE, "connections_max %u is not 1 to 1000",
                         options->connections_max);
    if (options->tries_max < 1)
        return error_set(error, KOTA_ERROR_USAGE, "tries_max is 0, at least 1 is needed");
    if (!options->url)
        return error_set(error, KOTA_ERROR_USAGE, "there is no url");
    if (!place_parse(&client->place, options->url, error))
        return false;
    options->url = NULL;
    if (options->ca_file)
        text_adds(&client->ca_file, options->ca_file);
    options->ca_file = NULL;
    if (client->ca_file.is_broken)
        return error_set(error, KOTA_ERROR_MEMORY, "no memory for ca_file");
    if (!options->token)
        return true;
    for (const char *at = options->token; *at; at++)
        if (*at <= ' ' || *at > '~')
            return error_set(error, KOTA_ERROR_USAGE,
                             "the token has a byte that is not visible ASCII at %zu",
                             (size_t)(at - options->token));
    if (!*options->token)
        return error_set(error, KOTA_ERROR_USAGE, "the token is empty");
    text_adds(&client->authorization, "Bearer ");
    text_adds(&client->authorization, options->token);
    options->token = NULL;
    return !client->authorization.is_broken ||
           error_set(error, KOTA_ERROR_MEMORY, "no memory for the token");
}

struct kota_client *kota_open(const struct kota_options *options)
{
    struct kota_client *client = calloc(1, sizeof(*client));

    if (!client)
        return NULL;
    kota_options_init(&client->options, sizeof(client->options));
    if (options)
        memcpy(&client->options, options,
               options->size < sizeof(client->options) ? options->size : sizeof(client->options));
    client->options.size = sizeof(client->options);
    client->loop = client->options.loop;
    if (!client->loop) {
        client->owns_loop = true;
        client->loop = &client->own_loop;
        if (uv_loop_init(client->loop)) {
            free(client);
            return NULL;
        }
    }
    if (!transfers_open(client)) {
        if (client->owns_loop)
            uv_loop_close(client->loop);
        free(client);
        return NULL;
    }
    uv_timer_init(client->loop, &client->clock);
    uv_timer_init(client->loop, &client->deliver);
    uv_timer_init(client->loop, &client->waiter);
    client->clock.data = client->deliver.data = client->waiter.data = client;
    client->handles_open = 4;
    error_clear(&client->open_error);
    if (!client_take_options(client))
        client->options.url = client->options.token = client->options.ca_file = NULL;
    return client;
}

const struct kota_error *kota_open_error(const struct kota_client *client)
{
    static const struct kota_error no_memory = {
        .kind = KOTA_ERROR_MEMORY, .retry_after_s = -1, .message = "no memory for a client"};

    if (!client)
        return &no_memory;
    return client->open_error.kind ? &client->open_error : NULL;
}

static void client_free(struct kota_client *client)
{
    place_free(&client->place);
    text_free(&client->authorization);
    text_free(&client->ca_file);
    free(client);
}

void client_handle_closed(struct kota_client *client)
{
    kota_closed_fn *closed = client->closed;
    void *context = client->closed_context;

    if (--client->handles_open > 0 || !client->is_shut || client->owns_loop)
        return;
    client_free(client);
    if (closed)
        closed(context);
}

static void on_handle_closed(uv_handle_t *handle)
{
    client_handle_closed(handle->data);
}

static void cancel(struct call *call)
{
    struct kota_error error;

    error_clear(&error);
    error_set(&error, KOTA_ERROR_CANCELLED, "the call was cancelled");
    if (call->answer)
        answer_clear(call->answer);
    call_end(call, &error);
}

static void client_cancel_all(struct kota_client *client)
{
    struct calls *lists[] = {&client->waiting, &client->sent, &client->pausing};

    for (size_t i = 0; i < 3; i++)
        while (lists[i]->first)
            cancel(lists[i]->first);
}

/* All callbacks have run: closes every handle. */
static void client_shut(struct kota_client *client)
{
    client->is_shut = true;
    transfers_close(client);
    uv_close((uv_handle_t *)&client->clock, on_handle_closed);
    uv_close((uv_handle_t *)&client->deliver, on_handle_closed);
    uv_close((uv_handle_t *)&client->waiter, on_handle_closed);
}

/* A private loop is turned until nothing is left on it. */
static void client_destroy(struct kota_client *client)
{
    kota_closed_fn *closed = client->closed;
    void *context = client->closed_context;

    while (client->handles_open > 0)
        uv_run(client->loop, UV_RUN_ONCE);
    uv_loop_close(client->loop);
    client_free(client);
    if (closed)
        closed(context);
}

void kota_close(struct kota_client *client, kota_closed_fn *closed, void *context)
{
    if (!client || client->is_closing)
        return;
    client->is_closing = true;
    client->closed = closed;
    client->closed_context = context;
    client_deliver(client);
    if (client->owns_loop && !client->in_callback)
        client_destroy(client);
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct call *call_new(struct kota_client *client, struct kota_request *request)
{
    struct call *call = client && !client->is_closing ? calloc(1, sizeof(*call)) : NULL;

    if (!call) {
        kota_request_free(request);
        return NULL;
    }
    call->client = client;
    call->request = request;
    call->answer = request ? answer_new() : NULL;
    call->number = ++client->next_number;
    return call;
}

void call_begin(struct call *call)
{
    struct kota_client *client = call->client;
    const struct kota_error *error = NULL;
    double timeout_s;

    if (client->open_error.kind)
        error = &client->open_error;
    else if (call->request)
        error = request_error(call->request);
    if (!call->request || !call->answer || error) {
        if (error && call->answer)
            call->answer->error = *error;
        if (call->watch && error)
            watch_ended(call, error);
        else
            call_finish(call);
        return;
    }
    timeout_s = timeout_of(call);
    if (call->request->take)
        call->silence_ms = (uint64_t)ceil(1000 * timeout_s);
    call->due_ms = now_ms() + (uint64_t)ceil(1000 * timeout_s);
    calls_add(&client->waiting, call);
    client_due(client, call->due_ms);
    client_pump(client);
}

uint64_t kota_start(struct kota_client *client, struct kota_request *request, kota_done_fn *done,
                    void *context)
{
    struct call *call = call_new(client, request);
    uint64_t number = call ? call->number : 0;

    if (!call)
        return 0;
    call->done = done;
    call->context = context;
    call_begin(call);
    return number;
}

bool kota_cancel(struct kota_client *client, uint64_t number)
{
    struct calls *lists[] = {&client->waiting, &client->sent, &client->pausing};

    for (size_t i = 0; i < 3; i++)
        for (struct call *call = lists[i]->first; call; call = call->next)
            if (call->number == number) {
                if (!call->watch || watch_cancel(call))
                    cancel(call);
                return true;
            }
    return false;
}

/* ---- blocking -------------------------------------------------------------------------------- */

struct outcome {
    struct kota_answer *answer;
    bool is_there;
};

static bool take_outcome(struct kota_answer *answer, void *context)
{
    struct outcome *outcome = context;

    outcome->answer = answer;
    outcome->is_there = true;
    return true;
}

/* Of a call that cannot be begun. */
static struct kota_answer *refused(struct kota_request *request, const char *reason)
{
    struct kota_answer *answer = answer_new();

    kota_request_free(request);
    if (answer)
        error_set(&answer->error, KOTA_ERROR_USAGE, "%s", reason);
    return answer;
}

struct kota_answer *kota_call(struct kota_client *client, struct kota_request *request)
{
    struct outcome outcome = {0};

    if (!client)
        return kota_request_free(request), NULL;
    if (!client->owns_loop)
        return refused(request, "a client on the caller's loop makes no blocking calls");
    if (client->in_callback || client->is_closing)
        return refused(request, "there are no blocking calls in callbacks");
    if (kota_start(client, request, take_outcome, &outcome))
        while (!outcome.is_there)
            uv_run(client->loop, UV_RUN_ONCE);
    if (client->is_closing)
        client_destroy(client);
    return outcome.answer;
}

static size_t client_under_way(const struct kota_client *client)
{
    return client->waiting.count + client->sent.count + client->pausing.count +
           client->finished.count;
}

static void on_waited(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

size_t kota_wait(struct kota_client *client, double timeout_s)
{
    size_t before, count;
    uint64_t until;

    if (!client || !client->owns_loop || client->in_callback || !(timeout_s >= 0))
        return 0;
    before = client->callbacks_run;
    until = now_ms() + (uint64_t)ceil(1000 * fmin(timeout_s, 1e6));
    do {
        uint64_t now = now_ms();

        if (client_under_way(client) == 0)
            break;
        uv_update_time(client->loop);
        uv_timer_start(&client->waiter, on_waited, until > now ? until - now : 0, 0);
        uv_run(client->loop, UV_RUN_ONCE);
    } while (client->callbacks_run == before && !client->is_closing && now_ms() < until);
    uv_timer_stop(&client->waiter);
    count = client->callbacks_run - before;
    if (client->is_closing)
        client_destroy(client);
    return count;
}
