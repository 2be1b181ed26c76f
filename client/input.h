/*
 * The items of a batch: rows of numbers from the command line or from a stream.
 */
#ifndef KOTA_CLIENT_INPUT_H
#define KOTA_CLIENT_INPUT_H

#include "base/err.h"

#include <stddef.h>
#include <stdio.h>

/* A ray with its t_max is the widest item. */
#define INPUT_NUMBERS_MAX 7

/* A line of a stream that is longer than this is refused. */
#define INPUT_LINE_BYTES_MAX 4096

struct input {
    /* How many numbers a row may have. */
    size_t numbers_min, numbers_max;
    /* Words of the command line; a row is made of words_per_row of them, of equal size. */
    const char *const *words;
    size_t word_count, words_per_row;
    /* Read instead of the words when it is not NULL; '#' begins a comment line. */
    FILE *stream;

    /* Where it stands: words or lines read so far. */
    size_t place;
};

struct input_row {
    double values[INPUT_NUMBERS_MAX];
    size_t count;
};

enum input_step { INPUT_ROW, INPUT_END, INPUT_FAULT };

/* The next row. INPUT_FAULT: err names the argument or the line. */
enum input_step input_next(struct input *input, struct input_row *row, struct err *err);

#endif
