/*
 * kota contains, kota locate: whether points are inside a locale, and which locale points of the
 * world are in.
 *
 * Both are batches of points. A locale's points are in its own frame, those of locate in the
 * world's; so locate has no id before its points.
 */
#include "client/batch.h"

#include <stdint.h>

/* ---- contains ----------------------------------------------------------------------------- */

struct contains_options {
    const char *layer;
};

static enum kota_exit contains_run(struct kota *kota)
{
    static const struct batch_column columns[] = {{"X", "#0"},        {"Y", "#1"},
                                                  {"Z", "#2"},        {"STATUS", "status"},
                                                  {"FLOOR", "floor"}, {"CEILING", "ceiling"},
                                                  {NULL, NULL}};
    const struct batch batch = {.call = "/contains",
                                .member = "points",
                                .shape = &input_points,
                                .words_per_row = 1,
                                .columns = columns};
    struct contains_options options = {0};
    enum kota_exit done;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done))
        return done;
    return batch_run(kota, &batch, batch_body(options.layer));
}

#define OPTION(...) COMMAND_OPTION(struct contains_options, __VA_ARGS__)

static const struct kota_option contains_table[] = {
    OPTION(layer, "layer", "LAYER", "only this layer, not all of them", .words = ":layer"),
    {0},
};

const struct kota_command command_contains = {
    .name = "contains",
    .synopsis = "ID [X,Y,Z…]",
    .summary = "whether points are inside a locale",
    .help =
        "Inside has a floor below and, unless the sky is open, a ceiling above. Without points\n"
        "they are read from standard input, as by kota contact.\n",
    .options = contains_table,
    .shared = kota_live_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota contains village 140,100,3 140,98.25,3", NULL},
    .run = contains_run,
};

/* ---- locate ------------------------------------------------------------------------------- */

static enum kota_exit locate_run(struct kota *kota)
{
    static const struct batch_column columns[] = {
        {"X", "#0"}, {"Y", "#1"}, {"Z", "#2"}, {"LOCALE", "locale"}, {"POINT IN IT", "point"},
        {NULL, NULL}};
    const struct batch batch = {.call = "/v1/locate",
                                .is_of_world = true,
                                .member = "points",
                                .shape = &input_points,
                                .words_per_row = 1,
                                .columns = columns};
    enum kota_exit done;

    if (!kota_begin(kota, NULL, 0, SIZE_MAX, &done))
        return done;
    return batch_run(kota, &batch, batch_body(NULL));
}

const struct kota_command command_locate = {
    .name = "locate",
    .synopsis = "[X,Y,Z…]",
    .summary = "which locale points of the world are in",
    .help = "The points are in the world's frame; each locale's placement says where it stands in\n"
            "it. Without points they are read from standard input, as by kota contact.\n",
    .examples = (const char *const[]){"kota locate 4292,2128,70", NULL},
    .run = locate_run,
};
