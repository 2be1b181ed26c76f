/*
 * Recomputes a mesh's invariants, only from its vertices: edge lines and boxes bit for bit,
 * planes and heights within rounding, corners inside of their polygon's lines, and each leaf's
 * list: the polygons that reach into its box, each once, all of them and no other.
 *
 * Lists are checked from both ends. Each leaf's own list must hold nothing that does not reach into
 * it, in rising order, floors first. Then each polygon walks down from the root to every leaf that
 * it reaches, and the number of those visits must be that of all refs.
 */
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/radial/radial.h"

#include <stdlib.h>
#include <string.h>

static bool wrong(struct err *err, const char *what, uint64_t at)
{
    err_set(err, ERR_INTERNAL, "%s %llu is wrong", what, (unsigned long long)at);
    return false;
}

static bool corners_are_inside(const struct mesh *m, const struct mesh_polygon *p)
{
    double least = -m->header->slack;

    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = 0; k < p->count; k++) {
            struct vec3 v = m->vertices[m->corners[p->first + k]];

            if (!(line_value(&m->lines[p->first + i], v.x, v.y) >= least))
                return false;
        }
    return true;
}

/* Corners are on the plane and between the bounds. */
static bool plane_fits(const struct mesh *m, const struct mesh_polygon *p)
{
    double steepness = fabs(p->slope_x) + fabs(p->slope_y);
    struct vec3 first = m->vertices[m->corners[p->first]];
    double size = 0;

    for (uint32_t i = 1; i < p->count; i++)
        size = fmax(size, vec3_length(vec3_sub(m->vertices[m->corners[p->first + i]], first)));
    double tolerance = (1 + steepness) * (4 * m->header->slack + 2e-6 * size);

    for (uint32_t i = 0; i < p->count; i++) {
        struct vec3 v = m->vertices[m->corners[p->first + i]];
        double z = p->height + p->slope_x * (v.x - (double)p->x_min) +
                   p->slope_y * (v.y - (double)p->y_min);

        if (!(v.z >= (double)p->z_min && v.z <= (double)p->z_max))
            return false;
        if (!p->is_wall && !(fabs(z - v.z) <= tolerance))
            return false;
    }
    return true;
}

static bool polygon_check(const struct mesh *m, uint32_t i, struct mesh_line *lines,
                          struct err *err)
{
    const struct mesh_polygon *p = &m->polygons[i];
    const uint32_t *corners = m->corners + p->first;
    struct box2 box = convex_part_box(m->vertices, corners, p->count);

    convex_part_lines(m->vertices, corners, p->count, p->is_wall, lines);
    if (memcmp(lines, m->lines + p->first, p->count * sizeof *lines) != 0)
        return wrong(err, "an edge line of polygon", i);
    double slack = m->header->slack;

    if (p->x_min != float_down(box.x_min - slack) || p->y_min != float_down(box.y_min - slack) ||
        p->x_max != float_up(box.x_max + slack) || p->y_max != float_up(box.y_max + slack))
        return wrong(err, "the box of polygon", i);
    if (!p->is_wall && !(convex_part_normal(m->vertices, corners, p->count).z > 0))
        return wrong(err, "the order of corners of polygon", i);
    if (!corners_are_inside(m, p))
        return wrong(err, "convexity of polygon", i);
    if (!plane_fits(m, p))
        return wrong(err, "the plane of polygon", i);
    return true;
}

static bool polygons_check(const struct mesh *m, struct err *err)
{
    uint64_t polygons = m->header->count[MESH_POLYGONS], first = 0;
    struct mesh_line *lines = malloc((MESH_POLYGON_CORNERS_MAX + 1) * sizeof *lines);
    bool is_good = lines != NULL;

    if (!is_good)
        err_set(err, ERR_NO_MEMORY, "no memory to check a mesh");
    for (uint64_t i = 0; is_good && i < polygons; i++) {
        const struct mesh_polygon *p = &m->polygons[i];

        if (p->first != first || p->count > MESH_POLYGON_CORNERS_MAX)
            is_good = wrong(err, "the place of polygon", i);
        else
            is_good = polygon_check(m, (uint32_t)i, lines, err);
        first += p->count;
    }
    free(lines);
    return is_good;
}

/* ---- the tree ------------------------------------------------------------------------------- */

struct tree_check {
    const struct mesh *mesh;
    struct box2 *boxes; /* of the polygons */
    uint64_t refs_met;
    struct err *err;
};

static bool reaches(const struct tree_check *t, uint32_t polygon, const struct box2 *box)
{
    const struct mesh_polygon *p = &t->mesh->polygons[polygon];

    return box_is_reached(box, &t->boxes[polygon], t->mesh->lines + p->first, p->count,
                          reach_least(p->is_wall, t->mesh->header->slack));
}

static bool leaf_check(struct tree_check *t, const struct mesh_node *leaf, const struct box2 *box,
                       bool is_root)
{
    const struct mesh *m = t->mesh;
    const uint32_t *refs = m->leaf_refs + leaf->first;
    uint32_t number = (uint32_t)(leaf - m->nodes);

    if (leaf->first != t->refs_met)
        return wrong(t->err, "the place of the list of node", number);
    t->refs_met += leaf->count;
    for (uint32_t i = 0; i < leaf->count; i++) {
        const struct mesh_polygon *p = &m->polygons[refs[i]];

        if (p->is_wall != (i >= leaf->as.leaf.floors))
            return wrong(t->err, "the order of floors and walls of node", number);
        if (i > 0 && i != leaf->as.leaf.floors && refs[i] <= refs[i - 1])
            return wrong(t->err, "the order of the list of node", number);
        if (!is_root && !reaches(t, refs[i], box))
            return wrong(t->err, "a polygon in the list of node", number);
        if (p->z_min < leaf->z_min || p->z_max > leaf->z_max)
            return wrong(t->err, "the bounds of node", number);
    }
    return true;
}

struct visit {
    uint32_t node;
    struct box2 box;
};

/* All leaves; breadth first, since that is the order of the lists. */
static bool leaves_check(struct tree_check *t)
{
    const struct mesh *m = t->mesh;
    struct box2 *boxes = malloc(m->header->count[MESH_NODES] * sizeof *boxes);
    bool is_good = boxes != NULL;

    if (!is_good)
        err_set(t->err, ERR_NO_MEMORY, "no memory to check a mesh");
    else
        boxes[0] = m->header->root;
    for (uint64_t i = 0; is_good && i < m->header->count[MESH_NODES]; i++) {
        const struct mesh_node *n = &m->nodes[i];

        if (n->count != MESH_NODE_INNER) {
            is_good = leaf_check(t, n, &boxes[i], i == 0);
            continue;
        }
        for (unsigned q = 0; q < 4; q++) {
            const struct mesh_node *child = &m->nodes[n->first + q];

            boxes[n->first + q] = box_quadrant(&boxes[i], n->as.cut, q);
            if (child->z_min < n->z_min || child->z_max > n->z_max)
                is_good = wrong(t->err, "the bounds of node", i);
        }
        if (!(n->as.cut.x > boxes[i].x_min && n->as.cut.x < boxes[i].x_max &&
              n->as.cut.y > boxes[i].y_min && n->as.cut.y < boxes[i].y_max))
            is_good = wrong(t->err, "the cut of node", i);
    }
    free(boxes);
    return is_good;
}

/* In how many leaves a polygon should be. */
static uint64_t leaves_of(const struct tree_check *t, uint32_t polygon)
{
    struct visit stack[3 * MESH_DEPTH_MAX + 1];
    uint32_t depth = 0;
    uint64_t leaves = 0;

    stack[depth++] = (struct visit){0, t->mesh->header->root};
    while (depth > 0) {
        struct visit v = stack[--depth];
        const struct mesh_node *n = &t->mesh->nodes[v.node];

        if (v.node > 0 && !reaches(t, polygon, &v.box))
            continue;
        if (n->count != MESH_NODE_INNER) {
            leaves++;
            continue;
        }
        for (unsigned q = 0; q < 4; q++)
            stack[depth++] = (struct visit){n->first + q, box_quadrant(&v.box, n->as.cut, q)};
    }
    return leaves;
}

bool mesh_validate(const struct mesh *mesh, struct err *err)
{
    if (mesh->radial)
        return radial_validate(mesh->radial, err);
    const uint64_t *count = mesh->header->count;
    struct tree_check t = {mesh, malloc(count[MESH_POLYGONS] * sizeof *t.boxes), 0, err};
    bool is_good = t.boxes != NULL && polygons_check(mesh, err);
    uint64_t leaves = 0;

    if (t.boxes == NULL)
        err_set(err, ERR_NO_MEMORY, "no memory to check a mesh");
    for (uint64_t i = 0; is_good && i < count[MESH_POLYGONS]; i++) {
        const struct mesh_polygon *p = &mesh->polygons[i];

        t.boxes[i] = convex_part_box(mesh->vertices, mesh->corners + p->first, p->count);
    }
    is_good = is_good && leaves_check(&t);
    for (uint64_t i = 0; is_good && i < count[MESH_POLYGONS]; i++)
        leaves += leaves_of(&t, (uint32_t)i);
    if (is_good && (leaves != count[MESH_REFS] || t.refs_met != count[MESH_REFS]))
        is_good = wrong(err, "the number of refs", count[MESH_REFS]);
    free(t.boxes);
    return is_good && mesh_same_validate(mesh, err) && floor_grid_validate(mesh, err) &&
           mesh_rays_validate(mesh, err);
}
