/*
 * Decimal text to the nearest float64, without strtod: no terminator, no locale, no slow case below
 * 20 digits.
 */
#ifndef KOTA_BASE_NUMBER_READ_H
#define KOTA_BASE_NUMBER_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NUMBER_DIGITS_EXACT = 19 }; /* significant digits that always fit a uint64_t */

/*
 * The float64 nearest to digits · 10^exponent, ties to even; too small becomes 0 or subnormal.
 * False when it is too large. Some 5 ns; any thread.
 */
bool number_from_decimal(uint64_t digits, int exponent, double *out);

/*
 * Reads the JSON number (RFC 8259, section 6) at `at`, which ends before `end`. Returns its end;
 * NULL when there is none, when it is too large for a finite float64 or has more than length_max
 * (at most 255) characters. *out is the nearest float64; "-0" is -0. Reads no byte at or beyond
 * `end`. Some 5 to 10 ns; more than 19 significant digits rarely go to strtod. Any thread.
 */
const char *json_number_read(const char *at, const char *end, size_t length_max, double *out);

/*
 * The same by the grammar of files and command lines: [+-] digits [. digits] [e [+-] digits], with
 * at least one digit before or after the point. NULL when there is none of at most 255 characters;
 * *out is infinite when it is too large.
 */
const char *decimal_read(const char *at, const char *end, double *out);

#endif
