/*
 * The list of one cluster: pairs of its spheres with those of others that are closer than two radii
 * and a skin, found in the grid. Compiled once per instruction set (solver_lanes.h).
 *
 * The grid holds clusters by their centres; of those that are near enough, four spheres are
 * compared with two of the own at a time. The order of a list is that of the grid's chains, which
 * no thread changes while lists are made.
 */
#include "sand/engine_c/solver_lanes.h"

#include "sand/engine_c/solver_data.h"
#include "terrain/kernels/lanes.h"

/* A list that is being made. */
struct draft {
    const struct step *step;
    uint32_t cluster, sphere, mover;
    uint32_t own; /* spheres: 4 or 1 */
    const float *centre;
    uint32_t room, count;
    f32x8 own_x[2], own_y[2], own_z[2]; /* spheres 0 and 1, then 2 and 3, four times each */
    f32x8 near;                         /* square of the distance of a pair */
    uint32_t entry[GRANULE_LIST];
};

LANES_INLINE f32x8 f32x8_two(float low, float high)
{
    return f32x8_halves(f32x4_all(low), f32x4_all(high));
}

/* The shortest of the differences that are a period apart. */
LANES_INLINE f32x8 fold8(f32x8 d, float period)
{
    const f32x8 half = f32x8_all(0.5f * period), none = f32x8_all(0);

    if (!(period > 0))
        return d;
    return d - f32x8_select((i32x8)(d > half), f32x8_all(period), none) +
           f32x8_select((i32x8)(d < -half), f32x8_all(period), none);
}

static float fold1(float d, float period)
{
    if (period > 0)
        d += d > 0.5f * period ? -period : d < -0.5f * period ? period : 0;
    return d;
}

LANES_INLINE void draft_put(struct draft *draft, uint32_t own, uint32_t partner)
{
    if (draft->count < draft->room)
        draft->entry[draft->count] = own << ENTRY_OWN_SHIFT | partner;
    draft->count++;
}

/* Bed and walls, which come first. */
static void draft_ground(struct draft *draft)
{
    const struct slot *slot = draft->step->slot;
    const float near = draft->step->params->radius_m + draft->step->solver->skin_m;

    for (uint32_t j = 0; j < draft->own; j++) {
        const float *at = slot->position[draft->sphere + j];
        struct f3 normal;

        if (!(slot->period[2] > 0) && at[2] - slot->bed_top_m < slot->bed_near_m &&
            at[2] - solver_bed(slot, at[0], at[1], &normal) < slot->bed_near_m)
            draft_put(draft, j, ENTRY_BED);
        if (slot->period[0] > 0)
            continue;
        for (uint32_t wall = 0; wall < 4; wall++)
            if ((wall % 2 ? slot->box.size[wall / 2] - at[wall / 2] : at[wall / 2]) < near)
                draft_put(draft, j, ENTRY_WALL + wall);
    }
}

/* Pairs with the spheres of a cluster whose centre is near. */
LANES_INLINE void draft_pairs(struct draft *draft, uint32_t sphere, bool is_four)
{
    const struct slot *slot = draft->step->slot;
    f32x4 column[4];

    f32x4_transpose(f32x4_load(slot->position[sphere]), f32x4_load(slot->position[sphere + 1]),
                    f32x4_load(slot->position[sphere + 2]), f32x4_load(slot->position[sphere + 3]),
                    column);
    for (uint32_t half = 0; half < (draft->own + 1) / 2; half++) {
        const f32x8 x =
            fold8(draft->own_x[half] - f32x8_halves(column[0], column[0]), slot->period[0]);
        const f32x8 y =
            fold8(draft->own_y[half] - f32x8_halves(column[1], column[1]), slot->period[1]);
        const f32x8 z =
            fold8(draft->own_z[half] - f32x8_halves(column[2], column[2]), slot->period[2]);
        unsigned mask = i32x8_signs((i32x8)(x * x + y * y + z * z < draft->near));

        mask &= (is_four ? 0xff : 0x11) & (draft->own > 1 ? 0xff : 0x0f);
        for (; mask; mask &= mask - 1) {
            const unsigned bit = (unsigned)__builtin_ctz(mask);

            draft_put(draft, 2 * half + bit / 4, sphere + bit % 4);
        }
    }
}

LANES_INLINE void draft_chain(struct draft *draft, uint32_t cell)
{
    const struct step *step = draft->step;
    const struct solver *solver = step->solver;
    const struct slot *slot = step->slot;
    const float reach = draft->own > 1 ? solver->reach_m : 0;
    const float skin = 2 * step->params->radius_m + solver->skin_m;

    for (uint32_t c = slot->head[cell]; c != NONE; c = slot->next[c]) {
        const bool is_four = c < solver->particle_clusters && step->params->spheres > 1;
        const uint32_t sphere = sphere_of_cluster(solver, c);
        const float *centre =
            c < solver->particle_clusters ? slot->mover[c].x : slot->position[sphere];
        const float near = reach + (is_four ? solver->reach_m : 0) + skin;
        const float x = fold1(centre[0] - draft->centre[0], slot->period[0]);
        const float y = fold1(centre[1] - draft->centre[1], slot->period[1]);
        const float z = fold1(centre[2] - draft->centre[2], slot->period[2]);

        if (x * x + y * y + z * z < near * near && mover_of_sphere(slot, sphere) != draft->mover)
            draft_pairs(draft, sphere, is_four);
    }
}

/* First and count of the cells beside cell i of n along an axis; with a period none is twice. */
static void cells_beside(uint32_t i, uint32_t n, bool is_periodic, uint32_t *first, uint32_t *count)
{
    if (is_periodic) {
        *first = i + n - 1;
        *count = n < 3 ? n : 3;
    } else {
        *first = i > 0 ? i - 1 : 0;
        *count = (i + 1 < n ? i + 2 : n) - *first;
    }
}

static void draft_make(struct draft *draft, float skin_m)
{
    const struct slot *slot = draft->step->slot;
    const float near = 2 * draft->step->params->radius_m + skin_m;
    const uint32_t *n = slot->cells, cell = slot->cell[draft->cluster];
    const uint32_t at[3] = {cell % n[0], cell / n[0] % n[1], cell / n[0] / n[1]};
    uint32_t first[3], count[3];

    for (int a = 0; a < 3; a++)
        cells_beside(at[a], n[a], slot->period[a] > 0, &first[a], &count[a]);
    draft->near = f32x8_all(near * near);
    draft->count = 0;
    draft_ground(draft);
    for (uint32_t k = first[2]; k < first[2] + count[2]; k++)
        for (uint32_t j = first[1]; j < first[1] + count[1]; j++)
            for (uint32_t i = first[0]; i < first[0] + count[0]; i++)
                draft_chain(draft, (k % n[2] * n[1] + j % n[1]) * n[0] + i % n[0]);
}

/* The springs of the pairs that the list had before; a body that is new has none. */
static void keep_springs(const struct draft *draft, const struct list *list, uint32_t old_count,
                         float spring[3][GRANULE_LIST])
{
    const struct slot *slot = draft->step->slot;
    uint32_t like = 0; /* most pairs are where they were, or a little farther */

    memset(spring, 0, 3 * sizeof(*spring));
    for (uint32_t e = 0; e < draft->count && old_count > 0; e++) {
        const uint32_t partner = draft->entry[e] & ENTRY_PARTNER;
        uint32_t n = 0;

        while (n < old_count && list->entry[like] != draft->entry[e]) {
            like = like + 1 < old_count ? like + 1 : 0;
            n++;
        }
        if (n == old_count ||
            (partner < ENTRY_BED && slot->mover[mover_of_sphere(slot, partner)].w[3] == INFINITY))
            continue;
        for (int a = 0; a < 3; a++)
            spring[a][e] = list->spring[a][like];
        like = like + 1 < old_count ? like + 1 : 0;
    }
}

static void mark_partners(const struct draft *draft)
{
    const struct step *step = draft->step;

    for (uint32_t e = 0; e < draft->count; e++) {
        const uint32_t partner = draft->entry[e] & ENTRY_PARTNER;

        if (partner < ENTRY_BED)
            sphere_mark(step->solver, step->slot->beside, partner);
    }
}

bool LANES_NAME(solver_list)(const struct step *step, uint32_t cluster)
{
    const struct solver *solver = step->solver;
    struct slot *slot = step->slot;
    const struct list list = list_of(solver, slot, cluster);
    const bool is_granule = cluster < solver->particle_clusters;
    const uint32_t sphere = sphere_of_cluster(solver, cluster);
    float spring[3][GRANULE_LIST];
    bool has_room;
    struct draft draft = {.step = step,
                          .cluster = cluster,
                          .sphere = sphere,
                          .mover = mover_of_sphere(slot, sphere),
                          .own = is_granule ? step->params->spheres : 1,
                          .centre = is_granule ? slot->mover[cluster].x : slot->position[sphere],
                          .room = list.room};

    for (uint32_t j = 0; j < 2; j++) {
        const float *a = slot->position[sphere + 2 * j], *b = slot->position[sphere + 2 * j + 1];

        draft.own_x[j] = f32x8_two(a[0], b[0]);
        draft.own_y[j] = f32x8_two(a[1], b[1]);
        draft.own_z[j] = f32x8_two(a[2], b[2]);
    }
    draft_make(&draft, solver->skin_m);
    has_room = draft.count <= draft.room;
    if (!has_room)
        draft_make(&draft, 0);
    if (draft.count > draft.room)
        draft.count = draft.room;
    keep_springs(&draft, &list, slot->listed[cluster], spring);
    if (bit_of(slot->hot, cluster))
        mark_partners(&draft);
    slot->listed[cluster] = (uint8_t)draft.count;
    while (draft.count % 8)
        draft.entry[draft.count++] = solver->spheres_max;
    memcpy(list.entry, draft.entry, draft.count * sizeof(*draft.entry));
    for (int a = 0; a < 3; a++)
        memcpy(list.spring[a], spring[a], draft.count * sizeof(float));
    return has_room;
}
