/*
 * A VFS that loses power, for tests of what is durable.
 *
 * "fault" stands over SQLite's default VFS. Writes go through to the files at once, and what each
 * sector held at the last xSync is remembered. After the cut every write fails; fault_vfs_crash
 * then makes the files what the disk may hold: each sector that was not synced is as it was, or as
 * it was written, at random; files have their synced length or the later one; renames whose folder
 * was not synced are undone, or not. Deleting a file counts as durable at once.
 *
 * One process-wide instance. xSync does not sync for real.
 */
#ifndef KOTA_TESTS_SUPPORT_FAULT_VFS_H
#define KOTA_TESTS_SUPPORT_FAULT_VFS_H

#include "support/random.h"

#include <stdbool.h>
#include <stdint.h>

#define FAULT_VFS "fault"

enum fault {
    FAULT_NONE,
    FAULT_CUT,   /* this write, sync, truncation, rename or deletion and all later ones fail */
    FAULT_SYNC,  /* this xSync fails, and what was not synced is lost or torn; the next succeed */
    FAULT_FULL,  /* this write and all later ones find no space */
    FAULT_SHORT, /* this write ends in the middle, with an error; later ones succeed */
};

/* Registers it when called first. Forgets all files; they count as synced. No fault. */
void fault_vfs_reset(struct random *random);

/* The fault happens at the count-th call that it concerns from now on, 1 the next. */
void fault_vfs_arm(enum fault fault, uint64_t count);

bool fault_vfs_has_fired(void);

/* Calls that a FAULT_CUT would have counted, since the reset. */
uint64_t fault_vfs_calls(void);

/* After a cut, when nothing has the files open: makes them what is on the disk. Ends the fault. */
void fault_vfs_crash(void);

#endif
