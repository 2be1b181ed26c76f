/*
 * Shadows from the columns alone.
 *
 * Whether anything is between a point and a light needs neither the nearest polygon nor its height:
 * one that is certain is enough. A block of the tree's columns (mesh_columns.c) tells by small
 * integers which of eight polygons are over the place. Here stand these integers and beside them
 * the planes of the polygons in the cell's own coordinates, in single precision; what may be wrong
 * with them is worked out from their slopes. So eight polygons are decided together in three cache
 * lines, and no polygon, line or vertex is read:
 *
 *   over the place and certainly in front: blocked, and the rest of the list does not matter
 *   beside the place, or certainly behind: nothing
 *   near an edge, or at the point's own height within the bound: unsure, unless another one blocks
 *
 * A list that runs out without an unsure one is clear. Who is unsure asks the tree (mesh_light.c).
 *
 * Much is decided before any block. A list runs from the polygon that begins lowest in the cell,
 * for what is low blocks; beside each block stands the least height of it and all that follow: a
 * point below that has nothing more in front. And a cell that one polygon covers whole knows a
 * height over which all is blocked. On real terrains that leaves 1.1 to 2.1 blocks of 1.2 to 7.5.
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

enum { MARGIN = 64, TOGETHER = 32 };

/* What a height may be wrong by, in parts of itself and of its slopes; the point's own, too. */
#define DOUBT_HEIGHT (16 * FLT_EPSILON)
#define DOUBT_UNITS 2.1f /* 2, and 16 roundings of a slope across the cell */

/* ---- making ---------------------------------------------------------------------------------- */

/* A polygon in a cell. */
struct entry {
    uint32_t at; /* in the columns' list */
    float z, x_unit, y_unit, least;
};

struct maker {
    const struct mesh *tree;
    const uint8_t *is_loose;
    struct light_blocks *out;
    struct entry *entries; /* room for the longest list */
};

static float float_under(double value)
{
    return nextafterf((float)value, -INFINITY);
}

static struct entry entry_of(const struct maker *m, const struct column_lane *lane, uint32_t at,
                             const struct box2 *box, double *most)
{
    uint32_t polygon = *lane->polygon & COLUMN_POLYGON;
    const struct mesh_polygon *p = &m->tree->polygons[polygon];
    double x = (box->x_min + box->x_max) / 2, y = (box->y_min + box->y_max) / 2;
    double z =
        p->height + p->slope_x * (x - (double)p->x_min) + p->slope_y * (y - (double)p->y_min);
    double dx = p->slope_x * (box->x_max - box->x_min) / COLUMN_UNIT;
    double dy = p->slope_y * (box->y_max - box->y_min) / COLUMN_UNIT;
    double slope = fabs(dx) + fabs(dy), reach = slope * COLUMN_UNIT / 2;
    double least = fmax(z - reach, (double)p->z_min - (double)m->out->doubt_m);
    double doubt = (double)m->out->doubt_m + 2.5 * slope +
                   2 * (double)DOUBT_HEIGHT * (fabs(z) + reach + fabs(least));

    *most = z + reach + doubt;
    if (m->is_loose[polygon]) {
        *most = INFINITY;
        return (struct entry){at, NAN, NAN, NAN, -INFINITY};
    }
    return (struct entry){at, (float)z, (float)dx, (float)dy, float_under(least - doubt)};
}

/* Do the integers say that the polygon covers the cell? Edges that do not cut it are left out. */
static bool is_cover(const struct column_lane *lane)
{
    for (unsigned k = 0; k < COLUMN_EDGES; k++)
        if (lane->ab[k * lane->step] != 0 || lane->ab[k * lane->step + 1] != 0 ||
            lane->c[k * lane->step / 2] * (1 << COLUMN_SHIFT) < 2 * COLUMN_DOUBT + MARGIN)
            return false;
    return true;
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;

    if (p->least != q->least)
        return p->least < q->least ? -1 : 1;
    return p->at < q->at ? -1 : 1;
}

static void lane_fill(const struct column_lane *from, const struct entry *entry,
                      struct light_block *to, unsigned lane)
{
    for (unsigned k = 0; k < COLUMN_EDGES; k++) {
        memcpy(to->ab[k][lane], &from->ab[k * from->step], sizeof to->ab[k][lane]);
        /* here from the middle of the cell, where heights are told from */
        to->c[k][lane] = (int16_t)(from->c[k * from->step / 2] +
                                   COLUMN_MIDDLE * (to->ab[k][lane][0] + to->ab[k][lane][1]));
    }
    to->z[lane] = entry->z;
    to->x_unit[lane] = entry->x_unit;
    to->y_unit[lane] = entry->y_unit;
}

static void list_fill(const struct maker *m, const struct column_cell *cell,
                      struct light_cell *limits, const struct box2 *box)
{
    struct column_block *blocks = &m->tree->columns.blocks[cell->first];
    double blocked_from = INFINITY;

    for (uint32_t i = 0; i < cell->count; i++) {
        struct column_lane lane = column_lane(blocks, cell->count, i);
        double most;

        m->entries[i] = entry_of(m, &lane, i, box, &most);
        if (is_cover(&lane))
            blocked_from = fmin(blocked_from, most);
    }
    qsort(m->entries, cell->count, sizeof *m->entries, entry_compare);
    for (uint32_t i = 0; i < cell->count; i++) {
        struct column_lane lane = column_lane(blocks, cell->count, m->entries[i].at);
        size_t to = cell->first + i / COLUMN_LANES;

        lane_fill(&lane, &m->entries[i], &m->out->blocks[to], i % COLUMN_LANES);
        if (i % COLUMN_LANES == 0)
            m->out->least[to] = m->entries[i].least;
    }
    limits->clear_to = m->entries[0].least;
    limits->blocked_from = -float_under(-blocked_from);
}

static void cell_fill(const struct maker *m, uint32_t index, struct box2 box)
{
    const struct column_cell *cell = &m->tree->columns.cells[index];

    if (cell->count & COLUMN_INNER) {
        uint32_t side = cell->count & ~COLUMN_INNER;
        double w = (box.x_max - box.x_min) / side, h = (box.y_max - box.y_min) / side;

        for (uint32_t i = 0; i < side * side; i++)
            cell_fill(m, cell->first + i,
                      (struct box2){box.x_min + (i % side) * w, box.y_min + (i / side) * h,
                                    box.x_min + (i % side + 1) * w,
                                    box.y_min + (i / side + 1) * h});
        return;
    }
    if (cell->count > 0)
        list_fill(m, cell, &m->out->cells[index], &box);
    else
        m->out->cells[index] = (struct light_cell){.clear_to = INFINITY, .blocked_from = INFINITY};
}

static uint32_t longest_list(const struct mesh_columns *columns)
{
    uint32_t most = 0;

    for (size_t i = 0; i < columns->cell_count; i++)
        if (!(columns->cells[i].count & COLUMN_INNER) && columns->cells[i].count > most)
            most = columns->cells[i].count;
    return most;
}

void light_blocks_free(struct light_blocks *blocks)
{
    free(blocks->blocks);
    free(blocks->cells);
    free(blocks->least);
}

size_t light_blocks_bytes(const struct mesh *tree)
{
    return tree->columns.block_count * (sizeof(struct light_block) + sizeof(float)) +
           tree->columns.cell_count * sizeof(struct light_cell);
}

bool light_blocks_make(const struct mesh *tree, const uint8_t *is_loose, double doubt_m,
                       struct light_blocks *out)
{
    const struct mesh_columns *columns = &tree->columns;
    size_t bytes = (columns->block_count + 1) * sizeof *out->blocks;
    double whole = (double)(1ull << COLUMN_PLACE);
    struct maker m = {tree, is_loose, out, NULL};

    *out = (struct light_blocks){.blocks = aligned_alloc(64, bytes),
                                 .cells = calloc(columns->cell_count + 1, sizeof *out->cells),
                                 .least = calloc(columns->block_count + 1, sizeof *out->least),
                                 .doubt_m = -float_under(-doubt_m)};
    m.entries = malloc((longest_list(columns) + 1) * sizeof *m.entries);
    if (!out->blocks || !out->cells || !out->least || !m.entries) {
        free(m.entries);
        light_blocks_free(out);
        *out = (struct light_blocks){.blocks = NULL};
        return false;
    }
    memset(out->blocks, 0, bytes);
    for (uint32_t i = 0; i < columns->side * columns->side; i++) {
        double w = whole / columns->scale_x, h = whole / columns->scale_y;
        double x = columns->x_min + (i % columns->side) * w;
        double y = columns->y_min + (i / columns->side) * h;

        cell_fill(&m, i, (struct box2){x, y, x + w, y + h});
    }
    free(m.entries);
    return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

#ifdef LIGHT_HAS_AVX2
#define FOR_AVX2 __attribute__((target("avx2")))

FOR_AVX2 static inline bool is_any_avx2(ints8 mask)
{
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
}

FOR_AVX2 static inline ints8 edge_avx2(const struct light_block *b, unsigned edge, int32_t x,
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
PLACE_INLINE ints8 edge_at(const struct light_block *b, unsigned edge, int32_t x, int32_t y,
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

PLACE_INLINE floats8 size_of(const floats8 *v)
{
    return (floats8)((ints8)*v & 0x7fffffff);
}

/* A point of a cell, in what a block is asked by. */
struct spot {
    int32_t x, y;
    float z;
};

/* Of eight polygons at most `left`: is one certainly in front, may one be? */
PLACE_INLINE bool block_any(const struct light_block *b, int32_t left, const struct spot *at,
                            float doubt_m, bool *is_unsure, bool has_avx2)
{
    const ints8 number = {0, 1, 2, 3, 4, 5, 6, 7};
    ints8 e0 = edge_at(b, 0, at->x, at->y, has_avx2), e1 = edge_at(b, 1, at->x, at->y, has_avx2);
    ints8 e2 = edge_at(b, 2, at->x, at->y, has_avx2);
    ints8 two = least_of(&e0, &e1, has_avx2), inside = least_of(&two, &e2, has_avx2);
    floats8 plane, x_unit, y_unit;

    memcpy(&plane, b->z, sizeof plane);
    memcpy(&x_unit, b->x_unit, sizeof plane);
    memcpy(&y_unit, b->y_unit, sizeof plane);
    floats8 over = plane + x_unit * (float)at->x + y_unit * (float)at->y - at->z; /* the point */
    floats8 doubt = (size_of(&x_unit) + size_of(&y_unit)) * DOUBT_UNITS +
                    size_of(&plane) * DOUBT_HEIGHT + doubt_m;
    ints8 is_front = over<-doubt, is_behind = over> doubt;
    ints8 maybe = (inside >= 0) & (number < left);
    ints8 unsure = maybe & ~is_behind;
    ints8 blocks_it = maybe & is_front & (inside >= 2 * COLUMN_DOUBT + MARGIN);

    *is_unsure = is_any(&unsure, has_avx2);
    return is_any(&blocks_it, has_avx2);
}

/* The rest of a list that has told nothing certain. */
PLACE_INLINE uint8_t rest_any(const struct light_blocks *all, uint32_t first, uint32_t count,
                              const struct spot *at, bool is_unsure, bool has_avx2)
{
    int32_t left = (int32_t)count - COLUMN_LANES;
    uint32_t i = first + 1;

    do {
        bool may_be;

        if (block_any(&all->blocks[i], left, at, all->doubt_m, &may_be, has_avx2))
            return LIGHT_BLOCKED;
        is_unsure |= may_be;
        left -= COLUMN_LANES;
        i++;
    } while (left > 0 && at->z >= all->least[i]);
    return is_unsure ? LIGHT_UNSURE : LIGHT_CLEAR;
}

/* Some points on their way: each step of all before the next step of any, as in mesh_floor.c. */
struct some {
    struct place place[TOGETHER];
    struct spot spot[TOGETHER];
    uint8_t todo[TOGETHER], next[TOGETHER];
    uint8_t *answers;
};

/* Down to the cells that have lists; how many, in todo. */
PLACE_INLINE size_t some_descend(const struct mesh *tree, const struct light_blocks *blocks,
                                 const struct vec3 *at, size_t count, struct some *some)
{
    uint8_t leaves[TOGETHER];
    size_t inner = 0, leaf_count = 0;

    for (size_t i = 0; i < count; i++) {
        bool is_in = place_begin(tree, at[i].x, at[i].y, &some->place[i]);

        some->answers[i] = LIGHT_UNSURE;
        some->todo[inner] = (uint8_t)i;
        inner += is_in;
        if (is_in)
            __builtin_prefetch(some->place[i].cell);
    }
    while (inner > 0) {
        size_t asked = inner;

        inner = 0;
        for (size_t k = 0; k < asked; k++) {
            uint8_t i = some->todo[k];
            bool is_inner = some->place[i].cell->count >= COLUMN_INNER;

            some->next[inner] = leaves[leaf_count] = i;
            inner += is_inner;
            leaf_count += !is_inner;
        }
        for (size_t k = 0; k < inner; k++) {
            uint8_t i = some->todo[k] = some->next[k];

            some->place[i] = place_inside(tree, some->place[i]);
            __builtin_prefetch(some->place[i].cell);
            __builtin_prefetch(blocks->cells + (some->place[i].cell - tree->columns.cells));
        }
    }
    memcpy(some->todo, leaves, sizeof leaves);
    return leaf_count;
}

/* What the cells tell without their lists; those that have to be asked are left in todo. */
PLACE_INLINE size_t some_limits(const struct mesh *tree, const struct light_blocks *blocks,
                                const struct vec3 *at, size_t count, struct some *some)
{
    size_t lists = 0;

    for (size_t k = 0; k < count; k++) {
        uint8_t i = some->todo[k];
        const struct place *place = &some->place[i];
        const struct light_cell *limits = blocks->cells + (place->cell - tree->columns.cells);
        const char *first = (const char *)(blocks->blocks + place->cell->first);
        uint32_t x = (uint32_t)(place->x >> UNIT_SHIFT), y = (uint32_t)(place->y >> UNIT_SHIFT);
        float z = (float)at[i].z;
        /* each worked out, and no branch that nobody can foretell */
        unsigned is_border = (x - 1 >= COLUMN_UNIT - 2) | (y - 1 >= COLUMN_UNIT - 2);
        unsigned is_blocked = z > limits->blocked_from, is_clear = z < limits->clear_to;
        unsigned is_list = !(is_border | is_blocked | is_clear);

        _Static_assert(LIGHT_CLEAR == 0 && LIGHT_BLOCKED == 1 && LIGHT_UNSURE == 2, "a sum");
        some->answers[i] = (uint8_t)(is_border ? LIGHT_UNSURE : is_blocked);
        some->spot[i] =
            (struct spot){(int32_t)x - COLUMN_UNIT / 2, (int32_t)y - COLUMN_UNIT / 2, z};
        some->todo[lists] = i;
        lists += is_list;
        __builtin_prefetch(blocks->least + place->cell->first + 1);
        __builtin_prefetch(first);
        __builtin_prefetch(first + 64);
        __builtin_prefetch(first + 128);
    }
    return lists;
}

PLACE_INLINE void some_any(const struct mesh *tree, const struct light_blocks *blocks,
                           const struct vec3 *at, size_t count, uint8_t *answers, bool has_avx2)
{
    struct some some;
    size_t lists, more = 0;

    some.answers = answers;
    lists = some_limits(tree, blocks, at, some_descend(tree, blocks, at, count, &some), &some);
    for (size_t k = 0; k < lists; k++) {
        uint8_t i = some.todo[k];
        const struct column_cell *cell = some.place[i].cell;
        bool is_unsure,
            is_blocked = block_any(&blocks->blocks[cell->first], (int32_t)cell->count,
                                   &some.spot[i], blocks->doubt_m, &is_unsure, has_avx2);
        bool is_more = !is_blocked & (cell->count > COLUMN_LANES) &
                       (some.spot[i].z >= blocks->least[cell->first + 1]);

        answers[i] = (uint8_t)(is_blocked ? LIGHT_BLOCKED : 2 * is_unsure);
        some.next[more] = i;
        more += is_more;
    }
    for (size_t k = 0; k < more; k++) {
        uint8_t i = some.next[k];
        const struct column_cell *cell = some.place[i].cell;

        answers[i] = rest_any(blocks, cell->first, cell->count, &some.spot[i],
                              answers[i] == LIGHT_UNSURE, has_avx2);
    }
}

#ifdef LIGHT_HAS_AVX2
FOR_AVX2 static void some_any_avx2(const struct mesh *tree, const struct light_blocks *blocks,
                                   const struct vec3 *at, size_t count, uint8_t *answers)
{
    some_any(tree, blocks, at, count, answers, true);
}
#endif

void light_blocks_any(const struct mesh *tree, const struct light_blocks *blocks,
                      const struct vec3 *at, size_t count, uint8_t *answers)
{
    for (size_t i = 0; i < count; i += TOGETHER) {
        size_t some = count - i < TOGETHER ? count - i : TOGETHER;

#ifdef LIGHT_HAS_AVX2
        if (tree->simd >= SIMD_AVX2) {
            some_any_avx2(tree, blocks, at + i, some, answers + i);
            continue;
        }
#endif
        some_any(tree, blocks, at + i, some, answers + i, false);
    }
}
