/*
 * Memory of polygons, and the check of their counts. Corners are 32-bit, so counts stop below 2^32
 * at any limit.
 */
#include "formats/polygon/polygon_set.h"

#include <stdlib.h>

const struct polygon_limits polygon_limits_default = {
    .polygons_max = 2000000,
    .corners_max = 8000000,
    .vertices_max = 8000000,
};

static enum err_code count_check(const char *what, const char *noun, uint64_t count, uint64_t max,
                                 struct err *err)
{
    if (max > UINT32_MAX - 1)
        max = UINT32_MAX - 1;
    if (count <= max)
        return ERR_OK;
    return err_limit(err, ERR_TOO_LARGE, (double)max, (double)count, "%s: %llu %s, at most %llu",
                     what, (unsigned long long)count, noun, (unsigned long long)max);
}

enum err_code polygon_check_counts(const char *what, uint64_t vertices, uint64_t polygons,
                                   uint64_t corners, const struct polygon_limits *limits,
                                   struct err *err)
{
    if (count_check(what, "vertices", vertices, limits->vertices_max, err) ||
        count_check(what, "polygons", polygons, limits->polygons_max, err) ||
        count_check(what, "polygon corners", corners, limits->corners_max, err))
        return err->code;
    return ERR_OK;
}

enum err_code polygon_set_allocate(size_t vertices, size_t polygons, size_t corners,
                                   struct polygon_set *out, struct err *err)
{
    *out = (struct polygon_set){
        .vertices = malloc((vertices + !vertices) * sizeof *out->vertices),
        .corners = malloc((corners + !corners) * sizeof *out->corners),
        .starts = malloc((polygons + 1) * sizeof *out->starts),
    };
    if (!out->vertices || !out->corners || !out->starts) {
        polygon_set_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu vertices and %zu polygons", vertices,
                       polygons);
    }
    out->vertex_count = vertices;
    out->polygon_count = polygons;
    out->starts[0] = 0;
    return ERR_OK;
}

void polygon_set_free(struct polygon_set *set)
{
    free(set->vertices);
    free(set->corners);
    free(set->starts);
    *set = (struct polygon_set){0};
}
