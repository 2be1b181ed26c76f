/*
 * GET …/patches/{patch}/granules?since=  ->  application/vnd.kota.granules
 *
 * The granules as they are now, for drawing: 9 float32 each (36 bytes, little endian): position 3
 * in the locale's frame, orientation x y z w, radius of its four spheres, shade. They come by their
 * numbers from 0. With since=N only those that moved after step N, each after its number, a u32
 * (40 bytes).
 *
 *   Kota-Step      of this value; give it as the next `since`
 *   Kota-Granules  how many there are
 *   Kota-State     the patch's; one that fills, or has ended, has none
 *   ETag           at rest; If-None-Match then is 304
 *
 * No thread waits for the sand thread: it finishes the request (sand_granules.c).
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/calls/patches.h"
#include "api/tile_cache.h"

#include <stdio.h>
#include <string.h>

enum { TAG_BYTES = 48 };

/* Memory of the request. */
struct granule_ask {
    struct http_request *request;
    struct http_reply *reply;
    struct patch_report *report; /* a reference */
    uint64_t since;
    bool has_since;
};

static bool is_told(const struct granule_ask *ask, const struct granule_shown *granule)
{
    return !ask->has_since || granule->moved_step > ask->since;
}

static void write_set(const struct granule_ask *ask, const struct granule_set *set)
{
    const size_t number_bytes = ask->has_since ? sizeof(uint32_t) : 0;
    const size_t each = number_bytes + sizeof set->granules[0].numbers;
    size_t count = 0;
    char *at;

    for (uint32_t i = 0; i < set->count; i++)
        count += is_told(ask, &set->granules[i]);
    if (count == 0)
        return;
    at = http_reply_reserve(ask->reply, count * each);
    for (uint32_t i = 0; at && i < set->count; i++) {
        if (!is_told(ask, &set->granules[i]))
            continue;
        memcpy(at, &i, number_bytes);
        memcpy(at + number_bytes, set->granules[i].numbers, sizeof set->granules[i].numbers);
        at += each;
    }
    if (at)
        http_reply_advance(ask->reply, count * each);
}

/* set NULL: there are no granules, not yet or no more. */
static void answer(const struct granule_ask *ask, const struct granule_set *set)
{
    http_reply_content_type(ask->reply, "application/vnd.kota.granules");
    http_reply_header(ask->reply, "Kota-State", "%s", patch_state_name(ask->report->state));
    http_reply_header_number(ask->reply, "Kota-Step", set ? set->step : 0);
    http_reply_header_number(ask->reply, "Kota-Granules", set ? set->count : 0);
    if (set)
        write_set(ask, set);
}

/* On the sand thread, or at once. */
static void ask_done(void *context, const struct err *err, const struct granule_set *set)
{
    struct granule_ask *ask = context;
    struct http_request *request = ask->request;

    if (!set && err->code != ERR_CONFLICT)
        http_reply_problem(ask->reply, err);
    else
        answer(ask, set);
    patch_report_unref(ask->report);
    http_request_finish(request);
}

/* True when the client has it: 304. */
static bool is_known(struct call *call, const struct patch_report *report)
{
    const struct span match = http_request_header(call->request, "if-none-match");
    const bool is_still = report->state == PATCH_RESTING;
    char tag[TAG_BYTES];

    call_header(call, "Cache-Control", is_still ? "no-cache" : "no-store");
    if (!is_still)
        return false;
    snprintf(tag, sizeof tag, "\"%llu-%llu-g\"", (unsigned long long)report->number,
             (unsigned long long)report->serial);
    call_header(call, "ETag", "%s", tag);
    return tile_tag_matches(match.at, match.length, tag);
}

enum err_code patch_granules_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"since", NULL};
    struct granule_ask *ask;
    struct patch_report *report;
    uint64_t since = UINT64_MAX;

    if (options_open_query(call, names, err) ||
        option_integer(call, "since", 0, UINT64_MAX / 2, &since, err))
        return err->code;
    report = patch_find(call, err);
    if (!report)
        return err->code;
    if (is_known(call, report)) {
        call_status(call, 304);
        patch_report_unref(report);
        return ERR_OK;
    }
    ask = http_request_alloc(call->request, sizeof *ask);
    if (!ask) {
        patch_report_unref(report);
        return err_set(err, ERR_NO_MEMORY, "no memory for the granules of a patch");
    }
    *ask = (struct granule_ask){call->request, call->reply, report, since, since != UINT64_MAX};
    if (report->state == PATCH_FILLING || patch_state_is_end(report->state)) {
        answer(ask, NULL);
        patch_report_unref(report);
        return ERR_OK;
    }
    http_request_defer(call->request); /* the sand thread may be faster than this one */
    call->is_deferred = true;
    sand_granules_ask(call->api->sand, report, ask_done, ask);
    return ERR_OK;
}
API_HANDLER(patch_granules_get, 2, CALL_NEEDS_NOTHING)
