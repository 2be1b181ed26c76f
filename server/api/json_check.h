/*
 * Is this text JSON, to the letter of RFC 8259? Run before cJSON, which takes leading zeros, raw
 * control characters, unknown escapes and broken UTF-8.
 */
#ifndef KOTA_API_JSON_CHECK_H
#define KOTA_API_JSON_CHECK_H

#include "base/err.h"

#include <stddef.h>

enum {
    JSON_DEPTH_LEAST = 8,      /* what the calls themselves nest, and somewhat more */
    JSON_DEPTH_MOST = 512,     /* recursion here, in cJSON and in its end; cJSON stops at 1000 */
    JSON_VALUES_LEAST = 10000, /* more than what stands around a batch can hold */
    JSON_NUMBER_BYTES_MAX = 63 /* cJSON copies a number into 64 bytes and cuts it there */
};

struct json_limits {
    size_t depth_max;  /* nested arrays and objects; JSON_DEPTH_LEAST to JSON_DEPTH_MOST */
    size_t values_max; /* bounds what the parser allocates: 64 bytes a value */
};

/* 32 levels, 1,000,000 values. */
extern const struct json_limits json_limits_default;

/*
 * Checks a whole text: grammar, UTF-8 (no overlong forms, no surrogates), pairs of \u surrogates,
 * finite numbers, and the limits above. The escape \u0000 is refused: a C string cannot hold it.
 *
 * ERR_BAD_INPUT  the message names the byte offset; too deep: limit and got are set
 * ERR_TOO_LARGE  too many values (limit and got are set)
 * O(length), no allocation, any thread.
 */
enum err_code json_check(const char *text, size_t length, const struct json_limits *limits,
                         struct err *err);

#endif
