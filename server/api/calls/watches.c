/*
 * POST   …/watches  {"height":{"points","ids",…},"contact":{…},…}  ->  201, Location, Watch
 * GET    /v1/watches/{watch}  ->  text/event-stream
 * PATCH  /v1/watches/{watch}  {"add":{…},"remove":[ids]}  ->  Watch
 * DELETE /v1/watches/{watch}  ->  204
 *
 *   event: answers
 *   id: 12
 *   data: {"revision":12,"answers":[{"id":"door","answer":{…}},…]}
 *
 * A member of the body is the body of that call, and ids, one for each item. An answer is the
 * item that the call would have in its results. A stream begins with all of them, in several
 * events, and then has those whose bits changed, the newest of each. An item whose call fails now,
 * as of a layer that is gone, has null and the problem. Which items: api/feed/watches.h.
 *
 * Watch: {"watch","locale","revision","items"}
 */
#include "api/calls.h"

#include "api/feed/watches.h"
#include "api/options.h"
#include "api/text.h"

#include <stdlib.h>
#include <string.h>

static struct watch *find(const struct call *call, struct err *err)
{
    struct span name = call->params[0];
    struct watch *watch = watches_find(call->api->watches, name.at, name.length, call_claims(call));

    if (!watch)
        err_set(err, ERR_WATCH_UNKNOWN, "there is no watch \"%.*s\", or it has ended",
                name.length < 64 ? (int)name.length : 64, name.at);
    return watch;
}

static void encode(struct call *call, struct watch *watch)
{
    json_begin_object(&call->out);
    watch_encode(&call->out, watch);
    json_end_object(&call->out);
}

enum err_code watches_post_answer(struct call *call, struct err *err)
{
    struct watch_set set;
    struct watch *watch;

    if (options_open_json(call, watch_kinds, NULL, err) ||
        json_scan(call->body.at, call->body.length, &call_limits(call)->json, &call->tape, err))
        return err->code;
    if (watch_set_decode(call, 0, "", watches_room(call->api->watches), &set, err) ||
        call_take_items(call, set.count, err)) {
        watch_set_free(&set);
        return err->code;
    }
    watch = watches_add(call, &set, err);
    if (!watch)
        return err->code;
    call_status(call, 201);
    call_header(call, "Location", "/v1/watches/%s", watch_name(watch));
    encode(call, watch);
    watch_unref(watch);
    return ERR_OK;
}
API_HANDLER(watches_post, 1, CALL_NEEDS_LOCALE)

/* ---- the stream ------------------------------------------------------------------------------ */

struct reader {
    struct watches *watches;
    struct watch *watch;
    uint64_t seen; /* the last change that was sent */
};

static void reader_pull(void *context, struct http_stream *stream)
{
    struct reader *reader = context;

    watch_pull(reader->watch, &reader->seen, stream);
}

static void reader_ended(void *context, enum http_stream_end reason)
{
    struct reader *reader = context;

    (void)reason;
    watch_follow(reader->watches, reader->watch, -1);
    watch_unref(reader->watch);
    free(reader);
}

enum err_code watch_get_answer(struct call *call, struct err *err)
{
    static const struct http_stream_calls calls = {.pull = reader_pull, .ended = reader_ended};
    struct reader *reader;

    if (options_open_query(call, NULL, err))
        return err->code;
    reader = calloc(1, sizeof *reader);
    if (!reader)
        return err_set(err, ERR_NO_MEMORY, "no memory for a stream");
    *reader = (struct reader){.watches = call->api->watches, .watch = find(call, err)};
    if (!reader->watch) {
        free(reader);
        return err->code;
    }
    call_stream_head(call, "text/event-stream");
    text_append(call, "retry: 2000\n: kota\n\n");
    watch_follow(reader->watches, reader->watch, 1);
    if (!call->request || http_reply_stream(call->request, call->reply, &calls, reader, err))
        reader_ended(reader, HTTP_STREAM_LEFT);
    return err->code;
}
API_HANDLER(watch_get, 1, CALL_NEEDS_NOTHING)

/* ---- changes --------------------------------------------------------------------------------- */

static enum err_code decode_removed(struct call *call, char (**out)[WATCH_ID_BYTES], size_t *count,
                                    struct err *err)
{
    uint32_t array = json_tape_find(&call->tape, 0, "remove"), id = array + 1;
    const struct json_token *tokens = call->tape.tokens;

    *count = 0;
    if (array == 0 || tokens[array].kind == JSON_NULL)
        return ERR_OK;
    if (tokens[array].kind != JSON_ARRAY)
        return err_set_at(err, ERR_BAD_INPUT, "/remove", "an array of ids was expected, not %s",
                          json_tape_kind(&call->tape, array));
    *out = call_alloc(call, (tokens[array].count + 1) * sizeof **out);
    if (!*out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the ids");
    for (; *count < tokens[array].count; ++*count, id = tokens[id].next)
        if (watch_id_decode(&call->tape, id, (*out)[*count], err))
            return err_at(err, "/remove/%zu", *count);
    return ERR_OK;
}

static enum err_code decode_added(struct call *call, struct watch_set *set, struct err *err)
{
    uint32_t object = json_tape_find(&call->tape, 0, "add");
    const cJSON *tree = json_given(call->json, "add");

    if (!tree)
        return ERR_OK;
    if (!cJSON_IsObject(tree))
        return err_set_at(err, ERR_BAD_INPUT, "/add", "an object was expected, not %s",
                          json_kind(tree));
    if (json_only_members(tree, watch_kinds, "/add", err) ||
        watch_set_decode(call, object, "/add", watches_room(call->api->watches), set, err))
        return err->code;
    return call_take_items(call, set->count, err);
}

enum err_code watch_patch_answer(struct call *call, struct err *err)
{
    static const char *const members[] = {"add", "remove", NULL};
    struct watch_set set = {0};
    char(*removed)[WATCH_ID_BYTES] = NULL;
    struct watch *watch;
    size_t count;

    if (options_open_json(call, members, NULL, err) ||
        json_scan(call->body.at, call->body.length, &call_limits(call)->json, &call->tape, err))
        return err->code;
    watch = find(call, err);
    if (!watch)
        return err->code;
    if (decode_removed(call, &removed, &count, err) || decode_added(call, &set, err))
        watch_set_free(&set);
    else if (watch_change(call->api->watches, watch, &set, removed, count, err) == ERR_OK)
        encode(call, watch);
    watch_unref(watch);
    return err->code;
}
API_HANDLER(watch_patch, 1, CALL_NEEDS_NOTHING)

enum err_code watch_delete_answer(struct call *call, struct err *err)
{
    struct watch *watch;

    if (options_open_query(call, NULL, err))
        return err->code;
    watch = find(call, err);
    if (!watch)
        return err->code;
    watches_end(call->api->watches, watch);
    watch_unref(watch);
    call_status(call, 204);
    return ERR_OK;
}
API_HANDLER(watch_delete, 1, CALL_NEEDS_NOTHING)
