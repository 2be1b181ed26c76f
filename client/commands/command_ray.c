/*
 * kota ray: where rays first meet the ground.
 *
 * A ray on the command line is two words, so that no word holds more numbers than one can read;
 * on a line of standard input it is six numbers, or seven with a t_max of its own, which counts
 * instead of --t-max. With --all each hit of a ray has a row. With --trace a terminal shows
 * the boxes and cells below the answer.
 */
#include "client/batch.h"
#include "client/number.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

struct ray_options {
    const char *t_max_text, *layer, *all;
    bool wants_any, wants_trace;
    double t_max; /* INFINITY unless --t-max */
};

static cJSON *ray_encode(const void *context, const struct input_row *row)
{
    const struct ray_options *options = context;
    cJSON *ray = cJSON_CreateObject();
    double t_max = row->count == 7 ? row->values[6] : options->t_max;

    if (ray && batch_add(ray, "origin", batch_numbers(row->values, 3)) &&
        batch_add(ray, "direction", batch_numbers(row->values + 3, 3)) &&
        (isinf(t_max) || batch_add(ray, "t_max", batch_number(t_max))))
        return ray;
    cJSON_Delete(ray);
    return NULL;
}

static const struct batch_column ray_columns[] = {
    {"STATUS", "status"}, {"T", "t"},         {"DISTANCE", "distance"}, {"POINT", "point"},
    {"NORMAL", "normal"}, {"LAYER", "layer"}, {"CELL", "cell"},         {"TRIANGLE", "triangle"},
    {NULL, NULL}};

static void ray_show(const void *context, struct table *table, const struct input_row *row,
                     const cJSON *result)
{
    const cJSON *hits = cJSON_GetObjectItemCaseSensitive(result, "hits"), *hit;

    (void)context;
    (void)row;
    for (size_t i = 0; ray_columns[i].heading && cJSON_GetArraySize(hits) == 0; i++)
        if (i == 0 && hits && !cJSON_GetObjectItemCaseSensitive(result, "status"))
            table_text(table, "miss");
        else
            table_value(table, cJSON_GetObjectItemCaseSensitive(result, ray_columns[i].member));
    cJSON_ArrayForEach(hit, hits)
    {
        table_text(table, "hit");
        for (size_t i = 1; ray_columns[i].heading; i++)
            table_value(table, cJSON_GetObjectItemCaseSensitive(hit, ray_columns[i].member));
    }
}

/* What the ray has tested in meshes: boxes in the mesh's frame, and polygons. */
static enum err_code meshes_explain(const cJSON *meshes, struct err *err)
{
    static const char *const headings[] = {"MESH", "LEVEL", "ENTERED", "MIN", "MAX"};
    struct table *table = table_open(headings, 5);
    const cJSON *mesh, *box, *polygon;

    if (!table)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(mesh, meshes)
        cJSON_ArrayForEach(box, cJSON_GetObjectItemCaseSensitive(mesh, "boxes"))
    {
        const cJSON *bounds = cJSON_GetObjectItemCaseSensitive(box, "bounds");

        table_value(table, cJSON_GetObjectItemCaseSensitive(mesh, "layer"));
        table_value(table, cJSON_GetObjectItemCaseSensitive(box, "level"));
        table_value(table, cJSON_GetObjectItemCaseSensitive(box, "entered"));
        table_value(table, cJSON_GetObjectItemCaseSensitive(bounds, "min"));
        table_value(table, cJSON_GetObjectItemCaseSensitive(bounds, "max"));
    }
    printf("\n");
    if (!table_print(table, stdout, err))
        cJSON_ArrayForEach(mesh, meshes)
        {
            const cJSON *polygons = cJSON_GetObjectItemCaseSensitive(mesh, "polygons");

            printf("\n%d polygons of %s tested:", cJSON_GetArraySize(polygons),
                   cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(mesh, "layer")));
            cJSON_ArrayForEach(polygon, polygons) printf(" %.0f", cJSON_GetNumberValue(polygon));
            printf("\n");
        }
    table_close(table);
    return err->code;
}

/* The boxes and cells that the ray visited, in order, and what it tested in meshes. */
static enum err_code ray_explain(const cJSON *result, struct err *err)
{
    static const char *const headings[] = {"BOX LEVEL", "COLUMN", "ROW", "ENTERED", "MIN", "MAX"};
    static const char *const names[] = {"level", "column", "row", "entered"};
    const cJSON *trace = cJSON_GetObjectItemCaseSensitive(result, "trace");
    const cJSON *cells = cJSON_GetObjectItemCaseSensitive(trace, "cells");
    const cJSON *meshes = cJSON_GetObjectItemCaseSensitive(trace, "meshes");
    struct table *table = table_open(headings, 6);
    const cJSON *box, *cell;

    if (!table)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(box, cJSON_GetObjectItemCaseSensitive(trace, "boxes"))
    {
        const cJSON *bounds = cJSON_GetObjectItemCaseSensitive(box, "bounds");

        for (size_t i = 0; i < 4; i++)
            table_value(table, cJSON_GetObjectItemCaseSensitive(box, names[i]));
        table_value(table, cJSON_GetObjectItemCaseSensitive(bounds, "min"));
        table_value(table, cJSON_GetObjectItemCaseSensitive(bounds, "max"));
    }
    printf("\n");
    if (!table_print(table, stdout, err)) {
        printf("\n%d cells walked:", cJSON_GetArraySize(cells));
        cJSON_ArrayForEach(cell, cells) if (cJSON_GetArraySize(cell) == 2)
            printf(" (%.0f,%.0f)", cJSON_GetNumberValue(cJSON_GetArrayItem(cell, 0)),
                   cJSON_GetNumberValue(cJSON_GetArrayItem(cell, 1)));
        printf("\n");
        if (cJSON_GetArraySize(meshes) > 0 && meshes_explain(meshes, err)) {
            table_close(table);
            return err->code;
        }
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(trace, "truncated")))
            printf("the ray visited more than is listed\n");
    }
    table_close(table);
    return err->code;
}

static cJSON *ray_body(const struct ray_options *options, double hits_max)
{
    const char *mode = options->all ? "all" : options->wants_any ? "any" : NULL;
    cJSON *body = batch_body(options->layer);

    if (batch_add_text(body, "mode", mode) &&
        (!options->all || batch_add(body, "hits_max", batch_number(hits_max))) &&
        (!options->wants_trace || batch_add(body, "trace", cJSON_CreateTrue())))
        return body;
    cJSON_Delete(body);
    return NULL;
}

#define OPTION(...) COMMAND_OPTION(struct ray_options, __VA_ARGS__)

static const struct kota_option ray_table[] = {
    OPTION(t_max_text, "t-max", "T", "how far the rays go (without end)"),
    OPTION(wants_any, "any", NULL, "any hit within t_max will do, not the first"),
    OPTION(all, "all", "N", "everything on the way in order, N hits of a ray at most"),
    OPTION(layer, "layer", "LAYER", "only this layer, not all of them", .words = ":layer"),
    OPTION(wants_trace, "trace", NULL, "the boxes and cells that one ray visited"),
    {0},
};

static enum kota_exit ray_run(struct kota *kota)
{
    struct ray_options options = {.t_max = INFINITY};
    struct batch batch = {.call = "/ray",
                          .member = "rays",
                          .shape = &input_rays,
                          .words_per_row = 2,
                          .context = &options,
                          .encode = ray_encode,
                          .columns = ray_columns,
                          .show = ray_show};
    enum kota_exit done;
    double hits_max = 0;
    struct err cause;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done))
        return done;
    if (options.all && number_count(options.all, 1, 256, &hits_max, &cause)) {
        err_set(&kota->err, ERR_BAD_INPUT, "--all %s", cause.msg);
        return kota_misused(kota);
    }
    if (options.t_max_text && number_exact_list(options.t_max_text, &options.t_max, 1, &kota->err))
        return kota_misused(kota);
    batch.explain = options.wants_trace ? ray_explain : NULL;
    return batch_run(kota, &batch, ray_body(&options, hits_max));
}

const struct kota_command command_ray = {
    .name = "ray",
    .synopsis = "ID [OX,OY,OZ DX,DY,DZ]…",
    .summary = "where rays first meet the ground",
    .help =
        "Without rays they are read from standard input, one a line: six numbers, or seven with\n"
        "the ray's own t_max; CSV below a header with ox, oy, oz, dx, dy, dz and perhaps t_max;\n"
        "or JSON objects with origin, direction and perhaps t_max. t counts in lengths of the\n"
        "direction.\n",
    .options = ray_table,
    .shared = kota_live_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota ray highlands 1450,3000,900 1,-1,-1",
                                      "kota ray village 100,80,20 0,0,-1 --trace", NULL},
    .run = ray_run,
};
