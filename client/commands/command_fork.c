/*
 * kota fork: a locale that shares the ground of another one.
 */
#include "client/kota.h"

#include "client/batch.h"

#include <stddef.h>
#include <string.h>

struct fork_options {
    const char *title;
};

static enum kota_exit fork_run(struct kota *kota)
{
    struct fork_options o = {.title = NULL};
    cJSON *body, *answer = NULL;
    char *text;
    enum kota_exit done;

    if (!kota_begin(kota, &o, 2, 2, &done))
        return done;
    if (kota_check_id(kota->words[0], &kota->err))
        return kota_misused(kota);
    body = cJSON_CreateObject();
    cJSON_AddStringToObject(body, "id", kota->words[0]);
    cJSON_AddStringToObject(body, "from", kota->words[1]);
    batch_add_text(body, "title", o.title);
    text = cJSON_PrintUnformatted(body);
    cJSON_Delete(body);
    if (!text)
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    else if (!call_write(kota->call, "POST", "/v1/locales", "application/json", text, strlen(text),
                         &answer, &kota->err))
        kota_print(kota, answer);
    cJSON_Delete(answer);
    cJSON_free(text);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

#define OPTION(...) COMMAND_OPTION(struct fork_options, __VA_ARGS__)

static const struct kota_option fork_table[] = {
    OPTION(title, "title", "TEXT", "in the place of the other one's"),
    {0},
};

const struct kota_command command_fork = {
    .name = "fork",
    .synopsis = "ID FROM [--title TEXT]",
    .summary = "makes a locale that shares the ground of another one",
    .help = "FROM is a locale as it is now, or as it was: arena, arena@pin or arena@revision. It\n"
            "costs as much as an edit, whatever is in it. From then on each lives by itself.\n",
    .words = {":locale", NULL},
    .options = fork_table,
    .run = fork_run,
};
