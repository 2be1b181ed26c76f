/*
 * The frame around every call: decode → ask → encode, with one place for errors.
 *
 * An answer function returns an error code; the frame turns it into a problem document, which
 * replaces the output so far. So a call can decode, ask and encode item by item, without holding a
 * decoded batch, and a mistake in the last item still refuses the whole request. Before each item a
 * batch calls call_check_budget, which reads the clock now and then: a batch that takes long on a
 * loop begins again on a worker; one that takes too long there, or whose client has gone, ends. The
 * snapshot was pinned when the request began; a call uses no other.
 */
#include "api/call.h"

#include "api/answer/coding.h"
#include "api/node.h"
#include "base/clock.h"
#include "json/json_raw.h"
#include "world/ask/across.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The time of a call on a loop, and the longest path of a ray that starts there: the slowest takes
 * about 20 ns for each row and column that it crosses.
 */
#define LOOP_NS_MAX 2000000u
#define LOOP_RAY_SAMPLES_MAX 100000u
/*
 * The time and the most items of a batch between two readings of the clock: one reading costs as
 * much as some items.
 */
#define LOOK_NS 50000u
#define LOOK_ITEMS_MAX 16u
/* The pace of a batch is not used before this time and this share of its limit are over. */
#define PACE_NS_LEAST 1000000000u
#define PACE_SHARE 16u

static char *reply_reserve(void *to, size_t bytes)
{
    return http_reply_reserve(to, bytes);
}

static void reply_advance(void *to, size_t bytes)
{
    http_reply_advance(to, bytes);
}

struct json_sink json_sink_of_reply(struct http_reply *reply)
{
    return (struct json_sink){reply, reply_reserve, reply_advance};
}

const struct claims *call_claims(const struct call *call)
{
    const struct principal *principal = call->request ? http_request_grant(call->request) : NULL;

    return principal ? &principal->claims : NULL;
}

enum err_code call_check_bounds(const struct call *call, const double rect_m[4], struct err *err)
{
    const struct claims *claims = call_claims(call);

    return claims && claims->has_bounds ? world_check_bounds(claims->bounds_m, rect_m, err)
                                        : ERR_OK;
}

static bool is_claimed(const void *claims, const struct locale *locale)
{
    return claims_has_locale(claims, locale->id, strlen(locale->id));
}

/* The call's snapshot does not show what the token may not read. O(1). */
static enum err_code hide_locales(struct call *call, struct err *err)
{
    const struct claims *claims = call_claims(call);
    struct world_snapshot *seen;

    if (!claims || !claims->has_locales || !call->snapshot)
        return ERR_OK;
    seen = call_alloc(call, sizeof *seen);
    if (!seen)
        return err_set(err, ERR_NO_MEMORY, "no memory for the locales that this token may read");
    *seen = snapshot_showing(call->snapshot, is_claimed, claims);
    call->snapshot = seen;
    return ERR_OK;
}

static enum err_code call_open(struct call *call, struct http_request *request,
                               struct http_reply *reply, size_t param_count, struct err *err)
{
    const struct http_query_item *items = http_request_query_items(request);
    size_t count = http_request_query_count(request);

    memset(call, 0, offsetof(struct call, query)); /* the array is the most of it */
    call->api = http_request_app_context(request);
    call->limits = api_limits(call->api);
    call->request = request;
    call->reply = reply;
    call->snapshot = http_request_user(request);
    call->body = http_request_body(request);
    call->media_type = http_request_media_type(request);
    call->started_ns = call->body.length ? monotonic_ns() : 0;
    json_init(&call->out, json_sink_of_reply(reply));
    /* probes read nothing of the world, and their own listener pins nothing */
    if (!call->snapshot && !http_request_route(request)->is_probe)
        return err_set(err, ERR_NOT_READY, "no snapshot could be pinned");
    if (count > CALL_QUERY_MAX)
        return err_limit_at(err, ERR_BAD_INPUT, "query", CALL_QUERY_MAX, (double)count,
                            "the query has %zu parameters, the most is %d", count, CALL_QUERY_MAX);
    call->may_have_note = api_is_write(call->api, http_request_route(request));
    for (size_t i = 0; i < count; i++)
        call->query[call->query_count++] = items[i];
    for (size_t i = 0; i < param_count; i++)
        call->params[i] = http_request_param(request, i);
    return call_pattern_has_locale(http_request_route(request)->pattern) ? ERR_OK
                                                                         : hide_locales(call, err);
}

static const struct http_query_item *find_item(const struct http_query_item *items, size_t count,
                                               const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (span_equals(items[i].name, name))
            return &items[i];
    return NULL;
}

const struct http_query_item *call_query(const struct call *call, const char *name)
{
    return find_item(call->query, call->query_count, name);
}

/* A body is not decompressed: a compressed one is refused. */
static enum err_code check_encoding(const struct call *call, struct err *err)
{
    struct span encoding = http_request_header(call->request, "content-encoding");

    if (!encoding.at || encoding.length == 0 || span_equals(encoding, "identity"))
        return ERR_OK;
    return err_set_at(err, ERR_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding",
                      "a body must not be encoded, this one is %.*s",
                      encoding.length < 32 ? (int)encoding.length : 32, encoding.at);
}

/*
 * Kota-Min-Revision: this daemon must have applied that revision already. A read has waited for it
 * (call_awaits_revision) before this error.
 */
static enum err_code check_revision(struct call *call, struct err *err)
{
    struct span header = http_request_header(call->request, "kota-min-revision");
    uint64_t least;

    if (!header.at)
        return ERR_OK;
    if (!span_count(header, &least))
        return err_set_at(err, ERR_BAD_INPUT, "Kota-Min-Revision",
                          "Kota-Min-Revision is no revision: a whole number was expected");
    if (call->locale->revision >= least)
        return ERR_OK;
    return err_limit(err, ERR_REVISION_LATE, (double)call->locale->revision, (double)least,
                     "locale %s is at revision %llu here, not yet at %llu", call->locale->id,
                     (unsigned long long)call->locale->revision, (unsigned long long)least);
}

bool call_awaits_revision(const struct http_request *request, const struct world_snapshot *snapshot)
{
    struct span header = http_request_header(request, "kota-min-revision");
    const struct locale *locale;
    char id[WORLD_ID_MAX + 1];
    uint64_t least;

    if (!header.at || !span_count(header, &least) ||
        !span_copy(http_request_param(request, 0), id, sizeof id))
        return false;
    locale = snapshot_locale(snapshot, id);
    if (locale)
        return locale->revision < least;
    return node_is_coming(http_request_app_context(request), id, least);
}

enum err_code call_unknown_locale(struct call *call, struct err *err)
{
    char id[WORLD_ID_MAX + 1];

    if (!world_id_is_valid(call->params[0].at, call->params[0].length) ||
        !span_copy(call->params[0], id, sizeof id))
        return err_set_at(err, ERR_LOCALE_UNKNOWN, "locale",
                          "there is no such locale: an id has 1 to %d characters of A-Za-z0-9_-",
                          WORLD_ID_MAX);
    if (node_check(call, id, err))
        return err->code;
    if (world_is_coming(call->api->world, id))
        return err_set(err, ERR_NOT_READY, "locale %s is being taken from the shared log", id);
    return hide_locales(call, err) ? err->code : snapshot_no_locale(call->snapshot, id, err);
}

enum err_code call_param_id(const struct call *call, size_t param, const char *kind,
                            enum err_code code, char out[WORLD_ID_MAX + 1], struct err *err)
{
    struct span id = call->params[param];

    if (world_id_is_valid(id.at, id.length) && span_copy(id, out, WORLD_ID_MAX + 1))
        return ERR_OK;
    return err_set_at(err, code, kind, "\"%.*s\" is no %s id: 1 to %d characters of A-Za-z0-9_-",
                      (int)(id.length > WORLD_ID_MAX ? WORLD_ID_MAX : id.length),
                      id.at ? id.at : "", kind, WORLD_ID_MAX);
}

enum err_code call_find_locale(struct call *call, struct err *err)
{
    char id[WORLD_ID_MAX + 1];
    const char *damage;

    if (!span_copy(call->params[0], id, sizeof id))
        return ERR_OK;
    call->locale = snapshot_locale(call->snapshot, id);
    if (call->locale)
        return call->request ? check_revision(call, err) : ERR_OK;
    damage = world_damage(call->api->world, id);
    if (damage)
        return err_set(err, ERR_DAMAGED, "%s", damage);
    return call->request && call->api->is_shared ? node_check_coming(call, id, err) : ERR_OK;
}

/* ---- live ground ----------------------------------------------------------------------------- */

static bool wants_live(const struct http_query_item *item)
{
    return item && (span_equals(item->value, "true") || span_equals(item->value, "here"));
}

/*
 * What live= says. A picture shows what moves unless it says otherwise, and is of this node.
 */
static const struct http_query_item *live_of(const struct http_request *request,
                                             const struct http_query_item *items, size_t count)
{
    static const struct http_query_item here = {{"live", 4}, {"here", 4}};
    const struct http_query_item *item = find_item(items, count, "live");

    if (!item && !find_item(items, count, "at") &&
        strcmp(http_request_route(request)->pattern, "/v1/locales/{locale}/view.png") == 0)
        return &here;
    return item;
}

bool call_awaits_live(const struct http_request *request, const struct world_snapshot *snapshot)
{
    struct api *api = http_request_app_context(request);
    struct locale *settled, *value = NULL;
    char id[WORLD_ID_MAX + 1];
    enum live_answer answer;

    if (!api->sand || !wants_live(live_of(request, http_request_query_items(request),
                                          http_request_query_count(request))))
        return false;
    if (!span_copy(http_request_param(request, 0), id, sizeof id))
        return false;
    settled = snapshot_locale(snapshot, id);
    answer = settled ? sand_live(api->sand, snapshot, settled, false, &value) : LIVE_NONE;
    locale_unref(value);
    return answer == LIVE_LATER;
}

/*
 * live= of the query: call->locale becomes the live value. Only the node that simulates a patch has
 * its surface: another redirects (true), or answers with the ground that it has (here).
 */
static enum err_code go_live(struct call *call, struct err *err)
{
    const struct http_query_item *item = live_of(call->request, call->query, call->query_count);
    struct locale *settled, *value = NULL;
    enum live_answer answer = LIVE_NONE;

    if (!item || span_equals(item->value, "false"))
        return ERR_OK;
    if (!wants_live(item))
        return err_set_at(err, ERR_BAD_INPUT, "live", "live=%.*s: expected true, false or here",
                          (int)(item->value.length > 64 ? 64 : item->value.length),
                          item->value.at ? item->value.at : "");
    call->is_live = true;
    call_header(call, "Cache-Control", "no-store");
    settled = snapshot_locale(call->snapshot, call->locale->id);
    if (call->api->sand)
        answer = sand_live(call->api->sand, call->snapshot, settled,
                           !http_request_is_last_try(call->request), &value);
    if (answer == LIVE_LATER)
        return err_set(err, ERR_BUSY, "the surface of the patches of locale %s is still measured",
                       settled->id);
    if (answer == LIVE_NONE)
        return span_equals(item->value, "true") ? node_check_live(call, settled->id, err) : ERR_OK;
    locale_unref(call->newer);
    call->locale = call->newer = value;
    return ERR_OK;
}

/* ---- earlier values -------------------------------------------------------------------------- */

enum err_code call_no_pin(const struct call *call, const char *name, const char *place,
                          struct err *err)
{
    return err_set_at(err, ERR_PIN_UNKNOWN, place, "locale %s has no pin %s", call->locale->id,
                      name);
}

void call_write_at(const struct call *call, char out[CALL_AT_BYTES])
{
    const struct http_query_item *item = call_query(call, "at");

    out[0] = '\0';
    if (call->may_be_earlier && item)
        snprintf(out, CALL_AT_BYTES, "&at=%.*s", (int)item->value.length, item->value.at);
}

static enum err_code go_to_revision(struct call *call, uint64_t revision, struct err *err)
{
    const struct locale *now = call->locale, *value = locale_at_revision(now, revision);

    if (value) {
        call->locale = value;
        return ERR_OK;
    }
    return err_set_at(
        err, ERR_GONE, "at",
        "revision %llu of locale %s is not held: it is at %llu; a pin keeps a revision",
        (unsigned long long)revision, now->id, (unsigned long long)now->revision);
}

/* at= of the query: call->locale becomes the value of a pin or of a revision that is held. */
static enum err_code go_to_value(struct call *call, struct err *err)
{
    const struct http_query_item *item = call_query(call, "at");
    const struct http_query_item *live = call_query(call, "live");
    char name[WORLD_ID_MAX + 1];
    const struct locale *value;
    uint64_t revision;

    if (!item)
        return ERR_OK;
    if (live && !span_equals(live->value, "false"))
        return err_set_at(err, ERR_BAD_INPUT, "at",
                          "at= is a value that stays, live= the ground that moves: give "
                          "one of the two");
    if (span_count(item->value, &revision))
        return go_to_revision(call, revision, err);
    if (!world_id_is_valid(item->value.at, item->value.length) ||
        !span_copy(item->value, name, sizeof name) || strspn(name, "0123456789") == strlen(name))
        return err_set_at(err, ERR_BAD_INPUT, "at", "at=%.*s: expected a revision or a pin's name",
                          (int)(item->value.length > 64 ? 64 : item->value.length),
                          item->value.at ? item->value.at : "");
    value = locale_pin(call->locale, name);
    if (!value)
        return call_no_pin(call, name, "at", err);
    call->locale = value;
    return ERR_OK;
}

/* ---- the frame ------------------------------------------------------------------------------- */

static enum err_code need_locale(struct call *call, enum call_needs needs, struct err *err)
{
    call->may_be_live = needs == CALL_NEEDS_GROUND;
    call->may_be_earlier = needs == CALL_NEEDS_GROUND || needs == CALL_NEEDS_VALUE;
    if (call_find_locale(call, err))
        return err->code;
    if (!call->locale)
        return call_unknown_locale(call, err);
    if (call->may_be_earlier && go_to_value(call, err))
        return err->code;
    return call->may_be_live ? go_live(call, err) : ERR_OK;
}

bool call_run(struct http_request *request, struct http_reply *reply, call_answer answer,
              size_t param_count, enum call_needs needs)
{
    struct call call;
    struct err err;
    bool is_written = true;

    err.code = ERR_OK; /* err_set fills the rest; to clear it each time would show */
    http_reply_content_type(reply, "application/json");
    if (call_open(&call, request, reply, param_count, &err) == ERR_OK &&
        (needs == CALL_NEEDS_NOTHING || need_locale(&call, needs, &err) == ERR_OK) &&
        check_encoding(&call, &err) == ERR_OK) {
        answer(&call, &err);
        if (!call.is_deferred && !call.is_offloaded && call.locale)
            http_reply_header_number(reply, "Kota-Revision", call.locale->revision);
        if (!call.is_deferred)
            is_written = json_finish(&call.out);
        if (!call.is_deferred && !call.is_offloaded && err.code == ERR_OK && is_written)
            coding_apply(&call);
    }
    call_close(&call);
    if (call.is_offloaded)
        http_request_offload(request);
    if (call.is_deferred || call.is_offloaded)
        return true;
    if (err.code == ERR_OK && !is_written)
        err_set(&err, ERR_NO_MEMORY, "no memory for the answer");
    if (err.code != ERR_OK) {
        http_reply_problem(reply, &err);
        if (err.code == ERR_ELSEWHERE || err.code == ERR_RANGE)
            http_reply_header(reply, err.code == ERR_RANGE ? "Content-Range" : "Location", "%s",
                              call.location);
    }
    if (call.api && call.api->is_shared)
        node_write_staleness(call.api->world, reply);
    return false;
}

static enum err_code move(struct call *call, struct err *err)
{
    call->is_offloaded = true;
    return err_set(err, ERR_BUSY, "the call is begun again on a worker");
}

enum err_code call_offload(struct call *call, struct err *err)
{
    return call->request && http_request_may_offload(call->request) ? move(call, err) : ERR_OK;
}

/* The items that take LOOK_NS at the pace of the first i. */
static size_t items_until_clock(size_t i, uint64_t taken_ns)
{
    uint64_t items = (uint64_t)i * LOOK_NS / (taken_ns + 1);

    return items < 1 ? 1 : items > LOOK_ITEMS_MAX ? LOOK_ITEMS_MAX : (size_t)items;
}

/* What has taken so long and may take most_ms, on a worker. */
static enum err_code check_time(const struct call *call, uint64_t taken_ns, uint64_t most_ms,
                                const char *what, const char *advice, struct err *err)
{
    if (call->request && http_request_is_abandoned(call->request))
        return err_set(err, ERR_BUSY, "given up: nobody waits for the answer");
    if (taken_ns <= most_ms * 1000000u)
        return ERR_OK;
    return err_limit(err, ERR_TOO_SLOW, (double)most_ms, floor((double)taken_ns / 1e6),
                     "the %s takes more than %llu ms; %s", what, (unsigned long long)most_ms,
                     advice);
}

/*
 * Is a batch that has answered `done` of its items too slow to end in time? The pace is that of
 * processor time: a thread that waited for a core says nothing of the items to come. A batch whose
 * first items take longer than the others may be refused wrongly: hence twice the time that is
 * left, and not before a second and a 16th of all of it are over.
 */
static bool is_hopeless(const struct call *call, size_t done, uint64_t taken_ns, uint64_t most_ns,
                        double *cpu_ns, double *expected_ns)
{
    uint64_t least = most_ns / PACE_SHARE;

    least = least > PACE_NS_LEAST ? least : PACE_NS_LEAST;
    if (done == 0 || done >= call->items || taken_ns < least || taken_ns > most_ns)
        return false;
    *cpu_ns = (double)(thread_cpu_ns() - call->cpu_ns);
    *expected_ns = *cpu_ns / (double)done * (double)call->items;
    return *cpu_ns >= (double)least && *expected_ns - *cpu_ns > 2 * (double)(most_ns - taken_ns);
}

enum err_code call_check_budget(struct call *call, size_t i, struct err *err)
{
    uint64_t most_ms = call_limits(call)->batch_ms_max, taken_ns;
    double cpu_ns, expected_ns;
    bool may_offload;

    if (!call->request || i < call->next_clock_item)
        return ERR_OK;
    may_offload = http_request_may_offload(call->request);
    if (call->started_ns == 0)
        call->started_ns = monotonic_ns();
    taken_ns = monotonic_ns() - call->started_ns;
    call->next_clock_item = i + items_until_clock(i, taken_ns);
    if (may_offload && taken_ns > LOOP_NS_MAX)
        return move(call, err);
    if (check_time(call, taken_ns, most_ms, "batch", "ask for fewer items at once", err))
        return err->code;
    if (!may_offload && call->cpu_ns == 0)
        call->cpu_ns = thread_cpu_ns();
    if (is_hopeless(call, i, taken_ns, most_ms * 1000000u, &cpu_ns, &expected_ns))
        return err_limit(err, ERR_TOO_SLOW, (double)most_ms, floor(expected_ns / 1e6),
                         "the batch would take about %.0f ms, the most is %llu ms: %zu of %zu "
                         "items took %.0f ms of processor time; ask for fewer items at once",
                         expected_ns / 1e6, (unsigned long long)most_ms, i, call->items,
                         cpu_ns / 1e6);
    return ERR_OK;
}

static enum err_code import_ask(void *context, struct err *err)
{
    struct call *call = context;

    return check_time(call, monotonic_ns() - call->started_ns, call_limits(call)->import_ms_max,
                      "import", "bring less at once", err);
}

struct pace call_import_pace(struct call *call)
{
    if (call->started_ns == 0)
        call->started_ns = monotonic_ns();
    return (struct pace){.ask = import_ask, .context = call};
}

/* Rows and columns that a ray may cross. */
static uint64_t ray_samples(const struct layer_choice *choice)
{
    uint64_t samples = 0;

    for (size_t i = 0; i < choice->count; i++) {
        const struct layer *layer = choice->layers[i];

        if (layer->kind == LAYER_MESH) { /* the leaves along one side, and their content */
            const struct mesh_stats *stats = &layer->mesh_stats;

            samples += (uint64_t)(2 * sqrt((double)stats->leaves) * stats->average_tests);
        } else {
            const struct heightfield_spec *spec = heightfield_spec(layer->field);

            samples += (uint64_t)spec->cols + spec->rows;
        }
    }
    return samples;
}

enum err_code call_check_budget_rays(struct call *call, const struct layer_choice *choice,
                                     struct err *err)
{
    if (ray_samples(choice) > LOOP_RAY_SAMPLES_MAX && call->request &&
        http_request_may_offload(call->request))
        return move(call, err);
    return call_check_budget(call, 0, err);
}

size_t call_rays_together(const struct call *call, const struct layer_choice *choice)
{
    bool is_on_loop = call->request && http_request_may_offload(call->request);
    uint64_t most = (uint64_t)LOOP_RAY_SAMPLES_MAX * (is_on_loop ? 1 : LOOK_ITEMS_MAX);
    uint64_t samples = ray_samples(choice);
    size_t together = CALL_RAYS_TOGETHER;

    while (together > 1 && together * samples > most)
        together /= 2;
    return together;
}

struct call_block {
    struct call_block *next;
    _Alignas(16) char data[];
};

void *call_alloc(struct call *call, size_t bytes)
{
    struct call_block *block;

    if (call->request)
        return http_request_alloc(call->request, bytes);
    block = malloc(sizeof *block + bytes);
    if (!block)
        return NULL;
    block->next = call->owned;
    call->owned = block;
    return block->data;
}

enum err_code call_make_room(struct call *call, const struct ray *ray, struct crossing_room *room,
                             struct err *err)
{
    size_t count = snapshot_crossings_max(call->snapshot, ray);

    if (count <= room->count)
        return ERR_OK;
    count = count > 2 * room->count ? count : 2 * room->count;
    room->at = call_alloc(call, count * sizeof *room->at);
    room->count = room->at ? count : 0;
    return room->at ? ERR_OK : err_set(err, ERR_NO_MEMORY, "no memory to cross the locales");
}

enum err_code call_charge_items(const struct call *call, size_t n, struct err *err)
{
    struct principal *principal = call->request ? http_request_grant(call->request) : NULL;

    if (!principal || !http_request_first_charge(call->request))
        return ERR_OK;
    return auth_take_items(principal, n, err);
}

enum err_code call_take_items(struct call *call, size_t count, struct err *err)
{
    struct api *api = call->api;
    size_t most = call_limits(call)->items_in_flight_max;
    uint64_t before;

    call->items = count;
    if (call_charge_items(call, count, err))
        return err->code;
    if (count < CALL_ITEMS_COUNTED || call->items_held)
        return ERR_OK;
    before = atomic_fetch_add_explicit(&api->items_in_flight, count, memory_order_relaxed);
    if (before == 0 || before + count <= most) {
        call->items_held = count;
        return ERR_OK;
    }
    atomic_fetch_sub_explicit(&api->items_in_flight, count, memory_order_relaxed);
    return err_limit(err, ERR_BUSY, (double)most, (double)(before + count),
                     "all batches together would have %llu items in flight, the most is %zu",
                     (unsigned long long)(before + count), most);
}

void call_close(struct call *call)
{
    if (call->items_held)
        atomic_fetch_sub_explicit(&call->api->items_in_flight, call->items_held,
                                  memory_order_relaxed);
    call->items_held = 0;
    cJSON_Delete(call->json);
    call->json = NULL;
    free(call->tape.tokens);
    call->tape = (struct json_tape){NULL, NULL, 0, 0};
    locale_unref(call->newer);
    call->newer = NULL;
    while (call->owned) {
        struct call_block *block = call->owned;

        call->owned = block->next;
        free(block);
    }
}

void call_status(struct call *call, int status)
{
    if (call->reply)
        http_reply_status(call->reply, status);
}

void call_header(struct call *call, const char *name, const char *format, ...)
{
    char value[512];
    va_list args;

    if (!call->reply)
        return;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    http_reply_header(call->reply, name, "%s", value);
}

void call_content_type(struct call *call, const char *media_type)
{
    if (call->reply)
        http_reply_content_type(call->reply, media_type);
}

void call_stream_head(struct call *call, const char *media_type)
{
    call_content_type(call, media_type);
    call_header(call, "Cache-Control", "no-store");
    call_header(call, "X-Accel-Buffering", "no");
}

char *call_open_answer(struct call *call, size_t bytes)
{
    char *at = json_open_room(&call->out, 64 + WORLD_ID_MAX + JSON_RAW_INTEGER_MAX + bytes);

    if (!at)
        return NULL;
    at = JSON_RAW(at, "{\"locale\":\""); /* an id has nothing to escape */
    at = json_raw_text(at, call->locale->id, strlen(call->locale->id));
    at = JSON_RAW(at, "\",\"revision\":");
    return json_raw_integer(at, call->locale->revision);
}

void call_begin_answer(struct call *call)
{
    char *at = call_open_answer(call, 0);

    if (at)
        json_close_room(&call->out, at);
}

void call_begin_results(struct call *call)
{
    call_begin_answer(call);
    json_put_array(&call->out, "results");
}

char *call_open_item(struct call *call, size_t i, size_t bytes)
{
    char *at = json_open_room(&call->out, bytes + 1);

    if (at && i > 0)
        *at++ = ',';
    return at;
}

void call_end_results(struct call *call)
{
    json_end_array(&call->out);
    json_end_object(&call->out);
}
