/*
 * POST   …/patches                     ->  201 Patch, Location
 * GET    …/patches                     ->  {"locale","patches":[Patch…]}
 * GET    …/patches/{patch}                 ->  Patch
 * DELETE …/patches/{patch}?discard=        ->  200 Patch, when it has ended
 * POST   …/patches/{patch}/bodies          ->  201 Patch, Location
 * PATCH  …/patches/{patch}/bodies/{body}      ->  200 Patch
 *
 * Orders are decoded here (patch_decode.c) and answered by the sand thread; the request waits
 * meanwhile without holding a thread. A request for a patch whose pool is not made yet waits
 * in a queue (patch_wait_queue.h). Reads are answered at once from the report table. A patch of a
 * deleted locale can still be read, until its report is dropped. An Idempotency-Key is kept by the
 * sand (repeats.h), not by the store: a patch is not durable either before it is written. If-Match
 * is about the locale's revision at the time of the request.
 *
 * Where daemons share a log, a patch is made by one that has room for it (node.h): others answer
 * with its address. The Location of a patch is then absolute, since no other daemon has it.
 */
#include "api/calls/patches.h"

#include "api/calls.h"
#include "api/node.h"
#include "api/options.h"
#include "api/calls/patch_decode.h"
#include "api/calls/patch_wait_queue.h"
#include "api/calls/encode_patch.h"
#include "api/precondition.h"
#include "api/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An order under way; memory of its request. */
struct patch_order {
    struct http_request *request;
    struct http_reply *reply;
    struct world *world;
    struct audit *audit; /* NULL: none */
    enum sand_order_kind kind;
    uint64_t revision; /* of the locale at the request; 0: the locale is deleted */
    /* Where its pool is full when it is run, it is decoded once more: not NULL, and its scale. */
    struct patch_wait_queue *spills;
    struct sand *sand;
    enum granular_scale scale;
};

/* ---- answers --------------------------------------------------------------------------------- */

static bool patches_spilled(struct http_request *request, struct http_reply *reply);

/* On the sand thread. */
static void order_done(void *context, enum err_code code, const struct err *err,
                       struct patch_report *report, bool is_repeat)
{
    struct patch_order *order = context;
    struct http_reply *reply = order->reply;
    char url[CLUSTER_URL_MAX + 1] = "";
    struct json_writer w;
    struct err queued, unaudited;

    if (code == ERR_BUSY && err->has_limit && order->spills &&
        patch_wait_queue_add(order->spills, order->request, reply, order->sand, order->scale,
                             patches_spilled, &queued) == ERR_OK)
        return;
    if (code != ERR_OK) {
        http_reply_problem(reply, err);
        http_request_finish(order->request);
        return;
    }
    http_reply_made(reply);
    if (order->audit && !is_repeat) {
        audit_add(order->audit, http_request_note(order->request), report->locale,
                  &report->place.samples, report->has_revision ? report->revision : 0);
        audit_flush(order->audit);
    }
    if (audit_acknowledge(order->audit, &unaudited)) {
        http_reply_problem(reply, &unaudited);
        http_request_finish(order->request);
        return;
    }
    json_init(&w, json_sink_of_reply(reply));
    encode_patch(&w, report);
    json_finish(&w); /* without memory the reply itself fails */
    http_reply_content_type(reply, "application/json");
    if (report->has_revision || order->revision > 0)
        http_reply_header_number(reply, "Kota-Revision",
                                 report->has_revision ? report->revision : order->revision);
    if (is_repeat)
        http_reply_header(reply, "Idempotency-Replayed", "true");
    if (order->kind == SAND_ADD || order->kind == SAND_BODY) {
        http_reply_status(reply, 201);
        node_own_url(order->world, url);
    }
    if (order->kind == SAND_ADD)
        http_reply_header(reply, "Location", "%s/v1/locales/%s/patches/%llu", url, report->locale,
                          (unsigned long long)report->number);
    if (order->kind == SAND_BODY && report->body_count > 0)
        http_reply_header(reply, "Location", "%s/v1/locales/%s/patches/%llu/bodies/%u", url,
                          report->locale, (unsigned long long)report->number,
                          report->body_count - 1);
    http_request_finish(order->request);
}

/* From here on order_done answers the request. NULL without memory. */
static struct patch_order *order_begin(struct call *call, enum sand_order_kind kind,
                                       bool is_deferred, struct err *err)
{
    struct patch_order *order = http_request_alloc(call->request, sizeof *order);

    if (!order) {
        err_set(err, ERR_NO_MEMORY, "no memory for an order");
        return NULL;
    }
    *order = (struct patch_order){.request = call->request,
                                  .reply = call->reply,
                                  .world = call->api->world,
                                  .audit = call->api->audit,
                                  .kind = kind,
                                  .revision = call->locale ? call->locale->revision : 0,
                                  .sand = call->api->sand};
    if (!is_deferred)
        http_request_defer(call->request); /* the sand thread may be faster than this one */
    call->is_deferred = true;
    return order;
}

/*
 * Takes the members of the order. After ERR_OK the request belongs to the sand thread; of one that
 * is deferred already nothing may be touched any more.
 */
static enum err_code submit_order(struct call *call, struct sand_order *sand_order,
                                  bool is_deferred, bool may_spill, struct err *err)
{
    struct patch_order *order = order_begin(call, sand_order->kind, is_deferred, err);
    struct err refused = {.code = ERR_OK};

    if (!order) {
        sand_order_drop(sand_order);
        return err->code;
    }
    sand_order->done = order_done;
    sand_order->context = order;
    order->scale = sand_order->start.scale;
    if (may_spill && sand_order->start.overflows)
        order->spills = call->api->patch_queue;
    if (sand_submit(call->api->sand, sand_order, &refused)) {
        order->spills = NULL;
        order_done(order, refused.code, &refused, NULL, false);
    }
    return ERR_OK;
}

/* The first answer (taken) once more. */
static enum err_code answer_again(struct call *call, enum sand_order_kind kind, bool is_deferred,
                                  struct patch_report *report, struct err *err)
{
    struct patch_order *order = order_begin(call, kind, is_deferred, err);

    if (order)
        order_done(order, ERR_OK, NULL, report, true);
    patch_report_unref(report);
    return err->code;
}

/* The first answer to a known key (taken), or the order. */
static enum err_code finish(struct call *call, struct sand_order *order, struct patch_report *again,
                            struct err *err)
{
    return again ? answer_again(call, order->kind, false, again, err)
                 : submit_order(call, order, false, false, err);
}

/* ---- which patch ----------------------------------------------------------------------------- */

static enum err_code need_sand(const struct call *call, struct err *err)
{
    return call->api->sand ? ERR_OK
                           : err_set(err, ERR_NO_DEVICE, "patches cannot be simulated here");
}

struct patch_report *patch_find(struct call *call, struct err *err)
{
    struct patch_report *report = NULL;
    char locale[WORLD_ID_MAX + 1];
    uint64_t number;

    if (need_sand(call, err) || call_find_locale(call, err))
        return NULL;
    if (span_copy(call->params[0], locale, sizeof locale) && span_index(call->params[1], &number))
        report = sand_report(call->api->sand, locale, number);
    if (report)
        return report;
    if (!call->locale)
        call_unknown_locale(call, err);
    else
        err_set(err, ERR_PATCH_UNKNOWN, "locale %s has no patch %.*s", locale,
                (int)(call->params[1].length < 32 ? call->params[1].length : 32),
                call->params[1].at ? call->params[1].at : "");
    return NULL;
}

enum err_code patch_check_place(const struct call *call, const struct convert_place *place,
                                struct err *err)
{
    return call_check_bounds(call,
                             (double[4]){place->low.x, place->low.y,
                                         place->low.x + place->size_m[0],
                                         place->low.y + place->size_m[1]},
                             err);
}

/*
 * The writer does not check it later, so a future revision does not match either; a request that
 * may wait reads the shared log first.
 */
static enum err_code check_match(struct call *call, const struct world_change *change,
                                 bool may_wait, struct err *err)
{
    bool is_missed = !call->locale || change->if_revision > call->locale->revision;

    if (may_wait && is_missed && change->if_revision != UINT64_MAX)
        node_catch_up(call, change->locale_id);
    if (!call->locale)
        return ERR_OK;
    if (change->if_revision > call->locale->revision)
        return err_set_at(err, ERR_PRECONDITION_FAILED, "If-Match",
                          "locale %s is at revision %llu, which If-Match does not name",
                          call->locale->id, (unsigned long long)call->locale->revision);
    return precondition_check(call, change, err);
}

/*
 * Headers of a write: the key goes with the order; for a known key *report is the first answer, a
 * reference, and nothing else is checked. Else NULL, and If-Match is judged.
 */
static enum err_code open_write(struct call *call, const char *method, const char *below,
                                struct sand_order *order, struct patch_report **report,
                                struct err *err)
{
    /* it becomes an edit in the end; the key's hash is of the order (below), not of this path */
    static const struct write_kind kind = {
        .change = WORLD_EDIT, .method = "POST", .below = "/edits"};
    struct world_change change = {.layer_id = ""};
    bool is_on_worker = order->kind == SAND_ADD || order->kind == SAND_BODY; /* routes.c */
    char place[2 * WORLD_ID_MAX + 128];

    if (need_sand(call, err))
        return err->code;
    if (call->request) {
        if (write_open(call, &kind, &change, err))
            return err->code;
        memcpy(order->key.key, change.op_id, sizeof order->key.key);
    }
    snprintf(place, sizeof place, "%s %.*s/%s", method, (int)call->params[0].length,
             call->params[0].at ? call->params[0].at : "", below);
    if (order->key.key[0] != '\0')
        write_request_hash(call, place, order->key.request);
    *report = sand_repeat(call->api->sand, &order->key, err);
    if (*report || err->code != ERR_OK || !call->request)
        return err->code;
    return check_match(call, &change, is_on_worker, err);
}

/* What the patch writes later is audited as this request. */
static void note_origin(const struct call *call, struct change_origin *out)
{
    const struct change_origin *note = call->request ? http_request_note(call->request) : NULL;

    if (note)
        *out = *note;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/*
 * is_held: it has waited for the device, and the queue finishes it (patch_wait_queue.h). may_spill:
 * when its pool is full in the end it may be decoded again.
 */
static enum err_code post_patch(struct call *call, bool is_held, bool may_spill, int *awaited,
                                struct err *err)
{
    struct sand_order order = {.kind = SAND_ADD};
    bool is_placed = false; /* redirected by another daemon: it is answered here, full or not */

    struct patch_report *again;

    *awaited = SCALE_COUNT;
    if (option_boolean(call, NODE_PLACED, &is_placed, err) ||
        open_write(call, "POST", "patches", &order, &again, err))
        return err->code;
    if (again)
        return answer_again(call, order.kind, is_held, again, err);
    if (!call->locale)
        return call_unknown_locale(call, err);
    if (patch_decode(call, is_held, &order.start, awaited, err)) {
        bool is_full = err->code == ERR_NO_DEVICE || (err->code == ERR_BUSY && err->has_limit);

        return is_full && !is_placed ? node_place_patch(call, call->locale->id, err) : err->code;
    }
    if (patch_check_place(call, &order.start.place, err) ||
        call_charge_items(call, order.start.ground.count, err)) {
        sand_order_drop(&order);
        return err->code;
    }
    note_origin(call, &order.start.origin);
    if (write_author(call, &order.start.author, err)) {
        sand_order_drop(&order);
        return err->code;
    }
    return submit_order(call, &order, is_held, may_spill, err);
}

static enum err_code patches_held_answer(struct call *call, struct err *err)
{
    int awaited;

    return post_patch(call, true, true, &awaited, err);
}

static bool patches_held(struct http_request *request, struct http_reply *reply)
{
    return call_run(request, reply, patches_held_answer, 1, CALL_NEEDS_NOTHING);
}

static enum err_code patches_spilled_answer(struct call *call, struct err *err)
{
    int awaited;

    return post_patch(call, true, false, &awaited, err);
}

/* Its pool was full when the order was run: by now that is known, and the next one is tried. */
static bool patches_spilled(struct http_request *request, struct http_reply *reply)
{
    return call_run(request, reply, patches_spilled_answer, 1, CALL_NEEDS_NOTHING);
}

enum err_code patches_post_answer(struct call *call, struct err *err)
{
    int awaited;

    post_patch(call, false, true, &awaited, err);
    return awaited != SCALE_COUNT && call->request
               ? patch_wait_queue_wait(call->api->patch_queue, call, (enum granular_scale)awaited,
                                       patches_held, err)
               : err->code;
}
API_HANDLER(patches_post, 1, CALL_NEEDS_NOTHING)

enum err_code patches_get_answer(struct call *call, struct err *err)
{
    struct patch_report **reports;
    size_t count;

    if (options_open_query(call, NULL, err) || need_sand(call, err))
        return err->code;
    reports = sand_reports(call->api->sand, call->locale->id, &count);
    if (!reports)
        return err_set(err, ERR_NO_MEMORY, "no memory for the patches");
    json_begin_object(&call->out);
    json_put_string(&call->out, "locale", call->locale->id);
    json_put_array(&call->out, "patches");
    for (size_t i = 0; i < count; i++) {
        encode_patch(&call->out, reports[i]);
        patch_report_unref(reports[i]);
    }
    json_end_array(&call->out);
    json_end_object(&call->out);
    free(reports);
    return ERR_OK;
}
API_HANDLER(patches_get, 1, CALL_NEEDS_LOCALE)

enum err_code patch_get_answer(struct call *call, struct err *err)
{
    struct patch_report *report;

    if (options_open_query(call, NULL, err))
        return err->code;
    report = patch_find(call, err);
    if (!report)
        return err->code;
    encode_patch(&call->out, report);
    patch_report_unref(report);
    return ERR_OK;
}
API_HANDLER(patch_get, 2, CALL_NEEDS_NOTHING)

enum err_code patch_delete_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"discard", NULL};
    struct sand_order order = {.kind = SAND_CLOSE};
    struct patch_report *report, *again;
    char below[64];

    if (options_open_query(call, names, err) ||
        option_boolean(call, "discard", &order.discard, err))
        return err->code;
    report = patch_find(call, err);
    if (!report)
        return err->code;
    order.number = report->number;
    patch_check_place(call, &report->place, err);
    patch_report_unref(report);
    snprintf(below, sizeof below, "patches/%llu", (unsigned long long)order.number);
    if (err->code || open_write(call, "DELETE", below, &order, &again, err))
        return err->code;
    return finish(call, &order, again, err);
}
API_HANDLER(patch_delete, 2, CALL_NEEDS_NOTHING)

enum err_code patch_bodies_post_answer(struct call *call, struct err *err)
{
    struct sand_order order = {.kind = SAND_BODY};
    struct patch_report *report, *again = NULL;
    char below[64];

    report = patch_find(call, err);
    if (!report)
        return err->code;
    order.number = report->number;
    snprintf(below, sizeof below, "patches/%llu/bodies", (unsigned long long)report->number);
    if (patch_check_place(call, &report->place, err) == ERR_OK)
        open_write(call, "POST", below, &order, &again, err);
    if (err->code == ERR_OK && !again && patch_state_is_end(report->state))
        err_set(err, ERR_PATCH_CLOSED, "patch %llu is %s: it takes no bodies and no pushes",
                (unsigned long long)report->number, patch_state_name(report->state));
    if (err->code == ERR_OK && !again)
        patch_body_decode(call, report, &order.body, err);
    patch_report_unref(report);
    return again || err->code == ERR_OK ? finish(call, &order, again, err) : err->code;
}
API_HANDLER(patch_bodies_post, 2, CALL_NEEDS_NOTHING)

/*
 * The order for a body that is there, its number in the path; *again is the first answer to a known
 * key.
 */
static enum err_code open_body(struct call *call, const char *method, struct sand_order *order,
                               struct patch_report **again, struct err *err)
{
    struct patch_report *report = patch_find(call, err);
    char below[96];
    uint64_t body;
    bool is_body;

    if (!report)
        return err->code;
    order->number = report->number;
    is_body = span_index(call->params[2], &body) && body < report->body_count;
    snprintf(below, sizeof below, "patches/%llu/bodies/%llu", (unsigned long long)order->number,
             is_body ? (unsigned long long)body : 0);
    if (patch_check_place(call, &report->place, err) == ERR_OK && is_body)
        open_write(call, method, below, order, again, err);
    if (err->code == ERR_OK && !*again && (!is_body || report->bodies[body].is_removed))
        err_set(err, ERR_BODY_UNKNOWN, "patch %llu has no body %.*s",
                (unsigned long long)order->number,
                (int)(call->params[2].length < 32 ? call->params[2].length : 32),
                call->params[2].at ? call->params[2].at : "");
    order->body_index = (uint32_t)body;
    patch_report_unref(report);
    return err->code;
}

enum err_code patch_body_patch_answer(struct call *call, struct err *err)
{
    struct sand_order order = {.kind = SAND_PUSH};
    struct patch_report *again = NULL;

    if (open_body(call, "PATCH", &order, &again, err) ||
        (!again && patch_push_decode(call, &order.push, err)))
        return err->code;
    return finish(call, &order, again, err);
}
API_HANDLER(patch_body_patch, 3, CALL_NEEDS_NOTHING)

enum err_code patch_body_delete_answer(struct call *call, struct err *err)
{
    struct sand_order order = {.kind = SAND_UNBODY};
    struct patch_report *again = NULL;

    if (options_open_query(call, NULL, err) || open_body(call, "DELETE", &order, &again, err))
        return err->code;
    return finish(call, &order, again, err);
}
API_HANDLER(patch_body_delete, 3, CALL_NEEDS_NOTHING)
