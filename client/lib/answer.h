/*
 * An answer as the library fills it.
 */
#ifndef KOTA_LIB_ANSWER_H
#define KOTA_LIB_ANSWER_H

#include "client/lib/kota.h"
#include "client/lib/text.h"

struct kota_answer {
    int status;
    unsigned tries;
    struct text headers; /* as in struct response */
    struct text body;
    struct cJSON *json;
    bool json_was_tried;
    struct kota_error error;
};

struct kota_answer *answer_new(void);
/* Forgets what a try brought. */
void answer_clear(struct kota_answer *answer);
/* Seconds of Retry-After; negative: none, or not understood. */
double answer_retry_after_s(const struct kota_answer *answer);

#endif
