/*
 * kota import (once kota put, which still works): a locale's manifest, or the file of a heightfield
 * or a mesh.
 *
 * A file that the daemon reads goes up as it is; the daemon decodes and judges it. Here only its
 * kind is derived from its name, as in the daemon for files on its own command line. Other rasters
 * are read through GDAL and go up as float32 (import_raster.h), other meshes through assimp and go
 * up as OBJ (convert.h). Data in a file's name is read here: the daemon does not get the name. A
 * missing locale is made: after a 404 the manifest is sent, and then the file again; when that
 * fails the locale is deleted, unless it has been changed. The options of a manifest are never
 * dropped silently: beside a file they make the locale, or equal its manifest.
 */
#include "base/degree_grid.h"
#include "client/batch.h"
#include "client/convert.h"
#include "client/file.h"
#include "client/import_raster.h"
#include "client/number.h"
#include "client/print.h"
#include "client/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any daemon takes; keeps a slip of the hand from filling the memory. */
#define FILE_BYTES_MAX ((size_t)1 << 30)

/* The daemon's own, without --precision-max-m. */
#define PRECISION_MAX_M 0.01

struct import_options {
    const char *title, *triangulation, *manifest;
    const char *spacing, *origin, *height_scale, *height_offset, *nodata, *cols, *rows, *format;
    const char *role, *up, *scale, *frame, *gravity, *band, *precision_max;
    bool flip_y, strict;
    bool has_geo; /* known from the file, for a locale that is made, as is crs */
    const char *crs;
    double lat_deg, lng_deg;
};

/* What goes up. */
struct upload {
    const char *media_type;
    char *bytes;
    size_t length;
    struct import_raster raster; /* where the texts of its options are */
};

static const struct {
    const char *format, *media_type;
} media_types[] = {
    {"png", "image/png"},
    {"f32", "application/vnd.kota.f32"},
    {"hgt", "application/vnd.kota.hgt"},
    {"asc", "application/vnd.kota.asc"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
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

/* Empty: not sent. */
static enum err_code add_frame(char *path, const char *frame, struct err *err)
{
    size_t length = strlen(path);

    if (!frame)
        return ERR_OK;
    if (strcmp(frame, "cartesian") != 0 && strcmp(frame, "spherical") != 0 &&
        strcmp(frame, "cylindrical") != 0)
        return err_set(err, ERR_BAD_INPUT,
                       "--frame '%.64s' is not cartesian, spherical or cylindrical", frame);
    snprintf(path + length, KOTA_PATH_MAX - length, "%cframe=%s", strchr(path, '?') ? '&' : '?',
             frame);
    return ERR_OK;
}

static enum err_code layer_path(struct kota *kota, const struct import_options *options,
                                char path[KOTA_PATH_MAX])
{
    static const char *const roles[] = {"ground", "ceiling"}, *const axes[] = {"z", "y"};
    static const char *const pulls[] = {"in", "out"}, *const answers[] = {"true", "false"};
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
        add_query(path, "scale", options->scale, 1, err) || add_frame(path, options->frame, err) ||
        add_word(path, "gravity", options->gravity, pulls, err) ||
        add_query(path, "precision-max-m", options->precision_max, 1, err) ||
        add_word(path, "strict", options->strict ? "true" : NULL, answers, err))
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

static cJSON *manifest_body(const struct import_options *options)
{
    cJSON *body = cJSON_CreateObject();

    cJSON *geo = options->has_geo ? cJSON_AddObjectToObject(body, "geo") : NULL;

    if (batch_add_text(body, "title", options->title) &&
        batch_add_text(body, "triangulation", options->triangulation) &&
        batch_add_text(body, "crs", options->crs) &&
        (!options->has_geo || (batch_add(geo, "lat", batch_number(options->lat_deg)) &&
                               batch_add(geo, "lng", batch_number(options->lng_deg)))))
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

    if (!call_write(kota->call, "PUT", path, media_type, bytes, length, &answer, &kota->err))
        kota_print_locale(kota, answer);
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
        return file_read(options->manifest, FILE_BYTES_MAX, text, length, err);
    body = manifest_body(options);
    *text = cJSON_PrintUnformatted(body);
    cJSON_Delete(body);
    if (!*text)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    *length = strlen(*text);
    return ERR_OK;
}

static bool has_manifest_options(const struct import_options *options)
{
    return options->title || options->triangulation || options->manifest;
}

/*
 * Makes the locale of words[0] by the manifest's options; *made becomes its revision. One that
 * another client has just made is accepted, unless there are options.
 */
static enum err_code make_locale(struct kota *kota, const struct import_options *options,
                                 double *made)
{
    char path[KOTA_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    cJSON *answer = NULL;
    const cJSON *revision;

    if (!kota_locale_path(kota, "", path) && !manifest_text(options, &text, &length, &kota->err))
        call_put_new(kota->call, path, "application/json", text, length, &answer, &kota->err);
    if (kota->err.code == ERR_PRECONDITION_FAILED && !has_manifest_options(options))
        kota->err.code = ERR_OK;
    revision = cJSON_GetObjectItemCaseSensitive(answer, "revision");
    if (cJSON_IsNumber(revision))
        *made = revision->valuedouble;
    cJSON_Delete(answer);
    free(text);
    return kota->err.code;
}

/* The layer that it was made for is not there: it should not be, either. */
static void unmake_locale(struct kota *kota, double made)
{
    char path[KOTA_PATH_MAX];
    struct err err = {.code = ERR_OK};

    if (kota_locale_path(kota, "", path) || !call_delete_at(kota->call, path, made, &err))
        return;
    if (err.code == ERR_PRECONDITION_FAILED || err.code == ERR_NOT_FOUND)
        return; /* changed by another client meanwhile */
    print_sanitize(err.msg);
    fprintf(stderr, "kota: locale %s was made and stays, without the layer: %s\n", kota->words[0],
            err.msg);
}

/* The locale by the options of a manifest: made, or found to be so already. */
static enum err_code claim_locale(struct kota *kota, const struct import_options *options,
                                  double *made)
{
    char path[KOTA_PATH_MAX];
    cJSON *locale = NULL;
    const char *triangulation;

    if (kota_locale_path(kota, "", path))
        return kota->err.code;
    if (call_get(kota->call, path, &locale, &kota->err) == ERR_NOT_FOUND) {
        kota->err.code = ERR_OK;
        return make_locale(kota, options, made);
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

static bool has_layer_options(const struct import_options *options)
{
    return options->spacing || options->origin || options->height_scale || options->height_offset ||
           options->nodata || options->cols || options->rows || options->format ||
           options->flip_y || options->role || options->up || options->scale || options->frame ||
           options->gravity || options->band || options->strict || options->precision_max;
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

/* ---- files that the daemon does not read -------------------------------------------------- */

static void report_progress(void *context, double done, double all)
{
    progress_report(context, done, all);
}

/* Reads it through GDAL and completes the options from the file. */
static enum err_code read_raster(struct kota *kota, struct import_options *o, struct upload *upload)
{
    struct import_raster *raster = &upload->raster;
    struct progress progress;
    double band = 1;

    if (o->band && number_count(o->band, 1, 1e6, &band, &kota->err))
        return err_set(&kota->err, ERR_BAD_INPUT, "--band '%.40s' is no number from 1", o->band);
    if (o->cols || o->rows)
        return err_set(&kota->err, ERR_BAD_INPUT, "--cols and --rows are of .f32 files");
    progress_begin(&progress, "read", "rows", true);
    import_raster_read(kota->words[2], (int)band, o->spacing != NULL, report_progress, &progress,
                       raster, &kota->err);
    progress_end(&progress);
    if (kota->err.code)
        return kota->err.code;
    if (o->flip_y && *raster->spacing) {
        free(raster->bytes);
        return err_set(&kota->err, ERR_BAD_INPUT,
                       "--flip-y is for files that do not say which row is north; this one does");
    }
    print_sanitize(raster->note);
    fprintf(stderr, "kota: %s: %s\n", kota->words[2], raster->note);
    o->has_geo = raster->has_geo && !o->origin && !o->spacing;
    o->lat_deg = raster->lat_deg;
    o->lng_deg = raster->lng_deg;
    o->crs = *raster->crs && !o->origin && !o->spacing ? raster->crs : NULL;
    o->origin = o->origin || o->spacing || !*raster->origin ? o->origin : raster->origin;
    o->spacing = o->spacing ? o->spacing : raster->spacing;
    o->height_scale = o->height_scale || !*raster->scale ? o->height_scale : raster->scale;
    o->height_offset = o->height_offset || !*raster->offset ? o->height_offset : raster->offset;
    o->flip_y = o->flip_y || raster->flip_y;
    o->cols = raster->cols;
    o->rows = raster->rows;
    *upload = (struct upload){.media_type = "application/vnd.kota.f32",
                              .bytes = raster->bytes,
                              .length = raster->length,
                              .raster = *raster};
    return ERR_OK;
}

/* assimp rounds to float32: the step is reported, and refused beyond --precision-max-m. */
static enum err_code judge_precision(const char *file, const struct import_options *o, double step,
                                     struct err *err)
{
    double scale = 1, most_m = PRECISION_MAX_M;

    if ((o->scale && number_exact_list(o->scale, &scale, 1, err)) ||
        (o->precision_max && number_exact_list(o->precision_max, &most_m, 1, err)))
        return err->code;
    if (!(step * scale <= most_m))
        return err_limit(err, ERR_UNPROCESSABLE, most_m, step * scale,
                         "%.120s is read through assimp as float32, which has steps of %g m at its "
                         "coordinates, over --precision-max-m %g: move it nearer to 0, or save it "
                         "as OBJ or PLY",
                         file, step * scale, most_m);
    fprintf(stderr, "kota: %s: read through assimp as float32, in steps of %g m\n", file,
            step * scale);
    return ERR_OK;
}

static enum err_code read_mesh(struct kota *kota, const struct import_options *o,
                               const char *ending, struct upload *upload)
{
    char *bytes = NULL;
    size_t length = 0;
    struct err cause = {0};
    double step = 0;

    if (file_read(kota->words[2], FILE_BYTES_MAX, &bytes, &length, &kota->err))
        return kota->err.code;
    upload->media_type = "model/obj";
    if (convert_to_obj(bytes, length, ending, &upload->bytes, &upload->length, &step, &cause))
        err_set(&kota->err, cause.code, "%.120s: %.180s", kota->words[2], cause.msg);
    else
        judge_precision(kota->words[2], o, step, &kota->err);
    free(bytes);
    return kota->err.code;
}

/* An SRTM tile is placed by its name, north first, as when the daemon reads it from its disk. */
static bool place_tile(const char *file, struct import_options *o, struct upload *upload)
{
    char *text = upload->raster.spacing, number[NUMBER_TEXT_MAX];
    double spacing_m[2];

    if (!hgt_name_spacing(file, upload->length, spacing_m))
        return false;
    number_format(spacing_m[0], text);
    number_format(spacing_m[1], number);
    sprintf(text + strlen(text), ",%s", number);
    o->spacing = text;
    o->flip_y = true;
    fprintf(stderr, "kota: %s: an SRTM tile, by its name: spacing %.6g x %.6g m, north first\n",
            file, spacing_m[0], spacing_m[1]);
    return true;
}

/* The spacing in metres is in .asc files and meshes, in some names, and else an option. */
static enum err_code need_spacing(const char *file, struct import_options *o, struct upload *upload,
                                  struct err *err)
{
    bool is_tile = strcmp(upload->media_type, "application/vnd.kota.hgt") == 0;

    if (o->spacing || (!is_tile && strcmp(upload->media_type, "image/png") != 0 &&
                       strcmp(upload->media_type, "application/vnd.kota.f32") != 0))
        return ERR_OK;
    if (is_tile && place_tile(file, o, upload))
        return ERR_OK;
    return err_set(err, ERR_BAD_INPUT,
                   "--spacing SX,SY is missing: the metres between samples, which %.120s does not "
                   "say%s",
                   file, is_tile ? "; a tile that is named like N42E001.hgt does" : "");
}

/* What the file is, by --format or by the ending of its name, and its bytes. */
static enum err_code read_upload(struct kota *kota, struct import_options *o, struct upload *upload)
{
    const char *file = kota->words[2];
    const char *dot = strrchr(file, '.'), *ending = dot ? dot + 1 : "";
    struct err *err = &kota->err;

    upload->media_type = o->band ? NULL : media_type_of(file, o->format);
    /* By GDAL where it is: it reads masks and bands, and no body limits the size of the file. */
    if (upload->media_type && !o->format && strcmp(upload->media_type, "image/tiff") == 0) {
        const char *media_type = upload->media_type;

        if (read_raster(kota, o, upload) != ERR_NO_DEVICE)
            return err->code;
        err->code = ERR_OK;
        upload->media_type = media_type;
    }
    if (upload->media_type) {
        if (!file_read(file, FILE_BYTES_MAX, &upload->bytes, &upload->length, err))
            need_spacing(file, o, upload, err);
        return err->code;
    }
    if (o->format ? strcasecmp(o->format, "assimp") == 0 : convert_knows(ending))
        return read_mesh(kota, o, ending, upload);
    if (o->format && strcasecmp(o->format, "gdal") != 0)
        return err_set(
            err, ERR_BAD_INPUT,
            "%.120s: which format? --format png|f32|hgt|asc|tif|obj|glb|gltf|ply|stl|ac|dae, "
            "gdal or assimp",
            file);
    if (read_raster(kota, o, upload) == ERR_NO_DEVICE && !o->format && !o->band) {
        struct err cause = *err;

        err_set(
            err, ERR_BAD_INPUT,
            "%.120s: which format? --format png|f32|hgt|asc|tif|obj|glb|gltf|ply|stl|ac|dae; or "
            "%.150s",
            file, cause.msg);
    }
    return err->code;
}

/* ---- the layer ---------------------------------------------------------------------------- */

static enum err_code put_layer(struct kota *kota, const char *path, const struct upload *upload,
                               cJSON **answer)
{
    struct progress progress;

    progress_begin(&progress, "import", "B", true);
    call_on_upload(kota->call, report_progress, &progress);
    call_write(kota->call, "PUT", path, upload->media_type, upload->bytes, upload->length, answer,
               &kota->err);
    call_on_upload(kota->call, NULL, NULL);
    progress_end(&progress);
    return kota->err.code;
}

/* On standard error: which polygons are not in the mesh, and why. */
static void print_dropped(const char *file, const cJSON *answer)
{
    const cJSON *import = cJSON_GetObjectItemCaseSensitive(answer, "import"), *item;
    const cJSON *dropped = cJSON_GetObjectItemCaseSensitive(import, "dropped");
    double rest = cJSON_IsNumber(dropped) ? dropped->valuedouble : 0;

    if (!(rest > 0))
        return;
    fprintf(stderr, "kota: %s: %.0f polygons were dropped:\n", file, rest);
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(import, "dropped_polygons"))
    {
        const cJSON *number = cJSON_GetObjectItemCaseSensitive(item, "polygon");
        char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "reason"));

        if (!cJSON_IsNumber(number) || !reason)
            continue;
        print_sanitize(reason);
        fprintf(stderr, "kota:   polygon %.0f: %s\n", number->valuedouble, reason);
        rest--;
    }
    if (rest > 0)
        fprintf(stderr, "kota:   and %.0f more\n", rest);
}

/* On standard error: instances of the file, where there are any. */
static void print_instances(const char *file, const cJSON *answer)
{
    const cJSON *import = cJSON_GetObjectItemCaseSensitive(answer, "import");
    const cJSON *shared = cJSON_GetObjectItemCaseSensitive(import, "instances_shared");
    const cJSON *copied = cJSON_GetObjectItemCaseSensitive(import, "instances_copied");

    if (cJSON_IsNumber(shared) && cJSON_IsNumber(copied) &&
        shared->valuedouble + copied->valuedouble > 0)
        fprintf(stderr, "kota: %s: %.0f instances share their polygons, %.0f are copied\n", file,
                shared->valuedouble, copied->valuedouble);
}

static enum kota_exit import_layer(struct kota *kota, const struct import_options *options,
                                   const char *path, const struct upload *upload)
{
    cJSON *answer = NULL;
    double made = 0; /* the revision of a locale that was made; 0: none was */

    if (has_manifest_options(options) && claim_locale(kota, options, &made))
        return kota_failed(kota);
    if (put_layer(kota, path, upload, &answer) == ERR_NOT_FOUND) {
        kota->err.code = ERR_OK;
        if (!make_locale(kota, options, &made))
            put_layer(kota, path, upload, &answer);
    }
    if (kota->err.code && made > 0)
        unmake_locale(kota, made);
    if (!kota->err.code) {
        print_dropped(kota->words[2], answer);
        print_instances(kota->words[2], answer);
        kota_print_locale(kota, answer);
    }
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

/* The options are checked before the file is read, and again with the values of the file. */
static enum kota_exit import_file(struct kota *kota, struct import_options *options)
{
    char path[KOTA_PATH_MAX];
    struct upload upload = {.media_type = NULL};
    enum kota_exit done;

    if (!layer_path(kota, options, path) && !read_upload(kota, options, &upload))
        layer_path(kota, options, path);
    done = kota->err.code ? kota_misused(kota) : import_layer(kota, options, path, &upload);
    free(upload.bytes);
    return done;
}

static enum kota_exit import_run(struct kota *kota)
{
    struct import_options o = {0};
    enum kota_exit done;

    if (!kota_begin(kota, &o, 1, 3, &done))
        return done;
    if (kota->word_count == 2) {
        err_set(&kota->err, ERR_BAD_INPUT, "the file of layer '%.64s' is missing", kota->words[1]);
        return kota_misused(kota);
    }
    return kota->word_count == 1 ? import_manifest(kota, &o) : import_file(kota, &o);
}

#define OPTION(...) COMMAND_OPTION(struct import_options, __VA_ARGS__)

static const struct kota_option import_table[] = {
    {.help = "The locale:"},
    OPTION(title, "title", "TEXT", "what it is called"),
    OPTION(triangulation, "triangulation", "T", "anti (default), main or alternating",
           .words = "anti main alternating"),
    OPTION(manifest, "manifest", "FILE", "the whole manifest as JSON instead", .words = ":file"),
    {.help = "A heightfield:"},
    OPTION(spacing, "spacing", "SX,SY", "metres between samples, where the file does not say"),
    OPTION(origin, "origin", "X,Y", "of the sample with the smallest x and y"),
    OPTION(height_scale, "height-scale", "S", "height = O + S * number in the file (1)"),
    OPTION(height_offset, "height-offset", "O", "(0)"),
    OPTION(flip_y, "flip-y", NULL, "the first row of the file is its north edge"),
    OPTION(nodata, "nodata", "N", "this number in the file is a hole"),
    OPTION(cols, "cols", "C", "columns of an .f32 file"),
    OPTION(rows, "rows", "R", "rows of an .f32 file"),
    OPTION(band, "band", "N", "read by GDAL, this band of it (1)"),
    {.help = "A mesh:"},
    OPTION(role, "role", "R", "ground (default), or ceiling: never a floor",
           .words = "ground ceiling"),
    OPTION(up, "up", "AXIS", "z (default) or y: the file's upward axis", .words = "z y"),
    OPTION(scale, "scale", "S", "metres a unit of the file (1)"),
    OPTION(frame, "frame", "FRAME", "a planet, or a drum around the z axis; cartesian (default)",
           .words = "cartesian spherical cylindrical"),
    OPTION(gravity, "gravity", "WAY", "in such a frame: in (spherical), out (cylindrical)",
           .words = "in out"),
    OPTION(strict, "strict", NULL, "fails where a polygon would be dropped"),
    OPTION(precision_max, "precision-max-m", "M",
           "refuse what is read as float32 in greater steps (0.01)"),
    {.help = "Both:"},
    OPTION(format, "format", "F",
           "the ending that the name should have; gdal or assimp: read by that",
           .words = "png f32 hgt asc tif obj glb gltf ply stl ac dae gdal assimp"),
    {0},
};

const struct kota_command command_import = {
    .name = "import",
    .synopsis = "ID [LAYER FILE]",
    .summary = "makes or replaces a locale, a heightfield or a mesh",
    .help =
        "With only an id the locale is made, or its manifest replaced. With LAYER and FILE the\n"
        "layer is made or replaced, and the locale too if there is none; the options of a locale\n"
        "are then those of the new one.\n"
        "\n"
        "The ending of FILE says what it is. The daemon reads .png .f32 .hgt .asc .tif, and "
        "meshes\n"
        "in .obj .glb .gltf .ply .stl .ac .dae. An .hgt that is named after its corner "
        "(N42E001.hgt)\n"
        "has its spacing from there, and is north first; .png and .f32 need --spacing.\n"
        "\n"
        "Rasters are read through GDAL, if it is installed: VRT, NetCDF and so on, and GeoTIFF "
        "too,\n"
        "with spacing and origin in metres from their geotransform and holes where they have no\n"
        "data. Projected coordinates stay what they are; geographic ones become a plane around\n"
        "the raster's middle, and a new locale gets its place on the globe. Other meshes (.fbx\n"
        ".3ds .off .blend and so on) are converted through assimp. Standard error has\n"
        "the result. When the layer fails, a locale that was made for it is gone again.\n"
        "\n"
        "Polygons of a mesh that cannot be kept (no area, crossing themselves) are dropped; "
        "standard\n"
        "error has their numbers; with --strict nothing is imported then.\n",
    .options = import_table,
    .words = {":locale", ":layer", ":file", NULL},
    .run = import_run,
};
