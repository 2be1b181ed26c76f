/*
 * The shortest decimal text that reads back as the same float64.
 */
#ifndef KOTA_BASE_JSON_NUMBER_H
#define KOTA_BASE_JSON_NUMBER_H

#include <stddef.h>

enum { JSON_NUMBER_TEXT_MAX = 32 }; /* a text has at most 25 */

/*
 * Writes a finite number as a JSON number; -0 becomes "-0.0". Among the shortest texts the one
 * nearest to the value is chosen. Returns its length; no NUL is written, but the room after the
 * text may be. Any thread.
 */
size_t json_number_text(double value, char out[static JSON_NUMBER_TEXT_MAX]);

#endif
