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
 * for what is low blocks; beside each block stands the least height of what follows it: a point
 * below that has nothing more in front. And a cell that one polygon covers whole knows a height
 * over which all is blocked. On real terrains that leaves 1.1 to 2.1 blocks of 1.2 to 7.5.
 *
 * Points go in steps, 64 together: one cell each, or one block of each that still has to ask. No
 * branch depends on a point, and what the next step reads is asked for in this one.
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

#include "base/huge.h"
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
typedef double doubles4 __attribute__((vector_size(32)));
typedef float floats4 __attribute__((vector_size(16)));
typedef int64_t longs4 __attribute__((vector_size(32)));

enum { MARGIN = 64, TOGETHER = 64 };

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

/* Behind the last of `count` polygons: lanes that no place is over, and no block. */
static void lanes_end(struct light_blocks *out, size_t first, uint32_t count)
{
    size_t last = first + (count + COLUMN_LANES - 1) / COLUMN_LANES - (count > 0);

    for (uint32_t i = count; i == 0 || i % COLUMN_LANES != 0; i++)
        out->blocks[last].c[0][i % COLUMN_LANES] = INT16_MIN;
    out->more_from[last] = NAN;
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
        if (i % COLUMN_LANES == 0 && i > 0)
            m->out->more_from[to - 1] = m->entries[i].least;
    }
    lanes_end(m->out, cell->first, cell->count);
    *limits = (struct light_cell){cell->first, m->entries[0].least, -float_under(-blocked_from),
                                  m->out->more_from[cell->first]};
}

static uint32_t grid_name(uint32_t first, uint32_t side)
{
    return LIGHT_INNER | (uint32_t)__builtin_ctz(side) << LIGHT_SIDE_SHIFT | first;
}

/* The list of no polygons: the block behind all others. */
static struct light_cell nothing(const struct mesh *tree)
{
    return (struct light_cell){(uint32_t)tree->columns.block_count, NAN, INFINITY, NAN};
}

static void cell_fill(const struct maker *m, uint32_t index, struct box2 box)
{
    const struct column_cell *cell = &m->tree->columns.cells[index];

    if (cell->count & COLUMN_INNER) {
        uint32_t side = cell->count & ~COLUMN_INNER;
        double w = (box.x_max - box.x_min) / side, h = (box.y_max - box.y_min) / side;

        m->out->cells[index] = nothing(m->tree); /* clear, until one looks */
        m->out->cells[index].first = grid_name(cell->first, side);
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
        m->out->cells[index] = nothing(m->tree);
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
    free(blocks->more_from);
    free(blocks->roots);
}

static size_t root_count(const struct mesh_columns *columns)
{
    return (size_t)columns->side * columns->side;
}

size_t light_blocks_bytes(const struct mesh *tree)
{
    const struct mesh_columns *columns = &tree->columns;

    return (columns->block_count + 1) * (sizeof(struct light_block) + sizeof(float)) +
           (columns->cell_count + 1) * sizeof(struct light_cell) +
           root_count(columns) * sizeof(uint32_t);
}

/* An empty cell of the root is a grid of one, too. */
static void roots_fill(const struct maker *m)
{
    const struct mesh_columns *columns = &m->tree->columns;
    double whole = (double)(1ull << COLUMN_PLACE);

    m->out->cells[columns->cell_count] = nothing(m->tree);
    lanes_end(m->out, columns->block_count, 0);
    for (uint32_t i = 0; i < root_count(columns); i++) {
        double w = whole / columns->scale_x, h = whole / columns->scale_y;
        double x = columns->x_min + (i % columns->side) * w;
        double y = columns->y_min + (i / columns->side) * h;

        cell_fill(m, i, (struct box2){x, y, x + w, y + h});
        m->out->roots[i] = columns->cells[i].count & COLUMN_INNER
                               ? m->out->cells[i].first
                               : grid_name((uint32_t)columns->cell_count, 1);
    }
}

bool light_blocks_make(const struct mesh *tree, const uint8_t *is_loose, double doubt_m,
                       struct light_blocks *out)
{
    const struct mesh_columns *columns = &tree->columns;
    size_t blocks = columns->block_count + 1, cells = columns->cell_count + 1;
    struct maker m = {tree, is_loose, out, NULL};

    *out = (struct light_blocks){.doubt_m = -float_under(-doubt_m)};
    if (cells > LIGHT_FIRST)
        return false;
    out->blocks = huge_alloc(blocks * sizeof *out->blocks); /* points come in any order */
    out->cells = aligned_alloc(64, (cells + 3) / 4 * 4 * sizeof *out->cells);
    out->more_from = calloc(blocks, sizeof *out->more_from);
    out->roots = calloc(root_count(columns) + 1, sizeof *out->roots);
    m.entries = malloc((longest_list(columns) + 1) * sizeof *m.entries);
    if (!out->blocks || !out->cells || !out->more_from || !out->roots || !m.entries) {
        free(m.entries);
        light_blocks_free(out);
        *out = (struct light_blocks){.blocks = NULL};
        return false;
    }
    memset(out->blocks, 0, blocks * sizeof *out->blocks);
    roots_fill(&m);
    free(m.entries);
    return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* A point of a cell, in what a block is asked by. */
struct spot {
    int16_t x, y;
    float z;
};

#ifdef LIGHT_HAS_AVX2
#define FOR_AVX2 __attribute__((target("avx2,bmi2")))

FOR_AVX2 static inline bool is_any_avx2(ints8 mask)
{
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
}

FOR_AVX2 static inline ints8 edge_avx2(const struct light_block *b, unsigned edge,
                                       const struct spot *at)
{
    int32_t both;
    __m128i ab = _mm_load_si128((const __m128i *)(const void *)b->ab[edge]);
    __m128i c = _mm_load_si128((const __m128i *)(const void *)b->c[edge]);

    memcpy(&both, at, sizeof both);
    return (ints8)_mm256_add_epi32(
        _mm256_madd_epi16(_mm256_cvtepi8_epi16(ab), _mm256_set1_epi32(both)),
        _mm256_slli_epi32(_mm256_cvtepi16_epi32(c), COLUMN_SHIFT));
}

FOR_AVX2 static inline ints8 least_avx2(ints8 a, ints8 b)
{
    return (ints8)_mm256_min_epi32((__m256i)a, (__m256i)b);
}
#endif

/* One edge of eight polygons. */
PLACE_INLINE ints8 edge_at(const struct light_block *b, unsigned edge, const struct spot *at,
                           bool has_avx2)
{
    shorts8 ab, c;

    (void)has_avx2;
#ifdef LIGHT_HAS_AVX2
    if (has_avx2)
        return edge_avx2(b, edge, at);
#endif
    memcpy(&ab, b->ab[edge], sizeof ab);
    memcpy(&c, b->c[edge], sizeof c);
    return __builtin_convertvector((shorts8)(ab << 8) >> 8, ints8) * at->x +
           __builtin_convertvector(ab >> 8, ints8) * at->y +
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

/* Of eight polygons: is one certainly in front, may one be? Both may be, and no branch depends on
 * it. */
PLACE_INLINE unsigned block_any(const struct light_block *b, const struct spot *at, float doubt_m,
                                bool has_avx2)
{
    ints8 e0 = edge_at(b, 0, at, has_avx2), e1 = edge_at(b, 1, at, has_avx2);
    ints8 e2 = edge_at(b, 2, at, has_avx2);
    ints8 two = least_of(&e0, &e1, has_avx2), inside = least_of(&two, &e2, has_avx2);
    floats8 plane, x_unit, y_unit;

    memcpy(&plane, b->z, sizeof plane);
    memcpy(&x_unit, b->x_unit, sizeof plane);
    memcpy(&y_unit, b->y_unit, sizeof plane);
    floats8 over = plane + x_unit * (float)at->x + y_unit * (float)at->y - at->z; /* the point */
    floats8 doubt = (size_of(&x_unit) + size_of(&y_unit)) * DOUBT_UNITS +
                    size_of(&plane) * DOUBT_HEIGHT + doubt_m;
    ints8 is_front = over<-doubt, is_behind = over> doubt;
    ints8 unsure = (inside >= 0) & ~is_behind;
    ints8 blocks_it = is_front & (inside >= 2 * COLUMN_DOUBT + MARGIN);

    return (unsigned)is_any(&unsure, has_avx2) * LIGHT_UNSURE |
           (unsigned)is_any(&blocks_it, has_avx2) * LIGHT_BLOCKED;
}

/* Some points on their way: each step of all before the next step of any, as in mesh_floor.c. */
struct some {
    double dx[TOGETHER], dy[TOGETHER]; /* places in the root, as place_begin has them */
    float z[TOGETHER];
    uint64_t x[TOGETHER], y[TOGETHER]; /* places in the cell */
    uint32_t cell[TOGETHER], block[TOGETHER];
    float more_from[TOGETHER]; /* of the block */
    struct spot spot[TOGETHER];
    uint8_t todo[TOGETHER];
};

PLACE_INLINE doubles4 gathered(const struct vec3 *const at[4], size_t axis)
{
    return (doubles4){(&at[0]->x)[axis], (&at[1]->x)[axis], (&at[2]->x)[axis], (&at[3]->x)[axis]};
}

/* From the locale's frame into the root's, four at a time. */
PLACE_INLINE void some_turn(const struct mesh *tree, const struct vec3 *origins, size_t count,
                            struct vec3 centre, double reach_m, struct some *some)
{
    const struct mesh_columns *columns = &tree->columns;
    const double *r = tree->header->rotation;

    for (size_t i = 0; i < count; i += 4) {
        const struct vec3 *first = origins + i;
        size_t last = count - 1 - i; /* in place of those behind it */
        const struct vec3 *at[4] = {first, first + (last < 1 ? last : 1),
                                    first + (last < 2 ? last : 2), first + (last < 3 ? last : 3)};
        doubles4 x = gathered(at, 0) - centre.x, y = gathered(at, 1) - centre.y;
        doubles4 z = gathered(at, 2) - centre.z;
        longs4 is_near = (x <= reach_m) & (x >= -reach_m) & (y <= reach_m) & (y >= -reach_m) &
                         (z <= reach_m) & (z >= -reach_m);
        doubles4 dx = (r[0] * x + r[1] * y + r[2] * z - columns->x_min) * columns->scale_x;
        doubles4 dy = (r[3] * x + r[4] * y + r[5] * z - columns->y_min) * columns->scale_y;
        doubles4 up = r[6] * x + r[7] * y + r[8] * z;

        dx = (doubles4)((longs4)dx | ~is_near); /* no number, and so outside */
        memcpy(&some->dx[i], &dx, sizeof dx);
        memcpy(&some->dy[i], &dy, sizeof dy);
        floats4 z_float = __builtin_convertvector(up, floats4);

        memcpy(&some->z[i], &z_float, sizeof z_float);
    }
}

/* Into the grid of that name. */
PLACE_INLINE void some_enter(const struct light_blocks *blocks, struct some *some, uint8_t i,
                             uint32_t name)
{
    unsigned bits = (name & ~LIGHT_INNER) >> LIGHT_SIDE_SHIFT;
    uint64_t x = some->x[i] << bits, y = some->y[i] << bits;
    uint32_t column = (uint32_t)(x >> COLUMN_PLACE), row = (uint32_t)(y >> COLUMN_PLACE);

    some->x[i] = x & PLACE_MASK;
    some->y[i] = y & PLACE_MASK;
    some->cell[i] = (name & LIGHT_FIRST) + (row << bits) + column;
    __builtin_prefetch(&blocks->cells[some->cell[i]]);
}

PLACE_INLINE void block_fetch(const struct light_block *block)
{
    __builtin_prefetch(block->ab);
    __builtin_prefetch((const char *)block + 64);
    __builtin_prefetch((const char *)block + 128);
}

/* Into the grids of the root; how many are in it, in todo. */
PLACE_INLINE size_t some_begin(const struct mesh *tree, const struct light_blocks *blocks,
                               size_t count, struct some *some, uint8_t *answers)
{
    size_t in = 0;

    for (size_t i = 0; i < count; i++) {
        struct place place;

        answers[i] = LIGHT_UNSURE;
        if (!place_at(tree, some->dx[i], some->dy[i], &place))
            continue;
        some->todo[in++] = (uint8_t)i;
        some->x[i] = place.x;
        some->y[i] = place.y;
        some_enter(blocks, some, (uint8_t)i, blocks->roots[place.cell - tree->columns.cells]);
    }
    return in;
}

/*
 * What the cells of `inner` tell without their lists; those that have to be asked are added to
 * todo, and those that are grids, and look as if they were clear, are left in inner.
 */
PLACE_INLINE size_t some_limits(const struct light_blocks *blocks, uint8_t *inner, size_t *count,
                                size_t lists, struct some *some, uint8_t *answers)
{
    size_t grids = 0;

    for (size_t k = 0; k < *count; k++) {
        uint8_t i = inner[k];
        const struct light_cell *cell = &blocks->cells[some->cell[i]];
        uint32_t x = (uint32_t)(some->x[i] >> UNIT_SHIFT), y = (uint32_t)(some->y[i] >> UNIT_SHIFT);
        float z = some->z[i];
        /* each worked out, and no branch that nobody can foretell */
        unsigned is_border = (x - 1 >= COLUMN_UNIT - 2) | (y - 1 >= COLUMN_UNIT - 2);
        unsigned is_blocked = z > cell->blocked_from, is_clear = !(z >= cell->clear_to);

        _Static_assert(LIGHT_CLEAR == 0 && LIGHT_BLOCKED == 1 && LIGHT_UNSURE == 2, "a sum");
        answers[i] = (uint8_t)(is_border ? LIGHT_UNSURE : is_blocked);
        some->spot[i] =
            (struct spot){(int16_t)(x - COLUMN_UNIT / 2), (int16_t)(y - COLUMN_UNIT / 2), z};
        some->block[i] = cell->first;
        some->more_from[i] = cell->more_from;
        inner[grids] = some->todo[lists] = i;
        grids += cell->first >= LIGHT_INNER;
        lists += !(is_border | is_blocked | is_clear);
        block_fetch(&blocks->blocks[cell->first & LIGHT_FIRST]);
    }
    *count = grids;
    return lists;
}

/* Down to the lists that have to be asked; how many, in todo. */
PLACE_INLINE size_t some_descend(const struct mesh *tree, const struct light_blocks *blocks,
                                 size_t count, struct some *some, uint8_t *answers)
{
    uint8_t inner[TOGETHER];
    size_t in = some_begin(tree, blocks, count, some, answers), lists = 0;

    memcpy(inner, some->todo, sizeof inner);
    for (;;) {
        lists = some_limits(blocks, inner, &in, lists, some, answers);
        if (in == 0)
            return lists;
        for (size_t k = 0; k < in; k++)
            some_enter(blocks, some, inner[k], some->block[inner[k]]);
    }
}

/* One block of each list; how many have more. */
PLACE_INLINE size_t some_blocks(const struct light_blocks *blocks, size_t lists, struct some *some,
                                uint8_t *answers, bool has_avx2)
{
    size_t more = 0;

    for (size_t k = 0; k < lists; k++) {
        uint8_t i = some->todo[k];
        unsigned answer =
            block_any(&blocks->blocks[some->block[i]], &some->spot[i], blocks->doubt_m, has_avx2);

        answers[i] |= (uint8_t)answer;
        some->todo[more] = i;
        more += ~answer & LIGHT_BLOCKED & (unsigned)(some->spot[i].z >= some->more_from[i]);
    }
    for (size_t k = 0; k < more; k++) {
        uint32_t block = ++some->block[some->todo[k]];

        some->more_from[some->todo[k]] = blocks->more_from[block];
        block_fetch(&blocks->blocks[block]);
    }
    return more;
}

PLACE_INLINE void some_any(const struct mesh *tree, const struct light_blocks *blocks,
                           const struct vec3 *origins, size_t count, struct vec3 centre,
                           double reach_m, uint8_t *answers, bool has_avx2)
{
    struct some some;
    size_t lists;

    some_turn(tree, origins, count, centre, reach_m, &some);
    lists = some_descend(tree, blocks, count, &some, answers);
    while (lists > 0)
        lists = some_blocks(blocks, lists, &some, answers, has_avx2);
}

#ifdef LIGHT_HAS_AVX2
FOR_AVX2 static void some_any_avx2(const struct mesh *tree, const struct light_blocks *blocks,
                                   const struct vec3 *origins, size_t count, struct vec3 centre,
                                   double reach_m, uint8_t *answers)
{
    some_any(tree, blocks, origins, count, centre, reach_m, answers, true);
}
#endif

void light_blocks_any(const struct mesh *tree, const struct light_blocks *blocks,
                      const struct vec3 *origins, size_t count, struct vec3 centre, double reach_m,
                      uint8_t *answers)
{
    for (size_t i = 0; i < count; i += TOGETHER) {
        size_t some = count - i < TOGETHER ? count - i : TOGETHER;

#ifdef LIGHT_HAS_AVX2
        if (tree->simd >= SIMD_AVX2) {
            some_any_avx2(tree, blocks, origins + i, some, centre, reach_m, answers + i);
            continue;
        }
#endif
        some_any(tree, blocks, origins + i, some, centre, reach_m, answers + i, false);
    }
}
