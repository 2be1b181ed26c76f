/*
 * What every command of `kota` shares: the common options, the connection, the way to fail.
 */
#ifndef KOTA_CLIENT_KOTA_H
#define KOTA_CLIENT_KOTA_H

#include "base/exit_code.h"
#include "client/args.h"
#include "client/call.h"
#include "client/option.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of the program, which are those of all programs. */
enum kota_exit { KOTA_OK = EXIT_DONE, KOTA_FAILED = EXIT_FAILED, KOTA_MISUSED = EXIT_MISUSED };

#define KOTA_OPTIONS_MAX 32
#define KOTA_WORD_KINDS_MAX 4

struct kota {
    struct args args;
    const char *url, *token_file, *timeout, *ca_file;
    const char *at; /* of the commands that have kota_read_options, kota_live_options */
    bool is_live;
    bool is_json; /* --json, or standard output is no terminal */
    bool wants_help, wants_version;

    const struct kota_command *command;
    const char **words; /* [word_count] words of the command line after the command */
    size_t word_count;
    struct call *call;
    double timeout_s; /* --timeout, once kota_begin has read it */
    struct err err;   /* the reason of a failure */
};

struct kota_command {
    const char *name;
    const char *synopsis; /* "ID X,Y…" */
    const char *summary;  /* one line of `kota --help` */
    const char *help;     /* the text of `kota NAME --help` before the options, whole lines */
    const struct kota_option *options; /* NULL: none of its own */
    const struct kota_option *shared;  /* kota_read_options, kota_live_options; NULL: none */
    /* What completion offers for each word, as in kota_option; the last one counts for the rest. */
    const char *words[KOTA_WORD_KINDS_MAX];
    const char *const *examples; /* commands on the demo world, ended by NULL; all of them work */
    bool is_offline;             /* needs no daemon; its first word is no id */
    enum kota_exit (*run)(struct kota *kota);
};

extern const struct kota_command command_ls, command_info, command_height, command_ray, command_los,
    command_lit, command_sweep, command_move, command_contact, command_contains, command_locate,
    command_profile, command_pick, command_picture, command_import, command_export, command_rm,
    command_fork, command_edit, command_polygons, command_patch, command_impact, command_model,
    command_pin, command_pins, command_restore, command_history, command_revert, command_watch,
    command_bench, command_check, command_token, command_completion, command_manual;

/* All of them, in the order of --help, ended by NULL, and the options that each has. */
extern const struct kota_command *const kota_commands[];
extern const struct kota_option kota_common_options[];
/* --at of reads; the same with --live of what moves in patches of sand. They are in struct kota. */
extern const struct kota_option kota_read_options[], kota_live_options[];

/* NULL when there is none of that name. */
const struct kota_command *kota_find_command(const char *name);

/*
 * The first thing a command does: reads its options into the struct of its table (NULL: there is no
 * table) and the words, answers --help, and opens the connection. False when there is nothing more
 * to do: return *done then. With words_min 0 the first word need not be the id of a locale.
 */
bool kota_begin(struct kota *kota, void *options, size_t words_min, size_t words_max,
                enum kota_exit *done);

/* Opens kota->call by the common options; kota_begin does it unless the command is offline. */
enum err_code kota_connect(struct kota *kota);

/* Takes the first word away and returns it; the others move up. NULL when there is none. */
const char *kota_shift_word(struct kota *kota);

/* Print the reason in kota->err as one line on standard error and return the exit code. */
enum kota_exit kota_failed(const struct kota *kota);
enum kota_exit kota_misused(const struct kota *kota);

/*
 * Prints one document: a line of JSON, or names and values on a terminal; a locale with its layers
 * as a table. The error stays in kota->err. document may be changed.
 */
enum err_code kota_print(struct kota *kota, cJSON *document);
enum err_code kota_print_locale(struct kota *kota, cJSON *locale);

/*
 * "/v1/locales/{locale}" + rest into path. ERR_BAD_INPUT when words[0] is no id.
 */
#define KOTA_PATH_MAX 1024
enum err_code kota_locale_path(struct kota *kota, const char *rest, char path[KOTA_PATH_MAX]);
/* The same of a read, with what --at and --live say. */
enum err_code kota_question_path(struct kota *kota, const char *rest, char path[KOTA_PATH_MAX]);

/*
 * All locales, with or without their layers: *locales is an array, all pages in one; free it with
 * cJSON_Delete. The error stays in kota->err.
 */
enum err_code kota_get_locales(struct kota *kota, bool with_layers, cJSON **locales);

/* ERR_BAD_INPUT unless text matches [A-Za-z0-9_-]{1,64}. */
enum err_code kota_check_id(const char *text, struct err *err);

#endif
