/*
 * kota rm: a locale, or one of its layers, is gone.
 *
 * There is no prompt, as with rm; a locale can be exported before. Nothing is printed.
 */
#include "client/kota.h"

#include <stdio.h>

static enum kota_exit rm_run(struct kota *kota)
{
    char path[KOTA_PATH_MAX], rest[96] = "";
    cJSON *answer = NULL;
    enum kota_exit done;

    if (!kota_begin(kota, NULL, 1, 2, &done))
        return done;
    if (kota->word_count == 2 && kota_check_id(kota->words[1], &kota->err))
        return kota_misused(kota);
    if (kota->word_count == 2)
        snprintf(rest, sizeof(rest), "/layers/%s", kota->words[1]);
    if (kota_locale_path(kota, rest, path))
        return kota_misused(kota);
    call_write(kota->call, "DELETE", path, NULL, NULL, 0, &answer, &kota->err);
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

const struct kota_command command_rm = {
    .name = "rm",
    .synopsis = "ID [LAYER]",
    .summary = "deletes a locale, or one layer of it",
    .help = "Deletes without asking, and prints nothing.\n",
    .words = {":locale", ":layer", NULL},
    .run = rm_run,
};
