/*
 * Instances as the polygons that they stand for.
 *
 * Of the soup's vertices an instance takes the span that its corners are in: readers write the
 * vertices of a mesh one after another, so that this is all but never too many.
 */
#include "terrain/instances/instance.h"

#include <stdlib.h>
#include <string.h>

#define TURN_OFF 1e-9 /* of the squares' sum from 1 */

bool instances_are_sound(const struct mesh_instances *instances, size_t polygon_count)
{
    uint64_t polygons = 0;
    bool are = fabs(vec3_length(instances->axis) - 1) < 1e-6;

    for (size_t i = 0; are && i < instances->count; i++) {
        const struct mesh_instance *at = &instances->at[i];

        polygons += at->count;
        are = at->count > 0 && (uint64_t)at->first + at->count <= polygon_count &&
              polygons < UINT32_MAX && vec3_is_finite(at->translation) &&
              fabs(at->cos * at->cos + at->sin * at->sin - 1) < TURN_OFF;
    }
    return are;
}

uint64_t instances_polygons(const struct mesh_instances *instances)
{
    uint64_t polygons = 0;

    for (size_t i = 0; i < instances->count; i++)
        polygons += instances->at[i].count;
    return polygons;
}

uint64_t instances_repeated(const struct mesh_instances *instances, size_t polygon_count)
{
    uint8_t *uses = calloc(polygon_count + 1, 1); /* 2: some */
    uint64_t count = 0;

    for (size_t i = 0; uses && i < instances->count; i++)
        uses[instances->at[i].first] = uses[instances->at[i].first] > 0 ? 2 : 1;
    for (size_t i = 0; uses && i < instances->count; i++)
        count += uses[instances->at[i].first] > 1;
    free(uses);
    return count;
}

enum err_code instances_check_copies(const struct mesh_instances *instances, struct err *err)
{
    uint64_t polygons = instances_polygons(instances);

    if (polygons <= INSTANCES_COPIES_MAX)
        return ERR_OK;
    return err_limit(err, ERR_TOO_LARGE, INSTANCES_COPIES_MAX, (double)polygons,
                     "copies of the layer's %zu instances would be %llu polygons, at most %d",
                     instances->count, (unsigned long long)polygons, INSTANCES_COPIES_MAX);
}

void soup_copy_free(struct soup_copy *copy)
{
    free(copy->vertices);
    free(copy->corners);
    free(copy->starts);
    *copy = (struct soup_copy){.vertices = NULL};
}

struct polygon_soup soup_copy_view(const struct soup_copy *copy)
{
    return (struct polygon_soup){copy->vertices, copy->vertex_count, copy->corners, copy->starts,
                                 copy->polygon_count};
}

/* The vertices of a range of polygons: low to low + count - 1. */
struct span {
    uint32_t low, count;
};

static struct span span_of(const struct polygon_soup *soup, const struct mesh_instance *at)
{
    uint32_t low = UINT32_MAX, high = 0;

    for (uint32_t k = soup->starts[at->first]; k < soup->starts[at->first + at->count]; k++) {
        low = soup->corners[k] < low ? soup->corners[k] : low;
        high = soup->corners[k] > high ? soup->corners[k] : high;
    }
    return low > high ? (struct span){0, 0} : (struct span){low, high - low + 1};
}

static void append(const struct polygon_soup *soup, const struct mesh_instance *at,
                   struct vec3 axis, struct soup_copy *out)
{
    struct span span = span_of(soup, at);
    struct motion motion = instance_motion(at->translation, at->cos, at->sin, axis);
    uint32_t corner = out->starts[out->polygon_count], base = (uint32_t)out->vertex_count;

    for (uint32_t i = 0; i < span.count; i++)
        out->vertices[base + i] = motion_point_out(&motion, soup->vertices[span.low + i]);
    out->vertex_count += span.count;
    for (uint32_t i = at->first; i < at->first + at->count; i++) {
        for (uint32_t k = soup->starts[i]; k < soup->starts[i + 1]; k++)
            out->corners[corner++] = soup->corners[k] - span.low + base;
        out->starts[++out->polygon_count] = corner;
    }
}

enum err_code instances_copy(const struct polygon_soup *soup, const struct mesh_instance *instances,
                             size_t count, struct vec3 axis, struct soup_copy *out, struct err *err)
{
    uint64_t vertices = 0, corners = 0, polygons = 0;

    *out = (struct soup_copy){.vertices = NULL};
    for (size_t i = 0; i < count; i++) {
        const struct mesh_instance *at = &instances[i];

        vertices += span_of(soup, at).count;
        corners += soup->starts[at->first + at->count] - soup->starts[at->first];
        polygons += at->count;
    }
    if (vertices >= UINT32_MAX || corners >= UINT32_MAX || polygons >= UINT32_MAX)
        return err_set(err, ERR_TOO_LARGE, "copies of %zu instances have more than 2^32 corners",
                       count);
    out->vertices = malloc((vertices + 1) * sizeof *out->vertices);
    out->corners = malloc((corners + 1) * sizeof *out->corners);
    out->starts = malloc((polygons + 1) * sizeof *out->starts);
    if (!out->vertices || !out->corners || !out->starts) {
        soup_copy_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for copies of %zu instances", count);
    }
    out->starts[0] = 0;
    for (size_t i = 0; i < count; i++)
        append(soup, &instances[i], axis, out);
    return ERR_OK;
}
