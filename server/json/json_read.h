/*
 * From JSON values to checked ones. Getters report the expected and the actual kind; the caller
 * adds the place by err_at(), as a JSON pointer.
 */
#ifndef KOTA_JSON_JSON_READ_H
#define KOTA_JSON_JSON_READ_H

#include "json/json_check.h"
#include "base/err.h"
#include "terrain/vec.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The value must be an object whose members are all among `names` (NULL-terminated), each at most
 * once. ERR_UNKNOWN_MEMBER names the stranger in the pointer, below `place` ("" for the root).
 */
enum err_code json_only_members(const cJSON *object, const char *const *names, const char *place,
                                struct err *err);

/* A member by its exact name; NULL when it is absent. */
const cJSON *json_member(const cJSON *object, const char *name);

/* The same, but a null counts as absent. */
const cJSON *json_given(const cJSON *object, const char *name);

/* Each getter takes NULL for an absent member: ERR_MISSING. On error *out is untouched. */
enum err_code json_get_number(const cJSON *value, double *out, struct err *err);
enum err_code json_get_boolean(const cJSON *value, bool *out, struct err *err);
/* A whole number in least..most. */
enum err_code json_get_integer(const cJSON *value, uint64_t least, uint64_t most, uint64_t *out,
                               struct err *err);
/* Exactly `count` numbers. */
enum err_code json_get_numbers(const cJSON *value, size_t count, double *out, struct err *err);
enum err_code json_get_vec2(const cJSON *value, struct vec2 *out, struct err *err);
enum err_code json_get_vec3(const cJSON *value, struct vec3 *out, struct err *err);
/* Borrowed from the value. */
enum err_code json_get_string(const cJSON *value, const char **out, struct err *err);
/* The index of a string in `words` (NULL-terminated). */
enum err_code json_get_word(const cJSON *value, const char *const *words, int *out,
                            struct err *err);

/* "a string", "an array of 2", … for messages. */
const char *json_kind(const cJSON *value);

#endif
