/*
 * Building the tree of ray_tree.h.
 *
 * Polygons become fans of triangles, and these are cut in two and in two again from the root down
 * (ray_tree_split.h): of a node's parts the one with the largest surface, until there are eight, or
 * until all that is left has no more than eight triangles, which is a block (Wald, Benthin, Boulos:
 * Getting Rid of Packets, 2008). Blocks are made when all nodes are there, so that each array is as
 * long as it has to be.
 *
 * On several threads: polygons by chunks; then the nodes above SUBTREE triangles in waves, each of
 * all nodes of a level; then the trees below them, each in arrays of its own, which are joined in
 * their order. So the tree does not depend on the number of threads.
 *
 * Invariants: a child's box, grown by the bounds of ray_tree.c, holds the corners of all triangles
 * below it; each triangle is in one block; children are after their parents. The same input
 * gives the same tree.
 */
#include "base/array_reserve.h"
#include "base/huge.h"
#include "base/check.h"
#include "terrain/bvh/ray_tree.h"
#include "terrain/bvh/ray_tree_split.h"
#include "terrain/crew.h"

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
    TRIANGLES_A_NODE = 32, /* or more, mostly */
    CHUNK = 1 << 14,       /* polygons of a part of the work */
    SUBTREE = 1 << 14,     /* triangles of one, at most */
    TRIANGLES_A_UNIT = 4   /* of a pace, of one node */
};

static void slacks_set(struct ray_tree *tree, double slack, float *grown)
{
    double own = fmin(fmax(slack * tree->scale, 0), SLACK_MAX); /* of images that lie, too */

    *grown = (float)(GROWN + 8 * own);
    tree->turn_slack = (float)(TURN_SLACK + 16 * own);
    tree->end_slack = (float)(END_SLACK + 16 * own);
}

/* Some polygons. */
struct chunk {
    size_t triangles, begin; /* begin: the number of those before */
    double low[3], high[3];
};

/* A node that is not made yet. */
struct job {
    struct ray_tree_range range;
    uint32_t node, depth;
};

/* The nodes above all subtrees, or a subtree. */
struct part {
    struct job root;
    struct ray_tree_node *nodes;
    uint32_t *firsts; /* where the triangles of each block begin; SECOND: of refs[1] */
    size_t node_count, node_room, block_count, block_room;
    size_t first_node,
        first_block; /* in the whole: of its second node, for its first is root.node */
    uint32_t depth;
    double tests;
    bool is_short; /* of memory */
};

/* A node of a wave. */
struct wide_job {
    struct job job;
    struct ray_tree_range parts[RAY_TREE_WIDE];
    unsigned count;
};

struct making {
    const struct ray_tree_polygons *polygons;
    size_t first;
    float grown;
    struct chunk *chunks;
    union ray_tree_ref *refs[2];
    float surface; /* of all */
    struct part top;
    struct part *subtrees;
    struct wide_job *wave;
    size_t chunk_count, subtree_count, subtree_room, wave_count, wave_room;
    struct ray_tree *out;
    struct pace *pace; /* of the caller's thread where there is no other */
    struct err *err;
};

#define SECOND 0x80000000u

/* ---- triangles ------------------------------------------------------------------------------ */

static size_t chunk_begin(const struct making *m, size_t chunk)
{
    size_t begin = m->first + chunk * CHUNK;

    return begin < m->polygons->count ? begin : m->polygons->count;
}

static void measure_work(void *context, size_t chunk)
{
    struct making *m = context;
    struct chunk *c = &m->chunks[chunk];

    *c = (struct chunk){.low = {INFINITY, INFINITY, INFINITY},
                        .high = {-INFINITY, -INFINITY, -INFINITY}};
    for (size_t i = chunk_begin(m, chunk); i < chunk_begin(m, chunk + 1); i++) {
        struct face face = ray_tree_face(m->polygons, i);

        if (!ray_tree_takes(m->polygons, i))
            continue;
        c->triangles += face.count - 2;
        for (uint32_t k = 0; k < face.count; k++) {
            struct vec3 at = face_at(&face, k);
            const double v[3] = {at.x, at.y, at.z};

            for (int a = 0; a < 3; a++) {
                c->low[a] = v[a] < c->low[a] ? v[a] : c->low[a];
                c->high[a] = v[a] > c->high[a] ? v[a] : c->high[a];
            }
        }
    }
}

/* Middle, scale and the number of triangles. */
static void tree_measure(struct making *m)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    struct ray_tree *tree = m->out;
    double half = 0;
    int exponent;

    for (size_t i = 0; i < m->chunk_count; i++) {
        m->chunks[i].begin = tree->triangle_count;
        tree->triangle_count += m->chunks[i].triangles;
        for (int a = 0; a < 3; a++) {
            low[a] = fmin(low[a], m->chunks[i].low[a]);
            high[a] = fmax(high[a], m->chunks[i].high[a]);
        }
    }
    for (int a = 0; a < 3; a++) {
        tree->middle[a] = low[a] / 2 + high[a] / 2;
        half = fmax(half, fmax(high[a] - tree->middle[a], tree->middle[a] - low[a]));
    }
    frexp(half, &exponent);
    tree->scale = half > 0 ? ldexp(1, exponent < -SCALE_MAX ? SCALE_MAX : -exponent) : 1;
}

static inline f32x4 corner_of(const struct ray_tree *tree, struct vec3 at)
{
    return (f32x4){(float)((at.x - tree->middle[0]) * tree->scale),
                   (float)((at.y - tree->middle[1]) * tree->scale),
                   (float)((at.z - tree->middle[2]) * tree->scale), 0};
}

static void fill_work(void *context, size_t chunk)
{
    struct making *m = context;
    const struct ray_tree_polygons *p = m->polygons;
    f32x4 more = (f32x4){m->grown, m->grown, m->grown, 0};
    size_t next = m->chunks[chunk].begin;

    for (size_t i = chunk_begin(m, chunk); i < chunk_begin(m, chunk + 1); i++) {
        struct face face = ray_tree_face(p, i);
        f32x4 begin = corner_of(m->out, face_at(&face, 0));
        f32x4 before = corner_of(m->out, face_at(&face, 1));

        if (!ray_tree_takes(p, i))
            continue;
        for (uint32_t k = 2; k < face.count; k++, next++) {
            f32x4 at = corner_of(m->out, face_at(&face, k));
            union ray_tree_ref *ref = &m->refs[0][next];

            ref->box.low = f32x4_min(f32x4_min(begin, before), at) - more;
            ref->box.high = f32x4_max(f32x4_max(begin, before), at) + more;
            ref->of.polygon = RAY_TREE_ITEM | (uint32_t)i;
            ref->of.corner = RAY_TREE_ITEM | k;
            before = at;
        }
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
static uint32_t block_name(const struct making *m, struct part *t,
                           const struct ray_tree_range *range)
{
    uint32_t at = (uint32_t)t->block_count++;

    t->firsts[at] = range->begin | (range->array ? SECOND : 0);
    t->tests += (double)(range->surface / m->surface) * range->count;
    return RAY_TREE_BLOCK | (at * RAY_TREE_WIDE + range->count - 1);
}

/* Has it room for eight nodes and blocks more? */
static bool part_has_room(struct part *t)
{
    struct ray_tree_node *larger;

    if (!array_reserve((void **)&t->firsts, &t->block_room, t->block_count + RAY_TREE_WIDE,
                       sizeof *t->firsts))
        return false;
    if (t->nodes && t->node_count + RAY_TREE_WIDE <= t->node_room)
        return true;
    t->node_room += t->node_room / 2 + RAY_TREE_WIDE;
    larger = huge_alloc(t->node_room * sizeof *larger);
    if (larger && t->nodes)
        memcpy(larger, t->nodes, t->node_count * sizeof *larger);
    free(t->nodes);
    t->nodes = larger;
    return larger != NULL;
}

/* Node `at` of a part, whose children are these; those that are no blocks become jobs. */
static void node_put(const struct making *m, struct part *t, uint32_t at, uint32_t depth,
                     const struct ray_tree_range *parts, unsigned count, struct job *jobs,
                     size_t *job_count)
{
    struct ray_tree_node *node = &t->nodes[at];

    t->depth = depth > t->depth ? depth : t->depth;
    for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
        if (i >= count) {
            sides_put(node, i, f32x4_all(INFINITY), f32x4_all(-INFINITY));
            node->child[i] = 0;
            continue;
        }
        sides_put(node, i, parts[i].low, parts[i].high);
        if (parts[i].count <= RAY_TREE_WIDE) {
            node->child[i] = block_name(m, t, &parts[i]);
        } else {
            node->child[i] = (uint32_t)t->node_count++;
            jobs[(*job_count)++] = (struct job){parts[i], node->child[i], depth + 1};
        }
    }
}

static void subtree_work(void *context, size_t number)
{
    struct making *m = context;
    struct part *t = &m->subtrees[number];
    struct job jobs[RAY_TREE_STACK];
    size_t waiting = 1;

    jobs[0] = t->root;
    jobs[0].node = 0;
    t->node_count = 1;
    t->node_room = t->root.range.count / TRIANGLES_A_NODE;
    while (waiting > 0) {
        struct job job = jobs[--waiting];
        struct ray_tree_range parts[RAY_TREE_WIDE];

        t->is_short = !part_has_room(t);
        if (t->is_short ||
            pace_step(m->pace, 1 + job.range.count / TRIANGLES_A_UNIT, m->err) != ERR_OK)
            return;
        node_put(m, t, job.node, job.depth, parts, parts_make(m, &job.range, parts), jobs,
                 &waiting);
    }
}

/* ---- waves ---------------------------------------------------------------------------------- */

static void wave_work(void *context, size_t number)
{
    struct making *m = context;
    struct wide_job *job = &m->wave[number];

    job->count = parts_make(m, &job->job.range, job->parts);
}

/* A node of the top: of the next wave, or the root of a subtree. False without memory. */
static bool job_add(struct making *m, const struct job *job)
{
    if (job->range.count <= SUBTREE) {
        for (unsigned i = 0; i < RAY_TREE_WIDE; i++) /* the subtree has it */
            sides_put(&m->top.nodes[job->node], i, f32x4_all(INFINITY), f32x4_all(-INFINITY));
        if (!array_reserve((void **)&m->subtrees, &m->subtree_room, m->subtree_count + 1,
                           sizeof *m->subtrees))
            return false;
        m->subtrees[m->subtree_count++] = (struct part){.root = *job};
        return true;
    }
    if (!array_reserve((void **)&m->wave, &m->wave_room, m->wave_count + 1, sizeof *m->wave))
        return false;
    m->wave[m->wave_count++].job = *job;
    return true;
}

/* Makes the nodes of a wave; those below them that are large are the next. */
static bool wave_end(struct making *m)
{
    size_t count = m->wave_count;
    struct wide_job *wave = m->wave;
    bool is_good = true;

    m->wave = NULL;
    m->wave_count = m->wave_room = 0;
    for (size_t i = 0; i < count && is_good; i++) {
        const struct wide_job *job = &wave[i];
        struct job jobs[RAY_TREE_WIDE];
        size_t below = 0;

        is_good = part_has_room(&m->top);
        if (is_good)
            node_put(m, &m->top, job->job.node, job->job.depth, job->parts, job->count, jobs,
                     &below);
        for (size_t k = 0; k < below && is_good; k++)
            is_good = job_add(m, &jobs[k]);
    }
    free(wave);
    return is_good;
}

/* ERR_OK: all nodes are made; is_short: or not, for memory. */
static enum err_code nodes_make(struct making *m, struct crew *crew, struct pace *pace,
                                bool *is_short)
{
    struct job root = {ray_tree_range_of(m->refs, m->out->triangle_count), 0, 1};

    m->surface = root.range.surface;
    box_set(m->out, &root.range);
    m->top.node_count = 1;
    *is_short = !part_has_room(&m->top) || !job_add(m, &root);
    while (m->wave_count > 0 && !*is_short) {
        if (crew_run(crew, pace, wave_work, m, m->wave_count, m->err))
            return m->err->code;
        *is_short = !wave_end(m);
    }
    pace_stage(pace, STAGE_NODES);
    if (*is_short || crew_run(crew, pace, subtree_work, m, m->subtree_count, m->err))
        return m->err->code;
    for (size_t i = 0; i < m->subtree_count; i++)
        *is_short |= m->subtrees[i].is_short;
    return ERR_OK;
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

static void block_make(const struct making *m, struct ray_tree_block *block,
                       const union ray_tree_ref *refs, unsigned count)
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
        uint32_t polygon = refs[i].of.polygon & ~RAY_TREE_ITEM;
        uint32_t last = refs[i].of.corner & ~RAY_TREE_ITEM;
        struct face face = ray_tree_face(m->polygons, polygon);

        for (unsigned c = 0; c < 3; c++) {
            f32x4 corner = corner_of(m->out, face_at(&face, c == 0 ? 0 : last - 2 + c));
            f32x4 place = (corner - low) * to_grid;

            f32x4_store(at, f32x4_min(place + f32x4_all(0.5F), f32x4_all(GRID_LAST)));
            for (int a = 0; a < 3; a++)
                block->at[c][a][i] = (uint16_t)at[a];
        }
        block->polygon[i] = polygon | (face.count > 3 ? RAY_TREE_PART : 0);
    }
}

/* ---- joining -------------------------------------------------------------------------------- */

/* A part's nodes and blocks in the whole. */
static void part_join(const struct making *m, const struct part *t)
{
    const struct ray_tree *out = m->out;

    for (size_t n = 0; n < t->node_count; n++) {
        struct ray_tree_node *node = &out->nodes[n == 0 ? t->root.node : t->first_node + n - 1];

        *node = t->nodes[n];
        for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
            uint32_t child = node->child[i], block = ray_tree_block_of(child);

            if (!(node->side[0][0][i] <= node->side[0][1][i])) /* none */
                continue;
            if (!(child & RAY_TREE_BLOCK)) {
                node->child[i] = (uint32_t)(t->first_node + child - 1);
                continue;
            }
            node->child[i] += (uint32_t)(t->first_block * RAY_TREE_WIDE);
            block_make(m, &out->blocks[t->first_block + block],
                       m->refs[t->firsts[block] / SECOND] + (t->firsts[block] & ~SECOND),
                       ray_tree_count_of(child));
        }
    }
}

static void join_work(void *context, size_t number)
{
    struct making *m = context;

    part_join(m, &m->subtrees[number]);
}

/* Where the parts are in the whole. */
static void parts_place(struct making *m)
{
    struct ray_tree *out = m->out;

    m->top.first_node = 1;
    for (size_t i = 0; i <= m->subtree_count; i++) {
        struct part *t = i > 0 ? &m->subtrees[i - 1] : &m->top;

        if (i > 0)
            t->first_node = out->node_count;
        t->first_block = out->block_count;
        out->node_count += t->node_count - (i > 0);
        out->block_count += t->block_count;
        out->tests += t->tests;
        out->depth = t->depth > out->depth ? t->depth : out->depth;
    }
}

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = huge_alloc(bytes);

    if (copy)
        memcpy(copy, from, bytes);
    return copy;
}

/* ---- all ------------------------------------------------------------------------------------ */

static enum err_code tree_make(struct making *m, struct crew *crew, struct pace *pace,
                               bool *is_short)
{
    struct ray_tree *out = m->out;

    if (nodes_make(m, crew, pace, is_short) || *is_short)
        return m->err->code;
    parts_place(m);
    out->nodes = huge_alloc(out->node_count * sizeof *out->nodes);
    out->blocks = huge_alloc(out->block_count * sizeof *out->blocks);
    *is_short = !out->nodes || !out->blocks;
    if (*is_short)
        return ERR_OK;
    part_join(m, &m->top);
    pace_stage(pace, STAGE_BLOCKS);
    return crew_run(crew, pace, join_work, m, m->subtree_count, m->err);
}

static enum err_code tree_of(struct making *m, bool *is_short)
{
    const struct ray_tree_polygons *p = m->polygons;
    struct ray_tree *out = m->out;

    m->chunks = malloc(m->chunk_count * sizeof *m->chunks);
    *is_short = !m->chunks;
    if (*is_short || crew_run(p->crew, p->pace, measure_work, m, m->chunk_count, m->err))
        return m->err->code;
    tree_measure(m);
    slacks_set(out, p->slack, &m->grown);
    if (p->count >= TRIANGLES_MAX || out->triangle_count >= TRIANGLES_MAX)
        return err_set(m->err, ERR_TOO_LARGE,
                       "%zu polygons with %zu triangles, both must be below 2^28", p->count,
                       out->triangle_count);
    m->refs[0] = huge_alloc(2 * out->triangle_count * sizeof *m->refs[0]);
    *is_short = !m->refs[0];
    if (*is_short)
        return ERR_OK;
    m->refs[1] = m->refs[0] + out->triangle_count;
    if (crew_run(p->crew, p->pace, fill_work, m, m->chunk_count, m->err))
        return m->err->code;
    return tree_make(m, p->crew, p->pace, is_short);
}

static void making_free(struct making *m)
{
    for (size_t i = 0; i < m->subtree_count; i++) {
        free(m->subtrees[i].nodes);
        free(m->subtrees[i].firsts);
    }
    free(m->top.nodes);
    free(m->top.firsts);
    free(m->subtrees);
    free(m->wave);
    free(m->chunks);
    free(m->refs[0]);
}

enum err_code ray_tree_build(const struct ray_tree_polygons *polygons, size_t first,
                             struct ray_tree *out, struct err *err)
{
    struct making m = {.polygons = polygons,
                       .first = first,
                       .chunk_count = (polygons->count - first + CHUNK - 1) / CHUNK,
                       .out = out,
                       .pace = polygons->crew ? NULL : polygons->pace,
                       .err = err};
    bool is_short = false;

    CHECK(first < polygons->count);
    *out = (struct ray_tree){.nodes = NULL};
    err->code = ERR_OK;
    if (tree_of(&m, &is_short) == ERR_OK && is_short)
        err_set(err, ERR_NO_MEMORY, "no memory for a tree of %zu triangles", out->triangle_count);
    if (err->code)
        ray_tree_free(out);
    making_free(&m);
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
