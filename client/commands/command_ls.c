/*
 * kota ls, kota info: which locales there are, and one of them in full.
 *
 * In JSON both print the daemon's answer, locale by locale. On a terminal a locale without terrain
 * has "-" as its extent, and the layers of `info` are a table of their own, because lines of
 * "layers.0.spacing" are hard to read.
 */
#include "client/kota.h"
#include "client/print.h"

#include <math.h>
#include <stdio.h>

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* Component i of a corner of bounds; NaN when there is none. */
static double bound(const cJSON *locale, const char *corner, int i)
{
    const cJSON *number = cJSON_GetArrayItem(member(member(locale, "bounds"), corner), i);

    return cJSON_IsNumber(number) ? number->valuedouble : NAN;
}

/* "20470 x 20470 m, 0 to 2345 m" or "-" for a locale without terrain. */
static void show_extent(struct table *table, const cJSON *locale)
{
    char text[128];
    double width_m = bound(locale, "max", 0) - bound(locale, "min", 0);
    double depth_m = bound(locale, "max", 1) - bound(locale, "min", 1);

    if (!isfinite(width_m) || !isfinite(depth_m)) {
        table_text(table, "-");
        return;
    }
    snprintf(text, sizeof(text), "%.6g x %.6g m, %.6g to %.6g m", width_m, depth_m,
             bound(locale, "min", 2), bound(locale, "max", 2));
    table_text(table, text);
}

static void show_locale(struct table *table, const cJSON *locale)
{
    char layers[32];

    snprintf(layers, sizeof(layers), "%d", cJSON_GetArraySize(member(locale, "layers")));
    table_value(table, member(locale, "id"));
    table_value(table, member(locale, "revision"));
    table_text(table, layers);
    show_extent(table, locale);
    table_value(table, member(locale, "title"));
}

static enum err_code ls_print(struct kota *kota, const cJSON *locales)
{
    static const char *const headings[] = {"ID", "REVISION", "LAYERS", "EXTENT", "TITLE"};
    struct table *table;
    cJSON *locale;

    if (kota->is_json) {
        cJSON_ArrayForEach(locale, locales) if (print_json_line(stdout, locale, &kota->err)) break;
        return kota->err.code;
    }
    table = table_open(headings, sizeof(headings) / sizeof(headings[0]));
    if (!table)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(locale, locales) show_locale(table, locale);
    table_print(table, stdout, &kota->err);
    table_close(table);
    return kota->err.code;
}

/* The layers of a locale as a table of their own. */
static enum err_code info_print_layers(const cJSON *layers, struct err *err)
{
    static const char *const headings[] = {"LAYER", "KIND",    "ROLE",   "POLYGONS", "COLS",
                                           "ROWS",  "SPACING", "ORIGIN", "BYTES"};
    static const char *const names[] = {"id",   "kind",    "role",   "polygons",    "cols",
                                        "rows", "spacing", "origin", "memory_bytes"};
    size_t columns = sizeof(names) / sizeof(names[0]);
    struct table *table = table_open(headings, columns);
    const cJSON *layer;

    if (!table)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(layer, layers)
    {
        for (size_t i = 0; i < columns; i++)
            table_value(table, member(layer, names[i]));
    }
    table_print(table, stdout, err);
    table_close(table);
    return err->code;
}

struct ls_options {
    bool wants_ids;
};

/* The ids only: of locales, or of layers. */
static enum err_code print_ids(const cJSON *array, struct err *err)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, array)
    {
        const char *id = cJSON_GetStringValue(member(item, "id"));
        char text[80];

        snprintf(text, sizeof(text), "%s", id ? id : "");
        print_sanitize(text);
        if (printf("%s\n", text) < 0)
            return err_set(err, ERR_INTERNAL, "standard output cannot be written");
    }
    return ERR_OK;
}

/* The layers of one locale. */
static enum err_code ls_layers(struct kota *kota, bool wants_ids)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL, *layer;
    const cJSON *layers;

    if (kota_locale_path(kota, "", path) || call_get(kota->call, path, &answer, &kota->err))
        return kota->err.code;
    layers = member(answer, "layers");
    if (!cJSON_IsArray(layers))
        err_set(&kota->err, ERR_INTERNAL, "the answer has no array \"layers\"");
    else if (wants_ids)
        print_ids(layers, &kota->err);
    else if (!kota->is_json)
        info_print_layers(layers, &kota->err);
    else
        cJSON_ArrayForEach(layer, layers) if (print_json_line(stdout, layer, &kota->err)) break;
    cJSON_Delete(answer);
    return kota->err.code;
}

static enum err_code ls_locales(struct kota *kota, bool wants_ids)
{
    cJSON *locales;

    if (kota_get_locales(kota, !wants_ids, &locales))
        return kota->err.code;
    if (wants_ids)
        print_ids(locales, &kota->err);
    else
        ls_print(kota, locales);
    cJSON_Delete(locales);
    return kota->err.code;
}

static enum kota_exit ls_run(struct kota *kota)
{
    struct ls_options options = {0};
    enum kota_exit done;

    if (!kota_begin(kota, &options, 0, 1, &done))
        return done;
    if (kota->word_count && kota_check_id(kota->words[0], &kota->err))
        return kota_misused(kota);
    if (kota->word_count)
        ls_layers(kota, options.wants_ids);
    else
        ls_locales(kota, options.wants_ids);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

#define OPTION(...) COMMAND_OPTION(struct ls_options, __VA_ARGS__)

static const struct kota_option ls_table[] = {
    OPTION(wants_ids, "ids", NULL, "only the ids, one a line"),
    {0},
};

const struct kota_command command_ls = {
    .name = "ls",
    .synopsis = "[ID]",
    .summary = "the locales of the daemon, or the layers of one",
    .help = "Lists the locales: id, revision, number of layers, extent and title. With an id, its\n"
            "layers. In JSON each line is the whole locale or layer.\n",
    .options = ls_table,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota ls", "kota ls village --ids", NULL},
    .run = ls_run,
};

enum err_code kota_print_locale(struct kota *kota, cJSON *locale)
{
    cJSON *layers;

    if (kota->is_json)
        return print_json_line(stdout, locale, &kota->err);
    layers = cJSON_DetachItemFromObjectCaseSensitive(locale, "layers");
    if (!print_members(stdout, locale, &kota->err) && cJSON_GetArraySize(layers) > 0)
        info_print_layers(layers, &kota->err);
    cJSON_Delete(layers);
    return kota->err.code;
}

static enum kota_exit info_run(struct kota *kota)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;
    enum kota_exit done;

    if (!kota_begin(kota, NULL, 1, 1, &done))
        return done;
    if (!kota_question_path(kota, "", path) && !call_get(kota->call, path, &answer, &kota->err)) {
        if (cJSON_IsObject(answer))
            kota_print_locale(kota, answer);
        else
            err_set(&kota->err, ERR_INTERNAL, "the answer is not an object");
    }
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

const struct kota_command command_info = {
    .name = "info",
    .synopsis = "ID",
    .summary = "one locale in full, with its layers",
    .help = "Prints everything the daemon knows about a locale.\n",
    .shared = kota_read_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota info village", NULL},
    .run = info_run,
};
