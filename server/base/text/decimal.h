/*
 * Decimal numbers in text, the same on every machine: no locale, no terminator, no hexadecimal.
 */
#ifndef KOTA_BASE_DECIMAL_H
#define KOTA_BASE_DECIMAL_H

#include <stddef.h>

enum decimal_status {
    DECIMAL_OK,
    DECIMAL_NAN,      /* the word nan in any case, with or without a sign */
    DECIMAL_INFINITE, /* too large for float64 (1e999), or the words inf, infinity */
    DECIMAL_MALFORMED /* not a number, or longer than DECIMAL_LENGTH_MAX characters */
};

enum { DECIMAL_LENGTH_MAX = 255 };

/*
 * Parses text[length], all of it: [+-] digits [. digits] [e [+-] digits], with at least one digit
 * before or after the point. *out is the nearest float64, untouched unless DECIMAL_OK; numbers
 * too small become 0.
 */
enum decimal_status decimal_parse(const char *text, size_t length, double *out);

#endif
