/*
 * kota model: the closed meshes that bodies of a patch are made of.
 *
 * They belong to no locale. The file is sent unchanged; the daemon checks that it encloses a
 * volume.
 */
#include "client/file.h"
#include "client/kota.h"
#include "client/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)256 << 20)

static enum err_code show_models(struct kota *kota, const cJSON *models)
{
    static const char *const headings[] = {"MODEL", "TRIANGLES", "VOLUME", "BYTES"};
    static const char *const names[] = {"id", "triangles", "volume_m3", "bytes"};
    struct table *table;
    cJSON *model;

    if (!cJSON_IsArray(models))
        return err_set(&kota->err, ERR_INTERNAL, "the answer has no array \"models\"");
    if (kota->is_json) {
        cJSON_ArrayForEach(model, models) if (print_json_line(stdout, model, &kota->err)) break;
        return kota->err.code;
    }
    table = table_open(headings, 4);
    if (!table)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(model, models) for (size_t i = 0; i < 4; i++)
        table_value(table, cJSON_GetObjectItemCaseSensitive(model, names[i]));
    table_print(table, stdout, &kota->err);
    table_close(table);
    return kota->err.code;
}

static enum kota_exit model_ls(struct kota *kota)
{
    cJSON *answer = NULL;

    if (!call_get(kota->call, "/v1/models", &answer, &kota->err))
        show_models(kota, cJSON_GetObjectItemCaseSensitive(answer, "models"));
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit model_put(struct kota *kota, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    cJSON *answer = NULL;

    if (file_read(kota->words[1], FILE_BYTES_MAX, &bytes, &length, &kota->err))
        return kota_misused(kota);
    if (!call_write(kota->call, "PUT", path, "model/obj", bytes, length, &answer, &kota->err))
        kota_print(kota, answer);
    cJSON_Delete(answer);
    free(bytes);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit model_rm(struct kota *kota, const char *path)
{
    cJSON *answer = NULL;

    call_write(kota->call, "DELETE", path, NULL, NULL, 0, &answer, &kota->err);
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit model_run(struct kota *kota)
{
    static const struct {
        const char *name;
        size_t words;
    } actions[] = {{"ls", 0}, {"put", 2}, {"rm", 1}};
    char path[128];
    const char *name;
    enum kota_exit done;
    size_t action = 0;

    if (!kota_begin(kota, NULL, 0, 3, &done))
        return done;
    name = kota_shift_word(kota);
    while (action < 3 && name && strcmp(actions[action].name, name) != 0)
        action++;
    if (!name || action == 3)
        err_set(&kota->err, ERR_BAD_INPUT, "ls, put or rm is wanted%s%.40s%s",
                name ? ", not '" : "", name ? name : "", name ? "'" : "");
    else if (kota->word_count != actions[action].words)
        err_set(&kota->err, ERR_BAD_INPUT, "kota model %s takes %zu arguments, not %zu", name,
                actions[action].words, kota->word_count);
    else if (action > 0)
        kota_check_id(kota->words[0], &kota->err);
    if (kota->err.code)
        return kota_misused(kota);
    if (action == 0)
        return model_ls(kota);
    snprintf(path, sizeof(path), "/v1/models/%s", kota->words[0]);
    return action == 1 ? model_put(kota, path) : model_rm(kota, path);
}

const struct kota_command command_model = {
    .name = "model",
    .synopsis = "ls | put MODEL FILE.obj | rm MODEL",
    .summary = "the meshes that bodies are made of",
    .help = "Lists, makes or replaces, and deletes the models that `kota patch` lets fall: closed\n"
            "meshes of triangles as OBJ, in metres, Z up.\n",
    .words = {"ls put rm", ":model", ":file", NULL},
    .examples = (const char *const[]){"kota model ls", NULL},
    .run = model_run,
};
