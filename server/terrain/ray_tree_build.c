/*
 * Building the tree of ray_tree.h.
 *
 * Polygons become fans of triangles, triangles boxes, and boxes a binary tree (box_tree.h, surface
 * area heuristic by bins). Then nodes of eight children are made of it from the root down: the
 * child with the largest surface is opened until there are eight, or until all that is left has no
 * more than eight triangles, which is a block (Wald, Benthin, Boulos: Getting Rid of Packets,
 * 2008).
 *
 * Invariants: a child's box, grown by what ray_tree.c says, holds the corners of all triangles
 * below it; each triangle is in one block; children stand behind their parents. The same input
 * gives the same tree.
 */
#include "base/check.h"
#include "terrain/ray_tree.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define GROWN 0x1p-20      /* boxes, by the roundings of float32 */
#define TURN_SLACK 0x1p-17 /* ray_tree.c: 4 e and the roundings of a turn */
#define END_SLACK 0x1p-17
#define SLACK_MAX 0x1p60F  /* in scaled coordinates, which are within 1 */
#define GRID_LAST 65535.0F /* a corner at the far side is rounded down, which `off` holds */

enum { SCALE_MAX = 1000, GRID_BITS = 16, TRIANGLES_MAX = 1 << 28 };

struct ring {
    const uint32_t *corners;
    uint32_t count;
};

static struct ring ring_of(const struct ray_tree_polygons *p, size_t i)
{
    uint32_t at[2]; /* first, count */

    memcpy(at, (const char *)p->polygons + i * p->stride + p->offset, sizeof at);
    return (struct ring){p->corners + at[0], at[1]};
}

/* Middle and scale; the number of triangles. */
static size_t tree_measure(const struct ray_tree_polygons *p, size_t first, struct ray_tree *tree)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    double half = 0;
    size_t triangles = 0;
    int exponent;

    for (size_t i = first; i < p->count; i++) {
        struct ring ring = ring_of(p, i);

        triangles += ring.count - 2;
        for (uint32_t k = 0; k < ring.count; k++) {
            const double *v = &p->vertices[ring.corners[k]].x;

            for (int a = 0; a < 3; a++) {
                low[a] = v[a] < low[a] ? v[a] : low[a];
                high[a] = v[a] > high[a] ? v[a] : high[a];
            }
        }
    }
    for (int a = 0; a < 3; a++) {
        tree->middle[a] = low[a] / 2 + high[a] / 2;
        half = fmax(half, fmax(high[a] - tree->middle[a], tree->middle[a] - low[a]));
    }
    frexp(half, &exponent);
    tree->scale = half > 0 ? ldexp(1, exponent < -SCALE_MAX ? SCALE_MAX : -exponent) : 1;
    return triangles;
}

static void slacks_set(struct ray_tree *tree, double slack, float *grown)
{
    double own = fmin(fmax(slack * tree->scale, 0), SLACK_MAX); /* of images that lie, too */

    *grown = (float)(GROWN + 8 * own);
    tree->turn_slack = (float)(TURN_SLACK + 16 * own);
    tree->end_slack = (float)(END_SLACK + 16 * own);
}

/* ---- triangles ------------------------------------------------------------------------------ */

struct triangle {
    float at[3][3]; /* corner, axis */
    uint32_t vertex[3];
    uint32_t polygon;
};

static void corner_put(const struct ray_tree *tree, const struct vec3 *vertex, float at[3])
{
    at[0] = (float)((vertex->x - tree->middle[0]) * tree->scale);
    at[1] = (float)((vertex->y - tree->middle[1]) * tree->scale);
    at[2] = (float)((vertex->z - tree->middle[2]) * tree->scale);
}

static void triangles_put(const struct ray_tree_polygons *p, size_t first,
                          const struct ray_tree *tree, struct triangle *triangles)
{
    for (size_t i = first; i < p->count; i++) {
        struct ring ring = ring_of(p, i);
        struct triangle one = {.polygon = (uint32_t)i | (ring.count > 3 ? RAY_TREE_PART : 0)};

        one.vertex[0] = ring.corners[0];
        one.vertex[2] = ring.corners[1];

        corner_put(tree, &p->vertices[ring.corners[0]], one.at[0]);
        corner_put(tree, &p->vertices[ring.corners[1]], one.at[2]);
        for (uint32_t k = 2; k < ring.count; k++) {
            memcpy(one.at[1], one.at[2], sizeof one.at[1]);
            one.vertex[1] = one.vertex[2];
            one.vertex[2] = ring.corners[k];
            corner_put(tree, &p->vertices[ring.corners[k]], one.at[2]);
            *triangles++ = one;
        }
    }
}

static inline float least_of(float a, float b)
{
    return a < b ? a : b;
}

static inline float most_of(float a, float b)
{
    return a > b ? a : b;
}

static void boxes_put(const struct triangle *triangles, size_t count, float grown,
                      struct box_bounds *boxes)
{
    for (size_t i = 0; i < count; i++)
        for (int a = 0; a < 3; a++) {
            const struct triangle *t = &triangles[i];

            boxes[i].min[a] = least_of(least_of(t->at[0][a], t->at[1][a]), t->at[2][a]) - grown;
            boxes[i].max[a] = most_of(most_of(t->at[0][a], t->at[1][a]), t->at[2][a]) + grown;
        }
}

/* ---- from two children to eight ------------------------------------------------------------- */

struct widening {
    const struct box_tree *two;
    const struct triangle *triangles;
    uint32_t *counts, *firsts; /* of the items below a node of `two` */
    struct ray_tree *out;
};

static void ranges_set(struct widening *w)
{
    const struct box_tree *two = w->two;

    for (size_t i = two->node_count; i-- > 0;) { /* children stand behind */
        const struct box_node *n = &two->nodes[i];

        w->firsts[i] = n->count ? n->first : w->firsts[n->first];
        w->counts[i] = n->count ? n->count : w->counts[n->first] + w->counts[n->first + 1];
    }
}

static float surface_of(const struct box_bounds *b)
{
    float x = b->max[0] - b->min[0], y = b->max[1] - b->min[1], z = b->max[2] - b->min[2];

    return x * y + y * z + z * x;
}

/* Eight nodes of `two` at most that hold all below one; their number. */
static unsigned children_choose(const struct widening *w, uint32_t from, uint32_t chosen[])
{
    const struct box_node *nodes = w->two->nodes;
    unsigned count = 0;

    chosen[count++] = from;
    while (count < RAY_TREE_WIDE) {
        float largest = -1;
        unsigned best = 0;

        for (unsigned i = 0; i < count; i++)
            if (w->counts[chosen[i]] > RAY_TREE_WIDE &&
                surface_of(&nodes[chosen[i]].box) > largest) {
                largest = surface_of(&nodes[chosen[i]].box);
                best = i;
            }
        if (largest < 0)
            break;
        chosen[count++] = nodes[chosen[best]].first + 1;
        chosen[best] = nodes[chosen[best]].first;
    }
    return count;
}

/* The least normal power of two by which 2^16 steps hold the largest side, from the base. */
static float step_of(const struct box_bounds *box)
{
    float side = 0;
    int exponent;

    for (int a = 0; a < 3; a++)
        side = most_of(side, box->max[a] - box->min[a]);
    frexpf(side, &exponent);
    exponent -= GRID_BITS;
    return ldexpf(1, exponent < FLT_MIN_EXP ? FLT_MIN_EXP : exponent);
}

static uint32_t block_make(struct widening *w, uint32_t from)
{
    struct ray_tree *out = w->out;
    uint32_t at = (uint32_t)out->block_count++, count = w->counts[from];
    struct ray_tree_block *block = &out->blocks[at];
    const uint32_t *items = w->two->items + w->firsts[from];
    const struct box_bounds *box = &w->two->nodes[from].box;

    memset(block, 0, sizeof *block);
    memset(block->polygon, 0xff, sizeof block->polygon);
    memcpy(block->base, box->min, sizeof block->base);
    block->step = step_of(box);
    for (unsigned i = 0; i < count; i++) {
        const struct triangle *t = &w->triangles[items[i]];

        for (int c = 0; c < 3; c++) {
            for (int a = 0; a < 3; a++)
                block->at[c][a][i] = (uint16_t)least_of(
                    (t->at[c][a] - block->base[a]) / block->step + 0.5F, GRID_LAST);
            block->vertex[c][i] = t->vertex[c];
        }
        block->polygon[i] = t->polygon;
    }
    return RAY_TREE_BLOCK | (at * RAY_TREE_WIDE + count - 1);
}

struct job {
    uint32_t from, node, depth;
};

static void node_make(struct widening *w, struct job job, struct job *jobs, size_t *job_count)
{
    struct ray_tree *out = w->out;
    const struct box_node *nodes = w->two->nodes;
    uint32_t chosen[RAY_TREE_WIDE];
    unsigned count = children_choose(w, job.from, chosen);

    out->depth = job.depth > out->depth ? job.depth : out->depth;
    for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
        struct ray_tree_node *node = &out->nodes[job.node];
        bool has = i < count;

        for (int a = 0; a < 3; a++) {
            node->side[a][0][i] = has ? nodes[chosen[i]].box.min[a] : INFINITY;
            node->side[a][1][i] = has ? nodes[chosen[i]].box.max[a] : -INFINITY;
        }
        node->child[i] = 0;
        if (!has)
            continue;
        float share = surface_of(&nodes[chosen[i]].box) / surface_of(&nodes[0].box);

        if (w->counts[chosen[i]] <= RAY_TREE_WIDE) {
            node->child[i] = block_make(w, chosen[i]);
            out->tests += (double)share * w->counts[chosen[i]];
        } else {
            node->child[i] = (uint32_t)out->node_count++;
            jobs[(*job_count)++] = (struct job){chosen[i], node->child[i], job.depth + 1};
        }
    }
}

/* Nodes and blocks have room for what may come. */
static void widen(struct widening *w, struct job *jobs)
{
    size_t waiting = 0;

    ranges_set(w);
    w->out->node_count = 1;
    jobs[waiting++] = (struct job){0, 0, 1};
    while (waiting > 0) {
        struct job job = jobs[--waiting];

        node_make(w, job, jobs, &waiting);
    }
}

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = aligned_alloc(64, (bytes + 63) / 64 * 64);

    if (copy)
        memcpy(copy, from, bytes);
    return copy;
}

static void *fewer(void *all, size_t bytes)
{
    void *kept = copy_of(all, bytes);

    if (!kept)
        return all; /* larger than it had to be */
    free(all);
    return kept;
}

static enum err_code tree_widen(const struct box_tree *two, const struct triangle *triangles,
                                struct ray_tree *out, struct err *err)
{
    /* a node opened, but the root, has more than eight triangles, as each block's parent in two */
    size_t nodes = two->node_count / 2 + 1, blocks = two->node_count / 2 + 1;
    struct widening w = {two, triangles, malloc(two->node_count * sizeof *w.counts),
                         malloc(two->node_count * sizeof *w.firsts), out};
    struct job *jobs = malloc(nodes * sizeof *jobs);
    bool is_made;

    out->nodes = aligned_alloc(64, (nodes * sizeof *out->nodes + 63) / 64 * 64);
    out->blocks = aligned_alloc(64, (blocks * sizeof *out->blocks + 63) / 64 * 64);
    is_made = w.counts && w.firsts && jobs && out->nodes && out->blocks;
    if (is_made) {
        widen(&w, jobs);
        out->nodes = fewer(out->nodes, out->node_count * sizeof *out->nodes);
        out->blocks = fewer(out->blocks, out->block_count * sizeof *out->blocks);
    }
    free(w.counts);
    free(w.firsts);
    free(jobs);
    return is_made ? ERR_OK : err_set(err, ERR_NO_MEMORY, "no memory for a tree of triangles");
}

/* ---- all ------------------------------------------------------------------------------------ */

static enum err_code tree_make(const struct ray_tree_polygons *p, size_t first, float grown,
                               struct ray_tree *out, struct err *err)
{
    size_t count = out->triangle_count;
    struct triangle *triangles = malloc(count * sizeof *triangles);
    struct box_bounds *boxes = malloc(count * sizeof *boxes);
    struct box_tree two = {0};

    err->code = ERR_OK;
    if (!triangles || !boxes) {
        err_set(err, ERR_NO_MEMORY, "no memory for a tree of %zu triangles", count);
    } else {
        triangles_put(p, first, out, triangles);
        boxes_put(triangles, count, grown, boxes);
        if (box_tree_build(boxes, count, &two, err) == ERR_OK)
            tree_widen(&two, triangles, out, err);
    }
    for (int a = 0; a < 3 && err->code == ERR_OK; a++) {
        out->low[a] = (double)two.nodes[0].box.min[a] / out->scale + out->middle[a];
        out->high[a] = (double)two.nodes[0].box.max[a] / out->scale + out->middle[a];
    }
    box_tree_free(&two);
    free(boxes);
    free(triangles);
    return err->code;
}

enum err_code ray_tree_build(const struct ray_tree_polygons *polygons, size_t first,
                             struct ray_tree *out, struct err *err)
{
    float grown;

    CHECK(first < polygons->count);
    *out = (struct ray_tree){.simd = simd_level()};
    out->triangle_count = tree_measure(polygons, first, out);
    slacks_set(out, polygons->slack, &grown);
    if (out->triangle_count >= TRIANGLES_MAX)
        return err_set(err, ERR_TOO_LARGE, "%zu triangles, must be below 2^28",
                       out->triangle_count);
    if (tree_make(polygons, first, grown, out, err))
        ray_tree_free(out);
    return err->code;
}

static void polygons_map(struct ray_tree *tree, const uint32_t *map)
{
    for (size_t b = 0; b < tree->block_count; b++)
        for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
            uint32_t *polygon = &tree->blocks[b].polygon[i], part = *polygon & RAY_TREE_PART;

            if (*polygon == RAY_TREE_NONE)
                continue;
            *polygon = map[*polygon & ~RAY_TREE_PART];
            *polygon |= part; /* RAY_TREE_NONE stays that */
            tree->triangle_count -= *polygon == RAY_TREE_NONE;
        }
}

enum err_code ray_tree_copy(const struct ray_tree *tree, const uint32_t *map, struct ray_tree *out,
                            struct err *err)
{
    *out = *tree;
    out->nodes = copy_of(tree->nodes, tree->node_count * sizeof *tree->nodes);
    out->blocks = copy_of(tree->blocks, tree->block_count * sizeof *tree->blocks);
    if (!out->nodes || !out->blocks) {
        ray_tree_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for a tree of triangles");
    }
    if (map)
        polygons_map(out, map);
    return ERR_OK;
}

void ray_tree_free(struct ray_tree *tree)
{
    free(tree->nodes);
    free(tree->blocks);
    *tree = (struct ray_tree){0};
}

size_t ray_tree_bytes(const struct ray_tree *tree)
{
    return tree->node_count * sizeof *tree->nodes + tree->block_count * sizeof *tree->blocks;
}

/* ---- validation ----------------------------------------------------------------------------- */

/* Within a step of the grid. */
static bool box_holds(const struct ray_tree_node *node, unsigned i,
                      const struct ray_tree_block *block, const uint16_t at[3][RAY_TREE_WIDE],
                      unsigned lane)
{
    for (int a = 0; a < 3; a++) {
        float place = block->base[a] + block->step * (float)at[a][lane];

        if (!(place >= node->side[a][0][i] - block->step &&
              place <= node->side[a][1][i] + block->step))
            return false;
    }
    return true;
}

static bool block_is_held(const struct ray_tree *tree, const struct ray_tree_node *node, unsigned i)
{
    const struct ray_tree_block *block = &tree->blocks[ray_tree_block_of(node->child[i])];

    for (unsigned k = 0; k < RAY_TREE_WIDE; k++) {
        bool has = k < ray_tree_count_of(node->child[i]);

        if (!has && block->polygon[k] != RAY_TREE_NONE)
            return false;
        for (int c = 0; c < 3 && has; c++)
            if (!box_holds(node, i, block, block->at[c], k))
                return false;
    }
    return true;
}

static bool node_is_held(const struct ray_tree *tree, const struct ray_tree_node *node, unsigned i)
{
    const struct ray_tree_node *below = &tree->nodes[node->child[i]];

    for (int a = 0; a < 3; a++)
        for (unsigned k = 0; k < RAY_TREE_WIDE; k++)
            if (below->side[a][0][k] < node->side[a][0][i] ||
                below->side[a][1][k] > node->side[a][1][i])
                return false;
    return true;
}

/* Counts what points at each node and block. */
static bool node_is_right(const struct ray_tree *tree, size_t at, uint8_t *nodes, uint8_t *blocks)
{
    const struct ray_tree_node *node = &tree->nodes[at];

    for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
        uint32_t child = node->child[i];

        if (!(node->side[0][0][i] <= node->side[0][1][i]))
            continue;
        if (child & RAY_TREE_BLOCK) {
            child = ray_tree_block_of(child);
            if (child >= tree->block_count || blocks[child]++ || !block_is_held(tree, node, i))
                return false;
        } else if (child <= at || child >= tree->node_count || nodes[child]++ ||
                   !node_is_held(tree, node, i)) {
            return false;
        }
    }
    return true;
}

/* Is each triangle of the fans in the blocks? Those of a polygon may stand in any order. */
static bool triangles_are_there(const struct ray_tree *tree, const struct ray_tree_polygons *p,
                                size_t first, uint32_t *counts)
{
    for (size_t b = 0; b < tree->block_count; b++)
        for (unsigned k = 0; k < RAY_TREE_WIDE; k++) {
            uint32_t polygon = tree->blocks[b].polygon[k];

            if (polygon == RAY_TREE_NONE)
                continue;
            polygon &= ~RAY_TREE_PART;
            if (polygon < first || polygon >= p->count)
                return false;
            counts[polygon - first]++;
        }
    for (size_t i = first; i < p->count; i++)
        if (counts[i - first] != ring_of(p, i).count - 2)
            return false;
    return true;
}

bool ray_tree_validate(const struct ray_tree *tree, const struct ray_tree_polygons *polygons,
                       size_t first, struct err *err)
{
    uint8_t *nodes = calloc(tree->node_count + 1, 1), *blocks = calloc(tree->block_count + 1, 1);
    uint32_t *counts = calloc(polygons->count - first + 1, sizeof *counts);
    bool is_right = nodes && blocks && counts && tree->node_count > 0;

    for (size_t i = 0; i < tree->node_count && is_right; i++)
        is_right = (i == 0 || nodes[i] == 1) && node_is_right(tree, i, nodes, blocks);
    for (size_t i = 0; i < tree->block_count && is_right; i++)
        is_right = blocks[i] == 1;
    is_right = is_right && triangles_are_there(tree, polygons, first, counts);
    free(nodes);
    free(blocks);
    free(counts);
    if (!is_right)
        err_set(err, ERR_INTERNAL, "the tree of %zu triangles is wrong, or there is no memory",
                tree->triangle_count);
    return is_right;
}
