/*
 * POST /v1/locate  {"points":[[x,y,z]…],"hints":["id"|null…]}
 *   ->  {"results":[{"locale":"id"|null,"point":[x,y,z]|null,"changed":bool,
 *                   "revision":n|null}…]}
 *
 * Points are the world's, the answer's those of the locale's frame. A hint says where the point
 * was: that locale keeps it while it contains it, by a hair more than its border. A hint that names
 * no locale (any more) is a locale that does not contain the point.
 */
#include "api/calls.h"

#include "api/hints.h"
#include "api/options.h"
#include "world/locate.h"

#include <string.h>

static void encode(struct json_writer *w, const struct located *located, const char *hint)
{
    const char *id = located->locale ? located->locale->id : NULL;

    json_begin_object(w);
    json_key(w, "locale");
    if (id)
        json_string(w, id);
    else
        json_null(w);
    json_key(w, "point");
    if (id)
        json_vec3(w, located->point);
    else
        json_null(w);
    json_key(w, "changed");
    json_boolean(w, hint && (!id || strcmp(hint, id) != 0));
    json_key(w, "revision");
    if (id)
        json_integer(w, located->locale->revision);
    else
        json_null(w);
    json_end_object(w);
}

enum err_code locate_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", "hints", NULL};
    struct json_writer *w = &call->out;
    const cJSON *item;
    struct hints hints;
    size_t count;

    if (options_open_json(call, items, NULL, err) ||
        json_get_batch(call->json, "points", call_limits(call)->items_max, &item, &count, err) ||
        call_take_items(call, count, err) || hints_open(call, count, "points", &hints, err))
        return err->code;
    json_begin_object(w);
    json_key(w, "results");
    json_begin_array(w);
    for (size_t i = 0; item; item = item->next, i++) {
        struct located located;
        struct vec3 point;
        const char *hint;

        if (call_pace(call, i, err))
            return err->code;
        if (json_get_vec3(item, &point, err))
            return err_at(err, "/points/%zu", i);
        if (hints_next(&hints, &hint, err))
            return err->code;
        snapshot_locate(call->snapshot, point, hint, &located);
        encode(w, &located, hint);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(locate_post, 0, CALL_NEEDS_NOTHING)
