/*
 * A batch call: rows of numbers go out in chunks, one result for each comes back and is printed.
 */
#ifndef KOTA_CLIENT_BATCH_H
#define KOTA_CLIENT_BATCH_H

#include "client/input.h"
#include "client/kota.h"
#include "client/print.h"

#include <cjson/cJSON.h>

/* The most items the daemon takes in one request. */
#define BATCH_ITEMS_MAX 10000

/*
 * A column and the member of a result that it shows: "floor.point.2" is an element of a member of a
 * member, and "#0" a number of the row that was asked.
 */
struct batch_column {
    const char *heading, *member;
};

struct batch {
    const char *call;                /* "/height", after the locale's path */
    bool is_of_world;                /* call is the whole path; the words hold no locale */
    const char *member;              /* "points": where the items go in the body */
    const struct input_shape *shape; /* of an item */
    size_t words_per_row;            /* of an item on the command line */
    const void *context;             /* the command's options, for the functions below */
    const char *pair[2]; /* an item has these members of three numbers; NULL: it is its numbers */
    /* An item of the body, NULL without memory; in place of `pair`. */
    cJSON *(*encode)(const void *context, const struct input_row *row);

    /* The table of a terminal. */
    const struct batch_column *columns; /* the last one's heading is NULL */
    /* The cells of one result; NULL: what the columns name. */
    void (*show)(const void *context, struct table *table, const struct input_row *row,
                 const cJSON *result);
    /* What a terminal sees below the table of one result; may be NULL. */
    enum err_code (*explain)(const cJSON *result, struct err *err);
};

/*
 * Sends every row of the command line after the locale, or of standard input. body: the other
 * members of the request, which are freed here; NULL: there was no memory for them. The items are
 * added to it and taken out again.
 *
 * Without words and with a terminal as standard input it is a misuse. Rows are read, sent and
 * printed BATCH_ITEMS_MAX at a time. A line that cannot be read ends the command after the lines
 * before it were answered. A stream without a row is no error; a line on standard error reports it.
 */
enum kota_exit batch_run(struct kota *kota, const struct batch *batch, cJSON *body);

/* A body that names a layer, if any; NULL without memory. */
cJSON *batch_body(const char *layer);

/* Reads standard input when the command line has no items. False: kota->err has the reason. */
bool batch_input(struct kota *kota, struct input *input);

/* Numbers that keep their bits; NULL without memory. */
cJSON *batch_number(double value);
cJSON *batch_numbers(const double *values, size_t count);

/* Adds the numbers of an option, `count` of at most four, as a member; nothing where text is NULL:
 * the option is not given. ERR_BAD_INPUT names the option. */
enum err_code batch_add_option(cJSON *body, const char *name, const char *option, const char *text,
                               size_t count, struct err *err);

/* Adds a number, or numbers, or an optional text (NULL: nothing is added). False without memory. */
bool batch_add(cJSON *object, const char *name, cJSON *value);
bool batch_add_text(cJSON *object, const char *name, const char *text);

/* Appends the revision of the whole answer, if it has one, to a result. */
enum err_code batch_add_revision(cJSON *result, const cJSON *answer, struct err *err);

/* The members that every answer has, checked: results is an array of `count` objects. */
enum err_code batch_check_results(const cJSON *answer, size_t count, const cJSON **results,
                                  struct err *err);

#endif
