/*
 * kota polygons: adds polygons to a mesh layer and removes some, as one revision.
 *
 * New polygons are an OBJ file, which is sent unchanged; numbers to remove are in the query. When
 * the connection breaks it is sent again under its Idempotency-Key, and still done once.
 */
#include "client/file.h"
#include "client/kota.h"
#include "client/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)256 << 20)
#define REMOVED_BYTES_MAX                                                                          \
    65536 /* of --remove; the daemon takes a longer list in no query either                        \
           */

struct polygons_options {
    const char *add, *remove, *up, *scale;
    bool strict;
};

/* Numbers with commas between them, and nothing else. */
static enum err_code check_numbers(const char *text, struct err *err)
{
    size_t length = strlen(text), digits = strspn(text, "0123456789,");

    if (length > REMOVED_BYTES_MAX)
        return err_limit(err, ERR_BAD_INPUT, REMOVED_BYTES_MAX, (double)length,
                         "--remove has more than %d characters", REMOVED_BYTES_MAX);
    if (length == 0 || digits < length || text[0] == ',' || text[length - 1] == ',' ||
        strstr(text, ",,"))
        return err_set(err, ERR_BAD_INPUT, "--remove '%.80s' is not N,N,… in whole numbers", text);
    err->code = ERR_OK;
    return ERR_OK;
}

/* {"remove":[…]} of numbers that were checked; NULL without memory. */
static char *removal_text(const char *numbers)
{
    size_t bytes = strlen(numbers) + 32;
    char *text = malloc(bytes);

    if (text)
        snprintf(text, bytes, "{\"remove\":[%s]}", numbers);
    return text;
}

static enum err_code send_obj(struct kota *kota, const struct polygons_options *o, const char *path,
                              const char *bytes, size_t length, cJSON **answer)
{
    const char *const names[] = {"up", "scale", "remove", "strict"};
    const char *const values[] = {o->up, o->scale, o->remove, o->strict ? "true" : NULL};
    size_t room = strlen(path) + (o->remove ? strlen(o->remove) : 0) + 256, used;
    char *target = malloc(room), mark = '?';

    if (!target)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    used = (size_t)snprintf(target, room, "%s", path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!values[i])
            continue;
        used += (size_t)snprintf(target + used, room - used, "%c%s=%s", mark, names[i], values[i]);
        mark = '&';
    }
    call_write(kota->call, "POST", target, "model/obj", bytes, length, answer, &kota->err);
    free(target);
    return kota->err.code;
}

static enum err_code send_removal(struct kota *kota, const char *numbers, const char *path,
                                  cJSON **answer)
{
    char *text = removal_text(numbers);

    if (!text)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    call_write(kota->call, "POST", path, "application/json", text, strlen(text), answer,
               &kota->err);
    free(text);
    return kota->err.code;
}

#define OPTION(...) COMMAND_OPTION(struct polygons_options, __VA_ARGS__)

static const struct kota_option polygons_table[] = {
    OPTION(add, "add", "FILE.obj", "polygons to add, in the layer's own coordinates",
           .words = ":file"),
    OPTION(remove, "remove", "N,N,…",
           "numbers of polygons to remove, as in answers of contact and ray"),
    OPTION(up, "up", "z|y", "the file's up axis (z)", .words = "z y"),
    OPTION(scale, "scale", "S", "metres a unit of the file (1)"),
    OPTION(strict, "strict", NULL, "fails where a polygon of the file would be dropped"),
    {0},
};

static enum err_code check_options(const struct polygons_options *o, struct err *err)
{
    char *end;

    if (!o->add && !o->remove)
        return err_set(err, ERR_BAD_INPUT, "--add or --remove is wanted, or both");
    if (!o->add && (o->up || o->scale || o->strict))
        return err_set(err, ERR_BAD_INPUT,
                       "--up, --scale and --strict belong to the file of --add");
    if (o->up && strcmp(o->up, "z") != 0 && strcmp(o->up, "y") != 0)
        return err_set(err, ERR_BAD_INPUT, "--up '%.40s' is neither z nor y", o->up);
    if (o->scale && (!(strtod(o->scale, &end) > 0) || *end != '\0'))
        return err_set(err, ERR_BAD_INPUT, "--scale '%.40s' is no number above 0", o->scale);
    err->code = ERR_OK;
    return o->remove ? check_numbers(o->remove, err) : ERR_OK;
}

static enum kota_exit polygons_run(struct kota *kota)
{
    struct polygons_options o = {0};
    char path[KOTA_PATH_MAX], rest[96];
    cJSON *answer = NULL;
    char *bytes = NULL;
    size_t length = 0;
    enum kota_exit done;

    if (!kota_begin(kota, &o, 2, 2, &done))
        return done;
    if (kota_check_id(kota->words[1], &kota->err) || check_options(&o, &kota->err))
        return kota_misused(kota);
    snprintf(rest, sizeof(rest), "/layers/%s/polygons", kota->words[1]);
    if (kota_locale_path(kota, rest, path))
        return kota_misused(kota);
    if (o.add && file_read(o.add, FILE_BYTES_MAX, &bytes, &length, &kota->err))
        return kota_misused(kota);
    if (!(o.add ? send_obj(kota, &o, path, bytes, length, &answer)
                : send_removal(kota, o.remove, path, &answer)))
        kota_print(kota, answer);
    cJSON_Delete(answer);
    free(bytes);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

const struct kota_command command_polygons = {
    .name = "polygons",
    .synopsis = "ID LAYER [--add FILE.obj] [--remove N,N,…]",
    .summary = "adds polygons to a mesh layer, and removes some",
    .help = "Prints the locale, and under `added` the numbers of the new polygons. Those of the\n"
            "others stay. When the connection breaks it is sent again, and still done once.\n",
    .options = polygons_table,
    .words = {":locale", ":layer", NULL},
    .examples = (const char *const[]){"kota polygons village bridge --remove 0", NULL},
    .run = polygons_run,
};
