/*
 * Polygons of a file made ready for a mesh: turned into the mesh's frame, split into convex
 * pieces where they are not convex or not flat, with their planes (Q, table 1).
 */
#ifndef KOTA_TERRAIN_CONVEX_PARTS_H
#define KOTA_TERRAIN_CONVEX_PARTS_H

#include "terrain/float_round.h"
#include "terrain/mesh/mesh_data.h"

struct convex_parts {
    struct vec3 *vertices; /* in the mesh's frame; those that no piece uses are left out */
    size_t vertex_count;
    struct mesh_polygon *polygons;
    uint32_t *firsts;  /* [polygon_count + 1] of their corners */
    uint32_t *sources; /* their indices in the file */
    size_t polygon_count;
    uint32_t *corners;
    size_t corner_count;
    float z_min, z_max; /* rounded outward */
    struct box2 root;
    struct box3 bounds; /* in the locale's frame */
    double slack;       /* see mesh_data.h */
};

/* Every index in range, every vertex finite; names the first that is not. */
enum err_code soup_check(const struct polygon_soup *soup, struct err *err);

/*
 * Makes the pieces of a soup that was checked; header gives rotation and centre; the slack is the
 * header's, or where that is 0 slack_times that of rounding. Of the options slack_times, pace and
 * first_counted count. *import is set on an error, too.
 * ERR_TOO_LARGE, ERR_UNPROCESSABLE (none left), ERR_NO_MEMORY, or the error of the pace: *out is
 * empty then. Cost O(corners) for triangles; about O(n log n) for a polygon of n corners
 * (convex_split.h).
 */
enum err_code convex_parts_make(const struct polygon_soup *soup, const struct mesh_header *header,
                                const struct mesh_options *options, struct convex_parts *out,
                                struct mesh_import *import, struct err *err);

/*
 * The same of polygons that join the mesh of a header: with its slack, which must not be less than
 * convex_parts_slack. That none is left is no error; root and bounds are empty then.
 */
enum err_code convex_parts_make_more(const struct polygon_soup *soup,
                                     const struct mesh_header *header, struct pace *pace,
                                     struct convex_parts *out, struct mesh_import *import,
                                     struct err *err);

/* One more polygon that is not in the mesh; pieces of it are not counted any more. */
void import_drop(struct mesh_import *import, uint32_t polygon, enum mesh_fate fate);

/* The slack that the polygons of a soup call for in the frame of a header. */
double convex_parts_slack(const struct polygon_soup *soup, const struct mesh_header *header);

void convex_parts_free(struct convex_parts *set);

/*
 * Q's line of the edge from one corner to the next of a polygon, counter-clockwise seen from above.
 * It is computed from the lesser to the greater of its ends and then negated if the edge runs the
 * other way: both polygons at an edge have exactly opposite numbers. Of a point it is (0, 0, 1).
 */
static inline struct mesh_line edge_line(struct vec3 from, struct vec3 to)
{
    bool is_turned = to.x < from.x || (to.x == from.x && to.y < from.y);
    struct vec3 low = is_turned ? to : from, high = is_turned ? from : to;
    double dx = high.x - low.x, dy = high.y - low.y;
    double length = sqrt(dx * dx + dy * dy);

    if (!(length > 0))
        return (struct mesh_line){0, 0, 1};
    double a = -dy / length, b = dx / length, c = -(a * low.x + b * low.y);

    return is_turned ? (struct mesh_line){-a, -b, -c} : (struct mesh_line){a, b, c};
}

/* Of edge i. */
static inline struct mesh_line convex_part_line(const struct face *face, uint32_t i)
{
    return edge_line(face_at(face, i), face_after(face, i));
}

struct box2 convex_part_box(const struct face *face);

/* Piece i of a set. */
struct face convex_part_face(const struct convex_parts *set, size_t i);

/* What the heights of a polygon's answers are between. */
struct z_range convex_part_range(const struct face *face, const struct mesh_polygon *p,
                                 double slack);

/* The height of a floor's plane, from its slopes and its box. */
double convex_part_height(const struct face *face, const struct mesh_polygon *p);

/* The same, or what a polygon has instead: not a number where it is steep, sharp or a wall. */
double convex_part_kept_height(const struct face *face, const struct mesh_polygon *p);

/* Twice the area along the normal, right-handed (Newell). */
static inline struct vec3 convex_part_normal(const struct face *face)
{
    struct vec3 origin = face_at(face, 0), sum = {0, 0, 0};
    struct vec3 a = vec3_sub(face_at(face, 1), origin);

    for (uint32_t i = 2; i < face->count; i++) {
        struct vec3 b = vec3_sub(face_at(face, i), origin);

        sum = vec3_add(sum, vec3_cross(a, b));
        a = b;
    }
    return sum;
}

#endif
