/*
 * kota los, kota profile: line of sight between two points, and the ground below a path.
 *
 * Sight lines are independent and go in chunks like every batch. A path is one question, however
 * many points it has: it is read whole, and one that the daemon would refuse for its length is
 * refused before it is sent.
 */
#include "client/batch.h"
#include "client/number.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- los ---------------------------------------------------------------------------------- */

struct los_options {
    const char *layer;
};

static const struct batch_column los_columns[] = {
    {"VISIBLE", "visible"}, {"FRACTION", "fraction"}, {"POINT", "point"}, {NULL, NULL}};

static const struct kota_option los_table[] = {
    COMMAND_OPTION(struct los_options, layer, "layer", "LAYER", "only this layer, not all of them",
                   .words = ":layer"),
    {0},
};

static enum kota_exit los_run(struct kota *kota)
{
    const struct batch batch = {.call = "/los",
                                .member = "segments",
                                .shape = &input_segments,
                                .words_per_row = 2,
                                .pair = {"from", "to"},
                                .columns = los_columns};
    struct los_options options = {0};
    enum kota_exit done;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done))
        return done;
    return batch_run(kota, &batch, batch_body(options.layer));
}

const struct kota_command command_los = {
    .name = "los",
    .synopsis = "ID [X,Y,Z X,Y,Z]…",
    .summary = "whether two points see each other",
    .help =
        "Without segments they are read from standard input, one a line: six numbers; CSV below\n"
        "a header with x1, y1, z1, x2, y2, z2; or JSON objects with from and to. What is not\n"
        "visible has the blocking point, and t from 0 to 1 on the way to it.\n",
    .options = los_table,
    .shared = kota_live_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota los highlands 1450,3000,330 2300,1400,290", NULL},
    .run = los_run,
};

/* ---- profile ------------------------------------------------------------------------------ */

struct profile_options {
    const char *samples, *step, *interp, *layer;
};

/* Reads the whole path; one over the limit is enough. */
static enum err_code profile_path(struct kota *kota, struct input *input, struct input_row *rows,
                                  size_t *count)
{
    enum input_step step = INPUT_END;

    *count = 0;
    if (!batch_input(kota, input))
        return kota->err.code;
    while (*count < BATCH_ITEMS_MAX &&
           (step = input_next(input, &rows[*count], &kota->err)) == INPUT_ROW)
        (*count)++;
    if (step == INPUT_FAULT)
        return kota->err.code;
    if (*count < 2 || step == INPUT_ROW)
        return err_set(&kota->err, ERR_BAD_INPUT, "a path has 2 to %d points, this one %s",
                       BATCH_ITEMS_MAX - 1, *count < 2 ? "less" : "more");
    return ERR_OK;
}

static bool add_path(cJSON *body, const struct input_row *rows, size_t count)
{
    cJSON *path = cJSON_AddArrayToObject(body, "path");

    for (size_t i = 0; i < count; i++) {
        cJSON *point = batch_numbers(rows[i].values, 2);

        if (!point || !cJSON_AddItemToArray(path, point)) {
            cJSON_Delete(point);
            return false;
        }
    }
    return path != NULL;
}

/* The request; NULL (and err) when an option is wrong. */
static cJSON *profile_body(const struct profile_options *options, const struct input_row *rows,
                           size_t count, struct err *err)
{
    cJSON *body = cJSON_CreateObject();
    double value = 0;

    if (!options->samples == !options->step)
        err_set(err, ERR_BAD_INPUT, "exactly one of --samples and --step is needed");
    else if (options->samples ? number_count(options->samples, 2, BATCH_ITEMS_MAX, &value, err)
                              : number_exact_list(options->step, &value, 1, err))
        ;
    else if (batch_add(body, options->samples ? "samples" : "step", batch_number(value)) &&
             batch_add_text(body, "interp", options->interp) &&
             batch_add_text(body, "layer", options->layer) && add_path(body, rows, count))
        return body;
    else
        err_set(err, ERR_NO_MEMORY, "out of memory");
    cJSON_Delete(body);
    return NULL;
}

static enum err_code profile_print(struct kota *kota, const cJSON *answer, const cJSON *results)
{
    static const char *const headings[] = {"DISTANCE", "POINT", "STATUS"};
    struct table *table = table_open(headings, sizeof(headings) / sizeof(headings[0]));
    cJSON *result;

    if (!table)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(result, results)
    {
        if (kota->is_json) {
            if (batch_add_revision(result, answer, &kota->err) ||
                print_json_line(stdout, result, &kota->err))
                break;
            continue;
        }
        table_value(table, cJSON_GetObjectItemCaseSensitive(result, "distance"));
        table_value(table, cJSON_GetObjectItemCaseSensitive(result, "point"));
        table_value(table, cJSON_GetObjectItemCaseSensitive(result, "status"));
    }
    if (!kota->is_json)
        table_print(table, stdout, &kota->err);
    table_close(table);
    return kota->err.code;
}

static enum err_code profile_ask(struct kota *kota, const cJSON *body)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;
    const cJSON *results = NULL;

    if (!kota_question_path(kota, "/profile", path) &&
        !call_post(kota->call, path, body, &answer, &kota->err)) {
        size_t count =
            (size_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(answer, "results"));

        if (!batch_check_results(answer, count, &results, &kota->err))
            profile_print(kota, answer, results);
    }
    cJSON_Delete(answer);
    return kota->err.code;
}

static const struct kota_option profile_table[] = {
    COMMAND_OPTION(struct profile_options, samples, "samples", "N",
                   "so many points, evenly spaced, both ends included"),
    COMMAND_OPTION(struct profile_options, step, "step", "M",
                   "a point every M metres, and the far end"),
    COMMAND_OPTION(struct profile_options, interp, "interp", "MODE",
                   "triangle (the exact surface, default), bilinear or nearest",
                   .words = "triangle bilinear nearest"),
    COMMAND_OPTION(struct profile_options, layer, "layer", "LAYER",
                   "which heightfield, when the locale has several", .words = ":layer"),
    {0},
};

static enum kota_exit profile_run(struct kota *kota)
{
    struct profile_options options = {0};
    struct input input = {.shape = &input_ground_points, .words_per_row = 1};
    struct input_row *rows = calloc(BATCH_ITEMS_MAX, sizeof(*rows));
    enum kota_exit done;
    cJSON *body = NULL;
    size_t count;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done)) {
        free(rows);
        return done;
    }
    input.words = kota->words + 1;
    input.word_count = kota->word_count - 1;
    if (!rows)
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    else if (!profile_path(kota, &input, rows, &count))
        body = profile_body(&options, rows, count, &kota->err);
    if (!body)
        done = kota_misused(kota);
    else
        done = profile_ask(kota, body) ? kota_failed(kota) : KOTA_OK;
    cJSON_Delete(body);
    free(rows);
    return done;
}

const struct kota_command command_profile = {
    .name = "profile",
    .synopsis = "ID [X,Y X,Y…] (--samples N | --step M)",
    .summary = "the ground below a path",
    .help = "Without points the path is read from standard input, one point a line.\n",
    .options = profile_table,
    .shared = kota_live_options,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota profile highlands 0,0 4000,4000 --samples 11", NULL},
    .run = profile_run,
};
