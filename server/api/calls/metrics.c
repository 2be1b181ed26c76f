/*
 * GET /metrics  ->  Prometheus text (exposition format 0.0.4)
 *
 * Names start with kota_, base units are seconds and bytes. Labels have only values that this
 * program bounds: routes of api_routes[], classes of status, reasons of ended streams, states and
 * scales of patches, and of the locales the first WORLD_REVISIONS_MAX by id. docs/metrics.md is
 * written from this text (tests/api/test_metrics.py --write).
 *
 * The answer is made on a loop, so nothing here takes longer than the formatting: all numbers are
 * counters that exist anyway.
 */
#include "api/calls.h"

#include "api/counters.h"
#include "api/options.h"
#include "api/routes.h"
#include "api/text.h"
#include "terrain/kernels/simd.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Of a metric with labels: each value follows by put_labelled. */
static void put_head(struct call *call, const char *name, const char *type, const char *help)
{
    text_append(call, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_labelled(struct call *call, const char *name, const char *label, const char *is,
                         double value)
{
    text_append(call, "%s{%s=\"%s\"} %.17g\n", name, label, is, value);
}

static void put_process(struct call *call, const struct numbers *n)
{
    put_head(call, "kota_build_info", "gauge",
             "1; the version that runs, and the vector instructions that it uses.");
    text_append(call, "kota_build_info{version=\"%s\",simd=\"%s\"} 1\n", KOTA_VERSION,
                simd_level_name(simd_level()));
    put_head(call, "kota_state", "gauge", "1 for what the daemon does now, 0 for the others.");
    for (int state = API_LOADING; state <= API_DRAINING; state++)
        put_labelled(call, "kota_state", "state", api_state_name((enum api_state)state),
                     atomic_load(&call->api->state) == state);
    counters_text(call, COUNTERS_PROCESS, n);
}

static void put_revisions(struct call *call)
{
    struct world_revision revisions[WORLD_REVISIONS_MAX];
    size_t count = world_revisions(call->api->world, revisions);

    put_head(call, "kota_locale_revision", "gauge",
             "Revision of a locale, of the first 100 by id.");
    for (size_t i = 0; i < count; i++) /* an id needs no escaping */
        put_labelled(call, "kota_locale_revision", "locale", revisions[i].locale_id,
                     (double)revisions[i].revision);
}

struct names {
    struct call *call;
    size_t member; /* of struct share */
    const char *metric;
};

static void put_name(void *context, const struct share *share)
{
    const struct names *names = context;
    const atomic_uint_fast64_t *number = (const void *)((const char *)share + names->member);

    put_labelled(names->call, names->metric, "name", share->name, (double)atomic_load(number));
}

/* What was asked under each name of a token; a name needs no escaping. */
static void put_names(struct call *call)
{
    static const struct {
        const char *metric, *help;
        size_t member;
    } metrics[] = {
        {"kota_token_requests_total", "Requests with a token, by its name, of 100 names.",
         offsetof(struct share, requests)},
        {"kota_token_items_total", "Items of batches and granules, by name.",
         offsetof(struct share, items)},
        {"kota_token_refused_total", "Requests over the rates of a name: 429.",
         offsetof(struct share, refused)},
    };

    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        struct names names = {call, metrics[i].member, metrics[i].metric};

        put_head(call, metrics[i].metric, "counter", metrics[i].help);
        shares_each(auth_shares(call->api->auth), put_name, &names);
    }
}

static void put_sand_labelled(struct call *call, const struct manager_stats *patches)
{
    static const char steps[] = "kota_patches_steps_total";
    static const char phase_seconds[] = "kota_patches_phase_seconds";

    put_head(call, "kota_patches", "gauge", "Patches that are known, by state.");
    for (int state = 0; state < PATCH_STATES; state++)
        put_labelled(call, "kota_patches", "state", patch_state_name((enum patch_state)state),
                     patches->states[state]);
    put_head(call, steps, "counter", "Substeps of all patches of a scale together.");
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        put_labelled(call, steps, "scale", scale_name((enum granular_scale)scale),
                     (double)patches->steps[scale]);
    put_head(call, phase_seconds, "gauge",
             "Time that each part of a substep of all patches took, as last measured.");
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        for (int phase = 0; phase < SAND_PHASE_COUNT; phase++)
            text_append(call, "%s{scale=\"%s\",phase=\"%s\"} %.9g\n", phase_seconds,
                        scale_name((enum granular_scale)scale),
                        numbers_phase((enum sand_phase)phase),
                        (double)patches->phase_ms[scale][phase] * 1e-3);
}

static void put_stream_ends(struct call *call, const struct http_counters *http)
{
    static const char name[] = "kota_streams_ended_total";

    put_head(call, name, "counter", "Event streams that ended, by reason.");
    for (int i = 0; i < HTTP_STREAM_ENDS; i++)
        text_append(call, "%s{reason=\"%s\"} %llu\n", name,
                    numbers_stream_end((enum http_stream_end)i),
                    (unsigned long long)http->streams_ended[i]);
}

struct histogram {
    const char *name;
    const char *labels;     /* "" or `a="b",` */
    const uint64_t *counts; /* bucket i: below first_s · factor^i; the last one is open */
    size_t buckets;
    double first_s, factor;
    uint64_t us_sum;
};

static void put_buckets(struct call *call, const struct histogram *h)
{
    int labels_length = (int)strlen(h->labels);
    uint64_t below = 0;

    for (size_t i = 0; i < h->buckets; i++) {
        below += h->counts[i];
        if (i + 1 < h->buckets)
            text_append(call, "%s_bucket{%sle=\"%.9g\"} %llu\n", h->name, h->labels,
                        h->first_s * pow(h->factor, (double)i), (unsigned long long)below);
    }
    text_append(call, "%s_bucket{%sle=\"+Inf\"} %llu\n", h->name, h->labels,
                (unsigned long long)below);
    if (labels_length == 0) {
        text_append(call, "%s_sum %.9g\n%s_count %llu\n", h->name, (double)h->us_sum * 1e-6,
                    h->name, (unsigned long long)below);
        return;
    }
    labels_length--; /* the comma */
    text_append(call, "%s_sum{%.*s} %.9g\n%s_count{%.*s} %llu\n", h->name, labels_length, h->labels,
                (double)h->us_sum * 1e-6, h->name, labels_length, h->labels,
                (unsigned long long)below);
}

/* Buckets from first_s on, each twice as long as the one before. */
static void put_histogram(struct call *call, const char *name, const char *help,
                          const uint64_t *counts, size_t buckets, double first_s, uint64_t us_sum)
{
    put_head(call, name, "histogram", help);
    put_buckets(call, &(struct histogram){.name = name,
                                          .labels = "",
                                          .counts = counts,
                                          .buckets = buckets,
                                          .first_s = first_s,
                                          .factor = 2,
                                          .us_sum = us_sum});
}

#define COUNTS(array) (array), sizeof(array) / sizeof *(array)

static void put_latency(struct call *call, const struct http_counters *http)
{
    put_histogram(call, "kota_http_request_duration_seconds",
                  "Time from a complete request to its encoded answer, "
                  "without what it waited for a revision.",
                  COUNTS(http->latency_count), 8e-6, http->latency_us_sum);
    put_histogram(call, "kota_loop_turn_duration_seconds",
                  "Time from the first input that a loop finds until it waits again: "
                  "what comes meanwhile waits as long.",
                  COUNTS(http->iteration_count), 8e-6, http->iteration_us_sum);
}

static void put_routes(struct call *call, struct http_server *server)
{
    put_head(call, "kota_http_requests_total", "counter",
             "Requests by route and class of status; route is empty where none matched.");
    for (size_t i = 0; server && i <= api_route_count; i++) {
        struct http_route_counters counters;
        bool is_known = i < api_route_count;

        http_server_route_counters(server, i, &counters);
        for (int class = 2; class <= 5; class ++)
            text_append(call,
                        "kota_http_requests_total{method=\"%s\",route=\"%s\",class=\"%dxx\"} "
                        "%llu\n",
                        is_known ? route_method_word(api_routes[i].http.method) : "",
                        is_known ? api_routes[i].http.pattern : "", class,
                        (unsigned long long)counters.by_class[class]);
    }
}

/* The routes with requests: the others would be a thousand lines of zeros. */
static void put_route_latency(struct call *call, struct http_server *server)
{
    static const char name[] = "kota_http_route_duration_seconds";

    put_head(call, name, "histogram",
             "The same as kota_http_request_duration_seconds, of each route that was asked.");
    for (size_t i = 0; server && i <= api_route_count; i++) {
        struct http_route_counters counters;
        char labels[128];
        struct histogram histogram = {
            .name = name,
            .labels = labels,
            .counts = counters.latency_count,
            .buckets = sizeof counters.latency_count / sizeof *counters.latency_count,
            .first_s = 8e-6,
            .factor = 4,
        };
        uint64_t asked = 0;

        http_server_route_counters(server, i, &counters);
        histogram.us_sum = counters.latency_us_sum;
        for (size_t bucket = 0; bucket < histogram.buckets; bucket++)
            asked += counters.latency_count[bucket];
        snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\",",
                 i < api_route_count ? route_method_word(api_routes[i].http.method) : "",
                 i < api_route_count ? api_routes[i].http.pattern : "");
        if (asked > 0)
            put_buckets(call, &histogram);
    }
}

enum err_code metrics_get_answer(struct call *call, struct err *err)
{
    struct numbers numbers;

    if (options_open_query(call, NULL, err))
        return err->code;
    numbers_read(call->api, &numbers);
    call_content_type(call, "text/plain; version=0.0.4; charset=utf-8");
    put_process(call, &numbers);
    counters_text(call, COUNTERS_WORLD, &numbers);
    put_revisions(call);
    put_names(call);
    put_histogram(
        call, "kota_change_duration_seconds",
        "Time from the writer's queue until changes were durable and published, or refused.",
        COUNTS(numbers.world.change_count), 64e-6, numbers.world.change_us_sum);
    if (numbers.has_store) {
        counters_text(call, COUNTERS_STORE, &numbers);
        put_histogram(call, "kota_store_commit_duration_seconds", "Time that COMMIT took.",
                      COUNTS(numbers.store.commit_count), 64e-6, numbers.store.commit_us_sum);
    }
    if (numbers.is_shared) {
        counters_text(call, COUNTERS_CLUSTER, &numbers);
        put_histogram(call, "kota_cluster_append_duration_seconds",
                      "Time until the shared log had acknowledged an append, or refused it.",
                      COUNTS(numbers.log.append_count), 64e-6, numbers.log.append_us_sum);
    }
    counters_text(call, COUNTERS_TILES, &numbers);
    counters_text(call, COUNTERS_LIGHTS, &numbers);
    counters_text(call, COUNTERS_WATCHES, &numbers);
    counters_text(call, COUNTERS_DEVICE, &numbers);
    counters_text(call, COUNTERS_PATCHES, &numbers);
    put_sand_labelled(call, &numbers.sand.patches);
    counters_text(call, COUNTERS_HTTP, &numbers);
    put_stream_ends(call, &numbers.http);
    put_latency(call, &numbers.http);
    put_routes(call, atomic_load(&call->api->server));
    put_route_latency(call, atomic_load(&call->api->server));
    return ERR_OK;
}
API_HANDLER(metrics_get, 0, CALL_NEEDS_NOTHING)
