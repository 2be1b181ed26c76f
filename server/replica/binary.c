/*
 * PostgreSQL's binary formats: numbers are big-endian, texts and bytes are as they are, an array
 * has a header and a length before each element (src/backend/utils/adt/arrayfuncs.c, array_recv).
 *
 * Binary, since entries are megabytes of samples: as text each byte would be two, and be parsed.
 *
 * Results are checked like any input: the tables may have been changed by hand.
 */
#include "replica/binary.h"

#include "base/array_reserve.h"
#include "base/check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void put_be32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put_be64(uint8_t *out, uint64_t value)
{
    put_be32(out, (uint32_t)(value >> 32));
    put_be32(out + 4, (uint32_t)value);
}

static uint32_t get_be32(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

static uint64_t get_be64(const uint8_t *in)
{
    return (uint64_t)get_be32(in) << 32 | get_be32(in + 4);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static uint8_t *array_room(struct array *array, size_t length)
{
    size_t wanted = array->length + length;

    if (array->has_failed)
        return NULL;
    if (!array_reserve((void **)&array->data, &array->room, wanted, 1)) {
        array->has_failed = true;
        return NULL;
    }
    array->length = wanted;
    return array->data + wanted - length;
}

void array_begin(struct array *array, enum array_of of, size_t count)
{
    uint8_t *out = array_room(array, count > 0 ? 20 : 12);

    CHECK(count <= INT_MAX);
    if (!out)
        return;
    put_be32(out, count > 0); /* dimensions */
    put_be32(out + 4, 0);     /* no NULL in it */
    put_be32(out + 8, of);
    if (count > 0) {
        put_be32(out + 12, (uint32_t)count);
        put_be32(out + 16, 1); /* the first one's index */
    }
}

void array_bytes(struct array *array, const void *bytes, size_t length)
{
    uint8_t *out;

    CHECK(length <= INT_MAX);
    out = array_room(array, 4 + length);
    if (!out)
        return;
    put_be32(out, (uint32_t)length);
    if (length > 0)
        memcpy(out + 4, bytes, length);
}

void array_text(struct array *array, const char *text)
{
    array_bytes(array, text, strlen(text));
}

void array_int8(struct array *array, int64_t value)
{
    uint8_t bytes[8];

    put_be64(bytes, (uint64_t)value);
    array_bytes(array, bytes, sizeof bytes);
}

void array_int4(struct array *array, int32_t value)
{
    uint8_t bytes[4];

    put_be32(bytes, (uint32_t)value);
    array_bytes(array, bytes, sizeof bytes);
}

void array_free(struct array *array)
{
    free(array->data);
    memset(array, 0, sizeof *array);
}

/* ---- parameters ------------------------------------------------------------------------------ */

void params_bytes(struct params *params, const void *bytes, size_t length)
{
    CHECK(params->count < PARAMS_MAX && length <= INT_MAX);
    /* a NULL pointer would be a NULL value */
    params->values[params->count] = bytes ? bytes : "";
    params->lengths[params->count++] = (int)length;
}

void params_text(struct params *params, const char *text)
{
    params_bytes(params, text, strlen(text));
}

void params_array(struct params *params, const struct array *array)
{
    params->has_failed = params->has_failed || array->has_failed;
    params_bytes(params, array->data, array->length);
}

void params_int8(struct params *params, int64_t value)
{
    uint8_t *bytes = params->numbers[params->count];

    put_be64(bytes, (uint64_t)value);
    params_bytes(params, bytes, 8);
}

void params_int4(struct params *params, int32_t value)
{
    uint8_t *bytes = params->numbers[params->count];

    put_be32(bytes, (uint32_t)value);
    params_bytes(params, bytes, 4);
}

void params_bool(struct params *params, bool value)
{
    uint8_t *bytes = params->numbers[params->count];

    bytes[0] = value;
    params_bytes(params, bytes, 1);
}

/* ---- results --------------------------------------------------------------------------------- */

/* NULL when the value is, or is of another length (-1: any). */
static const uint8_t *value_of(const PGresult *result, int row, int column, int length)
{
    if (row >= PQntuples(result) || column >= PQnfields(result) ||
        PQgetisnull(result, row, column) || PQfformat(result, column) != 1)
        return NULL;
    if (length >= 0 && PQgetlength(result, row, column) != length)
        return NULL;
    return (const uint8_t *)PQgetvalue(result, row, column);
}

bool result_int8(const PGresult *result, int row, int column, int64_t *out)
{
    const uint8_t *bytes = value_of(result, row, column, 8);

    if (bytes)
        *out = (int64_t)get_be64(bytes);
    return bytes != NULL;
}

bool result_int4(const PGresult *result, int row, int column, int32_t *out)
{
    const uint8_t *bytes = value_of(result, row, column, 4);

    if (bytes)
        *out = (int32_t)get_be32(bytes);
    return bytes != NULL;
}

bool result_bool(const PGresult *result, int row, int column, bool *out)
{
    const uint8_t *bytes = value_of(result, row, column, 1);

    if (bytes)
        *out = bytes[0] != 0;
    return bytes != NULL;
}

bool result_bytes(const PGresult *result, int row, int column, const uint8_t **out, size_t *length)
{
    const uint8_t *bytes = value_of(result, row, column, -1);

    if (!bytes)
        return false;
    *out = bytes;
    *length = (size_t)PQgetlength(result, row, column);
    return true;
}

bool result_text(const PGresult *result, int row, int column, char *out, size_t room)
{
    const uint8_t *bytes;
    size_t length;

    if (!result_bytes(result, row, column, &bytes, &length) || length >= room ||
        memchr(bytes, '\0', length))
        return false;
    memcpy(out, bytes, length);
    out[length] = '\0';
    return true;
}

bool result_int8s(const PGresult *result, int row, int column, int64_t *out, size_t count)
{
    const uint8_t *bytes;
    size_t length;

    if (!result_bytes(result, row, column, &bytes, &length) || length != 20 + 12 * count ||
        get_be32(bytes) != 1 || get_be32(bytes + 8) != ARRAY_INT8 || get_be32(bytes + 12) != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (get_be32(bytes + 20 + 12 * i) != 8)
            return false;
        out[i] = (int64_t)get_be64(bytes + 24 + 12 * i);
    }
    return true;
}
