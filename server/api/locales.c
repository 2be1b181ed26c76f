/*
 * GET    /v1/locales       ->  {"locales":[Locale…]}
 * GET    /v1/locales/{id}  ->  Locale
 * PUT    /v1/locales/{id}  manifest  ->  201 or 200 Locale
 * DELETE /v1/locales/{id}  ->  204
 */
#include "api/calls.h"

#include "api/manifest.h"
#include "api/options.h"
#include "api/shape.h"
#include "api/write.h"

enum err_code locales_get_answer(struct call *call, struct err *err)
{
    struct json_writer *w = &call->out;

    if (options_open_query(call, NULL, err))
        return err->code;
    json_begin_object(w);
    json_key(w, "locales");
    json_begin_array(w);
    for (size_t i = 0; i < call->snapshot->locale_count; i++)
        shape_locale(w, call->snapshot->locales[i]);
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(locales_get, 0, CALL_NEEDS_NOTHING)

enum err_code locale_get_answer(struct call *call, struct err *err)
{
    if (options_open_query(call, NULL, err))
        return err->code;
    shape_locale(&call->out, call->locale);
    return ERR_OK;
}
API_HANDLER(locale_get, 1, CALL_NEEDS_LOCALE)

enum err_code locale_put_answer(struct call *call, struct err *err)
{
    struct world_change change = {.kind = WORLD_PUT_LOCALE};
    struct span id = call->params[0];

    if (!world_id_is_valid(id.at, id.length) ||
        !span_copy(id, change.locale_id, sizeof change.locale_id))
        return err_set(err, ERR_BAD_INPUT,
                       "\"%.*s\" is no locale id: 1 to %d characters of A-Za-z0-9_-",
                       (int)(id.length > WORLD_ID_MAX ? WORLD_ID_MAX : id.length),
                       id.at ? id.at : "", WORLD_ID_MAX);
    if (options_open_json(call, manifest_members, NULL, err) ||
        manifest_decode(call->json, &change.manifest, err))
        return err->code;
    return write_submit(call, &change, err);
}
API_HANDLER(locale_put, 1, CALL_NEEDS_NOTHING)

enum err_code locale_delete_answer(struct call *call, struct err *err)
{
    struct world_change change = {.kind = WORLD_DELETE_LOCALE};

    if (options_open_query(call, NULL, err))
        return err->code;
    span_copy(call->params[0], change.locale_id, sizeof change.locale_id);
    return write_submit(call, &change, err);
}
API_HANDLER(locale_delete, 1, CALL_NEEDS_LOCALE)
