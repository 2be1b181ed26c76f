/*
 * The height of the floor under a point, and nothing else: what is asked most.
 *
 * What counts is the chain from the point to the height, and how many instructions a question is,
 * for the processor holds so many and thus two to four questions at a time. So the directory
 * (mesh_directory.c) leads from the place to the blocks at once, and mostly there is one floor over
 * the place: all else is a call at the end, which saves nothing on the stack before.
 *
 * Vectors of 64 bytes are not used: with five instructions more, one of them such a load, a
 * question took 10 cycles more on a Xeon of 2023.
 *
 * The answers are those of mesh_floor.c, bit for bit.
 */
#include "terrain/mesh_contact.h"
#include "terrain/mesh_square.h"

#include "base/check.h"

/* By all that there is. */
__attribute__((noinline)) static bool floor_height_long(const struct mesh *mesh, double x, double y,
                                                        double limit, struct mesh_height *out)
{
    double z;
    uint32_t polygon;

    if (!mesh_column(mesh, x, y, false, limit, &z, &polygon))
        return false;
    *out = (struct mesh_height){z + mesh->lift, mesh->polygons[polygon].source};
    return true;
}

ALWAYS_INLINE struct column column_begin(const struct mesh *mesh, double x, double y, double limit)
{
    return (struct column){.mesh = mesh,
                           .x = x,
                           .y = y,
                           .sign = 1,
                           .limit = limit,
                           .best = -INFINITY,
                           .polygon = NO_POLYGON};
}

ALWAYS_INLINE bool column_end(const struct column *c, struct mesh_height *out)
{
    if (c->polygon == NO_POLYGON)
        return false;
    *out = (struct mesh_height){c->best + c->mesh->lift, c->mesh->polygons[c->polygon].source};
    return true;
}

/* All of a cell's list. */
ALWAYS_INLINE bool cell_height(const struct mesh *mesh, uint32_t entry, uint64_t x, uint64_t y,
                               double at_x, double at_y, double limit, struct mesh_height *out,
                               enum simd_level simd)
{
    if (entry == DIRECTORY_ELSE)
        return floor_height_long(mesh, at_x, at_y, limit, out);
    struct column c = column_begin(mesh, at_x, at_y, limit);
    struct place place = square_leaf(mesh, entry, &(struct square){.x = x, .y = y});

    place_scan(&c, &place, simd);
    return column_end(&c, out);
}

#define CELL_HEIGHT(name, target, simd)                                                            \
    target __attribute__((noinline)) static bool name(                                             \
        const struct mesh *mesh, uint32_t entry, uint64_t x, uint64_t y, double at_x, double at_y, \
        double limit, struct mesh_height *out)                                                     \
    {                                                                                              \
        return cell_height(mesh, entry, x, y, at_x, at_y, limit, out, simd);                       \
    }

CELL_HEIGHT(cell_height_plain, , SIMD_SCALAR)
#ifdef HAS_VECTORS
CELL_HEIGHT(cell_height_avx2, FOR_AVX2, SIMD_AVX2)
CELL_HEIGHT(cell_height_avx512, FOR_AVX512, SIMD_AVX512)
#endif

ALWAYS_INLINE bool cell_height_by(const struct mesh *mesh, uint32_t entry, struct square square,
                                  double at_x, double at_y, double limit, struct mesh_height *out,
                                  enum simd_level simd)
{
    square_split(&mesh->columns, &square, simd);
#ifdef HAS_VECTORS
    if (simd == SIMD_AVX512)
        return cell_height_avx512(mesh, entry, square.x, square.y, at_x, at_y, limit, out);
    if (simd == SIMD_AVX2)
        return cell_height_avx2(mesh, entry, square.x, square.y, at_x, at_y, limit, out);
#endif
    return cell_height_plain(mesh, entry, square.x, square.y, at_x, at_y, limit, out);
}

/* What is left of the blocks where there is more than one floor, or doubt: one after the other. */
ALWAYS_INLINE bool rest_take(const struct mesh *mesh, double x, double y, double limit,
                             const struct column_block *blocks, size_t count, struct lanes lanes,
                             struct mesh_height *out)
{
    struct column c = column_begin(mesh, x, y, limit);

    pair_take(&c, blocks, count, lanes);
    return column_end(&c, out);
}

/* Not inlined, so that what they save on the stack is not saved for a single floor. */
__attribute__((noinline)) static bool rest_take_plain(const struct mesh *mesh, double x, double y,
                                                      double limit,
                                                      const struct column_block *blocks,
                                                      size_t count, struct lanes lanes,
                                                      struct mesh_height *out)
{
    return rest_take(mesh, x, y, limit, blocks, count, lanes, out);
}

#ifdef HAS_VECTORS
/*
 * What calls this has used all of the vector registers, and their upper halves have to be cleared
 * before anything that knows but the lower: on Intel that costs 150 ns otherwise. gcc 12 forgets it
 * before a call at the end of a function when what is called uses the lower halves alone.
 */
FOR_AVX2 __attribute__((noinline)) static bool rest_take_avx2(
    const struct mesh *mesh, double x, double y, double limit, const struct column_block *blocks,
    size_t count, unsigned maybe, unsigned doubt, struct mesh_height *out)
{
    _mm256_zeroupper();
    return rest_take(mesh, x, y, limit, blocks, count, (struct lanes){maybe, doubt}, out);
}
#endif

ALWAYS_INLINE bool rest_take_by(const struct mesh *mesh, double x, double y, double limit,
                                const struct column_block *blocks, size_t count, struct lanes lanes,
                                struct mesh_height *out, enum simd_level simd)
{
#ifdef HAS_VECTORS
    if (simd != SIMD_SCALAR)
        return rest_take_avx2(mesh, x, y, limit, blocks, count, lanes.maybe, lanes.doubt, out);
#endif
    (void)simd;
    return rest_take_plain(mesh, x, y, limit, blocks, count, lanes, out);
}

ALWAYS_INLINE bool floor_height(const struct mesh *mesh, double point_x, double point_y,
                                double point_z, double reach_up_m, struct mesh_height *out,
                                bool is_stacked, enum simd_level simd)
{
    struct vec3 at = column_place(mesh, (struct vec3){point_x, point_y, point_z});
    double limit = at.z + reach_up_m + mesh->header->slack;
    struct floors f;

    switch (floors_find(mesh, at.x, at.y, limit, is_stacked, &f, simd)) {
    case OVER_ONE:
        *out = (struct mesh_height){f.z + mesh->lift, mesh->polygons[f.polygon].source};
        return true;
    case OVER_MORE:
        return rest_take_by(mesh, at.x, at.y, limit, f.spot.blocks, f.spot.lanes, f.lanes, out,
                            simd);
    case OVER_CELL:
        return cell_height_by(mesh, f.entry, f.square, at.x, at.y, limit, out, simd);
    case OVER_OUTSIDE:
        return floor_height_long(mesh, at.x, at.y, limit, out);
    case OVER_NOTHING:
        break;
    }
    return false;
}

/*
 * Not inlined: what it saves on the stack would be saved before the others are called, too. The
 * coordinates go in registers: for a struct on the stack gcc 12 makes a frame where there are large
 * vectors.
 */
__attribute__((noinline)) static bool floor_height_plain(const struct mesh *mesh, double x,
                                                         double y, double z, double reach_up_m,
                                                         struct mesh_height *out)
{
    return floor_height(mesh, x, y, z, reach_up_m, out, mesh->columns.is_stacked, SIMD_SCALAR);
}

#ifdef HAS_VECTORS
#define FLOOR_HEIGHT(name, target, is_stacked, simd)                                               \
    target static bool name(const struct mesh *mesh, double x, double y, double z,                 \
                            double reach_up_m, struct mesh_height *out)                            \
    {                                                                                              \
        return floor_height(mesh, x, y, z, reach_up_m, out, is_stacked, simd);                     \
    }

FLOOR_HEIGHT(floor_height_avx2, FOR_AVX2, false, SIMD_AVX2)
FLOOR_HEIGHT(floor_height_stacked_avx2, FOR_AVX2, true, SIMD_AVX2)
FLOOR_HEIGHT(floor_height_avx512, FOR_AVX512, false, SIMD_AVX512)
FLOOR_HEIGHT(floor_height_stacked_avx512, FOR_AVX512, true, SIMD_AVX512)
#endif

bool mesh_floor_height_at(const struct mesh *mesh, double x, double y, double z, double reach_up_m,
                          struct mesh_height *out)
{
#ifdef HAS_VECTORS
    if (mesh->simd == SIMD_AVX512) {
        if (mesh->columns.is_stacked)
            return floor_height_stacked_avx512(mesh, x, y, z, reach_up_m, out);
        return floor_height_avx512(mesh, x, y, z, reach_up_m, out);
    }
    if (mesh->simd == SIMD_AVX2) {
        if (mesh->columns.is_stacked)
            return floor_height_stacked_avx2(mesh, x, y, z, reach_up_m, out);
        return floor_height_avx2(mesh, x, y, z, reach_up_m, out);
    }
#endif
    return floor_height_plain(mesh, x, y, z, reach_up_m, out);
}

/* ---- many points ---------------------------------------------------------------------------- */

enum { BATCH = 16, BATCH_AVX2 = 32 };

/* What the steps of a batch hand on. */
struct asked {
    struct vec3 at; /* in the mesh's frame; z: the limit */
    struct square square;
    uint32_t entry;
    struct spot spot;
    struct lanes lanes;
};

/*
 * Each step of all points of a batch before the next step of any: what a step reads was asked for
 * by the step before, so the memory answers many at once. And those with one floor go before those
 * with more: nobody can foretell which they are, so no branch asks.
 */
ALWAYS_INLINE void floor_batch(const struct mesh *mesh, const struct vec3 *points, size_t count,
                               double reach_up_m, struct mesh_height *out, enum simd_level simd)
{
    const struct mesh_columns *columns = &mesh->columns;
    struct asked asked[BATCH];
    uint8_t some[BATCH] = {0}, hard[BATCH] = {0}, single[BATCH] = {0};
    size_t some_count = 0, hard_count = 0, single_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct asked *a = &asked[i];

        a->at = column_place(mesh, points[i]);
        a->at.z = a->at.z + reach_up_m + mesh->header->slack;
        bool is_in = square_find(columns, a->at.x, a->at.y, &a->square, simd);

        a->entry = is_in ? square_entry(columns, &a->square, simd) : DIRECTORY_ELSE;
        const unsigned char *lines = columns->blocks[a->entry & DIRECTORY_BLOCK].bytes;

        out[i] = (struct mesh_height){NAN, MESH_NO_POLYGON};
        some[some_count] = (uint8_t)i;
        some_count += a->entry != 0;
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + 64);
        lines += a->entry >> (DIRECTORY_LANES_SHIFT - 3) & 128;
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + 64);
    }
    for (size_t k = 0; k < some_count; k++) {
        struct asked *a = &asked[some[k]];

        a->spot = spot_of(columns, a->entry, &a->square, simd);
        /* of a cell no lane is taken: whatever block is asked */
        a->spot.blocks = a->spot.lanes == 0 ? columns->blocks : a->spot.blocks;
        a->lanes = spot_lanes(&a->spot, simd);
        if (columns->is_stacked)
            a->lanes.maybe &=
                pair_levels(a->spot.blocks, a->spot.lanes, column_level(columns, a->at.z), simd);
        bool is_hard = (a->spot.lanes == 0) | ((a->lanes.maybe & (a->lanes.maybe - 1)) != 0) |
                       ((a->lanes.maybe & a->lanes.doubt) != 0);

        hard[hard_count] = single[single_count] = some[k];
        hard_count += is_hard;
        single_count += !is_hard & (a->lanes.maybe != 0);
    }
    for (size_t k = 0; k < single_count; k++) {
        struct asked *a = &asked[single[k]];
        size_t i = (size_t)__builtin_ctz(a->lanes.maybe);
        uint32_t polygon = block_polygons(a->spot.blocks, a->spot.lanes)[i] & COLUMN_POLYGON;
        const struct mesh_polygon *p = &mesh->polygons[polygon];
        double z = floor_z(p, a->at.x, a->at.y);
        bool is_there = z <= a->at.z;

        out[single[k]] = (struct mesh_height){is_there ? z + mesh->lift : (double)NAN,
                                              is_there ? p->source : MESH_NO_POLYGON};
    }
    for (size_t k = 0; k < hard_count; k++) {
        struct asked *a = &asked[hard[k]];

        if (a->spot.lanes == 0)
            cell_height_by(mesh, a->entry, a->square, a->at.x, a->at.y, a->at.z, &out[hard[k]],
                           simd);
        else
            rest_take_by(mesh, a->at.x, a->at.y, a->at.z, a->spot.blocks, a->spot.lanes, a->lanes,
                         &out[hard[k]], simd);
    }
}

#ifdef HAS_VECTORS
/*
 * The same for AVX2, in three quarters of the instructions: a step writes down only what cannot be
 * found again at once. And a floor that the next in the list is below is the only one here, too.
 */
struct batch {
    _Alignas(16) double at[BATCH_AVX2][2];
    uint64_t place[BATCH_AVX2][2]; /* column_fixed */
    double limit[BATCH_AVX2];
    uint32_t entry[BATCH_AVX2];
    struct lanes lanes[BATCH_AVX2];
    uint32_t polygon[BATCH_AVX2]; /* of the single ones */
    uint8_t some[BATCH_AVX2], cells[BATCH_AVX2], hard[BATCH_AVX2],
        single[BATCH_AVX2]; /* which of the points */
    size_t some_count, cell_count, hard_count, single_count;
};

/* From the points to their blocks. */
FOR_AVX2 static inline void batch_begin(const struct mesh *mesh, const struct vec3 *points,
                                        size_t count, double reach_up_m, struct batch *b,
                                        struct mesh_height *out)
{
    const struct mesh_columns *columns = &mesh->columns;
    size_t some_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct vec3 at = column_place(mesh, points[i]);
        __m128i place = square_avx2(columns, at.x, at.y);
        uint32_t entry = entry_avx2(columns, place);
        const unsigned char *lines = columns->blocks[entry & DIRECTORY_BLOCK].bytes;

        _mm_store_pd(b->at[i], _mm_set_pd(at.y, at.x));
        _mm_store_si128((void *)b->place[i], place);
        b->limit[i] = at.z + reach_up_m + mesh->header->slack;
        b->entry[i] = entry;
        out[i] = (struct mesh_height){NAN, MESH_NO_POLYGON};
        b->some[some_count] = (uint8_t)i;
        some_count += entry != 0;
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + 64);
        lines += entry >> (DIRECTORY_LANES_SHIFT - 3) & 128;
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + 64);
    }
    b->some_count = some_count;
}

/* From the blocks to those with one floor, whose polygons are asked for, and those with more. */
FOR_AVX2 ALWAYS_INLINE void batch_lanes(const struct mesh *mesh, struct batch *b, bool is_stacked)
{
    const struct mesh_columns *columns = &mesh->columns;
    size_t any_count = 0, hard_count = 0, cell_count = 0;

    for (size_t k = 0; k < b->some_count; k++) {
        size_t i = b->some[k];
        uint32_t entry = b->entry[i];
        size_t count = entry >> DIRECTORY_LANES_SHIFT & DIRECTORY_LANES;

        if (count == 0) { /* of a few */
            b->cells[cell_count++] = (uint8_t)i;
            continue;
        }
        const struct column_block *blocks = columns->blocks + (entry & DIRECTORY_BLOCK);
        const uint32_t *polygons = block_polygons(blocks, count);
        struct lanes lanes =
            pair_at_avx2(blocks, count, spot_avx2(columns, entry, load_16(b->place[i])));

        if (is_stacked)
            lanes.maybe &=
                pair_levels(blocks, count, column_level(columns, b->limit[i]), SIMD_AVX2);
        /* of none what follows the lanes, but no further than by a block */
        uint32_t first = polygons[_tzcnt_u32(lanes.maybe)];
        unsigned others = lanes.maybe & (lanes.maybe - 1);

        if (is_stacked)
            others = is_below(polygons[_tzcnt_u32(others | 1u << 31)], first >> COLUMN_LOW_SHIFT)
                         ? 0
                         : others;
        size_t single_count = any_count - hard_count;

        b->hard[hard_count] = b->single[single_count] = (uint8_t)i;
        b->lanes[i] = lanes;
        b->polygon[single_count] = first & COLUMN_POLYGON;
        any_count += lanes.maybe != 0;
        hard_count += (others | (lanes.maybe & lanes.doubt)) != 0;
        __builtin_prefetch(&mesh->polygons[first & COLUMN_POLYGON]);
    }
    b->cell_count = cell_count;
    b->hard_count = hard_count;
    b->single_count = any_count - hard_count;
}

FOR_AVX2 static inline void batch_end(const struct mesh *mesh, struct batch *b,
                                      struct mesh_height *out)
{
    const struct mesh_columns *columns = &mesh->columns;

    for (size_t k = 0; k < b->single_count; k++) {
        size_t i = b->single[k];
        const struct mesh_polygon *p = &mesh->polygons[b->polygon[k]];
        double z = floor_z(p, b->at[i][0], b->at[i][1]);

        if (z <= b->limit[i])
            out[i] = (struct mesh_height){z + mesh->lift, p->source};
        else /* those below it are left */
            b->hard[b->hard_count++] = (uint8_t)i;
    }
    for (size_t k = 0; k < b->hard_count; k++) {
        size_t i = b->hard[k];
        uint32_t entry = b->entry[i];

        rest_take_avx2(mesh, b->at[i][0], b->at[i][1], b->limit[i],
                       columns->blocks + (entry & DIRECTORY_BLOCK),
                       entry >> DIRECTORY_LANES_SHIFT & DIRECTORY_LANES, b->lanes[i].maybe,
                       b->lanes[i].doubt, &out[i]);
    }
    for (size_t k = 0; k < b->cell_count; k++) {
        size_t i = b->cells[k];
        struct square square = {.both = load_16(b->place[i])};

        cell_height_by(mesh, b->entry[i], square, b->at[i][0], b->at[i][1], b->limit[i], &out[i],
                       SIMD_AVX2);
    }
}

FOR_AVX2 static void floor_batch_avx2(const struct mesh *mesh, const struct vec3 *points,
                                      size_t count, double reach_up_m, struct mesh_height *out)
{
    struct batch b;

    batch_begin(mesh, points, count, reach_up_m, &b, out);
    if (mesh->columns.is_stacked)
        batch_lanes(mesh, &b, true);
    else
        batch_lanes(mesh, &b, false);
    batch_end(mesh, &b, out);
}

FOR_AVX512 static void floor_batch_avx512(const struct mesh *mesh, const struct vec3 *points,
                                          size_t count, double reach_up_m, struct mesh_height *out)
{
    floor_batch(mesh, points, count, reach_up_m, out, SIMD_AVX512);
}
#endif

void mesh_floor_heights(const struct mesh *mesh, const struct vec3 *points, size_t count,
                        double reach_up_m, struct mesh_height *out)
{
    size_t batch = mesh->simd == SIMD_AVX2 ? BATCH_AVX2 : BATCH;

    CHECK(!mesh->radial);
    for (size_t i = 0; i < count; i += batch) {
        size_t some = count - i < batch ? count - i : batch;

#ifdef HAS_VECTORS
        if (mesh->simd == SIMD_AVX512) {
            floor_batch_avx512(mesh, points + i, some, reach_up_m, out + i);
            continue;
        }
        if (mesh->simd == SIMD_AVX2) {
            floor_batch_avx2(mesh, points + i, some, reach_up_m, out + i);
            continue;
        }
#endif
        floor_batch(mesh, points + i, some, reach_up_m, out + i, SIMD_SCALAR);
    }
}
