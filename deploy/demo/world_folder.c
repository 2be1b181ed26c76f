/*
 * World folders: staged beside their final name, then renamed.
 *
 * rename(2) replaces an empty folder but not a full one, so an older world of ours is first moved
 * aside, then deleted: for the moment between the two renames there is no world, never half of
 * one. Only file names that this program writes are ever deleted; any other file
 * in the folder makes the last rmdir fail, and is then kept and reported.
 *
 * Heights go into 16 bits with a power of two as scale: every code's height is an exact float32 and
 * an exact decimal, so nothing is lost between the file, the daemon and a client.
 */
#include "deploy/demo/world_folder.h"

#include "formats/raster/raster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKER ".kota-worldgen"

static const char *const ground_files[] = {"ground.png", "ground.f32", "locale.json"};

static enum err_code system_error(struct err *err, const char *action, const char *path)
{
    return err_set(err, errno == ENOSPC ? ERR_DISK_FULL : ERR_INTERNAL, "cannot %s %s: %s", action,
                   path, strerror(errno));
}

/* ---- files -------------------------------------------------------------------------------- */

enum err_code file_write(const char *path, const void *bytes, size_t length, struct err *err)
{
    char part[PATH_MAX];
    FILE *file;
    bool written;

    if ((size_t)snprintf(part, sizeof part, "%s.part", path) >= sizeof part)
        return err_set(err, ERR_BAD_INPUT, "the path %s is too long", path);
    file = fopen(part, "wb");
    if (!file)
        return system_error(err, "create", part);
    written = fwrite(bytes, 1, length, file) == length;
    written = !fflush(file) && !fsync(fileno(file)) && written;
    if (fclose(file) || !written || rename(part, path)) {
        system_error(err, "write", path);
        unlink(part);
        return err->code;
    }
    return ERR_OK;
}

static bool folder_holds(const char *path, const char *name)
{
    char file[PATH_MAX];
    struct stat status;

    return (size_t)snprintf(file, sizeof file, "%s/%s", path, name) < sizeof file &&
           !stat(file, &status);
}

/* -1 when it cannot be read. */
static int folder_is_empty(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int empty = 1;

    if (!dir)
        return -1;
    while (empty && (entry = readdir(dir)))
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    closedir(dir);
    return empty;
}

static void folder_remove_meshes(const char *path, const struct village_locale *locale)
{
    char file[PATH_MAX + 128];

    for (uint32_t i = 0; i <= locale->layer_count; i++) {
        bool layer = i < locale->layer_count;

        snprintf(file, sizeof file, "%s/%s/%s%s", path, locale->id,
                 layer ? locale->layers[i].id : "locale", layer ? ".obj" : ".json");
        unlink(file);
        strcat(file, ".part");
        unlink(file);
    }
    snprintf(file, sizeof file, "%s/%s", path, locale->id);
    rmdir(file);
}

/* Removes what this program writes; 0 when the folder is gone. */
static int folder_remove(const char *path)
{
    char file[PATH_MAX + 128];

    for (size_t i = 0; i < LANDSCAPE_COUNT; i++) {
        for (size_t k = 0; k < sizeof ground_files / sizeof *ground_files; k++) {
            snprintf(file, sizeof file, "%s/%s/%s", path, landscapes[i].id, ground_files[k]);
            unlink(file);
            strcat(file, ".part");
            unlink(file);
        }
        snprintf(file, sizeof file, "%s/%s", path, landscapes[i].id);
        rmdir(file);
    }
    for (size_t i = 0; i < VILLAGE_LOCALE_COUNT; i++)
        folder_remove_meshes(path, &village_locales[i]);
    snprintf(file, sizeof file, "%s/" MARKER, path);
    unlink(file);
    return rmdir(path);
}

/* ---- opening and closing ------------------------------------------------------------------ */

enum err_code world_folder_open(struct world_folder *folder, const char *dir, struct err *err)
{
    char marker[PATH_MAX + 32];
    struct stat status;
    size_t length = strlen(dir);

    while (length > 1 && dir[length - 1] == '/')
        length--;
    if (!length || length >= sizeof folder->final)
        return err_set(err, ERR_BAD_INPUT, "the folder name is empty or over %zu bytes",
                       sizeof folder->final - 1);
    memcpy(folder->final, dir, length);
    folder->final[length] = '\0';
    if (!stat(folder->final, &status)) {
        if (!S_ISDIR(status.st_mode))
            return err_set(err, ERR_CONFLICT, "%s exists and is not a folder", folder->final);
        if (folder_is_empty(folder->final) != 1 && !folder_holds(folder->final, MARKER))
            return err_set(err, ERR_CONFLICT,
                           "%s is not empty and was not written by kota-worldgen; "
                           "name another folder or empty this one",
                           folder->final);
    }
    snprintf(folder->staging, sizeof folder->staging, "%s.new-%ld", folder->final, (long)getpid());
    if (mkdir(folder->staging, 0777))
        return system_error(err, "create the folder", folder->staging);
    snprintf(marker, sizeof marker, "%s/" MARKER, folder->staging);
    return file_write(marker, "", 0, err);
}

void world_folder_abandon(struct world_folder *folder)
{
    folder_remove(folder->staging);
}

enum err_code world_folder_commit(struct world_folder *folder, struct err *err)
{
    char old[PATH_MAX];

    if (!rename(folder->staging, folder->final))
        return ERR_OK;
    snprintf(old, sizeof old, "%s.old-%ld", folder->final, (long)getpid());
    if (!folder_holds(folder->final, MARKER) || rename(folder->final, old))
        return system_error(err, "replace", folder->final);
    if (rename(folder->staging, folder->final)) {
        system_error(err, "name", folder->final);
        rename(old, folder->final);
        return err->code;
    }
    if (folder_remove(old))
        return err_set(err, ERR_CONFLICT,
                       "the new world is in %s; files that kota-worldgen did not write were in it "
                       "before and are kept in %s",
                       folder->final, old);
    return ERR_OK;
}

/* ---- one locale --------------------------------------------------------------------------- */

struct height_codes height_codes_plan(const struct grid *ground)
{
    struct height_codes codes = {.scale_m = 1};
    float least, greatest;

    grid_range(ground, &least, &greatest);
    for (size_t i = 0; i < grid_count(ground) && !codes.has_holes; i++)
        codes.has_holes = isnan(ground->at[i]);
    codes.offset_m = floor(least) - 1; /* so that no height gets code 0 */
    while (codes.scale_m > 0x1p-10 &&
           (greatest - codes.offset_m) / (codes.scale_m / 2) <= UINT16_MAX)
        codes.scale_m /= 2;
    while ((greatest - codes.offset_m) / codes.scale_m > UINT16_MAX)
        codes.scale_m *= 2;
    return codes;
}

uint16_t height_code(const struct height_codes *codes, float height_m)
{
    if (isnan(height_m))
        return 0;
    return (uint16_t)floor((height_m - codes->offset_m) / codes->scale_m + 0.5);
}

static enum err_code ground_write_png(const char *path, const struct grid *ground,
                                      const struct height_codes *codes, struct err *err)
{
    size_t count = grid_count(ground);
    uint16_t *pixels = malloc(count * sizeof *pixels);
    struct raster_bytes file = {0};
    enum err_code code;

    if (!pixels)
        return err_set(err, ERR_NO_MEMORY, "no memory for the picture %s", path);
    for (uint32_t row = 0; row < ground->rows; row++) {
        const float *from = ground->at + (size_t)(ground->rows - 1 - row) * ground->cols;

        for (uint32_t column = 0; column < ground->cols; column++)
            pixels[(size_t)row * ground->cols + column] = height_code(codes, from[column]);
    }
    code = png_encode(ground->cols, ground->rows, 1, pixels, 3, &file, err);
    free(pixels);
    if (!code)
        code = file_write(path, file.at, file.length, err);
    free(file.at);
    return code;
}

void samples_to_bytes(const float *samples, size_t count, uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &samples[i], sizeof bits);
        if (isnan(samples[i]))
            bits = 0x7fc00000u; /* one NaN for all machines */
        for (int k = 0; k < 4; k++)
            bytes[4 * i + (size_t)k] = (uint8_t)(bits >> 8 * k);
    }
}

static enum err_code ground_write_f32(const char *path, const struct grid *ground, struct err *err)
{
    size_t count = grid_count(ground);
    uint8_t *bytes = malloc(count * 4);
    enum err_code code;

    if (!bytes)
        return err_set(err, ERR_NO_MEMORY, "no memory for the file %s", path);
    samples_to_bytes(ground->at, count, bytes);
    code = file_write(path, bytes, count * 4, err);
    free(bytes);
    return code;
}

static int manifest_print(char *text, size_t size, const struct landscape *landscape,
                          const struct grid *ground, const struct height_codes *codes)
{
    static const char *const names[] = {[TRIANGULATION_ANTI] = "anti",
                                        [TRIANGULATION_MAIN] = "main",
                                        [TRIANGULATION_ALTERNATING] = "alternating"};
    const struct vec3 *at = &landscape->translation;
    const char *geo = landscape->geo;
    char layer[256];

    if (codes)
        snprintf(layer, sizeof layer,
                 "\"file\": \"ground.png\", \"flip_y\": true,\n"
                 "     \"height_scale\": %.17g, \"height_offset\": %.17g%s",
                 codes->scale_m, codes->offset_m, codes->has_holes ? ", \"nodata\": 0" : "");
    else
        snprintf(layer, sizeof layer, "\"file\": \"ground.f32\", \"cols\": %u, \"rows\": %u",
                 ground->cols, ground->rows);
    return snprintf(text, size,
                    "{\n"
                    "  \"title\": \"%s\",\n"
                    "  \"placement\": {\"translation\": [%.17g, %.17g, %.17g], "
                    "\"rotation\": [0, 0, 0, 1]},\n"
                    "%s%s%s"
                    "  \"triangulation\": \"%s\",\n"
                    "  \"layers\": [\n"
                    "    {\"id\": \"ground\", %s,\n"
                    "     \"spacing\": [%.17g, %.17g], \"origin\": [%.17g, %.17g]}\n"
                    "  ]\n"
                    "}\n",
                    landscape->title, at->x, at->y, at->z, geo ? "  \"geo\": " : "", geo ? geo : "",
                    geo ? ",\n" : "", names[landscape->triangulation], layer, ground->spacing_m,
                    ground->spacing_m, ground->origin_x_m, ground->origin_y_m);
}

enum err_code world_folder_add(const struct world_folder *folder, const struct landscape *landscape,
                               const struct grid *ground, enum ground_format format,
                               struct err *err)
{
    struct height_codes codes = height_codes_plan(ground);
    char path[PATH_MAX + 128], manifest[1024];
    size_t stem;
    int length;

    stem = (size_t)snprintf(path, sizeof path, "%s/%s", folder->staging, landscape->id);
    if (mkdir(path, 0777))
        return system_error(err, "create the folder", path);
    strcpy(path + stem, format == GROUND_PNG ? "/ground.png" : "/ground.f32");
    if (format == GROUND_PNG ? ground_write_png(path, ground, &codes, err)
                             : ground_write_f32(path, ground, err))
        return err->code;
    length = manifest_print(manifest, sizeof manifest, landscape, ground,
                            format == GROUND_PNG ? &codes : NULL);
    strcpy(path + stem, "/locale.json");
    return file_write(path, manifest, (size_t)length, err);
}

enum err_code world_folder_add_meshes(const struct world_folder *folder,
                                      const struct village_locale *locale, struct err *err)
{
    char path[PATH_MAX + 128], manifest[1024];
    size_t stem, length;
    char *text;
    int printed;

    stem = (size_t)snprintf(path, sizeof path, "%s/%s", folder->staging, locale->id);
    if (mkdir(path, 0777))
        return system_error(err, "create the folder", path);
    for (uint32_t i = 0; i < locale->layer_count; i++) {
        if (village_layer_obj(locale, &locale->layers[i], &text, &length, err))
            return err->code;
        snprintf(path + stem, sizeof path - stem, "/%s.obj", locale->layers[i].id);
        file_write(path, text, length, err);
        free(text);
        if (err->code)
            return err->code;
    }
    printed = village_manifest(manifest, sizeof manifest, locale);
    strcpy(path + stem, "/locale.json");
    return file_write(path, manifest, (size_t)printed, err);
}
