/*
 * kota pin, pins and restore: values of a locale that are kept under names.
 */
#include "client/kota.h"
#include "client/print.h"

#include <stdio.h>

struct pin_options {
    bool is_removed;
};

/* "/v1/locales/{locale}/pins/{pin}" + rest, of two words. */
static enum err_code pin_path(struct kota *kota, const char *rest, char path[KOTA_PATH_MAX])
{
    char below[128];

    if (kota_check_id(kota->words[1], &kota->err))
        return kota->err.code;
    snprintf(below, sizeof(below), "/pins/%s%s", kota->words[1], rest);
    return kota_locale_path(kota, below, path);
}

/* Sends a write without a body, and prints what it answers. */
static enum kota_exit write_pin(struct kota *kota, const char *method, const char *rest)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;

    if (pin_path(kota, rest, path))
        return kota_misused(kota);
    if (!call_write(kota->call, method, path, NULL, NULL, 0, &answer, &kota->err) && answer) {
        if (rest[0] == '\0')
            kota_print(kota, answer);
        else
            kota_print_locale(kota, answer);
    }
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit pin_run(struct kota *kota)
{
    struct pin_options options = {false};
    enum kota_exit done;

    if (!kota_begin(kota, &options, 2, 2, &done))
        return done;
    return write_pin(kota, options.is_removed ? "DELETE" : "PUT", "");
}

static enum kota_exit restore_run(struct kota *kota)
{
    enum kota_exit done;

    return kota_begin(kota, NULL, 2, 2, &done) ? write_pin(kota, "POST", "/restore") : done;
}

static enum err_code show_pins(struct kota *kota, const cJSON *pins)
{
    static const char *const headings[] = {"PIN", "REVISION"};
    static const char *const names[] = {"name", "revision"};
    struct table *table;
    cJSON *pin;

    if (!cJSON_IsArray(pins))
        return err_set(&kota->err, ERR_INTERNAL, "the answer has no array \"pins\"");
    if (kota->is_json) {
        cJSON_ArrayForEach(pin, pins) if (print_json_line(stdout, pin, &kota->err)) break;
        return kota->err.code;
    }
    table = table_open(headings, 2);
    if (!table)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(pin, pins) for (size_t i = 0; i < 2; i++)
        table_value(table, cJSON_GetObjectItemCaseSensitive(pin, names[i]));
    table_print(table, stdout, &kota->err);
    table_close(table);
    return kota->err.code;
}

static enum kota_exit pins_run(struct kota *kota)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;
    enum kota_exit done;

    if (!kota_begin(kota, NULL, 1, 2, &done))
        return done;
    if (kota->word_count == 2 ? pin_path(kota, "", path) : kota_locale_path(kota, "/pins", path))
        return kota_misused(kota);
    if (!call_get(kota->call, path, &answer, &kota->err)) {
        if (kota->word_count == 2)
            kota_print(kota, answer);
        else
            show_pins(kota, cJSON_GetObjectItemCaseSensitive(answer, "pins"));
    }
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

#define OPTION(...) COMMAND_OPTION(struct pin_options, __VA_ARGS__)

static const struct kota_option pin_table[] = {
    OPTION(is_removed, "remove", NULL, "the pin goes; nothing else changes"),
    {0},
};

const struct kota_command command_pin = {
    .name = "pin",
    .synopsis = "ID PIN",
    .summary = "keeps a locale as it is now, under a name",
    .help =
        "It costs next to nothing, and replaces a pin of that name. Questions with --at PIN are\n"
        "answered of it, kota restore brings it back.\n",
    .options = pin_table,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota pin highlands before",
                                      "kota height highlands 1450,3000 --at before",
                                      "kota pin highlands before --remove", NULL},
    .run = pin_run,
};

const struct kota_command command_pins = {
    .name = "pins",
    .synopsis = "ID [PIN]",
    .summary = "the pins of a locale, or one of them",
    .help = "Their names, and the revisions that they keep.\n",
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota pins highlands", NULL},
    .run = pins_run,
};

const struct kota_command command_restore = {
    .name = "restore",
    .synopsis = "ID PIN",
    .summary = "brings a locale back to a pin",
    .help =
        "The next revision has the value that the pin keeps; what came in between stays in the\n"
        "revisions that are held. Prints the locale.\n",
    .words = {":locale", NULL},
    .run = restore_run,
};
