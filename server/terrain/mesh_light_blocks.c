/*
 * Shadows from the columns alone.
 *
 * Whether anything is between a point and a light needs neither the nearest polygon nor its height:
 * one that is certain is enough. A block of the tree's columns (mesh_columns.c) tells by small
 * integers which of eight polygons are over the place. Beside each block stand here the planes of
 * its polygons in the cell's own coordinates, in single precision, with a bound of all that is
 * wrong with them. So eight polygons are decided together, and no polygon, line or vertex is read:
 *
 *   over the place and certainly in front: blocked, and the rest of the list does not matter
 *   beside the place, or certainly behind: nothing
 *   near an edge, or at the point's own height within the bound: unsure, unless another one blocks
 *
 * A list that runs out without an unsure one is clear. Who is unsure asks the tree (mesh_light.c).
 *
 * A block's place is whole units of 2^-15 of the cell, cut off: the point itself is less than one
 * unit from there, which is in the bound, as are the roundings of float. The edges' integers allow
 * for the slack and all rounding (COLUMN_DOUBT); MARGIN adds what makes "inside" mean inside by
 * two slacks: a slack is less than 2^-20 of a cell, half a unit is 64.
 *
 * Eight lanes are a vector of the compiler: two of SSE2 without AVX2. The arithmetic of edges is of
 * integers; heights in another precision could be unsure more often, never wrong.
 */
#include "terrain/mesh_light_blocks.h"

#include "terrain/mesh_place.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* vectors are passed to what is inlined, and nowhere else */
#pragma GCC diagnostic ignored "-Wpsabi"

/* clang inlines nothing of AVX2 into what is compiled for either: it has the vectors alone */
#if defined(__x86_64__) && !defined(__clang__)
#define LIGHT_HAS_AVX2
#endif

typedef int16_t shorts8 __attribute__((vector_size(16)));
typedef int32_t ints8 __attribute__((vector_size(32)));
typedef float floats8 __attribute__((vector_size(32)));

enum { MARGIN = 64, TOGETHER = 16 };

/* ---- making ---------------------------------------------------------------------------------- */

struct maker {
    const struct mesh *tree;
    const uint8_t *is_loose;
    double doubt_m;
    struct light_heights *out;
};

static void lane_fill(const struct maker *m, struct light_heights *out, unsigned lane,
                      uint32_t polygon, const struct box2 *box)
{
    const struct mesh_polygon *p = &m->tree->polygons[polygon];
    double x = (box->x_min + box->x_max) / 2, y = (box->y_min + box->y_max) / 2;
    double z =
        p->height + p->slope_x * (x - (double)p->x_min) + p->slope_y * (y - (double)p->y_min);
    double dx = p->slope_x * (box->x_max - box->x_min) / COLUMN_UNIT;
    double dy = p->slope_y * (box->y_max - box->y_min) / COLUMN_UNIT;
    double most = fabs(z) + (fabs(dx) + fabs(dy)) * COLUMN_UNIT;

    out->z[lane] = (float)z;
    out->x_unit[lane] = (float)dx;
    out->y_unit[lane] = (float)dy;
    /* the asked height is rounded to float, too: it matters where it is about as large */
    out->doubt[lane] =
        m->is_loose[polygon]
            ? INFINITY
            : (float)(2 * (fabs(dx) + fabs(dy)) + 16 * (double)FLT_EPSILON * most + m->doubt_m);
}

static void cell_fill(const struct maker *m, const struct column_cell *cell, struct box2 box)
{
    const struct mesh_columns *columns = &m->tree->columns;

    if (cell->count & COLUMN_INNER) {
        uint32_t side = cell->count & ~COLUMN_INNER;
        double w = (box.x_max - box.x_min) / side, h = (box.y_max - box.y_min) / side;

        for (uint32_t i = 0; i < side * side; i++)
            cell_fill(m, &columns->cells[cell->first + i],
                      (struct box2){box.x_min + (i % side) * w, box.y_min + (i / side) * h,
                                    box.x_min + (i % side + 1) * w,
                                    box.y_min + (i / side + 1) * h});
        return;
    }
    for (uint32_t i = 0; i < cell->count; i++) {
        size_t block = cell->first + i / COLUMN_LANES;
        unsigned lane = i % COLUMN_LANES;

        lane_fill(m, &m->out[block], lane, columns->blocks[block].polygon[lane] & COLUMN_POLYGON,
                  &box);
    }
}

struct light_heights *light_heights_make(const struct mesh *tree, const uint8_t *is_loose,
                                         double doubt_m)
{
    const struct mesh_columns *columns = &tree->columns;
    size_t bytes = (columns->block_count + 1) * sizeof(struct light_heights);
    double whole = (double)(1ull << COLUMN_PLACE);
    struct maker m = {tree, is_loose, doubt_m, aligned_alloc(32, bytes)};

    if (m.out == NULL)
        return NULL;
    memset(m.out, 0, bytes);
    for (uint32_t i = 0; i < columns->side * columns->side; i++) {
        double w = whole / columns->scale_x, h = whole / columns->scale_y;
        double x = columns->x_min + (i % columns->side) * w;
        double y = columns->y_min + (i / columns->side) * h;

        cell_fill(&m, &columns->cells[i], (struct box2){x, y, x + w, y + h});
    }
    return m.out;
}

/* ---- asking ---------------------------------------------------------------------------------- */

#ifdef LIGHT_HAS_AVX2
#define FOR_AVX2 __attribute__((target("avx2")))

FOR_AVX2 static inline bool is_any_avx2(ints8 mask)
{
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
}

FOR_AVX2 static inline ints8 edge_avx2(const struct column_block *b, unsigned edge, int32_t x,
                                       int32_t y)
{
    __m256i place = _mm256_set1_epi32((int32_t)((uint32_t)(x & 0xffff) | (uint32_t)y << 16));
    __m128i ab = _mm_load_si128((const __m128i *)(const void *)b->ab[edge]);
    __m128i c = _mm_load_si128((const __m128i *)(const void *)b->c[edge]);

    return (ints8)_mm256_add_epi32(_mm256_madd_epi16(_mm256_cvtepi8_epi16(ab), place),
                                   _mm256_slli_epi32(_mm256_cvtepi16_epi32(c), COLUMN_SHIFT));
}

FOR_AVX2 static inline ints8 least_avx2(ints8 a, ints8 b)
{
    return (ints8)_mm256_min_epi32((__m256i)a, (__m256i)b);
}
#endif

/* One edge of eight polygons. */
PLACE_INLINE ints8 edge_at(const struct column_block *b, unsigned edge, int32_t x, int32_t y,
                           bool has_avx2)
{
    shorts8 ab, c;

    (void)has_avx2;
#ifdef LIGHT_HAS_AVX2
    if (has_avx2)
        return edge_avx2(b, edge, x, y);
#endif
    memcpy(&ab, b->ab[edge], sizeof ab);
    memcpy(&c, b->c[edge], sizeof c);
    return __builtin_convertvector((shorts8)(ab << 8) >> 8, ints8) * x +
           __builtin_convertvector(ab >> 8, ints8) * y +
           __builtin_convertvector(c, ints8) * (1 << COLUMN_SHIFT);
}

PLACE_INLINE bool is_any(const ints8 *mask, bool has_avx2)
{
    uint64_t words[4];

    (void)has_avx2;
#ifdef LIGHT_HAS_AVX2
    if (has_avx2)
        return is_any_avx2(*mask);
#endif
    memcpy(words, mask, sizeof words);
    return (words[0] | words[1] | words[2] | words[3]) != 0;
}

PLACE_INLINE ints8 least_of(const ints8 *a, const ints8 *b, bool has_avx2)
{
    ints8 is_less;

    (void)has_avx2;
#ifdef LIGHT_HAS_AVX2
    if (has_avx2)
        return least_avx2(*a, *b);
#endif
    is_less = *a < *b;
    return (*a & is_less) | (*b & ~is_less);
}

/*
 * Lists run from the highest floor down, and what blocks is low: from the end on.
 */
PLACE_INLINE uint8_t list_any(const struct column_block *b, const struct light_heights *h,
                              uint32_t count, int32_t x, int32_t y, float z, bool has_avx2)
{
    const ints8 number = {0, 1, 2, 3, 4, 5, 6, 7};
    uint32_t blocks = (count + COLUMN_LANES - 1) / COLUMN_LANES;
    int32_t lanes = (int32_t)(count - (blocks - 1) * COLUMN_LANES); /* of the last one */
    ints8 unsure = {0};

    while (blocks-- > 0) {
        const struct column_block *edges = &b[blocks];
        const struct light_heights *planes = &h[blocks];
        ints8 e0 = edge_at(edges, 0, x, y, has_avx2), e1 = edge_at(edges, 1, x, y, has_avx2);
        ints8 e2 = edge_at(edges, 2, x, y, has_avx2);
        ints8 two = least_of(&e0, &e1, has_avx2), least = least_of(&two, &e2, has_avx2);
        ints8 maybe = (least >= 0) & (number < lanes);
        floats8 plane, x_unit, y_unit, doubt;

        lanes = COLUMN_LANES;
        memcpy(&plane, planes->z, sizeof plane);
        memcpy(&x_unit, planes->x_unit, sizeof plane);
        memcpy(&y_unit, planes->y_unit, sizeof plane);
        memcpy(&doubt, planes->doubt, sizeof plane);
        floats8 over = plane + x_unit * (float)x + y_unit * (float)y - z; /* the point */
        ints8 is_front = over<-doubt, is_behind = over> doubt;

        const ints8 blocks_it = maybe & is_front & (least >= 2 * COLUMN_DOUBT + MARGIN);

        if (is_any(&blocks_it, has_avx2))
            return LIGHT_BLOCKED;
        unsure |= maybe & ~is_behind;
    }
    return is_any(&unsure, has_avx2) ? LIGHT_UNSURE : LIGHT_CLEAR;
}

PLACE_INLINE uint8_t place_any(const struct mesh *tree, const struct light_heights *heights,
                               const struct place *place, double z, bool has_avx2)
{
    uint32_t x = (uint32_t)(place->x >> UNIT_SHIFT), y = (uint32_t)(place->y >> UNIT_SHIFT);
    uint32_t first = place->cell->first;

    if (place->cell->count == 0)
        return LIGHT_CLEAR;
    if (x - 1 >= COLUMN_UNIT - 2 || y - 1 >= COLUMN_UNIT - 2)
        return LIGHT_UNSURE;
    return list_any(tree->columns.blocks + first, heights + first, place->cell->count,
                    (int32_t)x - COLUMN_UNIT / 2, (int32_t)y - COLUMN_UNIT / 2, (float)z, has_avx2);
}

/* Each step of all points before the next step of any, as in mesh_floor.c. */
PLACE_INLINE void some_any(const struct mesh *tree, const struct light_heights *heights,
                           const struct vec3 *at, size_t count, uint8_t *answers, bool has_avx2)
{
    struct place place[TOGETHER];
    bool is_in[TOGETHER];

    for (size_t i = 0; i < count; i++) {
        is_in[i] = place_begin(tree, at[i].x, at[i].y, &place[i]);
        if (is_in[i])
            __builtin_prefetch(place[i].cell);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_in[i])
            continue;
        place_descend(tree, &place[i]);
        uint32_t floors = place[i].cell->count;
        size_t last = place[i].cell->first + (floors > 0 ? (floors - 1) / COLUMN_LANES : 0);

        __builtin_prefetch(tree->columns.blocks + last);
        __builtin_prefetch((const char *)(tree->columns.blocks + last) + 64);
        __builtin_prefetch(heights + last);
        __builtin_prefetch((const char *)(heights + last) + 64);
        last -= floors > COLUMN_LANES; /* or the same again */
        __builtin_prefetch(tree->columns.blocks + last);
        __builtin_prefetch((const char *)(tree->columns.blocks + last) + 64);
        __builtin_prefetch(heights + last);
        __builtin_prefetch((const char *)(heights + last) + 64);
    }
    for (size_t i = 0; i < count; i++)
        answers[i] =
            is_in[i] ? place_any(tree, heights, &place[i], at[i].z, has_avx2) : LIGHT_UNSURE;
}

#ifdef LIGHT_HAS_AVX2
FOR_AVX2 static void some_any_avx2(const struct mesh *tree, const struct light_heights *heights,
                                   const struct vec3 *at, size_t count, uint8_t *answers)
{
    some_any(tree, heights, at, count, answers, true);
}
#endif

void light_blocks_any(const struct mesh *tree, const struct light_heights *heights,
                      const struct vec3 *at, size_t count, uint8_t *answers)
{
    for (size_t i = 0; i < count; i += TOGETHER) {
        size_t some = count - i < TOGETHER ? count - i : TOGETHER;

#ifdef LIGHT_HAS_AVX2
        if (tree->simd >= SIMD_AVX2) {
            some_any_avx2(tree, heights, at + i, some, answers + i);
            continue;
        }
#endif
        some_any(tree, heights, at + i, some, answers + i, false);
    }
}
