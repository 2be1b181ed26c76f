/*
 * The command line, one step at a time: options in any place, words between them.
 *
 * "--name VALUE" and "--name=VALUE" are the same; "-h" is "--help"; "--" ends the options. An
 * argument such as -5,3 or -.5 is a word, not an option.
 */
#ifndef KOTA_CLIENT_ARGS_H
#define KOTA_CLIENT_ARGS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* The values of an option that may be given several times, in their order, borrowed from argv. */
#define ARGS_LIST_MAX 64
struct args_list {
    const char *at[ARGS_LIST_MAX];
    size_t count;
};

/* Tables end with an entry without a name. Exactly one of flag, text and list is set. */
struct args_option {
    const char *name;       /* without the dashes */
    bool *flag;             /* set to true when the option is given */
    const char **text;      /* gets the option's value, borrowed from argv; the last one counts */
    struct args_list *list; /* gets another value each time; more than it holds are a fault */
};

struct args {
    char **argv;
    int argc;
    int next;        /* index of the first argument that has not been read */
    bool only_words; /* "--" has been seen */
};

enum args_step { ARGS_END, ARGS_WORD, ARGS_FAULT };

/*
 * Reads options into own and common (either may be NULL) up to the next word or the end.
 *
 * word  out for ARGS_WORD, borrowed from argv
 *
 * ARGS_FAULT: err names the option that is unknown, lacks its value or has one too many.
 */
enum args_step args_next(struct args *args, const struct args_option *own,
                         const struct args_option *common, const char **word, struct err *err);

#endif
