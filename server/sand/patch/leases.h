/*
 * What the sand thread has among other daemons that share a log: leases of the ground of its open
 * patches (world/follow/lease.h), and the room that others may count on (replica/cluster.h, nodes).
 * Without a shared log all of it does nothing. One thread owns it.
 */
#ifndef KOTA_SAND_LEASES_H
#define KOTA_SAND_LEASES_H

#include "sand/patch/manager.h"

struct patch_lease {
    struct patch_lease *next;
    uint64_t number, fence;
};

struct patch_leases {
    struct world *world;
    struct patch_lease *first;
    uint32_t told_slots, told_used; /* to other nodes */
};

/*
 * manager_add, and keeps the lease of the patch. Takes start, also on error, and the lease with it.
 * ERR_CONFLICT also: there is no lease of its ground; ERR_NO_MEMORY.
 */
enum err_code leases_add(struct patch_leases *leases, struct manager *manager,
                         struct patch_start *start, double now_s, struct patch_report **report,
                         struct err *err);

/* The ground of a patch that has ended is free. */
void leases_let_go(struct patch_leases *leases, uint64_t number);

/* Tells other nodes how many patches there may be and are, when that has changed. */
void leases_report_room(struct patch_leases *leases, const struct manager_stats *patches);

#endif
