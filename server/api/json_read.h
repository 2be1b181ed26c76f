/*
 * From JSON text to checked values. Getters say what was expected and what came; the caller names
 * the place with err_at(), as a JSON pointer.
 */
#ifndef KOTA_API_JSON_READ_H
#define KOTA_API_JSON_READ_H

#include "api/json_check.h"
#include "base/err.h"
#include "terrain/vec.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Checks a text strictly (json_check.h) and parses it. The caller frees *out with cJSON_Delete.
 * ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_NO_MEMORY.
 */
enum err_code json_parse(const char *text, size_t length, const struct json_limits *limits,
                         cJSON **out, struct err *err);

/*
 * The value must be an object whose members are all among `names` (NULL-terminated), each at most
 * once. ERR_BAD_INPUT names the stranger in the pointer, below `place` ("" for the root).
 */
enum err_code json_only_members(const cJSON *object, const char *const *names, const char *place,
                                struct err *err);

/* A member by its exact name; NULL when it is absent. */
const cJSON *json_member(const cJSON *object, const char *name);

/* The same, but a null counts as absent. */
const cJSON *json_given(const cJSON *object, const char *name);

/* Each getter takes NULL for an absent member and says so. On error *out is untouched. */
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

/*
 * A batch: an array of 1..limit items. ERR_BAD_INPUT when it is absent, no array or empty,
 * ERR_TOO_LARGE with limit and got. The place is set to `/name`. Walk it by child and next.
 */
enum err_code json_get_batch(const cJSON *object, const char *name, size_t limit,
                             const cJSON **first, size_t *count, struct err *err);

/* "a string", "an array of 2", … for messages. */
const char *json_kind(const cJSON *value);

#endif
