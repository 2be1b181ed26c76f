/*
 * A point's square in the directory of a mesh's columns (mesh_directory.h), and the blocks that it
 * leads to. For mesh_floor.c and mesh_height.c only.
 */
#ifndef KOTA_TERRAIN_MESH_SQUARE_H
#define KOTA_TERRAIN_MESH_SQUARE_H

#include "terrain/mesh_directory.h"
#include "terrain/mesh_lanes.h"

/* A point's place in cells of the root. */
struct square {
    uint64_t x, y;
#ifdef HAS_VECTORS
    __m128i both; /* with AVX2 instead of x and y: column_fixed */
#endif
};

/* A point's blocks and its place in their cell. */
struct spot {
    const struct column_block *blocks;
    size_t lanes;     /* 8, 16, or 0: ask the cells */
    struct square at; /* as pair_at */
};

#ifdef HAS_VECTORS
/* As square_find, but for roundings. */
FOR_AVX512 static inline bool square_find_avx512(const struct mesh_columns *columns, double at_x,
                                                 double at_y, struct square *square)
{
    __m128d place = _mm_fmadd_pd(_mm_set_pd(at_y, at_x), _mm_loadu_pd(&columns->scale_x),
                                 _mm_loadu_pd(columns->place_0));
    uint64_t x = (uint64_t)_mm_cvttsd_si64(place);
    uint64_t y = (uint64_t)_mm_cvttsd_si64(_mm_unpackhi_pd(place, place));

    KEEP_APART(x); /* two comparisons, and not one of the greater */
    square->x = x;
    square->y = y;
    return x < columns->side_limit && y < columns->side_limit;
}

/* What is outside, no number or too large has a place beyond all squares. */
FOR_AVX2 static inline __m128i square_avx2(const struct mesh_columns *columns, double at_x,
                                           double at_y)
{
    const struct column_fixed *fixed = &columns->fixed;
    __m128d place =
        _mm_fmadd_pd(_mm_set_pd(at_y, at_x), _mm_loadu_pd(fixed->scale), _mm_loadu_pd(fixed->zero));

    return _mm_sub_epi64(_mm_castpd_si128(place), load_16(column_vectors.zero));
}

FOR_AVX2 static inline uint32_t entry_avx2(const struct mesh_columns *columns, __m128i place)
{
    const struct column_fixed *fixed = &columns->fixed;
    __m128i square = _mm_srl_epi64(place, load_16(fixed->square_shift));

    square = _mm_min_epu32(square, load_16(fixed->last));
    square = _mm_mul_epu32(square, load_16(fixed->steps));
    square = _mm_add_epi64(square, _mm_unpackhi_epi64(square, square));
    return columns->directory[_mm_cvtsi128_si64(square)];
}

FOR_AVX2 static inline __m128i spot_avx2(const struct mesh_columns *columns, uint32_t entry,
                                         __m128i place)
{
    __m128i shift = _mm_srli_epi32(_mm_cvtsi32_si128((int32_t)entry), DIRECTORY_UNIT_SHIFT);

    return _mm_srl_epi64(place, _mm_sub_epi32(shift, load_16(columns->fixed.coarser)));
}
#endif

/* A point's square; false outside of the grid, or its entry is DIRECTORY_ELSE. */
ALWAYS_INLINE bool square_find(const struct mesh_columns *columns, double at_x, double at_y,
                               struct square *square, enum simd_level simd)
{
#ifdef HAS_VECTORS
    if (simd == SIMD_AVX512)
        return square_find_avx512(columns, at_x, at_y, square);
    if (simd == SIMD_AVX2) {
        square->both = square_avx2(columns, at_x, at_y);
        return true;
    }
#endif
    (void)simd;
    double dx = (at_x - columns->x_min) * columns->scale_x;
    double dy = (at_y - columns->y_min) * columns->scale_y;

#ifdef __x86_64__
    /* what is no number, or too large, becomes the least integer */
    square->x = (uint64_t)_mm_cvttsd_si64(_mm_set_sd(dx));
    square->y = (uint64_t)_mm_cvttsd_si64(_mm_set_sd(dy));
#else
    if (!(fabs(dx) < PLACE_FAR && fabs(dy) < PLACE_FAR))
        return false;
    square->x = (uint64_t)(int64_t)dx;
    square->y = (uint64_t)(int64_t)dy;
#endif
    return (square->x < columns->side_limit) & (square->y < columns->side_limit);
}

ALWAYS_INLINE uint32_t square_entry(const struct mesh_columns *columns, const struct square *square,
                                    enum simd_level simd)
{
#ifdef HAS_VECTORS
    if (simd == SIMD_AVX2)
        return entry_avx2(columns, square->both);
#endif
    (void)simd;
    unsigned shift = columns->square_shift;

    return columns->directory[(square->y >> shift) * columns->stride + (square->x >> shift)];
}

ALWAYS_INLINE struct spot spot_of(const struct mesh_columns *columns, uint32_t entry,
                                  const struct square *square, enum simd_level simd)
{
    struct spot spot = {.blocks = columns->blocks + (entry & DIRECTORY_BLOCK),
                        .lanes = entry >> DIRECTORY_LANES_SHIFT & DIRECTORY_LANES};

#ifdef HAS_VECTORS
    if (simd == SIMD_AVX2) {
        spot.at.both = spot_avx2(columns, entry, square->both);
        return spot;
    }
#endif
    /* of an entry without floors any, and what it gives is not used */
    unsigned shift = ((entry >> DIRECTORY_UNIT_SHIFT) - (simd == SIMD_SCALAR)) & 63;

    spot.at.x = square->x >> shift;
    spot.at.y = square->y >> shift;
    return spot;
}

/* x and y of a square that AVX2 has found. */
ALWAYS_INLINE void square_split(const struct mesh_columns *columns, struct square *square,
                                enum simd_level simd)
{
#ifdef HAS_VECTORS
    if (simd == SIMD_AVX2) {
        __m128i upper = _mm_unpackhi_epi64(square->both, square->both);
        uint32_t coarser = columns->fixed.coarser[0];

        square->x = (uint64_t)_mm_cvtsi128_si64(square->both) << coarser;
        square->y = (uint64_t)_mm_cvtsi128_si64(upper) << coarser;
    }
#endif
    (void)columns, (void)square, (void)simd;
}

ALWAYS_INLINE struct lanes spot_lanes(const struct spot *spot, enum simd_level simd)
{
#ifdef HAS_VECTORS
    if (simd == SIMD_AVX2)
        return pair_at_avx2(spot->blocks, spot->lanes, spot->at.both);
#endif
    return pair_at(spot->blocks, spot->lanes, (uint32_t)spot->at.x, (uint32_t)spot->at.y, simd);
}

/* From the directory's cell on, down to its leaf: of an entry that has a cell. */
ALWAYS_INLINE struct place square_leaf(const struct mesh *mesh, uint32_t entry,
                                       const struct square *square)
{
    const struct mesh_columns *columns = &mesh->columns;
    unsigned level = UNIT_SHIFT + 1 - (entry >> DIRECTORY_UNIT_SHIFT);
    struct place place = {columns->cells + (entry & DIRECTORY_BLOCK),
                          (square->x << level) & PLACE_MASK, (square->y << level) & PLACE_MASK};

    while (place.cell->count & COLUMN_INNER)
        place = place_inside(mesh, place);
    return place;
}

/* What is over a place, or what is to be asked for it. */
enum over { OVER_NOTHING, OVER_ONE, OVER_MORE, OVER_CELL, OVER_OUTSIDE };

/* ... and what of it is known by then: all of one floor. */
struct floors {
    struct square square;
    uint32_t entry;
    struct spot spot;
    struct lanes lanes;
    uint32_t polygon;
    double z;
};

/* Mostly there is one floor over a place, at most. Each instruction counts: several questions are
 * under way at once. */
ALWAYS_INLINE enum over floors_find(const struct mesh *mesh, double x, double y, double limit,
                                    bool is_stacked, struct floors *f, enum simd_level simd)
{
    const struct mesh_columns *columns = &mesh->columns;

    if (!square_find(columns, x, y, &f->square, simd))
        return OVER_OUTSIDE;
    f->entry = square_entry(columns, &f->square, simd);
    f->spot = spot_of(columns, f->entry, &f->square, simd);
    if (f->spot.lanes == 0)
        return f->entry != 0 ? OVER_CELL : OVER_NOTHING;
    f->lanes = spot_lanes(&f->spot, simd);
    if (is_stacked)
        f->lanes.maybe &=
            pair_levels(f->spot.blocks, f->spot.lanes, column_level(columns, limit), simd);
    if (f->lanes.maybe == 0)
        return OVER_NOTHING;
    const uint32_t *polygons = block_polygons(f->spot.blocks, f->spot.lanes);
    size_t i = (size_t)__builtin_ctz(f->lanes.maybe);
    unsigned others = f->lanes.maybe & (f->lanes.maybe - 1);
    uint32_t first = polygons[i];

    /* without others a lane is asked that is not there, in what follows the blocks */
    if (is_stacked &&
        is_below(polygons[__builtin_ctz(others | 1u << 31)], first >> COLUMN_LOW_SHIFT))
        others = 0;
    if ((others | (f->lanes.maybe & f->lanes.doubt)) != 0)
        return OVER_MORE;
    f->polygon = first & COLUMN_POLYGON;
    f->z = floor_z(&mesh->polygons[f->polygon], x, y);
    return f->z <= limit ? OVER_ONE : OVER_MORE; /* those below it are left */
}

#endif
