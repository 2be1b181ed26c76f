/*
 * Shadows of a mesh under a light that is far away.
 *
 * Rays towards such a light are all parallel, so they are floors of another mesh: the same polygons
 * under a gravity that runs towards the light (Q's tree and all). A floor "below"
 * a point there is between it and the light.
 *
 * The answer shall be that of mesh_ray to the bit, whether the tree is there or not: a batch is
 * answered as its points would be one by one. The tree works in other coordinates, so it cannot
 * decide a case that depends on a rounding. It does not have to: it reports the certain cases.
 *
 * - Its edges reach SLACK_TIMES as far as rounding needs, which is more than the test of a
 *   ray allows. Where it finds nothing, the ray meets nothing.
 * - Heights along the light are certain to `doubt_m`, some thousand times the rounding. It is
 *   queried from that much before the origin, too.
 * - Where it finds a polygon, the point is inside of all its edges by more than the slack, and the
 *   polygon is in front of the origin by more than doubt_m, the ray meets something.
 * - Which one is first, is decided by mesh_ray's own test of one polygon, on all those that the
 *   tree has within doubt_m of its best, when each of them is as certain. mesh_ray takes the first
 *   of the mesh where several are at one place, so the order does not matter.
 * - Else, at edges and vertices, mesh_ray decides. Its own answer may depend on the order there.
 * - Polygons that are so steep to the light, or so uneven, that their height is less certain than
 *   doubt_m are taken for flat at their far end (loose): they are found wherever they might be, and
 *   are never certain.
 *
 * A polygon that the tree takes for a wall is seen from its side, and mesh_ray does not hit those
 * either, to a hair: SIDEWAYS. A mesh with a polygon between the two has no tree for that light;
 * nor has one with a polygon that is a sliver to the larger slack.
 *
 * Whether there is any hit is decided by the blocks of the tree's floor grid, without reading a
 * polygon (shadow_blocks.c); the tree decides where they are unsure.
 *
 * The tree is made of the mesh's pieces, not of the file's polygons, so that both are the same
 * surface, and a polygon's index in the tree's file is the piece.
 *
 * Tried and dropped: taking the tree's own height for t (other bits than without the tree); the
 * test of one polygon where the tree is in doubt (mesh_ray's boxes leave out some polygons that it
 * lets through at grazing incidence). Source: J. Barrus and R. Waters, "QOTA", 1996 (text Q),
 * "Future directions".
 */
#include "terrain/light/shadow_index.h"

#include "base/check.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/light/shadow_blocks.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/mesh/floor_mask.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_TIMES 16
#define DOUBT_RELATIVE 6.25e-9 /* of the mesh's largest coordinate */
#define DOUBT_LEAST_M 1e-7
#define SIDEWAYS_MOST 5e-15 /* mesh_ray's SIDEWAYS, and some */
#define REACH 4             /* origins farther out than so many times the mesh are left to rays */
#define UNSURE UINT32_MAX   /* in piece_of: split in the tree, or loose */

enum {
    TOGETHER = 64,
    CANDIDATES_MAX = 32,
    LEAF_FLOORS = 16 /* fewer than of a mesh: its blocks are three cache lines */
};

struct shadow_index {
    atomic_uint refs;
    struct mesh *tree; /* its source is the mesh's piece */
    struct vec3 toward;
    double doubt_m;
    double reach_m;              /* from the mesh's centre, in any coordinate */
    uint32_t *piece_of;          /* [pieces of the mesh] the tree's polygon, or UNSURE */
    uint8_t *is_loose;           /* [polygons of the tree] */
    struct shadow_blocks blocks; /* of the tree's floor grid */
    size_t bytes;
};

/* ---- making ---------------------------------------------------------------------------------- */

bool shadow_index_is_vertical(const struct mesh *mesh, struct vec3 toward)
{
    if (!mesh->header) /* radial or instances: there are trees for rays of any direction already */
        return true;
    struct vec3 d = mesh_turn(mesh->header, toward);

    return length_xy(d.x, d.y) <= 2 * MESH_GRAVITY_SINE * fabs(d.z);
}

/* The mesh's pieces, from its centre: far from the origin, the locale's places are rounded more.
 * The arrays are the caller's to free. */
struct pieces_soup {
    struct vec3 *vertices;
    uint32_t *starts, *corners;
};

static bool soup_make(const struct mesh *mesh, struct pieces_soup *out)
{
    const struct mesh_header *h = mesh->header;
    size_t polygons = h->count[MESH_POLYGONS];

    out->vertices = malloc(h->count[MESH_VERTICES] * sizeof *out->vertices);
    out->starts = malloc((polygons + 1) * sizeof *out->starts);
    out->corners = malloc(mesh_first(mesh, polygons) * sizeof *out->corners);
    if (!out->vertices || !out->starts || !out->corners)
        return false;
    for (size_t i = 0; i < h->count[MESH_VERTICES]; i++)
        out->vertices[i] = mesh_turn_back(h, point_at(&mesh->points, i));
    for (size_t i = 0; i <= polygons; i++)
        out->starts[i] = (uint32_t)mesh_first(mesh, i);
    for (size_t k = 0; k < out->starts[polygons]; k++)
        out->corners[k] = mesh->corners ? mesh->corners[k] : (uint32_t)k;
    return true;
}

/* Is piece `i` of the mesh seen from its side, as mesh_ray sees it? */
static bool is_sideways(const struct mesh *mesh, uint32_t i, struct vec3 toward)
{
    struct face face = mesh_face(mesh, i);
    struct vec3 n = convex_part_normal(&face);

    return fabs(vec3_dot(n, mesh_turn(mesh->header, toward))) <= SIDEWAYS_MOST * vec3_length(n);
}

/* How far the height of a floor of the tree may differ from the ray's test. */
static double height_doubt(const struct mesh *tree, uint32_t polygon)
{
    const struct mesh_polygon *p = &tree->polygons[polygon];
    struct face face = mesh_face(tree, polygon);
    double slope = length_xy(p->slope_x, p->slope_y), uneven = isnan(p->height) ? INFINITY : 0;

    for (uint32_t k = 0; k < face.count; k++) {
        struct vec3 v = face_at(&face, k);
        double z = p->height + p->slope_x * (v.x - (double)p->x_min) +
                   p->slope_y * (v.y - (double)p->y_min);

        uneven = fmax(uneven, fabs(z - v.z));
    }
    return 4 * (tree->header->slack * (1 + slope) + uneven);
}

/* Fills piece_of and is_loose, flattens the loose. False: some polygon forbids a tree. */
static bool polygons_sort(struct shadow_index *light, const struct mesh *mesh)
{
    struct mesh *tree = light->tree;
    /* the image is not shared until now */
    struct mesh_polygon *polygons = (struct mesh_polygon *)(uintptr_t)tree->polygons;

    for (size_t i = 0; i < mesh->header->count[MESH_POLYGONS]; i++)
        light->piece_of[i] = UNSURE;
    for (uint32_t i = 0; i < tree->header->count[MESH_POLYGONS]; i++) {
        struct mesh_polygon *p = &polygons[i];
        uint32_t source = mesh_source(tree, i);
        bool is_first = i == 0 || mesh_source(tree, i - 1) != source;
        bool is_last =
            i + 1 == tree->header->count[MESH_POLYGONS] || mesh_source(tree, i + 1) != source;

        if (mesh_is_wall(p)) {
            if (!is_sideways(mesh, source, light->toward))
                return false;
            continue;
        }
        light->is_loose[i] = !(height_doubt(tree, i) <= light->doubt_m / 2);
        if (light->is_loose[i]) {
            p->height = (double)mesh_range(tree, i).min;
            p->slope_x = p->slope_y = 0;
        } else if (is_first && is_last) {
            light->piece_of[source] = i;
        }
    }
    return true;
}

static enum err_code tree_make(struct shadow_index *light, const struct mesh *mesh, struct err *err)
{
    const struct mesh_header *h = mesh->header;
    struct mesh_options options = {.without_rays = true,
                                   .gravity = light->toward,
                                   .keep_axes = true,
                                   .max_polygons = LEAF_FLOORS,
                                   .slack_times = SLACK_TIMES};
    struct pieces_soup arrays = {NULL, NULL, NULL};
    struct mesh_import import;

    if (soup_make(mesh, &arrays)) {
        struct polygon_soup soup = {arrays.vertices, h->count[MESH_VERTICES], arrays.corners,
                                    arrays.starts, h->count[MESH_POLYGONS]};

        light->tree = mesh_create(&soup, &options, &import, err);
    } else {
        err_set(err, ERR_NO_MEMORY, "no memory for a light over %zu polygons",
                (size_t)h->count[MESH_POLYGONS]);
    }
    free(arrays.vertices);
    free(arrays.starts);
    free(arrays.corners);
    if (light->tree && import.dropped > 0)
        err_set(err, ERR_UNPROCESSABLE, "%llu polygons are slivers",
                (unsigned long long)import.dropped);
    return err->code;
}

static enum err_code light_fill(struct shadow_index *light, const struct mesh *mesh,
                                struct err *err)
{
    const struct mesh_header *h = mesh->header;
    struct mesh_stats stats;

    if (shadow_index_is_vertical(mesh, light->toward))
        return err_set(err, ERR_UNPROCESSABLE, "the light runs along gravity");
    double largest = h->slack / (16 * DBL_EPSILON);

    light->doubt_m = fmax(DOUBT_LEAST_M, DOUBT_RELATIVE * largest);
    light->reach_m = REACH * largest;
    if (tree_make(light, mesh, err))
        return err->code;
    light->piece_of = malloc(h->count[MESH_POLYGONS] * sizeof *light->piece_of);
    light->is_loose = calloc(light->tree->header->count[MESH_POLYGONS], 1);
    if (!light->piece_of || !light->is_loose)
        return err_set(err, ERR_NO_MEMORY, "no memory for a light");
    if (!polygons_sort(light, mesh))
        return err_set(err, ERR_UNPROCESSABLE, "a polygon is all but parallel to the light");
    if (!shadow_blocks_make(light->tree, light->is_loose, light->doubt_m, &light->blocks))
        return err_set(err, ERR_NO_MEMORY, "no memory for a light");
    mesh_stats(light->tree, &stats);
    light->bytes = stats.bytes + sizeof *light + h->count[MESH_POLYGONS] * sizeof *light->piece_of +
                   light->tree->header->count[MESH_POLYGONS] + shadow_blocks_bytes(light->tree);
    return ERR_OK;
}

static struct shadow_index *light_new(struct err *err)
{
    struct shadow_index *light = calloc(1, sizeof *light);

    err->code = ERR_OK;
    if (light)
        atomic_init(&light->refs, 1);
    else
        err_set(err, ERR_NO_MEMORY, "no memory for a light");
    return light;
}

struct shadow_index *shadow_index_create(const struct mesh *mesh, struct vec3 toward,
                                         struct err *err)
{
    struct shadow_index *light = light_new(err);

    if (!light)
        return NULL;
    light->toward = toward;
    if (light_fill(light, mesh, err)) {
        shadow_index_unref(light);
        return NULL;
    }
    return light;
}

struct shadow_index *shadow_index_ref(struct shadow_index *light)
{
    atomic_fetch_add_explicit(&light->refs, 1, memory_order_relaxed);
    return light;
}

void shadow_index_unref(struct shadow_index *light)
{
    if (!light || atomic_fetch_sub_explicit(&light->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (light->tree)
        mesh_unref(light->tree);
    free(light->piece_of);
    free(light->is_loose);
    shadow_blocks_free(&light->blocks);
    free(light);
}

size_t shadow_index_bytes(const struct shadow_index *light)
{
    return light->bytes;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The tree's floors from doubt_m before each of up to TOGETHER origins; from: in its places. */
struct asked {
    struct vec3 from[TOGETHER];
    struct mesh_height found[TOGETHER];
};

static void tree_ask(const struct shadow_index *light, const struct mesh *mesh,
                     const struct vec3 *origins, size_t count, struct asked *asked)
{
    struct vec3 back = vec3_scale(light->toward, -light->doubt_m);

    for (size_t i = 0; i < count; i++)
        asked->from[i] = vec3_add(vec3_sub(origins[i], mesh->header->centre), back);
    mesh_floor_heights(light->tree, asked->from, count, 0, asked->found);
}

/* Is an origin so near to the mesh's centre, from which it is measured, that its rounding is within
 * the slack? */
static inline bool is_within_reach(const struct shadow_index *light, struct vec3 c)
{
    return (fabs(c.x) <= light->reach_m) & (fabs(c.y) <= light->reach_m) &
           (fabs(c.z) <= light->reach_m);
}

/* How far a point is inside of a floor's edges. */
static double inside_by(const struct mesh *tree, uint32_t polygon, double x, double y)
{
    struct face face = mesh_face(tree, polygon);
    double inside = INFINITY;

    for (uint32_t i = 0; i < face.count; i++) {
        struct mesh_line line = convex_part_line(&face, i);

        inside = fmin(inside, line_value(&line, x, y));
    }
    return inside;
}

/* Is the found floor certainly between the origin and the light? */
static inline bool is_certain(const struct shadow_index *light, struct vec3 from,
                              const struct mesh_height *found)
{
    uint32_t piece = light->piece_of[found->polygon];
    const struct mesh *tree = light->tree;

    if (piece == UNSURE)
        return false;
    struct vec3 at = mesh_to_frame(tree->header, from);

    return found->height_m - tree->lift <= at.z - 2 * light->doubt_m &&
           inside_by(tree, piece, at.x, at.y) >= 2 * tree->header->slack;
}

static bool any_by_ray(const struct shadow_index *light, const struct mesh *mesh,
                       struct vec3 origin)
{
    struct ray ray = {origin, light->toward, INFINITY};
    struct mesh_hit hit;

    return mesh_ray(mesh, &ray, RAY_LIGHT_ANY, &hit);
}

/* Of a point that the blocks were not sure of. */
static bool any_at(const struct shadow_index *light, const struct mesh *mesh, struct vec3 origin)
{
    struct asked asked;

    tree_ask(light, mesh, &origin, 1, &asked);
    return asked.found->polygon != MESH_NO_POLYGON &&
           (is_certain(light, asked.from[0], asked.found) || any_by_ray(light, mesh, origin));
}

void shadow_index_any(const struct shadow_index *light, const struct mesh *mesh,
                      const struct vec3 *origins, size_t count, uint8_t *is_hit)
{
    struct vec3 centre = mesh->header->centre;

    _Static_assert(SHADOW_BLOCKED == 1, "an answer");
    shadow_blocks_any(light->tree, &light->blocks, origins, count, centre, light->reach_m, is_hit);
    for (size_t i = 0; i < count; i++) {
        bool is_unsure = is_hit[i] == SHADOW_UNSURE;

        is_hit[i] &= SHADOW_BLOCKED;
        if (is_unsure)
            is_hit[i] = is_within_reach(light, vec3_sub(origins[i], centre))
                            ? any_at(light, mesh, origins[i])
                            : any_by_ray(light, mesh, origins[i]);
    }
}

/* The pieces that are hit from z_least on, nearer to the origin. */
struct gathering {
    double x, y, z_least, z_most, z_certain;
    uint32_t pieces[CANDIDATES_MAX];
    uint32_t count;
    bool is_doubtful; /* a polygon may be hit or not, or there are too many */
};

/* is_inside: by more than two slacks, as the integers of its block say, else its lines do. */
static void piece_gather(const struct shadow_index *light, uint32_t polygon, bool is_inside,
                         struct gathering *g)
{
    const struct mesh_polygon *p = &light->tree->polygons[polygon];
    double slack = light->tree->header->slack;
    double z =
        p->height + p->slope_x * (g->x - (double)p->x_min) + p->slope_y * (g->y - (double)p->y_min);
    bool is_loose = light->is_loose[polygon];

    if (!is_loose && (z < g->z_least || z > g->z_most))
        return;
    if (is_loose) {
        struct z_range range = mesh_range(light->tree, polygon);

        if ((double)range.max < g->z_least || (double)range.min > g->z_most)
            return;
    }
    double inside = is_inside ? INFINITY : inside_by(light->tree, polygon, g->x, g->y);

    if (inside < -slack)
        return;
    g->is_doubtful |=
        is_loose || inside < 2 * slack || z > g->z_certain || g->count == CANDIDATES_MAX;
    if (!g->is_doubtful)
        g->pieces[g->count++] = mesh_source(light->tree, polygon);
}

/* The pieces of the place's cell; beside the grid it is doubtful. */
static void tree_gather(const struct shadow_index *light, struct gathering *g)
{
    const struct floor_grid *grid = &light->tree->grid;
    struct place place;

    g->is_doubtful = !place_begin(light->tree, g->x, g->y, &place);
    if (g->is_doubtful)
        return;
    place_descend(light->tree, &place);
    u64x2 at = (u64x2){place.x, place.y} >> (UNIT_SHIFT + 1);

    for (uint32_t i = 0; i < place.cell->count; i += 2 * COLUMN_LANES) {
        const struct column_block *list = grid->blocks + place.cell->first + i / COLUMN_LANES;
        size_t lanes = place.cell->count - i > COLUMN_LANES ? 2 * COLUMN_LANES : COLUMN_LANES;
        struct floor_mask mask = floor_mask_of(list, lanes, at);

        for (; mask.hit && !g->is_doubtful; mask.hit &= mask.hit - 1) {
            unsigned lane = (unsigned)__builtin_ctz(mask.hit);

            piece_gather(light, block_polygons(list, lanes)[lane] & COLUMN_POLYGON,
                         !(mask.uncertain >> lane & 1), g);
        }
    }
}

static void hit_by_ray(const struct shadow_index *light, const struct mesh *mesh,
                       struct vec3 origin, struct mesh_hit *hit)
{
    struct ray ray = {origin, light->toward, INFINITY};

    if (!mesh_ray(mesh, &ray, RAY_LIGHT, hit))
        hit->t = INFINITY;
}

static void hit_at(const struct shadow_index *light, const struct mesh *mesh, struct vec3 origin,
                   struct vec3 from, const struct mesh_height *found, struct mesh_hit *hit)
{
    struct ray ray = {origin, light->toward, INFINITY};
    struct vec3 at = mesh_to_frame(light->tree->header, from);
    struct gathering g = {
        .x = at.x,
        .y = at.y,
        .z_least = found->height_m - light->tree->lift - 2 * light->doubt_m,
        .z_most = at.z,
        .z_certain = at.z - 2 * light->doubt_m,
    };

    tree_gather(light, &g);
    if (g.is_doubtful || !mesh_ray_among(mesh, &ray, g.pieces, g.count, hit))
        hit_by_ray(light, mesh, origin, hit);
}

void shadow_index_hits(const struct shadow_index *light, const struct mesh *mesh,
                       const struct vec3 *origins, size_t count, struct mesh_hit *hits)
{
    struct asked asked;

    for (size_t first = 0; first < count; first += TOGETHER) {
        const struct vec3 *some = origins + first;
        size_t together = count - first < TOGETHER ? count - first : TOGETHER;

        tree_ask(light, mesh, some, together, &asked);
        for (size_t i = 0; i < together; i++) {
            const struct mesh_height *found = &asked.found[i];

            if (!is_within_reach(light, vec3_sub(some[i], mesh->header->centre)))
                hit_by_ray(light, mesh, some[i], &hits[first + i]);
            else if (found->polygon == MESH_NO_POLYGON)
                hits[first + i].t = INFINITY;
            else
                hit_at(light, mesh, some[i], asked.from[i], found, &hits[first + i]);
        }
    }
}
