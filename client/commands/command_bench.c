/*
 * kota bench: a load on a running server, and how it bears it.
 *
 * Independent of terrain: the requests are given as targets and bodies, so that any HTTP/1.1 server
 * can be measured beside kotad with the same load. Several targets or bodies are sent in turn, so
 * that no answer can be kept ready for the one request that never changes.
 *
 * The figure to compare is requests_per_cpu_s, requests a second of the server's processor time
 * (--server PID): it does not depend on how fast this program is. See docs/performance.md.
 */
#include "client/bench/bench_engine.h"
#include "client/bench/bench_points.h"
#include "client/file.h"
#include "client/kota.h"
#include "client/number.h"
#include "client/print.h"
#include "client/progress.h"

#include <curl/curl.h>
#include <math.h>
#include <netdb.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS_MAX 4096
#define DEPTH_MAX 256
#define LINES_MAX ((size_t)1 << 20)
#define FILE_BYTES_MAX ((size_t)256 << 20)
#define PREFIX_BYTES_MAX 512

/* Texts and their owners. */
struct lines {
    struct bench_text *at;
    size_t count;
    char *bytes;
};

struct bench_options {
    const char *targets, *bodies, *body, *media_type;
    const char *connections, *depth, *rate, *seconds, *warm_up, *requests, *cpu, *server;
    const char *ask, *batch;
    bool is_busy, is_binary;
    size_t points; /* in each request; 0: unknown */
    struct bench_points made;
    struct progress progress;
    struct lines target_lines, body_lines;
    char host[300], prefix[PREFIX_BYTES_MAX];
    struct bench_shots shots;
    struct bench_load load;
};

/* ---- requests -------------------------------------------------------------------------------- */

static enum err_code lines_add(struct lines *lines, const char *at, size_t length, struct err *err)
{
    struct bench_text *grown = lines->at;

    if (lines->count == LINES_MAX)
        return err_set(err, ERR_BAD_INPUT, "there are more than %zu lines", LINES_MAX);
    if ((lines->count & (lines->count - 1)) == 0) /* full: 0, 1, 2, 4 … */
        grown = reallocarray(lines->at, 2 * lines->count + 1, sizeof *grown);
    if (!grown)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    lines->at = grown;
    lines->at[lines->count++] = (struct bench_text){at, length};
    return ERR_OK;
}

/* The lines of a file without their ends; empty ones are left out. */
static enum err_code lines_read(struct lines *lines, const char *path, struct err *err)
{
    size_t length;
    const char *at, *end;

    if (file_read(path, FILE_BYTES_MAX, &lines->bytes, &length, err))
        return err->code;
    for (at = lines->bytes, end = at + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        size_t bytes = (size_t)(stop - at);

        if (bytes && at[bytes - 1] == '\r')
            bytes--;
        if (bytes && lines_add(lines, at, bytes, err))
            return err->code;
        at = stop + 1;
    }
    if (lines->count == 0)
        return err_set(err, ERR_BAD_INPUT, "%.200s has no lines", path);
    return ERR_OK;
}

/* A locale's id: points are made within its bounds. */
static enum err_code read_locale(const struct kota *kota, struct bench_options *options,
                                 struct err *err)
{
    const char *ask = options->ask ? options->ask : "height";
    char path[KOTA_PATH_MAX];
    double batch = 1000;
    cJSON *locale = NULL;

    if (kota->word_count > 1 || options->targets || options->bodies || options->body ||
        options->media_type)
        return err_set(err, ERR_BAD_INPUT, "the id of a locale takes no targets, bodies or --type");
    if (kota_check_id(kota->words[0], err) ||
        (options->batch && number_count(options->batch, 1, 1000000, &batch, err)))
        return err->code;
    snprintf(path, sizeof(path), "/v1/locales/%s", kota->words[0]);
    if (call_get(kota->call, path, &locale, err))
        return err->code == ERR_BAD_INPUT ? err_set(err, ERR_INTERNAL, "%s", err->msg) : err->code;
    options->points = (size_t)batch;
    if (!bench_points_make(&options->made, locale, ask, options->points, options->is_binary, err)) {
        options->media_type = options->made.media_type;
        lines_add(&options->target_lines, options->made.target, strlen(options->made.target), err);
        for (size_t i = 0; !err->code && i < BENCH_POINTS_BODIES; i++)
            lines_add(&options->body_lines, options->made.bodies[i].at,
                      options->made.bodies[i].length, err);
    }
    cJSON_Delete(locale);
    return err->code;
}

static enum err_code read_texts(const struct kota *kota, struct bench_options *options,
                                struct err *err)
{
    size_t length;

    if (options->body && options->bodies)
        return err_set(err, ERR_BAD_INPUT, "--body and --bodies exclude each other");
    if (kota->word_count > 0 && kota->words[0][0] != '/')
        return read_locale(kota, options, err);
    if (options->ask || options->batch || options->is_binary)
        return err_set(err, ERR_BAD_INPUT,
                       "--ask, --batch and --binary are for the id of a locale");
    for (size_t i = 0; i < kota->word_count; i++)
        if (lines_add(&options->target_lines, kota->words[i], strlen(kota->words[i]), err))
            return err->code;
    if (options->targets && lines_read(&options->target_lines, options->targets, err))
        return err->code;
    if (options->target_lines.count == 0)
        return err_set(err, ERR_BAD_INPUT,
                       "a target is missing: kota bench /livez, kota bench ID, or --targets");
    if (options->bodies)
        return lines_read(&options->body_lines, options->bodies, err);
    if (!options->body)
        return ERR_OK;
    if (file_read(options->body, FILE_BYTES_MAX, &options->body_lines.bytes, &length, err))
        return err->code;
    return lines_add(&options->body_lines, options->body_lines.bytes, length, err);
}

/* ---- where to -------------------------------------------------------------------------------- */

static enum err_code resolve(struct bench_options *options, const char *host, const char *port,
                             struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    char name[256];
    size_t length = strlen(host);
    int status;

    if (length > 2 && host[0] == '[') /* curl keeps the brackets of an IPv6 address */
        snprintf(name, sizeof name, "%.*s", (int)(length - 2), host + 1);
    else
        snprintf(name, sizeof name, "%s", host);
    status = getaddrinfo(name, port, &hints, &found);
    if (status != 0)
        return err_set(err, ERR_BAD_INPUT, "%.100s: %s", name, gai_strerror(status));
    memcpy(&options->load.address, found->ai_addr, found->ai_addrlen);
    options->load.address_length = found->ai_addrlen;
    freeaddrinfo(found);
    return ERR_OK;
}

static enum err_code read_url(const char *url, struct bench_options *options, struct err *err)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    enum err_code code;

    if (!parts || curl_url_set(parts, CURLUPART_URL, url, 0) ||
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0) ||
        curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ||
        curl_url_get(parts, CURLUPART_PATH, &path, 0))
        code = err_set(err, ERR_BAD_INPUT, "'%.200s' is no URL", url);
    else if (strcmp(scheme, "http") != 0)
        code = err_set(err, ERR_BAD_INPUT, "'%.200s': a load is sent only over http", url);
    else if (snprintf(options->host, sizeof options->host, "%s:%s", host, port) >=
                 (int)sizeof options->host ||
             strlen(path) >= sizeof options->prefix)
        code = err_set(err, ERR_BAD_INPUT, "'%.200s' is too long", url);
    else
        code = resolve(options, host, port, err);
    if (code == ERR_OK) {
        strcpy(options->prefix, path);
        options->prefix[strlen(path) - 1] = '\0'; /* a path ends with a slash below */
        if (path[strlen(path) - 1] != '/')
            strcpy(options->prefix, path);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_url_cleanup(parts);
    return code;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static enum err_code read_count(const char *name, const char *text, double least, double most,
                                double *out, struct err *err)
{
    if (text && number_count(text, least, most, out, err))
        return err_set(err, ERR_BAD_INPUT, "--%s '%.40s' is no whole number within %.0f..%.0f",
                       name, text, least, most);
    return ERR_OK;
}

static enum err_code read_seconds(const char *name, const char *text, double least, double *out,
                                  struct err *err)
{
    if (text && (number_exact_list(text, out, 1, err) || !(*out >= least && *out <= 86400)))
        return err_set(err, ERR_BAD_INPUT, "--%s '%.40s' is not within %g..86400 s", name, text,
                       least);
    return ERR_OK;
}

static enum err_code pin(double cpu, struct err *err)
{
    cpu_set_t set;

    if (cpu < 0)
        return ERR_OK;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return err_set(err, ERR_BAD_INPUT, "--cpu %.0f: there is no such processor for us", cpu);
    return ERR_OK;
}

static enum err_code read_numbers(const struct bench_options *options, struct bench_load *load,
                                  struct err *err)
{
    double connections = 64, depth = 1, requests = 0, cpu = -1, server = 0;

    load->duration_s = 5;
    load->warm_up_s = 0.5;
    if (read_count("connections", options->connections, 1, CONNECTIONS_MAX, &connections, err) ||
        read_count("depth", options->depth, 1, DEPTH_MAX, &depth, err) ||
        read_count("requests", options->requests, 1, 1e15, &requests, err) ||
        read_count("cpu", options->cpu, 0, CPU_SETSIZE - 1, &cpu, err) ||
        read_count("server", options->server, 1, 4194304, &server, err) ||
        read_seconds("seconds", options->seconds, 0.001, &load->duration_s, err) ||
        read_seconds("warm-up", options->warm_up, 0, &load->warm_up_s, err))
        return err->code;
    if (options->rate && (number_exact_list(options->rate, &load->rate, 1, err) ||
                          !(load->rate >= 0.001 && load->rate <= 1e8)))
        return err_set(err, ERR_BAD_INPUT, "--rate '%.40s' is not within 0.001..1e8 a second",
                       options->rate);
    load->connections = (size_t)connections;
    load->depth = (size_t)depth;
    load->requests_max = (uint64_t)requests;
    if (requests > 0) {
        load->warm_up_s = 0; /* exactly so many are sent, and all are counted */
        load->duration_s = options->seconds ? load->duration_s : 86400;
    }
    load->server = (pid_t)server;
    load->is_busy = options->is_busy;
    return pin(cpu, err);
}

/* ---- results --------------------------------------------------------------------------------- */

static void add_number(cJSON *to, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(to, name, value);
    else
        cJSON_AddNullToObject(to, name);
}

static double quantile_us(const struct bench_result *result, double q)
{
    return (double)bench_histogram_quantile(&result->latency, q) / 1000;
}

static cJSON *describe(const struct bench_load *load, const struct bench_result *result,
                       size_t points)
{
    cJSON *out = cJSON_CreateObject();
    cJSON *latency;
    double requests = (double)result->requests;

    if (!out)
        return NULL;
    cJSON_AddStringToObject(out, "loop", load->rate > 0 ? "open" : "closed");
    add_number(out, "connections", (double)load->connections);
    add_number(out, "depth", (double)load->depth);
    add_number(out, "rate", load->rate > 0 ? load->rate : NAN);
    add_number(out, "seconds", result->elapsed_s);
    add_number(out, "requests", requests);
    add_number(out, "failed", (double)result->failed);
    add_number(out, "bytes_in", (double)result->bytes_in);
    add_number(out, "bytes_out", (double)result->bytes_out);
    add_number(out, "requests_per_s", requests / result->elapsed_s);
    add_number(out, "requests_per_cpu_s", requests / result->server_cpu_s);
    if (points) {
        add_number(out, "points_per_request", (double)points);
        add_number(out, "points_per_s",
                   (requests - (double)result->failed) * (double)points / result->elapsed_s);
    }
    add_number(out, "server_cpu_s", result->server_cpu_s);
    add_number(out, "client_cpu_s", result->client_cpu_s);
    latency = cJSON_AddObjectToObject(out, "latency_us");
    if (latency && result->requests) {
        add_number(latency, "mean", (double)result->latency.sum_ns / requests / 1000);
        add_number(latency, "p50", quantile_us(result, 0.5));
        add_number(latency, "p90", quantile_us(result, 0.9));
        add_number(latency, "p99", quantile_us(result, 0.99));
        add_number(latency, "p999", quantile_us(result, 0.999));
        add_number(latency, "max", (double)result->latency.max_ns / 1000);
    }
    return out;
}

static enum err_code show(const struct kota *kota, const struct bench_options *options,
                          const struct bench_result *result, struct err *err)
{
    cJSON *out = describe(&options->load, result, options->points);
    enum err_code code;

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    code = kota->is_json ? print_json_line(stdout, out, err) : print_members(stdout, out, err);
    cJSON_Delete(out);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void report_progress(void *context, double done, double all)
{
    progress_report(context, done, all);
}

/* An error of the call for a locale's bounds is a failure; the rest are misuses. */
static enum kota_exit refused(const struct kota *kota)
{
    bool is_answer = kota->err.code != ERR_BAD_INPUT;

    return is_answer ? kota_failed(kota) : kota_misused(kota);
}

static enum err_code prepare(struct kota *kota, struct bench_options *options)
{
    struct bench_words words = {.authorization = call_authorization(kota->call),
                                .host = options->host,
                                .prefix = options->prefix};
    struct err *err = &kota->err;

    options->load.timeout_s = kota->timeout_s;
    options->load.shots = &options->shots;
    if (read_numbers(options, &options->load, err) || read_url(kota->url, options, err) ||
        read_texts(kota, options, err))
        return err->code;
    words.media_type = options->media_type ? options->media_type : "application/json";
    words.targets = options->target_lines.at;
    words.target_count = options->target_lines.count;
    words.bodies = options->body_lines.at;
    words.body_count = options->body_lines.count;
    return bench_shots_make(&options->shots, &words, options->load.depth, err);
}

static enum kota_exit measure(struct kota *kota, struct bench_options *options)
{
    struct bench_result *result = malloc(sizeof *result);
    enum kota_exit done = KOTA_OK;

    if (!result) {
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
        return kota_failed(kota);
    }
    progress_begin(&options->progress, "bench", "s", true);
    options->load.report = report_progress;
    options->load.report_context = &options->progress;
    bench_run(&options->load, result, &kota->err);
    progress_end(&options->progress);
    if (kota->err.code) {
        done = kota->err.code == ERR_BAD_INPUT ? kota_misused(kota) : kota_failed(kota);
    } else if (show(kota, options, result, &kota->err)) {
        done = kota_failed(kota);
    } else if (result->failed) {
        err_set(&kota->err, ERR_BUSY, "%llu of %llu answers were errors",
                (unsigned long long)result->failed, (unsigned long long)result->requests);
        done = kota_failed(kota);
    }
    free(result);
    return done;
}

static enum kota_exit bench_command_run(struct kota *kota)
{
    struct bench_options options = {0};
    enum kota_exit done;

    if (!kota_begin(kota, &options, 0, SIZE_MAX, &done))
        return done;
    done = prepare(kota, &options) ? refused(kota) : measure(kota, &options);
    bench_shots_free(&options.shots);
    bench_points_free(&options.made);
    free(options.target_lines.at);
    free(options.target_lines.bytes);
    free(options.body_lines.at);
    free(options.body_lines.bytes);
    return done;
}

#define OPTION(...) COMMAND_OPTION(struct bench_options, __VA_ARGS__)

static const struct kota_option bench_table[] = {
    {.help = "Points of a locale:"},
    OPTION(ask, "ask", "CALL", "height (default), contact, ray or contains",
           .words = "height contact ray contains"),
    OPTION(batch, "batch", "N", "points in each request (1000)"),
    OPTION(is_binary, "binary", NULL, "float64 instead of JSON"),
    {.help = "Targets:"},
    OPTION(targets, "targets", "FILE", "further targets, one a line; - is standard input",
           .words = ":file"),
    OPTION(bodies, "bodies", "FILE", "a body from each line, in turn: sent by POST",
           .words = ":file"),
    OPTION(body, "body", "FILE", "the whole file is the one body", .words = ":file"),
    OPTION(media_type, "type", "MEDIA", "of the bodies (application/json)"),
    {.help = "Load:"},
    OPTION(connections, "connections", "N", "64"),
    OPTION(depth, "depth", "N",
           "requests on the way on each connection (1); a closed loop writes that\n"
           "many at once and the next ones when the last of them is answered"),
    OPTION(rate, "rate", "R",
           "open loop: R requests a second fall due at fixed times,\n"
           "whatever is answered, and a latency counts from when its\n"
           "request was due; without it a closed loop sends as fast as\n"
           "answers come"),
    OPTION(seconds, "seconds", "S", "how long to measure (5)"),
    OPTION(warm_up, "warm-up", "S", "how long before that (0.5)"),
    OPTION(requests, "requests", "N", "end after exactly N instead, without a warm-up"),
    OPTION(is_busy, "busy", NULL,
           "poll without sleeping: steadier latencies, one core all the time"),
    OPTION(cpu, "cpu", "N", "run on that processor"),
    OPTION(server, "server", "PID",
           "that process is the server: prints requests a second of its\n"
           "processor time, user and system, which does not depend on\n"
           "the speed of this program"),
    {0},
};

const struct kota_command command_bench = {
    .name = "bench",
    .synopsis = "ID | TARGET…",
    .summary = "sends a load and measures the answers",
    .help =
        "With the id of a locale it asks random points within its bounds, and prints points a\n"
        "second. With targets (\"/v1/locales/demo/height?x=1&y=2\") it sends GET for each of\n"
        "them in turn, or POST with bodies. Connections stay open. Prints rates, and quantiles\n"
        "of the latency in microseconds.\n",
    .options = bench_table,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota bench highlands --seconds 0.5 --connections 4",
                                      "kota bench /livez --requests 1000", NULL},
    .run = bench_command_run,
};
