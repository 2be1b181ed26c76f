/*
 * What answers that are files share: how long they may be, and their tag.
 */
#ifndef KOTA_API_FILE_H
#define KOTA_API_FILE_H

#include "api/call.h"

/* ERR_TOO_LARGE: `what` ("the layer as f32") takes more bytes than an answer may have. */
enum err_code answer_check_length(struct call *call, uint64_t bytes, const char *what,
                                  struct err *err);

/* Room in the answer, which call->out.sink.advance ends; NULL and ERR_NO_MEMORY. */
char *answer_reserve(struct call *call, size_t bytes, struct err *err);

/* True, ERR_BUSY: the client has gone. Long work asks now and then. */
bool answer_is_abandoned(const struct call *call, struct err *err);

/* The kinds of the cache's keys beside those of blocks (tile_cache.h). */
enum { ANSWER_CACHE_WINDOW = 3, ANSWER_CACHE_MESH = 4 };
/* Puts an entry into the cache of tiles, unless it is so large that it would evict too many. */
void answer_keep(struct call *call, struct tile_entry *entry);
/* Copies bytes into the answer: ERR_NO_MEMORY. */
enum err_code answer_append(struct call *call, const void *bytes, size_t length, struct err *err);

/*
 * Writes ETag and Cache-Control. True: the client holds that tag, and the answer is 304.
 */
bool answer_is_known(struct call *call, const char *tag, const char *cache_control);

#endif
