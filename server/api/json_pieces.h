/*
 * JSON put together from pieces, for the items of batches: each function writes at `at` and returns
 * behind what it wrote, in room that the caller has reserved (json_open_room) by the sizes given
 * here. Nothing is checked and nothing escaped.
 */
#ifndef KOTA_API_JSON_PIECES_H
#define KOTA_API_JSON_PIECES_H

#include "base/integer_text.h"
#include "base/json_number.h"
#include "terrain/vec.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Room for what is written, and for what a copy of a fixed length may leave behind it. */
enum {
    PIECE_INTEGER_MAX = INTEGER_TEXT_MAX,
    PIECE_VEC3_MAX = 3 * 26 + JSON_NUMBER_TEXT_MAX /* a number has 25 characters at most */
};

/* A text that is known here, quotes and commas included. */
#define PIECE(at, literal) piece_text(at, "" literal, sizeof(literal) - 1)

static inline char *piece_text(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

/* null unless finite */
static inline char *piece_number(char *at, double value)
{
    return isfinite(value) ? at + json_number_text(value, at) : PIECE(at, "null");
}

static inline char *piece_integer(char *at, uint64_t value)
{
    return at + integer_text(value, at);
}

static inline char *piece_boolean(char *at, int value)
{
    return value ? PIECE(at, "true") : PIECE(at, "false");
}

/* [x,y,z] */
static inline char *piece_vec3(char *at, struct vec3 v)
{
    *at++ = '[';
    at = piece_number(at, v.x);
    *at++ = ',';
    at = piece_number(at, v.y);
    *at++ = ',';
    at = piece_number(at, v.z);
    *at++ = ']';
    return at;
}

/* [c,r] */
static inline char *piece_cell(char *at, const uint32_t cell[2])
{
    *at++ = '[';
    at = piece_integer(at, cell[0]);
    *at++ = ',';
    at = piece_integer(at, cell[1]);
    *at++ = ']';
    return at;
}

#endif
