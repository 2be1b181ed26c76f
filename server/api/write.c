/*
 * Writes are asynchronous: world_submit returns at once, and the outcome comes on the writer's
 * thread, after publication. The answer is made there from the published world, so that it shows
 * the revision that this change made, not a later one.
 *
 * Problem: a client that lost the answer must be able to ask again without changing the world
 * twice. Approach: an Idempotency-Key is the change's op_id. The answer is made before the commit
 * (write_answer) and kept with it, in one transaction; a repeat gets it from there. A refused write
 * is not kept: it changed nothing and may be tried again under its key. Only the writer knows the
 * keys, so a request with one goes to it even where the locale is gone meanwhile; and an upload,
 * which takes long to decode, asks it first (write_repeat, WORLD_FIND_OP).
 * Invariant: a key means one request; another one under it is 422. Errors replace whatever was
 * written of an answer.
 * Dropped: a table of keys beside the writer's (two truths), keys by time (a retry may be late).
 */
#include "api/write.h"

#include "api/node.h"
#include "api/idempotency_record.h"
#include "api/precondition.h"
#include "api/encode.h"
#include "api/options.h"
#include "api/upload.h"
#include "base/check.h"
#include "base/content_hash.h"
#include "json/json_buffer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct write {
    struct api *api;
    uint64_t charge; /* of an upload */
    struct http_request *request;
    struct http_reply *reply;
    const struct write_kind *kind;
    enum world_condition condition;
    bool names_none;   /* If-Match has no tag that is a revision */
    const char *place; /* of an edit's error that the writer found */
    bool has_import;
    struct imported import;
    char location[KEPT_LOCATION_MAX + 1];
    bool is_composed;
    struct idempotency_record answer; /* its body is body.at */
    struct json_buffer body;
};

/* ---- the answer ------------------------------------------------------------------------------ */

void write_encode_locale(struct json_writer *w, const struct world_outcome *outcome,
                         const struct imported *import)
{
    encode_locale(w, outcome->locale, import);
}

/* Makes the answer to a change that was taken. False without memory. */
static bool compose(struct write *write, const struct world_outcome *outcome)
{
    struct idempotency_record *answer = &write->answer;
    struct json_writer w;

    *answer = (struct idempotency_record){.status = write->kind->encode ? 200 : 204};
    answer->has_tag = outcome->locale != NULL;
    answer->revision = outcome->locale ? outcome->locale->revision : outcome->revision;
    write->body.length = 0;
    if (write->kind->encode) {
        CHECK(outcome->locale);
        json_init(&w, json_sink_of_buffer(&write->body));
        write->kind->encode(&w, outcome, write->has_import ? &write->import : NULL);
        if (!json_finish(&w))
            return false;
        if (outcome->is_new) {
            answer->status = 201;
            memcpy(answer->location, write->location, sizeof answer->location);
        }
    }
    answer->body = write->body.at;
    answer->body_length = write->body.length;
    write->is_composed = true;
    return true;
}

/* On the writer's thread, before the commit. */
static void *write_answer(void *context, const struct world_outcome *outcome, size_t *bytes)
{
    struct write *write = context;

    return compose(write, outcome) ? idempotency_record_encode(&write->answer, bytes) : NULL;
}

static enum err_code send_kept(struct http_reply *reply, const struct world_outcome *outcome,
                               struct err *err)
{
    struct idempotency_record kept;

    if (!idempotency_record_decode(outcome->answer, outcome->answer_bytes, &kept))
        return err_set(err, ERR_DAMAGED,
                       "the write under this Idempotency-Key was made, its answer cannot be read");
    idempotency_record_send(&kept, reply);
    http_reply_header(reply, "Idempotency-Replayed", "true");
    return ERR_OK;
}

/* What the writer says, in the words of the request. */
static void name_error(const struct write *write, struct err *err)
{
    bool is_of_edit =
        err->code == ERR_UNPROCESSABLE || err->code == ERR_TOO_LARGE || err->code == ERR_BAD_INPUT;

    if (err->code == ERR_PRECONDITION_FAILED && write->names_none)
        err_set(err, ERR_PRECONDITION_FAILED, "If-Match names no revision of the locale");
    precondition_name(write->condition, err);
    if (write->place && is_of_edit && err->pointer[0] == '\0')
        err_at(err, "%s", write->place);
}

static void acknowledge(struct write *write, const struct world_outcome *outcome, struct err *err)
{
    if (outcome->answer) {
        http_reply_made(write->reply);
        send_kept(write->reply, outcome, err);
    } else if (write->is_composed || compose(write, outcome)) {
        http_reply_made(write->reply);
        idempotency_record_send(&write->answer, write->reply);
    } else {
        http_reply_lose(write->reply);
    }
}

/* On the writer's thread. */
static void write_done(void *context, const struct world_outcome *outcome)
{
    struct write *write = context;
    struct err err = {.code = ERR_OK};

    upload_release(write->api, write->charge);
    if (outcome->code != ERR_OK) {
        err = *outcome->err;
        name_error(write, &err);
    } else if (audit_acknowledge(write->api->audit, &err) == ERR_OK) {
        acknowledge(write, outcome, &err);
    }
    if (err.code != ERR_OK)
        http_reply_problem(write->reply, &err);
    free(write->body.at);
    http_request_finish(write->request);
}

/* ---- a write begins -------------------------------------------------------------------------- */

static int compare_items(const void *a, const void *b)
{
    const struct http_query_item *x = a, *y = b;
    size_t length = x->name.length < y->name.length ? x->name.length : y->name.length;
    int order = length > 0 ? memcmp(x->name.at, y->name.at, length) : 0;

    if (order != 0)
        return order;
    return (x->name.length > y->name.length) - (x->name.length < y->name.length);
}

void write_request_hash(const struct call *call, const char *method_and_path,
                        uint8_t hash[STORE_REQUEST_BYTES])
{
    /* Of each part its hash, so that no two requests run together to the same bytes. */
    uint8_t parts[3 + 2 * CALL_QUERY_MAX][STORE_REQUEST_BYTES];
    struct http_query_item query[CALL_QUERY_MAX];
    size_t n = 0;

    memcpy(query, call->query, call->query_count * sizeof *query);
    qsort(query, call->query_count, sizeof *query, compare_items);
    content_hash(method_and_path, strlen(method_and_path), parts[n++]);
    content_hash(call->media_type.at, call->media_type.length, parts[n++]);
    if (call->body_hash)
        memcpy(parts[n++], call->body_hash, sizeof *parts);
    else
        content_hash(call->body.at, call->body.length, parts[n++]);
    for (size_t i = 0; i < call->query_count; i++) {
        if (span_equals(query[i].name, NODE_PLACED))
            continue; /* the same request, at another node */
        content_hash(query[i].name.at, query[i].name.length, parts[n++]);
        content_hash(query[i].value.at, query[i].value.length, parts[n++]);
    }
    content_hash(parts, n * sizeof *parts, hash);
}

static void path_of(const struct write_kind *kind, const struct world_change *change, char *out,
                    size_t size)
{
    bool is_of_layer = world_is_of_layer(kind->change);

    bool is_of_pin = change->pin[0] != '\0';

    snprintf(out, size, "/v1/locales/%s%s%s%s", change->locale_id,
             is_of_layer ? "/layers/"
             : is_of_pin ? "/pins/"
                         : "",
             is_of_layer ? change->layer_id
             : is_of_pin ? change->pin
                         : "",
             kind->below);
}

static enum err_code decode_key(const struct call *call, const struct write_kind *kind,
                                struct world_change *change, struct err *err)
{
    struct span key = call_request_header(call, "idempotency-key");
    char path[KEPT_LOCATION_MAX + 1], method_and_path[sizeof path + 8];
    bool is_good = key.length >= 1 && key.length <= STORE_OP_ID_MAX;

    if (!key.at || kind->ignores_key)
        return ERR_OK;
    for (size_t i = 0; i < key.length; i++)
        is_good &= key.at[i] > 0x20 && key.at[i] < 0x7f;
    if (is_good && key.at[0] == '~' && call->api->is_shared)
        return err_set_at(err, ERR_BAD_INPUT, "Idempotency-Key",
                          "an Idempotency-Key must not begin with ~ here");
    if (!is_good)
        return err_set_at(
            err, ERR_BAD_INPUT, "Idempotency-Key",
            "an Idempotency-Key has 1 to %d visible ASCII characters, this has %zu bytes",
            STORE_OP_ID_MAX, key.length);
    CHECK(span_copy(key, change->op_id, sizeof change->op_id));
    path_of(kind, change, path, sizeof path);
    snprintf(method_and_path, sizeof method_and_path, "%s %s", kind->method, path);
    write_request_hash(call, method_and_path, change->request);
    return ERR_OK;
}

static enum err_code locale_id(struct call *call, struct world_change *change, struct err *err)
{
    struct span id = call->params[0];

    if (world_id_is_valid(id.at, id.length) &&
        span_copy(id, change->locale_id, sizeof change->locale_id))
        return node_check(call, change->locale_id, err);
    if (world_makes_locale(change->kind))
        return call_param_id(call, 0, "locale", ERR_BAD_INPUT, change->locale_id, err);
    return call_unknown_locale(call, err);
}

static enum err_code judge(struct call *call, const struct world_change *change, struct err *err)
{
    if (!call->locale && !world_makes_locale(change->kind))
        return call_unknown_locale(call, err);
    return precondition_check(call, change, err);
}

/*
 * What is left to the writer where a key may be known. Where a log is shared, another daemon may
 * have made what is missed here, so that only a revision that has passed is refused at once: the
 * writer looks at the log before it refuses, and so does a decoder that needs the locale.
 */
static enum err_code check_now(struct call *call, const struct write_kind *kind,
                               const struct world_change *change, struct err *err)
{
    if (judge(call, change, err) == ERR_OK || !call->api->is_shared ||
        (call->locale && change->if_revision != 0))
        return err->code;
    err->code = ERR_OK;
    if (!kind->needs_locale)
        return ERR_OK;
    node_catch_up(call, change->locale_id);
    return judge(call, change, err);
}

/* Of two keys or conditions no one knows which was meant. */
static enum err_code check_headers(const struct call *call, struct err *err)
{
    static const char *const names[][2] = {{"if-match", "If-Match"},
                                           {"if-none-match", "If-None-Match"},
                                           {"idempotency-key", "Idempotency-Key"}};

    for (size_t i = 0; call->request && i < sizeof names / sizeof *names; i++)
        if (http_request_header_is_repeated(call->request, names[i][0]))
            return err_set_at(err, ERR_BAD_INPUT, names[i][1], "%s is given more than once",
                              names[i][1]);
    return ERR_OK;
}

enum err_code write_author(const struct call *call, struct change_author *out, struct err *err)
{
    const struct claims *claims = call_claims(call);

    snprintf(out->name, sizeof out->name, "%s", claims ? claims->name : "");
    return option_note(call, out->note, err);
}

enum err_code write_open(struct call *call, const struct write_kind *kind,
                         struct world_change *change, struct err *err)
{
    const struct claims *claims = call_claims(call);

    CHECK(kind->method && kind->below);
    change->kind = kind->change;
    change->origin = call->request ? http_request_note(call->request) : NULL;
    if (claims && claims->has_bounds) {
        change->has_bounds = true;
        memcpy(change->bounds_m, claims->bounds_m, sizeof change->bounds_m);
    }
    if (locale_id(call, change, err) || call_find_locale(call, err) || check_headers(call, err) ||
        write_author(call, &change->author, err))
        return err->code;
    if (precondition_decode(call, kind->may_create, change, err) ||
        decode_key(call, kind, change, err))
        return err->code;
    return change->op_id[0] != '\0' ? ERR_OK : check_now(call, kind, change, err);
}

/* ---- to the writer --------------------------------------------------------------------------- */

/* A worker that waits for the writer. */
struct waiting {
    struct audit *audit; /* NULL: none */
    void (*take)(void *to, const struct world_outcome *outcome);
    void *to;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_done;
    struct err err;
};

/* On the writer's thread. */
static void waiting_done(void *context, const struct world_outcome *outcome)
{
    struct waiting *waiting = context;

    pthread_mutex_lock(&waiting->mutex);
    if (outcome->code != ERR_OK)
        waiting->err = *outcome->err;
    else if (audit_acknowledge(waiting->audit, &waiting->err) == ERR_OK)
        waiting->take(waiting->to, outcome);
    waiting->is_done = true;
    pthread_cond_signal(&waiting->cond);
    pthread_mutex_unlock(&waiting->mutex);
}

enum err_code write_wait(struct call *call, struct world_change *change,
                         void (*take)(void *to, const struct world_outcome *outcome), void *to,
                         struct err *err)
{
    struct waiting waiting = {.audit = call->api->audit,
                              .take = take,
                              .to = to,
                              .mutex = PTHREAD_MUTEX_INITIALIZER,
                              .cond = PTHREAD_COND_INITIALIZER};

    change->done = waiting_done;
    change->context = &waiting;
    if (world_submit(call->api->world, change, err))
        return err->code;
    pthread_mutex_lock(&waiting.mutex);
    while (!waiting.is_done)
        pthread_cond_wait(&waiting.cond, &waiting.mutex);
    pthread_mutex_unlock(&waiting.mutex);
    pthread_cond_destroy(&waiting.cond);
    pthread_mutex_destroy(&waiting.mutex);
    *err = waiting.err;
    return err->code;
}

struct world_change write_question(const struct world_change *change)
{
    struct world_change question = {.kind = WORLD_FIND_OP};

    memcpy(question.op_id, change->op_id, sizeof question.op_id);
    memcpy(question.request, change->request, sizeof question.request);
    return question;
}

struct repeat {
    struct http_reply *reply; /* not touched meanwhile by the thread that waits */
    bool is_known;
    struct err err;
};

static void repeat_take(void *to, const struct world_outcome *outcome)
{
    struct repeat *repeat = to;

    repeat->is_known = outcome->answer != NULL;
    if (repeat->is_known)
        send_kept(repeat->reply, outcome, &repeat->err);
}

enum err_code write_repeat(struct call *call, const struct write_kind *kind,
                           const struct world_change *change, bool *is_answered, struct err *err)
{
    struct world_change question = write_question(change);
    struct repeat repeat = {.reply = call->reply};

    *is_answered = false;
    if (change->op_id[0] == '\0')
        return ERR_OK;
    if (write_wait(call, &question, repeat_take, &repeat, err))
        return err->code;
    if (!repeat.is_known)
        return check_now(call, kind, change, err);
    *err = repeat.err;
    if (err->code != ERR_OK)
        return err->code;
    *is_answered = true;
    call->locale = NULL; /* Kota-Revision is the first answer's */
    return ERR_OK;
}

enum err_code write_submit(struct call *call, const struct write_kind *kind,
                           struct world_change *change, const struct imported *import,
                           uint64_t charge, struct err *err)
{
    struct write *write = http_request_alloc(call->request, sizeof *write);

    if (!write) {
        upload_release(call->api, charge);
        world_drop(change);
        return err_set(err, ERR_NO_MEMORY, "no memory for a write");
    }
    *write = (struct write){
        .api = call->api,
        .charge = charge,
        .request = call->request,
        .reply = call->reply,
        .kind = kind,
        .condition = change->condition,
        .names_none = change->if_revision == UINT64_MAX,
        .place = kind->place ? kind->place(call, change) : NULL,
        .has_import = import != NULL,
        .body.size_max = SIZE_MAX,
    };
    if (import) {
        write->import = *import;
        http_request_built(call->request, import->mesh.build_ms);
    }
    path_of(kind, change, write->location, sizeof write->location);
    change->answer = write_answer;
    change->done = write_done;
    change->context = write;
    /* From here on the writer may be faster than this thread, so the deferral comes first. */
    http_request_defer(call->request);
    call->is_deferred = true;
    if (world_submit(call->api->world, change, err) != ERR_OK)
        write_done(write, &(struct world_outcome){.code = err->code, .err = err});
    return ERR_OK;
}

enum err_code write_save_meshes(struct call *call, struct layer *const *fresh, size_t count,
                                const struct locale *now, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct layer *old = now ? locale_layer(now, fresh[i]->id) : NULL;

        if ((!old || old->mesh != fresh[i]->mesh) &&
            world_save_layer(call->api->world, fresh[i], err))
            return err->code;
    }
    return ERR_OK;
}
