/*
 * kota pick: the ground at a pixel of a camera, and its logical tile.
 *
 * The camera is given as people think of it (eye, target, angle); the other form of the call, an
 * inverse view-projection matrix, is for programs, which call the daemon themselves. The options
 * are read strictly here; the daemon checks the camera.
 */
#include "client/batch.h"
#include "client/number.h"
#include "client/print.h"

#include <stdio.h>
#include <string.h>

#define VIEWPORT_PX_MAX 1e6
#define TILE_SIDE_MAX 1e9

struct pick_options {
    const char *eye, *target, *up, *fov, *viewport, *pixel, *tile_side, *hex, *layer;
};

/* "1920x1080" */
static enum err_code parse_viewport(const char *text, double size_px[2], struct err *err)
{
    char width[16] = "";
    const char *x = strchr(text, 'x');

    if (x && (size_t)(x - text) < sizeof(width)) {
        memcpy(width, text, (size_t)(x - text));
        if (!number_count(width, 1, VIEWPORT_PX_MAX, &size_px[0], err) &&
            !number_count(x + 1, 1, VIEWPORT_PX_MAX, &size_px[1], err))
            return ERR_OK;
    }
    return err_set(err, ERR_BAD_INPUT, "'%.40s' is no size such as 1920x1080", text);
}

/* Adds `count` numbers read from an option; a missing one is an error, too. */
static enum err_code add_vector(cJSON *object, const char *name, const char *option,
                                const char *text, size_t count, struct err *err)
{
    double values[3];
    struct err cause;

    if (!text)
        return err_set(err, ERR_BAD_INPUT, "--%s is missing", option);
    if (number_exact_list(text, values, count, &cause))
        return err_set(err, ERR_BAD_INPUT, "--%s %s", option, cause.msg);
    if (!batch_add(object, name,
                   count == 1 ? batch_number(values[0]) : batch_numbers(values, count)))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

/* Fills body; returns the error of the options. */
static enum err_code pick_body(const struct pick_options *options, cJSON *body, struct err *err)
{
    cJSON *camera = cJSON_AddObjectToObject(body, "camera");
    double size_px[2], side;

    if (add_vector(camera, "eye", "eye", options->eye, 3, err) ||
        add_vector(camera, "target", "target", options->target, 3, err) ||
        add_vector(camera, "up", "up", options->up, 3, err) ||
        add_vector(camera, "fov_y_deg", "fov", options->fov, 1, err) ||
        add_vector(body, "pixel", "pixel", options->pixel, 2, err))
        return err->code;
    if (!options->viewport)
        return err_set(err, ERR_BAD_INPUT, "--viewport is missing");
    if (parse_viewport(options->viewport, size_px, err))
        return err->code;
    if (options->tile_side && number_count(options->tile_side, 1, TILE_SIDE_MAX, &side, err))
        return err->code;
    if (options->hex) {
        cJSON *tile = cJSON_AddObjectToObject(body, "tile");

        if (!batch_add_text(tile, "shape", "hex") ||
            add_vector(tile, "side", "hex", options->hex, 1, err))
            return err->code ? err->code : err_set(err, ERR_NO_MEMORY, "out of memory");
    }
    if (!batch_add(body, "viewport", batch_numbers(size_px, 2)) ||
        !batch_add_text(body, "layer", options->layer) ||
        (options->tile_side && !batch_add(body, "tile_side", batch_number(side))))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

static enum err_code pick_ask(struct kota *kota, const cJSON *body)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;

    if (!kota_question_path(kota, "/pick", path) &&
        !call_post(kota->call, path, body, &answer, &kota->err)) {
        if (!cJSON_IsObject(answer))
            err_set(&kota->err, ERR_INTERNAL, "the answer is not an object");
        else
            kota_print(kota, answer);
    }
    cJSON_Delete(answer);
    return kota->err.code;
}

#define OPTION(...) COMMAND_OPTION(struct pick_options, __VA_ARGS__)

static const struct kota_option pick_table[] = {
    OPTION(eye, "eye", "X,Y,Z", "where the camera is"),
    OPTION(target, "target", "X,Y,Z", "what it looks at"),
    OPTION(up, "up", "X,Y,Z", "which way is up on the screen (0,0,1)"),
    OPTION(fov, "fov", "DEG", "vertical angle of view (60)"),
    OPTION(viewport, "viewport", "WxH", "size of the picture in pixels",
           .words = "1280x720 1920x1080", .is_open = true),
    OPTION(pixel, "pixel", "X,Y", "from the upper left; a pixel's centre is at +0.5"),
    OPTION(tile_side, "tile-side", "N", "side of a logical tile in cells (1)"),
    OPTION(hex, "hex", "SIDE", "hexagons of the plan of so many metres instead"),
    OPTION(layer, "layer", "LAYER", "only this layer, not all of them", .words = ":layer"),
    {0},
};

static enum kota_exit pick_run(struct kota *kota)
{
    struct pick_options options = {.up = "0,0,1", .fov = "60"};
    enum kota_exit done;
    cJSON *body;

    if (!kota_begin(kota, &options, 1, 1, &done))
        return done;
    body = cJSON_CreateObject();
    if (pick_body(&options, body, &kota->err))
        done = kota_misused(kota);
    else
        done = pick_ask(kota, body) ? kota_failed(kota) : KOTA_OK;
    cJSON_Delete(body);
    return done;
}

const struct kota_command command_pick = {
    .name = "pick",
    .synopsis = "ID --eye X,Y,Z --target X,Y,Z --viewport WxH --pixel X,Y",
    .summary = "what a camera shows at a pixel",
    .help = "Sends a ray through one pixel of a picture that a camera would make.\n",
    .options = pick_table,
    .shared = kota_live_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota pick highlands --eye 1450,3000,330 --target "
                                      "2300,1400,290 --viewport 1280x720 --pixel 640,500",
                                      NULL},
    .run = pick_run,
};
