/*
 * kota manual: the manual page, in mdoc(7), from the tables that the command line is read by.
 *
 * `make` writes it to a file for `make install`; `kota manual | man -l -` shows it where it is not
 * installed. Nothing in it is written twice: commands, options and examples are those of --help.
 */
#include "client/kota.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX = 76 };

/* Text of a line, with troff's control characters escaped. */
static void print_text(const char *text, size_t length)
{
    static const struct {
        const char *utf8, *troff;
    } signs[] = {{"…", "\\&..."}, {"“", "\\(lq"}, {"”", "\\(rq"}};

    for (size_t i = 0; i < length;) {
        size_t sign = 0;

        while (sign < 3 && strncmp(text + i, signs[sign].utf8, strlen(signs[sign].utf8)) != 0)
            sign++;
        if (sign < 3) {
            fputs(signs[sign].troff, stdout);
            i += strlen(signs[sign].utf8);
            continue;
        }
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else
            fputc(text[i], stdout);
        i++;
    }
}

/* An argument of a macro: in quotes, and not one of the words that are macros themselves. */
static void print_argument(const char *text, size_t length)
{
    fputs(" \"\\&", stdout);
    for (size_t i = 0; i < length;) {
        size_t run = strcspn(text + i, "\"");

        if (run > length - i)
            run = length - i;
        print_text(text + i, run);
        i += run;
        if (i < length) {
            fputs("\\(dq", stdout);
            i++;
        }
    }
    fputc('"', stdout);
}

/* Running text: a line for each sentence, none longer than LINE_MAX, as mdoc wants it. */
static void print_flow(const char *text, size_t length)
{
    size_t column = 0;

    for (size_t i = 0; i < length;) {
        size_t blank = strspn(text + i, " \n"), word;

        if (i + blank >= length)
            break;
        i += blank;
        word = strcspn(text + i, " \n");
        if (word > length - i)
            word = length - i;
        if (column > 0 && (column + word + 1 > LINE_MAX || strchr(".?!", text[i - blank - 1]))) {
            fputc('\n', stdout);
            column = 0;
        }
        if (column > 0)
            fputc(' ', stdout);
        if (column == 0 && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stdout);
        print_text(text + i, word);
        column += word + (column > 0);
        i += word;
    }
    fputc('\n', stdout);
}

/* Is this a line that keeps its form? */
static bool is_literal_line(const char *line)
{
    return *line == ' ' || strncmp(line, "kota ", 5) == 0;
}

/* Paragraphs parted by empty lines; lines that are set in keep their breaks. */
static void print_paragraphs(const char *text)
{
    bool needs_break = false;

    while (*text) {
        const char *end = text;
        bool is_literal = is_literal_line(text);

        if (*text == '\n') {
            needs_break = true;
            text++;
            continue;
        }
        while (*end && *end != '\n' && is_literal_line(end) == is_literal) {
            end += strcspn(end, "\n");
            end += *end == '\n';
        }
        if (is_literal) {
            printf(".Bd -literal -offset indent\n");
            for (const char *line = text; line < end; line += strcspn(line, "\n") + 1) {
                print_text(line, strcspn(line, "\n"));
                fputc('\n', stdout);
            }
            printf(".Ed\n");
        } else {
            if (needs_break)
                printf(".Pp\n");
            print_flow(text, (size_t)(end - text));
        }
        needs_break = false;
        text = end;
    }
}

static void print_options(const struct kota_option *table)
{
    bool is_open = false;

    for (; table->name || table->help; table++) {
        const char *help = table->help;

        if (!table->name) {
            if (is_open)
                printf(".El\n");
            is_open = false;
            printf(".Pp\n");
            print_text(help, strlen(help));
            fputc('\n', stdout);
            continue;
        }
        if (!is_open)
            printf(".Bl -tag -width Ds\n");
        is_open = true;
        printf(".It Fl \\-%s", table->name);
        if (table->value) {
            fputs(" Ar", stdout);
            print_argument(table->value, strlen(table->value));
        }
        fputc('\n', stdout);
        print_flow(help, strlen(help));
    }
    if (is_open)
        printf(".El\n");
}

static void print_command(const struct kota_command *command)
{
    printf(".Ss kota %s\n", command->name);
    printf(".Nm kota Cm %s\n", command->name);
    if (*command->synopsis) {
        fputs(".Ar", stdout);
        print_argument(command->synopsis, strlen(command->synopsis));
        fputc('\n', stdout);
    }
    if (!is_literal_line(command->help))
        printf(".Pp\n");
    print_paragraphs(command->help);
    if (command->options)
        print_options(command->options);
    if (command->shared)
        print_options(command->shared);
}

static void print_examples(void)
{
    printf(".Sh EXAMPLES\nOn the demo world:\n.Bd -literal -offset indent\n");
    for (size_t i = 0; kota_commands[i]; i++)
        for (size_t k = 0; kota_commands[i]->examples && kota_commands[i]->examples[k]; k++) {
            const char *example = kota_commands[i]->examples[k];

            print_text(example, strlen(example));
            fputc('\n', stdout);
        }
    printf(".Ed\n");
}

static enum kota_exit manual_run(struct kota *kota)
{
    enum kota_exit done;

    if (!kota_begin(kota, NULL, 0, 0, &done))
        return done;
    printf(".Dd November 21, 2026\n.Dt KOTA 1\n.Os\n.Sh NAME\n.Nm kota\n"
           ".Nd ask a terrain server\n.Sh SYNOPSIS\n.Nm kota\n.Op Ar option \\&...\n"
           ".Ar command\n.Op Ar argument \\&...\n.Sh DESCRIPTION\n"
           "Asks a running\n.Xr kotad 8\nabout ground, and changes it.\n"
           "Answers are tables on a terminal and lines of JSON in a pipe;\n"
           "what goes wrong is one line on standard error.\n"
           "Words and options may stand in any order;\n.Fl \\-\nends the options.\n"
           "Every command has these:\n");
    print_options(kota_common_options);
    printf(".Sh COMMANDS\n");
    for (size_t i = 0; kota_commands[i]; i++)
        print_command(kota_commands[i]);
    printf(".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
           ".It Ev KOTA_URL\nwhere kotad listens, unless\n.Fl \\-url\nis given.\n"
           ".It Ev KOTA_TOKEN_FILE\nthe file of the token, unless\n.Fl \\-token\\-file\nis given.\n"
           ".It Ev SSL_CERT_FILE\nthe certificates that an https server is checked by, "
           "in place of the system's.\n"
           ".It Ev KOTA_GDAL\nthe library that is opened as GDAL, in place of the installed one.\n"
           ".El\n"
           ".Sh EXIT STATUS\n"
           "0 when all was answered, 1 when a call failed,\n"
           "2 when the command line or the input is wrong.\n"
           "A program that is ended by a signal leaves no half-written file.\n");
    print_examples();
    printf(".Sh SEE ALSO\n.Xr kotad 8\n");
    return KOTA_OK;
}

const struct kota_command command_manual = {
    .name = "manual",
    .synopsis = "",
    .summary = "the manual page, in mdoc",
    .help = "Prints the manual page of kota: kota manual | man -l -\n",
    .examples = (const char *const[]){"kota manual", NULL},
    .is_offline = true,
    .run = manual_run,
};
