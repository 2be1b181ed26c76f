/*
 * Hints: which locale held a point the last time it was asked.
 *
 * One for each item, in the same order, or none at all: a list that is too short would move every
 * hint behind the gap to another point. A hint may be any text; one that names no locale (any more)
 * is a locale that does not contain the point.
 */
#include "api/hints.h"

enum err_code hints_open(struct call *call, size_t count, const char *what, struct hints *out,
                         struct err *err)
{
    const cJSON *hints = json_given(call->json, "hints");
    size_t got;

    *out = (struct hints){NULL, 0};
    if (!hints)
        return ERR_OK;
    if (json_get_batch(call->json, "hints", call_limits(call)->items_max, &out->item, &got, err))
        return err->code;
    if (got == count)
        return ERR_OK;
    err_limit(err, ERR_BAD_INPUT, (double)count, (double)got,
              "there are %zu hints for %zu %s: one for each, or none at all", got, count, what);
    return err_at(err, "/hints");
}

enum err_code hints_next(struct hints *hints, const char **out, struct err *err)
{
    const cJSON *item = hints->item;

    *out = NULL;
    if (!item)
        return ERR_OK;
    if (!cJSON_IsNull(item) && json_get_string(item, out, err))
        return err_at(err, "/hints/%zu", hints->index);
    hints->item = item->next;
    hints->index++;
    return ERR_OK;
}
