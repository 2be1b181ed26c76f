/*
 * GET …/history?rect=&layer=&author=&since=&order=&limit=&before=
 *   ->  {"locale","revision","held_since","history":[{"revision","author","note","rect","time",
 *        "layer","source"}…],"next"}
 *
 * Rows come from the store on a worker, oldest first or newest first. A page ends where it is full;
 * `next` continues after its last revision. Revisions later than the request's snapshot are left
 * out.
 */
#include "api/past/past.h"

#include "api/calls.h"
#include "api/encode.h"
#include "api/options.h"
#include "base/clock.h"
#include "base/text/utc_read.h"

#include <stdio.h>
#include <string.h>

/* ---- shared --------------------------------------------------------------------------------- */

enum err_code past_author(struct call *call, char out[STORE_AUTHOR_MAX + 1], bool *is_given,
                          struct err *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "_-.@:";

    out[0] = '\0';
    if (option_text(call, "author", out, STORE_AUTHOR_MAX + 1, is_given, err) || !*is_given)
        return err->code;
    if (out[0] != '\0' && out[strspn(out, letters)] == '\0')
        return ERR_OK;
    return err_set_at(err, ERR_BAD_INPUT, json_given(call->json, "author") ? "/author" : "author",
                      "\"%s\" is no token's name: 1 to %d characters of A-Za-z0-9_-.@:", out,
                      STORE_AUTHOR_MAX);
}

struct moment {
    int64_t time_ms;
    bool has_earlier;
    uint64_t since; /* the revision before the first later one */
};

static bool is_before(void *context, const struct store_past *row, struct err *err)
{
    struct moment *moment = context;

    (void)err;
    moment->has_earlier |= row->time_ms <= moment->time_ms;
    if (row->time_ms > moment->time_ms)
        moment->since = row->revision - 1;
    return row->time_ms <= moment->time_ms;
}

/* A time before all that is held is a revision before it, where that is not all. */
static enum err_code revision_at(struct call *call, int64_t time_ms, uint64_t *out, struct err *err)
{
    struct moment moment = {time_ms, false, call->locale->revision};
    struct store_history_question question = {.locale = call->locale->id,
                                              .upto = call->locale->revision};
    uint64_t held;

    if (world_history(call->api->world, &question, &held, is_before, &moment, err))
        return err->code;
    *out = moment.has_earlier || held == 0 || moment.since == 0 ? moment.since : moment.since - 1;
    return ERR_OK;
}

static enum err_code wrong_since(struct call *call, const char *got, struct err *err)
{
    return err_set_at(err, ERR_BAD_INPUT, json_given(call->json, "since") ? "/since" : "since",
                      "since is %.64s: expected a revision, a whole number, or a time such as "
                      "2026-12-31T18:00:00Z",
                      got);
}

enum err_code past_since(struct call *call, uint64_t *out, bool *is_given, struct err *err)
{
    const cJSON *json = json_given(call->json, "since");
    char text[72] = "";
    int64_t time_ms;

    *is_given = false;
    if (json && cJSON_IsNumber(json)) {
        *is_given = true;
        return option_integer(call, "since", 0, INT64_MAX / 2, out, err);
    }
    if (option_text(call, "since", text, sizeof text, is_given, err) || !*is_given)
        return err->code;
    if (!json && span_count((struct span){text, strlen(text)}, out) && *out < INT64_MAX / 2)
        return ERR_OK;
    return utc_read(text, &time_ms) ? revision_at(call, time_ms, out, err)
                                    : wrong_since(call, text, err);
}

/* ---- the call ------------------------------------------------------------------------------- */

struct asked {
    bool has_author, has_rect, has_layer, is_newest_first;
    char author[STORE_AUTHOR_MAX + 1], layer[WORLD_ID_MAX + 1];
    struct sample_rect rect;
    uint64_t since, before, limit;
    struct json_writer *w;
    uint64_t count, last; /* rows that were written; the revision of the last */
    bool is_full;
};

static bool is_asked(const struct asked *asked, const struct store_past *row)
{
    const struct sample_rect *a = &asked->rect, *b = &row->rect;

    if ((asked->has_author && strcmp(asked->author, row->author) != 0) ||
        (asked->has_layer && row->layer[0] != '\0' && strcmp(asked->layer, row->layer) != 0))
        return false;
    return !asked->has_rect ||
           (row->has_rect && (uint64_t)a->column < (uint64_t)b->column + b->cols &&
            (uint64_t)b->column < (uint64_t)a->column + a->cols &&
            (uint64_t)a->row < (uint64_t)b->row + b->rows &&
            (uint64_t)b->row < (uint64_t)a->row + a->rows);
}

static bool take(void *context, const struct store_past *row, struct err *err)
{
    static const struct sample_rect none = {0, 0, 0, 0};
    struct asked *asked = context;
    struct json_writer *w = asked->w;
    char time[UTC_TEXT_BYTES];

    (void)err;
    if (!is_asked(asked, row))
        return true;
    if (asked->count == asked->limit) {
        asked->is_full = true;
        return false;
    }
    utc_text(row->time_ms, time);
    json_begin_object(w);
    json_put_integer(w, "revision", row->revision);
    json_put_string_or_null(w, "author", row->author);
    json_put_string_or_null(w, "note", row->note);
    json_key(w, "rect");
    encode_rect(w, row->has_rect ? &row->rect : &none);
    json_put_string_or_null(w, "time", time);
    json_put_string_or_null(w, "layer", row->layer);
    json_put_string_or_null(w, "source", row->source);
    json_end_object(w);
    asked->count++;
    asked->last = row->revision;
    return true;
}

static enum err_code decode(struct call *call, struct asked *asked, struct err *err)
{
    static const char *const names[] = {"rect",  "layer", "author", "since",
                                        "order", "limit", "before", NULL};
    static const char *const orders[] = {"oldest", "newest", NULL};
    const struct layer *layer = NULL;
    bool is_given;
    int order = 0;

    asked->limit = 100;
    asked->before = UINT64_MAX;
    if (options_open_query(call, names, err) || option_word(call, "order", orders, &order, err) ||
        option_integer(call, "limit", 1, API_HISTORY_PAGE_MAX, &asked->limit, err) ||
        option_integer(call, "before", 1, INT64_MAX / 2, &asked->before, err) ||
        option_layer(call, asked->layer, err) ||
        past_author(call, asked->author, &asked->has_author, err) ||
        past_since(call, &asked->since, &is_given, err))
        return err->code;
    asked->is_newest_first = order == 1;
    asked->has_layer = asked->layer[0] != '\0';
    asked->has_rect = call_query(call, "rect") != NULL;
    if (!asked->has_rect)
        return ERR_OK;
    if (option_choose_field(call, &layer, err) ||
        option_rect(call, heightfield_spec(layer->field), &asked->rect, &is_given, err))
        return err->code;
    asked->has_layer = true;
    memcpy(asked->layer, layer->id, sizeof asked->layer);
    return ERR_OK;
}

/* The same question from the last row on. */
static void put_next(struct call *call, const struct asked *asked)
{
    char next[512], more[128] = "";
    int length;

    if (!asked->is_full) {
        json_put_null(&call->out, "next");
        return;
    }
    if (asked->is_newest_first)
        snprintf(more, sizeof more, "&before=%llu&order=newest", (unsigned long long)asked->last);
    else if (asked->before < UINT64_MAX)
        snprintf(more, sizeof more, "&before=%llu", (unsigned long long)asked->before);
    length = snprintf(next, sizeof next, "/v1/locales/%s/history?since=%llu&limit=%llu%s",
                      call->locale->id,
                      (unsigned long long)(asked->is_newest_first ? asked->since : asked->last),
                      (unsigned long long)asked->limit, more);
    if (asked->has_author)
        length +=
            snprintf(next + length, sizeof next - (size_t)length, "&author=%s", asked->author);
    if (asked->has_layer)
        length += snprintf(next + length, sizeof next - (size_t)length, "&layer=%s", asked->layer);
    if (asked->has_rect)
        snprintf(next + length, sizeof next - (size_t)length, "&rect=%u,%u,%u,%u",
                 asked->rect.column, asked->rect.row, asked->rect.cols, asked->rect.rows);
    json_put_string(&call->out, "next", next);
}

enum err_code history_get_answer(struct call *call, struct err *err)
{
    struct store_history_question question = {.locale = call->locale->id};
    struct json_writer *w = &call->out;
    struct asked asked = {.w = w};
    uint64_t held;

    if (decode(call, &asked, err))
        return err->code;
    question.after = asked.since;
    question.upto = call->locale->revision;
    if (asked.before <= question.upto)
        question.upto = asked.before - 1;
    question.is_newest_first = asked.is_newest_first;
    call_begin_answer(call);
    json_put_array(w, "history");
    if (world_history(call->api->world, &question, &held, take, &asked, err))
        return err->code;
    json_end_array(w);
    put_next(call, &asked);
    json_put_integer(w, "held_since",
                     held < call->locale->revision ? held : call->locale->revision);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(history_get, 1, CALL_NEEDS_LOCALE)
