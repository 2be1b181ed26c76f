/*
 * kota completion: candidates of a shell for the next word.
 *
 * The scripts for bash, zsh and fish are a few lines each: they pass the words of the line to `kota
 * completion words` and show its output, a candidate and its description a line, separated by a
 * tab, or ":file", which leaves it to the shell. So the three shells offer the same, from the
 * tables that the command line is read by, and a new option needs no change in any of them.
 *
 * Ids of locales, layers and models are fetched from the daemon of the line (--url, --token-file),
 * within a second; without an answer there are no candidates.
 */
#include "client/kota.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WAIT "1"

static const char bash_script[] =
    "# bash completion of kota: source <(kota completion bash)\n"
    "_kota_complete()\n"
    "{\n"
    "    local line word words candidate\n"
    "    read -ra words <<<\"${COMP_LINE:0:COMP_POINT}\"\n"
    "    [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=('')\n"
    "    word=${words[-1]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        if [[ $line == :file ]]; then\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r candidate; do\n"
    "                COMPREPLY+=(\"$candidate\")\n"
    "            done < <(compgen -f -- \"${word#--*=}\")\n"
    "        else\n"
    "            COMPREPLY+=(\"${line%%$'\\t'*}\")\n"
    "        fi\n"
    "    done < <(\"${words[0]}\" completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _kota_complete kota\n";

static const char zsh_script[] =
    "#compdef kota\n"
    "# zsh completion of kota: source <(kota completion zsh), or a file _kota in $fpath\n"
    "_kota()\n"
    "{\n"
    "    local line\n"
    "    local -a texts shown\n"
    "    for line in \"${(@f)$(\"${words[1]}\" completion words -- \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "        :file) _files ;;\n"
    "        ?*) texts+=(\"${line%%$'\\t'*}\") shown+=(\"${line/$'\\t'/  -- }\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#texts )) && compadd -l -d shown -a texts\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _kota ]; then\n"
    "    _kota \"$@\"\n"
    "else\n"
    "    compdef _kota kota\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion of kota: kota completion fish | source\n"
    "function __kota_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] completion words -- $words[2..-1] 2>/dev/null)\n"
    "        if test \"$line\" = :file\n"
    "            __fish_complete_path (commandline -ct)\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c kota -f -a '(__kota_complete)'\n";

/* The line so far. */
struct line {
    const struct kota_command *command;
    const char *url, *token_file;
    const char *words[8]; /* after the command, as far as they matter */
    size_t word_count;
    const struct kota_option *pending; /* the option whose value is being typed */
    const char *current;               /* the word, or the value, that is being typed */
};

/* ---- the words so far ------------------------------------------------------------------------ */

static const struct kota_option *find(const struct kota_option *table, const char *name,
                                      size_t length)
{
    for (; table && (table->name || table->help); table++) {
        const char *const names[] = {table->name, table->also};

        for (size_t i = 0; i < 2; i++)
            if (names[i] && strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
                return table;
    }
    return NULL;
}

static const struct kota_option *find_option(const struct line *line, const char *word)
{
    size_t length = strcspn(word + 2, "=");
    const struct kota_option *own =
        line->command ? find(line->command->options, word + 2, length) : NULL;

    if (!own && line->command)
        own = find(line->command->shared, word + 2, length);
    return own ? own : find(kota_common_options, word + 2, length);
}

static void take_value(struct line *line, const struct kota_option *option, const char *value)
{
    if (strcmp(option->name, "url") == 0)
        line->url = value;
    else if (strcmp(option->name, "token-file") == 0)
        line->token_file = value;
}

/* Reads words up to the last one, which is being typed. */
static void read_line(const struct kota *kota, struct line *line)
{
    const struct kota_option *option;

    line->current = kota->word_count ? kota->words[kota->word_count - 1] : "";
    for (size_t i = 0; i + 1 < kota->word_count; i++) {
        const char *word = kota->words[i];
        const char *equals = strchr(word, '=');

        if (strncmp(word, "--", 2) == 0 && word[2]) {
            option = find_option(line, word);
            if (!option || !option->value)
                continue;
            if (equals) {
                take_value(line, option, equals + 1);
            } else if (i + 2 == kota->word_count) {
                line->pending = option;
            } else {
                take_value(line, option, kota->words[++i]);
            }
        } else if (!line->command) {
            line->command = kota_find_command(word);
        } else if (line->word_count < sizeof(line->words) / sizeof(line->words[0])) {
            line->words[line->word_count++] = word;
        }
    }
    if (strncmp(line->current, "--", 2) == 0 && strchr(line->current, '=')) {
        line->pending = find_option(line, line->current);
        line->current = strchr(line->current, '=') + 1;
    }
}

/* ---- candidates ------------------------------------------------------------------------------ */

static void offer(const struct line *line, const char *prefix, const char *text, const char *what)
{
    char whole[128];
    size_t length = what ? strcspn(what, "\n") : 0;

    snprintf(whole, sizeof(whole), "%s%s", prefix, text);
    if (strncmp(whole, line->current, strlen(line->current)) == 0)
        printf("%s%s%.*s\n", whole, length ? "\t" : "", (int)length, what ? what : "");
}

static void offer_options(const struct line *line, const struct kota_option *table)
{
    for (; table && (table->name || table->help); table++)
        if (table->name)
            offer(line, "--", table->name, table->help);
}

/*
 * The ids in an array of path's answer, NULL: of all locales; nothing when there is no answer.
 */
static void offer_ids(struct kota *kota, const struct line *line, const char *path,
                      const char *member, const char *text)
{
    cJSON *answer = NULL, *array = NULL;
    const cJSON *item;

    if (line->url)
        kota->url = line->url;
    if (line->token_file)
        kota->token_file = line->token_file;
    kota->timeout = WAIT;
    if (!kota->call && kota_connect(kota))
        return;
    if (!path)
        kota_get_locales(kota, false, &array);
    else if (!call_get(kota->call, path, &answer, &kota->err))
        array = cJSON_DetachItemFromObjectCaseSensitive(answer, member);
    cJSON_ArrayForEach(item, array)
    {
        const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "id"));
        const cJSON *said = cJSON_GetObjectItemCaseSensitive(item, text);

        if (id && !kota_check_id(id, &kota->err))
            offer(line, "", id,
                  cJSON_IsString(said) && !strpbrk(said->valuestring, "\t\033") ? said->valuestring
                                                                                : NULL);
    }
    cJSON_Delete(array);
    cJSON_Delete(answer);
}

static void offer_kind(struct kota *kota, const struct line *line, const char *kind)
{
    char path[KOTA_PATH_MAX], word[80];
    size_t first = 0;

    if (!kind)
        return;
    if (strcmp(kind, ":file") == 0) {
        printf(":file\n");
    } else if (strcmp(kind, ":locale") == 0) {
        offer_ids(kota, line, NULL, NULL, "title");
    } else if (strcmp(kind, ":model") == 0) {
        offer_ids(kota, line, "/v1/models", "models", "hash");
    } else if (strcmp(kind, ":layer") == 0) {
        while (first < line->word_count && line->command->words[first] &&
               strcmp(line->command->words[first], ":locale") != 0)
            first++; /* the word that is the locale */
        if (first >= line->word_count || kota_check_id(line->words[first], &kota->err))
            return;
        snprintf(path, sizeof(path), "/v1/locales/%s", line->words[first]);
        offer_ids(kota, line, path, "layers", "kind");
    } else {
        for (size_t length; *kind; kind += length + (kind[length] == ' ')) {
            length = strcspn(kind, " ");
            snprintf(word, sizeof(word), "%.*s", (int)length, kind);
            offer(line, "", word, NULL);
        }
    }
}

static enum kota_exit offer_words(struct kota *kota)
{
    struct line line = {.command = NULL};
    size_t place = 0;

    read_line(kota, &line);
    if (line.pending) {
        offer_kind(kota, &line, line.pending->words);
    } else if (*line.current == '-') {
        if (line.command)
            offer_options(&line, line.command->options);
        if (line.command)
            offer_options(&line, line.command->shared);
        offer_options(&line, kota_common_options);
    } else if (!line.command) {
        for (size_t i = 0; kota_commands[i]; i++)
            offer(&line, "", kota_commands[i]->name, kota_commands[i]->summary);
    } else {
        while (place < line.word_count && line.command->words[place])
            place++;
        if (place == line.word_count)
            offer_kind(kota, &line, line.command->words[place]);
    }
    return KOTA_OK;
}

static enum kota_exit completion_run(struct kota *kota)
{
    const char *what;
    enum kota_exit done;

    if (!kota_begin(kota, NULL, 1, SIZE_MAX, &done))
        return done;
    what = kota_shift_word(kota);
    if (strcmp(what, "words") == 0)
        return offer_words(kota);
    if (kota->word_count > 0)
        err_set(&kota->err, ERR_BAD_INPUT, "'%.80s' is one argument too many", kota->words[0]);
    else if (strcmp(what, "bash") == 0)
        fputs(bash_script, stdout);
    else if (strcmp(what, "zsh") == 0)
        fputs(zsh_script, stdout);
    else if (strcmp(what, "fish") == 0)
        fputs(fish_script, stdout);
    else
        err_set(&kota->err, ERR_BAD_INPUT, "'%.40s' is none of bash, zsh and fish", what);
    return kota->err.code ? kota_misused(kota) : KOTA_OK;
}

const struct kota_command command_completion = {
    .name = "completion",
    .synopsis = "bash | zsh | fish",
    .summary = "the completion of a shell, as a script",
    .help =
        "Prints what the shell reads, once or from its start-up file:\n"
        "  bash   source <(kota completion bash)\n"
        "  zsh    source <(kota completion zsh)\n"
        "  fish   kota completion fish | source\n"
        "Commands, options, their values, files, and the ids that the daemon knows are offered.\n"
        "`kota completion words -- WORD…` prints what may stand for the last word.\n",
    .words = {"bash zsh fish", NULL},
    .examples = (const char *const[]){"kota completion bash", NULL},
    .is_offline = true,
    .run = completion_run,
};
