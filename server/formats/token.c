/*
 * Tokens are found by their ends, never by a terminator, and parsed by decimal.c, which no locale
 * can turn ("12,5" is an error, not 12). Lines are counted only when an error needs their number.
 */
#include "formats/token.h"

#include "base/text/decimal.h"
#include "formats/word.h"

#include <string.h>
#include <strings.h>

bool token_is(const struct token_reader *reader, const char *word)
{
    return reader->length == strlen(word) && strncasecmp(reader->text, word, reader->length) == 0;
}

void token_skip_line(struct token_reader *reader)
{
    while (reader->at < reader->end && *reader->at != '\n' && *reader->at != '\r')
        reader->at++;
}

enum err_code token_error(const struct token_reader *reader, const char *format, const char *what,
                          struct err *err)
{
    char shown[WORD_SHOWN_MAX + 1];
    size_t line = 1;

    word_show(reader->text, reader->length, shown);
    for (const char *at = reader->start; at < reader->text; at++)
        line += *at == '\n';
    return err_set(err, ERR_BAD_INPUT, "%s: line %zu: \"%s\" %s", format, line, shown, what);
}

enum err_code token_number(const struct token_reader *reader, const char *format, double *out,
                           struct err *err)
{
    switch (decimal_parse(reader->text, reader->length, out)) {
    case DECIMAL_OK:
        return ERR_OK;
    case DECIMAL_NAN:
    case DECIMAL_INFINITE:
        return token_error(reader, format, "is not finite", err);
    case DECIMAL_MALFORMED:
        break;
    }
    return token_error(reader, format, "is not a number", err);
}
