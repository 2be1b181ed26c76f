/*
 * Memory of polygons, and the check of their counts. Corners are 32-bit, so counts stop below 2^32
 * at any limit.
 */
#include "formats/polygon/polygon_set.h"

#include <stdlib.h>
#include <string.h>

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
    free(set->instances.at);
    *set = (struct polygon_set){0};
}

/* ---- instances ------------------------------------------------------------------------------- */

enum { INSTANCES_HEAD_BYTES = 8 + 3 * 8 };

size_t polygon_set_numbers(const struct polygon_set *set)
{
    return set->instances.count > 0 ? (size_t)instances_polygons(&set->instances)
                                    : set->polygon_count;
}

size_t polygon_set_corners(const struct polygon_set *set)
{
    size_t corners = 0;

    if (set->instances.count == 0)
        return set->starts ? set->starts[set->polygon_count] : 0;
    for (size_t i = 0; i < set->instances.count; i++) {
        const struct mesh_instance *at = &set->instances.at[i];

        corners += set->starts[at->first + at->count] - set->starts[at->first];
    }
    return corners;
}

const struct polygon_set *polygon_set_flat(const struct polygon_set *set, struct polygon_set *made,
                                           struct err *err)
{
    const struct polygon_soup soup = {set->vertices, set->vertex_count, set->corners, set->starts,
                                      set->polygon_count};
    const struct mesh_instances *instances = &set->instances;
    struct soup_copy copy;

    *made = (struct polygon_set){.vertices = NULL};
    if (instances->count == 0)
        return set;
    if (instances_check_copies(instances, err) ||
        instances_copy(&soup, instances->at, instances->count, instances->axis, &copy, err))
        return NULL;
    *made = (struct polygon_set){.vertices = copy.vertices,
                                 .vertex_count = copy.vertex_count,
                                 .corners = copy.corners,
                                 .starts = copy.starts,
                                 .polygon_count = copy.polygon_count,
                                 .precision_m = set->precision_m};
    return made;
}

size_t polygon_instances_bytes(const struct polygon_set *set)
{
    const struct mesh_instances *instances = &set->instances;

    return instances->count ? INSTANCES_HEAD_BYTES + instances->count * sizeof *instances->at : 0;
}

void polygon_instances_put(const struct polygon_set *set, void *to)
{
    const struct mesh_instances *instances = &set->instances;
    const uint64_t count = instances->count;
    char *at = to;

    if (count == 0)
        return;
    memcpy(at, &count, sizeof count);
    memcpy(at + sizeof count, &instances->axis, sizeof instances->axis);
    memcpy(at + INSTANCES_HEAD_BYTES, instances->at, count * sizeof *instances->at);
}

bool polygon_instances_take(const void *bytes, size_t length, struct polygon_set *set,
                            struct err *err)
{
    struct mesh_instances *instances = &set->instances;
    const char *at = bytes;
    uint64_t count;

    if (length == 0)
        return true;
    if (length <= INSTANCES_HEAD_BYTES)
        return false;
    memcpy(&count, at, sizeof count);
    if (count != (length - INSTANCES_HEAD_BYTES) / sizeof *instances->at ||
        length != INSTANCES_HEAD_BYTES + count * sizeof *instances->at)
        return false;
    instances->at = malloc(count * sizeof *instances->at);
    if (!instances->at) {
        err_set(err, ERR_NO_MEMORY, "no memory for %zu instances", (size_t)count);
        return false;
    }
    instances->count = count;
    memcpy(&instances->axis, at + sizeof count, sizeof instances->axis);
    memcpy(instances->at, at + INSTANCES_HEAD_BYTES, count * sizeof *instances->at);
    return instances_are_sound(instances, set->polygon_count);
}
