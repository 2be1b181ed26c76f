/*
 * Output: tables and JSON lines.
 *
 * A line is complete in memory before it is given to the stream, and nothing of a batch is given to
 * the stream before its answer has been checked: a reader of the pipe never gets half a line. On a
 * terminal, text from the daemon loses its control characters, so that the title of a locale cannot
 * move the cursor.
 *
 * cJSON prints numbers within an epsilon; here they become raw text by number_format first, so that
 * a height passes through this program without losing a bit.
 */
#include "client/print.h"

#include "base/check.h"
#include "client/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES_MAX 200
#define COLUMN_GAP 2

struct table {
    const char *const *headings;
    size_t columns;
    size_t widths[TABLE_COLUMNS_MAX]; /* in characters; they only grow */
    char **cells;                     /* [count], row by row */
    size_t count, capacity;
    bool has_printed;
    bool is_out_of_memory;
};

/* ---- JSON lines --------------------------------------------------------------------------- */

/* Makes every number below value raw text. False without memory. */
static bool numbers_exact(cJSON *value)
{
    char text[NUMBER_TEXT_MAX];
    cJSON *child;

    if (cJSON_IsNumber(value) && isfinite(value->valuedouble)) {
        number_format(value->valuedouble, text);
        value->valuestring = cJSON_malloc(strlen(text) + 1);
        if (!value->valuestring)
            return false;
        memcpy(value->valuestring, text, strlen(text) + 1);
        value->type = cJSON_Raw;
        return true;
    }
    cJSON_ArrayForEach(child, value) if (!numbers_exact(child)) return false;
    return true;
}

static enum err_code stream_error(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "standard output cannot be written");
}

enum err_code print_json_line(FILE *stream, cJSON *value, struct err *err)
{
    char *text = numbers_exact(value) ? cJSON_PrintUnformatted(value) : NULL;
    bool is_written;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    is_written = fprintf(stream, "%s\n", text) >= 0;
    cJSON_free(text);
    return is_written ? ERR_OK : stream_error(err);
}

/* ---- cells -------------------------------------------------------------------------------- */

void print_sanitize(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at == 0x7f)
            *at = '?';
        else if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) /* U+0080..U+009F in UTF-8 */
            *at = at[1] = '?';
    }
}

/* How many characters UTF-8 text takes, counting each as one column. */
static size_t text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void cell_append(char cell[CELL_BYTES_MAX], const char *text)
{
    size_t length = strlen(cell);
    int wanted = snprintf(cell + length, CELL_BYTES_MAX - length, "%s", text);

    if (wanted < 0 || length + (size_t)wanted < CELL_BYTES_MAX)
        return;
    for (length = CELL_BYTES_MAX - 2; ((unsigned char)cell[length] & 0xc0) == 0x80; length--)
        ; /* the character that was cut, back to its first byte */
    cell[length] = '\0';
}

static void cell_of_value(char cell[CELL_BYTES_MAX], const cJSON *value)
{
    char number[NUMBER_TEXT_MAX];
    const cJSON *child;

    if (cJSON_IsString(value)) {
        cell_append(cell, value->valuestring);
    } else if (cJSON_IsNumber(value)) {
        snprintf(number, sizeof(number), "%.9g", value->valuedouble);
        cell_append(cell, number);
    } else if (cJSON_IsBool(value)) {
        cell_append(cell, cJSON_IsTrue(value) ? "yes" : "no");
    } else if (cJSON_IsArray(value)) {
        cJSON_ArrayForEach(child, value)
        {
            cell_of_value(cell, child);
            if (child->next)
                cell_append(cell, ", ");
        }
    } else if (cJSON_IsObject(value)) {
        cell_append(cell, "{…}");
    } else {
        cell_append(cell, "-");
    }
}

/* ---- tables ------------------------------------------------------------------------------- */

struct table *table_open(const char *const *headings, size_t count)
{
    struct table *table = calloc(1, sizeof(*table));

    CHECK(count >= 1 && count <= TABLE_COLUMNS_MAX);
    if (!table)
        return NULL;
    table->headings = headings;
    table->columns = count;
    for (size_t i = 0; i < count; i++)
        table->widths[i] = text_width(headings[i]);
    return table;
}

static void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    table->count = 0;
}

void table_close(struct table *table)
{
    if (!table)
        return;
    table_clear(table);
    free(table->cells);
    free(table);
}

void table_text(struct table *table, const char *text)
{
    size_t column = table->count % table->columns;
    char *copy = strdup(text);

    if (copy && table->count == table->capacity) {
        size_t capacity = 2 * table->capacity + 256;
        char **grown = reallocarray(table->cells, capacity, sizeof(*grown));

        if (grown) {
            table->cells = grown;
            table->capacity = capacity;
        }
    }
    if (!copy || table->count == table->capacity) {
        table->is_out_of_memory = true;
        free(copy);
        return;
    }
    print_sanitize(copy);
    if (text_width(copy) > table->widths[column])
        table->widths[column] = text_width(copy);
    table->cells[table->count++] = copy;
}

void table_value(struct table *table, const cJSON *value)
{
    char cell[CELL_BYTES_MAX] = "";

    cell_of_value(cell, value);
    table_text(table, cell);
}

void table_number(struct table *table, double value)
{
    char text[NUMBER_TEXT_MAX];

    snprintf(text, sizeof(text), "%.9g", value);
    table_text(table, text);
}

/* One line of cells, padded but for the last one. */
static bool row_print(const struct table *table, const char *const *cells, FILE *stream)
{
    for (size_t i = 0; i + 1 < table->columns; i++) {
        int pad = (int)(table->widths[i] - text_width(cells[i])) + COLUMN_GAP;

        if (fprintf(stream, "%s%*s", cells[i], pad, "") < 0)
            return false;
    }
    return fprintf(stream, "%s\n", cells[table->columns - 1]) >= 0;
}

enum err_code table_print(struct table *table, FILE *stream, struct err *err)
{
    bool is_written = true;

    if (table->is_out_of_memory)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    CHECK(table->count % table->columns == 0);
    if (!table->has_printed)
        is_written = row_print(table, table->headings, stream);
    table->has_printed = true;
    for (size_t i = 0; is_written && i < table->count; i += table->columns)
        is_written = row_print(table, (const char *const *)&table->cells[i], stream);
    table_clear(table);
    return is_written ? ERR_OK : stream_error(err);
}

/* ---- one document for people -------------------------------------------------------------- */

static bool members_print(FILE *stream, const char *prefix, const cJSON *object)
{
    const cJSON *child;

    cJSON_ArrayForEach(child, object)
    {
        char cell[CELL_BYTES_MAX] = "", name[CELL_BYTES_MAX];

        snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", child->string);
        print_sanitize(name);
        if (cJSON_IsObject(child)) {
            if (!members_print(stream, name, child))
                return false;
            continue;
        }
        cell_of_value(cell, child);
        print_sanitize(cell);
        if (fprintf(stream, "%-22s  %s\n", name, cell) < 0)
            return false;
    }
    return true;
}

enum err_code print_members(FILE *stream, const cJSON *object, struct err *err)
{
    return members_print(stream, "", object) ? ERR_OK : stream_error(err);
}
