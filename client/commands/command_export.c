/*
 * kota export: a layer as a file.
 *
 * The answer goes to the disk as it arrives, and the file appears when it is complete (target.h): a
 * reader gets the old file or the new one, never a part. Values that the file cannot hold (spacing,
 * origin, scale, size) are printed as the command that imports it again, on standard error, since
 * standard output is for answers.
 */
#include "client/kota.h"
#include "client/print.h"
#include "client/progress.h"
#include "client/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_COLS,
    HEADER_ROWS,
    HEADER_SPACING,
    HEADER_ORIGIN,
    HEADER_SCALE,
    HEADER_OFFSET,
    HEADER_LENGTH,
    HEADER_COUNT
};
enum { SILENCE_FACTOR = 10 };

static const struct {
    const char *ending, *format, *media_type;
} formats[] = {
    {".f32", "f32", "application/vnd.kota.f32"},
    {".png", "png16", "image/png"},
    {".obj", "obj", "model/obj"},
};

/* The daemon's answer about the layer. */
struct exported {
    bool is_mesh, is_ceiling;
    char frame[16], gravity[8]; /* of a mesh; gravity empty: the locale's */
    char triangulation[32];
    struct call_header headers[HEADER_COUNT];
};

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

static enum err_code look(struct kota *kota, struct exported *out)
{
    char path[KOTA_PATH_MAX];
    cJSON *locale = NULL;
    const cJSON *layer;
    bool is_found = false;

    if (kota_locale_path(kota, "", path) || call_get(kota->call, path, &locale, &kota->err))
        return kota->err.code;
    snprintf(out->triangulation, sizeof(out->triangulation), "%s",
             text_of(locale, "triangulation"));
    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(locale, "layers"))
    {
        if (strcmp(text_of(layer, "id"), kota->words[1]) != 0)
            continue;
        is_found = true;
        out->is_mesh = strcmp(text_of(layer, "kind"), "mesh") == 0;
        out->is_ceiling = strcmp(text_of(layer, "role"), "ceiling") == 0;
        snprintf(out->frame, sizeof(out->frame), "%s", text_of(layer, "frame"));
        snprintf(out->gravity, sizeof(out->gravity), "%s", text_of(layer, "gravity"));
    }
    cJSON_Delete(locale);
    if (!is_found)
        return err_set(&kota->err, ERR_NOT_FOUND, "there is no layer %s in locale %s",
                       kota->words[1], kota->words[0]);
    return ERR_OK;
}

/* ---- the line ----------------------------------------------------------------------------- */

/* A word that a shell reads as it is. */
static void print_word(FILE *stream, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_-./=,:@%+";

    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, stream);
        return;
    }
    fputc('\'', stream);
    for (; *word; word++)
        *word == '\'' ? fputs("'\\''", stream) : fputc(*word, stream);
    fputc('\'', stream);
}

static void print_import(const struct kota *kota, const struct exported *export, const char *format)
{
    static const char *const names[] = {"cols",   "rows",         "spacing",
                                        "origin", "height-scale", "height-offset"};
    bool is_obj = strcmp(format, "obj") == 0, is_png = strcmp(format, "png16") == 0;

    fprintf(stderr, "kota import %s %s ", kota->words[0], kota->words[1]);
    print_word(stderr, kota->words[2]);
    for (int i = 0; i < HEADER_LENGTH; i++) {
        bool is_size = i == HEADER_COLS || i == HEADER_ROWS;
        char value[sizeof(export->headers[i].value)];

        if (is_obj || !*export->headers[i].value || (is_size && is_png))
            continue;
        memcpy(value, export->headers[i].value, sizeof(value));
        print_sanitize(value);
        fprintf(stderr, " --%s=", names[i]);
        print_word(stderr, value);
    }
    if (is_png)
        fprintf(stderr, " --nodata=0");
    if (export->is_ceiling)
        fprintf(stderr, " --role=ceiling");
    if (export->is_mesh && *export->gravity) {
        fprintf(stderr, " --frame=");
        print_word(stderr, export->frame);
        fprintf(stderr, " --gravity=");
        print_word(stderr, export->gravity);
    }
    if (!is_obj && *export->triangulation && strcmp(export->triangulation, "anti") != 0) {
        fprintf(stderr, " --triangulation=");
        print_word(stderr, export->triangulation);
    }
    fputc('\n', stderr);
}

/* ---- the download ------------------------------------------------------------------------- */

struct download {
    struct target target;
    struct progress progress;
    const struct call_header *length;
    double bytes;
};

static enum err_code download_take(void *context, const char *bytes, size_t length, struct err *err)
{
    struct download *download = context;

    download->bytes += (double)length;
    progress_report(&download->progress, download->bytes, strtod(download->length->value, NULL));
    return target_take(&download->target, bytes, length, err);
}

/* ---- the command -------------------------------------------------------------------------- */

static int format_of(const char *file)
{
    const char *dot = strrchr(file, '.');

    for (int i = 0; dot && i < (int)(sizeof(formats) / sizeof(formats[0])); i++)
        if (strcasecmp(dot, formats[i].ending) == 0)
            return i;
    return -1;
}

static enum err_code fetch(struct kota *kota, struct exported *export, int format)
{
    struct download download = {.length = &export->headers[HEADER_LENGTH]};
    struct call_stream stream = {.headers = export->headers,
                                 .header_count = HEADER_COUNT,
                                 .silence_s = SILENCE_FACTOR * kota->timeout_s,
                                 .take = download_take,
                                 .context = &download};
    char path[KOTA_PATH_MAX], rest[128];

    snprintf(rest, sizeof(rest), "/layers/%s?format=%s", kota->words[1], formats[format].format);
    if (kota_locale_path(kota, rest, path) ||
        target_open(&download.target, kota->words[2], &kota->err))
        return kota->err.code;
    progress_begin(&download.progress, "export", "B", true);
    if (!call_get_stream(kota->call, path, formats[format].media_type, &stream, &kota->err))
        target_keep(&download.target, &kota->err);
    progress_end(&download.progress);
    target_drop(&download.target);
    return kota->err.code;
}

static enum kota_exit export_run(struct kota *kota)
{
    struct exported export = {.headers = {[HEADER_COLS] = {.name = "kota-cols"},
                                          [HEADER_ROWS] = {.name = "kota-rows"},
                                          [HEADER_SPACING] = {.name = "kota-spacing"},
                                          [HEADER_ORIGIN] = {.name = "kota-origin"},
                                          [HEADER_SCALE] = {.name = "kota-scale"},
                                          [HEADER_OFFSET] = {.name = "kota-offset"},
                                          [HEADER_LENGTH] = {.name = "content-length"}}};
    enum kota_exit done;
    int format;

    if (!kota_begin(kota, NULL, 3, 3, &done))
        return done;
    format = format_of(kota->words[2]);
    if (format < 0)
        err_set(&kota->err, ERR_BAD_INPUT, "%.200s: the name ends in .f32, .png or .obj",
                kota->words[2]);
    if (format < 0 || kota_check_id(kota->words[1], &kota->err))
        return kota_misused(kota);
    if (look(kota, &export) || fetch(kota, &export, format))
        return kota_failed(kota);
    print_import(kota, &export, formats[format].format);
    return KOTA_OK;
}

const struct kota_command command_export = {
    .name = "export",
    .synopsis = "ID LAYER FILE",
    .summary = "writes a layer to a file",
    .help = "The ending of FILE says how:\n"
            "  .f32   the samples of a heightfield, bit for bit; holes are NaN\n"
            "  .png   the same in 65535 steps, 16-bit grey; 0 is a hole\n"
            "  .obj   the triangles of a heightfield, or the polygons of a mesh as they came\n"
            "\n"
            "FILE is there whole or not at all, also when Ctrl-C ends it. Standard error gets the\n"
            "command that imports it again.\n",
    .words = {":locale", ":layer", ":file", NULL},
    .examples = (const char *const[]){"kota export highlands ground highlands.png",
                                      "kota export village bridge bridge.obj", NULL},
    .run = export_run,
};
