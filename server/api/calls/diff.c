/*
 * GET …/diff?since=REV&layer=  ->  {"locale","revision","rects":[[c0,r0,cols,rows]…]}
 *
 * The samples of a heightfield that may have changed after a revision of the client, up to the
 * revision of this request's snapshot; later changes are left out, although the feed may have them
 * already. Each revision has an event of its own: where one is missing the answer would hide a
 * change, so it is 410, and the client fetches everything again. A layer that was replaced, or
 * whose cells are split in another way, has changed everywhere.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/rect_set.h"
#include "api/encode.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_AT_ONCE = 128 };

struct diff {
    const struct layer *layer;
    struct sample_rect whole;
    uint64_t since, revision;
    uint64_t seen; /* revisions after `since` */
    struct feed_event events[EVENTS_AT_ONCE];
    struct rect_set rects;
};

static enum err_code decode_since(const struct call *call, uint64_t *out, struct err *err)
{
    const struct http_query_item *item = call_query(call, "since");
    struct span text = item ? item->value : (struct span){NULL, 0};

    if (span_count(text, out))
        return ERR_OK;
    if (text.at)
        err_set(err, ERR_BAD_INPUT, "since=%.*s: expected a revision, a whole number",
                (int)(text.length > 32 ? 32 : text.length), text.at);
    else
        err_set(err, ERR_MISSING, "is missing: a revision, a whole number");
    return err_at(err, "since");
}

static enum err_code check_since(const struct diff *diff, const char *locale, struct err *err)
{
    if (diff->since <= diff->revision)
        return ERR_OK;
    return err_limit_at(
        err, ERR_REVISION_AHEAD, "since", (double)diff->revision, (double)diff->since,
        "since=%llu is in the future: locale %s is at revision %llu",
        (unsigned long long)diff->since, locale, (unsigned long long)diff->revision);
}

/* The rect cut at the field's edges: the layer may have been larger once. */
static bool cut_rect(const struct sample_rect *whole, struct sample_rect *rect)
{
    if (rect->column >= whole->cols || rect->row >= whole->rows)
        return false;
    if (rect->cols > whole->cols - rect->column)
        rect->cols = whole->cols - rect->column;
    if (rect->rows > whole->rows - rect->row)
        rect->rows = whole->rows - rect->row;
    return true;
}

static void take_event(struct diff *diff, const struct feed_event *event)
{
    struct sample_rect rect = event->rect;
    bool is_of_all = event->layer[0] == '\0';

    diff->seen++;
    if (!is_of_all && strcmp(event->layer, diff->layer->id) != 0)
        return;
    if (event->has_rect && cut_rect(&diff->whole, &rect))
        rect_set_add(&diff->rects, &rect);
    else if (!event->has_rect && event->has_bounds)
        rect_set_add(&diff->rects, &diff->whole);
}

/* All events of the revisions after `since`, up to the snapshot's. False: not all are held. */
static bool take_events(struct diff *diff, struct feed *feed, const char *locale)
{
    uint64_t after;
    bool held = true;
    size_t count;

    if (!feed_find(feed, locale, diff->since, diff->revision, &after))
        return false;
    do {
        count = feed_read(feed, locale, &after, diff->events, EVENTS_AT_ONCE, &held);
        for (size_t i = 0; i < count; i++)
            if (diff->events[i].revision > diff->since &&
                diff->events[i].revision <= diff->revision)
                take_event(diff, &diff->events[i]);
    } while (held && count > 0 && diff->events[count - 1].revision < diff->revision);
    return held && diff->seen == diff->revision - diff->since;
}

static void encode(struct call *call, struct diff *diff)
{
    struct json_writer *w = &call->out;

    rect_set_finish(&diff->rects);
    call_begin_answer(call);
    json_put_array(w, "rects");
    for (size_t i = 0; i < diff->rects.count; i++)
        encode_rect(w, &diff->rects.rects[i]);
    json_end_array(w);
    json_end_object(w);
}

static enum err_code ask(struct call *call, struct diff *diff, struct err *err)
{
    const char *locale = call->locale->id;
    const struct heightfield_spec *spec = heightfield_spec(diff->layer->field);

    diff->whole = (struct sample_rect){0, 0, spec->cols, spec->rows};
    if (diff->since < diff->revision && !take_events(diff, world_feed(call->api->world), locale))
        return err_set(err, ERR_GONE,
                       "what changed in locale %s since revision %llu is not all held any more; "
                       "fetch revision %llu whole",
                       locale, (unsigned long long)diff->since, (unsigned long long)diff->revision);
    encode(call, diff);
    return ERR_OK;
}

enum err_code diff_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"since", "layer", NULL};
    const struct layer *layer;
    struct diff *diff;
    uint64_t since;

    if (options_open_query(call, names, err) || decode_since(call, &since, err) ||
        option_choose_field(call, &layer, err))
        return err->code;
    diff = calloc(1, sizeof *diff);
    if (!diff)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of changes");
    diff->layer = layer;
    diff->since = since;
    diff->revision = call->locale->revision;
    if (check_since(diff, call->locale->id, err) == ERR_OK)
        ask(call, diff, err);
    free(diff);
    return err->code;
}
API_HANDLER(diff_get, 1, CALL_NEEDS_LOCALE)
