/*
 * Is a mesh a solid, and how large?
 *
 * Directed edges are sorted, each as one number (from, to). A mesh is closed and oriented exactly
 * when no directed edge is there twice and each has its reverse: so a hole, a flipped face, a
 * third face at an edge, and a fin all show, without a table. The volume is the sum of the
 * tetrahedra between the triangles and one point inside the box (the divergence theorem); a point
 * near the mesh keeps what cancels small.
 *
 * Polygons of more corners are refused, not fanned: four corners that are not in one plane are two
 * different surfaces, and a caller could not know which. Vertices are not welded by place for the
 * same reason.
 */
#include "terrain/mesh/solid.h"

#include <math.h>
#include <stdlib.h>

/* Of the box: below it a volume is rounding. */
#define VOLUME_SHARE_MIN 1e-12

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static enum err_code check_triangles(const uint32_t *corners, const uint32_t *starts, size_t count,
                                     struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t *t = corners + starts[i];

        if (starts[i + 1] - starts[i] != 3)
            return err_set(err, ERR_UNPROCESSABLE,
                           "polygon %zu has %u corners: a model is made of triangles", i,
                           starts[i + 1] - starts[i]);
        if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0])
            return err_set(err, ERR_UNPROCESSABLE, "polygon %zu has the same vertex twice", i);
    }
    return ERR_OK;
}

static enum err_code check_edges(const uint64_t *edges, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t reverse = edges[i] << 32 | edges[i] >> 32;
        uint32_t from = (uint32_t)(edges[i] >> 32), to = (uint32_t)edges[i];

        if (i > 0 && edges[i] == edges[i - 1])
            return err_set(err, ERR_UNPROCESSABLE,
                           "two triangles go along the edge from vertex %u to %u in the same "
                           "direction",
                           from, to);
        if (!bsearch(&reverse, edges, count, sizeof *edges, by_number))
            return err_set(err, ERR_UNPROCESSABLE,
                           "the mesh is not closed: no triangle lies beyond the edge from vertex "
                           "%u to %u",
                           from, to);
    }
    return ERR_OK;
}

/* Bounds and how many vertices there are, of sorted edges: each vertex begins at least one. */
static void measure_vertices(const struct vec3 *vertices, const uint64_t *edges, size_t count,
                             struct solid *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct vec3 *v = &vertices[edges[i] >> 32];
        struct box3 *box = &out->bounds;

        if (i > 0 && edges[i] >> 32 == edges[i - 1] >> 32)
            continue;
        if (out->vertices++ == 0)
            *box = (struct box3){*v, *v};
        box->min =
            (struct vec3){fmin(box->min.x, v->x), fmin(box->min.y, v->y), fmin(box->min.z, v->z)};
        box->max =
            (struct vec3){fmax(box->max.x, v->x), fmax(box->max.y, v->y), fmax(box->max.z, v->z)};
    }
}

static struct vec3 from_to(struct vec3 a, const struct vec3 *b)
{
    return (struct vec3){b->x - a.x, b->y - a.y, b->z - a.z};
}

static double volume(const struct vec3 *vertices, const uint32_t *corners, size_t count,
                     const struct box3 *box)
{
    struct vec3 o = {box->min.x + (box->max.x - box->min.x) / 2,
                     box->min.y + (box->max.y - box->min.y) / 2,
                     box->min.z + (box->max.z - box->min.z) / 2};
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        struct vec3 a = from_to(o, &vertices[corners[3 * i]]);
        struct vec3 b = from_to(o, &vertices[corners[3 * i + 1]]);
        struct vec3 c = from_to(o, &vertices[corners[3 * i + 2]]);

        sum += a.x * (b.y * c.z - b.z * c.y) + a.y * (b.z * c.x - b.x * c.z) +
               a.z * (b.x * c.y - b.y * c.x);
    }
    return sum / 6;
}

static enum err_code check_volume(const struct solid *solid, struct err *err)
{
    const struct box3 *box = &solid->bounds;
    double all = (box->max.x - box->min.x) * (box->max.y - box->min.y) * (box->max.z - box->min.z);

    if (!isfinite(all))
        return err_set(err, ERR_UNPROCESSABLE, "the mesh is too large to be measured");
    if (!(fabs(solid->volume_m3) > VOLUME_SHARE_MIN * all))
        return err_set(err, ERR_UNPROCESSABLE, "the mesh encloses no volume");
    if (solid->volume_m3 < 0)
        return err_set(err, ERR_UNPROCESSABLE,
                       "the faces look inwards (volume %g m³): turn their corners around",
                       solid->volume_m3);
    return ERR_OK;
}

enum err_code solid_measure(const struct vec3 *vertices, const uint32_t *corners,
                            const uint32_t *starts, size_t polygon_count, struct solid *out,
                            struct err *err)
{
    struct solid solid = {.triangles = polygon_count};
    size_t count = 3 * polygon_count;
    uint64_t *edges;

    err->code = ERR_OK;
    if (polygon_count == 0)
        return err_set(err, ERR_UNPROCESSABLE, "there are no triangles");
    if (check_triangles(corners, starts, polygon_count, err))
        return err->code;
    edges = malloc(count * sizeof *edges);
    if (!edges)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu edges", count);
    for (size_t i = 0; i < count; i++)
        edges[i] = (uint64_t)corners[i] << 32 | corners[i % 3 == 2 ? i - 2 : i + 1];
    qsort(edges, count, sizeof *edges, by_number);
    if (check_edges(edges, count, err) == ERR_OK) {
        measure_vertices(vertices, edges, count, &solid);
        solid.volume_m3 = volume(vertices, corners, polygon_count, &solid.bounds);
        if (check_volume(&solid, err) == ERR_OK)
            *out = solid;
    }
    free(edges);
    return err->code;
}
