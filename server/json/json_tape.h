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
#include "json/json_value.h"

/*
 * Scans a text strictly (json_check.h) and builds its tree. The caller frees *out with
 * cJSON_Delete. ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_NO_MEMORY.
 */
enum err_code json_parse(const char *text, size_t length, const struct json_limits *limits,
                         cJSON **out, struct err *err);

/* The value as cJSON; NULL without memory. For small values. */
cJSON *json_tape_tree(const struct json_tape *tape, uint32_t value);

/*
 * The root as cJSON, but arrays among its members that `arrays` (NULL-terminated) names are empty:
 * those are read from the tape. The caller frees *out. ERR_NO_MEMORY.
 */
enum err_code json_tape_root(const struct json_tape *tape, const char *const *arrays, cJSON **out,
                             struct err *err);

/* As json_get_vec3 of the value; ERR_NO_MEMORY, too. */
enum err_code json_tape_vec3(const struct json_tape *tape, uint32_t value, struct vec3 *out,
                             struct err *err);

/* As json_get_integer of the value. */
enum err_code json_tape_integer(const struct json_tape *tape, uint32_t value, uint64_t least,
                                uint64_t most, uint64_t *out, struct err *err);

/* json_kind of the value. */
const char *json_tape_kind(const struct json_tape *tape, uint32_t value);

#endif
