/*
 * Places on the Earth as text: `lat,lng|lat,lng…`, or an encoded polyline.
 */
#ifndef KOTA_FORMATS_POLYLINE_H
#define KOTA_FORMATS_POLYLINE_H

#include "base/err.h"

#include <stddef.h>

/* Degrees: lat -90..90, lng -180..180. */
struct geo_place {
    double lat, lng;
};

/*
 * The number of places in text[length], at least 1; for a malformed text, the most that places_read
 * would write before its error. O(length).
 */
size_t places_max(const char *text, size_t length);

/*
 * Reads a list of places, in either form; with the prefix `enc:` it is a polyline. A text with a
 * comma is a list of pairs, since no polyline has one. Bars at either end, and blanks around
 * numbers, are allowed.
 *
 * places  room for places_max(text, length)
 * ERR_BAD_INPUT  empty; not a number, not finite, out of range; a polyline that is cut, has a
 *                character that none has, or leaves the Earth. The message names the position,
 *                counted from 1.
 */
enum err_code places_read(const char *text, size_t length, struct geo_place *places, size_t *count,
                          struct err *err);

#endif
