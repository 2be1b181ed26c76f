/*
 * A ring of keys. It is searched from end to end: only orders with a key need it, and making a
 * patch takes a thousand times as long.
 */
#include "sand/patch/repeats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct repeat {
    struct order_key key;
    struct patch_report *report;
};

struct repeats {
    pthread_mutex_t mutex;
    size_t count; /* that there ever were */
    struct repeat known[REPEATS_MAX];
};

struct repeats *repeats_create(void)
{
    struct repeats *repeats = calloc(1, sizeof *repeats);

    if (repeats)
        pthread_mutex_init(&repeats->mutex, NULL);
    return repeats;
}

void repeats_destroy(struct repeats *repeats)
{
    if (!repeats)
        return;
    for (size_t i = 0; i < REPEATS_MAX; i++)
        patch_report_unref(repeats->known[i].report);
    pthread_mutex_destroy(&repeats->mutex);
    free(repeats);
}

void repeats_keep(struct repeats *repeats, const struct order_key *key, struct patch_report *report)
{
    struct patch_report *forgotten;
    struct repeat *repeat;

    if (key->key[0] == '\0')
        return;
    pthread_mutex_lock(&repeats->mutex);
    repeat = &repeats->known[repeats->count++ % REPEATS_MAX];
    forgotten = repeat->report;
    *repeat = (struct repeat){*key, patch_report_ref(report)};
    pthread_mutex_unlock(&repeats->mutex);
    patch_report_unref(forgotten);
}

struct patch_report *repeats_find(struct repeats *repeats, const struct order_key *key,
                                  struct err *err)
{
    struct patch_report *report = NULL;

    err->code = ERR_OK;
    if (key->key[0] == '\0')
        return NULL;
    pthread_mutex_lock(&repeats->mutex);
    for (size_t i = 0; i < REPEATS_MAX && err->code == ERR_OK && !report; i++) {
        const struct repeat *known = &repeats->known[i];

        if (strcmp(known->key.key, key->key) != 0)
            continue;
        if (memcmp(known->key.request, key->request, sizeof key->request) == 0)
            report = patch_report_ref(known->report);
        else
            err_set(err, ERR_UNPROCESSABLE, "the Idempotency-Key is known from another request");
    }
    pthread_mutex_unlock(&repeats->mutex);
    return report;
}
