/*
 * Is this text JSON, to the letter of RFC 8259? One pass that refuses malformed text, and lists the
 * values on a tape. The parser of cJSON is not used for the calls: it accepts leading zeros, raw
 * control characters, unknown escapes and broken UTF-8.
 */
#ifndef KOTA_JSON_JSON_CHECK_H
#define KOTA_JSON_JSON_CHECK_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    JSON_DEPTH_LEAST = 8,      /* a little more than the nesting of the calls */
    JSON_DEPTH_MOST = 512,     /* recursion here, in the tree and in its end */
    JSON_VALUES_LEAST = 10000, /* more than the values around a batch */
    JSON_NUMBER_BYTES_MAX = 63 /* the most that cJSON, the oracle of the tests, reads whole */
};

struct json_limits {
    size_t depth_max;  /* nested arrays and objects; JSON_DEPTH_LEAST to JSON_DEPTH_MOST */
    size_t values_max; /* bounds the memory: 64 bytes a value of cJSON, 16 a token */
};

/* 32 levels, 1,000,000 values. */
extern const struct json_limits json_limits_default;

enum json_token_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

/*
 * One value, or the name of a member (a string, before its value). The items of an array and the
 * members of an object follow it; `next` is the index of the token after all of them.
 */
struct json_token {
    union {
        double number; /* of a JSON_NUMBER: the nearest float64 */
        struct {
            uint32_t begin, end; /* bytes of the text, brackets and quotes included */
        };
    };
    uint32_t next;
    uint32_t kind : 3, count : 29; /* json_token_kind; items or members */
};

/* The values of a text in its order; tokens[0] is the root. The text must outlive it. */
struct json_tape {
    const char *text;
    struct json_token *tokens; /* free() */
    size_t count, capacity;
};

/*
 * Checks a whole text: grammar, UTF-8 (no overlong forms, no surrogates), pairs of \u surrogates,
 * finite numbers, and the limits above. The escape \u0000 is refused: a C string cannot hold it.
 * The values go to the tape (empty before; to be freed on error, too): at most two tokens a value,
 * so 2 · values_max of 16 bytes, and as many again while it grows.
 *
 * ERR_BAD_INPUT  the message names the byte offset; too deep: limit and got are set
 * ERR_TOO_LARGE  too many values (limit and got are set); a text of 4 GiB
 * ERR_NO_MEMORY
 * O(length), some 10 ns a number. Any thread.
 */
enum err_code json_scan(const char *text, size_t length, const struct json_limits *limits,
                        struct json_tape *tape, struct err *err);

#endif
