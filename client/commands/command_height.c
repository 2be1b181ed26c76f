/*
 * kota height: how high the ground is at points.
 *
 * The names in --fields are sent unchanged, and become the columns of the table in their order; the
 * daemon refuses unknown ones, so that this program needs no change when a field is added.
 */
#include "client/batch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* x, y and status, then one column for each field. */
#define FIELDS_MAX (TABLE_COLUMNS_MAX - 3)

struct height_options {
    const char *interp, *layer, *fields;
    char *field_text; /* fields, cut into names */
    const char *names[FIELDS_MAX];
    size_t name_count;
};

static enum err_code split_fields(struct height_options *options, struct err *err)
{
    char *rest;

    options->field_text = strdup(options->fields ? options->fields : "height");
    if (!options->field_text)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    rest = options->field_text;
    while (rest) {
        if (options->name_count == FIELDS_MAX)
            return err_set(err, ERR_BAD_INPUT, "--fields names more than %d fields", FIELDS_MAX);
        options->names[options->name_count++] = strsep(&rest, ",");
    }
    return ERR_OK;
}

static cJSON *height_body(const struct height_options *options)
{
    cJSON *body = batch_body(options->layer);

    if (batch_add_text(body, "interp", options->interp) &&
        (!options->fields ||
         batch_add(body, "fields",
                   cJSON_CreateStringArray(options->names, (int)options->name_count))))
        return body;
    cJSON_Delete(body);
    return NULL;
}

static enum kota_exit height_ask(struct kota *kota, const struct height_options *options)
{
    struct batch_column columns[TABLE_COLUMNS_MAX + 1] = {
        {"X", "#0"}, {"Y", "#1"}, {"STATUS", "status"}};
    struct batch batch = {.call = "/height",
                          .member = "points",
                          .shape = &input_ground_points,
                          .words_per_row = 1,
                          .columns = columns};

    for (size_t i = 0; i < options->name_count; i++)
        columns[3 + i] = (struct batch_column){options->names[i], options->names[i]};
    return batch_run(kota, &batch, height_body(options));
}

#define OPTION(...) COMMAND_OPTION(struct height_options, __VA_ARGS__)

static const struct kota_option height_table[] = {
    OPTION(interp, "interp", "MODE", "triangle (the exact surface, default), bilinear or nearest",
           .words = "triangle bilinear nearest"),
    OPTION(fields, "fields", "LIST", "height (default), normal, cell, joined by commas",
           .words = "height normal cell height,normal height,normal,cell", .is_open = true),
    OPTION(layer, "layer", "LAYER", "which heightfield, when the locale has several",
           .words = ":layer"),
    {0},
};

static enum kota_exit height_run(struct kota *kota)
{
    struct height_options options = {0};
    enum kota_exit done;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done))
        return done;
    done = split_fields(&options, &kota->err) ? kota_misused(kota) : height_ask(kota, &options);
    free(options.field_text);
    return done;
}

const struct kota_command command_height = {
    .name = "height",
    .synopsis = "ID [X,Y…]",
    .summary = "the height of the ground at points",
    .help =
        "Without points they are read from standard input, one a line: 'x,y', 'x y' or '[x,y]';\n"
        "CSV below a header with the columns x and y; or JSON objects with x and y, or with a\n"
        "point.\n",
    .options = height_table,
    .shared = kota_live_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota height highlands 1450,3000 2180,2270",
                                      "printf '%s\\n' 10,20 30,40 | kota height highlands "
                                      "--fields height,normal",
                                      NULL},
    .run = height_run,
};
