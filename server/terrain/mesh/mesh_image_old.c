/*
 * Images of versions 1 and 2, which stores of earlier builds have. Polygons had 64 and 48 bytes,
 * with what follows from the corners; version 1 had a quadtree and edge lines, too, which are left
 * out. The same checks as of the present version, in the same order (mesh_image.c); what is read
 * here becomes an image that those decide.
 */
#include "terrain/mesh/mesh_data.h"

#include "base/content_hash.h"
#include "terrain/mesh/convex_parts.h"

#include <stdlib.h>
#include <string.h>

enum { OLD_SECTIONS = 6 };

enum old_role { OLD_POLYGONS, OLD_CORNERS, OLD_VERTICES, OLD_ROLES };

struct frame {
    double rotation[9];
    struct vec3 centre;
    struct box2 root;
    struct box3 bounds;
    double slack, near;
};

struct head {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t bytes;
};

struct polygon_1 {
    float x_min, y_min, x_max, y_max;
    double slope_x, slope_y, height;
    float z_min, z_max;
    uint32_t first, count;
    uint32_t source;
    uint32_t is_wall;
};

struct polygon_2 {
    float x_min, y_min;
    double slope_x, slope_y, height;
    float z_min, z_max;
    uint32_t first; /* WALL_2 */
    uint32_t source;
};

#define WALL_2 0x80000000u

_Static_assert(sizeof(struct polygon_1) == 64 && sizeof(struct polygon_2) == 48 &&
                   sizeof(struct head) == 24,
               "as they were written");

/* Head; counts and offsets of the sections; content hash; frame; some numbers; checksum. */
static const struct old_version {
    size_t sections, tail_bytes;
    size_t item_bytes[OLD_SECTIONS];
    size_t role[OLD_ROLES]; /* the section of each */
    size_t one_more;        /* polygons than are counted */
} versions[] = {
    {6, 16, {32, sizeof(struct polygon_1), 24, 4, 4, 24}, {1, 3, 5}, 0},
    {3, 16, {sizeof(struct polygon_2), 4, 24}, {0, 1, 2}, 1},
};

struct old {
    const struct old_version *v;
    struct head head;
    uint64_t count[OLD_SECTIONS], offset[OLD_SECTIONS];
    uint8_t content[32];
    struct frame frame;
    uint32_t tail[4]; /* of version 2 the last two are max_polygons and max_depth */
    size_t header_bytes;
};

bool mesh_image_is_old(const void *image, size_t length)
{
    struct head head;

    if (length < sizeof head)
        return false;
    memcpy(&head, image, sizeof head);
    return memcmp(head.magic, MESH_MAGIC, sizeof head.magic) == 0 && head.version >= 1 &&
           head.version <= sizeof versions / sizeof *versions;
}

/* The next part of a header. */
static const uint8_t *take(void *to, const uint8_t *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return from + bytes;
}

static bool header_read(const uint8_t *image, size_t length, struct old *old)
{
    const uint8_t *at = take(&old->head, image, sizeof old->head);
    uint64_t checksum;
    size_t counts;

    old->v = &versions[old->head.version - 1];
    counts = old->v->sections * sizeof *old->count;
    old->header_bytes = sizeof old->head + 2 * counts + sizeof old->content + sizeof old->frame +
                        old->v->tail_bytes + sizeof checksum;
    if (length < old->header_bytes)
        return false;
    at = take(old->count, at, counts);
    at = take(old->offset, at, counts);
    at = take(old->content, at, sizeof old->content);
    at = take(&old->frame, at, sizeof old->frame);
    at = take(old->tail, at, old->v->tail_bytes);
    memcpy(&checksum, at, sizeof checksum);
    return old->head.header_bytes == old->header_bytes && old->head.bytes == length &&
           checksum == fnv1a(FNV1A_EMPTY, image, old->header_bytes - sizeof checksum);
}

/* The sizes are exactly those that the counts call for. */
static bool is_laid_out(const struct old *old)
{
    const uint64_t up = MESH_ALIGNMENT - 1;
    uint64_t at = (old->header_bytes + up) & ~up;

    for (size_t s = 0; s < old->v->sections; s++) {
        if (old->count[s] > UINT32_MAX || old->offset[s] != at)
            return false;
        at += ((old->count[s] + (s == old->v->role[OLD_POLYGONS] ? old->v->one_more : 0)) *
                   old->v->item_bytes[s] +
               up) &
              ~up;
    }
    return at == old->head.bytes;
}

static const void *section(const struct old *old, const uint8_t *image, enum old_role role)
{
    return image + old->offset[old->v->role[role]];
}

/* One polygon of version 1 as of version 2. */
static struct polygon_2 polygon_of_1(const struct polygon_1 *p)
{
    return (struct polygon_2){p->x_min,  p->y_min, p->slope_x, p->slope_y,
                              p->height, p->z_min, p->z_max,   p->first | (p->is_wall ? WALL_2 : 0),
                              p->source};
}

static struct polygon_2 polygon_at(const struct old *old, const uint8_t *image, size_t i)
{
    const void *polygons = section(old, image, OLD_POLYGONS);

    if (old->head.version == 1)
        return polygon_of_1((const struct polygon_1 *)polygons + i);
    return ((const struct polygon_2 *)polygons)[i];
}

/* Corners and vertices of a set are the image's own. False: they are not one after another. */
static bool set_fill(const struct old *old, const uint8_t *image, struct convex_parts *set)
{
    set->z_min = INFINITY;
    set->z_max = -INFINITY;
    for (size_t k = 0; k < set->corner_count; k++)
        if (set->corners[k] >= set->vertex_count)
            return false;
    for (size_t i = 0; i < set->polygon_count; i++)
        set->firsts[i] = polygon_at(old, image, i).first & ~WALL_2;
    set->firsts[set->polygon_count] = (uint32_t)set->corner_count;
    for (size_t i = 0; i < set->polygon_count; i++) {
        struct polygon_2 p = polygon_at(old, image, i);
        bool is_wall = p.first & WALL_2;

        if (set->firsts[0] != 0 || set->firsts[i + 1] > set->corner_count ||
            set->firsts[i + 1] < (uint64_t)set->firsts[i] + 3)
            return false;
        struct face face = convex_part_face(set, i);

        set->sources[i] = p.source;
        set->polygons[i] = (struct mesh_polygon){p.x_min, p.y_min, is_wall ? NAN : p.slope_x,
                                                 is_wall ? NAN : p.slope_y, p.height};
        set->polygons[i].height = convex_part_kept_height(&face, &set->polygons[i]);
        struct z_range range = convex_part_range(&face, &set->polygons[i], old->frame.slack);

        set->z_min = fminf(set->z_min, range.min);
        set->z_max = fmaxf(set->z_max, range.max);
    }
    return true;
}

static struct mesh_header header_of(const struct old *old, const struct convex_parts *set)
{
    const struct frame *f = &old->frame;
    bool has_limits = old->head.version > 1;
    struct mesh_header header = {.centre = f->centre,
                                 .root = f->root,
                                 .bounds = f->bounds,
                                 .slack = f->slack,
                                 .near = f->near,
                                 .z_min = set->z_min,
                                 .z_max = set->z_max,
                                 .max_polygons = has_limits ? old->tail[2] : MESH_MAX_POLYGONS,
                                 .max_depth = has_limits ? old->tail[3] : MESH_MAX_DEPTH};

    memcpy(header.rotation, f->rotation, sizeof header.rotation);
    return header;
}

void *mesh_image_of_old(const void *image, size_t length, size_t *new_length, struct err *err)
{
    struct old old = {.v = NULL};
    struct convex_parts set = {.vertices = NULL};
    struct mesh_header header;
    uint8_t content[32];
    void *made = NULL;

    bool is_good = header_read(image, length, &old) && is_laid_out(&old);

    if (is_good)
        content_hash((const uint8_t *)image + old.header_bytes, length - old.header_bytes, content);
    if (!is_good || memcmp(content, old.content, sizeof content) != 0) {
        err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: version %u", old.head.version);
        return NULL;
    }
    set.polygon_count = old.count[old.v->role[OLD_POLYGONS]];
    set.corner_count = old.count[old.v->role[OLD_CORNERS]];
    set.vertex_count = old.count[old.v->role[OLD_VERTICES]];
    set.corners = (void *)(uintptr_t)section(&old, image, OLD_CORNERS);
    set.vertices = (void *)(uintptr_t)section(&old, image, OLD_VERTICES);
    set.polygons = malloc((set.polygon_count + 1) * sizeof *set.polygons);
    set.firsts = malloc((set.polygon_count + 1) * sizeof *set.firsts);
    set.sources = malloc((set.polygon_count + 1) * sizeof *set.sources);
    if (!set.polygons || !set.firsts || !set.sources) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh image of %zu bytes", length);
    } else if (!set_fill(&old, image, &set)) {
        err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: polygons of version %u",
                old.head.version);
    } else {
        header = header_of(&old, &set);
        made = mesh_image_make(&header, &set, err);
        if (made)
            mesh_image_seal(made);
        *new_length = header.bytes;
    }
    free(set.polygons);
    free(set.firsts);
    free(set.sources);
    return made;
}
