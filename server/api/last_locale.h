/*
 * `"hints":["id"|null…]` of a batch in world coordinates: the last locale of each item.
 */
#ifndef KOTA_API_LAST_LOCALE_H
#define KOTA_API_LAST_LOCALE_H

#include "api/call.h"

struct last_locales {
    struct call *call;
    uint32_t item; /* token of the next hint; 0: none were given */
    size_t index;
    bool is_unknown; /* the last one that was read names no locale */
};

/*
 * One hint for each of `count` items of the member `what`, or none.
 * ERR_BAD_INPUT, ERR_TOO_LARGE
 */
enum err_code last_locales_open(struct call *call, size_t count, const char *what,
                                struct last_locales *out, struct err *err);

/* The next item's last locale, NULL when it has none or an unknown one; borrowed.
 * ERR_BAD_INPUT: not a string, or not an id. */
enum err_code last_locales_next(struct last_locales *last, const char **out, struct err *err);

#endif
