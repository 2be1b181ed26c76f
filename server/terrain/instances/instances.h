/*
 * Meshes that are one or some meshes in many places. Private to terrain/; other rooms use mesh.h,
 * whose functions call these for such a mesh. The contracts there hold.
 *
 * The image is one block: a header, the places, and for each mesh where its image is; then those
 * images (mesh_data.h), each beginning at a multiple of 64 bytes. The tree of the places' boxes is
 * not in it; it is built when it is opened. It is the tree of ray_tree.h: a box is the triangle of
 * two of its corners, so that ray_tree_sweep() finds the places that a line, or a box on its way,
 * may meet.
 */
#ifndef KOTA_TERRAIN_INSTANCES_H
#define KOTA_TERRAIN_INSTANCES_H

#include "terrain/bvh/ray_tree_trace.h"
#include "terrain/instances/instance.h"
#include "terrain/mesh/mesh_data.h"

enum { INSTANCES_VERSION = 1, INSTANCES_MESHES_MAX = 1024 };

#define INSTANCES_MAGIC "KOTAINST"

struct instances_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t bytes; /* of the image */
    uint64_t place_count, mesh_count;
    uint8_t content[32]; /* BLAKE2b-256 of all that follows the header */
    struct vec3 axis;    /* unit, against gravity */
    uint64_t checksum;   /* FNV-1a of the header before it */
};

/* A mesh in a place: turned about the axis, then shifted. */
struct instances_place {
    struct vec3 translation;
    double cos, sin;
    uint32_t first; /* the number in the file of its polygon 0 */
    uint32_t mesh;
};

struct instances_part {
    uint64_t offset, bytes; /* of a mesh's image, from the header's first byte */
};

_Static_assert(sizeof(struct instances_header) % 8 == 0, "the header has no padding at its end");
_Static_assert(sizeof(struct instances_place) == 48, "places have no padding");

struct instances {
    const struct instances_header *header;
    const struct instances_place *places;
    struct mesh *meshes[INSTANCES_MESHES_MAX]; /* [mesh_count] */
    struct ray_tree tree;                      /* polygon i is the box of place i */
    struct box3 bounds;
    double slack;    /* as in mesh_data.h, of what is answered in the locale's frame */
    double rounding; /* of the frame's origin on its way into a place, at most */
    bool is_upright; /* the axis is +Z */
};

/* A soup that was checked, and options with instances, which are sound. Where they are turned about
 * another line than gravity, or gravity is not cartesian, the mesh is of their copies. */
struct mesh *instances_create(const struct polygon_soup *soup, const struct mesh_options *options,
                              struct mesh_import *import, struct err *err);

bool instances_is_image(const void *image, size_t length);
struct mesh *instances_open(struct crew *crew, const void *image, size_t length,
                            void (*release)(void *context), void *context, struct err *err);

void instances_free(struct instances *instances); /* NULL is fine; the image is the mesh's */
bool instances_validate(const struct instances *instances, struct err *err);
void instances_stats(const struct instances *instances, struct mesh_stats *out);

static inline struct motion instances_motion(const struct instances *instances, uint32_t i)
{
    const struct instances_place *at = &instances->places[i];

    return instance_motion(at->translation, at->cos, at->sin, instances->header->axis);
}

static inline const struct mesh *instances_mesh(const struct instances *instances, uint32_t i)
{
    return instances->meshes[instances->places[i].mesh];
}

bool instances_floor(const struct instances *instances, struct vec3 point, double reach_up_m,
                     struct mesh_contact *out);
bool instances_height(const struct instances *instances, struct vec3 point, double reach_up_m,
                      struct mesh_height *out);
bool instances_ceiling(const struct instances *instances, struct vec3 point, double above_m,
                       double lift_m, struct mesh_contact *out);
bool instances_ray(const struct instances *instances, const struct ray *ray, enum ray_mode mode,
                   struct mesh_hit *hit);
/* Boxes of the tree of places; polygons by their numbers in the file. */
void instances_ray_trace(const struct instances *instances, const struct ray *ray,
                         struct ray_tree_trace *trace);

#endif
