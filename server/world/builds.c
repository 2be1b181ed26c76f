/*
 * A list of structs that are in the memory of the threads that build. A build takes milliseconds to
 * a minute, so one mutex is enough; the share that is done changes without it.
 */
#include "world/builds.h"

#include "base/check.h"
#include "base/clock.h"

#include <string.h>

const char *const build_kind_name[] = {
    [BUILD_UPLOAD] = "upload", [BUILD_EDIT] = "edit", [BUILD_REBUILD] = "rebuild"};

void build_begin(struct builds *builds, struct build *build, enum build_kind kind,
                 const char *locale, const char *layer)
{
    struct build **end = &builds->first;

    build->next = NULL;
    memcpy(build->locale, locale, strlen(locale) + 1);
    memcpy(build->layer, layer, strlen(layer) + 1);
    build->kind = kind;
    build->start_ns = monotonic_ns();
    atomic_init(&build->progress.items, 0);
    atomic_init(&build->progress.done, 0);
    pthread_mutex_lock(&builds->mutex);
    while (*end)
        end = &(*end)->next;
    *end = build;
    pthread_mutex_unlock(&builds->mutex);
}

void build_end(struct builds *builds, struct build *build)
{
    struct build **at = &builds->first;

    pthread_mutex_lock(&builds->mutex);
    while (*at && *at != build)
        at = &(*at)->next;
    CHECK(*at);
    *at = build->next;
    pthread_mutex_unlock(&builds->mutex);
}

struct pace build_pace(struct build *build, struct pace pace)
{
    pace.progress = &build->progress;
    pace.share = 1;
    return pace;
}

size_t builds_list(struct builds *builds, struct build_state *out, size_t most)
{
    uint64_t now_ns;
    size_t count = 0;

    pthread_mutex_lock(&builds->mutex);
    now_ns = monotonic_ns();
    for (const struct build *build = builds->first; build; build = build->next, count++) {
        if (count >= most)
            continue;
        out[count].kind = build->kind;
        memcpy(out[count].locale, build->locale, sizeof build->locale);
        memcpy(out[count].layer, build->layer, sizeof build->layer);
        out[count].polygons = atomic_load_explicit(&build->progress.items, memory_order_relaxed);
        out[count].done = atomic_load_explicit(&build->progress.done, memory_order_relaxed);
        out[count].elapsed_ms = (double)(now_ns - build->start_ns) / 1e6;
    }
    pthread_mutex_unlock(&builds->mutex);
    return count;
}
