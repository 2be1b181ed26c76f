/*
 * Requests for patches that came while the device is being opened: they wait in a line, and are
 * answered in the order in which they came, as soon as it is known what the device is.
 */
#ifndef KOTA_API_PATCH_LINE_H
#define KOTA_API_PATCH_LINE_H

#include "api/call.h"

/* How long a request waits at most: ERR_BUSY then. */
#define PATCH_LINE_MS_MAX 10000u

struct patch_line;

/* NULL: ERR_NO_MEMORY. */
struct patch_line *patch_line_create(struct err *err);
/* Joins its thread, if there ever was one; nothing may wait any more. NULL is fine. */
void patch_line_destroy(struct patch_line *line);

/* Does somebody wait? Who comes now goes behind them. Any thread. */
bool patch_line_is_busy(struct patch_line *line);

/*
 * Defers the request of this call. Later `again` is called once with it on the line's thread, and
 * does what the handler would: true says that somebody else finishes the request, false that its
 * answer is there. Where the device is not known in time, the request is answered here (ERR_BUSY),
 * and when the daemon stops.
 * ERR_BUSY: orders_max wait already; ERR_NO_MEMORY, ERR_INTERNAL (no thread): it is not deferred.
 */
enum err_code patch_line_wait(struct patch_line *line, struct call *call,
                              bool (*again)(struct http_request *request, struct http_reply *reply),
                              struct err *err);

#endif
