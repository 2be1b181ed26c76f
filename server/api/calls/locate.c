/*
 * POST /v1/locate  {"points":[[x,y,z]…],"hints":["id"|null…]}
 *   ->  {"results":[{"locale":"id"|null,"point":[x,y,z]|null,"changed":bool,
 *                   "revision":n|null,"hint":"unknown"}…]}
 *
 * Points are in the world's frame, those of the answer in the locale's. A hint is the locale that
 * held the point before: it keeps the point up to LOCATE_BORDER_TOLERANCE beyond its border. A hint
 * that names no locale is ignored, and its item reports it.
 */
#include "api/calls.h"

#include "api/last_locale.h"
#include "api/options.h"
#include "world/ask/locate.h"

#include <string.h>

static void encode(struct json_writer *w, const struct located *located, const char *last_locale,
                   bool hint_is_unknown)
{
    const char *id = located->locale ? located->locale->id : NULL;

    json_begin_object(w);
    json_put_string_or_null(w, "locale", id);
    if (id)
        json_put_vec3(w, "point", located->point);
    else
        json_put_null(w, "point");
    json_put_boolean(w, "changed",
                     hint_is_unknown || (last_locale && (!id || strcmp(last_locale, id) != 0)));
    json_put_integer_or_null(w, "revision", id != NULL, id ? located->locale->revision : 0);
    if (hint_is_unknown) {
        json_put_string(w, "hint", "unknown");
    }
    json_end_object(w);
}

enum err_code locate_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", "hints", NULL};
    struct json_writer *w = &call->out;
    const struct json_token *tokens;
    uint32_t array, item;
    struct last_locales last;

    if (options_open_batch(call, items, NULL, err) || option_array(call, "points", &array, err))
        return err->code;
    tokens = call->tape.tokens;
    if (call_take_items(call, tokens[array].count, err) ||
        last_locales_open(call, tokens[array].count, "points", &last, err))
        return err->code;
    item = array + 1;
    json_begin_object(w);
    json_put_array(w, "results");
    for (size_t i = 0; i < tokens[array].count; i++, item = tokens[item].next) {
        struct located located;
        struct vec3 point;
        const char *last_locale;

        if (call_check_budget(call, i, err))
            return err->code;
        if (json_tape_vec3(&call->tape, item, &point, err))
            return err_at(err, "/points/%zu", i);
        if (last_locales_next(&last, &last_locale, err))
            return err->code;
        snapshot_locate(call->snapshot, point, last_locale, 0, &located);
        encode(w, &located, last_locale, last.is_unknown);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(locate_post, 0, CALL_NEEDS_NOTHING)
