/*
 * Calls: HTTP by libcurl, JSON by cJSON.
 *
 * libcurl provides time limits, proxies, TLS, IPv6, and connections that stay open between the
 * chunks of a batch. What is set here and why:
 *  - a loopback address never goes through a proxy, or `http_proxy` in the environment would hide
 * the daemon on the same machine;
 *  - redirects are not followed, so that a token goes nowhere but to the host it was meant for;
 *  - only http and https, no "Expect: 100-continue" (it costs a round trip), no signals;
 *  - an answer is held in memory and so has a limit; one that is taken as it comes has none, and is
 *    given up by silence instead of by time.
 *
 * A call that ends without an answer, or with 429 or 503 and Retry-After, is sent again: questions
 * change nothing, and each write has an Idempotency-Key. One time limit holds for all tries.
 *
 * Every failure becomes one sentence in struct err: the daemon's problem (RFC 9457: title, detail,
 * pointer), or libcurl's message, or the violation of the contract.
 *
 * Invariant: a call leaves *answer NULL unless it returns ERR_OK.
 */
#include "client/call.h"

#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* How much of a body that is no problem document a message repeats. */
#define EXCERPT_BYTES_MAX 80

/* A large file gets a second more for each million bytes. */
#define UPLOAD_BYTES_PER_MS 1000

/* A call is sent so often, with pauses of 0.1, 0.2, 0.4 … s unless the daemon says. */
enum { TRIES_MAX = 4 };
#define PAUSE_FIRST_S 0.1

struct call {
    CURL *curl;
    double timeout_s;
    bool is_lost;        /* the last call brought no whole answer */
    char *url;           /* without a slash at the end */
    char *authorization; /* "Authorization: Bearer …" or NULL */
    size_t answer_bytes_max;
    char curl_message[CURL_ERROR_SIZE];
    void (*report)(void *context, double done, double all);
    void *report_context;
};

/* The body of an answer as it arrives. */
struct body {
    char *at; /* NUL-terminated once anything has come */
    size_t length, capacity;
    size_t bytes_max;
    bool is_too_long;
};

/* One request; bytes may be NULL, as may accept (JSON) and header (one more, "Name: value"). */
struct outgoing {
    const char *method, *path, *media_type, *accept, *header;
    const char *key; /* "Idempotency-Key: …" of a write; NULL of what only asks */
    const void *bytes;
    size_t length;
    bool may_be_empty; /* 204 is an answer, too */
};

/* An answer that is passed on as it arrives; that of another status than 2xx is kept as a body. */
struct incoming {
    struct call *call;
    const struct call_stream *stream;
    struct body body;
    struct err *err;
    bool is_refused; /* by take: err has the reason */
    curl_off_t bytes_seen;
    struct timespec last; /* when anything came */
};

static size_t body_take(char *bytes, size_t size, size_t count, void *context)
{
    struct body *body = context;
    size_t length = size * count;

    if (length > body->bytes_max - body->length) {
        body->is_too_long = true;
        return 0;
    }
    if (body->capacity - body->length <= length) {
        size_t capacity = 2 * (body->length + length) + 4096;
        char *grown = realloc(body->at, capacity);

        if (!grown)
            return 0;
        body->at = grown;
        body->capacity = capacity;
    }
    memcpy(body->at + body->length, bytes, length);
    body->length += length;
    body->at[body->length] = '\0';
    return length;
}

static bool host_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* Checks the URL and takes the proxy away from loopback addresses. */
static enum err_code call_check_url(struct call *call, const char *url, struct err *err)
{
    CURLU *parts = curl_url();
    char *host = NULL, *query = NULL, *fragment = NULL, *scheme = NULL;
    enum err_code code = ERR_OK;

    if (!parts)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    if (curl_url_set(parts, CURLUPART_URL, url, 0) ||
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0) ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        code =
            err_set(err, ERR_BAD_INPUT, "'%.200s' is not a URL such as http://127.0.0.1:7420", url);
    else if (curl_url_get(parts, CURLUPART_QUERY, &query, 0) == CURLUE_OK ||
             curl_url_get(parts, CURLUPART_FRAGMENT, &fragment, 0) == CURLUE_OK)
        code = err_set(err, ERR_BAD_INPUT,
                       "'%.200s' has a query or fragment; give only the "
                       "URL of the daemon",
                       url);
    else if (host_is_loopback(host))
        curl_easy_setopt(call->curl, CURLOPT_PROXY, "");
    curl_free(scheme);
    curl_free(host);
    curl_free(query);
    curl_free(fragment);
    curl_url_cleanup(parts);
    return code;
}

static enum err_code call_set_token(struct call *call, const char *token, struct err *err)
{
    static const char prefix[] = "Authorization: Bearer ";
    size_t length = strlen(token);

    for (size_t i = 0; i < length; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return err_set(err, ERR_BAD_INPUT,
                           "the token has a byte that is not visible ASCII at %zu", i);
    if (length == 0)
        return err_set(err, ERR_BAD_INPUT, "the token is empty");
    call->authorization = malloc(sizeof(prefix) + length);
    if (!call->authorization)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    memcpy(call->authorization, prefix, sizeof(prefix) - 1);
    memcpy(call->authorization + sizeof(prefix) - 1, token, length + 1);
    return ERR_OK;
}

static void call_set_options(struct call *call, double timeout_s)
{
    CURL *curl = call->curl;
    const char *certificates = getenv("SSL_CERT_FILE"); /* as curl itself; the library does not */

    if (certificates && *certificates)
        curl_easy_setopt(curl, CURLOPT_CAINFO, certificates);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, call->curl_message);
    call->timeout_s = timeout_s;
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(timeout_s * 1000));
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "kota");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_take);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

struct call *call_open(const struct call_config *config, struct err *err)
{
    struct call *call = calloc(1, sizeof(*call));
    size_t length = strlen(config->url);

    if (!call || curl_global_init(CURL_GLOBAL_DEFAULT) || !(call->curl = curl_easy_init())) {
        free(call);
        err_set(err, ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    call->answer_bytes_max = config->answer_bytes_max;
    call_set_options(call, config->timeout_s);
    while (length > 0 && config->url[length - 1] == '/')
        length--;
    call->url = strndup(config->url, length);
    if (!call->url)
        err_set(err, ERR_NO_MEMORY, "out of memory");
    else if (!call_check_url(call, config->url, err) &&
             (!config->token || !call_set_token(call, config->token, err)))
        return call;
    call_close(call);
    return NULL;
}

void call_close(struct call *call)
{
    if (!call)
        return;
    curl_easy_cleanup(call->curl);
    free(call->url);
    free(call->authorization);
    free(call);
    curl_global_cleanup();
}

const char *call_authorization(const struct call *call)
{
    return call->authorization;
}

static enum err_code code_of_status(long status)
{
    static const struct {
        long status;
        enum err_code code;
    } codes[] = {
#define CODE_OF(name, word, http_status, title) {http_status, ERR_##name},
        ERR_LIST(CODE_OF)
#undef CODE_OF
    };

    for (size_t i = 1; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return status >= 400 && status < 500 ? ERR_BAD_INPUT : ERR_INTERNAL;
}

static const char *text_member(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

/* A problem document becomes the error: "422 Unprocessable: no layer \"x\"", and its pointer. */
static enum err_code problem_error(const cJSON *problem, long status, struct err *err)
{
    const char *detail = text_member(problem, "detail");
    const cJSON *errors = cJSON_GetObjectItemCaseSensitive(problem, "errors");
    const cJSON *first = cJSON_GetArrayItem(errors, 0);
    const char *first_detail = text_member(first, "detail");

    if (*detail == '\0')
        detail = first_detail;
    err_set(err, code_of_status(status), "%ld %s%s%s", status, text_member(problem, "title"),
            *detail ? ": " : "", detail);
    if (*text_member(first, "pointer"))
        err_at(err, "%s", text_member(first, "pointer"));
    return err->code;
}

static long status_of(const struct call *call)
{
    long status = 0;

    curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* The answer has come whole: judges status and body. */
static enum err_code call_judge(const struct call *call, const struct outgoing *out,
                                const struct body *body, cJSON **answer, struct err *err)
{
    const char *text = body->at ? body->at : "";
    const char *end = text;
    /* cJSON takes a NUL for a blank. */
    cJSON *document = memchr(text, '\0', body->length)
                          ? NULL
                          : cJSON_ParseWithLengthOpts(text, body->length + 1, &end, 1);
    long status = status_of(call);

    if (status == 204 && out->may_be_empty) {
        cJSON_Delete(document);
        return ERR_OK;
    }
    if (status >= 200 && status < 300 && document) {
        *answer = document;
        return ERR_OK;
    }
    if (status >= 400 && cJSON_IsObject(document))
        problem_error(document, status, err);
    else if (status >= 200 && status < 300)
        err_set(err, ERR_INTERNAL, "the answer to %s %s is not JSON (byte %zu of %zu)", out->method,
                out->path, (size_t)(end - text), body->length);
    else
        err_set(err, code_of_status(status), "%s %s was answered with %ld: %.*s", out->method,
                out->path, status, EXCERPT_BYTES_MAX, text);
    cJSON_Delete(document);
    return err->code;
}

static enum err_code call_transport_error(struct call *call, CURLcode result,
                                          const struct body *body, struct err *err)
{
    call->is_lost = !body->is_too_long;
    if (body->is_too_long)
        return err_limit(err, ERR_INTERNAL, (double)body->bytes_max, (double)body->length,
                         "the answer is longer than %zu bytes", body->bytes_max);
    return err_set(err, ERR_BUSY, "%s: %s", call->url,
                   call->curl_message[0] ? call->curl_message : curl_easy_strerror(result));
}

/* Appends to a header list; false (and an empty list) without memory. */
static bool headers_add(struct curl_slist **headers, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*headers, text);

    if (!longer) {
        curl_slist_free_all(*headers);
        *headers = NULL;
        return false;
    }
    *headers = longer;
    return true;
}

static bool headers_make(const struct call *call, const struct outgoing *out,
                         struct curl_slist **headers)
{
    char content_type[96], accept[96];

    *headers = NULL;
    snprintf(accept, sizeof(accept), "Accept: %s", out->accept ? out->accept : "application/json");
    if (!headers_add(headers, accept) || !headers_add(headers, "Expect:"))
        return false;
    if (out->header && !headers_add(headers, out->header))
        return false;
    if (out->key && !headers_add(headers, out->key))
        return false;
    if (call->authorization && !headers_add(headers, call->authorization))
        return false;
    if (!out->media_type)
        return true;
    snprintf(content_type, sizeof(content_type), "Content-Type: %s", out->media_type);
    return headers_add(headers, content_type);
}

static void call_set_request(struct call *call, const struct outgoing *out, const char *url)
{
    CURL *curl = call->curl;

    curl_easy_setopt(curl, CURLOPT_URL, url);
    if (out->bytes) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, out->bytes);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)out->length);
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, out->method);
}

/* Sends it; body, or the context of another CURLOPT_WRITEFUNCTION, gets the answer. */
static enum err_code call_perform(struct call *call, const struct outgoing *out, void *context,
                                  CURLcode *result, struct err *err)
{
    struct curl_slist *headers = NULL;
    char *url = NULL;

    if (asprintf(&url, "%s%s", call->url, out->path) < 0)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    if (!headers_make(call, out, &headers)) {
        free(url);
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    }
    call_set_request(call, out, url);
    curl_easy_setopt(call->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(call->curl, CURLOPT_WRITEDATA, context);
    call->curl_message[0] = '\0';
    call->is_lost = false;
    *result = curl_easy_perform(call->curl);
    curl_easy_setopt(call->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    free(url);
    return ERR_OK;
}

/* ---- tries ----------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pause_s(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};

    while (nanosleep(&left, &left) != 0)
        continue;
}

/* Seconds until the call may be sent again; negative: its answer is final. */
static double wait_s(const struct call *call, int tries)
{
    curl_off_t seconds = 0;
    long status = status_of(call);

    if (call->is_lost)
        return PAUSE_FIRST_S * (double)(1 << (tries - 1));
    if (status != 429 && status != 503)
        return -1;
    curl_easy_getinfo(call->curl, CURLINFO_RETRY_AFTER, &seconds);
    return seconds > 0 ? (double)seconds : -1;
}

/*
 * Sends it until there is an answer that another try would not change, TRIES_MAX times at most, all
 * of them and the pauses within the time of the call. *body gets the last answer.
 */
static enum err_code call_exchange(struct call *call, const struct outgoing *out, struct body *body,
                                   struct err *err)
{
    double end_s = now_s() + call->timeout_s + 1e-3 * (double)(out->length / UPLOAD_BYTES_PER_MS);
    CURLcode result;

    for (int tries = 1;; tries++) {
        double left_s = end_s - now_s(), pause;

        err->code = ERR_OK;
        body->length = 0;
        body->is_too_long = false;
        if (body->at)
            body->at[0] = '\0';
        curl_easy_setopt(call->curl, CURLOPT_TIMEOUT_MS, (long)fmax(1, 1000 * left_s));
        if (call_perform(call, out, body, &result, err))
            return err->code;
        if (result)
            call_transport_error(call, result, body, err);
        pause = wait_s(call, tries);
        if (pause < 0 || tries == TRIES_MAX || now_s() + pause >= end_s)
            return err->code;
        pause_s(pause);
    }
}

static enum err_code call_send(struct call *call, const struct outgoing *out, cJSON **answer,
                               struct err *err)
{
    struct body body = {.bytes_max = call->answer_bytes_max};

    *answer = NULL;
    if (!call_exchange(call, out, &body, err))
        call_judge(call, out, &body, answer, err);
    free(body.at);
    return err->code;
}

/* A write, under an Idempotency-Key of its own. */
static enum err_code call_send_once(struct call *call, struct outgoing *out, cJSON **answer,
                                    struct err *err)
{
    unsigned char bytes[16];
    char key[64];
    int length = snprintf(key, sizeof(key), "Idempotency-Key: ");

    *answer = NULL;
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return err_set(err, ERR_INTERNAL, "the system gives no random numbers");
    for (size_t i = 0; i < sizeof(bytes); i++)
        length += snprintf(key + length, sizeof(key) - (size_t)length, "%02x", bytes[i]);
    out->key = key;
    return call_send(call, out, answer, err);
}

enum err_code call_get(struct call *call, const char *path, cJSON **answer, struct err *err)
{
    struct outgoing out = {.method = "GET", .path = path};

    return call_send(call, &out, answer, err);
}

enum err_code call_post(struct call *call, const char *path, const cJSON *body, cJSON **answer,
                        struct err *err)
{
    char *text = cJSON_PrintUnformatted(body);
    struct outgoing out = {.method = "POST", .path = path, .media_type = "application/json"};
    enum err_code code;

    *answer = NULL;
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    out.bytes = text;
    out.length = strlen(text);
    code = call_send(call, &out, answer, err);
    cJSON_free(text);
    return code;
}

enum err_code call_put_new(struct call *call, const char *path, const char *media_type,
                           const void *bytes, size_t length, cJSON **answer, struct err *err)
{
    struct outgoing out = {.method = "PUT",
                           .path = path,
                           .media_type = media_type,
                           .header = "If-None-Match: *",
                           .bytes = bytes ? bytes : "",
                           .length = length};

    return call_send_once(call, &out, answer, err);
}

enum err_code call_delete_at(struct call *call, const char *path, double revision, struct err *err)
{
    char header[64];
    struct outgoing out = {
        .method = "DELETE", .path = path, .header = header, .may_be_empty = true};
    cJSON *answer = NULL;

    snprintf(header, sizeof(header), "If-Match: \"%.0f\"", revision);
    call_send_once(call, &out, &answer, err);
    cJSON_Delete(answer);
    return err->code;
}

enum err_code call_write(struct call *call, const char *method, const char *path,
                         const char *media_type, const void *bytes, size_t length, cJSON **answer,
                         struct err *err)
{
    struct outgoing out = {.method = method,
                           .path = path,
                           .media_type = media_type,
                           .bytes = bytes || !media_type ? bytes : "",
                           .length = length,
                           .may_be_empty = strcmp(method, "DELETE") == 0};

    return call_send_once(call, &out, answer, err);
}

enum err_code call_post_bytes(struct call *call, const char *path, const char *media_type,
                              const void *bytes, size_t length, char **answer, size_t *got,
                              struct err *err)
{
    struct outgoing out = {.method = "POST",
                           .path = path,
                           .media_type = media_type,
                           .accept = media_type,
                           .bytes = bytes,
                           .length = length};
    struct body body = {.bytes_max = call->answer_bytes_max};
    cJSON *document = NULL;

    *answer = NULL;
    *got = 0;
    if (!call_exchange(call, &out, &body, err)) {
        if (status_of(call) >= 200 && status_of(call) < 300) {
            *got = body.length;
            *answer = body.at ? body.at : calloc(1, 1);
            return *answer ? ERR_OK : err_set(err, ERR_NO_MEMORY, "out of memory");
        }
        call_judge(call, &out, &body, &document, err);
    }
    cJSON_Delete(document);
    free(body.at);
    return err->code;
}

static int upload_progress(void *context, curl_off_t all, curl_off_t now, curl_off_t up_all,
                           curl_off_t up)
{
    const struct call *call = context;

    (void)all, (void)now;
    call->report(call->report_context, (double)up, (double)up_all);
    return 0;
}

void call_on_upload(struct call *call, void (*report)(void *context, double done, double all),
                    void *context)
{
    call->report = report;
    call->report_context = context;
    curl_easy_setopt(call->curl, CURLOPT_XFERINFOFUNCTION, report ? upload_progress : NULL);
    curl_easy_setopt(call->curl, CURLOPT_XFERINFODATA, call);
    curl_easy_setopt(call->curl, CURLOPT_NOPROGRESS, report ? 0L : 1L);
}

bool call_was_lost(const struct call *call)
{
    return call->is_lost;
}

/* ---- as it comes ----------------------------------------------------------------------------- */

static size_t stream_take(char *bytes, size_t size, size_t count, void *context)
{
    struct incoming *in = context;
    long status = status_of(in->call);

    if (status < 200 || status >= 300)
        return body_take(bytes, size, count, &in->body);
    if (in->stream->take(in->stream->context, bytes, size * count, in->err) == ERR_OK)
        return size * count;
    in->is_refused = true;
    return 0;
}

/* One line of the head: "Name: value\r\n". */
static size_t stream_header(char *line, size_t size, size_t count, void *context)
{
    struct incoming *in = context;
    size_t length = size * count;

    for (size_t i = 0; i < in->stream->header_count; i++) {
        struct call_header *header = &in->stream->headers[i];
        size_t name = strlen(header->name), from = name + 1, to = length;

        if (length <= name || strncasecmp(line, header->name, name) != 0 || line[name] != ':')
            continue;
        while (from < to && (line[from] == ' ' || line[from] == '\t'))
            from++;
        while (to > from && (unsigned char)line[to - 1] <= ' ')
            to--;
        snprintf(header->value, sizeof(header->value), "%.*s", (int)(to - from), line + from);
    }
    return length;
}

/* libcurl calls this about once a second; not 0 ends the transfer. */
static int stream_progress(void *context, curl_off_t all, curl_off_t now, curl_off_t up_all,
                           curl_off_t up)
{
    struct incoming *in = context;
    struct timespec clock;

    (void)all, (void)up_all, (void)up;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    if (now != in->bytes_seen) {
        in->bytes_seen = now;
        in->last = clock;
    }
    return (double)(clock.tv_sec - in->last.tv_sec) +
               1e-9 * (double)(clock.tv_nsec - in->last.tv_nsec) >
           in->stream->silence_s;
}

static void stream_options(struct incoming *in, bool is_stream)
{
    CURL *curl = in->call->curl;
    long timeout_ms = (long)(in->call->timeout_s * 1000);

    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, is_stream ? 0L : timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, is_stream ? timeout_ms : 0L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, is_stream ? stream_take : body_take);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, is_stream ? stream_header : NULL);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, is_stream ? in : NULL);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_stream ? stream_progress : NULL);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, is_stream ? in : NULL);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, is_stream ? 0L : 1L);
}

static enum err_code stream_judge(struct incoming *in, const struct outgoing *out, CURLcode result,
                                  struct err *err)
{
    cJSON *document = NULL;

    if (in->is_refused)
        return err->code;
    if (result == CURLE_ABORTED_BY_CALLBACK) {
        in->call->is_lost = true;
        return err_set(err, ERR_BUSY, "%s: nothing came for %g s", in->call->url,
                       in->stream->silence_s);
    }
    if (result)
        return call_transport_error(in->call, result, &in->body, err);
    if (status_of(in->call) >= 200 && status_of(in->call) < 300)
        return ERR_OK;
    call_judge(in->call, out, &in->body, &document, err);
    cJSON_Delete(document);
    return err->code;
}

enum err_code call_get_stream(struct call *call, const char *path, const char *accept,
                              const struct call_stream *stream, struct err *err)
{
    struct outgoing out = {
        .method = "GET", .path = path, .accept = accept, .header = stream->request_header};
    struct incoming in = {
        .call = call, .stream = stream, .body = {.bytes_max = call->answer_bytes_max}, .err = err};
    CURLcode result;
    enum err_code code;

    for (size_t i = 0; i < stream->header_count; i++)
        stream->headers[i].value[0] = '\0';
    clock_gettime(CLOCK_MONOTONIC, &in.last);
    stream_options(&in, true);
    code = call_perform(call, &out, &in, &result, err);
    stream_options(&in, false);
    if (!code)
        code = stream_judge(&in, &out, result, err);
    free(in.body.at);
    return code;
}
