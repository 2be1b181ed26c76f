/*
 * What every command of `kota` shares: the common options, the connection, the way to fail.
 */
#ifndef KOTA_CLIENT_KOTA_H
#define KOTA_CLIENT_KOTA_H

#include "client/args.h"
#include "client/call.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of the program. */
enum kota_exit {
    KOTA_OK = 0,
    KOTA_FAILED = 1, /* a call failed, or its answer could not be printed */
    KOTA_MISUSED = 2 /* the command line or the input is wrong */
};

struct kota {
    struct args args;
    struct args_option common[6]; /* --url --token-file --json --timeout --help */
    const char *url, *token_file, *timeout;
    bool is_json; /* --json, or standard output is no terminal */
    bool wants_help;

    const struct kota_command *command;
    const char **words; /* [word_count] what stands on the command line behind the command */
    size_t word_count;
    struct call *call;
    double timeout_s; /* --timeout, once kota_begin has read it */
    struct err err;   /* the reason of a failure */
};

struct kota_command {
    const char *name;
    const char *synopsis; /* "ID X,Y…" */
    const char *summary;  /* one line of `kota --help` */
    const char *help;     /* the text of `kota NAME --help`, whole lines */
    enum kota_exit (*run)(struct kota *kota);
};

extern const struct kota_command command_ls, command_info, command_height, command_ray, command_los,
    command_contact, command_profile, command_pick, command_import, command_export, command_edit,
    command_watch, command_bench;

/*
 * The first thing a command does: reads its own options (a table that ends with an empty entry) and
 * the words, answers --help, and opens the connection. False when there is nothing more to do:
 * return *done then. With words_min 0 the first word need not be the id of a locale.
 */
bool kota_begin(struct kota *kota, const struct args_option *own, size_t words_min,
                size_t words_max, enum kota_exit *done);

/* Print the reason in kota->err as one line on standard error and return the exit code. */
enum kota_exit kota_failed(const struct kota *kota);
enum kota_exit kota_misused(const struct kota *kota);

/*
 * "/v1/locales/{id}" + rest into path. ERR_BAD_INPUT when words[0] is no id.
 */
#define KOTA_PATH_MAX 1024
enum err_code kota_locale_path(struct kota *kota, const char *rest, char path[KOTA_PATH_MAX]);

/* ERR_BAD_INPUT unless text matches [A-Za-z0-9_-]{1,64}. */
enum err_code kota_check_id(const char *text, struct err *err);

#endif
