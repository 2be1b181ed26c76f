/*
 * A JSON writer for answers.
 *
 * Problem: a batch of 10,000 items is a megabyte of text; building a cJSON tree and printing it
 * would cost ten times the memory and rounds numbers.
 * Approach: the handlers call begin, key, value, end; bytes go into room reserved by the reply, a
 * few kilobytes at a time. One flag places the commas. Strings are escaped here and only here.
 * Invariant: start <= at <= end; after a failure nothing is written, and the answer is dropped.
 */
#include "json/json_write.h"

#include "json/json_raw.h"
#include "base/check.h"
#include "base/text/json_number.h"

#include <math.h>
#include <string.h>

enum { ROOM_BYTES = 8192 };

bool json_finish(struct json_writer *w)
{
    if (!w->failed && w->at != w->start)
        w->sink.advance(w->sink.to, (size_t)(w->at - w->start));
    w->start = w->at = w->end = NULL;
    return !w->failed;
}

static bool has_room(struct json_writer *w, size_t bytes)
{
    if ((size_t)(w->end - w->at) >= bytes)
        return true;
    if (!json_finish(w))
        return false;
    if (bytes < ROOM_BYTES)
        bytes = ROOM_BYTES;
    w->start = w->sink.reserve(w->sink.to, bytes);
    w->failed = w->start == NULL;
    w->at = w->start;
    w->end = w->failed ? NULL : w->start + bytes;
    return !w->failed;
}

char *json_open_room(struct json_writer *w, size_t bytes)
{
    return has_room(w, bytes) ? w->at : NULL;
}

void json_close_room(struct json_writer *w, char *end)
{
    CHECK(end >= w->at && end <= w->end);
    w->at = end;
    w->comma = true;
}

/* Room for a value and the comma before it. */
static bool value_begin(struct json_writer *w, size_t bytes)
{
    if (!has_room(w, bytes + 1))
        return false;
    if (w->comma)
        *w->at++ = ',';
    w->comma = true;
    return true;
}

static void put(struct json_writer *w, const char *text, size_t length)
{
    memcpy(w->at, text, length);
    w->at += length;
}

static void put_value(struct json_writer *w, const char *text, size_t length)
{
    if (value_begin(w, length))
        put(w, text, length);
}

static void put_closing(struct json_writer *w, char bracket)
{
    if (has_room(w, 1))
        *w->at++ = bracket;
    w->comma = true;
}

void json_begin_object(struct json_writer *w)
{
    put_value(w, "{", 1);
    w->comma = false;
}

void json_end_object(struct json_writer *w)
{
    put_closing(w, '}');
}

void json_begin_array(struct json_writer *w)
{
    put_value(w, "[", 1);
    w->comma = false;
}

void json_end_array(struct json_writer *w)
{
    put_closing(w, ']');
}

void json_key(struct json_writer *w, const char *name)
{
    size_t length = strlen(name);

    if (value_begin(w, length + 3)) {
        *w->at++ = '"';
        put(w, name, length);
        put(w, "\":", 2);
    }
    w->comma = false;
}

void json_number(struct json_writer *w, double value)
{
    if (value_begin(w, JSON_NUMBER_TEXT_MAX))
        w->at = json_raw_number(w->at, value);
}

void json_integer(struct json_writer *w, uint64_t value)
{
    if (value_begin(w, JSON_RAW_INTEGER_MAX))
        w->at = json_raw_integer(w->at, value);
}

void json_boolean(struct json_writer *w, bool value)
{
    put_value(w, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json_writer *w)
{
    put_value(w, "null", 4);
}

static void put_escaped(struct json_writer *w, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char plain[] = "\b\t\n\f\r\"\\";
    static const char letter[] = "btnfr\"\\";
    const char *found = c != 0 ? strchr(plain, c) : NULL;

    if (!has_room(w, 6))
        return;
    if (found) {
        *w->at++ = '\\';
        *w->at++ = letter[found - plain];
    } else if (c < 0x20 || c == 0x7f) {
        char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

        put(w, escape, sizeof escape);
    } else {
        *w->at++ = (char)c;
    }
}

void json_string(struct json_writer *w, const char *text)
{
    if (!value_begin(w, 1))
        return;
    *w->at++ = '"';
    for (; *text != '\0' && !w->failed; text++)
        put_escaped(w, (unsigned char)*text);
    if (has_room(w, 1))
        *w->at++ = '"';
}

void json_string_or_null(struct json_writer *w, const char *text)
{
    if (text && text[0] != '\0')
        json_string(w, text);
    else
        json_null(w);
}

void json_vec3(struct json_writer *w, struct vec3 v)
{
    if (value_begin(w, JSON_RAW_VEC3_MAX))
        w->at = json_raw_vec3(w->at, v);
}

void json_box3(struct json_writer *w, struct box3 box)
{
    json_begin_object(w);
    json_key(w, "min");
    json_vec3(w, box.min);
    json_key(w, "max");
    json_vec3(w, box.max);
    json_end_object(w);
}

void json_numbers(struct json_writer *w, const double *values, size_t count)
{
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        json_number(w, values[i]);
    json_end_array(w);
}

void json_put_null(struct json_writer *w, const char *name)
{
    json_key(w, name);
    json_null(w);
}

void json_put_integer_or_null(struct json_writer *w, const char *name, bool is_there,
                              uint64_t value)
{
    json_key(w, name);
    if (is_there)
        json_integer(w, value);
    else
        json_null(w);
}

void json_put_numbers(struct json_writer *w, const char *name, const double *values, size_t count)
{
    json_key(w, name);
    json_numbers(w, values, count);
}

void json_put_object(struct json_writer *w, const char *name)
{
    json_key(w, name);
    json_begin_object(w);
}

void json_put_array(struct json_writer *w, const char *name)
{
    json_key(w, name);
    json_begin_array(w);
}
