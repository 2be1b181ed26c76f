/*
 * The shared edit log: what is not there yet says that it is away.
 */
#include "cluster/cluster.h"

#include "base/content_hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cluster {
    int none;
};

static enum err_code away(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the shared log is away");
}

struct cluster *cluster_create(const struct cluster_options *options, struct err *err)
{
    (void)options;
    away(err);
    return NULL;
}

void cluster_destroy(struct cluster *cluster)
{
    free(cluster);
}

void cluster_wake(struct cluster *cluster)
{
    (void)cluster;
}

bool cluster_wait(struct cluster *cluster, int timeout_ms)
{
    (void)cluster, (void)timeout_ms;
    return false;
}

bool cluster_is_away(const struct cluster *cluster)
{
    (void)cluster;
    return true;
}

enum err_code cluster_identity(struct cluster *cluster, char out[33], struct err *err)
{
    (void)cluster, (void)out;
    return away(err);
}

enum err_code cluster_append(struct cluster *cluster, const struct cluster_entry *entries,
                             size_t count, size_t *at, bool *in_doubt, struct err *err)
{
    (void)cluster, (void)entries, (void)count, (void)at;
    *in_doubt = false;
    return away(err);
}

enum err_code cluster_hold(struct cluster *cluster, const char (*locales)[CLUSTER_ID_MAX + 1],
                           size_t count, struct err *err)
{
    (void)cluster, (void)locales, (void)count;
    return away(err);
}

void cluster_release(struct cluster *cluster)
{
    (void)cluster;
}

enum err_code cluster_heads(struct cluster *cluster, struct cluster_head **heads, size_t *count,
                            struct err *err)
{
    (void)cluster, (void)heads, (void)count;
    return away(err);
}

enum err_code cluster_op_at(struct cluster *cluster, const char *locale, uint64_t revision,
                            char op_id[CLUSTER_OP_ID_MAX + 1], struct err *err)
{
    (void)cluster, (void)locale, (void)revision, (void)op_id;
    return away(err);
}

enum err_code cluster_read(struct cluster *cluster, const char *locale, uint64_t after,
                           bool (*take)(void *context, const struct cluster_entry *entry,
                                        struct err *err),
                           void *context, size_t *count, struct err *err)
{
    (void)cluster, (void)locale, (void)after, (void)take, (void)context, (void)count;
    return away(err);
}

void cluster_hash(const void *bytes, size_t length, uint8_t out[CLUSTER_HASH_BYTES])
{
    content_hash(bytes, length, out);
}

enum err_code cluster_put_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               const void *bytes, size_t length, struct err *err)
{
    (void)cluster, (void)hash, (void)bytes, (void)length;
    return away(err);
}

enum err_code cluster_have_blobs(struct cluster *cluster,
                                 const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                 bool *out, struct err *err)
{
    (void)cluster, (void)hashes, (void)count, (void)out;
    return away(err);
}

enum err_code cluster_get_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               void **bytes, size_t *length, struct err *err)
{
    (void)cluster, (void)hash, (void)bytes, (void)length;
    return away(err);
}

enum err_code cluster_put_snapshot(struct cluster *cluster, const char *locale, uint64_t revision,
                                   const char *op_id, const void *bytes, size_t length,
                                   const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                                   uint64_t keep, struct err *err)
{
    (void)cluster, (void)locale, (void)revision, (void)op_id, (void)bytes, (void)length;
    (void)blobs, (void)blob_count, (void)keep;
    return away(err);
}

enum err_code cluster_get_snapshot(struct cluster *cluster, const char *locale, uint64_t *revision,
                                   char op_id[CLUSTER_OP_ID_MAX + 1], void **bytes, size_t *length,
                                   struct err *err)
{
    (void)cluster, (void)locale, (void)revision, (void)op_id, (void)bytes, (void)length;
    return away(err);
}

enum err_code cluster_adopt(struct cluster *cluster, const char *locale, uint64_t revision,
                            const char *op_id, const void *bytes, size_t length,
                            const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                            struct err *err)
{
    (void)cluster, (void)locale, (void)revision, (void)op_id, (void)bytes, (void)length;
    (void)blobs, (void)blob_count;
    return away(err);
}

enum err_code cluster_lease(struct cluster *cluster, const struct cluster_area *area,
                            uint64_t *fence, char *holder, struct err *err)
{
    (void)cluster, (void)area, (void)fence, (void)holder;
    return away(err);
}

void cluster_unlease(struct cluster *cluster, uint64_t fence)
{
    (void)cluster, (void)fence;
}

bool cluster_is_lost(struct cluster *cluster, uint64_t fence)
{
    (void)cluster, (void)fence;
    return true;
}

void cluster_set_patches(struct cluster *cluster, uint32_t patches)
{
    (void)cluster, (void)patches;
}

void cluster_set_patch_slots(struct cluster *cluster, uint32_t slots)
{
    (void)cluster, (void)slots;
}

enum err_code cluster_nodes(struct cluster *cluster, struct cluster_node **nodes, size_t *count,
                            struct err *err)
{
    (void)cluster, (void)nodes, (void)count;
    return away(err);
}

void cluster_stats(struct cluster *cluster, struct cluster_stats *out)
{
    (void)cluster;
    memset(out, 0, sizeof *out);
    out->is_away = true;
    out->contact_age_s = INFINITY;
}
