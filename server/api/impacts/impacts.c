/*
 * POST …/impacts            ->  202 Impact, Location; with until=written 200 Impact
 * GET  …/impacts/{impact}   ->  Impact
 * Impact  {"locale","impact","state","how","patch","revision","layer","rect","point","reason"}
 *
 * Problem: a body that hits the ground must dent it at once and for everybody, exactly once,
 * whether granules can be simulated there or not, and whatever dies meanwhile. Approach: an impact
 * is its crater (sand/impact/crater.h), an ordinary edit of the ground with the request's key. When
 * this edit is durable the impact is acknowledged, and it is done if the daemon stops there.
 * Granules refine it afterwards: a patch, living or new, gets the body, and the edit that writes
 * the patch takes the crater back (sand/patch/dent.c). So nothing else is stored, a start has
 * nothing to repair, and at every moment the ground has either the crater or what the granules
 * made.
 *
 * The number of an impact is the revision of its crater. Its fate is in memory (fates.h); after a
 * restart, and on other nodes of a cluster, it is read from the feed: the crater's event, and the
 * later edit of a patch around it. When the feed has moved on: 410.
 *
 * Granules, or only the crater? Only the crater: too far from the observer; a body too small for
 * the granules, too fast or too large for their step; all patches in use, no device, or one that
 * would need too long (IMPACT_REST_MS). The answer has the reason.
 *
 * A repeat under the key finds the crater's revision in the log of edits, and is answered with the
 * fate of that impact as it is then.
 */
#include "api/calls.h"

#include "api/encode.h"
#include "api/idempotency_record.h"
#include "api/impacts/impact_patch.h"
#include "api/node.h"
#include "api/options.h"
#include "api/write.h"
#include "sand/impact/fates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE "impact"
#define REACH_LEAST 1.6 /* of a crater, in spacings of the samples */

/* ---- answers --------------------------------------------------------------------------------- */

static void encode_fate(struct json_writer *w, const struct fate *fate)
{
    json_begin_object(w);
    json_put_string(w, "locale", fate->locale);
    json_put_integer(w, "impact", fate->number);
    json_put_string(w, "state", fate->is_written ? "written" : "accepted");
    json_put_string_or_null(w, "how",
                            fate->layer[0] ? fate->is_refined ? "patch" : "crater" : NULL);
    json_put_integer_or_null(w, "patch", fate->patch != 0, fate->patch);
    json_put_integer(w, "revision", fate->revision);
    json_put_string_or_null(w, "layer", fate->layer);
    json_key(w, "rect");
    encode_rect(w, &fate->rect);
    if (isnan(fate->point[0]))
        json_put_null(w, "point");
    else
        json_put_numbers(w, "point", fate->point, 3);
    json_put_string_or_null(w, "reason", fate->reason);
    json_end_object(w);
}

/* A request that will be answered; memory of its request. */
struct impact_ask {
    struct http_request *request;
    struct http_reply *reply;
    struct api *api;
    bool is_waiting, is_repeat;
    struct fate fate; /* as it was acknowledged */
};

/* Any thread. */
static void send_fate(void *context, const struct fate *fate)
{
    struct impact_ask *ask = context;
    char url[CLUSTER_URL_MAX + 1] = "";
    struct json_writer w;
    struct err err;

    if (audit_acknowledge(ask->api->audit, &err)) {
        http_reply_problem(ask->reply, &err);
        http_request_finish(ask->request);
        return;
    }
    http_reply_made(ask->reply);
    json_init(&w, json_sink_of_reply(ask->reply));
    encode_fate(&w, fate);
    json_finish(&w); /* without memory the reply itself fails */
    http_reply_content_type(ask->reply, "application/json");
    http_reply_status(ask->reply, ask->is_waiting ? 200 : 202);
    http_reply_header_number(ask->reply, "Kota-Revision", fate->revision);
    if (ask->is_repeat)
        http_reply_header(ask->reply, "Idempotency-Replayed", "true");
    node_own_url(ask->api->world, url);
    http_reply_header(ask->reply, "Location", "%s/v1/locales/%s/impacts/%llu", url, fate->locale,
                      (unsigned long long)fate->number);
    http_request_finish(ask->request);
}

/* Answers now, or with until=written when it is written. */
static void answer_fate(struct impact_ask *ask)
{
    struct fates *fates = ask->api->fates;
    const struct fate *at_first = &ask->fate;
    struct fate now;

    if (ask->is_waiting && fates_wait(fates, at_first->locale, at_first->number, send_fate, ask))
        return;
    send_fate(ask, fates_find(fates, at_first->locale, at_first->number, &now) ? &now : at_first);
}

/* From here on another thread may answer. NULL without memory: the client gets no answer. */
static struct impact_ask *ask_begin(struct call *call, const struct fate *fate, bool is_waiting,
                                    bool is_repeat)
{
    struct impact_ask *ask = http_request_alloc(call->request, sizeof *ask);

    if (!ask) {
        http_reply_lose(call->reply); /* the impact is made */
        return NULL;
    }
    *ask = (struct impact_ask){.request = call->request,
                               .reply = call->reply,
                               .api = call->api,
                               .is_waiting = is_waiting,
                               .is_repeat = is_repeat,
                               .fate = *fate};
    http_request_defer(call->request);
    call->is_deferred = true;
    return ask;
}

static void give_fate(struct call *call, const struct fate *fate, bool is_waiting, bool is_repeat)
{
    struct impact_ask *ask = ask_begin(call, fate, is_waiting, is_repeat);

    if (ask)
        answer_fate(ask);
}

/* ---- fates by the feed ----------------------------------------------------------------------- */

/* An event of the crater, or of the granules that took its place. False: no more is to be known. */
static bool take_event(const struct feed_event *event, uint64_t number, struct fate *fate)
{
    if (event->revision == number && strcmp(event->source, SOURCE) == 0) {
        *fate = (struct fate){.number = number,
                              .is_written = true,
                              .revision = number,
                              .rect = event->rect,
                              .point = {NAN, NAN, NAN}};
        memcpy(fate->locale, event->locale, sizeof fate->locale);
        memcpy(fate->layer, event->layer, sizeof fate->layer);
        return true;
    }
    if (fate->number == 0)
        return false;
    fate->is_refined = strcmp(event->source, "patch") == 0 && event->has_rect &&
                       strcmp(event->layer, fate->layer) == 0 &&
                       sample_rect_is_inside(&fate->rect, &event->rect);
    if (fate->is_refined)
        fate->revision = event->revision;
    return !fate->is_refined;
}

/* ERR_IMPACT_UNKNOWN: that revision is none. ERR_GONE: the feed no longer has it. */
static enum err_code find_in_feed(const struct call *call, uint64_t number, struct fate *out,
                                  struct err *err)
{
    struct feed *feed = world_feed(call->api->world);
    const struct locale *locale = call->locale;
    struct fate fate = {.number = 0};
    bool is_held = number > 0 && number <= locale->revision, goes_on = true;
    struct feed_event events[16];
    size_t count = 1;
    uint64_t after;

    if (!is_held)
        return err_set(err, ERR_IMPACT_UNKNOWN, "locale %s has no impact %llu", locale->id,
                       (unsigned long long)number);
    is_held = feed_find(feed, locale->id, number - 1, locale->revision, &after);
    while (is_held && goes_on && count > 0) {
        count = feed_read(feed, locale->id, &after, events, 16, &is_held);
        for (size_t i = 0; i < count && goes_on; i++)
            goes_on = take_event(&events[i], number, &fate);
    }
    if (fate.number == 0 && !is_held)
        return err_set(err, ERR_GONE, "revision %llu of locale %s is no longer held",
                       (unsigned long long)number, locale->id);
    if (fate.number == 0)
        return err_set(err, ERR_IMPACT_UNKNOWN,
                       "no impact has made the ground of revision %llu of locale %s",
                       (unsigned long long)number, locale->id);
    *out = fate;
    return ERR_OK;
}

/* Another node that simulates the ground of a crater may still refine it: it knows. */
static enum err_code check_ground(struct call *call, const struct fate *fate, struct err *err)
{
    const struct layer *layer = locale_layer(call->locale, fate->layer);
    const struct sample_rect *rect = &fate->rect;
    const struct heightfield_spec *spec;
    struct vec2 low, high;

    if (fate->is_refined || !layer || !layer->field)
        return ERR_OK;
    spec = heightfield_spec(layer->field);
    low = (struct vec2){spec->origin_x_m + rect->column * spec->spacing_x_m,
                        spec->origin_y_m + rect->row * spec->spacing_y_m};
    high = (struct vec2){low.x + (rect->cols - 1) * spec->spacing_x_m,
                         low.y + (rect->rows - 1) * spec->spacing_y_m};
    return node_check_ground(call, call->locale->id, low, high, err);
}

/* ERR_ELSEWHERE: another node knows, and call->location is there. */
static enum err_code find_fate(struct call *call, uint64_t number, struct fate *out,
                               struct err *err)
{
    bool is_placed = false; /* redirected by another node: it is answered here */

    err->code = ERR_OK;
    if (option_boolean(call, NODE_PLACED, &is_placed, err) == ERR_OK &&
        !fates_find(call->api->fates, call->locale->id, number, out) &&
        find_in_feed(call, number, out, err) == ERR_OK && !is_placed)
        check_ground(call, out, err);
    return err->code;
}

enum err_code impact_get_answer(struct call *call, struct err *err)
{
    static const char *const options[] = {NODE_PLACED, NULL};
    struct fate fate;
    uint64_t number = 0;

    if (options_open_query(call, options, err))
        return err->code;
    if (!span_index(call->params[1], &number))
        return err_set_at(err, ERR_IMPACT_UNKNOWN, "impact", "an impact's name is a number");
    if (find_fate(call, number, &fate, err))
        return err->code == ERR_ELSEWHERE ? err->code : err_at(err, "impact");
    call_header(call, "Cache-Control", "no-store");
    encode_fate(&call->out, &fate);
    return ERR_OK;
}
API_HANDLER(impact_get, 2, CALL_NEEDS_LOCALE)

/* ---- the crater ------------------------------------------------------------------------------ */

/* What the writer says of a change; the waiting thread reads it. */
struct written {
    bool is_repeat;
    uint64_t revision;
    struct locale *before, *after; /* references, NULL of a repeat */
    struct sample_rect rect;
};

/* On the writer's thread. */
static void written_take(void *to, const struct world_outcome *outcome)
{
    struct written *written = to;

    written->is_repeat = outcome->answer != NULL;
    written->revision = outcome->revision;
    written->rect = outcome->rect;
    if (outcome->locale && outcome->before) {
        written->before = locale_ref((struct locale *)(uintptr_t)outcome->before);
        written->after = locale_ref((struct locale *)(uintptr_t)outcome->locale);
    }
}

/* The answer that is kept with the key has only the revision: that is the impact's number. */
static void *kept_answer(void *context, const struct world_outcome *outcome, size_t *bytes)
{
    const struct idempotency_record record = {.status = 200, .revision = outcome->revision};

    (void)context;
    return idempotency_record_encode(&record, bytes);
}

/*
 * Samples that are further apart than the crater is wide get one of its volume that they can show.
 */
static void widen(struct crater *crater, const struct heightfield_spec *spec)
{
    const double least_m = REACH_LEAST * fmax(spec->spacing_x_m, spec->spacing_y_m);
    const double factor = least_m / crater_reach_m(crater);

    if (factor > 1) {
        crater->radius_m *= factor;
        crater->depth_m /= factor * factor;
    }
}

static enum err_code make_crater(struct call *call, struct impact *impact,
                                 struct world_change *change, struct written *written,
                                 struct err *err)
{
    const struct layer *layer = locale_layer(call->locale, impact->layer);

    widen(&impact->crater, heightfield_spec(layer->field));
    change->edit = crater_edit(&impact->crater, (struct vec2){impact->point.x, impact->point.y});
    change->answer = kept_answer;
    memcpy(change->layer_id, impact->layer, sizeof change->layer_id);
    snprintf(change->source, sizeof change->source, "%s", SOURCE);
    return write_wait(call, change, written_take, written, err);
}

/* ---- granules -------------------------------------------------------------------------------- */

/* Whose fate a dent decides. */
struct dent_owner {
    struct fates *fates;
    uint64_t number;
    char locale[WORLD_ID_MAX + 1];
};

/* On the sand thread, or on this one. */
static void dent_end(void *context, uint64_t patch, uint64_t revision, const char *why)
{
    struct dent_owner *owner = context;

    fates_end(owner->fates, owner->locale, owner->number, patch, revision, why);
    free(owner);
}

/* What the crater has added to the samples; NULL without memory. */
static struct patch_dent *dent_of(struct call *call, const struct impact *impact,
                                  const struct written *written)
{
    const struct sample_rect *rect = &written->rect;
    const size_t count = (size_t)rect->cols * rect->rows;
    struct patch_dent *dent = calloc(1, sizeof *dent);
    struct dent_owner *owner = malloc(sizeof *owner);
    float *before_m = malloc(count * sizeof *before_m), *added_m = malloc(count * sizeof *added_m);

    if (!dent || !owner || !before_m || !added_m) {
        free(dent);
        free(owner);
        free(before_m);
        free(added_m);
        return NULL;
    }
    heightfield_read_samples(locale_layer(written->before, impact->layer)->field, rect, before_m);
    heightfield_read_samples(locale_layer(written->after, impact->layer)->field, rect, added_m);
    for (size_t i = 0; i < count; i++)
        added_m[i] = isnan(added_m[i]) ? 0 : added_m[i] - before_m[i];
    free(before_m);
    *owner = (struct dent_owner){.fates = call->api->fates, .number = written->revision};
    memcpy(owner->locale, written->after->id, sizeof owner->locale);
    *dent =
        (struct patch_dent){.rect = *rect, .added_m = added_m, .end = dent_end, .context = owner};
    return dent;
}

/* An order to the sand thread, which is answered there. */
static void order_done(void *context, enum err_code code, const struct err *err,
                       struct patch_report *report, bool is_repeat)
{
    struct impact_ask *ask = context;
    const struct fate *fate = &ask->fate;

    (void)is_repeat;
    if (code == ERR_OK)
        fates_set_patch(ask->api->fates, fate->locale, fate->number, report->number);
    else
        fates_end(ask->api->fates, fate->locale, fate->number, 0, 0, err->msg);
    answer_fate(ask);
}

/* ---- the call -------------------------------------------------------------------------------- */

static struct fate fate_of(const struct impact *impact, const struct written *written,
                           const char *locale)
{
    struct fate fate = {.number = written->revision,
                        .revision = written->revision,
                        .rect = written->rect,
                        .point = {impact->point.x, impact->point.y, impact->point.z}};

    snprintf(fate.locale, sizeof fate.locale, "%s", locale);
    memcpy(fate.layer, impact->layer, sizeof fate.layer);
    return fate;
}

/* Takes dent and order. */
static void submit(struct call *call, const struct impact *impact, struct fate *fate,
                   struct patch_dent *dent, struct sand_order *order)
{
    const struct change_origin *note = http_request_note(call->request);
    struct err refused = {.code = ERR_OK};
    struct patch_body *body = order->kind == SAND_ADD ? order->start.bodies : &order->body;

    body->dent = dent;
    if (note && order->kind == SAND_ADD)
        order->start.origin = *note; /* what the patch writes is audited as this request */
    if (order->kind == SAND_ADD)
        order->start.author = impact->author;
    fate->is_refined = true;
    fates_add(call->api->fates, fate, &refused);
    order->context = ask_begin(call, fate, impact->is_waiting, false);
    order->done = order_done;
    if (!order->context) {
        impact_order_drop(call, order);
        return;
    }
    if (sand_submit(call->api->sand, order, &refused))
        order_done(order->context, refused.code, &refused, NULL, false);
}

/* After the crater: granules, if there are to be some; and the answer. */
static void refine(struct call *call, const struct impact *impact, const struct written *written)
{
    struct fate fate = fate_of(impact, written, written->after->id);
    struct patch_dent *dent;
    struct sand_order order;
    struct err why;

    dent = dent_of(call, impact, written);
    if (!dent)
        err_set(&why, ERR_NO_MEMORY, "no memory for granules");
    if (dent && impact_order(call, impact, written->after, dent, &order, &why) == ERR_OK) {
        submit(call, impact, &fate, dent, &order);
        return;
    }
    if (dent) {
        free(dent->added_m);
        free(dent->context);
        free(dent);
    }
    fate.is_written = true; /* the crater is all that there will be */
    snprintf(fate.reason, sizeof fate.reason, "%s", why.msg);
    fates_add(call->api->fates, &fate, &why);
    give_fate(call, &fate, impact->is_waiting, false);
}

/* The impact that was made under the key; of one that is no longer known, that it was made. */
static enum err_code give_repeat(struct call *call, const char *locale, uint64_t number,
                                 bool is_waiting, struct err *err)
{
    struct fate fate;

    if (call->locale && find_fate(call, number, &fate, err) == ERR_ELSEWHERE)
        return err->code;
    if (!call->locale || err->code != ERR_OK) {
        fate = (struct fate){
            .number = number, .is_written = true, .revision = number, .point = {NAN, NAN, NAN}};
        snprintf(fate.locale, sizeof fate.locale, "%s", locale);
    }
    give_fate(call, &fate, is_waiting, true);
    return err->code = ERR_OK;
}

/* Is the key known? Then the impact that it made is answered. */
static enum err_code answer_repeat(struct call *call, const struct world_change *change,
                                   bool *is_answered, struct err *err)
{
    struct world_change question = write_question(change);
    struct written written = {.is_repeat = false};
    bool is_waiting = false;

    *is_answered = false;
    if (change->op_id[0] == '\0')
        return ERR_OK;
    if (write_wait(call, &question, written_take, &written, err) || !written.is_repeat)
        return err->code;
    *is_answered = true;
    if (impact_decode_until(call, &is_waiting, err) == ERR_OK)
        give_repeat(call, change->locale_id, written.revision, is_waiting, err);
    return err->code;
}

static const struct write_kind impact_write = {
    .change = WORLD_EDIT,
    .method = "POST",
    .below = "/impacts",
    .needs_locale = true,
};

enum err_code impacts_post_answer(struct call *call, struct err *err)
{
    struct world_change change = {.layer_id = ""};
    struct written written = {.is_repeat = false};
    struct impact impact;
    bool is_answered;

    if (write_open(call, &impact_write, &change, err) ||
        answer_repeat(call, &change, &is_answered, err) || is_answered)
        return err->code;
    if (!call->locale)
        return call_unknown_locale(call, err);
    if (impact_decode(call, &impact, err))
        return err->code;
    if (impact_place(call, &impact, err)) {
        impact_free(&impact);
        return err->code;
    }
    impact.author = change.author;
    if (make_crater(call, &impact, &change, &written, err) == ERR_OK) {
        if (written.is_repeat) /* two requests with one key at once */
            give_repeat(call, change.locale_id, written.revision, impact.is_waiting, err);
        else
            refine(call, &impact, &written);
        locale_unref(written.before);
        locale_unref(written.after);
    } else if (err->pointer[0] == '\0' && err->code == ERR_TOO_LARGE) {
        err_at(err, "/velocity"); /* the crater has too many samples */
    }
    impact_free(&impact);
    return err->code;
}
API_HANDLER(impacts_post, 1, CALL_NEEDS_NOTHING)
