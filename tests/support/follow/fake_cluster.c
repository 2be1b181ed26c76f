#include "tests/support/follow/fake_cluster.h"
#include "base/check.h"
#include "base/content_hash.h"
#include "support/pause.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fake_engine fake = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                           .identity = "0123456789abcdef0123456789abcdef",
                           .connects = 1};

struct cluster {
    char node[CLUSTER_ID_MAX + 1];
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_woken, has_news;
};

static void fake_news(void)
{
    for (size_t i = 0; i < FAKE_NODES_MAX; i++)
        if (fake.nodes[i]) {
            pthread_mutex_lock(&fake.nodes[i]->mutex);
            fake.nodes[i]->has_news = true;
            pthread_cond_signal(&fake.nodes[i]->cond);
            pthread_mutex_unlock(&fake.nodes[i]->mutex);
        }
}

void fake_set_away(bool is_away)
{
    pthread_mutex_lock(&fake.mutex);
    if (fake.is_away && !is_away)
        fake.connects++;
    fake.is_away = is_away;
    pthread_mutex_unlock(&fake.mutex);
    fake_news();
}

static struct fake_locale *fake_locale(const char *id)
{
    for (size_t i = 0; i < fake.locale_count; i++)
        if (strcmp(fake.locales[i].id, id) == 0)
            return &fake.locales[i];
    return NULL;
}

static struct fake_locale *fake_locale_add(const char *id)
{
    struct fake_locale *locale = fake_locale(id);

    if (locale)
        return locale;
    CHECK(fake.locale_count < FAKE_LOCALES_MAX);
    locale = &fake.locales[fake.locale_count++];
    memset(locale, 0, sizeof *locale);
    strcpy(locale->id, id);
    locale->first = 1;
    return locale;
}

struct fake_entry *fake_entry_at(const char *locale, uint64_t revision)
{
    for (size_t i = 0; i < fake.entry_count; i++)
        if (fake.entries[i] && fake.entries[i]->entry.revision == revision &&
            strcmp(fake.entries[i]->entry.locale, locale) == 0)
            return fake.entries[i];
    return NULL;
}

static void fake_drop(struct fake_entry **entry)
{
    free((void *)(uintptr_t)(*entry)->entry.data);
    free((void *)(uintptr_t)(*entry)->entry.blobs);
    free(*entry);
    *entry = NULL;
}

void fake_trim(const char *locale, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < fake.entry_count; i++) {
        struct fake_entry *at = fake.entries[i];

        if (at && strcmp(at->entry.locale, locale) == 0 &&
            (at->entry.revision < first || at->entry.revision > last))
            fake_drop(&fake.entries[i]);
    }
    if (fake_locale(locale)->first < first)
        fake_locale(locale)->first = first;
}

void fake_fall_back(const char *locale, uint64_t last)
{
    pthread_mutex_lock(&fake.mutex);
    fake_trim(locale, 1, last);
    fake_locale(locale)->revision = last;
    pthread_mutex_unlock(&fake.mutex);
}

uint64_t fake_first(const char *locale)
{
    uint64_t first;

    pthread_mutex_lock(&fake.mutex);
    first = fake_locale(locale)->first;
    pthread_mutex_unlock(&fake.mutex);
    return first;
}

static struct fake_blob *fake_blob(const uint8_t hash[CLUSTER_HASH_BYTES])
{
    for (size_t i = 0; i < fake.blob_count; i++)
        if (memcmp(fake.blobs[i].hash, hash, CLUSTER_HASH_BYTES) == 0)
            return &fake.blobs[i];
    return NULL;
}

void fake_reset(void)
{
    for (size_t i = 0; i < fake.entry_count; i++)
        if (fake.entries[i])
            fake_drop(&fake.entries[i]);
    for (size_t i = 0; i < fake.locale_count; i++)
        free(fake.locales[i].body);
    for (size_t i = 0; i < fake.blob_count; i++)
        free(fake.blobs[i].bytes);
    fake.entry_count = fake.locale_count = fake.blob_count = 0;
    fake.appends = fake.conflicts = fake.holds = fake.snapshots_put = fake.snapshots_read = 0;
    fake.adoptions = 0;
    fake.is_away_for_adoption = fake.is_away = fake.loses_answer = fake.loses_request = false;
    fake.stale_fence = 0;
    fake.before_append = NULL;
    fake.before_read = NULL;
    fake.deaf = NULL;
    fake.hangs = false;
    fake.rival = fake.lease_holder = NULL;
    fake.leases = 0;
    fake.identity[0] = fake.identity[0] == 'f' ? '0' : 'f';
    fake.connects++;
}

static enum err_code fake_away(struct err *err)
{
    return fake.is_away ? err_set(err, ERR_UNAVAILABLE, "the shared log is away") : ERR_OK;
}

/* ---- cluster.h ------------------------------------------------------------------------------- */

struct cluster *cluster_create(const struct cluster_options *options, struct err *err)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);

    (void)err;
    CHECK(cluster);
    strcpy(cluster->node, options->node);
    pthread_mutex_init(&cluster->mutex, NULL);
    pthread_cond_init(&cluster->cond, NULL);
    for (size_t i = 0; i < FAKE_NODES_MAX; i++)
        if (!fake.nodes[i]) {
            fake.nodes[i] = cluster;
            return cluster;
        }
    CHECK(false);
    return NULL;
}

void cluster_destroy(struct cluster *cluster)
{
    for (size_t i = 0; i < FAKE_NODES_MAX; i++)
        if (fake.nodes[i] == cluster)
            fake.nodes[i] = NULL;
    pthread_mutex_destroy(&cluster->mutex);
    pthread_cond_destroy(&cluster->cond);
    free(cluster);
}

void cluster_wake(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->mutex);
    cluster->is_woken = true;
    pthread_cond_signal(&cluster->cond);
    pthread_mutex_unlock(&cluster->mutex);
}

bool cluster_wait(struct cluster *cluster, int timeout_ms)
{
    struct timespec until;
    bool news, is_poll = timeout_ms < 0 || timeout_ms > 50;

    if (is_poll)
        timeout_ms = 50; /* and then there is news: as the poll of the real one */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += timeout_ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&cluster->mutex);
    while (!cluster->is_woken && !cluster->has_news && timeout_ms > 0)
        if (pthread_cond_timedwait(&cluster->cond, &cluster->mutex, &until) != 0)
            timeout_ms = 0;
    news = (cluster->has_news || (is_poll && timeout_ms == 0)) && fake.deaf != cluster;
    cluster->is_woken = cluster->has_news = false;
    pthread_mutex_unlock(&cluster->mutex);
    return news;
}

bool cluster_is_away(const struct cluster *cluster)
{
    bool is_away;

    (void)cluster;
    pthread_mutex_lock(&fake.mutex);
    is_away = fake.is_away;
    pthread_mutex_unlock(&fake.mutex);
    return is_away;
}

enum err_code cluster_identity(struct cluster *cluster, char out[33], struct err *err)
{
    (void)cluster;
    memcpy(out, fake.identity, 33);
    return fake_away(err);
}

static void fake_store(const struct cluster *cluster, const struct cluster_entry *entry)
{
    struct fake_entry *copy = calloc(1, sizeof *copy);
    void *data = malloc(entry->bytes), *blobs = malloc(entry->blob_count * CLUSTER_HASH_BYTES + 1);

    CHECK(fake.entry_count < FAKE_ENTRIES_MAX && copy && data && blobs);
    copy->entry = *entry;
    memcpy(data, entry->data, entry->bytes);
    if (entry->blob_count > 0)
        memcpy(blobs, entry->blobs, entry->blob_count * CLUSTER_HASH_BYTES);
    copy->entry.data = data;
    copy->entry.blobs = blobs;
    strcpy(copy->entry.node, cluster->node);
    for (size_t i = 0; i < entry->blob_count; i++)
        CHECK(fake_blob(entry->blobs[i]));
    fake.entries[fake.entry_count++] = copy;
    fake_locale_add(entry->locale)->revision = entry->revision;
}

static bool fake_has_op(const char *op_id)
{
    for (size_t i = 0; i < fake.entry_count; i++)
        if (fake.entries[i] && strcmp(fake.entries[i]->entry.op_id, op_id) == 0)
            return true;
    return false;
}

/* Does the log stand on another entry than the appender does? */
static bool fake_stands_elsewhere(const struct cluster_entry *entry)
{
    const struct fake_entry *before = fake_entry_at(entry->locale, entry->revision - 1);
    const struct fake_locale *locale = fake_locale(entry->locale);

    if (!entry->before[0])
        return false;
    if (before)
        return strcmp(before->entry.op_id, entry->before) != 0;
    return locale && locale->snapshot > 0 && locale->snapshot == entry->revision - 1 &&
           strcmp(locale->snapshot_op, entry->before) != 0;
}

static enum err_code fake_append(struct cluster *cluster, const struct cluster_entry *entries,
                                 size_t count, size_t *at, bool *in_doubt, struct err *err)
{
    bool is_lost = fake.loses_answer;

    if (fake.holder == cluster)
        fake.holder = NULL;
    if (fake_away(err))
        return err->code;
    if (fake.loses_request) {
        fake.loses_request = false;
        *in_doubt = true;
        return err_set(err, ERR_UNAVAILABLE, "lost before the commit");
    }
    for (size_t i = 0; i < count; i++) {
        const struct fake_locale *locale = fake_locale(entries[i].locale);
        uint64_t before = locale ? locale->revision : 0;

        for (size_t k = 0; k < i; k++)
            before += strcmp(entries[k].locale, entries[i].locale) == 0;
        if (entries[i].fence != 0 && entries[i].fence == fake.stale_fence) {
            *at = i;
            return err_set(err, ERR_PRECONDITION_FAILED, "fence %llu is stale",
                           (unsigned long long)entries[i].fence);
        }
        if (entries[i].revision != before + 1 || fake_has_op(entries[i].op_id) ||
            fake_stands_elsewhere(&entries[i])) {
            fake.conflicts++;
            return err_set(err, ERR_CONFLICT, "somebody was faster");
        }
    }
    for (size_t i = 0; i < count; i++)
        fake_store(cluster, &entries[i]);
    fake.appends++;
    fake.loses_answer = false;
    *in_doubt = is_lost;
    return is_lost ? err_set(err, ERR_UNAVAILABLE, "lost after the commit") : ERR_OK;
}

/* The mutex, when nobody else holds the locales. */
static void fake_lock_rows(const struct cluster *cluster)
{
    pthread_mutex_lock(&fake.mutex);
    while (fake.holder && fake.holder != cluster) {
        pthread_mutex_unlock(&fake.mutex);
        pause_ms(1);
        pthread_mutex_lock(&fake.mutex);
    }
}

enum err_code cluster_append(struct cluster *cluster, const struct cluster_entry *entries,
                             size_t count, size_t *at, bool *in_doubt, struct err *err)
{
    void (*before)(struct cluster * node) = fake.before_append;
    enum err_code code;

    if (before)
        before(cluster);
    err->code = ERR_OK;
    *in_doubt = false;
    fake_lock_rows(cluster);
    code = fake_append(cluster, entries, count, at, in_doubt, err);
    pthread_mutex_unlock(&fake.mutex);
    fake_news();
    return code;
}

enum err_code cluster_hold(struct cluster *cluster, const char (*locales)[CLUSTER_ID_MAX + 1],
                           size_t count, struct err *err)
{
    (void)locales, (void)count;
    fake_lock_rows(cluster);
    if (fake_away(err) == ERR_OK) {
        fake.holder = cluster;
        fake.holds++;
        err->code = ERR_OK;
    }
    pthread_mutex_unlock(&fake.mutex);
    return err->code;
}

void cluster_release(struct cluster *cluster)
{
    pthread_mutex_lock(&fake.mutex);
    if (fake.holder == cluster)
        fake.holder = NULL;
    pthread_mutex_unlock(&fake.mutex);
}

enum err_code cluster_heads(struct cluster *cluster, struct cluster_head **heads, size_t *count,
                            struct err *err)
{
    (void)cluster;
    while (fake.hangs)
        pause_ms(1);
    pthread_mutex_lock(&fake.mutex);
    if (fake_away(err)) {
        pthread_mutex_unlock(&fake.mutex);
        return err->code;
    }
    *heads = calloc(fake.locale_count + 1, sizeof **heads);
    *count = fake.locale_count;
    for (size_t i = 0; i < *count; i++) {
        const struct fake_locale *locale = &fake.locales[i];

        strcpy((*heads)[i].locale, locale->id);
        (*heads)[i].revision = locale->revision;
        (*heads)[i].first = locale->first;
        (*heads)[i].snapshot = locale->snapshot;
    }
    pthread_mutex_unlock(&fake.mutex);
    return ERR_OK;
}

enum err_code cluster_op_at(struct cluster *cluster, const char *locale, uint64_t revision,
                            char op_id[CLUSTER_OP_ID_MAX + 1], struct err *err)
{
    const struct fake_entry *entry;

    (void)cluster;
    pthread_mutex_lock(&fake.mutex);
    entry = fake_entry_at(locale, revision);
    strcpy(op_id, entry ? entry->entry.op_id : "");
    pthread_mutex_unlock(&fake.mutex);
    return fake_away(err);
}

enum err_code cluster_find_op(struct cluster *cluster, const char *op_id,
                              char locale[CLUSTER_ID_MAX + 1], uint64_t *revision, struct err *err)
{
    (void)cluster;
    err_set(err, ERR_NOT_FOUND, "there is no such op_id");
    pthread_mutex_lock(&fake.mutex);
    for (size_t i = 0; i < fake.entry_count; i++)
        if (fake.entries[i] && strcmp(fake.entries[i]->entry.op_id, op_id) == 0) {
            strcpy(locale, fake.entries[i]->entry.locale);
            *revision = fake.entries[i]->entry.revision;
            err->code = ERR_OK;
        }
    pthread_mutex_unlock(&fake.mutex);
    return err->code;
}

enum err_code cluster_read(struct cluster *cluster, const char *locale, uint64_t after,
                           bool (*take)(void *context, const struct cluster_entry *entry,
                                        struct err *err),
                           void *context, size_t *count, struct err *err)
{
    void (*before)(struct cluster * node, const char *locale) = fake.before_read;

    if (before)
        before(cluster, locale);
    *count = 0;
    err->code = ERR_OK;
    if (fake_away(err))
        return err->code;
    for (; *count < CLUSTER_READ_MAX; ++*count) {
        const struct fake_entry *entry;
        const struct fake_locale *at;
        bool is_trimmed;

        pthread_mutex_lock(&fake.mutex);
        entry = fake_entry_at(locale, after + *count + 1);
        at = fake_locale(locale);
        is_trimmed = !entry && at && at->revision > after + *count;
        pthread_mutex_unlock(&fake.mutex);
        if (!entry)
            return is_trimmed && *count == 0 ? err_set(err, ERR_NOT_FOUND, "trimmed") : ERR_OK;
        if (!take(context, &entry->entry, err))
            return err->code;
    }
    return ERR_OK;
}

enum err_code cluster_put_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               const void *bytes, size_t length, struct err *err)
{
    uint8_t is[CLUSTER_HASH_BYTES];

    (void)cluster;
    content_hash(bytes, length, is);
    CHECK(memcmp(is, hash, sizeof is) == 0);
    pthread_mutex_lock(&fake.mutex);
    if (!fake_blob(hash)) {
        struct fake_blob *blob = &fake.blobs[fake.blob_count++];

        CHECK(fake.blob_count <= FAKE_BLOBS_MAX);
        memcpy(blob->hash, hash, sizeof blob->hash);
        blob->length = length;
        blob->bytes = malloc(length + 1);
        memcpy(blob->bytes, bytes, length);
    }
    pthread_mutex_unlock(&fake.mutex);
    return fake_away(err);
}

enum err_code cluster_put_blobs(struct cluster *cluster,
                                const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                const void *(*bytes)(void *context, size_t index, size_t *length,
                                                     void **made, struct err *err),
                                void *context, struct err *err)
{
    err->code = ERR_OK;
    if (fake_away(err))
        return err->code;
    for (size_t i = 0; i < count && err->code == ERR_OK; i++) {
        const void *is;
        void *made = NULL;
        size_t length;
        bool is_there;

        pthread_mutex_lock(&fake.mutex);
        is_there = fake_blob(hashes[i]) != NULL;
        pthread_mutex_unlock(&fake.mutex);
        if (is_there)
            continue;
        is = bytes(context, i, &length, &made, err);
        if (is)
            cluster_put_blob(cluster, hashes[i], is, length, err);
        free(made);
    }
    return err->code;
}

enum err_code cluster_have_blobs(struct cluster *cluster,
                                 const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                 bool *out, struct err *err)
{
    (void)cluster;
    pthread_mutex_lock(&fake.mutex);
    for (size_t i = 0; i < count; i++)
        out[i] = fake_blob(hashes[i]) != NULL;
    pthread_mutex_unlock(&fake.mutex);
    return fake_away(err);
}

enum err_code cluster_get_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               void **bytes, size_t *length, struct err *err)
{
    const struct fake_blob *blob;

    (void)cluster;
    pthread_mutex_lock(&fake.mutex);
    blob = fake_blob(hash);
    if (blob) {
        *length = blob->length;
        *bytes = malloc(blob->length + 1);
        memcpy(*bytes, blob->bytes, blob->length);
    }
    pthread_mutex_unlock(&fake.mutex);
    return blob ? fake_away(err) : err_set(err, ERR_NOT_FOUND, "no such blob");
}

static void fake_put_body(struct fake_locale *locale, uint64_t revision, const char *op_id,
                          const void *bytes, size_t length)
{
    free(locale->body);
    locale->body = malloc(length);
    memcpy(locale->body, bytes, length);
    locale->body_bytes = length;
    locale->snapshot = revision;
    strcpy(locale->snapshot_op, op_id);
}

enum err_code cluster_put_snapshot(struct cluster *cluster, const char *locale, uint64_t revision,
                                   const char *op_id, const void *bytes, size_t length,
                                   const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                                   uint64_t keep, struct err *err)
{
    struct fake_locale *at;

    (void)cluster, (void)blobs, (void)blob_count;
    pthread_mutex_lock(&fake.mutex);
    at = fake_locale(locale);
    if (at->snapshot >= revision) {
        err_set(err, ERR_CONFLICT, "there is one");
    } else {
        fake_put_body(at, revision, op_id, bytes, length);
        fake_trim(locale, revision > keep ? revision - keep + 1 : 1, UINT64_MAX);
        fake.snapshots_put++;
    }
    pthread_mutex_unlock(&fake.mutex);
    return err->code;
}

enum err_code cluster_get_snapshot(struct cluster *cluster, const char *locale, uint64_t *revision,
                                   char op_id[CLUSTER_OP_ID_MAX + 1], void **bytes, size_t *length,
                                   struct err *err)
{
    const struct fake_locale *at;

    (void)cluster;
    pthread_mutex_lock(&fake.mutex);
    at = fake_locale(locale);
    if (!at || at->snapshot == 0) {
        err_set(err, ERR_NOT_FOUND, "there is no snapshot");
    } else {
        *revision = at->snapshot;
        strcpy(op_id, at->snapshot_op);
        *bytes = malloc(at->body_bytes);
        memcpy(*bytes, at->body, at->body_bytes);
        *length = at->body_bytes;
        fake.snapshots_read++;
    }
    pthread_mutex_unlock(&fake.mutex);
    return err->code;
}

enum err_code cluster_adopt(struct cluster *cluster, const char *locale, uint64_t revision,
                            const char *op_id, const void *bytes, size_t length,
                            const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                            struct err *err)
{
    struct fake_locale *at;

    (void)cluster, (void)blobs, (void)blob_count;
    if (fake_away(err))
        return err->code;
    if (fake.is_away_for_adoption)
        return err_set(err, ERR_UNAVAILABLE, "the shared log is away");
    pthread_mutex_lock(&fake.mutex);
    if (fake_locale(locale) || (fake.rival && strcmp(fake.rival, locale) == 0)) {
        err_set(err, ERR_CONFLICT, "the log has it");
    } else {
        at = fake_locale_add(locale);
        at->revision = revision;
        at->first = revision + 1;
        fake_put_body(at, revision, op_id, bytes, length);
        fake.adoptions++;
    }
    pthread_mutex_unlock(&fake.mutex);
    return err->code;
}

void cluster_stats(struct cluster *cluster, struct cluster_stats *out)
{
    (void)cluster;
    pthread_mutex_lock(&fake.mutex);
    *out = (struct cluster_stats){.connects = (uint64_t)fake.connects, .is_away = fake.is_away};
    pthread_mutex_unlock(&fake.mutex);
}

enum err_code cluster_nodes(struct cluster *cluster, struct cluster_node **nodes, size_t *count,
                            struct err *err)
{
    (void)cluster, (void)err;
    *nodes = NULL;
    *count = 0;
    return ERR_OK;
}

/* ---- leases: of nobody's ground -------------------------------------------------------------- */

enum err_code cluster_lease(struct cluster *cluster, const struct cluster_area *area,
                            uint64_t *fence, char *holder, struct err *err)
{
    static uint64_t last;

    (void)cluster;
    err->code = ERR_OK;
    pthread_mutex_lock(&fake.mutex);
    if (fake.lease_holder) {
        snprintf(holder, CLUSTER_ID_MAX + 1, "%s", fake.lease_holder);
        err_set(err, ERR_CONFLICT, "a cell of that area of %s is held by %s", area->locale, holder);
    } else {
        *fence = ++last;
        fake.leases++;
    }
    pthread_mutex_unlock(&fake.mutex);
    return err->code;
}

enum err_code cluster_holder(struct cluster *cluster, const struct cluster_area *area, char *holder,
                             struct err *err)
{
    (void)cluster, (void)area;
    err->code = ERR_OK;
    pthread_mutex_lock(&fake.mutex);
    snprintf(holder, CLUSTER_ID_MAX + 1, "%s", fake.lease_holder ? fake.lease_holder : "");
    pthread_mutex_unlock(&fake.mutex);
    return err->code;
}

void cluster_unlease(struct cluster *cluster, uint64_t fence)
{
    (void)cluster, (void)fence;
    pthread_mutex_lock(&fake.mutex);
    fake.leases--;
    pthread_mutex_unlock(&fake.mutex);
}

bool cluster_is_lost(struct cluster *cluster, uint64_t fence)
{
    (void)cluster, (void)fence;
    return false;
}

/* Poses: test_cluster_poses.py has them with the real engine. */
enum err_code cluster_put_poses(struct cluster *cluster, const struct cluster_pose *poses,
                                size_t count, struct err *err)
{
    (void)cluster;
    (void)poses;
    (void)count;
    return fake_away(err);
}

enum err_code cluster_poses(struct cluster *cluster, uint64_t after, bool with_own,
                            struct cluster_pose **poses, size_t *count, struct err *err)
{
    (void)cluster;
    (void)after;
    (void)with_own;
    *poses = NULL;
    *count = 0;
    return fake_away(err);
}
