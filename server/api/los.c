/*
 * POST …/los  {"segments":[{"from","to"}…],"layer"}  ->  results: {"visible","t","point"}
 *
 * t runs from 0 at `from` to 1 at `to`; it and the blocking point are null where nothing blocks.
 */
#include "api/calls.h"

#include "api/options.h"

static enum err_code decode_segment(const cJSON *item, size_t i, struct vec3 *from, struct vec3 *to,
                                    struct err *err)
{
    if (!cJSON_IsObject(item)) {
        err_set(err, ERR_BAD_INPUT, "a segment is an object, not %s", json_kind(item));
        return err_at(err, "/segments/%zu", i);
    }
    if (json_get_vec3(json_member(item, "from"), from, err))
        return err_at(err, "/segments/%zu/from", i);
    if (json_get_vec3(json_member(item, "to"), to, err))
        return err_at(err, "/segments/%zu/to", i);
    return ERR_OK;
}

static void encode(struct json_writer *w, bool is_visible, const struct locale_hit *blocker)
{
    json_begin_object(w);
    json_key(w, "visible");
    json_boolean(w, is_visible);
    json_key(w, "t");
    json_number(w, is_visible ? NAN : blocker->at.t);
    json_key(w, "point");
    if (is_visible)
        json_null(w);
    else
        json_vec3(w, blocker->at.point);
    json_end_object(w);
}

enum err_code los_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"segments", NULL};
    static const char *const names[] = {"layer", NULL};
    struct layer_choice choice;
    const cJSON *item;
    size_t count;

    if (options_open_json(call, items, names, err) || option_choose(call, &choice, err) ||
        json_get_batch(call->json, "segments", call->api->limits.items_max, &item, &count, err) ||
        call_pace_rays(call, &choice, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; item; item = item->next, i++) {
        struct vec3 from, to;
        struct locale_hit blocker;
        bool is_visible;

        if (call_pace(call, i, err) || decode_segment(item, i, &from, &to, err))
            return err->code;
        is_visible = locale_line_of_sight(&choice, from, to, &blocker);
        encode(&call->out, is_visible, &blocker);
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(los_post, 1, CALL_NEEDS_LOCALE)
