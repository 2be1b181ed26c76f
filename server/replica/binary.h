/*
 * Values on their way to PostgreSQL and back, all in its binary format.
 */
#ifndef KOTA_REPLICA_BINARY_H
#define KOTA_REPLICA_BINARY_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- arrays ---- */

/* One array of values, as the parameter of a statement: array_begin, then count values. */
struct array {
    uint8_t *data; /* malloc; array_free */
    size_t length, room;
    bool has_failed; /* no memory: later values are missing */
};

enum array_of { ARRAY_BYTES = 17, ARRAY_INT8 = 20, ARRAY_INT4 = 23, ARRAY_TEXT = 25 };

void array_begin(struct array *array, enum array_of of, size_t count);
void array_bytes(struct array *array, const void *bytes, size_t length);
void array_text(struct array *array, const char *text);
void array_int8(struct array *array, int64_t value);
void array_int4(struct array *array, int32_t value);
void array_free(struct array *array);

/* ---- parameters ---- */

enum { PARAMS_MAX = 16 };

/* In the order of $1, $2, …; bytes, texts and arrays are borrowed until the statement is sent. */
struct params {
    int count;
    bool has_failed;
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX];
    uint8_t numbers[PARAMS_MAX][8];
};

void params_text(struct params *params, const char *text);
void params_bytes(struct params *params, const void *bytes, size_t length);
void params_array(struct params *params, const struct array *array);
void params_int8(struct params *params, int64_t value);
void params_int4(struct params *params, int32_t value);
void params_bool(struct params *params, bool value);

/* ---- results ---- */

/* False: the value is NULL, of another length, or longer than the buffer: damage. */
bool result_int8(const PGresult *result, int row, int column, int64_t *out);
bool result_int4(const PGresult *result, int row, int column, int32_t *out);
bool result_bool(const PGresult *result, int row, int column, bool *out);
bool result_text(const PGresult *result, int row, int column, char *out, size_t room);
/* Borrowed from the result. */
bool result_bytes(const PGresult *result, int row, int column, const uint8_t **out, size_t *length);
/* An array of exactly count int8. */
bool result_int8s(const PGresult *result, int row, int column, int64_t *out, size_t count);

#endif
