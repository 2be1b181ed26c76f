/*
 * The life of an answer. Its members are in answer_data.h.
 */
#ifndef KOTA_LIB_ANSWER_H
#define KOTA_LIB_ANSWER_H

#include "client/lib/answer_data.h"

struct kota_answer *answer_new(void);
/* Drops the result of a try. */
void answer_clear(struct kota_answer *answer);
/* Seconds of Retry-After; negative: none, or not understood. */
double answer_retry_after_s(const struct kota_answer *answer);

/* The value of the first header of that name in any case, or NULL. */
const char *headers_find(const struct text *headers, const char *name);

#endif
