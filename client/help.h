/*
 * The options in --help.
 */
#ifndef KOTA_CLIENT_HELP_H
#define KOTA_CLIENT_HELP_H

#include "client/option.h"

#include <stdio.h>

/* A table of options, one below the other, their texts in one column; headings between them. */
void help_print_options(FILE *stream, const struct kota_option *table);

/* The program's name and version, one line. */
void help_print_version(FILE *stream);

/* How many characters UTF-8 text takes. */
size_t help_width(const char *text);

#endif
