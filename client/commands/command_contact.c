/*
 * kota contact: the floor below points and the ceiling above them.
 *
 * On a terminal a row has the status, the floor's height and slope, the ceiling's height, and the
 * place of a camera with that clearance; the whole contacts, with their normals and cells, are in
 * the JSON. Footprints (the plane under a vehicle) are for programs, which ask the daemon.
 */
#include "client/batch.h"
#include "client/number.h"

#include <stdint.h>

struct contact_options {
    const char *reach_up, *max_distance, *clearance, *layer;
    bool is_exact;
};

static const struct batch_column contact_columns[] = {{"X", "#0"},
                                                      {"Y", "#1"},
                                                      {"Z", "#2"},
                                                      {"STATUS", "status"},
                                                      {"FLOOR", "floor.point.2"},
                                                      {"SLOPE", "floor.slope_deg"},
                                                      {"CEILING", "ceiling.point.2"},
                                                      {"LAYER", "floor.layer"},
                                                      {"PLACED AT", "placed"},
                                                      {NULL, NULL}};

static enum err_code contact_body(const struct contact_options *options, cJSON *body,
                                  struct err *err)
{
    if (options->is_exact && !options->clearance)
        return err_set(err, ERR_BAD_INPUT, "--exact needs --clearance");
    if (batch_add_option(body, "reach_up", "reach-up", options->reach_up, 1, err) ||
        batch_add_option(body, "max_distance", "max-distance", options->max_distance, 1, err) ||
        batch_add_option(body, "clearance", "clearance", options->clearance, 1, err))
        return err->code;
    if (!batch_add_text(body, "clearance_mode", options->is_exact ? "exact" : NULL))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

#define OPTION(...) COMMAND_OPTION(struct contact_options, __VA_ARGS__)

static const struct kota_option contact_table[] = {
    OPTION(reach_up, "reach-up", "M",
           "ground up to M metres above a point counts as its floor\n"
           "(0.5; without an end with --clearance)"),
    OPTION(max_distance, "max-distance", "M",
           "a floor more than M metres below a point is too_far (no limit)"),
    OPTION(clearance, "clearance", "M",
           "where something M metres above the floor would stand: it is only\n"
           "raised, never lowered; ground above the point counts, too"),
    OPTION(is_exact, "exact", NULL, "with --clearance: exactly that far above the floor"),
    OPTION(layer, "layer", "LAYER", "only this layer, not all of them", .words = ":layer"),
    {0},
};

static enum kota_exit contact_run(struct kota *kota)
{
    const struct batch batch = {.call = "/contact",
                                .member = "points",
                                .shape = &input_points,
                                .words_per_row = 1,
                                .columns = contact_columns};
    struct contact_options options = {0};
    enum kota_exit done;
    cJSON *body;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done))
        return done;
    body = batch_body(options.layer);
    if (!contact_body(&options, body, &kota->err))
        return batch_run(kota, &batch, body);
    cJSON_Delete(body);
    return kota_misused(kota);
}

const struct kota_command command_contact = {
    .name = "contact",
    .synopsis = "ID [X,Y,Z…]",
    .summary = "the floor below points and the ceiling above",
    .help =
        "The status is ok (there is a floor), below (no floor, but ground above), hole (no "
        "ground),\n"
        "too_far (the floor is beyond --max-distance) or outside (beyond the bounds).\n"
        "Without points they are read from standard input, one a line: three numbers, CSV below\n"
        "a header with the columns x, y, z, or JSON objects with x, y, z, or with a point.\n",
    .options = contact_table,
    .shared = kota_live_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota contact village 100,80,6 100,80,0",
                                      "kota contact highlands 1450,3000,100 --clearance 2", NULL},
    .run = contact_run,
};
