/*
 * A tree of boxes with eight children a node: which of many polygons a line may meet. Its tests
 * work in float32 and let pass all that they cannot rule out; each polygon that is left goes to the
 * caller's test, which decides in double precision. So the tree changes no bit of an answer, and
 * neither does the level of vector instructions. Private to terrain/.
 *
 * Polygons are cut into fans of triangles, eight of them a block, side by side; a node's eight
 * boxes lie side by side, too. 24 bytes a triangle and 224 a node: about 40 bytes a triangle in
 * all.
 *
 * Coordinates are the tree's own: (p - middle) * scale, scale a power of two, so that all corners
 * are within -1 .. 1.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_H
#define KOTA_TERRAIN_RAY_TREE_H

#include "base/pace.h"
#include "terrain/bvh/face.h"
#include "terrain/kernels/simd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    RAY_TREE_WIDE = 8,
    /* The most that waits: seven a level, and the last. */
    RAY_TREE_DEPTH = 72, /* no block is deeper */
    RAY_TREE_STACK = (RAY_TREE_WIDE - 1) * (RAY_TREE_DEPTH + 1) + 1
};

#define RAY_TREE_BLOCK 0x80000000u /* a child that is a block */
#define RAY_TREE_PART 0x80000000u  /* of a polygon that is no triangle */
#define RAY_TREE_NONE UINT32_MAX   /* no triangle */

static inline uint32_t ray_tree_block_of(uint32_t child)
{
    return (child & ~RAY_TREE_BLOCK) / RAY_TREE_WIDE;
}

static inline unsigned ray_tree_count_of(uint32_t child)
{
    return child % RAY_TREE_WIDE + 1;
}

struct ray_tree_node {
    _Alignas(32) float side[3][2][RAY_TREE_WIDE]; /* of axis: low, high; none: +inf, -inf */
    uint32_t child[RAY_TREE_WIDE]; /* a node, or RAY_TREE_BLOCK | 8 block + triangles - 1 */
};

/* Corners on a grid of 2^16 over the block's box: base + step at, rounded to the nearest. */
struct ray_tree_block {
    _Alignas(32) float base[3];
    float step;                       /* a power of two */
    uint16_t at[3][3][RAY_TREE_WIDE]; /* of corner and axis; after the last: 0 */
    uint32_t polygon[RAY_TREE_WIDE];  /* RAY_TREE_PART: it has more corners */
};

struct ray_tree {
    struct ray_tree_node *nodes; /* the root first, children after their parents */
    struct ray_tree_block *blocks;
    size_t node_count, block_count, triangle_count;
    uint32_t depth; /* nodes above the deepest block */
    double middle[3], scale;
    double low[3], high[3]; /* of all, grown, in the polygons' coordinates */
    float turn_slack;       /* the error of a turn around the line, times places */
    float end_slack;        /* the error of the u of a corner */
    double tests;           /* triangles that a random line tests, approximately */
};

/* The polygons of a tree. */
struct crew;

struct ray_tree_polygons {
    struct points points;
    const uint32_t *corners; /* NULL: polygon i is face_of_three(i) */
    /* of each uint32_t first, of its corners; they end at the next one's, which is there after the
     * last, too; or, has_counts, their count follows. NULL: all are triangles */
    const void *firsts;
    size_t stride;
    bool has_counts;
    /* equal polygons have equal records */
    const void *records;
    size_t record_bytes;
    size_t count;
    double slack;         /* as in mesh_data.h: edges reach farther by twice that */
    const uint32_t *same; /* [count] only polygons i with same[i] == i are in the tree; NULL: all */
    struct pace *pace;    /* NULL: no limit of time */
    struct crew *crew;    /* NULL: on the caller's thread */
};

static inline struct face ray_tree_face(const struct ray_tree_polygons *p, size_t i)
{
    uint32_t first, next;
    const char *at;

    if (!p->corners)
        return face_of_three(&p->points, i);
    if (!p->firsts)
        return (struct face){p->points, p->corners + 3 * i, 3};
    at = (const char *)p->firsts + i * p->stride;
    memcpy(&first, at, sizeof first);
    memcpy(&next, at + (p->has_counts ? sizeof next : p->stride), sizeof next);
    return (struct face){p->points, p->corners + first, p->has_counts ? next : next - first};
}

static inline bool ray_tree_takes(const struct ray_tree_polygons *polygons, size_t i)
{
    return !polygons->same || polygons->same[i] == i;
}

/*
 * Builds the tree of polygons first .. count - 1 (first < count), whose numbers in it are their
 * indices. The same polygons give the same tree. ERR_NO_MEMORY, ERR_TOO_LARGE (2^28 triangles), or
 * the error of the pace: *out is empty then. O(n log n), 0.14 to 0.2 µs a triangle.
 */
enum err_code ray_tree_build(const struct ray_tree_polygons *polygons, size_t first,
                             struct ray_tree *out, struct err *err);
/*
 * The same tree of polygons that have other numbers now: map of their old ones, UINT32_MAX: they
 * are gone; NULL: as they were. Vertices keep their places. ERR_NO_MEMORY. O(bytes).
 */
enum err_code ray_tree_copy(const struct ray_tree *tree, const uint32_t *map, struct ray_tree *out,
                            struct err *err);
void ray_tree_free(struct ray_tree *tree);
size_t ray_tree_bytes(const struct ray_tree *tree);

/* Adds the blocks by their depth, the nodes above them: depths[RAY_TREE_DEPTH + 1]. */
void ray_tree_depths(const struct ray_tree *tree, uint32_t *depths);

/* Boxes hold the triangles below them, each triangle is there once. False and a message. */
bool ray_tree_validate(const struct ray_tree *tree, const struct ray_tree_polygons *polygons,
                       size_t first, struct err *err);

/* A line o + t d, t from low to high; d: the largest component is between 0.5 and 1. */
struct ray_tree_line {
    double o[3], d[3];
    double low, high;
    bool is_backward; /* from high to low */
    bool is_any;      /* the first that is taken ends it */
    /*
     * Is the polygon of block->polygon[lane] hit, and better than the best so far? Then *end is its
     * t: nothing after it is tested any more. A polygon may be tested more than once.
     */
    bool (*test)(void *asker, const struct ray_tree_block *block, unsigned lane, double *end);
    /* Prefetches the memory of such a test; only for ray_tree_ask_all. */
    void (*fetch)(const void *asker, const struct ray_tree_block *block, unsigned lane);
    void *asker;
};

/*
 * Puts every polygon to the test that the line passes within rounding: about in the order in which
 * the line meets their boxes, the same on all levels.
 */
void ray_tree_ask(const struct ray_tree *tree, const struct ray_tree_line *line);

/*
 * Puts every polygon to the test whose triangles have a box, grown by `reach` each way, that the
 * line passes within rounding: those that a shape of that half size may touch on its way.
 */
void ray_tree_sweep(const struct ray_tree *tree, const struct ray_tree_line *line,
                    const double reach[3]);

/*
 * ray_tree_ask of many lines, is_any all alike: each walks as without the others, but they take
 * turns, so that one walks while the memory of others is on its way.
 */
void ray_tree_ask_all(const struct ray_tree *tree, const struct ray_tree_line *lines, size_t count);

#endif
