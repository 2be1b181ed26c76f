/*
 * Cutting polygons into triangles: in the plane of their greatest area, by ears.
 */
#include "formats/polygon/polygon_triangles.h"

#include "terrain/mesh/convex_split.h"

#include <math.h>
#include <stdlib.h>

struct polygon_cutter {
    struct split split;
    struct vec2 flat[SPLIT_CORNERS_MAX];
};

struct vec3 polygon_area(const struct polygon_set *set, const uint32_t *corners, uint32_t count)
{
    struct vec3 sum = {0, 0, 0}, base = set->vertices[corners[0]];

    for (uint32_t i = 0; i < count; i++)
        sum = vec3_add(sum, vec3_cross(vec3_sub(set->vertices[corners[i]], base),
                                       vec3_sub(set->vertices[corners[(i + 1) % count]], base)));
    return sum;
}

/* Counter-clockwise in the plane of its greatest area. */
static void flatten(const struct polygon_set *set, const uint32_t *corners, uint32_t count,
                    struct vec3 area, struct vec2 *out)
{
    struct vec3 base = set->vertices[corners[0]];
    double x = fabs(area.x), y = fabs(area.y), z = fabs(area.z);

    for (uint32_t i = 0; i < count; i++) {
        struct vec3 p = vec3_sub(set->vertices[corners[i]], base);

        if (z >= x && z >= y)
            out[i] = (struct vec2){area.z > 0 ? p.x : -p.x, p.y};
        else if (x >= y)
            out[i] = (struct vec2){area.x > 0 ? p.y : -p.y, p.z};
        else
            out[i] = (struct vec2){area.y > 0 ? p.z : -p.z, p.x};
    }
}

struct polygon_cutter *polygon_cutter_create(void)
{
    return malloc(sizeof(struct polygon_cutter));
}

void polygon_cutter_destroy(struct polygon_cutter *cutter)
{
    free(cutter);
}

uint32_t polygon_cut(struct polygon_cutter *cutter, const struct polygon_set *set, size_t polygon,
                     const uint32_t **triangles, struct vec3 *area)
{
    const uint32_t *corners = set->corners + set->starts[polygon];
    const uint32_t count = set->starts[polygon + 1] - set->starts[polygon];
    struct split *split = &cutter->split;

    if (count < 3 || count > SPLIT_CORNERS_MAX)
        return 0;
    *area = polygon_area(set, corners, count);
    if (!(vec3_length(*area) > 0))
        return 0;
    *triangles = split->corners;
    for (uint32_t i = 0; i < 3; i++)
        split->corners[i] = i;
    if (count == 3)
        return 1;
    flatten(set, corners, count, *area, cutter->flat);
    return ring_triangulate(split, cutter->flat, count, 0);
}

enum err_code polygon_triangles(const struct polygon_set *set,
                                void (*put)(void *context, const struct vec3 corners[3]),
                                void *context, struct err *err)
{
    struct polygon_cutter *cutter = polygon_cutter_create();
    struct polygon_set made;

    if (!cutter)
        return err_set(err, ERR_NO_MEMORY, "no memory to cut polygons");
    set = polygon_set_flat(set, &made, err);
    if (!set) {
        polygon_cutter_destroy(cutter);
        return err->code;
    }
    for (size_t i = 0; i < set->polygon_count; i++) {
        const uint32_t *corners = set->corners + set->starts[i], *cut;
        struct vec3 area;
        const uint32_t count = polygon_cut(cutter, set, i, &cut, &area);

        for (uint32_t t = 0; t < count; t++)
            put(context, (struct vec3[3]){set->vertices[corners[cut[3 * t]]],
                                          set->vertices[corners[cut[3 * t + 1]]],
                                          set->vertices[corners[cut[3 * t + 2]]]});
    }
    polygon_cutter_destroy(cutter);
    polygon_set_free(&made);
    return ERR_OK;
}
