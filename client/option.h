/*
 * The table of a command's options.
 */
#ifndef KOTA_CLIENT_OPTION_H
#define KOTA_CLIENT_OPTION_H

#include <stdbool.h>
#include <stddef.h>

/*
 * One option: the command line is read from it, and --help, the manual page and the completion of
 * shells are written from it. A table ends with an empty entry; an entry without a name is a
 * heading between the options.
 */
struct kota_option {
    const char *name;  /* without the dashes */
    const char *also;  /* a former name, still accepted; NULL: nothing else */
    const char *value; /* the name of its value in --help, "X,Y"; NULL: a flag */
    const char *help;  /* lines, joined by newlines, without the last one */
    /* What completion offers: words parted by blanks, or ":file", ":locale", ":layer"; NULL: none.
     */
    const char *words;
    bool is_open; /* a value that is none of the words may be right, too */
    bool repeats; /* may be given several times */
    /* offsetof within the command's options: a bool of a flag, a const char *, or, when it repeats,
       a struct args_list. */
    size_t at;
};

/* A row of the table; further members follow as in an initializer. */
#define COMMAND_OPTION(options, member, option, placeholder, text, ...)                            \
    {                                                                                              \
        .name = option, .value = placeholder, .help = text, .at = offsetof(options, member),       \
        __VA_ARGS__                                                                                \
    }

#endif
