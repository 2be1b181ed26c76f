/*
 * Reading a scanned JSON text from its tape (json_check.h). A value is named by the index of its
 * token; 0 is the root, and as the answer of a search: nothing was found.
 *
 * Errors are those of json_read.h: a value that is not as expected becomes a node of cJSON, and its
 * getter reports why.
 */
#ifndef KOTA_JSON_JSON_TAPE_H
#define KOTA_JSON_JSON_TAPE_H

#include "json/json_read.h"

/*
 * Scans a text strictly (json_check.h) and builds its tree. The caller frees *out with
 * cJSON_Delete. ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_NO_MEMORY.
 */
enum err_code json_parse(const char *text, size_t length, const struct json_limits *limits,
                         cJSON **out, struct err *err);

/* The value of the first member of that name, of an object (else 0). O(members). */
uint32_t json_tape_find(const struct json_tape *tape, uint32_t object, const char *name);

/* The same, but 0 when the value is no array. */
uint32_t json_tape_array(const struct json_tape *tape, uint32_t object, const char *name);

/* The value as cJSON; NULL without memory. For small values. */
cJSON *json_tape_tree(const struct json_tape *tape, uint32_t value);

/*
 * The root as cJSON, but arrays among its members that `arrays` (NULL-terminated) names are empty:
 * those are read from the tape. The caller frees *out. ERR_NO_MEMORY.
 */
enum err_code json_tape_root(const struct json_tape *tape, const char *const *arrays, cJSON **out,
                             struct err *err);

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

/* As json_get_vec3 of the value; ERR_NO_MEMORY, too. */
enum err_code json_tape_vec3(const struct json_tape *tape, uint32_t value, struct vec3 *out,
                             struct err *err);

/* As json_get_integer of the value. */
enum err_code json_tape_integer(const struct json_tape *tape, uint32_t value, uint64_t least,
                                uint64_t most, uint64_t *out, struct err *err);

/* The bytes of a string, NUL-terminated; `out` has room for those of its token. */
void json_tape_string(const struct json_tape *tape, uint32_t value, char *out);

/* json_kind of the value. */
const char *json_tape_kind(const struct json_tape *tape, uint32_t value);

#endif
