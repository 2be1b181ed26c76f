/*
 * Building the tree of ray_tree.h.
 *
 * Polygons become fans of triangles, and these are cut in two and in two again from the root down
 * (ray_tree_split.h): of a node's parts the one with the largest surface, until there are eight, or
 * until all that is left has no more than eight triangles, which is a block (Wald, Benthin, Boulos:
 * Getting Rid of Packets, 2008). Blocks are made when all nodes are there, so that each array is as
 * long as it has to be.
 *
 * Invariants: a child's box, grown by the bounds of ray_tree.c, holds the corners of all triangles
 * below it; each triangle is in one block; children are after their parents. The same input
 * gives the same tree.
 */
#include "base/check.h"
#include "terrain/bvh/ray_tree.h"
#include "terrain/bvh/ray_tree_split.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define GROWN 0x1p-20      /* boxes, by the roundings of float32 */
#define TURN_SLACK 0x1p-17 /* ray_tree.c: 4 e and the roundings of a turn */
#define END_SLACK 0x1p-17
#define SLACK_MAX 0x1p60F  /* in scaled coordinates, which are within 1 */
#define GRID_LAST 65535.0F /* a corner at the far side is rounded down, which `off` holds */

enum {
    SCALE_MAX = 1000,
    GRID_BITS = 16,
    TRIANGLES_MAX = 1 << 28,
    NODE_FULL = 56,        /* triangles that fill the blocks of a node */
    TRIANGLES_A_NODE = 24, /* or more, mostly */
    TRIANGLES_A_UNIT = 4   /* of a pace, of one node */
};

/* Middle and scale; the number of triangles. */
static size_t tree_measure(const struct ray_tree_polygons *p, size_t first, struct ray_tree *tree)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    double half = 0;
    size_t triangles = 0;
    int exponent;

    for (size_t i = first; i < p->count; i++) {
        struct face face = ray_tree_face(p, i);

        if (!ray_tree_takes(p, i))
            continue;
        triangles += face.count - 2;
        for (uint32_t k = 0; k < face.count; k++) {
            struct vec3 at = face_at(&face, k);
            const double v[3] = {at.x, at.y, at.z};

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
    f32x4 corner[3];
    uint32_t polygon;
};

static inline f32x4 corner_of(const struct ray_tree *tree, struct vec3 at)
{
    return (f32x4){(float)((at.x - tree->middle[0]) * tree->scale),
                   (float)((at.y - tree->middle[1]) * tree->scale),
                   (float)((at.z - tree->middle[2]) * tree->scale), 0};
}

static void triangles_put(const struct ray_tree_polygons *p, size_t first,
                          const struct ray_tree *tree, struct triangle *triangles)
{
    for (size_t i = first; i < p->count; i++) {
        struct face face = ray_tree_face(p, i);
        uint32_t polygon = (uint32_t)i | (face.count > 3 ? RAY_TREE_PART : 0);
        f32x4 begin = corner_of(tree, face_at(&face, 0));
        f32x4 before = corner_of(tree, face_at(&face, 1));

        if (!ray_tree_takes(p, i))
            continue;
        for (uint32_t k = 2; k < face.count; k++) {
            f32x4 at = corner_of(tree, face_at(&face, k));

            *triangles++ = (struct triangle){{begin, before, at}, polygon};
            before = at;
        }
    }
}

static void refs_put(const struct triangle *triangles, size_t count, float grown,
                     union ray_tree_ref *refs)
{
    f32x4 more = (f32x4){grown, grown, grown, 0};

    for (size_t i = 0; i < count; i++) {
        const f32x4 *at = triangles[i].corner;

        refs[i].box.low = f32x4_min(f32x4_min(at[0], at[1]), at[2]) - more;
        refs[i].box.high = f32x4_max(f32x4_max(at[0], at[1]), at[2]) + more;
        refs[i].of.item = RAY_TREE_ITEM | (uint32_t)i;
    }
}

static void box_set(struct ray_tree *tree, const struct ray_tree_range *all)
{
    float low[4], high[4];

    f32x4_store(low, all->low);
    f32x4_store(high, all->high);
    for (int a = 0; a < 3; a++) {
        tree->low[a] = (double)low[a] / tree->scale + tree->middle[a];
        tree->high[a] = (double)high[a] / tree->scale + tree->middle[a];
    }
}

/* ---- nodes ---------------------------------------------------------------------------------- */

struct job {
    struct ray_tree_range range;
    uint32_t node, depth;
};

struct making {
    union ray_tree_ref *refs[2];
    const struct triangle *triangles;
    uint32_t *firsts; /* where the triangles of each block begin; SECOND: of refs[1] */
    size_t node_room;
    float surface; /* of all */
    struct ray_tree *out;
    struct pace *pace;
    struct err *err; /* of the pace */
};

#define SECOND 0x80000000u

/* Eight parts at most of a range, cut where they are largest; their number. A part that fills a
 * node of blocks is left to that node: cut here, its parts would be nodes with two children. */
static unsigned parts_make(const struct making *m, const struct ray_tree_range *whole,
                           struct ray_tree_range parts[RAY_TREE_WIDE])
{
    uint32_t most = whole->count > NODE_FULL ? NODE_FULL : RAY_TREE_WIDE;
    unsigned count = 1;

    parts[0] = *whole;
    while (count < RAY_TREE_WIDE) {
        struct ray_tree_range halves[2];
        unsigned best = RAY_TREE_WIDE;

        for (unsigned i = 0; i < count; i++)
            if (parts[i].count > most &&
                (best == RAY_TREE_WIDE || parts[i].surface > parts[best].surface))
                best = i;
        if (best == RAY_TREE_WIDE)
            break;
        ray_tree_split(m->refs, &parts[best], halves);
        parts[best] = halves[0];
        parts[count++] = halves[1];
    }
    return count;
}

static void sides_put(struct ray_tree_node *node, unsigned i, f32x4 low, f32x4 high)
{
    float lows[4], highs[4];

    f32x4_store(lows, low);
    f32x4_store(highs, high);
    for (int a = 0; a < 3; a++) {
        node->side[a][0][i] = lows[a];
        node->side[a][1][i] = highs[a];
    }
}

/* A block that is made later. */
static uint32_t block_name(struct making *m, const struct ray_tree_range *part)
{
    struct ray_tree *out = m->out;
    uint32_t at = (uint32_t)out->block_count++;

    m->firsts[at] = part->begin | (part->array ? SECOND : 0);
    out->tests += (double)(part->surface / m->surface) * part->count;
    return RAY_TREE_BLOCK | (at * RAY_TREE_WIDE + part->count - 1);
}

static void node_make(struct making *m, const struct job *job, struct job *jobs, size_t *job_count)
{
    struct ray_tree *out = m->out;
    struct ray_tree_node *node = &out->nodes[job->node];
    struct ray_tree_range parts[RAY_TREE_WIDE];
    uint32_t depth = job->depth;
    unsigned count = parts_make(m, &job->range, parts);

    out->depth = depth > out->depth ? depth : out->depth;
    for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
        if (i >= count) {
            sides_put(node, i, f32x4_all(INFINITY), f32x4_all(-INFINITY));
            node->child[i] = 0;
            continue;
        }
        sides_put(node, i, parts[i].low, parts[i].high);
        if (parts[i].count <= RAY_TREE_WIDE) {
            node->child[i] = block_name(m, &parts[i]);
        } else {
            node->child[i] = (uint32_t)out->node_count++;
            jobs[(*job_count)++] = (struct job){parts[i], node->child[i], depth + 1};
        }
    }
}

static void *room_of(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

/* For eight nodes more. */
static bool nodes_have_room(struct making *m)
{
    struct ray_tree *out = m->out;
    struct ray_tree_node *larger;

    if (out->nodes && out->node_count + RAY_TREE_WIDE <= m->node_room)
        return true;
    m->node_room += m->node_room / 2 + RAY_TREE_WIDE;
    larger = room_of(m->node_room * sizeof *larger);
    if (larger && out->nodes)
        memcpy(larger, out->nodes, out->node_count * sizeof *larger);
    free(out->nodes);
    out->nodes = larger;
    return larger != NULL;
}

static bool nodes_make(struct making *m)
{
    struct job jobs[RAY_TREE_STACK];
    struct ray_tree *out = m->out;
    size_t waiting = 0;

    out->node_count = 1;
    m->node_room = out->triangle_count / TRIANGLES_A_NODE / 3 * 2;
    jobs[waiting++] = (struct job){ray_tree_range_of(m->refs, out->triangle_count), 0, 1};
    m->surface = jobs[0].range.surface;
    box_set(out, &jobs[0].range);
    while (waiting > 0) {
        struct job job = jobs[--waiting];

        if (pace_step(m->pace, 1 + job.range.count / TRIANGLES_A_UNIT, m->err) ||
            !nodes_have_room(m))
            return false;
        node_make(m, &job, jobs, &waiting);
    }
    return true;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* The least normal power of two by which 2^16 steps hold the largest side, from the base. */
static float step_of(f32x4 low, f32x4 high)
{
    float sides[4], side;
    int exponent;

    f32x4_store(sides, high - low);
    side = sides[0] > sides[1] ? sides[0] : sides[1];
    side = side > sides[2] ? side : sides[2];
    frexpf(side, &exponent);
    exponent -= GRID_BITS;
    return ldexpf(1, exponent < FLT_MIN_EXP ? FLT_MIN_EXP : exponent);
}

static void block_make(struct ray_tree_block *block, const union ray_tree_ref *refs, unsigned count,
                       const struct triangle *triangles)
{
    f32x4 low = refs[0].box.low, high = refs[0].box.high, to_grid;
    float base[4], at[4];

    for (unsigned i = 1; i < count; i++) {
        low = f32x4_min(low, refs[i].box.low);
        high = f32x4_max(high, refs[i].box.high);
    }
    f32x4_store(base, low);
    low = (f32x4){base[0], base[1], base[2], 0};
    memset(block, 0, sizeof *block);
    memset(block->polygon, 0xff, sizeof block->polygon);
    memcpy(block->base, base, sizeof block->base);
    block->step = step_of(low, high);
    to_grid = f32x4_all(1 / block->step);
    for (unsigned i = 0; i < count; i++) {
        const struct triangle *t = &triangles[refs[i].of.item & ~RAY_TREE_ITEM];

        for (int c = 0; c < 3; c++) {
            f32x4 place = (t->corner[c] - low) * to_grid;

            f32x4_store(at, f32x4_min(place + f32x4_all(0.5F), f32x4_all(GRID_LAST)));
            for (int a = 0; a < 3; a++)
                block->at[c][a][i] = (uint16_t)at[a];
        }
        block->polygon[i] = t->polygon;
    }
}

static void blocks_make(const struct making *m)
{
    const struct ray_tree *out = m->out;

    for (size_t n = 0; n < out->node_count; n++)
        for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
            uint32_t child = out->nodes[n].child[i], first;

            if (!(child & RAY_TREE_BLOCK))
                continue;
            first = m->firsts[ray_tree_block_of(child)];
            block_make(&out->blocks[ray_tree_block_of(child)],
                       m->refs[first / SECOND] + (first & ~SECOND), ray_tree_count_of(child),
                       m->triangles);
        }
}

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = room_of(bytes);

    if (copy)
        memcpy(copy, from, bytes);
    return copy;
}

/* ---- all ------------------------------------------------------------------------------------ */

static bool tree_make(struct making *m)
{
    struct ray_tree *out = m->out;
    struct ray_tree_node *fewer;

    if (!nodes_make(m))
        return false;
    fewer = copy_of(out->nodes, out->node_count * sizeof *fewer);
    if (fewer) {
        free(out->nodes);
        out->nodes = fewer;
    }
    out->blocks = room_of(out->block_count * sizeof *out->blocks);
    if (out->blocks)
        blocks_make(m);
    return out->blocks != NULL;
}

static enum err_code tree_of(const struct ray_tree_polygons *p, size_t first, float grown,
                             struct ray_tree *out, struct err *err)
{
    size_t count = out->triangle_count;
    struct triangle *triangles = room_of(count * sizeof *triangles);
    union ray_tree_ref *refs = room_of(2 * count * sizeof *refs);
    struct making m = {{refs, refs + count}, triangles,       malloc(count * sizeof *m.firsts),
                       .out = out,           .pace = p->pace, .err = err};
    bool is_made = triangles && refs && m.firsts;

    err->code = ERR_OK;
    if (is_made) {
        triangles_put(p, first, out, triangles);
        refs_put(triangles, count, grown, refs);
        is_made = tree_make(&m);
    }
    free(triangles);
    free(refs);
    free(m.firsts);
    if (is_made || err->code)
        return err->code;
    return err_set(err, ERR_NO_MEMORY, "no memory for a tree of %zu triangles", count);
}

enum err_code ray_tree_build(const struct ray_tree_polygons *polygons, size_t first,
                             struct ray_tree *out, struct err *err)
{
    float grown;

    CHECK(first < polygons->count);
    *out = (struct ray_tree){.nodes = NULL};
    out->triangle_count = tree_measure(polygons, first, out);
    slacks_set(out, polygons->slack, &grown);
    if (out->triangle_count >= TRIANGLES_MAX)
        return err_set(err, ERR_TOO_LARGE, "%zu triangles, must be below 2^28",
                       out->triangle_count);
    if (tree_of(polygons, first, grown, out, err))
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
