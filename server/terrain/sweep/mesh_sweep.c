/*
 * Shapes swept against a mesh, also one under radial gravity or in a pose.
 *
 * The shape and its way are turned into the frame of the mesh, the touch is turned back. The tree
 * of boxes for rays gives the polygons that the shape's box may meet (ray_tree_sweep); each is
 * tested as a fan of triangles, exactly (triangle.c). An edge within a fan is inside of the polygon
 * and changes no answer. A polygon of many corners is in several lanes of the tree; the last ones
 * that were tested are remembered.
 */
#include "terrain/sweep/triangle.h"

#include "terrain/instances/instances.h"
#include "terrain/power.h"
#include "terrain/radial/radial.h"

enum { REMEMBERED = 8 };

struct mesh_sweep {
    struct sweep s; /* in the mesh's frame */
    struct sweep_slabs slabs;
    const struct mesh *mesh;
    uint32_t first; /* the number of its polygon 0 */
    uint64_t best_order;
    uint32_t seen[REMEMBERED]; /* polygons of more than three corners */
    unsigned seen_next;
    int exponent; /* of tree_ask */
    bool is_better;
};

static bool is_seen(struct mesh_sweep *w, uint32_t polygon)
{
    for (int i = 0; i < REMEMBERED; i++)
        if (w->seen[i] == polygon)
            return true;
    w->seen[w->seen_next++ % REMEMBERED] = polygon;
    return false;
}

static bool fan_ask(struct mesh_sweep *w, const struct face *face, uint32_t number)
{
    struct sweep *s = &w->s;
    struct vec3 corner[3] = {vec3_sub(face_at(face, 0), s->from)};
    bool is_better = false;

    for (uint32_t i = 2; i < face->count; i++) {
        struct box3 box = {corner[0], corner[0]};
        double enter;

        for (uint32_t k = 1; k <= 2; k++) {
            corner[k] = vec3_sub(face_at(face, i + k - 2), s->from);
            box = box3_union(box, (struct box3){corner[k], corner[k]});
        }
        if (sweep_meets_box(&w->slabs, s, box.min, box.max, &enter) &&
            sweep_triangle(s, corner, number, &w->best_order))
            is_better = true;
    }
    if (is_better)
        s->best.polygon = number;
    return is_better;
}

/* struct ray_tree_line has its contract. */
static bool lane_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct mesh_sweep *w = asker;
    uint32_t polygon = block->polygon[lane] & ~RAY_TREE_PART;
    const struct radial *radial = w->mesh->radial;
    bool is_better;

    if ((block->polygon[lane] & RAY_TREE_PART) && is_seen(w, polygon))
        return false;
    if (radial) {
        struct face face = radial_face(radial, polygon);

        is_better = fan_ask(w, &face, radial->polygons[polygon].source);
    } else {
        struct face face = mesh_face(w->mesh, polygon);

        is_better = fan_ask(w, &face, w->first + mesh_source(w->mesh, polygon));
    }
    if (!is_better)
        return false;
    w->is_better = true;
    *end = scaled(w->s.best.fraction, w->exponent);
    return true;
}

/* *exponent: t of the tree's line is the fraction times 2^exponent, set before the first test. */
static void tree_ask(const struct sweep *s, const struct ray_tree *tree, int *exponent,
                     bool (*test)(void *asker, const struct ray_tree_block *block, unsigned lane,
                                  double *end),
                     void *asker)
{
    const double reach[3] = {s->reach.x, s->reach.y, s->reach.z};
    struct vec3 d = s->along;
    struct ray_tree_line line = {
        .o = {s->from.x, s->from.y, s->from.z}, .test = test, .asker = asker};

    if (tree->node_count == 0)
        return;
    if (largest_of(d) < 1e-280) { /* it stays where it is: any line of no length */
        d = (struct vec3){0, 0, 1};
        *exponent = -2000;
    } else {
        *exponent = exponent_of(d);
        d = vec3_scaled(d, -*exponent);
    }
    line.d[0] = d.x, line.d[1] = d.y, line.d[2] = d.z;
    line.high = scaled(fmin(s->best.fraction, 1), *exponent);
    ray_tree_sweep(tree, &line, reach);
}

/* The best touch of a point: as a ray's. */
static bool point_sweep(const struct mesh *mesh, struct sweep *s)
{
    struct ray ray = {s->from, s->along, 1};
    struct mesh_hit hit;

    if (!ray_is_valid(&ray) || !mesh_ray(mesh, &ray, RAY_CLOSEST, &hit) ||
        hit.t >= s->best.fraction)
        return false;
    sweep_take_hit(s, hit.t, hit.point, hit.normal);
    s->best.triangle = -1;
    s->best.polygon = hit.polygon;
    return true;
}

static void touch_turn_back(const struct mesh *mesh, struct sweep_touch *touch)
{
    const struct mesh_header *h = mesh->header;

    touch->point = vec3_add(mesh_turn_back(h, touch->point), h->centre);
    touch->normal = mesh_turn_back(h, touch->normal);
    touch->face = mesh_turn_back(h, touch->face);
}

/* Polygon 0 has the number `first`; *best_order is that of the best so far, where it is of the same
 * mesh or of another place of it. */
static bool numbered_sweep(const struct mesh *mesh, uint32_t first, uint64_t *best_order,
                           struct sweep *s)
{
    struct mesh_sweep w = {.s = *s, .mesh = mesh, .first = first, .best_order = *best_order};

    for (int i = 0; i < REMEMBERED; i++)
        w.seen[i] = UINT32_MAX;
    if (!mesh->radial) {
        for (int i = 0; i < 3; i++)
            w.s.axis[i] = mesh_turn(mesh->header, s->axis[i]);
        /* the best so far stays: its fraction and distance are the same in every frame */
        w.s.best.face = mesh_turn(mesh->header, s->best.face);
        sweep_place(&w.s, mesh_to_frame(mesh->header, s->from), mesh_turn(mesh->header, s->along));
    }
    sweep_slabs_set(&w.slabs, &w.s);
    if (mesh->radial) {
        tree_ask(&w.s, &mesh->radial->tree, &w.exponent, lane_test, &w);
    } else {
        tree_ask(&w.s, &mesh->rays.first, &w.exponent, lane_test, &w);
        tree_ask(&w.s, &mesh->rays.more, &w.exponent, lane_test, &w);
    }
    s->start_m = w.s.start_m;
    if (!w.is_better)
        return false;
    *best_order = w.best_order;
    s->best = w.s.best;
    s->best.triangle = -1;
    s->best.cell[0] = s->best.cell[1] = 0;
    if (!mesh->radial)
        touch_turn_back(mesh, &s->best);
    return true;
}

/* ---- in a pose ------------------------------------------------------------------------------- */

static struct sweep sweep_in(const struct motion *motion, const struct sweep *s)
{
    struct sweep own = *s;

    for (int i = 0; i < 3; i++)
        own.axis[i] = motion_turn_in(motion, s->axis[i]);
    own.best.face = motion_turn_in(motion, s->best.face);
    sweep_place(&own, motion_point_in(motion, s->from), motion_turn_in(motion, s->along));
    return own;
}

static void touch_out(const struct motion *motion, const struct sweep_touch *own,
                      struct sweep_touch *out)
{
    *out = *own;
    out->point = motion_point_out(motion, own->point);
    out->normal = motion_turn_out(motion, own->normal);
    out->face = motion_turn_out(motion, own->face);
}

struct instances_sweep {
    const struct instances *instances;
    struct sweep *s;
    uint64_t best_order;
    int exponent; /* of tree_ask */
    bool is_better;
};

static bool place_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct instances_sweep *w = asker;
    uint32_t i = block->polygon[lane];
    struct motion motion = instances_motion(w->instances, i);
    struct sweep own = sweep_in(&motion, w->s);
    bool is_better = numbered_sweep(instances_mesh(w->instances, i), w->instances->places[i].first,
                                    &w->best_order, &own);

    w->s->start_m = own.start_m;
    if (!is_better)
        return false;
    touch_out(&motion, &own.best, &w->s->best);
    w->is_better = true;
    *end = scaled(own.best.fraction, w->exponent);
    return true;
}

bool mesh_sweep(const struct mesh *mesh, struct sweep *s)
{
    struct instances_sweep w = {.instances = mesh->instances, .s = s};

    if (s->core == CORE_POINT && s->radius == 0)
        return point_sweep(mesh, s);
    if (!mesh->instances)
        return numbered_sweep(mesh, 0, &w.best_order, s);
    tree_ask(s, &mesh->instances->tree, &w.exponent, place_test, &w);
    return w.is_better;
}

bool moved_mesh_sweep(const struct mesh *mesh, const struct motion *motion, struct sweep *s)
{
    struct sweep own = sweep_in(motion, s);
    bool is_better = mesh_sweep(mesh, &own);

    s->start_m = own.start_m;
    if (!is_better)
        return false;
    touch_out(motion, &own.best, &s->best);
    return true;
}
