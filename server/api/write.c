/*
 * Writes are asynchronous: world_submit returns at once, and the outcome comes on the writer's
 * thread, after publication. The answer is encoded there from the published locale, so that it
 * shows the revision that this change made, not a later one.
 */
#include "api/write.h"

#include "api/shape.h"
#include "api/upload.h"

#include <stdio.h>
#include <string.h>

struct write {
    struct api *api;
    uint64_t charge; /* of an upload */
    struct http_request *request;
    struct http_reply *reply;
    enum world_change_kind kind;
    bool has_import;
    struct mesh_import import;
    char location[2 * WORLD_ID_MAX + 40];
};

static char *reply_reserve(void *to, size_t bytes)
{
    return http_reply_reserve(to, bytes);
}

static void reply_advance(void *to, size_t bytes)
{
    http_reply_advance(to, bytes);
}

static void encode(const struct write *write, const struct world_outcome *outcome)
{
    bool is_deletion = write->kind == WORLD_DELETE_LOCALE || write->kind == WORLD_DELETE_LAYER;
    struct json_writer w;

    if (outcome->locale)
        http_reply_header(write->reply, "Kota-Revision", "%llu",
                          (unsigned long long)outcome->locale->revision);
    if (is_deletion) {
        http_reply_status(write->reply, 204);
        return;
    }
    if (outcome->is_new) {
        http_reply_status(write->reply, 201);
        http_reply_header(write->reply, "Location", "%s", write->location);
    }
    http_reply_content_type(write->reply, "application/json");
    json_init(&w, (struct json_sink){write->reply, reply_reserve, reply_advance});
    shape_locale(&w, outcome->locale, write->has_import ? &write->import : NULL);
    json_finish(&w);
}

/* On the writer's thread. */
static void write_done(void *context, const struct world_outcome *outcome)
{
    struct write *write = context;

    upload_release(write->api, write->charge);
    if (outcome->code == ERR_OK)
        encode(write, outcome);
    else
        http_reply_problem(write->reply, outcome->err);
    http_request_finish(write->request);
}

enum err_code write_submit(struct call *call, struct world_change *change,
                           const struct mesh_import *import, uint64_t charge, struct err *err)
{
    struct write *write = http_request_alloc(call->request, sizeof *write);

    if (!write) {
        upload_release(call->api, charge);
        layer_unref(change->layer);
        locale_unref(change->prepared);
        return err_set(err, ERR_NO_MEMORY, "no memory for a write");
    }
    write->api = call->api;
    write->charge = charge;
    write->request = call->request;
    write->reply = call->reply;
    write->kind = change->kind;
    write->has_import = import != NULL;
    if (import)
        write->import = *import;
    if (change->kind == WORLD_PUT_LAYER)
        snprintf(write->location, sizeof write->location, "/v1/locales/%s/layers/%s",
                 change->locale_id, change->layer_id);
    else
        snprintf(write->location, sizeof write->location, "/v1/locales/%s", change->locale_id);
    change->done = write_done;
    change->context = write;
    /* From here on the writer may be faster than this thread, so the deferral comes first. */
    http_request_defer(call->request);
    call->is_deferred = true;
    if (world_submit(call->api->world, change, err) != ERR_OK)
        write_done(write, &(struct world_outcome){.code = err->code, .err = err});
    return ERR_OK;
}

enum err_code write_layer_id(const struct call *call, enum err_code code, char *out,
                             struct err *err)
{
    struct span id = call->params[1];

    if (world_id_is_valid(id.at, id.length) && span_copy(id, out, WORLD_ID_MAX + 1))
        return ERR_OK;
    return err_set(err, code, "\"%.*s\" is no layer id: 1 to %d characters of A-Za-z0-9_-",
                   (int)(id.length > WORLD_ID_MAX ? WORLD_ID_MAX : id.length), id.at ? id.at : "",
                   WORLD_ID_MAX);
}
