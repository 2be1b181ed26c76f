/*
 * Making and keeping meshes under radial gravity (Q, "Future directions": a planet in spherical, a
 * rotating station in cylindrical coordinates).
 *
 * Q would turn the vertices into θ, φ, r and sort the polygons into a quadtree of θ and φ. A
 * polygon's edges are straight in space and bent in θ and φ: the patch between its turned corners
 * is another surface, on large polygons by as much as a fifth of r, it is torn where θ goes from
 * 180° to -180°, and has no place at the poles. So nothing is turned here. Polygons stay as they
 * are, boxes around them in space are in a tree (ray_tree.h), and the line of gravity through a
 * point is a line like any other, tested against the straight edges (radial_line.c). There is no
 * seam because there are no angles.
 *
 * Tried on paper and dropped: six quadtrees on the faces of a cube, where a gnomonic projection
 * keeps edges straight. Lines of gravity would find their leaf without looking beside it, but a
 * cylinder needs another index, rays a third one, and polygons across the cube's edges are split.
 * On shells, which planets are, the tree of boxes tests few polygons more (docs/terrain.md has
 * the figures), and it serves all three.
 *
 * Polygons come from convex_parts.c as for any mesh: cleaned, split where they are not convex or
 * flat. Then each is judged by its plane. Where gravity lies in it all along the polygon, to a
 * millionth, the polygon is a wall. A polygon that the centre lies in, or that the axis passes
 * through, is dropped and counted with all its pieces, for there gravity has no direction; touching
 * is no passing, so a cone with its tip on the axis stays, and so does a cap across it, which is a
 * wall. A straight edge is less than half of a circle as seen from anywhere beside it, so none is
 * too long.
 *
 * The image is verified like a mesh's (mesh_image.c): header, content hash, then each index. The
 * tree is not in it: it is a few bytes a polygon, built faster than read from a cold disk, and what
 * is not in a file need not be doubted.
 */
#include "terrain/radial/radial.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "terrain/mesh/equal_polygons.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/radial/box_order.h"

#include <stdlib.h>
#include <string.h>

#define WALL_STEEPNESS 1e-6 /* of the unit normal along gravity */

static const size_t item_bytes[RADIAL_SECTIONS] = {
    [RADIAL_POLYGONS] = sizeof(struct radial_polygon),
    [RADIAL_CORNERS] = sizeof(uint32_t),
    [RADIAL_VERTICES] = sizeof(struct vec3),
};

/* ---- judging polygons ----------------------------------------------------------------------- */

enum piece_class { PIECE_FLOOR, PIECE_WALL, PIECE_DROPPED };

static struct vec3 from_centre(enum mesh_frame frame, struct vec3 v)
{
    return frame == MESH_SPHERICAL ? v : (struct vec3){v.x, v.y, 0};
}

/* The place between a and b that is nearest to the origin. */
static struct vec3 nearest_between(struct vec3 a, struct vec3 b)
{
    struct vec3 ab = vec3_sub(b, a);
    double along = -vec3_dot(a, ab) / vec3_dot(ab, ab);

    return along > 0 && along < 1 ? vec3_add(a, vec3_scale(ab, along)) : a;
}

/*
 * Does gravity lie in the plane all along the polygon's border? It is furthest from that where the
 * border is nearest to the centre.
 */
static bool is_steep(const struct face *face, double slack, struct vec3 normal,
                     enum mesh_frame frame)
{
    struct vec3 b = from_centre(frame, face_at(face, face->count - 1));

    for (uint32_t i = 0; i < face->count; i++) {
        struct vec3 a = from_centre(frame, face_at(face, i)), at = nearest_between(a, b);

        if (fabs(vec3_dot(normal, a)) > WALL_STEEPNESS * vec3_length(a) + 4 * slack ||
            fabs(vec3_dot(normal, at)) > WALL_STEEPNESS * vec3_length(at) + 4 * slack)
            return false;
        b = a;
    }
    return true;
}

static enum piece_class piece_class_of(const struct convex_parts *set, size_t piece,
                                       enum mesh_frame frame)
{
    const struct vec3 origin = {0, 0, 0}, z = {0, 0, 1};
    struct face face = convex_part_face(set, piece);
    struct vec3 normal = vec3_unit(convex_part_normal(&face));
    bool is_sphere = frame == MESH_SPHERICAL, is_wall = is_steep(&face, set->slack, normal, frame);
    bool is_around = radial_line_is_inside(&face, origin, is_sphere ? normal : z, set->slack);

    if (is_around && is_sphere)
        return fabs(vec3_dot(normal, face_at(&face, 0))) > 4 * set->slack ? PIECE_FLOOR
                                                                          : PIECE_DROPPED;
    if (is_around && !is_wall)
        return PIECE_DROPPED;
    return is_wall ? PIECE_WALL : PIECE_FLOOR;
}

/* Classifies the polygons of the file: pieces of one source are together. */
static size_t judge(const struct convex_parts *set, const struct mesh_options *options,
                    uint8_t *classes, struct mesh_import *import)
{
    enum mesh_frame frame = options->space.frame;
    size_t kept = 0;

    for (size_t begin = 0, end; begin < set->polygon_count; begin = end) {
        bool is_dropped = false;

        for (end = begin; end < set->polygon_count && set->sources[end] == set->sources[begin];
             end++) {
            classes[end] = (uint8_t)piece_class_of(set, end, frame);
            is_dropped |= classes[end] == PIECE_DROPPED;
        }
        if (!is_dropped) {
            kept += end - begin;
            continue;
        }
        memset(classes + begin, PIECE_DROPPED, end - begin);
        if (set->sources[begin] < options->first_counted)
            continue;
        import->kept -= end - begin;
        import->split -= end - begin > 1;
        import_drop(import, set->sources[begin] - options->first_counted, MESH_AROUND_CENTRE);
    }
    return kept;
}

/* ---- the image ------------------------------------------------------------------------------ */

static bool lay_out(struct radial_header *header)
{
    uint64_t at = mesh_aligned(sizeof *header);

    for (int s = 0; s < RADIAL_SECTIONS; s++) {
        if (header->count[s] >= (uint64_t)1 << 31)
            return false;
        header->offset[s] = at;
        at += mesh_aligned(header->count[s] * item_bytes[s]);
    }
    memcpy(header->magic, RADIAL_MAGIC, sizeof header->magic);
    header->version = RADIAL_VERSION;
    header->header_bytes = sizeof *header;
    header->bytes = at;
    return true;
}

static uint64_t header_checksum(const struct radial_header *header)
{
    return fnv1a(FNV1A_EMPTY, header, offsetof(struct radial_header, checksum));
}

bool radial_image_seal(void *image, size_t length)
{
    struct radial_header h;

    if (length < sizeof h)
        return false;
    memcpy(&h, image, sizeof h);
    if (!lay_out(&h) || h.bytes != length)
        return false;
    content_hash((uint8_t *)image + sizeof h, length - sizeof h, h.content);
    h.checksum = header_checksum(&h);
    memcpy(image, &h, sizeof h);
    return true;
}

static void sections_set(struct radial *r, const void *image)
{
    const uint8_t *base = image;

    r->header = image;
    r->polygons = (const void *)(base + r->header->offset[RADIAL_POLYGONS]);
    r->corners = (const void *)(base + r->header->offset[RADIAL_CORNERS]);
    r->vertices = (const void *)(base + r->header->offset[RADIAL_VERTICES]);
}

static struct box_bounds bounds_of(const struct face *face, double by)
{
    struct vec3 low = {INFINITY, INFINITY, INFINITY}, high = {-INFINITY, -INFINITY, -INFINITY};

    for (uint32_t i = 0; i < face->count; i++) {
        struct vec3 v = face_at(face, i);

        low = (struct vec3){fmin(low.x, v.x), fmin(low.y, v.y), fmin(low.z, v.z)};
        high = (struct vec3){fmax(high.x, v.x), fmax(high.y, v.y), fmax(high.z, v.z)};
    }
    return (struct box_bounds){
        {float_down(low.x - by), float_down(low.y - by), float_down(low.z - by)},
        {float_up(high.x + by), float_up(high.y + by), float_up(high.z + by)}};
}

static struct ray_tree_polygons polygons_of(const struct radial *r)
{
    return (struct ray_tree_polygons){
        .points = {r->vertices, NULL},
        .corners = r->corners,
        .firsts = &r->polygons->first,
        .stride = sizeof *r->polygons,
        .has_counts = true,
        .count = r->header->count[RADIAL_POLYGONS],
        .slack = r->header->slack,
    };
}

/* Of equal polygons the first is in the tree. The caller frees polygons->same. */
static enum err_code equals_find(struct ray_tree_polygons *polygons, struct err *err)
{
    uint32_t *same = malloc(polygons->count * sizeof *same);

    polygons->same = same;
    if (!same || equal_polygons_find(polygons, 0, same) == SIZE_MAX)
        return err_set(err, ERR_NO_MEMORY, "no memory to compare %zu polygons", polygons->count);
    return err->code = ERR_OK;
}

static enum err_code tree_make(struct radial *r, const struct mesh_options *options,
                               struct err *err)
{
    struct ray_tree_polygons polygons = polygons_of(r);

    polygons.pace = options->pace;
    polygons.crew = options->crew;
    if (equals_find(&polygons, err) == ERR_OK)
        ray_tree_build(&polygons, 0, &r->tree, err);
    free((void *)(uintptr_t)polygons.same);
    return err->code;
}

/* A mesh over an image, without a tree; takes nothing. */
static struct mesh *mesh_over_radial(const void *image, struct err *err)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    struct radial *radial = calloc(1, sizeof *radial);

    if (!mesh || !radial) {
        free(mesh);
        free(radial);
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh");
        return NULL;
    }
    atomic_init(&mesh->refs, 1);
    mesh->radial = radial;
    sections_set(radial, image);
    return mesh;
}

/* ---- making --------------------------------------------------------------------------------- */

/*
 * The kept pieces in the order of box_order, malloc: pieces that are tested together are adjacent,
 * which takes a fifth off the time over meshes larger than the caches. NULL: no memory.
 */
static uint32_t *order_make(const struct convex_parts *set, const uint8_t *classes, size_t kept,
                            struct err *err)
{
    struct box_bounds *boxes = malloc(kept * sizeof *boxes);
    uint32_t *pieces = malloc(kept * sizeof *pieces), *order = malloc(kept * sizeof *order);
    size_t count = 0;

    if (!boxes || !pieces || !order) {
        err_set(err, ERR_NO_MEMORY, "no memory to sort %zu polygons", kept);
        free(order);
        order = NULL;
    }
    for (size_t i = 0; order && i < set->polygon_count; i++) {
        struct face face = convex_part_face(set, i);

        if (classes[i] == PIECE_DROPPED)
            continue;
        boxes[count] = bounds_of(&face, 4 * set->slack);
        pieces[count++] = (uint32_t)i;
    }
    if (order)
        box_order(boxes, (uint32_t)count, order);
    for (size_t i = 0; order && i < count; i++)
        order[i] = pieces[order[i]];
    free(boxes);
    free(pieces);
    return order;
}

/* The parts of the image. */
struct plan {
    const struct convex_parts *set;
    const uint8_t *classes;
    const uint32_t *order; /* [kept] of pieces */
    size_t kept, corner_count, vertex_count;
    uint32_t *numbers; /* of vertices in the image, by first use; UINT32_MAX: not used */
};

static void plan_count(struct plan *plan)
{
    const struct convex_parts *set = plan->set;

    memset(plan->numbers, 0xff, set->vertex_count * sizeof *plan->numbers);
    for (size_t i = 0; i < plan->kept; i++) {
        struct face face = convex_part_face(set, plan->order[i]);

        plan->corner_count += face.count;
        for (uint32_t k = 0; k < face.count; k++)
            if (plan->numbers[face.corners[k]] == UINT32_MAX)
                plan->numbers[face.corners[k]] = (uint32_t)plan->vertex_count++;
    }
}

static void plan_put(const struct plan *plan, struct radial_polygon *polygons, uint32_t *corners,
                     struct vec3 *vertices)
{
    const struct convex_parts *set = plan->set;
    uint32_t count = 0;

    for (size_t i = 0; i < plan->kept; i++) {
        uint32_t piece = plan->order[i];
        struct face face = convex_part_face(set, piece);

        polygons[i] = (struct radial_polygon){count, face.count, set->sources[piece],
                                              plan->classes[piece] == PIECE_WALL};
        for (uint32_t k = 0; k < face.count; k++)
            corners[count++] = plan->numbers[face.corners[k]];
    }
    for (size_t i = 0; i < set->vertex_count; i++)
        if (plan->numbers[i] != UINT32_MAX)
            vertices[plan->numbers[i]] = set->vertices[i];
}

static void bounds_set(struct radial_header *header, uint8_t *image)
{
    const struct vec3 *vertices = (const void *)(image + header->offset[RADIAL_VERTICES]);
    const uint32_t *corners = (const void *)(image + header->offset[RADIAL_CORNERS]);
    struct vec3 first = vertices[corners[0]];
    struct box3 box = {first, first};

    for (uint64_t i = 0; i < header->count[RADIAL_CORNERS]; i++) {
        struct vec3 v = vertices[corners[i]];

        box = box3_union(box, (struct box3){v, v});
    }
    header->bounds = box;
}

static void *image_of_plan(const struct plan *plan, struct mesh_space space, struct err *err)
{
    struct radial_header h = {.frame = space.frame, .is_outward = space.is_outward};
    uint8_t *image;

    h.slack = plan->set->slack;
    h.count[RADIAL_POLYGONS] = plan->kept;
    h.count[RADIAL_CORNERS] = plan->corner_count;
    h.count[RADIAL_VERTICES] = plan->vertex_count;
    if (!lay_out(&h)) {
        err_set(err, ERR_TOO_LARGE, "%zu polygons with %zu corners, must be below 2^31", plan->kept,
                plan->corner_count);
        return NULL;
    }
    image = aligned_alloc(MESH_ALIGNMENT, h.bytes);
    if (!image) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh of %zu polygons", plan->kept);
        return NULL;
    }
    memset(image, 0, h.bytes);
    plan_put(plan, (void *)(image + h.offset[RADIAL_POLYGONS]),
             (void *)(image + h.offset[RADIAL_CORNERS]),
             (void *)(image + h.offset[RADIAL_VERTICES]));
    bounds_set(&h, image);
    memcpy(image, &h, sizeof h);
    CHECK(radial_image_seal(image, h.bytes));
    return image;
}

static void *image_make(const struct convex_parts *set, const uint8_t *classes, size_t kept,
                        struct mesh_space space, struct err *err)
{
    uint32_t *order = order_make(set, classes, kept, err);
    uint32_t *numbers = malloc(set->vertex_count * sizeof *numbers);
    struct plan plan = {.set = set, .classes = classes, .order = order, .kept = kept};
    void *image = NULL;

    plan.numbers = numbers;
    if (!numbers)
        err_set(err, ERR_NO_MEMORY, "no memory for %zu vertices", set->vertex_count);
    if (order && numbers) {
        plan_count(&plan);
        image = image_of_plan(&plan, space, err);
    }
    free(order);
    free(numbers);
    return image;
}

static struct mesh *mesh_of_pieces(const struct convex_parts *set,
                                   const struct mesh_options *options, struct mesh_import *import,
                                   struct err *err)
{
    struct mesh_space space = options->space;
    uint8_t *classes = malloc(set->polygon_count);
    size_t kept;
    void *image;
    struct mesh *mesh;

    if (!classes) {
        err_set(err, ERR_NO_MEMORY, "no memory for %zu polygons", set->polygon_count);
        return NULL;
    }
    kept = judge(set, options, classes, import);
    if (kept == 0)
        err_set(err, ERR_UNPROCESSABLE, "no polygon is left, %llu were dropped: the %s",
                (unsigned long long)import->dropped,
                space.frame == MESH_SPHERICAL ? "frame's origin lies in them"
                                              : "frame's Z axis passes through them");
    image = kept ? image_make(set, classes, kept, space, err) : NULL;
    free(classes);
    if (!image)
        return NULL;
    mesh = mesh_over_radial(image, err);
    if (!mesh) {
        free(image);
        return NULL;
    }
    mesh->own = image;
    if (tree_make(mesh->radial, options, err)) {
        mesh_unref(mesh);
        return NULL;
    }
    return mesh;
}

struct mesh *radial_create(const struct polygon_soup *soup, const struct mesh_options *options,
                           struct mesh_import *import, struct err *err)
{
    const struct mesh_header upright = {.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    struct mesh_options upright_options = *options;
    struct mesh_import counts;
    struct convex_parts set;
    struct mesh *mesh;

    upright_options.slack_times = 1;
    if (convex_parts_make(soup, &upright, &upright_options, &set, &counts, err))
        return NULL;
    mesh = mesh_of_pieces(&set, options, &counts, err);
    convex_parts_free(&set);
    VALIDATE_THAT(!mesh || radial_validate(mesh->radial, err));
    if (mesh && import)
        *import = counts;
    return mesh;
}

void radial_free(struct radial *radial)
{
    if (!radial)
        return;
    ray_tree_free(&radial->tree);
    free(radial);
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum err_code damaged(struct err *err, const char *what, uint64_t at)
{
    return err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: %s %llu", what,
                   (unsigned long long)at);
}

bool radial_is_image(const void *image, size_t length)
{
    return length >= sizeof(struct radial_header) && memcmp(image, RADIAL_MAGIC, 8) == 0;
}

static enum err_code header_check(const struct radial_header *h, size_t length, struct err *err)
{
    const double numbers[] = {h->bounds.min.x, h->bounds.min.y, h->bounds.min.z, h->bounds.max.x,
                              h->bounds.max.y, h->bounds.max.z, h->slack};
    struct radial_header want = *h;

    if (h->version != RADIAL_VERSION)
        return err_set(err, ERR_BAD_INPUT, "the mesh image has version %u, this is version %d",
                       h->version, RADIAL_VERSION);
    if (h->checksum != header_checksum(h))
        return damaged(err, "checksum of a header of bytes", sizeof *h);
    if (!lay_out(&want) || memcmp(&want, h, sizeof want) != 0)
        return damaged(err, "sizes do not fit counts, in bytes", h->bytes);
    if (h->bytes != length)
        return err_set(err, ERR_BAD_INPUT, "the mesh image has %zu bytes, it says %llu", length,
                       (unsigned long long)h->bytes);
    if (h->count[RADIAL_POLYGONS] == 0)
        return damaged(err, "polygons", 0);
    if ((h->frame != MESH_SPHERICAL && h->frame != MESH_CYLINDRICAL) || h->is_outward > 1)
        return damaged(err, "frame", h->frame);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i]) || h->slack < 0)
            return damaged(err, "the header is not finite, number", i);
    return ERR_OK;
}

static enum err_code arrays_check(const struct radial *r, struct err *err)
{
    const uint64_t *count = r->header->count;

    for (uint64_t i = 0; i < count[RADIAL_POLYGONS]; i++) {
        const struct radial_polygon *p = &r->polygons[i];

        if (p->count < 3 || (uint64_t)p->first + p->count > count[RADIAL_CORNERS] || p->is_wall > 1)
            return damaged(err, "polygon", i);
    }
    for (uint64_t i = 0; i < count[RADIAL_CORNERS]; i++)
        if (r->corners[i] >= count[RADIAL_VERTICES])
            return damaged(err, "corner", i);
    for (uint64_t i = 0; i < count[RADIAL_VERTICES]; i++)
        if (!vec3_is_finite(r->vertices[i]))
            return damaged(err, "vertex", i);
    return ERR_OK;
}

static enum err_code image_check(const void *image, size_t length, struct err *err)
{
    struct radial_header header;
    uint8_t content[32];

    memcpy(&header, image, sizeof header);
    if (header_check(&header, length, err))
        return err->code;
    content_hash((const uint8_t *)image + sizeof header, length - sizeof header, content);
    if (memcmp(content, header.content, sizeof content) != 0)
        return damaged(err, "content hash of bytes", length);
    return ERR_OK;
}

struct mesh *radial_open(const void *image, size_t length, void (*release)(void *context),
                         void *context, struct err *err)
{
    void *own = NULL;
    struct mesh *mesh;

    CHECK(!release || (uintptr_t)image % MESH_ALIGNMENT == 0);
    if (image_check(image, length, err))
        return NULL;
    if (!release) {
        own = aligned_alloc(MESH_ALIGNMENT, mesh_aligned(length));
        if (!own) {
            err_set(err, ERR_NO_MEMORY, "no memory for a mesh image of %zu bytes", length);
            return NULL;
        }
        memcpy(own, image, length);
    }
    mesh = mesh_over_radial(own ? own : image, err);
    if (!mesh) {
        free(own);
        return NULL;
    }
    mesh->own = own;
    if (arrays_check(mesh->radial, err) ||
        tree_make(mesh->radial, &(struct mesh_options){.pace = NULL}, err)) {
        mesh_unref(mesh); /* release is not set yet: the image stays the caller's */
        return NULL;
    }
    mesh->release = release;
    mesh->context = context;
    return mesh;
}

/* ---- numbers -------------------------------------------------------------------------------- */

bool radial_validate(const struct radial *r, struct err *err)
{
    struct ray_tree_polygons polygons = polygons_of(r);
    const struct box3 *all = &r->header->bounds;
    bool is_right = true;

    for (uint64_t i = 0; i < r->header->count[RADIAL_CORNERS] && is_right; i++) {
        struct vec3 v = r->vertices[r->corners[i]];

        is_right = v.x >= all->min.x && v.x <= all->max.x && v.y >= all->min.y &&
                   v.y <= all->max.y && v.z >= all->min.z && v.z <= all->max.z;
        if (!is_right)
            err_set(err, ERR_INTERNAL, "corner %llu is out of bounds", (unsigned long long)i);
    }
    is_right = is_right && arrays_check(r, err) == ERR_OK &&
               equals_find(&polygons, err) == ERR_OK &&
               ray_tree_validate(&r->tree, &polygons, 0, err);
    free((void *)(uintptr_t)polygons.same);
    return is_right;
}

void radial_stats(const struct radial *r, struct mesh_stats *out)
{
    out->nodes = r->tree.node_count;
    out->leaves = r->tree.block_count;
    out->polygons = r->header->count[RADIAL_POLYGONS];
    out->depth = r->tree.depth;
    out->average_tests = r->tree.tests;
    ray_tree_depths(&r->tree, out->depths);
    out->bytes_of[MESH_OF_POLYGONS] = r->header->count[RADIAL_POLYGONS] * sizeof *r->polygons;
    out->bytes_of[MESH_OF_CORNERS] = r->header->count[RADIAL_CORNERS] * sizeof *r->corners;
    out->bytes_of[MESH_OF_VERTICES] = r->header->count[RADIAL_VERTICES] * sizeof *r->vertices;
    out->bytes_of[MESH_OF_BOXES] = ray_tree_bytes(&r->tree);
    out->bytes_of[MESH_OF_OTHERS] =
        r->header->bytes + sizeof(struct mesh) + sizeof *r - out->bytes_of[MESH_OF_POLYGONS] -
        out->bytes_of[MESH_OF_CORNERS] - out->bytes_of[MESH_OF_VERTICES];
    for (int i = 0; i < MESH_STRUCTURES; i++)
        out->bytes += out->bytes_of[i];
}
