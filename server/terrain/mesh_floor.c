/*
 * What stands above and below a point (Q, "Accessing Terrain Data").
 *
 * The point is turned into the mesh's frame; the directory and then two comparisons a level lead to
 * its leaf; each floor in the list is asked for its box, its edge lines, its height. A point within
 * `near` of a cut is looked up on both sides of it: leaf lists leave out floors that only touch
 * their leaf, which is what makes cuts through vertices worth making.
 *
 * Edges are inclusive by the slack (mesh_data.h), so a point on an edge, a vertex or the outer
 * border always has the floor. A height that the slack has led beyond the polygon is held between
 * its lowest and its highest corner.
 *
 * Heights are compared along up. "At or below" forgives the slack, too: a point that was put on a
 * floor by an earlier answer stands on it.
 */
#include "terrain/mesh_contact.h"

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
static inline bool is_inside(const struct column *c, const struct mesh_polygon *p)
{
    const struct mesh_line *line = c->mesh->lines + p->first;
    double least = -c->mesh->header->slack;
    bool inside = true;

    for (uint32_t i = 0; i < p->count; i++)
        inside &= line_value(&line[i], c->x, c->y) >= least;
    return inside;
}

static inline void floor_take(struct column *c, uint32_t polygon)
{
    const struct mesh_polygon *p = &c->mesh->polygons[polygon];
    double z =
        p->height + p->slope_x * (c->x - (double)p->x_min) + p->slope_y * (c->y - (double)p->y_min);

    z = z < (double)p->z_min ? (double)p->z_min : z > (double)p->z_max ? (double)p->z_max : z;
    z *= c->sign;
    if (z <= c->limit && z > c->best) {
        c->best = z;
        c->polygon = polygon;
    }
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

/* From where to go down: the node of the point's cell, or the root, or NULL outside of the root. */
static inline const struct mesh_node *column_node(const struct column *c)
{
    const struct mesh_directory *d = &c->mesh->directory;
    const struct box2 *root = &c->mesh->header->root;
    double x = (c->x - root->x_min) * d->scale.x, y = (c->y - root->y_min) * d->scale.y;
    double near = c->mesh->header->near;

    if (x >= 0 && x < d->side && y >= 0 && y < d->side) {
        uint32_t col = (uint32_t)x, row = (uint32_t)y;

        x -= col;
        y -= row;
        if (x >= d->margin.x && x <= 1 - d->margin.x && y >= d->margin.y && y <= 1 - d->margin.y)
            return c->mesh->nodes + d->nodes[(size_t)row * d->side + col];
    }
    return c->x >= root->x_min - near && c->x <= root->x_max + near && c->y >= root->y_min - near &&
                   c->y <= root->y_max + near
               ? c->mesh->nodes
               : NULL;
}

static void column_scan(struct column *c)
{
    const struct mesh_node *n = column_node(c);
    double near = c->mesh->header->near;

    c->best = -INFINITY;
    c->polygon = NO_POLYGON;
    if (n == NULL)
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

struct vec3 mesh_floor_normal(const struct mesh *mesh, uint32_t polygon)
{
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    struct vec3 n = {-p->slope_x, -p->slope_y, 1};

    return mesh_turn_back(mesh->header, vec3_unit(n));
}

bool mesh_column(const struct mesh *mesh, double x, double y, bool is_up, double limit, double *z,
                 uint32_t *polygon)
{
    double sign = is_up ? -1 : 1;
    struct column c = {.mesh = mesh, .x = x, .y = y, .sign = sign, .limit = sign * limit};

    column_scan(&c);
    if (c.polygon == NO_POLYGON)
        return false;
    *z = sign * c.best;
    *polygon = c.polygon;
    return true;
}

struct vec3 mesh_column_point(const struct mesh *mesh, struct vec3 point, double z)
{
    struct vec3 up = mesh_up(mesh->header);
    /* in this order, so that a coordinate across gravity stays what it was */
    struct vec3 across = vec3_sub(point, vec3_scale(up, vec3_dot(up, point)));

    return vec3_add(across, vec3_scale(up, z + vec3_dot(up, mesh->header->centre)));
}

/* at is in the mesh's frame. */
static void contact_fill(const struct mesh *mesh, struct vec3 point, struct vec3 at, double z,
                         uint32_t polygon, struct mesh_contact *out)
{
    out->point = mesh_column_point(mesh, point, z);
    out->normal = mesh_floor_normal(mesh, polygon);
    out->distance_m = at.z - z;
    out->polygon = mesh->polygons[polygon].source;
}

bool mesh_floor(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                struct mesh_contact *out)
{
    struct vec3 at = mesh_to_frame(mesh->header, point);
    double z;
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, false, at.z + reach_up_m + mesh->header->slack, &z,
                     &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
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
