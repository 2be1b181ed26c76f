/*
 * Polygons of a file made ready for the quadtree: turned into the mesh's frame, split into convex
 * pieces where they are not convex or not flat, with boxes, edge lines and planes (Q, table 1).
 */
#ifndef KOTA_TERRAIN_PIECES_H
#define KOTA_TERRAIN_PIECES_H

#include "terrain/mesh_data.h"

enum { PIECE_CONCAVE_MAX = 1024 }; /* a polygon with more that is not convex is dropped */

struct piece_set {
    struct vec3 *vertices; /* in the mesh's frame; those that no piece uses are left out */
    size_t vertex_count;
    struct mesh_polygon *polygons;
    struct box2 *boxes; /* exact, one a polygon */
    size_t polygon_count;
    uint32_t *corners;
    struct mesh_line *lines;
    size_t corner_count;
    struct box2 root;
    struct box3 bounds; /* in the locale's frame */
    double slack;       /* see mesh_data.h */
};

/* Every index in range, every vertex finite; names the first that is not. */
enum err_code soup_check(const struct polygon_soup *soup, struct err *err);

/*
 * Makes the pieces of a soup that was checked; header gives rotation and centre; the slack is
 * slack_times that of rounding. import counts.
 * ERR_TOO_LARGE, ERR_UNPROCESSABLE (none left), ERR_NO_MEMORY: *out is empty then. Cost O(corners)
 * for triangles; O(n²) for a polygon of n corners, n bounded.
 */
enum err_code pieces_make(const struct polygon_soup *soup, const struct mesh_header *header,
                          double slack_times, struct piece_set *out, struct mesh_import *import,
                          struct err *err);

/*
 * The same of polygons that join the mesh of a header: with its slack, which must not be less than
 * pieces_slack. That none is left is no error; root and bounds are empty then.
 */
enum err_code pieces_make_more(const struct polygon_soup *soup, const struct mesh_header *header,
                               struct piece_set *out, struct mesh_import *import, struct err *err);

/* The slack that the polygons of a soup call for in the frame of a header. */
double pieces_slack(const struct polygon_soup *soup, const struct mesh_header *header);

void pieces_free(struct piece_set *set);

/* Line and box of pieces from vertices: what the image holds, and mesh_validate compares. */
void piece_lines(const struct vec3 *vertices, const uint32_t *corners, uint32_t count, bool is_wall,
                 struct mesh_line *lines);
struct box2 piece_box(const struct vec3 *vertices, const uint32_t *corners, uint32_t count);

/* Outward to float32: not above, not below. */
static inline float float_down(double x)
{
    float f = (float)x;

    return (double)f > x ? nextafterf(f, -INFINITY) : f;
}

static inline float float_up(double x)
{
    float f = (float)x;

    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

/* Twice the area along the normal, right-handed (Newell). */
static inline struct vec3 piece_normal(const struct vec3 *vertices, const uint32_t *corners,
                                       uint32_t count)
{
    struct vec3 origin = vertices[corners[0]], sum = {0, 0, 0};
    struct vec3 a = vec3_sub(vertices[corners[1]], origin);

    for (uint32_t i = 2; i < count; i++) {
        struct vec3 b = vec3_sub(vertices[corners[i]], origin);

        sum = vec3_add(sum, vec3_cross(a, b));
        a = b;
    }
    return sum;
}

#endif
