/*
 * Reports of patches for readers on other threads.
 *
 * Problem: a loop that answers GET …/patches/7 must not wait for a simulation, and the simulation
 * must not wait for readers. Approach: reports are immutable and counted; the table is an array of
 * pointers to the newest ones, under a mutex that is held to swap one or to count references.
 * A patch's reports only get newer.
 */
#include "sand/patch/report_table.h"

#include "base/array_reserve.h"

#include <stdlib.h>
#include <string.h>

void report_table_init(struct report_table *table)
{
    *table = (struct report_table){.count = 0};
    pthread_mutex_init(&table->mutex, NULL);
}

void report_table_finish(struct report_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        patch_report_unref(table->reports[i]);
    free(table->reports);
    pthread_mutex_destroy(&table->mutex);
}

/* Where a patch's report is or would be. */
static size_t place_of(const struct report_table *table, uint64_t number)
{
    size_t low = 0, high = table->count;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (table->reports[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct report_table *table, size_t place, uint64_t number)
{
    return place < table->count && table->reports[place]->number == number;
}

static bool has_same_bodies(const struct patch_report *a, const struct patch_report *b)
{
    bool is_same = a->body_count == b->body_count;

    for (uint32_t i = 0; is_same && i < a->body_count; i++)
        is_same = a->bodies[i].is_removed == b->bodies[i].is_removed;
    return is_same;
}

/* Numbers what the report changes. The mutex is held; old NULL: it is the patch's first one. */
static bool count_change(struct report_table *table, const struct patch_report *old,
                         struct patch_report *report)
{
    const bool is_moved = !old || old->transition_count != report->transition_count;
    const bool is_other = is_moved || !has_same_bodies(old, report);
    const uint64_t next = atomic_load(&table->last_change) + is_other;

    report->born_change = old ? old->born_change : next;
    report->state_change = is_moved ? next : old->state_change;
    report->change = is_other ? next : old->change;
    atomic_store(&table->last_change, next);
    return is_other;
}

/* The mutex is held. Returns the report that left the table. */
static struct patch_report *put(struct report_table *table, struct patch_report *report)
{
    const size_t place = place_of(table, report->number);
    struct patch_report *old;

    if (is_at(table, place, report->number)) {
        old = table->reports[place];
        table->reports[place] = report;
        return old;
    }
    if (!array_reserve((void **)&table->reports, &table->room, table->count + 1,
                       sizeof(struct patch_report *)))
        return report;
    memmove(table->reports + place + 1, table->reports + place,
            (table->count - place) * sizeof(struct patch_report *));
    table->reports[place] = report;
    table->count++;
    return NULL;
}

bool report_table_put(struct report_table *table, struct patch_report *report)
{
    struct patch_report *old;
    bool is_change;
    size_t place;

    pthread_mutex_lock(&table->mutex);
    place = place_of(table, report->number);
    is_change = count_change(
        table, is_at(table, place, report->number) ? table->reports[place] : NULL, report);
    old = put(table, report);
    pthread_mutex_unlock(&table->mutex);
    patch_report_unref(old);
    return is_change;
}

void report_table_forget(struct report_table *table, uint64_t number)
{
    struct patch_report *old = NULL;
    size_t place;

    pthread_mutex_lock(&table->mutex);
    place = place_of(table, number);
    if (is_at(table, place, number)) {
        old = table->reports[place];
        table->count--;
        memmove(table->reports + place, table->reports + place + 1,
                (table->count - place) * sizeof(struct patch_report *));
    }
    pthread_mutex_unlock(&table->mutex);
    patch_report_unref(old);
}

struct patch_report *report_table_find(struct report_table *table, const char *locale,
                                       uint64_t number)
{
    struct patch_report *report = NULL;
    size_t place;

    pthread_mutex_lock(&table->mutex);
    place = place_of(table, number);
    if (is_at(table, place, number) && strcmp(table->reports[place]->locale, locale) == 0)
        report = patch_report_ref(table->reports[place]);
    pthread_mutex_unlock(&table->mutex);
    return report;
}

struct patch_report *report_table_next(struct report_table *table, const char *locale,
                                       uint64_t after)
{
    struct patch_report *next = NULL;

    pthread_mutex_lock(&table->mutex);
    for (size_t i = 0; i < table->count; i++) {
        struct patch_report *report = table->reports[i];

        if (report->change > after && (!next || report->change < next->change) &&
            (!locale || strcmp(report->locale, locale) == 0))
            next = report;
    }
    if (next)
        patch_report_ref(next);
    pthread_mutex_unlock(&table->mutex);
    return next;
}

struct patch_report **report_table_list(struct report_table *table, const char *locale,
                                        size_t *count)
{
    struct patch_report **list;

    *count = 0;
    pthread_mutex_lock(&table->mutex);
    list = malloc((table->count + 1) * sizeof(struct patch_report *));
    for (size_t i = 0; list && i < table->count; i++)
        if (strcmp(table->reports[i]->locale, locale) == 0)
            list[(*count)++] = patch_report_ref(table->reports[i]);
    pthread_mutex_unlock(&table->mutex);
    return list;
}
