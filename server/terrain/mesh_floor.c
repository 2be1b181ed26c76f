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
 * Two blocks are tested together, whether there is a second or not. With AVX2 a block's eight
 * polygons are one vector, else two of SSE2, else a loop: the arithmetic is of integers, so the
 * answers cannot differ.
 */
#include "terrain/mesh_contact.h"

#ifdef __SSE2__
#include <immintrin.h>
#define HAS_AVX2
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

/* Without a branch: which of the floors over one another is the best, nobody can foretell. */
ALWAYS_INLINE void floor_take(struct column *c, uint32_t polygon)
{
    const struct mesh_polygon *p = &c->mesh->polygons[polygon];
    double low = (double)p->z_min, high = (double)p->z_max;
    double z =
        p->height + p->slope_x * (c->x - (double)p->x_min) + p->slope_y * (c->y - (double)p->y_min);

    z = z < low ? low : z;
    z = (z > high ? high : z) * c->sign;
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

#ifdef __SSE2__
ALWAYS_INLINE __m128i edge_values(const struct column_block *b, unsigned edge, unsigned half,
                                  __m128i place)
{
    __m128i ab = _mm_loadl_epi64((const __m128i *)(const void *)b->ab[edge][4 * half]);
    __m128i c = _mm_loadl_epi64((const __m128i *)(const void *)&b->c[edge][4 * half]);

    ab = _mm_srai_epi16(_mm_unpacklo_epi8(ab, ab), 8);
    c = _mm_srai_epi32(_mm_unpacklo_epi16(c, c), 16);
    return _mm_add_epi32(_mm_madd_epi16(ab, place), _mm_slli_epi32(c, COLUMN_SHIFT));
}

ALWAYS_INLINE unsigned sign_bits(__m128i v)
{
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(v));
}

ALWAYS_INLINE struct lanes lanes_at(const struct column_block *b, int32_t x, int32_t y)
{
    const __m128i sure = _mm_set1_epi32(2 * COLUMN_DOUBT);
    __m128i place = _mm_set1_epi32((int32_t)((uint32_t)(x & 0xffff) | (uint32_t)y << 16));
    unsigned out = 0, doubt = 0;

    for (unsigned half = 0; half < 2; half++) {
        __m128i e0 = edge_values(b, 0, half, place), e1 = edge_values(b, 1, half, place),
                e2 = edge_values(b, 2, half, place);
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
ALWAYS_INLINE struct lanes lanes_at(const struct column_block *b, int32_t x, int32_t y)
{
    struct lanes lanes = {0, 0};

    for (unsigned i = 0; i < COLUMN_LANES; i++) {
        int32_t least = INT32_MAX;

        for (unsigned k = 0; k < COLUMN_EDGES; k++) {
            int32_t e = b->ab[k][i][0] * x + b->ab[k][i][1] * y + b->c[k][i] * (1 << COLUMN_SHIFT);

            least = e < least ? e : least;
        }
        lanes.maybe |= (unsigned)(least >= 0) << i;
        lanes.doubt |= (unsigned)(least < 2 * COLUMN_DOUBT) << i;
    }
    return lanes;
}
#endif

/* The lanes whose lowest point is not above a level, or whose highest point is not below it. */
ALWAYS_INLINE unsigned levels(const struct column_block *b, uint32_t level, bool is_low)
{
    unsigned out = 0;

    for (unsigned i = 0; i < COLUMN_LANES; i++) {
        uint32_t low = b->polygon[i] >> COLUMN_LOW_SHIFT;
        uint32_t high = b->polygon[i] >> COLUMN_HIGH_SHIFT & (COLUMN_LEVELS - 1);

        out |= (unsigned)(is_low ? low <= level : high >= level) << i;
    }
    return out;
}

#ifdef HAS_AVX2
#define FOR_AVX2 __attribute__((target("avx2")))

FOR_AVX2 static inline __m256i edge_values_avx2(const struct column_block *b, unsigned edge,
                                                __m256i place)
{
    __m128i ab = _mm_load_si128((const __m128i *)(const void *)b->ab[edge]);
    __m128i c = _mm_load_si128((const __m128i *)(const void *)b->c[edge]);

    return _mm256_add_epi32(_mm256_madd_epi16(_mm256_cvtepi8_epi16(ab), place),
                            _mm256_slli_epi32(_mm256_cvtepi16_epi32(c), COLUMN_SHIFT));
}

FOR_AVX2 static inline struct lanes lanes_at_avx2(const struct column_block *b, int32_t x,
                                                  int32_t y)
{
    __m256i place = _mm256_set1_epi32((int32_t)((uint32_t)(x & 0xffff) | (uint32_t)y << 16));
    __m256i least = _mm256_min_epi32(
        _mm256_min_epi32(edge_values_avx2(b, 0, place), edge_values_avx2(b, 1, place)),
        edge_values_avx2(b, 2, place));
    __m256i sure = _mm256_sub_epi32(least, _mm256_set1_epi32(2 * COLUMN_DOUBT));

    return (struct lanes){
        ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(least)) & 0xff,
        (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(sure)),
    };
}

/* The lanes whose lowest point is not above a level, or whose highest point is not below it. */
FOR_AVX2 static inline unsigned levels_avx2(const struct column_block *b, uint32_t level,
                                            bool is_low)
{
    __m256i ids = _mm256_loadu_si256((const __m256i *)(const void *)b->polygon);
    __m256i from = _mm256_set1_epi32((int32_t)level), out;

    if (is_low)
        out = _mm256_cmpgt_epi32(_mm256_srli_epi32(ids, COLUMN_LOW_SHIFT), from);
    else
        out = _mm256_cmpgt_epi32(from,
                                 _mm256_srli_epi32(_mm256_slli_epi32(ids, 4), COLUMN_LOW_SHIFT));
    return ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(out)) & 0xff;
}
#else
#define lanes_at_avx2 lanes_at
#endif

/* A cell of the grid, and the point's place in it. */
struct place {
    const struct column_cell *cell;
    uint64_t x, y; /* of the cell: 0 up to 2^COLUMN_PLACE */
};

#define PLACE_FAR 0x1p62 /* beyond any grid */
#define UNIT_SHIFT (COLUMN_PLACE - 15)
#define PLACE_MASK ((1ull << COLUMN_PLACE) - 1)

/* The root's cell; false outside of the grid. */
ALWAYS_INLINE bool place_begin(const struct mesh *mesh, double at_x, double at_y,
                               struct place *place)
{
    const struct mesh_columns *columns = &mesh->columns;
    double dx = (at_x - columns->x_min) * columns->scale_x;
    double dy = (at_y - columns->y_min) * columns->scale_y;

#ifdef __x86_64__
    /* what is no number, or too large, becomes the least integer */
    uint64_t x = (uint64_t)_mm_cvttsd_si64(_mm_set_sd(dx));
    uint64_t y = (uint64_t)_mm_cvttsd_si64(_mm_set_sd(dy));
#else
    if (!(fabs(dx) < PLACE_FAR && fabs(dy) < PLACE_FAR))
        return false;
    uint64_t x = (uint64_t)(int64_t)dx, y = (uint64_t)(int64_t)dy;
#endif

    /* what is cut off below 0 is in the border, where the tree is asked */
    if (x >= columns->side_limit || y >= columns->side_limit)
        return false;
    *place =
        (struct place){columns->cells + (y >> COLUMN_PLACE) * columns->side + (x >> COLUMN_PLACE),
                       x & PLACE_MASK, y & PLACE_MASK};
    return true;
}

/* Into the grid of an inner cell. */
ALWAYS_INLINE struct place place_inside(const struct mesh *mesh, struct place place)
{
    uint64_t side = place.cell->count & ~COLUMN_INNER;
    uint64_t x = place.x * side, y = place.y * side;

    return (struct place){mesh->columns.cells + place.cell->first + (y >> COLUMN_PLACE) * side +
                              (x >> COLUMN_PLACE),
                          x & PLACE_MASK, y & PLACE_MASK};
}

/* How deep, nobody can foretell: a cell of the root is inner or empty, and most need no more. */
ALWAYS_INLINE void place_descend(const struct mesh *mesh, struct place *place)
{
    if (!(place->cell->count & COLUMN_INNER))
        return;
    *place = place_inside(mesh, *place);
    while (place->cell->count & COLUMN_INNER)
        *place = place_inside(mesh, *place);
}

/* Two blocks that follow one another; the second counts as empty when it is not there. */
ALWAYS_INLINE struct lanes pair_at(const struct column_block *b, bool is_two, int32_t x, int32_t y,
                                   bool has_avx2)
{
    const struct column_block *second = b + is_two; /* the first again: no other line is touched */
    struct lanes low = has_avx2 ? lanes_at_avx2(b, x, y) : lanes_at(b, x, y);
    struct lanes high = has_avx2 ? lanes_at_avx2(second, x, y) : lanes_at(second, x, y);

    return (struct lanes){low.maybe | (high.maybe & -(unsigned)is_two) << COLUMN_LANES,
                          low.doubt | high.doubt << COLUMN_LANES};
}

/* The lanes whose lowest point is not above a level, or whose highest point is not below it. */
ALWAYS_INLINE unsigned pair_levels(const struct column_block *b, bool is_two, uint32_t level,
                                   bool is_low, bool has_avx2)
{
#ifdef HAS_AVX2
    if (has_avx2)
        return levels_avx2(b, level, is_low) | levels_avx2(b + is_two, level, is_low)
                                                   << COLUMN_LANES;
#endif
    return levels(b, level, is_low) | levels(b + is_two, level, is_low) << COLUMN_LANES;
}

/* The polygons of two blocks that are there. */
ALWAYS_INLINE void pair_take(struct column *c, const struct column_block *b, bool is_two,
                             struct lanes lanes, bool has_avx2)
{
    const struct mesh_columns *columns = &c->mesh->columns;

    while (lanes.maybe != 0) {
        unsigned i = (unsigned)__builtin_ctz(lanes.maybe);
        uint32_t polygon = b[i / COLUMN_LANES].polygon[i % COLUMN_LANES] & COLUMN_POLYGON;

        lanes.maybe &= lanes.maybe - 1;
        if (lanes.doubt >> i & 1 && !is_inside(c, &c->mesh->polygons[polygon]))
            continue;
        floor_take(c, polygon);
        if (c->sign > 0 && (columns->is_stacked || lanes.maybe != 0)) /* else foreseen: none */
            lanes.maybe &= pair_levels(b, is_two, column_level(columns, c->best), false, has_avx2);
    }
}

/* The blocks of the leaf; false when the place is too near to the leaf's border. */
ALWAYS_INLINE bool place_scan(struct column *c, const struct place *place, bool has_avx2)
{
    int32_t x = (int32_t)(place->x >> UNIT_SHIFT), y = (int32_t)(place->y >> UNIT_SHIFT);
    const struct column_block *b = c->mesh->columns.blocks + place->cell->first;

    if ((uint32_t)x - 1 >= COLUMN_UNIT - 2 || (uint32_t)y - 1 >= COLUMN_UNIT - 2)
        return place->cell->count == 0;
    x -= COLUMN_UNIT / 2;
    y -= COLUMN_UNIT / 2;
    uint32_t level = column_level(&c->mesh->columns, c->limit);

    for (int64_t left = place->cell->count; left > 0; left -= 2 * COLUMN_LANES, b += 2) {
        bool is_two = left > COLUMN_LANES;
        struct lanes lanes = pair_at(b, is_two, x, y, has_avx2);

        if (c->sign > 0)
            lanes.maybe &= pair_levels(b, is_two, level, true, has_avx2);
        pair_take(c, b, is_two, lanes, has_avx2);
    }
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

ALWAYS_INLINE void column_scan(struct column *c, bool has_avx2)
{
    struct place place;

    if (place_begin(c->mesh, c->x, c->y, &place)) {
        place_descend(c->mesh, &place);
        if (place_scan(c, &place, has_avx2))
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
                                       double limit, bool has_avx2)
{
    struct column c = {.mesh = mesh,
                       .x = x,
                       .y = y,
                       .sign = sign,
                       .limit = sign * limit,
                       .best = -INFINITY,
                       .polygon = NO_POLYGON};

    column_scan(&c, has_avx2);
    return c;
}

#ifdef HAS_AVX2
FOR_AVX2 static struct column column_avx2(const struct mesh *mesh, double x, double y, double sign,
                                          double limit)
{
    return column_ask(mesh, x, y, sign, limit, true);
}
#endif

static struct column column_any(const struct mesh *mesh, double x, double y, double sign,
                                double limit)
{
#ifdef HAS_AVX2
    if (mesh->has_avx2)
        return column_avx2(mesh, x, y, sign, limit);
#endif
    return column_ask(mesh, x, y, sign, limit, false);
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
    struct vec3 at = column_place(mesh, point);
    double z;
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, false, at.z + reach_up_m + mesh->header->slack, &z,
                     &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
}

ALWAYS_INLINE bool floor_height(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                                struct mesh_height *out, bool has_avx2)
{
    struct vec3 at = column_place(mesh, point);
    struct column c =
        column_ask(mesh, at.x, at.y, 1, at.z + reach_up_m + mesh->header->slack, has_avx2);

    if (c.polygon == NO_POLYGON)
        return false;
    *out = (struct mesh_height){c.best + mesh->lift, mesh->polygons[c.polygon].source};
    return true;
}

/* Not inlined: what it saves on the stack would be saved before the other is called, too. */
__attribute__((noinline)) static bool floor_height_plain(const struct mesh *mesh, struct vec3 point,
                                                         double reach_up_m, struct mesh_height *out)
{
    return floor_height(mesh, point, reach_up_m, out, false);
}

#ifdef HAS_AVX2
FOR_AVX2 static bool floor_height_avx2(const struct mesh *mesh, struct vec3 point,
                                       double reach_up_m, struct mesh_height *out)
{
    return floor_height(mesh, point, reach_up_m, out, true);
}
#endif

bool mesh_floor_height(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                       struct mesh_height *out)
{
#ifdef HAS_AVX2
    if (mesh->has_avx2)
        return floor_height_avx2(mesh, point, reach_up_m, out);
#endif
    return floor_height_plain(mesh, point, reach_up_m, out);
}

/* ---- many points ---------------------------------------------------------------------------- */

enum { BATCH = 16 };

/*
 * Each step of all points of a batch before the next step of any: what a step reads was asked for
 * by the step before, so the memory answers many at once.
 */
ALWAYS_INLINE void floor_batch(const struct mesh *mesh, const struct vec3 *points, size_t count,
                               double reach_up_m, struct mesh_height *out, bool has_avx2)
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

        __builtin_prefetch(block->ab);
        __builtin_prefetch(block->polygon);
        block += place[i].cell->count > COLUMN_LANES; /* or the same again */
        __builtin_prefetch(block->ab);
        __builtin_prefetch(block->polygon);
    }
    for (size_t i = 0; i < count; i++) {
        struct column c = {.mesh = mesh,
                           .x = at[i].x,
                           .y = at[i].y,
                           .sign = 1,
                           .limit = at[i].z + reach_up_m + mesh->header->slack,
                           .best = -INFINITY,
                           .polygon = NO_POLYGON};

        if (!is_in[i] || !place_scan(&c, &place[i], has_avx2)) {
            struct found found = tree_ask(mesh, c.x, c.y, c.sign, c.limit);

            c.best = found.best;
            c.polygon = found.polygon;
        }
        out[i] = c.polygon == NO_POLYGON
                     ? (struct mesh_height){NAN, MESH_NO_POLYGON}
                     : (struct mesh_height){c.best + mesh->lift, mesh->polygons[c.polygon].source};
    }
}

#ifdef HAS_AVX2
FOR_AVX2 static void floor_batch_avx2(const struct mesh *mesh, const struct vec3 *points,
                                      size_t count, double reach_up_m, struct mesh_height *out)
{
    floor_batch(mesh, points, count, reach_up_m, out, true);
}
#endif

void mesh_floor_heights(const struct mesh *mesh, const struct vec3 *points, size_t count,
                        double reach_up_m, struct mesh_height *out)
{
    for (size_t i = 0; i < count; i += BATCH) {
        size_t some = count - i < BATCH ? count - i : BATCH;

#ifdef HAS_AVX2
        if (mesh->has_avx2) {
            floor_batch_avx2(mesh, points + i, some, reach_up_m, out + i);
            continue;
        }
#endif
        floor_batch(mesh, points + i, some, reach_up_m, out + i, false);
    }
}

bool mesh_ceiling(const struct mesh *mesh, struct vec3 point, double above_m, double lift_m,
                  struct mesh_contact *out)
{
    struct vec3 at = mesh_to_frame(mesh->header, point);
    double slack = mesh->header->slack, z;
    double above = nextafter(at.z + above_m + slack, INFINITY);
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, true, fmax(above, at.z + lift_m - slack), &z, &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
}
