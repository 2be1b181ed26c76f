/*
 * Options for people: "  --name VALUE     its meaning", the texts in one column.
 *
 * The column is after the longest option, at most at COLUMN_MAX; where a name is longer than that
 * its text begins on the next line. Lines are broken only where the table breaks them.
 */
#include "client/help.h"

#include "client/lib/kota.h"

#include <string.h>

enum { INDENT = 2, GAP = 2, COLUMN_MAX = 25 };

size_t help_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static size_t option_width(const struct kota_option *option)
{
    return INDENT + 2 + strlen(option->name) + (option->value ? 1 + help_width(option->value) : 0);
}

static size_t text_column(const struct kota_option *table)
{
    size_t column = 0;

    for (; table->name || table->help; table++) {
        size_t wanted = table->name ? option_width(table) + GAP : 0;

        if (wanted > column && wanted <= COLUMN_MAX)
            column = wanted;
    }
    return column ? column : COLUMN_MAX;
}

static void print_option(FILE *stream, const struct kota_option *option, size_t column)
{
    size_t width = option_width(option);
    const char *line = option->help;

    fprintf(stream, "%*s--%s%s%s", INDENT, "", option->name, option->value ? " " : "",
            option->value ? option->value : "");
    if (width + GAP > column) {
        fprintf(stream, "\n");
        width = 0;
    }
    for (;;) {
        size_t length = strcspn(line, "\n");

        fprintf(stream, "%*s%.*s\n", (int)(column - width), "", (int)length, line);
        if (line[length] == '\0')
            return;
        line += length + 1;
        width = 0;
    }
}

void help_print_version(FILE *stream)
{
    fprintf(stream, "kota %s\n", KOTA_VERSION);
}

void help_print_options(FILE *stream, const struct kota_option *table)
{
    size_t column = text_column(table);

    for (const struct kota_option *at = table; at->name || at->help; at++) {
        if (at->name)
            print_option(stream, at, column);
        else
            fprintf(stream, "%s%s\n", at == table ? "" : "\n", at->help);
    }
}
