/*
 * Rows of numbers. A stream has one row a line, as CSV ("1,2"), parted by blanks, or as a JSON
 * array
 * ("[1,2]"); empty lines and lines that begin with '#' are passed over. On the command line a row
 * is one word, or several words of three numbers each (a ray's origin and direction).
 *
 * A line is never read further than INPUT_LINE_BYTES_MAX, so that a stream without line ends cannot
 * fill the memory. A NUL byte in a line is refused, not taken for its end.
 */
#include "client/input.h"

#include "base/check.h"
#include "client/number.h"

#include <stdbool.h>
#include <string.h>

/* Reads one line without its end. INPUT_ROW, INPUT_END or INPUT_FAULT. */
static enum input_step read_line(struct input *input, char line[INPUT_LINE_BYTES_MAX],
                                 struct err *err)
{
    size_t length = 0;
    int c;

    while ((c = getc(input->stream)) != EOF && c != '\n') {
        if (c == '\0' || length + 1 >= INPUT_LINE_BYTES_MAX) {
            err_set(err, ERR_BAD_INPUT, "standard input, line %zu: %s", input->place + 1,
                    c == '\0' ? "a NUL byte" : "longer than 4095 bytes");
            return INPUT_FAULT;
        }
        line[length++] = (char)c;
    }
    if (ferror(input->stream)) {
        err_set(err, ERR_BAD_INPUT, "standard input cannot be read");
        return INPUT_FAULT;
    }
    line[length] = '\0';
    if (c == EOF && length == 0)
        return INPUT_END;
    input->place++;
    return INPUT_ROW;
}

static enum input_step next_of_stream(struct input *input, struct input_row *row, struct err *err)
{
    char line[INPUT_LINE_BYTES_MAX];
    enum input_step step;
    struct err cause;

    while ((step = read_line(input, line, err)) == INPUT_ROW) {
        const char *start = line + strspn(line, " \t\r");

        if (*start == '\0' || *start == '#')
            continue;
        if (!number_list(line, row->values, input->numbers_min, input->numbers_max, &row->count,
                         &cause))
            return INPUT_ROW;
        err_set(err, ERR_BAD_INPUT, "standard input, line %zu: %s", input->place, cause.msg);
        return INPUT_FAULT;
    }
    return step;
}

static enum input_step next_of_words(struct input *input, struct input_row *row, struct err *err)
{
    size_t share = input->numbers_min / input->words_per_row;

    if (input->place == input->word_count)
        return INPUT_END;
    if (input->word_count - input->place < input->words_per_row) {
        err_set(err, ERR_BAD_INPUT, "'%s' is not followed by what belongs to it",
                input->words[input->place]);
        return INPUT_FAULT;
    }
    row->count = 0;
    for (size_t i = 0; i < input->words_per_row; i++) {
        bool is_only = input->words_per_row == 1;
        size_t count;

        if (number_list(input->words[input->place + i], row->values + row->count, share,
                        is_only ? input->numbers_max : share, &count, err))
            return INPUT_FAULT;
        row->count += count;
    }
    input->place += input->words_per_row;
    return INPUT_ROW;
}

enum input_step input_next(struct input *input, struct input_row *row, struct err *err)
{
    CHECK(input->numbers_max <= INPUT_NUMBERS_MAX);
    if (input->stream)
        return next_of_stream(input, row, err);
    return next_of_words(input, row, err);
}
