/*
 * The newest report of each patch, written by the sand thread, read by all others. Its
 * lock is held for a copy of pointers and no longer.
 *
 * Changes of state and of the bodies that there are have numbers over all patches, rising: a reader
 * that has seen some finds the patches that have changed since, at their newest.
 */
#ifndef KOTA_SAND_REPORT_TABLE_H
#define KOTA_SAND_REPORT_TABLE_H

#include "sand/patch/patch.h"

#include <pthread.h>
#include <stdatomic.h>

struct report_table {
    pthread_mutex_t mutex;
    struct patch_report **reports; /* by number */
    size_t count, room;
    _Atomic uint64_t last_change;
};

void report_table_init(struct report_table *table);
void report_table_finish(struct report_table *table);

/*
 * Puts a report (taken) in the place of the patch's former one. Without memory it is dropped. True:
 * it has a number of a change.
 */
bool report_table_put(struct report_table *table, struct patch_report *report);
void report_table_forget(struct report_table *table, uint64_t number);

/* A reference, or NULL: no such patch of this locale. */
struct patch_report *report_table_find(struct report_table *table, const char *locale,
                                       uint64_t number);
/* The one with the least change above `after`, of a locale or with NULL of all: a reference. NULL:
 * there is none. */
struct patch_report *report_table_next(struct report_table *table, const char *locale,
                                       uint64_t after);
/* References on all of a locale; malloc. NULL without memory. */
struct patch_report **report_table_list(struct report_table *table, const char *locale,
                                        size_t *count);

#endif
