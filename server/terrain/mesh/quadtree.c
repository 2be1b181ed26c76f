/*
 * Q's quadtree, built level by level.
 *
 * Q splits any leaf with more than Maxpoly polygons that is above Maxdepth, in any order. Here the
 * order is breadth first. The children of the nodes of one level then lie side by side, so that a
 * child's place follows from its parent's rank, which makes an image easy to verify; and
 * when the bound on memory is reached, it is reached everywhere at about the same depth. The bound
 * matters: a hundred polygons that lie on one another would otherwise fill 4^12 leaves.
 *
 * Each level has one pool of lists: its nodes' lists one after another. Splitting a node writes
 * four lists into the pool of the next level; a leaf's list moves to the tree's refs, floors before
 * walls.
 *
 * Chosen cuts also go on below max_polygons where a leaf is large: a split that saves tests where
 * much of the terrain lies is worth its memory, one in a corner that is hardly queried is not (Q,
 * "Future Directions": increase the size of leaves that contain no or one polygon). The worth is
 * the share of the terrain times the tests saved, in units of one polygon's share.
 */
#include "terrain/mesh/quadtree.h"

#include "base/array_reserve.h"

#include <stdlib.h>
#include <string.h>

/* Tests saved times area, in mean areas of a polygon, that pay for a split below max_polygons. */
#define SPLIT_WORTH 4.0
/* With chosen cuts: a split that leaves more of the tests than this leads nowhere. */
#define SPLIT_GAIN 0.98

enum { NODE_UNITS = 10, POLYGON_UNITS = 3 }; /* of a pace, for a node and each polygon of it */

/* A node of the present level. */
struct open_node {
    struct box2 box;
    size_t first; /* in the level's pool */
    uint32_t count;
};

struct level {
    struct open_node *open;
    size_t open_count, open_capacity;
    uint32_t *pool;
    size_t pool_count, pool_capacity;
};

struct builder {
    const struct convex_parts *set;
    struct quadtree *tree;
    uint32_t max_polygons, max_depth;
    enum mesh_cuts cuts;
    double worth_area; /* the least saving for which an area is split below max_polygons */
    size_t refs_max;
    struct level level, next;
    uint8_t *quadrants; /* of the polygons of one node */
    size_t rank;        /* of the next node */
    struct pace *pace;
    struct err *err; /* of the pace */
};

/* Room for the children of one node: four nodes, four open nodes, four lists. */
static bool reserve_children(struct builder *b, uint32_t count)
{
    struct quadtree *tree = b->tree;
    struct level *next = &b->next;

    return array_reserve((void **)&tree->nodes, &tree->node_capacity, tree->node_count + 4,
                         sizeof *tree->nodes) &&
           array_reserve((void **)&next->open, &next->open_capacity, next->open_count + 4,
                         sizeof *next->open) &&
           array_reserve((void **)&next->pool, &next->pool_capacity,
                         next->pool_count + 4 * (size_t)count, sizeof *next->pool);
}

static void node_bounds(const struct builder *b, struct mesh_node *node, const uint32_t *list,
                        uint32_t count)
{
    node->z_min = INFINITY;
    node->z_max = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        const struct mesh_polygon *p = &b->set->polygons[list[i]];

        node->z_min = p->z_min < node->z_min ? p->z_min : node->z_min;
        node->z_max = p->z_max > node->z_max ? p->z_max : node->z_max;
    }
}

static bool leaf_make(struct builder *b, struct mesh_node *node, const struct open_node *open)
{
    struct quadtree *tree = b->tree;
    const uint32_t *list = b->level.pool + open->first;
    uint32_t floors = 0;

    if (!array_reserve((void **)&tree->refs, &tree->ref_capacity, tree->ref_count + open->count,
                       sizeof *tree->refs))
        return false;
    uint32_t *out = tree->refs + tree->ref_count;

    for (uint32_t i = 0; i < open->count; i++)
        if (!b->set->polygons[list[i]].is_wall)
            out[floors++] = list[i];
    for (uint32_t i = 0, walls = floors; i < open->count; i++)
        if (b->set->polygons[list[i]].is_wall)
            out[walls++] = list[i];
    memset(&node->as, 0, sizeof node->as);
    node->as.leaf.floors = floors;
    node->first = (uint32_t)tree->ref_count;
    node->count = open->count;
    tree->ref_count += open->count;
    tree->tests +=
        (open->box.x_max - open->box.x_min) * (open->box.y_max - open->box.y_min) * open->count;
    return true;
}

/* Where the middle is; false when the node is too small to have one, or nothing may be added. */
static bool may_split(const struct builder *b, const struct open_node *open, uint32_t depth,
                      struct vec2 *middle)
{
    const struct box2 *box = &open->box;
    size_t refs = b->tree->ref_count + b->level.pool_count + b->next.pool_count;

    *middle = (struct vec2){box->x_min + (box->x_max - box->x_min) / 2,
                            box->y_min + (box->y_max - box->y_min) / 2};
    return depth < b->max_depth && refs + 3 * (size_t)open->count <= b->refs_max &&
           b->tree->node_count < UINT32_MAX - 8 && middle->x > box->x_min &&
           middle->x < box->x_max && middle->y > box->y_min && middle->y < box->y_max;
}

/* True, with cut and b->quadrants, when the node is to be split. */
static bool wants_split(struct builder *b, const struct open_node *open, uint32_t depth,
                        struct vec2 *cut)
{
    const struct box2 *box = &open->box;
    struct quadtree_task task = {b->set, *box, b->level.pool + open->first, open->count};
    double all = (box->x_max - box->x_min) * (box->y_max - box->y_min) * open->count, tests;
    bool is_crowded = open->count > b->max_polygons;
    struct vec2 middle;

    if ((!is_crowded && (b->cuts == MESH_CUTS_EQUAL || all < b->worth_area)) ||
        !may_split(b, open, depth, &middle))
        return false;
    *cut = middle;
    /* where few queries are, the middle is as good as any */
    if (b->cuts == MESH_CUTS_CHOSEN && open->count <= QUADTREE_CANDIDATES_MAX &&
        all >= b->worth_area)
        *cut = quadtree_cut(&task, middle, &tests, b->quadrants);
    else
        tests = quadtree_part(&task, middle, b->quadrants);
    if (is_crowded)
        return b->cuts == MESH_CUTS_EQUAL || tests < SPLIT_GAIN * all;
    return all - tests > b->worth_area;
}

/* Four lists from one. */
static void distribute(struct builder *b, const struct open_node *open, struct vec2 cut)
{
    const uint32_t *list = b->level.pool + open->first;
    struct level *next = &b->next;

    for (unsigned q = 0; q < 4; q++) {
        struct open_node *child = &next->open[next->open_count++];
        uint32_t *out = next->pool + next->pool_count;
        uint32_t count = 0;

        for (uint32_t i = 0; i < open->count; i++) {
            out[count] = list[i];
            count += b->quadrants[i] >> q & 1;
        }
        *child = (struct open_node){box_quadrant(&open->box, cut, q), next->pool_count, count};
        next->pool_count += count;
    }
}

static bool node_place(struct builder *b, const struct open_node *open, uint32_t depth)
{
    struct quadtree *tree = b->tree;
    struct vec2 cut;

    node_bounds(b, &tree->nodes[b->rank], b->level.pool + open->first, open->count);
    if (!wants_split(b, open, depth, &cut)) {
        tree->depth = depth;
        return leaf_make(b, &tree->nodes[b->rank++], open);
    }
    if (!reserve_children(b, open->count))
        return false;
    struct mesh_node *node = &tree->nodes[b->rank++];

    node->as.cut = cut;
    node->first = (uint32_t)tree->node_count;
    node->count = MESH_NODE_INNER;
    tree->node_count += 4;
    distribute(b, open, cut);
    return true;
}

static bool root_open(struct builder *b)
{
    uint32_t count = (uint32_t)b->set->polygon_count;
    struct level *next = &b->next;

    if (!reserve_children(b, count))
        return false;
    next->open[0] = (struct open_node){b->set->root, 0, count};
    next->open_count = 1;
    next->pool_count = count;
    for (uint32_t i = 0; i < count; i++)
        next->pool[i] = i;
    b->tree->node_count = 1;
    return true;
}

static bool levels_build(struct builder *b)
{
    if (!root_open(b))
        return false;
    for (uint32_t depth = 0; b->next.open_count > 0; depth++) {
        struct level done = b->level;

        b->level = b->next;
        b->next = done;
        b->next.open_count = b->next.pool_count = 0;
        for (size_t i = 0; i < b->level.open_count; i++)
            if (pace_step(b->pace, NODE_UNITS + (uint64_t)POLYGON_UNITS * b->level.open[i].count,
                          b->err) ||
                !node_place(b, &b->level.open[i], depth))
                return false;
    }
    return true;
}

enum err_code quadtree_build(const struct convex_parts *set, uint32_t max_polygons,
                             uint32_t max_depth, enum mesh_cuts cuts, size_t refs_free,
                             struct pace *pace, struct quadtree *out, struct err *err)
{
    const struct box2 *root = &set->root;
    double area = (root->x_max - root->x_min) * (root->y_max - root->y_min);
    struct builder b = {
        .set = set,
        .tree = out,
        .max_polygons = max_polygons,
        .max_depth = max_depth,
        .cuts = cuts,
        .worth_area = SPLIT_WORTH * area / (double)set->polygon_count,
        .refs_max = QUADTREE_REFS_PER_POLYGON * set->polygon_count + refs_free,
        .pace = pace,
        .err = err,
    };

    err->code = ERR_OK;
    memset(out, 0, sizeof *out);
    b.quadrants = malloc(set->polygon_count);
    bool is_built = b.quadrants != NULL && levels_build(&b);

    free(b.quadrants);
    free(b.level.open);
    free(b.level.pool);
    free(b.next.open);
    free(b.next.pool);
    if (is_built && out->ref_count < UINT32_MAX)
        return ERR_OK;
    quadtree_free(out);
    if (err->code)
        return err->code;
    if (is_built)
        return err_set(err, ERR_TOO_LARGE, "the leaves of %zu polygons do not fit an index",
                       set->polygon_count);
    return err_set(err, ERR_NO_MEMORY, "no memory for a tree of %zu polygons", set->polygon_count);
}

void quadtree_free(struct quadtree *tree)
{
    free(tree->nodes);
    free(tree->refs);
    memset(tree, 0, sizeof *tree);
}
