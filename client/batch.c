/*
 * Batches. The daemon takes 10,000 items a request; a stream may have any number, so rows are
 * collected into chunks of that size and each chunk is asked, checked and printed before the next
 * one is read. Memory stays bounded however long the stream is.
 *
 * In JSON a line is the daemon's result followed by its revision: two chunks of one stream may be
 * answered at different revisions.
 *
 * Invariant: nothing of a chunk is printed unless its answer holds exactly one object for each row.
 */
#include "client/batch.h"

#include "client/number.h"
#include "client/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

cJSON *batch_number(double value)
{
    char text[NUMBER_TEXT_MAX];

    number_format(value, text);
    return cJSON_CreateRaw(text);
}

cJSON *batch_numbers(const double *values, size_t count)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; array && i < count; i++) {
        cJSON *number = batch_number(values[i]);

        if (!number || !cJSON_AddItemToArray(array, number)) {
            cJSON_Delete(number);
            cJSON_Delete(array);
            return NULL;
        }
    }
    return array;
}

enum err_code batch_add_option(cJSON *body, const char *name, const char *option, const char *text,
                               size_t count, struct err *err)
{
    double values[4];
    struct err cause;

    if (!text)
        return ERR_OK;
    if (number_exact_list(text, values, count, &cause))
        return err_set(err, ERR_BAD_INPUT, "--%s %s", option, cause.msg);
    if (!batch_add(body, name, count == 1 ? batch_number(values[0]) : batch_numbers(values, count)))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

bool batch_add(cJSON *object, const char *name, cJSON *value)
{
    if (value && cJSON_AddItemToObject(object, name, value))
        return true;
    cJSON_Delete(value);
    return false;
}

bool batch_add_text(cJSON *object, const char *name, const char *text)
{
    return !text || batch_add(object, name, cJSON_CreateString(text));
}

bool batch_input(struct kota *kota, struct input *input)
{
    if (input->word_count > 0)
        return true;
    if (isatty(STDIN_FILENO)) {
        err_set(&kota->err, ERR_BAD_INPUT,
                "nothing to ask: name it after the id, or pipe lines in");
        return false;
    }
    input->stream = stdin;
    return true;
}

enum err_code batch_check_results(const cJSON *answer, size_t count, const cJSON **results,
                                  struct err *err)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(answer, "results");
    const cJSON *item;

    if (!cJSON_IsArray(array))
        return err_set(err, ERR_INTERNAL, "the answer has no array \"results\"");
    if ((size_t)cJSON_GetArraySize(array) != count)
        return err_set(err, ERR_INTERNAL, "the answer has %d results for %zu items",
                       cJSON_GetArraySize(array), count);
    cJSON_ArrayForEach(item, array) if (!cJSON_IsObject(item)) return err_set(
        err, ERR_INTERNAL, "a result of the answer is not an object");
    *results = array;
    return ERR_OK;
}

enum err_code batch_add_revision(cJSON *result, const cJSON *answer, struct err *err)
{
    const cJSON *revision = cJSON_GetObjectItemCaseSensitive(answer, "revision");

    if (cJSON_IsNumber(revision) &&
        !batch_add(result, "revision", batch_number(revision->valuedouble)))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

/* The member at a path; NULL: there is none. */
static const cJSON *member_at(const cJSON *item, const char *path)
{
    while (item && *path) {
        char name[32];
        size_t length = strcspn(path, ".");

        snprintf(name, sizeof(name), "%.*s", (int)length, path);
        item = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, atoi(name))
                                   : cJSON_GetObjectItemCaseSensitive(item, name);
        path += length + (path[length] == '.');
    }
    return item;
}

static void show_columns(const struct batch *batch, struct table *table,
                         const struct input_row *row, const cJSON *result)
{
    for (const struct batch_column *column = batch->columns; column->heading; column++)
        if (column->member[0] == '#')
            table_number(table, row->values[column->member[1] - '0']);
        else
            table_value(table, member_at(result, column->member));
}

static cJSON *encode_row(const struct batch *batch, const struct input_row *row)
{
    cJSON *item;

    if (batch->encode)
        return batch->encode(batch->context, row);
    if (!batch->pair[0])
        return batch_numbers(row->values, row->count);
    item = cJSON_CreateObject();
    if (batch_add(item, batch->pair[0], batch_numbers(row->values, 3)) &&
        batch_add(item, batch->pair[1], batch_numbers(row->values + 3, 3)))
        return item;
    cJSON_Delete(item);
    return NULL;
}

static enum err_code print_results(struct kota *kota, const struct batch *batch,
                                   const struct input_row *rows, struct table *table,
                                   const cJSON *answer, const cJSON *results)
{
    cJSON *result;
    size_t i = 0;

    cJSON_ArrayForEach(result, results)
    {
        if (!kota->is_json) {
            if (batch->show)
                batch->show(batch->context, table, &rows[i++], result);
            else
                show_columns(batch, table, &rows[i++], result);
            continue;
        }
        if (batch_add_revision(result, answer, &kota->err) ||
            print_json_line(stdout, result, &kota->err))
            return kota->err.code;
    }
    if (kota->is_json || table_print(table, stdout, &kota->err))
        return kota->err.code;
    cJSON_ArrayForEach(result,
                       results) if (batch->explain && batch->explain(result, &kota->err)) break;
    return kota->err.code;
}

/* Puts the rows into the body; false without memory. */
static bool encode_rows(const struct batch *batch, const struct input_row *rows, size_t count,
                        cJSON *body)
{
    cJSON *items = cJSON_AddArrayToObject(body, batch->member);

    for (size_t i = 0; items && i < count; i++) {
        cJSON *item = encode_row(batch, &rows[i]);

        if (!item || !cJSON_AddItemToArray(items, item)) {
            cJSON_Delete(item);
            return false;
        }
    }
    return items != NULL;
}

/* Asks for one chunk and prints its results. */
static enum err_code chunk_run(struct kota *kota, const struct batch *batch,
                               const struct input_row *rows, size_t count, struct table *table,
                               cJSON *body)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;
    const cJSON *results;

    if (batch->is_of_world)
        snprintf(path, sizeof(path), "%s", batch->call);
    else if (kota_question_path(kota, batch->call, path))
        return kota->err.code;
    if (!encode_rows(batch, rows, count, body))
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    else if (!call_post(kota->call, path, body, &answer, &kota->err) &&
             !batch_check_results(answer, count, &results, &kota->err))
        print_results(kota, batch, rows, table, answer, results);
    cJSON_Delete(answer);
    cJSON_DeleteItemFromObjectCaseSensitive(body, batch->member);
    return kota->err.code;
}

/* Says in front of a failure how much of a stream was answered before. */
static void note_answered(struct err *err, size_t total)
{
    char msg[sizeof(err->msg)];

    if (total == 0)
        return;
    memcpy(msg, err->msg, sizeof(msg));
    snprintf(err->msg, sizeof(err->msg), "after %zu answered item%s: %.*s", total,
             total == 1 ? "" : "s", (int)(sizeof(err->msg) - 64), msg);
}

/* Chunk after chunk. An error in a row is reported after the rows before it were answered. */
static enum kota_exit chunks_run(struct kota *kota, const struct batch *batch, struct input *input,
                                 cJSON *body, struct input_row *rows, struct table *table)
{
    enum input_step step = INPUT_ROW;
    struct progress progress;
    enum kota_exit done = KOTA_OK;
    size_t total = 0;

    /* Lines that run down a terminal are progress enough. */
    progress_begin(&progress, batch->call + 1, batch->member,
                   input->stream && !isatty(STDOUT_FILENO));
    while (step == INPUT_ROW) {
        struct err fault;
        size_t count = 0;

        while (count < BATCH_ITEMS_MAX &&
               (step = input_next(input, &rows[count], &fault)) == INPUT_ROW)
            count++;
        if (step == INPUT_FAULT && !input->stream)
            count = 0; /* a wrong word of the command line: nothing is sent */
        if (count > 0 && chunk_run(kota, batch, rows, count, table, body)) {
            progress_end(&progress);
            note_answered(&kota->err, total);
            done = kota_failed(kota);
            break;
        }
        total += count;
        progress_report(&progress, (double)total, 0);
        if (step == INPUT_FAULT) {
            progress_end(&progress);
            kota->err = fault;
            note_answered(&kota->err, total);
            done = kota_misused(kota);
        }
    }
    progress_end(&progress);
    if (done == KOTA_OK && total == 0)
        fprintf(stderr, "kota: standard input has no %s: nothing was asked\n", batch->member);
    return done;
}

cJSON *batch_body(const char *layer)
{
    cJSON *body = cJSON_CreateObject();

    if (batch_add_text(body, "layer", layer))
        return body;
    cJSON_Delete(body);
    return NULL;
}

enum kota_exit batch_run(struct kota *kota, const struct batch *batch, cJSON *body)
{
    size_t before = batch->is_of_world ? 0 : 1; /* the locale */
    struct input input = {.shape = batch->shape,
                          .words = kota->words + before,
                          .word_count = kota->word_count - before,
                          .words_per_row = batch->words_per_row,
                          .command = kota->command->name,
                          .synopsis = kota->command->synopsis};
    struct input_row *rows = calloc(BATCH_ITEMS_MAX, sizeof(*rows));
    const char *headings[TABLE_COLUMNS_MAX]; /* the table keeps it */
    struct table *table;
    enum kota_exit done;
    size_t count = 0;

    for (; batch->columns[count].heading; count++)
        headings[count] = batch->columns[count].heading;
    table = table_open(headings, count);
    if (!rows || !table || !body) {
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
        done = kota_failed(kota);
    } else if (!batch_input(kota, &input)) {
        done = kota_misused(kota);
    } else {
        done = chunks_run(kota, batch, &input, body, rows, table);
    }
    table_close(table);
    free(rows);
    cJSON_Delete(body);
    return done;
}
