/*
 * What stands above and below a point (Q, "Accessing Terrain Data").
 *
 * The point is turned into the mesh's frame. Its cell of the columns (mesh_columns.c) tells which
 * floors are above it and below it; each of them is asked for its height. Where the columns do not
 * know, near the border of a cell or of the terrain, two comparisons a level of the quadtree lead
 * to a leaf, and each floor in its list is asked for its box, its edge lines, its height. A point
 * within `near` of a cut is looked up on both sides of it: leaf lists leave out floors that only
 * touch their leaf, which is what makes cuts through vertices worth making. Both ways give the same
 * bits.
 *
 * Edges are inclusive by the slack (mesh_data.h), so a point on an edge, a vertex or the outer
 * border always has the floor. A height that the slack has led beyond the polygon is held between
 * its lowest and its highest corner.
 *
 * Heights are compared along up. "At or below" forgives the slack, too: a point that was put on a
 * floor by an earlier answer stands on it.
 *
 * Two blocks are tested together, whether there is a second or not. With AVX-512 their sixteen
 * polygons are one vector, with AVX2 a block's eight, else two of SSE2, else a loop: the arithmetic
 * is of integers, so the answers cannot differ.
 */
#include "terrain/mesh_contact.h"
#include "terrain/mesh_place.h"

#include "base/check.h"
#include "terrain/radial.h"

#ifdef __SSE2__
#include <immintrin.h>
#define HAS_VECTORS
#endif

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* Nothing found yet. */
#define NO_POLYGON UINT32_MAX

/* Boxes are compared this many at a time before any edge is looked at. */
enum { LEAF_BATCH = 16 };

struct column {
    const struct mesh *mesh;
    double x, y;
    double limit; /* times sign: the best is the greatest not above it */
    double sign;
    double best;
    uint32_t polygon;
};

/* Is the point inside of all edge lines, or outside by no more than the slack? */
ALWAYS_INLINE bool is_inside(const struct column *c, const struct mesh_polygon *p)
{
    const struct mesh_line *line = c->mesh->lines + p->first;
    double least = -c->mesh->header->slack;
    bool inside = true;

    for (uint32_t i = 0; i < p->count; i++)
        inside &= line_value(&line[i], c->x, c->y) >= least;
    return inside;
}

/* The height of the polygon's plane, between its lowest and its highest corner. */
ALWAYS_INLINE double floor_z(const struct mesh_polygon *p, double x, double y)
{
#ifdef __SSE2__
    /* by pairs, and in the same order: the same bits */
    __m128d from = _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const void *)&p->x_min)));
    __m128d range = _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const void *)&p->z_min)));
    __m128d rise = _mm_mul_pd(_mm_loadu_pd(&p->slope_x), _mm_sub_pd(_mm_set_pd(y, x), from));
    __m128d z = _mm_add_sd(_mm_add_sd(_mm_load_sd(&p->height), rise), _mm_unpackhi_pd(rise, rise));

    return _mm_cvtsd_f64(_mm_min_sd(_mm_unpackhi_pd(range, range), _mm_max_sd(range, z)));
#else
    double low = (double)p->z_min, high = (double)p->z_max;
    double z =
        p->height + p->slope_x * (x - (double)p->x_min) + p->slope_y * (y - (double)p->y_min);

    z = z < low ? low : z;
    return z > high ? high : z;
#endif
}

/* Without a branch: which of the floors over one another is the best, nobody can foretell. */
ALWAYS_INLINE void floor_take(struct column *c, uint32_t polygon)
{
    double z = floor_z(&c->mesh->polygons[polygon], c->x, c->y) * c->sign;
    /* where two meet, the first: as in any other order of asking */
    bool is_best = (z <= c->limit) & ((z > c->best) | ((z == c->best) & (polygon < c->polygon)));

    c->best = is_best ? z : c->best;
    c->polygon = is_best ? polygon : c->polygon;
}

static inline void leaf_scan(struct column *c, const struct mesh_node *leaf)
{
    const struct mesh_polygon *polygons = c->mesh->polygons;
    const uint32_t *refs = c->mesh->leaf_refs + leaf->first;
    float x = (float)c->x, y = (float)c->y; /* boxes are rounded outward: safe to compare */
    uint32_t near_by[LEAF_BATCH];

    for (uint32_t left = leaf->as.leaf.floors; left > 0;) {
        uint32_t batch = left < LEAF_BATCH ? left : LEAF_BATCH, count = 0;

        for (uint32_t i = 0; i < batch; i++) {
            const struct mesh_polygon *p = &polygons[refs[i]];

            near_by[count] = refs[i];
            count += (x >= p->x_min) & (x <= p->x_max) & (y >= p->y_min) & (y <= p->y_max);
        }
        for (uint32_t i = 0; i < count; i++)
            if (is_inside(c, &polygons[near_by[i]]))
                floor_take(c, near_by[i]);
        refs += batch;
        left -= batch;
    }
}

/* Both sides of the cuts that are near. */
static void scan_near_cuts(struct column *c, uint32_t at)
{
    uint32_t stack[3 * MESH_DEPTH_MAX + 1], depth = 0;
    double near = c->mesh->header->near;

    stack[depth++] = at;
    while (depth > 0) {
        const struct mesh_node *n = &c->mesh->nodes[stack[--depth]];

        if (n->count != MESH_NODE_INNER) {
            leaf_scan(c, n);
            continue;
        }
        double dx = c->x - n->as.cut.x, dy = c->y - n->as.cut.y;

        for (uint32_t i = 0; i < 4; i++)
            if ((i & 1 ? dx >= -near : dx <= near) && (i & 2 ? dy >= -near : dy <= near))
                stack[depth++] = n->first + i;
    }
}

/* By the tree alone. */
static void tree_scan(struct column *c)
{
    const struct mesh_node *n = c->mesh->nodes;
    const struct box2 *root = &c->mesh->header->root;
    double near = c->mesh->header->near;

    if (!(c->x >= root->x_min - near && c->x <= root->x_max + near && c->y >= root->y_min - near &&
          c->y <= root->y_max + near))
        return;
    while (n->count == MESH_NODE_INNER) {
        double dx = c->x - n->as.cut.x, dy = c->y - n->as.cut.y;

        if (fabs(dx) <= near || fabs(dy) <= near) {
            scan_near_cuts(c, (uint32_t)(n - c->mesh->nodes));
            return;
        }
        n = c->mesh->nodes + n->first + ((dx >= 0) | (dy >= 0) << 1);
    }
    leaf_scan(c, n);
}

/* ---- by columns ----------------------------------------------------------------------------- */

/* Which lanes of a block are above the place, bit i for lane i; and where the lines must tell. */
struct lanes {
    unsigned maybe, doubt;
};

/* Part k of a block or of a pair. */
ALWAYS_INLINE const unsigned char *block_part(const struct column_block *b, bool is_pair,
                                              unsigned k)
{
    return b->bytes + k * column_step(is_pair);
}

/* The bytes from the first eight lanes to the second in a part, or to the first again. */
ALWAYS_INLINE size_t second_of(bool is_pair)
{
    return is_pair ? 2 * COLUMN_LANES : 0;
}

#ifdef __SSE2__
/* Four lanes. */
ALWAYS_INLINE __m128i edge_values(const struct column_block *b, bool is_pair, unsigned edge,
                                  size_t from, __m128i place)
{
    __m128i ab = _mm_loadl_epi64((const void *)(block_part(b, is_pair, edge) + from));
    __m128i c = _mm_loadl_epi64((const void *)(block_part(b, is_pair, COLUMN_EDGES + edge) + from));

    ab = _mm_srai_epi16(_mm_unpacklo_epi8(ab, ab), 8);
    c = _mm_srai_epi32(_mm_unpacklo_epi16(c, c), 16);
    return _mm_add_epi32(_mm_madd_epi16(ab, place), _mm_slli_epi32(c, COLUMN_SHIFT));
}

ALWAYS_INLINE unsigned sign_bits(__m128i v)
{
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(v));
}

/* Eight lanes, from these bytes of each part on. */
ALWAYS_INLINE struct lanes lanes_at(const struct column_block *b, bool is_pair, size_t from,
                                    int32_t x, int32_t y)
{
    const __m128i sure = _mm_set1_epi32(2 * COLUMN_DOUBT);
    __m128i place = _mm_set1_epi32(x | y << 16);
    unsigned out = 0, doubt = 0;

    for (unsigned half = 0; half < 2; half++) {
        __m128i e0 = edge_values(b, is_pair, 0, from + 8 * half, place),
                e1 = edge_values(b, is_pair, 1, from + 8 * half, place),
                e2 = edge_values(b, is_pair, 2, from + 8 * half, place);
        __m128i any = _mm_or_si128(_mm_or_si128(e0, e1), e2);

        e0 = _mm_sub_epi32(e0, sure);
        e1 = _mm_sub_epi32(e1, sure);
        e2 = _mm_sub_epi32(e2, sure);
        out |= sign_bits(any) << 4 * half;
        doubt |= sign_bits(_mm_or_si128(_mm_or_si128(e0, e1), e2)) << 4 * half;
    }
    return (struct lanes){~out & 0xff, doubt};
}
#else
ALWAYS_INLINE struct lanes lanes_at(const struct column_block *b, bool is_pair, size_t from,
                                    int32_t x, int32_t y)
{
    struct lanes lanes = {0, 0};

    for (unsigned i = 0; i < COLUMN_LANES; i++) {
        int32_t least = INT32_MAX;

        for (unsigned k = 0; k < COLUMN_EDGES; k++) {
            const int8_t *ab = (const void *)(block_part(b, is_pair, k) + from);
            const int16_t *c = (const void *)(block_part(b, is_pair, COLUMN_EDGES + k) + from);
            int32_t e = ab[2 * i] * x + ab[2 * i + 1] * y + c[i] * (1 << COLUMN_SHIFT);

            least = e < least ? e : least;
        }
        lanes.maybe |= (unsigned)(least >= 0) << i;
        lanes.doubt |= (unsigned)(least < 2 * COLUMN_DOUBT) << i;
    }
    return lanes;
}
#endif

/* The polygons of a block or of a pair, with their levels. */
ALWAYS_INLINE const uint32_t *block_polygons(const struct column_block *b, bool is_pair)
{
    return (const void *)block_part(b, is_pair, 2 * COLUMN_EDGES);
}

/* The lanes whose lowest point is not above a level, or whose highest point is not below it. */
ALWAYS_INLINE unsigned levels(const uint32_t *polygons, uint32_t level, bool is_low)
{
    unsigned out = 0;

    for (unsigned i = 0; i < COLUMN_LANES; i++) {
        uint32_t low = polygons[i] >> COLUMN_LOW_SHIFT;
        uint32_t high = polygons[i] >> COLUMN_HIGH_SHIFT & (COLUMN_LEVELS - 1);

        out |= (unsigned)(is_low ? low <= level : high >= level) << i;
    }
    return out;
}

#ifdef HAS_VECTORS
#define FOR_AVX2 __attribute__((target("avx2")))

FOR_AVX2 static inline __m256i edge_values_avx2(const struct column_block *b, bool is_pair,
                                                unsigned edge, size_t from, __m256i place)
{
    const unsigned char *at = block_part(b, is_pair, edge) + from;
    __m128i ab = _mm_load_si128((const void *)at);
    __m128i c = _mm_load_si128((const void *)(at + COLUMN_EDGES * column_step(is_pair)));

    return _mm256_add_epi32(_mm256_madd_epi16(_mm256_cvtepi8_epi16(ab), place),
                            _mm256_slli_epi32(_mm256_cvtepi16_epi32(c), COLUMN_SHIFT));
}

FOR_AVX2 static inline struct lanes lanes_at_avx2(const struct column_block *b, bool is_pair,
                                                  size_t from, int32_t x, int32_t y)
{
    __m256i place = _mm256_set1_epi32(x | y << 16);
    __m256i least = _mm256_min_epi32(_mm256_min_epi32(edge_values_avx2(b, is_pair, 0, from, place),
                                                      edge_values_avx2(b, is_pair, 1, from, place)),
                                     edge_values_avx2(b, is_pair, 2, from, place));
    __m256i sure = _mm256_sub_epi32(least, _mm256_set1_epi32(2 * COLUMN_DOUBT));

    return (struct lanes){
        ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(least)) & 0xff,
        (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(sure)),
    };
}

/* The lanes whose lowest point is not above a level, or whose highest point is not below it. */
FOR_AVX2 static inline unsigned levels_avx2(const uint32_t *polygons, uint32_t level, bool is_low)
{
    __m256i ids = _mm256_loadu_si256((const void *)polygons);
    __m256i from = _mm256_set1_epi32((int32_t)level), out;

    if (is_low)
        out = _mm256_cmpgt_epi32(_mm256_srli_epi32(ids, COLUMN_LOW_SHIFT), from);
    else
        out = _mm256_cmpgt_epi32(from,
                                 _mm256_srli_epi32(_mm256_slli_epi32(ids, 4), COLUMN_LOW_SHIFT));
    return ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(out)) & 0xff;
}

#define FOR_AVX512 __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl")))

/* Sixteen lanes; those that are not there are of what follows. */
FOR_AVX512 static inline __m512i edge_values_avx512(const struct column_block *b, bool is_pair,
                                                    unsigned edge, __m512i place)
{
    const unsigned char *at = block_part(b, is_pair, edge);
    __m256i ab = _mm256_loadu_si256((const void *)at);
    __m256i c = _mm256_loadu_si256((const void *)(at + COLUMN_EDGES * column_step(is_pair)));

    return _mm512_add_epi32(_mm512_madd_epi16(_mm512_cvtepi8_epi16(ab), place),
                            _mm512_slli_epi32(_mm512_cvtepi16_epi32(c), COLUMN_SHIFT));
}

/* Sixteen lanes at once. */
FOR_AVX512 static inline struct lanes pair_at_avx512(const struct column_block *b, bool is_pair,
                                                     int32_t x, int32_t y)
{
    __m512i place = _mm512_set1_epi32(x | y << 16);
    __m512i least = _mm512_min_epi32(_mm512_min_epi32(edge_values_avx512(b, is_pair, 0, place),
                                                      edge_values_avx512(b, is_pair, 1, place)),
                                     edge_values_avx512(b, is_pair, 2, place));

    return (struct lanes){
        _mm512_cmpge_epi32_mask(least, _mm512_setzero_si512()) & (0xffu | -(unsigned)is_pair),
        _mm512_cmplt_epi32_mask(least, _mm512_set1_epi32(2 * COLUMN_DOUBT)),
    };
}

/* As levels_avx2, of sixteen. */
FOR_AVX512 static inline unsigned pair_levels_avx512(const uint32_t *polygons, uint32_t level,
                                                     bool is_low)
{
    __m512i ids = _mm512_loadu_si512(polygons);
    __m512i from = _mm512_set1_epi32((int32_t)level);

    if (is_low)
        return _mm512_cmple_epi32_mask(_mm512_srli_epi32(ids, COLUMN_LOW_SHIFT), from);
    ids = _mm512_srli_epi32(_mm512_slli_epi32(ids, 4), COLUMN_LOW_SHIFT);
    return _mm512_cmpge_epi32_mask(ids, from);
}
#else
#define lanes_at_avx2 lanes_at
#endif

/* A block or a pair. Without a branch: both halves are asked even where there is one. */
ALWAYS_INLINE struct lanes pair_at(const struct column_block *b, bool is_pair, int32_t x, int32_t y,
                                   enum simd_level simd)
{
    size_t second = second_of(is_pair); /* the first again: no other line is touched */
    struct lanes low, high;

#ifdef HAS_VECTORS
    if (simd == SIMD_AVX512)
        return pair_at_avx512(b, is_pair, x, y);
#endif
    if (simd == SIMD_AVX2) {
        low = lanes_at_avx2(b, is_pair, 0, x, y);
        high = lanes_at_avx2(b, is_pair, second, x, y);
    } else {
        low = lanes_at(b, is_pair, 0, x, y);
        high = lanes_at(b, is_pair, second, x, y);
    }
    return (struct lanes){low.maybe | (high.maybe & -(unsigned)is_pair) << COLUMN_LANES,
                          low.doubt | high.doubt << COLUMN_LANES};
}

/* As levels_avx2, of a block or of a pair; of lanes that are not there anything. */
ALWAYS_INLINE unsigned pair_levels(const struct column_block *b, bool is_pair, uint32_t level,
                                   bool is_low, enum simd_level simd)
{
    const uint32_t *polygons = block_polygons(b, is_pair);
    const uint32_t *second = polygons + (is_pair ? COLUMN_LANES : 0);

#ifdef HAS_VECTORS
    if (simd == SIMD_AVX512)
        return pair_levels_avx512(polygons, level, is_low);
    if (simd == SIMD_AVX2)
        return levels_avx2(polygons, level, is_low) | levels_avx2(second, level, is_low)
                                                          << COLUMN_LANES;
#endif
    return levels(polygons, level, is_low) | levels(second, level, is_low) << COLUMN_LANES;
}

/* The polygons of two blocks that are there. */
ALWAYS_INLINE void pair_take(struct column *c, const struct column_block *b, bool is_two,
                             struct lanes lanes, enum simd_level simd)
{
    const struct mesh_columns *columns = &c->mesh->columns;

    while (lanes.maybe != 0) {
        unsigned i = (unsigned)__builtin_ctz(lanes.maybe);
        uint32_t polygon = block_polygons(b, is_two)[i] & COLUMN_POLYGON;

        lanes.maybe &= lanes.maybe - 1;
        if (lanes.doubt >> i & 1 && !is_inside(c, &c->mesh->polygons[polygon]))
            continue;
        floor_take(c, polygon);
        if (c->sign > 0 && columns->is_stacked) /* elsewhere there is no other, mostly */
            lanes.maybe &= pair_levels(b, is_two, column_level(columns, c->best), false, simd);
    }
}

/* Not too near to the leaf's border for its blocks to tell. */
ALWAYS_INLINE bool place_is_clear(const struct place *place)
{
    uint32_t x = (uint32_t)(place->x >> UNIT_SHIFT), y = (uint32_t)(place->y >> UNIT_SHIFT);

    return x - 1 < COLUMN_UNIT - 2 && y - 1 < COLUMN_UNIT - 2;
}

/* Which of two blocks' polygons are above the place or below it. */
ALWAYS_INLINE struct lanes place_lanes(const struct place *place, const struct column_block *b,
                                       bool is_two, enum simd_level simd)
{
    int32_t x = (int32_t)(place->x >> UNIT_SHIFT), y = (int32_t)(place->y >> UNIT_SHIFT);

    return pair_at(b, is_two, x, y, simd);
}

/* The polygons of two blocks that are above the place or below it. */
ALWAYS_INLINE void pair_scan(struct column *c, const struct place *place,
                             const struct column_block *b, bool is_two, enum simd_level simd)
{
    const struct mesh_columns *columns = &c->mesh->columns;
    struct lanes lanes = place_lanes(place, b, is_two, simd);

    if (c->sign > 0 && columns->is_stacked)
        lanes.maybe &= pair_levels(b, is_two, column_level(columns, c->limit), true, simd);
    pair_take(c, b, is_two, lanes, simd);
}

/* The blocks of the leaf; false when the place is too near to the leaf's border. */
ALWAYS_INLINE bool place_scan(struct column *c, const struct place *place, enum simd_level simd)
{
    const struct column_block *b = c->mesh->columns.blocks + place->cell->first;

    if (!place_is_clear(place))
        return place->cell->count == 0;
    for (int64_t left = place->cell->count; left > 0; left -= 2 * COLUMN_LANES, b += 2)
        pair_scan(c, place, b, left > COLUMN_LANES, simd);
    return true;
}

struct found {
    double best;
    uint32_t polygon;
};

/* Values in and out: a column whose address is known lives in memory. */
__attribute__((noinline)) static struct found tree_ask(const struct mesh *mesh, double x, double y,
                                                       double sign, double limit)
{
    struct column c = {mesh, x, y, limit, sign, -INFINITY, NO_POLYGON};

    tree_scan(&c);
    return (struct found){c.best, c.polygon};
}

ALWAYS_INLINE void column_scan(struct column *c, enum simd_level simd)
{
    struct place place;

    if (place_begin(c->mesh, c->x, c->y, &place)) {
        place_descend(c->mesh, &place);
        if (place_scan(c, &place, simd))
            return;
    }
    struct found found = tree_ask(c->mesh, c->x, c->y, c->sign, c->limit);

    c->best = found.best;
    c->polygon = found.polygon;
}

/* The two that follow are called from here, too: what a call gives back in memory is waited for. */
ALWAYS_INLINE struct vec3 floor_normal(const struct mesh *mesh, uint32_t polygon)
{
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    double square = p->slope_x * p->slope_x + p->slope_y * p->slope_y + 1;
    struct vec3 n = {-p->slope_x, -p->slope_y, 1};

    n = square < 1e300 ? vec3_scale(n, 1 / sqrt(square)) : vec3_unit(n);
    return mesh->is_turned ? mesh_turn_back(mesh->header, n) : n;
}

/* ---- questions ------------------------------------------------------------------------------ */

ALWAYS_INLINE struct column column_ask(const struct mesh *mesh, double x, double y, double sign,
                                       double limit, enum simd_level simd)
{
    struct column c = {.mesh = mesh,
                       .x = x,
                       .y = y,
                       .sign = sign,
                       .limit = sign * limit,
                       .best = -INFINITY,
                       .polygon = NO_POLYGON};

    column_scan(&c, simd);
    return c;
}

#ifdef HAS_VECTORS
FOR_AVX2 static struct column column_avx2(const struct mesh *mesh, double x, double y, double sign,
                                          double limit)
{
    return column_ask(mesh, x, y, sign, limit, SIMD_AVX2);
}

FOR_AVX512 static struct column column_avx512(const struct mesh *mesh, double x, double y,
                                              double sign, double limit)
{
    return column_ask(mesh, x, y, sign, limit, SIMD_AVX512);
}
#endif

static struct column column_any(const struct mesh *mesh, double x, double y, double sign,
                                double limit)
{
#ifdef HAS_VECTORS
    if (mesh->simd == SIMD_AVX512)
        return column_avx512(mesh, x, y, sign, limit);
    if (mesh->simd == SIMD_AVX2)
        return column_avx2(mesh, x, y, sign, limit);
#endif
    return column_ask(mesh, x, y, sign, limit, SIMD_SCALAR);
}

bool mesh_column(const struct mesh *mesh, double x, double y, bool is_up, double limit, double *z,
                 uint32_t *polygon)
{
    double sign = is_up ? -1 : 1;
    struct column c = column_any(mesh, x, y, sign, limit);

    if (c.polygon == NO_POLYGON)
        return false;
    *z = sign * c.best;
    *polygon = c.polygon;
    return true;
}

/* The point in the mesh's frame. */
ALWAYS_INLINE struct vec3 column_place(const struct mesh *mesh, struct vec3 point)
{
    return mesh->is_turned ? mesh_to_frame(mesh->header, point)
                           : vec3_sub(point, mesh->header->centre);
}

ALWAYS_INLINE struct vec3 column_point(const struct mesh *mesh, struct vec3 point, double z)
{
    struct vec3 up = mesh_up(mesh->header);
    /* in this order, so that a coordinate across gravity stays what it was */
    struct vec3 across = vec3_sub(point, vec3_scale(up, vec3_dot(up, point)));

    return vec3_add(across, vec3_scale(up, z + vec3_dot(up, mesh->header->centre)));
}

struct vec3 mesh_floor_normal(const struct mesh *mesh, uint32_t polygon)
{
    return floor_normal(mesh, polygon);
}

struct vec3 mesh_column_point(const struct mesh *mesh, struct vec3 point, double z)
{
    return column_point(mesh, point, z);
}

/* at is in the mesh's frame. */
ALWAYS_INLINE void contact_fill(const struct mesh *mesh, struct vec3 point, struct vec3 at,
                                double z, uint32_t polygon, struct mesh_contact *out)
{
    out->point = column_point(mesh, point, z);
    out->normal = floor_normal(mesh, polygon);
    out->distance_m = at.z - z;
    out->polygon = mesh->polygons[polygon].source;
}

bool mesh_floor(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                struct mesh_contact *out)
{
    if (mesh->radial)
        return radial_floor(mesh->radial, point, reach_up_m, out);
    struct vec3 at = column_place(mesh, point);
    double z;
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, false, at.z + reach_up_m + mesh->header->slack, &z,
                     &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
}

/*
 * By all that there is: near the border of a cell, by the tree, and in long lists. A call of its
 * own at the end of the others, so that those save nothing on the stack.
 */
__attribute__((noinline)) static bool floor_height_long(const struct mesh *mesh, double x, double y,
                                                        double limit, struct mesh_height *out)
{
    struct column c = column_any(mesh, x, y, 1, limit);

    if (c.polygon == NO_POLYGON)
        return false;
    *out = (struct mesh_height){c.best + mesh->lift, mesh->polygons[c.polygon].source};
    return true;
}

/* What floor_height_more is asked for: the polygons that are left of two blocks. */
struct rest {
    const struct column_block *blocks;
    struct lanes lanes;
    bool is_two;
};

/* One after the other. */
ALWAYS_INLINE bool rest_take(const struct mesh *mesh, double x, double y, double limit,
                             struct rest rest, struct mesh_height *out, enum simd_level simd)
{
    struct column c = {.mesh = mesh,
                       .x = x,
                       .y = y,
                       .sign = 1,
                       .limit = limit,
                       .best = -INFINITY,
                       .polygon = NO_POLYGON};

    pair_take(&c, rest.blocks, rest.is_two, rest.lanes, simd);
    if (c.polygon == NO_POLYGON)
        return false;
    *out = (struct mesh_height){c.best + mesh->lift, mesh->polygons[c.polygon].source};
    return true;
}

/* Not inlined, so that what they save on the stack is not saved for a single floor. */
__attribute__((noinline)) static bool rest_take_plain(const struct mesh *mesh, double x, double y,
                                                      double limit, struct rest rest,
                                                      struct mesh_height *out)
{
    return rest_take(mesh, x, y, limit, rest, out, SIMD_SCALAR);
}

#ifdef HAS_VECTORS
FOR_AVX2 __attribute__((noinline)) static bool rest_take_avx2(const struct mesh *mesh, double x,
                                                              double y, double limit,
                                                              struct rest rest,
                                                              struct mesh_height *out)
{
    return rest_take(mesh, x, y, limit, rest, out, SIMD_AVX2);
}

FOR_AVX512 __attribute__((noinline)) static bool rest_take_avx512(const struct mesh *mesh, double x,
                                                                  double y, double limit,
                                                                  struct rest rest,
                                                                  struct mesh_height *out)
{
    return rest_take(mesh, x, y, limit, rest, out, SIMD_AVX512);
}
#endif

ALWAYS_INLINE bool rest_take_by(const struct mesh *mesh, double x, double y, double limit,
                                struct rest rest, struct mesh_height *out, enum simd_level simd)
{
#ifdef HAS_VECTORS
    if (simd == SIMD_AVX512)
        return rest_take_avx512(mesh, x, y, limit, rest, out);
    if (simd == SIMD_AVX2)
        return rest_take_avx2(mesh, x, y, limit, rest, out);
#endif
    return rest_take_plain(mesh, x, y, limit, rest, out);
}

/*
 * The highest of the polygons of two blocks. Mostly there is one, and the first is it: all else is
 * a call at the end.
 */
ALWAYS_INLINE bool floor_of_blocks(const struct mesh *mesh, double x, double y, double limit,
                                   struct rest rest, struct mesh_height *out, enum simd_level simd)
{
    const struct mesh_columns *columns = &mesh->columns;
    const struct column_block *b = rest.blocks;

    if (columns->is_stacked)
        rest.lanes.maybe &= pair_levels(b, rest.is_two, column_level(columns, limit), true, simd);
    if (rest.lanes.maybe == 0)
        return false;
    size_t i = (size_t)__builtin_ctz(rest.lanes.maybe);
    unsigned others = rest.lanes.maybe & (rest.lanes.maybe - 1);
    uint32_t polygon = block_polygons(b, rest.is_two)[i] & COLUMN_POLYGON;
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    double z = floor_z(p, x, y);

    if (columns->is_stacked && z <= limit)
        others &= pair_levels(b, rest.is_two, column_level(columns, z), false, simd);
    if ((others | (rest.lanes.maybe & rest.lanes.doubt)) != 0)
        return rest_take_by(mesh, x, y, limit, rest, out, simd);
    if (!(z <= limit))
        return false;
    *out = (struct mesh_height){z + mesh->lift, p->source};
    return true;
}

/* Two blocks at most. Several questions are under way at once, so each instruction counts. */
ALWAYS_INLINE bool floor_height(const struct mesh *mesh, double point_x, double point_y,
                                double point_z, double reach_up_m, struct mesh_height *out,
                                enum simd_level simd)
{
    struct vec3 at = column_place(mesh, (struct vec3){point_x, point_y, point_z});
    double limit = at.z + reach_up_m + mesh->header->slack;
    struct place place;

    if (!place_begin(mesh, at.x, at.y, &place))
        return floor_height_long(mesh, at.x, at.y, limit, out);
    place_descend(mesh, &place);
    if (place.cell->count == 0)
        return false;
    if (place.cell->count > 2 * COLUMN_LANES || !place_is_clear(&place))
        return floor_height_long(mesh, at.x, at.y, limit, out);
    struct rest rest = {.blocks = mesh->columns.blocks + place.cell->first,
                        .is_two = place.cell->count > COLUMN_LANES};

    rest.lanes = place_lanes(&place, rest.blocks, rest.is_two, simd);
    return floor_of_blocks(mesh, at.x, at.y, limit, rest, out, simd);
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
    return floor_height(mesh, x, y, z, reach_up_m, out, SIMD_SCALAR);
}

#ifdef HAS_VECTORS
FOR_AVX2 static bool floor_height_avx2(const struct mesh *mesh, double x, double y, double z,
                                       double reach_up_m, struct mesh_height *out)
{
    return floor_height(mesh, x, y, z, reach_up_m, out, SIMD_AVX2);
}

FOR_AVX512 static bool floor_height_avx512(const struct mesh *mesh, double x, double y, double z,
                                           double reach_up_m, struct mesh_height *out)
{
    return floor_height(mesh, x, y, z, reach_up_m, out, SIMD_AVX512);
}
#endif

bool mesh_floor_height_at(const struct mesh *mesh, double x, double y, double z, double reach_up_m,
                          struct mesh_height *out)
{
#ifdef HAS_VECTORS
    if (mesh->simd == SIMD_AVX512)
        return floor_height_avx512(mesh, x, y, z, reach_up_m, out);
    if (mesh->simd == SIMD_AVX2)
        return floor_height_avx2(mesh, x, y, z, reach_up_m, out);
#endif
    return floor_height_plain(mesh, x, y, z, reach_up_m, out);
}

/* ---- many points ---------------------------------------------------------------------------- */

enum { BATCH = 16 };

/*
 * Each step of all points of a batch before the next step of any: what a step reads was asked for
 * by the step before, so the memory answers many at once.
 */
ALWAYS_INLINE void floor_batch(const struct mesh *mesh, const struct vec3 *points, size_t count,
                               double reach_up_m, struct mesh_height *out, enum simd_level simd)
{
    struct place place[BATCH];
    struct vec3 at[BATCH];
    bool is_in[BATCH];

    for (size_t i = 0; i < count; i++) {
        at[i] = column_place(mesh, points[i]);
        is_in[i] = place_begin(mesh, at[i].x, at[i].y, &place[i]);
        if (!is_in[i])
            place[i].cell = mesh->columns.cells;
        __builtin_prefetch(place[i].cell);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_in[i])
            continue;
        place_descend(mesh, &place[i]);
        const struct column_block *block = mesh->columns.blocks + place[i].cell->first;

        __builtin_prefetch(block->bytes);
        __builtin_prefetch(block->bytes + 64);
        block += place[i].cell->count > COLUMN_LANES; /* or the same again */
        __builtin_prefetch(block->bytes);
        __builtin_prefetch(block->bytes + 64);
    }
    for (size_t i = 0; i < count; i++) {
        struct column c = {.mesh = mesh,
                           .x = at[i].x,
                           .y = at[i].y,
                           .sign = 1,
                           .limit = at[i].z + reach_up_m + mesh->header->slack,
                           .best = -INFINITY,
                           .polygon = NO_POLYGON};

        if (!is_in[i] || !place_scan(&c, &place[i], simd)) {
            struct found found = tree_ask(mesh, c.x, c.y, c.sign, c.limit);

            c.best = found.best;
            c.polygon = found.polygon;
        }
        out[i] = c.polygon == NO_POLYGON
                     ? (struct mesh_height){NAN, MESH_NO_POLYGON}
                     : (struct mesh_height){c.best + mesh->lift, mesh->polygons[c.polygon].source};
    }
}

#ifdef HAS_VECTORS
FOR_AVX2 static void floor_batch_avx2(const struct mesh *mesh, const struct vec3 *points,
                                      size_t count, double reach_up_m, struct mesh_height *out)
{
    floor_batch(mesh, points, count, reach_up_m, out, SIMD_AVX2);
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
    CHECK(!mesh->radial);
    for (size_t i = 0; i < count; i += BATCH) {
        size_t some = count - i < BATCH ? count - i : BATCH;

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

bool mesh_ceiling(const struct mesh *mesh, struct vec3 point, double above_m, double lift_m,
                  struct mesh_contact *out)
{
    if (mesh->radial)
        return radial_ceiling(mesh->radial, point, above_m, lift_m, out);
    struct vec3 at = mesh_to_frame(mesh->header, point);
    double slack = mesh->header->slack, z;
    double above = nextafter(at.z + above_m + slack, INFINITY);
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, true, fmax(above, at.z + lift_m - slack), &z, &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
}
