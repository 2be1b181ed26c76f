/*
 * Raw JSON for the items of batches: each function writes at `at` and returns the end of its text,
 * in room that the caller has reserved (json_open_room) by the sizes given here. Nothing is checked
 * and nothing escaped.
 */
#ifndef KOTA_JSON_JSON_RAW_H
#define KOTA_JSON_JSON_RAW_H

#include "base/text/integer_text.h"
#include "base/text/json_number.h"
#include "terrain/vec.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Room for the text, and for the slack of a copy of fixed length. */
enum {
    JSON_RAW_INTEGER_MAX = INTEGER_TEXT_MAX,
    JSON_RAW_VEC3_MAX = 3 * 26 + JSON_NUMBER_TEXT_MAX /* a number has 25 characters at most */
};

/* A literal text, quotes and commas included. */
#define JSON_RAW(at, literal) json_raw_text(at, "" literal, sizeof(literal) - 1)

static inline char *json_raw_text(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

/* null unless finite */
static inline char *json_raw_number(char *at, double value)
{
    return isfinite(value) ? at + json_number_text(value, at) : JSON_RAW(at, "null");
}

static inline char *json_raw_integer(char *at, uint64_t value)
{
    return at + integer_text(value, at);
}

static inline char *json_raw_boolean(char *at, int value)
{
    return value ? JSON_RAW(at, "true") : JSON_RAW(at, "false");
}

/* [x,y,z] */
static inline char *json_raw_vec3(char *at, struct vec3 v)
{
    *at++ = '[';
    at = json_raw_number(at, v.x);
    *at++ = ',';
    at = json_raw_number(at, v.y);
    *at++ = ',';
    at = json_raw_number(at, v.z);
    *at++ = ']';
    return at;
}

/* [c,r] */
static inline char *json_raw_cell(char *at, const uint32_t cell[2])
{
    *at++ = '[';
    at = json_raw_integer(at, cell[0]);
    *at++ = ',';
    at = json_raw_integer(at, cell[1]);
    *at++ = ']';
    return at;
}

#endif
