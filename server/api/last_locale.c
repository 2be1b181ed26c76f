/*
 * The locale that held a point in an earlier request: "hints" in the request.
 *
 * There is one for each item, in the same order, or none at all: a list that is too short would
 * shift every hint after the gap to another point. A hint has the form of an id; one that names no
 * locale is ignored, and its item reports it.
 */
#include "api/last_locale.h"

#include "api/options.h"

#include <string.h>

enum err_code last_locales_open(struct call *call, size_t count, const char *what,
                                struct last_locales *out, struct err *err)
{
    uint32_t array;
    size_t got;

    *out = (struct last_locales){.call = call};
    if (!json_given(call->json, "hints"))
        return ERR_OK;
    if (option_array(call, "hints", &array, err))
        return err->code;
    out->item = array + 1;
    got = call->tape.tokens[array].count;
    if (got == count)
        return ERR_OK;
    return err_limit_at(err, ERR_BAD_INPUT, "/hints", (double)count, (double)got,
                        "there are %zu hints for %zu %s: one for each, or none at all", got, count,
                        what);
}

enum err_code last_locales_next(struct last_locales *last, const char **out, struct err *err)
{
    const struct json_tape *tape = &last->call->tape;
    const struct json_token *token = &tape->tokens[last->item];
    char *text = NULL;

    *out = NULL;
    last->is_unknown = false;
    if (last->item == 0)
        return ERR_OK;
    if (token->kind == JSON_STRING) {
        text = call_alloc(last->call, token->end - token->begin);
        if (!text)
            return err_set(err, ERR_NO_MEMORY, "no memory for a hint");
        json_tape_string(tape, last->item, text);
        if (!world_id_is_valid(text, strlen(text))) {
            err_set(err, ERR_BAD_INPUT,
                    "\"%.*s\" is no locale id: 1 to %d characters of A-Za-z0-9_-", WORLD_ID_MAX,
                    text, WORLD_ID_MAX);
            return err_at(err, "/hints/%zu", last->index);
        }
        last->is_unknown = !snapshot_locale(last->call->snapshot, text);
    } else if (token->kind != JSON_NULL) {
        err_set(err, ERR_BAD_INPUT, "a string was expected, not %s",
                json_tape_kind(tape, last->item));
        return err_at(err, "/hints/%zu", last->index);
    }
    *out = last->is_unknown ? NULL : text;
    last->item = token->next;
    last->index++;
    return ERR_OK;
}
