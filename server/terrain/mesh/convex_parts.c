/*
 * Polygons of a file, made ready for a mesh.
 *
 * Each polygon is cleaned of repeated corners and turned so that it is counter-clockwise from
 * above, measured by Newell's normal, and then taken as it is when it is flat and convex. Convex
 * must hold where it is used: in the polygon's own plane for rays, and seen along gravity for
 * floors, since the floor test is an intersection of half planes there and anything lost to a
 * dented edge would be a hole. So the tolerance is the mesh's slack, which the test gives back.
 * Polygons that fail are cut into triangles in their own plane and joined to convex pieces again;
 * those that are not flat stay triangles. One that is not flat may cross itself as it is seen along
 * its normal and yet not in space; then its triangles are found there.
 *
 * Edge lines (edge_line). Q writes A = y2 - y1, B = x1 - x2, C = x2 y1 - x1 y2 and calls the
 * counter-clockwise interior positive; it is negative (the unit square's middle gives -1/2). Here
 * the signs are the other way round, and (a, b) is unit, so that a line's value is a distance in
 * metres.
 *
 * A polygon that has no width seen along gravity is a wall: no floor, but rays hit it. Steepness
 * ends at a slope of a million, where a height would be rounded by more than a micrometre.
 *
 * Invariants: each piece has at least 3 corners, an area above the slack, and all its corners
 * inside of all its lines but for half the slack.
 */
#include "terrain/mesh/convex_parts.h"

#include "base/huge.h"
#include "terrain/crew.h"
#include "terrain/mesh/convex_split.h"
#include "terrain/mesh/space_split.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define FLATNESS 1e-6 /* of the polygon's size: the most that a corner may be out of its plane */
#define WALL_STEEPNESS 1e-6 /* vertical part of a wall's unit normal */

/* Of a tame plane: metres up a metre, and along an angle's side for one across. A point beyond two
 * edges by a slack is beyond their corner by less than 2 SHARPEST slacks; RANGE_SLACKS is more than
 * that on the slope, and the roundings of a height. */
#define STEEPEST 64.0
#define SHARPEST 64.0
#define RANGE_SLACKS 0x1p14

/* The present polygon. Points are by place in the ring. */
struct ring {
    uint32_t count;
    bool is_wall;
    double slack;
    uint32_t index[MESH_POLYGON_CORNERS_MAX];     /* of vertices */
    struct vec2 ground[MESH_POLYGON_CORNERS_MAX]; /* seen along gravity */
    struct vec2 plane[MESH_POLYGON_CORNERS_MAX];  /* seen along the axis next to its normal */
    bool is_seen_from_above;                      /* that is Z, and both are the same */
};

struct workshop {
    const struct polygon_soup *soup;
    struct convex_parts *set;
    struct mesh_import *import;
    uint32_t first_counted; /* polygons before this one are not in the import */
    uint32_t source;
    struct ring ring;
    struct split split;
};

_Static_assert((int)MESH_POLYGON_CORNERS_MAX == (int)SPLIT_CORNERS_MAX, "any polygon can be split");

enum err_code soup_check(const struct polygon_soup *soup, struct err *err)
{
    for (size_t i = 0; i < soup->vertex_count; i++) {
        struct vec3 v = soup->vertices[i];

        if (!(fabs(v.x) <= MESH_COORDINATE_MAX_M && fabs(v.y) <= MESH_COORDINATE_MAX_M &&
              fabs(v.z) <= MESH_COORDINATE_MAX_M))
            return err_set(err, ERR_BAD_INPUT,
                           "vertex %zu is (%g, %g, %g), must be finite and within %g m", i, v.x,
                           v.y, v.z, MESH_COORDINATE_MAX_M);
    }
    for (size_t i = 0; i < soup->polygon_count; i++)
        if (soup->starts[i] > soup->starts[i + 1])
            return err_set(err, ERR_BAD_INPUT, "polygon %zu ends before it starts", i);
    if (soup->polygon_count == 0)
        return ERR_OK;
    for (size_t k = soup->starts[0]; k < soup->starts[soup->polygon_count]; k++)
        if (soup->corners[k] >= soup->vertex_count)
            return err_set(err, ERR_BAD_INPUT, "corner %zu is vertex %u, there are %zu", k,
                           soup->corners[k], soup->vertex_count);
    return ERR_OK;
}

/* ---- measures ------------------------------------------------------------------------------- */

struct box2 convex_part_box(const struct face *face)
{
    struct box2 b = {INFINITY, INFINITY, -INFINITY, -INFINITY};

    for (uint32_t i = 0; i < face->count; i++) {
        struct vec3 v = face_at(face, i);

        b.x_min = v.x < b.x_min ? v.x : b.x_min;
        b.y_min = v.y < b.y_min ? v.y : b.y_min;
        b.x_max = v.x > b.x_max ? v.x : b.x_max;
        b.y_max = v.y > b.y_max ? v.y : b.y_max;
    }
    return b;
}

/* ---- pieces --------------------------------------------------------------------------------- */

static struct face face_of(const struct convex_parts *set, const uint32_t *corners, uint32_t count)
{
    return (struct face){{set->vertices, NULL}, corners, count};
}

struct face convex_part_face(const struct convex_parts *set, size_t i)
{
    return face_of(set, set->corners + set->firsts[i], set->firsts[i + 1] - set->firsts[i]);
}

double convex_part_height(const struct face *face, const struct mesh_polygon *p)
{
    struct vec3 at = face_at(face, 0);

    if (face->count > 3) {
        for (uint32_t i = 1; i < face->count; i++)
            at = vec3_add(at, face_at(face, i));
        at = vec3_scale(at, 1.0 / face->count);
    }
    return at.z + p->slope_x * ((double)p->x_min - at.x) + p->slope_y * ((double)p->y_min - at.y);
}

/*
 * Does the plane stay between the corners' heights, but for some slacks, wherever a point counts as
 * inside? Not where it is steep, nor beyond a sharp corner.
 */
static bool is_tame(const struct face *face, const struct mesh_polygon *p)
{
    bool is_blunt = true;

    for (uint32_t i = 0; i < face->count; i++) {
        struct vec3 at = face_at(face, i), after = vec3_sub(face_after(face, i), at);
        struct vec3 before = vec3_sub(face_at(face, i > 0 ? i - 1 : face->count - 1), at);
        double along = after.x * before.x + after.y * before.y;
        double across = after.x * before.y - after.y * before.x;

        is_blunt &= along <= SHARPEST * fabs(across);
    }
    return is_blunt && fabs(p->slope_x) + fabs(p->slope_y) <= STEEPEST;
}

double convex_part_kept_height(const struct face *face, const struct mesh_polygon *p)
{
    return is_tame(face, p) ? convex_part_height(face, p) : NAN;
}

struct z_range convex_part_range(const struct face *face, const struct mesh_polygon *p,
                                 double slack)
{
    bool is_held = isnan(p->height); /* walls, too */
    double low = INFINITY, high = -INFINITY, more = is_held ? 0 : RANGE_SLACKS * slack;

    for (uint32_t i = 0; i < face->count; i++) {
        struct vec3 v = face_at(face, i);
        double z = is_held ? v.z
                           : p->height + p->slope_x * (v.x - (double)p->x_min) +
                                 p->slope_y * (v.y - (double)p->y_min);

        low = v.z < low ? v.z : low;
        low = z < low ? z : low;
        high = v.z > high ? v.z : high;
        high = z > high ? z : high;
    }
    return (struct z_range){float_down(low - more), float_up(high + more)};
}

/* The plane of a piece, whose box is set; normal.x: not a number for a wall. */
static void piece_plane(const struct face *face, struct vec3 normal, struct mesh_polygon *p)
{
    p->slope_x = isnan(normal.x) ? NAN : -normal.x / normal.z;
    p->slope_y = isnan(normal.x) ? NAN : -normal.y / normal.z;
    p->height = convex_part_kept_height(face, p);
}

static bool is_wall(struct vec3 normal, const struct box2 *box, double slack)
{
    return !(normal.z > WALL_STEEPNESS * vec3_length(normal) &&
             normal.z > 4 * slack * length_xy(box->x_max - box->x_min, box->y_max - box->y_min));
}

static void set_widen(struct convex_parts *set, const struct box2 *box, float low, float high)
{
    struct box2 *root = &set->root;

    root->x_min = box->x_min < root->x_min ? box->x_min : root->x_min;
    root->y_min = box->y_min < root->y_min ? box->y_min : root->y_min;
    root->x_max = box->x_max > root->x_max ? box->x_max : root->x_max;
    root->y_max = box->y_max > root->y_max ? box->y_max : root->y_max;
    set->z_min = low < set->z_min ? low : set->z_min;
    set->z_max = high > set->z_max ? high : set->z_max;
}

/* The corners are at the end of set->corners already; their normal and box. */
static void piece_put(struct workshop *w, uint32_t count, struct vec3 normal,
                      const struct box2 *box, bool is_upright)
{
    struct convex_parts *set = w->set;
    struct face face = face_of(set, set->corners + set->corner_count, count);
    struct mesh_polygon p = {
        .x_min = float_down(box->x_min - set->slack),
        .y_min = float_down(box->y_min - set->slack),
    };

    if (is_upright)
        normal.x = NAN;
    piece_plane(&face, normal, &p);
    struct z_range range = convex_part_range(&face, &p, set->slack);

    set_widen(set, box, range.min, range.max);
    set->corner_count += count;
    set->sources[set->polygon_count] = w->source;
    set->polygons[set->polygon_count++] = p;
    set->firsts[set->polygon_count] = (uint32_t)set->corner_count;
}

/* The same, with the normal and the box computed here. */
static void piece_add(struct workshop *w, uint32_t count)
{
    uint32_t *corners = w->set->corners + w->set->corner_count;
    struct face face = face_of(w->set, corners, count);
    struct box2 box = convex_part_box(&face);
    struct vec3 normal = convex_part_normal(&face);

    if (count == 3 && normal.z < 0) { /* of a polygon that is not flat */
        uint32_t keep = corners[1];

        corners[1] = corners[2];
        corners[2] = keep;
        normal = vec3_scale(normal, -1);
    }
    piece_put(w, count, normal, &box, w->ring.is_wall || is_wall(normal, &box, w->set->slack));
}

/* Is a list of the ring's corners convex, in its plane and seen along gravity? */
static bool corners_are_fit(const void *context, const uint32_t *corners, uint32_t count)
{
    const struct ring *ring = context;
    struct vec2 points[SPLIT_PIECE_MAX];

    for (uint32_t i = 0; i < count; i++)
        points[i] = ring->plane[corners[i]];
    if (!ring_is_convex(points, count, ring->slack / 2))
        return false;
    if (ring->is_wall || ring->is_seen_from_above)
        return true;
    for (uint32_t i = 0; i < count; i++)
        points[i] = ring->ground[corners[i]];
    return ring_is_convex(points, count, ring->slack / 2);
}

/* Pieces of corners of the ring, one after another. */
static void pieces_add(struct workshop *w, const uint32_t *corners, const uint32_t *counts,
                       uint32_t pieces)
{
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t *out = w->set->corners + w->set->corner_count;

        for (uint32_t k = 0; k < counts[i]; k++)
            out[k] = w->ring.index[corners[k]];
        corners += counts[i];
        piece_add(w, counts[i]);
    }
}

/* Cuts the ring into triangles as it is seen, and joins them to pieces if it is flat. False: it is
 * not simple, or, unless it may lose those, has triangles that are seen from their side. */
static bool ring_split_seen(struct workshop *w, bool is_flat, bool may_lose)
{
    struct ring *ring = &w->ring;
    struct convex_judge judge = {corners_are_fit, ring};

    if (ring_crosses_itself(&w->split, ring->plane, ring->count, ring->slack))
        return false;
    uint32_t pieces = ring_triangulate(&w->split, ring->plane, ring->count, ring->slack / 2);

    if (pieces == 0 || (!may_lose && pieces < ring->count - 2))
        return false;
    for (uint32_t i = 0; i < pieces; i++)
        w->split.counts[i] = 3;
    if (is_flat)
        pieces = pieces_join(&w->split, &judge);
    pieces_add(w, w->split.corners, w->split.counts, pieces);
    return true;
}

/* The same of a ring that is not flat, and not simple as it is seen: in space. False: it is not
 * simple there, or has too many corners. */
static bool ring_split_in_space(struct workshop *w, double size)
{
    struct ring *ring = &w->ring;
    double within = fmax(FLATNESS * size, ring->slack);
    struct vec3 points[SPACE_CORNERS_MAX];
    uint32_t corners[3 * SPACE_CORNERS_MAX];
    const uint32_t three = 3;

    if (ring->count > SPACE_CORNERS_MAX)
        return false;
    for (uint32_t i = 0; i < ring->count; i++)
        points[i] = w->set->vertices[ring->index[i]];
    if (space_ring_meets_itself(points, ring->count, within))
        return false;
    space_triangulate(points, ring->count, corners);
    ring->is_wall = false;
    for (uint32_t i = 0; i < 3 * (ring->count - 2); i += 3) {
        const struct vec3 t[3] = {points[corners[i]], points[corners[i + 1]],
                                  points[corners[i + 2]]};
        double longest =
            fmax(vec3_length(vec3_sub(t[1], t[0])),
                 fmax(vec3_length(vec3_sub(t[2], t[1])), vec3_length(vec3_sub(t[0], t[2]))));
        struct vec3 normal = vec3_cross(vec3_sub(t[1], t[0]), vec3_sub(t[2], t[0]));

        if (vec3_length(normal) > 4 * ring->slack * longest)
            pieces_add(w, corners + i, &three, 1);
    }
    return true;
}

/* ---- one polygon of the file ---------------------------------------------------------------- */

static bool is_same_place(const struct convex_parts *set, uint32_t a, uint32_t b)
{
    struct vec3 p = set->vertices[a], q = set->vertices[b];

    return p.x == q.x && p.y == q.y && p.z == q.z;
}

/* The polygon's corners without those at the place of the one before. */
static enum mesh_fate ring_take(struct workshop *w)
{
    const struct polygon_soup *soup = w->soup;
    uint32_t start = soup->starts[w->source], count = soup->starts[w->source + 1] - start;
    struct ring *ring = &w->ring;

    if (count > MESH_POLYGON_CORNERS_MAX)
        return MESH_MANY_CORNERS;
    ring->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t corner = soup->corners[start + i];

        if (ring->count == 0 || !is_same_place(w->set, ring->index[ring->count - 1], corner))
            ring->index[ring->count++] = corner;
    }
    while (ring->count > 1 && is_same_place(w->set, ring->index[ring->count - 1], ring->index[0]))
        ring->count--;
    return ring->count >= 3 ? MESH_KEPT : MESH_FEW_CORNERS;
}

static void ring_reverse(struct ring *ring)
{
    for (uint32_t i = 0, k = ring->count - 1; i < k; i++, k--) {
        uint32_t keep = ring->index[i];

        ring->index[i] = ring->index[k];
        ring->index[k] = keep;
    }
}

/* The axis next to a direction: 0, 1, 2. */
static int nearest_axis(struct vec3 v)
{
    double x = fabs(v.x), y = fabs(v.y), z = fabs(v.z);

    return z >= x && z >= y ? 2 : x >= y ? 0 : 1;
}

/* Both views of the ring, the plane's along an axis; each counter-clockwise. */
static void ring_view(struct ring *ring, const struct vec3 *vertices, struct vec3 normal, int axis)
{
    ring->is_seen_from_above = axis == 2;
    for (uint32_t i = 0; i < ring->count; i++) {
        struct vec3 v = vertices[ring->index[i]];

        ring->ground[i] = (struct vec2){v.x, v.y};
        if (axis == 2)
            ring->plane[i] = ring->ground[i];
        else if (axis == 0)
            ring->plane[i] = normal.x > 0 ? (struct vec2){v.y, v.z} : (struct vec2){v.z, v.y};
        else
            ring->plane[i] = normal.y > 0 ? (struct vec2){v.z, v.x} : (struct vec2){v.x, v.z};
    }
}

static double ring_size(const struct ring *ring, const struct vec3 *vertices)
{
    struct box3 box = {vertices[ring->index[0]], vertices[ring->index[0]]};

    for (uint32_t i = 1; i < ring->count; i++) {
        struct vec3 v = vertices[ring->index[i]];

        box3_take(&box, v);
    }
    return vec3_length(vec3_sub(box.max, box.min));
}

static bool ring_is_flat(const struct ring *ring, const struct vec3 *vertices, struct vec3 normal,
                         double tolerance)
{
    struct vec3 unit = vec3_unit(normal), middle = {0, 0, 0};

    for (uint32_t i = 0; i < ring->count; i++)
        middle = vec3_add(middle, vertices[ring->index[i]]);
    middle = vec3_scale(middle, 1.0 / ring->count);
    for (uint32_t i = 0; i < ring->count; i++)
        if (!(fabs(vec3_dot(unit, vec3_sub(vertices[ring->index[i]], middle))) <= tolerance))
            return false;
    return true;
}

static bool ring_is_one_piece(const struct ring *ring)
{
    return ring_is_convex(ring->plane, ring->count, ring->slack / 2) &&
           (ring->is_wall || ring->is_seen_from_above ||
            ring_is_convex(ring->ground, ring->count, ring->slack / 2));
}

/* A ring of four corners or more in several pieces. False: it crosses itself. */
static bool ring_split(struct workshop *w, struct vec3 normal, double size, bool is_flat)
{
    int axis = nearest_axis(normal);

    if (ring_split_seen(w, is_flat, is_flat))
        return true;
    if (is_flat)
        return false;
    if (ring_split_in_space(w, size))
        return true;
    for (int i = 0; i < 3; i++) {
        ring_view(&w->ring, w->set->vertices, normal, (axis + i) % 3);
        if (ring_split_seen(w, false, true))
            return true;
    }
    return false;
}

/* A ring whose area sums up to nothing: it is a line, or runs back over itself, or is folded. */
static enum mesh_fate ring_without_side(struct workshop *w, double size)
{
    const struct vec3 *vertices = w->set->vertices;
    const struct ring *ring = &w->ring;
    struct vec3 origin = vertices[ring->index[0]], widest = {0, 0, 0};

    for (uint32_t i = 1; i + 1 < ring->count; i++) {
        struct vec3 normal = vec3_cross(vec3_sub(vertices[ring->index[i]], origin),
                                        vec3_sub(vertices[ring->index[i + 1]], origin));

        if (vec3_length(normal) > vec3_length(widest))
            widest = normal;
    }
    if (!(vec3_length(widest) > 4 * w->set->slack * size))
        return MESH_NO_AREA;
    if (ring_is_flat(ring, vertices, widest, fmax(FLATNESS * size, w->set->slack)))
        return MESH_CROSSES_ITSELF;
    return ring_split_in_space(w, size) ? MESH_KEPT : MESH_CROSSES_ITSELF;
}

/* Adds the pieces of one polygon. */
static enum mesh_fate polygon_add(struct workshop *w)
{
    struct ring *ring = &w->ring;
    const struct vec3 *vertices = w->set->vertices;
    enum mesh_fate fate = ring_take(w);

    if (fate != MESH_KEPT)
        return fate;
    struct face face = face_of(w->set, ring->index, ring->count);
    struct vec3 normal = convex_part_normal(&face);
    double size = ring_size(ring, vertices), slack = w->set->slack;

    ring->slack = slack;
    if (!(vec3_length(normal) > 4 * slack * size))
        return ring_without_side(w, size);
    bool is_reversed = normal.z < 0;

    if (is_reversed) {
        ring_reverse(ring);
        normal = vec3_scale(normal, -1);
    }
    struct box2 box = convex_part_box(&face);
    bool is_flat = true;

    ring->is_wall = is_wall(normal, &box, slack);
    if (ring->count > 3) {
        is_flat = ring_is_flat(ring, vertices, normal, fmax(FLATNESS * size, slack));
        ring_view(ring, vertices, normal, nearest_axis(normal));
        if (!is_flat)
            ring->is_wall = false; /* each triangle is classified separately */
        if (!is_flat || !ring_is_one_piece(ring))
            return ring_split(w, normal, size, is_flat) ? MESH_KEPT : MESH_CROSSES_ITSELF;
    }
    memcpy(w->set->corners + w->set->corner_count, ring->index, ring->count * sizeof *ring->index);
    if (is_reversed) /* from another corner the normal is rounded in another way */
        piece_add(w, ring->count);
    else
        piece_put(w, ring->count, normal, &box, ring->is_wall);
    return MESH_KEPT;
}

/* ---- the whole soup ------------------------------------------------------------------------- */

enum { CHUNK = 1 << 14 };

/* Some polygons of a soup. */
struct chunk {
    size_t begin, end;
    size_t piece_room, corner_room; /* where their pieces begin in the arrays of all */
    struct convex_parts set;        /* with corners from 0 on */
    struct mesh_import import;
    bool is_short; /* of memory */
};

/* A soup in chunks. */
struct cutting {
    const struct polygon_soup *soup;
    struct convex_parts *set;
    struct chunk *chunks;
    size_t chunk_count;
    uint32_t first_counted;
    struct pace *pace; /* of the caller's thread where there is no other */
    struct err *err;
};

/* Room for as many pieces as there may be. */
static bool set_allocate(struct cutting *c)
{
    const struct polygon_soup *soup = c->soup;
    struct convex_parts *set = c->set;
    size_t pieces = 0, corners = 0;

    c->chunk_count = (soup->polygon_count + CHUNK - 1) / CHUNK;
    c->chunks = calloc(c->chunk_count + 1, sizeof *c->chunks);
    for (size_t i = 0; c->chunks && i < soup->polygon_count; i++) {
        size_t count = soup->starts[i + 1] - soup->starts[i];
        size_t triangles = count >= 3 ? count - 2 : 0;
        struct chunk *chunk = &c->chunks[i / CHUNK];

        if (i % CHUNK == 0)
            *chunk = (struct chunk){.begin = i, .piece_room = pieces, .corner_room = corners};
        chunk->end = i + 1;
        pieces += triangles;
        corners += 3 * triangles;
    }
    set->vertices = huge_alloc((soup->vertex_count + 1) * sizeof *set->vertices);
    set->polygons = huge_alloc((pieces + 1) * sizeof *set->polygons);
    set->firsts = huge_alloc((pieces + c->chunk_count + 1) * sizeof *set->firsts);
    set->sources = huge_alloc((pieces + 1) * sizeof *set->sources);
    set->corners = huge_alloc((corners + 1) * sizeof *set->corners);
    return c->chunks && set->vertices && set->polygons && set->firsts && set->sources &&
           set->corners;
}

void convex_parts_free(struct convex_parts *set)
{
    free(set->vertices);
    free(set->polygons);
    free(set->firsts);
    free(set->sources);
    free(set->corners);
    memset(set, 0, sizeof *set);
}

/* All vertices into the mesh's frame; the slack that those of polygons call for. */
static void vertices_turn(struct convex_parts *set, const struct polygon_soup *soup,
                          const struct mesh_header *header, double slack_times)
{
    double largest = 0;

    for (size_t i = 0; i < soup->vertex_count; i++)
        set->vertices[i] = mesh_to_frame(header, soup->vertices[i]);
    for (size_t k = soup->starts[0]; k < soup->starts[soup->polygon_count]; k++) {
        struct vec3 v = set->vertices[soup->corners[k]];

        largest = fabs(v.x) > largest ? fabs(v.x) : largest;
        largest = fabs(v.y) > largest ? fabs(v.y) : largest;
        largest = fabs(v.z) > largest ? fabs(v.z) : largest;
    }
    set->slack = slack_times * (16 * DBL_EPSILON * largest);
}

/* Leaves out the vertices that no piece uses; bounds of the others. map[vertex_count]. */
static void vertices_compact(struct convex_parts *set, const struct polygon_soup *soup,
                             uint32_t *map)
{
    struct box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

    memset(map, 0, soup->vertex_count * sizeof *map);
    for (size_t k = 0; k < set->corner_count; k++)
        map[set->corners[k]] = 1;
    for (size_t i = 0; i < soup->vertex_count; i++) {
        struct vec3 v = soup->vertices[i];

        if (!map[i])
            continue;
        box3_take(&box, v);
        map[i] = (uint32_t)set->vertex_count;
        set->vertices[set->vertex_count++] = set->vertices[i];
    }
    for (size_t k = 0; k < set->corner_count; k++)
        set->corners[k] = map[set->corners[k]];
    set->bounds = box;
}

/* A terrain that is one straight wall still has a box that can be cut. */
static void root_widen(struct box2 *root, double slack)
{
    double width = root->x_max - root->x_min, height = root->y_max - root->y_min;
    double least = fmax(1e-6 * fmax(width, height), 64 * slack);

    if (width < least) {
        root->x_min -= least / 2;
        root->x_max += least / 2;
    }
    if (height < least) {
        root->y_min -= least / 2;
        root->y_max += least / 2;
    }
}

void import_drop(struct mesh_import *import, uint32_t polygon, enum mesh_fate fate)
{
    uint32_t at = import->told;

    import->dropped++;
    import->by_fate[fate]++;
    if (at == MESH_DROPS_TOLD) {
        if (import->drops[at - 1].polygon < polygon)
            return;
        at--;
    } else {
        import->told++;
    }
    for (; at > 0 && import->drops[at - 1].polygon > polygon; at--)
        import->drops[at] = import->drops[at - 1];
    import->drops[at] = (struct mesh_drop){polygon, fate};
}

static void import_count(struct workshop *w, enum mesh_fate fate, size_t pieces)
{
    if (w->source < w->first_counted)
        return;
    if (fate == MESH_KEPT && pieces == 0)
        fate = MESH_NO_AREA;
    if (fate != MESH_KEPT)
        import_drop(w->import, w->source - w->first_counted, fate);
    w->import->kept += pieces;
    w->import->split += pieces > 1;
}

/* Nothing but the vertices. */
static void set_empty(struct convex_parts *set)
{
    set->root = (struct box2){INFINITY, INFINITY, -INFINITY, -INFINITY};
    set->z_min = INFINITY;
    set->z_max = -INFINITY;
    set->firsts[0] = 0;
}

static void chunk_work(void *context, size_t number)
{
    const struct cutting *c = context;
    const struct convex_parts *all = c->set;
    struct chunk *chunk = &c->chunks[number];
    struct workshop *w = malloc(sizeof *w);

    chunk->is_short = !w;
    if (!w)
        return;
    chunk->set = (struct convex_parts){.vertices = all->vertices,
                                       .slack = all->slack,
                                       .polygons = all->polygons + chunk->piece_room,
                                       .firsts = all->firsts + chunk->piece_room + number,
                                       .sources = all->sources + chunk->piece_room,
                                       .corners = all->corners + chunk->corner_room};
    set_empty(&chunk->set);
    w->soup = c->soup;
    w->set = &chunk->set;
    w->import = &chunk->import;
    w->first_counted = c->first_counted;
    for (size_t i = chunk->begin; i < chunk->end; i++) {
        size_t before = w->set->polygon_count;

        w->source = (uint32_t)i;
        enum mesh_fate fate = polygon_add(w);

        import_count(w, fate, w->set->polygon_count - before);
        if (pace_step(c->pace, 4 + c->soup->starts[i + 1] - c->soup->starts[i], c->err))
            break;
    }
    free(w);
}

/* The pieces of a chunk after those of the ones before it, whose room they may be in. */
static void chunk_join(struct convex_parts *set, const struct convex_parts *more)
{
    size_t count = more->polygon_count;

    memmove(set->polygons + set->polygon_count, more->polygons, count * sizeof *set->polygons);
    memmove(set->sources + set->polygon_count, more->sources, count * sizeof *set->sources);
    memmove(set->corners + set->corner_count, more->corners,
            more->corner_count * sizeof *set->corners);
    for (size_t i = 0; i <= count; i++)
        set->firsts[set->polygon_count + i] = more->firsts[i] + (uint32_t)set->corner_count;
    set->polygon_count += count;
    set->corner_count += more->corner_count;
    set_widen(set, &more->root, more->z_min, more->z_max);
}

static void import_join(struct mesh_import *import, const struct mesh_import *more)
{
    import->kept += more->kept;
    import->split += more->split;
    for (uint32_t i = 0; i < more->told; i++)
        import_drop(import, more->drops[i].polygon, more->drops[i].fate);
    import->dropped += more->dropped - more->told;
    for (int fate = 0; fate < MESH_FATES; fate++)
        import->by_fate[fate] += more->by_fate[fate];
    for (uint32_t i = 0; i < more->told; i++)
        import->by_fate[more->drops[i].fate]--; /* counted twice */
}

static enum err_code pieces_fill(struct cutting *c, struct crew *crew, struct pace *pace,
                                 bool may_be_none, struct mesh_import *import)
{
    struct convex_parts *set = c->set;

    set_empty(set);
    pace_stage(pace, STAGE_PIECES);
    if (crew_run(crew, pace, chunk_work, c, c->chunk_count, c->err))
        return c->err->code;
    for (size_t i = 0; i < c->chunk_count; i++) {
        if (c->chunks[i].is_short)
            return err_set(c->err, ERR_NO_MEMORY, "no memory to take polygons apart");
        chunk_join(set, &c->chunks[i].set);
        import_join(import, &c->chunks[i].import);
    }
    if (set->corner_count > MESH_CORNERS_MAX)
        return err_limit(c->err, ERR_TOO_LARGE, MESH_CORNERS_MAX, (double)set->corner_count,
                         "the polygons have more than %d corners", MESH_CORNERS_MAX);
    if (set->polygon_count == 0 && !may_be_none)
        return mesh_none_left(import, c->soup->polygon_count, c->err);
    if (!may_be_none)
        root_widen(&set->root, set->slack);
    return ERR_OK;
}

enum err_code mesh_none_left(const struct mesh_import *import, size_t polygons, struct err *err)
{
    if (import->told == 0)
        return err_set(err, ERR_UNPROCESSABLE, "no polygon is left of %zu", polygons);
    return err_set(err, ERR_UNPROCESSABLE, "no polygon is left of %zu; polygon %u %s", polygons,
                   import->drops[0].polygon, mesh_fate_text[import->drops[0].fate]);
}

/* Of the file, in place of those of the soup. */
static void numbers_set(struct convex_parts *set, struct mesh_import *import,
                        const uint32_t *numbers)
{
    for (size_t i = 0; i < set->polygon_count; i++)
        set->sources[i] = numbers[set->sources[i]];
    for (uint32_t i = 0; i < import->told; i++)
        import->drops[i].polygon = numbers[import->drops[i].polygon];
}

static enum err_code make(const struct polygon_soup *soup, const struct mesh_header *header,
                          const struct mesh_options *options, bool is_more,
                          struct convex_parts *out, struct mesh_import *import, struct err *err)
{
    struct cutting c = {.soup = soup,
                        .set = out,
                        .first_counted = options->first_counted,
                        .pace = options->crew ? NULL : options->pace,
                        .err = err};
    uint32_t *map = huge_alloc((soup->vertex_count + 1) * sizeof *map);
    enum err_code code;

    memset(out, 0, sizeof *out);
    memset(import, 0, sizeof *import);
    err->code = ERR_OK;
    if (map == NULL || !set_allocate(&c)) {
        code = err_set(err, ERR_NO_MEMORY, "no memory for %zu polygons", soup->polygon_count);
    } else {
        vertices_turn(out, soup, header, options->slack_times > 0 ? options->slack_times : 1);
        if (header->slack > 0)
            out->slack = header->slack;
        code = pieces_fill(&c, options->crew, options->pace, is_more, import);
        if (code == ERR_OK)
            vertices_compact(out, soup, map);
        if (options->numbers)
            numbers_set(out, import, options->numbers);
    }
    free(map);
    free(c.chunks);
    if (code)
        convex_parts_free(out);
    return code;
}

enum err_code convex_parts_make(const struct polygon_soup *soup, const struct mesh_header *header,
                                const struct mesh_options *options, struct convex_parts *out,
                                struct mesh_import *import, struct err *err)
{
    return make(soup, header, options, false, out, import, err);
}

enum err_code convex_parts_make_more(const struct polygon_soup *soup,
                                     const struct mesh_header *header, struct pace *pace,
                                     struct convex_parts *out, struct mesh_import *import,
                                     struct err *err)
{
    struct mesh_options options = {.pace = pace};

    return make(soup, header, &options, true, out, import, err);
}

double convex_parts_slack(const struct polygon_soup *soup, const struct mesh_header *header)
{
    double largest = 0;

    for (size_t k = soup->starts[0]; k < soup->starts[soup->polygon_count]; k++) {
        struct vec3 v = mesh_to_frame(header, soup->vertices[soup->corners[k]]);

        largest = fmax(largest, fmax(fabs(v.x), fmax(fabs(v.y), fabs(v.z))));
    }
    return 16 * DBL_EPSILON * largest;
}
