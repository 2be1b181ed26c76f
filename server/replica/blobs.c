/*
 * Blobs: bytes under their hash, in parts of some MiB, so that no message, and no row, is larger.
 *
 * A blob exists when its row in `blob` does; it is written with the last part. Many blobs are sent
 * in groups, two in flight at a time: a transaction and a round trip each would be most of the cost
 * of a tile. Concurrent puts of the same blob write the same bytes. The garbage collector ignores
 * blobs for an hour after their time of writing, which is longer than any change takes from putting
 * its blobs to naming them.
 *
 * Each read checks the hash. A blob with a wrong one is marked: it counts as missing from then on,
 * and the next cluster_put_blob writes it again.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HAVE_BATCH = 16384, PUT_BYTES = 2 << 20, PUT_FLIGHTS = 64 };

static void hash_text(const uint8_t hash[CLUSTER_HASH_BYTES], char out[2 * CLUSTER_HASH_BYTES + 1])
{
    for (int i = 0; i < CLUSTER_HASH_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

/* ---- hashes ---------------------------------------------------------------------------------- */

struct named {
    uint8_t hash[CLUSTER_HASH_BYTES];
    size_t index;
};

static int compare_named(const void *a, const void *b)
{
    return memcmp(a, b, CLUSTER_HASH_BYTES);
}

static struct named name_of(const uint8_t hash[CLUSTER_HASH_BYTES], size_t index)
{
    struct named name = {.index = index};

    memcpy(name.hash, hash, sizeof name.hash);
    return name;
}

/* By hash, each once; how many. */
static size_t sort_named(struct named *names, size_t count)
{
    size_t kept = 0;

    qsort(names, count, sizeof *names, compare_named);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_named(&names[i], &names[kept - 1]) != 0)
            names[kept++] = names[i];
    return kept;
}

/* ---- which are there ------------------------------------------------------------------------- */

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
        for (size_t i = 0; i < count; i++)
            sorted[i] = name_of(hashes[i], i);
        qsort(sorted, count, sizeof *sorted, compare_named);
        memset(out, 0, count * sizeof *out);
        /* renewed first: blobs that the second finds will stay */
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

/* ---- putting --------------------------------------------------------------------------------- */

/*
 * Blobs in flight: part after part is sent, each in a transaction of its own, while answers arrive.
 * A transaction of several would be no faster, and a process that is stopped in its middle would
 * hold rows of blobs that others put, too.
 */
struct putting {
    struct cluster *cluster;
    struct named *missing;
    size_t count;
    const void *(*source)(void *, size_t, size_t *, void **, struct err *);
    void *context;
    size_t blob, part; /* the next one */
    const void *bytes; /* of that blob; NULL: not fetched yet */
    void *made;
    size_t length;
    struct flight {
        struct ask ask;
        size_t bytes;
    } flights[PUT_FLIGHTS];
    size_t sent, ended, bytes_on_way;
};

static void close_blob(struct putting *putting)
{
    free(putting->made);
    putting->made = NULL;
    putting->bytes = NULL;
}

static enum err_code send_part(struct putting *putting, struct err *err)
{
    struct flight *flight = &putting->flights[putting->sent % PUT_FLIGHTS];
    const struct named *name = &putting->missing[putting->blob];
    struct params params = {0};
    size_t at, left;

    if (!putting->bytes)
        putting->bytes =
            putting->source(putting->context, name->index, &putting->length, &putting->made, err);
    if (!putting->bytes)
        return err->code;
    CHECK(putting->part < INT32_MAX);
    at = putting->part * CLUSTER_PART_BYTES;
    left = putting->length - at;
    *flight = (struct flight){.bytes = left < CLUSTER_PART_BYTES ? left : CLUSTER_PART_BYTES};
    params_bytes(&params, name->hash, CLUSTER_HASH_BYTES);
    params_int8(&params, (int64_t)putting->length);
    params_int4(&params, (int32_t)putting->part);
    params_bool(&params, flight->bytes == left);
    params_bytes(&params, (const uint8_t *)putting->bytes + at, flight->bytes);
    params_bool(&params, putting->cluster->is_held);
    ask_statement(putting->cluster, &flight->ask, STATEMENT_PUT_BLOB, &params);
    ask_send(putting->cluster, &flight->ask);
    putting->sent++;
    putting->bytes_on_way += flight->bytes;
    putting->part++;
    if (flight->bytes == left) {
        close_blob(putting);
        putting->blob++;
        putting->part = 0;
    }
    return err->code;
}

/* Until all are stored, or one was refused, lost or not available: then nothing more is sent, and
 * parts in flight are waited for. */
static enum err_code put_missing(struct putting *putting, struct err *err)
{
    struct cluster *cluster = putting->cluster;

    err->code = ERR_OK;
    do {
        struct flight *flight = &putting->flights[putting->ended % PUT_FLIGHTS];
        struct err other = {.code = ERR_OK};

        while (err->code == ERR_OK && putting->blob < putting->count &&
               putting->sent - putting->ended < PUT_FLIGHTS && putting->bytes_on_way < PUT_BYTES)
            send_part(putting, err);
        if (putting->ended == putting->sent)
            break;
        ask_wait(cluster, &flight->ask, &other);
        putting->ended++;
        putting->bytes_on_way -= flight->bytes;
        if (err->code == ERR_OK)
            *err = other;
    } while (putting->ended < putting->sent || putting->blob < putting->count);
    close_blob(putting);
    if (err->code == ERR_OK)
        cluster_count(cluster, &cluster->stats.blobs_put, putting->count);
    return err->code;
}

enum err_code cluster_put_blobs(struct cluster *cluster,
                                const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                const void *(*bytes)(void *context, size_t index, size_t *length,
                                                     void **made, struct err *err),
                                void *context, struct err *err)
{
    struct putting *putting = calloc(1, sizeof *putting);
    bool *is_there = calloc(count + 1, sizeof *is_there);

    err->code = ERR_OK;
    if (putting)
        *putting = (struct putting){.cluster = cluster, .source = bytes, .context = context};
    if (putting)
        putting->missing = calloc(count + 1, sizeof *putting->missing);
    if (!is_there || !putting || !putting->missing)
        err_set(err, ERR_NO_MEMORY, "no memory for a list of blobs");
    else if (count > 0)
        cluster_have_blobs(cluster, hashes, count, is_there, err);
    for (size_t i = 0; i < count && err->code == ERR_OK; i++)
        if (!is_there[i])
            putting->missing[putting->count++] = name_of(hashes[i], i);
    if (err->code == ERR_OK && putting->count > 0) {
        putting->count = sort_named(putting->missing, putting->count);
        put_missing(putting, err);
    }
    if (putting)
        free(putting->missing);
    free(putting);
    free(is_there);
    return err->code;
}

struct one_blob {
    const void *bytes;
    size_t length;
};

static const void *one_blob_bytes(void *context, size_t index, size_t *length, void **made,
                                  struct err *err)
{
    const struct one_blob *blob = context;

    (void)index, (void)made, (void)err;
    *length = blob->length;
    return blob->bytes ? blob->bytes : "";
}

enum err_code cluster_put_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               const void *bytes, size_t length, struct err *err)
{
    struct one_blob blob = {bytes, length};
    struct named name = name_of(hash, 0);
    struct putting putting = {.cluster = cluster,
                              .missing = &name,
                              .count = 1,
                              .source = one_blob_bytes,
                              .context = &blob};

    /* a short one is sent at once: the engine checks, too */
    if (length > CLUSTER_PART_BYTES)
        return cluster_put_blobs(cluster, (const uint8_t(*)[CLUSTER_HASH_BYTES])hash, 1,
                                 one_blob_bytes, &blob, err);
    if (cluster_ready(cluster, err))
        return err->code;
    return put_missing(&putting, err);
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
