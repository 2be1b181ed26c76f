/*
 * Rays against a mesh, walls and all.
 *
 * A tree of boxes (mesh_rays.c) gives the polygons that a ray may meet; what follows decides.
 *
 * A polygon is tested in the ray's own space (woop.h). Nothing in it needs the polygon to be a
 * floor: walls and slopes are tested alike. A polygon seen exactly from its side is a line; the ray
 * that runs along it hits where it begins to. It stops no light (RAY_LIGHT). One that is all but
 * seen so, by rounding perhaps, is met only where its corners say that it is over the ray.
 *
 * Rays along gravity take the column of mesh_floor.c, so that they agree with contact to the bit.
 *
 * Far origins: a ray that begins outside of a cube around the mesh begins again where it enters
 * that cube, so that its numbers are rounded as those of the mesh are. The cube follows from the
 * slack, and no other decision depends on a box: a tree chooses which polygons are tested,
 * and changes no bit of an answer. So a mesh may get another tree between queries.
 */
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/mesh_trace.h"
#include "terrain/mesh/mesh_walk.h"
#include "terrain/power.h"
#include "terrain/instances/instances.h"
#include "terrain/radial/radial.h"

static bool polygon_test(struct walk *w, uint32_t index)
{
    struct face face = mesh_face(w->mesh, index);

    return face_test(w, index, &face);
}

/* ---- the tree ------------------------------------------------------------------------------- */

bool mesh_lane_test_scalar(void *asker, const struct ray_tree_block *block, unsigned lane,
                           double *end)
{
    struct walk *w = asker;
    uint32_t polygon = block->polygon[lane] & ~RAY_TREE_PART;

    if (!polygon_test(w, polygon))
        return false;
    __builtin_prefetch(&w->mesh->polygons[w->polygon]); /* for the hit */
    *end = w->t_end;
    return true;
}

static void tree_fetch(const void *asker, const struct ray_tree_block *block, unsigned lane)
{
    const struct mesh *mesh = ((const struct walk *)asker)->mesh;
    uint32_t polygon = block->polygon[lane] & ~RAY_TREE_PART;
    struct face face = mesh_face(mesh, polygon);

    __builtin_prefetch(&mesh->polygons[polygon]);
    for (int i = 0; i < 3; i++)
        __builtin_prefetch(face.points.narrow ? (const void *)&face.points.narrow[face.corners[i]]
                                              : &face.points.wide[face.corners[i]]);
}

static inline void line_set(struct ray_tree_line *line, struct walk *w)
{
    line->o[0] = w->s.o[0], line->o[1] = w->s.o[1], line->o[2] = w->s.o[2];
    line->d[0] = w->d[0], line->d[1] = w->d[1], line->d[2] = w->d[2];
    line->low = w->t_min;
    line->high = w->t_end;
    line->is_backward = false;
    line->is_any = w->is_any;
    line->test = kernels()->mesh_lane_test;
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

/* ---- the ray as a whole --------------------------------------------------------------------- */

/* Where a ray that begins outside enters the mesh's cube; false: it does not, or it ends before. */
static bool cube_enter(const struct walk *w, double *t_cube)
{
    double reach = mesh_reach(w->mesh), t0 = 0, t1 = w->t_end;

    for (int i = 0; i < 3; i++) {
        double o = w->s.o[i], d = w->d[i];

        if (d == 0) {
            if (!(fabs(o) <= reach))
                return false;
            continue;
        }
        double enter = (copysign(reach, -d) - o) / d, leave = (copysign(reach, d) - o) / d;

        t0 = enter > t0 ? enter : t0;
        t1 = leave < t1 ? leave : t1;
    }
    *t_cube = t0;
    return t0 <= t1;
}

/* The ray begins; false: it passes the mesh's cube. */
static inline bool walk_begin(struct walk *w, struct begun_ray *begun)
{
    double reach = mesh_reach(w->mesh);

    begun->t_max = w->t_end;
    begun->t_cube = 0;
    if (!(fabs(w->s.o[0]) <= reach && fabs(w->s.o[1]) <= reach && fabs(w->s.o[2]) <= reach)) {
        if (!cube_enter(w, &begun->t_cube))
            return false;
        for (int i = 0; i < 3; i++)
            w->s.o[i] += w->d[i] * begun->t_cube;
    }
    w->s.pad = 2 * w->mesh->header->slack;
    /* within rounding the ray may begin and end on the surface */
    w->t_min = -w->s.pad;
    w->t_end = begun->t_max - begun->t_cube + w->s.pad;
    return true;
}

/* A ray along gravity: the column decides. */
static bool column_ray(struct walk *w, double from_z, const struct begun_ray *begun, double *t_hit,
                       double *z)
{
    double slack = w->mesh->header->slack, dz = w->d[2];
    bool is_up = dz > 0;

    if (!mesh_column(w->mesh, w->s.o[0], w->s.o[1], is_up, is_up ? from_z - slack : from_z + slack,
                     z, &w->polygon))
        return false;
    *t_hit = fmax((*z - from_z) / dz, 0);
    return *t_hit <= begun->t_max;
}

/* Polygons that a ray is put to in place of the tree; at NULL: the tree. */
struct among {
    const uint32_t *at;
    size_t count;
};

static bool slanted_ray(struct walk *w, struct among among)
{
    if (among.at == NULL)
        tree_run(w);
    for (size_t i = 0; i < among.count; i++)
        polygon_test(w, among.at[i]);
    return w->is_hit;
}

static inline struct vec3 slanted_normal(const struct walk *w)
{
    const struct mesh_polygon *p = &w->mesh->polygons[w->polygon];
    double along = w->normal.x * w->d[0] + w->normal.y * w->d[1] + w->normal.z * w->d[2];
    bool is_away = mesh_is_wall(p) ? along > 0 : w->normal.z < 0;

    return mesh_turn_back(w->mesh->header, vec3_unit(vec3_scale(w->normal, is_away ? -1 : 1)));
}

#ifdef __x86_64__
struct vec3 mesh_normal_of_walk(const struct walk *w)
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
    woop_ray_along(&w->s, w->d);
    return exponent;
}

static inline bool slanted_hit(const struct walk *w, const struct ray *ray, double t,
                               struct mesh_hit *hit)
{
    t = t < ray->t_max ? t : ray->t_max;
    if (!isfinite(t))
        return false;
    hit->t = t;
    hit->polygon = mesh_source(w->mesh, w->polygon);
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
    struct begun_ray begun;
    int exponent = walk_set(&w, mesh, ray, mode);
    double from_z = w.s.o[2];

    if (!walk_begin(&w, &begun))
        return false;
    if (!runs_along_gravity(&w))
        return slanted_ray(&w, among) &&
               slanted_hit(&w, ray, scaled(slanted_end(&w, &begun), -exponent), hit);
    if (!column_ray(&w, from_z, &begun, &t, &z))
        return false;
    t = scaled(t, -exponent);
    t = t < ray->t_max ? t : ray->t_max;
    if (!isfinite(t))
        return false;
    struct vec3 from = ray->origin;

    /* one from far away may have run aside */
    if (length_xy(w.d[0], w.d[1]) * ldexp(t, exponent) > mesh->header->slack)
        from = vec3_add(from, vec3_scale(ray->direction, t));
    hit->t = t;
    hit->polygon = mesh_source(mesh, w.polygon);
    hit->point = mesh_column_point(mesh, from, z);
    hit->normal = mesh_floor_normal(mesh, w.polygon);
    return true;
}

static inline bool ray_ask(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                           struct among among, struct mesh_hit *hit)
{
    if (mesh->radial)
        return radial_ray(mesh->radial, ray, mode, hit);
    if (mesh->instances)
        return instances_ray(mesh->instances, ray, mode, hit);
    const struct kernels *k = kernels();

    if (k->mesh_ray && among.at == NULL && mesh->rays.is_whole) {
        enum walk_begin how = k->mesh_ray(mesh, ray, mode, hit);

        if (how != WALK_RARE)
            return how == WALK_BEGUN;
    }
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

/* Pieces by their numbers in the file. */
static void sources_set(const struct mesh *mesh, struct ray_tree_trace *trace, uint32_t first)
{
    for (uint32_t i = first; i < trace->polygon_count && i < trace->polygon_capacity; i++)
        trace->polygons[i] = mesh->radial ? mesh->radial->polygons[trace->polygons[i]].source
                                          : mesh_source(mesh, trace->polygons[i]);
}

/* The trees of a mesh that is not radial. */
static void trees_trace(const struct mesh *mesh, const struct ray *ray,
                        struct ray_tree_trace *trace)
{
    struct walk w;
    struct begun_ray begun;
    struct ray_tree_line line;

    walk_set(&w, mesh, ray, RAY_CLOSEST);
    if (!walk_begin(&w, &begun) ||
        (runs_along_gravity(&w) && mesh_column_trace(mesh, w.s.o[0], w.s.o[1], trace)))
        return;
    line_set(&line, &w);
    ray_tree_ask_traced(&mesh->rays.first, &line, NULL, trace);
    line.high = w.t_end;
    ray_tree_ask_traced(&mesh->rays.more, &line, NULL, trace);
}

void mesh_ray_trace(const struct mesh *mesh, const struct ray *ray, struct ray_tree_trace *trace)
{
    uint32_t first = trace->polygon_count;

    if (mesh->instances) {
        instances_ray_trace(mesh->instances, ray, trace);
        return;
    }
    if (mesh->radial)
        radial_ray_trace(mesh->radial, ray, trace);
    else
        trees_trace(mesh, ray, trace);
    sources_set(mesh, trace, first);
}

/* ---- many rays ------------------------------------------------------------------------------ */

enum {
    TOGETHER = 64,
    NEAR_BYTES = 2 << 20 /* of a tree that is in a near cache: there is nothing to wait for */
};

/* Rays in the tree, and the values that their hits need. */
struct asked {
    struct walk walks[TOGETHER];
    struct ray_tree_line lines[TOGETHER];
    struct begun_ray begun[TOGETHER];
    size_t number[TOGETHER];
    size_t count;
};

/* Those along gravity, and those that pass the mesh's cube, are answered at once. */
static enum walk_begin ray_begin(struct asked *asked, const struct mesh *mesh,
                                 const struct ray *ray, enum ray_mode mode)
{
    size_t at = asked->count;
    struct walk *w = &asked->walks[at];
    struct begun_ray *begun = &asked->begun[at];

    const struct kernels *k = kernels();

    if (k->mesh_walk_begin) {
        enum walk_begin how = k->mesh_walk_begin(w, mesh, ray, mode, begun);

        if (how != WALK_RARE)
            return how;
    }
    begun->exponent = walk_set(w, mesh, ray, mode);
    if (runs_along_gravity(w))
        return WALK_RARE;
    return walk_begin(w, begun) ? WALK_BEGUN : WALK_MISS;
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
        double t = slanted_end(w, begun);

        if (w->is_hit)
            (void)slanted_hit(w, &rays[to], scaled(t, -begun->exponent), &hits[to]);
    }
}

void mesh_rays(const struct mesh *mesh, const struct ray *rays, size_t count, enum ray_mode mode,
               struct mesh_hit *hits)
{
    if (mesh->header && ray_tree_bytes(&mesh->rays.first) > NEAR_BYTES) {
        for (size_t i = 0; i < count; i += TOGETHER)
            rays_ask(mesh, rays + i, count - i < TOGETHER ? count - i : TOGETHER, mode, hits + i);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!mesh_ray(mesh, &rays[i], mode, &hits[i]))
            hits[i].t = INFINITY;
}
