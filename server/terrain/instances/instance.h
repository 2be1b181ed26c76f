/*
 * Polygons that are in several places: each instance is a range of the polygons of a soup, turned
 * about one axis and then shifted. The polygons of all instances, one instance after the other,
 * are numbered from 0: so is the soup that they stand for.
 */
#ifndef KOTA_TERRAIN_INSTANCE_H
#define KOTA_TERRAIN_INSTANCE_H

#include "terrain/mesh/mesh.h"
#include "terrain/motion.h"

struct mesh_instance {
    struct vec3 translation; /* metres, after the turn */
    double cos, sin;         /* of the turn, right-handed about the axis */
    uint32_t first, count;   /* its polygons of the soup */
};

struct mesh_instances {
    struct mesh_instance *at;
    size_t count;     /* 0: the soup is as it is */
    struct vec3 axis; /* unit */
};

_Static_assert(sizeof(struct mesh_instance) == 48, "instances are written as they are");

static inline bool instance_is_turned(const struct mesh_instance *instance)
{
    return instance->cos != 1 || instance->sin != 0;
}

static inline struct motion instance_motion(struct vec3 translation, double cosine, double sine,
                                            struct vec3 axis)
{
    return (struct motion){
        .pose.translation = translation, .axis = axis, .cos = cosine, .sin = sine};
}

/* Are ranges, numbers, turns and axis such as they may be, for a soup of so many polygons? */
bool instances_are_sound(const struct mesh_instances *instances, size_t polygon_count);

/* How many polygons they stand for. */
uint64_t instances_polygons(const struct mesh_instances *instances);

/* Of those, instances whose first polygon another begins with, too. O(both). */
uint64_t instances_repeated(const struct mesh_instances *instances, size_t polygon_count);

/* May they become copies? ERR_TOO_LARGE: there would be more than INSTANCES_COPIES_MAX. */
enum err_code instances_check_copies(const struct mesh_instances *instances, struct err *err);
enum { INSTANCES_COPIES_MAX = 1 << 24 };

/* A soup of its own, malloc; polygons may be gaps. */
struct soup_copy {
    struct vec3 *vertices;
    uint32_t *corners, *starts; /* polygon_count + 1 */
    size_t vertex_count, polygon_count;
};

void soup_copy_free(struct soup_copy *copy);
struct polygon_soup soup_copy_view(const struct soup_copy *copy);

/*
 * Copies the polygons of instances[count], each in its place, which *out then has one after
 * another. The same soup and instances give the same bits. ERR_TOO_LARGE over 2^32 of anything,
 * ERR_NO_MEMORY: *out is empty then. O(polygons copied).
 */
enum err_code instances_copy(const struct polygon_soup *soup, const struct mesh_instance *instances,
                             size_t count, struct vec3 axis, struct soup_copy *out,
                             struct err *err);

#endif
