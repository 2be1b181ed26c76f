/*
 * Leases of open patches, in a list: there are a handful. A patch has its lease from before its
 * ground was cut until it has ended, so every refusal of the patch releases the lease, too.
 */
#include "sand/patch/leases.h"

#include "world/follow/lease.h"

#include <stdlib.h>

enum err_code leases_add(struct patch_leases *leases, struct manager *manager,
                         struct patch_start *start, double now_s, struct patch_report **report,
                         struct err *err)
{
    uint64_t fence = start->fence;
    struct patch_lease *lease = calloc(1, sizeof *lease);

    if (!lease)
        err_set(err, ERR_NO_MEMORY, "no memory for a patch");
    else if (start->refusal[0] != '\0')
        err_set(err, ERR_CONFLICT, "%s", start->refusal);
    if (err->code != ERR_OK)
        patch_start_free(start);
    else
        manager_add(manager, start, now_s, report, err);
    if (err->code != ERR_OK || fence == 0) {
        world_unlease(leases->world, fence);
        free(lease);
        return err->code;
    }
    *lease = (struct patch_lease){leases->first, (*report)->number, fence};
    leases->first = lease;
    return ERR_OK;
}

void leases_let_go(struct patch_leases *leases, uint64_t number)
{
    for (struct patch_lease **at = &leases->first; *at; at = &(*at)->next)
        if ((*at)->number == number) {
            struct patch_lease *lease = *at;

            *at = lease->next;
            world_unlease(leases->world, lease->fence);
            free(lease);
            return;
        }
}

void leases_report_room(struct patch_leases *leases, const struct manager_stats *patches)
{
    struct cluster *log = world_log(leases->world);
    uint32_t slots = 0, used = 0;

    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        slots += patches->slots[scale];
        used += patches->used[scale];
    }
    if (log && slots != leases->told_slots)
        cluster_set_patch_slots(log, slots);
    if (log && used != leases->told_used)
        cluster_set_patches(log, used);
    leases->told_slots = slots;
    leases->told_used = used;
}
