/*
 * Blobs: bytes under their hash, in parts of some MiB, so that no message, and no row, is larger.
 *
 * The row of `blob` counts; it is written with the last part. Who puts the same blob at the same
 * time writes the same bytes. Times of writing keep the garbage collector away for an hour, which
 * is longer than any change takes from putting its blobs to naming them.
 *
 * Whoever gets a blob checks its hash. One that does not fit is marked: it counts as missing
 * from then on, and the next cluster_put_blob writes it anew.
 */
#include "cluster/cluster_data.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HAVE_BATCH = 16384 };

void hash_text(const uint8_t hash[CLUSTER_HASH_BYTES], char out[2 * CLUSTER_HASH_BYTES + 1])
{
    for (int i = 0; i < CLUSTER_HASH_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

/* ---- putting --------------------------------------------------------------------------------- */

/* Is it there, for certain? Renews its time. */
static enum err_code has_blob(struct cluster *cluster, const uint8_t *hash, bool *is_there,
                              struct err *err)
{
    return cluster_have_blobs(cluster, (const uint8_t(*)[CLUSTER_HASH_BYTES])hash, 1, is_there,
                              err);
}

enum err_code cluster_put_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               const void *bytes, size_t length, struct err *err)
{
    size_t parts = length > 0 ? (length + CLUSTER_PART_BYTES - 1) / CLUSTER_PART_BYTES : 1;
    bool is_there = false;

    CHECK(parts < INT32_MAX);
    if (parts > 1 && has_blob(cluster, hash, &is_there, err))
        return err->code;
    for (size_t part = 0; part < parts && !is_there; part++) {
        struct params params = {0};
        size_t at = part * CLUSTER_PART_BYTES;

        params_bytes(&params, hash, CLUSTER_HASH_BYTES);
        params_int8(&params, (int64_t)length);
        params_int4(&params, (int32_t)part);
        params_bool(&params, part + 1 == parts);
        params_bytes(&params, (const uint8_t *)bytes + at,
                     length - at < CLUSTER_PART_BYTES ? length - at : CLUSTER_PART_BYTES);
        params_bool(&params, cluster->is_held);
        if (ask_one(cluster, STATEMENT_PUT_BLOB, &params, NULL, NULL, err))
            return err->code;
    }
    if (!is_there)
        cluster_count(cluster, &cluster->stats.blobs_put, 1);
    return ERR_OK;
}

/* ---- which are there ------------------------------------------------------------------------- */

struct named {
    uint8_t hash[CLUSTER_HASH_BYTES];
    size_t index;
};

static int compare_named(const void *a, const void *b)
{
    return memcmp(a, b, CLUSTER_HASH_BYTES);
}

struct have {
    const struct named *sorted;
    size_t count;
    bool *out;
};

static void take_have(struct ask *ask, unsigned index, const PGresult *result)
{
    struct have *have = ask->context;

    for (int row = 0; index == 1 && row < PQntuples(result); row++) {
        const uint8_t *hash;
        size_t length, low = 0, high = have->count;

        if (!result_bytes(result, row, 0, &hash, &length) || length != CLUSTER_HASH_BYTES)
            continue;
        while (low < high) {
            size_t middle = (low + high) / 2;

            if (memcmp(have->sorted[middle].hash, hash, CLUSTER_HASH_BYTES) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < have->count && memcmp(have->sorted[low].hash, hash, CLUSTER_HASH_BYTES) == 0;
             low++)
            have->out[have->sorted[low].index] = true;
    }
}

static enum err_code have_some(struct cluster *cluster, const uint8_t (*hashes)[CLUSTER_HASH_BYTES],
                               size_t count, bool *out, struct err *err)
{
    struct named *sorted = calloc(count, sizeof *sorted);
    struct have have = {sorted, count, out};
    struct ask ask = {.take = take_have, .context = &have};
    struct params params = {0};
    struct array array = {0};
    enum err_code code;

    array_begin(&array, ARRAY_BYTES, count);
    for (size_t i = 0; i < count; i++)
        array_bytes(&array, hashes[i], CLUSTER_HASH_BYTES);
    params_array(&params, &array);
    if (!sorted || array.has_failed) {
        code = err_set(err, ERR_NO_MEMORY, "no memory for a question to the shared log");
    } else if (cluster_ready(cluster, err)) {
        code = err->code;
    } else {
        for (size_t i = 0; i < count; i++) {
            memcpy(sorted[i].hash, hashes[i], CLUSTER_HASH_BYTES);
            sorted[i].index = i;
        }
        qsort(sorted, count, sizeof *sorted, compare_named);
        memset(out, 0, count * sizeof *out);
        /* renewed first: what the second finds will be there */
        ask_statement(cluster, &ask, STATEMENT_TOUCH_BLOBS, &params);
        ask_statement(cluster, &ask, STATEMENT_HAVE_BLOBS, &params);
        code = ask_run(cluster, &ask, err);
    }
    free(sorted);
    array_free(&array);
    return code;
}

enum err_code cluster_have_blobs(struct cluster *cluster,
                                 const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                 bool *out, struct err *err)
{
    for (size_t i = 0; i < count; i += HAVE_BATCH)
        if (have_some(cluster, hashes + i, count - i < HAVE_BATCH ? count - i : HAVE_BATCH, out + i,
                      err))
            return err->code;
    return ERR_OK;
}

/* ---- getting --------------------------------------------------------------------------------- */

struct part {
    bool is_there, is_damaged;
    int64_t length; /* of the whole */
    uint8_t *out;   /* malloc with the first one */
    size_t at;
};

static void take_part(struct ask *ask, unsigned index, const PGresult *result)
{
    struct part *part = ask->context;
    const uint8_t *data;
    size_t bytes;
    int64_t length;

    (void)index;
    part->is_there = PQntuples(result) > 0;
    if (!part->is_there)
        return;
    if (!result_int8(result, 0, 0, &length) || !result_bytes(result, 0, 1, &data, &bytes) ||
        length < 0 || (part->at > 0 && length != part->length) ||
        bytes > (uint64_t)length - part->at || (bytes == 0 && length > 0)) {
        part->is_damaged = true;
        return;
    }
    part->length = length;
    if (part->at == 0)
        part->out = malloc(length > 0 ? (size_t)length : 1);
    if (part->out && bytes > 0)
        memcpy(part->out + part->at, data, bytes);
    part->at += bytes;
}

static enum err_code damaged(struct cluster *cluster, const uint8_t *hash, struct err *err)
{
    char name[2 * CLUSTER_HASH_BYTES + 1];
    struct params params = {0};
    struct err ignored;

    hash_text(hash, name);
    log_error("the shared log: blob %s does not fit its hash", name);
    params_bytes(&params, hash, CLUSTER_HASH_BYTES);
    ask_one(cluster, STATEMENT_BLOB_DAMAGED, &params, NULL, NULL, &ignored);
    return err_set(err, ERR_DAMAGED, "the shared log's blob %s does not fit its hash", name);
}

enum err_code cluster_get_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               void **bytes, size_t *length, struct err *err)
{
    struct part part = {0};
    uint8_t is[CLUSTER_HASH_BYTES];
    char name[2 * CLUSTER_HASH_BYTES + 1];
    int32_t number = 0;

    do {
        struct params params = {0};

        params_bytes(&params, hash, CLUSTER_HASH_BYTES);
        params_int4(&params, number++);
        if (ask_one(cluster, STATEMENT_GET_BLOB, &params, take_part, &part, err)) {
            free(part.out);
            return err->code;
        }
    } while (part.is_there && !part.is_damaged && part.out && part.at < (uint64_t)part.length);
    if (part.is_there && !part.is_damaged && !part.out)
        return err_set(err, ERR_NO_MEMORY, "no memory for a blob of %lld bytes",
                       (long long)part.length);
    if (!part.is_there && number == 1) {
        hash_text(hash, name);
        return err_set(err, ERR_NOT_FOUND, "the shared log has no blob %s", name);
    }
    if (part.is_there && !part.is_damaged)
        content_hash(part.out, (size_t)part.length, is);
    if (!part.is_there || part.is_damaged || memcmp(is, hash, sizeof is) != 0) {
        free(part.out);
        return damaged(cluster, hash, err);
    }
    cluster_count(cluster, &cluster->stats.blobs_read, 1);
    *bytes = part.out;
    *length = (size_t)part.length;
    return ERR_OK;
}
