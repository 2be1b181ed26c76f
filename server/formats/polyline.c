/*
 * Lists of places: pairs of decimal numbers, or Google's encoded polyline.
 *
 * A polyline is a chain of differences in units of 1e-5 degrees, latitude and longitude in turn.
 * Each difference is zigzag coded (the sign is the lowest bit) and cut into groups of five bits,
 * the lowest first; 32 is added when more groups follow, and 63 makes it a printable character.
 *
 * A difference of more than six groups would leave the Earth from anywhere on it (30 bits are
 * 10,737 degrees), so that sums of 32 bit steps in 64 bit never overflow. What leaves the Earth is
 * refused where it does, not at the end.
 * Source: Google, "Encoded Polyline Algorithm Format".
 */
#include "formats/polyline.h"

#include "base/text/decimal.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { GROUPS_MAX = 6, FIRST_CODE = 63, LAST_CODE = 126, SHOWN_MAX = 40 };

static const char prefix[] = "enc:";

struct text {
    const char *at, *end;
};

static bool has_prefix(const char *text, size_t length)
{
    return length >= sizeof prefix - 1 && memcmp(text, prefix, sizeof prefix - 1) == 0;
}

/* Out of range, or not a number: the error has which. */
static enum err_code check_place(const struct geo_place *place, size_t number, struct err *err)
{
    if (!(fabs(place->lat) <= 90))
        return err_limit(err, ERR_BAD_INPUT, 90, place->lat,
                         "location %zu: the latitude %.9g is outside -90..90; "
                         "locations are lat,lng",
                         number, place->lat);
    if (!(fabs(place->lng) <= 180))
        return err_limit(err, ERR_BAD_INPUT, 180, place->lng,
                         "location %zu: the longitude %.9g is outside -180..180", number,
                         place->lng);
    return ERR_OK;
}

/* ---- polylines ------------------------------------------------------------------------------- */

static enum err_code read_difference(struct text *text, int64_t *out, size_t number,
                                     struct err *err)
{
    uint64_t bits = 0;

    for (unsigned group = 0; group < GROUPS_MAX; group++) {
        unsigned char code;

        if (text->at == text->end)
            return err_set(err, ERR_BAD_INPUT, "the encoded polyline ends within its location %zu",
                           number);
        code = (unsigned char)*text->at++;
        if (code < FIRST_CODE || code > LAST_CODE)
            return err_set(err, ERR_BAD_INPUT,
                           "location %zu of the encoded polyline has a byte of value %u, "
                           "expected %d to %d",
                           number, code, FIRST_CODE, LAST_CODE);
        code = (unsigned char)(code - FIRST_CODE);
        bits |= (uint64_t)(code & 31u) << (5 * group);
        if (!(code & 32u)) {
            *out = bits & 1 ? -(int64_t)(bits >> 1) - 1 : (int64_t)(bits >> 1);
            return ERR_OK;
        }
    }
    return err_set(err, ERR_BAD_INPUT,
                   "location %zu of the encoded polyline has a number of more than %d characters",
                   number, GROUPS_MAX);
}

static enum err_code read_polyline(struct text text, struct geo_place *places, size_t *count,
                                   struct err *err)
{
    int64_t lat = 0, lng = 0;

    *count = 0;
    while (text.at < text.end) {
        struct geo_place *place = &places[*count];
        size_t number = *count + 1;
        int64_t by_lat, by_lng;

        if (read_difference(&text, &by_lat, number, err) ||
            read_difference(&text, &by_lng, number, err))
            return err->code;
        lat += by_lat;
        lng += by_lng;
        *place = (struct geo_place){(double)lat / 1e5, (double)lng / 1e5};
        if (check_place(place, number, err))
            return err->code;
        ++*count;
    }
    return ERR_OK;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static struct text trimmed(struct text text, char what)
{
    while (text.at < text.end && *text.at == what)
        text.at++;
    while (text.at < text.end && text.end[-1] == what)
        text.end--;
    return text;
}

/* The text up to the first `separator`; the rest stays. Without one it is all, and rest is NULL. */
static struct text cut(struct text *rest, char separator)
{
    const char *found = memchr(rest->at, separator, (size_t)(rest->end - rest->at));
    struct text head = {rest->at, found ? found : rest->end};

    rest->at = found ? found + 1 : NULL;
    return head;
}

static bool read_number(struct text text, double *out)
{
    text = trimmed(text, ' ');
    return decimal_parse(text.at, (size_t)(text.end - text.at), out) == DECIMAL_OK;
}

static enum err_code read_pair(struct text pair, size_t number, struct geo_place *out,
                               struct err *err)
{
    size_t length = (size_t)(pair.end - pair.at);
    struct text rest = pair, lat = cut(&rest, ',');

    if (!rest.at || !read_number(lat, &out->lat) || !read_number(rest, &out->lng))
        return err_set(err, ERR_BAD_INPUT,
                       "location %zu is \"%.*s\"; two finite numbers, lat,lng, were expected",
                       number, length < SHOWN_MAX ? (int)length : SHOWN_MAX, pair.at);
    return check_place(out, number, err);
}

size_t places_max(const char *text, size_t length)
{
    struct text rest = {text, text + length};
    size_t ends = 0;

    if (has_prefix(text, length) || !memchr(text, ',', length)) {
        rest.at += has_prefix(text, length) ? sizeof prefix - 1 : 0;
        for (; rest.at < rest.end; rest.at++) /* the last group of each number */
            ends += (unsigned char)*rest.at < FIRST_CODE + 32;
        return ends > 1 ? ends / 2 : 1;
    }
    rest = trimmed(rest, '|');
    for (const char *at = rest.at; at < rest.end; at++)
        ends += *at == '|';
    return ends + 1;
}

enum err_code places_read(const char *text, size_t length, struct geo_place *places, size_t *count,
                          struct err *err)
{
    struct text rest = {text, text + length};
    bool is_encoded = has_prefix(text, length);

    *count = 0;
    if (is_encoded)
        rest.at += sizeof prefix - 1;
    if (rest.at == rest.end)
        return err_set(err, ERR_BAD_INPUT, "no locations: lat,lng|lat,lng or a polyline");
    if (is_encoded || !memchr(text, ',', length))
        return read_polyline(rest, places, count, err);
    rest = trimmed(rest, '|');
    while (rest.at) {
        if (read_pair(cut(&rest, '|'), *count + 1, &places[*count], err))
            return err->code;
        ++*count;
    }
    return ERR_OK;
}
