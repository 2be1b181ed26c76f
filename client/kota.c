/*
 * kota: the command line of a running kotad.
 *
 * main() finds the command in the table below; each command is a file command_*.c that reads its
 * options by kota_begin(), calls by call.h and prints by print.h. Answers go to standard output,
 * everything else to standard error.
 *
 * Exit codes: 0 everything was answered, or help was asked for (also by no arguments), 1 a call
 * failed, 2 the command line or the input is wrong.
 * A failure is one line: the daemon's message, with its JSON pointer.
 */
#include "client/kota.h"

#include "base/text/nearest_word.h"
#include "base/check.h"
#include "base/standard_files.h"
#include "client/help.h"
#include "client/number.h"
#include "client/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_URL "http://127.0.0.1:7420"
#define DEFAULT_TIMEOUT "10"
#define COMMANDS_MAX 64
#define TIMEOUT_S_MAX 86400
#define ANSWER_BYTES_MAX ((size_t)256 << 20)
#define TOKEN_LINE_BYTES_MAX 4096

const struct kota_command *const kota_commands[] = {
    &command_ls,      &command_info,    &command_height,     &command_contact, &command_ray,
    &command_los,     &command_lit,     &command_sweep,      &command_move,    &command_profile,
    &command_pick,    &command_picture, &command_contains,   &command_locate,  &command_import,
    &command_export,  &command_rm,      &command_fork,       &command_edit,    &command_polygons,
    &command_patch,   &command_impact,  &command_model,      &command_pin,     &command_pins,
    &command_restore, &command_history, &command_revert,     &command_watch,   &command_check,
    &command_bench,   &command_token,   &command_completion, &command_manual,  NULL,
};

#define OPTION(...) COMMAND_OPTION(struct kota, __VA_ARGS__)

const struct kota_option kota_common_options[] = {
    OPTION(url, "url", "URL",
           "where kotad listens, http://, https:// or unix:PATH (environment "
           "KOTA_URL; " DEFAULT_URL ")"),
    OPTION(token_file, "token-file", "F",
           "a file with the bearer token, or with lines 'read TOKEN', 'edit TOKEN' "
           "(environment KOTA_TOKEN_FILE)",
           .words = ":file"),
    OPTION(ca_file, "cacert", "F",
           "a PEM file with the authorities to trust for https (environment SSL_CERT_FILE)",
           .words = ":file"),
    OPTION(is_json, "json", NULL, "JSON lines on a terminal, too; a pipe gets them anyway"),
    OPTION(timeout, "timeout", "S",
           "give a call up after S seconds, all its tries included (" DEFAULT_TIMEOUT ")"),
    OPTION(wants_help, "help", NULL, "help of the command"),
    OPTION(wants_version, "version", NULL, "the version"),
    {0},
};

#define AT_OPTION                                                                                  \
    OPTION(at, "at", "PIN",                                                                        \
           "of the locale as it was then: a pin (kota pin), or a revision that is held")
const struct kota_option kota_read_options[] = {AT_OPTION, {0}};
const struct kota_option kota_live_options[] = {
    AT_OPTION,
    OPTION(is_live, "live", NULL, "of ground and bodies as they move in patches of sand"),
    {0},
};

static const char exit_help[] =
    "Exit code: 0 all answered, 1 a call failed, 2 wrong command line or input.\n";

static void print_main_help(FILE *stream)
{
    fprintf(stream, "usage: kota [OPTION…] COMMAND [ARGUMENT…]\n\nCommands:\n");
    for (size_t i = 0; kota_commands[i]; i++)
        fprintf(stream, "  %-10s  %s\n", kota_commands[i]->name, kota_commands[i]->summary);
    fprintf(stream, "\nOptions of every command:\n");
    help_print_options(stream, kota_common_options);
    fprintf(stream, "\n%s", exit_help);
}

/* `kota` without any argument: its purpose, and the first commands to type. */
static enum kota_exit teach(void)
{
    printf(
        "kota asks a kotad about terrain: heights, floors and ceilings, rays, lines of sight.\n\n"
        "Start a daemon on the demo world: sh deploy/run, or\n"
        "  kotad --world /usr/share/kota/demo\n\n"
        "Then try:\n"
        "  kota ls                                      the locales of the world\n"
        "  kota height highlands 1000,2000              the height of the ground at x, y\n"
        "  kota contact village 100,100,50              floor and ceiling of a point\n"
        "  kota ray highlands 0,0,2000 1,1,-1           where a ray hits\n"
        "  kota los highlands 500,500,800 600,500,800   whether one point sees another\n\n"
        "All commands: kota --help. One command: kota help ray. Manual: man kota.\n"
        "Documents: /usr/share/doc/kota-doc/docs, or docs/ in the source.\n");
    return KOTA_OK;
}

static void print_command_help(const struct kota_command *command)
{
    printf("usage: kota %s%s%s\n\n%s\n", command->name, *command->synopsis ? " " : "",
           command->synopsis, command->help);
    if (command->options)
        help_print_options(stdout, command->options);
    if (command->shared)
        help_print_options(stdout, command->shared);
    if (command->options || command->shared)
        printf("\n");
    if (command->examples) {
        printf("Examples:\n");
        for (size_t i = 0; command->examples[i]; i++)
            printf("  %s\n", command->examples[i]);
        printf("\n");
    }
    printf("Options of every command:\n");
    help_print_options(stdout, kota_common_options);
    printf("\n%s", exit_help);
}

/* One line on standard error, after all of standard output. */
static void print_reason(const struct kota *kota, const char *suffix)
{
    char msg[sizeof(kota->err.msg)], pointer[sizeof(kota->err.pointer)];

    memcpy(msg, kota->err.msg, sizeof(msg));
    memcpy(pointer, kota->err.pointer, sizeof(pointer));
    print_sanitize(msg);
    print_sanitize(pointer);
    fflush(stdout);
    fprintf(stderr, "kota: %s%s%s%s%s\n", msg, *pointer ? " (at " : "", pointer,
            *pointer ? ")" : "", suffix);
}

enum kota_exit kota_failed(const struct kota *kota)
{
    print_reason(kota, "");
    return KOTA_FAILED;
}

enum kota_exit kota_misused(const struct kota *kota)
{
    char suffix[64];

    snprintf(suffix, sizeof(suffix), "; see kota%s%s --help", kota->command ? " " : "",
             kota->command ? kota->command->name : "");
    print_reason(kota, suffix);
    return KOTA_MISUSED;
}

enum err_code kota_check_id(const char *text, struct err *err)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789_-");

    if (length >= 1 && length <= 64 && text[length] == '\0')
        return ERR_OK;
    return err_set(err, ERR_BAD_INPUT, "'%.80s' is no id: 1 to 64 of A-Z a-z 0-9 _ -", text);
}

enum err_code kota_locale_path(struct kota *kota, const char *rest, char path[KOTA_PATH_MAX])
{
    if (kota_check_id(kota->words[0], &kota->err))
        return kota->err.code;
    if (snprintf(path, KOTA_PATH_MAX, "/v1/locales/%s%s", kota->words[0], rest) >= KOTA_PATH_MAX)
        return err_set(&kota->err, ERR_BAD_INPUT, "the request is too long");
    return ERR_OK;
}

enum err_code kota_question_path(struct kota *kota, const char *rest, char path[KOTA_PATH_MAX])
{
    const char *live = !kota->is_live ? "" : strchr(rest, '?') ? "&live=true" : "?live=true";
    const char *at = !kota->at ? "" : *live || strchr(rest, '?') ? "&at=" : "?at=";
    char question[KOTA_PATH_MAX];

    if (snprintf(question, sizeof question, "%s%s%s%s", rest, live, at, kota->at ? kota->at : "") >=
        KOTA_PATH_MAX)
        return err_set(&kota->err, ERR_BAD_INPUT, "the request is too long");
    return kota_locale_path(kota, question, path);
}

/* Is the rest of a line of a daemon's token file no token that could be sent? */
static bool is_of_daemon(const char *at)
{
    static const char *const begins[] = {"sha256:", "uid=", "key ", "audience ", "revoked "};

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(at, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/*
 * The token of a file: the one of an `edit` line if there is any, else of a `read` line, else a
 * line with nothing but a token. token [TOKEN_LINE_BYTES_MAX]
 */
static enum err_code read_token(const char *path, char *token, struct err *err)
{
    FILE *file = fopen(path, "r");
    char line[TOKEN_LINE_BYTES_MAX];
    size_t length;
    int best = 0;

    if (!file)
        return err_set(err, ERR_BAD_INPUT, "the token file %.200s cannot be read", path);
    while (fgets(line, sizeof(line), file)) {
        const char *at = line + strspn(line, " \t");
        int rank = strncmp(at, "edit ", 5) == 0 ? 3 : strncmp(at, "read ", 5) == 0 ? 2 : 1;

        at += rank > 1 ? 5 : 0;
        at += strspn(at, " \t");
        line[strcspn(line, "#\r\n")] = '\0';
        length = rank > 1 ? strcspn(at, " \t") : strlen(at); /* claims follow the token */
        while (length > 0 && strchr(" \t", at[length - 1]))
            length--;
        if (length == 0 || rank <= best || is_of_daemon(at))
            continue;
        best = rank;
        memmove(token, at, length);
        token[length] = '\0';
    }
    fclose(file);
    if (best == 0)
        return err_set(err, ERR_BAD_INPUT, "the token file %.200s has no token", path);
    return ERR_OK;
}

enum err_code kota_connect(struct kota *kota)
{
    char token[TOKEN_LINE_BYTES_MAX];
    struct call_config config = {
        .url = kota->url, .ca_file = kota->ca_file, .answer_bytes_max = ANSWER_BYTES_MAX};

    if (number_exact_list(kota->timeout, &config.timeout_s, 1, &kota->err) ||
        !(config.timeout_s >= 0.001 && config.timeout_s <= TIMEOUT_S_MAX))
        return err_set(&kota->err, ERR_BAD_INPUT, "--timeout '%.40s' is not within 0.001..%d s",
                       kota->timeout, TIMEOUT_S_MAX);
    if (kota->token_file) {
        if (read_token(kota->token_file, token, &kota->err))
            return kota->err.code;
        config.token = token;
    }
    kota->timeout_s = config.timeout_s;
    kota->call = call_open(&config, &kota->err);
    return kota->call ? ERR_OK : kota->err.code;
}

/* A table with its places in base, after `count` others; their number. out [KOTA_OPTIONS_MAX] */
static size_t bind_options(const struct kota_option *table, void *base, size_t count,
                           struct args_option *out)
{
    for (; table && (table->name || table->help); table++) {
        void *at = (char *)base + table->at;

        if (!table->name)
            continue;
        CHECK(base && count + 1 < KOTA_OPTIONS_MAX);
        out[count] = (struct args_option){.name = table->name};
        if (!table->value)
            out[count].flag = at;
        else if (table->repeats)
            out[count].list = at;
        else
            out[count].text = at;
        count++;
        if (table->also) {
            CHECK(count + 1 < KOTA_OPTIONS_MAX);
            out[count] = out[count - 1];
            out[count++].name = table->also;
        }
    }
    out[count] = (struct args_option){.name = NULL};
    return count;
}

static bool is_among(const char *words, const char *value)
{
    const size_t length = strlen(value);

    for (const char *at = strstr(words, value); at && length > 0; at = strstr(at + 1, value))
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Values that are one of some words. */
static enum err_code check_values(const struct kota_option *table, const void *options,
                                  struct err *err)
{
    for (; table && (table->name || table->help); table++) {
        const char *value = NULL;

        if (!table->name || !table->words || table->words[0] == ':' || table->is_open ||
            table->repeats)
            continue;
        memcpy(&value, (const char *)options + table->at, sizeof value);
        if (value && !is_among(table->words, value))
            return err_set(err, ERR_BAD_INPUT, "--%s '%.40s' is none of: %s", table->name, value,
                           table->words);
    }
    return ERR_OK;
}

/* The words after the command, and its options among them. */
static enum err_code take_words(struct kota *kota, void *options)
{
    struct args_option common[KOTA_OPTIONS_MAX], own[KOTA_OPTIONS_MAX];
    enum args_step step;
    const char *word;

    bind_options(kota_common_options, kota, 0, common);
    bind_options(kota->command->shared, kota, bind_options(kota->command->options, options, 0, own),
                 own);
    kota->words = calloc((size_t)kota->args.argc + 1, sizeof(*kota->words));
    if (!kota->words)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    while ((step = args_next(&kota->args, own, common, &word, &kota->err)) == ARGS_WORD)
        kota->words[kota->word_count++] = word;
    return step == ARGS_FAULT ? kota->err.code : ERR_OK;
}

bool kota_begin(struct kota *kota, void *options, size_t words_min, size_t words_max,
                enum kota_exit *done)
{
    enum err_code code = take_words(kota, options);

    if (code == ERR_OK && (kota->wants_help || kota->wants_version)) {
        if (kota->wants_help)
            print_command_help(kota->command);
        else
            help_print_version(stdout);
        *done = KOTA_OK;
        return false;
    }
    if (code == ERR_OK)
        code = check_values(kota->command->options, options, &kota->err);
    if (code == ERR_OK && kota->at)
        code = kota_check_id(kota->at, &kota->err);
    if (code == ERR_OK && kota->word_count < words_min)
        code = err_set(&kota->err, ERR_BAD_INPUT, "an argument is missing: kota %s %s",
                       kota->command->name, kota->command->synopsis);
    if (code == ERR_OK && kota->word_count > words_max)
        code = err_set(&kota->err, ERR_BAD_INPUT, "'%.80s' is one argument too many",
                       kota->words[words_max]);
    if (code == ERR_OK && words_min > 0 && !kota->command->is_offline)
        code = kota_check_id(kota->words[0], &kota->err);
    if (code == ERR_OK && !kota->command->is_offline)
        code = kota_connect(kota);
    if (code)
        *done = kota_misused(kota);
    return code == ERR_OK;
}

enum err_code kota_get_locales(struct kota *kota, bool with_layers, cJSON **locales)
{
    char path[KOTA_PATH_MAX] = "";
    const char *next = with_layers ? "/v1/locales?layers=true" : "/v1/locales";
    cJSON *all = cJSON_CreateArray(), *page = NULL, *list, *locale;

    while (next && !kota->err.code) {
        /* the same page again would never end */
        if (strcmp(next, path) == 0 || strlen(next) >= sizeof(path)) {
            err_set(&kota->err, ERR_INTERNAL, "the answer has a wrong \"next\"");
            break;
        }
        snprintf(path, sizeof(path), "%s", next);
        cJSON_Delete(page);
        page = NULL;
        if (call_get(kota->call, path, &page, &kota->err))
            break;
        list = cJSON_GetObjectItemCaseSensitive(page, "locales");
        if (!cJSON_IsArray(list))
            err_set(&kota->err, ERR_INTERNAL, "the answer has no array \"locales\"");
        while (cJSON_IsArray(list) && (locale = cJSON_DetachItemFromArray(list, 0)))
            cJSON_AddItemToArray(all, locale);
        next = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(page, "next"));
    }
    cJSON_Delete(page);
    if (kota->err.code) {
        cJSON_Delete(all);
        all = NULL;
    }
    *locales = all;
    return kota->err.code;
}

const char *kota_shift_word(struct kota *kota)
{
    const char *first = kota->word_count ? kota->words[0] : NULL;

    if (!first)
        return NULL;
    kota->word_count--;
    memmove(kota->words, kota->words + 1, kota->word_count * sizeof(*kota->words));
    return first;
}

enum err_code kota_print(struct kota *kota, cJSON *document)
{
    if (kota->is_json)
        return print_json_line(stdout, document, &kota->err);
    return print_members(stdout, document, &kota->err);
}

const struct kota_command *kota_find_command(const char *name)
{
    if (strcmp(name, "put") == 0) /* as it was called once */
        name = "import";
    for (size_t i = 0; kota_commands[i]; i++)
        if (strcmp(kota_commands[i]->name, name) == 0)
            return kota_commands[i];
    return NULL;
}

static void unknown_command(struct kota *kota, const char *word)
{
    const char *names[COMMANDS_MAX + 1] = {NULL}, *guess;

    for (size_t i = 0; kota_commands[i] && i < COMMANDS_MAX; i++)
        names[i] = kota_commands[i]->name;
    guess = nearest_word(word, strlen(word), names);
    err_set(&kota->err, ERR_BAD_INPUT, "unknown command '%.80s'%s%s%s", word,
            guess ? ", did you mean " : "", guess ? guess : "", guess ? "?" : "");
}

/* kota help [COMMAND], which is kota [COMMAND] --help. */
static enum kota_exit run_help(struct kota *kota)
{
    struct args_option common[KOTA_OPTIONS_MAX];
    const char *word = NULL, *more;
    enum args_step step;

    bind_options(kota_common_options, kota, 0, common);
    step = args_next(&kota->args, NULL, common, &word, &kota->err);
    if (step == ARGS_WORD && !(kota->command = kota_find_command(word)))
        unknown_command(kota, word);
    else if (step == ARGS_WORD &&
             args_next(&kota->args, NULL, common, &more, &kota->err) == ARGS_WORD)
        err_set(&kota->err, ERR_BAD_INPUT, "'%.80s' is one argument too many", more);
    if (kota->err.code)
        return kota_misused(kota);
    if (kota->command)
        print_command_help(kota->command);
    else
        print_main_help(stdout);
    return KOTA_OK;
}

/* The options before the command, the command, and all it does. */
static enum kota_exit run(struct kota *kota)
{
    struct args_option common[KOTA_OPTIONS_MAX];
    const char *word = NULL;
    enum args_step step;

    bind_options(kota_common_options, kota, 0, common);
    step = args_next(&kota->args, NULL, common, &word, &kota->err);
    if (step == ARGS_FAULT)
        return kota_misused(kota);
    if (kota->wants_help) {
        print_main_help(stdout);
        return KOTA_OK;
    }
    if (kota->wants_version) {
        help_print_version(stdout);
        return KOTA_OK;
    }
    if (step == ARGS_WORD && strcmp(word, "help") == 0)
        return run_help(kota);
    if (kota->args.argc < 2)
        return teach();
    if (step == ARGS_END)
        err_set(&kota->err, ERR_BAD_INPUT, "a command is missing");
    else if (!(kota->command = kota_find_command(word)))
        unknown_command(kota, word);
    if (!kota->command)
        return kota_misused(kota);
    return kota->command->run(kota);
}

int main(int argc, char **argv)
{
    const char *url = getenv("KOTA_URL"), *token_file = getenv("KOTA_TOKEN_FILE");
    struct kota kota = {.args = {.argv = argv, .argc = argc, .next = 1},
                        .url = url && *url ? url : DEFAULT_URL,
                        .token_file = token_file && *token_file ? token_file : NULL,
                        .timeout = DEFAULT_TIMEOUT};
    enum kota_exit done;

    standard_files_hold();
    if (!isatty(STDOUT_FILENO))
        kota.is_json = true;
    done = run(&kota);
    if ((fflush(stdout) || ferror(stdout)) && done == KOTA_OK) {
        err_set(&kota.err, ERR_INTERNAL, "standard output cannot be written");
        done = kota_failed(&kota);
    }
    call_close(kota.call);
    free(kota.words);
    return (int)done;
}
