/*
 * Images of version 1, which stores of earlier builds have: six arrays, with a quadtree and with
 * edge lines, which are left out, and polygons of 64 bytes. The same checks as of the present
 * version, in the same order (mesh_image.c); what is read here becomes an image that those decide.
 */
#include "terrain/mesh/mesh_data.h"

#include "base/content_hash.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_1, POLYGONS_1, LINES_1, CORNERS_1, REFS_1, VERTICES_1, SECTIONS_1 };

struct header_1 {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t bytes;
    uint64_t count[SECTIONS_1];
    uint64_t offset[SECTIONS_1];
    uint8_t content[32];
    double rotation[9];
    struct vec3 centre;
    struct box2 root;
    struct box3 bounds;
    double slack, near;
    uint32_t depth, max_polygons, max_depth, cuts;
    uint64_t checksum;
};

struct polygon_1 {
    float x_min, y_min, x_max, y_max;
    double slope_x, slope_y, height;
    float z_min, z_max;
    uint32_t first, count;
    uint32_t source;
    uint32_t is_wall;
};

_Static_assert(sizeof(struct polygon_1) == 64, "as it was written");

static const size_t item_bytes[SECTIONS_1] = {32, sizeof(struct polygon_1), 24, 4, 4, 24};

bool mesh_image_is_1(const void *image, size_t length)
{
    struct header_1 h;

    if (length < sizeof h)
        return false;
    memcpy(&h, image, sizeof h);
    return memcmp(h.magic, MESH_MAGIC, sizeof h.magic) == 0 && h.version == 1;
}

/* The sizes are exactly those that the counts call for. */
static bool is_laid_out(const struct header_1 *h, size_t length)
{
    uint64_t at = (sizeof *h + MESH_ALIGNMENT - 1) / MESH_ALIGNMENT * MESH_ALIGNMENT;

    for (int s = 0; s < SECTIONS_1; s++) {
        if (h->count[s] > UINT32_MAX || h->offset[s] != at)
            return false;
        at += (h->count[s] * item_bytes[s] + MESH_ALIGNMENT - 1) / MESH_ALIGNMENT * MESH_ALIGNMENT;
    }
    return h->bytes == at && at == length && h->header_bytes == sizeof *h &&
           h->checksum == mesh_header_checksum(h, offsetof(struct header_1, checksum));
}

/* False: the corners are not one after another. */
static bool polygons_read(const struct header_1 *h, const struct polygon_1 *from,
                          struct mesh_header *header, struct mesh_polygon *to)
{
    uint64_t first = 0;

    header->z_min = INFINITY;
    header->z_max = -INFINITY;
    for (uint64_t i = 0; i < h->count[POLYGONS_1]; i++) {
        const struct polygon_1 *p = &from[i];

        if (p->first != first || p->is_wall > 1)
            return false;
        first += p->count;
        if (first > h->count[CORNERS_1])
            return false;
        to[i] = (struct mesh_polygon){
            .x_min = p->x_min,
            .y_min = p->y_min,
            .slope_x = p->slope_x,
            .slope_y = p->slope_y,
            .height = p->height,
            .z_min = p->z_min,
            .z_max = p->z_max,
            .first = p->first | (p->is_wall ? MESH_WALL : 0),
            .source = p->source,
        };
        header->z_min = fminf(header->z_min, p->z_min);
        header->z_max = fmaxf(header->z_max, p->z_max);
    }
    to[h->count[POLYGONS_1]] = (struct mesh_polygon){.first = (uint32_t)first};
    return first == h->count[CORNERS_1] && first < MESH_WALL;
}

static struct mesh_header header_of(const struct header_1 *h)
{
    struct mesh_header header = {
        .count = {h->count[POLYGONS_1], h->count[CORNERS_1], h->count[VERTICES_1]},
        .centre = h->centre,
        .root = h->root,
        .bounds = h->bounds,
        .slack = h->slack,
        .near = h->near,
        .max_polygons = MESH_MAX_POLYGONS,
        .max_depth = MESH_MAX_DEPTH,
    };

    memcpy(header.rotation, h->rotation, sizeof header.rotation);
    return header;
}

void *mesh_image_of_1(const void *image, size_t length, size_t *new_length, struct err *err)
{
    const uint8_t *bytes = image;
    uint8_t content[32];
    struct header_1 h;

    memcpy(&h, image, sizeof h);
    content_hash(bytes + sizeof h, length - sizeof h, content);
    if (!is_laid_out(&h, length) || memcmp(content, h.content, sizeof content) != 0) {
        err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: version %u", h.version);
        return NULL;
    }
    struct mesh_header header = header_of(&h);
    uint8_t *to = mesh_header_lay_out(&header) ? aligned_alloc(MESH_ALIGNMENT, header.bytes) : NULL;

    if (!to) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh image of %zu bytes", length);
        return NULL;
    }
    mesh_image_clear_gaps(to, &header);
    if (!polygons_read(&h, (const void *)(bytes + h.offset[POLYGONS_1]), &header,
                       (void *)(to + header.offset[MESH_POLYGONS]))) {
        free(to);
        err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: polygons of version %u", h.version);
        return NULL;
    }
    memcpy(to + header.offset[MESH_CORNERS], bytes + h.offset[CORNERS_1],
           mesh_section_bytes(&header, MESH_CORNERS));
    memcpy(to + header.offset[MESH_VERTICES], bytes + h.offset[VERTICES_1],
           mesh_section_bytes(&header, MESH_VERTICES));
    memcpy(to, &header, sizeof header);
    mesh_image_seal(to);
    *new_length = header.bytes;
    return to;
}
