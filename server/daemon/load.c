/*
 * Loading a world.
 *
 * Problem: a daemon that starts with half of its world answers wrongly without saying so.
 * Approach: everything is loaded through the writer before the server starts, in one grammar with
 * the uploads (upload.h); the first error ends the start, and names file, member and value. A
 * locale.json names its files relative to its own folder, and may not lead out of it.
 * A reload reads changed files in the same way, into one unit of changes that the writer makes all
 * or none. To detect changes, the start keeps inode, size and time of each file that it reads,
 * taken before the file is opened: a file that is written meanwhile counts as changed.
 */
#include "daemon/load.h"

#include "api/manifest.h"
#include "api/options.h"
#include "api/upload.h"
#include "base/text/hex.h"
#include "base/degree_grid.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JSON_FILE_BYTES_MAX = 1 << 20 };

struct bytes {
    char *at;
    size_t length;
};

/* ---- files ----------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Reads a whole file; the error does not name it. at is freed by the caller, on error, too. */
static enum err_code file_read(const char *path, uint64_t bytes_max, struct bytes *out,
                               struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    ssize_t got = 1;

    *out = (struct bytes){NULL, 0};
    if (fd < 0 || fstat(fd, &status) != 0) {
        err_set(err, ERR_BAD_INPUT, "%s", strerror(errno));
        goto done;
    }
    if (!S_ISREG(status.st_mode)) {
        err_set(err, ERR_BAD_INPUT, "this is not a file");
        goto done;
    }
    if ((uint64_t)status.st_size > bytes_max) {
        err_limit(err, ERR_TOO_LARGE, (double)bytes_max, (double)status.st_size,
                  "the file has %lld bytes, the most is %llu", (long long)status.st_size,
                  (unsigned long long)bytes_max);
        goto done;
    }
    out->at = malloc((size_t)status.st_size + 1);
    if (!out->at) {
        err_set(err, ERR_NO_MEMORY, "no memory for %lld bytes", (long long)status.st_size);
        goto done;
    }
    while (got > 0 && out->length < (size_t)status.st_size) {
        got = read(fd, out->at + out->length, (size_t)status.st_size - out->length);
        out->length += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        err_set(err, ERR_BAD_INPUT, "%s", strerror(errno));
done:
    if (fd >= 0)
        close(fd);
    return err->code;
}

/* A call without a connection, for options from another source. */
static struct call call_for_options(struct api *api)
{
    return (struct call){.api = api};
}

/* Prepends file and place to the message of an error, which may name the file already. */
static enum err_code err_in(struct err *err, const char *file)
{
    char message[sizeof err->msg];
    size_t named = strlen(base_name(file));
    bool is_named = strncmp(err->msg, base_name(file), named) == 0 && err->msg[named] == ':' &&
                    err->msg[named + 1] == ' ';

    snprintf(message, sizeof message, "%s", err->msg + (is_named ? named + 2 : 0));
    if (snprintf(err->msg, sizeof err->msg, "%s: %s%s%s", file, err->pointer,
                 err->pointer[0] != '\0' ? ": " : "", message) >= (int)sizeof err->msg)
        strcpy(err->msg + sizeof err->msg - 4, "…");
    return err->code;
}

/* Prepends the name of a layer's file to the message of an error; the place stays. */
static void err_in_file(struct err *err, const char *name)
{
    char message[sizeof err->msg];

    memcpy(message, err->msg, sizeof message);
    if (snprintf(err->msg, sizeof err->msg, "%.100s: %s", name, message) >= (int)sizeof err->msg)
        strcpy(err->msg + sizeof err->msg - 4, "…");
}

/* ---- a layer --------------------------------------------------------------------------------- */

struct layer_source {
    const char *path;      /* the file */
    struct call *options;  /* its options, as a query or JSON */
    bool flips_by_default; /* .hgt and .asc on the command line */
    const struct locale_manifest *manifest;
};

static uint64_t file_bytes_max(const struct api *api, enum layer_kind kind)
{
    return kind == LAYER_MESH ? POLYGON_FILE_BYTES_MAX
                              : api_limits(api)->raster.samples_max * 16 + 65536;
}

static enum err_code format_of_name(const char *path, struct upload_format *out, struct err *err)
{
    if (upload_format_of_name(path, out))
        return ERR_OK;
    return err_set(
        err, ERR_BAD_INPUT,
        "%.100s ends in none of .png .f32 .hgt .asc .tif .obj .glb .gltf .ply .stl .ac .dae",
        base_name(path));
}

static void report_import(const char *path, const struct mesh_import *import)
{
    if (import->split > 0 || import->dropped > 0)
        log_info("%s: %llu polygons kept, %llu split, %llu dropped", path,
                 (unsigned long long)import->kept, (unsigned long long)import->split,
                 (unsigned long long)import->dropped);
    if (import->precision_m > 0)
        log_info("%s: read as float32, in steps of %g m at its coordinates", path,
                 import->precision_m);
}

/* The file's layer and the place that it says, into a change. */
static struct layer *layer_read(struct api *api, const char *id, const struct layer_source *source,
                                struct world_change *change, struct err *err)
{
    struct upload_format format;
    struct upload upload;
    struct uploaded uploaded;
    struct bytes file;
    bool is_hgt, is_asc;

    if (format_of_name(source->path, &format, err))
        return NULL;
    is_hgt = format.kind == LAYER_HEIGHTFIELD && format.raster == RASTER_HGT;
    is_asc = format.kind == LAYER_HEIGHTFIELD && format.raster == RASTER_ASC;
    if (upload_decode(source->options, format, source->flips_by_default && (is_hgt || is_asc),
                      &upload, err))
        return NULL;
    if (file_read(source->path, file_bytes_max(api, format.kind), &file, err)) {
        err_in_file(err, base_name(source->path));
        free(file.at);
        return NULL;
    }
    if (is_hgt && !upload.has_spacing)
        upload.has_spacing = hgt_name_spacing(source->path, file.length, upload.spacing_m);
    if (upload_layer(api, id, file.at, file.length, &upload, source->manifest, NULL, &uploaded,
                     err))
        err_in_file(err, base_name(source->path));
    else
        upload_release(api, uploaded.charge); /* one after the other: nothing to bound */
    report_import(source->path, &uploaded.import.mesh);
    free(file.at);
    upload_set_place(&uploaded, change);
    return uploaded.layer;
}

/* ---- where a locale came from ---------------------------------------------------------------- */

struct stamp {
    char path[PATH_MAX];
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
};

struct load_source {
    struct load_source *next;
    char id[WORLD_ID_MAX + 1];
    char *place; /* the folder, or the argument of the command line */
    struct stamp *stamps;
    size_t stamp_count;
    bool is_there; /* a reload has found it again */
};

static bool stamp_take(const char *path, struct stamp *out)
{
    struct stat status;

    memset(out, 0, sizeof *out);
    if (stat(path, &status) != 0 || snprintf(out->path, sizeof out->path, "%s", path) < 0)
        return false;
    out->device = status.st_dev;
    out->inode = status.st_ino;
    out->bytes = status.st_size;
    out->changed = status.st_mtim;
    return true;
}

static void source_free(struct load_source *source)
{
    if (!source)
        return;
    free(source->place);
    free(source->stamps);
    free(source);
}

static void sources_free(struct load_source *list)
{
    while (list) {
        struct load_source *next = list->next;

        source_free(list);
        list = next;
    }
}

void load_finish(struct api *api)
{
    sources_free(api->sources);
    api->sources = NULL;
}

static struct load_source *source_create(const char *id, const char *place, struct err *err)
{
    struct load_source *source = calloc(1, sizeof *source);

    if (source)
        source->place = strdup(place);
    if (!source || !source->place) {
        source_free(source);
        err_set(err, ERR_NO_MEMORY, "no memory for %s", place);
        return NULL;
    }
    snprintf(source->id, sizeof source->id, "%s", id);
    return source;
}

/* An error of stat(2) is reported by the later read. */
static enum err_code source_note(struct load_source *source, const char *path, struct err *err)
{
    struct stamp *stamps =
        realloc(source->stamps, (source->stamp_count + 1) * sizeof *source->stamps);

    if (!stamps)
        return err_set(err, ERR_NO_MEMORY, "no memory for the names of files");
    source->stamps = stamps;
    source->stamp_count += stamp_take(path, &stamps[source->stamp_count]);
    return ERR_OK;
}

static struct load_source *source_find(const struct api *api, const char *place)
{
    struct load_source *at = api->sources;

    while (at && strcmp(at->place, place) != 0)
        at = at->next;
    return at;
}

/* The source that has made a locale; NULL: none. */
static struct load_source *source_of(const struct api *api, const char *id)
{
    struct load_source *at = api->sources;

    while (at && strcmp(at->id, id) != 0)
        at = at->next;
    return at;
}

static bool source_has_changed(const struct load_source *source)
{
    for (size_t i = 0; i < source->stamp_count; i++) {
        const struct stamp *then = &source->stamps[i];
        struct stamp now;

        if (!stamp_take(then->path, &now) || now.device != then->device ||
            now.inode != then->inode || now.bytes != then->bytes ||
            now.changed.tv_sec != then->changed.tv_sec ||
            now.changed.tv_nsec != then->changed.tv_nsec)
            return true;
    }
    return false;
}

/* ---- one locale, whole ----------------------------------------------------------------------- */

/* What a reload gathers before anything is made. */
struct gathering {
    struct world_change *changes;
    size_t count;
    struct load_source *sources; /* of a reload */
};

/* A locale and its layers, made in one commit: a start that is cut short leaves none of it. */
struct import {
    struct api *api;
    const char *id;
    struct load_source *source;
    struct gathering *gathering; /* NULL: each locale is made at once */
    struct world_change changes[1 + LOCALE_LAYERS_MAX];
    size_t count;
};

/* Before the first file is read: place is the folder or the argument. */
static enum err_code import_open(struct import *import, struct api *api, const char *id,
                                 const char *place, struct gathering *gathering, struct err *err)
{
    import->api = api;
    import->id = id;
    import->gathering = gathering;
    import->count = 0;
    import->source = source_create(id, place, err);
    return import->source ? ERR_OK : err->code;
}

static void import_begin(struct import *import, const struct locale_manifest *manifest)
{
    struct world_change *change = &import->changes[0];
    bool is_again = import->gathering && source_find(import->api, import->source->place);

    import->count = 1;
    *change = (struct world_change){.kind = WORLD_PUT_LOCALE,
                                    .manifest = *manifest,
                                    .is_whole = is_again,
                                    .condition = is_again ? WORLD_IF_ANY : WORLD_IF_ABSENT};
    snprintf(change->locale_id, sizeof change->locale_id, "%s", import->id);
}

static enum err_code import_layer(struct import *import, const char *layer_id,
                                  const struct layer_source *source, struct err *err)
{
    struct world_change *change = &import->changes[import->count];

    if (import->count > LOCALE_LAYERS_MAX)
        return err_limit(err, ERR_TOO_LARGE, LOCALE_LAYERS_MAX, (double)import->count,
                         "a locale takes %d layers", LOCALE_LAYERS_MAX);
    *change = (struct world_change){.kind = WORLD_PUT_LAYER};
    snprintf(change->locale_id, sizeof change->locale_id, "%s", import->id);
    snprintf(change->layer_id, sizeof change->layer_id, "%s", layer_id);
    if (source_note(import->source, source->path, err))
        return err->code;
    change->layer = layer_read(import->api, layer_id, source, change, err);
    if (!change->layer)
        return err->code;
    import->count++;
    return ERR_OK;
}

static enum err_code gather(struct gathering *to, const struct import *import, struct err *err)
{
    struct world_change *all =
        realloc(to->changes, (to->count + import->count) * sizeof *to->changes);

    if (!all)
        return err_set(err, ERR_NO_MEMORY, "no memory for the changes of the world");
    to->changes = all;
    memcpy(all + to->count, import->changes, import->count * sizeof *all);
    to->count += import->count;
    return ERR_OK;
}

static void changes_drop(const struct world_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        layer_unref(changes[i].layer);
}

/* The locale exists: by another source of ours, or by a faster node, which is fine. */
static void not_absent(const struct import *import, struct err *err)
{
    if (!world_log(import->api->world) || source_of(import->api, import->id)) {
        err_set(err, ERR_CONFLICT, "two sources make the locale %s", import->id);
        return;
    }
    err->code = ERR_OK;
    log_info("%s: another node has made the locale %s", import->source->place, import->id);
}

/* Submits the import, or leaves it to the reload; after an error drops it. */
static enum err_code import_end(struct import *import, struct err *err)
{
    struct load_source **list =
        import->gathering ? &import->gathering->sources : &import->api->sources;

    if (err->code == ERR_OK && import->gathering)
        gather(import->gathering, import, err);
    if (err->code != ERR_OK)
        changes_drop(import->changes, import->count);
    else if (!import->gathering && world_apply_all(import->api->world, import->changes,
                                                   import->count, err) == ERR_PRECONDITION_FAILED)
        not_absent(import, err);
    if (err->code != ERR_OK) {
        source_free(import->source);
        return err->code;
    }
    import->source->next = *list;
    *list = import->source;
    return ERR_OK;
}

/*
 * Locales of the store are not read again: they may have been changed since; nor those that other
 * nodes serve.
 */
static bool is_stored(struct api *api, const char *id, const char *source)
{
    if (!world_serves(api->world, id)) {
        log_info("%s: locale %s is for other nodes (--locales)", source, id);
        return true;
    }
    if (!world_is_stored(api->world, id))
        return false;
    log_info("%s: locale %s is in the data directory already, which is what counts", source, id);
    return true;
}

/* ---- FILE?options ---------------------------------------------------------------------------- */

/* In place; '+' is a space. A '%' without two digits is kept. */
static struct span percent_decode(char *text, size_t length)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        bool is_escape = text[i] == '%' && i + 2 < length && hex_value(text[i + 1]) >= 0 &&
                         hex_value(text[i + 2]) >= 0;

        if (is_escape) {
            text[n++] = (char)(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
            i += 2;
        } else {
            text[n++] = text[i] == '+' ? ' ' : text[i];
        }
    }
    return (struct span){text, n};
}

/* Splits a query in place; the call borrows it. */
static enum err_code query_split(char *query, const char *path, struct call *call, struct err *err)
{
    struct upload_format format;
    char *save = NULL;

    if (format_of_name(path, &format, err))
        return err->code;
    for (char *item = strtok_r(query, "&", &save); item; item = strtok_r(NULL, "&", &save)) {
        char *equals = strchr(item, '=');
        size_t length = equals ? (size_t)(equals - item) : strlen(item);
        struct http_query_item q;

        if (call->query_count == CALL_QUERY_MAX)
            return err_set(err, ERR_BAD_INPUT, "more than %d options", CALL_QUERY_MAX);
        q.value = equals ? percent_decode(equals + 1, strlen(equals + 1)) : (struct span){"", 0};
        q.name = percent_decode(item, length);
        call->query[call->query_count++] = q;
    }
    return options_open_query(call, upload_names(format.kind), err);
}

/* The base name without its ending; characters that no id may hold become '-'. */
static void clean_id(const char *path, char out[static WORLD_ID_MAX + 1])
{
    const char *name = base_name(path), *dot = strrchr(name, '.');
    size_t length = dot && dot != name ? (size_t)(dot - name) : strlen(name);

    if (length > WORLD_ID_MAX)
        length = WORLD_ID_MAX;
    memcpy(out, name, length);
    out[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (!world_id_is_valid(out + i, 1))
            out[i] = '-';
    if (length == 0)
        strcpy(out, "file");
}

static enum err_code file_load(struct api *api, const char *argument, struct gathering *gathering,
                               struct err *err)
{
    struct locale_manifest manifest = locale_manifest_default;
    struct call call = call_for_options(api);
    struct layer_source source = {.options = &call, .flips_by_default = true};
    char id[WORLD_ID_MAX + 1];
    char *path = strdup(argument), *query;
    struct import *import = malloc(sizeof *import);

    err->code = ERR_OK;
    if (!path || !import) {
        free(path);
        free(import);
        return err_set(err, ERR_NO_MEMORY, "no memory for %s", argument);
    }
    query = strrchr(path, '?');
    if (query)
        *query++ = '\0';
    source.path = path;
    source.manifest = &manifest;
    clean_id(path, id);
    snprintf(manifest.title, sizeof manifest.title, "%.200s", base_name(path));
    if (!is_stored(api, id, argument) &&
        import_open(import, api, id, argument, gathering, err) == ERR_OK) {
        import_begin(import, &manifest);
        if (!query || query_split(query, path, &call, err) == ERR_OK)
            import_layer(import, "ground", &source, err);
        if (import_end(import, err))
            err_in(err, argument);
    }
    free(import);
    free(path);
    return err->code;
}

enum err_code load_file(struct api *api, const char *argument, struct err *err)
{
    return file_load(api, argument, NULL, err);
}

/* ---- DIR/<id>/locale.json -------------------------------------------------------------------- */

/* folder/file, when it is a file below the folder. */
static enum err_code path_below(const char *folder, const char *file, char out[static PATH_MAX],
                                struct err *err)
{
    char joined[PATH_MAX], root[PATH_MAX];
    size_t length;

    if (file[0] == '\0' || file[0] == '/' ||
        snprintf(joined, sizeof joined, "%s/%s", folder, file) >= (int)sizeof joined)
        return err_set(err, ERR_BAD_INPUT, "\"%.128s\" is no path relative to the locale's folder",
                       file);
    if (!realpath(folder, root) || !realpath(joined, out))
        return err_set(err, ERR_BAD_INPUT, "\"%.128s\": %s", file, strerror(errno));
    length = strlen(root);
    if (strncmp(out, root, length) != 0 || out[length] != '/')
        return err_set(err, ERR_BAD_INPUT, "\"%.128s\" leads out of the locale's folder", file);
    return ERR_OK;
}

/* The members are id, file and the options of the file's kind. */
static enum err_code check_members(const cJSON *json, struct err *err)
{
    const char *names[CALL_QUERY_MAX] = {"id", "file"};
    const cJSON *file = json_member(json, "file");
    struct upload_format format = {.kind = LAYER_HEIGHTFIELD};
    const char *const *of_kind;

    if (cJSON_IsString(file) && !upload_format_of_name(file->valuestring, &format))
        format.kind = LAYER_HEIGHTFIELD; /* refused by name, later */
    of_kind = upload_names(format.kind);
    for (size_t i = 0; of_kind[i]; i++)
        names[i + 2] = of_kind[i];
    return json_only_members(json, names, "", err);
}

static enum err_code load_layer(struct import *import, const char *folder, const cJSON *siblings,
                                const cJSON *json, struct err *err)
{
    struct call call = call_for_options(import->api);
    struct layer_source source = {.options = &call, .manifest = &import->changes[0].manifest};
    const char *id, *file;
    char path[PATH_MAX];

    if (check_members(json, err))
        return err->code;
    if (json_get_string(json_member(json, "id"), &id, err))
        return err_at(err, "/id");
    if (!world_id_is_valid(id, strlen(id)))
        return err_set_at(err, ERR_BAD_INPUT, "/id",
                          "\"%.64s\" is no id: 1 to %d characters of A-Za-z0-9_-", id,
                          WORLD_ID_MAX);
    if (json_get_string(json_member(json, "file"), &file, err) ||
        path_below(folder, file, path, err))
        return err_at(err, "/file");
    for (const cJSON *other = siblings; other != json; other = other->next) {
        const cJSON *name = json_member(other, "id");

        if (cJSON_IsString(name) && strcmp(name->valuestring, id) == 0)
            return err_set_at(err, ERR_BAD_INPUT, "/id", "two layers have the id \"%s\"", id);
    }
    call.json = (cJSON *)json;
    source.path = path;
    return import_layer(import, id, &source, err);
}

static enum err_code load_layers(struct import *import, const char *folder, const cJSON *json,
                                 struct err *err)
{
    const cJSON *layers = json_given(json, "layers");
    size_t i = 0;

    if (layers && !cJSON_IsArray(layers))
        return err_set_at(err, ERR_BAD_INPUT, "/layers", "an array was expected, not %s",
                          json_kind(layers));
    for (const cJSON *layer = layers ? layers->child : NULL; layer; layer = layer->next, i++) {
        char pointer[sizeof err->pointer];

        if (load_layer(import, folder, layers->child, layer, err) == ERR_OK)
            continue;
        snprintf(pointer, sizeof pointer, "%s", err->pointer);
        return err_at(err, "/layers/%zu%s%.60s", i,
                      pointer[0] != '\0' && pointer[0] != '/' ? "/" : "", pointer);
    }
    return ERR_OK;
}

static enum err_code read_locale(struct import *import, const char *folder, const cJSON *json,
                                 struct err *err)
{
    static const char *const members[] = {
        "title", "gravity", "placement", "open_sky", "triangulation", "geo", "crs", "layers", NULL};
    struct locale_manifest manifest;

    if (json_only_members(json, members, "", err) || manifest_decode(json, &manifest, err))
        return err->code;
    import_begin(import, &manifest);
    return load_layers(import, folder, json, err);
}

/* Reads folder/locale.json and its files into an open import. */
static enum err_code read_folder(struct import *import, const char *folder, const char *file,
                                 struct err *err)
{
    struct bytes text = {NULL, 0};
    cJSON *json = NULL;

    if (source_note(import->source, file, err) == ERR_OK &&
        file_read(file, JSON_FILE_BYTES_MAX, &text, err) == ERR_OK &&
        json_parse(text.at, text.length, &api_limits(import->api)->json, &json, err) == ERR_OK)
        read_locale(import, folder, json, err);
    cJSON_Delete(json);
    free(text.at);
    return err->code;
}

static enum err_code load_locale(struct api *api, const char *folder, const char *id,
                                 struct gathering *gathering, struct err *err)
{
    char file[PATH_MAX];
    struct import *import = malloc(sizeof *import);

    if (snprintf(file, sizeof file, "%s/locale.json", folder) >= (int)sizeof file)
        err_set(err, ERR_BAD_INPUT, "%.100s…: the path is too long", folder);
    else if (!import)
        err_set(err, ERR_NO_MEMORY, "no memory for a locale");
    else if (!world_id_is_valid(id, strlen(id)))
        err_set(err, ERR_BAD_INPUT, "the folder's name is no id: 1 to %d characters of A-Za-z0-9_-",
                WORLD_ID_MAX);
    else if (!is_stored(api, id, folder) &&
             import_open(import, api, id, folder, gathering, err) == ERR_OK) {
        read_folder(import, folder, file, err);
        import_end(import, err);
    }
    free(import);
    return err->code == ERR_OK ? ERR_OK : err_in(err, file);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int has_locale(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* What is done with each folder of a world that has a locale.json, in the order of their names. */
typedef enum err_code (*folder_visit)(void *context, const char *folder, const char *id,
                                      struct err *err);

static enum err_code each_folder(const char *directory, folder_visit visit, void *context,
                                 size_t *count_out, struct err *err)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, has_locale, alphasort);

    err->code = ERR_OK;
    *count_out = 0;
    if (count < 0)
        return err_set(err, ERR_BAD_INPUT, "world directory %s: %s", directory, strerror(errno));
    for (int i = 0; i < count; i++) {
        char folder[PATH_MAX], file[PATH_MAX + 16];

        snprintf(folder, sizeof folder, "%s/%s", directory, entries[i]->d_name);
        snprintf(file, sizeof file, "%s/locale.json", folder);
        if (err->code == ERR_OK && access(file, F_OK) == 0 &&
            visit(context, folder, entries[i]->d_name, err) == ERR_OK)
            ++*count_out;
        free(entries[i]);
    }
    free(entries);
    if (err->code == ERR_OK && *count_out == 0)
        err_set(err, ERR_BAD_INPUT, "world directory %s: no folder in it has a locale.json",
                directory);
    return err->code;
}

static enum err_code count_one(void *context, const char *folder, const char *id, struct err *err)
{
    (void)context, (void)folder, (void)id;
    return err->code;
}

static enum err_code load_one(void *context, const char *folder, const char *id, struct err *err)
{
    struct api *api = context;

    if (load_locale(api, folder, id, NULL, err) == ERR_OK)
        atomic_fetch_add(&api->loading.done, 1);
    return err->code;
}

enum err_code load_world(struct api *api, const char *directory, struct err *err)
{
    size_t count;

    if (each_folder(directory, count_one, NULL, &count, err))
        return err->code;
    atomic_fetch_add(&api->loading.total, count);
    return each_folder(directory, load_one, api, &count, err);
}

/* ---- once more ------------------------------------------------------------------------------- */

struct again {
    struct api *api;
    struct gathering gathering;
    struct load_news news;
    bool (*gives_up)(void);
};

/* Does this place need to be read? It exists, in any case. */
static bool is_to_be_read(struct again *again, const char *place)
{
    struct load_source *known = source_find(again->api, place);

    if (!known) {
        again->news.added++;
        return true;
    }
    known->is_there = true;
    if (!source_has_changed(known)) {
        again->news.kept++;
        return false;
    }
    again->news.replaced++;
    return true;
}

static enum err_code may_go_on(const struct again *again, struct err *err)
{
    return again->gives_up() ? err_set(err, ERR_BUSY, "the daemon is about to end") : ERR_OK;
}

static enum err_code folder_again(void *context, const char *folder, const char *id,
                                  struct err *err)
{
    struct again *again = context;

    if (may_go_on(again, err) || !is_to_be_read(again, folder))
        return err->code;
    return load_locale(again->api, folder, id, &again->gathering, err);
}

static enum err_code read_again(struct again *again, const char *directory, char *const *files,
                                size_t count, struct err *err)
{
    size_t folders;

    err->code = ERR_OK;
    if (directory[0] != '\0' && each_folder(directory, folder_again, again, &folders, err))
        return err->code;
    for (size_t i = 0; i < count; i++)
        if (may_go_on(again, err) || (is_to_be_read(again, files[i]) &&
                                      file_load(again->api, files[i], &again->gathering, err)))
            return err->code;
    return ERR_OK;
}

/* The new sources replace the former ones; locales without a source are removed. */
static void settle_sources(struct again *again)
{
    struct api *api = again->api;
    struct load_source **at = &api->sources, *fresh = again->gathering.sources;

    while (*at) {
        struct load_source *old = *at, *same = fresh;
        struct world_change change = {.kind = WORLD_DELETE_LOCALE, .source = "reload"};
        struct err err = {.code = ERR_OK};

        while (same && strcmp(same->place, old->place) != 0)
            same = same->next;
        if (old->is_there && !same) {
            old->is_there = false;
            at = &old->next;
            continue;
        }
        if (!old->is_there) {
            memcpy(change.locale_id, old->id, sizeof change.locale_id);
            if (world_apply(api->world, &change, &err) == ERR_OK)
                again->news.removed++;
            else if (err.code != ERR_LOCALE_UNKNOWN)
                log_error("%s is gone, its locale %s stays: %s", old->place, old->id, err.msg);
        }
        *at = old->next;
        source_free(old);
    }
    *at = fresh;
    again->gathering.sources = NULL;
}

enum err_code load_again(struct api *api, const char *directory, char *const *files, size_t count,
                         bool (*gives_up)(void), struct load_news *news, struct err *err)
{
    struct again again = {.api = api, .gives_up = gives_up};
    struct gathering *gathering = &again.gathering;

    for (struct load_source *at = api->sources; at; at = at->next)
        at->is_there = false;
    if (read_again(&again, directory, files, count, err))
        changes_drop(gathering->changes, gathering->count);
    else if (gathering->count > 0 &&
             world_apply_all(api->world, gathering->changes, gathering->count, err) ==
                 ERR_PRECONDITION_FAILED)
        err_set(err, ERR_CONFLICT, "a locale that --world has now was made by somebody else");
    if (err->code == ERR_OK)
        settle_sources(&again);
    free(gathering->changes);
    sources_free(gathering->sources);
    *news = again.news;
    return err->code;
}
