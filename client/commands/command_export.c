/*
 * kota export: a layer as a file.
 *
 * The answer goes to the disk as it arrives, and the file appears when it is complete (target.h): a
 * reader gets the old file or the new one, never a part. Values that the file cannot hold (spacing,
 * origin, scale, size) are printed as the command that imports it again, on standard error, since
 * standard output is for answers. With --for they are the answer: what to type into an engine.
 */
#include "client/engine.h"
#include "client/kota.h"
#include "client/number.h"
#include "client/print.h"
#include "client/progress.h"
#include "client/target.h"

#include <math.h>
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

struct export_options {
    const char *engine, *size;
};

/* The daemon's answer about the layer. */
struct exported {
    bool is_mesh, is_ceiling;
    double cols, rows;          /* of a heightfield */
    char frame[16], gravity[8]; /* of a mesh; gravity empty: the locale's */
    char triangulation[32];
    struct call_header headers[HEADER_COUNT];
};

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

static enum err_code look(struct kota *kota, struct exported *out)
{
    char path[KOTA_PATH_MAX];
    cJSON *locale = NULL;
    const cJSON *layer;
    bool is_found = false;

    if (kota_question_path(kota, "", path) || call_get(kota->call, path, &locale, &kota->err))
        return kota->err.code;
    snprintf(out->triangulation, sizeof(out->triangulation), "%s",
             text_of(locale, "triangulation"));
    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(locale, "layers"))
    {
        if (strcmp(text_of(layer, "id"), kota->words[1]) != 0)
            continue;
        is_found = true;
        out->is_mesh = strcmp(text_of(layer, "kind"), "mesh") == 0;
        out->cols = number_of(layer, "cols");
        out->rows = number_of(layer, "rows");
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

static int format_of(const char *file)
{
    const char *dot = strrchr(file, '.');

    for (int i = 0; dot && i < (int)(sizeof(formats) / sizeof(formats[0])); i++)
        if (strcasecmp(dot, formats[i].ending) == 0)
            return i;
    return -1;
}

/* The answer to GET of the locale's path with `rest` becomes the file. */
static enum err_code fetch(struct kota *kota, struct exported *export, const char *rest,
                           const char *media_type)
{
    struct download download = {.length = &export->headers[HEADER_LENGTH]};
    struct call_stream stream = {.headers = export->headers,
                                 .header_count = HEADER_COUNT,
                                 .silence_s = SILENCE_FACTOR * kota->timeout_s,
                                 .take = download_take,
                                 .context = &download};
    char path[KOTA_PATH_MAX];

    if (kota_question_path(kota, rest, path) ||
        target_open(&download.target, kota->words[2], &kota->err))
        return kota->err.code;
    progress_begin(&download.progress, "export", "B", true);
    if (!call_get_stream(kota->call, path, media_type, &stream, &kota->err))
        target_keep(&download.target, &kota->err);
    progress_end(&download.progress);
    target_drop(&download.target);
    return kota->err.code;
}

static enum kota_exit export_plain(struct kota *kota, struct exported *export)
{
    int format = format_of(kota->words[2]);
    char rest[128];

    if (format < 0) {
        err_set(&kota->err, ERR_BAD_INPUT, "%.200s: the name ends in .f32, .png or .obj",
                kota->words[2]);
        return kota_misused(kota);
    }
    snprintf(rest, sizeof(rest), "/layers/%s?format=%s", kota->words[1], formats[format].format);
    if (look(kota, export) || fetch(kota, export, rest, formats[format].media_type))
        return kota_failed(kota);
    print_import(kota, export, formats[format].format);
    return KOTA_OK;
}

/* ---- for an engine ------------------------------------------------------------------------ */

/* A glb of the daemon's: each step-th sample of a field, so that its longer side has `size`. */
static enum err_code fetch_glb(struct kota *kota, struct exported *export, const char *engine,
                               uint32_t size, cJSON **told)
{
    double side = export->cols > export->rows ? export->cols : export->rows, step = 1;
    char rest[160];
    int length;

    length = snprintf(rest, sizeof(rest), "/3dtiles/%s.glb", kota->words[1]);
    if (size && !export->is_mesh) {
        step = size > 1 && size < side ? ceil((side - 1) / (size - 1)) : 1;
        snprintf(rest + length, sizeof(rest) - (size_t)length, "?step=%.0f", step);
    }
    if (fetch(kota, export, rest, "model/gltf-binary"))
        return kota->err.code;
    *told = cJSON_CreateObject();
    if (!cJSON_AddStringToObject(*told, "for", engine) ||
        !cJSON_AddStringToObject(*told, "format", "glb") ||
        !cJSON_AddStringToObject(*told, "up", "y") ||
        !cJSON_AddStringToObject(*told, "axes", "x, z, -y"))
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

/* All samples of the layer, in units of its grid. */
struct samples {
    const struct exported *export;
    float *at;
    size_t bytes, wanted;
};

static enum err_code samples_take(void *context, const char *bytes, size_t length, struct err *err)
{
    struct samples *samples = context;
    const struct call_header *headers = samples->export->headers;

    if (!samples->at) {
        double count =
            strtod(headers[HEADER_COLS].value, NULL) * strtod(headers[HEADER_ROWS].value, NULL);

        samples->wanted = count >= 4 && count < 1e12 ? (size_t)count * sizeof(float) : 0;
        samples->at = samples->wanted ? malloc(samples->wanted) : NULL;
        if (!samples->at)
            return err_set(err, ERR_NO_MEMORY, "no memory for %s x %s samples",
                           headers[HEADER_COLS].value, headers[HEADER_ROWS].value);
    }
    if (length > samples->wanted - samples->bytes)
        return err_set(err, ERR_INTERNAL, "more samples came than Kota-Cols and Kota-Rows say");
    memcpy((char *)samples->at + samples->bytes, bytes, length);
    samples->bytes += length;
    return ERR_OK;
}

static enum err_code ground_of(struct kota *kota, struct exported *export,
                               struct engine_ground *ground)
{
    struct samples samples = {.export = export};
    struct call_stream stream = {.headers = export->headers,
                                 .header_count = HEADER_COUNT,
                                 .silence_s = SILENCE_FACTOR * kota->timeout_s,
                                 .take = samples_take,
                                 .context = &samples};
    struct heightfield_spec spec = {.spacing_x_m = 1, .spacing_y_m = 1};
    char path[KOTA_PATH_MAX], rest[128];

    if (strcmp(export->triangulation, "main") == 0)
        spec.triangulation = TRIANGULATION_MAIN;
    else if (strcmp(export->triangulation, "alternating") == 0)
        spec.triangulation = TRIANGULATION_ALTERNATING;
    snprintf(rest, sizeof(rest), "/layers/%s?format=f32", kota->words[1]);
    if (!kota_question_path(kota, rest, path) &&
        !call_get_stream(kota->call, path, "application/vnd.kota.f32", &stream, &kota->err) &&
        !number_exact_list(export->headers[HEADER_SPACING].value, ground->spacing_m, 2,
                           &kota->err) &&
        !number_exact_list(export->headers[HEADER_ORIGIN].value, ground->origin_m, 2, &kota->err)) {
        spec.cols = (uint32_t)strtoul(export->headers[HEADER_COLS].value, NULL, 10);
        spec.rows = (uint32_t)strtoul(export->headers[HEADER_ROWS].value, NULL, 10);
        if (samples.bytes != samples.wanted || samples.bytes == 0)
            err_set(&kota->err, ERR_INTERNAL, "not all samples came");
        else
            ground->field = heightfield_create(&spec, samples.at, &kota->err);
    }
    free(samples.at);
    return kota->err.code;
}

static enum err_code write_engine(struct kota *kota, struct exported *export,
                                  const struct engine *engine, uint32_t size, cJSON **told)
{
    struct engine_ground ground = {.field = NULL};
    struct engine_file file = {.bytes = NULL};
    struct target target = {0};

    if (export->is_mesh)
        return err_set(&kota->err, ERR_BAD_INPUT,
                       "%s is a mesh: only blender and godot take it, as .glb", kota->words[1]);
    if (!ground_of(kota, export, &ground) &&
        !engine_encode(engine, kota->words[2], &ground, size, &file, &kota->err) &&
        !target_open(&target, kota->words[2], &kota->err) &&
        !target_take(&target, (const char *)file.bytes, file.length, &kota->err))
        target_keep(&target, &kota->err);
    target_drop(&target);
    heightfield_unref(ground.field);
    free(file.bytes);
    *told = file.told;
    return kota->err.code;
}

static enum kota_exit export_for_engine(struct kota *kota, const struct export_options *options,
                                        struct exported *export)
{
    const struct engine *engine = engine_of(options->engine, kota->words[2], &kota->err);
    const char *dot = strrchr(kota->words[2], '.');
    double size = 0;
    cJSON *told = NULL;

    if (!engine || (options->size && number_count(options->size, 2, 65536, &size, &kota->err)))
        return kota_misused(kota);
    if (!look(kota, export) &&
        !(dot && strcasecmp(dot, ".glb") == 0
              ? fetch_glb(kota, export, options->engine, (uint32_t)size, &told)
              : write_engine(kota, export, engine, (uint32_t)size, &told)))
        kota_print(kota, told);
    cJSON_Delete(told);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

/* ---- the command -------------------------------------------------------------------------- */

#define OPTION(...) COMMAND_OPTION(struct export_options, __VA_ARGS__)

static const struct kota_option export_table[] = {
    OPTION(engine, "for", "ENGINE",
           "as that engine reads it; prints what to type there (docs/engines.md)",
           .words = ENGINE_NAMES),
    OPTION(size, "size", "N",
           "samples of a side, with --for; without it the least that keeps each sample"),
    {0},
};

static enum kota_exit export_run(struct kota *kota)
{
    struct export_options options = {0};
    struct exported export = {.headers = {[HEADER_COLS] = {.name = "kota-cols"},
                                          [HEADER_ROWS] = {.name = "kota-rows"},
                                          [HEADER_SPACING] = {.name = "kota-spacing"},
                                          [HEADER_ORIGIN] = {.name = "kota-origin"},
                                          [HEADER_SCALE] = {.name = "kota-scale"},
                                          [HEADER_OFFSET] = {.name = "kota-offset"},
                                          [HEADER_LENGTH] = {.name = "content-length"}}};
    enum kota_exit done;

    if (!kota_begin(kota, &options, 3, 3, &done))
        return done;
    if (options.size && !options.engine)
        err_set(&kota->err, ERR_BAD_INPUT, "--size goes with --for");
    if (kota->err.code || kota_check_id(kota->words[1], &kota->err))
        return kota_misused(kota);
    if (options.engine)
        return export_for_engine(kota, &options, &export);
    return export_plain(kota, &export);
}

const struct kota_command command_export = {
    .name = "export",
    .synopsis = "ID LAYER FILE",
    .summary = "writes a layer to a file",
    .help =
        "The ending of FILE says how:\n"
        "  .f32   the samples of a heightfield, bit for bit; holes are NaN\n"
        "  .png   the same in 65535 steps, 16-bit grey; 0 is a hole\n"
        "  .obj   the triangles of a heightfield, or the polygons of a mesh as they came\n"
        "\n"
        "FILE is there whole or not at all, also when Ctrl-C ends it. Standard error gets the\n"
        "command that imports it again.\n"
        "\n"
        "With --for the file is what an engine imports, and standard output gets the numbers to\n"
        "type there:\n"
        "  unreal     .r16 or .png, 16 bits, 127 to 8129 samples a side\n"
        "  unity      .raw, 16 bits, 33 to 4097 samples a side\n"
        "  terrain3d  .r16, for the Godot plugin Terrain3D\n"
        "  godot      .f32 for HeightMapShape3D, or .glb\n"
        "  blender    .glb\n"
        "Where their samples are between those of the layer, they are on its triangles.\n",
    .options = export_table,
    .shared = kota_read_options,
    .words = {":locale", ":layer", ":file", NULL},
    .examples =
        (const char *const[]){"kota export highlands ground highlands.png",
                              "kota export village bridge bridge.obj",
                              "kota export highlands ground highlands.raw --for unity", NULL},
    .run = export_run,
};
