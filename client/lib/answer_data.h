/*
 * The members of an answer.
 */
#ifndef KOTA_LIB_ANSWER_DATA_H
#define KOTA_LIB_ANSWER_DATA_H

#include "client/lib/kota.h"
#include "client/lib/text.h"

struct kota_answer {
    int status;
    unsigned tries;
    struct text headers; /* "name\0value\0" … */
    struct text body;
    struct cJSON *json;
    bool json_was_tried;
    struct kota_error error;
};

#endif
