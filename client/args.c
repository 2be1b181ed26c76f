/*
 * The command line. getopt_long is not used: it takes abbreviated names (so that a new option can
 * break an old script), reads "-5,3" as an option, and prints its own messages.
 *
 * The words of a command and its options may be mixed. The first word, the command's name, decides
 * which options exist besides the common ones; that is why the caller steps from word to word.
 */
#include "client/args.h"

#include <string.h>

static bool is_option(const struct args *args, const char *text)
{
    if (args->only_words || text[0] != '-' || text[1] == '\0')
        return false;
    return strchr("0123456789.", text[1]) == NULL;
}

static const struct args_option *find_option(const struct args_option *table, const char *name,
                                             size_t length)
{
    for (; table && table->name; table++)
        if (strlen(table->name) == length && memcmp(table->name, name, length) == 0)
            return table;
    return NULL;
}

static enum err_code take_value(const struct args_option *option, const char *value,
                                struct err *err)
{
    if (option->text) {
        *option->text = value;
        return ERR_OK;
    }
    if (option->list->count == ARGS_LIST_MAX)
        return err_set(err, ERR_BAD_INPUT, "--%s is given more than %d times", option->name,
                       ARGS_LIST_MAX);
    option->list->at[option->list->count++] = value;
    return ERR_OK;
}

/* Reads the option argv[next] and, where it takes one, its value. */
static enum err_code take_option(struct args *args, const struct args_option *own,
                                 const struct args_option *common, struct err *err)
{
    const char *text = args->argv[args->next++];
    const char *name = text[1] == '-' ? text + 2 : strcmp(text, "-h") == 0 ? "help" : "";
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct args_option *option = find_option(own, name, length);

    if (!option)
        option = find_option(common, name, length);
    if (!option)
        return err_set(err, ERR_BAD_INPUT, "unknown option %.80s", text);
    if (option->flag) {
        if (equals)
            return err_set(err, ERR_BAD_INPUT, "--%s takes no value", option->name);
        *option->flag = true;
        return ERR_OK;
    }
    if (equals)
        return take_value(option, equals + 1, err);
    if (args->next >= args->argc)
        return err_set(err, ERR_BAD_INPUT, "--%s needs a value", option->name);
    return take_value(option, args->argv[args->next++], err);
}

enum args_step args_next(struct args *args, const struct args_option *own,
                         const struct args_option *common, const char **word, struct err *err)
{
    while (args->next < args->argc) {
        const char *text = args->argv[args->next];

        if (!args->only_words && strcmp(text, "--") == 0) {
            args->only_words = true;
            args->next++;
            continue;
        }
        if (!is_option(args, text)) {
            *word = text;
            args->next++;
            return ARGS_WORD;
        }
        if (take_option(args, own, common, err))
            return ARGS_FAULT;
    }
    return ARGS_END;
}
