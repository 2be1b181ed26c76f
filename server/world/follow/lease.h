/*
 * The right to change an area later, among daemons that share a log (replica/cluster.h, leases).
 *
 * A simulation holds a lease of its ground until its result is written; meanwhile no other node
 * gets one that shares a cell. A lease does not prevent edits: an edit is a change like any other,
 * and revisions show it. Without a shared log every call succeeds and leases nothing.
 */
#ifndef KOTA_WORLD_LEASE_H
#define KOTA_WORLD_LEASE_H

#include "world/world.h"

/* Cells are squares of the locale's x and y, the first from 0. */
#define WORLD_LEASE_CELL_M 8.0

struct world_lease {
    uint64_t fence;        /* for world_change.fence; 0: no log is shared */
    struct locale *locale; /* a reference, as published when the lease was had and everything was
                              applied that the log had then; NULL without a shared log */
};

/*
 * Leases the cells that a box touches. Waits for the writer and the engine: workers only.
 *
 * ERR_CONFLICT     a cell is leased; *is_own: by this node, in another lease
 * ERR_TOO_LARGE    more cells than a lease takes
 * ERR_NOT_FOUND    there is no such locale
 * ERR_UNAVAILABLE  the log is unreachable, or the locale cannot be followed
 * ERR_BUSY (the daemon stops), ERR_NO_MEMORY
 */
enum err_code world_lease(struct world *world, const char *locale_id, struct vec2 low,
                          struct vec2 high, struct world_lease *out, bool *is_own, struct err *err);

/*
 * The locale with all entries that the log has of it now, a reference; called before a request is
 * refused for a state that may be outdated. Waits for the writer and the engine: workers only.
 * Errors of world_lease; ERR_NOT_FOUND without a shared log.
 */
enum err_code world_locale_now(struct world *world, const char *locale_id, struct locale **out,
                               struct err *err);

/*
 * Which other node holds a cell that a box touches; "" without one, or without a shared log. holder
 * [CLUSTER_ID_MAX + 1]. Waits for the writer and the engine: workers only.
 * ERR_UNPROCESSABLE (too far from the origin), ERR_UNAVAILABLE, ERR_BUSY, ERR_NO_MEMORY
 */
enum err_code world_lease_holder(struct world *world, const char *locale_id, struct vec2 low,
                                 struct vec2 high, char *holder, struct err *err);

/* Releases it; 0 is fine. Any thread, does not wait. */
void world_unlease(struct world *world, uint64_t fence);

/* Is it lost, so that a change with it as its fence is refused? Any thread; 0: no. */
bool world_lease_is_lost(struct world *world, uint64_t fence);

#endif
