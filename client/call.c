/*
 * Calls of the command line, by libkota.
 *
 * libkota sends, repeats and limits (client/lib/kota.h). Here its errors become struct err, whose
 * message is one sentence: the daemon's problem (title, detail, pointer), or the reason that there
 * is no answer. A document is read by cJSON and given to the caller.
 *
 * Invariant: a call leaves *answer NULL unless it returns ERR_OK.
 */
#include "client/call.h"

#include "client/lib/kota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A large file gets a second more for each million bytes. */
#define UPLOAD_BYTES_PER_S 1e6

struct call {
    struct kota_client *client;
    double timeout_s;
    char *url, *authorization;
    void (*report)(void *context, double done, double all);
    void *report_context;
};

/* ---- opening --------------------------------------------------------------------------------- */

static bool copy_strings(struct call *call, const struct call_config *config)
{
    call->url = strdup(config->url);
    if (!call->url)
        return false;
    return !config->token ||
           asprintf(&call->authorization, "Authorization: Bearer %s", config->token) >= 0;
}

struct call *call_open(const struct call_config *config, struct err *err)
{
    struct call *call = calloc(1, sizeof(*call));
    struct kota_options options;

    if (!call || !copy_strings(call, config)) {
        free(call);
        err_set(err, ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    call->timeout_s = config->timeout_s;
    kota_options_init(&options, sizeof(options));
    options.url = config->url;
    options.token = config->token;
    options.ca_file = config->ca_file;
    options.timeout_s = options.connect_timeout_s = config->timeout_s;
    options.silence_s = CALL_SILENCE_S;
    options.answer_bytes_max = config->answer_bytes_max;
    call->client = kota_open(&options);
    if (!kota_open_error(call->client))
        return call;
    err_set(err, ERR_BAD_INPUT, "%s", kota_open_error(call->client)->message);
    call_close(call);
    return NULL;
}

void call_close(struct call *call)
{
    if (!call)
        return;
    kota_close(call->client, NULL, NULL);
    free(call->url);
    free(call->authorization);
    free(call);
}

const char *call_authorization(const struct call *call)
{
    return call->authorization;
}

struct kota_client *call_client(struct call *call)
{
    return call->client;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static enum err_code code_of_status(int status)
{
    static const struct {
        int status;
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

enum err_code call_error(const struct kota_error *error, struct err *err)
{
    if (!error)
        return err->code = ERR_OK;
    switch (error->kind) {
    case KOTA_ERROR_PROBLEM:
        if (!*error->title)
            return err_set(err, code_of_status(error->status), "%s", error->message);
        err_set(err, code_of_status(error->status), "%d %s%s%s", error->status, error->title,
                *error->detail ? ": " : "", error->detail);
        if (*error->pointer)
            err_at(err, "%s", error->pointer);
        return err->code;
    case KOTA_ERROR_USAGE:
        return err_set(err, ERR_BAD_INPUT, "%s", error->message);
    case KOTA_ERROR_MEMORY:
        return err_set(err, ERR_NO_MEMORY, "%s", error->message);
    case KOTA_ERROR_TOO_LONG:
        if (error->has_limit)
            return err_limit(err, ERR_INTERNAL, error->limit, error->got, "%s", error->message);
        return err_set(err, ERR_INTERNAL, "%s", error->message);
    case KOTA_ERROR_CONTENT:
    case KOTA_ERROR_PROTOCOL:
        return err_set(err, ERR_INTERNAL, "%s", error->message);
    default:
        return err_set(err, ERR_BUSY, "%s", error->message);
    }
}

/* ---- one call -------------------------------------------------------------------------------- */

static void report_sent(size_t sent, size_t all, void *context)
{
    const struct call *call = context;

    call->report(call->report_context, (double)sent, (double)all);
}

/* One that may be sent again: it only asks, or has a key. bytes may be NULL. */
static struct kota_request *request_new(struct call *call, const char *method, const char *path,
                                        const char *media_type, const void *bytes, size_t length)
{
    struct kota_request *request = kota_request_new(method, path);

    if (media_type)
        kota_request_body_borrowed(request, media_type, bytes ? bytes : "", length);
    kota_request_timeout(request, call->timeout_s + (double)length / UPLOAD_BYTES_PER_S);
    kota_request_may_repeat(request, true);
    if (call->report)
        kota_request_on_sent(request, report_sent, call);
    return request;
}

/* The document of an answer; NULL when it has no body and may have none. */
static enum err_code read_document(const struct kota_answer *answer, const char *path,
                                   bool may_be_empty, cJSON **document, struct err *err)
{
    size_t length;
    const char *text = kota_answer_body(answer, &length), *end = text;

    if (kota_answer_status(answer) == 204 && may_be_empty)
        return ERR_OK;
    /* cJSON takes a NUL for a blank. */
    if (!memchr(text, '\0', length))
        *document = cJSON_ParseWithLengthOpts(text, length + 1, &end, 1);
    if (*document)
        return ERR_OK;
    return err_set(err, ERR_INTERNAL, "the answer to %s is not JSON (byte %zu of %zu)", path,
                   (size_t)(end - text), length);
}

static enum err_code send_request(struct call *call, struct kota_request *request, const char *path,
                                  bool may_be_empty, cJSON **document, struct err *err)
{
    struct kota_answer *answer = kota_call(call->client, request);

    *document = NULL;
    if (!call_error(kota_answer_error(answer), err))
        read_document(answer, path, may_be_empty, document, err);
    kota_answer_free(answer);
    return err->code;
}

enum err_code call_get(struct call *call, const char *path, cJSON **answer, struct err *err)
{
    return send_request(call, request_new(call, "GET", path, NULL, NULL, 0), path, false, answer,
                        err);
}

enum err_code call_post(struct call *call, const char *path, const cJSON *body, cJSON **answer,
                        struct err *err)
{
    char *text = cJSON_PrintUnformatted(body);

    *answer = NULL;
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    send_request(call, request_new(call, "POST", path, "application/json", text, strlen(text)),
                 path, false, answer, err);
    cJSON_free(text);
    return err->code;
}

enum err_code call_put_new(struct call *call, const char *path, const char *media_type,
                           const void *bytes, size_t length, cJSON **answer, struct err *err)
{
    struct kota_request *request = request_new(call, "PUT", path, media_type, bytes, length);

    kota_request_key(request, NULL);
    kota_request_header(request, "If-None-Match", "*");
    return send_request(call, request, path, false, answer, err);
}

enum err_code call_delete_at(struct call *call, const char *path, double revision, struct err *err)
{
    struct kota_request *request = request_new(call, "DELETE", path, NULL, NULL, 0);
    cJSON *answer = NULL;

    kota_request_key(request, NULL);
    kota_request_if_match(request, (uint64_t)revision);
    send_request(call, request, path, true, &answer, err);
    cJSON_Delete(answer);
    return err->code;
}

enum err_code call_write(struct call *call, const char *method, const char *path,
                         const char *media_type, const void *bytes, size_t length, cJSON **answer,
                         struct err *err)
{
    struct kota_request *request = request_new(call, method, path, media_type, bytes, length);

    kota_request_key(request, NULL);
    return send_request(call, request, path, strcmp(method, "DELETE") == 0, answer, err);
}

enum err_code call_post_bytes(struct call *call, const char *path, const char *media_type,
                              const void *bytes, size_t length, char **bytes_out, size_t *got,
                              struct err *err)
{
    struct kota_request *request = request_new(call, "POST", path, media_type, bytes, length);
    struct kota_answer *answer;
    const void *body;

    *bytes_out = NULL;
    *got = 0;
    kota_request_header(request, "Accept", media_type);
    answer = kota_call(call->client, request);
    if (!call_error(kota_answer_error(answer), err)) {
        body = kota_answer_body(answer, got);
        *bytes_out = malloc(*got + 1);
        if (*bytes_out)
            memcpy(*bytes_out, body, *got);
        else
            err_set(err, ERR_NO_MEMORY, "out of memory");
    }
    kota_answer_free(answer);
    return err->code;
}

void call_on_upload(struct call *call, void (*report)(void *context, double done, double all),
                    void *context)
{
    call->report = report;
    call->report_context = context;
}

/* ---- as it comes ----------------------------------------------------------------------------- */

struct incoming {
    const struct call_stream *stream;
    struct err *err;
    bool has_headers, is_refused;
};

static void take_headers(struct incoming *in, const struct kota_answer *head)
{
    for (size_t i = 0; i < in->stream->header_count && !in->has_headers; i++) {
        struct call_header *header = &in->stream->headers[i];
        const char *value = kota_answer_header(head, header->name);

        snprintf(header->value, sizeof(header->value), "%s", value ? value : "");
    }
    in->has_headers = true;
}

static bool take_bytes(const struct kota_answer *head, const void *bytes, size_t length,
                       void *context)
{
    struct incoming *in = context;

    take_headers(in, head);
    in->is_refused = in->stream->take(in->stream->context, bytes, length, in->err) != ERR_OK;
    return !in->is_refused;
}

enum err_code call_get_stream(struct call *call, const char *path, const char *accept,
                              const struct call_stream *stream, struct err *err)
{
    struct kota_request *request = kota_request_new("GET", path);
    struct incoming in = {.stream = stream, .err = err};
    struct kota_answer *answer;

    err->code = ERR_OK;
    kota_request_header(request, "Accept", accept);
    kota_request_timeout(request, stream->silence_s);
    kota_request_take(request, take_bytes, &in);
    answer = kota_call(call->client, request);
    take_headers(&in, answer);
    if (!in.is_refused)
        call_error(kota_answer_error(answer), err);
    kota_answer_free(answer);
    return err->code;
}
