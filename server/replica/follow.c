/*
 * Following: the heads of locales, and their entries in order.
 *
 * Notifications only wake the owner; the tables are authoritative. A locale's head is read before
 * its entries in the same query: so entries that are missing then were trimmed, and are not just
 * late.
 *
 * Each entry has a digest of all its fields, made by its appender. PostgreSQL checks its pages only
 * with checksums enabled, and a row that was changed by hand is as wrong as a flipped bit.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/content_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *put_text(uint8_t *out, const char *text)
{
    size_t length = strlen(text) + 1;

    memcpy(out, text, length);
    return out + length;
}

static uint8_t *put_number(uint8_t *out, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        *out++ = (uint8_t)(value >> 8 * i);
    return out;
}

void entry_digest(const struct cluster_entry *entry, const char *node,
                  uint8_t out[CLUSTER_HASH_BYTES])
{
    uint8_t bytes[1024], *end = bytes;

    end = put_text(end, entry->locale);
    end = put_text(end, entry->op_id);
    end = put_text(end, entry->layer);
    end = put_text(end, entry->source);
    end = put_text(end, node);
    end = put_number(end, entry->revision);
    end = put_number(end, (uint64_t)entry->kind);
    end = put_number(end, entry->fence);
    end = put_number(end, entry->has_rect);
    for (int i = 0; i < 4; i++)
        end = put_number(end, entry->has_rect ? entry->rect[i] : 0);
    memcpy(end, entry->request, sizeof entry->request);
    end += sizeof entry->request;
    content_hash(entry->blobs, entry->blob_count * CLUSTER_HASH_BYTES, end);
    end += CLUSTER_HASH_BYTES;
    content_hash(entry->data, entry->bytes, end);
    end += CLUSTER_HASH_BYTES;
    content_hash(bytes, (size_t)(end - bytes), out);
}

/* ---- heads ----------------------------------------------------------------------------------- */

struct heads {
    struct cluster_head *of;
    size_t count;
    bool has_failed, is_damaged;
};

static bool read_head(const PGresult *result, int row, struct cluster_head *head)
{
    int64_t revision, first, snapshot;

    if (!result_text(result, row, 0, head->locale, sizeof head->locale) ||
        !result_int8(result, row, 1, &revision) || !result_int8(result, row, 2, &first) ||
        !result_int8(result, row, 3, &snapshot) || revision < 1 || first < 1 ||
        first > revision + 1 || snapshot < 0 || snapshot > revision)
        return false;
    head->revision = (uint64_t)revision;
    head->first = (uint64_t)first;
    head->snapshot = (uint64_t)snapshot;
    return true;
}

static void take_heads(struct ask *ask, unsigned index, const PGresult *result)
{
    struct heads *heads = ask->context;
    size_t rows = (size_t)PQntuples(result);

    (void)index;
    heads->of = calloc(rows > 0 ? rows : 1, sizeof *heads->of);
    heads->has_failed = !heads->of;
    while (heads->of && heads->count < rows && !heads->is_damaged) {
        if (read_head(result, (int)heads->count, &heads->of[heads->count]))
            heads->count++;
        else
            heads->is_damaged = true;
    }
}

enum err_code cluster_heads(struct cluster *cluster, struct cluster_head **heads, size_t *count,
                            struct err *err)
{
    struct heads got = {0};

    *heads = NULL;
    *count = 0;
    if (ask_one(cluster, STATEMENT_HEADS, NULL, take_heads, &got, err)) {
        free(got.of);
        return err->code;
    }
    if (got.has_failed || got.is_damaged) {
        free(got.of);
        return got.has_failed ? err_set(err, ERR_NO_MEMORY, "no memory for the shared log's heads")
                              : err_set(err, ERR_DAMAGED,
                                        "the shared log's row of locale %zu cannot be", got.count);
    }
    *heads = got.of;
    *count = got.count;
    return ERR_OK;
}

/* ---- op_ids ---------------------------------------------------------------------------------- */

struct op_at {
    char *op_id;
    bool is_damaged;
};

static void take_op_at(struct ask *ask, unsigned index, const PGresult *result)
{
    struct op_at *at = ask->context;

    (void)index;
    if (PQntuples(result) > 0)
        at->is_damaged = !result_text(result, 0, 0, at->op_id, CLUSTER_OP_ID_MAX + 1);
}

enum err_code cluster_op_at(struct cluster *cluster, const char *locale, uint64_t revision,
                            char op_id[CLUSTER_OP_ID_MAX + 1], struct err *err)
{
    struct op_at at = {.op_id = op_id};
    struct params params = {0};

    op_id[0] = '\0';
    params_text(&params, locale);
    params_int8(&params, (int64_t)revision);
    if (ask_one(cluster, STATEMENT_OP_AT, &params, take_op_at, &at, err))
        return err->code;
    if (at.is_damaged)
        return err_set(err, ERR_DAMAGED, "the shared log's op_id of %s at %llu cannot be", locale,
                       (unsigned long long)revision);
    return ERR_OK;
}

struct found_op {
    char *locale;
    int64_t revision;
    bool is_there, is_damaged;
};

static void take_found_op(struct ask *ask, unsigned index, const PGresult *result)
{
    struct found_op *found = ask->context;

    (void)index;
    found->is_there = PQntuples(result) > 0;
    if (found->is_there)
        found->is_damaged = !result_text(result, 0, 0, found->locale, CLUSTER_ID_MAX + 1) ||
                            !result_int8(result, 0, 1, &found->revision);
}

enum err_code cluster_find_op(struct cluster *cluster, const char *op_id,
                              char locale[CLUSTER_ID_MAX + 1], uint64_t *revision, struct err *err)
{
    struct found_op found = {.locale = locale};
    struct params params = {0};

    params_text(&params, op_id);
    if (ask_one(cluster, STATEMENT_FIND_OP, &params, take_found_op, &found, err))
        return err->code;
    if (!found.is_there)
        return err_set(err, ERR_NOT_FOUND, "the shared log has no change under that op_id");
    if (found.is_damaged)
        return err_set(err, ERR_DAMAGED, "the shared log's entry of an op_id cannot be");
    *revision = (uint64_t)found.revision;
    return ERR_OK;
}

/* ---- entries --------------------------------------------------------------------------------- */

struct reading {
    const char *locale;
    bool has_head, is_damaged;
    int64_t revision, first;
    PGresult *rows;
};

static void take_reading(struct ask *ask, unsigned index, const PGresult *result)
{
    struct reading *reading = ask->context;

    if (index == 0) {
        reading->has_head = PQntuples(result) > 0;
        if (reading->has_head)
            reading->is_damaged = !result_int8(result, 0, 0, &reading->revision) ||
                                  !result_int8(result, 0, 1, &reading->first);
    } else {
        reading->rows = ask->kept = (PGresult *)result;
    }
}

static bool read_numbers(const PGresult *rows, int row, struct cluster_entry *entry)
{
    int64_t revision, fence, rect[4];
    int32_t kind;

    if (!result_int8(rows, row, 0, &revision) || !result_int4(rows, row, 3, &kind) ||
        !result_int8(rows, row, 8, &fence) || revision < 1 || fence < 0)
        return false;
    entry->revision = (uint64_t)revision;
    entry->kind = kind;
    entry->fence = (uint64_t)fence;
    entry->has_rect = !PQgetisnull(rows, row, 7);
    if (!entry->has_rect)
        return true;
    if (!result_int8s(rows, row, 7, rect, 4))
        return false;
    for (int i = 0; i < 4; i++) {
        if (rect[i] < 0 || rect[i] > UINT32_MAX)
            return false;
        entry->rect[i] = (uint32_t)rect[i];
    }
    return true;
}

/* Borrows from the row. */
static bool read_entry(const char *locale, const PGresult *rows, int row,
                       struct cluster_entry *entry)
{
    const uint8_t *request, *blobs, *digest, *data;
    uint8_t should[CLUSTER_HASH_BYTES];
    size_t request_bytes, blobs_bytes, digest_bytes;

    memset(entry, 0, sizeof *entry);
    snprintf(entry->locale, sizeof entry->locale, "%s", locale);
    if (!read_numbers(rows, row, entry) ||
        !result_text(rows, row, 1, entry->op_id, sizeof entry->op_id) ||
        !result_text(rows, row, 2, entry->node, sizeof entry->node) ||
        !result_text(rows, row, 4, entry->layer, sizeof entry->layer) ||
        !result_text(rows, row, 5, entry->source, sizeof entry->source) ||
        !result_bytes(rows, row, 6, &request, &request_bytes) ||
        !result_bytes(rows, row, 9, &blobs, &blobs_bytes) ||
        !result_bytes(rows, row, 10, &digest, &digest_bytes) ||
        !result_bytes(rows, row, 11, &data, &entry->bytes))
        return false;
    if (request_bytes != sizeof entry->request || blobs_bytes % CLUSTER_HASH_BYTES != 0 ||
        digest_bytes != sizeof should)
        return false;
    memcpy(entry->request, request, sizeof entry->request);
    entry->blobs = (const uint8_t(*)[CLUSTER_HASH_BYTES])blobs;
    entry->blob_count = blobs_bytes / CLUSTER_HASH_BYTES;
    entry->data = data;
    entry_digest(entry, entry->node, should);
    return memcmp(should, digest, sizeof should) == 0;
}

static enum err_code trimmed(const char *locale, uint64_t after, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "the shared log of %s begins after revision %llu", locale,
                   (unsigned long long)after + 1);
}

static enum err_code take_rows(const struct reading *reading, uint64_t after,
                               bool (*take)(void *context, const struct cluster_entry *entry,
                                            struct err *err),
                               void *context, size_t *count, struct err *err)
{
    struct cluster_entry entry;

    for (int row = 0; row < PQntuples(reading->rows); row++) {
        if (!read_entry(reading->locale, reading->rows, row, &entry))
            return err_set(err, ERR_DAMAGED, "the shared log's entry of %s after %llu is damaged",
                           reading->locale, (unsigned long long)after);
        if (entry.revision != after + 1 && row == 0)
            return trimmed(reading->locale, after, err);
        if (entry.revision != after + 1)
            return err_set(err, ERR_DAMAGED, "the shared log of %s has no revision %llu, but %llu",
                           reading->locale, (unsigned long long)after + 1,
                           (unsigned long long)entry.revision);
        err->code = ERR_OK;
        if (!take(context, &entry, err))
            return err->code;
        after++;
        ++*count;
    }
    return ERR_OK;
}

enum err_code cluster_read(struct cluster *cluster, const char *locale, uint64_t after,
                           bool (*take)(void *context, const struct cluster_entry *entry,
                                        struct err *err),
                           void *context, size_t *count, struct err *err)
{
    struct reading reading = {.locale = locale};
    struct ask ask = {.take = take_reading, .context = &reading};
    struct params head = {0}, rows = {0};
    enum err_code code;

    *count = 0;
    if (cluster_ready(cluster, err))
        return err->code;
    params_text(&head, locale);
    params_text(&rows, locale);
    params_int8(&rows, (int64_t)after);
    params_int8(&rows, CLUSTER_READ_MAX);
    params_int8(&rows, CLUSTER_READ_BYTES_MAX);
    ask_statement(cluster, &ask, STATEMENT_HEAD, &head);
    ask_statement(cluster, &ask, STATEMENT_READ, &rows);
    if (ask_run(cluster, &ask, err))
        code = err->code;
    else if (reading.is_damaged || !reading.rows)
        code = err_set(err, ERR_DAMAGED, "the shared log's row of %s cannot be", locale);
    else if (reading.has_head && (uint64_t)reading.revision > after &&
             (reading.first > (int64_t)after + 1 || PQntuples(reading.rows) == 0))
        code = trimmed(locale, after, err);
    else
        code = take_rows(&reading, after, take, context, count, err);
    cluster_count(cluster, &cluster->stats.entries_read, *count);
    PQclear(reading.rows);
    return code;
}
