/*
 * Snapshots, and the removal of entries, snapshots and blobs that they replace.
 *
 * A snapshot is a row that names a body and blobs; the body is a blob itself. It is valid when it
 * is verified: the body was read back and compared, and each blob that was never read before was
 * read once and fits its hash. Only then are the entries before it deleted. Each blob is read once
 * in its life, and not with each snapshot, so the cost is proportional to the new data.
 *
 * Order, so that a crash anywhere loses nothing: claim (a row that is not valid), body, reading,
 * the row becomes valid, older snapshots are deleted, then entries in pieces, then garbage. The
 * claim of a dead node is void after a minute, and a node renews its own while it reads.
 *
 * The statement that trims selects the newest verified snapshot from the table itself.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIM_BATCH = 500,
    VERIFY_BATCH = 256,
    COLLECT_OLDER_MS = 3600000,
    COLLECT_PAUSE_MS = 600000
};

/* ---- one value ------------------------------------------------------------------------------- */

static void take_int4(struct ask *ask, unsigned index, const PGresult *result)
{
    (void)index;
    result_int4(result, 0, 0, ask->context);
}

static void take_int8(struct ask *ask, unsigned index, const PGresult *result)
{
    (void)index;
    result_int8(result, 0, 0, ask->context);
}

static void take_bool(struct ask *ask, unsigned index, const PGresult *result)
{
    (void)index;
    result_bool(result, 0, 0, ask->context);
}

/* ---- verifying ------------------------------------------------------------------------------- */

struct unverified {
    uint8_t (*hashes)[CLUSTER_HASH_BYTES];
    int64_t *lengths;
    size_t count;
    bool has_failed;
};

static void take_unverified(struct ask *ask, unsigned index, const PGresult *result)
{
    struct unverified *list = ask->context;
    int rows = PQntuples(result);

    (void)index;
    list->hashes = calloc(rows > 0 ? (size_t)rows : 1, sizeof *list->hashes);
    list->lengths = calloc(rows > 0 ? (size_t)rows : 1, sizeof *list->lengths);
    list->has_failed = !list->hashes || !list->lengths;
    for (int row = 0; row < rows && !list->has_failed; row++) {
        const uint8_t *hash;
        size_t length;

        if (result_bytes(result, row, 0, &hash, &length) && length == CLUSTER_HASH_BYTES &&
            result_int8(result, row, 1, &list->lengths[list->count]))
            memcpy(list->hashes[list->count++], hash, CLUSTER_HASH_BYTES);
    }
}

static enum err_code ask_with_hashes(struct cluster *cluster, enum statement statement,
                                     const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                     void (*take)(struct ask *, unsigned, const PGresult *),
                                     void *context, struct err *err)
{
    struct params params = {0};
    struct array array = {0};

    array_begin(&array, ARRAY_BYTES, count);
    for (size_t i = 0; i < count; i++)
        array_bytes(&array, hashes[i], CLUSTER_HASH_BYTES);
    params_array(&params, &array);
    ask_one(cluster, statement, &params, take, context, err);
    array_free(&array);
    return err->code;
}

/* Blobs that one query reads. */
struct reading {
    const uint8_t (*hashes)[CLUSTER_HASH_BYTES];
    size_t count;
    bool is_right[VERIFY_BATCH];
};

static void take_blobs(struct ask *ask, unsigned index, const PGresult *result)
{
    struct reading *reading = ask->context;

    (void)index;
    for (int row = 0; row < PQntuples(result); row++) {
        const uint8_t *hash, *data;
        uint8_t is[CLUSTER_HASH_BYTES];
        size_t length, bytes;

        if (!result_bytes(result, row, 0, &hash, &length) || length != CLUSTER_HASH_BYTES ||
            !result_bytes(result, row, 1, &data, &bytes))
            continue;
        content_hash(data, bytes, is);
        for (size_t i = 0; i < reading->count && memcmp(is, hash, sizeof is) == 0; i++)
            if (memcmp(reading->hashes[i], is, sizeof is) == 0)
                reading->is_right[i] = true;
    }
}

/* How many of the list, from `first` on, one question brings: few MiB, and one at least. */
static size_t group_of(const struct unverified *list, size_t first)
{
    int64_t bytes = 0;
    size_t count = 0;

    while (first + count < list->count && count < VERIFY_BATCH) {
        int64_t length = list->lengths[first + count];

        if (length < 0 || length > CLUSTER_PART_BYTES || bytes + length > CLUSTER_PART_BYTES)
            break;
        bytes += length;
        count++;
    }
    return count > 0 ? count : 1;
}

static enum err_code read_group(struct cluster *cluster,
                                const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                struct err *err)
{
    struct reading reading = {.hashes = hashes, .count = count};
    void *bytes;
    size_t length;

    err->code = ERR_OK;
    if (count > 1)
        ask_with_hashes(cluster, STATEMENT_GET_BLOBS, hashes, count, take_blobs, &reading, err);
    for (size_t i = 0; i < count && err->code == ERR_OK; i++) {
        if (reading.is_right[i])
            cluster_count(cluster, &cluster->stats.blobs_read, 1);
        else if (cluster_get_blob(cluster, hashes[i], &bytes, &length, err) == ERR_OK)
            free(bytes); /* of several parts; else this has set the error and marked the blob */
    }
    return err->code;
}

/* Reads those that were never read; between them the claim of `locale` is renewed. */
static enum err_code verify_blobs(struct cluster *cluster, const char *locale, uint64_t revision,
                                  const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t count,
                                  struct err *err)
{
    struct unverified list = {0};
    struct params claim = {0};

    err->code = ERR_OK;
    ask_with_hashes(cluster, STATEMENT_BLOBS_UNVERIFIED, blobs, count, take_unverified, &list, err);
    params_text(&claim, cluster->node);
    params_text(&claim, locale);
    params_int8(&claim, (int64_t)revision);
    if (list.has_failed)
        err_set(err, ERR_NO_MEMORY, "no memory for the list of blobs to verify");
    for (size_t i = 0; i < list.count && err->code == ERR_OK;) {
        const uint8_t(*group)[CLUSTER_HASH_BYTES] =
            (const uint8_t(*)[CLUSTER_HASH_BYTES])list.hashes + i;
        size_t length = group_of(&list, i);

        if (!read_group(cluster, group, length, err) &&
            !ask_with_hashes(cluster, STATEMENT_BLOBS_VERIFIED, group, length, NULL, NULL, err))
            ask_one(cluster, STATEMENT_RENEW_CLAIM, &claim, NULL, NULL, err);
        i += length;
    }
    free(list.hashes);
    free(list.lengths);
    return err->code;
}

/* Is the body read back as it was written? */
static enum err_code verify_body(struct cluster *cluster, const uint8_t *hash, const void *bytes,
                                 size_t length, struct err *err)
{
    void *got;
    size_t got_length;
    bool is_same;

    if (cluster_get_blob(cluster, hash, &got, &got_length, err))
        return err->code;
    is_same = got_length == length && memcmp(got, bytes, length) == 0;
    free(got);
    return is_same ? (err->code = ERR_OK)
                   : err_set(err, ERR_DAMAGED, "a snapshot's body came back changed");
}

/* ---- putting --------------------------------------------------------------------------------- */

static void snapshot_params(struct params *params, const struct cluster *cluster,
                            const char *locale, uint64_t revision, const char *op_id,
                            const uint8_t *body, const uint8_t (*blobs)[CLUSTER_HASH_BYTES],
                            size_t blob_count)
{
    params_text(params, cluster->node);
    params_text(params, locale);
    params_int8(params, (int64_t)revision);
    params_text(params, op_id);
    params_bytes(params, body, CLUSTER_HASH_BYTES);
    params_bytes(params, blobs, blob_count * CLUSTER_HASH_BYTES);
}

static enum err_code claimed(int32_t answer, const char *locale, uint64_t revision, struct err *err)
{
    switch (answer) {
    case 0:
        return err->code = ERR_OK;
    case 1:
        return err_set(err, ERR_CONFLICT, "%s has a snapshot of revision %" PRIu64 " or newer",
                       locale, revision);
    case 2:
        return err_set(err, ERR_CONFLICT, "another node makes a snapshot of %s", locale);
    case 3:
        return err_set(err, ERR_CONFLICT, "the shared log of %s has not reached %" PRIu64, locale,
                       revision);
    case 4:
        return err_set(err, ERR_CONFLICT, "the shared log of %s has another entry at %" PRIu64,
                       locale, revision);
    default:
        return err_set(err, ERR_DAMAGED, "the shared log's answer to a claim cannot be");
    }
}

static enum err_code trim(struct cluster *cluster, const char *locale, uint64_t keep,
                          struct err *err)
{
    int64_t went;

    do {
        struct params params = {0};

        went = 0;
        params_text(&params, locale);
        params_int8(&params, keep < INT64_MAX / 2 ? (int64_t)keep : INT64_MAX / 2);
        params_int4(&params, TRIM_BATCH);
        if (ask_one(cluster, STATEMENT_TRIM, &params, take_int8, &went, err))
            return err->code;
    } while (went > 0);
    return ERR_OK;
}

enum err_code cluster_collect(struct cluster *cluster, uint32_t older_ms, uint32_t pause_ms,
                              uint64_t *went, struct err *err)
{
    struct params params = {0};
    int64_t rows = 0;

    params_int8(&params, older_ms);
    params_int8(&params, pause_ms);
    ask_one(cluster, STATEMENT_COLLECT, &params, take_int8, &rows, err);
    *went = (uint64_t)rows;
    return err->code;
}

/* Deletes replaced data. If that fails now, the snapshot is made nevertheless. */
static void tidy_up(struct cluster *cluster, const char *locale, uint64_t keep)
{
    struct err err = {.code = ERR_OK};
    uint64_t went = 0;

    if (trim(cluster, locale, keep, &err) ||
        cluster_collect(cluster, COLLECT_OLDER_MS, COLLECT_PAUSE_MS, &went, &err))
        log_warn("the shared log of %s was not trimmed: %s", locale, err_for_log(&err));
    if (went > 0)
        log_info("the shared log: %" PRIu64 " blobs that nothing names are gone", went);
}

enum err_code cluster_put_snapshot(struct cluster *cluster, const char *locale, uint64_t revision,
                                   const char *op_id, const void *bytes, size_t length,
                                   const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                                   uint64_t keep, struct err *err)
{
    uint8_t body[CLUSTER_HASH_BYTES];
    struct params claim = {0}, confirm = {0};
    int32_t answer = -1;
    bool is_confirmed = false;

    content_hash(bytes, length, body);
    snapshot_params(&claim, cluster, locale, revision, op_id, body, blobs, blob_count);
    if (ask_one(cluster, STATEMENT_CLAIM_SNAPSHOT, &claim, take_int4, &answer, err) ||
        claimed(answer, locale, revision, err) ||
        cluster_put_blob(cluster, body, bytes, length, err) ||
        verify_body(cluster, body, bytes, length, err) ||
        verify_blobs(cluster, locale, revision, blobs, blob_count, err))
        return err->code;
    params_text(&confirm, cluster->node);
    params_text(&confirm, locale);
    params_int8(&confirm, (int64_t)revision);
    if (ask_one(cluster, STATEMENT_CONFIRM_SNAPSHOT, &confirm, take_bool, &is_confirmed, err))
        return err->code;
    if (!is_confirmed)
        return err_set(err, ERR_CONFLICT,
                       "the snapshot of %s at %" PRIu64 " names a blob that is not there, or "
                       "another node has made one",
                       locale, revision);
    cluster_count(cluster, &cluster->stats.snapshots_put, 1);
    tidy_up(cluster, locale, keep);
    return err->code = ERR_OK;
}

enum err_code cluster_adopt(struct cluster *cluster, const char *locale, uint64_t revision,
                            const char *op_id, const void *bytes, size_t length,
                            const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                            struct err *err)
{
    uint8_t body[CLUSTER_HASH_BYTES];
    struct params params = {0};
    int32_t answer = -1;

    CHECK(revision > 0 && revision < INT64_MAX);
    content_hash(bytes, length, body);
    snapshot_params(&params, cluster, locale, revision, op_id, body, blobs, blob_count);
    if (cluster_put_blob(cluster, body, bytes, length, err) ||
        verify_body(cluster, body, bytes, length, err) ||
        verify_blobs(cluster, locale, revision, blobs, blob_count, err) ||
        ask_one(cluster, STATEMENT_ADOPT, &params, take_int4, &answer, err))
        return err->code;
    if (answer == 2)
        return err_set(err, ERR_NOT_FOUND, "a blob of %s is not in the shared log", locale);
    if (answer != 0)
        return err_set(err, ERR_CONFLICT, "the shared log has %s already", locale);
    cluster_count(cluster, &cluster->stats.snapshots_put, 1);
    return ERR_OK;
}

/* ---- getting --------------------------------------------------------------------------------- */

struct newest {
    bool is_there, is_damaged;
    int64_t revision;
    char *op_id;
    uint8_t body[CLUSTER_HASH_BYTES];
};

static void take_newest(struct ask *ask, unsigned index, const PGresult *result)
{
    struct newest *newest = ask->context;
    const uint8_t *body;
    size_t length;

    (void)index;
    newest->is_there = PQntuples(result) > 0;
    if (!newest->is_there)
        return;
    newest->is_damaged = !result_int8(result, 0, 0, &newest->revision) || newest->revision < 1 ||
                         !result_text(result, 0, 1, newest->op_id, CLUSTER_OP_ID_MAX + 1) ||
                         !result_bytes(result, 0, 2, &body, &length) ||
                         length != CLUSTER_HASH_BYTES;
    if (!newest->is_damaged)
        memcpy(newest->body, body, CLUSTER_HASH_BYTES);
}

enum err_code cluster_get_snapshot(struct cluster *cluster, const char *locale, uint64_t *revision,
                                   char op_id[CLUSTER_OP_ID_MAX + 1], void **bytes, size_t *length,
                                   struct err *err)
{
    struct newest newest = {.op_id = op_id};
    struct params params = {0};

    op_id[0] = '\0';
    params_text(&params, locale);
    if (ask_one(cluster, STATEMENT_GET_SNAPSHOT, &params, take_newest, &newest, err))
        return err->code;
    if (!newest.is_there)
        return err_set(err, ERR_NOT_FOUND, "the shared log has no snapshot of %s", locale);
    if (newest.is_damaged)
        return err_set(err, ERR_DAMAGED, "the shared log's snapshot of %s cannot be", locale);
    if (cluster_get_blob(cluster, newest.body, bytes, length, err)) {
        if (err->code == ERR_NOT_FOUND)
            err_set(err, ERR_DAMAGED, "the body of the shared log's snapshot of %s is missing",
                    locale);
        return err->code;
    }
    *revision = (uint64_t)newest.revision;
    cluster_count(cluster, &cluster->stats.snapshots_read, 1);
    return ERR_OK;
}
