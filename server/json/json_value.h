/*
 * Values of a tape (json_check.h) as they are, without errors and without cJSON. A value is named
 * by the index of its token; 0 is the root, and as the answer of a search: nothing was found.
 */
#ifndef KOTA_JSON_JSON_VALUE_H
#define KOTA_JSON_JSON_VALUE_H

#include "json/json_check.h"

#include <stdbool.h>

/* The value of the first member of that name, of an object (else 0). O(members). */
uint32_t json_tape_find(const struct json_tape *tape, uint32_t object, const char *name);

/* The same, but 0 when the value is no array. */
uint32_t json_tape_array(const struct json_tape *tape, uint32_t object, const char *name);

/* Copies an array of exactly `count` numbers; false, with *out in any state: it is none. */
static inline bool json_token_numbers(const struct json_token *token, size_t count, double *out)
{
    if (token->kind != JSON_ARRAY || token->count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (token[i + 1].kind != JSON_NUMBER)
            return false;
        out[i] = token[i + 1].number;
    }
    return true;
}

/* The bytes of a string, NUL-terminated; `out` has room for those of its token. */
void json_tape_string(const struct json_tape *tape, uint32_t value, char *out);

/* Is the string at that token `name`? */
bool json_tape_is(const struct json_tape *tape, uint32_t value, const char *name);

#endif
