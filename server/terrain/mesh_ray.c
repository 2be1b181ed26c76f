/*
 * Rays against a mesh, walls and all.
 *
 * A tree of the mesh's own for rays (mesh_rays.c) tells which polygons a ray may meet; what follows
 * decides. Meshes without it have the quadtree, which is a tree of boxes for rays, too: each node
 * knows the lowest and highest z below it. Children are opened in the order in which the ray enters
 * them, and left alone when it passes above or below or when a hit is nearer already. Boxes are
 * taken larger by `near`, so that a ray along a cut sees both sides and rounding loses nothing.
 *
 * A polygon is tested in the ray's own space (ring.h). Nothing in it needs the polygon to be a
 * floor: walls and slopes are tested alike. A polygon seen exactly from its side is a line; the ray
 * that runs along it hits where it begins to. It stops no light (RAY_LIGHT). One that is all but
 * seen so, by rounding perhaps, is met only where its corners say that it is over the ray.
 *
 * Rays along gravity take the column of mesh_floor.c, so that they agree with contact to the bit.
 *
 * Far origins: the ray is first moved to where it enters the mesh's box.
 */
#include "terrain/mesh_contact.h"
#include "terrain/mesh_lamp.h"
#include "terrain/mesh_walk.h"
#include "terrain/power.h"
#include "terrain/radial.h"

static bool polygon_test(struct walk *w, uint32_t index)
{
    const struct mesh_polygon *p = &w->mesh->polygons[index];

    return ring_test(w, index, w->mesh->corners + p->first, p->count);
}

/* ---- boxes ---------------------------------------------------------------------------------- */

/* Where the ray is between two planes across axis 0 or 1. */
static inline struct span slab(const struct walk *w, int axis, double low, double high)
{
    if (w->d[axis] == 0)
        return w->s.o[axis] >= low && w->s.o[axis] <= high ? (struct span){-INFINITY, INFINITY}
                                                           : (struct span){INFINITY, -INFINITY};
    const double side[2] = {low, high}; /* no branch: rays go either way */
    int near_side = w->inv[axis] < 0;

    return (struct span){(side[near_side] - w->s.o[axis]) * w->inv[axis],
                         (side[near_side ^ 1] - w->s.o[axis]) * w->inv[axis]};
}

static inline struct span span_cut(struct span a, struct span b)
{
    return (struct span){a.t0 > b.t0 ? a.t0 : b.t0, a.t1 < b.t1 ? a.t1 : b.t1};
}

/* The ray's z over a span misses these bounds. */
static inline bool passes(const struct walk *w, struct span t, double z_min, double z_max)
{
    double a = w->s.o[2] + w->d[2] * t.t0, b = w->s.o[2] + w->d[2] * t.t1;

    return (a < b ? b : a) < z_min - w->s.pad || (a < b ? a : b) > z_max + w->s.pad;
}

static void leaf_test(struct walk *w, const struct mesh_node *leaf, struct span t)
{
    const uint32_t *refs = w->mesh->leaf_refs + leaf->first;
    double xa = w->s.o[0] + w->d[0] * t.t0, xb = w->s.o[0] + w->d[0] * t.t1;
    double ya = w->s.o[1] + w->d[1] * t.t0, yb = w->s.o[1] + w->d[1] * t.t1;
    double x_min = fmin(xa, xb) - w->s.pad, x_max = fmax(xa, xb) + w->s.pad;
    double y_min = fmin(ya, yb) - w->s.pad, y_max = fmax(ya, yb) + w->s.pad;

    for (uint32_t i = 0; i < leaf->count && !(w->is_hit && w->is_any); i++) {
        const struct mesh_polygon *p = &w->mesh->polygons[refs[i]];

        if ((double)p->x_min > x_max || (double)p->x_max < x_min || (double)p->y_min > y_max ||
            (double)p->y_max < y_min || passes(w, t, (double)p->z_min, (double)p->z_max))
            continue;
        polygon_test(w, refs[i]);
    }
}

struct visit {
    uint32_t node;
    struct box2 box;
    struct span t;
};

/* Puts the children that the ray meets on the stack, the first one on top. */
static uint32_t children_push(const struct walk *w, const struct visit *v, struct visit *stack,
                              uint32_t depth)
{
    const struct mesh_node *n = &w->mesh->nodes[v->node];
    const struct box2 *b = &v->box;
    double near = w->mesh->header->near;
    struct span side_x[2] = {slab(w, 0, b->x_min - near, n->as.cut.x + near),
                             slab(w, 0, n->as.cut.x - near, b->x_max + near)};
    struct span side_y[2] = {slab(w, 1, b->y_min - near, n->as.cut.y + near),
                             slab(w, 1, n->as.cut.y - near, b->y_max + near)};
    uint32_t begin = depth;

    for (unsigned q = 0; q < 4; q++) {
        const struct mesh_node *child = &w->mesh->nodes[n->first + q];
        struct span t = span_cut(v->t, span_cut(side_x[q & 1], side_y[q >> 1]));
        uint32_t at = depth;

        if (!(t.t0 <= t.t1) || passes(w, t, (double)child->z_min, (double)child->z_max))
            continue;
        for (; at > begin && stack[at - 1].t.t0 < t.t0; at--)
            stack[at] = stack[at - 1];
        stack[at] = (struct visit){n->first + q, box_quadrant(b, n->as.cut, q), t};
        depth++;
    }
    return depth;
}

static bool tree_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct walk *w = asker;
    uint32_t polygon = block->polygon[lane];
    const uint32_t corners[3] = {block->vertex[0][lane], block->vertex[1][lane],
                                 block->vertex[2][lane]};

    __builtin_prefetch(&w->mesh->polygons[polygon & ~RAY_TREE_PART].source);
    if (!(polygon & RAY_TREE_PART ? polygon_test(w, polygon & ~RAY_TREE_PART)
                                  : ring_test(w, polygon, corners, 3)))
        return false;
    __builtin_prefetch(&w->mesh->polygons[w->polygon].source); /* told in the end */
    *end = w->t_end;
    return true;
}

#ifdef __x86_64__
bool mesh_part_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    return tree_test(asker, block, lane, end);
}
#endif

static void tree_fetch(const void *asker, const struct ray_tree_block *block, unsigned lane)
{
    const struct mesh *mesh = ((const struct walk *)asker)->mesh;

    __builtin_prefetch(&mesh->polygons[block->polygon[lane] & ~RAY_TREE_PART].source);
    for (int i = 0; i < 3; i++)
        __builtin_prefetch(&mesh->vertices[block->vertex[i][lane]]);
}

static inline void line_set(struct ray_tree_line *line, struct walk *w)
{
    line->o[0] = w->s.o[0], line->o[1] = w->s.o[1], line->o[2] = w->s.o[2];
    line->d[0] = w->d[0], line->d[1] = w->d[1], line->d[2] = w->d[2];
    line->low = w->t_min;
    line->high = w->t_end;
    line->is_backward = false;
    line->is_any = w->is_any;
    line->is_clipped = w->mesh->rays.is_whole; /* slanted_begin */
    line->test = tree_test;
#ifdef __x86_64__
    if (w->mesh->simd == SIMD_AVX2)
        line->test = mesh_lane_test_avx2;
#endif
    line->fetch = tree_fetch;
    line->asker = w;
}

static void tree_run(struct walk *w)
{
    const struct mesh_rays *rays = &w->mesh->rays;
    struct ray_tree_line line;

    line_set(&line, w);
    ray_tree_ask(&rays->first, &line);
    if (rays->more.node_count == 0 || (w->is_hit && w->is_any))
        return;
    line.high = w->t_end;
    ray_tree_ask(&rays->more, &line);
}

static void walk_run(struct walk *w, struct span t)
{
    struct visit stack[3 * MESH_DEPTH_MAX + 4];
    uint32_t depth = 0;

    stack[depth++] = (struct visit){0, w->mesh->header->root, t};
    while (depth > 0 && !(w->is_hit && w->is_any)) {
        struct visit v = stack[--depth];

        if (v.t.t0 > w->t_end)
            continue;
        v.t.t1 = v.t.t1 < w->t_end ? v.t.t1 : w->t_end;
        if (w->mesh->nodes[v.node].count == MESH_NODE_INNER)
            depth = children_push(w, &v, stack, depth);
        else
            leaf_test(w, &w->mesh->nodes[v.node], v.t);
    }
}

/* ---- the ray as a whole --------------------------------------------------------------------- */

/* Where the ray is inside the mesh's box; empty when nowhere. */
static struct span enter_box(const struct walk *w)
{
    const struct mesh_header *h = w->mesh->header;
    double near = h->near;
    struct span t = {0, w->t_end};
    double z_min = (double)w->mesh->nodes[0].z_min - near;
    double z_max = (double)w->mesh->nodes[0].z_max + near;

    t = span_cut(t, slab(w, 0, h->root.x_min - near, h->root.x_max + near));
    t = span_cut(t, slab(w, 1, h->root.y_min - near, h->root.y_max + near));
    if (w->d[2] == 0)
        return w->s.o[2] >= z_min && w->s.o[2] <= z_max ? t : (struct span){1, 0};
    const double side[2] = {z_min, z_max};
    int near_side = w->d[2] < 0;

    return span_cut(t, (struct span){(side[near_side] - w->s.o[2]) / w->d[2],
                                     (side[near_side ^ 1] - w->s.o[2]) / w->d[2]});
}

static void axes_set(struct walk *w)
{
    ring_sight_along(&w->s, w->d);
    for (int i = 0; i < 2; i++)
        w->inv[i] = w->d[i] != 0 ? 1 / w->d[i] : 0;
}

/* A ray along gravity: the column decides. */
static bool column_ray(struct walk *w, struct span t, double *t_hit, double *z)
{
    double slack = w->mesh->header->slack, dz = w->d[2];
    double x = w->s.o[0] + w->d[0] * t.t0, y = w->s.o[1] + w->d[1] * t.t0;
    bool is_up = dz > 0;

    if (!mesh_column(w->mesh, x, y, is_up, is_up ? w->s.o[2] - slack : w->s.o[2] + slack, z,
                     &w->polygon))
        return false;
    *t_hit = fmax((*z - w->s.o[2]) / dz, 0);
    return *t_hit <= w->t_end;
}

/* Polygons that a ray is put to in place of the tree; at NULL: the tree. */
struct among {
    const uint32_t *at;
    size_t count;
};

/* To where it enters the mesh's box. */
static void slanted_begin(struct walk *w, struct span t)
{
    for (int i = 0; i < 3; i++)
        w->s.o[i] += w->d[i] * t.t0;
    w->s.pad = 2 * w->mesh->header->slack;
    /* within rounding the ray may begin and end on the surface */
    w->t_min = -w->s.pad;
    w->t_end = t.t1 - t.t0 + w->s.pad;
}

static bool slanted_ray(struct walk *w, struct span t, struct among among, double *t_hit)
{
    double t_max = w->t_end;

    slanted_begin(w, t);
    if (among.at == NULL && w->mesh->rays.first.node_count > 0)
        tree_run(w);
    else if (among.at == NULL)
        walk_run(w, (struct span){w->t_min, w->t_end});
    for (size_t i = 0; i < among.count; i++)
        polygon_test(w, among.at[i]);
    *t_hit = slanted_end(w, t, t_max);
    return w->is_hit;
}

static inline struct vec3 slanted_normal(const struct walk *w)
{
    const struct mesh_polygon *p = &w->mesh->polygons[w->polygon];
    double along = w->normal.x * w->d[0] + w->normal.y * w->d[1] + w->normal.z * w->d[2];
    bool is_away = p->is_wall ? along > 0 : w->normal.z < 0;

    return mesh_turn_back(w->mesh->header, vec3_unit(vec3_scale(w->normal, is_away ? -1 : 1)));
}

#ifdef __x86_64__
struct vec3 mesh_normal_tell(const struct walk *w)
{
    return slanted_normal(w);
}
#endif

/*
 * A ray in the mesh's frame. Its t is scaled by a power of two so that the longest component is
 * near 1: exact both ways. The exponent. Numbers are stored one by one: a struct that is cleared
 * and copied takes longer than all of the arithmetic.
 */
static inline int walk_set(struct walk *w, const struct mesh *mesh, const struct ray *ray,
                           enum ray_mode mode)
{
    const struct mesh_header *h = mesh->header;
    struct vec3 o = mesh_to_frame(h, ray->origin), d = mesh_turn(h, ray->direction);
    int exponent = exponent_of(d);

    d = vec3_scaled(d, -exponent);
    w->mesh = mesh;
    w->s.o[0] = o.x, w->s.o[1] = o.y, w->s.o[2] = o.z;
    w->d[0] = fabs(d.x) < DBL_MIN ? 0 : d.x;
    w->d[1] = fabs(d.y) < DBL_MIN ? 0 : d.y;
    w->d[2] = fabs(d.z) < DBL_MIN ? 0 : d.z;
    w->t_min = w->s.pad = 0;
    w->t_end = scaled(ray->t_max, exponent);
    w->is_any = ray_takes_any(mode);
    w->is_light = ray_is_light(mode);
    w->is_hit = false;
    w->polygon = 0;
    axes_set(w);
    return exponent;
}

static inline bool slanted_hit(const struct walk *w, const struct ray *ray, double t,
                               struct mesh_hit *hit)
{
    t = t < ray->t_max ? t : ray->t_max;
    if (!isfinite(t))
        return false;
    hit->t = t;
    hit->polygon = w->mesh->polygons[w->polygon].source;
    hit->point = vec3_add(ray->origin, vec3_scale(ray->direction, t));
    hit->normal = slanted_normal(w);
    return true;
}

/* Of any direction. */
static bool general_ray(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                        struct among among, struct mesh_hit *hit)
{
    double z = 0, t;
    struct walk w;
    int exponent = walk_set(&w, mesh, ray, mode);
    bool is_vertical = runs_along_gravity(&w);
    struct span inside = enter_box(&w);

    if (!(inside.t0 <= inside.t1) ||
        !(is_vertical ? column_ray(&w, inside, &t, &z) : slanted_ray(&w, inside, among, &t)))
        return false;
    if (!is_vertical)
        return slanted_hit(&w, ray, scaled(t, -exponent), hit);
    t = scaled(t, -exponent);
    t = t < ray->t_max ? t : ray->t_max;
    if (!isfinite(t))
        return false;
    struct vec3 from = ray->origin;

    /* through a mesh of hardly any height it may run far aside */
    if (hypot(w.d[0], w.d[1]) * ldexp(t, exponent) > mesh->header->slack)
        from = vec3_add(from, vec3_scale(ray->direction, t));
    hit->t = t;
    hit->polygon = mesh->polygons[w.polygon].source;
    hit->point = mesh_column_point(mesh, from, z);
    hit->normal = mesh_floor_normal(mesh, w.polygon);
    return true;
}

static inline bool ray_ask(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                           struct among among, struct mesh_hit *hit)
{
    if (mesh->radial)
        return radial_ray(mesh->radial, ray, mode, hit);
#ifdef __x86_64__
    if (mesh->simd == SIMD_AVX2 && among.at == NULL && mesh->rays.is_whole &&
        mesh->rays.first.node_count > 0) {
        enum walk_begin how = mesh_ray_avx2(mesh, ray, mode, hit);

        if (how != WALK_RARE)
            return how == WALK_BEGUN;
    }
#endif
    return general_ray(mesh, ray, mode, among, hit);
}

bool mesh_ray(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
              struct mesh_hit *hit)
{
    return ray_ask(mesh, ray, mode, (struct among){NULL, 0}, hit);
}

bool mesh_ray_among(const struct mesh *mesh, const struct ray *ray, const uint32_t *polygons,
                    size_t count, struct mesh_hit *hit)
{
    return ray_ask(mesh, ray, RAY_CLOSEST, (struct among){polygons, count}, hit);
}

/* ---- many rays ------------------------------------------------------------------------------ */

enum {
    TOGETHER = 64,
    NEAR_BYTES = 2 << 20 /* of a tree that is in a near cache: there is nothing to wait for */
};

/* Rays that the tree is asked of, and what it takes to tell their hits. */
struct asked {
    struct walk walks[TOGETHER];
    struct ray_tree_line lines[TOGETHER];
    struct begun_ray begun[TOGETHER];
    size_t number[TOGETHER];
    size_t count;
};

/* Those along gravity, and those that pass the mesh's box, are answered at once. */
static enum walk_begin ray_begin(struct asked *asked, const struct mesh *mesh,
                                 const struct ray *ray, enum ray_mode mode)
{
    size_t at = asked->count;
    struct walk *w = &asked->walks[at];
    struct begun_ray *begun = &asked->begun[at];

#ifdef __x86_64__
    if (mesh->simd == SIMD_AVX2) {
        enum walk_begin how = mesh_walk_begin_avx2(w, mesh, ray, mode, begun);

        if (how != WALK_RARE)
            return how;
    }
#endif
    begun->exponent = walk_set(w, mesh, ray, mode);
    if (runs_along_gravity(w))
        return WALK_RARE;
    begun->inside = enter_box(w);
    if (!(begun->inside.t0 <= begun->inside.t1))
        return WALK_MISS;
    begun->t_max = w->t_end;
    slanted_begin(w, begun->inside);
    return WALK_BEGUN;
}

static void ray_add(struct asked *asked, const struct mesh *mesh, const struct ray *ray,
                    enum ray_mode mode, size_t number, struct mesh_hit *hit)
{
    enum walk_begin begun = ray_begin(asked, mesh, ray, mode);
    size_t at = asked->count;

    hit->t = INFINITY;
    if (begun == WALK_RARE)
        (void)mesh_ray(mesh, ray, mode, hit);
    if (begun != WALK_BEGUN)
        return;
    asked->number[at] = number;
    line_set(&asked->lines[at], &asked->walks[at]);
    asked->count++;
}

static void trees_ask(const struct mesh_rays *rays, struct asked *asked)
{
    size_t left = 0;

    ray_tree_ask_all(&rays->first, asked->lines, asked->count);
    if (rays->more.node_count == 0)
        return;
    for (size_t i = 0; i < asked->count; i++)
        if (!(asked->walks[i].is_hit && asked->walks[i].is_any))
            line_set(&asked->lines[left++], &asked->walks[i]);
    ray_tree_ask_all(&rays->more, asked->lines, left);
}

static void rays_ask(const struct mesh *mesh, const struct ray *rays, size_t count,
                     enum ray_mode mode, struct mesh_hit *hits)
{
    struct asked asked;

    asked.count = 0;
    for (size_t i = 0; i < count; i++)
        ray_add(&asked, mesh, &rays[i], mode, i, &hits[i]);
    trees_ask(&mesh->rays, &asked);
    for (size_t i = 0; i < asked.count; i++) {
        const struct walk *w = &asked.walks[i];
        size_t to = asked.number[i];
        const struct begun_ray *begun = &asked.begun[i];
        double t = slanted_end(w, begun->inside, begun->t_max);

        if (w->is_hit)
            (void)slanted_hit(w, &rays[to], scaled(t, -begun->exponent), &hits[to]);
    }
}

void mesh_rays(const struct mesh *mesh, const struct ray *rays, size_t count, enum ray_mode mode,
               struct mesh_hit *hits)
{
    if (!mesh->radial && ray_tree_bytes(&mesh->rays.first) > NEAR_BYTES) {
        for (size_t i = 0; i < count; i += TOGETHER)
            rays_ask(mesh, rays + i, count - i < TOGETHER ? count - i : TOGETHER, mode, hits + i);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!mesh_ray(mesh, &rays[i], mode, &hits[i]))
            hits[i].t = INFINITY;
}

/* ---- towards a lamp (mesh_lamp.c) ----------------------------------------------------------- */

#define CERTAIN_PADS 4.0  /* so far inside of all edges */
#define CERTAIN_END 1e6   /* pads from both ends of the ray */
#define CERTAIN_SINE 1e-3 /* between ray and plane */
#define CLEAR_PADS 64.0   /* what begins so far behind the origin is not met */
#define FLAT_ASKED (1.2 * LAMP_FLAT_SINE)

static enum lamp_answer polygon_judge(struct walk *w, uint32_t index)
{
    const struct mesh_polygon *p = &w->mesh->polygons[index];
    const uint32_t *corners = w->mesh->corners + p->first;
    double pad = w->s.pad, t_end = w->t_end, margin = CERTAIN_END * pad, t;
    struct vec3 d = {w->d[0], w->d[1], w->d[2]};
    struct span span;
    bool is_certain;

    if (!is_through(w, corners, p->count, &span))
        return LAMP_CLEAR;
    polygon_test(w, index);
    if (!w->is_hit)
        return LAMP_CLEAR;
    t = w->t_end;
    w->is_hit = false;
    w->t_end = t_end;
    w->s.pad = -CERTAIN_PADS * pad;
    is_certain =
        t >= w->t_min + margin && t <= t_end - margin && is_through(w, corners, p->count, &span) &&
        fabs(vec3_dot(w->normal, d)) >= CERTAIN_SINE * vec3_length(w->normal) * vec3_length(d);
    w->s.pad = pad;
    return is_certain ? LAMP_BLOCKED : LAMP_UNSURE;
}

/* Is the origin so near that its rounding is that of the mesh, and does the ray run along no plane
 * that all but holds the lamp? */
static bool lamp_knows(const struct walk *w, const struct mesh_lamp *lamp)
{
    struct vec3 d = {w->d[0], w->d[1], w->d[2]};
    double asked = FLAT_ASKED * FLAT_ASKED * vec3_dot(d, d), most = lamp->reach_m;

    for (uint32_t i = 0; i < lamp->flat_count; i++) {
        double across = vec3_dot(lamp->flat[i], d);

        if (across * across <= asked)
            return false;
    }
    return fabs(w->s.o[0]) <= most && fabs(w->s.o[1]) <= most && fabs(w->s.o[2]) <= most;
}

/* One that was begun, among the pieces that every ray is put to and those of its cell; `sign`:
 * depths are in the direction against the ray. */
static enum lamp_answer cell_judge(struct walk *w, const struct mesh_lamp *lamp,
                                   const struct lamp_cell *cell, double sign)
{
    const double at[3] = {lamp->at.x, lamp->at.y, lamp->at.z};
    double depth = sign * (w->s.o[w->s.kz] - at[w->s.kz]), margin = CERTAIN_END * w->s.pad;
    double end = depth - w->t_end * fabs(w->d[w->s.kz]), last = depth + CLEAR_PADS * w->s.pad;
    enum lamp_answer answer = LAMP_CLEAR;

    if (cell && depth - margin >= (double)cell->cover_far &&
        end + margin <= (double)cell->cover_near)
        return LAMP_BLOCKED;
    for (uint32_t i = 0; i < lamp->always_count; i++)
        if (polygon_judge(w, lamp->always[i]) != LAMP_CLEAR)
            answer = LAMP_UNSURE;
    for (uint32_t i = cell ? cell[0].first : 0; cell && i < cell[1].first; i++) {
        enum lamp_answer one;

        if ((double)lamp->items[i].near > last)
            break;
        one = polygon_judge(w, lamp->items[i].piece);
        if (one == LAMP_BLOCKED)
            return one;
        answer = one == LAMP_UNSURE ? one : answer;
    }
    return answer;
}

enum lamp_answer mesh_ray_lamp(const struct mesh *mesh, const struct mesh_lamp *lamp,
                               const struct ray *ray)
{
    struct walk w;
    (void)walk_set(&w, mesh, ray, RAY_LIGHT_ANY);
    bool is_up = w.d[w.s.kz] < 0; /* seen from the lamp */
    double sign = is_up ? 1 : -1;

    if (runs_along_gravity(&w) || !lamp_knows(&w, lamp))
        return LAMP_UNSURE;
    const struct lamp_cell *cell =
        lamp_cell_at(lamp, lamp_face_of(w.s.kz, is_up), sign * w.s.shear_x, sign * w.s.shear_y);

    if (lamp->always_count == 0 && (!cell || cell[0].first == cell[1].first))
        return LAMP_CLEAR;
    struct span inside = enter_box(&w);

    if (!(inside.t0 <= inside.t1))
        return LAMP_CLEAR;
    slanted_begin(&w, inside);
    return cell_judge(&w, lamp, cell, sign);
}
