/*
 * kota picture: what a camera sees of a locale, as a PNG file.
 *
 * The daemon draws it. Options are sent as they are given; the daemon refuses what cannot be.
 */
#include "client/call.h"
#include "client/kota.h"
#include "client/number.h"
#include "client/target.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Of --timeout: eight pictures may be drawn before it, each for seconds where no GPU draws. */
enum { SILENCE_FACTOR = 12 };

struct picture_options {
    const char *eye, *target, *up, *fov, *size, *sun;
    bool has_no_shadows, is_settled;
};

/* `&name=a,b,c`, of numbers that are numbers. */
static enum err_code add(char path[KOTA_PATH_MAX], const char *name, const char *option,
                         const char *text, size_t count, struct err *err)
{
    const size_t length = strlen(path);
    double numbers[3];
    struct err cause;

    if (!text)
        return ERR_OK;
    if (number_exact_list(text, numbers, count, &cause))
        return err_set(err, ERR_BAD_INPUT, "--%s %s", option, cause.msg);
    if (count == 1)
        snprintf(path + length, KOTA_PATH_MAX - length, "&%s=%.17g", name, numbers[0]);
    else if (count == 2)
        snprintf(path + length, KOTA_PATH_MAX - length, "&%s=%.17g,%.17g", name, numbers[0],
                 numbers[1]);
    else
        snprintf(path + length, KOTA_PATH_MAX - length, "&%s=%.17g,%.17g,%.17g", name, numbers[0],
                 numbers[1], numbers[2]);
    return ERR_OK;
}

static enum err_code picture_path(struct kota *kota, const struct picture_options *o,
                                  char path[KOTA_PATH_MAX])
{
    struct err *err = &kota->err;
    char size[64] = "";

    if (!o->eye || !o->target)
        return err_set(err, ERR_BAD_INPUT, "--%s is missing", o->eye ? "target" : "eye");
    if (o->size)
        snprintf(size, sizeof(size), "%s", o->size);
    if (strchr(size, 'x'))
        *strchr(size, 'x') = ',';
    if (kota_question_path(
            kota, o->has_no_shadows ? "/view.png?shadows=false" : "/view.png?shadows=true", path))
        return err->code;
    if (o->is_settled)
        strncat(path, "&live=false", KOTA_PATH_MAX - strlen(path) - 1);
    if (add(path, "eye", "eye", o->eye, 3, err) ||
        add(path, "target", "target", o->target, 3, err) || add(path, "up", "up", o->up, 3, err) ||
        add(path, "fov_y_deg", "fov", o->fov, 1, err) ||
        add(path, "size", "size", o->size ? size : NULL, 2, err) ||
        add(path, "sun", "sun", o->sun, 3, err))
        return err->code;
    return ERR_OK;
}

#define OPTION(...) COMMAND_OPTION(struct picture_options, __VA_ARGS__)

static const struct kota_option picture_table[] = {
    OPTION(eye, "eye", "X,Y,Z", "where the camera is"),
    OPTION(target, "target", "X,Y,Z", "what it looks at"),
    OPTION(up, "up", "X,Y,Z", "which way is up in the picture (0,0,1)"),
    OPTION(fov, "fov", "DEG", "vertical angle of view (60)"),
    OPTION(size, "size", "WxH", "size of the picture in pixels (640x480)",
           .words = "640x480 1280x720 1920x1080", .is_open = true),
    OPTION(sun, "sun", "X,Y,Z", "the way that the sun's light travels"),
    OPTION(has_no_shadows, "no-shadows", NULL, "nothing casts a shadow"),
    OPTION(is_settled, "settled", NULL, "the ground without what moves on it"),
    {0},
};

static enum kota_exit picture_run(struct kota *kota)
{
    struct picture_options options = {.eye = NULL};
    char path[KOTA_PATH_MAX];
    enum kota_exit done;
    struct target target;
    struct call_stream stream = {.take = target_take, .context = &target};

    if (!kota_begin(kota, &options, 2, 2, &done))
        return done;
    stream.silence_s = SILENCE_FACTOR * kota->timeout_s;
    if (picture_path(kota, &options, path))
        return kota_misused(kota);
    if (target_open(&target, kota->words[1], &kota->err))
        return kota_failed(kota);
    if (!call_get_stream(kota->call, path, "image/png", &stream, &kota->err))
        target_keep(&target, &kota->err);
    target_drop(&target);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

const struct kota_command command_picture = {
    .name = "picture",
    .synopsis = "ID FILE --eye X,Y,Z --target X,Y,Z",
    .summary = "what a camera sees, as a PNG file",
    .help = "Ground, meshes, granules and bodies with their shadows; the daemon draws them.\n",
    .options = picture_table,
    .shared = kota_read_options,
    .words = {":locale", ":file", NULL},
    .examples = (const char *const[]){"kota picture highlands now.png --eye 1450,3000,330 --target "
                                      "2300,1400,290",
                                      NULL},
    .run = picture_run,
};
