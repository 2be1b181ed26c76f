/*
 * PUT    /v1/models/{model}  model/obj  ->  201 or 200
 *        {"id","triangles","vertices","volume_m3","bounds":{"min","max"},"bytes","hash"}
 * GET    /v1/models       ->  {"models":[…]}, by id
 * GET    /v1/models/{model}  ->  model/obj: the file as it was sent; ETag is its hash
 * DELETE /v1/models/{model}  ->  204
 *
 * A model is a closed mesh of triangles, in metres, Z up (defined in solid.h); `hash` is
 * BLAKE2b-256 of the file. It is measured on a worker, and goes to the writer as any change does;
 * it belongs to no locale, so it makes no revision and no event. A PUT or DELETE does the same
 * however often it is sent.
 */
#include "api/calls.h"

#include "api/answer/file.h"
#include "api/options.h"
#include "api/tile_cache.h"

#include <stdio.h>
#include <string.h>

/* A change under way; memory of its request. */
struct model_write {
    struct http_request *request;
    struct http_reply *reply;
    struct audit *audit; /* NULL: none */
    enum world_change_kind kind;
    struct model *model; /* a reference; NULL for a deletion */
};

static void hash_text(const struct model *model, char out[2 * MODEL_HASH_BYTES + 1])
{
    for (size_t i = 0; i < MODEL_HASH_BYTES; i++) {
        out[2 * i] = "0123456789abcdef"[model->hash[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[model->hash[i] & 15];
    }
    out[2 * MODEL_HASH_BYTES] = '\0';
}

static void encode(struct json_writer *w, const struct model *model)
{
    char hash[2 * MODEL_HASH_BYTES + 1];

    hash_text(model, hash);
    json_begin_object(w);
    json_put_string(w, "id", model->id);
    json_put_integer(w, "triangles", model->solid.triangles);
    json_put_integer(w, "vertices", model->solid.vertices);
    json_put_number(w, "volume_m3", model->solid.volume_m3);
    json_put_box3(w, "bounds", model->solid.bounds);
    json_put_integer(w, "bytes", model->length);
    json_put_string(w, "hash", hash);
    json_end_object(w);
}

/* On the writer's thread. */
static void model_done(void *context, const struct world_outcome *outcome)
{
    struct model_write *write = context;
    struct http_reply *reply = write->reply;
    struct err err;

    if (outcome->code != ERR_OK) {
        http_reply_problem(reply, outcome->err);
    } else if (audit_acknowledge(write->audit, &err)) {
        http_reply_problem(reply, &err);
    } else if (!write->model) {
        http_reply_status(reply, 204);
    } else {
        struct json_writer w;

        http_reply_made(reply);
        json_init(&w, json_sink_of_reply(reply));
        encode(&w, write->model);
        json_finish(&w); /* without memory the reply itself fails */
        http_reply_content_type(reply, "application/json");
        http_reply_status(reply, outcome->is_new ? 201 : 200);
        if (outcome->is_new)
            http_reply_header(reply, "Location", "/v1/models/%s", write->model->id);
    }
    model_unref(write->model);
    http_request_finish(write->request);
}

/* Takes change->model. */
static enum err_code submit(struct call *call, struct world_change *change, struct err *err)
{
    struct model_write *write = http_request_alloc(call->request, sizeof *write);

    if (!write) {
        model_unref(change->model);
        return err_set(err, ERR_NO_MEMORY, "no memory for a write");
    }
    *write = (struct model_write){call->request, call->reply, call->api->audit, change->kind, NULL};
    if (change->model)
        write->model = model_ref(change->model);
    change->done = model_done;
    change->origin = http_request_note(call->request);
    change->context = write;
    http_request_defer(call->request); /* the writer may be faster than this thread */
    call->is_deferred = true;
    if (world_submit(call->api->world, change, err) != ERR_OK)
        model_done(write, &(struct world_outcome){.code = err->code, .err = err});
    return ERR_OK;
}

enum err_code model_put_answer(struct call *call, struct err *err)
{
    struct world_change change = {.kind = WORLD_PUT_MODEL};

    if (call_param_id(call, 0, "model", ERR_BAD_INPUT, change.model_id, err) ||
        options_open_query(call, NULL, err))
        return err->code;
    if (!span_equals(call->media_type, "model/obj"))
        return options_wrong_media_type(call, "model/obj", err);
    change.model = model_create(change.model_id, call->body.at, call->body.length,
                                &call_limits(call)->polygon, err);
    return change.model ? submit(call, &change, err) : err->code;
}
API_HANDLER(model_put, 1, CALL_NEEDS_NOTHING)

enum err_code model_delete_answer(struct call *call, struct err *err)
{
    struct world_change change = {.kind = WORLD_DELETE_MODEL};

    if (call_param_id(call, 0, "model", ERR_MODEL_UNKNOWN, change.model_id, err) ||
        options_open_query(call, NULL, err))
        return err->code;
    return submit(call, &change, err);
}
API_HANDLER(model_delete, 1, CALL_NEEDS_NOTHING)

enum err_code models_get_answer(struct call *call, struct err *err)
{
    const struct model_list *list = call->snapshot->models;
    struct json_writer *w = &call->out;

    if (options_open_query(call, NULL, err))
        return err->code;
    json_begin_object(w);
    json_put_array(w, "models");
    for (size_t i = 0; list && i < list->count; i++)
        encode(w, list->at[i]);
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(models_get, 0, CALL_NEEDS_NOTHING)

enum err_code model_get_answer(struct call *call, struct err *err)
{
    const struct model *model;
    char id[WORLD_ID_MAX + 1], hash[2 * MODEL_HASH_BYTES + 1], tag[sizeof hash + 2];

    if (call_param_id(call, 0, "model", ERR_MODEL_UNKNOWN, id, err) ||
        options_open_query(call, NULL, err))
        return err->code;
    model = model_list_find(call->snapshot->models, id);
    if (!model)
        return err_set_at(err, ERR_MODEL_UNKNOWN, "model", "there is no model %s", id);
    hash_text(model, hash);
    snprintf(tag, sizeof tag, "\"%s\"", hash);
    if (answer_is_known(call, tag, "no-cache"))
        return ERR_OK;
    call_content_type(call, "model/obj");
    return answer_append(call, model->bytes, model->length, err);
}
API_HANDLER(model_get, 1, CALL_NEEDS_NOTHING)
