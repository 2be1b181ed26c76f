/*
 * The items of a batch: rows of numbers from the command line or from a stream.
 */
#ifndef KOTA_CLIENT_INPUT_H
#define KOTA_CLIENT_INPUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A ray with its t_max is the widest item. */
#define INPUT_NUMBERS_MAX 7

/* A line of a stream that is longer than this is refused. */
#define INPUT_LINE_BYTES_MAX 4096

/* An array among the members of a JSON object that holds several numbers of an item. */
struct input_vector {
    const char *name;
    size_t at, count; /* where its first `count` numbers go; it may have more */
};

/* What a row is. */
struct input_shape {
    size_t numbers_min, numbers_max;
    /* [numbers_max] columns of a CSV header, members of a JSON object; those beyond numbers_min may
       be missing. */
    const char *names[INPUT_NUMBERS_MAX];
    struct input_vector vectors[2]; /* the other way to write objects; name NULL: none */
};

extern const struct input_shape input_ground_points, /* x y, or point */
    input_points,                                    /* x y z, or point */
    input_rays,                                      /* ox oy oz dx dy dz [t_max] */
    input_segments,                                  /* x1 y1 z1 x2 y2 z2, or from and to */
    input_moves;                                     /* x y z vx vy vz, or from and velocity */

/* The header of a CSV stream: which field is which number. */
struct input_header {
    bool is_read;   /* the first line has been read */
    char delimiter; /* '\0': there is no header */
    size_t fields;
    size_t field_of[INPUT_NUMBERS_MAX]; /* `fields`: there is none */
};

struct input {
    const struct input_shape *shape;
    /* Words of the command line; a row is made of words_per_row of them, of equal size, or of a
       word for each of its numbers. */
    const char *const *words;
    size_t word_count, words_per_row;
    /* How the command is used, for the error of a row without all its words. */
    const char *command, *synopsis;
    /* Read instead of the words when it is not NULL; '#' begins a comment line. */
    FILE *stream;

    /* The position: words or lines read so far. */
    size_t place;
    struct input_header header;
};

struct input_row {
    double values[INPUT_NUMBERS_MAX];
    size_t count;
};

enum input_step { INPUT_ROW, INPUT_END, INPUT_FAULT };

/* The next row. INPUT_FAULT: err names the argument or the line. */
enum input_step input_next(struct input *input, struct input_row *row, struct err *err);

#endif
