/*
 * Numbers as people and files write them, in any locale of the process.
 */
#ifndef KOTA_CLIENT_NUMBER_H
#define KOTA_CLIENT_NUMBER_H

#include "base/err.h"

#include <stddef.h>

/* Room for any number that number_format writes, with its NUL. */
#define NUMBER_TEXT_MAX 32

/*
 * One finite decimal number at the start of text: [+-]digits[.digits][e[+-]digits]; digits may be
 * missing on one side of the point. No nan, no inf, no hexadecimal, nothing that overflows.
 *
 * Returns its length in bytes, 0 when there is none. Any thread.
 */
size_t number_scan(const char *text, double *out);

/*
 * The numbers of one argument or line: "1,2,3", "1 2 3" or a JSON array "[1,2,3]", nothing else.
 *
 * values  [count_max], count_min..count_max of them are written
 * count   out: how many there were
 *
 * ERR_BAD_INPUT  names the text and its error
 */
enum err_code number_list(const char *text, double *values, size_t count_min, size_t count_max,
                          size_t *count, struct err *err);

/* The same for exactly count numbers. */
enum err_code number_exact_list(const char *text, double *values, size_t count, struct err *err);

/* Those of an option --rect: column, row, columns, rows, whole and at most 2^20. */
enum err_code number_rect(const char *text, double rect[4], struct err *err);

/* One whole number in least..greatest, decimal digits only. */
enum err_code number_count(const char *text, double least, double greatest, double *out,
                           struct err *err);

/*
 * A text that reads back as the same double, with the fewest digits of 15, 16 or 17; value is
 * finite.
 */
void number_format(double value, char out[NUMBER_TEXT_MAX]);

#endif
