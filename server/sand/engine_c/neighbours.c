/*
 * Which spheres may touch: Verlet lists over a grid of clusters.
 *
 * A list holds all pairs closer than two radii and a skin, from both sides. What has moved by half
 * of the skin is hot: its list is made again, and those of all that are in it; all others stay.
 *
 * Why that is enough: let two spheres touch now, and let t be the last time that one of them was
 * hot. Its way was set to 0 at t; that of the other was at most half a skin before and has not been
 * set back since. So since t each has moved by half a skin at most, the two were within reach at t,
 * and both got lists, as one hot and one beside it. A later list that one of them gets beside
 * another is made from where both are then, and has the pair, too.
 *
 * The grid is a chain of clusters for each cell. Cells are as wide as the farthest centres of a
 * pair and two skins: what is not hot may lie half a skin beside the cell that it is linked to.
 * Chains are changed by one thread, in the order of clusters: lists have one order on any number of
 * threads.
 *
 * Sources: L. Verlet 1967; LAMMPS, "neighbor" (skin).
 */
#include "sand/engine_c/solver_data.h"
#include "sand/engine_c/solver_lanes.h"
#include "sand/engine_input.h"

#include "terrain/kernels/simd.h"

enum { HOT_PART = 64 };

const struct solver_lanes *solver_lanes(void)
{
    static const struct solver_lanes scalar = {solver_list_scalar, solver_forces_scalar};
#if defined(__x86_64__)
    static const struct solver_lanes avx2 = {solver_list_avx2, solver_forces_avx2};

    if (simd_level() == SIMD_AVX2)
        return &avx2;
#endif
    return &scalar;
}

/* ---- the grid ------------------------------------------------------------------------------- */

static uint32_t cell_along(float x, float side_m, uint32_t cells)
{
    float i = floorf(x / side_m);

    if (!(i > 0)) /* not a number, too */
        return 0;
    return i < (float)(cells - 1) ? (uint32_t)i : cells - 1;
}

static uint32_t cell_of(const struct solver *solver, const struct slot *slot, uint32_t cluster)
{
    const float *at = cluster < solver->particle_clusters
                          ? slot->mover[cluster].x
                          : slot->position[sphere_of_cluster(solver, cluster)];
    const float low = slot->period[2] > 0 ? 0 : slot->box.z_low;
    const uint32_t x = cell_along(at[0], slot->side[0], slot->cells[0]);
    const uint32_t y = cell_along(at[1], slot->side[1], slot->cells[1]);
    const uint32_t z = cell_along(at[2] - low, slot->side[2], slot->cells[2]);

    return (z * slot->cells[1] + y) * slot->cells[0] + x;
}

static void link_cluster(struct slot *slot, uint32_t cluster, uint32_t cell)
{
    slot->cell[cluster] = cell;
    slot->next[cluster] = slot->head[cell];
    slot->head[cell] = cluster;
}

static void unlink_cluster(struct slot *slot, uint32_t cluster)
{
    uint32_t *at = &slot->head[slot->cell[cluster]];

    while (*at != cluster)
        at = &slot->next[*at];
    *at = slot->next[cluster];
}

static void all_set(struct slot *slot, uint32_t cluster)
{
    bit_set(slot->hot, cluster, true);
    slot->border[cluster / WORD_BITS] |= (uint32_t)1 << cluster % WORD_BITS;
}

/* All clusters that exist, which are hot and gather forces. */
static void grid_fill(const struct solver *solver, struct slot *slot)
{
    const uint32_t cells = slot->cells[0] * slot->cells[1] * slot->cells[2];

    memset(slot->head, 0xff, cells * sizeof(*slot->head));
    for (uint32_t g = 0; g < slot->granules; g++) {
        link_cluster(slot, g, cell_of(solver, slot, g));
        all_set(slot, g);
    }
    for (uint32_t p = 0; p < slot->particles_end; p++) {
        const uint32_t c = solver->particle_clusters + p;

        if (slot->particle_body[p] == GRANULAR_BODY_NONE)
            continue;
        link_cluster(slot, c, cell_of(solver, slot, c));
        all_set(slot, c);
    }
}

/*
 * With many that are hot their partners are nearly everything: then all that is awake gets lists at
 * once, and it takes a while until something is hot again.
 */
static void heat(const struct solver *solver, struct slot *slot)
{
    const uint32_t words = words_of(solver, slot);
    uint32_t hot = 0, awake = 0;

    for (uint32_t w = 0; w < words; w++) {
        hot += (uint32_t)__builtin_popcount(slot->hot[w]);
        awake += (uint32_t)__builtin_popcount(slot->awake[w]);
    }
    for (uint32_t w = 0; w < words && hot > awake / HOT_PART; w++)
        slot->hot[w] |= slot->awake[w];
}

/* What is hot, to where it is now. */
static void grid_follow(const struct solver *solver, struct slot *slot)
{
    const uint32_t words = words_of(solver, slot);

    for (uint32_t w = 0; w < words; w++)
        for (uint32_t bits = slot->hot[w]; bits; bits &= bits - 1) {
            const uint32_t c = w * WORD_BITS + (uint32_t)__builtin_ctz(bits);
            const uint32_t cell = cell_of(solver, slot, c);

            if (cell == slot->cell[c])
                continue;
            unlink_cluster(slot, c);
            link_cluster(slot, c, cell);
        }
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void word_lists(const struct step *step, uint32_t word, uint32_t bits)
{
    for (; bits; bits &= bits - 1) {
        const uint32_t cluster = word * WORD_BITS + (uint32_t)__builtin_ctz(bits);

        if (!step->solver->lanes->list(step, cluster))
            bit_set(step->slot->crowded, cluster, true);
    }
}

static void hot_lists(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;

    for (uint32_t w = first; w < end; w++)
        word_lists(step, w, step->slot->hot[w]);
}

static void beside_lists(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;

    for (uint32_t w = first; w < end; w++)
        word_lists(step, w, step->slot->beside[w] & ~step->slot->hot[w]);
}

void solver_lists_make(struct step *step)
{
    const struct solver *solver = step->solver;
    struct slot *slot = step->slot;
    const uint32_t words = words_of(solver, slot);

    if (slot->recheck) {
        grid_fill(solver, slot);
    } else {
        heat(solver, slot);
        grid_follow(solver, slot);
    }
    memset(slot->beside, 0, words * sizeof(*slot->beside));
    memset(slot->crowded, 0, words * sizeof(*slot->crowded));
    workers_run(solver->workers, words, 1, hot_lists, step);
    workers_run(solver->workers, words, 1, beside_lists, step);
    for (uint32_t w = 0; w * WORD_BITS < slot->granules; w++)
        for (uint32_t bits = slot->hot[w]; bits; bits &= bits - 1)
            slot->mover[w * WORD_BITS + (uint32_t)__builtin_ctz(bits)].w[3] = 0;
    for (uint32_t b = 0; b < slot->bodies_end; b++)
        if (slot->recheck || mover_hot(solver, &slot->mover[body_mover(solver, b)]))
            slot->mover[body_mover(solver, b)].w[3] = 0;
    memcpy(slot->hot, slot->crowded, words * sizeof(*slot->hot));
}
