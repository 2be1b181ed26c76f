/*
 * A mesh: convex polygons under gravity in a quadtree with wide nodes (QOTA: Barrus & Waters 1996,
 * and floor_grid.c), and the floors
 * above and below a point. Polygons may overlap and leave holes.
 *
 * In memory a mesh is one flat block without pointers, the image: the form that is written to disk
 * is the form that answers queries. Built meshes are immutable and counted; queries allocate
 * nothing. Coordinates in and out are the locale's; inside, the quadtree works in the frame that
 * Q's rotation R turns so that gravity is -Z (and X-Y along the terrain's own direction); answers
 * are turned back.
 */
#ifndef KOTA_TERRAIN_MESH_H
#define KOTA_TERRAIN_MESH_H

#include "base/err.h"
#include "base/pace.h"
#include "terrain/field_ray/ray.h"
#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Polygons as they come from a file: polygon i has vertices starts[i] .. starts[i+1]-1 of corners.
 */
struct polygon_soup {
    const struct vec3 *vertices;
    size_t vertex_count;
    const uint32_t *corners; /* indices of vertices, either way round */
    const uint32_t *starts;  /* polygon_count + 1 */
    size_t polygon_count;
};

#define MESH_COORDINATE_MAX_M 1e12        /* boxes are float32, areas are squares */
enum { MESH_POLYGON_CORNERS_MAX = 4096 }; /* one with more is dropped */

/*
 * Which way gravity pulls. Cartesian: everywhere along one vector. Spherical: along the lines
 * through the frame's origin. Cylindrical: along the lines that meet the frame's Z axis at a right
 * angle.
 */
enum {
    MESH_MAX_POLYGONS = 32, /* the default: four blocks */
    MESH_MAX_DEPTH = 12,    /* the default; Q, table 4 */
    MESH_MAX_POLYGONS_MOST = 1000000,
    MESH_DEPTH_MAX = 32
};

enum mesh_frame { MESH_CARTESIAN, MESH_SPHERICAL, MESH_CYLINDRICAL };

struct mesh_space {
    enum mesh_frame frame;
    bool is_outward; /* not cartesian: away from the origin or axis, as in a drum; else towards it,
                        as on a planet */
    /* of a cartesian mesh, Q's Maxpoly and Maxdepth; 0: MESH_MAX_POLYGONS, MESH_MAX_DEPTH */
    uint32_t max_polygons, max_depth;
};

struct crew;
struct mesh_instances;

struct mesh_options {
    struct vec3 gravity;   /* unit; {0,0,-1}; of a cartesian mesh, as all that follows but space */
    uint32_t max_polygons; /* a leaf with more is split where that pays; 0: 32 */
    uint32_t max_depth;    /* 0: 12; at most 32 */
    bool keep_axes;        /* do not turn X-Y to the terrain's own direction */
    double slack_times;    /* edges reach so many times as far as rounding needs; 0: 1 */
    /* a mesh under the same gravity, or NULL: its frame and slack are taken where they are enough,
     * and then it is answered with the same bits as of that, edited to the same polygons */
    const struct mesh *like;
    bool without_rays; /* for meshes without ray queries: rays would take ten times as long */
    struct mesh_space space;
    struct crew *crew;      /* that builds it; NULL: the caller's thread */
    struct pace *pace;      /* called now and then; NULL: no limit of time */
    uint32_t first_counted; /* the import is of the polygons from this one on, and counts from it */
    /* the soup stands for so many instances of its polygons, and its mesh shares theirs (then
     * no first_counted); NULL or none: it is as it is */
    const struct mesh_instances *instances;
    const uint32_t *numbers; /* of its polygons, rising; NULL: from 0 on */
};

/* The outcome of one polygon's import. */
enum mesh_fate {
    MESH_KEPT,
    MESH_FEW_CORNERS,    /* under 3 at different places */
    MESH_MANY_CORNERS,   /* over 4096 */
    MESH_NO_AREA,        /* within rounding */
    MESH_CROSSES_ITSELF, /* or runs back over itself */
    MESH_AROUND_CENTRE,  /* the origin of a spherical mesh lies in it, or the axis of a cylindrical
                            one passes through it */
    MESH_FATES
};

/* By enum mesh_fate: the reason why a polygon is dropped, after "polygon 7 ". */
extern const char *const mesh_fate_text[MESH_FATES];

enum { MESH_DROPS_TOLD = 100 };

struct mesh_drop {
    uint32_t polygon;
    enum mesh_fate fate;
};

struct mesh_import {
    uint64_t kept;                /* convex pieces in the mesh */
    uint64_t split;               /* input polygons made of several pieces: concave or not flat */
    uint64_t dropped;             /* input polygons of which nothing is in the mesh */
    uint64_t by_fate[MESH_FATES]; /* of those */
    uint32_t told;
    struct mesh_drop drops[MESH_DROPS_TOLD]; /* the first of those, by their numbers */
    uint64_t instances_shared;               /* instances whose polygons are there once */
    uint64_t instances_copied;               /* and those that could be, but are not */
    double precision_m; /* steps of float32 to which the file's reader has rounded; 0: it has not */
    double build_ms;    /* set by the caller, who has a clock */
};

/* ERR_UNPROCESSABLE: none of so many polygons is left, and why the first is not. */
enum err_code mesh_none_left(const struct mesh_import *import, size_t polygons, struct err *err);

enum { MESH_DEPTHS = 80 };

/* The parts of a mesh in memory. */
enum mesh_structure {
    MESH_OF_POLYGONS,
    MESH_OF_CORNERS,
    MESH_OF_VERTICES,
    MESH_OF_QUADTREE,
    MESH_OF_BOXES,
    MESH_OF_OTHERS,
    MESH_STRUCTURES
};

extern const char *const mesh_structure_name[MESH_STRUCTURES];

struct mesh_stats {
    uint64_t nodes, leaves, polygons, bytes;
    uint64_t bytes_of[MESH_STRUCTURES]; /* add up to bytes */
    uint32_t depth;
    uint32_t depths[MESH_DEPTHS]; /* leaves by depth; levels of Q's tree, each of four quadrants */
    double average_tests; /* polygons in a leaf, weighted by the leaves' areas (Q, table 4) */
};

struct mesh;

/*
 * Builds a mesh. Flat convex polygons stay as they are; flat means within a millionth of their
 * size. Corners at the place of the one before do not count. A polygon that crosses itself along
 * its normal, but is not flat and does not in space, is made of triangles.
 *
 * import  out, may be NULL; set only on success
 *
 * ERR_BAD_INPUT      a vertex that is not finite or beyond 1e12 m, an index out of range (named);
 *                    gravity that is no unit vector, max_depth over 32
 * ERR_TOO_LARGE      more than 2^32 - 2 polygons, vertices, corners or refs
 * ERR_UNPROCESSABLE  no polygon is left
 * ERR_NO_MEMORY, or the error of the pace
 * Bounded time and memory however the polygons lie: coincident ones end at max_depth, and the leaf
 * lists together hold at most 32 refs a polygon and 4096 more. About 1.5 µs a polygon.
 */
struct mesh *mesh_create(const struct polygon_soup *soup, const struct mesh_options *options,
                         struct mesh_import *import, struct err *err);
struct mesh *mesh_ref(const struct mesh *mesh);
void mesh_unref(struct mesh *mesh);

/* The image: versioned, little-endian, checksummed, content-hashed. Borrowed. Of a mesh that was
 * edited the first call takes a nanosecond a byte. */
const void *mesh_image(const struct mesh *mesh, size_t *length);

/* [32] bytes that name the mesh's content: BLAKE2b-256 of the image's content, or of an edited
 * one of its origin. Borrowed. */
const uint8_t *mesh_content(const struct mesh *mesh);

/*
 * A mesh over an image: copied when release is NULL, else borrowed (for a mapped file) until the
 * last unref calls release(context). A borrowed image begins at a multiple of 64 bytes. On an error
 * it stays the caller's and release is not called.
 *
 * ERR_BAD_INPUT  not an image of this version; every offset, index and checksum is verified, so
 *                hostile bytes end here
 * ERR_NO_MEMORY
 * O(length).
 */
struct mesh *mesh_open(const void *image, size_t length, void (*release)(void *context),
                       void *context, struct err *err);
/* The same, by several threads; crew NULL: on the caller's. */
struct mesh *mesh_open_by(struct crew *crew, const void *image, size_t length,
                          void (*release)(void *context), void *context, struct err *err);

/*
 * Recomputes every invariant from the vertices: edge lines, boxes, planes, convexity, and each
 * leaf's list. False and a message at the first that does not hold.
 */
bool mesh_validate(const struct mesh *mesh, struct err *err);

void mesh_stats(const struct mesh *mesh, struct mesh_stats *out);
struct box3 mesh_bounds(const struct mesh *mesh);
struct mesh_space mesh_space(const struct mesh *mesh);

/* Where gravity pulls in a space that is not cartesian: unit, or zero on the origin or the axis. */
struct vec3 mesh_space_gravity(struct mesh_space space, struct vec3 point);

/*
 * A surface on the gravity line through a point. Edges belong to their polygons, with a few
 * roundings to spare (16 ε times the mesh's largest coordinate): points on shared edges and
 * vertices, on T-junctions and on the outer border have the floor.
 */
struct mesh_contact {
    struct vec3 point;
    struct vec3 normal; /* unit, against gravity */
    double distance_m;  /* along gravity from the query point; > 0 below it, < 0 above it */
    uint32_t polygon;   /* index in the uploaded file */
};

/*
 * The highest surface at or below `point` lifted by reach_up_m (>= 0, may be INFINITY) against
 * gravity: the floor. False when there is none: outside, or over a hole. A point that an earlier
 * answer put on a floor is on it. About 0.1 µs, no allocation; any thread with a reference.
 * Under radial gravity the line ends at the origin or the axis, has no place there, and takes about
 * 0.5 µs.
 */
bool mesh_floor(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                struct mesh_contact *out);

struct mesh_height {
    double height_m; /* of the floor, against gravity from the frame's origin */
    uint32_t polygon;
};

/*
 * The heights of mesh_floor for each of points[count], faster, without point and normal: where
 * there is none, NaN and MESH_NO_POLYGON. Only of cartesian meshes.
 */
void mesh_floor_heights(const struct mesh *mesh, const struct vec3 *points, size_t count,
                        double reach_up_m, struct mesh_height *out);
#define MESH_NO_POLYGON UINT32_MAX

/*
 * The lowest surface above `above_m` and at or above `lift_m`, both heights over `point` against
 * gravity (above_m may be -INFINITY: no floor): the ceiling. False when there is none. Surfaces
 * within rounding of above_m are the floor itself. For the floor c of the same point, above_m is
 * -c.distance_m.
 */
bool mesh_ceiling(const struct mesh *mesh, struct vec3 point, double above_m, double lift_m,
                  struct mesh_contact *out);

/*
 * The same along any unit vector `down`, of a cartesian mesh that is turned: polygons that it lies
 * in are no floors, others are, also those that the mesh's own gravity lies in. About the time of a
 * ray.
 */
bool mesh_floor_along(const struct mesh *mesh, struct vec3 point, struct vec3 down,
                      double reach_up_m, struct mesh_contact *out);
bool mesh_ceiling_along(const struct mesh *mesh, struct vec3 point, struct vec3 down,
                        double above_m, double lift_m, struct mesh_contact *out);

struct mesh_hit {
    double t;
    struct vec3 point, normal; /* unit; against gravity, for a vertical polygon against the ray */
    uint32_t polygon;
};

/*
 * The first polygon along a ray, vertical ones included; surfaces have two sides; watertight over
 * shared edges. A ray that runs in a polygon's plane, or along its edge, hits where the polygon
 * begins, unless it is light. RAY_ANY: any hit within t_max. A ray along gravity gives what
 * mesh_floor or mesh_ceiling give. *hit is untouched on a miss.
 */
bool mesh_ray(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
              struct mesh_hit *hit);

/*
 * mesh_ray of many: hits[count], each with its bits; t is INFINITY and the rest says nothing where
 * there is none. The rays take turns, so that one walks while the memory of others is on its way.
 */
void mesh_rays(const struct mesh *mesh, const struct ray *rays, size_t count, enum ray_mode mode,
               struct mesh_hit *hits);

#endif
