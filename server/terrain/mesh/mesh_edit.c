/*
 * Polygons added in place.
 *
 * Problem: a mesh is one immutable block that readers are in while it changes, and building one
 * takes 2 µs a polygon, nearly all of it for cutting, sorting and measuring. Approach: the next
 * mesh is a copy of the block with the new parts spliced in. Of the polygons that were there
 * nothing is computed again.
 *
 * 1. Pieces (convex_parts.c) of only the added polygons, in the frame and with the slack of the
 *    mesh.
 * 2. The tree, breadth first, as an image wants it: each old node is copied; the added pieces that
 *    reach into it go on to those of its children that they reach into. Leaf lists are copied
 *    without the removed polygons and with the added ones. A list over max_polygons is
 *    built as a small tree of its own (quadtree.c, with the leaf's box as its root), which takes
 *    the place of the leaf. Then bounds are drawn together from the leaves up.
 * 3. Polygons, lines, corners and vertices: copied without the pieces that are removed, the new
 *    ones after them. Order among those that stay is kept, so of two polygons at one place the same
 *    one is reported as by a mesh that is built again. Vertices of removed polygons stay, unused.
 * 4. Which polygons are equal: mesh_same.c. Columns (floor_grid_edit): the cells that were
 *    touched. Trees of rays: mesh_rays.c.
 *
 * A polygon beyond the root's box makes the box larger: nodes store cuts and no boxes, so the
 * leaves at the border grow with it, and nothing else is changed. One beyond the greatest
 * coordinate would need a greater slack, which is in every box and list: then the mesh is built
 * again.
 *
 * The content hash of a copy would take longer than the copy. So the mesh is named by its origin,
 * by what it was made of: hash(name of the old mesh, change); the image is sealed when a caller
 * wants it (mesh_seal).
 *
 * The tree gets worse with time: cuts were chosen for other polygons, leaves that have lost theirs
 * stay. The owner of a mesh watches its average_tests and builds it again (world/values/layer.c).
 *
 * Tried on paper and dropped: sharing blocks of the image between versions (each access an
 * indirection more for ever, to save a memcpy of 1 ms each 10 MB); a second small mesh beside the
 * large one (each query needs both, and removed polygons have to be known to both).
 */
#include "terrain/mesh/mesh_edit.h"

#include "base/array_reserve.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/quadtree.h"
#include "terrain/radial/radial.h"

#include <stdlib.h>
#include <string.h>

/* Leaf lists of an edited mesh have at most so many times the refs of a built one, where each may
 * be at its bound. */
enum { REFS_TIMES = 2 };

#define NO_POLYGON UINT32_MAX

/* A leaf that was split: a tree over polygons list[local index]. */
struct graft {
    struct graft *next;
    struct quadtree tree;
    uint32_t list[];
};

/* A node to be written. */
struct visit {
    struct box2 box;     /* of a node of the old tree */
    struct graft *graft; /* NULL: of the old tree */
    uint32_t node;
    uint32_t first, count; /* in the pool: added pieces that reach into it */
};

/* Pieces of the old mesh that stay: begin .. end - 1. */
struct run {
    uint32_t begin, end;
};

struct editor {
    const struct mesh *old;
    const struct mesh_change *change;
    struct mesh_header header; /* of the next one */
    struct convex_parts more;  /* the added ones */
    uint32_t old_count;        /* pieces of the old mesh */
    uint32_t kept;             /* of them; those that are added follow */
    struct run *runs;
    size_t run_count;
    uint32_t *map;     /* [old_count] new index or NO_POLYGON; NULL: none is removed */
    struct box2 *gone; /* boxes of removed floors */
    size_t gone_count;

    struct visit *visits;
    size_t visit_count, visit_capacity;
    uint32_t *pool;
    size_t pool_count, pool_capacity;
    struct quadtree tree; /* that is being written */
    struct graft *grafts;
    uint32_t *list, *from; /* of one leaf: new index; old index, or old_count + index in more */
    size_t list_capacity, from_capacity;
    uint64_t refs_max;
};

static enum err_code no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory to edit a mesh");
}

/* ---- kept parts ------------------------------------------------------------------------------ */

/* The first piece whose number is not below; pieces are in the order of their numbers. */
static uint32_t piece_of(const struct mesh *mesh, uint32_t number)
{
    uint32_t low = 0, high = (uint32_t)mesh->header->count[MESH_POLYGONS];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (mesh->polygons[middle].source < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool note_gone(struct editor *e, uint32_t begin, uint32_t end, size_t *capacity)
{
    const struct mesh *m = e->old;

    if (!array_reserve((void **)&e->gone, capacity, e->gone_count + (end - begin), sizeof *e->gone))
        return false;
    for (uint32_t i = begin; i < end; i++)
        if (!m->polygons[i].is_wall)
            e->gone[e->gone_count++] = convex_part_box(
                m->vertices, m->corners + m->polygons[i].first, m->polygons[i].count);
    return true;
}

static bool runs_make(struct editor *e)
{
    const struct mesh_change *change = e->change;
    size_t capacity = 0;
    uint32_t at = 0;

    e->runs = malloc((change->removed_count + 1) * sizeof *e->runs);
    if (!e->runs)
        return false;
    for (size_t i = 0; i < change->removed_count; i++) {
        uint32_t number = change->removed[i];
        uint32_t begin = piece_of(e->old, number), end = begin;

        CHECK(i == 0 || number > change->removed[i - 1]);
        while (end < e->old_count && e->old->polygons[end].source == number)
            end++;
        if (begin == end)
            continue;
        if (begin > at)
            e->runs[e->run_count++] = (struct run){at, begin};
        if (!note_gone(e, begin, end, &capacity))
            return false;
        at = end;
    }
    if (at < e->old_count)
        e->runs[e->run_count++] = (struct run){at, e->old_count};
    for (size_t i = 0; i < e->run_count; i++)
        e->kept += e->runs[i].end - e->runs[i].begin;
    return true;
}

static bool map_make(struct editor *e)
{
    uint32_t next = 0;

    if (e->kept == e->old_count)
        return true;
    e->map = malloc(e->old_count * sizeof *e->map);
    if (!e->map)
        return false;
    memset(e->map, 0xff, e->old_count * sizeof *e->map);
    for (size_t r = 0; r < e->run_count; r++)
        for (uint32_t i = e->runs[r].begin; i < e->runs[r].end; i++)
            e->map[i] = next++;
    return true;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static struct visit *visit_add(struct editor *e)
{
    struct visit *visit = &e->visits[e->visit_count++];

    *visit = (struct visit){.node = 0};
    return visit;
}

static bool more_reaches(const struct editor *e, uint32_t k, const struct box2 *box)
{
    const struct mesh_polygon *p = &e->more.polygons[k];

    return box_is_reached(box, &e->more.boxes[k], e->more.lines + p->first, p->count,
                          reach_least(p->is_wall, e->header.slack));
}

/* Four children of a node that is written as an inner one. */
static bool inner_put(struct editor *e, size_t rank, struct vec2 cut)
{
    struct mesh_node *node = &e->tree.nodes[rank];

    if (!array_reserve((void **)&e->visits, &e->visit_capacity, e->visit_count + 4,
                       sizeof *e->visits))
        return false;
    memset(&node->as, 0, sizeof node->as);
    node->as.cut = cut;
    node->first = (uint32_t)e->visit_count;
    node->count = MESH_NODE_INNER;
    return true;
}

static bool old_inner_put(struct editor *e, size_t rank, const struct mesh_node *from)
{
    const struct visit v = e->visits[rank];

    if (!inner_put(e, rank, from->as.cut) ||
        !array_reserve((void **)&e->pool, &e->pool_capacity, e->pool_count + 4 * (size_t)v.count,
                       sizeof *e->pool))
        return false;
    for (unsigned q = 0; q < 4; q++) {
        struct visit *child = visit_add(e);

        child->box = box_quadrant(&v.box, from->as.cut, q);
        child->node = from->first + q;
        child->first = (uint32_t)e->pool_count;
        for (uint32_t i = 0; i < v.count; i++)
            if (more_reaches(e, e->pool[v.first + i], &child->box))
                e->pool[e->pool_count++] = e->pool[v.first + i];
        child->count = (uint32_t)e->pool_count - child->first;
    }
    return true;
}

static const struct mesh_polygon *polygon_from(const struct editor *e, uint32_t from)
{
    return from < e->old_count ? &e->old->polygons[from] : &e->more.polygons[from - e->old_count];
}

/* A leaf of list[count], floors first; its bounds from its polygons. */
static bool leaf_put(struct editor *e, size_t rank, uint32_t floors, uint32_t count)
{
    struct mesh_node *node = &e->tree.nodes[rank];

    if (!array_reserve((void **)&e->tree.refs, &e->tree.ref_capacity, e->tree.ref_count + count,
                       sizeof *e->tree.refs))
        return false;
    memset(node, 0, sizeof *node);
    node->as.leaf.floors = floors;
    node->first = (uint32_t)e->tree.ref_count;
    node->count = count;
    node->z_min = INFINITY;
    node->z_max = -INFINITY;
    if (count > 0)
        memcpy(e->tree.refs + node->first, e->list, count * sizeof *e->list);
    e->tree.ref_count += count;
    for (uint32_t i = 0; i < count; i++) {
        const struct mesh_polygon *p = polygon_from(e, e->from[i]);

        node->z_min = p->z_min < node->z_min ? p->z_min : node->z_min;
        node->z_max = p->z_max > node->z_max ? p->z_max : node->z_max;
    }
    return true;
}

static void list_add(struct editor *e, uint32_t *count, uint32_t index, uint32_t from)
{
    e->list[*count] = index;
    e->from[(*count)++] = from;
}

/* The list of an old leaf after removals and additions; the number of its floors. */
static uint32_t list_make(struct editor *e, const struct visit *v, const struct mesh_node *leaf,
                          uint32_t *count)
{
    const uint32_t *refs = e->old->leaf_refs + leaf->first, *added = e->pool + v->first;
    uint32_t floors = 0;

    *count = 0;
    for (unsigned is_wall = 0; is_wall < 2; is_wall++) {
        uint32_t begin = is_wall ? leaf->as.leaf.floors : 0;
        uint32_t end = is_wall ? leaf->count : leaf->as.leaf.floors;

        for (uint32_t i = begin; i < end; i++) {
            uint32_t index = e->map ? e->map[refs[i]] : refs[i];

            if (index != NO_POLYGON)
                list_add(e, count, index, refs[i]);
        }
        for (uint32_t i = 0; i < v->count; i++)
            if (e->more.polygons[added[i]].is_wall == is_wall)
                list_add(e, count, e->kept + added[i], e->old_count + added[i]);
        floors = is_wall ? floors : *count;
    }
    return floors;
}

/* The polygons of from[count] by themselves, their lines and boxes. */
static bool leaf_set(const struct editor *e, uint32_t count, const struct box2 *box,
                     struct convex_parts *out)
{
    size_t corners = 0;

    for (uint32_t i = 0; i < count; i++)
        corners += polygon_from(e, e->from[i])->count;
    *out = (struct convex_parts){.polygon_count = count, .root = *box, .slack = e->header.slack};
    out->polygons = malloc(count * sizeof *out->polygons);
    out->boxes = malloc(count * sizeof *out->boxes);
    out->lines = malloc(corners * sizeof *out->lines);
    if (!out->polygons || !out->boxes || !out->lines)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        bool is_old = e->from[i] < e->old_count;
        const struct mesh_polygon *p = polygon_from(e, e->from[i]);
        const struct mesh_line *lines = (is_old ? e->old->lines : e->more.lines) + p->first;

        out->polygons[i] = *p;
        out->polygons[i].first = (uint32_t)out->corner_count;
        out->boxes[i] =
            is_old ? convex_part_box(e->old->vertices, e->old->corners + p->first, p->count)
                   : e->more.boxes[e->from[i] - e->old_count];
        memcpy(out->lines + out->corner_count, lines, p->count * sizeof *lines);
        out->corner_count += p->count;
    }
    return true;
}

/* A tree over list[count] in a box, *out NULL when that is no more than a leaf. */
static enum err_code graft_make(struct editor *e, uint32_t count, const struct box2 *box,
                                uint32_t depth, struct graft **out, struct err *err)
{
    const struct mesh_header *h = &e->header;
    struct graft *graft = calloc(1, sizeof *graft + count * sizeof *graft->list);
    struct convex_parts set = {.polygons = NULL};
    enum err_code code;

    *out = NULL;
    if (!graft || !leaf_set(e, count, box, &set))
        code = no_memory(err);
    else
        code = quadtree_build(&set, h->max_polygons, h->max_depth - depth, (enum mesh_cuts)h->cuts,
                              0, e->change->pace, &graft->tree, err);
    convex_parts_free(&set);
    if (code || graft->tree.node_count == 1) {
        if (graft)
            quadtree_free(&graft->tree);
        free(graft);
        return code;
    }
    memcpy(graft->list, e->list, count * sizeof *graft->list);
    graft->next = e->grafts;
    e->grafts = graft;
    *out = graft;
    return ERR_OK;
}

/* A node of a small tree in the place of a leaf. */
static bool graft_put(struct editor *e, size_t rank, struct graft *graft, uint32_t at)
{
    const struct mesh_node *from = &graft->tree.nodes[at];
    struct mesh_node *node = &e->tree.nodes[rank];

    if (from->count == MESH_NODE_INNER) {
        if (!inner_put(e, rank, from->as.cut))
            return false;
        for (unsigned q = 0; q < 4; q++) {
            struct visit *child = visit_add(e);

            child->graft = graft;
            child->node = from->first + q;
        }
        return true;
    }
    if (!array_reserve((void **)&e->tree.refs, &e->tree.ref_capacity,
                       e->tree.ref_count + from->count, sizeof *e->tree.refs))
        return false;
    *node = *from;
    node->first = (uint32_t)e->tree.ref_count;
    for (uint32_t i = 0; i < from->count; i++)
        e->tree.refs[e->tree.ref_count++] = graft->list[graft->tree.refs[from->first + i]];
    return true;
}

static bool is_untouched(const struct editor *e, const struct visit *v,
                         const struct mesh_node *leaf)
{
    const uint32_t *refs = e->old->leaf_refs + leaf->first;

    if (v->count > 0)
        return false;
    for (uint32_t i = 0; e->map && i < leaf->count; i++)
        if (e->map[refs[i]] == NO_POLYGON)
            return false;
    return true;
}

static bool untouched_put(struct editor *e, size_t rank, const struct mesh_node *leaf)
{
    const uint32_t *refs = e->old->leaf_refs + leaf->first;
    uint32_t *to;

    if (!array_reserve((void **)&e->tree.refs, &e->tree.ref_capacity,
                       e->tree.ref_count + leaf->count, sizeof *e->tree.refs))
        return false;
    to = e->tree.refs + e->tree.ref_count;
    e->tree.nodes[rank] = *leaf;
    e->tree.nodes[rank].first = (uint32_t)e->tree.ref_count;
    e->tree.ref_count += leaf->count;
    for (uint32_t i = 0; i < leaf->count; i++)
        to[i] = e->map ? e->map[refs[i]] : refs[i];
    return true;
}

static bool may_split(const struct editor *e, const struct visit *v, uint32_t count, uint32_t depth)
{
    const struct mesh_header *h = &e->header;
    uint64_t refs = e->old->header->count[MESH_REFS] + e->tree.ref_count;

    return v->count > 0 && count > h->max_polygons && depth < h->max_depth &&
           refs + 4 * (uint64_t)count <= e->refs_max;
}

static enum err_code old_leaf_put(struct editor *e, size_t rank, const struct mesh_node *leaf,
                                  uint32_t depth, struct err *err)
{
    const struct visit v = e->visits[rank];
    uint32_t count, floors;
    struct graft *graft = NULL;
    bool is_put;

    if (is_untouched(e, &v, leaf))
        return untouched_put(e, rank, leaf) ? ERR_OK : no_memory(err);
    if (!array_reserve((void **)&e->list, &e->list_capacity, leaf->count + v.count,
                       sizeof *e->list) ||
        !array_reserve((void **)&e->from, &e->from_capacity, leaf->count + v.count,
                       sizeof *e->from))
        return no_memory(err);
    floors = list_make(e, &v, leaf, &count);
    if (may_split(e, &v, count, depth) && graft_make(e, count, &v.box, depth, &graft, err))
        return err->code;
    is_put = graft ? graft_put(e, rank, graft, 0) : leaf_put(e, rank, floors, count);
    return is_put ? ERR_OK : no_memory(err);
}

static enum err_code node_put(struct editor *e, size_t rank, uint32_t depth, struct err *err)
{
    const struct visit v = e->visits[rank];
    const struct mesh_node *from = &e->old->nodes[v.node];
    bool is_put;

    if (!array_reserve((void **)&e->tree.nodes, &e->tree.node_capacity, rank + 1,
                       sizeof *e->tree.nodes))
        return no_memory(err);
    e->tree.node_count = rank + 1;
    if (!v.graft && from->count != MESH_NODE_INNER)
        return old_leaf_put(e, rank, from, depth, err);
    is_put = v.graft ? graft_put(e, rank, v.graft, v.node) : old_inner_put(e, rank, from);
    return is_put ? ERR_OK : no_memory(err);
}

/* Inner nodes' bounds from those of their children, which are after them. */
static void bounds_draw(struct quadtree *tree)
{
    for (size_t i = tree->node_count; i-- > 0;) {
        struct mesh_node *node = &tree->nodes[i];

        if (node->count != MESH_NODE_INNER)
            continue;
        node->z_min = INFINITY;
        node->z_max = -INFINITY;
        for (unsigned q = 0; q < 4; q++) {
            const struct mesh_node *child = &tree->nodes[node->first + q];

            node->z_min = child->z_min < node->z_min ? child->z_min : node->z_min;
            node->z_max = child->z_max > node->z_max ? child->z_max : node->z_max;
        }
    }
}

static bool root_open(struct editor *e)
{
    size_t nodes = e->old->header->count[MESH_NODES] + 64;
    size_t refs = e->old->header->count[MESH_REFS] + 256;
    struct visit *root;

    if (!array_reserve((void **)&e->visits, &e->visit_capacity, nodes, sizeof *e->visits) ||
        !array_reserve((void **)&e->tree.nodes, &e->tree.node_capacity, nodes,
                       sizeof *e->tree.nodes) ||
        !array_reserve((void **)&e->tree.refs, &e->tree.ref_capacity, refs, sizeof *e->tree.refs) ||
        !array_reserve((void **)&e->pool, &e->pool_capacity, e->more.polygon_count + 1,
                       sizeof *e->pool))
        return false;
    root = visit_add(e);
    root->box = e->header.root;
    root->count = (uint32_t)e->more.polygon_count;
    for (uint32_t i = 0; i < root->count; i++)
        e->pool[e->pool_count++] = i;
    return true;
}

static enum err_code tree_edit(struct editor *e, struct err *err)
{
    uint32_t depth = 0;
    size_t level_end = 1;

    e->refs_max = (uint64_t)QUADTREE_REFS_PER_POLYGON * (e->kept + e->more.polygon_count) +
                  QUADTREE_REFS_FREE;
    if (!root_open(e))
        return no_memory(err);
    for (size_t rank = 0; rank < e->visit_count; rank++) {
        if (rank == level_end) {
            depth++;
            level_end = e->visit_count;
        }
        if (node_put(e, rank, depth, err))
            return err->code;
        if (e->tree.ref_count > REFS_TIMES * e->refs_max || e->pool_count > UINT32_MAX / 2 ||
            e->visit_count > UINT32_MAX / 2)
            return err_set(err, ERR_CONFLICT, "the leaf lists of the mesh are full");
    }
    e->header.depth = depth;
    bounds_draw(&e->tree);
    return ERR_OK;
}

/* ---- the image ------------------------------------------------------------------------------- */

static void box_widen(struct box2 *box, const struct box2 *by)
{
    box->x_min = fmin(box->x_min, by->x_min);
    box->y_min = fmin(box->y_min, by->y_min);
    box->x_max = fmax(box->x_max, by->x_max);
    box->y_max = fmax(box->y_max, by->y_max);
}

/* The box of the corners of all polygons that have pieces, in the locale's frame. */
static struct box3 bounds_of(const struct editor *e, const struct mesh_polygon *polygons,
                             size_t count)
{
    const struct polygon_soup *after = e->change->after;
    struct vec3 low = {INFINITY, INFINITY, INFINITY}, high = {-INFINITY, -INFINITY, -INFINITY};
    uint32_t last = NO_POLYGON;

    for (size_t i = 0; i < count; i++) {
        uint32_t number = polygons[i].source;

        if (number == last)
            continue;
        last = number;
        CHECK(number < after->polygon_count);
        for (uint32_t k = after->starts[number]; k < after->starts[number + 1]; k++) {
            struct vec3 v = after->vertices[after->corners[k]];

            low = (struct vec3){fmin(low.x, v.x), fmin(low.y, v.y), fmin(low.z, v.z)};
            high = (struct vec3){fmax(high.x, v.x), fmax(high.y, v.y), fmax(high.z, v.z)};
        }
    }
    return (struct box3){low, high};
}

struct sections {
    struct mesh_polygon *polygons;
    struct mesh_line *lines;
    uint32_t *corners;
    struct vec3 *vertices;
};

/* Old pieces that stay; false when they are not in the order of their corners. */
static bool old_put(const struct editor *e, struct sections *to, size_t *corners)
{
    const struct mesh *m = e->old;
    uint32_t next = 0;

    for (size_t r = 0; r < e->run_count; r++) {
        const struct run *run = &e->runs[r];
        const struct mesh_polygon *first = &m->polygons[run->begin];
        uint32_t at = first->first;

        for (uint32_t i = run->begin; i < run->end; i++) {
            struct mesh_polygon *p = &to->polygons[next++];

            *p = m->polygons[i];
            if (p->first != at)
                return false;
            at += p->count;
            p->first = (uint32_t)(p->first - first->first + *corners);
        }
        memcpy(to->lines + *corners, m->lines + first->first,
               (at - first->first) * sizeof *to->lines);
        memcpy(to->corners + *corners, m->corners + first->first,
               (at - first->first) * sizeof *to->corners);
        *corners += at - first->first;
    }
    memcpy(to->vertices, m->vertices, m->header->count[MESH_VERTICES] * sizeof *to->vertices);
    return true;
}

static void more_put(const struct editor *e, struct sections *to, size_t corners)
{
    uint32_t vertices = (uint32_t)e->old->header->count[MESH_VERTICES];
    const struct convex_parts *more = &e->more;

    for (size_t i = 0; i < more->polygon_count; i++) {
        struct mesh_polygon *p = &to->polygons[e->kept + i];

        *p = more->polygons[i];
        p->first += (uint32_t)corners;
        p->source += e->change->first_number;
    }
    for (size_t k = 0; k < more->corner_count; k++)
        to->corners[corners + k] = more->corners[k] + vertices;
    if (more->corner_count > 0)
        memcpy(to->lines + corners, more->lines, more->corner_count * sizeof *to->lines);
    if (more->vertex_count > 0)
        memcpy(to->vertices + vertices, more->vertices, more->vertex_count * sizeof *to->vertices);
}

static size_t corners_kept(const struct editor *e)
{
    size_t corners = 0;

    for (size_t r = 0; r < e->run_count; r++) {
        const struct mesh_polygon *last = &e->old->polygons[e->runs[r].end - 1];

        corners += last->first + last->count - e->old->polygons[e->runs[r].begin].first;
    }
    return corners;
}

static void counts_set(struct editor *e)
{
    struct mesh_header *h = &e->header;

    h->count[MESH_NODES] = e->tree.node_count;
    h->count[MESH_POLYGONS] = e->kept + e->more.polygon_count;
    h->count[MESH_LINES] = h->count[MESH_CORNERS] = corners_kept(e) + e->more.corner_count;
    h->count[MESH_REFS] = e->tree.ref_count;
    h->count[MESH_VERTICES] = e->old->header->count[MESH_VERTICES] + e->more.vertex_count;
}

/* Between the end of each section and the next one. */
static void gaps_clear(uint8_t *image, const struct mesh_header *h)
{
    static const size_t size[MESH_SECTIONS] = {
        sizeof(struct mesh_node), sizeof(struct mesh_polygon),
        sizeof(struct mesh_line), sizeof(uint32_t),
        sizeof(uint32_t),         sizeof(struct vec3)};

    memset(image + sizeof *h, 0, h->offset[0] - sizeof *h);
    for (int s = 0; s < MESH_SECTIONS; s++) {
        uint64_t end = h->offset[s] + h->count[s] * size[s];
        uint64_t next = s + 1 < MESH_SECTIONS ? h->offset[s + 1] : h->bytes;

        memset(image + end, 0, next - end);
    }
}

static enum err_code image_fill(struct editor *e, uint8_t *image, struct err *err)
{
    struct mesh_header *h = &e->header;
    struct sections to = {
        (void *)(image + h->offset[MESH_POLYGONS]), (void *)(image + h->offset[MESH_LINES]),
        (void *)(image + h->offset[MESH_CORNERS]), (void *)(image + h->offset[MESH_VERTICES])};
    size_t corners = 0;

    gaps_clear(image, h);
    memcpy(image + h->offset[MESH_NODES], e->tree.nodes,
           e->tree.node_count * sizeof *e->tree.nodes);
    memcpy(image + h->offset[MESH_REFS], e->tree.refs, e->tree.ref_count * sizeof *e->tree.refs);
    if (!old_put(e, &to, &corners))
        return err_set(err, ERR_CONFLICT, "the polygons of the mesh are not in order");
    more_put(e, &to, corners);
    if (e->map)
        h->bounds = bounds_of(e, to.polygons, h->count[MESH_POLYGONS]);
    else if (e->more.polygon_count > 0)
        h->bounds = box3_union(h->bounds, e->more.bounds);
    memcpy(image, h, sizeof *h);
    return ERR_OK;
}

/* The mesh's name: a hash of its origin. */
static void name_set(struct mesh *mesh, const struct editor *e)
{
    const struct mesh_change *c = e->change;
    const struct polygon_soup *added = c->added;
    uint8_t parts[6][32] = {{0}};

    memcpy(parts[0], mesh_content(e->old), sizeof parts[0]);
    memcpy(parts[1], &c->first_number, sizeof c->first_number);
    content_hash(c->removed, c->removed_count * sizeof *c->removed, parts[2]);
    if (added) {
        size_t corners = added->starts[added->polygon_count];

        content_hash(added->vertices, added->vertex_count * sizeof *added->vertices, parts[3]);
        content_hash(added->corners, corners * sizeof *added->corners, parts[4]);
        content_hash(added->starts, (added->polygon_count + 1) * sizeof *added->starts, parts[5]);
    }
    content_hash(parts, sizeof parts, mesh->content);
}

static struct mesh *mesh_of(struct editor *e, struct err *err)
{
    struct floor_grid_change change = {e->map, e->gone, e->gone_count, e->kept, e->more.boxes};
    uint32_t *moved = NULL;
    uint8_t *image;
    struct mesh *mesh;

    counts_set(e);
    if (!mesh_header_lay_out(&e->header)) {
        err_set(err, ERR_TOO_LARGE, "the mesh would have more than 2^32 polygons or corners");
        return NULL;
    }
    image = aligned_alloc(MESH_ALIGNMENT, e->header.bytes);
    if (!image) {
        no_memory(err);
        return NULL;
    }
    mesh = image_fill(e, image, err) == ERR_OK ? mesh_over(image, err) : NULL;
    if (!mesh) {
        free(image);
        return NULL;
    }
    atomic_store(&mesh->seal, MESH_UNSEALED);
    name_set(mesh, e);
    if (mesh_same_edit(mesh, e->old, e->map, e->kept, &moved, err) == ERR_OK) {
        change.map = moved ? moved : e->map;
        if (floor_grid_edit(mesh, e->old, &change, e->change->pace, err) == ERR_OK)
            mesh_rays_edit(mesh, e->old, e->map, moved, e->change->pace, err);
    }
    free(moved);
    if (err->code != ERR_OK) {
        mesh_unref(mesh);
        return NULL;
    }
    return mesh;
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum err_code change_check(const struct mesh *mesh, const struct mesh_change *change,
                                  struct err *err)
{
    if (change->added && soup_check(change->added, err))
        return err->code;
    if (mesh->radial)
        return err_set(err, ERR_CONFLICT, "a mesh under radial gravity is built as a whole");
    CHECK(change->removed_count == 0 || change->removed);
    return ERR_OK;
}

static enum err_code pieces_add(struct editor *e, struct err *err)
{
    const struct polygon_soup *added = e->change->added;
    struct mesh_import import;
    enum err_code code;

    if (e->change->import)
        memset(e->change->import, 0, sizeof *e->change->import);
    if (!added || added->polygon_count == 0)
        return ERR_OK;
    if (convex_parts_slack(added, &e->header) > e->header.slack)
        return err_set(err, ERR_CONFLICT, "a polygon is farther out than the mesh is exact");
    code = convex_parts_make_more(added, &e->header, e->change->pace, &e->more, &import, err);
    if (e->change->import)
        *e->change->import = import;
    if (code)
        return code;
    if (e->more.polygon_count > 0)
        box_widen(&e->header.root, &e->more.root);
    return ERR_OK;
}

static void editor_finish(struct editor *e)
{
    while (e->grafts) {
        struct graft *next = e->grafts->next;

        quadtree_free(&e->grafts->tree);
        free(e->grafts);
        e->grafts = next;
    }
    convex_parts_free(&e->more);
    quadtree_free(&e->tree);
    free(e->runs);
    free(e->map);
    free(e->gone);
    free(e->visits);
    free(e->pool);
    free(e->list);
    free(e->from);
}

static struct mesh *edit(struct editor *e, struct err *err)
{
    if (pieces_add(e, err))
        return NULL;
    if (!runs_make(e) || !map_make(e)) {
        no_memory(err);
        return NULL;
    }
    if (e->kept + e->more.polygon_count == 0) {
        err_set(err, ERR_UNPROCESSABLE, "no polygon would be left");
        return NULL;
    }
    return tree_edit(e, err) == ERR_OK ? mesh_of(e, err) : NULL;
}

struct mesh *mesh_edit(const struct mesh *mesh, const struct mesh_change *change, struct err *err)
{
    struct editor e = {.old = mesh, .change = change};
    struct mesh *next;

    err->code = ERR_OK;
    if (change_check(mesh, change, err))
        return NULL;
    e.header = mesh_header_copy(mesh);
    e.old_count = (uint32_t)e.header.count[MESH_POLYGONS];
    next = edit(&e, err);
    editor_finish(&e);
    VALIDATE_THAT(next == NULL || mesh_validate(next, err));
    return next;
}

void mesh_count_pieces(const struct mesh *mesh, uint32_t first, size_t count, uint32_t *pieces)
{
    const struct radial *radial = mesh->radial;

    memset(pieces, 0, count * sizeof *pieces);
    if (radial) { /* in the order of the tree */
        for (uint64_t i = 0; i < radial->header->count[RADIAL_POLYGONS]; i++) {
            uint32_t number = radial->polygons[i].source;

            if (number >= first && number - first < count)
                pieces[number - first]++;
        }
        return;
    }
    for (uint64_t i = piece_of(mesh, first); i < mesh->header->count[MESH_POLYGONS]; i++)
        if (mesh->polygons[i].source - first < count)
            pieces[mesh->polygons[i].source - first]++;
}
