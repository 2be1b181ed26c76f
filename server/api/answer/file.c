/*
 * Answers that are files: see file.h.
 *
 * A reply that grows beyond the limit fails as "no memory", which would send a client to try again;
 * so calls that know their length ask before.
 */
#include "api/answer/file.h"

#include <string.h>

enum { CACHE_SHARE = 8 }; /* of the cache of tiles that one entry may have */

enum err_code answer_check_length(struct call *call, uint64_t bytes, const char *what,
                                  struct err *err)
{
    uint64_t most = call_limits(call)->http.answers_bytes_max;

    if (most > HTTP_REPLY_BODY_BYTES_MAX)
        most = HTTP_REPLY_BODY_BYTES_MAX;
    if (bytes <= most)
        return ERR_OK;
    return err_limit(err, ERR_TOO_LARGE, (double)most, (double)bytes,
                     "%s takes %llu bytes, an answer has at most %llu", what,
                     (unsigned long long)bytes, (unsigned long long)most);
}

char *answer_reserve(struct call *call, size_t bytes, struct err *err)
{
    char *room = call->out.sink.reserve(call->out.sink.to, bytes);

    if (!room)
        err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    return room;
}

void answer_keep(struct call *call, struct tile_entry *entry)
{
    if (entry->length <= call_limits(call)->tile_cache_bytes_max / CACHE_SHARE)
        tile_cache_put(call->api->tiles, entry);
}

enum err_code answer_append(struct call *call, const void *bytes, size_t length, struct err *err)
{
    char *room = answer_reserve(call, length, err);

    if (!room)
        return err->code;
    memcpy(room, bytes, length);
    call->out.sink.advance(call->out.sink.to, length);
    return ERR_OK;
}

bool answer_is_known(struct call *call, const char *tag, const char *cache_control)
{
    struct span match = call_request_header(call, "if-none-match");

    call_header(call, "ETag", "%s", tag);
    call_header(call, "Cache-Control", "%s", cache_control);
    if (!tile_tag_matches(match.at, match.length, tag))
        return false;
    call_status(call, 304);
    return true;
}

bool answer_is_abandoned(const struct call *call, struct err *err)
{
    if (!call->request || !http_request_is_abandoned(call->request))
        return false;
    err_set(err, ERR_BUSY, "given up: nobody waits for the answer");
    return true;
}
