/*
 * From a solid to spheres under its surface.
 *
 * Text S puts a particle at each sample of the distance field that is inside and has a neighbour
 * outside. So spheres protrude by up to their radius or lie up to a sample's spacing too deep, and
 * a part that falls between the samples, like the lip of a bowl, has none. Instead:
 *
 * 1. Where the solid is thick, centres lie at the depth of one radius: candidates are the points
 *    where the field crosses -r on the edges of its grid, moved to that depth exactly. They are
 *    taken in rows from below, each that is 1.25 r from all that were taken, which packs a face
 *    nearly as closely as it can be (in a random order gaps are up to twice as wide).
 * 2. Then the surface itself is gone over, in samples r/5 apart: one that no sphere has within
 *    1.6 r gets one, those farthest from all first, so that a corner takes one and not three. Its
 *    centre starts just under the sample and climbs away from the surface, as deep as r or as it
 *    gets within that reach: to the middle of a lip, to the inside of a corner. A sample is at most
 *    r/7 from any point of the surface, which makes SHELL_REACH.
 *
 * So nothing is lost with any grid: it may be coarser for a large solid, and the second pass does
 * more. Where the solid is thinner than a sphere, the sphere protrudes on both sides: a lip exists,
 * as thick as a sphere.
 *
 * Mass, centre and inertia are the solid's and not the spheres' (inertia.c).
 */
#include "sand/body/shell.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "sand/body/inertia.h"
#include "sand/body/sdf.h"
#include "sand/body/sphere_grid.h"
#include "terrain/mesh/solid.h"

#include <stdlib.h>
#include <string.h>

#define GRID_SHARE (1.0 / 3) /* spacing of the field, of the radius */
#define PACKING 1.25         /* distance of centres at depth r, of the radius */
#define COVER 1.6            /* of the radius: a sample farther from all centres gets one */
#define FAR 2.4              /* of the radius: a sample that far gets one first */
#define PLACE_MAX_M 1e6      /* of a vertex */
#define SAMPLES_MAX 4e7      /* of the surface: some ten seconds */
#define SAMPLE_SHARE 0.2     /* spacing of samples of the surface */
#define ROW_SHARE 0.125      /* height of a row of candidates */
#define DEPTH_DOUBT 0.01     /* of the radius: a candidate may be so much less deep */

enum {
    FIELD_CELLS_MAX = 2000000,
    CLIMB_STEPS_MAX = 100,
    BARE_MAX = 1 << 18 /* points of the surface that are sorted at a time */
};

struct maker {
    const struct triangle_mesh *mesh;
    const struct triangle_tree *tree;
    double radius_m;
    struct sphere_grid spheres;
    double least_depth_m; /* of a centre */
    bool no_memory;
};

/* ---- spheres at the depth of the radius ------------------------------------------------------ */

struct candidate {
    double row; /* by height; then by y in rows, too, so that rounding does not mix a face */
    double column;
    struct vec3 at;
};

static int by_row(const void *a, const void *b)
{
    const struct candidate *s = a, *t = b;

    if (s->row != t->row)
        return (s->row > t->row) - (s->row < t->row);
    if (s->column != t->column)
        return (s->column > t->column) - (s->column < t->column);
    return (s->at.x > t->at.x) - (s->at.x < t->at.x);
}

/* Moves a point that is about r deep to where it is exactly so; false when there is no such near.
 */
static bool settle(const struct maker *maker, struct vec3 *at)
{
    double r = maker->radius_m;

    for (int i = 0; i < 6; i++) {
        struct vec3 nearest;
        double d = triangle_tree_nearest(maker->tree, *at, INFINITY, &nearest);

        if (fabs(d - r) < 1e-6 * r)
            return true;
        if (!(d > 0.5 * r))
            return false;
        *at = vec3_add(nearest, vec3_scale(vec3_sub(*at, nearest), r / d));
    }
    return triangle_tree_nearest(maker->tree, *at, INFINITY, NULL) > (1 - DEPTH_DOUBT) * r;
}

struct candidates {
    struct candidate *at;
    size_t count, room;
};

static bool add_candidate(const struct maker *maker, struct vec3 at, struct candidates *list)
{
    double row_m = ROW_SHARE * maker->radius_m;

    if (!settle(maker, &at))
        return true;
    if (!array_reserve((void **)&list->at, &list->room, list->count + 1, sizeof *list->at))
        return false;
    list->at[list->count++] = (struct candidate){floor(at.z / row_m), floor(at.y / row_m), at};
    return true;
}

/* Points on the edges from one sample on where the field crosses -r. */
static bool cross_sample(const struct maker *maker, const struct sdf *sdf, const uint32_t at[3],
                         struct candidates *list)
{
    size_t strides[3] = {1, sdf->size[0], (size_t)sdf->size[0] * sdf->size[1]};
    size_t index = at[0] + at[1] * strides[1] + at[2] * strides[2];
    double h = sdf->spacing_m, here = (double)sdf->distance_m[index] + maker->radius_m;

    for (int axis = 0; axis < 3; axis++) {
        double p[3] = {at[0], at[1], at[2]}, there;

        if (at[axis] + 1 == sdf->size[axis])
            continue;
        there = (double)sdf->distance_m[index + strides[axis]] + maker->radius_m;
        if ((here <= 0) == (there <= 0))
            continue;
        p[axis] += here / (here - there);
        if (!add_candidate(maker,
                           (struct vec3){sdf->origin.x + p[0] * h, sdf->origin.y + p[1] * h,
                                         sdf->origin.z + p[2] * h},
                           list))
            return false;
    }
    return true;
}

static enum err_code cross_all(const struct maker *maker, const struct sdf *sdf,
                               struct candidates *list, struct err *err)
{
    uint32_t at[3];

    for (at[2] = 0; at[2] < sdf->size[2]; at[2]++)
        for (at[1] = 0; at[1] < sdf->size[1]; at[1]++)
            for (at[0] = 0; at[0] < sdf->size[0]; at[0]++)
                if (!cross_sample(maker, sdf, at, list))
                    return err_set(err, ERR_NO_MEMORY, "no memory for a shell");
    return ERR_OK;
}

static enum err_code add_sphere(struct maker *maker, struct vec3 at, double depth_m,
                                struct err *err)
{
    if (maker->spheres.count == SHELL_SPHERES_MAX)
        return err_limit(err, ERR_TOO_LARGE, SHELL_SPHERES_MAX, SHELL_SPHERES_MAX + 1,
                         "the model takes more than %d spheres of %g m", SHELL_SPHERES_MAX,
                         maker->radius_m);
    if (!sphere_grid_add(&maker->spheres, at))
        return err_set(err, ERR_NO_MEMORY, "no memory for a shell");
    maker->least_depth_m = fmin(maker->least_depth_m, depth_m);
    return ERR_OK;
}

static enum err_code lay_thick(struct maker *maker, const struct sdf *sdf, struct err *err)
{
    double apart_m = PACKING * maker->radius_m;
    struct candidates list = {0};

    if (cross_all(maker, sdf, &list, err) == ERR_OK && list.count > 0) {
        qsort(list.at, list.count, sizeof *list.at, by_row);
        for (size_t i = 0; i < list.count && !err->code; i++)
            if (sphere_grid_nearest(&maker->spheres, list.at[i].at, apart_m) >= apart_m)
                add_sphere(maker, list.at[i].at, maker->radius_m, err);
    }
    free(list.at);
    return err->code;
}

/* ---- the rest of the surface ----------------------------------------------------------------- */

struct climber {
    struct vec3 at, nearest, way; /* the deepest so far, the surface there, where to go: unit */
    double depth_m, step_m;
    int turns; /* since the last step */
};

static void climb_reset(struct climber *c)
{
    c->way = vec3_unit(vec3_sub(c->at, c->nearest));
    c->turns = 0;
}

/* One step, or a turn away from what was in the way of one, or a smaller step next time. */
static void climb_once(const struct maker *maker, struct vec3 from, struct climber *c)
{
    double r = maker->radius_m, reach = (COVER - 0.03) * r, away, depth;
    double length = fmin(fmin(c->step_m, 0.9 * c->depth_m), r - c->depth_m);
    struct vec3 next = vec3_add(c->at, vec3_scale(c->way, length)), nearest, off, turned;

    off = vec3_sub(next, from);
    away = vec3_length(off);
    if (away > reach)
        next = vec3_add(from, vec3_scale(off, reach / away));
    depth = triangle_tree_nearest(maker->tree, next, INFINITY, &nearest);
    if (depth > c->depth_m * (1 + 1e-9)) {
        c->at = next;
        c->nearest = nearest;
        c->depth_m = depth;
        climb_reset(c);
        return;
    }
    turned = vec3_add(c->way, vec3_unit(vec3_sub(c->at, nearest)));
    if (c->turns < 4 && vec3_length(turned) > 0.02) {
        c->way = vec3_unit(turned);
        c->turns++;
    } else {
        c->step_m = length / 2;
        climb_reset(c);
    }
}

/*
 * The deepest place near a point of the surface, from just under it: moves away from the nearest
 * point of the surface, in a wedge or a corner from all its sides at once, and by less than the
 * distance to it, so that it never passes through.
 */
static struct vec3 climb(const struct maker *maker, struct vec3 from, struct vec3 inwards,
                         double *depth_m)
{
    double r = maker->radius_m;
    struct climber c = {.at = vec3_add(from, vec3_scale(inwards, 1e-5 * r)), .step_m = r};

    c.depth_m = triangle_tree_nearest(maker->tree, c.at, INFINITY, &c.nearest);
    climb_reset(&c);
    for (int i = 0; i < CLIMB_STEPS_MAX; i++) {
        if (!(c.depth_m > 0) || c.depth_m >= r * (1 - 1e-3) || c.step_m < 5e-3 * r)
            break;
        climb_once(maker, from, &c);
    }
    *depth_m = c.depth_m;
    return c.at;
}

/* A point of the surface that has no sphere within COVER yet. */
struct bare {
    struct vec3 at;
    float distance_m; /* to the nearest centre */
    uint32_t triangle;
};

struct cover {
    struct maker *maker;
    struct err *err;
    struct bare *bare; /* [BARE_MAX], NULL in the first pass */
    uint32_t count;
};

static void triangle_corners(const struct triangle_mesh *mesh, uint32_t triangle, struct vec3 v[3])
{
    for (int i = 0; i < 3; i++)
        v[i] = mesh->vertices[mesh->corners[3 * (size_t)triangle + (size_t)i]];
}

/* A point at its triangle's border is moved towards the middle first, off the next face's plane. */
static enum err_code cover_point(struct maker *maker, struct vec3 at, uint32_t triangle,
                                 struct err *err)
{
    struct vec3 v[3], middle, aside, inwards, centre;
    double depth_m, length, step = 0.01 * maker->radius_m;

    triangle_corners(maker->mesh, triangle, v);
    middle = vec3_scale(vec3_add(v[0], vec3_add(v[1], v[2])), 1.0 / 3);
    inwards = vec3_unit(vec3_cross(vec3_sub(v[2], v[0]), vec3_sub(v[1], v[0])));
    aside = vec3_sub(middle, at);
    length = vec3_length(aside);
    if (length > 0)
        at = vec3_add(at, vec3_scale(aside, fmin(1, step / length)));
    centre = climb(maker, at, inwards, &depth_m);
    return add_sphere(maker, centre, depth_m, err);
}

static int by_distance(const void *a, const void *b)
{
    const struct bare *s = a, *t = b;

    if (s->distance_m != t->distance_m)
        return (s->distance_m < t->distance_m) - (s->distance_m > t->distance_m);
    if (s->triangle != t->triangle)
        return (s->triangle > t->triangle) - (s->triangle < t->triangle);
    if (s->at.x != t->at.x)
        return (s->at.x > t->at.x) - (s->at.x < t->at.x);
    if (s->at.y != t->at.y)
        return (s->at.y > t->at.y) - (s->at.y < t->at.y);
    return (s->at.z > t->at.z) - (s->at.z < t->at.z);
}

/*
 * The least covered first: the tip of a corner before its neighbours, which are then covered, too.
 */
static enum err_code cover_bare(struct cover *cover)
{
    struct maker *maker = cover->maker;
    double within = COVER * maker->radius_m;

    qsort(cover->bare, cover->count, sizeof *cover->bare, by_distance);
    for (uint32_t i = 0; i < cover->count && !cover->err->code; i++)
        if (sphere_grid_nearest(&maker->spheres, cover->bare[i].at, within) >= within)
            cover_point(maker, cover->bare[i].at, cover->bare[i].triangle, cover->err);
    cover->count = 0;
    return cover->err->code;
}

static enum err_code take_sample(struct cover *cover, struct vec3 at, uint32_t triangle)
{
    struct maker *maker = cover->maker;
    double r = maker->radius_m, d = sphere_grid_nearest(&maker->spheres, at, FAR * r);

    if (!cover->bare)
        return d < FAR * r ? ERR_OK : cover_point(maker, at, triangle, cover->err);
    if (d < COVER * r)
        return ERR_OK;
    cover->bare[cover->count++] = (struct bare){at, (float)d, triangle};
    return cover->count == BARE_MAX ? cover_bare(cover) : ERR_OK;
}

/* Samples of a triangle, in rows along its longest edge a b. */
static enum err_code sample_triangle(struct cover *cover, uint32_t triangle)
{
    struct vec3 v[3], a, ab, ac;
    double side[3], base, height, rows, spacing = SAMPLE_SHARE * cover->maker->radius_m;
    int first;

    triangle_corners(cover->maker->mesh, triangle, v);
    for (int i = 0; i < 3; i++)
        side[i] = vec3_length(vec3_sub(v[(i + 1) % 3], v[i]));
    first = side[0] >= side[1] && side[0] >= side[2] ? 0 : side[1] >= side[2] ? 1 : 2;
    a = v[first];
    ab = vec3_sub(v[(first + 1) % 3], a);
    ac = vec3_sub(v[(first + 2) % 3], a);
    base = side[first];
    height = base > 0 ? vec3_length(vec3_cross(ab, ac)) / base : 0;
    rows = fmax(1, ceil(height / spacing));
    for (double row = 0; row <= rows; row++) {
        double t = row / rows, count = fmax(1, ceil(base * (1 - t) / spacing));
        struct vec3 from = vec3_add(a, vec3_scale(ac, t)), along = vec3_scale(ab, 1 - t);

        for (double i = 0; i <= count; i++) /* the last row is a point, twice */
            if (take_sample(cover, vec3_add(from, vec3_scale(along, i / count)), triangle))
                return cover->err->code;
    }
    return ERR_OK;
}

static enum err_code sample_all(struct cover *cover)
{
    for (uint32_t i = 0; i < cover->maker->mesh->triangles; i++)
        if (sample_triangle(cover, i))
            return cover->err->code;
    return ERR_OK;
}

static enum err_code cover_all(struct maker *maker, struct err *err)
{
    struct cover cover = {.maker = maker, .err = err};

    if (sample_all(&cover))
        return err->code;
    cover.bare = malloc(BARE_MAX * sizeof *cover.bare);
    if (!cover.bare)
        return err_set(err, ERR_NO_MEMORY, "no memory for a shell");
    if (sample_all(&cover) == ERR_OK)
        cover_bare(&cover);
    free(cover.bare);
    return err->code;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* How much surface there is, and about how many samples sample_triangle takes of it. */
static void measure_surface(const struct triangle_mesh *mesh, double spacing_m, double *surface_m2,
                            double *samples)
{
    *surface_m2 = *samples = 0;
    for (uint32_t i = 0; i < mesh->triangles; i++) {
        struct vec3 v[3];
        double base = 0, twice;

        triangle_corners(mesh, i, v);
        for (int k = 0; k < 3; k++)
            base = fmax(base, vec3_length(vec3_sub(v[(k + 1) % 3], v[k])));
        twice = vec3_length(vec3_cross(vec3_sub(v[1], v[0]), vec3_sub(v[2], v[0])));
        *surface_m2 += twice / 2;
        *samples += (base / spacing_m + 2) * ((base > 0 ? twice / base : 0) / spacing_m + 2);
    }
}

/*
 * What would take too long or lose its digits is refused before anything is done. A sphere covers
 * less than π COVER² r² of a face, and may do so on both sides.
 */
static enum err_code check_size(const struct triangle_mesh *mesh, const struct box3 *bounds,
                                double radius_m, struct err *err)
{
    double far_m = fmax(fmax(fabs(bounds->min.x), fabs(bounds->max.x)),
                        fmax(fmax(fabs(bounds->min.y), fabs(bounds->max.y)),
                             fmax(fabs(bounds->min.z), fabs(bounds->max.z))));
    double surface, samples, needed;

    if (!(far_m <= PLACE_MAX_M))
        return err_limit(err, ERR_UNPROCESSABLE, PLACE_MAX_M, far_m,
                         "a vertex of the model lies %g m from its origin along an axis, at most "
                         "%g m are allowed",
                         far_m, PLACE_MAX_M);
    measure_surface(mesh, SAMPLE_SHARE * radius_m, &surface, &samples);
    needed = ceil(surface / (radius_m * radius_m) / (2 * 3.1416 * COVER * COVER));
    if (!(needed <= SHELL_SPHERES_MAX))
        return err_limit(err, ERR_TOO_LARGE, SHELL_SPHERES_MAX, needed,
                         "the model takes at least %g spheres of %g m, at most %d are allowed",
                         needed, radius_m, SHELL_SPHERES_MAX);
    if (!(samples <= SAMPLES_MAX))
        return err_limit(err, ERR_TOO_LARGE, SAMPLES_MAX, samples,
                         "the model's surface is so large or so finely cut that it takes %g "
                         "samples for spheres of %g m, at most %g are allowed",
                         samples, radius_m, SAMPLES_MAX);
    return ERR_OK;
}

static enum err_code check_crossing(const struct triangle_tree *tree, struct err *err)
{
    uint32_t pair[2];

    switch (triangle_tree_crossing(tree, pair)) {
    case CROSSING_FOUND:
        return err_set(err, ERR_UNPROCESSABLE,
                       "the mesh intersects itself: triangles %u and %u pass through each other",
                       pair[0], pair[1]);
    case CROSSING_UNKNOWN:
        return err_set(
            err, ERR_UNPROCESSABLE,
            "the mesh's triangles lie so much around each other that it cannot be decided "
            "whether it intersects itself");
    case CROSSING_NONE:
        break;
    }
    return ERR_OK;
}

static double field_spacing(const struct box3 *bounds, double radius_m)
{
    double spacing_m = GRID_SHARE * radius_m;

    while (!(sdf_cells(bounds, spacing_m) <= FIELD_CELLS_MAX))
        spacing_m *= 1.25;
    return spacing_m;
}

static enum err_code lay_all(struct maker *maker, const struct box3 *bounds, uint32_t threads,
                             struct err *err)
{
    double spacing_m = field_spacing(bounds, maker->radius_m);
    struct sdf_options options = {.spacing_m = spacing_m,
                                  .band_m = maker->radius_m + 2 * spacing_m,
                                  .cells_max = FIELD_CELLS_MAX,
                                  .threads = threads};
    struct sdf sdf;

    if (sdf_build(maker->mesh, maker->tree, &options, &sdf, err))
        return err->code;
    if (lay_thick(maker, &sdf, err) == ERR_OK)
        cover_all(maker, err);
    sdf_free(&sdf);
    return err->code;
}

static enum err_code finish(const struct maker *maker, struct shell *out, struct err *err)
{
    struct inertia inertia = inertia_of(maker->mesh);
    uint32_t count = maker->spheres.count;
    double extent = 0;

    *out = (struct shell){.radius_m = maker->radius_m,
                          .volume_m3 = inertia.volume_m3,
                          .centre = inertia.centre,
                          .protrusion_m = fmax(0, maker->radius_m - maker->least_depth_m),
                          .particles = count};
    memcpy(out->inertia_per_kg, inertia.per_kg, sizeof out->inertia_per_kg);
    if (out->protrusion_m <= DEPTH_DOUBT * maker->radius_m)
        out->protrusion_m = 0;
    out->offsets_m = malloc(count * sizeof *out->offsets_m);
    if (!out->offsets_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a shell of %u spheres", count);
    for (uint32_t i = 0; i < count; i++) {
        struct vec3 offset = vec3_sub(maker->spheres.centres[i], inertia.centre);

        out->offsets_m[i][0] = (float)offset.x;
        out->offsets_m[i][1] = (float)offset.y;
        out->offsets_m[i][2] = (float)offset.z;
        extent = fmax(extent, vec3_length(offset));
    }
    out->extent_m = extent + maker->radius_m;
    return ERR_OK;
}

enum err_code shell_build(const struct polygon_set *set, double radius_m, uint32_t threads,
                          struct shell *out, struct err *err)
{
    struct triangle_mesh mesh = {set->vertices, set->corners, (uint32_t)set->polygon_count};
    struct maker maker = {.mesh = &mesh, .radius_m = radius_m, .least_depth_m = radius_m};
    struct triangle_tree *tree;
    struct solid solid;

    CHECK(radius_m > 0 && isfinite(radius_m));
    err->code = ERR_OK;
    *out = (struct shell){.particles = 0};
    if (solid_measure(set->vertices, set->corners, set->starts, set->polygon_count, &solid, err) ||
        check_size(&mesh, &solid.bounds, radius_m, err))
        return err->code;
    maker.tree = tree = triangle_tree_create(&mesh, err);
    if (!tree)
        return err->code;
    sphere_grid_init(&maker.spheres, FAR * radius_m);
    if (check_crossing(tree, err) == ERR_OK &&
        lay_all(&maker, &solid.bounds, threads, err) == ERR_OK)
        finish(&maker, out, err);
    sphere_grid_free(&maker.spheres);
    triangle_tree_free(tree);
    return err->code;
}

void shell_free(struct shell *shell)
{
    free(shell->offsets_m);
    *shell = (struct shell){.particles = 0};
}

/* ---- use ------------------------------------------------------------------------------------- */

struct sand_shape shell_shape(const struct shell *shell, double mass_kg)
{
    struct sand_shape shape = {.offsets_m = (const float(*)[3])shell->offsets_m,
                               .particles = shell->particles,
                               .mass_kg = (float)mass_kg};

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            shape.inertia[i][j] = (float)(shell->inertia_per_kg[i][j] * mass_kg);
    return shape;
}

static struct vec3 turned(struct vec3 v, const double q[4])
{
    struct vec3 axis = {q[0], q[1], q[2]};
    struct vec3 t = vec3_scale(vec3_cross(axis, v), 2);

    return vec3_add(vec3_add(v, vec3_scale(t, q[3])), vec3_cross(axis, t));
}

struct vec3 shell_origin_of(const struct shell *shell, struct vec3 centre, const double q[4])
{
    return vec3_sub(centre, turned(shell->centre, q));
}
