/*
 * What the calls on the past of a locale share.
 */
#ifndef KOTA_API_PAST_H
#define KOTA_API_PAST_H

#include "api/call.h"

/* author=: a token's name; "" when absent. */
enum err_code past_author(struct call *call, char out[STORE_AUTHOR_MAX + 1], bool *is_given,
                          struct err *err);

/*
 * since: a revision, or a time as the revision that the locale had then; of no revision after
 * it. *out stays where it is absent.
 */
enum err_code past_since(struct call *call, uint64_t *out, bool *is_given, struct err *err);

#endif
