/*
 * The history in memory: per locale its rows in order, each with its samples packed as a store has
 * them.
 *
 * The writer appends, workers read: a mutex guards the lists, and a reader takes references to the
 * rows of its question, so that the writer does not wait while they are read.
 */
#include "world/values/history_list.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "base/content_hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct row {
    atomic_uint refs;
    struct store_past past; /* without its samples */
    struct store_packed_past packed;
};

struct locale_rows {
    struct locale_rows *next; /* in its bucket */
    char locale[STORE_ID_MAX + 1];
    struct row **at;
    size_t count, room;
    uint64_t bytes;
};

struct history_list {
    pthread_mutex_t mutex;        /* guards the rest */
    struct locale_rows **buckets; /* [bucket_count], a power of two; by the hash of the id */
    size_t bucket_count, count;
};

static void row_unref(struct row *row)
{
    if (!row || atomic_fetch_sub(&row->refs, 1) > 1)
        return;
    free(row->packed.data);
    free(row);
}

struct history_list *history_list_create(void)
{
    struct history_list *list = calloc(1, sizeof *list);

    if (list)
        pthread_mutex_init(&list->mutex, NULL);
    return list;
}

static void drop_from(struct locale_rows *rows, size_t first)
{
    while (rows->count > first) {
        rows->bytes -=
            store_past_bytes(&rows->at[rows->count - 1]->past, &rows->at[rows->count - 1]->packed);
        row_unref(rows->at[--rows->count]);
    }
}

static void rows_free(struct locale_rows *rows)
{
    drop_from(rows, 0);
    free(rows->at);
    free(rows);
}

void history_list_destroy(struct history_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->bucket_count; i++)
        while (list->buckets[i]) {
            struct locale_rows *rows = list->buckets[i];

            list->buckets[i] = rows->next;
            rows_free(rows);
        }
    free(list->buckets);
    pthread_mutex_destroy(&list->mutex);
    free(list);
}

static uint64_t hash_of(const char *locale)
{
    return fnv1a(FNV1A_EMPTY, locale, strlen(locale));
}

/* Where the pointer to a locale's rows is, or would be. There are buckets. */
static struct locale_rows **place_of(const struct history_list *list, const char *locale)
{
    struct locale_rows **at = &list->buckets[hash_of(locale) & (list->bucket_count - 1)];

    while (*at && strcmp((*at)->locale, locale) != 0)
        at = &(*at)->next;
    return at;
}

static struct locale_rows *find(const struct history_list *list, const char *locale)
{
    return list->buckets ? *place_of(list, locale) : NULL;
}

static void drop_locale(struct history_list *list, const char *locale)
{
    struct locale_rows **at = list->buckets ? place_of(list, locale) : NULL,
                       *rows = at ? *at : NULL;

    if (!rows)
        return;
    *at = rows->next;
    list->count--;
    rows_free(rows);
}

/* Twice as many buckets, when there are as many locales. */
static bool grow(struct history_list *list)
{
    const size_t count = list->bucket_count ? 2 * list->bucket_count : 64;
    struct locale_rows **buckets;

    if (list->count < list->bucket_count)
        return true;
    buckets = calloc(count, sizeof *buckets);
    if (!buckets)
        return false;
    for (size_t i = 0; i < list->bucket_count; i++)
        while (list->buckets[i]) {
            struct locale_rows *rows = list->buckets[i];
            struct locale_rows **at = &buckets[hash_of(rows->locale) & (count - 1)];

            list->buckets[i] = rows->next;
            rows->next = *at;
            *at = rows;
        }
    free(list->buckets);
    list->buckets = buckets;
    list->bucket_count = count;
    return true;
}

static struct locale_rows *find_or_add(struct history_list *list, const char *locale)
{
    struct locale_rows *rows = find(list, locale), **at;

    if (rows || !grow(list))
        return rows;
    rows = calloc(1, sizeof *rows);
    if (!rows)
        return NULL;
    memcpy(rows->locale, locale, strlen(locale) + 1);
    at = place_of(list, locale);
    *at = rows;
    list->count++;
    return rows;
}

static void trim(struct locale_rows *rows, uint64_t bytes_max)
{
    size_t gone = 0;

    if (rows->bytes <= bytes_max + bytes_max / 8)
        return;
    for (; gone < rows->count && rows->bytes > bytes_max; gone++) {
        rows->bytes -= store_past_bytes(&rows->at[gone]->past, &rows->at[gone]->packed);
        row_unref(rows->at[gone]);
    }
    memmove(rows->at, rows->at + gone, (rows->count - gone) * sizeof(struct row *));
    rows->count -= gone;
}

/* Takes the row; false without memory. */
static bool append(struct history_list *list, const char *locale, struct row *row,
                   uint64_t bytes_max)
{
    struct locale_rows *rows = find_or_add(list, locale);

    if (!rows)
        return false;
    while (rows->count > 0 && rows->at[rows->count - 1]->past.revision >= row->past.revision)
        drop_from(rows, rows->count - 1);
    if (rows->count > 0 && rows->at[rows->count - 1]->past.revision + 1 != row->past.revision)
        drop_from(rows, 0);
    if (!array_reserve((void **)&rows->at, &rows->room, rows->count + 1, sizeof(struct row *)))
        return false;
    rows->at[rows->count++] = row;
    rows->bytes += store_past_bytes(&row->past, &row->packed);
    trim(rows, bytes_max);
    return true;
}

enum err_code history_list_append(struct history_list *list, const char *locale,
                                  const struct store_past *past, uint64_t bytes_max,
                                  struct err *err)
{
    struct row *row = past && bytes_max > 0 ? calloc(1, sizeof *row) : NULL;
    bool is_made = row && store_past_pack(past, bytes_max, &row->packed, err) == ERR_OK;

    pthread_mutex_lock(&list->mutex);
    if (is_made) {
        atomic_init(&row->refs, 1);
        row->past = *past;
        row->past.before_m = NULL;
        row->past.changed = NULL;
        row->past.has_before = row->packed.data != NULL;
        is_made = append(list, locale, row, bytes_max);
    } else {
        drop_locale(list, locale);
    }
    pthread_mutex_unlock(&list->mutex);
    if (is_made || !past || bytes_max == 0)
        return ERR_OK;
    row_unref(row);
    return err_set(err, ERR_NO_MEMORY, "no memory for the history");
}

/* ---- reading -------------------------------------------------------------------------------- */

/* References to the rows of a question, in its order: malloc; *count 0 and NULL: none, or err. */
static struct row **collect(struct history_list *list,
                            const struct store_history_question *question, size_t *count,
                            uint64_t *since, struct err *err)
{
    struct locale_rows *rows = find(list, question->locale);
    struct row **out;

    *count = 0;
    *since = UINT64_MAX;
    if (!rows || rows->count == 0)
        return NULL;
    *since = rows->at[0]->past.is_birth ? 0 : rows->at[0]->past.revision - 1;
    out = malloc(rows->count * sizeof(struct row *));
    if (!out) {
        err_set(err, ERR_NO_MEMORY, "no memory for the history");
        return NULL;
    }
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = rows->at[question->is_newest_first ? rows->count - 1 - i : i];

        if (row->past.revision > question->after && row->past.revision <= question->upto) {
            atomic_fetch_add(&row->refs, 1);
            out[(*count)++] = row;
        }
    }
    return out;
}

static bool take_row(const struct row *row, bool wants_before, store_take_past take, void *context,
                     struct err *err)
{
    struct store_past past = row->past;
    void *plain = NULL;
    bool goes_on = false;

    if (!wants_before || !past.has_before ||
        store_past_unpack(&row->packed, &past, &plain, err) == ERR_OK)
        goes_on = take(context, &past, err);
    free(plain);
    return goes_on;
}

enum err_code history_list_read(struct history_list *list,
                                const struct store_history_question *question, uint64_t *since,
                                store_take_past take, void *context, struct err *err)
{
    struct row **rows;
    size_t count;
    bool goes_on = take != NULL;

    err->code = ERR_OK;
    pthread_mutex_lock(&list->mutex);
    rows = collect(list, question, &count, since, err);
    pthread_mutex_unlock(&list->mutex);
    for (size_t i = 0; i < count; i++) {
        goes_on = goes_on && take_row(rows[i], question->wants_before, take, context, err);
        row_unref(rows[i]);
    }
    free(rows);
    return err->code;
}
