/*
 * Vertical queries of a mesh: the floor below a point, or above it, and its height. Compiled once
 * per instruction set (kernels.h).
 *
 * Problem: a height costs its chain of dependent loads, from the point to the plane, and its number
 * of instructions, for the processor has room for two to four queries at a time. Approach: the
 * lookup table (floor_grid_lut.c) leads from the place to the blocks by one load, and mostly there
 * is one floor over the place. All other cases are calls at the end, so that nothing is saved on
 * the stack before them.
 *
 * Many points: each step of all points of a batch before the next step of any. A step prefetches
 * the memory of the next one, and the points with one floor are answered before those with more, so
 * that no branch depends on which they are.
 *
 * Points below all floors of their square, or over none, need no block: the table's lows say so.
 *
 * Where the table has no answer (LUT_ELSE) the cells of the root have it, and outside of
 * them the tree of boxes (mesh_floor.c). All of these ways give the same bits.
 *
 * Tried and dropped: vectors of 64 bytes. With five instructions more, one of them such a load, a
 * query took 10 cycles more on a Xeon of 2023.
 */
#include "terrain/kernels/kernels.h"

#include "terrain/mesh/contact_fill.h"
#include "terrain/mesh/lut_cell.h"
#include "terrain/mesh/mesh_contact.h"

/* ---- one column ----------------------------------------------------------------------------- */

ALWAYS_INLINE struct column column_begin(const struct mesh *mesh, double x, double y, double sign,
                                         double limit)
{
    return (struct column){.mesh = mesh,
                           .x = x,
                           .y = y,
                           .sign = sign,
                           .limit = limit,
                           .best = -INFINITY,
                           .polygon = NO_POLYGON};
}

/* By the cells of the root, and outside of them by the tree of boxes. */
__attribute__((noinline)) static struct column_found column_long(const struct mesh *mesh, double x,
                                                                 double y, double sign,
                                                                 double limit)
{
    struct column c = column_begin(mesh, x, y, sign, limit);
    struct place place;
    struct floor_list list;

    lanes_clear_upper();
    if (!place_begin(mesh, x, y, &place))
        return mesh_column_by_tree(mesh, x, y, sign, limit);
    place_descend(mesh, &place);
    list = place_list(&place);
    list_scan(&c, &list);
    return (struct column_found){c.best, c.polygon};
}

/* Of an entry that is neither one block nor a pair. */
ALWAYS_INLINE void entry_scan(struct column *c, uint32_t entry, u64x2 in_root)
{
    if (entry == LUT_ELSE) {
        struct column_found found = column_long(c->mesh, c->x, c->y, c->sign, c->limit);

        c->best = found.best;
        c->polygon = found.polygon;
    } else if (entry != 0) {
        struct floor_list list = lut_list(c->mesh, entry, in_root);

        list_scan(c, &list);
    }
}

ALWAYS_INLINE void column_scan(struct column *c)
{
    const struct floor_grid *grid = &c->mesh->grid;
    u64x2 in_root = lut_place(grid, c->x, c->y);
    uint32_t entry = grid->lut[lut_square(grid, in_root)];
    struct spot spot = lut_spot(grid, entry, in_root);

    if (lut_is_pair(spot.lanes))
        pair_scan(c, spot.blocks, spot.lanes, spot.place);
    else
        entry_scan(c, entry, in_root);
}

bool KERNEL(mesh_column)(const struct mesh *mesh, double x, double y, bool is_up, double limit,
                         double *z, uint32_t *polygon)
{
    double sign = is_up ? -1 : 1;
    struct column c = column_begin(mesh, x, y, sign, sign * limit);

    column_scan(&c);
    if (c.polygon == NO_POLYGON)
        return false;
    *z = sign * c.best;
    *polygon = c.polygon;
    return true;
}

/* ---- one floor ------------------------------------------------------------------------------ */

enum floors_kind { FLOORS_NONE, FLOORS_ONE, FLOORS_MORE };

/* The values known by then; of one floor all. */
struct floors {
    uint32_t entry;
    struct spot spot;
    struct floor_mask mask;
    uint32_t polygon;
    double z;
};

ALWAYS_INLINE enum floors_kind floors_find(const struct mesh *mesh, double x, double y,
                                           double limit, struct floors *f)
{
    const struct floor_grid *grid = &mesh->grid;

    u64x2 in_root = lut_place(grid, x, y);
    size_t square = lut_square(grid, in_root);

    if (floor_low(grid, limit) < grid->lows[square])
        return FLOORS_NONE;
    f->entry = grid->lut[square];
    f->spot = lut_spot(grid, f->entry, in_root);
    f->mask = (struct floor_mask){0, 0};
    if (!lut_is_pair(f->spot.lanes))
        return f->entry != 0 ? FLOORS_MORE : FLOORS_NONE;
    f->mask = floor_mask_of(f->spot.blocks, f->spot.lanes, f->spot.place);
    if (grid->is_stacked)
        f->mask.hit &= pair_levels(f->spot.blocks, f->spot.lanes, column_level(grid, limit));
    if (f->mask.hit == 0)
        return FLOORS_NONE;
    const uint32_t *polygons = block_polygons(f->spot.blocks, f->spot.lanes);
    size_t i = (size_t)__builtin_ctz(f->mask.hit);
    unsigned others = f->mask.hit & (f->mask.hit - 1);
    uint32_t first = polygons[i];
    bool is_single = others == 0;

    /* without others the read lane does not exist: it is in the bytes after the blocks */
    if (grid->is_stacked &&
        is_below(polygons[__builtin_ctz(others | 1u << 31)], first >> COLUMN_LOW_SHIFT))
        others = 0;
    if ((others | (f->mask.hit & f->mask.uncertain)) != 0)
        return FLOORS_MORE;
    f->polygon = first & COLUMN_POLYGON;
    f->z = floor_z(mesh, f->polygon, x, y);
    if (f->z <= limit)
        return FLOORS_ONE;
    return is_single ? FLOORS_NONE : FLOORS_MORE; /* those below it are left */
}

/* The floors that floors_find has left, by what it knew. */
ALWAYS_INLINE void floors_more(struct column *c, uint32_t entry, struct floor_mask mask)
{
    u64x2 in_root = lut_place(&c->mesh->grid, c->x, c->y);
    struct spot spot = lut_spot(&c->mesh->grid, entry, in_root);

    lanes_clear_upper();
    if (lut_is_pair(spot.lanes))
        pair_take(c, spot.blocks, spot.lanes, mask);
    else
        entry_scan(c, entry, in_root);
}

/* Not inlined, so that one floor does not save its registers. */
__attribute__((noinline)) static bool contact_more(const struct mesh *mesh, struct vec3 point,
                                                   double limit, uint32_t entry, unsigned hit,
                                                   unsigned uncertain, struct mesh_contact *out)
{
    struct vec3 at = column_place(mesh, point);
    struct column c = column_begin(mesh, at.x, at.y, 1, limit);

    floors_more(&c, entry, (struct floor_mask){hit, uncertain});
    if (c.polygon == NO_POLYGON)
        return false;
    contact_fill(mesh, point, at, c.best, c.polygon, out);
    return true;
}

/* One floor in one function: values that a call returns in memory delay the next step. */
bool KERNEL(mesh_floor)(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                        struct mesh_contact *out)
{
    struct vec3 at = column_place(mesh, point);
    double limit = at.z + reach_up_m + mesh->header->slack;
    struct floors f;

    switch (floors_find(mesh, at.x, at.y, limit, &f)) {
    case FLOORS_NONE:
        return false;
    case FLOORS_ONE:
        contact_fill(mesh, point, at, f.z, f.polygon, out);
        return true;
    default:
        return contact_more(mesh, point, limit, f.entry, f.mask.hit, f.mask.uncertain, out);
    }
}

ALWAYS_INLINE bool column_end(const struct column *c, struct mesh_height *out)
{
    if (c->polygon == NO_POLYGON)
        return false;
    *out = (struct mesh_height){c->best + c->mesh->lift, mesh_source(c->mesh, c->polygon)};
    return true;
}

/* Not inlined, as above. */
__attribute__((noinline)) static bool height_more(const struct mesh *mesh, double x, double y,
                                                  double limit, uint32_t entry, unsigned hit,
                                                  unsigned uncertain, struct mesh_height *out)
{
    struct column c = column_begin(mesh, x, y, 1, limit);

    floors_more(&c, entry, (struct floor_mask){hit, uncertain});
    return column_end(&c, out);
}

/* Of an entry that is neither 0 nor LUT_ELSE, and whose leaf is known. */
__attribute__((noinline)) static bool height_of_list(const struct mesh *mesh,
                                                     const struct floor_list *list, double x,
                                                     double y, double limit,
                                                     struct mesh_height *out)
{
    struct column c = column_begin(mesh, x, y, 1, limit);

    list_scan(&c, list);
    return column_end(&c, out);
}

/* ---- many points ---------------------------------------------------------------------------- */

enum { BATCH = 32, PREFETCHED = 8 /* lines of a leaf */ };

/* A step stores only values that the next one cannot compute again at once. */
struct batch {
    _Alignas(16) double at[BATCH][2];
    uint64_t in_root[BATCH][2]; /* lut_place */
    double limit[BATCH];
    uint32_t entry[BATCH];
    struct floor_mask mask[BATCH];
    struct floor_list list[BATCH]; /* of those without a pair */
    uint32_t polygon[BATCH];       /* of the single ones */
    /* numbers of points: with an entry; of them without a pair; with more than one floor or an
     * uncertain one; with one */
    uint8_t some[BATCH], cells[BATCH], hard[BATCH], single[BATCH];
    size_t some_count, cell_count, hard_count, single_count;
};

/* From the points to their blocks. */
static inline void batch_begin(const struct mesh *mesh, const struct vec3 *points, size_t count,
                               double reach_up_m, struct batch *b, struct mesh_height *out)
{
    const struct floor_grid *grid = &mesh->grid;
    size_t some_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct vec3 at = column_place(mesh, points[i]);
        u64x2 in_root = lut_place(grid, at.x, at.y);
        size_t square = lut_square(grid, in_root);
        double limit = at.z + reach_up_m + mesh->header->slack;
        bool is_over = floor_low(grid, limit) >= grid->lows[square];
        uint32_t entry = is_over ? grid->lut[square] : 0;
        const unsigned char *lines = grid->blocks[entry & LUT_BLOCK].bytes;

        b->at[i][0] = at.x;
        b->at[i][1] = at.y;
        u64x2_store(b->in_root[i], in_root);
        b->limit[i] = limit;
        b->entry[i] = entry;
        out[i] = (struct mesh_height){NAN, MESH_NO_POLYGON};
        b->some[some_count] = (uint8_t)i;
        some_count += entry != 0;
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + 64);
        lines += entry >> (LUT_KIND_SHIFT - 6) & 128;
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + 64);
    }
    b->some_count = some_count;
}

/* From a cell to its leaf's blocks. */
static inline void batch_leaf(const struct mesh *mesh, struct batch *b, size_t k, size_t i)
{
    b->cells[k] = (uint8_t)i;
    if (b->entry[i] == LUT_ELSE)
        return;
    b->list[k] = lut_list(mesh, b->entry[i], u64x2_load(b->in_root[i]));
    const unsigned char *lines = mesh->grid.blocks[b->list[k].first].bytes;

    for (int line = 0; line < PREFETCHED; line++)
        __builtin_prefetch(lines + 64 * line);
}

/* From the blocks to those with one floor, whose polygons are prefetched, and those with more. */
ALWAYS_INLINE void batch_masks(const struct mesh *mesh, struct batch *b, bool is_stacked)
{
    const struct floor_grid *grid = &mesh->grid;
    size_t any_count = 0, hard_count = 0, cell_count = 0;

    for (size_t k = 0; k < b->some_count; k++) {
        size_t i = b->some[k];
        struct spot spot = lut_spot(grid, b->entry[i], u64x2_load(b->in_root[i]));

        if (!lut_is_pair(spot.lanes)) {
            batch_leaf(mesh, b, cell_count++, i);
            continue;
        }
        const uint32_t *polygons = block_polygons(spot.blocks, spot.lanes);
        struct floor_mask mask = floor_mask_of(spot.blocks, spot.lanes, spot.place);

        if (is_stacked)
            mask.hit &= pair_levels(spot.blocks, spot.lanes, column_level(grid, b->limit[i]));
        /* without a hit bytes after the lanes, at most a block further */
        uint32_t first = polygons[(size_t)__builtin_ctz(mask.hit | 1u << 31)];
        unsigned others = mask.hit & (mask.hit - 1);

        /* a floor that the next in the list is below is the only one here, too */
        if (is_stacked)
            others = is_below(polygons[(size_t)__builtin_ctz(others | 1u << 31)],
                              first >> COLUMN_LOW_SHIFT)
                         ? 0
                         : others;
        size_t single_count = any_count - hard_count;

        b->hard[hard_count] = b->single[single_count] = (uint8_t)i;
        b->mask[i] = mask;
        b->polygon[single_count] = first & COLUMN_POLYGON;
        any_count += mask.hit != 0;
        hard_count += (others | (mask.hit & mask.uncertain)) != 0;
        __builtin_prefetch(&mesh->polygons[first & COLUMN_POLYGON]);
    }
    b->cell_count = cell_count;
    b->hard_count = hard_count;
    b->single_count = any_count - hard_count;
}

static inline void batch_end(const struct mesh *mesh, struct batch *b, struct mesh_height *out)
{
    for (size_t k = 0; k < b->single_count; k++) {
        size_t i = b->single[k];
        double z = floor_z(mesh, b->polygon[k], b->at[i][0], b->at[i][1]);

        if (z <= b->limit[i])
            out[i] = (struct mesh_height){z + mesh->lift, mesh_source(mesh, b->polygon[k])};
        else /* those below it are left */
            b->hard[b->hard_count++] = (uint8_t)i;
    }
    for (size_t k = 0; k < b->hard_count; k++) {
        size_t i = b->hard[k];

        height_more(mesh, b->at[i][0], b->at[i][1], b->limit[i], b->entry[i], b->mask[i].hit,
                    b->mask[i].uncertain, &out[i]);
    }
    for (size_t k = 0; k < b->cell_count; k++) {
        size_t i = b->cells[k];

        if (b->entry[i] == LUT_ELSE)
            height_more(mesh, b->at[i][0], b->at[i][1], b->limit[i], LUT_ELSE, 0, 0, &out[i]);
        else
            height_of_list(mesh, &b->list[k], b->at[i][0], b->at[i][1], b->limit[i], &out[i]);
    }
}

void KERNEL(mesh_heights)(const struct mesh *mesh, const struct vec3 *points, size_t count,
                          double reach_up_m, struct mesh_height *out)
{
    for (size_t i = 0; i < count; i += BATCH) {
        size_t some = count - i < BATCH ? count - i : BATCH;
        struct batch b;

        batch_begin(mesh, points + i, some, reach_up_m, &b, out + i);
        if (mesh->grid.is_stacked)
            batch_masks(mesh, &b, true);
        else
            batch_masks(mesh, &b, false);
        batch_end(mesh, &b, out + i);
    }
}
