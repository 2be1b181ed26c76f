/*
 * What goes to standard output: tables for people, JSON lines for programs, whole lines only.
 */
#ifndef KOTA_CLIENT_PRINT_H
#define KOTA_CLIENT_PRINT_H

#include "base/err.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 12

/*
 * Writes one document as one line. Numbers are written so that they read back as the same bits.
 * The numbers inside of value are replaced by their texts.
 *
 * ERR_NO_MEMORY, ERR_INTERNAL (the stream refuses: a full disk).
 */
enum err_code print_json_line(FILE *stream, cJSON *value, struct err *err);

/* Rows that are kept until table_print has the width of each column. */
struct table;

/* headings: count static strings. NULL without memory. */
struct table *table_open(const char *const *headings, size_t count);
void table_close(struct table *table);

/* Cells fill a row from left to right; the row is whole after the last column. */
void table_text(struct table *table, const char *text);

/*
 * A cell from JSON: strings without control characters, numbers to 9 significant digits (as many
 * as a float32 has), arrays as "a, b, c", null or nothing as "-".
 */
void table_value(struct table *table, const cJSON *value);
void table_number(struct table *table, double value);

/*
 * Prints the rows (below the headings, the first time) and frees them. A row that is not whole is a
 * mistake of the caller and aborts.
 */
enum err_code table_print(struct table *table, FILE *stream, struct err *err);

/* "name  value" lines for one document, nested names joined by points. */
enum err_code print_members(FILE *stream, const cJSON *object, struct err *err);

/* text with every control character (the terminal's escapes among them) replaced by '?'. */
void print_sanitize(char *text);

#endif
