/*
 * kota lit: does a light reach points; else the obstacle.
 *
 * The light is one for all points: far away, along --direction, or at --position.
 */
#include "client/batch.h"
#include "client/number.h"

#include <stdint.h>

struct lit_options {
    const char *direction, *position, *layer;
};

static const struct batch_column lit_columns[] = {{"X", "#0"},
                                                  {"Y", "#1"},
                                                  {"Z", "#2"},
                                                  {"LIT", "lit"},
                                                  {"POINT", "occluder.point"},
                                                  {"DISTANCE", "occluder.distance"},
                                                  {"LAYER", "occluder.layer"},
                                                  {NULL, NULL}};

/* The request without its points; NULL (and err) when an option is wrong. */
static cJSON *lit_body(const struct lit_options *options, struct err *err)
{
    const char *name = options->direction ? "direction" : "position";
    const char *text = options->direction ? options->direction : options->position;
    cJSON *body, *light;
    struct err cause;
    double numbers[3];

    if (!options->direction == !options->position) {
        err_set(err, ERR_BAD_INPUT, "exactly one of --direction and --position is needed");
        return NULL;
    }
    if (number_exact_list(text, numbers, 3, &cause)) {
        err_set(err, ERR_BAD_INPUT, "--%s %s", name, cause.msg);
        return NULL;
    }
    body = batch_body(options->layer);
    light = cJSON_AddObjectToObject(body, "light");
    if (light && batch_add(light, name, batch_numbers(numbers, 3)))
        return body;
    cJSON_Delete(body);
    err_set(err, ERR_NO_MEMORY, "out of memory");
    return NULL;
}

#define OPTION(...) COMMAND_OPTION(struct lit_options, __VA_ARGS__)

static const struct kota_option lit_table[] = {
    OPTION(direction, "direction", "DX,DY,DZ",
           "the light is far away and travels this way; 0,0,-1 comes from above"),
    OPTION(position, "position", "X,Y,Z", "the light is here"),
    OPTION(layer, "layer", "LAYER", "only this layer, not all of them", .words = ":layer"),
    {0},
};

static enum kota_exit lit_run(struct kota *kota)
{
    const struct batch batch = {.call = "/lit",
                                .member = "points",
                                .shape = &input_points,
                                .words_per_row = 1,
                                .columns = lit_columns};
    struct lit_options options = {0};
    enum kota_exit done;
    cJSON *body;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done))
        return done;
    body = lit_body(&options, &kota->err);
    return body ? batch_run(kota, &batch, body) : kota_misused(kota);
}

const struct kota_command command_lit = {
    .name = "lit",
    .synopsis = "ID [X,Y,Z…] (--direction DX,DY,DZ | --position X,Y,Z)",
    .summary = "whether a light reaches points, and what is between",
    .help =
        "Without points they are read from standard input, one a line: three numbers, CSV below\n"
        "a header with the columns x, y, z, or JSON objects with x, y, z, or with a point. Of a\n"
        "point in shadow the table has where its way to the light is blocked, and how far away.\n",
    .options = lit_table,
    .shared = kota_read_options,
    .words = {":locale", NULL},
    .examples =
        (const char *const[]){"kota lit village 100,80,6 100,80,0 --direction 0,0,-1", NULL},
    .run = lit_run,
};
