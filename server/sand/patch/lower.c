/*
 * Bodies at rest stand on the ground that was written.
 *
 * Problem: a body lies on the caps of some granules, and what is written is their mean surface: in
 * everybody's world it would hover over the ground by up to a quarter of a granule. Approach: the
 * pose that is reported at rest is lowered until its surface touches the written ground; the
 * engine's pose stays, and is reported again when the patch wakes. A body that reaches into the
 * ground is left as it is. One that is higher than half a granule stands on another body, and is
 * lowered with the bodies that it may touch, lowest first. One on a path is where that says.
 */
#include "sand/patch/manager_data.h"

#include <math.h>

#define HOVER_MAX 0.5 /* of a diameter */

static double reach_m(const struct scaled_model *shape)
{
    double most = 0;

    for (uint32_t i = 0; i < shape->skin_count; i++) {
        const float *p = shape->skin_m[i];

        most = fmax(most, hypot(hypot((double)p[0], (double)p[1]), (double)p[2]));
    }
    return most;
}

static bool may_touch(const struct patch_member *a, const struct patch_member *b, double slack_m)
{
    const double dx = (double)a->pose.x[0] - (double)b->pose.x[0],
                 dy = (double)a->pose.x[1] - (double)b->pose.x[1],
                 dz = (double)a->pose.x[2] - (double)b->pose.x[2];

    return hypot(hypot(dx, dy), dz) <= reach_m(&a->body.shape) + reach_m(&b->body.shape) + slack_m;
}

/* As far as the body below it that is lowered least; 0: there is none. */
static double lowered_with(const struct patch *patch, const struct patch_member *member,
                           double slack_m)
{
    double least_m = INFINITY;

    for (uint32_t i = 0; i < patch->member_count; i++) {
        const struct patch_member *other = &patch->members[i];

        if (other != member && other->is_in && other->pose.x[2] < member->pose.x[2] &&
            may_touch(member, other, slack_m))
            least_m = fmin(least_m, other->lowered_m);
    }
    return isfinite(least_m) ? least_m : 0;
}

void manager_lower(struct patch *patch, const struct heightfield *field, double diameter_m)
{
    bool is_done[SAND_BODIES_MAX] = {false};

    for (uint32_t round = 0; round < patch->member_count; round++) {
        struct patch_member *lowest = NULL;
        double clearance_m;

        for (uint32_t i = 0; i < patch->member_count; i++) {
            struct patch_member *member = &patch->members[i];

            if (member->is_in && !is_done[i] && (!lowest || member->pose.x[2] < lowest->pose.x[2]))
                lowest = member;
        }
        if (!lowest)
            return;
        is_done[lowest - patch->members] = true;
        if (lowest->body.path)
            continue;
        clearance_m =
            patch_body_clearance_m(&lowest->body.shape, &patch->start.place, &lowest->pose, field);
        if (clearance_m > HOVER_MAX * diameter_m)
            lowest->lowered_m = lowered_with(patch, lowest, diameter_m);
        else
            lowest->lowered_m = fmax(clearance_m, 0);
    }
}
