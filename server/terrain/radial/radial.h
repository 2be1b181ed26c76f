/*
 * Meshes under radial gravity. Private to terrain/; other rooms use mesh.h, whose
 * functions call these for such a mesh. The contracts there hold.
 *
 * The image is one block: a header, then polygons, corners and vertices, each beginning at a
 * multiple of 64 bytes. Vertices are the locale's own, not moved or turned: the centre is the
 * frame's origin, the axis its Z. The tree of boxes is not in it; it is built when it is opened.
 */
#ifndef KOTA_TERRAIN_RADIAL_H
#define KOTA_TERRAIN_RADIAL_H

#include "terrain/mesh/mesh_data.h"

enum { RADIAL_VERSION = 1 };

#define RADIAL_MAGIC "KOTAGLOB"

enum radial_section { RADIAL_POLYGONS, RADIAL_CORNERS, RADIAL_VERTICES, RADIAL_SECTIONS };

struct radial_polygon {
    uint32_t first, count; /* corners; convex and flat, either way round */
    uint32_t source;       /* index in the file */
    uint32_t is_wall;      /* gravity lies in its plane: rays hit it, it is no floor */
};

struct radial_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t bytes; /* of the image */
    uint64_t count[RADIAL_SECTIONS];
    uint64_t offset[RADIAL_SECTIONS]; /* from the header's first byte */
    uint8_t content[32];              /* BLAKE2b-256 of all that follows the header */
    uint32_t frame, is_outward;       /* struct mesh_space */
    struct box3 bounds;               /* in the locale's frame */
    double slack;                     /* as in mesh_data.h: 16 ε times the largest coordinate */
    uint64_t checksum;                /* FNV-1a of the header before it */
};

_Static_assert(sizeof(struct radial_header) % 8 == 0, "the header has no padding at its end");
_Static_assert(sizeof(struct radial_polygon) == 16, "polygons have no padding");

struct radial {
    const struct radial_header *header;
    const struct radial_polygon *polygons;
    const uint32_t *corners;
    const struct vec3 *vertices;
    struct ray_tree tree;
};

static inline struct face radial_face(const struct radial *radial, size_t polygon)
{
    const struct radial_polygon *p = &radial->polygons[polygon];

    return (struct face){{radial->vertices, NULL}, radial->corners + p->first, p->count};
}

/* A soup that was checked; of the options space, pace and first_counted count. */
struct mesh *radial_create(const struct polygon_soup *soup, const struct mesh_options *options,
                           struct mesh_import *import, struct err *err);

/* Writes sizes, offsets, content hash and checksum of an image whose header has counts and all
 * else; false when counts and length do not fit. */
bool radial_image_seal(void *image, size_t length);

/* Do these bytes begin like an image of a radial mesh? */
bool radial_is_image(const void *image, size_t length);
struct mesh *radial_open(const void *image, size_t length, void (*release)(void *context),
                         void *context, struct err *err);

void radial_free(struct radial *radial); /* NULL is fine; the image is the mesh's */
bool radial_validate(const struct radial *radial, struct err *err);
void radial_stats(const struct radial *radial, struct mesh_stats *out);

bool radial_floor(const struct radial *radial, struct vec3 point, double reach_up_m,
                  struct mesh_contact *out);
bool radial_ceiling(const struct radial *radial, struct vec3 point, double above_m, double lift_m,
                    struct mesh_contact *out);
bool radial_ray(const struct radial *radial, const struct ray *ray, enum ray_mode mode,
                struct mesh_hit *hit);
/* What it tests, for the nearest hit; polygons are numbers of the image. */
struct ray_tree_trace;
void radial_ray_trace(const struct radial *radial, const struct ray *ray,
                      struct ray_tree_trace *trace);

/*
 * Is the line from `from` along d (not zero) inside of all edges, by more than `least` metres (or
 * outside by no more than -least)? Its sides do not matter.
 */
bool radial_line_is_inside(const struct face *face, struct vec3 from, struct vec3 d, double least);

#endif
