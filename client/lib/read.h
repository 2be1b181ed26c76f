/*
 * What the readers of answers share.
 */
#ifndef KOTA_LIB_READ_H
#define KOTA_LIB_READ_H

#include "client/lib/kota.h"

#include <cjson/cJSON.h>

/* Decodes the text of a member in its place; how many bytes: 0 when it is absent or malformed. */
size_t read_base64(const cJSON *object, const char *name);

/* The answer succeeded and all that was read of it so far was as expected. */
bool read_is_well(const struct kota_answer *answer);
/* The document of an answer that succeeded, or NULL (its error is set). */
const cJSON *read_document(struct kota_answer *answer);
/* Sets KOTA_ERROR_CONTENT unless there is an error already; false. */
bool read_fail(struct kota_answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* count numbers of a member; false, and NaN throughout: they are not there. */
bool read_vector(const cJSON *object, const char *name, double *numbers, size_t count);
/* whole numbers within uint32; false, and 0 */
bool read_uints(const cJSON *object, const char *name, uint32_t *numbers, size_t count);
uint32_t read_uint(const cJSON *object, const char *name); /* 0: not there */
bool read_true(const cJSON *object, const char *name);
bool read_bool(const cJSON *object, const char *name, bool *value); /* false: not there */
double read_double(const cJSON *object, const char *name);          /* NaN: not there */
const char *read_string(const cJSON *object, const char *name);     /* NULL: not there */
/* {"min":[…],"max":[…]} */
bool read_box(const cJSON *object, const char *name, double min[3], double max[3]);
/* The place of a text in a list that ends with NULL; false: it is none. */
bool read_word(const cJSON *object, const char *name, const char *const *words, int *place);

#endif
