/*
 * GET /v1/audit?after=&limit=  ->  {"entries":[{"sequence","time","name","address","route",
 *                                  "target","rect","revision","request_id"}…],"next"}
 *
 * The last writes of this process, oldest first, of those with a line in the file of --audit. For
 * operators: a token needs the right `operating`.
 */
#include "api/calls.h"

#include "api/encode.h"
#include "api/options.h"
#include "base/clock.h"

static void put_entry(struct json_writer *w, const struct audit_entry *entry)
{
    char time[UTC_TEXT_BYTES];

    utc_text(entry->time_ms, time);
    json_begin_object(w);
    json_put_integer(w, "sequence", entry->sequence);
    json_put_string_or_null(w, "time", time);
    json_put_string_or_null(w, "name", entry->origin.name);
    json_put_string_or_null(w, "address", entry->origin.address);
    json_put_string_or_null(w, "route", entry->origin.route);
    json_put_string_or_null(w, "target", entry->target);
    json_key(w, "rect");
    encode_rect(w, &entry->rect);
    json_put_integer_or_null(w, "revision", entry->revision > 0, entry->revision);
    json_put_string_or_null(w, "request_id", entry->origin.request);
    json_end_object(w);
}

enum err_code audit_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"after", "limit", NULL};
    uint64_t after = 0, limit = AUDIT_RECENT;
    struct json_writer *w = &call->out;
    struct audit_entry *entries;
    char next[64] = "";
    size_t count;

    if (options_open_query(call, names, err) ||
        option_integer(call, "after", 0, UINT64_MAX / 2, &after, err) ||
        option_integer(call, "limit", 1, AUDIT_RECENT, &limit, err))
        return err->code;
    if (!call->api->audit)
        return err_set_at(err, ERR_NOT_FOUND, "path",
                          "this daemon keeps no audit: start it with --audit FILE");
    entries = call_alloc(call, (size_t)limit * sizeof *entries);
    if (!entries)
        return err_set(err, ERR_NO_MEMORY, "no memory for the entries");
    count = audit_recent(call->api->audit, after, entries, (size_t)limit);
    json_begin_object(w);
    json_put_array(w, "entries");
    for (size_t i = 0; i < count; i++)
        put_entry(w, &entries[i]);
    json_end_array(w);
    if (count == limit)
        snprintf(next, sizeof next, "/v1/audit?after=%llu&limit=%llu",
                 (unsigned long long)entries[count - 1].sequence, (unsigned long long)limit);
    json_put_string_or_null(w, "next", next);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(audit_get, 0, CALL_NEEDS_NOTHING)
