/*
 * kota import (once kota put, which still works): a locale's manifest, or the file of a heightfield
 * or a mesh.
 *
 * The file goes up as it is; the daemon decodes and judges it. Here only its kind is told from its
 * name, as the daemon does for the files on its own command line. A locale that is not there is
 * made: the daemon says 404, the manifest goes up, and then the file once more. The options of a
 * manifest are never dropped silently: beside a file they make the locale, or are what it is.
 */
#include "client/batch.h"
#include "client/number.h"
#include "client/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any daemon takes; keeps a slip of the hand from filling the memory. */
#define FILE_BYTES_MAX ((size_t)1 << 30)

struct import_options {
    const char *title, *triangulation, *manifest;
    const char *spacing, *origin, *height_scale, *height_offset, *nodata, *cols, *rows, *format;
    const char *role, *up, *scale;
    bool flip_y;
};

static const struct {
    const char *format, *media_type;
} media_types[] = {
    {"png", "image/png"},
    {"f32", "application/vnd.kota.f32"},
    {"hgt", "application/vnd.kota.hgt"},
    {"asc", "application/vnd.kota.asc"},
    {"obj", "model/obj"},
    {"glb", "model/gltf-binary"},
    {"gltf", "model/gltf+json"},
    {"ply", "model/ply"},
    {"stl", "model/stl"},
    {"ac", "application/x-ac3d"},
    {"dae", "model/vnd.collada+xml"},
};

/* ---- the query ---------------------------------------------------------------------------- */

/* Appends name=numbers, when text is given. '+' is left out: it would be read as a blank. */
static enum err_code add_query(char path[KOTA_PATH_MAX], const char *name, const char *text,
                               size_t count, struct err *err)
{
    double values[2];
    struct err cause;
    size_t length = strlen(path);

    if (!text)
        return ERR_OK;
    if (number_exact_list(text, values, count, &cause))
        return err_set(err, ERR_BAD_INPUT, "--%s %s", name, cause.msg);
    length += (size_t)snprintf(path + length, KOTA_PATH_MAX - length, "%c",
                               strchr(path, '?') ? '&' : '?');
    for (; *name && length + 1 < KOTA_PATH_MAX; name++)
        path[length++] = *name == '-' ? '_' : *name;
    for (size_t i = 0; i < count; i++) {
        char number[NUMBER_TEXT_MAX];

        number_format(values[i], number);
        path[length++] = i == 0 ? '=' : ',';
        for (const char *at = number; *at; at++)
            if (*at != '+')
                path[length++] = *at;
    }
    path[length] = '\0';
    return ERR_OK;
}

/* Appends name=word, when the word is given: one of two. */
static enum err_code add_word(char path[KOTA_PATH_MAX], const char *name, const char *word,
                              const char *const words[2], struct err *err)
{
    size_t length = strlen(path);

    if (!word)
        return ERR_OK;
    if (strcmp(word, words[0]) != 0 && strcmp(word, words[1]) != 0)
        return err_set(err, ERR_BAD_INPUT, "--%s '%.64s' is neither %s nor %s", name, word,
                       words[0], words[1]);
    snprintf(path + length, KOTA_PATH_MAX - length, "%c%s=%s", strchr(path, '?') ? '&' : '?', name,
             word);
    return ERR_OK;
}

static enum err_code layer_path(struct kota *kota, const struct import_options *options,
                                char path[KOTA_PATH_MAX])
{
    static const char *const roles[] = {"ground", "ceiling"}, *const axes[] = {"z", "y"};
    struct err *err = &kota->err;
    char rest[128];

    if (kota_check_id(kota->words[1], err))
        return err->code;
    snprintf(rest, sizeof(rest), "/layers/%s%s", kota->words[1],
             options->flip_y ? "?flip_y=true" : "");
    if (kota_locale_path(kota, rest, path) ||
        add_query(path, "spacing", options->spacing, 2, err) ||
        add_query(path, "origin", options->origin, 2, err) ||
        add_query(path, "height-scale", options->height_scale, 1, err) ||
        add_query(path, "height-offset", options->height_offset, 1, err) ||
        add_query(path, "nodata", options->nodata, 1, err) ||
        add_query(path, "cols", options->cols, 1, err) ||
        add_query(path, "rows", options->rows, 1, err) ||
        add_word(path, "role", options->role, roles, err) ||
        add_word(path, "up", options->up, axes, err) ||
        add_query(path, "scale", options->scale, 1, err))
        return err->code;
    return ERR_OK;
}

/* ---- the body ----------------------------------------------------------------------------- */

static const char *media_type_of(const char *file, const char *format)
{
    const char *dot = strrchr(file, '.');

    if (!format)
        format = dot ? dot + 1 : "";
    for (size_t i = 0; i < sizeof(media_types) / sizeof(media_types[0]); i++)
        if (strcasecmp(media_types[i].format, format) == 0)
            return media_types[i].media_type;
    return NULL;
}

/* The whole file, freed by free(). */
static enum err_code read_file(const char *path, char **bytes, size_t *length, struct err *err)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = 1 << 16, got = 0;
    char *at = malloc(capacity);

    while (file && at && !feof(file) && !ferror(file) && got < FILE_BYTES_MAX) {
        if (got == capacity) {
            char *grown = realloc(at, 2 * capacity);

            if (!grown)
                break;
            at = grown;
            capacity *= 2;
        }
        got += fread(at + got, 1, capacity - got, file);
    }
    if (!file || !at || !feof(file) || ferror(file)) {
        free(at);
        if (file)
            fclose(file);
        return err_set(err, ERR_BAD_INPUT, "%.200s %s", path,
                       got >= FILE_BYTES_MAX ? "is longer than 1 GiB" : "cannot be read");
    }
    fclose(file);
    *bytes = at;
    *length = got;
    return ERR_OK;
}

static cJSON *manifest_body(const struct import_options *options)
{
    cJSON *body = cJSON_CreateObject();

    if (batch_add_text(body, "title", options->title) &&
        batch_add_text(body, "triangulation", options->triangulation))
        return body;
    cJSON_Delete(body);
    return NULL;
}

/* ---- the command -------------------------------------------------------------------------- */

/* Sends and prints the locale as it is now. */
static enum kota_exit import_send(struct kota *kota, const char *path, const char *media_type,
                                  const char *bytes, size_t length)
{
    cJSON *answer = NULL;

    if (!call_put(kota->call, path, media_type, bytes, length, &answer, &kota->err))
        print_json_line(stdout, answer, &kota->err);
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

/* The manifest's text: a file as it is, or made from the options. Freed by free(). */
static enum err_code manifest_text(const struct import_options *options, char **text,
                                   size_t *length, struct err *err)
{
    cJSON *body;

    if (options->manifest && (options->title || options->triangulation))
        return err_set(err, ERR_BAD_INPUT, "--manifest stands for --title and --triangulation");
    if (options->manifest)
        return read_file(options->manifest, text, length, err);
    body = manifest_body(options);
    *text = cJSON_PrintUnformatted(body);
    cJSON_Delete(body);
    if (!*text)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    *length = strlen(*text);
    return ERR_OK;
}

/* Makes the locale of words[0] by the manifest's options. */
static enum err_code make_locale(struct kota *kota, const struct import_options *options)
{
    char path[KOTA_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    cJSON *answer = NULL;

    if (!kota_locale_path(kota, "", path) && !manifest_text(options, &text, &length, &kota->err))
        call_put(kota->call, path, "application/json", text, length, &answer, &kota->err);
    cJSON_Delete(answer);
    free(text);
    return kota->err.code;
}

/* The locale by the options of a manifest: made, or found to be so already. */
static enum err_code claim_locale(struct kota *kota, const struct import_options *options)
{
    char path[KOTA_PATH_MAX];
    cJSON *locale = NULL;
    const char *triangulation;

    if (kota_locale_path(kota, "", path))
        return kota->err.code;
    if (call_get(kota->call, path, &locale, &kota->err) == ERR_NOT_FOUND) {
        kota->err.code = ERR_OK;
        return make_locale(kota, options);
    }
    if (kota->err.code)
        return kota->err.code;
    triangulation = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(locale, "triangulation"));
    if (options->title || options->manifest || !triangulation ||
        strcmp(triangulation, options->triangulation) != 0)
        err_set(&kota->err, ERR_CONFLICT,
                "locale %s is there already (triangulation %s): --title, --triangulation and "
                "--manifest beside a file make a new one",
                kota->words[0], triangulation ? triangulation : "unknown");
    cJSON_Delete(locale);
    return kota->err.code;
}

static bool has_manifest_options(const struct import_options *options)
{
    return options->title || options->triangulation || options->manifest;
}

static bool has_layer_options(const struct import_options *options)
{
    return options->spacing || options->origin || options->height_scale || options->height_offset ||
           options->nodata || options->cols || options->rows || options->format ||
           options->flip_y || options->role || options->up || options->scale;
}

static enum kota_exit import_manifest(struct kota *kota, const struct import_options *options)
{
    char path[KOTA_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    enum kota_exit done;

    if (has_layer_options(options))
        err_set(&kota->err, ERR_BAD_INPUT, "the options of a layer need LAYER FILE");
    else if (!kota_locale_path(kota, "", path))
        manifest_text(options, &text, &length, &kota->err);
    done = kota->err.code ? kota_misused(kota)
                          : import_send(kota, path, "application/json", text, length);
    free(text);
    return done;
}

static enum kota_exit import_layer(struct kota *kota, const struct import_options *options,
                                   const char *path, const char *media_type, const char *bytes,
                                   size_t length)
{
    cJSON *answer = NULL;

    if (has_manifest_options(options) && claim_locale(kota, options))
        return kota_failed(kota);
    if (call_put(kota->call, path, media_type, bytes, length, &answer, &kota->err) ==
        ERR_NOT_FOUND) {
        kota->err.code = ERR_OK;
        if (!make_locale(kota, options))
            call_put(kota->call, path, media_type, bytes, length, &answer, &kota->err);
    }
    if (!kota->err.code)
        print_json_line(stdout, answer, &kota->err);
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit import_file(struct kota *kota, const struct import_options *options)
{
    char path[KOTA_PATH_MAX];
    const char *file = kota->words[2];
    const char *media_type = media_type_of(file, options->format);
    char *bytes = NULL;
    size_t length = 0;
    enum kota_exit done;

    if (!media_type)
        err_set(&kota->err, ERR_BAD_INPUT,
                "%.200s: which format? --format png|f32|hgt|asc|obj|glb|gltf|ply|stl|ac|dae", file);
    else if (!layer_path(kota, options, path))
        read_file(file, &bytes, &length, &kota->err);
    done = kota->err.code ? kota_misused(kota)
                          : import_layer(kota, options, path, media_type, bytes, length);
    free(bytes);
    return done;
}

static enum kota_exit import_run(struct kota *kota)
{
    struct import_options o = {0};
    const struct args_option own[] = {{.name = "title", .text = &o.title},
                                      {.name = "triangulation", .text = &o.triangulation},
                                      {.name = "manifest", .text = &o.manifest},
                                      {.name = "spacing", .text = &o.spacing},
                                      {.name = "origin", .text = &o.origin},
                                      {.name = "height-scale", .text = &o.height_scale},
                                      {.name = "height-offset", .text = &o.height_offset},
                                      {.name = "nodata", .text = &o.nodata},
                                      {.name = "cols", .text = &o.cols},
                                      {.name = "rows", .text = &o.rows},
                                      {.name = "format", .text = &o.format},
                                      {.name = "role", .text = &o.role},
                                      {.name = "up", .text = &o.up},
                                      {.name = "scale", .text = &o.scale},
                                      {.name = "flip-y", .flag = &o.flip_y},
                                      {.name = NULL}};
    enum kota_exit done;

    if (!kota_begin(kota, own, 1, 3, &done))
        return done;
    if (kota->word_count == 2) {
        err_set(&kota->err, ERR_BAD_INPUT, "the file of layer '%.64s' is missing", kota->words[1]);
        return kota_misused(kota);
    }
    return kota->word_count == 1 ? import_manifest(kota, &o) : import_file(kota, &o);
}

const struct kota_command command_import = {
    .name = "import",
    .synopsis = "ID [LAYER FILE]",
    .summary = "makes or replaces a locale, a heightfield or a mesh",
    .help =
        "With an id alone the locale is made, or its manifest replaced:\n"
        "  --title TEXT\n"
        "  --triangulation T anti (default), main or alternating\n"
        "  --manifest FILE   the whole manifest as JSON instead\n"
        "\n"
        "With LAYER and FILE the layer is made or replaced, and the locale too if there is none;\n"
        "the options above are then those of the new locale.\n"
        "\n"
        "With LAYER and FILE (.png .f32 .hgt .asc) the heightfield is:\n"
        "  --spacing SX,SY   metres between samples; an .asc file brings its own\n"
        "  --origin X,Y      of the first sample (0,0)\n"
        "  --height-scale S --height-offset O\n"
        "                    height = O + S * number in the file (1 and 0)\n"
        "  --flip-y          the first row of the file is its north edge\n"
        "  --nodata N        this number in the file is a hole\n"
        "  --cols C --rows R size of an .f32 file\n"
        "\n"
        "With LAYER and FILE (.obj .glb .gltf .ply .stl .ac .dae) the mesh is:\n"
        "  --role R          ground (default), or ceiling: never a floor\n"
        "  --up AXIS         z (default) or y: the file's upward axis\n"
        "  --scale S         metres a unit of the file (1)\n"
        "\n"
        "  --format F        the ending that the file's name should have\n"
        "\n"
        "Prints the locale as it is then.\n",
    .run = import_run,
};
