/*
 * The inside of a mesh. Private to terrain/; other rooms use mesh.h.
 *
 * The image is one block: a header, then arrays, each beginning at a multiple of 64 bytes, in this
 * order. There are no pointers in it, only indices, so that it means the same at any address.
 * Numbers are little-endian, as in memory.
 *
 *   polygons  one of each (Q, table 1), 32 bytes
 *   corners   indices of vertices, counter-clockwise seen from above; none: triangles that share no
 *             vertex, whose vertices follow one another
 *   vertices  in the mesh's frame; float32 where all of them are float32 numbers
 *   firsts    the first corner of each polygon, and their end; none: all are triangles
 *   sources   the index of each in the file; none: it is that of the polygon
 *
 * Q's edge lines and boxes follow from the vertices (convex_parts.h) and are computed where a
 * question needs them: few do, for the floor grid sorts out by small integers.
 *
 * The mesh's frame: p' = R (p - centre), gravity is -Z there.
 *
 * Slack. Vertices, lines and query points are each rounded by a few units in the last place of the
 * mesh's largest coordinate M. `slack` = 16 ε M bounds all of it: edges count as inside by that
 * much, so that outer borders and T-junctions hold; and `near` = 4 slack is how far beyond a cell
 * of the floor grid its floors may lie.
 */
#ifndef KOTA_TERRAIN_MESH_DATA_H
#define KOTA_TERRAIN_MESH_DATA_H

#include "terrain/mesh/mesh.h"
#include "terrain/bvh/face.h"
#include "terrain/mesh/floor_grid.h"
#include "terrain/bvh/ray_tree.h"
#include "terrain/kernels/simd.h"

#include <float.h>
#include <stdatomic.h>

enum { MESH_VERSION = 3, MESH_ALIGNMENT = 64, MESH_CORNERS_MAX = INT32_MAX };

static inline uint64_t mesh_aligned(uint64_t bytes)
{
    return (bytes + MESH_ALIGNMENT - 1) / MESH_ALIGNMENT * MESH_ALIGNMENT;
}

/* A direction within that of gravity runs along it: over the mesh it moves aside by no more than
 * the slack. */
#define MESH_GRAVITY_SINE (8 * DBL_EPSILON)

#define MESH_MAGIC "KOTAMESH"

struct box2 {
    double x_min, y_min, x_max, y_max;
};

struct mesh_polygon {
    float x_min, y_min; /* of its box grown by slack, rounded outward */
    /*
     * z = height + slope_x (x - x_min) + slope_y (y - y_min). A height that is not a number: it
     * follows from the corners, and z is held between them (floor_mask.h). No numbers: a wall.
     */
    double slope_x, slope_y, height;
};

/* Has it no area seen along gravity? */
static inline bool mesh_is_wall(const struct mesh_polygon *p)
{
    return isnan(p->slope_x);
}

/* Inside is a x + b y + c >= 0; (a, b) is unit. */
struct mesh_line {
    double a, b, c;
};

/* A wall has two lines with something between them, and (0, 0, 1) for its other edges. */

enum mesh_section {
    MESH_POLYGONS,
    MESH_CORNERS,
    MESH_VERTICES,
    MESH_FIRSTS,
    MESH_SOURCES,
    MESH_SECTIONS
};

struct mesh_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t bytes; /* of the image */
    uint64_t count[MESH_SECTIONS];
    uint64_t offset[MESH_SECTIONS]; /* from the header's first byte */
    uint8_t content[32];            /* BLAKE2b-256 of all that follows the header */
    double rotation[9];             /* R, row by row */
    struct vec3 centre;
    struct box2 root;   /* in the mesh's frame, not grown */
    struct box3 bounds; /* in the locale's frame */
    double slack, near;
    float z_min, z_max; /* of the polygons, rounded outward */
    uint32_t max_polygons, max_depth;
    uint64_t is_narrow; /* float32 vertices */
    uint64_t checksum;  /* FNV-1a of the header before it */
};

/* What the heights of a polygon's answers are between; rounded outward. */
struct z_range {
    float min, max;
};

enum mesh_seal_state { MESH_SEALED, MESH_UNSEALED, MESH_SEALING };

/* The rotation of rays, its axes side by side (axes.h): lane 3 holds 0. */
struct mesh_ray_frame {
    double column[3][4]; /* of the rotation */
    double centre[3][4]; /* each of its numbers in all lanes */
};

struct mesh_rays {
    struct mesh_ray_frame frame;
    struct ray_tree first; /* without nodes: of a mesh that no ray is asked of */
    struct ray_tree more;  /* of polygons that edits added, or without nodes */
    uint32_t split;        /* the first polygon of `more`; those before it are in `first` */
    bool is_whole;         /* no edit since `first` was made */
};

struct mesh {
    atomic_uint refs;
    const struct mesh_header *header;
    const struct mesh_polygon *polygons;
    const uint32_t *corners; /* NULL: as face_of_three */
    struct points points;
    const uint32_t *firsts;  /* NULL: all of its polygons are triangles */
    const uint32_t *sources; /* NULL: the polygons' own indices */
    struct z_range *ranges;  /* of polygons while the grid is made; NULL: convex_part_range */
    struct floor_grid grid;  /* not of the image: floor_grid.h */
    struct mesh_rays rays;   /* nor is this: mesh_rays.c */
    uint32_t *same; /* [polygons] the first that is equal (mesh_same.c); NULL: all differ */
    struct instances *instances; /* or many places of meshes: as radial (instances.h) */
    struct radial *radial; /* not a cartesian one: header and all arrays are NULL then (radial.h) */
    uint8_t content[32];   /* name of the mesh's content; of an edited one not the image's own */
    atomic_uint seal;      /* enum mesh_seal_state: has the image its hash and checksum? */
    double lift;           /* the centre's height against gravity */
    bool is_turned;
    void *own;                      /* the image when it is ours */
    void (*release)(void *context); /* else this gives it back */
    void *context;
};

_Static_assert(sizeof(struct mesh_polygon) == 32, "polygons have no padding");
_Static_assert(sizeof(struct mesh_header) % 8 == 0, "the header has no padding at its end");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "images are little-endian");

/* ---- the frame ------------------------------------------------------------------------------ */

static inline struct vec3 mesh_turn(const struct mesh_header *h, struct vec3 v)
{
    const double *r = h->rotation;

    return (struct vec3){r[0] * v.x + r[1] * v.y + r[2] * v.z, r[3] * v.x + r[4] * v.y + r[5] * v.z,
                         r[6] * v.x + r[7] * v.y + r[8] * v.z};
}

/* By the inverse of R, which is its transpose. */
static inline struct vec3 mesh_turn_back(const struct mesh_header *h, struct vec3 v)
{
    const double *r = h->rotation;

    return (struct vec3){r[0] * v.x + r[3] * v.y + r[6] * v.z, r[1] * v.x + r[4] * v.y + r[7] * v.z,
                         r[2] * v.x + r[5] * v.y + r[8] * v.z};
}

static inline struct vec3 mesh_to_frame(const struct mesh_header *h, struct vec3 p)
{
    return mesh_turn(h, vec3_sub(p, h->centre));
}

/*
 * Half the side of a cube around the frame's origin that holds all polygons, twice as wide as it
 * has to be. It follows from the slack: an edit of the mesh leaves it as it is.
 */
static inline double mesh_reach(const struct mesh *mesh)
{
    return 0x1p49 * mesh->header->slack;
}

/* Against gravity, in the locale's frame. */
static inline struct vec3 mesh_up(const struct mesh_header *h)
{
    return (struct vec3){h->rotation[6], h->rotation[7], h->rotation[8]};
}

/* Is it in grid and trees: the first of those that are equal? */
static inline bool mesh_is_first(const struct mesh *mesh, uint32_t polygon)
{
    return !mesh->same || mesh->same[polygon] == polygon;
}

/* ---- polygons ------------------------------------------------------------------------------- */

/* Its first corner; of the number of polygons: where the corners end. */
static inline size_t mesh_first(const struct mesh *mesh, size_t polygon)
{
    return mesh->firsts ? mesh->firsts[polygon] : 3 * polygon;
}

static inline uint32_t mesh_count(const struct mesh *mesh, size_t polygon)
{
    return mesh->firsts ? mesh->firsts[polygon + 1] - mesh->firsts[polygon] : 3;
}

static inline struct face mesh_face(const struct mesh *mesh, size_t polygon)
{
    return mesh->corners ? (struct face){mesh->points, mesh->corners + mesh_first(mesh, polygon),
                                         mesh_count(mesh, polygon)}
                         : face_of_three(&mesh->points, polygon);
}

/* Its index in the file. */
static inline uint32_t mesh_source(const struct mesh *mesh, uint32_t polygon)
{
    return mesh->sources ? mesh->sources[polygon] : polygon;
}

struct z_range mesh_range_of_corners(const struct mesh *mesh, uint32_t polygon);

/* What the heights of its answers are between. */
static inline struct z_range mesh_range(const struct mesh *mesh, uint32_t polygon)
{
    return mesh->ranges ? mesh->ranges[polygon] : mesh_range_of_corners(mesh, polygon);
}

static inline double line_value(const struct mesh_line *l, double x, double y)
{
    return l->a * x + l->b * y + l->c;
}

/* ---- the image ------------------------------------------------------------------------------ */

/* Counts and scalars are set; sets magic, sizes and offsets. False when it has no size. */
bool mesh_header_lay_out(struct mesh_header *header);

uint64_t mesh_section_bytes(const struct mesh_header *header, enum mesh_section section);

/* Zeros between the arrays of an image. */
void mesh_image_clear_gaps(void *image, const struct mesh_header *header);

/* Writes the content hash and the checksum of a whole image. */
void mesh_image_seal(void *image);

/*
 * The image of a set, not sealed, as small as it may be: the caller's, from huge_alloc. The
 * header has all but counts, sizes and offsets, which it gets. NULL: no memory, or too large.
 */
struct convex_parts;
void *mesh_image_make(struct mesh_header *header, const struct convex_parts *set, struct err *err);

/* Is it an image of an older version? */
bool mesh_image_is_old(const void *image, size_t length);

/*
 * The image of the present version of an older one that begins at a multiple of 8 bytes: the
 * caller's, from huge_alloc. ERR_BAD_INPUT, ERR_NO_MEMORY: NULL.
 */
void *mesh_image_of_old(const void *image, size_t length, size_t *new_length, struct err *err);

/* Are all of them float32 numbers? */
bool mesh_vertices_are_narrow(const struct vec3 *vertices, size_t count);

/* The same, now, for a mesh that went without. Any thread. */
void mesh_seal(const struct mesh *mesh);
/* The header, but for content and checksum, which another thread may be writing. */
struct mesh_header mesh_header_copy(const struct mesh *mesh);

/* Another image of the same bytes, which is the caller's, in place of the mesh's own. */
void mesh_image_move(struct mesh *mesh, const void *image);

/*
 * A mesh without grid and trees over an image (aligned, from huge_alloc), which it frees with
 * itself; NULL: no memory, and the image stays the caller's.
 */
struct mesh *mesh_over(void *image, struct err *err);

#endif
