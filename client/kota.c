/*
 * kota: asks a running kotad from the command line.
 *
 * main() finds the command in the table below; each command is a file command_*.c that reads its
 * options through kota_begin(), asks through call.h and prints through print.h. Answers go to
 * standard output, everything else to standard error.
 *
 * Exit codes: 0 everything was answered, 1 a call failed, 2 the command line or the input is wrong.
 * A failure is one line: what the daemon said, with the JSON pointer to the place it means.
 */
#include "client/kota.h"

#include "client/number.h"
#include "client/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_URL "http://127.0.0.1:7420"
#define DEFAULT_TIMEOUT "30"
#define TIMEOUT_S_MAX 86400
#define ANSWER_BYTES_MAX ((size_t)256 << 20)
#define TOKEN_LINE_BYTES_MAX 4096

static const struct kota_command *const commands[] = {
    &command_ls,      &command_info,    &command_height, &command_ray,    &command_los,
    &command_contact, &command_profile, &command_pick,   &command_import, &command_export,
    &command_edit,    &command_watch,   &command_bench,
};

static const char common_help[] =
    "Options of every command:\n"
    "  --url URL         where kotad listens (environment KOTA_URL; " DEFAULT_URL ")\n"
    "  --token-file F    a file with the bearer token, or with lines 'read TOKEN', 'edit TOKEN'\n"
    "  --json            JSON lines on a terminal, too; a pipe gets them anyway\n"
    "  --timeout S       give a call up after S seconds (" DEFAULT_TIMEOUT ")\n"
    "  --help            help of the command\n"
    "\n"
    "Exit code: 0 all answered, 1 a call failed, 2 wrong command line or input.\n";

static void print_main_help(FILE *stream)
{
    fprintf(stream, "usage: kota [OPTION…] COMMAND [ARGUMENT…]\n\nCommands:\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(stream, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fprintf(stream, "\n%s", common_help);
}

static void print_command_help(const struct kota_command *command)
{
    printf("usage: kota %s %s\n\n%s\n%s", command->name, command->synopsis, command->help,
           common_help);
}

/* One line on standard error, behind everything that standard output has got. */
static void print_reason(const struct kota *kota, const char *behind)
{
    char msg[sizeof(kota->err.msg)], pointer[sizeof(kota->err.pointer)];

    memcpy(msg, kota->err.msg, sizeof(msg));
    memcpy(pointer, kota->err.pointer, sizeof(pointer));
    print_sanitize(msg);
    print_sanitize(pointer);
    fflush(stdout);
    fprintf(stderr, "kota: %s%s%s%s%s\n", msg, *pointer ? " (at " : "", pointer,
            *pointer ? ")" : "", behind);
}

enum kota_exit kota_failed(const struct kota *kota)
{
    print_reason(kota, "");
    return KOTA_FAILED;
}

enum kota_exit kota_misused(const struct kota *kota)
{
    char behind[64];

    snprintf(behind, sizeof(behind), "; see kota%s%s --help", kota->command ? " " : "",
             kota->command ? kota->command->name : "");
    print_reason(kota, behind);
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

/*
 * The token of a file: the one of an `edit` line if there is any, else of a `read` line, else a
 * line with nothing but a token. token [TOKEN_LINE_BYTES_MAX]
 */
static enum err_code read_token(const char *path, char *token, struct err *err)
{
    FILE *file = fopen(path, "r");
    char line[TOKEN_LINE_BYTES_MAX];
    int best = 0;

    if (!file)
        return err_set(err, ERR_BAD_INPUT, "the token file %.200s cannot be read", path);
    while (fgets(line, sizeof(line), file)) {
        const char *at = line + strspn(line, " \t");
        int rank = strncmp(at, "edit ", 5) == 0 ? 3 : strncmp(at, "read ", 5) == 0 ? 2 : 1;

        at += rank > 1 ? 5 : 0;
        at += strspn(at, " \t");
        line[strcspn(line, "#\r\n")] = '\0';
        if (*at == '\0' || rank <= best)
            continue;
        best = rank;
        memmove(token, at, strlen(at) + 1);
        for (size_t n = strlen(token); n > 0 && strchr(" \t", token[n - 1]); n--)
            token[n - 1] = '\0';
    }
    fclose(file);
    if (best == 0)
        return err_set(err, ERR_BAD_INPUT, "the token file %.200s has no token", path);
    return ERR_OK;
}

static enum err_code open_call(struct kota *kota)
{
    char token[TOKEN_LINE_BYTES_MAX];
    struct call_config config = {.url = kota->url, .answer_bytes_max = ANSWER_BYTES_MAX};

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

/* The words behind the command, and its options among them. */
static enum err_code take_words(struct kota *kota, const struct args_option *own)
{
    enum args_step step;
    const char *word;

    kota->words = calloc((size_t)kota->args.argc + 1, sizeof(*kota->words));
    if (!kota->words)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    while ((step = args_next(&kota->args, own, kota->common, &word, &kota->err)) == ARGS_WORD)
        kota->words[kota->word_count++] = word;
    return step == ARGS_FAULT ? kota->err.code : ERR_OK;
}

bool kota_begin(struct kota *kota, const struct args_option *own, size_t words_min,
                size_t words_max, enum kota_exit *done)
{
    enum err_code code = take_words(kota, own);

    if (code == ERR_OK && kota->wants_help) {
        print_command_help(kota->command);
        *done = KOTA_OK;
        return false;
    }
    if (code == ERR_OK && kota->word_count < words_min)
        code = err_set(&kota->err, ERR_BAD_INPUT, "an argument is missing: kota %s %s",
                       kota->command->name, kota->command->synopsis);
    if (code == ERR_OK && kota->word_count > words_max)
        code = err_set(&kota->err, ERR_BAD_INPUT, "'%.80s' is one argument too many",
                       kota->words[words_max]);
    if (code == ERR_OK && words_min > 0)
        code = kota_check_id(kota->words[0], &kota->err);
    if (code == ERR_OK)
        code = open_call(kota);
    if (code)
        *done = kota_misused(kota);
    return code == ERR_OK;
}

static const struct kota_command *find_command(const char *name)
{
    if (strcmp(name, "put") == 0) /* as it was called once */
        name = "import";
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* The options before the command, the command, and all it does. */
static enum kota_exit run(struct kota *kota)
{
    const char *word = NULL;
    enum args_step step = args_next(&kota->args, NULL, kota->common, &word, &kota->err);

    if (step == ARGS_FAULT)
        return kota_misused(kota);
    if (kota->wants_help) {
        print_main_help(stdout);
        return KOTA_OK;
    }
    if (step == ARGS_END)
        err_set(&kota->err, ERR_BAD_INPUT, "a command is missing");
    else if (!(kota->command = find_command(word)))
        err_set(&kota->err, ERR_BAD_INPUT, "unknown command '%.80s'", word);
    if (!kota->command)
        return kota_misused(kota);
    return kota->command->run(kota);
}

int main(int argc, char **argv)
{
    const char *url = getenv("KOTA_URL");
    struct kota kota = {.args = {.argv = argv, .argc = argc, .next = 1},
                        .url = url && *url ? url : DEFAULT_URL,
                        .timeout = DEFAULT_TIMEOUT};
    const struct args_option common[] = {{.name = "url", .text = &kota.url},
                                         {.name = "token-file", .text = &kota.token_file},
                                         {.name = "timeout", .text = &kota.timeout},
                                         {.name = "json", .flag = &kota.is_json},
                                         {.name = "help", .flag = &kota.wants_help},
                                         {.name = NULL}};
    enum kota_exit done;

    memcpy(kota.common, common, sizeof(common));
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
