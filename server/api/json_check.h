/*
 * Is this text JSON, to the letter of RFC 8259? Run before cJSON, which takes leading zeros, raw
 * control characters, unknown escapes and broken UTF-8.
 */
#ifndef KOTA_API_JSON_CHECK_H
#define KOTA_API_JSON_CHECK_H

#include "base/err.h"

#include <stddef.h>

enum {
    JSON_DEPTH_MAX = 32,       /* nested arrays and objects */
    JSON_VALUES_MAX = 1000000, /* bounds what the parser allocates: 64 bytes a value */
    JSON_NUMBER_BYTES_MAX = 63 /* cJSON copies a number into 64 bytes and cuts it there */
};

/*
 * Checks a whole text: grammar, UTF-8 (no overlong forms, no surrogates), pairs of \u surrogates,
 * finite numbers, and the limits above. The escape \u0000 is refused: a C string cannot hold it.
 *
 * ERR_BAD_INPUT  the message names the byte offset
 * ERR_TOO_LARGE  too many values (limit and got are set)
 * O(length), no allocation, any thread.
 */
enum err_code json_check(const char *text, size_t length, struct err *err);

#endif
