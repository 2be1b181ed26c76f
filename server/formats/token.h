/*
 * Texts whose words are separated by white space and whose line ends mean nothing: ASC, PLY, STL.
 */
#ifndef KOTA_FORMATS_TOKEN_H
#define KOTA_FORMATS_TOKEN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Begin with start, at and end; bytes are borrowed. */
struct token_reader {
    const char *start, *at, *end;
    const char *text; /* the last token read, [length] */
    size_t length;
};

static inline bool token_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads the next token; false at the end of the file. */
static inline bool token_next(struct token_reader *reader)
{
    const char *at = reader->at, *end = reader->end;

    while (at < end && token_is_space(*at))
        at++;
    reader->text = at;
    while (at < end && !token_is_space(*at))
        at++;
    reader->at = at;
    reader->length = (size_t)(at - reader->text);
    return reader->length > 0;
}

/* Is the last token this word, in any case? */
bool token_is(const struct token_reader *reader, const char *word);

/* Goes to the end of the line that the last token is in. */
void token_skip_line(struct token_reader *reader);

/*
 * ERR_BAD_INPUT with the line and the text of the last token, cut and made printable.
 * format begins the message: "PLY". O(the file).
 */
enum err_code token_error(const struct token_reader *reader, const char *format, const char *what,
                          struct err *err);

/* The last token as a finite number; ERR_BAD_INPUT. */
enum err_code token_number(const struct token_reader *reader, const char *format, double *out,
                           struct err *err);

#endif
