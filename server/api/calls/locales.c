/*
 * GET    /v1/locales?limit=&after=&layers=
 *                              ->  {"locales":[Locale…],"next":"/v1/locales?…" or null}
 * POST   /v1/locales  {"id","from","title"?,"placement"?}  ->  201 Locale: a fork
 * GET    /v1/locales/{locale}  ->  Locale; ETag is its revision, with ".transform_seq" after it
 *                                  once a layer has moved; If-None-Match  ->  304
 * PUT    /v1/locales/{locale}  manifest  ->  201 or 200 Locale
 * DELETE /v1/locales/{locale}  ->  204
 */
#include "api/calls.h"

#include "api/node.h"
#include "api/manifest.h"
#include "api/options.h"
#include "api/precondition.h"
#include "api/encode.h"
#include "api/upload.h"
#include "api/write.h"

#include <stdio.h>
#include <string.h>

/* With staleness_s, where there is a shared log. */
static void put_locale(struct call *call, const struct locale *locale, bool with_layers)
{
    encode_locale_open(&call->out, locale, with_layers, NULL);
    node_staleness_member(&call->out, call->api->world);
    json_end_object(&call->out);
}

/* The path of the page after `last`; NULL: there is none. */
static void put_next(struct json_writer *w, uint64_t limit, const struct locale *last,
                     bool with_layers)
{
    char next[64 + WORLD_ID_MAX];

    if (!last) {
        json_put_null(w, "next");
        return;
    }
    snprintf(next, sizeof next, "/v1/locales?limit=%u&after=%s%s", (unsigned)limit, last->id,
             with_layers ? "&layers=true" : "");
    json_put_string(w, "next", next);
}

enum err_code locales_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"limit", "after", "layers", NULL};
    const struct world_snapshot *snapshot = call->snapshot;
    struct json_writer *w = &call->out;
    char after[WORLD_ID_MAX + 1];
    uint64_t limit = API_LOCALE_PAGE_MAX;
    bool with_layers = false;
    const struct locale *locale, *last = NULL;
    size_t at;

    if (options_open_query(call, names, err) ||
        option_integer(call, "limit", 1, API_LOCALE_PAGE_MAX, &limit, err) ||
        option_id(call, "after", after, err) || option_boolean(call, "layers", &with_layers, err))
        return err->code;
    at = snapshot_after(snapshot, after);
    json_begin_object(w);
    json_put_array(w, "locales");
    for (uint64_t i = 0; i < limit && (locale = snapshot_step(snapshot, &at)) != NULL; i++) {
        put_locale(call, locale, with_layers);
        last = locale;
    }
    json_end_array(w);
    put_next(w, limit, snapshot_step(snapshot, &at) ? last : NULL, with_layers);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(locales_get, 0, CALL_NEEDS_NOTHING)

enum err_code locale_get_answer(struct call *call, struct err *err)
{
    char tag[LOCALE_TAG_MAX + 1];

    if (options_open_query(call, NULL, err))
        return err->code;
    locale_tag(call->locale, tag);
    call_header(call, "ETag", "\"%s\"", tag);
    call_header(call, "Cache-Control", "no-cache");
    if (precondition_is_unchanged(call))
        call_status(call, 304);
    else
        put_locale(call, call->locale, true);
    return ERR_OK;
}
API_HANDLER(locale_get, 1, CALL_NEEDS_VALUE)

static const struct write_kind put_write = {
    .change = WORLD_PUT_LOCALE,
    .method = "PUT",
    .below = "",
    .may_create = true,
    .encode = write_encode_locale,
};

static const struct write_kind delete_write = {
    .change = WORLD_DELETE_LOCALE,
    .method = "DELETE",
    .below = "",
};

/* Another gravity needs other meshes: they are built here, on a worker, not by the writer. */
static enum err_code prepare_meshes(struct call *call, struct world_change *change,
                                    uint64_t *charge, struct err *err)
{
    const struct locale *now = snapshot_locale(call->snapshot, change->locale_id);

    *charge = 0;
    if (!now || !locale_needs_build(now, &change->manifest))
        return ERR_OK;
    if (upload_charge(call->api, now->memory_bytes, err))
        return err->code;
    change->prepared = locale_next(now, &change->manifest, NULL, NULL, NULL, err);
    if (change->prepared && write_save_meshes(call, change->prepared->layers,
                                              change->prepared->layer_count, now, err) == ERR_OK) {
        *charge = now->memory_bytes;
        return ERR_OK;
    }
    upload_release(call->api, now->memory_bytes);
    locale_unref(change->prepared);
    return err->code;
}

enum err_code locale_put_answer(struct call *call, struct err *err)
{
    struct world_change change = {.layer_id = ""};
    uint64_t charge;

    if (write_open(call, &put_write, &change, err) ||
        options_open_json(call, manifest_members, NULL, err) ||
        manifest_decode(call->json, &change.manifest, err) ||
        prepare_meshes(call, &change, &charge, err))
        return err->code;
    return write_submit(call, &put_write, &change, NULL, charge, err);
}
API_HANDLER(locale_put, 1, CALL_NEEDS_NOTHING)

/* ---- forks ----------------------------------------------------------------------------------- */

static const struct write_kind fork_write = {
    .change = WORLD_FORK,
    .method = "POST",
    .below = "",
    .encode = write_encode_locale,
};

/* "arena", "arena@start" or "arena@17". */
static enum err_code decode_from(const char *text, struct world_change *change, struct err *err)
{
    struct world_fork *fork = &change->fork;
    const char *sign = strchr(text, '@');
    struct span id = {text, sign ? (size_t)(sign - text) : strlen(text)};
    struct span at = {sign ? sign + 1 : "", sign ? strlen(sign + 1) : 0};
    bool is_good =
        world_id_is_valid(id.at, id.length) && span_copy(id, fork->from, sizeof fork->from);

    if (is_good && sign && !(span_count(at, &fork->revision) && fork->revision > 0))
        is_good = world_id_is_valid(at.at, at.length) &&
                  span_copy(at, fork->pin, sizeof fork->pin) &&
                  strspn(fork->pin, "0123456789") != at.length;
    if (!is_good)
        return err_set_at(
            err, ERR_BAD_INPUT, "/from",
            "from is a locale, or one with a pin or a revision: \"arena\", \"arena@start\", "
            "\"arena@17\"");
    snprintf(change->manifest.from, sizeof change->manifest.from, "%s", text);
    return ERR_OK;
}

static enum err_code get_text(const cJSON *json, const char *name, const char **out,
                              struct err *err)
{
    const cJSON *member = json_given(json, name);

    if (!member)
        err_set(err, ERR_MISSING, "%s is missing", name);
    else if (json_get_string(member, out, err) == ERR_OK)
        return ERR_OK;
    return err_at(err, "/%s", name);
}

/* Are both locales within the token's claims? The path names none. */
static enum err_code check_claims(const struct call *call, const char *id, const char *from,
                                  struct err *err)
{
    const struct claims *claims = call_claims(call);

    if (!claims || !claims->has_locales ||
        (claims_has_locale(claims, id, strlen(id)) &&
         claims_has_locale(claims, from, strlen(from))))
        return ERR_OK;
    return err_set(err, ERR_CLAIMS, "this token is for the locales %s", claims->locales);
}

/* The id becomes that of the path, where write_open finds it. */
static enum err_code decode_fork(struct call *call, struct world_change *change, struct err *err)
{
    const cJSON *json = call->json;
    const char *id, *from;

    if (manifest_decode(json, &change->manifest, err) || get_text(json, "id", &id, err) ||
        get_text(json, "from", &from, err))
        return err->code;
    if (!world_id_is_valid(id, strlen(id)))
        return err_set_at(err, ERR_BAD_INPUT, "/id",
                          "\"%.64s\" is no locale id: 1 to %d characters of A-Za-z0-9_-", id,
                          WORLD_ID_MAX);
    if (decode_from(from, change, err) || check_claims(call, id, change->fork.from, err))
        return err->code;
    change->fork.has_title = json_given(json, "title") != NULL;
    change->fork.has_placement = json_given(json, "placement") != NULL;
    call->params[0] = (struct span){id, strlen(id)};
    return ERR_OK;
}

enum err_code locales_post_answer(struct call *call, struct err *err)
{
    static const char *const members[] = {"id", "from", "title", "placement", NULL};
    struct world_change change = {.layer_id = ""};

    if (options_open_json(call, members, NULL, err) || decode_fork(call, &change, err))
        return err->code;
    if (write_open(call, &fork_write, &change, err))
        return err->code;
    return write_submit(call, &fork_write, &change, NULL, 0, err);
}
API_HANDLER(locales_post, 0, CALL_NEEDS_NOTHING)

enum err_code locale_delete_answer(struct call *call, struct err *err)
{
    struct world_change change = {.layer_id = ""};

    if (write_open(call, &delete_write, &change, err) || options_open_query(call, NULL, err))
        return err->code;
    return write_submit(call, &delete_write, &change, NULL, 0, err);
}
API_HANDLER(locale_delete, 1, CALL_NEEDS_NOTHING)
