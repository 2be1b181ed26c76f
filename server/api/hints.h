/*
 * `"hints":["id"|null…]` of a batch in world coordinates: where each item was before.
 */
#ifndef KOTA_API_HINTS_H
#define KOTA_API_HINTS_H

#include "api/call.h"

struct hints {
    const cJSON *item; /* of the next hint; NULL: no more, or none were given */
    size_t index;
};

/*
 * One hint for each of `count` items of the member `what`, or none at all.
 * ERR_BAD_INPUT, ERR_TOO_LARGE
 */
enum err_code hints_open(struct call *call, size_t count, const char *what, struct hints *out,
                         struct err *err);

/* The next item's hint, NULL when it has none; borrowed. ERR_BAD_INPUT: it is no text. */
enum err_code hints_next(struct hints *hints, const char **out, struct err *err);

#endif
