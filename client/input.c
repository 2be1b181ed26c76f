/*
 * Rows of numbers. A stream has one row a line: as CSV ("1,2"), parted by blanks, as a JSON array
 * ("[1,2]") or as a JSON object ({"x":1,"y":2}, {"point":[1,2]}); empty lines and lines that begin
 * with '#' are passed over. When no field of the first line is a number it is a header: it names
 * the columns, in any order and among others, separated by commas, semicolons or tabs, and the
 * lines below are then CSV with as many fields, which may be in quotes. On the command line a row
 * is one word, or several words of three numbers each (a ray's origin and direction), or a word for
 * each number.
 *
 * A line is never read further than INPUT_LINE_BYTES_MAX, so that a stream without line ends cannot
 * fill the memory, and nothing but that line is kept. A NUL byte in a line is refused, not taken
 * for its end.
 */
#include "client/input.h"

#include "base/check.h"
#include "client/number.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct input_shape input_ground_points = {
    .numbers_min = 2, .numbers_max = 2, .names = {"x", "y"}, .vectors = {{"point", 0, 2}}};
const struct input_shape input_points = {
    .numbers_min = 3, .numbers_max = 3, .names = {"x", "y", "z"}, .vectors = {{"point", 0, 3}}};
const struct input_shape input_rays = {.numbers_min = 6,
                                       .numbers_max = 7,
                                       .names = {"ox", "oy", "oz", "dx", "dy", "dz", "t_max"},
                                       .vectors = {{"origin", 0, 3}, {"direction", 3, 3}}};
const struct input_shape input_segments = {.numbers_min = 6,
                                           .numbers_max = 6,
                                           .names = {"x1", "y1", "z1", "x2", "y2", "z2"},
                                           .vectors = {{"from", 0, 3}, {"to", 3, 3}}};
const struct input_shape input_moves = {.numbers_min = 6,
                                        .numbers_max = 6,
                                        .names = {"x", "y", "z", "vx", "vy", "vz"},
                                        .vectors = {{"from", 0, 3}, {"velocity", 3, 3}}};

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

/* ---- JSON objects ---------------------------------------------------------------------------- */

static enum err_code take_number(const cJSON *value, const char *name, double *out, struct err *err)
{
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble))
        return err_set(err, ERR_BAD_INPUT, "\"%s\" is %s", name,
                       value ? "no finite number" : "missing");
    *out = value->valuedouble;
    return ERR_OK;
}

static enum err_code take_vector(const cJSON *array, const struct input_vector *vector,
                                 double *values, struct err *err)
{
    if (!cJSON_IsArray(array) || (size_t)cJSON_GetArraySize(array) < vector->count)
        return err_set(err, ERR_BAD_INPUT, "\"%s\" is no array of %zu numbers", vector->name,
                       vector->count);
    for (size_t i = 0; i < vector->count; i++)
        if (take_number(cJSON_GetArrayItem(array, (int)i), vector->name, &values[vector->at + i],
                        err))
            return err->code;
    return ERR_OK;
}

static enum err_code take_object(const struct input_shape *shape, const cJSON *object,
                                 struct input_row *row, struct err *err)
{
    bool has_vectors = cJSON_HasObjectItem(object, shape->vectors[0].name);

    row->count = shape->numbers_min;
    for (size_t i = 0; has_vectors && i < 2 && shape->vectors[i].name; i++)
        if (take_vector(cJSON_GetObjectItemCaseSensitive(object, shape->vectors[i].name),
                        &shape->vectors[i], row->values, err))
            return err->code;
    for (size_t i = has_vectors ? shape->numbers_min : 0; i < shape->numbers_max; i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, shape->names[i]);

        if (i >= shape->numbers_min && (!value || cJSON_IsNull(value)))
            continue;
        if (take_number(value, shape->names[i], &row->values[i], err))
            return err->code;
        row->count = i + 1 > row->count ? i + 1 : row->count;
    }
    return ERR_OK;
}

static enum err_code read_object(const struct input_shape *shape, const char *line,
                                 struct input_row *row, struct err *err)
{
    cJSON *object = cJSON_ParseWithOpts(line, NULL, 1);

    if (cJSON_IsObject(object))
        take_object(shape, object, row, err);
    else
        err_set(err, ERR_BAD_INPUT, "'%.60s' is no JSON object", line);
    cJSON_Delete(object);
    return err->code;
}

/* ---- CSV below a header ---------------------------------------------------------------------- */

/*
 * The next field of a line, without blanks and quotes around it, into out; *at moves after its
 * delimiter, or becomes NULL after the last field. False: a quote is not closed.
 */
static bool next_field(const char **at, char delimiter, char out[INPUT_LINE_BYTES_MAX])
{
    const char *from = *at + strspn(*at, delimiter == '\t' ? " " : " \t");
    size_t length = 0;

    if (*from == '"') {
        for (from++; *from && !(*from == '"' && from[1] != '"'); from++) {
            from += *from == '"';
            out[length++] = *from;
        }
        if (*from++ != '"')
            return false;
        from += strcspn(from, (char[]){delimiter, '\0'});
    } else {
        while (*from && *from != delimiter)
            out[length++] = *from++;
        while (length > 0 && strchr(" \t\r", out[length - 1]))
            length--;
    }
    out[length] = '\0';
    *at = *from ? from + 1 : NULL;
    return true;
}

/* Is this line a header: has it words, and no field that begins like a number? */
static bool is_header(const char *line, char *delimiter)
{
    char field[INPUT_LINE_BYTES_MAX];
    size_t words = 0;
    double number;

    *delimiter = line[strcspn(line, ",;\t")];
    if (*delimiter == '\0')
        *delimiter = ',';
    if (*line == '[' || *line == '{')
        return false;
    while (line) {
        if (!next_field(&line, *delimiter, field) || number_scan(field, &number) > 0 ||
            strcasecmp(field, "nan") == 0 || strcasecmp(field, "inf") == 0)
            return false;
        words += *field != '\0';
    }
    return words > 0;
}

static enum err_code read_header(struct input *input, const char *line, struct err *err)
{
    const struct input_shape *shape = input->shape;
    struct input_header *header = &input->header;
    char field[INPUT_LINE_BYTES_MAX];
    const char *at = line;
    bool is_known[INPUT_NUMBERS_MAX] = {false};

    for (header->fields = 0; at; header->fields++) {
        next_field(&at, header->delimiter, field);
        for (size_t i = 0; i < shape->numbers_max; i++) {
            if (strcasecmp(field, shape->names[i]) != 0)
                continue;
            if (is_known[i])
                return err_set(err, ERR_BAD_INPUT, "the column %s is there twice", shape->names[i]);
            is_known[i] = true;
            header->field_of[i] = header->fields;
        }
    }
    for (size_t i = 0; i < shape->numbers_max; i++) {
        if (is_known[i])
            continue;
        header->field_of[i] = header->fields;
        if (i < shape->numbers_min)
            return err_set(err, ERR_BAD_INPUT,
                           "'%.60s': no numbers, and no header with a column %s", line,
                           shape->names[i]);
    }
    return ERR_OK;
}

static enum err_code read_fields(struct input *input, const char *line, struct input_row *row,
                                 struct err *err)
{
    const struct input_shape *shape = input->shape;
    const struct input_header *header = &input->header;
    char field[INPUT_LINE_BYTES_MAX];
    const char *at = line;
    size_t fields = 0;

    row->count = shape->numbers_min;
    for (; at; fields++) {
        if (!next_field(&at, header->delimiter, field))
            return err_set(err, ERR_BAD_INPUT, "a quote is not closed");
        for (size_t i = 0; i < shape->numbers_max; i++) {
            if (header->field_of[i] != fields || fields >= header->fields)
                continue;
            if (i >= shape->numbers_min && *field == '\0')
                continue; /* it may be missing */
            if (number_exact_list(field, &row->values[i], 1, err))
                return err->code;
            row->count = i + 1 > row->count ? i + 1 : row->count;
        }
    }
    if (fields != header->fields)
        return err_set(err, ERR_BAD_INPUT, "%zu fields, and the header has %zu", fields,
                       header->fields);
    return ERR_OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static enum err_code read_row(struct input *input, const char *line, struct input_row *row,
                              struct err *err)
{
    err->code = ERR_OK;
    if (*line == '{')
        return read_object(input->shape, line, row, err);
    if (input->header.delimiter)
        return read_fields(input, line, row, err);
    if (number_list(line, row->values, input->shape->numbers_min, input->shape->numbers_max,
                    &row->count, err) &&
        strchr(line, ';'))
        err_set(err, ERR_BAD_INPUT,
                "'%.40s': numbers are separated by commas or blanks; by ';' only below a header "
                "line, such as '%s;%s'",
                line, input->shape->names[0], input->shape->names[1]);
    return err->code;
}

static enum input_step line_fault(const struct input *input, const char *why, struct err *err)
{
    err_set(err, ERR_BAD_INPUT, "standard input, line %zu: %s", input->place, why);
    return INPUT_FAULT;
}

static enum input_step next_of_stream(struct input *input, struct input_row *row, struct err *err)
{
    char line[INPUT_LINE_BYTES_MAX];
    enum input_step step;
    struct err cause = {0};

    while ((step = read_line(input, line, err)) == INPUT_ROW) {
        const char *start = line;

        if (input->place == 1 && strncmp(start, "\xef\xbb\xbf", 3) == 0)
            start += 3; /* the mark that some programs put before UTF-8 */
        start += strspn(start, " \t\r");
        if (*start == '\0' || *start == '#')
            continue;
        if (!input->header.is_read) {
            input->header.is_read = true;
            if (is_header(start, &input->header.delimiter)) {
                if (read_header(input, start, &cause))
                    return line_fault(input, cause.msg, err);
                continue;
            }
            input->header.delimiter = '\0';
        }
        if (read_row(input, start, row, &cause))
            return line_fault(input, cause.msg, err);
        return INPUT_ROW;
    }
    return step;
}

/* Is each word one number, and are there as many as rows need? */
static bool are_single(const struct input *input)
{
    for (size_t i = 0; i < input->word_count; i++)
        if (input->words[i][strcspn(input->words[i], ", \t")] != '\0')
            return false;
    return input->word_count > 0 && input->word_count % input->shape->numbers_min == 0;
}

static enum input_step next_of_words(struct input *input, struct input_row *row, struct err *err)
{
    size_t share;

    if (input->place == 0 && are_single(input))
        input->words_per_row = input->shape->numbers_min;
    share = input->shape->numbers_min / input->words_per_row;
    if (input->place == input->word_count)
        return INPUT_END;
    if (input->word_count - input->place < input->words_per_row) {
        err_set(err, ERR_BAD_INPUT, "'%.80s' is the first of %zu arguments: kota %s %s",
                input->words[input->place], input->words_per_row, input->command, input->synopsis);
        return INPUT_FAULT;
    }
    row->count = 0;
    for (size_t i = 0; i < input->words_per_row; i++) {
        bool is_only = input->words_per_row == 1;
        size_t count;

        if (number_list(input->words[input->place + i], row->values + row->count, share,
                        is_only ? input->shape->numbers_max : share, &count, err))
            return INPUT_FAULT;
        row->count += count;
    }
    input->place += input->words_per_row;
    return INPUT_ROW;
}

enum input_step input_next(struct input *input, struct input_row *row, struct err *err)
{
    CHECK(input->shape->numbers_max <= INPUT_NUMBERS_MAX);
    if (input->stream)
        return next_of_stream(input, row, err);
    return next_of_words(input, row, err);
}
