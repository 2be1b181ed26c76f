/*
 * kota history, kota revert: who made each revision of a locale, and taking edits back.
 *
 * The daemon answers in pages, and a page is printed before the next one is asked for. Values of
 * options are escaped into the query: a time may have a '+' and a note anything.
 */
#include "client/batch.h"
#include "client/kota.h"
#include "client/number.h"
#include "client/print.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define REVISION_MAX 9007199254740992.0 /* 2^53: whole numbers of JSON are exact up to it */
#define QUERY_BYTES_MAX 4096            /* a note of the daemon's most bytes, all of them escaped */

struct history_options {
    const char *rect, *layer, *author, *since;
    bool is_newest, is_all;
};

struct revert_options {
    const char *rect, *layer, *author, *since, *to_revision, *conflicts, *note;
};

/* Appends name=value, escaped, to a path. Nothing where value is NULL. */
static enum err_code add_query(char target[QUERY_BYTES_MAX], const char *name, const char *value,
                               struct err *err)
{
    size_t used = strlen(target);

    if (!value)
        return ERR_OK;
    used += (size_t)snprintf(target + used, QUERY_BYTES_MAX - used,
                             "%c%s=", strchr(target, '?') ? '&' : '?', name);
    for (; *value && used + 4 <= QUERY_BYTES_MAX; value++)
        used += (size_t)snprintf(target + used, 4, "%%%02X", (unsigned char)*value);
    if (*value || used >= QUERY_BYTES_MAX)
        return err_set(err, ERR_BAD_INPUT, "--%s is too long", name);
    return ERR_OK;
}

/* ---- history ------------------------------------------------------------------------------ */

static enum err_code history_target(struct kota *kota, const struct history_options *o,
                                    char target[QUERY_BYTES_MAX])
{
    char path[KOTA_PATH_MAX], rect[128];
    double numbers[4];

    if (kota_locale_path(kota, "/history", path))
        return kota->err.code;
    snprintf(target, QUERY_BYTES_MAX, "%s", path);
    if (o->rect) {
        if (number_rect(o->rect, numbers, &kota->err))
            return kota->err.code;
        snprintf(rect, sizeof rect, "%.0f,%.0f,%.0f,%.0f", numbers[0], numbers[1], numbers[2],
                 numbers[3]);
        add_query(target, "rect", rect, &kota->err);
    }
    if (add_query(target, "layer", o->layer, &kota->err) ||
        add_query(target, "author", o->author, &kota->err) ||
        add_query(target, "since", o->since, &kota->err))
        return kota->err.code;
    if (o->is_all) /* as many as a page may have */
        add_query(target, "limit", "1000", &kota->err);
    return add_query(target, "order", o->is_newest ? "newest" : NULL, &kota->err);
}

static enum err_code show_page(struct kota *kota, struct table *table, const cJSON *page)
{
    static const char *const names[] = {"revision", "time", "author", "source",
                                        "layer",    "rect", "note"};
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(page, "history");
    cJSON *row;

    if (!cJSON_IsArray(rows))
        return err_set(&kota->err, ERR_INTERNAL, "the answer has no array \"history\"");
    cJSON_ArrayForEach(row, rows)
    {
        if (!kota->is_json)
            for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                table_value(table, cJSON_GetObjectItemCaseSensitive(row, names[i]));
        else if (print_json_line(stdout, row, &kota->err))
            return kota->err.code;
    }
    return kota->is_json ? ERR_OK : table_print(table, stdout, &kota->err);
}

/* One page, or all of them. */
static enum err_code show_pages(struct kota *kota, struct table *table, bool is_all,
                                char target[QUERY_BYTES_MAX])
{
    const char *next = target;
    cJSON *page = NULL;

    while (next && !call_get(kota->call, target, &page, &kota->err)) {
        if (show_page(kota, table, page))
            break;
        next = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(page, "next"));
        if (next && !is_all) {
            fprintf(stderr, "kota: there are more revisions: --all prints them\n");
            break;
        }
        /* the same page again would never end */
        if (next && (strcmp(next, target) == 0 || strlen(next) >= QUERY_BYTES_MAX)) {
            err_set(&kota->err, ERR_INTERNAL, "the answer has a wrong \"next\"");
            break;
        }
        if (next)
            next = strcpy(target, next);
        cJSON_Delete(page);
        page = NULL;
    }
    cJSON_Delete(page);
    return kota->err.code;
}

static enum kota_exit history_run(struct kota *kota)
{
    static const char *const headings[] = {"REVISION", "TIME", "AUTHOR", "SOURCE",
                                           "LAYER",    "RECT", "NOTE"};
    struct history_options o = {0};
    char target[QUERY_BYTES_MAX];
    struct table *table;
    enum kota_exit done;

    if (!kota_begin(kota, &o, 1, 1, &done))
        return done;
    if (history_target(kota, &o, target))
        return kota_misused(kota);
    table = table_open(headings, sizeof headings / sizeof *headings);
    if (!table)
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    else
        show_pages(kota, table, o.is_all, target);
    table_close(table);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static const struct kota_option history_table[] = {
    COMMAND_OPTION(struct history_options, rect, "rect", "C,R,COLS,ROWS",
                   "only what touches these samples: first column and row, and how many"),
    COMMAND_OPTION(struct history_options, layer, "layer", "L",
                   "the layer of the rectangle, if there are several"),
    COMMAND_OPTION(struct history_options, author, "author", "NAME",
                   "only by the token of this name"),
    COMMAND_OPTION(struct history_options, since, "since", "REV|TIME",
                   "only after this revision, or this time (2026-12-31T18:00:00Z)"),
    COMMAND_OPTION(struct history_options, is_newest, "newest", NULL, "the newest first"),
    COMMAND_OPTION(struct history_options, is_all, "all", NULL,
                   "all of them; without it the first 100"),
    {0},
};

const struct kota_command command_history = {
    .name = "history",
    .synopsis = "ID [--rect C,R,COLS,ROWS] [--author NAME] [--since REV] [--all]",
    .summary = "who made each revision of a locale, where and why",
    .help = "A line for each revision that the daemon has the history of, the oldest first.\n",
    .options = history_table,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota history highlands",
                                      "kota history highlands --rect 700,700,60,60 --newest", NULL},
    .run = history_run,
};

/* ---- revert ------------------------------------------------------------------------------- */

/* A revision as a number, a time as a text. */
static enum err_code add_since(cJSON *body, const struct revert_options *o, struct err *err)
{
    const char *text = o->to_revision ? o->to_revision : o->since;
    const bool is_time = o->since && text[strspn(text, "0123456789")] != '\0';
    const char *name = o->to_revision ? "to_revision" : "since";
    struct err cause;
    double revision;

    if (!is_time && number_count(text, 0, REVISION_MAX, &revision, &cause))
        return err_set(err, ERR_BAD_INPUT, "--%s %s", o->since ? "since" : "to-revision",
                       cause.msg);
    return batch_add(body, name, is_time ? cJSON_CreateString(text) : batch_number(revision))
               ? ERR_OK
               : err_set(err, ERR_NO_MEMORY, "out of memory");
}

/* The body of a revert; NULL: kota->err has the reason. */
static char *revert_body(const struct revert_options *o, struct err *err)
{
    cJSON *body = cJSON_CreateObject();
    double rect[4];
    char *text = NULL;

    if (!o->since == !o->to_revision)
        err_set(err, ERR_BAD_INPUT, "one of --since and --to-revision is wanted");
    else if (!add_since(body, o, err) && !(o->rect && number_rect(o->rect, rect, err)) &&
             (!batch_add_text(body, "author", o->author) ||
              !batch_add_text(body, "layer", o->layer) ||
              !batch_add_text(body, "conflicts", o->conflicts) ||
              (o->rect && !batch_add(body, "rect", batch_numbers(rect, 4))) ||
              !(text = cJSON_PrintUnformatted(body))))
        err_set(err, ERR_NO_MEMORY, "out of memory");
    cJSON_Delete(body);
    return text;
}

static enum kota_exit revert_run(struct kota *kota)
{
    struct revert_options o = {0};
    char path[KOTA_PATH_MAX], target[QUERY_BYTES_MAX];
    cJSON *answer = NULL;
    char *text;
    enum kota_exit done;

    if (!kota_begin(kota, &o, 1, 1, &done))
        return done;
    if (kota_locale_path(kota, "/revert", path))
        return kota_misused(kota);
    snprintf(target, sizeof target, "%s", path);
    if (add_query(target, "note", o.note, &kota->err) || !(text = revert_body(&o, &kota->err)))
        return kota_misused(kota);
    if (!call_write(kota->call, "POST", target, "application/json", text, strlen(text), &answer,
                    &kota->err))
        kota_print(kota, answer);
    cJSON_Delete(answer);
    cJSON_free(text);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static const struct kota_option revert_table[] = {
    COMMAND_OPTION(struct revert_options, since, "since", "REV|TIME",
                   "edits after this revision, or this time (2026-12-31T18:00:00Z)"),
    COMMAND_OPTION(struct revert_options, to_revision, "to-revision", "REV",
                   "edits after this revision, so that the ground is again as it was then"),
    COMMAND_OPTION(struct revert_options, author, "author", "NAME",
                   "only those by the token of this name"),
    COMMAND_OPTION(struct revert_options, rect, "rect", "C,R,COLS,ROWS",
                   "only within these samples: first column and row, and how many"),
    COMMAND_OPTION(struct revert_options, layer, "layer", "L",
                   "the heightfield, if there are several"),
    COMMAND_OPTION(struct revert_options, conflicts, "conflicts", "keep|overwrite",
                   "where others edited later: their edits stay (default), or go, too",
                   .words = "keep overwrite"),
    COMMAND_OPTION(struct revert_options, note, "note", "TEXT", "why, for the history"),
    {0},
};

const struct kota_command command_revert = {
    .name = "revert",
    .synopsis = "ID --since REV [--author NAME] [--rect C,R,COLS,ROWS] [--note TEXT]",
    .summary = "takes edits back, of one author or of all",
    .help = "It is one edit, the next revision, and can be reverted itself. Prints the rectangle\n"
            "that it changed, and the conflicts: rectangles that others edited later.\n",
    .options = revert_table,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota revert highlands --since 2 --note \"as it was\"", NULL},
    .run = revert_run,
};
