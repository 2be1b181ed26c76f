/*
 * Heights of an edit, straight from the text.
 *
 * Problem: cJSON makes a node of 64 bytes of each number and calls strtod, 0.2 µs and more each; an
 * edit of 128×128 would take milliseconds on its way in and a megabyte. Approach: the text has
 * passed the strict checker, so a scanner may trust its grammar: it finds the array, which is then
 * cut out of what the parser gets, and reads the numbers itself.
 * A height is the nearest float64 (number_read.h) rounded to float32.
 * Invariant: nothing is read beyond the array, whose last byte is its bracket.
 */
#include "api/json_heights.h"

#include "api/json_check.h"
#include "base/check.h"
#include "base/number_read.h"

#include <math.h>
#include <string.h>

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* Behind the closing quote. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

/* Behind the value; a checked text has its brackets in pairs. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
        } else if (*at == '[' || *at == '{') {
            depth++;
            at++;
        } else if (*at == ']' || *at == '}') {
            if (depth == 0)
                return at;
            depth--;
            at++;
        } else if (depth == 0) {
            while (at<end && * at> ' ' && *at != ',' && *at != ']' && *at != '}')
                at++;
            return at;
        } else {
            at++;
        }
        if (depth == 0)
            return at;
    }
    return end;
}

static int hex_value(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* A name as it is, or with letters as \u00xx; no other escape stands for a letter. */
static bool is_name(const char *at, const char *end, const char *name)
{
    for (; *name != '\0'; name++) {
        if (end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
            int code = 0;

            for (int i = 2; i < 6; i++)
                code = code * 16 + hex_value(at[i]);
            if (code != *name)
                return false;
            at += 6;
        } else if (at < end && *at == *name) {
            at++;
        } else {
            return false;
        }
    }
    return at == end;
}

/* The member at the quote of its name: is it called `name`? Returns where its value begins. */
static const char *member_at(const char *at, const char *end, const char *name, bool *is_it)
{
    const char *label = at + 1;

    at = skip_string(at, end);
    *is_it = is_name(label, at - 1, name);
    at = skip_space(at, end);
    return at < end ? skip_space(at + 1, end) : end; /* behind the colon */
}

/* The next member's quote behind a value. */
static const char *next_member(const char *at, const char *end)
{
    at = skip_space(at, end);
    return at < end && *at == ',' ? skip_space(at + 1, end) : at;
}

static const char *first_member(struct span text)
{
    const char *end = text.at + text.length, *at = skip_space(text.at, end);

    return at < end && *at == '{' ? skip_space(at + 1, end) : end;
}

const char *json_find_value(struct span text, const char *name)
{
    const char *end = text.at + text.length, *at = first_member(text);

    while (at < end && *at == '"') {
        bool is_it;
        const char *value = member_at(at, end, name, &is_it);

        if (is_it)
            return value < end ? value : NULL;
        at = next_member(skip_value(value, end), end);
    }
    return NULL;
}

struct span json_find_array(struct span text, const char *name)
{
    const char *end = text.at + text.length, *at = first_member(text);
    struct span found = {NULL, 0};
    size_t count = 0;

    while (at < end && *at == '"') {
        bool is_it;
        const char *value = member_at(at, end, name, &is_it);

        at = skip_value(value, end);
        if (is_it && count++ == 0 && value < end && *value == '[')
            found = (struct span){value, (size_t)(at - value)};
        at = next_member(at, end);
    }
    return count == 1 ? found : (struct span){NULL, 0};
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

/* One item. NULL: it is no height. */
static const char *read_height(const char *at, const char *end, float *out, struct err *err)
{
    double value;

    if (end - at >= 4 && memcmp(at, "null", 4) == 0) {
        *out = NAN;
        return at + 4;
    }
    if (*at != '-' && (*at < '0' || *at > '9')) {
        err_set(err, ERR_BAD_INPUT, "a height is a number, or null for a hole");
        return NULL;
    }
    at = json_number_read(at, end, JSON_NUMBER_BYTES_MAX, &value);
    CHECK(at); /* the checker has looked */
    *out = (float)value;
    if (isfinite(*out))
        return at;
    err_set(err, ERR_BAD_INPUT, "the height %.17g is beyond float32", value);
    return NULL;
}

/* The first item, or the closing bracket, which is at `end`. */
static const char *first_item(struct span array, const char **end)
{
    *end = array.at + array.length - 1;
    return skip_space(array.at + 1, *end);
}

static const char *next_item(const char *behind, const char *end)
{
    behind = skip_space(behind, end);
    return behind < end ? skip_space(behind + 1, end) : end; /* behind the comma */
}

size_t json_count_items(struct span array)
{
    const char *end, *at = first_item(array, &end);
    size_t count = 0;

    for (; at < end; count++)
        at = next_item(skip_value(at, end), end);
    return count;
}

enum err_code json_read_heights(struct span array, const char *place, float *out, struct err *err)
{
    const char *end, *at = first_item(array, &end);

    for (size_t n = 0; at < end; n++) {
        at = read_height(at, end, &out[n], err);
        if (!at)
            return err_at(err, "%s/%zu", place, n);
        at = next_item(at, end);
    }
    return ERR_OK;
}
